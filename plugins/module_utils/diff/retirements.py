# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Roles that go: the retired ones, and undeclared ones that the manifest claims by ``scope.roles``."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Dict, Iterable, Mapping

from ..policy import Policy
from ..privileges import BOOTSTRAP_OID, is_predefined, is_provider
from ..state import State


def candidates(policy: Policy, state: State) -> Mapping[int, str]:
    """The existing roles that the manifest wants to go, with the place that says so.

    A retired one counts whoever it is, so that retiring the executor can be refused; of the others only those that
    nobody else speaks for.
    """
    found: Dict[int, str] = {}
    for retirement in policy.retirements.values():
        oid = state.role_oid(retirement.name)
        if oid is not None:
            found[oid] = retirement.source
    if not policy.scope_roles:
        return found
    for role in state.roles.values():
        if role.oid in found or role.name in policy.roles or role.name in policy.assumed:
            continue
        if role.oid == BOOTSTRAP_OID or role.oid in state.executors:
            continue
        if is_predefined(role.name) or is_provider(role.name) or _matches(role.name, policy.ignore_roles):
            continue
        pattern = next((pattern for pattern in policy.scope_roles if fnmatchcase(role.name, pattern)), None)
        if pattern is not None:
            found[role.oid] = f"scope.roles: {pattern}"
    return found


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
