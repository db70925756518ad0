# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Memberships: which are missing or surplus, and which options differ, row by row.

Until PostgreSQL 15 a membership is one row. From 16 on there is one row per grantor, and what counts is the OR over
them (PostgreSQL documentation, "GRANT" on roles). A row that PostgreSQL made for the creator of a role, or that the
creator made with ``createrole_self_grant``, is never drift.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ..changes import AddMember, Change, MemberChange, RemoveMember
from ..policy import DesiredEdge, Policy
from ..privileges import BOOTSTRAP_OID, is_predefined
from ..problems import Problem
from ..state import Membership, Role, State
from .roles import is_external

Edge = Tuple[int, int]
OPTIONS = ("admin", "inherit", "set")


def option_problems(policy: Policy, state: State) -> List[Problem]:
    """Options that a server before PostgreSQL 16 cannot give. ``state`` has the roles' declared attributes already."""
    problems: List[Problem] = []
    if state.server.version >= 16:
        return problems
    for edge in policy.edges.values():
        oid = state.role_oid(edge.member)
        member = state.roles[oid] if oid is not None else Role(0, edge.member)
        if edge.set is False:
            message = "set: false needs PostgreSQL 16; before it every membership allows SET ROLE"
        elif edge.inherit is not None and edge.inherit != member.inherit:
            message = (
                f"inherit: {str(edge.inherit).lower()} contradicts the role's own inherit: "
                f"{str(member.inherit).lower()}, which is what counts before PostgreSQL 16"
            )
        else:
            continue
        problems.append(
            Problem(
                path=edge.source,
                role=edge.member,
                message=f'membership of "{edge.member}" in "{edge.group}": {message}',
                hint="Leave the option out, or change the attribute of the role.",
                code="unsupported_version",
            )
        )
    return problems


def membership_changes(policy: Policy, state: State) -> List[MemberChange]:
    """Every difference of memberships; what is reported only says ``claimed=False``."""
    rows: Dict[Edge, List[Membership]] = defaultdict(list)
    for row in state.memberships:
        rows[row.group, row.member].append(row)
    changes: List[MemberChange] = []
    wanted: Set[Edge] = set()
    for desired in policy.edges.values():
        group, member = state.role_oid(desired.group), state.role_oid(desired.member)
        if group is None or member is None or {desired.group, desired.member} <= policy.assumed:
            continue  # missing roles are reported elsewhere; between assumed roles another run decides
        wanted.add((group, member))
        found = rows.get((group, member), [])
        if state.server.version >= 16:
            changes.extend(_edge(desired, (group, member), found, state))
        else:
            changes.extend(_edge_before_16(desired, (group, member), found, state))
    for edge, found in rows.items():
        if edge not in wanted:
            changes.extend(_surplus(edge, found, policy, state))
    return changes


def _edge(desired: DesiredEdge, edge: Edge, rows: Sequence[Membership], state: State) -> Iterable[MemberChange]:
    group, member = state.ref(edge[0]), state.ref(edge[1])
    # By hand somebody can make a row that looks automatic; its member is then hardly one who creates roles.
    creator = state.roles[edge[1]].createrole
    automatic = [row for row in rows if row.automatic and creator]
    others = [row for row in rows if row not in automatic]
    wanted = {"admin": desired.admin, "inherit": desired.inherit, "set": desired.set}
    admin = any(row.admin for row in rows)
    if not others:
        # To whoever is to have ADMIN, the automatic row is that membership, and omitted options keep its values; to a
        # plain member it is none.
        new = not (automatic and desired.admin)
        options = {
            "admin": desired.admin and not admin,
            "inherit": new if desired.inherit is None else desired.inherit,
            "set": new if desired.set is None else desired.set,
        }
        if not automatic:
            yield AddMember(group, member, options, desired.source)
        elif options["inherit"] or options["set"]:
            # Beside the automatic row, in the member's own name as createrole_self_grant does: a superuser's GRANT
            # would rewrite the automatic row itself.
            yield AddMember(group, member, options, desired.source, grantor=member)
        return
    raised = [name for name in OPTIONS if wanted[name] is True and not any(getattr(row, name) for row in rows)]
    if raised:
        own = executor_grantor(state)
        mine = next((row for row in others if row.grantor == own), None)
        options = dict.fromkeys(raised, True)
        if mine is None:
            # A new row beside the others must not bring more than what is raised.
            options = {name: name in raised for name in OPTIONS}
        grantor = member if automatic and own == BOOTSTRAP_OID else None
        yield AddMember(group, member, options, desired.source, grantor=grantor, exists=True)
    for name in OPTIONS:
        if wanted[name] is False:
            for row in others:
                if getattr(row, name):
                    yield RemoveMember(
                        group,
                        member,
                        state.ref(row.grantor),
                        option=name,
                        automatic=row.self_granted,
                        source=desired.source,
                    )


def executor_grantor(state: State) -> int:
    """Who a plain GRANT of a membership is recorded for: any superuser acts as the bootstrap one (PostgreSQL 16)."""
    executor = state.server.current_user
    return BOOTSTRAP_OID if state.roles[executor].superuser else executor


def _edge_before_16(
    desired: DesiredEdge, edge: Edge, rows: Sequence[Membership], state: State
) -> Iterable[MemberChange]:
    group, member = state.ref(edge[0]), state.ref(edge[1])
    admin = any(row.admin for row in rows)
    if not rows or (desired.admin and not admin):
        options = {"admin": True} if desired.admin else {}
        yield AddMember(group, member, options, desired.source, exists=bool(rows))
    elif admin and not desired.admin:
        yield RemoveMember(group, member, None, option="admin", source=desired.source)


def _surplus(edge: Edge, rows: Sequence[Membership], policy: Policy, state: State) -> Iterable[MemberChange]:
    group, member = (state.roles.get(oid) for oid in edge)
    if group is None or member is None or (is_predefined(group.name) and is_predefined(member.name)):
        return
    if group.name in policy.assumed and member.name in policy.assumed:
        return
    desired = policy.roles.get(group.name)
    claimed = group.name in policy.exclusive or (desired is not None and not is_external(desired, group.oid))
    if not claimed and member.name not in policy.roles:
        return
    source = policy.stanzas.get(group.name) or (desired.source if desired else policy.roles[member.name].source)
    for row in rows:
        automatic = row.automatic or row.self_granted
        if automatic and member.createrole:
            continue
        grantor = state.ref(row.grantor) if state.server.version >= 16 else None
        yield RemoveMember(group.ref, member.ref, grantor, claimed=claimed, automatic=automatic, source=source)


# What follows looks at the changes that are left after the filters.


def with_dependents(changes: Sequence[Change], state: State) -> List[Change]:
    """The changes with what taking ADMIN away drags along (PostgreSQL 16).

    A membership that was granted by somebody who loses ADMIN on the group goes with it. Where the plan keeps that
    membership it is granted again by the executor first, and then taken from the grantor that goes.
    """
    if state.server.version < 16 or not any(isinstance(change, RemoveMember) for change in changes):
        return list(changes)
    result = list(changes)
    gone: Set[Tuple[int, int, int]] = set()
    powerless: Set[Tuple[int, int, int]] = set()
    granted_admin: Set[Edge] = set()
    for change in changes:
        if isinstance(change, RemoveMember) and change.grantor is not None:
            key = (change.group.oid, change.member.oid, change.grantor.oid)
            if change.option is None:
                gone.add(key)
            elif change.option == "admin":
                powerless.add(key)
        elif isinstance(change, AddMember) and change.options.get("admin"):
            granted_admin.add((change.group.oid, change.member.oid))
    groups = {key[0] for key in gone | powerless}
    rows = [row for row in state.memberships if row.group in groups]
    again: Dict[Edge, AddMember] = {}
    while True:
        admins: Set[Edge] = set(granted_admin) | {(group, BOOTSTRAP_OID) for group in groups}
        for row in rows:
            key = (row.group, row.member, row.grantor)
            if row.admin and key not in gone and key not in powerless:
                admins.add((row.group, row.member))
        orphans = [
            row
            for row in rows
            if (row.group, row.member, row.grantor) not in gone and (row.group, row.grantor) not in admins
        ]
        if not orphans:
            break
        for row in orphans:
            key = (row.group, row.member, row.grantor)
            gone.add(key)
            edge = (row.group, row.member)
            known = again.get(edge)
            kept_admin = row.admin and key not in powerless
            options = {"admin": kept_admin, "inherit": bool(row.inherit), "set": bool(row.set)}
            if known:
                options = {name: value or known.options[name] for name, value in options.items()}
            if options["admin"]:
                granted_admin.add(edge)
            again[edge] = AddMember(state.ref(row.group), state.ref(row.member), options, "", exists=True)
            result.append(RemoveMember(state.ref(row.group), state.ref(row.member), state.ref(row.grantor)))
            if row.self_granted and not any(_is_row_of(other, edge, gone) for other in rows):
                # What a member gave itself ends with the membership that it hangs on.
                del again[edge]
    # A lowering of a row that now goes altogether would fail: the row is gone by then.
    result = [
        change
        for change in result
        if not (
            isinstance(change, RemoveMember)
            and change.option is not None
            and change.grantor is not None
            and (change.group.oid, change.member.oid, change.grantor.oid) in gone
        )
    ]
    lowered = _lowered(changes)
    for edge, addition in again.items():
        options = {name: value and (edge[0], edge[1], name) not in lowered for name, value in addition.options.items()}
        if any(_is_row_of(row, edge, gone) and row.grantor == executor_grantor(state) for row in rows):
            # The executor's own row is there and keeps what the statement does not name.
            options = {name: True for name, value in options.items() if value}
        _grant_once(result, replace(addition, options=options))
    return _with_depth(result, rows)


def _grant_once(changes: List[Change], addition: AddMember) -> None:
    """Add a membership to the changes, or its options to the grant of the same edge that is there: both would be the
    executor's one row, and the second would overwrite the first.
    """
    for position, change in enumerate(changes):
        if isinstance(change, AddMember) and change.grantor is None:
            if (change.group.oid, change.member.oid) == (addition.group.oid, addition.member.oid):
                names = {**change.options, **addition.options}
                options = {name: change.options.get(name, False) or addition.options.get(name, False) for name in names}
                changes[position] = replace(change, options=options)
                return
    if addition.options:
        changes.append(addition)


def _is_row_of(row: Membership, edge: Edge, gone: Set[Tuple[int, int, int]]) -> bool:
    return (row.group, row.member) == edge and (row.group, row.member, row.grantor) not in gone


def _lowered(changes: Sequence[Change]) -> Set[Tuple[int, int, str]]:
    return {
        (change.group.oid, change.member.oid, change.option)
        for change in changes
        if isinstance(change, RemoveMember) and change.option is not None
    }


def _with_depth(changes: Sequence[Change], rows: Sequence[Membership]) -> List[Change]:
    """How far each row is from the bootstrap superuser, so that dependents go before what they depend on."""
    depth: Dict[Edge, int] = {(row.group, BOOTSTRAP_OID): 0 for row in rows}
    pending = [row for row in rows if row.admin]
    while pending:
        known = [row for row in pending if (row.group, row.grantor) in depth]
        if not known:
            break
        for row in known:
            edge = (row.group, row.member)
            depth[edge] = min(depth.get(edge, 1 << 30), depth[row.group, row.grantor] + 1)
        pending = [row for row in pending if row not in known]
    return [
        replace(change, depth=depth.get((change.group.oid, change.grantor.oid), 0))
        if isinstance(change, RemoveMember) and change.grantor is not None
        else change
        for change in changes
    ]


def without_circles(changes: Sequence[Change], state: State) -> Tuple[List[Change], List[Problem]]:
    """The changes with removals marked that have to go first, and a problem for each circle that would remain.

    PostgreSQL refuses a circle of memberships even for a moment.
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
    early = {edge for edge in removed if _path(during, edge[1], edge[0])}
    return [
        replace(change, early=True)
        if isinstance(change, RemoveMember) and change.option is None and (change.group.oid, change.member.oid) in early
        else change
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
