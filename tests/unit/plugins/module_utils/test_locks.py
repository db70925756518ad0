# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The locks that a plan takes, and what is said where the server's lock table is small for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping, Optional

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.belongings import Belongings, Ties
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    Change,
    CommentRole,
    CreateRole,
    CreateSchema,
    DropOwned,
    DropRole,
    Grant,
    GrantDefault,
    LendUsage,
    ReassignOwned,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetConfig,
    Target,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.failure import Failure
from ansible_collections.pg_access.reconcile.plugins.module_utils.locks import (
    Locks,
    explained,
    lock_problems,
    lock_warnings,
    locks_of,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import Problem
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import PUBLIC_REF, LockTable, Object, RoleRef
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements import composed_statements
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World

pytest.importorskip("psycopg")

A, B, O = RoleRef(1, "a"), RoleRef(2, "b"), RoleRef(3, "o")  # noqa: E741
TABLE = LockTable(10, 20)


def target(kind: str = "table", number: int = 1, first: int = 100, schema: Optional[str] = "s", **more: Any) -> Target:
    return Target(kind, schema, tuple(Object(first + n, f"x{first + n}") for n in range(number)), O, **more)


def grant(on: Target, grantee: RoleRef = A, *privileges: str, **more: Any) -> Grant:
    return Grant(on, grantee, frozenset(privileges or ("SELECT",)), **more)


def taken(*changes: Change, version: int = 18, inventory: Any = (), **found: Any) -> Mapping[Optional[str], Locks]:
    state = World(version).state
    state = replace(state, **found)
    return locks_of(composed_statements(changes, dict(inventory), version), changes, state)


def owned(role: RoleRef, *oids: int, catalog: str = "pg_class", how: str = "o", database: str = "app") -> Ties:
    return Ties(role.oid, how, catalog, database, len(oids), tuple((oid, 0) for oid in oids))


# ---- counted ---------------------------------------------------------------------------------------------------------


def test_an_object_is_counted_once_whatever_is_done_to_it() -> None:
    on = target(number=3)
    changes = (
        grant(on),
        grant(on, B, "INSERT"),
        Revoke(on, A, frozenset(("DELETE",)), O),
        grant(target(columns=("c",)), B),
        grant(target("view", 2, first=101), B),
        grant(target("function", 2), A, "EXECUTE"),
        grant(target("schema", schema=None), A, "USAGE"),
        grant(target("parameter", schema=None), A, "SET"),
    )
    assert taken(*changes) == {None: Locks(named=3 + 2 + 1, others=2)}
    assert taken(*changes, version=17) == {None: Locks(others=2)}


def test_public_and_what_another_statement_does_take_nothing() -> None:
    covered = Revoke(target(), A, frozenset(("SELECT",)), O, covered=True)
    assert taken(covered, grant(target(first=200), PUBLIC_REF)) == {None: Locks(named=1)}


def test_whole_schemas_are_not_counted_and_those_who_are_named_beside_them_are() -> None:
    changes = (grant(target(number=9)), grant(target(first=200), A, "SELECT", "INSERT"))
    assert taken(*changes, inventory={("TABLES", "s"): 10}) == {None: Locks(named=1, others=1)}
    assert taken(*changes, inventory={("TABLES", "s"): 11}) == {None: Locks(named=10, others=1)}


@pytest.mark.parametrize(
    ("change", "before_16", "since"),
    [
        (CreateRole(A, {}, ""), 0, 1),
        (AlterRole(A, {"login": True}, {"login": False}, frozenset(), ""), 0, 0),
        (CommentRole(A, "x", None, ""), 1, 1),
        (SetConfig(A, "work_mem", ("1MB",), None, ""), 1, 1),
        (AddMember(A, B, {}, ""), 0, 1),
        (RemoveMember(A, B, None), 0, 1),
        (CreateSchema("n", None, ""), 0, 0),
        (CreateSchema("n", A, ""), 1, 1),
        (AlterSchemaOwner(50, "s", A, O, ""), 1, 1),
        (GrantDefault(O, "s", "table", A, frozenset(("SELECT",))), 2, 2),
        (RevokeDefault(O, "s", "table", PUBLIC_REF, frozenset(("SELECT",))), 1, 1),
        (LendUsage(A, "s"), 1, 2),
        (DropRole(A, ""), 1, 1),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, int) else "",
)
def test_roles_are_locked(change: Change, before_16: int, since: int) -> None:
    assert taken(change, version=15)[None].total == before_16
    assert taken(change)[None].total == since


def test_possessions_are_counted_with_what_they_consist_of() -> None:
    found = Belongings(
        ties=(
            owned(A, 100, 101, 102),
            owned(A, 1, catalog="pg_default_acl"),
            owned(A, 2, catalog="pg_default_acl", how="a"),
            owned(A, 3, catalog="pg_policy", how="r"),
            owned(A, 4, catalog="pg_user_mapping"),
            owned(A, 5, 6, catalog="pg_class", how="a"),
            owned(A, 7, catalog="pg_default_acl", database="other"),
        ),
        moved={A.oid: 12, B.oid: 999},
        gone={A.oid: 20},
    )
    handed = (ReassignOwned(A, O, ""), DropOwned(A, ""), DropRole(A, ""))
    assert taken(*handed, version=14, belongings=found) == {None: Locks(moved=12, others=5 + 2)}
    # What is named and handed over is one lock.
    named = grant(target(number=2, first=102), B)
    assert taken(named, *handed, belongings=found) == {None: Locks(named=1, moved=12, others=5 + 3)}
    gone = (DropOwned(A, "", destroyed_count=3), DropRole(A, ""))
    assert taken(*gone, belongings=found) == {None: Locks(destroyed=20, others=5 + 1)}


def test_each_database_is_counted_by_itself() -> None:
    world = World(18)
    here, there = world.state, World(18).state
    there = replace(there, belongings=Belongings(ties=(owned(A, 100, database="x"),), moved={A.oid: 7}))
    shared = target("database", schema=None)
    changes = (
        ReassignOwned(A, O, ""),
        ReassignOwned(A, O, "", database="x"),
        grant(shared, B, "CONNECT"),
        replace(grant(shared, B, "CONNECT"), database="x"),
    )
    found = locks_of(
        composed_statements(changes, {}, 18),
        changes,
        replace(here, belongings=Belongings(moved={A.oid: 3}), elsewhere={"x": there}),
    )
    assert found == {None: Locks(named=1, moved=3, others=2), "x": Locks(named=1, moved=7, others=2)}


# ---- judged ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "warned", "refused"),
    [(100, False, False), (101, True, False), (400, True, False), (401, False, True), (40000, False, True)],
)
def test_above_half_is_a_warning_and_above_twice_an_error(number: int, warned: bool, refused: bool) -> None:
    found = {None: Locks(named=number)}
    assert bool(lock_warnings(found, TABLE)) is warned
    problems = lock_problems(found, TABLE)
    assert bool(problems) is refused
    assert {problem.code for problem in problems} <= {"too_many_locks"}


@pytest.mark.parametrize(("number", "value"), [(401, 48), (480, 48), (481, 64), (20_000, 2000), (20_001, 2016)])
def test_the_setting_that_is_named_is_enough(number: int, value: int) -> None:
    found = {None: Locks(moved=number)}
    (problem,) = lock_problems(found, TABLE)
    assert f"Set max_locks_per_transaction to {value} or more" in str(problem.hint)
    assert not lock_warnings(found, LockTable(value, TABLE.transactions))
    assert lock_warnings(found, LockTable(value - 16, TABLE.transactions)) or value - 16 < TABLE.each


def test_the_hint_is_about_what_there_is_most_of() -> None:
    named, owned_objects = lock_problems({None: Locks(named=500)}, TABLE), lock_problems({"x": Locks(moved=500)}, TABLE)
    assert "a few schemas at a time" in str(named[0].hint) and named[0].object is None
    assert "by hand" in str(owned_objects[0].hint) and owned_objects[0].object == "database x"
    assert "500 locks in one transaction in database x (500 for tables" in owned_objects[0].message


def test_the_servers_own_refusal_is_explained() -> None:
    own = 'You might need to increase "max_locks_per_transaction".'

    def refused(code: str, hint: str, locks: Mapping[Optional[str], Locks]) -> Failure:
        with pytest.raises(Failure) as caught, explained(locks, None, TABLE):
            raise Failure(
                code, "no", problems=[Problem(message="no", hint=hint, code=code)], hint=hint, sqlstate="53200"
            )
        return caught.value

    found = {None: Locks(named=150)}
    failure = refused("too_many_locks", own, found)
    assert failure.hint is not None
    assert failure.hint.startswith("The plan takes about 150 locks in one transaction (150 for objects named")
    assert "Set max_locks_per_transaction to 16 or more" in failure.hint
    assert failure.sqlstate == "53200" and failure.problems[0].hint == failure.hint
    # A plan that takes little: the others do.
    assert "to 16 or more" in str(refused("too_many_locks", own, {}).hint)
    # A process without memory is no matter of locks, and neither is anything else.
    assert refused("too_many_locks", "", found).hint == ""
    assert refused("server_error", own, found).hint == own
