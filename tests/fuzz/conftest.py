# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fuzzer: whatever the module is given, it ends in a success or in a failure with an ``error_code``.

``FUZZ=long`` (``make fuzz``) tries other inputs each time, and many more. ``FUZZ_EXAMPLES`` says how many.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent / "server"):
    sys.path.insert(0, str(folder))

import harness

harness.link_collection()
sys.path.insert(0, str(harness.COLLECTIONS))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    from caller import OUTCOMES

    for kind, counted in sorted(OUTCOMES.items()):
        terminalreporter.write_line(f"{kind}: {sum(counted.values())} inputs")
        for outcome, count in counted.most_common():
            terminalreporter.write_line(f"  {outcome:<24} {count:>7}")
