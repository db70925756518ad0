# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may stand in ``retirements`` and ``scope.roles``, and what it means."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import DesiredRetirement, manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import ManifestInvalid

ROLES = [{"name": "a"}, {"name": "app_owner"}]


def refused(raw: Dict[str, Any]) -> List[Tuple[str, str]]:
    with pytest.raises(ManifestInvalid) as caught:
        manifest_to_policy(raw)
    assert caught.value.code == "manifest_invalid"
    return [(str(problem.path), problem.message) for problem in caught.value.problems]


def test_what_a_retirement_says() -> None:
    policy = manifest_to_policy(
        {
            "roles": ROLES,
            "retirements": [
                {"role": "old"},
                {
                    "role": 'Odd "one"',
                    "reassign_owned_to": "a",
                    "drop_owned": True,
                    "terminate_sessions": True,
                    "all_databases": True,
                },
            ],
            "scope": {"roles": ["tmp_*"]},
        }
    )
    assert policy.retirements == {
        "old": DesiredRetirement("old", "retirements[0]"),
        'Odd "one"': DesiredRetirement('Odd "one"', "retirements[1]", "a", True, True, True),
    }
    assert policy.scope_roles == ("tmp_*",)
    assert "old" not in policy.named_roles


WRONG: List[Tuple[Dict[str, Any], str, str]] = [
    ({"retirements": [{"role": "a"}]}, "retirements[0].role", "declared in roles[0]"),
    ({"retirements": [{"role": "old"}, {"role": "old"}]}, "retirements[1]", "retired twice: in retirements[0]"),
    ({"retirements": [{"role": "old", "reassign_owned_to": "old"}]}, "retirements[0].reassign_owned_to", "itself"),
    (
        {"retirements": [{"role": "old"}, {"role": "older", "reassign_owned_to": "old"}]},
        "retirements[1].reassign_owned_to",
        "retired in retirements[0]",
    ),
    (
        {"retirements": [{"role": "old", "reassign_owned_to": "app_onwer"}]},
        "retirements[0].reassign_owned_to",
        "did you mean 'app_owner'?",
    ),
    ({"retirements": [{"role": "pg_monitor"}]}, "retirements[0].role", "PostgreSQL's own"),
    ({"retirements": [{"role": "rdsadmin"}]}, "retirements[0].role", "managed service"),
    ({"retirements": [{"role": "PUBLIC"}]}, "retirements[0].role", "PUBLIC"),
    ({"retirements": [{"role": ""}]}, "retirements[0].role", "empty"),
    ({"retirements": [{}]}, "retirements[0].role", "required"),
    ({"retirements": [{"role": "old", "drop_owned": "yes"}]}, "retirements[0].drop_owned", "'yes'"),
    ({"retirements": [{"role": "old", "drop": True}]}, "retirements[0].drop", "drop_owned"),
    ({"retirements": "old"}, "retirements", "list"),
    ({"retirements": [{"role": "old", "all_databases": True}]}, "retirements[0].all_databases", "neither"),
    ({"retirements": [{"role": "old"}], "assume_roles": ["old"]}, "retirements[0].role", "assume_roles"),
    (
        {"retirements": [{"role": "old"}], "memberships": [{"role": "a", "members": [{"name": "old"}]}]},
        "memberships[0].members[0].name",
        "retired in retirements[0]",
    ),
    (
        {
            "retirements": [{"role": "old"}],
            "grants": [{"role": "old", "privileges": ["CONNECT"], "object": {"type": "database"}}],
        },
        "grants[0].role",
        "retired in retirements[0]",
    ),
    ({"retirements": [{"role": "old"}], "schemas": [{"name": "s", "owner": "old"}]}, "schemas[0].owner", "retired"),
    ({"retirements": [{"role": "old"}], "default_owner": "old"}, "default_owner", "retired"),
    ({"retirements": [{"role": "old"}], "scope": {"ignore_roles": ["o*"]}}, "retirements[0].role", "ignore_roles"),
    ({"scope": {"roles": ["*"]}}, "scope.roles[0]", "literal"),
]


@pytest.mark.parametrize(("raw", "path", "words"), WRONG, ids=[f"{n}-{path}" for n, (_r, path, _w) in enumerate(WRONG)])
def test_a_retirement_that_cannot_be_is_one_problem_at_its_place(raw: Dict[str, Any], path: str, words: str) -> None:
    found = refused({"roles": ROLES, **raw})
    assert [place for place, _message in found] == [path], found
    assert words in found[0][1]


def test_retiring_a_role_with_the_override_names_both_places() -> None:
    roles = [{"name": "a"}, {"name": "old", "privilege_reconciliation": "additive"}]
    found = refused({"roles": roles, "retirements": [{"role": "old"}]})
    assert [path for path, _message in found] == ["retirements[0].role"]
    assert "roles[1]" in found[0][1]
    assert "privilege_reconciliation" in found[0][1]


def test_two_files_cannot_override_and_retire_a_role(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("roles: [{name: old, privilege_reconciliation: additive}]\n", encoding="utf-8")
    (tmp_path / "b.yml").write_text("retirements: [{role: old}]\n", encoding="utf-8")
    found = refused({"manifest_files": [str(tmp_path / "a.yml"), str(tmp_path / "b.yml")]})
    assert [path for path, _message in found] == ["b.yml: retirements[0].role"]
    assert "a.yml: roles[0]" in found[0][1]


def test_two_files_cannot_retire_one_role(tmp_path: Path) -> None:
    for name in ("a.yml", "b.yml"):
        (tmp_path / name).write_text("retirements: [{role: old}]\n", encoding="utf-8")
    found = refused({"manifest_files": [str(tmp_path / "a.yml"), str(tmp_path / "b.yml")]})
    assert [path for path, _message in found] == ["b.yml: retirements[0]"]


def test_a_generated_role_cannot_be_retired() -> None:
    raw = {
        "profiles": {"reader": {"grants": [{"privileges": ["USAGE"], "object": {"type": "schema"}}]}},
        "schemas": [{"name": "s", "profiles": ["reader"]}],
        "retirements": [{"role": "s-reader"}],
    }
    assert [path for path, _message in refused(raw)] == ["retirements[0].role"]
