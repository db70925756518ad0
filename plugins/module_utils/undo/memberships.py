# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Memberships on the way back: rows with their grantors and options, those that make room for others first."""

from __future__ import annotations

from collections import defaultdict
from typing import AbstractSet, Dict, List, Mapping, Optional, Tuple

from ..changes import AddMember, Change, DropRole, Plan, RemoveMember
from ..diff.admins import acting_roles, in_order
from ..diff.circles import without_circles
from ..diff.retirements import Leaving
from ..privileges import BOOTSTRAP_OID
from ..records import replace
from ..state import Membership, RoleRef, State

#: Group and member, and from PostgreSQL 16 on the grantor; before, a membership is one row.
_Edge = Tuple[int, int, Optional[int]]


def _edge(row: Membership, version: int) -> _Edge:
    return row.group, row.member, row.grantor if version >= 16 else None


def _rows_after(plan: Plan, after: State) -> Dict[_Edge, Membership]:
    """The rows of memberships as the plan makes them (AddRoleMems and DelRoleMems in user.c)."""
    version, executor = after.server.version, after.server.current_user
    own = BOOTSTRAP_OID if version >= 16 and after.roles[executor].superuser else executor
    rows = {_edge(row, version): row for row in after.memberships}
    for change in plan.changes:
        if isinstance(change, AddMember):
            grantor = change.grantor.oid if change.grantor is not None else own
            fresh = Membership(change.group.oid, change.member.oid, grantor, False)
            if version >= 16:
                fresh = replace(fresh, inherit=after.roles[change.member.oid].inherit, set=True)
            old = rows.get(_edge(fresh, version))
            row = (old or fresh).with_options(change.options)
            if version < 16 and row != old:
                row = replace(row, grantor=grantor)
            rows[_edge(row, version)] = row
        elif isinstance(change, RemoveMember):
            edge = (change.group.oid, change.member.oid, change.grantor.oid if change.grantor is not None else None)
            if change.option is None:
                rows.pop(edge, None)
            elif edge in rows:
                rows[edge] = rows[edge].with_options({change.option: False})
    return rows


def _options(row: Membership) -> Dict[str, bool]:
    found = {"admin": row.admin, "inherit": row.inherit, "set": row.set}
    return {name: value for name, value in found.items() if value is not None}


def members_back(plan: Plan, before: State, after: State) -> Tuple[List[Change], List[Change], List[str]]:
    """The memberships that come back, with those that have to make room for them; those that go last; and notes."""
    if not any(isinstance(change, (AddMember, RemoveMember, DropRole)) for change in plan.changes):
        return [], [], []
    gone = Leaving.of(plan.changes).roles
    version = before.server.version
    # A dropped role takes its memberships along.
    lasting = [row for row in before.memberships if not {row.group, row.member} & gone]
    rows_before = {_edge(row, version): row for row in lasting}
    # What comes by itself with a role that the plan makes goes with the role.
    automatic = {_edge(row, version) for row in after.memberships} - {_edge(row, version) for row in before.memberships}
    new = {edge: row for edge, row in _rows_after(plan, after).items() if not {row.group, row.member} & gone}
    if version >= 16:
        # Every row has a grantor that is there.
        new = {edge: row for edge, row in new.items() if row.grantor not in gone}
    present = {(row.group, row.member) for row in new.values()}
    namer = _Namer(before, after, gone)
    old = _within_reach(rows_before, new, namer, version)
    additions: List[AddMember] = []
    removals: List[RemoveMember] = []
    for edge in sorted({*old, *new}, key=lambda key: (key[0], key[1], key[2] or 0)):
        was, is_ = old.get(edge), new.get(edge)
        if was == is_ or edge in automatic:
            continue
        row = was or is_
        if row is None:
            continue
        refs = after.ref(row.group), after.ref(row.member), None if edge[2] is None else after.ref(edge[2])
        exists = (row.group, row.member) in present
        if was is None:
            removals.append(RemoveMember(*refs))
            continue
        options = _options(was)
        gives = True
        if is_ is not None and version < 16 and was.grantor != is_.grantor and namer.may_name(was):
            # A row keeps its grantor when it is lowered, and gets another one when it is raised.
            removals.append(RemoveMember(*refs, early=True))
            exists = False
        elif is_ is not None:
            now = _options(is_)
            removals += [RemoveMember(*refs, option=name) for name in options if now[name] and not options[name]]
            options = {name: True for name in options if options[name] and not now[name]}
            gives = bool(options)
        if gives:
            said = options if version >= 16 or options.get("admin") else {}
            additions.append(AddMember(refs[0], refs[1], said, "", namer.named(was), exists=exists))
    additions.sort(key=namer.depth)
    rows = list(new.values())
    ordered = in_order(removals, rows, acting_roles(after))
    state = replace(after, memberships=tuple(rows))
    changes, circles = without_circles([*additions, *ordered], state)
    first = [change for change in changes if not isinstance(change, RemoveMember) or change.early]
    last: List[Change] = [change for change in changes if isinstance(change, RemoveMember) and not change.early]
    return first, last, [*namer.notes, *(problem.text for problem in circles)]


def _within_reach(
    was: Mapping[_Edge, Membership], new: Mapping[_Edge, Membership], namer: _Namer, version: int
) -> Mapping[_Edge, Membership]:
    """The rows as they can be again: where nobody can act as the grantor, the executor's own row takes the place."""
    if version < 16:
        return was
    rows = {edge: row for edge, row in was.items() if new.get(edge) == row or namer.may_name(row)}
    for edge in [edge for edge in was if edge not in rows]:
        row = namer.instead(was[edge])
        own = rows.get(_edge(row, version), row)
        rows[_edge(row, version)] = own.with_options({name: True for name, value in _options(row).items() if value})
    return rows


class _Namer:
    """In whose name a membership comes back."""

    def __init__(self, before: State, after: State, gone: AbstractSet[int]) -> None:
        self._before = before
        self._gone = gone
        self._after = after
        self._executor = after.server.current_user
        self._superuser = after.roles[self._executor].superuser
        self._own = BOOTSTRAP_OID if self._superuser and after.server.version >= 16 else self._executor
        self._admins = {(row.group, row.member) for row in before.memberships if row.admin}
        self._acting = acting_roles(after)
        self._depths: Dict[Tuple[int, int], int] = {}
        self.notes: List[str] = []
        self._measure()

    def may_name(self, row: Membership) -> bool:
        """Whether the row can have its old grantor."""
        grantor = row.grantor
        if grantor not in self._before.roles or grantor in self._gone:
            return False
        if grantor == self._own:
            return True
        if self._before.server.version < 16:
            return self._superuser
        able = grantor == BOOTSTRAP_OID or (row.group, grantor) in self._admins
        return able and (self._superuser or grantor in self._acting)

    def named(self, row: Membership) -> Optional[RoleRef]:
        """The grantor where the statement has to name it; a note where it is another one than before."""
        if row.grantor == self._own:
            return None
        if self.may_name(row):
            return self._after.ref(row.grantor)
        self._note(row, self._own)
        return None

    def instead(self, row: Membership) -> Membership:
        """The same row as the executor can grant it."""
        able = [role for role in self._acting if (row.group, role) in self._admins]
        own = self._own if self._superuser or not able else able[0]
        self._note(row, own)
        return replace(row, grantor=own)

    def _note(self, row: Membership, own: int) -> None:
        group, member, grantor = (self._after.ref(oid).name for oid in (row.group, row.member, row.grantor))
        self.notes.append(
            f"the membership of {member} in {group} was granted by {grantor}; it comes back as granted by "
            f"{self._after.ref(own).name}"
        )

    def depth(self, change: AddMember) -> int:
        """How far the change's grantor is from the first one of the group: who grants has to hold ADMIN by then."""
        grantor = change.grantor.oid if change.grantor is not None else self._own
        return self._depths.get((change.group.oid, grantor), 0)

    def _measure(self) -> None:
        grants: Dict[Tuple[int, int], List[int]] = defaultdict(list)
        for row in self._before.memberships:
            if row.admin:
                grants[row.group, row.grantor].append(row.member)
        pending = [(group, BOOTSTRAP_OID) for group in sorted({row.group for row in self._before.memberships})]
        self._depths.update(dict.fromkeys(pending, 0))
        while pending:
            nearest, pending = pending, []
            for group, grantor in nearest:
                for member in grants.get((group, grantor), ()):
                    if (group, member) not in self._depths:
                        self._depths[group, member] = self._depths[group, grantor] + 1
                        pending.append((group, member))
