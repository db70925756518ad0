# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases VER, EXT, OBJ, CAT and CON: versions, extensions, other objects, strange catalogs, sessions."""

from __future__ import annotations

import os
import time

import pytest
from harness import UNCONNECTED, Database

R = "roles: [{name: r}]\nschemas: [{name: s}]\n"
ALL_TABLES = 'grants: [{role: r, privileges: [%s], object: {type: table, schema: s, name: "*"}}]\n'


@pytest.mark.versions(max=16)
def test_VER_01_maintain_before_17(db: Database) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    result = db.fails(R + ALL_TABLES % "SELECT, MAINTAIN", "unsupported_version", "MAINTAIN")
    assert "17" in result.text
    assert db.roles() == set()


@pytest.mark.versions(min=17)
def test_VER_01_maintain_from_17_on(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    db.converge(R + ALL_TABLES % "MAINTAIN")
    assert "r=m/postgres" in (db.acl("s.t") or ())
    db.converge(R)
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}


def test_VER_03_schema_public(db: Database) -> None:
    db.sql("CREATE ROLE r")
    before = db.acl("public", "schema") or set()
    owner = db.value("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'public'")
    assert owner == ("pg_database_owner" if db.version >= 15 else "postgres")
    db.converge(
        "roles: [{name: r}]\nschemas: [{name: public}]\ngrants: [{role: r, privileges: [CREATE], "
        "object: {type: schema, name: public}}]"
    )
    assert db.acl("public", "schema") == before | {f"r=C/{owner}"}


def test_VER_03_a_database_from_14(db: Database) -> None:
    db.sql("GRANT CREATE ON SCHEMA public TO PUBLIC")
    db.silent("schemas: [{name: public}]")
    db.converge("grants: [{role: PUBLIC, privileges: [CREATE], object: {type: schema, name: public}, ensure: absent}]")
    assert any(entry.startswith("=U/") for entry in db.acl("public", "schema") or ())


@pytest.mark.parametrize("named", [False, True])
def test_EXT_01_extension_objects_in_a_managed_schema(db: Database, named: bool) -> None:
    found = {
        row[0]
        for row in db.query(
            "SELECT name FROM pg_available_extensions WHERE name IN ('pg_stat_statements', 'pg_trgm', 'vector')"
        )
    }
    assert found, "neither npm's nor PyPI's servers come without all of these"
    name = sorted(found)[0]
    db.sql(f"CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA s; CREATE EXTENSION {name} SCHEMA s")
    db.sql(
        "CREATE FUNCTION s.own() RETURNS int LANGUAGE sql AS 'SELECT 1'; "
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA s TO x"
    )
    before = {key: value for key, value in db.snapshot().items() if key.startswith("routine ")}
    signature = db.value(
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e'"
        " AND d.classid = 'pg_proc'::regclass WHERE pronamespace = 's'::regnamespace ORDER BY 1 LIMIT 1"
    )
    grants = "grants:\n  - {role: r, privileges: [EXECUTE], object: {type: function, schema: s, name: '*'}}\n"
    if named:
        local = signature.removeprefix("s.")
        grants += f"  - {{role: r, privileges: [EXECUTE], object: {{type: function, schema: s, name: '{local}'}}}}\n"
    result = db.converge(R + grants)
    after = {key: value for key, value in db.snapshot().items() if key.startswith("routine ")}
    changed = {key.removeprefix("routine ") for key in after if after[key] != before[key]}
    # A wildcard leaves the extension's objects out, and so does the search for surplus, unless they are named.
    assert changed == ({"s.own()", signature} if named else {"s.own()"})
    assert "x=X/" not in after["routine s.own()"]
    if not named:
        assert result.held(reason="extension")


@pytest.mark.parametrize("name", ["postgres_fdw", "plain"])
def test_OBJ_01_foreign_data_wrappers_and_servers(db: Database, name: str) -> None:
    db.sql("CREATE ROLE r")
    if name == "postgres_fdw":
        if not db.query("SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw'"):
            pytest.skip("this server's package has no contrib")
        db.sql("CREATE EXTENSION postgres_fdw")
    else:
        db.sql("CREATE FOREIGN DATA WRAPPER plain")
    db.sql(f"CREATE SERVER srv FOREIGN DATA WRAPPER {name}")
    # Named, so an extension's wrapper is managed like any other.
    db.converge(
        "roles: [{name: r}]\ngrants:\n"
        "  - {role: r, privileges: [USAGE], object: {type: foreign_server, name: srv}}\n"
        f"  - {{role: r, privileges: [USAGE], object: {{type: foreign_data_wrapper, name: {name}}}}}"
    )
    assert db.value("SELECT srvacl::text FROM pg_foreign_server") == "{postgres=U/postgres,r=U/postgres}"
    assert db.value("SELECT fdwacl::text FROM pg_foreign_data_wrapper") == "{postgres=U/postgres,r=U/postgres}"


def test_OBJ_02_large_objects(db: Database) -> None:
    db.sql("CREATE ROLE r; SELECT lo_create(4711)")
    rule = "grants: [{role: r, privileges: [SELECT, UPDATE], object: {type: large_object, name: '4711'}}]"
    db.converge("roles: [{name: r}]\n" + rule)
    acl = "SELECT lomacl::text FROM pg_largeobject_metadata"
    assert db.value(acl) == "{postgres=rw/postgres,r=rw/postgres}"
    db.converge("roles: [{name: r}]\n" + rule.replace("SELECT, UPDATE", "SELECT"))
    assert db.value(acl) == "{postgres=rw/postgres,r=r/postgres}"


def test_OBJ_04_languages_and_tablespaces(db: Database) -> None:
    db.sql("CREATE ROLE r")
    assert db.acl("plpgsql", "language") is None
    db.converge(
        "roles: [{name: r}]\ngrants:\n"
        "  - {role: r, privileges: [USAGE], object: {type: language, name: plpgsql}}\n"
        "  - {role: r, privileges: [CREATE], object: {type: tablespace, name: pg_default}}"
    )
    assert db.acl("plpgsql", "language") == {"=U/postgres", "postgres=U/postgres", "r=U/postgres"}
    assert db.value("SELECT spcacl::text FROM pg_tablespace WHERE spcname = 'pg_default'") == (
        "{postgres=C/postgres,r=C/postgres}"
    )


def test_OBJ_04_a_tablespace_of_ones_own(db: Database) -> None:
    folder = db.server.directory / "space"
    folder.mkdir()
    # It must belong to the server's user.
    data = db.server.directory.stat()
    os.chown(folder, data.st_uid, data.st_gid)
    db.sql("CREATE ROLE r; CREATE ROLE x", f"CREATE TABLESPACE \"Fast-1\" LOCATION '{folder}'")
    try:
        db.sql('GRANT CREATE ON TABLESPACE "Fast-1" TO x WITH GRANT OPTION')
        db.converge(
            "roles: [{name: r}, {name: x}]\n"
            "grants: [{role: r, privileges: [ALL], object: {type: tablespace, name: Fast-1}}]"
        )
        assert db.value("SELECT spcacl::text FROM pg_tablespace WHERE spcname = 'Fast-1'") == (
            "{postgres=C/postgres,r=C/postgres}"
        )
    finally:
        db.sql('DROP TABLESPACE "Fast-1"')
        folder.rmdir()


@UNCONNECTED
def test_OBJ_01_an_unknown_type(db: Database) -> None:
    db.rejects("roles: [{name: r}]\ngrants: [{role: r, privileges: [USAGE], object: {type: tabel, name: x}}]", "table")


def test_OBJ_05_another_database(db: Database) -> None:
    other = f"{db.name}_other"
    db.sql(f"CREATE DATABASE {other}", "CREATE ROLE r; CREATE ROLE x", f"GRANT CREATE ON DATABASE {other} TO x, r")
    db.sql(f"GRANT CREATE ON DATABASE {db.name} TO x")
    result = db.converge(
        f"roles: [{{name: r}}]\ngrants: [{{role: r, privileges: [CONNECT], object: {{type: database, name: {other}}}}}]"
    )
    # Its own ACL is what counts. Of another database only declared grantees are compared.
    assert db.acl(other, "database") == {"=Tc/postgres", "postgres=CTc/postgres", "r=c/postgres", "x=C/postgres"}
    assert [item["role"] for item in result.held(reason="shared_object")] == ["x"]
    # The connected database is not managed by that.
    assert "x=C/postgres" in (db.acl(db.name, "database") or ())
    db.converge("roles: [{name: r}]\ngrants: [{role: r, privileges: [CONNECT], object: {type: database}}]")
    assert "x=C/postgres" not in (db.acl(db.name, "database") or ())


def test_OBJ_05_a_missing_database(db: Database) -> None:
    db.fails(
        "roles: [{name: r}]\ngrants: [{role: r, privileges: [CONNECT], object: {type: database, name: nowhere}}]",
        "object_missing",
        "nowhere",
    )


# Big and strange catalogs


def profiles(schemas: int) -> str:
    names = ", ".join(f"{{name: s{number}, profiles: [ro, rw, ad]}}" for number in range(schemas))
    return f"""
profiles:
  ro: {{grants: [{{privileges: [SELECT], object: {{type: table, name: "*"}}}}]}}
  rw: {{grants: [{{privileges: [SELECT, INSERT], object: {{type: table, name: "*"}}}}]}}
  ad: {{grants: [{{privileges: [ALL], object: {{type: table, name: "*"}}}}, {{privileges: [USAGE], object: {{type: schema}}}}]}}
schemas: [{names}]
"""


def fill(db: Database, schemas: int, tables: int, first: int = 0) -> None:
    db.sql(
        f"""DO $$ BEGIN FOR i IN {first}..{first + schemas - 1} LOOP
        EXECUTE format('CREATE SCHEMA IF NOT EXISTS s%s', i);
        FOR j IN 1..{tables} LOOP EXECUTE format('CREATE TABLE IF NOT EXISTS s%s.t%s (a int)', i, j); END LOOP;
        END LOOP; END $$"""
    )


def test_CAT_01_the_number_of_queries_does_not_grow(db: Database) -> None:
    counts = []
    for size in (10, 20):
        fill(db, size, size)
        assert not db.reconcile(profiles(size)).failed
        with db.statements() as sent:
            result = db.reconcile(profiles(size))
        assert result.sql == []
        counts.append(len(sent))
        # Neither the turn nor a setting is a question.
        queries = [
            text
            for text in sent
            if text.lstrip().upper().startswith(("SELECT", "WITH"))
            and "advisory" not in text
            and not text.lstrip().startswith("SELECT set_config")
        ]
        assert len(queries) <= 12, queries
    assert counts[0] == counts[1]


def test_CAT_01_many_roles_and_wildcards(db: Database) -> None:
    fill(db, 1, 300)
    roles = ", ".join(f"{{name: r{number}}}" for number in range(40))
    grants = "\n".join(
        f"  - {{role: r{number}, privileges: [SELECT], object: {{type: table, schema: s0, name: '*'}}}}"
        for number in range(40)
    )
    manifest = f"roles: [{roles}]\nschemas: [{{name: s0}}]\ngrants:\n{grants}"
    result = db.reconcile(manifest)
    assert not result.failed, result
    # Grouped: one statement for all objects and grantees that are alike, or a few.
    assert len([statement for statement in result.sql if statement.startswith("GRANT")]) <= 3
    again = db.reconcile(manifest)
    assert again.sql == []
    assert sum(again.timings.values()) < 5


def test_CAT_02_thousands_of_objects(db: Database) -> None:
    fill(db, 1, 2000)
    manifest = (
        "roles: [{name: r}]\nschemas: [{name: s0}]\n" + ALL_TABLES.replace("schema: s,", "schema: s0,") % "SELECT"
    )
    result = db.reconcile(manifest)
    assert not result.failed, result
    assert len(result.sql) <= 6
    assert result.summary["grants"]["granted"] == 2000
    assert db.value("SELECT count(*) FROM pg_class WHERE relacl::text LIKE '%r=r/postgres%' AND relkind = 'r'") == 2000
    assert db.reconcile(manifest).sql == []


def test_CAT_03_a_dangling_grantee(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE ROLE ghost; CREATE SCHEMA s; CREATE TABLE s.t (a int); GRANT SELECT ON s.t TO ghost, r"
    )
    oid = db.value("SELECT 'ghost'::regrole::oid")
    db.sql(f"DELETE FROM pg_shdepend WHERE refobjid = {oid}; DROP ROLE ghost")
    before = db.acl("s.t")
    assert f"{oid}=r/postgres" in (before or ())
    result = db.silent(R + ALL_TABLES % "SELECT")
    assert db.acl("s.t") == before
    (item,) = result.held(reason="dangling_grantee")
    assert str(oid) in str(item)


HOSTILE = [
    "bytea_output = 'escape'",
    "IntervalStyle = 'sql_standard'",
    "DateStyle = 'German'",
    "TimeZone = 'Asia/Kathmandu'",
    "client_encoding = 'LATIN1'",
    "standard_conforming_strings = off",
    "default_transaction_read_only = on",
    "default_transaction_isolation = 'serializable'",
    "role = other",
    "quote_all_identifiers = on",
    "search_path = hostile, public",
    "client_min_messages = 'debug1'",
    "client_min_messages = 'error'",
    "statement_timeout = '1s'",
    "lock_timeout = '100ms'",
    "idle_in_transaction_session_timeout = '1s'",
    "row_security = off",
    "array_nulls = off",
    "extra_float_digits = 0",
    pytest.param("transaction_timeout = '1s'", marks=pytest.mark.versions(min=17)),
]


@pytest.mark.parametrize("setting", HOSTILE)
def test_CAT_05_settings_of_the_executor(db: Database, setting: str) -> None:
    db.sql(
        "CREATE ROLE other; CREATE ROLE ex SUPERUSER LOGIN; CREATE SCHEMA hostile; CREATE SCHEMA s; "
        "CREATE TYPE s.ty AS (a int)"
    )
    # Objects that would answer in place of the catalog's.
    db.sql(
        "CREATE VIEW hostile.pg_roles AS SELECT 1 AS oid; CREATE VIEW hostile.pg_class AS SELECT 1 AS oid",
        "CREATE FUNCTION hostile.aclexplode(aclitem[]) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION hostile.lower(text) RETURNS text LANGUAGE sql AS 'SELECT $1 || $1'",
        'CREATE TABLE s."T\u00e9" (a int); '
        "CREATE FUNCTION s.f(s.ty, timestamptz) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        f"ALTER ROLE ex SET {setting}",
    )
    name = "f(s.ty, timestamp with time zone)"
    db.converge(
        {
            "roles": [
                {
                    "name": "r",
                    "comment": "back\\slash 'quote' \u00e9 \u20ac",
                    "valid_until": "2030-05-06T07:08:09.123456Z",
                },
                {"name": "r2"},
            ],
            "memberships": [{"role": "r", "members": [{"name": "r2"}]}],
            "schemas": [{"name": "s"}],
            "grants": [
                {"role": "r", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "*"}},
                {"role": "r2", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "T\u00e9"}},
                {"role": "r", "privileges": ["EXECUTE"], "object": {"type": "function", "schema": "s", "name": name}},
            ],
            "default_privileges": [
                {"owner": "r2", "schema": "s", "grant": [{"role": "r", "privileges": ["SELECT"], "on_type": "table"}]}
            ],
        },
        login_user="ex",
    )
    assert db.value("SELECT shobj_description('r'::regrole, 'pg_authid')") == "back\\slash 'quote' \u00e9 \u20ac"
    assert db.acl('s."T\u00e9"') == {f"postgres={db.full}/postgres", "r=r/postgres", "r2=r/postgres"}


PINNED = [
    "search_path", "role", "DateStyle", "IntervalStyle", "TimeZone", "standard_conforming_strings", "quote_all_identifiers",
    "client_encoding", "bytea_output", "client_min_messages", "lock_timeout", "statement_timeout",
    "idle_in_transaction_session_timeout",
]  # fmt: skip


@pytest.mark.parametrize("check", [True, False])
def test_CAT_05_settings_are_pinned_before_anything_is_read(db: Database, check: bool) -> None:
    """Timeouts too short for a run would be a test of luck, so this looks at what is sent."""
    with db.statements() as sent:
        db.reconcile("roles: [{name: r}]", check=check)
    begin = next(number for number, text in enumerate(sent) if text.upper().startswith("BEGIN"))
    modes = "REPEATABLE READ READ ONLY" if check else "READ COMMITTED READ WRITE"
    assert modes in sent[begin].upper()
    read = next(
        number
        for number, text in enumerate(sent)
        if number > begin and "SELECT" in text.upper() and "SET LOCAL" not in text
    )
    pinned = {text.split()[2].lower() for text in sent[begin + 1 : read] if text.upper().startswith("SET LOCAL ")}
    assert pinned >= {name.lower() for name in [*PINNED, *(["transaction_timeout"] if db.version >= 17 else [])]}
    # Before that only the question that has to come before BEGIN, which nobody's search_path can answer in its place.
    for text in sent[:begin]:
        assert "pg_catalog." in text, text


def test_CAT_05_settings_of_the_environment(db: Database) -> None:
    environment = {"PGOPTIONS": "-c search_path=nowhere -c default_transaction_read_only=on", "PGCLIENTENCODING": "LATIN1",
                   "PGTZ": "Asia/Tokyo", "PGDATESTYLE": "German"}  # fmt: skip
    assert db.reconcile("roles: [{name: r, comment: \u20ac}]", environment=environment).changed
    assert db.value("SELECT shobj_description('r'::regrole, 'pg_authid')") == "\u20ac"
    assert not db.reconcile("roles: [{name: r, comment: \u20ac}]", environment=environment).changed


def test_CAT_05_a_database_that_is_not_utf8(db: Database) -> None:
    name = f"{db.name}_ascii"
    db.sql(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    result = db.reconcile("roles: [{name: r, comment: caf\u00e9}]", login_db=name)
    assert not result.failed, result
    assert db.reconcile("roles: [{name: r, comment: caf\u00e9}]", login_db=name).sql == []


# Sessions


def test_CON_03_nothing_outlives_the_transaction(db: Database) -> None:
    with db.statements() as sent:
        db.converge(R + "grants: [{role: r, privileges: [USAGE], object: {type: schema, name: s}}]")
    for statement in sent:
        upper = statement.upper().strip()
        assert not upper.startswith(("SET ROLE", "SET SESSION", "RESET", "PREPARE", "LISTEN")), statement
        assert not (upper.startswith("SET ") and not upper.startswith(("SET LOCAL", "SET TRANSACTION"))), statement
        assert "PG_ADVISORY_LOCK(" not in upper, statement
    assert db.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


def test_CON_03_statements_are_not_prepared(db: Database) -> None:
    db.sql(f"ALTER DATABASE {db.name} SET log_statement = 'all'")
    start = len(db.server.log)
    db.reconcile("roles: [{name: r}]")
    log = db.server.log[start:]
    assert "_pg3_" not in log, "psycopg's own prepared statements would not survive a transaction pooler"


def test_CON_08_one_connection_is_enough(db: Database) -> None:
    db.sql(f"CREATE ROLE ex LOGIN CREATEROLE CONNECTION LIMIT 1; ALTER DATABASE {db.name} OWNER TO ex")
    for number in range(20):
        result = db.reconcile(
            f"roles: [{{name: r{number % 3}}}]" if number % 4 else "roles: [{name: none}]", login_user="ex"
        )
        assert result.failed is (number % 4 == 0), result
        for _attempt in range(100):
            if not db.query("SELECT FROM pg_stat_activity WHERE usename = 'ex'"):
                break
            time.sleep(0.01)
        assert db.query("SELECT pid FROM pg_stat_activity WHERE usename = 'ex'") == []


def test_CON_09_many_grants_on_one_row(db: Database) -> None:
    fill(db, 1, 50)
    roles = [f"r{number}" for number in range(30)]
    manifest = {
        "roles": [{"name": role} for role in roles],
        "schemas": [{"name": "s0"}],
        "grants": [
            {"role": role, "privileges": [privilege], "object": target}
            for role in roles
            for privilege, target in (
                ("CONNECT", {"type": "database"}),
                ("USAGE", {"type": "schema", "name": "s0"}),
                ("SELECT", {"type": "table", "schema": "s0", "name": "*"}),
            )
        ],
    }
    result = db.converge(manifest)
    assert len([statement for statement in result.sql if statement.startswith("GRANT")]) <= 6
    assert result.summary["grants"]["granted"] == 30 * (1 + 1 + 50)
