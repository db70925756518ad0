# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Figures out of the measurements: medians, spreads, and ratios within one round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from names import COLLECTION
from store import Round, key


@dataclass(frozen=True)
class Figure:
    """What a tool took for a work: the median of its rounds, the least and the most, in seconds."""

    middle: float
    low: float
    high: float
    rounds: int
    #: Most memory that it ever had, in bytes.
    memory: int = 0
    #: It was ended after so many seconds.
    late: float = 0.0
    #: It was measured on so many items, and scaled.
    items: int = 0


@dataclass(frozen=True)
class Trouble:
    """Why there is no figure."""

    text: str


class Figures:
    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.facts: dict[str, Any] = data["facts"]

    def rounds(self, version: int, size: str, work: str) -> list[Round]:
        found: list[Round] = self.data["rounds"].get(key(version, size, work), [])
        return found

    def of(self, version: int, size: str, work: str, tool: str) -> Figure | Trouble | None:
        """None where it was not tried."""
        every = [measured for place in _places(work, tool) for measured in self.rounds(version, size, place)]
        samples = [measured[tool] for measured in every if tool in measured]
        if not samples:
            return None
        failed = next((sample["failed"] for sample in samples if "failed" in sample), None)
        if failed:
            return Trouble(failed)
        seconds = [sample["seconds"] for sample in samples]
        return Figure(
            median(seconds),
            min(seconds),
            max(seconds),
            len(seconds),
            max(sample["memory"] for sample in samples),
            max(sample.get("late", 0.0) for sample in samples),
            max(sample.get("items", 0) for sample in samples),
        )

    def seconds(self, version: int, size: str, work: str, tool: str) -> float | None:
        """The median, where the tool came to its end."""
        found = self.of(version, size, work, tool)
        return found.middle if isinstance(found, Figure) and not found.late else None

    def within(
        self, version: int, size: str, work: str, tools: tuple[str, ...], compute: Callable[..., float]
    ) -> float | None:
        """The median over the rounds of something computed from the seconds of these tools in one round."""
        found = [
            compute(*(measured[tool]["seconds"] for tool in tools))
            for measured in self.rounds(version, size, work)
            if all("seconds" in measured.get(tool, {}) for tool in tools)
        ]
        return median(found) if found else None

    def times(self, version: int, size: str, work: str, other: str) -> float | None:
        """How many times what the collection takes another tool takes, in one round; at least, where it was ended."""
        for place in _places(work, other):
            found = self.within(version, size, place, (COLLECTION, other), lambda own, its: its / own)
            if found is not None:
                return found
        return None


def _places(work: str, tool: str) -> tuple[str, ...]:
    return (work, f"{work} beside {tool}", f"{work} far psql")
