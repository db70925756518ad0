# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations as lines that a person reads."""

from __future__ import annotations

from typing import Any, Dict, Sequence

from ansible_collections.pg_access.reconcile.plugins.plugin_utils.answers import MOST, lines_of


def item(role: str, **told: Any) -> Dict[str, Any]:
    return {
        "role": role, "object": {"type": "table", "schema": "inventory", "name": "items", "columns": []}, "objects": ["items"],
        "count": 1, "privilege": "SELECT", "grant_option": False, "grantor": "owner", "how": "direct", "via": [],
        "set_role": None, "because": "declared", "rule": "grants[0]", "plan": "unchanged", **told,
    }  # fmt: skip


def result(explain: Any, **more: Any) -> Dict[str, Any]:
    return {"server": {"database": "shop"}, "explain": explain, **more}


def place(kind: str, name: str, schema: Any = None, columns: Sequence[str] = ()) -> Dict[str, Any]:
    return {"type": kind, "schema": schema, "name": name, "columns": list(columns)}


def test_each_way_is_a_line_and_privileges_share_one() -> None:
    found = [
        item("app", object=place("role", "team"), privilege="INHERIT", rule="memberships[0]"),
        item("app", object=place("role", "team"), privilege="SET", rule="memberships[0]"),
        item(
            "app", object=place("table", "*", "inventory"), count=12, how="group", via=["team", "editor"], plan="gained"
        ),
        item(
            "app",
            object=place("table", "t", "s", ["a", "b"]),
            grant_option=True,
            set_role="boss",
            how="group",
            via=["boss"],
        ),
        item(
            "app",
            object=place("materialized_view", "v", "s"),
            how="public",
            via=["PUBLIC"],
            because="unmanaged",
            rule=None,
        ),
        item("boss", object=place("*", "*"), privilege="ALL", how="superuser", because="unmanaged", rule=None),
        item("boss", object=place("schema", "s"), privilege="OWNER", how="owner", plan="lost", grant_option=True),
    ]
    assert lines_of(result(found)) == [
        "shop: app, boss",
        "app has INHERIT, SET on role team: declared (memberships[0])",
        "app gains SELECT on table inventory.* (12), through team -> editor: declared (grants[0])",
        "app has SELECT with grant option on table s.t (a, b), through boss, after SET ROLE boss: declared (grants[0])",
        "app has SELECT on materialized view s.v, as everybody: unmanaged",
        "boss has ALL on everything, as superuser: unmanaged",
        "boss loses OWNER on schema s, as owner: declared (grants[0])",
    ]


def test_it_says_how_many_are_not_shown() -> None:
    found = [item(role, rule=f"grants[{number}]") for role in ("a", "b") for number in range(MOST + 3)]
    lines = lines_of(result(found, truncated=True))
    assert len(lines) == 2 * MOST + 4
    assert lines[MOST + 1] == "a: 3 more answers" and lines[-2] == "b: 3 more answers"
    assert lines[-1].startswith("the result was too large")


def test_nothing_is_said_of_what_nobody_asked() -> None:
    assert lines_of({"server": {"database": "shop"}}) == ["shop: nothing was to be explained"]
    assert lines_of(result([])) == ["shop: there is nothing to explain"]
