# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases of kind DRP, and what other kinds say about drops: above all what is refused before anything happens."""

from __future__ import annotations

import time
from typing import Any

import pytest
from harness import Database


def retire(role: str = "old", **options: Any) -> dict[str, Any]:
    return {"roles": [{"name": "new"}], "retirements": [{"role": role, **options}]}


@pytest.fixture
def old(db: Database) -> Database:
    db.sql("CREATE ROLE old", "CREATE ROLE new")
    return db


@pytest.fixture
def elsewhere(old: Database) -> str:
    """Another database in which ``old`` owns a schema, a table, a default ACL, a user mapping, and holds a privilege."""
    name = old.cluster.create_database()
    other = old.connect(dbname=name)
    other.execute("CREATE SCHEMA s AUTHORIZATION old; CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO old")
    other.execute("CREATE TABLE public.u (a int); GRANT SELECT ON public.u TO old")
    other.execute("ALTER DEFAULT PRIVILEGES FOR ROLE old GRANT SELECT ON TABLES TO new")
    other.execute("CREATE FOREIGN DATA WRAPPER w; CREATE SERVER sv FOREIGN DATA WRAPPER w")
    other.execute("CREATE USER MAPPING FOR old SERVER sv")
    return name


# ---- DRP-01: other databases


@pytest.mark.parametrize(
    "options",
    [{}, {"drop_owned": True}, {"reassign_owned_to": "new"}, {"reassign_owned_to": "new", "drop_owned": True}],
)
def test_drp_01_what_it_has_elsewhere_is_named_before_anything_is_reassigned(
    old: Database, elsewhere: str, options: dict[str, Any]
) -> None:
    old.sql("CREATE TABLE public.t (a int)")
    if options:
        old.sql("ALTER TABLE public.t OWNER TO old")
    words = ("owner of default privileges 1", "owner of objects 2", "privileges for objects 1", "user mappings 1")
    failed = old.fails(retire(**options), "drop_blocked", f"5 objects in database {elsewhere}", *words)
    (problem,) = failed.problems
    assert (problem["role"], problem["object"], problem["path"]) == ("old", elsewhere, "retirements[0]")
    hint = "Retire the role with all_databases: true, reassign_owned_to and drop_owned: true, or empty it there first."
    if "reassign_owned_to" not in options:
        lost = f"2 objects in database {elsewhere}"
        hint += f" Without reassign_owned_to, drop_owned: true would destroy what it owns: {lost}."
    assert problem["hint"] == hint


def test_drp_01_an_heir_alone_is_enough_where_it_only_owns(old: Database) -> None:
    name = old.cluster.create_database()
    old.connect(dbname=name).execute("CREATE SCHEMA s AUTHORIZATION old")
    failed = old.fails(retire(), "drop_blocked", f"1 object in database {name}: owner of objects 1")
    assert "all_databases: true and reassign_owned_to, or empty it there first. " in failed.problems[0]["hint"]


def test_drp_01_a_database_that_allows_no_connections_is_named(old: Database, elsewhere: str) -> None:
    old.sql(f"ALTER DATABASE {elsewhere} ALLOW_CONNECTIONS false")
    for everywhere in (False, True):
        want = retire(reassign_owned_to="new", drop_owned=True, all_databases=everywhere)
        failed = old.fails(want, "drop_blocked", f"database {elsewhere}, which allows no connections")
        assert "Allow connections to it" in failed.problems[0]["hint"]


# ---- DRP-04: default privileges


def test_drp_04_default_privileges_in_both_roles(old: Database) -> None:
    old.sql("CREATE ROLE o; CREATE ROLE x; CREATE SCHEMA s")
    old.sql("ALTER DEFAULT PRIVILEGES FOR ROLE o GRANT SELECT ON TABLES TO old, x")
    old.sql("ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO old, x")
    old.sql("ALTER DEFAULT PRIVILEGES FOR ROLE old GRANT SELECT ON TABLES TO x")
    old.sql("ALTER DEFAULT PRIVILEGES FOR ROLE old REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    before = old.defaults()
    for options in ({}, {"reassign_owned_to": "new"}):
        failed = old.fails(
            retire(**options),
            "drop_blocked",
            "owner of default privileges on new relations belonging to role old",
            "owner of default privileges on new functions belonging to role old",
            "privileges for default privileges on new relations belonging to role o in schema s",
            "drop_owned: true",
        )
        assert len(failed.problems) == 1
    assert old.converge(retire(drop_owned=True)).sql == ['DROP OWNED BY "old"', 'DROP ROLE "old"']
    left = {key: {entry for entry in entries if not entry.startswith("old=")} for key, entries in before.items()}
    assert old.defaults() == {key: entries for key, entries in left.items() if key[0] == "o"}


def test_drp_04_what_the_plan_revokes_itself_blocks_nothing(old: Database) -> None:
    old.sql(
        "CREATE SCHEMA s AUTHORIZATION new; ALTER DEFAULT PRIVILEGES FOR ROLE new IN SCHEMA s GRANT SELECT ON TABLES TO old"
    )
    result = old.converge({**retire(), "schemas": [{"name": "s", "owner": "new"}]})
    assert len(result.sql) == 2
    assert result.sql[1] == 'DROP ROLE "old"'


# ---- DRP-06: sessions


def test_drp_06_open_sessions_block_a_drop(old: Database) -> None:
    old.sql("ALTER ROLE old LOGIN")
    session = old.connect("old", application_name="order service")
    words = (f"session {session.info.backend_pid} in database {old.name}, application order service",)
    for options in ({}, {"drop_owned": True}, {"reassign_owned_to": "new"}):
        old.fails(retire(**options), "drop_blocked", "1 open session", *words, "terminate_sessions: true")
    assert session.execute("SELECT 1").fetchone() == (1,)
    other = old.connect("old", dbname="postgres")
    old.fails(retire(), "drop_blocked", "2 open sessions", "in database postgres", *words)
    for connection in (session, other):
        connection.close()
    for _attempt in range(100):
        if not old.query("SELECT FROM pg_stat_activity WHERE usename = 'old'"):
            break
        time.sleep(0.02)
    old.converge(retire())


@pytest.mark.parametrize("right", [False, True])
def test_drp_06_whoever_may_not_end_sessions_is_told_first(old: Database, right: bool) -> None:
    options = old.admin("old", "new")
    want = retire(terminate_sessions=True)
    failed = old.fails(want, "insufficient_privilege", "pg_signal_backend", **options)
    assert 'GRANT "pg_signal_backend" TO "adm"' in failed.problems[0]["hint"]
    if right:
        old.sql(failed.problems[0]["hint"])
        assert old.converge(want, **options).sql == ['DROP ROLE "old"']


def test_drp_06_an_inheritance_that_is_switched_off_gives_no_right(old: Database) -> None:
    options = old.admin("old", "new")
    if old.version >= 16:
        old.sql("GRANT pg_signal_backend TO adm WITH INHERIT FALSE")
    else:
        old.sql("GRANT pg_signal_backend TO adm", "ALTER ROLE adm NOINHERIT")
    old.fails(retire(terminate_sessions=True), "insufficient_privilege", "pg_signal_backend", **options)


# ---- sessions whose role is gone


@pytest.mark.parametrize("privileged", [True, False])
def test_every_run_warns_about_sessions_whose_role_is_gone(db: Database, privileged: bool) -> None:
    options = {} if privileged else db.admin()
    db.sql("CREATE ROLE gone LOGIN", "CREATE ROLE away LOGIN")
    first = db.connect("gone", application_name="order service")
    label = f"session {first.info.backend_pid} in database {db.name}, application order service"
    alive = {"roles": [{"name": "app"}]}
    db.converge(alive, **options)
    assert not [warning for warning in db.reconcile(alive, **options).warnings if "no longer exist" in warning]
    db.sql("DROP ROLE gone")
    for check in (True, False):
        warnings = db.reconcile(alive, check=check, **options).warnings
        said = [warning for warning in warnings if "no longer exist" in warning]
        assert [text.split(": ", 1)[1] for text in said] == [
            f"1 session belongs to a role that no longer exists: {label}"
        ]
    second = db.connect("away", dbname="postgres")
    db.sql("DROP ROLE away")
    (text,) = [text for text in db.reconcile(alive, **options).warnings if "no longer exist" in text]
    assert "2 sessions belong to roles that no longer exist: " in text
    assert f"session {second.info.backend_pid} in database postgres" in text


# ---- DRP-08: the executor


@pytest.mark.parametrize("heir", [True, False])
def test_drp_08_everything_that_the_executor_lacks_is_named_at_once(old: Database, heir: bool) -> None:
    old.sql("CREATE TABLE public.t (a int); ALTER TABLE public.t OWNER TO old", "CREATE ROLE adm LOGIN CREATEROLE")
    before = old.edges()
    want = retire(drop_owned=True, **({"reassign_owned_to": "new"} if heir else {}))
    failed = old.fails(want, "insufficient_privilege", login_user="adm")
    helps = {problem["hint"] for problem in failed.problems}
    inherit = " WITH INHERIT TRUE" if old.version >= 16 else ""
    wanted = {f'GRANT "old" TO "adm"{inherit}'}
    if heir:
        wanted.add(f'GRANT "new" TO "adm"{inherit}')
    if old.version >= 16:
        wanted.add('GRANT "old" TO "adm" WITH ADMIN TRUE')
    assert helps == wanted
    assert old.edges() == before
    old.sql(*(problem["hint"] for problem in failed.problems))
    old.converge(want, login_user="adm")
    assert "old" not in old.roles()


def test_drp_08_without_createrole_nothing_is_dropped(old: Database) -> None:
    old.sql("CREATE ROLE adm LOGIN")
    failed = old.fails(retire(), "insufficient_privilege", "no CREATEROLE", login_user="adm")
    old.sql(*(problem["hint"] for problem in failed.problems))
    assert old.converge(retire(), login_user="adm").sql == ['DROP ROLE "old"']


def test_drp_08_only_a_superuser_drops_a_superuser(old: Database) -> None:
    options = old.admin("old", "new")
    old.sql("ALTER ROLE old SUPERUSER")
    old.fails(retire(), "insufficient_privilege", "which is a superuser", "Run as a superuser", **options)
    old.converge(retire())


def test_drp_08_what_drop_owned_would_not_reach_is_named(old: Database) -> None:
    """PostgreSQL answers a futile DROP OWNED with a warning, and refuses the DROP ROLE after it."""
    options = old.admin("old", "new")
    old.sql("GRANT old TO adm" + (" WITH INHERIT TRUE" if old.version >= 16 else ""), "CREATE ROLE o")
    old.sql("CREATE TABLE public.t (a int); ALTER TABLE public.t OWNER TO o; GRANT SELECT ON public.t TO old")
    failed = old.fails(retire(drop_owned=True), "insufficient_privilege", "table public.t", "objects of o", **options)
    old.sql(failed.problems[0]["hint"].split(";")[0])
    old.converge(retire(drop_owned=True), **options)


# ---- DRP-09: already gone


@pytest.mark.parametrize(
    "options", [{}, {"reassign_owned_to": "new", "drop_owned": True, "terminate_sessions": True, "all_databases": True}]
)
def test_drp_09_a_role_that_is_gone_is_no_work(db: Database, options: dict[str, Any]) -> None:
    db.sql("CREATE ROLE new")
    result = db.silent(retire(**options))
    assert result.changed is False
    assert not [warning for warning in result.warnings if "old" in warning]


# ---- DRP-10: whom no list of drops ever has


def test_drp_10_who_is_never_dropped(db: Database) -> None:
    """Every role matches one of the patterns."""
    db.sql("CREATE ROLE keep", "CREATE ROLE app", "CREATE ROLE stale", "CREATE ROLE rds_superuser", "CREATE ROLE peer")
    db.sql(
        "CREATE ROLE boss LOGIN SUPERUSER; CREATE ROLE acting SUPERUSER; CREATE ROLE ignored; CREATE ROLE strong SUPERUSER"
    )
    want = {
        "roles": [{"name": "keep"}, {"name": "app", "external": True}],
        "assume_roles": ["peer"],
        "scope": {
            "roles": [f"{letter}*" for letter in "abcdefghijklmnopqrstuvwxyz"],
            "ignore_roles": ["ignored"],
        },
    }
    result = db.converge(want, login_user="boss", session_role="acting")
    assert result.sql == ['DROP ROLE "stale"']
    assert [(item["role"], item["reason"]) for item in result.withheld] == [("strong", "self_protection")]
    assert db.roles() == {"keep", "app", "rds_superuser", "peer", "boss", "acting", "ignored", "strong"}


def test_drp_10_a_role_that_is_used_in_another_database_blocks_by_name(db: Database) -> None:
    db.sql("CREATE ROLE keep; CREATE ROLE used")
    third = db.cluster.create_database()
    db.connect(dbname=third).execute("CREATE TABLE public.t (a int); GRANT SELECT ON public.t TO used")
    want = {"roles": [{"name": "keep"}], "scope": {"roles": ["u*"]}}
    db.fails(want, "drop_blocked", "used", f"in database {third}", "privileges for objects 1")
    db.silent({**want, "scope": {"roles": ["u*"], "ignore_roles": ["used"]}})


@pytest.mark.parametrize("who", ["login", "session_role", "bootstrap"])
def test_the_executor_and_the_first_superuser_are_never_dropped(db: Database, who: str) -> None:
    db.sql("CREATE ROLE boss LOGIN SUPERUSER; CREATE ROLE acting SUPERUSER; CREATE ROLE stale")
    role = {"login": "boss", "session_role": "acting", "bootstrap": "postgres"}[who]
    want = {"roles": [], "retirements": [{"role": "stale"}, {"role": role, "drop_owned": True}]}
    failed = db.fails(want, "self_protection", role, "never dropped", login_user="boss", session_role="acting")
    assert [problem["path"] for problem in failed.problems] == ["retirements[1]"]


def test_an_admin_is_not_told_how_to_drop_itself(db: Database) -> None:
    options = db.admin()
    db.sql("CREATE TABLE public.t (a int); GRANT SELECT ON public.t TO adm")
    failed = db.fails({"roles": [], "retirements": [{"role": "adm", "drop_owned": True}]}, "self_protection", **options)
    assert len(failed.problems) == 1


# ---- DRP-11: locks


@pytest.mark.parametrize("options", [{"reassign_owned_to": "new"}, {"drop_owned": True}])
def test_drp_11_a_lock_on_what_it_owns_is_waited_for_three_seconds(old: Database, options: dict[str, Any]) -> None:
    old.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO old")
    other = old.connect(autocommit=False, application_name="long report")
    other.execute("SELECT * FROM s.t")
    start = time.monotonic()
    words = ("long report", "AccessShareLock on s.t", str(other.info.backend_pid))
    failed = old.fails(retire(**options), "lock_timeout", *words, check_too=False)
    assert 2.5 < time.monotonic() - start < 20
    assert failed.sqlstate == "55P03"
    assert failed.statement.startswith(("REASSIGN OWNED", "DROP OWNED"))
    other.commit()
    old.converge(retire(**options))


# ---- OBJ-02, REL-12


def test_obj_02_privileges_on_large_objects_keep_a_role(old: Database) -> None:
    old.sql("SELECT lo_create(4242)", "GRANT SELECT ON LARGE OBJECT 4242 TO old")
    for options in ({}, {"reassign_owned_to": "new"}):
        old.fails(retire(**options), "drop_blocked", "privileges for large object 4242", "drop_owned: true")
    old.converge(retire(drop_owned=True))


def test_obj_02_what_a_rule_makes_managed_is_revoked(old: Database) -> None:
    old.sql("SELECT lo_create(4242)", "GRANT SELECT ON LARGE OBJECT 4242 TO old")
    rule = {"role": "new", "privileges": ["SELECT"], "object": {"type": "large_object", "name": "4242"}}
    old.converge({**retire(), "grants": [rule]})
    assert "old" not in old.roles()


@pytest.mark.parametrize("tie", ["GRANT SELECT ON tmp TO old", "ALTER TABLE tmp OWNER TO old"])
def test_rel_12_temporary_tables_of_others_keep_a_role(old: Database, tie: str) -> None:
    other = old.connect()
    other.execute("CREATE TEMP TABLE tmp (a int)")
    other.execute(tie)
    schema = old.value("SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'tmp'")
    words = "privileges for" if "GRANT" in tie else "owner of"
    old.fails(retire(), "drop_blocked", f"{words} table {schema}.tmp")
    result = old.converge(retire(drop_owned=True))
    assert not [statement for statement in result.sql if "tmp" in statement and "GRANT" in statement]
    assert old.query("SELECT 1 FROM pg_class WHERE relname = 'tmp'") == ([(1,)] if "GRANT" in tie else [])


# ---- what DROP OWNED is asked to destroy


def test_possessions_on_which_others_depend_are_named(old: Database) -> None:
    old.sql("CREATE SCHEMA s AUTHORIZATION old; CREATE TABLE s.theirs (a int)")
    old.sql("CREATE TABLE public.t (a int PRIMARY KEY); ALTER TABLE public.t OWNER TO old")
    old.sql("CREATE VIEW public.v AS SELECT * FROM public.t; CREATE TABLE public.u (a int REFERENCES public.t)")
    failed = old.fails(
        retire(drop_owned=True),
        "drop_blocked",
        "view public.v needs table public.t",
        "constraint u_a_fkey on table public.u needs",
        "table s.theirs needs schema s",
    )
    assert len(failed.problems) == 1
    old.converge(retire(drop_owned=True, reassign_owned_to="new"))


def test_an_heir_that_is_no_superuser_gets_no_event_triggers(old: Database) -> None:
    old.sql(
        "CREATE FUNCTION public.f() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'", "ALTER ROLE old SUPERUSER"
    )
    old.sql("CREATE EVENT TRIGGER e ON sql_drop EXECUTE FUNCTION public.f()", "ALTER EVENT TRIGGER e OWNER TO old")
    old.fails(retire(reassign_owned_to="new"), "drop_blocked", "new cannot inherit", "event trigger e")
    want = {**retire(reassign_owned_to="new"), "roles": [{"name": "new", "superuser": True}]}
    old.converge(want)


def test_the_first_names_and_the_number_of_many(old: Database) -> None:
    old.sql("SET client_min_messages = warning", "CREATE SCHEMA s")
    old.sql("DO $$ BEGIN FOR i IN 1..60 LOOP EXECUTE format('CREATE TABLE s.t%s (a int)', i); END LOOP; END $$")
    old.sql("GRANT SELECT ON ALL TABLES IN SCHEMA s TO old")
    failed = old.fails(retire(), "drop_blocked", "and 40 more")
    assert len(failed.msg) < 2000
    assert len(old.reconcile(retire(drop_owned=True)).sql) == 2


def test_a_database_that_it_owns_needs_an_heir(old: Database) -> None:
    name = old.cluster.create_database()
    old.sql(f"ALTER DATABASE {name} OWNER TO old")
    old.fails(retire(drop_owned=True), "drop_blocked", f"owner of database {name}", "reassign_owned_to")
    old.converge(retire(reassign_owned_to="new"))
    assert old.value("SELECT datdba::regrole::text FROM pg_database WHERE datname = %s", name) == "new"
