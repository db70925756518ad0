# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures of the server tests: every test that asks for ``db`` runs once on each PostgreSQL version.

``pytest tests/server --pg 18`` or ``PG=16,18`` restricts the versions. ``@pytest.mark.versions(min=15, max=16)`` on a
test or a module leaves the others out. With pytest-xdist, use ``-n 2``: each worker starts its own servers.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import faults
import servers
from harness import Cluster, Database, Runner

_clusters: dict[int, Cluster] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pg", action="append", default=[], help="PostgreSQL major versions to test on, such as 16,18")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "versions(min, max): the PostgreSQL versions that a test is for")
    servers.stop_on_signals()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # Started in the background: the modules would inherit that, and tests interrupt them.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _versions(config: pytest.Config) -> list[int]:
    asked = ",".join(config.getoption("--pg")) or os.environ.get("PG", "")
    ready = servers.available()
    wanted = [int(version) for version in asked.replace(",", " ").split()]
    if os.environ.get("CI", "").lower() in ("true", "1", "yes") and not wanted:
        wanted = list(servers.VERSIONS)
    missing = [version for version in wanted if version not in ready]
    if missing or not ready:
        needed = " ".join(map(str, missing))
        raise pytest.UsageError(
            f"PostgreSQL {needed} is not there: run python tests/server/servers.py prepare {needed}"
        )
    return wanted or ready


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        versions = _versions(metafunc.config)
        metafunc.parametrize(
            "server", versions, ids=[f"pg{version}" for version in versions], indirect=True, scope="session"
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        version = getattr(item, "callspec", None) and item.callspec.params.get("server")  # type: ignore[attr-defined]
        fits = all(
            version is None or mark.kwargs.get("min", 0) <= version <= mark.kwargs.get("max", 99)
            for mark in item.iter_markers("versions")
        )
        # Where one version after the other is tested, what needs no server is tested with one of them.
        if os.environ.get("RECONCILE_WITH_SERVER") and "server" not in getattr(item, "fixturenames", ()):
            fits = False
        (kept if fits else dropped).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """A property gets other examples on each version, the same ones in each run."""
    test: Any = getattr(item, "obj", None)
    version = getattr(item, "callspec", None) and item.callspec.params.get("server")  # type: ignore[attr-defined]
    if version and hypothesis.is_hypothesis_test(test) and os.environ.get("PROPERTIES") != "long":
        hypothesis.seed(version)(test)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in faults.summary():
        terminalreporter.write_line(line)


def pytest_unconfigure() -> None:
    servers.stop_all()


@pytest.fixture(scope="session")
def runner() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.close()


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Cluster:
    """The running server of one version. It is started when first needed and stopped at the end."""
    version: int = request.param
    if version not in _clusters:
        _clusters[version] = Cluster(servers.start(version))
    return _clusters[version]


@pytest.fixture
def db(server: Cluster, runner: Runner) -> Iterator[Database]:
    """A fresh database on that server. Whatever the test leaves behind, roles too, goes with it."""
    database = Database(server, runner)
    yield database
    database.close()


@pytest.fixture(params=["superuser", "createrole"])
def executor(request: pytest.FixtureRequest, db: Database) -> Callable[..., dict[str, Any]]:
    """Who runs the module: a superuser, or a CREATEROLE admin of the roles that the function is called with.

    The function returns the options to run as that executor.
    """
    if request.param == "superuser":
        return lambda *roles: {}
    return db.admin
