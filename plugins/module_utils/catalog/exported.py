# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What only an export reads: initial ACLs, untrusted languages, and what a manifest cannot say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, FrozenSet, List

from ..export.extras import Extras
from .objects import UNTRUSTED
from .queries import EXPLODED, Acls, fetch

if TYPE_CHECKING:
    from psycopg import Connection

    from .queries import Query

# A few hundred rows of PostgreSQL's own, and those of extensions.
_INITIAL = """
SELECT i.classoid::regclass::text, i.objoid::int8, a.attname::text, {exploded}
FROM pg_init_privs AS i
LEFT JOIN pg_attribute AS a ON i.classoid = 'pg_class'::regclass AND i.objsubid <> 0 AND a.attrelid = i.objoid
     AND a.attnum = i.objsubid AND NOT a.attisdropped
WHERE i.objsubid = 0 OR a.attnum IS NOT NULL
""".format(exploded=EXPLODED.format(acl="i.initprivs"))

_EXTENSION_SCHEMAS = """
SELECT objid::int8 FROM pg_depend
WHERE classid = 'pg_namespace'::regclass AND refclassid = 'pg_extension'::regclass AND deptype = 'e'
"""

_DATABASE_SETTINGS = """
SELECT s.setrole::int8, d.datname, s.setconfig
FROM pg_db_role_setting AS s
JOIN pg_database AS d ON d.oid = s.setdatabase
WHERE s.setrole <> 0
ORDER BY d.datname
"""

_MAY_SEE_PASSWORDS = "SELECT has_column_privilege('pg_authid', 'rolpassword', 'SELECT')"
_PASSWORDS = "SELECT oid::int8 FROM pg_authid WHERE rolpassword IS NOT NULL"

# Row types of tables and the like: PostgreSQL keeps an ACL for some of them, and no rule of a manifest names them.
_UNCOVERED = """
SELECT n.nspname, t.typname,
       CASE WHEN t.typtype = 'm' THEN 'multirange' WHEN t.typrelid <> 0 THEN 'row type' ELSE 'array' END,
       t.typowner::int8, {exploded}
FROM pg_type AS t
JOIN pg_namespace AS n ON n.oid = t.typnamespace
WHERE t.typacl IS NOT NULL
  AND NOT (t.typtype IN ('b', 'c', 'd', 'e', 'r')
           AND (t.typelem = 0 OR t.typsubscript <> 'array_subscript_handler'::regproc)
           AND (t.typrelid = 0 OR t.typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'c')))
ORDER BY n.nspname, t.typname
""".format(exploded=EXPLODED.format(acl="t.typacl"))

# The TOAST tables of temporary tables end with their session. Columns cost one scan of pg_attribute.
_TOAST = """
SELECT c.relname, NULL::name, c.relowner::int8, {table}
FROM pg_class AS c
WHERE c.relkind = 't' AND c.relacl IS NOT NULL AND c.relpersistence <> 't'
UNION ALL
SELECT c.relname, a.attname, c.relowner::int8, {column}
FROM pg_attribute AS a
JOIN pg_class AS c ON c.oid = a.attrelid
WHERE c.relkind = 't' AND a.attacl IS NOT NULL AND NOT a.attisdropped AND c.relpersistence <> 't'
""".format(table=EXPLODED.format(acl="c.relacl"), column=EXPLODED.format(acl="a.attacl"))


def read_extras(connection: Connection[Any]) -> Extras:
    """What only an export asks: one round trip, and one more where the executor may see who has a password."""
    queries: List[Query] = [
        (_INITIAL, ()),
        (_EXTENSION_SCHEMAS, ()),
        (UNTRUSTED, ()),
        (_DATABASE_SETTINGS, ()),
        (_UNCOVERED, ()),
        (_TOAST, ()),
        (_MAY_SEE_PASSWORDS, ()),
    ]
    initial, schemas, untrusted, settings, uncovered, toast, may_see = fetch(connection, queries)
    passwords: FrozenSet[int] = frozenset()
    if may_see[0][0]:
        passwords = frozenset(row[0] for row in fetch(connection, [(_PASSWORDS, ())])[0])
    acls = Acls()
    return Extras(
        initial={(catalog, oid, column): acls(exploded) for catalog, oid, column, exploded in initial},
        extension_schemas=frozenset(row[0] for row in schemas),
        database_settings=tuple(
            (role, database, tuple(sorted(item.split("=", 1)[0] for item in config or ())))
            for role, database, config in settings
        ),
        passwords=passwords,
        uncovered=tuple((schema, name, what, owner, acls(acl)) for schema, name, what, owner, acl in uncovered),
        toast=tuple((name, column, owner, acls(acl)) for name, column, owner, acl in toast),
        untrusted=frozenset(row[0] for row in untrusted),
    )
