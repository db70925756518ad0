# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases ATT: role attributes."""

from __future__ import annotations

import pytest
from harness import UNCONNECTED, Database


@pytest.mark.parametrize("want", ["{name: r}", "{name: r, connection_limit: -1}"])
def test_ATT_01_unsetting_the_connection_limit(db: Database, want: str) -> None:
    db.sql("CREATE ROLE r CONNECTION LIMIT 5")
    result = db.converge(f"roles: [{want}]")
    assert len(result.sql) == 1
    assert result.matching("CONNECTION LIMIT +-1")
    assert db.attribute("r", "rolconnlimit") == -1


def test_ATT_02_limit_zero(db: Database) -> None:
    db.converge("roles: [{name: r, connection_limit: 0}]")
    assert db.attribute("r", "rolconnlimit") == 0
    db.sql("ALTER ROLE r CONNECTION LIMIT 4")
    db.converge("roles: [{name: r, connection_limit: 0}]")
    assert db.attribute("r", "rolconnlimit") == 0


@UNCONNECTED
@pytest.mark.parametrize("limit", [-2, 99999999999, "many", True, 1.5])
def test_ATT_02_impossible_limits(db: Database, limit: object) -> None:
    db.rejects({"roles": [{"name": "r", "connection_limit": limit}]}, "roles[0].connection_limit")


def test_ATT_01_every_limit_after_every_other(db: Database) -> None:
    limits = (-1, 0, 1, 2147483647)
    pairs = {f"r{have}to{limit}": (have, limit) for have in (None, *limits) for limit in limits}
    for name, (have, _limit) in pairs.items():
        if have is not None:
            db.sql(f'CREATE ROLE "{name}" CONNECTION LIMIT {have}')
    result = db.converge(
        {"roles": [{"name": name, "connection_limit": limit} for name, (_have, limit) in pairs.items()]}
    )
    assert len(result.sql) == len(pairs) - len(limits)
    for name, (_have, limit) in pairs.items():
        assert db.attribute(name, "rolconnlimit") == limit


@pytest.mark.parametrize("want", ["{name: r}", "{name: r, valid_until: infinity}"])
@pytest.mark.parametrize("have", ["'infinity'", "'-infinity'", None, "'2020-01-01 00:00:00+00'"])
def test_ATT_03_infinity(db: Database, want: str, have: str | None) -> None:
    db.sql("CREATE ROLE r" + (f" VALID UNTIL {have}" if have else ""))
    result = db.converge(f"roles: [{want}]")
    assert len(result.sql) == (0 if have in (None, "'infinity'") else 1)
    assert db.value("SELECT coalesce(rolvaliduntil, 'infinity') = 'infinity' FROM pg_roles WHERE rolname = 'r'") is True


@pytest.mark.parametrize(
    "value",
    ["2030-01-31T23:59:59+01:00", "2030-01-31T22:59:59Z", "2030-01-31 22:59:59.000001+00", "2030-01-31T17:59:59-05"],
)
def test_ATT_03_points_in_time(db: Database, value: str) -> None:
    db.sql(
        "CREATE ROLE ex SUPERUSER LOGIN; ALTER ROLE ex SET DateStyle = 'SQL, DMY'; "
        "ALTER ROLE ex SET TimeZone = 'Asia/Tokyo'"
    )
    result = db.converge({"roles": [{"name": "r", "valid_until": value}]}, login_user="ex")
    assert result.changed
    assert db.value("SELECT rolvaliduntil = %s::timestamptz FROM pg_roles WHERE rolname = 'r'", value) is True
    result = db.converge({"roles": [{"name": "r", "password_valid_until": "2031-01-01T00:00:00Z"}]}, login_user="ex")
    assert len(result.sql) == 1


@pytest.mark.parametrize("have", ["20000-01-01 00:00+00", "294276-12-31 23:59:59+00", "0044-03-15 00:00+00 BC"])
def test_ATT_03_instants_that_python_has_no_type_for(db: Database, have: str) -> None:
    """A role that nobody declares must not stop a run, and one that is declared can be put right and shown."""
    db.sql(f"CREATE ROLE r VALID UNTIL '{have}'; CREATE ROLE elsewhere VALID UNTIL '{have}'")
    (diff,) = db.reconcile("roles: [{name: r}]", check=True, diff=True).diff
    assert "year" in diff["before"]
    assert len(db.converge("roles: [{name: r}]").sql) == 1


@pytest.mark.parametrize(
    "value",
    ["0001-01-01T00:00:00Z", "0044-03-15T12:00:00+05:45", "1582-10-04T00:00:00Z", "1969-12-31T23:59:59.999999Z",
     "2030-03-31T02:45:00+12:45", "2030-10-27T02:30:00.5+02:00", "9999-12-31T23:59:59.999999Z"],
)  # fmt: skip
@pytest.mark.parametrize("where", ["ROLE ex", "DATABASE {}"])
def test_ATT_03_sessions_with_odd_dates(db: Database, value: str, where: str) -> None:
    name = db.value("SELECT quote_ident(current_database())")
    db.sql("CREATE ROLE ex SUPERUSER LOGIN")
    for setting in ("DateStyle = 'German, DMY'", "TimeZone = 'Pacific/Chatham'", "IntervalStyle = 'sql_standard'"):
        db.sql(f"ALTER {where.format(name)} SET {setting}")
    db.converge({"roles": [{"name": "r", "valid_until": value}]}, login_user="ex")
    stored = "SELECT to_char(rolvaliduntil AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US') FROM pg_roles WHERE rolname = 'r'"
    # Year 1 to 9999 in UTC, so that it is the same whatever the session.
    assert db.value(
        f"SELECT ({stored}) = to_char(%s::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US')", value
    )
    db.sql("DROP ROLE r; CREATE ROLE r VALID UNTIL 'infinity'")
    assert len(db.converge({"roles": [{"name": "r", "valid_until": value}]}, login_user="ex").sql) == 1


@pytest.mark.parametrize(
    ("until", "words"),
    [("now() - interval '1 second'", "is in the past"), ("now() + interval '13 days 23 hours'", "is less than 14 days away"),
     ("now() + interval '14 days 1 hour'", None), ("'infinity'::timestamptz", None)],
)  # fmt: skip
def test_ATT_an_expiry_that_is_over_or_near_is_a_warning(db: Database, until: str, words: str | None) -> None:
    value = db.value(f"SELECT to_char(({until}) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')") or "infinity"
    result = db.converge({"roles": [{"name": "near", "valid_until": value}, {"name": "other"}]})
    found = [text for text in result.warnings if "valid_until" in text]
    assert len(found) == (1 if words else 0)
    if words:
        assert "role near: valid_until " in found[0]
        assert found[0].endswith(words)


def test_ATT_06_only_what_differs_is_altered(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN CREATEROLE")
    db.connect(user="adm").execute("CREATE ROLE r")
    result = db.converge(
        """
        roles:
          - {name: r, superuser: false, replication: false, bypassrls: false, createdb: false, connection_limit: 3}
        """,
        login_user="adm",
    )
    assert len(result.sql) == 1
    assert "SUPERUSER" not in result.sql[0]
    assert "CREATEDB" not in result.sql[0]
    assert db.attribute("r", "rolconnlimit") == 3


def test_ATT_06_an_executor_creates_a_role_without_special_attributes(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN CREATEROLE")
    db.converge("roles: [{name: n, superuser: false, replication: false, login: true}]", login_user="adm")
    assert db.attribute("n", "rolcanlogin") is True


@pytest.mark.parametrize("exists", [True, False])
def test_ATT_07_list_settings(db: Database, exists: bool) -> None:
    """More in test_config.py."""
    if exists:
        # What others leave when they send a list as one literal.
        db.sql("CREATE ROLE r; ALTER ROLE r SET search_path = 'app-x, \"$user\", public'")
    db.converge(
        {
            "roles": [
                {
                    "name": "r",
                    "config": {"search_path": 'app-x, "$user", public', "session_preload_libraries": "a, b c"},
                }
            ]
        }
    )
    assert set(db.attribute("r", "rolconfig")) == {
        'search_path="app-x", "$user", public',
        'session_preload_libraries=a, "b c"',
    }


def test_ATT_07_without_the_key_settings_are_nobodys_business(db: Database) -> None:
    db.sql("CREATE ROLE r; ALTER ROLE r SET work_mem = '8MB'")
    db.silent("roles: [{name: r}]")


@pytest.mark.parametrize("comment", [None, "", 'it\'s "new"\nline', "by hand"])
def test_ATT_09_comment(db: Database, comment: str | None) -> None:
    db.sql("CREATE ROLE r; COMMENT ON ROLE r IS 'by hand'")
    result = db.converge({"roles": [{"name": "r", **({} if comment is None else {"comment": comment})}]})
    assert len(result.sql) == (0 if comment in (None, "by hand") else 1)
    stored = db.value("SELECT shobj_description('r'::regrole, 'pg_authid')")
    assert stored == ("by hand" if comment is None else comment or None)


def test_ATT_09_comment_of_a_new_role(db: Database) -> None:
    text = 'it\'s "new"\n\ttwo \\ lines; -- %s ü€'
    result = db.converge({"roles": [{"name": "r", "comment": text}, {"name": "plain", "comment": ""}]})
    assert len(result.matching("COMMENT ON ROLE")) == 1
    assert db.value("SELECT shobj_description('r'::regrole, 'pg_authid')") == text
    db.converge({"roles": [{"name": "r", "comment": ""}]})
    assert db.value("SELECT count(*) FROM pg_shdescription WHERE objoid = 'r'::regrole") == 0


@pytest.mark.parametrize("mode", ["authoritative", "adopt", "additive"])
def test_ATT_10_omitted_attributes(db: Database, mode: str) -> None:
    """An omitted attribute means PostgreSQL's default, except in additive mode."""
    db.sql("CREATE ROLE r LOGIN NOINHERIT CREATEDB CONNECTION LIMIT 7; COMMENT ON ROLE r IS 'old'")
    result = db.converge("roles: [{name: r, comment: new}]", reconciliation_mode=mode)
    row = db.query("SELECT rolcanlogin, rolinherit, rolcreatedb, rolconnlimit FROM pg_roles WHERE rolname = 'r'")
    if mode == "additive":
        assert result.sql == []
        assert row == [(True, False, True, 7)]
        assert result.held(reason="mode")
        return
    assert row == [(False, True, False, -1)]
    assert result.summary["roles"] == {"created": 0, "altered": 1, "dropped": 0}
    # LOGIN by omission, and omissions that raise access, are worth a warning with the role's name.
    assert [text for text in result.warnings if "r" in text and "login" in text.lower()]


def test_ATT_10_attributes_of_external_roles_stay(db: Database) -> None:
    db.sql("CREATE ROLE e LOGIN CREATEDB CONNECTION LIMIT 7")
    db.silent("roles: [{name: e, external: true}]")


@pytest.mark.parametrize("attribute", ["superuser", "createdb", "createrole", "replication", "bypassrls", "login"])
@pytest.mark.parametrize("exists", [True, False])
def test_ATT_each_attribute(db: Database, attribute: str, exists: bool) -> None:
    column = {"superuser": "rolsuper", "login": "rolcanlogin"}.get(attribute, "rol" + attribute)
    if exists:
        db.sql("CREATE ROLE r")
    db.converge(f"roles: [{{name: r, {attribute}: true}}]")
    assert db.attribute("r", column) is True
    if attribute != "superuser":
        db.converge("roles: [{name: r}]")
        assert db.attribute("r", column) is False


def test_ATT_11_columns_are_asked_for_by_name(db: Database) -> None:
    with db.statements() as sent:
        db.reconcile("roles: [{name: r}]", check=True)
    assert any("pg_roles" in statement or "pg_authid" in statement for statement in sent)
    assert not [statement for statement in sent if "SELECT *" in statement.upper() and "PG_ROLES" in statement.upper()]


def test_ATT_pg_authid_is_not_read(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN CREATEROLE")
    with db.statements() as sent:
        db.converge("roles: [{name: r}]", login_user="adm")
    assert not [statement for statement in sent if "FROM pg_authid" in statement or "FROM pg_shadow" in statement]
