# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What every conversion of another tool's file needs: its keys sifted, native sections, and the way back to the places
in the file as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Dict, FrozenSet, Iterator, NamedTuple, Optional, Set, Tuple

from ...masking import leaves, structure
from ..texts import show
from ..validate import BROKEN, Judge, join


class Call(NamedTuple):
    """What the run was asked for, as far as a file may say the same or something else.

    ``mode``: the reconciliation mode. ``check``: nothing is changed. ``approved``: only a plan that somebody has seen
    is applied (``expected_digest``). ``passwords``: the roles that the option of this name has one for.
    """

    mode: str = "authoritative"
    check: bool = False
    approved: bool = False
    adopt_schema_owners: bool = False
    passwords: FrozenSet[str] = frozenset()


def call_of(raw: Mapping[str, Any], check: bool) -> Call:
    """The call that the module's raw arguments make."""
    mode = raw.get("reconciliation_mode")
    passwords = structure(raw.get("passwords"))
    return Call(
        mode=mode if isinstance(mode, str) else Call().mode,
        check=check,
        approved=bool(raw.get("expected_digest")),
        # As it was written: Ansible has not looked at it yet.
        adopt_schema_owners=str(raw.get("adopt_schema_owners")).lower() in ("true", "yes", "on", "1", "y", "t"),
        passwords=frozenset(map(str, passwords)) if isinstance(passwords, Mapping) else frozenset(),
    )


# ---- places --------------------------------------------------------------------------------------------------------


class Places:
    """Where in the file as it was written a path of the native sections comes from."""

    def __init__(self) -> None:
        self._known: Dict[str, str] = {}

    def put(self, native: str, original: str) -> None:
        """A native path, and with it everything below, comes from there."""
        self._known[native] = original

    def find(self, path: str) -> str:
        """The place that a native path comes from."""
        end = len(path)
        while end > 0:
            known = self._known.get(path[:end])
            if known is not None:
                return known + path[end:]
            end = max(path.rfind(".", 0, end), path.rfind("[", 0, end))
        return path

    def renamed(self) -> Iterator[Tuple[str, str]]:
        """Places of keys that the native form calls otherwise, as whoever knows only the place of the whole entry and
        the key's native name writes them; and as they are.
        """
        for native, original in self._known.items():
            whole, dot, key = native.rpartition(".")
            written = f"{self.find(whole)}.{key}"
            if dot and written != original:
                yield written, original


class ConvertedJudge(Judge):
    """Judges native sections that were converted, and speaks of the file as it was written."""

    def __init__(self, label: Optional[str], file: Optional[str], places: Places) -> None:
        super().__init__(label=label, file=file, native=True)
        self._places = places

    def source(self, path: str) -> str:
        """A native path as messages print it."""
        return super().source(self._places.find(path))


# ---- native sections -----------------------------------------------------------------------------------------------


class Sections:
    """Native raw sections that grow with each document of a file, and the judge of the file as it was written.

    ``complete``: false where something could not be read that other things may refer to. ``unsaid``: the native places
    of members whose ``inherit`` is not in the file.
    """

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.values: Dict[str, Any] = {}
        self.places = Places()
        self.complete = True
        self.unsaid: Set[str] = set()

    def add(self, section: str, item: Any, original: str) -> Optional[str]:
        """One more item of a list, whatever it is until ``fill``. Returns its native path; None where the section is
        something else already.
        """
        items = self.values.setdefault(section, [])
        if not isinstance(items, list):
            return None
        items.append(item)
        native = f"{section}[{len(items) - 1}]"
        self.places.put(native, original)
        return native

    def fill(self, section: str, item: Any) -> None:
        """What the item that was added last is."""
        self.values[section][-1] = item

    def whole(self, section: str, value: Any, original: str) -> None:
        """A section as it is. Several documents may give it where they give the same."""
        if section in self.values and self.values[section] != value:
            before = self.places.find(section)
            self.judge.report(original, f"differs from {before}: a manifest has one {section}")
            return
        self.values[section] = value
        self.places.put(section, original)

    def named(self, section: str, name: Any, original: str) -> Optional[str]:
        """One more entry of a dict, which whoever calls puts there. Returns its native path; None where there can be
        none.
        """
        entries = self.values.setdefault(section, {})
        native = join(section, name)
        if not isinstance(entries, dict):
            return None
        if name in entries:
            self.judge.report(original, f"{show(name)} is declared twice, also in {self.places.find(native)}")
            return None
        self.places.put(native, original)
        return native


# ---- sifting keys --------------------------------------------------------------------------------------------------


class Key(NamedTuple):
    """What becomes of a key. ``to``: its native name. ``form``: the keys of its value, or of each item of it where
    ``many``. ``aliases``: other spellings. ``refuse``: why it cannot be carried over. ``ignored``: it says nothing
    about access.
    """

    to: str = ""
    form: Optional[Mapping[str, Any]] = None
    many: bool = False
    aliases: Tuple[str, ...] = ()
    refuse: str = ""
    ignored: bool = False


Form = Mapping[str, Key]

KEEP = Key()
IGNORED = Key(ignored=True)


class Sifted(NamedTuple):
    """A dict by the names of the form, and where each key of it stands."""

    values: Dict[str, Any]
    places: Dict[str, str]

    def get(self, name: str) -> Any:
        """The value of a key, None when it is not given."""
        return self.values.get(name)


class Sifter:
    """Takes out of another tool's values what a form does not know, and says so.

    ``camel``: keys may be written in camel case, as Kubernetes does.
    """

    def __init__(self, sections: Sections, camel: bool = False) -> None:
        self._judge = sections.judge
        self._places = sections.places
        self._camel = camel

    def keys(self, raw: Mapping[Any, Any], form: Form, original: str) -> Sifted:
        """The known keys of a dict by the form's own names. ``original`` is the dict's place."""
        values: Dict[str, Any] = {}
        places: Dict[str, str] = {}
        for key, item in raw.items():
            name = self._name(key, form)
            place = under(original, "on" if key is True else key)
            if name is None:
                if item is not BROKEN:
                    hint = self._judge.suggest(form, key) if isinstance(key, str) else ""
                    self._judge.report(place, f"unknown key {show(key)}{hint or '; known here: ' + ', '.join(form)}")
                continue
            known = form[name]
            if item is None or known.ignored:
                continue
            if known.refuse:
                self._judge.report(place, known.refuse)
            elif name in values:
                self._judge.report(place, f"says the same as {places[name]}, which is given too: leave one out")
            else:
                values[name] = item
                places[name] = place
        return Sifted(values, places)

    def sift(self, raw: Any, form: Form, native: str, original: str) -> Any:
        """The native form of a value: of dicts only what the form knows, by native names. What is no dict is left to
        the judge of the native sections.
        """
        if not isinstance(raw, Mapping):
            return raw
        found = self.keys(raw, form, original)
        return {form[name].to or name: self._below(found, name, form[name], native) for name in found.values}

    def _below(self, found: Sifted, name: str, key: Key, native: str) -> Any:
        value, original = found.values[name], found.places[name]
        place = join(native, key.to or name)
        if self._places.find(place) != original:
            self._places.put(place, original)
        if key.form is None:
            return value
        if key.many and isinstance(value, list):
            return [
                self.sift(item, key.form, f"{place}[{number}]", f"{original}[{number}]")
                for number, item in enumerate(value)
            ]
        return self.sift(value, key.form, place, original)

    def _name(self, key: Any, form: Form) -> Optional[str]:
        """The form's own name of a key. YAML reads an unquoted ``on`` as true."""
        if key is True:
            key = "on"
        if not isinstance(key, str):
            return None
        for spelling in (key, snake(key)) if self._camel else (key,):
            if spelling in form:
                return spelling
            for name, known in form.items():
                if spelling in known.aliases:
                    return name
        return None


def snake(key: str) -> str:
    """A key in camel case as it is written with underscores."""
    return re.sub("(?<=[a-z0-9])([A-Z])", r"_\1", key).lower()


def under(place: str, key: object) -> str:
    """The place of a key: of one in a document itself, or of one in something in it."""
    return f"{place}{join('', key)}" if not place or place.endswith((": ", ".")) else join(place, key)


def secret_texts(value: Any) -> Iterator[str]:
    """The texts and numbers in something nested: each may be a secret."""
    yield from (text for text in leaves(value) if text not in ("None", "True", "False"))
