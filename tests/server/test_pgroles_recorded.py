# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pgroles' files beside pgroles itself: the same files on the same database make the same catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness import Database
from pgroles_recorded import catalog, changed, of_version, recorded, write

WHOLE = recorded()


@pytest.mark.versions(min=16)
@pytest.mark.parametrize("case", WHOLE["cases"], ids=lambda case: case["name"])
def test_a_file_makes_what_pgroles_makes_of_it(db: Database, tmp_path: Path, case: dict[str, Any]) -> None:
    db.sql(WHOLE["prepared"], case.get("drift", "").replace("THIS_DB", db.name))
    before = catalog(db)
    mode = case.get("mode", "authoritative")
    db.converge(
        manifest_files=[str(write(case, db.name, tmp_path))],
        reconciliation_mode=mode,
        adopt_schema_owners=mode == "adopt",
        # pgroles looks at no role that the file does not have.
        undeclared_grantees="keep",
    )
    otherwise = case.get("ours", {"catalog": {}})["catalog"]
    expected = {**before, **of_version({**case["catalog"], **otherwise}, db.version)}
    made = {key: value for key, value in expected.items() if value != before.get(key)}
    assert changed(before, catalog(db)) == made
