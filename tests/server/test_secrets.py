# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets stay secret: clear text, verifier, key and fingerprint are in no output, no log, no statistics and no file.

Everything that the module and the server say is searched for every secret in every spelling that one would have in
JSON, Python, SQL, hexadecimal or base64. Verbosity 3 with ``--diff``, check and run, success and every sort of failure.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from harness import Cluster, Database, Runner, another_server, parse
from password_support import Executor, scram, with_password

KEY = "kEy-of-the-Fingerprints-0815"
SECRET = "un-guess-able"

#: Passwords that break somebody's quoting.
PASSWORDS = {
    "plain": SECRET,
    "quotes": "un'guess''able\"x\"\"y",
    "backslashes": "un\\guess\\\\able\\n\\'",
    "tabs and newlines": "un-guess\table-one\nand-two-lines\r\n",
    "braces": "{{un-guess}}%(able)s{0}%s",
    "dollars": "$un$guess-able$$'$un$",
    "unicode": "ün-gueß-äble-☃",
    "spaces": "un guess able with spaces",
    "equals": "un=guess=able login_password=xyzzy-nothing",
    "url": "un://guess:able@host/path",
    "json": '{"un": "guess-able"}',
}

#: What the module says before or without a server is the same on all of them.
one_version = pytest.mark.versions(min=18)


def spellings(secret: str) -> set[str]:
    """How a text may look in the output."""
    raw = secret.encode("utf-8", "surrogateescape")
    found = {
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(secret))[2:-2],
        repr(secret)[1:-1],
        ascii(secret)[1:-1],
        secret.replace("'", "''"),
        secret.replace("\\", "\\\\"),
        secret.replace("\\", "\\\\").replace("'", "''"),
        secret.replace("\n", "\n\t"),
        urllib.parse.quote(secret),
        raw.hex(),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        yaml.safe_dump(secret).strip(),
        *secret.splitlines(),
    }
    return {text.strip() for text in found if len(text.strip()) >= 6}


def verifier_parts(verifier: str | None) -> set[str]:
    return {part for part in re.split(r"[$:]", verifier or "") if len(part) >= 16} | ({verifier} if verifier else set())


def record_parts(db: Database) -> set[str]:
    """The fingerprints that are stored, wherever."""
    texts = [*db.records().values()]
    texts += [str(row[0]) for row in db.query("SELECT description FROM pg_shdescription")]
    parts = {part for text in texts for part in re.findall(r"[0-9a-fA-F]{32,}|[A-Za-z0-9+/]{40,}", text)}
    return parts | {
        base64.b64encode(bytes.fromhex(part)).decode().rstrip("=")
        for part in parts
        if re.fullmatch(r"(?:[0-9a-f]{2})+", part)
    }


def assert_hidden(text: str, *secrets: str) -> None:
    for secret in secrets:
        for spelling in spellings(secret):
            place = text.find(spelling)
            assert place < 0, f"{spelling!r} is shown: ...{text[max(0, place - 300) : place + 200]}..."


#: Everything that a server could be told to write down.
LOGGING = {
    "log_statement": "all",
    "log_min_duration_statement": "0",
    "log_min_error_statement": "debug5",
    "log_min_messages": "debug5",
    "log_error_verbosity": "verbose",
    "log_duration": "on",
    "log_lock_waits": "on",
    "deadlock_timeout": "100ms",
    "log_parameter_max_length": "-1",
    "log_parameter_max_length_on_error": "-1",
}


class Watch:
    """Collects all that a run says: the module's output, the server's log, and what the server keeps about it."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.output: list[str] = []
        self.secrets: set[str] = {KEY}
        for name, value in LOGGING.items():
            db.sql(f"ALTER DATABASE {db.name} SET {name} = '{value}'")
        self.start = (db.server.directory / "log").stat().st_size
        self.note()

    def note(self) -> None:
        """What is stored now is a secret from now on."""
        for (verifier,) in self.db.query(
            "SELECT rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL AND oid <> 10"
        ):
            self.secrets |= verifier_parts(verifier)
        self.secrets |= record_parts(self.db)

    def run(
        self, manifest: Any = None, *, check: bool = False, verbosity: int = 3, diff: bool = True, **options: Any
    ) -> dict[str, Any]:
        options = {"fingerprint_key": KEY, **options}
        stdout, stderr, code = self.db.raw(manifest, check=check, diff=diff, verbosity=verbosity, **options)
        self.output += [stdout, stderr]
        self.note()
        return parse(stdout, stderr, code)

    def both(self, manifest: Any = None, **options: Any) -> dict[str, Any]:
        """A check run and a run."""
        self.run(manifest, check=True, **options)
        return self.run(manifest, **options)

    @property
    def log(self) -> str:
        with (self.db.server.directory / "log").open("rb") as stream:
            stream.seek(self.start)
            return stream.read().decode(errors="replace")

    def hidden(self, *secrets: str) -> None:
        """None of these, and nothing that was stored meanwhile, was seen anywhere."""
        log = self.log
        assert re.search(rf"@{self.db.name} ", log), "the log was watched"
        for text in (*self.output, log):
            assert_hidden(text, *self.secrets, *secrets)
            assert "Traceback" not in text
            assert 'File "' not in text


@pytest.fixture
def watch(db: Database) -> Watch:
    return Watch(db)


def succeed(result: dict[str, Any]) -> None:
    assert not result.get("failed"), result


def fail(result: dict[str, Any], *codes: str) -> None:
    assert result.get("failed"), result
    assert not codes or result["error_code"] in codes, result


# Success


@pytest.mark.parametrize("kind", PASSWORDS)
@pytest.mark.parametrize("store", ["table", "comment"])
def test_success(watch: Watch, executor: Executor, store: str, kind: str) -> None:
    password = PASSWORDS[kind]
    options = {**executor(), "fingerprint_store": store}
    for how in ("on_change", "always", "on_drift"):
        succeed(watch.both(with_password(password), update_password=how, **options))
    succeed(watch.both(with_password(password + "2", comment="a comment"), **options))
    assert watch.db.logs_in("r", password + "2")
    succeed(watch.both("roles: [{name: r}]", **options))
    watch.hidden(password)


@pytest.mark.parametrize("kind", PASSWORDS)
def test_success_by_the_server(watch: Watch, executor: Executor, kind: str) -> None:
    """Even clear text is not written down by the server that it is sent to."""
    password = PASSWORDS[kind]
    succeed(watch.both(with_password(password, password_encryption="server"), **executor()))
    assert watch.db.logs_in("r", password)
    watch.hidden(password)


@pytest.mark.parametrize("encryption", ["scram-sha-256", "server"])
def test_a_verifier(watch: Watch, executor: Executor, encryption: str) -> None:
    verifier = scram(SECRET)
    succeed(watch.both(with_password(verifier, password_encryption=encryption), **executor()))
    watch.hidden(SECRET, *verifier_parts(verifier))


@one_version
@pytest.mark.parametrize("kind", PASSWORDS)
@pytest.mark.parametrize("form", ["dict", "json"])
def test_the_option_passwords(watch: Watch, form: str, kind: str) -> None:
    """As a JSON string Ansible itself would only know the whole string as a secret."""
    password = PASSWORDS[kind]
    passwords: Any = {"r": password, "r2": password + "2"}
    options = {"passwords": json.dumps(passwords) if form == "json" else passwords}
    manifest = "roles: [{name: r, login: true}, {name: r2, login: true}]"
    succeed(watch.both(manifest, **options))
    assert watch.db.logs_in("r2", password + "2")
    fail(watch.both(manifest + "\nnonsense: 1", **options), "manifest_invalid")
    fail(watch.both("roles: [{name: r, login: true}]", **options), "manifest_invalid")
    watch.hidden(password)


def test_the_environment(watch: Watch) -> None:
    environment = {"APP": SECRET, "PG_ROLE_RECONCILE_FINGERPRINT_KEY": KEY, "PGPASSWORD": "login-un-guess-able"}
    options = {"environment": environment, "fingerprint_key": None}
    succeed(watch.both("roles: [{name: r, password_from_env: APP}]", **options))
    fail(watch.both("roles: [{name: r, password_from_env: APP, nope: 1}]", **options), "manifest_invalid")
    watch.hidden(SECRET, "login-un-guess-able")


def test_the_key_file(watch: Watch, tmp_path: Path) -> None:
    path = tmp_path / "key"
    succeed(watch.both(with_password(SECRET), fingerprint_key=None, fingerprint_key_file=str(path)))
    key = path.read_bytes()
    watch.hidden(SECRET, key.hex(), base64.b64encode(key).decode().rstrip("="), repr(key)[2:-1])


def test_a_manifest_file(watch: Watch, tmp_path: Path) -> None:
    path = tmp_path / "access.yml"
    for number, (text, works) in enumerate(
        [
            ("roles:\n  - {name: r, password: %s}\n", True),
            ("roles:\n  - {name: r, password: %s, nope: 1}\n", False),
            ("roles:\n  - {name: r, pasword: %s}\n", False),
            ("roles:\n  - {name: r, password: %s\n", False),
            ("roles:\n  - {name: r, password: \"%s}\n", False),
            ("roles:\n  - name: r\n    password: %s\n   comment: x\n", False),
            ("roles:\n  - name: r\n    password: %s: x\n", False),
            ("roles:\n  - name: r\n    password: %s\n    password: %s\n", False),
            ("roles:\n  - name: r\n    password: [%s]\n", False),
            ("roles:\n  - name: r\n    password: !vault |\n      %s\n", False),
            ("roles:\n  - name: r\n    password: !%s x\n", False),
            ("roles:\n  - name: r\n    password: *%s\n", False),
            ("roles:\n  - name: r\n    password: \"%s {{ x }}\"\n", False),
            ("roles:\n  r: %s\n", False),
            ("roles: %s\n", False),
            ("%s\n", False),
            ("passwords: {r: %s}\n", False),
            ("\troles: %s\n", False),
        ]
    ):  # fmt: skip
        path.write_text(text.replace("%s", SECRET))
        result = watch.both(manifest_files=[str(path)])
        assert bool(result.get("failed")) is not works, (number, result)
    watch.hidden(SECRET)


# Validation errors inside the role that has the password

WRONG: dict[str, dict[str, Any]] = {
    "unknown key": {"password": SECRET, "nope": 1},
    "misspelt": {"pasword": SECRET},
    "misspelt beside": {"password": "x" + SECRET, "passwort": SECRET},
    "deep under an unknown key": {"secret": {"value": [SECRET]}},
    "wrong type": {"password": SECRET, "login": "perhaps"},
    "number": {"password": 4711081547110815},
    "negative number": {"password": -4711081547110815},
    "float": {"password": 47110815.47110815},
    "number under an unknown key": {"pasword": 4711081547110815},
    "list": {"password": [SECRET]},
    "dict": {"password": {"value": SECRET}},
    "boolean": {"password": True, "passwort": SECRET},
    "valid until": {"password": SECRET, "valid_until": "soon"},
    "external": {"password": SECRET, "external": True},
    "NUL": {"password": SECRET + "\0x"},
    "look-alike": {"password": "SCRAM-SHA-256$" + SECRET},
    "not a verifier": {"password": SECRET, "password_format": "verifier"},
    "twice": {"password": SECRET, "password_from_env": "HOME"},
    "name": {"name": 5, "password": SECRET},
    "no name": {"name": None, "password": SECRET},
}


@one_version
@pytest.mark.parametrize("kind", WRONG)
def test_validation_errors(watch: Watch, kind: str) -> None:
    fail(watch.both({"roles": [{"name": "r", **WRONG[kind]}]}), "manifest_invalid")
    for text in watch.output:
        assert_hidden(text, KEY, SECRET, "4711081547110815", "47110815.4711")


@one_version
@pytest.mark.parametrize(
    "options",
    [
        {"roles": SECRET},
        {"roles": [SECRET]},
        {"roles": [[SECRET]]},
        {"roles": {"r": {"password": SECRET}}},
        {"roles": json.dumps([{"name": "r", "password": SECRET, "nope": 1}])},
        {"roles": [{"name": "r", "password": SECRET}] * 2},
        {"passwords": SECRET},
        {"passwords": [SECRET]},
        {"passwords": {"r": [SECRET]}},
        {"passwords": {"r": {"password": SECRET}}},
        {"passwords": {"nobody": SECRET}},
        {"passwords": {"{{ r }}": SECRET}},
        {"passwords": json.dumps({"nobody": SECRET})},
        {"passwords": json.dumps({"r": [SECRET]})},
        {"passwords": '{"r": "' + SECRET},
        {"passwords": "r=" + SECRET},
        {"passwrds": {"r": SECRET}},
        {"fingerprint_key": SECRET[:13]},
        {"fingerprint_key": [SECRET]},
        {"fingerprint_key": {"key": SECRET}},
        {"fingerprint_keys": SECRET},
        {"login_password": [SECRET]},
        {"connect_params": {"password": SECRET}},
        {"connect_params": {"sslpassword": SECRET}},
        {"connect_params": json.dumps({"password": SECRET})},
        {"connect_params": "password=" + SECRET},
    ],
)
def test_options_that_are_wrong(watch: Watch, options: dict[str, Any]) -> None:
    given = {"roles": [{"name": "r", "login": True, "comment": "x"}], **options}
    result = watch.both(**given)
    # A login password that nobody asks for is no error, whatever it is.
    assert result.get("failed") or "login_password" in options
    for text in watch.output:
        assert_hidden(text, SECRET, *([] if "fingerprint_key" in options else [KEY]))


def test_the_login_password(watch: Watch) -> None:
    for options in (
        {"login_unix_socket": None, "login_host": "127.0.0.1", "login_password": SECRET},
        {"login_unix_socket": "/nonexistent", "login_password": SECRET},
        {"login_unix_socket": None, "login_host": "no-such-host.invalid", "login_password": SECRET},
    ):
        fail(watch.both(with_password("x" + SECRET), **options), "connection_failed", "authentication_failed")
    for text in watch.output:
        assert_hidden(text, SECRET, KEY)


# Failure while the server works


@contextmanager
def locked(db: Database, role: str = "r") -> Iterator[None]:
    """Another session is just altering the role."""
    connection = db.connect(autocommit=False)
    connection.execute(f"ALTER ROLE {role} CONNECTION LIMIT 5")
    try:
        yield
    finally:
        connection.rollback()


@pytest.mark.parametrize("encryption", ["scram-sha-256", "server"])
def test_a_locked_role(watch: Watch, executor: Executor, encryption: str) -> None:
    db = watch.db
    db.sql("CREATE ROLE r LOGIN")
    options = executor("r")
    seen: list[str] = []

    def look() -> None:
        with psycopg.connect(**db.cluster.address("postgres"), autocommit=True) as connection:
            for _attempt in range(40):
                rows = connection.execute("SELECT query FROM pg_stat_activity WHERE datname = %s", [db.name]).fetchall()
                seen.extend(row[0] for row in rows)
                time.sleep(0.05)

    with locked(db):
        thread = threading.Thread(target=look)
        thread.start()
        result = watch.run(with_password(SECRET, password_encryption=encryption), **options)
        thread.join()
    fail(result, "lock_timeout")
    assert result["sqlstate"] == "55P03"
    assert any("DO" in query for query in seen), seen
    watch.output += seen
    assert "'********'" in json.dumps(result["plan"])
    watch.hidden(SECRET)


def test_a_session_that_is_ended_meanwhile(watch: Watch) -> None:
    db = watch.db
    db.sql("CREATE ROLE r LOGIN")

    def end() -> None:
        with psycopg.connect(**db.cluster.address("postgres"), autocommit=True) as connection:
            for _attempt in range(100):
                time.sleep(0.05)
                if connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'",
                    [db.name],
                ).fetchall():
                    return

    with locked(db):
        thread = threading.Thread(target=end)
        thread.start()
        result = watch.run(with_password(SECRET))
        thread.join()
    fail(result, "connection_failed", "server_error")
    watch.hidden(SECRET)


@pytest.mark.parametrize("password", ["un-'a", "unguessable", "un-guess-able-by-r"])
def test_a_policy_that_refuses(watch: Watch, executor: Executor, password: str) -> None:
    """passwordcheck: too short, no digit or sign in it, the role's name in it."""
    db = watch.db
    db.sql(f"ALTER DATABASE {db.name} SET session_preload_libraries = 'passwordcheck'")
    result = watch.both(with_password(password, password_encryption="server"), **executor())
    fail(result, "server_error")
    assert result["statement"] == "ALTER ROLE \"r\" PASSWORD '********'"
    assert "r" not in db.roles()
    # A password as short as this may be a part of other words.
    watch.output = [text.replace("passwordcheck", "") for text in watch.output]
    if len(password) > 6:
        watch.hidden(password)
    for text in (*watch.output, watch.log):
        assert password not in text


def test_a_policy_that_refuses_a_hash(watch: Watch) -> None:
    """A password equal to the role's name is the one thing that it can tell from a verifier."""
    db = watch.db
    db.sql(f"ALTER DATABASE {db.name} SET session_preload_libraries = 'passwordcheck'")
    result = watch.both({"roles": [{"name": "un-guess-able", "password": "un-guess-able"}]})
    fail(result, "server_error")
    assert result["statement"] == "ALTER ROLE \"un-guess-able\" PASSWORD '********'"
    for text in (*watch.output, watch.log):
        assert_hidden(text, KEY)
        assert "SCRAM-SHA-256$" not in text


def test_a_later_statement_fails(watch: Watch, executor: Executor) -> None:
    db = watch.db
    options = executor()
    db.sql(
        f"CREATE SCHEMA s AUTHORIZATION {options.get('login_user', 'postgres')}",
        "CREATE FUNCTION public.no() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not today''; END'",
        "CREATE EVENT TRIGGER no ON ddl_command_start WHEN TAG IN ('GRANT') EXECUTE FUNCTION public.no()",
    )
    grant = [{"role": "r", "privileges": ["USAGE"], "object": {"type": "schema", "name": "s"}}]
    for encryption in ("scram-sha-256", "server"):
        result = watch.both({**with_password(SECRET, password_encryption=encryption), "grants": grant}, **options)
        fail(result)
        assert "not today" in result["msg"]
        assert "r" not in db.roles()
    watch.hidden(SECRET)


def test_the_executor_may_not(watch: Watch) -> None:
    db = watch.db
    db.sql("CREATE ROLE r LOGIN; CREATE ROLE boss SUPERUSER; CREATE ROLE plain LOGIN")
    for options in (db.admin(), {"login_user": "plain"}):
        for role in ("r", "boss"):
            result = watch.both({"roles": [{"name": role, "password": SECRET, "superuser": role == "boss"}]}, **options)
            assert result.get("failed") or db.version <= 15
    # Up to 15 the admin has made the table of fingerprints meanwhile, which then is one more obstacle.
    fail(watch.both(with_password(SECRET), login_user="plain"), "insufficient_privilege", "object_missing")
    watch.hidden(SECRET)


def test_a_brake_of_the_server(watch: Watch) -> None:
    """statement_timeout and a read-only default: whatever stops it, it stops in silence."""
    db = watch.db
    db.sql("CREATE ROLE r LOGIN")
    with locked(db):
        fail(watch.run(with_password(SECRET), statement_timeout=1))
    db.sql(f"ALTER DATABASE {db.name} SET client_min_messages = 'debug5'")
    succeed(watch.both(with_password(SECRET)))
    watch.hidden(SECRET)


#: A fault of the collection whose text holds everything that the run knows.
FAULT = """
import ansible_collections.pg_access.reconcile.plugins.module_utils.{room} as room
room.{function}  # what is not there cannot fail
def fault(*arguments, **options):
    raise {exception}(repr((arguments, options, {secret!r})))
room.{function} = fault
"""


@one_version
@pytest.mark.parametrize("exception", ["RuntimeError", "KeyError", "ValueError", "UnicodeError"])
@pytest.mark.parametrize(
    ("room", "function"), [("execution", "verify"), ("apply", "inspect"), ("execution", "run"), ("report.result", "result_of"), ("module", "connect")]
)  # fmt: skip
def test_a_fault(watch: Watch, room: str, function: str, exception: str) -> None:
    patch = FAULT.format(room=room, function=function, exception=exception, secret=SECRET)
    result = watch.run(with_password(SECRET), patch=patch)
    fail(result)
    for text in (*watch.output, watch.log):
        assert_hidden(text, *watch.secrets, SECRET)
        assert "Traceback" not in text


#: Settings under which PostgreSQL also writes down what runs inside of blocks.
MORE = {
    "trees": {"debug_print_parse": "on", "debug_print_rewritten": "on", "debug_print_plan": "on"},
    "statistics": {"log_parser_stats": "on", "log_planner_stats": "on", "log_executor_stats": "on"},
    "plans": {
        "session_preload_libraries": "auto_explain",
        "auto_explain.log_min_duration": "0",
        "auto_explain.log_nested_statements": "on",
    },
}


@pytest.mark.parametrize("kind", MORE)
def test_a_server_that_logs_more(watch: Watch, kind: str) -> None:
    """Trees anybody may switch off, the others only a superuser."""
    for name, value in MORE[kind].items():
        watch.db.sql(f"ALTER DATABASE {watch.db.name} SET {name} = '{value}'")
    for encryption in ("scram-sha-256", "server"):
        succeed(watch.both(with_password(SECRET, password_encryption=encryption)))
    watch.hidden(SECRET)


LEAK = """
from ansible_collections.pg_access.reconcile.plugins.module_utils.report import result as room
before = room.result_of
def after(*arguments, **options):
    result = before(*arguments, **options)
    result["withheld"] = [{{"sql": "a place that nobody thought of: " + {secret!r}}}]
    return result
room.result_of = after
"""


def test_the_second_net(db: Database) -> None:
    """A place that was forgotten: Ansible's own search still finds a secret that is no ordinary word."""
    password = "Zk3-un-guess-able-9vWq"
    stdout, stderr, _code = db.raw(
        with_password(password), check=True, fingerprint_key=KEY, patch=LEAK.format(secret=password)
    )
    assert "nobody thought of" in stdout, stderr
    assert password not in stdout


# Statistics


@pytest.fixture(scope="module")
def counting(server: Cluster, runner: Runner) -> Iterator[Cluster]:
    """A server of its own that keeps statistics of statements."""
    with another_server(server.version, "shared_preload_libraries = 'pg_stat_statements'\n") as cluster:
        yield cluster


@pytest.mark.parametrize("user", ["superuser", "createrole"])
@pytest.mark.parametrize("track", ["top", "all"])
def test_pg_stat_statements(counting: Cluster, runner: Runner, track: str, user: str) -> None:
    if (track, user) == ("all", "createrole"):
        pytest.skip("only a superuser may switch it off for nested statements")
    db = Database(counting, runner)
    try:
        db.sql("CREATE EXTENSION pg_stat_statements; SELECT pg_stat_statements_reset()")
        db.sql(f"ALTER DATABASE {db.name} SET pg_stat_statements.track = '{track}'")
        watch = Watch(db)
        options = db.admin() if user == "createrole" else {}
        for number, encryption in enumerate(("scram-sha-256", "server")):
            succeed(watch.both(with_password(f"{SECRET}{number}", password_encryption=encryption), **options))
        succeed(watch.both(with_password(scram(SECRET)), **options))
        succeed(watch.both(with_password(SECRET + "3", comment="x"), fingerprint_store="comment", **options))
        succeed(watch.both("roles: [{name: r}]", fingerprint_store="comment", **options))
        with locked(db):
            fail(watch.run({"roles": [{"name": "r", "password": SECRET + "4"}]}, **options))
        db.sql("SET pg_stat_statements.track = 'none'")
        queries = [str(row[0]) for row in db.query("SELECT query FROM pg_stat_statements")]
        assert any("pg_roles" in query for query in queries), "statements were counted"
        watch.output += queries
        watch.hidden(SECRET, *verifier_parts(scram(SECRET)))
    finally:
        db.close()


# Files, and the log of the machine

WRITES = """
import os, sys
_seen = os.open({path!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def _hook(event, arguments):
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        os.write(_seen, f"open {{arguments[0]}}\\n".encode())
    elif event in ("tempfile.mkstemp", "tempfile.mkdtemp", "os.mkdir", "subprocess.Popen", "os.system", "os.exec", "os.rename"):
        os.write(_seen, f"{{event}} {{arguments}}\\n".encode())
sys.addaudithook(_hook)
"""


@pytest.mark.parametrize("manifest", ["options", "files"])
def test_no_file_is_written(watch: Watch, tmp_path: Path, manifest: str) -> None:
    """No file but Ansible's own payload holds a secret: nothing at all is written, but the key file."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    key = tmp_path / "key"
    path = tmp_path / "access.yml"
    path.write_text(yaml.safe_dump(with_password(SECRET)))
    given: Any = {"manifest_files": [str(path)]} if manifest == "files" else with_password(SECRET)
    options: dict[str, Any] = {
        "environment": {"TMPDIR": str(folder), "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        "remote_tmp": str(folder / "remote"),
        "fingerprint_key": None,
        "fingerprint_key_file": str(key),
    }
    seen = tmp_path / "writes"
    prelude = WRITES.format(path=str(seen))
    for check in (True, False):
        succeed(watch.run(given, check=check, prelude=prelude, **options))
    wrong = {**with_password(SECRET), "nope": 1} if manifest == "options" else {**given, "nope": 1}
    fail(watch.run(wrong, prelude=prelude, **options))
    # A number is a file that is open already.
    written = [line for line in seen.read_text().splitlines() if not re.fullmatch(r"open (/dev/null|\d+)", line)]
    assert all(str(key) in line for line in written), written
    assert list(folder.iterdir()) == []
    assert key.exists()
    watch.hidden(SECRET)


SYSLOG = """
import json, types
from ansible.module_utils import basic
def _write(*arguments, **options):
    with open({path!r}, "a") as stream:
        stream.write(repr((arguments, options)) + json.dumps([str(arguments), str(options)]) + "\\n")
basic.has_journal = {journal}
basic.journal = types.SimpleNamespace(send=_write, sendv=_write)
basic.syslog = types.SimpleNamespace(
    syslog=_write, openlog=lambda *arguments: None, LOG_INFO=6, LOG_USER=8, LOG_NOTICE=5
)
basic.HAS_SYSLOG = True
"""


@one_version
@pytest.mark.parametrize("journal", [True, False])
@pytest.mark.parametrize("kind", PASSWORDS)
def test_the_log_of_the_machine(watch: Watch, tmp_path: Path, kind: str, journal: bool) -> None:
    """Ansible's own line shows passwords with a backslash or tab in them."""
    password = PASSWORDS[kind]
    path = tmp_path / "syslog"
    patch = SYSLOG.format(path=str(path), journal=journal)
    manifest = {
        "roles": [{"name": "r", "password": password}, {"name": "r2", "login": True}],
        "schemas": [{"name": "s"}],
    }
    passwords = {"r2": password}
    succeed(watch.run(manifest, check=True, patch=patch, passwords=passwords, login_password=password))
    succeed(watch.run(manifest, check=True, patch=patch, passwords=json.dumps(passwords)))
    fail(watch.run({**manifest, "roles": [{"name": "r", "pasword": password}]}, patch=patch))
    text = path.read_text()
    assert "Invoked" in text
    watch.output += text.splitlines()
    watch.hidden(password)


def test_nothing_is_said_to_lack_no_log(db: Database, tmp_path: Path) -> None:
    """Ansible warns of options whose names look like a secret's and that do not say what they are."""
    result = db.reconcile(
        with_password(SECRET), check=True, update_password="always", fingerprint_key_file=str(tmp_path / "key")
    )
    assert not [text for text in result.warnings if "no_log" in text]


# Secrets that are ordinary words

RICH = """
roles:
  - {name: app, password: %s, connection_limit: 12, comment: 'a true role'}
  - {name: a, login: true}
  - {name: owner}
schemas: [{name: s, owner: owner}]
memberships: [{role: owner, members: [{name: a}]}]
grants:
  - {role: app, privileges: [SELECT], object: {type: table, schema: public, name: '*'}}
  - {role: a, privileges: [USAGE], object: {type: schema, name: s}}
default_privileges:
  - {owner: owner, schema: s, grant: [{role: app, privileges: [SELECT], on_type: table}]}
"""

WORDS = [
    "1", "0", "12", "a", "app", "r", "ROLE", "true", "True", "false", "null", "None", "SELECT", "ALTER", "password",
    "PASSWORD", "********", "*", "sha256", "sha256:", "public", "table", "owner", "postgres", "changed", "(changed)", "msg",
    "warnings", "ok", " ", '"', "'", ", ", ":", "{", "[", "\n", "\\", "\\n", "e", "on", "s", "%", "ansible_facts",
]  # fmt: skip


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in ("timings", "warnings", "invocation")}


def leaves(value: Any) -> Iterator[str]:
    """Every value in a result as the text that Ansible would search. It leaves keys alone."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif value is not None:
        yield str(value)


def test_words_leave_the_result_exact(db: Database) -> None:
    """Ansible would mask every occurrence: ``1`` everywhere in numbers and digests, ``a`` in nearly every name."""
    db.sql("CREATE TABLE t (a int); CREATE ROLE a; GRANT SELECT ON t TO a; CREATE ROLE x; GRANT INSERT ON t TO x")
    manifest = yaml.safe_load(RICH % "placeholder")
    options: dict[str, Any] = {"fingerprint_key": KEY, "diff": True, "check": True}

    def run(password: str) -> Any:
        manifest["roles"][0]["password"] = password
        return db.reconcile(manifest, **options)

    plain = run("Zk3-9vWq-long-and-random-QxT")
    assert "VALUE_SPECIFIED" not in json.dumps(plain)
    for word in [*WORDS, db.name, str(db.version), plain.server["system_identifier"], plain.plan_digest, "0" * 3]:
        result = run(word)
        assert not result.failed, (word, result)
        assert comparable(result) == comparable(plain), word
        extra = [text for text in result.warnings if text not in plain.warnings]
        if any(word in text for text in leaves(comparable(plain))):
            assert len(extra) == 1, (word, result.warnings)
            assert "app" in extra[0]
        assert [text for text in result.warnings if text not in extra] == plain.warnings, word
        assert "VALUE_SPECIFIED" not in json.dumps(result)


@one_version
@pytest.mark.parametrize("word", ["1", "app", "ROLE", "true", "a"])
@pytest.mark.parametrize("place", ["password", "passwords", "json", "environment", "file"])
def test_words_from_everywhere(db: Database, tmp_path: Path, place: str, word: str) -> None:
    def run(password: str) -> Any:
        role: dict[str, Any] = {"name": "app", "login": True, "connection_limit": 11}
        options: dict[str, Any] = {}
        manifest: dict[str, Any] = {"roles": [role, {"name": "a"}]}
        if place == "password":
            role["password"] = password
        elif place == "passwords":
            options["passwords"] = {"app": password}
        elif place == "json":
            options["passwords"] = json.dumps({"app": password})
        elif place == "environment":
            role["password_from_env"] = "APP"
            options["environment"] = {"APP": password}
        else:
            role["password"] = password
            path = tmp_path / "access.yml"
            path.write_text(yaml.safe_dump(manifest))
            manifest = {"manifest_files": [str(path)]}
        return db.reconcile(manifest, check=True, diff=True, fingerprint_key=KEY, **options)

    plain = run("Zk3-9vWq-long-and-random-QxT")
    result = run(word)
    assert not result.failed, result
    assert comparable(result) == comparable(plain)


@pytest.mark.parametrize("word", ["1", "app", "ROLE", "true", "a", "12", "0"])
def test_words_in_a_run(db: Database, word: str) -> None:
    """Not only in check mode: what a run says is what its check run said."""
    result = db.converge({"roles": [{"name": "app", "password": word, "connection_limit": 12}]}, fingerprint_key=KEY)
    assert result.sql[-1].startswith("ALTER ROLE") or result.matching("PASSWORD")
    assert db.logs_in("app", word)
    assert result.summary["roles"] == {"created": 1, "altered": 0, "dropped": 0}


@one_version
@pytest.mark.parametrize("word", ["1", "r", "name", "unknown", "roles", "a", "0", "nope"])
def test_words_in_a_failure(db: Database, word: str) -> None:
    def run(password: str, **role: Any) -> Any:
        return db.reconcile(with_password(password, **role), check=True, fingerprint_key=KEY)

    for wrong in ({"nope": 1}, {"connection_limit": -5}, {"login": "perhaps"}):
        plain = run("Zk3-9vWq-long-and-random-QxT", **wrong)
        result = run(word, **wrong)
        assert result.failed
        assert comparable(result) == comparable(plain), wrong


def test_a_word_beside_a_real_secret(watch: Watch) -> None:
    """Letting ``1`` through must not let anything else through."""
    manifest = {"roles": [{"name": "r", "password": "1"}, {"name": "r2", "password": SECRET}]}
    succeed(watch.both(manifest))
    fail(watch.both({**manifest, "roles": [*manifest["roles"], {"name": "r3", "pasword": "x" + SECRET}]}))
    watch.hidden(SECRET)


def test_the_secrets_of_a_check_run_are_not_even_sent(db: Database) -> None:
    """Check mode sends nothing of a password, in no form."""
    with db.statements() as statements:
        result = db.reconcile(with_password(SECRET), check=True, fingerprint_key=KEY)
    assert not result.failed
    assert not [text for text in statements if re.match(r"\s*(DO|ALTER|CREATE|INSERT)\b", text)]
