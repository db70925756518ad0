# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random databases, and random manifests about them.

A database is a list of SQL statements: what is printed when a property fails can be run by hand. A statement that the
server refuses (a membership that closes a circle, say) is left out, so nothing here has to know the server's rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml
from hypothesis import strategies as st

Draw: TypeAlias = st.DrawFn

PUBLIC = "PUBLIC"

#: Names that have gone wrong somewhere.
ROLES = [
    "app",
    "App",
    "pgloader_pg",
    "we\"ird o'clock",
    "a.b",
    "100%s",
    "user",
    "zoë",
    "r" * 63,
    "ign_x",
    "back\\slash",
    "{schema}",
]
NEW_ROLES = ["fresh", "New.Role", "b@proj.iam", "current_user"]
SCHEMAS = ["s", "c.d", 'Sch"ema', "select", "ü" * 31]
NAMES = ["t", "Order", "order", "a b", "100%", "q\"'q", "e.f", "*", "n" * 63, "très", "user", "%s", "back\\"]
COMMENT = "it's \\ é"
RELATION_PRIVILEGES = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]
PRIVILEGES = {
    "table": RELATION_PRIVILEGES,
    "view": RELATION_PRIVILEGES,
    "materialized_view": RELATION_PRIVILEGES,
    "sequence": ["USAGE", "SELECT", "UPDATE"],
    "function": ["EXECUTE"],
    "schema": ["USAGE", "CREATE"],
    "database": ["CONNECT", "CREATE", "TEMPORARY"],
    "type": ["USAGE"],
    "language": ["USAGE"],
    "foreign_data_wrapper": ["USAGE"],
    "foreign_server": ["USAGE"],
    "tablespace": ["CREATE"],
    "parameter": ["SET", "ALTER SYSTEM"],
    "large_object": ["SELECT", "UPDATE"],
}
COLUMN_PRIVILEGES = ["SELECT", "INSERT", "UPDATE", "REFERENCES"]
#: What changes hands in the random databases.
OWNED = ("table", "view", "materialized_view", "sequence", "function", "schema", "database", "type")
RELATIONS = ("table", "view", "materialized_view")
KEYWORD = {
    "table": "TABLE",
    "view": "TABLE",
    "materialized_view": "TABLE",
    "sequence": "SEQUENCE",
    "function": "ROUTINE",
    "schema": "SCHEMA",
    "database": "DATABASE",
    "type": "TYPE",
    "language": "LANGUAGE",
    "foreign_data_wrapper": "FOREIGN DATA WRAPPER",
    "foreign_server": "FOREIGN SERVER",
    "tablespace": "TABLESPACE",
    "parameter": "PARAMETER",
    "large_object": "LARGE OBJECT",
}
DEFAULT_KEYWORD = {
    "table": "TABLES",
    "sequence": "SEQUENCES",
    "function": "ROUTINES",
    "schema": "SCHEMAS",
    "type": "TYPES",
    "large_object": "LARGE OBJECTS",
}

#: Argument list as CREATE FUNCTION takes it, as the catalog prints the input types, other spellings in a manifest.
ARGUMENTS = [
    ("", "", [""]),
    ("int", "integer", ["integer", "int4", "int", " INT "]),
    ("a int, b text DEFAULT 'x'", "integer, text", ["integer,text", "a integer, b text", "int4, pg_catalog.text"]),
    ("numeric(10,2)", "numeric", ["numeric", "decimal(4, 1)", "numeric(10,2)"]),
    ('"a b" timestamp(3) with time zone', "timestamp with time zone", ["timestamptz", "timestamp with time zone"]),
    (
        "varchar[], VARIADIC r int[]",
        "character varying[], integer[]",
        ["varchar[], int[]", "_varchar, VARIADIC r _int4"],
    ),
    ('"char"', '"char"', ['"char"']),
    ("double precision, bit varying(3)", "double precision, bit varying", ["float8, varbit", "float, bit varying(9)"]),
]


def q(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def who(name: str) -> str:
    return name if name == PUBLIC else q(name)


def literal(text: str) -> str:
    return " E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


@dataclass(frozen=True)
class Item:
    """An object of the random database. ``sql`` names it after ON. ``spellings`` name it in a manifest."""

    kind: str
    schema: str | None
    name: str
    sql: str
    spellings: tuple[str, ...]


@dataclass
class Case:
    """A database, a manifest about it, and the options of the run."""

    setup: list[str]
    manifest: dict[str, Any]
    options: dict[str, Any]
    #: Schema and a routine as the manifest spells it, to the name that the catalog gives it.
    spellings: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The statements and the manifest, to be run by hand."""
        text = yaml.safe_dump({**self.options, **self.manifest}, sort_keys=False, allow_unicode=True, width=140)
        return "\n-- setup\n" + "".join(f"{line};\n" for line in self.setup) + "-- manifest and options\n" + text

    def __repr__(self) -> str:
        # The test prints the text when it knows which statements the server took.
        return "a case, see below"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))


# ---- the database --------------------------------------------------------------------------------------------------


def _some(draw: Draw, values: list[str], least: int = 1, most: int = 3) -> list[str]:
    return draw(st.lists(st.sampled_from(values), min_size=least, max_size=most, unique=True))


def _maybe(draw: Draw, one_in: int = 2) -> bool:
    """True once in so many times; shrinks to False."""
    return draw(st.integers(0, one_in - 1)) == one_in - 1


def _count(draw: Draw, usual: int, most: int) -> int:
    """From the usual number to the most, seven times of eight; few for the rest, and when an example shrinks."""
    many = draw(st.sampled_from([False, *[True] * 7]))
    return draw(st.integers(usual, most)) if many else draw(st.integers(0, usual))


class World:
    """Collects the statements that make a database, and what there is to talk about afterwards."""

    def __init__(self, draw: Draw, version: int) -> None:
        self.draw = draw
        self.version = version
        self.setup: list[str] = []
        self.roles: list[str] = []
        self.executor = "postgres"
        self.schemas: list[str] = ["public"]
        self.items: list[Item] = []
        #: Who was given which words on what, and owner, schema, kind, grantee of default privileges.
        self.given: list[tuple[str, Item, list[str]]] = []
        #: The same for columns, and who was given something by whom.
        self.columns_given: list[tuple[str, Item, list[str], str]] = []
        self.default_given: list[tuple[str, str | None, str, str]] = []
        self.foreign = False
        #: The objects' owners by what names them in SQL.
        self.owners: dict[str, str] = {}
        self._taken: set[tuple[str, str]] = set()

    def new_owner(self, sql: str) -> str:
        self.owners[sql] = self.owner()
        return self.owners[sql]

    def owner(self) -> str:
        return self.draw(st.sampled_from(["postgres", *self.roles]))

    def grantee(self, *more: str) -> str:
        return self.draw(st.sampled_from([*self.roles, PUBLIC, "pg_monitor", "pg_read_all_data", *more]))

    def make_roles(self) -> None:
        self.roles = _some(self.draw, ROLES, 2, 5)
        for name in self.roles:
            words = [
                word
                for word in ("LOGIN", "NOINHERIT", "CREATEDB", "CREATEROLE", "BYPASSRLS", "REPLICATION", "CONNECTION LIMIT 3",
                             "VALID UNTIL '2040-01-02 03:04:05.678901+02'")
                if _maybe(self.draw, 6)
            ]  # fmt: skip
            if _maybe(self.draw, 20):
                words.append("SUPERUSER")
            self.setup.append(" ".join([f"CREATE ROLE {q(name)}", *words]))
            if _maybe(self.draw, 8):
                self.setup.append(f"COMMENT ON ROLE {q(name)} IS{literal(COMMENT)}")

        if _maybe(self.draw, 5):
            # Another superuser than the first one runs the module, and holds this and that.
            self.executor = "su 2"
            self.roles.append(self.executor)
            self.setup.append(f"CREATE ROLE {q(self.executor)} SUPERUSER LOGIN")
            self.setup.append(f"GRANT {q(self.draw(st.sampled_from(self.roles[:-1])))} TO {q(self.executor)}")

    def make_plain_executor(self) -> None:
        """The module is run by somebody who is no superuser, and a member of this and that."""
        self.executor = "plain"
        self.setup.append("CREATE ROLE plain LOGIN" + (" NOINHERIT" if _maybe(self.draw, 4) else ""))
        # Half of them may do nearly everything.
        mighty = _maybe(self.draw)
        for name in self.roles:
            if mighty or not _maybe(self.draw, 3):
                sql = f"GRANT {q(name)} TO plain"
                if self.version >= 16 and _maybe(self.draw, 4 if mighty else 2):
                    sql += f" WITH INHERIT {self.draw(st.booleans())}, SET {self.draw(st.booleans())}"
                self.setup.append(sql)
        self.setup.append("GRANT CONNECT ON DATABASE CURRENT_DATABASE TO PUBLIC")
        # It may have some rights of its own.
        for item in self.items:
            if mighty or _maybe(self.draw, 4):
                owner = self.draw(st.sampled_from([*self.roles, "plain"]))
                if item.kind in OWNED:
                    word = "ROUTINE" if item.kind == "function" else item.kind.replace("_", " ").upper()
                    self.setup.append(f"ALTER {word} {item.sql} OWNER TO {q(owner)}")
            elif _maybe(self.draw, 5):
                words = ", ".join(_some(self.draw, PRIVILEGES[item.kind]))
                self.setup.append(f"GRANT {words} ON {KEYWORD[item.kind]} {item.sql} TO plain WITH GRANT OPTION")

    def make_memberships(self, most: int = 6) -> None:
        for _number in range(_count(self.draw, 2, most)):
            group, member = (
                self.draw(st.sampled_from([*self.roles, "pg_monitor"])),
                self.draw(st.sampled_from(self.roles)),
            )
            if group == member:
                continue
            sql = f"GRANT {q(group)} TO {q(member)}"
            if self.version >= 16:
                words = [f"ADMIN {self.draw(st.booleans())}"]
                words += [f"{option} {self.draw(st.booleans())}" for option in ("INHERIT", "SET") if _maybe(self.draw)]
                sql += " WITH " + ", ".join(words)
                if _maybe(self.draw, 3):
                    sql += f" GRANTED BY {q(self.draw(st.sampled_from(self.roles)))}"
            elif self.draw(st.booleans()):
                sql += " WITH ADMIN OPTION"
            self.setup.append(sql)

    def make_schemas(self) -> None:
        for name in _some(self.draw, SCHEMAS, 1, 3):
            self.schemas.append(name)
            self.setup.append(f"CREATE SCHEMA {q(name)} AUTHORIZATION {q(self.owner())}")
        for name in self.schemas:
            self.items.append(Item("schema", None, name, q(name), (name,)))

    def make_others(self) -> None:
        """Now and then something outside schemas."""
        if not _maybe(self.draw, 4):
            return
        kinds = ["language", "foreign_data_wrapper", "foreign_server", "tablespace", "large_object"]
        kinds += ["parameter"] if self.version >= 15 else []
        for kind in _some(self.draw, kinds, 1, 3):
            name, sql, spelled = {
                "language": ("plpgsql", "plpgsql", "plpgsql"),
                "foreign_data_wrapper": ("w 1", q("w 1"), "w 1"),
                "foreign_server": ('s"1', q('s"1'), 's"1'),
                "tablespace": ("pg_default", "pg_default", "pg_default"),
                "large_object": ("4711", "4711", "4711"),
                "parameter": ("work_mem", "work_mem", "Work_MEM"),
            }[kind]
            if kind in ("foreign_data_wrapper", "foreign_server"):
                self.setup.append(f"CREATE FOREIGN DATA WRAPPER {q('w 1')}")
            if kind == "foreign_server":
                self.setup.append(f"CREATE SERVER {sql} FOREIGN DATA WRAPPER {q('w 1')}")
            if kind == "large_object":
                self.setup.append("SELECT lo_create(4711)")
            if kind not in ("tablespace", "parameter") and _maybe(self.draw):
                owner = "postgres" if kind in ("foreign_data_wrapper", "language") else self.new_owner(sql)
                self.setup.append(
                    f"ALTER {KEYWORD[kind].replace('FOREIGN SERVER', 'SERVER')} {sql} OWNER TO {q(owner)}"
                )
            self.items.append(Item(kind, None, name, sql, (spelled,)))

    def make_objects(self, most: int = 8) -> None:
        for _number in range(_count(self.draw, min(3, most), most)):
            schema = self.draw(st.sampled_from(self.schemas))
            name = self.draw(st.sampled_from(NAMES))
            shape = self.draw(
                st.sampled_from(["table", "identity", "partitioned", "foreign", "view", "matview", "sequence", "function",
                                 "function", "procedure", "aggregate", "type", "domain"])
            )  # fmt: skip
            if shape in ("function", "procedure", "aggregate"):
                self._routine(schema, name, shape)
            elif (schema, name) not in self._taken:
                self._taken.add((schema, name))
                self._relation(schema, name, shape)

    def _relation(self, schema: str, name: str, shape: str) -> None:
        full = f"{q(schema)}.{q(name)}"
        kind = {"view": "view", "matview": "materialized_view", "sequence": "sequence", "type": "type",
                "domain": "type"}.get(shape, "table")  # fmt: skip
        if shape == "foreign":
            self.setup += [
                "CREATE FOREIGN DATA WRAPPER w",
                "CREATE SERVER w FOREIGN DATA WRAPPER w",
                f"CREATE FOREIGN TABLE {full} (a int, b text) SERVER w",
            ]
        elif shape == "partitioned":
            self.setup.append(f"CREATE TABLE {full} (a int, b text) PARTITION BY LIST (a)")
            self.setup.append(f"CREATE TABLE {q(schema)}.{q('part of ' + name[:40])} PARTITION OF {full} DEFAULT")
        else:
            self.setup.append(
                {
                    "table": f"CREATE TABLE {full} (a int, b text)",
                    "identity": f"CREATE TABLE {full} (a int GENERATED ALWAYS AS IDENTITY, b text)",
                    "view": f"CREATE VIEW {full} AS SELECT 1 AS a, 'x'::text AS b",
                    "matview": f"CREATE MATERIALIZED VIEW {full} AS SELECT 1 AS a, 'x'::text AS b",
                    "sequence": f"CREATE SEQUENCE {full}",
                    "type": f"CREATE TYPE {full} AS "
                    + self.draw(st.sampled_from(["ENUM ('x')", "(a int)", "RANGE (SUBTYPE = int)"])),
                    "domain": f"CREATE DOMAIN {full} AS int",
                }[shape]
            )
        self.items.append(Item(kind, schema, name, full, (name,)))
        if shape == "identity" and len(name.encode()) < 40:
            sequence = f"{name}_a_seq"
            self.items.append(Item("sequence", schema, sequence, f"{q(schema)}.{q(sequence)}", (sequence,)))
        if _maybe(self.draw):
            word = {"view": "VIEW", "matview": "MATERIALIZED VIEW", "sequence": "SEQUENCE", "type": "TYPE",
                    "domain": "DOMAIN"}.get(shape, "TABLE")  # fmt: skip
            self.setup.append(f"ALTER {word} {full} OWNER TO {q(self.new_owner(full))}")

    def _routine(self, schema: str, name: str, shape: str) -> None:
        created, types, spelled = self.draw(st.sampled_from(ARGUMENTS))
        if shape == "aggregate":
            created, types, spelled = "int", "integer", ["integer", "int"]
        if (schema, f"{name}({types})") in self._taken:
            return
        self._taken.add((schema, f"{name}({types})"))
        full = f"{q(schema)}.{q(name)}"
        if shape == "aggregate":
            self.setup.append(f"CREATE AGGREGATE {full} (int) (SFUNC = int4pl, STYPE = int)")
        elif shape == "procedure":
            out = ", ".join(filter(None, ["OUT o int" if _maybe(self.draw, 3) else "", created]))
            self.setup.append(f"CREATE PROCEDURE {full}({out}) LANGUAGE sql AS 'SELECT 1'")
        else:
            definer = " SECURITY DEFINER" if _maybe(self.draw, 8) else ""
            self.setup.append(f"CREATE FUNCTION {full}({created}) RETURNS int LANGUAGE sql{definer} AS 'SELECT 1'")
        sql = f"{full}({', '.join('IN ' + part for part in types.split(', ') if part)})"
        self.items.append(
            Item("function", schema, f"{name}({types})", sql, tuple(f"{name}({text})" for text in spelled))
        )
        if _maybe(self.draw):
            self.setup.append(f"ALTER ROUTINE {sql} OWNER TO {q(self.new_owner(sql))}")

    def make_grants(self, database: str, most: int = 14) -> None:
        databases = [Item("database", None, database, name, ()) for name in ("CURRENT_DATABASE", "postgres")]
        relations = [item for item in self.items if item.kind in RELATIONS]
        objects = [item for item in self.items if item.schema is not None] or self.items
        for _number in range(_count(self.draw, min(5, most), most)):
            item = self.draw(st.sampled_from([*objects, *self.items, *databases]))
            words = _some(self.draw, PRIVILEGES[item.kind]) if _maybe(self.draw, 3) is False else ["ALL"]
            action = self.draw(
                st.sampled_from(
                    ["grant", "grant", "grant", "option", "column", "column", "revoke", "empty", "owner", "dangling"]
                )
            )
            place = f"{KEYWORD[item.kind]} {item.sql}"
            grantee = self.grantee()
            if action in ("grant", "option"):
                self.given.append((grantee, item, words))
                option = " WITH GRANT OPTION" if action == "option" and grantee != PUBLIC else ""
                self.setup.append(f"GRANT {', '.join(words)} ON {place} TO {who(grantee)}{option}")
            elif action == "column" and relations:
                item = self.draw(st.sampled_from(relations))
                words = _some(self.draw, COLUMN_PRIVILEGES, 1, 2)
                # Beside the same privilege on the whole table as often as not.
                whole = [given for given in self.given if given[1] in relations]
                if whole and not _maybe(self.draw, 4):
                    grantee, item, words = self.draw(st.sampled_from(whole))
                    words = [word for word in words if word in COLUMN_PRIVILEGES] or ["SELECT"]
                column = self.draw(st.sampled_from(["a", "b"]))
                listed = ", ".join(f"{word} ({column})" for word in words)
                option = " WITH GRANT OPTION" if grantee != PUBLIC and _maybe(self.draw, 3) else ""
                self.columns_given.append((grantee, item, words, column))
                self.setup.append(f"GRANT {listed} ON {KEYWORD[item.kind]} {item.sql} TO {who(grantee)}{option}")
            elif action == "revoke":
                self.setup.append(f"REVOKE {', '.join(words)} ON {place} FROM {who(grantee)}")
            elif action == "empty" and item.kind in OWNED and item.sql != "postgres":
                # From PUBLIC and from the owner: what is left of it may be {}.
                self.setup.append(f"REVOKE ALL ON {place} FROM PUBLIC, OWNER_OF {item.kind} {item.sql}")
            elif action == "dangling" and item.kind in ("table", "view", "sequence"):
                # As somebody leaves it behind who is dropped while his privilege is given.
                letter = "s" if item.kind == "sequence" else "r"
                self.setup.append(
                    f"UPDATE pg_class SET relacl = coalesce(relacl, acldefault('{letter}', relowner))"
                    f" || makeaclitem(4242, relowner, 'SELECT', false) WHERE oid ={literal(item.sql)}::regclass"
                )
            elif action == "owner" and item.kind in OWNED and item.sql != "postgres":
                word = "ROUTINE" if item.kind == "function" else item.kind.replace("_", " ").upper()
                self.setup.append(f"ALTER {word} {item.sql} OWNER TO {q(self.new_owner(item.sql))}")

    def make_foreign_grants(self, most: int = 3) -> None:
        """Privileges that somebody else than the owner gave: chains, several grantors, columns and PUBLIC."""
        self.foreign = True
        items = [item for item in self.items if item.sql not in ("plpgsql", "pg_default")] or self.items
        relations = [item for item in items if item.kind in RELATIONS]
        for _number in range(self.draw(st.integers(1, most))):
            item = self.draw(st.sampled_from([*items, *relations, *relations]))
            words = _some(self.draw, PRIVILEGES[item.kind], 1, 2)
            # In the chain the option is given on the whole table or on the column, whichever comes up.
            columns = [""]
            if item.kind in RELATIONS and _maybe(self.draw):
                words = _some(self.draw, COLUMN_PRIVILEGES, 1, 2)
                columns = self.draw(st.sampled_from([[" (a)"], ["", " (a)"], ["", " (a)", " (b)"]]))
            on = f"{KEYWORD[item.kind]} {item.sql}"
            holders = [""]
            roles = [name for name in self.roles if name != self.executor]
            for _step in range(self.draw(st.integers(2, 6))):
                grantor = self.draw(st.sampled_from(holders))
                grantee = self.draw(st.sampled_from([*roles, *roles, PUBLIC, "pg_monitor"]))
                column = self.draw(st.sampled_from(columns))
                option = "" if grantee == PUBLIC or _maybe(self.draw, 3) else " WITH GRANT OPTION"
                text = ", ".join(f"{word}{column}" for word in words)
                sql = f"GRANT {text} ON {on} TO {who(grantee)}{option}"
                if grantor:
                    if item.schema is not None:
                        self.setup.append(f"GRANT USAGE ON SCHEMA {q(item.schema)} TO {q(grantor)}")
                    sql = f"SET ROLE {q(grantor)}; {sql}; RESET ROLE"
                self.setup.append(sql)
                if column:
                    self.columns_given.append((grantee, item, words, column[2]))
                else:
                    self.given.append((grantee, item, words))
                if option:
                    holders.append(grantee)
            if item.schema is not None and _maybe(self.draw, 3):
                # They need no USAGE afterwards.
                self.setup += [f"REVOKE USAGE ON SCHEMA {q(item.schema)} FROM {q(name)}" for name in holders if name]
            if _maybe(self.draw, 6) and len(holders) > 1:
                # What a superuser gave before he was one is out of reach.
                self.setup.append(f"ALTER ROLE {q(self.draw(st.sampled_from(holders[1:])))} SUPERUSER")
            if _maybe(self.draw, 5) and len(holders) > 1:
                # The new owner is one of the grantors.
                if item.kind in OWNED:
                    word = "ROUTINE" if item.kind == "function" else item.kind.replace("_", " ").upper()
                    self.owners[item.sql] = self.draw(st.sampled_from(holders[1:]))
                    self.setup.append(f"ALTER {word} {item.sql} OWNER TO {q(self.owners[item.sql])}")
            if _maybe(self.draw, 6) and item.kind in RELATIONS:
                # The option on the table goes, and PostgreSQL leaves what was given on columns by it.
                name = self.draw(st.sampled_from(holders[1:] or roles))
                self.setup.append(f"REVOKE ALL ON {on} FROM {who(name)}")

    def make_defaults(self, most: int = 4) -> None:
        for _number in range(_count(self.draw, 2, most)):
            kinds = ["table", "table", "sequence", "function", "schema", "type"]
            kind = self.draw(st.sampled_from([*kinds, *(["large_object"] if self.version >= 18 else [])]))
            schema = None if kind in ("schema", "large_object") else self.draw(st.sampled_from([None, *self.schemas]))
            place = "" if schema is None else f" IN SCHEMA {q(schema)}"
            words = ", ".join(_some(self.draw, PRIVILEGES[kind]))
            grantee = self.grantee("postgres")
            action = self.draw(st.sampled_from(["grant", "grant", "option", "revoke"]))
            owner = self.owner()
            self.default_given.append((owner, schema, kind, grantee))
            head = f"ALTER DEFAULT PRIVILEGES FOR ROLE {q(owner)}{place}"
            tail = f"{words} ON {DEFAULT_KEYWORD[kind]}"
            if action == "revoke":
                self.setup.append(f"{head} REVOKE {tail} FROM {who(grantee)}")
            else:
                option = " WITH GRANT OPTION" if action == "option" and grantee != PUBLIC else ""
                self.setup.append(f"{head} GRANT {tail} TO {who(grantee)}{option}")


# ---- the manifest --------------------------------------------------------------------------------------------------


class Author:
    """Writes a manifest about a world: valid, and about things that exist."""

    def __init__(self, draw: Draw, world: World, modes: tuple[str, ...], override: bool) -> None:
        self.draw = draw
        self.world = world
        self.modes = modes
        self.override = override
        self.said: dict[tuple[Any, ...], dict[str, bool]] = {}
        self.spellings: dict[tuple[str, str], str] = {}
        self.pattern = "{schema}-{profile}"

    def write_plain(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """A manifest of grants only, for an executor that is no superuser."""
        draw, world = self.draw, self.world
        named = [name for name in world.roles if name not in ("ign_x", world.executor)]
        roles: list[dict[str, Any]] = [{"name": name, "external": True} for name in named if not _maybe(draw, 5)]
        if self.override and roles and _maybe(draw, 3):
            roles[0]["privilege_reconciliation"] = "additive"
        manifest: dict[str, Any] = {
            "roles": roles,
            "assume_roles": [name for name in named if name not in [role["name"] for role in roles]],
            "schemas": [{"name": name} for name in _some(draw, world.schemas, 0, 2)],
            "grants": self._grants(named, world.schemas),
        }
        return manifest, {
            "reconciliation_mode": draw(st.sampled_from(self.modes)),
            "undeclared_grantees": draw(st.sampled_from(["revoke", "keep"])),
            "login_user": world.executor,
        }

    def write(self) -> tuple[dict[str, Any], dict[str, Any]]:
        draw, world = self.draw, self.world
        manifest: dict[str, Any] = {}
        never = ("ign_x", world.executor)
        existing = [name for name in world.roles if name not in never and not _maybe(draw, 3)]
        fresh = _some(draw, NEW_ROLES, 0, 2)
        declared = existing + fresh
        if not declared:
            declared = fresh = NEW_ROLES[:1]
        manifest["roles"] = [self._role(name, name in fresh) for name in declared]
        if _maybe(draw, 6):
            manifest["roles"].append({"name": "postgres"})
            declared = [*declared, "postgres"]
        if _maybe(draw, 8):
            manifest["roles"].append({"name": "pg_monitor", "external": True})
        assumed = [name for name in world.roles if name not in (*declared, *never) and _maybe(draw, 6)]
        if assumed:
            manifest["assume_roles"] = assumed
        named = declared + assumed
        if _maybe(draw):
            manifest["default_owner"] = draw(st.sampled_from(named))
        profiles = self._profiles()
        if profiles:
            manifest["profiles"] = profiles
        if _maybe(draw, 4):
            manifest["role_pattern"] = self.pattern = "{profile} of {schema}"
        schemas, generated = self._schemas(named, profiles, manifest.get("default_owner"))
        if schemas:
            manifest["schemas"] = schemas
        named += generated
        if _maybe(draw, 6):
            manifest["scope"] = {"schemas": draw(st.sampled_from([["s*"], ["p*"], ["c.?", "select"]]))}
        elif world.foreign and _maybe(draw):
            # What several grantors gave is most interesting where it is surplus.
            manifest["scope"] = {"schemas": list(world.schemas)}
        if _maybe(draw, 3):
            manifest.setdefault("scope", {})["ignore_roles"] = ["ign_*"]
        places = [*world.schemas, *(item["name"] for item in schemas if item["name"] not in world.schemas)]
        grants = self._grants(named, places)
        if grants:
            manifest["grants"] = grants
        defaults = self._defaults(named, places, manifest.get("default_owner"))
        if defaults:
            manifest["default_privileges"] = defaults
        memberships = self._memberships(named, manifest)
        if memberships:
            manifest["memberships"] = memberships
        options: dict[str, Any] = {"reconciliation_mode": draw(st.sampled_from(self.modes))}
        if world.executor != "postgres":
            options["login_user"] = world.executor
        grantees = draw(st.sampled_from(["revoke", "keep", None]))
        if grantees:
            options["undeclared_grantees"] = grantees
        if _maybe(draw, 3):
            options["adopt_schema_owners"] = True
        return manifest, options

    def _role(self, name: str, fresh: bool) -> dict[str, Any]:
        role: dict[str, Any] = {"name": name}
        if not fresh and _maybe(self.draw, 4):
            role["external"] = True
        else:
            for attribute, value in (("login", True), ("login", False), ("inherit", False), ("createdb", True),
                                     ("createrole", True), ("connection_limit", 0), ("superuser", False),
                                     ("valid_until", "2040-01-02 03:04:05.678901+02:00"), ("comment", "a \\ 'b'"),
                                     ("comment", "")):  # fmt: skip
                if _maybe(self.draw, 7):
                    role[attribute] = value
        if self.override and _maybe(self.draw, 3):
            role["privilege_reconciliation"] = "additive"
        return role

    def _privileges(self, kind: str) -> list[str]:
        # At most two thirds of what there is to give, else everything would be declared.
        return ["ALL"] if _maybe(self.draw, 5) else _some(self.draw, PRIVILEGES[kind])

    def _profiles(self) -> dict[str, Any]:
        profiles: dict[str, Any] = {}
        for name in _some(self.draw, ["ro", "Edit or", "x"], 0, 2):
            profile: dict[str, Any] = {"grants": []}
            for kind in self.draw(
                st.lists(
                    st.sampled_from(["schema", "table", "view", "materialized_view", "sequence", "function", "type"]),
                    max_size=3,
                )
            ):
                target = {"type": kind} if kind == "schema" else {"type": kind, "name": "*"}
                grant: dict[str, Any] = {"privileges": self._privileges(kind), "object": target}
                if _maybe(self.draw, 6):
                    grant["with_grant_option"] = True
                profile["grants"].append(grant)
            if _maybe(self.draw, 3):
                profile["default_privileges"] = [
                    {"privileges": self._privileges(kind), "on_type": kind, "with_grant_option": _maybe(self.draw, 4)}
                    for kind in _some(self.draw, ["table", "sequence", "function", "type"], 1, 2)
                ]
            if _maybe(self.draw, 4):
                profile["login"] = True
            profiles[name] = profile
        return profiles

    def _schemas(
        self, named: list[str], profiles: dict[str, Any], default_owner: str | None
    ) -> tuple[list[dict[str, Any]], list[str]]:
        schemas: list[dict[str, Any]] = []
        generated: list[str] = []
        for name in self.draw(st.lists(st.sampled_from([*self.world.schemas, "new schema"]), max_size=3, unique=True)):
            schema: dict[str, Any] = {"name": name}
            # Profiles with default privileges need an owner.
            if default_owner is None or _maybe(self.draw, 3):
                schema["owner"] = self.draw(st.sampled_from(named))
            bound = [profile for profile in profiles if _maybe(self.draw) and len(name.encode()) < 50]
            if bound:
                schema["profiles"] = bound
            for profile in bound:
                role = self.pattern.replace("{schema}", name).replace("{profile}", profile)
                generated.append(role)
                self._say_profile(role, profiles[profile], name, schema.get("owner") or default_owner)
            schemas.append(schema)
        return schemas, generated

    def _say_profile(self, role: str, profile: dict[str, Any], schema: str, owner: str | None) -> None:
        """Remember what a profile says, so that no rule contradicts it."""
        for grant in profile["grants"]:
            kind = grant["object"]["type"]
            place = (kind, None, schema) if kind == "schema" else (kind, schema, "*")
            self._consistent((role, *place), kind, grant["privileges"], True)
        for grant in profile.get("default_privileges", []):
            kind = grant["on_type"]
            self._consistent(("default", owner, schema, kind, role), kind, grant["privileges"], True)

    def _consistent(self, key: tuple[Any, ...], kind: str, words: list[str], present: bool) -> list[str]:
        """The words that contradict nothing that was said before about the same."""
        said = self.said.setdefault(key, {})
        every = COLUMN_PRIVILEGES if kind == "column" else [*PRIVILEGES[kind], "MAINTAIN"]
        if "ALL" in words and any(said.get(word, present) != present for word in every):
            return []
        words = [word for word in words if said.get(word, present) == present]
        for word in every if "ALL" in words else words:
            said[word] = present
        return words

    def _grants(self, named: list[str], places: list[str]) -> list[dict[str, Any]]:
        draw = self.draw
        grants: list[dict[str, Any]] = []
        grantees = [*named, PUBLIC, "pg_monitor"]
        items = [item for item in self.world.items if not item.name.startswith("*")]
        relations = [item for item in items if item.kind in RELATIONS]
        others = [item for item in items if item.schema is None and item.kind != "schema"]
        # Rules about what is there meet it more often than chance would have it.
        echoes = [given for given in self.world.given if given[0] in grantees and given[1] in items]
        column_echoes = [given for given in self.world.columns_given if given[0] in grantees and given[1] in items]
        shapes = ["wildcard", "wildcard", "named", "named", "schema", "database", "system", *["echo"] * 4]
        if relations:
            shapes += ["column", "column"]
        if column_echoes:
            shapes += ["column echo", "column echo"]
        if others:
            shapes += ["other", "other"]
        for _number in range(_count(draw, 4, 9)):
            role = draw(st.sampled_from(grantees))
            shape = draw(st.sampled_from(shapes))
            columns: list[str] = []
            words: list[str] = []
            target: dict[str, Any]
            key: tuple[Any, ...]
            if shape == "wildcard":
                kind = draw(st.sampled_from(["table", "view", "materialized_view", "sequence", "function", "type"]))
                schema = draw(st.sampled_from(places))
                target, key = {"type": kind, "schema": schema, "name": "*"}, (kind, schema, "*")
            elif shape == "database":
                kind = "database"
                target, key = {"type": kind}, (kind,)
                if _maybe(draw, 4):
                    target, key = {"type": kind, "name": "postgres"}, (kind, "postgres")
            elif shape == "system":
                kind = "function"
                target = {"type": "routine", "schema": "pg_catalog", "name": "pg_sleep(float8)"}
                key = (kind, "pg_catalog", "pg_sleep")
                self.spellings["pg_catalog", "pg_sleep(float8)"] = "pg_sleep(double precision)"
            elif shape == "schema":
                kind = "schema"
                name = draw(st.sampled_from(places))
                target, key = {"type": kind, "name": name}, (kind, None, name)
            else:
                item = draw(st.sampled_from(items))
                if shape == "echo" and echoes:
                    role, item, words = draw(st.sampled_from(echoes))
                elif shape == "other":
                    item = draw(st.sampled_from(others))
                elif shape == "column":
                    item = draw(st.sampled_from(relations))
                    columns = _some(draw, ["a", "b"], 1, 2)
                elif shape == "column echo":
                    role, item, words, column = draw(st.sampled_from(column_echoes))
                    columns = [column]
                kind = item.kind
                text = draw(st.sampled_from(item.spellings))
                target, key = {"type": kind, "schema": item.schema, "name": text}, (kind, item.schema, item.name)
                if kind == "type" and _maybe(draw, 3):
                    target["type"] = "domain"
                if item.schema is None:
                    del target["schema"]
                elif _maybe(draw, 4):
                    target, key = {**target, "name": "*"}, (kind, item.schema, "*")
                elif kind == "function":
                    self.spellings[str(item.schema), text] = item.name
            present = not _maybe(draw, 3)
            if columns:
                words = words or (["ALL"] if _maybe(draw, 4) else _some(draw, COLUMN_PRIVILEGES, 1, 2))
                for column in columns:
                    words = self._consistent((role, *key, column), "column", words, present)
            else:
                words = self._consistent((role, *key), kind, words or self._privileges(kind), present)
            if words:
                if role == PUBLIC and _maybe(draw):
                    role = "public"
                if _maybe(draw, 4):
                    words = ["temp" if word == "TEMPORARY" else word.lower() for word in words] + words[:1]
                grant: dict[str, Any] = {"role": role, "privileges": words, "object": target}
                if columns:
                    grant["columns"] = columns
                if present and role.upper() != PUBLIC and _maybe(draw, 3):
                    grant["with_grant_option"] = True
                grants.append(grant if present else {**grant, "ensure": "absent"})
        return grants

    def _defaults(self, named: list[str], places: list[str], default_owner: str | None) -> list[dict[str, Any]]:
        draw = self.draw
        stanzas: list[dict[str, Any]] = []
        grantees = [*named, PUBLIC, "pg_monitor"]
        echoes = [given for given in self.world.default_given if given[0] in named and given[3] in grantees]
        # Default privileges permit what was given on their owner's objects.
        for grantee, item, _words in self.world.given:
            owner = self.world.owners.get(item.sql, "postgres")
            kind = "table" if item.kind in ("view", "materialized_view") else item.kind
            if grantee in grantees and owner in named and kind in ("table", "sequence", "function", "type"):
                echoes += [(owner, item.schema, kind, grantee), (owner, None, kind, grantee)]
        for _number in range(_count(draw, 1, 4)):
            owner = draw(st.sampled_from(named))
            schema = draw(st.sampled_from([None, *places]))
            echo = draw(st.sampled_from(echoes)) if echoes and _maybe(draw) else None
            if echo:
                owner, schema, _kind, _grantee = echo
            stanza: dict[str, Any] = {"owner": owner}
            if default_owner is not None and _maybe(draw, 3):
                owner = default_owner
                stanza = {}
            if schema is not None:
                stanza["schema"] = schema
            stanza["grant"] = []
            for number in range(draw(st.integers(1, 3))):
                only_global = ["schema", *(["large_object"] if self.world.version >= 18 else [])]
                kinds = ["table", "sequence", "function", "type", *(only_global if schema is None else [])]
                kind = draw(st.sampled_from(kinds))
                role = draw(st.sampled_from(grantees))
                if echo and number == 0:
                    kind, role = echo[2:]
                present = not _maybe(draw, 3)
                if role == PUBLIC and schema is not None and kind in ("function", "type") and not present:
                    continue
                key = ("default", owner, schema, kind, role)
                words = self._consistent(key, kind, self._privileges(kind), present)
                if words:
                    grant: dict[str, Any] = {"role": role, "privileges": words, "on_type": kind}
                    if present and role != PUBLIC and _maybe(draw, 3):
                        grant["with_grant_option"] = True
                    stanza["grant"].append(grant if present else {**grant, "ensure": "absent"})
            if stanza["grant"]:
                stanzas.append(stanza)
        return stanzas

    def _memberships(self, named: list[str], manifest: dict[str, Any]) -> list[dict[str, Any]]:
        draw = self.draw
        stanzas: list[dict[str, Any]] = []
        # In one direction along this order, so that the manifest itself has no circle.
        order = draw(st.permutations([name for name in named if name != "postgres"]))
        groups = draw(st.lists(st.sampled_from([*order, "pg_monitor"]), max_size=3, unique=True)) if order else []
        for group in groups:
            below = order if group == "pg_monitor" else order[order.index(group) + 1 :]
            stanza: dict[str, Any] = {"role": group, "members": []}
            for member in [name for name in below if _maybe(draw)]:
                edge: dict[str, Any] = {"name": member}
                if _maybe(draw, 3):
                    edge["admin"] = draw(st.booleans())
                if self.world.version >= 16:
                    for option in ("inherit", "set"):
                        if _maybe(draw, 4):
                            edge[option] = draw(st.booleans())
                stanza["members"].append(edge)
            if _maybe(draw, 5):
                stanza["exclusive"] = True
            stanzas.append(stanza)
        return stanzas


@st.composite
def cases(
    draw: Draw,
    version: int,
    *,
    modes: tuple[str, ...] = ("authoritative", "adopt", "additive"),
    override: bool = True,
    foreign: bool = False,
    plain: bool = False,
) -> Case:
    """A random database and a random manifest about it."""
    world = World(draw, version)
    world.make_roles()
    world.make_memberships()
    world.make_schemas()
    if foreign:
        # Little else, so that it comes to one thing on top of another.
        world.make_objects(3)
        world.make_others()
        world.make_grants("", 5)
        world.make_foreign_grants(5)
    else:
        world.make_objects()
        world.make_others()
        world.make_grants("")
        if not _maybe(draw, 3):
            world.make_foreign_grants()
    world.make_defaults()
    author = Author(draw, world, modes, override)
    if plain:
        world.make_plain_executor()
        manifest, options = author.write_plain()
    else:
        manifest, options = author.write()
    if foreign:
        manifest.setdefault("scope", {})["schemas"] = list(world.schemas)
        options.setdefault("undeclared_grantees", "revoke")
    return Case(world.setup, manifest, options, author.spellings)
