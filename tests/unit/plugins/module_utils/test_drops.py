# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps a role after the plan's own statements, and who may run those: what the server tests do not come by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, List, Optional, Sequence, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.authority.drops import drop_authority
from ansible_collections.pg_access.reconcile.plugins.module_utils.authority.powers import Powers
from ansible_collections.pg_access.reconcile.plugins.module_utils.belongings import (
    Belongings,
    Default,
    Held,
    Ties,
    Wrapper,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import (
    AlterSchemaOwner,
    Change,
    DropOwned,
    DropRole,
    ReassignOwned,
    RemoveMember,
    RevokeDefault,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.drops import drop_problems
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import Problem
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import Role, RoleRef, State
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World


def tie(
    world: World,
    how: str,
    catalog: str,
    *objects: int,
    role: str = "old",
    database: Optional[str] = "app",
    column: int = 0,
) -> Ties:
    places = tuple((oid, column) for oid in objects)
    labels = tuple(f"thing {oid}" for oid in objects)
    return Ties(world.oid(role), how, catalog, database, len(objects), places, labels)


def held(
    world: World, catalog: str, owner: str, oid: int, *rows: Tuple[str, str, str], column: Optional[str] = None
) -> Held:
    number = 0 if column is None else 3
    found = frozenset((world.oid(grantee), privilege, world.oid(grantor)) for grantee, privilege, grantor in rows)
    return Held(catalog, world.oid(owner), found, ((oid, number),), (column,))


def with_(state: State, **belongings: Any) -> State:
    return replace(state, belongings=Belongings(**belongings))


def going(world: World, *names: str, heir: Optional[str] = None, sweep: bool = False, **flags: Any) -> List[Change]:
    changes: List[Change] = []
    for name in names:
        role = world.ref(name)
        if heir is not None:
            changes.append(ReassignOwned(role, world.ref(heir), "retirements[0]"))
        if sweep:
            changes.append(DropOwned(role, "retirements[0]"))
        changes.append(DropRole(role, "retirements[0]", **flags))
    return changes


def texts(problems: Sequence[Problem]) -> List[str]:
    return [problem.message for problem in problems]


def test_no_drop_no_question() -> None:
    world = World()
    world.role("old")
    assert drop_problems([], with_(world.state, ties=(tie(world, "o", "pg_class", 1),))) == []
    assert drop_authority([], world.state, Powers(world.state)) == []


# ---- privileges ------------------------------------------------------------------------------------------------------


def table_of(world: World) -> Any:
    world.role("old")
    return world.table("s", "t", "own", ("old", "SELECT", "own"), ("old", "INSERT", "own"))


@pytest.mark.parametrize(
    ("privileges", "flags", "stays"),
    [
        (("SELECT", "INSERT"), {}, False),
        (("SELECT",), {}, True),
        (("SELECT", "INSERT"), {"option_only": True}, True),
        (("SELECT", "INSERT"), {"again": True}, False),
    ],
)
def test_only_a_whole_revoke_of_everything_frees_an_object(privileges: Any, flags: Any, stays: bool) -> None:
    world = World()
    table = table_of(world)
    state = with_(
        world.state,
        ties=(tie(world, "a", "pg_class", table.oid),),
        held=(held(world, "pg_class", "own", table.oid, ("old", "SELECT", "own"), ("old", "INSERT", "own")),),
    )
    revoke = world.revoke(world.target("table", "s", [table], "own"), "old", *privileges, **flags)
    problems = drop_problems([revoke, *going(world, "old")], state)
    assert bool(problems) == stays
    # DROP OWNED does what is missing.
    assert drop_problems([revoke, *going(world, "old", sweep=True)], state) == []


def test_a_revoke_on_a_table_takes_its_columns_along() -> None:
    world = World()
    table = table_of(world)
    state = with_(
        world.state,
        ties=(tie(world, "a", "pg_class", table.oid, column=3),),
        held=(held(world, "pg_class", "own", table.oid, ("old", "SELECT", "own"), column="b"),),
    )
    target = world.target("table", "s", [table], "own")
    assert drop_problems([world.revoke(target, "old", "SELECT"), *going(world, "old")], state) == []
    column = world.target("table", "s", [table], "own", "b")
    assert drop_problems([world.revoke(column, "old", "SELECT"), *going(world, "old")], state) == []
    other = world.target("table", "s", [table], "own", "c")
    (problem,) = drop_problems([world.revoke(other, "old", "SELECT"), *going(world, "old")], state)
    assert problem.code == "drop_blocked"
    assert f"privileges for thing {table.oid}" in problem.message


def test_drop_owned_leaves_what_another_grantor_gave() -> None:
    world = World()
    world.role("old")
    state = with_(
        world.state,
        ties=(tie(world, "a", "pg_class", 7),),
        held=(held(world, "pg_class", "own", 7, ("old", "SELECT", "lender")),),
    )
    (problem,) = drop_problems(going(world, "old", heir="heir", sweep=True), state)
    assert "somebody else than the object's owner" in str(problem.hint)
    assert "Retire" not in str(problem.hint)


def test_what_is_destroyed_keeps_nobody() -> None:
    world = World()
    world.role("old")
    state = with_(
        world.state,
        ties=(tie(world, "a", "pg_class", 7), tie(world, "o", "pg_class", 7, role="other")),
        held=(held(world, "pg_class", "other", 7, ("old", "SELECT", "other")),),
    )
    assert len(drop_problems(going(world, "old"), state)) == 1
    assert drop_problems([*going(world, "old"), *going(world, "other", sweep=True)], state) == []
    # But not what goes on to an heir.
    assert len(drop_problems([*going(world, "old"), *going(world, "other", heir="heir", sweep=True)], state)) == 1


def test_a_schema_that_moves_takes_its_entries_along() -> None:
    world = World()
    world.role("old")
    schema = world.schema("s", "old")
    move = AlterSchemaOwner(schema.oid, "s", world.ref("new"), world.ref("old"), "schemas[0]")
    state = with_(world.state, ties=(tie(world, "o", "pg_namespace", schema.oid),))
    assert len(drop_problems(going(world, "old"), state)) == 1
    assert drop_problems([move, *going(world, "old")], state) == []
    # Another retired role holds something there: by then from the new owner.
    state = with_(
        world.state,
        ties=(tie(world, "o", "pg_namespace", schema.oid), tie(world, "a", "pg_namespace", schema.oid, role="user")),
        held=(held(world, "pg_namespace", "old", schema.oid, ("user", "USAGE", "old")),),
    )
    target = world.target(
        "schema", None, [world.objects("schema", None, ["x"], "new")[0]._replace(oid=schema.oid)], "new"
    )
    revoke = world.revoke(target, "user", "USAGE", by="new")
    assert drop_problems([move, revoke, *going(world, "old", "user")], state) == []
    assert len(drop_problems([move, *going(world, "old", "user")], state)) == 1


def test_who_holds_by_its_grant_is_named() -> None:
    world = World()
    for name in ("old", "own", "x", "y"):
        world.role(name)
    state = with_(
        world.state,
        ties=(tie(world, "a", "pg_class", 7),),
        held=(
            held(world, "pg_class", "own", 7, ("x", "SELECT", "old"), ("x", "UPDATE", "old"), ("y", "SELECT", "old")),
        ),
    )
    problems = drop_problems(going(world, "old", sweep=True), state)
    assert [problem.code for problem in problems] == ["dependent_privileges"] * 2
    assert sorted(str(problem.role) for problem in problems) == ["x", "y"]
    assert "SELECT, UPDATE on thing 7" in texts(problems)[0]


# ---- default privileges, memberships, other sorts --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["table", "sequence"])
@pytest.mark.parametrize("schema", ["s", None])
def test_default_privileges_that_the_plan_revokes_keep_nobody(kind: str, schema: Optional[str]) -> None:
    world = World()
    world.role("old")
    world.schema("s", "own")
    world.default("own", "s", "table", ("old", "SELECT", "own"), ("x", "SELECT", "own"))
    where = Default(world.oid("own"), world.state.schema_named("s").oid, "table")  # type: ignore[union-attr]
    state = with_(world.state, ties=(tie(world, "a", "pg_default_acl", 9),), defaults={9: where})
    change = RevokeDefault(world.ref("own"), schema, kind, world.ref("old"), frozenset({"SELECT"}))
    stays = bool(drop_problems([change, *going(world, "old")], state))
    assert stays == ((kind, schema) != ("table", "s"))
    only = replace(change, kind="table", schema="s", option_only=True)
    assert drop_problems([only, *going(world, "old")], state)
    # A row that is gone since the tie was read.
    assert drop_problems(going(world, "old"), replace(state, belongings=replace(state.belongings, defaults={}))) == []


@pytest.mark.parametrize(("version", "stays"), [(15, False), (16, True)])
def test_memberships_that_it_granted_hang_on_it_from_16_on(version: int, stays: bool) -> None:
    world = World(version)
    world.role("old")
    world.member("x", "g", by="old")
    problems = drop_problems(going(world, "old"), world.state)
    assert bool(problems) == stays
    removal = RemoveMember(world.ref("g"), world.ref("x"), world.ref("old"))
    assert drop_problems([removal, *going(world, "old")], world.state) == []
    assert bool(drop_problems([replace(removal, option="admin"), *going(world, "old")], world.state)) == stays
    assert drop_problems(going(world, "old", sweep=True), world.state) == []
    # Those of roles that go as well end with them.
    assert drop_problems(going(world, "old", "x"), world.state) == []
    assert drop_problems(going(world, "old", "g"), world.state) == []


def test_a_sort_of_tie_that_nobody_knows_yet_keeps_the_role() -> None:
    world = World()
    world.role("old")
    state = with_(world.state, ties=(tie(world, "z", "pg_new", 3),))
    assert "z thing 3" in texts(drop_problems(going(world, "old"), state))[0]
    assert drop_problems(going(world, "old", sweep=True), state) == []


def test_initial_privileges_go_to_the_heir() -> None:
    world = World(18)
    world.role("old")
    state = with_(world.state, ties=(tie(world, "i", "pg_proc", 3),))
    assert "initial privileges for thing 3" in texts(drop_problems(going(world, "old"), state))[0]
    assert drop_problems(going(world, "old", heir="x"), state) == []
    assert drop_problems(going(world, "old", sweep=True), state) == []


# ---- other databases -------------------------------------------------------------------------------------------------


def test_other_databases_need_their_own_statements() -> None:
    world = World()
    old = world.role("old")
    ties = (
        tie(world, "o", "pg_class", 1, 2, database="b"),
        tie(world, "o", "pg_default_acl", 3, database="b"),
        tie(world, "a", "pg_class", 4, database="b"),
        tie(world, "r", "pg_policy", 5, database="c"),
    )
    state = with_(world.state, ties=ties)
    plain = drop_problems(going(world, "old", heir="x", sweep=True), state)
    assert [problem.object for problem in plain] == ["b", "c"]
    assert "4 objects in database b" in plain[0].message
    assert "1 object in database c: target of objects 1" in plain[1].message
    heir = ReassignOwned(old, world.ref("x"), "retirements[0]", database="b")
    sweeps = [DropOwned(old, "retirements[0]", database=name) for name in ("b", "c")]
    (left,) = drop_problems([heir, sweeps[1], *going(world, "old")], state)
    assert "owner of default privileges 1, privileges for objects 1" in left.message
    assert "owner of objects" not in left.message
    assert drop_problems([*sweeps, *going(world, "old")], state) == []
    closed = replace(state, belongings=replace(state.belongings, closed=frozenset({"b"})))
    (shut,) = drop_problems([*sweeps, *going(world, "old")], closed)
    assert "database b, which allows no connections" in shut.message
    assert shut.hint is not None
    assert "all_databases: true, reassign_owned_to and drop_owned: true. Without" in shut.hint


def test_a_hint_names_so_many_of_what_would_be_destroyed_and_no_schema_that_moves() -> None:
    world = World()
    world.role("old")
    world.role("own")
    many = tie(world, "o", "pg_class", *range(1, 25))
    schemas = tie(world, "o", "pg_namespace", 30, 31)
    state = with_(world.state, ties=(many, schemas, tie(world, "o", "pg_class", 40, database="b")))
    moves = AlterSchemaOwner(30, "s", world.ref("own"), world.ref("old"), "schemas[0]")
    here, there = drop_problems([moves, *going(world, "old")], state)
    for problem in (here, there):
        assert problem.hint is not None
        assert problem.hint.endswith("thing 20, 5 more, 1 object in database b.")
        assert "thing 30" not in problem.hint


LOST = " Without reassign_owned_to, drop_owned: true would destroy what it owns: thing 1."


@pytest.mark.parametrize(
    ("ties", "hint"),
    [
        ([("o", "pg_class")], f"Retire the role with reassign_owned_to.{LOST}"),
        (
            [("o", "pg_class"), ("r", "pg_policy")],
            f"Retire the role with reassign_owned_to and drop_owned: true.{LOST}",
        ),
        ([("o", "pg_database")], "Retire the role with reassign_owned_to."),
        ([("r", "pg_policy")], "Retire the role with drop_owned: true."),
        ([("o", "pg_class"), ("o", "pg_database")], f"Retire the role with reassign_owned_to.{LOST}"),
        ([("r", "pg_policy"), ("o", "pg_database")], "Retire the role with reassign_owned_to and drop_owned: true."),
    ],
)
def test_the_hint_asks_for_no_more_than_is_needed(ties: List[Tuple[str, str]], hint: str) -> None:
    world = World()
    world.role("old")
    found = tuple(
        tie(world, how, catalog, 1, database=None if catalog == "pg_database" else "app") for how, catalog in ties
    )
    (problem,) = drop_problems(going(world, "old"), with_(world.state, ties=found))
    assert problem.hint == hint


# ---- who may ---------------------------------------------------------------------------------------------------------


def judged(world: World, changes: List[Change], state: Optional[State] = None) -> List[str]:
    state = state or world.state
    return texts(drop_authority(changes, state, Powers(state)))


def admin(version: int = 16) -> World:
    """``adm`` may do everything with ``old`` and ``heir``."""
    world = World(version, executor="adm")
    world.role("adm", createrole=True, login=True)
    world.role("old")
    world.role("heir")
    world.member("adm", "old", admin=True)
    world.member("adm", "heir")
    return world


def test_rights_that_the_plan_takes_away_before_do_not_count() -> None:
    world = admin()
    changes = going(world, "old", heir="heir", sweep=True)
    assert judged(world, changes) == []
    removal = RemoveMember(world.ref("heir"), world.ref("adm"), world.ref("postgres"))
    (text,) = judged(world, [removal, *changes])
    assert "does not have the privileges of heir" in text


def test_an_heir_that_the_run_creates_is_reached_by_the_creators_own_membership() -> None:
    world = admin()
    state = world.state
    heir = RoleRef(-1, "fresh")
    changes: List[Change] = [ReassignOwned(world.ref("old"), heir, "retirements[0]"), *going(world, "old")]
    after = state.with_roles([Role(-1, "fresh")])
    problems = drop_authority(changes, after, Powers(after, first=state))
    assert "privileges of fresh" in problems[0].message
    assert "createrole_self_grant" in str(problems[0].hint)


def test_grants_of_the_plan_count_for_the_heir() -> None:
    world = admin()
    schema = world.schema("s", "own")
    state = with_(
        world.state,
        ties=(tie(world, "o", "pg_proc", 5), tie(world, "o", "pg_foreign_server", 6)),
        placed={world.oid("old"): frozenset({schema.oid})},
        wrappers=(Wrapper(world.oid("old"), "w", frozenset({world.oid("own")})),),
    )
    changes = going(world, "old", heir="heir")
    missing = judged(world, changes, state)
    assert ["CREATE on schema s" in missing[0], "wrapper w" in missing[1], len(missing)] == [True, True, 2]
    place = world.objects("schema", None, ["s"], "own")
    wrapper = world.objects("foreign_data_wrapper", None, ["w"], "own")
    grants: List[Change] = [
        world.grant(world.target("schema", None, place, "own"), "heir", "CREATE"),
        world.grant(world.target("foreign_data_wrapper", None, wrapper, "own"), "heir", "USAGE"),
    ]
    assert judged(world, [*grants, *changes], state) == []
    taken = world.revoke(world.target("schema", None, place, "own"), "heir", "CREATE")
    holding = replace(state, schemas={schema.oid: replace(schema, acl=world.bare(("heir", "CREATE", "own")))})
    assert len(judged(world, changes, holding)) == 1
    assert len(judged(world, [taken, *changes], holding)) == 2


def test_drop_owned_only_asks_about_what_the_plan_leaves_to_it() -> None:
    world = admin()
    table = world.table("s", "t", "own", ("old", "SELECT", "own"))
    state = with_(
        world.state,
        ties=(tie(world, "a", "pg_class", table.oid),),
        held=(held(world, "pg_class", "own", table.oid, ("old", "SELECT", "own")),),
    )
    changes = going(world, "old", sweep=True)
    (text,) = judged(world, changes, state)
    assert f"objects of own, whose privileges it does not have: thing {table.oid}" in text
    revoke = world.revoke(world.target("table", "s", [table], "own"), "old", "SELECT")
    assert judged(world, [revoke, *changes], state) == []


@pytest.mark.parametrize("version", [14, 15, 16, 18])
def test_superusers_are_dropped_by_superusers(version: int) -> None:
    world = admin(version)
    world.role("root", superuser=True)
    world.member("adm", "root", admin=True)
    (text,) = judged(world, going(world, "root"))
    assert "only a superuser may" in text
    by_root = World(version)
    by_root.role("root", superuser=True)
    assert judged(by_root, going(by_root, "root", terminate=True)) == []


def test_a_membership_that_would_be_a_circle_is_no_hint() -> None:
    world = World(17, executor="adm")
    world.role("adm", createrole=True)
    world.role("old")
    world.member("old", "adm")
    problems = drop_authority(going(world, "old", sweep=True), world.state, Powers(world.state))
    assert {problem.hint for problem in problems} == {"Run as a superuser."}
