# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What stops an apply although the plan could be run: somebody may depend on what it takes away.

A check run shows the same as a warning, beside the plan.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Optional, Tuple

from .authority import Powers
from .changes import AlterRole, Plan
from .filters import Options
from .plan import losers
from .policy import Policy
from .problems import Problem
from .state import RoleRef, State

#: More undeclared roles than this lose nothing without being asked.
MOST_UNDECLARED = 20

#: A guard gives a few reasons, not every session.
MOST_REASONS = 5

#: Whether a role is connected, a view it owns, a SECURITY DEFINER routine it owns.
Stakes = Mapping[int, Tuple[bool, Optional[str], Optional[str]]]


def roles_at_stake(plan: Plan, policy: Policy, options: Options, state: State) -> List[int]:
    """The roles whose sessions and possessions the guards have to know; none for most runs."""
    roles = {change.role.oid for change in plan.changes if isinstance(change, AlterRole) and _loses_login(change)}
    if options.undeclared_grantees is None:
        roles |= {oid for heirs in _heirs(losers(plan, policy), state).values() for oid in heirs}
    return sorted(oid for oid in roles if oid > 0)


def _heirs(lost: Iterable[RoleRef], state: State) -> Mapping[RoleRef, List[int]]:
    """Each role with those that have its privileges: itself first, then who inherits it. Superusers need none."""
    powers = Powers(state, [])
    ordinary = [role.oid for role in state.roles.values() if not role.superuser]
    return {
        ref: [ref.oid, *sorted(oid for oid in ordinary if oid != ref.oid and ref.oid in powers.acts_with(oid))]
        for ref in lost
    }


def _loses_login(change: AlterRole) -> bool:
    return change.attributes.get("login") is False and "login" in change.omitted


def guard_problems(plan: Plan, policy: Policy, options: Options, state: State, stakes: Stakes) -> List[Problem]:
    """Every reason not to apply the plan without being asked."""
    problems: List[Problem] = []
    for change in plan.changes:
        if isinstance(change, AlterRole) and _loses_login(change):
            if stakes.get(change.role.oid, (False, None, None))[0]:
                problems.append(
                    _problem(
                        change.role.name,
                        f"role {change.role.name} would lose LOGIN, which the manifest leaves out, and is connected",
                        "Write login: true to keep it, or login: false to say that it is meant.",
                    )
                )
    if options.undeclared_grantees is not None:
        return problems
    lost = losers(plan, policy)
    hint = "Declare the role, or write undeclared_grantees: revoke or keep."
    if len(lost) > MOST_UNDECLARED:
        names = _counted(lost)
        problems.append(
            _problem(None, f"{len(lost)} roles that the manifest does not declare would lose privileges: {names}", hint)
        )
    heirs = _heirs(lost, state)
    for ref, count in sorted(lost.items(), key=lambda item: item[0].name):
        reasons = [reason for oid in heirs[ref] for reason in _reasons(oid, ref, state, stakes)][:MOST_REASONS]
        if reasons:
            what = "1 privilege" if count == 1 else f"{count} privileges"
            message = f"undeclared role {ref.name} would lose {what} and {' and '.join(reasons)}"
            problems.append(_problem(ref.name, message, hint))
    return problems


def _reasons(oid: int, lost: RoleRef, state: State, stakes: Stakes) -> Iterable[str]:
    """Why a role's privileges may be in use: by itself, or by somebody who inherits it."""
    connected, view, routine = stakes.get(oid, (False, None, None))
    who = "" if oid == lost.oid else f"is inherited by {state.ref(oid).name}, who "
    if connected:
        yield f"{who}is connected"
    if view:
        yield f"{who}owns the view or table with rules {view}"
    if routine:
        yield f"{who}owns the SECURITY DEFINER function {routine}"


def _problem(role: Optional[str], message: str, hint: str) -> Problem:
    return Problem(role=role, message=message, hint=hint, code="guard")


def _counted(lost: Mapping[RoleRef, int], most: int = 10) -> str:
    ordered: List[Tuple[RoleRef, int]] = sorted(lost.items(), key=lambda item: (-item[1], item[0].name))
    shown: Dict[str, int] = {ref.name: count for ref, count in ordered[:most]}
    rest = len(ordered) - len(shown)
    return ", ".join(f"{name} {count}" for name, count in shown.items()) + (f" and {rest} more" if rest else "")
