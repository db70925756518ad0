# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases PWD: passwords. Every login is over TCP, where the server asks for SCRAM."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from harness import Database
from password_support import KEY, Executor, K, R, md5, scram, sent, set_verifier, with_password


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("how", ["on_change", "on_drift"])
def test_PWD_01_a_salt_is_no_difference(db: Database, executor: Executor, how: str, exists: bool) -> None:
    if exists:
        db.sql("CREATE ROLE r LOGIN")
    options = executor(*(["r"] if exists else []))
    result = db.converge(R, update_password=how, **options, **K)
    assert sent(result) == ["ALTER ROLE \"r\" PASSWORD '********'"]
    assert result.summary["passwords"] == {"set": 1}
    stored = db.verifier("r")
    assert stored
    assert stored.startswith("SCRAM-SHA-256$4096:")
    assert db.logs_in("r", "s3cret")
    assert not db.logs_in("r", "s3creT")
    # converge() has run it twice more; and again, byte for byte.
    db.silent(R, update_password=how, **options, **K)
    assert db.verifier("r") == stored


@pytest.mark.parametrize("iterations", [1, 5000, 123456])
def test_PWD_01_the_stored_salt_and_iterations_count(db: Database, iterations: int) -> None:
    db.sql("CREATE ROLE r LOGIN")
    set_verifier(db, scram("s3cret", iterations, salt=b"another salt"))
    stored = db.verifier("r")
    result = db.silent(R, update_password="on_drift")
    assert result.summary["passwords"] == {"set": 0}
    assert db.verifier("r") == stored
    assert db.logs_in("r", "s3cret")
    # What does not match is put right.
    assert len(sent(db.converge(with_password("other"), update_password="on_drift"))) == 1
    assert db.logs_in("r", "other")


@pytest.mark.versions(min=16)
def test_PWD_01_scram_iterations_of_the_server(db: Database) -> None:
    db.sql("CREATE ROLE r LOGIN; SET scram_iterations = 777; ALTER ROLE r PASSWORD 's3cret'")
    assert "$777:" in str(db.verifier("r"))
    db.silent(R, update_password="on_drift")


@pytest.mark.parametrize("format_", [None, "auto", "verifier"])
@pytest.mark.parametrize("how", ["on_change", "on_drift"])
@pytest.mark.parametrize("encryption", ["scram-sha-256", "server"])
def test_PWD_02_a_verifier_is_stored_as_it_is(
    db: Database, executor: Executor, how: str, encryption: str, format_: str | None
) -> None:
    verifier = scram("s3cret", 4096)
    more = {"password_encryption": encryption, **({"password_format": format_} if format_ else {})}
    options = executor()
    result = db.converge(with_password(verifier, **more), update_password=how, **options, **K)
    assert len(sent(result)) == 1
    assert db.verifier("r") == verifier
    assert db.logs_in("r", "s3cret")
    assert not db.logs_in("r", verifier)


def test_PWD_02_an_md5_verifier(db: Database) -> None:
    """PostgreSQL takes it (and 18 warns about it), so does the module."""
    verifier = md5("s3cret", "r")
    db.converge(with_password(verifier), **K)
    assert db.verifier("r") == verifier
    assert db.logs_in("r", "s3cret", md5=True)
    assert not db.logs_in("r", "s3cret")


def test_PWD_04_md5_becomes_scram(db: Database) -> None:
    db.sql("CREATE ROLE r LOGIN")
    set_verifier(db, md5("s3cret", "r"))
    assert db.logs_in("r", "s3cret", md5=True)
    result = db.converge(R, update_password="on_drift", **K)
    assert len(sent(result)) == 1
    assert result.summary["passwords"] == {"set": 1}
    assert str(db.verifier("r")).startswith("SCRAM-SHA-256$")
    assert db.logs_in("r", "s3cret")


def test_PWD_04_md5_without_a_look_at_it(db: Database, executor: Executor) -> None:
    """``on_change`` knows nothing of what is stored: no record, so it sends once."""
    db.sql("CREATE ROLE r LOGIN")
    set_verifier(db, md5("s3cret", "r"))
    assert len(sent(db.converge(R, **executor("r"), **K))) == 1
    assert db.logs_in("r", "s3cret")


@pytest.mark.parametrize("setting", ["md5", "scram-sha-256"])
def test_PWD_04_the_servers_setting_decides_only_where_it_is_asked(db: Database, setting: str) -> None:
    db.sql(f"ALTER DATABASE {db.name} SET password_encryption = '{setting}'")
    db.converge(R, **K)
    assert str(db.verifier("r")).startswith("SCRAM-SHA-256$")


#: A Python whose OpenSSL has no MD5.
FIPS = """
import hashlib, _hashlib
def _no_md5(*arguments, **options):
    raise ValueError("[digital envelope routines] unsupported")
_new = hashlib.new
def _some(name, *arguments, **options):
    return _no_md5() if name.lower() == "md5" else _new(name, *arguments, **options)
hashlib.md5 = _hashlib.openssl_md5 = _no_md5
hashlib.new = _some
"""


@pytest.mark.parametrize("how", ["on_change", "on_drift"])
def test_PWD_05_without_md5(db: Database, how: str) -> None:
    result = db.converge(R, update_password=how, prelude=FIPS, **K)
    assert len(sent(result)) == 1
    assert db.logs_in("r", "s3cret")


def test_PWD_05_without_md5_where_md5_is_stored(db: Database) -> None:
    db.sql("CREATE ROLE r LOGIN")
    set_verifier(db, md5("s3cret", "r"))
    assert len(sent(db.converge(R, update_password="on_drift", prelude=FIPS, **K))) == 1
    assert db.logs_in("r", "s3cret")


@pytest.mark.parametrize("how", ["on_change", "on_drift", "on_create", "always"])
@pytest.mark.parametrize("place", ["password", "passwords", "password_from_env", "missing variable"])
def test_PWD_08_an_empty_password_clears_nothing(db: Database, executor: Executor, place: str, how: str) -> None:
    db.sql("CREATE ROLE r LOGIN PASSWORD 'by hand'")
    stored = db.verifier("r")
    roles: dict[str, Any] = {"name": "r"}
    options: dict[str, Any] = {**executor("r"), **K, "update_password": how}
    if place == "password":
        roles["password"] = ""
    elif place == "passwords":
        roles["login"] = True
        options["passwords"] = {"r": ""}
    else:
        roles["password_from_env"] = "APP_PASSWORD"
        options["environment"] = {"APP_PASSWORD": ""} if place == "password_from_env" else {}
    before = db.snapshot()
    for check in (True, False):
        result = db.reconcile({"roles": [roles]}, check=check, **{**options, "login_unix_socket": "/nonexistent"})
        assert result.error_code == "manifest_invalid", result
        # The entry of the list, or the option; and the role's name.
        assert re.search(r"passwords|roles\[0\]\.password", str(result.problems))
        assert db.snapshot() == before
    assert db.verifier("r") == stored
    assert db.logs_in("r", "by hand")


def test_PWD_08_cleared_only_when_the_module_set_it(db: Database, executor: Executor) -> None:
    options = executor()
    db.converge(R, **options, **K)
    result = db.converge("roles: [{name: r}]", **options, **K)
    assert db.verifier("r") is None
    assert db.attribute("r", "rolcanlogin") is False
    assert result.matching("PASSWORD NULL")


def test_PWD_09_pg_authid_is_never_read(db: Database) -> None:
    options = db.admin()
    manifest = with_password("s3cret", connection_limit=3, createdb=False)
    for how in ("on_change", "on_drift", "on_create"):
        with db.statements() as statements:
            db.converge(manifest, update_password=how, **options, **K)
        assert statements
        if how != "on_drift":
            assert not [
                text for text in statements if re.search(r"(FROM|JOIN) (pg_catalog\.)?pg_(authid|shadow|user)\b", text)
            ]
    assert db.logs_in("r", "s3cret")


def test_PWD_09_a_superuser_does_not_read_it_either_unless_asked(db: Database) -> None:
    with db.statements() as statements:
        db.converge(R, **K)
    assert not [text for text in statements if re.search(r"(FROM|JOIN) (pg_catalog\.)?pg_(authid|shadow|user)\b", text)]


def test_PWD_11_on_drift_sees_a_change_by_hand(db: Database) -> None:
    db.converge(R, update_password="on_drift", **K)
    db.sql("ALTER ROLE r PASSWORD 'other'")
    result = db.converge(R, update_password="on_drift", **K)
    assert len(result.sql) == len(sent(result)) == 1
    assert db.logs_in("r", "s3cret")
    assert not db.logs_in("r", "other")


def test_PWD_11_what_cannot_be_read_is_not_seen(db: Database) -> None:
    options = {**db.admin(), **K, "update_password": "on_drift"}
    db.converge(R, **options)
    db.sql("ALTER ROLE r PASSWORD 'other'")
    db.silent(R, **options)
    assert db.logs_in("r", "other")
    # A change in the manifest takes effect all the same.
    assert len(sent(db.converge(with_password("new s3cret"), **options))) == 1
    assert db.logs_in("r", "new s3cret")
    # So does another key, once.
    rotated = {**options, "fingerprint_key": "a completely different key"}
    assert len(sent(db.converge(with_password("new s3cret"), **rotated))) == 1


def test_PWD_11_an_executor_that_may_read_pg_authid(db: Database) -> None:
    options = {**db.admin(), **K, "update_password": "on_drift"}
    db.sql("GRANT SELECT ON pg_authid TO adm")
    db.converge(R, **options)
    db.sql("ALTER ROLE r PASSWORD 'other'")
    assert len(sent(db.converge(R, **options))) == 1
    assert db.logs_in("r", "s3cret")


@pytest.mark.parametrize("verbosity", [0, 3])
@pytest.mark.parametrize("wrong", [{}, {"conection_limit": 3}, {"login": "maybe"}])
def test_PWD_13_nothing_is_shown(db: Database, wrong: dict[str, Any], verbosity: int) -> None:
    """``test_secrets.py`` looks everywhere else."""
    password = "un-guess-able"
    for check in (True, False):
        stdout, stderr, _code = db.raw(
            with_password(password, **wrong), check=check, diff=True, verbosity=verbosity, **K
        )
        assert password not in stdout + stderr
        assert KEY not in stdout + stderr
    if wrong:
        assert "r" not in db.roles()
        return
    assert str(db.verifier("r")) not in stdout
    record = db.record("r")
    assert record
    for part in re.findall(r"[0-9a-fA-F]{32,}|[A-Za-z0-9+/=]{40,}", record):
        assert part not in stdout


AWKWARD = [
    "%", "%s", "%%", "%(x)s", "a'b", "a''b", "a\\b", "a\\'b", 'a"b', "$tag$", "$$", "$a$ x $a$", ":x", "{{", "{{ x }}", "{0}",
    " lead", "trail ", "   ", "a\nb", "a\tb", "\r\n", "x" * 1000, "--", "/*", ";", "NULL", "********", "r", "\x01\x7f",
]  # fmt: skip


@pytest.mark.parametrize("encryption", ["scram-sha-256", "server"])
def test_PWD_15_awkward_characters(db: Database, executor: Executor, encryption: str) -> None:
    """One role for each, in one run."""
    manifest = {
        "roles": [
            {"name": f"r{number}", "password": password, "password_encryption": encryption}
            for number, password in enumerate(AWKWARD)
        ]
    }
    options = executor()
    result = db.converge(manifest, **options, **K)
    assert result.summary["passwords"] == {"set": len(AWKWARD)}
    for number, password in enumerate(AWKWARD):
        assert db.logs_in(f"r{number}", password), repr(password)
    if not options:
        db.silent(manifest, update_password="on_drift", **K)


@pytest.mark.parametrize("mode", ["authoritative", "adopt", "additive"])
@pytest.mark.parametrize("login", [True, False, None])
def test_PWD_16_no_password_declared(db: Database, executor: Executor, mode: str, login: bool | None) -> None:
    db.sql(f"CREATE ROLE r {'NOLOGIN' if login is False else 'LOGIN'} PASSWORD 'by hand'")
    stored = db.verifier("r")
    role = {"name": "r", **({} if login is None else {"login": login})}
    result = db.converge({"roles": [role]}, reconciliation_mode=mode, **executor("r"), **K)
    assert db.verifier("r") == stored
    assert result.summary["passwords"] == {"set": 0}
    assert not result.matching("PASSWORD")
    assert db.attribute("r", "rolcanlogin") is (login is True or (login is None and mode == "additive"))


def test_PWD_16_external_roles_take_none(db: Database) -> None:
    db.sql("CREATE ROLE r LOGIN PASSWORD 'by hand'")
    db.rejects("roles: [{name: r, external: true, password: s3cret}]", "roles[0]", "external", **K)
    db.rejects("roles: [{name: r, external: true, password_from_env: APP}]", "roles[0]", "external", **K)
    db.rejects("roles: [{name: r, external: true}]", "r", "external", passwords={"r": "s3cret"}, **K)
    assert db.logs_in("r", "by hand")


def test_PWD_17_a_password_on_a_role_that_may_not_log_in(db: Database, executor: Executor) -> None:
    options = executor()
    result = db.converge(with_password("s3cret", login=False), **options, **K)
    assert len(sent(result)) == 1
    assert db.attribute("r", "rolcanlogin") is False
    assert db.verifier("r")
    assert not db.logs_in("r", "s3cret")
    # The password waits for the login.
    result = db.converge(with_password("s3cret", login=True), **options, **K)
    assert db.logs_in("r", "s3cret")


def test_PWD_17_an_expiry_without_a_password(db: Database, executor: Executor) -> None:
    db.converge("roles: [{name: r, login: true, valid_until: '2099-01-01T00:00:00Z'}]", **executor())
    assert db.verifier("r") is None
    assert db.value("SELECT rolvaliduntil = '2099-01-01 00:00+00' FROM pg_roles WHERE rolname = 'r'") is True


@pytest.mark.parametrize("store", ["table", "comment"])
def test_PWD_18_a_database_without_an_encoding(db: Database, executor: Executor, store: str) -> None:
    name = f"{db.name}_ascii"
    db.sql(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    options = {**executor(), **K, "login_db": name, "fingerprint_store": store}
    if "login_user" in options:
        db.sql(f"GRANT CREATE ON DATABASE {name} TO adm")
    manifest = with_password("pässwörd ☃", comment="Prüfung ☃")
    first = db.reconcile(manifest, check=True, **options)
    result = db.reconcile(manifest, **options)
    assert not result.failed, result
    assert first.sql == result.sql
    assert len(sent(result)) == 1
    assert db.logs_in("r", "pässwörd ☃")
    assert str(db.comment("r")).startswith("Prüfung ☃")
    again = db.reconcile(manifest, **options)
    assert again.sql == [], again
    # From a database with an encoding the comment is the same text.
    with psycopg.connect(**db.cluster.address(name), client_encoding="utf8") as connection:
        row = connection.execute("SELECT shobj_description('r'::regrole, 'pg_authid')").fetchone()
    assert row is not None


@pytest.mark.versions(min=16)
@pytest.mark.parametrize("declared", [True, False])
def test_MEM_16_a_new_password_touches_no_membership(db: Database, declared: bool) -> None:
    """The executor may alter the member and has no ADMIN OPTION on the group."""
    db.sql("CREATE ROLE g; CREATE ROLE m LOGIN PASSWORD 'old'; GRANT g TO m")
    options = {**db.admin("m"), **K}
    manifest: dict[str, Any] = {"roles": [{"name": "m", "password": "s3cret"}]}
    if declared:
        manifest["roles"].append({"name": "g", "external": True})
        manifest["memberships"] = [{"role": "g", "members": [{"name": "m"}]}]
    edges = db.edges()
    db.converge(manifest, **options)
    result = db.converge({**manifest, "roles": [{"name": "m", "password": "new"}, *manifest["roles"][1:]]}, **options)
    assert result.sql == ["ALTER ROLE \"m\" PASSWORD '********'"]
    assert db.edges() == edges
    assert db.logs_in("m", "new")
