# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Schemas and their owners."""

from __future__ import annotations

from typing import Any

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

from ..changes import AlterSchemaOwner, CreateSchema
from .names import role


def create_schema(change: CreateSchema) -> Any:
    statement = sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(change.name))
    if change.owner is not None:
        statement = sql.SQL("{} AUTHORIZATION {}").format(statement, role(change.owner))
    return statement


def alter_schema_owner(change: AlterSchemaOwner) -> Any:
    return sql.SQL("ALTER SCHEMA {} OWNER TO {}").format(sql.Identifier(change.name), role(change.owner))
