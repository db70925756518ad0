# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A program that is measured: what to run, what it took, what it said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: A tool that has not done a size by then is shown as such.
LIMIT = 600.0

_LAUNCHER = Path(__file__).with_name("launch.py")


class Failed(Exception):
    """A measured program did not do what it was to do."""


@dataclass(frozen=True)
class Run:
    """What became of a program."""

    seconds: float
    #: Seconds of processor time, of the program itself.
    processor: float
    #: Most memory that it had at a time, in bytes.
    memory: int
    code: int
    #: It was ended because it took too long.
    late: bool
    output: str
    errors: str


def clean_environment(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a measured program: nothing of libpq's, Ansible's or Python's that the shell may have set."""
    dropped = ("PG", "ANSIBLE_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "LC_ALL": "C.UTF-8", **more}


def run(
    arguments: list[str],
    environment: Mapping[str, str],
    folder: Path,
    *,
    given: str = "",
    limit: float = LIMIT,
    codes: frozenset[int] = frozenset({0}),
) -> Run:
    """Run a program to its end. Raises Failed where it ends with another code than these."""
    with tempfile.TemporaryDirectory(prefix="pgar-bench-") as name:
        place = Path(name)
        (place / "input").write_text(given)
        request = {
            "arguments": arguments,
            "environment": clean_environment(environment),
            "folder": str(folder),
            "limit": limit,
            **{what: str(place / what) for what in ("input", "output", "errors")},
        }
        launched = subprocess.run(
            [sys.executable, "-I", "-S", str(_LAUNCHER)],
            input=json.dumps(request),
            check=False,
            capture_output=True,
            text=True,
        )
        if launched.returncode:
            raise Failed(f"{arguments[0]} cannot be run: {launched.stderr.strip()[-2000:]}")
        output, errors = ((place / what).read_text(errors="replace") for what in ("output", "errors"))
        done = Run(**json.loads(launched.stdout), output=output, errors=errors)
    if not done.late and done.code not in codes:
        raise Failed(f"{Path(arguments[0]).name} ended with {done.code}: {(errors or output).strip()[-3000:]}")
    return done
