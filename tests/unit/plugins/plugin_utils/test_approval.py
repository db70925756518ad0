# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What passes for an approval, and what does not."""

from __future__ import annotations

from typing import Any, List

import pytest
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.approval import approval_of, artifact_of

ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "a" * 64
APPROVED = {"db1": {"shop": {"digest": ONE}, "billing": {"digest": TWO}}, "db2": {"shop": {"digest": TWO}}}


def test_each_database_gets_the_digest_that_was_approved_for_it() -> None:
    assert approval_of(APPROVED, "db1", ["billing", "shop"]) == ([], [TWO, ONE])


def test_a_database_that_only_the_environment_names_is_the_only_one() -> None:
    assert approval_of(APPROVED, "db2", [""]) == ([], [TWO])
    problems, digests = approval_of(APPROVED, "db1", [""])
    assert "billing, shop for db1" in problems[0] and digests == []


def test_names_that_awx_made_numbers_of_are_found() -> None:
    assert approval_of({10: {2024: {"digest": ONE}}}, "10", ["2024"]) == ([], [ONE])


@pytest.mark.parametrize("approved", ["", None, {}, [], "sha256:" + "1" * 64, 0, True])
def test_an_artifact_that_is_lost_is_a_problem(approved: Any) -> None:
    problems, digests = approval_of(approved, "db1", ["shop"])
    assert "is empty or no dict" in problems[0] and digests == []


@pytest.mark.parametrize("entry", [None, {}, "", [ONE], ONE])
def test_so_is_a_host_without_plans(entry: Any) -> None:
    problems, digests = approval_of({"db1": entry}, "db1", ["shop"])
    assert "nothing for db1" in problems[0] and digests == []


def test_so_is_a_host_or_a_database_that_is_missing() -> None:
    problems, digests = approval_of(APPROVED, "db3", ["shop"])
    assert "db1, db2, and not db3" in problems[0] and digests == []
    problems, digests = approval_of(APPROVED, "db2", ["shop", "billing"])
    assert problems == ["reconcile_approved has shop for db2, and not billing: nobody approved it"] and digests == []


WRONG: List[Any] = ["", None, True, 11, "1" * 64, "sha256:", ONE + "\n", ONE.upper(), ONE[:-1], ONE + "1", [ONE]]


@pytest.mark.parametrize("digest", WRONG)
def test_what_is_no_digest_is_nothing(digest: Any) -> None:
    problems, digests = approval_of({"db1": {"shop": {"digest": digest}}}, "db1", ["shop"])
    assert "no digest of a plan for db1, shop" in problems[0] and digests == []
    assert approval_of({"db1": {"shop": digest}}, "db1", ["shop"]).digests == []


def test_an_artifact_is_small_and_is_found_again() -> None:
    summary = {"roles": {"created": 1}, "suppressed_revokes": {"old": 3}, "managed": {"schema s": ["x"]}}
    result = {
        "server": {"database": "shop"},
        "plan_digest": ONE,
        "changed": True,
        "suppressed_revoke_count": 3,
        "summary": summary,
        "sql": ["x"],
    }
    made = artifact_of([result])
    kept = {"roles": {"created": 1}, "suppressed_revokes": {"old": 3}}
    assert made == {"shop": {"digest": ONE, "changed": True, "suppressed_revoke_count": 3, "summary": kept}}
    assert approval_of({"h": made}, "h", ["shop"]).digests == [ONE]
