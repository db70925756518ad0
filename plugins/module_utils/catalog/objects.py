# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Reading objects and their privileges: a fixed number of queries, whatever the size of the database or the manifest.

Cost at 10,000 tables: relations and routines are grouped by their ACL in the server (one hash aggregate each, some
0.05 s), columns take one scan of pg_attribute. What comes back grows with the number of *different* ACLs; the objects
of a group come as one JSON text that is decoded only when the plan has to name them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ..privileges import DEFAULT_ACL_KINDS
from ..state import DefaultAcl, Group, Members, Object
from .queries import EXPLODED, Acls, fetch

if TYPE_CHECKING:
    from psycopg import Connection

    from .queries import Query

# Grouping must hash, because aclitem has no order; so nothing inside the aggregates is ordered here.
_GROUPS = """
WITH extension AS (
    SELECT objid FROM pg_depend
    WHERE refclassid = 'pg_extension'::regclass AND classid = '{catalog}'::regclass AND deptype = 'e'
), alike AS (
    SELECT o.nsp, o.kind, o.owner, o.col, o.acl, x.objid IS NOT NULL AS extension,
           count(*) AS objects, {items}::text AS items
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
    # Where there may be very many: an array for each of them would take a quarter longer.
    items="json_object_agg(o.oid::int8, o.item)",
    objects="""
    SELECT c.oid, c.relnamespace AS nsp, {kind} AS kind, c.relowner AS owner, NULL::name AS col, c.relacl AS acl,
           c.relname AS item
    FROM pg_class AS c
    WHERE c.relnamespace = ANY(%s::oid[]) AND c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S')
    """.format(kind=_RELATION_KIND.format("c")),
    exploded=EXPLODED.format(
        acl="coalesce(acl, acldefault(CASE kind WHEN 'sequence' THEN 's' ELSE 'r' END::\"char\", owner))"
    ),
)

_COLUMNS = _GROUPS.format(
    catalog="pg_class",
    items="json_agg(o.item)",
    objects="""
    SELECT c.oid, c.relnamespace AS nsp, {kind} AS kind, c.relowner AS owner, a.attname AS col, a.attacl AS acl,
           json_build_array(c.oid::int8, c.relname) AS item
    FROM pg_attribute AS a
    JOIN pg_class AS c ON c.oid = a.attrelid
    WHERE c.relnamespace = ANY(%s::oid[]) AND c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S')
      AND a.attacl IS NOT NULL AND NOT a.attisdropped
    """.format(kind=_RELATION_KIND.format("c")),
    exploded=EXPLODED.format(acl="acl"),
)

# GRANT looks for a procedure by all its arguments as well as by its input arguments, unless a mode is written: where a
# procedure with output arguments shares the name, IN keeps the name unambiguous (LookupFuncWithArgs in parse_func.c).
_ROUTINES = _GROUPS.format(
    catalog="pg_proc",
    items="json_agg(o.item)",
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
    exploded=EXPLODED.format(acl="coalesce(acl, acldefault('f', owner))"),
)

# Arrays, multiranges and the row types of tables take no grants of their own. What an array is GRANT asks like this
# (IsTrueArrayType in pg_type.h); every table has one, so it has to be cheap.
_TYPES = _GROUPS.format(
    catalog="pg_type",
    items="json_agg(o.item)",
    objects="""
    SELECT t.oid, t.typnamespace AS nsp, 'type' AS kind, t.typowner AS owner, NULL::name AS col, t.typacl AS acl,
           json_build_array(t.oid::int8, t.typname) AS item
    FROM pg_type AS t
    WHERE t.typnamespace = ANY(%s::oid[]) AND t.typtype IN ('b', 'c', 'd', 'e', 'r')
      AND (t.typelem = 0 OR t.typsubscript <> 'array_subscript_handler'::regproc)
      AND (t.typrelid = 0 OR t.typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'c'))
    """,
    exploded=EXPLODED.format(acl="coalesce(acl, acldefault('T', owner))"),
)

_DEFAULT_ACLS = """
SELECT defaclrole::int8, nullif(defaclnamespace, 0)::int8, defaclobjtype::text, {exploded}
FROM pg_default_acl
""".format(exploded=EXPLODED.format(acl="defaclacl"))

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
WHERE {which}
"""

_PARAMETERS = """
SELECT 'parameter', coalesce(p.oid::int8, -n.position), n.name, 10::int8, p.paracl IS NOT NULL, {exploded}, false
FROM unnest(%s::text[]) WITH ORDINALITY AS n(name, position)
LEFT JOIN pg_parameter_acl AS p ON p.parname = n.name
WHERE p.oid IS NOT NULL OR n.name LIKE '%%.%%'
   OR EXISTS (SELECT FROM pg_settings AS s WHERE lower(s.name) = n.name)
""".format(exploded=EXPLODED.format(acl="coalesce(p.paracl, acldefault('p', 10))"))

_ALL_PARAMETERS = """
SELECT 'parameter', oid::int8, parname, 10::int8, true, {exploded}, false FROM pg_parameter_acl
""".format(exploded=EXPLODED.format(acl="paracl"))

# The relations that have columns of these names, for rules on columns: one index scan for each relation.
_ATTRIBUTES = """
SELECT a.attname, json_agg(a.attrelid::int8)::text
FROM pg_attribute AS a
JOIN pg_class AS c ON c.oid = a.attrelid
WHERE c.relnamespace = ANY(%s::oid[]) AND c.relkind IN ('r', 'p', 'f', 'v', 'm')
  AND a.attname = ANY(%s) AND NOT a.attisdropped
GROUP BY a.attname
"""

UNTRUSTED = "SELECT lanname FROM pg_language WHERE NOT lanpltrusted"

# Looking a type up as SQL does is refused in a schema that the executor may not use: there only the server's own
# spelling is known.
_TYPE_OIDS = """
SELECT t.position,
       CASE WHEN h.oid IS NOT NULL
            THEN (SELECT y.oid::int8 FROM pg_type AS y
                  WHERE y.typnamespace = h.oid AND format_type(y.oid, NULL) = t.name)
            WHEN t.schema IS NULL
                 OR (SELECT has_schema_privilege(n.oid, 'USAGE') FROM pg_namespace AS n WHERE n.nspname = t.schema)
            THEN to_regtype(t.name)::oid::int8 END
FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS t(name, schema, position)
LEFT JOIN pg_namespace AS h ON starts_with(t.name, quote_ident(h.nspname) || '.')
     AND NOT has_schema_privilege(h.oid, 'USAGE')
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
    acls = Acls()
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
        name = _NAMED[kind][1]
        which = f"o.{name} = ANY(%s::{'oid' if name == 'oid' else 'name'}[])"
        queries.append((_named_query(kind, which), (list(wanted),)))
    if not queries:
        return (), set()
    *families, untrusted = fetch(connection, [*queries, (UNTRUSTED, ())])
    return _named_groups(families), {row[0] for row in untrusted}


def read_all_named(connection: Connection[Any]) -> Tuple[Group, ...]:
    """All objects outside schemas but large objects, as far as grants can be about them: one round trip. Of the
    parameters those that somebody was granted something on.
    """
    kinds = [kind for kind in _NAMED if kind != "large_object"]
    return _named_where(connection, {kind: "o.lanpltrusted" if kind == "language" else "true" for kind in kinds})


def read_granted_named(connection: Connection[Any]) -> Tuple[Group, ...]:
    """All objects outside schemas that carry an ACL, of a million large objects those few too: one round trip."""
    return _named_where(connection, {kind: f"o.{acl} IS NOT NULL" for kind, (*_names, acl, _letter) in _NAMED.items()})


def _named_where(connection: Connection[Any], which: Mapping[str, str]) -> Tuple[Group, ...]:
    """The objects of each kind that its condition is true for, and the parameters that carry an ACL."""
    queries: List[Query] = [(_named_query(kind, condition), ()) for kind, condition in which.items()]
    if connection.info.server_version >= 150000:
        queries.append((_ALL_PARAMETERS, ()))
    return _named_groups(fetch(connection, queries))


def _named_query(kind: str, which: str) -> str:
    catalog, name, owner, acl, letter = _NAMED[kind]
    return _NAMED_QUERY.format(
        kind=kind,
        catalog=catalog,
        class_="pg_largeobject" if kind == "large_object" else catalog,
        name=name,
        owner=owner,
        exploded=EXPLODED.format(acl=f"coalesce(o.{acl}, acldefault('{letter}', o.{owner}))"),
        acl=acl,
        which=which,
    )


def _named_groups(families: Iterable[Sequence[Tuple[Any, ...]]]) -> Tuple[Group, ...]:
    acls = Acls()
    return tuple(
        Group(kind, None, owner, acls(exploded, explicit), Members.of([Object(oid, name)]), extension)
        for rows in families
        for kind, oid, name, owner, explicit, exploded, extension in rows
    )


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


def read_stakes(
    connection: Connection[Any], roles: Sequence[int]
) -> Mapping[int, Tuple[bool, Optional[str], Optional[str]]]:
    """For each role: whether it is connected, a view or table with rules it owns, a SECURITY DEFINER routine it
    owns.
    """
    (rows,) = fetch(connection, [(_STAKES, (list(roles),))])
    return {oid: (connected, view, routine) for oid, connected, view, routine in rows}
