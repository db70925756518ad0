# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every kind of object: granted, revoked, with grant option, for PUBLIC, absent, overridden, missing.

One manifest speaks of all kinds at once, each with an object of its own, and each kind is looked at by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from harness import Database


@dataclass(frozen=True)
class Kind:
    """One kind of object, with one object of it that belongs to postgres. ``$s`` is its schema, ``$db`` the database."""

    setup: str
    #: The manifest's ``object``, and what GRANT says after ON.
    target: str
    on: str
    letters: str
    acl: str
    #: What PUBLIC has from the start.
    public: str = ""
    #: Other databases see it too, so that undeclared grantees are not this manifest's business.
    shared: bool = False
    first: int = 14


def in_schema(kind: str, name: str = "o") -> str:
    return f"{{type: {kind}, schema: $s, name: '{name}'}}"


REL = "SELECT relacl::text[] FROM pg_class WHERE oid = '$s.o'::regclass"
PROC = "SELECT proacl::text[] FROM pg_proc WHERE proname = 'o' AND pronamespace = '$s'::regnamespace"
TYPE = "SELECT typacl::text[] FROM pg_type WHERE oid = '$s.o'::regtype"
DATABASE = "SELECT datacl::text[] FROM pg_database WHERE datname = "
TABLE = "TABLE"
KINDS = {
    "table": Kind("CREATE TABLE $s.o (a int)", in_schema("table"), "$s.o", TABLE, REL),
    "partitioned": Kind(
        "CREATE TABLE $s.o (a int) PARTITION BY RANGE (a)", in_schema("table"), "TABLE $s.o", TABLE, REL
    ),
    "foreign_table": Kind(
        "CREATE FOREIGN DATA WRAPPER fw; CREATE SERVER fv FOREIGN DATA WRAPPER fw; CREATE FOREIGN TABLE $s.o (a int) SERVER fv",
        in_schema("table"),
        "$s.o",
        TABLE,
        REL,
    ),
    "view": Kind("CREATE VIEW $s.o AS SELECT 1 AS a", in_schema("view"), "$s.o", TABLE, REL),
    "materialized_view": Kind(
        "CREATE MATERIALIZED VIEW $s.o AS SELECT 1 AS a", in_schema("materialized_view"), "$s.o", TABLE, REL
    ),
    "sequence": Kind("CREATE SEQUENCE $s.o", in_schema("sequence"), "SEQUENCE $s.o", "rwU", REL),
    "function": Kind(
        "CREATE FUNCTION $s.o(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        in_schema("function", "o(int)"),
        "FUNCTION $s.o(int)",
        "X",
        PROC,
        "X",
    ),
    "procedure": Kind(
        "CREATE PROCEDURE $s.o(int) LANGUAGE sql AS 'SELECT 1'",
        in_schema("function", "o(int)"),
        "PROCEDURE $s.o(int)",
        "X",
        PROC,
        "X",
    ),
    "aggregate": Kind(
        "CREATE AGGREGATE $s.o(int) (SFUNC = int4pl, STYPE = int)",
        in_schema("routine", "o(int)"),
        "FUNCTION $s.o(int)",
        "X",
        PROC,
        "X",
    ),
    "schema": Kind(
        "",
        "{type: schema, name: $s}",
        "SCHEMA $s",
        "UC",
        "SELECT nspacl::text[] FROM pg_namespace WHERE nspname = '$s'",
    ),
    "database": Kind("", "{type: database}", "DATABASE $db", "CTc", DATABASE + "'$db'", "Tc"),
    "other_database": Kind(
        "CREATE DATABASE $db_other",
        "{type: database, name: $db_other}",
        "DATABASE $db_other",
        "CTc",
        DATABASE + "'$db_other'",
        "Tc",
        shared=True,
    ),
    "enum": Kind("CREATE TYPE $s.o AS ENUM ('a')", in_schema("type"), "TYPE $s.o", "U", TYPE, "U"),
    "composite": Kind("CREATE TYPE $s.o AS (a int)", in_schema("type"), "TYPE $s.o", "U", TYPE, "U"),
    "range": Kind("CREATE TYPE $s.o AS RANGE (SUBTYPE = int)", in_schema("type"), "TYPE $s.o", "U", TYPE, "U"),
    "domain": Kind("CREATE DOMAIN $s.o AS int", in_schema("type"), "DOMAIN $s.o", "U", TYPE, "U"),
    "domain_alias": Kind("CREATE DOMAIN $s.o AS int", in_schema("domain"), "DOMAIN $s.o", "U", TYPE, "U"),
    "language": Kind(
        "",
        "{type: language, name: plpgsql}",
        "LANGUAGE plpgsql",
        "U",
        "SELECT lanacl::text[] FROM pg_language WHERE lanname = 'plpgsql'",
        "U",
    ),
    "foreign_data_wrapper": Kind(
        'CREATE FOREIGN DATA WRAPPER "w-1"',
        "{type: foreign_data_wrapper, name: w-1}",
        'FOREIGN DATA WRAPPER "w-1"',
        "U",
        "SELECT fdwacl::text[] FROM pg_foreign_data_wrapper WHERE fdwname = 'w-1'",
    ),
    "foreign_server": Kind(
        'CREATE FOREIGN DATA WRAPPER sw; CREATE SERVER "s 1" FOREIGN DATA WRAPPER sw',
        "{type: foreign_server, name: s 1}",
        'FOREIGN SERVER "s 1"',
        "U",
        "SELECT srvacl::text[] FROM pg_foreign_server WHERE srvname = 's 1'",
    ),
    "tablespace": Kind(
        "",
        "{type: tablespace, name: pg_default}",
        "TABLESPACE pg_default",
        "C",
        "SELECT spcacl::text[] FROM pg_tablespace WHERE spcname = 'pg_default'",
        shared=True,
    ),
    "parameter": Kind(
        "",
        "{type: parameter, name: Work_MEM}",
        "PARAMETER work_mem",
        "sA",
        "SELECT max(paracl::text)::text[] FROM pg_parameter_acl WHERE parname = 'work_mem'",
        shared=True,
        first=15,
    ),
    "large_object": Kind(
        "SELECT lo_create(12345)",
        "{type: large_object, name: '12345'}",
        "LARGE OBJECT 12345",
        "rw",
        "SELECT lomacl::text[] FROM pg_largeobject_metadata WHERE oid = 12345",
    ),
}
WORDS = {
    "r": "SELECT", "w": "UPDATE", "a": "INSERT", "X": "EXECUTE", "U": "USAGE", "C": "CREATE", "T": "TEMPORARY", "c": "CONNECT",
    "s": "SET", "A": "ALTER SYSTEM",
}  # fmt: skip
X_KEEPS = "{name: x, privilege_reconciliation: additive}"


class World:
    """A database with one object of each kind, and the roles r and x."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.kinds = {name: kind for name, kind in KINDS.items() if db.version >= kind.first}
        self.letters = {name: db.full if kind.letters == TABLE else kind.letters for name, kind in self.kinds.items()}
        #: One privilege of each kind.
        self.letter = {name: letters[0] for name, letters in self.letters.items()}
        self.word = {name: WORDS[letter] for name, letter in self.letter.items()}
        db.sql("CREATE ROLE r; CREATE ROLE x")
        for name, kind in self.kinds.items():
            for statement in (f"CREATE SCHEMA s_{name}", *filter(None, kind.setup.split("; "))):
                db.sql(self.here(name, statement))

    def here(self, name: str, text: str) -> str:
        return text.replace("$db", self.db.name).replace("$s", f"s_{name}")

    def sql(self, verb: str, tail: str) -> None:
        for name, kind in self.kinds.items():
            self.db.sql(self.here(name, f"{verb} {self.word[name]} ON {kind.on} {tail}"))

    def acl(self, name: str) -> set[str] | None:
        found = self.db.value(self.here(name, self.kinds[name].acl))
        return None if found is None else set(found)

    def acls(self) -> dict[str, set[str] | None]:
        return {name: self.acl(name) for name in self.kinds}

    def usual(self, *more: str, public: bool = True) -> dict[str, set[str]]:
        """The ACLs with the owner's and PUBLIC's built-in entries and these, written like ``r=1`` (one letter) or ``r=*``."""
        found = {}
        for name, kind in self.kinds.items():
            built_in = {f"={kind.public}/postgres"} if kind.public and public else set()
            found[name] = {f"postgres={self.letters[name]}/postgres"} | built_in
            for entry in more:
                letters = entry.replace("=1", f"={self.letter[name]}").replace("=all", f"={self.letters[name]}")
                found[name].add(f"{letters}/postgres")
        return found

    def manifest(self, *grants: str, roles: str = "{name: r}, {name: x}", schemas: bool = True) -> str:
        text = f"roles: [{roles}]\n"
        if schemas:
            text += "schemas: [" + ", ".join(f"{{name: s_{name}}}" for name in self.kinds) + "]\n"
        return text + "grants:\n" + "".join(grants)

    def grant(self, role: str = "r", more: str = "", *, every: bool = False) -> str:
        """A rule for each kind: one privilege of it, or all."""
        return "".join(
            self.here(
                name,
                f"  - {{role: {role}, privileges: [{'ALL' if every else self.word[name]}], object: {kind.target}{more}}}\n",
            )
            for name, kind in self.kinds.items()
        )


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


def test_all_is_every_privilege_of_the_kind(world: World) -> None:
    result = world.db.converge(world.manifest(world.grant(every=True)))
    assert world.acls() == world.usual("r=all")
    assert result.summary["grants"] == {"granted": sum(map(len, world.letters.values())), "revoked": 0}


def test_one_privilege_comes_and_the_surplus_goes(world: World) -> None:
    """The rule makes the object managed: what declared roles hold beside it goes."""
    world.sql("GRANT", "TO x")
    result = world.db.converge(world.manifest(world.grant()))
    assert world.acls() == world.usual("r=1")
    assert result.summary["grants"] == {"granted": len(world.kinds), "revoked": len(world.kinds)}
    assert len(result.summary["managed"]) >= len(world.kinds)


def test_undeclared_grantees_of_each_kind(world: World) -> None:
    """On shared objects an undeclared grantee is kept and reported, elsewhere it is drift."""
    world.sql("GRANT", "TO x")
    result = world.db.converge(world.manifest(world.grant(), roles="{name: r}"))
    usual, kept = world.usual("r=1"), world.usual("r=1", "x=1")
    shared = {name for name, kind in world.kinds.items() if kind.shared}
    assert world.acls() == {name: (kept if name in shared else usual)[name] for name in world.kinds}
    assert [item["role"] for item in result.held(reason="shared_object")] == ["x"] * len(shared)


def test_undeclared_grantees_kept_by_option(world: World) -> None:
    world.sql("GRANT", "TO x WITH GRANT OPTION")
    result = world.db.converge(world.manifest(world.grant(), roles="{name: r}"), undeclared_grantees="keep")
    assert world.acls() == world.usual("r=1", "x=1*")
    assert len(result.held(role="x")) == len(world.kinds)


@pytest.mark.parametrize("mode", ["authoritative", "adopt", "additive"])
def test_grant_option_surplus(world: World, mode: str) -> None:
    world.sql("GRANT", "TO r WITH GRANT OPTION")
    result = world.db.converge(world.manifest(world.grant()), reconciliation_mode=mode)
    if mode == "additive":
        assert result.sql == []
        assert world.acls() == world.usual("r=1*")
        assert [item["role"] for item in result.held(reason="mode")] == ["r"] * len(world.kinds)
        return
    assert all(statement.startswith("REVOKE GRANT OPTION FOR ") for statement in result.sql)
    assert world.acls() == world.usual("r=1")


def test_grant_option_missing_and_declared(world: World) -> None:
    world.sql("GRANT", "TO r")
    option = ", with_grant_option: true"
    # One rule with it is enough, whatever the others say.
    result = world.db.converge(world.manifest(world.grant(), world.grant(more=option), world.grant("x", option)))
    assert world.acls() == world.usual("r=1*", "x=1*")
    assert not result.matching("REVOKE")


def test_surplus_with_grant_option_goes_in_one_statement(world: World) -> None:
    world.sql("GRANT", "TO x WITH GRANT OPTION")
    result = world.db.converge(world.manifest(world.grant()))
    assert world.acls() == world.usual("r=1")
    assert not result.matching("GRANT OPTION")


def test_absent_takes_away_and_manages_nothing(world: World) -> None:
    world.sql("GRANT", "TO r, x")
    result = world.db.converge(world.manifest(world.grant(more=", ensure: absent"), schemas=False))
    assert world.acls() == world.usual("x=1")
    assert not result.summary["managed"]


def test_absent_where_nothing_is_leaves_null(world: World) -> None:
    world.db.silent(world.manifest(world.grant(more=", ensure: absent", every=True), schemas=False))
    assert set(map(str, world.acls().values())) == {"None"}


def test_public_absent_and_present(world: World) -> None:
    absent = world.manifest(world.grant("PUBLIC", ", ensure: absent", every=True), schemas=False)
    result = world.db.converge(absent)
    without = world.usual(public=False)
    untouched = {name: None for name, kind in world.kinds.items() if not kind.public}
    assert world.acls() == {**without, **untouched}
    assert result.summary["grants"] == {"granted": 0, "revoked": sum(len(kind.public) for kind in world.kinds.values())}
    result = world.db.converge(absent.replace("absent", "present"))
    assert world.acls() == world.usual("=all", public=False)
    assert not result.summary["managed"]
    world.db.converge(absent)
    # PostgreSQL drops a parameter's row with its last entry.
    gone = {"parameter": None} if "parameter" in world.kinds else {}
    assert world.acls() == {**without, **gone}


def test_public_that_no_rule_names_stays(world: World) -> None:
    world.sql("GRANT", "TO PUBLIC")
    before = world.acls()
    world.db.converge(world.manifest(world.grant()))
    usual = world.usual("r=1")
    assert world.acls() == {
        name: (before[name] or usual[name]) | {f"r={world.letter[name]}/postgres"} for name in world.kinds
    }


@pytest.mark.parametrize("external", [False, True], ids=["managed", "external"])
def test_the_override_of_each_kind(world: World, external: bool) -> None:
    world.sql("GRANT", "TO x WITH GRANT OPTION")
    role = X_KEEPS.replace("}", f", external: {str(external).lower()}}}")
    result = world.db.converge(world.manifest(world.grant(), roles="{name: r}, " + role))
    assert world.acls() == world.usual("r=1", "x=1*")
    items = result.suppressed_revokes
    assert {(item["role"], item["kind"], item["grantor"], item["owner"]) for item in items} == {
        ("x", "object", "postgres", "postgres")
    }
    assert sorted(item["privileges"][0] for item in items) == sorted(world.word.values())
    assert result.suppressed_revoke_count == len(items) == len(world.kinds)
    assert result.summary["suppressed_revokes"] == {"x": len(world.kinds)}
    # Those are the statements that would run.
    world.db.sql(*(item["sql"] for item in items))
    assert world.acls() == world.usual("r=1")


def test_the_override_keeps_a_grant_option(world: World) -> None:
    world.sql("GRANT", "TO x WITH GRANT OPTION")
    result = world.db.silent(world.manifest(world.grant("x"), roles="{name: r}, " + X_KEEPS))
    assert world.acls() == world.usual("x=1*")
    items = result.suppressed_revokes
    assert {item["kind"] for item in items} == {"grant_option"}
    assert all(item["sql"].startswith("REVOKE GRANT OPTION FOR") for item in items)
    assert result.suppressed_revoke_count == len(world.kinds)
    world.db.sql(*(item["sql"] for item in items))
    assert world.acls() == world.usual("x=1")


def test_an_explicit_absent_beats_the_override(world: World) -> None:
    world.sql("GRANT", "TO x WITH GRANT OPTION")
    result = world.db.converge(
        world.manifest(world.grant(), world.grant("x", ", ensure: absent"), roles="{name: r}, " + X_KEEPS)
    )
    assert world.acls() == world.usual("r=1")
    assert result.suppressed_revoke_count == 0


def test_an_owner_that_lost_a_declared_privilege(world: World) -> None:
    """{} is empty, for the owner too: what it declares and lost comes back."""
    world.kinds.pop("parameter", None)
    world.sql("REVOKE", "FROM postgres")
    before = world.acls()
    roles = "{name: r}, {name: postgres, external: true}"
    world.db.silent(world.manifest(roles=roles).replace("grants:\n", ""))
    assert world.acls() == before
    world.db.converge(world.manifest(world.grant("postgres"), roles=roles))
    assert world.acls() == world.usual()


def test_missing_objects_of_each_kind(world: World) -> None:
    words = {
        "'o'": "'nope'", "'o(int)'": "'nope(int)'", "name: $s}": "name: nope}", "{type: database}": "{type: database, name: nope}",
        "$db_other": "nope", "plpgsql": "nope", "w-1": "nope", "s 1": "nope", "pg_default": "nope", "'12345'": "'54321'",
    }  # fmt: skip
    grants = []
    for name, kind in world.kinds.items():
        for known, missing in words.items():
            if known in kind.target:
                target = world.here(name, kind.target.replace(known, missing))
                grants.append(f"  - {{role: r, privileges: [{world.word[name]}], object: {target}}}\n")
                break
    assert len(grants) == len(set(world.kinds) - {"parameter"})
    result = world.db.fails(world.manifest(*grants, roles="{name: r}, {name: new}"), "object_missing", "nope", "54321")
    assert {problem["path"].split(".")[0] for problem in result.problems} == {
        f"grants[{n}]" for n in range(len(grants))
    }
    assert "new" not in world.db.roles()


# Types in detail


def test_type_wildcards_cover_what_takes_grants(db: Database) -> None:
    """Not arrays, multiranges, row types of tables and views, or shells."""
    db.sql(
        "CREATE ROLE r; CREATE SCHEMA s; CREATE TYPE s.en AS ENUM ('a'); CREATE DOMAIN s.d AS s.en; CREATE TYPE s.c AS (a int)",
        "CREATE TYPE s.ra AS RANGE (SUBTYPE = int); CREATE TYPE s.shell; CREATE TABLE s.t (a s.en[])",
        "CREATE VIEW s.v AS SELECT 1 AS a; CREATE MATERIALIZED VIEW s.m AS SELECT 1 AS a; CREATE SEQUENCE s.q",
    )
    result = db.converge(
        "roles: [{name: r}]\nschemas: [{name: s}]\n"
        "grants: [{role: r, privileges: [USAGE], object: {type: type, schema: s, name: '*'}}]"
    )
    granted = {row[0] for row in db.query("SELECT typname FROM pg_type WHERE typacl::text LIKE '%r=U/postgres%'")}
    assert granted == {"en", "d", "c", "ra"}
    assert result.summary["grants"]["granted"] == 4
    # Gone from the manifest, gone from the types; PUBLIC's built-in entry stays.
    db.converge("roles: [{name: r}]\nschemas: [{name: s}]")
    assert db.acl("s.en", "type") == {"=U/postgres", "postgres=U/postgres"}


@pytest.mark.parametrize("name", ["t", "_en", "nope"])
def test_type_names_that_are_no_such_types(db: Database, name: str) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE TYPE s.en AS ENUM ('a')")
    db.fails(
        "roles: [{name: r}]\nschemas: [{name: s}]\n"
        f"grants: [{{role: r, privileges: [USAGE], object: {{type: type, schema: s, name: {name}}}}}]",
        "object_missing",
        name,
    )


def test_types_with_odd_names(db: Database) -> None:
    db.sql(
        'CREATE ROLE r; CREATE SCHEMA "S.x"; CREATE TYPE "S.x"."My ""Type" AS ENUM (\'a\'); CREATE DOMAIN "S.x"."int" AS int'
    )
    db.converge(
        {
            "roles": [{"name": "r"}],
            "schemas": [{"name": "S.x"}],
            "grants": [
                {"role": "r", "privileges": ["USAGE"], "object": {"type": "type", "schema": "S.x", "name": name}}
                for name in ('My "Type', "int")
            ],
        }
    )
    rows = db.query("SELECT typacl::text[] FROM pg_type WHERE typname IN ('My \"Type', 'int')")
    assert all("r=U/postgres" in acl for (acl,) in rows)


# Parameters in detail


@pytest.mark.versions(max=14)
def test_parameters_before_15(db: Database) -> None:
    db.fails(
        "roles: [{name: r}]\ngrants: [{role: r, privileges: [SET], object: {type: parameter, name: work_mem}}]",
        "unsupported_version",
        "15",
    )
    assert db.roles() == set()


@pytest.mark.versions(min=15)
def test_parameters_fold_their_names_and_lose_their_row(db: Database) -> None:
    db.sql("CREATE ROLE r")
    target = "object: {type: parameter, name: %s}"
    manifest = f"roles: [{{name: r}}]\ngrants: [{{role: r, privileges: [SET, ALTER SYSTEM], {target}}}]"
    db.converge(manifest % "TimeZone")
    assert db.query("SELECT parname, paracl::text[] FROM pg_parameter_acl") == [
        ("timezone", ["postgres=sA/postgres", "r=sA/postgres"])
    ]
    db.silent(manifest % "TIMEZONE")
    db.converge(manifest.replace("}}]", "}, ensure: absent}]") % "timezone")
    assert db.query("SELECT parname FROM pg_parameter_acl") == []


@pytest.mark.versions(min=15)
def test_custom_parameters(db: Database) -> None:
    db.converge(
        "roles: [{name: r}]\ngrants: [{role: r, privileges: [SET], object: {type: parameter, name: App.Tenant}}]"
    )
    assert db.query("SELECT parname FROM pg_parameter_acl") == [("app.tenant",)]


# Routines in detail


def test_routines_of_one_name_and_every_sort(db: Database) -> None:
    """A function, a procedure and an aggregate that share a name are told apart by their input types."""
    db.sql(
        "CREATE ROLE r; CREATE SCHEMA s; CREATE FUNCTION s.o(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE PROCEDURE s.o(text, INOUT a int) LANGUAGE sql AS 'SELECT 1'",
        "CREATE AGGREGATE s.o(bigint) (SFUNC = int8pl, STYPE = bigint); REVOKE ALL ON ALL ROUTINES IN SCHEMA s FROM PUBLIC",
    )
    rules = "\n".join(
        f"  - {{role: r, privileges: [EXECUTE], object: {{type: function, schema: s, name: '{name}'}}}}"
        for name in ("o(text, int4)", "o(int8)")
    )
    db.converge("roles: [{name: r}]\nschemas: [{name: s}]\ngrants:\n" + rules)
    assert db.acl("s.o(int)", "function") == {"postgres=X/postgres"}
    assert db.acl("s.o(text, int)", "function") == {"postgres=X/postgres", "r=X/postgres"}
    assert db.acl("s.o(bigint)", "function") == {"postgres=X/postgres", "r=X/postgres"}


# Large objects and languages in detail


@pytest.mark.parametrize("name", ["x", "-1", "1.5", "4294967296", ""])
def test_large_objects_are_named_by_oid(db: Database, name: str) -> None:
    db.fails(
        {
            "roles": [{"name": "r"}],
            "grants": [{"role": "r", "privileges": ["SELECT"], "object": {"type": "large_object", "name": name}}],
        },
        ("manifest_invalid", "object_missing"),
        "grants[0].object",
    )


@pytest.mark.parametrize("name", ["c", "internal"])
def test_OBJ_04_an_untrusted_language(db: Database, name: str) -> None:
    """The server would say: language "c" is not trusted."""
    db.sql("CREATE ROLE r")
    result = db.fails(
        f"roles: [{{name: r}}, {{name: new}}]\ngrants: [{{role: r, privileges: [USAGE], object: {{type: language, name: {name}}}}}]",
        ("object_missing", "not_supported", "manifest_invalid", "insufficient_privilege"),
        name,
        "trusted",
    )
    assert not result.get("sqlstate")
    assert db.roles() == {"r"}


def test_argument_types_in_a_schema_that_the_login_may_not_use(db: Database) -> None:
    """Whoever only looks needs no USAGE: PostgreSQL refuses to look such a type up as SQL would."""
    db.sql(
        'CREATE SCHEMA s; CREATE SCHEMA hidden; CREATE TYPE hidden."Odd, Type" AS ENUM ()',
        'CREATE FUNCTION s.f(hidden."Odd, Type", hidden."Odd, Type"[]) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$',
        "CREATE ROLE reader; GRANT EXECUTE ON FUNCTION s.f TO reader; CREATE ROLE auditor LOGIN",
    )
    name = 'f(hidden."Odd, Type", hidden."Odd, Type"[])'
    rule = {"role": "reader", "privileges": ["EXECUTE"], "object": {"type": "function", "schema": "s", "name": name}}
    for _run in range(2):
        result = db.reconcile({"roles": [{"name": "reader"}], "grants": [rule]}, login_user="auditor")
        assert not result.failed, result
        assert result.sql == []
    db.sql("REVOKE EXECUTE ON FUNCTION s.f FROM reader")
    result = db.reconcile({"roles": [{"name": "reader"}], "grants": [rule]}, check=True)
    assert len(result.sql) == 1
