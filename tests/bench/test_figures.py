# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Medians and ratios, and what they say about what had to be reached."""

from __future__ import annotations

from typing import Any

from figures import Figure, Figures, Trouble
from names import COLLECTION, PSQL, PYTHON, far
from targets import Target, targets


def sample(seconds: float, memory: int = 1, **more: Any) -> dict[str, Any]:
    return {"seconds": seconds, "processor": seconds, "memory": memory, **more}


def figures(rounds: dict[str, list[dict[str, Any]]], **facts: Any) -> Figures:
    return Figures({"rounds": rounds, "facts": facts})


def test_a_ratio_is_of_one_round() -> None:
    rounds = [{COLLECTION: sample(own), PSQL: sample(floor)} for own, floor in ((1, 1), (30, 10), (4, 2))]
    found = figures({"18/100x100/apply": rounds})
    assert found.within(18, "100x100", "apply", (COLLECTION, PSQL), lambda own, floor: own / floor) == 2
    assert found.of(18, "100x100", "apply", COLLECTION) == Figure(4, 1, 30, 3, 1)
    assert found.within(18, "100x100", "apply", (COLLECTION, PYTHON), lambda own, floor: own / floor) is None


def test_another_tool_is_compared_with_the_run_beside_it() -> None:
    found = figures(
        {
            "18/10x10/idle": [{COLLECTION: sample(1)}],
            "18/10x10/idle beside pgsesame": [{COLLECTION: sample(2), "pgsesame": sample(20, late=600)}],
            "18/10x10/plan beside pgsesame": [{"pgsesame": {"failed": "it broke"}}],
        }
    )
    assert found.times(18, "10x10", "idle", "pgsesame") == 10
    assert found.seconds(18, "10x10", "idle", COLLECTION) == 1
    # It was not done: there are no seconds to show.
    assert found.seconds(18, "10x10", "idle", "pgsesame") is None
    assert found.of(18, "10x10", "plan", "pgsesame") == Trouble("it broke")
    assert found.of(18, "10x10", "apply", "pgsesame") is None


def reached(found: Figures, tools: list[str] | None = None) -> dict[str, Target]:
    every = targets(found, [16, 18], ["10x10", "100x100", "100x1000"], tools or [])
    return {target.asked: target for target in every}


def one(found: dict[str, Target], beginning: str) -> Target:
    (target,) = (target for asked, target in found.items() if asked.startswith(beginning))
    return target


def test_what_was_not_measured_is_neither_reached_nor_missed() -> None:
    assert {target.met for target in reached(figures({}), ["pgsesame"]).values()} == {None}


def test_every_version_has_to_reach_it() -> None:
    def rounds(own: float) -> list[dict[str, Any]]:
        near = {COLLECTION: sample(own), PYTHON: sample(0.5), PSQL: sample(0.1)}
        return [{**near, far(COLLECTION, 20): sample(own + 1)}]

    found = figures({"16/100x100/idle": rounds(0.9), "18/100x100/idle": rounds(1.2)})
    target = one(reached(found), "idle at 100x100: at most 0.4 s")
    assert (target.reached, target.met) == ("0.30 s more on 16, 0.60 s more on 18", False)
    found = figures({"16/100x100/idle": rounds(0.9), "18/100x100/idle": rounds(1.0)})
    assert one(reached(found), "idle at 100x100: at most 0.4 s").met


def test_the_sizes_are_compared_by_their_medians() -> None:
    found = figures(
        {
            "18/100x100/idle": [{COLLECTION: sample(1)}],
            "18/100x100/plan": [{COLLECTION: sample(2.1)}],
            "18/100x1000/idle": [{COLLECTION: sample(2.4, memory=190_000_000)}],
        }
    )
    assert one(reached(found), "idle at 100x1000").met
    assert not one(reached(found), "plan at 100x100").met
    assert one(reached(found), "peak memory").reached == "190 MB on 18"


def test_round_trips_that_grow_are_a_miss() -> None:
    def wire(trips: int) -> dict[str, Any]:
        return {"round_trips": trips, "inspection": 3}

    facts = {"wire apply 18/10x10": wire(16), "wire apply 18/100x100": wire(16)}
    assert one(reached(figures({}, **facts)), "apply: a number").met
    facts["wire apply 18/100x100"] = wire(17)
    assert one(reached(figures({}, **facts)), "apply: a number").met is False
    facts["wire idle 18/100x1000"] = {"round_trips": 20, "inspection": 13}
    assert one(reached(figures({}, **facts)), "inspection").reached == "13 on 18"
    assert one(reached(figures({}, **facts)), "inspection").met is False


def test_other_tools_have_their_own_factors() -> None:
    def beside(tool: str, seconds: float) -> dict[str, list[dict[str, Any]]]:
        return {f"18/100x100/idle beside {tool}": [{COLLECTION: sample(1), tool: sample(seconds)}]}

    found = figures({**beside("pgsesame", 7.5), **beside("pgroles", 1.5), **beside("community.postgresql", 400)})
    every = reached(found, ["pgsesame", "pgroles", "community.postgresql", "ldap2pg"])
    assert [one(every, f"idle: {text}").met for text in ("at least 8", "faster than pgroles", "at least 300")] == [
        False,
        True,
        True,
    ]
    assert one(every, "idle: faster than ldap2pg").met is None


def test_a_result_has_to_be_small_and_exact() -> None:
    result = {"counts": {"grants": 31000}, "characters": 400_000, "counts_exact": True, "digest_exact": True}

    def met(**more: Any) -> bool | None:
        return one(reached(figures({}, **{"result 26x100": {**result, **more}})), "result of the plan at 26x100").met

    assert met()
    assert met(script_ends_right=True)
    assert not met(characters=500_000)
    assert not met(digest_exact=False)
    assert not met(counts_exact=False)
