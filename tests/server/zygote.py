# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module many times without paying for Python's start-up each time.

A process that has imported Ansible's module library, psycopg and the module once, and forks a child for each request.
The child sees what a module sees that Ansible started: its arguments, no standard input, and an exit code.
Requests and answers are lines of JSON on standard input and output: a list of modules to run at the same time, and a
list of what became of them. A request that asks to be told a child's process number is answered with that first.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field

COLLECTION = "ansible_collections.pg_access.reconcile"

#: Libraries that a run imports when it comes to need them. Those of ansible-core are there from 2.19 on.
LATE = (
    "ansible.module_utils._internal._json._profiles._module_legacy_c2m",
    "ansible.module_utils._internal._json._profiles._module_legacy_m2c",
)


def preload() -> None:
    # A library that is missing or a module that does not load yet shows in the child, as it would for Ansible.
    for name in ("ansible.module_utils.basic", "psycopg", "yaml", f"{COLLECTION}.plugins.modules.pg_role_reconcile"):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    # What a run imports on its way would be imported by every child.
    for name in LATE:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    with contextlib.suppress(Exception):
        rooms = importlib.import_module(f"{COLLECTION}.plugins.module_utils")
        for room in pkgutil.walk_packages(rooms.__path__, f"{rooms.__name__}."):
            importlib.import_module(room.name)
    # Children leave alone what they share with their parent.
    gc.collect()
    gc.freeze()


def child(request: dict[str, object]) -> None:
    """Be the module. Does not return."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(request["environment"])  # type: ignore[arg-type]
        basic = importlib.import_module("ansible.module_utils.basic")
        basic._ANSIBLE_ARGS = json.dumps(request["arguments"]).encode()
        # Needed from ansible-core 2.19 on, unknown before.
        basic._ANSIBLE_PROFILE = "legacy"
        sys.argv = [str(request["module"])]
        module = importlib.import_module(f"{COLLECTION}.plugins.modules.{request['module']}")
        exec(str(request["patch"]), {})  # noqa: S102
        module.main()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@dataclass
class Child:
    """A module that runs, and what it has written so far."""

    process: int
    deadline: float
    started: float = field(default_factory=time.monotonic)
    texts: list[bytes] = field(default_factory=lambda: [b"", b""])
    open_pipes: int = 2
    late: bool = False
    seconds: float = 0.0

    def kill_when_late(self) -> None:
        if self.open_pipes and not self.late and time.monotonic() >= self.deadline:
            self.late = True
            os.kill(self.process, signal.SIGKILL)

    def answer(self) -> dict[str, object]:
        _process, status = os.waitpid(self.process, 0)
        return {
            "stdout": self.texts[0].decode(errors="replace"),
            "stderr": self.texts[1].decode(errors="replace") + ("\nkilled: it took too long" if self.late else ""),
            "code": os.waitstatus_to_exitcode(status),
            "seconds": self.seconds,
        }


def launch(request: dict[str, object], selector: selectors.DefaultSelector) -> Child:
    pipes = [os.pipe(), os.pipe()]
    process = os.fork()
    if process == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, (_reading, writing) in enumerate(pipes, start=1):
            os.dup2(writing, number)
        for pair in pipes:
            for descriptor in pair:
                os.close(descriptor)
        for key in list(selector.get_map().values()):
            os.close(key.fd)  # those of its sisters
        # Nothing is buffered yet, so the parent's objects serve: they write to what is now behind 1 and 2.
        child(request)
    if request.get("tell"):
        answer({"process": process})
    started = Child(process, time.monotonic() + float(request["timeout"]))  # type: ignore[arg-type]
    for number, (reading, writing) in enumerate(pipes):
        os.close(writing)
        selector.register(reading, selectors.EVENT_READ, (started, number))
    return started


def serve(requests: list[dict[str, object]]) -> list[dict[str, object]]:
    """Run all of them at once, and answer when the last one is done."""
    with selectors.DefaultSelector() as selector:
        children = [launch(request, selector) for request in requests]
        while selector.get_map():
            patience = min((c.deadline for c in children if c.open_pipes and not c.late), default=time.monotonic() + 10)
            for key, _mask in selector.select(max(0.0, patience - time.monotonic())):
                one, number = key.data
                chunk = os.read(key.fd, 65536)
                if chunk:
                    one.texts[number] += chunk
                    continue
                selector.unregister(key.fd)
                os.close(key.fd)
                one.open_pipes -= 1
                one.seconds = time.monotonic() - one.started
            for one in children:
                one.kill_when_late()
    return [one.answer() for one in children]


def answer(values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main() -> None:
    preload()
    for line in sys.stdin:
        answer(serve(json.loads(line)))


if __name__ == "__main__":
    main()
