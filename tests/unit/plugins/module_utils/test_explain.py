# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why roles have what they have, without a server: ways, reasons, what the plan does, and the shape of the answers."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.targets import Lookups
from ansible_collections.pg_access.reconcile.plugins.module_utils.explain.answers import Explained
from ansible_collections.pg_access.reconcile.plugins.module_utils.explain.explanation import explanation
from ansible_collections.pg_access.reconcile.plugins.module_utils.explain.matrix import matrix_of
from ansible_collections.pg_access.reconcile.plugins.module_utils.filters import Options
from ansible_collections.pg_access.reconcile.plugins.module_utils.plan import make_plan
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.report.explained import explained_items
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World, declared, rule


def explained(
    world: World, names: Sequence[str], lookups: Optional[Lookups] = None, **raw: Any
) -> Tuple[Explained, ...]:
    """What is said of these roles, where a manifest of these sections is applied."""
    policy = manifest_to_policy(raw)
    lookups = lookups or Lookups()
    outcome = make_plan(policy, world.state, world.scope(policy), lookups, Options())
    found, problems = explanation(names, policy, world.state, outcome, lookups)
    assert not problems and not outcome.problems, (problems, outcome.problems)
    return found


def of(found: Sequence[Explained], kind: str, privilege: str, role: Optional[str] = None) -> Explained:
    """The only answer about a kind and a privilege."""
    wanted = [
        item
        for item in found
        if (item.answer.kind, item.answer.privilege) == (kind, privilege) and role in (None, item.answer.role)
    ]
    assert len(wanted) == 1, wanted
    return wanted[0]


def chain(version: int, **inherits: bool) -> World:
    """app in team in readers, who may read the table t of the owner o."""
    world = World(version)
    for name in ("app", "team", "readers"):
        world.role(name, inherit=inherits.get(name, True))
    world.table("s", "t", "o", ("readers", "SELECT", "o"))
    world.member("team", "readers", inherit=inherits.get("team", True))
    world.member("app", "team", inherit=inherits.get("app", True))
    return world


@pytest.mark.parametrize("version", [15, 16])
@pytest.mark.parametrize(("inherits", "set_role"), [({}, None), ({"app": False}, "team"), ({"team": False}, "readers")])
def test_the_path_and_the_role_that_has_to_be_set(
    version: int, inherits: Dict[str, bool], set_role: Optional[str]
) -> None:
    found = of(explained(chain(version, **inherits), ["app"]), "table", "SELECT")
    assert found.answer.via == ("team", "readers")
    assert found.answer.set_role == set_role
    assert [item.name for item in found.objects] == ["t"]


def test_the_shortest_path_is_shown_once() -> None:
    world = chain(16)
    world.member("app", "readers")
    assert of(explained(world, ["app"]), "table", "SELECT").answer.via == ("readers",)


def test_what_is_both_direct_and_public_is_there_twice() -> None:
    world = World()
    world.table("s", "t", "o", ("app", "SELECT", "o"), ("PUBLIC", "SELECT", "o"))
    found = [item.answer for item in explained(world, ["app"]) if item.answer.kind == "table"]
    assert [(answer.how, answer.via) for answer in found] == [("direct", ()), ("public", ("PUBLIC",))]


def test_grantors_are_told_apart() -> None:
    world = World()
    world.table("s", "t", "o", ("b", "SELECT*", "o"), ("app", "SELECT", "o"), ("app", "SELECT", "b"))
    found = [item.answer for item in explained(world, ["app"]) if item.answer.kind == "table"]
    assert [answer.grantor for answer in found] == ["b", "o"]


def test_columns_of_the_same_objects_are_one_answer_beside_that_of_the_whole() -> None:
    world = World()
    table = world.table("s", "t", "o", ("app", "UPDATE", "o"))
    world.column("s", table, "a", "o", ("app", "UPDATE", "o"))
    world.column("s", table, "b", "o", ("app", "UPDATE", "o"))
    found = [item.columns for item in explained(world, ["app"]) if item.answer.privilege == "UPDATE"]
    assert found == [(), ("a", "b")]


def test_a_revoke_on_the_relation_is_what_takes_the_columns() -> None:
    world = World()
    table = world.table("s", "t", "o", ("app", "UPDATE", "o"))
    world.column("s", table, "a", "o", ("app", "UPDATE", "o"))
    raw = {
        "roles": declared("app"),
        "grants": [rule("app", "UPDATE", "table", "s", "t", ensure="absent")],
    }
    found = [item.answer for item in explained(world, ["app"], **raw) if item.answer.privilege == "UPDATE"]
    assert [(answer.plan, answer.because, answer.rule) for answer in found] == [("lost", "absent", "grants[0]")] * 2


def test_a_rule_that_names_one_table_is_behind_that_one_only() -> None:
    world = World()
    world.objects("table", "s", ["t", "u", "v"], "o", ("app", "SELECT", "o"))
    raw = {
        "roles": declared("app"),
        "grants": [rule("app", "SELECT", "table", "s", "u"), rule("app", "SELECT", "table", "s", "*")],
    }
    found = {item.answer.rule: item for item in explained(world, ["app"], **raw) if item.answer.kind == "table"}
    assert {place: [one.name for one in item.objects] for place, item in found.items()} == {
        "grants[1]": ["t", "v"],
        "grants[0]": ["u"],
    }


def test_a_predefined_role_and_a_superuser_need_no_objects() -> None:
    world = World()
    world.role("pg_read_all_data")
    world.role("app")
    world.role("root", superuser=True)
    world.member("app", "pg_read_all_data")
    world.table("s", "t", "o")
    found = explained(world, ["app", "root"])
    reads = of(found, "table", "SELECT", "app")
    assert (reads.answer.how, reads.answer.schema, reads.objects, reads.whole) == ("predefined", None, (), True)
    assert of(found, "schema", "USAGE", "app").answer.how == "predefined"
    assert of(found, "*", "ALL", "root").answer.how == "superuser"


def test_nobody_but_a_superuser_writes_the_systems_tables() -> None:
    world = World()
    world.table("pg_catalog", "pg_t", "postgres", ("app", "SELECT", "postgres"), ("app", "INSERT", "postgres"))
    assert {item.answer.privilege for item in explained(world, ["app"]) if item.answer.kind == "table"} == {"SELECT"}


@pytest.mark.parametrize("names, path", [(["app", "ap"], "explain[1]"), (["public", "x"], "explain[1]")])
def test_a_role_that_is_not_there_is_a_problem(names: List[str], path: str) -> None:
    world = World()
    world.role("app")
    policy = manifest_to_policy({})
    outcome = make_plan(policy, world.state, world.scope(policy), Lookups(), Options())
    found, problems = explanation(names, policy, world.state, outcome, Lookups())
    assert (found, [problem.path for problem in problems]) == ((), [path])
    assert problems[0].code == "object_missing"


def test_a_role_that_the_plan_makes_gains_everything() -> None:
    world = World()
    world.table("s", "t", "o")
    raw = {"roles": declared("app"), "grants": [rule("app", "SELECT", "table", "s", "t")]}
    found = explained(world, ["app"], **raw)
    assert {item.answer.plan for item in found} == {"gained"}
    assert of(found, "table", "SELECT").answer.rule == "grants[0]"


def test_a_schemas_new_owner_is_one_and_the_old_one_is_not_any_more() -> None:
    world = World()
    world.schema("s", "old")
    world.role("new")
    raw = {"roles": declared("new", "old"), "schemas": [{"name": "s", "owner": "new"}]}
    found = explained(world, ["new", "old"], **raw)
    gained, lost = of(found, "schema", "OWNER", "new").answer, of(found, "schema", "OWNER", "old").answer
    assert (gained.plan, gained.rule, lost.plan, lost.rule) == ("gained", "schemas[0]", "lost", "schemas[0]")


# ---- the shape of the answers ----------------------------------------------------------------------------------------


def test_many_objects_are_counted_and_named_while_there_is_room() -> None:
    world = World()
    world.objects("table", "s", [f"t{number}" for number in range(5)], "o", ("app", "SELECT", "o"))
    world.table("s", "u", "o")
    found = [item for item in explained(world, ["app"]) if item.answer.kind == "table"]
    (full,), (brief,) = explained_items(found, brief=False), explained_items(found, brief=True)
    assert full["object"]["name"] == brief["object"]["name"] == "t0, t1, t2 and 2 more"
    assert (full["objects"], brief["objects"]) == (["t0", "t1", "t2", "t3", "t4"], ["t0", "t1", "t2"])
    assert full["count"] == brief["count"] == 5


def test_all_tables_of_a_schema_are_a_star() -> None:
    world = World()
    world.objects("table", "s", ["t", "u"], "o", ("app", "SELECT", "o"))
    (item,) = explained_items([i for i in explained(world, ["app"]) if i.answer.kind == "table"], brief=False)
    assert (item["object"]["name"], item["objects"], item["count"]) == ("*", [], 2)


def test_the_matrix_shows_how_far_a_privilege_reaches() -> None:
    world = chain(16, app=False)
    world.role("pg_read_all_data")
    world.member("team", "pg_read_all_data")
    world.objects("table", "r", ["x", "y"], "o", ("team", "SELECT", "o"))
    world.table("r", "z", "o", ("team", "INSERT", "o"), ("team", "SELECT", "o"))
    world.schema("s2", "o", ("team", "USAGE", "o"))
    matrix = matrix_of(explained_items(explained(world, ["team", "app"]), brief=False))
    assert matrix.roles == ("team", "app")
    assert matrix.schemas == ("*", "r", "s", "s2")
    assert matrix.cells["team", "r"] == {"table": {"SELECT": "all", "INSERT": "some"}}
    assert matrix.cells["team", "s"] == {"table": {"SELECT": "some"}}
    assert matrix.cells["team", "s2"] == {"schema": {"USAGE": "all"}}
    assert matrix.cells["team", "*"]["table"] == {"SELECT": "all"}
    assert matrix.cells["app", "r"] == {"table": {"SELECT": "set_role", "INSERT": "set_role"}}
