# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where things lie. Importing it makes the test servers' module importable, too."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
for folder in (HERE, HERE.parent / "server", ROOT / "tools"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from layout import BUILD

#: All that the benchmark makes.
BENCH = BUILD / "bench"


#: The servers' data. On disk: in memory, fsync would cost nothing.
SCRATCH = Path("/var/tmp")


def collections() -> Path:
    """A folder in which Python and Ansible find the checkout as ansible_collections.pg_access.reconcile."""
    folder = BENCH / "collections" / "ansible_collections" / "pg_access"
    folder.mkdir(parents=True, exist_ok=True)
    # With __init__.py, else an installed ansible_collections package further along the path would win.
    for package in (folder.parent, folder):
        (package / "__init__.py").touch()
    link = folder / "reconcile"
    if not link.is_symlink():
        link.symlink_to(ROOT)
    return folder.parents[1]
