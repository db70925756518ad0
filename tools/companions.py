#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests use beside Ansible and PostgreSQL: other collections, and programs such as `pass` and Chromium."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import TextIO

from layout import BUILD, locked

COLLECTIONS = ("amazon/aws", "community/general", "community/postgresql")

#: What the role awx_job_template works through, and a release of the package `ansible` that has it.
CONTROLLER = ("awx/awx",)
CONTROLLER_RELEASE = "ansible == 13.*"

#: What a collection needs to be found and its lookup plugins to run.
PARTS = ("plugins/", "meta/", "MANIFEST.json")


def collections(python: Path, requirement: str, log: TextIO, names: tuple[str, ...] = COLLECTIONS) -> Path:
    """The folder `ansible_collections` with some collections, as a release of the package `ansible` has them.

    Ansible Galaxy is not needed then, and the collections fit the ansible-core that the release was made for.
    """
    name = hashlib.sha256(f"{requirement} {python} {names} {PARTS}".encode()).hexdigest()[:12]
    folder = BUILD / "companions" / f"ansible-{name}"
    with locked("companions"):
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                pip = [str(python), "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
                command = [*pip, "--only-binary", ":all:", "--dest", scratch, requirement]
                subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                made = Path(scratch) / "made"
                _unpack(next(Path(scratch).glob("*.whl")), made, names)
                made.rename(folder)
    return folder / "ansible_collections"


def _unpack(wheel: Path, folder: Path, names: tuple[str, ...]) -> None:
    wanted = tuple(f"ansible_collections/{name}/{part}" for name in names for part in PARTS)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith(wanted)])
    for name in names:
        if not (folder / "ansible_collections" / name / "MANIFEST.json").is_file():
            raise OSError(f"{wheel.name} has no collection {name}")


def link(place: Path, found: Path, names: tuple[str, ...] = COLLECTIONS) -> None:
    """Puts the collections found beside the one that lies in the folder `place`, also called `ansible_collections`."""
    for name in names:
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


def pgbouncer(log: TextIO) -> tuple[Path | None, str]:
    """The program PgBouncer, or why there is none. Debian's package with the libraries that are not installed is
    unpacked below `.build`; they lie in `usr/lib` beside it.
    """
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
    if installed := shutil.which("pgbouncer", path=path):
        return Path(installed), ""
    folder = BUILD / "companions" / "pgbouncer"
    program = folder / "usr" / "sbin" / "pgbouncer"
    with locked("companions"):
        if not program.is_file():
            if not shutil.which("apt-get") or not shutil.which("dpkg"):
                return None, "PgBouncer is not installed, and there is no apt-get to fetch it"
            try:
                _fetch_debian_package("pgbouncer", folder, log, libraries=True)
            except (OSError, subprocess.CalledProcessError) as error:
                return None, f"PgBouncer is not installed, and could not be fetched: {error}"
    return program, ""


def chromium(log: TextIO) -> tuple[Path | None, str]:
    """The program Chromium without a window, or why there is none. Debian's package with all that it needs and that is
    not installed is unpacked below `.build`, and a font. Never one that happens to be installed: its version and fonts
    would decide what the tests see.
    """
    folder = BUILD / "companions" / "chromium"
    program = folder / "usr" / "lib" / "chromium" / "chromium-headless-shell"
    with locked("companions"):
        if not program.is_file():
            if not shutil.which("apt-get") or not shutil.which("dpkg"):
                return None, "there is no apt-get to fetch Chromium"
            try:
                _fetch_with_everything(("chromium-headless-shell", "fonts-dejavu-core"), folder, log)
            except (OSError, subprocess.CalledProcessError) as error:
                return None, f"Chromium could not be fetched: {error}"
    return program, ""


def _fetch_with_everything(names: tuple[str, ...], folder: Path, log: TextIO) -> None:
    """Unpack packages and all that apt-get would install with them."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:

        def run(*command: str) -> str:
            done = subprocess.run(
                command,
                check=True,
                cwd=scratch,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
            log.write(done.stdout)
            return done.stdout

        simulate = ("apt-get", "--simulate", "--no-install-recommends", "install", *names)
        try:
            told = run(*simulate)
        except subprocess.CalledProcessError:
            if os.geteuid() != 0:
                raise
            run("apt-get", "--quiet", "update")
            told = run(*simulate)
        # What is installed is left out, unless it is one of these themselves.
        needed = dict.fromkeys((*re.findall(r"^Inst (\S+)", told, re.M), *names))
        run("apt-get", "--quiet", "download", *needed)
        for archive in sorted(Path(scratch).glob("*.deb")):
            run("dpkg", "-x", archive.name, "made")
        shutil.rmtree(folder, ignore_errors=True)
        (Path(scratch) / "made").rename(folder)


def _fetch_debian_package(name: str, folder: Path, log: TextIO, *, libraries: bool = False) -> None:
    """Unpack a package into a folder, with `libraries` also those that it needs and this machine lacks."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:

        def run(*command: str) -> None:
            subprocess.run(command, check=True, cwd=scratch, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def ask(*command: str) -> str:
            return subprocess.run(command, check=False, cwd=scratch, capture_output=True, text=True).stdout

        try:
            run("apt-get", "--quiet", "download", name)
        except subprocess.CalledProcessError:
            if os.geteuid() != 0:
                raise
            run("apt-get", "--quiet", "update")
            run("apt-get", "--quiet", "download", name)
        archive = next(Path(scratch).glob("*.deb")).name
        run("dpkg", "-x", archive, "made")
        needed = re.findall(r"(?:^|, )(lib[^\s,|]*)", ask("dpkg-deb", "-f", archive, "Depends")) if libraries else []
        for library in needed:
            if " installed" in ask("dpkg-query", "-W", "-f", "${Status}", library):
                continue
            run("apt-get", "--quiet", "download", library)
            run("dpkg", "-x", next(Path(scratch).glob(f"{library}_*.deb")).name, "made")
        shutil.rmtree(folder, ignore_errors=True)
        (Path(scratch) / "made").rename(folder)
