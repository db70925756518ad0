# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small AWX: the part of its API that the role's modules use, on loopback, with AWX's rules for what it is given.

It is stricter than AWX in one thing: a field that a kind of object does not have is refused, not passed over.
"""

from __future__ import annotations

import copy
import json
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import injection
import rules

Item = dict[str, Any]

TOKEN = "a token for the tests"
VERSION = "24.6.1"
ENCRYPTED = "$encrypted$"


class Refused(Exception):
    """The answer 400, with what is wrong."""


class Missing(Exception):
    """The answer 404."""


@dataclass(frozen=True)
class Kind:
    """A kind of object: its name as a type, its fields with the values that they have when nobody gives any."""

    type: str
    fields: Mapping[str, Any]
    required: tuple[str, ...] = ("name",)
    #: Together they belong to one object only.
    unique: tuple[str, ...] = ("name", "organization")
    #: Fields that name another object, and where that is.
    references: Mapping[str, str] = field(default_factory=dict)
    #: Lists of other objects, by the end of their address, and where these are.
    lists: Mapping[str, str] = field(default_factory=dict)
    surveyed: bool = False


_NAMED = {"name": "", "description": ""}
_OWNED = {**_NAMED, "organization": None}
_ORGANIZATION = {"organization": "organizations"}
_NOTIFICATIONS = {
    f"notification_templates_{when}": "notification_templates" for when in ("started", "success", "error")
}
_PROMPTS = dict.fromkeys(
    (
        f"ask_{what}_on_launch"
        for what in ("inventory", "labels", "limit", "scm_branch", "skip_tags", "tags", "variables")
    ),
    False,
)
_JOB_PROMPTS = dict.fromkeys(
    (
        f"ask_{what}_on_launch"
        for what in (
            "credential", "diff_mode", "execution_environment", "forks", "instance_groups", "job_slice_count", "job_type",
            "timeout", "verbosity",
        )
    ),
    False,
)  # fmt: skip

KINDS = {
    "organizations": Kind("organization", _NAMED, unique=("name",)),
    "labels": Kind("label", {"name": "", "organization": None}, ("name", "organization"), references=_ORGANIZATION),
    "execution_environments": Kind(
        "execution_environment",
        {**_OWNED, "image": "", "credential": None, "pull": ""},
        ("name", "image"),
        ("name",),
        {**_ORGANIZATION, "credential": "credentials"},
    ),
    "credential_types": Kind(
        "credential_type",
        {**_NAMED, "kind": None, "managed": False, "inputs": {}, "injectors": {}},
        ("name", "kind"),
        ("name", "kind"),
    ),
    "credentials": Kind(
        "credential",
        {**_OWNED, "credential_type": None, "inputs": {}},
        ("name", "credential_type"),
        ("name", "organization", "credential_type"),
        {**_ORGANIZATION, "credential_type": "credential_types"},
    ),
    "projects": Kind(
        "project",
        {
            **_OWNED, "scm_type": "", "scm_url": "", "scm_branch": "", "scm_refspec": "", "scm_clean": False,
            "scm_update_on_launch": False, "scm_update_cache_timeout": 0, "allow_override": False, "credential": None,
            "default_environment": None, "timeout": 0, "local_path": "",
        },
        references={**_ORGANIZATION, "credential": "credentials", "default_environment": "execution_environments"},
        lists=_NOTIFICATIONS,
    ),
    "inventories": Kind(
        "inventory",
        {**_OWNED, "kind": "", "host_filter": None, "variables": "", "prevent_instance_group_fallback": False},
        ("name", "organization"),
        references=_ORGANIZATION,
    ),
    "hosts": Kind(
        "host",
        {**_NAMED, "inventory": None, "enabled": True, "variables": ""},
        ("name", "inventory"),
        ("name", "inventory"),
        {"inventory": "inventories"},
    ),
    "job_templates": Kind(
        "job_template",
        {
            **_OWNED, "job_type": "run", "inventory": None, "project": None, "playbook": "", "scm_branch": "", "forks": 0,
            "limit": "", "verbosity": 0, "extra_vars": "", "job_tags": "", "skip_tags": "", "timeout": 0,
            "use_fact_cache": False, "execution_environment": None, "survey_enabled": False, "become_enabled": False,
            "diff_mode": False, "allow_simultaneous": False, "job_slice_count": 1, **_PROMPTS, **_JOB_PROMPTS,
        },
        ("name", "project"),
        references={
            **_ORGANIZATION, "inventory": "inventories", "project": "projects",
            "execution_environment": "execution_environments",
        },
        lists={"credentials": "credentials", "labels": "labels", "instance_groups": "instance_groups", **_NOTIFICATIONS},
        surveyed=True,
    ),
    "workflow_job_templates": Kind(
        "workflow_job_template",
        {
            **_OWNED, "extra_vars": "", "survey_enabled": False, "allow_simultaneous": False, "inventory": None, "limit": "",
            "scm_branch": "", "job_tags": "", "skip_tags": "", **_PROMPTS,
        },
        references={**_ORGANIZATION, "inventory": "inventories"},
        lists={"labels": "labels", "notification_templates_approvals": "notification_templates", **_NOTIFICATIONS},
        surveyed=True,
    ),
    "workflow_job_template_nodes": Kind(
        "workflow_job_template_node",
        {
            "type": "workflow_job_template_node", "identifier": "", "workflow_job_template": None,
            "unified_job_template": None, "extra_data": {}, "job_type": None, "diff_mode": None, "limit": None,
            "all_parents_must_converge": False,
        },
        ("identifier", "workflow_job_template"),
        ("identifier", "workflow_job_template"),
        {"workflow_job_template": "workflow_job_templates", "unified_job_template": "unified_job_templates"},
        {
            **dict.fromkeys(("success_nodes", "always_nodes", "failure_nodes"), "workflow_job_template_nodes"),
            "credentials": "credentials", "labels": "labels", "instance_groups": "instance_groups",
        },
    ),
    "workflow_approval_templates": Kind("workflow_approval_template", {**_NAMED, "timeout": 0}, unique=()),
    "instance_groups": Kind("instance_group", {"name": ""}, unique=("name",)),
    "notification_templates": Kind("notification_template", _OWNED),
}  # fmt: skip

UNIFIED = ("projects", "job_templates", "workflow_job_templates", "workflow_approval_templates")
LINKS = ("success_nodes", "always_nodes", "failure_nodes")


def _own_name(item: Item) -> str:
    return str(item["identifier"] if "identifier" in item else item["name"])


class Controller:
    """The objects, and every request."""

    def __init__(self, playbooks: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._items: dict[str, dict[int, Item]] = defaultdict(dict)
        self._lists: dict[tuple[str, int, str], list[int]] = defaultdict(list)
        self._surveys: dict[tuple[str, int], Item] = {}
        self._next = 100
        #: The playbooks that every project has.
        self.playbooks = tuple(playbooks)
        self.writes: list[tuple[str, str, Any]] = []
        self.reads: list[str] = []

    # What tests ask

    def add(self, collection: str, /, **values: Any) -> int:
        """Puts an object there, past all rules."""
        self._next += 1
        self._items[collection][self._next] = {**KINDS[collection].fields, **values}
        return self._next

    def posted(self, kind: str, name: str, organization: str = "") -> Item:
        """The object with this name, as it is stored. Without an organization it is the one that was made last."""
        return self._items[kind][self._number(kind, name, organization)]

    def change(self, collection: str, name: str, /, **values: Any) -> None:
        """Somebody works in the web interface."""
        self.posted(collection, name).update(values)

    def link(self, before: str, way: str, after: str) -> None:
        """Somebody draws a line in the workflow."""
        nodes = "workflow_job_template_nodes"
        self._lists[nodes, self._number(nodes, before), way].append(self._number(nodes, after))

    def linked(self, before: str, way: str) -> list[str]:
        nodes = "workflow_job_template_nodes"
        return [self.name(nodes, each) for each in self._lists[nodes, self._number(nodes, before), way]]

    def _number(self, kind: str, name: str, organization: str = "") -> int:
        wanted = f"{organization}: {name}" if organization else name
        names = {
            self.name(kind, each) if organization else _own_name(item): each for each, item in self._items[kind].items()
        }
        return names[wanted]

    def name(self, kind: str, number: int) -> str:
        """An object's name for people, with its organization where there is one."""
        item = self._item(kind, number)
        if item.get("organization") is None:
            return _own_name(item)
        return f"{self._items['organizations'][item['organization']]['name']}: {_own_name(item)}"

    def named(self, method: str, path: str, data: Any) -> tuple[str, str, Any]:
        """A request with names in the place of numbers, and texts of JSON as what they stand for."""
        kind, *rest = path.removeprefix("/api/v2/").strip("/").split("/")
        if rest[1:] and rest[1] in KINDS[kind].lists:
            data = self.name(KINDS[kind].lists[rest[1]], data["id"])
        else:
            references = {**KINDS[kind].references} if not rest[1:] else {}
            data = {
                key: self.name(references[key], value) if key in references and value is not None
                else json.loads(value) if key in ("extra_vars", "variables")
                else value
                for key, value in data.items()
                if key != "managed"
            }  # fmt: skip
        place = kind if not rest else "/".join([self.name(kind, int(rest[0])), *rest[1:]])
        return method, place, data

    # The API

    def answer(self, method: str, path: str, query: list[tuple[str, str]], data: Any) -> tuple[int, Any]:
        with self._lock:
            if method != "GET":
                self.writes.append((method, path, copy.deepcopy(data)))
            else:
                self.reads.append(path)
            match = re.fullmatch(r"/api/v2/(\w+)/(?:(\d+)/(?:(\w+)/)?)?", path)
            if not match or (match[1] not in KINDS and match[1] != "unified_job_templates"):
                raise Missing
            kind, number, below = match[1], int(match[2] or 0), match[3]
            if not number:
                return self._collection(method, kind, query, data)
            self._item(kind, number)
            if below:
                return self._below(method, kind, number, below, data)
            if method == "GET":
                return 200, self._shown(kind, number)
            if method == "PATCH":
                self._write(kind, number, data)
                return 200, self._shown(kind, number)
            raise Missing

    def _collection(self, method: str, kind: str, query: list[tuple[str, str]], data: Any) -> tuple[int, Any]:
        if method == "POST" and kind != "unified_job_templates":
            number = self._write(kind, None, data)
            return 201, self._shown(kind, number)
        kinds = UNIFIED if kind == "unified_job_templates" else (kind,)
        shown = [self._shown(each, number) for each in kinds for number in self._items[each]]
        found = [item for item in shown if self._matches(item, query)]
        return 200, {"count": len(found), "next": None, "previous": None, "results": found}

    @staticmethod
    def _matches(item: Item, query: list[tuple[str, str]]) -> bool:
        def same(name: str, value: str) -> bool:
            if name not in item:
                raise Refused({"detail": f"{item['type']} has no field named '{name}'"})
            return str(item[name]) == value

        either = [same(name[4:], value) for name, value in query if name.startswith("or__")]
        every = [same(name, value) for name, value in query if not name.startswith("or__")]
        return all(every) and (any(either) or not either)

    def _write(self, kind: str, number: int | None, data: Any) -> int:
        """Make an object, or change one, where no rule is against it."""
        known = KINDS[kind]
        old = self._items[kind][number] if number else {}
        item = {**known.fields, **old, **data}
        problems = [f"{name}: no such field" for name in data if name not in known.fields]
        problems += [f"{name}: This field is required." for name in known.required if item.get(name) in (None, "")]
        for name, value in data.items():
            standard = known.fields.get(name)
            if isinstance(standard, bool) and not isinstance(value, bool):
                problems.append(f"{name}: Must be a valid boolean.")
            elif isinstance(standard, str) and not isinstance(value, str):
                problems.append(f"{name}: Not a valid string.")
        for name, where in known.references.items():
            if item.get(name) is not None and not self._exists(where, item[name]):
                problems.append(f"{name}: Invalid pk - object does not exist.")
        if not problems and kind in _RULES:
            problems += _RULES[kind](self, item, old, number)
        key = [item[name] for name in known.unique]
        for other, each in self._items[kind].items():
            if known.unique and other != number and [each[name] for name in known.unique] == key:
                problems.append(f"{known.type} with this {', '.join(known.unique)} already exists.")
        if problems:
            raise Refused({"__all__": problems})
        if number is None:
            self._next += 1
            number = self._next
        self._items[kind][number] = item
        return number

    def _below(self, method: str, kind: str, number: int, below: str, data: Any) -> tuple[int, Any]:
        if below == "survey_spec" and KINDS[kind].surveyed:
            if method == "POST":
                if problems := rules.survey(data):
                    raise Refused({"error": "; ".join(problems)})
                self._surveys[kind, number] = data
            return 200, self._surveys.get((kind, number), {})
        if below == "create_approval_template" and kind == "workflow_job_template_nodes" and method == "POST":
            if problems := rules.approval(data):
                raise Refused({"__all__": problems})
            made = self._write("workflow_approval_templates", None, data)
            self._items[kind][number]["unified_job_template"] = made
            return 201, self._shown("workflow_approval_templates", made)
        if below not in KINDS[kind].lists:
            raise Missing
        members, where = self._lists[kind, number, below], KINDS[kind].lists[below]
        if method == "POST":
            self._associate(kind, number, below, data)
            return 204, None
        shown = [self._shown(where, member) for member in members]
        return 200, {"count": len(shown), "next": None, "previous": None, "results": shown}

    def _associate(self, kind: str, number: int, below: str, data: Any) -> None:
        members, where = self._lists[kind, number, below], KINDS[kind].lists[below]
        if data.get("disassociate"):
            members.remove(data["id"])
            return
        other = self._item(where, data["id"])
        if below == "credentials":
            types = [self._items["credentials"][each]["credential_type"] for each in (*members, data["id"])]
            self._refuse(rules.credentials(types))
        if below in LINKS:
            workflow = self._items[kind][number]["workflow_job_template"]
            if other["workflow_job_template"] != workflow:
                raise Refused({"error": "Workflows must be the same"})
            edges = {
                str(each): {str(after) for name in LINKS for after in self._lists[kind, each, name]}
                for each, item in self._items[kind].items()
                if item["workflow_job_template"] == workflow
            }
            edges[str(number)].add(str(data["id"]))
            self._refuse(rules.links(edges))
        members.append(data["id"])

    @staticmethod
    def _refuse(problems: list[str]) -> None:
        if problems:
            raise Refused({"error": "; ".join(problems)})

    def _kind(self, kind: str, number: int) -> str:
        if kind != "unified_job_templates":
            return kind
        return next((each for each in UNIFIED if number in self._items[each]), UNIFIED[0])

    def _exists(self, kind: str, number: int) -> bool:
        return number in self._items[self._kind(kind, number)]

    def _item(self, kind: str, number: int) -> Item:
        if not self._exists(kind, number):
            raise Missing
        return self._items[self._kind(kind, number)][number]

    def _shown(self, kind: str, number: int) -> Item:
        """An object as the API shows it: secrets are hidden, related addresses are named."""
        item = self._items[kind][number]
        url = f"/api/v2/{kind}/{number}/"
        related = {name: f"{url}{name}/" for name in KINDS[kind].lists}
        if KINDS[kind].surveyed:
            related["survey_spec"] = f"{url}survey_spec/"
        if kind == "workflow_job_template_nodes" and item["unified_job_template"] is not None:
            target = item["unified_job_template"]
            related["unified_job_template"] = f"/api/v2/{self._kind('unified_job_templates', target)}/{target}/"
        shown = {**item, "id": number, "type": KINDS[kind].type, "url": url, "related": related, "summary_fields": {}}
        if kind == "credentials":
            secret = {each["id"] for each in self._fields(item) if each.get("secret")}
            shown["inputs"] = {
                name: ENCRYPTED if name in secret and value else value for name, value in item["inputs"].items()
            }
        if kind == "projects":
            shown["scm_revision"] = ""
        if kind == "unified_job_templates" or kind == "workflow_approval_templates":
            shown["organization"] = None
        return shown

    def _fields(self, credential: Item) -> list[Item]:
        fields: list[Item] = self._items["credential_types"][credential["credential_type"]]["inputs"].get("fields", [])
        return fields

    # Rules for one kind

    def credential_type(self, item: Item, old: Item, number: int | None) -> list[str]:
        problems = rules.credential_type(item)
        if not problems:
            item["inputs"] = copy.deepcopy(item["inputs"])
            for each in item["inputs"].get("fields", []):
                each.setdefault("type", "string")
        used = any(each["credential_type"] == number for each in self._items["credentials"].values())
        if used and old["inputs"] != item["inputs"]:
            problems.append("Modifications to inputs are not allowed for credential types that are in use")
        return problems

    def credential(self, item: Item, old: Item, _number: int | None) -> list[str]:
        fields = self._fields(item)
        hidden = {
            name for name, value in item["inputs"].items() if value == ENCRYPTED and name in old.get("inputs", {})
        }
        item["inputs"] = {
            name: old["inputs"][name] if name in hidden else value for name, value in item["inputs"].items()
        }
        problems = rules.credential_inputs(item["inputs"], fields)
        item["inputs"] = injection.stored(item["inputs"], fields)
        return problems

    def project(self, item: Item, _old: Item, _number: int | None) -> list[str]:
        if item["scm_type"]:
            return [] if item["scm_url"] else ["scm_url: This field is required."]
        return [
            f"{name}: Update options must be set to false for manual projects."
            for name in ("scm_update_on_launch", "scm_clean")
            if item[name]
        ]

    def with_variables(self, item: Item, _old: Item, _number: int | None) -> list[str]:
        return rules.variables(item["variables"])

    def job_template(self, item: Item, _old: Item, _number: int | None) -> list[str]:
        # It belongs to its project's organization.
        item["organization"] = self._items["projects"][item["project"]]["organization"]
        problems = rules.variables(item["extra_vars"])
        if item["job_type"] not in ("run", "check"):
            problems.append(f'job_type: "{item["job_type"]}" is not a valid choice.')
        if item["playbook"] not in self.playbooks:
            problems.append("playbook: Playbook not found for project.")
        if item["inventory"] is None and not item["ask_inventory_on_launch"]:
            problems.append("inventory: Job Template must provide 'inventory' or allow prompting for it.")
        return problems

    def workflow(self, item: Item, _old: Item, _number: int | None) -> list[str]:
        return rules.variables(item["extra_vars"])

    def node(self, item: Item, _old: Item, _number: int | None) -> list[str]:
        target = item["unified_job_template"]
        template = self._item("unified_job_templates", target) if target is not None else None
        return rules.node(item, template)


_RULES: Mapping[str, Callable[[Controller, Item, Item, int | None], list[str]]] = {
    "credential_types": Controller.credential_type,
    "credentials": Controller.credential,
    "hosts": Controller.with_variables,
    "inventories": Controller.with_variables,
    "projects": Controller.project,
    "job_templates": Controller.job_template,
    "workflow_job_templates": Controller.workflow,
    "workflow_job_template_nodes": Controller.node,
}


@contextmanager
def serving(controller: Controller) -> Iterator[str]:
    """The address at which a controller answers, as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                status, answer = 401, {"detail": "Authentication credentials were not provided."}
            else:
                try:
                    data = json.loads(body) if body else None
                    status, answer = controller.answer(self.command, parts.path, parse_qsl(parts.query, True), data)
                except Refused as refused:
                    status, answer = 400, refused.args[0]
                except Missing:
                    status, answer = 404, {"detail": "Not found."}
            text = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.send_header("X-API-Product-Name", "AWX")
            self.send_header("X-API-Product-Version", VERSION)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_DELETE = _respond  # noqa: N815 - so the base class calls them

        def log_message(self, *_words: object) -> None:
            """Pytest's output is for pytest."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
