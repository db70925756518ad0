# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way from a database with a past to ``authoritative``, as docs/adoption.md has it: its blocks are what is run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness import Database, Result
from playbook_support import Fence, fences, for_database, play

PAGE = fences("adoption.md")
LOADER = "access/pgloader_pg.yml"


#: Every entry of the legacy login in the ACLs of the example.
ENTRIES = """
SELECT count(*) FROM (
    SELECT relacl AS acl FROM pg_class UNION ALL SELECT nspacl FROM pg_namespace UNION ALL SELECT defaclacl FROM pg_default_acl
) AS acls, LATERAL aclexplode(acl) AS entry WHERE entry.grantee = 'pgloader_pg'::regrole
"""


def walk(db: Database, folder: Path) -> Iterator[Fence]:
    """Makes the example's database and writes its files as a reader does; yields every other block."""
    (folder / "access").mkdir()
    for fence in PAGE:
        if fence.language == "sql":
            db.sql(fence.text)
        elif fence.file:
            (folder / fence.file).write_text(for_database(db, fence.text), encoding="utf-8")
        else:
            yield fence


@pytest.mark.versions(min=18)
def test_the_page_shows_what_ansible_shows(db: Database, tmp_path: Path) -> None:
    """The commands of the page, and each block of output under the run that it belongs to."""
    played, commands, shown = None, 0, 0
    for fence in walk(db, tmp_path):
        if fence.language == "console":
            for line in fence.text.splitlines():
                program, playbook, *words = line.removeprefix("$ ").split()
                assert program == "ansible-playbook"
                played = play(db, tmp_path, playbook, *words)
                commands += 1
                assert played.status == 0, played.output
        else:
            assert fence.language == "text"
            assert played is not None
            played.shows(fence.text)
            shown += 1
    assert commands == 6
    assert shown == 7


def test_each_step_does_what_it_says_and_no_more(db: Database, tmp_path: Path) -> None:
    """The same steps on every version, each twice: who loses what, the backlog, and when nothing is left to do."""
    steps: list[tuple[dict[str, Any], Result]] = []
    files = [str(tmp_path / "access/shop.yml"), str(tmp_path / LOADER)]

    def can(role: str) -> set[str]:
        words = ("SELECT", "INSERT", "UPDATE", "DELETE")
        tables = ("items", "prices", "load_log")
        ask = "SELECT has_table_privilege(%s, %s, %s)"
        return {
            f"{word} {table}" for table in tables for word in words if db.value(ask, role, f"inventory.{table}", word)
        }

    before: dict[str, set[str]] = {}
    entries = 0
    for fence in walk(db, tmp_path):
        if not before:
            before = {role: can(role) for role in ("app", "intern_2019", "pgloader_pg")}
            entries = db.value(ENTRIES)
        if fence.language != "console":
            continue
        check = "--check" in fence.text
        mode = "authoritative" if "mode=authoritative" in fence.text else "adopt"
        manifest = yaml.safe_load((tmp_path / LOADER).read_text(encoding="utf-8"))
        if check:
            untouched = db.snapshot()
            result = db.reconcile(manifest_files=files, reconciliation_mode=mode, check=True)
            assert db.snapshot() == untouched
        else:
            result = db.converge(manifest_files=files, reconciliation_mode=mode)
        assert not result.failed, result
        steps.append((manifest, result))
        if len(steps) == 2:
            # The agreed roles have what is agreed, everybody else is out, the loader can do what it could.
            assert can("app") == before["app"] | {
                f"{word} load_log" for word in ("SELECT", "INSERT", "UPDATE", "DELETE")
            }
            assert can("intern_2019") == set()
            assert can("pgloader_pg") == before["pgloader_pg"]
    assert len(steps) == 6
    looked, held, first, second, gone, strict = [result for _manifest, result in steps]
    counts = [result.suppressed_revoke_count for _manifest, result in steps]
    assert counts == [0, 12, 4, 0, 0, 0]
    assert looked.changed and looked.sql
    # What the override kept back is all that the role was given.
    assert sum(len(item["privileges"]) for item in held.suppressed_revokes) == entries == 12
    assert not held.matching("pgloader_pg")
    # Reviews: nobody but the loader is in a plan.
    for result in (first, second):
        assert result.sql and all("pgloader_pg" in statement for statement in result.sql)
    assert any("can be removed" in warning for warning in second.warnings)
    for result in (gone, strict):
        assert result.sql == [] and result.changed is False
    final = steps[-1][0]
    assert "privilege_reconciliation" not in final["roles"][0]
    reads = {f"SELECT {table}" for table in ("items", "prices", "load_log")}
    assert can("pgloader_pg") == reads | {"INSERT load_log", "INSERT items", "UPDATE items"}
    # From now on what is given by hand goes again.
    db.sql("GRANT DELETE ON inventory.prices TO pgloader_pg")
    db.converge(manifest_files=files)
    assert "DELETE prices" not in can("pgloader_pg")
