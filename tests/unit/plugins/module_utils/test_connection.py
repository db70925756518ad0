# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From options to libpq's parameters, and failures in the shape in which they are returned."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils import connection
from ansible_collections.pg_access.reconcile.plugins.module_utils.connection import (
    clean_environment,
    connect,
    connection_parameters,
    is_private,
    require_psycopg,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.failure import LARGEST, Failure, of_problems
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import Problem

NAME = {"fallback_application_name": "pg_access.reconcile"}


def test_options_become_libpqs_parameters_and_empty_ones_are_left_to_libpq() -> None:
    options = {
        "login_host": "db",
        "login_port": 5433,
        "login_user": "u",
        "login_password": "p",
        "login_db": "app",
        "ssl_mode": "verify-full",
        "ca_cert": "/ca",
        "ssl_cert": "",
        "ssl_key": None,
        "session_role": "deploy",
    }
    assert connection_parameters(options, {}) == {
        "host": "db",
        "port": 5433,
        "user": "u",
        "password": "p",
        "dbname": "app",
        "sslmode": "verify-full",
        "sslrootcert": "/ca",
        **NAME,
    }


@pytest.mark.parametrize(
    ("host", "socket", "expected"),
    [
        (None, "/run", "/run"),
        ("localhost", "/run", "/run"),
        ("db", "/run", "db"),
        ("localhost", None, "localhost"),
        (None, None, None),
    ],
)
def test_a_socket_takes_the_place_of_localhost_only(host: Any, socket: Any, expected: Any) -> None:
    options = {"login_db": "app", "login_host": host, "login_unix_socket": socket}
    assert connection_parameters(options, {}).get("host") == expected


def test_connect_params_win_and_may_name_the_application() -> None:
    extra = {"dbname": "other", "connect_timeout": 3, "fallback_application_name": "mine", "options": ""}
    found = connection_parameters({"login_db": "app", "connect_params": extra}, {})
    assert found == {"dbname": "other", "connect_timeout": 3, "fallback_application_name": "mine"}


@pytest.mark.parametrize("name", ["password", "passfile", "sslpassword"])
def test_a_secret_in_connect_params_is_refused_without_being_repeated(name: str) -> None:
    with pytest.raises(Failure) as caught:
        connection_parameters({"login_db": "app", "connect_params": {name: "hush"}}, {})
    assert caught.value.code == "manifest_invalid"
    assert caught.value.problems[0].path == f"connect_params.{name}"
    assert "hush" not in str(caught.value.as_result()) + caught.value.message


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        ({"login_db": "app"}, {}),
        ({"connect_params": {"dbname": "app"}}, {}),
        ({"connect_params": {"service": "x"}}, {}),
        ({}, {"PGDATABASE": "app"}),
        ({}, {"PGSERVICE": "x"}),
    ],
)
def test_anything_may_name_the_database(options: Dict[str, Any], environment: Dict[str, str]) -> None:
    connection_parameters(options, environment)


@pytest.mark.parametrize("environment", [{}, {"PGDATABASE": ""}, {"PGUSER": "app"}])
def test_a_database_that_nothing_names_is_never_guessed(environment: Dict[str, str]) -> None:
    with pytest.raises(Failure) as caught:
        connection_parameters({"login_user": "app"}, environment)
    assert [problem.path for problem in caught.value.problems] == ["login_db"]


def test_empty_libpq_variables_are_no_values() -> None:
    environment = {"PGHOST": "", "PGUSER": "u", "OTHER": ""}
    clean_environment(environment)
    assert environment == {"PGUSER": "u", "OTHER": ""}


def test_a_root_certificate_in_an_empty_file_is_none(tmp_path: Path) -> None:
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.write_text("")
    full.write_text("x")
    for value, stays in ((str(empty), False), (str(full), True), ("system", True), (str(tmp_path / "none"), True)):
        environment = {"PGSSLROOTCERT": value}
        clean_environment(environment)
        assert ("PGSSLROOTCERT" in environment) is stays


def test_without_psycopg_the_failure_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PSYCOPG_PROBLEM", "No module named 'psycopg'")
    with pytest.raises(Failure, match="pip install") as caught:
        require_psycopg()
    assert caught.value.code == "missing_library"


@pytest.mark.parametrize(
    ("version", "enough"), [("3.1.20", False), ("3.2.0", False), ("3.2.1", True), ("3.10.0", True)]
)
def test_psycopgs_version_is_compared_as_numbers(monkeypatch: pytest.MonkeyPatch, version: str, enough: bool) -> None:
    psycopg = pytest.importorskip("psycopg")
    monkeypatch.setattr(psycopg, "__version__", version)
    if enough:
        require_psycopg()
    else:
        with pytest.raises(Failure) as caught:
            require_psycopg()
        assert caught.value.code == "library_too_old"


# ---- failures --------------------------------------------------------------------------------------------------------


#: The one problem of a failure that names none.
ONLY = {"path": None, "file": None, "role": None, "object": None, "message": "x"}


def test_a_failure_returns_only_what_it_knows() -> None:
    assert Failure("collision", "x", hint="y").as_result() == {
        "error_code": "collision",
        "problems": [{**ONLY, "hint": "y"}],
        "sql": [],
        "hint": "y",
    }


def test_a_failure_of_any_size_reaches_awx() -> None:
    problems = [Problem(message=f"{number} {'x' * 100}") for number in range(10_000)]
    plan = [f"GRANT {number} {'x' * 300}" for number in range(10_000)]
    result = Failure("guard", "x", problems=problems, plan=plan).as_result()
    assert len(json.dumps(result)) <= LARGEST
    assert result["truncated"] is True
    assert result["plan"] and result["plan"] == plan[: len(result["plan"])]
    assert 0 < len(result["problems"]) < 10_000
    one = Failure("server_error", "x", plan=["x" * LARGEST]).as_result()
    assert one["plan"] == [] and one["truncated"] is True


def test_a_failure_returns_all_that_it_knows() -> None:
    full = Failure("database_error", "x", sqlstate="42501", statement="GRANT", detail="d", hint="", plan=[])
    assert full.as_result() == {
        "error_code": "database_error",
        "problems": [{**ONLY, "hint": ""}],
        "sql": [],
        "sqlstate": "42501",
        "statement": "GRANT",
        "detail": "d",
        "hint": "",
        "plan": [],
    }


def test_one_failure_stands_for_all_problems() -> None:
    first = Problem(path="roles[0]", message="is wrong", hint="Mend it.", code="object_missing", role="a")
    one = of_problems([first])
    assert (one.code, one.message) == ("object_missing", "roles[0]: is wrong (Mend it.)")
    both = of_problems([first, Problem(message="other", code="guard")], plan=["SELECT"])
    assert (both.code, both.message) == ("object_missing", "roles[0]: is wrong (Mend it.) - and 1 more, see problems")
    assert both.plan == ["SELECT"]
    assert both.as_result()["problems"][0] == {
        "path": "roles[0]",
        "file": None,
        "role": "a",
        "object": None,
        "message": "is wrong",
        "hint": "Mend it.",
    }


# ---- who can read along ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encrypted", "host", "address", "private"),
    [
        (True, "db.example.com", "192.0.2.1", True),
        (False, "/run/postgresql", "", True),
        (False, "@abstract", "", True),
        (False, "", "", True),
        (False, "localhost", "127.0.0.1", True),
        (False, "127.1.2.3", "", True),
        (False, "::1", "::1", True),
        (False, "localhost", "192.0.2.1", False),
        (False, "localhost", "", False),
        (False, "db.example.com", "192.0.2.1", False),
        (False, "127.0.0.1", "192.0.2.1", False),
        (False, "10.0.0.1", "", False),
        (False, "::ffff:192.0.2.1", "", False),
    ],
)
def test_a_connection_is_private_where_no_network_sees_it(
    encrypted: bool, host: str, address: str, private: bool
) -> None:
    connection: Any = SimpleNamespace(
        pgconn=SimpleNamespace(ssl_in_use=encrypted), info=SimpleNamespace(host=host, hostaddr=address)
    )
    assert is_private(connection) is private


@pytest.mark.parametrize(
    ("options", "path", "message"),
    [
        ({"login_user": "a\0b"}, "login_user", "must not contain a NUL character"),
        ({"login_host": "\ud800"}, "login_host", "is not valid Unicode text"),
        ({"session_role": "x" * 64}, "session_role", "is 64 bytes long"),
        ({"connect_params": {"options": "-c a=b\0"}}, "connect_params.options", "must not contain a NUL character"),
        ({"connect_params": {"options": ["x"]}}, "connect_params.options", "must be text, not a list"),
        ({"connect_params": {"keepalives": True}}, "connect_params.keepalives", "must be text, not a boolean"),
        # 0123 may have become another database's name.
        ({"connect_params": {"dbname": 83}}, "connect_params.dbname", "must be text, not the number 83"),
        ({"connect_params": {"user": 83}}, "connect_params.user", "must be text, not the number 83"),
        ({"connect_params": {"autocommit": "x"}}, "connect_params.autocommit", "libpq has no such parameter"),
        ({"connect_params": {"conninfo": "x"}}, "connect_params.conninfo", "libpq has no such parameter"),
        ({"connect_params": {"sslmod": "x"}}, "connect_params.sslmod", "did you mean 'sslmode'?"),
        ({"connect_params": {"a b": "x"}}, "connect_params.'a b'", "libpq has no such parameter"),
    ],
)
def test_what_libpq_cannot_take(options: Dict[str, Any], path: str, message: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(Failure) as caught:
        connection_parameters({"login_db": "app", **options}, {})
    assert caught.value.code == "manifest_invalid"
    problem = next(problem for problem in caught.value.problems if problem.path == path)
    assert message in problem.message


@pytest.mark.parametrize("host", ["x" * 64 + ".invalid", "a..invalid"])
def test_a_host_that_python_refuses(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setattr("socket.getaddrinfo", refusing)
    with pytest.raises(Failure) as caught:
        connect({"login_db": "app", "login_host": host})
    assert caught.value.code == "connection_failed"


def refusing(host: str, *_more: Any, **_names: Any) -> Any:
    return host.encode("idna")
