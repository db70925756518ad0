# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What a run leaves alone, and why. Each filter looks at one change and answers with a reason, or with None.

The order matters: what would not be touched anyway is withheld for that reason first, so that what the per-role
override suppresses is exactly what would be revoked without it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import AbstractSet, Callable, Iterable, List, Optional, Sequence, Tuple, Union

from .changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    Change,
    CommentRole,
    DropRole,
    Grant,
    GrantDefault,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetConfig,
    SetPassword,
    Withheld,
)
from .policy import Policy
from .privileges import BOOTSTRAP_OID, KINDS, PUBLIC_OID, SHARED_KINDS, is_predefined, is_provider
from .records import dataclass
from .state import RoleRef, State


@dataclass(frozen=True)
class Options:
    """The policy options of a run."""

    mode: str = "authoritative"
    undeclared_grantees: Optional[str] = None
    adopt_schema_owners: bool = False


@dataclass(frozen=True)
class Context:
    """What filters may look at."""

    policy: Policy
    state: State
    options: Options
    #: The roles that the plan drops.
    leaving: AbstractSet[int] = frozenset()


Filter = Callable[[Change, Context], Optional[str]]


def is_ignored(name: str, policy: Policy) -> bool:
    """Whether the role matches ``scope.ignore_roles``: then no statement names it, and no report either."""
    return any(fnmatchcase(name, pattern) for pattern in policy.ignore_roles)


def names_ignored_role(change: Change, context: Context) -> bool:
    """Whether the change is about a role that the run must not even name."""
    if not context.policy.ignore_roles:
        return False
    # PUBLIC is no role, so no pattern means it, not even that of a role called PUBLIC.
    roles = (role for role in _roles_of(change) if role.oid != PUBLIC_OID)
    return any(is_ignored(role.name, context.policy) for role in roles)


def _roles_of(change: Change) -> Iterable[RoleRef]:
    if isinstance(change, (Grant, Revoke)):
        yield change.grantee
        if isinstance(change, Revoke) and change.grantor.oid != change.target.owner.oid:
            yield change.grantor
    elif isinstance(change, (GrantDefault, RevokeDefault)):
        yield change.owner
        yield change.grantee
    elif isinstance(change, (AddMember, RemoveMember)):
        yield change.group
        yield change.member
        if change.grantor is not None:
            yield change.grantor


def dangling_grantee(change: Change, context: Context) -> Optional[str]:
    """An ACL entry whose grantee no longer exists."""
    if isinstance(change, (Revoke, RevokeDefault)):
        oid = change.grantee.oid
        if oid != PUBLIC_OID and oid not in context.state.roles:
            return "dangling_grantee"
    return None


def reserved_role(change: Change, context: Context) -> Optional[str]:
    """PostgreSQL's own roles and those of a managed service, where no rule and no declaration speaks of them."""
    if isinstance(change, (Revoke, RevokeDefault)):
        if change.explicit or change.grantee.name in context.policy.roles:
            return None
        return _reserved(change.grantee)
    if isinstance(change, RemoveMember) and change.claimed:
        # Memberships in or of these, and of the bootstrap superuser, are only ever added.
        if change.member.oid == BOOTSTRAP_OID or change.group.oid == BOOTSTRAP_OID:
            return "predefined"
        return _reserved(change.member) or ("provider" if is_provider(change.group.name) else None)
    return None


def _reserved(role: RoleRef) -> Optional[str]:
    if is_predefined(role.name):
        return "predefined"
    return "provider" if is_provider(role.name) else None


def external_role(change: Change, context: Context) -> Optional[str]:
    """Attributes, settings, comment and password of a role whose lifecycle belongs to someone else."""
    return (
        "external" if isinstance(change, (AlterRole, SetConfig, CommentRole, SetPassword)) and change.external else None
    )


def password_not_ours(change: Change, context: Context) -> Optional[str]:
    """A stored password that the manifest does not give and that this collection did not set."""
    return "password_not_ours" if isinstance(change, SetPassword) and not change.ours else None


def self_protection(change: Change, context: Context) -> Optional[str]:
    """What would disarm the executor: attributes that the manifest leaves out, its memberships, and the setting that
    lets it act for roles that it creates.
    """
    executors = context.state.executors
    if isinstance(change, SetConfig) and change.value is None and change.role.oid in executors:
        return "self_protection" if change.name == "createrole_self_grant" else None
    if isinstance(change, AlterRole) and change.omitted and change.role.oid in executors:
        return "self_protection"
    if isinstance(change, SetPassword) and change.clear and change.role.oid in executors:
        return "self_protection"
    if isinstance(change, RemoveMember) and change.claimed and change.member.oid in executors:
        return "self_protection"
    return None


def claimed_role(change: Change, context: Context) -> Optional[str]:
    """An undeclared role that ``scope.roles`` claims and that is too much to be dropped just for its name."""
    if not isinstance(change, DropRole) or not change.claimed:
        return None
    role = context.state.roles[change.role.oid]
    if role.superuser or role.replication or context.state.belongings.sessions.get(role.oid):
        return "self_protection"
    groups = {row.group for row in context.state.memberships if row.member == role.oid}
    outside = (context.state.ref(group).name for group in groups)
    policy = context.policy
    if any(name not in policy.roles and name not in policy.retirements for name in outside):
        return "unmanaged_membership"
    return None


def extension_member(change: Change, context: Context) -> Optional[str]:
    """Surplus on an object that belongs to an extension, and what a wildcard leaves out there."""
    if isinstance(change, Grant) and change.target.extension:
        return "extension"
    if isinstance(change, Revoke) and change.target.extension and not change.explicit:
        return "extension"
    return None


def shared_object(change: Change, context: Context) -> Optional[str]:
    """An undeclared grantee on an object that every database of the cluster sees: another manifest may speak of it."""
    if isinstance(change, Revoke) and change.target.kind in SHARED_KINDS and not change.explicit:
        here = change.target.kind == "database" and change.target.objects[0].name == context.state.server.database
        if not here and change.grantee.name not in context.policy.roles:
            return "shared_object"
    return None


def automatic_membership(change: Change, context: Context) -> Optional[str]:
    """The row that the creator of a role got from PostgreSQL 16, or gave itself through ``createrole_self_grant``."""
    return "automatic_membership" if isinstance(change, RemoveMember) and change.automatic else None


def unmanaged_membership(change: Change, context: Context) -> Optional[str]:
    """A membership in a group that the manifest does not speak for."""
    return "unmanaged_membership" if isinstance(change, RemoveMember) and not change.claimed else None


def unmanaged_default(change: Change, context: Context) -> Optional[str]:
    """Default privileges of an owner, or in a layer, that the manifest does not speak for."""
    return "unmanaged_default" if isinstance(change, RevokeDefault) and not change.claimed else None


def unknown_kind(change: Change, context: Context) -> Optional[str]:
    """Default privileges on a kind that only a later server knows; a stored setting that this server no longer knows,
    which it refuses to reset.
    """
    if isinstance(change, SetConfig):
        return None if change.known else "unknown_kind"
    return "unknown_kind" if isinstance(change, RevokeDefault) and change.kind not in KINDS else None


def undeclared_grantee(change: Change, context: Context) -> Optional[str]:
    """An undeclared role's privileges where the run is told to keep them, but for what a rule takes away by name."""
    if context.options.undeclared_grantees != "keep" or not isinstance(change, (Revoke, RevokeDefault)):
        return None
    if change.explicit or change.grantee.oid in context.leaving:
        return None
    return "undeclared_grantee" if is_undeclared(change.grantee, context.policy) else None


def is_undeclared(role: RoleRef, policy: Policy) -> bool:
    """Whether neither this manifest nor that of another run declares the role."""
    return role.oid != PUBLIC_OID and role.name not in policy.roles and role.name not in policy.assumed


def mode(change: Change, context: Context) -> Optional[str]:
    """What the mode holds back: ``additive`` lowers nobody's access, ``adopt`` moves no schema by itself and drops no
    role.
    """
    if context.options.mode == "additive":
        lowers = isinstance(change, (AlterRole, RemoveMember, AlterSchemaOwner, Revoke, RevokeDefault, DropRole))
        existing = isinstance(change, (SetConfig, CommentRole, SetPassword)) and not change.created
        return "mode" if lowers or existing else None
    if context.options.mode == "adopt" and isinstance(change, DropRole):
        return "mode"
    if context.options.mode == "adopt" and isinstance(change, AlterSchemaOwner):
        return None if context.options.adopt_schema_owners else "mode"
    return None


#: In this order; the first reason counts.
FILTERS: Sequence[Filter] = (
    dangling_grantee,
    reserved_role,
    external_role,
    extension_member,
    shared_object,
    automatic_membership,
    unmanaged_membership,
    unmanaged_default,
    unknown_kind,
    undeclared_grantee,
    self_protection,
    claimed_role,
    password_not_ours,
    mode,
)


def apply_filters(changes: Iterable[Change], context: Context) -> Tuple[List[Change], List[Withheld]]:
    """The changes that are left, and those held back with the reason."""
    kept: List[Change] = []
    withheld: List[Withheld] = []
    for change in changes:
        if names_ignored_role(change, context):
            continue
        reason = next(filter(None, (check(change, context) for check in FILTERS)), None)
        if reason is None:
            kept.append(change)
        else:
            withheld.append(Withheld(change, reason))
    return kept, withheld


def wait_for_owner(changes: Iterable[Change], moves: Iterable[Withheld]) -> Tuple[List[Change], List[Withheld]]:
    """Default privileges that need a schema's declared owner wait while the mode keeps the schema with another one."""
    pending = {(item.change.name, item.change.owner.oid) for item in moves if isinstance(item.change, AlterSchemaOwner)}
    kept: List[Change] = []
    withheld: List[Withheld] = []
    for change in changes:
        if isinstance(change, GrantDefault) and (change.schema, change.owner.oid) in pending:
            withheld.append(Withheld(change, "mode"))
        else:
            kept.append(change)
    return kept, withheld


def override(changes: Iterable[Change], policy: Policy) -> Tuple[List[Change], List[Union[Revoke, RevokeDefault]]]:
    """The per-role override: undeclared revokes whose grantee carries ``privilege_reconciliation: additive``."""
    kept: List[Change] = []
    suppressed: List[Union[Revoke, RevokeDefault]] = []
    for change in changes:
        if isinstance(change, (Revoke, RevokeDefault)) and not change.explicit and _carries(change.grantee, policy):
            suppressed.append(change)
        else:
            kept.append(change)
    return kept, suppressed


def _carries(role: RoleRef, policy: Policy) -> bool:
    desired = policy.roles.get(role.name)
    return desired is not None and desired.additive
