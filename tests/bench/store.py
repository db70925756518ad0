# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The measurements of a run of the benchmark, kept in a file from the first one on, so that a stopped run goes on."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import places

#: One measurement: seconds, processor, memory, and what else there is to say of it.
Sample = dict[str, Any]
#: One round of a work: what each tool took, one after the other.
Round = dict[str, Sample]

#: A change in one of these makes other measurements.
_MEASURED = ("plugins", "tests/bench")
_NOT_MEASURED = frozenset({"report.py", "plot.py", "figures.py", "targets.py"})


def signature() -> str:
    """What the measurements depend on, as far as it lies in the checkout."""
    found = hashlib.sha256()
    for folder in _MEASURED:
        for path in sorted((places.ROOT / folder).rglob("*.py")):
            if path.name not in _NOT_MEASURED and not path.name.startswith(("test_", "conftest")):
                found.update(path.relative_to(places.ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def key(version: int, size: str, work: str) -> str:
    return f"{version}/{size}/{work}"


class Store:
    """Rounds by version, size and work, and facts by name."""

    def __init__(self, path: Path, *, as_it_is: bool = False) -> None:
        """``as_it_is``: whatever code it was measured with."""
        self.path = path
        self.data: dict[str, Any] = {"signature": signature(), "facts": {}, "rounds": {}}
        #: What was there before can go on.
        self.continued = False
        if path.exists():
            found = json.loads(path.read_text())
            if as_it_is or found.get("signature") == self.data["signature"]:
                self.data, self.continued = found, True

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        making = self.path.with_suffix(".new")
        making.write_text(json.dumps(self.data, indent=1))
        os.replace(making, self.path)

    def rounds(self, where: str) -> list[Round]:
        """The rounds of a work that are whole."""
        found: list[Round] = self.data["rounds"].get(where, [])
        return found

    def add(self, where: str, measured: Round) -> None:
        self.data["rounds"].setdefault(where, []).append(measured)
        self.save()

    def fact(self, name: str) -> Any:
        return self.data["facts"].get(name)

    def note(self, name: str, value: Any) -> None:
        self.data["facts"][name] = value
        self.save()
