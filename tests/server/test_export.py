# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pg_role_export: what comes out of a database, and that it means exactly what was there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import Database, Result


def roles(result: Result) -> dict[str, Any]:
    """The exported roles by name, without their names."""
    return {
        entry["name"]: {key: value for key, value in entry.items() if key != "name"}
        for entry in result["manifest"].get("roles", [])
    }


def rules(result: Result, *, all_of_them: bool = False) -> list[tuple[Any, ...]]:
    """The exported grants, flat. What every export says of PUBLIC on the schema public only where it is asked for."""
    found = [
        (
            rule["role"],
            rule["object"]["type"],
            rule["object"].get("schema"),
            rule["object"].get("name"),
            *rule["privileges"],
            *(["(" + ", ".join(rule["columns"]) + ")"] if "columns" in rule else []),
            *(["option"] if rule.get("with_grant_option") else []),
            *(["absent"] if rule.get("ensure") == "absent" else []),
        )
        for rule in result["manifest"].get("grants", [])
    ]
    return [rule for rule in found if all_of_them or rule[:4] != ("PUBLIC", "schema", None, "public")]


def test_a_role_comes_out_with_what_differs_from_the_default(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE plain",
        "CREATE ROLE app LOGIN CREATEDB NOINHERIT CONNECTION LIMIT 0 VALID UNTIL '2031-02-03 04:05:06.7+02'",
        "COMMENT ON ROLE app IS 'Order service: it''s \"live\"'",
        "ALTER ROLE app SET search_path = \"$user\", 'A b', public",
        "ALTER ROLE app SET work_mem = '8MB'; ALTER ROLE app SET password_encryption = 'md5'",
    )
    result = db.export(tmp_path)
    assert roles(result)["plain"] == {}
    assert roles(result)["app"] == {
        "comment": 'Order service: it\'s "live"',
        "login": True,
        "createdb": True,
        "inherit": False,
        "connection_limit": 0,
        "valid_until": "2031-02-03T02:05:06.700000Z",
        "config": {"password_encryption": "md5", "search_path": '"$user", "A b", public', "work_mem": "8MB"},
    }
    # The owner of the schema public: somebody else looks after it.
    owner = "postgres" if db.version < 15 else "pg_database_owner"
    assert roles(result)[owner] == {"external": True}


def test_privileges_on_objects(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE own; CREATE ROLE r; CREATE ROLE w",
        "CREATE SCHEMA s AUTHORIZATION own",
        "CREATE TABLE s.a (x int, y int); CREATE TABLE s.b (x int); CREATE VIEW s.v AS SELECT 1 AS x",
        "CREATE SEQUENCE s.q; CREATE FUNCTION s.f(int, text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TYPE s.t AS ENUM ('a')",
        "GRANT USAGE ON SCHEMA s TO r",
        "GRANT SELECT ON ALL TABLES IN SCHEMA s TO r",
        "GRANT INSERT ON s.a TO w WITH GRANT OPTION; GRANT UPDATE (x), SELECT (x, y) ON s.a TO w",
        "GRANT SELECT ON s.b TO PUBLIC",
        "REVOKE EXECUTE ON FUNCTION s.f FROM PUBLIC; GRANT EXECUTE ON FUNCTION s.f TO r",
        "REVOKE USAGE ON TYPE s.t FROM PUBLIC",
    )
    result = db.export(tmp_path, schemas=["s"])
    assert [rule for rule in rules(result) if rule[2] == "s" or rule[3] == "s"] == [
        ("PUBLIC", "table", "s", "b", "SELECT"),
        ("PUBLIC", "function", "s", "f(integer, text)", "EXECUTE", "absent"),
        ("PUBLIC", "type", "s", "t", "USAGE", "absent"),
        ("r", "schema", None, "s", "USAGE"),
        ("r", "table", "s", "*", "SELECT"),
        ("r", "view", "s", "v", "SELECT"),
        ("r", "function", "s", "f(integer, text)", "EXECUTE"),
        ("w", "table", "s", "a", "INSERT", "option"),
        ("w", "table", "s", "a", "UPDATE", "(x)"),
        ("w", "table", "s", "a", "SELECT", "(x, y)"),
    ]
    assert result["manifest"]["schemas"] == [{"name": "s", "owner": "own"}]


def skipped(result: Result, reason: str) -> list[tuple[Any, ...]]:
    """What was skipped for this reason: the sort, the role, and the name of the object."""
    return [
        (item["kind"], item["role"], (item["object"] or {}).get("name"))
        for item in result["not_exported"]
        if item["reason"] == reason
    ]


def test_a_wildcard_stands_for_two_or_more_objects_that_all_have_it(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE own; CREATE ROLE r; CREATE ROLE w; CREATE SCHEMA s AUTHORIZATION own",
        "CREATE TABLE s.a (); CREATE TABLE s.b (); CREATE TABLE s.c (); CREATE SEQUENCE s.q",
        "ALTER TABLE s.c OWNER TO w",
        "GRANT SELECT ON ALL TABLES IN SCHEMA s TO r; GRANT INSERT ON s.a, s.b TO r; GRANT UPDATE ON s.a TO r",
        # w owns one of them and holds it on the others; of r the grant option is not everywhere.
        "GRANT DELETE ON s.a, s.b TO w; GRANT SELECT ON s.b TO r WITH GRANT OPTION",
        "GRANT USAGE ON SEQUENCE s.q TO r",
        "CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION s.g() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA s FROM PUBLIC",
    )
    assert [rule for rule in rules(db.export(tmp_path, schemas=["s"])) if rule[2] == "s"] == [
        ("PUBLIC", "function", "s", "*", "EXECUTE", "absent"),
        ("r", "table", "s", "*", "SELECT"),
        ("r", "table", "s", "a", "INSERT", "UPDATE"),
        ("r", "table", "s", "b", "INSERT"),
        ("r", "table", "s", "b", "SELECT", "option"),
        ("r", "sequence", "s", "q", "USAGE"),
        ("w", "table", "s", "*", "DELETE"),
    ]


def test_memberships_with_their_options(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE g; CREATE ROLE a; CREATE ROLE b; CREATE ROLE c NOINHERIT",
        "GRANT g TO a WITH ADMIN OPTION; GRANT g TO b; GRANT a TO c; GRANT pg_monitor TO a",
        "CREATE ROLE maker CREATEROLE; SET ROLE maker; CREATE ROLE made; RESET ROLE",
    )
    plain: dict[str, Any] = {"name": "c", "inherit": False}
    if db.version >= 16:
        # Each option is what any of the rows gives.
        db.sql("GRANT g TO c WITH ADMIN FALSE, INHERIT FALSE, SET FALSE")
        db.sql("SET ROLE a; GRANT g TO c WITH SET TRUE, INHERIT FALSE; RESET ROLE")
        db.sql("GRANT made TO b WITH SET FALSE")
    result = db.export(tmp_path)
    members = [{"name": "a", "admin": True}, {"name": "b"}]
    found = [
        {"role": "a", "members": [plain]},
        {"role": "g", "members": [*members, *([plain] if db.version >= 16 else [])]},
        {"role": "pg_monitor", "members": [{"name": "a"}]},
    ]
    if db.version >= 16:
        found.insert(2, {"role": "made", "members": [{"name": "b", "set": False}]})
    assert result["manifest"]["memberships"] == found
    assert roles(result)["pg_monitor"] == {"external": True}


def test_an_automatic_membership_whose_member_creates_no_roles_is_one_like_any_other(
    db: Database, tmp_path: Path
) -> None:
    db.sql("CREATE ROLE maker CREATEROLE; SET ROLE maker; CREATE ROLE made; RESET ROLE; ALTER ROLE maker NOCREATEROLE")
    result = db.export(tmp_path)
    expected = [{"role": "made", "members": [{"name": "maker", "admin": True, "inherit": False, "set": False}]}]
    assert result["manifest"].get("memberships", []) == (expected if db.version >= 16 else [])


def test_default_privileges_of_both_layers(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE own; CREATE ROLE r; CREATE SCHEMA s AUTHORIZATION own",
        "ALTER DEFAULT PRIVILEGES FOR ROLE own GRANT SELECT ON TABLES TO r WITH GRANT OPTION",
        "ALTER DEFAULT PRIVILEGES FOR ROLE own REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
        "ALTER DEFAULT PRIVILEGES FOR ROLE own GRANT USAGE ON SCHEMAS TO r",
        "ALTER DEFAULT PRIVILEGES FOR ROLE own IN SCHEMA s GRANT INSERT, DELETE ON TABLES TO r, PUBLIC",
        "ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA s GRANT USAGE ON SEQUENCES TO r",
        "ALTER DEFAULT PRIVILEGES FOR ROLE r REVOKE DELETE ON TABLES FROM r",
    )
    result = db.export(tmp_path)
    assert result["manifest"]["default_privileges"] == [
        {
            "owner": "own",
            "grant": [
                {"role": "PUBLIC", "privileges": ["EXECUTE"], "on_type": "function", "ensure": "absent"},
                {"role": "r", "privileges": ["USAGE"], "on_type": "schema"},
                {"role": "r", "privileges": ["SELECT"], "on_type": "table", "with_grant_option": True},
            ],
        },
        {
            "owner": "own",
            "schema": "s",
            "grant": [
                {"role": "PUBLIC", "privileges": ["INSERT", "DELETE"], "on_type": "table"},
                {"role": "r", "privileges": ["INSERT", "DELETE"], "on_type": "table"},
            ],
        },
        {"owner": "postgres", "schema": "s", "grant": [{"role": "r", "privileges": ["USAGE"], "on_type": "sequence"}]},
    ]
    assert skipped(result, "owner_privileges") == [("default_privilege", "r", None)]


def test_what_public_has_lost_is_absent_and_what_it_has_gained_is_granted(db: Database, tmp_path: Path) -> None:
    db.sql(
        f"REVOKE CONNECT ON DATABASE {db.name} FROM PUBLIC; GRANT CREATE ON DATABASE {db.name} TO PUBLIC",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        "REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC",
        "REVOKE EXECUTE ON FUNCTION pg_sleep(float8) FROM PUBLIC",
        "GRANT EXECUTE ON FUNCTION pg_ls_dir(text) TO PUBLIC; GRANT SELECT (rolname) ON pg_authid TO PUBLIC",
    )
    found = rules(db.export(tmp_path), all_of_them=True)
    assert found == [
        ("PUBLIC", "database", None, None, "CREATE"),
        ("PUBLIC", "database", None, None, "CONNECT", "absent"),
        ("PUBLIC", "schema", None, "public", "USAGE", "CREATE", "absent"),
        ("PUBLIC", "table", "pg_catalog", "pg_authid", "SELECT", "(rolname)"),
        ("PUBLIC", "function", "pg_catalog", "pg_ls_dir(text)", "EXECUTE"),
        ("PUBLIC", "function", "pg_catalog", "pg_sleep(double precision)", "EXECUTE", "absent"),
        ("PUBLIC", "language", None, "plpgsql", "USAGE", "absent"),
    ]


def test_a_database_that_nobody_touched_says_next_to_nothing(db: Database, tmp_path: Path) -> None:
    """Thousands of objects of PostgreSQL's own carry an ACL, and all of them are as they were made."""
    owner = "postgres" if db.version < 15 else "pg_database_owner"
    about = {"role": "PUBLIC", "object": {"type": "schema", "name": "public"}}
    grants = [{**about, "privileges": ["USAGE", "CREATE"]}]
    if db.version >= 15:
        grants = [{**about, "privileges": ["USAGE"]}, {**about, "privileges": ["CREATE"], "ensure": "absent"}]
    result = db.export(tmp_path)
    assert result["manifest"] == {
        "roles": [{"name": owner, "external": True}],
        "schemas": [{"name": "public", "owner": owner}],
        "grants": grants,
    }
    assert result["not_exported"] == []
    assert result["summary"] == {
        "profiles": 0, "roles": 0, "external_roles": 1, "memberships": 0, "schemas": 1,
        "grants": len(grants), "default_privileges": 0, "not_exported": 0,
    }  # fmt: skip


def test_a_predefined_role_that_lost_what_initdb_gave_it(db: Database, tmp_path: Path) -> None:
    db.sql(
        "REVOKE EXECUTE ON FUNCTION pg_ls_waldir() FROM pg_monitor; CREATE ROLE r",
        "GRANT EXECUTE ON FUNCTION pg_ls_logdir() TO r WITH GRANT OPTION",
    )
    assert rules(db.export(tmp_path)) == [
        ("pg_monitor", "function", "pg_catalog", "pg_ls_waldir()", "EXECUTE", "absent"),
        ("r", "function", "pg_catalog", "pg_ls_logdir()", "EXECUTE", "option"),
    ]


def test_objects_of_an_extension_only_where_somebody_changed_them(db: Database, tmp_path: Path) -> None:
    names = "('pg_trgm', 'pg_stat_statements', 'vector')"
    name = db.query(f"SELECT name FROM pg_available_extensions WHERE name IN {names} ORDER BY name")[0][0]
    db.sql(f"CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA s; CREATE EXTENSION {name} SCHEMA s")
    assert [rule for rule in rules(db.export(tmp_path)) if rule[2] == "s"] == []
    functions = "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 's'::regnamespace AND prokind = 'f'"
    one, two = [row[0] for row in db.query(f"{functions} ORDER BY oid LIMIT 2")]
    db.sql(f"GRANT EXECUTE ON FUNCTION {one} TO r; REVOKE EXECUTE ON FUNCTION {two} FROM PUBLIC")
    db.sql("CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; GRANT EXECUTE ON FUNCTION s.f() TO x")
    found = [(role, name, *rest) for role, _kind, schema, name, *rest in rules(db.export(tmp_path)) if schema == "s"]
    assert {(role, *rest) for role, _name, *rest in found} == {
        ("PUBLIC", "EXECUTE", "absent"), ("r", "EXECUTE"), ("x", "EXECUTE")
    }  # fmt: skip
    assert len(found) == 3
    assert not [rule for rule in found if rule[1] == "*"]


def test_objects_outside_schemas(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE r; CREATE ROLE own; CREATE FOREIGN DATA WRAPPER w; CREATE SERVER f FOREIGN DATA WRAPPER w",
        f"GRANT CONNECT, CREATE ON DATABASE {db.name} TO r WITH GRANT OPTION",
        "GRANT USAGE ON FOREIGN DATA WRAPPER w TO r; GRANT USAGE ON FOREIGN SERVER f TO r",
        "GRANT USAGE ON LANGUAGE plpgsql TO r; GRANT CREATE ON TABLESPACE pg_default TO r",
        "SELECT lo_create(4242); SELECT lo_create(4243); GRANT SELECT ON LARGE OBJECT 4242 TO r",
        "ALTER LARGE OBJECT 4243 OWNER TO own",
    )
    if db.version >= 15:
        db.sql("GRANT SET, ALTER SYSTEM ON PARAMETER work_mem TO r; GRANT SET ON PARAMETER my.own TO r")
    parameters = [
        ("r", "parameter", None, "my.own", "SET"),
        ("r", "parameter", None, "work_mem", "SET", "ALTER SYSTEM"),
    ]
    assert rules(db.export(tmp_path)) == [
        ("r", "database", None, None, "CONNECT", "CREATE", "option"),
        ("r", "language", None, "plpgsql", "USAGE"),
        ("r", "foreign_data_wrapper", None, "w", "USAGE"),
        ("r", "foreign_server", None, "f", "USAGE"),
        ("r", "tablespace", None, "pg_default", "CREATE"),
        *(parameters if db.version >= 15 else []),
        ("r", "large_object", None, 4242, "SELECT"),
    ]


# ---- which roles


def test_only_some_roles(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE app LOGIN; CREATE ROLE other LOGIN CREATEDB; CREATE ROLE own; CREATE ROLE team; CREATE ROLE far",
        "CREATE SCHEMA s AUTHORIZATION own; CREATE TABLE s.t (); CREATE SCHEMA away AUTHORIZATION far",
        "GRANT SELECT ON s.t TO app; GRANT INSERT ON s.t TO other; GRANT team TO app; GRANT far TO other",
        "GRANT USAGE ON SCHEMA away TO other; GRANT USAGE ON LANGUAGE plpgsql TO far",
    )
    result = db.export(tmp_path, roles=["ap*"])
    assert roles(result) == {
        "app": {"login": True}, "other": {"external": True}, "own": {"external": True}, "team": {"external": True}
    }  # fmt: skip
    assert result["manifest"]["memberships"] == [{"role": "team", "members": [{"name": "app"}]}]
    assert result["manifest"]["schemas"] == [{"name": "s", "owner": "own"}]
    assert rules(result) == [("app", "table", "s", "t", "SELECT"), ("other", "table", "s", "t", "INSERT")]


def test_only_some_schemas(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE app; CREATE SCHEMA sales; CREATE SCHEMA sales_old; CREATE SCHEMA hr",
        "GRANT USAGE ON SCHEMA sales TO app; GRANT USAGE ON SCHEMA hr TO app",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA hr GRANT SELECT ON TABLES TO app",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO app",
    )
    result = db.export(tmp_path, schemas=["sale?", "*_old"])
    assert [schema["name"] for schema in result["manifest"]["schemas"]] == ["sales", "sales_old"]
    assert rules(result) == [("app", "schema", None, "sales", "USAGE")]
    assert [entry.get("schema") for entry in result["manifest"]["default_privileges"]] == [None]


def test_ignored_roles_are_named_nowhere_but_in_the_scope(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE app; CREATE ROLE legacy_1 LOGIN; CREATE ROLE legacy_2; CREATE SCHEMA s AUTHORIZATION legacy_1",
        "CREATE TABLE s.t (); GRANT SELECT ON s.t TO legacy_2, app; GRANT legacy_2 TO app; GRANT app TO legacy_1",
        "ALTER DEFAULT PRIVILEGES FOR ROLE legacy_1 GRANT SELECT ON TABLES TO app",
    )
    result = db.export(tmp_path, ignore_roles=["legacy_*"])
    assert result["manifest"]["scope"] == {"ignore_roles": ["legacy_*"]}
    assert "legacy_1" not in result["yaml"]
    assert "legacy_2" not in result["yaml"]
    assert rules(result) == [("app", "table", "s", "t", "SELECT")]
    assert {"name": "s"} in result["manifest"]["schemas"]


def test_a_role_that_no_manifest_can_name_is_left_alone(db: Database, tmp_path: Path) -> None:
    """Quoted, PostgreSQL takes them as names."""
    db.sql(
        'CREATE ROLE "PUBLIC" LOGIN; CREATE ROLE "None"; CREATE ROLE app; CREATE ROLE "{{ x }}*"',
        "CREATE SCHEMA s; CREATE TABLE s.t (); CREATE TABLE s.u ()",
        'GRANT SELECT ON s.t TO "PUBLIC", "None", "{{ x }}*"; GRANT app TO "PUBLIC"; GRANT INSERT ON s.t TO app, PUBLIC',
    )
    result = db.export(tmp_path)
    assert result["manifest"]["scope"] == {"ignore_roles": ["None", "PUBLIC", "[{][{] x }}[*]"]}
    assert skipped(result, "name") == [("role", name, None) for name in ("None", "PUBLIC", "{{ x }}*")]
    assert rules(result) == [("PUBLIC", "table", "s", "t", "INSERT"), ("app", "table", "s", "t", "INSERT")]
    # PUBLIC itself is none of them: what a rule takes from it is taken.
    manifest = {**result["manifest"], "grants": [{**result["manifest"]["grants"][0], "ensure": "absent"}]}
    assert any("FROM PUBLIC" in text for text in db.converge(manifest, undeclared_grantees="keep").sql)


def test_names_that_are_not_utf8(db: Database, tmp_path: Path) -> None:
    other = f"{db.name}_x"
    db.sql(f"CREATE DATABASE {other} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    db.sql("CREATE ROLE app")
    session = db.connect(dbname=other)
    session.execute("SET client_encoding = 'SQL_ASCII'")
    session.execute(
        b'CREATE ROLE "raw_\xe9"; CREATE SCHEMA s; CREATE TABLE s.t (); CREATE SCHEMA u; CREATE TABLE u."t_\xe9" ()'
    )
    session.execute(b'GRANT SELECT ON s.t TO "raw_\xe9", app; GRANT SELECT ON u."t_\xe9" TO app')
    try:
        result = db.run_export(login_db=other)
        assert not result.failed, result
        assert skipped(result, "name") == [("role", "raw_\\udce9", None), ("schema", None, "u")]
        assert rules(result) == [("app", "table", "s", "t", "SELECT")]
        file = tmp_path / "access.yml"
        file.write_text(result["yaml"], encoding="utf-8")
        for given in (result["manifest"], {"manifest_files": [str(file)]}):
            again = db.reconcile(given, login_db=other)
            assert not again.failed, again
            assert again.sql == []
    finally:
        session.execute(b'DROP OWNED BY "raw_\xe9"; DROP ROLE "raw_\xe9"')


def test_ordinary_roles_with_names_that_look_like_a_systems(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE ROLE pgloader_pg LOGIN; CREATE ROLE pgbouncer LOGIN; CREATE ROLE rds_superuser; CREATE ROLE rds_iam")
    db.sql("CREATE ROLE rdsapp; GRANT rds_superuser TO pgloader_pg; GRANT rds_iam TO rds_superuser")
    result = db.export(tmp_path)
    owner = "postgres" if db.version < 15 else "pg_database_owner"
    assert roles(result) == {
        "pgloader_pg": {"login": True}, "pgbouncer": {"login": True}, "rdsapp": {}, "rds_superuser": {"external": True},
        owner: {"external": True},
    }  # fmt: skip
    assert result["manifest"]["memberships"] == [{"role": "rds_superuser", "members": [{"name": "pgloader_pg"}]}]
    db.sql("CREATE ROLE supabase_admin SUPERUSER")
    assert "pgbouncer" not in roles(db.export(tmp_path))


# ---- what is skipped


def test_what_cannot_be_expressed_is_listed(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE r LOGIN PASSWORD 'never to be seen'; CREATE ROLE own; CREATE SCHEMA s AUTHORIZATION own",
        f"ALTER ROLE r IN DATABASE {db.name} SET work_mem = '1MB'",
        "CREATE TABLE s.t (); GRANT SELECT ON s.t TO r; ALTER TABLE s.t OWNER TO own; REVOKE DELETE ON s.t FROM own",
        "CREATE ROLE past VALID UNTIL '-infinity'",
        "COMMENT ON ROLE own IS 'filled in by {{ nobody }}'",
        "ALTER ROLE own SET pgrst.jwt_secret = 'hush-hush'",
        "UPDATE pg_class SET relacl = relacl || makeaclitem(987654, relowner, 'INSERT', false) WHERE relname = 't'",
    )
    result = db.export(tmp_path)
    found = {(item["kind"], item["role"], item["reason"]) for item in result["not_exported"]}
    assert found == {
        ("password", "r", "password"),
        ("config", "r", "database_setting"),
        ("grant", "own", "owner_privileges"),
        ("grant", "987654", "dangling_grantee"),
        ("role", "past", "valid_until"),
        ("comment", "own", "text"),
        ("config", "own", "secret"),
    }
    assert roles(result)["past"] == {"external": True}
    said = str(result)
    assert "never to be seen" not in said
    assert "hush-hush" not in said
    assert "SCRAM" not in said
    for item in result["not_exported"]:
        assert set(item) == {"kind", "role", "object", "what", "reason"}
        if item["object"] is not None:
            assert set(item["object"]) == {"type", "schema", "name", "columns"}


def test_who_may_not_see_passwords_is_not_told_of_them(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE ROLE r LOGIN PASSWORD 'x'; CREATE ROLE reader LOGIN")
    assert skipped(db.export(tmp_path), "password") == [("password", "r", None)]
    result = db.run_export(login_user="reader")
    assert not result.failed, result
    assert result["not_exported"] == []


def test_records_of_passwords_are_no_comments_and_their_roles_keep_them(db: Database, tmp_path: Path) -> None:
    """A run takes a password of its own away where a role without login has none any more."""
    passwords = {"fingerprint_key": "0123456789abcdef0123456789abcdef", "fingerprint_store": "comment"}
    roles_with = "roles: [{name: a, password: of a, comment: Told}, {name: b, password: of b, login: false}]"
    assert db.reconcile(roles_with, **passwords).changed
    assert "fingerprint" in str(db.comment("a"))
    result = db.export(tmp_path)
    assert roles(result)["a"] == {"comment": "Told", "login": True}
    assert roles(result)["b"] == {"external": True}
    assert "fingerprint" not in result["yaml"]


def test_the_collections_own_table_is_left_out(db: Database, tmp_path: Path) -> None:
    key = {"fingerprint_key": "0123456789abcdef0123456789abcdef"}
    assert db.reconcile("roles: [{name: a, password: of a}]", **key).changed
    db.sql("CREATE ROLE reader; GRANT SELECT ON ALL TABLES IN SCHEMA role_reconcile TO reader")
    result = db.export(tmp_path)
    assert "role_reconcile" not in result["yaml"]


def test_a_column_of_a_sequence_keeps_its_schema_out(db: Database, tmp_path: Path) -> None:
    """No rule gives it, so a run would take it away: the schema stays out as a whole."""
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE SEQUENCE s.q; CREATE TABLE s.t (); GRANT SELECT ON s.t TO r")
    db.sql("GRANT SELECT (last_value) ON s.q TO r")
    result = db.export(tmp_path)
    assert skipped(result, "name") == [("schema", None, "s")]
    assert rules(result) == []
    assert "s" not in [schema["name"] for schema in result["manifest"]["schemas"]]


def test_privileges_on_the_row_type_of_a_table(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE ROLE r; CREATE TABLE t (a int)")
    db.sql("GRANT USAGE ON TYPE t TO r")
    assert skipped(db.export(tmp_path), "uncovered_type") == [("grant", "r", "t")]
    db.sql("REVOKE USAGE ON TYPE t FROM PUBLIC")
    assert skipped(db.export(tmp_path), "uncovered_type") == [("grant", None, "t"), ("grant", "r", "t")]


NAMES = ["on", "yes", "1e3", "0x1F", "~", "null", "2027-01-31", "a: b", "#x", "q\"'", "new\nline", "tab\t", "- a", "é",
         "\U0001f600", "\x07", "\u2028", "\ufeffx", "back\\slash", "!vault", "&a", "*a", "{schema}", "%", " lead"]  # fmt: skip


def test_names_survive_yaml(db: Database, tmp_path: Path) -> None:
    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    for name in NAMES:
        db.sql(
            f"CREATE ROLE {quoted(name)}; CREATE SCHEMA {quoted(name)}; CREATE TABLE {quoted(name)}.{quoted(name)} ()"
        )
        db.sql(f"GRANT SELECT ON {quoted(name)}.{quoted(name)} TO {quoted(name)}")
        db.connection.execute(f"COMMENT ON ROLE {quoted(name)} IS '{name.replace(chr(39), chr(39) * 2)}'")
    result = db.export(tmp_path)
    assert set(NAMES) <= set(roles(result))
    assert {rule[0] for rule in rules(result)} == set(NAMES)
    assert all(rule[0] == rule[2] == rule[3] for rule in rules(result))
    assert all(roles(result)[name]["comment"] == name for name in NAMES)


def test_the_schema_of_an_extension_is_not_declared(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA ext; CREATE TABLE ext.member (); CREATE VIEW ext.other AS SELECT 1 AS a"
    )
    db.sql("GRANT USAGE ON SCHEMA ext TO PUBLIC; ALTER EXTENSION plpgsql ADD SCHEMA ext")
    db.sql("ALTER EXTENSION plpgsql ADD TABLE ext.member; ALTER EXTENSION plpgsql ADD VIEW ext.other")
    try:
        assert rules(db.export(tmp_path)) == []
        # What somebody keeps in it makes it managed, and then everybody's privileges on it have to be there.
        db.sql("GRANT USAGE ON SCHEMA ext TO x; CREATE TABLE ext.own (); GRANT SELECT ON ext.own TO r")
        found = [("r", "table", "ext", "own", "SELECT"), ("x", "schema", None, "ext", "USAGE")]
        assert rules(db.export(tmp_path)) == found
        # The same where only a default privilege does.
        db.sql("DROP TABLE ext.own; ALTER DEFAULT PRIVILEGES IN SCHEMA ext GRANT SELECT ON TABLES TO r")
        result = db.export(tmp_path)
        assert rules(result) == [("x", "schema", None, "ext", "USAGE")]
        # Of a member that somebody changed all entries are there, by name.
        db.sql(
            "GRANT SELECT, INSERT ON ext.member TO r; GRANT SELECT ON ext.member TO x WITH GRANT OPTION; GRANT SELECT (a) ON ext.other TO x"
        )
        result = db.export(tmp_path)
        assert rules(result) == [
            ("r", "table", "ext", "member", "SELECT", "INSERT"),
            ("x", "schema", None, "ext", "USAGE"),
            ("x", "table", "ext", "member", "SELECT", "option"),
            ("x", "view", "ext", "other", "SELECT", "(a)"),
        ]
        assert [schema["name"] for schema in result["manifest"]["schemas"]] == ["public"]
    finally:
        db.sql("ALTER EXTENSION plpgsql DROP VIEW ext.other; ALTER EXTENSION plpgsql DROP TABLE ext.member")
        db.sql("ALTER EXTENSION plpgsql DROP SCHEMA ext")


def test_an_extension_that_took_something_from_public_and_somebody_who_gave_it_back(
    db: Database, tmp_path: Path
) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    db.sql(
        "CREATE FUNCTION s.g() RETURNS int LANGUAGE sql AS 'SELECT 1'; REVOKE EXECUTE ON FUNCTION s.f(), s.g() FROM PUBLIC"
    )
    db.sql("GRANT EXECUTE ON FUNCTION s.f() TO pg_monitor")
    db.sql(
        "INSERT INTO pg_init_privs SELECT oid, 'pg_proc'::regclass, 0, 'e', proacl FROM pg_proc"
        " WHERE pronamespace = 's'::regnamespace"
    )
    db.sql("ALTER EXTENSION plpgsql ADD FUNCTION s.f(); ALTER EXTENSION plpgsql ADD FUNCTION s.g()")
    try:
        assert [rule for rule in rules(db.export(tmp_path)) if rule[2] == "s"] == []
        db.sql("GRANT EXECUTE ON FUNCTION s.f() TO PUBLIC; GRANT EXECUTE ON FUNCTION s.f() TO r")
        assert [rule for rule in rules(db.export(tmp_path)) if rule[2] == "s"] == [
            ("PUBLIC", "function", "s", "f()", "EXECUTE"),
            ("pg_monitor", "function", "s", "f()", "EXECUTE"),
            ("r", "function", "s", "f()", "EXECUTE"),
        ]
        db.sql("REVOKE EXECUTE ON FUNCTION s.f() FROM pg_monitor")
        assert ("pg_monitor", "function", "s", "f()", "EXECUTE", "absent") in rules(db.export(tmp_path))
    finally:
        db.sql("ALTER EXTENSION plpgsql DROP FUNCTION s.f(); ALTER EXTENSION plpgsql DROP FUNCTION s.g()")


def test_routines_of_every_sort_and_signature(db: Database, tmp_path: Path) -> None:
    db.sql(
        'CREATE ROLE r; CREATE SCHEMA s; CREATE TYPE s."A b" AS ENUM (); CREATE SCHEMA "o.p"; CREATE TYPE "o.p".t AS (a int)',
        "CREATE FUNCTION s.f(a int, VARIADIC b text[]) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        'CREATE FUNCTION s.f("o.p".t, s."A b"[]) RETURNS int LANGUAGE sql AS \'SELECT 1\'',
        "CREATE FUNCTION s.f(timestamp(3) with time zone, double precision, char(3), \"char\") RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION s.\"F (x\"(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE PROCEDURE s.p(int) LANGUAGE sql AS 'SELECT 1'",
        "CREATE AGGREGATE s.agg(int) (SFUNC = int4pl, STYPE = int)",
        "CREATE FUNCTION s.nothing() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    )
    for routine in ("s.f(int, text[])", 's.f("o.p".t, s."A b"[])', 's.f(timestamptz, float8, bpchar, "char")',
                    's."F (x"(int)', "s.p(int)", "s.agg(int)"):  # fmt: skip
        db.sql(f"GRANT EXECUTE ON ROUTINE {routine} TO r")
    found = [rule[3] for rule in rules(db.export(tmp_path)) if rule[0] == "r" and rule[1] == "function"]
    assert found == [
        "F (x(integer)",
        "agg(integer)",
        'f("o.p".t, s."A b"[])',
        "f(integer, text[])",
        'f(timestamp with time zone, double precision, character, "char")',
        "p(integer)",
    ]
