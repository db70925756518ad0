# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive holds what users need, nothing that was only built or lay around, and works where it is installed."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from pathlib import Path

import tree
from conftest import ROOT, Run, built

#: What ansible-galaxy adds.
ADDED = {"MANIFEST.json", "FILES.json"}

#: What only a checkout needs.
CHECKOUT_ONLY = (".ci/", ".github/", "tools/", ".gitignore", "Makefile", "galaxy.yml")

#: Bytes of the archive. Galaxy takes twenty times as much; an image and every project sync carry it along.
LARGEST = 2_000_000

#: What may lie in a checkout after some work. Those that git ignores are found in `.gitignore`.
LYING_AROUND = {
    "/.build": "dist/old.tar.gz",
    "/.venv/": "bin/python",
    "__pycache__/": "a.cpython-313.pyc",
    "*.pyc": "b.pyc",
    ".hypothesis/": "examples/1",
    ".mypy_cache/": "3.13/a.json",
    ".pytest_cache/": "v/cache",
    ".ruff_cache/": "0/1",
    "/*.tar.gz": "pg_access-reconcile-0.0.1.tar.gz",
    "/tests/output/": "junit/a.xml",
    "/tests/integration/integration_config.yml": "",
}


def names(archive: Path) -> set[str]:
    with tarfile.open(archive) as tar:
        return {member.name for member in tar.getmembers() if not member.isdir()}


def test_the_archive_has_the_files_of_the_checkout_and_no_other(archive: Path) -> None:
    tracked = set(tree.checkout_files())
    wanted = {name for name in tracked if not name.startswith(CHECKOUT_ONLY)}
    assert names(archive) == wanted | ADDED


def test_what_lies_around_in_a_checkout_is_not_packed(run: Run, tmp_path: Path) -> None:
    ignored = [line for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines() if line]
    assert set(ignored) == set(LYING_AROUND), "what git ignores must not be packed either: name a file for it here"
    checkout = tmp_path / "checkout"
    shutil.copytree(tree.refresh("packaging"), checkout)
    before = names(built(run, checkout, tmp_path))
    for pattern, name in LYING_AROUND.items():
        places = (checkout,) if pattern.startswith("/") else (checkout, checkout / "plugins" / "modules")
        for place in places:
            path = place / pattern.strip("/") / name if "*" not in pattern else place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("left by some work", encoding="utf-8")
    (tmp_path / "again").mkdir()
    assert names(built(run, checkout, tmp_path / "again")) == before


def test_the_archive_is_small_and_holds_no_key_and_no_place_of_this_machine(archive: Path) -> None:
    assert archive.stat().st_size < LARGEST
    secret = re.compile(
        rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{20}|AKIA[0-9A-Z]{16}\b|ghp_[A-Za-z0-9]{36}"
    )
    places = [str(place).encode() for place in (ROOT, Path.home()) if len(place.parts) > 2]
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            assert member.issym() or member.isdir() or member.isfile(), f"{member.name} is a {member.type!r}"
            assert member.uid == member.gid == 0 and not member.mode & 0o022, member.name
            file = tar.extractfile(member) if member.isfile() else None
            data = file.read() if file else b""
            assert not secret.search(data), member.name
            assert not any(place in data for place in places), member.name


def test_the_installed_collection_is_found_and_is_as_it_was_packed(run: Run, installed: Path) -> None:
    where = ("--collections-path", installed)
    told = json.loads(run("ansible-galaxy", "collection", "list", "--format", "json", *where))
    assert set(told[str(installed / "ansible_collections")]) == {"pg_access.reconcile"}
    assert "Successfully verified" in run(
        "ansible-galaxy", "collection", "verify", "--offline", *where, "pg_access.reconcile"
    )


def test_the_installed_collection_documents_all_that_it_has(run: Run, installed: Path) -> None:
    top = installed / "ansible_collections" / "pg_access" / "reconcile"
    kinds = {"module": "plugins/modules/*.py", "filter": "plugins/filter/*.py", "role": "roles/*"}
    for kind, pattern in kinds.items():
        wanted = {f"pg_access.reconcile.{path.stem}" for path in top.glob(pattern) if path.stem != "__init__"}
        assert wanted, kind
        told = json.loads(run("ansible-doc", "--type", kind, "--json", *sorted(wanted), collections=installed))
        assert set(told) == wanted


def test_every_ignored_sanity_test_is_explained() -> None:
    for file in (ROOT / "tests" / "sanity").glob("ignore*.txt"):
        for line in file.read_text(encoding="utf-8").splitlines():
            assert re.search(r"\S #\s?\S.{15}", line), f"{file.name}: {line} has no comment that says why"
