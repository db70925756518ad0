# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What ties the roles that a run may drop to the cluster: rows of pg_shdepend, and sessions.

A shared catalog knows this for every database without a connection to it (PostgreSQL documentation, "pg_shdepend").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import FrozenSet, Mapping, Optional, Sequence, Tuple

#: How many objects a list that is only to be read names.
NAMED = 20

#: pg_shdepend.deptype by its meaning.
OWNER, ACL, POLICY = "o", "a", "r"


def listed(names: Sequence[str], count: int) -> str:
    """The first of some names, and how many more there are."""
    rest = count - min(len(names), NAMED)
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")


@dataclass(frozen=True)
class Ties:
    """Ties of one role of one sort: ``how`` is pg_shdepend's deptype, ``catalog`` where the objects are rows of.

    ``database`` is None for shared objects, else a database's name; ``objects`` (OID and column number) and the first
    few ``labels`` are only there for shared objects and the connected database.
    """

    role: int
    how: str
    catalog: str
    database: Optional[str]
    count: int
    objects: FrozenSet[Tuple[int, int]] = frozenset()
    labels: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Onward:
    """An entry in the connected database that one of these roles granted: ``catalog`` and ``oid`` say on what."""

    grantor: int
    grantee: int
    catalog: str
    oid: int
    label: str
    privileges: Tuple[str, ...]


@dataclass(frozen=True)
class Belongings:
    """``sessions``: how many a role has open, in the whole cluster. ``policies``: those of the connected database that
    name only this role (``name on schema.table``). ``closed``: databases that allow no connections.
    """

    ties: Tuple[Ties, ...] = ()
    onward: Tuple[Onward, ...] = ()
    policies: Mapping[int, Tuple[str, ...]] = field(default_factory=dict)
    sessions: Mapping[int, int] = field(default_factory=dict)
    closed: FrozenSet[str] = frozenset()
