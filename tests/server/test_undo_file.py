# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``undo_file``: an apply and the script of its way back end where they began, but for what the script lists."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import test_properties_memberships as edges
from harness import Cluster, Database, Result, Runner
from hypothesis import event, given, note
from hypothesis import strategies as st
from script_support import OTHER_GRANTOR, differences, everything, left
from strategies import cases
from test_properties import Trial, examples


def there_and_back(db: Database, undo: Path, run: Callable[..., Result], *, user: str = "postgres") -> list[str]:
    """Apply, undo, and compare. Returns what is listed as not undone."""
    before = everything(db), everything(db, grantors=False)
    predicted = run(check=True, undo_file=str(undo))
    if predicted.failed:
        assert not undo.exists()
        return []
    preview = undo.read_text()
    result = run(undo_file=str(undo))
    if result.failed:
        assert result.error_code == "guard", result
        return []
    assert undo.read_text() == preview, "the check run predicted another way back"
    if not result.changed:
        return []
    kept = left(undo)
    done = db.psql(undo, user=user)
    note(f"{undo.read_text()}\n{done.stdout}{done.stderr}")
    if done.returncode and any("this login may not" in item for item in kept):
        return kept
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    lenient = any(OTHER_GRANTOR in item for item in kept)
    wrong = differences(before[lenient], everything(db, grantors=not lenient))
    assert not wrong, "\n".join(["it did not end where it began", *wrong])
    return kept


# ---- random databases


@examples(2)
@given(data=st.data())
def test_apply_and_undo_end_where_they_began(server: Cluster, runner: Runner, data: st.DataObject) -> None:
    case = data.draw(cases(server.version, modes=("authoritative", "adopt")))
    case.options.setdefault("undeclared_grantees", "revoke")
    with tempfile.TemporaryDirectory() as folder, Trial(case, server, runner) as trial:
        user = case.options.get("login_user", "postgres")
        kept = there_and_back(trial.db, Path(folder) / "undo.sql", trial.run, user=user)
        event(f"{len(kept)} left")


@examples(2)
@given(data=st.data())
def test_what_several_grantors_gave_comes_back(server: Cluster, runner: Runner, data: st.DataObject) -> None:
    case = data.draw(cases(server.version, modes=("authoritative", "adopt"), foreign=True))
    with tempfile.TemporaryDirectory() as folder, Trial(case, server, runner) as trial:
        user = case.options.get("login_user", "postgres")
        kept = there_and_back(trial.db, Path(folder) / "undo.sql", trial.run, user=user)
        event(f"{len(kept)} left")


@examples()
@given(data=st.data())
def test_memberships_come_back(db: Database, data: st.DataObject) -> None:
    case = data.draw(edges.cases(db.version, data.draw(st.sampled_from(["postgres", "su2", "cr"]))))
    edges.prepare(case, db)

    def run(**options: Any) -> Result:
        return db.reconcile(case.manifest, login_user=case.executor, **options)

    with tempfile.TemporaryDirectory() as folder:
        kept = there_and_back(db, Path(folder) / "undo.sql", run, user=case.executor)
        event(f"{len(kept)} left")
