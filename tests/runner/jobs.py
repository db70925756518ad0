# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs as AWX runs them: with ansible-runner, each in a folder of its own that is gone afterwards.

A machine stands for the container of a job: a home folder, a folder for temporary files, the private data directory.
Nothing of an earlier one is in it, and all that it shares with the next is the database.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import extra_vars

HERE = Path(__file__).resolve().parent
PROJECT = HERE / "project"

#: What ansible-runner itself writes down of a job's environment, and AWX masks or deletes.
OF_RUNNER = ("artifacts/job/command", "env/")

VAULT_PROMPT = r"Vault password:\s*?$"


@dataclass(frozen=True)
class Template:
    """What a job template, its credentials and its launch say."""

    playbook: str = "reconcile.yml"
    check: bool = False
    verbosity: int = 0
    #: The credential's environment.
    environment: Mapping[str, str] = field(default_factory=dict)
    vault_password: str = ""
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"localhost": {}})
    #: The template's own variables.
    variables: Mapping[str, Any] = field(default_factory=dict)
    #: Those of the launch: survey, workflow, artifacts.
    launched: Mapping[str, Any] = field(default_factory=dict)
    #: The task at which it starts.
    start_at: str = ""

    @property
    def command_line(self) -> str:
        words = ["--check"] * self.check + ["--ask-vault-pass"] * bool(self.vault_password) + ["--diff"]
        said = " ".join([*words, *(["-" + "v" * self.verbosity] if self.verbosity else [])])
        return f"{said} --start-at-task {shlex.quote(self.start_at)}" if self.start_at else said

    @property
    def passwords(self) -> dict[str, str]:
        return {VAULT_PROMPT: self.vault_password} if self.vault_password else {}

    @property
    def inventory(self) -> str:
        """A program, as AWX makes one."""
        local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
        variables = {name: {**local, **more} for name, more in self.hosts.items()}
        told = {"all": {"hosts": list(self.hosts)}, "_meta": {"hostvars": variables}}
        return f"#!/usr/bin/env python3\nprint({json.dumps(told)!r})\n"


@dataclass(frozen=True)
class Job:
    """A job that has ended."""

    status: str
    events: list[dict[str, Any]]
    #: Texts of all that it left and printed, by place; without what ansible-runner keeps of the environment.
    seen: dict[str, str]
    #: Files that are neither the job's input nor artifacts.
    left: list[str]

    @property
    def artifacts(self) -> dict[str, Any]:
        """As AWX takes them: from the last event that has any."""
        found: dict[str, Any] = {}
        for event in self.events:
            found = event.get("event_data", {}).get("artifact_data") or found
        return found

    @property
    def output(self) -> str:
        return "\n".join(event["stdout"] for event in self.events)

    @property
    def said(self) -> str:
        """The output on one line, because Ansible breaks lines where it likes."""
        return " ".join(self.output.split())

    def results(self, action: str = "pg_access.reconcile.pg_role_reconcile") -> list[dict[str, Any]]:
        """What events have of the results of a module."""
        kinds = ("runner_on_ok", "runner_on_failed")
        return [
            event["event_data"]["res"]
            for event in self.events
            if event["event"] in kinds and event["event_data"]["resolved_action"] == action
        ]

    @property
    def failures(self) -> dict[str, dict[str, Any]]:
        """What the task says at which a host failed, by host."""
        return {
            event["event_data"]["host"]: event["event_data"]["res"]
            for event in self.events
            if event["event"] == "runner_on_failed"
        }

    @property
    def result(self) -> dict[str, Any]:
        (only,) = self.results()
        return only

    @property
    def diffs(self) -> list[Any]:
        return [event["event_data"]["diff"] for event in self.events if event["event"] == "runner_on_file_diff"]


class Controller:
    """Runs jobs. ``programs`` is the folder with ansible-runner and ansible-playbook."""

    def __init__(self, programs: Path, collections: Path, project: Path, way: str) -> None:
        self._programs = programs
        self._collections = collections
        self._project = project
        self._way = way

    def run(self, template: Template) -> Job:
        with self._machine() as machine:
            made = self._through_worker(machine, template) if self._way == "worker" else self._alone(machine, template)
            return _ended(machine, self._project, *made)

    @contextmanager
    def _machine(self) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix="pgar-job-", dir="/tmp"))
        try:
            for name in ("home", "tmp", "runner"):
                (folder / name).mkdir(mode=0o700)
            yield folder
        finally:
            shutil.rmtree(folder)

    def _environment(self, machine: Path) -> dict[str, str]:
        """Of the image: nothing of the machine on which these tests run."""
        return {
            "PATH": os.pathsep.join([str(self._programs), "/usr/local/bin", "/usr/bin", "/bin"]),
            "HOME": str(machine / "home"),
            "TMPDIR": str(machine / "tmp"),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_COLLECTIONS_PATH": str(self._collections),
        }

    def _call(self, machine: Path, *words: str | Path, given: bytes = b"") -> bytes:
        done = subprocess.run(
            [str(word) for word in words],
            check=False, input=given, capture_output=True, timeout=120, cwd=machine, env=self._environment(machine),
        )  # fmt: skip
        return done.stdout + done.stderr

    def _directory(self, folder: Path, template: Template) -> None:
        """A private data directory, but for the credential."""
        shutil.copytree(self._project, folder / "project")
        for name, text in (
            ("inventory/hosts", template.inventory),
            ("env/cmdline", template.command_line),
            ("env/extravars", extra_vars.written(template.variables, template.launched)),
        ):
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o700 if name == "inventory/hosts" else 0o600)

    def _alone(self, machine: Path, template: Template) -> tuple[Path, str]:
        """``ansible-runner run``: the credential lies in the directory."""
        folder = machine / "runner"
        self._directory(folder, template)
        for name, value in (("envvars", template.environment), ("passwords", template.passwords)):
            (folder / "env" / name).write_text(json.dumps(value), encoding="utf-8")
            (folder / "env" / name).chmod(0o600)
        printed = self._call(
            machine, self._programs / "ansible-runner", "run", folder, "-p", template.playbook, "--ident", "job"
        )
        return folder, printed.decode()

    def _through_worker(self, machine: Path, template: Template) -> tuple[Path, str]:
        """AWX sends the directory and the credential to a worker, which sends back events and artifacts."""
        sent, received, python = machine / "sent", machine / "received", self._programs / "python"
        sent.mkdir()
        self._directory(sent, template)
        settings = {"suppress_ansible_output": True, "suppress_output_file": True}
        (sent / "env" / "settings").write_text(json.dumps(settings), encoding="utf-8")
        parameters = {
            "private_data_dir": str(sent),
            "ident": "job",
            "playbook": template.playbook,
            "envvars": dict(template.environment),
            "passwords": template.passwords,
            "suppress_env_files": True,
        }
        stream = self._call(machine, python, HERE / "relay.py", "transmit", given=json.dumps(parameters).encode())
        shutil.rmtree(sent)
        worker = (self._programs / "ansible-runner", "worker", f"--private-data-dir={machine / 'runner'}")
        answer = self._call(machine, *worker, given=stream)
        received.mkdir()
        self._call(machine, python, HERE / "relay.py", "process", received, given=answer)
        return received, _without_start(answer)


def _without_start(answer: bytes) -> str:
    """What a worker sent, but for its first message, which has the whole environment, and for packed artifacts."""
    kept = []
    for line in answer.decode(errors="replace").splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and message.get("status") != "starting":
            kept.append(line)
    return "\n".join(kept)


def _files(machine: Path) -> Iterable[str]:
    return (str(path.relative_to(machine)) for path in machine.rglob("*") if path.is_file())


def _ended(machine: Path, project: Path, folder: Path, printed: str) -> Job:
    artifacts = folder / "artifacts" / "job"
    events = [json.loads(path.read_text(encoding="utf-8")) for path in (artifacts / "job_events").glob("*-*.json")]
    assert events, f"no job has run: {printed}"
    seen = {"what was printed": printed}
    for name in _files(machine):
        _place, _slash, inside = name.partition("/")
        if not inside.startswith(OF_RUNNER):
            seen[name] = (machine / name).read_text(encoding="utf-8", errors="replace")
    own = tuple(f"{place}/{name}/" for place in ("runner", "received") for name in ("artifacts", "env", "inventory"))
    given = {f"runner/project/{path.relative_to(project)}" for path in project.rglob("*")}
    left = [name for name in _files(machine) if name not in given and not name.startswith(own)]
    return Job(
        (artifacts / "status").read_text(encoding="utf-8").strip(),
        sorted(events, key=lambda event: event["counter"]),
        seen,
        left,
    )
