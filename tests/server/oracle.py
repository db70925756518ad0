# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the catalog has to be after a run, worked out as plainly as the specification is written.

One object, one grantee, one privilege at a time, from the manifest as it was given and the catalog as it was before
the run. Nothing here comes from ``plugins/``: a mistake would have to be made twice, in two different ways.
"""

from __future__ import annotations

import copy
import datetime
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeAlias

import psycopg

PUBLIC = "PUBLIC"
BOOTSTRAP = "postgres"

Manifest: TypeAlias = "dict[str, Any]"


class Entry(NamedTuple):
    """One privilege that somebody holds."""

    grantee: str
    privilege: str
    grantor: str
    grantable: bool


Entries: TypeAlias = "set[Entry]"


class Row(NamedTuple):
    """A row of pg_auth_members. Before PostgreSQL 16 inherit and set are None."""

    group: str
    member: str
    grantor: str
    admin: bool
    inherit: bool | None
    set: bool | None

    @property
    def automatic(self) -> bool:
        """As PostgreSQL 16 gives it to whoever creates a role."""
        return self.grantor == BOOTSTRAP and self.admin and self.inherit is False and self.set is False

    @property
    def self_granted(self) -> bool:
        """As createrole_self_grant does it. It hangs on an ADMIN OPTION from somebody else."""
        return self.inherit is not None and self.grantor == self.member


Key: TypeAlias = "tuple[str, str | None, str]"
"""Kind, schema, name; a routine's name has its input types."""


@dataclass
class Thing:
    """An object that has an owner and an ACL. ``raw`` is the ACL as the catalog has it, NULL as None."""

    owner: str
    entries: Entries
    raw: str | None


@dataclass
class Catalog:
    """All that a run may change."""

    version: int
    database: str
    roles: dict[str, dict[str, Any]] = field(default_factory=dict)
    memberships: set[Row] = field(default_factory=set)
    objects: dict[Key, Thing] = field(default_factory=dict)
    #: Every column, most of them without any entry of their own.
    columns: dict[tuple[Key, str], Entries] = field(default_factory=dict)
    #: Owner, schema or None, kind. Without a row the built-in default stands for the global layer.
    defaults: dict[tuple[str, str | None, str], Entries] = field(default_factory=dict)
    #: Who owns a view, a table with rules or a SECURITY DEFINER function.
    risky: set[str] = field(default_factory=set)

    def edges(self) -> dict[tuple[str, str], dict[str, bool]]:
        """Group and member, with the options that the rows give together."""
        return {
            (row.group, row.member): effective([r for r in self.memberships if r[:2] == row[:2]])
            for row in self.memberships
        }


def effective(rows: list[Row]) -> dict[str, bool]:
    return {
        "admin": any(row.admin for row in rows),
        "inherit": any(row.inherit for row in rows),
        "set": any(row.set for row in rows),
    }


_SYSTEM = "('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)"

# Kind, schema, name, owner, ACL, and the ACL that counts where it is NULL.
_OBJECTS = f"""
SELECT CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized_view' WHEN 'S' THEN 'sequence' ELSE 'table' END,
       n.nspname::text, c.relname::text, pg_get_userbyid(c.relowner), c.relacl::text,
       coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner))
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND n.oid NOT IN {_SYSTEM}
UNION ALL
SELECT 'function', n.nspname, p.proname || '(' || oidvectortypes(p.proargtypes) || ')', pg_get_userbyid(p.proowner),
       p.proacl::text, coalesce(p.proacl, acldefault('f', p.proowner))
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.oid NOT IN {_SYSTEM} OR p.proname = 'pg_sleep'
UNION ALL
SELECT CASE WHEN t.typtype IN ('d', 'e', 'r') OR (t.typtype = 'b' AND t.typcategory <> 'A') OR c.relkind = 'c'
            THEN 'type' ELSE 'no type of its own' END,
       n.nspname, t.typname, pg_get_userbyid(t.typowner), t.typacl::text,
       coalesce(t.typacl, acldefault('T', t.typowner))
  FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_class c ON c.oid = t.typrelid
 WHERE n.oid NOT IN {_SYSTEM}
UNION ALL
SELECT 'schema', NULL, n.nspname, pg_get_userbyid(n.nspowner), n.nspacl::text,
       coalesce(n.nspacl, acldefault('n', n.nspowner))
  FROM pg_namespace n WHERE n.nspname NOT LIKE 'pg\\_t%'
UNION ALL
SELECT 'database', NULL, d.datname, pg_get_userbyid(d.datdba), d.datacl::text,
       coalesce(d.datacl, acldefault('d', d.datdba))
  FROM pg_database d
UNION ALL
SELECT 'language', NULL, l.lanname, pg_get_userbyid(l.lanowner), l.lanacl::text,
       coalesce(l.lanacl, acldefault('l', l.lanowner))
  FROM pg_language l
UNION ALL
SELECT 'foreign_data_wrapper', NULL, w.fdwname, pg_get_userbyid(w.fdwowner), w.fdwacl::text,
       coalesce(w.fdwacl, acldefault('F', w.fdwowner))
  FROM pg_foreign_data_wrapper w
UNION ALL
SELECT 'foreign_server', NULL, f.srvname, pg_get_userbyid(f.srvowner), f.srvacl::text,
       coalesce(f.srvacl, acldefault('S', f.srvowner))
  FROM pg_foreign_server f
UNION ALL
SELECT 'tablespace', NULL, s.spcname, pg_get_userbyid(s.spcowner), s.spcacl::text,
       coalesce(s.spcacl, acldefault('t', s.spcowner))
  FROM pg_tablespace s
UNION ALL
SELECT 'large_object', NULL, o.oid::text, pg_get_userbyid(o.lomowner), o.lomacl::text,
       coalesce(o.lomacl, acldefault('L', o.lomowner))
  FROM pg_largeobject_metadata o
"""

# Without a row nobody but the first superuser may set the parameter.
_PARAMETERS = """
UNION ALL SELECT 'parameter', NULL, p.parname, 'postgres', p.paracl::text, p.paracl FROM pg_parameter_acl p
"""

_EXPLODED = """(SELECT json_agg(json_build_array(
    CASE e.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(e.grantee) END,
    e.privilege_type, pg_get_userbyid(e.grantor), e.is_grantable)) FROM aclexplode({}) e)"""

_KINDS = {"r": "table", "S": "sequence", "f": "function", "T": "type", "n": "schema", "L": "large_object"}


def read(connection: psycopg.Connection[Any]) -> Catalog:
    """The catalog as it is."""

    def rows(query: str) -> list[tuple[Any, ...]]:
        return connection.execute(query).fetchall()

    version = connection.info.server_version // 10000
    found = Catalog(version, rows("SELECT current_database()")[0][0])
    for name, comment, *values in rows(
        "SELECT r.rolname, shobj_description(r.oid, 'pg_authid'), r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb,"
        " r.rolcanlogin, r.rolreplication, r.rolbypassrls, r.rolconnlimit,"
        " CASE WHEN isfinite(r.rolvaliduntil) THEN (r.rolvaliduntil AT TIME ZONE 'UTC')::text"
        " ELSE coalesce(r.rolvaliduntil::text, 'infinity') END FROM pg_roles r"
    ):
        found.roles[name] = {**dict(zip(ATTRIBUTES, values, strict=True)), "comment": comment}
    options = "m.inherit_option, m.set_option" if version >= 16 else "NULL::bool, NULL::bool"
    found.memberships = {
        Row(*row)
        for row in rows(
            "SELECT pg_get_userbyid(m.roleid), pg_get_userbyid(m.member), pg_get_userbyid(m.grantor), m.admin_option,"
            f" {options} FROM pg_auth_members m"
        )
    }
    for kind, schema, name, owner, raw, entries in rows(
        f"SELECT kind, schema, name, owner, raw, {_EXPLODED.format('acl')}"
        f" FROM ({_OBJECTS}{_PARAMETERS if version >= 15 else ''}) AS o(kind, schema, name, owner, raw, acl)"
    ):
        found.objects[kind, schema, name] = Thing(owner, _entries(entries), raw)
    for kind, schema, name, column, entries in rows(
        "SELECT CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized_view' ELSE 'table' END,"
        f" n.nspname, c.relname, a.attname, {_EXPLODED.format('a.attacl')} FROM pg_attribute a"
        " JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
        f" WHERE a.attnum > 0 AND c.relkind IN ('r', 'p', 'f', 'v', 'm') AND n.oid NOT IN {_SYSTEM}"
    ):
        found.columns[(kind, schema, name), column] = _entries(entries)
    for owner, schema, letter, entries in rows(
        f"SELECT pg_get_userbyid(d.defaclrole), n.nspname, d.defaclobjtype::text, {_EXPLODED.format('d.defaclacl')}"
        " FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace"
    ):
        found.defaults[owner, schema, _KINDS[letter]] = _entries(entries)
    found.risky = {
        row[0]
        for row in rows(
            f"SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relkind IN ('v', 'm') AND relnamespace NOT IN {_SYSTEM}"
            " UNION SELECT pg_get_userbyid(proowner) FROM pg_proc WHERE prosecdef"
        )
    } | {BOOTSTRAP}
    return found


def _entries(rows: list[list[Any]] | None) -> Entries:
    return {Entry(*row) for row in rows or ()}


ATTRIBUTES = (
    "superuser",
    "inherit",
    "createrole",
    "createdb",
    "login",
    "replication",
    "bypassrls",
    "connection_limit",
    "valid_until",
)
_OMITTED = dict.fromkeys(ATTRIBUTES, False) | {"inherit": True, "connection_limit": -1, "valid_until": "infinity"}

_RELATION = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")


def privileges_of(kind: str, version: int) -> set[str]:
    """What ALL means."""
    if kind in ("table", "view", "materialized_view"):
        return {*_RELATION, "MAINTAIN"} if version >= 17 else {*_RELATION}
    return {
        "sequence": {"USAGE", "SELECT", "UPDATE"},
        "function": {"EXECUTE"},
        "schema": {"USAGE", "CREATE"},
        "database": {"CONNECT", "CREATE", "TEMPORARY"},
        "type": {"USAGE"},
        "large_object": {"SELECT", "UPDATE"},
        "language": {"USAGE"},
        "foreign_data_wrapper": {"USAGE"},
        "foreign_server": {"USAGE"},
        "tablespace": {"CREATE"},
        "parameter": {"SET", "ALTER SYSTEM"},
        "column": {"SELECT", "INSERT", "UPDATE", "REFERENCES"},
    }[kind]


#: What other databases see as well.
SHARED = ("database", "tablespace", "parameter")


def builtin(kind: str, owner: str, version: int) -> Entries:
    """What the ACL means while it is NULL."""
    entries = {Entry(owner, privilege, owner, False) for privilege in privileges_of(kind, version)}
    if kind == "function":
        entries.add(Entry(PUBLIC, "EXECUTE", owner, False))
    if kind == "type":
        entries.add(Entry(PUBLIC, "USAGE", owner, False))
    return entries


# ---- the manifest, read plainly ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """``who`` gets or loses one privilege on an object or on all of a kind in a schema (name ``*``), or on a column."""

    who: str
    privilege: str
    kind: str
    schema: str | None
    name: str
    column: str | None
    present: bool
    option: bool


@dataclass(frozen=True)
class DefaultRule:
    """The same for objects still to be created."""

    who: str
    privilege: str
    kind: str
    owner: str
    schema: str | None
    present: bool
    option: bool


def _who(name: str) -> str:
    return PUBLIC if name.upper() == PUBLIC else name


def _words(privileges: list[str], kind: str, version: int) -> set[str]:
    words = {word.upper() for word in privileges}
    if "ALL" in words:
        return privileges_of(kind, version)
    return {"TEMPORARY" if word == "TEMP" else word for word in words}


def _kind(name: str) -> str:
    return {"routine": "function", "domain": "type"}.get(name, name)


class Reading:
    """The manifest in the plainest terms: who is declared, which edges, which single rules."""

    def __init__(self, manifest: Manifest, before: Catalog, spellings: dict[tuple[str, str], str]) -> None:
        self.manifest = manifest
        version = before.version
        default_owner = manifest.get("default_owner")
        profiles = manifest.get("profiles") or {}
        self.roles: dict[str, dict[str, Any]] = {role["name"]: role for role in manifest.get("roles") or []}
        self.assumed = set(manifest.get("assume_roles") or [])
        self.schemas: dict[str, dict[str, Any]] = {item["name"]: item for item in manifest.get("schemas") or []}
        self.rules: list[Rule] = []
        self.defaults: list[DefaultRule] = []
        self.named_owners: set[str] = set()
        self.scope = manifest.get("scope") or {}
        for name, schema in self.schemas.items():
            owner = schema.get("owner") or default_owner
            if owner:
                self.named_owners.add(owner)
            for profile_name in schema.get("profiles") or []:
                profile = profiles[profile_name]
                pattern = schema.get("role_pattern") or manifest.get("role_pattern") or "{schema}-{profile}"
                role = pattern.replace("{schema}", name).replace("{profile}", profile_name)
                self.roles[role] = {key: profile[key] for key in ("login", "inherit") if key in profile}
                for grant in profile.get("grants") or []:
                    kind = _kind(grant["object"]["type"])
                    if kind == "schema":
                        self._rule(grant, role, kind, None, name, version)
                    else:
                        self._rule(grant, role, kind, name, grant["object"]["name"], version)
                for grant in profile.get("default_privileges") or []:
                    self._default(grant, role, owner, name, version)
        for grant in manifest.get("grants") or []:
            target = grant["object"]
            kind = _kind(target["type"])
            wanted = target.get("name") or before.database
            if kind == "function" and wanted != "*":
                wanted = spellings[target["schema"], wanted]
            if kind == "parameter":
                wanted = wanted.lower()
            self._rule(grant, grant["role"], kind, target.get("schema"), wanted, version)
        for stanza in manifest.get("default_privileges") or []:
            owner = stanza.get("owner") or default_owner
            for grant in stanza["grant"]:
                self._default(grant, grant["role"], owner, stanza.get("schema"), version)
        self.edges: dict[tuple[str, str], dict[str, Any]] = {}
        self.exclusive: set[str] = set()
        for stanza in manifest.get("memberships") or []:
            if stanza.get("exclusive"):
                self.exclusive.add(stanza["role"])
            for member in stanza.get("members") or []:
                self.edges[stanza["role"], member["name"]] = member

    def _rule(self, grant: Manifest, who: str, kind: str, schema: str | None, name: str, version: int) -> None:
        present = grant.get("ensure", "present") == "present"
        option = bool(grant.get("with_grant_option"))
        columns = grant.get("columns") or [None]
        for privilege in _words(grant["privileges"], "column" if columns[0] else kind, version):
            for column in columns:
                self.rules.append(Rule(_who(who), privilege, kind, schema, str(name), column, present, option))

    def _default(self, grant: Manifest, who: str, owner: str | None, schema: str | None, version: int) -> None:
        present = grant.get("ensure", "present") == "present"
        option = bool(grant.get("with_grant_option"))
        kind = _kind(grant["on_type"])
        assert owner is not None, "else the manifest is refused"
        self.named_owners.add(owner)
        for privilege in _words(grant["privileges"], kind, version):
            self.defaults.append(DefaultRule(_who(who), privilege, kind, owner, schema, present, option))

    def ignored(self, role: str) -> bool:
        return any(fnmatchcase(role, pattern) for pattern in self.scope.get("ignore_roles") or [])

    def external(self, role: str) -> bool:
        return role.startswith("pg_") or role == BOOTSTRAP or bool(self.roles[role].get("external"))

    def overridden(self, role: str) -> bool:
        return self.roles.get(role, {}).get("privilege_reconciliation") == "additive"

    def managed_schemas(self, existing: set[str]) -> set[str]:
        found = set(self.schemas)
        for pattern in self.scope.get("schemas") or []:
            found |= {name for name in existing if fnmatchcase(name, pattern)}
        for rule in self.rules:
            if rule.present and rule.who != PUBLIC and (rule.kind == "schema" or rule.schema is not None):
                found.add(rule.name if rule.kind == "schema" else str(rule.schema))
        for default in self.defaults:
            if default.present and default.who != PUBLIC and default.schema is not None:
                found.add(default.schema)
        return {name for name in found if not name.startswith("pg_") and name != "information_schema"}


# ---- the catalog afterwards ----------------------------------------------------------------------------------------


#: An object, or a column of it.
Place: TypeAlias = "tuple[Key, str | None]"
#: Grantee, privilege, grantor.
Given: TypeAlias = "tuple[str, str, str]"


@dataclass
class Expected:
    """``catalog``: as it must be afterwards. ``refused``: the error codes of an apply that may not do it.

    ``suppressed``: what only the override keeps. ``untouched``: objects whose ACL must stay as it is to the letter.
    """

    catalog: Catalog
    refused: set[str] = field(default_factory=set)
    #: It may fail with ``dependent_privileges`` too: a grantor has lost its option, and may act as the owner.
    may_refuse: bool = False
    suppressed: set[tuple[Any, ...]] = field(default_factory=set)
    untouched: set[Key] = field(default_factory=set)
    #: What hung in the air before the run, as a superuser can leave it: whether its grantor or the owner is the grantor
    #: afterwards is left open.
    unrooted: dict[Place, set[Given]] = field(default_factory=dict)
    #: Whether anything goes that another than the owner gave.
    foreign: bool = False


def expect(
    manifest: Manifest,
    options: dict[str, Any],
    before: Catalog,
    spellings: dict[tuple[str, str], str],
    executor: str = BOOTSTRAP,
) -> Expected:
    """What a run has to make of the catalog."""
    reading = Reading(manifest, before, spellings)
    mode = options.get("reconciliation_mode", "authoritative")
    expected = Expected(copy.deepcopy(before))
    after = expected.catalog
    _roles(reading, mode, after)
    _memberships(reading, mode, before, after, expected, executor)
    held_back = _schemas(reading, mode, options, before, after, executor)
    losers = _privileges(reading, mode, options, before, after, expected)
    losers |= _defaults(reading, mode, options, after, expected, held_back)
    if options.get("undeclared_grantees") is None:
        if _heirs(losers, before) & before.risky or len(losers) > 20:
            expected.refused.add("guard")
    return expected


def _heirs(losers: set[str], before: Catalog) -> set[str]:
    """The losers, and who has their privileges through them."""
    found = set(losers)
    while True:
        more = {
            row.member
            for row in before.memberships
            if row.group in found and (row.inherit if row.inherit is not None else before.roles[row.member]["inherit"])
        } - found
        if not more:
            return {name for name in found if name in losers or not before.roles[name]["superuser"]}
        found |= more


def _roles(reading: Reading, mode: str, after: Catalog) -> None:
    for name, role in reading.roles.items():
        known = name in after.roles
        if known and (reading.external(name) or mode == "additive"):
            continue
        comment = after.roles[name]["comment"] if known else None
        if role.get("comment") is not None:
            comment = role["comment"] or None
        after.roles[name] = {attribute: role.get(attribute, _OMITTED[attribute]) for attribute in ATTRIBUTES}
        if role.get("valid_until"):
            moment = datetime.datetime.fromisoformat(role["valid_until"]).astimezone(datetime.timezone.utc)
            after.roles[name]["valid_until"] = moment.strftime("%Y-%m-%d %H:%M:%S.%f")
        after.roles[name]["comment"] = comment


def _memberships(
    reading: Reading, mode: str, before: Catalog, after: Catalog, expected: Expected, executor: str
) -> None:
    """The rows that stay, and for each edge one row that stands for what its rows give together."""
    edges: set[Row] = set()
    for group, member in {row[:2] for row in before.memberships} | set(reading.edges):
        rows = [row for row in before.memberships if row[:2] == (group, member)]
        creator = after.roles[member]["createrole"]
        options = _edge(reading, mode, group, member, rows, executor, creator, before.version)
        if options is not None:
            edges.add(Row(group, member, "", *options))
    after.memberships = edges
    if _circle({(row.group, row.member) for row in edges}):
        expected.refused.add("circle")


def _edge(
    reading: Reading,
    mode: str,
    group: str,
    member: str,
    rows: list[Row],
    executor: str,
    creator: bool,
    version: int,
) -> tuple[bool, bool | None, bool | None] | None:
    """Admin, inherit and set as they have to be, or None for no membership."""
    old = version < 16
    wanted = reading.edges.get((group, member))
    assumed = group in reading.assumed and member in reading.assumed
    if wanted is None or assumed:
        claimed = group in reading.exclusive or (group in reading.roles and not reading.external(group))
        kept = rows
        may_go = claimed and mode != "additive" and member != executor and member != BOOTSTRAP and group != BOOTSTRAP
        if reading.ignored(group) or reading.ignored(member) or member.startswith("pg_"):
            may_go = False
        if assumed:
            may_go = False
        if may_go:
            kept = [row for row in rows if row.automatic]
            kept += [row for row in rows if row.self_granted and kept]
        if not kept:
            return None
        has = effective(kept)
        return (has["admin"], None, None) if old else (has["admin"], has["inherit"], has["set"])
    has = effective(rows)
    lowers = mode != "additive" and member != executor
    # A row that looks automatic is one of the declared edge where the member creates no roles.
    automatic = [row for row in rows if row.automatic and creator]
    protected = list(automatic)
    if wanted.get("admin") or automatic:
        protected += [row for row in rows if row.self_granted]
    wants = {"admin": bool(wanted.get("admin")), "inherit": wanted.get("inherit"), "set": wanted.get("set")}
    result: dict[str, bool] = {}
    new = len(rows) == len(automatic)
    for option in ("admin", "inherit", "set"):
        if wants[option] is None:
            result[option] = True if new else has[option]
        elif wants[option]:
            result[option] = True
        else:
            result[option] = effective(protected)[option] if lowers else has[option]
    return (result["admin"], None, None) if old else (result["admin"], result["inherit"], result["set"])


def _circle(edges: set[tuple[str, str]]) -> bool:
    """Whether a role is its own member. Leaves are taken away until nothing is left, or a circle."""
    edges = set(edges)
    while True:
        members = {member for _group, member in edges}
        left = {(group, member) for group, member in edges if group in members}
        if left == edges:
            return bool(edges)
        edges = left


def _schemas(
    reading: Reading, mode: str, options: dict[str, Any], before: Catalog, after: Catalog, executor: str
) -> set[tuple[str, str]]:
    """Returns schema and owner where the mode keeps the schema with somebody else."""
    held_back: set[tuple[str, str]] = set()
    default_owner = reading.manifest.get("default_owner")
    for name, schema in reading.schemas.items():
        key: Key = ("schema", None, name)
        owner = schema.get("owner")
        thing = after.objects.get(key)
        if thing is None:
            owner = owner or default_owner or executor
            given = before.defaults.get((owner, None, "schema"))
            entries = builtin("schema", owner, before.version) if given is None else set(given)
            after.objects[key] = Thing(owner, entries, None)
        elif owner is not None and owner != thing.owner:
            if mode == "additive" or (mode == "adopt" and not options.get("adopt_schema_owners")):
                held_back.add((name, owner))
                continue
            thing.entries = _merged(thing.entries, thing.owner, owner)
            thing.owner = owner
    return held_back


def _merged(entries: Entries, old: str, new: str) -> Entries:
    """ALTER … OWNER TO puts the new owner wherever the old one stands."""
    merged: dict[tuple[str, str, str], bool] = {}
    for entry in entries:
        grantee = new if entry.grantee == old else entry.grantee
        grantor = new if entry.grantor == old else entry.grantor
        key = (grantee, entry.privilege, grantor)
        merged[key] = merged.get(key, False) or entry.grantable
    return {Entry(*key, grantable) for key, grantable in merged.items()}


class Wish(NamedTuple):
    """What the manifest says about one privilege of one role in one place."""

    required: bool
    option: bool
    absent: bool
    may: bool
    may_option: bool


def _wish(reading: Reading, key: Key, column: str | None, owner: str, who: str, privilege: str) -> Wish:
    kind, schema, name = key
    here = (kind, schema, who, privilege)
    rules = [r for r in reading.rules if (r.kind, r.schema, r.who, r.privilege) == here]
    named = [r for r in rules if r.name == name]
    wildcard = [r for r in rules if r.name == "*" and schema is not None]
    # A rule that names the object beats a wildcard. What is taken from a table is taken from its columns too, unless a
    # rule about the column says otherwise.
    says: list[bool] = []
    for level in (named, wildcard):
        says = says or [r.present for r in level if r.column == column]
        says = says or [False for r in level if r.column is None and not r.present]
    absent, required = False in says, True in says
    permits = [
        d
        for d in reading.defaults
        if d.present
        and (d.owner, d.who, d.privilege) == (owner, who, privilege)
        and d.schema in (None, schema)
        and (d.kind == kind or (d.kind == "table" and kind in ("view", "materialized_view")))
        and column is None
    ]
    return Wish(
        required and not absent,
        required and not absent and any(r.option for r in named + wildcard if r.column == column),
        absent,
        bool(permits),
        any(d.option for d in permits),
    )


def _privileges(
    reading: Reading, mode: str, options: dict[str, Any], before: Catalog, after: Catalog, expected: Expected
) -> set[str]:
    """Returns the undeclared roles that lose something."""
    losers: set[str] = set()
    schemas = {name for kind, _schema, name in before.objects if kind == "schema"}
    managed_schemas = reading.managed_schemas(schemas)
    named = {(r.kind, r.name) for r in reading.rules if r.schema is None and r.present and r.who != PUBLIC}
    parameters = {r.name for r in reading.rules if r.kind == "parameter"}
    for name in parameters:
        after.objects.setdefault(
            ("parameter", None, name), Thing(BOOTSTRAP, builtin("parameter", BOOTSTRAP, before.version), None)
        )
    for key, thing in after.objects.items():
        kind, schema, name = key
        if kind == "no type of its own":
            continue
        if kind == "schema":
            managed = name in managed_schemas
        elif schema is None:
            managed = (kind, name) in named
        else:
            managed = schema in managed_schemas
        old = thing.entries
        one = Settling(reading, mode, options, before, after, expected, key, None, thing.owner, old, managed, losers)
        one.settle(set(), set(), set(), set())
        thing.entries = one.entries
        if thing.entries == old and key in before.objects and before.objects[key].owner == thing.owner:
            # A grantor may have had to borrow USAGE on its schema for a moment.
            if kind != "schema":
                expected.untouched.add(key)
        could = _holders(old)
        can = _holders(thing.entries)
        for place, entries in after.columns.items():
            if place[0] == key:
                column = place[1]
                part = Settling(
                    reading, mode, options, before, after, expected, key, column, thing.owner, entries, managed, losers
                )
                part.settle(one.revoked, one.lowered, could, can)
                after.columns[place] = part.entries
    for name in parameters:
        if after.objects["parameter", None, name].entries == builtin("parameter", BOOTSTRAP, before.version):
            # The server keeps no row that says nothing.
            del after.objects["parameter", None, name]
            expected.untouched.discard(("parameter", None, name))
    return losers


def _holders(entries: Entries) -> set[tuple[str, str]]:
    return {(entry.grantee, entry.privilege) for entry in entries if entry.grantable}


@dataclass
class Settling:
    """One ACL, of an object or of a column, and what becomes of it."""

    reading: Reading
    mode: str
    options: dict[str, Any]
    before: Catalog
    after: Catalog
    expected: Expected
    key: Key
    column: str | None
    owner: str
    entries: Entries
    managed: bool
    losers: set[str]
    revoked: set[Given] = field(default_factory=set)
    lowered: set[Given] = field(default_factory=set)

    def wish(self, who: str, privilege: str) -> Wish:
        return _wish(self.reading, self.key, self.column, self.owner, who, privilege)

    def settle(
        self,
        taken: set[Given],
        lowered_too: set[Given],
        could: set[tuple[str, str]],
        can: set[tuple[str, str]],
    ) -> None:
        """``taken`` and ``lowered_too``: what REVOKE on the whole table takes along. ``could`` and ``can``: who holds the
        grant option on the whole table, before and after.
        """
        owner = self.owner
        old = self.entries
        given = {(e.grantee, e.privilege, e.grantor): e.grantable for e in old}
        self._note_unrooted(given, could)
        # What is surplus.
        left = dict(given)
        for entry in old:
            row = (entry.grantee, entry.privilege, entry.grantor)
            fate = self._fate(entry)
            if fate == "remove":
                del left[row]
                self.revoked.add(row)
            elif fate == "lower":
                left[row] = False
                self.lowered.add(row)
        # What goes for a moment and comes back from the owner.
        back: dict[Given, bool] = {}
        for row in list(left):
            if row in taken:
                back[row] = left.pop(row)
            elif row in lowered_too and left[row]:
                back[row] = True
                left[row] = False
        # What is missing.
        for who in {r.who for r in self.reading.rules if r.kind == self.key[0] and r.column == self.column}:
            for privilege in privileges_of("column" if self.column else self.key[0], self.before.version):
                wish = self.wish(who, privilege)
                if not wish.required:
                    continue
                held = [grantable for row, grantable in given.items() if row[:2] == (who, privilege)]
                if not held and self.column and who == owner:
                    # What an owner holds on the table reaches every column.
                    held = [True for e in self.after.objects[self.key].entries if e[:2] == (who, privilege)]
                if not held:
                    left[who, privilege, owner] = wish.option
                elif wish.option and who != owner and not any(held):
                    left[who, privilege, owner] = True
        self._orphans(given, left, could, can)
        for (grantee, privilege, _grantor), option in back.items():
            self._owner_gives(left, grantee, privilege, option)
        self._unreachable(given, left, could)
        self.entries = {Entry(*row, grantable) for row, grantable in left.items()}

    def _fate(self, entry: Entry) -> str:
        """Whether the entry is kept or removed, or only its grant option is (lower)."""
        who, privilege, grantor, grantable = entry
        reading = self.reading
        kind, _schema, name = self.key
        if who == self.owner:
            return "keep"
        wish = self.wish(who, privilege)
        if wish.absent:
            fate = "remove"
        elif who == PUBLIC:
            return "keep"
        elif wish.required or (self.managed and wish.may):
            if not grantable or wish.option or wish.may_option:
                return "keep"
            fate = "lower"
        elif self.managed:
            fate = "remove"
        else:
            return "keep"
        if self.mode == "additive" or reading.ignored(who):
            return "keep"
        if grantor != self.owner and reading.ignored(grantor):
            # Nothing is revoked in its name.
            return "keep"
        if wish.absent:
            return fate
        if who not in self.before.roles and who not in reading.roles:
            return "keep"
        if who.startswith("pg_") and who not in reading.roles:
            return "keep"
        if kind in SHARED and not (kind == "database" and name == self.before.database) and who not in reading.roles:
            return "keep"
        undeclared = who not in reading.roles and who not in reading.assumed
        if undeclared and self.options.get("undeclared_grantees") == "keep":
            return "keep"
        if reading.overridden(who):
            word = "grant_option" if fate == "lower" else "column" if self.column else "object"
            self.expected.suppressed.add((who, word, *self.key, self.column, privilege, grantor))
            return "keep"
        if undeclared:
            self.losers.add(who)
        return fate

    def _orphans(
        self,
        given: dict[Given, bool],
        left: dict[Given, bool],
        could: set[tuple[str, str]],
        can: set[tuple[str, str]],
    ) -> None:
        """What hangs on a grant option that goes is granted by the owner before, if it is kept."""
        had = {row[:2] for row, grantable in given.items() if grantable}
        while True:
            holders = {row[:2] for row, grantable in left.items() if grantable}
            # The option on the whole table supports what nothing on the column did.
            holders |= can - (had - holders)
            # What hung in the air already may go on doing so.
            orphans = [
                row
                for row in left
                if row[2] != self.owner and (row[2], row[1]) in (had | could) and (row[2], row[1]) not in holders
            ]
            if not orphans:
                return
            gone = {row: left.pop(row) for row in orphans}
            for (grantee, privilege, grantor), option in gone.items():
                row = (grantee, privilege, grantor)
                self.revoked.add(row)
                if self.reading.ignored(grantee) or self.reading.ignored(grantor):
                    # No statement may name it.
                    self.expected.refused.add("dependent_privileges")
                rest = [o for other, o in left.items() if other[:2] == (grantee, privilege)]
                if rest and (any(rest) or not option):
                    continue
                if not self.managed and not self.wish(grantee, privilege).required:
                    self.expected.refused.add("dependent_privileges")
                self._owner_gives(left, grantee, privilege, option)

    def _owner_gives(self, left: dict[Given, bool], grantee: str, privilege: str, option: bool) -> None:
        row = (grantee, privilege, self.owner)
        left[row] = left.get(row, False) or option

    def _unreachable(self, given: dict[Given, bool], left: dict[Given, bool], could: set[tuple[str, str]]) -> None:
        """Whether something would have to go that a superuser gave: his REVOKE acts as the owner."""
        holders = {row[:2] for row, grantable in given.items() if grantable} | could
        for row in self.revoked | self.lowered:
            grantor = row[2]
            if grantor == self.owner:
                continue
            self.expected.foreign = True
            if self.after.roles[grantor]["superuser"]:
                self.expected.refused.add("dependent_privileges")
            if (grantor, row[1]) not in holders:
                self.expected.may_refuse = True

    def _note_unrooted(self, given: dict[Given, bool], could: set[tuple[str, str]]) -> None:
        rooted: set[Given] = {row for row in given if row[2] == self.owner}
        while True:
            holders = {row[:2] for row in rooted if given[row]} | could
            more = {row for row in given if (row[2], row[1]) in holders} - rooted
            if not more:
                break
            rooted |= more
        if set(given) - rooted:
            self.expected.unrooted[self.key, self.column] = set(given) - rooted


def _defaults(
    reading: Reading,
    mode: str,
    options: dict[str, Any],
    after: Catalog,
    expected: Expected,
    held_back: set[tuple[str, str]],
) -> set[str]:
    """Returns the undeclared roles that lose something."""
    losers: set[str] = set()
    managed = reading.managed_schemas({name for kind, _schema, name in after.objects if kind == "schema"})
    layers = set(after.defaults) | {(d.owner, d.schema, d.kind) for d in reading.defaults}
    for owner, schema, kind in layers:
        nothing = builtin(kind, owner, after.version) if schema is None else set()
        entries = set(after.defaults.get((owner, schema, kind), nothing))
        rules = [d for d in reading.defaults if (d.owner, d.schema, d.kind) == (owner, schema, kind)]
        if schema is None:
            claimed = any(d.present and d.who != PUBLIC for d in rules)
        else:
            claimed = schema in managed and owner in reading.named_owners
        for who in {d.who for d in rules} | {entry.grantee for entry in entries}:
            for privilege in privileges_of(kind, after.version):
                about = [d for d in rules if (d.who, d.privilege) == (who, privilege)]
                says = [d.present for d in about]
                option = any(d.option for d in about)
                held = {e for e in entries if e.grantee == who and e.privilege == privilege}
                has_option = any(e.grantable for e in held)
                replaced: Entries = set()
                if True in says:
                    if not held or (option and not has_option and who != owner):
                        if (schema, owner) not in held_back:
                            entries -= held
                            entries.add(Entry(who, privilege, owner, option))
                        continue
                    if option or not has_option:
                        continue
                    replaced = {Entry(who, privilege, owner, False)}
                if not held or who == owner:
                    continue
                if reading.ignored(who) or reading.ignored(owner) or mode == "additive":
                    continue
                if False in says:
                    entries -= held
                    continue
                if who == PUBLIC or not claimed:
                    continue
                if who.startswith("pg_") and who not in reading.roles:
                    continue
                undeclared = who not in reading.roles and who not in reading.assumed
                if undeclared and options.get("undeclared_grantees") == "keep":
                    continue
                if reading.overridden(who):
                    expected.suppressed |= {
                        (who, "default_privilege", owner, schema, kind, e.privilege, e.grantor) for e in held
                    }
                    continue
                entries -= held
                entries |= replaced
                if undeclared:
                    losers.add(who)
        # The server keeps no row that says nothing.
        after.defaults.pop((owner, schema, kind), None)
        if entries != nothing:
            after.defaults[owner, schema, kind] = entries
    return losers


def differences(expected: Expected, found: Catalog, before: Catalog) -> list[str]:
    """What is not as it has to be, one line each."""
    wanted = expected.catalog
    lines: list[str] = []

    def compare(what: str, want: Any, have: Any) -> None:
        if want != have:
            lines.append(f"{what}:\n    must be {_sorted(want)}\n    but is  {_sorted(have)}")

    compare("roles", set(wanted.roles), set(found.roles))
    for name in set(wanted.roles) & set(found.roles):
        compare(f"role {name}", wanted.roles[name], found.roles[name])
    old = found.version < 16
    have = {
        Row(*edge, "", options["admin"], None if old else options["inherit"], None if old else options["set"])
        for edge, options in found.edges().items()
    }
    compare("memberships", wanted.memberships - have, have - wanted.memberships)
    compare("objects", set(wanted.objects), set(found.objects))
    for key in set(wanted.objects) & set(found.objects):
        compare(f"owner of {key}", wanted.objects[key].owner, found.objects[key].owner)
        compare(f"privileges on {key}", *_both(expected, found, (key, None)))
        if key in expected.untouched:
            compare(f"ACL of {key} to the letter", before.objects[key].raw, found.objects[key].raw)
    compare("columns", set(wanted.columns), set(found.columns))
    for key, column in set(wanted.columns) & set(found.columns):
        compare(f"privileges on {key} ({column})", *_both(expected, found, (key, column)))
    for layer in set(wanted.defaults) | set(found.defaults):
        compare(f"default privileges {layer}", wanted.defaults.get(layer), found.defaults.get(layer))
    return sorted(lines)


def _both(expected: Expected, found: Catalog, place: Place) -> tuple[Entries, Entries]:
    """The entries wanted and found, without their grantor where it is left open."""
    key, column = place
    loose = {row[:2] for row in expected.unrooted.get(place, ())}
    sides = []
    for catalog in (expected.catalog, found):
        entries = catalog.objects[key].entries if column is None else catalog.columns[key, column]
        best: dict[Given, bool] = {}
        for grantee, privilege, grantor, grantable in entries:
            row = (grantee, privilege, "left open" if (grantee, privilege) in loose else grantor)
            best[row] = best.get(row, False) or grantable
        sides.append({Entry(*row, grantable) for row, grantable in best.items()})
    return sides[0], sides[1]


def _sorted(value: Any) -> Any:
    return sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
