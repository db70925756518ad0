# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Policy and state in, plan out: the pure part of the pipeline in the order in which it happens.

Roles and schemas come first, because privileges are decided on the state that they will have made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, FrozenSet, Iterable, List, Optional, Set, Tuple

from .authority.defaults import authorize_defaults
from .authority.drops import drop_authority
from .authority.memberships import authorize_members
from .authority.powers import Powers
from .authority.privileges import authorize_privileges, label_of
from .authority.roles import role_problems
from .authority.schemas import authorize_schemas
from .changes import (
    AddMember,
    Change,
    CreateRole,
    DropRole,
    Grant,
    Plan,
    RemoveMember,
    RetirementChange,
    Revoke,
    RevokeDefault,
    SetConfig,
    Target,
    Withheld,
)
from .diff.admins import with_grantors
from .diff.circles import without_circles
from .diff.defaults import default_changes
from .diff.elsewhere import problems_elsewhere, with_elsewhere
from .diff.memberships import membership_changes, option_problems
from .diff.passwords import PasswordOptions, password_changes, password_problems, store_changes
from .diff.privileges import privilege_changes
from .diff.retirements import (
    Leaving,
    retirement_changes,
    without_destroyed,
)
from .diff.roles import missing_roles, role_changes, with_assumed_roles, with_role_changes
from .diff.schemas import schema_changes, with_schema_changes
from .diff.targets import Lookups, bind
from .drops import drop_problems
from .filters import Context, Options, apply_filters, names_ignored_role, override, wait_for_owner
from .grantors import settle
from .keep import merge_columns, with_columns
from .notices import access_raised, claims, expiring, few, held_retirements, login_lost, swept_away, undeclared_lost
from .policy import Policy
from .problems import Problem
from .protection import disarming, locked_out
from .scope import Scope
from .setting_checks import forbidden_settings, missing_settings
from .state import RoleRef, State
from .store import COMMENT_STORE


@dataclass(frozen=True)
class Outcome:
    """A plan, or what stands in its way before the first statement.

    ``after``: the state with the plan's roles and schemas. ``powers``: who may act as whom when privileges are granted
    and revoked.
    """

    plan: Plan
    problems: Tuple[Problem, ...]
    after: State
    powers: Powers


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
    problems = missing_roles(policy, state, check_mode=check_mode) + missing_settings(policy, state)
    if check_mode:
        state = with_assumed_roles(policy, state)

    passwords = passwords or PasswordOptions()
    wanted: List[Change] = list(role_changes(policy, state))
    created = [change.role for change in wanted if isinstance(change, CreateRole)]
    wanted += password_changes(policy, state, passwords, created)
    roles, withheld = apply_filters(wanted, Context(policy, state, options))
    roles += store_changes(roles, policy, state, passwords)
    problems += password_problems(roles, policy, state, passwords)
    after = with_role_changes(state, roles)
    leaving, retired, held_drops = _leaving(policy, after, options)
    drops = [change for change in retired if isinstance(change, DropRole)]
    # The first problem gives the failure its code, and this one says what the others would only follow from.
    arms = disarming(roles, () if options.mode == "additive" else withheld, state, after, drops)
    problems = arms + problems
    powers = Powers(after, first=state)
    in_comments = passwords.keyed and passwords.store == COMMENT_STORE
    forbidden = role_problems(roles, after, powers, fingerprints_in_comments=in_comments)
    # Who is disarmed lacks the right only because of that.
    problems += [problem for problem in forbidden if problem.role not in {arm.role for arm in arms}]
    withheld += held_drops
    problems += option_problems(policy, after)
    members, held = apply_filters(membership_changes(policy, after), Context(policy, after, options))
    withheld += [item for item in held if not _goes_with_role(item.change, leaving)]
    members, circles = without_circles(with_grantors(members, after, leaving.roles), after)
    problems += [*circles, *_ignored_members(members, Context(policy, after, options))]
    members, forbidden, powers = authorize_members(members, after, powers)
    problems += forbidden

    schemas, moves = apply_filters(schema_changes(policy, after), Context(policy, after, options))
    withheld += moves
    schemas, forbidden = authorize_schemas(schemas, after, powers)
    problems += forbidden
    after = with_schema_changes(after, schemas)
    after, destroyed = without_destroyed(policy, after, leaving)
    problems += destroyed

    rules, missing = bind(policy, after, lookups)
    problems += missing
    objects, onward, warnings = privilege_changes(policy, after, scope, rules, lookups, leaving)
    defaults, too_late = default_changes(policy, after, scope)
    problems += too_late
    privileges, held = apply_filters([*objects, *defaults], Context(policy, after, options, leaving.roles))
    withheld += [item for item in held if not _swept(item.change, leaving)]
    privileges, waiting = wait_for_owner(privileges, moves)
    withheld += waiting
    privileges, suppressed = override(privileges, policy)

    powers = powers.after(privileges, after)
    privileges, stuck = settle(privileges, onward, after, powers)
    problems += stuck or _ignored(privileges, Context(policy, after, options))
    privileges, forbidden = authorize_privileges(with_columns(privileges, after), after, powers)
    problems += forbidden
    privileges, forbidden = authorize_defaults(privileges, after, powers)
    problems += forbidden
    problems += forbidden_settings(roles, state)
    problems += locked_out([*members, *privileges, *drops], after, powers)

    changes = with_elsewhere((*roles, *members, *schemas, *merge_columns(privileges), *retired), after)
    blocked = [*drop_problems(changes, after), *drop_authority(changes, after, powers)]
    problems += [*blocked, *problems_elsewhere(changes, after, state, blocked)]
    problems += _unspeakable(changes)
    plan = Plan(
        changes=changes,
        suppressed=tuple(merge_columns(suppressed)),
        withheld=tuple(withheld),
        warnings=(
            *few(warnings, "objects with an owner for whom ensure: absent does nothing"),
            *undeclared_lost(changes, policy),
            *few(login_lost(changes), "roles lose LOGIN"),
            *few(access_raised(changes), "roles gain what the manifest does not say"),
            *few(expiring(policy, state), "roles with a valid_until that is over or near"),
            *few(claims(scope, changes, withheld), "schemas are managed only because of rules"),
            *swept_away(changes),
            *held_retirements(held_drops, after),
        ),
        managed=scope.summary(),
        ready=_ready(policy, suppressed, withheld),
    )
    return Outcome(plan, tuple(problems), after, powers)


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


def _unspeakable(changes: Iterable[Change]) -> List[Problem]:
    """Names that are not UTF-8, which databases of other encodings leave in a cluster: no statement spells them."""
    names: Set[str] = set()
    for change in changes:
        if isinstance(change, SetConfig):
            names.add(change.name)
        for value in vars(change).values():
            if isinstance(value, RoleRef):
                names.add(value.name)
            elif isinstance(value, Target):
                names.add(value.schema or "")
                names.update(item.name for item in value.objects)
    problems: List[Problem] = []
    for name in sorted(names):
        try:
            name.encode()
        except UnicodeEncodeError:
            shown = name.encode("utf-8", "backslashreplace").decode()
            problems.append(
                Problem(
                    object=shown,
                    message=f"the name {shown} holds bytes that are not UTF-8, so the plan cannot name it",
                    hint="Rename it; a role can also be left alone with scope.ignore_roles.",
                    code="not_supported",
                )
            )
    return problems


def _ignored(changes: Iterable[Change], context: Context) -> List[Problem]:
    """What hangs on something that goes, and is a role's that no statement may name."""
    found: Dict[Tuple[str, str], Problem] = {}
    for change in changes:
        if isinstance(change, (Grant, Revoke)) and names_ignored_role(change, context):
            label, words = label_of(change), ", ".join(sorted(change.privileges))
            found.setdefault(
                (change.grantee.name, label),
                Problem(
                    role=change.grantee.name,
                    object=label,
                    message=f"{words} on {label} was given on to {change.grantee.name} by somebody who loses the grant "
                    "option, and one of the roles matches scope.ignore_roles, so no statement may name it",
                    hint="Declare the grantor's grant option, or take the role out of scope.ignore_roles.",
                    code="dependent_privileges",
                ),
            )
    return list(found.values())


def _ignored_members(changes: Iterable[Change], context: Context) -> List[Problem]:
    """Memberships that hang on somebody who loses ADMIN, or need an admin, and a role that no statement may name."""
    found: Dict[Tuple[str, str], Problem] = {}
    for change in changes:
        if isinstance(change, (AddMember, RemoveMember)) and names_ignored_role(change, context):
            grantor = f" through {change.grantor.name}" if change.grantor is not None else ""
            found.setdefault(
                (change.member.name, change.group.name),
                Problem(
                    role=change.member.name,
                    object=f"role {change.group.name}",
                    message=f"the membership of {change.member.name} in {change.group.name}{grantor} has to be granted "
                    "or revoked, and one of the roles matches scope.ignore_roles, so no statement may name it",
                    hint="Take the role out of scope.ignore_roles, or declare admin: true for whoever granted it.",
                    code="dependent_privileges",
                ),
            )
    return list(found.values())


def _ready(policy: Policy, suppressed: Iterable[object], withheld: Iterable[Withheld]) -> Tuple[str, ...]:
    """Roles whose override has nothing left to hold back, not even what the mode holds back in its place."""
    busy = {change.grantee.name for change in suppressed if isinstance(change, (Revoke, RevokeDefault))}
    busy |= {
        item.change.grantee.name
        for item in withheld
        if isinstance(item.change, (Revoke, RevokeDefault)) and item.reason in ("mode", "unknown_kind")
    }
    return tuple(name for name, desired in policy.roles.items() if desired.additive and name not in busy)


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
