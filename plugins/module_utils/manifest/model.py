# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""A manifest that passed validation, as plain data.

``None`` always means that the manifest did not say. ``source`` is where a thing was declared, as messages print it:
``grants[3]`` for options, ``access.yml: grants[3]`` for a file.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, Mapping, Optional, Tuple, Union

from ..records import dataclass, field

#: A point in time as microseconds since 1970-01-01 00:00 UTC, or the word ``infinity``.
Instant = Union[int, str]
INFINITY = "infinity"

#: Settings of a role by their folded names: the elements of a list that the server quotes, else one text.
Config = Mapping[str, Tuple[str, ...]]


@dataclass(frozen=True)
class Password:
    """A declared password: ``text`` is the secret itself, which no representation shows.

    ``encryption`` is ``scram-sha-256`` or ``server``. ``verifier``: the text is one already, and is sent as it is.
    """

    text: str = field(repr=False)
    source: str
    encryption: str = "scram-sha-256"
    verifier: bool = False


@dataclass(frozen=True)
class MemberEntry:
    """The other end of a membership, in any of the three spellings; ``source`` is ``memberships[0].members[1]``.

    ``place`` is where the name stands: ``memberships[0].members[1].name``. ``by_attribute``: a new membership is
    inherited where the member has INHERIT, as GRANT has it. ``unsaid``: ``inherit`` is what another tool takes an
    omitted one for; before PostgreSQL 16, where the member's attribute decides, it is omitted. ``side``: of a tool that
    wants each membership at the group and at the member, where this one stands.
    """

    name: str
    source: str
    place: str
    admin: Optional[bool] = None
    inherit: Optional[bool] = None
    set: Optional[bool] = None
    by_attribute: bool = False
    unsaid: bool = False
    side: Optional[str] = None


@dataclass(frozen=True)
class RoleEntry:
    """One item of ``roles``. ``password`` is there once every way to give one has been looked at. An empty
    ``member_of`` or ``members`` says that there are none.
    """

    name: str
    source: str
    comment: Optional[str] = None
    config: Optional[Config] = None
    login: Optional[bool] = None
    superuser: Optional[bool] = None
    createdb: Optional[bool] = None
    createrole: Optional[bool] = None
    replication: Optional[bool] = None
    bypassrls: Optional[bool] = None
    inherit: Optional[bool] = None
    connection_limit: Optional[int] = None
    valid_until: Optional[Instant] = None
    password: Optional[Password] = None
    password_from_env: Optional[str] = None
    password_encryption: Optional[str] = None
    password_format: Optional[str] = None
    member_of: Optional[Tuple[MemberEntry, ...]] = None
    members: Optional[Tuple[MemberEntry, ...]] = None
    external: bool = False
    privilege_reconciliation: Optional[str] = None
    #: Fields that another tool's file has elsewhere: below ``source``, by the field's name here.
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def place(self, name: str) -> str:
        """Where a field stands."""
        return f"{self.source}.{self.elsewhere.get(name, name)}"


@dataclass(frozen=True)
class MembershipEntry:
    """One item of ``memberships``."""

    role: str
    source: str
    members: Tuple[MemberEntry, ...] = ()
    exclusive: bool = False


@dataclass(frozen=True)
class ObjectEntry:
    """The object of a grant: ``type`` is the kind's own name, never an alias. A profile's schema target has no name.

    ``or_view``: the table may be a view or a materialized view as well. No manifest of our own can say so.
    ``place`` is where the name stands in a file of another tool.
    """

    type: str
    schema: Optional[str] = None
    name: Optional[str] = None
    or_view: bool = field(default=False, compare=False)
    place: Optional[str] = field(default=None, compare=False)


@dataclass(frozen=True)
class GrantEntry:
    """One item of ``grants``. In a profile ``role`` is None. ``privileges`` are canonical; ``{"ALL"}`` stands alone.

    ``columns`` are sorted, each once; none means the object itself. With columns ``privileges`` never is ``{"ALL"}``.
    """

    role: Optional[str]
    privileges: FrozenSet[str]
    object: ObjectEntry
    source: str
    present: bool = True
    columns: Tuple[str, ...] = ()
    with_grant_option: bool = False


@dataclass(frozen=True)
class DefaultGrantEntry:
    """One item of ``grant`` in ``default_privileges``, or of a profile's ``default_privileges`` (without ``role``)."""

    role: Optional[str]
    privileges: FrozenSet[str]
    on_type: str
    source: str
    present: bool = True
    with_grant_option: bool = False


@dataclass(frozen=True)
class DefaultPrivilegeEntry:
    """One item of ``default_privileges``. Without ``schema`` it is the owner's global layer."""

    owner: Optional[str]
    schema: Optional[str]
    source: str
    grant: Tuple[DefaultGrantEntry, ...] = ()
    #: False only in a manifest with problems: an owner was given and cannot be used.
    usable: bool = True


@dataclass(frozen=True)
class ProfileEntry:
    """One profile."""

    name: str
    source: str
    login: Optional[bool] = None
    inherit: Optional[bool] = None
    config: Optional[Config] = None
    grants: Tuple[GrantEntry, ...] = ()
    default_privileges: Tuple[DefaultGrantEntry, ...] = ()


@dataclass(frozen=True)
class SchemaEntry:
    """One item of ``schemas``."""

    name: str
    source: str
    owner: Optional[str] = None
    profiles: Tuple[str, ...] = ()
    role_pattern: Optional[str] = None
    #: False only in a manifest with problems: an owner was given and cannot be used.
    usable: bool = True


@dataclass(frozen=True)
class RetirementEntry:
    """One item of ``retirements``."""

    role: str
    source: str
    reassign_owned_to: Optional[str] = None
    drop_owned: bool = False
    terminate_sessions: bool = False
    all_databases: bool = False


@dataclass(frozen=True)
class DatabaseEntry:
    """A database that the manifest takes for granted. ``connected``: what stands there is about it, so the run has to
    be connected to it. ``owner``: who has to own it.
    """

    name: str
    source: str
    connected: bool = False
    owner: Optional[str] = None


@dataclass(frozen=True)
class ClusterEntry:
    """What another tool calls the cluster that something is for. ``namespace`` is None where the file does not say."""

    name: str
    namespace: Optional[str]
    source: str


@dataclass(frozen=True)
class ScopeEntry:
    """``scope``: shell-style patterns."""

    roles: Tuple[str, ...] = ()
    schemas: Tuple[str, ...] = ()
    ignore_roles: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Manifest:
    """A whole manifest, composed from options or from files."""

    default_owner: Optional[str] = None
    role_pattern: str = "{schema}-{profile}"
    profiles: Mapping[str, ProfileEntry] = field(default_factory=dict)
    schemas: Tuple[SchemaEntry, ...] = ()
    roles: Tuple[RoleEntry, ...] = ()
    memberships: Tuple[MembershipEntry, ...] = ()
    grants: Tuple[GrantEntry, ...] = ()
    default_privileges: Tuple[DefaultPrivilegeEntry, ...] = ()
    retirements: Tuple[RetirementEntry, ...] = ()
    scope: ScopeEntry = field(default_factory=ScopeEntry)
    #: What could be a part of a pgroles bundle: names in ``scope.roles`` that the file does not declare, and the file.
    maybe_limits: Tuple[Tuple[str, str], ...] = ()
    databases: Tuple[DatabaseEntry, ...] = ()
    clusters: Tuple[ClusterEntry, ...] = ()
    assume_roles: FrozenSet[str] = frozenset()
    #: The option ``passwords``, by role.
    passwords: Mapping[str, Password] = field(default_factory=dict)
    default_owner_source: str = "default_owner"
    #: The files that it was composed from: what stands before the paths, and the whole name.
    files: Mapping[str, str] = field(default_factory=dict)
    #: Places of keys that another tool's file calls otherwise than a manifest does, and what they are there.
    renamed: Mapping[str, str] = field(default_factory=dict)
    #: Roles that unusable rules name, with the places; empty unless the manifest has problems.
    mentioned: Tuple[Tuple[str, str], ...] = ()
    #: Sections of which nothing could be used; empty unless the manifest has problems.
    unreadable: FrozenSet[str] = frozenset()

    def edges(self) -> Iterator[Tuple[str, str, MemberEntry]]:
        """Every membership in whatever spelling: group, member, and the entry that says so."""
        for stanza in self.memberships:
            for entry in stanza.members:
                yield stanza.role, entry.name, entry
        for role in self.roles:
            for entry in role.member_of or ():
                yield entry.name, role.name, entry
            for entry in role.members or ():
                yield role.name, entry.name, entry
