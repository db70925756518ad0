# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server's lock table: what a plan takes of it is counted before the first statement, and there is a way out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from harness import Cluster, Database, Result, Runner, another_server

#: max_locks_per_transaction, max_connections, and what the lock table is made for.
EACH, CONNECTIONS = 10, 20
MADE_FOR = EACH * CONNECTIONS

#: A table has up to six locks until it is committed.
MAKE = """
DO $$ BEGIN
    FOR i IN 1..{tables} LOOP
        EXECUTE format('CREATE TABLE s.t%s (a int)', i);
        IF i % 20 = 0 THEN COMMIT; END IF;
    END LOOP;
END $$
"""

#: What a session holds until the end of its transaction: objects, without the catalogs that every session reads.
HELD = """
SELECT count(DISTINCT (locktype, relation, classid, objid, objsubid)) FROM pg_locks
WHERE pid = pg_backend_pid() AND locktype IN ('relation', 'object')
  AND (relation IS NULL OR relation >= 16384) AND (classid IS NULL OR classid <> 'pg_database'::regclass OR objid >= 5)
"""

#: The view is not asked for, so ALL TABLES IN SCHEMA would reach too much.
READER = """
roles: [{name: r}]
schemas: [{name: s}]
grants:
  - {role: r, privileges: [SELECT], object: {type: table, schema: s, name: "*"}}
"""
WARNED = "max_locks_per_transaction"


@contextmanager
def small(version: int, runner: Runner, each: int = EACH, more: str = "") -> Iterator[Database]:
    """A database on a server with room for few locks: about 320, as the server counts its own processes too. What it has
    to spare beyond that goes to whatever needs shared memory first (the lookup of a full buffer cache does), so no test
    may rely on it.
    """
    settings = f"max_locks_per_transaction = {each}\nmax_connections = {CONNECTIONS}\n{more}"
    if settings not in _clusters:
        _clusters[settings] = _open.enter_context(another_server(version, settings))
    database = Database(_clusters[settings], runner)
    try:
        yield database
    finally:
        database.close()


#: The servers of the version that is being tested, by their settings, and what ends them.
_clusters: dict[str, Cluster] = {}
_open = ExitStack()


@pytest.fixture(scope="module", autouse=True)
def _no_server_is_left(server: Cluster) -> Iterator[None]:
    yield
    _clusters.clear()
    _open.close()


def tables(db: Database, number: int) -> None:
    db.sql("CREATE SCHEMA s", MAKE.format(tables=number), "CREATE VIEW s.v AS SELECT 1 AS a")


def owner_of_tables(db: Database, number: int) -> None:
    """A role ``old`` that owns tables with a key, a TOAST table and its index each: four relations with a new owner."""
    db.sql("CREATE ROLE old; CREATE ROLE heir; CREATE SCHEMA s AUTHORIZATION old; SET ROLE old")
    db.sql(MAKE.format(tables=number).replace("(a int)", "(a int PRIMARY KEY, b text)"), "RESET ROLE")


def retire(**how: Any) -> dict[str, Any]:
    return {"roles": [{"name": "heir"}], "retirements": [{"role": "old", **how}]}


def counted(result: Result) -> int:
    """The locks that a warning or an error speaks of."""
    found = re.findall(
        r"plan takes about (\d+) locks in one transaction \(", "\n".join([result.text, *result.warnings])
    )
    assert len(set(found)) == 1, result
    return int(found[0])


def proposed(result: Result) -> int:
    (found,) = set(re.findall(r"[Ss]et max_locks_per_transaction to (\d+)", result.text))
    return int(found)


def warned(result: Result) -> list[str]:
    return [warning for warning in result.warnings if WARNED in warning]


# ---- below half, between, above twice


@pytest.mark.versions(min=18)
def test_named_objects_are_counted_from_18_on(server: Cluster, runner: Runner) -> None:
    with small(server.version, runner) as db:
        tables(db, MADE_FOR // 2 - 1)
        result = db.converge(READER)
        assert not warned(result), result.warnings
    with small(server.version, runner) as db:
        tables(db, MADE_FOR // 2)
        result = db.converge(READER)
        assert counted(result) == MADE_FOR // 2 + 1
        (warning,) = warned(result)
        assert f"made for {MADE_FOR} of all sessions together" in warning
        assert f"({MADE_FOR // 2} for objects named in GRANT and REVOKE, 1 for roles" in warning
        assert f"{WARNED} = 16 and a restart" in warning


@pytest.mark.versions(max=17)
def test_named_objects_are_no_matter_before_18(server: Cluster, runner: Runner) -> None:
    with small(server.version, runner) as db:
        tables(db, 2 * MADE_FOR + 1)
        assert not warned(db.converge(READER))


@pytest.mark.versions(min=18)
def test_too_many_named_objects_fail_before_the_first_statement(
    server: Cluster, runner: Runner, tmp_path: Path
) -> None:
    number = 2 * MADE_FOR
    with small(server.version, runner) as db:
        tables(db, number)
        with db.statements() as sent:
            result = db.fails(READER, "too_many_locks", plan_file=str(tmp_path / "plan.sql"))
        assert not [statement for statement in sent if statement.startswith(("CREATE ROLE", "GRANT"))]
        assert counted(result) == number + 1
        assert "the manifest in parts" in result.text
        assert result.plan and not warned(result)
        script = (tmp_path / "plan.sql").read_text()
        assert "-- An apply is refused (too_many_locks): " in script
        assert '\nCREATE ROLE "r";' in script
        each = proposed(result)
        assert each == 48
    with small(server.version, runner, each) as db:
        tables(db, number)
        assert not warned(db.converge(READER))


def test_objects_to_reassign_are_counted_on_every_version(server: Cluster, runner: Runner) -> None:
    manifest = retire(reassign_owned_to="heir", drop_owned=True)
    with small(server.version, runner) as db:
        owner_of_tables(db, 24)
        assert not warned(db.converge(manifest))
    with small(server.version, runner) as db:
        owner_of_tables(db, 60)
        result = db.converge(manifest)
        assert counted(result) == 60 * 4 + 2
    with small(server.version, runner) as db:
        owner_of_tables(db, 99)
        result = db.reconcile(manifest, check=True)
        assert counted(result) == 99 * 4 + 2
        assert warned(result)
    with small(server.version, runner) as db:
        owner_of_tables(db, 100)
        result = db.fails(manifest, "too_many_locks")
        assert counted(result) == 100 * 4 + 2
        assert "(400 for tables, indexes and other relations that REASSIGN OWNED hands over, 2 for roles" in result.text
        assert "by hand" in result.text
        each = proposed(result)
    with small(server.version, runner, each) as db:
        owner_of_tables(db, 100)
        assert not warned(db.converge(manifest))


def test_prepared_transactions_and_connections_make_room(server: Cluster, runner: Runner) -> None:
    manifest = retire(reassign_owned_to="heir", drop_owned=True)
    with small(server.version, runner, more="max_prepared_transactions = 30") as db:
        owner_of_tables(db, 100)
        (warning,) = warned(db.reconcile(manifest, check=True))
        assert f"{EACH}, times max_connections + max_prepared_transactions = 50" in warning
        db.converge(manifest)


def test_another_database_has_a_count_of_its_own(server: Cluster, runner: Runner) -> None:
    manifest = retire(reassign_owned_to="heir", drop_owned=True, all_databases=True)
    with small(server.version, runner) as db:
        owner_of_tables(db, 10)
        db.sql("CREATE DATABASE other")
        with psycopg.connect(**db.cluster.address("other"), autocommit=True) as other:
            other.execute("CREATE SCHEMA s AUTHORIZATION old; SET ROLE old")
            other.execute(MAKE.format(tables=110).replace("(a int)", "(a int PRIMARY KEY, b text)"))
        result = db.fails(manifest, "too_many_locks")
        assert [problem["object"] for problem in result.problems] == ["database other"]
        assert "about 441 locks in one transaction in database other" in result.msg
        each = proposed(result)
        assert each == 48
        db.sql("DROP DATABASE other WITH (FORCE)", "CREATE DATABASE other")
        with psycopg.connect(**db.cluster.address("other"), autocommit=True) as other:
            other.execute("CREATE SCHEMA s AUTHORIZATION old; SET ROLE old")
            other.execute(MAKE.format(tables=30).replace("(a int)", "(a int PRIMARY KEY, b text)"))
        (warning,) = warned(db.converge(manifest))
        assert "about 121 locks in one transaction in database other" in warning


# ---- the count and the server's own


KINDS = """
CREATE ROLE r; CREATE ROLE o; CREATE ROLE g; CREATE ROLE x; CREATE ROLE gone; GRANT g TO x;
CREATE SCHEMA s AUTHORIZATION o; CREATE SCHEMA moved; SET ROLE o;
CREATE TABLE s.t1 (a int, b int); CREATE TABLE s.t2 (a int); CREATE VIEW s.v AS SELECT 1 AS a;
CREATE TABLE s.p (a int) PARTITION BY RANGE (a); CREATE TABLE s.p1 PARTITION OF s.p FOR VALUES FROM (0) TO (9);
CREATE MATERIALIZED VIEW s.m AS SELECT 1 AS a; CREATE SEQUENCE s.q1; CREATE SEQUENCE s.q2;
CREATE FUNCTION s.f1() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION s.f2() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE TYPE s.e AS ENUM ('a'); CREATE DOMAIN s.d AS int;
GRANT INSERT ON s.t1, s.t2 TO x; GRANT UPDATE (b) ON s.t1 TO x; GRANT EXECUTE ON FUNCTION s.f1() TO x; RESET ROLE;
CREATE FOREIGN DATA WRAPPER w; SELECT lo_create(4711);
ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO x;
"""
ALL_KINDS = """
roles:
  - {name: o}
  - {name: g, members: [r]}
  - {name: x, comment: known}
  - {name: r, config: {work_mem: 8MB}}
  - {name: n1}
  - {name: n2, member_of: [g]}
schemas: [{name: s, owner: o}, {name: moved, owner: r}, {name: new, owner: o}]
retirements: [{role: gone}]
grants:
  - {role: r, privileges: [SELECT], object: {type: table, schema: s, name: t1}}
  - {role: r, privileges: [SELECT], object: {type: view, schema: s, name: v}}
  - {role: r, privileges: [SELECT], object: {type: materialized_view, schema: s, name: m}}
  - {role: r, privileges: [SELECT], columns: [a], object: {type: table, schema: s, name: t2}}
  - {role: n1, privileges: [USAGE], object: {type: sequence, schema: s, name: q1}}
  - {role: r, privileges: [EXECUTE], object: {type: function, schema: s, name: f2()}}
  - {role: r, privileges: [USAGE], object: {type: type, schema: s, name: "*"}}
  - {role: r, privileges: [USAGE], object: {type: schema, name: s}}
  - {role: r, privileges: [USAGE], object: {type: schema, name: new}}
  - {role: r, privileges: [CONNECT], object: {type: database}}
  - {role: r, privileges: [USAGE], object: {type: language, name: plpgsql}}
  - {role: r, privileges: [USAGE], object: {type: foreign_data_wrapper, name: w}}
  - {role: r, privileges: [SELECT], object: {type: large_object, name: 4711}}
  - {role: r, privileges: [CREATE], object: {type: tablespace, name: pg_default}}
PARAMETER
default_privileges: [{owner: o, schema: s, grant: [{role: n2, privileges: [SELECT], on_type: table}]}]
"""
PARAMETER = "  - {role: r, privileges: [SET], object: {type: parameter, name: work_mem}}"

#: Possessions of every sort that REASSIGN OWNED or DROP OWNED has to lock something for, or nothing.
OWNED = """
CREATE ROLE old; CREATE ROLE heir; CREATE ROLE x; CREATE ROLE o; CREATE SCHEMA s AUTHORIZATION o;
GRANT CREATE, USAGE ON SCHEMA s TO old; CREATE FOREIGN DATA WRAPPER w; CREATE SERVER v FOREIGN DATA WRAPPER w;
CREATE TABLE s.theirs (a int); GRANT SELECT, INSERT ON s.theirs TO old; CREATE POLICY p ON s.theirs TO old USING (true);
CREATE USER MAPPING FOR old SERVER v;
GRANT USAGE ON FOREIGN SERVER v TO old; GRANT USAGE ON FOREIGN DATA WRAPPER w TO old, heir;
ALTER DEFAULT PRIVILEGES FOR ROLE old IN SCHEMA s GRANT SELECT ON TABLES TO x;
ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO old;
SET ROLE old;
CREATE TABLE s.t1 (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a text DEFAULT 'x' NOT NULL CHECK (a <> ''), n serial);
CREATE INDEX ON s.t1 (a); CREATE INDEX ON s.t1 (n); CREATE TABLE s.t2 (a int REFERENCES s.t1); CREATE TABLE s.child () INHERITS (s.t2);
CREATE TABLE s.p (a int PRIMARY KEY, b text) PARTITION BY RANGE (a); CREATE TABLE s.p1 PARTITION OF s.p FOR VALUES FROM (0) TO (9);
CREATE VIEW s.v AS SELECT * FROM s.t2; CREATE MATERIALIZED VIEW s.m AS SELECT id, a FROM s.t1; CREATE UNIQUE INDEX ON s.m (id);
CREATE SEQUENCE s.q; CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TYPE s.e AS ENUM ('a');
CREATE DOMAIN s.d AS int CHECK (VALUE > 0); CREATE TYPE s.c AS (a int, b text); CREATE FOREIGN TABLE s.ft (a int) SERVER v;
CREATE STATISTICS s.st ON a, id FROM s.t1; CREATE TYPE s.rg AS RANGE (subtype = int);
RESET ROLE;
"""


def test_the_count_is_what_the_server_holds(server: Cluster, runner: Runner) -> None:
    manifest = yaml.safe_load(ALL_KINDS.replace("PARAMETER", PARAMETER if server.version >= 15 else ""))
    # So many roles more that there is a word about locks.
    manifest["roles"] += [{"name": f"more{number}", "comment": "x"} for number in range(MADE_FOR // 2)]
    with small(server.version, runner) as db:
        db.sql(KINDS)
        held_is_counted(db, manifest)


@pytest.mark.parametrize("heir", [True, False], ids=["reassigned", "destroyed"])
def test_the_count_of_possessions_is_what_the_server_holds(server: Cluster, runner: Runner, heir: bool) -> None:
    how = {"drop_owned": True, **({"reassign_owned_to": "heir"} if heir else {})}
    with small(server.version, runner) as db:
        db.sql(OWNED)
        if not heir:
            db.sql("GRANT USAGE ON FOREIGN SERVER v TO x")
        filler(db, heir)
        held_is_counted(db, retire(**how))


def filler(db: Database, heir: bool) -> None:
    """So many tables more that there is a word about locks."""
    db.sql("SET ROLE old", MAKE.format(tables=100 if heir else 30).replace("s.t%s", "s.more%s"), "RESET ROLE")


def held_is_counted(db: Database, manifest: Any) -> None:
    result = db.reconcile(manifest, check=True)
    sql = result.plan or result.sql
    with db.connect() as session, session.transaction(force_rollback=True):
        before = session.execute(HELD).fetchone()
        for statement in sql:
            session.execute(statement)
        after = session.execute(HELD).fetchone()
    assert before == (0,) and after is not None
    assert counted(result) == after[0], sql
    if not result.failed:
        db.converge(manifest)


# ---- the way out without a restart


@pytest.mark.versions(min=18)
def test_whole_schemas_need_no_locks(server: Cluster, runner: Runner) -> None:
    """A few tables with more privileges are named for those only."""
    manifest = (
        READER
        + """
  - {role: r, privileges: [SELECT], object: {type: view, schema: s, name: "*"}}
  - {role: r, privileges: [INSERT, UPDATE], object: {type: table, schema: s, name: t7}}
"""
    )
    with small(server.version, runner) as db:
        tables(db, 10 * MADE_FOR)
        result = db.converge(manifest)
        assert not warned(result)
        assert result.sql == [
            'CREATE ROLE "r"',
            'GRANT SELECT ON ALL TABLES IN SCHEMA "s" TO "r"',
            'GRANT INSERT, UPDATE ON TABLE "s"."t7" TO "r"',
        ]
        assert db.acl("s.t7") == {f"postgres={db.full}/postgres", "r=arw/postgres"}
        assert db.acl("s.t8") == {f"postgres={db.full}/postgres", "r=r/postgres"}
        db.sql("CREATE ROLE x; GRANT SELECT ON ALL TABLES IN SCHEMA s TO x; GRANT DELETE ON s.t9 TO x")
        result = db.converge(manifest)
        assert sorted(result.sql) == [
            'REVOKE DELETE ON TABLE "s"."t9" FROM "x"',
            'REVOKE SELECT ON ALL TABLES IN SCHEMA "s" FROM "x"',
        ]


# ---- the server says it itself


def test_the_servers_own_word_gets_the_counts(server: Cluster, runner: Runner) -> None:
    """Other sessions hold nearly everything, so that a plan with a warning only finds no room."""
    with small(server.version, runner) as db:
        owner_of_tables(db, 60)
        others = db.connect()
        others.execute(
            """DO $$ DECLARE i int := 0; BEGIN
                LOOP BEGIN PERFORM pg_advisory_lock(i + 1); EXCEPTION WHEN out_of_memory THEN EXIT; END; i := i + 1; END LOOP;
                FOR j IN i - 150 .. i LOOP PERFORM pg_advisory_unlock(j); END LOOP;
            END $$"""
        )
        manifest = retire(reassign_owned_to="heir", drop_owned=True)
        before = db.snapshot()
        result = db.reconcile(manifest)
        assert result.error_code == "too_many_locks", result
        assert result.sqlstate == "53200"
        assert result.statement.startswith("REASSIGN OWNED BY")
        assert "out of shared memory" in result.msg
        assert "The plan takes about 242 locks in one transaction" in result.hint
        assert "other sessions hold the rest" in result.hint
        assert proposed(result) == 32
        assert result.problems[0]["hint"] == result.hint
        assert db.snapshot() == before
        others.close()
        assert warned(db.converge(manifest))
