# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""community.postgresql: a playbook with a loop for each sort of thing, as its users write it.

It has one module run for each item, which makes it slow, so a part of the items is timed: of each sort as many as it
has of the whole.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from scenario import PROFILES, Scenario

from rivals.fetching import Unavailable, environment, run, version_of
from rivals.protocol import Command, Target

#: So many items are timed.
SAMPLE = 60

_PLAYBOOK, _EMPTY = "roles.yml", "empty.yml"

_MODULES = "community.postgresql"


@dataclass(frozen=True)
class Items:
    """What the playbook loops over."""

    groups: list[str]
    logins: list[str]
    memberships: list[dict[str, Any]]
    privileges: list[dict[str, str]]

    @property
    def count(self) -> int:
        return len(self.groups) + len(self.logins) + len(self.memberships) + len(self.privileges)

    def sample(self, size: int) -> Items:
        """The first items of each sort, as many as its share of `size` says, without the roles that are not there."""
        groups, logins, memberships, privileges = _shares(
            [len(self.groups), len(self.logins), len(self.memberships), len(self.privileges)], size
        )
        there = {*self.groups[:groups], *self.logins[:logins]}
        return Items(
            self.groups[:groups],
            self.logins[:logins],
            [
                {**item, "members": [member for member in item["members"] if member in there]}
                for item in self.memberships[:memberships]
            ],
            [
                {**item, "roles": ",".join(role for role in item["roles"].split(",") if role in there)}
                for item in self.privileges[:privileges]
            ],
        )


def _shares(counts: list[int], size: int) -> list[int]:
    """Split `size` in the proportion of `counts`; what is left over goes to the largest remainders."""
    total = sum(counts)
    shares = [size * count // total for count in counts]
    by_remainder = sorted(range(len(counts)), key=lambda place: -(size * counts[place] % total))
    for place in by_remainder[: size - sum(shares)]:
        shares[place] += 1
    return shares


def all_items(scenario: Scenario) -> Items:
    """As few items as the modules' options permit: every role that gets the same is named in one item.

    A form that covers all tables of a schema covers its views, so what only tables get names the tables.
    """
    members: dict[str, list[str]] = {role: [] for role in scenario.profile_roles}
    for number, login in enumerate(scenario.logins):
        for group in scenario.groups_of(number):
            members[group].append(login)
    tables = ",".join(f"t{number}" for number in range(1, scenario.tables + 1))
    privileges = []
    for schema in scenario.schema_names:
        reader, editor, app = (f"{schema}-{profile}" for profile in PROFILES)
        for kind, objects, names, roles in (
            ("schema", schema, "USAGE", [reader, editor, app]),
            ("table", "ALL_IN_SCHEMA", "SELECT", [reader, editor, app]),
            ("table", tables, "INSERT,UPDATE", [editor, app]),
            ("table", tables, "DELETE", [editor]),
            ("sequence", "ALL_IN_SCHEMA", "USAGE", [editor, app]),
            ("sequence", "ALL_IN_SCHEMA", "SELECT", [editor]),
            ("function", "ALL_IN_SCHEMA", "EXECUTE", [reader, editor, app]),
        ):
            item = {"type": kind, "objs": objects, "privs": names, "roles": ",".join(roles)}
            privileges.append(item if kind == "schema" else {**item, "schema": schema})
    return Items(
        scenario.profile_roles,
        scenario.logins,
        [{"group": group, "members": logins} for group, logins in members.items() if logins],
        privileges,
    )


def playbook(items: Items, target: Target, python: str) -> list[dict[str, Any]]:
    """The play. Everything runs where the playbook runs, and no facts are gathered."""
    connection = {
        "login_unix_socket": target.host,
        "login_port": target.port,
        "login_user": target.user,
        "login_db": target.database,
    }

    def task(title: str, module: str, loop: list[Any], **options: str) -> dict[str, Any]:
        # The label keeps the output as short as users have it.
        return {
            "name": title,
            f"{_MODULES}.{module}": options,
            "loop": loop,
            "loop_control": {"label": "{{ item.objs | default(item.group) | default(item) | truncate(40) }}"},
        }

    return [
        {
            "name": "Roles and privileges",
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "vars": {"ansible_python_interpreter": python},
            "module_defaults": {
                f"{_MODULES}.{module}": connection
                for module in ("postgresql_user", "postgresql_membership", "postgresql_privs")
            },
            "tasks": [
                task("Groups", "postgresql_user", items.groups, name="{{ item }}", role_attr_flags="NOLOGIN"),
                task("Logins", "postgresql_user", items.logins, name="{{ item }}", role_attr_flags="LOGIN"),
                task(
                    "Memberships",
                    "postgresql_membership",
                    items.memberships,
                    groups="{{ item.group }}",
                    target_roles="{{ item.members }}",
                ),
                task(
                    "Privileges",
                    "postgresql_privs",
                    items.privileges,
                    type="{{ item.type }}",
                    schema="{{ item.schema | default(omit) }}",
                    objs="{{ item.objs }}",
                    privs="{{ item.privs }}",
                    roles="{{ item.roles }}",
                ),
            ],
        }
    ]


class CommunityPostgresql:
    name = "community.postgresql"
    note = ""

    def __init__(self, sample: int | None = SAMPLE) -> None:
        """`sample`: how many items are run; None means all of them."""
        self.sample = sample
        self.why = ""
        self._programs = Path()
        self._start = 0.0
        if sample is not None:
            self.note = f"Timed on {sample} items, a mix in the proportion of the whole, and scaled."

    def install(self, folder: Path) -> str | None:
        try:
            # The package `ansible` holds every collection; of what it depends on, only ansible-core is needed.
            self._programs = environment(
                folder / "community.postgresql", ["ansible-core", "psycopg[binary]"], ["--no-deps", "ansible"]
            )
            script = (
                "import importlib.util, json, pathlib\n"
                "place = pathlib.Path(importlib.util.find_spec('ansible_collections').submodule_search_locations[0])\n"
                "manifest = json.loads((place / 'community' / 'postgresql' / 'MANIFEST.json').read_text())\n"
                "print(manifest['collection_info']['version'])"
            )
            question = "The question for the collection's version"
            version = run(question, self._programs / "python", "-c", script).strip()
            core = version_of(self._programs, "ansible-core")
        except Unavailable as failure:
            self.why = f"{failure}."
            return None
        return f"{version} (ansible-core {core})"

    def write(self, scenario: Scenario, target: Target) -> None:
        items = all_items(scenario)
        play = playbook(self._part(items), target, str(self._programs / "python"))
        (target.work / _PLAYBOOK).write_text(yaml.safe_dump(play, sort_keys=False))
        for task in play[0]["tasks"]:
            task["loop"] = []
        (target.work / _EMPTY).write_text(yaml.safe_dump(play, sort_keys=False))
        if self.sample is not None:
            self._start = self._seconds(self._command(target, _EMPTY))

    def idle(self, scenario: Scenario, target: Target) -> Command:
        return self.apply(scenario, target)

    def plan(self, scenario: Scenario, target: Target) -> None:
        """Check mode fails at the first membership in a role that is only to be made."""

    def apply(self, scenario: Scenario, target: Target) -> Command:
        if self.sample is None:
            return self._command(target, _PLAYBOOK)
        items = all_items(scenario)
        part = self._part(items).count
        return self._command(
            target,
            _PLAYBOOK,
            scale=items.count / part,
            fixed=self._start,
            items=part,
            check_end_state=part == items.count,
        )

    def _part(self, items: Items) -> Items:
        return items if self.sample is None else items.sample(min(self.sample, items.count))

    def _command(self, target: Target, playbook_file: str, **more: Any) -> Command:
        variables = {
            "HOME": str(target.work),
            "ANSIBLE_HOME": str(target.work / "ansible"),
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "0",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0",
            "LC_ALL": "C.UTF-8",
        }
        return Command([str(self._programs / "ansible-playbook"), playbook_file], variables, target.work, **more)

    def _seconds(self, command: Command) -> float:
        """How long a run without items takes."""
        start = time.monotonic()
        run(
            "A playbook without items",
            *command.arguments,
            cwd=command.cwd,
            environment={**os.environ, **command.environment},
        )
        return time.monotonic() - start
