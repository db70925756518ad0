#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lays the checkout out the way Ansible finds collections: `ansible_collections/pg_access/reconcile`.

A tree holds the tracked files and those that git would offer to track, and is a git repository of its own: without
that, ansible-test would ask the surrounding repository, which ignores the whole tree, or check its own environments.
Run as a script it refreshes the tree of the name given and prints the folder to put on ANSIBLE_COLLECTIONS_PATH.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from layout import BUILD, NAME, NAMESPACE, ROOT, locked

#: Variables of the integration tests that depend on the machine.
INTEGRATION_CONFIG = "tests/integration/integration_config.yml"

#: What is not a file of the checkout and stays in a tree.
KEPT = (".git", "tests/output", INTEGRATION_CONFIG)


def checkout_files() -> list[str]:
    """Paths of the files that belong to the collection, relative to the checkout."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    paths = {os.fsdecode(path) for path in done.stdout.split(b"\0") if path}
    return sorted(path for path in paths if os.path.lexists(ROOT / path))


def _same(source: Path, target: Path) -> bool:
    if source.is_symlink() or target.is_symlink() or not target.is_file():
        return False
    one, other = source.stat(), target.stat()
    return (one.st_size, one.st_mtime_ns, one.st_mode) == (other.st_size, other.st_mtime_ns, other.st_mode)


def _is_kept(relative: str) -> bool:
    return any(relative == kept or relative.startswith(kept + "/") for kept in KEPT)


def refresh(name: str = "main") -> Path:
    """Brings the tree `name` up to date and returns the collection's folder in it."""
    top = BUILD / "trees" / name / "ansible_collections" / NAMESPACE / NAME
    with locked(f"tree-{name}"):
        top.mkdir(parents=True, exist_ok=True)
        wanted = checkout_files()
        for relative in wanted:
            source, target = ROOT / relative, top / relative
            if _same(source, target):
                continue
            if target.is_symlink() or target.is_file():
                target.unlink()
            elif target.is_dir():
                shutil.rmtree(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
        _remove_others(top, set(wanted))
        _commit_to_index(top)
    return top


def _remove_others(top: Path, wanted: set[str]) -> None:
    for folder, folders, files in os.walk(top):
        place = Path(folder).relative_to(top)
        folders[:] = [item for item in folders if not _is_kept((place / item).as_posix())]
        for item in files:
            relative = (place / item).as_posix()
            if relative not in wanted and not _is_kept(relative):
                (top / place / item).unlink()
    for folder, _folders, _files in os.walk(top, topdown=False):
        place = Path(folder).relative_to(top)
        if place.parts and not _is_kept(place.as_posix()) and not any((top / place).iterdir()):
            (top / place).rmdir()


def _commit_to_index(top: Path) -> None:
    # GIT_* of a hook that runs this would point at the outer repository.
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    if not (top / ".git").is_dir():
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=top, env=clean, check=True)
    subprocess.run(["git", "add", "--all", "."], cwd=top, env=clean, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?", default="main")
    print(refresh(parser.parse_args().name).parents[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
