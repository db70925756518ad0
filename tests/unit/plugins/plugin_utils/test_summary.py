# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A result as lines that a person reads."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.summary import MOST, lines_of, lines_of_all

COUNTS: Dict[str, Dict[str, int]] = {
    "roles": {"created": 0, "altered": 0, "dropped": 0},
    "passwords": {"set": 0},
    "memberships": {"added": 0, "altered": 0, "removed": 0},
    "schemas": {"created": 0, "owner_changed": 0},
    "grants": {"granted": 0, "revoked": 0},
    "default_privileges": {"granted": 0, "revoked": 0},
}


def result(affected: List[Dict[str, Any]], kept: Dict[str, int], **more: Any) -> Dict[str, Any]:
    none = {"created": False, "dropped": False, "gains": {}, "loses": {}, "altered": [], "password": None}
    items = [{**none, **item} for item in affected]
    return {
        "server": {"database": "shop"},
        "changed": bool(affected),
        "check_mode": True,
        "sql": ["x"] * len(affected),
        "affected_roles": items,
        "withheld": [],
        "summary": {**COUNTS, "suppressed_revokes": kept},
        **more,
    }


def test_it_says_who_gains_and_who_loses_what() -> None:
    gains = {"privileges": 12, "default_privileges": 1, "memberships": ["a", "b"], "attributes": ["LOGIN"]}
    more = {"schemas": ["s"], "belongings_of": ["old"]}
    found = result(
        [
            {"role": "app", "gains": gains, "loses": {"grant_options": 2}},
            {"role": "heir", "gains": more},
            {"role": "old", "dropped": True},
        ],
        {},
        summary={**COUNTS, "grants": {"granted": 12, "revoked": 0}, "schemas": {"created": 0, "owner_changed": 1},
                 "suppressed_revokes": {}},
        withheld=[{"reason": "mode"}, {"reason": "external"}, {"reason": "mode"}],
    )  # fmt: skip
    assert lines_of(found) == [
        "shop: would change with 3 statements",
        "schemas: 1 moved; privileges: 12 granted",
        "gain: app: 12 privileges, 1 default privilege, member of a, b, LOGIN",
        "gain: heir: owner of schema s, what old owned",
        "lose: app: 2 grant options",
        "dropped: old",
        "held back for other reasons: 3 (external, mode)",
    ]


def test_it_names_who_is_altered_and_whose_password_is_sent() -> None:
    found = result(
        [
            {"role": "app", "created": True, "gains": {"attributes": ["LOGIN"]}, "password": "set"},
            {"role": "batch", "altered": ["CONNECTION LIMIT", "work_mem"], "password": "set"},
            {"role": "old", "password": "removed"},
            {"role": "many", "altered": [f"x{number}" for number in range(8)]},
        ],
        {},
        summary={**COUNTS, "roles": {"created": 1, "altered": 2, "dropped": 0}, "passwords": {"set": 3},
                 "suppressed_revokes": {}},
    )  # fmt: skip
    assert lines_of(found) == [
        "shop: would change with 4 statements",
        "roles: 1 created, 2 altered; passwords: 3 set",
        "gain: app: LOGIN",
        "altered: batch: CONNECTION LIMIT, work_mem",
        "altered: many: x0, x1, x2, x3, x4 and 3 more",
        "password set: app, batch",
        "password removed: old",
    ]


def test_names_of_passwords_and_alterations_are_bounded() -> None:
    many = [{"role": f"r{number}", "password": "set", "altered": ["COMMENT"]} for number in range(MOST + 3)]
    lines = lines_of(result(many, {}))
    assert lines[-2] == "altered: 3 more roles"
    assert lines[-1].endswith(f", r{MOST - 1} and 3 more") and lines[-1].startswith("password set: r0, ")


def test_nothing_to_do_is_one_line() -> None:
    assert lines_of(result([], {})) == ["shop: nothing to do"]
    assert lines_of(result([{"role": "a"}], {}, check_mode=False))[0] == "shop: changed with 1 statement"


@pytest.mark.parametrize(
    "previous",
    [
        {"suppressed_revokes": {"a": 10, "b": 2, "gone": 5}},
        {"summary": {"suppressed_revokes": {"a": 10, "b": 2, "gone": 5}}, "server": {"database": "shop"}},
        {"shop": {"digest": "x", "summary": {"suppressed_revokes": {"a": 10, "b": 2, "gone": 5}}}, "other": {}},
    ],
)
def test_the_backlog_has_its_trend(previous: Any) -> None:
    assert lines_of(result([], {"b": 2, "a": 7, "new": 1, "c": 0}), previous=previous)[1:] == [
        "backlog: 7 undeclared privileges kept for a (3 fewer than before)",
        "backlog: 2 undeclared privileges kept for b (as before)",
        "backlog: 1 undeclared privilege kept for new (1 more than before)",
        "backlog: 0 undeclared privileges kept for c (as before)",
        "backlog: nothing more kept for gone (5 before)",
    ]


@pytest.mark.parametrize(
    "previous",
    ["abc", {"other": {"summary": {"suppressed_revokes": {"a": 1}}}}, {"shop": 3}, {"shop": {"summary": 3}},
     {"summary": {"suppressed_revokes": {"a": 1}}, "server": {"database": "other"}},
     {"shop": {"summary": {"suppressed_revokes": {"a": "x"}}}},
     {"db1": {"shop": {"summary": {"suppressed_revokes": {"a": 1}}}}}],
)  # fmt: skip
def test_what_is_no_earlier_result_of_this_database_gives_no_trend_and_says_so(previous: Any) -> None:
    assert lines_of(result([], {"a": 7}), previous=previous)[1:] == [
        "backlog: 7 undeclared privileges kept for a",
        "backlog: the earlier result that was given says nothing about shop",
    ]


@pytest.mark.parametrize("previous", [None, "", [], {}])
def test_nothing_earlier_is_no_matter(previous: Any) -> None:
    assert lines_of(result([], {"a": 7}), previous=previous)[1:] == ["backlog: 7 undeclared privileges kept for a"]


def test_it_stays_readable_however_many_there_are() -> None:
    many = [{"role": f"r{number}", "gains": {"memberships": [f"g{n}" for n in range(9)]}} for number in range(MOST + 7)]
    lines = lines_of(result(many, {}, truncated=True))
    assert len(lines) == MOST + 4
    assert lines[2] == "gain: r0: member of g0, g1, g2, g3, g4 and 4 more"
    assert lines[-2:] == [
        "gain: 7 more roles",
        "the result was too large, so lists in it are shortened; counts are exact",
    ]


def test_an_override_can_go_when_all_databases_agree() -> None:
    everywhere, here = [result([], {}, unneeded_overrides=names) for names in (["batch", "loader"], ["batch"])]
    said = "override: batch keeps nothing in any of these databases: its privilege_reconciliation: additive can be removed"
    none = result([], {"loader": 1, "batch": 2}, unneeded_overrides=[])
    assert lines_of_all([everywhere, here]) == ["shop: nothing to do", "shop: nothing to do", said]
    assert not [line for line in lines_of_all([everywhere, here, none]) if line.startswith("override")]
    # The module's own warning says it of a single one.
    assert lines_of_all([everywhere]) == lines_of(everywhere)
    assert lines_of_all([]) == []
