# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Settings of roles beside the server's parameters: which of them can be set at all."""

from __future__ import annotations

from typing import List, Set

from .manifest.settings import fold, is_custom
from .manifest.validate import Suggester
from .policy import Policy
from .problems import Problem
from .state import State

#: The contexts of pg_settings that a role's settings can have; the others are the whole server's, or a connection's.
_ROLE_CONTEXTS = frozenset({"user", "superuser", "custom"})

#: What a transaction or a session sets for itself: PostgreSQL stores these for a role, to no effect, and from 16 on
#: refuses to reset them (GUC_NO_RESET in guc_tables.c).
_OF_TRANSACTIONS = frozenset({"transaction_isolation", "transaction_read_only", "transaction_deferrable", "seed"})


def settings_asked(policy: Policy, state: State) -> Set[str]:
    """The parameters, by their folded names, that the manifest declares, or that roles with declared ones have."""
    names: Set[str] = set()
    for desired in policy.roles.values():
        if desired.config is not None:
            names.update(desired.config)
            oid = state.role_oid(desired.name)
            if oid is not None:
                names.update(map(fold, state.roles[oid].config))
    return names


def can_be_set(name: str, state: State) -> bool:
    """Whether a role can have this parameter, by its folded name. One with a class may be anybody's."""
    known = state.settings.get(name)
    if known is None:
        return is_custom(name)
    return known.context in _ROLE_CONTEXTS and name not in _OF_TRANSACTIONS


def can_be_reset(name: str, state: State) -> bool:
    """Whether the server resets this parameter where a role has it."""
    return can_be_set(name, state) or (name in _OF_TRANSACTIONS and state.server.version < 16)


def missing_settings(policy: Policy, state: State) -> List[Problem]:
    """Declared settings that the server does not know, or that a role cannot have."""
    problems: List[Problem] = []
    known = Suggester(name for name, item in state.settings.items() if item.context in _ROLE_CONTEXTS)
    for desired in policy.roles.values():
        for name in desired.config or ():
            if can_be_set(name, state):
                continue
            if name in _OF_TRANSACTIONS:
                message = f"the setting {name} belongs to a transaction or session, a role has nothing of it"
                hint = f"Did you mean default_{name}?" if name != "seed" else "Leave it out."
            elif name in state.settings:
                message = f"the setting {name} belongs to the whole server or to a connection, not to a role"
                hint = "Set it in the server's configuration."
            else:
                message = f"there is no setting {name} on this server"
                near = known.nearest(name)
                hint = f"Did you mean {near}?" if near else "pg_settings lists those that there are."
            problems.append(
                Problem(
                    path=f"{desired.source}.config.{name}" if not desired.generated else desired.source,
                    role=desired.name,
                    object=name,
                    message=message,
                    hint=hint,
                    code="object_missing",
                )
            )
    return problems
