# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Privileges on objects: in whose name each GRANT and REVOKE runs, and which nobody here may run.

A statement runs as the executor where it has the right, else in the owner's name where the login may set that role.
"""

from __future__ import annotations

from typing import AbstractSet, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union

from ..acls import Acls, groups_of
from ..changes import Change, Grant, Revoke, Target
from ..problems import Problem
from ..records import replace
from ..state import Object, RoleRef, State
from .hints import SUPERUSER, compose, membership, problem
from .powers import Powers

#: A privilege that a role holds: the kind and OID of the object, a column or None, the role, the privilege.
_Held = Tuple[str, int, Optional[str], int, str]


class Rivals:
    """Objects on which one of these roles holds a grant option without being the owner, now or through the plan.

    Whoever inherits such a role beside the owner acts as whichever PostgreSQL finds first (select_best_grantor in
    acl.c): its REVOKE may not reach what the owner gave.
    """

    def __init__(self, acting: AbstractSet[int], state: State, changes: Sequence[Change]) -> None:
        self._acting = acting
        self._state = state
        self._changes = changes
        self._options: Dict[str, Dict[int, Set[Tuple[int, str]]]] = {}

    def _on(self, kind: str) -> Dict[int, Set[Tuple[int, str]]]:
        if kind not in self._options:
            self._options[kind] = {}
            for group in groups_of(self._state, kind):
                held = {
                    (e.grantee, e.privilege) for e in group.acl.entries if e.grantable and e.grantee in self._acting
                }
                if held:
                    self._note(kind, group.members.objects(), held)
            for change in self._changes:
                if isinstance(change, Grant) and change.with_grant_option and change.target.kind == kind:
                    if change.grantee.oid in self._acting:
                        given = {(change.grantee.oid, privilege) for privilege in change.privileges}
                        self._note(kind, change.target.objects, given)
        return self._options[kind]

    def _note(self, kind: str, objects: Iterable[Object], held: Set[Tuple[int, str]]) -> None:
        for item in objects:
            self._options[kind].setdefault(item.oid, set()).update(held)

    def of(self, change: Union[Grant, Revoke]) -> bool:
        """Whether there is one for this change."""
        target = change.target
        return any(
            role != target.owner.oid and privilege in change.privileges
            for item in target.objects
            for role, privilege in self._on(target.kind).get(item.oid, ())
        )


def authorize_privileges(
    changes: Sequence[Change], state: State, powers: Powers, *, given: Sequence[Change] = ()
) -> Tuple[List[Change], List[Problem]]:
    """The changes, each with the role in whose name it runs, and a problem for each one that nobody here may make.

    ``given``: what was granted since the ACLs in ``state`` were read.
    """
    executor = state.server.current_user
    if powers.is_superuser(executor):
        return list(changes), []
    acls = Acls(state)
    lost = _lost(changes)
    rivals = Rivals(powers.acts_with(executor), state, [*changes, *given])
    result: List[Change] = []
    problems: List[Problem] = []
    for change in changes:
        if not isinstance(change, (Grant, Revoke)) or change.run_as is not None:
            result.append(change)
            continue
        owner = change.target.owner
        owns = powers.owns(executor, owner.oid)
        unsure = owns and executor != owner.oid and rivals.of(change)
        if unsure and not powers.can_become(owner.oid):
            result.append(change)
            if isinstance(change, Revoke):  # whoever something is given by, it is held
                problems.append(_rival(change, state.ref(executor)))
        elif (owns and not unsure) or (not owns and _may_pass_on(change, powers.acts_with(executor), acls, lost)):
            result.append(change)
            if not powers.uses_schema(executor, change.target.schema):
                problems.append(no_usage(change, state.ref(executor)))
        elif powers.can_become(owner.oid):
            if not powers.uses_schema(owner.oid, change.target.schema):
                lending = powers.lending(owner, str(change.target.schema))
                if lending is None:
                    problems.append(no_usage(change, owner))
                else:
                    result.append(lending)
            result.append(replace(change, run_as=owner))
        else:
            result.append(change)
            holds = _may_pass_on(change, powers.acts_with(executor), acls, frozenset())
            problems.append(_not_owner(change, state, powers, loses=holds))
    return result, problems


def _lost(changes: Iterable[Change]) -> AbstractSet[_Held]:
    """What roles hold and the plan revokes, be it only the grant option: what they gave would have to go along."""
    return frozenset(
        (change.target.kind, item.oid, column, change.grantee.oid, privilege)
        for change in changes
        if isinstance(change, Revoke)
        for item in change.target.objects
        for column in (change.target.columns or (None,))
        for privilege in change.privileges
    )


def _may_pass_on(change: Union[Grant, Revoke], acting: AbstractSet[int], acls: Acls, lost: AbstractSet[_Held]) -> bool:
    """Whether the executor holds the grant option: for a GRANT any that it keeps, for a REVOKE as the grantor of the
    entry.
    """
    if isinstance(change, Revoke):
        return change.grantor.oid in acting and change.grantor.oid != change.target.owner.oid
    return any(all(_grantable(change.target, role, p, acls, lost) for p in change.privileges) for role in acting)


def _grantable(target: Target, role: int, privilege: str, acls: Acls, lost: AbstractSet[_Held]) -> bool:
    """Whether the role may pass the privilege on: on every object of the target, or on each of its columns."""

    def holds(oid: int, column: Optional[str]) -> bool:
        # A REVOKE on a relation takes its columns along.
        if any((target.kind, oid, place, role, privilege) in lost for place in (column, None)):
            return False
        entries = acls.of(target.kind, oid, column).of(role).get(privilege, ())
        return any(entry.grantable for entry in entries)

    return all(
        holds(item.oid, None) or (bool(target.columns) and all(holds(item.oid, c) for c in target.columns))
        for item in target.objects
    )


def _not_owner(change: Union[Grant, Revoke], state: State, powers: Powers, *, loses: bool) -> Problem:
    """``loses``: the executor may, but only until the plan takes its grant option away."""
    executor = state.ref(state.server.current_user)
    verb = "grant" if isinstance(change, Grant) else "revoke"
    label, owner = label_of(change), change.target.owner
    words = ", ".join(sorted(change.privileges))
    hint = membership(executor, owner, "set", state, powers)
    if hint == SUPERUSER:
        hint = f"Run as {owner.name} or a superuser."
    elif owner.oid > 0:
        hint = f"Run as {owner.name} or a superuser, or: {hint}"
    return problem(
        change.grantee,
        label,
        f"{executor.name} may not {verb} {words} on {label}, which belongs to {owner.name}"
        + (": its grant option is one that the plan revokes" if loses else ""),
        hint,
    )


def _rival(change: Revoke, executor: RoleRef) -> Problem:
    owner = change.target.owner
    return problem(
        change.grantee,
        label_of(change),
        f"{executor.name} inherits {owner.name}, who owns {label_of(change)}, and also a role that holds the grant "
        f"option there: its REVOKE may not act as {owner.name}",
        f"Let it become the owner: {compose('GRANT {} TO {} WITH SET TRUE', owner, executor)}",
    )


def no_usage(change: Union[Grant, Revoke], executor: RoleRef) -> Problem:
    """A problem: the role in whose name the statement would run cannot name the object."""
    schema = str(change.target.schema)
    return problem(
        change.grantee,
        label_of(change),
        f"{executor.name} may not use schema {schema}, so it cannot name {label_of(change)}",
        compose("GRANT USAGE ON SCHEMA {} TO {}", schema, executor),
    )


def label_of(change: Union[Grant, Revoke]) -> str:
    """What a change is on, in a few words."""
    target = change.target
    first = target.objects[0].label
    label = f"{target.schema}.{first}" if target.schema else first
    more = len(target.objects) - 1
    columns = f" ({', '.join(target.columns)})" if target.columns else ""
    return f"{target.kind.replace('_', ' ')} {label}{columns}" + (f" and {more} more" if more else "")
