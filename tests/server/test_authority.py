# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an executor without superuser may do, on each version: refused before the first statement, with what helps."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest
from harness import Database, Result

#: The executor is adm, unless a case says otherwise.
ADM = "CREATE ROLE adm LOGIN CREATEROLE;"
PLAIN = "CREATE ROLE adm LOGIN;"
BELOW = '"adm" WITH ADMIN OPTION'
ABOVE = '"adm" WITH ADMIN TRUE, INHERIT FALSE, SET FALSE'


class Case(NamedTuple):
    """``before`` and ``since``: the messages' ends before PostgreSQL 16 and from 16 on; none where it is allowed.

    ``helps``: what the hints say is run as a superuser, and then it works.
    """

    name: str
    setup: str
    manifest: str
    before: tuple[str, ...] = ()
    since: tuple[str, ...] = ()
    helps: bool = True


ONLY_SUPERUSER = "only a superuser may"
SCHEMA = "roles: [{name: o, external: true}]\n"
CASES = [
    Case(
        "creating without CREATEROLE",
        PLAIN,
        "roles: [{name: n, comment: x}]",
        ("adm may not create role n: it has no CREATEROLE",),
        ("adm may not create role n: it has no CREATEROLE",),
    ),
    Case("creating with CREATEROLE", ADM, "roles: [{name: n, login: true, createrole: true, comment: x}]"),
    Case(
        "creating with CREATEDB",
        ADM,
        "roles: [{name: n, createdb: true}]",
        (),
        ("adm may not change CREATEDB of role n, because it lacks CREATEDB itself",),
    ),
    Case("creating with CREATEDB that one has", "CREATE ROLE adm LOGIN CREATEROLE CREATEDB;",
         "roles: [{name: n, createdb: true}]"),
    Case(
        "creating for replication",
        ADM,
        "roles: [{name: n, replication: true, bypassrls: true}]",
        ("only a superuser may change REPLICATION of role n, and adm is none",
         "only a superuser may change BYPASSRLS of role n, and adm is none"),
        ("adm may not change REPLICATION of role n, because it lacks REPLICATION itself",
         "adm may not change BYPASSRLS of role n, because it lacks BYPASSRLS itself"),
    ),
    Case(
        "creating a superuser",
        PLAIN,
        "roles: [{name: n, superuser: true}]",
        ("only a superuser may change SUPERUSER of role n, and adm is none",),
        ("only a superuser may change SUPERUSER of role n, and adm is none",),
        helps=False,
    ),
    Case(
        "altering somebody else's role",
        ADM + "CREATE ROLE m; CREATE ROLE n",
        "roles: [{name: m, connection_limit: 3, comment: x}, {name: n, login: true}]",
        (),
        ("adm may not alter role m: it has no ADMIN OPTION on it",
         "adm may not alter role n: it has no ADMIN OPTION on it"),
    ),
    Case(
        "altering with ADMIN OPTION but without CREATEROLE",
        PLAIN + "CREATE ROLE m; GRANT m TO adm WITH ADMIN OPTION",
        "roles: [{name: m, connection_limit: 3}]",
        ("adm may not alter role m: it has no CREATEROLE",),
        ("adm may not alter role m: it has no CREATEROLE",),
    ),
    Case(
        "altering through a group that one does not inherit",
        ADM + "CREATE ROLE m; CREATE ROLE h; GRANT m TO h WITH ADMIN OPTION; ALTER ROLE adm NOINHERIT; GRANT h TO adm",
        "roles: [{name: m, connection_limit: 3, comment: x}, {name: h, external: true}]\n"
        "memberships: [{role: m, members: [{name: h, admin: true}]}]",
    ),
    Case(
        "altering a role for replication",
        ADM + "CREATE ROLE m REPLICATION",
        "roles: [{name: m, replication: true, connection_limit: 3}]",
        ("adm may not alter role m, which is for replication: only a superuser may",),
        ("adm may not alter role m: it has no ADMIN OPTION on it",),
    ),
    Case(
        "altering a superuser",
        ADM + "CREATE ROLE m SUPERUSER",
        "roles: [{name: m, superuser: true, connection_limit: 3}]",
        ("adm may not alter role m, which is a superuser: only a superuser may",),
        ("adm may not alter role m, which is a superuser: only a superuser may",),
        helps=False,
    ),
    Case(
        "taking CREATEDB from one's own role",
        ADM + "SET ROLE adm; CREATE ROLE m; RESET ROLE; ALTER ROLE m CREATEDB",
        "roles: [{name: m}]",
        (),
        ("adm may not change CREATEDB of role m, because it lacks CREATEDB itself",),
    ),
    Case(
        "commenting on a superuser",
        ADM + "CREATE ROLE m SUPERUSER",
        "roles: [{name: m, superuser: true, comment: x}]",
        ("adm may not comment on role m, which is a superuser: only a superuser may",),
        ("adm may not comment on role m, which is a superuser: only a superuser may",),
        helps=False,
    ),
    Case("commenting on one's own role", ADM + "SET ROLE adm; CREATE ROLE m; RESET ROLE",
         "roles: [{name: m, comment: x}]"),
    Case(
        "members of somebody else's group",
        ADM + "CREATE ROLE g; CREATE ROLE m",
        "roles: [{name: g}, {name: m}]\nmemberships: [{role: g, members: [{name: m}]}]",
        (),
        ("adm may not grant membership in g: it has no ADMIN OPTION on it",),
    ),
    Case(
        "members without any right",
        PLAIN + "CREATE ROLE g; CREATE ROLE m",
        "roles: [{name: g}, {name: m}]\nmemberships: [{role: g, members: [{name: m}]}]",
        ("adm may not grant membership in g: it has neither CREATEROLE nor ADMIN OPTION on it",),
        ("adm may not grant membership in g: it has no ADMIN OPTION on it",),
    ),
    Case(
        "members with ADMIN OPTION alone",
        PLAIN + "CREATE ROLE g; CREATE ROLE m; GRANT g TO adm WITH ADMIN OPTION",
        "roles: [{name: g, external: true}, {name: m}]\nmemberships: [{role: g, members: [{name: m}]}]",
    ),
    Case(
        "ADMIN OPTION through a group that one does not inherit",
        "CREATE ROLE adm LOGIN NOINHERIT; CREATE ROLE g; CREATE ROLE h; CREATE ROLE m; GRANT h TO adm;"
        "GRANT g TO h WITH ADMIN OPTION",
        "roles: [{name: g, external: true}, {name: m}]\nmemberships: [{role: g, members: [{name: m}]}]",
        (),
        ("adm has ADMIN OPTION on g only through roles that it does not inherit",),
    ),
    Case(
        "a predefined group",
        ADM + "CREATE ROLE m",
        "roles: [{name: m}]\nmemberships: [{role: pg_monitor, members: [{name: m}]}]",
        (),
        ("adm may not grant membership in pg_monitor: it has no ADMIN OPTION on it",),
    ),
    Case(
        "a group that is a superuser",
        ADM + "CREATE ROLE g SUPERUSER; CREATE ROLE m; GRANT g TO adm WITH ADMIN OPTION",
        "roles: [{name: g, external: true}, {name: m}]\nmemberships: [{role: g, members: [{name: m}]}]",
        ("adm may not grant membership in g, which is a superuser: only a superuser may",),
        ("adm may not grant membership in g, which is a superuser: only a superuser may",),
        helps=False,
    ),
    Case(
        "a membership that the bootstrap superuser granted",
        ADM + "SET ROLE adm; CREATE ROLE g; CREATE ROLE m; RESET ROLE; GRANT g TO m",
        "roles: [{name: g}, {name: m}]",
        (),
        ("the membership of m in g has to be revoked as granted by postgres, whose privileges adm does not have",),
        helps=False,
    ),
    Case(
        "a membership that somebody else granted",
        ADM + "CREATE ROLE b; SET ROLE adm; CREATE ROLE g; CREATE ROLE m; RESET ROLE; GRANT g TO b WITH ADMIN OPTION;"
        "SET ROLE b; GRANT g TO m; RESET ROLE",
        "roles: [{name: g}, {name: m}, {name: b}]\nmemberships: [{role: g, members: [{name: b, admin: true}]}]",
        (),
        ("the membership of m in g has to be revoked as granted by b, whose privileges adm does not have",),
    ),
    Case(
        "a schema without CREATE on the database",
        PLAIN,
        "schemas: [{name: s}]",
        ("adm may not create schema s: it has no CREATE on database @",),
        ("adm may not create schema s: it has no CREATE on database @",),
    ),
    Case(
        "a schema for a role that one is no member of",
        PLAIN + "CREATE ROLE o; GRANT CREATE ON DATABASE @ TO adm",
        SCHEMA + "schemas: [{name: s, owner: o}]",
        ("adm may not create schema s for o: it may not become o",),
        ("adm may not create schema s for o: it may not become o",),
    ),
    Case(
        "a schema for somebody else, without anything",
        PLAIN + "CREATE ROLE o",
        SCHEMA + "schemas: [{name: s, owner: o}]",
        ("adm may not create schema s for o: it has no CREATE on database @ and it may not become o",),
        ("adm may not create schema s for o: it has no CREATE on database @ and it may not become o",),
    ),
    Case(
        "handing over somebody else's schema",
        PLAIN + "CREATE ROLE o; CREATE ROLE p; CREATE SCHEMA s AUTHORIZATION p",
        SCHEMA + "schemas: [{name: s, owner: o}]",
        ("adm may not make o the owner of schema s: it has no CREATE on database @ and it does not have the privileges "
         "of p, who owns it and it may not become o",),
        ("adm may not make o the owner of schema s: it has no CREATE on database @ and it does not have the privileges "
         "of p, who owns it and it may not become o",),
    ),
    Case(
        "default privileges of somebody else",
        PLAIN + "CREATE ROLE o; CREATE ROLE r",
        "roles: [{name: o, external: true}, {name: r, external: true}]\n"
        "default_privileges: [{owner: o, grant: [{role: r, privileges: [SELECT], on_type: table}]}]",
        ("adm may not change default privileges of o, whose privileges it does not have",),
        ("adm may not change default privileges of o, whose privileges it does not have",),
    ),
    Case(
        "odd names",
        ADM + 'CREATE ROLE "a ""b"""; CREATE ROLE "m.M"',
        "roles: [{name: 'a \"b\"'}, {name: 'm.M'}]\nmemberships: [{role: 'a \"b\"', members: [{name: 'm.M'}]}]",
        (),
        ('adm may not grant membership in a "b": it has no ADMIN OPTION on it',),
    ),
]  # fmt: skip


def hints_run(db: Database, result: Result) -> None:
    """Do what the hints say, as somebody who may."""
    for problem in result.problems:
        for hint in re.split(r"; or .*$|; (?=[A-Z]+ )", problem["hint"]):
            assert hint is not None
            if hint:
                db.sql(hint)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_what_an_executor_may_do(db: Database, case: Case) -> None:
    manifest = case.manifest.replace("@", db.name)
    db.sql(*case.setup.replace("@", db.name).split(";"))
    expected = [text.replace("@", db.name) for text in (case.since if db.version >= 16 else case.before)]
    if not expected:
        db.converge(manifest, login_user="adm")
        return
    result = db.fails(manifest, "insufficient_privilege", *expected, login_user="adm")
    assert not result.get("sqlstate"), "found before the first statement"
    assert [problem["message"] for problem in result.problems] == expected
    assert result.plan
    if case.helps and not any(problem["hint"].startswith("Run as a superuser") for problem in result.problems):
        hints_run(db, result)
        db.converge(manifest, login_user="adm")


def test_all_problems_at_once(db: Database) -> None:
    db.sql(PLAIN, "CREATE ROLE g; CREATE ROLE m; CREATE ROLE o; CREATE SCHEMA t AUTHORIZATION o; CREATE TABLE t.t ()")
    result = db.fails(
        """
        roles: [{name: g}, {name: m, connection_limit: 3}, {name: o}, {name: n, createdb: true}]
        memberships: [{role: g, members: [{name: m}, {name: n}]}]
        schemas: [{name: s, owner: o}, {name: t}]
        default_privileges: [{owner: o, schema: t, grant: [{role: m, privileges: [SELECT], on_type: table}]}]
        grants: [{role: m, privileges: [SELECT], object: {type: table, schema: t, name: t}}]
        """,
        "insufficient_privilege",
        login_user="adm",
    )
    said = {(problem["role"], problem["object"]) for problem in result.problems}
    assert said >= {
        ("m", "role m"),
        ("n", "role n"),
        ("m", "role g"),
        ("n", "role g"),
        ("o", "schema s"),
        ("o", "default privileges of o"),
        ("m", "table t.t"),
    }
    assert {problem["path"] for problem in result.problems} >= {"roles[1]", "roles[3]", "schemas[0]"}


def test_the_owner_creates_and_hands_over_schemas_and_changes_its_defaults(db: Database) -> None:
    """The executor may become the owner, and has none of its privileges by itself."""
    db.sql(
        "CREATE ROLE adm LOGIN NOINHERIT; CREATE ROLE o; CREATE ROLE p; CREATE ROLE r; GRANT o TO adm; GRANT p TO o",
        f"GRANT CREATE ON DATABASE {db.name} TO o; CREATE SCHEMA old AUTHORIZATION o",
    )
    result = db.converge(
        """
        roles: [{name: o, external: true}, {name: p, external: true}, {name: r, external: true}]
        schemas: [{name: s, owner: o}, {name: old, owner: p}]
        default_privileges: [{owner: o, schema: s, grant: [{role: r, privileges: [SELECT], on_type: table}]}]
        """,
        login_user="adm",
    )
    own = ['ALTER DEFAULT PRIVILEGES FOR ROLE "o" IN SCHEMA "s" GRANT SELECT ON TABLES TO "r"']
    if db.version >= 16:
        own = ['SET LOCAL ROLE "o"', *own, "SET LOCAL ROLE NONE"]
    assert result.sql == [
        'SET LOCAL ROLE "o"',
        'CREATE SCHEMA "s" AUTHORIZATION "o"',
        "SET LOCAL ROLE NONE",
        'SET LOCAL ROLE "o"',
        'ALTER SCHEMA "old" OWNER TO "p"',
        "SET LOCAL ROLE NONE",
        *own,
    ]
    owners = db.query("SELECT nspname, nspowner::regrole::text FROM pg_namespace WHERE nspname IN ('s', 'old')")
    assert dict(owners) == {"old": "p", "s": "o"}


def test_back_to_session_role_afterwards(db: Database) -> None:
    db.sql(
        'CREATE ROLE lo LOGIN NOINHERIT; CREATE ROLE "Bo""ss"; CREATE ROLE o; GRANT "Bo""ss", o TO lo',
        f'GRANT CREATE ON DATABASE {db.name} TO o, "Bo""ss"',
    )
    result = db.converge(
        "roles: [{name: o, external: true}]\nschemas: [{name: s, owner: o}]", login_user="lo", session_role='Bo"ss'
    )
    assert result.sql == [
        'SET LOCAL ROLE "o"',
        'CREATE SCHEMA "s" AUTHORIZATION "o"',
        'SET LOCAL ROLE "Bo""ss"',
    ]


def test_a_membership_that_is_added_gives_the_right_to_add_another(db: Database) -> None:
    """Whatever the order in the manifest."""
    options = "WITH ADMIN TRUE, INHERIT FALSE" if db.version >= 16 else "WITH ADMIN OPTION"
    db.sql(
        f"CREATE ROLE adm LOGIN; CREATE ROLE g; CREATE ROLE h; CREATE ROLE i; CREATE ROLE m; GRANT i TO adm {options}",
        f"GRANT g TO h {options}; GRANT h TO i {options}",
    )
    result = db.converge(
        """
        assume_roles: [adm, m]
        roles: [{name: g, external: true}, {name: h, external: true}, {name: i, external: true}]
        memberships:
          - {role: g, members: [{name: m}]}
          - {role: h, members: [{name: adm}]}
          - {role: i, members: [{name: adm, admin: true, inherit: true}]}
        """,
        login_user="adm",
    )
    assert db.members("g") >= {"m", "h"}
    if db.version >= 16:
        assert [statement.split(" WITH")[0] for statement in result.sql] == [
            'GRANT "i" TO "adm"',
            'GRANT "h" TO "adm"',
            'GRANT "g" TO "m"',
        ]


def test_createrole_without_superuser_is_not_asked_of_a_superuser(db: Database) -> None:
    db.sql("CREATE ROLE su LOGIN SUPERUSER NOCREATEROLE NOCREATEDB; CREATE ROLE m REPLICATION; CREATE ROLE g SUPERUSER")
    db.converge(
        "roles: [{name: m, replication: true, connection_limit: 3}, {name: g, superuser: true}, {name: n, createdb: true}]\n"
        "memberships: [{role: g, members: [{name: m}]}]\nschemas: [{name: s, owner: m}]",
        login_user="su",
    )


def test_the_hint_names_a_session_role_that_would_do(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN; CREATE ROLE boss CREATEROLE; GRANT boss TO adm")
    result = db.fails("roles: [{name: n}]", "insufficient_privilege", login_user="adm")
    assert result.problems[0]["hint"] == 'ALTER ROLE "adm" CREATEROLE; or session_role: boss, which has it'
    db.converge("roles: [{name: n}]", login_user="adm", session_role="boss")


def test_only_the_roles_password_changes(db: Database) -> None:
    """MEM-16: what a run does not touch needs no rights."""
    db.sql(ADM, "SET ROLE adm; CREATE ROLE m LOGIN; RESET ROLE; CREATE ROLE g; GRANT g TO m")
    key = "k" * 32
    manifest: dict[str, Any] = {
        "roles": [{"name": "m", "login": True, "password": "s3cret"}, {"name": "g", "external": True}],
        "memberships": [{"role": "g", "members": [{"name": "m"}]}],
    }
    options = {"fingerprint_key": key, "fingerprint_store": "comment", "login_user": "adm"}
    result = db.reconcile(manifest, **options)
    assert not result.failed, result
    assert len(result.sql) == 1
    assert result.matching('^ALTER ROLE "m" PASSWORD ')
    assert db.reconcile(manifest, **options).sql == []
