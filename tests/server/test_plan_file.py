# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``plan_file``: its script, run by psql, ends in the same catalog as the apply; and what a script of a plan is like."""

from __future__ import annotations

import copy
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from harness import UNCONNECTED, Cluster, Database, Runner
from hypothesis import event, given, note
from hypothesis import strategies as st
from script_support import differences, everything, statements
from strategies import cases
from test_properties import Trial, examples

READER: dict[str, Any] = {
    "roles": [{"name": "app", "comment": "reads"}],
    "grants": [
        {"role": "app", "privileges": ["USAGE"], "object": {"type": "schema", "name": "s"}},
        {"role": "app", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "*"}},
    ],
}

#: What has to stay text, wherever it stands.
EVIL = [
    "x\n\\! touch INJECTED",
    "x\r\n\\q",
    "x'; DROP TABLE s.t; --",
    'x"; DROP TABLE s.t; --',
    "x */ DROP TABLE s.t; /*",
    "x $$ :name :'name' :\"name\" $1$ $_$",
    "x\\",
    "\\gexec",
    "\u202egnihtemos",
    "-- x",
    "x\u2028\\! touch INJECTED",
    "{0} %s %I {",
]


@pytest.fixture
def table(db: Database) -> Database:
    db.sql("CREATE SCHEMA s", "CREATE TABLE s.t (a int)")
    return db


# ---- the same end as the apply


@examples(0.3)
@given(data=st.data())
def test_the_script_ends_as_the_apply(server: Cluster, runner: Runner, data: st.DataObject) -> None:
    case = data.draw(cases(server.version, foreign=data.draw(st.booleans())))
    case.options.setdefault("undeclared_grantees", "revoke")
    again = copy.deepcopy(case)
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.sql"
        with Trial(case, server, runner) as trial:
            predicted = trial.run(check=True, plan_file=str(plan))
            if predicted.failed:
                return
            event("with statements" if predicted.sql else "empty")
            note(plan.read_text())
            trial.db.runs(plan, user=case.options.get("login_user", "postgres"))
            by_hand = everything(trial.db)
            assert trial.run().sql == []
        with Trial(again, server, runner) as trial:
            assert not trial.run().failed
            wrong = differences(by_hand, everything(trial.db))
            assert not wrong, "\n".join(["the script and the apply end differently", *wrong])


def test_the_script_runs_on_a_copy_of_the_database(table: Database) -> None:
    script = Path(tempfile.mkdtemp()) / "plan.sql"
    table.sql("CREATE ROLE app")
    predicted = table.reconcile(READER, check=True, plan_file=str(script))
    table.connection.close()
    maintenance = table.cluster.connection
    maintenance.execute(f"CREATE DATABASE copy TEMPLATE {table.name}")
    refused = table.psql(script, database="copy")
    assert refused.returncode == 3
    assert f"this script is for database {table.name}, and this is copy" in refused.stderr
    table.runs(script, database="copy", elsewhere="1")
    table.connection = table.connect(dbname="copy")
    assert table.acl("s.t") == {f"postgres={table.full}/postgres", "app=r/postgres"}
    assert predicted.sql
    table.connection.close()
    maintenance.execute("DROP DATABASE copy")
    table.connection = table.connect()


def test_another_cluster_is_refused(table: Database, tmp_path: Path) -> None:
    script = tmp_path / "plan.sql"
    table.reconcile(READER, check=True, plan_file=str(script))
    identifier = table.value("SELECT system_identifier::text FROM pg_control_system()")
    assert script.read_text().count(identifier) >= 2
    script.write_text(script.read_text().replace(identifier, "7000"))
    refused = table.psql(script)
    assert refused.returncode == 3
    assert f"this script is for cluster 7000, and this is {identifier}" in refused.stderr
    assert "app" not in table.roles()
    table.runs(script, elsewhere="1")
    assert "app" in table.roles()


def test_a_script_that_fails_changes_nothing(table: Database, tmp_path: Path) -> None:
    script = tmp_path / "plan.sql"
    table.reconcile(READER, check=True, plan_file=str(script))
    table.sql("DROP TABLE s.t")
    assert table.psql(script).returncode == 3
    assert "app" not in table.roles()


def test_the_session_role_is_set_by_the_script(table: Database, tmp_path: Path) -> None:
    table.sql(
        "CREATE ROLE boss CREATEROLE", "CREATE ROLE clerk LOGIN NOINHERIT", "GRANT boss TO clerk",
        "ALTER SCHEMA s OWNER TO boss", "ALTER TABLE s.t OWNER TO boss",
    )  # fmt: skip
    script = tmp_path / "plan.sql"
    done = table.reconcile(READER, check=True, plan_file=str(script), login_user="clerk", session_role="boss")
    assert not done.failed, done
    assert "clerk" in script.read_text()
    table.runs(script, user="clerk")
    assert table.acl("s.t") == {f"boss={table.full}/boss", "app=r/boss"}


# ---- what stands in it


def test_each_statement_has_the_rules_behind_it(table: Database, tmp_path: Path) -> None:
    table.sql("CREATE ROLE old", "GRANT SELECT, INSERT ON s.t TO old")
    many = [
        {"role": f"r{number}", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "t"}}
        for number in range(6)
    ]
    manifest = {
        "roles": [{"name": f"r{number}"} for number in range(6)],
        "schemas": [{"name": "s"}],
        "grants": many,
        "default_privileges": [
            {"owner": "r0", "schema": "s", "grant": [{"role": "r1", "privileges": ["SELECT"], "on_type": "table"}]}
        ],
        "memberships": [{"role": "r0", "members": [{"name": "r5"}]}],
    }
    script = tmp_path / "plan.sql"
    done = table.reconcile(manifest, check=True, plan_file=str(script), undeclared_grantees="revoke")
    text = script.read_text()
    assert statements(script) == [f"{statement};" for statement in done.sql]
    assert '-- grants[0], grants[1], grants[2] and 3 more\nGRANT SELECT ON TABLE "s"."t" TO "r0"' in text
    assert "-- default_privileges[0].grant[0]\nALTER DEFAULT PRIVILEGES" in text
    assert '-- memberships[0].members[0]\nGRANT "r0" TO "r5"' in text
    assert '-- roles[3]\nCREATE ROLE "r3"' in text
    assert "-- not declared, and managed by schemas[0], grants[0], grants[1] and 5 more\nREVOKE" in text


def test_a_script_says_where_it_belongs_and_is_the_same_for_the_same_plan(table: Database, tmp_path: Path) -> None:
    one, two = tmp_path / "one.sql", tmp_path / "two.sql"
    predicted = table.reconcile(READER, check=True, plan_file=str(one), reconciliation_mode="adopt")
    done = table.reconcile(READER, plan_file=str(two), reconciliation_mode="adopt")
    assert done.plan_digest == predicted.plan_digest
    assert one.read_bytes() == two.read_bytes()
    text = one.read_text()
    for word in (
        done.plan_digest, table.name, done.server["system_identifier"], f"PostgreSQL {table.version}", "adopt",
        table.server.socket_directory, "login: postgres",
    ):  # fmt: skip
        assert word in text.partition("BEGIN")[0], word


def test_a_plan_with_nothing_to_do_says_so_in_the_place_of_an_old_one(table: Database, tmp_path: Path) -> None:
    script = tmp_path / "plan.sql"
    table.reconcile(READER, plan_file=str(script))
    for check in (True, False):
        script.write_text("DROP SCHEMA s CASCADE;")
        assert not table.reconcile(READER, check=check, plan_file=str(script)).changed
        assert "-- There is nothing to do." in script.read_text()
        assert "DROP" not in script.read_text()
        table.runs(script)


def test_the_file_does_not_count(table: Database, tmp_path: Path) -> None:
    without = table.reconcile(READER, check=True)
    with_file = table.reconcile(READER, check=True, plan_file=str(tmp_path / "plan.sql"))
    assert (with_file.sql, with_file.plan_digest) == (without.sql, without.plan_digest)
    table.converge(READER, plan_file=str(tmp_path / "plan.sql"), undo_file=str(tmp_path / "undo.sql"))


def test_the_file_is_whole_where_the_result_is_shortened(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE SCHEMA s",
        "DO $$ BEGIN FOR n IN 1..2500 LOOP EXECUTE format('CREATE TABLE s.%I (a int)', repeat('t', 50) || n);"
        " END LOOP; END $$",
        "CREATE ROLE old",
        "GRANT SELECT ON ALL TABLES IN SCHEMA s TO old",
        "CREATE TABLE s.spared (a int)",
    )
    script = tmp_path / "plan.sql"
    name = {"type": "table", "schema": "s", "name": "spared"}
    manifest = {
        "roles": [{"name": f"r{number}"} for number in range(2)],
        "schemas": [{"name": "s"}],
        "grants": [
            {"role": "r0", "privileges": ["SELECT"], "object": {**name, "name": "*"}},
            *({"role": "r1", "privileges": [p], "object": {**name, "name": "*"}} for p in ("INSERT", "DELETE")),
            {"role": "r1", "privileges": ["INSERT", "DELETE"], "object": name, "ensure": "absent"},
        ],
    }
    done = db.reconcile(manifest, check=True, plan_file=str(script), undeclared_grantees="revoke")
    assert done.get("truncated"), "the result is not long enough"
    text = script.read_text()
    assert "more */" not in text
    assert text.count(f'"{"t" * 50}1234"') >= 2
    db.runs(script)
    assert db.reconcile(manifest, undeclared_grantees="revoke").sql == []


# ---- nothing gets out of its place


@pytest.mark.parametrize("evil", EVIL, ids=range(len(EVIL)))
def test_a_name_stays_a_name(table: Database, tmp_path: Path, evil: str) -> None:
    quoted = evil.replace('"', '""')
    table.sql(f'CREATE TABLE s."{quoted}" ("{quoted}" int)')
    manifest = {
        "roles": [{"name": evil, "comment": evil, "config": {"application_name": evil}}, {"name": "app"}],
        "schemas": [{"name": evil, "owner": evil}],
        "memberships": [{"role": evil, "members": [{"name": "app"}]}],
        "grants": [
            {
                "role": evil,
                "privileges": ["SELECT"],
                "columns": [evil],
                "object": {"type": "table", "schema": "s", "name": evil},
            },
        ],
        "default_privileges": [
            {"owner": evil, "schema": evil, "grant": [{"role": "app", "privileges": ["SELECT"], "on_type": "table"}]}
        ],
    }
    plan, undo = tmp_path / "plan.sql", tmp_path / "undo.sql"
    before = everything(table)
    predicted = table.reconcile(manifest, check=True, plan_file=str(plan), undo_file=str(undo))
    assert not predicted.failed, predicted
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        table.runs(plan)
        assert table.reconcile(manifest).sql == []
        table.runs(undo)
    finally:
        os.chdir(here)
    assert not differences(before, everything(table))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.sql", "undo.sql"]


def test_a_names_line_breaks_do_not_end_a_comment(table: Database, tmp_path: Path) -> None:
    evil = EVIL[0]
    table.sql("CREATE ROLE \"x\n\\! touch INJECTED\" LOGIN PASSWORD 'some-password'")
    script, undo = tmp_path / "plan.sql", tmp_path / "undo.sql"
    manifest = {"roles": [{"name": evil, "password": "another-password"}]}
    done = table.reconcile(manifest, check=True, plan_file=str(script), undo_file=str(undo), fingerprint_key="k" * 20)
    assert not done.failed, done
    assert '-- \\password "x\\n\\\\! touch INJECTED"' in script.read_text().replace("\\\\n", "\\n") or (
        '-- \\password "x\\n\\! touch INJECTED"' in script.read_text()
    )
    assert "-- - the password of role x\\n\\! touch INJECTED was replaced" in undo.read_text()
    table.runs(script)
    assert not (Path.cwd() / "INJECTED").exists()


# ---- passwords


def test_there_is_no_password_in_it(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE ROLE old LOGIN PASSWORD 'what-it-was-before'", "CREATE ROLE gone")
    key, secret = "the-key-of-fingerprints", "correct horse battery staple"
    options: dict[str, Any] = {"fingerprint_key": key, "undeclared_grantees": "revoke"}
    roles = [{"name": "app", "password": secret}, {"name": "old", "login": True}, {"name": "gone", "password": secret}]
    db.reconcile({"roles": [roles[2]]}, **options)
    plan, undo = tmp_path / "plan.sql", tmp_path / "undo.sql"
    manifest = {"roles": [*roles[:2], {"name": "gone"}]}
    result = db.reconcile(
        manifest, passwords={"old": "P-" + secret}, plan_file=str(plan), undo_file=str(undo), **options
    )
    assert not result.failed, result
    for text in (plan.read_text(), undo.read_text()):
        for word in (secret, key, "SCRAM-SHA-256", "PASSWORD '", "********"):
            assert word not in text
    assert '-- \\password "app"' in plan.read_text()
    assert '-- \\password "old"' in plan.read_text()
    assert 'ALTER ROLE "gone" PASSWORD NULL;' in plan.read_text()
    assert "-- - the password of role old was replaced, and nobody knows the old one" in undo.read_text()
    assert "-- - the password of role gone is gone" in undo.read_text()
    # The role goes, and its password with it.
    assert "password of role app" not in undo.read_text()


def test_a_secret_that_is_in_the_catalog_in_clear_is_left_out(db: Database, tmp_path: Path) -> None:
    secret = "correct horse battery staple"
    db.sql(f"CREATE ROLE app LOGIN PASSWORD 'x'; COMMENT ON ROLE app IS 'the password is {secret}'")
    undo = tmp_path / "undo.sql"
    manifest = {"roles": [{"name": "app", "password": secret, "comment": "better"}]}
    result = db.reconcile(manifest, fingerprint_key="k" * 20, undo_file=str(undo))
    assert not result.failed, result
    assert secret not in undo.read_text()
    assert "-- A statement is left out here: it would show a secret." in undo.read_text()


def test_a_fingerprint_in_a_comment_stays(db: Database, tmp_path: Path) -> None:
    options: dict[str, Any] = {"fingerprint_key": "k" * 20, "fingerprint_store": "comment"}
    role = {"name": "app", "password": "some-password", "comment": "it's\nold"}
    db.converge({"roles": [role]}, **options)
    stored = db.comment("app")
    plan, undo = tmp_path / "plan.sql", tmp_path / "undo.sql"
    manifest = {"roles": [{**role, "comment": "new \\ one"}]}
    assert not db.reconcile(manifest, check=True, plan_file=str(plan), undo_file=str(undo), **options).failed
    assert "role_reconcile password fingerprint 7" not in plan.read_text() + undo.read_text()
    db.runs(plan)
    assert db.comment("app") == (stored or "").replace("it's\nold", "new \\ one")
    assert db.reconcile(manifest, **options).sql == []
    db.runs(undo)
    assert db.comment("app") == stored
    # A comment that was not there goes, and the record stays.
    bare = {"roles": [{**role, "comment": ""}]}
    db.converge(bare, **options)
    record = db.comment("app")
    db.reconcile(manifest, undo_file=str(undo), **options)
    db.runs(undo)
    assert db.comment("app") == record


# ---- plans that are refused


def test_a_plan_that_a_guard_refuses_is_written(table: Database, tmp_path: Path) -> None:
    table.sql("CREATE ROLE old LOGIN", "GRANT SELECT ON s.t TO old")
    script = tmp_path / "plan.sql"
    manifest = {**READER, "schemas": [{"name": "s"}]}
    session = table.connect("old")
    assert table.reconcile(manifest, plan_file=str(script)).error_code == "guard"
    session.close()
    assert "-- An apply is refused (guard): undeclared role old would lose 1 privilege" in script.read_text()
    table.runs(script)
    assert table.acl("s.t") == {f"postgres={table.full}/postgres", "app=r/postgres"}


@pytest.mark.parametrize(
    "options, code",
    [({"max_revokes": 0}, "plan_too_large"), ({"expected_digest": "sha256:" + "0" * 64}, "plan_changed")],
    ids=["brake", "digest"],
)
def test_a_plan_that_is_stopped_is_written_whole(
    table: Database, tmp_path: Path, options: dict[str, Any], code: str
) -> None:
    table.sql("CREATE ROLE old", "GRANT SELECT ON s.t TO old")
    script = tmp_path / "plan.sql"
    result = table.reconcile(READER, plan_file=str(script), undeclared_grantees="revoke", **options)
    assert result.error_code == code
    assert f"-- An apply is refused ({code}): " in script.read_text()
    assert statements(script) == [f"{statement};" for statement in result.plan]


def test_a_plan_without_rights_is_for_somebody_who_has_them(table: Database, tmp_path: Path) -> None:
    table.sql("CREATE ROLE clerk LOGIN", "GRANT USAGE ON SCHEMA s TO clerk")
    script = tmp_path / "plan.sql"
    manifest = {**READER, "scope": {"ignore_roles": ["clerk"]}}
    result = table.reconcile(manifest, check=True, login_user="clerk", plan_file=str(script))
    assert result.error_code == "insufficient_privilege"
    assert "-- An apply is refused (insufficient_privilege): clerk" in script.read_text()
    assert table.psql(script, user="clerk").returncode == 3
    table.runs(script)
    assert table.acl("s.t") == {f"postgres={table.full}/postgres", "app=r/postgres"}


def test_a_plan_that_is_not_whole_is_only_to_be_read(table: Database, tmp_path: Path) -> None:
    script, undo = tmp_path / "plan.sql", tmp_path / "undo.sql"
    lost = {"role": "app", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "nowhere"}}
    manifest = {**READER, "grants": [*READER["grants"], lost]}
    result = table.reconcile(manifest, plan_file=str(script), undo_file=str(undo))
    assert result.error_code == "object_missing"
    assert "-- An apply is refused (object_missing): " in script.read_text()
    assert '-- CREATE ROLE "app"' in script.read_text()
    assert not [
        line for line in script.read_text().splitlines() if line and not line.startswith(("--", "\\set", "\\enc"))
    ]
    table.runs(script)
    assert "app" not in table.roles()
    assert not undo.exists()


# ---- files


def test_the_file_is_for_its_owner_and_whole_or_not_there(table: Database, tmp_path: Path) -> None:
    script = tmp_path / "plan.sql"
    script.write_text("old")
    script.chmod(0o644)
    for check in (True, False):
        table.reconcile(READER, check=check, plan_file=str(script), undo_file=str(tmp_path / "undo.sql"))
        for path in tmp_path.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.sql", "undo.sql"]


@pytest.mark.parametrize("option", ["plan_file", "undo_file"])
@pytest.mark.parametrize(
    "path, words",
    [
        ("plan.sql", "must be an absolute path"),
        ("TMP/nowhere/plan.sql", "there is no folder"),
        ("TMP", "is there and is no file"),
        ("TMP/link", "is a symbolic link"),
        ("TMP/dangling", "is a symbolic link"),
        ("/proc/plan.sql", "there is no folder"),
    ],
    ids=["relative", "no folder", "folder", "link", "dangling link", "read-only"],
)  # fmt: skip
def test_a_file_that_cannot_be_is_found_before_connecting(
    table: Database, tmp_path: Path, option: str, path: str, words: str
) -> None:
    (tmp_path / "target").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "dangling").symlink_to(tmp_path / "made")
    if path.startswith("/proc") and os.access("/proc", os.W_OK):
        words = "cannot be written"
        # Its superuser may write everywhere, so it finds out when it tries; nothing is applied either way.
        result = table.fails(READER, "manifest_invalid", words, **{option: path})
    else:
        result = table.rejects(READER, words, **{option: path.replace("TMP", str(tmp_path))})
    assert result.problems[0]["path"] == option
    assert (tmp_path / "target").read_text() == "precious"
    assert not (tmp_path / "made").exists()


@UNCONNECTED
def test_two_files_are_two(db: Database, tmp_path: Path) -> None:
    path = str(tmp_path / "one.sql")
    result = db.rejects(READER, "is the file of plan_file as well", plan_file=path, undo_file=path)
    assert [problem["path"] for problem in result.problems] == ["undo_file"]
    db.rejects(
        {"roles": [{"name": "app", "password": "some-password"}]},
        "is the file of fingerprint_key_file as well",
        plan_file=path,
        fingerprint_key_file=path,
    )


def test_an_empty_path_means_none(table: Database) -> None:
    assert not table.reconcile(READER, check=True, plan_file="", undo_file="").failed


def test_a_full_disk_is_found_before_the_first_statement(table: Database, tmp_path: Path) -> None:
    # What opens the draft fails as a full disk does.
    prelude = (
        "import os\nreal = os.fsync\n"
        "def full(handle):\n"
        "    raise OSError(28, 'No space left on device')\n"
        "os.fsync = full"
    )
    for option in ("plan_file", "undo_file"):
        before = table.snapshot()
        result = table.reconcile(READER, prelude=prelude, **{option: str(tmp_path / "x.sql")})
        assert result.error_code == "manifest_invalid", result
        assert f"{option} {tmp_path}/x.sql cannot be written: No space left on device" in result.msg
        assert table.snapshot() == before
        assert list(tmp_path.iterdir()) == [], "a draft was left"


# ---- other encodings


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_names_reach_a_database_of_another_encoding(db: Database, tmp_path: Path, encoding: str) -> None:
    other = f"{db.name}_x"
    db.sql(f"CREATE DATABASE {other} TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        plan, undo = tmp_path / "plan.sql", tmp_path / "undo.sql"
        manifest = {"roles": [{"name": "zoë", "comment": "très"}], "schemas": [{"name": "été", "owner": "zoë"}]}
        options: dict[str, Any] = {"login_db": other, "plan_file": str(plan), "undo_file": str(undo)}
        before = db.snapshot()
        predicted = db.reconcile(manifest, check=True, **options)
        assert not predicted.failed, predicted
        done = db.psql(plan, database=other)
        assert (done.returncode, done.stderr) == (0, "")
        assert db.reconcile(manifest, **options).sql == []
        done = db.psql(undo, database=other)
        assert (done.returncode, done.stderr) == (0, "")
        assert db.snapshot() == before
    finally:
        db.sql(f"DROP DATABASE {other}")


def test_a_file_that_is_read_is_not_written(table: Database, tmp_path: Path) -> None:
    """By whatever name: the script would be in the place of the manifest or of the key."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    manifest, key = real / "m.yml", real / "key"
    manifest.write_text("roles: [{name: r}]\n", encoding="utf-8")
    key.write_text("k" * 32, encoding="utf-8")
    for options, words in (
        ({"manifest_files": [str(manifest)], "plan_file": str(manifest)}, "manifest_files"),
        ({"manifest_files": [str(manifest)], "undo_file": str(link / "m.yml")}, "manifest_files"),
        ({"fingerprint_key_file": str(key), "plan_file": str(link / "key")}, "fingerprint_key_file"),
        ({"plan_file": str(real / "p.sql"), "undo_file": str(link / "p.sql")}, "plan_file"),
    ):
        table.fails({}, "manifest_invalid", f"is the file of {words} as well", **options)
    assert manifest.read_text(encoding="utf-8") == "roles: [{name: r}]\n"
    assert key.read_text(encoding="utf-8") == "k" * 32
