# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an executor may do, without a server: rights of roles, the order of memberships, and hints."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Dict, List, Optional, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.authority import hints
from ansible_collections.pg_access.reconcile.plugins.module_utils.authority.memberships import authorize_members
from ansible_collections.pg_access.reconcile.plugins.module_utils.authority.powers import Powers
from ansible_collections.pg_access.reconcile.plugins.module_utils.authority.roles import role_problems
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import (
    AddMember,
    AlterRole,
    CommentRole,
    RemoveMember,
    SetConfig,
    SetPassword,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.targets import Lookups
from ansible_collections.pg_access.reconcile.plugins.module_utils.filters import Options
from ansible_collections.pg_access.reconcile.plugins.module_utils.plan import make_plan
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World, declared, default

VERSIONS = [14, 15, 16, 17, 18]


def server(version: int = 18, **attributes: Any) -> World:
    """A server whose executor is adm, with these attributes."""
    world = World(version, executor="adm")
    world.role("adm", login=True, **attributes)
    return world


def messages(world: World, *changes: Any, **options: Any) -> List[str]:
    return [problem.message for problem in role_problems(changes, world.state, Powers(world.state), **options)]


# ---- roles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_everybody_sets_the_own_password_and_the_own_settings(version: int) -> None:
    world = server(version)
    own = world.ref("adm")
    assert messages(world, SetPassword(own, "roles[0]"), SetConfig(own, "work_mem", ("1MB",), None, "roles[0]")) == []
    other = world.ref("m")
    refused = messages(world, SetPassword(other, "roles[1]"), SetConfig(other, "work_mem", ("1MB",), None, "roles[1]"))
    assert refused[0] == "adm may not set the password of role m: it has no CREATEROLE"


@pytest.mark.parametrize(("version", "refused"), [(14, True), (15, True), (16, False), (18, False)])
def test_before_16_a_role_for_replication_does_not_even_set_its_own_password(version: int, refused: bool) -> None:
    world = server(version, replication=True, createrole=True)
    assert bool(messages(world, SetPassword(world.ref("adm"), ""))) is refused
    # Settings and comments of such a role are like those of any other before 16.
    world.role("rep", replication=True)
    change = SetConfig(world.ref("rep"), "work_mem", ("1MB",), None, "")
    assert bool(messages(world, change, CommentRole(world.ref("rep"), "x", None, ""))) is not refused


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fingerprint_in_the_comment_needs_the_right_to_comment(version: int) -> None:
    world = server(version)
    change = SetPassword(world.ref("adm"), "roles[0]")
    (message,) = messages(world, change, fingerprints_in_comments=True)
    assert message == "adm may set its own password and not its comment, where the fingerprint would be kept"
    world = server(version, createrole=True)
    change = SetPassword(world.ref("adm"), "roles[0]")
    assert bool(messages(world, change, fingerprints_in_comments=True)) is (version >= 16)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_plan_gives_the_executor_gives_no_right(version: int) -> None:
    """It could only give itself what it has no right to give."""
    world = server(version)
    for attribute in ("superuser", "createrole"):
        roles = [{"name": "adm", "login": True, attribute: True}, {"name": "n"}]
        problems = world.outcome({"roles": roles}).problems
        assert {problem.role for problem in problems} == {"adm", "n"}


def test_named_and_omitted_attributes_are_one_statement_and_one_problem() -> None:
    world = server(createrole=True)
    ref = world.ref("m")
    changes = [
        AlterRole(ref, {"login": True}, {"login": False}, frozenset(), "roles[0]"),
        AlterRole(ref, {"inherit": True}, {"inherit": False}, frozenset({"inherit"}), "roles[0]"),
        CommentRole(ref, "x", None, "roles[0]"),
    ]
    assert messages(world, *changes) == ["adm may not alter role m: it has no ADMIN OPTION on it"]


def test_nobody_has_admin_option_on_itself() -> None:
    world = server(createrole=True)
    change = AlterRole(world.ref("adm"), {"connection_limit": 3}, {"connection_limit": -1}, frozenset(), "")
    (problem,) = role_problems([change], world.state, Powers(world.state))
    assert "GRANT" not in str(problem.hint)


# ---- memberships -----------------------------------------------------------------------------------------------------


def add(world: World, group: str, member: str, **options: Any) -> AddMember:
    grantor = options.pop("grantor", None)
    return AddMember(world.ref(group), world.ref(member), options, "", grantor and world.ref(grantor))


def remove(world: World, group: str, member: str, grantor: Optional[str], **flags: Any) -> RemoveMember:
    return RemoveMember(world.ref(group), world.ref(member), grantor and world.ref(grantor), **flags)


def members(world: World, *changes: Any) -> Tuple[List[Any], List[str]]:
    state = world.state
    ordered, problems, _powers = authorize_members(changes, state, Powers(state))
    return ordered, [problem.message for problem in problems]


def test_additions_come_in_an_order_in_which_each_has_its_right() -> None:
    world = server(16)
    world.member("adm", "a", admin=True, inherit=False, set=False)
    world.member("a", "b", admin=True)
    world.member("b", "c", admin=True)
    changes = [add(world, "c", "m"), add(world, "b", "m"), add(world, "a", "adm", inherit=True)]
    ordered, problems = members(world, *changes)
    assert problems == []
    assert [change.group.name for change in ordered] == ["a", "c", "b"]
    (refused, *_others) = members(world, *changes[:2])[1]
    assert refused == "adm has ADMIN OPTION on c only through roles that it does not inherit"


def test_a_removal_may_take_away_what_the_next_one_needs() -> None:
    world = server(16)
    world.member("adm", "h")
    world.member("h", "g", admin=True)
    world.member("m", "g", by="h")
    first = remove(world, "h", "adm", "postgres", depth=2)
    second = remove(world, "g", "m", "h", depth=1)
    world.member("adm", "h", by="adm")  # so that the first is not refused itself
    assert members(world, second)[1] == []
    own = remove(world, "h", "adm", "adm", depth=2)
    assert members(world, own, second)[1] == [
        "adm may not revoke membership in h: it has no ADMIN OPTION on it",
    ]
    assert members(world, first)[1]


@pytest.mark.parametrize(("version", "allowed"), [(14, True), (15, False), (16, False)])
def test_until_14_a_session_administers_its_own_role(version: int, allowed: bool) -> None:
    world = server(version)
    assert (members(world, add(world, "adm", "m"))[1] == []) is allowed


def test_the_grantor_of_record_must_have_admin_option() -> None:
    world = server(18)
    world.member("adm", "g", admin=True)
    world.member("adm", "h")
    assert members(world, add(world, "g", "m", grantor="h"))[1] == [
        "the membership of m in g has to be granted by h, which has no ADMIN OPTION"
    ]
    world.member("h", "g", admin=True)
    assert members(world, add(world, "g", "m", grantor="h"))[1] == []
    assert members(world, add(world, "g", "m", grantor="stranger"))[1] == [
        "the membership of m in g has to be granted in the name of stranger, whose privileges adm does not have"
    ]


def test_many_memberships_take_no_time() -> None:
    world = server(18)
    for number in range(3000):
        world.member("adm", f"g{number % 300}", admin=True, by="postgres")
        world.member(f"m{number}", f"g{number % 300}", by="adm")
    state = world.state
    changes: List[Any] = [remove(world, f"g{n % 300}", f"m{n}", "adm", depth=2) for n in range(3000)]
    changes += [add(world, f"g{n % 300}", f"x{n}") for n in range(3000)]
    state = world.state
    start = time.monotonic()
    ordered, problems, _powers = authorize_members(changes, state, Powers(state))
    assert not problems
    assert len(ordered) == 6000
    assert time.monotonic() - start < 5


# ---- what the plan makes ---------------------------------------------------------------------------------------------

OWN: Dict[str, Any] = {
    "roles": declared("k", "r"),
    "schemas": [{"name": "s", "owner": "k"}],
    "default_privileges": [default("k", "s", "table", "r", "SELECT")],
}


def with_self_grant(world: World, *words: str) -> Any:
    state = world.state
    database = state.databases[state.server.database_oid]
    acl = world.acl("database", "postgres", ("adm", "CREATE", "postgres"))
    state = replace(
        state,
        server=replace(state.server, self_grant=frozenset(words)),
        databases={database.oid: replace(database, acl=acl)},
    )
    policy = manifest_to_policy(OWN)
    return make_plan(policy, state, world.scope(policy), Lookups(), Options())


@pytest.mark.parametrize(
    ("words", "refused", "in_its_name"),
    [
        ((), {"schema s", "default privileges of k"}, 0),
        (("inherit",), {"schema s"}, 0),
        (("set",), set(), 1),
        (("set", "inherit"), set(), 0),
    ],
)
def test_what_a_creator_may_do_with_its_role_is_up_to_createrole_self_grant(
    words: Tuple[str, ...], refused: Any, in_its_name: int
) -> None:
    outcome = with_self_grant(server(18, createrole=True), *words)
    assert {problem.object for problem in outcome.problems} == refused
    assert len([c for c in outcome.plan.changes if getattr(c, "run_as", None) is not None]) == in_its_name


def test_of_an_assumed_role_nobody_knows_yet_who_may_do_what() -> None:
    """A check run may come before the run that makes the role."""
    world = server(18, createrole=True)
    world.database("app", "adm")
    policy = manifest_to_policy(
        {
            "roles": declared("r"),
            "assume_roles": ["k"],
            "schemas": [{"name": "s", "owner": "k"}],
            "default_privileges": [default("k", None, "table", "r", "SELECT")],
            "memberships": [{"role": "k", "members": [{"name": "r"}]}],
        }
    )
    outcome = make_plan(policy, world.state, world.scope(policy), Lookups(), Options(), check_mode=True)
    assert outcome.problems == ()


# ---- hints -----------------------------------------------------------------------------------------------------------


def test_hints_are_sql_for_any_name() -> None:
    world = World(18, executor='a "b"')
    executor, group = world.ref('a "b"'), world.ref("g; h")
    powers = Powers(world.state)
    assert hints.admin_option(executor, group, 14, powers) == 'GRANT "g; h" TO "a ""b""" WITH ADMIN OPTION'
    granted = 'GRANT "g; h" TO "a ""b""" WITH ADMIN TRUE, INHERIT FALSE, SET FALSE'
    assert hints.admin_option(executor, group, 16, powers) == granted
    assert hints.admin_option(executor, executor, 16, powers) == hints.SUPERUSER
    assert hints.attribute(executor, "createrole") == 'ALTER ROLE "a ""b""" CREATEROLE'
    assert hints.membership(executor, group, "set", world.state, powers) == 'GRANT "g; h" TO "a ""b""" WITH SET TRUE'


def test_a_name_that_no_statement_can_spell_does_not_stop_the_hint() -> None:
    world = World(18)
    assert hints.compose("GRANT {} TO {}", world.ref("g\udcff"), world.ref("m")) == "GRANT g\udcff TO m"
