# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Which password each role is to have, and what is wrong with it. No message shows a password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Mapping, Optional

from .manifest.model import Manifest, Password
from .manifest.texts import show
from .manifest.validate import Suggester
from .masking import by_chance
from .passwords import problem_of, verifier_kind
from .policy_checks import Report
from .records import replace

if TYPE_CHECKING:
    from .policy import DesiredRole


def with_passwords(manifest: Manifest, roles: Mapping[str, DesiredRole], report: Report) -> Dict[str, DesiredRole]:
    """The declared roles with their passwords. A password makes a role LOGIN unless its entry says otherwise."""
    entries = {entry.name: entry for entry in manifest.roles}
    given: Dict[str, Password] = {}
    for name, entry in entries.items():
        if entry.password is not None:
            given.setdefault(name, entry.password)
    known = Suggester(roles)
    for name, password in manifest.passwords.items():
        problem = _out_of_place(name, roles.get(name), given.get(name), known)
        if name not in roles and password.text in roles:
            problem = f"the value of a key is a role's name ({show(password.text)}): write {{role: password}}"
            report.problem(password.source.partition(".")[0], problem)
        elif problem is None:
            given[name] = password
        elif not manifest.unreadable & {"roles", "schemas", "profiles"}:
            report.problem(password.source, problem, role=name)
    result = dict(roles)
    for name, password in given.items():
        role = roles.get(name)
        if role is None or role.external:
            continue
        entry_ = entries.get(name)
        form = (entry_.password_format if entry_ else None) or "auto"
        encryption = (entry_.password_encryption if entry_ else None) or "scram-sha-256"
        problem = problem_of(password.text, form, name)
        if problem is not None:
            report.problem(password.source, problem, role=name)
        verifier = form != "plain" and verifier_kind(password.text) is not None
        attributes = {"login": True, **role.attributes}
        wanted = replace(password, encryption=encryption, verifier=verifier)
        result[name] = replace(role, attributes=attributes, password=wanted)
    _check_places(result, report)
    return result


def _check_places(roles: Mapping[str, DesiredRole], report: Report) -> None:
    """Comments and settings go to the server in clear, and everybody may read comments."""
    secrets = {role.password.text for role in roles.values() if role.password is not None}
    for role in roles.values():
        own = role.password.text if role.password is not None else None
        settings = (role.config or {}).items()
        places = [("comment", role.comment), *((f"config.{name}", value) for name, value in settings)]
        for place, value in places:
            texts = [value] if isinstance(value, str) else list(value or ())
            found = [text for text in texts if text in secrets or (own is not None and own in text)]
            if any(not by_chance(own if own is not None and own in text else text) for text in found):
                report.problem(
                    f"{role.source}.{place}",
                    "holds a password that the manifest declares, and would go to the server in clear text",
                    role=role.name,
                )


def _out_of_place(name: str, role: Optional[DesiredRole], other: Optional[Password], known: Suggester) -> Optional[str]:
    """Why the option ``passwords`` may not name a role."""
    if role is None:
        return f"the manifest declares no role {show(name)}{known.hint(name)}"
    if role.external:
        return f"the role {show(name)} is external: whoever looks after it sets its password"
    if role.attributes.get("login") is not True:
        # A run without the option would then take LOGIN away.
        return f"the entry of the role {show(name)} ({role.source}) must say login: true"
    if other is not None:
        return f"the role {show(name)} has a password in {other.source} already: a role has one password"
    return None
