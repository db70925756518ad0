# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Privileges where several rules of PostgreSQL meet: versions, owner changes, extensions, ordinary executors, hostile names."""

from __future__ import annotations

import pytest
import yaml
from harness import Database

R = "roles: [{name: r}]\nschemas: [{name: s}]\n"


def rule(privileges: str, target: str, role: str = "r", more: str = "") -> str:
    return f"  - {{role: {role}, privileges: [{privileges}], object: {target}{more}}}\n"


def grants(*rules: str) -> str:
    return "grants:\n" + "".join(rules)


TABLE = "{type: table, schema: s, name: t}"


# Versions


@pytest.mark.versions(min=17)
def test_acls_as_pg_upgrade_leaves_them(db: Database) -> None:
    """Owners may lack m, which is no drift; ALL gives it to others, and to an owner that declares it."""
    db.sql("CREATE ROLE r; CREATE ROLE o; CREATE SCHEMA s; CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO o")
    db.sql("UPDATE pg_class SET relacl = '{o=arwdDxt/o,r=arwdDxt/o}' WHERE oid = 's.t'::regclass")
    full = "SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER"
    db.silent(R + grants(rule(full, TABLE)))
    result = db.converge(R + grants(rule("ALL", TABLE)))
    assert db.acl("s.t") == {"o=arwdDxt/o", "r=arwdDxtm/o"}
    assert len(result.sql) == 1
    assert "MAINTAIN" in result.sql[0]
    declared = R.replace("{name: r}", "{name: r}, {name: o}") + grants(rule("ALL", TABLE), rule("MAINTAIN", TABLE, "o"))
    db.converge(declared)
    assert db.acl("s.t") == {"o=arwdDxtm/o", "r=arwdDxtm/o"}


@pytest.mark.versions(min=17)
def test_maintain_that_an_owner_without_it_gives(db: Database) -> None:
    """An owner counts as having grant options, also of what it does not hold."""
    db.sql("CREATE ROLE r; CREATE ROLE ex LOGIN; CREATE SCHEMA s AUTHORIZATION ex; CREATE TABLE s.t (a int)")
    db.sql("ALTER TABLE s.t OWNER TO ex; UPDATE pg_class SET relacl = '{ex=arwdDxt/ex}' WHERE oid = 's.t'::regclass")
    text = "assume_roles: [r]\nschemas: [{name: s}]\n" + grants(
        rule("MAINTAIN", TABLE, more=", with_grant_option: true")
    )
    db.converge(text, login_user="ex")
    assert db.acl("s.t") == {"ex=arwdDxt/ex", "r=m*/ex"}


@pytest.mark.versions(min=17)
def test_stray_maintain_is_not_invisible(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); GRANT MAINTAIN, SELECT ON s.t TO r")
    db.converge(R + grants(rule("SELECT", TABLE)))
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "r=r/postgres"}


@pytest.mark.versions(max=16)
def test_maintain_in_defaults_before_17(db: Database) -> None:
    text = "default_privileges: [{owner: r, schema: s, grant: [{role: r, privileges: [MAINTAIN], on_type: table}]}]"
    db.sql("CREATE SCHEMA s")
    db.fails(R + text, "unsupported_version", "17", "MAINTAIN")


# Sequences and tables


def test_a_sequence_is_no_table(db: Database) -> None:
    """GRANT SELECT ON TABLE some_sequence really grants: the engine says SEQUENCE, and table wildcards leave it out."""
    db.sql(
        "CREATE ROLE r; CREATE SCHEMA s; CREATE SEQUENCE s.q; GRANT SELECT ON TABLE s.q TO r; CREATE TABLE s.t (a int)"
    )
    result = db.converge(R + grants(rule("SELECT", "{type: table, schema: s, name: '*'}")))
    assert db.acl("s.q") == {"postgres=rwU/postgres"}
    assert result.matching("REVOKE SELECT ON SEQUENCE")


# Owners


def test_an_owner_change_merges_grantors_and_options(db: Database) -> None:
    """What w gave and what was given to z: computed as it will be after ALTER SCHEMA, all in one run."""
    db.sql("CREATE ROLE z; CREATE ROLE w; CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA s AUTHORIZATION w")
    db.sql(
        "GRANT USAGE, CREATE ON SCHEMA s TO z WITH GRANT OPTION",
        "SET ROLE w; GRANT USAGE ON SCHEMA s TO r; RESET ROLE",
        "SET ROLE z; GRANT USAGE, CREATE ON SCHEMA s TO r, x; RESET ROLE",
    )
    roles = "roles: [{name: z}, {name: w}, {name: r}, {name: x}]\n"
    result = db.converge(
        roles + "schemas: [{name: s, owner: z}]\n" + grants(rule("USAGE", "{type: schema, name: s}")),
    )
    # The options that z had before are now an owner's own, which nobody touches.
    assert db.acl("s", "schema") == {"z=U*C*/z", "r=U/z"}
    assert result.summary["schemas"]["owner_changed"] == 1


def test_an_owner_change_and_the_former_owner(db: Database) -> None:
    """The former owner's own rights become the new one's; where declared it gets its own entry."""
    db.sql("CREATE ROLE z; CREATE ROLE w; CREATE SCHEMA s AUTHORIZATION w")
    db.converge(
        "roles: [{name: z}, {name: w}]\nschemas: [{name: s, owner: z}]\n"
        + grants(rule("USAGE", "{type: schema, name: s}", "w"), rule("ALL", "{type: schema, name: s}", "z"))
    )
    assert db.acl("s", "schema") == {"z=UC/z", "w=U/z"}


def test_an_owner_change_with_an_override(db: Database) -> None:
    db.sql("CREATE ROLE z; CREATE ROLE w; CREATE ROLE x; CREATE SCHEMA s AUTHORIZATION w; GRANT ALL ON SCHEMA s TO x")
    result = db.converge(
        "roles: [{name: z}, {name: w}, {name: x, privilege_reconciliation: additive}]\nschemas: [{name: s, owner: z}]"
    )
    assert db.acl("s", "schema") == {"z=UC/z", "x=UC/z"}
    assert result.suppressed_revoke_count == 2
    assert {item["owner"] for item in result.suppressed_revokes} == {"z"}


def test_a_new_schema_with_everything_in_one_run(db: Database) -> None:
    db.converge(
        "roles: [{name: z}, {name: r}]\nschemas: [{name: n, owner: z}]\n"
        + grants(
            rule("ALL", "{type: schema, name: n}", more=", with_grant_option: true"),
            rule("USAGE", "{type: schema, name: n}", "PUBLIC"),
        )
    )
    assert db.acl("n", "schema") == {"z=UC/z", "r=U*C*/z", "=U/z"}


# Extensions


def contrib(db: Database) -> str:
    found = db.query(
        "SELECT name FROM pg_available_extensions WHERE name IN ('pg_stat_statements', 'pg_trgm', 'vector') ORDER BY 1"
    )
    assert found
    return str(found[0][0])


def test_extension_members_of_every_kind_are_left_out(db: Database) -> None:
    """Types and routines of an extension: no wildcard grants them, no surplus is taken from them, and they are reported."""
    name = contrib(db)
    db.sql(
        f"CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA s; CREATE EXTENSION {name} SCHEMA s; CREATE TYPE s.own AS ENUM ()"
    )
    db.sql("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA s TO x WITH GRANT OPTION")
    before = {key: value for key, value in db.snapshot().items() if key != "type s.own"}
    result = db.converge(
        "roles: [{name: r}, {name: x}]\nschemas: [{name: s}]\n"
        + grants(
            *(rule("ALL", f"{{type: {kind}, schema: s, name: '*'}}") for kind in ("function", "type", "table", "view"))
        )
    )
    assert db.acl("s.own", "type") == {"=U/postgres", "postgres=U/postgres", "r=U/postgres"}
    assert {key: value for key, value in db.snapshot().items() if key != "type s.own"} == before
    passed_by = {(item["change"], item["role"]) for item in result.held(reason="extension")}
    assert passed_by == {("revoke", "x"), ("grant", "r")}
    # One item for all of them, not hundreds.
    assert len(result.held(reason="extension", change="grant", role="r")) < 10


# Dangling grantees


@pytest.mark.parametrize(
    ("setup", "on"),
    [
        ("CREATE TABLE s.t (a int)", "SELECT (a) ON s.t"),
        ("CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "EXECUTE ON FUNCTION s.f()"),
        ("CREATE TYPE s.e AS ENUM ()", "USAGE ON TYPE s.e"),
        ("SELECT 1", "CREATE ON SCHEMA s"),
        ("SELECT 1", "USAGE ON LANGUAGE plpgsql"),
    ],
)
def test_dangling_grantees_are_reported_and_left(db: Database, setup: str, on: str) -> None:
    db.sql("CREATE ROLE ghost; CREATE ROLE r; CREATE SCHEMA s")
    db.sql(setup)
    db.sql(f"GRANT {on} TO ghost WITH GRANT OPTION")
    oid = db.value("SELECT 'ghost'::regrole::oid")
    db.sql(f"DELETE FROM pg_shdepend WHERE refobjid = {oid}; DROP ROLE ghost")
    db.sql("GRANT USAGE ON LANGUAGE plpgsql TO r")
    result = db.silent(R + "grants:\n" + rule("USAGE", "{type: language, name: plpgsql}"))
    assert [item["role"] for item in result.held(reason="dangling_grantee")]
    assert str(oid) in str(result.held(reason="dangling_grantee"))


# Ordinary executors


def test_an_executor_that_owns_part_of_everything(db: Database) -> None:
    """Every object that it may not grant on is named with its owner, all at once, before the first statement."""
    db.sql(
        "CREATE ROLE r; CREATE ROLE ex LOGIN; CREATE ROLE other; CREATE SCHEMA s AUTHORIZATION ex",
        "SET ROLE ex; CREATE TABLE s.mine (a int); CREATE SEQUENCE s.q; RESET ROLE",
        "CREATE TABLE s.ext (a int); CREATE TYPE s.ty AS ENUM ('a'); CREATE FUNCTION s.fu(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "ALTER TABLE s.ext OWNER TO other; ALTER TYPE s.ty OWNER TO other",
    )
    head = "assume_roles: [r]\nschemas: [{name: s}]\n"
    rules = [
        rule("ALL", f"{{type: {kind}, schema: s, name: '*'}}") for kind in ("table", "sequence", "function", "type")
    ]
    result = db.fails(
        head + grants(*rules),
        "insufficient_privilege",
        "s.ext",
        "s.ty",
        "s.fu(integer)",
        "other",
        "postgres",
        login_user="ex",
    )
    assert "s.mine" not in result.text
    assert len(result.problems) == 3
    # As a member of the owners it goes through, in their names where it does not inherit.
    db.sql("ALTER FUNCTION s.fu OWNER TO other; GRANT other TO ex; GRANT USAGE ON SCHEMA s TO other")
    db.sql("ALTER ROLE ex NOINHERIT" if db.version < 16 else "GRANT other TO ex WITH INHERIT FALSE, SET TRUE")
    db.converge(
        head.replace("[r]", "[r, other]") + grants(*rules, rule("USAGE", "{type: schema, name: s}", "other")),
        login_user="ex",
    )
    assert db.acl("s.ext") == {f"other={db.full}/other", f"r={db.full}/other"}
    assert db.acl("s.ty", "type") == {"=U/other", "other=U/other", "r=U/other"}


def test_column_grants_of_an_ordinary_executor(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE ROLE ex LOGIN; CREATE SCHEMA s AUTHORIZATION ex; CREATE TABLE s.t (a int, b int)")
    text = "assume_roles: [r]\nschemas: [{name: s}]\n" + grants(rule("SELECT", TABLE, more=", columns: [a]"))
    db.fails(text, "insufficient_privilege", "s.t", "postgres", login_user="ex")
    db.sql("ALTER TABLE s.t OWNER TO ex")
    db.converge(text, login_user="ex")
    assert db.column_acl("s.t", "a") == {"r=r/ex"}


def test_shared_objects_of_an_ordinary_executor(db: Database) -> None:
    """A tablespace, a language, a large object, another database: named with their owner."""
    db.sql("CREATE ROLE r; CREATE ROLE ex LOGIN; SELECT lo_create(5); CREATE FOREIGN DATA WRAPPER w")
    rules = [
        rule("CREATE", "{type: tablespace, name: pg_default}"),
        rule("USAGE", "{type: language, name: plpgsql}"),
        rule("SELECT", "{type: large_object, name: '5'}"),
        rule("USAGE", "{type: foreign_data_wrapper, name: w}"),
        rule("CREATE", "{type: database, name: postgres}"),
    ]
    words = ["pg_default", "plpgsql", "5", "w", "postgres"]
    if db.version >= 15:
        rules.append(rule("SET", "{type: parameter, name: work_mem}"))
        words.append("work_mem")
    result = db.fails("assume_roles: [r]\n" + grants(*rules), "insufficient_privilege", *words, login_user="ex")
    assert len(result.problems) == len(rules)


# Hostile names


SHADOWS = (
    "CREATE VIEW hostile.pg_class AS SELECT 1::oid AS oid; CREATE VIEW hostile.pg_attribute AS SELECT 1::oid AS attrelid",
    "CREATE VIEW hostile.pg_roles AS SELECT 1::oid AS oid; CREATE TABLE hostile.pg_default_acl (oid oid)",
    "CREATE TABLE hostile.pg_proc (oid oid); CREATE TABLE hostile.pg_type (oid oid); CREATE TABLE hostile.pg_namespace (oid oid)",
    "CREATE FUNCTION hostile.aclexplode(aclitem[], OUT grantor oid, OUT grantee oid, OUT privilege_type text, OUT is_grantable bool)"
    " RETURNS SETOF record LANGUAGE sql AS 'SELECT 10::oid, 0::oid, ''SELECT'', true'",
    "CREATE FUNCTION hostile.acldefault(\"char\", oid) RETURNS aclitem[] LANGUAGE sql AS 'SELECT ''{}''::aclitem[]'",
    "CREATE FUNCTION hostile.format_type(oid, int) RETURNS text LANGUAGE sql AS 'SELECT ''evil''::text'",
    "CREATE FUNCTION hostile.json_agg(int) RETURNS text LANGUAGE sql AS 'SELECT ''evil''::text'",
    "CREATE FUNCTION hostile.eq(oid, oid) RETURNS bool LANGUAGE sql AS 'SELECT true'",
    "CREATE OPERATOR hostile.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = hostile.eq)",
    "CREATE FUNCTION hostile.eq(name, text) RETURNS bool LANGUAGE sql AS 'SELECT true'",
    "CREATE OPERATOR hostile.= (LEFTARG = name, RIGHTARG = text, FUNCTION = hostile.eq)",
    "CREATE TYPE hostile.text AS ENUM ('evil'); CREATE TYPE hostile.int4 AS ENUM ('evil'); CREATE DOMAIN hostile.oid AS int",
    "CREATE DOMAIN hostile.regclass AS text; CREATE DOMAIN hostile.name AS varchar",
)


@pytest.mark.parametrize("path", ["hostile, s, pg_catalog", "s, hostile", '"$user", hostile, pg_catalog, pg_temp'])
def test_catalog_names_shadowed_in_the_search_path(db: Database, path: str) -> None:
    """Every kind of object, columns, grantors and defaults, with a search_path in which nothing is what it seems."""
    db.sql(
        "CREATE ROLE r; CREATE ROLE d; CREATE ROLE x; CREATE ROLE ex SUPERUSER LOGIN; CREATE SCHEMA s; CREATE SCHEMA hostile"
    )
    db.sql(
        "CREATE TYPE s.text AS ENUM ('a'); CREATE TABLE s.t (a int, b s.text); CREATE SEQUENCE s.q; SELECT lo_create(9)",
        "CREATE FUNCTION s.f(s.text, text, integer) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FOREIGN DATA WRAPPER w",
        "GRANT USAGE ON SCHEMA s TO d; GRANT SELECT ON s.t TO d WITH GRANT OPTION",
        "SET ROLE d; GRANT SELECT ON s.t TO x; GRANT SELECT (b) ON s.t TO x; RESET ROLE; GRANT UPDATE (a) ON s.t TO x",
    )
    for statement in SHADOWS:
        db.sql(statement)
    db.sql(f"ALTER ROLE ex SET search_path = {path}")
    text = (
        "roles: [{name: r}, {name: d}, {name: x}]\nschemas: [{name: s}]\n"
        + grants(
            rule("USAGE", "{type: schema, name: s}", "d"),
            rule("SELECT", TABLE, "d", ", with_grant_option: true"),
            rule("SELECT", TABLE, more=", columns: [a, b]"),
            rule("SELECT", "{type: sequence, schema: s, name: '*'}"),
            rule("EXECUTE", "{type: function, schema: s, name: 'f(s.text, text, int4)'}"),
            rule("USAGE", "{type: type, schema: s, name: text}"),
            rule("SELECT", "{type: large_object, name: '9'}"),
            rule("USAGE", "{type: foreign_data_wrapper, name: w}"),
            rule("EXECUTE", "{type: function, schema: s, name: '*'}", "PUBLIC", ", ensure: absent"),
        )
        + "default_privileges: [{owner: d, schema: s, grant: [{role: r, privileges: [USAGE], on_type: type}]}]\n"
    )
    db.converge(text, login_user="ex")
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "d=r*/postgres"}
    assert db.column_acl("s.t", "a") == db.column_acl("s.t", "b") == {"r=r/postgres"}
    assert db.acl("s.q") == {"postgres=rwU/postgres", "r=r/postgres"}
    acl = db.value("SELECT proacl::text FROM pg_proc WHERE proname = 'f' AND pronamespace = 's'::regnamespace")
    assert acl == "{postgres=X/postgres,r=X/postgres}"
    assert db.defaults() == {("d", "s", "T"): {"r=U/d"}}
    assert (
        db.value("SELECT count(*) FROM pg_class WHERE relacl IS NOT NULL AND relnamespace = 'hostile'::regnamespace")
        == 0
    )


# The diff


def test_the_diff_reads_like_the_manifest(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE ROLE x; CREATE ROLE o; CREATE SCHEMA s; CREATE TABLE s.t (a int, b int)",
        "GRANT UPDATE (a, b) ON s.t TO x; GRANT SELECT ON s.t TO x WITH GRANT OPTION",
        "ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO x WITH GRANT OPTION",
    )
    text = (
        "roles: [{name: r}, {name: x}, {name: o}]\nschemas: [{name: s}]\n"
        + grants(
            rule("SELECT", TABLE, more=", columns: [a], with_grant_option: true"),
            rule("SELECT", TABLE, "x"),
            rule("TEMPORARY", "{type: database}", "PUBLIC", ", ensure: absent"),
            rule("USAGE", "{type: schema, name: s}", "PUBLIC"),
        )
        + "default_privileges:\n"
        "  - {owner: o, schema: s, grant: [{role: r, privileges: [INSERT], on_type: table, with_grant_option: true}]}\n"
        "  - {owner: o, grant: [{role: PUBLIC, privileges: [EXECUTE], on_type: function, ensure: absent}]}\n"
    )
    (diff,) = db.reconcile(text, check=True, diff=True).diff
    before, after = diff["before"].splitlines(), diff["after"].splitlines()

    def has(lines: list[str], *words: str) -> bool:
        return any(all(word in line for word in words) for line in lines)

    assert has(before, "role: x", "UPDATE", "s.t", "columns: [a, b]")
    assert not has(after, "role: x", "UPDATE")
    assert has(before, "role: x", "SELECT", "with_grant_option: true")
    assert has(after, "role: x", "SELECT")
    assert not has(after, "role: x", "with_grant_option")
    assert has(after, "role: r", "SELECT", "columns: [a]", "with_grant_option: true")
    assert has(before, "role: PUBLIC", "TEMPORARY", db.name)
    assert not has(after, "role: PUBLIC", "TEMPORARY")
    assert has(after, "role: PUBLIC", "USAGE", "s")
    assert has(after, "role: r", "INSERT", "owner: o", "with_grant_option: true")
    assert has(before, "role: PUBLIC", "EXECUTE", "owner: o")
    assert not has(after, "role: PUBLIC", "EXECUTE")
    assert not has(before, "role: r")
    # The texts stay YAML.
    assert yaml.safe_load(diff["before"]).keys() <= {"grants", "default_privileges"}
    assert yaml.safe_load(diff["after"]).keys() <= {"grants", "default_privileges"}
    assert db.reconcile(text, diff=True).diff == [diff]
    assert db.reconcile(text, diff=True).diff == []


def test_the_diff_counts_objects_that_change_alike(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s", *(f"CREATE TABLE s.t{n} (a int, b int)" for n in range(20)))
    text = R + grants(
        rule("SELECT", "{type: table, schema: s, name: '*'}", more=", columns: [a], with_grant_option: true"),
        rule("INSERT", "{type: table, schema: s, name: '*'}"),
    )
    (diff,) = db.reconcile(text, check=True, diff=True).diff
    assert len(diff["after"].splitlines()) <= 4
    assert "(20)" in diff["after"]
