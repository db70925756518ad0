# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""In whose name memberships are granted from PostgreSQL 16 on, and what hangs on whom.

There each row has a grantor, who needs ADMIN on the group for as long as the row is there. A superuser's GRANT is
recorded for the bootstrap superuser; anybody else's for the role itself where it has ADMIN, else for the nearest role
that it inherits and that has it (select_best_admin in PostgreSQL's acl.c).

All this looks at the changes that are left after the filters. Until PostgreSQL 15 grantors mean nothing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import AbstractSet, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ..changes import AddMember, Change, MemberChange, RemoveMember
from ..privileges import BOOTSTRAP_OID
from ..records import dataclass, replace
from ..state import Membership, RoleRef, State
from .memberships import OPTIONS, Edge

#: Group, member and grantor: one row.
Key = Tuple[int, int, int]


def with_grantors(changes: Sequence[Change], state: State, leaving: AbstractSet[int] = frozenset()) -> List[Change]:
    """The changes with the grantor of each new row, and with what taking ADMIN away drags along.

    A membership that was granted by somebody who loses ADMIN on the group goes with it, or who is ``leaving``: dropped
    by the plan. Where the plan keeps that membership it is granted again first, in the name of somebody who stays, and
    then taken from the one who goes. Memberships of the dropped roles themselves go with them.
    """
    members = [change for change in changes if isinstance(change, (AddMember, RemoveMember))]
    if state.server.version < 16 or not (members or leaving):
        return list(changes)
    staying = [row for row in state.memberships if not {row.group, row.member} & leaving]
    groups = {change.group.oid for change in members} | {row.group for row in staying if row.grantor in leaving}
    rows = [row for row in state.memberships if row.group in groups and row.group not in leaving]
    fate = _fate(members, rows, leaving)
    additions = {(change.group.oid, change.member.oid): change for change in members if isinstance(change, AddMember)}
    # A lowering of a row that now goes altogether would fail: the row is gone by then.
    removals = [
        change
        for change in members
        if isinstance(change, RemoveMember) and (change.option is None or _key_of(change) not in fate.gone)
    ]
    for edge, lost in fate.lost.items():
        staying = fate.staying(edge)
        # What a member gave itself ends with the membership that it hangs on.
        replaced = bool(staying) or not all(row.self_granted for row in lost)
        for row in lost:
            lowered = {name for name in OPTIONS if replaced and getattr(row, name) and (edge, name) in fate.lowered}
            group, member, grantor = (state.ref(oid) for oid in _key(row))
            removals.append(RemoveMember(group, member, grantor, replaced=replaced, lowered=frozenset(lowered)))
        options = {name: _has(lost, name) and not _has(staying, name) for name in OPTIONS}
        options = {name: value and (edge, name) not in fate.lowered for name, value in options.items()}
        if replaced and (not staying or any(options.values())):
            again = AddMember(state.ref(edge[0]), state.ref(edge[1]), options, "", exists=True)
            additions[edge] = _united(additions.get(edge, again), options)
    acting = acting_roles(state)
    holders = {place for place in _holders(groups, rows, fate) if place[1] not in leaving}
    admins = [row for row in rows if row.admin]
    granted = [
        _granted(change, fate.staying(edge), acting, holders, admins, state) for edge, change in additions.items()
    ]
    others = [change for change in changes if not isinstance(change, (AddMember, RemoveMember))]
    return [*others, *granted, *in_order(removals, rows, acting)]


def _key(row: Membership) -> Key:
    return row.group, row.member, row.grantor


def _key_of(change: RemoveMember) -> Optional[Key]:
    return (change.group.oid, change.member.oid, change.grantor.oid) if change.grantor else None


def _has(rows: Sequence[Membership], option: str) -> bool:
    return any(getattr(row, option) for row in rows)


def _united(change: AddMember, options: Mapping[str, bool]) -> AddMember:
    # Both would be one row, and the second would overwrite the first.
    return replace(change, options={name: change.options.get(name, False) or options[name] for name in OPTIONS})


# ---- which rows go -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fate:
    """What becomes of rows. ``lost``: those that go only because their grantor loses ADMIN, by membership."""

    rows: Mapping[Edge, Sequence[Membership]]
    gone: AbstractSet[Key]
    powerless: AbstractSet[Key]
    lowered: AbstractSet[Tuple[Edge, str]]
    lost: Mapping[Edge, Sequence[Membership]]

    def staying(self, edge: Edge) -> List[Membership]:
        """The rows of a membership that are left."""
        return [row for row in self.rows.get(edge, ()) if _key(row) not in self.gone]


def _fate(changes: Sequence[MemberChange], rows: Sequence[Membership], leaving: AbstractSet[int]) -> _Fate:
    by_edge: Dict[Edge, List[Membership]] = defaultdict(list)
    for row in rows:
        by_edge[row.group, row.member].append(row)
    gone: Set[Key] = set()
    powerless: Set[Key] = set()
    lowered: Set[Tuple[Edge, str]] = set()
    admins: Set[Edge] = {(row.group, BOOTSTRAP_OID) for row in rows}
    for change in changes:
        edge = (change.group.oid, change.member.oid)
        if isinstance(change, AddMember):
            if change.options.get("admin"):
                admins.add(edge)
        elif change.grantor is not None:
            if change.option is None:
                gone.add((*edge, change.grantor.oid))
            else:
                lowered.add((edge, change.option))
                if change.option == "admin":
                    powerless.add((*edge, change.grantor.oid))
    lost: Dict[Edge, List[Membership]] = defaultdict(list)
    while True:
        left = [row for row in rows if _key(row) not in gone]
        able = admins | {(row.group, row.member) for row in left if row.admin and _key(row) not in powerless}
        able = {place for place in able if place[1] not in leaving}
        orphans = [row for row in left if (row.group, row.grantor) not in able and row.member not in leaving]
        if not orphans:
            return _Fate(by_edge, gone, powerless, lowered, lost)
        for row in orphans:
            gone.add(_key(row))
            lost[row.group, row.member].append(row)
            if row.admin and _key(row) not in powerless:
                # It will be granted again with ADMIN, so what hangs on it can stay.
                admins.add((row.group, row.member))


# ---- in whose name -------------------------------------------------------------------------------------------------


def acting_roles(state: State) -> Mapping[int, int]:
    """The roles whose privileges the executor has, itself first and then the nearest, with their distance. A superuser
    needs no others.
    """
    found = {state.server.current_user: 0}
    groups: Dict[int, List[int]] = defaultdict(list)
    if state.roles[state.server.current_user].superuser:
        return found
    for row in state.memberships:
        if row.inherit:
            groups[row.member].append(row.group)
    pending = list(found)
    for member in pending:
        for group in sorted(groups.get(member, ())):
            if group not in found:
                found[group] = found[member] + 1
                pending.append(group)
    return found


def _holders(groups: AbstractSet[int], rows: Sequence[Membership], fate: _Fate) -> Set[Edge]:
    """Group and role wherever the role has ADMIN and keeps it, through rows that all stay."""
    found: Set[Edge] = {(group, BOOTSTRAP_OID) for group in groups}
    pending = [row for row in rows if row.admin and _key(row) not in fate.gone and _key(row) not in fate.powerless]
    while True:
        more = {(row.group, row.member) for row in pending if (row.group, row.grantor) in found} - found
        if not more:
            return found
        found |= more


def _granted(
    change: AddMember,
    rows: Sequence[Membership],
    acting: Mapping[int, int],
    holders: AbstractSet[Edge],
    admins: Sequence[Membership],
    state: State,
) -> AddMember:
    """The change with its grantor, and with all that the statement has to say about that grantor's row.

    ``admins``: the rows that give ADMIN now, ``holders``: who keeps it.
    """
    executor = state.server.current_user
    grantor = BOOTSTRAP_OID if state.roles[executor].superuser else executor
    named = False
    unfounded: Tuple[RoleRef, ...] = ()
    if grantor != BOOTSTRAP_OID:
        able = [role for role in acting if (change.group.oid, role) in holders and role != BOOTSTRAP_OID]
        # Without any, the executor may not do it at all, which is said elsewhere.
        grantor = able[0] if able else executor
        named = grantor != executor
        if not able and BOOTSTRAP_OID not in acting:
            losing = [row for row in admins if row.group == change.group.oid and row.member in acting]
            through = {row.grantor if row.member == executor else row.member for row in losing}
            unfounded = tuple(state.ref(role) for role in sorted(through))
    elif state.roles[change.member.oid].createrole and any(row.automatic for row in rows):
        # In the member's own name as createrole_self_grant does: a superuser's would rewrite the automatic row itself.
        grantor, named = change.member.oid, True
    options = change.options
    if change.exists:
        # A new row beside the others must not bring more than what is missing; an old one keeps what is not named.
        mine = any(row.grantor == grantor for row in rows)
        options = {name: options.get(name, False) for name in OPTIONS if options.get(name) or not mine}
    return replace(change, options=options, grantor=state.ref(grantor) if named else None, unfounded=unfounded)


# ---- in what order -------------------------------------------------------------------------------------------------


def in_order(
    removals: Sequence[RemoveMember], rows: Sequence[Membership], acting: Mapping[int, int]
) -> List[RemoveMember]:
    """How far each row is from the bootstrap superuser, so that dependents go before what they depend on; and where the
    executor may have to act through a group, how near the group is to it, so that it does not lose its way.
    """
    grants: Dict[Edge, List[int]] = defaultdict(list)
    for row in rows:
        if row.admin:
            grants[row.group, row.grantor].append(row.member)
    depth: Dict[Edge, int] = {(row.group, BOOTSTRAP_OID): 0 for row in rows}
    pending = list(depth)
    for group, grantor in pending:
        for member in grants.get((group, grantor), ()):
            if (group, member) not in depth:
                depth[group, member] = depth[group, grantor] + 1
                pending.append((group, member))
    farthest = 1 + max(acting.values())
    return [
        replace(
            change,
            depth=depth.get((change.group.oid, change.grantor.oid), 0) if change.grantor else 0,
            late=farthest - acting.get(change.group.oid, farthest),
        )
        for change in removals
    ]
