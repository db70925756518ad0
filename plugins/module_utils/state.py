# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What the catalog holds, as plain data joined by OID, and what it will hold once some changes are made."""

from __future__ import annotations

import json
from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from .belongings import Belongings
from .manifest.model import INFINITY, Instant
from .privileges import BOOTSTRAP_OID, KINDS, PUBLIC_OID
from .records import dataclass, field, replace
from .store import PasswordFacts


class RoleRef(NamedTuple):
    """A role as statements name it. A role that the run creates has a negative OID until then."""

    oid: int
    name: str


#: A check run's stand-ins for roles that another run makes have OIDs from here down.
FIRST_ASSUMED = -1_000_000

#: The pseudo-role as a grantee.
PUBLIC_REF = RoleRef(PUBLIC_OID, "PUBLIC")


@dataclass(frozen=True)
class Role:
    """A row of pg_roles. ``valid_until``: microseconds since 1970 UTC, or ``infinity``, which NULL means as well.

    ``comment`` is without the record of a password that its last line may be.
    ``config``: the role's settings for every database, by their names in the catalog.
    """

    oid: int
    name: str
    superuser: bool = False
    inherit: bool = True
    createrole: bool = False
    createdb: bool = False
    login: bool = False
    replication: bool = False
    bypassrls: bool = False
    connection_limit: int = -1
    valid_until: Instant = INFINITY
    comment: Optional[str] = None
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def ref(self) -> RoleRef:
        return RoleRef(self.oid, self.name)


@dataclass(frozen=True)
class Membership:
    """A row of pg_auth_members. ``inherit`` and ``set`` are None before PostgreSQL 16, which has no such options."""

    group: int
    member: int
    grantor: int
    admin: bool
    inherit: Optional[bool] = None
    set: Optional[bool] = None

    @property
    def automatic(self) -> bool:
        """Whether the row looks like the one that PostgreSQL 16 gives the creator of a role."""
        return self.grantor == BOOTSTRAP_OID and self.admin and self.inherit is False and self.set is False

    @property
    def self_granted(self) -> bool:
        """Whether the member granted this to itself, as ``createrole_self_grant`` does (PostgreSQL 16)."""
        return self.inherit is not None and self.grantor == self.member

    def with_options(self, options: Mapping[str, bool]) -> Membership:
        """The row once a statement has given it these options; the others keep their value."""
        return replace(
            self,
            admin=options.get("admin", self.admin),
            inherit=options.get("inherit", self.inherit),
            set=options.get("set", self.set),
        )


class Entry(NamedTuple):
    """One ACL entry."""

    grantee: int
    privilege: str
    grantor: int
    grantable: bool


@dataclass(frozen=True)
class Acl:
    """An effective ACL. ``explicit`` is False where the catalog holds NULL and the built-in default counts."""

    entries: FrozenSet[Entry] = frozenset()
    explicit: bool = True
    _index: Dict[int, Dict[str, Tuple[Entry, ...]]] = field(default_factory=dict, compare=False, repr=False)

    def of(self, grantee: int) -> Mapping[str, Tuple[Entry, ...]]:
        """The grantee's entries by privilege."""
        return self.grantees().get(grantee, {})

    def grantees(self) -> Mapping[int, Mapping[str, Tuple[Entry, ...]]]:
        """Every grantee's entries by privilege."""
        if self.entries and not self._index:
            for entry in sorted(self.entries):
                privileges = self._index.setdefault(entry.grantee, {})
                privileges[entry.privilege] = (*privileges.get(entry.privilege, ()), entry)
        return self._index

    def owned_by(self, old: int, new: int) -> Acl:
        """The ACL after its object changed owner: the old owner's place is taken by the new one, alike entries merge.

        That is what ALTER … OWNER TO does (aclnewowner in PostgreSQL's acl.c).
        """

        def swap(oid: int) -> int:
            return new if oid == old else oid

        merged: Dict[Tuple[int, str, int], bool] = {}
        for entry in self.entries:
            key = (swap(entry.grantee), entry.privilege, swap(entry.grantor))
            merged[key] = merged.get(key, False) or entry.grantable
        return Acl(frozenset(Entry(*key, grantable) for key, grantable in merged.items()), self.explicit)


def default_acl(kind: str, owner: int, version: int) -> Acl:
    """What ``acldefault()`` gives for a kind: the owner holds everything, PUBLIC what the kind gives it.

    Computed here because the owner may be a role that does not exist yet; a server test compares it with the server.
    """
    entries = {Entry(owner, privilege, owner, False) for privilege in KINDS[kind].privileges_on(version)}
    entries |= {Entry(PUBLIC_OID, privilege, owner, False) for privilege in KINDS[kind].public}
    return Acl(frozenset(entries), explicit=False)


class Object(NamedTuple):
    """A single object. ``arguments`` are a routine's input types as GRANT takes them, else None."""

    oid: int
    name: str
    arguments: Optional[str] = None

    @property
    def label(self) -> str:
        """The object's name as the manifest spells it, without its schema."""
        return self.name if self.arguments is None else f"{self.name}({self.arguments})"


@dataclass(frozen=True)
class Members:
    """The objects of a group: counted at once, decoded when somebody asks for them.

    ``text`` is JSON: a list of [oid, name] or [oid, name, arguments], or names by OID. A run with nothing to do decodes
    none of it.
    """

    count: int
    text: str
    _decoded: List[Object] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(cls, objects: Iterable[Object]) -> Members:
        """Members that are known already."""
        found = sorted(objects)
        return cls(len(found), "", found)

    def objects(self) -> List[Object]:
        """The objects in the order of their OIDs."""
        if not self._decoded and self.count:
            found = json.loads(self.text)
            if isinstance(found, dict):
                found = [(int(oid), name) for oid, name in found.items()]
            self._decoded.extend(sorted(Object(*item) for item in found))
        return self._decoded


@dataclass(frozen=True)
class Group:
    """Objects of one schema and kind that have the same owner and the same ACL.

    ``schema`` is the schema's OID, None for kinds outside schemas. ``column`` names a column where the ACL is a
    column's. ``extension``: the objects belong to an extension.
    """

    kind: str
    schema: Optional[int]
    owner: int
    acl: Acl
    members: Members
    extension: bool = False
    column: Optional[str] = None


@dataclass(frozen=True)
class Schema:
    """A row of pg_namespace. A schema that the run creates has a negative OID until then."""

    oid: int
    name: str
    owner: int
    acl: Acl


@dataclass(frozen=True)
class Database:
    """A row of pg_database."""

    oid: int
    name: str
    owner: int
    acl: Acl


@dataclass(frozen=True)
class DefaultAcl:
    """A row of pg_default_acl. ``schema`` is an OID, or None for the owner's global layer."""

    owner: int
    schema: Optional[int]
    kind: str
    acl: Acl


@dataclass(frozen=True)
class Setting:
    """A parameter that the server knows. ``context`` is that of pg_settings.

    ``granted``: the executor holds SET on it (PostgreSQL 15).
    """

    name: str
    context: str
    granted: bool = False


class LockTable(NamedTuple):
    """What the server's lock table is made for: ``transactions`` (max_connections + max_prepared_transactions) with
    ``each`` (max_locks_per_transaction) locks.
    """

    each: int = 64
    transactions: int = 100

    @property
    def locks(self) -> int:
        return self.each * self.transactions


@dataclass(frozen=True)
class Server:
    """Where the run is connected. ``version`` is the major version, ``full_version`` the server's own text.

    ``clock``: the transaction's time by the server, in microseconds since 1970 UTC.
    """

    version: int
    full_version: str
    database: str
    database_oid: int
    system_identifier: str
    in_recovery: bool
    session_user: int
    current_user: int
    clock: Optional[int] = None
    #: What createrole_self_grant says in this session (PostgreSQL 16): ``inherit`` and ``set``.
    self_grant: FrozenSet[str] = frozenset()
    #: Whether a COMMIT waits for standbys, and one may ask which are there.
    synchronous: bool = False
    lock_table: LockTable = field(default_factory=LockTable)


@dataclass(frozen=True)
class State:
    """What one inspection read. ``schemas`` are all schemas; ``groups`` only those of inspected schemas."""

    server: Server
    roles: Mapping[int, Role]
    memberships: Tuple[Membership, ...]
    schemas: Mapping[int, Schema]
    databases: Mapping[int, Database]
    groups: Tuple[Group, ...] = ()
    #: Objects outside schemas that rules name, one group each; schemas and databases are not among them.
    named: Tuple[Group, ...] = ()
    default_acls: Tuple[DefaultAcl, ...] = ()
    passwords: PasswordFacts = field(default_factory=PasswordFacts)
    #: The server's parameters by their folded names; empty where the manifest declares no settings. One that has a
    #: class and that the server does not know is here only where SET on it is granted, with the context ``custom``.
    settings: Mapping[str, Setting] = field(default_factory=dict)
    #: Sessions whose role no longer exists, in words.
    stray_sessions: Tuple[str, ...] = ()
    #: Of the roles that the run may drop.
    belongings: Belongings = field(default_factory=Belongings)
    #: The other databases that some of these roles are to be emptied in, by name, with the belongings there; and why
    #: others could not be looked into.
    elsewhere: Mapping[str, State] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    _names: Dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    _schema_names: Dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    def role_oid(self, name: str) -> Optional[int]:
        """The OID of a role by its exact name, or None."""
        if not self._names and self.roles:
            self._names.update((role.name, role.oid) for role in self.roles.values())
        return self._names.get(name)

    def schema_named(self, name: str) -> Optional[Schema]:
        """A schema by its exact name, or None."""
        if not self._schema_names and self.schemas:
            self._schema_names.update((schema.name, schema.oid) for schema in self.schemas.values())
        oid = self._schema_names.get(name)
        return None if oid is None else self.schemas[oid]

    def ref(self, oid: int) -> RoleRef:
        """A role as statements name it. A role that no longer exists is named by its number, as PostgreSQL prints
        it.
        """
        if oid == PUBLIC_OID:
            return PUBLIC_REF
        role = self.roles.get(oid)
        return role.ref if role else RoleRef(oid, str(oid))

    @property
    def executors(self) -> FrozenSet[int]:
        """The roles that the run acts as: the login and, when set, ``session_role``."""
        return frozenset((self.server.session_user, self.server.current_user))

    def with_roles(self, roles: Iterable[Role], memberships: Iterable[Membership] = ()) -> State:
        """The state as it will be once these roles exist, and these memberships beside those there are."""
        return replace(
            self,
            roles={**self.roles, **{role.oid: role for role in roles}},
            memberships=(*self.memberships, *memberships),
            _names={},
        )

    def with_schemas(self, schemas: Iterable[Schema]) -> State:
        """The state as it will be once these schemas are so."""
        return replace(self, schemas={**self.schemas, **{schema.oid: schema for schema in schemas}}, _schema_names={})
