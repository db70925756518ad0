# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What docs/what-is-managed.md says of PUBLIC: who does not name it does not see it, and how it is named and found."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from harness import CHECKOUT, Database
from playbook_support import fences

#: What is granted to everybody by hand, in words of SQL; nobody has it from PostgreSQL.
GRANTS = (
    "USAGE ON SCHEMA inventory",
    "SELECT ON inventory.a_table",
    "SELECT (id) ON inventory.a_table",
    "SELECT ON inventory.a_view",
    "SELECT ON inventory.a_result",
    "USAGE ON SEQUENCE inventory.a_sequence",
)

BEFORE = """
CREATE SCHEMA inventory; CREATE TABLE inventory.a_table (id int); CREATE VIEW inventory.a_view AS SELECT 1 AS id;
CREATE MATERIALIZED VIEW inventory.a_result AS SELECT 1 AS id; CREATE SEQUENCE inventory.a_sequence;
"""


def _rules() -> dict[str, Any]:
    (text,) = [fence.text for fence in fences("what-is-managed.md") if fence.text.startswith("# PUBLIC has nothing")]
    manifest: dict[str, Any] = yaml.safe_load(text)
    return manifest


def _unmanaged(db: Database, manifest: object) -> list[tuple[str, str]]:
    """What the page's second example shows, outside PostgreSQL's own schemas."""
    answers = db.reconcile(manifest, check=True, explain=["PUBLIC"]).explain
    return [
        (one["object"]["type"], one["privilege"])
        for one in answers
        if one["because"] == "unmanaged"
        and "inventory" in (one["object"]["schema"], one["object"]["name"], *one["objects"])
    ]


@pytest.mark.parametrize("grant", GRANTS)
def test_a_rule_that_names_public_shows_the_next_grant_and_no_other_does(db: Database, grant: str) -> None:
    db.sql(BEFORE)
    manifest = _rules()
    without = {**manifest, "grants": []}
    db.converge(manifest)
    db.sql(f"GRANT {grant} TO PUBLIC")
    for mode in ("authoritative", "adopt", "additive"):
        result = db.silent(without, reconciliation_mode=mode)
        assert (result.withheld, result.suppressed_revokes, result.warnings) == ([], [], [])
    assert len(_unmanaged(db, without)) == 1
    assert _unmanaged(db, manifest) == []
    result = db.converge(manifest)
    assert len(result.sql) == 1 and result.sql[0].startswith("REVOKE ") and "PUBLIC" in result.sql[0]
    assert _unmanaged(db, without) == []


def test_pages_that_promise_say_so() -> None:
    for page in ("README.md", "docs/quickstart.md", "docs/limitations.md"):
        text = (CHECKOUT / page).read_text(encoding="utf-8")
        assert "what-is-managed.md#what-public-has" in text and "nobody holds" not in text.lower(), page
