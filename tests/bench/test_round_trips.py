# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How often the module waits for the server, counted on the wire: never more often for a larger plan."""

from __future__ import annotations

from typing import Any

import pytest
import servers
from cluster import Cluster
from inspection import describe_wire
from scenario import Scenario


@pytest.mark.parametrize("version", sorted({*servers.available()[:1], *servers.available()[-1:]}))
def test_a_larger_plan_takes_as_many_round_trips(version: int) -> None:
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for schemas in (1, 6):
        with Cluster(version, Scenario(schemas, 20), say=lambda _text: None, thorough=False) as cluster:
            for work in ("plan", "apply", "idle"):
                found[schemas, work] = describe_wire(cluster, work)
    assert found[6, "apply"]["planned"] > 5 * found[1, "apply"]["planned"]
    for work in ("plan", "apply", "idle"):
        assert found[1, work]["round_trips"] == found[6, work]["round_trips"], work
        assert found[1, work]["inspection"] == found[6, work]["inspection"] <= 12
