# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs that nobody watches: turns, waits, retries, brakes, approved plans, rehearsals, a COMMIT whose answer is lost."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
from harness import PASSWORD, UNCONNECTED, Database

TURN = "SELECT pg_advisory_xact_lock(1885823346, 1953854062)"
APP = {"roles": [{"name": "app", "login": True}]}
READER = """
roles: [{name: app}]
grants: [{role: app, privileges: [SELECT], object: {type: table, schema: s, name: t}}]
"""


def holder(db: Database, *statements: str, **options: Any) -> psycopg.Connection[Any]:
    """A session in the middle of a transaction."""
    connection = db.connect(autocommit=False, **options)
    for statement in statements:
        connection.execute(statement)
    return connection


def meanwhile(db: Database, other: psycopg.Connection[Any], manifest: Any, **options: Any) -> Any:
    """The run that waits for the other session, which commits as soon as it sees that."""
    run = db.background(manifest, **options)
    for _attempt in range(300):
        if db.query("SELECT 1 FROM pg_locks WHERE NOT granted"):
            break
        assert run.running(), f"it did not wait: {run.result()}"
        time.sleep(0.05)
    other.commit()
    result = run.result()
    assert not result.failed, result
    return result


# ---- turns


def test_the_key_of_the_turn_is_what_the_module_takes(db: Database) -> None:
    with db.statements() as sent:
        db.reconcile(APP)
    assert any(TURN in statement for statement in sent), sent


def test_a_run_waits_for_its_turn(db: Database) -> None:
    result = meanwhile(db, holder(db, TURN), APP)
    assert result.sql == ['CREATE ROLE "app" LOGIN']


def test_a_wait_that_is_too_long_names_the_holder(db: Database) -> None:
    other = holder(db, TURN, application_name="nightly run")
    result = db.fails(APP, "lock_timeout", "another run".capitalize(), "nightly run", check_too=False, lock_timeout=1)
    assert f"session {other.info.backend_pid} of postgres" in result.msg
    assert result.sqlstate == "55P03"


def test_check_mode_waits_for_nobody(db: Database) -> None:
    holder(db, TURN)
    assert db.reconcile(APP, check=True, lock_timeout=1).sql == ['CREATE ROLE "app" LOGIN']


def test_the_turn_has_its_own_limit_whatever_the_role_has_set(db: Database) -> None:
    db.sql("CREATE ROLE slow SUPERUSER LOGIN", "ALTER ROLE slow SET statement_timeout = '1s'")
    db.sql("ALTER ROLE slow SET lock_timeout = '1s'")
    other = holder(db, TURN)
    run = db.background(APP, login_user="slow", statement_timeout=1)
    while not db.query("SELECT 1 FROM pg_locks WHERE NOT granted"):
        assert run.running()
    time.sleep(1.5)
    other.commit()
    assert run.result().sql == ['CREATE ROLE "app" LOGIN']


def test_nothing_of_a_session_outlives_the_transaction(db: Database) -> None:
    with db.statements() as sent:
        db.reconcile(APP)
        db.reconcile(APP)
    text = "\n".join(sent)
    assert "SET LOCAL" in text
    assert "SET SESSION" not in text
    assert not [line for line in sent if line.startswith("SET ") and not line.startswith("SET LOCAL ")]
    assert "pg_advisory_lock(" not in text
    assert db.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'") == []


def test_other_databases_have_turns_of_their_own(db: Database) -> None:
    other = db.connect(dbname="postgres", autocommit=False)
    other.execute(TURN)
    assert db.reconcile(APP, lock_timeout=1).changed
    other.rollback()


@UNCONNECTED
@pytest.mark.parametrize("option", ["lock_timeout", "max_drops", "max_revokes", "statement_timeout"])
def test_impossible_numbers_are_refused(db: Database, option: str) -> None:
    result = db.rejects(APP, "is less than", **{option: -1})
    assert result.problems[0]["path"] == option


# ---- waits and retries


@pytest.fixture
def table(db: Database) -> Database:
    db.sql("CREATE SCHEMA s", "CREATE TABLE s.t (a int)", "CREATE ROLE app")
    return db


def test_a_grant_on_the_same_table_is_tried_again(table: Database) -> None:
    result = meanwhile(table, holder(table, "GRANT INSERT ON s.t TO app"), READER)
    assert result.sql == ['GRANT SELECT ON TABLE "s"."t" TO "app"', 'REVOKE INSERT ON TABLE "s"."t" FROM "app"']
    table.silent(READER)


def test_a_role_that_another_session_makes_is_found_by_the_next_try(db: Database) -> None:
    result = meanwhile(db, holder(db, "CREATE ROLE app NOLOGIN"), APP)
    assert result.sql == ['ALTER ROLE "app" LOGIN']
    db.silent(APP)


def test_a_role_that_another_session_alters_is_looked_at_again(db: Database) -> None:
    db.sql("CREATE ROLE app")
    result = meanwhile(db, holder(db, "ALTER ROLE app CONNECTION LIMIT 5"), APP)
    assert result.sql == ['ALTER ROLE "app" LOGIN CONNECTION LIMIT -1']


def test_what_another_session_did_already_is_no_change(table: Database) -> None:
    result = meanwhile(table, holder(table, "GRANT SELECT ON s.t TO app"), READER)
    assert result.changed is False


def test_a_lock_is_waited_for_three_seconds_and_its_holder_is_named(table: Database) -> None:
    other = holder(table, "GRANT INSERT ON s.t TO app", application_name="order's service")
    start = time.monotonic()
    result = table.fails(READER, "lock_timeout", "s.t", "order's service", check_too=False)
    assert 2.5 < time.monotonic() - start < 15
    assert result.statement == 'GRANT SELECT ON TABLE "s"."t" TO "app"'
    assert str(other.info.backend_pid) in result.msg


def test_a_locked_role_names_whoever_has_not_committed(db: Database) -> None:
    db.sql("CREATE ROLE app")
    holder(db, "ALTER ROLE app CONNECTION LIMIT 5", application_name="somebody")
    db.fails(APP, "lock_timeout", "somebody", check_too=False)


@pytest.mark.versions(min=18)
def test_from_18_on_a_grant_waits_for_a_locked_table(table: Database) -> None:
    holder(table, "LOCK TABLE s.t", application_name="migration")
    table.fails(READER, "lock_timeout", "migration", "AccessExclusiveLock", check_too=False)


@pytest.mark.versions(max=17)
def test_up_to_17_a_grant_does_not_wait_for_a_locked_table(table: Database) -> None:
    holder(table, "LOCK TABLE s.t")
    assert table.reconcile(READER).changed


def test_one_connection_is_enough(db: Database) -> None:
    db.sql("CREATE ROLE admin_login SUPERUSER LOGIN CONNECTION LIMIT 1")
    for number in range(5):
        assert not db.reconcile({"roles": [{"name": f"r{number}"}]}, login_user="admin_login").failed
        assert db.reconcile({"roles": [{"name": 5}]}, login_user="admin_login").failed
    assert db.query("SELECT 1 FROM pg_stat_activity WHERE usename = 'admin_login'") == []


# ---- brakes


def test_too_many_revokes_stop_an_apply_and_warn_in_check_mode(db: Database) -> None:
    db.sql("CREATE SCHEMA s", "CREATE TABLE s.a (x int)", "CREATE TABLE s.b (x int)", "CREATE ROLE app")
    db.sql("GRANT SELECT, INSERT ON s.a, s.b TO app")
    manifest = {"roles": [{"name": "app"}], "schemas": [{"name": "s"}]}
    failed = db.fails(
        manifest, "plan_too_large", "revokes 4 privileges", "max_revokes is 3", check_too=False, max_revokes=3
    )
    assert failed.plan
    checked = db.reconcile(manifest, check=True, max_revokes=3)
    assert checked.sql == failed.plan
    assert any("max_revokes is 3" in warning for warning in checked.warnings)
    db.converge(manifest, max_revokes=4, max_drops=0)


# ---- approved plans


def test_check_approve_apply(db: Database) -> None:
    digest = db.reconcile(APP, check=True).plan_digest
    applied = db.reconcile(APP, expected_digest=digest)
    assert applied.changed
    assert applied.plan_digest == digest
    # A relaunch finds nothing to do, which is no error.
    assert db.reconcile(APP, expected_digest=digest).changed is False


def test_another_plan_than_the_approved_one_is_refused(db: Database) -> None:
    digest = db.reconcile(APP, check=True).plan_digest
    changed = {"roles": [*APP["roles"], {"name": "other"}]}
    result = db.fails(changed, "plan_changed", digest, expected_digest=digest)
    assert result.plan == ['CREATE ROLE "app" LOGIN', 'CREATE ROLE "other"']


@UNCONNECTED
def test_a_lost_approval_does_not_pass(db: Database) -> None:
    db.rejects(APP, "expected_digest", expected_digest="")


def test_the_value_of_a_password_is_no_part_of_the_approval(db: Database) -> None:
    role = {"name": "app", "password": "first-password"}
    key = {"fingerprint_key": "a key that only this test knows"}
    digest = db.reconcile({"roles": [role]}, check=True, **key).plan_digest
    other = {**role, "password": "second-password"}
    assert db.reconcile({"roles": [other]}, expected_digest=digest, **key).changed


def test_the_cluster_must_be_the_expected_one(db: Database) -> None:
    identifier = db.value("SELECT system_identifier::text FROM pg_control_system()")
    db.fails(APP, "wrong_cluster", identifier, expected_system_identifier="12345")
    assert db.reconcile(APP, expected_system_identifier=identifier).changed


# ---- rehearsals


def test_a_rehearsal_proves_the_plan_and_leaves_nothing(db: Database) -> None:
    before = db.snapshot()
    role = {"name": "app", "password": "some-password"}
    result = db.reconcile({"roles": [role]}, check=True, rehearse=True, fingerprint_key="a key of this test")
    assert not result.failed, result
    assert result.changed
    assert db.snapshot() == before
    assert result.timings["verify"] > 0


def test_a_rehearsal_finds_what_only_the_server_knows(db: Database) -> None:
    db.sql(
        "CREATE SCHEMA s",
        "CREATE ROLE app",
        "CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE EXCEPTION 'grants are frozen' USING ERRCODE = 'P0001'; END$$",
        "CREATE EVENT TRIGGER frozen ON ddl_command_start WHEN TAG IN ('GRANT') EXECUTE FUNCTION public.refuse()",
    )
    manifest = {
        "roles": [{"name": "app"}],
        "grants": [{"role": "app", "privileges": ["USAGE"], "object": {"type": "schema", "name": "s"}}],
    }
    assert not db.reconcile(manifest, check=True).failed
    result = db.fails(manifest, "server_error", "grants are frozen", rehearse=True)
    assert result.statement == 'GRANT USAGE ON SCHEMA "s" TO "app"'


def test_a_rehearsal_waits_for_its_turn_like_an_apply(db: Database) -> None:
    holder(db, TURN)
    assert db.reconcile(APP, check=True, rehearse=True, lock_timeout=1).error_code == "lock_timeout"


def test_a_key_file_is_not_made_by_a_rehearsal(db: Database, tmp_path: Any) -> None:
    path = tmp_path / "key"
    role = {"name": "app", "password": "some-password"}
    result = db.reconcile({"roles": [role]}, check=True, rehearse=True, fingerprint_key_file=str(path))
    assert not result.failed, result
    assert not path.exists()


# ---- access


def test_a_plan_that_locks_its_login_out_is_rolled_back(db: Database) -> None:
    db.sql("CREATE ROLE boss SUPERUSER", "CREATE ROLE admin_login LOGIN NOINHERIT", "GRANT boss TO admin_login")
    manifest = {
        "grants": [{"role": "PUBLIC", "privileges": ["CONNECT"], "object": {"type": "database"}, "ensure": "absent"}]
    }
    db.fails(manifest, "self_protection", "connect", check_too=False, login_user="admin_login", session_role="boss")


# ---- a COMMIT whose answer is lost


class Proxy(threading.Thread):
    """Passes a connection on, and cuts the first one at its COMMIT: before the server hears of it, or after.

    ``once``: after that it takes no further one.
    """

    def __init__(self, target: tuple[str, int], *, deliver: bool, once: bool = False) -> None:
        super().__init__(daemon=True)
        self.once = once
        self.target = target
        self.deliver = deliver
        self.cut = False
        self.silent: set[socket.socket] = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self) -> None:
        while True:
            try:
                client, _address = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            threading.Thread(target=self.forward, args=(client, server), daemon=True).start()
            threading.Thread(target=self.back, args=(server, client), daemon=True).start()

    def forward(self, client: socket.socket, server: socket.socket) -> None:
        while data := client.recv(65536):
            if b"COMMIT\0" in data and not self.cut:
                self.cut = True
                self.silent.add(client)
                if self.once:
                    self.listener.shutdown(socket.SHUT_RDWR)
                    self.listener.close()
                if self.deliver:
                    server.sendall(data)
                    time.sleep(0.5)
                for side in (server, client):
                    # close() alone waits for the thread that reads from it.
                    with suppress(OSError):
                        side.shutdown(socket.SHUT_RDWR)
                return
            server.sendall(data)
        server.close()

    def back(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while data := server.recv(65536):
                if client not in self.silent:
                    client.sendall(data)
        except OSError:
            pass


@contextmanager
def through_proxy(db: Database, *, deliver: bool) -> Iterator[dict[str, Any]]:
    proxy = Proxy(("127.0.0.1", db.server.port), deliver=deliver)
    proxy.start()
    try:
        yield {
            "login_host": "127.0.0.1",
            "login_unix_socket": None,
            "login_port": proxy.port,
            "login_password": PASSWORD,
            "ssl_mode": "disable",
        }
    finally:
        proxy.listener.close()
    assert proxy.cut, "the connection was not cut"


def test_a_commit_without_an_answer_is_asked_for(db: Database) -> None:
    with through_proxy(db, deliver=True) as address:
        result = db.reconcile(APP, **address)
    assert not result.failed, result
    assert any("committed" in warning for warning in result.warnings)
    assert "app" in db.roles()


def test_a_commit_that_never_arrived_is_a_failure(db: Database) -> None:
    with through_proxy(db, deliver=False) as address:
        result = db.reconcile(APP, **address)
    assert result.error_code == "connection_failed"
    assert "app" not in db.roles()


def test_a_rehearsal_needs_the_roles_of_other_runs(db: Database) -> None:
    manifest = {**APP, "memberships": [{"role": "app", "members": [{"name": "later"}]}], "assume_roles": ["later"]}
    assert db.reconcile(manifest, check=True).changed
    assert db.reconcile(manifest, check=True, rehearse=True).error_code == "object_missing"


def test_a_warning_of_somebodys_trigger_is_no_collision(db: Database) -> None:
    db.sql("CREATE FUNCTION bad() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN RAISE WARNING 'beware'; END$$")
    db.sql("CREATE EVENT TRIGGER bad ON ddl_command_end WHEN tag IN ('GRANT') EXECUTE FUNCTION bad(); CREATE SCHEMA s")
    grant = {"role": "r", "privileges": ["USAGE"], "object": {"type": "schema", "name": "s"}}
    db.fails({"roles": [{"name": "r"}], "grants": [grant]}, "server_error", "beware", check_too=False)
