# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""May this executor set these parameters for a role? Whether it may alter the role is not asked here."""

from __future__ import annotations

from typing import Iterable, List

from ..changes import Change, SetConfig
from ..manifest.settings import fold
from ..problems import Problem
from ..setting_checks import can_be_set
from ..state import State
from .hints import compose


def forbidden_settings(changes: Iterable[Change], state: State) -> List[Problem]:
    """Settings that this executor may not set or reset, whatever it may do to the role.

    PostgreSQL asks for SET on the parameter, which superusers have, everybody has where the context is ``user``, and
    others from 15 on where it was granted (validate_option_array_item in guc.c).
    """
    executor = state.ref(state.server.current_user)
    if state.roles[executor.oid].superuser:
        return []
    problems: List[Problem] = []
    for change in changes:
        if not isinstance(change, SetConfig):
            continue
        name = fold(change.name)
        found = state.settings.get(name)
        allowed = found is not None and (found.context == "user" or found.granted)
        if allowed or not can_be_set(name, state):
            continue
        verb, hint = "set", "Run as a superuser"
        if change.value is None:
            verb, hint = "reset", "Declare it as it is, run as a superuser"
        if state.server.version >= 15:
            parts = change.name.split(".")
            places = ".".join("{}" for _part in parts)
            hint += f", or: {compose(f'GRANT SET ON PARAMETER {places} TO {{}}', *parts, executor)}"
        what = "whose class the server does not know" if found is None else "which only superusers set"
        problems.append(
            Problem(
                path=change.source or None,
                role=change.role.name,
                object=change.name,
                message=f"{executor.name} may not {verb} {change.name}, {what}, for the role {change.role.name}",
                hint=hint,
                code="insufficient_privilege",
            )
        )
    return problems
