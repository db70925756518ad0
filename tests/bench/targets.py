# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the benchmark has to reach, each with what it reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from figures import Figure, Figures
from names import AS_SENT, COLLECTION, PSQL, PYTHON, far
from sizes import GRANTS

MAIN, HUGE_SIZE = "100x100", "100x1000"

#: Characters of a result; AWX drops one of 700,000.
LARGEST = 500_000


@dataclass(frozen=True)
class Target:
    """What is asked, what was reached in words, and whether that is enough; None where it was not measured."""

    asked: str
    reached: str
    met: bool | None


def _by_version(
    figures: Figures, versions: list[int], compute: Callable[[int], float | None], show: str
) -> tuple[str, list[float]]:
    found = {version: compute(version) for version in versions}
    values = {version: value for version, value in found.items() if value is not None}
    return ", ".join(f"{show.format(value)} on {version}" for version, value in values.items()), list(values.values())


def targets(figures: Figures, versions: list[int], sizes: list[str], tools: list[str]) -> list[Target]:
    found: list[Target] = []

    def add(asked: str, compute: Callable[[int], float | None], show: str, enough: Callable[[float], bool]) -> None:
        text, values = _by_version(figures, versions, compute, show)
        found.append(Target(asked, text or "not measured", all(map(enough, values)) if values else None))

    add(
        f"idle at {MAIN}: at most 0.4 s more than importing Python's libraries and the catalog queries in psql together",
        lambda v: figures.within(v, MAIN, "idle", (COLLECTION, PYTHON, PSQL), lambda own, *floors: own - sum(floors)),
        "{:.2f} s more",
        lambda value: value <= 0.4,
    )
    for tool in tools:
        found.append(_beside(figures, versions, sizes, tool))
    add(
        f"idle at {HUGE_SIZE}: at most 2.5 times idle at {MAIN}",
        lambda v: _ratio(figures, (v, HUGE_SIZE, "idle"), (v, MAIN, "idle")),
        "{:.2f} times",
        lambda value: value <= 2.5,
    )
    add(
        f"apply at {MAIN}: at most 1.25 times the hand-written SQL in psql",
        lambda v: figures.within(v, MAIN, "apply", (COLLECTION, PSQL), lambda own, floor: own / floor),
        "{:.2f} times",
        lambda value: value <= 1.25,
    )
    add(
        f"plan at {MAIN}: at most 2 times idle",
        lambda v: _ratio(figures, (v, MAIN, "plan"), (v, MAIN, "idle")),
        "{:.2f} times",
        lambda value: value <= 2,
    )
    add(
        "inspection: at most 12 round trips at every size",
        lambda v: max(_wire(figures, v, sizes, "inspection"), default=None),
        "{:.0f}",
        lambda value: value <= 12,
    )
    grown = {
        version: trips
        for version in versions
        if len(trips := _wire(figures, version, [size for size in sizes if size != HUGE_SIZE], "round_trips", "apply"))
        > 1
    }
    text = "; ".join(f"{', '.join(map(str, trips))} on {version}" for version, trips in grown.items())
    met = all(len(set(trips)) == 1 for trips in grown.values()) if grown else None
    found.append(Target("apply: a number of round trips that does not grow with the plan", text or "not measured", met))
    add(
        f"apply at {MAIN} with 20 ms of delay: at most 1.5 s slower than without",
        lambda v: figures.within(v, MAIN, "apply", (COLLECTION, far(COLLECTION, 20)), lambda near, away: away - near),
        "{:.2f} s slower",
        lambda value: value <= 1.5,
    )
    add(
        f"peak memory at {HUGE_SIZE}: at most 200 MB",
        lambda v: peak(figures, v),
        "{:.0f} MB",
        lambda value: value <= 200,
    )
    found.append(_result(figures, GRANTS.name, figures.facts.get(f"result {GRANTS.name}")))
    for version in versions:
        planned = figures.facts.get(f"wire plan {version}/{HUGE_SIZE}")
        if planned:
            found.append(_result(figures, f"{HUGE_SIZE} on {version}", planned["result"]))
    return found


def peak(figures: Figures, version: int) -> float | None:
    """Most memory of any run of the module at the largest size, in MB."""
    tools = [("idle", COLLECTION), ("idle", AS_SENT), ("plan", COLLECTION), ("apply", COLLECTION)]
    every = [figures.of(version, HUGE_SIZE, work, tool) for work, tool in tools]
    return max((figure.memory / 1e6 for figure in every if isinstance(figure, Figure)), default=None)


def _beside(figures: Figures, versions: list[int], sizes: list[str], tool: str) -> Target:
    least = {"pgsesame": 8.0, "community.postgresql": 300.0}.get(tool, 1.0)
    # A fixed factor is asked at one size, to be faster everywhere.
    where = [MAIN] if least > 1 else [size for size in sizes if size != HUGE_SIZE]
    asked = f"at least {least:.0f} times faster" if least > 1 else "faster"
    every = [
        (size, times)
        for version in versions
        for size in where
        if (times := figures.times(version, size, "idle", tool)) is not None
    ]
    text = ", ".join(f"{times:.3g} times at {size}" for size, times in every)
    why = figures.facts.get("tools", {}).get(tool, {}).get("why")
    met = all(times >= least if least > 1 else times > 1 for _size, times in every) if every else None
    return Target(f"idle: {asked} than {tool} at {' and '.join(where)}", text or why or "not measured", met)


def _ratio(figures: Figures, one: tuple[int, str, str], other: tuple[int, str, str]) -> float | None:
    above, below = figures.seconds(*one, COLLECTION), figures.seconds(*other, COLLECTION)
    return None if above is None or not below else above / below


def _wire(figures: Figures, version: int, sizes: list[str], what: str, *works: str) -> list[int]:
    found = []
    for size in sizes:
        for work in works or ("idle", "plan", "apply"):
            fact = figures.facts.get(f"wire {work} {version}/{size}")
            if fact:
                found.append(int(fact[what]))
    return found


def _result(figures: Figures, where: str, result: dict[str, Any] | None) -> Target:
    asked = f"result of the plan at {where}: under {LARGEST:,} characters, counts and digest exact, all in plan_file"
    if not result:
        return Target(asked, "not measured", None)
    text = f"{result['counts']['grants']:,} grants in {result['characters']:,} characters"
    exact = result["counts_exact"] and result["digest_exact"] and result.get("script_ends_right", True)
    return Target(asked, f"{text}, {'exact' if exact else 'not exact'}", exact and result["characters"] < LARGEST)


def as_data(every: list[Target]) -> list[dict[str, Any]]:
    return [asdict(target) for target in every]
