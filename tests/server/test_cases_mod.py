# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases MOD and CHK: modes, manifest rules, check mode, diff and reporting."""

from __future__ import annotations

import re
from typing import Any

import pytest
import test_withheld as surplus
import yaml
from harness import UNCONNECTED, Database

SURPLUS = """
CREATE ROLE r CREATEDB CONNECTION LIMIT 5; COMMENT ON ROLE r IS 'old'; CREATE ROLE x LOGIN; CREATE ROLE w; CREATE ROLE z;
CREATE ROLE g; CREATE ROLE a; GRANT g TO x; GRANT g TO a WITH ADMIN OPTION;
CREATE SCHEMA s AUTHORIZATION w;
CREATE TABLE s.t (a int, b int); CREATE TABLE s.u (a int, b int); CREATE SEQUENCE s.q; CREATE VIEW s.v AS SELECT 1 AS a;
CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1';
GRANT SELECT, INSERT ON s.t TO r, x; GRANT SELECT (b) ON s.u TO r; GRANT SELECT ON s.u TO r WITH GRANT OPTION;
GRANT USAGE ON SEQUENCE s.q TO x; GRANT SELECT ON s.v TO r; GRANT EXECUTE ON FUNCTION s.f() TO x; GRANT ALL ON SCHEMA s TO r;
ALTER DEFAULT PRIVILEGES FOR ROLE z IN SCHEMA s GRANT SELECT, INSERT ON TABLES TO r, x;
"""

WANT = """
roles: [{name: r, comment: new}, {name: w}, {name: z}, {name: g}, {name: a}, {name: n, login: true}]
memberships: [{role: g, members: [{name: a}, {name: n}]}]
schemas: [{name: s, owner: z}, {name: s2, owner: z}]
grants:
  - {role: r, privileges: [SELECT, UPDATE], object: {type: table, schema: s, name: t}}
  - {role: n, privileges: [USAGE], object: {type: schema, name: s}}
default_privileges:
  - {owner: z, schema: s2, grant: [{role: n, privileges: [SELECT], on_type: table}]}
"""


def test_MOD_01_additive_never_takes_away(db: Database) -> None:
    db.sql(SURPLUS)
    before = db.snapshot()
    result = db.converge(WANT, reconciliation_mode="additive")
    assert not result.matching(r"\bREVOKE\b|\bDROP\b|OWNER TO|\bRESET\b|^ALTER ROLE|^COMMENT")
    after = db.snapshot()
    # Everything that was there still is: entries of every ACL, attributes, memberships, owners.
    for key, value in before.items():
        if value.endswith("}"):
            assert (
                set(re.findall(r"[^{},]+", value)) <= set(re.findall(r"[^{},]+", after[key])) or key == "relation s.t"
            ), key
        elif not value.endswith("NULL"):
            assert after[key] == value, key
    assert "r=arw/w" not in str(db.acl("s.t"))
    assert "r=arw/postgres" in (db.acl("s.t") or ())
    # And everything that was missing is there now.
    assert db.members("g") == {"x", "a", "n"}
    assert "n=U/w" in (db.acl("s", "schema") or ())
    assert db.defaults()[("z", "s2", "r")] == {"n=r/z"}
    assert db.attribute("n", "rolcanlogin") is True
    reasons = {item["reason"] for item in result.withheld}
    assert "mode" in reasons
    assert {item["role"] for item in result.held(reason="mode")} >= {"r", "x", "a"}


def test_MOD_01_what_the_server_is_sent(db: Database) -> None:
    """Every kind of surplus, and everything that is missing: the server's own log of it."""
    db.sql(surplus.SURPLUS.replace("@DB", db.name))
    more = """
        roles: [{name: fresh, login: true, comment: new, config: {work_mem: 1MB}, password: some-new-secret}]
        memberships: [{role: g, members: [{name: fresh, admin: true}, {name: a, inherit: true}]}]
        schemas: [{name: s3, owner: fresh}]
        grants: [{role: fresh, privileges: [SELECT], object: {type: table, schema: s, name: "*"}, with_grant_option: true}]
        default_privileges: [{owner: w, schema: s, grant: [{role: fresh, privileges: [SELECT], on_type: table}]}]
    """
    sections = yaml.safe_load(surplus.WANT)
    for name, items in yaml.safe_load(more).items():
        sections[name] = [*sections.get(name, []), *items]
    sections["memberships"] = [{"role": "g", "members": [{"name": "a"}, {"name": "fresh", "admin": True}]}]
    with db.statements() as sent:
        result = db.reconcile(sections, reconciliation_mode="additive", **surplus.KEY)
    assert not result.failed, result
    for statements in (sent, result.sql):
        text = "\n".join(statements)
        assert "GRANT SELECT" in text
        assert not re.search(r"\bDROP\b|OWNER TO|\bRESET\b|NOLOGIN|NOSUPERUSER", text)
        # The table of fingerprints is made with nobody's rights but its owner's; nothing of anybody's is taken.
        assert [line for line in statements if re.search(r"\bREVOKE\b", line) and "role_reconcile" not in line] == []
        altered = [line for line in statements if re.search(r"(ALTER|COMMENT ON) ROLE", line)]
        assert altered and all('"fresh"' in line for line in altered)
    # What is listed is all that the strictest mode would do beside it; a second run is silent and lists the same.
    again = db.silent(sections, reconciliation_mode="additive", **surplus.KEY)
    assert again.withheld == result.withheld
    assert {item["change"] for item in result.held(reason="mode")} == {
        "alter_role",
        "alter_schema_owner",
        "grant_default_privilege",
        "revoke",
        "revoke_default_privilege",
        "revoke_membership",
    }


def test_MOD_03_an_undeclared_role_is_not_touched_itself(db: Database) -> None:
    """It loses what it has on managed objects, and keeps all that is its own."""
    db.sql(
        "CREATE ROLE r; CREATE ROLE o; CREATE ROLE group_of_x; CREATE SCHEMA s AUTHORIZATION o; CREATE TABLE s.t (a int)",
        "CREATE ROLE x CREATEDB CONNECTION LIMIT 4 VALID UNTIL '2090-01-01 UTC' PASSWORD 'theirs'; GRANT group_of_x TO x",
        "COMMENT ON ROLE x IS 'theirs'; ALTER ROLE x SET work_mem = '1MB'; CREATE TABLE public.own (a int)",
        "ALTER TABLE public.own OWNER TO x; GRANT SELECT ON public.own TO r",
        "GRANT SELECT ON s.t TO x WITH GRANT OPTION; GRANT UPDATE (a) ON s.t TO x, r; GRANT USAGE ON SCHEMA s TO x",
        "ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO x, r",
    )

    def own() -> dict[str, str]:
        kept = ("role x", "setting", "membership group_of_x", "relation own", "relation public.own")
        return {key: value for key, value in db.snapshot().items() if key.startswith(kept)}

    before = own()
    assert len(before) == 4
    manifest = "roles: [{name: r}, {name: o}]\nschemas: [{name: s, owner: o}]"
    result = db.converge(manifest, reconciliation_mode="adopt", undeclared_grantees="revoke")
    assert own() == before
    assert result.withheld == []
    assert not result.matching("DROP|ALTER ROLE|COMMENT")
    assert {entry.partition("=")[0] for entry in db.acl("s.t") or ()} == {"postgres"}
    assert db.column_acl("s.t", "a") in (None, set())
    assert db.defaults() == {}


def test_MOD_03_adopt_revokes_and_never_drops(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE ROLE x LOGIN CREATEDB; CREATE SCHEMA s; CREATE TABLE s.t (a int); "
        "GRANT ALL ON s.t TO r, x"
    )
    manifest = "roles: [{name: r}]\nschemas: [{name: s}]\ngrants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}]"
    attributes = db.query("SELECT * FROM pg_roles WHERE rolname = 'x'")
    kept = db.converge(manifest, reconciliation_mode="adopt", undeclared_grantees="keep")
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "r=r/postgres", f"x={db.full}/postgres"}
    assert {item["role"] for item in kept.held(reason="undeclared_grantee")} == {"x"}
    db.converge(manifest, reconciliation_mode="adopt")
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "r=r/postgres"}
    assert db.query("SELECT * FROM pg_roles WHERE rolname = 'x'") == attributes


def test_MOD_04_a_missing_external_role(db: Database) -> None:
    db.sql("CREATE SCHEMA s")
    result = db.fails(
        "roles: [{name: e1, external: true}, {name: n}, {name: e2, external: true}]\nschemas: [{name: s}]",
        "object_missing",
        "e1",
        "e2",
    )
    assert len(result.problems) == 2
    assert db.roles() == set()


@UNCONNECTED
@pytest.mark.parametrize(
    "field",
    [
        "login: true",
        "createdb: false",
        "comment: x",
        "connection_limit: 3",
        "valid_until: infinity",
        "inherit: true",
        "superuser: true",
        "createrole: true",
        "replication: true",
        "bypassrls: true",
        "config: {work_mem: 1MB}",
        "password: some-secret",
        "password_from_env: SECRET",
    ],
)
def test_MOD_04_an_external_role_takes_no_attributes(db: Database, field: str) -> None:
    result = db.rejects(f"roles: [{{name: e, external: true, {field}}}]", f"roles[0].{field.split(':')[0]}")
    assert "external" in result.text


def test_MOD_04_an_external_role_in_every_place(db: Database) -> None:
    db.sql(
        "CREATE ROLE e LOGIN CREATEDB CONNECTION LIMIT 3; COMMENT ON ROLE e IS 'theirs'; CREATE ROLE m; "
        "CREATE TABLE public.t (a int)"
    )
    about_e = "SELECT r::text, shobj_description(oid, 'pg_authid') FROM pg_authid r WHERE rolname = 'e'"
    before = db.query(about_e)
    db.converge(
        """
        roles: [{name: e, external: true}, {name: g}, {name: m}]
        memberships: [{role: g, members: [{name: e}]}, {role: e, members: [{name: m}]}]
        default_owner: e
        schemas: [{name: s, owner: e}, {name: s2}]
        grants: [{role: e, privileges: [SELECT], object: {type: table, schema: public, name: t}}]
        default_privileges: [{owner: e, schema: s, grant: [{role: m, privileges: [SELECT], on_type: table}]}]
        """
    )
    assert db.query(about_e) == before
    assert {row[:2] for row in db.edges()} == {("g", "e"), ("e", "m")}
    assert db.defaults() == {("e", "s", "r"): {"m=r/e"}}
    db.sql("GRANT INSERT ON public.t TO e")
    db.converge(
        "roles: [{name: e, external: true}]\ngrants: [{role: e, privileges: [SELECT], object: {type: table, "
        "schema: public, name: t}}]"
    )
    assert db.acl("public.t") == {f"postgres={db.full}/postgres", "e=r/postgres"}


TARGET = "object: {type: table, schema: s, name: t}"


GRANTED = f"privileges: [SELECT], {TARGET}"
OF_PROFILE = "profiles: {p: {grants: [{privileges: [SELECT], object: {type: table, name: t}}]}}"

#: What contradicts itself, and the words of the message: both places, and what it is about.
CONTRADICTIONS: dict[str, tuple[str, list[str]]] = {
    "grant": (
        f"roles: [{{name: r}}]\ngrants: [{{role: r, {GRANTED}}}, {{role: r, {GRANTED}, ensure: absent}}]",
        ["grants[0]", "grants[1]", "SELECT"],
    ),
    "grant by ALL": (
        f"roles: [{{name: r}}]\ngrants: [{{role: r, {GRANTED}}}, {{role: r, privileges: [ALL], {TARGET}, ensure: absent}}]",
        ["grants[0]", "grants[1]", "SELECT"],
    ),
    "column": (
        f"roles: [{{name: r}}]\ngrants: [{{role: r, {GRANTED}, columns: [a, b]}}, "
        f"{{role: r, {GRANTED}, columns: [b, c], ensure: absent}}]",
        ["grants[0]", "grants[1]", "SELECT"],
    ),
    "grant and profile": (
        f"{OF_PROFILE}\nschemas: [{{name: s, profiles: [p]}}]\ngrants: [{{role: s-p, {GRANTED}, ensure: absent}}]",
        ["profiles.p", "grants[0]", "s-p"],
    ),
    "grant option of what is taken": (
        f"roles: [{{name: r}}]\ngrants: [{{role: r, {GRANTED}, ensure: absent, with_grant_option: true}}]",
        ["grants[0].with_grant_option"],
    ),
    "default privilege": (
        "roles: [{name: r}, {name: o}]\ndefault_privileges: [{owner: o, grant: [{role: r, privileges: [SELECT], on_type: table}, "
        "{role: r, privileges: [SELECT], on_type: table, ensure: absent}]}]",
        ["default_privileges[0].grant[0]", "default_privileges[0].grant[1]", "SELECT"],
    ),
    "global and in a schema": (
        "roles: [{name: r}, {name: o}]\ndefault_privileges: [{owner: o, schema: s, scope: {type: global}, grant: "
        "[{role: r, privileges: [SELECT], on_type: table}]}]",
        ["default_privileges[0].scope", "schema"],
    ),
    "edge admin": (
        "roles: [{name: g}, {name: m}]\nmemberships:\n"
        "  - {role: g, members: [{name: m, admin: true}]}\n  - {role: g, members: [{name: m, admin: false}]}",
        ["memberships[0]", "memberships[1]", "admin"],
    ),
    "edge inherit": (
        "roles: [{name: g}, {name: m}]\n"
        "memberships: [{role: g, members: [{name: m, inherit: true}, {name: m, inherit: false}]}]",
        ["memberships[0].members[0]", "memberships[0].members[1]", "inherit"],
    ),
    "edge from both sides": (
        "roles: [{name: g, members: [{name: m, set: true}]}, {name: m, member_of: [{name: g, set: false}]}]",
        ["roles[0].members[0]", "roles[1].member_of[0]", "set"],
    ),
    "circle": (
        "roles: [{name: g, member_of: [m]}, {name: m}]\nmemberships: [{role: g, members: [{name: m}]}]",
        ["g", "m", "cycle"],
    ),
    "member of itself": ("roles: [{name: g, members: [g]}]", ["roles[0].members[0]", "itself"]),
    "owner": (
        "roles: [{name: z}, {name: y}]\nschemas: [{name: s, owner: z}, {name: s, owner: y}]",
        ["schemas[0]", "schemas[1]"],
    ),
    "role": ("roles: [{name: r, login: true}, {name: r, login: false}]", ["roles[0]", "roles[1]", "'r'"]),
    "declared and generated": (
        f"{OF_PROFILE}\nschemas: [{{name: s, profiles: [p]}}]\nroles: [{{name: s-p}}]",
        ["roles[0]", "schemas[0].profiles[0]", "s-p"],
    ),
    "declared and assumed": ("roles: [{name: r}]\nassume_roles: [r]", ["roles[0]", "assume_roles"]),
    "declared and ignored": ("roles: [{name: r}]\nscope: {ignore_roles: ['r*']}", ["roles[0]", "scope.ignore_roles"]),
    "external with attributes": (
        "roles: [{name: r, external: true, superuser: false, password: x}]",
        ["roles[0].superuser", "roles[0].password"],
    ),
    "two passwords": (
        "roles: [{name: r, login: true, password: aaaaaaaa}]\npasswords: {r: bbbbbbbb}",
        ["passwords.r", "roles[0].password"],
    ),
    "password of a role without login": ("roles: [{name: r}]\npasswords: {r: bbbbbbbb}", ["passwords.r", "login: true"]),
    "two names of one option": (
        "roles: [{name: r, valid_until: infinity, password_valid_until: '2030-01-01T00:00:00Z'}]",
        ["roles[0].password_valid_until", "valid_until"],
    ),
    "two names of one setting": ("roles: [{name: r, config: {work_mem: 4MB, WORK_MEM: 8MB}}]", ["WORK_MEM", "work_mem"]),
    "undeclared": (
        f"roles: [{{name: reader}}]\ngrants: [{{role: raeder, privileges: [SELECT], {TARGET}}}]",
        ["raeder", "reader"],
    ),
    "undeclared everywhere": (
        "default_owner: a\nschemas: [{name: s, owner: b}]\nmemberships: [{role: c, members: [{name: d}]}]\n"
        "default_privileges: [{owner: e, grant: [{role: f, privileges: [SELECT], on_type: table}]}]",
        ["default_owner", "schemas[0].owner", "memberships[0].role", "memberships[0].members[0].name",
         "default_privileges[0].owner", "default_privileges[0].grant[0].role"],
    ),
    "profile": (
        "profiles: {editor: {}}\nschemas: [{name: s, profiles: [edditor]}]",
        ["edditor", "editor", "schemas[0].profiles[0]"],
    ),
    "no privileges": (f"roles: [{{name: r}}]\ngrants: [{{role: r, privileges: [], {TARGET}}}]", ["grants[0].privileges"]),
    "privilege of another type": (
        f"roles: [{{name: r}}]\ngrants: [{{role: r, privileges: [EXECUTE], {TARGET}}}]",
        ["grants[0].privileges[0]", "EXECUTE", "table"],
    ),
    "unknown key": ("roles: [{name: r, logn: true}]", ["roles[0].logn", "login"]),
    "unknown section": ("role: [{name: r}]", ["role"]),
}  # fmt: skip


@UNCONNECTED
@pytest.mark.parametrize(("manifest", "words"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_MOD_06_contradictions(db: Database, manifest: str, words: list[str]) -> None:
    db.rejects(manifest, *words)


def test_MOD_06_nothing_is_sent(db: Database) -> None:
    # With a server that would answer.
    with db.statements() as sent:
        for manifest, _words in CONTRADICTIONS.values():
            assert db.reconcile(manifest).error_code == "manifest_invalid"
    assert sent == []
    with db.statements() as sent:
        db.reconcile("roles: [{name: r}]", check=True)
    assert sent, "the test cannot see what is sent"


@pytest.mark.parametrize("second", ["role: r", "role: r, with_grant_option: true"])
def test_MOD_06_the_same_grant_with_and_without_the_option_is_with_it(db: Database, second: str) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    result = db.converge(
        f"roles: [{{name: r}}]\ngrants: [{{role: r, {GRANTED}, with_grant_option: true}}, {{{second}, {GRANTED}}}]"
    )
    assert len(result.matching("^GRANT")) == 1
    assert "r=r*/postgres" in (db.acl("s.t") or ())


@UNCONNECTED
def test_MOD_06_all_problems_at_once(db: Database) -> None:
    result = db.rejects(
        """
        roles: [{name: none}, {name: r, nope: 1}]
        grants:
          - {role: r, privileges: [EAT], object: {type: table, schema: s, name: t}}
          - {role: r, privileges: [SELECT], object: {type: tabel, schema: s, name: t}}
          - {role: q, privileges: [SELECT], object: {type: table, schema: s, name: t}}
        """,
        "roles[0].name",
        "roles[1].nope",
        "grants[0].privileges[0]",
        "grants[1].object.type",
        "grants[2].role",
    )
    assert all(problem["path"] and problem["message"] for problem in result.problems)


def test_MOD_06_the_same_twice_is_harmless(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m")
    stanza = "{role: g, members: [{name: m}]}"
    assert len(db.converge(f"roles: [{{name: g}}, {{name: m}}]\nmemberships: [{stanza}, {stanza}]").sql) == 1


def test_MOD_a_named_rule_beats_a_wildcard(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE TABLE s.u (a int)")
    every = '{role: r, privileges: [SELECT, INSERT], object: {type: table, schema: s, name: "*"}%s}'
    named = "{role: r, privileges: [INSERT], object: {type: table, schema: s, name: t}%s}"
    head = "roles: [{name: r}]\nschemas: [{name: s}]\n"
    db.converge(head + f"grants: [{every % ''}, {named % ', ensure: absent'}]")
    assert "r=r/postgres" in (db.acl("s.t") or ())
    assert "r=ar/postgres" in (db.acl("s.u") or ())
    db.converge(head + f"grants: [{every % ', ensure: absent'}, {named % ''}]")
    assert "r=a/postgres" in (db.acl("s.t") or ())
    assert db.acl("s.u") == {f"postgres={db.full}/postgres"}


def test_MOD_profiles_become_roles(db: Database) -> None:
    db.sql("CREATE SCHEMA a; CREATE TABLE a.t (x int); CREATE SCHEMA b; CREATE TABLE b.t (x int); CREATE SEQUENCE b.q")
    db.converge(
        """
        default_owner: o
        roles: [{name: o}]
        profiles:
          ed:
            login: true
            grants:
              - {privileges: [USAGE], object: {type: schema}}
              - {privileges: [SELECT, INSERT], object: {type: table, name: "*"}}
              - {privileges: [USAGE], object: {type: sequence, name: "*"}}
            default_privileges: [{privileges: [SELECT], on_type: table}]
        role_pattern: "{profile}_{schema}"
        schemas: [{name: a, profiles: [ed]}, {name: b, profiles: [ed], role_pattern: "x {profile}/{schema}"}]
        """
    )
    assert db.roles() == {"o", "ed_a", "x ed/b"}
    assert "ed_a=U/postgres" in (db.acl("a", "schema") or ())
    assert "ed_a=ar/postgres" in (db.acl("a.t") or ())
    assert '"x ed/b"=U/postgres' in (db.acl("b.q") or ())
    assert db.defaults() == {("o", "a", "r"): {"ed_a=r/o"}, ("o", "b", "r"): {'"x ed/b"=r/o'}}
    assert db.attribute("ed_a", "rolcanlogin") is True


# Check mode and reports

CHANGES = {
    "create role": ("", "roles: [{name: n}]"),
    "alter role": ("CREATE ROLE r CREATEDB", "roles: [{name: r}]"),
    "comment": ("CREATE ROLE r", "roles: [{name: r, comment: x}]"),
    "create schema": ("CREATE ROLE z", "roles: [{name: z}]\nschemas: [{name: s, owner: z}]"),
    "schema owner": ("CREATE ROLE z; CREATE SCHEMA s", "roles: [{name: z}]\nschemas: [{name: s, owner: z}]"),
    "add member": ("CREATE ROLE g; CREATE ROLE m", "roles: [{name: g}, {name: m}]\nmemberships: [{role: g, members: [{name: m}]}]"),
    "remove member": ("CREATE ROLE g; CREATE ROLE m; GRANT g TO m", "roles: [{name: g}, {name: m}]"),
    "grant": ("CREATE SCHEMA s", "roles: [{name: r}]\nschemas: [{name: s}]\ngrants: [{role: r, privileges: [USAGE], object: {type: schema, name: s}}]"),
    "revoke": ("CREATE SCHEMA s; CREATE ROLE r; GRANT USAGE ON SCHEMA s TO r", "roles: [{name: r}]\nschemas: [{name: s}]"),
    "setting": ("CREATE ROLE r; ALTER ROLE r SET jit = 'off'", "roles: [{name: r, config: {work_mem: 1MB}}]"),
    "password": ("CREATE ROLE r LOGIN", "roles: [{name: r, password: some-secret}]"),
    "raise an option": (
        "CREATE ROLE g; CREATE ROLE m; GRANT g TO m",
        "roles: [{name: g, members: [{name: m, admin: true}]}, {name: m}]",
    ),
    "lower an option": ("CREATE ROLE g; CREATE ROLE m; GRANT g TO m WITH ADMIN OPTION", "roles: [{name: g, members: [m]}, {name: m}]"),
    "column": (
        "CREATE SCHEMA s; CREATE TABLE s.t (a int)",
        "roles: [{name: r}]\n"
        "grants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}, columns: [a]}]",
    ),
    "grant option": (
        "CREATE SCHEMA s; CREATE ROLE r; GRANT USAGE ON SCHEMA s TO r WITH GRANT OPTION",
        "roles: [{name: r}]\ngrants: [{role: r, privileges: [USAGE], object: {type: schema, name: s}}]",
    ),
    "absent": (
        "CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO PUBLIC",
        "grants: [{role: PUBLIC, privileges: [USAGE], object: {type: schema, name: s}, ensure: absent}]",
    ),
    "revoke a default": (
        "CREATE ROLE r; CREATE ROLE o; CREATE SCHEMA s AUTHORIZATION o; "
        "ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO r",
        "roles: [{name: r}, {name: o}]\nschemas: [{name: s, owner: o}]",
    ),
    "default privilege": (
        "CREATE SCHEMA s",
        "roles: [{name: r}]\nschemas: [{name: s}]\ndefault_privileges: [{owner: r, schema: s, grant: [{role: r, "
        "privileges: [SELECT], on_type: table}]}]",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "process"), [*((change, False) for change in CHANGES), ("grant", True)])
def test_CHK_01_check_mode_says_what_the_run_says(db: Database, change: str, process: bool) -> None:
    setup, manifest = CHANGES[change]
    if setup:
        db.sql(setup)
    for expected in (True, False):
        predicted = db.reconcile(manifest, check=True, process=process, **surplus.KEY)
        result = db.reconcile(manifest, process=process, **surplus.KEY)
        assert predicted.changed is result.changed is expected
        assert predicted.sql == result.sql


def test_CHK_04_diff_shows_what_changes_and_nothing_else(db: Database) -> None:
    db.sql("CREATE ROLE r CONNECTION LIMIT 3; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE TABLE s.same (a int)")
    db.sql("CREATE ROLE quiet; GRANT SELECT ON s.same TO quiet; GRANT INSERT ON s.t TO r")
    manifest = """
        roles: [{name: r, comment: a comment}, {name: quiet}]
        schemas: [{name: s}]
        grants:
          - {role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}
          - {role: quiet, privileges: [SELECT], object: {type: table, schema: s, name: same}}
    """
    result = db.reconcile(manifest, check=True, diff=True)
    (diff,) = result.diff
    assert diff["before_header"] == f"{db.name} (current)"
    assert diff["after_header"] == f"{db.name} (planned)"
    assert "INSERT" in diff["before"]
    assert "INSERT" not in diff["after"]
    assert "SELECT" in diff["after"]
    assert "a comment" in diff["after"]
    assert "quiet" not in diff["before"] + diff["after"]
    assert "same" not in diff["before"] + diff["after"]
    assert db.reconcile(manifest, diff=True).diff == result.diff
    for check in (True, False):
        quiet = db.reconcile(manifest, check=check, diff=True)
        assert all(item["before"] == item["after"] for item in quiet.diff)
        assert not quiet.changed


def test_CHK_04_what_a_diff_says_of_secrets(db: Database) -> None:
    """A password is only said to change; settings and comments are no place for secrets, and are shown."""
    old, new = "the-0ld-secret", "the-n3w-secret"
    head = "roles: [{name: r, comment: Order service, config: {app.tenant: token-like-42}, login: true, password: %s}]"
    db.converge(head % old, **surplus.KEY)
    result = db.reconcile(head % new, check=True, diff=True, **surplus.KEY)
    (diff,) = result.diff
    assert (diff["before"], diff["after"]) == (
        "roles:\n  - {name: r}\n",
        "roles:\n  - {name: r, password: (changed)}\n",
    )
    assert result.sql == ["ALTER ROLE \"r\" PASSWORD '********'"]
    applied = db.reconcile(head % new, diff=True, **surplus.KEY)
    assert (applied.sql, applied.diff) == (result.sql, result.diff)
    quiet = db.reconcile(head % new, diff=True, **surplus.KEY)
    assert quiet.changed is False and quiet.diff == [] and quiet.sql == []
    changed = db.reconcile(
        head.replace("42", "43").replace("Order", "Orders") % new, check=True, diff=True, **surplus.KEY
    )
    (diff,) = changed.diff
    assert "token-like-42" in diff["before"] and "token-like-43" in diff["after"] and "Orders service" in diff["after"]
    for found in (result, applied, quiet, changed):
        assert old not in str(found) and new not in str(found)
    # A password in the wrong place is refused, and not shown there either.
    refused = db.rejects(f"roles: [{{name: r, comment: {new}, password: {new}}}]", "roles[0].comment", **surplus.KEY)
    assert new not in str(refused)


def test_CHK_04_the_invocation_shows_no_secret(db: Database) -> None:
    result = db.reconcile("roles: [{name: r}]", check=True, login_password="s3cret-value")
    assert "s3cret-value" not in str(result)


GRANT_ON = "grants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}]"


def test_CHK_05_a_grant_that_would_do_nothing_is_found_before(db: Database) -> None:
    """GRANT by a role that may read but not grant is only a WARNING (01007) for PostgreSQL: it is not even sent."""
    db.sql("CREATE ROLE ex LOGIN; CREATE ROLE r; CREATE ROLE o; CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    db.sql("ALTER TABLE s.t OWNER TO o; GRANT SELECT ON s.t TO ex; GRANT USAGE ON SCHEMA s TO ex")
    options = {"login_user": "ex", "reconciliation_mode": "additive", "assume_roles": ["r"]}
    with db.statements() as sent:
        result = db.fails(GRANT_ON, "insufficient_privilege", "s.t", **options)
    assert not result.get("sqlstate")
    assert not [line for line in sent if line.startswith(("GRANT", 'SET LOCAL ROLE "'))]


@pytest.mark.parametrize(
    ("first", "code", "sqlstate"),
    [
        # Somebody takes the executor's grant option away after the plan was made; it can still read the table.
        ("REVOKE GRANT OPTION FOR SELECT ON s.t FROM ex CASCADE", "insufficient_privilege", "01007"),
        ("NULL", None, None),
    ],
)
def test_CHK_05_a_warning_of_the_server_is_a_failure(db: Database, first: str, code: Any, sqlstate: Any) -> None:
    db.sql(
        "CREATE ROLE ex LOGIN; CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); GRANT USAGE ON SCHEMA s TO ex"
    )
    db.sql("GRANT SELECT ON s.t TO ex WITH GRANT OPTION", f"GRANT CREATE ON DATABASE {db.name} TO ex")
    db.sql(
        f"CREATE FUNCTION public.race() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $f$BEGIN {first}; END$f$",
        "CREATE EVENT TRIGGER race ON ddl_command_end WHEN TAG IN ('CREATE SCHEMA') EXECUTE FUNCTION public.race()",
    )
    manifest = f"schemas: [{{name: made}}]\n{GRANT_ON}"
    options = {"login_user": "ex", "reconciliation_mode": "additive", "assume_roles": ["r"]}
    if code is None:
        db.converge(manifest, **options)
        return
    result = db.fails(manifest, code, "so the plan was rolled back", check_too=False, **options)
    assert (result.sqlstate, result.statement) == (sqlstate, 'GRANT SELECT ON TABLE "s"."t" TO "r"')
    assert result.plan == ['CREATE SCHEMA "made"', result.statement]
    assert "grant option" in result.hint


def test_CHK_results_are_in_a_stable_order(db: Database) -> None:
    db.sql(SURPLUS)
    runs = [db.reconcile(WANT, check=True, diff=True, process=process) for process in (False, True, True)]
    for key in ("sql", "withheld", "summary", "plan_digest", "diff", "suppressed_revokes"):
        assert runs[0][key] == runs[1][key] == runs[2][key], key


@pytest.mark.versions(min=18)
def test_CHK_the_digest_does_not_depend_on_the_order_of_the_catalog(db: Database) -> None:
    """An approved plan is the same plan after other tables were made, and after the catalog was rewritten."""
    db.sql("CREATE ROLE r; CREATE ROLE x; CREATE ROLE o")
    privileges = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
    for number, privilege in enumerate(privileges):
        db.sql(f"CREATE SCHEMA s{number}", f"CREATE TABLE s{number}.t (a int)", f"CREATE TABLE s0.t{number} (a int)")
        db.sql(
            f"GRANT {privilege} ON s0.t{number} TO x",
            f"GRANT {'USAGE' if number % 2 else 'CREATE'} ON SCHEMA s{number} TO x",
        )
    rules = [
        {"role": "r", "privileges": [privilege], "object": {"type": "table", "schema": "s0", "name": f"t{number}"}}
        for number, privilege in enumerate(privileges)
    ]
    manifest = {"roles": [{"name": "r"}], "schemas": [{"name": f"s{number}"} for number in range(7)], "grants": rules}
    before = db.reconcile(manifest, check=True, undeclared_grantees="revoke")
    assert len(before.sql) > 15
    # The rows of schemas move, and the aggregate that groups relations gets another size.
    db.sql("GRANT CREATE ON SCHEMA s3 TO o; REVOKE CREATE ON SCHEMA s3 FROM o; CREATE SCHEMA elsewhere")
    db.sql("DO $$BEGIN FOR i IN 1 .. 300 LOOP EXECUTE format('CREATE TABLE s0.u%s (a int)', i); END LOOP; END$$")
    db.sql("VACUUM FULL pg_class", "VACUUM FULL pg_namespace", "ANALYZE pg_class")
    after = db.reconcile(manifest, check=True, undeclared_grantees="revoke")
    assert after.sql == before.sql
    assert after.plan_digest == before.plan_digest


def test_CHK_the_digest_follows_the_plan_and_the_options(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); GRANT SELECT ON s.t TO r")
    digests = {
        db.reconcile(manifest, check=True, **options).plan_digest
        for manifest, options in (
            ("roles: [{name: r}]", {}),
            ("roles: [{name: r}, {name: n}]", {}),
            ("roles: [{name: r}, {name: n}]", {"reconciliation_mode": "adopt"}),
            ("roles: [{name: r}, {name: n}]", {"reconciliation_mode": "adopt", "undeclared_grantees": "keep"}),
        )
    }
    assert len(digests) == 4


def test_CHK_facts(db: Database) -> None:
    result = db.reconcile("roles: [{name: r}]")
    facts = result.ansible_facts["pg_role_reconcile"]
    assert set(facts) == {
        "changed",
        "database",
        "sql",
        "suppressed_revokes",
        "suppressed_revoke_count",
        "summary",
        "plan_digest",
    }
    assert facts["database"] == db.name
    assert "ansible_facts" not in db.reconcile("roles: [{name: r}]", facts=False)


def test_CHK_the_server_is_described(db: Database) -> None:
    server = db.reconcile("roles: [{name: r}]", check=True).server
    assert server["database"] == db.name
    assert server["in_recovery"] is False
    assert str(server["version"]).startswith(str(db.version))
    assert str(server["system_identifier"]) == str(db.value("SELECT system_identifier FROM pg_control_system()"))


def test_CHK_warnings_say_where(db: Database) -> None:
    db.sql("CREATE ROLE r LOGIN")
    (warning,) = db.reconcile("roles: [{name: r}]", check=True).warnings
    assert warning.startswith(f"{db.name}@{db.server.socket_directory}:{db.server.port}:")
