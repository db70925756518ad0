# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What would disarm the executor or leave nobody in charge, without a server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.authority.powers import Powers
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import AlterRole, RemoveMember, Withheld
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.roles import with_role_changes
from ansible_collections.pg_access.reconcile.plugins.module_utils.protection import disarming, locked_out
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import Object
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World

NOW = 1_700_000_000_000_000


def alter(world: World, name: str, *omitted: str, external: bool = False, **attributes: Any) -> AlterRole:
    before = {key: getattr(world.state.roles[world.oid(name)], key) for key in attributes}
    return AlterRole(world.ref(name), attributes, before, frozenset(omitted), "roles[0]", external=external)


def refused(world: World, *changes: AlterRole, external: Any = ()) -> Dict[str, str]:
    """Each role that the plan would disarm, with the last words of the message."""
    world.clock = NOW
    withheld = [Withheld(change, "external") for change in external]
    problems = disarming(changes, withheld, world.state, with_role_changes(world.state, changes))
    assert {problem.code for problem in problems} <= {"self_protection"}
    return {str(problem.role): problem.message.rpartition(", would ")[2] for problem in problems}


def server() -> World:
    """A login that takes the place of a superuser, and a superuser that can log in."""
    world = World(18, executor="root", login="lo")
    world.role("root", superuser=True, createrole=True)
    world.role("lo", login=True)
    world.role("admin", superuser=True, login=True)
    return world


@pytest.mark.parametrize(
    ("role", "attributes", "words"),
    [
        ("root", {"superuser": False}, "lose SUPERUSER"),
        ("root", {"createrole": False}, "lose CREATEROLE"),
        ("root", {"createrole": False, "superuser": False}, "lose SUPERUSER and lose CREATEROLE"),
        ("root", {"connection_limit": 0, "valid_until": NOW - 1}, None),
        ("root", {"createdb": False, "inherit": False}, None),
        ("lo", {"login": False}, "lose LOGIN"),
        ("lo", {"connection_limit": 0}, "have a connection limit of 0"),
        ("lo", {"connection_limit": 1}, None),
        ("lo", {"valid_until": NOW}, "be expired"),
        ("lo", {"valid_until": NOW + 1}, None),
        ("lo", {"valid_until": "infinity"}, None),
        ("lo", {"login": True}, None),
    ],
)
def test_the_executor_and_its_session_role(role: str, attributes: Dict[str, Any], words: Any) -> None:
    world = server()
    assert refused(world, alter(world, role, **attributes)) == ({role: words} if words else {})


def test_what_is_only_left_out_is_no_refusal() -> None:
    """The filters withhold it, so it is not among the changes; the check relies on the names all the same."""
    world = server()
    assert refused(world, alter(world, "lo", "login", login=False)) == {}


def test_the_bootstrap_superuser_is_disarmed_by_nobody() -> None:
    world = server()
    for name in ("superuser", "login", "createrole"):
        change = alter(world, "postgres", external=True, **{name: False})
        assert refused(world, external=[change]) == {"postgres": f"lose {name.upper()}"}
    harmless = alter(world, "postgres", external=True, connection_limit=0, valid_until=NOW - 1, createdb=False)
    assert refused(world, external=[harmless]) == {}
    assert refused(world, external=[alter(world, "admin", external=True, login=False)]) == {}


LAST = "lose SUPERUSER and lose LOGIN"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"superuser": True, "login": True}, None),
        ({"superuser": True, "login": True, "valid_until": NOW + 1}, None),
        ({"superuser": True, "login": True, "valid_until": NOW - 1}, LAST),
        ({"superuser": True, "login": True, "valid_until": "-infinity"}, LAST),
        ({"superuser": True}, LAST),
        ({"login": True}, LAST),
    ],
)
def test_one_superuser_must_be_left_that_can_log_in(other: Dict[str, Any], words: Any) -> None:
    world = server()
    world._roles["postgres"] = replace(world._roles["postgres"], login=False)
    world.role("other", **other)
    # What the manifest names and what it leaves out are two changes and one refusal.
    changes = [alter(world, "admin", superuser=False), alter(world, "admin", "login", login=False)]
    assert refused(world, *changes) == ({"admin": words} if words else {})


def test_where_no_superuser_can_log_in_none_is_the_last() -> None:
    world = World(18, executor="root", login="lo")
    world._roles["postgres"] = replace(world._roles["postgres"], login=False)
    for name in ("root", "spare"):
        world.role(name, superuser=True)
    world.role("lo", login=True)
    assert refused(world, alter(world, "spare", "superuser", superuser=False)) == {}


# ---- locked out


def messages(world: World, *changes: Any) -> List[str]:
    return [problem.message for problem in locked_out(changes, world.state, Powers(world.state))]


def connect(world: World, grantee: str, **flags: Any) -> Any:
    database = world.state.databases[world.state.server.database_oid]
    target = world.target("database", None, [Object(database.oid, database.name)], "postgres")
    return world.revoke(target, grantee, "CONNECT", **flags)


@pytest.mark.parametrize("version", [14, 16])
def test_connect(version: int) -> None:
    world = World(version, executor="lo")
    world.role("lo", login=True)
    world.member("lo", "team")
    world.database("app", "postgres", ("PUBLIC", "CONNECT", "postgres"), ("team", "CONNECT", "postgres"))
    lost = "after the plan lo, which this run logs in as, could not connect to this database any more"
    public, team = connect(world, "PUBLIC"), connect(world, "team")
    assert messages(world, public) == []
    assert messages(world, team) == []
    assert messages(world, public, team) == [lost]
    assert messages(world, public, connect(world, "team", option_only=True)) == []
    grantor = world.ref("postgres") if version >= 16 else None
    assert messages(world, public, RemoveMember(world.ref("team"), world.ref("lo"), grantor)) == [lost]


def test_a_superuser_connects_anywhere() -> None:
    world = World()
    world.database("app", "postgres", ("PUBLIC", "CONNECT", "postgres"))
    assert messages(world, connect(world, "PUBLIC")) == []


def test_a_session_role_that_is_out_of_reach() -> None:
    world = World(18, executor="root", login="lo")
    world.role("root", superuser=True)
    world.role("lo", login=True)
    world.member("lo", "team")
    world.member("team", "root")
    world.database("app", "postgres", ("PUBLIC", "CONNECT", "postgres"))
    change = RemoveMember(world.ref("root"), world.ref("team"), world.ref("postgres"))
    assert messages(world, change) == [
        "after the plan lo, which this run logs in as, could not set session_role root any more"
    ]
    world.member("lo", "root")
    assert messages(world, change) == []
