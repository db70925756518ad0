# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``undo_file``: an apply and the script of its way back end where they began, but for what the script lists."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import test_properties_memberships as edges
from harness import Cluster, Database, Result, Runner
from hypothesis import event, given
from hypothesis import strategies as st
from script_support import OTHER_GRANTOR, differences, everything, left
from strategies import cases
from test_properties import Trial, examples


def there_and_back(db: Database, undo: Path, run: Callable[..., Result], *, user: str = "postgres") -> list[str]:
    """Apply, undo, and compare. Returns what is listed as not undone."""
    before = everything(db), everything(db, grantors=False)
    predicted = run(check=True, undo_file=str(undo))
    if predicted.failed:
        assert not undo.exists()
        return []
    preview = undo.read_text()
    result = run(undo_file=str(undo))
    if result.failed:
        assert result.error_code == "guard", result
        return []
    assert undo.read_text() == preview, "the check run predicted another way back"
    if not result.changed:
        return []
    kept = left(undo)
    done = db.psql(undo, user=user)
    shown = f"{undo.read_text()}\n{done.stdout}{done.stderr}"
    if any("this login may not" in item for item in kept):
        # It stops there, or a REVOKE in another name does nothing.
        return kept
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), shown
    lenient = any(OTHER_GRANTOR in item for item in kept)
    wrong = differences(before[lenient], everything(db, grantors=not lenient))
    assert not wrong, "\n".join(["it did not end where it began", *wrong, shown])
    return kept


# ---- random databases


@examples(0.4)
@given(data=st.data())
def test_apply_and_undo_end_where_they_began(server: Cluster, runner: Runner, data: st.DataObject) -> None:
    case = data.draw(cases(server.version, modes=("authoritative", "adopt")))
    case.options.setdefault("undeclared_grantees", "revoke")
    with tempfile.TemporaryDirectory() as folder, Trial(case, server, runner) as trial:
        user = case.options.get("login_user", "postgres")
        kept = there_and_back(trial.db, Path(folder) / "undo.sql", trial.run, user=user)
        event(f"{len(kept)} left")


@examples(0.4)
@given(data=st.data())
def test_what_several_grantors_gave_comes_back(server: Cluster, runner: Runner, data: st.DataObject) -> None:
    case = data.draw(cases(server.version, modes=("authoritative", "adopt"), foreign=True))
    with tempfile.TemporaryDirectory() as folder, Trial(case, server, runner) as trial:
        user = case.options.get("login_user", "postgres")
        kept = there_and_back(trial.db, Path(folder) / "undo.sql", trial.run, user=user)
        event(f"{len(kept)} left")


@examples(0.4)
@given(data=st.data())
def test_memberships_come_back(db: Database, data: st.DataObject) -> None:
    case = data.draw(edges.cases(db.version, data.draw(st.sampled_from(["postgres", "su2", "cr"]))))
    edges.prepare(case, db)

    def run(**options: Any) -> Result:
        return db.reconcile(case.manifest, login_user=case.executor, **options)

    with tempfile.TemporaryDirectory() as folder:
        kept = there_and_back(db, Path(folder) / "undo.sql", run, user=case.executor)
        event(f"{len(kept)} left")


# ---- single things


@pytest.fixture
def undo(tmp_path: Path) -> Path:
    return tmp_path / "undo.sql"


READER: dict[str, Any] = {
    "roles": [{"name": "app"}],
    "schemas": [{"name": "s"}],
    "grants": [{"role": "app", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "*"}}],
}


def back(db: Database, undo: Path, manifest: Any, **options: Any) -> list[str]:
    """There and back with this manifest; it does something."""

    def run(**more: Any) -> Result:
        return db.reconcile(manifest, undeclared_grantees="revoke", **options, **more)

    kept = there_and_back(db, undo, run, user=options.get("login_user", "postgres"))
    assert undo.exists()
    return kept


@pytest.fixture
def table(db: Database) -> Database:
    db.sql("CREATE SCHEMA s", "CREATE TABLE s.t (a int, b int)", "CREATE ROLE old")
    return db


def test_there_and_back_and_there_again(table: Database, undo: Path) -> None:
    table.sql("GRANT SELECT, UPDATE ON s.t TO old", "GRANT INSERT (a) ON s.t TO old")
    assert back(table, undo, READER) == []
    table.converge(READER, undeclared_grantees="revoke")
    assert back(table, undo, READER) == []


def test_null_and_empty_acls(table: Database, undo: Path) -> None:
    table.sql("CREATE TABLE s.bare (a int)", "REVOKE ALL ON s.bare FROM postgres", "GRANT CREATE ON SCHEMA s TO PUBLIC")
    manifest = {
        **READER,
        "grants": [
            *READER["grants"],
            {"role": "PUBLIC", "privileges": ["CREATE"], "object": {"type": "schema", "name": "s"}, "ensure": "absent"},
            {"role": "app", "privileges": ["TEMPORARY"], "object": {"type": "database"}},
        ],
    }
    assert back(table, undo, manifest) == []
    assert table.acl("s.bare") in (None, set())


def test_a_schema_in_which_something_was_made_stays_and_everything_with_it(table: Database, undo: Path) -> None:
    manifest = {**READER, "schemas": [{"name": "s"}, {"name": "fresh", "owner": "app"}]}
    assert not table.reconcile(manifest, undo_file=str(undo)).failed
    table.sql("CREATE TABLE fresh.t (a int)")
    after = everything(table)
    done = table.psql(undo)
    assert done.returncode == 3
    assert "cannot drop schema fresh because other objects depend on it" in done.stderr
    assert everything(table) == after
    table.sql("DROP TABLE fresh.t")
    table.runs(undo)
    assert "app" not in table.roles()


def test_what_came_later_to_a_new_table_is_none_of_its_business(table: Database, undo: Path) -> None:
    table.sql("CREATE TABLE s.u (a int)", "GRANT SELECT ON ALL TABLES IN SCHEMA s TO old")
    assert not table.reconcile(READER, undo_file=str(undo), undeclared_grantees="revoke").failed
    table.sql("CREATE TABLE s.later (a int)")
    table.runs(undo)
    assert table.acl("s.later") is None
    assert table.acl("s.t") == {f"postgres={table.full}/postgres", "old=r/postgres"}


def test_a_schemas_old_owner_and_what_the_new_one_held(db: Database, undo: Path) -> None:
    db.sql(
        "CREATE ROLE one", "CREATE ROLE two", "CREATE ROLE g", "CREATE ROLE x", "CREATE SCHEMA s AUTHORIZATION one",
        "GRANT USAGE ON SCHEMA s TO two WITH GRANT OPTION", "GRANT USAGE ON SCHEMA s TO g WITH GRANT OPTION",
        "SET ROLE two", "GRANT USAGE ON SCHEMA s TO x", "RESET ROLE", "SET ROLE g", "GRANT USAGE ON SCHEMA s TO x",
        "RESET ROLE", "REVOKE CREATE ON SCHEMA s FROM one",
    )  # fmt: skip
    manifest = {"roles": [{"name": "two"}], "schemas": [{"name": "s", "owner": "two"}]}
    assert back(db, undo, manifest) == []


@pytest.mark.parametrize("reach", ["superuser", "owner"])
def test_a_grantors_tree(db: Database, undo: Path, reach: str) -> None:
    db.sql(
        "CREATE ROLE o LOGIN", "CREATE ROLE g", "CREATE ROLE h", "CREATE ROLE x", "CREATE ROLE app",
        "CREATE SCHEMA s AUTHORIZATION o", "CREATE TABLE s.t (a int, b int)", "ALTER TABLE s.t OWNER TO o",
        "GRANT USAGE ON SCHEMA s TO PUBLIC", "GRANT SELECT ON s.t TO g WITH GRANT OPTION",
        "SET ROLE g", "GRANT SELECT ON s.t TO h WITH GRANT OPTION", "GRANT SELECT (b) ON s.t TO x", "RESET ROLE",
        "SET ROLE h", "GRANT SELECT ON s.t TO x", "RESET ROLE", "GRANT UPDATE (a) ON s.t TO x",
    )  # fmt: skip
    options = {"login_user": "o"} if reach == "owner" else {}
    manifest = {
        "roles": [{"name": name, "external": True} for name in ("o", "app")],
        "schemas": [{"name": "s"}],
        "grants": [{"role": "app", "privileges": ["UPDATE"], "object": {"type": "table", "schema": "s", "name": "t"}}],
    }
    kept = back(db, undo, manifest, **options)
    if reach == "superuser":
        assert kept == []
    else:
        # An owner is no member of whom it granted something.
        assert sorted(kept) == [
            "SELECT on table s.t (b) was granted to x by g; it comes back as granted by o",
            "SELECT on table s.t was granted to h by g; it comes back as granted by o",
            "SELECT on table s.t was granted to x by h; it comes back as granted by o",
        ]


def test_an_admin_without_superuser(table: Database, undo: Path) -> None:
    options = table.admin("old")
    table.sql(
        "ALTER SCHEMA s OWNER TO adm", "ALTER TABLE s.t OWNER TO adm", "GRANT SELECT ON s.t TO old",
        "COMMENT ON ROLE old IS 'before'", "ALTER ROLE old SET work_mem = '4MB'",
    )  # fmt: skip
    manifest = {
        **READER,
        "roles": [{"name": "app", "comment": "made"}, {"name": "old", "login": True, "comment": "after", "config": {}}],
        "memberships": [{"role": "old", "members": [{"name": "app"}]}],
        "default_privileges": [
            {"owner": "adm", "schema": "s", "grant": [{"role": "app", "privileges": ["SELECT"], "on_type": "table"}]}
        ],
    }
    manifest["roles"].append({"name": "adm", "external": True})
    assert back(table, undo, manifest, **options) == []


def test_default_privileges_in_all_layers(table: Database, undo: Path) -> None:
    table.sql(
        "CREATE ROLE o",
        "ALTER DEFAULT PRIVILEGES FOR ROLE o GRANT SELECT ON TABLES TO old WITH GRANT OPTION",
        "ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT INSERT ON TABLES TO old",
        "ALTER DEFAULT PRIVILEGES FOR ROLE o REVOKE USAGE ON TYPES FROM PUBLIC",
        "ALTER DEFAULT PRIVILEGES FOR ROLE o REVOKE DELETE ON TABLES FROM o",
    )
    grant = [{"role": "app", "privileges": ["SELECT"], "on_type": "table"}]
    manifest = {
        **READER,
        "roles": [{"name": "app"}, {"name": "o"}],
        "default_privileges": [
            {"owner": "o", "grant": [*grant, {"role": "app", "privileges": ["USAGE"], "on_type": "type"}]},
            {"owner": "o", "schema": "s", "grant": grant},
            {
                "owner": "o",
                "grant": [{"role": "PUBLIC", "privileges": ["EXECUTE"], "on_type": "function", "ensure": "absent"}],
            },
        ],
    }
    assert back(table, undo, manifest) == []


def test_attributes_settings_comments(db: Database, undo: Path) -> None:
    db.sql(
        "CREATE ROLE a LOGIN CREATEDB NOINHERIT CONNECTION LIMIT 3 VALID UNTIL '2031-02-03 04:05:06.789+02'",
        "ALTER ROLE a SET search_path = \"A b\", \"$user\", public", "ALTER ROLE a SET work_mem = '4MB'",
        "ALTER ROLE a SET my.own = 'it''s'", "ALTER ROLE a SET DateStyle = 'German, DMY'",
        "COMMENT ON ROLE a IS E'two\\nlines \\\\ and ''quotes'''",
        "CREATE ROLE b VALID UNTIL 'infinity'", "ALTER ROLE b SET local_preload_libraries = ''",
    )  # fmt: skip
    manifest = {
        "roles": [
            {"name": "a", "comment": "", "config": {"work_mem": "5MB", "search_path": "public"}, "login": False},
            {"name": "b", "comment": "new", "config": {}, "valid_until": "2031-01-01T00:00:00Z", "superuser": True},
        ]
    }
    assert back(db, undo, manifest) == []


def test_an_expiry_beyond_all_calendars_is_listed(db: Database, undo: Path) -> None:
    db.sql("CREATE ROLE a VALID UNTIL '294000-01-01+00'", "CREATE ROLE b VALID UNTIL '0044-03-15 BC'")
    manifest = {"roles": [{"name": "a", "createdb": True}, {"name": "b"}]}
    assert not db.reconcile(manifest, undo_file=str(undo)).failed
    assert left(undo) == [
        "the expiry of role a was a date that only the server can spell",
        "the expiry of role b was a date that only the server can spell",
    ]
    db.runs(undo)
    assert db.attribute("a", "rolcreatedb") is False


def test_passwords_are_listed_and_the_rest_comes_back(db: Database, undo: Path) -> None:
    db.sql("CREATE ROLE a NOLOGIN")
    before = everything(db)
    manifest = {"roles": [{"name": "a", "password": "some-password"}, {"name": "b", "password": "other-password"}]}
    assert not db.reconcile(manifest, fingerprint_key="k" * 20, undo_file=str(undo)).failed
    assert left(undo) == [
        "the password of role a was replaced, and nobody knows the old one",
        "the table of password fingerprints stays: it says which passwords were set",
    ]
    db.runs(undo)
    assert everything(db) == before
    # The run after it begins from there, records of roles that are gone included.
    db.converge(manifest, fingerprint_key="k" * 20)


@pytest.mark.versions(max=15)
def test_a_grantor_of_a_membership_before_16(db: Database, undo: Path) -> None:
    db.sql("CREATE ROLE g", "CREATE ROLE m", "CREATE ROLE x", "GRANT g TO x WITH ADMIN OPTION")
    db.sql("SET ROLE x", "GRANT g TO m", "RESET ROLE")
    manifest = {
        "roles": [{"name": name} for name in ("g", "m", "x")],
        "memberships": [{"role": "g", "members": [{"name": "m", "admin": True}, {"name": "x", "admin": True}]}],
    }
    assert ("g", "m", "x", False) in db.edges()
    assert back(db, undo, manifest) == []
    assert ("g", "m", "x", False) in db.edges()


# ---- when the file is there


@pytest.mark.versions(min=16)
def test_a_grantor_has_its_admin_option_back_before_it_grants(db: Database, undo: Path) -> None:
    """Although what makes room for a membership (a is a member of b again) goes ahead of what it would take along."""
    db.sql(
        *(f"CREATE ROLE {role}" for role in ("a", "b", "cr", "rds_superuser")),
        "GRANT a TO cr WITH ADMIN OPTION", "SET ROLE cr", "GRANT a TO rds_superuser WITH INHERIT FALSE", "RESET ROLE",
        "GRANT b TO a",
    )  # fmt: skip
    roles = [{"name": name} for name in ("a", "b", "cr")]
    assert back(db, undo, {"roles": roles, "memberships": [{"role": "a", "members": [{"name": "b"}]}]}) == []


def test_a_run_with_nothing_to_do_keeps_the_way_back_of_the_one_before(table: Database, undo: Path) -> None:
    assert table.reconcile(READER, undo_file=str(undo), undeclared_grantees="revoke").changed
    way_back = undo.read_text()
    for check in (False, True):
        assert not table.reconcile(READER, check=check, undo_file=str(undo)).changed
        assert undo.read_text() == way_back
    undo.unlink()
    for check in (False, True):
        table.reconcile(READER, check=check, undo_file=str(undo))
        assert "-- There is nothing to undo." in undo.read_text()
        table.runs(undo)
        undo.unlink()


def test_a_run_that_fails_keeps_the_way_back_of_the_one_before(table: Database, undo: Path) -> None:
    undo.write_text("-- the one before")
    table.sql(
        "CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE EXCEPTION 'grants are frozen'; END$$",
        "CREATE EVENT TRIGGER frozen ON ddl_command_start WHEN TAG IN ('GRANT') EXECUTE FUNCTION public.refuse()",
    )
    result = table.reconcile(READER, undo_file=str(undo))
    assert result.error_code == "server_error", result
    assert undo.read_text() == "-- the one before"
    assert table.reconcile(READER, undo_file=str(undo), max_revokes=0, expected_digest="sha256:0").failed
    assert undo.read_text() == "-- the one before"
    assert [path.name for path in undo.parent.iterdir()] == ["undo.sql"]


def test_the_way_back_is_there_before_the_commit(table: Database, undo: Path) -> None:
    # The process dies where it would send the COMMIT.
    prelude = (
        "import os\n"
        "from ansible_collections.pg_access.reconcile.plugins.module_utils import apply\n"
        "apply.commit = lambda *a, **k: os._exit(9)"
    )
    stdout, stderr, code = table.raw(READER, prelude=prelude, undo_file=str(undo))
    assert (stdout, stderr, code) == ("", "", 9)
    assert 'DROP ROLE "app";' in undo.read_text()
    assert "app" not in table.roles()
    assert [path.name for path in undo.parent.iterdir()] == ["undo.sql"]


def test_a_rehearsal_writes_what_check_mode_writes(table: Database, undo: Path) -> None:
    table.reconcile(READER, check=True, undo_file=str(undo))
    checked = undo.read_text()
    undo.unlink()
    assert not table.reconcile(READER, check=True, rehearse=True, undo_file=str(undo)).failed
    assert undo.read_text() == checked


def test_a_role_that_gave_itself_something(db: Database, undo: Path) -> None:
    db.sql(
        "CREATE ROLE a", "CREATE ROLE b", "GRANT b TO a", "CREATE SCHEMA s", "CREATE TABLE s.t (a int)",
        "GRANT USAGE ON SCHEMA s TO a", "GRANT INSERT ON s.t TO a WITH GRANT OPTION", "SET ROLE a",
        "GRANT INSERT ON s.t TO b WITH GRANT OPTION", "GRANT INSERT ON s.t TO a WITH GRANT OPTION", "RESET ROLE",
    )  # fmt: skip
    table = "INSERT ON s.t"
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "a=a*/postgres", "b=a*/a", "a=a*/a"}, table
    assert back(db, undo, {"schemas": [{"name": "s"}]}) == []


def test_a_grantor_that_inherits_the_owner(db: Database, undo: Path) -> None:
    """It holds the grant option itself, so PostgreSQL takes it for the grantor, and not the owner that it inherits."""
    db.sql(
        "CREATE ROLE o", "CREATE ROLE g", "CREATE ROLE x", "GRANT o TO g", "CREATE SCHEMA s",
        "GRANT USAGE ON SCHEMA s TO PUBLIC", "CREATE TABLE s.t (a int)", "ALTER TABLE s.t OWNER TO o",
        "GRANT SELECT ON s.t TO g WITH GRANT OPTION", "GRANT SELECT ON s.t TO x",
        "SET ROLE g", "GRANT SELECT ON s.t TO x", "GRANT SELECT ON s.t TO o WITH GRANT OPTION", "RESET ROLE",
    )  # fmt: skip
    assert {"x=r/g", "x=r/o", "o=r*/g"} <= (db.acl("s.t") or set())
    manifest = {
        "roles": [{"name": "x", "external": True, "privilege_reconciliation": "additive"}],
        "schemas": [{"name": "s"}],
    }
    assert back(db, undo, manifest) == []
    db.converge(manifest, undeclared_grantees="revoke")


def passing_on(**more: Any) -> dict[str, Any]:
    """A manifest in which app may pass SELECT on, in the midst of roles that are only named."""
    rule = {
        "role": "app", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "t"},
        "with_grant_option": True, **more,
    }  # fmt: skip
    roles = [{"name": name, "external": True} for name in ("o", "app", "adm")]
    return {"roles": roles, "schemas": [{"name": "s"}], "grants": [rule]}


def test_a_grant_option_that_the_executor_inherits_from_the_plan_on(table: Database, undo: Path) -> None:
    """What PostgreSQL would take for the grantor on the way back, instead of the owner, and without a word."""
    options = table.admin()
    table.sql(
        # The first of both is found first.
        "CREATE ROLE app", "CREATE ROLE o", "GRANT app, o TO adm", "ALTER SCHEMA s OWNER TO o",
        "ALTER TABLE s.t OWNER TO o", "GRANT SELECT ON s.t TO old",
    )  # fmt: skip
    manifest = passing_on(object={"type": "table", "schema": "s", "name": "*"})
    assert back(table, undo, manifest, **options) == []
    table.converge(manifest, undeclared_grantees="revoke", **options)
    assert table.acl("s.t") == {f"o={table.full}/o", "app=r*/o"}


@pytest.mark.versions(min=16)
def test_an_owner_that_the_executor_inherits_and_may_not_become_is_listed(table: Database, undo: Path) -> None:
    options = table.admin()
    table.sql(
        "CREATE ROLE app", "CREATE ROLE o", "GRANT app TO adm", "GRANT o TO adm WITH INHERIT TRUE, SET FALSE",
        "ALTER SCHEMA s OWNER TO o", "ALTER TABLE s.t OWNER TO o",
    )  # fmt: skip
    manifest = passing_on(columns=["a"])
    (item,) = back(table, undo, manifest, **options)
    assert item.startswith("this login may not: adm inherits o, who owns table s.t (a), and also a role that holds"), (
        item
    )
    table.converge(manifest, undeclared_grantees="revoke", **options)


@pytest.mark.parametrize(
    "inherits",
    # Before, a member that may set the owner inherits it, or nobody.
    [pytest.param(True, id="inherited"), pytest.param(False, id="not_inherited", marks=pytest.mark.versions(min=16))],
)
def test_a_grant_option_that_the_plan_takes_from_the_executor(table: Database, undo: Path, inherits: bool) -> None:
    """On the way back it cannot grant by it before it has it again; it may become the owner, whom it may not inherit."""
    options = table.admin()
    with_options = f" WITH INHERIT {inherits}, SET TRUE" if table.version >= 16 else ""
    table.sql(
        "CREATE ROLE o", f"GRANT o TO adm{with_options}", "ALTER SCHEMA s OWNER TO o", "ALTER TABLE s.t OWNER TO o",
        "GRANT USAGE ON SCHEMA s TO adm", "GRANT SELECT ON s.t TO adm WITH GRANT OPTION",
        "GRANT SELECT (b) ON s.t TO old WITH GRANT OPTION", "GRANT UPDATE (b) ON s.t TO adm WITH GRANT OPTION",
        "SET ROLE adm", "GRANT SELECT ON s.t TO old", "GRANT UPDATE (b) ON s.t TO old", "RESET ROLE",
    )  # fmt: skip
    assert "old=r/adm" in (table.acl("s.t") or set())
    manifest = {"schemas": [{"name": "s"}]}
    assert back(table, undo, manifest, **options) == []
    table.converge(manifest, undeclared_grantees="revoke", **options)


# ---- roles that go


RETIRED = [
    "CREATE ROLE old LOGIN", "CREATE ROLE heir", "CREATE ROLE x", "CREATE ROLE y", "CREATE ROLE g", "GRANT g TO old",
    "CREATE SCHEMA s", "CREATE SCHEMA mine AUTHORIZATION old", "CREATE TABLE s.t (a int)", "CREATE TABLE s.u (a int)",
    "ALTER TABLE s.u OWNER TO old", "GRANT USAGE ON SCHEMA s TO PUBLIC",
    "GRANT SELECT ON s.t TO old WITH GRANT OPTION", "GRANT INSERT ON s.t TO old",
    "SET ROLE old", "GRANT SELECT ON s.t TO x", "GRANT SELECT ON s.u TO y", "GRANT SELECT ON s.t TO y", "RESET ROLE",
    "ALTER DEFAULT PRIVILEGES FOR ROLE old IN SCHEMA s GRANT SELECT ON TABLES TO x",
    "ALTER DEFAULT PRIVILEGES FOR ROLE heir IN SCHEMA s GRANT SELECT ON TABLES TO old",
]  # fmt: skip
RETIREMENT = {
    "roles": [{"name": name} for name in ("heir", "x", "y")],
    "schemas": [{"name": "s"}],
    "grants": [
        {"role": "x", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "t"}},
        {"role": "x", "privileges": ["UPDATE"], "object": {"type": "table", "schema": "s", "name": "*"}},
    ],
    "retirements": [{"role": "old", "reassign_owned_to": "heir", "drop_owned": True}],
}


def test_what_is_left_of_a_retirement_comes_back(db: Database, undo: Path) -> None:
    db.sql(*RETIRED)
    plan = undo.with_name("plan.sql")
    result = db.reconcile(RETIREMENT, undo_file=str(undo), plan_file=str(plan))
    assert not result.failed, result
    assert "old" not in db.roles()
    db.runs(undo)
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "x=r/postgres", "y=r/postgres"}
    assert db.acl("s.u") == {f"heir={db.full}/heir", "y=r/heir"}
    assert db.query("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'mine'") == [("heir",)]
    listed = left(undo)
    for words in (
        "role old is dropped: its attributes, password, settings, comment and memberships are gone",
        "what role old owned belongs to heir",
        "the privileges of role old, and those it gave, are gone",
        "SELECT on table s.t was granted to y by old; it comes back as granted by postgres",
    ):
        assert words in listed
    text = plan.read_text()
    assert '-- retirements[0]\nREASSIGN OWNED BY "old" TO "heir";\nDROP OWNED BY "old";\nDROP ROLE "old";' in text


def test_the_script_of_a_retirement_ends_as_the_apply(server: Cluster, runner: Runner, tmp_path: Path) -> None:
    ends = []
    for by_hand in (True, False):
        db = Database(server, runner)
        try:
            db.sql(*RETIRED)
            plan = tmp_path / "plan.sql"
            assert not db.reconcile(RETIREMENT, check=by_hand, plan_file=str(plan)).failed
            if by_hand:
                db.runs(plan)
            assert db.reconcile(RETIREMENT).sql == []
            ends.append(everything(db))
        finally:
            db.close()
    assert not differences(*ends)


def test_a_schema_whose_old_owner_is_dropped_stays_with_the_new_one(db: Database, undo: Path) -> None:
    db.sql("CREATE ROLE old", "CREATE ROLE x", "CREATE SCHEMA s AUTHORIZATION old", "GRANT USAGE ON SCHEMA s TO x")
    manifest = {
        "roles": [{"name": "new"}],
        "schemas": [{"name": "s", "owner": "new"}],
        "retirements": [{"role": "old"}],
    }
    manifest["roles"] = [{"name": "new"}]
    db.sql("CREATE ROLE new")
    result = db.reconcile(manifest, undo_file=str(undo), undeclared_grantees="revoke")
    assert not result.failed, result
    assert "schema s belonged to old, which is dropped" in left(undo)
    db.runs(undo)
    assert db.acl("s", "schema") == {"new=UC/new", "x=U/new"}


def test_memberships_that_a_dropped_role_granted_come_back_from_the_executor(db: Database, undo: Path) -> None:
    db.sql("CREATE ROLE g", "CREATE ROLE m", "CREATE ROLE old", "GRANT g TO old WITH ADMIN OPTION")
    db.sql("SET ROLE old", "GRANT g TO m", "RESET ROLE")
    manifest = {"roles": [{"name": "g"}], "retirements": [{"role": "old", "drop_owned": True}]}
    result = db.reconcile(manifest, undo_file=str(undo))
    assert not result.failed, result
    assert db.members("g") == set()
    db.runs(undo)
    assert db.members("g") == {"m"}
    assert "the membership of m in g was granted by old; it comes back as granted by postgres" in left(undo)


def test_a_check_run_leaves_the_way_back_of_the_last_apply_alone(table: Database, tmp_path: Path) -> None:
    undo = tmp_path / "undo.sql"
    assert table.reconcile(READER, undo_file=str(undo)).changed
    way_back = undo.read_text(encoding="utf-8")
    table.sql("REVOKE SELECT ON s.t FROM app")
    result = table.reconcile(READER, check=True, undo_file=str(undo))
    assert result.changed
    assert [warning.split(": ", 1)[1] for warning in result.warnings] == [
        f"undo_file {undo} is there and stays as it is: a check run changes nothing that it could undo"
    ]
    assert undo.read_text(encoding="utf-8") == way_back
    undo.unlink()
    assert table.reconcile(READER, check=True, undo_file=str(undo)).warnings == []
    assert undo.exists()
