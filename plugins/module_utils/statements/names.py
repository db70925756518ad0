# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What statements name, as SQL: roles, databases and privileges, and remarks about them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, FrozenSet, Iterable, Tuple

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

from ..privileges import KINDS, PUBLIC_OID
from ..state import RoleRef


def text(composed: Any) -> str:
    """The SQL text of something composed."""
    return str(composed.as_string(None))


def role(ref: RoleRef) -> Any:
    """A role's name, or the word PUBLIC."""
    return sql.SQL("PUBLIC") if ref.oid == PUBLIC_OID else sql.Identifier(ref.name)


def roles(refs: Iterable[RoleRef]) -> Any:
    """The names of several roles."""
    return sql.SQL(", ").join([role(ref) for ref in refs])


def in_order(privileges: Iterable[str], kind: str) -> Tuple[str, ...]:
    """Privileges in the order in which they are always written."""
    return _in_order(frozenset(privileges), kind)


@lru_cache(maxsize=1000)
def _in_order(privileges: FrozenSet[str], kind: str) -> Tuple[str, ...]:
    order = list(KINDS[kind].privileges)
    return tuple(sorted(privileges, key=order.index))


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
