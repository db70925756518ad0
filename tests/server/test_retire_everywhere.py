# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Retired roles in other databases of the cluster, and their sessions: what is committed where, and what fails how."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import psycopg
import pytest
from harness import COLLECTION, Database, Result
from psycopg import sql
from test_unattended import TURN, meanwhile, through_proxy

Session: TypeAlias = "psycopg.Connection[Any]"
Others: TypeAlias = Callable[[str], Session]

RETIRE = {"role": "old", "reassign_owned_to": "heir", "drop_owned": True, "all_databases": True}
MANIFEST: dict[str, Any] = {"roles": [{"name": "heir"}], "retirements": [RETIRE]}
#: The rest of the plan of MANIFEST in the connected database.
HERE = ['REASSIGN OWNED BY "old" TO "heir"', 'DROP OWNED BY "old"', 'DROP ROLE "old"']

#: What DROP OWNED says in a database that was filled.
SWEPT = " /* deletes policies: mine on public.kept; destroys: user mapping for old on server srv */"


@pytest.fixture
def others(db: Database) -> Iterator[Others]:
    """Makes databases beside the test's own, whose names begin like its name, and drops them in the end."""
    names: list[str] = []

    def make(suffix: str) -> Session:
        names.append(db.name + suffix)
        name = sql.Identifier(names[-1])
        db.connection.execute(sql.SQL("CREATE DATABASE {} {}").format(name, sql.SQL(db.cluster.template)))
        return db.connect(dbname=names[-1])

    db.sql("CREATE ROLE old LOGIN", "CREATE ROLE heir", "CREATE ROLE friend")
    yield make
    for name in names:
        db.connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def fill(session: Session, role: str = "old") -> None:
    """Something of every sort: owned, granted, by default, a policy, a user mapping."""
    session.execute(
        sql.SQL(
            """CREATE SCHEMA s AUTHORIZATION {role}; CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO {role};
               CREATE TABLE public.kept (a int); GRANT SELECT ON public.kept TO {role}; GRANT UPDATE (a) ON public.kept TO {role};
               ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {role};
               ALTER DEFAULT PRIVILEGES FOR ROLE {role} GRANT SELECT ON TABLES TO friend;
               CREATE POLICY mine ON public.kept TO {role};
               CREATE POLICY shared ON public.kept TO {role}, friend;
               CREATE FOREIGN DATA WRAPPER w; CREATE SERVER srv FOREIGN DATA WRAPPER w;
               CREATE USER MAPPING FOR {role} SERVER srv;
               SELECT lo_create(4711)"""
        ).format(role=sql.Identifier(role))
    )  # fmt: skip
    session.execute(sql.SQL("ALTER LARGE OBJECT 4711 OWNER TO {}").format(sql.Identifier(role)))


def ties(db: Database, role: str = "old") -> int:
    """How much of the role is anywhere in the cluster."""
    count: int = db.value(
        "SELECT count(*) FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass"
        " AND refobjid = (SELECT oid FROM pg_roles WHERE rolname = %s)",
        role,
    )
    return count


def emptying(session: Session, *, swept: bool = True) -> list[str]:
    """The statements of MANIFEST in a database that was filled."""
    where = f'/* in database "{session.info.dbname}" */ '
    remark = SWEPT if swept else ""
    return [f'{where}REASSIGN OWNED BY "old" TO "heir"', f'{where}DROP OWNED BY "old"{remark}']


def owner(session: Session, table: str = "s.t") -> str:
    row = session.execute("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = %s::regclass", [table]).fetchone()
    assert row
    return str(row[0])


def refuse(session: Session, tag: str = "DROP OWNED", sqlstate: str = "P0001") -> None:
    """Let a sort of statement fail in this database."""
    session.execute(
        f"""CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS
            $$BEGIN RAISE EXCEPTION 'not today' USING ERRCODE = '{sqlstate}', DETAIL = 'it is Friday'; END$$;
            CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('{tag}') EXECUTE FUNCTION public.refuse()"""
    )


def allow(session: Session) -> None:
    session.execute("DROP EVENT TRIGGER refuse; DROP FUNCTION public.refuse()")


def quiet(db: Database) -> None:
    """Nobody of the module is connected any more, and no lock of a transaction is left."""
    query = "SELECT query FROM pg_stat_activity WHERE application_name = 'pg_access.reconcile'"
    # A session that its client has closed takes a moment to end.
    deadline = time.monotonic() + 5
    while db.query(query):
        assert time.monotonic() < deadline, db.query(query)
        time.sleep(0.01)
    assert db.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'") == []


# ---- what is done ----------------------------------------------------------------------------------------------------


def test_what_a_role_has_elsewhere_blocks_its_drop(db: Database, others: Others) -> None:
    """DRP-01, without all_databases."""
    other = others("_b")
    fill(other)
    fill(db.connection)
    before = ties(db)
    result = db.fails({**MANIFEST, "retirements": [{**RETIRE, "all_databases": False}]}, "drop_blocked", db.name + "_b")
    count = other.execute(
        "SELECT count(*) FROM pg_shdepend WHERE refobjid = 'old'::regrole AND refclassid = 'pg_authid'::regclass"
        " AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
    ).fetchone()
    assert count
    assert str(count[0]) in result.text
    assert ties(db) == before
    assert owner(other) == owner(db.connection) == "old"


def test_other_databases_are_emptied_first(db: Database, others: Others) -> None:
    """DRP-01, with all_databases."""
    other = others("_b")
    fill(other)
    fill(db.connection)
    others("_nothing_there")
    result = db.converge(MANIFEST)
    assert result.sql == [
        *emptying(other),
        *HERE[:1],
        f"{HERE[1]}{SWEPT}",
        HERE[2],
    ]
    assert result.summary["roles"]["dropped"] == 1
    assert any(f"in database {db.name}_b deletes row-level security policies: mine on" in w for w in result.warnings)
    for session in (other, db.connection):
        assert owner(session) == "heir"
        acl = session.execute("SELECT relacl::text FROM pg_class WHERE oid = 'public.kept'::regclass").fetchone()
        assert acl
        assert "old" not in acl[0]
        assert session.execute("SELECT polname FROM pg_policy").fetchall() == [("shared",)]
        assert session.execute("SELECT defaclacl::text FROM pg_default_acl").fetchall() == []
        assert session.execute("SELECT FROM pg_user_mapping").fetchall() == []
        assert session.execute("SELECT pg_get_userbyid(lomowner) FROM pg_largeobject_metadata").fetchall() == [
            ("heir",)
        ]
    quiet(db)


def test_three_databases_and_two_roles(db: Database, others: Others) -> None:
    db.sql('CREATE ROLE "Old 2"', "GRANT heir TO old")
    sessions = [others("_b"), others("_c"), others("_d")]
    fill(sessions[0])
    sessions[1].execute("CREATE TABLE mine (); ALTER TABLE mine OWNER TO old")
    sessions[1].execute('CREATE TABLE theirs (); ALTER TABLE theirs OWNER TO "Old 2"')
    sessions[2].execute('GRANT CREATE ON SCHEMA public TO "Old 2"')
    manifest = {**MANIFEST, "retirements": [RETIRE, {**RETIRE, "role": "Old 2"}]}
    result = db.converge(manifest)
    c, d = f'/* in database "{db.name}_c" */ ', f'/* in database "{db.name}_d" */ '
    assert result.sql[:6] == [
        *emptying(sessions[0]),
        f'{c}REASSIGN OWNED BY "old", "Old 2" TO "heir"',
        f'{c}DROP OWNED BY "old"',
        f'{c}DROP OWNED BY "Old 2"',
        f'{d}DROP OWNED BY "Old 2"',
    ]
    assert [owner(sessions[1], table) for table in ("mine", "theirs")] == ["heir", "heir"]
    assert db.roles() == {"heir", "friend"}


ODD = [' "quoted" */ DROP', "/* nested\nline\r\t", "\u00fcn\u00ef\\x '{0}' 100% $1", "dbname=postgres host=nowhere"]


def test_odd_names(db: Database, others: Others) -> None:
    role = "".join(ODD)[:60]
    sessions = [others(name) for name in ODD]
    db.connection.execute(sql.SQL("ALTER ROLE old RENAME TO {}").format(sql.Identifier(role)))
    db.connection.execute(sql.SQL("ALTER ROLE heir RENAME TO {}").format(sql.Identifier(ODD[0])))
    for session in sessions:
        fill(session, role)
    manifest = {
        "roles": [{"name": ODD[0]}],
        "retirements": [{**RETIRE, "role": role, "reassign_owned_to": ODD[0]}],
    }
    result = db.converge(manifest)
    assert [owner(session) for session in sessions] == [ODD[0]] * 4
    # Each is one statement of SQL as it stands, and its remark names the database exactly.
    there = [statement for statement in result.sql if statement.startswith("/*")]
    assert len(there) == 8
    for statement in there:
        with pytest.raises(psycopg.Error) as refused:
            db.connection.execute(statement.encode())
        assert refused.value.sqlstate == "42704", statement  # the role is gone
    named = {text.removeprefix("/* in database ").rpartition(" */ REASSIGN")[0] for text in there} - {""}
    columns = [db.connection.execute(f"SELECT 1 AS {words}".encode()).description for words in named]
    assert {found[0].name for found in columns if found} == {db.name + name for name in ODD}


def test_the_other_database_wins_over_every_other_source(db: Database, others: Others, tmp_path: Any) -> None:
    fill(others("_b"))
    services = tmp_path / "services"
    services.write_text(f"[here]\ndbname={db.name}\n")
    environment = {"PGSERVICEFILE": str(services), "PGSERVICE": "here", "PGDATABASE": "postgres"}
    result = db.reconcile(MANIFEST, environment=environment, connect_params={"dbname": db.name}, login_db="postgres")
    assert not result.failed, result
    assert result.server["database"] == db.name
    assert "old" not in db.roles()


def test_a_role_that_owns_a_database(db: Database, others: Others) -> None:
    """DRP-07: whatever database hands it over, it changes its owner and stays."""
    others("_b")
    other = others("_c")
    fill(other)
    db.sql(f'ALTER DATABASE "{db.name}_b" OWNER TO old', f'ALTER DATABASE "{db.name}_c" OWNER TO old')
    db.converge(MANIFEST)
    owners = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = ANY(%s)"
    assert db.query(owners, [f"{db.name}_b", f"{db.name}_c"]) == [("heir",), ("heir",)]


def test_a_role_that_owns_a_database_needs_no_other_database(db: Database, others: Others) -> None:
    others("_b")
    db.sql(f'ALTER DATABASE "{db.name}_b" OWNER TO old')
    result = db.converge({**MANIFEST, "retirements": [{**RETIRE, "all_databases": False}]})
    assert result.sql == HERE
    assert db.value("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = %s", f"{db.name}_b") == "heir"


def test_without_an_heir_what_is_owned_is_destroyed_and_named(db: Database, others: Others) -> None:
    other = others("_b")
    fill(other)
    for number in range(25):
        other.execute(f"CREATE TABLE public.t{number:02} (); ALTER TABLE public.t{number:02} OWNER TO old")
    manifest = {"retirements": [{"role": "old", "drop_owned": True, "all_databases": True}]}
    result = db.converge(manifest)
    (statement,) = [text for text in result.sql if "in database" in text]
    (warning,) = [text for text in result.warnings if "destroys" in text]
    for text in (statement, warning):
        assert f"{db.name}_b" in text
        assert "table public.t00" in text or "table t00" in text
        # 25 and schema, table, large object and user mapping; the default privileges are no objects.
        assert "and 9 more" in text
    assert other.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND oid >= 16384").fetchall() == [("kept",)]
    assert other.execute("SELECT FROM pg_largeobject_metadata").fetchall() == []


def test_only_reassigned_where_nothing_else_is_there(db: Database, others: Others) -> None:
    other = others("_b")
    other.execute("CREATE TABLE mine (); ALTER TABLE mine OWNER TO old")
    manifest = {**MANIFEST, "retirements": [{**RETIRE, "drop_owned": False}]}
    result = db.converge(manifest)
    assert result.sql == [*emptying(other)[:1], HERE[0], HERE[2]]
    assert owner(other, "mine") == "heir"


def test_what_reassigning_leaves_blocks(db: Database, others: Others) -> None:
    other = others("_b")
    fill(other)
    manifest = {**MANIFEST, "retirements": [{**RETIRE, "drop_owned": False}]}
    db.fails(manifest, "drop_blocked", f"{db.name}_b", "drop_owned")
    assert owner(other) == "old"


# ---- what is found before any change ---------------------------------------------------------------------------------


def test_databases_that_cannot_be_looked_into_are_named(db: Database, others: Others) -> None:
    sessions = [others("_closed"), others("_denied"), others("_full"), others("_open")]
    for session in sessions:
        fill(session)
    admin = db.admin("old", "heir")
    db.sql("GRANT old, heir TO adm", "GRANT pg_signal_backend TO adm")
    for session in sessions[:3]:
        session.close()
    db.sql(
        f'ALTER DATABASE "{db.name}_closed" ALLOW_CONNECTIONS false',
        f'REVOKE CONNECT ON DATABASE "{db.name}_denied" FROM PUBLIC',
        f'ALTER DATABASE "{db.name}_full" CONNECTION LIMIT 0',
    )
    result = db.fails(MANIFEST, "drop_blocked", **admin)
    for suffix in ("_closed", "_denied", "_full"):
        assert [p for p in result.problems if f"database {db.name}{suffix}" in f"{p['object']} {p['message']}"], suffix
    assert "permission denied for database" in result.text
    assert "too many connections for database" in result.text
    assert owner(sessions[3]) == "old"


def test_a_connection_that_leads_elsewhere_is_refused(db: Database, others: Others) -> None:
    fill(others("_b"))
    patch = (
        f"from {COLLECTION}.plugins.module_utils import elsewhere\n"
        "elsewhere._IDENTITY = 'SELECT current_database(), random()'"
    )
    result = db.reconcile(MANIFEST, patch=patch)
    assert result.error_code == "drop_blocked"
    assert "another server" in result.msg


def test_the_heir_must_exist_already(db: Database, others: Others) -> None:
    other = others("_b")
    other.execute("CREATE TABLE mine (); ALTER TABLE mine OWNER TO old")
    manifest = {"roles": [{"name": "new"}], "retirements": [{**RETIRE, "reassign_owned_to": "new"}]}
    result = db.fails(manifest, "object_missing", "new", f"{db.name}_b")
    assert result.problems[0]["path"] == "retirements[0].reassign_owned_to"
    # Nothing is owned there any more, so nobody has to inherit it before the run creates the heir.
    other.execute("ALTER TABLE mine OWNER TO heir; GRANT SELECT ON mine TO old")
    db.converge(manifest)


def test_what_a_role_granted_on_elsewhere_is_refused(db: Database, others: Others) -> None:
    other = others("_b")
    other.execute("CREATE TABLE public.t (); GRANT SELECT ON public.t TO old WITH GRANT OPTION")
    other.execute("SET ROLE old; GRANT SELECT ON public.t TO friend; RESET ROLE")
    result = db.fails(MANIFEST, "dependent_privileges", f"{db.name}_b", "SELECT on table public.t", "friend")
    assert [problem["role"] for problem in result.problems] == ["friend"]
    other.execute("GRANT SELECT ON public.t TO friend")
    other.execute("SET ROLE old; REVOKE SELECT ON public.t FROM friend; RESET ROLE")
    db.converge(MANIFEST)


def test_what_an_owner_granted_stays_with_the_heir(db: Database, others: Others) -> None:
    other = others("_b")
    fill(other)
    other.execute("GRANT SELECT ON s.t TO friend; GRANT USAGE ON SCHEMA s TO friend")
    db.converge(MANIFEST)
    acl = other.execute("SELECT relacl::text FROM pg_class WHERE oid = 's.t'::regclass").fetchone()
    assert acl
    assert "friend=r/heir" in acl[0]


def test_a_rehearsal_is_refused(db: Database, others: Others) -> None:
    other = others("_b")
    fill(other)
    result = db.reconcile(MANIFEST, check=True, rehearse=True)
    assert result.error_code == "not_supported"
    assert f"{db.name}_b" in result.msg
    assert result.problems[0]["path"] == "rehearse"
    assert owner(other) == "old"
    assert db.reconcile(MANIFEST, check=True).changed


def test_check_approve_apply(db: Database, others: Others) -> None:
    other = others("_b")
    fill(other)
    digest = db.reconcile(MANIFEST, check=True).plan_digest
    other.execute("CREATE POLICY more ON public.kept TO old")
    refused = db.fails(MANIFEST, "plan_changed", digest, expected_digest=digest)
    assert owner(other) == "old"
    assert "more on public.kept" in "\n".join(refused.plan)
    other.execute("DROP POLICY more ON public.kept")
    assert db.reconcile(MANIFEST, expected_digest=digest).plan_digest == digest
    assert db.reconcile(MANIFEST, expected_digest=digest).changed is False


def test_a_check_run_writes_nothing_anywhere(db: Database, others: Others) -> None:
    other = others("_b")
    fill(other)
    other.execute(f"ALTER DATABASE \"{db.name}_b\" SET log_statement = 'all'")
    log = db.server.directory / "log"
    start = log.stat().st_size
    assert db.reconcile(MANIFEST, check=True).changed
    sent = log.read_bytes()[start:].decode(errors="replace")
    assert f"@{db.name}_b LOG:" in sent
    assert "READ ONLY" in sent
    for word in ("READ WRITE", "REASSIGN OWNED", "DROP OWNED", "COMMIT", "pg_advisory"):
        assert f"@{db.name}_b LOG:  statement: {word}" not in sent
    quiet(db)


def test_an_executor_that_is_no_superuser(db: Database, others: Others) -> None:
    other = others("_b")
    other.execute("CREATE SCHEMA s; CREATE TABLE s.t (); ALTER TABLE s.t OWNER TO old; GRANT USAGE ON SCHEMA s TO heir")
    other.execute("CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION s.f() OWNER TO old")
    admin = db.admin("old", "heir")
    manifest = {**MANIFEST, "retirements": [{**RETIRE, "terminate_sessions": True}]}
    lacking = db.fails(manifest, "insufficient_privilege", "old", "heir", **admin)
    assert "GRANT" in lacking.text
    inherit = " WITH INHERIT TRUE, SET TRUE" if db.version >= 16 else ""
    db.sql(f"GRANT old, heir TO adm{inherit}", "GRANT pg_signal_backend TO adm")
    # The heir may not create in the schema there, which REASSIGN OWNED asks for where a superuser does not run it.
    db.fails(manifest, "insufficient_privilege", f"{db.name}_b", "schema s", **admin)
    assert owner(other) == "old"
    other.execute("GRANT CREATE ON SCHEMA s TO heir")
    session = db.connect(user="old", dbname=f"{db.name}_b")
    result = db.converge(manifest, **admin)
    assert result.sql == [*emptying(other, swept=False), *HERE]
    assert owner(other) == "heir"
    with pytest.raises(psycopg.OperationalError):
        session.execute("SELECT 1")


# ---- failures --------------------------------------------------------------------------------------------------------


def test_a_failure_in_the_first_database_leaves_everything(db: Database, others: Others) -> None:
    first, second = others("_b"), others("_c")
    fill(first)
    fill(second)
    refuse(first)
    result = db.fails(MANIFEST, "server_error", f"{db.name}_b", "not today", check_too=False)
    assert result.sqlstate == "P0001"
    assert owner(first) == owner(second) == "old"
    allow(first)
    assert db.reconcile(MANIFEST).sql == [*emptying(first), *emptying(second), *HERE]


def partial(result: Result, db: Database, *, cause: str) -> None:
    """The first database, ``_b``, is done with, and the result says just that."""
    assert result.failed
    assert result.changed
    assert result.error_code == "partially_applied"
    assert result.databases == [f"{db.name}_b"]
    assert result.cause == cause
    assert f"database {db.name}_b was emptied" in result.msg
    assert result.plan[: len(result.sql)] == result.sql
    assert all(f'/* in database "{db.name}_b" */' in statement for statement in result.sql)
    assert result.problems
    quiet(db)


def test_a_failure_in_a_later_database_says_what_is_done(db: Database, others: Others) -> None:
    first, second = others("_b"), others("_c")
    fill(first)
    fill(second)
    fill(db.connection)
    refuse(second)
    before = db.reconcile(MANIFEST, check=True)
    result = db.reconcile(MANIFEST)
    partial(result, db, cause="server_error")
    assert result.sql == emptying(first)
    assert result.plan == before.sql
    assert result.sqlstate == "P0001"
    assert result.detail == "it is Friday"
    assert result.statement == emptying(second)[1]
    assert f"Database {db.name}_c: not today" in result.msg
    assert [owner(session) for session in (first, second, db.connection)] == ["heir", "old", "old"]
    allow(second)
    assert db.reconcile(MANIFEST).sql == before.sql[2:]
    assert db.reconcile(MANIFEST).changed is False


def test_a_failure_in_the_main_transaction_says_what_is_done(db: Database, others: Others) -> None:
    first = others("_b")
    fill(first)
    fill(db.connection)
    refuse(db.connection)
    manifest = {**MANIFEST, "roles": [*MANIFEST["roles"], {"name": "app"}]}
    result = db.reconcile(manifest)
    partial(result, db, cause="server_error")
    assert "not today" in result.msg
    assert "app" not in db.roles()
    assert (owner(first), owner(db.connection)) == ("heir", "old")
    allow(db.connection)
    assert db.reconcile(manifest).sql == result.plan[2:]


def test_a_fault_of_the_module_says_what_is_done(db: Database, others: Others) -> None:
    first = others("_b")
    fill(first)
    patch = f"from {COLLECTION}.plugins.module_utils import execution\nexecution.remember = None"
    result = db.reconcile(MANIFEST, patch=patch)
    partial(result, db, cause="internal_error")
    assert "Internal error: TypeError" in result.msg
    assert "othing was applied" not in result.msg
    assert "old" in db.roles()


def test_a_collision_in_the_main_transaction_is_tried_again(db: Database, others: Others) -> None:
    fill(others("_b"))
    db.sql("CREATE ROLE app")
    manifest = {**MANIFEST, "roles": [*MANIFEST["roles"], {"name": "app", "login": True}]}
    predicted = db.reconcile(manifest, check=True)
    other = db.connect(autocommit=False)
    # It changes nothing but the row, so the plan stays as it was.
    other.execute("ALTER ROLE app CONNECTION LIMIT -1")
    with db.statements() as sent:
        result = meanwhile(db, other, manifest, expected_digest=predicted.plan_digest)
    assert len([text for text in sent if text.startswith("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")]) == 2
    assert result.sql == predicted.sql
    assert result.plan_digest == predicted.plan_digest
    assert result.summary == predicted.summary
    assert db.reconcile(manifest).changed is False


def test_collisions_without_end(db: Database, others: Others) -> None:
    first = others("_b")
    fill(first)
    refuse(db.connection, sqlstate="XX000")
    result = db.reconcile(MANIFEST)
    partial(result, db, cause="collision")
    assert result.sql == emptying(first)
    assert (result.sqlstate, result.detail) == ("XX000", "it is Friday")


def test_what_appeared_meanwhile_is_not_taken_along(db: Database, others: Others) -> None:
    """The plan names what is destroyed; something that came later is looked at anew, and needs a new approval."""
    other = others("_b")
    other.execute("CREATE TABLE mine (); ALTER TABLE mine OWNER TO old")
    manifest = {"retirements": [{"role": "old", "drop_owned": True, "all_databases": True}]}
    digest = db.reconcile(manifest, check=True).plan_digest
    waiting = db.connect(dbname=f"{db.name}_b", autocommit=False)
    waiting.execute(TURN)
    waiting.execute("CREATE TABLE later (); ALTER TABLE later OWNER TO old")
    run = db.background(manifest, expected_digest=digest)
    wait_for_lock(db, run)
    waiting.commit()
    result = run.result()
    assert result.error_code == "plan_changed", result
    assert "later" in "\n".join(result.plan)
    assert owner(other, "mine") == owner(other, "later") == "old"


def wait_for_lock(db: Database, run: Any) -> None:
    for _attempt in range(600):
        if db.query("SELECT 1 FROM pg_locks WHERE NOT granted"):
            return
        assert run.running(), f"it did not wait: {run.result()}"
        time.sleep(0.02)
    raise AssertionError("it did not wait")


def test_the_turn_of_the_other_database(db: Database, others: Others) -> None:
    first, second = others("_b"), others("_c")
    fill(first)
    fill(second)
    holder = db.connect(dbname=f"{db.name}_c", autocommit=False, application_name="nightly run")
    holder.execute(TURN)
    result = db.reconcile(MANIFEST, lock_timeout=1)
    partial_with_holder(result, db)
    run = db.background(MANIFEST)
    wait_for_lock(db, run)
    holder.commit()
    assert run.result().sql == [*emptying(second), *HERE]


def partial_with_holder(result: Result, db: Database) -> None:
    assert result.error_code == "partially_applied", result
    assert result.cause == "lock_timeout"
    assert result.databases == [f"{db.name}_b"]
    assert "nightly run" in result.msg


def test_a_locked_table_elsewhere_names_its_holder(db: Database, others: Others) -> None:
    """DRP-11, in another database."""
    other = others("_b")
    fill(other)
    holder = db.connect(dbname=f"{db.name}_b", autocommit=False, application_name="report")
    holder.execute("LOCK TABLE s.t IN EXCLUSIVE MODE")
    patch = f"from {COLLECTION}.plugins.module_utils import transaction\ntransaction.STATEMENT_LOCK_TIMEOUT = 1"
    result = db.fails(MANIFEST, "lock_timeout", f"{db.name}_b", "report", check_too=False, patch=patch)
    assert result.statement == emptying(other)[0]


def test_two_runs_that_want_each_others_database(db: Database, others: Others) -> None:
    """Each holds its own turn and waits for the other's, which no server can see: the wait is bounded."""
    other = others("_b")
    db.sql("CREATE ROLE old2")
    for session in (other, db.connection):
        session.execute(
            "CREATE TABLE t (); ALTER TABLE t OWNER TO old; CREATE TABLE t2 (); ALTER TABLE t2 OWNER TO old2"
        )
    names = {"old": db.name, "old2": f"{db.name}_b"}
    manifests = {role: {**MANIFEST, "retirements": [{**RETIRE, "role": role}]} for role in names}
    runs = [db.background(manifests[role], login_db=name, lock_timeout=1) for role, name in names.items()]
    results = [run.result() for run in runs]
    assert {result.error_code for result in results} <= {None, "lock_timeout"}, results
    for role, name in names.items():
        assert not db.reconcile(manifests[role], login_db=name).failed
    assert db.roles() == {"heir", "friend"}
    assert [owner(session, table) for session in (other, db.connection) for table in ("t", "t2")] == ["heir"] * 4


def test_killed_between_two_databases(db: Database, others: Others) -> None:
    first, second = others("_b"), others("_c")
    fill(first)
    fill(second)
    fill(db.connection)
    holder = db.connect(dbname=f"{db.name}_c", autocommit=False)
    holder.execute(TURN)
    run = db.background(MANIFEST)
    wait_for_lock(db, run)
    run.program.kill()
    run.program.wait()
    holder.commit()
    assert (owner(first), owner(second), owner(db.connection)) == ("heir", "old", "old")
    for _attempt in range(100):
        if not db.query("SELECT FROM pg_stat_activity WHERE application_name = 'pg_access.reconcile'"):
            break
        time.sleep(0.05)
    quiet(db)
    assert db.reconcile(MANIFEST).sql[:2] == emptying(second)
    assert db.reconcile(MANIFEST).changed is False


def test_a_lost_connection_between_two_databases(db: Database, others: Others) -> None:
    first, second = others("_b"), others("_c")
    fill(first)
    fill(second)
    holder = db.connect(dbname=f"{db.name}_c", autocommit=False)
    holder.execute(TURN)
    run = db.background(MANIFEST)
    wait_for_lock(db, run)
    db.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'pg_access.reconcile' AND datname = %s",
        db.name,
    )
    holder.commit()
    result = run.result()
    assert result.error_code == "partially_applied", result
    assert result.cause == "connection_failed"
    # Only the main connection was lost, which nobody noticed before the second database was done.
    assert result.databases == [f"{db.name}_b", f"{db.name}_c"]
    assert "old" in db.roles()
    assert db.reconcile(MANIFEST).sql[-3:] == HERE


@pytest.mark.parametrize("deliver", [True, False])
def test_a_commit_elsewhere_without_an_answer(db: Database, others: Others, deliver: bool) -> None:
    other = others("_b")
    fill(other)
    with through_proxy(db, deliver=deliver) as address:
        result = db.reconcile(MANIFEST, **address)
    if deliver:
        assert not result.failed, result
        assert any(f"database {db.name}_b: the connection broke during COMMIT" in text for text in result.warnings)
        assert result.sql == [*emptying(other), *HERE]
    else:
        assert result.error_code == "connection_failed", result
        assert result.sql == []
        assert owner(other) == "old"


# ---- shared objects, and memberships that a role granted -------------------------------------------------------------


def shared(db: Database) -> dict[str, Any]:
    """The role granted a membership and CONNECT to ``friend``, who keeps both."""
    db.sql(
        "CREATE ROLE team",
        "GRANT team TO old WITH ADMIN OPTION",
        f"GRANT CONNECT ON DATABASE {db.name} TO old WITH GRANT OPTION",
    )
    db.sql("SET ROLE old", "GRANT team TO friend", f"GRANT CONNECT ON DATABASE {db.name} TO friend", "RESET ROLE")
    connect = {"role": "friend", "privileges": ["CONNECT"], "object": {"type": "database", "name": db.name}}
    return {
        **MANIFEST,
        "roles": [{"name": "heir"}, {"name": "friend"}, {"name": "team"}],
        "memberships": [{"role": "team", "members": [{"name": "friend"}]}],
        "grants": [connect],
    }  # fmt: skip


def friend_has(db: Database) -> tuple[bool, bool]:
    acl = db.acl(db.name, "database") or set()
    return "friend" in db.members("team"), any(entry.startswith("friend=") for entry in acl)


def test_what_the_role_granted_on_shared_objects_stays(db: Database, others: Others) -> None:
    fill(others("_b"))
    db.converge(shared(db))
    assert friend_has(db) == (True, True)
    assert all("old" not in entry for entry in db.acl(db.name, "database") or ())


def test_what_the_role_granted_on_shared_objects_stays_after_a_failure(db: Database, others: Others) -> None:
    """DROP OWNED takes it along in the other database, so it is granted again in that database's transaction."""
    fill(others("_b"))
    manifest = shared(db)
    refuse(db.connection)
    result = db.reconcile(manifest)
    assert result.error_code == "partially_applied", result
    assert friend_has(db) == (True, True)
    allow(db.connection)
    assert not db.reconcile(manifest).failed
    assert friend_has(db) == (True, True)
    assert db.reconcile(manifest).changed is False


# ---- sessions --------------------------------------------------------------------------------------------------------

TERMINATE = {**MANIFEST, "retirements": [{**RETIRE, "terminate_sessions": True}]}


def alive(session: Session) -> bool:
    try:
        session.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def test_sessions_end_after_the_commit(db: Database, others: Others) -> None:
    """DRP-06, with terminate_sessions: wherever the role is connected, and nobody else."""
    others("_b")
    sessions = [db.connect(user="old"), db.connect(user="old", dbname=f"{db.name}_b"), db.connect(user="old")]
    sessions[2].execute("BEGIN")
    sessions[2].execute("SELECT 1")
    friend = db.connect(user="postgres")
    oid = db.value("SELECT oid FROM pg_roles WHERE rolname = 'old'")
    assert db.reconcile(TERMINATE, check=True).sql == HERE
    assert alive(sessions[0])
    result = db.reconcile(TERMINATE)
    assert not result.failed, result
    assert result.sql == HERE
    # The result is only given when they are gone.
    assert db.query("SELECT pid FROM pg_stat_activity WHERE usesysid = %s", oid) == []
    assert [alive(session) for session in (*sessions, friend)] == [False, False, False, True]
    assert result.warnings == []
    assert db.reconcile(TERMINATE).changed is False


def test_sessions_stay_when_the_run_fails(db: Database, others: Others) -> None:
    session = db.connect(user="old")
    refuse(db.connection)
    assert db.reconcile(TERMINATE).error_code == "server_error"
    assert alive(session)


def test_sessions_that_do_not_end_are_a_warning(db: Database, others: Others) -> None:
    session = db.connect(user="old")
    pid = session.info.backend_pid
    patch = f"from {COLLECTION}.plugins.module_utils import sessions\nsessions.SECONDS = 0.5"
    os.kill(pid, signal.SIGSTOP)
    try:
        result = db.reconcile(TERMINATE, patch=patch)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert not result.failed, result
    assert any("1 session of old, dropped by this run, has not ended within" in text for text in result.warnings)
    assert "old" not in db.roles()


def test_a_failure_to_end_sessions_is_a_warning(db: Database, others: Others) -> None:
    session = db.connect(user="old")
    patch = f"from {COLLECTION}.plugins.module_utils import sessions\nsessions._END = 'SELECT 1 / 0, %s::oid[]'"
    result = db.reconcile(TERMINATE, patch=patch)
    assert not result.failed, result
    (warning,) = result.warnings
    assert "the sessions of old, dropped by this run, could not be ended: division by zero" in warning
    assert "old" not in db.roles()
    session.close()


def test_sessions_end_after_a_commit_without_an_answer(db: Database, others: Others) -> None:
    session = db.connect(user="old")
    with through_proxy(db, deliver=True) as address:
        result = db.reconcile(TERMINATE, **address)
    assert not result.failed, result
    assert not alive(session)


# ---- as a script


def test_the_plan_as_a_script_goes_through_the_databases(db: Database, others: Others, tmp_path: Any) -> None:
    sessions = [others(name) for name in (*ODD, "\\'q'")]
    for session in sessions:
        fill(session)
    db.sql("CREATE TABLE own (); ALTER TABLE own OWNER TO old")
    plan, undo = tmp_path / "plan.sql", tmp_path / "undo.sql"
    result = db.reconcile(MANIFEST, check=True, plan_file=str(plan), undo_file=str(undo))
    assert not result.failed, result
    done = db.psql(plan)
    assert (done.returncode, done.stderr) == (0, ""), f"{done.stderr}\n{plan.read_text(encoding='utf-8')}"
    assert "old" not in db.roles()
    assert db.silent(MANIFEST).sql == []
    left = undo.read_text(encoding="utf-8")
    assert left.count("belongs to heir") == len(sessions) + 1


def test_a_script_of_another_cluster_stops_in_the_first_database(db: Database, others: Others, tmp_path: Any) -> None:
    fill(others("_b"))
    plan = tmp_path / "plan.sql"
    db.reconcile(MANIFEST, check=True, plan_file=str(plan))
    cluster = db.value("SELECT system_identifier::text FROM pg_control_system()")
    plan.write_text(plan.read_text(encoding="utf-8").replace(cluster, "1"), encoding="utf-8")
    refused = db.psql(plan)
    assert refused.returncode == 3
    assert "this script is for cluster 1" in refused.stderr
    assert "old" in db.roles()


# ---- found by breaking


def test_what_is_lacking_in_two_databases_is_told_twice(db: Database, others: Others) -> None:
    session = others("_b")
    for there in (db.connection, session):
        there.execute("CREATE SCHEMA s; CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        there.execute("ALTER FUNCTION s.f() OWNER TO old")
    adm = db.admin("old", "heir")
    inherit = " WITH INHERIT TRUE, SET TRUE" if db.server.version >= 16 else ""
    db.sql(f"GRANT old, heir TO adm{inherit}")
    manifest = {**MANIFEST, "roles": [{"name": "heir", "external": True}]}
    result = db.fails(manifest, "insufficient_privilege", **adm)
    assert [problem["message"] for problem in result.problems] == [
        "heir lacks CREATE on schema s, where old owns something",
        f"in database {db.name}_b, heir lacks CREATE on schema s, where old owns something",
    ]


def test_a_lock_in_another_database_names_who_holds_it(db: Database, others: Others) -> None:
    session = others("_b")
    session.execute("CREATE TABLE t (); ALTER TABLE t OWNER TO old")
    holder = db.connect(dbname=f"{db.name}_b", application_name="holder")
    holder.execute("BEGIN; SELECT * FROM t")
    result = db.fails(MANIFEST, "lock_timeout", check_too=False)
    assert "In the way" in result.msg
    assert "holder" in result.msg
    assert result.msg.startswith(f"Database {db.name}_b: ")


def test_a_login_is_not_locked_out_by_way_of_another_database(db: Database, others: Others) -> None:
    others("_b").execute("CREATE TABLE t (); ALTER TABLE t OWNER TO old")
    db.sql("CREATE ROLE adm LOGIN; CREATE ROLE boss SUPERUSER; GRANT boss, old TO adm")
    db.sql(f"REVOKE CONNECT ON DATABASE {db.name} FROM PUBLIC; GRANT CONNECT ON DATABASE {db.name} TO old")
    manifest = {**MANIFEST, "roles": [{"name": "heir", "external": True}]}
    db.fails(manifest, "self_protection", login_user="adm", session_role="boss")


@pytest.mark.parametrize("superuser", [True, False], ids=["superuser", "admin"])
@pytest.mark.parametrize("place", ["connected", "other"])
def test_partitions_of_somebody_else_are_never_destroyed(
    db: Database, others: Others, place: str, superuser: bool
) -> None:
    """The server drops them with the partitioned table, whoever owns them, and asks nobody."""
    session = others("_b") if place == "other" else db.connection
    session.execute(
        """CREATE SCHEMA s; CREATE TABLE s.log (a int, b int GENERATED ALWAYS AS IDENTITY) PARTITION BY LIST (a);
           CREATE TABLE s.mine PARTITION OF s.log FOR VALUES IN (1);
           CREATE TABLE s.theirs PARTITION OF s.log FOR VALUES IN (2) PARTITION BY LIST (b);
           CREATE TABLE s.theirs_too PARTITION OF s.theirs DEFAULT; INSERT INTO s.log VALUES (2);
           ALTER TABLE s.log OWNER TO old; ALTER TABLE s.mine OWNER TO old;
           ALTER TABLE s.theirs OWNER TO friend; ALTER TABLE s.theirs_too OWNER TO friend"""
    )
    manifest = {"retirements": [{"role": "old", "drop_owned": True, "all_databases": place == "other"}]}
    executor = {} if superuser else db.admin()
    if not superuser:
        db.sql("GRANT old TO adm WITH ADMIN OPTION")
    result = db.fails(manifest, "drop_blocked", **executor)
    (problem,) = result.problems
    assert "table s.theirs of friend is a partition of" in problem["message"]
    assert "table s.theirs_too of friend is a partition of" in problem["message"]
    assert "s.mine" not in problem["message"]
    session.execute("ALTER TABLE s.log DETACH PARTITION s.theirs")
    db.converge(manifest, **executor)
    assert session.execute("SELECT a FROM s.theirs").fetchall() == [(2,)]
