# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Other databases of the cluster, which a retirement with ``all_databases`` empties of its role first.

Each is emptied in a transaction of its own that is committed before the main transaction writes: two open transactions
that empty one role in two databases wait for each other, because both change the role's entries on shared objects.

What the role has or granted on shared objects, and memberships that it granted, go with the first of these
transactions. So what the plan does about them moves there too.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, AbstractSet, Any, Dict, Iterator, List, Mapping, Sequence, Set, Tuple, Union

from . import catalog
from .belongings import NAMED, OWNER, Belongings, Ties
from .changes import AddMember, Change, DropOwned, DropRole, Grant, Plan, ReassignOwned, RemoveMember, Revoke
from .diff.retirements import retirement_warnings
from .failure import Failure
from .policy import Policy
from .privileges import SHARED_KINDS
from .problems import Problem
from .state import FIRST_ASSUMED, RoleRef, State
from .transaction import Settings, begin, commit, ending, run, take_turn

if TYPE_CHECKING:
    from psycopg import Connection

#: Rows that belong to a role without being objects: DROP OWNED takes them away and REASSIGN OWNED leaves them alone
#: (shdepReassignOwned in PostgreSQL's pg_shdepend.c).
_NO_OBJECTS = frozenset({"pg_default_acl", "pg_user_mapping"})

#: Catalogs that all databases share: what a role granted there is judged with the connected database.
_SHARED = frozenset({"pg_database", "pg_tablespace", "pg_parameter_acl", "pg_auth_members", "pg_authid"})

# The same postmaster: a host's name may lead to several servers, and a pooler's database to any.
_IDENTITY = "SELECT current_database(), (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8"


@dataclass(frozen=True)
class Place:
    """A database and what is to be done there. ``objects``: the OIDs of what the roles own there."""

    database: str
    changes: Tuple[Change, ...]
    objects: Tuple[int, ...] = ()


@dataclass
class Done:
    """What is committed in other databases, whatever becomes of the rest of the run."""

    databases: List[str] = field(default_factory=list)
    changes: List[Change] = field(default_factory=list)
    sql: List[str] = field(default_factory=list)

    def add(self, place: Place, sql: Sequence[str]) -> None:
        """Take note of a commit."""
        if place.database not in self.databases:
            self.databases.append(place.database)
        self.changes.extend(place.changes)
        self.sql.extend(sql)


@dataclass(frozen=True)
class _Roles:
    """The roles that are emptied elsewhere, and how: as the plan empties them in the connected database.

    ``databases``: those that hold something of them, each with whose.
    """

    heirs: Mapping[int, ReassignOwned]
    drops: Mapping[int, DropOwned]
    databases: Mapping[str, Tuple[RoleRef, ...]]


def look_around(
    connection: Connection[Any], plan: Plan, policy: Policy, state: State, settings: Settings
) -> Tuple[Plan, List[Place], List[Problem]]:
    """The plan with what is to be done in other databases, the same by database, and what stands in the way there.

    Reads only: one connection after the other, and only to databases that hold something of a role.
    """
    roles = _roles(plan, policy, state)
    places: List[Place] = []
    problems: List[Problem] = []
    for database, refs in sorted(roles.databases.items()):
        try:
            with _opened(database, connection, settings) as other, ending(other):
                begin(other, replace(settings, check_mode=True, rehearse=False))
                found = catalog.read_belongings(other, dict(refs))
        except Failure as failure:
            problems.append(_unreachable(database, refs, failure))
            continue
        place, wrong = _place(database, roles, found, state)
        problems += wrong
        if place.changes:
            places.append(place)
    if not places:
        return plan, [], problems
    if settings.check_mode and settings.rehearse:
        problems.append(_cannot_rehearse(places))
    plan, places = _with_shared(plan, places, state)
    there = [change for place in places for change in place.changes]
    warnings = (*plan.warnings, *retirement_warnings(there, ()))
    return replace(plan, changes=(*there, *plan.changes), warnings=warnings), places, problems


def empty(
    place: Place,
    sql: Sequence[str],
    connection: Connection[Any],
    plan: Plan,
    policy: Policy,
    state: State,
    settings: Settings,
) -> List[str]:
    """Do what is to be done in one database, and commit. Returns warnings. Raises Failure; then nothing of it is done.

    ``connection`` is the main one, which is only asked where it leads.
    """
    roles = _roles(plan, policy, state)
    refs = dict(roles.databases[place.database])
    try:
        with _opened(place.database, connection, settings) as other, ending(other):
            begin(other, settings)
            take_turn(other, settings)
            now, problems = _place(place.database, roles, catalog.read_belongings(other, refs), state)
            if problems or now.changes != _emptying(place.changes):
                raise Failure("collision", "Another session changed what the plan is about, run again")
            run(other, sql, {}, place.objects)
            _verify(place.database, catalog.read_belongings(other, refs), refs)
            told = commit(other, settings, asked=True)
    except Failure as failure:
        raise failure.with_message(f"Database {place.database}: {failure.message}") from None
    return [f"database {place.database}: {warning}" for warning in told]


def _roles(plan: Plan, policy: Policy, state: State) -> _Roles:
    dropped = [change.role for change in plan.changes if isinstance(change, DropRole) and not change.claimed]
    wanted = {ref.oid: ref for ref in dropped if policy.retirements[ref.name].all_databases}
    heirs = {c.role.oid: c for c in plan.changes if isinstance(c, ReassignOwned) and c.database is None}
    drops = {c.role.oid: c for c in plan.changes if isinstance(c, DropOwned) and c.database is None}
    holding: Dict[str, Set[int]] = {}
    for ties in state.belongings.ties:
        here = ties.database is None or ties.database == state.server.database
        if here or ties.database in state.belongings.closed:
            continue
        if ties.role in heirs or ties.role in drops:
            holding.setdefault(str(ties.database), set()).add(ties.role)
    databases = {name: tuple(ref for oid, ref in wanted.items() if oid in oids) for name, oids in holding.items()}
    return _Roles(heirs, drops, {name: refs for name, refs in databases.items() if refs})


@contextmanager
def _opened(database: str, main: Connection[Any], settings: Settings) -> Iterator[Connection[Any]]:
    """A connection to another database of the same server, closed in the end. Raises Failure."""
    try:
        database.encode()
    except UnicodeEncodeError:
        raise Failure("not_supported", "its name holds bytes that are not UTF-8") from None
    if settings.connect_to is None:
        raise Failure("connection_failed", "nobody knows how to connect to it")
    expected = main.execute(_IDENTITY).fetchone()
    other: Connection[Any] = settings.connect_to(database)
    try:
        with ending(other):
            found = other.execute(_IDENTITY.replace("pg_postmaster", "pg_catalog.pg_postmaster")).fetchone()
        if expected is None or found != (database, expected[1]):
            raise Failure("connection_failed", "a connection to it leads to another server or another database")
        yield other
    finally:
        other.close()


def _unreachable(database: str, refs: Sequence[RoleRef], failure: Failure) -> Problem:
    shown = database.encode("utf-8", "backslashreplace").decode()
    names = ", ".join(ref.name for ref in refs)
    return Problem(
        role=refs[0].name if len(refs) == 1 else None,
        object=f"database {shown}",
        message=f"the database {shown} holds something of {names}, and a look into it failed: {failure.message}",
        hint="Let this login connect to it, or empty the role there by hand (REASSIGN OWNED, DROP OWNED).",
        code="drop_blocked",
    )


def _cannot_rehearse(places: Sequence[Place]) -> Problem:
    names = ", ".join(place.database for place in places)
    return Problem(
        path="rehearse",
        message=f"a rehearsal cannot try what all_databases commits in other databases first: {names}",
        hint="Check without rehearse, or rehearse without the retirements that have all_databases.",
        code="not_supported",
    )


# ---- what is to be done in a database --------------------------------------------------------------------------------


def _place(database: str, roles: _Roles, found: Belongings, state: State) -> Tuple[Place, List[Problem]]:
    """How the roles that a database holds something of are emptied there, judged by what was read in it."""
    reassigned: List[Change] = []
    dropped: List[Change] = []
    problems: List[Problem] = []
    objects: Set[int] = set()
    ties = _there(database, found)
    for ref in roles.databases[database]:
        mine = [one for one in ties if one.role == ref.oid]
        owned = [one for one in mine if one.how == OWNER and one.catalog not in _NO_OBJECTS]
        objects.update(oid for one in owned for oid, _column in one.objects)
        heir, drop = roles.heirs.get(ref.oid), roles.drops.get(ref.oid)
        if heir is not None and owned:
            reassigned.append(replace(heir, database=database))
            if FIRST_ASSUMED < heir.heir.oid < 0:
                problems.append(_heir_missing(heir, database))
        if drop is not None and mine:
            labels = [label for one in owned for label in one.labels] if heir is None else []
            dropped.append(
                replace(
                    drop,
                    policies=found.policies.get(ref.oid, ()),
                    destroyed=tuple(labels[:NAMED]),
                    destroyed_count=sum(one.count for one in owned) if heir is None else 0,
                    database=database,
                )
            )
    problems += _granted_onward(database, roles, found, ties, state)
    return Place(database, (*reassigned, *dropped), tuple(sorted(objects))), problems


def _there(database: str, found: Belongings) -> List[Ties]:
    return [ties for ties in found.ties if ties.database == database]


def _heir_missing(change: ReassignOwned, database: str) -> Problem:
    return Problem(
        path=f"{change.source}.reassign_owned_to",
        role=change.heir.name,
        message=f"{change.role.name} owns something in the database {database}, which is emptied before this run "
        f"creates {change.heir.name}: with all_databases, reassign_owned_to must exist already",
        hint="Create the role in a run of its own first.",
        code="object_missing",
    )


def _granted_onward(
    database: str, roles: _Roles, found: Belongings, ties: Sequence[Ties], state: State
) -> List[Problem]:
    """What a role granted onto others on objects of somebody else: DROP OWNED takes it along, and only that database's
    manifest can say who grants it again.
    """
    own = {
        (one.catalog, oid)
        for one in ties
        if one.how == OWNER
        for oid, _column in one.objects
        if one.role in roles.drops or one.role in roles.heirs
    }
    return [
        Problem(
            path=roles.drops[entry.grantor].source,
            role=state.ref(entry.grantee).name,
            object=entry.label,
            message=f"{state.ref(entry.grantor).name} granted {', '.join(entry.privileges)} on {entry.label} in the "
            f"database {database} to {state.ref(entry.grantee).name}, who would lose it with DROP OWNED",
            hint="Grant it there in the owner's name first, or revoke it.",
            code="dependent_privileges",
        )
        for entry in found.onward
        if entry.grantor in roles.drops
        and entry.grantee not in roles.drops
        and entry.catalog not in _SHARED
        and (entry.catalog, entry.oid) not in own
    ]


def _verify(database: str, found: Belongings, roles: Mapping[int, str]) -> None:
    """Raise Failure where a database still holds something of the roles: a run commits what it showed."""
    left = _there(database, found)
    if not left:
        return
    problems = [
        Problem(
            role=roles[ties.role],
            object=f"database {database}",
            message=f"still there of {roles[ties.role]}: {ties.count} in {ties.catalog}",
            code="not_converged",
        )
        for ties in left
    ]
    message = f"After REASSIGN OWNED and DROP OWNED something was still there: {problems[0].message}"
    raise Failure("not_converged", message, problems=problems)


# ---- shared objects and memberships ----------------------------------------------------------------------------------


def _emptying(changes: Sequence[Change]) -> Tuple[Change, ...]:
    return tuple(change for change in changes if isinstance(change, (ReassignOwned, DropOwned)))


def _with_shared(plan: Plan, places: Sequence[Place], state: State) -> Tuple[Plan, List[Place]]:
    """The plan and the places once what the first place would take along has moved there.

    The order stays: in the place as in the plan, statements about roles and privileges come before those that empty a
    role.
    """
    changes = [change for place in places for change in place.changes]
    emptied = {change.role.oid for change in changes if isinstance(change, (ReassignOwned, DropOwned))}
    swept = {change.role.oid for change in changes if isinstance(change, DropOwned)}
    moved = _Moved.of(state, emptied, swept)
    first = places[0]
    ahead: List[Change] = []
    left: List[Change] = []
    for change in plan.changes:
        if isinstance(change, (AddMember, RemoveMember, Grant, Revoke)) and moved.takes(change):
            ahead.append(replace(change, database=first.database))
        else:
            left.append(change)
    there = replace(first, changes=(*ahead, *first.changes))
    return replace(plan, changes=tuple(left)), [there, *places[1:]]


@dataclass(frozen=True)
class _Moved:
    """``groups``: those in which a role granted memberships, which DROP OWNED deletes (PostgreSQL 16). ``objects``:
    shared ones that a role owns or has an entry on.
    """

    groups: AbstractSet[int]
    objects: AbstractSet[Tuple[str, int]]

    @classmethod
    def of(cls, state: State, emptied: AbstractSet[int], swept: AbstractSet[int]) -> _Moved:
        """What roles that are emptied elsewhere, and of these the ``swept`` ones by DROP OWNED, take along."""
        groups = {row.group for row in state.memberships if row.grantor in swept and state.server.version >= 16}
        objects: Set[Tuple[str, int]] = set()
        for database in state.databases.values():
            touched = {oid for entry in database.acl.entries for oid in (entry.grantee, entry.grantor)}
            if database.owner in emptied or touched & swept:
                objects.add(("database", database.oid))
        for group in state.named:
            touched = {oid for entry in group.acl.entries for oid in (entry.grantee, entry.grantor)}
            if group.kind in SHARED_KINDS and (group.owner in emptied or touched & swept):
                objects.update((group.kind, item.oid) for item in group.members.objects())
        return cls(groups, objects)

    def takes(self, change: Union[AddMember, RemoveMember, Grant, Revoke]) -> bool:
        """Whether the change has to come first. What is about a role that the plan creates cannot."""
        if isinstance(change, RemoveMember):
            return change.group.oid in self.groups
        if isinstance(change, AddMember):
            return change.exists and change.group.oid in self.groups
        shared = any((change.target.kind, item.oid) in self.objects for item in change.target.objects)
        return shared and change.grantee.oid >= 0 and (change.run_as is None or change.run_as.oid > 0)
