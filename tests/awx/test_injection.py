# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a job gets from the credential, with all fields and with only the required ones, and that it is enough.

The module runs with exactly the environment that AWX would make, against a server.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import injection
import psycopg
import pytest
import rules
import servers
import yaml
from harness import Result, Runner, link_collection, module_environment, parse
from playbooks import Playbooks

KEY = "0123456789abcdef-fingerprint"
#: With everything that shells, templates and files of variables make something of.
PASSWORD = ' an admin\'s "password": {{ not }} {% a %} {# template #}, $HOME ${PGHOST} `id` \\n \\ #1=2;\u00e9\u6f22\t '


@pytest.fixture(scope="module")
def kind(playbooks: Playbooks) -> dict[str, Any]:
    """The credential type."""
    made: dict[str, Any] = playbooks.objects({"awx_job_template_project": {"name": "Access"}})["credential_type"]
    return made


@dataclass(frozen=True)
class Place:
    """A server with TLS, and an administrator who has a password."""

    server: servers.Server
    certificate: str
    #: A folder with the server's socket under the standard port.
    standard_port: Path


@pytest.fixture(scope="module")
def place(newest: int) -> Iterator[Place]:
    folder = Path(os.path.realpath("/tmp")) / f"pgar-{os.getpid()}-awx"
    folder.mkdir(mode=0o755)
    try:
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=awx-test",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "server.key", "-out", "server.crt"],
            check=True, cwd=folder, capture_output=True,
        )  # fmt: skip
        (folder / "server.key").chmod(0o600)
        servers.hand_over(folder / "server.key", folder / "server.crt")
        settings = f"ssl = on\nssl_cert_file = '{folder}/server.crt'\nssl_key_file = '{folder}/server.key'\n"
        server = servers.start(newest, settings)
        with psycopg.connect(
            host=server.socket_directory, port=server.port, user="postgres", dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(psycopg.sql.SQL("CREATE ROLE access_admin SUPERUSER LOGIN PASSWORD {}").format(PASSWORD))
            connection.execute("CREATE DATABASE shop")
        standard = folder / "socket"
        standard.mkdir()
        (standard / ".s.PGSQL.5432").symlink_to(Path(server.socket_directory) / f".s.PGSQL.{server.port}")
        yield Place(server, (folder / "server.crt").read_text(), standard)
        server.stop()
    finally:
        shutil.rmtree(folder)


def certificate(folder: Path, subject: str) -> tuple[str, str]:
    """A certificate that nobody has signed, and its key."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", subject, "-keyout", "k", "-out", "c"],
        check=True, cwd=folder, capture_output=True,
    )  # fmt: skip
    return (folder / "c").read_text(), (folder / "k").read_text()


def client_certificate_tasks() -> list[dict[str, Any]]:
    """The guide's play for logins by certificate."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "awx.md").read_text(encoding="utf-8")
    found = re.search(r"^```yaml\n(# certificate.yml\n.*?)^```", text, re.M | re.S)
    assert found
    (play,) = yaml.safe_load(found[1].replace("!unsafe ", ""))
    tasks: list[dict[str, Any]] = play["tasks"]
    return tasks


def run(environment: dict[str, str], **options: Any) -> Result:
    """The module in a process that has nothing of libpq's but this environment."""
    link_collection()
    arguments = {"_ansible_check_mode": False, "_ansible_diff": False, **options}
    process = Runner.process({"ANSIBLE_MODULE_ARGS": arguments}, module_environment(**environment), "pg_role_reconcile")
    stdout, stderr = process.communicate(timeout=60)
    return parse(stdout, stderr, process.returncode)


def everything(place: Place) -> dict[str, str]:
    return {
        "host": "127.0.0.1",
        "port": str(place.server.port),
        "database": "shop",
        "username": "access_admin",
        "password": PASSWORD,
        "sslmode": "verify-full",
        "ca": place.certificate,
        "fingerprint_key": KEY,
    }


def test_all_fields_are_what_the_module_connects_with(kind: dict[str, Any], place: Place, tmp_path: Path) -> None:
    inputs = everything(place)
    assert set(inputs) == {field["id"] for field in kind["inputs"]["fields"]}
    environment = injection.inject(kind, inputs, tmp_path)
    certificate = environment.pop("PGSSLROOTCERT")
    assert Path(certificate).read_text() == place.certificate
    assert environment == {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(place.server.port),
        "PGDATABASE": "shop",
        "PGUSER": "access_admin",
        "PGPASSWORD": PASSWORD,
        "PGSSLMODE": "verify-full",
        "PG_ROLE_RECONCILE_FINGERPRINT_KEY": KEY,
    }
    environment["PGSSLROOTCERT"] = certificate
    roles = [{"name": "awx_app", "password": "the app's"}]
    first, second = run(environment, roles=roles), run(environment, roles=roles)
    assert not first.failed, first
    assert first.changed
    assert first.server["database"] == "shop"
    assert first.server["executor"] == "access_admin"
    # The key is what tells that the password has not changed.
    assert not second.failed and not second.changed, second
    other = run({**environment, "PG_ROLE_RECONCILE_FINGERPRINT_KEY": KEY[::-1]}, roles=roles)
    assert other.failed or other.changed


def test_a_bundle_of_certificates_is_read_as_it_is(kind: dict[str, Any], place: Place, tmp_path: Path) -> None:
    """Pasted from elsewhere: remarks, line ends of Windows, another authority first, and no line end at the end."""
    another, _key = certificate(tmp_path, "/CN=another")
    bundle = f"# Authorities\n{another}\n{place.certificate}".replace("\n", "\r\n").rstrip()
    environment = injection.inject(kind, {**everything(place), "ca": bundle}, tmp_path)
    assert Path(environment["PGSSLROOTCERT"]).read_bytes() == bundle.encode()
    first, second = (run(environment, roles=[{"name": "awx_bundle"}]) for _turn in range(2))
    assert not first.failed and first.changed, first
    assert not second.failed and not second.changed, second


def test_a_login_by_certificate_is_a_second_credential(
    kind: dict[str, Any], newest: int, place: Place, tmp_path: Path
) -> None:
    """As the guide shows it: certificate and private key arrive as files that nobody else can read."""
    (task,) = [task for task in client_certificate_tasks() if "awx.awx.credential_type" in task]
    second = task["awx.awx.credential_type"]
    assert rules.credential_type({"description": "", **second}) == []
    text, key = certificate(tmp_path, "/CN=access_admin")
    folder = place.standard_port.parent
    (folder / "clients.crt").write_text(text)
    (folder / "hba.conf").write_text("local all all trust\nhostssl all access_admin 127.0.0.1/32 cert\n")
    servers.hand_over(folder / "clients.crt", folder / "hba.conf")
    server = servers.start(
        newest,
        f"ssl = on\nssl_cert_file = '{folder}/server.crt'\nssl_key_file = '{folder}/server.key'\n"
        f"ssl_ca_file = '{folder}/clients.crt'\nhba_file = '{folder}/hba.conf'\n",
    )
    try:
        login = {"host": server.socket_directory, "port": str(server.port), "user": "postgres", "dbname": "postgres"}
        with psycopg.connect(**login, autocommit=True) as connection:
            connection.execute("CREATE ROLE access_admin SUPERUSER LOGIN")
        inputs = {**everything(place), "port": str(server.port), "database": "postgres", "password": ""}
        environment = injection.inject(kind, inputs, tmp_path)
        refused = run({**environment, "HOME": str(tmp_path)}, roles=[{"name": "r"}])
        assert refused.failed and "certificate" in refused.text, refused
        # Pasted without the last line end.
        environment |= injection.inject(second, {"certificate": text.strip(), "key": key.strip()}, tmp_path)
        assert Path(environment["PGSSLKEY"]).stat().st_mode & 0o777 == 0o600
        turns = [run({**environment, "HOME": str(tmp_path)}, roles=[{"name": "r"}]) for _turn in range(2)]
        assert [turn.failed for turn in turns] == [False, False], turns
        assert [turn.changed for turn in turns] == [True, False]
    finally:
        server.stop()


def test_the_required_fields_are_enough(kind: dict[str, Any], place: Place, tmp_path: Path) -> None:
    inputs = {"host": str(place.standard_port), "username": "access_admin"}
    assert set(inputs) == set(kind["inputs"]["required"])
    environment = injection.inject(kind, inputs, tmp_path)
    assert environment == {
        "PGHOST": str(place.standard_port),
        "PGPORT": "5432",
        "PGDATABASE": "",
        "PGUSER": "access_admin",
        "PGPASSWORD": "",
        "PGSSLMODE": "verify-full",
        "PGSSLROOTCERT": "",
        "PG_ROLE_RECONCILE_FINGERPRINT_KEY": "",
    }
    roles = [{"name": "awx_reader"}]
    first, second = (run(environment, login_db="shop", roles=roles) for _turn in range(2))
    assert not first.failed, first
    assert first.changed and first.server["executor"] == "access_admin"
    assert not second.failed and not second.changed, second


def test_empty_fields_are_like_none(kind: dict[str, Any], place: Place, tmp_path: Path) -> None:
    inputs = {field["id"]: "" for field in kind["inputs"]["fields"]}
    given = {"host": str(place.standard_port), "username": "access_admin"}
    with_empty = injection.inject(kind, {**inputs, **given}, tmp_path)
    assert with_empty == injection.inject(kind, given, tmp_path)
    # A field of several lines where somebody pressed the return key.
    assert with_empty == injection.inject(kind, {**given, "ca": " \n\n"}, tmp_path)
    assert injection.inject(kind, {**given, "ca": "system\n"}, tmp_path)["PGSSLROOTCERT"] == "system"


def test_a_run_that_nobody_told_which_database_fails(kind: dict[str, Any], place: Place, tmp_path: Path) -> None:
    environment = injection.inject(kind, {"host": str(place.standard_port), "username": "access_admin"}, tmp_path)
    result = run(environment, roles=[{"name": "nobody_asked"}])
    assert result.failed
    assert "login_db" in result.text


@pytest.mark.parametrize("ca", ["", "another", "system"])
def test_the_certificate_is_really_looked_at(kind: dict[str, Any], place: Place, tmp_path: Path, ca: str) -> None:
    text = certificate(tmp_path, "/CN=x")[0] if ca == "another" else ca
    environment = injection.inject(kind, {**everything(place), "ca": text}, tmp_path)
    result = run({**environment, "HOME": str(tmp_path)}, roles=[{"name": "awx_reader"}])
    assert result.error_code == "connection_failed", result
    assert "certificate" in result.text
    if ca == "system":
        assert environment["PGSSLROOTCERT"] == "system"


def test_without_a_mode_no_connection_goes_without_tls(kind: dict[str, Any], newest: int, tmp_path: Path) -> None:
    server = servers.start(newest)
    inputs = {"host": "127.0.0.1", "port": str(server.port), "username": "postgres", "password": servers.PASSWORD}
    try:
        environment = injection.inject(kind, {**inputs, "sslmode": ""}, tmp_path)
        result = run({**environment, "HOME": str(tmp_path)}, login_db="postgres", roles=[{"name": "r"}])
        assert result.error_code == "connection_failed", result
        # It is the mode that forbids it.
        environment = injection.inject(kind, {**inputs, "sslmode": "disable"}, tmp_path)
        result = run(environment, login_db="postgres", roles=[{"name": "r"}])
        assert not result.failed and result.changed, result
    finally:
        server.stop()


def test_a_value_of_two_lines_is_cut(kind: dict[str, Any], tmp_path: Path) -> None:
    """Why the form says that a password has one line."""
    environment = injection.inject(kind, {"host": "h", "username": "u", "password": "one\nPGHOST=elsewhere"}, tmp_path)
    assert (environment["PGPASSWORD"], environment["PGHOST"]) == ("one", "elsewhere")


def test_the_environment_is_all_there_is(kind: dict[str, Any], tmp_path: Path) -> None:
    inputs = {field["id"]: "x" for field in kind["inputs"]["fields"]}
    environment = injection.inject(kind, {**inputs, "sslmode": "require"}, tmp_path)
    assert set(environment) == set(kind["injectors"]["env"])
    assert json.dumps(environment).isascii()
