# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases DEF and PUB: default privileges and PUBLIC."""

from __future__ import annotations

import pytest
from harness import UNCONNECTED, Database

SO = "roles: [{name: r}, {name: o}]\nschemas: [{name: s}]\n"


def setup(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE ROLE o; CREATE SCHEMA s; GRANT ALL ON SCHEMA s TO o")
    db.sql("GRANT CREATE ON SCHEMA public TO o")


# The schema's own privileges of o are declared, so that they are no drift.
KEEP = "grants: [{role: o, privileges: [ALL], object: {type: schema, name: s}}]\n"


def default(grants: str, owner: str = "o", schema: str | None = "s") -> str:
    where = f", schema: {schema}" if schema else ""
    return f"default_privileges: [{{owner: {owner}{where}, grant: [{grants}]}}]\n"


def one(privileges: str, on_type: str, role: str = "r", ensure: str = "present") -> str:
    return f"{{role: {role}, privileges: [{privileges}], on_type: {on_type}, ensure: {ensure}}}"


@UNCONNECTED
def test_DEF_01_public_execute_cannot_be_taken_away_per_schema(db: Database) -> None:
    result = db.rejects(SO + default(one("EXECUTE", "function", "PUBLIC", "absent")))
    assert "global" in result.text.lower() or "schema" in result.problems[0]["message"]


def test_DEF_01_globally_it_can(db: Database) -> None:
    setup(db)
    manifest = SO + KEEP + default(one("EXECUTE", "function", "PUBLIC", "absent"), schema=None)
    db.converge(manifest)
    assert db.defaults() == {("o", None, "f"): {"o=X/o"}}
    db.sql("SET ROLE o; CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; RESET ROLE")
    assert db.acl("s.f()", "function") == {"o=X/o"}
    db.silent(manifest)


def test_DEF_02_for_role_is_always_there(db: Database) -> None:
    setup(db)
    manifest = SO + KEEP + default(one("SELECT", "table"))
    result = db.converge(manifest)
    assert len(result.matching("FOR ROLE")) == len(result.sql) == 1
    assert db.defaults() == {("o", "s", "r"): {"r=r/o"}}
    db.sql("SET ROLE o; CREATE TABLE s.by_o (a int); RESET ROLE; CREATE TABLE s.by_postgres (a int)")
    assert db.acl("s.by_o") == {f"o={db.full}/o", "r=r/o"}
    assert db.acl("s.by_postgres") is None
    # What a declared default privilege gives at birth is neither required nor surplus.
    db.silent(manifest)
    # An owner that stays named, so that its rows stay managed.
    db.converge(SO.replace("{name: s}", "{name: s, owner: o}") + KEEP)
    assert db.defaults() == {}


@pytest.mark.parametrize("on_type", ["function", "routine"])
def test_DEF_05_functions_and_routines_are_one_kind(db: Database, on_type: str) -> None:
    setup(db)
    grant = one("EXECUTE", on_type)
    db.converge(
        SO + KEEP + f"default_privileges: [{{owner: o, grant: [{grant}]}}, {{owner: o, schema: s, grant: [{grant}]}}]"
    )
    assert db.defaults() == {
        ("o", None, "f"): {"=X/o", "o=X/o", "r=X/o"},
        ("o", "s", "f"): {"r=X/o"},
    }
    db.sql("SET ROLE o; CREATE PROCEDURE s.p() LANGUAGE sql AS 'SELECT 1'; RESET ROLE")
    assert "r=X/o" in (db.acl("s.p()", "function") or ())


def test_DEF_06_no_row_means_the_built_in_default(db: Database) -> None:
    setup(db)
    db.sql("ALTER DEFAULT PRIVILEGES FOR ROLE o REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    assert db.defaults() == {("o", None, "f"): {"o=X/o"}}
    manifest = SO + KEEP + default(one("EXECUTE", "function", "PUBLIC"), schema=None)
    db.converge(manifest)
    assert db.defaults() == {}
    db.silent(manifest)


def test_DEF_07_odd_names(db: Database) -> None:
    db.sql('CREATE ROLE "Own-er"; CREATE ROLE "monitoring-role"; CREATE SCHEMA "S.x"')
    manifest = "roles: [{name: Own-er}, {name: monitoring-role}]\nschemas: [{name: S.x}]\n" + default(
        one("SELECT", "table", "monitoring-role"), "Own-er", "S.x"
    )
    db.converge(manifest)
    assert db.defaults() == {("Own-er", "S.x", "r"): {'"monitoring-role"=r/"Own-er"'}}
    db.converge(manifest.replace("{name: S.x}", "{name: S.x, owner: Own-er}").partition("default_privileges")[0])
    assert db.defaults() == {}


def test_DEF_08_defaults_on_schemas_are_global_only(db: Database) -> None:
    db.rejects(SO + default(one("USAGE", "schema")), "schema", "default_privileges[0]")
    setup(db)
    db.converge(SO + KEEP + default(one("USAGE", "schema"), schema=None))
    assert db.defaults() == {("o", None, "n"): {"o=UC/o", "r=U/o"}}


def test_DEF_09_a_grant_option_by_hand(db: Database) -> None:
    setup(db)
    db.sql("ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON SEQUENCES TO r WITH GRANT OPTION")
    result = db.converge(SO + KEEP + default(one("SELECT", "sequence")))
    assert len(result.sql) == 1
    assert result.matching("REVOKE GRANT OPTION FOR SELECT ON SEQUENCES FROM")
    assert db.defaults() == {("o", "s", "S"): {"r=r/o"}}
    assert result.summary["default_privileges"] == {"granted": 0, "revoked": 1}


@pytest.mark.parametrize("schema", [None, "s"], ids=["global", "schema"])
def test_DEF_09_grant_options_in_the_manifest(db: Database, schema: str | None) -> None:
    """Declared: given, to one that has the privilege without it too, and kept."""
    setup(db)
    kinds = {"table": "r", "sequence": "S", "function": "f", "type": "T"} | ({} if schema else {"schema": "n"})
    if db.version >= 18 and not schema:
        kinds["large_object"] = "L"
    words = {"function": "EXECUTE", "type": "USAGE", "schema": "USAGE"}
    letters = {"function": "X", "type": "U", "schema": "U"}
    plain = default(", ".join(one(words.get(kind, "SELECT"), kind) for kind in kinds), schema=schema)
    db.converge(SO + KEEP + plain)
    result = db.converge(SO + KEEP + plain.replace("ensure: present", "with_grant_option: true"))
    assert not result.matching("REVOKE")
    found = {key[2]: {e for e in acl if e.startswith("r=")} for key, acl in db.defaults().items()}
    assert found == {letter: {f"r={letters.get(kind, 'r')}*/o"} for kind, letter in kinds.items()}
    # And taken back, the privilege itself staying.
    result = db.converge(SO + KEEP + plain)
    assert all("REVOKE GRANT OPTION FOR" in statement for statement in result.sql)
    found = {key[2]: {e for e in acl if e.startswith("r=")} for key, acl in db.defaults().items()}
    assert found == {letter: {f"r={letters.get(kind, 'r')}/o"} for kind, letter in kinds.items()}


def test_DEF_10_everything_at_once(db: Database) -> None:
    setup(db)
    names = ["table", "sequence", "function", "type", "schema"] + (["large_object"] if db.version >= 18 else [])
    result = db.converge(SO + KEEP + default(", ".join(one("ALL", kind) for kind in names), schema=None))
    letters = {"r": db.full, "S": "rwU", "f": "X", "T": "U", "n": "UC"} | ({"L": "rw"} if db.version >= 18 else {})
    assert {key[2]: next(e for e in acl if e.startswith("r=")) for key, acl in db.defaults().items()} == {
        letter: f"r={words}/o" for letter, words in letters.items()
    }
    assert result.summary["default_privileges"]["granted"] == sum(map(len, letters.values()))


@pytest.mark.versions(max=17)
def test_DEF_10_large_objects_before_18(db: Database) -> None:
    setup(db)
    result = db.fails(SO + KEEP + default(one("ALL", "large_object"), schema=None), "unsupported_version", "18")
    assert "default_privileges[0]" in result.text


def test_DEF_10_large_objects_are_not_in_schemas(db: Database) -> None:
    """PostgreSQL 18: cannot use IN SCHEMA clause when using GRANT/REVOKE ON LARGE OBJECTS."""
    db.fails(
        SO + default(one("SELECT", "large_object")),
        ("manifest_invalid", "unsupported_version"),
        "default_privileges[0]",
    )


def test_DEF_13_global_and_schema_layer(db: Database) -> None:
    setup(db)
    db.sql("ALTER DEFAULT PRIVILEGES FOR ROLE o GRANT SELECT ON TABLES TO r")
    manifest = SO + KEEP + default(one("SELECT", "table"))
    result = db.converge(manifest)
    # The schema's own row is what counts for it. The global layer is nobody's claim: reported.
    assert db.defaults() == {
        ("o", "s", "r"): {"r=r/o"},
        ("o", None, "r"): {f"o={db.full}/o", "r=r/o"},
    }
    assert [item["role"] for item in result.held(reason="unmanaged_default")] == ["r"]
    # Claimed for that owner and kind, it is managed.
    db.converge(
        SO
        + KEEP
        + "default_privileges:\n"
        + f"  - {{owner: o, schema: s, grant: [{one('SELECT', 'table')}]}}\n"
        + f"  - {{owner: o, grant: [{one('INSERT', 'table')}]}}\n"
    )
    assert db.defaults() == {
        ("o", "s", "r"): {"r=r/o"},
        ("o", None, "r"): {f"o={db.full}/o", "r=a/o"},
    }


def test_DEF_13_the_owners_own_global_entry_stays(db: Database) -> None:
    setup(db)
    db.sql("ALTER DEFAULT PRIVILEGES FOR ROLE o REVOKE TRUNCATE ON TABLES FROM o")
    before = db.defaults()
    db.converge(SO + KEEP + default(one("SELECT", "table"), schema=None))
    (row,) = before.values()
    assert db.defaults() == {("o", None, "r"): row | {"r=r/o"}}


def test_DEF_14_only_the_creating_role_counts(db: Database) -> None:
    setup(db)
    db.sql("CREATE ROLE u LOGIN; GRANT o TO u")
    manifest = (
        "roles: [{name: r}, {name: o}, {name: u, login: true}]\nschemas: [{name: s}]\n"
        "memberships: [{role: o, members: [{name: u}]}]\n"
        + KEEP.replace("]\n", ', {role: r, privileges: [SELECT], object: {type: table, schema: s, name: "*"}}]\n')
        + default(one("SELECT", "table"))
    )
    db.converge(manifest)
    db.connect(user="u").execute("CREATE TABLE s.t (a int)")
    assert db.acl("s.t") is None
    result = db.converge(manifest)
    assert len(result.sql) == 1
    assert result.sql[0].startswith("GRANT")
    assert db.acl("s.t") == {f"u={db.full}/u", "r=r/u"}
    assert {key[0] for key in db.defaults()} == {"o"}


def test_DEF_owners_that_nobody_names_are_reported(db: Database) -> None:
    setup(db)
    db.sql("CREATE ROLE p; ALTER DEFAULT PRIVILEGES FOR ROLE p IN SCHEMA s GRANT SELECT ON TABLES TO r")
    before = db.defaults()
    result = db.silent(SO + KEEP)
    assert db.defaults() == before
    assert [item["role"] for item in result.held(reason="unmanaged_default")] == ["r"]


def test_DEF_a_permitted_entry_is_neither_required_nor_surplus(db: Database) -> None:
    """A declared default privilege permits its entry on that owner's objects; other entries stay surplus."""
    setup(db)
    db.sql(
        "SET ROLE o; CREATE TABLE s.t (a int); CREATE TABLE s.u (a int); CREATE VIEW s.v AS SELECT 1 AS a; RESET ROLE",
        "CREATE TABLE s.w (a int); GRANT SELECT, INSERT ON s.t TO r; GRANT SELECT ON s.v TO r; "
        "GRANT SELECT ON s.w TO r",
    )
    manifest = SO + KEEP + default(one("SELECT", "table"))
    db.converge(manifest)
    assert db.acl("s.t") == {f"o={db.full}/o", "r=r/o"}
    assert db.acl("s.v") == {f"o={db.full}/o", "r=r/o"}
    assert db.acl("s.u") is None
    # Another owner's table has no such permit.
    assert db.acl("s.w") == {f"postgres={db.full}/postgres"}


def test_DEF_a_default_owner_stands_in(db: Database) -> None:
    setup(db)
    db.rejects(
        SO + f"default_privileges: [{{schema: s, grant: [{one('SELECT', 'table')}]}}]", "default_privileges[0]", "owner"
    )
    db.converge(
        "default_owner: o\n" + SO + KEEP + f"default_privileges: [{{schema: s, grant: [{one('SELECT', 'table')}]}}]"
    )
    assert db.defaults() == {("o", "s", "r"): {"r=r/o"}}
    assert db.value("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 's'") == "postgres"


def test_DEF_global_scope_spelled_out(db: Database) -> None:
    setup(db)
    db.converge(
        SO + KEEP + f"default_privileges: [{{owner: o, scope: {{type: global}}, grant: [{one('SELECT', 'table')}]}}]"
    )
    assert list(db.defaults()) == [("o", None, "r")]


def test_DEF_absent_takes_away(db: Database) -> None:
    setup(db)
    db.sql("ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT, INSERT ON TABLES TO r")
    db.converge(SO + KEEP + default(one("SELECT", "table") + ", " + one("INSERT", "table", ensure="absent")))
    assert db.defaults() == {("o", "s", "r"): {"r=r/o"}}


# PUBLIC


def public(privileges: str, target: str, ensure: str = "absent") -> str:
    return f"{{role: PUBLIC, privileges: [{privileges}], object: {target}, ensure: {ensure}}}"


def test_PUB_01_revoking_from_public_settles(db: Database) -> None:
    usual = db.value("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'public'")
    result = db.converge(
        f"grants: [{public('CONNECT, TEMPORARY', '{type: database}')}, {public('ALL', '{type: schema, name: public}')}]"
    )
    assert db.acl(db.name, "database") == {"postgres=CTc/postgres"}
    assert db.acl("public", "schema") == {f"{usual}=UC/{usual}"}
    assert len(result.sql) == 2
    assert not result.summary["managed"], "rules for PUBLIC manage nothing"


@pytest.mark.parametrize("name", ["PUBLIC", "public", "Public"])
def test_PUB_01_public_in_any_case(db: Database, name: str) -> None:
    db.converge(f"grants: [{public('TEMPORARY', '{type: database}').replace('PUBLIC', name)}]")
    assert "=c/postgres" in (db.acl(db.name, "database") or ())


def test_PUB_02_declared_connect_stays(db: Database) -> None:
    manifest = (
        "roles: [{name: dba, login: true}]\n"
        f"grants: [{{role: dba, privileges: [CONNECT, TEMPORARY], object: {{type: database}}}},"
        f" {public('CONNECT, TEMPORARY', '{type: database}')}]"
    )
    result = db.converge(manifest)
    for _run in range(3):
        assert not [statement for statement in result.matching("^REVOKE") if "dba" in statement]
        assert db.acl(db.name, "database") == {"postgres=CTc/postgres", "dba=Tc/postgres"}
        result = db.reconcile(manifest)
    db.connect(user="dba")


def test_PUB_03_one_run_is_enough_for_a_new_owner(db: Database) -> None:
    db.converge(
        "roles: [{name: o}]\n"
        f"grants: [{public('TEMPORARY', '{type: database}')}]\n"
        + default(one("EXECUTE", "function", "PUBLIC", "absent"), schema=None)
    )
    assert db.defaults() == {("o", None, "f"): {"o=X/o"}}
    assert db.acl(db.name, "database") == {"=c/postgres", "postgres=CTc/postgres"}


@UNCONNECTED
@pytest.mark.parametrize(
    "manifest",
    [
        "memberships: [{role: r, members: [{name: PUBLIC}]}]\nroles: [{name: r}]",
        "memberships: [{role: PUBLIC, members: [{name: r}]}]\nroles: [{name: r}]",
        "schemas: [{name: s, owner: PUBLIC}]",
        "default_owner: public",
        default(one("SELECT", "table", "r"), "PUBLIC") + "roles: [{name: r}]\nschemas: [{name: s}]",
    ],
)
def test_PUB_06_impossible_with_public(db: Database, manifest: str) -> None:
    assert "public" in db.rejects(manifest).text.lower()


def test_PUB_06_grant_option_and_retirement(db: Database) -> None:
    target = "object: {type: database}, with_grant_option: true"
    db.fails(f"grants: [{{role: PUBLIC, privileges: [CONNECT], {target}}}]", ("manifest_invalid", "not_supported"))
    db.fails("retirements: [{role: PUBLIC}]", ("manifest_invalid", "not_supported"))


def test_PUB_what_no_rule_names_stays(db: Database) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE TABLE s.u (a int); GRANT SELECT ON s.t, s.u TO PUBLIC")
    db.sql("GRANT USAGE ON SCHEMA s TO PUBLIC")
    db.silent("schemas: [{name: s}]")
    db.converge(f"schemas: [{{name: s}}]\ngrants: [{public('SELECT', '{type: table, schema: s, name: t}')}]")
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}
    assert db.acl("s.u") == {f"postgres={db.full}/postgres", "=r/postgres"}


def test_PUB_present(db: Database) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    result = db.converge(f"grants: [{public('SELECT', '{type: table, schema: s, name: t}', 'present')}]")
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "=r/postgres"}
    assert not result.summary["managed"]


def test_PUB_absent_in_additive_waits(db: Database) -> None:
    result = db.silent(f"grants: [{public('TEMPORARY', '{type: database}')}]", reconciliation_mode="additive")
    assert [item["privileges"] for item in result.held(reason="mode")] == [["TEMPORARY"]]
