# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Poolers that give a server connection to another client after each transaction (CON-03).

What a run leaves in its session is looked at everywhere. The same through a real PgBouncer needs the program: ``make``
fetches it from Debian, and where there is no apt-get the tests are skipped; where there is, ``CI=true`` makes that a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pgbouncer
import psycopg
import pytest
import servers
from harness import Background, Cluster, Database, parse

KEY = {"fingerprint_key": "the key of the poolers' tests"}
MANIFEST = """
default_owner: owner
roles:
  - {name: owner}
  - {name: app, password: password-of-the-app, config: {work_mem: 8MB}, comment: Order service}
  - {name: readers, members: [app]}
schemas: [{name: s, owner: owner}]
grants:
  - {role: readers, privileges: [SELECT], object: {type: table, schema: s, name: "*"}}
  - {role: readers, privileges: [CONNECT], object: {type: database}}
default_privileges: [{owner: owner, schema: s, grant: [{role: readers, privileges: [SELECT], on_type: table}]}]
"""

#: What the next client of the same server connection would meet. PL/pgSQL has settings of its own as soon as it is loaded.
SESSION = """
SELECT jsonb_build_object(
    'user', current_user, 'session user', session_user,
    'settings', (SELECT jsonb_object_agg(name, setting) FROM pg_settings
                 WHERE name NOT IN ('application_name', 'in_hot_standby') AND name !~ '^plpgsql[.]'),
    'prepared', (SELECT count(*) FROM pg_prepared_statements),
    'cursors', (SELECT count(*) FROM pg_cursors WHERE is_holdable),
    'listens', (SELECT count(*) FROM pg_listening_channels()),
    'locks', (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'),
    'temporary', (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema())
)
"""

#: Looks at the module's own session before it does anything and when it is done, and writes both down.
WATCHED = """
import json, psycopg
def look(connection):
    connection.execute("ROLLBACK") if connection.info.transaction_status else None
    return connection.execute({query!r}).fetchone()[0]
connect, close = psycopg.connect, psycopg.Connection.close
def watched(**parameters):
    connection = connect(**parameters)
    connection.before = look(connection)
    return connection
def closing(connection):
    if not connection.closed and hasattr(connection, "before"):
        status = connection.info.transaction_status.name
        with open({path!r}, "a") as stream:
            stream.write(json.dumps([connection.before, look(connection), status]) + chr(10))
    close(connection)
psycopg.connect, psycopg.Connection.close = watched, closing
"""


@pytest.fixture
def shop(db: Database) -> Database:
    db.sql(
        "CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE ROLE boss SUPERUSER; CREATE ROLE login LOGIN IN ROLE boss"
    )
    return db


def refusing(db: Database) -> None:
    """The last statement of the plan fails."""
    db.sql(
        "CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE EXCEPTION 'no default privileges'; END$$",
        "CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('ALTER DEFAULT PRIVILEGES')"
        " EXECUTE FUNCTION public.refuse()",
    )


#: Options of a run, what is done before, and its error code.
ENDS: dict[str, tuple[dict[str, Any], Callable[[Database], None] | None, str | None]] = {
    "applied": ({}, None, None),
    "checked": ({"check": True}, None, None),
    "rehearsed": ({"check": True, "rehearse": True}, None, None),
    "session role": ({"login_user": "login", "session_role": "boss"}, None, None),
    "refused by the server": ({}, refusing, "server_error"),
    "stopped by a brake": ({"expected_digest": "sha256:0"}, None, "plan_changed"),
    "no such session role": ({"session_role": "nobody"}, None, "object_missing"),
}


@pytest.mark.parametrize("end", ENDS)
def test_CON_03_the_session_is_as_it_was(shop: Database, tmp_path: Path, end: str) -> None:
    options, before, code = ENDS[end]
    if before:
        before(shop)
    path = tmp_path / "sessions"
    result = parse(
        *shop.raw(
            MANIFEST, prelude=WATCHED.format(query=SESSION, path=str(path)), statement_timeout=50, **KEY, **options
        )
    )
    assert result.error_code == code, result
    ((first, last, status),) = (json.loads(line) for line in path.read_text().splitlines())
    assert status == "IDLE", "the transaction is still open"
    assert last == first
    assert first["user"] == first["session user"]


# ---- PgBouncer


@pytest.fixture
def pooled(request: pytest.FixtureRequest, server: Cluster) -> Iterator[Callable[..., pgbouncer.Pooler]]:
    """Starts a PgBouncer in front of the test's server."""
    path = pgbouncer.program()
    if path is None:
        reason = "PgBouncer is neither installed nor fetched: make server-tests fetches it where there is apt-get"
        if os.environ.get("CI", "").lower() in ("true", "1", "yes") and shutil.which("apt-get"):
            pytest.fail(reason)
        pytest.skip(reason)
    started: list[pgbouncer.Pooler] = []

    def start(size: int, *users: str, in_front_of: servers.Server | None = None) -> pgbouncer.Pooler:
        pooler = pgbouncer.start(path, in_front_of or server.server, size, ("postgres", *users))
        started.append(pooler)
        return pooler

    yield start
    for pooler in started:
        pooler.stop()


Pooled = Callable[..., pgbouncer.Pooler]


def look(pooler: pgbouncer.Pooler, db: Database) -> tuple[int, dict[str, Any]]:
    """The server connection that the next client gets, and its state."""
    with pooler.connect(db.name) as client:
        row = client.execute(f"SELECT pg_backend_pid(), ({SESSION})").fetchone()
        assert row
        return row[0], row[1]


def test_CON_03_through_pgbouncer(shop: Database, pooled: Pooled) -> None:
    pooler = pooled(1)
    number, before = look(pooler, shop)
    result = shop.converge(MANIFEST, **KEY, **pooler.options)
    assert result.changed
    assert shop.logs_in("app", "password-of-the-app")
    # It was one server connection all the time, and the next client finds it as the first one did.
    assert look(pooler, shop) == (number, before)


def test_CON_03_a_failed_run_leaves_the_connection_to_the_next_client(shop: Database, pooled: Pooled) -> None:
    pooler = pooled(1)
    before = look(pooler, shop)
    refusing(shop)
    shop.fails(MANIFEST, "server_error", "no default privileges", check_too=False, **KEY, **pooler.options)
    assert look(pooler, shop) == before
    shop.fails(MANIFEST, "plan_changed", expected_digest="sha256:0", **KEY, **pooler.options)
    assert look(pooler, shop) == before


def test_CON_03_a_session_role_is_the_run_s_alone(shop: Database, pooled: Pooled) -> None:
    pooler = pooled(1, "login")
    options = {**KEY, **pooler.options, "login_user": "login", "session_role": "boss"}
    assert shop.converge(MANIFEST, **options).changed
    with pooler.connect(shop.name, user="login") as client:
        assert client.execute("SELECT current_user, session_user").fetchone() == ("login", "login")


def test_CON_03_five_runs_share_two_connections(shop: Database, pooled: Pooled) -> None:
    pooler = pooled(2)
    arguments = [shop.arguments(MANIFEST, **KEY, **pooler.options) for _number in range(5)]
    finished = shop.runner.together(arguments)
    for result, seconds in finished:
        assert not result.failed, result
        assert seconds < 30
    assert sorted(result.changed for result, _seconds in finished) == [False] * 4 + [True]
    for number in range(2):
        assert look(pooler, shop)[1]["locks"] == 0, number
    shop.silent(MANIFEST, **KEY, **pooler.options)


def wait_for_turn(db: Database, run: Background) -> int:
    """The server connection that waits for its turn."""
    return run.waits(db, "SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'advisory'")


def holder(db: Database) -> psycopg.Connection[Any]:
    other = db.connect(autocommit=False)
    other.execute("SELECT pg_advisory_xact_lock(1885823346, 1953854062)")
    return other


def test_CON_03_a_server_connection_that_is_terminated(shop: Database, pooled: Pooled) -> None:
    pooler = pooled(1)
    other = holder(shop)
    run = shop.background(MANIFEST, **KEY, **pooler.options)
    shop.sql(f"SELECT pg_terminate_backend({wait_for_turn(shop, run)})")
    result = run.result()
    other.rollback()
    assert result.error_code == "connection_failed", result
    assert shop.roles() == {"boss", "login"}
    # The pooler makes itself a new one.
    shop.converge(MANIFEST, **KEY, **pooler.options)
    shop.sql(f"SELECT pg_terminate_backend({look(pooler, shop)[0]})")
    shop.silent(MANIFEST, **KEY, **pooler.options)


def test_CON_03_a_module_that_is_killed(shop: Database, pooled: Pooled) -> None:
    pooler = pooled(1)
    other = holder(shop)
    run = shop.background(MANIFEST, **KEY, **pooler.options)
    number = wait_for_turn(shop, run)
    run.program.kill()
    run.program.wait()
    # The server hears of it when the session has its turn and wants to say so.
    other.rollback()
    for _attempt in range(400):
        if not shop.query("SELECT 1 FROM pg_stat_activity WHERE pid = %s", number):
            break
        time.sleep(0.02)
    else:
        raise AssertionError("its session is still there")
    assert shop.roles() == {"boss", "login"}
    shop.converge(MANIFEST, **KEY, **pooler.options)


def test_what_pgbouncer_refuses(shop: Database, pooled: Pooled) -> None:
    pooler = pooled(1)
    wrong = shop.fails(MANIFEST, "authentication_failed", **KEY, **{**pooler.options, "login_password": "wrong"})
    assert "wrong" not in wrong.msg
    shop.fails(MANIFEST, "authentication_failed", **KEY, **{**pooler.options, "login_user": "stranger"})
    result = shop.reconcile(MANIFEST, environment={"PGOPTIONS": "-c work_mem=8MB"}, **KEY, **pooler.options)
    assert result.error_code == "connection_failed"
    assert "options" in result.msg


def test_a_pooler_of_a_server_that_was_promoted(server: Cluster, shop: Database, pooled: Pooled) -> None:
    """It hands on what the server said when it first connected: that it is a standby."""
    primary = servers.start_primary(server.version)
    standby = servers.start_standby(primary)
    pooler = pooled(1, in_front_of=standby)
    options = {**pooler.options, "login_db": "postgres"}
    roles = "roles: [{name: made_after_the_promotion}]"
    assert shop.reconcile(roles, **options).error_code == "read_only_server"
    with pooler.connect("postgres") as client:
        assert client.execute("SELECT pg_promote()").fetchone() == (True,)
    result = shop.reconcile(roles, **options)
    assert not result.failed, result
    assert (result.changed, result.server["in_recovery"]) == (True, False)
    assert shop.reconcile(roles, **options).sql == []
    for one in (standby, primary):
        one.stop()
