# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The entries of ACLs as PostgreSQL revokes them: what hangs on whom, and what goes with what (acl.c)."""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Mapping, Optional, Tuple

from ..state import Acl, Entry

#: Grantee, privilege and grantor of an entry.
Row = Tuple[int, str, int]
#: The entries of an ACL, each with whether it has the grant option.
Entries = Dict[Row, bool]
#: An object's entries under None, and those of its columns.
Places = Dict[Optional[str], Entries]


def owned_by(places: Places, old: int, new: int) -> Places:
    """The entries after the object changed owner."""
    if old == new:
        return places
    return entries_of(
        {
            column: Acl(frozenset(Entry(*row, option) for row, option in entries.items())).owned_by(old, new)
            for column, entries in places.items()
        }
    )


def entries_of(acls: Mapping[Optional[str], Acl]) -> Places:
    """The entries of an object's ACL and its columns'."""
    return {
        column: {(entry.grantee, entry.privilege, entry.grantor): entry.grantable for entry in acl.entries}
        for column, acl in acls.items()
    }


def take_away(entries: Entries, row: Row, *, option_only: bool, cascade: bool) -> None:
    """Take an entry, or its grant option, and with ``cascade`` what hangs on it."""
    if row not in entries:
        return
    option = entries[row]
    if option_only:
        entries[row] = False
    else:
        del entries[row]
    if not cascade or not option:
        return
    grantee, privilege, _grantor = row
    if any(r[:2] == row[:2] and held for r, held in entries.items()):
        return
    for hanging in [r for r in entries if r[2] == grantee and r[1] == privilege]:
        take_away(entries, hanging, option_only=False, cascade=True)


def what_hangs(entries: Entries, grantor: int, privilege: str) -> List[Tuple[int, Row]]:
    """What a grantor gave, and those gave to whom it was given; the farthest last."""
    found: List[Tuple[int, Row]] = []
    level, nearest, seen = 0, {grantor}, {grantor}
    while nearest:
        here = [row for row in sorted(entries) if row[1] == privilege and row[2] in nearest]
        found.extend((level, row) for row in here)
        nearest = {row[0] for row in here} - seen
        seen |= nearest
        level += 1
    return found


def depths(owner: int, entries: Entries, outer: FrozenSet[Tuple[int, str]]) -> Mapping[Tuple[int, str], int]:
    """How many grantors lie between the owner and a holder of the grant option, by holder and privilege."""
    depth: Dict[Tuple[int, str], int] = dict.fromkeys(outer, 1)
    pending = [row for row, option in entries.items() if option]
    level = 0
    while pending:
        known = [row for row in pending if row[2] == owner or (row[2], row[1]) in depth]
        if not known:
            break
        level += 1
        for row in known:
            depth.setdefault((row[0], row[1]), level)
        pending = [row for row in pending if row not in known]
    return depth
