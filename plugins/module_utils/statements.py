# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Changes as SQL: ordered by what has to come first, batched so that alike objects and grantees share a statement.

Composed with ``psycopg.sql`` only, without a connection, so the same changes always give the same text.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from dataclasses import replace
from typing import (
    Any,
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
    Union,
)

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

from .belongings import listed
from .changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    Change,
    CommentRole,
    CreateRole,
    CreateSchema,
    CreateStore,
    DropOwned,
    DropRole,
    Grant,
    GrantDefault,
    LendUsage,
    ReassignOwned,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetConfig,
    SetPassword,
    Value,
)
from .instants import instant
from .masking import MASK
from .privileges import KINDS, PUBLIC_OID
from .state import Object, RoleRef, State
from .store import creation

#: The most objects that one statement names.
BATCH = 500

#: How many objects a statement names that is only there to be read.
SHOWN = 3

#: From this version on a named object is locked until the end of the transaction, so ALL … IN SCHEMA is used where it
#: fits.
LOCKS_NAMED_OBJECTS = 18

#: ALL ... IN SCHEMA is used too where one object in so many, at most, is given more and named for that. In 100 schemas
#: of 110 relations, one of them in each, that makes 203 locks out of 11,103 and takes some 1.7 times as long.
FEW_OF = 4

#: How many objects each ALL … IN SCHEMA form would reach, by form (TABLES, …) and schema.
Inventory = Mapping[Tuple[str, str], int]

_FLAGS = ("superuser", "createdb", "createrole", "replication", "bypassrls", "login", "inherit")


def inventory_of(state: State) -> Inventory:
    """What each ALL … IN SCHEMA form reaches, extension members included."""
    counts: Dict[Tuple[str, str], int] = defaultdict(int)
    for group in state.groups:
        form = KINDS[group.kind].all_in_schema
        if form and group.column is None and group.schema is not None:
            counts[form, state.schemas[group.schema].name] += group.members.count
    return counts


class Statement(NamedTuple):
    """One statement of a plan, and the changes that it makes: none where it only sets a role or lends a schema.

    ``text``: as it is sent, with a mask for a password. ``database``: as in the changes. ``whole``: it names schemas
    and not the objects in them.
    """

    text: str
    changes: Tuple[Change, ...] = ()
    database: Optional[str] = None
    whole: bool = False

    @classmethod
    def of(cls, composed: Any, changes: Tuple[Change, ...] = ()) -> Statement:
        """Something composed as a statement. Raises UnicodeEncodeError where a name cannot be spelt."""
        return cls(text(composed), changes)


def statements(
    changes: Sequence[Change],
    inventory: Inventory,
    version: int,
    *,
    session_role: Optional[str] = None,
    brief: bool = False,
) -> List[str]:
    """The texts of ``composed_statements``."""
    composed = composed_statements(changes, inventory, version, session_role=session_role, brief=brief)
    return [statement.text for statement in composed]


def composed_statements(
    changes: Sequence[Change],
    inventory: Inventory,
    version: int,
    *,
    session_role: Optional[str] = None,
    brief: bool = False,
) -> List[Statement]:
    """The plan's statements in the order in which they run. ``brief``: to be read only, three names and a count each.

    First those of other databases, which are committed before the rest, each with a remark that says where. In every
    database: roles, attributes, settings, comments, passwords (masked), memberships (removals first where an addition
    would close a circle), schemas, grants, default privileges, revokes (columns before relations, objects before
    schemas and databases, leaves before their grantors), what a revoke takes along and the plan keeps, other removals
    of memberships with dependents first, what retired roles own, what they hold, the roles themselves.
    """
    places: Dict[Optional[str], List[Change]] = {}
    for change in changes:
        places.setdefault(getattr(change, "database", None), []).append(change)
    own = places.pop(None, [])
    return [
        *(
            Statement(f"{text(in_database(str(database)))} {statement}", behind, database)
            for database, there in places.items()
            for statement, behind, *_here in _in_one_database(there, {}, version, session_role, brief)
        ),
        *_in_one_database(own, inventory, version, session_role, brief),
    ]


def _in_one_database(
    changes: Sequence[Change], inventory: Inventory, version: int, session_role: Optional[str], brief: bool
) -> List[Statement]:
    composer = _Privileges(inventory, version, brief)
    lends = [change for change in changes if isinstance(change, LendUsage)]
    additions = [change for change in changes if isinstance(change, AddMember)]
    removals = [change for change in changes if isinstance(change, RemoveMember)]
    early = {change.group.oid for change in removals if change.early}
    back = role_set(session_role)
    early_grants = composer.batched([change for change in changes if isinstance(change, Grant) and not change.late])
    # Schemas come first, because naming what lies in one takes USAGE. Then the executor's own, so that each other role
    # is set once for them and once for the rest.
    early_grants.sort(
        key=lambda item: (item.batch.keyword != KINDS["schema"].keyword, item.batch.run_as or RoleRef(-1, ""))
    )
    revokes = composer.batched(
        [change for change in changes if isinstance(change, Revoke) and not change.covered], inside_first=True
    )
    late_grants = composer.batched([change for change in changes if isinstance(change, Grant) and change.late])
    created = [change for change in changes if isinstance(change, CreateSchema)]
    moved = [change for change in changes if isinstance(change, AlterSchemaOwner)]
    return [
        *(Statement.of(_create_role(change), (change,)) for change in changes if isinstance(change, CreateRole)),
        *_alter_roles(change for change in changes if isinstance(change, AlterRole)),
        *(Statement.of(_set_config(change), (change,)) for change in changes if isinstance(change, SetConfig)),
        *(Statement.of(_comment(change), (change,)) for change in changes if isinstance(change, CommentRole)),
        *(
            Statement.of(part, (change,))
            for change in changes
            if isinstance(change, CreateStore)
            for part in creation(change)
        ),
        *(Statement.of(password_statement(change), (change,)) for change in changes if isinstance(change, SetPassword)),
        # What an early removal takes along is granted anew before it.
        *_add_members(change for change in additions if change.exists and change.group.oid in early),
        *(Statement.of(_remove_member(change), (change,)) for change in early_removals(removals)),
        *_add_members(change for change in additions if not (change.exists and change.group.oid in early)),
        *_in_names([(change.run_as, Statement.of(_create_schema(change), (change,))) for change in created], back),
        *_in_names([(change.run_as, Statement.of(_alter_schema_owner(change), (change,))) for change in moved], back),
        *_sections(early_grants, lends, back),
        *_in_names(_defaults([change for change in changes if isinstance(change, GrantDefault)]), back),
        *_in_names(_defaults([change for change in changes if isinstance(change, RevokeDefault)]), back),
        *_sections(revokes, lends, back),
        *_sections(late_grants, lends, back),
        *(Statement.of(_remove_member(change), (change,)) for change in late_removals(removals)),
        *_reassign(change for change in changes if isinstance(change, ReassignOwned)),
        # One by one: a list of roles fails where one of them granted something to another.
        *(Statement.of(_drop_owned(change), (change,)) for change in changes if isinstance(change, DropOwned)),
        *_drop_roles([change for change in changes if isinstance(change, DropRole)]),
    ]


def early_removals(changes: Iterable[RemoveMember]) -> List[RemoveMember]:
    """The removals of memberships that make room for others, in their order: dependents first."""
    return sorted((change for change in changes if change.early), key=_dependents_first)


def late_removals(changes: Iterable[RemoveMember]) -> List[RemoveMember]:
    """The removals of memberships that come last, in their order: dependents first."""
    return sorted((change for change in changes if not change.early), key=_dependents_first)


def _dependents_first(change: RemoveMember) -> Tuple[int, int, str, str]:
    return change.late, -change.depth, change.group.name, change.member.name


def text(composed: Any) -> str:
    """The SQL text of something composed."""
    return str(composed.as_string(None))


def statement_of(change: Change, *, brief: bool = False) -> str:
    """The statement that one change would be by itself; empty where no statement can."""
    if isinstance(change, (GrantDefault, RevokeDefault)) and change.kind not in KINDS:
        return ""
    try:
        (statement, *more) = statements([change], {}, 0, brief=brief)
    except UnicodeEncodeError:
        return ""  # the name holds bytes that no statement can spell
    statement = "; ".join([statement, *more])
    if isinstance(change, Revoke) and change.grantor.oid != change.target.owner.oid:
        # An owner's REVOKE does not reach what another grantor gave.
        grantor = text(role(change.grantor))
        return f"SET LOCAL ROLE {grantor}; {statement}; SET LOCAL ROLE NONE"
    return statement


def role(ref: RoleRef) -> Any:
    """A role's name, or the word PUBLIC."""
    return sql.SQL("PUBLIC") if ref.oid == PUBLIC_OID else sql.Identifier(ref.name)


def _roles(refs: Iterable[RoleRef]) -> Any:
    return sql.SQL(", ").join([role(ref) for ref in refs])


def _attributes(attributes: Mapping[str, Value]) -> Any:
    words: List[Any] = []
    for name in _FLAGS:
        if name in attributes:
            words.append(sql.SQL(("" if attributes[name] else "NO") + name.upper()))
    if "connection_limit" in attributes:
        words.append(sql.SQL(f"CONNECTION LIMIT {int(attributes['connection_limit'])}"))
    if "valid_until" in attributes:
        # There is no VALID UNTIL NULL; infinity means the same.
        words.append(sql.SQL("VALID UNTIL {}").format(sql.Literal(instant(attributes["valid_until"]))))
    return sql.SQL(" ").join(words)


def _create_role(change: CreateRole) -> Any:
    statement = sql.SQL("CREATE ROLE {}").format(role(change.role))
    if change.attributes:
        statement = sql.SQL("{} {}").format(statement, _attributes(change.attributes))
    return statement


def _alter_roles(changes: Iterable[AlterRole]) -> Iterator[Statement]:
    merged: Dict[RoleRef, List[AlterRole]] = defaultdict(list)
    for change in changes:
        merged[change.role].append(change)
    for ref, found in merged.items():
        attributes: Dict[str, Value] = {}
        for change in found:
            attributes.update(change.attributes)
        yield Statement.of(sql.SQL("ALTER ROLE {} {}").format(role(ref), _attributes(attributes)), tuple(found))


def _set_config(change: SetConfig) -> Any:
    # Each part by itself, as in _name.
    name = sql.Identifier(*change.name.split("."))
    if change.value is None:
        return sql.SQL("ALTER ROLE {} RESET {}").format(role(change.role), name)
    value = sql.SQL(", ").join([sql.Literal(element) for element in change.value])
    return sql.SQL("ALTER ROLE {} SET {} = {}").format(role(change.role), name, value)


def _comment(change: CommentRole) -> Any:
    value = sql.Literal(change.comment) if change.comment else sql.SQL("NULL")
    return sql.SQL("COMMENT ON ROLE {} IS {}").format(role(change.role), value)


def password_statement(change: SetPassword, secret: str = MASK) -> Any:
    """The statement that sets a password or takes it away: as it is shown, unless the secret is given."""
    value = sql.SQL("NULL") if change.clear else sql.Literal(secret)
    return sql.SQL("ALTER ROLE {} PASSWORD {}").format(role(change.role), value)


def _add_members(changes: Iterable[AddMember]) -> Iterator[Statement]:
    alike: Dict[Tuple[RoleRef, Tuple[Tuple[str, bool], ...], Optional[RoleRef]], List[AddMember]] = defaultdict(list)
    for change in changes:
        options = tuple((name, change.options[name]) for name in ("admin", "inherit", "set") if name in change.options)
        alike[change.group, options, change.grantor].append(change)
    for (group, options, grantor), found in alike.items():
        statement = sql.SQL("GRANT {} TO {}").format(role(group), _roles(change.member for change in found))
        if options == (("admin", True),):
            # The only spelling that PostgreSQL 14 and 15 know.
            statement = sql.SQL("{} WITH ADMIN OPTION").format(statement)
        elif options:
            words = ", ".join(f"{name.upper()} {str(value).upper()}" for name, value in options)
            statement = sql.SQL("{} WITH {}").format(statement, sql.SQL(words))
        if grantor is not None:
            statement = sql.SQL("{} GRANTED BY {}").format(statement, role(grantor))
        yield Statement.of(statement, tuple(found))


def _remove_member(change: RemoveMember) -> Any:
    option = sql.SQL(f"{change.option.upper()} OPTION FOR " if change.option else "")
    statement = sql.SQL("REVOKE {}{} FROM {}").format(option, role(change.group), role(change.member))
    if change.grantor is not None:
        statement = sql.SQL("{} GRANTED BY {}").format(statement, role(change.grantor))
    return statement


def _reassign(changes: Iterable[ReassignOwned]) -> Iterator[Statement]:
    by_heir: Dict[RoleRef, List[ReassignOwned]] = defaultdict(list)
    for change in changes:
        by_heir[change.heir].append(change)
    for heir, found in by_heir.items():
        owners = _roles(change.role for change in found)
        yield Statement.of(sql.SQL("REASSIGN OWNED BY {} TO {}").format(owners, role(heir)), tuple(found))


def _drop_owned(change: DropOwned) -> Any:
    statement = sql.SQL("DROP OWNED BY {}").format(role(change.role))
    notes = []
    if change.policies:
        notes.append(f"deletes policies: {listed(change.policies, len(change.policies))}")
    if change.destroyed_count:
        # An approved digest holds for these objects only, those without a name here included.
        others = f" ({change.destroyed_mark})" if change.destroyed_mark else ""
        notes.append(f"destroys: {listed(change.destroyed, change.destroyed_count)}{others}")
    return sql.SQL("{} {}").format(statement, remark("; ".join(notes))) if notes else statement


def remark(words: str) -> Any:
    """A comment inside a statement, which no name can end."""
    # Comments nest in PostgreSQL, so an opening mark counts as well.
    return sql.SQL("/* {} */").format(sql.SQL(words.replace("*/", "* /").replace("/*", "/ *")))


def in_database(name: str) -> Any:
    """A comment that says in which database a statement runs, and that names it exactly."""
    quoted = text(sql.Identifier(name))
    if re.search(r"[*]/|/[*]|[\x00-\x1f\x7f]", name):
        # Such a name could end the comment, or nest another one in it, or break the line.
        escaped = re.sub(r"[*\x00-\x1f\x7f]", lambda match: f"\\{ord(match[0]):04X}", quoted.replace("\\", "\\\\"))
        quoted = f"U&{escaped}"
    return sql.SQL("/* in database {} */").format(sql.SQL(quoted))


def _drop_roles(changes: Sequence[DropRole]) -> Iterator[Statement]:
    for start in range(0, len(changes), BATCH):
        part = changes[start : start + BATCH]
        yield Statement.of(sql.SQL("DROP ROLE {}").format(_roles(change.role for change in part)), tuple(part))


def _create_schema(change: CreateSchema) -> Any:
    statement = sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(change.name))
    if change.owner is not None:
        statement = sql.SQL("{} AUTHORIZATION {}").format(statement, role(change.owner))
    return statement


def _alter_schema_owner(change: AlterSchemaOwner) -> Any:
    return sql.SQL("ALTER SCHEMA {} OWNER TO {}").format(sql.Identifier(change.name), role(change.owner))


class _Batch(NamedTuple):
    """Statements of one batch differ only in what they name, in privileges and in grantees."""

    revoke: bool
    keyword: str
    columns: Tuple[str, ...]
    option: bool
    run_as: Optional[RoleRef]
    depth: int = 0
    cascade: bool = False


class _Composed(NamedTuple):
    """Statements that run in one role's name, and the schemas that they name objects of.

    ``place``: where they stand among others of their kind. It must not depend on the order in which the catalog was
    read, which changes with every GRANT and would change the digest with it.
    """

    batch: _Batch
    schemas: FrozenSet[str]
    statements: List[Statement]
    place: Tuple[Any, ...]


#: The word of ALL ... IN SCHEMA by the keyword for single objects.
_FORMS: Mapping[str, str] = {kind.keyword: kind.all_in_schema for kind in KINDS.values() if kind.all_in_schema}

#: Privileges with their grantees: what a bucket of objects is given.
_Given = Tuple[Tuple[Tuple[str, ...], Tuple[RoleRef, ...]], ...]

#: The changes behind that, by privileges.
_Behind = Dict[Tuple[str, ...], List[Union[Grant, Revoke]]]


def _batch_of(change: Union[Grant, Revoke]) -> _Batch:
    target = change.target
    keyword = KINDS[target.kind].keyword
    if isinstance(change, Grant):
        return _Batch(False, keyword, target.columns, change.with_grant_option, change.run_as)
    return _Batch(True, keyword, target.columns, change.option_only, change.run_as, change.depth, change.cascade)


def _shared_out(changes: Sequence[Union[Grant, Revoke]], covered: int) -> Tuple[_Behind, List[Union[Grant, Revoke]]]:
    """What changes of one batch, grantee and schema do to all the ``covered`` objects of a form, by privileges, and
    what else they do to some of them.

    Where a few are given more than the others, a statement of its own names them for that. Not where many are: they
    would be locked all the same, and the server writes every object once for each statement.
    """
    reached: Dict[str, Set[int]] = defaultdict(set)
    for change in changes:
        oids = [item.oid for item in change.target.objects]
        for privilege in change.privileges:
            reached[privilege].update(oids)
    everywhere = {privilege for privilege, oids in reached.items() if len(oids) == covered}
    some = [change for change in changes if change.privileges - everywhere]
    if everywhere and FEW_OF * len({item.oid for change in some for item in change.target.objects}) <= covered:
        privileges = _ordered(everywhere, changes[0].target.kind)
        behind = [change for change in changes if change.privileges & everywhere]
        return {privileges: behind}, [replace(change, privileges=change.privileges - everywhere) for change in some]
    alike: _Behind = {}
    for change in changes:
        alike.setdefault(_ordered(change.privileges, change.target.kind), []).append(change)
    whole = {
        privileges: found
        for privileges, found in alike.items()
        if len({item.oid for change in found for item in change.target.objects}) == covered
    }
    return whole, [change for privileges, found in alike.items() if privileges not in whole for change in found]


class _Privileges:
    """GRANT and REVOKE on objects."""

    def __init__(self, inventory: Inventory, version: int, brief: bool) -> None:
        self._inventory = inventory
        self._version = version
        self._brief = brief
        # Several statements name the same objects, and quoting is what composing spends its time on.
        self._quoted: Dict[Tuple[str, Optional[str], Object], str] = {}

    def batched(self, changes: Sequence[Union[Grant, Revoke]], *, inside_first: bool = False) -> List[_Composed]:
        """One statement per privilege set, kind and grantee set; a schema that is meant as a whole is named as such.

        ``inside_first``: objects before schemas, columns before their relations, and leaves before their grantors.
        """
        whole, rest = self._whole_schemas(changes)
        composed = [*self._on_schemas(whole), *self._on_objects(rest)]
        rank = {kind.keyword: position for position, kind in reversed(list(enumerate(KINDS.values())))}

        def order(item: _Composed) -> Tuple[Any, ...]:
            position, batch = rank[item.batch.keyword], item.batch
            kind = (-position, not batch.columns, -batch.depth) if inside_first else (position, False, 0)
            return (*kind, batch.run_as.name if batch.run_as else "", *item.place)

        return sorted(composed, key=order)

    def _whole_schemas(
        self, changes: Sequence[Union[Grant, Revoke]]
    ) -> Tuple[
        Dict[Tuple[_Batch, Tuple[str, ...], RoleRef], Dict[str, List[Union[Grant, Revoke]]]],
        List[Tuple[_Batch, Union[Grant, Revoke]]],
    ]:
        """What ALL ... IN SCHEMA can say, schemas by privileges and grantee, and the changes that have to name objects.

        A single object is always named: it costs one lock, and says more.
        """
        places: Dict[Tuple[_Batch, RoleRef, Optional[str]], List[Union[Grant, Revoke]]] = {}
        for change in changes:
            places.setdefault((_batch_of(change), change.grantee, change.target.schema), []).append(change)
        whole: Dict[Tuple[_Batch, Tuple[str, ...], RoleRef], Dict[str, List[Union[Grant, Revoke]]]] = defaultdict(dict)
        rest: List[Tuple[_Batch, Union[Grant, Revoke]]] = []
        for (batch, grantee, schema), found in places.items():
            form = _FORMS.get(batch.keyword)
            covered = self._inventory.get((form, schema), 0) if form is not None and schema is not None else 0
            if self._version < LOCKS_NAMED_OBJECTS or covered < 2 or batch.columns:
                rest.extend((batch, change) for change in found)
                continue
            everywhere, elsewhere = _shared_out(found, covered)
            for privileges, behind in everywhere.items():
                whole[batch, privileges, grantee][str(schema)] = behind
            rest.extend((batch, change) for change in elsewhere)
        return whole, rest

    def _on_schemas(
        self, whole: Mapping[Tuple[_Batch, Tuple[str, ...], RoleRef], Mapping[str, List[Union[Grant, Revoke]]]]
    ) -> Iterator[_Composed]:
        alike: Dict[Tuple[_Batch, Tuple[str, ...], Tuple[str, ...]], Dict[RoleRef, List[Union[Grant, Revoke]]]] = {}
        for (batch, privileges, grantee), schemas in whole.items():
            behind = [change for found in schemas.values() for change in found]
            alike.setdefault((batch, privileges, tuple(sorted(schemas))), {})[grantee] = behind
        for (batch, privileges, named), grantees in alike.items():
            listed = sql.SQL(", ").join([sql.Identifier(schema) for schema in named])
            names = sql.SQL("ALL {} IN SCHEMA {}").format(sql.SQL(_FORMS[batch.keyword]), listed)
            ordered = sorted(grantees, key=lambda ref: ref.name)
            behind = [change for ref in ordered for change in grantees[ref]]
            composed = self._statement(batch, privileges, names, ordered)
            statement = Statement(text(composed), tuple(behind), whole=True)
            place = (0, named, batch.option, batch.cascade, ((privileges, tuple(ordered)),))
            yield _Composed(batch, frozenset(named), [statement], place)

    def _on_objects(self, changes: Sequence[Tuple[_Batch, Union[Grant, Revoke]]]) -> Iterator[_Composed]:
        # What each bucket of objects is given.
        given: Dict[Tuple[_Batch, Optional[str], Tuple[Object, ...]], _Behind] = {}
        for batch, change in changes:
            target = change.target
            key = (batch, target.schema, target.objects)
            given.setdefault(key, {}).setdefault(_ordered(change.privileges, target.kind), []).append(change)
        # Buckets that are given the same go together.
        together: Dict[Tuple[_Batch, _Given], List[Tuple[Object, Optional[str], _Behind]]] = defaultdict(list)
        for (batch, schema, objects), behind in given.items():
            what = tuple(
                sorted(
                    (privileges, tuple(sorted((change.grantee for change in found), key=lambda ref: ref.name)))
                    for privileges, found in behind.items()
                )
            )
            together[batch, what].extend((item, schema, behind) for item in objects)
        for (batch, what), named in together.items():
            schemas = frozenset(schema for _item, schema, _behind in named if schema is not None)
            composed: List[Statement] = []
            # By OID: two runs then lock objects in the same order.
            named.sort(key=lambda item: item[0].oid)
            for start in range(0, len(named), BATCH):
                part = named[start : start + BATCH]
                names = self._names(batch, part)
                buckets = {id(behind): behind for _item, _schema, behind in part}
                for privileges, grantees in what:
                    found = [change for behind in buckets.values() for change in behind[privileges]]
                    composed.append(Statement.of(self._statement(batch, privileges, names, grantees), tuple(found)))
            place = (named[0][0].oid, batch.columns, batch.option, batch.cascade, what)
            yield _Composed(batch, schemas, composed, place)

    def _names(self, batch: _Batch, part: Sequence[Tuple[Object, Optional[str], _Behind]]) -> Any:
        """What a statement names after ON."""
        shown = part[:SHOWN] if self._brief else part
        names: List[str] = []
        for item, schema, _behind in shown:
            key = (batch.keyword, schema, item)
            quoted = self._quoted.get(key)
            if quoted is None:
                quoted = self._quoted[key] = text(_name(item, schema, batch.keyword))
            names.append(quoted)
        more = f" /* and {len(part) - len(shown)} more */" if len(shown) < len(part) else ""
        return sql.SQL(f"{batch.keyword} {', '.join(names)}{more}")

    @staticmethod
    def _statement(batch: _Batch, privileges: Tuple[str, ...], names: Any, grantees: Sequence[RoleRef]) -> Any:
        words = sql.SQL(", ").join([_privilege(name, batch.columns) for name in privileges])
        if batch.revoke:
            option = sql.SQL("GRANT OPTION FOR " if batch.option else "")
            end = sql.SQL(" CASCADE" if batch.cascade else "")
            return sql.SQL("REVOKE {}{} ON {} FROM {}{}").format(option, words, names, _roles(grantees), end)
        option = sql.SQL(" WITH GRANT OPTION" if batch.option else "")
        return sql.SQL("GRANT {} ON {} TO {}{}").format(words, names, _roles(grantees), option)


def _ordered(privileges: Iterable[str], kind: str) -> Tuple[str, ...]:
    order = list(KINDS[kind].privileges)
    return tuple(sorted(privileges, key=order.index))


def _privilege(name: str, columns: Tuple[str, ...]) -> Any:
    word = sql.SQL(name)
    if not columns:
        return word
    return sql.SQL("{} ({})").format(word, sql.SQL(", ").join([sql.Identifier(column) for column in columns]))


def _in_names(composed: Iterable[Tuple[Optional[RoleRef], Statement]], back: Statement) -> Iterator[Statement]:
    """The statements with the role set in whose name each runs; the executor's own come first."""
    ordered = sorted(composed, key=lambda item: item[0] or RoleRef(0, ""))
    for run_as, found in itertools.groupby(ordered, key=lambda item: item[0]):
        if run_as is not None:
            yield role_set(run_as.name)
        for _run_as, statement in found:
            yield statement
        if run_as is not None:
            yield back


def role_set(name: Optional[str]) -> Statement:
    """Set the role, or none. Never RESET ROLE, which goes back to the login and not to session_role."""
    return Statement.of(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(name) if name else sql.SQL("NONE")))


def _sections(composed: Sequence[_Composed], lends: Sequence[LendUsage], back: Statement) -> Iterator[Statement]:
    """The statements with the role set in whose name each runs, and a schema lent where that role cannot use it."""
    lenders = {(lend.role, lend.schema): lend.run_as for lend in lends}
    for run_as, found in itertools.groupby(composed, key=lambda item: item.batch.run_as):
        section = list(found)
        if run_as is None:
            for item in section:
                yield from item.statements
            continue
        schemas: Dict[Optional[RoleRef], List[str]] = defaultdict(list)
        for schema in sorted({schema for item in section for schema in item.schemas if (run_as, schema) in lenders}):
            schemas[lenders[run_as, schema]].append(schema)
        yield from _lend("GRANT USAGE ON SCHEMA {} TO {}", run_as, schemas, back)
        yield role_set(run_as.name)
        for item in section:
            yield from item.statements
        yield back
        yield from _lend("REVOKE USAGE ON SCHEMA {} FROM {}", run_as, schemas, back)


def _lend(
    statement: str, to: RoleRef, schemas: Mapping[Optional[RoleRef], List[str]], back: Any
) -> Iterator[Statement]:
    for lender, names in schemas.items():
        if lender is not None:
            yield role_set(lender.name)
        listed = sql.SQL(", ").join([sql.Identifier(name) for name in names])
        yield Statement.of(sql.SQL(statement).format(listed, role(to)))
        if lender is not None:
            yield back


def _name(item: Object, schema: Optional[str], keyword: str) -> Any:
    if keyword == KINDS["parameter"].keyword:
        # Each part by itself: a quoted word of more than 63 bytes would be cut.
        return sql.Identifier(*item.name.split("."))
    if keyword == KINDS["large_object"].keyword:
        return sql.Literal(item.oid)
    name = sql.Identifier(item.name) if schema is None else sql.Identifier(schema, item.name)
    if item.arguments is None:
        return name
    # The server wrote the argument types, quoted and qualified as needed.
    return sql.SQL("{}({})").format(name, sql.SQL(item.arguments))


def _defaults(
    changes: Sequence[Union[GrantDefault, RevokeDefault]],
) -> Iterator[Tuple[Optional[RoleRef], Statement]]:
    alike: Dict[
        Tuple[Optional[RoleRef], RoleRef, str, Tuple[str, ...], bool, bool, bool],
        Dict[Optional[str], List[Union[GrantDefault, RevokeDefault]]],
    ] = {}
    for change in changes:
        revoke = isinstance(change, RevokeDefault)
        option = change.option_only if isinstance(change, RevokeDefault) else change.with_grant_option
        key = (
            change.run_as,
            change.owner,
            change.kind,
            _ordered(change.privileges, change.kind),
            revoke,
            option,
            change.schema is None,
        )
        alike.setdefault(key, {}).setdefault(change.schema, []).append(change)
    for (run_as, owner, kind, privileges, revoke, option, _layer), by_schema in alike.items():
        same: Dict[Tuple[RoleRef, ...], List[Optional[str]]] = defaultdict(list)
        for schema, found in by_schema.items():
            same[tuple(sorted((change.grantee for change in found), key=lambda ref: ref.name))].append(schema)
        for names, schemas in same.items():
            listed = [sql.Identifier(schema) for schema in schemas if schema is not None]
            place = sql.SQL(" IN SCHEMA {}").format(sql.SQL(", ").join(listed)) if listed else sql.SQL("")
            words = sql.SQL(", ".join(privileges))
            keyword = sql.SQL(str(KINDS[kind].default_keyword))
            head = sql.SQL("ALTER DEFAULT PRIVILEGES FOR ROLE {}{}").format(role(owner), place)
            if revoke:
                only = sql.SQL("GRANT OPTION FOR " if option else "")
                composed = sql.SQL("{} REVOKE {}{} ON {} FROM {}").format(head, only, words, keyword, _roles(names))
            else:
                end = sql.SQL(" WITH GRANT OPTION" if option else "")
                composed = sql.SQL("{} GRANT {} ON {} TO {}{}").format(head, words, keyword, _roles(names), end)
            yield run_as, Statement.of(composed, tuple(change for schema in schemas for change in by_schema[schema]))
