# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where and with what was measured. Nothing in it names the machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

import places
import psycopg
import servers


def machine() -> dict[str, object]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "load": round(os.getloadavg()[0], 1),
    }


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def versions() -> dict[str, str]:
    text = (places.ROOT / "galaxy.yml").read_text()
    own = re.search(r"^version: *(\S+)", text, re.MULTILINE)
    program = servers.psql()
    said = (
        subprocess.run([str(program), "--version"], check=True, capture_output=True, text=True).stdout
        if program
        else ""
    )
    return {
        "collection": own[1] if own else "",
        "python": platform.python_version(),
        "ansible-core": metadata.version("ansible-core"),
        "psycopg": psycopg.__version__,
        "libpq": str(psycopg.pq.version()),
        "psql": said.split()[-1] if said else "",
    }
