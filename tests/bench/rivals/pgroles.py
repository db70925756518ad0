# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pgroles: profiles, schemas and memberships in a YAML manifest, a program written in Rust."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml
from scenario import Scenario

from rivals.fetching import Unavailable, run
from rivals.protocol import Command, Target

_CRATE, _VERSION = "pgroles-cli", "0.15.0"

_FILE = "pgroles.yaml"

#: Its exit code of a diff with changes.
_CHANGES = 2


def manifest(scenario: Scenario) -> dict[str, Any]:
    """The end state. Its profiles are written like those of the collection; memberships stand on their own."""
    own = scenario.manifest()
    members: dict[str, list[dict[str, str]]] = {}
    for number, login in enumerate(scenario.logins):
        for group in scenario.groups_of(number):
            members.setdefault(group, []).append({"name": login})
    return {
        "profiles": own["profiles"],
        "schemas": own["schemas"],
        "roles": [{"name": login, "login": True} for login in scenario.logins],
        "memberships": [{"role": group, "members": logins} for group, logins in sorted(members.items())],
    }


class PgRoles:
    name = "pgroles"
    note = ""

    def __init__(self) -> None:
        self.why = ""
        self._program = Path()

    def install(self, folder: Path) -> str | None:
        place = folder / "pgroles"
        self._program = place / "bin" / "pgroles"
        try:
            if not self._program.exists():
                # Hundreds of crates: what an interrupted compilation has done is kept for the next one.
                built = place / "target"
                run(
                    "The compilation of pgroles",
                    *("cargo", "install", _CRATE, "--version", _VERSION, "--locked", "--quiet"),
                    *("--jobs", "2", "--root", place, "--target-dir", built),
                )
                shutil.rmtree(built)
            return run("The question for the version of pgroles", self._program, "--version").split()[-1]
        except Unavailable as failure:
            self.why = f"{failure}."
            return None

    def write(self, scenario: Scenario, target: Target) -> None:
        (target.work / _FILE).write_text(yaml.safe_dump(manifest(scenario), sort_keys=False))

    def idle(self, scenario: Scenario, target: Target) -> Command:
        return self.apply(scenario, target)

    def plan(self, scenario: Scenario, target: Target) -> Command:
        return self._command(target, "diff", exit_codes=frozenset({0, _CHANGES}))

    def apply(self, scenario: Scenario, target: Target) -> Command:
        return self._command(target, "apply")

    def _command(self, target: Target, verb: str, **more: Any) -> Command:
        url = f"postgres://{target.user}@localhost:{target.port}/{target.database}?host={quote(target.host, safe='')}"
        variables = {"DATABASE_URL": url, "NO_COLOR": "1"}
        return Command([str(self._program), verb, "--file", _FILE], variables, target.work, **more)
