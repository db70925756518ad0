# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What ties the roles that a run may drop to the cluster: rows of pg_shdepend, and sessions.

A shared catalog knows this for every database without a connection to it (PostgreSQL documentation, "pg_shdepend").
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import DefaultDict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .records import dataclass, field

#: Grantee, privilege and grantor of an entry.
Row = Tuple[int, str, int]

#: How many objects a list that is only to be read names.
NAMED = 20

#: pg_shdepend.deptype by its meaning.
INITIAL_ACL, OWNER, ACL, POLICY = "i", "o", "a", "r"


#: Rows that belong to a role without being objects: DROP OWNED takes them away, and REASSIGN OWNED leaves them alone.
NO_OBJECTS = frozenset({"pg_default_acl", "pg_user_mapping"})


def listed(names: Sequence[str], count: int) -> str:
    """The first of some names, and how many more there are."""
    rest = count - min(len(names), NAMED)
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")


class Destroyed(NamedTuple):
    """Objects that go with their owner: the first names, how many, and a mark that tells sets of objects apart which
    are too large to be named (nothing where they are not).
    """

    names: Tuple[str, ...] = ()
    total: int = 0
    mark: str = ""

    @classmethod
    def of(cls, possessions: Sequence[Ties]) -> Destroyed:
        names = [label for ties in possessions for label in ties.labels]
        places = sorted((ties.catalog, *place) for ties in possessions for place in ties.objects)
        mark = hashlib.sha256(repr(places).encode()).hexdigest()[:12] if len(places) > NAMED else ""
        return cls(tuple(names[:NAMED]), sum(ties.count for ties in possessions), mark)


@dataclass(frozen=True)
class Ties:
    """Ties of one role of one sort: ``how`` is pg_shdepend's deptype, ``catalog`` where the objects are rows of.

    ``database`` is None for shared objects, else a database's name; ``objects`` (OID and column number, in order) and
    the ``labels`` of the first of them are only there for shared objects and the connected database.
    """

    role: int
    how: str
    catalog: str
    database: Optional[str]
    count: int
    objects: Tuple[Tuple[int, int], ...] = ()
    labels: Tuple[str, ...] = ()


def ties_by_role(ties: Iterable[Ties]) -> DefaultDict[int, List[Ties]]:
    """The ties of each role."""
    found: DefaultDict[int, List[Ties]] = defaultdict(list)
    for tie in ties:
        found[tie.role].append(tie)
    return found


def destroyed_of(ties: Iterable[Ties], inherited: bool) -> List[Ties]:
    """What DROP OWNED destroys of one role's ties in one database: what it owns, and where an heir takes that over the
    user mappings, which REASSIGN OWNED passes over. Default privileges are no objects.
    """
    return [
        tie
        for tie in ties
        if tie.how == OWNER and (tie.catalog == "pg_user_mapping" if inherited else tie.catalog != "pg_default_acl")
    ]


class Held(NamedTuple):
    """Alike ACLs in the connected database or on shared objects, as far as these roles hold or gave their entries.

    ``columns``: the names of the columns beside the ``objects``, None for whole objects.
    """

    catalog: str
    owner: int
    rows: FrozenSet[Row]
    objects: Tuple[Tuple[int, int], ...]
    columns: Tuple[Optional[str], ...]


class Onward(NamedTuple):
    """An entry in the connected database that one of these roles granted: ``catalog`` and ``oid`` say on what."""

    grantor: int
    grantee: int
    catalog: str
    oid: int
    label: str
    privileges: Tuple[str, ...]


class Special(NamedTuple):
    """Something a role owns that not everybody may own, or hand over.

    ``catalog`` says why: ``pg_publication`` of all tables or of schemas, ``pg_subscription`` without a password.
    """

    role: int
    catalog: str
    label: str


class Wrapper(NamedTuple):
    """The foreign-data wrapper of a server that a role owns: whoever owns the server needs USAGE on it."""

    role: int
    name: str
    users: FrozenSet[int]


class Default(NamedTuple):
    """Where a row of pg_default_acl belongs: ``kind`` as in the state."""

    owner: int
    schema: Optional[int]
    kind: str


@dataclass(frozen=True)
class Belongings:
    """What ties some roles to the cluster.

    ``sessions``: how many a role has open, in the whole cluster, and ``session_labels`` what the first ones are.
    ``policies``: those of the connected database that name only such roles (``name on schema.table``). ``closed``:
    databases that allow no connections. ``defaults``: the rows of pg_default_acl among the ties. ``placed``: the
    schemas in which a role owns what only somebody with CREATE there may come to own. ``hanging``: what depends on
    possessions that are to be destroyed, and keeps DROP OWNED from it or would go along although it belongs to others:
    how many, and the first. ``moved``: how many relations REASSIGN OWNED locks, indexes and TOAST tables included;
    ``gone``: how many objects DROP OWNED destroys, whatever they consist of included.
    """

    ties: Tuple[Ties, ...] = ()
    held: Tuple[Held, ...] = ()
    onward: Tuple[Onward, ...] = ()
    policies: Mapping[int, Tuple[str, ...]] = field(default_factory=dict)
    sessions: Mapping[int, int] = field(default_factory=dict)
    session_labels: Mapping[int, Tuple[str, ...]] = field(default_factory=dict)
    closed: FrozenSet[str] = frozenset()
    defaults: Mapping[int, Default] = field(default_factory=dict)
    placed: Mapping[int, FrozenSet[int]] = field(default_factory=dict)
    special: Tuple[Special, ...] = ()
    wrappers: Tuple[Wrapper, ...] = ()
    hanging: Mapping[int, Tuple[int, Tuple[str, ...]]] = field(default_factory=dict)
    moved: Mapping[int, int] = field(default_factory=dict)
    gone: Mapping[int, int] = field(default_factory=dict)
