# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random manifests with profiles, written flat, and profiles suggested for them. No server is needed.

What a manifest means is worked out here from the policy, not by the code that is tested.
"""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import assume, given, note
from hypothesis import strategies as st
from test_properties import examples
from test_properties_units import room

Raw: TypeAlias = dict[str, Any]
Objects: TypeAlias = dict[tuple[str, str], frozenset[str]]

SCHEMAS = ["app", "app_x", "inventory", "Sch.ema", "x", "ü-1", "{profile}", "or ders"]
PROFILES = ["reader", "editor", "read_only", "Dbä"]
PATTERNS = [
    "{schema}-{profile}", "{schema}_{profile}", "{profile}_{schema}", "app_{schema}_{profile}", "{schema}.{profile}",
    "{schema} {profile} role", "grp-{profile}-of-{schema}", "{schema}{profile}",
]  # fmt: skip
#: What exists is some of these.
LABELS = {"table": ["item", "log", "t"], "view": ["v", "w"], "function": ["f(integer)", "g()"], "sequence": ["s1"]}
PRIVILEGES = {
    "schema": ["USAGE", "CREATE"], "table": ["SELECT", "INSERT", "DELETE"], "view": ["SELECT"],
    "function": ["EXECUTE"], "sequence": ["USAGE", "UPDATE"],
}  # fmt: skip


@dataclass
class Example:
    """A manifest with profiles, what exists, and rules for single roles that spoil some of their shapes."""

    manifest: Raw
    objects: Objects
    spoilt: list[Raw]
    least: int


@st.composite
def profiles(draw: st.DrawFn) -> Raw:
    """One profile."""
    grants: list[Raw] = []
    for kind in draw(st.lists(st.sampled_from(sorted(PRIVILEGES)), min_size=1, max_size=4, unique=True)):
        target: Raw = {"type": kind}
        if kind != "schema":
            target["name"] = draw(st.sampled_from(["*", "*", *LABELS[kind]]))
        rule: Raw = {"privileges": draw(some(PRIVILEGES[kind])), "object": target}
        if draw(st.integers(0, 4)) == 0:
            rule["with_grant_option"] = True
        if kind == "table" and target["name"] != "*" and draw(st.booleans()):
            rule.update(privileges=draw(some(["SELECT", "UPDATE"])), columns=draw(some(["id", "name"])))
        grants.append(rule)
    found: Raw = {"grants": grants}
    if draw(st.booleans()):
        found["default_privileges"] = [{"privileges": draw(some(PRIVILEGES["table"])), "on_type": "table"}]
    if draw(st.integers(0, 3)) == 0:
        found["login"] = True
    if draw(st.integers(0, 3)) == 0:
        found["config"] = {"search_path": draw(st.sampled_from(['"{schema}", public', "public", '"x,{schema}"']))}
    return found


def generated(manifest: Raw) -> list[str]:
    """The names of the roles that the profiles make."""
    return [
        room("policy").filled(item.get("role_pattern", manifest["role_pattern"]), item["name"], profile)
        for item in manifest["schemas"]
        for profile in item["profiles"]
    ]


def some(choices: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(choices), min_size=1, unique=True)


@st.composite
def cases(draw: st.DrawFn, clean: bool = False) -> Example:
    """``clean``: every kind has several objects in every schema, and nothing is spoilt."""
    names = draw(st.lists(st.sampled_from(SCHEMAS), min_size=2, max_size=4, unique=True))
    chosen = draw(st.lists(st.sampled_from(PROFILES), min_size=1, max_size=3, unique=True))
    objects: Objects = {}
    for schema in names:
        for kind, labels in LABELS.items():
            more = ["h()", "i(text)"] if kind == "function" else [f"{kind} 1", f"{kind} 2"]
            few = st.just([*labels, *more]) if clean else st.lists(st.sampled_from(labels), unique=True)
            objects[schema, kind] = frozenset(draw(few))
    schemas: list[Raw] = [
        {
            "name": schema,
            "owner": draw(st.sampled_from(["own", "Own 2"])),
            "profiles": chosen if clean else draw(some(chosen)),
        }
        for schema in names
    ]
    manifest = {
        "role_pattern": draw(st.sampled_from(PATTERNS)),
        "profiles": {name: draw(profiles()) for name in chosen},
        "schemas": schemas,
        "roles": [{"name": "own"}, {"name": "Own 2", "login": True}],
    }
    if not clean and draw(st.integers(0, 2)) == 0:
        for entry in draw(st.lists(st.sampled_from(schemas), unique_by=id)):
            entry["role_pattern"] = draw(st.sampled_from(PATTERNS))
    spoilt: list[Raw] = []
    for _number in range(0 if clean else draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["table", "schema", "database"]))
        spoilt.append(
            {
                "schema": draw(st.integers(0, 3)),
                "role": draw(st.integers(0, 3)),
                "kind": kind,
                "privilege": draw(st.sampled_from(["CONNECT"] if kind == "database" else PRIVILEGES[kind])),
                "attribute": draw(
                    st.sampled_from([{}, {}, {"login": True}, {"connection_limit": 3}, {"inherit": False}])
                ),
            }
        )
    # Two ways to one role's name are an error.
    assume(len(set(generated(manifest))) == len(generated(manifest)))
    return Example(manifest, objects, spoilt, 2 if clean else draw(st.integers(1, 3)))


# ---- what manifests mean ---------------------------------------------------------------------------------------------


def meaning(raw: Raw, objects: Objects) -> Raw:
    """The facts that the policy makes of the manifest, with rules spelled out for each object. Names that do not exist
    are left out.
    """
    policy = room("policy").manifest_to_policy(copy.deepcopy(raw))
    entries: dict[Any, bool] = {}
    for rule in policy.rules:
        assert rule.present
        here = objects.get((rule.schema, rule.kind), frozenset())
        labels = (
            [rule.name] if rule.schema is None else sorted(here) if rule.name == "*" else sorted({rule.name} & here)
        )
        for label in labels:
            for column in rule.columns or (None,):
                for privilege in rule.privileges:
                    key = (rule.role, rule.kind, rule.schema, label, column, privilege)
                    entries[key] = rule.with_grant_option or entries.get(key, False)
    return {
        "entries": entries,
        "roles": {
            role.name: (role.external, role.comment, role.config, dict(role.attributes))
            for role in policy.roles.values()
        },
        "edges": {(edge.group, edge.member, edge.admin) for edge in policy.edges.values()},
        "schemas": {(schema.name, schema.owner, schema.create_owner) for schema in policy.schemas.values()},
        "defaults": {
            (rule.owner, rule.schema, rule.kind, rule.role, privilege, rule.with_grant_option)
            for rule in policy.default_rules
            for privilege in rule.privileges
        },
    }


def flat_form(case: Example) -> Raw:
    """The manifest as an export would write it: without profiles, wildcards where all of at least two objects are meant."""
    found = meaning(case.manifest, case.objects)
    held: dict[Any, dict[str, bool]] = defaultdict(dict)
    for (role, kind, schema, label, column, privilege), option in found["entries"].items():
        held[role, kind, schema, column, privilege, option][label] = True
    grants = []
    for (role, kind, schema, column, privilege, option), labels in held.items():
        every = schema is not None and column is None and len(labels) > 1 and set(labels) == case.objects[schema, kind]
        for label in ["*"] if every else sorted(labels):
            target = (
                {"type": kind, "name": label} if schema is None else {"type": kind, "schema": schema, "name": label}
            )
            rule: Raw = {"role": role, "privileges": [privilege], "object": target}
            grants.append(
                {**rule, **({"columns": [column]} if column else {}), **({"with_grant_option": True} if option else {})}
            )
    settings = room("manifest.settings")
    roles = []
    for name, (_external, _comment, config, attributes) in sorted(found["roles"].items()):
        entry = {"name": name, **{key: value for key, value in attributes.items() if value is not None}}
        if config is not None:
            entry["config"] = {key: settings.shown(key, value) for key, value in config.items()}
        roles.append(entry)
    raw: Raw = {
        "schemas": [{"name": name, "owner": owner} for name, owner, _create in sorted(found["schemas"])],
        "roles": roles,
        "grants": grants,
        "default_privileges": [
            {
                "owner": owner,
                "schema": schema,
                "grant": [{"role": role, "privileges": [privilege], "on_type": kind, **({"with_grant_option": True} if option else {})}],
            }
            for owner, schema, kind, role, privilege, option in sorted(found["defaults"])
        ],
    }  # fmt: skip
    for number, spoil in enumerate(case.spoilt):
        role = roles[spoil["role"] % len(roles)]
        role.update(spoil["attribute"])
        schema = raw["schemas"][spoil["schema"] % len(raw["schemas"])]["name"]
        tables = sorted(case.objects[schema, "table"])
        target = {"type": spoil["kind"]}
        if spoil["kind"] == "table" and tables:
            target.update(schema=schema, name=tables[number % len(tables)])
        elif spoil["kind"] != "database":
            target.update(type="schema", name=schema)
        if target["type"] == "schema" and spoil["privilege"] not in PRIVILEGES["schema"]:
            continue
        grants.append({"role": role["name"], "privileges": [spoil["privilege"]], "object": target})
    if roles[0]["name"] != roles[-1]["name"]:
        raw["memberships"] = [{"role": roles[0]["name"], "members": [{"name": roles[-1]["name"]}]}]
    return {key: value for key, value in raw.items() if value}


def suggested(raw: Raw, case: Example) -> Any:
    inventory = room("export.model").Inventory(case.objects, tuple(item["name"] for item in raw["schemas"]))
    same = room("export.meaning").SameMeaning(inventory)
    return room("export.profiles").suggest(raw, inventory, case.least, same)


# ---- the properties --------------------------------------------------------------------------------------------------


@examples(8)
@given(cases())
def test_what_is_suggested_means_the_same(case: Example) -> None:
    raw = flat_form(case)
    note(json.dumps(raw, indent=1))
    found = suggested(raw, case)
    note(json.dumps(found.manifest, indent=1))
    assert meaning(found.manifest, case.objects) == meaning(raw, case.objects)
    for name in found.manifest.get("profiles", {}):
        assert sum(name in item.get("profiles", ()) for item in found.manifest["schemas"]) >= case.least


@examples(8)
@given(cases())
def test_a_suggestion_comes_back_unchanged(case: Example) -> None:
    raw = flat_form(case)
    once = suggested(raw, case)
    note(json.dumps(once.manifest, indent=1))
    again = suggested(copy.deepcopy(once.manifest), case)
    assert json.dumps(again) == json.dumps(once)
    # And so does one that was written flat by somebody else in between.
    between = flat_form(Example(once.manifest, case.objects, [], case.least))
    assert suggested(between, case).manifest.get("profiles") == once.manifest.get("profiles")


@examples(8)
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_a_manifest_does_not_matter(case: Example, random: Any) -> None:
    raw = flat_form(case)
    mixed = copy.deepcopy(raw)
    for section in mixed.values():
        random.shuffle(section)
    one, other = suggested(raw, case), suggested(mixed, case)
    assert json.dumps(one.manifest.get("profiles")) == json.dumps(other.manifest.get("profiles"))
    assert one.manifest.get("role_pattern") == other.manifest.get("role_pattern")
    assert one.flat == other.flat


@examples(8)
@given(cases())
def test_every_role_with_privileges_in_a_schema_has_a_profile_or_a_reason(case: Example) -> None:
    raw = flat_form(case)
    found = suggested(raw, case)
    left = {entry["name"] for entry in found.manifest["roles"]}
    holders = {rule["role"] for rule in raw.get("grants", ()) if rule["object"]["type"] != "database"}
    holders |= {item["role"] for entry in raw.get("default_privileges", ()) for item in entry["grant"]}
    assert {flat.role for flat in found.flat} == holders & left
    assert all(flat.reason for flat in found.flat)


@examples(8)
@given(cases())
def test_what_is_alike_needs_no_second_look(case: Example) -> None:
    """The comparison of meanings is there in case of an error: without it the suggestion is the same."""
    raw = flat_form(case)
    inventory = room("export.model").Inventory(case.objects, ())
    unchecked = room("export.profiles").suggest(raw, inventory, case.least, lambda _one, _other: True)
    assert unchecked == suggested(raw, case)


@examples(8)
@given(cases(clean=True))
def test_profiles_are_found_again(case: Example) -> None:
    raw = flat_form(case)
    note(json.dumps(raw, indent=1))
    found = suggested(raw, case)
    note(json.dumps(found.manifest, indent=1))
    note(str(found.flat))
    assert {entry["name"] for entry in found.manifest["roles"]} == {"own", "Own 2"}
    # Roles that hold nothing have no profile; here all hold something.
    assert len(found.manifest["profiles"]) == len(case.manifest["profiles"])
