# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Twenty runs at once over four databases of one cluster that share roles, while somebody else changes the same things.

``make load`` (``LOAD=long``) repeats it for long, each time with another seed, and prints the table of
docs/reliability.md. ``LOAD_ROUNDS`` and ``LOAD_SEED`` say how often, and where the seeds begin.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from harness import Database, Result
from test_unattended import holder, meanwhile

DATABASES = 4
RUNS = 20
LONG = os.environ.get("LOAD") == "long"
ROUNDS = int(os.environ.get("LOAD_ROUNDS", "40")) if LONG else 1
WAVES = 3
SEED = int(os.environ.get("LOAD_SEED", "5"))

#: Codes of a run that lost a race. Running it again is all that there is to do.
RETRIABLE = {"collision", "lock_timeout"}

#: Seconds: the option; the fixed wait of a single statement; what is neither, on a machine that runs all of it at once.
TURN = 30
STATEMENT = 3
WORK = 30
TRIES = 3
BOUND = TRIES * (TURN + STATEMENT) + WORK

OPTIONS: dict[str, Any] = {
    "lock_timeout": TURN,
    "fingerprint_key": "the key of the load test",
    "update_password": "on_drift",
    "undeclared_grantees": "revoke",
}

SHARED = ("load_owner", "load_app", "load_report", "load_readers", "load_writers")


def manifest(databases: list[str], number: int) -> dict[str, Any]:
    """What one database declares. The roles, their passwords and memberships are the same in all four."""

    def on(kind: str, name: str = "*") -> dict[str, Any]:
        return {"type": kind, "schema": "shop", "name": name}

    return {
        "default_owner": "load_owner",
        "role_pattern": "{schema}_{profile}",
        "profiles": {"editor": {"grants": [{"privileges": ["SELECT", "UPDATE"], "object": {"type": "table", "name": "*"}}]}},
        "schemas": [{"name": "shop", "owner": "load_owner", "profiles": ["editor"]}],
        "roles": [
            {"name": "load_owner"},
            {"name": "load_app", "password": "password-of-the-app", "connection_limit": 20, "comment": "Order service"},
            {"name": "load_report", "password": "password-of-reports", "config": {"work_mem": "8MB"}},
            {"name": "load_readers", "members": ["load_app", "load_report"]},
            {"name": "load_writers", "members": ["load_app"]},
            {"name": f"load_only_{number}"},
        ],
        "memberships": [{"role": "shop_editor", "members": [{"name": "load_writers"}]}],
        "grants": [
            {"role": "load_readers", "privileges": ["USAGE"], "object": {"type": "schema", "name": "shop"}},
            {"role": "load_readers", "privileges": ["SELECT"], "object": on("table")},
            {"role": "load_writers", "privileges": ["INSERT", "DELETE"], "object": on("table")},
            {"role": "load_writers", "privileges": ["USAGE"], "object": on("sequence")},
            {"role": "load_readers", "privileges": ["EXECUTE"], "object": on("function")},
            {"role": f"load_only_{number}", "privileges": ["SELECT"], "object": on("table", "orders")},
            {"role": "PUBLIC", "privileges": ["CREATE"], "object": {"type": "schema", "name": "public"}, "ensure": "absent"},
            *(
                {"role": "load_readers", "privileges": ["CONNECT"], "object": {"type": "database", "name": name}}
                for name in databases
            ),
        ],
        "default_privileges": [
            {
                "owner": "load_owner",
                "schema": "shop",
                "grant": [
                    {"role": "load_readers", "privileges": ["SELECT"], "on_type": "table"},
                    {"role": "load_writers", "privileges": ["INSERT", "DELETE"], "on_type": "table"},
                ],
            },
        ],
    }  # fmt: skip


class Disturber(threading.Thread):
    """A superuser who changes what the runs manage, in short transactions, some held open for a moment."""

    def __init__(self, db: Database, databases: list[str], seed: int) -> None:
        super().__init__(daemon=True)
        self.random = random.Random(seed)  # noqa: S311
        self.sessions = [db.connect(dbname=name, autocommit=False) for name in databases]
        self.stopped = threading.Event()
        self.outcomes: Counter[str] = Counter()
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stopped.is_set():
                self.disturb(self.random.choice(self.sessions))
                self.stopped.wait(0.05)
        except BaseException as exc:
            self.fault = exc

    def disturb(self, session: psycopg.Connection[Any]) -> None:
        try:
            session.execute("SET LOCAL lock_timeout = '2s'")
            for statement in self.statements():
                session.execute(statement)
            # Half of what a run meets is not committed yet.
            self.stopped.wait(self.random.choice((0, 0, 0.02, 0.2)))
            session.commit()
            self.outcomes["committed"] += 1
        except psycopg.Error as exc:
            # It loses races, too, and then changes nothing.
            session.rollback()
            self.outcomes[exc.sqlstate or "lost"] += 1

    def statements(self) -> list[str]:
        pick = self.random.choice
        role, number = pick(SHARED), self.random.randrange(6)
        limit = self.random.randrange(50)
        return pick(
            [
                [f"ALTER ROLE {role} CONNECTION LIMIT {limit}"],
                [f"ALTER ROLE {role} {pick(('CREATEDB', 'NOINHERIT', 'BYPASSRLS', 'CREATEROLE'))}"],
                [f"ALTER ROLE {role} VALID UNTIL '2031-01-01'", f"COMMENT ON ROLE {role} IS 'by hand {limit}'"],
                [f"ALTER ROLE {pick(('load_app', 'load_report'))} PASSWORD 'by hand {limit}'"],
                [f"ALTER ROLE load_report SET work_mem = '{16 + limit}MB'"],
                ["GRANT load_writers TO load_report"],
                ["REVOKE load_readers FROM load_app", "REVOKE shop_editor FROM load_writers"],
                [f"DROP TABLE IF EXISTS shop.t{number}", f"CREATE TABLE shop.t{number} (id serial)"],
                [f"CREATE TABLE IF NOT EXISTS shop.u{number} ()", f"ALTER TABLE shop.u{number} OWNER TO load_owner"],
                [f"DROP TABLE IF EXISTS shop.t{number}, shop.u{number}"],
                [f"CREATE OR REPLACE FUNCTION shop.f{number}() RETURNS int LANGUAGE sql AS 'SELECT 1'"],
                [f"DROP FUNCTION IF EXISTS shop.f{number}()"],
                ["GRANT INSERT, TRUNCATE ON ALL TABLES IN SCHEMA shop TO load_report"],
                ["REVOKE SELECT ON ALL TABLES IN SCHEMA shop FROM load_readers"],
                ["GRANT UPDATE (id) ON shop.orders TO load_report WITH GRANT OPTION"],
                ["ALTER DEFAULT PRIVILEGES FOR ROLE load_owner IN SCHEMA shop GRANT UPDATE ON TABLES TO load_app"],
                ["ALTER DEFAULT PRIVILEGES FOR ROLE load_owner IN SCHEMA shop REVOKE ALL ON TABLES FROM load_readers"],
                ["ALTER SCHEMA shop OWNER TO postgres"],
                ["GRANT CREATE ON SCHEMA shop TO load_report", "GRANT CREATE ON SCHEMA public TO PUBLIC"],
                [f"CREATE ROLE load_stray_{number}", f"GRANT SELECT ON ALL TABLES IN SCHEMA shop TO load_stray_{number}",
                 f"GRANT load_readers TO load_stray_{number}"],
                [f"DROP OWNED BY load_stray_{number}", f"DROP ROLE load_stray_{number}"],
                ["DO $$BEGIN EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO load_report', current_database()); END$$"],
                ["DO $$BEGIN EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM load_readers', current_database()); END$$"],
            ]
        )  # fmt: skip

    def stop(self) -> None:
        self.stopped.set()
        self.join(30)
        for session in self.sessions:
            session.close()
        if self.fault:
            raise self.fault


@contextmanager
def disturbed(db: Database, databases: list[str], seed: int) -> Iterator[Counter[str]]:
    """Two such sessions meanwhile. What became of their transactions is counted."""
    outcomes: Counter[str] = Counter()
    disturbers = [Disturber(db, databases, seed * 10 + number) for number in range(2)]
    for disturber in disturbers:
        disturber.start()
    try:
        yield outcomes
    finally:
        for disturber in disturbers:
            disturber.stop()
            outcomes += disturber.outcomes


@pytest.fixture
def databases(db: Database) -> list[str]:
    names = [db.name, *(db.cluster.create_database() for _number in range(DATABASES - 1))]
    for name in names:
        db.connect(dbname=name).execute(
            "CREATE SCHEMA shop; CREATE TABLE shop.orders (id serial);"
            "CREATE FUNCTION shop.total() RETURNS int LANGUAGE sql AS 'SELECT 1'"
        )
    return names


def test_twenty_runs_at_once(db: Database, databases: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    manifests = [manifest(databases, number) for number in range(DATABASES)]
    arguments = [
        db.arguments(manifests[number % DATABASES], login_db=databases[number % DATABASES], check=check, **OPTIONS)
        for check, runs in ((False, RUNS), (True, DATABASES))
        for number in range(runs)
    ]
    outcomes: Counter[str] = Counter()
    disturbances: Counter[str] = Counter()
    unclear: list[Result] = []
    slowest = 0.0
    for number in range(ROUNDS):
        with disturbed(db, databases, SEED + number) as disturbed_by:
            # The first wave finds no role, and all want to make them.
            for _wave in range(WAVES):
                finished = db.runner.together(arguments, timeout=2 * BOUND)
                for result, seconds in finished:
                    slowest = max(slowest, seconds)
                    assert seconds < BOUND, f"{seconds:.0f} s: {result}"
                outcomes.update(outcome(result) for result, _seconds in finished[:RUNS])
                unclear += [r for r, _s in finished[:RUNS] if r.failed and r.error_code not in RETRIABLE]
                # A check run has one snapshot and waits for nobody: it always has an answer.
                unclear += [r for r, _s in finished[RUNS:] if r.failed]
        disturbances += disturbed_by
        nothing_is_left(db)
        converge(db, databases, manifests)
        if number + 1 < ROUNDS:
            start_over(db, databases)
    if LONG:
        with capsys.disabled():
            report(db.version, outcomes, disturbances, slowest)
    assert unclear == []
    assert disturbances["committed"] > 10 * ROUNDS, "nobody disturbed the runs"
    assert outcomes["changed"] > 5 * ROUNDS, "the runs had nothing to do"


def start_over(db: Database, databases: list[str]) -> None:
    """Without the roles."""
    roles = [row[0] for row in db.query("SELECT rolname FROM pg_roles WHERE oid >= 16384")]
    for name in databases:
        with psycopg.connect(autocommit=True, **db.cluster.address(name)) as session:
            session.execute("ALTER SCHEMA shop OWNER TO postgres")
            for role in roles:
                # Together they fail where two of them meet in a row of default privileges (XX000).
                session.execute(f"DROP OWNED BY {role} CASCADE")
    db.sql(f"DROP ROLE {', '.join(roles)}")


#: What another session has done and not committed yet, in the way of a run that wants the same or something else.
OPEN = {
    "a grant on the schema": "GRANT CREATE ON SCHEMA s TO app",
    "a grant on the table": "GRANT SELECT, INSERT ON s.t TO app",
    "a grant on a column": "GRANT UPDATE (a) ON s.t TO app",
    "a grant on the sequence": "GRANT USAGE ON SEQUENCE s.q TO app",
    "a grant on the function": "GRANT EXECUTE ON FUNCTION s.f() TO app",
    "a grant on the type": "GRANT USAGE ON TYPE s.e TO app",
    "a grant on the database": "DO $$BEGIN EXECUTE format('GRANT ALL ON DATABASE %I TO app', current_database()); END$$",
    "default privileges": "ALTER DEFAULT PRIVILEGES FOR ROLE owner IN SCHEMA s GRANT SELECT, INSERT ON TABLES TO app",
    "a membership": "GRANT readers TO app",
    "a membership with ADMIN": "GRANT readers TO app WITH ADMIN OPTION",
    "an attribute": "ALTER ROLE app CREATEDB",
    "a setting": "ALTER ROLE app SET work_mem = '1MB'",
    "a comment": "COMMENT ON ROLE app IS 'by hand'",
    "the role": "CREATE ROLE later CREATEDB",
    "the schema": "CREATE SCHEMA made",
    "the schema's owner": "ALTER SCHEMA s OWNER TO app",
}


@pytest.mark.parametrize("statement", OPEN.values(), ids=OPEN)
def test_CON_01_tuple_concurrently_updated(db: Database, statement: str) -> None:
    """The run waits, is refused, and starts again from what the other session has left."""
    db.sql(
        "CREATE ROLE owner; CREATE ROLE app; CREATE ROLE readers; CREATE SCHEMA s AUTHORIZATION owner; SET ROLE owner",
        "CREATE TABLE s.t (a int); CREATE SEQUENCE s.q; CREATE TYPE s.e AS ENUM ('a')",
        "CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; RESET ROLE",
    )

    def grant(kind: str, *privileges: str, **more: str) -> dict[str, Any]:
        return {"role": "app", "privileges": list(privileges), "object": {"type": kind, **more}}

    declared = {
        "roles": [
            {"name": "owner"},
            {"name": "app", "connection_limit": 3, "comment": "declared", "config": {"work_mem": "8MB"}},
            {"name": "readers", "members": ["app"]},
            {"name": "later"},
        ],
        "schemas": [{"name": "s", "owner": "owner"}, {"name": "made", "owner": "owner"}],
        "grants": [
            grant("schema", "USAGE", name="s"),
            grant("table", "SELECT", schema="s", name="*"),
            {**grant("table", "REFERENCES", schema="s", name="t"), "columns": ["a"]},
            grant("sequence", "SELECT", schema="s", name="*"),
            grant("function", "EXECUTE", schema="s", name="f"),
            grant("type", "USAGE", schema="s", name="e"),
            grant("database", "CONNECT"),
        ],
        "default_privileges": [
            {"owner": "owner", "schema": "s", "grant": [{"role": "app", "privileges": ["SELECT"], "on_type": "table"}]}
        ],
    }
    result = meanwhile(db, holder(db, statement), declared)
    assert result.changed
    db.silent(declared)


@pytest.mark.parametrize("altered", ["1", "nextval('public.tries')"])
def test_what_others_change_is_a_collision_and_what_the_plan_does_is_not(db: Database, altered: str) -> None:
    """A trigger undoes something in every try: the same each time, as the plan's own side effect would be, or another
    thing each time, as others would.
    """
    db.sql(
        "CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE SEQUENCE public.tries",
        *(f"CREATE ROLE r{number}" for number in range(1, 5)),
        "CREATE FUNCTION public.interfere() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN"
        f" EXECUTE format('ALTER ROLE r%s CONNECTION LIMIT 5', {altered}); END$$",
        "CREATE EVENT TRIGGER interfere ON ddl_command_end WHEN TAG IN ('GRANT') EXECUTE FUNCTION public.interfere()",
    )
    declared = {
        "roles": [{"name": f"r{number}"} for number in range(1, 5)],
        "grants": [{"role": "r1", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "t"}}],
    }
    code, role = ("not_converged", "r1") if altered == "1" else ("collision", "r3")
    result = db.fails(declared, code, f'still to do: ALTER ROLE "{role}" CONNECTION LIMIT -1', check_too=False)
    assert result.plan == ['GRANT SELECT ON TABLE "s"."t" TO "r1"']
    db.sql("DROP EVENT TRIGGER interfere")
    db.converge(declared)


def outcome(result: Result) -> str:
    if result.failed:
        return str(result.error_code)
    return "changed" if result.changed else "nothing to do"


def nothing_is_left(db: Database) -> None:
    """No session, no lock, no transaction of a run."""
    deadline = time.monotonic() + 10
    left: list[Any] = []
    while time.monotonic() < deadline:
        left = db.query("SELECT pid, state FROM pg_stat_activity WHERE application_name = 'pg_access.reconcile'")
        if not left:
            break
        time.sleep(0.02)
    assert left == []
    assert db.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'") == []


def converge(db: Database, databases: list[str], manifests: list[dict[str, Any]]) -> None:
    """Once more each, undisturbed: all four databases are then what they declare, at the same time."""
    for name, declared in zip(databases, manifests):
        last = db.reconcile(declared, login_db=name, **OPTIONS)
        assert not last.failed, last
    for name, declared in zip(databases, manifests):
        for check in (True, False):
            again = db.reconcile(declared, login_db=name, check=check, **OPTIONS)
            assert not again.failed, again
            assert again.sql == [], f"{name} is not what it declares"
    # Not only in the module's own opinion.
    assert db.logs_in("load_app", "password-of-the-app")
    assert db.logs_in("load_report", "password-of-reports")
    assert db.members("load_readers") >= {"load_app", "load_report"}
    assert db.members("load_writers") == {"load_app"}
    assert db.attribute("load_app", "rolconnlimit") == 20
    assert db.attribute("load_report", "rolconfig") == ["work_mem=8MB"]
    for name in databases:
        session = db.connect(dbname=name)
        wrong = session.execute(
            """SELECT c.oid::regclass::text FROM pg_class c
               WHERE c.relnamespace = 'shop'::regnamespace AND c.relkind = 'r'
                 AND (NOT has_table_privilege('load_report', c.oid, 'SELECT')
                      OR NOT has_table_privilege('load_app', c.oid, 'SELECT, INSERT')
                      OR has_table_privilege('load_report', c.oid, 'INSERT, TRUNCATE'))"""
        ).fetchall()
        assert wrong == []
        session.close()


def report(version: int, outcomes: Counter[str], disturbances: Counter[str], slowest: float) -> None:
    """A row of the table in docs/reliability.md."""
    ended = (outcomes[name] for name in ("changed", "nothing to do", "collision", "lock_timeout"))
    other = sum(disturbances.values()) - disturbances["committed"]
    cells = [version, ROUNDS, sum(outcomes.values()), *ended, f"{slowest:.1f} s", disturbances["committed"], other]
    print("\n| " + " | ".join(map(str, cells)) + " |", flush=True)
