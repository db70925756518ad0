# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bad input to the module as Ansible calls it, in one process, with nobody behind the connection."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from caller import check, check_paths, must, run
from generators import Call, calls, examples, files, others
from hypothesis import given
from hypothesis import strategies as st


@examples()
@given(calls())
def test_options(call: Call) -> None:
    answer = run(call)
    check(call, answer, "options")
    check_paths(call.arguments, answer)
    if answer.seconds < 0.2:
        again = run(call)
        must(again.comparable == answer.comparable, "the same again gives another answer", (answer, again))


@st.composite
def _files(draw: Any) -> tuple[list[bytes], Call]:
    secret = draw(st.integers(0, 3)) == 0
    given_files = draw(st.lists(files(secret), min_size=1, max_size=draw(st.sampled_from((1, 1, 2)))))
    arguments: dict[str, Any] = {"login_db": "app", "fingerprint_key": "k-0123456789abcdef0123"}
    arguments["assume_roles"] = given_files[0].assume_roles
    call = Call(arguments, {"FUZZ_PASSWORD": "Pa55-word-from-env"}, "file" if secret else None)
    return [file.content for file in given_files], call


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("manifests")


def _run_files(contents: list[bytes], call: Call, folder: Path, kind: str, more: bool = False) -> None:
    """``more``: a file may name others, and problems may be in them."""
    paths = [folder / f"m{number}.yml" for number in range(len(contents))]
    for path, content in zip(paths, contents):
        path.write_bytes(content)
    answer = run(call)
    check(call, answer, kind)
    for problem in answer.result["problems"]:
        place, file = str(problem["path"]), problem["file"]
        must(more or file in (None, *map(str, paths)), "a problem's file", problem)
        label = place.partition(": ")[0]
        # A name that a file makes up may be so long that the result has only its beginning.
        must(file is None or len(file) > 400 or label in (Path(file).name, file), "a path without its file", problem)
    if answer.seconds < 0.2:
        again = run(call)
        must(again.comparable == answer.comparable, "the same again gives another answer", (answer, again))


@examples()
@given(inputs=_files(), handed_over=st.booleans())
def test_files(inputs: tuple[list[bytes], Call], handed_over: bool, folder: Path) -> None:
    contents, call = inputs
    paths = [str(folder / f"m{number}.yml") for number in range(len(contents))]
    if handed_over:
        texts = [base64.b64encode(content).decode() for content in contents]
        call.arguments["manifest_contents"] = dict(zip(paths, texts))
    else:
        call.arguments["manifest_files"] = paths
    _run_files(contents, call, folder, "files")


@st.composite
def _others(draw: Any) -> tuple[list[bytes], Call]:
    secret = draw(st.integers(0, 3)) == 0
    given_files = draw(others(secret))
    arguments: dict[str, Any] = {"login_db": "app", "fingerprint_key": "k-0123456789abcdef0123"}
    if given_files[0].passwords:
        arguments["passwords"] = given_files[0].passwords
    call = Call(arguments, {"FUZZ_PASSWORD": "Pa55-word-from-env"}, "file" if secret else None)
    return [file.content for file in given_files], call


@examples()
@given(inputs=_others(), alone=st.booleans())
def test_files_of_other_tools(inputs: tuple[list[bytes], Call], alone: bool, folder: Path) -> None:
    contents, call = inputs
    named = contents[:1] if alone else contents
    call.arguments["manifest_files"] = [str(folder / f"m{number}.yml") for number in range(len(named))]
    _run_files(contents, call, folder, "other tools", more=True)
