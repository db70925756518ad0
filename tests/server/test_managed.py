# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stops an apply although it could run, and what is and is not managed."""

from __future__ import annotations

import pytest
from harness import Database

S = "schemas: [{name: s}]\n"
R = "roles: [{name: r}]\n" + S
OPTIONS = (None, "revoke", "keep")


def strangers(db: Database, count: int) -> None:
    names = ", ".join(f"x{number}" for number in range(count))
    db.sql(f"CREATE SCHEMA s; CREATE TABLE s.t (a int); {'; '.join(f'CREATE ROLE x{n} LOGIN' for n in range(count))}")
    db.sql(f"GRANT SELECT, INSERT ON s.t TO {names}")


def guarded(db: Database, manifest: str, *words: str) -> None:
    """Unset, the apply fails and check mode warns with the plan; written out, ``revoke`` passes."""
    before = db.snapshot()
    check = db.reconcile(manifest, check=True)
    assert not check.failed, check
    assert check.changed
    result = db.fails(manifest, "guard", *words, check_too=False)
    assert result.plan == check.sql
    said = " ".join(check.warnings)
    for word in words:
        assert word in said, f"{word} is not in {said}"
    kept = db.silent(manifest, undeclared_grantees="keep")
    assert kept.held(reason="undeclared_grantee")
    assert db.snapshot() == before
    assert db.converge(manifest, undeclared_grantees="revoke").changed


def test_more_than_twenty_undeclared_roles(db: Database) -> None:
    strangers(db, 21)
    guarded(db, S, "21")
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}


def test_twenty_are_fine(db: Database) -> None:
    strangers(db, 20)
    result = db.converge(S)
    assert result.summary["grants"] == {"granted": 0, "revoked": 40}
    assert len(result.sql) == 1, "one statement for all who lose the same"


def test_declared_roles_do_not_count(db: Database) -> None:
    strangers(db, 21)
    db.converge("roles: [" + ", ".join(f"{{name: x{number}, login: true}}" for number in range(21)) + "]\n" + S)
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}


def test_assumed_roles_do_not_count(db: Database) -> None:
    strangers(db, 21)
    db.converge(S, assume_roles=["x0"])
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}


def test_an_undeclared_role_that_is_connected(db: Database) -> None:
    strangers(db, 2)
    db.connect(user="x1")
    guarded(db, S, "x1", "connected")


@pytest.mark.parametrize(
    ("what", "setup"),
    [
        ("v", "CREATE VIEW e.v AS SELECT * FROM s.t; ALTER VIEW e.v OWNER TO x0"),
        ("m", "CREATE MATERIALIZED VIEW e.m AS SELECT * FROM s.t; ALTER MATERIALIZED VIEW e.m OWNER TO x0"),
        (
            "ruled",
            "CREATE TABLE e.ruled (a int); CREATE RULE rule AS ON INSERT TO e.ruled DO ALSO SELECT 1;"
            " ALTER TABLE e.ruled OWNER TO x0",
        ),
        (
            "f",
            "CREATE FUNCTION e.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'; ALTER FUNCTION e.f() OWNER TO x0",
        ),
    ],
)
def test_an_undeclared_role_whose_objects_run_with_its_privileges(db: Database, what: str, setup: str) -> None:
    strangers(db, 2)
    db.sql(f"CREATE SCHEMA e; GRANT ALL ON SCHEMA e TO x0; {setup}")
    guarded(db, S, "x0", what)


def test_an_ordinary_function_is_no_reason(db: Database) -> None:
    strangers(db, 2)
    db.sql("CREATE FUNCTION public.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION public.f() OWNER TO x0")
    assert db.converge(S).changed


def test_default_privileges_count_as_a_loss(db: Database) -> None:
    db.sql("CREATE ROLE o; CREATE ROLE x LOGIN; CREATE SCHEMA s AUTHORIZATION o")
    db.sql("ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO x")
    db.connect(user="x")
    guarded(db, "roles: [{name: o}]\nschemas: [{name: s, owner: o}]", "x")
    assert db.defaults() == {}


def test_additive_needs_no_guard(db: Database) -> None:
    strangers(db, 25)
    db.silent(S, reconciliation_mode="additive")


# Losing LOGIN


def test_losing_login_by_omission_while_connected(db: Database) -> None:
    db.sql("CREATE ROLE r LOGIN")
    other = db.connect(user="r")
    check = db.reconcile("roles: [{name: r}]", check=True)
    assert check.changed
    assert [text for text in check.warnings if " r " in text or '"r"' in text]
    db.fails("roles: [{name: r}]", "guard", "r", "login", check_too=False)
    assert db.attribute("r", "rolcanlogin") is True
    # undeclared_grantees has nothing to do with it.
    db.fails("roles: [{name: r}]", "guard", check_too=False, undeclared_grantees="revoke")
    db.converge("roles: [{name: r, login: false}]")
    assert db.attribute("r", "rolcanlogin") is False
    assert other.execute("SELECT 1").fetchall() == [(1,)]


def test_losing_login_without_a_session_is_a_warning(db: Database) -> None:
    db.sql("CREATE ROLE r LOGIN")
    result = db.converge("roles: [{name: r}]")
    assert [text for text in result.warnings if "r" in text and "login" in text.lower()]
    db.sql("ALTER ROLE r LOGIN")
    (warning,) = db.converge("roles: [{name: r, login: false}]").warnings
    assert warning.endswith("role r loses LOGIN: the manifest says login: false")


@pytest.mark.parametrize(
    ("setup", "word"),
    [
        ("VALID UNTIL '2020-01-01'", "valid"),
        ("CONNECTION LIMIT 3", "limit"),
        ("NOINHERIT", "inherit"),
    ],
)
def test_omissions_that_raise_access_warn(db: Database, setup: str, word: str) -> None:
    db.sql(f"CREATE ROLE raised {setup}")
    result = db.converge("roles: [{name: raised}]")
    assert [text for text in result.warnings if "raised" in text and word in text.lower()]


def test_the_executors_omitted_attributes_stay(db: Database) -> None:
    db.sql("CREATE ROLE ex SUPERUSER LOGIN CREATEDB CONNECTION LIMIT 4; CREATE ROLE g; GRANT g TO ex")
    result = db.silent("roles: [{name: ex}, {name: g}]", login_user="ex")
    assert result.held(reason="self_protection")
    assert db.members("g") == {"ex"}


# What is managed


def test_only_managed_schemas_are_touched(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE SCHEMA other; CREATE TABLE other.t (a int)"
    )
    db.sql(
        f"GRANT SELECT ON s.t, other.t TO r; GRANT USAGE ON SCHEMA s, other TO r; GRANT CREATE ON DATABASE {db.name} TO r"
    )
    result = db.converge(R)
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}
    assert db.acl("s", "schema") == {"postgres=UC/postgres"}
    assert "r=r/postgres" in (db.acl("other.t") or ())
    assert "r=U/postgres" in (db.acl("other", "schema") or ())
    assert "r=C/postgres" in (db.acl(db.name, "database") or ())
    assert [key for key in result.summary["managed"] if "other" in key or "database" in key] == []
    assert [key for key in result.summary["managed"] if key.endswith("s")]


def test_scope_schemas_stay_managed_without_a_rule(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA app_a; CREATE SCHEMA app_b; CREATE SCHEMA other")
    db.sql("GRANT USAGE ON SCHEMA app_a, app_b, other TO r")
    result = db.converge("roles: [{name: r}]\nscope: {schemas: ['app_*']}")
    assert db.acl("app_a", "schema") == db.acl("app_b", "schema") == {"postgres=UC/postgres"}
    assert "r=U/postgres" in (db.acl("other", "schema") or ())
    assert len(result.summary["managed"]) == 2
    # A pattern that matches nothing is no error.
    db.silent("roles: [{name: r}]\nscope: {schemas: ['nothing_*']}")


def test_a_schema_claimed_only_by_a_grant_warns(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE TABLE s.u (a int)")
    db.sql("GRANT SELECT, INSERT ON s.u TO x")
    manifest = (
        "roles: [{name: r}]\ngrants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}]"
    )
    result = db.converge(manifest)
    lost, warning = result.warnings
    assert lost.endswith("1 undeclared role loses 2 privileges and memberships: x 2")
    for word in ("schema s ", "grants[0]", "x 2"):
        assert word in warning
    assert db.acl("s.u") == {f"postgres={db.full}/postgres"}
    # Declared, there is nothing to warn of.
    assert not db.silent(manifest + "\nschemas: [{name: s}]").warnings


def test_absent_and_public_rules_manage_nothing(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE TABLE s.u (a int)")
    db.sql("GRANT SELECT ON s.t, s.u TO r, x; GRANT INSERT ON s.t TO PUBLIC; GRANT USAGE ON SCHEMA s TO x")
    result = db.converge(
        """
        roles: [{name: r}]
        grants:
          - {role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}, ensure: absent}
          - {role: PUBLIC, privileges: [INSERT], object: {type: table, schema: s, name: "*"}, ensure: absent}
        """
    )
    assert result.summary["managed"] == {}
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "x=r/postgres"}
    assert db.acl("s.u") == {f"postgres={db.full}/postgres", "r=r/postgres", "x=r/postgres"}


def test_the_database_is_managed_when_a_rule_names_it(db: Database) -> None:
    db.sql(f"CREATE ROLE r; CREATE ROLE x; GRANT CREATE, CONNECT ON DATABASE {db.name} TO r, x")
    db.silent("roles: [{name: r}]")
    result = db.converge("roles: [{name: r}]\ngrants: [{role: r, privileges: [CONNECT], object: {type: database}}]")
    assert db.acl(db.name, "database") == {"=Tc/postgres", "postgres=CTc/postgres", "r=c/postgres"}
    assert [key for key in result.summary["managed"] if db.name in key]


def test_ignored_roles_are_never_named(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE ROLE mon_a LOGIN; CREATE ROLE mon_b; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE ROLE o"
    )
    db.sql("GRANT SELECT ON s.t TO mon_a, mon_b; GRANT r TO mon_a; GRANT mon_b TO r")
    db.sql("ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO mon_a")
    db.connect(user="mon_a")
    base = "roles: [{name: r}, {name: o}]\nschemas: [{name: s, owner: o}]\n"
    result = db.converge(base + "scope: {ignore_roles: ['mon_*']}")
    assert "mon_" not in str([result.sql, result.withheld, result.warnings])
    assert {row[:2] for row in db.edges()} == {("r", "mon_a"), ("mon_b", "r")}
    assert {"mon_a=r/postgres", "mon_b=r/postgres"} <= (db.acl("s.t") or set())
    assert ("o", "s", "r") in db.defaults()
    db.rejects(base + "scope: {ignore_roles: ['mon_*', 'o']}", "o")


def test_predefined_and_provider_grantees_are_left_alone(db: Database) -> None:
    db.sql("CREATE ROLE rds_superuser; CREATE ROLE rdsx; CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    db.sql("GRANT SELECT ON s.t TO pg_monitor, rds_superuser, rdsx")
    result = db.converge(S)
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "pg_monitor=r/postgres", "rds_superuser=r/postgres"}
    assert {(item["role"], item["reason"]) for item in result.withheld} == {
        ("pg_monitor", "predefined"),
        ("rds_superuser", "provider"),
    }
    # A role that the manifest declares is what the manifest says, whatever its name.
    db.converge("roles: [{name: rds_superuser}]\n" + S)
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "pg_monitor=r/postgres"}


def test_a_rule_for_a_predefined_role(db: Database) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    db.converge(S + "grants: [{role: pg_monitor, privileges: [SELECT], object: {type: table, schema: s, name: t}}]")
    assert "pg_monitor=r/postgres" in (db.acl("s.t") or ())


# Roles of another run


def test_assumed_roles_need_not_exist_in_check_mode(db: Database) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    manifest = (
        R
        + """
memberships: [{role: r, members: [{name: later}]}]
grants: [{role: later, privileges: [SELECT], object: {type: table, schema: s, name: t}}]
"""
    )
    predicted = db.reconcile(manifest, check=True, assume_roles=["later"])
    assert not predicted.failed, predicted
    assert not predicted.matching("CREATE ROLE .*later")
    db.fails(manifest, "object_missing", "later", check_too=False, assume_roles=["later"])
    db.sql("CREATE ROLE later LOGIN CREATEDB CONNECTION LIMIT 3")
    result = db.converge(manifest, assume_roles=["later"])
    assert result.sql == predicted.sql
    assert db.attribute("later", "rolconnlimit") == 3
    assert db.members("r") == {"later"}


def test_assumed_roles_are_managed_by_nobody_here(db: Database) -> None:
    db.sql(
        "CREATE ROLE a; CREATE ROLE b; CREATE ROLE r; GRANT a TO b; GRANT r TO a; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO a"
    )
    result = db.converge(R, assume_roles=["a", "b"])
    # The edge between the two is not this run's; the member of a managed group is, and the privilege here as well.
    assert {row[:2] for row in db.edges()} == {("a", "b")}
    assert db.acl("s", "schema") == {"postgres=UC/postgres"}
    assert "ALTER ROLE" not in " ".join(result.sql)
