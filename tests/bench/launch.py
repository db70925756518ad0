# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs one program and says how long it took and how much memory it had.

A process of its own, because what Linux counts as a program's peak begins with the memory of the process that it was
started from: this one is as small as a Python gets. It reads what to run as JSON on standard input and answers in JSON.
It imports what it needs to run before the clock starts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time


def main() -> None:
    request = json.loads(sys.stdin.read())
    late = threading.Event()
    with (
        open(request["input"], "rb") as given,
        open(request["output"], "wb") as out,
        open(request["errors"], "wb") as err,
    ):
        began = time.perf_counter()
        process = subprocess.Popen(
            request["arguments"],
            stdin=given,
            stdout=out,
            stderr=err,
            cwd=request["folder"],
            env=request["environment"],
            start_new_session=True,
        )

        def kill() -> None:
            late.set()
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

        timer = threading.Timer(request["limit"], kill)
        timer.daemon = True
        timer.start()
        _process, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    answer = {
        "seconds": seconds,
        "processor": usage.ru_utime + usage.ru_stime,
        "memory": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        "code": process.returncode,
        "late": late.is_set(),
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
