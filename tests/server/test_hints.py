# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A hint is what people write next: following it helps, and nobody gets more than they asked for."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Database

ALL_BEFORE_17 = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]


@pytest.mark.versions(max=16)
@pytest.mark.parametrize("section", ["grants", "default_privileges"])
@pytest.mark.parametrize(
    ("others", "hint"),
    [
        ([], "Leave this rule out for this server."),
        (["SELECT"], "Leave it out for this server."),
        (ALL_BEFORE_17, "Leave it out for this server, or write ALL, which means the rest of the rule here."),
    ],
)
def test_a_privilege_of_a_later_version_is_not_exchanged_for_all(
    db: Database, section: str, others: list[str], hint: str
) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t ()")
    rules: dict[str, Any] = {
        "grants": [{"role": "r", "privileges": [*others, "MAINTAIN"], "object": {"type": "table", "schema": "s", "name": "t"}}],
        "default_privileges": [
            {"owner": "own", "schema": "s", "grant": [{"role": "r", "privileges": [*others, "MAINTAIN"], "on_type": "table"}]}
        ],
    }  # fmt: skip
    failed = db.fails(
        {"roles": [{"name": "r"}, {"name": "own"}], section: rules[section]}, "unsupported_version", "MAINTAIN"
    )
    assert [problem["hint"] for problem in failed.problems] == [hint]


@pytest.mark.versions(max=15)
def test_a_membership_without_set_is_not_answered_with_an_attribute(db: Database) -> None:
    manifest = "roles: [{name: g, members: [{name: m, set: false}]}, {name: m}]"
    failed = db.fails(manifest, "unsupported_version", "set: false needs PostgreSQL 16")
    assert failed.problems[0]["hint"] == (
        "No option or attribute keeps a member from SET ROLE here: leave the option out if m may do that, else the membership."
    )


@pytest.mark.versions(max=15)
@pytest.mark.parametrize(("member", "option"), [("m", "false"), ("m, inherit: false", "true")])
def test_an_option_that_contradicts_the_attribute_names_the_attribute(db: Database, member: str, option: str) -> None:
    manifest = f"roles: [{{name: g, members: [{{name: m, inherit: {option}}}]}}, {{name: %s}}]"
    failed = db.fails(manifest % member, "unsupported_version", "contradicts")
    does = "does not inherit" if option == "true" else "inherits"
    assert failed.problems[0]["hint"] == (
        f"Give the role m inherit: {option}, which counts for all its memberships; or leave the option out: m {does}."
    )
    db.converge(manifest % f"m, inherit: {option}")


@pytest.mark.parametrize("retirement", [{}, {"drop_owned": True}])
def test_the_only_superuser_is_not_answered_with_another_one(db: Database, retirement: dict[str, Any]) -> None:
    failed = db.fails(
        {"retirements": [{"role": "postgres", **retirement}]}, "self_protection", "which is never dropped"
    )
    assert [problem["hint"] for problem in failed.problems if "superuser" in problem["message"]] == [None]
