# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures of the tests of what users get: the collection's archive, and the collection installed from it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "tools")]

import tree

#: Runs a program of the environment that these tests run in; what it prints.
Run = Callable[..., str]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Programs run in an empty home folder, and know of no checkout."""
    home = tmp_path_factory.mktemp("home")
    programs = Path(sys.executable).parent

    def run(program: str, *words: str | Path, cwd: Path = home, collections: Path = home) -> str:
        done = subprocess.run(
            [programs / program, *words],
            check=False,
            cwd=cwd,
            env={
                "PATH": os.pathsep.join((str(programs), "/usr/bin", "/bin")),
                "HOME": str(home),
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_COLLECTIONS_PATH": str(collections),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{program} {words}: {done.stdout}{done.stderr}"
        return done.stdout

    return run


def built(run: Run, collection: Path, output: Path) -> Path:
    """The archive that is built of a collection's folder."""
    run("ansible-galaxy", "collection", "build", "--output-path", output, cwd=collection)
    (archive,) = output.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="session")
def archive(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(run, tree.refresh("packaging"), tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="session")
def installed(run: Run, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to look for collections in, with this one only."""
    folder = tmp_path_factory.mktemp("installed")
    run("ansible-galaxy", "collection", "install", "--offline", "--collections-path", folder, archive)
    return folder
