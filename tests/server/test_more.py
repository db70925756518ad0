# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the cases leave out: names that break text ACLs, everything new in one run, ordinary executors, large results."""

from __future__ import annotations

import json

import pytest
from harness import Database
from psycopg import sql

S = "schemas: [{name: s}]\n"
R = "roles: [{name: r}]\n" + S

ODD = [
    "a=b", 'x"y', "c,d", "{e}", "f/g", "back\\slash", " lead", "trail ", "tab\there", "new\nline", "\u00e9t\u00e9", "%s",
    "$1", "--c", "/*d*/", "null", "NULL", "=", 'a""b', "'", "a b", "\U0001f418", "x" * 63, "pgloader_pg", "pg",
]  # fmt: skip


def test_odd_names_everywhere(db: Database) -> None:
    for name in ODD:
        quoted = sql.Identifier(name)
        db.connection.execute(
            sql.SQL("CREATE SCHEMA {}; CREATE TABLE {}.{} (a int); CREATE SEQUENCE {}.{}").format(
                quoted, quoted, quoted, quoted, sql.Identifier("q" + name[:60])
            )
        )
        db.connection.execute(
            sql.SQL("CREATE FUNCTION {}.{}(int) RETURNS int LANGUAGE sql AS 'SELECT 1'").format(quoted, quoted)
        )
    manifest = {
        "roles": [{"name": name, "comment": name} for name in ODD],
        "schemas": [{"name": name, "owner": name} for name in ODD],
        "memberships": [{"role": ODD[0], "members": [{"name": name} for name in ODD[1:]]}],
        "grants": [
            {"role": ODD[number - 1], "privileges": [privilege], "object": {"type": kind, **where}}
            for number, name in enumerate(ODD)
            for kind, privilege, where in (
                ("table", "SELECT", {"schema": name, "name": name}),
                ("sequence", "USAGE", {"schema": name, "name": "*"}),
                ("function", "EXECUTE", {"schema": name, "name": f"{name}(int)"}),
                ("schema", "USAGE", {"name": name}),
                ("database", "CONNECT", {"name": db.name}),
            )
        ],
        "default_privileges": [
            {
                "owner": name,
                "schema": name,
                "grant": [{"role": ODD[number - 1], "privileges": ["SELECT"], "on_type": "table"}],
            }
            for number, name in enumerate(ODD)
        ],
    }
    result = db.converge(manifest)
    assert db.roles() == set(ODD)
    assert db.members(ODD[0]) == set(ODD[1:])
    assert result.summary["schemas"]["owner_changed"] == len(ODD)
    # 25 each of tables, sequences, functions, schemas, and CONNECT for 25 roles.
    assert result.summary["grants"]["granted"] == 5 * len(ODD)
    # Everything that is surplus then, is found under the same names.
    empty = {"roles": manifest["roles"], "schemas": manifest["schemas"]}
    result = db.converge(empty)
    assert result.summary["grants"]["revoked"] == 4 * len(ODD)
    assert result.summary["default_privileges"]["revoked"] == len(ODD)
    assert db.defaults() == {}


def test_everything_new_in_one_run(db: Database) -> None:
    manifest = """
        default_owner: o
        profiles:
          rw:
            grants: [{privileges: [USAGE], object: {type: schema}}, {privileges: [SELECT], object: {type: table, name: "*"}}]
            default_privileges: [{privileges: [SELECT], on_type: table}, {privileges: [EXECUTE], on_type: function}]
        schemas: [{name: s, profiles: [rw]}, {name: t, owner: p, profiles: [rw]}]
        roles: [{name: o}, {name: p, comment: new}, {name: u, login: true, valid_until: "2031-01-01T00:00:00Z"}]
        memberships: [{role: s-rw, members: [{name: u, admin: true}, {name: t-rw}]}]
        grants: [{role: u, privileges: [ALL], object: {type: database}}]
        default_privileges: [{owner: u, grant: [{role: PUBLIC, privileges: [EXECUTE], on_type: function, ensure: absent}]}]
    """
    db.converge(manifest)
    assert {key[:2] for key in db.defaults()} == {("o", "s"), ("p", "t"), ("u", None)}
    assert db.members("s-rw") == {"u", "t-rw"}
    # And a database that has it all needs nothing, in no mode.
    for mode in ("adopt", "additive"):
        db.silent(manifest, reconciliation_mode=mode)


def test_a_named_object_in_a_schema_that_is_only_created_now(db: Database) -> None:
    db.fails(
        R + "grants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}]",
        "object_missing",
        "t",
    )
    db.converge(R + 'grants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: "*"}}]')


def test_default_privileges_in_a_schema_that_does_not_exist(db: Database) -> None:
    db.fails(
        "roles: [{name: r}]\ndefault_privileges:"
        " [{owner: r, schema: nope, grant: [{role: r, privileges: [SELECT], on_type: table}]}]",
        "object_missing",
        "nope",
    )


def test_the_bootstrap_superuser_is_external_without_saying_so(db: Database) -> None:
    db.sql("CREATE ROLE g; GRANT g TO postgres")
    before = db.edges()
    db.silent("roles: [{name: postgres}, {name: g}]")
    assert db.edges() == before


def test_publics_default_privileges_that_no_rule_names_stay(db: Database) -> None:
    db.sql("CREATE ROLE o; CREATE ROLE r; CREATE SCHEMA s AUTHORIZATION o")
    db.sql("ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO PUBLIC")
    db.sql("ALTER DEFAULT PRIVILEGES FOR ROLE o REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    head = "roles: [{name: o}, {name: r}]\nschemas: [{name: s, owner: o}]\n"
    db.silent(head)
    db.converge(head + "default_privileges: [{owner: o, grant: [{role: r, privileges: [EXECUTE], on_type: function}]}]")
    assert db.defaults() == {("o", "s", "r"): {"=r/o"}, ("o", None, "f"): {"o=X/o", "r=X/o"}}
    public = "default_privileges: [{owner: o, schema: s, grant: [{role: PUBLIC, privileges: [SELECT], on_type: table, ensure: absent}]}]"
    db.converge(head + public)
    assert ("o", "s", "r") not in db.defaults()


@pytest.mark.parametrize(
    ("schema", "kind"), [("pg_catalog", "view"), ("information_schema", "view"), ("pg_catalog", "function")]
)
def test_wildcards_in_system_schemas_only_touch_what_they_name(db: Database, schema: str, kind: str) -> None:
    db.sql("CREATE ROLE r; CREATE ROLE x; GRANT SELECT ON pg_catalog.pg_tables TO x")
    privilege = "EXECUTE" if kind == "function" else "SELECT"
    manifest = f"roles: [{{name: r}}]\ngrants: [{{role: r, privileges: [{privilege}], object: {{type: {kind}, schema: {schema}, name: '*'}}}}]"
    result = db.converge(manifest)
    assert result.changed
    assert result.summary["managed"] == {}
    assert "x=r/postgres" in (db.acl("pg_catalog.pg_tables") or ())
    assert not result.matching("REVOKE")


# Executors


def test_an_ordinary_owner_manages_its_own_database(db: Database) -> None:
    """No superuser anywhere: a CREATEROLE login that owns the database, as managed services give it."""
    db.sql(f"CREATE ROLE dbo LOGIN CREATEROLE; ALTER DATABASE {db.name} OWNER TO dbo")
    owner = db.connect(user="dbo")
    owner.execute("CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE SEQUENCE s.q; CREATE TABLE s.u (a int)")
    owner.execute(
        "CREATE ROLE old; GRANT SELECT, INSERT ON s.t, s.u TO old; CREATE ROLE gone; GRANT UPDATE ON s.t TO gone"
    )
    manifest = """
        default_owner: dbo
        profiles:
          ro: {grants: [{privileges: [USAGE], object: {type: schema}}, {privileges: [SELECT], object: {type: table, name: "*"}}],
               default_privileges: [{privileges: [SELECT], on_type: table}]}
        schemas: [{name: s, profiles: [ro]}]
        roles: [{name: dbo, external: true}, {name: app, login: true, connection_limit: 5}, {name: old}]
        memberships: [{role: s-ro, members: [{name: app}]}]
        grants:
          - {role: old, privileges: [SELECT], object: {type: table, schema: s, name: t}}
          - {role: PUBLIC, privileges: [TEMPORARY], object: {type: database}, ensure: absent}
    """
    db.converge(manifest, login_user="dbo")
    assert db.acl("s.t") == {f"dbo={db.full}/dbo", "s-ro=r/dbo", "old=r/dbo"} or db.acl("s.t") == {
        f"dbo={db.full}/dbo",
        '"s-ro"=r/dbo',
        "old=r/dbo",
    }
    assert db.defaults()["dbo", "s", "r"] == {'"s-ro"=r/dbo'}
    assert db.members("s-ro") >= {"app"}


def test_a_superuser_through_session_role(db: Database) -> None:
    db.sql("CREATE ROLE root SUPERUSER; CREATE ROLE lo LOGIN NOINHERIT; GRANT root TO lo; CREATE ROLE o")
    db.sql(
        "CREATE SCHEMA s AUTHORIZATION o; CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO o; CREATE ROLE x; GRANT SELECT ON s.t TO x"
    )
    db.converge(
        """
        roles: [{name: r, login: true}, {name: o}]
        schemas: [{name: s, owner: o}, {name: n, owner: o}]
        grants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}]
        default_privileges: [{owner: o, schema: n, grant: [{role: r, privileges: [SELECT], on_type: table}]}]
        """,
        login_user="lo",
        session_role="root",
    )
    assert db.acl("s.t") == {f"o={db.full}/o", "r=r/o"}


def test_assumed_owners_in_check_mode(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s")
    manifest = R.replace("{name: s}", "{name: s, owner: later}") + (
        "default_privileges: [{owner: later, schema: s, grant: [{role: r, privileges: [SELECT], on_type: table}]}]"
    )
    predicted = db.reconcile(manifest, check=True, assume_roles=["later"])
    assert not predicted.failed, predicted
    db.sql("CREATE ROLE later")
    assert db.converge(manifest, assume_roles=["later"]).sql == predicted.sql


# Size


def test_a_large_result_stays_small(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE ROLE app; CREATE SCHEMA s; CREATE SCHEMA long_name_of_a_schema_that_takes_room")
    db.sql(
        """DO $$ BEGIN FOR i IN 1..2500 LOOP
        EXECUTE format('CREATE TABLE long_name_of_a_schema_that_takes_room.table_with_a_long_name_too_%s (a int)', i);
        END LOOP; END $$"""
    )
    db.sql("GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA long_name_of_a_schema_that_takes_room TO r")
    manifest = """
        roles: [{name: r, external: true, privilege_reconciliation: additive}]
        schemas: [{name: long_name_of_a_schema_that_takes_room}]
    """
    result = db.reconcile(manifest, diff=True, check=True)
    assert result.truncated is True
    assert len(json.dumps(result)) < 500_000
    assert result.suppressed_revoke_count == 5000
    assert result.summary["suppressed_revokes"] == {"r": 5000}
    strict = db.reconcile(manifest.replace(", privilege_reconciliation: additive", ""), check=True)
    assert strict.summary["grants"]["revoked"] == 5000
    # Few statements name many objects.
    assert len(strict.sql) <= 10


@pytest.mark.versions(min=18)
def test_from_18_on_whole_schemas_are_granted_without_locks(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE TABLE s.u (a int); CREATE SEQUENCE s.q")
    tables = '{role: r, privileges: [SELECT], object: {type: table, schema: s, name: "*"}}'
    result = db.converge(R + f"grants: [{tables}]")
    assert result.matching("ON ALL TABLES IN SCHEMA")
    # With a view beside them the words would reach too far.
    db.sql("CREATE TABLE s.x (a int); CREATE VIEW s.v AS SELECT 1 AS a; CREATE ROLE r2")
    result = db.converge(
        R.replace("{name: r}", "{name: r}, {name: r2}") + f"grants: [{tables}, {tables.replace('role: r', 'role: r2')}]"
    )
    assert not result.matching("ON ALL TABLES IN SCHEMA")
    assert db.acl("s.v") is None
