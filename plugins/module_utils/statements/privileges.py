# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""GRANT and REVOKE on objects, batched so that alike objects and grantees share a statement."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import (
    Any,
    Dict,
    FrozenSet,
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

from ..changes import Grant, LendUsage, Revoke
from ..privileges import KINDS
from ..records import replace
from ..state import Object, RoleRef, State
from .names import in_order, role, roles, text
from .statement import BATCH, SHOWN, Statement, role_set

#: From this version on a named object is locked until the end of the transaction, so ALL … IN SCHEMA is used where it
#: fits.
LOCKS_NAMED_OBJECTS = 18

#: ALL ... IN SCHEMA is used too where one object in so many, at most, is given more and named for that. In 100 schemas
#: of 110 relations, one of them in each, that makes 203 locks out of 11,103. It takes longer, because ALL ... IN SCHEMA
#: reads the whole of pg_class several times for each schema.
FEW_OF = 4

#: How many objects each ALL … IN SCHEMA form would reach, by form (TABLES, …) and schema.
Inventory = Mapping[Tuple[str, str], int]


def inventory_of(state: State) -> Inventory:
    """What each ALL … IN SCHEMA form reaches, extension members included."""
    counts: Dict[Tuple[str, str], int] = defaultdict(int)
    for group in state.groups:
        form = KINDS[group.kind].all_in_schema
        if form and group.column is None and group.schema is not None:
            counts[form, state.schemas[group.schema].name] += group.members.count
    return counts


class _Batch(NamedTuple):
    """Statements of one batch differ only in what they name, in privileges and in grantees."""

    revoke: bool
    keyword: str
    columns: Tuple[str, ...]
    option: bool
    run_as: Optional[RoleRef]
    depth: int = 0
    cascade: bool = False


class Composed(NamedTuple):
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
        privileges = in_order(everywhere, changes[0].target.kind)
        behind = [change for change in changes if change.privileges & everywhere]
        return {privileges: behind}, [replace(change, privileges=change.privileges - everywhere) for change in some]
    alike: _Behind = {}
    for change in changes:
        alike.setdefault(in_order(change.privileges, change.target.kind), []).append(change)
    whole = {
        privileges: found
        for privileges, found in alike.items()
        if len({item.oid for change in found for item in change.target.objects}) == covered
    }
    return whole, [change for privileges, found in alike.items() if privileges not in whole for change in found]


class Privileges:
    """GRANT and REVOKE on objects."""

    def __init__(self, inventory: Inventory, version: int) -> None:
        self._inventory = inventory
        self._version = version
        # Several statements name the same objects, and quoting is what composing spends its time on.
        self._quoted: Dict[Tuple[str, Optional[str], Object], str] = {}

    def batched(self, changes: Sequence[Union[Grant, Revoke]], *, inside_first: bool = False) -> List[Composed]:
        """One statement per privilege set, kind and grantee set; a schema that is meant as a whole is named as such.

        ``inside_first``: objects before schemas, columns before their relations, and leaves before their grantors.
        """
        whole, rest = self._whole_schemas(changes)
        composed = [*self._on_schemas(whole), *self._on_objects(rest)]
        rank = {kind.keyword: position for position, kind in reversed(list(enumerate(KINDS.values())))}

        def order(item: Composed) -> Tuple[Any, ...]:
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
    ) -> Iterator[Composed]:
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
            yield Composed(batch, frozenset(named), [statement], place)

    def _on_objects(self, changes: Sequence[Tuple[_Batch, Union[Grant, Revoke]]]) -> Iterator[Composed]:
        # What each bucket of objects is given.
        given: Dict[Tuple[_Batch, Optional[str], Tuple[Object, ...]], _Behind] = {}
        for batch, change in changes:
            target = change.target
            key = (batch, target.schema, target.objects)
            given.setdefault(key, {}).setdefault(in_order(change.privileges, target.kind), []).append(change)
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
                names = self._names(batch, part, len(part))
                few = self._names(batch, part, SHOWN) if len(part) > SHOWN else None
                buckets = {id(behind): behind for _item, _schema, behind in part}
                for privileges, grantees in what:
                    found = [change for behind in buckets.values() for change in behind[privileges]]
                    statement = Statement.of(self._statement(batch, privileges, names, grantees), tuple(found))
                    if few is not None:
                        shortened = text(self._statement(batch, privileges, few, grantees))
                        statement = statement._replace(shortened=shortened)
                    composed.append(statement)
            place = (named[0][0].oid, batch.columns, batch.option, batch.cascade, what)
            yield Composed(batch, schemas, composed, place)

    def _names(self, batch: _Batch, part: Sequence[Tuple[Object, Optional[str], _Behind]], most: int) -> Any:
        """What a statement names after ON: the first ``most`` objects, and how many more."""
        shown = part[:most]
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
            return sql.SQL("REVOKE {}{} ON {} FROM {}{}").format(option, words, names, roles(grantees), end)
        option = sql.SQL(" WITH GRANT OPTION" if batch.option else "")
        return sql.SQL("GRANT {} ON {} TO {}{}").format(words, names, roles(grantees), option)


def _privilege(name: str, columns: Tuple[str, ...]) -> Any:
    word = sql.SQL(name)
    if not columns:
        return word
    return sql.SQL("{} ({})").format(word, sql.SQL(", ").join([sql.Identifier(column) for column in columns]))


def sections(composed: Sequence[Composed], lends: Sequence[LendUsage], back: Statement) -> Iterator[Statement]:
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
