# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Memberships: which are missing or surplus, and which options differ, row by row.

In whose name a membership is granted, and what has to go or come with it, is decided afterwards (``admins.py``).

Until PostgreSQL 15 a membership is one row. From 16 on there is one row per grantor, and what counts is the OR over
them (PostgreSQL documentation, "GRANT" on roles). A row that PostgreSQL made for the creator of a role, or that the
creator made with ``createrole_self_grant``, is never drift.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, Iterable, List, Sequence, Set, Tuple

from ..changes import AddMember, MemberChange, RemoveMember
from ..policy import DesiredEdge, Policy
from ..privileges import is_predefined
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
            hint = (
                "No option or attribute keeps a member from SET ROLE here: leave the option out if "
                f"{edge.member} may do that, else the membership."
            )
        elif edge.inherit is not None and not edge.unsaid and edge.inherit != member.inherit:
            wanted, own = str(edge.inherit).lower(), str(member.inherit).lower()
            message = (
                f"inherit: {wanted} contradicts the role's own inherit: {own}, "
                "which is what counts before PostgreSQL 16"
            )
            does = "inherits" if member.inherit else "does not inherit"
            hint = (
                f"Give the role {edge.member} inherit: {wanted}, which counts for all its memberships; or leave the "
                f"option out: {edge.member} {does}."
            )
        else:
            continue
        problems.append(
            Problem(
                path=edge.source,
                role=edge.member,
                message=f'membership of "{edge.member}" in "{edge.group}": {message}',
                hint=hint,
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
        inherit = new and (state.roles[edge[1]].inherit or not desired.by_attribute)
        options = {
            "admin": desired.admin and not admin,
            "inherit": inherit if desired.inherit is None else desired.inherit,
            "set": new if desired.set is None else desired.set,
        }
        if not automatic or options["inherit"] or options["set"]:
            yield AddMember(group, member, options, desired.source)
        return
    raised = [name for name in OPTIONS if wanted[name] is True and not any(getattr(row, name) for row in rows)]
    if raised:
        options = dict.fromkeys(raised, True)
        yield AddMember(group, member, options, desired.source, exists=True, raised=frozenset(raised))
    for name in OPTIONS:
        if wanted[name] is False:
            for row in others:
                if getattr(row, name):
                    yield RemoveMember(
                        group,
                        member,
                        state.ref(row.grantor),
                        option=name,
                        # What the member gave itself ends with its ADMIN option, and nothing then stays as it was.
                        automatic=row.self_granted and (desired.admin or bool(automatic)),
                        source=desired.source,
                    )


def _edge_before_16(
    desired: DesiredEdge, edge: Edge, rows: Sequence[Membership], state: State
) -> Iterable[MemberChange]:
    group, member = state.ref(edge[0]), state.ref(edge[1])
    admin = any(row.admin for row in rows)
    if not rows or (desired.admin and not admin):
        options = {"admin": True} if desired.admin else {}
        raised = frozenset(options) if rows else frozenset()
        yield AddMember(group, member, options, desired.source, exists=bool(rows), raised=raised)
    elif admin and not desired.admin:
        yield RemoveMember(group, member, None, option="admin", source=desired.source)


def _surplus(edge: Edge, rows: Sequence[Membership], policy: Policy, state: State) -> Iterable[MemberChange]:
    group, member = (state.roles.get(oid) for oid in edge)
    if group is None or member is None or (is_predefined(group.name) and is_predefined(member.name)):
        return
    if group.name in policy.assumed and member.name in policy.assumed:
        return
    desired = policy.roles.get(group.name)
    by_group = group.name in policy.exclusive or (desired is not None and not is_external(desired, group.oid))
    claimed = by_group or member.name in policy.member_of
    # Where the manifest lists a group's members, others are different, be it for somebody else to decide.
    if not claimed and group.name not in policy.stanzas and member.name not in policy.roles:
        return
    if claimed and not by_group:
        source = policy.member_of[member.name]
    else:
        declared = desired or policy.roles.get(member.name)
        source = policy.stanzas.get(group.name) or (declared.source if declared else "")
    for row in rows:
        # What a member gave itself ends with the membership that it hangs on.
        automatic = row.automatic or (row.self_granted and any(other.automatic for other in rows))
        if automatic and member.createrole:
            continue
        grantor = state.ref(row.grantor) if state.server.version >= 16 else None
        yield RemoveMember(group.ref, member.ref, grantor, claimed=claimed, automatic=automatic, source=source)
