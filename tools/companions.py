#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the integration tests use beside Ansible itself: other collections, and the program `pass`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import TextIO

from layout import BUILD, locked

COLLECTIONS = ("amazon/aws", "community/general")

#: What a collection needs to be found and its lookup plugins to run.
PARTS = ("plugins/", "meta/", "MANIFEST.json")


def collections(python: Path, requirement: str, log: TextIO) -> Path:
    """The folder `ansible_collections` with COLLECTIONS, as a release of the package `ansible` has them.

    Ansible Galaxy is not needed then, and the collections fit the ansible-core that the release was made for.
    """
    name = hashlib.sha256(f"{requirement} {python} {COLLECTIONS} {PARTS}".encode()).hexdigest()[:12]
    folder = BUILD / "companions" / f"ansible-{name}"
    with locked("companions"):
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                pip = [str(python), "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
                command = [*pip, "--only-binary", ":all:", "--dest", scratch, requirement]
                subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                made = Path(scratch) / "made"
                _unpack(next(Path(scratch).glob("*.whl")), made)
                made.rename(folder)
    return folder / "ansible_collections"


def _unpack(wheel: Path, folder: Path) -> None:
    wanted = tuple(f"ansible_collections/{name}/{part}" for name in COLLECTIONS for part in PARTS)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith(wanted)])
    for name in COLLECTIONS:
        if not (folder / "ansible_collections" / name / "MANIFEST.json").is_file():
            raise OSError(f"{wheel.name} has no collection {name}")


def link(place: Path, found: Path) -> None:
    """Puts the collections found beside the one that lies in the folder `place`, also called `ansible_collections`."""
    for name in COLLECTIONS:
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.symlink_to(found / name)


def password_store(log: TextIO) -> tuple[Path | None, str]:
    """The folder of the program `pass`, or why there is none.

    It is one shell script. Where it is not installed, Debian's package is unpacked below `.build`, which takes no
    rights; only the list of packages does, where there is none yet.
    """
    for program in ("bash", "gpg", "gpgconf"):
        if not shutil.which(program):
            return None, f"{program} is not installed"
    if installed := shutil.which("pass"):
        return Path(installed).parent, ""
    folder = BUILD / "companions" / "pass"
    with locked("companions"):
        if not (folder / "usr" / "bin" / "pass").is_file():
            if not shutil.which("apt-get") or not shutil.which("dpkg"):
                return None, "pass is not installed, and there is no apt-get to fetch it"
            try:
                _fetch_debian_package("pass", folder, log)
            except (OSError, subprocess.CalledProcessError) as error:
                return None, f"pass is not installed, and could not be fetched: {error}"
    return folder / "usr" / "bin", ""


def _fetch_debian_package(name: str, folder: Path, log: TextIO) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:

        def run(*command: str) -> None:
            subprocess.run(command, check=True, cwd=scratch, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        try:
            run("apt-get", "--quiet", "download", name)
        except subprocess.CalledProcessError:
            if os.geteuid() != 0:
                raise
            run("apt-get", "--quiet", "update")
            run("apt-get", "--quiet", "download", name)
        run("dpkg", "-x", next(Path(scratch).glob("*.deb")).name, "made")
        shutil.rmtree(folder, ignore_errors=True)
        (Path(scratch) / "made").rename(folder)
