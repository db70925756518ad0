# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Kept entries that a statement of the plan takes along: they are granted again in the same run."""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, FrozenSet, List, Sequence, Set, Tuple

from .changes import Change, Grant, Revoke, Target
from .state import Object, State


def columns_again(changes: Sequence[Change], state: State) -> List[Grant]:
    """Column privileges that the plan keeps although it revokes the same privilege on their table.

    PostgreSQL takes a column's entry along with the table's, for the same grantor (ExecGrant_Relation in aclchk.c).
    """
    taken: Dict[Tuple[int, str], Set[int]] = defaultdict(set)
    for change in changes:
        if isinstance(change, Revoke) and not change.option_only and change.target.column is None:
            for privilege in change.privileges:
                taken[change.grantee.oid, privilege].update(item.oid for item in change.target.objects)
    again: List[Grant] = []
    if not taken:
        return again
    for group in state.groups:
        if group.column is None or group.schema is None:
            continue
        found: Dict[Tuple[int, bool, FrozenSet[int]], Set[str]] = defaultdict(set)
        for entry in sorted(group.acl.entries):
            tables = taken.get((entry.grantee, entry.privilege))
            if tables is None or entry.grantor != group.owner:
                continue
            hit = frozenset(item.oid for item in group.members.objects() if item.oid in tables)
            if hit:
                found[entry.grantee, entry.grantable, hit].add(entry.privilege)
        for (grantee, grantable, hit), privileges in found.items():
            objects: Tuple[Object, ...] = tuple(item for item in group.members.objects() if item.oid in hit)
            target = Target(
                group.kind,
                state.schemas[group.schema].name,
                objects,
                state.ref(group.owner),
                group.column,
                group.extension,
            )
            again.append(Grant(target, state.ref(grantee), frozenset(privileges), grantable, again=True))
    return again
