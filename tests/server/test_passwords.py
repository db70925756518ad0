# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Passwords: where they come from, what is taken for a verifier, how they are sent, and what LOGIN has to do with them."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import servers
from harness import UNCONNECTED, Cluster, Database, Runner, another_server
from password_support import Executor, K, R, md5, scram, sent, set_verifier, with_password
from servers import PASSWORD

PASSWORDS_R = {"roles": [{"name": "r", "login": True}]}


# Where a password comes from


def test_the_option_passwords(db: Database, executor: Executor) -> None:
    options = {**executor(), **K}
    result = db.converge(PASSWORDS_R, passwords={"r": "s3cret"}, **options)
    assert len(sent(result)) == 1
    assert db.logs_in("r", "s3cret")
    # It is the same password wherever it comes from.
    db.silent(with_password("s3cret", login=True), **options)
    assert len(sent(db.converge(PASSWORDS_R, passwords={"r": "new"}, **options))) == 1
    assert db.logs_in("r", "new")


def test_a_run_without_the_option_leaves_its_roles_alone(db: Database, executor: Executor) -> None:
    options = {**executor(), **K}
    db.converge(PASSWORDS_R, passwords={"r": "s3cret"}, **options)
    db.silent(PASSWORDS_R, **options)
    assert db.logs_in("r", "s3cret")


@UNCONNECTED
@pytest.mark.parametrize("login", [None, False])
def test_passwords_names_only_roles_that_say_login(db: Database, login: bool | None) -> None:
    role = {"name": "app_role", **({} if login is None else {"login": login})}
    result = db.rejects({"roles": [role]}, "app_role", "login: true", passwords={"app_role": "un-guess-able"}, **K)
    assert "un-guess-able" not in str(result)


@UNCONNECTED
def test_passwords_of_a_role_that_nobody_declares(db: Database) -> None:
    result = db.rejects(
        {"roles": [{"name": "app_role", "login": True}]},
        "ap_role",
        "app_role",
        passwords={"ap_role": "un-guess-able"},
        **K,
    )
    assert "un-guess-able" not in str(result)


@UNCONNECTED
@pytest.mark.parametrize("field", [{"password": "un-guess-able"}, {"password_from_env": "APP"}])
def test_a_password_is_given_once(db: Database, field: dict[str, str]) -> None:
    manifest = {"roles": [{"name": "r", "login": True, **field}]}
    result = db.rejects(manifest, "r", "passwords", passwords={"r": "un-guess-able2"}, environment={"APP": "x"}, **K)
    assert "un-guess-able" not in str(result)


@UNCONNECTED
def test_a_password_or_a_variable(db: Database) -> None:
    db.rejects(
        "roles: [{name: r, password: x, password_from_env: APP}]", "roles[0]", "password_from_env",
        environment={"APP": "y"}, **K,
    )  # fmt: skip


@UNCONNECTED
@pytest.mark.parametrize("value", [12345678, True, 1.5, ["a"], {"a": "b"}])
@pytest.mark.parametrize("place", ["password", "passwords"])
def test_only_text_is_a_password(db: Database, place: str, value: Any) -> None:
    if place == "password":
        result = db.rejects(with_password(value), "roles[0].password", **K)
    else:
        result = db.rejects(PASSWORDS_R, "passwords", "r", passwords={"r": value}, **K)
    assert "12345678" not in str(result)
    if not isinstance(value, (list, dict)):
        assert "quote" in result.text


@UNCONNECTED
def test_a_key_of_passwords_that_is_a_template(db: Database) -> None:
    result = db.rejects(PASSWORDS_R, "{{ {app_role: secret} }}", passwords={"{{ app_role }}": "un-guess-able"}, **K)
    assert "un-guess-able" not in str(result)


def test_passwords_as_a_json_string(db: Database) -> None:
    """What a template that is no native one makes of a dict."""
    result = db.converge(PASSWORDS_R, passwords=json.dumps({"r": "s3cret"}), **K)
    assert len(sent(result)) == 1
    assert db.logs_in("r", "s3cret")


@UNCONNECTED
def test_passwords_that_is_no_dict(db: Database) -> None:
    for value in ("un-guess-able", ["un-guess-able"], json.dumps(["un-guess-able"])):
        result = db.rejects(PASSWORDS_R, "passwords", passwords=value, **K)
        assert "un-guess-able" not in str(result)


def test_a_variable_of_the_environment(db: Database, executor: Executor) -> None:
    options = {**executor(), **K, "environment": {"APP_PASSWORD": "s3cret 'x'"}}
    manifest = "roles: [{name: r, password_from_env: APP_PASSWORD}]"
    assert len(sent(db.converge(manifest, **options))) == 1
    assert db.logs_in("r", "s3cret 'x'")
    assert db.attribute("r", "rolcanlogin") is True
    options["environment"] = {"APP_PASSWORD": "new"}
    assert len(sent(db.converge(manifest, **options))) == 1
    assert db.logs_in("r", "new")


@UNCONNECTED
@pytest.mark.parametrize("environment", [{}, {"APP_PASSWORD": ""}])
def test_a_variable_that_is_missing_or_empty(db: Database, environment: dict[str, str]) -> None:
    db.rejects(
        "roles: [{name: r, password_from_env: APP_PASSWORD}]", "roles[0].password_from_env", "APP_PASSWORD",
        environment=environment, **K,
    )  # fmt: skip


@UNCONNECTED
@pytest.mark.parametrize("password", ["a\0b", "\0", "", "a\ud800b"])
def test_what_no_server_would_take(db: Database, password: str) -> None:
    db.rejects(with_password(password), "roles[0].password", **K)
    db.rejects(PASSWORDS_R, "passwords", "r", passwords={"r": password}, **K)


@UNCONNECTED
@pytest.mark.parametrize("format_", [None, "auto", "verifier"])
@pytest.mark.parametrize("verifier", [scram(""), md5("", "r")])
@pytest.mark.parametrize("encryption", ["scram-sha-256", "server"])
def test_a_verifier_of_the_empty_password(db: Database, encryption: str, verifier: str, format_: str | None) -> None:
    more = {"password_encryption": encryption, **({"password_format": format_} if format_ else {})}
    result = db.rejects(with_password(verifier, **more), "roles[0].password", "empty", **K)
    assert verifier not in str(result)


def test_an_external_role_takes_none(db: Database) -> None:
    db.sql("CREATE ROLE r LOGIN")
    for field in ("password: x", "password_from_env: X", "password_encryption: server", "password_format: plain"):
        db.rejects(f"roles: [{{name: r, external: true, {field}}}]", "roles[0]", "external", **K)


# What is a verifier

GOOD = scram("s3cret")
PARTS = GOOD.split("$")
B64_31, B64_33 = (base64.b64encode(b"x" * length).decode() for length in (31, 33))

LOOK_ALIKES = {
    "md5 in capitals": "MD5" + "a" * 32,
    "md5 in mixed case": "Md5" + "0" * 32,
    "md5 with capital digits": "md5" + "A" * 32,
    "md5 with mixed digits": "md5" + "aB" * 16,
    "md5 after a space": " " + md5("s3cret", "r"),
    "md5 before a newline": md5("s3cret", "r") + "\n",
    "prefix only": "SCRAM-SHA-256$",
    "prefix and a word": "SCRAM-SHA-256$secret",
    "prefix in small letters": "scram-sha-256" + GOOD[len("SCRAM-SHA-256") :],
    "prefix in mixed letters": "Scram-Sha-256$x",
    "after a space": " " + GOOD,
    "before a newline": GOOD + "\n",
    "before a tab": GOOD + "\t",
    "no stored key": GOOD.rpartition(":")[0],
    "no padding": GOOD.rstrip("="),
    "urlsafe base64": GOOD.rpartition("$")[0] + "$" + ("-" * 43) + "=:" + GOOD.rpartition(":")[2],
    "not base64 at all": f"SCRAM-SHA-256$4096:{'!' * 24}${PARTS[2]}",
    "a short stored key": f"SCRAM-SHA-256$4096:{PARTS[1].split(':')[1]}${B64_31}:{PARTS[2].split(':')[1]}",
    "a long server key": f"SCRAM-SHA-256$4096:{PARTS[1].split(':')[1]}${PARTS[2].split(':')[0]}:{B64_33}",
    "no iterations": GOOD.replace("4096", ""),
    "words for iterations": GOOD.replace("4096", "many"),
    "one part too many": GOOD + ":" + B64_31,
    "one dollar too many": GOOD + "$x",
    "too long": scram("s3cret", salt=b"s" * 330),
    "0 iterations": scram("s3cret", 0),
    "negative iterations": GOOD.replace("4096", "-1"),
    "10000001 iterations": scram("s3cret", 10000001),
}


@UNCONNECTED
@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_only_looks_like_a_verifier(db: Database, name: str) -> None:
    """PostgreSQL would take it as clear text, so that nobody could log in."""
    value = LOOK_ALIKES[name]
    for more in ({}, {"password_encryption": "server"}, {"password_format": "auto"}, {"password_format": "verifier"}):
        result = db.rejects(with_password(value, **more), "roles[0].password", **K)
        assert value.strip() not in str(result)
    db.rejects(PASSWORDS_R, "passwords", "r", passwords={"r": value}, **K)


def test_plain_is_plain_whatever_it_looks_like(db: Database) -> None:
    values = {f"r{number}": value for number, value in enumerate([*LOOK_ALIKES.values(), GOOD, md5("s3cret", "r")])}
    manifest = {
        "roles": [{"name": name, "password": value, "password_format": "plain"} for name, value in values.items()]
    }
    db.converge(manifest, **K)
    for name, value in values.items():
        assert str(db.verifier(name)).startswith("SCRAM-SHA-256$4096:")
        assert db.verifier(name) != value
        assert db.logs_in(name, value), repr(value)
    db.silent(manifest, update_password="on_drift", **K)


@pytest.mark.parametrize("value", [GOOD, LOOK_ALIKES["md5 in capitals"], md5("s3cret", "r"), "s3cret"])
def test_plain_is_plain_for_the_server_too(db: Database, value: str) -> None:
    """What the server would take for a verifier has to be hashed before."""
    db.converge(with_password(value, password_format="plain", password_encryption="server"), **K)
    assert db.verifier("r") != value
    assert db.logs_in("r", value)


@pytest.mark.parametrize(
    "value", ["md5" + "a" * 31, "md5" + "a" * 33, "md5" + "g" * 32, "SCRAM-SHA-256", "SCRAM-SHA-1$4096:x", "md5", "xmd5" + "a" * 32]
)  # fmt: skip
def test_anything_else_is_a_password(db: Database, value: str) -> None:
    db.converge(with_password(value), **K)
    assert db.logs_in("r", value)


@pytest.mark.versions(min=18)  # seconds of computing that no server is part of
@pytest.mark.parametrize("iterations", [1, 4096, 10000000])
def test_iterations_that_are_fine(db: Database, iterations: int) -> None:
    verifier = scram("s3cret", iterations)
    db.converge(with_password(verifier), **K)
    assert db.verifier("r") == verifier


def test_a_verifier_of_512_bytes_is_fine(db: Database) -> None:
    salts = (scram("s3cret", salt=b"s" * length) for length in range(250, 330))
    longest = max((verifier for verifier in salts if len(verifier) <= 512), key=len)
    assert len(longest) > 508
    db.converge(with_password(longest), **K)
    assert db.verifier("r") == longest
    assert db.logs_in("r", "s3cret")


@UNCONNECTED
@pytest.mark.parametrize("value", ["s3cret", "md5" + "a" * 31])
def test_a_verifier_is_asked_for(db: Database, value: str) -> None:
    result = db.rejects(with_password(value, password_format="verifier"), "roles[0].password", "verifier", **K)
    assert value not in str(result)


@UNCONNECTED
@pytest.mark.parametrize("field", ["password_format: md5", "password_encryption: md5", "password_encryption: plain"])
def test_choices(db: Database, field: str) -> None:
    db.rejects(f"roles: [{{name: r, password: s3cret, {field}}}]", f"roles[0].{field.split(':')[0]}", **K)


# Hashed by the server


@pytest.mark.parametrize("setting", ["md5", "scram-sha-256"])
def test_the_server_hashes(db: Database, executor: Executor, setting: str) -> None:
    db.sql(f"ALTER DATABASE {db.name} SET password_encryption = '{setting}'")
    options = {**executor(), **K}
    manifest = with_password("s3cret", password_encryption="server")
    result = db.converge(manifest, **options)
    assert result.sql.count("ALTER ROLE \"r\" PASSWORD '********'") == 1
    assert str(db.verifier("r")).startswith("md5" if setting == "md5" else "SCRAM-SHA-256$")
    assert db.logs_in("r", "s3cret", md5=True)
    assert db.logs_in("r", "s3cret") is (setting != "md5")
    assert len(sent(db.converge(with_password("new", password_encryption="server"), **options))) == 1
    assert db.logs_in("r", "new", md5=True)


@pytest.mark.parametrize("setting", ["md5", "scram-sha-256"])
def test_what_the_server_hashed_is_no_drift(db: Database, setting: str) -> None:
    db.sql(f"ALTER DATABASE {db.name} SET password_encryption = '{setting}'")
    manifest = with_password("s3cret", password_encryption="server")
    db.converge(manifest, update_password="on_drift", **K)
    db.sql("ALTER ROLE r PASSWORD 'other'")
    assert len(sent(db.converge(manifest, update_password="on_drift", **K))) == 1
    assert db.logs_in("r", "s3cret", md5=True)


@pytest.mark.versions(min=16)
def test_the_servers_iterations(db: Database) -> None:
    db.sql(f"ALTER DATABASE {db.name} SET scram_iterations = 999")
    db.converge(with_password("s3cret", password_encryption="server"), **K)
    assert str(db.verifier("r")).startswith("SCRAM-SHA-256$999:")
    assert db.logs_in("r", "s3cret")


def test_another_encryption_is_another_fingerprint(db: Database) -> None:
    db.converge(R, **K)
    assert len(sent(db.converge(with_password("s3cret", password_encryption="server"), **K))) == 1


def test_a_policy_of_the_server_sees_the_clear_text(db: Database) -> None:
    db.sql(f"ALTER DATABASE {db.name} SET session_preload_libraries = 'passwordcheck'")
    manifest = "roles: [{name: r, password: ab1, password_encryption: server}]"
    result = db.fails(manifest, "server_error", check_too=False, **K)
    assert "too short" in result.text
    assert "ab1" not in str(result)
    # Hashed before, it passes.
    db.converge("roles: [{name: r, password: ab1}]", **K)
    db.converge("roles: [{name: r, password: l0ng and subtle!, password_encryption: server}]", **K)


def test_over_loopback_clear_text_is_fine(db: Database) -> None:
    db.converge(
        with_password("s3cret", password_encryption="server"),
        login_unix_socket=None, login_host="127.0.0.1", login_password=PASSWORD, **K,
    )  # fmt: skip
    assert db.logs_in("r", "s3cret")


def _address() -> str | None:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: this only asks which address would be used.
            probe.connect(("192.0.2.254", 9))
            address = str(probe.getsockname()[0])
        except OSError:
            return None
    return None if address.startswith("127.") else address


@pytest.fixture(scope="module")
def networked(
    server: Cluster, runner: Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Database, str]]:
    """A database of a server that listens on the network too, with and without TLS."""
    address = _address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=localhost",
         "-keyout", "server.key", "-out", "server.crt"],
        check=True, cwd=folder, capture_output=True,
    )  # fmt: skip
    user = servers._unprivileged()
    place = Path(os.path.realpath("/tmp")) / f"pgar-tls-{os.getpid()}-{server.version}"
    place.mkdir(mode=0o755)
    for name in ("server.key", "server.crt"):
        (place / name).write_bytes((folder / name).read_bytes())
        (place / name).chmod(0o600)
        if user:
            os.chown(place / name, user.pw_uid, user.pw_gid)
    settings = (
        f"listen_addresses = '127.0.0.1,{address}'\nssl = on\nssl_cert_file = '{place}/server.crt'\n"
        f"ssl_key_file = '{place}/server.key'\n"
    )
    with another_server(server.version, settings, f"host all all {address}/32 scram-sha-256\n") as cluster:
        database = Database(cluster, runner)
        yield database, address
        database.close()
    for name in ("server.key", "server.crt"):
        (place / name).unlink()
    place.rmdir()


def test_clear_text_over_the_network(networked: tuple[Database, str]) -> None:
    db, address = networked
    manifest = with_password("un-guess-able", password_encryption="server")
    remote = {"login_unix_socket": None, "login_host": address, "login_password": PASSWORD, "ssl_mode": "disable", **K}
    before = db.snapshot()
    for check in (True, False):
        result = db.reconcile(manifest, check=check, **remote)
        assert result.failed
        assert result.error_code not in ("internal_error", "server_error"), result
        assert "allow_cleartext" in result.text
        assert "un-guess-able" not in str(result)
        assert db.snapshot() == before
    # A verifier may go everywhere.
    db.converge({"roles": [{"name": "hashed", "password": "s3cret"}]}, **remote)
    assert db.logs_in("hashed", "s3cret")
    # With TLS, or when somebody says that it is fine.
    db.converge(manifest, **{**remote, "ssl_mode": "require"})
    assert db.logs_in("r", "un-guess-able")
    db.converge(with_password("n3w one", password_encryption="server"), allow_cleartext=True, **remote)
    assert db.logs_in("r", "n3w one")


# LOGIN


@pytest.mark.parametrize(
    ("role", "login", "password"),
    [
        ({"password": "s3cret"}, True, True),
        ({}, False, False),
        ({"login": True}, True, False),
        ({"login": True, "password": "s3cret"}, True, True),
        ({"login": False, "password": "s3cret"}, False, True),
        ({"login": False}, False, False),
    ],
)
@pytest.mark.parametrize("exists", [None, "LOGIN", "NOLOGIN"])
def test_login_by_password(
    db: Database, executor: Executor, exists: str | None, role: dict[str, Any], login: bool, password: bool
) -> None:
    if exists:
        db.sql(f"CREATE ROLE r {exists}")
    db.converge({"roles": [{"name": "r", **role}]}, **executor(*(["r"] if exists else [])), **K)
    assert db.attribute("r", "rolcanlogin") is login
    assert (db.verifier("r") is not None) is password
    if password:
        assert db.logs_in("r", "s3cret") is login


@pytest.mark.parametrize("by_hand", ["", "ALTER ROLE r NOLOGIN", "ALTER ROLE r PASSWORD 'other'"])
@pytest.mark.parametrize("store", ["table", "comment"])
@pytest.mark.parametrize("role", ["{name: r}", "{name: r, login: false}"])
def test_the_password_is_taken_out(db: Database, executor: Executor, store: str, role: str, by_hand: str) -> None:
    options = {**executor(), **K, "fingerprint_store": store}
    db.converge(R, **options)
    if by_hand:
        db.sql(by_hand)
    result = db.converge(f"roles: [{role}]", **options)
    assert result.matching('ALTER ROLE "r" .*PASSWORD NULL')
    assert db.attribute("r", "rolcanlogin") is False
    assert db.verifier("r") is None
    assert db.records() == {}
    assert db.comment("r") is None
    assert result.held(reason="password_not_ours") == []


def test_taking_it_out_needs_no_key(db: Database) -> None:
    db.converge(R, **K)
    db.converge("roles: [{name: r}]")
    assert db.verifier("r") is None
    assert db.records() == {}


@pytest.mark.parametrize("how", ["on_change", "on_drift", "on_create", "always"])
def test_taking_it_out_is_the_same_under_each_update_password(db: Database, how: str) -> None:
    db.converge(R, **K)
    db.converge("roles: [{name: r}]", update_password=how, **K)
    assert db.verifier("r") is None


@pytest.mark.parametrize("login", ["LOGIN", "NOLOGIN"])
def test_somebody_elses_password_stays(db: Database, executor: Executor, login: str) -> None:
    db.sql(f"CREATE ROLE r {login} PASSWORD 'by hand'")
    stored = db.verifier("r")
    options = {**executor("r"), **K}
    result = db.converge("roles: [{name: r}]", **options)
    assert len(result.sql) == (1 if login == "LOGIN" else 0)
    assert not result.matching("PASSWORD")
    assert db.attribute("r", "rolcanlogin") is False
    assert db.verifier("r") == stored
    # Under on_change nobody looks whether there is one: a role that could log in is taken to have one.
    assert [item["role"] for item in result.held(reason="password_not_ours")] == ["r"] * len(result.sql)


@pytest.mark.parametrize("password", ["PASSWORD 'by hand'", ""])
@pytest.mark.parametrize("login", ["LOGIN", "NOLOGIN"])
def test_who_may_see_it_says_whether_there_is_one(db: Database, login: str, password: str) -> None:
    db.sql(f"CREATE ROLE r {login} {password}")
    stored = db.verifier("r")
    result = db.converge("roles: [{name: r}]", update_password="on_drift", **K)
    assert [item["role"] for item in result.held(reason="password_not_ours")] == (["r"] if password else [])
    assert db.verifier("r") == stored


def test_with_login_the_stored_password_is_left_alone(db: Database, executor: Executor) -> None:
    options = {**executor(), **K}
    db.converge(R, **options)
    stored = db.verifier("r")
    db.silent("roles: [{name: r, login: true}]", **options)
    assert db.verifier("r") == stored
    assert db.logs_in("r", "s3cret")


@pytest.mark.parametrize("how", ["on_change", "on_drift", "on_create"])
def test_login_that_is_missing(db: Database, executor: Executor, how: str) -> None:
    options = {**executor(), **K, "update_password": how}
    db.converge(R, **options)
    db.sql("ALTER ROLE r NOLOGIN PASSWORD 'other'")
    result = db.converge(R, **options)
    assert result.matching("LOGIN")
    assert len(sent(result)) == (0 if how == "on_create" else 1)
    assert db.logs_in("r", "s3cret") is (how != "on_create")
    assert db.logs_in("r", "other") is (how == "on_create")


def test_losing_login_with_the_password_is_no_surprise_for_open_sessions(db: Database) -> None:
    """A role that is connected does not lose LOGIN by omission: the password that is gone from the manifest is one."""
    db.converge(R, **K)
    session = psycopg.connect(host="127.0.0.1", port=db.server.port, user="r", password="s3cret", dbname=db.name)
    try:
        db.fails("roles: [{name: r}]", "guard", "r", check_too=False, **K)
        assert db.logs_in("r", "s3cret")
        db.converge("roles: [{name: r, login: false}]", **K)
    finally:
        session.close()
    assert db.verifier("r") is None


@pytest.mark.parametrize(
    ("until", "warns"), [("2020-01-01T00:00:00Z", True), ("2099-01-01T00:00:00Z", False), ("soon", True)]
)
def test_a_password_that_expires_soon(db: Database, until: str, warns: bool) -> None:
    if until == "soon":
        until = db.value("SELECT to_char((now() + '10 days') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
    result = db.reconcile(with_password("s3cret", valid_until=until), **K)
    assert not result.failed, result
    assert bool([text for text in result.warnings if "valid_until" in text and "r" in text]) is warns
    assert db.logs_in("r", "s3cret") is (until[:4] != "2020")


def test_several_roles_in_one_run(db: Database, executor: Executor) -> None:
    options = {**executor(), **K}
    manifest = {"roles": [{"name": f"r{number}", "password": f"s3cret {number}"} for number in range(30)]}
    result = db.converge(manifest, **options)
    assert result.summary["passwords"] == {"set": 30}
    assert all(db.logs_in(f"r{number}", f"s3cret {number}") for number in range(30))
    manifest["roles"][7]["password"] = "new"
    assert sent(db.converge(manifest, **options)) == ["ALTER ROLE \"r7\" PASSWORD '********'"]


def test_names_that_need_quotes(db: Database, executor: Executor) -> None:
    name = 'O\'Brien "x" \\ é $$'
    result = db.converge({"roles": [{"name": name, "password": "s3cret"}]}, **executor(), **K)
    assert len(sent(result)) == 1
    assert db.logs_in(name, "s3cret")


def test_through_session_role(db: Database) -> None:
    db.sql(
        f"CREATE ROLE boss CREATEROLE; CREATE ROLE lo LOGIN NOINHERIT; GRANT boss TO lo; GRANT CREATE ON DATABASE {db.name} TO boss"
    )
    options = {"login_user": "lo", "session_role": "boss", **K}
    assert len(sent(db.converge(R, **options))) == 1
    assert db.logs_in("r", "s3cret")
    assert db.value("SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'role_reconcile'") == "boss"


@pytest.mark.parametrize("attributes", ["CREATEROLE", ""])
def test_the_executors_own_password(db: Database, attributes: str) -> None:
    """Every login may set its own, and stays what it is."""
    db.sql(f"CREATE ROLE me LOGIN {attributes}; GRANT CREATE ON DATABASE {db.name} TO me")
    createrole = {"createrole": True} if attributes else {}
    manifest = {"roles": [{"name": "me", "password": "s3cret", **createrole}]}
    assert sent(db.converge(manifest, login_user="me", **K)) == ["ALTER ROLE \"me\" PASSWORD '********'"]
    assert db.logs_in("me", "s3cret")
    changed = {"roles": [{"name": "me", "password": "new", **createrole}]}
    tcp = {"login_unix_socket": None, "login_host": "127.0.0.1", "login_user": "me"}
    result = db.reconcile(changed, **tcp, login_password="s3cret", **K)
    assert not result.failed, result
    assert db.logs_in("me", "new")
    assert db.reconcile(changed, **tcp, login_password="new", **K).sql == []


def test_without_plpgsql(db: Database) -> None:
    """Statements cannot be hidden from the log then: it works, and says so."""
    options = db.admin()
    db.sql("REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC")
    result = db.converge(R, **options, **K)
    assert [text for text in result.warnings if "plpgsql" in text.lower() or "pl/pgsql" in text.lower()]
    assert db.logs_in("r", "s3cret")
    db.sql("DROP EXTENSION plpgsql")
    assert len(sent(db.converge(with_password("new"), **options, **K))) == 1
    assert db.logs_in("r", "new")


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP"])
@pytest.mark.parametrize("store", ["table", "comment"])
def test_a_database_with_another_encoding(db: Database, encoding: str, store: str) -> None:
    """The module hashes, so the database's encoding has no say in the password."""
    name = f"{db.name}_other"
    db.sql(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    options = {**K, "login_db": name, "fingerprint_store": store}
    password = "p\u00e4ssw\u00f6rd \u2603 \U0001f600"
    result = db.reconcile(with_password(password), **options)
    assert not result.failed, result
    assert db.logs_in("r", password)
    assert db.reconcile(with_password(password), **options).sql == []
    assert db.reconcile(with_password(password), update_password="on_drift", **options).sql == []


def test_files_hold_passwords_too(db: Database, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    path = tmp_path / "access.yml"
    path.write_text("roles:\n  - {name: r, password: s3cret}\n  - {name: r2, login: true}\n")
    options = {"manifest_files": [str(path)], "passwords": {"r2": "s3cret2"}, **K}
    db.converge(**options)
    assert db.logs_in("r", "s3cret")
    assert db.logs_in("r2", "s3cret2")


def test_the_diff_says_that_it_changed(db: Database) -> None:
    manifest = with_password("un-guess-able")
    for check in (True, False):
        (diff,) = db.reconcile(manifest, check=check, diff=True, **K).diff
        assert "password: (changed)" in diff["after"]
    quiet = db.reconcile(manifest, diff=True, **K)
    assert all(item["before"] == item["after"] for item in quiet.diff)
    set_verifier(db, scram("other"))
    (diff,) = db.reconcile(manifest, diff=True, update_password="on_drift", **K).diff
    assert "password: (changed)" in diff["after"]
    assert "SCRAM" not in str(diff)
