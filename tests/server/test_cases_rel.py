# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases REL and SEQ: tables, views, partitions, columns, sequences."""

from __future__ import annotations

import time

import pytest
from harness import UNCONNECTED, Database

R = "roles: [{name: r}]\nschemas: [{name: s}]\n"


def grant(kind: str, name: str, privileges: str = "SELECT", role: str = "r") -> str:
    return f'{{role: {role}, privileges: [{privileges}], object: {{type: {kind}, schema: s, name: "{name}"}}}}'


def partitioned(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.pt (a int) PARTITION BY RANGE (a)",
        "CREATE TABLE s.pt1 PARTITION OF s.pt FOR VALUES FROM (1) TO (9)",
    )


def test_REL_01_a_wildcard_reaches_the_partitioned_parent(db: Database) -> None:
    partitioned(db)
    db.converge(R + f"grants: [{grant('table', '*')}]")
    assert "r=r/postgres" in (db.acl("s.pt") or ())
    assert "r=r/postgres" in (db.acl("s.pt1") or ())


@pytest.mark.parametrize("name", ["ft", "*"])
def test_REL_02_foreign_tables(db: Database, name: str) -> None:
    db.sql(
        "CREATE ROLE r; CREATE SCHEMA s; CREATE FOREIGN DATA WRAPPER w; CREATE SERVER v FOREIGN DATA WRAPPER w",
        "CREATE FOREIGN TABLE s.ft (a int) SERVER v",
    )
    assert db.converge(R + f"grants: [{grant('table', name)}]").changed
    assert "r=r/postgres" in (db.acl("s.ft") or ())


@pytest.mark.parametrize("name", ["mv", "*"])
def test_REL_03_materialized_views(db: Database, name: str) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE MATERIALIZED VIEW s.mv AS SELECT 1 AS a; CREATE TABLE s.t (a int)")
    db.converge(R + f"grants: [{grant('materialized_view', name)}]")
    assert "r=r/postgres" in (db.acl("s.mv") or ())
    assert db.acl("s.t") is None
    db.converge(R)
    assert db.acl("s.mv") == {f"postgres={db.full}/postgres"}


def test_REL_03_wildcards_never_reach_across_types(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE VIEW s.v AS SELECT 1 AS a",
        "CREATE MATERIALIZED VIEW s.m AS SELECT 1 AS a; CREATE SEQUENCE s.q",
    )
    db.converge(R + f"grants: [{grant('table', '*')}]")
    assert db.acl("s.v") is db.acl("s.m") is db.acl("s.q") is None
    db.converge(R + f"grants: [{grant('view', '*', 'INSERT')}, {grant('materialized_view', '*')}]")
    assert "r=a/postgres" in (db.acl("s.v") or ())
    assert "r=r/postgres" in (db.acl("s.m") or ())
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}


def test_REL_05_a_grant_on_the_parent_is_not_one_on_partitions(db: Database) -> None:
    partitioned(db)
    db.sql("GRANT SELECT ON s.pt1 TO r")
    db.converge(R + f"grants: [{grant('table', 'pt')}]")
    assert "r=r/postgres" in (db.acl("s.pt") or ())
    assert db.acl("s.pt1") == {f"postgres={db.full}/postgres"}


def test_REL_06_column_privileges_are_seen(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int, b int); GRANT SELECT (a), UPDATE (b) ON s.t TO r")
    result = db.converge(R)
    assert result.summary["grants"] == {"granted": 0, "revoked": 2}
    assert result.matching(r"REVOKE SELECT \(")
    assert db.acl("s.t") is None
    assert not db.column_acl("s.t", "a")
    assert not db.column_acl("s.t", "b")


def test_REL_06_in_additive_they_are_reported(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int, b int); GRANT SELECT (a), UPDATE (b) ON s.t TO r")
    held = db.silent(R, reconciliation_mode="additive").held(reason="mode", role="r")
    assert {(item["object"]["name"], *item["object"]["columns"], *item["privileges"]) for item in held} == {
        ("t", "a", "SELECT"),
        ("t", "b", "UPDATE"),
    }
    assert db.column_acl("s.t", "a") == {"r=r/postgres"}


def test_REL_06_a_table_revoke_takes_columns_along(db: Database) -> None:
    """What goes anyway may go with it; what is declared must still be there afterwards."""
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); GRANT SELECT ON s.t TO r")
    db.sql("GRANT SELECT (a) ON s.t TO r")
    db.converge(R)
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}
    assert not db.column_acl("s.t", "a")
    db.sql("GRANT SELECT ON s.t TO r; GRANT SELECT (a) ON s.t TO r")
    db.converge(R + f"grants: [{grant('table', 't')[:-1]}, columns: [a]}}]")
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}
    assert db.column_acl("s.t", "a") == {"r=r/postgres"}


def test_REL_08_a_named_object_that_does_not_exist(db: Database) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    good = [grant("table", "t", privilege) for privilege in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRIGGER")]
    db.fails(R + f"grants: [{', '.join(good)}, {grant('table', 'nope')}]", "object_missing", "s", "nope", "grants[5]")
    assert db.roles() == set()


@pytest.mark.parametrize(
    ("kind", "name", "word"),
    [
        ("table", "v", "view"),
        ("table", "q", "sequence"),
        ("view", "t", "table"),
        ("materialized_view", "v", "view"),
        ("sequence", "t", "table"),
        ("view", "m", "materialized"),
    ],
)
def test_REL_08_a_named_object_of_another_type(db: Database, kind: str, name: str, word: str) -> None:
    db.sql(
        "CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE VIEW s.v AS SELECT 1 AS a; "
        "CREATE SEQUENCE s.q",
        "CREATE MATERIALIZED VIEW s.m AS SELECT 1 AS a",
    )
    db.fails(R + f"grants: [{grant(kind, name)}]", "object_missing", name, word)


def test_REL_08_a_schema_that_does_not_exist(db: Database) -> None:
    db.fails(
        "roles: [{name: r}]\ngrants: [{role: r, privileges: [USAGE], object: {type: schema, name: nope}}]",
        "object_missing",
        "nope",
    )
    db.fails(f"roles: [{{name: r}}]\ngrants: [{grant('table', '*')}]", "object_missing", "s")


def test_REL_08_absent_on_something_that_is_gone(db: Database) -> None:
    """A named object that does not exist is an error, whatever the rule says about it."""
    db.sql("CREATE ROLE r; CREATE SCHEMA s")
    absent = grant("table", "gone").replace("}}", "}, ensure: absent}")
    db.fails(R + f"grants: [{absent}]", "object_missing", "gone")


def test_REL_10_a_table_dropped_in_between(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s", *(f"CREATE TABLE s.t{number} (a int)" for number in range(9)))
    manifest = R + f"grants: [{grant('table', '*')}]"
    other = db.connect(autocommit=False)
    other.execute("DROP TABLE s.t5")
    run = db.background(manifest)
    time.sleep(0.8)
    other.commit()
    result = run.result()
    granted = {row[0] for row in db.query("SELECT relname FROM pg_class WHERE relacl::text LIKE '%r=r/%'")}
    if result.failed:
        assert result.error_code in ("collision", "object_missing", "server_error", "lock_timeout", "not_converged")
        assert granted == set(), "a part of the plan was committed"
    else:
        assert granted == {f"t{number}" for number in range(9) if number != 5}
    db.converge(manifest)


def test_REL_11_renamed_and_replaced_objects(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.a (x int); CREATE VIEW s.v AS SELECT 1 AS a")
    db.sql("CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    rest = f"{grant('view', 'v')}, {grant('function', 'f()', 'EXECUTE')}"
    db.converge(R + f"grants: [{grant('table', 'a')}, {rest}]")
    db.sql("ALTER TABLE s.a RENAME TO b; CREATE OR REPLACE VIEW s.v AS SELECT 2 AS a")
    db.sql("CREATE OR REPLACE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 2'")
    manifest = R + f"grants: [{grant('table', 'b')}, {rest}]"
    db.silent(manifest)
    db.sql("DROP TABLE s.b; CREATE TABLE s.b (x int)")
    assert len(db.converge(manifest).sql) == 1


def test_REL_12_temporary_tables_are_nobodys_business(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a text); ALTER TABLE s.t ALTER a SET STORAGE EXTERNAL")
    other = db.connect()
    other.execute("CREATE TEMP TABLE tmp (a int); GRANT SELECT ON tmp TO r")
    result = db.silent(R + 'scope: {schemas: ["*s*", "*_*"]}')
    assert not [item for item in result.withheld if "pg_t" in str(item["object"])]
    assert not [name for name in result.summary["managed"] if "pg_" in name]


@UNCONNECTED
@pytest.mark.parametrize(
    ("privilege", "target"),
    [
        ("TRUNCATE", "{type: sequence, schema: s, name: q}"),
        ("EXECUTE", "{type: table, schema: s, name: t}"),
        ("USAGE", "{type: table, schema: s, name: t}"),
        ("CREATE", '{type: table, schema: s, name: "*"}'),
        ("SELECT", "{type: schema, name: s}"),
        ("USAGE", "{type: function, schema: s, name: f()}"),
        ("SELECT", "{type: database}"),
    ],
)
def test_SEQ_02_privileges_that_a_kind_does_not_have(db: Database, privilege: str, target: str) -> None:
    result = db.rejects(
        R + f"grants: [{{role: r, privileges: [{privilege}], object: {target}}}]", privilege, "grants[0].privileges[0]"
    )
    assert any(target.split(",")[0].strip("{}").split(": ")[1] in problem["message"] for problem in result.problems)


def test_SEQ_03_insert_does_not_bring_the_sequence(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a serial, b int GENERATED ALWAYS AS IDENTITY)")
    result = db.converge(R + f"grants: [{grant('table', '*', 'INSERT')}]")
    assert len(result.sql) == 1
    assert db.acl("s.t_a_seq") is None
    assert db.acl("s.t_b_seq") is None


def test_SEQ_identity_sequences_are_sequences(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (b int GENERATED ALWAYS AS IDENTITY)")
    db.sql("GRANT UPDATE ON SEQUENCE s.t_b_seq TO r")
    db.converge(R + f"grants: [{grant('sequence', '*', 'USAGE')}]")
    assert db.acl("s.t_b_seq") == {"postgres=rwU/postgres", "r=U/postgres"}


def test_TYP_02_an_explicit_entry_beside_the_implicit_one(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE ROLE o; CREATE SCHEMA s; CREATE TYPE s.en AS ENUM ('a'); ALTER TYPE s.en OWNER TO o")
    assert db.acl("s.en", "type") is None
    db.converge(R + f"grants: [{grant('type', 'en', 'USAGE')}]")
    assert db.acl("s.en", "type") == {"=U/o", "o=U/o", "r=U/o"}
    result = db.converge(R)
    assert len(result.sql) == 1
    assert db.acl("s.en", "type") == {"=U/o", "o=U/o"}
