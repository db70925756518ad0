# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Policy and state in, plan out: the pure part of the pipeline in the order in which it happens.

Roles and schemas come first, because privileges are decided on the state that they will have made. What differs is
found here; whether it may and can be done is asked in ``feasibility``, which a run with nothing to do never loads.
"""

from __future__ import annotations

from typing import Iterable, List, Optional, Tuple, Union

from .changes import (
    Change,
    CreateRole,
    DropRole,
    Plan,
    RemoveMember,
    RetirementChange,
    Revoke,
    RevokeDefault,
    SetPassword,
    Withheld,
)
from .diff.defaults import default_changes
from .diff.memberships import membership_changes, option_problems
from .diff.passwords import PasswordOptions, declared, password_changes, store_changes
from .diff.privileges import privilege_changes
from .diff.retirements import Leaving, retirement_changes, without_destroyed
from .diff.roles import missing_roles, role_changes, with_assumed_roles, with_role_changes
from .diff.schemas import schema_changes, with_schema_changes
from .diff.targets import Lookups, bind
from .filters import Context, Options, apply_filters, override, wait_for_owner
from .notices import (
    access_raised,
    claims,
    expiring,
    few,
    held_retirements,
    login_lost,
    maybe_limits,
    swept_away,
    undeclared_lost,
)
from .outcome import Differences, Outcome
from .policy import Policy
from .problems import Problem
from .scope import Scope
from .setting_checks import missing_settings
from .state import State


def make_plan(
    policy: Policy,
    state: State,
    scope: Scope,
    lookups: Lookups,
    options: Options,
    *,
    passwords: Optional[PasswordOptions] = None,
    check_mode: bool = False,
) -> Outcome:
    """What would have to be done so that the state is as the policy says, and what of it is held back."""
    passwords = passwords or PasswordOptions()
    found = differences(policy, state, scope, lookups, options, passwords, check_mode=check_mode)
    if found.nothing_to_judge:
        changes: Tuple[Change, ...] = ()
        problems, powers = found.problems, None
    else:
        from .feasibility import judge

        changes, problems, powers = judge(found, policy, options, passwords)
    after, withheld = found.after, found.withheld
    suppressed: Tuple[Union[Revoke, RevokeDefault], ...] = ()
    if found.suppressed:
        from .keep import merge_columns

        suppressed = tuple(merge_columns(found.suppressed))
    plan = Plan(
        changes=changes,
        suppressed=suppressed,
        withheld=withheld,
        warnings=(
            *few(found.warnings, "objects with an owner for whom ensure: absent does nothing"),
            *undeclared_lost(changes, policy),
            *few(login_lost(changes), "roles lose LOGIN"),
            *few(access_raised(changes), "roles gain what the manifest does not say"),
            *few(expiring(policy, state), "roles with a valid_until that is over or near"),
            *few(claims(scope, changes, withheld), "schemas are managed only because of rules"),
            *swept_away(changes),
            *held_retirements(found.held_drops, after),
            *(
                few(maybe_limits(changes, policy), "roles are dropped for their names in scope.roles")
                if policy.maybe_limits
                else ()
            ),
        ),
        managed=scope.summary(),
        ready=_ready(policy, found.suppressed, withheld),
    )
    return Outcome(plan, problems, after, powers)


def differences(
    policy: Policy,
    state: State,
    scope: Scope,
    lookups: Lookups,
    options: Options,
    passwords: PasswordOptions,
    *,
    check_mode: bool,
) -> Differences:
    """What differs, after the filters, and what the manifest asks that cannot be."""
    wrong = missing_roles(policy, state, check_mode=check_mode) + missing_settings(policy, state)
    if policy.databases:
        from .diff.databases import wrong_databases

        wrong += wrong_databases(policy, state)
    if check_mode:
        state = with_assumed_roles(policy, state)

    wanted: List[Change] = list(role_changes(policy, state))
    created = [change.role for change in wanted if isinstance(change, CreateRole)]
    wanted += password_changes(policy, state, passwords, created)
    roles, withheld = apply_filters(wanted, Context(policy, state, options))
    roles += store_changes(roles, policy, state, passwords)
    if declared(policy) or any(isinstance(change, SetPassword) for change in roles):
        from .password_checks import password_problems

        wrong += password_problems(roles, policy, state, passwords)
    with_roles = with_role_changes(state, roles)
    leaving, retired, held_drops = _leaving(policy, with_roles, options)
    withheld += held_drops

    wrong_members = option_problems(policy, with_roles)
    members, held = apply_filters(membership_changes(policy, with_roles), Context(policy, with_roles, options))
    withheld += [item for item in held if not _goes_with_role(item.change, leaving)]
    circles: List[Problem] = []
    if members or leaving.roles:
        from .diff.admins import with_grantors
        from .diff.circles import without_circles

        members, circles = without_circles(with_grantors(members, with_roles, leaving.roles), with_roles)

    schemas, moves = apply_filters(schema_changes(policy, with_roles), Context(policy, with_roles, options))
    withheld += moves
    after, destroyed = without_destroyed(policy, with_schema_changes(with_roles, schemas), leaving)

    rules, missing = bind(policy, after, lookups)
    objects, onward, warnings = privilege_changes(policy, after, scope, rules, lookups, leaving)
    defaults, too_late = default_changes(policy, after, scope)
    privileges, held = apply_filters([*objects, *defaults], Context(policy, after, options, leaving.roles))
    withheld += [item for item in held if not _swept(item.change, leaving)]
    privileges, waiting = wait_for_owner(privileges, moves)
    withheld += waiting
    privileges, suppressed = override(privileges, policy)
    return Differences(
        before=state,
        with_roles=with_roles,
        after=after,
        leaving=leaving,
        roles=tuple(roles),
        members=tuple(members),
        schemas=tuple(schemas),
        privileges=tuple(privileges),
        retired=tuple(retired),
        onward=tuple(onward),
        suppressed=tuple(suppressed),
        withheld=tuple(withheld),
        held_drops=tuple(held_drops),
        warnings=tuple(warnings),
        wrong_roles=tuple(wrong),
        wrong_members=(*wrong_members, *circles),
        wrong_objects=(*destroyed, *missing, *too_late),
    )


def _leaving(policy: Policy, state: State, options: Options) -> Tuple[Leaving, List[RetirementChange], List[Withheld]]:
    """The roles that go, the changes that make them go, and the drops that are held back."""
    wanted = retirement_changes(policy, state)
    drops, held = apply_filters(
        [change for change in wanted if isinstance(change, DropRole)], Context(policy, state, options)
    )
    dropped = frozenset(change.role.oid for change in drops if isinstance(change, DropRole))
    retired = [change for change in wanted if change.role.oid in dropped]
    return Leaving.of(retired), retired, held


def _goes_with_role(change: Change, leaving: Leaving) -> bool:
    """Whether DROP ROLE ends a membership that would only be reported."""
    return isinstance(change, RemoveMember) and bool({change.group.oid, change.member.oid} & leaving.roles)


def _swept(change: Change, leaving: Leaving) -> bool:
    """Whether DROP OWNED does what would only be reported."""
    return isinstance(change, (Revoke, RevokeDefault)) and change.grantee.oid in leaving.swept


def _ready(policy: Policy, suppressed: Iterable[object], withheld: Iterable[Withheld]) -> Tuple[str, ...]:
    """Roles whose override has nothing left to hold back, not even what the mode holds back in its place."""
    busy = {change.grantee.name for change in suppressed if isinstance(change, (Revoke, RevokeDefault))}
    busy |= {
        item.change.grantee.name
        for item in withheld
        if isinstance(item.change, (Revoke, RevokeDefault)) and item.reason in ("mode", "unknown_kind")
    }
    return tuple(name for name, desired in policy.roles.items() if desired.additive and name not in busy)
