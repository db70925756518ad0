# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Column privileges: declared and not, beside those on the whole table, and carried through its REVOKE."""

from __future__ import annotations

import re

import pytest
from harness import UNCONNECTED, Database

R = "roles: [{name: r}, {name: x}]\nschemas: [{name: s}]\n"


def setup(db: Database, columns: str = "a int, b int, c int") -> None:
    db.sql(f"CREATE ROLE r; CREATE ROLE x; CREATE ROLE o; CREATE SCHEMA s; CREATE TABLE s.t ({columns})")


def rule(
    privileges: str, columns: str | None, role: str = "r", more: str = "", *, name: str = "t", kind: str = "table"
) -> str:
    where = f", columns: [{columns}]" if columns else ""
    target = f"{{type: {kind}, schema: s, name: '{name}'}}"
    return f"  - {{role: {role}, privileges: [{privileges}], object: {target}{where}{more}}}\n"


def grants(*rules: str) -> str:
    return "grants:\n" + "".join(rules)


def cols(db: Database, table: str = "s.t") -> dict[str, set[str]]:
    """Columns with an ACL that holds anything."""
    rows = db.query(
        "SELECT attname, attacl::text[] FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND attacl <> '{}'",
        table,
    )
    return {name: set(acl) for name, acl in rows}


def test_declared_columns_are_granted_in_one_statement(db: Database) -> None:
    setup(db)
    result = db.converge(R + grants(rule("SELECT, UPDATE", "a, b")))
    assert cols(db) == {"a": {"r=rw/postgres"}, "b": {"r=rw/postgres"}}
    assert db.acl("s.t") is None
    assert len(result.sql) == 1
    assert result.summary["grants"] == {"granted": 4, "revoked": 0}


def test_every_column_privilege(db: Database) -> None:
    setup(db)
    db.converge(R + grants(rule("ALL", "a")))
    assert cols(db) == {"a": {"r=arwx/postgres"}}
    db.converge(R + grants(rule("references", "a")))
    assert cols(db) == {"a": {"r=x/postgres"}}


@UNCONNECTED
@pytest.mark.parametrize("privilege", ["DELETE", "TRUNCATE", "TRIGGER", "MAINTAIN", "USAGE"])
def test_privileges_that_columns_do_not_have(db: Database, privilege: str) -> None:
    db.rejects(R + grants(rule(privilege, "a")), privilege, "grants[0].privileges[0]")


@UNCONNECTED
@pytest.mark.parametrize("kind", ["sequence", "function", "schema", "database", "type"])
def test_kinds_that_have_no_columns(db: Database, kind: str) -> None:
    words = {"sequence": "SELECT", "function": "EXECUTE", "schema": "USAGE", "database": "CONNECT", "type": "USAGE"}
    text = rule(words[kind], "a", kind=kind, name="t()" if kind == "function" else "t")
    if kind in ("schema", "database"):
        text = text.replace("schema: s, ", "")
    db.rejects(R + grants(text), "columns", "grants[0]")


def test_undeclared_columns_go_by_name(db: Database) -> None:
    setup(db)
    db.sql("GRANT SELECT (a, b), UPDATE (c) ON s.t TO r; GRANT INSERT (a) ON s.t TO x WITH GRANT OPTION")
    result = db.converge(R + grants(rule("SELECT", "a")))
    assert cols(db) == {"a": {"r=r/postgres"}}
    assert result.summary["grants"] == {"granted": 0, "revoked": 3}
    assert not result.matching("GRANT OPTION")


@pytest.mark.parametrize("option", [None, "keep"])
def test_undeclared_grantees(db: Database, option: str | None) -> None:
    setup(db)
    db.sql("GRANT SELECT (a) ON s.t TO o")
    result = db.converge(R, undeclared_grantees=option)
    assert cols(db) == ({"a": {"o=r/postgres"}} if option else {})
    assert bool(result.held(reason="undeclared_grantee", role="o")) is bool(option)


def test_the_missing_column_only(db: Database) -> None:
    setup(db)
    db.sql("GRANT SELECT (a) ON s.t TO r")
    result = db.converge(R + grants(rule("SELECT", "a, b")))
    assert len(result.sql) == 1
    assert re.match(r'GRANT SELECT \("?b"?\) ON ', result.sql[0])
    assert result.summary["grants"]["granted"] == 1


def test_columns_beside_the_table(db: Database) -> None:
    """Both are entries of their own, and both are there when both are declared."""
    setup(db)
    manifest = R + grants(rule("SELECT", None), rule("SELECT, UPDATE", "a"))
    db.converge(manifest)
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "r=r/postgres"}
    assert cols(db) == {"a": {"r=rw/postgres"}}


def test_a_table_level_revoke_carries_declared_columns(db: Database) -> None:
    setup(db)
    db.sql("GRANT SELECT, UPDATE ON s.t TO r; GRANT SELECT (a), SELECT (b), UPDATE (c) ON s.t TO r WITH GRANT OPTION")
    result = db.converge(R + grants(rule("SELECT", "a"), rule("SELECT", "b", more=", with_grant_option: true")))
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}
    assert cols(db) == {"a": {"r=r/postgres"}, "b": {"r=r*/postgres"}}
    assert result.matching(r"GRANT SELECT \(")


def test_a_table_level_revoke_and_a_new_column(db: Database) -> None:
    """Its grant has to come after the revoke, or the revoke would take it along."""
    setup(db)
    db.sql("GRANT SELECT ON s.t TO r")
    db.converge(R + grants(rule("SELECT", "a, c")))
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}
    assert cols(db) == {"a": {"r=r/postgres"}, "c": {"r=r/postgres"}}


def test_a_table_level_revoke_and_public(db: Database) -> None:
    """A rule that takes the table takes its columns; what no rule names of PUBLIC's stays."""
    setup(db)
    db.sql("GRANT SELECT ON s.t TO PUBLIC; GRANT SELECT (a), UPDATE (b) ON s.t TO PUBLIC")
    db.converge(R + grants(rule("SELECT", None, "PUBLIC", ", ensure: absent")))
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}
    assert cols(db) == {"b": {"=w/postgres"}}


def test_a_table_level_absent_and_columns(db: Database) -> None:
    """It takes the columns that no other rule gives."""
    setup(db)
    db.sql("GRANT SELECT ON s.t TO r; GRANT SELECT (a, b), UPDATE (c) ON s.t TO r; GRANT SELECT (a) ON s.t TO x")
    absent = rule("SELECT", None, more=", ensure: absent")
    db.converge(R + grants(absent, rule("SELECT", "a"), rule("UPDATE", "c"), rule("SELECT", "a", "x")))
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}
    assert cols(db) == {"a": {"r=r/postgres", "x=r/postgres"}, "c": {"r=w/postgres"}}
    # Alone it manages nothing else.
    result = db.converge("roles: [{name: r}]\n" + grants(absent))
    assert cols(db) == {"a": {"x=r/postgres"}, "c": {"r=w/postgres"}}
    assert not result.summary["managed"]


def test_absent_on_a_column(db: Database) -> None:
    setup(db)
    db.sql("GRANT SELECT (a, b) ON s.t TO r; GRANT SELECT (a) ON s.t TO x")
    db.converge("roles: [{name: r}]\n" + grants(rule("SELECT", "a", more=", ensure: absent")))
    assert cols(db) == {"a": {"x=r/postgres"}, "b": {"r=r/postgres"}}


def test_public_on_a_column(db: Database) -> None:
    setup(db)
    manifest = grants(rule("SELECT", "a, b", "PUBLIC"))
    result = db.converge(manifest)
    assert cols(db) == {"a": {"=r/postgres"}, "b": {"=r/postgres"}}
    assert not result.summary["managed"]
    db.converge(manifest.replace("b]", "b], ensure: absent"))
    assert cols(db) == {}


def test_grant_options_on_columns(db: Database) -> None:
    setup(db)
    db.sql("GRANT SELECT (a, b) ON s.t TO r WITH GRANT OPTION; GRANT UPDATE (c) ON s.t TO r")
    result = db.converge(R + grants(rule("SELECT", "a, b"), rule("UPDATE", "c", more=", with_grant_option: true")))
    assert cols(db) == {"a": {"r=r/postgres"}, "b": {"r=r/postgres"}, "c": {"r=w*/postgres"}}
    assert len(result.matching("REVOKE GRANT OPTION FOR SELECT")) == len(result.matching("REVOKE")) == 1
    assert result.summary["grants"] == {"granted": 1, "revoked": 2}


def test_a_tables_option_that_goes_takes_no_columns_option_along(db: Database) -> None:
    """REVOKE GRANT OPTION on the table reaches its columns too: a declared option there is given again, or after it."""
    setup(db)
    db.sql("GRANT SELECT ON s.t TO r WITH GRANT OPTION; GRANT SELECT (a) ON s.t TO r WITH GRANT OPTION")
    db.sql("GRANT USAGE ON SCHEMA s TO r; SET ROLE r; GRANT SELECT (a) ON s.t TO x; RESET ROLE")
    db.converge(
        R
        + grants(
            rule("SELECT", None),
            rule("SELECT", "a, b", more=", with_grant_option: true"),
            rule("SELECT", "a", "x"),
        )
    )
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "r=r/postgres"}
    found = cols(db)
    assert found["b"] == {"r=r*/postgres"}
    assert found["a"] in ({"r=r*/postgres", "x=r/postgres"}, {"r=r*/postgres", "x=r/r"})


def test_a_wildcard_with_columns(db: Database) -> None:
    """It means that column of every such table; of one that lacks the column the run speaks, before any change."""
    setup(db)
    db.sql("CREATE TABLE s.u (a int, z int); CREATE VIEW s.v AS SELECT 1 AS a")
    result = db.converge(R + grants(rule("SELECT", "a", name="*")))
    assert cols(db) == cols(db, "s.u") == {"a": {"r=r/postgres"}}
    assert cols(db, "s.v") == {}
    assert len(result.sql) == 1
    db.silent(R + grants(rule("SELECT", "a", name="*"), rule("SELECT", "a")))


def test_a_named_rule_beats_a_wildcard(db: Database) -> None:
    setup(db)
    db.sql("CREATE TABLE s.u (a int)")
    db.converge(R + grants(rule("SELECT", "a", name="*"), rule("SELECT", "a", more=", ensure: absent")))
    assert cols(db) == {}
    assert cols(db, "s.u") == {"a": {"r=r/postgres"}}


@pytest.mark.parametrize("name", ["nope", "A", "........pg.dropped.2........"])
def test_columns_that_do_not_exist(db: Database, name: str) -> None:
    setup(db)
    db.sql("ALTER TABLE s.t DROP COLUMN b")
    db.fails(R + grants(rule("SELECT", f"a, '{name}'")), ("object_missing", "manifest_invalid"), name)
    assert cols(db) == {}


def test_a_system_column(db: Database) -> None:
    """PostgreSQL lets them carry privileges: given like any other, and seen."""
    setup(db)
    acl = "SELECT attacl::text FROM pg_attribute WHERE attrelid = 's.t'::regclass AND attname = 'ctid'"
    db.sql("GRANT SELECT (ctid) ON s.t TO x")
    db.converge(R + grants(rule("SELECT", "a, ctid")))
    assert db.value(acl) == "{r=r/postgres}"
    db.converge(R)
    assert db.value(acl) in (None, "{}")


def test_a_dropped_column_with_an_acl(db: Database) -> None:
    setup(db)
    db.sql("GRANT SELECT (b) ON s.t TO r; ALTER TABLE s.t DROP COLUMN b")
    db.silent(R)


def test_odd_column_names(db: Database) -> None:
    setup(db, '"A b" int, "a""b" int, "select" int, "A B" int, "%s" int')
    db.converge(
        {
            "roles": [{"name": "r"}],
            "grants": [
                {
                    "role": "r",
                    "privileges": ["SELECT"],
                    "object": {"type": "table", "schema": "s", "name": "t"},
                    "columns": ["A b", 'a"b', "select", "%s"],
                }
            ],
        }
    )
    assert set(cols(db)) == {"A b", 'a"b', "select", "%s"}


@pytest.mark.parametrize("kind", ["view", "materialized_view", "foreign", "partitioned"])
def test_columns_of_every_relation(db: Database, kind: str) -> None:
    db.sql("CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA s")
    db.sql(
        {
            "view": "CREATE VIEW s.t AS SELECT 1 AS a, 2 AS b",
            "materialized_view": "CREATE MATERIALIZED VIEW s.t AS SELECT 1 AS a, 2 AS b",
            "foreign": "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER v FOREIGN DATA WRAPPER w; "
            "CREATE FOREIGN TABLE s.t (a int, b int) SERVER v",
            "partitioned": "CREATE TABLE s.t (a int, b int) PARTITION BY LIST (a); "
            "CREATE TABLE s.t1 PARTITION OF s.t DEFAULT",
        }[kind]
    )
    db.sql("GRANT UPDATE (b) ON s.t TO x")
    db.converge(R + grants(rule("SELECT", "a", kind=kind if "view" in kind else "table")))
    assert cols(db) == {"a": {"r=r/postgres"}}
    db.converge(R)
    assert cols(db) == {}


def test_the_owner_holds_its_columns_through_the_table(db: Database) -> None:
    setup(db)
    db.sql("ALTER TABLE s.t OWNER TO o")
    manifest = R.replace("{name: x}", "{name: x}, {name: o}") + grants(rule("SELECT", "a", "o"))
    db.silent(manifest)
    assert db.acl("s.t") is None
    # One that lost it gets the column.
    db.sql("REVOKE SELECT ON s.t FROM o")
    db.converge(manifest)
    assert cols(db) == {"a": {"o=r/o"}}


def test_an_owners_column_entries_are_its_own(db: Database) -> None:
    setup(db)
    db.sql("ALTER TABLE s.t OWNER TO o; GRANT SELECT (a) ON s.t TO o")
    assert cols(db) == {"a": {"o=r/o"}}
    db.silent(R + "scope: {schemas: [s]}\n")


@pytest.mark.parametrize("privileges", [("SELECT",), ("SELECT", "INSERT", "UPDATE")])
def test_the_override_counts_columns(db: Database, privileges: tuple[str, ...]) -> None:
    setup(db)
    words = ", ".join(f"{word} (a, b)" for word in privileges)
    db.sql(f"GRANT {words} ON s.t TO x WITH GRANT OPTION; GRANT REFERENCES (c) ON s.t TO x")
    manifest = R.replace("{name: x}", "{name: x, privilege_reconciliation: additive}")
    before = cols(db)
    result = db.silent(manifest)
    assert cols(db) == before
    assert {item["kind"] for item in result.suppressed_revokes} == {"column"}
    assert result.suppressed_revoke_count == 2 * len(privileges) + 1
    assert sorted(item["object"]["columns"] for item in result.suppressed_revokes) == [["a", "b"], ["c"]]
    db.sql(*(item["sql"] for item in result.suppressed_revokes))
    assert cols(db) == {}
    db.silent(R)


def test_the_override_and_a_table_level_absent(db: Database) -> None:
    """The table's privilege and that of its columns goes because a rule says so, the rest stays."""
    setup(db)
    db.sql("GRANT SELECT ON s.t TO x; GRANT SELECT (a), UPDATE (b) ON s.t TO x")
    manifest = R.replace("{name: x}", "{name: x, privilege_reconciliation: additive}")
    result = db.converge(manifest + grants(rule("SELECT", None, "x", ", ensure: absent")))
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}
    assert cols(db) == {"b": {"x=w/postgres"}}
    assert result.suppressed_revoke_count == 1


def test_the_override_keeps_a_columns_grant_option(db: Database) -> None:
    setup(db)
    db.sql("GRANT SELECT (a, b) ON s.t TO x WITH GRANT OPTION")
    manifest = R.replace("{name: x}", "{name: x, privilege_reconciliation: additive}")
    result = db.silent(manifest + grants(rule("SELECT", "a, b", "x")))
    assert {item["kind"] for item in result.suppressed_revokes} == {"grant_option"}
    assert result.suppressed_revoke_count == 2
    db.sql(*(item["sql"] for item in result.suppressed_revokes))
    assert cols(db) == {"a": {"x=r/postgres"}, "b": {"x=r/postgres"}}


def test_kept_undeclared_columns_survive_a_table_level_revoke(db: Database) -> None:
    setup(db)
    db.sql("GRANT SELECT ON s.t TO o; GRANT SELECT (a) ON s.t TO o")
    manifest = "roles: [{name: r}, {name: o}]\nschemas: [{name: s}]\n"
    # Here both go: o is declared, and nothing of it is.
    db.converge(manifest)
    assert cols(db) == {}
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}


def test_a_wide_table_and_many_tables(db: Database) -> None:
    """Columns that are alike are one statement, whatever the number of tables."""
    db.sql("CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA s")
    wide = ", ".join(f"c{n} int" for n in range(40))
    db.sql(*(f"CREATE TABLE s.t{n} ({wide})" for n in range(30)))
    names = ", ".join(f"c{n}" for n in range(0, 40, 2))
    manifest = R + grants(rule("SELECT, INSERT", names, name="*"))
    result = db.converge(manifest)
    assert result.summary["grants"]["granted"] == 2 * 20 * 30
    assert len(result.sql) <= 3
    result = db.converge(R)
    assert result.summary["grants"]["revoked"] == 2 * 20 * 30
    assert len(result.sql) <= 3


def test_system_catalogs_columns(db: Database) -> None:
    """Only what a rule names: the columns of pg_subscription that PUBLIC may read stay."""
    db.sql("CREATE ROLE r")
    before = cols(db, "pg_subscription")
    assert before
    target = "{type: table, schema: pg_catalog, name: pg_authid}"
    db.converge(
        f"roles: [{{name: r}}]\ngrants: [{{role: r, privileges: [SELECT], object: {target}, columns: [rolname]}}]"
    )
    assert cols(db, "pg_authid") == {"rolname": {"r=r/postgres"}}
    assert cols(db, "pg_subscription") == before
    db.sql("REVOKE SELECT (rolname) ON pg_authid FROM r")


def test_what_stays_is_granted_before_its_owner_loses_the_schema(db: Database) -> None:
    """The table's REVOKE takes the column's entry along. Giving it again names the table, in its owner's name."""
    setup(db)
    db.sql("CREATE ROLE adm LOGIN CREATEROLE NOINHERIT; ALTER SCHEMA s OWNER TO adm; ALTER TABLE s.t OWNER TO o")
    db.sql("GRANT o TO adm WITH ADMIN OPTION", "GRANT r TO adm WITH ADMIN OPTION")
    db.sql("SET ROLE adm; GRANT USAGE ON SCHEMA s TO o; RESET ROLE")
    db.sql("SET ROLE o; GRANT UPDATE ON s.t TO r; GRANT UPDATE (a) ON s.t TO r; RESET ROLE")
    manifest = "roles: [{name: r}, {name: o}]\nschemas: [{name: s}]\n" + grants(rule("UPDATE", "a"))
    result = db.converge(manifest, login_user="adm")
    assert cols(db) == {"a": {"r=w/o"}}
    assert db.acl("s.t") == {f"o={db.full}/o"}
    last = [text for text in result.sql if 'TO "r"' in text or "SCHEMA" in text]
    assert last == ['GRANT UPDATE ("a") ON TABLE "s"."t" TO "r"', 'REVOKE USAGE ON SCHEMA "s" FROM "o"']
