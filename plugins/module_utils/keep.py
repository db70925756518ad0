# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Columns beside their relations: what a relation's REVOKE takes along, and columns that are named together.

PostgreSQL takes a column's entry along when the same privilege is revoked on the whole relation, for the same grantee
and grantor (ExecGrant_Relation in aclchk.c).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, FrozenSet, List, Sequence, Set, Tuple, TypeVar, Union, cast

from .changes import Change, Grant, Revoke, Target
from .records import replace
from .state import State

_Some = TypeVar("_Some", bound=Change)

#: Grantee, privilege and grantor.
_Row = Tuple[int, str, int]


def taken_along(changes: Sequence[Change], *, option_only: bool = False) -> Dict[_Row, Set[int]]:
    """The relations on which a grantor's privilege is revoked from a grantee, and with it that of every column.

    ``option_only``: those on which just the grant option is, which takes only the columns' grant options along.
    """
    taken: Dict[_Row, Set[int]] = defaultdict(set)
    for change in changes:
        if isinstance(change, Revoke) and change.option_only is option_only and not change.target.columns:
            for privilege in change.privileges:
                row = (change.grantee.oid, privilege, change.grantor.oid)
                taken[row].update(item.oid for item in change.target.objects)
    return taken


def with_columns(changes: Sequence[Change], state: State) -> List[Change]:
    """The changes with kept column privileges granted again, and new ones only after a revoke that would take them."""
    taken, options = taken_along(changes), taken_along(changes, option_only=True)
    if not taken and not options:
        return list(changes)
    result = [_late(change, taken, options) for change in changes]
    return [*result, *_again(changes, taken, options, state)]


def _late(change: Change, taken: Dict[_Row, Set[int]], options: Dict[_Row, Set[int]]) -> Change:
    if not isinstance(change, Grant) or not change.target.columns or change.lent:
        return change
    owner = change.target.owner.oid
    for privilege in change.privileges:
        row = (change.grantee.oid, privilege, owner)
        oids = taken.get(row, set()) | (options.get(row, set()) if change.with_grant_option else set())
        if any(item.oid in oids for item in change.target.objects):
            return replace(change, late=True)
    return change


def _again(
    changes: Sequence[Change], taken: Dict[_Row, Set[int]], options: Dict[_Row, Set[int]], state: State
) -> List[Grant]:
    gone: Set[Tuple[_Row, str, int]] = set()
    lowered: Set[Tuple[_Row, str, int]] = set()
    given: Dict[Tuple[int, str, str, int], bool] = {}
    for change in changes:
        if isinstance(change, (Grant, Revoke)) and change.target.columns:
            for privilege in change.privileges:
                for column in change.target.columns:
                    for item in change.target.objects:
                        if isinstance(change, Grant):
                            if not change.lent:
                                grant = (change.grantee.oid, privilege, column, item.oid)
                                given[grant] = given.get(grant, False) or change.with_grant_option
                        elif not change.cascade:  # that takes the option away for a moment only
                            place = ((change.grantee.oid, privilege, change.grantor.oid), column, item.oid)
                            (lowered if change.option_only else gone).add(place)
    again: List[Grant] = []
    for group in state.groups:
        if group.column is None or group.schema is None:
            continue
        found: Dict[Tuple[int, bool, FrozenSet[int]], Set[str]] = defaultdict(set)
        for entry in sorted(group.acl.entries):
            row = (entry.grantee, entry.privilege, entry.grantor)
            hits: Dict[bool, Set[int]] = {True: set(), False: set()}
            for item in group.members.objects():
                place = (row, group.column, item.oid)
                option = entry.grantable and place not in lowered
                known = given.get((entry.grantee, entry.privilege, group.column, item.oid))
                if place in gone or known or (known is not None and not option):
                    continue
                if item.oid in taken.get(row, ()) or (option and item.oid in options.get(row, ())):
                    hits[option].add(item.oid)
            for grantable, oids in hits.items():
                if oids:
                    found[entry.grantee, grantable, frozenset(oids)].add(entry.privilege)
        for (grantee, grantable, hit), privileges in found.items():
            target = Target(
                group.kind,
                state.schemas[group.schema].name,
                tuple(item for item in group.members.objects() if item.oid in hit),
                state.ref(group.owner),
                (group.column,),
                group.extension,
            )
            again.append(Grant(target, state.ref(grantee), frozenset(privileges), grantable, again=True, late=True))
    return again


def merge_columns(changes: Sequence[_Some]) -> List[_Some]:
    """The changes with those that differ only in the column made one."""
    merged: Dict[Change, List[str]] = {}
    sources: Dict[Change, List[str]] = {}
    for change in changes:
        if isinstance(change, (Grant, Revoke)) and change.target.columns:
            place = _with(change, ())
            merged.setdefault(place, []).extend(change.target.columns)
            sources.setdefault(place, []).extend(change.sources)
    result: List[Change] = []
    for change in changes:
        if isinstance(change, (Grant, Revoke)) and change.target.columns:
            place = _with(change, ())
            columns = merged.pop(place, None)
            if columns is not None:
                result.append(replace(_with(change, columns), sources=tuple(dict.fromkeys(sources[place]))))
        else:
            result.append(change)
    return cast("List[_Some]", result)


def _with(change: Union[Grant, Revoke], columns: Sequence[str]) -> Union[Grant, Revoke]:
    return replace(change, target=change.target._replace(columns=tuple(sorted(set(columns)))))
