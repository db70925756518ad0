# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What single rooms claim about PostgreSQL, compared with PostgreSQL."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from harness import COLLECTIONS, Cluster, Database, Runner, link_collection
from hypothesis import given, note
from hypothesis import strategies as st
from strategies import NAMES, q
from test_properties import examples
from zygote import COLLECTION


def room(name: str) -> Any:
    """A module of the collection."""
    link_collection()
    if str(COLLECTIONS) not in sys.path:
        sys.path.insert(0, str(COLLECTIONS))
    return importlib.import_module(f"{COLLECTION}.plugins.module_utils.{name}")


def test_the_computed_default_acl_is_the_servers(server: Cluster) -> None:
    kinds = room("privileges").KINDS
    default_acl = room("state").default_acl
    compared = set()
    for name, kind in kinds.items():
        if kind.since > server.version:
            continue
        for owner in (10, 16384, 2**31, 2**32 - 1):
            rows = server.connection.execute(
                "SELECT grantee::int8, privilege_type, grantor::int8, is_grantable"
                ' FROM aclexplode(acldefault(%s::text::"char", %s::oid))',
                [kind.acldefault, owner],
            ).fetchall()
            assert {tuple(entry) for entry in default_acl(name, owner, server.version).entries} == set(rows), name
        compared.add(name)
    # What default privileges can be given on are the kinds with a letter of their own.
    assert compared >= {"table", "view", "materialized_view", "sequence", "function", "schema", "database", "type"}
    assert len(compared) == len(kinds) - (server.version < 15)


#: A type as CREATE FUNCTION takes it, and other ways to write it. {s} is the routine's schema.
TYPES = [
    ("int", ["int4", "integer", "INT", " int ", "pg_catalog.int4"]),
    ("text", ["text", "pg_catalog.text", "TEXT"]),
    ("numeric(10,2)", ["numeric", "decimal", "numeric(3, 1)", "DECIMAL (10,2)"]),
    ("varchar(10)", ["character varying", "varchar", "character varying(3)", "char varying(2)", "national character varying"]),
    ("char(3)", ["character", "char", "bpchar", "char(7)", "nchar"]),
    ('"char"', ['"char"', 'pg_catalog."char"']),
    ("timestamptz(3)", ["timestamp with time zone", "timestamptz", "timestamp(6) with time zone", "TIMESTAMP WITH TIME ZONE"]),
    ("timestamp", ["timestamp without time zone", "timestamp", "timestamp(0) without time zone"]),
    ("time with time zone", ["timetz", "time(3) with time zone"]),
    ("interval", ["interval", "interval day to second(3)", "interval year to month", "interval(2)"]),
    ("double precision", ["float8", "float", "float(53)", "double precision"]),
    ("real", ["float4", "real", "float(24)"]),
    ("bit(3)", ["bit", "bit(8)"]),
    ("bit varying(3)", ["varbit", "bit varying"]),
    ("int[]", ["int4[]", "integer[]", "_int4", "int[][]", "int array", "integer[3]", "int ARRAY[4]"]),
    ("varchar(3)[]", ["character varying[]", "varchar(9)[]", "_varchar"]),
    ("timestamptz[]", ["timestamp with time zone[]", "timestamptz array", "timestamp(3) with time zone[]"]),
    ("json", ["json"]),
    ("regclass", ["regclass"]),
    ("anyelement", ["anyelement"]),
    ('{s}."odd type, (x"', ['{s}."odd type, (x"', '"odd type, (x"']),
    ("{s}.mood", ["{s}.mood", "mood", "{s} . mood"]),
    ("{s}.mood[]", ["{s}.mood[]", "mood[]", "{s}._mood"]),
    ('{s}."précis"', ['{s}."précis"', "précis"]),
]  # fmt: skip
ARGUMENT_NAMES = [
    "", "a", "A b", "double", "varying", "zone", "year", "in", "out", "character", "array", "a,b", "x(", "ü", 'q"q',
    "integer", "default", "setof", "order", "variadic", "timestamp", "interval", "national", "with",
]  # fmt: skip


@dataclass(frozen=True)
class Argument:
    mode: str
    name: str
    kind: int
    #: Which of the other ways to write the type.
    way: int


@st.composite
def routines(draw: st.DrawFn) -> list[tuple[str, str, list[Argument]]]:
    """Shape, name and arguments of some routines, many of them overloads of each other."""
    found = []
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    for _number in range(draw(st.integers(1, 6))):
        shape = draw(st.sampled_from(["FUNCTION", "FUNCTION", "PROCEDURE"]))
        arguments = [
            Argument(
                draw(st.sampled_from(["", "", "IN", "INOUT", "OUT", "VARIADIC"])),
                draw(st.sampled_from(ARGUMENT_NAMES)),
                draw(st.integers(0, len(TYPES) - 1)),
                draw(st.integers(0, 10)),
            )
            for _argument in range(draw(st.integers(0, 4)))
        ]
        found.append((shape, draw(st.sampled_from(names)), arguments))
    return found


def _created(db: Database, schema: str, shape: str, name: str, arguments: list[Argument]) -> bool:
    """Whether the server took the routine."""
    written = ", ".join(
        " ".join(filter(None, [arg.mode, arg.name and q(arg.name), TYPES[arg.kind][0].replace("{s}", q(schema))]))
        for arg in arguments
    )
    outs = [TYPES[arg.kind][0] for arg in arguments if arg.mode in ("OUT", "INOUT")]
    returns = "" if outs or shape == "PROCEDURE" else " RETURNS int"
    sql = f"CREATE {shape} {q(schema)}.{q(name)}({written}){returns} LANGUAGE plpgsql AS 'BEGIN END'"
    try:
        db.sql(sql)
    except psycopg.Error:
        return False
    note(sql)
    return True


@examples()
@given(found=routines(), schema=st.sampled_from(["s", "public", "c.d", 'Sch"ema', "Ü x"]))
def test_a_routine_is_found_however_its_arguments_are_written(
    server: Cluster, runner: Runner, found: list[tuple[str, str, list[Argument]]], schema: str
) -> None:
    db = Database(server, runner)
    try:
        if schema != "public":
            db.sql(f"CREATE SCHEMA {q(schema)}")
        for name in ('"odd type, (x"', "mood", '"précis"'):
            db.sql(f"CREATE TYPE {q(schema)}.{name} AS ENUM ('x')")
        spellings: list[tuple[str, int]] = []
        for shape, name, arguments in found:
            known = {row[0] for row in db.query("SELECT oid::int8 FROM pg_proc")}
            if name == "*" or not _created(db, schema, shape, name, arguments):
                continue
            (oid,) = {row[0] for row in db.query("SELECT oid::int8 FROM pg_proc")} - known
            inputs = [arg for arg in arguments if arg.mode != "OUT"]
            ways = [TYPES[arg.kind][1][arg.way % len(TYPES[arg.kind][1])] for arg in inputs]
            texts = {", ".join(ways).replace("{s}", q(schema))}
            # As \df shows it to somebody who has the schema in the search path, and to somebody who has not.
            for path in ("''", q(schema)):
                db.sql(f"SET search_path = {path}")
                query = "SELECT pg_get_function_identity_arguments(oid), oidvectortypes(proargtypes) FROM pg_proc WHERE oid = %s"
                texts |= set(db.query(query, oid)[0])
            db.sql("RESET search_path")
            spellings += [(f"{name}({text})", oid) for text in sorted(texts)]
        # Each spelling grants to a role of its own, so the ACLs say who was found.
        manifest = {
            "roles": [{"name": f"r{number}"} for number in range(len(spellings))],
            "grants": [
                {
                    "role": f"r{number}",
                    "privileges": ["EXECUTE"],
                    "object": {"type": "function", "schema": schema, "name": text},
                }
                for number, (text, _oid) in enumerate(spellings)
            ],
        }
        for number, spelling in enumerate(spellings):
            note(f"r{number}: {spelling}")
        result = db.reconcile(manifest)
        assert not result.failed, result.text
        reached = set(
            db.query(
                "SELECT pg_get_userbyid(e.grantee), p.oid::int8 FROM pg_proc p, aclexplode(p.proacl) e"
                " WHERE p.oid >= 16384 AND e.grantee >= 16384"
            )
        )
        assert reached == {(f"r{number}", oid) for number, (_text, oid) in enumerate(spellings)}
    finally:
        db.close()


@pytest.mark.parametrize("text", ["f(double precision)", "f(a double precision)", 'f("double" precision)'])
def test_a_type_of_two_words_is_not_an_argument_name(db: Database, text: str) -> None:
    db.sql("CREATE SCHEMA s; CREATE FUNCTION s.f(a float8) RETURNS int LANGUAGE sql AS 'SELECT 1'")
    manifest = {
        "roles": [{"name": "r"}],
        "grants": [
            {"role": "r", "privileges": ["EXECUTE"], "object": {"type": "function", "schema": "s", "name": text}}
        ],
    }
    result = db.reconcile(manifest)
    # A quoted word is never the beginning of double precision; precision is no type.
    assert result.failed == ('"' in text)
