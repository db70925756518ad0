# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several databases' manifests become the manifest of each one's own run."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.databases import Runs, arranged, runs_of

SHARED: Dict[str, Any] = {
    "default_owner": "app_owner",
    "profiles": {"reader": {"grants": [{"privileges": ["USAGE"], "object": {"type": "schema"}}]}},
    "roles": [
        {"name": "app_owner"},
        {"name": "app", "login": True},
        {"name": "staff"},
        {"name": "pgloader_pg", "privilege_reconciliation": "additive"},
        {"name": "pg_monitor", "external": True},
    ],
    "memberships": [{"role": "staff", "members": [{"name": "app"}]}],
    "retirements": [
        {"role": "old[1]*", "drop_owned": True, "all_databases": True},
        {"role": "older", "drop_owned": True},
    ],
    "scope": {"roles": ["app_*"], "ignore_roles": ["backup_*"]},
}
SHOP: Dict[str, Any] = {
    "schemas": [{"name": "inventory", "profiles": ["reader"]}],
    "memberships": [{"role": "inventory-reader", "members": [{"name": "app"}]}],
}
BILLING: Dict[str, Any] = {
    "schemas": [{"name": "invoices", "profiles": ["reader"], "role_pattern": "{profile}_of_{schema}"}],
    "grants": [{"role": "app", "privileges": ["USAGE"], "object": {"type": "schema", "name": "invoices"}}],
    "scope": {"schemas": ["inv*"]},
}


def made(shared: Mapping[str, Any], *databases: Mapping[str, Any], **options: Any) -> Runs:
    return runs_of(shared, dict(zip(("shop", "billing", "hr"), databases)), **options)


def test_the_first_run_looks_after_the_roles_and_each_after_its_own() -> None:
    runs = made(SHARED, SHOP, BILLING, assumed=["elsewhere"])
    assert runs.problems == []
    first, second = runs.runs
    assert first == {
        **SHARED,
        **SHOP,
        "login_db": "shop",
        "memberships": [*SHARED["memberships"], *SHOP["memberships"]],
        "assume_roles": ["elsewhere", "reader_of_invoices"],
    }
    assert second == {
        **BILLING,
        "login_db": "billing",
        "default_owner": "app_owner",
        "profiles": SHARED["profiles"],
        "roles": [{"name": "pgloader_pg", "external": True, "privilege_reconciliation": "additive"}],
        "scope": {"schemas": ["inv*"], "ignore_roles": ["backup_*", "old[[]1][*]"]},
        "assume_roles": ["app", "app_owner", "elsewhere", "inventory-reader", "staff"],
    }


def test_the_module_accepts_each_run() -> None:
    for run in made(SHARED, SHOP, BILLING).runs:
        policy = manifest_to_policy({name: value for name, value in run.items() if name != "login_db"})
        assert "pgloader_pg" in policy.roles and policy.roles["pgloader_pg"].additive


def test_a_role_that_is_yet_to_be_made_keeps_nothing_anywhere() -> None:
    run = made(SHARED, SHOP, BILLING, created=["pgloader_pg", "app"]).runs[1]
    assert "roles" not in run and "pgloader_pg" in run["assume_roles"]


def test_where_no_role_is_dropped_the_others_take_from_it_what_they_would() -> None:
    assert made(SHARED, SHOP, BILLING, drops=False).runs[1]["scope"]["ignore_roles"] == ["backup_*"]


def test_a_password_goes_where_its_role_is_looked_after() -> None:
    words = {"app": "1", "inventory-reader": "2", "reader_of_invoices": "3", "unknown": "4"}
    first, second = made(SHARED, SHOP, BILLING, passwords=words).runs
    assert first["passwords"] == {"app": "1", "inventory-reader": "2", "unknown": "4"}
    assert second["passwords"] == {"reader_of_invoices": "3"}
    first, second = made(SHARED, SHOP, BILLING, passwords=["no", "dict"]).runs
    assert first["passwords"] == ["no", "dict"] and "passwords" not in second
    assert "passwords" not in made(SHARED, SHOP, BILLING, passwords={"app": "1"}).runs[1]


WRONG: List[Tuple[Mapping[str, Any], Mapping[str, Any], str]] = [
    ({"grants": [{}]}, {}, "grants in reconcile_manifest: with reconcile_databases"),
    ({"scope": {"schemas": ["a*"]}}, {}, "scope.schemas in reconcile_manifest"),
    ({}, {"roles": [{"name": "x"}]}, "roles in the manifest of billing: they belong to the cluster"),
    ({}, {"retirements": [{"role": "x"}]}, "retirements in the manifest of billing"),
    ({}, {"scope": {"roles": ["x*"]}}, "scope.roles in the manifest of billing"),
    (
        {},
        {"memberships": [{"role": "staff", "members": []}]},
        "memberships[0] in the manifest of billing: staff is not",
    ),
    (
        {"memberships": [{"role": "staff"}, {"role": "inventory-reader", "members": []}]},
        {},
        "memberships[1] in reconcile_manifest: inventory-reader is generated, so its members stand in the manifest of shop",
    ),
    (
        {"roles": [{"name": "x", "member_of": ["staff", {"name": "inventory-reader"}]}]},
        {},
        "roles[0].member_of in reconcile_manifest: inventory-reader is generated",
    ),
    (
        {"roles": [{"name": "y"}, {"name": "x", "member_of": []}]},
        {
            "schemas": [{"name": "a", "profiles": ["reader"]}],
            "memberships": [{"role": "a-reader", "members": ["x"]}],
        },
        "memberships[0] in the manifest of billing: roles[1].member_of in reconcile_manifest says that x",
    ),
    (
        {},
        {"schemas": SHOP["schemas"]},
        "inventory-reader is generated in the manifest of shop and in the manifest of bil",
    ),
    (
        {"profiles": {"p": {}}},
        {"profiles": {"p": {}}},
        "More than one of reconcile_manifest and the manifest of billing",
    ),
    ({"default_owner": "a"}, {"default_owner": "b"}, "different values of default_owner or role_pattern: a, b"),
]


@pytest.mark.parametrize(("shared", "billing", "message"), WRONG)
def test_what_two_runs_would_quarrel_about_is_refused(
    shared: Mapping[str, Any], billing: Mapping[str, Any], message: str
) -> None:
    problems = arranged([shared, SHOP, billing], [0, 0, 0], ["shop", "billing"]).problems
    assert len(problems) == 1 and message in problems[0], problems


def test_what_is_no_manifest_at_all_is_left_to_the_module() -> None:
    odd = {"roles": "app", "schemas": [3, {"name": 5, "profiles": "x"}], "memberships": [None], "scope": []}
    runs = arranged([odd, {"schemas": {"a": 1}, "memberships": [[]]}, None], [0, 0, 0], ["a", "b"])
    assert [run["login_db"] for run in runs.runs] == ["a", "b"]


def test_files_belong_to_the_manifest_that_names_them() -> None:
    parts: List[Any] = [
        {"roles": [{"name": "a"}]},
        {},
        None,
        {"roles": [{"name": "b"}]},
        {"schemas": [{"name": "s"}]},
        {"grants": []},
    ]
    runs = arranged(parts, [1, 1, 1], ["shop", "billing"]).runs
    assert runs[0]["roles"] == [{"name": "a"}, {"name": "b"}] and runs[0]["schemas"] == [{"name": "s"}]
    assert runs[1]["grants"] == [] and "schemas" not in runs[1]


def test_a_single_database_is_one_composed_run() -> None:
    runs = arranged(
        [{"roles": [1]}, {"roles": [2], "scope": {"roles": ["a"]}}], [1], [], assumed=["x"], passwords={"a": "b"}
    )
    assert runs.problems == []
    assert runs.runs == [{"roles": [1, 2], "scope": {"roles": ["a"]}, "assume_roles": ["x"], "passwords": {"a": "b"}}]
    assert arranged([{"roles": []}], [0], []).runs == [{"roles": []}]
