# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of an export that is too large for a result."""

from __future__ import annotations

import json
from typing import Any, Dict, List

from ansible_collections.pg_access.reconcile.plugins.module_utils.export.run import fitting
from ansible_collections.pg_access.reconcile.plugins.module_utils.failure import LARGEST


class Edge:
    """What is asked of the module."""

    where = "shop@db1:5432: "
    check_mode = False

    def __init__(self) -> None:
        self.warnings: List[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def result(rules: int, items: int) -> Dict[str, Any]:
    return {
        "changed": True,
        "manifest": {"grants": ["x" * 90] * rules},
        "yaml": "x" * 90 * rules,
        "not_exported": [{"kind": "password", "role": f"role_{number}"} for number in range(items)],
        "flat_roles": [{"role": f"role_{number}", "reason": "x" * 50} for number in range(items)],
        "summary": {"grants": rules, "not_exported": items},
    }


def test_what_fits_is_whole() -> None:
    edge = Edge()
    given = result(100, 100)
    assert fitting(edge, given, "/etc/access.yml") == given  # type: ignore[arg-type]
    assert edge.warnings == []


def test_a_large_manifest_is_in_the_file_alone() -> None:
    edge = Edge()
    given = result(10_000, 3)
    left = fitting(edge, given, "/etc/access.yml")  # type: ignore[arg-type]
    assert (left["manifest"], left["yaml"], left["truncated"]) == ({}, "", True)
    assert (left["not_exported"], left["summary"]) == (given["not_exported"], given["summary"])
    assert len(edge.warnings) == 1
    assert edge.warnings[0].startswith("shop@db1:5432: ")
    assert "/etc/access.yml" in edge.warnings[0]


def test_long_lists_are_shortened_and_counted() -> None:
    given = result(10_000, 20_000)
    left = fitting(Edge(), given, "/etc/access.yml")  # type: ignore[arg-type]
    assert len(json.dumps(left)) <= LARGEST
    for name in ("not_exported", "flat_roles"):
        assert left[name] == given[name][: len(left[name])]
        assert left[name]
    assert left["summary"]["not_exported"] == 20_000


def test_without_a_file_nothing_is_left_out() -> None:
    edge = Edge()
    given = result(10_000, 20_000)
    assert fitting(edge, given, None) == given  # type: ignore[arg-type]
    assert "use dest" in edge.warnings[0]
