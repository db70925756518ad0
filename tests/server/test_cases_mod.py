# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases MOD and CHK: modes, manifest rules, check mode, diff and reporting."""

from __future__ import annotations

import re

import pytest
from harness import Database

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


@pytest.mark.parametrize(
    "field",
    ["login: true", "createdb: false", "comment: x", "connection_limit: 3", "valid_until: infinity", "inherit: true"],
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
        schemas: [{name: s, owner: e}]
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
        predicted = db.reconcile(manifest, check=True, process=process)
        result = db.reconcile(manifest, process=process)
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


def test_CHK_04_passwords_come_later_and_are_not_shown(db: Database) -> None:
    result = db.fails("roles: [{name: r, password: s3cret-value, nope: 1}]", ("not_supported", "manifest_invalid"))
    assert "s3cret-value" not in str(result)


def test_CHK_04_the_invocation_shows_no_secret(db: Database) -> None:
    result = db.reconcile("roles: [{name: r}]", check=True, login_password="s3cret-value")
    assert "s3cret-value" not in str(result)


def test_CHK_05_a_warning_of_the_server_is_a_result(db: Database) -> None:
    """GRANT by a role that may read but not grant is only a WARNING (01007) for PostgreSQL: here it is a failure."""
    db.sql("CREATE ROLE ex LOGIN; CREATE ROLE r; CREATE ROLE o; CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    db.sql("ALTER TABLE s.t OWNER TO o; GRANT SELECT ON s.t TO ex; GRANT USAGE ON SCHEMA s TO ex")
    before = db.snapshot()
    result = db.reconcile(
        "assume_roles: [r]\ngrants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}]",
        login_user="ex",
        reconciliation_mode="additive",
    )
    assert result.failed
    assert result.error_code in ("insufficient_privilege", "server_error", "not_converged")
    assert db.snapshot() == before


def test_CHK_results_are_in_a_stable_order(db: Database) -> None:
    db.sql(SURPLUS)
    runs = [db.reconcile(WANT, check=True, diff=True, process=process) for process in (False, True, True)]
    for key in ("sql", "withheld", "summary", "plan_digest", "diff", "suppressed_revokes"):
        assert runs[0][key] == runs[1][key] == runs[2][key], key


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
