# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the module returns is what its documentation says, key by key."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Mapping

import pytest
import yaml
from harness import Database

MODULE = Path(__file__).resolve().parents[2] / "plugins/modules/pg_role_reconcile.py"

#: Ansible's own.
OURS_NOT = {"msg", "failed", "invocation", "warnings", "exception", "deprecations"}

SUCCESS = {"changed", "sql", "suppressed_revokes", "suppressed_revoke_count", "withheld", "summary", "plan_digest"}
SUCCESS |= {"affected_roles", "unneeded_overrides", "check_mode", "server", "timings", "diff", "explain", "ansible_facts"}

MANIFEST = """
schemas: [{name: s, owner: app_owner}]
roles:
  - {name: app_owner}
  - {name: new_owner}
  - {name: pgloader_pg, login: true, privilege_reconciliation: additive}
default_privileges:
  - {owner: app_owner, schema: s, grant: [{role: new_owner, privileges: [SELECT], on_type: table}]}
"""


@pytest.fixture(scope="module")
def documented() -> Mapping[str, Any]:
    for node in ast.parse(MODULE.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "RETURN":
            found: Mapping[str, Any] = yaml.safe_load(ast.literal_eval(node.value))
            return found
    raise AssertionError("the module has no RETURN")


def compare(value: Any, keys: Mapping[str, Any], path: str = "") -> None:
    """Every key is documented, with the type that it has; and every documented key of a nested one is there."""
    kinds = {"bool": bool, "str": str, "int": int, "list": list, "dict": dict}
    for name, inner in value.items():
        assert name in keys, f"{path}{name} is not documented"
        assert inner is None or isinstance(inner, kinds[keys[name]["type"]]), f"{path}{name} is {inner!r}"
        for item in inner if isinstance(inner, list) else [inner]:
            if isinstance(item, dict) and "contains" in keys[name]:
                compare(item, keys[name]["contains"], f"{path}{name}.")
                assert item.keys() == keys[name]["contains"].keys(), f"{path}{name}"


@pytest.fixture
def brownfield(db: Database) -> Database:
    db.sql(
        "CREATE ROLE app_owner; CREATE ROLE pgloader_pg LOGIN; CREATE ROLE other; CREATE SCHEMA s",
        "CREATE TABLE s.t (a int); GRANT SELECT ON s.t TO pgloader_pg, other; GRANT UPDATE (a) ON s.t TO other",
        "ALTER DEFAULT PRIVILEGES FOR ROLE app_owner IN SCHEMA s GRANT SELECT ON TABLES TO pgloader_pg",
    )
    return db


def test_success(brownfield: Database, documented: Mapping[str, Any]) -> None:
    result = brownfield.reconcile(MANIFEST, reconciliation_mode="adopt", diff=True, explain=["other"])
    raw = {name: value for name, value in result.items() if name not in OURS_NOT}
    assert raw.keys() == SUCCESS
    assert raw["suppressed_revokes"] and raw["withheld"] and raw["diff"] and raw["explain"]
    compare(raw, documented)
    facts = raw["ansible_facts"]["pg_role_reconcile"]
    told = " ".join(documented["ansible_facts"]["contains"]["pg_role_reconcile"]["description"])
    assert all(f"V({name})" in told for name in facts)


def test_refusals(brownfield: Database, documented: Mapping[str, Any]) -> None:
    seen: set[str] = set()
    brownfield.sql("CREATE ROLE weak LOGIN")
    attempts: list[tuple[str, dict[str, Any]]] = [
        ("roles: [{name: 7}]", {}),
        ("roles: [{name: fresh}]", {"login_user": "weak"}),
        ("roles: [{name: fresh, config: {work_mem: banana}}]", {}),
        ("grants: [{role: pg_monitor, privileges: [SELECT], object: {type: table, schema: s, name: nope}}]", {}),
    ]
    for manifest, options in attempts:
        result = brownfield.reconcile(manifest, **options)
        raw = {name: value for name, value in result.items() if name not in OURS_NOT}
        assert result.failed
        compare(raw, documented)
        seen |= raw.keys()
    assert {"error_code", "problems", "sql", "changed", "sqlstate", "plan"} <= seen
