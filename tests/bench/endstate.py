# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end state of a run as plain rows: read from the catalog, or worked out from a scenario.

A row is a role with what it may do, a membership, or an object with the entries of its ACL. Owners' own entries and
grantors are left out: tools differ there without anybody having other rights.
"""

from __future__ import annotations

from typing import Any

import psycopg
from scenario import FUNCTIONS, PROFILES, VIEWS, Scenario

Row = tuple[str, ...]
EndState = frozenset[Row]

#: The server's own roles have smaller OIDs.
_FIRST_OID = 16384

_ENTRIES = """
    SELECT coalesce(string_agg(entry, ' ' ORDER BY entry COLLATE "C"), '') FROM (
        SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee) END || '='
               || string_agg(privilege_type || CASE WHEN is_grantable THEN '*' ELSE '' END, ','
                             ORDER BY privilege_type COLLATE "C") AS entry
        FROM aclexplode(coalesce({acl}, acldefault('{kind}', {owner}))) WHERE grantee <> {owner} GROUP BY grantee
    ) AS entries"""

_OBJECTS = f"""
SELECT 'schema', nspname::text, '', ({_ENTRIES.format(acl="nspacl", kind="n", owner="nspowner")})
FROM pg_namespace WHERE oid >= {_FIRST_OID} AND nspname !~ '^pg_'
UNION ALL
SELECT CASE relkind WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' ELSE 'table' END, relnamespace::regnamespace::text,
       relname::text,
       CASE relkind WHEN 'S' THEN ({_ENTRIES.format(acl="relacl", kind="s", owner="relowner")})
       ELSE ({_ENTRIES.format(acl="relacl", kind="r", owner="relowner")}) END
FROM pg_class WHERE oid >= {_FIRST_OID} AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
UNION ALL
SELECT 'function', pronamespace::regnamespace::text, proname || '(' || pg_get_function_identity_arguments(oid) || ')',
       ({_ENTRIES.format(acl="proacl", kind="f", owner="proowner")})
FROM pg_proc WHERE oid >= {_FIRST_OID}
UNION ALL
SELECT 'column', attrelid::regclass::text, attname::text, attacl::text FROM pg_attribute WHERE attacl IS NOT NULL
AND attrelid >= {_FIRST_OID}
UNION ALL
SELECT 'default', coalesce(defaclnamespace::regnamespace::text, ''), defaclobjtype::text, defaclacl::text
FROM pg_default_acl"""

_ROLES = f"""
SELECT 'role', rolname::text,
       concat_ws(' ', CASE WHEN rolcanlogin THEN 'LOGIN' END, CASE WHEN rolsuper THEN 'SUPERUSER' END,
                 CASE WHEN rolcreaterole THEN 'CREATEROLE' END, CASE WHEN rolcreatedb THEN 'CREATEDB' END,
                 CASE WHEN rolreplication THEN 'REPLICATION' END, CASE WHEN rolbypassrls THEN 'BYPASSRLS' END)
FROM pg_roles WHERE oid >= {_FIRST_OID}"""

_MEMBERSHIPS = f"""
SELECT DISTINCT 'membership', pg_get_userbyid(roleid)::text, pg_get_userbyid(member)::text,
       CASE WHEN admin_option THEN 'ADMIN' ELSE '' END
FROM pg_auth_members WHERE roleid >= {_FIRST_OID} OR member >= {_FIRST_OID}"""


def read(connection: psycopg.Connection[Any]) -> EndState:
    """What the catalog holds: three queries, one row for each object."""
    return frozenset(row for query in (_ROLES, _MEMBERSHIPS, _OBJECTS) for row in connection.execute(query))


def expected(scenario: Scenario) -> EndState:
    """What a run has to end in."""
    rows: set[Row] = {("role", role, "") for role in scenario.profile_roles}
    for number, login in enumerate(scenario.logins):
        rows.add(("role", login, "LOGIN"))
        rows.update(("membership", group, login, "") for group in scenario.groups_of(number))
    for schema in scenario.schema_names:
        rows.add(("schema", schema, "", _entries(schema, {profile: ["USAGE"] for profile in PROFILES})))
        names = {
            "table": [f"t{number}" for number in range(1, scenario.tables + 1)],
            "sequence": [f"t{number}_id_seq" for number in range(1, scenario.tables + 1)],
            "view": [f"v{number}" for number in range(1, VIEWS + 1)],
            "function": [f"f{number}(a integer, b text)" for number in range(1, FUNCTIONS + 1)],
        }
        for kind, objects in names.items():
            entries = _entries(schema, {name: rights[kind] for name, rights in PROFILES.items() if kind in rights})
            rows.update((kind, schema, name, entries) for name in objects)
    return frozenset(rows)


def _entries(schema: str, rights: dict[str, list[str]]) -> str:
    return " ".join(sorted(f"{schema}-{profile}={','.join(sorted(names))}" for profile, names in rights.items()))


def differences(wanted: EndState, found: EndState, limit: int = 10) -> list[str]:
    """What differs, one line each, at most `limit` of either sort. Empty where both are the same."""
    lines = []
    for word, rows in (("missing", wanted - found), ("unexpected", found - wanted)):
        lines += [f"{word}: {' '.join(filter(None, row))}" for row in sorted(rows)[:limit]]
        if len(rows) > limit:
            lines.append(f"{word}: {len(rows) - limit} more")
    return lines
