# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PgBouncer in transaction mode in front of a server, started in a moment, ended with the test.

The program is the one that ``RECONCILE_PGBOUNCER`` names (``make`` sets it), or the installed one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import servers

_CONFIGURATION = """
[databases]
* = host={server.socket_directory} port={server.port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir = {directory}
unix_socket_mode = 0777
auth_type = scram-sha-256
auth_file = {directory}/users
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 100
admin_users = postgres
logfile = {directory}/log
"""


def program() -> Path | None:
    """PgBouncer, or None where it is neither installed nor fetched."""
    asked = os.environ.get("RECONCILE_PGBOUNCER")
    found = asked or shutil.which("pgbouncer", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin")))
    return Path(found) if found else None


@dataclass
class Pooler:
    """A running PgBouncer. The roles in its file, by default ``postgres``, log in with ``servers.PASSWORD``."""

    directory: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    @property
    def options(self) -> dict[str, Any]:
        """The module's options to connect through it."""
        return {
            "login_unix_socket": str(self.directory),
            "login_port": self.port,
            "login_password": servers.PASSWORD,
        }

    def connect(self, dbname: str, user: str = "postgres") -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=str(self.directory), port=self.port, user=user, password=servers.PASSWORD, dbname=dbname,
            autocommit=True, prepare_threshold=None,
        )  # fmt: skip

    def stop(self) -> None:
        if self.process.poll() is None:
            # SIGTERM is its immediate shutdown.
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def start(path: Path, server: servers.Server, size: int, users: tuple[str, ...] = ("postgres",)) -> Pooler:
    """A PgBouncer with pools of this size."""
    directory = Path(tempfile.mkdtemp(prefix=f"pgar-{os.getpid()}-", dir="/tmp"))
    directory.chmod(0o755)
    port = servers.free_port()
    # The user that it runs as may not be able to read where it was unpacked.
    own = directory / "pgbouncer"
    shutil.copy(path, own)
    if path.parents[1] not in (Path("/usr"), Path("/usr/local"), Path("/")):
        for library in (path.parents[1] / "lib").rglob("*.so.*"):
            shutil.copy(library, directory / library.name)
    (directory / "users").write_text("".join(f'"{user}" "{servers.PASSWORD}"\n' for user in users))
    configuration = directory / "ini"
    configuration.write_text(_CONFIGURATION.format(server=server, port=port, directory=directory, size=size))
    servers.hand_over(directory, *directory.iterdir())
    process = servers.as_server_user(str(own), str(configuration), directory=directory, LD_LIBRARY_PATH=str(directory))
    pooler = Pooler(directory, port, process)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            pooler.connect("postgres").close()
            return pooler
        except psycopg.OperationalError:
            time.sleep(0.05)
    said = "\n".join(
        file.read_text(errors="replace") for file in (directory / "log", directory / "errors") if file.exists()
    )
    pooler.stop()
    raise servers.ServerError(f"PgBouncer does not start: {said[-2000:]}")
