# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a report in a headless Chromium. ``RECONCILE_CHROMIUM`` names the program; without it, all is skipped, and
with ``CI=true`` a failure.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent / "server"):
    sys.path.insert(0, str(folder))

import harness

harness.link_collection()
sys.path.insert(0, str(harness.COLLECTIONS))

from browser import Chromium, program


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    with Chromium(program()) as browser:
        yield browser


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of all samples, as files."""
    from ansible_collections.pg_access.reconcile.plugins.plugin_utils.page.page import page
    from ansible_collections.pg_access.reconcile.tests.unit.plugins.plugin_utils import reports

    folder = tmp_path_factory.mktemp("pages")
    shop, hostile = reports.text_of(reports.shop()), reports.text_of(reports.hostile())
    texts = {"shop": [shop], "hostile": [hostile], "two": [shop, hostile], "large": [reports.text_of(reports.large())]}
    texts["chain"] = [reports.text_of(reports.chain())]
    found = {}
    for name, several in texts.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(page(several), encoding="utf-8")
    return found
