# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the benchmark asks of another tool: to be fetched, to write its files for a scenario, and to say what to run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from scenario import Scenario


@dataclass(frozen=True)
class Target:
    """Where a tool runs. The socket trusts everybody."""

    #: The directory of the server's socket.
    host: str
    port: int
    user: str
    database: str
    #: The server's major version.
    version: int
    #: An empty folder for this tool's files.
    work: Path

    @property
    def variables(self) -> dict[str, str]:
        """The connection, for tools that read what libpq reads."""
        return {
            "PGHOST": self.host,
            "PGPORT": str(self.port),
            "PGUSER": self.user,
            "PGDATABASE": self.database,
        }


@dataclass(frozen=True)
class Command:
    """One measured run of a tool."""

    arguments: list[str]
    #: Added to the environment of the benchmark.
    environment: dict[str, str]
    cwd: Path
    #: Where only a part is run: how often that part fits into the whole.
    scale: float = 1.0
    #: Seconds of a run that do not grow with what is done, such as those in which the tool starts. They are not scaled.
    fixed: float = 0.0
    #: Of how many items the measured run consists, where it is scaled; otherwise 0.
    items: int = 0
    #: False where only a part is done.
    check_end_state: bool = True
    #: Exit codes of a run that did what it was asked to.
    exit_codes: frozenset[int] = frozenset({0})

    def shown(self, measured: float) -> float:
        """The seconds that the tables show for the seconds that a run took."""
        return self.fixed + max(0.0, measured - self.fixed) * self.scale


class Rival(Protocol):
    """A tool that brings a database from nothing to the end state of a scenario."""

    #: As the tables show it.
    name: str
    #: Why `install` returned None, as a sentence.
    why: str
    #: What a reader has to know about the numbers, as a sentence. May be empty.
    note: str

    def install(self, folder: Path) -> str | None:
        """Fetch the tool into the folder, unless it is there. Returns its version, or None where it cannot be had."""

    def write(self, scenario: Scenario, target: Target) -> None:
        """Write the tool's files for this scenario. Comes after `install`, and before the commands."""

    def idle(self, scenario: Scenario, target: Target) -> Command:
        """The run that finds nothing to do."""

    def plan(self, scenario: Scenario, target: Target) -> Command | None:
        """The run that says what would be done from an empty state. None where the tool has no such run."""

    def apply(self, scenario: Scenario, target: Target) -> Command:
        """The run from an empty state to the end state."""
