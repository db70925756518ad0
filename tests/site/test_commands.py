# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a reader is told to type is there."""

from __future__ import annotations

import re
from pathlib import Path

import website

CHECKOUT = Path(__file__).resolve().parents[2]


def _texts() -> dict[str, str]:
    names = [*website.pages(CHECKOUT), "README.md"]
    return {name: (CHECKOUT / name).read_text(encoding="utf-8") for name in names}


def test_every_target_of_make_is_there() -> None:
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    targets = set(" ".join(re.findall(r"^([a-z][a-z -]*):", makefile, re.M)).split())
    told = {
        (name, target)
        for name, text in _texts().items()
        for words in re.findall(r"(?:`|^\$ )make ((?:[a-z][a-z-]*[ `\n])+)", text, re.M)
        for target in words.strip("`\n ").split()
    }
    assert {("README.md", "demo"), ("CONTRIBUTING.md", "test"), ("CONTRIBUTING.md", "units")} <= told
    assert {(name, target) for name, target in told if target not in targets} == set()


def test_every_tool_is_there() -> None:
    told = {path for text in _texts().values() for path in re.findall(r"(?:tools|tests)/[\w/]+\.(?:py|yml)\b", text)}
    assert "tools/checks.py" in told and "tests/server/documented_examples.yml" in told
    assert {path for path in told if not (CHECKOUT / path).is_file()} == set()


def test_a_newcomer_needs_two_commands() -> None:
    text = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = re.search(r"^```console\n(.*?)^```", text, re.M | re.S)
    assert block
    clone, test = block[1].splitlines()
    repository = re.search(r"^repository: (\S+)$", (CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"), re.M)
    assert repository and clone == f"$ git clone {repository[1]} && cd {repository[1].rpartition('/')[2]}"
    # What CI runs in a fresh clone is the second one.
    assert test == "$ make test" and "make --no-print-directory test" in (CHECKOUT / ".ci/run").read_text(
        encoding="utf-8"
    )
