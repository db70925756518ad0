# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases IDM: runs that never settle, or that change more than what is new."""

from __future__ import annotations

import pytest
from harness import Database

R = "roles: [{name: r}]\nschemas: [{name: s}]\n"


def test_IDM_01_all_never_settles(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE ROLE o; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE SEQUENCE s.q")
    result = db.converge(
        """
        roles: [{name: r}, {name: o}]
        schemas: [{name: s}]
        grants:
          - {role: r, privileges: [ALL], object: {type: table, schema: s, name: t}}
          - {role: r, privileges: [ALL], object: {type: sequence, schema: s, name: q}}
          - {role: r, privileges: [all], object: {type: schema, name: s}}
          - {role: r, privileges: [ALL], object: {type: database}}
        default_privileges:
          - {owner: o, schema: s, grant: [{role: r, privileges: [ALL], on_type: table}]}
        """
    )
    assert result.changed
    assert f"r={db.full}/postgres" in (db.acl("s.t") or ())
    assert "r=rwU/postgres" in (db.acl("s.q") or ())
    assert "r=UC/postgres" in (db.acl("s", "schema") or ())
    assert "r=CTc/postgres" in (db.acl(db.name, "database") or ())
    assert db.defaults() == {("o", "s", "r"): {f"r={db.full}/o"}}


def test_IDM_01_all_on_functions(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    db.converge(R + "grants: [{role: r, privileges: [ALL], object: {type: function, schema: s, name: f()}}]")
    assert db.acl("s.f()", "function") == {"=X/postgres", "postgres=X/postgres", "r=X/postgres"}


def test_IDM_02_wildcard_on_an_empty_schema(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s")
    manifest = (
        R
        + """
grants:
  - {role: r, privileges: [SELECT], object: {type: table, schema: s, name: "*"}}
  - {role: r, privileges: [USAGE], object: {type: sequence, schema: s, name: "*"}}
  - {role: r, privileges: [EXECUTE], object: {type: function, schema: s, name: "*"}}
"""
    )
    db.silent(manifest)
    db.sql("CREATE TABLE s.t (a int)")
    result = db.converge(manifest)
    assert len(result.sql) == 1
    assert result.sql[0].startswith("GRANT SELECT ON ")
    assert "r=r/postgres" in (db.acl("s.t") or ())


def test_IDM_03_one_new_object_costs_one_grant(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t1 (); CREATE TABLE s.t2 (); CREATE TABLE s.t3 ()")
    manifest = R + 'grants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: "*"}}]'
    assert db.converge(manifest).summary["grants"] == {"granted": 3, "revoked": 0}
    rows = "SELECT oid, xmin, relacl::text FROM pg_class WHERE relname IN ('t1', 't2', 't3') ORDER BY oid"
    before = db.query(rows)
    db.sql("CREATE TABLE s.t4 ()")
    result = db.converge(manifest)
    assert len(result.sql) == 1
    assert "t4" in result.sql[0]
    assert "t1" not in result.sql[0]
    assert db.query(rows) == before
    assert db.acl("s.t4") == {f"postgres={db.full}/postgres", "r=r/postgres"}


def test_IDM_06_shrinking_a_list_takes_the_rest_away(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    both = R + "grants: [{role: r, privileges: [SELECT, INSERT], object: {type: table, schema: s, name: t}}]"
    one = R + "grants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}]"
    db.converge(both)
    held = db.silent(one, reconciliation_mode="additive").held(reason="mode")
    assert [(item["role"], item["privileges"]) for item in held] == [("r", ["INSERT"])]
    result = db.converge(one)
    assert len(result.sql) == 1
    assert result.sql[0].startswith("REVOKE INSERT ON ")
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "r=r/postgres"}


@pytest.mark.parametrize("kind", ["database", "schema", "table"])
def test_IDM_07_an_owner_holds_everything_already(db: Database, kind: str) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    target, where = {
        "database": ("{type: database}", (db.name, "database")),
        "schema": ("{type: schema, name: s}", ("s", "schema")),
        "table": ("{type: table, schema: s, name: t}", ("s.t", "table")),
    }[kind]
    db.sql(f"ALTER {kind} {where[0]} OWNER TO r")
    privilege = {"database": "CONNECT", "schema": "USAGE", "table": "SELECT"}[kind]
    db.silent(R + f"grants: [{{role: r, privileges: [{privilege}], object: {target}}}]")
    assert db.acl(*where) is None


def test_IDM_09_spelling_variants_of_one_privilege(db: Database) -> None:
    db.sql("CREATE ROLE r")
    grant = "{role: r, privileges: [temp, TEMPORARY, connect, CONNECT], object: {type: database}}"
    result = db.converge(f"roles: [{{name: r}}]\ngrants: [{grant}, {grant}]")
    assert len(result.sql) == 1
    assert result.summary["grants"]["granted"] == 2
    assert "r=Tc/postgres" in (db.acl(db.name, "database") or ())


def test_IDM_10_the_order_of_entries_means_nothing(db: Database) -> None:
    db.sql(
        "CREATE ROLE a; CREATE ROLE b; CREATE ROLE o; CREATE SCHEMA s; CREATE TABLE s.t (x int)",
        "GRANT SELECT ON s.t TO a, b; REVOKE SELECT ON s.t FROM a; GRANT SELECT ON s.t TO a",
        "ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO a, b",
        "ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s REVOKE SELECT ON TABLES FROM a",
        "ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO a",
    )
    db.silent(
        """
        roles: [{name: a}, {name: b}, {name: o}]
        schemas: [{name: s}]
        grants:
          - {role: a, privileges: [SELECT], object: {type: table, schema: s, name: t}}
          - {role: b, privileges: [SELECT], object: {type: table, schema: s, name: t}}
        default_privileges:
          - owner: o
            schema: s
            grant:
              - {role: a, privileges: [SELECT], on_type: table}
              - {role: b, privileges: [SELECT], on_type: table}
        """
    )


def test_IDM_12_entries_of_unmanaged_grantees_do_not_disturb(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE ROLE stranger; CREATE SCHEMA s",
        "CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "GRANT EXECUTE ON FUNCTION s.f() TO PUBLIC, stranger, r",
    )
    before = db.acl("s.f()", "function")
    result = db.silent(
        R + 'grants: [{role: r, privileges: [EXECUTE], object: {type: function, schema: s, name: "*"}}]',
        undeclared_grantees="keep",
    )
    assert db.acl("s.f()", "function") == before
    assert [item["role"] for item in result.withheld] == ["stranger"]
    assert result.withheld[0]["reason"] == "undeclared_grantee"


def test_IDM_13_names_are_qualified_whatever_the_search_path(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE ROLE ex SUPERUSER LOGIN; ALTER ROLE ex SET search_path = other, public",
        "CREATE SCHEMA other; CREATE TABLE other.t (a int); CREATE TABLE public.t (a int)",
    )
    result = db.converge(
        "roles: [{name: r}]\ngrants: [{role: r, privileges: [SELECT], object: {type: table, schema: public, name: t}}]",
        login_user="ex",
    )
    assert "r=r/postgres" in (db.acl("public.t") or ())
    assert db.acl("other.t") is None
    assert len(result.matching(r'"?public"?\."?t"?')) == len(result.sql)


IDM_14 = {
    "table": ("CREATE TABLE s.x (a int)", "table", "x", "SELECT"),
    "partitioned table": ("CREATE TABLE s.x (a int) PARTITION BY RANGE (a)", "table", "x", "SELECT"),
    "foreign table": (
        "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER v FOREIGN DATA WRAPPER w; "
        "CREATE FOREIGN TABLE s.x (a int) SERVER v",
        "table",
        "x",
        "SELECT",
    ),
    "view": ("CREATE VIEW s.x AS SELECT 1 AS a", "view", "x", "SELECT"),
    "materialized view": ("CREATE MATERIALIZED VIEW s.x AS SELECT 1 AS a", "materialized_view", "x", "SELECT"),
    "sequence": ("CREATE SEQUENCE s.x", "sequence", "x", "USAGE"),
    "identity sequence": ("CREATE TABLE s.x (a int GENERATED ALWAYS AS IDENTITY)", "sequence", "x_a_seq", "USAGE"),
    "function": ("CREATE FUNCTION s.x() RETURNS int LANGUAGE sql AS 'SELECT 1'", "function", "x()", "EXECUTE"),
    "procedure": ("CREATE PROCEDURE s.x() LANGUAGE sql AS 'SELECT 1'", "function", "x()", "EXECUTE"),
    "aggregate": ("CREATE AGGREGATE s.x(int) (SFUNC = int4pl, STYPE = int)", "function", "x(integer)", "EXECUTE"),
}


@pytest.mark.parametrize("kind", IDM_14)
@pytest.mark.parametrize("named", [True, False], ids=["named", "wildcard"])
def test_IDM_14_a_change_is_reported_for_every_kind(db: Database, kind: str, named: bool) -> None:
    setup, manifest_type, name, privilege = IDM_14[kind]
    db.sql("CREATE ROLE r; CREATE SCHEMA s", setup)
    target = f"{{type: {manifest_type}, schema: s, name: '{name if named else '*'}'}}"
    result = db.converge(R + f"grants: [{{role: r, privileges: [{privilege}], object: {target}}}]")
    assert result.changed
    assert result.summary["grants"] == {"granted": 1, "revoked": 0}
    entries = db.acl(f"s.{name}", "function" if manifest_type == "function" else "table") or set()
    letter = {"SELECT": "r", "USAGE": "U", "EXECUTE": "X"}[privilege]
    assert f"r={letter}/postgres" in entries


@pytest.mark.parametrize("target", ["{type: schema, name: s}", "{type: database}"])
def test_IDM_14_a_change_is_reported_outside_schemas(db: Database, target: str) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s")
    assert db.converge(R + f"grants: [{{role: r, privileges: [CREATE], object: {target}}}]").changed


@pytest.mark.parametrize("mode", ["authoritative", "additive"])
def test_IDM_16_changing_one_kind_leaves_the_others(db: Database, mode: str) -> None:
    db.sql(
        "CREATE ROLE r; CREATE ROLE o; CREATE SCHEMA s",
        "ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO r",
        "ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT USAGE ON SEQUENCES TO r",
        "ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT USAGE ON TYPES TO r",
    )
    before = db.defaults()
    result = db.converge(
        """
        roles: [{name: r}, {name: o}]
        schemas: [{name: s}]
        default_privileges: [{owner: o, schema: s, grant: [{role: r, privileges: [SELECT], on_type: table}]}]
        """,
        reconciliation_mode=mode,
    )
    if mode == "additive":
        assert result.sql == []
        assert db.defaults() == before
        assert len(result.held(reason="mode", role="r")) == 2
        return
    assert len(result.sql) == 2
    assert result.matching("^ALTER DEFAULT PRIVILEGES .* REVOKE USAGE ON SEQUENCES FROM")
    assert result.matching("^ALTER DEFAULT PRIVILEGES .* REVOKE USAGE ON TYPES FROM")
    assert db.defaults() == {key: value for key, value in before.items() if key[2] == "r"}
