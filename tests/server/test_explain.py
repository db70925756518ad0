# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``explain`` says: which way a privilege comes, what in the manifest stands behind it, what the plan does to it.

That it is all of what a role has, and nothing else, is what test_explain_property.py is about.
"""

from __future__ import annotations

from typing import Any

import pytest
from explain_support import MANIFEST, WITH_LEGACY
from harness import UNCONNECTED, Database, Result


def items(result: Result, role: str, kind: str, name: str | None = None, **wanted: Any) -> list[dict[str, Any]]:
    """What is said of a role and a kind of object, or one of this name."""
    return [
        item
        for item in result.explain
        if item["role"] == role
        and item["object"]["type"] == kind
        and (name is None or item["object"]["name"] == name)
        and all(item[key] == value for key, value in wanted.items())
    ]


def one(result: Result, role: str, kind: str, name: str | None = None, **wanted: Any) -> dict[str, Any]:
    found = items(result, role, kind, name, **wanted)
    assert len(found) == 1, found or result.explain
    return found[0]


@pytest.fixture
def inventory(db: Database) -> Database:
    db.sql("CREATE ROLE owner; CREATE SCHEMA inventory AUTHORIZATION owner")
    db.sql("CREATE TABLE inventory.orders (id int, note text); ALTER TABLE inventory.orders OWNER TO owner")
    return db


def test_the_whole_path_of_memberships_and_the_rule_are_said(inventory: Database) -> None:
    inventory.converge(MANIFEST)
    result = inventory.converge(MANIFEST, explain=["app"])
    assert one(result, "app", "table", privilege="SELECT") == {
        "role": "app",
        "object": {"type": "table", "schema": "inventory", "name": "orders", "columns": []},
        "objects": ["orders"],
        "count": 1,
        "privilege": "SELECT",
        "grant_option": False,
        "grantor": "owner",
        "how": "group",
        "via": ["team", "inventory-editor"],
        "set_role": None,
        "because": "declared",
        "rule": "profiles.editor.grants[1] for inventory-editor",
        "plan": "unchanged",
    }
    member = one(result, "app", "role", "inventory-editor", privilege="INHERIT")
    assert (member["via"], member["rule"]) == (["team"], "memberships[0].members[0]")
    assert one(result, "app", "role", "team", privilege="INHERIT")["rule"] == "memberships[1].members[0]"


def test_the_check_run_says_what_the_plan_gives_and_the_run_the_same(inventory: Database) -> None:
    predicted = inventory.reconcile(MANIFEST, check=True, explain=["app", "inventory-editor"])
    assert {item["plan"] for item in items(predicted, "app", "table")} == {"gained"}
    assert {item["privilege"] for item in items(predicted, "inventory-editor", "table")} == {"SELECT", "INSERT"}
    result = inventory.converge(MANIFEST, explain=["app", "inventory-editor"])
    assert result.explain == predicted.explain


@pytest.mark.versions(max=15)
def test_until_15_the_role_itself_decides_whether_it_inherits(inventory: Database) -> None:
    manifest = MANIFEST.replace("{name: app, login: true}", "{name: app, login: true, inherit: false}")
    result = inventory.converge(manifest, explain=["app"])
    found = one(result, "app", "table", privilege="SELECT")
    assert (found["via"], found["set_role"]) == (["team", "inventory-editor"], "team")
    assert not items(result, "app", "role", privilege="INHERIT")
    assert {name for item in items(result, "app", "role", privilege="SET") for name in item["objects"]} == {
        "team",
        "inventory-editor",
    }


@pytest.mark.versions(min=16)
def test_from_16_on_the_membership_decides_whether_it_is_inherited(inventory: Database) -> None:
    manifest = MANIFEST.replace("members: [{name: team}]", "members: [{name: team, inherit: false}]")
    result = inventory.converge(manifest, explain=["app", "team"])
    assert one(result, "app", "table", privilege="SELECT")["set_role"] == "inventory-editor"
    assert items(result, "app", "role", "team", privilege="INHERIT")
    no_set = manifest.replace("inherit: false", "inherit: false, set: false")
    result = inventory.converge(no_set, explain=["app", "team"])
    assert {item["plan"] for item in items(result, "app", "table")} == {"lost"}
    lost = one(result, "team", "role", "inventory-editor", privilege="SET")
    assert (lost["plan"], lost["because"], lost["rule"]) == ("lost", "membership", "memberships[0].members[0]")
    assert one(result, "team", "role", "inventory-editor", privilege="MEMBER")["plan"] == "gained"


def test_what_the_plan_takes_is_there_with_what_takes_it(inventory: Database) -> None:
    inventory.sql("CREATE ROLE legacy; GRANT DELETE, SELECT ON inventory.orders TO legacy")
    inventory.sql("CREATE ROLE old; GRANT old TO legacy; GRANT UPDATE ON inventory.orders TO old")
    manifest = MANIFEST + "  - {role: old, exclusive: true}\n"
    manifest = manifest.replace("{name: owner}", "{name: owner}\n  - {name: legacy}\n  - {name: old}")
    manifest += (
        "grants:\n  - {role: legacy, privileges: [SELECT], ensure: absent,"
        " object: {type: table, schema: inventory, name: orders}}\n"
        "  - {role: old, privileges: [UPDATE], object: {type: table, schema: inventory, name: orders}}\n"
    )
    result = inventory.converge(manifest, explain=["legacy"])
    found = {item["privilege"]: item for item in items(result, "legacy", "table")}
    assert {item["plan"] for item in found.values()} == {"lost"}
    assert (found["DELETE"]["because"], found["DELETE"]["rule"]) == ("surplus", "schemas[0]")
    assert (found["SELECT"]["because"], found["SELECT"]["rule"]) == ("absent", "grants[0]")
    assert (found["UPDATE"]["because"], found["UPDATE"]["rule"]) == ("membership", "memberships[2]")
    assert one(result, "legacy", "role", "old", privilege="INHERIT")["plan"] == "lost"


def test_why_something_undeclared_stays_is_said(inventory: Database) -> None:
    inventory.sql("CREATE ROLE legacy; GRANT DELETE ON inventory.orders TO legacy")
    inventory.sql("CREATE ROLE team; GRANT TRUNCATE ON inventory.orders TO team")
    kept = WITH_LEGACY
    result = inventory.converge(kept, explain=["legacy"])
    found = one(result, "legacy", "table")
    assert (found["because"], found["rule"]) == ("kept", "roles[1].privilege_reconciliation: additive")
    inventory.sql('GRANT TRUNCATE ON inventory.orders TO team; GRANT UPDATE ON inventory.orders TO "inventory-editor"')
    result = inventory.converge(kept, explain=["team"], reconciliation_mode="additive")
    found = one(result, "team", "table", privilege="TRUNCATE")
    assert (found["because"], found["rule"], found["how"]) == ("withheld", "mode", "direct")
    # A default privilege permits it on what exists.
    result = inventory.converge(kept, explain=["team"])
    found = one(result, "team", "table", privilege="UPDATE")
    assert (found["because"], found["rule"]) == (
        "permitted",
        "profiles.editor.default_privileges[0] for inventory-editor",
    )


def test_owner_public_and_superuser_are_said(inventory: Database) -> None:
    inventory.sql("CREATE ROLE deputy; CREATE ROLE root SUPERUSER; CREATE ROLE climber")
    inventory.sql("GRANT owner TO deputy; GRANT root TO climber")
    inventory.sql("CREATE FUNCTION inventory.f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    roles = "".join(f"\n  - {{name: {name}, external: true}}" for name in ("deputy", "root", "climber"))
    manifest = MANIFEST.replace("{name: owner}", "{name: owner, external: true}" + roles)
    manifest += "  - {role: owner, members: [{name: deputy}]}\n  - {role: root, members: [{name: climber}]}\n"
    asked = ["deputy", "root", "climber", "public"]
    result = inventory.converge(manifest, explain=asked)
    owned = one(result, "deputy", "table", privilege="OWNER")
    assert (owned["how"], owned["via"]) == ("owner", ["owner"])
    deleted = one(result, "deputy", "table", privilege="DELETE")
    assert (deleted["how"], deleted["because"], deleted["grant_option"]) == ("owner", "owner", True)
    everybody = one(result, "deputy", "function", privilege="EXECUTE")
    assert (everybody["how"], everybody["via"], everybody["because"]) == ("public", ["PUBLIC"], "unmanaged")
    assert one(result, "PUBLIC", "function", privilege="EXECUTE")["via"] == []
    all_of_it = one(result, "root", "*")
    assert (all_of_it["how"], all_of_it["privilege"], all_of_it["set_role"]) == ("superuser", "ALL", None)
    # Nobody inherits being a superuser.
    climbed = one(result, "climber", "*")
    assert (climbed["how"], climbed["via"], climbed["set_role"]) == ("superuser", ["root"], "root")


def test_predefined_roles_are_said_to_reach_everything(inventory: Database) -> None:
    manifest = MANIFEST + "  - {role: pg_read_all_data, members: [{name: app}]}\n"
    result = inventory.converge(manifest, explain=["app"])
    found = one(result, "app", "table", "*", privilege="SELECT")
    assert found["object"] == {"type": "table", "schema": None, "name": "*", "columns": []}
    assert (found["how"], found["via"], found["rule"]) == (
        "predefined",
        ["pg_read_all_data"],
        "memberships[2].members[0]",
    )
    assert one(result, "app", "schema", "*", privilege="USAGE")["how"] == "predefined"


def test_schemas_that_nothing_makes_managed_are_explained_too(inventory: Database) -> None:
    inventory.sql("CREATE SCHEMA other; CREATE TABLE other.t (a int, b int)")
    inventory.sql("CREATE ROLE app; GRANT SELECT ON other.t TO app; GRANT UPDATE (b, a) ON other.t TO app")
    result = inventory.converge(MANIFEST, explain=["app"])
    found = one(result, "app", "table", "t", privilege="SELECT")
    assert (found["object"]["schema"], found["because"], found["rule"]) == ("other", "unmanaged", None)
    assert one(result, "app", "table", "t", privilege="UPDATE")["object"]["columns"] == ["a", "b"]


def test_of_postgresqls_own_schemas_only_what_was_granted_is_explained(db: Database) -> None:
    """Everybody may execute thousands of functions there."""
    grant = "grants: [{role: app, privileges: [EXECUTE], object: {type: function, schema: pg_catalog, name: FUNCTION}}]"
    manifest = "roles: [{name: app}]\n" + grant.replace("FUNCTION", "pg_sleep(float8)")
    db.converge(manifest)
    result = db.converge(manifest, explain=["app"])
    found = one(result, "app", "function", "pg_sleep(double precision)", how="direct")
    assert (found["because"], found["rule"]) == ("declared", "grants[0]")
    assert sum(item["count"] for item in items(result, "app", "function") if item["object"]["schema"]) < 100


def test_objects_that_are_alike_are_one_item(inventory: Database) -> None:
    inventory.sql("DO $$BEGIN FOR i IN 1..40 LOOP EXECUTE format('CREATE TABLE inventory.t%s ()', i); END LOOP; END$$")
    result = inventory.converge(MANIFEST, explain=["app"])
    # Those have another owner.
    owned = items(result, "app", "table", privilege="SELECT")
    assert sorted((item["object"]["name"], item["count"], len(item["objects"])) for item in owned) == [
        ("orders", 1, 1),
        ("t1, t10, t11 and 37 more", 40, 40),
    ]
    inventory.sql("DROP TABLE inventory.orders")
    found = one(inventory.converge(MANIFEST, explain=["app"]), "app", "table", privilege="SELECT")
    assert (found["object"]["name"], found["count"], found["objects"]) == ("*", 40, [])


def test_roles_that_come_and_go(inventory: Database) -> None:
    inventory.sql("CREATE ROLE gone; GRANT SELECT ON inventory.orders TO gone")
    manifest = MANIFEST + "retirements: [{role: gone, drop_owned: true}]\n"
    result = inventory.reconcile(manifest, check=True, explain=["app", "gone"])
    assert {item["plan"] for item in result.explain if item["role"] == "app"} == {"gained"}
    assert {item["plan"] for item in result.explain if item["role"] == "gone"} == {"lost"}
    found = one(result, "gone", "table")
    assert (found["because"], found["rule"]) == ("surplus", "schemas[0]")
    assert one(result, "gone", "database", privilege="CONNECT")["because"] == "retired"
    assert inventory.reconcile(manifest, explain=["app", "gone"]).explain == result.explain
    missing = inventory.fails(manifest, "object_missing", 'role "gone" does not exist', explain=["app", "gone"])
    assert missing.problems[0]["path"] == "explain[1]"


def test_a_role_that_is_not_there_stops_the_run_before_its_first_statement(inventory: Database) -> None:
    failed = inventory.fails(MANIFEST, "object_missing", 'role "ap" does not exist', explain=["ap"])
    assert failed.plan


def test_nothing_is_explained_unless_somebody_asks(inventory: Database) -> None:
    assert "explain" not in inventory.converge(MANIFEST)
    assert inventory.converge(MANIFEST, explain=[]).explain == []


@UNCONNECTED
@pytest.mark.parametrize(
    ("given", "path"), [({"a": 1}, "explain"), ([["app"]], "explain[0]"), ("app, b", "explain"), ([5], "explain[0]")]
)
def test_names_have_to_be_a_list_of_texts(db: Database, given: Any, path: str) -> None:
    failed = db.rejects(MANIFEST, explain=given)
    assert [problem["path"] for problem in failed.problems] == [path]
