# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end state that a scenario asks for is what its hand-written SQL makes of a server, and nothing goes unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import endstate
import psycopg
import pytest
import servers
from scenario import Scenario

SCENARIO = Scenario(3, 12)

#: What must not pass for the end state: a statement, and a line about it.
CHANGES = [
    ('REVOKE SELECT ON s001.t3 FROM "s001-reader"',
     "missing: table s001 t3 s001-app=INSERT,SELECT,UPDATE s001-editor=DELETE,INSERT,SELECT,UPDATE"
     " s001-reader=SELECT"),
    ("GRANT SELECT ON s001.t3 TO PUBLIC",
     "unexpected: table s001 t3 PUBLIC=SELECT s001-app=INSERT,SELECT,UPDATE"
     " s001-editor=DELETE,INSERT,SELECT,UPDATE s001-reader=SELECT"),
    ('GRANT SELECT ON s001.v2 TO "s001-reader" WITH GRANT OPTION', "unexpected: view s001 v2 s001-app=SELECT s001-editor=SELECT s001-reader=SELECT*"),
    ('GRANT UPDATE ON SEQUENCE s002.t1_id_seq TO "s002-app"', "unexpected: sequence s002 t1_id_seq s002-app=UPDATE,USAGE s002-editor=SELECT,USAGE"),
    ("GRANT EXECUTE ON FUNCTION s000.f1 TO PUBLIC",
     "unexpected: function s000 f1(a integer, b text) PUBLIC=EXECUTE s000-app=EXECUTE s000-editor=EXECUTE"
     " s000-reader=EXECUTE"),
    ("CREATE FUNCTION s000.more() RETURNS int LANGUAGE sql AS 'SELECT 1'", "unexpected: function s000 more() PUBLIC=EXECUTE"),
    ('GRANT CREATE ON SCHEMA s000 TO "s000-app"', "unexpected: schema s000 s000-app=CREATE,USAGE s000-editor=USAGE s000-reader=USAGE"),
    ('GRANT SELECT (name) ON s000.t1 TO "s001-reader"', 'unexpected: column s000.t1 name {"\\"s001-reader\\"=r/postgres"}'),
    ('ALTER DEFAULT PRIVILEGES IN SCHEMA s000 GRANT SELECT ON TABLES TO "s000-app"', 'unexpected: default s000 r {"\\"s000-app\\"=r/postgres"}'),
    ("ALTER ROLE login0001 NOLOGIN", "missing: role login0001 LOGIN"),
    ("ALTER ROLE login0001 CREATEROLE", "unexpected: role login0001 LOGIN CREATEROLE"),
    ("CREATE ROLE somebody", "unexpected: role somebody"),
    ("GRANT pg_monitor TO login0001", "unexpected: membership pg_monitor login0001"),
    ('GRANT "s000-reader" TO login0000 WITH ADMIN OPTION', "unexpected: membership s000-reader login0000 ADMIN"),
    ('REVOKE "s000-reader" FROM login0000', "missing: membership s000-reader login0000"),
]  # fmt: skip


@pytest.fixture(scope="module", params=sorted({*servers.available()[:1], *servers.available()[-1:]}))
def connection(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """The end state by hand, on the oldest and on the newest server that is there."""
    server = servers.start(request.param)
    try:
        with psycopg.connect(
            host=server.socket_directory, port=server.port, user="postgres", dbname="postgres", autocommit=True
        ) as found:
            for statement in (*SCENARIO.objects(), *SCENARIO.shortest_sql()):
                found.execute(statement.encode())
            yield found
    finally:
        server.stop()


def test_the_shortest_sql_ends_in_it(connection: psycopg.Connection[Any]) -> None:
    assert endstate.differences(endstate.expected(SCENARIO), endstate.read(connection)) == []


def test_it_does_not_matter_who_granted_nor_what_the_owner_has(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute("REVOKE ALL ON s000.t1 FROM postgres")
        connection.execute("CREATE ROLE other SUPERUSER")
        connection.execute("ALTER TABLE s000.t2 OWNER TO other")
        assert endstate.differences(endstate.expected(SCENARIO), endstate.read(connection)) == [
            "unexpected: role other SUPERUSER"
        ]


@pytest.mark.parametrize(("statement", "line"), CHANGES, ids=[statement for statement, _line in CHANGES])
def test_a_difference_is_seen(connection: psycopg.Connection[Any], statement: str, line: str) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute(statement.encode())
        assert line in endstate.differences(endstate.expected(SCENARIO), endstate.read(connection))


@pytest.mark.parametrize("statement", SCENARIO.drift())
def test_drift_is_seen(connection: psycopg.Connection[Any], statement: str) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute(statement.encode())
        assert len(endstate.differences(endstate.expected(SCENARIO), endstate.read(connection))) == 2


def test_of_many_differences_a_few_are_shown() -> None:
    rows = frozenset(("role", f"r{number}", "") for number in range(25))
    lines = endstate.differences(rows, frozenset(), limit=3)
    assert lines == ["missing: role r0", "missing: role r1", "missing: role r10", "missing: 22 more"]
    assert endstate.differences(rows, rows) == []
