# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Who may act as whom, in the state as the plan will have made it.

The terms are those of PostgreSQL's acl.c: has_privs_of_role (``owns``), member_can_set_role (``may_set``),
is_admin_of_role (``administers``) and select_best_admin (``best_admin``).
"""

from __future__ import annotations

from typing import AbstractSet, Dict, Iterable, List, Optional, Set, Tuple

from ..changes import AddMember, Change, DropRole, Grant, LendUsage, RemoveMember
from ..privileges import PUBLIC_OID
from ..records import replace
from ..state import FIRST_ASSUMED, Membership, RoleRef, State

#: The implicit group of whoever owns the connected database (PostgreSQL documentation, "Predefined Roles").
DATABASE_OWNER = "pg_database_owner"

#: Predefined roles that have USAGE on every schema (PostgreSQL documentation, "Predefined Roles").
USE_EVERY_SCHEMA = frozenset({"pg_read_all_data", "pg_write_all_data"})

#: Group, member and grantor; before PostgreSQL 16 a membership is one row, whoever granted it.
_Key = Tuple[int, int, Optional[int]]


class Powers:
    """Who may act as whom. ``changes`` are taken as made, in their order: memberships, and USAGE on schemas.

    ``first`` is the state before the plan: what it gives the executor's own attributes no statement can build on.
    """

    def __init__(
        self,
        state: State,
        changes: Iterable[Change] = (),
        *,
        first: Optional[State] = None,
        before: Optional[Powers] = None,
    ) -> None:
        self._state = state
        self._first: State = before._first if before else first or state
        self._rows: Dict[_Key, Membership] = (
            dict(before._rows) if before else {self._key(row): row for row in state.memberships}
        )
        self._usage: Set[Tuple[str, int]] = set(before._usage) if before else set()
        self._database_owner = state.role_oid(DATABASE_OWNER)
        self._start()
        for change in changes:
            self._note(change)
        self._start()

    def after(self, changes: Iterable[Change], state: Optional[State] = None) -> Powers:
        """The powers once these changes are made too, in a ``state`` that has moved on."""
        return Powers(state or self._state, changes, before=self)

    def _start(self) -> None:
        self._groups: Dict[int, List[Membership]] = {}
        for row in self._rows.values():
            self._groups.setdefault(row.member, []).append(row)
        self._known: Dict[Tuple[int, str], Dict[int, int]] = {}

    def _key(self, row: Membership) -> _Key:
        return row.group, row.member, row.grantor if self._state.server.version >= 16 else None

    def _note(self, change: Change) -> None:
        if isinstance(change, AddMember):
            row = self._added(change)
            self._rows[self._key(row)] = row
        elif isinstance(change, RemoveMember):
            key = (change.group.oid, change.member.oid, change.grantor.oid if change.grantor else None)
            if key in self._rows and change.option is None:
                del self._rows[key]
            elif key in self._rows:
                self._rows[key] = self._rows[key].with_options({str(change.option): False})
        elif isinstance(change, DropRole):
            gone = change.role.oid
            self._rows = {key: row for key, row in self._rows.items() if gone not in (row.group, row.member)}
        elif isinstance(change, Grant) and change.target.kind == "schema" and "USAGE" in change.privileges:
            self._usage.update((item.name, change.grantee.oid) for item in change.target.objects)

    def _added(self, change: AddMember) -> Membership:
        grantor = change.grantor.oid if change.grantor else self.grantor_of(change.group.oid)
        row = Membership(change.group.oid, change.member.oid, grantor, False)
        if self._state.server.version >= 16:
            # What the statement does not say: INHERIT as the member's attribute, and SET.
            row = replace(row, inherit=self._state.roles[change.member.oid].inherit, set=True)
        return self._rows.get(self._key(row), row).with_options(change.options)

    def grantor_of(self, group: int) -> int:
        """Who a membership that the executor grants is recorded for."""
        executor = self._state.server.current_user
        best = self.best_admin(executor, group) if self._state.server.version >= 16 else None
        return executor if best is None else best

    # ---- closures ----------------------------------------------------------------------------------------------------

    def acts_with(self, role: int) -> AbstractSet[int]:
        """The roles whose privileges this role has by itself: it inherits them."""
        return self._closure(role, "inherit").keys()

    def may_set(self, role: int) -> AbstractSet[int]:
        """The roles that a session of this login may set. A superuser may set any."""
        return self._closure(role, "set").keys()

    def groups_of(self, role: int) -> AbstractSet[int]:
        """Every role that this one is a member of, by whatever way, and itself."""
        return self._closure(role, "member").keys()

    def path(self, role: int, group: int, way: str) -> Tuple[int, ...]:
        """The roles on the shortest way from a role to a group that it reaches, the group included.

        ``way``: ``inherit``, ``set`` or ``member``.
        """
        through = self._closure(role, way)
        found: List[int] = []
        while group != role:
            found.append(group)
            group = through[group]
        return tuple(reversed(found))

    def paths(self, role: int, way: str) -> Dict[int, Tuple[int, ...]]:
        """The shortest way to every group that a role reaches, as ``path`` has it; to itself an empty one."""
        found: Dict[int, Tuple[int, ...]] = {role: ()}
        for group, through in self._closure(role, way).items():
            if group != role:
                found[group] = (*found[through], group)
        return found

    def nearest(self, role: int, way: str) -> Set[int]:
        """The groups that a role reaches in one step."""
        return set(self._steps(role, way)) - {role}

    def _closure(self, role: int, way: str) -> Dict[int, int]:
        """In the order of their distance, each with the one through which it is reached."""
        key = (role, way)
        if key not in self._known:
            found = {role: role}
            nearest = [role]
            while nearest:
                steps: Dict[int, int] = {}
                for member in nearest:
                    for group in self._steps(member, way):
                        steps.setdefault(group, member)
                steps = {group: member for group, member in steps.items() if group not in found}
                nearest = list(steps)
                found.update(steps)
            self._known[key] = found
        return self._known[key]

    def _steps(self, member: int, way: str) -> Iterable[int]:
        database = self._state.databases.get(self._state.server.database_oid)
        if database is not None and database.owner == member and self._database_owner is not None:
            yield self._database_owner
        for row in self._groups.get(member, ()):
            if way == "member":
                yield row.group
            elif self._state.server.version >= 16:
                if row.inherit if way == "inherit" else row.set:
                    yield row.group
            elif way == "set" or self._state.roles[member].inherit:
                yield row.group

    # ---- questions ---------------------------------------------------------------------------------------------------

    def is_superuser(self, role: int) -> bool:
        """Whether the role is a superuser, who acts as the owner of everything."""
        return self.has(role, "superuser")

    def has(self, role: int, attribute: str) -> bool:
        """Whether the role has an attribute; the executor only what it had from the start."""
        states = [self._state, self._first] if role in self._state.executors else [self._state]
        return all(role in state.roles and bool(getattr(state.roles[role], attribute)) for state in states)

    def owns(self, role: int, owner: int) -> bool:
        """Whether the role acts as this owner by itself."""
        return self.is_superuser(role) or owner in self.acts_with(role)

    def can_set(self, role: int, other: int) -> bool:
        """Whether the role could become the other one."""
        return self.is_superuser(role) or other in self.may_set(role)

    def can_become(self, role: int) -> bool:
        """Whether SET ROLE to this role works: what counts is the login, whatever role it has set."""
        return self.can_set(self._state.server.session_user, role)

    def administers(self, role: int, group: int) -> bool:
        """Whether the role has ADMIN OPTION on the group, itself or through any membership, inherited or not."""
        if self.is_superuser(role):
            return True
        server = self._state.server
        if role == group:
            # Until PostgreSQL 14 a session may administer the role that it logged in as.
            return server.version < 15 and role == server.session_user == server.current_user
        return any(self._is_admin(member, group) for member in self.groups_of(role))

    def best_admin(self, role: int, group: int) -> Optional[int]:
        """The nearest role with ADMIN OPTION on the group whose privileges the role has: itself first."""
        if role == group:
            return None
        return next((member for member in self.acts_with(role) if self._is_admin(member, group)), None)

    def is_member(self, role: int, group: int) -> bool:
        """Whether the role is itself a member of the group, whatever the options."""
        return any(row.group == group for row in self._groups.get(role, ()))

    def administered(self, member: int) -> List[int]:
        """The groups that this very role has ADMIN OPTION on."""
        return sorted({row.group for row in self._groups.get(member, ()) if row.admin})

    def _is_admin(self, member: int, group: int) -> bool:
        return any(row.group == group and row.admin for row in self._groups.get(member, ()))

    def creates_schemas(self, role: int) -> bool:
        """Whether the role has CREATE on the connected database, before the plan's grants."""
        database = self._state.databases.get(self._state.server.database_oid)
        if database is None or self.is_superuser(role):
            return True
        return any("CREATE" in database.acl.of(other) for other in (*self.acts_with(role), PUBLIC_OID))

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


def is_assumed(role: int) -> bool:
    """Whether the role stands in for one that another run makes: nobody knows yet who may do what with it."""
    return role <= FIRST_ASSUMED
