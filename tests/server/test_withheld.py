# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is different and not done is told: each reason with every kind of change that it is given for.

The expected lists are whole: what is missing there was dropped in silence, and what is too much was made up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from harness import REASONS, Database, Result

KEY = {"fingerprint_key": "a key that only this test knows"}


@dataclass(frozen=True)
class Case:
    """``items``: all withheld items of this reason, see ``told``. ``sql``: all that is done nevertheless, None for no
    matter. ``once``: a second run cannot know of it any more. @DB in SQL is the database.
    """

    reason: str
    setup: str
    manifest: str
    items: str
    sql: list[str] | None = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    once: bool = False


def told(result: Result, reason: str) -> list[str]:
    """The withheld items of one reason: ``change role object [privileges]: statement``."""
    lines = []
    for item in result.held(reason=reason):
        thing = item["object"]
        assert set(item) == {"change", "role", "object", "privileges", "sql", "reason"}
        assert set(thing) - {"owner"} == {"type", "schema", "name", "columns"}
        name = ".".join(part for part in (thing["schema"], thing["name"]) if part)
        columns = f"({', '.join(thing['columns'])})" if thing["columns"] else ""
        owner = f" of {thing['owner']}" if "owner" in thing else ""
        place = f"{thing['type']} {name}{columns}{owner}"
        words = ", ".join(item["privileges"])
        lines.append(f"{item['change']} {item['role']} {place} [{words}]: {item['sql']}".rstrip())
    return lines


def expected(db: Database, text: str) -> list[str]:
    lines = [line.strip().replace("@DB", db.name) for line in text.splitlines() if line.strip()]
    # Before PostgreSQL 16 a membership has no grantor that counts.
    return lines if db.version >= 16 else [line.partition(' GRANTED BY "')[0] for line in lines]


SURPLUS = """
CREATE ROLE r CREATEDB NOINHERIT CONNECTION LIMIT 5 VALID UNTIL '2090-01-01 UTC' PASSWORD 'old';
COMMENT ON ROLE r IS 'old'; ALTER ROLE r SET work_mem = '1MB'; ALTER ROLE r SET jit = 'off';
CREATE ROLE x LOGIN; CREATE ROLE w; CREATE ROLE z; CREATE ROLE g; CREATE ROLE a; CREATE ROLE was LOGIN PASSWORD 'old';
GRANT g TO x; GRANT g TO a WITH ADMIN OPTION;
CREATE SCHEMA s AUTHORIZATION w;
CREATE TABLE s.t (a int, b int); CREATE SEQUENCE s.q; CREATE VIEW s.v AS SELECT 1 AS a;
CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TYPE s.ty AS ENUM ();
GRANT SELECT, INSERT ON s.t TO x; GRANT UPDATE (b) ON s.t TO x; GRANT SELECT ON s.t TO r WITH GRANT OPTION;
GRANT USAGE ON SEQUENCE s.q TO x; GRANT SELECT ON s.v TO r; GRANT EXECUTE ON FUNCTION s.f() TO x;
GRANT USAGE ON TYPE s.ty TO x; GRANT USAGE ON SCHEMA s TO x;
GRANT TEMPORARY ON DATABASE @DB TO x;
ALTER DEFAULT PRIVILEGES FOR ROLE z IN SCHEMA s GRANT SELECT, INSERT ON TABLES TO x;
ALTER DEFAULT PRIVILEGES FOR ROLE z IN SCHEMA s GRANT SELECT ON TABLES TO r WITH GRANT OPTION;
"""

WANT = """
roles:
  - {name: r, comment: new, config: {work_mem: 2MB}, password: some-new-secret}
  - {name: was}
  - {name: w}
  - {name: z}
  - {name: g}
  - {name: a}
memberships: [{role: g, members: [{name: a}]}]
schemas: [{name: s, owner: z}]
grants:
  - {role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}
  - {role: r, privileges: [CONNECT], object: {type: database}}
  - {role: PUBLIC, privileges: [EXECUTE], object: {type: function, schema: s, name: f()}, ensure: absent}
default_privileges:
  - {owner: z, schema: s, grant: [{role: r, privileges: [SELECT], on_type: table}, {role: r, privileges: [USAGE], on_type: sequence}]}
"""

EXTENSION = """
CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA s; CREATE TABLE s.t (a int, b int); CREATE TABLE s.n (a int); CREATE TABLE s.own (a int);
CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1';
ALTER EXTENSION plpgsql ADD TABLE s.t; ALTER EXTENSION plpgsql ADD TABLE s.n; ALTER EXTENSION plpgsql ADD FUNCTION s.f();
GRANT SELECT ON s.t TO x WITH GRANT OPTION; GRANT UPDATE (b) ON s.t TO x;
"""

GIVEN = """
CREATE ROLE m; CREATE ROLE p; CREATE SCHEMA s AUTHORIZATION p; CREATE TABLE s.t (a int);
GRANT SELECT ON s.t TO GIVEN WITH GRANT OPTION; GRANT UPDATE (a) ON s.t TO GIVEN;
ALTER DEFAULT PRIVILEGES FOR ROLE p IN SCHEMA s GRANT SELECT ON TABLES TO GIVEN;
"""

ADDITIVE = """
    revoke PUBLIC function s.f() [EXECUTE]: REVOKE EXECUTE ON ROUTINE "s"."f"() FROM PUBLIC
    revoke_membership a role g []: REVOKE ADMIN OPTION FOR "g" FROM "a" GRANTED BY "postgres"
    revoke_default_privilege r table s of z [SELECT]: ALTER DEFAULT PRIVILEGES FOR ROLE "z" IN SCHEMA "s" REVOKE GRANT OPTION FOR SELECT ON TABLES FROM "r"
    revoke r table s.t [SELECT]: REVOKE GRANT OPTION FOR SELECT ON TABLE "s"."t" FROM "r"
    revoke r view s.v [SELECT]: REVOKE SELECT ON TABLE "s"."v" FROM "r"
    grant_default_privilege r sequence s of z [USAGE]: ALTER DEFAULT PRIVILEGES FOR ROLE "z" IN SCHEMA "s" GRANT USAGE ON SEQUENCES TO "r"
    alter_role r role r []: ALTER ROLE "r" LOGIN
    alter_role r role r []: ALTER ROLE "r" NOCREATEDB INHERIT CONNECTION LIMIT -1 VALID UNTIL 'infinity'
    alter_role r role r []: ALTER ROLE "r" PASSWORD '********'
    alter_role r role r []: ALTER ROLE "r" RESET "jit"
    alter_role r role r []: ALTER ROLE "r" SET "work_mem" = '2MB'
    alter_role r role r []: COMMENT ON ROLE "r" IS 'new'
    alter_role was role was []: ALTER ROLE "was" NOLOGIN
    revoke x database @DB [TEMPORARY]: REVOKE TEMPORARY ON DATABASE "@DB" FROM "x"
    revoke x schema s [USAGE]: REVOKE USAGE ON SCHEMA "s" FROM "x"
    revoke_default_privilege x table s of z [SELECT, INSERT]: ALTER DEFAULT PRIVILEGES FOR ROLE "z" IN SCHEMA "s" REVOKE SELECT, INSERT ON TABLES FROM "x"
    revoke x table s.t [SELECT, INSERT]: REVOKE SELECT, INSERT ON TABLE "s"."t" FROM "x"
    revoke x table s.t(b) [UPDATE]: REVOKE UPDATE ("b") ON TABLE "s"."t" FROM "x"
    revoke x sequence s.q [USAGE]: REVOKE USAGE ON SEQUENCE "s"."q" FROM "x"
    revoke x function s.f() [EXECUTE]: REVOKE EXECUTE ON ROUTINE "s"."f"() FROM "x"
    revoke x type s.ty [USAGE]: REVOKE USAGE ON TYPE "s"."ty" FROM "x"
    revoke_membership x role g []: REVOKE "g" FROM "x" GRANTED BY "postgres"
    alter_schema_owner z schema s []: ALTER SCHEMA "s" OWNER TO "z"
"""

CASES = {
    "additive": Case(
        "mode", SURPLUS, WANT, ADDITIVE, ['GRANT CONNECT ON DATABASE "@DB" TO "r"'],
        {"reconciliation_mode": "additive", **KEY},
    ),
    "adopt": Case(
        "mode", SURPLUS, WANT,
        """
        grant_default_privilege r sequence s of z [USAGE]: ALTER DEFAULT PRIVILEGES FOR ROLE "z" IN SCHEMA "s" GRANT USAGE ON SEQUENCES TO "r"
        alter_schema_owner z schema s []: ALTER SCHEMA "s" OWNER TO "z"
        """,
        None, {"reconciliation_mode": "adopt", **KEY},
    ),
    "undeclared grantees": Case(
        "undeclared_grantee", SURPLUS, WANT,
        "\n".join(line for line in ADDITIVE.splitlines() if " x " in line and "membership" not in line),
        None, {"undeclared_grantees": "keep", **KEY},
    ),
    "bootstrap superuser": Case(
        "external", "",
        "roles: [{name: postgres, connection_limit: 5, comment: ours, config: {work_mem: 1MB}, password: some-new-secret}]",
        """
        alter_role postgres role postgres []: ALTER ROLE "postgres" CONNECTION LIMIT 5
        alter_role postgres role postgres []: ALTER ROLE "postgres" PASSWORD '********'
        alter_role postgres role postgres []: ALTER ROLE "postgres" SET "work_mem" = '1MB'
        alter_role postgres role postgres []: COMMENT ON ROLE "postgres" IS 'ours'
        """,
        options=KEY,
    ),
    "extension": Case(
        "extension", EXTENSION,
        """
        roles: [{name: r}]
        schemas: [{name: s}]
        grants:
          - {role: r, privileges: [INSERT], object: {type: table, schema: s, name: "*"}}
          - {role: r, privileges: [SELECT], object: {type: table, schema: s, name: n}}
          - {role: PUBLIC, privileges: [EXECUTE], object: {type: function, schema: s, name: "*"}, ensure: absent}
        """,
        """
        revoke PUBLIC function s.f() [EXECUTE]: REVOKE EXECUTE ON ROUTINE "s"."f"() FROM PUBLIC
        grant r table s.n [INSERT]: GRANT INSERT ON TABLE "s"."n" TO "r"
        grant r table s.t [INSERT]: GRANT INSERT ON TABLE "s"."t" TO "r"
        revoke x table s.t [SELECT]: REVOKE SELECT ON TABLE "s"."t" FROM "x"
        revoke x table s.t(b) [UPDATE]: REVOKE UPDATE ("b") ON TABLE "s"."t" FROM "x"
        """,
        ['GRANT SELECT ON TABLE "s"."n" TO "r"', 'GRANT INSERT ON TABLE "s"."own" TO "r"'],
    ),
    # Nothing makes the schema managed; the rules want what they name, and a wildcard does not mean an extension's.
    "extension in an unmanaged schema": Case(
        "extension", EXTENSION,
        """
        roles: [{name: x}]
        grants:
          - {role: PUBLIC, privileges: [EXECUTE], object: {type: function, schema: s, name: "*"}, ensure: absent}
          - {role: x, privileges: [SELECT, UPDATE, DELETE], object: {type: table, schema: s, name: "*"}, ensure: absent}
        """,
        """
        revoke PUBLIC function s.f() [EXECUTE]: REVOKE EXECUTE ON ROUTINE "s"."f"() FROM PUBLIC
        revoke x table s.t [SELECT]: REVOKE SELECT ON TABLE "s"."t" FROM "x"
        revoke x table s.t(b) [UPDATE]: REVOKE UPDATE ("b") ON TABLE "s"."t" FROM "x"
        """,
    ),
    "memberships": Case(
        "unmanaged_membership",
        """
        CREATE ROLE m; CREATE ROLE x; CREATE ROLE e; CREATE ROLE u; CREATE ROLE li;
        GRANT e, u, pg_monitor TO m WITH ADMIN OPTION; GRANT e, u, li, pg_monitor TO x;
        """,
        """
        roles: [{name: m}, {name: e, external: true}]
        memberships: [{role: li, members: [{name: m}]}]
        assume_roles: [li]
        """,
        """
        revoke_membership m role e []: REVOKE "e" FROM "m" GRANTED BY "postgres"
        revoke_membership m role pg_monitor []: REVOKE "pg_monitor" FROM "m" GRANTED BY "postgres"
        revoke_membership m role u []: REVOKE "u" FROM "m" GRANTED BY "postgres"
        revoke_membership x role li []: REVOKE "li" FROM "x" GRANTED BY "postgres"
        """,
        None,
    ),
    "default privileges": Case(
        "unmanaged_default",
        """
        CREATE ROLE m; CREATE ROLE x; CREATE ROLE o; CREATE ROLE p; CREATE SCHEMA s AUTHORIZATION p;
        ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO x, m;
        ALTER DEFAULT PRIVILEGES FOR ROLE o GRANT EXECUTE ON FUNCTIONS TO x WITH GRANT OPTION;
        ALTER DEFAULT PRIVILEGES FOR ROLE p GRANT USAGE ON SCHEMAS TO x;
        """,
        "roles: [{name: m}, {name: p}]\nschemas: [{name: s, owner: p}]",
        """
        revoke_default_privilege m table s of o [SELECT]: ALTER DEFAULT PRIVILEGES FOR ROLE "o" IN SCHEMA "s" REVOKE SELECT ON TABLES FROM "m"
        revoke_default_privilege x schema  of p [USAGE]: ALTER DEFAULT PRIVILEGES FOR ROLE "p" REVOKE USAGE ON SCHEMAS FROM "x"
        revoke_default_privilege x table s of o [SELECT]: ALTER DEFAULT PRIVILEGES FOR ROLE "o" IN SCHEMA "s" REVOKE SELECT ON TABLES FROM "x"
        revoke_default_privilege x function  of o [EXECUTE]: ALTER DEFAULT PRIVILEGES FOR ROLE "o" REVOKE EXECUTE ON ROUTINES FROM "x"
        """,
    ),
    "predefined roles": Case(
        "predefined", GIVEN.replace("GIVEN", "pg_monitor") + "GRANT m TO postgres, pg_monitor",
        "roles: [{name: m, members: []}, {name: p}]\nschemas: [{name: s, owner: p}]",
        """
        revoke_default_privilege pg_monitor table s of p [SELECT]: ALTER DEFAULT PRIVILEGES FOR ROLE "p" IN SCHEMA "s" REVOKE SELECT ON TABLES FROM "pg_monitor"
        revoke pg_monitor table s.t [SELECT]: REVOKE SELECT ON TABLE "s"."t" FROM "pg_monitor"
        revoke pg_monitor table s.t(a) [UPDATE]: REVOKE UPDATE ("a") ON TABLE "s"."t" FROM "pg_monitor"
        revoke_membership pg_monitor role m []: REVOKE "m" FROM "pg_monitor" GRANTED BY "postgres"
        revoke_membership postgres role m []: REVOKE "m" FROM "postgres" GRANTED BY "postgres"
        """,
    ),
    "provider roles": Case(
        "provider",
        "CREATE ROLE rds_superuser;" + GIVEN.replace("GIVEN", "rds_superuser") + "GRANT m TO rds_superuser; GRANT rds_superuser TO p",
        "roles: [{name: m, members: []}, {name: p, member_of: []}]\nschemas: [{name: s, owner: p}]",
        """
        revoke_membership p role rds_superuser []: REVOKE "rds_superuser" FROM "p" GRANTED BY "postgres"
        revoke_default_privilege rds_superuser table s of p [SELECT]: ALTER DEFAULT PRIVILEGES FOR ROLE "p" IN SCHEMA "s" \
REVOKE SELECT ON TABLES FROM "rds_superuser"
        revoke rds_superuser table s.t [SELECT]: REVOKE SELECT ON TABLE "s"."t" FROM "rds_superuser"
        revoke rds_superuser table s.t(a) [UPDATE]: REVOKE UPDATE ("a") ON TABLE "s"."t" FROM "rds_superuser"
        revoke_membership rds_superuser role m []: REVOKE "m" FROM "rds_superuser" GRANTED BY "postgres"
        """,
    ),
    "shared objects": Case(
        "shared_object",
        """
        CREATE ROLE m; CREATE ROLE x; GRANT CREATE, CONNECT ON DATABASE postgres TO x WITH GRANT OPTION;
        GRANT CREATE ON TABLESPACE pg_default TO x;
        """,
        """
        roles: [{name: m}]
        grants:
          - {role: m, privileges: [CONNECT], object: {type: database, name: postgres}}
          - {role: m, privileges: [CREATE], object: {type: tablespace, name: pg_default}}
        """,
        """
        revoke x database postgres [CONNECT, CREATE]: REVOKE CONNECT, CREATE ON DATABASE "postgres" FROM "x"
        revoke x tablespace pg_default [CREATE]: REVOKE CREATE ON TABLESPACE "pg_default" FROM "x"
        """,
        None,
    ),
    "a stored setting": Case(
        "unknown_kind",
        """
        CREATE ROLE r; ALTER ROLE r SET work_mem = '1MB'; SET allow_system_table_mods = on;
        UPDATE pg_db_role_setting SET setconfig = setconfig || '{gone=1}'::text[] WHERE setrole = 'r'::regrole
        """,
        "roles: [{name: r, config: {work_mem: 1MB}}]",
        'alter_role r role r []: ALTER ROLE "r" RESET "gone"',
    ),
    # A kind that this version of the collection has never heard of: no statement can name it.
    "a kind of a later server": Case(
        "unknown_kind",
        """
        CREATE ROLE p; CREATE ROLE x; CREATE SCHEMA s AUTHORIZATION p;
        ALTER DEFAULT PRIVILEGES FOR ROLE p IN SCHEMA s GRANT SELECT ON TABLES TO x;
        SET allow_system_table_mods = on; UPDATE pg_default_acl SET defaclobjtype = 'Z'
        """,
        "roles: [{name: p}]\nschemas: [{name: s, owner: p}]",
        "revoke_default_privilege x Z s of p [SELECT]: ",
    ),
    "a password": Case(
        "password_not_ours", "CREATE ROLE r LOGIN PASSWORD 'theirs'", "roles: [{name: r}]",
        'alter_role r role r []: ALTER ROLE "r" PASSWORD NULL', ['ALTER ROLE "r" NOLOGIN'], once=True,
    ),
}  # fmt: skip


def check(db: Database, case: Case) -> None:
    if case.setup:
        db.sql(case.setup.replace("@DB", db.name))
    result = db.converge(case.manifest, **case.options)
    assert told(result, case.reason) == expected(db, case.items)
    if case.sql is not None:
        assert result.sql == [statement.replace("@DB", db.name) for statement in case.sql]
    for mode in (True, False):
        again = db.reconcile(case.manifest, check=mode, **case.options)
        assert again.sql == []
        assert told(again, case.reason) == ([] if case.once else expected(db, case.items))


@pytest.mark.parametrize("name", CASES)
def test_what_is_withheld(db: Database, name: str) -> None:
    check(db, CASES[name])


@pytest.mark.versions(min=15)
def test_a_parameter_that_another_database_may_speak_of(db: Database) -> None:
    setup = "CREATE ROLE m; CREATE ROLE x; GRANT SET, ALTER SYSTEM ON PARAMETER work_mem TO x"
    manifest = "roles: [{name: m}]\ngrants: [{role: m, privileges: [SET], object: {type: parameter, name: work_mem}}]"
    item = 'revoke x parameter work_mem [SET, ALTER SYSTEM]: REVOKE SET, ALTER SYSTEM ON PARAMETER "work_mem" FROM "x"'
    check(db, Case("shared_object", setup, manifest, item, ['GRANT SET ON PARAMETER "work_mem" TO "m"']))


@pytest.mark.versions(min=16)
def test_what_postgresql_gave_a_creator_that_creates_no_more(db: Database) -> None:
    setup = """
        CREATE ROLE adm LOGIN CREATEROLE; SET ROLE adm; SET createrole_self_grant = 'set, inherit'; CREATE ROLE made;
        RESET ROLE; RESET createrole_self_grant; ALTER ROLE adm NOCREATEROLE
    """
    items = """
        revoke_membership adm role made []: REVOKE "made" FROM "adm" GRANTED BY "adm"
        revoke_membership adm role made []: REVOKE "made" FROM "adm" GRANTED BY "postgres"
    """
    check(db, Case("automatic_membership", setup, "roles: [{name: made}]", items))


def test_a_grantee_that_is_gone(db: Database) -> None:
    db.sql("CREATE ROLE ghost; " + GIVEN.replace("GIVEN", "ghost"))
    number = db.value("SELECT 'ghost'::regrole::oid")
    db.sql(f"DELETE FROM pg_shdepend WHERE refobjid = {number}; DROP ROLE ghost")
    items = f"""
        revoke_default_privilege {number} table s of p [SELECT]: ALTER DEFAULT PRIVILEGES FOR ROLE "p" IN SCHEMA "s" REVOKE SELECT ON TABLES FROM "{number}"
        revoke {number} table s.t [SELECT]: REVOKE SELECT ON TABLE "s"."t" FROM "{number}"
        revoke {number} table s.t(a) [UPDATE]: REVOKE UPDATE ("a") ON TABLE "s"."t" FROM "{number}"
    """
    check(db, Case("dangling_grantee", "", "roles: [{name: p}]\nschemas: [{name: s, owner: p}]", items))


def test_what_would_disarm_the_executor(db: Database) -> None:
    db.sql("CREATE ROLE su SUPERUSER LOGIN; CREATE ROLE g; GRANT g TO su; ALTER ROLE su SET work_mem = '1MB'")
    own = {"login_user": "su", **KEY}
    db.converge("roles: [{name: su, superuser: true, password: some-secret-of-su}]", **own)
    config = ""
    if db.version >= 16:
        db.sql("ALTER ROLE su SET createrole_self_grant = 'set'")
        config = 'alter_role su role su []: ALTER ROLE "su" RESET "createrole_self_grant"'
    items = f"""
        revoke_membership su role g []: REVOKE "g" FROM "su" GRANTED BY "postgres"
        alter_role su role su []: ALTER ROLE "su" NOSUPERUSER NOLOGIN
        alter_role su role su []: ALTER ROLE "su" PASSWORD NULL
        {config}
    """
    manifest = "roles: [{name: su, config: {}}, {name: g}]"
    check(db, Case("self_protection", "", manifest, items, ['ALTER ROLE "su" RESET "work_mem"'], own))


def test_every_reason_is_here() -> None:
    alone = {"automatic_membership", "dangling_grantee", "self_protection"}
    assert {case.reason for case in CASES.values()} | alone == REASONS


# ---- what is held back is all that is left


LEFT = WANT.replace(", password: some-new-secret", ", login: true").replace("{name: was}", "{name: was, login: true}")


@pytest.mark.parametrize(
    "options",
    [
        {"reconciliation_mode": "additive"},
        {"reconciliation_mode": "adopt"},
        {"reconciliation_mode": "additive", "undeclared_grantees": "keep"},
    ],
)
def test_done_by_hand_nothing_is_left(db: Database, options: dict[str, Any]) -> None:
    """After the withheld statements themselves, the strictest run finds nothing that nobody told of."""
    db.sql(SURPLUS.replace("@DB", db.name))
    result = db.converge(LEFT, **options)
    assert result.withheld
    # The owner first: default privileges and revokes are then the new owner's.
    for item in sorted(result.withheld, key=lambda item: item["change"] != "alter_schema_owner"):
        db.sql(item["sql"])
    strict = db.silent(LEFT)
    assert strict.withheld == []


@pytest.mark.versions(min=18)
@pytest.mark.parametrize("name", ["additive", "adopt", "undeclared grantees"])
def test_a_plan_and_what_it_holds_back_are_the_strict_plan(db: Database, name: str) -> None:
    """Counted as in the summary, no privilege, membership, role or schema gets lost on the way."""
    case = CASES[name]
    db.sql(case.setup.replace("@DB", db.name))
    strict = db.reconcile(case.manifest, check=True, **KEY)
    some = db.reconcile(case.manifest, check=True, **case.options)
    held = some.held(reason=case.reason)

    def privileges(*changes: str) -> int:
        chosen = [item for item in held if item["change"] in changes]
        return sum(len(item["privileges"]) * max(1, len(item["object"]["columns"])) for item in chosen)

    assert strict.summary["grants"]["revoked"] == some.summary["grants"]["revoked"] + privileges("revoke")
    assert strict.summary["grants"]["granted"] == some.summary["grants"]["granted"] + privileges("grant")
    for change, key in (("grant", "granted"), ("revoke", "revoked")):
        counts = [result.summary["default_privileges"][key] for result in (strict, some)]
        assert counts[0] == counts[1] + privileges(f"{change}_default_privilege")
    memberships = [sum(result.summary["memberships"].values()) for result in (strict, some)]
    assert memberships[0] == memberships[1] + len([item for item in held if item["change"] == "revoke_membership"])
    assert strict.summary["schemas"]["owner_changed"] == some.summary["schemas"]["owner_changed"] + len(
        [item for item in held if item["change"] == "alter_schema_owner"]
    )
