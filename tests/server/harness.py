# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the server tests stand on: a database of one's own, the module run as Ansible runs it, and a look at the catalog."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import psycopg
import pytest
import yaml
from servers import PASSWORD, VERSIONS, Server, psql
from servers import start as start_server
from zygote import COLLECTION

CHECKOUT = Path(__file__).resolve().parents[2]
#: Ansible looks for collections in folders called ansible_collections, whatever the checkout is called.
COLLECTIONS = CHECKOUT / ".build" / "server-tests"

MODULE = "pg_role_reconcile"

ERROR_CODES = frozenset(
    {
        "manifest_invalid", "missing_library", "library_too_old", "unsupported_version", "connection_failed",
        "authentication_failed", "wrong_cluster", "insufficient_privilege", "object_missing", "drop_blocked",
        "dependent_privileges", "guard", "self_protection", "plan_too_large", "too_many_locks", "plan_changed",
        "lock_timeout", "read_only_server", "not_converged", "outcome_unknown", "partially_applied", "collision",
        "fingerprint_key_missing", "not_supported", "server_error", "internal_error",
    }
)  # fmt: skip

REASONS = frozenset(
    {
        "mode", "external", "undeclared_grantee", "extension", "unmanaged_membership", "unmanaged_default", "predefined",
        "provider", "shared_object", "dangling_grantee", "automatic_membership", "unknown_kind", "password_not_ours",
        "self_protection",
    }
)  # fmt: skip

SUMMARY = {
    "roles": {"created", "altered", "dropped"},
    "passwords": {"set"},
    "memberships": {"added", "altered", "removed"},
    "schemas": {"created", "owner_changed"},
    "grants": {"granted", "revoked"},
    "default_privileges": {"granted", "revoked"},
}

#: Where there is a check run, too, once nothing is left to do. The run itself comes on every version.
CHECKED_AGAIN = frozenset({VERSIONS[0], VERSIONS[-1]})

#: What is refused before anything is connected to is tested with one version, because no server has a say in it.
UNCONNECTED = pytest.mark.versions(min=VERSIONS[-1])

Manifest: TypeAlias = "dict[str, Any] | str"


class Result(dict[str, Any]):
    """What the module returned. A key that it left out reads as empty."""

    _EMPTY: ClassVar[dict[str, Any]] = {
        "changed": False,
        "failed": False,
        "sql": [],
        "plan": [],
        "problems": [],
        "withheld": [],
        "suppressed_revokes": [],
        "suppressed_revoke_count": 0,
        "warnings": [],
        "diff": [],
        "msg": "",
        "error_code": None,
    }

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        if name in self._EMPTY:
            return self._EMPTY[name]
        raise AttributeError(f"the result has no {name}: {json.dumps(self, indent=1, default=str)[:4000]}")

    @property
    def text(self) -> str:
        """Everything a failure says, as one text to search."""
        said = [self.get("msg"), self.get("detail"), self.get("hint")]
        said += [value for problem in self.problems for value in problem.values()]
        return "\n".join(str(value) for value in said if value)

    def matching(self, pattern: str) -> list[str]:
        """The statements in which the pattern is found."""
        return [statement for statement in self.sql if re.search(pattern, statement)]

    def held(self, **wanted: Any) -> list[dict[str, Any]]:
        """The withheld items whose keys have these values."""
        return [item for item in self.withheld if all(item.get(key) == value for key, value in wanted.items())]


def link_collection() -> None:
    """Make the checkout importable as ansible_collections.pg_access.reconcile."""
    folder = COLLECTIONS / "ansible_collections" / "pg_access"
    folder.mkdir(parents=True, exist_ok=True)
    # With __init__.py, else an installed ansible_collections package further along the path would win.
    for package in (folder.parent, folder):
        (package / "__init__.py").touch()
    link = folder / "reconcile"
    if not link.is_symlink():
        try:
            link.symlink_to(CHECKOUT)
        except FileExistsError:
            # Another worker was quicker.
            pass


def module_environment(**more: str) -> dict[str, str]:
    """The environment of a module: nothing of libpq's that the tests' own shell may have set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    path = os.pathsep.join(part for part in (str(COLLECTIONS), os.environ.get("PYTHONPATH", "")) if part)
    return {**kept, "PYTHONPATH": path, **more}


class Runner:
    """Runs modules: in a forked child of a process that has everything loaded, or in a process of their own."""

    def __init__(self) -> None:
        link_collection()
        self._zygote: subprocess.Popen[str] | None = None

    def close(self) -> None:
        if self._zygote:
            assert self._zygote.stdin
            self._zygote.stdin.close()
            try:
                self._zygote.wait(10)
            except subprocess.TimeoutExpired:
                self._zygote.kill()
            self._zygote = None

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("zygote.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=module_environment(),
        )

    def forked(
        self,
        arguments: dict[str, Any],
        environment: dict[str, str],
        module: str,
        timeout: float,
        patch: str = "",
        started: Callable[[int], object] | None = None,
    ) -> tuple[str, str, int]:
        """Standard output, standard error and exit code. ``started`` is told the module's process number."""
        (answer,) = self._ask([arguments], environment, module, timeout, patch, started)
        return answer["stdout"], answer["stderr"], answer["code"]

    def together(self, arguments: list[dict[str, Any]], timeout: float = 60) -> list[tuple[Result, float]]:
        """Run modules at the same time, and wait for the last: what each returned, and its seconds."""
        answers = self._ask(arguments, module_environment(), MODULE, timeout)
        return [(parse(a["stdout"], a["stderr"], a["code"]), a["seconds"]) for a in answers]

    def _ask(
        self,
        arguments: list[dict[str, Any]],
        environment: dict[str, str],
        module: str,
        timeout: float,
        patch: str = "",
        started: Callable[[int], object] | None = None,
    ) -> list[dict[str, Any]]:
        if self._zygote is None or self._zygote.poll() is not None:
            self._zygote = self._start()
        assert self._zygote.stdin
        assert self._zygote.stdout
        common = {
            "environment": environment,
            "module": module,
            "timeout": timeout,
            "patch": patch,
            "tell": started is not None,
        }
        self._zygote.stdin.write(json.dumps([{**common, "arguments": one} for one in arguments]) + "\n")
        self._zygote.stdin.flush()
        line = self._zygote.stdout.readline()
        if started is not None and line:
            started(json.loads(line)["process"])
            line = self._zygote.stdout.readline()
        assert line, "the process that runs modules died"
        answers: list[dict[str, Any]] = json.loads(line)
        return answers

    @staticmethod
    def process(
        arguments: dict[str, Any],
        environment: dict[str, str],
        module: str,
        blocked: tuple[str, ...] = (),
        prelude: str = "",
    ) -> subprocess.Popen[str]:
        """The module as a program of its own with its arguments on standard input.

        ``blocked`` libraries are missing. ``prelude`` is Python that runs before the module is imported.
        """
        code = (
            f"import runpy, sys\nfor name in {blocked!r}: sys.modules[name] = None\n{prelude}\n"
            f"sys.argv = [{module!r}]\n"
            f"runpy.run_module({f'{COLLECTION}.plugins.modules.{module}'!r}, run_name='__main__')\n"
        )
        program = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert program.stdin
        program.stdin.write(json.dumps(arguments))
        program.stdin.close()
        # communicate() would write to it again.
        program.stdin = None
        return program


def _warning_text(warning: Any) -> str:
    """Releases from 2.19 on may wrap a warning."""
    while isinstance(warning, dict):
        warning = warning.get("event") or warning.get("msg") or warning.get("message") or json.dumps(warning)
    return str(warning)


def parse(stdout: str, stderr: str, code: int) -> Result:
    """The module's answer. Anything but one JSON object is a bug of the module."""
    try:
        result = Result(json.loads(stdout))
    except ValueError:
        raise AssertionError(f"no JSON from the module (exit {code})\n{stdout[-3000:]}\n{stderr[-6000:]}") from None
    assert not stderr.strip(), f"the module wrote to standard error:\n{stderr[-6000:]}"
    result["warnings"] = [_warning_text(warning) for warning in result.get("warnings") or []]
    return result


@functools.cache
def _warning_patterns() -> list[re.Pattern[str]]:
    """The texts of docs/results.md: words in capitals stand for names, numbers and more."""
    page = (CHECKOUT / "docs" / "results.md").read_text(encoding="utf-8")
    section = page.partition("## Warnings")[2].partition("\n## ")[0]
    texts = [text for row in re.findall(r"^\| (`.*?) \|", section, re.M) for text in re.findall(r"`([^`]+)`", row)]
    found = []
    for text in texts:
        escaped = re.escape(text).replace(r"\.\.\.", ".*")
        pattern = re.sub(r"\b[A-Z]{4,}\b(?<!LOGIN)(?<!INHERIT)(?<!COMMIT)|\bN\b", ".+", escaped)
        found.append(re.compile(pattern, re.S))
    return found


def documented_warning(text: str) -> bool:
    return any(pattern.match(text) for pattern in _warning_patterns())


def check_shape(result: Result, *, check: bool, diff: bool) -> None:
    """What ``spec/module.md`` promises of every result, whatever the test is about."""
    for text in result.warnings:
        # Ours begin with where the run is; a database's name may have anything in it.
        places = [at.end() for at in re.finditer(r"@.+?:\d+: ", text)]
        assert not places or any(documented_warning(text[place:]) for place in places), text
    if result.failed:
        assert result.get("msg"), result
        assert result.error_code in ERROR_CODES, result
        assert result.sql == [] or result.error_code == "partially_applied", result
        assert not result.changed or result.error_code == "partially_applied", result
        assert isinstance(result.problems, list), result
        for problem in result.problems:
            assert problem.get("message"), result
            assert set(problem) <= {"path", "file", "role", "object", "message", "hint"}, result
        return
    for key in ("changed", "sql", "suppressed_revokes", "suppressed_revoke_count", "withheld", "summary", "plan_digest",
                "server", "timings"):  # fmt: skip
        assert key in result, f"{key} is missing"
    assert isinstance(result.changed, bool)
    assert result.changed == bool(result.sql), "changed says one thing, sql the other"
    assert all(isinstance(statement, str) and statement.strip() for statement in result.sql)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", result.plan_digest)
    for section, keys in SUMMARY.items():
        assert set(result.summary[section]) == keys, section
        assert all(
            isinstance(value, int) and not isinstance(value, bool) for value in result.summary[section].values()
        ), result.summary
    assert "managed" in result.summary
    assert set(result.server) >= {"version", "database", "system_identifier", "in_recovery", "executor"}
    for item in result.withheld:
        assert item.get("reason") in REASONS, item
        assert set(item) >= {"change", "role", "object", "privileges", "sql", "reason"}, item
    count = 0
    for item in result.suppressed_revokes:
        assert set(item) == {"role", "kind", "object", "owner", "privileges", "grantor", "sql"}, item
        assert item["kind"] in ("object", "column", "grant_option", "default_privilege"), item
        count += len(item["privileges"]) * max(1, len((item["object"] or {}).get("columns") or []))
    # A list that was shortened names three objects and counts the others.
    assert result.suppressed_revoke_count == count or result.get("truncated")
    assert sum(result.summary["suppressed_revokes"].values()) == result.suppressed_revoke_count
    for item in result.get("explain", ()):
        assert item["plan"] in ("unchanged", "gained", "lost"), item
        assert result.changed or item["plan"] == "unchanged", item
        assert item["count"] == len(item["objects"]) or item["object"]["name"] == "*" or result.get("truncated"), item
        assert item["set_role"] is None or item["set_role"] in item["via"], item
    counted = sum(sum(result.summary[section].values()) for section in SUMMARY)
    # The store of fingerprints is made by statements that change nobody's access.
    plain = [statement for statement in result.sql if "role_reconcile" not in statement]
    assert bool(counted) == bool(plain), f"the summary counts {counted} changes"
    if diff:
        assert isinstance(result.get("diff"), list)
    else:
        assert not result.get("diff")
    facts = (result.get("ansible_facts") or {}).get("pg_role_reconcile")
    if facts is not None:
        for key in ("changed", "sql", "suppressed_revokes", "suppressed_revoke_count", "summary", "plan_digest"):
            assert facts[key] == result[key], key


class Cluster:
    """A server that many tests use, one after the other, each leaving it as it was."""

    def __init__(self, server: Server, *settings: str) -> None:
        """``settings``: what the server was started with, for a fresh one in its place."""
        self.server = server
        self._settings = settings
        self.connection = self._connect()
        self.baseline = self.state()

    @property
    def version(self) -> int:
        return self.server.version

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(autocommit=True, **self.address("postgres"))

    def reconnect(self) -> None:
        """After the server has started again."""
        self.connection.close()
        self.connection = self._connect()

    def address(self, database: str) -> dict[str, Any]:
        return {
            "host": self.server.socket_directory,
            "port": self.server.port,
            "user": "postgres",
            "dbname": database,
        }

    def state(self) -> Any:
        """All that tests may leave in a cluster outside their database."""
        return self.connection.execute(
            f"""SELECT
            (SELECT array_agg(r::text ORDER BY oid) FROM pg_catalog.pg_authid r WHERE rolname <> 'postgres'),
            (SELECT (r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolconnlimit,
                     r.rolvaliduntil)::text FROM pg_catalog.pg_authid r WHERE oid = 10),
            (SELECT array_agg((roleid, member, grantor, admin_option)::text ORDER BY roleid, member, grantor)
               FROM pg_catalog.pg_auth_members),
            (SELECT array_agg((datname, datdba, datacl)::text ORDER BY oid) FROM pg_catalog.pg_database),
            (SELECT array_agg((spcname, spcowner, spcacl)::text ORDER BY oid) FROM pg_catalog.pg_tablespace),
            (SELECT array_agg(s::text ORDER BY s::text) FROM pg_catalog.pg_db_role_setting s),
            (SELECT array_agg(d::text ORDER BY d::text) FROM pg_catalog.pg_shdescription d),
            (SELECT array_agg((classid, objid)::text ORDER BY classid, objid) FROM pg_catalog.pg_shdepend WHERE dbid <> 0),
            {
                "(SELECT array_agg((parname, paracl)::text ORDER BY oid) FROM pg_catalog.pg_parameter_acl)"
                if self.version >= 15
                else "NULL"
            }"""
        ).fetchone()

    def create_database(self) -> str:
        name = f"app_{uuid.uuid4().hex[:8]}"
        self.connection.execute(f"CREATE DATABASE {name} {self.template}")
        return name

    @property
    def template(self) -> str:
        """How databases are made. Copying files, all that 14 can do, takes half of what writing WAL does."""
        return "TEMPLATE template0" + (" STRATEGY file_copy" if self.version >= 15 else "")

    def drop_database(self, name: str) -> None:
        # Sessions that are just closing make FORCE sleep for 100 ms: give them a moment instead.
        for _attempt in range(50):
            if not self.connection.execute("SELECT FROM pg_stat_activity WHERE datname = %s", [name]).fetchall():
                break
            time.sleep(0.002)
        self.connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def clean(self) -> None:
        """Back to the baseline. What resists costs a fresh server, so that no test suffers for another."""
        try:
            self._clean()
            if self.state() == self.baseline:
                return
        except psycopg.Error:
            pass
        self.connection.close()
        self.server.stop()
        self.server = start_server(self.version, *self._settings)
        self.connection = self._connect()
        self.baseline = self.state()

    def _names(self, query: str) -> list[str]:
        return [row[0] for row in self.connection.execute(query).fetchall()]

    def _clean(self) -> None:
        if self.state() == self.baseline:
            return
        for name in self._names(
            "SELECT quote_ident(datname) FROM pg_database WHERE datname NOT IN ('postgres', 'template0', 'template1')"
        ):
            self.connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        for name in self._names("SELECT quote_ident(spcname) FROM pg_tablespace WHERE left(spcname, 3) <> 'pg_'"):
            self.connection.execute(f"DROP TABLESPACE {name}")
        roles = self._names("SELECT quote_ident(rolname) FROM pg_roles WHERE oid >= 16384")
        if roles:
            # Also takes what they were granted on shared objects. One by one: a list fails where two of them meet in one row
            # of pg_default_acl, and that would cost a server.
            for role in roles:
                self.connection.execute(f"DROP OWNED BY {role} CASCADE")
            self.connection.execute(f"DROP ROLE {', '.join(roles)}")
        # An ACL that was granted on and revoked from is no longer NULL.
        self.connection.execute("UPDATE pg_database SET datacl = NULL WHERE datname = 'postgres'")
        self.connection.execute("UPDATE pg_tablespace SET spcacl = NULL")
        self.connection.execute("ALTER ROLE postgres RESET ALL")
        self.connection.execute("COMMENT ON ROLE postgres IS NULL")


@contextmanager
def another_server(version: int, settings: str = "", hba: str = "") -> Iterator[Cluster]:
    """A server beside the one that all tests share, with more lines of postgresql.conf and pg_hba.conf. It ends with the
    block.
    """
    cluster = Cluster(start_server(version, settings, hba), settings, hba)
    try:
        yield cluster
    finally:
        cluster.connection.close()
        cluster.server.stop()


#: Everything that a run could change. Keys say what, values say how it is.
_SNAPSHOT = """
SELECT 'relation ' || c.oid::regclass, pg_get_userbyid(c.relowner) || ' ' || c.relkind::text || ' ' || {acl[c.relacl]}
  FROM pg_class c WHERE c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)
UNION ALL SELECT 'column ' || a.attrelid::regclass || '.' || a.attname, {acl[a.attacl]} FROM pg_attribute a WHERE a.attacl IS NOT NULL
UNION ALL SELECT 'routine ' || p.oid::regprocedure, pg_get_userbyid(p.proowner) || ' ' || {acl[p.proacl]}
  FROM pg_proc p WHERE p.oid >= 16384 OR p.proacl IS NOT NULL
UNION ALL SELECT 'type ' || format_type(t.oid, NULL), pg_get_userbyid(t.typowner) || ' ' || {acl[t.typacl]} FROM pg_type t
  WHERE t.oid >= 16384 OR t.typacl IS NOT NULL
UNION ALL SELECT 'schema ' || n.nspname, pg_get_userbyid(n.nspowner) || ' ' || {acl[n.nspacl]} FROM pg_namespace n
UNION ALL SELECT 'database ' || d.datname, pg_get_userbyid(d.datdba) || ' ' || {acl[d.datacl]} FROM pg_database d
UNION ALL SELECT 'tablespace ' || s.spcname, {acl[s.spcacl]} FROM pg_tablespace s
UNION ALL SELECT 'language ' || l.lanname, {acl[l.lanacl]} FROM pg_language l
UNION ALL SELECT 'wrapper ' || w.fdwname, {acl[w.fdwacl]} FROM pg_foreign_data_wrapper w
UNION ALL SELECT 'foreign server ' || f.srvname, {acl[f.srvacl]} FROM pg_foreign_server f
UNION ALL SELECT 'large object ' || o.oid, {acl[o.lomacl]} FROM pg_largeobject_metadata o
UNION ALL SELECT 'default ' || concat_ws('|', pg_get_userbyid(d.defaclrole), d.defaclnamespace, d.defaclobjtype), {acl[d.defaclacl]}
  FROM pg_default_acl d
UNION ALL SELECT 'role ' || r.rolname, concat_ws('|', r.oid, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb,
  r.rolcanlogin, r.rolreplication, r.rolbypassrls, r.rolconnlimit, r.rolpassword, coalesce(r.rolvaliduntil::text, 'never'),
  shobj_description(r.oid, 'pg_authid')) FROM pg_authid r
UNION ALL SELECT 'setting ' || s.setdatabase || '|' || s.setrole, s.setconfig::text FROM pg_db_role_setting s
UNION ALL SELECT 'membership ' || concat_ws('|', pg_get_userbyid(m.roleid), pg_get_userbyid(m.member), pg_get_userbyid(m.grantor)),
  (to_jsonb(m) - 'oid' - 'roleid' - 'member' - 'grantor')::text FROM pg_auth_members m
"""


class _Acl(dict[str, str]):
    def __missing__(self, column: str) -> str:
        # The order of entries means nothing; NULL and empty are different things.
        return f"coalesce((SELECT '{{' || string_agg(x, ',' ORDER BY x) || '}}' FROM unnest({column}::text[]) x), {column}::text, 'NULL')"


class Database:
    """A fresh database, with the module and the catalog at hand."""

    def __init__(self, cluster: Cluster, runner: Runner) -> None:
        self.cluster = cluster
        self.runner = runner
        self.version = cluster.version
        #: A table owner's own letters.
        self.full = "arwdDxtm" if self.version >= 17 else "arwdDxt"
        self.name = cluster.create_database()
        self._connections: list[psycopg.Connection[Any]] = []
        self._processes: list[subprocess.Popen[str]] = []
        self.connection = self.connect()

    @property
    def server(self) -> Server:
        return self.cluster.server

    def close(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        for connection in self._connections:
            connection.close()
        self.cluster.drop_database(self.name)
        self.cluster.clean()

    # SQL

    def connect(self, user: str = "postgres", **options: Any) -> psycopg.Connection[Any]:
        """A session of its own; it ends with the test."""
        address = {**self.cluster.address(self.name), "user": user, **options}
        connection = psycopg.connect(**{"autocommit": True, **address})
        self._connections.append(connection)
        return connection

    def sql(self, *scripts: str) -> None:
        """Run statements as the superuser."""
        for script in scripts:
            self.connection.execute(script)

    def query(self, query: str, *parameters: Any, prepare: bool | None = None) -> list[tuple[Any, ...]]:
        return self.connection.execute(query, parameters or None, prepare=prepare).fetchall()

    def value(self, query: str, *parameters: Any) -> Any:
        rows = self.query(query, *parameters)
        assert len(rows) == 1, rows
        return rows[0][0]

    def psql(
        self, script: Path, *, user: str = "postgres", database: str | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a script as a DBA does. It has nothing on standard input, so what asks gets no answer."""
        program = psql()
        assert program, "there is no psql: run python tests/server/servers.py prepare"
        address = self.cluster.address(database or self.name)
        given = [part for name, value in variables.items() for part in ("-v", f"{name}={value}")]
        return subprocess.run(
            [
                str(program), "-X", "-q", "-h", address["host"], "-p", str(address["port"]), "-U", user,
                "-d", address["dbname"], *given, "-f", str(script),
            ],
            check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
            env=module_environment(LC_ALL="C.UTF-8"),
        )  # fmt: skip

    def runs(self, script: Path, **options: Any) -> None:
        """The script runs in psql, without an error, a warning or anything else to say."""
        done = self.psql(script, **options)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), (
            f"{done.stdout}{done.stderr}\n{script.read_text()}"
        )

    # The catalog

    def _entries(self, entries: list[str] | None) -> set[str] | None:
        return None if entries is None else set(entries)

    def acl(self, name: str, kind: str = "table") -> set[str] | None:
        """The ACL of an object as a set of entries such as ``r=r/postgres``. None is NULL. ``name`` is SQL."""
        sources = {
            "table": "SELECT relacl::text[] FROM pg_class WHERE oid = %s::regclass",
            "function": "SELECT proacl::text[] FROM pg_proc WHERE oid = %s::regprocedure",
            "schema": "SELECT nspacl::text[] FROM pg_namespace WHERE oid = %s::regnamespace",
            "type": "SELECT typacl::text[] FROM pg_type WHERE oid = %s::regtype",
            "database": "SELECT datacl::text[] FROM pg_database WHERE datname = %s",
            "language": "SELECT lanacl::text[] FROM pg_language WHERE lanname = %s",
        }
        return self._entries(self.value(sources[kind], name))

    def column_acl(self, table: str, column: str) -> set[str] | None:
        return self._entries(
            self.value(
                "SELECT attacl::text[] FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s", table, column
            )
        )

    def defaults(self) -> dict[tuple[str, str | None, str], set[str]]:
        """``pg_default_acl``: (owner, schema or None, letter) to entries."""
        return {
            (owner, schema, kind): set(entries)
            for owner, schema, kind, entries in self.query(
                "SELECT pg_get_userbyid(d.defaclrole), n.nspname, d.defaclobjtype::text, d.defaclacl::text[]"
                " FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace"
            )
        }

    def edges(self, group: str | None = None) -> set[tuple[Any, ...]]:
        """(group, member, grantor, admin) and, from 16 on, (…, inherit, set) of memberships between the test's roles."""
        options = ", m.inherit_option, m.set_option" if self.version >= 16 else ""
        return set(
            self.query(
                "SELECT pg_get_userbyid(m.roleid), pg_get_userbyid(m.member), pg_get_userbyid(m.grantor), "
                "m.admin_option"
                f"{options} FROM pg_auth_members m WHERE (m.roleid >= 16384 OR m.member >= 16384)"
                " AND (%s::text IS NULL OR pg_get_userbyid(m.roleid) = %s)",
                group,
                group,
            )
        )

    def members(self, group: str) -> set[str]:
        return {edge[1] for edge in self.edges(group)}

    def roles(self) -> set[str]:
        """The roles that are not the server's own."""
        return {row[0] for row in self.query("SELECT rolname FROM pg_roles WHERE oid >= 16384")}

    def attribute(self, role: str, name: str) -> Any:
        return self.value(f"SELECT {name} FROM pg_roles WHERE rolname = %s", role)

    def snapshot(self) -> dict[str, str]:
        """Owners, ACLs, roles with their passwords, memberships, comments and settings, and the fingerprint records."""
        # Planned once for a session: planning takes longer than running it.
        rows = self.query(_SNAPSHOT.format(acl=_Acl()), prepare=True)
        rows += [(f"record {oid}", record) for oid, record in self.records().items()]
        found: dict[str, str] = {}
        for key, value in sorted(rows):
            found[key] = found[key] + " & " + value if key in found else value
        return found

    # Passwords

    def verifier(self, role: str) -> str | None:
        """What PostgreSQL keeps instead of the role's password."""
        value: str | None = self.value("SELECT rolpassword FROM pg_authid WHERE rolname = %s", role)
        return value

    def logs_in(self, role: str, password: str, *, md5: bool = False) -> bool:
        """Whether the role gets in over TCP with this password; with ``md5`` also where PostgreSQL keeps an md5 hash.

        The socket trusts everybody, so it would prove nothing.
        """
        try:
            psycopg.connect(
                host="127.0.0.1",
                port=self.server.port,
                user=role,
                password=password,
                dbname="postgres" if md5 else self.name,
                client_encoding="utf8",
            ).close()
        except psycopg.OperationalError as error:
            # 28P01 and 28000: libpq does not hand on the code of a refused connection.
            if re.search(r"FATAL: +(password authentication failed for user|role .* is not permitted to log in)", str(error)):  # fmt: skip
                return False
            raise
        return True

    def records(self) -> dict[int, str]:
        """The records of the fingerprint store ``table`` by role OID, each as one text."""
        if self.value("SELECT to_regclass('role_reconcile.password_fingerprint') IS NULL"):
            return {}
        columns = [row[0] for row in self.query(
            "SELECT attname::text FROM pg_attribute WHERE attrelid = 'role_reconcile.password_fingerprint'::regclass"
            " AND attnum > 0 AND NOT attisdropped AND atttypid = 'oid'::regtype"
        )]  # fmt: skip
        (key,) = columns
        return dict(self.query(f'SELECT "{key}", f::text FROM role_reconcile.password_fingerprint f ORDER BY 1'))

    def record(self, role: str) -> str | None:
        """The role's record in the table."""
        return self.records().get(self.value("SELECT oid FROM pg_roles WHERE rolname = %s", role))

    def comment(self, role: str) -> str | None:
        """The role's comment as PostgreSQL keeps it: with the store ``comment`` its last line is a record."""
        value: str | None = self.value(
            "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = %s", role
        )
        return value

    def admin(self, *roles: str, name: str = "adm") -> dict[str, Any]:
        """Make a CREATEROLE login that may manage these roles and create the store. Returns the options to run as it."""
        if not self.query("SELECT FROM pg_roles WHERE rolname = %s", name):
            self.sql(f'CREATE ROLE "{name}" LOGIN CREATEROLE; GRANT CREATE ON DATABASE {self.name} TO "{name}"')
        if self.version >= 16:
            # Before, CREATEROLE alone reaches every role that is no superuser.
            for role in roles:
                self.sql(f'GRANT "{role}" TO "{name}" WITH ADMIN OPTION, INHERIT FALSE, SET FALSE')
        return {"login_user": name}

    @contextmanager
    def statements(self) -> Iterator[list[str]]:
        """Collects what other sessions send to this database meanwhile, as the server's log has it."""
        self.sql(f"ALTER DATABASE {self.name} SET log_statement = 'all'")
        start = (self.server.directory / "log").stat().st_size
        found: list[str] = []
        try:
            yield found
        finally:
            with (self.server.directory / "log").open("rb") as log:
                log.seek(start)
                text = log.read().decode(errors="replace")
            # The rest of a statement of several lines follows after tabs.
            for line in text.replace("\n\t", " ").splitlines():
                match = re.search(rf"@{self.name} LOG:  (?:statement|execute [^:]*): (.*)", line)
                if match and not match.group(1).startswith(f"ALTER DATABASE {self.name} "):
                    found.append(match.group(1))
            self.sql(f"ALTER DATABASE {self.name} RESET log_statement")

    # The module

    def arguments(
        self,
        manifest: Manifest | None = None,
        *,
        check: bool = False,
        diff: bool = False,
        verbosity: int = 0,
        remote_tmp: str = "~/.ansible/tmp",
        **options: Any,
    ) -> dict[str, Any]:
        """What Ansible would hand to the module. An option given as None is left out."""
        sections = yaml.safe_load(manifest) if isinstance(manifest, str) else manifest
        given = {
            "login_unix_socket": self.server.socket_directory,
            "login_port": self.server.port,
            "login_user": "postgres",
            "login_db": self.name,
            **(sections or {}),
            **options,
        }
        return {
            "ANSIBLE_MODULE_ARGS": {
                **{key: value for key, value in given.items() if value is not None},
                "_ansible_check_mode": check,
                "_ansible_diff": diff,
                "_ansible_module_name": f"pg_access.reconcile.{MODULE}",
                "_ansible_no_log": False,
                "_ansible_debug": False,
                "_ansible_verbosity": verbosity,
                # From ansible-core 2.19 on the result has an invocation only when this asks for it, as -vvv does.
                "_ansible_inject_invocation": verbosity >= 3,
                "_ansible_keep_remote_files": False,
                "_ansible_remote_tmp": remote_tmp,
                "_ansible_syslog_facility": "LOG_USER",
                "_ansible_shell_executable": "/bin/sh",
                "_ansible_version": "2.0",
            }
        }

    def raw(
        self,
        manifest: Manifest | None = None,
        *,
        process: bool = False,
        environment: dict[str, str] | None = None,
        blocked: tuple[str, ...] = (),
        prelude: str = "",
        patch: str = "",
        timeout: float = 60,
        started: Callable[[int], object] | None = None,
        **options: Any,
    ) -> tuple[str, str, int]:
        """Run the module once: standard output, standard error and exit code as they are.

        ``process``: as a program of its own. ``blocked``: libraries that are not installed. ``prelude``: see Runner.
        ``patch``: Python that runs once the module is imported, for this run only. ``started`` is told the process
        number.
        """
        arguments = self.arguments(manifest, **options)
        variables = module_environment(**(environment or {}))
        if process or blocked or prelude:
            program = self.runner.process(arguments, variables, MODULE, blocked, prelude)
            self._processes.append(program)
            if started is not None:
                started(program.pid)
            stdout, stderr = program.communicate(timeout=timeout)
            return stdout, stderr, program.returncode
        return self.runner.forked(arguments, variables, MODULE, timeout, patch, started)

    def reconcile(
        self, manifest: Manifest | None = None, *, check: bool = False, diff: bool = False, **options: Any
    ) -> Result:
        """Run the module once. The options are those of ``raw`` and of the module."""
        result = parse(*self.raw(manifest, check=check, diff=diff, **options))
        check_shape(result, check=check, diff=diff)
        return result

    def run_export(self, *, environment: dict[str, str] | None = None, patch: str = "", **options: Any) -> Result:
        """Run pg_role_export once."""
        arguments = self.arguments(None, **options)
        arguments["ANSIBLE_MODULE_ARGS"]["_ansible_module_name"] = "pg_access.reconcile.pg_role_export"
        variables = module_environment(**(environment or {}))
        result = parse(*self.runner.forked(arguments, variables, "pg_role_export", 60, patch))
        if result.failed:
            assert result.get("msg"), result
            assert result.error_code in ERROR_CODES, result
        return result

    def export(self, folder: Path, **options: Any) -> Result:
        """The rule for all exports: twice the same, nothing is written, and a reconcile has nothing to do, be it with the
        manifest as options or as a file.
        """
        before = self.snapshot()
        result = self.run_export(**options)
        assert not result.failed, json.dumps(result, indent=1)
        assert self.run_export(**options)["yaml"] == result["yaml"], "the second export differs"
        assert self.snapshot() == before, "the export wrote something"
        assert yaml.safe_load(result["yaml"]) == result["manifest"]
        file = folder / "access.yml"
        file.write_text(result["yaml"], encoding="utf-8")
        for given in (result["manifest"], {"manifest_files": [str(file)]}):
            again = self.reconcile(given or {"roles": []})
            assert not again.failed, again
            assert again.sql == []
            assert again.suppressed_revoke_count == 0
        assert self.snapshot() == before, "applying the export wrote something"
        return result

    def background(self, manifest: Manifest | None = None, *, check: bool = False, **options: Any) -> Background:
        """Start the module and do not wait."""
        program = self.runner.process(
            self.arguments(manifest, check=check, **options), module_environment(), MODULE, ()
        )
        self._processes.append(program)
        return Background(program)

    def converge(self, manifest: Manifest | None = None, **options: Any) -> Result:
        """The rule for all cases: a check run predicts and writes nothing, the run does it, another has nothing to do."""
        before = self.snapshot()
        predicted = self.reconcile(manifest, check=True, **options)
        assert not predicted.failed, predicted
        assert self.snapshot() == before, "the check run wrote something"
        result = self.reconcile(manifest, **options)
        assert not result.failed, result
        for key in ("changed", "sql", "plan_digest", "summary", "suppressed_revokes", "withheld"):
            assert result[key] == predicted[key], f"the check run predicted another {key}"
        after = self.snapshot()
        if not result.changed:
            # Records are the module's own business: writing one is no change.
            plain = [{key: value for key, value in side.items() if not key.startswith("record ")} for side in (before, after)]  # fmt: skip
            assert plain[0] == plain[1], "it says that nothing changed"
        if result.sql == [] and after == before:
            # Both runs found this state and left it. A third would be the same question again.
            assert result.changed is False
            return result
        for check in (True, False) if self.version in CHECKED_AGAIN else (False,):
            again = self.reconcile(manifest, check=check, **options)
            assert not again.failed, again
            assert again.sql == [], "a second run still had something to do"
            assert again.changed is False
        assert self.snapshot() == after, "the second run wrote something"
        return result

    def silent(self, manifest: Manifest | None = None, **options: Any) -> Result:
        """There is nothing to do."""
        result = self.converge(manifest, **options)
        assert result.sql == []
        return result

    def fails(
        self,
        manifest: Manifest | None,
        code: str | tuple[str, ...],
        *words: str,
        check_too: bool = True,
        **options: Any,
    ) -> Result:
        """The run fails with this code (or one of these), says all these words, and leaves everything as it was."""
        codes = (code,) if isinstance(code, str) else code
        before = self.snapshot()
        for check in (True, False) if check_too else (False,):
            result = self.reconcile(manifest, check=check, **options)
            assert result.failed, result
            assert result.error_code in codes, result
            for word in words:
                assert word in result.text, f"{word!r} is not in {result.text}"
            assert self.snapshot() == before, "a failed run left something behind"
        return result

    def rejects(self, manifest: Manifest, *words: str, code: str = "manifest_invalid", **options: Any) -> Result:
        """The validator refuses it without a connection: there is no server at all where this points."""
        result = self.fails(manifest, code, *words, login_unix_socket="/nonexistent", **options)
        if code == "manifest_invalid":
            assert result.problems, result
        return result


class Background:
    """A module that runs meanwhile."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self.program = program

    def running(self) -> bool:
        return self.program.poll() is None

    def waits(self, db: Database, query: str, seconds: float = 8) -> int:
        """The number that the query finds once the module has come to where it waits."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = db.query(query)
            if found:
                return int(found[0][0])
            assert self.running(), f"it did not wait: {self.result()}"
            time.sleep(0.02)
        raise AssertionError("nobody waits")

    def result(self, timeout: float = 60) -> Result:
        stdout, stderr = self.program.communicate(timeout=timeout)
        return parse(stdout, stderr, self.program.returncode)


__all__ = ["PASSWORD", "UNCONNECTED", "Background", "Cluster", "Database", "Result", "Runner", "another_server"]
