# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two servers: a primary and a streaming standby. Read-only servers, synchronous standbys, several hosts behind one name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
import servers
from harness import MODULE, PASSWORD, Background, Cluster, Database, Result, Runner, module_environment, parse
from test_unattended import Proxy

STANDBY = "this server is a standby and there is something to do"
ALONE = "synchronous_standby_names is set and no synchronous standby is attached: COMMIT waits until one is"
KEY = {"fingerprint_key": "the key of the standby's tests"}
MANIFEST = """
default_owner: owner
roles:
  - {name: owner}
  - {name: app, password: password-of-the-app, connection_limit: 5, comment: Order service}
  - {name: readers, members: [app]}
schemas: [{name: s, owner: owner}]
grants:
  - {role: readers, privileges: [SELECT], object: {type: table, schema: s, name: "*"}}
  - {role: readers, privileges: [CONNECT], object: {type: database}}
default_privileges: [{owner: owner, schema: s, grant: [{role: readers, privileges: [SELECT], on_type: table}]}]
"""


@dataclass
class Pair:
    """A primary and its standbys. Their clusters are as fresh as the last test left them."""

    version: int
    primary: Cluster
    standbys: list[servers.Server] = field(default_factory=list)

    def standby(self, **options: Any) -> servers.Server:
        server = servers.start_standby(self.primary.server, **options)
        self.standbys.append(server)
        return server

    def drop(self, server: servers.Server) -> None:
        self.standbys.remove(server)
        server.stop()

    def stop(self) -> None:
        self.primary.connection.close()
        for server in (*self.standbys, self.primary.server):
            server.stop()


def at(server: servers.Server) -> dict[str, Any]:
    return {"login_unix_socket": server.socket_directory, "login_port": server.port}


def both(*found: servers.Server, **more: Any) -> dict[str, Any]:
    """Several hosts behind one name."""
    hosts = {"host": ",".join(s.socket_directory for s in found), "port": ",".join(str(s.port) for s in found)}
    return {"login_unix_socket": None, "login_port": None, "connect_params": {**hosts, **more}}


def session(server: servers.Server, dbname: str = "postgres") -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=server.socket_directory, port=server.port, user="postgres", dbname=dbname, autocommit=True
    )


def caught_up(db: Database, standby: servers.Server) -> None:
    """The standby has replayed what the primary has done."""
    lsn = db.value("SELECT pg_current_wal_lsn()::text")
    with session(standby) as asked:
        for _attempt in range(1000):
            (done,) = asked.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [lsn]).fetchone() or (False,)
            if done:
                return
            time.sleep(0.01)
    raise AssertionError("the standby does not follow")


def promote(server: servers.Server) -> None:
    with session(server) as asked:
        assert asked.execute("SELECT pg_promote()").fetchone() == (True,)


@pytest.fixture(scope="module")
def pair(server: Cluster) -> Iterator[Pair]:
    found = Pair(server.version, Cluster(servers.start_primary(server.version)))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def standby(pair: Pair) -> servers.Server:
    return pair.standby()


@pytest.fixture
def db(pair: Pair, standby: servers.Server, runner: Runner) -> Iterator[Database]:
    """A database on the primary, with the standby following."""
    database = Database(pair.primary, runner)
    database.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    yield database
    with session(standby) as asked:
        # A session there would hold up the replay of DROP DATABASE.
        asked.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database.name])
    database.close()


# ---- a standby


def test_a_check_run_on_the_standby_predicts_the_apply_on_the_primary(db: Database, standby: servers.Server) -> None:
    caught_up(db, standby)
    predicted = db.reconcile(MANIFEST, check=True, diff=True, **KEY, **at(standby))
    assert not predicted.failed, predicted
    assert predicted.server["in_recovery"] is True
    assert any(f"an apply would fail here: {STANDBY}" in warning for warning in predicted.warnings)
    applied = db.reconcile(MANIFEST, diff=True, **KEY)
    assert not applied.failed, applied
    assert applied.server["in_recovery"] is False
    for key in ("changed", "sql", "plan_digest", "summary", "withheld"):
        assert applied[key] == predicted[key], key
    assert [side["before"] for side in applied.diff] == [side["before"] for side in predicted.diff]
    assert [side["after"] for side in applied.diff] == [side["after"] for side in predicted.diff]


@pytest.mark.parametrize("update", ["on_change", "on_drift"])
def test_a_run_with_nothing_to_do_succeeds_on_the_standby(db: Database, standby: servers.Server, update: str) -> None:
    options = {**KEY, "update_password": update}
    assert db.reconcile(MANIFEST, **options).changed
    caught_up(db, standby)
    for check in (True, False):
        result = db.reconcile(MANIFEST, check=check, **options, **at(standby))
        assert not result.failed, result
        assert (result.changed, result.sql, result.server["in_recovery"]) == (False, [], True)
        assert not any("an apply would fail" in warning for warning in result.warnings)


def test_a_run_with_something_to_do_fails_with_read_only_server_alone(db: Database, standby: servers.Server) -> None:
    caught_up(db, standby)
    predicted = db.reconcile(MANIFEST, check=True, **KEY, **at(standby))
    result = db.fails(MANIFEST, "read_only_server", "standby", check_too=False, **KEY, **at(standby))
    assert [problem["message"] for problem in result.problems] == [STANDBY]
    assert result.plan == predicted.sql
    assert "sqlstate" not in result, "it found out from the server's refusal"


def test_a_rehearsal_on_the_standby_says_what_would_stop_it(db: Database, standby: servers.Server) -> None:
    caught_up(db, standby)
    result = db.reconcile(MANIFEST, check=True, rehearse=True, **KEY, **at(standby))
    assert not result.failed, result
    assert result.changed
    assert any(f"an apply would fail here: {STANDBY}" in warning for warning in result.warnings)


def test_what_is_wrong_with_the_manifest_comes_first(db: Database, standby: servers.Server) -> None:
    caught_up(db, standby)
    table = {"type": "table", "schema": "s", "name": "missing"}
    declared = {"roles": [{"name": "r"}], "grants": [{"role": "r", "privileges": ["SELECT"], "object": table}]}
    for check in (True, False):
        assert db.reconcile(declared, check=check, **at(standby)).error_code == "object_missing"


def test_a_session_role_and_a_key_file_on_the_standby(db: Database, standby: servers.Server, tmp_path: Any) -> None:
    db.sql("CREATE ROLE boss SUPERUSER; CREATE ROLE login LOGIN IN ROLE boss")
    caught_up(db, standby)
    options = {
        **at(standby),
        "fingerprint_key_file": str(tmp_path / "key"),
        "login_user": "login",
        "session_role": "boss",
    }
    result = db.reconcile(MANIFEST, **options)
    assert result.error_code == "read_only_server"
    assert not (tmp_path / "key").exists()


SLOW = """
from ansible_collections.pg_access.reconcile.plugins.module_utils.catalog import cluster
cluster._ROLES += ", (SELECT pg_sleep(1)) AS slow"
"""


def test_replay_in_the_way_of_the_inspection_is_a_reason_to_try_again(db: Database, pair: Pair) -> None:
    """A standby cancels a query that would hold up replay for too long, with the SQLSTATE of a serialization failure."""
    impatient = pair.standby(settings="max_standby_streaming_delay = 0", name="impatient")
    db.sql("CREATE ROLE short_lived")
    caught_up(db, impatient)
    start = len(impatient.log)
    run = Background(
        db.runner.process(
            db.arguments(MANIFEST, check=True, **KEY, **at(impatient)), module_environment(), MODULE, (), SLOW
        )
    )
    with session(impatient) as asked:
        for _attempt in range(400):
            if asked.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'").fetchone():
                break
            assert run.running()
            time.sleep(0.02)
    db.sql("DROP ROLE short_lived", "VACUUM pg_authid")
    result = run.result()
    assert "canceling statement due to conflict with recovery" in impatient.log[start:]
    assert not result.failed, result
    assert result.changed
    pair.drop(impatient)


def test_after_the_promotion_it_works(db: Database, pair: Pair) -> None:
    other = pair.standby(name="next")
    caught_up(db, other)
    assert db.reconcile(MANIFEST, **KEY, **at(other)).error_code == "read_only_server"
    promote(other)
    result = db.reconcile(MANIFEST, **KEY, **at(other))
    assert not result.failed, result
    assert result.server["in_recovery"] is False
    for check in (True, False):
        assert db.reconcile(MANIFEST, check=check, **KEY, **at(other)).sql == []
    assert db.roles() == set(), "it ran on the old primary"
    pair.drop(other)


# ---- what a pooler tells of the server may be old


STALE = """
import psycopg
psycopg.ConnectionInfo.parameter_status = lambda info, name: {said!r} if name == "in_hot_standby" else "UTF8"
"""


def stale(db: Database, said: str, **options: Any) -> Any:
    return parse(*db.raw(MANIFEST, prelude=STALE.format(said=said), **KEY, **options))


def test_a_primary_that_is_said_to_be_a_standby(db: Database) -> None:
    result = stale(db, "on")
    assert not result.failed, result
    assert result.changed
    db.silent(MANIFEST, **KEY)


def test_a_standby_that_is_said_to_be_a_primary(db: Database, standby: servers.Server) -> None:
    caught_up(db, standby)
    result = stale(db, "off", **at(standby))
    assert result.error_code == "read_only_server"
    assert [problem["message"] for problem in result.problems] == [STANDBY]
    assert db.reconcile(MANIFEST, **KEY).changed
    caught_up(db, standby)
    assert stale(db, "off", **at(standby)).changed is False


# ---- servers that are read-only in other ways


def test_read_only_by_default_is_pinned_away(db: Database) -> None:
    db.sql("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    try:
        with session(db.server) as asked:
            for _attempt in range(200):
                if asked.execute("SHOW default_transaction_read_only").fetchone() == ("on",):
                    break
                time.sleep(0.01)
            else:
                raise AssertionError("the server has not read its configuration")
        assert db.reconcile(MANIFEST, check=True, **KEY).changed
        assert db.reconcile(MANIFEST, **KEY).changed
        assert db.reconcile(MANIFEST, **KEY).changed is False
    finally:
        with session(db.server) as admin:
            admin.execute("SET default_transaction_read_only = off")
            admin.execute("ALTER SYSTEM RESET default_transaction_read_only")
            admin.execute("SELECT pg_reload_conf()")
        time.sleep(0.1)


def test_a_server_that_refuses_writes_by_other_means(db: Database) -> None:
    """As extensions and providers do that make a server read-only: the SQLSTATE says so."""
    db.sql(
        "CREATE ROLE owner; CREATE ROLE app; CREATE ROLE readers",
        "CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE EXCEPTION 'the disk is full' USING ERRCODE = '25006'; END$$",
        "CREATE EVENT TRIGGER full_disk ON ddl_command_start EXECUTE FUNCTION public.refuse()",
    )
    result = db.fails(MANIFEST, "read_only_server", "the disk is full", check_too=False, **KEY)
    assert result.sqlstate == "25006"


# ---- a COMMIT that waits for a synchronous standby (CON-05)


@contextmanager
def synchronous(db: Database, names: str) -> Iterator[None]:
    """``synchronous_standby_names`` for a while. Nobody waits for a standby afterwards."""

    def configure(command: str, value: str) -> None:
        db.sql(command, "SELECT pg_reload_conf()")
        for _attempt in range(400):
            with session(db.server) as asked:
                if asked.execute("SHOW synchronous_standby_names").fetchone() == (value,):
                    return
            time.sleep(0.01)
        raise AssertionError("the server has not read its configuration")

    db.sql("SET synchronous_commit = local")
    configure(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'", names)
    try:
        yield
    finally:
        configure("ALTER SYSTEM RESET synchronous_standby_names", "")
        db.sql("RESET synchronous_commit")


def waiting(db: Database, run: Background) -> int:
    """The session that waits in COMMIT."""
    return run.waits(db, "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'", seconds=12)


def says(result: Result, text: str) -> bool:
    return any(text in warning for warning in result.warnings)


CONFIRMED_BY_NOBODY = "the transaction is committed, but the server says: canceling wait for synchronous replication"


def test_CON_05_a_check_run_says_that_commit_would_wait(db: Database, standby: servers.Server) -> None:
    with synchronous(db, "nope"):
        result = db.reconcile(MANIFEST, check=True, **KEY)
        assert result.changed
        assert says(result, ALONE)
        assert not says(db.reconcile({"roles": [{"name": "postgres", "external": True}]}, check=True), ALONE)
        db.sql("CREATE ROLE local SUPERUSER LOGIN; ALTER ROLE local SET synchronous_commit = local")
        assert not says(db.reconcile(MANIFEST, check=True, login_user="local", **KEY), ALONE)
        # This one does not see which standby counts, only that there is one.
        assert not says(db.reconcile({"roles": [{"name": "r"}]}, check=True, **db.admin()), ALONE)
    with synchronous(db, "standby"):
        for _attempt in range(400):
            if db.query("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"):
                break
            time.sleep(0.01)
        assert not says(db.reconcile(MANIFEST, check=True, **KEY), ALONE)
        result = db.reconcile(MANIFEST, **KEY)
        assert result.changed
        assert not says(result, ALONE)
        with session(standby) as asked:
            assert asked.execute("SELECT 1 FROM pg_roles WHERE rolname = 'app'").fetchone() == (1,)


def test_CON_05_statement_timeout_bounds_the_wait(db: Database) -> None:
    with synchronous(db, "nope"):
        start = time.monotonic()
        result = db.reconcile(MANIFEST, statement_timeout=1, **KEY)
        assert not result.failed, result
        assert result.changed
        assert 1 <= time.monotonic() - start < 20
        assert says(result, CONFIRMED_BY_NOBODY)
        assert says(result, ALONE)
        # A run with nothing to do has nothing that a standby could confirm.
        again = db.reconcile(MANIFEST, **KEY)
        assert (again.failed, again.changed, again.warnings) == (False, False, [])


def test_CON_05_when_the_client_gives_up(db: Database) -> None:
    with synchronous(db, "nope"):
        run = db.background(MANIFEST, **KEY)
        session_number = waiting(db, run)
        # As Ansible's timeout ends a task: the server does not notice, and nobody sees the change yet.
        run.program.kill()
        run.program.wait()
        assert db.roles() == set()
        other = db.fails(MANIFEST, "lock_timeout", f"session {session_number} of postgres", check_too=False,
                         lock_timeout=1, **KEY)  # fmt: skip
        assert "SyncRep" in other.msg
        db.sql(f"SELECT pg_cancel_backend({session_number})")
        for _attempt in range(400):
            if db.roles():
                break
            time.sleep(0.02)
        again = db.reconcile(MANIFEST, **KEY)
        assert (again.failed, again.changed) == (False, False)


def test_CON_05_when_an_administrator_ends_the_wait(db: Database) -> None:
    with synchronous(db, "nope"):
        run = db.background(MANIFEST, **KEY)
        db.sql(f"SELECT pg_cancel_backend({waiting(db, run)})")
        result = run.result()
        assert result.changed
        assert says(result, CONFIRMED_BY_NOBODY)
        run = db.background({"roles": [{"name": "r"}]})
        db.sql(f"SELECT pg_terminate_backend({waiting(db, run)})")
        result = run.result()
        assert result.changed, result
        assert says(result, "the connection broke during COMMIT; asked again")
    db.silent(MANIFEST, **KEY)


# ---- several hosts behind one name (CON-06)


def test_CON_06_the_run_is_where_its_connection_is(db: Database, standby: servers.Server) -> None:
    caught_up(db, standby)
    assert db.reconcile(MANIFEST, **KEY, **both(standby, db.server)).error_code == "read_only_server"
    checked = db.reconcile(MANIFEST, check=True, **KEY, **both(standby, db.server))
    assert checked.server["in_recovery"] is True
    wanted = both(standby, db.server, target_session_attrs="read-write")
    for expected in (True, False):
        result = db.reconcile(MANIFEST, **KEY, **wanted)
        assert not result.failed, result
        assert (result.server["in_recovery"], result.changed) == (False, expected)


def test_CON_06_a_lost_connection_is_not_made_again_elsewhere(db: Database, pair: Pair) -> None:
    """The session ends while the run waits for its turn, and another server would be there to go on with."""
    other = pair.standby(name="elsewhere")
    caught_up(db, other)
    promote(other)
    holder = db.connect(autocommit=False)
    holder.execute("SELECT pg_advisory_xact_lock(1885823346, 1953854062)")
    run = db.background(MANIFEST, **KEY, **both(db.server, other))
    for _attempt in range(400):
        waiting = db.query("SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'advisory'")
        if waiting:
            break
        assert run.running()
        time.sleep(0.02)
    db.sql(f"SELECT pg_terminate_backend({waiting[0][0]})")
    result = run.result()
    holder.rollback()
    assert result.error_code == "connection_failed", result
    assert db.roles() == set()
    with session(other) as asked:
        assert asked.execute("SELECT rolname FROM pg_roles WHERE oid >= 16384").fetchall() == []
        assert (
            asked.execute("SELECT 1 FROM pg_stat_activity WHERE application_name = 'pg_access.reconcile'").fetchall()
            == []
        )
    pair.drop(other)


@pytest.mark.parametrize("deliver", [True, False])
def test_CON_06_only_the_same_server_knows_what_became_of_a_commit(db: Database, pair: Pair, deliver: bool) -> None:
    """The connection breaks at COMMIT, and the next one leads to a standby that was promoted meanwhile: there the same
    number is that of another transaction, which was committed.
    """
    other = pair.standby(name="promoted")
    caught_up(db, other)
    promote(other)
    with session(other) as busy:
        for _number in range(50):
            busy.execute("SELECT pg_current_xact_id()")
    proxy = Proxy(("127.0.0.1", db.server.port), deliver=deliver, once=True)
    proxy.start()
    hosts = {"host": "127.0.0.1,127.0.0.1", "port": f"{proxy.port},{other.port}", "sslmode": "disable"}
    result = db.reconcile(
        MANIFEST, **KEY, login_unix_socket=None, login_port=None, login_password=PASSWORD,
        connect_params=hosts,
    )  # fmt: skip
    assert proxy.cut
    assert result.error_code == "outcome_unknown", result
    assert ("app" in db.roles()) is deliver
    pair.drop(other)


def test_an_export_from_the_standby_is_that_of_the_primary(db: Database, standby: servers.Server) -> None:
    db.sql("CREATE ROLE app; GRANT SELECT ON s.t TO app")
    caught_up(db, standby)
    exported = db.run_export(**at(standby))
    assert exported.server["in_recovery"] is True
    assert exported["yaml"] == db.run_export()["yaml"]
    assert db.reconcile(exported["manifest"], **at(standby)).sql == []
