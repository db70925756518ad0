# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What stops an apply although the plan could be run: somebody may depend on what it takes away.

A check run shows the same as a warning, beside the plan.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from .authority.powers import Powers
from .changes import AlterRole, Plan
from .filters import Options
from .notices import losers
from .policy import Policy
from .problems import Problem
from .records import dataclass
from .state import RoleRef, State

#: More undeclared roles than this lose nothing without being asked.
MOST_UNDECLARED = 20

#: A guard gives a few reasons, not every session.
MOST_REASONS = 5

#: Whether a role is connected, a view it owns, a SECURITY DEFINER routine it owns.
Stakes = Mapping[int, Tuple[bool, Optional[str], Optional[str]]]


@dataclass(frozen=True)
class Loser:
    """An undeclared role that would lose privileges: how many, and who has them: itself first, then its heirs."""

    role: RoleRef
    count: int
    heirs: Tuple[int, ...]


def undeclared_losers(plan: Plan, policy: Policy, options: Options, state: State) -> List[Loser]:
    """The undeclared roles that the guards protect; none where the manifest decides about them."""
    lost = losers(plan.changes, policy) if options.undeclared_grantees is None else {}
    if not lost:
        return []
    powers = Powers(state)
    heirs: Dict[int, List[int]] = {ref.oid: [] for ref in lost}
    for role in state.roles.values():
        # Superusers need no privileges.
        if not role.superuser:
            for oid in powers.acts_with(role.oid) & heirs.keys():
                if oid != role.oid:
                    heirs[oid].append(role.oid)
    ordered = sorted(lost.items(), key=lambda item: item[0].name)
    return [Loser(ref, count, (ref.oid, *sorted(heirs[ref.oid]))) for ref, count in ordered]


def roles_at_stake(plan: Plan, lost: Sequence[Loser]) -> List[int]:
    """The roles whose sessions and possessions the guards have to know; none for most runs."""
    roles = {change.role.oid for change in plan.changes if isinstance(change, AlterRole) and _loses_login(change)}
    roles |= {oid for loser in lost for oid in loser.heirs}
    return sorted(oid for oid in roles if oid > 0)


def _loses_login(change: AlterRole) -> bool:
    return change.attributes.get("login") is False and "login" in change.omitted


def guard_problems(plan: Plan, lost: Sequence[Loser], state: State, stakes: Stakes) -> List[Problem]:
    """Every reason not to apply the plan without being asked."""
    problems: List[Problem] = []
    for change in plan.changes:
        if isinstance(change, AlterRole) and _loses_login(change):
            if stakes.get(change.role.oid, (False, None, None))[0]:
                problems.append(
                    _problem(
                        change.role.name,
                        f"role {change.role.name} would lose LOGIN, which the manifest leaves out, and is connected",
                        "Write login: true to keep it, or login: false to say that it is meant."
                        if change.login_key == "login"
                        else f"Give it a {change.login_key} to keep it, or end its sessions first.",
                    )
                )
    hint = "Declare the role, or write undeclared_grantees: revoke or keep."
    if len(lost) > MOST_UNDECLARED:
        names = _counted(lost)
        problems.append(
            _problem(None, f"{len(lost)} roles that the manifest does not declare would lose privileges: {names}", hint)
        )
    for loser in lost:
        name, count = loser.role.name, loser.count
        reasons = [reason for oid in loser.heirs for reason in _reasons(oid, loser.role, state, stakes)][:MOST_REASONS]
        if reasons:
            what = "1 privilege" if count == 1 else f"{count} privileges"
            message = f"undeclared role {name} would lose {what} and {' and '.join(reasons)}"
            problems.append(_problem(name, message, hint))
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


def _counted(lost: Sequence[Loser], most: int = 10) -> str:
    ordered = sorted(lost, key=lambda loser: (-loser.count, loser.role.name))
    rest = len(ordered) - most
    shown = ", ".join(f"{loser.role.name} {loser.count}" for loser in ordered[:most])
    return shown + (f" and {rest} more" if rest > 0 else "")
