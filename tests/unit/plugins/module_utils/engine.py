# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A made-up server for the tests of the engine's pure parts: states by name, without OIDs and without a connection."""

from __future__ import annotations

import itertools
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import Grant, Plan, Revoke, Target
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.targets import Lookups
from ansible_collections.pg_access.reconcile.plugins.module_utils.filters import Options
from ansible_collections.pg_access.reconcile.plugins.module_utils.outcome import Outcome
from ansible_collections.pg_access.reconcile.plugins.module_utils.plan import make_plan
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import Policy, manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.privileges import BOOTSTRAP_OID, PUBLIC_OID
from ansible_collections.pg_access.reconcile.plugins.module_utils.scope import Scope, scope_of
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import (
    PUBLIC_REF,
    Acl,
    Database,
    DefaultAcl,
    Entry,
    Group,
    Members,
    Membership,
    Object,
    Role,
    RoleRef,
    Schema,
    Server,
    Setting,
    State,
    default_acl,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements.order import statements
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements.privileges import inventory_of

#: Grantee, privilege (with a star where the grant option comes with it), and grantor, by their names.
Held = Tuple[str, str, str]


class World:
    """A server in the making. A role comes into being when it is first named; ``postgres`` is the bootstrap one."""

    def __init__(
        self, version: int = 17, *, executor: str = "postgres", login: Optional[str] = None, owner: str = "postgres"
    ) -> None:
        self.version = version
        self._numbers = itertools.count(100)
        self._roles: Dict[str, Role] = {"postgres": Role(BOOTSTRAP_OID, "postgres", superuser=True, login=True)}
        self._memberships: List[Membership] = []
        self._schemas: Dict[str, Schema] = {}
        self._databases: Dict[str, Database] = {}
        self._groups: List[Group] = []
        self._named: List[Group] = []
        self._defaults: List[DefaultAcl] = []
        self.database("app", owner)
        self._executor, self._login = executor, login or executor
        self._settings: Dict[str, Setting] = {}
        self.clock: Optional[int] = None

    # ---- what there is -----------------------------------------------------------------------------------------------

    def role(self, name: str, **attributes: Any) -> RoleRef:
        """Make a role with these attributes."""
        self._roles[name] = Role(next(self._numbers), name, **attributes)
        return self._roles[name].ref

    def ref(self, name: str) -> RoleRef:
        """The role of this name as changes hold it."""
        if name == "PUBLIC":
            return PUBLIC_REF
        return self._roles[name].ref if name in self._roles else self.role(name)

    def oid(self, name: str) -> int:
        return self.ref(name).oid

    def member(
        self,
        member: str,
        group: str,
        *,
        by: str = "postgres",
        admin: bool = False,
        inherit: bool = True,
        set: bool = True,  # noqa: A002
    ) -> None:
        """Make a membership; its options beside ADMIN exist from PostgreSQL 16 on."""
        options = (inherit, set) if self.version >= 16 else (None, None)
        self._memberships.append(Membership(self.oid(group), self.oid(member), self.oid(by), admin, *options))

    def entries(self, *held: Held) -> List[Entry]:
        return [Entry(self.oid(who), what.rstrip("*"), self.oid(by), what.endswith("*")) for who, what, by in held]

    def acl(self, kind: str, owner: str, *held: Held) -> Acl:
        """What the owner has by itself, and these entries."""
        own = [e for e in default_acl(kind, self.oid(owner), self.version).entries if e.grantee != PUBLIC_OID]
        return Acl(frozenset([*own, *self.entries(*held)]))

    def bare(self, *held: Held) -> Acl:
        """Just these entries."""
        return Acl(frozenset(self.entries(*held)))

    def database(self, name: str, owner: str = "postgres", *held: Held) -> Database:
        found = self._databases.get(name)
        oid = found.oid if found else next(self._numbers)
        self._databases[name] = Database(oid, name, self.oid(owner), self.acl("database", owner, *held))
        return self._databases[name]

    def schema(self, name: str, owner: str = "postgres", *held: Held) -> Schema:
        self._schemas[name] = Schema(next(self._numbers), name, self.oid(owner), self.acl("schema", owner, *held))
        return self._schemas[name]

    def objects(
        self,
        kind: str,
        schema: Optional[str],
        names: Sequence[str],
        owner: str,
        *held: Held,
        arguments: Optional[str] = None,
        extension: bool = False,
    ) -> Tuple[Object, ...]:
        """Make objects that are alike; a schema that is not there yet belongs to their owner."""
        if schema is not None and schema not in self._schemas:
            self.schema(schema, owner)
        found = tuple(Object(next(self._numbers), name, arguments) for name in names)
        place = None if schema is None else self._schemas[schema].oid
        group = Group(
            kind, place, self.oid(owner), self.acl(kind, owner, *held), Members.of(found), extension=extension
        )
        (self._named if schema is None else self._groups).append(group)
        return found

    def table(self, schema: str, name: str, owner: str, *held: Held) -> Object:
        """Make one table."""
        return self.objects("table", schema, [name], owner, *held)[0]

    def column(self, schema: str, table: Object, column: str, owner: str, *held: Held) -> None:
        """Give a table's column an ACL."""
        place, who = self._schemas[schema].oid, self.oid(owner)
        self._groups.append(Group("table", place, who, self.bare(*held), Members.of([table]), column=column))

    def setting(self, name: str, context: str = "user", granted: bool = False) -> None:
        """Make a parameter that the server knows."""
        self._settings[name.lower()] = Setting(name, context, granted)

    def default(self, owner: str, schema: Optional[str], kind: str, *held: Held) -> None:
        """Make a row of default privileges: a schema's holds these entries only, a global one the owner's as well."""
        place = None if schema is None else self._schemas[schema].oid
        acl = self.bare(*held) if schema is not None else self.acl(kind, owner, *held)
        self._defaults.append(DefaultAcl(self.oid(owner), place, kind, acl))

    @property
    def state(self) -> State:
        login, executor = self.oid(self._login), self.oid(self._executor)
        server = Server(
            self.version,
            f"{self.version}.1",
            "app",
            self._databases["app"].oid,
            "7000",
            False,
            login,
            executor,
            self.clock,
        )
        return State(
            server,
            {role.oid: role for role in self._roles.values()},
            tuple(self._memberships),
            {schema.oid: schema for schema in self._schemas.values()},
            {database.oid: database for database in self._databases.values()},
            tuple(self._groups),
            tuple(self._named),
            tuple(self._defaults),
            settings=dict(self._settings),
        )

    # ---- changes -----------------------------------------------------------------------------------------------------

    def target(self, kind: str, schema: Optional[str], objects: Sequence[Object], owner: str, *columns: str) -> Target:
        return Target(kind, schema, tuple(objects), self.ref(owner), columns)

    def grant(self, target: Target, grantee: str, *privileges: str, **flags: Any) -> Grant:
        return Grant(target, self.ref(grantee), frozenset(privileges), **flags)

    def revoke(self, target: Target, grantee: str, *privileges: str, by: Optional[str] = None, **flags: Any) -> Revoke:
        grantor = target.owner if by is None else self.ref(by)
        return Revoke(target, self.ref(grantee), frozenset(privileges), grantor, **flags)

    # ---- what the engine makes of it ---------------------------------------------------------------------------------

    def scope(self, policy: Policy) -> Scope:
        return scope_of(policy, list(self._schemas), "app")

    def outcome(self, raw: Dict[str, Any], lookups: Optional[Lookups] = None, **options: Any) -> Outcome:
        """What a whole look at a manifest gives."""
        policy = manifest_to_policy(raw)
        # Naming a role in a manifest does not make it.
        return make_plan(policy, self.state, self.scope(policy), lookups or Lookups(), Options(**options))

    def plan(self, raw: Dict[str, Any], lookups: Optional[Lookups] = None, **options: Any) -> Plan:
        """The plan, where nothing stands in its way."""
        outcome = self.outcome(raw, lookups, **options)
        assert not outcome.problems, [problem.text for problem in outcome.problems]
        return outcome.plan

    def sql(self, raw: Dict[str, Any], lookups: Optional[Lookups] = None, **options: Any) -> List[str]:
        """The plan's statements."""
        return self.written(self.plan(raw, lookups, **options))

    def written(self, plan: Plan, **options: Any) -> List[str]:
        return statements(plan.changes, inventory_of(self.state), self.version, **options)


def rule(role: str, privileges: str, kind: str, schema: Optional[str] = None, name: str = "", **keys: Any) -> Any:
    """A grant of the manifest; the privileges are words with spaces between them."""
    words = {"schema": schema, "name": name or None}
    place = {"type": kind, **{key: value for key, value in words.items() if value is not None}}
    return {"role": role, "privileges": privileges.split(), "object": place, **keys}


def default(owner: str, schema: Optional[str], kind: str, role: str, privileges: str, **keys: Any) -> Any:
    """A default privilege of the manifest."""
    place = {} if schema is None else {"schema": schema}
    return {
        "owner": owner,
        **place,
        "grant": [{"role": role, "privileges": privileges.split(), "on_type": kind, **keys}],
    }


def declared(*names: str, **keys: Any) -> List[Dict[str, Any]]:
    """Roles of the manifest that are plain, or alike."""
    return [{"name": name, **keys} for name in names]
