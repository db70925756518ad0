# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Schemas: which are to be created, and which belong to somebody else than declared."""

from __future__ import annotations

from typing import Iterable, List, Optional

from ..changes import AlterSchemaOwner, Change, CreateSchema, SchemaChange
from ..policy import Policy
from ..records import replace
from ..state import RoleRef, Schema, State, default_acl


def schema_changes(policy: Policy, state: State) -> List[SchemaChange]:
    """Every difference of schemas themselves. ``default_owner`` owns what is created and never moves what exists."""
    changes: List[SchemaChange] = []
    for desired in policy.schemas.values():
        schema = state.schema_named(desired.name)
        if schema is None:
            changes.append(CreateSchema(desired.name, _ref(state, desired.create_owner), desired.source))
            continue
        owner = _ref(state, desired.owner)
        if owner is not None and owner.oid != schema.owner:
            changes.append(AlterSchemaOwner(schema.oid, schema.name, owner, state.ref(schema.owner), desired.source))
    return changes


def _ref(state: State, name: Optional[str]) -> Optional[RoleRef]:
    oid = state.role_oid(name) if name is not None else None
    return None if oid is None else state.ref(oid)


def with_schema_changes(state: State, changes: Iterable[Change]) -> State:
    """The state as it will be once these changes of schemas are made: new schemas, and merged ACLs of moved ones."""
    schemas: List[Schema] = []
    for change in changes:
        if isinstance(change, CreateSchema):
            owner = change.owner.oid if change.owner else state.server.current_user
            acl = default_acl("schema", owner, state.server.version)
            for row in state.default_acls:
                # A new schema gets the global default privileges that its owner has for schemas.
                if row.kind == "schema" and row.schema is None and row.owner == owner:
                    acl = replace(row.acl, explicit=True)
            schemas.append(Schema(-1 - len(schemas), change.name, owner, acl))
        elif isinstance(change, AlterSchemaOwner):
            schema = state.schemas[change.oid]
            schemas.append(
                replace(schema, owner=change.owner.oid, acl=schema.acl.owned_by(schema.owner, change.owner.oid))
            )
    return state.with_schemas(schemas)
