# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Whether a plan did what it says: the same pipeline again, before the commit, limited to what the plan could know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, FrozenSet, List, Optional, Sequence, Tuple

from .catalog.transactions import read_access
from .changes import Change, CreateRole, CreateSchema, Plan
from .diff.passwords import PasswordOptions, verifying
from .failure import Failure
from .filters import Options
from .inspection import inspect
from .plan import make_plan
from .policy import Policy
from .problems import Problem
from .protection import CODE as PROTECTED
from .records import replace
from .state import State
from .statements.order import statements

if TYPE_CHECKING:
    from psycopg import Connection


def verify(
    connection: Connection[Any],
    policy: Policy,
    options: Options,
    before: State,
    plan: Plan,
    passwords: PasswordOptions,
    ran: Sequence[str],
) -> None:
    """Read everything again, before the commit: nothing of the plan may be left to do. ``ran``: its statements.

    What appeared since the inspection is the next run's work. Raises Failure ``not_converged``.
    """
    passwords = verifying(passwords)
    state, scope, lookups = inspect(connection, policy, passwords, options)
    left = make_plan(policy, state, scope, lookups, options, passwords=passwords)
    if not left.problems and not left.plan.changes:
        return
    rest = only_known(left.plan, *_known(before, state, plan))
    sql = statements(rest.changes, {}, state.server.version)
    if not left.problems and not sql:
        return
    raise Failure(
        "not_converged",
        "After the plan was run something of it was still to do, so it was rolled back. "
        "This is a fault of the collection, or a trigger in the database undoes a part of the plan.",
        problems=[*left.problems, *(Problem(message=f"still to do: {text}", code="not_converged") for text in sql)],
        plan=list(ran),
    )


def _known(before: State, after: State, plan: Plan) -> Tuple[FrozenSet[int], FrozenSet[int]]:
    """The OIDs of objects and roles that the plan could know: those inspected first, and those that it made."""
    objects = {item.oid for group in before.groups for item in group.members.objects()}
    objects |= set(before.schemas) | set(before.databases)
    objects |= {item.oid for group in (*before.named, *after.named) for item in group.members.objects()}
    schemas = {change.name for change in plan.changes if isinstance(change, CreateSchema)}
    objects |= {schema.oid for schema in after.schemas.values() if schema.name in schemas}
    roles = {change.role.name for change in plan.changes if isinstance(change, CreateRole)}
    made = {role.oid for role in after.roles.values() if role.name in roles}
    return frozenset(objects), frozenset(set(before.roles) | made)


def check_access(connection: Connection[Any], session_role: Optional[str], sql: Sequence[str]) -> None:
    """Raise Failure where the login is locked out of this database, or out of its session_role, by something that the
    plan could not know (``protection.locked_out`` has looked at the plan).
    """
    connects, sets = read_access(connection, session_role)
    if connects and sets:
        return
    lost = f"set session_role {session_role}" if connects else "connect to this database"
    message = f"After the plan this login could not {lost} any more, so it was rolled back"
    problem = Problem(message=message, code=PROTECTED)
    raise Failure(PROTECTED, message, problems=[problem], plan=list(sql))


def only_known(plan: Plan, objects: FrozenSet[int], roles: FrozenSet[int]) -> Plan:
    """The plan without what is about objects or roles that an earlier inspection had not seen."""
    kept: List[Change] = []
    for change in plan.changes:
        limited = _limited(change, objects, roles)
        if limited is not None:
            kept.append(limited)
    return replace(plan, changes=tuple(kept))


def _limited(change: Change, objects: FrozenSet[int], roles: FrozenSet[int]) -> Optional[Change]:
    grantee = getattr(change, "grantee", None)
    if grantee is not None and grantee.oid > 0 and grantee.oid not in roles:
        return None
    target = getattr(change, "target", None)
    if target is None:
        return change
    known = tuple(item for item in target.objects if item.oid in objects)
    return replace(change, target=target._replace(objects=known)) if known else None
