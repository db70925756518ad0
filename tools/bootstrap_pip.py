#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spares `ansible-test` the download of its pip installer.

ansible-test fills a new virtual environment with an installer script that it fetches from a web site of its own, not
from a package index. Many places that have an index cannot reach that site. The script is only fetched when it is not
in the cache, so this puts one there that gets the same pip in two steps: the one that every Python carries
(ensurepip), and with it the version that ansible-test asks for, from the index.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

INSTALLER = '''\
"""Installs pip without leaving the package index; see tools/bootstrap_pip.py of pg_access.reconcile."""
import runpy
import subprocess
import sys

packages = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
subprocess.check_call([sys.executable, "-m", "ensurepip", "--upgrade", "--default-pip"])
sys.argv = ["pip", "install"] + packages
runpy.run_module("pip", run_name="__main__")
'''

FIND_SOURCE = "import importlib.util as u; print(u.find_spec('ansible_test._internal.python_requirements').origin)"


def pip_versions(source: str) -> list[str]:
    """The pip versions that ansible-test's own source names, as `pip='...'` in a call of dict or as a plain string."""
    versions = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "pip" and isinstance(node.value, ast.Constant):
            versions.append(str(node.value.value))
    return versions


def seed(python: Path, home: Path) -> list[Path]:
    """Puts the installer into the cache that the ansible-test of `python` uses when its HOME is `home`."""
    found = subprocess.run([str(python), "-c", FIND_SOURCE], check=True, capture_output=True, text=True)
    versions = pip_versions(Path(found.stdout.strip()).read_text(encoding="utf-8"))
    if not versions:
        raise SystemExit(f"bootstrap_pip: no pip version found in {found.stdout.strip()}")
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    seeded = []
    for version in versions:
        script = cache / f"get_pip_{version.replace('.', '_')}.py"
        if not script.is_file():
            script.write_text(INSTALLER, encoding="utf-8")
        seeded.append(script)
    return seeded


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: bootstrap_pip.py PYTHON HOME")
    for seeded_script in seed(Path(sys.argv[1]), Path(sys.argv[2])):
        print(seeded_script)
