# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""In whose name statements run: grantors other than the owner, what hangs on them, and what an executor may do."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.authority.powers import Powers
from ansible_collections.pg_access.reconcile.plugins.module_utils.authority.privileges import (
    authorize_privileges,
    label_of,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import AddMember, Grant, LendUsage
from ansible_collections.pg_access.reconcile.plugins.module_utils.keep import merge_columns, taken_along, with_columns
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import Object
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import Held, World, declared, rule

T = 'TABLE "s"."t"'


def server(*held: Held, executor: str = "postgres", login: Optional[str] = None) -> World:
    """A server with a table s.t of owner o in a schema that everybody may use, and roles a to d."""
    world = World(executor=executor, login=login)
    for name in ("a", "b", "c", "d", "o"):
        world.role(name)
    world.schema("s", "o", ("PUBLIC", "USAGE", "o"))
    world.table("s", "t", "o", *held)
    return world


def manifest(*grants: Any, managed: bool = True, roles: Tuple[str, ...] = ("a", "b", "c", "d", "o")) -> Dict[str, Any]:
    raw: Dict[str, Any] = {"roles": declared(*roles), "grants": list(grants)}
    return {**raw, "scope": {"schemas": ["s"]}} if managed else raw


def select(role: str, **keys: Any) -> Any:
    return rule(role, "SELECT", "table", "s", "t", **keys)


CHAIN = (("a", "SELECT*", "o"), ("b", "SELECT*", "a"), ("c", "SELECT", "b"))


# ---- leaves first ----------------------------------------------------------------------------------------------------


def test_a_chain_of_grantors_is_revoked_from_its_leaf() -> None:
    assert server(*CHAIN).sql(manifest()) == [
        'SET LOCAL ROLE "b"',
        f'REVOKE SELECT ON {T} FROM "c"',
        "SET LOCAL ROLE NONE",
        'SET LOCAL ROLE "a"',
        f'REVOKE SELECT ON {T} FROM "b"',
        "SET LOCAL ROLE NONE",
        f'REVOKE SELECT ON {T} FROM "a"',
    ]


def test_what_the_run_keeps_is_granted_by_the_owner_before_its_grantor_goes() -> None:
    assert server(*CHAIN).sql(manifest(select("c"))) == [
        f'GRANT SELECT ON {T} TO "c"',
        'SET LOCAL ROLE "b"',
        f'REVOKE SELECT ON {T} FROM "c"',
        "SET LOCAL ROLE NONE",
        'SET LOCAL ROLE "a"',
        f'REVOKE SELECT ON {T} FROM "b"',
        "SET LOCAL ROLE NONE",
        f'REVOKE SELECT ON {T} FROM "a"',
    ]


def test_a_kept_grantor_keeps_what_it_gave() -> None:
    raw = manifest(select("b", with_grant_option=True), select("c"))
    assert server(*CHAIN).sql(raw) == [
        f'GRANT SELECT ON {T} TO "b" WITH GRANT OPTION',
        'SET LOCAL ROLE "a"',
        f'REVOKE SELECT ON {T} FROM "b"',
        "SET LOCAL ROLE NONE",
        f'REVOKE SELECT ON {T} FROM "a"',
    ]


def test_an_entry_that_the_owner_gave_as_well_needs_no_second_grant() -> None:
    world = server(("a", "SELECT*", "o"), ("b", "SELECT", "a"), ("b", "SELECT", "o"))
    assert world.sql(manifest(select("b"))) == [
        'SET LOCAL ROLE "a"',
        f'REVOKE SELECT ON {T} FROM "b"',
        "SET LOCAL ROLE NONE",
        f'REVOKE SELECT ON {T} FROM "a"',
    ]


def test_losing_only_the_grant_option_orphans_as_well() -> None:
    world = server(("a", "SELECT*", "o"), ("b", "SELECT", "a"))
    assert world.sql(manifest(select("a"), select("b"))) == [
        f'GRANT SELECT ON {T} TO "b"',
        'SET LOCAL ROLE "a"',
        f'REVOKE SELECT ON {T} FROM "b"',
        "SET LOCAL ROLE NONE",
        f'REVOKE GRANT OPTION FOR SELECT ON {T} FROM "a"',
    ]


def test_an_entry_that_only_loses_its_option_still_is_the_privilege() -> None:
    world = server(("a", "SELECT*", "o"), ("b", "SELECT*", "o"), ("b", "SELECT", "a"))
    assert sorted(world.sql(manifest(select("b")))) == [
        f'REVOKE GRANT OPTION FOR SELECT ON {T} FROM "b"',
        f'REVOKE SELECT ON {T} FROM "a"',
        f'REVOKE SELECT ON {T} FROM "b"',
        'SET LOCAL ROLE "a"',
        "SET LOCAL ROLE NONE",
    ]


def test_grantors_are_left_alone_while_nothing_is_revoked() -> None:
    raw = manifest(select("a", with_grant_option=True), select("b", with_grant_option=True), select("c"), select("d"))
    assert server(*CHAIN).sql(raw) == [f'GRANT SELECT ON {T} TO "d"']


def test_a_dependent_on_an_object_that_nothing_makes_managed_is_a_problem() -> None:
    world = server(("a", "SELECT*", "o"), ("b", "SELECT", "a"))
    outcome = world.outcome(manifest(select("a", ensure="absent"), managed=False))
    (problem,) = outcome.problems
    assert (problem.code, problem.role) == ("dependent_privileges", "b")
    assert "cannot be taken from a, who gave it on to b" in problem.message


def test_what_the_override_keeps_survives_its_grantor() -> None:
    world = server(("a", "SELECT*", "o"), ("b", "SELECT*", "a"))
    raw = manifest(roles=("a", "c", "d", "o"))
    raw["roles"].append({"name": "b", "privilege_reconciliation": "additive"})
    plan = world.plan(raw)
    assert world.written(plan)[0] == f'GRANT SELECT ON {T} TO "b" WITH GRANT OPTION'
    assert len(plan.suppressed) == 1


def test_a_grantor_without_usage_is_lent_it_for_the_moment() -> None:
    world = World()
    for name in ("a", "b", "o"):
        world.role(name)
    world.table("s", "t", "o", ("a", "SELECT*", "o"), ("b", "SELECT", "a"))
    assert world.sql(manifest(select("a", with_grant_option=True), roles=("a", "b", "o"))) == [
        'GRANT USAGE ON SCHEMA "s" TO "a"',
        'SET LOCAL ROLE "a"',
        f'REVOKE SELECT ON {T} FROM "b"',
        "SET LOCAL ROLE NONE",
        'REVOKE USAGE ON SCHEMA "s" FROM "a"',
    ]


def test_the_statements_after_a_grantors_go_back_to_the_session_role() -> None:
    world = server(("a", "SELECT*", "o"), ("b", "SELECT", "a"))
    plan = world.plan(manifest(select("a", with_grant_option=True)))
    assert world.written(plan, session_role="Deploy")[-1] == 'SET LOCAL ROLE "Deploy"'


# ---- where the login may not become the grantor ----------------------------------------------------------------------


def owner_only(*held: Held) -> World:
    """A server on which the run is the owner and can become nobody else."""
    return server(*held, executor="o")


def test_an_owner_reaches_a_grantors_entries_through_cascade_and_grants_the_rest_again() -> None:
    world = owner_only(("a", "SELECT*", "o"), ("b", "SELECT", "a"), ("c", "SELECT", "a"))
    assert world.sql(manifest(select("a", with_grant_option=True), select("c"))) == [
        f'REVOKE GRANT OPTION FOR SELECT ON {T} FROM "a" CASCADE',
        f'GRANT SELECT ON {T} TO "c"',
        f'GRANT SELECT ON {T} TO "a" WITH GRANT OPTION',
    ]


def test_a_grantor_without_an_option_of_its_own_is_given_one_to_start_cascade_from() -> None:
    world = owner_only(("a", "SELECT*", "o"))
    table = world.state.groups[0].members.objects()[0]
    world.column("s", table, "c", "o", ("b", "SELECT", "a"))
    assert world.sql(manifest(select("a", with_grant_option=True))) == [
        f'GRANT SELECT ("c") ON {T} TO "a" WITH GRANT OPTION',
        f'REVOKE GRANT OPTION FOR SELECT ("c") ON {T} FROM "a" CASCADE',
        f'REVOKE SELECT ("c") ON {T} FROM "a"',
    ]


def test_a_grantor_that_is_a_superuser_or_acts_as_the_owner_is_a_problem() -> None:
    for member in (False, True):
        world = owner_only(("a", "SELECT*", "o"), ("b", "SELECT", "a"))
        if member:
            world.member("a", "o", set=False)
        else:
            world.role("boss", superuser=True)
            world.table("s", "u", "o", ("boss", "SELECT*", "o"), ("b", "SELECT", "boss"))
        raw = manifest(select("a", with_grant_option=True))
        raw["roles"].append({"name": "boss", "superuser": True})
        raw["memberships"] = [{"role": "o", "members": [{"name": "a"}]}] if member else []
        stuck = [p for p in world.outcome(raw).problems if p.code == "dependent_privileges"]
        assert stuck, member
        assert ("member of the owner" if member else "acts as the owner") in stuck[0].message


# ---- columns beside their relation -----------------------------------------------------------------------------------


def test_a_relations_revoke_grants_again_the_columns_that_stay() -> None:
    world = server(("a", "SELECT", "o"))
    table = world.state.groups[0].members.objects()[0]
    world.column("s", table, "c", "o", ("a", "SELECT", "o"), ("b", "SELECT", "o"))
    target = world.target("table", "s", [table], "o")
    revoke = world.revoke(target, "a", "SELECT")
    first, again = with_columns([revoke], world.state)
    assert first == revoke
    assert isinstance(again, Grant)
    assert (again.grantee.name, again.target.columns, again.again, again.late) == ("a", ("c",), True, True)


def test_a_column_that_goes_too_is_not_granted_again() -> None:
    world = server(("a", "SELECT", "o"))
    table = world.state.groups[0].members.objects()[0]
    world.column("s", table, "c", "o", ("a", "SELECT", "o"))
    both = [
        world.revoke(world.target("table", "s", [table], "o"), "a", "SELECT"),
        world.revoke(world.target("table", "s", [table], "o", "c"), "a", "SELECT"),
    ]
    assert with_columns(both, world.state) == both


def test_a_new_column_grant_waits_for_the_revoke_that_would_take_it_along() -> None:
    world = server(("a", "SELECT", "o"))
    table = world.state.groups[0].members.objects()[0]
    grant = world.grant(world.target("table", "s", [table], "o", "c"), "a", "SELECT")
    other = world.grant(world.target("table", "s", [table], "o", "c"), "b", "SELECT")
    found = with_columns(
        [grant, other, world.revoke(world.target("table", "s", [table], "o"), "a", "SELECT")], world.state
    )
    assert [change.late for change in found if isinstance(change, Grant)] == [True, False]


def test_a_revoked_option_takes_only_the_columns_options_along() -> None:
    world = server(("a", "SELECT*", "o"))
    table = world.state.groups[0].members.objects()[0]
    world.column("s", table, "c", "o", ("a", "SELECT*", "o"))
    world.column("s", table, "d", "o", ("a", "SELECT", "o"))
    revoke = world.revoke(world.target("table", "s", [table], "o"), "a", "SELECT", option_only=True)
    _revoke, again = with_columns([revoke], world.state)
    assert isinstance(again, Grant)
    assert (again.target.columns, again.with_grant_option) == (("c",), True)
    assert taken_along([revoke]) == {}
    assert taken_along([revoke], option_only=True) == {(world.oid("a"), "SELECT", world.oid("o")): {table.oid}}


def test_a_column_that_loses_its_option_anyway_is_granted_again_without_it() -> None:
    world = server(("a", "SELECT", "o"))
    table = world.state.groups[0].members.objects()[0]
    world.column("s", table, "c", "o", ("a", "SELECT*", "o"))
    both = [
        world.revoke(world.target("table", "s", [table], "o"), "a", "SELECT"),
        world.revoke(world.target("table", "s", [table], "o", "c"), "a", "SELECT", option_only=True),
    ]
    again = with_columns(both, world.state)[-1]
    assert isinstance(again, Grant)
    assert (again.again, again.with_grant_option) == (True, False)


def test_changes_that_differ_only_in_the_column_become_one() -> None:
    world = server()
    table = Object(1, "t")
    changes = [
        world.grant(world.target("table", "s", [table], "o", column), "a", "SELECT") for column in ("z", "b", "z")
    ]
    other = world.grant(world.target("table", "s", [table], "o", "b"), "b", "SELECT")
    first, second = merge_columns([changes[0], other, *changes[1:]])
    assert (first.target.columns, second.target.columns) == (("b", "z"), ("b",))


# ---- powers ----------------------------------------------------------------------------------------------------------


def powers(world: World, *changes: Any) -> Powers:
    return Powers(world.state, list(changes))


def test_before_16_a_roles_own_inherit_decides_for_all_its_memberships() -> None:
    world = World(15)
    world.role("eager")
    world.role("shy", inherit=False)
    for member in ("eager", "shy"):
        world.member(member, "g")
    assert world.oid("g") in powers(world).acts_with(world.oid("eager"))
    assert world.oid("g") not in powers(world).acts_with(world.oid("shy"))
    assert world.oid("g") in powers(world).may_set(world.oid("shy"))


def test_from_16_on_each_membership_decides_for_itself() -> None:
    world = World(16)
    world.role("m", inherit=False)
    world.member("m", "heir", set=False)
    world.member("m", "setter", inherit=False)
    world.member("heir", "above")
    member = world.oid("m")
    assert powers(world).acts_with(member) == {member, world.oid("heir"), world.oid("above")}
    assert powers(world).may_set(member) == {member, world.oid("setter")}


def test_the_connected_databases_owner_acts_as_pg_database_owner() -> None:
    world = World(owner="dba")
    world.role("pg_database_owner")
    world.database("other", "stranger")
    world.member("helper", "dba")
    found = powers(world)
    for name, acts in (("dba", True), ("helper", True), ("stranger", False)):
        assert (world.oid("pg_database_owner") in found.acts_with(world.oid(name))) is acts


def test_a_membership_that_the_plan_adds_counts_already() -> None:
    world = World()
    change = AddMember(world.ref("g"), world.ref("m"), {"admin": False, "inherit": True, "set": False}, "")
    assert world.oid("g") in powers(world, change).acts_with(world.oid("m"))
    assert world.oid("g") not in powers(world, change).may_set(world.oid("m"))


def test_a_superuser_owns_everything_but_only_the_login_can_become_anybody() -> None:
    world = World(executor="deploy", login="postgres")
    assert powers(world).can_become(world.oid("x"))
    assert not powers(world).owns(world.oid("deploy"), world.oid("x"))
    assert powers(world).owns(world.oid("postgres"), world.oid("x"))


def test_usage_comes_from_public_from_a_group_and_from_the_plan() -> None:
    world = World()
    world.schema("open", "o", ("PUBLIC", "USAGE", "o"))
    shut = world.schema("shut", "o", ("g", "USAGE", "o"))
    world.member("m", "g")
    found = powers(world)
    assert found.uses_schema(world.oid("x"), "open")
    assert found.uses_schema(world.oid("m"), "shut")
    assert not found.uses_schema(world.oid("x"), "shut")
    assert found.uses_schema(world.oid("x"), None)
    target = world.target("schema", None, [Object(shut.oid, "shut")], "o")
    assert powers(world, world.grant(target, "x", "USAGE")).uses_schema(world.oid("x"), "shut")


@pytest.mark.parametrize("group", ["pg_read_all_data", "pg_write_all_data"])
def test_the_roles_that_reach_all_data_use_every_schema(group: str) -> None:
    world = World()
    world.schema("shut", "o")
    world.member("m", group)
    assert powers(world).uses_schema(world.oid("m"), "shut")
    assert not powers(world).uses_schema(world.oid("x"), "shut")


# ---- authorize -------------------------------------------------------------------------------------------------------


def authorized(world: World, grantee: str = "b", *, revoke: bool = False) -> Tuple[List[Any], List[Any]]:
    table = world.state.groups[0].members.objects()[0]
    target = world.target("table", "s", [table], "o")
    change = world.revoke(target, grantee, "SELECT") if revoke else world.grant(target, grantee, "SELECT")
    return authorize_privileges([change], world.state, powers(world, change))


def test_a_superuser_and_the_owner_run_as_themselves() -> None:
    for executor in ("postgres", "o"):
        (change,), problems = authorized(server(executor=executor))
        assert change.run_as is None
        assert not problems


def test_who_may_only_set_the_owners_role_runs_in_the_owners_name() -> None:
    world = server(executor="deploy")
    world.member("deploy", "o", inherit=False)
    (change,), problems = authorized(world)
    assert change.run_as == world.ref("o")
    assert not problems


def test_an_owner_that_cannot_use_the_schema_is_lent_it_by_the_schemas_owner() -> None:
    world = World(executor="deploy")
    world.schema("s", "so")
    world.table("s", "t", "o")
    world.member("deploy", "o", inherit=False)
    (change,), (problem,) = authorized(world)
    assert change.run_as == world.ref("o")
    assert (problem.code, problem.message.partition(",")[0]) == (
        "insufficient_privilege",
        "o may not use schema s",
    )
    world.member("deploy", "so", inherit=False)
    (lend, change), problems = authorized(world)
    assert lend == LendUsage(world.ref("o"), "s", world.ref("so"))
    assert change.run_as == world.ref("o")
    assert not problems


def test_a_grant_option_suffices_for_a_grant_but_not_for_the_owners_revoke() -> None:
    world = server(("deploy", "SELECT*", "o"), executor="deploy")
    (change,), problems = authorized(world)
    assert change.run_as is None
    assert not problems
    (change,), (problem,) = authorized(world, revoke=True)
    assert change.run_as is None
    assert problem.code == "insufficient_privilege"


def test_a_grant_option_on_the_very_columns_suffices() -> None:
    world = server(executor="deploy")
    table = world.state.groups[0].members.objects()[0]
    world.column("s", table, "c", "o", ("deploy", "SELECT*", "o"))
    for columns, enough in ((("c",), True), (("c", "d"), False), ((), False)):
        change = world.grant(world.target("table", "s", [table], "o", *columns), "b", "SELECT")
        _changes, problems = authorize_privileges([change], world.state, powers(world, change))
        assert (problems == []) is enough, columns


def test_beside_an_own_grant_option_the_owners_name_is_safer() -> None:
    world = server(("deploy", "SELECT*", "o"), executor="deploy")
    world.member("deploy", "o")
    (change,), _problems = authorized(world, revoke=True)
    assert change.run_as == world.ref("o")


def test_a_problem_names_object_owner_and_what_would_help() -> None:
    _changes, (problem,) = authorized(server(executor="deploy"))
    assert problem.message == "deploy may not grant SELECT on table s.t, which belongs to o"
    assert problem.hint == 'Run as o or a superuser, or: GRANT "o" TO "deploy" WITH SET TRUE'


def test_an_executor_without_usage_is_told_so() -> None:
    world = World(executor="deploy")
    world.schema("s", "postgres")
    world.table("s", "t", "o")
    world.member("deploy", "o", set=False)
    _changes, (problem,) = authorized(world)
    assert problem.message == "deploy may not use schema s, so it cannot name table s.t"


@pytest.mark.parametrize(
    ("names", "columns", "label"),
    [(["t"], (), "table s.t"), (["t", "u", "v"], (), "table s.t and 2 more"), (["t"], ("a", "b"), "table s.t (a, b)")],
)
def test_a_label_is_short(names: List[str], columns: Tuple[str, ...], label: str) -> None:
    world = server()
    objects = [Object(number, name) for number, name in enumerate(names)]
    assert label_of(world.grant(world.target("table", "s", objects, "o", *columns), "a", "SELECT")) == label
