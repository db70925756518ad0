# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.
"""The way back: what a plan changes, turned round in the inverse order, and what nothing can turn round.

Privileges, default privileges and memberships are not turned round change by change: what a plan's statements make of
the entries that there are is worked out (they merge, cascade and take columns along), and the way back leads from there
to what the inspection found, entry by entry, each in its grantor's name.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Type,
    TypeVar,
    Union,
)

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

from .acls import groups_of
from .authority.defaults import authorize_defaults
from .authority.powers import Powers
from .authority.privileges import authorize_privileges, label_of
from .authority.schemas import authorize_schemas
from .changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    Change,
    CommentRole,
    CreateRole,
    CreateSchema,
    CreateStore,
    Grant,
    GrantDefault,
    LendUsage,
    Plan,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetConfig,
    SetPassword,
    Target,
)
from .diff.admins import acting_roles, in_order
from .diff.circles import without_circles
from .keep import merge_columns
from .manifest.settings import elements
from .privileges import BOOTSTRAP_OID
from .problems import Problem
from .state import Acl, Entry, Membership, Object, RoleRef, State, default_acl
from .statements import BATCH, Statement, composed_statements, is_spelt, role_set

#: Changes that are turned round.
UNDONE: FrozenSet[Type[Any]] = frozenset(
    {
        CreateRole, AlterRole, CommentRole, SetConfig, AddMember, RemoveMember, CreateSchema, AlterSchemaOwner, Grant,
        Revoke, GrantDefault, RevokeDefault,
    }
)  # fmt: skip

#: Changes that leave nothing behind.
PASSING: FrozenSet[Type[Any]] = frozenset({LendUsage})


def _password_left(change: SetPassword) -> str:
    if change.clear:
        return f"the password of role {change.role.name} is gone"
    return f"the password of role {change.role.name} was replaced, and nobody knows the old one"


#: Changes that nothing turns round, and what to say about each. A role that the plan makes goes with all it has.
LEFT: Mapping[Type[Any], Callable[[Any], str]] = {
    SetPassword: _password_left,
    CreateStore: lambda _change: "the table of password fingerprints stays: it says which passwords were set",
}


@dataclass(frozen=True)
class Undo:
    """The statements of the way back in blocks, each with a heading; and in words what stays as the plan made it."""

    blocks: Tuple[Tuple[str, Tuple[Statement, ...]], ...] = ()
    left: Tuple[str, ...] = ()


class Compose(NamedTuple):
    """How changes become statements."""

    version: int
    session_role: Optional[str]

    def role(self, name: Optional[str]) -> Statement:
        """Act as this role, or as the run does."""
        return role_set(name or self.session_role)

    def __call__(self, changes: Iterable[Change]) -> List[Statement]:
        # Without an inventory every object is named: what has appeared meanwhile is none of the plan's business.
        return composed_statements(list(changes), {}, self.version, session_role=self.session_role)


_Some = TypeVar("_Some")


def _all(plan: Plan, sort: Type[_Some]) -> List[_Some]:
    return [change for change in plan.changes if isinstance(change, sort)]


def undo_of(plan: Plan, before: State, after: State, powers: Powers, *, session_role: Optional[str] = None) -> Undo:
    """The way back from a plan.

    ``before`` is the state that the plan was made for, ``after`` that with its roles and schemas, ``powers`` who may
    act as whom when it grants and revokes.
    """
    compose = Compose(before.server.version, session_role)
    left = [LEFT[type(change)](change) for change in plan.changes if type(change) in LEFT and not _is_new(change)]
    first_members, last_members, notes = _memberships(plan, before, after)
    left += notes
    owners, moved, notes = _schema_owners(plan, after, powers)
    left += notes
    # While privileges go back, a role can use a schema by what it had and by what the plan gave it.
    back = replace(after, schemas={**after.schemas, **before.schemas}, _schema_names={})
    powers = powers.after([], back)
    privileges, notes = _Privileges(plan, before, after, powers, moved).changes()
    left += notes
    defaults, refused = authorize_defaults(_defaults(plan, before), after, powers)
    left += [_refused(problem) for problem in refused]
    attributes, notes = _attributes(plan)
    left += notes
    blocks = (
        ("memberships as they were", compose(first_members)),
        ("schemas back to their owners", compose(owners)),
        *(("privileges as they were", compose(stage)) for stage in privileges),
        ("default privileges as they were", compose(defaults)),
        ("without the schemas that the plan made", _drops_of_schemas(plan, before, powers, compose)),
        ("without the memberships that the plan made", compose(last_members)),
        ("roles as they were", compose(attributes)),
        ("without the roles that the plan made", _drops("ROLE", [c.role.name for c in _all(plan, CreateRole)])),
    )
    return Undo(tuple((title, tuple(found)) for title, found in blocks if found), tuple(dict.fromkeys(left)))


def _is_new(change: Any) -> bool:
    return bool(getattr(change, "created", False))


def _refused(problem: Problem) -> str:
    return f"this login may not: {problem.text}"


def _drops(keyword: str, names: Sequence[str]) -> List[Statement]:
    return [
        Statement(
            sql.SQL("DROP {} {}").format(
                sql.SQL(keyword), sql.SQL(", ").join([sql.Identifier(name) for name in names[start : start + BATCH]])
            )
        )
        for start in range(0, len(names), BATCH)
    ]


# ---- roles -----------------------------------------------------------------------------------------------------------


def _attributes(plan: Plan) -> Tuple[List[Change], List[str]]:
    """Attributes, settings and comments of roles that were there before."""
    changes: List[Change] = []
    left: List[str] = []
    for change in _all(plan, AlterRole):
        attributes = dict(change.before)
        if not is_spelt(attributes.get("valid_until", 0)):
            del attributes["valid_until"]
            left.append(f"the expiry of role {change.role.name} was a date that only the server can spell")
        if attributes:
            changes.append(replace(change, attributes=attributes, before=change.attributes))
    for setting in _all(plan, SetConfig):
        if not setting.created:
            value = None if setting.before is None else elements(setting.name, setting.before)
            changes.append(replace(setting, value=value, before=None))
    for comment in _all(plan, CommentRole):
        if not comment.created:
            changes.append(replace(comment, comment=comment.before or "", before=comment.comment))
    return changes, left


# ---- memberships -----------------------------------------------------------------------------------------------------

#: Group and member, and from PostgreSQL 16 on the grantor; before, a membership is one row.
_Edge = Tuple[int, int, Optional[int]]


def _edge(row: Membership, version: int) -> _Edge:
    return row.group, row.member, row.grantor if version >= 16 else None


def _rows_after(plan: Plan, after: State) -> Dict[_Edge, Membership]:
    """The rows of memberships as the plan makes them (AddRoleMems and DelRoleMems in user.c)."""
    version, executor = after.server.version, after.server.current_user
    own = BOOTSTRAP_OID if version >= 16 and after.roles[executor].superuser else executor
    rows = {_edge(row, version): row for row in after.memberships}
    for change in plan.changes:
        if isinstance(change, AddMember):
            grantor = change.grantor.oid if change.grantor is not None else own
            fresh = Membership(change.group.oid, change.member.oid, grantor, False)
            if version >= 16:
                fresh = replace(fresh, inherit=after.roles[change.member.oid].inherit, set=True)
            old = rows.get(_edge(fresh, version))
            row = _with(old or fresh, change.options)
            if version < 16 and row != old:
                row = replace(row, grantor=grantor)
            rows[_edge(row, version)] = row
        elif isinstance(change, RemoveMember):
            edge = (change.group.oid, change.member.oid, change.grantor.oid if change.grantor is not None else None)
            if change.option is None:
                rows.pop(edge, None)
            elif edge in rows:
                rows[edge] = _with(rows[edge], {change.option: False})
    return rows


def _with(row: Membership, options: Mapping[str, bool]) -> Membership:
    return replace(
        row,
        admin=options.get("admin", row.admin),
        inherit=options.get("inherit", row.inherit),
        set=options.get("set", row.set),
    )


def _options(row: Membership) -> Dict[str, bool]:
    found = {"admin": row.admin, "inherit": row.inherit, "set": row.set}
    return {name: value for name, value in found.items() if value is not None}


def _memberships(plan: Plan, before: State, after: State) -> Tuple[List[Change], List[Change], List[str]]:
    """The memberships that come back, with those that have to make room for them; those that go last; and notes."""
    if not any(isinstance(change, (AddMember, RemoveMember)) for change in plan.changes):
        return [], [], []
    version = before.server.version
    old = {_edge(row, version): row for row in before.memberships}
    # What comes by itself with a role that the plan makes goes with the role.
    automatic = {_edge(row, version) for row in after.memberships} - old.keys()
    new = _rows_after(plan, after)
    present = {(row.group, row.member) for row in new.values()}
    namer = _Namer(before, after)
    additions: List[AddMember] = []
    removals: List[RemoveMember] = []
    for edge in sorted({*old, *new}, key=lambda key: (key[0], key[1], key[2] or 0)):
        was, is_ = old.get(edge), new.get(edge)
        if was == is_ or edge in automatic:
            continue
        row = was or is_
        if row is None:
            continue
        refs = after.ref(row.group), after.ref(row.member), None if edge[2] is None else after.ref(edge[2])
        exists = (row.group, row.member) in present
        if was is None:
            removals.append(RemoveMember(*refs))
            continue
        options = _options(was)
        gives = True
        if is_ is not None and version < 16 and was.grantor != is_.grantor and namer.may_name(was):
            # A row keeps its grantor when it is lowered, and gets another one when it is raised.
            removals.append(RemoveMember(*refs, early=True))
            exists = False
        elif is_ is not None:
            now = _options(is_)
            removals += [RemoveMember(*refs, option=name) for name in options if now[name] and not options[name]]
            options = {name: True for name in options if options[name] and not now[name]}
            gives = bool(options)
        if gives:
            said = options if version >= 16 or options.get("admin") else {}
            additions.append(AddMember(refs[0], refs[1], said, "", namer.named(was), exists=exists))
    additions.sort(key=lambda change: namer.depth(change))
    rows = list(new.values())
    ordered = in_order(removals, rows, acting_roles(after))
    state = replace(after, memberships=tuple(rows))
    changes, circles = without_circles([*additions, *ordered], state)
    first = [change for change in changes if not isinstance(change, RemoveMember) or change.early]
    last: List[Change] = [change for change in changes if isinstance(change, RemoveMember) and not change.early]
    return first, last, [*namer.notes, *(problem.text for problem in circles)]


class _Namer:
    """In whose name a membership comes back."""

    def __init__(self, before: State, after: State) -> None:
        self._before = before
        self._after = after
        self._executor = after.server.current_user
        self._superuser = after.roles[self._executor].superuser
        self._own = BOOTSTRAP_OID if self._superuser and after.server.version >= 16 else self._executor
        self._admins = {(row.group, row.member) for row in before.memberships if row.admin}
        self._acting = acting_roles(after)
        self._depths: Dict[Tuple[int, int], int] = {}
        self.notes: List[str] = []
        self._measure()

    def may_name(self, row: Membership) -> bool:
        """Whether the row can have its old grantor."""
        grantor = row.grantor
        if grantor not in self._before.roles:
            return False
        if grantor == self._own:
            return True
        if self._before.server.version < 16:
            return self._superuser
        able = grantor == BOOTSTRAP_OID or (row.group, grantor) in self._admins
        return able and (self._superuser or grantor in self._acting)

    def named(self, row: Membership) -> Optional[RoleRef]:
        """The grantor where the statement has to name it; a note where it is another one than before."""
        if row.grantor == self._own:
            return None
        if self.may_name(row):
            return self._after.ref(row.grantor)
        group, member, grantor = (self._after.ref(oid).name for oid in (row.group, row.member, row.grantor))
        self.notes.append(
            f"the membership of {member} in {group} was granted by {grantor}; it comes back as granted by "
            f"{self._after.ref(self._own).name}"
        )
        return None

    def depth(self, change: AddMember) -> int:
        """How far the change's grantor is from the first one of the group: who grants has to hold ADMIN by then."""
        grantor = change.grantor.oid if change.grantor is not None else self._own
        return self._depths.get((change.group.oid, grantor), 0)

    def _measure(self) -> None:
        grants: Dict[Tuple[int, int], List[int]] = defaultdict(list)
        for row in self._before.memberships:
            if row.admin:
                grants[row.group, row.grantor].append(row.member)
        pending = [(group, BOOTSTRAP_OID) for group in sorted({row.group for row in self._before.memberships})]
        self._depths.update(dict.fromkeys(pending, 0))
        for group, grantor in pending:
            for member in grants.get((group, grantor), ()):
                if (group, member) not in self._depths:
                    self._depths[group, member] = self._depths[group, grantor] + 1
                    pending.append((group, member))


# ---- schemas ---------------------------------------------------------------------------------------------------------


def _schema_owners(
    plan: Plan, after: State, powers: Powers
) -> Tuple[List[Change], Mapping[int, AlterSchemaOwner], List[str]]:
    """Schemas handed back, the plan's changes by schema, and what this login may not."""
    moved = {change.oid: change for change in _all(plan, AlterSchemaOwner)}
    turned = [
        replace(change, owner=change.before, before=change.owner, run_as=None) for change in reversed(moved.values())
    ]
    changes, refused = authorize_schemas(turned, after, powers)
    return changes, moved, [_refused(problem) for problem in refused]


def _drops_of_schemas(plan: Plan, before: State, powers: Powers, compose: Compose) -> List[Statement]:
    """A schema that somebody has put something into meanwhile stays, and the way back with it."""
    executor = before.server.current_user
    by_role: Dict[Optional[RoleRef], List[str]] = defaultdict(list)
    for change in _all(plan, CreateSchema):
        owns = change.owner is None or powers.owns(executor, change.owner.oid)
        by_role[None if owns else change.owner].append(change.name)
    found: List[Statement] = []
    for doer, names in by_role.items():
        if doer is not None:
            found.append(compose.role(doer.name))
        found += _drops("SCHEMA", names)
        if doer is not None:
            found.append(compose.role(None))
    return found


# ---- default privileges ----------------------------------------------------------------------------------------------

#: Owner, schema name or None for the global layer, and kind.
_Layer = Tuple[RoleRef, Optional[str], str]


def _defaults(plan: Plan, before: State) -> List[Change]:
    created = {change.name for change in _all(plan, CreateSchema)}
    rows: Dict[Tuple[int, Optional[str], str], Acl] = {}
    for row in before.default_acls:
        schema = None if row.schema is None else before.schemas.get(row.schema)
        if row.schema is None or schema is not None:
            rows[row.owner, schema.name if schema is not None else None, row.kind] = row.acl
    held: Dict[_Layer, Dict[Tuple[RoleRef, str], bool]] = {}
    was: Dict[_Layer, Dict[Tuple[RoleRef, str], bool]] = {}
    # Grants run before revokes.
    ordered: List[Union[GrantDefault, RevokeDefault]] = [*_all(plan, GrantDefault), *_all(plan, RevokeDefault)]
    for change in ordered:
        if change.schema in created:
            continue
        layer = (change.owner, change.schema, change.kind)
        if layer not in was:
            acl = rows.get((change.owner.oid, change.schema, change.kind))
            if acl is None and change.schema is None:
                acl = default_acl(change.kind, change.owner.oid, before.server.version)
            entries = acl.entries if acl is not None else ()
            was[layer] = {(before.ref(entry.grantee), entry.privilege): entry.grantable for entry in entries}
            held[layer] = dict(was[layer])
        now = held[layer]
        for privilege in change.privileges:
            place = (change.grantee, privilege)
            if isinstance(change, GrantDefault):
                now[place] = now.get(place, False) or change.with_grant_option
            elif not change.option_only:
                now.pop(place, None)
            elif place in now:
                now[place] = False
    changes: List[Change] = []
    for layer, entries_before in was.items():
        changes.extend(_default_layer(layer, held[layer], entries_before))
    return changes


def _default_layer(
    layer: _Layer, now: Mapping[Tuple[RoleRef, str], bool], was: Mapping[Tuple[RoleRef, str], bool]
) -> Iterator[Change]:
    give: Dict[Tuple[RoleRef, bool], Set[str]] = defaultdict(set)
    take: Dict[Tuple[RoleRef, bool], Set[str]] = defaultdict(set)
    for (grantee, privilege), option in was.items():
        held = now.get((grantee, privilege))
        if held is None or (option and not held):
            give[grantee, option].add(privilege)
        elif held and not option:
            take[grantee, True].add(privilege)
    for grantee, privilege in now.keys() - was.keys():
        take[grantee, False].add(privilege)
    for (grantee, option), privileges in sorted(give.items()):
        yield GrantDefault(*layer, grantee, frozenset(privileges), option)
    for (grantee, option), privileges in sorted(take.items()):
        yield RevokeDefault(*layer, grantee, frozenset(privileges), option)


# ---- privileges on objects -------------------------------------------------------------------------------------------

#: Grantee, privilege and grantor of an entry.
_Row = Tuple[int, str, int]
#: The entries of an ACL, each with whether it has the grant option.
_Entries = Dict[_Row, bool]
#: An object's entries under None, and those of its columns.
_Places = Dict[Optional[str], _Entries]

#: An object as changes name it: kind, OID and name. A parameter that nobody has a privilege on has no OID of its own.
_Name = Tuple[str, int, str]


class _Op(NamedTuple):
    """One step of the way back: an entry that is granted or revoked in its grantor's name."""

    stage: int
    level: int
    column: Optional[str]
    grantee: int
    privilege: str
    grantor: int
    #: Granted with grant option, or just the grant option revoked.
    option: bool
    revoke: bool


#: The stages, in their order. Columns come after their relations, whose REVOKE takes them along.
_GIVE, _UNHANG, _TAKE, _GIVE_COLUMNS, _TAKE_COLUMNS = range(5)


@dataclass
class _Alike:
    """Objects with the same entries that the plan does the same to."""

    kind: str
    schema: Optional[str]
    owner: int
    new_owner: int
    places: Mapping[Optional[str], Acl]
    changes: List[Union[Grant, Revoke]]
    objects: List[Object] = field(default_factory=list)


class _Privileges:
    """The way back for privileges on objects."""

    def __init__(
        self, plan: Plan, before: State, after: State, powers: Powers, moved: Mapping[int, AlterSchemaOwner]
    ) -> None:
        self._plan = plan
        self._before = before
        self._after = after
        self._powers = powers
        self._moved = moved
        self._notes: Dict[Tuple[str, str, str, str], List[str]] = {}

    def changes(self) -> Tuple[List[List[Change]], List[str]]:
        """The changes in stages, and what comes back otherwise than it was."""
        #: By what alike objects share, the privileges of each.
        steps: Dict[Tuple[int, int, int], List[Union[Grant, Revoke]]] = defaultdict(list)
        for alike in self._grouped():
            for (stage, level), found in self._steps(alike).items():
                # Schemas get theirs first and lose theirs last, because what lies in them is named through them.
                place = 1 if alike.kind != "schema" else 0 if stage == _GIVE else 2
                steps[place, stage, level].extend(found)
        stages: List[List[Change]] = []
        notes = [note for found in self._notes.values() for note in found[:3]]
        for _key, found in sorted(steps.items()):
            changes, refused = authorize_privileges(merge_columns(found), self._after, self._powers)
            stages.append([*self._lends(changes), *changes])
            notes += [_refused(problem) for problem in refused]
        return stages, notes

    def _lends(self, changes: Sequence[Change]) -> Iterator[Change]:
        """Schemas for those in whose name something runs and who cannot use them."""
        asked: Set[Tuple[RoleRef, str]] = set()
        for change in changes:
            if isinstance(change, (Grant, Revoke)) and change.run_as is not None and change.target.schema is not None:
                place = (change.run_as, change.target.schema)
                if place not in asked and not self._powers.uses_schema(change.run_as.oid, change.target.schema):
                    lending = self._powers.lending(*place)
                    if lending is not None:
                        yield lending
                asked.add(place)

    # ---- what there was

    def _grouped(self) -> Iterable[_Alike]:
        created = {change.name for change in _all(self._plan, CreateSchema)}
        touched: Dict[_Name, List[Union[Grant, Revoke]]] = defaultdict(list)
        targets: Dict[_Name, Tuple[Target, Object]] = {}
        grants = _all(self._plan, Grant)
        first = [change for change in grants if not change.late]
        last = [change for change in grants if change.late]
        # As statements are: columns before their relations, leaves before their grantors.
        revokes = sorted(_all(self._plan, Revoke), key=lambda change: (not change.target.columns, -change.depth))
        ordered: List[Union[Grant, Revoke]] = [*first, *revokes, *last]
        for change in ordered:
            target = change.target
            if target.schema in created or (isinstance(change, Revoke) and change.covered):
                continue
            for item in target.objects:
                if target.kind == "schema" and item.name in created:
                    continue
                name = (target.kind, item.oid, item.name)
                touched[name].append(change)
                targets.setdefault(name, (target, item))
        for oid, moved in self._moved.items():
            item = Object(oid, moved.name)
            name = ("schema", oid, moved.name)
            touched.setdefault(name, [])
            targets.setdefault(name, (Target("schema", None, (item,), moved.owner), item))
        acls = self._acls(touched)
        grouped: Dict[Any, _Alike] = {}
        for name, changes in touched.items():
            target, item = targets[name]
            places = acls.get(name, {})
            owner = target.owner.oid
            if target.kind == "schema" and item.oid in self._moved:
                owner = self._moved[item.oid].before.oid
            key = (
                target.kind,
                target.schema,
                owner,
                target.owner.oid,
                frozenset((column, id(acl)) for column, acl in places.items()),
                tuple(map(id, changes)),
            )
            if key not in grouped:
                grouped[key] = _Alike(target.kind, target.schema, owner, target.owner.oid, places, changes)
            grouped[key].objects.append(item)
        return grouped.values()

    def _acls(self, touched: Mapping[_Name, object]) -> Mapping[_Name, Mapping[Optional[str], Acl]]:
        """What these objects and their columns have now. Equal ACLs are one object, for the sake of grouping."""
        found: Dict[_Name, Dict[Optional[str], Acl]] = defaultdict(dict)
        same: Dict[Acl, Acl] = {}
        for kind in sorted({name[0] for name in touched}):
            for group in groups_of(self._before, kind):
                acl = same.setdefault(group.acl, group.acl)
                for item in group.members.objects():
                    name = (kind, item.oid, item.name)
                    if name in touched:
                        found[name][group.column] = acl
        return found

    # ---- what the plan makes of it

    def _simulate(self, alike: _Alike) -> _Places:
        """The entries after the plan (ExecGrant_Relation and its like, recursive_revoke in PostgreSQL's acl.c)."""
        owner = alike.new_owner
        places = _entries(alike.places)
        if alike.owner != owner:
            places = {None: _entries({None: alike.places[None].owned_by(alike.owner, owner)})[None]}
        for change in alike.changes:
            columns: Sequence[Optional[str]] = change.target.columns or (None,)
            for column in columns:
                if isinstance(change, Grant):
                    acting = change.run_as.oid if change.run_as is not None else self._after.server.current_user
                    grantor = self._grantor(acting, owner, change.privileges, places, column)
                    for privilege in change.privileges:
                        entries = places.setdefault(column, {})
                        row = (change.grantee.oid, privilege, grantor)
                        entries[row] = entries.get(row, False) or change.with_grant_option
                    continue
                for privilege in change.privileges:
                    row = (change.grantee.oid, privilege, change.grantor.oid)
                    for place in [column] if column is not None else list(places):
                        _revoke(places.get(place, {}), row, option_only=change.option_only, cascade=change.cascade)
        return places

    def _grantor(
        self, acting: int, owner: int, privileges: FrozenSet[str], places: _Places, column: Optional[str]
    ) -> int:
        """Who a GRANT is recorded for (select_best_grantor in acl.c)."""
        if acting == owner or self._powers.is_superuser(acting):
            return owner
        held = [row for place in {None, column} for row, option in places.get(place, {}).items() if option]
        for role in self._powers.acts_with(acting):
            if role == owner or all(any(r[0] == role and r[1] == p for r in held) for p in privileges):
                return role
        return acting

    # ---- the way back

    def _steps(self, alike: _Alike) -> Mapping[Tuple[int, int], List[Union[Grant, Revoke]]]:
        now = self._simulate(alike)
        was = _entries(alike.places)
        if alike.owner != alike.new_owner:
            entries = frozenset(Entry(*row, option) for row, option in now.get(None, {}).items())
            now = _entries({None: Acl(entries).owned_by(alike.new_owner, alike.owner)})
        gathered: Dict[Tuple[Any, ...], Set[str]] = defaultdict(set)
        for op in self._ops(alike, now, was):
            gathered[op._replace(privilege="")].add(op.privilege)
        found: Dict[Tuple[int, int], List[Union[Grant, Revoke]]] = defaultdict(list)
        objects = tuple(sorted(alike.objects))
        for (stage, level, column, grantee, _any, grantor, option, revoke), privileges in gathered.items():
            columns = () if column is None else (column,)
            target = Target(alike.kind, alike.schema, objects, self._after.ref(alike.owner), columns)
            ref = self._after.ref(grantee)
            run_as = None
            if grantor not in (alike.owner, self._after.server.current_user):
                run_as = self._after.ref(grantor)
            words = frozenset(privileges)
            if revoke:
                step: Union[Grant, Revoke] = Revoke(
                    target, ref, words, self._after.ref(grantor), option_only=option, run_as=run_as
                )
            else:
                step = Grant(target, ref, words, option, run_as=run_as)
            # What hangs on an entry goes before it, what it hangs on comes before it.
            found[stage, -level if revoke else level].append(step)
        return found

    def _ops(self, alike: _Alike, now: _Places, was: _Places) -> Iterator[_Op]:
        owner = alike.owner
        top, before = now.setdefault(None, {}), was.get(None, {})
        kept: Set[_Row] = set()
        yield from self._give(alike, None, top, before, frozenset(), kept)
        columns = sorted(c for c in {*now, *was} if c is not None)
        goes = {row: option for row, option in top.items() if row not in before and row not in kept}
        lowers = {row for row, option in top.items() if option and row in before and not before[row]} - kept
        for row in sorted({*goes, *lowers}):
            yield from self._unhang(row, top, now, columns, owner)
        depth = _depths(owner, top, frozenset())
        for row in sorted({*goes, *lowers}):
            whole = row in goes
            yield _Op(_TAKE, depth.get((row[2], row[1]), 0), None, *row, not whole, True)
            for place in now.values():
                _revoke(place, row, option_only=not whole, cascade=False)
        outer = frozenset((row[0], row[1]) for row, option in top.items() if option)
        for column in columns:
            here, there = now.setdefault(column, {}), was.get(column, {})
            kept = set()
            yield from self._give(alike, column, here, there, outer, kept)
            depth = _depths(owner, here, outer)
            for row in sorted(here):
                if row in kept:
                    continue
                level = depth.get((row[2], row[1]), 0)
                if row not in there:
                    yield _Op(_TAKE_COLUMNS, level, column, *row, False, True)
                elif here[row] and not there[row]:
                    yield _Op(_TAKE_COLUMNS, level, column, *row, True, True)

    def _give(
        self,
        alike: _Alike,
        column: Optional[str],
        now: _Entries,
        was: _Entries,
        outer: FrozenSet[Tuple[int, str]],
        kept: Set[_Row],
    ) -> Iterator[_Op]:
        """What is missing, owner first. ``kept`` gets what takes the place of an entry that cannot come back."""
        stage = _GIVE if column is None else _GIVE_COLUMNS
        missing = {row: option for row, option in was.items() if row not in now or (option and not now[row])}
        level = 0
        while missing:
            holders = {(row[0], row[1]) for row, option in now.items() if option} | outer
            ready = [row for row in missing if row[2] == alike.owner or (row[2], row[1]) in holders]
            ready = [row for row in ready if row[2] == alike.owner or self._may_act(row[2], alike.owner)]
            if not ready:
                break
            for row in sorted(ready):
                option = missing.pop(row)
                now[row] = option or now.get(row, False)
                yield _Op(stage, level, column, *row, option, False)
            level += 1
        for row in sorted(missing):
            # Nobody can act as its grantor, so the owner stands in.
            option, instead = missing[row], (row[0], row[1], alike.owner)
            kept.add(instead)
            self._note(alike, column, row)
            if instead not in now or (option and not now[instead]):
                now[instead] = option
                yield _Op(stage, level, column, *instead, option, False)

    def _may_act(self, role: int, owner: int) -> bool:
        """Whether something can be granted in this role's name that is not taken for the owner's."""
        powers = self._powers
        return role in self._after.roles and not powers.owns(role, owner) and powers.can_become(role)

    def _note(self, alike: _Alike, column: Optional[str], row: _Row) -> None:
        grantee, grantor, owner = (self._after.ref(oid).name for oid in (row[0], row[2], alike.owner))
        target = Target(
            alike.kind, alike.schema, tuple(sorted(alike.objects)), self._after.ref(alike.owner),
            () if column is None else (column,),
        )  # fmt: skip
        label = label_of(Grant(target, self._after.ref(row[0]), frozenset((row[1],))))
        found = self._notes.setdefault((label, grantee, grantor, owner), [])
        found.append(f"{row[1]} on {label} was granted to {grantee} by {grantor}; it comes back as granted by {owner}")

    def _unhang(self, row: _Row, top: _Entries, now: _Places, columns: Sequence[str], owner: int) -> Iterator[_Op]:
        """Entries of columns that hang on a relation's entry that goes: they go first, and come back afterwards."""
        grantee, privilege, _grantor = row
        if grantee == owner or any(r[:2] == row[:2] and option and r != row for r, option in top.items()):
            return
        for column in columns:
            entries = now.get(column, {})
            if any(r[:2] == row[:2] and option and r != row for r, option in entries.items()):
                continue
            for level, hanging in _hanging(entries, grantee, privilege):
                del entries[hanging]
                yield _Op(_UNHANG, level, column, *hanging, False, True)


def _entries(acls: Mapping[Optional[str], Acl]) -> _Places:
    return {
        column: {(entry.grantee, entry.privilege, entry.grantor): entry.grantable for entry in acl.entries}
        for column, acl in acls.items()
    }


def _revoke(entries: _Entries, row: _Row, *, option_only: bool, cascade: bool) -> None:
    """Take an entry, or its grant option, and with ``cascade`` what hangs on it."""
    if row not in entries:
        return
    option = entries[row]
    if option_only:
        entries[row] = False
    else:
        del entries[row]
    if not cascade or not option:
        return
    grantee, privilege, _grantor = row
    if any(r[:2] == row[:2] and held for r, held in entries.items()):
        return
    for hanging in [r for r in entries if r[2] == grantee and r[1] == privilege]:
        _revoke(entries, hanging, option_only=False, cascade=True)


def _hanging(entries: _Entries, grantor: int, privilege: str) -> List[Tuple[int, _Row]]:
    """What a grantor gave, and those gave to whom it was given; the farthest last."""
    found: List[Tuple[int, _Row]] = []
    pending = [(0, grantor)]
    seen = {grantor}
    for level, above in pending:
        for row in sorted(entries):
            if row[1] == privilege and row[2] == above:
                found.append((level, row))
                if row[0] not in seen:
                    seen.add(row[0])
                    pending.append((level + 1, row[0]))
    return found


def _depths(owner: int, entries: _Entries, outer: FrozenSet[Tuple[int, str]]) -> Mapping[Tuple[int, str], int]:
    """How many grantors lie between the owner and a holder of the grant option, by holder and privilege."""
    depth: Dict[Tuple[int, str], int] = dict.fromkeys(outer, 1)
    pending = [row for row, option in entries.items() if option]
    level = 0
    while pending:
        known = [row for row in pending if row[2] == owner or (row[2], row[1]) in depth]
        if not known:
            break
        level += 1
        for row in known:
            depth.setdefault((row[0], row[1]), level)
        pending = [row for row in pending if row not in known]
    return depth
