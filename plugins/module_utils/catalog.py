# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Reading the catalog: a fixed number of queries, whatever the size of the database or of the manifest.

Cost at 10,000 tables: relations and routines are grouped by their ACL in the server (one hash aggregate each, some
0.05 s), columns take one scan of pg_attribute. What comes back grows with the number of *different* ACLs; the objects
of a group come as one JSON text that is decoded only when the plan has to name them.

All queries rely on the pinned ``search_path``, which also makes ``format_type`` qualify what lies elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from .manifest.model import INFINITY
from .manifest.settings import fold, is_custom
from .privileges import DEFAULT_ACL_KINDS, HIDDEN_SETTINGS
from .state import (
    Acl,
    Database,
    DefaultAcl,
    Entry,
    Group,
    Members,
    Membership,
    Object,
    Role,
    Schema,
    Server,
    Setting,
    State,
)
from .store import COLUMNS, PRIVILEGES, SCHEMA, TABLE, PasswordFacts, StoreTable, records_of, split_comment

if TYPE_CHECKING:
    from psycopg import Connection

    Query = Tuple[str, Sequence[Any]]

_EXPLODED = """(
    SELECT json_agg(json_build_array(e.grantee::int8, e.privilege_type, e.grantor::int8, e.is_grantable))::text
    FROM aclexplode({acl}) AS e
)"""

#: What an open session is called. Every login may see whose a session is, its database and its application.
SESSION = """'session ' || pid || coalesce(' in database ' || datname, '')
    || coalesce(', application ' || nullif(application_name, ''), '')"""

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
           AND has_function_privilege('pg_stat_get_wal_senders()', 'EXECUTE')
"""

_SYSTEM_IDENTIFIER = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()"

# The permissions come first, because a query that calls a function is refused as a whole.
_IDENTITY = """
SELECT pg_catalog.pg_is_in_recovery(),
       pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE'),
       pg_catalog.has_function_privilege('pg_catalog.pg_walfile_name(pg_catalog.pg_lsn)', 'EXECUTE')
           AND pg_catalog.has_function_privilege('pg_catalog.pg_current_wal_lsn()', 'EXECUTE')
"""
_TIMELINE = "SELECT pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)"

# Without pg_read_all_stats a login sees that there are standbys, not which ones count.
_SYNCHRONOUS = """
SELECT EXISTS (SELECT FROM pg_stat_get_wal_senders() WHERE sync_state IS NULL OR sync_state IN ('sync', 'quorum'))
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
""".format(exploded=_EXPLODED.format(acl="coalesce(nspacl, acldefault('n', nspowner))"))

_DATABASES = """
SELECT oid::int8, datname, datdba::int8, datacl IS NOT NULL, {exploded}
FROM pg_database
WHERE datname = current_database() OR datname = ANY(%s)
""".format(exploded=_EXPLODED.format(acl="coalesce(datacl, acldefault('d', datdba))"))

# Grouping must hash, because aclitem has no order; so nothing inside the aggregates is ordered here.
_GROUPS = """
WITH extension AS (
    SELECT objid FROM pg_depend
    WHERE refclassid = 'pg_extension'::regclass AND classid = '{catalog}'::regclass AND deptype = 'e'
), alike AS (
    SELECT o.nsp, o.kind, o.owner, o.col, o.acl, x.objid IS NOT NULL AS extension,
           count(*) AS objects, json_agg(o.item)::text AS items
    FROM ({objects}) AS o
    LEFT JOIN extension AS x ON x.objid = o.oid
    GROUP BY o.nsp, o.kind, o.owner, o.col, o.acl, x.objid IS NOT NULL
)
SELECT nsp::int8, kind, owner::int8, col, extension, objects, items, acl IS NOT NULL, {exploded}
FROM alike
"""

_RELATION_KIND = """CASE {0}.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized_view' WHEN 'S' THEN 'sequence'
    ELSE 'table' END"""

_RELATIONS = _GROUPS.format(
    catalog="pg_class",
    objects="""
    SELECT c.oid, c.relnamespace AS nsp, {kind} AS kind, c.relowner AS owner, NULL::name AS col, c.relacl AS acl,
           json_build_array(c.oid::int8, c.relname) AS item
    FROM pg_class AS c
    WHERE c.relnamespace = ANY(%s::oid[]) AND c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S')
    """.format(kind=_RELATION_KIND.format("c")),
    exploded=_EXPLODED.format(
        acl="coalesce(acl, acldefault(CASE kind WHEN 'sequence' THEN 's' ELSE 'r' END::\"char\", owner))"
    ),
)

_COLUMNS = _GROUPS.format(
    catalog="pg_class",
    objects="""
    SELECT c.oid, c.relnamespace AS nsp, {kind} AS kind, c.relowner AS owner, a.attname AS col, a.attacl AS acl,
           json_build_array(c.oid::int8, c.relname) AS item
    FROM pg_attribute AS a
    JOIN pg_class AS c ON c.oid = a.attrelid
    WHERE c.relnamespace = ANY(%s::oid[]) AND c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S')
      AND a.attacl IS NOT NULL AND NOT a.attisdropped
    """.format(kind=_RELATION_KIND.format("c")),
    exploded=_EXPLODED.format(acl="acl"),
)

# GRANT looks for a procedure by all its arguments as well as by its input arguments, unless a mode is written: where a
# procedure with output arguments shares the name, IN keeps the name unambiguous (LookupFuncWithArgs in parse_func.c).
_ROUTINES = _GROUPS.format(
    catalog="pg_proc",
    objects="""
    SELECT p.oid, p.pronamespace AS nsp, 'function' AS kind, p.proowner AS owner, NULL::name AS col, p.proacl AS acl,
           json_build_array(
               p.oid::int8, p.proname,
               CASE WHEN p.pronargs > 0 AND bool_or(p.prokind = 'p' AND p.proargmodes IS NOT NULL)
                             OVER (PARTITION BY p.pronamespace, p.proname)
                    THEN (SELECT string_agg('IN ' || format_type(t.type, NULL), ', ' ORDER BY t.position)
                          FROM unnest(p.proargtypes) WITH ORDINALITY AS t(type, position))
                    ELSE oidvectortypes(p.proargtypes) END
           ) AS item
    FROM pg_proc AS p
    WHERE p.pronamespace = ANY(%s::oid[])
    """,
    exploded=_EXPLODED.format(acl="coalesce(acl, acldefault('f', owner))"),
)

# Arrays, multiranges and the row types of tables take no grants of their own.
_TYPES = _GROUPS.format(
    catalog="pg_type",
    objects="""
    SELECT t.oid, t.typnamespace AS nsp, 'type' AS kind, t.typowner AS owner, NULL::name AS col, t.typacl AS acl,
           json_build_array(t.oid::int8, t.typname) AS item
    FROM pg_type AS t
    LEFT JOIN pg_class AS c ON c.oid = t.typrelid
    WHERE t.typnamespace = ANY(%s::oid[])
      AND t.typtype IN ('b', 'c', 'd', 'e', 'r') AND (t.typrelid = 0 OR c.relkind = 'c')
      AND NOT EXISTS (SELECT FROM pg_type AS e WHERE e.typarray = t.oid)
    """,
    exploded=_EXPLODED.format(acl="coalesce(acl, acldefault('T', owner))"),
)

_DEFAULT_ACLS = """
SELECT defaclrole::int8, nullif(defaclnamespace, 0)::int8, defaclobjtype::text, {exploded}
FROM pg_default_acl
""".format(exploded=_EXPLODED.format(acl="defaclacl"))

_ROUTINE_TYPES = """
SELECT p.oid::int8, p.pronamespace::int8, p.proname, p.proargtypes::oid[]::int8[]
FROM pg_proc AS p
WHERE p.pronamespace = ANY(%s::oid[]) AND p.proname = ANY(%s)
"""

# Objects outside schemas, by name. A parameter has a row only while somebody holds a privilege on it; its owner is the
# bootstrap superuser (acldefault in acl.c). A custom parameter, one with a dot, exists as soon as somebody names it;
# its form was judged with the manifest.
_NAMED = {
    "language": ("pg_language", "lanname", "lanowner", "lanacl", "l"),
    "foreign_data_wrapper": ("pg_foreign_data_wrapper", "fdwname", "fdwowner", "fdwacl", "F"),
    "foreign_server": ("pg_foreign_server", "srvname", "srvowner", "srvacl", "S"),
    "tablespace": ("pg_tablespace", "spcname", "spcowner", "spcacl", "t"),
    "large_object": ("pg_largeobject_metadata", "oid", "lomowner", "lomacl", "L"),
}
_NAMED_QUERY = """
SELECT '{kind}', o.oid::int8, o.{name}::text, o.{owner}::int8, o.{acl} IS NOT NULL, {exploded}, x.objid IS NOT NULL
FROM {catalog} AS o
LEFT JOIN pg_depend AS x ON x.objid = o.oid AND x.classid = '{class_}'::regclass AND x.deptype = 'e'
     AND x.refclassid = 'pg_extension'::regclass
WHERE o.{name} = ANY(%s::{type}[])
"""
_PARAMETERS = """
SELECT 'parameter', coalesce(p.oid::int8, -n.position), n.name, 10::int8, p.paracl IS NOT NULL, {exploded}, false
FROM unnest(%s::text[]) WITH ORDINALITY AS n(name, position)
LEFT JOIN pg_parameter_acl AS p ON p.parname = n.name
WHERE p.oid IS NOT NULL OR n.name LIKE '%%.%%'
   OR EXISTS (SELECT FROM pg_settings AS s WHERE lower(s.name) = n.name)
""".format(exploded=_EXPLODED.format(acl="coalesce(p.paracl, acldefault('p', 10))"))

# The relations that have columns of these names, for rules on columns: one index scan for each relation.
_ATTRIBUTES = """
SELECT a.attname, json_agg(a.attrelid::int8)::text
FROM pg_attribute AS a
JOIN pg_class AS c ON c.oid = a.attrelid
WHERE c.relnamespace = ANY(%s::oid[]) AND c.relkind IN ('r', 'p', 'f', 'v', 'm')
  AND a.attname = ANY(%s) AND NOT a.attisdropped
GROUP BY a.attname
"""

# One row for each parameter, some 400. pg_settings leaves out what only superusers may see, and what SHOW ALL hides.
_SETTINGS = "SELECT name, context FROM pg_settings"
_SETTING_GRANTS = """
SELECT n.name FROM unnest(%s::text[]) AS n(name) WHERE has_parameter_privilege(n.name, 'SET')
"""

_UNTRUSTED = "SELECT lanname FROM pg_language WHERE NOT lanpltrusted"

_TYPE_OIDS = """
SELECT t.position,
       CASE WHEN t.schema IS NULL
                 OR (SELECT has_schema_privilege(n.oid, 'USAGE') FROM pg_namespace AS n WHERE n.nspname = t.schema)
            THEN to_regtype(t.name)::oid::int8 END
FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS t(name, schema, position)
"""

# One look for all undeclared roles that would lose something; the views, rules and functions of every schema count but
# PostgreSQL's own, which the bootstrap superuser owns everywhere.
_STAKES = """
WITH own AS (SELECT oid FROM pg_namespace WHERE nspname IN ('pg_catalog', 'information_schema'))
SELECT r.oid::int8,
       EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.usesysid = r.oid AND a.pid <> pg_backend_pid()),
       (SELECT c.oid::regclass::text FROM pg_class AS c
        WHERE c.relowner = r.oid AND c.relnamespace NOT IN (SELECT oid FROM own)
          AND (c.relkind IN ('v', 'm')
               OR c.relhasrules AND EXISTS (SELECT FROM pg_rewrite AS w
                                            WHERE w.ev_class = c.oid AND w.rulename <> '_RETURN'))
        ORDER BY c.oid LIMIT 1),
       (SELECT p.oid::regprocedure::text FROM pg_proc AS p
        WHERE p.proowner = r.oid AND p.prosecdef AND p.pronamespace NOT IN (SELECT oid FROM own)
        ORDER BY p.oid LIMIT 1)
FROM unnest(%s::oid[]) AS r(oid)
"""


# A login without pg_read_all_stats sees other sessions' user and application, not what they run.
_SESSION = """
'session ' || a.pid || ' of ' || coalesce(quote_ident(a.usename), 'an unknown role')
    || coalesce(', application ' || nullif(a.application_name, ''), '')
    || coalesce(', since ' || date_trunc('second', coalesce(a.xact_start, a.backend_start)), '')
    || CASE a.wait_event WHEN 'SyncRep' THEN ', waits for a synchronous standby (SyncRep)' ELSE '' END
"""

_TURN_HOLDER = f"""
SELECT {_SESSION}
FROM pg_locks AS l
JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.classid = %s AND l.objid = %s AND l.objsubid = 2
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

# GRANT waits for locks on relations, and for whoever has changed the same row of the catalog and not committed: that
# transaction is the row's xmax. REASSIGN OWNED and DROP OWNED wait for every lock on what a role owns. Where none of it
# is seen (a row of pg_authid, a subtransaction) the sessions with open writes are named, one of which it must be.
_LOCK_HOLDERS = f"""
WITH named AS (SELECT unnest(%s::oid[]) AS oid), changed AS (
    SELECT c.oid::regclass::text AS name, c.xmax AS xid FROM pg_class AS c JOIN named USING (oid)
    UNION ALL SELECT p.oid::regprocedure::text, p.xmax FROM pg_proc AS p JOIN named USING (oid)
    UNION ALL SELECT 'type ' || t.oid::regtype, t.xmax FROM pg_type AS t JOIN named USING (oid)
    UNION ALL SELECT 'schema ' || quote_ident(n.nspname), n.xmax FROM pg_namespace AS n JOIN named USING (oid)
    UNION ALL SELECT 'database ' || quote_ident(d.datname), d.xmax FROM pg_database AS d JOIN named USING (oid)
), known AS (
    SELECT {_SESSION} || ', holds ' || l.mode || ' on ' || l.relation::regclass AS who
    FROM pg_locks AS l
    JOIN pg_stat_activity AS a ON a.pid = l.pid
    WHERE l.locktype = 'relation' AND l.granted AND l.pid <> pg_backend_pid()
      AND (l.relation IN (SELECT oid FROM named)
               AND l.mode IN ('AccessExclusiveLock', 'ExclusiveLock', 'ShareRowExclusiveLock')
           OR l.relation IN (SELECT c.oid FROM pg_class AS c WHERE c.relowner IN (SELECT oid FROM named)))
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    UNION SELECT {_SESSION} || ', has changed ' || c.name
    FROM changed AS c
    JOIN pg_stat_activity AS a ON a.backend_xid = c.xid
)
(SELECT who FROM known ORDER BY who LIMIT 5)
UNION ALL
(SELECT {_SESSION} || ', has not committed what it wrote'
 FROM pg_stat_activity AS a
 WHERE a.backend_xid IS NOT NULL AND a.pid <> pg_backend_pid() AND a.xact_start < now() - interval '2 s'
   AND NOT EXISTS (SELECT FROM known)
 ORDER BY a.xact_start LIMIT 5)
"""


@contextlib.contextmanager
def pipelined(connection: Connection[Any]) -> Iterator[None]:
    """Send what follows in one round trip, or one by one where libpq has no pipeline mode (before 14)."""
    from psycopg import Pipeline

    if not Pipeline.is_supported():
        yield
        return
    with connection.pipeline():
        yield


def fetch(connection: Connection[Any], queries: Sequence[Query]) -> List[List[Tuple[Any, ...]]]:
    """The rows of several queries, in one round trip."""
    cursors = [connection.cursor() for _query in queries]
    with pipelined(connection):
        for cursor, (query, parameters) in zip(cursors, queries):
            cursor.execute(query, parameters or None)
    return [cursor.fetchall() for cursor in cursors]


class _Acls:
    """Exploded ACLs, each different one decoded once."""

    def __init__(self) -> None:
        self._known: Dict[Tuple[Optional[str], bool], Acl] = {}

    def __call__(self, text: Optional[str], explicit: bool = True) -> Acl:
        key = (text, explicit)
        if key not in self._known:
            entries = frozenset(Entry(*item) for item in json.loads(text)) if text else frozenset()
            self._known[key] = Acl(entries, explicit)
        return self._known[key]


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
    clock, self_grant, encryption, sealing, may_read, may_create, strays, synchronous = others
    by_oid = {row[0]: _role(row) for row in roles}
    trusted = {session_user, current_user} | {role.oid for role in by_oid.values() if role.superuser}
    table = _store_table(store, trusted, may_create)
    queries = {
        "identifier": (_SYSTEM_IDENTIFIER, ()) if may_identify else None,
        "records": (_RECORDS, ()) if table.readable else None,
        "verifiers": (_VERIFIERS, (list(verifiers_of),)) if verifiers_of and may_read else None,
    }
    asked = {name: query for name, query in queries.items() if query is not None}
    answers = dict(zip(asked, fetch(connection, list(asked.values())))) if asked else {}
    identifier = answers["identifier"][0][0] if "identifier" in answers else ""
    lines = {row[0]: record for row in roles for _text, record in [split_comment(row[-1])] if record is not None}
    records, ownerless = records_of(answers.get("records", []), lines, by_oid, identifier)
    acls = _Acls()
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


def read_objects(
    connection: Connection[Any], schemas: Sequence[int]
) -> Tuple[Tuple[Group, ...], Tuple[DefaultAcl, ...]]:
    """The objects of some schemas, grouped, and every row of default privileges: one round trip."""
    oids = sorted(schemas)
    *families, defaults = fetch(
        connection,
        [
            (_RELATIONS, (oids,)),
            (_COLUMNS, (oids,)),
            (_ROUTINES, (oids,)),
            (_TYPES, (oids,)),
            (_DEFAULT_ACLS, ()),
        ],
    )
    acls = _Acls()
    groups = tuple(
        Group(
            kind=kind,
            schema=schema,
            owner=owner,
            acl=acls(exploded, explicit),
            members=Members(count, items),
            extension=extension,
            column=column,
        )
        for rows in families
        for schema, kind, owner, column, extension, count, items, explicit, exploded in rows
    )
    return groups, tuple(
        DefaultAcl(owner, schema, DEFAULT_ACL_KINDS.get(letter, letter), acls(exploded))
        for owner, schema, letter, exploded in defaults
    )


def read_named(connection: Connection[Any], names: Mapping[str, Sequence[str]]) -> Tuple[Tuple[Group, ...], Set[str]]:
    """Objects outside schemas by kind and name, and the untrusted languages, which take no grants: one round trip."""
    queries: List[Query] = []
    for kind, wanted in names.items():
        if kind == "parameter":
            queries.append((_PARAMETERS, (list(wanted),)))
            continue
        catalog, name, owner, acl, letter = _NAMED[kind]
        exploded = _EXPLODED.format(acl=f"coalesce(o.{acl}, acldefault('{letter}', o.{owner}))")
        class_ = "pg_largeobject" if kind == "large_object" else catalog
        query = _NAMED_QUERY.format(
            kind=kind,
            catalog=catalog,
            class_=class_,
            name=name,
            type="oid" if name == "oid" else "name",
            owner=owner,
            acl=acl,
            exploded=exploded,
        )
        queries.append((query, (list(wanted),)))
    if not queries:
        return (), set()
    *families, untrusted = fetch(connection, [*queries, (_UNTRUSTED, ())])
    acls = _Acls()
    groups = tuple(
        Group(kind, None, owner, acls(exploded, explicit), Members.of([Object(oid, name)]), extension)
        for rows in families
        for kind, oid, name, owner, explicit, exploded, extension in rows
    )
    return groups, {row[0] for row in untrusted}


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


def read_attributes(
    connection: Connection[Any], schemas: Sequence[int], names: Sequence[str]
) -> Mapping[str, FrozenSet[int]]:
    """The relations of some schemas that have each of these columns: one round trip."""
    (rows,) = fetch(connection, [(_ATTRIBUTES, (list(schemas), list(names)))])
    return {name: frozenset(json.loads(oids)) for name, oids in rows}


def read_routine_types(
    connection: Connection[Any], schemas: Sequence[int], names: Sequence[str], types: Mapping[str, Optional[str]]
) -> Tuple[List[Tuple[int, int, str, Tuple[int, ...]]], Mapping[str, Optional[int]]]:
    """The routines of these names with their input types, and what PostgreSQL takes each type's text for: one round
    trip. A type with a schema is looked up only where the executor may use that schema.

    Raises psycopg.Error where a text cannot be a type's name at all.
    """
    texts = sorted(types)
    routines, oids = fetch(
        connection,
        [(_ROUTINE_TYPES, (list(schemas), list(names))), (_TYPE_OIDS, (texts, [types[text] for text in texts]))],
    )
    return (
        [(oid, schema, name, tuple(arguments)) for oid, schema, name, arguments in routines],
        {texts[position - 1]: oid for position, oid in oids},
    )


def read_access(connection: Connection[Any], session_role: Optional[str]) -> Tuple[bool, bool]:
    """Whether the login may still connect to this database, and still set its session role: one round trip."""
    right = "SET" if connection.info.server_version >= 160000 else "MEMBER"
    query = f"""
        SELECT has_database_privilege(session_user, current_database(), 'CONNECT'),
               %s::text IS NULL OR pg_has_role(session_user, %s::text, '{right}')
    """
    (rows,) = fetch(connection, [(query, (session_role, session_role))])
    return bool(rows[0][0]), bool(rows[0][1])


def read_turn_holder(connection: Connection[Any], turn: Tuple[int, int]) -> Optional[str]:
    """The session that holds an advisory lock of this database, in words: one look at the lock table."""
    (rows,) = fetch(connection, [(_TURN_HOLDER, turn)])
    return str(rows[0][0]) if rows else None


def read_lock_holders(connection: Connection[Any], objects: Sequence[int]) -> List[str]:
    """The sessions that lock one of these objects or have changed it, or else all with open writes, in words: one round
    trip. Among the objects can be roles: whatever they own may be locked in no way then.
    """
    (rows,) = fetch(connection, [(_LOCK_HOLDERS, (list(objects),))])
    return [str(row[0]) for row in rows]


def read_transaction(connection: Connection[Any]) -> Optional[str]:
    """The number of the running transaction, None while it has written nothing: one round trip."""
    (rows,) = fetch(connection, [("SELECT pg_catalog.pg_current_xact_id_if_assigned()::text", ())])
    return None if rows[0][0] is None else str(rows[0][0])


def read_fate(connection: Connection[Any], transaction: str) -> Optional[str]:
    """What became of a transaction of this server, as ``pg_xact_status`` says it: one round trip."""
    (rows,) = fetch(connection, [("SELECT pg_catalog.pg_xact_status(%s::pg_catalog.xid8)", (transaction,))])
    return None if rows[0][0] is None else str(rows[0][0])


def read_identity(connection: Connection[Any]) -> Optional[Tuple[str, ...]]:
    """What tells this server's numbers of transactions from those of another: the cluster's identifier and the
    timeline, which is a new one after each promotion. As far as the login may ask; None on a standby. Two round trips,
    before settings are pinned, too.
    """
    (rows,) = fetch(connection, [(_IDENTITY, ())])
    standby, *permitted = rows[0]
    if standby:
        return None
    queries: List[Query] = [(query, ()) for query, may in zip((_SYSTEM_IDENTIFIER, _TIMELINE), permitted) if may]
    return tuple(str(answer[0][0]) for answer in fetch(connection, queries)) if queries else ()


def read_synchronous(connection: Connection[Any]) -> bool:
    """Whether a standby that COMMIT waits for is attached, or may be for all that the login sees: one round trip."""
    (rows,) = fetch(connection, [(_SYNCHRONOUS, ())])
    return bool(rows[0][0])


def read_stakes(
    connection: Connection[Any], roles: Sequence[int]
) -> Mapping[int, Tuple[bool, Optional[str], Optional[str]]]:
    """For each role: whether it is connected, a view or table with rules it owns, a SECURITY DEFINER routine it
    owns.
    """
    (rows,) = fetch(connection, [(_STAKES, (list(roles),))])
    return {oid: (connected, view, routine) for oid, connected, view, routine in rows}
