# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Passwords that do not stand in a role's entry: those of the option ``passwords``, and those in the environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Dict, List, Tuple

from ..masking import Secrets
from ..problems import Problem, file_of, written
from ..records import replace
from .model import Manifest, Password, RoleEntry
from .texts import describe, show
from .validate import Judge, join, no_text

#: How a role whose name is in a variable is written as a key.
_TEMPLATED_KEY = 'passwords: "{{ {app_role: secret} }}"'


def of_option(judge: Judge, raw: Any) -> Dict[str, Password]:
    """The passwords by role that the option gives. Its messages show no value."""
    found: Dict[str, Password] = {}
    given = raw
    if isinstance(raw, str):
        try:
            given = json.loads(raw)
        except ValueError:
            given = raw
    if given is None:
        return found
    if not isinstance(given, Mapping):
        judge.report("passwords", f"must be a dict of passwords by role, not {describe(given, secret=True)}")
        return found
    for role, secret in given.items():
        place = join("passwords", role)
        if not isinstance(role, str):
            judge.report(place, f"the role's name must be text, not {describe(role)}: quote it")
        elif "{{" in role or "{%" in role:
            wrong = f"Ansible does not template keys, so the role would be called {show(role)}"
            judge.report(place, f"{wrong}: write {_TEMPLATED_KEY}")
        elif secret is None:
            continue  # null means omitted
        elif not isinstance(secret, str):
            judge.report(place, no_text(secret, secret=True), role=role)
        else:
            found[role] = Password(secret, judge.source(place))
    return found


def with_environment(
    manifest: Manifest, environment: Mapping[str, str], secrets: Secrets, labels: Mapping[str, str]
) -> Tuple[Manifest, List[Problem]]:
    """The manifest with the passwords that its roles say are in the environment."""
    problems: List[Problem] = []
    roles: List[RoleEntry] = []
    for role in manifest.roles:
        if role.password_from_env is None:
            roles.append(role)
            continue
        place = written(f"{role.source}.password_from_env", manifest.renamed)
        text = environment.get(role.password_from_env, "")
        secrets.add(text, f"the password of role {role.name}")
        if role.password is not None:
            message = "excludes password: a role has one password"
        elif not text:
            state = "is empty" if role.password_from_env in environment else "is not set"
            message = f"the environment variable {role.password_from_env} {state} where the module runs"
        else:
            roles.append(replace(role, password=Password(text, place)))
            continue
        roles.append(role)
        problems.append(Problem(path=place, file=file_of(place, labels), role=role.name, message=message))
    return replace(manifest, roles=tuple(roles)), problems
