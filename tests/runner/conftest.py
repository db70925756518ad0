# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures of the tests with ansible-runner: an image's programs, the installed collection, a project, a database."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from psycopg import sql

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "tests" / "server"), str(ROOT / "tools")]

import servers
import tree
from harness import Cluster, Database, Runner, another_server
from jobs import PROJECT, Controller
from leaks import made_up

#: The legacy database: one login has more than anybody declares.
BEFORE = """
CREATE SCHEMA inventory;
CREATE TABLE inventory.item (id int);
CREATE TABLE inventory.stock (id int);
CREATE ROLE legacy_login LOGIN;
CREATE ROLE intern LOGIN;
GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA inventory TO legacy_login;
GRANT SELECT ON inventory.item TO intern;
"""


class Secrets(NamedTuple):
    """What must be seen nowhere."""

    login: str
    key: str
    vault: str
    web: str
    app: str


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the programs that an execution environment has: ansible-runner, ansible-playbook, Python."""
    named = os.environ.get("RECONCILE_RUNNER_PROGRAMS")
    if not named:
        pytest.fail("RECONCILE_RUNNER_PROGRAMS does not name a folder: run python3 tools/checks.py runner-newest")
    return Path(named)


@pytest.fixture(scope="session")
def collections(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collection, built and installed as users have it."""
    folder = tmp_path_factory.mktemp("collections")
    # No home folder of this machine, with its configuration and its cache.
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "LC_ALL": "C.UTF-8"}
    galaxy = [str(programs / "ansible-galaxy"), "collection"]

    def run(*words: str) -> None:
        done = subprocess.run(
            [*galaxy, *words], check=False, cwd=tree.refresh("runner"), env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    run("build", "--output-path", str(folder))
    (archive,) = folder.glob("*.tar.gz")
    run("install", "--offline", "--collections-path", str(folder / "installed"), str(archive))
    return folder / "installed"


@pytest.fixture(scope="session")
def secret_values() -> Secrets:
    return Secrets(
        login=made_up("login"),
        key=made_up("key") + "\nsecond line of the key",
        vault=made_up("vault").replace("\\", ""),
        web=made_up("web") + "\nsecond line of the password",
        app=made_up("app"),
    )


@pytest.fixture(scope="session")
def project(programs: Path, secret_values: Secrets, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, with a manifest that Ansible Vault has encrypted."""
    folder = tmp_path_factory.mktemp("project") / "project"
    shutil.copytree(PROJECT, folder)
    logins = folder / "access" / "logins.yml"
    roles = [
        {"name": "shop_app", "login": True, "password": secret_values.app},
        {"name": "shop_web", "login": True},
    ]
    logins.write_text(json.dumps({"roles": roles}), encoding="utf-8")
    password = folder.parent / "vault-password"
    password.write_text(secret_values.vault, encoding="utf-8")
    subprocess.run(
        [programs / "ansible-vault", "encrypt", "--vault-password-file", password, logins],
        check=True, capture_output=True, env={"PATH": os.environ["PATH"], "HOME": str(folder.parent), "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert logins.read_text(encoding="utf-8").startswith("$ANSIBLE_VAULT")
    return folder


@pytest.fixture(params=["worker", "alone"])
def either_way(request: pytest.FixtureRequest, programs: Path, collections: Path, project: Path) -> Controller:
    """Jobs through a worker, as AWX runs them, and by ``ansible-runner run``."""
    return Controller(programs, collections, project, request.param)


@pytest.fixture
def controller(programs: Path, collections: Path, project: Path) -> Controller:
    return Controller(programs, collections, project, "worker")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    ready = servers.available()
    if not ready:
        pytest.fail("no PostgreSQL is there: run python tests/server/servers.py prepare 18")
    with another_server(ready[-1], "log_statement = all\n") as cluster:
        yield cluster


@pytest.fixture
def db(cluster: Cluster) -> Iterator[Database]:
    """A database with a past. What the test leaves goes with it."""
    runner = Runner()
    database = Database(cluster, runner)
    database.sql(BEFORE)
    yield database
    database.close()
    runner.close()


@pytest.fixture
def login(db: Database, secret_values: Secrets) -> dict[str, str]:
    """What a credential puts into the environment of a job."""
    made = sql.SQL("CREATE ROLE access_admin SUPERUSER LOGIN PASSWORD {}").format(secret_values.login)
    db.connection.execute(made)
    return {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(db.server.port),
        "PGUSER": "access_admin",
        "PGPASSWORD": secret_values.login,
        "PGDATABASE": db.name,
        "PGSSLMODE": "prefer",
        "PGSSLROOTCERT": "",
        "PG_ROLE_RECONCILE_FINGERPRINT_KEY": secret_values.key,
        "SHOP_WEB_PASSWORD": secret_values.web,
    }
