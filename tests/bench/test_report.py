# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page, the picture, and the files that hold what was measured."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import store as store_module
from bench import complete
from figures import Figure, Figures, Trouble
from inspection import plan_digest, plan_statements
from names import COLLECTION, PSQL, PYTHON
from plot import Line, Panel, decades, draw, spread
from report import PAGE, Page, fill, shown, write
from scenario import Scenario
from sizes import SIZES, VERSIONS, Settings, expected_summary, locks_for, settings
from store import Store, key
from test_figures import sample


def test_a_cell_says_how_sure_it_is() -> None:
    assert shown(Figure(1.234, 1.1, 1.3, 5)) == "1.23 s (1.10-1.30)"
    assert shown(Figure(12.34, 12.34, 12.34, 1), 9.87654) == "12.3 s, 9.88 times"
    assert shown(Figure(1234, 1234, 1234, 1, items=60)) == "1,234 s, scaled from 60 items"
    assert shown(Figure(600, 600, 600, 1, late=600.0), 30) == "not done in 10 min"
    assert shown(Trouble("a | b")) == "failed: a / b"
    assert shown(None) == ""


def test_sections_fill_their_places_again_and_again() -> None:
    page = "a\n<!-- begin: one -->\nold\n<!-- end: one -->\nb\n<!-- begin: two -->\n<!-- end: two -->\n"
    filled = fill(page, {"one": "new", "two": "| x |"})
    assert (
        filled == "a\n<!-- begin: one -->\nnew\n<!-- end: one -->\nb\n<!-- begin: two -->\n| x |\n<!-- end: two -->\n"
    )
    assert fill(filled, {"one": "new", "two": "| x |"}) == filled
    with pytest.raises(ValueError, match="one"):
        fill(page, {"one": "new"})


def data() -> dict[str, Any]:
    rounds: dict[str, Any] = {}
    for number, size in enumerate(("10x10", "20x50"), start=1):
        floors = {PYTHON: sample(0.4), PSQL: sample(0.05 * number)}
        rounds[key(18, size, "idle")] = [{COLLECTION: sample(0.9 * number, 50_000_000), **floors}]
        rounds[key(18, size, "apply")] = [{COLLECTION: sample(1.5 * number), PSQL: sample(0.5 * number)}]
        rounds[key(18, size, "idle beside pgsesame")] = [{COLLECTION: sample(1), "pgsesame": sample(5 * number)}]
    return {"rounds": rounds, "facts": {"tools": {"pgsesame": {"version": "1.0", "why": ""}}, "machine": {"cores": 2}}}


def test_all_three_files_are_written(tmp_path: Path) -> None:
    said = write(data(), Settings((18,), ("10x10", "20x50")), tmp_path)
    assert re.search(r"^\d+ reached, \d+ missed, \d+ not measured: see ", said.splitlines()[-1])
    page = (tmp_path / PAGE.name).read_text()
    assert "| 18 | 10x10 | 0.90 s |  | 0.40 s | 0.05 s | 5.00 s, 5 times |" in page
    found = json.loads((tmp_path / "benchmarks.json").read_text())
    assert found["seconds"]["18"]["20x50"]["idle"]["pgsesame"]["times_the_collection"] == 10
    assert found["must_reach"]
    picture = ElementTree.parse(tmp_path / "benchmarks.svg").getroot()  # noqa: S314
    texts = ["".join(element.itertext()) for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"this collection", "pgsesame", "psql, by hand", "1 s", "tables"} <= set(texts)


def test_a_page_without_measurements_can_be_written(tmp_path: Path) -> None:
    write({"rounds": {}, "facts": {}}, Settings(), tmp_path)
    ElementTree.parse(tmp_path / "benchmarks.svg")  # noqa: S314


def test_every_size_has_a_row_in_every_table() -> None:
    page = Page(Figures(data()), [16, 18], ["10x10"], [], [])
    for name in ("idle", "apply", "plan", "memory", "wire"):
        rows = page.sections()[name].splitlines()[2:]
        assert [row.split(" | ")[0] for row in rows] == ["| 16", "| 18"], name


def test_a_scale_encloses_its_values() -> None:
    assert decades([0.3, 20]) == (-1, 2)
    assert decades([10, 100]) == (1, 2)
    assert decades([10]) == (1, 2)


def test_labels_keep_apart_and_in_order() -> None:
    assert spread([10, 11, 50], 15, 0, 100) == [10, 25, 50]
    assert spread([99, 98], 15, 0, 100) == [100, 85]
    assert spread([5.0], 15, 10, 100) == [10]


def test_names_cannot_break_the_picture() -> None:
    panels = [Panel("a < b", (Line("x & y", ((100, 1.0), (1000, 2.0))), Line("floor", (), floor=True)))]
    ElementTree.fromstring(draw(panels, "<t>"))  # noqa: S314


def test_what_was_measured_goes_on_unless_the_code_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.json"
    first = Store(path)
    first.add(key(18, "10x10", "idle"), {COLLECTION: sample(1)})
    first.note("machine", {"cores": 2})
    again = Store(path)
    assert again.continued
    assert again.rounds("18/10x10/idle") == [{COLLECTION: sample(1)}]
    monkeypatch.setattr(store_module, "signature", lambda: "other code")
    changed = Store(path)
    assert not changed.continued
    assert changed.rounds("18/10x10/idle") == [] and changed.fact("machine") is None
    assert Store(path, as_it_is=True).fact("machine") == {"cores": 2}


def test_only_a_whole_run_is_published(tmp_path: Path) -> None:
    found, wanted = Store(tmp_path / "results.json"), Settings()
    for version in VERSIONS:
        for size in SIZES:
            assert not complete(found, wanted)
            found.note(f"done {version}/{size}", wanted.asked)
    assert not complete(found, wanted)
    found.note("result 26x100", {})
    assert complete(found, wanted)
    # Fewer rounds are another run.
    assert not complete(found, Settings(rounds=1))


def test_the_variables() -> None:
    assert settings({}) == Settings() and Settings().whole
    assert settings({"BENCH_PG": "", "BENCH_SIZES": "", "BENCH_ROUNDS": "", "BENCH_TOOLS": ""}).whole
    found = settings({"BENCH_PG": "16", "BENCH_SIZES": "10x10, 20x50", "BENCH_ROUNDS": "2", "BENCH_TOOLS": "pgsesame"})
    assert (found.versions, found.sizes, found.rounds) == ((16,), ("10x10", "20x50"), 2)
    assert found.wants("pgsesame") and not found.wants("pgroles") and not found.whole
    assert not settings({"BENCH_TOOLS": "none"}).wants("pgsesame")
    quick = settings({"BENCH_SIZES": "100x1000"}, quick=True)
    assert (quick.versions, quick.sizes, quick.rounds) == (VERSIONS[-1:], SIZES[:1], 1)
    assert not quick.whole and not quick.wants("pgsesame")
    with pytest.raises(SystemExit, match="10by10 is no size"):
        settings({"BENCH_SIZES": "10by10"})


def test_the_lock_table_is_larger_only_where_it_has_to_be() -> None:
    assert locks_for(18, Scenario(20, 50)) is None
    assert locks_for(18, Scenario(100, 100)) == 1024
    assert locks_for(17, Scenario(100, 1000)) is None


def test_what_a_plan_has_to_count() -> None:
    scenario = Scenario(3, 3)
    # reader: 3 + 10 + 10; editor: 12 + 10 + 6 + 10; app: 9 + 10 + 3 + 10; each USAGE on the schema.
    assert expected_summary(scenario) == {"roles": 24, "memberships": 45, "grants": 3 * (23 + 38 + 32 + 3)}


def test_a_script_holds_the_plan_that_the_digest_is_of() -> None:
    script = (
        "-- a comment\nBEGIN ISOLATION LEVEL READ COMMITTED;\nSET LOCAL lock_timeout = '3s';\nSET LOCAL statement_timeout = 0;\n"
        "\n-- roles[0]\nCREATE ROLE a;\nGRANT a TO b;\n\nCOMMIT;\n"
    )
    assert plan_statements(script) == ["CREATE ROLE a", "GRANT a TO b"]
    text = '["1", "7", "bench", "authoritative", null, false, ["CREATE ROLE a", "GRANT a TO b"]]'
    assert plan_digest("7", plan_statements(script)) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
