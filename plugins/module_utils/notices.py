# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What a plan warns about: who loses something, who gains something by omission, what expires.

The texts are documented in ``docs/results.md`` and stable, so that callbacks can filter them. A check run warns like
the run after it.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Sequence, Set, Tuple

from .belongings import listed
from .changes import AlterRole, Change, DropOwned, DropRole, RemoveMember, Revoke, RevokeDefault, Withheld, weight
from .filters import is_undeclared
from .instants import instant
from .policy import Policy
from .scope import Scope
from .state import RoleRef, State

#: How long before its declared expiry a role is warned about, in microseconds.
EXPIRY_NOTICE = 14 * 24 * 3600 * 1_000_000

#: How many warnings of one kind are given singly: a result has to stay small.
MOST = 20


def few(texts: Sequence[str], others: str) -> List[str]:
    """Warnings of one kind; more than twenty end with how many ``others`` there are."""
    rest = len(texts) - MOST
    return [*texts[:MOST], f"{rest} more {others}"] if rest > 0 else list(texts)


def losers(changes: Iterable[Change], policy: Policy) -> Dict[RoleRef, int]:
    """The undeclared roles that lose privileges, each with how many."""
    changes = list(changes)
    lost: Dict[RoleRef, int] = {}
    dropped = {change.role.oid for change in changes if isinstance(change, DropRole)}
    for change in changes:
        if isinstance(change, Revoke) and change.again:
            continue
        if (
            isinstance(change, (Revoke, RevokeDefault))
            and not change.explicit
            and change.grantee.oid not in dropped
            and is_undeclared(change.grantee, policy)
        ):
            lost[change.grantee] = lost.get(change.grantee, 0) + weight(change)
    return lost


def undeclared_lost(changes: Sequence[Change], policy: Policy) -> List[str]:
    """One warning for all undeclared roles that lose something, with five names at most."""
    counts = {ref.name: count for ref, count in losers(changes, policy).items()}
    dropped = {change.role.oid for change in changes if isinstance(change, DropRole)}
    edges: Set[Tuple[RoleRef, RoleRef]] = {
        (change.group, change.member)
        for change in changes
        if isinstance(change, RemoveMember)
        and (change.lowered if change.replaced else True)
        and change.member.oid not in dropped
        and is_undeclared(change.member, policy)
    }
    for _group, member in edges:
        counts[member.name] = counts.get(member.name, 0) + 1
    if not counts:
        return []
    total = sum(counts.values())
    who = "1 undeclared role loses" if len(counts) == 1 else f"{len(counts)} undeclared roles lose"
    what = "1 privilege or membership" if total == 1 else f"{total} privileges and memberships"
    return [f"{who} {what}: {_counts(counts)}"]


def login_lost(changes: Sequence[Change]) -> List[str]:
    """Each role that loses LOGIN, whether the manifest says so or leaves it out."""
    warnings: List[str] = []
    for change in changes:
        if isinstance(change, AlterRole) and change.attributes.get("login") is False:
            why = "the manifest says login: false"
            if "login" in change.omitted and change.login_key != "login":
                why = f"its file gives it no {change.login_key} (with one it keeps it)"
            elif "login" in change.omitted:
                why = (
                    "the manifest gives it neither login nor password "
                    "(login: true keeps it, login: false says that it is meant)"
                )
            warnings.append(f"role {change.role.name} loses LOGIN: {why}")
    return warnings


def access_raised(changes: Sequence[Change]) -> List[str]:
    """Attributes whose omission gives a role more than it had."""
    warnings: List[str] = []
    for change in changes:
        if not isinstance(change, AlterRole):
            continue
        raised: List[str] = []
        if "valid_until" in change.omitted and change.before["valid_until"] != "infinity":
            raised.append("its expiry is lifted (valid_until)")
        if "connection_limit" in change.omitted and change.before["connection_limit"] != -1:
            raised.append("its connection limit is lifted (connection_limit)")
        if "inherit" in change.omitted:
            raised.append("INHERIT is switched on (inherit)")
        if raised:
            warnings.append(
                f"role {change.role.name}: {', '.join(raised)}, because the manifest does not say otherwise"
            )
    return warnings


def expiring(policy: Policy, state: State) -> List[str]:
    """Roles whose declared expiry is over or near, by the server's clock."""
    now = state.server.clock
    warnings: List[str] = []
    for desired in policy.roles.values():
        until = desired.attributes.get("valid_until")
        if now is None or isinstance(until, str) or until is None or until > now + EXPIRY_NOTICE:
            continue
        when = "is in the past" if until <= now else "is less than 14 days away"
        warnings.append(f"role {desired.name}: valid_until {instant(until)} {when}")
    return warnings


def claims(scope: Scope, changes: Sequence[Change], withheld: Sequence[Withheld]) -> List[str]:
    """A schema that only a grant or a default privilege makes managed, where others lose something by it."""
    lost: Dict[str, Dict[str, int]] = {}
    held_by_mode = [item.change for item in withheld if item.reason == "mode"]
    for change in [*changes, *held_by_mode]:
        schema, count = None, 0
        if isinstance(change, Revoke) and not change.explicit:
            schema = change.target.schema
            if change.target.kind == "schema":
                schema = change.target.objects[0].name
            count = weight(change)
        elif isinstance(change, RevokeDefault) and not change.explicit:
            schema, count = change.schema, weight(change)
        if schema in scope.claimed_by_rules and schema is not None:
            by_role = lost.setdefault(schema, {})
            by_role[change.grantee.name] = by_role.get(change.grantee.name, 0) + count  # type: ignore[union-attr]
    return [
        f"schema {schema} is managed only because of {', '.join(scope.schemas[schema])}; "
        f"undeclared privileges there: {_counts(by_role)}"
        for schema, by_role in sorted(lost.items())
    ]


def swept_away(changes: Iterable[object]) -> List[str]:
    """What DROP OWNED deletes beyond privileges."""
    warnings: List[str] = []
    for change in changes:
        if isinstance(change, DropOwned):
            where = f" in database {change.database}" if change.database is not None else ""
            name = change.role.name
            if change.policies:
                policies = listed(change.policies, len(change.policies))
                warnings.append(f"DROP OWNED BY {name}{where} deletes row-level security policies: {policies}")
            if change.destroyed_count:
                objects = listed(change.destroyed, change.destroyed_count)
                warnings.append(f"DROP OWNED BY {name}{where} destroys what nobody inherits: {objects}")
    return warnings


def held_retirements(held: Sequence[Withheld], state: State) -> List[str]:
    """The retirements that the mode holds back, and roles that ``scope.roles`` claims and that are left alone."""
    drops = [(item.change, item.reason) for item in held if isinstance(item.change, DropRole)]
    names = sorted(drop.role.name for drop, _reason in drops if not drop.claimed)
    warnings = [f"role {name} is to be retired, and the reconciliation mode holds that back" for name in names]
    spared = sorted((drop.role.name, drop.role.oid) for drop, reason in drops if drop.claimed and reason != "mode")
    texts = [f"role {name} matches scope.roles and is not dropped: {_why_spared(oid, state)}" for name, oid in spared]
    return warnings + few(texts, "roles match scope.roles and are not dropped")


def maybe_limits(changes: Iterable[Change], policy: Policy) -> List[str]:
    """Roles that go because a file's ``scope.roles`` names them, which it would not if it were a part of a bundle."""
    dropped = {change.role.name for change in changes if isinstance(change, DropRole) and change.claimed}
    return [
        f"role {name} is dropped because scope.roles in {label} names it and nothing declares it; if that file is a"
        " part of a pgroles bundle, list the bundle's own file instead"
        for name, label in policy.maybe_limits
        if name in dropped
    ]


def _why_spared(oid: int, state: State) -> str:
    role, sessions = state.roles[oid], state.belongings.sessions.get(oid, 0)
    if role.superuser:
        return "it is a superuser"
    if role.replication:
        return "it has REPLICATION"
    if sessions:
        return f"it has {sessions} open session{'s' if sessions > 1 else ''}"
    return "it is a member of a group outside the manifest"


def _counts(by_role: Dict[str, int], most: int = 5) -> str:
    ordered = sorted(by_role.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{role} {count}" for role, count in ordered[:most]]
    return ", ".join(shown) + (", …" if len(ordered) > most else "")
