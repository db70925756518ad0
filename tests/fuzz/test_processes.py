# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bad input to the module as a program of its own, with its arguments on standard input: what Ansible starts."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from caller import OUTCOMES
from generators import MARKER, SECRET_SPOTS, broken, examples, hide, manifest, other_options
from harness import ERROR_CODES, MODULE, Runner, module_environment
from hypothesis import given
from hypothesis import strategies as st

#: Anything else could lead to another machine.
_ADDRESS = ("login_host", "login_unix_socket", "connect_params", "ssl_mode", "ca_cert", "ssl_cert", "ssl_key")


@st.composite
def inputs(draw: Any) -> tuple[dict[str, Any], dict[str, str]]:
    arguments: dict[str, Any] = draw(st.one_of(broken(), broken(), manifest))
    arguments.update(draw(other_options()))
    variables = {"FUZZ_PASSWORD": "Pa55-word-from-env"}
    if draw(st.booleans()):
        hide(arguments, variables, draw(st.sampled_from([spot for spot in SECRET_SPOTS if spot not in _ADDRESS])))
    for name in _ADDRESS:
        arguments.pop(name, None)
    return {"login_db": "app", "login_unix_socket": "/nonexistent", "login_port": 1, **arguments}, variables


@examples(0.025)
@given(inputs())
def test_processes(given_input: tuple[dict[str, Any], dict[str, str]]) -> None:
    arguments, variables = given_input
    for name in ("login_port", "login_user"):
        arguments.pop(name, None)
    whole = {"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_verbosity": 4, "_ansible_inject_invocation": True}}
    hidden = MARKER in json.dumps([arguments, variables])
    # Two at a time, in which sets and dicts of texts have other orders.
    programs = [
        Runner.process(whole, module_environment(PYTHONHASHSEED=seed, **variables), MODULE) for seed in ("1", "2")
    ]
    answers: list[dict[str, Any]] = []
    for program in programs:
        stdout, stderr = program.communicate(timeout=300)
        assert not stderr, stderr[-3000:]
        # Ansible's own complaint about a boolean lists a set, in any order.
        answers.append(json.loads(re.sub(r"Valid booleans include: [^\"]*", "", stdout)))
        assert isinstance(answers[-1], dict)
        assert program.returncode == 1 and answers[-1]["failed"] is True, stdout[:3000]
        assert answers[-1]["error_code"] in ERROR_CODES - {"internal_error"}, stdout[:3000]
        assert "Traceback" not in stdout, stdout[:3000]
        assert not hidden or MARKER not in stdout, stdout[:3000]
    assert answers[0] == answers[1]
    OUTCOMES.setdefault("processes", Counter())[answers[0]["error_code"]] += 2


def test_arguments_that_are_none() -> None:
    for text in (
        "",
        "[]",
        "{}",
        "nonsense",
        '{"ANSIBLE_MODULE_ARGS": 1}',
        '{"ANSIBLE_MODULE_ARGS": {"roles": ' + "[" * 100_000,
    ):
        program = Runner.process(
            {},
            module_environment(),
            MODULE,
            prelude=f"import io\nsys.stdin = io.TextIOWrapper(io.BytesIO({text.encode()!r}))",
        )
        stdout, stderr = program.communicate(timeout=300)
        assert program.returncode == 1
        assert "Traceback" not in stdout + stderr, (text[:80], stderr[-2000:])
        assert json.loads(stdout)["failed"] is True
