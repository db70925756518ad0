# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Roles, their attributes, settings, comments and passwords; and how they go."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

from ..belongings import listed
from ..changes import (
    AlterRole,
    CommentRole,
    CreateRole,
    DropOwned,
    DropRole,
    ReassignOwned,
    SetConfig,
    SetPassword,
    Value,
)
from ..instants import instant
from ..masking import MASK
from ..state import RoleRef
from .names import remark, role, roles
from .statement import BATCH, Statement

_FLAGS = ("superuser", "createdb", "createrole", "replication", "bypassrls", "login", "inherit")


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


def create_role(change: CreateRole) -> Any:
    statement = sql.SQL("CREATE ROLE {}").format(role(change.role))
    if change.attributes:
        statement = sql.SQL("{} {}").format(statement, _attributes(change.attributes))
    return statement


def alter_roles(changes: Iterable[AlterRole]) -> Iterator[Statement]:
    merged: Dict[RoleRef, List[AlterRole]] = defaultdict(list)
    for change in changes:
        merged[change.role].append(change)
    for ref, found in merged.items():
        attributes: Dict[str, Value] = {}
        for change in found:
            attributes.update(change.attributes)
        yield Statement.of(sql.SQL("ALTER ROLE {} {}").format(role(ref), _attributes(attributes)), tuple(found))


def set_config(change: SetConfig) -> Any:
    # Each part by itself, as in _name.
    name = sql.Identifier(*change.name.split("."))
    if change.value is None:
        return sql.SQL("ALTER ROLE {} RESET {}").format(role(change.role), name)
    value = sql.SQL(", ").join([sql.Literal(element) for element in change.value])
    return sql.SQL("ALTER ROLE {} SET {} = {}").format(role(change.role), name, value)


def comment_role(change: CommentRole) -> Any:
    value = sql.Literal(change.comment) if change.comment else sql.SQL("NULL")
    return sql.SQL("COMMENT ON ROLE {} IS {}").format(role(change.role), value)


def password_statement(change: SetPassword, secret: str = MASK) -> Any:
    """The statement that sets a password or takes it away: as it is shown, unless the secret is given."""
    value = sql.SQL("NULL") if change.clear else sql.Literal(secret)
    return sql.SQL("ALTER ROLE {} PASSWORD {}").format(role(change.role), value)


def reassign(changes: Iterable[ReassignOwned]) -> Iterator[Statement]:
    by_heir: Dict[RoleRef, List[ReassignOwned]] = defaultdict(list)
    for change in changes:
        by_heir[change.heir].append(change)
    for heir, found in by_heir.items():
        owners = roles(change.role for change in found)
        yield Statement.of(sql.SQL("REASSIGN OWNED BY {} TO {}").format(owners, role(heir)), tuple(found))


def drop_owned(change: DropOwned) -> Any:
    statement = sql.SQL("DROP OWNED BY {}").format(role(change.role))
    notes = []
    if change.policies:
        notes.append(f"deletes policies: {listed(change.policies, len(change.policies))}")
    if change.destroyed_count:
        # An approved digest holds for these objects only, those without a name here included.
        others = f" ({change.destroyed_mark})" if change.destroyed_mark else ""
        notes.append(f"destroys: {listed(change.destroyed, change.destroyed_count)}{others}")
    return sql.SQL("{} {}").format(statement, remark("; ".join(notes))) if notes else statement


def drop_roles(changes: Sequence[DropRole]) -> Iterator[Statement]:
    for start in range(0, len(changes), BATCH):
        part = changes[start : start + BATCH]
        yield Statement.of(sql.SQL("DROP ROLE {}").format(roles(change.role for change in part)), tuple(part))
