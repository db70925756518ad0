# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures of the tests that stand for an AWX: where the collections are, and the role run against it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "tests" / "server"), str(ROOT / "tools")]

import companions
import servers
from playbooks import Playbooks


@pytest.fixture(scope="session")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with this collection and awx.awx, as Ansible looks for them."""
    folder = tmp_path_factory.mktemp("collections")
    place = folder / "ansible_collections"
    (place / "pg_access").mkdir(parents=True)
    (place / "pg_access" / "reconcile").symlink_to(ROOT)
    with (folder / "log").open("w") as log:
        found = companions.collections(Path(sys.executable), companions.CONTROLLER_RELEASE, log, companions.CONTROLLER)
    companions.link(place, found, companions.CONTROLLER)
    return folder


@pytest.fixture(scope="session")
def playbooks(collections: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playbooks]:
    playbooks = Playbooks(collections, tmp_path_factory.mktemp("playbooks"))
    yield playbooks
    playbooks.close()


@pytest.fixture(scope="session")
def newest() -> int:
    """The newest PostgreSQL that is there."""
    ready = servers.available()
    if not ready:
        pytest.fail("no PostgreSQL is there: run python tests/server/servers.py prepare 18")
    return ready[-1]


@pytest.fixture(scope="session", autouse=True)
def _no_server_is_left() -> Iterator[None]:
    yield
    servers.stop_all()


@pytest.fixture(autouse=True)
def _no_connection_of_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("PG", "CONTROLLER_", "TOWER_", "ANSIBLE_")) and name != "PG_SERVERS_DIR":
            monkeypatch.delenv(name)
