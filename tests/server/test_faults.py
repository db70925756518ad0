# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults at every statement of a plan that has every kind of statement: nothing is lost, nothing is left, nothing lies
between.

``FAULTS=long`` (``make faults``) does the same for more plans, executors and faults, and prints the table of
``docs/reliability.md``.
"""

from __future__ import annotations

import os
from typing import Any

import faults
import pytest
from fault_plans import FaultPlan
from faults import Trial
from harness import Database

LONG = os.environ.get("FAULTS") == "long"

HARMS = {
    "backend terminated": faults.Terminate,
    "module killed": faults.Kill,
}


@pytest.mark.parametrize("name", HARMS)
def test_after_every_statement(db: Database, name: str) -> None:
    trial = Trial(FaultPlan(db))
    trial.plan.reset()
    for stop in trial.every():
        trial.try_one(stop, HARMS[name](name, trial.plan), converge=stop.number >= trial.first - 1)
