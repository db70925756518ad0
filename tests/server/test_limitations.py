# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What docs/limitations.md says of schedules: which drift makes a run changed, and how its playbook sees the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import Database
from playbook_support import Played, fences, for_database, play

DRIFT = next(fence.text for fence in fences("limitations.md") if fence.file == "drift.yml")

SHOP = "{schemas: [{name: inventory}], roles: [{name: app, login: true}]}"
LOADER = "roles: [{name: pgloader_pg, external: true, privilege_reconciliation: additive}]"

#: As many privileges as the page's playbook takes for known.
BEFORE = """
CREATE ROLE app LOGIN; CREATE ROLE pgloader_pg LOGIN; CREATE SCHEMA inventory;
CREATE TABLE inventory.a (x int); CREATE TABLE inventory.b (x int); CREATE TABLE inventory.c (x int);
GRANT SELECT, INSERT, UPDATE, DELETE ON inventory.a, inventory.b, inventory.c TO pgloader_pg;
"""


@pytest.fixture(name="folder")
def _folder(db: Database, tmp_path: Path) -> Path:
    db.sql(BEFORE)
    (tmp_path / "access").mkdir()
    (tmp_path / "access/shop.yml").write_text(SHOP, encoding="utf-8")
    (tmp_path / "access/pgloader_pg.yml").write_text(LOADER, encoding="utf-8")
    (tmp_path / "drift.yml").write_text(for_database(db, DRIFT), encoding="utf-8")
    # In one task, as the page says.
    alone = re.sub(
        r"( +)check_mode: true\n.*",
        r"\1check_mode: true\n\1register: access\n\1failed_when: CONDITION\n",
        DRIFT,
        flags=re.S,
    )
    condition = next(iter(re.findall(r"`failed_when: (.*?)`", _page())))
    (tmp_path / "alone.yml").write_text(for_database(db, alone.replace("CONDITION", condition)), encoding="utf-8")
    return tmp_path


def _page() -> str:
    return (Path(__file__).resolve().parents[2] / "docs/limitations.md").read_text(encoding="utf-8")


@pytest.mark.versions(min=18)
def test_the_playbook_sees_both_kinds_of_drift(db: Database, folder: Path) -> None:
    files = [str(folder / f"access/{name}.yml") for name in ("shop", "pgloader_pg")]

    def runs() -> tuple[Played, Played]:
        before = db.snapshot()
        both = play(db, folder, "drift.yml"), play(db, folder, "alone.yml")
        assert db.snapshot() == before
        assert bool(both[0].status) == bool(both[1].status), both[0].output + both[1].output
        return both

    # What is known.
    db.silent(manifest_files=files)
    assert runs()[0].status == 0

    # One more privilege for the legacy login: no run says changed, the playbook fails with the count by role.
    db.sql("GRANT TRUNCATE ON inventory.a TO pgloader_pg")
    result = db.silent(manifest_files=files)
    assert result.changed is False and result.suppressed_revoke_count == 13
    played, _alone = runs()
    assert played.status != 0
    played.shows("TASK [The override holds back no more than was known]\n\nHeld back now: {'pgloader_pg': 13}")
    db.sql("REVOKE TRUNCATE ON inventory.a FROM pgloader_pg")

    # Anybody else: that is changed, and the playbook shows the statement.
    db.sql("GRANT DELETE ON inventory.b TO app")
    played, _alone = runs()
    assert played.status != 0
    played.shows('TASK [No role holds more or less than declared]\n\nREVOKE DELETE ON TABLE "inventory"."b" FROM "app"')
