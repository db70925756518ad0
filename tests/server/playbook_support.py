# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ansible-playbook against a test's database, and takes examples off the pages of the documentation."""

from __future__ import annotations

import atexit
import functools
import os
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from harness import CHECKOUT, COLLECTIONS, Database
from playbook_zygote import Zygote

#: What pages call the database and its server.
SHOP = "shop"
ADDRESS = "db.example.com:5432"


class Fence(NamedTuple):
    """A block of a page: its language, and its text. ``file`` is what a YAML block's first line calls it."""

    language: str
    text: str
    file: str | None


def fences(page: str) -> list[Fence]:
    """The blocks of a page in docs/, in their order."""
    text = (CHECKOUT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S)
    names = [re.match(r"# ([\w./-]+\.yml)\n", block) for _language, block in found]
    return [Fence(language, block, name.group(1) if name else None) for (language, block), name in zip(found, names)]


class Played(NamedTuple):
    """How a playbook went."""

    status: int
    output: str

    @property
    def changed(self) -> int:
        found = re.search(r"changed=(\d+)", self.output)
        assert found, self.output
        return int(found.group(1))

    def shows(self, block: str) -> None:
        """The output has each paragraph of a page's block, in this order. Ansible breaks lines where it likes."""
        rest = " ".join(self.output.split())
        for paragraph in block.strip().split("\n\n"):
            text = " ".join(paragraph.split())
            assert text in rest, f"{text}\nis not in:\n{self.output}"
            rest = rest.partition(text)[2]


def for_database(db: Database, text: str) -> str:
    """A file of a page, about the test's database."""
    return re.sub(rf"(?<=reconcile_database: ){SHOP}\b|(?<=login_db: ){SHOP}\b|(?<=\['){SHOP}(?='\])", db.name, text)


def _surroundings() -> dict[str, str]:
    """The tests' own environment without what would be about another server or another Ansible."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PG", "ANSIBLE_"))}


#: What holds for every playbook.
_SETTINGS = {
    "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_CALLBACK_RESULT_FORMAT": "yaml",
    "ANSIBLE_LOCALHOST_WARNING": "0",
    "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0",
    "COLUMNS": "1000",
    "LC_ALL": "C.UTF-8",
}


@functools.cache
def _zygote() -> tuple[Zygote, dict[str, str]]:
    """What runs the playbooks of a test run, and its settings, among them a folder for what Ansible keeps."""
    home = tempfile.TemporaryDirectory(prefix="ansible-")
    settings = {**_SETTINGS, "ANSIBLE_HOME": home.name}
    zygote = Zygote({**_surroundings(), **settings}, Path(home.name))
    atexit.register(home.cleanup)
    atexit.register(zygote.close)
    return zygote, settings


def play(db: Database, folder: Path, playbook: str, *words: str) -> Played:
    """Run a playbook in a folder as its user does: what it does not say about the connection is in the environment."""
    zygote, settings = _zygote()
    connection = {"PGHOST": str(db.server.socket_directory), "PGPORT": str(db.server.port), "PGUSER": "postgres"}
    environment = {**_surroundings(), **settings, **connection, "HOME": str(folder)}
    status, output = zygote.play((playbook, *words), folder, environment)
    address = f"@{db.server.socket_directory}:{db.server.port}:"
    return Played(status, output.replace(address, f"@{ADDRESS}:").replace(db.name, SHOP))
