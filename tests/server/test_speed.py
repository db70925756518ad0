# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run does not do when it has nothing to do. How long it takes is measured by the benchmark (tests/bench)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import Database, module_environment
from zygote import COLLECTION

MANIFEST = "roles: [{name: a, login: true, member_of: [{name: g}]}, {name: g}]\nschemas: [{name: s}]"

#: Only a plan with changes, or what somebody asked for, may load these.
LATE = {
    "access", "authority", "difftext", "drops", "elsewhere", "execution", "explain", "explained", "export", "exported", "feasibility",
    "files", "foreign", "grantors", "guards", "items", "locks", "password_sending", "protection", "script", "script_files",
    "sealed", "sessions", "statements", "undo",
    "verification", "waits", "yaml",
}  # fmt: skip

#: Runs the module, and says on standard error what it has loaded in the end.
PROGRAM = f"""
import atexit, json, runpy, sys
atexit.register(lambda: sys.stderr.write(json.dumps(sorted(sys.modules))))
runpy.run_module("{COLLECTION}.plugins.modules.pg_role_reconcile", run_name="__main__")
"""


def loaded(db: Database, **options: Any) -> set[str]:
    """Each part of the names of what a run has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(db.arguments(MANIFEST, **options)),
        env=module_environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert not json.loads(done.stdout)["changed"]
    names = [name for name in json.loads(done.stderr) if name.startswith(COLLECTION) or name == "yaml"]
    return {part for name in names for part in name.split(".")}


def test_a_run_with_nothing_to_do_loads_nothing_that_only_others_need(db: Database) -> None:
    db.converge(MANIFEST)
    found = loaded(db)
    assert "plan" in found
    assert found & LATE == set()


def test_what_is_asked_for_is_loaded(db: Database, tmp_path: Path) -> None:
    """The list above has names that exist."""
    db.converge(MANIFEST)
    assert "script_files" in loaded(db, plan_file=str(tmp_path / "plan.sql")) & LATE
    assert {"explain", "explained"} <= loaded(db, explain=["a"]) & LATE
    assert "access" in loaded(db, report_file=str(tmp_path / "access.json")) & LATE


def test_a_native_file_loads_nothing_of_other_tools(db: Database, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    ours, theirs = tmp_path / "access.yml", tmp_path / "pgroles.yml"
    ours.write_text(MANIFEST, encoding="utf-8")
    theirs.write_text("auth_providers: []\nroles: [{name: a, login: true}, {name: g}]", encoding="utf-8")
    rooms = {"source", "conversion", "pgroles", "bundle", "policy_resource"}
    for path, wanted in ((ours, set()), (theirs, rooms)):
        options = dict.fromkeys(("roles", "schemas"))
        db.converge(manifest_files=[str(path)])
        assert loaded(db, manifest_files=[str(path)], **options) & rooms == wanted
