#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Virtual environments and home folders under `.build/`, made when first needed.

Run as a script it makes the environment of a requirements file in `tools/requirements/` and prints its `bin` folder.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import bootstrap_pip
import pythons
from layout import BUILD, ROOT, locked

REQUIREMENTS = ROOT / "tools" / "requirements"


def environment(name: str, python: Path, *, packages: tuple[str, ...] = (), log: TextIO | None = None) -> Path:
    """The `bin` folder of an environment with `packages`, or else with what `tools/requirements/<name>.txt` lists.

    It is made anew when the list, the interpreter or the place changed. What happens goes to `log`, or to standard
    error.
    """
    output = log or sys.stderr
    folder = BUILD / "venvs" / name
    stamp = folder / "stamp"
    wanted = list(packages) or ["-r", str(REQUIREMENTS / f"{name}.txt")]
    text = " ".join(packages) or (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    state = hashlib.sha256("\0".join((str(python), str(folder), text)).encode()).hexdigest()
    with locked(f"venv-{name}"):
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == state:
            return folder / "bin"
        print(f"making the environment {name} ({python.name})", file=output, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        for command in ([str(python), "-m", "venv", str(folder)], [*pip, *wanted]):
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        stamp.write_text(state, encoding="utf-8")
    return folder / "bin"


def home(name: str, python: Path) -> Path:
    """A home folder for a tool that would otherwise write into the user's `~/.ansible`.

    Programs there still use the package index that the user's pip is set up for, and share one cache.
    """
    folder = BUILD / "homes" / name
    config = folder / ".config" / "pip" / "pip.conf"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(_pip_config(python), encoding="utf-8")
    for owned in (folder, config):
        # Below may stand credentials of a private index.
        owned.chmod(owned.stat().st_mode & 0o700)
    return folder


def seeded_home(name: str, python: Path) -> Path:
    """A home folder in which `ansible-test --venv` of `python` works, see `bootstrap_pip`."""
    folder = home(name, python)
    bootstrap_pip.seed(python, folder)
    return folder


def _pip_config(python: Path) -> str:
    """The user's pip configuration as one file: configuration files and `PIP_*` variables, with our own cache."""
    command = [str(python), "-m", "pip", "config", "list"]
    listed = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    sections: dict[str, dict[str, str]] = {"global": {}}
    for line in listed.stdout.splitlines():
        key, separator, value = line.partition("=")
        section, _dot, option = key.replace(":env:", "global").partition(".")
        if separator and value[:1] in "'\"":
            sections.setdefault(section, {})[option] = str(ast.literal_eval(value))
    sections["global"]["cache-dir"] = str(BUILD / "cache" / "pip")
    text = ""
    for section, options in sections.items():
        lines = (f"{option} = " + value.replace("\n", "\n    ") for option, value in options.items())
        text += f"[{section}]\n" + "\n".join(lines) + "\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=sorted(path.stem for path in REQUIREMENTS.glob("*.txt")))
    python = pythons.newest(low=(3, 10))
    if python is None:
        raise SystemExit("no Python 3.10 or later with venv was found")
    os.umask(0o022)
    print(environment(parser.parse_args().name, python))
    return 0


if __name__ == "__main__":
    sys.exit(main())
