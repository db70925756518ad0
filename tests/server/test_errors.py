# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every way to fail: its ``error_code``, a sentence that says what to do, and nothing applied."""

from __future__ import annotations

import os
import re
import runpy
import socket
import struct
import threading
from pathlib import Path

import pytest
import yaml
from harness import Database
from servers import PASSWORD

R = "roles: [{name: r}]"


def tcp(db: Database, **options: object) -> dict[str, object]:
    """Options that connect over TCP, where the server asks for SCRAM passwords."""
    return {"login_unix_socket": None, "login_host": "127.0.0.1", "login_password": PASSWORD, **options}


@pytest.mark.parametrize("check", [True, False])
def test_a_socket_where_no_server_is(db: Database, check: bool) -> None:
    result = db.reconcile(R, check=check, login_unix_socket="/nonexistent")
    assert result.error_code == "connection_failed"
    assert "login_host" in result.msg or "login_unix_socket" in result.msg


def test_a_port_where_no_server_is(db: Database) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    db.fails(R, "connection_failed", str(port), **tcp(db, login_port=port))


def test_a_host_that_nobody_knows(db: Database) -> None:
    db.fails(R, "connection_failed", **tcp(db, login_host="no-such-host.invalid"))


#: Options, and what the message says about the cause, after libpq's own words.
CAUSES: dict[str, tuple[dict[str, object], str]] = {
    "refused": (
        {"login_port": 1},
        "Connection refused. Is the server running on that host and accepting TCP/IP connections? The machine is there and no "
        "server listens: check login_host, login_port and that the server is running (AWX's credential: Host and Port).",
    ),
    "host": (
        {"login_host": "no-such-host.invalid"},
        ". Check login_host: nobody knows that name where the module runs (AWX's credential: Host).",
    ),
    "socket": (
        {"login_host": None, "login_unix_socket": "/nonexistent"},
        "No such file or directory. Is the server running locally and accepting connections on that socket? Without login_host "
        "the connection goes to a socket on the machine that the module runs on: check login_host, or login_unix_socket and "
        "login_port, and that the server is running (AWX's credential: Host and Port).",
    ),
    "no password": (
        {"login_password": None},
        "no password supplied. The server asks for a password, and none was given: give login_password (AWX's credential: "
        "Password).",
    ),
    "wrong password": (
        {"login_password": "wrong-s3cret"},
        'password authentication failed for user "postgres". Check login_user and login_password (AWX\'s credential: User and '
        "Password).",
    ),
    "no TLS": (
        {"ssl_mode": "require"},
        "server does not support SSL, but SSL was required. The server has no TLS: switch it on there (ssl = on). An ssl_mode "
        "that does without, such as disable, is for networks that nobody else can listen to (AWX's credential: TLS mode).",
    ),
    "TLS mode": ({"connect_params": {"sslmode": "none"}}, ". Check ssl_mode (AWX's credential: TLS mode)."),
    "port": (
        {"connect_params": {"port": "abc"}},
        ". Check login_port, which is a number from 1 to 65535 (AWX's credential: Port).",
    ),
    "service": (
        {"connect_params": {"service": "nowhere"}},
        ". Check PGSERVICE or connect_params.service, and the service file (PGSERVICEFILE) where the module runs.",
    ),
    "database": ({"login_db": "nowhere"}, '"nowhere" does not exist. Check login_db (AWX\'s credential: Database).'),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_the_advice_fits_the_cause(db: Database, cause: str) -> None:
    options, end = CAUSES[cause]
    password = cause in ("no password", "wrong password")
    result = db.reconcile(R, **tcp(db, **options))
    assert result.error_code == ("authentication_failed" if password else "connection_failed"), result
    assert result.msg.startswith("Cannot connect: ") and result.msg.endswith(end), result.msg
    assert "  " not in result.msg and "?." not in result.msg and ".." not in result.msg


def test_the_fields_are_those_of_the_credential() -> None:
    root = Path(__file__).resolve().parents[2]
    role = (root / "roles/awx_job_template/vars/main.yml").read_text(encoding="utf-8")
    spoken = runpy.run_path(str(root / "plugins/module_utils/advice.py"))["FIELDS"]
    labels = re.findall(r"^ +label: (.+)$", role, re.M)
    assert set(spoken.values()) <= set(labels)


def test_the_right_password(db: Database) -> None:
    assert db.converge(R, **tcp(db)).changed


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("password", ["wrong-s3cret", None])
def test_a_wrong_password(db: Database, check: bool, password: str | None) -> None:
    result = db.reconcile(R, check=check, **tcp(db, login_password=password))
    assert result.error_code == "authentication_failed"
    assert "login_password" in result.msg or "login_user" in result.msg
    assert "wrong-s3cret" not in str(result)


def test_a_user_that_does_not_exist(db: Database) -> None:
    result = db.fails(R, "authentication_failed", "nobody_here", **tcp(db, login_user="nobody_here"))
    assert "login_user" in result.msg or "login_password" in result.msg


def test_a_user_that_may_not_log_in(db: Database) -> None:
    db.sql("CREATE ROLE nologin")
    db.fails(R, ("authentication_failed", "connection_failed"), "nologin", login_user="nologin")


def test_a_database_that_does_not_exist(db: Database) -> None:
    db.fails(R, ("connection_failed", "object_missing"), "nowhere", login_db="nowhere")


def test_no_database_named(db: Database) -> None:
    db.fails(R, ("manifest_invalid", "connection_failed"), "login_db", login_db=None)


@pytest.mark.parametrize(
    "options",
    [{"connect_params": {"dbname": "DATABASE"}}, {"environment": {"PGDATABASE": "DATABASE"}}],
    ids=["connect_params", "environment"],
)
def test_the_database_named_elsewhere(db: Database, options: dict[str, dict[str, str]]) -> None:
    filled = {key: dict.fromkeys(value, db.name) for key, value in options.items()}
    result = db.reconcile(R, login_db=None, **filled)  # type: ignore[arg-type]
    assert not result.failed, result
    assert result.server["database"] == db.name


def test_libpq_environment_fills_in(db: Database) -> None:
    environment = {
        "PGHOST": db.server.socket_directory,
        "PGPORT": str(db.server.port),
        "PGUSER": "postgres",
        "PGDATABASE": db.name,
        # Empty means not given.
        "PGSSLMODE": "",
        "PGSSLROOTCERT": "",
        "PGPASSWORD": "",
        "PGSERVICE": "",
    }
    result = db.reconcile(
        R, environment=environment, login_unix_socket=None, login_port=None, login_user=None, login_db=None
    )
    assert not result.failed, result
    assert result.server["database"] == db.name


def test_empty_connection_options_mean_not_given(db: Database) -> None:
    result = db.reconcile(R, login_host="", login_password="", ssl_cert="", ssl_mode="", session_role="", ca_cert="")
    assert not result.failed, result


@pytest.mark.parametrize("name", ["password", "passfile", "sslpassword"])
def test_secrets_do_not_belong_in_connect_params(db: Database, name: str) -> None:
    result = db.fails(R, "manifest_invalid", "login_password", connect_params={name: "s3cret-value"})
    assert "s3cret-value" not in str(result)


def test_connect_params_reach_libpq(db: Database) -> None:
    with db.statements():
        result = db.reconcile(R, connect_params={"application_name": "ticket 42", "options": "-c statement_timeout=1h"})
    assert not result.failed, result
    result = db.reconcile(R, connect_params={"no_such_parameter": "x"})
    assert result.failed
    assert "no_such_parameter" in result.text


@pytest.mark.parametrize("check", [True, False])
def test_psycopg_is_missing(db: Database, check: bool) -> None:
    result = db.reconcile(R, check=check, blocked=("psycopg", "psycopg_binary", "psycopg_c"))
    assert result.error_code == "missing_library"
    assert "psycopg" in result.msg
    assert "pip install" in result.msg
    assert db.roles() == set()


def test_yaml_is_missing_where_it_is_needed(db: Database, tmp_path: Path) -> None:
    (tmp_path / "access.yml").write_text(R)
    tmp_path.chmod(0o755)
    result = db.reconcile(None, manifest_files=[str(tmp_path / "access.yml")], blocked=("yaml",))
    assert result.error_code == "missing_library"
    assert "yaml" in result.msg.lower()
    # Without files nobody needs it.
    assert not db.reconcile(R, blocked=("yaml",)).failed


def test_a_mistake_in_the_manifest_is_told_without_psycopg_too(db: Database) -> None:
    result = db.reconcile("roles: [{name: none}]", blocked=("psycopg",))
    assert result.error_code in ("manifest_invalid", "missing_library")


def test_manifest_files(db: Database, tmp_path: Path) -> None:
    roles, access = tmp_path / "roles.yml", tmp_path / "access.yml"
    roles.write_text(R)
    access.write_text("schemas: [{name: s}]\ngrants: [{role: r, privileges: [USAGE], true: {type: schema, name: s}}]\n")
    db.converge(None, manifest_files=[str(roles), str(access)])
    assert "r=U/postgres" in (db.acl("s", "schema") or ())
    access.write_text(access.read_text() + "roles: [{name: r}]\n")
    db.fails(None, "manifest_invalid", "roles.yml", "access.yml", manifest_files=[str(roles), str(access)])
    db.fails(R, "manifest_invalid", "manifest_files", manifest_files=[str(roles)])
    db.fails(None, "manifest_invalid", "roles.yml", manifest_files=["roles.yml"])
    db.fails(None, "manifest_invalid", "gone.yml", manifest_files=[str(tmp_path / "gone.yml")])


def test_privileges_that_the_executor_lacks(db: Database) -> None:
    db.sql("CREATE ROLE plain LOGIN; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE ROLE r")
    for manifest in (
        "roles: [{name: n}]",
        R + "\nschemas: [{name: n}]",
        R
        + "\nschemas: [{name: s}]\ngrants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}]",
    ):
        # Found before the first statement, and in a check run.
        result = db.fails(
            manifest, "insufficient_privilege", "s.t" if "grants" in manifest else "n", login_user="plain"
        )
        assert not result.get("sqlstate")
        assert result.plan


def test_a_missing_object_in_check_mode_and_in_the_run(db: Database) -> None:
    db.sql("CREATE SCHEMA s")
    result = db.fails(
        R + "\ngrants:\n"
        "  - {role: r, privileges: [SELECT], object: {type: table, schema: s, name: nope}}\n"
        "  - {role: r, privileges: [EXECUTE], object: {type: function, schema: s, name: nope(int)}}\n"
        "  - {role: r, privileges: [USAGE], object: {type: sequence, schema: s, name: nope_seq}}\n",
        "object_missing",
        "nope(int)",
        "nope_seq",
    )
    assert sorted((problem["path"] or "").split(".")[0] for problem in result.problems) == [
        "grants[0]",
        "grants[1]",
        "grants[2]",
    ]


def test_statement_timeout(db: Database) -> None:
    """A statement that takes too long ends the run; the option sets how long."""
    db.sql("CREATE ROLE r; CREATE SCHEMA s")
    other = db.connect(autocommit=False)
    other.execute("GRANT USAGE ON SCHEMA s TO postgres")
    manifest = R + "\nschemas: [{name: s}]\ngrants: [{role: r, privileges: [USAGE], object: {type: schema, name: s}}]"
    before = db.snapshot()
    result = db.reconcile(manifest, statement_timeout=1)
    assert result.failed
    assert result.error_code in ("lock_timeout", "server_error", "collision"), result
    assert db.snapshot() == before
    other.rollback()
    db.converge(manifest)


def test_a_lock_that_somebody_holds(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s")
    other = db.connect(autocommit=False)
    other.execute("GRANT USAGE ON SCHEMA s TO postgres")
    manifest = R + "\nschemas: [{name: s}]\ngrants: [{role: r, privileges: [USAGE], object: {type: schema, name: s}}]"
    result = db.reconcile(manifest)
    assert result.failed
    assert result.error_code in ("lock_timeout", "collision"), result


def test_an_unknown_option(db: Database) -> None:
    result = db.fails(R, "manifest_invalid", "reconcilation_mode", reconcilation_mode="adopt")
    assert "reconciliation_mode" in result.text


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("reconciliation_mode", "loose"),
        ("undeclared_grantees", "drop"),
        ("login_port", "many"),
        ("adopt_schema_owners", "perhaps"),
        ("statement_timeout", -1),
    ],
)
def test_an_impossible_value_of_an_option(db: Database, option: str, value: object) -> None:
    db.fails(R, "manifest_invalid", option, **{option: value})


def test_all_failures_are_one_json_object(db: Database) -> None:
    """As a program of its own: the answer is on standard output, and the exit code is not 0."""
    program = db.runner.process(
        db.arguments("roles: [{name: none}]"),
        {**os.environ, "PYTHONPATH": str(_collections())},
        "pg_role_reconcile",
        (),
    )
    stdout, stderr = program.communicate(timeout=60)
    assert program.returncode == 1
    assert yaml.safe_load(stdout)["failed"] is True
    assert stderr == ""


def _collections() -> Path:
    from harness import COLLECTIONS

    return COLLECTIONS


# A server that is too old


class OldServer(threading.Thread):
    """Enough of the protocol to be taken for an old PostgreSQL. Keeps what it is asked."""

    def __init__(self, version: str) -> None:
        super().__init__(daemon=True)
        self.version = version
        self.asked: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    @staticmethod
    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("!i", len(body) + 4) + body

    def run(self) -> None:
        while True:
            try:
                connection, _address = self.listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                self.serve(connection, stream)

    def serve(self, connection: socket.socket, stream: object) -> None:
        read = stream.read  # type: ignore[attr-defined]
        ready = self.message(b"Z", b"I")
        while True:
            (length,) = struct.unpack("!i", read(4))
            body = read(length - 4)
            if struct.unpack("!i", body[:4])[0] != 3 << 16:
                # SSL or GSS encryption: not here.
                connection.sendall(b"N")
                continue
            break
        settings = {"server_version": self.version, "client_encoding": "UTF8", "server_encoding": "UTF8",
                    "standard_conforming_strings": "on", "integer_datetimes": "on", "DateStyle": "ISO, MDY"}  # fmt: skip
        answer = self.message(b"R", struct.pack("!i", 0))
        for name, value in settings.items():
            answer += self.message(b"S", f"{name}\0{value}\0".encode())
        connection.sendall(answer + self.message(b"K", struct.pack("!ii", 1, 2)) + ready)
        while True:
            kind = read(1)
            if not kind or kind == b"X":
                return
            (length,) = struct.unpack("!i", read(4))
            body = read(length - 4)
            if kind in b"QP":
                self.asked.append(body.decode(errors="replace").replace("\0", " ").strip())
            if kind in b"QS":
                error = b"SERROR\0C42601\0Msyntax error: this server is too old\0\0"
                connection.sendall(self.message(b"E", error) + ready)


@pytest.mark.parametrize("version", ["13.22", "9.6.24", "12beta1"])
@pytest.mark.versions(min=18)
def test_VER_05_a_server_that_is_too_old(db: Database, version: str) -> None:
    old = OldServer(version)
    old.start()
    try:
        for check in (True, False):
            result = db.reconcile(R, check=check, **tcp(db, login_port=old.port))
            assert result.error_code == "unsupported_version", result
            assert version[:2].rstrip(".") in result.msg
            assert "14" in result.msg
    finally:
        old.listener.close()
    # Nothing was sent that such a server might not know.
    assert [text for text in old.asked if not text.upper().startswith(("ROLLBACK", "SHOW"))] == []
