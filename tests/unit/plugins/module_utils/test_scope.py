# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a policy makes managed, and what it only touches."""

from __future__ import annotations

from typing import Any, Sequence

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.scope import Scope, scope_of
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import declared, default, rule


def scope(schemas: Sequence[str] = (), **raw: Any) -> Scope:
    return scope_of(manifest_to_policy({"roles": declared("a", "o"), **raw}), schemas, "app")


def test_a_declared_schema_is_managed_even_before_it_exists() -> None:
    found = scope_of(manifest_to_policy({"schemas": [{"name": "s"}]}), [], "app")
    assert set(found.schemas) == {"s"}
    assert found.inspected == {"s"}
    assert not found.claimed_by_rules


def test_a_pattern_claims_what_exists_but_no_system_schema() -> None:
    found = scope(["app_b", "app_a", "other", "pg_catalog", "information_schema"], scope={"schemas": ["app_*", "*_*"]})
    assert list(found.schemas) == ["app_a", "app_b"]
    assert found.schemas["app_a"] == ("scope.schemas: app_*", "scope.schemas: *_*")


def test_patterns_tell_upper_from_lower_case() -> None:
    assert not scope(["App"], scope={"schemas": ["app*"]}).schemas


@pytest.mark.parametrize(
    "grant",
    [
        rule("a", "SELECT", "table", "s", "t"),
        rule("a", "SELECT", "table", "s", "*"),
        rule("a", "USAGE", "schema", None, "s"),
    ],
)
def test_a_present_grant_to_a_role_claims_its_schema(grant: Any) -> None:
    found = scope(["s"], grants=[grant])
    assert list(found.schemas) == ["s"]
    assert found.claimed_by_rules == {"s"}


@pytest.mark.parametrize(
    "grant",
    [
        rule("a", "SELECT", "table", "s", "t", ensure="absent"),
        rule("public", "SELECT", "table", "s", "t"),
        rule("a", "SELECT", "table", "pg_catalog", "pg_authid"),
        rule("a", "SELECT", "view", "information_schema", "tables"),
    ],
)
def test_absent_public_and_system_rules_only_touch_what_they_name(grant: Any) -> None:
    found = scope(["s"], grants=[grant])
    assert not found.schemas
    assert found.inspected == {grant["object"]["schema"]}


def test_a_rule_on_a_schema_itself_needs_no_look_at_its_objects() -> None:
    assert not scope(["public"], grants=[rule("public", "CREATE", "schema", None, "public", ensure="absent")]).inspected


def test_a_declared_schema_is_not_claimed_by_rules_alone() -> None:
    policy = manifest_to_policy(
        {"roles": declared("a"), "schemas": [{"name": "s"}], "grants": [rule("a", "SELECT", "table", "s", "t")]}
    )
    found = scope_of(policy, [], "app")
    assert not found.claimed_by_rules
    assert len(found.schemas["s"]) == 2


def test_a_default_privilege_claims_its_schema_but_not_for_public_nor_globally() -> None:
    assert scope(["s"], default_privileges=[default("o", "s", "table", "a", "SELECT")]).claimed_by_rules == {"s"}
    assert not scope(["s"], default_privileges=[default("o", "s", "table", "public", "SELECT")]).schemas
    assert not scope(["s"], default_privileges=[default("o", "s", "table", "a", "SELECT", ensure="absent")]).schemas
    assert not scope(["s"], default_privileges=[default("o", None, "table", "a", "SELECT")]).schemas


def test_objects_outside_schemas_are_shared_and_the_unnamed_database_is_the_connected_one() -> None:
    found = scope(grants=[rule("a", "CONNECT", "database"), rule("a", "USAGE", "language", None, "plpgsql")])
    assert set(found.shared) == {("database", "app"), ("language", "plpgsql")}
    assert list(found.summary()) == ["database app", "language plpgsql"]


def test_an_absent_rule_manages_no_shared_object() -> None:
    assert not scope(
        grants=[rule("public", "CONNECT", "database"), rule("a", "CONNECT", "database", ensure="absent")]
    ).shared


def test_a_claim_by_many_rules_is_told_by_three_and_a_count() -> None:
    found = scope(["s"], grants=[rule("a", "SELECT", "table", "s", f"t{number}") for number in range(7)])
    claims = found.schemas["s"]
    assert len(claims) == 4
    assert claims[-1] == "and 4 more"
