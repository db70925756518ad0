# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pg_role_export: what comes out of a database, and that it means exactly what was there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import Database, Result


def roles(result: Result) -> dict[str, Any]:
    """The exported roles by name, without their names."""
    return {
        entry["name"]: {key: value for key, value in entry.items() if key != "name"}
        for entry in result["manifest"].get("roles", [])
    }


def rules(result: Result) -> list[tuple[Any, ...]]:
    """The exported grants, flat."""
    return [
        (
            rule["role"],
            rule["object"]["type"],
            rule["object"].get("schema"),
            rule["object"].get("name"),
            *rule["privileges"],
            *(["(" + ", ".join(rule["columns"]) + ")"] if "columns" in rule else []),
            *(["option"] if rule.get("with_grant_option") else []),
            *(["absent"] if rule.get("ensure") == "absent" else []),
        )
        for rule in result["manifest"].get("grants", [])
    ]


def test_a_role_comes_out_with_what_differs_from_the_default(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE plain",
        "CREATE ROLE app LOGIN CREATEDB NOINHERIT CONNECTION LIMIT 0 VALID UNTIL '2031-02-03 04:05:06.7+02'",
        "COMMENT ON ROLE app IS 'Order service: it''s \"live\"'",
        "ALTER ROLE app SET search_path = \"$user\", 'A b', public",
        "ALTER ROLE app SET work_mem = '8MB'",
    )
    result = db.export(tmp_path)
    assert roles(result)["plain"] == {}
    assert roles(result)["app"] == {
        "comment": "Order service: it's \"live\"",
        "login": True,
        "createdb": True,
        "inherit": False,
        "connection_limit": 0,
        "valid_until": "2031-02-03T02:05:06.700000Z",
        "config": {"search_path": '"$user", "A b", public', "work_mem": "8MB"},
    }
    # The owner of the schema public: somebody else looks after it.
    owner = "postgres" if db.version < 15 else "pg_database_owner"
    assert roles(result)[owner] == {"external": True}


def test_privileges_on_objects(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE own; CREATE ROLE r; CREATE ROLE w",
        "CREATE SCHEMA s AUTHORIZATION own",
        "CREATE TABLE s.a (x int, y int); CREATE TABLE s.b (x int); CREATE VIEW s.v AS SELECT 1 AS x",
        "CREATE SEQUENCE s.q; CREATE FUNCTION s.f(int, text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TYPE s.t AS ENUM ('a')",
        "GRANT USAGE ON SCHEMA s TO r",
        "GRANT SELECT ON ALL TABLES IN SCHEMA s TO r",
        "GRANT INSERT ON s.a TO w WITH GRANT OPTION; GRANT UPDATE (x), SELECT (x, y) ON s.a TO w",
        "GRANT SELECT ON s.b TO PUBLIC",
        "REVOKE EXECUTE ON FUNCTION s.f FROM PUBLIC; GRANT EXECUTE ON FUNCTION s.f TO r",
        "REVOKE USAGE ON TYPE s.t FROM PUBLIC",
    )
    result = db.export(tmp_path, schemas=["s"])
    assert [rule for rule in rules(result) if rule[2] == "s" or rule[3] == "s"] == [
        ("PUBLIC", "table", "s", "b", "SELECT"),
        ("PUBLIC", "function", "s", "f(integer, text)", "EXECUTE", "absent"),
        ("PUBLIC", "type", "s", "t", "USAGE", "absent"),
        ("r", "schema", None, "s", "USAGE"),
        ("r", "table", "s", "*", "SELECT"),
        ("r", "view", "s", "v", "SELECT"),
        ("r", "function", "s", "f(integer, text)", "EXECUTE"),
        ("w", "table", "s", "a", "INSERT", "option"),
        ("w", "table", "s", "a", "UPDATE", "(x)"),
        ("w", "table", "s", "a", "SELECT", "(x, y)"),
    ]
    assert result["manifest"]["schemas"] == [{"name": "s", "owner": "own"}]
