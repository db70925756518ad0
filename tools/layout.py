#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where things lie in a checkout. Everything that is made or downloaded lies under `.build/`."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMESPACE, NAME = "pg_access", "reconcile"


def build_folder(root: Path) -> Path:
    """The folder `.build` of a checkout, at a path without blanks.

    Neither the first line of a script nor ansible-core 2.16 takes a path with blanks. Where the checkout has one, the
    folder lies with the temporary files and `.build` is a link to it.
    """
    inside = root / ".build"
    if not any(character.isspace() for character in str(root)):
        return inside
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    elsewhere = Path(tempfile.gettempdir()) / f"pg_access_reconcile-{os.geteuid()}-{digest}"
    # Others may enter: PostgreSQL runs as another user when the tests run as root.
    elsewhere.mkdir(mode=0o755, exist_ok=True)
    if elsewhere.is_symlink() or elsewhere.stat().st_uid != os.geteuid():
        raise SystemExit(f"{elsewhere} belongs to somebody else")
    if not inside.is_symlink():
        inside.symlink_to(elsewhere)
    return elsewhere


BUILD = build_folder(ROOT)


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Lets one process or thread at a time work on what `name` stands for."""
    folder = BUILD / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
