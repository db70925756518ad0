# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Default privileges in both layers, of every kind: PUBLIC's built-in ones, grant options, what is permitted, the override."""

from __future__ import annotations

import pytest
from harness import UNCONNECTED, Database

#: on_type, letter of pg_default_acl, a privilege, its letter, the owner's letters, PUBLIC's built-in ones.
KINDS = {
    "table": ("r", "SELECT", "r", "full", ""),
    "sequence": ("S", "USAGE", "U", "rwU", ""),
    "function": ("f", "EXECUTE", "X", "X", "X"),
    "type": ("T", "USAGE", "U", "U", "U"),
    "schema": ("n", "CREATE", "C", "UC", ""),
    "large_object": ("L", "UPDATE", "w", "rw", ""),
}
WORDS = {"table": "TABLES", "sequence": "SEQUENCES", "function": "FUNCTIONS", "type": "TYPES", "schema": "SCHEMAS",
         "large_object": "LARGE OBJECTS"}  # fmt: skip
HEAD = "roles: [{name: r}, {name: x}, {name: o}]\n"


def kinds(db: Database, schema: str | None = None) -> dict[str, tuple[str, ...]]:
    """The kinds that this layer has on this server."""
    out = {"schema", "large_object"} if schema else set() if db.version >= 18 else {"large_object"}
    return {
        name: tuple(db.full if word == "full" else word for word in words)
        for name, words in KINDS.items()
        if name not in out
    }


def setup(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE ROLE x; CREATE ROLE o; CREATE SCHEMA s AUTHORIZATION o")


def item(role: str, privilege: str, kind: str, more: str = "") -> str:
    return f"    - {{role: {role}, privileges: [{privilege}], on_type: {kind}{more}}}\n"


def layer(items: str, schema: str | None = None) -> str:
    where = f", schema: {schema}" if schema else ""
    return f"  - owner: o{where and chr(10) + '    schema: ' + str(schema)}\n    grant:\n" + items.replace(
        "    -", "      -"
    )


def manifest(*layers: str, head: str = HEAD, schema: bool = True) -> str:
    return (
        head
        + ("schemas: [{name: s, owner: o}]\n" if schema else "")
        + ("default_privileges:\n" + "".join(layers) if layers else "")
    )


def alter(db: Database, text: str, kind: str, schema: str | None) -> None:
    where = f" IN SCHEMA {schema}" if schema else ""
    verb, tail = text.split(" ON ")
    db.sql(f"ALTER DEFAULT PRIVILEGES FOR ROLE o{where} {verb} ON {WORDS[kind]} {tail}")


def others(db: Database) -> dict[tuple[str | None, str], set[str]]:
    """(schema, letter) to the entries of others than the owner and PUBLIC."""
    return {
        (schema, letter): found
        for (_owner, schema, letter), acl in db.defaults().items()
        if (found := {entry for entry in acl if not entry.startswith(("o=", "="))})
    }


@pytest.mark.parametrize("schema", [None, "s"], ids=["global", "schema"])
def test_every_kind_comes_and_the_surplus_goes(db: Database, schema: str | None) -> None:
    setup(db)
    found = kinds(db, schema)
    for kind, (_letter, privilege, *_rest) in found.items():
        alter(db, f"GRANT {privilege} ON TO x WITH GRANT OPTION", kind, schema)
    rules = "".join(item("r", words[1], kind) for kind, words in found.items())
    result = db.converge(manifest(layer(rules, schema)))
    assert others(db) == {(schema, words[0]): {f"r={words[2]}/o"} for words in found.values()}
    assert result.summary["default_privileges"] == {"granted": len(found), "revoked": len(found)}
    # Deleted from the manifest: the schema's layer stays managed by its owner, the global one is nobody's claim.
    result = db.converge(manifest())
    if schema:
        assert db.defaults() == {}
    else:
        assert len(result.held(reason="unmanaged_default", role="r")) == len(found)
        assert result.sql == []


@pytest.mark.parametrize("schema", [None, "s"], ids=["global", "schema"])
def test_the_override_counts_defaults(db: Database, schema: str | None) -> None:
    setup(db)
    found = kinds(db, schema)
    for kind, (_letter, privilege, *_rest) in found.items():
        alter(db, f"GRANT {privilege} ON TO x WITH GRANT OPTION", kind, schema)
    keep = HEAD.replace("{name: x}", "{name: x, privilege_reconciliation: additive}")
    rules = "".join(item("r", words[1], kind) for kind, words in found.items())
    result = db.converge(manifest(layer(rules, schema), head=keep))
    assert others(db) == {(schema, w[0]): {f"r={w[2]}/o", f"x={w[2]}*/o"} for w in found.values()}
    assert {(i["role"], i["kind"], i["owner"]) for i in result.suppressed_revokes} == {("x", "default_privilege", "o")}
    assert result.suppressed_revoke_count == len(found)
    # A grant option beside a declared privilege is a thing of its own.
    options = db.silent(
        manifest(layer(rules + "".join(item("x", w[1], kind) for kind, w in found.items()), schema), head=keep)
    )
    assert options.suppressed_revoke_count == len(found)
    assert all("GRANT OPTION FOR" in i["sql"] for i in options.suppressed_revokes)
    # An explicit absent applies.
    absent = "".join(item("x", w[1], kind, ", ensure: absent") for kind, w in found.items())
    gone = db.converge(manifest(layer(rules + absent, schema), head=keep))
    assert gone.suppressed_revoke_count == 0
    assert others(db) == {(schema, w[0]): {f"r={w[2]}/o"} for w in found.values()}


@pytest.mark.parametrize("kind", ["function", "type"])
def test_publics_built_in_default(db: Database, kind: str) -> None:
    setup(db)
    letter, privilege, mark, owner, _public = kinds(db)[kind]
    absent = manifest(layer(item("PUBLIC", privilege, kind, ", ensure: absent")), schema=False)
    result = db.converge(absent)
    assert len(result.sql) == 1
    assert db.defaults() == {("o", None, letter): {f"o={owner}/o"}}
    # Back: the row equals the built-in default, so the server deletes it, and no row is read as that.
    result = db.converge(absent.replace("absent", "present"))
    assert db.defaults() == {}
    db.silent(absent.replace("absent", "present"))
    # Per schema it cannot be taken away.
    db.rejects(manifest(layer(item("PUBLIC", privilege, kind, ", ensure: absent"), "s")), "global")
    # There an entry for PUBLIC is one like any other: added, and taken by name.
    assert mark == {"function": "X", "type": "U"}[kind]


@pytest.mark.parametrize("schema", [None, "s"], ids=["global", "schema"])
def test_public_gets_more_than_is_built_in(db: Database, schema: str | None) -> None:
    setup(db)
    rules = item("PUBLIC", "SELECT", "table") + item("PUBLIC", "USAGE", "sequence")
    db.converge(manifest(layer(rules, schema)))
    assert {key[2]: [e for e in acl if e.startswith("=")] for key, acl in db.defaults().items()} == {
        "r": ["=r/o"],
        "S": ["=U/o"],
    }
    # What no rule names any more of PUBLIC's stays; absent takes it.
    db.silent(manifest(layer(item("PUBLIC", "SELECT", "table"), schema)))
    db.converge(manifest(layer(rules.replace("}\n", ", ensure: absent}\n"), schema)))
    assert db.defaults() == {}


@UNCONNECTED
def test_public_with_grant_option(db: Database) -> None:
    db.rejects(manifest(layer(item("PUBLIC", "SELECT", "table", ", with_grant_option: true"))), "PUBLIC")


def test_the_owners_own_entry(db: Database) -> None:
    """Neither removed nor needed: an owner that reduced its own stays so, unless a rule names it."""
    setup(db)
    db.sql("ALTER DEFAULT PRIVILEGES FOR ROLE o REVOKE ALL ON TABLES FROM o")
    assert db.defaults() == {("o", None, "r"): set()}
    db.converge(manifest(layer(item("r", "SELECT", "table"))))
    assert db.defaults() == {("o", None, "r"): {"r=r/o"}}
    db.converge(manifest(layer(item("r", "SELECT", "table") + item("o", "INSERT", "table"))))
    assert db.defaults() == {("o", None, "r"): {"r=r/o", "o=a/o"}}


def test_a_row_that_is_taken_back_goes(db: Database) -> None:
    setup(db)
    for kind, (_letter, privilege, *_rest) in kinds(db).items():
        alter(db, f"GRANT {privilege} ON TO r", kind, None)
    rules = "".join(item("r", words[1], kind, ", ensure: absent") for kind, words in kinds(db).items())
    db.converge(manifest(layer(rules)))
    assert db.defaults() == {}


def test_a_claim_is_per_owner_and_kind(db: Database) -> None:
    setup(db)
    db.sql("CREATE ROLE p")
    for owner in ("o", "p"):
        db.sql(
            f"ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT SELECT, INSERT ON TABLES TO x",
            f"ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT USAGE ON SEQUENCES TO x",
        )
    result = db.converge(manifest(layer(item("r", "SELECT", "table"))))
    assert others(db)[None, "r"] == {"x=ar/p"} or db.defaults()["o", None, "r"] == {f"o={db.full}/o", "r=r/o"}
    assert db.defaults()["o", None, "S"] == {"o=rwU/o", "x=U/o"}
    assert db.defaults()["p", None, "r"] == {f"p={db.full}/p", "x=ar/p"}
    assert len(result.held(reason="unmanaged_default")) == 3


def test_permitted_by_a_default_with_grant_option(db: Database) -> None:
    """A table born with the option does not flap; one whose default lacks it loses the option only."""
    setup(db)
    text = manifest(
        layer(item("r", "SELECT", "table", ", with_grant_option: true") + item("x", "SELECT", "table"), "s")
    )
    db.converge(text)
    db.sql("SET ROLE o; CREATE TABLE s.t (a int); CREATE VIEW s.v AS SELECT 1 AS a; RESET ROLE")
    assert db.acl("s.t") == {f"o={db.full}/o", "r=r*/o", "x=r/o"}
    db.silent(text)
    db.sql("SET ROLE o; GRANT SELECT ON s.t TO x WITH GRANT OPTION; RESET ROLE")
    result = db.converge(text)
    assert db.acl("s.t") == {f"o={db.full}/o", "r=r*/o", "x=r/o"}
    assert len(result.sql) == 1


def test_permitted_kinds(db: Database) -> None:
    """Every kind of object that is born with a declared default privilege stays as it is."""
    setup(db)
    db.sql("GRANT CREATE ON SCHEMA s TO o")
    found = kinds(db, "s")
    text = manifest(layer("".join(item("r", words[1], kind) for kind, words in found.items()), "s"))
    db.converge(text)
    db.sql(
        "SET ROLE o; CREATE TABLE s.t (a int); CREATE SEQUENCE s.q; CREATE MATERIALIZED VIEW s.m AS SELECT 1 AS a",
        "CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE PROCEDURE s.p() LANGUAGE sql AS 'SELECT 1'",
        "CREATE TYPE s.e AS ENUM ('a'); CREATE DOMAIN s.d AS int; RESET ROLE",
    )
    assert db.acl("s.e", "type") == {"=U/o", "o=U/o", "r=U/o"}
    db.silent(text)
    # Without the rule the born entries are surplus.
    db.converge(manifest())
    assert db.acl("s.e", "type") == {"=U/o", "o=U/o"}
    assert db.acl("s.f()", "function") == {"=X/o", "o=X/o"}
    assert db.acl("s.t") == {f"o={db.full}/o"}


def test_both_layers_in_one_run(db: Database) -> None:
    setup(db)
    both = manifest(
        layer(item("r", "SELECT", "table") + item("x", "EXECUTE", "function")),
        layer(item("r", "SELECT, INSERT", "table") + item("PUBLIC", "USAGE", "sequence"), "s"),
    )
    db.converge(both)
    assert db.defaults() == {
        ("o", None, "r"): {f"o={db.full}/o", "r=r/o"},
        ("o", None, "f"): {"=X/o", "o=X/o", "x=X/o"},
        ("o", "s", "r"): {"r=ar/o"},
        ("o", "s", "S"): {"=U/o"},
    }


def test_undeclared_grantees_in_defaults(db: Database) -> None:
    setup(db)
    db.sql("CREATE ROLE stranger; ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO stranger")
    before = db.defaults()
    kept = db.silent(manifest(), undeclared_grantees="keep")
    assert db.defaults() == before
    assert kept.held(reason="undeclared_grantee", role="stranger")
    db.converge(manifest())
    assert db.defaults() == {}


def test_a_dangling_grantee_in_defaults(db: Database) -> None:
    setup(db)
    db.sql("CREATE ROLE ghost; ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO ghost, r")
    oid = db.value("SELECT 'ghost'::regrole::oid")
    db.sql(f"DELETE FROM pg_shdepend WHERE refobjid = {oid}; DROP ROLE ghost")
    before = db.defaults()
    result = db.silent(manifest(layer(item("r", "SELECT", "table"), "s")))
    assert db.defaults() == before
    assert str(oid) in str(result.held(reason="dangling_grantee"))


@pytest.mark.parametrize("inherits", [True, False])
def test_an_executor_that_is_a_member_of_the_owner(db: Database, inherits: bool) -> None:
    """FOR ROLE needs membership (up to 15), with INHERIT from 16 on: who lacks it is told before the first statement or not at all."""
    setup(db)
    db.sql(f"CREATE ROLE ex LOGIN {'' if inherits else 'NOINHERIT'}; GRANT o TO ex")
    text = manifest(layer(item("r", "SELECT", "table"), "s"), head="assume_roles: [o, r, x]\n")
    if inherits or db.version < 16:
        db.converge(text, login_user="ex")
        assert db.defaults() == {("o", "s", "r"): {"r=r/o"}}
        return
    result = db.reconcile(text, login_user="ex")
    if result.failed:
        assert result.error_code == "insufficient_privilege"
        assert db.defaults() == {}
    else:
        assert db.defaults() == {("o", "s", "r"): {"r=r/o"}}
        db.silent(text, login_user="ex")
