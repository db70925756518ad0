# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Profiles suggested for roles that are alike: which are found, which roles stay flat and why, and that nothing changes."""

from __future__ import annotations

import copy
import json
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.export.meaning import SameMeaning, same_meaning
from ansible_collections.pg_access.reconcile.plugins.module_utils.export.model import Inventory
from ansible_collections.pg_access.reconcile.plugins.module_utils.export.profiles import Suggestion, suggest
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy

TABLES = {"table": ("item", "log", "stock")}


class Site:
    """A database in the making: the flat manifest that an export would give, and what exists."""

    def __init__(self) -> None:
        self.objects: Dict[Tuple[str, str], frozenset[str]] = {}
        self.schemas: List[Dict[str, Any]] = []
        self.roles: List[Dict[str, Any]] = [{"name": "owner"}]
        self.grants: List[Dict[str, Any]] = []
        self.defaults: List[Dict[str, Any]] = []
        self.memberships: List[Dict[str, Any]] = []

    def schema(self, name: str, owner: str = "owner", **objects: Iterable[str]) -> str:
        """A schema, with three tables where nothing else is said."""
        self.schemas.append({"name": name, "owner": owner})
        for kind, labels in (objects or TABLES).items():
            self.objects[name, kind] = frozenset(labels)
        return name

    def role(self, name: str, schema: str, *privileges: str, usage: bool = True, **entry: Any) -> str:
        """A role with USAGE on the schema and privileges on all its tables."""
        self.roles.append({"name": name, **entry})
        if usage:
            self.grant(name, "schema", None, schema, "USAGE")
        if privileges:
            self.grant(name, "table", schema, "*", *privileges)
        return name

    def grant(self, role: str, kind: str, schema: Optional[str], name: str, *privileges: str, **more: Any) -> None:
        place = {"type": kind, "name": name} if schema is None else {"type": kind, "schema": schema, "name": name}
        self.grants.append({"role": role, "privileges": list(privileges), "object": place, **more})

    def default(self, role: str, schema: Optional[str], *privileges: str, owner: str = "owner") -> None:
        entry: Dict[str, Any] = {
            "owner": owner,
            "grant": [{"role": role, "privileges": list(privileges), "on_type": "table"}],
        }
        if schema is not None:
            entry["schema"] = schema
        self.defaults.append(entry)

    @property
    def manifest(self) -> Dict[str, Any]:
        sections = {
            "schemas": self.schemas,
            "roles": self.roles,
            "memberships": self.memberships,
            "grants": self.grants,
            "default_privileges": self.defaults,
        }
        return {name: section for name, section in sections.items() if section}

    @property
    def inventory(self) -> Inventory:
        return Inventory(self.objects, tuple(item["name"] for item in self.schemas))

    def suggested(self, min_schemas: int = 2) -> Suggestion:
        """The suggestion, once it is sure that it says the same, comes back unchanged and left its input alone."""
        manifest, before = self.manifest, copy.deepcopy(self.manifest)
        same = SameMeaning(self.inventory)
        found = suggest(manifest, self.inventory, min_schemas, same)
        assert manifest == before
        assert same_meaning(manifest, found.manifest, self.inventory)
        # The comparison is there in case of an error: what is alike needs none.
        assert suggest(manifest, self.inventory, min_schemas, lambda _one, _other: True) == found
        again = suggest(found.manifest, self.inventory, min_schemas, same)
        assert json.dumps(again) == json.dumps(found)
        return found

    def profiles(self, min_schemas: int = 2) -> Dict[str, List[str]]:
        """The schemas of each suggested profile."""
        manifest = self.suggested(min_schemas).manifest
        return {
            name: [item["name"] for item in manifest["schemas"] if name in item.get("profiles", ())]
            for name in manifest.get("profiles", {})
        }

    def reason(self, role: str) -> str:
        return dict(self.suggested().flat)[role]


def two(pattern: str = "{schema}_{profile}", profiles: Optional[Mapping[str, Tuple[str, ...]]] = None) -> Site:
    """Two schemas with roles that are alike."""
    site = Site()
    profiles = {"reader": ("SELECT",)} if profiles is None else profiles
    for schema in ("inventory", "orders"):
        site.schema(schema)
        for profile, privileges in profiles.items():
            site.role(pattern.replace("{schema}", schema).replace("{profile}", profile), schema, *privileges)
    return site


# ---- what is found ---------------------------------------------------------------------------------------------------


def test_roles_of_one_shape_become_a_profile() -> None:
    site = two()
    site.default("inventory_reader", "inventory", "SELECT")
    site.default("orders_reader", "orders", "SELECT")
    site.memberships.append({"role": "orders_reader", "members": [{"name": "owner"}]})
    assert site.suggested().manifest == {
        "profiles": {
            "reader": {
                "grants": [
                    {"privileges": ["USAGE"], "object": {"type": "schema"}},
                    {"privileges": ["SELECT"], "object": {"type": "table", "name": "*"}},
                ],
                "default_privileges": [{"privileges": ["SELECT"], "on_type": "table"}],
            }
        },
        "role_pattern": "{schema}_{profile}",
        "schemas": [
            {"name": "inventory", "owner": "owner", "profiles": ["reader"]},
            {"name": "orders", "owner": "owner", "profiles": ["reader"]},
        ],
        "roles": [{"name": "owner"}],
        "memberships": [{"role": "orders_reader", "members": [{"name": "owner"}]}],
    }
    assert site.suggested().flat == ()


@pytest.mark.parametrize(
    "pattern",
    [
        "{schema}_{profile}",
        "{profile}_{schema}",
        "app_{schema}_{profile}",
        "{schema}.{profile}",
        "{schema}{profile}",
        "{schema}_{profile}_role",
        "grp-{profile}-{schema}",
        "a b {schema}: {profile} (old)",
    ],
)
def test_patterns_are_found_in_names(pattern: str) -> None:
    found = two(pattern, {"reader": ("SELECT",), "editor": ("SELECT", "INSERT")}).suggested()
    assert found.manifest["role_pattern"] == pattern
    assert sorted(found.manifest["profiles"]) == ["editor", "reader"]
    assert found.flat == ()


def test_the_usual_pattern_is_not_written() -> None:
    assert "role_pattern" not in two("{schema}-{profile}").suggested().manifest


def test_one_schemas_name_in_anothers() -> None:
    site = Site()
    for schema in ("app", "app_x", "x"):
        site.schema(schema)
        site.role(f"{schema}_reader", schema, "SELECT")
    assert site.profiles() == {"reader": ["app", "app_x", "x"]}


def test_the_schemas_word_in_the_patterns_own_words() -> None:
    site = Site()
    for schema in ("app", "inventory"):
        site.schema(schema)
        site.role(f"app_{schema}_reader", schema, "SELECT")
    assert site.suggested().manifest["role_pattern"] == "app_{schema}_{profile}"


def test_a_schema_with_a_pattern_of_its_own() -> None:
    site = two(profiles={"reader": ("SELECT",), "editor": ("INSERT",)})
    site.schema("billing")
    site.role("reader.billing", "billing", "SELECT")
    found = site.suggested()
    assert found.manifest["role_pattern"] == "{schema}_{profile}"
    assert found.manifest["schemas"][2] == {
        "name": "billing", "owner": "owner", "profiles": ["reader"], "role_pattern": "{profile}.{schema}",
    }  # fmt: skip
    assert found.flat == ()


def test_a_profile_that_is_rare_in_each_pattern() -> None:
    site = two()
    site.role("inventory_editor", "inventory", "INSERT")
    site.schema("billing")
    site.role("reader.billing", "billing", "SELECT")
    site.role("editor.billing", "billing", "INSERT")
    assert site.profiles() == {"editor": ["inventory", "billing"], "reader": ["inventory", "orders", "billing"]}


def test_schemas_that_all_have_patterns_of_their_own() -> None:
    site = Site()
    for schema, name in (("inventory", "inventory-reader"), ("orders", "orders_reader"), ("billing", "reader.billing")):
        site.schema(schema)
        site.role(name, schema, "SELECT")
    found = site.suggested().manifest
    assert "role_pattern" not in found
    assert [item.get("role_pattern") for item in found["schemas"]] == [None, "{schema}_{profile}", "{profile}.{schema}"]
    assert site.profiles(4) == {}


def test_the_pattern_that_covers_most_roles_wins() -> None:
    site = two("{profile}_{schema}")
    for schema in ("a", "b", "c"):
        site.schema(schema)
        site.role(f"{schema}-writer", schema, "INSERT")
    manifest = site.suggested().manifest
    assert "role_pattern" not in manifest
    assert [item.get("role_pattern") for item in manifest["schemas"]] == ["{profile}_{schema}"] * 2 + [None] * 3


def test_as_many_schemas_as_asked_for() -> None:
    site = two()
    assert site.profiles(2) == {"reader": ["inventory", "orders"]}
    assert site.profiles(3) == {}
    assert two().suggested(3).manifest == two().manifest


# ---- what is the same shape ------------------------------------------------------------------------------------------


def test_all_objects_one_by_one_are_a_wildcard() -> None:
    site = two(profiles={"reader": ()})
    for name in ("item", "log", "stock"):
        site.grant("inventory_reader", "table", "inventory", name, "SELECT")
    site.grant("orders_reader", "table", "orders", "*", "SELECT")
    assert site.profiles() == {"reader": ["inventory", "orders"]}


def test_no_wildcard_while_one_object_is_left_out() -> None:
    site = two(profiles={"reader": ()})
    for schema in ("inventory", "orders"):
        for name in ("item", "log"):
            site.grant(f"{schema}_reader", "table", schema, name, "SELECT")
    grants = site.suggested().manifest["profiles"]["reader"]["grants"]
    assert [rule["object"].get("name") for rule in grants] == [None, "item", "log"]


def test_named_objects_have_to_be_the_same() -> None:
    site = two()
    site.grant("inventory_reader", "table", "inventory", "log", "INSERT")
    site.grant("orders_reader", "table", "orders", "item", "INSERT")
    assert site.profiles() == {}
    assert "privileges" in site.reason("orders_reader")


def test_named_objects_have_to_exist_in_every_schema() -> None:
    site = Site()
    site.schema("inventory", table=["item", "log"])
    site.schema("orders", view=["v", "w"])
    site.role("inventory_reader", "inventory")
    site.grant("inventory_reader", "table", "inventory", "log", "INSERT")
    site.role("orders_reader", "orders")
    assert site.profiles() == {}


def test_named_objects_have_to_exist_in_a_schema_that_was_looked_at_before() -> None:
    site = Site()
    site.schema("a", view=["v", "w"])
    site.schema("b", table=["item", "log"])
    site.role("a_reader", "a")
    site.role("b_reader", "b")
    site.grant("b_reader", "table", "b", "log", "INSERT")
    assert site.profiles() == {}


def test_a_grant_option_on_one_object_of_many() -> None:
    site = two()
    for schema in ("inventory", "orders"):
        site.grant(f"{schema}_reader", "table", schema, "log", "SELECT", with_grant_option=True)
    assert site.suggested().manifest["profiles"]["reader"]["grants"][2] == {
        "privileges": ["SELECT"], "object": {"type": "table", "name": "log"}, "with_grant_option": True,
    }  # fmt: skip


def test_a_named_object_beside_a_wildcard() -> None:
    site = two()
    for schema in ("inventory", "orders"):
        site.grant(f"{schema}_reader", "table", schema, "log", "INSERT", "SELECT")
    assert site.suggested().manifest["profiles"]["reader"]["grants"][1:] == [
        {"privileges": ["SELECT"], "object": {"type": "table", "name": "*"}},
        {"privileges": ["INSERT"], "object": {"type": "table", "name": "log"}},
    ]


def test_a_kind_that_the_schema_does_not_have_matches_anything() -> None:
    site = two()
    site.objects["inventory", "view"] = frozenset({"v", "w"})
    site.grant("inventory_reader", "view", "inventory", "*", "SELECT")
    site.schema("empty", sequence=())
    site.role("empty_reader", "empty")
    assert site.profiles() == {"reader": ["inventory", "orders", "empty"]}


def test_a_kind_that_the_schema_has_does_not() -> None:
    site = two()
    for schema in ("inventory", "orders"):
        site.objects[schema, "view"] = frozenset({"v", "w"})
    site.grant("inventory_reader", "view", "inventory", "*", "SELECT")
    assert site.profiles() == {}


def test_a_single_object_may_be_all_or_be_meant() -> None:
    site = two(profiles={"reader": ()})
    for schema in ("inventory", "orders"):
        site.grant(f"{schema}_reader", "table", schema, "log", "SELECT")
    for schema, table in (("small", "log"), ("other", "thing")):
        site.schema(schema, table=[table])
        site.role(f"{schema}_reader", schema)
        site.grant(f"{schema}_reader", "table", schema, table, "SELECT")
    assert site.profiles() == {"reader": ["inventory", "orders", "small"]}


def test_columns() -> None:
    site = two()
    for schema in ("inventory", "orders"):
        for column in ("price", "amount"):
            site.grant(f"{schema}_reader", "table", schema, "item", "UPDATE", columns=[column])
    assert site.suggested().manifest["profiles"]["reader"]["grants"][2] == {
        "privileges": ["UPDATE"], "columns": ["amount", "price"], "object": {"type": "table", "name": "item"},
    }  # fmt: skip


def test_grant_options_belong_to_the_shape() -> None:
    site = two(profiles={"reader": ("SELECT",), "lead": ()})
    for schema in ("inventory", "orders"):
        site.grant(f"{schema}_lead", "table", schema, "*", "SELECT", with_grant_option=True)
    grants = site.suggested().manifest["profiles"]["lead"]["grants"]
    assert grants[1]["with_grant_option"] is True
    site.grant("orders_reader", "table", "orders", "*", "SELECT", with_grant_option=True)
    assert list(site.profiles()) == ["lead"]
    assert site.reason("orders_reader").startswith("no other role has its shape")


def test_default_privileges_belong_to_the_shape() -> None:
    site = two()
    site.default("orders_reader", "orders", "SELECT")
    assert site.profiles() == {}


def test_attributes_that_a_profile_can_carry() -> None:
    site = Site()
    for schema in ("inventory", "orders"):
        site.schema(schema)
        site.role(f"{schema}_job", schema, "SELECT", login=True, inherit=False)
        site.role(f"{schema}_reader", schema, "SELECT", login=schema == "orders")
    found = site.suggested()
    assert list(found.manifest["profiles"]) == ["job"]
    assert found.manifest["profiles"]["job"]["login"] is True
    assert found.manifest["profiles"]["job"]["inherit"] is False


def test_settings_with_the_schemas_name_in_them() -> None:
    site = Site()
    for schema in ("inventory", "orders", "pg.weird,name"):
        path = f'"{schema}"' if "," in schema else schema
        site.schema(schema)
        config = {"search_path": f"{path}, public", "application_name": f"{schema}-job", "work_mem": "64MB"}
        site.role(f"{schema}_job", schema, "SELECT", config=config)
    assert site.suggested().manifest["profiles"]["job"]["config"] == {
        "application_name": "{schema}-job",
        "search_path": "{schema}, public",
        "work_mem": "64MB",
    }


def test_a_schemas_name_within_a_word_is_no_placeholder() -> None:
    site = Site()
    for schema in ("app", "orders"):
        site.schema(schema)
        site.role(f"{schema}_job", schema, "SELECT", config={"application_name": f"{schema}-apply"})
    assert site.suggested().manifest["profiles"]["job"]["config"] == {"application_name": "{schema}-apply"}


def test_settings_never_become_templates() -> None:
    site = Site()
    for schema in ("inventory", "orders"):
        site.schema(schema)
        site.role(f"{schema}_job", schema, "SELECT", config={"application_name": f"{{{schema}}}"})
    assert site.profiles() == {}
    assert site.reason("orders_job").startswith("no other role has its shape")


def test_settings_that_only_look_like_the_schemas_name() -> None:
    site = Site()
    for schema in ("public", "orders"):
        site.schema(schema)
        site.role(f"{schema}_job", schema, "SELECT", config={"search_path": "public"})
    assert site.suggested().manifest["profiles"]["job"]["config"] == {"search_path": "public"}


def test_settings_that_differ() -> None:
    site = Site()
    for schema, memory in (("inventory", "64MB"), ("orders", "1GB")):
        site.schema(schema)
        site.role(f"{schema}_job", schema, "SELECT", config={"work_mem": memory})
    assert site.profiles() == {}


# ---- what stays flat, and why ----------------------------------------------------------------------------------------


def flat_reasons() -> Iterable[Any]:
    def attribute(site: Site) -> None:
        site.roles[-1]["valid_until"] = "2031-01-01T00:00:00Z"

    def comment(site: Site) -> None:
        site.roles[-1]["comment"] = "Reads orders"

    def external(site: Site) -> None:
        site.roles[-1]["external"] = True

    def database(site: Site) -> None:
        site.grants.append({"role": "orders_reader", "privileges": ["CONNECT"], "object": {"type": "database"}})

    def other_schema(site: Site) -> None:
        site.grant("orders_reader", "table", "inventory", "log", "SELECT")

    def global_default(site: Site) -> None:
        site.default("orders_reader", None, "SELECT")

    def other_owner(site: Site) -> None:
        site.default("orders_reader", "orders", "SELECT", owner="inventory_reader")

    def owner(site: Site) -> None:
        site.schemas[0]["owner"] = "orders_reader"

    def taken(site: Site) -> None:
        site.grant("orders_reader", "table", "orders", "log", "INSERT", ensure="absent")

    def groups(site: Site) -> None:
        site.roles[-1]["member_of"] = ["owner"]

    def undeclared(site: Site) -> None:
        del site.schemas[1]

    def other_name(site: Site) -> None:
        for section in (site.roles, site.grants):
            for item in section:
                for key in ("name", "role"):
                    if item.get(key) == "orders_reader":
                        item[key] = "orderreader"

    def other_shape(site: Site) -> None:
        site.grant("orders_reader", "table", "orders", "*", "DELETE")

    def other_default(site: Site) -> None:
        site.default("orders_reader", "orders", "SELECT")

    yield other_default, "it differs from inventory_reader in its default privileges"
    yield attribute, "a profile cannot carry what it has: valid_until"
    yield comment, "a profile cannot carry what it has: comment"
    yield groups, "a profile cannot carry what it has: member_of"
    yield external, "someone else looks after it (external)"
    yield database, "it holds something outside of one schema: database (the connected one)"
    yield other_schema, "it holds something outside of one schema: schemas inventory, orders"
    yield global_default, "it holds something outside of one schema: default privileges of owner globally"
    yield other_owner, "it holds something outside of one schema: default privileges of inventory_reader in orders"
    yield owner, "it owns a schema, or default privileges of it are declared"
    yield taken, "a rule takes something away from it"
    yield undeclared, "the schema orders is not in schemas"
    yield other_name, "the name of its schema orders is not in its name"
    yield other_shape, "it differs from inventory_reader in its privileges on tables"


@pytest.mark.parametrize(("change", "reason"), [pytest.param(*case, id=case[0].__name__) for case in flat_reasons()])
def test_reasons(change: Any, reason: str) -> None:
    site = two()
    # Two more that keep the profile alive whatever becomes of the role.
    for schema in ("one", "two"):
        site.schema(schema)
        site.role(f"{schema}_reader", schema, "SELECT")
    site.roles.append(site.roles.pop(2))
    assert site.roles[-1]["name"] == "orders_reader"
    change(site)
    assert dict(site.suggested().flat).get("orders_reader", dict(site.suggested().flat).get("orderreader")) == reason
    assert site.profiles()["reader"][-2:] == ["one", "two"]
    with_role = [item["name"] for item in site.suggested().manifest["roles"]]
    assert "orders_reader" in with_role or "orderreader" in with_role


def test_roles_called_like_their_schemas() -> None:
    reason = "beside the name of its schema orders its name has nothing that could name a profile"
    assert two("{schema}").reason("orders") == reason
    assert two("_{schema}_").reason("_orders_") == reason


def test_a_role_alone_with_its_shape() -> None:
    site = two()
    site.role("orders_auditor", "orders", "SELECT", "TRIGGER")
    assert site.reason("orders_auditor").startswith("no other role has its shape: fewer than 2 schemas")


def test_a_role_whose_schema_names_the_others_differently() -> None:
    site = two()
    site.role("editor-inventory", "inventory", "INSERT")
    site.role("editor-orders", "orders", "INSERT")
    site.schema("third")
    site.role("third_reader", "third", "SELECT")
    assert site.reason("editor-orders") == "its schema orders names its other roles by the pattern {schema}_{profile}"


def test_roles_that_hold_nothing_in_a_schema_are_not_spoken_of() -> None:
    site = two()
    site.roles.append({"name": "orders_login", "login": True})
    site.grants.append({"role": "orders_login", "privileges": ["CONNECT"], "object": {"type": "database"}})
    assert site.suggested().flat == ()


def test_braces_in_names_are_no_placeholders() -> None:
    for name in ("{schema}_{{schema}}_x", "{{profile}}_{schema}_x", "{schema}_x_{{}}"):
        site = Site()
        for schema in ("inventory", "orders"):
            site.schema(schema)
            site.role(name.format(schema=schema), schema, "SELECT")
        assert site.suggested().manifest.get("profiles", {}).keys() <= {"x"}
    site = Site()
    for schema in ("{profile}", "{schema}"):
        site.schema(schema)
        site.role(f"{schema}_x", schema, "SELECT", config={"application_name": "{schema}", "search_path": schema})
    assert site.profiles() == {}


# ---- the real policy decides -----------------------------------------------------------------------------------------


def test_a_profile_that_would_mean_something_else_is_left_out_alone() -> None:
    profiles = {name: (privilege,) for name, privilege in (("a", "SELECT"), ("b", "INSERT"), ("c", "DELETE"))}
    site = two(profiles=profiles)
    same = SameMeaning(site.inventory)
    found = suggest(
        site.manifest, site.inventory, 2, lambda one, other: "b" not in other["profiles"] and same(one, other)
    )
    assert list(found.manifest["profiles"]) == ["a", "c"]
    assert found.flat == (
        ("inventory_b", "a profile for it would not mean exactly the same"),
        ("orders_b", "a profile for it would not mean exactly the same"),
    )
    assert same_meaning(site.manifest, found.manifest, site.inventory)


def test_nothing_is_suggested_where_nothing_means_the_same() -> None:
    site = two()
    assert suggest(site.manifest, site.inventory, 2, lambda _one, _other: False).manifest == site.manifest


def changed(site: Site, section: str, number: int, **keys: Any) -> Dict[str, Any]:
    manifest = copy.deepcopy(site.manifest)
    manifest[section][number].update(keys)
    return manifest


def test_the_same_meaning() -> None:
    site = two()
    site.memberships.append({"role": "orders_reader", "members": [{"name": "owner"}]})
    site.default("orders_reader", "orders", "SELECT")
    one, inventory = site.manifest, site.inventory
    assert same_meaning(one, copy.deepcopy(one), inventory)
    spelled = copy.deepcopy(one)
    rule = spelled["grants"].pop(1)
    for name in ("item", "log", "stock"):
        spelled["grants"].append({**rule, "object": {**rule["object"], "name": name}})
    assert same_meaning(one, spelled, inventory)
    del spelled["grants"][-1]
    assert not same_meaning(one, spelled, inventory)
    for other in (
        changed(site, "roles", 1, login=True),
        changed(site, "roles", 1, login=False),
        changed(site, "roles", 1, comment=""),
        changed(site, "roles", 1, config={}),
        changed(site, "roles", 1, external=True),
        changed(site, "roles", 1, privilege_reconciliation="additive"),
        changed(site, "roles", 1, member_of=[]),
        changed(site, "schemas", 1, owner=None),
        changed(site, "memberships", 0, exclusive=True),
        changed(site, "memberships", 0, members=[{"name": "owner", "admin": True}]),
        changed(site, "grants", 0, with_grant_option=True),
        changed(site, "grants", 0, ensure="absent"),
        changed(site, "grants", 0, role="nobody"),
        changed(site, "default_privileges", 0, owner="orders_reader"),
        {**one, "scope": {"schemas": ["o*"]}},
        {**one, "default_privileges": []},
        {**one, "default_owner": "owner"},
    ):
        assert same_meaning(one, other, inventory) == (other.get("default_owner") == "owner"), other


def test_a_named_rule_that_takes_beats_a_wildcard() -> None:
    site = two()
    site.grant("orders_reader", "table", "orders", "log", "SELECT", ensure="absent")
    assert not same_meaning(two().manifest, site.manifest, site.inventory)


# ---- order and time --------------------------------------------------------------------------------------------------


def test_the_order_of_the_sections_does_not_matter() -> None:
    site = two(profiles={"reader": ("SELECT",), "editor": ("SELECT", "INSERT")})
    forwards = site.suggested().manifest
    for section in (site.roles, site.grants, site.schemas):
        section.reverse()
    backwards = site.suggested().manifest
    assert json.dumps(forwards["profiles"]) == json.dumps(backwards["profiles"])
    assert forwards["schemas"] == backwards["schemas"][::-1]


def test_many_roles_take_no_square_of_time() -> None:
    def seconds(schemas: int) -> float:
        site = Site()
        for number in range(schemas):
            schema = site.schema(f"s{number:04}", table=[f"t{index}" for index in range(20)])
            for profile, privilege in (("reader", "SELECT"), ("editor", "INSERT"), ("admin", "TRUNCATE")):
                site.role(f"{schema}_{profile}", schema, privilege)
            # One that is like no other.
            site.role(f"{schema}_odd", schema)
            site.grant(f"{schema}_odd", "table", schema, "t1", "SELECT", columns=[f"c{number}"])
        start = time.process_time()
        found = suggest(site.manifest, site.inventory, 2, SameMeaning(site.inventory))
        assert len(found.manifest["profiles"]) == 3
        assert len(found.flat) == schemas
        return time.process_time() - start

    seconds(10)
    assert seconds(400) < 12 * seconds(100)


def test_the_suggestion_is_a_valid_manifest() -> None:
    policy = manifest_to_policy(two().suggested().manifest)
    assert {name for name, role in policy.roles.items() if role.generated} == {"inventory_reader", "orders_reader"}
