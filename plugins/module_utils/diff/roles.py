# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Roles: which are to be created, and which attributes, settings and comments differ."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from ..changes import AlterRole, Change, CommentRole, CreateRole, RoleChange, SetConfig, Value
from ..manifest.settings import fold, holds
from ..policy import ATTRIBUTE_DEFAULTS, DesiredRole, Policy
from ..privileges import BOOTSTRAP_OID, is_predefined
from ..problems import Problem
from ..records import replace
from ..setting_checks import can_be_reset
from ..state import FIRST_ASSUMED, Membership, Role, RoleRef, State


def missing_roles(policy: Policy, state: State, *, check_mode: bool) -> List[Problem]:
    """Roles that somebody else looks after and that do not exist: external, assumed, predefined and provider roles.

    A check run takes the assumed ones for granted, because the run that declares them may not have been applied yet.
    """
    problems = []
    for name, source in policy.named_roles.items():
        desired = policy.roles.get(name)
        if (desired and not desired.external) or state.role_oid(name) is not None:
            continue
        if name in policy.assumed and check_mode:
            continue
        if desired:
            message = f'role "{name}" is declared external and does not exist'
        elif name in policy.assumed:
            message = f'role "{name}" is in assume_roles and does not exist'
        else:
            message = f'role "{name}" does not exist on this server'
        problems.append(
            Problem(
                path=source,
                role=name,
                message=message,
                hint="Create the role first, or correct its name.",
                code="object_missing",
            )
        )
    return problems


def is_external(desired: DesiredRole, oid: Optional[int]) -> bool:
    """Whether somebody else looks after the role: it says so, PostgreSQL reserves it, or initdb made it."""
    return desired.external or is_predefined(desired.name) or oid == BOOTSTRAP_OID


def role_changes(policy: Policy, state: State) -> List[RoleChange]:
    """Every difference of roles themselves.

    Attributes that the manifest names and those that it leaves to the default come as two changes, because filters
    treat them differently; statements put them together again.
    """
    changes: List[RoleChange] = []
    provisional = 0
    for desired in policy.roles.values():
        oid = state.role_oid(desired.name)
        if oid is None:
            if desired.external:
                continue
            provisional -= 1
            changes.extend(_created(desired, RoleRef(provisional, desired.name), state))
        else:
            changes.extend(_altered(desired, state.roles[oid], state))
    return changes


def _created(desired: DesiredRole, ref: RoleRef, state: State) -> Iterable[RoleChange]:
    attributes = {name: value for name, value in desired.attributes.items() if value != ATTRIBUTE_DEFAULTS[name]}
    yield CreateRole(ref, attributes, desired.source)
    for change in _settings(desired, ref, {}, state):
        yield replace(change, created=True)
    if desired.comment:
        yield CommentRole(ref, desired.comment, None, desired.source, created=True)


def _altered(desired: DesiredRole, role: Role, state: State) -> Iterable[RoleChange]:
    external = is_external(desired, role.oid)
    named: Dict[str, Value] = {}
    omitted: Dict[str, Value] = {}
    for name, default in ATTRIBUTE_DEFAULTS.items():
        given = name in desired.attributes
        wanted = desired.attributes[name] if given else default
        if wanted != getattr(role, name) and (given or not external):
            (named if given else omitted)[name] = wanted
    for attributes, names in ((named, frozenset()), (omitted, frozenset(omitted))):
        if attributes:
            before = {name: getattr(role, name) for name in attributes}
            yield AlterRole(
                role.ref, attributes, before, names, desired.source, external=external, login_key=desired.login_key
            )
    for change in _settings(desired, role.ref, role.config, state):
        yield replace(change, external=external)
    if desired.comment is not None and desired.comment != (role.comment or ""):
        yield CommentRole(role.ref, desired.comment, role.comment, desired.source, external=external)


def _settings(desired: DesiredRole, ref: RoleRef, stored: Mapping[str, str], state: State) -> Iterable[SetConfig]:
    """Settings to make as declared, and undeclared ones to reset: one by one, because RESET ALL by somebody who is no
    superuser leaves some, silently.
    """
    if desired.config is None:
        return
    names = {fold(name): name for name in stored}
    for name, value in desired.config.items():
        known = state.settings.get(name)
        spelled = names.get(name) or (known.name if known else name)
        before = stored.get(spelled)
        if before is None or not holds(name, before, value):
            yield SetConfig(ref, spelled, value, before, desired.source)
    for name, spelled in sorted(names.items()):
        if name not in desired.config:
            yield SetConfig(ref, spelled, None, stored[spelled], desired.source, known=can_be_reset(name, state))


def with_role_changes(state: State, changes: Iterable[Change]) -> State:
    """The state as it will be once these changes of roles are made, with the memberships that come by themselves."""
    roles: Dict[int, Role] = {}
    rows: List[Membership] = []
    for change in changes:
        if isinstance(change, CreateRole):
            attributes: Dict[str, Any] = {**ATTRIBUTE_DEFAULTS, **change.attributes}
            roles[change.role.oid] = Role(change.role.oid, change.role.name, **attributes)
            rows.extend(_automatic_rows(change.role.oid, state))
        elif isinstance(change, AlterRole):
            role = roles.get(change.role.oid, state.roles[change.role.oid])
            altered: Dict[str, Any] = dict(change.attributes)
            roles[role.oid] = replace(role, **altered)
    return state.with_roles(roles.values(), rows)


def _automatic_rows(role: int, state: State) -> Iterable[Membership]:
    """What a creator who is no superuser gets with the role: ADMIN, and what createrole_self_grant says."""
    executor, given = state.server.current_user, state.server.self_grant
    if state.server.version < 16 or state.roles[executor].superuser:
        return
    yield Membership(role, executor, BOOTSTRAP_OID, True, False, False)
    if given:
        yield Membership(role, executor, executor, False, "inherit" in given, "set" in given)


def with_assumed_roles(policy: Policy, state: State) -> State:
    """The state with a stand-in for every assumed role that does not exist yet (check mode only)."""
    absent: List[Tuple[int, str]] = [
        (FIRST_ASSUMED - number, name)
        for number, name in enumerate(sorted(policy.assumed))
        if name not in policy.roles and state.role_oid(name) is None
    ]
    return state.with_roles(Role(oid, name) for oid, name in absent)
