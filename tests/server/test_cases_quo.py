# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases QUO: quoting, odd names and literals."""

from __future__ import annotations

import pytest
from harness import UNCONNECTED, Database


def test_QUO_01_hyphens_in_every_position(db: Database) -> None:
    db.sql("CREATE TABLE public.t (a int)")
    db.converge(
        """
        roles:
          - {name: app-owner}
          - {name: app-ro, comment: read-only, connection_limit: 3}
          - {name: app-old}
        memberships: [{role: app-owner, members: [{name: app-ro}]}]
        schemas: [{name: app-schema, owner: app-owner}]
        grants:
          - {role: app-ro, privileges: [USAGE], object: {type: schema, name: app-schema}}
          - {role: app-ro, privileges: [SELECT], object: {type: table, schema: public, name: t}}
        default_privileges:
          - {owner: app-owner, schema: app-schema, grant: [{role: app-ro, privileges: [SELECT], on_type: table}]}
        """
    )
    assert db.members("app-owner") == {"app-ro"}
    assert db.value("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'app-schema'") == '"app-owner"'
    assert db.value("SELECT shobj_description('\"app-ro\"'::regrole, 'pg_authid')") == "read-only"
    assert db.defaults() == {("app-owner", "app-schema", "r"): {'"app-ro"=r/"app-owner"'}}


def test_QUO_01_settings(db: Database) -> None:
    db.converge("roles: [{name: app-ro, config: {work_mem: 8MB}}]")
    assert db.value("SELECT rolconfig FROM pg_roles WHERE rolname = 'app-ro'") == ["work_mem=8MB"]
    db.converge("roles: [{name: app-ro, config: {}}]")


def test_QUO_01_retiring(db: Database) -> None:
    db.sql('CREATE ROLE "app-old"; CREATE TABLE t (a int); ALTER TABLE t OWNER TO "app-old"')
    db.converge("roles: [{name: app-owner}]\nretirements: [{role: app-old, reassign_owned_to: app-owner}]")
    assert db.value("SELECT relowner::regrole::text FROM pg_class WHERE oid = 't'::regclass") == '"app-owner"'


def test_QUO_02_dots_dashes_spaces_and_quotes(db: Database) -> None:
    db.sql(
        'CREATE ROLE r; CREATE SCHEMA "c.d"; CREATE SCHEMA "x-y"; CREATE SCHEMA c; CREATE TABLE c.d (a int)',
        'CREATE TABLE "c.d"."e.f" (a int); CREATE TABLE "c.d"."a""b" (a int); CREATE TABLE "c.d"."s p" (a int)',
        'CREATE TABLE "x-y"."Order" (a int); CREATE TABLE "x-y"."order" (a int)',
        'CREATE FUNCTION "c.d"."f.g (x)"(int) RETURNS int LANGUAGE sql AS \'SELECT 1\'',
    )
    base = """
        roles: [{name: r}]
        schemas: [{name: c.d}, {name: x-y}]
        grants:
          - {role: r, privileges: [SELECT], object: {type: table, schema: c.d, name: e.f}}
          - {role: r, privileges: [SELECT], object: {type: table, schema: c.d, name: 'a"b'}}
          - {role: r, privileges: [SELECT], object: {type: table, schema: x-y, name: Order}}
          - {role: r, privileges: [USAGE], object: {type: schema, name: c.d}}
          - {role: r, privileges: [USAGE], object: {type: schema, name: x-y}}
    """
    db.converge(base)
    assert "r=r/postgres" in (db.acl('"c.d"."e.f"') or ())
    assert "r=r/postgres" in (db.acl('"c.d"."a""b"') or ())
    assert "r=r/postgres" in (db.acl('"x-y"."Order"') or ())
    assert db.acl('"x-y"."order"') is None
    assert db.acl('"c.d"."s p"') is None
    assert db.acl("c.d") is None
    wildcards = """
          - {role: r, privileges: [SELECT], object: {type: table, schema: c.d, name: "*"}}
          - {role: r, privileges: [EXECUTE], object: {type: function, schema: c.d, name: "*"}}
    """
    result = db.converge(base.rstrip() + wildcards)
    assert result.summary["grants"] == {"granted": 2, "revoked": 0}
    assert "r=r/postgres" in (db.acl('"c.d"."s p"') or ())


@pytest.mark.parametrize("declared", [True, False])
def test_QUO_03_names_that_differ_only_in_case(db: Database, declared: bool) -> None:
    db.sql('CREATE ROLE toto; CREATE ROLE "TOTO" LOGIN; CREATE SCHEMA s; CREATE TABLE s.t (a int)')
    lower = "{name: toto, login: false}, " if declared else ""
    result = db.converge(
        f"roles: [{lower}{{name: TOTO, login: true}}]\nschemas: [{{name: s}}]\n"
        "grants: [{role: TOTO, privileges: [SELECT], object: {type: table, schema: s, name: t}}]"
    )
    assert len(result.sql) == 1
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", '"TOTO"=r/postgres'} or db.acl("s.t") == {
        f"postgres={db.full}/postgres",
        "TOTO=r/postgres",
    }
    assert db.attribute("TOTO", "rolcanlogin") is True
    assert db.attribute("toto", "rolcanlogin") is False


KEYWORDS = ["user", "current_user", "session_user", "current_role", "all", "group", "select", "table"]


def test_QUO_06_roles_named_like_keywords(db: Database) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    db.sql(*(f'CREATE ROLE "{name}"' for name in KEYWORDS[:5]))
    roles = ", ".join(f"{{name: '{name}', comment: x, connection_limit: 2}}" for name in KEYWORDS)
    grants = ", ".join(
        f"{{role: '{name}', privileges: [SELECT], object: {{type: table, schema: s, name: t}}}}" for name in KEYWORDS
    )
    defaults = ", ".join(
        f"{{owner: '{name}', schema: s, grant: [{{role: user, privileges: [SELECT], on_type: table}}]}}"
        for name in KEYWORDS[1:]
    )
    members = ", ".join(f"{{name: '{name}'}}" for name in KEYWORDS[1:])
    before = db.query("SELECT rolconnlimit FROM pg_roles WHERE rolname = 'postgres'")
    db.converge(
        f"roles: [{roles}]\nschemas: [{{name: s}}]\ngrants: [{grants}]\ndefault_privileges: [{defaults}]\n"
        f"memberships: [{{role: user, members: [{members}]}}]"
    )
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"} | {f"{name}=r/postgres" for name in KEYWORDS}
    assert db.members("user") == set(KEYWORDS[1:])
    assert db.query("SELECT rolconnlimit FROM pg_roles WHERE rolname = 'postgres'") == before
    db.converge("retirements: [{role: current_user, drop_owned: true}]")
    assert "current_user" not in db.roles()
    assert db.query("SELECT rolconnlimit FROM pg_roles WHERE rolname = 'postgres'") == before


def test_QUO_07_iam_style_names(db: Database) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    db.converge(
        """
        roles: [{name: A.b@proj.iam, login: true}, {name: svc-1@x.gserviceaccount.com}]
        schemas: [{name: s}]
        memberships: [{role: svc-1@x.gserviceaccount.com, members: [{name: A.b@proj.iam}]}]
        grants: [{role: A.b@proj.iam, privileges: [SELECT], object: {type: table, schema: s, name: t}}]
        default_privileges:
          - owner: A.b@proj.iam
            schema: s
            grant: [{role: svc-1@x.gserviceaccount.com, privileges: [SELECT], on_type: table}]
        """
    )
    assert db.members("svc-1@x.gserviceaccount.com") == {"A.b@proj.iam"}
    assert list(db.defaults()) == [("A.b@proj.iam", "s", "r")]
    assert any(entry.startswith('"A.b@proj.iam"=r/') for entry in db.acl("s.t") or ())


LONG = "x" * 63


@UNCONNECTED
@pytest.mark.parametrize(
    "manifest",
    [
        f"roles: [{{name: {LONG}yyyyyyy}}]",
        f"roles: [{{name: {LONG}a}}, {{name: {LONG}b}}]",
        f"profiles: {{{'p' * 30}: {{}}}}\nschemas: [{{name: {'s' * 40}, profiles: [{'p' * 30}]}}]",
        # 64 bytes in 32 characters
        "roles: [{name: " + "\u00e9" * 32 + "}]",
        f"schemas: [{{name: {LONG}x}}]",
    ],
    ids=["role", "same first bytes", "generated", "bytes, not characters", "schema"],
)
def test_QUO_08_names_longer_than_63_bytes(db: Database, manifest: str) -> None:
    result = db.rejects(manifest, "63")
    assert any(name in result.text for name in ("x" * 20, "p" * 20, "\u00e9" * 20))


def test_QUO_08_63_bytes_are_fine(db: Database) -> None:
    accented = "\u00e9" * 31
    db.converge(f"roles: [{{name: {LONG}}}, {{name: {accented}}}]")
    assert db.roles() == {LONG, accented}


def test_QUO_11_percent_signs_stars_and_spaces(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s")
    connection = db.connection
    for name in ("*", "100%", "%s", "a b", "%(x)s"):
        connection.execute(b'CREATE TABLE s."%b" (a int)'.replace(b"%b", name.encode()))
    base = 'roles: [{name: r}, {name: "5%"}]\nschemas: [{name: s}]\ngrants:\n'
    for name in ("100%", "%s", "a b", "%(x)s"):
        base += f"  - {{role: r, privileges: [SELECT], object: {{type: table, schema: s, name: '{name}'}}}}\n"
        base += f"  - {{role: '5%', privileges: [SELECT], object: {{type: table, schema: s, name: '{name}'}}}}\n"
    db.converge(base)
    for name in ("100%", "%s", "a b", "%(x)s"):
        assert "r=r/postgres" in (db.acl(f's."{name}"') or ())
    assert db.acl('s."*"') is None
    db.converge(base + '  - {role: r, privileges: [SELECT], object: {type: table, schema: s, name: "*"}}\n')
    assert "r=r/postgres" in (db.acl('s."*"') or ())


@UNCONNECTED
@pytest.mark.parametrize("name", ["none", "public", "pg_mine", "", "a\0b", "Public", "NONE", "pg_monitor"])
def test_QUO_12_impossible_role_names(db: Database, name: str) -> None:
    result = db.rejects({"roles": [{"name": name}]})
    assert any("roles[0]" in (problem["path"] or "") for problem in result.problems)


def test_QUO_12_only_lower_case_pg_is_reserved(db: Database) -> None:
    db.converge("roles: [{name: PG_mine}, {name: pgloader_pg}, {name: PUBLICITY}]")
    assert db.roles() == {"PG_mine", "pgloader_pg", "PUBLICITY"}


def test_QUO_12_predefined_roles_may_be_referenced(db: Database) -> None:
    db.converge(
        """
        roles: [{name: m}, {name: pg_monitor, external: true}]
        memberships: [{role: pg_monitor, members: [{name: m}]}, {role: pg_read_all_data, members: [{name: m}]}]
        """
    )
    assert {edge[0] for edge in db.edges()} == {"pg_monitor", "pg_read_all_data"}


COMMENT = 'it\'s \\ "x" \u00e9 %s $$ \n end'


@pytest.mark.parametrize("setting", ["ALTER ROLE ex SET", "ALTER DATABASE {database} SET"])
def test_QUO_14_literals(db: Database, setting: str) -> None:
    db.sql("CREATE ROLE ex SUPERUSER LOGIN")
    db.sql(setting.format(database=db.name) + " standard_conforming_strings = off")
    db.converge({"roles": [{"name": "r", "comment": COMMENT, "config": {"app.tenant": "a'b\\c"}}]}, login_user="ex")
    assert db.value("SELECT shobj_description('r'::regrole, 'pg_authid')") == COMMENT
    assert db.value("SELECT rolconfig FROM pg_roles WHERE rolname = 'r'") == ["app.tenant=a'b\\c"]


@UNCONNECTED
@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (
            "profiles: {c: {}, b-c: {}}\nschemas: [{name: a-b, profiles: [c]}, {name: a, profiles: [b-c]}]",
            ["a-b-c", "schemas[0]", "schemas[1]"],
        ),
        ("roles: [{name: x}, {name: y}, {name: x}]", ["roles[0]", "roles[2]", "x"]),
        ("profiles: {p: {}}\nschemas: [{name: s, profiles: [p]}]\nroles: [{name: s-p}]", ["roles[0]", "s-p"]),
    ],
    ids=["generated twice", "listed twice", "listed and generated"],
)
def test_QUO_15_two_declarations_of_one_role(db: Database, manifest: str, words: list[str]) -> None:
    db.rejects(manifest, *words)
