# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Circles of memberships, which PostgreSQL refuses even for a moment."""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ..changes import AddMember, Change, RemoveMember
from ..problems import Problem
from ..records import replace
from ..state import State

#: Group and member.
Edge = Tuple[int, int]


def without_circles(changes: Sequence[Change], state: State) -> Tuple[List[Change], List[Problem]]:
    """The changes with removals marked that have to go first, and a problem for each circle that would remain.

    With a removal every other one of its group is marked: some of them may have to go before it.
    """
    additions = {
        (change.group.oid, change.member.oid): change
        for change in changes
        if isinstance(change, AddMember) and not change.exists
    }
    if not additions:
        return list(changes), []
    removed = _removed_edges(changes, state)
    existing = {(row.group, row.member) for row in state.memberships}
    after = _graph(existing - removed, additions)
    problems: List[Problem] = []
    for (group, member), change in additions.items():
        path = _path(after, member, group)
        if path:
            # A circle reads from the group that is given, through its members, back to itself.
            names = " -> ".join(state.ref(oid).name for oid in [group, *path])
            problems.append(
                Problem(
                    path=change.source,
                    role=change.member.name,
                    message=f"the memberships would form a circle: {names}",
                    hint="Remove one of these memberships, or declare its group so that the run removes it.",
                )
            )
    if problems:
        return list(changes), problems
    during = _graph(existing, additions)
    early = {group for group, member in removed if _path(during, member, group)}
    return [
        replace(change, early=True) if isinstance(change, RemoveMember) and change.group.oid in early else change
        for change in changes
    ], []


def _removed_edges(changes: Sequence[Change], state: State) -> Set[Edge]:
    """The edges of which no row is left."""
    gone: Set[Tuple[int, int, Optional[int]]] = {
        (change.group.oid, change.member.oid, change.grantor.oid if change.grantor else None)
        for change in changes
        if isinstance(change, RemoveMember) and change.option is None
    }
    kept: Set[Edge] = set()
    for row in state.memberships:
        if (row.group, row.member, row.grantor) not in gone and (row.group, row.member, None) not in gone:
            kept.add((row.group, row.member))
    return {(row.group, row.member) for row in state.memberships} - kept


def _graph(existing: Iterable[Edge], additions: Iterable[Edge]) -> Mapping[int, List[int]]:
    graph: Dict[int, List[int]] = defaultdict(list)
    for group, member in sorted({*existing, *additions}):
        graph[group].append(member)
    return graph


def _path(graph: Mapping[int, List[int]], start: int, end: int) -> Optional[List[int]]:
    """A way from a group down through its members, both ends included, or None."""
    previous: Dict[int, int] = {}
    pending = [start]
    seen = {start}
    while pending:
        node = pending.pop()
        if node == end:
            path = [node]
            while node != start:
                node = previous[node]
                path.append(node)
            return path[::-1]
        for following in graph.get(node, ()):
            if following not in seen:
                seen.add(following)
                previous[following] = node
                pending.append(following)
    return None
