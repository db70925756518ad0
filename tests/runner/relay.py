# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two ends of a job that run inside AWX itself. The Python is the one that has ansible-runner.

``relay.py transmit`` reads the parameters of a job as JSON and writes the stream that a worker reads; ``relay.py
process FOLDER`` reads what the worker answers, into the artifacts of a private data directory.
"""

from __future__ import annotations

import json
import sys

import ansible_runner


def main() -> None:
    what, *rest = sys.argv[1:]
    if what == "transmit":
        parameters = json.load(sys.stdin)
        ansible_runner.run(streamer="transmit", _output=sys.stdout.buffer, **parameters)
    else:
        ansible_runner.run(
            streamer="process", _input=sys.stdin.buffer, private_data_dir=rest[0], ident="job", quiet=True
        )


if __name__ == "__main__":
    main()
