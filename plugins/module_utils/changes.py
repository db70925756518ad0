# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The closed set of changes that a plan is made of.

A change knows everything that filters, statements and reports ask of it; none of them looks at the state again.
``source`` is the place in the manifest behind the change, where one place is behind it. Privileges have ``sources``:
the rules that give or take them, or what makes the object managed where they are surplus; changes that differ in
nothing else are equal. ``database`` is another one than the connected one, where the change is made first, in a
transaction of that database.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple, Type, TypeVar, Union

from .manifest.model import Instant
from .records import dataclass, field
from .state import Object, RoleRef

#: A role attribute's value: a flag, a number, or a point in time.
Value = Union[bool, Instant]


@dataclass(frozen=True)
class CreateRole:
    """Create a role; ``attributes`` are those that differ from what CREATE ROLE does by itself."""

    role: RoleRef
    attributes: Mapping[str, Value]
    source: str


@dataclass(frozen=True)
class AlterRole:
    """Change attributes of an existing role. ``omitted``: those that the manifest does not name. ``login_key``: what
    would give it LOGIN, as its file calls that.
    """

    role: RoleRef
    attributes: Mapping[str, Value]
    before: Mapping[str, Value]
    omitted: FrozenSet[str]
    source: str
    external: bool = False
    login_key: str = "login"


@dataclass(frozen=True)
class CommentRole:
    """Set a role's comment; an empty text removes it."""

    role: RoleRef
    comment: str
    before: Optional[str]
    source: str
    created: bool = False
    external: bool = False


@dataclass(frozen=True)
class SetConfig:
    """Set or reset one cluster-wide setting of a role (ALTER ROLE ... SET).

    ``value`` is None for RESET; a list setting has one text for each element, any other exactly one. ``before`` is what
    the catalog holds, None for nothing. ``known`` is False for one that is stored and that the server no longer knows:
    it refuses to reset that.
    """

    role: RoleRef
    name: str
    value: Optional[Tuple[str, ...]]
    before: Optional[str]
    source: str
    created: bool = False
    external: bool = False
    known: bool = True


@dataclass(frozen=True)
class SetPassword:
    """Set a role's password, or with ``clear`` take it away. The password itself is not here: ``apply`` has it.

    ``created``: the run creates the role. ``ours``: this collection set the stored password; False only with ``clear``.
    """

    role: RoleRef
    source: str
    clear: bool = False
    created: bool = False
    external: bool = False
    ours: bool = True


_Sort = TypeVar("_Sort")


def of_sort(plan: Plan, sort: Type[_Sort]) -> List[_Sort]:
    """A plan's changes of one sort."""
    return [change for change in plan.changes if isinstance(change, sort)]


def passwords_sent(changes: Iterable[object]) -> List[SetPassword]:
    """The changes that set a password, without those that take one away."""
    return [change for change in changes if isinstance(change, SetPassword) and not change.clear]


@dataclass(frozen=True)
class CreateStore:
    """Make the table of password fingerprints, and its schema where that is missing too.

    ``grantees``: roles that the executor's default privileges would let in.
    """

    schema: bool
    grantees: Tuple[RoleRef, ...] = ()


@dataclass(frozen=True)
class AddMember:
    """Grant a membership, or raise options of one.

    ``options`` holds what the statement says (``admin``, ``inherit``, ``set``); the others keep their value.
    ``grantor`` is only there where the statement must name it; else the executor, or for any superuser the bootstrap
    one, becomes the grantor. ``exists``: the member is in the group already, and ``raised`` are the options that it
    gains; none where the grant only takes the place of one that goes. ``unfounded``: those through whom the
    executor has ADMIN OPTION on the group, where it keeps none of it.
    """

    group: RoleRef
    member: RoleRef
    options: Mapping[str, bool]
    source: str
    grantor: Optional[RoleRef] = None
    exists: bool = False
    raised: FrozenSet[str] = frozenset()
    unfounded: Tuple[RoleRef, ...] = ()
    database: Optional[str] = None


@dataclass(frozen=True)
class RemoveMember:
    """Take away a membership, or with ``option`` only that option of it, from one grantor's row.

    ``grantor`` is None before PostgreSQL 16, where a membership is one row whoever granted it. ``claimed``: the
    manifest says who belongs to the group, so the membership is surplus; else it is only reported. ``replaced``:
    another grantor's row keeps the membership, and ``lowered`` are the options that it loses. ``early``: an added
    membership would close a circle with it, so it has to go first. ``depth``: how far down in the chain of grantors
    the row is. ``late``: how long the executor still needs memberships in the group, to act as another row's grantor.
    """

    group: RoleRef
    member: RoleRef
    grantor: Optional[RoleRef]
    option: Optional[str] = None
    claimed: bool = True
    automatic: bool = False
    replaced: bool = False
    lowered: FrozenSet[str] = frozenset()
    early: bool = False
    depth: int = 0
    late: int = 0
    source: str = ""
    database: Optional[str] = None


@dataclass(frozen=True)
class CreateSchema:
    """Create a schema. Without ``owner`` it belongs to the executor. ``run_as``: as for Grant."""

    name: str
    owner: Optional[RoleRef]
    source: str
    run_as: Optional[RoleRef] = None


@dataclass(frozen=True)
class AlterSchemaOwner:
    """Hand an existing schema to another owner. ``run_as``: as for Grant."""

    oid: int
    name: str
    owner: RoleRef
    before: RoleRef
    source: str
    run_as: Optional[RoleRef] = None


@dataclass(frozen=True)
class ReassignOwned:
    """Hand what a role owns to its heir: in one database, and the databases and tablespaces that it owns."""

    role: RoleRef
    heir: RoleRef
    source: str
    database: Optional[str] = None


@dataclass(frozen=True)
class DropOwned:
    """Take a role's privileges, default privileges, policies and user mappings away, and what it still owns.

    ``policies`` (``name on schema.table``) go because they name only this role. ``destroyed``: the first of the
    ``destroyed_count`` objects that the role owns and that nobody inherits; ``destroyed_mark`` stands for the others.
    """

    role: RoleRef
    source: str
    policies: Tuple[str, ...] = ()
    destroyed: Tuple[str, ...] = ()
    destroyed_count: int = 0
    destroyed_mark: str = ""
    database: Optional[str] = None


@dataclass(frozen=True)
class DropRole:
    """Drop a role, and end its sessions after the commit with ``terminate``.

    ``source``: the retirement, or for an undeclared role (``claimed``) the pattern of ``scope.roles``.
    """

    role: RoleRef
    source: str
    claimed: bool = False
    terminate: bool = False


class Target(NamedTuple):
    """What a privilege is on: objects of one kind, schema and owner. ``columns``: these columns of each."""

    kind: str
    schema: Optional[str]
    objects: Tuple[Object, ...]
    owner: RoleRef
    columns: Tuple[str, ...] = ()
    extension: bool = False


@dataclass(frozen=True)
class Grant:
    """Give privileges on objects.

    ``upgrade``: they are held, only the grant option is new. ``again``: kept ones that another statement of the plan
    takes along. ``late``: only after the revokes, one of which would take it along. ``lent``: only for the revoke that
    needs it. ``run_as``: the role in whose name the statement runs, None for the executor.
    """

    target: Target
    grantee: RoleRef
    privileges: FrozenSet[str]
    with_grant_option: bool = False
    upgrade: bool = False
    again: bool = False
    late: bool = False
    lent: bool = False
    run_as: Optional[RoleRef] = None
    database: Optional[str] = None
    sources: Tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Revoke:
    """Take privileges on objects away, or with ``option_only`` just their grant option, as one grantor gave them.

    ``explicit``: the manifest says ``ensure: absent``. Otherwise the privileges are surplus. ``run_as``: the role in
    whose name the statement runs, None for the executor. ``depth``: how many grantors lie between the owner and this
    one. ``cascade``: with ``option_only``, take along what the grantee gave onward. ``again``: it only undoes a grant
    that the plan itself needed for a moment. ``covered``: another statement of the plan does it.
    """

    target: Target
    grantee: RoleRef
    privileges: FrozenSet[str]
    grantor: RoleRef
    option_only: bool = False
    explicit: bool = False
    run_as: Optional[RoleRef] = None
    depth: int = 0
    cascade: bool = False
    again: bool = False
    covered: bool = False
    database: Optional[str] = None
    sources: Tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class LendUsage:
    """Let a role use a schema for as long as it takes to run statements in its name.

    ``run_as``: the schema's owner where the executor has to act in its name for that.
    """

    role: RoleRef
    schema: str
    run_as: Optional[RoleRef] = None


@dataclass(frozen=True)
class GrantDefault:
    """Give default privileges. ``schema`` None is the owner's global layer. ``upgrade``: only the option is new.

    ``run_as``: as for Grant.
    """

    owner: RoleRef
    schema: Optional[str]
    kind: str
    grantee: RoleRef
    privileges: FrozenSet[str]
    with_grant_option: bool = False
    upgrade: bool = False
    run_as: Optional[RoleRef] = None
    sources: Tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class RevokeDefault:
    """Take default privileges away. ``claimed``: the manifest speaks for this owner's layer; else it is only
    reported. ``run_as``: as for Grant.
    """

    owner: RoleRef
    schema: Optional[str]
    kind: str
    grantee: RoleRef
    privileges: FrozenSet[str]
    option_only: bool = False
    explicit: bool = False
    claimed: bool = True
    run_as: Optional[RoleRef] = None
    sources: Tuple[str, ...] = field(default=(), compare=False)


RoleChange = Union[CreateRole, AlterRole, CommentRole, SetConfig, SetPassword, CreateStore]
MemberChange = Union[AddMember, RemoveMember]
SchemaChange = Union[CreateSchema, AlterSchemaOwner]
PrivilegeChange = Union[Grant, Revoke, GrantDefault, RevokeDefault]
RetirementChange = Union[ReassignOwned, DropOwned, DropRole]
Change = Union[
    CreateRole,
    AlterRole,
    CommentRole,
    SetConfig,
    SetPassword,
    CreateStore,
    AddMember,
    RemoveMember,
    CreateSchema,
    AlterSchemaOwner,
    Grant,
    Revoke,
    LendUsage,
    GrantDefault,
    RevokeDefault,
    ReassignOwned,
    DropOwned,
    DropRole,
]


def weight(change: Union[Grant, Revoke, GrantDefault, RevokeDefault]) -> int:
    """How many privileges a change is about: privileges times objects times columns."""
    if isinstance(change, (GrantDefault, RevokeDefault)):
        return len(change.privileges)
    return len(change.privileges) * len(change.target.objects) * max(1, len(change.target.columns))


@dataclass(frozen=True)
class Withheld:
    """A difference that is not put right, and why (a ``reason`` of the documentation's table)."""

    change: Change
    reason: str


@dataclass(frozen=True)
class Plan:
    """What one look at policy and state gives: what is to do, what is held back by the override, what by other
    reasons.
    """

    changes: Tuple[Change, ...] = ()
    suppressed: Tuple[Union[Revoke, RevokeDefault], ...] = ()
    withheld: Tuple[Withheld, ...] = ()
    warnings: Tuple[str, ...] = ()
    managed: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)
    ready: Tuple[str, ...] = ()


class Emptied(NamedTuple):
    """What a plan's own statements do for the roles that it drops, in one database. None is the connected one."""

    heirs: Mapping[int, RoleRef]
    swept: FrozenSet[int]

    @classmethod
    def by(cls, changes: Iterable[Change], database: Optional[str] = None) -> Emptied:
        heirs: Dict[int, RoleRef] = {}
        swept: Set[int] = set()
        for change in changes:
            if isinstance(change, ReassignOwned) and change.database == database:
                heirs[change.role.oid] = change.heir
            elif isinstance(change, DropOwned) and change.database == database:
                swept.add(change.role.oid)
        return cls(heirs, frozenset(swept))
