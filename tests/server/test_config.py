# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of roles (``config``): as a superuser and as a CREATEROLE admin."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml
from harness import UNCONNECTED, Database, Result


def stored(db: Database, role: str = "r") -> set[str]:
    """What ALTER ROLE ... SET has left for every database."""
    rows = db.query(
        "SELECT unnest(setconfig) FROM pg_db_role_setting WHERE setrole = to_regrole(%s) AND setdatabase = 0", role
    )
    return {text for (text,) in rows}


def wanted(config: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"roles": [{"name": "r", "config": config, **more}]}


@pytest.fixture(params=["postgres", "adm"])
def user(db: Database, request: pytest.FixtureRequest) -> str:
    """A superuser, and an admin without superuser who has the role r."""
    db.sql("CREATE ROLE adm LOGIN CREATEROLE")
    return str(request.param)


def make_role(db: Database, user: str, *scripts: str) -> None:
    connection = db.connect(user=user)
    for script in ("CREATE ROLE r", *scripts):
        connection.execute(script)  # type: ignore[call-overload]
    connection.close()


@pytest.mark.parametrize("exists", [True, False])
def test_settings_on_create_and_on_change(db: Database, user: str, exists: bool) -> None:
    if exists:
        make_role(db, user, "ALTER ROLE r SET work_mem = '8MB'", "ALTER ROLE r SET lock_timeout = '7s'")
    config = {"work_mem": "64MB", "lock_timeout": "7s", "enable_seqscan": False, "jit": True, "seq_page_cost": 1.25,
              "statement_timeout": 60000}  # fmt: skip
    result = db.converge(wanted(config), login_user=user)
    assert stored(db) == {
        "work_mem=64MB", "lock_timeout=7s", "enable_seqscan=off", "jit=on", "seq_page_cost=1.25",
        "statement_timeout=60000",
    }  # fmt: skip
    # Only what differs is sent, one statement for each setting.
    assert len(result.matching("ALTER ROLE")) == (5 if exists else 6)
    assert result.summary["roles"] == {"created": 0 if exists else 1, "altered": 1 if exists else 0, "dropped": 0}


def test_a_given_dict_is_the_whole_truth(db: Database, user: str) -> None:
    make_role(db, user, "ALTER ROLE r SET work_mem = '8MB'", "ALTER ROLE r SET lock_timeout = '7s'")
    db.silent("roles: [{name: r}]", login_user=user)
    db.silent(wanted({"work_mem": "8MB", "lock_timeout": "7s"}), login_user=user)
    result = db.converge(wanted({"work_mem": "8MB"}), login_user=user)
    assert result.sql == ['ALTER ROLE "r" RESET "lock_timeout"']
    assert stored(db) == {"work_mem=8MB"}
    # null is the same as leaving the setting out
    assert db.converge(wanted({"work_mem": None}), login_user=user).sql == ['ALTER ROLE "r" RESET "work_mem"']
    assert stored(db) == set()
    db.silent(wanted({}), login_user=user)


def test_all_are_reset_one_by_one(db: Database) -> None:
    db.sql("CREATE ROLE r; ALTER ROLE r SET work_mem = '8MB'; ALTER ROLE r SET log_statement = 'all'; "
           "ALTER ROLE r SET app.token = 'a=b'; ALTER ROLE r SET role = 'r'")  # fmt: skip
    result = db.converge(wanted({}))
    assert len(result.sql) == 4
    assert not result.matching("RESET ALL")
    assert stored(db) == set()


def test_settings_for_one_database_are_not_touched(db: Database) -> None:
    name = db.value("SELECT quote_ident(current_database())")
    db.sql(f"CREATE ROLE r; ALTER ROLE r IN DATABASE {name} SET work_mem = '8MB'; ALTER ROLE r SET jit = 'off'")
    db.converge(wanted({}))
    assert db.query("SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'r'::regrole") == [(["work_mem=8MB"],)]
    db.converge(wanted({"work_mem": "9MB"}))
    assert stored(db) == {"work_mem=9MB"}
    assert db.query(
        "SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'r'::regrole AND setdatabase <> 0"
    ) == [(["work_mem=8MB"],)]  # fmt: skip


PATHS = {
    'app-x, "$user", public': 'search_path="app-x", "$user", public',
    "public": "search_path=public",
    " public ,pg_catalog": "search_path=public, pg_catalog",
    "": 'search_path=""',
    '""': 'search_path=""',
    "App": 'search_path="App"',
    "$user": 'search_path="$user"',
    'a b, "c,d", "e""f", user': 'search_path="a b", "c,d", "e""f", "user"',
}


def test_search_path(db: Database, user: str) -> None:
    """On roles that exist and on new ones."""
    names = {name: text for n, text in enumerate(PATHS) for name in (f"old{n}", f"new{n}")}
    connection = db.connect(user=user)
    for name in names:
        if name.startswith("old"):
            connection.execute(f"CREATE ROLE {name}")
            connection.execute(f"ALTER ROLE {name} SET search_path = 'one, element'")
    connection.close()
    db.converge({"roles": [{"name": n, "config": {"search_path": text}} for n, text in names.items()]}, login_user=user)
    assert {name: stored(db, name) for name in names} == {name: {PATHS[text]} for name, text in names.items()}
    # What is stored can be declared, too.
    written = {name: PATHS[text].split("=", 1)[1] for name, text in names.items()}
    db.silent({"roles": [{"name": n, "config": {"SEARCH_path": text}} for n, text in written.items()]}, login_user=user)


def test_a_search_path_from_the_session(db: Database) -> None:
    """FROM CURRENT stores a list as the configuration wrote it, names in any case."""
    db.sql("CREATE ROLE r; SELECT set_config('search_path', 'App,\"B c\" , $user', false); "
           "ALTER ROLE r SET search_path FROM CURRENT")  # fmt: skip
    assert stored(db) == {'search_path=App,"B c" , $user'}
    db.silent(wanted({"search_path": 'app, "B c", $user'}))
    assert db.converge(wanted({"search_path": 'App, "B c", $user'})).changed
    assert stored(db) == {'search_path="App", "B c", "$user"'}


def test_other_lists(db: Database) -> None:
    config = {"session_preload_libraries": "a, b c", "temp_tablespaces": "", "DateStyle": "ISO,DMY"}
    db.converge(wanted(config))
    assert stored(db) == {'session_preload_libraries=a, "b c"', 'temp_tablespaces=""', "DateStyle=ISO,DMY"}
    db.silent(wanted({**config, "DateStyle": "iso, dmy"}))
    db.converge(wanted({}))


@pytest.mark.versions(min=16)
def test_createrole_self_grant(db: Database, user: str) -> None:
    make_role(db, user, "ALTER ROLE r SET createrole_self_grant = 'set, inherit'")
    db.silent(wanted({"createrole_self_grant": "set,inherit"}), login_user=user)
    db.converge(wanted({"createrole_self_grant": "set"}), login_user=user)
    assert stored(db) == {"createrole_self_grant=set"}


AWKWARD = [
    "it's",
    'a "b"',
    "back\\slash",
    "two\nlines",
    "tab\t",
    "a=b=c",
    "",
    " ",
    "{schema}",
    "%s",
    "ü€",
    "'; DROP",
    "on",
]


def test_awkward_values(db: Database, user: str) -> None:
    names = {f"r{n}": value for n, value in enumerate(AWKWARD)}
    db.converge(
        {"roles": [{"name": name, "config": {"application_name": value}} for name, value in names.items()]},
        login_user=user,
    )
    assert {name: stored(db, name) for name in names} == {n: {f"application_name={v}"} for n, v in names.items()}
    db.converge({"roles": [{"name": name, "config": {}} for name in names]}, login_user=user)


def test_names_are_compared_without_case(db: Database, user: str) -> None:
    make_role(db, user, "ALTER ROLE r SET timezone = 'UTC'")
    db.silent(wanted({"timezone": "UTC"}), login_user=user)
    db.silent(wanted({"TIMEZONE": "UTC"}), login_user=user)
    assert db.converge(wanted({"tImezone": "Asia/Tokyo"}), login_user=user).sql == [
        """ALTER ROLE "r" SET "TimeZone" = 'Asia/Tokyo'"""
    ]
    assert stored(db) == {"TimeZone=Asia/Tokyo"}


def test_another_spelling_of_a_value_is_rewritten_once(db: Database) -> None:
    db.sql("CREATE ROLE r; ALTER ROLE r SET lock_timeout = '1000'; ALTER ROLE r SET jit = 'true'")
    result = db.converge(wanted({"lock_timeout": "1s", "jit": True}))
    assert len(result.sql) == 2
    assert stored(db) == {"lock_timeout=1s", "jit=on"}


def test_custom_settings_are_for_superusers(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN CREATEROLE")
    make_role(db, "adm")
    db.converge(wanted({"App.Tenant": "a=1"}))
    assert stored(db) == {"app.tenant=a=1"}
    # Somebody quoted the name.
    db.sql("CREATE ROLE q; ALTER ROLE q SET \"App.Other\" = '1'")
    db.converge({"roles": [{"name": "q", "config": {"app.other": 2}}]})
    assert stored(db, "q") == {"App.Other=2"}
    result = db.fails(wanted({"app.tenant": 2}), "insufficient_privilege", "app.tenant", login_user="adm")
    assert result.problems[0]["role"] == "r"
    db.fails(wanted({}), "insufficient_privilege", "reset app.tenant", login_user="adm")
    db.silent(wanted({"app.tenant": "a=1"}), login_user="adm")


def test_superuser_settings_by_others(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN CREATEROLE")
    make_role(db, "adm")
    config = {"log_statement": "all", "work_mem": "8MB", "session_preload_libraries": "x", "a.b": 1}
    result = db.fails(wanted(config, comment="not written"), "insufficient_privilege", login_user="adm")
    assert [problem["object"] for problem in result.problems] == ["log_statement", "session_preload_libraries", "a.b"]
    assert all(problem["role"] == "r" for problem in result.problems)
    if db.cluster.version >= 15:
        assert 'GRANT SET ON PARAMETER "a"."b" TO "adm"' in result.text
    # For a role that the run would create as well.
    db.fails({"roles": [{"name": "n", "config": config}]}, "insufficient_privilege", "log_statement", login_user="adm")


@pytest.mark.versions(min=15)
def test_granted_parameters(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN CREATEROLE; CREATE ROLE g; GRANT g TO adm")
    make_role(db, "adm")
    db.sql("GRANT SET ON PARAMETER log_statement, a.b TO adm; GRANT SET ON PARAMETER session_preload_libraries TO g")
    try:
        config = {"log_statement": "all", "session_preload_libraries": "x", "a.b": 1}
        db.converge(wanted(config), login_user="adm")
        assert stored(db) == {"log_statement=all", "session_preload_libraries=x", "a.b=1"}
        db.converge(wanted({}), login_user="adm")
        assert stored(db) == set()
    finally:
        db.sql(
            "REVOKE ALL ON PARAMETER log_statement, a.b FROM adm; REVOKE ALL ON PARAMETER session_preload_libraries FROM g"
        )


def test_settings_that_no_role_can_have(db: Database, user: str) -> None:
    make_role(db, user)
    config = {"wrok_mem": "8MB", "max_connections": 3, "log_connections": True, "is_superuser": True}
    result = db.fails(wanted(config), "object_missing", "wrok_mem", login_user=user)
    assert [problem["object"] for problem in result.problems] == list(config)
    assert "work_mem" in result.problems[0]["hint"]
    assert result.problems[0]["path"] == "roles[0].config.wrok_mem"
    db.fails({"roles": [{"name": "n", "config": {"nope": 1}}]}, "object_missing", "nope", login_user=user)


@pytest.mark.parametrize("config", [{"work_mem": "banana"}, {"work_mem": "-7MB"}, {"jit": "perhaps"}])
def test_a_value_that_the_server_refuses(db: Database, user: str, config: dict[str, Any]) -> None:
    make_role(db, user)
    before = db.snapshot()
    result = db.reconcile(wanted({"lock_timeout": "3s", **config}, comment="never"), login_user=user)
    assert result.failed
    assert (result.error_code, result.sqlstate) == ("server_error", "22023")
    assert next(iter(config)) in result.statement
    assert result.plan
    assert db.snapshot() == before
    assert stored(db) == set()


@pytest.mark.parametrize("name", ["transaction_read_only", "seed"])
def test_settings_of_a_transaction(db: Database, name: str) -> None:
    """PostgreSQL stores them for a role, to no effect, and from 16 on does not reset them."""
    db.sql("CREATE ROLE r")
    db.fails(wanted({name: 0}), "object_missing", name)
    db.sql(f"ALTER ROLE r SET {name} = '0'; ALTER ROLE r SET jit = 'off'")
    result = db.converge(wanted({}))
    assert len(result.sql) == (2 if db.cluster.version < 16 else 1)
    assert len(result.held(reason="unknown_kind")) == (0 if db.cluster.version < 16 else 1)


@pytest.mark.versions(min=16)
def test_the_executors_own_createrole_self_grant_stays(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN CREATEROLE; ALTER ROLE adm SET createrole_self_grant = 'set, inherit'; "
           "ALTER ROLE adm SET jit = 'off'")  # fmt: skip
    manifest = "roles: [{name: adm, login: true, createrole: true, config: {}}]"
    result = db.converge(manifest, login_user="adm")
    assert stored(db, "adm") == {"createrole_self_grant=set, inherit"}
    assert result.held(reason="self_protection", role="adm")
    # Somebody else may take it.
    db.converge(manifest)
    assert stored(db, "adm") == set()


def test_a_stored_setting_that_the_server_no_longer_knows(db: Database, user: str) -> None:
    """As an upgrade can leave them: PostgreSQL refuses to reset one."""
    make_role(db, user, "ALTER ROLE r SET work_mem = '8MB'")
    db.sql("SET allow_system_table_mods = on; UPDATE pg_db_role_setting SET setconfig = setconfig || '{gone=1}'::text[] "
           "WHERE setrole = 'r'::regrole")  # fmt: skip
    result = db.converge(wanted({}), login_user=user)
    assert stored(db) == {"gone=1"}
    (held,) = result.held(reason="unknown_kind")
    assert (held["role"], held["change"]) == ("r", "alter_role")
    db.silent(wanted({}), login_user=user)


def test_additive_mode_leaves_settings_of_existing_roles(db: Database) -> None:
    db.sql("CREATE ROLE r; ALTER ROLE r SET work_mem = '8MB'; ALTER ROLE r SET jit = 'off'")
    manifest = {"roles": [{"name": name, "config": {"work_mem": "9MB"}} for name in ("r", "n")]}
    result = db.converge(manifest, reconciliation_mode="additive")
    assert stored(db) == {"work_mem=8MB", "jit=off"}
    assert stored(db, "n") == {"work_mem=9MB"}
    assert len(result.held(reason="mode", role="r", change="alter_role")) == 2
    db.converge(manifest, reconciliation_mode="adopt")
    assert stored(db) == {"work_mem=9MB"}


def test_roles_of_others_keep_their_settings(db: Database) -> None:
    db.rejects("roles: [{name: r, external: true, config: {}}]", "roles[0].config")
    result = db.converge("roles: [{name: postgres, superuser: true, login: true, config: {work_mem: 8MB}, comment: c}]")
    assert result.sql == []
    assert len(result.held(reason="external", role="postgres")) == 2


def test_profiles_give_settings(db: Database, user: str) -> None:
    manifest = """
        profiles:
          app:
            config: {search_path: '{schema}, public', application_name: '{schema}/{profile} {other}', work_mem: 8MB}
          plain: {config: {}}
          other: {}
        schemas:
          - {name: 'Odd, "one"', profiles: [app]}
          - {name: s, profiles: [app, plain, other]}
    """
    db.sql('CREATE SCHEMA "Odd, ""one"""; CREATE SCHEMA s')
    db.converge(manifest, login_user=user)
    assert stored(db, '"Odd, ""one""-app"') == {
        'search_path="Odd, ""one""", public', 'application_name=Odd, "one"/app {other}', "work_mem=8MB"
    }  # fmt: skip
    assert stored(db, '"s-app"') == {"search_path=s, public", "application_name=s/app {other}", "work_mem=8MB"}
    db.connect(user=user).execute("ALTER ROLE \"s-plain\" SET jit = 'off'; ALTER ROLE \"s-other\" SET jit = 'off'")
    db.converge(manifest, login_user=user)
    assert stored(db, '"s-plain"') == set()
    assert stored(db, '"s-other"') == {"jit=off"}


def test_the_executors_own_settings(db: Database) -> None:
    """Those that would stop a run are pinned, so it cannot lock itself out by them."""
    db.sql("CREATE ROLE ex SUPERUSER LOGIN; CREATE ROLE weak")
    config = {"default_transaction_read_only": True, "role": "weak", "statement_timeout": "250ms", "search_path": "nowhere",
              "DateStyle": "SQL, DMY", "TimeZone": "Pacific/Chatham", "default_transaction_isolation": "serializable"}  # fmt: skip
    manifest = {"roles": [{"name": "ex", "superuser": True, "login": True, "config": config}, {"name": "weak"}]}
    db.converge(manifest, login_user="ex")
    manifest["roles"][0]["config"] = {}  # type: ignore[index]
    turn = db.connect(autocommit=False)
    settings = db.connect(autocommit=False)
    turn.execute("SELECT pg_advisory_xact_lock(1885823346, 1953854062)")  # "pgar" and "turn"
    settings.execute("LOCK TABLE pg_db_role_setting IN SHARE MODE")
    run = db.background(manifest, login_user="ex")
    for holder, locktype in ((turn, "advisory"), (settings, "relation")):
        run.waits(db, f"SELECT pid FROM pg_locks WHERE NOT granted AND locktype = '{locktype}'")
        time.sleep(0.4)  # longer than its own statement_timeout lets a statement run
        holder.rollback()
    result = run.result()
    assert not result.failed, result
    assert stored(db, "ex") == set()
    db.silent(manifest, login_user="ex")


def test_an_admin_has_settings_of_its_own(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN CREATEROLE")
    manifest = "roles: [{name: adm, login: true, createrole: true, config: {work_mem: 8MB}}]"
    db.converge(manifest, login_user="adm")
    assert stored(db, "adm") == {"work_mem=8MB"}


def test_order_and_diff(db: Database) -> None:
    db.sql("CREATE ROLE r; ALTER ROLE r SET work_mem = '32MB'; ALTER ROLE r SET jit = 'off'")
    manifest = wanted({"work_mem": "64MB", "search_path": 'a-b, "$user"'}, comment="c", connection_limit=3)
    (diff,) = db.reconcile(manifest, check=True, diff=True).diff
    before, after = yaml.safe_load(diff["before"]), yaml.safe_load(diff["after"])
    assert before["roles"] == [{"name": "r", "connection_limit": -1, "config": {"work_mem": "32MB", "jit": "off"}}]
    assert after["roles"] == [
        {"name": "r", "connection_limit": 3, "comment": "c",
         "config": {"work_mem": "64MB", "search_path": '"a-b", "$user"'}}
    ]  # fmt: skip
    assert "work_mem: 64MB" in diff["after"]
    result = db.converge(manifest)
    words = [statement.split()[3] for statement in result.sql]
    assert words == ["CONNECTION", "SET", "SET", "RESET", '"r"']
    # What the diff shows can be written into a manifest.
    db.silent({"roles": after["roles"]})


@UNCONNECTED
@pytest.mark.parametrize(
    ("config", "place"),
    [
        ({"search_path": ["a", "b"]}, "roles[0].config.search_path"),
        ({"work_mem": {"a": 1}}, "roles[0].config.work_mem"),
        ({"work_mem": "8MB", "WORK_MEM": "9MB"}, "roles[0].config.WORK_MEM"),
        ({"a b": "1"}, "roles[0].config.'a b'"),
        ({"": "1"}, "roles[0].config"),
        ({"a..b": "1"}, "roles[0].config"),
        ({"search_path": 'a, "b'}, "roles[0].config.search_path"),
        ({"search_path": "a,,b"}, "roles[0].config.search_path"),
        # Nobody could log in as the role: PostgreSQL would look for a library without a name.
        ({"session_preload_libraries": ""}, "roles[0].config.session_preload_libraries"),
        ({"application_name": "a\0b"}, "roles[0].config.application_name"),
        ("work_mem=8MB", "roles[0].config"),
        ([], "roles[0].config"),
    ],
)
def test_what_is_refused_before_connecting(db: Database, config: Any, place: str) -> None:
    result: Result = db.rejects(wanted(config), place)
    assert len(result.problems) == 1


def test_numbers_in_files_keep_their_form(db: Database, tmp_path: Any) -> None:
    file = tmp_path / "access.yml"
    file.write_text(
        "roles:\n- name: r\n  config: {work_mem: 0x2000, seq_page_cost: 1.50, lock_timeout: 1e3, jit: on, geqo: no}\n",
        encoding="utf-8",
    )
    db.converge(manifest_files=[str(file)])
    assert stored(db) == {"work_mem=0x2000", "seq_page_cost=1.50", "lock_timeout=1e3", "jit=on", "geqo=off"}


def test_settings_cost_one_round_trip(db: Database) -> None:
    db.sql("CREATE ROLE r")
    with db.statements() as without:
        db.reconcile("roles: [{name: r}]", check=True)
    with db.statements() as with_settings:
        db.reconcile({"roles": [{"name": f"r{n}", "config": {"work_mem": "8MB"}} for n in range(30)]}, check=True)
    assert len(with_settings) <= len(without) + 2


def test_values_that_are_not_utf_8(db: Database) -> None:
    """As databases of other encodings leave them in a cluster: they must not stop a run that has nothing to do with
    them, and can be put right.
    """
    db.sql("CREATE ROLE r; CREATE ROLE other; ALTER ROLE r SET application_name = 'x'; ALTER ROLE r SET jit = 'off'")
    db.sql("CREATE DATABASE ascii_only TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")
    with db.connect(dbname="ascii_only", autocommit=True) as connection:
        connection.execute(b"SET client_encoding = 'SQL_ASCII'")
        connection.execute(b"ALTER ROLE r SET application_name = 'a\xe4b'")
    # The harness itself reads only UTF-8.
    try:
        first = db.reconcile("roles: [{name: other, connection_limit: 2}]")
        silent = db.reconcile("roles: [{name: r}]")
        elsewhere = db.reconcile(wanted({"jit": False}), check=True, login_db="ascii_only")
        shown = db.reconcile(wanted({"application_name": "y"}), check=True, diff=True)
        last = db.reconcile(wanted({"application_name": "y"}))
    finally:
        db.sql("ALTER ROLE r RESET application_name")
    assert not first.failed, first
    assert silent.sql == []
    assert elsewhere.sql == ['ALTER ROLE "r" RESET "application_name"']
    assert "application_name" in shown.diff[0]["before"]
    assert last.sql == ["""ALTER ROLE "r" SET "application_name" = 'y'""", 'ALTER ROLE "r" RESET "jit"']
