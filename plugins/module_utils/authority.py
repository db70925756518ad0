# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""May this executor run the plan? Checked before the first statement, on the state as the plan will have made it.

So far: GRANT and REVOKE on objects. A statement runs as the executor where it has the right, else in the owner's name
where the login may set that role.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, FrozenSet, Iterable, List, Optional, Sequence, Set, Tuple, Union

from .changes import AddMember, Change, Grant, LendUsage, Revoke, Target
from .diff.privileges import shared_groups
from .privileges import PUBLIC_OID
from .problems import Problem
from .state import Acl, Membership, Object, RoleRef, State

#: The implicit group of whoever owns the connected database (PostgreSQL documentation, "Predefined Roles").
DATABASE_OWNER = "pg_database_owner"

#: Predefined roles that have USAGE on every schema (PostgreSQL documentation, "Predefined Roles").
USE_EVERY_SCHEMA = frozenset({"pg_read_all_data", "pg_write_all_data"})


class Powers:
    """Who may act as whom, with the memberships that the plan adds and before those that it removes."""

    def __init__(self, state: State, changes: Sequence[Change]) -> None:
        self._state = state
        self._usage = {
            (item.name, change.grantee.oid)
            for change in changes
            if isinstance(change, Grant) and change.target.kind == "schema" and "USAGE" in change.privileges
            for item in change.target.objects
        }
        added = [
            Membership(
                change.group.oid,
                change.member.oid,
                state.server.current_user,
                bool(change.options.get("admin")),
                change.options.get("inherit"),
                change.options.get("set"),
            )
            for change in changes
            if isinstance(change, AddMember)
        ]
        self._groups: Dict[int, List[Membership]] = {}
        for row in (*state.memberships, *added):
            self._groups.setdefault(row.member, []).append(row)
        self._database_owner = state.role_oid(DATABASE_OWNER)
        self._known: Dict[Tuple[int, bool], FrozenSet[int]] = {}

    def acts_with(self, role: int) -> FrozenSet[int]:
        """The roles whose privileges this role has by itself: it inherits them."""
        return self._closure(role, inheriting=True)

    def may_set(self, role: int) -> FrozenSet[int]:
        """The roles that a session of this login may set. A superuser may set any."""
        return self._closure(role, inheriting=False)

    def _closure(self, role: int, *, inheriting: bool) -> FrozenSet[int]:
        key = (role, inheriting)
        if key not in self._known:
            found = {role}
            pending = [role]
            while pending:
                member = pending.pop()
                for group in self._steps(member, inheriting):
                    if group not in found:
                        found.add(group)
                        pending.append(group)
            self._known[key] = frozenset(found)
        return self._known[key]

    def _steps(self, member: int, inheriting: bool) -> Iterable[int]:
        database = self._state.databases.get(self._state.server.database_oid)
        if database is not None and database.owner == member and self._database_owner is not None:
            yield self._database_owner
        for row in self._groups.get(member, ()):
            if self._state.server.version >= 16:
                if row.inherit if inheriting else row.set:
                    yield row.group
            elif not inheriting or self._state.roles[member].inherit:
                yield row.group

    def is_superuser(self, role: int) -> bool:
        """Whether the role is a superuser, who acts as the owner of everything."""
        found = self._state.roles.get(role)
        return found is not None and found.superuser

    def owns(self, role: int, owner: int) -> bool:
        """Whether the role acts as this owner by itself."""
        return self.is_superuser(role) or owner in self.acts_with(role)

    def can_become(self, role: int) -> bool:
        """Whether SET ROLE to this role works: what counts is the login, whatever role it has set."""
        login = self._state.server.session_user
        return self.is_superuser(login) or role in self.may_set(login)

    def lending(self, role: RoleRef, name: str) -> Optional[LendUsage]:
        """How to let the role use the schema for a moment; None where nobody here may."""
        schema = self._state.schema_named(name)
        if schema is None:
            return None
        if self.owns(self._state.server.current_user, schema.owner):
            return LendUsage(role, name)
        if self.can_become(schema.owner):
            return LendUsage(role, name, self._state.ref(schema.owner))
        return None

    def uses_schema(self, role: int, name: Optional[str]) -> bool:
        """Whether the role has USAGE on a schema, so that it can name what lies in it."""
        schema = self._state.schema_named(name) if name is not None else None
        # An owner may have taken its own USAGE away.
        if schema is None or self.is_superuser(role):
            return True
        acting = (*self.acts_with(role), PUBLIC_OID)
        if any(self._state.ref(other).name in USE_EVERY_SCHEMA for other in acting):
            return True
        return any("USAGE" in schema.acl.of(other) or (name, other) in self._usage for other in acting)


class Acls:
    """The ACLs that a change's objects and columns have. Groups are decoded when somebody asks."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: Dict[Tuple[str, int, Optional[str]], Acl] = {}

    def _of(self, kind: str, oid: int, column: Optional[str]) -> Acl:
        if not self._known:
            for group in shared_groups(self._state) + list(self._state.groups):
                self._known.update(
                    ((group.kind, item.oid, group.column), group.acl) for item in group.members.objects()
                )
        return self._known.get((kind, oid, column), Acl())

    def grantable(self, target: Target, role: int, privilege: str) -> bool:
        """Whether the role may pass the privilege on: on every object of the target, or on each of its columns."""

        def holds(oid: int, column: Optional[str]) -> bool:
            entries = self._of(target.kind, oid, column).of(role).get(privilege, ())
            return any(entry.grantable for entry in entries)

        return all(
            holds(item.oid, None) or (bool(target.columns) and all(holds(item.oid, c) for c in target.columns))
            for item in target.objects
        )


class Rivals:
    """Objects on which one of these roles holds a grant option without being the owner, now or through the plan.

    Whoever inherits such a role beside the owner acts as whichever PostgreSQL finds first (select_best_grantor in
    acl.c): its REVOKE may not reach what the owner gave.
    """

    def __init__(self, acting: FrozenSet[int], state: State, changes: Sequence[Change]) -> None:
        self._options: Dict[Tuple[str, int], Set[Tuple[int, str]]] = {}
        for group in shared_groups(state) + list(state.groups):
            held = {(e.grantee, e.privilege) for e in group.acl.entries if e.grantable and e.grantee in acting}
            if held:
                self._note(group.kind, group.members.objects(), held)
        for change in changes:
            if isinstance(change, Grant) and change.with_grant_option and change.grantee.oid in acting:
                given = {(change.grantee.oid, privilege) for privilege in change.privileges}
                self._note(change.target.kind, change.target.objects, given)

    def _note(self, kind: str, objects: Iterable[Object], held: Set[Tuple[int, str]]) -> None:
        for item in objects:
            self._options.setdefault((kind, item.oid), set()).update(held)

    def of(self, change: Union[Grant, Revoke]) -> bool:
        """Whether there is one for this change."""
        target = change.target
        return any(
            role != target.owner.oid and privilege in change.privileges
            for item in target.objects
            for role, privilege in self._options.get((target.kind, item.oid), ())
        )


def authorize(changes: Sequence[Change], state: State, powers: Powers) -> Tuple[List[Change], List[Problem]]:
    """The changes, each with the role in whose name it runs, and a problem for each one that nobody here may make."""
    executor = state.server.current_user
    if powers.is_superuser(executor):
        return list(changes), []
    acls = Acls(state)
    rivals = Rivals(powers.acts_with(executor), state, changes)
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
            if isinstance(change, Grant):
                result.append(change)  # whoever it is given by, it is held
            else:
                problems.append(_rival(change, state.ref(executor)))
        elif (owns and not unsure) or (not owns and _may_pass_on(change, powers.acts_with(executor), acls)):
            if powers.uses_schema(executor, change.target.schema):
                result.append(change)
            else:
                problems.append(no_usage(change, state.ref(executor)))
        elif powers.can_become(owner.oid):
            if not powers.uses_schema(owner.oid, change.target.schema):
                lending = powers.lending(owner, str(change.target.schema))
                if lending is None:
                    problems.append(no_usage(change, owner))
                    continue
                result.append(lending)
            result.append(replace(change, run_as=owner))
        else:
            problems.append(_problem(change, state.ref(executor)))
    return result, problems


def _may_pass_on(change: Union[Grant, Revoke], acting: FrozenSet[int], acls: Acls) -> bool:
    """Whether the executor holds the grant option: for a GRANT any, for a REVOKE as the grantor of the entry."""
    if isinstance(change, Revoke):
        return change.grantor.oid in acting and change.grantor.oid != change.target.owner.oid
    return any(all(acls.grantable(change.target, role, p) for p in change.privileges) for role in acting)


def _problem(change: Union[Grant, Revoke], executor: RoleRef) -> Problem:
    verb = "grant" if isinstance(change, Grant) else "revoke"
    label = label_of(change)
    owner = change.target.owner.name
    words = ", ".join(sorted(change.privileges))
    return Problem(
        role=change.grantee.name,
        object=label,
        message=f"{executor.name} may not {verb} {words} on {label}, which belongs to {owner}",
        hint=f'Run as {owner} or a superuser, or: GRANT "{owner}" TO "{executor.name}"',
        code="insufficient_privilege",
    )


def _rival(change: Revoke, executor: RoleRef) -> Problem:
    owner = change.target.owner.name
    return Problem(
        role=change.grantee.name,
        object=label_of(change),
        message=f"{executor.name} inherits {owner}, who owns {label_of(change)}, and also a role that holds the grant "
        f"option there: its REVOKE may not act as {owner}",
        hint=f'Let it become the owner: GRANT "{owner}" TO "{executor.name}" WITH SET TRUE',
        code="insufficient_privilege",
    )


def no_usage(change: Union[Grant, Revoke], executor: RoleRef) -> Problem:
    """A problem: the role in whose name the statement would run cannot name the object."""
    schema = change.target.schema
    return Problem(
        role=change.grantee.name,
        object=label_of(change),
        message=f"{executor.name} may not use schema {schema}, so it cannot name {label_of(change)}",
        hint=f'GRANT USAGE ON SCHEMA "{schema}" TO "{executor.name}"',
        code="insufficient_privilege",
    )


def label_of(change: Union[Grant, Revoke]) -> str:
    """What a change is on, in a few words."""
    target = change.target
    first = target.objects[0].label
    label = f"{target.schema}.{first}" if target.schema else first
    more = len(target.objects) - 1
    columns = f" ({', '.join(target.columns)})" if target.columns else ""
    return f"{target.kind.replace('_', ' ')} {label}{columns}" + (f" and {more} more" if more else "")
