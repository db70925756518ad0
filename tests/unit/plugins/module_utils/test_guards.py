# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stops an apply that could be run: somebody who is not declared would lose something that is in use."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import AlterRole, Plan, RevokeDefault
from ansible_collections.pg_access.reconcile.plugins.module_utils.filters import Options
from ansible_collections.pg_access.reconcile.plugins.module_utils.guards import (
    MOST_REASONS,
    MOST_UNDECLARED,
    guard_problems,
    roles_at_stake,
    undeclared_losers,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.notices import losers
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.verification import only_known
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World, declared

POLICY = manifest_to_policy({"roles": declared("m"), "assume_roles": ["other"]})
IDLE = (False, None, None)
CONNECTED = (True, None, None)


class Case:
    def __init__(self) -> None:
        self.world = World()
        self.table = self.world.table("s", "t", "o")

    def revoke(self, grantee: str, *privileges: str, **flags: Any) -> Any:
        target = self.world.target("table", "s", [self.table], "o")
        return self.world.revoke(target, grantee, *(privileges or ("SELECT",)), **flags)

    def messages(self, *changes: Any, stakes: Dict[str, Any], undeclared_grantees: Any = None) -> List[str]:
        options = Options(undeclared_grantees=undeclared_grantees)
        by_oid = {self.world.oid(name): stake for name, stake in stakes.items()}
        lost = undeclared_losers(Plan(changes), POLICY, options, self.world.state)
        problems = guard_problems(Plan(changes), lost, self.world.state, by_oid)
        assert {problem.code for problem in problems} <= {"guard"}
        return [problem.message for problem in problems]

    def at_stake(self, *changes: Any, **options: Any) -> List[int]:
        lost = undeclared_losers(Plan(changes), POLICY, Options(**options), self.world.state)
        return roles_at_stake(Plan(changes), lost)


@pytest.mark.parametrize(
    ("stake", "reason"),
    [
        (CONNECTED, "is connected"),
        ((False, "s.v", None), "owns the view or table with rules s.v"),
        ((False, None, "s.f()"), "owns the SECURITY DEFINER function s.f()"),
        ((True, "s.v", None), "is connected and owns the view or table with rules s.v"),
    ],
)
def test_an_undeclared_role_in_use_stops_the_apply(stake: Any, reason: str) -> None:
    case = Case()
    assert case.messages(case.revoke("x", "SELECT", "INSERT"), stakes={"x": stake}) == [
        f"undeclared role x would lose 2 privileges and {reason}"
    ]


def test_an_idle_or_declared_or_assumed_role_stops_nothing() -> None:
    case = Case()
    changes = [case.revoke(name) for name in ("x", "m", "other")]
    assert case.messages(*changes, stakes={"x": IDLE, "m": CONNECTED, "other": CONNECTED}) == []


@pytest.mark.parametrize("word", ["revoke", "keep"])
def test_a_written_decision_passes_the_guards(word: str) -> None:
    case = Case()
    change = case.revoke("x")
    assert case.messages(change, stakes={"x": CONNECTED}, undeclared_grantees=word) == []
    assert case.at_stake(change, undeclared_grantees=word) == []
    assert case.at_stake(change) == [case.world.oid("x")]


def test_whoever_inherits_the_loser_counts_but_no_superuser() -> None:
    case = Case()
    case.world.member("heir", "x")
    case.world.member("setter", "x", inherit=False)
    case.world.role("root", superuser=True)
    case.world.member("root", "x")
    change = case.revoke("x")
    stakes = dict.fromkeys(("heir", "setter", "root"), CONNECTED)
    assert case.messages(change, stakes=stakes) == [
        "undeclared role x would lose 1 privilege and is inherited by heir, who is connected"
    ]
    assert case.at_stake(change) == sorted([case.world.oid("x"), case.world.oid("heir")])


def test_only_a_few_reasons_are_given() -> None:
    case = Case()
    heirs = [f"heir{number}" for number in range(MOST_REASONS + 3)]
    for heir in heirs:
        case.world.member(heir, "x")
    (message,) = case.messages(case.revoke("x"), stakes=dict.fromkeys(heirs, CONNECTED))
    assert message.count("is inherited by") == MOST_REASONS


@pytest.mark.parametrize(("count", "stops"), [(MOST_UNDECLARED, False), (MOST_UNDECLARED + 1, True)])
def test_more_than_twenty_losers_stop_the_apply_by_themselves(count: int, stops: bool) -> None:
    case = Case()
    found = case.messages(*(case.revoke(f"x{number:02}") for number in range(count)), stakes={})
    assert len(found) == stops
    if stops:
        assert found[0].startswith("21 roles that the manifest does not declare would lose privileges: x00 1, x01 1")
        assert found[0].endswith("x09 1 and 11 more")


def test_what_a_rule_takes_by_name_and_what_lasts_a_moment_is_no_loss() -> None:
    case = Case()
    default = RevokeDefault(case.world.ref("o"), "s", "table", case.world.ref("y"), frozenset(("SELECT", "INSERT")))
    plan = Plan((case.revoke("x", explicit=True), case.revoke("x", again=True), case.revoke("y"), default))
    assert losers(plan.changes, POLICY) == {case.world.ref("y"): 3}


def test_losing_an_omitted_login_stops_the_apply_while_the_role_is_connected() -> None:
    case = Case()
    omitted = AlterRole(case.world.ref("m"), {"login": False}, {"login": True}, frozenset(("login",)), "")
    meant = AlterRole(case.world.ref("m"), {"login": False}, {"login": True}, frozenset(), "")
    expected = ["role m would lose LOGIN, which the manifest leaves out, and is connected"]
    for word in (None, "revoke", "keep"):
        assert case.messages(omitted, stakes={"m": CONNECTED}, undeclared_grantees=word) == expected
    assert case.messages(omitted, stakes={"m": IDLE}) == []
    assert case.messages(meant, stakes={"m": CONNECTED}) == []
    assert case.at_stake(omitted, meant, undeclared_grantees="keep") == [case.world.oid("m")]


def test_a_second_look_leaves_out_what_appeared_since() -> None:
    case = Case()
    later = case.world.table("s", "later", "o")
    target = case.world.target("table", "s", [case.table, later], "o")
    both = case.world.grant(target, "m", "SELECT")
    plan = Plan((both, case.world.revoke(target._replace(objects=(later,)), "m", "SELECT"), case.revoke("stranger")))
    found: Any = only_known(plan, frozenset((case.table.oid,)), frozenset((case.world.oid("m"),)))
    assert [change.target.objects for change in found.changes] == [(case.table,)]
