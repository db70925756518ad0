# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role's report on the controller: in check mode and in a run, the same for the same access, and without any secret."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

from playbooks import INTEGRATION, Bench, Run, bench, leak, made_up, say

HERE = Path(__file__).resolve().parent

#: Markup and what Ansible would take for a template.
ODD = "<script>alert('{{ 7 * 7 }}')</script>"

BEFORE = ("CREATE ROLE pgloader_pg LOGIN", "CREATE DATABASE shop", "CREATE DATABASE billing")
IN_EACH = (
    "CREATE SCHEMA stock",
    "CREATE TABLE stock.items (id int)",
    "GRANT SELECT, DELETE ON stock.items TO pgloader_pg",
)


def main() -> None:
    with bench() as made:
        made.sql(*BEFORE)
        for name in ("shop", "billing"):
            made.sql(*IN_EACH, database=name)
        told = [made_up("app"), made_up("key")]
        odd = {"__ansible_unsafe": ODD}
        made.write("secrets.json", json.dumps({"app_password": told[0], "key": told[1], "odd_name": odd}))
        path = made.path("reports/access.html")
        # Of its own, because other runs may be at work on this machine.
        made.environment["TMPDIR"] = str(made.path("temporary/in_use").parent)
        planned(made, path, told)
        applied(made, path, told)
        refused(made)
        shown(made)


def play(made: Bench, path: Path, *words: str, check: bool = True) -> Run:
    return made.play(HERE / "report.yml", *words, "-e", json.dumps({"report": str(path)}), check=check)


def changed(run: Run) -> int:
    found = re.search(r"^localhost +: ok=\d+ +changed=(\d+) ", run.output, re.M)
    assert found, run.output
    return int(found[1])


def nothing_stays(made: Bench) -> None:
    """The data of the report are gone with the role's end."""
    left = [str(path) for path in made.folder.rglob("reconcile-*")]
    assert not left, left


def planned(made: Bench, path: Path, told: list[str]) -> None:
    first = play(made, path, "--check", "-vvvv")
    assert f"{made.environment['TMPDIR']}/reconcile-" in first.output, "the data lie elsewhere"
    page = path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written = path.stat().st_mtime_ns
    again = play(made, path, "--check", "-vvvv")
    assert path.read_bytes() == page and path.stat().st_mtime_ns == written
    # The report is a file that really is written, so it counts; the second is the same.
    assert changed(first) == 3 and changed(again) == 2, (changed(first), changed(again))
    text = page.decode("utf-8")
    assert "Made in check mode: nothing was changed." in text and "pgloader_pg" in text
    for name in ("shop", "billing"):
        assert f"<bdi>{name}</bdi></h2>" in text and f"<bdi>{name}_reader</bdi>" in text, name
    assert "&lt;script&gt;alert(&#x27;{{ 7 * 7 }}&#x27;)&lt;/script&gt;" in text and ODD not in text
    assert text.count("<script>") == 1
    for run in (first, again):
        assert "<!DOCTYPE" not in run.output, "the page is in the output"
    for secret in told:
        assert not leak(secret, text) and not leak(secret, first.output)
    nothing_stays(made)
    say("check mode writes the report")


def applied(made: Bench, path: Path, told: list[str]) -> None:
    runs = [play(made, path) for _turn in range(3)]
    page = path.read_text(encoding="utf-8")
    assert [changed(run) for run in runs] == [3, 1, 0], [changed(run) for run in runs]
    assert "There was nothing to do." in page and "Made in check mode" not in page
    assert "pgloader_pg</bdi></a> keeps 2 undeclared privileges" in page
    for run in runs:
        made.no_secret(run, told, "shop")
    for secret in told:
        assert not leak(secret, page)
    nothing_stays(made)
    say("a run writes the report, and the third changes nothing")


def refused(made: Bench) -> None:
    """Before anything is done."""
    made.sql("DROP TABLE stock.items CASCADE", "CREATE TABLE stock.items (id int)", database="shop")
    for path in (Path("relative.html"), made.folder / "none" / "access.html"):
        failed = play(made, path, check=False)
        assert failed.status and "reconcile_report must be an absolute path" in failed.output, failed.output[-2000:]
    rows: Any = made.sql("SELECT has_table_privilege('shop_reader', 'stock.items', 'SELECT')", database="shop")
    assert rows == [(False,)]


def shown(made: Bench) -> None:
    """The example of the documentation's page."""
    text = (INTEGRATION.parents[1] / "docs" / "report.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(# report\.yml\n.*?)^```", text, re.M | re.S)
    made.sql("CREATE ROLE access_admin SUPERUSER LOGIN", "CREATE DATABASE shown")
    here = block.replace("db.example.com", str(made.server.socket_directory)).replace(
        "_database: shop", "_database: shown"
    )
    made.environment["PGPORT"] = str(made.server.port)
    example = made.write("report.yml", here)
    runs = [made.play(example, *words) for words in (["--check"], [], [])]
    assert [changed(run) > 0 for run in runs] == [True, True, True] and changed(made.play(example)) == 0
    assert "There was nothing to do." in made.path("shop.html").read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
