# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an export warns of: schemas that are missing as a whole, and wildcards that few objects stand for."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Database

WEIRD = "CREATE FUNCTION {s}.\"Weird(Name)\"() RETURNS int LANGUAGE sql AS 'SELECT 1'"


def texts(db: Database, folder: Path) -> list[str]:
    """The warnings, without where they come from."""
    return [text.split(": ", 1)[1] for text in db.export(folder)["warnings"]]


def test_a_schema_that_is_left_out_is_named(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA inventory; GRANT USAGE ON SCHEMA inventory TO r; CREATE SCHEMA other")
    db.sql(WEIRD.format(s="inventory"), 'GRANT EXECUTE ON FUNCTION inventory."Weird(Name)"() TO r')
    (text,) = texts(db, tmp_path)
    assert text.startswith(
        "schema inventory is not in the manifest: the whole schema, because a manifest cannot hold this: "
    )
    assert "r has EXECUTE on function" in text and "Weird(Name)" in text


def test_of_many_schemas_five_are_named(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE ROLE r")
    for number in range(7):
        db.sql(f"CREATE SCHEMA s{number}", WEIRD.format(s=f"s{number}"))
        db.sql(f'GRANT EXECUTE ON FUNCTION s{number}."Weird(Name)"() TO r')
    found = texts(db, tmp_path)
    assert [text.split(" ", 2)[1] for text in found[:5]] == [f"s{number}" for number in range(5)]
    assert found[5:] == ["2 more schemas are not in the manifest"]


WARNED = " for fewer than 5 objects and would also give what is made next: "


@pytest.mark.parametrize(
    ("tables", "defaults", "warned"),
    [
        (1, "", False),  # named
        (2, "", True),
        (4, "", True),
        (5, "", False),
        # Somebody said already what the next table gives, for this schema or for all.
        (2, "ALTER DEFAULT PRIVILEGES FOR ROLE own IN SCHEMA s GRANT SELECT ON TABLES TO r", False),
        (2, "ALTER DEFAULT PRIVILEGES FOR ROLE own GRANT SELECT, INSERT ON TABLES TO r", False),
        (2, "ALTER DEFAULT PRIVILEGES FOR ROLE own IN SCHEMA s GRANT INSERT ON TABLES TO r", True),
        (2, "ALTER DEFAULT PRIVILEGES FOR ROLE own IN SCHEMA s GRANT SELECT ON TABLES TO w", True),
        (2, "ALTER DEFAULT PRIVILEGES FOR ROLE own IN SCHEMA s GRANT USAGE ON SEQUENCES TO r", True),
    ],
)
def test_a_wildcard_on_few_objects_is_named(
    db: Database, tmp_path: Path, tables: int, defaults: str, warned: bool
) -> None:
    db.sql("CREATE ROLE own; CREATE ROLE r; CREATE ROLE w; CREATE SCHEMA s AUTHORIZATION own")
    db.sql(*(f"CREATE TABLE s.t{number} ()" for number in range(tables)), "GRANT SELECT ON ALL TABLES IN SCHEMA s TO r")
    if defaults:
        db.sql(defaults)
    wanted = [f"1 rule with * stands{WARNED}r on table s.* ({tables})"] if warned else []
    assert texts(db, tmp_path) == wanted


def test_rules_that_take_something_away_are_not_named_and_of_many_five(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.a (); CREATE TABLE s.b ()")
    db.sql(*(f"CREATE FUNCTION s.f{number}() RETURNS int LANGUAGE sql AS 'SELECT 1'" for number in range(2)))
    db.sql("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA s FROM PUBLIC")
    assert texts(db, tmp_path) == []
    for number in range(7):
        db.sql(f"CREATE ROLE r{number}", f"GRANT SELECT ON ALL TABLES IN SCHEMA s TO r{number}")
    named = ", ".join(f"r{number} on table s.* (2)" for number in range(5))
    assert texts(db, tmp_path) == [f"7 rules with * stand{WARNED}{named} and 2 more"]


def test_what_is_left_out_is_told_by_reason_with_some_names(db: Database, tmp_path: Path) -> None:
    db.sql(*(f"CREATE ROLE r{number} LOGIN PASSWORD 'x{number}'" for number in range(7)))
    db.sql(
        f"ALTER ROLE r1 IN DATABASE {db.name} SET work_mem = '1MB'",
        "CREATE SCHEMA s; CREATE SCHEMA t; CREATE TABLE t.a ()",
    )
    db.sql(WEIRD.format(s="s"), 'GRANT EXECUTE ON FUNCTION s."Weird(Name)"() TO r1')
    db.sql("REVOKE SELECT, INSERT ON t.a FROM postgres")
    result = db.export(tmp_path)
    assert [line for line in result["left_out"] if not line.startswith("password: ")] == [
        "database_setting: role r1",
        "name: schema s",
        "owner_privileges: postgres on table t.a",
    ]
    (line,) = [line for line in result["left_out"] if line.startswith("password: ")]
    assert line.endswith(" more") and line.count("role r") == 5
    assert db.export(tmp_path, roles=["r2"], schemas=["t"])["left_out"] != result["left_out"]
