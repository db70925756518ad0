# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Memberships: who may grant and revoke them, each judged in the state in which its statement will run.

Until PostgreSQL 15 CREATEROLE is enough for every group that is no superuser. From 16 on it takes ADMIN OPTION on the
group, and the grantor of record has to be a role whose privileges the executor has (check_role_grantor in user.c).
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple, Union

from ..changes import AddMember, Change, RemoveMember
from ..privileges import BOOTSTRAP_OID
from ..problems import Problem
from ..state import RoleRef, State
from ..statements.memberships import early_removals, late_removals
from . import hints
from .powers import Powers


def authorize_members(
    changes: Sequence[Change], state: State, powers: Powers
) -> Tuple[List[Change], List[Problem], Powers]:
    """The changes in an order in which each has its rights, a problem for each that has not, and the powers with all
    memberships that are added, before the late removals.
    """
    removals = [change for change in changes if isinstance(change, RemoveMember)]
    additions = [change for change in changes if isinstance(change, AddMember)]
    early, late = early_removals(removals), late_removals(removals)
    making_room = {change.group.oid for change in early}
    first = [change for change in additions if change.exists and change.group.oid in making_room]
    others = [change for change in additions if not (change.exists and change.group.oid in making_room)]
    if powers.is_superuser(state.server.current_user):
        return list(changes), [], powers.after([*first, *early, *others])
    first, problems, powers = _added(first, state, powers)
    room, powers = _removed(early, state, powers)
    others, refused, powers = _added(others, state, powers)
    lost, _after = _removed(late, state, powers)
    return [*first, *early, *others, *late], [*problems, *room, *refused, *lost], powers


def _added(changes: List[AddMember], state: State, powers: Powers) -> Tuple[List[AddMember], List[Problem], Powers]:
    """Additions in an order in which each has its rights: one may be what gives the right to make another."""
    ordered: List[AddMember] = []
    while changes:
        refused = [_addition_problem(change, state, powers) for change in changes]
        allowed = [change for change, problem in zip(changes, refused) if problem is None]
        if not allowed:
            return [*ordered, *changes], [problem for problem in refused if problem is not None], powers
        ordered.extend(allowed)
        powers = powers.after(allowed)
        changes = [change for change, problem in zip(changes, refused) if problem is not None]
    return ordered, [], powers


def _removed(changes: Sequence[RemoveMember], state: State, powers: Powers) -> Tuple[List[Problem], Powers]:
    """Removals one after the other: each may take away what the next one needs."""
    executor = state.server.current_user
    problems: List[Problem] = []
    pending: List[Change] = []
    for change in changes:
        problem = _removal_problem(change, state, powers)
        if problem is not None:
            problems.append(problem)
            continue
        pending.append(change)
        if change.member.oid in powers.groups_of(executor):
            powers = powers.after(pending)
            pending = []
    return problems, powers.after(pending)


def _addition_problem(change: AddMember, state: State, powers: Powers) -> Optional[Problem]:
    group, executor = change.group, state.ref(state.server.current_user)
    refused = _not_in_charge(change, "grant", state, powers)
    if refused or state.server.version < 16 or group.oid < 0:
        return refused
    if change.grantor is None:
        if powers.best_admin(executor.oid, group.oid) is not None:
            if not change.unfounded:
                return None
            return _problem(
                change,
                f"{executor.name} has ADMIN OPTION on {group.name} only through "
                f"{' and '.join(ref.name for ref in change.unfounded)} and the plan ends that, so it cannot grant the "
                f"membership of {change.member.name} again",
                hints.admin_option(executor, group, state.server.version, powers),
            )
        return _problem(
            change,
            f"{executor.name} has ADMIN OPTION on {group.name} only through roles that it does not inherit",
            hints.admin_option(executor, group, state.server.version, powers),
        )
    if not powers.owns(executor.oid, change.grantor.oid):
        return _not_grantor(change, change.grantor, "be granted in the name of", state, powers)
    if powers.best_admin(change.grantor.oid, group.oid) != change.grantor.oid:
        return _problem(
            change,
            f"the membership of {change.member.name} in {group.name} has to be granted by {change.grantor.name}, "
            "which has no ADMIN OPTION",
            hints.admin_option(change.grantor, group, state.server.version, powers),
        )
    return None


def _removal_problem(change: RemoveMember, state: State, powers: Powers) -> Optional[Problem]:
    if change.grantor is not None and not powers.owns(state.server.current_user, change.grantor.oid):
        # Said first: ADMIN OPTION alone would not help.
        return _not_grantor(change, change.grantor, "be revoked as granted by", state, powers)
    return _not_in_charge(change, "revoke", state, powers)


def _not_in_charge(
    change: Union[AddMember, RemoveMember], verb: str, state: State, powers: Powers
) -> Optional[Problem]:
    """What the executor lacks over the group itself."""
    group, executor = change.group, state.ref(state.server.current_user)
    version = state.server.version
    if group.oid < 0:
        return None  # of a role that the run creates the executor is in charge, see roles.py
    what = f"{executor.name} may not {verb} membership in {group.name}"
    if powers.is_superuser(group.oid):
        return _problem(change, f"{what}, which is a superuser: only a superuser may", hints.SUPERUSER)
    if powers.administers(executor.oid, group.oid) or (version < 16 and powers.has(executor.oid, "createrole")):
        return None
    hint = hints.admin_option(executor, group, version, powers)
    if version < 16:
        hint = f"{hint}; or {hints.attribute(executor, 'createrole')}"
        return _problem(change, f"{what}: it has neither CREATEROLE nor ADMIN OPTION on it", hint)
    return _problem(change, f"{what}: it has no ADMIN OPTION on it", hint)


def _not_grantor(
    change: Union[AddMember, RemoveMember], grantor: RoleRef, words: str, state: State, powers: Powers
) -> Problem:
    executor = state.ref(state.server.current_user)
    message = (
        f"the membership of {change.member.name} in {change.group.name} has to {words} {grantor.name}, "
        f"whose privileges {executor.name} does not have"
    )
    role = state.roles.get(grantor.oid)
    if grantor.oid == BOOTSTRAP_OID or (role is not None and role.superuser):
        option = change.option if isinstance(change, RemoveMember) else None
        what = f"{option}: true for it" if option else "the membership"
        return _problem(change, message, f"{hints.SUPERUSER} Or declare {what}, so that it stays.")
    return _problem(change, message, hints.membership(executor, grantor, "inherit", state, powers))


def _problem(change: Union[AddMember, RemoveMember], message: str, hint: str) -> Problem:
    return hints.problem(change.member, f"role {change.group.name}", message, hint, change.source)
