# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every kind of object: granted, revoked, with grant option, for PUBLIC, absent, overridden, missing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from harness import Database


@dataclass(frozen=True)
class Kind:
    """One kind of object, with one object of it that belongs to postgres."""

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


def in_schema(kind: str, name: str) -> str:
    return f"{{type: {kind}, schema: s, name: '{name}'}}"


REL = "SELECT relacl::text[] FROM pg_class WHERE oid = 's.o'::regclass"
PROC = "SELECT proacl::text[] FROM pg_proc WHERE proname = 'o' AND pronamespace = 's'::regnamespace"
TYPE = "SELECT typacl::text[] FROM pg_type WHERE oid = 's.o'::regtype"
TABLE = "TABLE"
KINDS = {
    "table": Kind("CREATE TABLE s.o (a int)", in_schema("table", "o"), "s.o", TABLE, REL),
    "partitioned": Kind(
        "CREATE TABLE s.o (a int) PARTITION BY RANGE (a)", in_schema("table", "o"), "TABLE s.o", TABLE, REL
    ),
    "foreign_table": Kind(
        "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER v FOREIGN DATA WRAPPER w; CREATE FOREIGN TABLE s.o (a int) SERVER v",
        in_schema("table", "o"),
        "s.o",
        TABLE,
        REL,
    ),
    "view": Kind("CREATE VIEW s.o AS SELECT 1 AS a", in_schema("view", "o"), "s.o", TABLE, REL),
    "materialized_view": Kind(
        "CREATE MATERIALIZED VIEW s.o AS SELECT 1 AS a", in_schema("materialized_view", "o"), "s.o", TABLE, REL
    ),
    "sequence": Kind("CREATE SEQUENCE s.o", in_schema("sequence", "o"), "SEQUENCE s.o", "rwU", REL),
    "function": Kind(
        "CREATE FUNCTION s.o(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        in_schema("function", "o(int)"),
        "FUNCTION s.o(int)",
        "X",
        PROC,
        "X",
    ),
    "procedure": Kind(
        "CREATE PROCEDURE s.o(int) LANGUAGE sql AS 'SELECT 1'",
        in_schema("function", "o(int)"),
        "PROCEDURE s.o(int)",
        "X",
        PROC,
        "X",
    ),
    "aggregate": Kind(
        "CREATE AGGREGATE s.o(int) (SFUNC = int4pl, STYPE = int)",
        in_schema("routine", "o(int)"),
        "FUNCTION s.o(int)",
        "X",
        PROC,
        "X",
    ),
    "schema": Kind(
        "", "{type: schema, name: s}", "SCHEMA s", "UC", "SELECT nspacl::text[] FROM pg_namespace WHERE nspname = 's'"
    ),
    "database": Kind(
        "",
        "{type: database}",
        "DATABASE DB",
        "CTc",
        "SELECT datacl::text[] FROM pg_database WHERE datname = 'DB'",
        "Tc",
    ),
    "other_database": Kind(
        "CREATE DATABASE DB_other",
        "{type: database, name: DB_other}",
        "DATABASE DB_other",
        "CTc",
        "SELECT datacl::text[] FROM pg_database WHERE datname = 'DB_other'",
        "Tc",
        shared=True,
    ),
    "enum": Kind("CREATE TYPE s.o AS ENUM ('a')", in_schema("type", "o"), "TYPE s.o", "U", TYPE, "U"),
    "composite": Kind("CREATE TYPE s.o AS (a int)", in_schema("type", "o"), "TYPE s.o", "U", TYPE, "U"),
    "range": Kind("CREATE TYPE s.o AS RANGE (SUBTYPE = int)", in_schema("type", "o"), "TYPE s.o", "U", TYPE, "U"),
    "domain": Kind("CREATE DOMAIN s.o AS int", in_schema("type", "o"), "DOMAIN s.o", "U", TYPE, "U"),
    "domain_alias": Kind("CREATE DOMAIN s.o AS int", in_schema("domain", "o"), "DOMAIN s.o", "U", TYPE, "U"),
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
        'CREATE FOREIGN DATA WRAPPER w; CREATE SERVER "s 1" FOREIGN DATA WRAPPER w',
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


class World:
    """A database with one object of a kind, and two roles."""

    def __init__(self, db: Database, kind: Kind) -> None:
        self.db = db
        self.kind = kind
        self.letters = db.full if kind.letters == TABLE else kind.letters
        #: One privilege of the kind.
        self.word = WORDS[self.letters[0]]
        self.letter = self.letters[0]
        db.sql("CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA s")
        for statement in filter(None, self._here(kind.setup).split("; ")):
            db.sql(statement)

    def _here(self, text: str) -> str:
        return text.replace("DB", self.db.name)

    def sql(self, verb: str, *, option: str = "", tail: str) -> None:
        self.db.sql(self._here(f"{verb} {option}{self.word} ON {self.kind.on} {tail}"))

    def acl(self) -> set[str] | None:
        found = self.db.value(self._here(self.kind.acl))
        return None if found is None else set(found)

    def usual(self, *more: str) -> set[str]:
        """The ACL with the owner's and PUBLIC's built-in entries and these, written like ``r=U``."""
        public = {f"={self.kind.public}/postgres"} if self.kind.public else set()
        return {f"postgres={self.letters}/postgres", *public, *(f"{entry}/postgres" for entry in more)}

    def manifest(self, *grants: str, roles: str = "{name: r}, {name: x}") -> str:
        text = f"roles: [{roles}]\n"
        if "schema: s" in self.kind.target or "name: s}" in self.kind.target:
            text += "schemas: [{name: s}]\n"
        return self._here(text + ("grants:\n" + "\n".join(grants) if grants else ""))

    def grant(self, privileges: str, role: str = "r", more: str = "") -> str:
        return f"  - {{role: {role}, privileges: [{privileges}], object: {self.kind.target}{more}}}"


@pytest.fixture(params=list(KINDS))
def world(request: pytest.FixtureRequest, db: Database) -> World:
    kind = KINDS[request.param]
    if db.version < kind.first:
        pytest.skip("this server has no such kind")
    return World(db, kind)


def test_all_is_every_privilege_of_the_kind(world: World) -> None:
    manifest = world.manifest(world.grant("ALL"))
    result = world.db.converge(manifest)
    assert len(result.sql) == 1
    assert world.acl() == world.usual(f"r={world.letters}")
    assert result.summary["grants"] == {"granted": len(world.letters), "revoked": 0}


def test_one_privilege_comes_and_the_surplus_goes(world: World) -> None:
    """The rule makes the object managed: what declared roles hold beside it goes."""
    world.sql("GRANT", tail="TO x")
    result = world.db.converge(world.manifest(world.grant(world.word)))
    assert world.acl() == world.usual(f"r={world.letter}")
    assert result.summary["grants"] == {"granted": 1, "revoked": 1}


def test_undeclared_grantees_of_a_kind(world: World) -> None:
    """On shared objects an undeclared grantee is kept and reported, elsewhere it is drift."""
    world.sql("GRANT", tail="TO x")
    result = world.db.converge(world.manifest(world.grant(world.word), roles="{name: r}"))
    if world.kind.shared:
        assert world.acl() == world.usual(f"r={world.letter}", f"x={world.letter}")
        assert [item["role"] for item in result.held(reason="shared_object")] == ["x"]
    else:
        assert world.acl() == world.usual(f"r={world.letter}")


def test_undeclared_grantees_kept_by_option(world: World) -> None:
    world.sql("GRANT", tail="TO x WITH GRANT OPTION")
    result = world.db.converge(world.manifest(world.grant(world.word), roles="{name: r}"), undeclared_grantees="keep")
    assert world.acl() == world.usual(f"r={world.letter}", f"x={world.letter}*")
    assert result.held(role="x")


@pytest.mark.parametrize("mode", ["authoritative", "adopt", "additive"])
def test_grant_option_surplus(world: World, mode: str) -> None:
    world.sql("GRANT", tail="TO r WITH GRANT OPTION")
    result = world.db.converge(world.manifest(world.grant(world.word)), reconciliation_mode=mode)
    if mode == "additive":
        assert result.sql == []
        assert world.acl() == world.usual(f"r={world.letter}*")
        assert [item["role"] for item in result.held(reason="mode")] == ["r"]
        return
    assert len(result.sql) == 1
    assert result.sql[0].startswith("REVOKE GRANT OPTION FOR ")
    assert world.acl() == world.usual(f"r={world.letter}")


def test_grant_option_missing_and_declared(world: World) -> None:
    world.sql("GRANT", tail="TO r")
    option = ", with_grant_option: true"
    result = world.db.converge(world.manifest(world.grant(world.word, more=option), world.grant(world.word, "x", option)))
    assert world.acl() == world.usual(f"r={world.letter}*", f"x={world.letter}*")
    assert not result.matching("REVOKE")


def test_grant_option_of_one_rule_is_enough(world: World) -> None:
    manifest = world.manifest(world.grant(world.word, more=", with_grant_option: true"), world.grant(world.word))
    world.db.converge(manifest)
    assert world.acl() == world.usual(f"r={world.letter}*")


def test_surplus_with_grant_option_goes_in_one_statement(world: World) -> None:
    world.sql("GRANT", tail="TO x WITH GRANT OPTION")
    result = world.db.converge(world.manifest(world.grant(world.word)))
    assert world.acl() == world.usual(f"r={world.letter}")
    assert len(result.matching("REVOKE")) == 1


def test_absent_takes_away_and_manages_nothing(world: World) -> None:
    world.sql("GRANT", tail="TO r, x")
    absent = world.grant(world.word, more=", ensure: absent")
    # Without a schema that the manifest claims.
    manifest = world.manifest(absent).replace("schemas: [{name: s}]\n", "")
    result = world.db.converge(manifest)
    assert world.acl() == world.usual(f"x={world.letter}")
    assert len(result.sql) == 1
    assert not result.summary["managed"]


def test_absent_where_nothing_is_leaves_null(world: World) -> None:
    manifest = world.manifest(world.grant("ALL", more=", ensure: absent")).replace("schemas: [{name: s}]\n", "")
    world.db.silent(manifest)
    assert world.acl() is None


def test_public_present_and_absent(world: World) -> None:
    manifest = world.manifest(world.grant("ALL", "PUBLIC", ", ensure: absent")).replace("schemas: [{name: s}]\n", "")
    result = world.db.converge(manifest)
    if world.kind.public:
        assert len(result.sql) == 1
        assert world.acl() == {f"postgres={world.letters}/postgres"}
        assert result.summary["grants"] == {"granted": 0, "revoked": len(world.kind.public)}
    else:
        assert result.sql == []
        assert world.acl() is None
    result = world.db.converge(manifest.replace("ensure: absent", "ensure: present"))
    assert world.acl() == {f"postgres={world.letters}/postgres", f"={world.letters}/postgres"}
    assert len(result.sql) == 1
    assert not result.summary["managed"]
    world.db.converge(manifest)
    # PostgreSQL drops a parameter's row with the last entry, and a superuser needs none.
    assert world.acl() in ({f"postgres={world.letters}/postgres"}, None if world.db.version >= 15 else ())


def test_public_that_no_rule_names_stays(world: World) -> None:
    world.sql("GRANT", tail="TO PUBLIC")
    before = world.acl()
    world.db.converge(world.manifest(world.grant(world.word)))
    assert world.acl() == (before or world.usual()) | {f"r={world.letter}/postgres"}


def test_public_with_grant_option_is_refused(world: World) -> None:
    world.db.rejects(world.manifest(world.grant(world.word, "PUBLIC", ", with_grant_option: true")), "PUBLIC")


@pytest.mark.parametrize("external", [False, True], ids=["managed", "external"])
def test_the_override_of_a_kind(world: World, external: bool) -> None:
    option = world.letter + "*"
    world.sql("GRANT", tail="TO x WITH GRANT OPTION")
    role = f"{{name: x, external: {str(external).lower()}, privilege_reconciliation: additive}}"
    result = world.db.converge(world.manifest(world.grant(world.word), roles="{name: r}, " + role))
    assert world.acl() == world.usual(f"r={world.letter}", f"x={option}")
    (item,) = result.suppressed_revokes
    assert (item["role"], item["kind"], item["privileges"], item["grantor"]) == ("x", "object", [world.word], "postgres")
    assert result.suppressed_revoke_count == 1
    # The statement is the one that would run.
    world.db.sql(item["sql"])
    assert world.acl() == world.usual(f"r={world.letter}")


def test_the_override_keeps_a_grant_option(world: World) -> None:
    world.sql("GRANT", tail="TO x WITH GRANT OPTION")
    role = "{name: x, privilege_reconciliation: additive}"
    manifest = world.manifest(world.grant(world.word, "x"), roles="{name: r}, " + role)
    result = world.db.silent(manifest)
    assert world.acl() == world.usual(f"x={world.letter}*")
    (item,) = result.suppressed_revokes
    assert (item["kind"], item["privileges"]) == ("grant_option", [world.word])
    assert item["sql"].startswith("REVOKE GRANT OPTION FOR")
    world.db.sql(item["sql"])
    assert world.acl() == world.usual(f"x={world.letter}")


def test_an_explicit_absent_beats_the_override(world: World) -> None:
    world.sql("GRANT", tail="TO x WITH GRANT OPTION")
    role = "{name: x, privilege_reconciliation: additive}"
    manifest = world.manifest(
        world.grant(world.word), world.grant(world.word, "x", ", ensure: absent"), roles="{name: r}, " + role
    )
    result = world.db.converge(manifest)
    assert world.acl() == world.usual(f"r={world.letter}")
    assert result.suppressed_revoke_count == 0


def test_an_owner_that_lost_a_declared_privilege(world: World) -> None:
    """{} is empty, for the owner too: what it declares and lost comes back."""
    if world.kind.on == "PARAMETER work_mem":
        pytest.skip("parameters have no owner")
    world.sql("REVOKE", tail="FROM postgres")
    before = world.acl()
    roles = "{name: r}, {name: postgres, external: true}"
    world.db.silent(world.manifest(world.grant("ALL", "PUBLIC", ", ensure: absent"), roles=roles) if False else "roles: []")
    assert world.acl() == before
    world.db.converge(world.manifest(world.grant(world.word, "postgres"), roles=roles))
    assert world.acl() == world.usual()


def test_a_missing_object_of_the_kind(world: World) -> None:
    target = world._here(world.kind.target)
    name = "o" if "'o" in target else ""
    for known, missing in (
        ("'o'", "'nope'"), ("'o(int)'", "'nope(int)'"), ("name: s}", "name: nope}"), ("{type: database}", "{type: database, name: nope}"),
        (f"{world.db.name}_other", "nope"), ("plpgsql", "nope"), ("w-1", "nope"), ("s 1", "nope"), ("pg_default", "nope"),
        ("'12345'", "'54321'"),
    ):  # fmt: skip
        if known in target:
            break
    else:
        assert "parameter" in target, name
        pytest.skip("any parameter name may be granted")
    manifest = (
        "roles: [{name: r}, {name: new}]\n"
        f"grants: [{{role: r, privileges: [{world.word}], object: {target.replace(known, missing)}}}]"
    )
    result = world.db.fails(manifest, "object_missing", "nope" if "nope" in missing else "54321", "grants[0]")
    assert len(result.problems) == 1
    assert "new" not in world.db.roles()


def test_the_diff_of_a_kind(world: World) -> None:
    world.sql("GRANT", tail="TO x WITH GRANT OPTION")
    manifest = world.manifest(world.grant(world.word, more=", with_grant_option: true"))
    for check in (True, False):
        (diff,) = world.db.reconcile(manifest, check=check, diff=True).diff
        before, after = diff["before"].splitlines(), diff["after"].splitlines()
        assert any("x" in line and world.word in line for line in before), diff
        assert not any(" x" in line and world.word in line for line in after), diff
        assert any(world.word in line and "with_grant_option" in line.replace(" ", "_").lower() for line in after), diff


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
    db.sql('CREATE ROLE r; CREATE SCHEMA "S.x"; CREATE TYPE "S.x"."My ""Type" AS ENUM (\'a\'); CREATE DOMAIN "S.x"."int" AS int')
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
    assert result.sqlstate is None if "sqlstate" in result else True
    assert db.roles() == {"r"}
