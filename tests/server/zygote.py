# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module many times without paying for Python's start-up each time.

A process that has imported Ansible's module library, psycopg and the module once, and forks a child for each request.
The child sees what a module sees that Ansible started: its arguments, no standard input, and an exit code.
Requests and answers are lines of JSON on standard input and output; a request that asks to be told the child's process
number is answered with that first.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import selectors
import signal
import sys
import time
import traceback

COLLECTION = "ansible_collections.pg_access.reconcile"


def preload() -> None:
    # A library that is missing or a module that does not load yet shows in the child, as it would for Ansible.
    for name in ("ansible.module_utils.basic", "psycopg", "yaml", f"{COLLECTION}.plugins.modules.pg_role_reconcile"):
        with contextlib.suppress(Exception):
            importlib.import_module(name)


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


def serve(request: dict[str, object]) -> dict[str, object]:
    pipes = [os.pipe(), os.pipe()]
    process = os.fork()
    if process == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, (_reading, writing) in enumerate(pipes, start=1):
            os.dup2(writing, number)
        for pair in pipes:
            for descriptor in pair:
                os.close(descriptor)
        # Nothing is buffered yet, so the parent's objects serve: they write to what is now behind 1 and 2.
        child(request)
    if request.get("tell"):
        answer({"process": process})
    texts = [b"", b""]
    late = False
    deadline = time.monotonic() + float(request["timeout"])  # type: ignore[arg-type]
    with selectors.DefaultSelector() as selector:
        for number, (reading, writing) in enumerate(pipes):
            os.close(writing)
            selector.register(reading, selectors.EVENT_READ, number)
        while selector.get_map():
            events = selector.select(max(0.0, deadline - time.monotonic()))
            if not events and not late:
                late = True
                os.kill(process, signal.SIGKILL)
                deadline += 10
            for key, _mask in events:
                chunk = os.read(key.fd, 65536)
                if chunk:
                    texts[key.data] += chunk
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    _process, status = os.waitpid(process, 0)
    return {
        "stdout": texts[0].decode(errors="replace"),
        "stderr": texts[1].decode(errors="replace") + ("\nkilled: it took too long" if late else ""),
        "code": os.waitstatus_to_exitcode(status),
    }


def answer(values: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main() -> None:
    preload()
    for line in sys.stdin:
        answer(serve(json.loads(line)))


if __name__ == "__main__":
    main()
