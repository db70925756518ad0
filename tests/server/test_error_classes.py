# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each ``error_code`` provoked on a real server, and the whole shape of the failure that comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from harness import ERROR_CODES, PASSWORD, Database, Result
from test_errors import OldServer
from test_unattended import TURN, holder

SECRET = "pa55-w0rd-of-this-test"
APP = "roles: [{name: app}]"
#: A role with a password, which every run that creates it has to send.
HUSH = f"roles: [{{name: app, password: {SECRET}}}]"
KEY = {"fingerprint_key": "a key that only this test knows"}
#: A key that every failure may have, beside Ansible's own.
ALWAYS = {"failed", "changed", "msg", "error_code", "problems", "sql"}
ANSIBLES = {"invocation", "warnings", "exception", "deprecations"}


def shape(result: Result, code: str) -> None:
    """What is promised of every failure."""
    assert result.error_code == code, result
    assert result.sql == [] and result.changed is False
    said = set(result) - ANSIBLES
    assert said >= ALWAYS
    assert said <= {*ALWAYS, "sqlstate", "statement", "detail", "hint", "plan"}
    assert result.msg == result.msg.strip() and "\n" not in result.msg
    assert result.problems
    for problem in result.problems:
        assert set(problem) == {"path", "file", "role", "object", "message", "hint"}
        assert problem["message"]
    assert ("sqlstate" in result) or not {"statement", "detail"} & said
    assert SECRET not in json.dumps(result)
    assert "Traceback" not in json.dumps(result)


def freeze(db: Database, tag: str, act: str, when: str = "true") -> None:
    """From now on the server answers statements of this kind with something of its own."""
    db.sql(
        f"CREATE FUNCTION public.frost() RETURNS event_trigger LANGUAGE plpgsql AS $f$BEGIN IF {when} THEN {act}; END IF; END$f$",
        f"CREATE EVENT TRIGGER frost ON ddl_command_end WHEN TAG IN ('{tag}') EXECUTE FUNCTION public.frost()",
    )


# ---- one provocation for each code; what they return is the failure


def manifest_invalid(db: Database) -> Result:
    result = db.reconcile("roles: [{name: none}, {name: r, inherit: 7}]")
    assert [problem["path"] for problem in result.problems] == ["roles[0].name", "roles[1].inherit"]
    return result


def not_supported(db: Database) -> Result:
    """A role's name that is not UTF-8, from a database of another encoding, and a privilege of it to be revoked."""
    other = f"{db.name}_ascii"
    db.sql(f"CREATE DATABASE {other} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    session = db.connect(dbname=other)
    session.execute("SET client_encoding = 'SQL_ASCII'")
    try:
        session.execute(b'CREATE ROLE "caf\xe9"; GRANT CREATE ON SCHEMA public TO "caf\xe9"')
        return db.reconcile("schemas: [{name: public}]", login_db=other, undeclared_grantees="revoke")
    finally:
        session.execute(b'DROP OWNED BY "caf\xe9"; DROP ROLE "caf\xe9"')
        session.close()
        db.sql(f"DROP DATABASE {other} WITH (FORCE)")


def missing_library(db: Database) -> Result:
    return db.reconcile(HUSH, blocked=("psycopg", "psycopg_binary", "psycopg_c"), **KEY)


def library_too_old(db: Database) -> Result:
    return db.reconcile(HUSH, prelude="import psycopg; psycopg.__version__ = '3.1.19'", **KEY)


def unsupported_version(db: Database) -> Result:
    old = OldServer("13.22")
    old.start()
    try:
        address = {"login_unix_socket": None, "login_host": "127.0.0.1", "login_port": old.port}
        return db.reconcile(HUSH, **address, **KEY)
    finally:
        old.listener.close()


def connection_failed(db: Database) -> Result:
    return db.reconcile(HUSH, login_unix_socket="/nonexistent", login_password=SECRET, **KEY)


def authentication_failed(db: Database) -> Result:
    address = {"login_unix_socket": None, "login_host": "127.0.0.1", "login_password": SECRET}
    return db.reconcile(APP, **address)


def wrong_cluster(db: Database) -> Result:
    result = db.reconcile(HUSH, expected_system_identifier="12345", **KEY)
    assert result.problems[0]["path"] == "expected_system_identifier"
    return result


def object_missing(db: Database) -> Result:
    grant = "{role: app, privileges: [SELECT], object: {type: table, schema: %s, name: t}}"
    result = db.reconcile(f"{HUSH}\ngrants: [{grant % 'nowhere'}, {grant % 'public'}]", **KEY)
    assert [problem["object"] for problem in result.problems] == ["nowhere", "public.t"]
    assert result.plan
    return result


def insufficient_privilege(db: Database) -> Result:
    db.sql("CREATE ROLE weak LOGIN", f"GRANT CREATE ON DATABASE {db.name} TO weak")
    result = db.reconcile(HUSH, login_user="weak", **KEY)
    assert result.problems[0]["role"] == "app" and "CREATEROLE" in result.problems[0]["hint"]
    assert "********" in "".join(result.plan)
    return result


def dependent_privileges(db: Database) -> Result:
    """A grant option goes, and what was given by it lies on an object that nothing makes managed."""
    db.sql(
        "CREATE ROLE mid; CREATE ROLE leaf; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO mid; CREATE TABLE s.t (a int)"
    )
    db.sql("GRANT SELECT ON s.t TO mid WITH GRANT OPTION; SET ROLE mid; GRANT SELECT ON s.t TO leaf; RESET ROLE")
    rule = "{role: mid, privileges: [SELECT], object: {type: table, schema: s, name: t}, ensure: absent}"
    result = db.reconcile(f"roles: [{{name: mid}}]\ngrants: [{rule}]")
    assert "leaf" in result.msg
    return result


def guard(db: Database) -> Result:
    db.sql("CREATE ROLE x LOGIN; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO x")
    db.connect(user="x")
    result = db.reconcile(f"{HUSH}\nschemas: [{{name: s}}]", **KEY)
    assert "x would lose 1 privilege and is connected" in result.msg
    assert result.plan[-1] == 'REVOKE USAGE ON SCHEMA "s" FROM "x"'
    return result


def self_protection(db: Database) -> Result:
    db.sql("CREATE ROLE su SUPERUSER LOGIN")
    return db.reconcile("roles: [{name: su, superuser: false}]", login_user="su")


def plan_too_large(db: Database) -> Result:
    db.sql("CREATE ROLE x; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO x")
    result = db.reconcile(f"{HUSH}\nschemas: [{{name: s}}]", max_revokes=0, **KEY)
    assert result.plan and result.problems[0]["path"] == "max_revokes"
    return result


def plan_changed(db: Database) -> Result:
    result = db.reconcile(HUSH, expected_digest="sha256:" + "0" * 64, **KEY)
    assert 'CREATE ROLE "app" LOGIN' in result.plan
    return result


def fingerprint_key_missing(db: Database) -> Result:
    result = db.reconcile(HUSH)
    assert result.problems[0]["path"] == "roles[0].password" and "fingerprint_key" in result.problems[0]["hint"]
    return result


def lock_timeout(db: Database) -> Result:
    holder(db, TURN, application_name="nightly")
    result = db.reconcile(HUSH, lock_timeout=1, **KEY)
    assert (result.sqlstate, result.statement) == ("55P03", TURN)
    assert "nightly" in result.msg
    return result


def collision(db: Database) -> Result:
    """As it looks where another session was quicker, three times."""
    freeze(db, "GRANT", "RAISE EXCEPTION 'tuple concurrently updated' USING ERRCODE = 'XX000', DETAIL = 'who knows'")
    db.sql("CREATE SCHEMA s")
    grant = "{role: app, privileges: [USAGE], object: {type: schema, name: s}}"
    result = db.reconcile(f"{HUSH}\ngrants: [{grant}]", **KEY)
    assert (result.sqlstate, result.detail) == ("XX000", "who knows")
    assert result.statement == 'GRANT USAGE ON SCHEMA "s" TO "app"' == result.plan[-1]
    return result


def read_only_server(db: Database) -> Result:
    """A server that answers as a read-only one does."""
    freeze(
        db, "GRANT", "RAISE read_only_sql_transaction USING MESSAGE = 'cannot execute GRANT in a read-only transaction'"
    )
    db.sql("CREATE SCHEMA s")
    grant = "{role: app, privileges: [USAGE], object: {type: schema, name: s}}"
    result = db.reconcile(f"{HUSH}\ngrants: [{grant}]", **KEY)
    assert result.sqlstate == "25006" and result.statement.startswith("GRANT USAGE")
    return result


def too_many_locks(db: Database) -> Result:
    freeze(
        db,
        "GRANT",
        "RAISE SQLSTATE '53200' USING MESSAGE = 'out of shared memory', HINT = 'Raise max_locks_per_transaction.'",
    )
    db.sql("CREATE SCHEMA s")
    grant = "{role: app, privileges: [USAGE], object: {type: schema, name: s}}"
    result = db.reconcile(f"{HUSH}\ngrants: [{grant}]", **KEY)
    assert result.sqlstate == "53200"
    return result


def not_converged(db: Database) -> Result:
    """Somebody's trigger takes back what the run has just given."""
    freeze(db, "GRANT", "REVOKE USAGE ON SCHEMA s FROM app")
    db.sql("CREATE SCHEMA s")
    grant = "{role: app, privileges: [USAGE], object: {type: schema, name: s}}"
    result = db.reconcile(f"{HUSH}\ngrants: [{grant}]", **KEY)
    assert any('GRANT USAGE ON SCHEMA "s" TO "app"' in problem["message"] for problem in result.problems)
    assert result.plan
    return result


def server_error(db: Database) -> Result:
    """The server's own text, DETAIL and HINT, and nothing of the statement's secret, which it repeats."""
    db.sql("CREATE SCHEMA s")
    act = f"RAISE EXCEPTION 'grants are frozen, said {SECRET}' USING DETAIL = 'until Monday {SECRET}', HINT = 'Ask {SECRET}.', ERRCODE = 'P0042'"
    freeze(db, "GRANT", act)
    grant = "{role: app, privileges: [USAGE], object: {type: schema, name: s}}"
    result = db.reconcile(f"{HUSH}\ngrants: [{grant}]", **KEY)
    assert result.msg == "grants are frozen, said ********"
    assert (result.sqlstate, result.detail, result.hint) == ("P0042", "until Monday ********", "Ask ********.")
    assert result.statement == 'GRANT USAGE ON SCHEMA "s" TO "app"'
    assert "ALTER ROLE \"app\" PASSWORD '********'" in result.plan
    return result


def outcome_unknown(db: Database) -> Result:
    """The connection breaks during COMMIT, and nobody can be asked afterwards."""
    prelude = """
import ansible_collections.pg_access.reconcile.plugins.module_utils.transaction as transaction
import psycopg
plain = psycopg.Connection.execute
def execute(self, query, *rest, **more):
    if query == 'COMMIT':
        self.close()
    return plain(self, query, *rest, **more)
psycopg.Connection.execute = execute
transaction._outcome = lambda *_: None
"""
    return db.reconcile(HUSH, prelude=prelude, **KEY)


def internal_error(db: Database) -> Result:
    """A fault of the collection: its type and place, and no text, which could hold a secret."""
    prelude = f"""
import ansible_collections.pg_access.reconcile.plugins.module_utils.plan as plan
def broken(*_, **__):
    raise KeyError({SECRET!r})
plan.make_plan = broken
"""
    result = db.reconcile(HUSH, prelude=prelude, **KEY)
    assert result.msg.startswith("Internal error: KeyError at ")
    return result


#: What comes before the server, or needs no more of it than that it is there: tried on one version.
ANYWHERE: list[Callable[[Database], Result]] = [
    manifest_invalid, missing_library, library_too_old, unsupported_version, connection_failed, authentication_failed,
    wrong_cluster, plan_changed, fingerprint_key_missing, outcome_unknown, internal_error,
]  # fmt: skip
PROVOKED: list[Callable[[Database], Result]] = [
    not_supported, object_missing, insufficient_privilege, dependent_privileges, guard, self_protection, plan_too_large,
    lock_timeout, collision, read_only_server, too_many_locks, not_converged, server_error,
]  # fmt: skip


def check(db: Database, provoke: Callable[[Database], Result]) -> None:
    result = provoke(db)
    shape(result, provoke.__name__)
    assert "app" not in db.roles()
    assert db.records() == {}


@pytest.mark.parametrize("provoke", PROVOKED, ids=lambda function: function.__name__)
def test_error_class(db: Database, provoke: Callable[[Database], Result]) -> None:
    check(db, provoke)


@pytest.mark.versions(min=18)
@pytest.mark.parametrize("provoke", ANYWHERE, ids=lambda function: function.__name__)
def test_error_class_before_the_server(db: Database, provoke: Callable[[Database], Result]) -> None:
    check(db, provoke)


def test_every_code_is_provoked() -> None:
    # Tried where retirements are.
    elsewhere = {"drop_blocked", "partially_applied"}
    assert {function.__name__ for function in [*PROVOKED, *ANYWHERE]} | elsewhere == ERROR_CODES
    assert PASSWORD != SECRET


# ---- CHK-05: warnings of the server


def warn_about(db: Database, *schemas: str) -> None:
    """From now on the server makes these schemas and warns about it."""
    names = ", ".join(f"'{name}'" for name in schemas)
    freeze(
        db, "CREATE SCHEMA",
        f"RAISE WARNING 'frost on %, {SECRET}', (SELECT object_identity FROM pg_event_trigger_ddl_commands()) "
        "USING DETAIL = 'it is cold', HINT = 'Wait.', ERRCODE = 'P0042'",
        f"EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity IN ({names}))",
    )  # fmt: skip


LAST_ONLY = pytest.mark.versions(min=18)


@pytest.mark.parametrize(
    "numbers", [[150, 151], *(pytest.param(numbers, marks=LAST_ONLY) for numbers in ([0], [1], [298], [299], [0, 299]))]
)
def test_CHK_05_a_warning_is_told_with_its_statement(db: Database, numbers: list[int]) -> None:
    """Whatever number of answers arrives with it, before or after; and nothing of the plan is left."""
    names = [f"s{number:03}" for number in range(300)]
    warn_about(db, *(names[number] for number in numbers))
    sections = {"roles": [{"name": "app", "password": SECRET}], "schemas": [{"name": name} for name in names]}
    result = db.fails(sections, "server_error", check_too=False, **KEY)
    shape(result, "server_error")
    about = [f"s{number:03}" for number in numbers]
    assert result.msg.endswith(f"with a warning, so the plan was rolled back: frost on {about[0]}, ********")
    assert result.statement == f'CREATE SCHEMA "{about[0]}"'
    assert (result.sqlstate, result.detail, result.hint) == ("P0042", "it is cold", "Wait.")
    assert [problem["message"] for problem in result.problems] == [
        f'P0042: frost on {name}, ******** (answer to: CREATE SCHEMA "{name}")' for name in about
    ]
    assert len(result.plan) > 300


def test_CHK_05_a_notice_is_no_warning(db: Database) -> None:
    freeze(db, "CREATE SCHEMA", "RAISE NOTICE 'just so'; RAISE INFO 'by the way'")
    db.converge("schemas: [{name: s}]")


def test_CHK_05_a_large_plan_meets_an_error_in_the_middle(db: Database) -> None:
    """More than the network holds at once: statements go out while answers come in."""
    names = [f"schema_{number:04}_{'x' * 40}" for number in range(3000)]
    act = "RAISE EXCEPTION 'frost'"
    freeze(
        db,
        "CREATE SCHEMA",
        act,
        f"EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity = '{names[2000]}')",
    )
    manifest = {"schemas": [{"name": name} for name in names]}
    result = db.fails(manifest, "server_error", "frost", check_too=False)
    assert result.statement == f'CREATE SCHEMA "{names[2000]}"'
    # As much of it as AWX takes.
    assert result.truncated is True
    assert len(result.plan) > 1000
    assert result.plan == [f'CREATE SCHEMA "{name}"' for name in names][: len(result.plan)]
