# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Reading what ties roles to the cluster, for runs that may drop some: one round trip, whatever the roles own.

Everything starts from index scans of pg_shdepend. Cost for a role that owns 10,000 tables or holds a privilege on each:
some 0.2 s; for 500 roles with nothing 0.04 s. What is destroyed is followed through pg_depend with one index scan for
each object: some 0.7 s for 10,000 tables with keys. Counting the indexes of as many that are handed over takes 0.2 s.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Dict, FrozenSet, Iterable, List, Mapping, Sequence, Tuple

from ..belongings import NAMED, Belongings, Default, Held, Onward, Special, Ties, Wrapper
from ..privileges import DEFAULT_ACL_KINDS
from .queries import SESSION, fetch

if TYPE_CHECKING:
    from psycopg import Connection

    from .queries import Query

#: How many objects of one sort get their names read: enough of those whose privileges may turn out to stay.
_LABELS, _LABELS_OF_ACLS = NAMED, 1000

#: The columns of ACL and owner in each catalog that has them. A column's owner is that of its relation.
_ACLS = {
    "pg_class": ("relacl", "relowner", "pg_class"),
    "pg_proc": ("proacl", "proowner", "pg_proc"),
    "pg_type": ("typacl", "typowner", "pg_type"),
    "pg_namespace": ("nspacl", "nspowner", "pg_namespace"),
    "pg_database": ("datacl", "datdba", "pg_database"),
    "pg_tablespace": ("spcacl", "spcowner", "pg_tablespace"),
    "pg_language": ("lanacl", "lanowner", "pg_language"),
    "pg_foreign_data_wrapper": ("fdwacl", "fdwowner", "pg_foreign_data_wrapper"),
    "pg_foreign_server": ("srvacl", "srvowner", "pg_foreign_server"),
    "pg_largeobject": ("lomacl", "lomowner", "pg_largeobject_metadata"),
    "pg_default_acl": ("defaclacl", "defaclrole", "pg_default_acl"),
    "pg_parameter_acl": ("paracl", "10::oid", "pg_parameter_acl"),
}

#: Objects that only a role with CREATE on their schema may come to own, where no superuser hands them over
#: (AlterObjectOwner_internal in alter.c; relations and types are not asked by REASSIGN OWNED).
_PLACED = {
    "pg_proc": "pronamespace",
    "pg_operator": "oprnamespace",
    "pg_opclass": "opcnamespace",
    "pg_opfamily": "opfnamespace",
    "pg_collation": "collnamespace",
    "pg_conversion": "connamespace",
    "pg_statistic_ext": "stxnamespace",
    "pg_ts_dict": "dictnamespace",
    "pg_ts_config": "cfgnamespace",
}

_TIED = """
WITH tied AS (
    SELECT refobjid AS role, deptype::text AS how, classid, dbid, objid, objsubid
    FROM pg_shdepend
    WHERE refclassid = 'pg_authid'::regclass AND refobjid = ANY(%s::oid[])
), here AS (
    SELECT * FROM tied
    WHERE dbid = 0 OR dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
)
"""

# Objects of other databases are only counted: their rows cannot be seen from here.
_TIES = f"""{_TIED}, ranked AS (
    SELECT *, row_number() OVER (PARTITION BY role, how, classid, dbid ORDER BY objid, objsubid) AS place FROM here
)
SELECT role::int8, how, classid::regclass::text, d.datname, count(*),
       json_agg(json_build_array(objid::int8, objsubid) ORDER BY place)::text,
       coalesce(array_agg(pg_describe_object(classid, objid, objsubid) ORDER BY place)
                    FILTER (WHERE place <= CASE how WHEN 'a' THEN {_LABELS_OF_ACLS} ELSE {_LABELS} END),
                '{{}}')
FROM ranked
LEFT JOIN pg_database AS d ON d.oid = dbid
GROUP BY role, how, classid, d.datname
UNION ALL
SELECT role::int8, how, classid::regclass::text, d.datname, count(*), NULL, '{{}}'
FROM tied
JOIN pg_database AS d ON d.oid = dbid
WHERE d.datname <> current_database()
GROUP BY role, how, classid, d.datname
ORDER BY 1, 4 NULLS FIRST, 2, 3
"""

# Alike ACLs are exploded once. Grouping must hash, because aclitem has no order.
_HELD = """{tied}, acls AS ({acls})
SELECT catalog, owner::int8,
       (SELECT json_agg(json_build_array(e.grantee::int8, e.privilege_type, e.grantor::int8))::text
        FROM aclexplode(acl) AS e
        WHERE e.grantee = ANY(%s::oid[]) OR e.grantor = ANY(%s::oid[])),
       items
FROM (
    SELECT catalog, owner, acl, json_agg(json_build_array(objid::int8, objsubid, col))::text AS items
    FROM acls
    GROUP BY catalog, owner, acl
) AS alike
"""
_HELD_PART = """
SELECT '{name}' AS catalog, o.{owner} AS owner, o.{acl} AS acl, objid, 0 AS objsubid, NULL::name AS col
FROM (SELECT DISTINCT objid FROM here WHERE how = 'a' AND classid = '{name}'::regclass AND objsubid = 0) AS t
JOIN {catalog} AS o ON o.oid = t.objid
"""
_HELD_COLUMNS = """
SELECT 'pg_class', c.relowner, a.attacl, objid, objsubid, a.attname
FROM (
    SELECT DISTINCT objid, objsubid FROM here WHERE how = 'a' AND classid = 'pg_class'::regclass AND objsubid > 0
) AS t
JOIN pg_class AS c ON c.oid = t.objid
JOIN pg_attribute AS a ON a.attrelid = t.objid AND a.attnum = t.objsubid
"""

# Named by these roles alone: what is left of the list is nobody.
_POLICIES = f"""{_TIED}
SELECT role::int8, quote_ident(p.polname) || ' on ' || p.polrelid::regclass
FROM here
JOIN pg_policy AS p ON p.oid = objid
WHERE how = 'r' AND classid = 'pg_policy'::regclass AND p.polroles <@ %s::oid[]
ORDER BY 1, 2
"""

_DEFAULTS = f"""{_TIED}
SELECT DISTINCT d.oid::int8, d.defaclrole::int8, nullif(d.defaclnamespace, 0)::int8, d.defaclobjtype::text
FROM here
JOIN pg_default_acl AS d ON d.oid = objid
WHERE classid = 'pg_default_acl'::regclass
"""

_PLACES = """{tied}
{parts}
"""
_PLACES_PART = """
SELECT DISTINCT role::int8, o.{schema}::int8
FROM here
JOIN {catalog} AS o ON o.oid = objid
WHERE how = 'o' AND classid = '{catalog}'::regclass
"""

_PUBLICATIONS = """{tied}
SELECT role::int8, 'pg_publication', pg_describe_object(classid, objid, 0)
FROM here
JOIN pg_publication AS p ON p.oid = objid
WHERE how = 'o' AND classid = 'pg_publication'::regclass AND (p.puballtables{schemas})
"""
_PUBLISHED_SCHEMAS = " OR EXISTS (SELECT FROM pg_publication_namespace WHERE pnpubid = p.oid)"

_SUBSCRIPTIONS = f"""{_TIED}
SELECT role::int8, 'pg_subscription', 'subscription ' || quote_ident(s.subname)
FROM here
JOIN pg_subscription AS s ON s.oid = objid
WHERE how = 'o' AND classid = 'pg_subscription'::regclass AND NOT s.subpasswordrequired
"""

_WRAPPERS = f"""{_TIED}
SELECT DISTINCT role::int8, w.fdwname,
       (SELECT array_agg(e.grantee::int8) FROM aclexplode(coalesce(w.fdwacl, acldefault('F', w.fdwowner))) AS e)
FROM here
JOIN pg_foreign_server AS s ON s.oid = objid
JOIN pg_foreign_data_wrapper AS w ON w.oid = s.srvfdw
WHERE how = 'o' AND classid = 'pg_foreign_server'::regclass
"""

# A new owner's table is locked with its indexes, its TOAST table and that one's index (ATExecChangeOwner in
# tablecmds.c), a composite type with its relation; other objects are not locked.
_MOVED = f"""{_TIED}
SELECT role::int8, sum(locks)::int8
FROM (
    SELECT role, 1 + (SELECT count(*) FROM pg_index AS i WHERE i.indrelid = c.oid)
                   + CASE WHEN c.reltoastrelid = 0 THEN 0 ELSE 2 END AS locks
    FROM here
    JOIN pg_class AS c ON c.oid = objid
    WHERE how = 'o' AND classid = 'pg_class'::regclass
    UNION ALL
    SELECT role, 1
    FROM here
    JOIN pg_type AS t ON t.oid = objid
    WHERE how = 'o' AND classid = 'pg_type'::regclass AND t.typrelid <> 0
) AS c
GROUP BY role
"""

_SESSIONS = f"""
SELECT role::int8, max(sessions), array_agg(label ORDER BY pid)
FROM (
    SELECT usesysid AS role, pid, {SESSION} AS label, count(*) OVER (PARTITION BY usesysid) AS sessions,
           row_number() OVER (PARTITION BY usesysid ORDER BY pid) AS place
    FROM pg_stat_activity
    WHERE usesysid = ANY(%s::oid[]) AND pid <> pg_backend_pid()
) AS a
WHERE place <= {NAMED}
GROUP BY role
"""

# -2 marks a database that was being dropped when the server stopped (from the minor releases of August 2023 on).
_CLOSED = "SELECT datname FROM pg_database WHERE NOT datallowconn OR datconnlimit = -2"

# What DROP OWNED, which has no CASCADE here, would refuse to destroy: other objects depend on it, or an extension needs
# it. What goes with an object by itself (deptype not n) is followed; what is an inner part of something else stands for
# that (findDependentObjects and reportDependentObjects in dependency.c). And what it would destroy although it is
# somebody else's: partitions go with their table, whoever owns them. Those have no objsubid here.
_HANGING = f"""
WITH RECURSIVE gone AS (
    SELECT refobjid AS role, classid, objid
    FROM pg_shdepend
    WHERE refclassid = 'pg_authid'::regclass AND refobjid = ANY(%s::oid[]) AND deptype = 'o'
      AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    UNION
    SELECT g.role, d.classid, d.objid
    FROM gone AS g
    JOIN pg_depend AS d ON d.refclassid = g.classid AND d.refobjid = g.objid AND d.objsubid = 0 AND d.deptype <> 'n'
), needed AS (
    SELECT g.role, coalesce(w.refclassid, d.classid) AS classid, coalesce(w.refobjid, d.objid) AS objid,
           CASE WHEN w.refobjid IS NULL THEN d.objsubid ELSE 0 END AS objsubid,
           g.classid AS onclass, g.objid AS onobj
    FROM gone AS g
    JOIN pg_depend AS d ON d.refclassid = g.classid AND d.refobjid = g.objid AND d.deptype = 'n'
    LEFT JOIN pg_depend AS w ON w.classid = d.classid AND w.objid = d.objid AND w.objsubid = 0 AND w.deptype = 'i'
    UNION
    SELECT g.role, d.refclassid, d.refobjid, 0, g.classid, g.objid
    FROM gone AS g
    JOIN pg_depend AS d ON d.classid = g.classid AND d.objid = g.objid AND d.objsubid = 0 AND d.deptype IN ('e', 'i')
    UNION
    SELECT g.role, g.classid, g.objid, NULL, g.classid, i.inhparent
    FROM gone AS g
    JOIN pg_class AS c ON c.oid = g.objid AND c.relispartition AND c.relkind IN ('r', 'p', 'f') AND c.relowner <> g.role
    JOIN pg_inherits AS i ON i.inhrelid = c.oid
    WHERE g.classid = 'pg_class'::regclass
), hanging AS (
    SELECT n.*, row_number() OVER (PARTITION BY n.role ORDER BY n.objid, n.onobj) AS place,
           count(*) OVER (PARTITION BY n.role) AS hanging
    FROM needed AS n
    WHERE n.objsubid IS NULL
       OR NOT EXISTS (SELECT FROM gone AS g WHERE g.role = n.role AND g.classid = n.classid AND g.objid = n.objid)
)
SELECT role::int8, max(hanging),
       array_agg(pg_describe_object(classid, objid, coalesce(objsubid, 0))
                 || coalesce(' of ' || (SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class
                                        WHERE oid = objid AND objsubid IS NULL) || ' is a partition of ', ' needs ')
                 || pg_describe_object(onclass, onobj, 0) ORDER BY place),
       NULL
FROM hanging
WHERE place <= {NAMED}
GROUP BY role
UNION ALL
SELECT role::int8, NULL, NULL, count(*)
FROM gone
WHERE classid NOT IN ('pg_default_acl'::regclass, 'pg_user_mapping'::regclass)
GROUP BY role
"""


def read_belongings(connection: Connection[Any], roles: Iterable[int], destroyed: Iterable[int] = ()) -> Belongings:
    """What ties some roles to the cluster, and what depends on the possessions of those that leave them to nobody: one
    round trip.
    """
    oids, gone = sorted(roles), sorted(destroyed)
    version = connection.info.server_version // 10000
    acls = [
        _HELD_PART.format(name=name, acl=acl, owner=owner, catalog=catalog).replace("o.10::oid", "10::oid")
        for name, (acl, owner, catalog) in _ACLS.items()
        if name != "pg_parameter_acl" or version >= 15
    ]
    places = [_PLACES_PART.format(catalog=catalog, schema=schema) for catalog, schema in _PLACED.items()]
    schemas = _PUBLISHED_SCHEMAS if version >= 15 else ""
    queries: Dict[str, Query] = {
        "ties": (_TIES, (oids,)),
        "held": (_HELD.format(tied=_TIED, acls="UNION ALL".join([*acls, _HELD_COLUMNS])), (oids, oids, oids)),
        "policies": (_POLICIES, (oids, oids)),
        "defaults": (_DEFAULTS, (oids,)),
        "places": (_PLACES.format(tied=_TIED, parts="UNION ALL".join(places)), (oids,)),
        "publications": (_PUBLICATIONS.format(tied=_TIED, schemas=schemas), (oids,)),
        "wrappers": (_WRAPPERS, (oids,)),
        "sessions": (_SESSIONS, (oids,)),
        "closed": (_CLOSED, ()),
        "moved": (_MOVED, (oids,)),
    }
    if version >= 16:
        queries["subscriptions"] = (_SUBSCRIPTIONS, (oids,))
    if gone:
        queries["hanging"] = (_HANGING, (gone,))
    found = dict(zip(queries, fetch(connection, list(queries.values()))))
    ties = tuple(
        Ties(role, how, catalog, database, count, _objects(items), tuple(label or f"{catalog} row" for label in labels))
        for role, how, catalog, database, count, items, labels in found["ties"]
    )
    held = tuple(_held(row) for row in found["held"] if row[2])
    return Belongings(
        ties=ties,
        held=held,
        onward=tuple(_onward(held, frozenset(oids), ties)),
        policies=_together(found["policies"]),
        sessions={role: count for role, count, _labels in found["sessions"]},
        session_labels={role: tuple(labels) for role, _count, labels in found["sessions"]},
        closed=frozenset(row[0] for row in found["closed"]),
        defaults={
            oid: Default(owner, schema, DEFAULT_ACL_KINDS.get(letter, letter))
            for oid, owner, schema, letter in found["defaults"]
        },
        placed={role: frozenset(schemas) for role, schemas in _together(found["places"]).items()},
        special=tuple(Special(*row) for row in (*found["publications"], *found.get("subscriptions", ()))),
        wrappers=tuple(Wrapper(role, name, frozenset(users or ())) for role, name, users in found["wrappers"]),
        hanging={
            role: (count, tuple(filter(None, labels)))
            for role, count, labels, _gone in found.get("hanging", ())
            if count is not None
        },
        moved=dict(found["moved"]),
        gone={role: gone for role, _count, _labels, gone in found.get("hanging", ()) if gone is not None},
    )


def _objects(items: Any) -> Tuple[Tuple[int, int], ...]:
    return tuple((oid, column) for oid, column in json.loads(items)) if items else ()


def _held(row: Sequence[Any]) -> Held:
    catalog, owner, rows, items = row
    objects = sorted(json.loads(items), key=lambda item: (item[0], item[1]))
    return Held(
        catalog,
        owner,
        frozenset((grantee, privilege, grantor) for grantee, privilege, grantor in json.loads(rows)),
        tuple((oid, column) for oid, column, _name in objects),
        tuple(name for _oid, _column, name in objects),
    )


def _together(rows: Iterable[Sequence[Any]]) -> Mapping[int, Tuple[Any, ...]]:
    found: Dict[int, List[Any]] = defaultdict(list)
    for role, item in rows:
        found[role].append(item)
    return {role: tuple(items) for role, items in found.items()}


def _onward(held: Iterable[Held], roles: FrozenSet[int], ties: Iterable[Ties]) -> Iterable[Onward]:
    """Entries that one of the roles gave on something that it does not own."""
    labels: Dict[Tuple[str, int, int], str] = {}
    for tie in ties:
        labels.update(((tie.catalog, *item), label) for item, label in zip(tie.objects, tie.labels))
    for group in held:
        given: Dict[Tuple[int, int], List[str]] = defaultdict(list)
        for grantee, privilege, grantor in sorted(group.rows):
            if grantor in roles and grantor != group.owner:
                given[grantor, grantee].append(privilege)
        for (grantor, grantee), privileges in given.items():
            for oid, column in group.objects:
                label = labels.get((group.catalog, oid, column), f"{group.catalog} {oid}")
                yield Onward(grantor, grantee, group.catalog, oid, label, tuple(privileges))
