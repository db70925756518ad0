# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Reading what a cluster has beside objects in schemas: roles, memberships, schemas, databases, parameters, and what is
known about passwords.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ..manifest.model import INFINITY
from ..manifest.settings import fold, is_custom
from ..privileges import HIDDEN_SETTINGS
from ..records import replace
from ..state import Database, LockTable, Membership, Role, Schema, Server, Setting, State
from ..store import COLUMNS, PRIVILEGES, SCHEMA, TABLE, PasswordFacts, StoreTable, records_of, split_comment
from .queries import EXPLODED, SESSION, SYSTEM_IDENTIFIER, Acls, fetch

if TYPE_CHECKING:
    from psycopg import Connection

    from .queries import Query

# Sessions outlive their role. The role of one that began just now may be younger than the snapshot, so it is asked for
# past that, too.
_SERVER = f"""
SELECT current_setting('server_version'),
       current_database(),
       (SELECT oid::int8 FROM pg_database WHERE datname = current_database()),
       has_function_privilege('pg_control_system()', 'EXECUTE'),
       pg_is_in_recovery(),
       (SELECT oid::int8 FROM pg_roles WHERE rolname = session_user),
       (SELECT oid::int8 FROM pg_roles WHERE rolname = current_user),
       (extract(epoch FROM now()) * 1000000)::int8,
       current_setting('createrole_self_grant', true),
       current_setting('password_encryption'),
       coalesce((SELECT has_language_privilege(oid, 'USAGE') FROM pg_language WHERE lanname = 'plpgsql'), false),
       has_column_privilege('pg_authid', 'rolpassword', 'SELECT'),
       has_database_privilege(current_database(), 'CREATE'),
       ARRAY(SELECT {SESSION} FROM pg_stat_activity
             WHERE usesysid <> 0 AND pg_get_userbyid(usesysid) = 'unknown (OID=' || usesysid || ')'
               AND NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = usesysid)
             ORDER BY pid),
       current_setting('synchronous_standby_names') <> ''
           AND current_setting('synchronous_commit') NOT IN ('off', 'local')
           AND has_function_privilege('pg_stat_get_wal_senders()', 'EXECUTE'),
       current_setting('max_locks_per_transaction')::int4,
       current_setting('max_connections')::int4 + current_setting('max_prepared_transactions')::int4
"""

# What the run has to know before it may look at the table of fingerprints, which anybody could have made: index scans
# for one table at most.
_STORE = """
SELECT n.nspowner::int8, has_schema_privilege(n.oid, 'CREATE'), c.relowner::int8,
       array_remove(ARRAY[CASE WHEN NOT has_schema_privilege(n.oid, 'USAGE') THEN 'USAGE' END], NULL)
           || ARRAY(SELECT p FROM unnest(%s::text[]) AS p WHERE NOT has_table_privilege(c.oid, p)),
       array_remove(ARRAY[
           CASE WHEN c.relkind <> 'r' OR c.relpersistence <> 'p' OR c.relispartition
                     OR EXISTS (SELECT FROM pg_inherits WHERE c.oid IN (inhrelid, inhparent))
                THEN 'it is not an ordinary table' END,
           CASE WHEN ARRAY(SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod) FROM pg_attribute AS a
                           WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
                     <> %s::text[]
                THEN 'it has other columns' END,
           CASE WHEN EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid) THEN 'it has triggers' END,
           CASE WHEN EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid) THEN 'it has rules' END,
           CASE WHEN c.relrowsecurity OR EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid)
                THEN 'it has row-level security' END,
           CASE WHEN EXISTS (SELECT FROM pg_attrdef WHERE adrelid = c.oid) THEN 'it has defaults' END,
           CASE WHEN EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND contype NOT IN ('p', 'n'))
                THEN 'it has checks or other constraints' END,
           CASE WHEN (SELECT count(*) FROM pg_index WHERE indrelid = c.oid) <> 1
                     OR NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary AND indnatts = 1
                                    AND indkey[0] = 1)
                THEN 'its only index is not the primary key on role' END
       ], NULL)
FROM pg_namespace AS n
LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = %s
WHERE n.nspname = %s
"""

_RECORDS = f"SELECT role::int8, system_identifier, fingerprint FROM {SCHEMA}.{TABLE}"

_VERIFIERS = "SELECT oid::int8, rolpassword FROM pg_authid WHERE rolname = ANY(%s)"

_ROLES = """
SELECT r.oid::int8, r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin,
       r.rolreplication, r.rolbypassrls, r.rolconnlimit,
       CASE WHEN isfinite(r.rolvaliduntil) THEN (extract(epoch FROM r.rolvaliduntil) * 1000000)::numeric(30)::text
            ELSE r.rolvaliduntil::text END,
       r.rolconfig, d.description
FROM pg_roles AS r
LEFT JOIN pg_shdescription AS d ON d.objoid = r.oid AND d.classoid = 'pg_authid'::regclass
"""

_ROLE_COLUMNS = (
    "oid",
    "name",
    "superuser",
    "inherit",
    "createrole",
    "createdb",
    "login",
    "replication",
    "bypassrls",
    "connection_limit",
    "valid_until",
    "config",
    "comment",
)

_MEMBERSHIPS = """
SELECT roleid::int8, member::int8, grantor::int8, admin_option{options}
FROM pg_auth_members
"""

# Temporary and toast schemas are nobody's business.
_SCHEMAS = r"""
SELECT oid::int8, nspname, nspowner::int8, nspacl IS NOT NULL, {exploded}
FROM pg_namespace
WHERE nspname !~ '^pg_(toast|temp_|toast_temp_)'
""".format(exploded=EXPLODED.format(acl="coalesce(nspacl, acldefault('n', nspowner))"))

_DATABASES = """
SELECT oid::int8, datname, datdba::int8, datacl IS NOT NULL, {exploded}
FROM pg_database
WHERE datname = current_database() OR datname = ANY(%s)
""".format(exploded=EXPLODED.format(acl="coalesce(datacl, acldefault('d', datdba))"))

# One row for each parameter, some 400. pg_settings leaves out what only superusers may see, and what SHOW ALL hides.
_SETTINGS = "SELECT name, context FROM pg_settings"
_SETTING_GRANTS = """
SELECT n.name FROM unnest(%s::text[]) AS n(name) WHERE has_parameter_privilege(n.name, 'SET')
"""


def read_cluster(connection: Connection[Any], databases: Iterable[str], verifiers_of: Sequence[str] = ()) -> State:
    """Roles, memberships, schemas, the named databases beside the connected one, and what is known about passwords: two
    round trips.

    The state has no groups yet: which schemas matter is decided on its schemas. ``verifiers_of``: the roles whose
    stored passwords are read where the executor may.
    """
    version = connection.info.server_version // 10000
    options = ", inherit_option, set_option" if version >= 16 else ""
    server, roles, memberships, schemas, found, store = fetch(
        connection,
        [
            (_SERVER, ()),
            (_ROLES, ()),
            (_MEMBERSHIPS.format(options=options), ()),
            (_SCHEMAS, ()),
            (_DATABASES, (sorted(databases),)),
            (_STORE, (list(PRIVILEGES), list(COLUMNS), TABLE, SCHEMA)),
        ],
    )
    full_version, database, database_oid, may_identify, in_recovery, session_user, current_user, *others = server[0]
    clock, self_grant, encryption, sealing, may_read, may_create, strays, synchronous, *lock_table = others
    by_oid = {row[0]: _role(row) for row in roles}
    trusted = {session_user, current_user} | {role.oid for role in by_oid.values() if role.superuser}
    table = _store_table(store, trusted, may_create)
    queries = {
        "identifier": (SYSTEM_IDENTIFIER, ()) if may_identify else None,
        "records": (_RECORDS, ()) if table.readable else None,
        "verifiers": (_VERIFIERS, (list(verifiers_of),)) if verifiers_of and may_read else None,
    }
    asked = {name: query for name, query in queries.items() if query is not None}
    answers = dict(zip(asked, fetch(connection, list(asked.values())))) if asked else {}
    identifier = answers["identifier"][0][0] if "identifier" in answers else ""
    lines = {row[0]: record for row in roles for _text, record in [split_comment(row[-1])] if record is not None}
    records, ownerless = records_of(answers.get("records", []), lines, by_oid, identifier)
    acls = Acls()
    return State(
        server=Server(
            version=version,
            full_version=full_version,
            database=database,
            database_oid=database_oid,
            system_identifier=identifier,
            in_recovery=in_recovery,
            session_user=session_user,
            current_user=current_user,
            clock=clock,
            self_grant=frozenset(re.findall("inherit|set", (self_grant or "").lower())),
            synchronous=synchronous,
            lock_table=LockTable(*lock_table),
        ),
        roles=by_oid,
        memberships=tuple(
            sorted((Membership(*row) for row in memberships), key=lambda m: (m.group, m.member, m.grantor))
        ),
        schemas={row[0]: Schema(row[0], row[1], row[2], acls(row[4], row[3])) for row in schemas},
        databases={row[0]: Database(row[0], row[1], row[2], acls(row[4], row[3])) for row in found},
        stray_sessions=tuple(strays),
        passwords=PasswordFacts(
            table=table,
            records=records,
            strays=ownerless,
            verifiers=dict(answers["verifiers"]) if "verifiers" in answers else None,
            encryption=encryption,
            sealing=sealing,
        ),
    )


def _store_table(rows: Sequence[Tuple[Any, ...]], trusted: Set[int], may_create: bool) -> StoreTable:
    """The table of fingerprints. Only what the executor or a superuser owns is trusted."""
    if not rows:
        return StoreTable(may_create=may_create)
    schema_owner, creates, table_owner, lacking, faults = rows[0]
    strange = [] if schema_owner in trusted else ["its schema belongs to a role that is no superuser"]
    if table_owner is None:
        return StoreTable(schema=True, faults=tuple(strange), may_create=creates)
    if table_owner not in trusted:
        strange.append("it belongs to a role that is no superuser")
    return StoreTable(True, True, (*strange, *faults), tuple(lacking), owner_only=bool(strange) and not faults)


def _role(row: Tuple[Any, ...]) -> Role:
    attributes = dict(zip(_ROLE_COLUMNS, row))
    comment, _record = split_comment(attributes["comment"])
    # name=value; a name has no equals sign.
    config = dict(item.split("=", 1) for item in attributes["config"] or ())
    until = _instant(attributes["valid_until"])
    return Role(**{**attributes, "valid_until": until, "comment": comment, "config": config})


def _instant(text: Optional[str]) -> Any:
    if text is None or text == INFINITY:
        return INFINITY
    return text if text == "-infinity" else int(text)


def read_role_oids(connection: Connection[Any], names: Sequence[str]) -> Dict[str, int]:
    """The OIDs of some roles by name: one round trip, one index scan for each."""
    (rows,) = fetch(connection, [("SELECT rolname, oid::int8 FROM pg_roles WHERE rolname = ANY(%s)", (list(names),))])
    return dict(rows)


def read_settings(connection: Connection[Any], names: Iterable[str]) -> Mapping[str, Setting]:
    """The server's parameters, and which of these the executor holds SET on: one round trip."""
    queries: List[Query] = [(_SETTINGS, ())]
    if connection.info.server_version >= 150000:
        queries.append((_SETTING_GRANTS, (sorted(names),)))
    rows, *grants = fetch(connection, queries)
    version = connection.info.server_version // 10000
    contexts = {name: context for name, (context, since) in HIDDEN_SETTINGS.items() if since <= version}
    contexts.update(rows)
    found = {fold(name): Setting(name, context) for name, context in contexts.items()}
    for (name,) in grants[0] if grants else ():
        if name in found or is_custom(name):
            found[name] = replace(found.get(name, Setting(name, "custom")), granted=True)
    return found
