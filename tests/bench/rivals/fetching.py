# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fetches tools with the clients of the package registries, each into a place of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: A tool that cannot be had by then is shown as such.
SECONDS = 1800

#: Lines of what a failing command said.
_TAIL = 20


class Unavailable(Exception):
    """A tool cannot be had here. The text says why, for a table that everybody reads."""


def run(what: str, *command: str | Path, cwd: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """Run a command and return what it printed. `what` says what it is for."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=environment,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except OSError as error:
        raise Unavailable(f"{what} failed: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{what} took more than {SECONDS // 60} minutes") from error
    if done.returncode:
        # This names places and hosts, which is nothing for the table.
        for line in (done.stdout + done.stderr).splitlines()[-_TAIL:]:
            print(line, file=sys.stderr)
        raise Unavailable(f"{what} failed with exit code {done.returncode}")
    return done.stdout


def environment(folder: Path, *installs: list[str]) -> Path:
    """The `bin` of a virtual environment with packages in it: one list of pip's arguments for each of its runs.

    What was asked for is written down beside it, and the same is not fetched again.
    """
    programs, wanted = folder / "bin", "\n".join(" ".join(words) for words in installs)
    stamp = folder / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return programs
    stamp.unlink(missing_ok=True)
    what = f"The installation of {folder.name}"
    run(what, sys.executable, "-m", "venv", "--clear", folder)
    for words in installs:
        run(what, programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words)
    stamp.write_text(wanted)
    return programs


def version_of(programs: Path, package: str) -> str:
    """The version of an installed package."""
    script = f"import importlib.metadata as m; print(m.version({package!r}))"
    return run(f"The question for the version of {package}", programs / "python", "-c", script).strip()
