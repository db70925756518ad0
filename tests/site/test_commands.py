# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a reader is told to type is there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import tree
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


def _version() -> str:
    found = re.search(r"^version: (\S+)$", (CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"), re.M)
    assert found
    return found[1]


def test_who_makes_a_release_finds_every_place_that_holds_the_version() -> None:
    """`version_added` is history, and so is what was measured or released."""
    version = re.escape(_version())
    files = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout
    holding = set()
    for name in filter(None, files.split("\0")):
        if name.startswith(("CHANGELOG", "changelogs/", "docs/benchmarks.", "tests/", "LICENSES/")):
            continue
        text = (CHECKOUT / name).read_bytes().decode("utf-8", "replace")
        text = re.sub(r"^\s*(?:- )?version_added: .*$", "", text, flags=re.M)
        if re.search(rf"(?<![\d.=]){version}(?![\d.]*\d)", text):
            holding.add(name)
    page = (CHECKOUT / "docs/release.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^ +\| `([\w/.-]+)` \|", page, re.M))
    assert named == holding
    archives = re.findall(
        r"pg_access-reconcile-([\d.]+)\.tar", (CHECKOUT / "docs/execution-environments.md").read_text()
    )
    assert archives == [_version()] * 2


def test_a_release_is_made_as_the_page_says(tmp_path: Path) -> None:
    """In a copy: the notes of a version that comes after this one, from the fragments that are here."""
    page = (CHECKOUT / "docs/release.md").read_text(encoding="utf-8")
    (block,) = [text for text in re.findall(r"^ *```console\n(.*?)^ *```", page, re.M | re.S) if "antsibull" in text]
    commands = re.sub(r"^ *(?:\$ )?", "", block, flags=re.M)
    # But for the environment, which takes a minute to make: the checkout has one.
    assert "(python3 tools/environments.py dev)" in commands
    commands = commands.replace("tools/environments.py", str(CHECKOUT / "tools/environments.py"))
    copy = tmp_path / "clone"
    for name in tree.checkout_files():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, copy / name, follow_symlinks=False)
    subprocess.run(["git", "init", "--quiet"], cwd=copy, check=True)
    (copy / "galaxy.yml").write_text(
        re.sub(r"^version: .*$", "version: 999.0.0", (copy / "galaxy.yml").read_text(encoding="utf-8"), flags=re.M),
        encoding="utf-8",
    )
    fragment = {"minor_changes": ["role reconcile - a change that the notes of this test have."]}
    (copy / "changelogs/fragments/of-this-test.yml").write_text(json.dumps(fragment), encoding="utf-8")
    told = ["bash", "-euo", "pipefail", "-c", commands]
    ran = subprocess.run(told, cwd=copy, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    notes = (copy / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "v999\\.0\\.0" in notes and "that the notes of this test have" in notes
    assert "999.0.0" in (copy / "changelogs/changelog.yaml").read_text(encoding="utf-8")
    assert not list((copy / "changelogs/fragments").glob("*.yml"))
