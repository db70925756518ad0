# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Roles that go: who may hand over what they own, empty them, drop them and end their sessions.

REASSIGN OWNED takes the privileges of both roles, and for everything but relations and types what ALTER ... OWNER TO
asks for beside: SET on the heir (until PostgreSQL 15 a membership), CREATE where the object lies. DROP OWNED takes the
role's privileges, and revokes only what its executor could revoke. DROP ROLE takes CREATEROLE, and from 16 on ADMIN
OPTION (user.c, pg_shdepend.c and alter.c in PostgreSQL; measured on 14 to 18).
"""

from __future__ import annotations

from typing import AbstractSet, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union

from ..belongings import OWNER, listed
from ..changes import Change, DropOwned, DropRole, Emptied, Grant, ReassignOwned, RemoveMember, Revoke
from ..drops import left_by_revokes, never_dropped
from ..privileges import PUBLIC_OID
from ..problems import Problem
from ..state import Acl, RoleRef, State
from . import hints
from .powers import Powers, is_assumed

#: Whoever has its privileges may end the sessions of roles that are no superusers.
SIGNAL = "pg_signal_backend"

#: What REASSIGN OWNED hands over without asking for more than both roles' privileges.
_UNASKED = ("pg_class", "pg_type", "pg_user_mapping", "pg_default_acl")


def drop_authority(changes: Sequence[Change], state: State, powers: Powers) -> List[Problem]:
    """All that the executor lacks for the plan's drops.

    ``state`` and ``powers`` are those with the plan's roles, schemas and memberships; its late removals of memberships
    are taken as made here, because they run before.
    """
    if powers.is_superuser(state.server.current_user):
        return []
    if not any(isinstance(change, DropRole) for change in changes):
        return []
    early = [change for change in changes if not (isinstance(change, RemoveMember) and not change.early)]
    late = [change for change in changes if isinstance(change, RemoveMember) and not change.early]
    judge = _Judge([*early, *late], state, powers.after(late))
    problems: List[Problem] = []
    for change in changes:
        if isinstance(change, (ReassignOwned, DropOwned, DropRole)) and never_dropped(change.role, state):
            continue
        if isinstance(change, ReassignOwned):
            problems.extend(judge.reassign(change))
        elif isinstance(change, DropOwned):
            problems.extend(judge.empty(change))
        elif isinstance(change, DropRole):
            problems.extend(judge.drop(change))
    return list(dict.fromkeys(problems))


class _Judge:
    """The executor's rights over roles that go."""

    def __init__(self, changes: Sequence[Change], state: State, powers: Powers) -> None:
        self._changes = changes
        self._state = state
        self._powers = powers
        self._executor = state.ref(state.server.current_user)
        self._version = state.server.version

    # ---- REASSIGN OWNED ----------------------------------------------------------------------------------------------

    def reassign(self, change: ReassignOwned) -> Iterable[Problem]:
        """REASSIGN OWNED, in whatever database; what else single objects ask for is only known of the connected one."""
        role, heir, executor = change.role, change.heir, self._executor
        for other in (role, heir):
            if not self._powers.owns(executor.oid, other.oid) and not is_assumed(other.oid):
                message = (
                    f"{executor.name} may not reassign what {role.name} owns to {heir.name}: "
                    f"it does not have the privileges of {other.name}"
                )
                yield self._problem(change, other, message, self._membership(other, "inherit"))
        if change.database is None and not is_assumed(heir.oid):
            yield from self._objects(change)

    def _objects(self, change: ReassignOwned) -> Iterable[Problem]:
        role, heir, executor = change.role, change.heir, self._executor
        here = self._state.server.database
        owned = {
            tie.catalog: tie
            for tie in self._state.belongings.ties
            if tie.role == role.oid and tie.how == OWNER and tie.database in (None, here)
        }
        asked = [tie for catalog, tie in owned.items() if catalog not in _UNASKED]
        if asked and not self._powers.can_set(executor.oid, heir.oid):
            labels = [label for tie in asked for label in tie.labels]
            message = (
                f"{executor.name} may not hand what {role.name} owns to {heir.name}, which it may not become: "
                f"{listed(labels, sum(tie.count for tie in asked))}"
            )
            yield self._problem(change, heir, message, self._membership(heir, "set"))
        for oid in sorted(self._state.belongings.placed.get(role.oid, ())):
            schema = self._state.schemas.get(oid)
            if schema is not None and not self._creates(heir, "schema", schema.name, schema.acl):
                message = f"{heir.name} lacks CREATE on schema {schema.name}, where {role.name} owns something"
                hint = self._create_hint(heir, schema.name, schema.acl)
                yield self._problem(change, heir, message, hint, f"schema {schema.name}")
        database = self._state.databases.get(self._state.server.database_oid)
        creators: Dict[RoleRef, Set[str]] = {}
        if "pg_namespace" in owned:
            creators.setdefault(executor, set()).add("schemas")
        if "pg_subscription" in owned and self._version >= 16:
            creators.setdefault(executor, set()).add("subscriptions")
        if "pg_publication" in owned:
            creators.setdefault(heir, set()).add("publications")
        for creator, what in creators.items():
            if database is not None and not self._creates(creator, "database", database.name, database.acl):
                message = (
                    f"{creator.name} lacks CREATE on database {database.name}, and {role.name} owns "
                    f"{' and '.join(sorted(what))}"
                )
                hint = hints.compose("GRANT CREATE ON DATABASE {} TO {}", database.name, creator)
                yield self._problem(change, creator, message, hint)
        for wrapper in self._state.belongings.wrappers:
            if wrapper.role == role.oid and not self._powers.is_superuser(heir.oid):
                acting = {*self._powers.acts_with(heir.oid), PUBLIC_OID}
                usable = bool(acting & wrapper.users)
                if not usable and not self._granted(acting, "foreign_data_wrapper", wrapper.name, "USAGE"):
                    message = (
                        f"{heir.name} lacks USAGE on foreign-data wrapper {wrapper.name}, and {role.name} owns a "
                        "server of it"
                    )
                    hint = hints.compose("GRANT USAGE ON FOREIGN DATA WRAPPER {} TO {}", wrapper.name, heir)
                    yield self._problem(change, heir, message, hint, f"foreign_data_wrapper {wrapper.name}")
        special = [item.label for item in self._state.belongings.special if item.role == role.oid]
        special += [
            label
            for catalog in ("pg_event_trigger", "pg_foreign_data_wrapper")
            for label in (owned[catalog].labels if catalog in owned else ())
        ]
        if self._powers.is_superuser(heir.oid):
            # Whoever has the privileges of a superuser role may hand over publications of all tables.
            special = [label for label in special if not label.startswith("publication ")]
        if special:
            message = f"only a superuser may hand over from {role.name}: {listed(special, len(special))}"
            yield self._problem(change, role, message, hints.SUPERUSER)

    def _create_hint(self, heir: RoleRef, schema: str, acl: Acl) -> str:
        """A manifest that manages the schema takes away what it does not declare."""
        declare = f"CREATE on schema {schema} for {heir.name} in grants"
        if "CREATE" in acl.of(heir.oid):
            return f"Declare {declare}: the plan revokes it"
        return f"{hints.compose('GRANT CREATE ON SCHEMA {} TO {}', schema, heir)}; or declare {declare}"

    def _creates(self, role: RoleRef, kind: str, name: str, acl: Acl) -> bool:
        """Whether the role has CREATE on a schema or database once the plan's grants and revokes have run."""
        if self._powers.is_superuser(role.oid):
            return True
        acting = {*self._powers.acts_with(role.oid), PUBLIC_OID}
        gone = {
            (change.grantee.oid, change.grantor.oid)
            for change in self._changes
            if isinstance(change, Revoke) and not change.option_only and _is_about(change, kind, name, "CREATE")
        }
        kept = {(e.grantee, e.grantor) for e in acl.entries if e.privilege == "CREATE" and e.grantee in acting} - gone
        return bool(kept) or self._granted(acting, kind, name, "CREATE")

    def _granted(self, acting: AbstractSet[int], kind: str, name: str, privilege: str) -> bool:
        return any(
            isinstance(change, Grant) and change.grantee.oid in acting and _is_about(change, kind, name, privilege)
            for change in self._changes
        )

    # ---- DROP OWNED --------------------------------------------------------------------------------------------------

    def empty(self, change: DropOwned) -> Iterable[Problem]:
        """DROP OWNED, in whatever database; whose objects the privileges are on is only known of the connected one."""
        role, executor = change.role, self._executor
        if not self._powers.owns(executor.oid, role.oid):
            message = f"{executor.name} may not drop what {role.name} owns: it does not have that role's privileges"
            yield self._problem(change, role, message, self._membership(role, "inherit"))
        if change.database is not None:
            return
        labels = {
            (tie.catalog, *place): label
            for tie in self._state.belongings.ties
            if tie.role == role.oid
            for place, label in zip(tie.objects, tie.labels)
        }
        by_owner: Dict[int, Dict[Tuple[str, int, int], None]] = {}
        for left in left_by_revokes(self._changes, self._state.belongings.held, Emptied.by(self._changes)):
            if left.grantee == role.oid and left.grantor == left.owner and left.owner != role.oid:
                if not self._powers.owns(executor.oid, left.owner):
                    by_owner.setdefault(left.owner, {}).setdefault(left.place)
        for owner, places in sorted(by_owner.items()):
            ref = self._state.ref(owner)
            named = [labels.get(place, f"{place[0]} {place[1]}") for place in sorted(places)]
            message = (
                f"{executor.name} may not take away what {role.name} holds on objects of {ref.name}, whose privileges "
                f"it does not have: {listed(named, len(named))}"
            )
            hint = self._membership(ref, "inherit")
            hint = f"{hint.rstrip('.')}; or let {ref.name} revoke it."
            yield self._problem(change, role, message, hint, named[0])

    # ---- DROP ROLE, and sessions -------------------------------------------------------------------------------------

    def drop(self, change: DropRole) -> Iterable[Problem]:
        """DROP ROLE, and the right to end the role's sessions after it is gone."""
        role, executor = change.role, self._executor
        if change.terminate:
            signal = self._state.role_oid(SIGNAL)
            if signal is None or not self._powers.owns(executor.oid, signal):
                ref = self._state.ref(signal) if signal is not None else RoleRef(-1, SIGNAL)
                message = (
                    f"{executor.name} may not end the sessions of role {role.name}: it does not have the privileges of "
                    f"{SIGNAL}"
                )
                yield self._problem(change, role, message, self._membership(ref, "inherit"))
        what = f"{executor.name} may not drop role {role.name}"
        if self._powers.is_superuser(role.oid):
            yield self._problem(change, role, f"{what}, which is a superuser: only a superuser may", hints.SUPERUSER)
            return
        if not self._powers.has(executor.oid, "createrole"):
            hint = hints.attribute(executor, "createrole")
            yield self._problem(change, role, f"{what}: it has no CREATEROLE", hint)
        if self._version >= 16 and not self._powers.administers(executor.oid, role.oid):
            hint = hints.admin_option(executor, role, self._version, self._powers)
            yield self._problem(change, role, f"{what}: it has no ADMIN OPTION on it", hint)

    def _membership(self, other: RoleRef, option: str) -> str:
        return hints.membership(self._executor, other, option, self._state, self._powers)

    @staticmethod
    def _problem(change: Change, role: RoleRef, message: str, hint: str, about: Optional[str] = None) -> Problem:
        """``about``: an object of this database. Otherwise it is about a role, and the same in every database."""
        source = change.source if isinstance(change, (ReassignOwned, DropOwned, DropRole)) else ""
        return hints.problem(role, about or f"role {role.name}", message, hint, source)


def _is_about(change: Union[Grant, Revoke], kind: str, name: str, privilege: str) -> bool:
    target = change.target
    return target.kind == kind and privilege in change.privileges and any(item.name == name for item in target.objects)
