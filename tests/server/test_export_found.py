# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pg_role_export: what people found who tried to break it. Each test is the smallest input of one finding."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import servers
from harness import Cluster, Database, Runner, another_server
from test_export import rules

#: The oldest and the newest version: what PostgreSQL changed lies between them.
ENDS = (servers.VERSIONS[0], servers.VERSIONS[-1])


@pytest.fixture(scope="module")
def other_end(server: Cluster) -> Iterator[Cluster]:
    """A server of the newest version where this one has no options of memberships (before 16), else of the oldest."""
    version = ENDS[1] if server.version < 16 else ENDS[0]
    if version not in servers.available():
        pytest.skip(f"PostgreSQL {version} is not there")
    with another_server(version) as cluster:
        yield cluster


@pytest.fixture
def target(other_end: Cluster, runner: Runner) -> Iterator[Database]:
    """A database on that server."""
    database = Database(other_end, runner)
    yield database
    database.close()


# ---- memberships, and who inherits

READS = "SELECT has_table_privilege(%s, 'sx.t', 'SELECT')"


@pytest.mark.versions(max=15)
@pytest.mark.parametrize(("attribute", "inherits"), [("INHERIT", True), ("NOINHERIT", False)])
def test_who_inherits_by_its_attribute_does_so_by_its_membership_from_16_on(
    db: Database, target: Database, tmp_path: Path, attribute: str, inherits: bool
) -> None:
    for database in (db, target):
        database.sql("CREATE SCHEMA sx; CREATE TABLE sx.t (a int)")
    db.sql(
        f"CREATE ROLE grp; CREATE ROLE m LOGIN {attribute}; GRANT grp TO m; GRANT pg_read_all_data TO m",
        "GRANT USAGE ON SCHEMA sx TO grp; GRANT SELECT ON sx.t TO grp",
    )
    result = db.export(tmp_path)
    member: dict[str, Any] = {"name": "m"} if inherits else {"name": "m", "inherit": False}
    assert [entry["members"] for entry in result["manifest"]["memberships"]] == [[member], [member]]
    target.converge(result["manifest"])
    assert db.value(READS, "m") is target.value(READS, "m") is inherits


@pytest.mark.versions(min=16)
@pytest.mark.parametrize("attribute", ["INHERIT", "NOINHERIT"])
@pytest.mark.parametrize("inherits", [True, False])
def test_who_inherits_by_its_membership_does_so_before_16_or_the_run_fails(
    db: Database, target: Database, tmp_path: Path, attribute: str, inherits: bool
) -> None:
    for database in (db, target):
        database.sql("CREATE SCHEMA sx; CREATE TABLE sx.t (a int)")
    db.sql(
        f"CREATE ROLE grp; CREATE ROLE m LOGIN {attribute}; GRANT grp TO m WITH INHERIT {inherits}",
        "GRANT USAGE ON SCHEMA sx TO grp; GRANT SELECT ON sx.t TO grp",
    )
    manifest = db.export(tmp_path)["manifest"]
    by_attribute = attribute == "INHERIT"
    expected: dict[str, Any] = {"name": "m"}
    if not inherits:
        expected["inherit"] = False
    elif not by_attribute:
        # Without it, an older server would take the membership for one that is not inherited, and say nothing.
        expected["inherit"] = True
    assert manifest["memberships"] == [{"role": "grp", "members": [expected]}]
    if inherits is by_attribute:
        target.converge(manifest)
        assert db.value(READS, "m") is target.value(READS, "m") is inherits
    else:
        target.fails(manifest, "unsupported_version", "contradicts the role's own inherit")


# ---- what a version gives PUBLIC

USES = "SELECT has_schema_privilege('m', 'public', 'USAGE'), has_schema_privilege('m', 'public', 'CREATE')"
OWNS = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'public'"


@pytest.mark.parametrize(
    "change", ["", "REVOKE USAGE ON SCHEMA public FROM PUBLIC", "GRANT ALL ON SCHEMA public TO PUBLIC"]
)
def test_the_schema_public_is_elsewhere_what_it_was_here(
    db: Database, target: Database, tmp_path: Path, change: str
) -> None:
    """PUBLIC may create in it on PostgreSQL 14, and from 15 on it may not, and another role owns the schema."""
    db.sql("CREATE ROLE m", change)
    result = db.export(tmp_path)
    said = {
        privilege: rest for _role, _kind, _schema, _name, privilege, *rest in _single(rules(result, all_of_them=True))
    }
    assert said.keys() == {"USAGE", "CREATE"}
    target.converge(result["manifest"])
    assert db.query(USES) == target.query(USES)
    assert db.value(OWNS) == target.value(OWNS)


def _single(found: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The rules about PUBLIC on the schema public, a privilege at a time."""
    for rule in found:
        if rule[:4] == ("PUBLIC", "schema", None, "public"):
            absent = [word for word in rule[4:] if word == "absent"]
            for privilege in rule[4 : len(rule) - len(absent)]:
                yield (*rule[:4], privilege, *absent)


# ---- what was lost, and what lies beside

SUBNAME = "SELECT has_column_privilege('m', 'pg_subscription', 'subname', 'SELECT')"


def test_a_column_of_a_catalog_that_public_lost_is_absent(db: Database, tmp_path: Path) -> None:
    """With the last entry the column's ACL is gone, so only pg_init_privs still knows of it."""
    db.sql("CREATE ROLE m; REVOKE SELECT (subname) ON pg_subscription FROM PUBLIC")
    result = db.export(tmp_path)
    rule = ("PUBLIC", "table", "pg_catalog", "pg_subscription", "SELECT", "(subname)", "absent")
    assert rule in rules(result)
    db.sql("GRANT SELECT (subname) ON pg_subscription TO PUBLIC")
    assert db.value(SUBNAME)
    assert rule not in rules(db.export(tmp_path))
    db.converge(result["manifest"])
    assert not db.value(SUBNAME)


def test_a_column_of_an_extensions_table_that_somebody_lost_is_absent(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE m; CREATE ROLE n; CREATE SCHEMA s; CREATE TABLE s.t (a int, b int, gone int)",
        "GRANT SELECT (a, gone) ON s.t TO m, PUBLIC; GRANT SELECT (b) ON s.t TO m, n; GRANT INSERT ON s.t TO n",
        "ALTER EXTENSION plpgsql ADD TABLE s.t",
    )
    try:
        assert [rule for rule in rules(db.export(tmp_path)) if rule[2] == "s"] == []
        db.sql("REVOKE SELECT (a) ON s.t FROM m, PUBLIC; REVOKE SELECT (b) ON s.t FROM m; ALTER TABLE s.t DROP gone")
        found = [rule for rule in rules(db.export(tmp_path)) if rule[2] == "s"]
        assert found == [
            ("PUBLIC", "table", "s", "t", "SELECT", "(a)", "absent"),
            ("m", "table", "s", "t", "SELECT", "(a, b)", "absent"),
            ("n", "table", "s", "t", "SELECT", "(b)"),
        ]
    finally:
        db.sql("ALTER EXTENSION plpgsql DROP TABLE s.t")


def test_privileges_on_a_toast_table_are_listed(db: Database, tmp_path: Path) -> None:
    db.sql(
        "CREATE ROLE m; CREATE ROLE n; GRANT SELECT ON pg_toast.pg_toast_1255 TO m WITH GRANT OPTION",
        "GRANT SELECT (chunk_id) ON pg_toast.pg_toast_1255 TO n; GRANT USAGE ON SCHEMA pg_toast TO m",
    )
    result = db.export(tmp_path)
    found = [item for item in result["not_exported"] if item["reason"] == "toast_table"]
    assert [(item["role"], item["object"], item["what"]) for item in found] == [
        (
            role,
            {"type": "table", "schema": "pg_toast", "name": "pg_toast_1255", "columns": columns},
            f"SELECT on {place}",
        )
        for role, columns, place in (
            ("m", [], "the TOAST table"),
            ("n", ["chunk_id"], "a column of the TOAST table"),
        )
    ]
    assert [rule for rule in rules(result) if rule[2] == "pg_toast"] == []
    assert db.run_export(roles=["n"])["summary"]["not_exported"] == 1


def test_a_temporary_table_of_another_session_is_none_of_its_business(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE ROLE m")
    session = db.connect()
    session.execute("CREATE TEMPORARY TABLE passing (a int); GRANT SELECT ON passing TO m")
    result = db.export(tmp_path)
    assert "passing" not in str(result)
    session.close()


# ---- names that are no text

NAMES = {"emoji": "r\U0001f600w", "ligature": "r\ufb01w", "letter": "r\u00e4w", "private": "r\ue123w"}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_the_pattern_for_a_name_that_is_no_text_matches_no_text(db: Database, name: str, tmp_path: Path) -> None:
    db.sql(f'CREATE ROLE "{name}"; CREATE SCHEMA s; CREATE TABLE s.t (); GRANT SELECT ON s.t TO "{name}"')
    other = f"{db.name}_x"
    db.sql(f"CREATE DATABASE {other} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    session = db.connect(dbname=other)
    session.execute("SET client_encoding = 'SQL_ASCII'")
    session.execute(b'CREATE ROLE "r\xe4w"')
    try:
        result = db.run_export()
        assert not result.failed, result
        assert [item["role"] for item in result["not_exported"]] == ["r\\udce4w"]
        file = tmp_path / "access.yml"
        file.write_text(result["yaml"], encoding="utf-8")
        for given in (result["manifest"], {"manifest_files": [str(file)]}):
            again = db.reconcile(given)
            assert not again.failed, again
            assert again.sql == []
        assert rules(result)[-1] == (name, "table", "s", "t", "SELECT")
    finally:
        session.execute(b'DROP ROLE "r\xe4w"')
        session.close()
        db.sql(f"DROP DATABASE {other}")


# ---- a login that PUBLIC's losses keep out


def test_a_login_that_may_not_read_a_catalog_is_told_what_it_needs(db: Database) -> None:
    db.sql(
        "CREATE ROLE plain LOGIN; CREATE ROLE m; ALTER ROLE m SET work_mem = '1MB'",
        "REVOKE SELECT ON pg_settings FROM PUBLIC",
    )
    for result in (
        db.run_export(login_user="plain"),
        db.reconcile({"roles": [{"name": "m", "config": {"work_mem": "1MB"}}]}, login_user="plain"),
    ):
        assert (result.failed, result.error_code, result.sqlstate) == (True, "insufficient_privilege", "42501")
        assert "pg_settings" in result.msg
        assert "PUBLIC" in result.hint
    db.sql("GRANT SELECT ON pg_settings TO plain")
    assert not db.run_export(login_user="plain").failed


# ---- what an older version does not know


@pytest.mark.versions(min=16)
@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("GRANT grp TO m WITH SET FALSE", "set: false needs PostgreSQL 16"),
        ("GRANT SET ON PARAMETER work_mem TO m", "parameter"),
        ("GRANT pg_checkpoint TO m", "pg_checkpoint"),
    ],
    ids=["option", "kind", "role"],
)
def test_what_an_older_version_does_not_know_is_refused_there(
    db: Database, target: Database, tmp_path: Path, script: str, word: str
) -> None:
    db.sql(f"CREATE ROLE grp; CREATE ROLE m; {script}")
    target.fails(db.export(tmp_path)["manifest"], ("unsupported_version", "object_missing"), word)


@pytest.mark.versions(min=17)
def test_a_privilege_that_an_older_version_does_not_know_is_refused_there(
    db: Database, target: Database, tmp_path: Path
) -> None:
    for database in (db, target):
        database.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    db.sql("CREATE ROLE m; GRANT ALL ON s.t TO m")
    target.fails(db.export(tmp_path)["manifest"], "unsupported_version", "MAINTAIN")
