# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Default privileges: those of the same owner, kind and grantees share a statement."""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, Iterator, List, Optional, Sequence, Tuple, Union

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

from ..changes import GrantDefault, RevokeDefault
from ..privileges import KINDS
from ..state import RoleRef
from .names import in_order, role, roles
from .statement import Statement


def alter_defaults(
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
            in_order(change.privileges, change.kind),
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
                composed = sql.SQL("{} REVOKE {}{} ON {} FROM {}").format(head, only, words, keyword, roles(names))
            else:
                end = sql.SQL(" WITH GRANT OPTION" if option else "")
                composed = sql.SQL("{} GRANT {} ON {} TO {}{}").format(head, words, keyword, roles(names), end)
            yield run_as, Statement.of(composed, tuple(change for schema in schemas for change in by_schema[schema]))
