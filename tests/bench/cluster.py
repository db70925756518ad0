# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The benchmark's server, and the two states that its database can be in: nothing granted, and the scenario's end."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import psycopg
import servers
from endstate import Row, differences, expected, read
from places import SCRATCH
from scenario import Scenario

DATABASE = "bench"

#: What initdb writes on a large machine, where the test servers have other values. Without autovacuum, which would start
#: at moments that nobody knows: the benchmark itself vacuums before each measurement.
SETTINGS = """
max_connections = 100
shared_buffers = '128MB'
synchronous_commit = on
full_page_writes = on
wal_level = replica
max_wal_senders = 10
max_wal_size = '1GB'
checkpoint_timeout = '5min'
max_parallel_workers_per_gather = 2
dynamic_shared_memory_type = posix
autovacuum = off
"""

#: The catalogs that a run of any tool writes to.
_WRITTEN = (
    "pg_namespace", "pg_class", "pg_attribute", "pg_proc", "pg_type", "pg_depend", "pg_default_acl", "pg_init_privs",
    "pg_authid", "pg_auth_members", "pg_shdepend", "pg_shdescription", "pg_db_role_setting", "pg_database",
)  # fmt: skip


class WrongEnd(Exception):
    """A tool ended in other privileges than the scenario asks for."""


class Cluster:
    """A server with one scenario's objects.

    ``locks``: max_locks_per_transaction, None for the default. ``thorough``: with fsync, and as new before each
    measurement; without, for a look at whether all of it works.
    """

    def __init__(
        self,
        version: int,
        scenario: Scenario,
        locks: int | None = None,
        say: Callable[[str], None] = print,
        *,
        thorough: bool = True,
    ) -> None:
        self.version = version
        self.scenario = scenario
        self.locks = locks
        self._say = say
        self._thorough = thorough
        #: "empty", "done", or "" where only restoring helps.
        self.state = ""
        #: Statistics are right, and no page waits to be written.
        self._settled = False
        self._wanted: frozenset[Row] | None = None

    def __enter__(self) -> Cluster:
        began = time.monotonic()
        self.server = servers.start(self.version, self._settings(), scratch=SCRATCH)
        try:
            with self.connect("postgres") as connection:
                connection.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0")
            with self.connect() as connection:
                for statement in self.scenario.objects():
                    connection.execute(statement)
                connection.execute("CHECKPOINT")
                if self._thorough:
                    # From here on as everywhere. To sync the empty files of thousands of tables would take minutes.
                    connection.execute("ALTER SYSTEM SET fsync = on")
                    connection.execute("SELECT pg_reload_conf()")
            self.state = "empty"
            self.compact()
        except BaseException:
            self.server.stop()
            raise
        self._say(f"PostgreSQL {self.version}, {self.scenario.name}: objects made in {time.monotonic() - began:.1f} s")
        return self

    def __exit__(self, *_error: object) -> None:
        self.server.stop()

    def _settings(self) -> str:
        return SETTINGS + (f"max_locks_per_transaction = {self.locks}\n" if self.locks else "")

    def restart(self, locks: int | None) -> None:
        """Start again on the same data with another size of the lock table."""
        self.locks = locks
        self.server.process.send_signal(signal.SIGINT)
        self.server.process.wait(120)
        servers._running.remove(self.server)
        programs = servers.binaries(self.version)
        assert programs is not None
        started = servers._start(self.version, programs, self.server.directory, self._settings() + "fsync = on\n")
        if started is None:
            raise servers.ServerError("The server does not start again")
        self.server = started

    @property
    def host(self) -> str:
        return self.server.socket_directory

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def socket(self) -> str:
        return f"{self.host}/.s.PGSQL.{self.port}"

    def connect(self, database: str = DATABASE) -> psycopg.Connection[Any]:
        return psycopg.connect(host=self.host, port=self.port, user="postgres", dbname=database, autocommit=True)

    def version_text(self) -> str:
        with self.connect() as connection:
            return str(connection.execute("SHOW server_version").fetchall()[0][0])

    # States

    def compact(self) -> None:
        """Leave no tool the dead rows of the one before, nor its dirty pages."""
        if not self._thorough:
            return
        with self.connect() as connection:
            for catalog in _WRITTEN:
                connection.execute(f"VACUUM FULL ANALYZE pg_catalog.{catalog}")
            connection.execute("CHECKPOINT")
        self._settled = True

    def to_empty(self) -> None:
        """Nothing is granted, and the scenario's roles are not there."""
        if self.state != "empty":
            with self.connect() as connection:
                # What a tool that was ended had begun goes on in the server.
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
                rows = connection.execute("SELECT quote_ident(rolname) FROM pg_roles WHERE oid >= 16384").fetchall()
                names = ", ".join(row[0] for row in rows)
                if names:
                    connection.execute(f"DROP OWNED BY {names}")
                    connection.execute(f"DROP ROLE {names}")
            self.state = "empty"
            self.compact()

    def to_done(self) -> None:
        """The scenario's end, by the hand-written SQL where no tool has just left it."""
        if self.state != "done":
            self.to_empty()
            with self.connect() as connection:
                for statement in self.scenario.shortest_sql():
                    connection.execute(statement)
            self.check_end()
        if not self._settled:
            self.settle()

    def drift(self) -> None:
        """The scenario's end with 1 % of the tables changed."""
        self.to_done()
        with self.connect() as connection:
            for statement in self.scenario.drift():
                connection.execute(statement)
        self.state = ""
        self.settle()

    def undo_drift(self) -> None:
        """Back to the scenario's end after a drift that nobody mended."""
        with self.connect() as connection:
            for statement in self.scenario.undo_drift():
                connection.execute(statement)
        self.check_end()

    def settle(self) -> None:
        """The state is what it is; statistics and pages are fresh."""
        if not self._thorough:
            return
        with self.connect() as connection:
            for catalog in _WRITTEN:
                connection.execute(f"VACUUM ANALYZE pg_catalog.{catalog}")
            connection.execute("CHECKPOINT")
        self._settled = True

    def check_end(self) -> None:
        """The privileges are exactly those of the scenario. Raises WrongEnd."""
        if self._wanted is None:
            self._wanted = expected(self.scenario)
        self._settled = False
        with self.connect() as connection:
            found = read(connection)
        if found != self._wanted:
            self.state = ""
            raise WrongEnd("; ".join(differences(self._wanted, found, limit=3)))
        self.state = "done"
