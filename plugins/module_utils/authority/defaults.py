# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Default privileges: whether the executor may change an owner's, itself or in the owner's name.

FOR ROLE takes a membership in the owner until PostgreSQL 15, and from 16 on one that is inherited
(ExecAlterDefaultPrivilegesStmt in aclchk.c).
"""

from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from ..changes import Change, GrantDefault, RevokeDefault
from ..problems import Problem
from ..records import replace
from ..state import RoleRef, State
from . import hints
from .powers import Powers, is_assumed


def authorize_defaults(changes: Sequence[Change], state: State, powers: Powers) -> Tuple[List[Change], List[Problem]]:
    """The changes, each with the role in whose name it runs, and a problem for each owner that is out of reach."""
    executor = state.ref(state.server.current_user)
    result: List[Change] = []
    problems: Dict[RoleRef, Problem] = {}
    for change in changes:
        if isinstance(change, (GrantDefault, RevokeDefault)):
            owner = change.owner
            if state.server.version >= 16:
                direct = powers.owns(executor.oid, owner.oid)
            else:
                direct = powers.can_set(executor.oid, owner.oid)
            if not direct and not is_assumed(owner.oid):
                if powers.can_become(owner.oid):
                    change = replace(change, run_as=owner)
                elif owner not in problems:
                    problems[owner] = hints.problem(
                        owner,
                        f"default privileges of {owner.name}",
                        f"{executor.name} may not change default privileges of {owner.name}, "
                        "whose privileges it does not have",
                        hints.membership(executor, owner, "inherit", state, powers),
                    )
        result.append(change)
    return result, list(problems.values())
