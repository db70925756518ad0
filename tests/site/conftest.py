# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the built documentation lies, and the browser to look at it. `make docs` says both in the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
for folder in ("tools", "tests/browser"):
    sys.path.insert(0, str(CHECKOUT / folder))

from browser import Chromium, program  # noqa: E402


@pytest.fixture(name="site", scope="session")
def _site() -> Path:
    folder = Path(os.environ.get("RECONCILE_SITE") or CHECKOUT / ".build" / "docs" / "html")
    assert (folder / "index.html").is_file(), "make docs builds the pages"
    return folder


@pytest.fixture(name="chromium", scope="session")
def _chromium() -> Iterator[Chromium]:
    with Chromium(program()) as browser:
        yield browser
