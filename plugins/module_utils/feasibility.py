# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Whether what differs may and can be done: rights, grantors, dependents, protection, and what keeps roles from going.

Rights are judged in the state in which each statement runs, so this walks through the plan in its order.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Set, Tuple

from .authority.defaults import authorize_defaults
from .authority.drops import drop_authority
from .authority.hints import agreed
from .authority.memberships import authorize_members
from .authority.powers import Powers
from .authority.privileges import authorize_privileges, label_of
from .authority.roles import role_problems
from .authority.schemas import authorize_schemas
from .authority.settings import forbidden_settings
from .changes import AddMember, Change, DropRole, Grant, RemoveMember, Revoke, SetConfig, Target
from .diff.elsewhere import problems_elsewhere, with_elsewhere
from .diff.passwords import PasswordOptions
from .drops import drop_problems
from .filters import Context, Options, names_ignored_role
from .grantors import settle
from .keep import merge_columns, with_columns
from .outcome import Differences
from .policy import Policy
from .problems import Problem, readable
from .protection import disarming, locked_out
from .state import RoleRef
from .store import COMMENT_STORE


def judge(
    found: Differences, policy: Policy, options: Options, passwords: PasswordOptions
) -> Tuple[Tuple[Change, ...], Tuple[Problem, ...], Powers]:
    """The changes with what their rights and dependents ask for, everything that stands in their way, and who may act
    as whom when privileges are granted and revoked.
    """
    roles, after = found.roles, found.after
    drops = [change for change in found.retired if isinstance(change, DropRole)]
    # The first problem gives the failure its code, and this one says what the others would only follow from.
    withheld = () if options.mode == "additive" else found.withheld
    arms = disarming(roles, withheld, found.before, found.with_roles, drops)
    problems = [*arms, *found.wrong_roles]
    powers = Powers(found.with_roles, first=found.before)
    in_comments = passwords.keyed and passwords.store == COMMENT_STORE
    forbidden = role_problems(roles, found.with_roles, powers, fingerprints_in_comments=in_comments)
    # Who is disarmed lacks the right only because of that.
    problems += [problem for problem in forbidden if problem.role not in {arm.role for arm in arms}]
    problems += found.wrong_members
    problems += _ignored_members(found.members, Context(policy, found.with_roles, options))
    members, forbidden, powers = authorize_members(found.members, found.with_roles, powers)
    problems += forbidden
    schemas, forbidden = authorize_schemas(found.schemas, found.with_roles, powers)
    problems += [*forbidden, *found.wrong_objects]

    powers = powers.after(found.privileges, after)
    privileges, stuck = settle(found.privileges, found.onward, after, powers)
    problems += stuck or _ignored(privileges, Context(policy, after, options))
    privileges, forbidden = authorize_privileges(with_columns(privileges, after), after, powers)
    problems += forbidden
    privileges, forbidden = authorize_defaults(privileges, after, powers)
    problems += forbidden
    problems += forbidden_settings(roles, found.before)
    problems += locked_out([*members, *privileges, *drops], after, powers)

    changes = with_elsewhere((*roles, *members, *schemas, *merge_columns(privileges), *found.retired), after)
    blocked = [*drop_problems(changes, after), *drop_authority(changes, after, powers)]
    problems += [*blocked, *problems_elsewhere(changes, after, found.before, blocked)]
    problems += _unspeakable(changes)
    return changes, tuple(agreed(problems)), powers


def _unspeakable(changes: Iterable[Change]) -> List[Problem]:
    """Names that are not UTF-8, which databases of other encodings leave in a cluster: no statement spells them."""
    names: Set[str] = set()
    seen: Set[int] = set()  # many grantees are given the same objects
    for change in changes:
        if isinstance(change, SetConfig):
            names.add(change.name)
        for value in vars(change).values():
            sort = type(value)
            if sort is RoleRef:
                names.add(value.name)
            elif sort is Target and id(value.objects) not in seen:
                seen.add(id(value.objects))
                names.update(item.name for item in value.objects)
                names.add(value.schema or "")
    problems: List[Problem] = []
    for name in sorted(names):
        try:
            name.encode()
        except UnicodeEncodeError:
            shown = readable(name)
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
