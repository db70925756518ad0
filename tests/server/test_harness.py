# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The harness itself: tests do not disturb each other, and a snapshot sees what a run could change."""

from __future__ import annotations

import pytest
from harness import Cluster, Database, Runner


def test_a_test_leaves_nothing_behind(server: Cluster, runner: Runner) -> None:
    process = server.server.process
    db = Database(server, runner)
    db.sql(
        'CREATE ROLE "Odd ""role" LOGIN CREATEDB; CREATE ROLE g; GRANT g TO "Odd ""role" WITH ADMIN OPTION',
        "COMMENT ON ROLE g IS 'x'; ALTER ROLE g SET work_mem = '8MB'; ALTER ROLE postgres SET work_mem = '8MB'",
        "GRANT CREATE ON TABLESPACE pg_default TO g; GRANT CONNECT ON DATABASE postgres TO g",
        "CREATE SCHEMA s AUTHORIZATION g; CREATE TABLE s.t (a int); GRANT SELECT ON s.t TO PUBLIC",
    )
    db.connect(user='Odd "role').execute("CREATE DATABASE other")
    if db.version >= 15:
        db.sql("GRANT SET ON PARAMETER log_statement TO g")
    db.close()
    baseline = server.baseline
    assert server.state() == baseline
    # It was the same server all along: cleaning did not need the last resort.
    assert server.server.process is process


@pytest.mark.parametrize(
    "statement",
    [
        "GRANT SELECT ON s.t TO r",
        "GRANT SELECT (a) ON s.t TO r",
        "REVOKE SELECT ON s.t FROM postgres",
        "REVOKE EXECUTE ON FUNCTION s.f() FROM PUBLIC",
        "GRANT EXECUTE ON FUNCTION pg_ls_dir(text) TO r",
        "ALTER SCHEMA s OWNER TO r",
        "GRANT r TO r2",
        "GRANT pg_monitor TO r2",
        "ALTER ROLE r CONNECTION LIMIT 3",
        "ALTER ROLE r PASSWORD 'x'",
        "COMMENT ON ROLE r IS 'x'",
        "ALTER ROLE r SET work_mem = '8MB'",
        "ALTER DEFAULT PRIVILEGES FOR ROLE r GRANT SELECT ON TABLES TO r2",
        "ALTER DEFAULT PRIVILEGES FOR ROLE r IN SCHEMA s GRANT SELECT ON TABLES TO r2",
        "GRANT USAGE ON TYPE s.e TO r",
        "CREATE ROLE r3",
        "CREATE SCHEMA s2",
    ],
)
def test_a_snapshot_sees(db: Database, statement: str) -> None:
    db.sql(
        "CREATE ROLE r; CREATE ROLE r2; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE TYPE s.e AS ENUM ('a')",
        "CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    )
    before = db.snapshot()
    assert db.snapshot() == before
    db.sql(statement)
    assert db.snapshot() != before


def test_statements_of_other_sessions_are_seen(db: Database) -> None:
    with db.statements() as sent:
        other = db.connect()
        other.execute("SELECT 1")
        other.execute("SELECT %s::int", [2])
        other.close()
    assert sent == ["SELECT 1", "SELECT $1::int"]
