# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""How many locks the transactions of a plan hold until they end, and whether the server's lock table has room for them.

What locks what is measured with pg_locks on PostgreSQL 14 to 18 (tests/server/test_lock_table.py). One object takes one
place in the table, however often and in whatever mode it is locked. Left out is what does not grow with the plan: the
turn, the transaction itself and some catalogs.

The table is made for max_locks_per_transaction * (max_connections + max_prepared_transactions) locks of all sessions
together. It really has room for processes that are no connections too, and it grows into spare shared memory: 53200
came at 1.65 times that number with 500 connections, at 1.85 (14) to 2.33 (18) times with 100, and far later on servers
with a few connections only. Places that the table does not need, because each session keeps some weak locks on
relations to itself (16 before 18, then max_locks_per_transaction rounded up to a power of two), are not counted on.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from .belongings import OWNER, POLICY, Belongings
from .changes import (
    AddMember,
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
)
from .failure import Failure
from .privileges import PUBLIC_OID
from .problems import Problem
from .records import dataclass
from .state import LockTable, RoleRef, State
from .statements.privileges import LOCKS_NAMED_OBJECTS
from .statements.statement import Statement

CODE = "too_many_locks"

#: From this version on CREATE ROLE, and GRANT and REVOKE of memberships, lock the role or group.
_LOCKS_GROUPS = 16

#: Kinds of objects that share a catalog, and so their OIDs.
_RELATIONS = dict.fromkeys(("table", "view", "materialized_view", "sequence"), "pg_class")

#: The step in which max_locks_per_transaction is proposed.
_STEP = 16


@dataclass(frozen=True)
class Locks:
    """The locks of one transaction. ``named``: objects in GRANT and REVOKE. ``moved``: relations that REASSIGN OWNED
    hands over. ``destroyed``: objects that DROP OWNED destroys. ``others``: roles, default privileges, policies.
    """

    named: int = 0
    moved: int = 0
    destroyed: int = 0
    others: int = 0

    @property
    def total(self) -> int:
        return self.named + self.moved + self.destroyed + self.others

    def __str__(self) -> str:
        parts = (
            (self.named, "objects named in GRANT and REVOKE"),
            (self.moved, "tables, indexes and other relations that REASSIGN OWNED hands over"),
            (self.destroyed, "objects that DROP OWNED destroys, with what they consist of"),
            (self.others, "roles, default privileges and policies"),
        )
        return ", ".join(f"{count} for {what}" for count, what in parts if count)


def locks_of(statements: Sequence[Statement], changes: Iterable[Change], state: State) -> Mapping[Optional[str], Locks]:
    """The locks that a plan takes in each database; None is the connected one."""
    places: Dict[Optional[str], List[Change]] = {}
    for change in changes:
        places.setdefault(getattr(change, "database", None), []).append(change)
    named: Dict[Optional[str], Set[Tuple[str, int]]] = {place: set() for place in places}
    if state.server.version >= LOCKS_NAMED_OBJECTS:
        _name(statements, named)
    found: Dict[Optional[str], Locks] = {}
    for place, there in places.items():
        belongings = state.belongings if place is None else state.elsewhere[place].belongings
        database = state.server.database if place is None else place
        found[place] = _in_one_database(there, named[place], belongings, database, state.server.version)
    return found


def _name(statements: Sequence[Statement], named: Mapping[Optional[str], Set[Tuple[str, int]]]) -> None:
    """Add what GRANT and REVOKE name."""
    seen: Set[Tuple[int, Optional[str]]] = set()
    for statement in statements:
        if statement.whole:
            continue
        for change in statement.changes:
            # Many grantees are given the same objects, and many statements share a change.
            if not isinstance(change, (Grant, Revoke)) or (id(change.target.objects), statement.database) in seen:
                continue
            seen.add((id(change.target.objects), statement.database))
            kind = change.target.kind
            if kind != "parameter":  # which is not locked
                catalog = _RELATIONS.get(kind, kind)
                named[statement.database].update((catalog, item.oid) for item in change.target.objects)


def _in_one_database(
    changes: Iterable[Change], named: Set[Tuple[str, int]], belongings: Belongings, database: str, version: int
) -> Locks:
    roles: Set[RoleRef] = set()
    entries = moved = destroyed = 0
    for change in changes:
        roles.update(ref for ref in _roles_of(change, version) if ref.oid != PUBLIC_OID)
        if isinstance(change, LendUsage):
            entries += version >= LOCKS_NAMED_OBJECTS  # the schema
        elif isinstance(change, ReassignOwned):
            moved += belongings.moved.get(change.role.oid, 0)
            if named:
                named = named.difference(_relations(change.role, belongings))
        elif isinstance(change, DropOwned):
            if change.destroyed_count:
                destroyed += belongings.gone.get(change.role.oid, 0)
            entries += _swept(change.role, belongings, database)
    return Locks(len(named), moved, destroyed, len(roles) + entries)


def _relations(role: RoleRef, belongings: Belongings) -> Iterator[Tuple[str, int]]:
    for ties in belongings.ties:
        if (ties.role, ties.how, ties.catalog) == (role.oid, OWNER, "pg_class"):
            yield from ((ties.catalog, oid) for oid, _column in ties.objects)


def _swept(role: RoleRef, belongings: Belongings, database: str) -> int:
    """What DROP OWNED locks of a role's rows that are no objects of its own; taking privileges away locks nothing."""
    found = 0
    for ties in belongings.ties:
        if ties.role == role.oid and ties.database == database:
            if ties.catalog in ("pg_default_acl", "pg_user_mapping"):
                found += ties.count
            elif ties.how == POLICY:
                found += 2 * ties.count  # its table as well
    return found


def _roles_of(change: Change, version: int) -> Sequence[RoleRef]:
    """The roles that a change locks, so that nobody drops them meanwhile."""
    if isinstance(change, Grant):
        return (change.grantee,)
    if isinstance(change, (GrantDefault, RevokeDefault)):
        return (change.owner, change.grantee)
    if isinstance(change, (CommentRole, SetConfig, LendUsage, DropRole)):
        return (change.role,)
    if isinstance(change, (CreateSchema, AlterSchemaOwner)):
        return () if change.owner is None else (change.owner,)
    if isinstance(change, ReassignOwned):
        return (change.heir,)
    if version >= _LOCKS_GROUPS and isinstance(change, CreateRole):
        return (change.role,)
    if version >= _LOCKS_GROUPS and isinstance(change, (AddMember, RemoveMember)):
        return (change.group,)
    return ()


# ---- judged ----------------------------------------------------------------------------------------------------------


def lock_problems(found: Mapping[Optional[str], Locks], table: LockTable) -> List[Problem]:
    """The transactions that the lock table has no room for: above twice what it is made for."""
    return [
        Problem(
            object=None if place is None else f"database {place}",
            message=f"{_taken(place, locks)}, and {_made_for(table)}",
            hint=_hint(found, table),
            code=CODE,
        )
        for place, locks in found.items()
        if locks.total > 2 * table.locks
    ]


def lock_warnings(found: Mapping[Optional[str], Locks], table: LockTable) -> List[str]:
    """The transactions that there is room for only while other sessions hold few locks: above half of it."""
    return [
        f"{_taken(place, locks)}, and {_made_for(table)}: where other sessions need many, this run or theirs fails "
        f"(out of shared memory). max_locks_per_transaction = {_enough(found, table)} and a restart make room"
        for place, locks in found.items()
        if table.locks < 2 * locks.total <= 4 * table.locks
    ]


@contextmanager
def explained(found: Mapping[Optional[str], Locks], place: Optional[str], table: LockTable) -> Iterator[None]:
    """Let a failure of the server for want of locks say how many the plan takes."""
    try:
        yield
    except Failure as failure:
        # The same SQLSTATE can mean that a process has no memory, which is no matter of locks.
        if failure.code != CODE or "max_locks_per_transaction" not in (failure.hint or ""):
            raise
        taken = _taken(place, found.get(place, Locks()))
        said = f"{taken}; {_made_for(table)}, and other sessions hold the rest. {_hint(found, table)}"
        raise failure.with_hint(said[0].upper() + said[1:]) from None


def _taken(place: Optional[str], locks: Locks) -> str:
    where = "" if place is None else f" in database {place}"
    return f"the plan takes about {locks.total} locks in one transaction{where} ({locks})"


def _made_for(table: LockTable) -> str:
    return (
        f"the server's lock table is made for {table.locks} of all sessions together (max_locks_per_transaction = "
        f"{table.each}, times max_connections + max_prepared_transactions = {table.transactions})"
    )


def _enough(found: Mapping[Optional[str], Locks], table: LockTable) -> int:
    """The value of max_locks_per_transaction with which the plan takes at most half of the table, and more than the
    present one.
    """
    most = max((locks.total for locks in found.values()), default=0)
    steps = -(-2 * most // (table.transactions * _STEP))
    return max(steps * _STEP, table.each // _STEP * _STEP + _STEP)


def _hint(found: Mapping[Optional[str], Locks], table: LockTable) -> str:
    most = max(found.values(), key=lambda locks: locks.total, default=Locks())
    parts = "apply the manifest in parts, a few schemas at a time"
    if most.moved + most.destroyed > most.named:
        parts = "first hand over or drop a part of what the role owns by hand"
    return (
        f"Set max_locks_per_transaction to {_enough(found, table)} or more and restart the server, its standbys first; "
        f"or {parts}."
    )
