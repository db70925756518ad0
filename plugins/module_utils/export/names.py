# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Which roles and names an export may write: those that a manifest can hold, and that nobody told it to leave alone."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Iterable, List, Optional, Set, Tuple

from ..manifest.texts import TEMPLATE, TEXTS, Refused
from ..privileges import BOOTSTRAP_OID, PUBLIC, PUBLIC_OID, is_predefined, is_provider_here
from ..signatures import split_signature
from ..state import Role, State
from .extras import Choice


def fits(text: str, judge: str) -> bool:
    """Whether a manifest can hold this text at a place that is judged so (``TEXTS``)."""
    if TEMPLATE.search(text):
        return False
    try:
        TEXTS[judge](text)
    except Refused:
        return False
    return True


def routine_fits(label: str, name: str) -> bool:
    """Whether a rule can name this routine: its signature is read as just that name and its arguments."""
    if TEMPLATE.search(label) or ")" in name or name != name.strip() or name.startswith('"'):
        return False
    return fits(name, "column") and next((read for read, _arguments in split_signature(label)), None) == name


#: A pattern for a byte that is not UTF-8 (``connection.accept_any_bytes``): a surrogate, which no text can have. A
#: manifest cannot hold one either, so the range ends at their neighbours, which nobody has in a name: U+D7FF is
#: unassigned, U+E000 for private use.
_STRAY = "[\ud7ff-\ue000]"


def escaped(name: str) -> str:
    """A pattern that a manifest can hold and that matches this name and no other text: beside it, at most names that
    are no text either.
    """
    return "".join(f"[{char}]" if char in "*?[{" else _STRAY if "\ud800" <= char <= "\udfff" else char for char in name)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name matches one of these patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


class Roles:
    """The roles as an export sees them, and which of them it has named so far."""

    def __init__(self, state: State, choice: Choice) -> None:
        self._state = state
        self._choice = choice
        self._named: Set[int] = set()
        present = {role.name for role in state.roles.values()}
        self.ignored: Set[int] = set()
        self.unspeakable: Set[int] = set()
        self._reserved: Set[int] = set()
        for role in state.roles.values():
            if matches(role.name, choice.ignore_roles):
                self.ignored.add(role.oid)
            elif not fits(role.name, "declared_role"):
                self.unspeakable.add(role.oid)
            if role.oid == BOOTSTRAP_OID or is_predefined(role.name) or is_provider_here(role.name, present):
                self._reserved.add(role.oid)

    def reserved(self, oid: int) -> bool:
        """Whether PostgreSQL, initdb or a managed service made the role."""
        return oid in self._reserved

    def speakable(self, oid: int) -> bool:
        """Whether the manifest may name the role, PUBLIC included."""
        if oid == PUBLIC_OID:
            return True
        return oid in self._state.roles and oid not in self.ignored and oid not in self.unspeakable

    def dangling(self, oid: int) -> bool:
        """Whether there is no such role any more."""
        return oid != PUBLIC_OID and oid not in self._state.roles

    @property
    def narrowed(self) -> bool:
        """Whether only some roles are asked for."""
        return self._choice.roles is not None

    def chosen(self, oid: int) -> bool:
        """Whether the role is asked for: then it comes with its attributes, unless somebody else made it."""
        role = self._state.roles.get(oid)
        if role is None or not self.speakable(oid):
            return False
        return self._choice.roles is None or matches(role.name, self._choice.roles)

    def name(self, oid: int) -> str:
        """The role's name for the manifest, which from now on has to declare it."""
        if oid == PUBLIC_OID:
            return PUBLIC.upper()
        self._named.add(oid)
        return self._state.roles[oid].name

    def declared(self) -> List[Tuple[Role, bool]]:
        """The roles that the manifest declares, in their order, each with whether it comes as external."""
        found: List[Tuple[Role, bool]] = []
        for role in sorted(self._state.roles.values(), key=lambda role: role.name):
            if not self.speakable(role.oid):
                continue
            own = self.chosen(role.oid) and not self.reserved(role.oid)
            if own or role.oid in self._named:
                found.append((role, not own))
        return found

    def ignore_patterns(self) -> List[str]:
        """What ``scope.ignore_roles`` has to say: what was asked, and the roles that no manifest can name."""
        names = sorted(self._state.roles[oid].name for oid in self.unspeakable)
        return list(dict.fromkeys([*self._choice.ignore_roles, *(escaped(name) for name in names)]))


def role_name(state: State, oid: int) -> Optional[str]:
    """The role's name for a report; None for PUBLIC."""
    return None if oid == PUBLIC_OID else state.ref(oid).name
