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
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Sequence

from .belongings import OWNER
from .catalog.cluster import read_cluster
from .changes import Change, DropOwned, DropRole, Plan, ReassignOwned
from .diff.elsewhere import emptied_elsewhere, emptying_changes, only_there
from .diff.retirements import candidates
from .failure import Failure
from .policy import Policy
from .problems import Problem
from .records import replace
from .state import RoleRef, State
from .transaction import Settings, begin, commit, ending, run, take_turn

if TYPE_CHECKING:
    from psycopg import Connection

# The same postmaster: a host's name may lead to several servers, and a pooler's database to any.
_IDENTITY = "SELECT current_database(), (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8"


def by_database(plan: Plan) -> Dict[Optional[str], List[Change]]:
    """A plan's changes by the database in which they are made, in the order in which that happens; None is the
    connected one.
    """
    found: Dict[Optional[str], List[Change]] = {}
    for change in plan.changes:
        found.setdefault(getattr(change, "database", None), []).append(change)
    own = found.pop(None, [])
    return {**found, None: own}


def look_around(connection: Connection[Any], policy: Policy, state: State, settings: Settings) -> State:
    """The state with what other databases hold of roles that are to be emptied there.

    Reads only: one connection after the other, six round trips each, and none where no other database holds anything.
    """
    reading = replace(settings, check_mode=True, rehearse=False)
    elsewhere: Dict[str, State] = {}
    unread: Dict[str, str] = {}
    for database, refs in emptied_elsewhere(policy, state, candidates(policy, state)).items():
        try:
            with _begun(database, connection, reading) as other:
                elsewhere[database] = _read(other, database, refs, policy)
        except Failure as failure:
            unread[database] = failure.message
    return replace(state, elsewhere=elsewhere, unread=unread)


def empty(
    database: str,
    changes: Sequence[Change],
    sql: Sequence[str],
    connection: Connection[Any],
    plan: Plan,
    policy: Policy,
    state: State,
    settings: Settings,
) -> List[str]:
    """Make the plan's changes in one other database, and commit. Returns warnings. Raises Failure; then nothing of it
    is done.

    ``connection`` is the main one, which is only asked where it leads.
    """
    refs = emptied_elsewhere(policy, state, candidates(policy, state))[database]
    seen = state.elsewhere[database].belongings
    objects = {oid for ties in seen.ties if ties.how == OWNER for oid, _column in ties.objects}
    objects |= {ref.oid for ref in refs}
    try:
        with _begun(database, connection, settings) as other:
            take_turn(other, settings)
            now = _read(other, database, refs, policy).belongings
            planned = [change for change in changes if isinstance(change, (ReassignOwned, DropOwned))]
            if emptying_changes(database, now, plan.changes) != planned or now.onward != seen.onward:
                raise Failure("collision", "Another session changed what the plan is about, run again")
            run(other, sql, {}, sorted(objects))
            _verify(_read(other, database, refs, policy), plan)
            told = commit(other, settings, asked=True)
    except Failure as failure:
        raise failure.with_message(f"Database {database}: {failure.message}") from None
    return [f"database {database}: {warning}" for warning in told]


@contextmanager
def _begun(database: str, main: Connection[Any], settings: Settings) -> Iterator[Connection[Any]]:
    """A connection to another database of the same server, in a transaction; both end in the end. Raises Failure."""
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
            begin(other, settings)
            found = other.execute(_IDENTITY).fetchone()
            if expected is None or found != (database, expected[1]):
                raise Failure("connection_failed", "the connection leads to another server, or to another database")
            yield other
    finally:
        other.close()


def _read(connection: Connection[Any], database: str, refs: Sequence[RoleRef], policy: Policy) -> State:
    from .catalog.ties import read_belongings

    destroyed = [ref.oid for ref in refs if policy.retirements[ref.name].destroys]
    state = read_cluster(connection, [])
    found = read_belongings(connection, [ref.oid for ref in refs], destroyed)
    return replace(state, belongings=only_there(found, database))


def _verify(state: State, plan: Plan) -> None:
    """Raise Failure where the database still holds something of a dropped role: a run commits what it showed."""
    dropped = {change.role.oid for change in plan.changes if isinstance(change, DropRole)}
    problems = [
        Problem(
            role=state.ref(ties.role).name,
            object=f"database {state.server.database}",
            message=f"still there of {state.ref(ties.role).name}: {ties.count} in {ties.catalog}",
            code="not_converged",
        )
        for ties in state.belongings.ties
        if ties.role in dropped
    ]
    if problems:
        message = f"REASSIGN OWNED and DROP OWNED left something, so they were rolled back: {problems[0].message}"
        raise Failure("not_converged", message, problems=problems)


def cannot_rehearse(databases: Iterable[str]) -> Problem:
    """A rehearsal is rolled back as a whole, and cannot be where another database has to be committed first."""
    return Problem(
        path="rehearse",
        message=f"a rehearsal cannot try what all_databases commits in other databases: {', '.join(databases)}",
        hint="Check without rehearse, or rehearse without the retirements that have all_databases.",
        code="not_supported",
    )
