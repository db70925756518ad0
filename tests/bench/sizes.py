# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of the benchmark measures: versions, sizes, how often, and with which lock table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from scenario import PROFILES, Scenario

VERSIONS = (16, 18)
SIZES = ("10x10", "20x50", "100x100", "100x1000")

#: From this many tables on, no other tool and no psql is tried, and the plan is applied once.
HUGE = 100_000
LARGE = 10_000

#: A plan of some 30,000 grants, for the size of its result.
GRANTS = Scenario(26, 100)

#: max_locks_per_transaction where PostgreSQL 18 and later could not apply a scenario with its default of 64: they lock each
#: table that a GRANT names.
LOCKS = 1024

#: Milliseconds of delay.
DELAYS = (5, 20)


@dataclass(frozen=True)
class Settings:
    versions: tuple[int, ...] = VERSIONS
    sizes: tuple[str, ...] = SIZES
    #: 0: as many as the size asks for.
    rounds: int = 0
    #: Other tools by name; None for all.
    tools: frozenset[str] | None = None
    quick: bool = False

    @property
    def whole(self) -> bool:
        """Whether all is measured, so that it can be published."""
        return not self.quick and self == Settings()

    @property
    def asked(self) -> str:
        """What is measured of each size, as a text to compare."""
        return f"rounds {self.rounds}, tools {'all' if self.tools is None else ' '.join(sorted(self.tools))}"

    def rounds_of(self, scenario: Scenario, work: str) -> int:
        if self.rounds:
            return self.rounds
        if scenario.size >= HUGE:
            return 1 if work == "apply" else 3
        return 3 if scenario.size >= LARGE and work != "idle" else 5

    def wants(self, tool: str) -> bool:
        return not self.quick and (self.tools is None or tool in self.tools)


def settings(variables: Mapping[str, str], quick: bool = False) -> Settings:
    """From BENCH_PG, BENCH_SIZES, BENCH_ROUNDS and BENCH_TOOLS: lists with commas or blanks between."""

    def words(name: str) -> list[str]:
        return re.findall(r"[^\s,]+", variables.get(name, ""))

    if quick:
        return Settings((VERSIONS[-1],), (SIZES[0],), 1, frozenset(), quick=True)
    versions = tuple(int(word) for word in words("BENCH_PG")) or VERSIONS
    sizes = tuple(words("BENCH_SIZES")) or SIZES
    for size in sizes:
        scenario(size)
    rounds = int(variables.get("BENCH_ROUNDS") or 0)
    tools = frozenset(words("BENCH_TOOLS")) if variables.get("BENCH_TOOLS") else None
    return Settings(versions, sizes, rounds, tools)


def scenario(size: str) -> Scenario:
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", size)
    if not match:
        raise SystemExit(f"BENCH_SIZES: {size} is no size such as 10x10")
    return Scenario(int(match[1]), int(match[2]))


def locks_for(version: int, scenario: Scenario) -> int | None:
    """The setting that a size needs, None for the default."""
    return LOCKS if version >= 18 and scenario.size >= LARGE else None


def expected_summary(scenario: Scenario) -> dict[str, int]:
    """What a plan from an empty state has to count."""
    objects = scenario.objects_by_kind()
    each = sum(len(privileges) * objects[kind] for rights in PROFILES.values() for kind, privileges in rights.items())
    return {
        "roles": len(scenario.roles),
        "memberships": sum(len(scenario.groups_of(number)) for number in range(len(scenario.logins))),
        "grants": scenario.schemas * (each + len(PROFILES)),
    }
