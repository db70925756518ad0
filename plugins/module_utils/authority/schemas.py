# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Schemas: in whose name they are created and handed over, and which nobody here may (schemacmds.c in PostgreSQL).

Whoever does it needs CREATE on the database and has to be able to become the owner, who needs nothing.
"""

from __future__ import annotations

from typing import List, Sequence, Tuple, Union

from ..changes import AlterSchemaOwner, Change, CreateSchema
from ..problems import Problem
from ..records import replace
from ..state import RoleRef, State
from . import hints
from .powers import Powers, is_assumed


def authorize_schemas(changes: Sequence[Change], state: State, powers: Powers) -> Tuple[List[Change], List[Problem]]:
    """The changes, each with the role in whose name it runs, and what is missing for those that nobody here may make.

    ``powers`` are those with the plan's memberships and before its grants.
    """
    result: List[Change] = []
    problems: List[Problem] = []
    executor = state.ref(state.server.current_user)
    for change in changes:
        if not isinstance(change, (CreateSchema, AlterSchemaOwner)):
            result.append(change)
            continue
        owners = [change.before, change.owner] if isinstance(change, AlterSchemaOwner) else [change.owner]
        stand_ins = [executor, *(owner for owner in owners if owner is not None and powers.can_become(owner.oid))]
        doer = next((role for role in stand_ins if not _missing(change, role, state, powers)), None)
        if doer is None:
            problems.append(_problem(change, state, powers))
        result.append(change if doer in (None, executor) else replace(change, run_as=doer))
    return result, problems


def _missing(
    change: Union[CreateSchema, AlterSchemaOwner], role: RoleRef, state: State, powers: Powers
) -> List[Tuple[str, str]]:
    """What the role lacks to do it itself, each with what would help."""
    missing: List[Tuple[str, str]] = []
    database = state.server.database
    if not powers.creates_schemas(role.oid):
        hint = hints.compose("GRANT CREATE ON DATABASE {} TO {}", database, role)
        missing.append((f"it has no CREATE on database {database}", hint))
    if isinstance(change, AlterSchemaOwner) and not powers.owns(role.oid, change.before.oid):
        hint = hints.membership(role, change.before, "inherit", state, powers)
        missing.append((f"it does not have the privileges of {change.before.name}, who owns it", hint))
    owner = change.owner
    if owner is None:
        if role.oid != state.server.current_user:
            missing.append(("it would own it", ""))
    elif not is_assumed(owner.oid) and not powers.can_set(role.oid, owner.oid):
        missing.append((f"it may not become {owner.name}", hints.membership(role, owner, "set", state, powers)))
    return missing


def _problem(change: Union[CreateSchema, AlterSchemaOwner], state: State, powers: Powers) -> Problem:
    executor = state.ref(state.server.current_user)
    missing = _missing(change, executor, state, powers)
    helps = list(dict.fromkeys(hint for _why, hint in missing))
    what = f"create schema {change.name}"
    if isinstance(change, AlterSchemaOwner):
        what = f"make {change.owner.name} the owner of schema {change.name}"
    elif change.owner is not None and change.owner != executor:
        what += f" for {change.owner.name}"
    return hints.problem(
        change.owner,
        f"schema {change.name}",
        f"{executor.name} may not {what}: {' and '.join(why for why, _hint in missing)}",
        hints.SUPERUSER if hints.SUPERUSER in helps else "; ".join(helps),
        change.source,
    )
