# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What an explanation needs beside what the run reads anyway: two round trips, which only who asks for one pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..catalog.objects import read_all_named, read_objects
from ..privileges import is_system_schema
from ..records import replace
from ..scope import Scope
from ..state import State

if TYPE_CHECKING:
    from psycopg import Connection


def with_everything(connection: Connection[Any], state: State, scope: Scope) -> State:
    """The state with the objects of all schemas but PostgreSQL's own, as far as nothing in the manifest is about those,
    and with all objects outside schemas but large objects, of which there may be millions.

    ``scope``: which schemas the state has the objects of. Costs what the inspection of as many objects costs.
    """
    others = [
        schema.oid
        for schema in state.schemas.values()
        if schema.name not in scope.inspected and not is_system_schema(schema.name)
    ]
    groups, _defaults = read_objects(connection, others)
    named = read_all_named(connection)
    told = {(group.kind, item.name) for group in state.named for item in group.members.objects()}
    more = [group for group in named if (group.kind, group.members.objects()[0].name) not in told]
    return replace(state, groups=(*state.groups, *groups), named=(*state.named, *more))
