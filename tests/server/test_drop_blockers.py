# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps a role: the module's verdict beside that of the server, for every kind of tie and every retirement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from harness import Database


@dataclass(frozen=True)
class Tie:
    """How a role ({o}) is tied to the cluster, its own schema ({s}) beside it; ``managed``: the manifest has that."""

    name: str
    setup: tuple[str, ...]
    since: int = 14
    undo: tuple[str, ...] = ()
    managed: bool = False


FOREIGN = ("CREATE FOREIGN DATA WRAPPER {s}_w", "CREATE SERVER {s}_sv FOREIGN DATA WRAPPER {s}_w")
SUBSCRIPTION = (
    "CREATE SUBSCRIPTION {s}_sub CONNECTION 'dbname=nowhere' PUBLICATION {s}_p WITH (connect = false, slot_name = NONE)"
)
SUPER = "ALTER ROLE {o} SUPERUSER"
PLAIN = "ALTER ROLE {o} NOSUPERUSER"

TIES = [
    Tie("nothing", ()),
    Tie("settings and a comment", ("ALTER ROLE {o} SET work_mem = '1MB'", "COMMENT ON ROLE {o} IS 'x'")),
    Tie("member and group", ("GRANT mid TO {o}", "GRANT {o} TO other")),
    Tie("table", ("CREATE TABLE {s}.t (a serial)", "ALTER TABLE {s}.t OWNER TO {o}")),
    Tie("view", ("CREATE VIEW {s}.v AS SELECT 1", "ALTER VIEW {s}.v OWNER TO {o}")),
    Tie("type", ("CREATE TYPE {s}.ty AS ENUM ('a')", "ALTER TYPE {s}.ty OWNER TO {o}")),
    Tie("function", ("CREATE FUNCTION {s}.f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "ALTER FUNCTION {s}.f OWNER TO {o}")),
    Tie("schema", ("CREATE SCHEMA {s}_of_old AUTHORIZATION {o}",)),
    Tie("operator", (
        "CREATE FUNCTION {s}.g(int, int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE OPERATOR {s}.### (LEFTARG = int, RIGHTARG = int, FUNCTION = {s}.g)",
        "ALTER OPERATOR {s}.### (int, int) OWNER TO {o}",
    )),
    Tie("collation", ('CREATE COLLATION {s}.c FROM "C"', "ALTER COLLATION {s}.c OWNER TO {o}")),
    Tie("dictionary", (
        "CREATE TEXT SEARCH DICTIONARY {s}.d (TEMPLATE = simple)", "ALTER TEXT SEARCH DICTIONARY {s}.d OWNER TO {o}"
    )),
    Tie("statistics", (
        "CREATE TABLE {s}.t (a int, b int)", "CREATE STATISTICS {s}.st ON a, b FROM {s}.t", "ALTER STATISTICS {s}.st OWNER TO {o}"
    )),
    Tie("large object", ("SELECT lo_create({n})", "ALTER LARGE OBJECT {n} OWNER TO {o}")),
    Tie("language", ("ALTER LANGUAGE plpgsql OWNER TO {o}",)),
    Tie("wrapper", ("CREATE FOREIGN DATA WRAPPER {s}_w", SUPER, "ALTER FOREIGN DATA WRAPPER {s}_w OWNER TO {o}", PLAIN)),
    Tie("foreign server", (*FOREIGN, "ALTER SERVER {s}_sv OWNER TO {o}")),
    Tie("user mapping", (*FOREIGN, "CREATE USER MAPPING FOR {o} SERVER {s}_sv")),
    Tie("event trigger", (
        "CREATE FUNCTION {s}.e() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'",
        "CREATE EVENT TRIGGER {s}_e ON ddl_command_end EXECUTE FUNCTION {s}.e()",
        SUPER,
        "ALTER EVENT TRIGGER {s}_e OWNER TO {o}",
        PLAIN,
    )),
    Tie("publication", ("CREATE PUBLICATION {s}_p", "ALTER PUBLICATION {s}_p OWNER TO {o}")),
    Tie("publication of all", ("CREATE PUBLICATION {s}_p FOR ALL TABLES", SUPER, "ALTER PUBLICATION {s}_p OWNER TO {o}", PLAIN)),
    Tie("subscription", (SUBSCRIPTION, SUPER, "ALTER SUBSCRIPTION {s}_sub OWNER TO {o}", PLAIN),
        undo=("DROP SUBSCRIPTION {s}_sub",)),
    Tie("extension", (
        "GRANT CREATE ON DATABASE {db} TO {o}", "SET ROLE {o}", "CREATE EXTENSION hstore SCHEMA {s}", "RESET ROLE",
        "REVOKE CREATE ON DATABASE {db} FROM {o}",
    )),
    Tie("extension's member", ("CREATE EXTENSION citext SCHEMA {s}", "ALTER FUNCTION {s}.citext_cmp({s}.citext, {s}.citext) OWNER TO {o}")),
    Tie("extension's initial privileges", (
        "CREATE EXTENSION pg_trgm SCHEMA {s}",
        "INSERT INTO pg_init_privs SELECT '{s}.similarity(text, text)'::regprocedure, 'pg_proc'::regclass, 0, 'e',"
        " array[makeaclitem('{o}'::regrole, 'postgres'::regrole, 'EXECUTE', false)]",
        "INSERT INTO pg_shdepend SELECT (SELECT oid FROM pg_database WHERE datname = '{db}'), 'pg_proc'::regclass,"
        " '{s}.similarity(text, text)'::regprocedure, 0, 'pg_authid'::regclass, '{o}'::regrole, 'i'",
    ), since=17),
    Tie("database", ("CREATE DATABASE {s}_of_old OWNER {o}",)),
    Tie("own default privileges", ("ALTER DEFAULT PRIVILEGES FOR ROLE {o} GRANT SELECT ON TABLES TO other",)),
    Tie("own default privileges in a schema", (
        "ALTER DEFAULT PRIVILEGES FOR ROLE {o} IN SCHEMA {s} GRANT SELECT ON TABLES TO other",
    )),
    Tie("default privileges of another", (
        "ALTER DEFAULT PRIVILEGES FOR ROLE other GRANT SELECT ON TABLES TO {o}, mid",
        "ALTER DEFAULT PRIVILEGES FOR ROLE other IN SCHEMA {s} GRANT SELECT ON TABLES TO {o}",
    )),
    Tie("default privileges of a named owner", (
        "ALTER DEFAULT PRIVILEGES FOR ROLE heir IN SCHEMA {s} GRANT SELECT ON TABLES TO {o}, mid",
    ), managed=True),
    Tie("policy", ("CREATE TABLE {s}.t (a int)", "CREATE POLICY p ON {s}.t TO {o}", "CREATE POLICY q ON {s}.t TO {o}, mid")),
    Tie("privilege", ("CREATE TABLE {s}.t (a int)", "GRANT SELECT ON {s}.t TO {o}")),
    Tie("privilege in a managed schema", ("CREATE TABLE {s}.t (a int)", "GRANT SELECT ON {s}.t TO {o}"), managed=True),
    Tie("column privilege", ("CREATE TABLE {s}.t (a int, b int)", "GRANT SELECT (b), UPDATE (a) ON {s}.t TO {o}")),
    Tie("column privilege in a managed schema", (
        "CREATE TABLE {s}.t (a int, b int)", "GRANT SELECT (b), UPDATE (a) ON {s}.t TO {o}"
    ), managed=True),
    Tie("privilege on a schema, a routine and a type", (
        "GRANT USAGE ON SCHEMA {s} TO {o}",
        "CREATE PROCEDURE {s}.p() LANGUAGE sql AS ''",
        "GRANT EXECUTE ON PROCEDURE {s}.p TO {o}",
        "CREATE DOMAIN {s}.d AS int",
        "GRANT USAGE ON DOMAIN {s}.d TO {o}",
    )),
    Tie("privilege on a large object", ("SELECT lo_create({n})", "GRANT SELECT ON LARGE OBJECT {n} TO {o}")),
    Tie("privilege on a language", ("GRANT USAGE ON LANGUAGE plpgsql TO {o}",)),
    Tie("privilege on a wrapper and a server", (
        *FOREIGN, "GRANT USAGE ON FOREIGN DATA WRAPPER {s}_w TO {o}", "GRANT USAGE ON FOREIGN SERVER {s}_sv TO {o}"
    )),
    Tie("privilege on this database", ("GRANT CONNECT ON DATABASE {db} TO {o}",)),
    Tie("privilege on another database", ("GRANT CONNECT ON DATABASE postgres TO {o}",)),
    Tie("privilege on a tablespace", ("GRANT CREATE ON TABLESPACE pg_default TO {o}",)),
    Tie("privilege on a parameter", ("GRANT SET ON PARAMETER work_mem TO {o}",), since=15),
    Tie("privilege from another grantor", (
        "CREATE TABLE {s}.t (a int)", "GRANT USAGE ON SCHEMA {s} TO lender", "GRANT SELECT ON {s}.t TO lender WITH GRANT OPTION",
        "SET ROLE lender", "GRANT SELECT ON {s}.t TO {o}", "RESET ROLE",
    )),
    Tie("privilege from another grantor in a managed schema", (
        "CREATE TABLE {s}.t (a int)", "GRANT USAGE ON SCHEMA {s} TO lender", "GRANT SELECT ON {s}.t TO lender WITH GRANT OPTION",
        "SET ROLE lender", "GRANT SELECT ON {s}.t TO {o}", "RESET ROLE",
    ), managed=True),
    Tie("a grant option that it used", (
        "CREATE TABLE {s}.t (a int)", "GRANT USAGE ON SCHEMA {s} TO {o}", "GRANT SELECT ON {s}.t TO {o} WITH GRANT OPTION",
        "SET ROLE {o}", "GRANT SELECT ON {s}.t TO mid", "RESET ROLE",
    ), managed=True),
    Tie("a grant option that it used as a member of the owner", (
        "CREATE TABLE {s}.t (a int)", "ALTER TABLE {s}.t OWNER TO other", "GRANT SELECT ON {s}.t TO {o} WITH GRANT OPTION",
        "GRANT USAGE ON SCHEMA {s} TO {o}", "SET ROLE {o}", "GRANT SELECT ON {s}.t TO mid", "RESET ROLE",
        "GRANT other TO {o}",
    )),
    Tie("privilege on a temporary table", ("CREATE TEMP TABLE tmp_{s} (a int)", "GRANT SELECT ON tmp_{s} TO {o}")),
    Tie("a view of another's on its table", (
        "CREATE TABLE {s}.t (a int)", "ALTER TABLE {s}.t OWNER TO {o}", "CREATE VIEW {s}.v AS SELECT * FROM {s}.t"
    )),
    Tie("a key of another's to its table", (
        "CREATE TABLE {s}.t (a int PRIMARY KEY)", "ALTER TABLE {s}.t OWNER TO {o}", "CREATE TABLE {s}.u (a int REFERENCES {s}.t)"
    )),
    Tie("its own key and view", (
        "GRANT USAGE, CREATE ON SCHEMA {s} TO {o}", "SET ROLE {o}", "CREATE TABLE {s}.t (a int PRIMARY KEY)",
        "CREATE TABLE {s}.u (a serial REFERENCES {s}.t)", "CREATE VIEW {s}.v AS SELECT * FROM {s}.t JOIN {s}.u USING (a)",
        "CREATE FUNCTION {s}.f({s}.t) RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE INDEX ON {s}.t (a)",
        "RESET ROLE", "REVOKE ALL ON SCHEMA {s} FROM {o}",
    )),
    Tie("a table of its type", (
        "CREATE TYPE {s}.ty AS ENUM ('a')", "ALTER TYPE {s}.ty OWNER TO {o}", "CREATE TABLE {s}.t (a {s}.ty)"
    )),
    Tie("a table in its schema", ("CREATE SCHEMA {s}_of_old AUTHORIZATION {o}", "CREATE TABLE {s}_of_old.t (a int)")),
    Tie("a default from its sequence", (
        "CREATE SEQUENCE {s}.q", "ALTER SEQUENCE {s}.q OWNER TO {o}", "CREATE TABLE {s}.t (a int DEFAULT nextval('{s}.q'))"
    )),
    Tie("a partition", (
        "CREATE TABLE {s}.t (a int PRIMARY KEY) PARTITION BY LIST (a)", "CREATE TABLE {s}.t1 PARTITION OF {s}.t FOR VALUES IN (1)",
        "ALTER TABLE {s}.t1 OWNER TO {o}",
    )),
    Tie("a partitioned table", (
        "CREATE TABLE {s}.t (a int PRIMARY KEY) PARTITION BY LIST (a)", "CREATE TABLE {s}.t1 PARTITION OF {s}.t FOR VALUES IN (1)",
        "ALTER TABLE {s}.t OWNER TO {o}", "ALTER TABLE {s}.t1 OWNER TO {o}",
    )),
    Tie("a partitioned table with another's partition", (
        "CREATE TABLE {s}.t (a int PRIMARY KEY) PARTITION BY LIST (a)", "CREATE TABLE {s}.t1 PARTITION OF {s}.t FOR VALUES IN (1)",
        "ALTER TABLE {s}.t OWNER TO {o}",
    )),
    Tie("a membership that it granted", (
        "ALTER ROLE {o} CREATEROLE", "GRANT mid TO {o} WITH ADMIN OPTION", "SET ROLE {o}", "GRANT mid TO other", "RESET ROLE",
    )),
]  # fmt: skip

RETIREMENTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "heir": {"reassign_owned_to": "heir"},
    "drop_owned": {"drop_owned": True},
    "both": {"reassign_owned_to": "heir", "drop_owned": True},
}

#: The server would destroy it, although it belongs to somebody whom nobody retires.
OF_OTHERS = {"a partitioned table with another's partition"}

#: What must be refused and what must not, so that the comparison cannot agree on everything being alike.
REFUSED = {
    "plain": {"table", "database", "policy", "privilege", "user mapping", "own default privileges"},
    "heir": {"user mapping", "policy", "wrapper", "event trigger", "privilege", "default privileges of another"},
    "drop_owned": {"database", "subscription", "a view of another's on its table", "extension's member", *OF_OTHERS},
    "both": {"privilege from another grantor", "wrapper"},
}
ACCEPTED = {
    "plain": {"nothing", "settings and a comment", "member and group", "privilege in a managed schema"},
    "heir": {"table", "schema", "operator", "database", "extension", "a key of another's to its table"},
    "drop_owned": {"table", "extension", "policy", "privilege", "its own key and view", "a partitioned table"},
    "both": {"database", "user mapping", "privilege on a temporary table", "extension's member"},
}


def manifest(options: dict[str, Any], roles: list[str], schemas: list[str]) -> dict[str, Any]:
    return {
        "roles": [{"name": "heir", "superuser": False}],
        "schemas": [{"name": schema, "owner": "heir"} for schema in schemas],
        "assume_roles": ["mid", "other", "lender"],
        "retirements": [{"role": role, **options} for role in roles],
    }


def server_says(connection: psycopg.Connection[Any], options: dict[str, Any], role: str, plan: list[str]) -> str | None:
    """What keeps the server from the plan, and without one from the statements of a retirement."""
    own = [
        *([f"REASSIGN OWNED BY {role} TO heir"] if "reassign_owned_to" in options else []),
        *([f"DROP OWNED BY {role}"] if options.get("drop_owned") else []),
        f"DROP ROLE {role}",
    ]
    warnings: list[str] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(str(notice.message_primary))

    connection.add_notice_handler(note)
    try:
        with connection.transaction(force_rollback=True):
            for statement in plan or own:
                connection.execute(statement)
    except psycopg.Error as error:
        return f"{error.diag.message_primary}: {error.diag.message_detail}"
    finally:
        connection.remove_notice_handler(note)
    return warnings[0] if warnings else None


@pytest.fixture
def tied(db: Database) -> Iterator[Database]:
    """A database with a role ``oldN`` and a schema ``sN`` for each tie. ``heir`` owns what is managed."""
    db.sql("CREATE ROLE heir", "CREATE ROLE mid", "CREATE ROLE other", "CREATE ROLE lender")
    if db.version >= 17:
        db.sql("SET allow_system_table_mods = on")
    for number, tie in ties(db):
        names = {"o": f"old{number}", "s": f"s{number}", "n": number, "db": db.name}
        db.sql(f"CREATE ROLE old{number}", f"CREATE SCHEMA s{number}" + (" AUTHORIZATION heir" if tie.managed else ""))
        for statement in tie.setup:
            db.sql(statement.format(**names))
            if tie.managed and statement.startswith("CREATE TABLE"):
                db.sql(f"ALTER TABLE s{number}.t OWNER TO heir")
    yield db
    db.sql("ALTER LANGUAGE plpgsql OWNER TO postgres")
    for number, tie in ties(db):
        db.sql(*(statement.format(s=f"s{number}") for statement in tie.undo))


def ties(db: Database) -> list[tuple[int, Tie]]:
    return [(number, tie) for number, tie in enumerate(TIES, 9000) if tie.since <= db.version]


#: Refused to executors that are no superusers for more than the drop itself: the run never guesses which of two grantors
#: PostgreSQL would take.
# The server would let it go, and with it the membership that others have by its grant.
CAUTIOUS = {"a grant option that it used", "a membership that it granted"}


def compare(db: Database, options: dict[str, Any], codes: tuple[str, ...], **executor: Any) -> dict[str, bool]:
    """Whether each tie lets its role go by the module, which has to be what the server says."""
    managed = {f"old{number}": f"s{number}" for number, tie in ties(db) if tie.managed}
    names = {f"old{number}": tie.name for number, tie in ties(db)}
    connection = db.connect(executor["login_user"]) if executor else db.connection
    # All at once: what is refused is refused before anything happens.
    said = db.fails(manifest(options, list(names), list(managed.values())), codes, **executor)
    refused = {
        role
        for problem in said.problems
        for role in re.findall(r"\bold\d+\b", f"{problem['role']} {problem['message']}")
    }
    wrongly_refused: list[str] = []
    for role in refused:
        plan = []
        if role in managed:
            plan = db.reconcile(manifest(options, [role], [managed[role]]), check=True, **executor).plan
        if (executor and names[role] in CAUTIOUS) or names[role] in OF_OTHERS:
            continue
        if server_says(connection, options, role, plan) is None:
            said_of = [
                problem["message"]
                for problem in said.problems
                if role in (problem["role"], *problem["message"].split())
            ]
            wrongly_refused.append(f"{names[role]}: {said_of}")
    assert wrongly_refused == []
    # The others go, all of them.
    going = [role for role in names if role not in refused]
    db.converge(manifest(options, going, [managed[role] for role in going if role in managed]), **executor)
    assert {role for role in db.roles() if role.startswith("old")} == refused
    return {name: role not in refused for role, name in names.items()}


@pytest.mark.parametrize("retirement", RETIREMENTS)
def test_the_verdict_is_the_servers(tied: Database, retirement: str) -> None:
    going = compare(tied, RETIREMENTS[retirement], ("drop_blocked", "dependent_privileges"))
    assert {name for name in REFUSED[retirement] if going[name]} == set()
    assert {name for name in ACCEPTED[retirement] if not going[name]} == set()


#: What an executor that is no superuser has besides CREATEROLE: of each role, of the heir, and rights for the heir.
EXECUTORS: dict[str, tuple[str, str, bool]] = {
    "all rights": ("ADMIN TRUE, INHERIT TRUE, SET TRUE", "INHERIT TRUE, SET TRUE", True),
    "only memberships": ("ADMIN TRUE, INHERIT TRUE, SET TRUE", "INHERIT TRUE, SET TRUE", False),
    "no SET on the heir": ("ADMIN TRUE, INHERIT TRUE, SET TRUE", "INHERIT TRUE, SET FALSE", True),
    "nothing of the role inherited": ("ADMIN TRUE, INHERIT FALSE, SET TRUE", "INHERIT TRUE, SET TRUE", True),
    "no ADMIN": ("INHERIT TRUE, SET TRUE", "INHERIT TRUE, SET TRUE", True),
}


def executor_of(db: Database, memberships: tuple[str, str, bool]) -> None:
    """Make ``adm``. Before PostgreSQL 16 memberships have no options, so none is given where one matters."""
    of_roles, of_heir, rights = memberships
    db.sql("CREATE ROLE adm LOGIN CREATEROLE")
    for role in (*(f"old{number}" for number, _tie in ties(db)), "heir"):
        options = of_heir if role == "heir" else of_roles
        if db.version >= 16:
            db.sql(f"GRANT {role} TO adm WITH {options}")
        elif "INHERIT FALSE" not in options and "SET FALSE" not in options:
            db.sql(f"GRANT {role} TO adm")
    if rights:
        schemas = ", ".join(f"s{number}" for number, _tie in ties(db))
        wrappers = [row[0] for row in db.query("SELECT fdwname FROM pg_foreign_data_wrapper")]
        db.sql(f"GRANT USAGE, CREATE ON SCHEMA {schemas} TO heir", f"GRANT CREATE ON DATABASE {db.name} TO heir")
        db.sql(*(f"GRANT USAGE ON FOREIGN DATA WRAPPER {wrapper} TO heir" for wrapper in wrappers))


@pytest.mark.parametrize(
    ("executor", "retirement"),
    [
        ("all rights", "heir"),
        ("all rights", "both"),
        ("all rights", "drop_owned"),
        ("only memberships", "heir"),
        ("no SET on the heir", "heir"),
        ("nothing of the role inherited", "both"),
        ("no ADMIN", "plain"),
    ],
)
def test_what_the_executor_may_do_is_what_the_server_says(tied: Database, executor: str, retirement: str) -> None:
    executor_of(tied, EXECUTORS[executor])
    codes = ("insufficient_privilege", "drop_blocked", "dependent_privileges")
    going = compare(tied, RETIREMENTS[retirement], codes, login_user="adm")
    if executor == "all rights":
        wanted = {"heir": {"table", "operator", "schema", "publication", "foreign server"}, "both": {"table", "policy"}}
        assert {name for name in wanted.get(retirement, {"view", "policy"}) if not going[name]} == set()
    elif executor == "only memberships":
        assert {name for name in ("operator", "schema", "publication", "foreign server") if going[name]} == set()
        assert going["table"]
    elif tied.version >= 16 or "inherited" in executor:
        assert (tied.version >= 16 and executor == "no SET on the heir") == going["table"]
