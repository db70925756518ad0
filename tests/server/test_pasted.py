# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a hint or a page tells people to paste works in a play without an inventory, and shows no secret."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from harness import Database
from playbook_support import fences, for_database, play

PASSWORD = "a password that nobody may see"
INTERPRETER = ("-e", f"ansible_python_interpreter={sys.executable}")


def _play(folder: Path, tasks: str, **variables: str) -> None:
    playbook = [
        {"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": yaml.safe_load(tasks)},
    ]
    (folder / "site.yml").write_text(yaml.safe_dump(playbook, sort_keys=False), encoding="utf-8")


@pytest.mark.versions(min=18)
def test_the_line_that_a_missing_key_asks_for(db: Database, tmp_path: Path) -> None:
    failed = db.fails(f"roles: [{{name: app, password: {PASSWORD}}}]", "fingerprint_key_missing")
    _said, _colon, line = failed.problems[0]["hint"].partition("example: ")
    assert line.startswith("fingerprint_key: ")
    _play(
        tmp_path,
        "- pg_access.reconcile.pg_role_reconcile:\n"
        f"    login_db: {db.name}\n"
        "    roles: [{name: app, password: '{{ app_password }}'}]\n"
        f"    {line}\n",
        app_password=PASSWORD,
    )
    for changes in (1, 0):
        run = play(db, tmp_path, "site.yml", *INTERPRETER)
        assert (run.status, run.changed) == (0, changes), run.output
    # The page says the same place, so that there is one key.
    assert (tmp_path / "secrets/fingerprint-key").is_file()
    assert any(line in fence.text for fence in fences("secrets.md"))


@pytest.mark.versions(min=18)
def test_the_loop_over_logins_shows_no_password(db: Database, tmp_path: Path) -> None:
    (text,) = [fence.text for fence in fences("secrets.md") if "loop: [app, dashboard]" in fence.text]
    secrets = {"app_password": PASSWORD, "dashboard_password": f"{PASSWORD} either"}
    _play(tmp_path, for_database(db, text), fingerprint_key="a key that is long enough for it", **secrets)
    for changes in (1, 0):
        run = play(db, tmp_path, "site.yml", "-vvvv", "--diff", *INTERPRETER)
        assert (run.status, run.changed) == (0, changes), run.output
        assert not [secret for secret in secrets.values() if secret in run.output]
    assert db.logs_in("app", PASSWORD) and db.logs_in("dashboard", f"{PASSWORD} either")
