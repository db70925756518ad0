# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ansible-playbook many times without paying for Ansible's start-up and for packing the modules each time.

A process that has imported ansible-playbook, and forks a child for each playbook: a process of its own, with its own folder and
environment. The same for all of them is what Ansible reads when it is imported: its settings (``ANSIBLE_*``). And so are the modules as
Ansible packs them, because it keeps them in the folder for temporary files of the process that imported it.

Requests and answers are lines of JSON on standard input and output: words, folder, environment and seconds; output and exit code.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

#: What ansible-playbook imports on its way.
EARLY = (
    "ansible.cli.playbook",
    "ansible.executor.module_common",
    "ansible.executor.playbook_executor",
    "ansible.executor.task_queue_manager",
    "ansible.plugins.strategy.linear",
    "ansible.plugins.connection.local",
    "ansible.plugins.shell.sh",
    "ansible.plugins.callback.default",
    "ansible.plugins.action.normal",
)


class Zygote:
    """That process, seen from a test. ``environment`` has the settings, ``folder`` is one without an ansible.cfg."""

    def __init__(self, environment: Mapping[str, str], folder: Path, python: str | Path = sys.executable) -> None:
        self._process = subprocess.Popen(
            [python, __file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=dict(environment),
        )  # fmt: skip

    def play(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: int = 120
    ) -> tuple[int, str]:
        """Run a playbook: its exit code, and what it said."""
        assert self._process.stdin and self._process.stdout
        request = {"words": words, "folder": str(folder), "environment": dict(environment), "seconds": seconds}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process that runs playbooks died"
        answer = json.loads(line)
        return answer["status"], answer["output"]

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(20)


# ---- the process itself


def child(request: dict[str, Any], output: int) -> None:
    """Be ansible-playbook. Does not return."""
    code = 250
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    try:
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = ["ansible-playbook", *request["words"]]
        importlib.import_module("ansible.cli.playbook").main(sys.argv)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        tidy_up()
        # Nothing else that is done at exit is this process's to do.
        os._exit(code)


def tidy_up() -> None:
    """Ansible deletes its folder for temporary files at exit. Of that the packed modules are kept, which hold no arguments."""
    for path in Path(importlib.import_module("ansible.constants").DEFAULT_LOCAL_TMP).iterdir():
        if path.is_dir() and path.name != "ansiballz_cache":
            shutil.rmtree(path, ignore_errors=True)
        elif not path.is_dir():
            path.unlink(missing_ok=True)


def play(request: dict[str, Any]) -> dict[str, object]:
    with tempfile.TemporaryFile() as output:
        process = os.fork()
        if process == 0:
            child(request, output.fileno())
        deadline = time.monotonic() + request["seconds"]
        while True:
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                break
            if time.monotonic() > deadline:
                os.killpg(process, signal.SIGKILL)
            time.sleep(0.01)
        output.seek(0)
        return {"output": output.read().decode(errors="replace"), "status": os.waitstatus_to_exitcode(status)}


def main() -> None:
    answers = os.dup(1)
    # Whatever Ansible says while it is imported is no answer.
    os.dup2(2, 1)
    for name in EARLY:
        importlib.import_module(name)
    with os.fdopen(answers, "w", encoding="utf-8") as stream:
        for line in sys.stdin:
            stream.write(json.dumps(play(json.loads(line))) + "\n")
            stream.flush()


if __name__ == "__main__":
    main()
