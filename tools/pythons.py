#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the Python interpreters of this machine that really work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from layout import BUILD, locked

Version = tuple[int, int]

#: What is looked for, newest first. 3.9 runs modules only; everything else needs 3.10.
WANTED: tuple[Version, ...] = ((3, 14), (3, 13), (3, 12), (3, 11), (3, 10), (3, 9))

#: Prints version and real path; fails where venv, pip's wheel or an important library is missing.
PROBE = """
import ctypes, ensurepip, os, ssl, sys, venv, zlib
version = "%d.%d" % sys.version_info[:2]
print(version, os.path.realpath(os.path.join(sys.base_prefix, "bin", "python" + version)))
"""


def _candidates(version: Version) -> Iterator[Path]:
    """Interpreters of one version: on PATH, then those that pyenv or uv has installed beside its shims."""
    name = f"python{version[0]}.{version[1]}"
    folders = [Path(folder) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    pyenvs = [Path(os.environ["PYENV_ROOT"])] if "PYENV_ROOT" in os.environ else []
    pyenvs += [folder.parent for folder in folders if folder.name == "shims"]
    pyenvs += [Path.home() / ".pyenv"]
    if sys.version_info[:2] == version:
        yield Path(sys.executable)
    for folder in folders:
        yield folder / name
    for pyenv in pyenvs:
        yield from sorted(pyenv.glob(f"versions/{version[0]}.{version[1]}.*/bin/{name}"), reverse=True)


def probe(python: Path) -> tuple[Version, Path] | None:
    """Version and real path of an interpreter, or None where it does not run or cannot make environments."""
    try:
        done = subprocess.run([str(python), "-c", PROBE], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    version, path = done.stdout.split(maxsplit=1)
    major, minor = version.split(".")
    return (int(major), int(minor)), Path(path.strip())


@cache
def available() -> Mapping[Version, Path]:
    """One working interpreter per version, newest version first."""
    found: dict[Version, Path] = {}
    for wanted in WANTED:
        for candidate in _candidates(wanted):
            if candidate.exists() and (result := probe(candidate)) and result[0] == wanted and result[1].exists():
                found[wanted] = result[1]
                break
    return found


def newest(*, low: Version, high: Version = (3, 99)) -> Path | None:
    """The newest interpreter between two versions, both included."""
    return next((path for version, path in available().items() if low <= version <= high), None)


def path_without_shims(first: list[Path]) -> str:
    """A PATH that begins with `first` and on which `pythonX.Y` is one of the interpreters that work.

    A version manager's shims answer for versions that they then refuse to run, and a Python without venv is of no
    use to ansible-test, so neither may be found.
    """
    links = BUILD / "pythons"
    links.mkdir(parents=True, exist_ok=True)
    with locked("pythons"):
        for version, python in available().items():
            link = links / f"python{version[0]}.{version[1]}"
            if not link.is_symlink() or link.readlink() != python:
                link.unlink(missing_ok=True)
                link.symlink_to(python)
    rest = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(folder).name != "shims"]
    return os.pathsep.join([*map(str, first), str(links), *rest])
