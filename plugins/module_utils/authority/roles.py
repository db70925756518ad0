# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Roles themselves: who may create and alter them, and what of them (user.c and check_object_ownership in PostgreSQL).

Until PostgreSQL 15 CREATEROLE is enough for every role that is neither a superuser nor for replication. From 16 on it
takes CREATEROLE and ADMIN OPTION on the role, and of some attributes the executor gives only what it has.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Union

from ..changes import AlterRole, Change, CommentRole, CreateRole, SetConfig, SetPassword, Value
from ..problems import Problem
from ..state import RoleRef, State
from . import hints
from .powers import Powers

#: Attributes that only a superuser gives and takes, before PostgreSQL 16.
_SUPERUSERS_ONLY = ("superuser", "replication", "bypassrls")

#: Attributes that from PostgreSQL 16 on the executor gives and takes only where it has them.
_OWN_ONLY = ("createdb", "replication", "bypassrls")


def role_problems(
    changes: Sequence[Change], state: State, powers: Powers, *, fingerprints_in_comments: bool = False
) -> List[Problem]:
    """What of the changes of roles the executor may not do.

    ``state`` and ``powers`` are those with the created roles and before the plan's memberships, which come later.
    ``fingerprints_in_comments``: with each password its role's comment is written.
    """
    if powers.is_superuser(state.server.current_user):
        return []
    judge = _Judge(state, powers, fingerprints_in_comments)
    altered: Dict[RoleRef, List[AlterRole]] = {}
    for change in changes:
        if isinstance(change, AlterRole):
            # What the manifest names and what it leaves out is one statement.
            altered.setdefault(change.role, []).append(change)
    problems: List[Problem] = []
    for change in changes:
        if isinstance(change, CreateRole):
            problems.extend(judge.create(change))
        elif isinstance(change, AlterRole) and change.role in altered:
            problems.extend(judge.alter(altered.pop(change.role)))
        elif isinstance(change, (CommentRole, SetConfig, SetPassword)) and change.role.oid > 0:
            # Whoever creates a role may do these with it.
            problems.extend(judge.other(change))
    return problems


class _Judge:
    """The executor's rights over roles. It names what is missing only once for each role."""

    def __init__(self, state: State, powers: Powers, fingerprints_in_comments: bool) -> None:
        self._fingerprints_in_comments = fingerprints_in_comments
        self._state = state
        self._powers = powers
        self._version = state.server.version
        self._executor = state.ref(state.server.current_user)
        self._told: Set[int] = set()

    def _has(self, attribute: str) -> bool:
        return self._powers.has(self._executor.oid, attribute)

    def create(self, change: CreateRole) -> Iterable[Problem]:
        """CREATE ROLE: what is not given needs no right to take it away."""
        given = [name for name, value in change.attributes.items() if value is True]
        refused = list(self._attributes(change.role, given, change.source))
        yield from refused
        if not self._has("createrole") and not any(p.hint == hints.SUPERUSER for p in refused):
            yield self._createrole(change.role, "create", change.source)

    def alter(self, changes: Sequence[AlterRole]) -> Iterable[Problem]:
        """ALTER ROLE with attributes: what is taken away counts like what is given."""
        ref, source = changes[0].role, changes[0].source
        before: Dict[str, Value] = {}
        for change in changes:
            before.update(change.before)
        refused = list(self._attributes(ref, [name for change in changes for name in change.attributes], source))
        yield from refused
        if not any(p.hint == hints.SUPERUSER for p in refused):
            yield from self._over(ref, "alter", source, before)

    def other(self, change: Union[CommentRole, SetConfig, SetPassword]) -> Iterable[Problem]:
        """COMMENT ON ROLE, ALTER ROLE ... SET and PASSWORD."""
        ref = change.role
        if isinstance(change, CommentRole):
            yield from self._over(ref, "comment on", change.source, replication=True)
            return
        before_16 = self._version < 16
        if isinstance(change, SetConfig):
            if ref.oid != self._executor.oid:
                yield from self._over(ref, "change settings of", change.source, replication=True)
        elif ref.oid != self._executor.oid or (before_16 and self._has("replication")):
            # Before PostgreSQL 16 not even its own, where the role is for replication.
            yield from self._over(ref, "set the password of", change.source)
        elif self._fingerprints_in_comments and not (before_16 and self._has("createrole")):
            message = f"{ref.name} may set its own password and not its comment, where the fingerprint would be kept"
            yield hints.problem(ref, f"role {ref.name}", message, "Use fingerprint_store: table.", change.source)

    def _attributes(self, ref: RoleRef, names: Iterable[str], source: str) -> Iterable[Problem]:
        """Attributes that the executor may not give or take, before it comes to the role at all."""
        for name in names:
            word = name.upper()
            if name == "superuser" or (self._version < 16 and name in _SUPERUSERS_ONLY):
                message = f"only a superuser may change {word} of role {ref.name}, and {self._executor.name} is none"
                yield hints.problem(ref, f"role {ref.name}", message, hints.SUPERUSER, source)
            elif self._version >= 16 and name in _OWN_ONLY and not self._has(name):
                message = (
                    f"{self._executor.name} may not change {word} of role {ref.name}, because it lacks {word} itself"
                )
                yield hints.problem(ref, f"role {ref.name}", message, hints.attribute(self._executor, name), source)

    def _over(
        self,
        ref: RoleRef,
        verb: str,
        source: str,
        before: Optional[Mapping[str, Value]] = None,
        *,
        replication: bool = False,
    ) -> Iterable[Problem]:
        """What the executor lacks to alter a role that exists. ``replication``: such a role is like any other there."""
        role = self._state.roles[ref.oid]
        before = before or {}
        protected = "superuser" if before.get("superuser", role.superuser) else None
        if self._version < 16 and not replication and before.get("replication", role.replication):
            protected = protected or "replication"
        if protected:
            kind = "a superuser" if protected == "superuser" else "for replication"
            message = f"{self._executor.name} may not {verb} role {ref.name}, which is {kind}: only a superuser may"
            yield hints.problem(ref, f"role {ref.name}", message, hints.SUPERUSER, source)
            return
        if ref.oid in self._told:
            return
        self._told.add(ref.oid)
        if not self._has("createrole"):
            yield self._createrole(ref, verb, source)
        if self._version >= 16 and not self._powers.administers(self._executor.oid, ref.oid):
            message = f"{self._executor.name} may not {verb} role {ref.name}: it has no ADMIN OPTION on it"
            hint = hints.admin_option(self._executor, ref, self._version, self._powers)
            if ref.oid == self._executor.oid:
                hint = "No role has it on itself: run as a superuser, or as another role that has it."
            yield hints.problem(ref, f"role {ref.name}", message, hint, source)

    def _createrole(self, ref: RoleRef, verb: str, source: str) -> Problem:
        message = f"{self._executor.name} may not {verb} role {ref.name}: it has no CREATEROLE"
        hint = hints.attribute(self._executor, "createrole")
        login = self._state.server.session_user
        able = [self._state.ref(oid).name for oid in self._powers.may_set(login) if self._powers.has(oid, "createrole")]
        if able:
            hint += f"; or session_role: {min(able)}, which has it"
        return hints.problem(ref, f"role {ref.name}", message, hint, source)
