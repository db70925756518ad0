# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is run: this collection's module, as a process and as Ansible sends it, and the floors beneath it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import places
import servers
from cluster import DATABASE
from measure import Failed, Run, clean_environment, run
from rivals import Command
from scenario import Scenario
from traffic import Statement, Traffic

MODULE = "pg_access.reconcile.pg_role_reconcile"

#: A floor of every module: what each of them imports before it does anything.
IMPORTS = "import psycopg, ansible.module_utils.basic"

#: The module's queries of the catalog by what they read, and how to know them. The rest of what it asks is of one row.
_GROUPED = {
    "relations, columns, routines and types": (4, re.compile(r"\balike AS \(")),
    "default privileges": (1, re.compile(r"FROM pg_default_acl")),
    "roles": (1, re.compile(r"FROM pg_roles AS r\s+LEFT JOIN pg_shdescription")),
    "memberships": (1, re.compile(r"FROM pg_auth_members\s*$")),
    "schemas": (1, re.compile(r"FROM pg_namespace\s+WHERE nspname !~")),
    "databases": (1, re.compile(r"FROM pg_database\s+WHERE datname = current_database\(\) OR")),
}


@dataclass(frozen=True)
class Address:
    """How a tool reaches the server: the directory of its socket, or a host."""

    host: str
    port: int

    @property
    def options(self) -> dict[str, Any]:
        where = "login_unix_socket" if self.host.startswith("/") else "login_host"
        return {where: self.host, "login_port": self.port, "login_user": "postgres", "login_db": DATABASE}


@dataclass(frozen=True)
class Program:
    """A program that can be measured."""

    arguments: list[str]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    given: str = ""
    codes: frozenset[int] = frozenset({0})
    #: Of how many items it consists, where that is a part of what the scenario needs; otherwise 0.
    items: int = 0
    #: What to show for the seconds measured.
    shown: Callable[[float], float] = float
    check_end: bool = True
    #: Its answer is one of the module's results.
    ours: bool = False

    @classmethod
    def of(cls, command: Command) -> Program:
        return cls(
            command.arguments,
            command.cwd,
            command.environment,
            codes=command.exit_codes,
            items=command.items,
            shown=command.shown,
            check_end=command.check_end_state,
        )

    def run(self, limit: float) -> Run:
        return run(self.arguments, self.environment, self.folder, given=self.given, limit=limit, codes=self.codes)


# The module


def _arguments(scenario: Scenario, address: Address, **more: Any) -> dict[str, Any]:
    return {**scenario.manifest(), **address.options, "reconciliation_mode": "authoritative", **more}


def _python_path() -> dict[str, str]:
    return {"PYTHONPATH": str(places.collections())}


def module(scenario: Scenario, address: Address, *, check: bool = False, **more: Any) -> Program:
    """The module as a process of its own, with its arguments on standard input."""
    arguments = _arguments(scenario, address, _ansible_check_mode=check, **more)
    name = f"ansible_collections.{MODULE.replace('.pg_role', '.plugins.modules.pg_role')}"
    return Program(
        [sys.executable, "-m", name],
        places.BENCH,
        _python_path(),
        given=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        codes=frozenset({0, 1}),
        ours=True,
    )


def as_sent(scenario: Scenario, address: Address, work: Path) -> Program:
    """The module in the form in which Ansible sends it to a host: a script with a zip of the sources in it.

    Ansible itself makes it: a playbook runs once with the order to leave its files behind.
    """
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    play = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "tasks": [{MODULE: _arguments(scenario, address)}],
    }
    (work / "play.yml").write_text(json.dumps([play]))
    variables = {
        "ANSIBLE_HOME": str(work / "home"),
        "ANSIBLE_REMOTE_TEMP": str(work / "remote"),
        "ANSIBLE_LOCAL_TEMP": str(work / "local"),
        "ANSIBLE_COLLECTIONS_PATH": str(places.collections()),
        "ANSIBLE_KEEP_REMOTE_FILES": "1",
        "ANSIBLE_PIPELINING": "0",
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_LOCALHOST_WARNING": "0",
    }
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "play.yml"],
        cwd=work,
        env=clean_environment(variables),
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    scripts = sorted((work / "remote").rglob("AnsiballZ_*.py"))
    if done.returncode or not scripts:
        raise Failed(f"ansible-playbook ended with {done.returncode}: {(done.stdout + done.stderr)[-3000:]}")
    return Program([sys.executable, str(scripts[-1])], work, codes=frozenset({0, 1}), ours=True)


def answer(done: Run) -> dict[str, Any]:
    """The module's result. Raises Failed where it failed."""
    result = json.loads(done.output)
    if result.get("failed"):
        raise Failed(f"{result.get('error_code')}: {result.get('msg')}")
    return dict(result)


# The floors


def python_floor() -> Program:
    return Program([sys.executable, "-c", IMPORTS], places.BENCH)


def psql(address: Address, script: Path) -> Program:
    program = servers.psql()
    if program is None:
        raise servers.ServerError("There is no psql: run python tests/server/servers.py prepare")
    words = [str(program), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null"]
    return Program(
        [*words, "-h", address.host, "-p", str(address.port), "-U", "postgres", "-d", DATABASE, "-f", str(script)],
        places.BENCH,
    )


def write_script(path: Path, statements: Iterable[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{statement.strip()};\n" for statement in statements))
    return path


def grouped_queries(traffic: Traffic) -> list[str]:
    """The transaction of a run with nothing to do, with the catalog queries alone, as a script for psql.

    Raises Failed where the module has another number of them than is known here.
    """
    found: list[Statement] = []
    for what, (count, pattern) in _GROUPED.items():
        matching = [statement for statement in traffic.statements if pattern.search(statement.text)]
        if len(matching) != count:
            raise Failed(f"the module sent {len(matching)} queries for {what}, not {count}: see programs.py")
        found += matching
    path = "SET LOCAL search_path = pg_catalog, pg_temp"
    return ["BEGIN READ ONLY", path, *(statement.literal for statement in found), "COMMIT"]
