# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What somebody found who tried to break the module with nothing but its documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import UNCONNECTED, Database


@pytest.mark.versions(min=16)
def test_options_of_one_membership_are_granted_at_once(db: Database) -> None:
    """Raised options and kept ones would be two grants of one row, the second undoing the first."""
    db.sql("CREATE ROLE g; CREATE ROLE adm LOGIN; CREATE ROLE m1; CREATE ROLE m2; GRANT g TO adm WITH ADMIN OPTION")
    db.sql(
        "SET ROLE adm; GRANT g TO m1; GRANT g TO m2 WITH ADMIN OPTION; RESET ROLE; SET ROLE m2; GRANT g TO m1; RESET ROLE"
    )
    result = db.converge(
        "roles: [{name: g}, {name: m1}, {name: adm, login: true}, {name: m2}]\n"
        "memberships: [{role: g, members: [{name: m1, admin: true}, {name: m2}, {name: adm}]}]"
    )
    assert len(result.matching('^GRANT "g" TO .*"m1"')) == 1
    assert db.query(
        "SELECT bool_or(admin_option), bool_or(inherit_option), bool_or(set_option) FROM pg_auth_members"
        " WHERE roleid = 'g'::regrole AND member = 'm1'::regrole"
    ) == [(True, True, True)]


@pytest.mark.versions(min=16)
def test_options_from_a_grantor_that_goes_join_the_new_ones(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE a; CREATE ROLE c; GRANT g TO a WITH ADMIN TRUE, INHERIT FALSE, SET FALSE")
    db.sql("SET ROLE a; GRANT g TO c WITH SET FALSE; RESET ROLE")
    db.converge(
        "roles: [{name: g}, {name: a}, {name: c}]\n"
        "memberships: [{role: g, members: [{name: a, inherit: true}, {name: c, set: true, admin: true}]}]"
    )


def test_a_point_in_time_that_leaves_the_calendar_in_utc(db: Database) -> None:
    for text in ("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+01:00"):
        result = db.rejects(f"roles: [{{name: e, valid_until: '{text}'}}]", "valid_until", "9999")
        assert result.problems[0]["path"] == "roles[0].valid_until"
    db.converge("roles: [{name: e, valid_until: '9999-12-31T23:59:59Z'}]")


def test_argument_types_that_cannot_be_read_are_named_with_their_rule(db: Database) -> None:
    db.sql("CREATE SCHEMA s; CREATE FUNCTION s.f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'")
    rule = "{role: r, privileges: [EXECUTE], object: {type: function, schema: s, name: 'f(%s)'}}"
    manifest = f"roles: [{{name: r}}]\ngrants: [{rule % 'int'}, {rule % 'ty, s.T y[]'}]"
    result = db.fails(manifest, "object_missing", "T y")
    assert [problem["path"] for problem in result.problems] == ["grants[1].object.name"]


def test_only_a_rule_that_names_it_warns_about_an_owners_privileges(db: Database) -> None:
    db.sql(
        "CREATE ROLE o; CREATE SCHEMA s AUTHORIZATION o; SET ROLE o; CREATE TABLE s.t1(a int); CREATE TABLE s.t2(); RESET ROLE"
    )
    absent = "{role: o, privileges: [SELECT], object: {type: table, schema: s, name: %s}, ensure: absent}"
    present = "{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t1}}"
    roles = "roles: [{name: o}, {name: r}]\ngrants: "
    every = absent % "'*'"
    assert not db.converge(f"{roles}[{every}, {present}]").warnings
    warnings = db.converge(f"{roles}[{absent % 't2'}]", undeclared_grantees="keep").warnings
    assert [warning for warning in warnings if "o owns s.t2" in warning]


def test_names_that_are_not_utf8_are_no_obstacle(db: Database) -> None:
    """Roles are shared by databases of different encodings, so such a name can be met anywhere."""
    other = f"{db.name}_x"
    db.sql(f"CREATE DATABASE {other} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    session = db.connect(dbname=other)
    session.execute("SET client_encoding = 'SQL_ASCII'")
    session.execute(b'CREATE ROLE "raw_\xe9"; CREATE SCHEMA s; CREATE TABLE s.t(a int); CREATE TABLE s."t_\xe9"(a int)')
    session.execute(b'GRANT SELECT ON s.t TO "raw_\xe9"')
    try:
        roles = "roles: [{name: a, comment: é}]\n"
        assert db.reconcile(roles).changed
        assert not db.reconcile(roles).changed
        # Where such a name is in the way, the run says which it is.
        grant = "grants: [{role: a, privileges: [SELECT], object: {type: table, schema: s, name: %s}}]\n"
        strict = {"login_db": other, "undeclared_grantees": "revoke"}
        for check in (True, False):
            result = db.reconcile(roles + grant % "t", check=check, **strict)
            assert result.error_code == "not_supported"
            assert "raw_" in result.msg
        ignoring = roles + "scope: {ignore_roles: ['raw_*']}\n"
        assert db.reconcile(ignoring + grant % "t", **strict).changed
        assert not db.reconcile(ignoring + grant % "t", **strict).changed
        result = db.reconcile(ignoring + grant % "'*'", **strict)
        assert result.error_code == "not_supported"
        assert "t_" in result.msg
        # What is only reported has no statement.
        result = db.reconcile(roles + grant % "t", login_db=other, undeclared_grantees="keep")
        assert [item["sql"] for item in result.withheld] == [""]
    finally:
        session.execute(b'DROP OWNED BY "raw_\xe9"; DROP ROLE "raw_\xe9"')
        session.close()
        db.sql(f"DROP DATABASE {other}")


def test_taking_a_table_from_somebody_takes_its_columns_too(db: Database) -> None:
    """As REVOKE does. A column that another rule gives stays."""
    db.sql("CREATE ROLE k; CREATE SCHEMA s; CREATE TABLE s.t(i int, pw text); GRANT SELECT ON s.t TO PUBLIC")
    db.sql("GRANT SELECT (pw) ON s.t TO PUBLIC; GRANT UPDATE (pw) ON s.t TO k; GRANT SELECT (i) ON s.t TO k")
    absent = "{role: %s, privileges: [ALL], object: {type: table, schema: s, name: %s}, ensure: absent}"
    kept = "{role: k, privileges: [SELECT], columns: [i], object: {type: table, schema: s, name: t}}"
    everyone, k = absent % ("PUBLIC", "'*'"), absent % ("k", "t")
    db.converge(f"roles: [{{name: k}}]\ngrants: [{everyone}, {k}, {kept}]")
    assert not db.column_acl("s.t", "pw")
    assert db.column_acl("s.t", "i") == {"k=r/postgres"}


def test_a_connected_member_of_an_undeclared_group_counts(db: Database) -> None:
    db.sql("CREATE ROLE grp; CREATE ROLE u LOGIN; GRANT grp TO u; CREATE SCHEMA s; CREATE TABLE s.t(i int)")
    db.sql("GRANT SELECT ON s.t TO grp")
    session = db.connect(user="u")
    manifest = "roles: [{name: a}]\nschemas: [{name: s}]"
    result = db.fails(manifest, "guard", "grp", "u", "connected", check_too=False)
    assert result.problems[0]["role"] == "grp"
    session.close()
    db.converge(manifest, undeclared_grantees="revoke")


@pytest.mark.versions(min=16)
def test_the_grantor_that_stands_in_the_way_is_said_first(db: Database) -> None:
    """ADMIN OPTION alone would not help, so its GRANT is not what the message asks for."""
    db.sql("CREATE ROLE adm LOGIN CREATEROLE", "CREATE ROLE e", "CREATE ROLE b", "GRANT e TO b")
    result = db.fails("roles: [{name: e}]", "insufficient_privilege", "granted by postgres", login_user="adm")
    assert "GRANT" not in str(result.problems[0]["hint"])


@pytest.mark.versions(min=16)
def test_no_hint_asks_for_a_circle_of_memberships(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN CREATEROLE", "CREATE ROLE f", "GRANT adm TO f")
    manifest = "roles: [{name: f, connection_limit: 5}]"
    result = db.fails(manifest, "insufficient_privilege", "no ADMIN OPTION", login_user="adm")
    assert result.problems[0]["hint"] == "Run as a superuser."


KEY = {"fingerprint_key": "a key that only this test knows"}
LONG = "Zq7-gamma-secret"


@pytest.mark.parametrize("setting", ["plpgsql.bogus = 1", "plpgsql.variable_conflict = 'bogus'"])
def test_a_bad_setting_of_plpgsql_does_not_stop_a_password(db: Database, setting: str) -> None:
    """PL/pgSQL, which hides the password, warns about it when it is loaded."""
    db.sql("CREATE ROLE adm LOGIN SUPERUSER", f"ALTER ROLE adm SET {setting}")
    db.converge({"roles": [{"name": "r", "password": LONG}]}, login_user="adm", **KEY)
    assert db.logs_in("r", LONG)


@UNCONNECTED
def test_name_and_password_the_wrong_way_round(db: Database) -> None:
    result = db.rejects({"roles": [{"name": "r", "login": True}]}, "role's name", passwords={LONG: "r"}, **KEY)
    assert LONG not in str(result)


@UNCONNECTED
@pytest.mark.parametrize("field", [{"comment": LONG}, {"comment": f"see {LONG}"}, {"config": {"my.secret": LONG}}])
def test_a_password_in_a_comment_or_a_setting(db: Database, field: dict[str, object]) -> None:
    result = db.rejects({"roles": [{"name": "r", "password": LONG, **field}]}, "in clear text", **KEY)
    assert LONG not in str(result)


@UNCONNECTED
@pytest.mark.parametrize("field", ["login", "connection_limit", "valid_until", "password_format", "superuser"])
def test_a_secret_in_the_wrong_field_is_not_shown(db: Database, field: str) -> None:
    for more in ({}, {"password": LONG}):
        result = db.rejects({"roles": [{"name": "r", field: LONG, **more}]}, field, **KEY)
        assert LONG not in str(result)


@UNCONNECTED
@pytest.mark.parametrize("option", ["login_db", "connect_params"])
def test_a_connection_string_is_no_database(db: Database, option: str) -> None:
    address = f"postgresql://postgres:{LONG}@127.0.0.1:1/d"
    options = (
        {"login_db": address} if option == "login_db" else {"login_db": None, "connect_params": {"dbname": address}}
    )
    result = db.rejects({"roles": [{"name": "r"}]}, "connection string", **options)
    assert LONG not in str(result)


@UNCONNECTED
def test_a_key_file_that_cannot_be_made_stops_check_mode_too(db: Database, tmp_path: Path) -> None:
    (tmp_path / "key").symlink_to(tmp_path / "nowhere")
    role = {"roles": [{"name": "r", "password": LONG}]}
    db.rejects(role, "cannot be made", fingerprint_key_file=str(tmp_path / "key"))


def test_a_session_role_that_the_login_may_not_set_is_a_problem(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN")
    result = db.fails("roles: [{name: r}]", "insufficient_privilege", login_user="adm", session_role="postgres")
    assert [problem["role"] for problem in result.problems] == ["postgres"]


def test_an_executors_own_missing_password_is_no_news(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN CREATEROLE")
    result = db.reconcile("roles: [{name: adm, createrole: true}]", login_user="adm")
    assert not [item for item in result.withheld if "PASSWORD" in item["sql"]]


def test_what_the_plan_gives_on_a_schema_comes_before_what_needs_it(db: Database) -> None:
    """The executor owns a sequence in a schema that it cannot use before the plan, by way of PUBLIC, lets it."""
    db.sql(
        "CREATE ROLE o; CREATE ROLE ex LOGIN NOINHERIT; GRANT o TO ex; CREATE ROLE x; CREATE SCHEMA s AUTHORIZATION o;"
        "CREATE SEQUENCE s.q; ALTER SEQUENCE s.q OWNER TO ex"
    )
    db.converge(
        "roles: [{name: x}]\n"
        "grants:\n"
        "  - {role: x, privileges: [USAGE], object: {type: sequence, schema: s, name: q}}\n"
        "  - {role: PUBLIC, privileges: [USAGE], object: {type: schema, name: s}}\n",
        login_user="ex",
        reconciliation_mode="additive",
    )


# Before 16 a member inherits all of its groups, the owner too, or none.
@pytest.mark.parametrize(
    "how", ["schema", "table", "declared without", pytest.param("inherited", marks=pytest.mark.versions(min=16))]
)
def test_nothing_is_granted_with_an_option_that_the_plan_takes_away(db: Database, how: str) -> None:
    """The executor could grant by itself, but what it gave would hang on a grant option that the same plan revokes."""
    newer = db.version >= 16
    db.sql(
        "CREATE ROLE adm LOGIN NOINHERIT; CREATE ROLE o; CREATE ROLE o2; CREATE ROLE r; CREATE SCHEMA s AUTHORIZATION o;"
        "CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO o; GRANT o TO adm"
        + (" WITH INHERIT FALSE, SET TRUE" if newer else "")
    )
    usage = "{role: %s, privileges: [USAGE], object: {type: schema, name: s}}"
    grants = usage % "r"
    if how == "table":
        db.sql("GRANT USAGE ON SCHEMA s TO adm; GRANT SELECT ON s.t TO adm WITH GRANT OPTION")
        grants = f"{usage % 'adm'}, {{role: r, privileges: [SELECT], object: {{type: table, schema: s, name: t}}}}"
    elif how == "inherited":
        db.sql("GRANT USAGE ON SCHEMA s TO o2 WITH GRANT OPTION; GRANT o2 TO adm WITH INHERIT TRUE, SET TRUE")
    else:
        db.sql("GRANT USAGE ON SCHEMA s TO adm WITH GRANT OPTION")
        if how == "declared without":
            grants += f", {usage % 'adm'}"
    result = db.converge(f"grants: [{grants}]", login_user="adm", assume_roles=["adm", "o", "o2", "r"])
    assert result.sql[0] == 'SET LOCAL ROLE "o"'
    # Without the way to the owner it is known beforehand.
    db.sql("REVOKE o FROM adm; REVOKE ALL ON s.t FROM r; REVOKE ALL ON SCHEMA s FROM r")
    if how == "table":
        db.sql("GRANT SELECT ON s.t TO adm WITH GRANT OPTION")
    else:
        db.sql(f"GRANT USAGE ON SCHEMA s TO {'o2' if how == 'inherited' else 'adm'} WITH GRANT OPTION")
    db.fails(f"grants: [{grants}]", "insufficient_privilege", login_user="adm", assume_roles=["adm", "o", "o2", "r"])
