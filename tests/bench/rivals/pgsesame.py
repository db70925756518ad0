# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pgsesame: the permissions of each principal in one YAML file, compared with the catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from scenario import PROFILES, Scenario

from rivals.fetching import Unavailable, environment, version_of
from rivals.protocol import Command, Target

#: An alpha release says nothing about the file of the next one.
_PACKAGE = "pgsesame == 0.4.2"

_FILE = "permissions.yaml"

#: Its exit code of a plan with changes.
_CHANGES = 2


def specification(scenario: Scenario) -> dict[str, Any]:
    """The end state, with a pattern for all objects of a kind in a schema."""
    principals: dict[str, Any] = {}
    for schema in scenario.schema_names:
        for profile, rights in PROFILES.items():
            privileges: dict[str, dict[str, list[str]]] = {"schemas": {"usage": [schema]}}
            for kind, names in rights.items():
                privileges[f"{kind}s"] = {name.lower(): [f"{schema}.*"] for name in names}
            principals[f"{schema}-{profile}"] = {"type": "role", "privileges": privileges}
    for number, login in enumerate(scenario.logins):
        principals[login] = {"type": "user", "member_of": scenario.groups_of(number)}
    return {"version": 1, "engine": "postgres", "principals": principals}


class PgSesame:
    name = "pgsesame"
    note = ""

    def __init__(self) -> None:
        self.why = ""
        self._programs = Path()

    def install(self, folder: Path) -> str | None:
        try:
            self._programs = environment(folder / "pgsesame", [_PACKAGE])
            return version_of(self._programs, "pgsesame")
        except Unavailable as failure:
            self.why = f"{failure}."
            return None

    def write(self, scenario: Scenario, target: Target) -> None:
        (target.work / _FILE).write_text(yaml.safe_dump(specification(scenario), sort_keys=False))

    def idle(self, scenario: Scenario, target: Target) -> Command:
        return self.apply(scenario, target)

    def plan(self, scenario: Scenario, target: Target) -> Command:
        return self._command(target, "plan", exit_codes=frozenset({0, _CHANGES}))

    def apply(self, scenario: Scenario, target: Target) -> Command:
        return self._command(target, "apply")

    def _command(self, target: Target, verb: str, **more: Any) -> Command:
        # Without a DSN it reads what libpq reads. A home of its own has no saved targets.
        variables = {**target.variables, "HOME": str(target.work), "NO_COLOR": "1"}
        return Command([str(self._programs / "sesame"), verb, _FILE], variables, target.work, **more)
