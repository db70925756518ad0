# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``{database}`` in the path of a file: a file for each database, however it is named and whoever named it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Cluster, Database

#: By database, what its file is called.
WORDS = {
    "a_b": "a_b", "a/b": "a%2Fb", "a%2Fb": "a%252Fb", "A b": "A b", "..": "%2E%2E", ".": "%2E", "../x": "..%2Fx",
    "{database}": "{database}", "/" * 63: "%2F" * 63,
}  # fmt: skip
MANIFEST = {"schemas": [{"name": "made"}]}


@pytest.fixture
def odd(server: Cluster, db: Database) -> Iterator[Database]:
    for name in WORDS:
        server.connection.execute(f'CREATE DATABASE "{name}"')
    yield db
    for name in WORDS:
        server.connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def test_each_database_has_files_of_its_own(odd: Database, tmp_path: Path) -> None:
    for name, word in WORDS.items():
        for number in (1, 2):
            files = {
                f"{option}_file": str(tmp_path / f"{{database}}.{option}") for option in ("plan", "undo", "report")
            }
            done = odd.reconcile(MANIFEST, login_db=name, **files)
            assert not done.failed and done.changed is (number == 1), done
            if number == 1:
                for option in ("plan", "undo", "report"):
                    assert (tmp_path / f"{word}.{option}").is_file(), option
        exported = odd.run_export(login_db=name, dest=str(tmp_path / "{database}.yml"))
        assert exported.changed and exported["file"] == str(tmp_path / f"{word}.yml")
        assert odd.run_export(login_db=name, dest=str(tmp_path / "{database}.yml")).changed is False
    assert len(list(tmp_path.iterdir())) == 4 * len(WORDS)


def test_the_environment_may_name_the_database(db: Database, tmp_path: Path) -> None:
    folder = tmp_path / db.name
    folder.mkdir()
    path = str(tmp_path / "{database}" / "plan.sql")
    done = db.reconcile(MANIFEST, check=True, login_db=None, environment={"PGDATABASE": db.name}, plan_file=path)
    assert not done.failed and [item.name for item in folder.iterdir()] == ["plan.sql"]
    told = db.run_export(login_db=None, environment={"PGDATABASE": db.name}, dest=str(tmp_path / "{database}.yml"))
    assert told["file"] == str(tmp_path / f"{db.name}.yml")


def test_what_is_wrong_with_a_path_is_told_before_anything_is_done(db: Database, tmp_path: Path) -> None:
    before = db.snapshot()
    both = str(tmp_path / "{database}.sql")
    wrong = {
        "is the file of plan_file as well": {"plan_file": both, "undo_file": both},
        "must be an absolute path": {"plan_file": "{database}.sql"},
        "there is no folder": {"undo_file": str(tmp_path / "{database}" / "undo.sql")},
    }
    for message, files in wrong.items():
        for check in (True, False):
            failed = db.reconcile(MANIFEST, check=check, **files)
            assert failed.error_code == "manifest_invalid" and message in failed["msg"], failed
    # Only where the name is known, two paths are one.
    same = {"plan_file": both, "undo_file": str(tmp_path / f"{db.name}.sql")}
    assert "is the file of plan_file as well" in db.reconcile(MANIFEST, **same)["msg"]
    assert "there is no folder" in db.run_export(dest=str(tmp_path / "{database}" / "x.yml"))["msg"]
    assert db.snapshot() == before and list(tmp_path.iterdir()) == []
