# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls the module where the tests run, thousands of times, and says what every answer has to be."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any
from unittest import mock

import psycopg
from ansible.module_utils import basic
from ansible.module_utils.common import warnings as ansible_warnings
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.spec import (
    MANIFEST_OPTIONS,
    RUN_OPTIONS,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.validate import join
from ansible_collections.pg_access.reconcile.plugins.module_utils.masking import MASK
from ansible_collections.pg_access.reconcile.plugins.module_utils.module import run_role_reconcile
from generators import MARKER, Call
from harness import ERROR_CODES

#: Processor time that one input may take, and what it may add to the memory that the process ever needed.
SECONDS = 2.0
MEGABYTES = 200

#: A call that takes longer than this is stopped.
HUNG = 300

#: The most characters of an answer: ``spec/module.md`` says so of results, and AWX drops larger ones.
LARGEST = 500_000

#: Outcomes by the kind of input, for the summary.
OUTCOMES: dict[str, Counter[str]] = {}


class Hung(BaseException):
    """The call does not end. Nothing in the module catches it."""


@dataclass
class Answer:
    """What a call gave: all that got out, and what of it is the result."""

    result: dict[str, Any]
    output: str
    log: str
    code: int
    connects: int
    seconds: float
    megabytes: float

    @property
    def outcome(self) -> str:
        return str(self.result.get("error_code", "success"))

    @property
    def comparable(self) -> dict[str, Any]:
        return {key: value for key, value in self.result.items() if key != "timings"}


class Connects:
    """Stands in for psycopg.connect: judges the parameters as it does, and reaches nobody."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(
        self, conninfo: str = "", *, autocommit: bool, prepare_threshold: int | None, **parameters: Any
    ) -> Any:
        psycopg.conninfo.make_conninfo(conninfo, **parameters)
        self.calls += 1
        raise psycopg.OperationalError("nobody is there")


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stops what does not end, and what waits for something."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(call: Call) -> Answer:
    """Call the module as Ansible does at its most talkative."""
    log: list[str] = []
    connects = Connects()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "FUZZ_"))}
    ansible = {
        "check_mode": call.check,
        "verbosity": 4,
        "diff": True,
        "inject_invocation": True,
        "tracebacks_for": ["error"],
        "module_name": "pg_access.reconcile.pg_role_reconcile",
    }
    whole = {**call.arguments, **{f"_ansible_{name}": value for name, value in ansible.items()}}
    ansible_warnings._global_warnings.clear()
    ansible_warnings._global_deprecations.clear()
    out, err = io.StringIO(), io.StringIO()
    code: Any = None
    with contextlib.ExitStack() as stack:
        for target, name, value in (
            (basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": whole}).encode()),
            (basic, "_ANSIBLE_PROFILE", "legacy"),
            (basic, "has_journal", False),
            (basic.AnsibleModule, "_log_to_syslog", lambda _self, text: log.append(text)),
            (psycopg, "connect", connects),
        ):
            stack.enter_context(mock.patch.object(target, name, value, create=True))
        stack.enter_context(mock.patch.dict(os.environ, {**kept, **call.environment}, clear=True))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(limited(HUNG))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        try:
            run_role_reconcile()
        except SystemExit as leaving:
            code = leaving.code
        seconds = time.process_time() - start
        megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
    assert code is not None, "the module did not end"
    assert not err.getvalue(), err.getvalue()[-3000:]
    result = json.loads(out.getvalue())
    assert isinstance(result, dict)
    return Answer(result, out.getvalue(), "\n".join(log), int(code or 0), connects.calls, seconds, megabytes)


class Wrong(AssertionError):
    """An answer is not what it has to be."""

    def __init__(self, reason: str, shown: Any) -> None:
        super().__init__(f"{reason}: {str(shown)[:3000]}")
        self.reason = reason


def must(holds: Any, reason: str, shown: Any) -> None:
    if not holds:
        raise Wrong(reason, shown)


def check(call: Call, answer: Answer, kind: str) -> None:
    """What holds of every answer."""
    OUTCOMES.setdefault(kind, Counter())[answer.outcome] += 1
    result = answer.result
    said = answer.output
    # With nobody behind the connection there is no success.
    must(result.get("failed") is True and answer.code == 1, "it is no failure", said)
    must(result.get("changed") is False and result.get("sql") == [], "it says that it changed something", said)
    must(answer.outcome in ERROR_CODES - {"internal_error"}, "error_code", said)
    must(isinstance(result.get("msg"), str) and result["msg"].strip(), "it has no message", said)
    must("Traceback" not in said and 'File "' not in said, "it shows a traceback", said)
    # Whoever has not connected has sent nothing.
    must(answer.connects == (answer.outcome == "connection_failed"), f"{answer.connects} connections", said)
    must(len(said) <= LARGEST, f"{len(said)} characters", said)
    must(answer.seconds < SECONDS, f"{answer.seconds:.1f} s", said)
    must(answer.megabytes < MEGABYTES, f"{answer.megabytes:.0f} MB", said)
    if answer.outcome in ("manifest_invalid", "not_supported", "fingerprint_key_missing"):
        must(result["problems"], "no problems", said)
    for problem in result["problems"]:
        must(set(problem) == {"path", "file", "role", "object", "message", "hint"}, "a problem's keys", problem)
        must(isinstance(problem["message"], str) and problem["message"].strip(), "a problem's message", problem)
        must(problem["path"] is None or isinstance(problem["path"], str), "a problem's path", problem)
    if call.secret:
        for text in (said, answer.log):
            at = text.find(MARKER)
            must(at < 0, f"secret in {call.secret}", text[max(0, at - 300) :][:600])


def check_paths(arguments: dict[str, Any], answer: Answer) -> None:
    """Every problem says where it is, in the words of the input."""
    # Of many that are alike some will do.
    for problem in answer.result["problems"][:100]:
        path = problem["path"]
        if path is None:
            # Ansible's own complaint about an option that is not the manifest's.
            alone = len(answer.result["problems"]) == 1 or answer.result.get("truncated")
            must(alone, "a problem without a path", problem)
            continue
        must(leads(arguments, path), "a path that leads nowhere", (path, problem["message"]))


_ALIASES: dict[str, set[str]] = {}


def _collect(options: dict[str, Any]) -> None:
    for name, option in options.items():
        _ALIASES.setdefault(name, set()).update(option.get("aliases", ()))
        for key in ("options", "values", "of_dict"):
            _collect(option.get(key, {}))


_collect({**MANIFEST_OPTIONS, **RUN_OPTIONS})

#: The environment variables that the module itself asks for.
_VARIABLES = ("PG_ROLE_RECONCILE_FINGERPRINT_KEY",)


def leads(value: Any, path: str) -> bool:
    """Whether a path leads to a place in the input, or to a key that is missing there."""
    if not path or path in _VARIABLES or MASK in path:
        # A key that may be a secret is not shown.
        return True
    if isinstance(value, list):
        index = re.match(r"\[(\d+)\]", path)
        if index is None or int(index[1]) >= len(value):
            return False
        return leads(value[int(index[1])], path[index.end() :])
    if isinstance(value, str):
        # A text in the place of a dict: JSON, or pairs.
        try:
            return leads(json.loads(value), path)
        except ValueError:
            return "=" in value
    if not isinstance(value, dict):
        return False
    rest = path.removeprefix(".")
    for key, item in value.items():
        for spelt in {
            join("", "on" if key is True else key),
            *(name for name, more in _ALIASES.items() if key in more),
        }:
            if rest.startswith(spelt) and rest[len(spelt) :][:1] in ("", ".", "[") and leads(item, rest[len(spelt) :]):
                return True
    return rest in _ALIASES
