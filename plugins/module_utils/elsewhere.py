# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Other databases of the cluster, which a retirement with ``all_databases`` empties of its role first.

Each is emptied in a transaction of its own that is committed before the main transaction writes: two open transactions
that empty one role in two databases wait for each other, because both change the role's entries on shared objects.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from . import catalog
from .belongings import NAMED, OWNER, Belongings, Ties
from .changes import Change, DropOwned, DropRole, Plan, ReassignOwned
from .failure import Failure
from .policy import Policy
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

# The same postmaster: a host name may lead to several servers, and a pooler's database to any.
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
        if place.database not in self.databases:
            self.databases.append(place.database)
        self.changes.extend(place.changes)
        self.sql.extend(sql)


@dataclass(frozen=True)
class _Roles:
    """The roles that are emptied elsewhere, as the plan empties them in the connected database."""

    heirs: Mapping[int, ReassignOwned]
    drops: Mapping[int, DropOwned]
    #: The roles by the names of the databases that hold something of them.
    databases: Mapping[str, Tuple[RoleRef, ...]]


def look_around(
    connection: Connection[Any], plan: Plan, policy: Policy, state: State, settings: Settings
) -> Tuple[List[Place], List[Problem]]:
    """What is to be done in other databases, and what stands in the way there, read-only: one connection after the
    other, only to databases that hold something of a role, with three round trips each.
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
    if places and settings.check_mode and settings.rehearse:
        problems.append(_cannot_rehearse(places))
    return places, problems


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
    refs = roles.databases[place.database]
    try:
        with _opened(place.database, connection, settings) as other, ending(other):
            begin(other, settings)
            take_turn(other, settings)
            again, problems = _place(place.database, roles, catalog.read_belongings(other, dict(refs)), state)
            if problems or again.changes != place.changes:
                raise Failure("collision", "Another session changed what the plan is about, run again")
            run(other, sql, {}, place.objects)
            left = _there(place.database, catalog.read_belongings(other, dict(refs)))
            if left:
                raise _not_empty(left, dict(refs))
            told = commit(other, settings, asked=True)
    except Failure as failure:
        raise failure.with_message(f"Database {place.database}: {failure.message}") from None
    return [f"database {place.database}: {warning}" for warning in told]


def _roles(plan: Plan, policy: Policy, state: State) -> _Roles:
    here = state.server.database
    dropped = [change.role for change in plan.changes if isinstance(change, DropRole) and not change.claimed]
    wanted = {ref.oid: ref for ref in dropped if policy.retirements[ref.name].all_databases}
    heirs = {c.role.oid: c for c in plan.changes if isinstance(c, ReassignOwned) and c.database is None}
    drops = {c.role.oid: c for c in plan.changes if isinstance(c, DropOwned) and c.database is None}
    databases: Dict[str, Dict[int, RoleRef]] = {}
    for ties in state.belongings.ties:
        ref = wanted.get(ties.role)
        if ref is None or ties.database in (None, here) or ties.database in state.belongings.closed:
            continue
        if ref.oid in heirs or ref.oid in drops:
            databases.setdefault(str(ties.database), {})[ref.oid] = ref
    return _Roles(heirs, drops, {name: tuple(sorted(refs.values())) for name, refs in databases.items()})


@contextmanager
def _opened(database: str, main: Connection[Any], settings: Settings) -> Iterator[Connection[Any]]:
    """A connection to another database of the same server, closed in the end. Raises Failure."""
    try:
        database.encode()
    except UnicodeEncodeError:
        raise Failure("not_supported", "its name holds bytes that are not UTF-8") from None
    if settings.connect_to is None:
        raise Failure("connection_failed", "nobody knows how to connect to it")
    other: Connection[Any] = settings.connect_to(database)
    try:
        with ending(other):
            found = other.execute(_IDENTITY).fetchone()
        with ending(main):
            pass
        yield other
    finally:
        other.close()
