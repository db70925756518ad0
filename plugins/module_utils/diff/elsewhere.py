# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What a plan does in other databases, which retirements with ``all_databases`` empty of their roles before the rest.

What such a role holds or granted on shared objects, and memberships that it granted, go with the first DROP OWNED
wherever that runs. So what the plan does about them is done in the first of these databases too.
"""

from __future__ import annotations

from typing import AbstractSet, Dict, List, Mapping, Sequence, Set, Tuple, Union

from ..authority.drops import drop_authority
from ..authority.powers import Powers
from ..belongings import NO_OBJECTS, OWNER, Belongings, Destroyed, destroyed_of, ties_by_role
from ..changes import AddMember, Change, DropOwned, DropRole, Grant, ReassignOwned, RemoveMember, Revoke
from ..drops import drop_problems
from ..policy import Policy
from ..privileges import SHARED_KINDS
from ..problems import Problem, readable
from ..records import dataclass, replace
from ..state import FIRST_ASSUMED, RoleRef, State

#: Catalogs that all databases share: what a role has there is judged with the connected database.
_SHARED = frozenset({"pg_database", "pg_tablespace", "pg_parameter_acl", "pg_auth_members"})


def emptied_elsewhere(policy: Policy, state: State, candidates: Mapping[int, str]) -> Mapping[str, Tuple[RoleRef, ...]]:
    """The other databases that hold something of roles which the manifest wants to be emptied there, with whose.

    Databases that allow no connections are not among them.
    """
    found: Dict[str, List[RoleRef]] = {}
    for oid in candidates:
        ref = state.ref(oid)
        retirement = policy.retirements.get(ref.name)
        if retirement is None or not retirement.all_databases:
            continue
        if not retirement.drop_owned and retirement.heir is None:
            continue
        names = {ties.database for ties in state.belongings.ties if ties.role == oid and ties.database is not None}
        for name in names - {state.server.database} - state.belongings.closed:
            found.setdefault(name, []).append(ref)
    return {name: tuple(refs) for name, refs in sorted(found.items())}


def only_there(found: Belongings, database: str) -> Belongings:
    """What was read in a database, without what every database shares."""
    return replace(
        found,
        ties=tuple(ties for ties in found.ties if ties.database == database),
        held=tuple(held for held in found.held if held.catalog not in _SHARED),
        onward=tuple(entry for entry in found.onward if entry.catalog not in _SHARED),
        sessions={},
        session_labels={},
        closed=frozenset(),
    )


def with_elsewhere(changes: Sequence[Change], state: State) -> Tuple[Change, ...]:
    """The plan's changes with those of other databases. ``state`` is as the plan will have made it."""
    there = [
        change
        for name, other in state.elsewhere.items()
        for change in emptying_changes(name, other.belongings, changes)
    ]
    return (*_shared_first(changes, there, state), *there)


def problems_elsewhere(
    changes: Sequence[Change], state: State, first: State, known: Sequence[Problem]
) -> List[Problem]:
    """Everything that stands in the way in other databases, but for what is ``known`` of the connected one.

    ``state`` is as the plan will have made it, ``first`` as it is: nothing of the plan has run by then.
    """
    problems = [_unread(name, why, changes, state) for name, why in state.unread.items()]
    problems += _heirs_missing(changes)
    before = Powers(first)
    for name, other in state.elsewhere.items():
        judged = _judged(name, changes, replace(other, roles=state.roles), before)
        # What is about a role is the same everywhere, and told once.
        problems += [
            _in_database(name, problem)
            for problem in judged
            if problem not in known or not (problem.object or "").startswith("role ")
        ]
    return problems


def emptying_changes(database: str, found: Belongings, changes: Sequence[Change]) -> List[Change]:
    """How the roles that a plan drops are emptied in another database: as it does it in the connected one."""
    reassigned: List[Change] = []
    dropped: List[Change] = []
    ties = ties_by_role(found.ties)
    inherited = {change.role for change in changes if isinstance(change, ReassignOwned)}
    for change in changes:
        if not isinstance(change, (ReassignOwned, DropOwned)) or change.database is not None:
            continue
        mine = ties[change.role.oid]
        if isinstance(change, ReassignOwned):
            if any(tie.how == OWNER and tie.catalog not in NO_OBJECTS for tie in mine):
                reassigned.append(replace(change, database=database))
            continue
        lost = Destroyed.of(destroyed_of(mine, change.role in inherited))
        policies = found.policies.get(change.role.oid, ())
        if mine:
            dropped.append(DropOwned(change.role, change.source, policies, *lost, database=database))
    return [*reassigned, *dropped]


# ---- what stands in the way ------------------------------------------------------------------------------------------


def _unread(name: str, why: str, changes: Sequence[Change], state: State) -> Problem:
    dropped = [change.role for change in changes if isinstance(change, DropRole)]
    tied = {ties.role for ties in state.belongings.ties if ties.database == name}
    names = ", ".join(ref.name for ref in dropped if ref.oid in tied)
    shown = readable(name)
    return Problem(
        object=f"database {shown}",
        message=f"database {shown} holds something of {names} and cannot be looked into: {why}",
        hint="Let this login connect to it, or empty the role there by hand (REASSIGN OWNED, DROP OWNED).",
        code="drop_blocked",
    )


def _heirs_missing(changes: Sequence[Change]) -> List[Problem]:
    return [
        Problem(
            path=f"{change.source}.reassign_owned_to",
            role=change.heir.name,
            object=f"database {change.database}",
            message=f"{change.role.name} owns something in database {change.database}, which is emptied before "
            f"this run creates {change.heir.name}: with all_databases, reassign_owned_to must exist already",
            hint="Create the role in a run of its own first.",
            code="object_missing",
        )
        for change in changes
        if isinstance(change, ReassignOwned) and change.database is not None and FIRST_ASSUMED < change.heir.oid < 0
    ]


def _judged(name: str, changes: Sequence[Change], other: State, powers: Powers) -> List[Problem]:
    """What would make the statements fail in another database, or leave something there, as if it were the connected
    one.
    """
    tied = {ties.role for ties in other.belongings.ties}
    here = [
        replace(change, database=None)
        for change in changes
        if isinstance(change, (ReassignOwned, DropOwned)) and change.database == name
    ]
    drops = [change for change in changes if isinstance(change, DropRole) and change.role.oid in tied]
    # Memberships that a role granted are judged with the connected database.
    problems = drop_problems([*here, *drops], replace(other, memberships=()))
    return [*problems, *drop_authority([*here, *drops], other, powers)]


def _in_database(name: str, problem: Problem) -> Problem:
    if problem.code == "dependent_privileges":
        # What this manifest declares is about the connected database.
        problem = replace(problem, hint=f"Let the owner grant it there to {problem.role} first, or revoke it.")
    elif problem.hint:
        problem = replace(problem, hint=problem.hint.partition("; or declare CREATE")[0])
    return problem if name in problem.message else replace(problem, message=f"in database {name}, {problem.message}")


# ---- shared objects, and memberships ---------------------------------------------------------------------------------


def _shared_first(changes: Sequence[Change], there: Sequence[Change], state: State) -> List[Change]:
    """The plan's own changes, those moved to the first other database that have to come before what empties a role."""
    if not there:
        return list(changes)
    emptied = {change.role.oid for change in there if isinstance(change, (ReassignOwned, DropOwned))}
    swept = {change.role.oid for change in there if isinstance(change, DropOwned)}
    moved = _Moved.of(state, emptied, swept)
    first = next(change.database for change in there if isinstance(change, (ReassignOwned, DropOwned)))
    return [
        replace(change, database=first)
        if isinstance(change, (AddMember, RemoveMember, Grant, Revoke)) and moved.takes(change)
        else change
        for change in changes
    ]


@dataclass(frozen=True)
class _Moved:
    """``groups``: those in which a role granted memberships, which DROP OWNED deletes (PostgreSQL 16). ``objects``:
    shared ones that a role owns or has an entry on.
    """

    groups: AbstractSet[int]
    objects: AbstractSet[Tuple[str, int]]

    @classmethod
    def of(cls, state: State, emptied: AbstractSet[int], swept: AbstractSet[int]) -> _Moved:
        """What roles that are emptied elsewhere, and of these the ``swept`` ones by DROP OWNED, take along."""
        groups = {row.group for row in state.memberships if row.grantor in swept and state.server.version >= 16}
        objects: Set[Tuple[str, int]] = set()
        for database in state.databases.values():
            touched = {oid for entry in database.acl.entries for oid in (entry.grantee, entry.grantor)}
            if database.owner in emptied or touched & swept:
                objects.add(("database", database.oid))
        for group in state.named:
            touched = {oid for entry in group.acl.entries for oid in (entry.grantee, entry.grantor)}
            if group.kind in SHARED_KINDS and (group.owner in emptied or touched & swept):
                objects.update((group.kind, item.oid) for item in group.members.objects())
        return cls(groups, objects)

    def takes(self, change: Union[AddMember, RemoveMember, Grant, Revoke]) -> bool:
        """Whether the change has to come first. What is about a role that the plan creates cannot."""
        if isinstance(change, RemoveMember):
            return change.group.oid in self.groups
        if isinstance(change, AddMember):
            return change.exists and change.group.oid in self.groups
        shared = any((change.target.kind, item.oid) in self.objects for item in change.target.objects)
        return shared and change.grantee.oid >= 0 and (change.run_as is None or change.run_as.oid > 0)
