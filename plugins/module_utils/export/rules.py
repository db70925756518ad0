# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Grant rules as an export collects them: privilege by privilege, then put together and in order."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple

from ..privileges import KINDS, PUBLIC

_KIND_ORDER: Mapping[str, int] = {name: number for number, name in enumerate(KINDS)}


class Place(NamedTuple):
    """What a rule is about. ``name`` is ``*`` for a wildcard, None for the connected database."""

    kind: str
    schema: Optional[str]
    name: Optional[str]

    def as_object(self) -> Dict[str, Any]:
        """The rule's ``object``."""
        found: Dict[str, Any] = {"type": self.kind}
        if self.schema is not None:
            found["schema"] = self.schema
        if self.name is not None:
            found["name"] = int(self.name) if self.kind == "large_object" else self.name
        return found


#: Privileges with whether they come with grant option, or that are to be absent.
_Rule = Tuple[str, Place, bool, bool]


class Rules:
    """Grant rules, privilege by privilege."""

    def __init__(self) -> None:
        self._whole: Dict[_Rule, Set[str]] = defaultdict(set)
        #: By rule and privilege the columns.
        self._columns: Dict[_Rule, Dict[str, Set[str]]] = defaultdict(lambda: defaultdict(set))

    def __bool__(self) -> bool:
        return bool(self._whole or self._columns)

    def add(
        self,
        role: str,
        place: Place,
        privileges: Iterable[str],
        *,
        option: bool = False,
        present: bool = True,
        column: Optional[str] = None,
    ) -> None:
        """Some privileges that a role has on something, or that it must not have."""
        key = (role, place, present, option)
        if column is None:
            self._whole[key].update(privileges)
        else:
            for privilege in privileges:
                self._columns[key][privilege].add(column)

    def update(self, other: Rules) -> None:
        """Take over the rules of another collection."""
        for key, privileges in other._whole.items():
            self._whole[key].update(privileges)
        for key, by_privilege in other._columns.items():
            for privilege, columns in by_privilege.items():
                self._columns[key][privilege].update(columns)

    @property
    def claim(self) -> bool:
        """Whether a rule is among them that makes its object managed: a present one for a role."""
        keys = {**self._whole, **self._columns}
        return any(present and role != PUBLIC.upper() for role, _place, present, _option in keys)

    def entries(self) -> List[Dict[str, Any]]:
        """The rules as items of ``grants``: by role, PUBLIC first, then by kind, schema and name."""
        found: List[Tuple[Any, ...]] = []
        for key, privileges in self._whole.items():
            if privileges:
                found.append((key, (), privileges))
        for key, by_privilege in self._columns.items():
            # Privileges on the same columns make one rule.
            alike: Dict[Tuple[str, ...], Set[str]] = defaultdict(set)
            for privilege, columns in by_privilege.items():
                alike[tuple(sorted(columns))].add(privilege)
            found.extend((key, columns, privileges) for columns, privileges in alike.items())
        return [_entry(key, columns, privileges) for key, columns, privileges in sorted(found, key=_order)]


def _order(item: Tuple[_Rule, Tuple[str, ...], Set[str]]) -> Tuple[Any, ...]:
    (role, place, present, option), columns, privileges = item
    return (
        role != PUBLIC.upper(),
        role,
        _KIND_ORDER[place.kind],
        place.schema or "",
        place.name != "*",
        int(place.name or 0) if place.kind == "large_object" else 0,
        place.name or "",
        columns,
        not present,
        option,
        sorted(privileges),
    )


def _entry(key: _Rule, columns: Tuple[str, ...], privileges: Set[str]) -> Dict[str, Any]:
    role, place, present, option = key
    found: Dict[str, Any] = {
        "role": role,
        "privileges": in_order(privileges, place.kind),
        "object": place.as_object(),
    }
    if columns:
        found["columns"] = list(columns)
    if option:
        found["with_grant_option"] = True
    if not present:
        found["ensure"] = "absent"
    return found


def in_order(privileges: Iterable[str], kind: str) -> List[str]:
    """Privileges in the order of the documentation."""
    known = list(KINDS[kind].privileges)
    return sorted(privileges, key=known.index)
