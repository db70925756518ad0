# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Single differences as the result lists them."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

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
    Target,
    Withheld,
)
from ..privileges import KINDS
from ..records import replace
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


def _single(change: Union[Grant, Revoke], *, brief: bool) -> Iterator[Tuple[Union[Grant, Revoke], Dict[str, Any]]]:
    """The change for each of its objects, or as a whole with three names and a count."""
    target = change.target
    columns = list(target.columns)
    if brief and len(target.objects) > SHOWN:
        names = ", ".join(item.label for item in target.objects[:SHOWN])
        label = f"{names} and {len(target.objects) - SHOWN} more"
        yield change, object_of(target.kind, target.schema, label, columns)
        return
    for item in target.objects:
        one: Target = target._replace(objects=(item,))
        yield replace(change, target=one), object_of(target.kind, target.schema, item.label, columns)


def suppressed_items(changes: Iterable[Union[Revoke, RevokeDefault]], *, brief: bool) -> List[Dict[str, Any]]:
    """The revokes that the override holds back: one item per role, kind, object, columns and grantor."""
    items: List[Dict[str, Any]] = []
    for change in changes:
        if isinstance(change, RevokeDefault):
            items.append(
                {
                    "role": change.grantee.name,
                    "kind": "default_privilege",
                    "object": object_of(change.kind, change.schema, None),
                    "owner": change.owner.name,
                    "privileges": ordered(change.privileges, change.kind),
                    "grantor": change.owner.name,
                    "sql": statement_of(change),
                }
            )
            continue
        kind = "object"
        if change.option_only:
            kind = "grant_option"
        elif change.target.columns:
            kind = "column"
        for single, described in _single(change, brief=brief):
            items.append(
                {
                    "role": change.grantee.name,
                    "kind": kind,
                    "object": described,
                    "owner": change.target.owner.name,
                    "privileges": ordered(change.privileges, change.target.kind),
                    "grantor": change.grantor.name,
                    "sql": statement_of(single, brief=brief),
                }
            )
    return sorted(items, key=_place)


def _place(item: Dict[str, Any]) -> Tuple[Any, ...]:
    """Where an item stands in its list: the catalog's order changes with every GRANT."""
    described = item["object"] or {}
    kinds = list(KINDS)
    kind = described.get("type")
    return (
        item["role"] or "",
        kinds.index(kind) if kind in kinds else len(kinds),
        *(str(described.get(key) or "") for key in ("schema", "name", "columns")),
        item["sql"],
    )


def withheld_items(withheld: Iterable[Withheld], *, brief: bool) -> List[Dict[str, Any]]:
    """What was different and not done, with the statement that would have done it and the reason."""
    items: List[Dict[str, Any]] = []
    for item in withheld:
        if isinstance(item.change, (Grant, Revoke)):
            # An extension may bring hundreds of objects, and all of them are passed by for the same reason.
            few = brief or item.reason == "extension"
            for single, described in _single(item.change, brief=few):
                items.append(_withheld(item, single, described, brief=few))
        else:
            items.append(_withheld(item, item.change, None, brief=brief))
    return sorted(items, key=_place)


def _withheld(item: Withheld, change: Change, described: Optional[Dict[str, Any]], *, brief: bool) -> Dict[str, Any]:
    role: Optional[str] = None
    privileges: List[str] = []
    if isinstance(change, (Grant, Revoke)):
        role, privileges = change.grantee.name, ordered(change.privileges, change.target.kind)
    elif isinstance(change, (GrantDefault, RevokeDefault)):
        role, privileges = change.grantee.name, ordered(change.privileges, change.kind)
        described = {**object_of(change.kind, change.schema, None), "owner": change.owner.name}
    elif isinstance(change, (AddMember, RemoveMember)):
        role, described = change.member.name, object_of("role", None, change.group.name)
    elif isinstance(change, (CreateRole, AlterRole, CommentRole, SetConfig, SetPassword, DropRole)):
        role, described = change.role.name, object_of("role", None, change.role.name)
    elif isinstance(change, (CreateSchema, AlterSchemaOwner)):
        owner = change.owner
        role, described = owner.name if owner else None, object_of("schema", None, change.name)
    return {
        "change": _NAMES[type(change)],
        "role": role,
        "object": described,
        "privileges": privileges,
        "sql": statement_of(change, brief=brief),
        "reason": item.reason,
    }
