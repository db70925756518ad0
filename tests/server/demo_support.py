# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The demo databases, and who may do what in a database: one line for each fact, by name.

Nothing here comes from ``plugins/``: what an export forgets, this must see.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from harness import Database
from psycopg import sql

FOLDER = Path(__file__).with_name("demo_databases")
NAMES = tuple(sorted(path.name.split(".")[0] for path in FOLDER.glob("*.structure.sql")))


def build(db: Database, name: str, part: str) -> None:
    """Run a part of a demo database: ``structure`` is everything without access, ``access`` the rest.

    In the scripts ``:database`` is the database's name, ``-- next`` ends what is sent at once, and ``-- from 16`` begins
    and ``-- end`` ends what only servers from 16 on have.
    """
    lines: list[str] = []
    since = 0
    for line in (FOLDER / f"{name}.{part}.sql").read_text(encoding="utf-8").splitlines():
        begins = re.fullmatch(r"-- from (\d+)", line)
        if begins:
            since = int(begins[1])
        elif line == "-- end":
            since = 0
        elif db.version >= since:
            lines.append(line)
    text = "\n".join(lines).replace(":database", sql.Identifier(db.name).as_string(db.connection))
    for script in text.split("\n-- next\n"):
        db.sql(script)


class Fact(NamedTuple):
    """One thing that somebody has. ``object`` is kind, schema, name and column; what does not apply is empty."""

    sort: str
    role: str
    object: tuple[str, str, str, str]
    what: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.sort}: {self.role or '-'} {self.what}={self.value} on {'/'.join(self.object)}"


NOTHING = ("", "", "", "")

_ROLES = """
SELECT r.rolname::text, a.key, a.value
  FROM pg_roles AS r,
       LATERAL (VALUES ('exists', 'yes'), ('superuser', r.rolsuper::text), ('inherit', r.rolinherit::text),
                       ('createrole', r.rolcreaterole::text), ('createdb', r.rolcreatedb::text),
                       ('login', r.rolcanlogin::text), ('replication', r.rolreplication::text),
                       ('bypassrls', r.rolbypassrls::text), ('connection_limit', r.rolconnlimit::text),
                       ('valid_until', coalesce(r.rolvaliduntil AT TIME ZONE 'UTC', 'infinity')::text),
                       ('comment', coalesce(shobj_description(r.oid, 'pg_authid'), ''))) AS a(key, value)
UNION ALL
SELECT r.rolname::text, 'config ' || lower(split_part(c, '=', 1)), substr(c, strpos(c, '=') + 1)
  FROM pg_db_role_setting AS s JOIN pg_roles AS r ON r.oid = s.setrole, unnest(s.setconfig) AS c WHERE s.setdatabase = 0
UNION ALL
SELECT r.rolname::text, 'config here ' || lower(split_part(c, '=', 1)), substr(c, strpos(c, '=') + 1)
  FROM pg_db_role_setting AS s JOIN pg_roles AS r ON r.oid = s.setrole JOIN pg_database AS d ON d.oid = s.setdatabase,
       unnest(s.setconfig) AS c WHERE d.datname = current_database()
"""

# Rows of several grantors count together.
_MEMBERS = """
SELECT pg_get_userbyid(m.roleid)::text, pg_get_userbyid(m.member)::text, {options}
  FROM pg_auth_members AS m GROUP BY m.roleid, m.member
"""

_RELATION = """CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized_view' WHEN 'S' THEN 'sequence'
               WHEN 'c' THEN NULL WHEN 'i' THEN NULL WHEN 'I' THEN NULL WHEN 't' THEN NULL ELSE 'table' END"""

# Kind, schema, name, column, owner, ACL.
_ACLS = (
    f"""SELECT {_RELATION}, n.nspname, c.relname, '', c.relowner,
               coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner))
          FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname !~ '^pg_t(oast|emp)'""",
    f"""SELECT {_RELATION}, n.nspname, c.relname, a.attname, c.relowner, a.attacl
          FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
         WHERE a.attacl IS NOT NULL AND NOT a.attisdropped""",
    """SELECT 'function', n.nspname, p.proname || '(' || oidvectortypes(p.proargtypes) || ')', '', p.proowner,
              coalesce(p.proacl, acldefault('f', p.proowner))
         FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace""",
    """SELECT CASE WHEN c.relkind <> 'c' THEN 'row type' WHEN t.typtype = 'm' THEN 'multirange' ELSE 'type' END,
              n.nspname, t.typname, '', t.typowner, coalesce(t.typacl, acldefault('T', t.typowner))
         FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace LEFT JOIN pg_class AS c ON c.oid = t.typrelid
        WHERE NOT (t.typelem <> 0 AND t.typlen = -1) AND n.nspname !~ '^pg_t(oast|emp)'""",
    """SELECT 'schema', '', n.nspname, '', n.nspowner, coalesce(n.nspacl, acldefault('n', n.nspowner))
         FROM pg_namespace AS n WHERE n.nspname !~ '^pg_t(oast|emp)'""",
    """SELECT 'database', '', CASE WHEN d.datname = current_database() THEN '(this one)' ELSE d.datname END, '', d.datdba,
              coalesce(d.datacl, acldefault('d', d.datdba)) FROM pg_database AS d""",
    """SELECT 'language', '', l.lanname, '', l.lanowner, coalesce(l.lanacl, acldefault('l', l.lanowner)) FROM pg_language AS l""",
    """SELECT 'foreign_data_wrapper', '', w.fdwname, '', w.fdwowner, coalesce(w.fdwacl, acldefault('F', w.fdwowner))
         FROM pg_foreign_data_wrapper AS w""",
    """SELECT 'foreign_server', '', f.srvname, '', f.srvowner, coalesce(f.srvacl, acldefault('S', f.srvowner))
         FROM pg_foreign_server AS f""",
    """SELECT 'tablespace', '', s.spcname, '', s.spcowner, coalesce(s.spcacl, acldefault('t', s.spcowner))
         FROM pg_tablespace AS s""",
    """SELECT 'large_object', '', l.oid::text, '', l.lomowner, coalesce(l.lomacl, acldefault('L', l.lomowner))
         FROM pg_largeobject_metadata AS l""",
)
_PARAMETERS = "SELECT 'parameter', '', p.parname, '', 10::oid, p.paracl FROM pg_parameter_acl AS p"

_WHO = "CASE e.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(e.grantee) END::text"
_ENTRIES = f"""
SELECT o.kind, o.schema::text, o.name::text, o.col::text, pg_get_userbyid(o.owner)::text,
       (SELECT json_object_agg(x.who || E'\\x01' || x.privilege, x.grantable)
          FROM (SELECT {_WHO} AS who, e.privilege_type AS privilege, bool_or(e.is_grantable) AS grantable
                  FROM aclexplode(o.acl) AS e GROUP BY 1, 2) AS x)
  FROM ({{sources}}) AS o(kind, schema, name, col, owner, acl) WHERE o.kind IS NOT NULL
"""

# Where an owner has no row the built-in default counts: the lack of a row and one that says the same are equal.
_LETTERS = "('r', 'r'), ('S', 's'), ('f', 'f'), ('T', 'T'), ('n', 'n')"
_DEFAULTS = f"""
SELECT d.owner::text, d.schema::text, d.kind, {_WHO}, e.privilege_type, bool_or(e.is_grantable)::text
  FROM (SELECT pg_get_userbyid(defaclrole), n.nspname, defaclobjtype::text, defaclacl
          FROM pg_default_acl JOIN pg_namespace AS n ON n.oid = defaclnamespace
        UNION ALL
        SELECT r.rolname, '', k.kind, coalesce(a.defaclacl, acldefault(k.letter::"char", r.oid))
          FROM pg_roles AS r CROSS JOIN (VALUES {{letters}}) AS k(kind, letter)
          LEFT JOIN pg_default_acl AS a ON a.defaclrole = r.oid AND a.defaclnamespace = 0 AND a.defaclobjtype::text = k.kind
       ) AS d(owner, schema, kind, acl), aclexplode(d.acl) AS e
 GROUP BY 1, 2, 3, 4, 5
"""


def facts(db: Database) -> set[Fact]:
    """Who is who and may do what: roles, memberships, owners, every ACL entry and every default privilege.

    Who granted an entry is left out: a manifest does not say it, and elsewhere the owner grants it.
    """
    db.sql("SET search_path = pg_catalog")
    found = {Fact("role", role, NOTHING, key, value) for role, key, value in db.query(_ROLES)}
    options = "bool_or(m.admin_option), NULL::bool, NULL::bool"
    if db.version >= 16:
        options = "bool_or(m.admin_option), bool_or(m.inherit_option), bool_or(m.set_option)"
    for group, member, *values in db.query(_MEMBERS.format(options=options)):
        found.add(Fact("member", member, ("role", "", group, ""), "admin, inherit, set", str(values)))
    sources = [*_ACLS, *([_PARAMETERS] if db.version >= 15 else [])]
    for kind, schema, name, column, owner, entries in db.query(_ENTRIES.format(sources=" UNION ALL ".join(sources))):
        place = (kind, schema, name, column)
        if not column:
            found.add(Fact("owner", owner, place, "owner"))
        for key, grantable in (entries or {}).items():
            who, privilege = key.split("\x01")
            found.add(Fact("grant", who, place, privilege, f"grantable={grantable}"))
    letters = _LETTERS + (", ('L', 'L')" if db.version >= 18 else "")
    for owner, schema, letter, who, privilege, grantable in db.query(_DEFAULTS.format(letters=letters)):
        found.add(Fact("default", who, (owner, schema, letter, ""), privilege, f"grantable={grantable}"))
    return found
