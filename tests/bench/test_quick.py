# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The benchmark itself, at its smallest size: that it still runs, not how fast anything is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import measure
import places
import pytest


def test_a_short_run_of_all_of_it(tmp_path: Path) -> None:
    bench = places.HERE / "bench.py"
    done = subprocess.run(
        [sys.executable, str(bench), "--quick", "--to", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "benchmarks.json").read_text())
    works = found["seconds"]["18"]["10x10"]
    assert set(works) == {"idle", "plan", "apply", "drift plan", "drift apply"}
    assert {"collection", "collection as sent", "collection 5 ms", "collection 20 ms", "psql", "python"} == set(
        works["idle"]
    )
    # The delay is there: it has more round trips than this.
    wire = found["wire"]
    assert wire["plan 18/10x10"]["round_trips"] >= 5
    assert wire["plan 18/10x10"]["result"]["counts_exact"] and wire["plan 18/10x10"]["result"]["digest_exact"]
    assert wire["idle 18/10x10"]["inspection"] <= 12 and wire["idle 18/10x10"]["planned"] == 0
    assert wire["apply 18/10x10"]["planned"] == wire["plan 18/10x10"]["planned"] > 100
    text = "".join(path.read_text() for path in tmp_path.glob("benchmarks.*"))
    # It is published: nothing of this machine but its size is in it.
    assert str(places.ROOT) not in text and str(Path.home()) + "/" not in text


def run(code: str, **options: float) -> measure.Run:
    return measure.run([sys.executable, "-c", code], {}, Path("/"), **options)


def test_a_measured_program_is_asked_for_its_memory_and_its_time() -> None:
    small, large = run("pass"), run("x = b'x' * 100_000_000; import time; time.sleep(0.3)")
    assert 90_000_000 < large.memory - small.memory < 120_000_000
    assert large.seconds > 0.3 > large.processor
    # Not what this process ever had.
    ballast = b"x" * 200_000_000
    assert run("pass").memory < 100_000_000 < len(ballast)


def test_a_program_that_takes_too_long_is_ended() -> None:
    done = run("import time; time.sleep(60)", limit=0.5)
    assert done.late and done.seconds < 30


def test_a_program_that_fails_is_no_measurement() -> None:
    with pytest.raises(measure.Failed, match="no such thing"):
        run("raise SystemExit('no such thing')")


def test_the_shell_of_whoever_measures_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "elsewhere")
    monkeypatch.setenv("ANSIBLE_PIPELINING", "1")
    assert (
        run("import os; print(os.environ.get('PGHOST'), os.environ.get('ANSIBLE_PIPELINING'))").output == "None None\n"
    )
