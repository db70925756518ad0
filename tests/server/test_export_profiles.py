# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pg_role_export with suggest_profiles: what is suggested for real databases is nothing that a run would change.

Each export is made twice, and applied as options and as a file: an empty plan (Database.export).
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from harness import CHECKOUT, Cluster, Database, Result, Runner
from hypothesis import given, note
from strategies import q
from test_properties import examples
from test_properties_profiles import LABELS, Example, cases


def bound(result: Result) -> dict[str, list[str]]:
    """The profiles of each schema that has some."""
    return {item["name"]: item["profiles"] for item in result["manifest"]["schemas"] if "profiles" in item}


def reasons(result: Result) -> dict[str, str]:
    return {item["role"]: item["reason"] for item in result["flat_roles"]}


def shop(db: Database) -> None:
    """Three schemas with two sorts of roles, as people make them by hand."""
    db.sql("CREATE ROLE own; CREATE ROLE login LOGIN")
    for schema in ("inventory", "orders", "billing"):
        db.sql(
            f"CREATE SCHEMA {schema} AUTHORIZATION own",
            f"CREATE ROLE app_{schema}_read; CREATE ROLE app_{schema}_write",
            f"SET ROLE own; CREATE TABLE {schema}.a (x int); CREATE TABLE {schema}.b (x int); RESET ROLE",
            f"GRANT USAGE ON SCHEMA {schema} TO app_{schema}_read, app_{schema}_write",
            f"GRANT SELECT ON {schema}.a, {schema}.b TO app_{schema}_read",
            f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO app_{schema}_write",
            f"ALTER DEFAULT PRIVILEGES FOR ROLE own IN SCHEMA {schema} GRANT SELECT ON TABLES TO app_{schema}_read",
            f"ALTER ROLE app_{schema}_read SET search_path = {schema}, public",
            f"GRANT app_{schema}_read TO login",
        )


def test_roles_made_by_hand_become_profiles(db: Database, tmp_path: Path) -> None:
    shop(db)
    result = db.export(tmp_path, suggest_profiles=True)
    assert result["manifest"]["role_pattern"] == "app_{schema}_{profile}"
    assert result["manifest"]["profiles"] == {
        "read": {
            "config": {"search_path": "{schema}, public"},
            "grants": [
                {"privileges": ["USAGE"], "object": {"type": "schema"}},
                {"privileges": ["SELECT"], "object": {"type": "table", "name": "*"}},
            ],
            "default_privileges": [{"privileges": ["SELECT"], "on_type": "table"}],
        },
        "write": {
            "grants": [
                {"privileges": ["USAGE"], "object": {"type": "schema"}},
                {"privileges": ["SELECT", "INSERT", "UPDATE"], "object": {"type": "table", "name": "*"}},
            ],
        },
    }
    assert bound(result) == {schema: ["read", "write"] for schema in ("inventory", "orders", "billing")}
    assert {item["role"] for item in result["manifest"]["memberships"]} >= {"app_orders_read", "app_billing_read"}
    assert result["flat_roles"] == []


def test_without_being_asked_nothing_is_suggested(db: Database, tmp_path: Path) -> None:
    shop(db)
    result = db.export(tmp_path)
    assert "profiles" not in result["manifest"]
    assert result["flat_roles"] == []


def test_drift_keeps_a_role_flat_and_says_where(db: Database, tmp_path: Path) -> None:
    shop(db)
    db.sql("REVOKE SELECT ON billing.b FROM app_billing_read")
    db.sql("ALTER ROLE app_orders_write VALID UNTIL '2031-01-01'")
    result = db.export(tmp_path, suggest_profiles=True)
    assert bound(result) == {"billing": ["write"], "inventory": ["read", "write"], "orders": ["read"]}
    assert reasons(result) == {
        "app_billing_read": "it differs from app_inventory_read in its privileges on tables",
        "app_orders_write": "a profile cannot carry what it has: valid_until",
    }


def test_as_many_schemas_as_asked_for(db: Database, tmp_path: Path) -> None:
    shop(db)
    db.sql("ALTER ROLE app_orders_write LOGIN")
    assert bound(db.export(tmp_path, suggest_profiles=True, suggest_min_schemas=3)) == {
        schema: ["read"] for schema in ("billing", "inventory", "orders")
    }


def test_a_table_of_an_extension_is_no_hole_in_a_wildcard(db: Database, tmp_path: Path) -> None:
    """A wildcard leaves objects of extensions out, so they decide nothing."""
    shop(db)
    db.sql(
        "CREATE TABLE orders.of_extension (x int)",
        "CREATE EXTENSION plpgsql"
        if not db.query("SELECT FROM pg_extension WHERE extname = 'plpgsql'")
        else "SELECT 1",
        "ALTER EXTENSION plpgsql ADD TABLE orders.of_extension",
    )
    assert bound(db.export(tmp_path, suggest_profiles=True))["orders"] == ["read", "write"]
    db.sql("GRANT SELECT ON orders.of_extension TO app_orders_read")
    result = db.export(tmp_path, suggest_profiles=True)
    assert bound(result)["orders"] == ["write"]
    assert reasons(result) == {"app_orders_read": "it differs from app_billing_read in its privileges on tables"}


def test_the_demos_database_gives_its_profiles_back(db: Database, tmp_path: Path) -> None:
    demo = CHECKOUT / "demo"
    script = (demo / "brownfield.sql").read_text(encoding="utf-8")
    db.sql(script.replace("ON DATABASE shop ", f"ON DATABASE {db.name} "))
    declared = yaml.safe_load(
        (demo / "access" / "shop.yml").read_text(encoding="utf-8").replace("name: shop}", f"name: {db.name}}}")
    )
    db.converge(declared, undeclared_grantees="revoke")
    result = db.export(tmp_path, suggest_profiles=True)
    assert bound(result) == {
        item["name"]: sorted(item["profiles"]) for item in declared["schemas"] if "profiles" in item
    }
    assert result["manifest"]["role_pattern"] == declared["role_pattern"]

    def spelled(profile: dict[str, Any]) -> Any:
        return [
            *(
                (rule["object"]["type"], rule["object"].get("name"), *sorted(rule["privileges"]))
                for rule in profile["grants"]
            ),
            *((rule["on_type"], *sorted(rule["privileges"])) for rule in profile["default_privileges"]),
        ]

    # The default privileges on tables permit on the view what was given there years ago, so no run has taken it away.
    view = next(rule for rule in declared["profiles"]["editor"]["grants"] if rule["object"]["type"] == "view")
    assert "inventory_editor=arwd/app_owner" in (db.acl("inventory.in_stock") or ())
    view["privileges"] = ["SELECT", "INSERT", "UPDATE", "DELETE"]
    assert {name: sorted(spelled(profile), key=str) for name, profile in result["manifest"]["profiles"].items()} == {
        name: sorted(spelled(profile), key=str) for name, profile in declared["profiles"].items()
    }
    assert reasons(result) == {
        "pgloader_pg": "the name of its schema attic is not in its name",
        "report_owner": "a profile cannot carry what it has: comment",
    }


@pytest.mark.parametrize("clean", [False, True])
def test_random_databases(server: Cluster, runner: Runner, clean: bool) -> None:
    """What profiles made comes out as profiles, and means what is there."""

    @examples(0.5 if not clean else 0.3)
    @given(cases(clean))
    def property_holds(case: Example) -> None:
        db = Database(server, runner)
        try:
            build(db, case)
            with TemporaryDirectory() as folder:
                result = db.export(Path(folder), suggest_profiles=True)
            note(result["yaml"])
            note(str(result["flat_roles"]))
            if clean:
                assert len(result["manifest"]["profiles"]) == len(case.manifest["profiles"])
                assert not {item["name"] for item in result["manifest"]["roles"]} - {
                    "own",
                    "Own 2",
                    "postgres",
                    "pg_database_owner",
                }
        finally:
            db.close()

    property_holds()


def build(db: Database, case: Example) -> None:
    """A database with the example's objects, and with what the example's manifest gives."""
    makes = {
        "table": "CREATE TABLE {} (id int, name text)",
        "view": "CREATE VIEW {} AS SELECT 1 AS x",
        "sequence": "CREATE SEQUENCE {}",
        "function": "CREATE FUNCTION {} RETURNS int LANGUAGE sql AS 'SELECT 1'",
    }
    assert set(makes) == set(LABELS)
    for schema in dict.fromkeys(schema for schema, _kind in case.objects):
        db.sql(f"CREATE SCHEMA {q(schema)}")
    for (schema, kind), labels in case.objects.items():
        for label in sorted(labels):
            name, bracket, arguments = label.partition("(")
            if kind == "function" and not bracket:
                arguments = ")"
            place = f"{q(schema)}.{q(name)}" + (f"({arguments}" if kind == "function" else "")
            db.sql(makes[kind].format(place))
    manifest = {**case.manifest, "profiles": {}}
    for name, profile in case.manifest["profiles"].items():
        bound_to = [item["name"] for item in case.manifest["schemas"] if name in item["profiles"]]
        manifest["profiles"][name] = {
            **profile,
            # A rule for a name that is not everywhere would be an error.
            "grants": [
                rule
                for rule in profile["grants"]
                if rule["object"].get("name", "*") == "*"
                or all(rule["object"]["name"] in case.objects[schema, rule["object"]["type"]] for schema in bound_to)
            ],
        }
    result = db.reconcile(manifest)
    assert not result.failed, result
