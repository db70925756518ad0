# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much work there is for each item where there are very many, counted in calls and not in seconds."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, Callable, List, Sequence, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import (
    Change,
    Grant,
    Plan,
    Revoke,
    Target,
    Withheld,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.feasibility import _unspeakable
from ansible_collections.pg_access.reconcile.plugins.module_utils.filters import Context, Options, apply_filters
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.report.result import result_of
from ansible_collections.pg_access.reconcile.plugins.module_utils.run import Run
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import Object, RoleRef
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements.order import composed_statements
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World

pytest.importorskip("psycopg")

OWNER = RoleRef(3, "owner")
ROLES = [RoleRef(100 + number, f"role_{number:02}") for number in range(40)]


def revokes(number: int) -> Tuple[Revoke, ...]:
    """Each of another table, with several of other roles on each: no two tables have the same ACL."""
    found: List[Revoke] = []
    for at in range(number // 4):
        target = Target("table", "s", (Object(1000 + at, f"a_table_{at:05}"),), OWNER)
        for step in range(4):
            role = ROLES[(at * (step + 3) + step) % len(ROLES)]
            found.append(Revoke(target, role, frozenset(("SELECT", "UPDATE")), OWNER))
    return tuple(found)


def grants(number: int) -> Tuple[Grant, ...]:
    return tuple(Grant(change.target, change.grantee, change.privileges) for change in revokes(number))


def run_of(suppressed: Sequence[Revoke] = (), withheld: Sequence[Withheld] = (), changes: Sequence[Change] = ()) -> Run:
    state = World().state
    behind = tuple(composed_statements(changes, {}, 17))
    plan = Plan(tuple(changes), suppressed=tuple(suppressed), withheld=tuple(withheld))
    return Run(plan, tuple(item.text for item in behind), state.server, state, behind=behind)


def result(run: Run) -> Any:
    return result_of(run, Options(), facts=False, diff=False)


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, Python's own included."""
    count = 0

    def called(_frame: Any, event: str, _what: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def each(work: Callable[[int], Callable[[], object]], fewer: int = 4_000) -> float:
    """The calls for one more item: work that is the same for any number of them does not count."""
    few, many = calls(work(fewer)), calls(work(2 * fewer))
    return (many - few) / fewer


def result_with(number: int, **what: Any) -> Callable[[], object]:
    run = run_of(**{name: make(number) for name, make in what.items()})
    return lambda: result(run)


def held(number: int) -> List[Withheld]:
    return [Withheld(change, "mode") for change in revokes(number)]


def composed(number: int, make: Callable[[int], Sequence[Change]]) -> Callable[[], object]:
    changes = make(number)
    return lambda: composed_statements(changes, {}, 17)


def filtered(number: int) -> Callable[[], object]:
    world = World()
    context = Context(manifest_to_policy({"roles": [{"name": "a"}]}), world.state, Options())
    grantee = world.ref("postgres")
    changes = [replace(change, grantee=grantee) for change in revokes(number)]
    return lambda: apply_filters(changes, context)


def speakable(number: int) -> Callable[[], object]:
    changes = revokes(number)
    return lambda: _unspeakable(changes)


@pytest.mark.parametrize(
    # Between what it takes and what it took: 25 instead of 856 for an item of the backlog.
    ("work", "most"),
    [
        pytest.param(lambda number: result_with(number, suppressed=revokes), 100, id="a result with a backlog"),
        pytest.param(lambda number: result_with(number, withheld=held), 100, id="a result with what is withheld"),
        pytest.param(lambda number: result_with(number, changes=revokes), 60, id="a result with revokes"),
        pytest.param(lambda number: result_with(number, changes=grants), 60, id="a result with grants"),
        pytest.param(lambda number: composed(number, revokes), 40, id="statements of revokes"),
        pytest.param(lambda number: composed(number, grants), 40, id="statements of grants"),
        pytest.param(filtered, 50, id="the filters"),
        pytest.param(speakable, 20, id="names that can be spelt"),
    ],
)
def test_an_item_more_is_little_work(work: Any, most: int) -> None:
    assert each(work) <= most
