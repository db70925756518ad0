# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ansible-playbook the way a person does, and looks for secrets in all that comes of it.

A playbook of its own, so that the environment, the verbosity and a whole output can be part of a test. Everything lies in
one temporary folder, the home folder too.
"""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

HERE = Path(__file__).resolve().parent
INTEGRATION = HERE.parents[1]

#: What AnsibleModule's masking, quoting and escaping can get wrong.
AWKWARD = "'\"\\n é$1"

#: Every verifier, and every fingerprint in hexadecimal digits.
_STORED = """
SELECT rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL
UNION ALL
SELECT substring(description FROM 'role_reconcile password fingerprint [0-9]*:([0-9a-f]+)') FROM pg_shdescription
WHERE description ~ 'role_reconcile password fingerprint'
"""
_RECORDS = """
SELECT encode(fingerprint, 'hex') FROM role_reconcile.password_fingerprint
"""


@dataclass(frozen=True)
class Run:
    """How a playbook went: status, all of its output, and what it wrote to `results`."""

    status: int
    output: str
    results: Any


@dataclass
class Bench:
    """A server and a folder. `environment` is what playbooks run with."""

    folder: Path
    server: Any
    config: Mapping[str, str]
    environment: dict[str, str] = field(default_factory=dict)
    #: What runs playbooks, by the settings that it has.
    _zygotes: dict[str, Any] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, name: str, text: str) -> Path:
        path = self.path(name)
        path.write_text(text, encoding="utf-8")
        return path

    def sql(self, *statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Runs statements as the superuser; the rows of the last one."""
        address = {"host": self.server.socket_directory, "port": self.server.port}
        with psycopg.connect(user="postgres", dbname=database, autocommit=True, **address) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def logs_in(self, role: str, password: str) -> bool:
        """Whether a password opens the door over TCP, where pg_hba.conf says scram-sha-256."""
        address = {"host": "127.0.0.1", "port": self.server.port, "dbname": "postgres"}
        try:
            psycopg.connect(user=role, password=password, **address).close()
        except psycopg.OperationalError as error:
            assert "authentication failed" in str(error), error
            return False
        return True

    def command(self, *words: str | Path, text: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(word) for word in words],
            input=text, check=False, cwd=self.folder, env=self.environment, text=True, capture_output=True, timeout=300,
        )  # fmt: skip
        if check and done.returncode:
            sys.exit(f"{words[0]} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done

    def play(self, playbook: Path, *words: str | Path, check: bool = True, program: bool = False) -> Run:
        """Runs a playbook on localhost, as verbosely as people do when something is wrong.

        ``program``: with nothing between this process and ansible-playbook, where what is left of that is looked at.
        """
        results = self.path("results.json")
        results.unlink(missing_ok=True)
        begun = time.monotonic()
        said = ("-vvv", "--diff", *map(str, words), str(playbook))
        if program:
            done = self.command("ansible-playbook", *said, check=False)
            status, output = done.returncode, done.stdout + done.stderr
        else:
            status, output = self._zygote().play(said, self.folder, self.environment, 300)
        if check and status:
            sys.exit(f"ansible-playbook ended with {status}:\n{output}")
        told = json.loads(results.read_text(encoding="utf-8")) if results.is_file() else None
        say(f"{playbook.name} {' '.join(map(str, words))}: {status} after {time.monotonic() - begun:.0f} s")
        return Run(status, output, told)

    def _zygote(self) -> Any:
        from playbook_zygote import Zygote

        settings = {name: value for name, value in self.environment.items() if name.startswith("ANSIBLE_")}
        key = json.dumps([settings, self.environment["HOME"]], sort_keys=True)
        if key not in self._zygotes:
            self._zygotes[key] = Zygote(self.environment, self.path("home"))
        return self._zygotes[key]

    def close(self) -> None:
        for zygote in self._zygotes.values():
            zygote.close()

    def no_secret(self, run: Run, told: Sequence[str], database: str = "postgres") -> None:
        """Looks for secrets in the output, Ansible's log, its facts on disk, and what its temporary folders still hold.

        Secrets are those told and, from the server, every verifier, and every fingerprint that a database holds. The server logs every statement, so
        its log is searched as well.
        """
        seen = {"the output": run.output, "the server's log": self.server.log}
        stored = self.sql(_STORED) + self.sql(_RECORDS, database=database)
        assert len(stored) > 2, "nothing is stored that could be found"
        for name in ("log", "facts", "local", "remote", "results.json"):
            for path in [self.folder / name, *(self.folder / name).rglob("*")]:
                if path.is_file():
                    seen[str(path)] = path.read_text(encoding="utf-8", errors="replace")
        for place, text in seen.items():
            for secret in [*told, *(value for (value,) in stored)]:
                if found := leak(secret, text):
                    # The test's own secrets may be shown; which one and where is what somebody has to know.
                    sys.exit(f"{place} shows {secret!r}:\n{found}")


def forms(secret: str) -> set[str]:
    """A secret in the ways in which programs print a text, and the parts that alone are worth something."""
    texts = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]}
    texts |= {text.replace("'", "''") for text in texts} | {json.dumps(text)[1:-1] for text in texts}
    texts.add(base64.b64encode(secret.encode()).decode())
    if re.fullmatch("([0-9a-f]{2}){16,}", secret):
        texts.add(base64.b64encode(bytes.fromhex(secret)).decode())
    if secret.startswith("SCRAM-SHA-256$"):
        texts.update(part for part in secret.replace("$", ":").split(":") if len(part) > 20)
    return texts


def leak(secret: str, text: str) -> str:
    """What is around the first place where a text has a secret in some form."""
    for form in sorted(forms(secret), key=len):
        if (place := text.find(form)) >= 0:
            return text[max(0, place - 300) : place + len(form) + 100]
    return ""


def made_up(name: str) -> str:
    """A secret that nothing else in an output resembles."""
    return f"{name}-{secrets.token_urlsafe(12)}{AWKWARD}{secrets.token_hex(4)}"


def say(text: str) -> None:
    print(text, flush=True)


@contextmanager
def bench() -> Iterator[Bench]:
    """A bench with a server that logs every statement."""
    file = INTEGRATION / "integration_config.yml"
    config = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if config.get("setup_postgresql_servers"):
        os.environ["PG_SERVERS_DIR"] = config["setup_postgresql_servers"]
    sys.path.insert(0, str(INTEGRATION.parent / "server"))
    import servers

    servers.prepare([18])
    # A short path: gpg-agent makes sockets in it.
    folder = Path(tempfile.mkdtemp(prefix="pgar-play-", dir="/tmp"))
    try:
        server = servers.start(18, "log_statement = all")
        try:
            made = Bench(folder, server, config)
            made.environment = _environment(made)
            try:
                yield made
            finally:
                made.close()
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _environment(made: Bench) -> dict[str, str]:
    # ansible-test's own callbacks would write every result to a report.
    dropped = ("ANSIBLE_CALLBACKS_ENABLED", "JUNIT_OUTPUT_DIR", "PG_SERVERS_DIR")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    address = {"login_host": made.server.socket_directory, "login_port": made.server.port}
    inventory = {
        "all": {
            "hosts": {"localhost": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}},
            "vars": {
                "folder": str(made.folder),
                "server": {**address, "login_user": "postgres", "login_db": "postgres"},
            },
        }
    }
    for name in ("home", "local", "remote", "facts"):
        made.path(name).mkdir(mode=0o700)
    return {
        **kept,
        "HOME": str(made.folder / "home"),
        "ANSIBLE_INVENTORY": str(made.write("inventory.json", json.dumps(inventory))),
        "ANSIBLE_LOG_PATH": str(made.folder / "log"),
        "ANSIBLE_LOCAL_TEMP": str(made.folder / "local"),
        "ANSIBLE_REMOTE_TEMP": str(made.folder / "remote"),
        "ANSIBLE_CACHE_PLUGIN": "ansible.builtin.jsonfile",
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(made.folder / "facts"),
        "ANSIBLE_NOCOLOR": "1",
    }
