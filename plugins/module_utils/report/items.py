# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Single differences as the result lists them."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from ..changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    Change,
    CommentRole,
    CreateRole,
    CreateSchema,
    DropOwned,
    DropRole,
    Grant,
    GrantDefault,
    ReassignOwned,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetConfig,
    SetPassword,
    Withheld,
)
from ..privileges import KINDS
from ..records import replace
from ..state import Object
from ..statements.order import statement_of
from ..statements.statement import SHOWN

_NAMES = {
    CreateRole: "create_role",
    AlterRole: "alter_role",
    CommentRole: "alter_role",
    SetConfig: "alter_role",
    SetPassword: "alter_role",
    AddMember: "grant_membership",
    RemoveMember: "revoke_membership",
    CreateSchema: "create_schema",
    AlterSchemaOwner: "alter_schema_owner",
    Grant: "grant",
    Revoke: "revoke",
    GrantDefault: "grant_default_privilege",
    RevokeDefault: "revoke_default_privilege",
    ReassignOwned: "reassign_owned",
    DropOwned: "drop_owned",
    DropRole: "drop_role",
}


def ordered(privileges: Iterable[str], kind: str) -> List[str]:
    """Privileges in the order of the table of kinds."""
    order = list(KINDS[kind].privileges) if kind in KINDS else []
    return sorted(privileges, key=lambda name: (order.index(name) if name in order else len(order), name))


def object_of(kind: str, schema: Optional[str], name: Optional[str], columns: Iterable[str] = ()) -> Dict[str, Any]:
    """An object as the result spells it."""
    return {"type": kind, "schema": schema, "name": name, "columns": list(columns)}


#: One of the objects that a change names, and what it is called; None where the item is about the change as a whole.
_Part = Tuple[str, Optional[Object]]

#: Where an item stands in its list. The catalog's order is none, it changes with every GRANT.
_Place = Tuple[str, int, str, str, str]

_RANKS = {kind: rank for rank, kind in enumerate(KINDS)}


def count_suppressed(changes: Iterable[Union[Revoke, RevokeDefault]]) -> int:
    """How many items these are, each object by itself."""
    return sum(len(change.target.objects) if isinstance(change, Revoke) else 1 for change in changes)


def count_withheld(withheld: Iterable[Withheld]) -> int:
    """How many items these are, each object by itself."""
    found = 0
    for item in withheld:
        change = item.change
        found += len(change.target.objects) if isinstance(change, (Grant, Revoke)) and not _is_brief(item) else 1
    return found


def _is_brief(item: Withheld) -> bool:
    """An extension may bring hundreds of objects, and all of them are passed by for the same reason."""
    return item.reason == "extension"


def _parts(change: Union[Grant, Revoke], *, brief: bool) -> Iterator[_Part]:
    """The change for each of its objects, or as a whole with three names and a count."""
    named = change.target.objects
    if brief and len(named) > SHOWN:
        names = ", ".join(item.label for item in named[:SHOWN])
        yield f"{names} and {len(named) - SHOWN} more", None
        return
    for item in named:
        yield item.label, item


def _alone(change: Union[Grant, Revoke], item: Optional[Object]) -> Union[Grant, Revoke]:
    """The change for just one of its objects; None for all of them."""
    if item is None or len(change.target.objects) == 1:
        return change
    return replace(change, target=change.target._replace(objects=(item,)))


def _place(role: Optional[str], described: Optional[Mapping[str, Any]]) -> _Place:
    found: Mapping[str, Any] = described or {}
    schema, name, columns = (str(found.get(key) or "") for key in ("schema", "name", "columns"))
    return role or "", _RANKS.get(found.get("type", ""), len(_RANKS)), schema, name, columns


def _place_of(change: Union[Grant, Revoke], name: str) -> _Place:
    target = change.target
    columns = str(list(target.columns)) if target.columns else ""
    return change.grantee.name, _RANKS[target.kind], target.schema or "", name, columns


class Items:
    """Items of a list in its order, made when somebody asks for them: a backlog may have a hundred thousand of them, of
    which a result shows some hundred, and the statement of each takes its time.
    """

    def __init__(self) -> None:
        self._found: List[Tuple[_Place, Callable[[], Dict[str, Any]]]] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, place: _Place, make: Callable[[], Dict[str, Any]]) -> None:
        """Add an item. Its statement settles the order where places are equal."""
        self._found.append((place, make))

    def first(self, most: Optional[int] = None) -> List[Dict[str, Any]]:
        """The first ``most`` items."""
        items: List[Dict[str, Any]] = []
        place = itemgetter(0)
        for _same, alike in groupby(sorted(self._found, key=place), key=place):
            if most is not None and len(items) >= most:
                break
            items += sorted((make() for _at, make in alike), key=lambda item: str(item["sql"]))
        return items[:most]


def suppressed_items(changes: Iterable[Union[Revoke, RevokeDefault]], *, brief: bool) -> Items:
    """The revokes that the override holds back: one item per role, kind, object, columns and grantor."""
    items = Items()
    for change in changes:
        if isinstance(change, RevokeDefault):
            described = object_of(change.kind, change.schema, None)
            items.add(_place(change.grantee.name, described), partial(_default, change, described))
            continue
        for name, part in _parts(change, brief=brief):
            items.add(_place_of(change, name), partial(_suppressed, change, name, part, brief))
    return items


def _default(change: RevokeDefault, described: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "role": change.grantee.name,
        "kind": "default_privilege",
        "object": described,
        "owner": change.owner.name,
        "privileges": ordered(change.privileges, change.kind),
        "grantor": change.owner.name,
        "sql": statement_of(change),
    }


def _suppressed(change: Revoke, name: str, part: Optional[Object], brief: bool) -> Dict[str, Any]:
    kind = "object"
    if change.option_only:
        kind = "grant_option"
    elif change.target.columns:
        kind = "column"
    return {
        "role": change.grantee.name,
        "kind": kind,
        "object": _named(change, name),
        "owner": change.target.owner.name,
        "privileges": ordered(change.privileges, change.target.kind),
        "grantor": change.grantor.name,
        "sql": statement_of(_alone(change, part), brief=brief),
    }


def _named(change: Union[Grant, Revoke], name: str) -> Dict[str, Any]:
    return object_of(change.target.kind, change.target.schema, name, change.target.columns)


def withheld_items(withheld: Iterable[Withheld], *, brief: bool) -> Items:
    """What was different and not done, with the statement that would have done it and the reason."""
    items = Items()
    for item in withheld:
        change = item.change
        if isinstance(change, (Grant, Revoke)):
            few = brief or _is_brief(item)
            for name, part in _parts(change, brief=few):
                items.add(_place_of(change, name), partial(_withheld_part, item, change, name, part, few))
            continue
        role, privileges, described = _about(change)
        items.add(_place(role, described), partial(_withheld, item, change, role, privileges, described, brief))
    return items


def _withheld_part(
    item: Withheld, change: Union[Grant, Revoke], name: str, part: Optional[Object], brief: bool
) -> Dict[str, Any]:
    privileges = ordered(change.privileges, change.target.kind)
    alone = _alone(change, part)
    return _withheld(item, alone, change.grantee.name, privileges, _named(change, name), brief)


def _about(change: Change) -> Tuple[Optional[str], List[str], Optional[Dict[str, Any]]]:
    """Whose difference it is, which privileges it is about, and what is described as its object."""
    role: Optional[str] = None
    privileges: List[str] = []
    described: Optional[Dict[str, Any]] = None
    if isinstance(change, (GrantDefault, RevokeDefault)):
        role, privileges = change.grantee.name, ordered(change.privileges, change.kind)
        described = {**object_of(change.kind, change.schema, None), "owner": change.owner.name}
    elif isinstance(change, (AddMember, RemoveMember)):
        role, described = change.member.name, object_of("role", None, change.group.name)
    elif isinstance(change, (CreateRole, AlterRole, CommentRole, SetConfig, SetPassword, DropRole)):
        role, described = change.role.name, object_of("role", None, change.role.name)
    elif isinstance(change, (CreateSchema, AlterSchemaOwner)):
        owner = change.owner
        role, described = owner.name if owner else None, object_of("schema", None, change.name)
    return role, privileges, described


def _withheld(
    item: Withheld,
    change: Change,
    role: Optional[str],
    privileges: List[str],
    described: Optional[Dict[str, Any]],
    brief: bool,
) -> Dict[str, Any]:
    return {
        "change": _NAMES[type(change)],
        "role": role,
        "object": described,
        "privileges": privileges,
        "sql": statement_of(change, brief=brief),
        "reason": item.reason,
    }
