# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Memberships: rows of several grantors, options, automatic rows, dependents, and circles."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import AddMember, RemoveMember
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.admins import with_grantors
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.circles import without_circles
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.memberships import (
    membership_changes,
    option_problems,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World, declared


def wants(*members: Any, roles: Tuple[str, ...] = ("m",), **stanza: Any) -> Dict[str, Any]:
    """A manifest in which group g has these members."""
    items = [{"name": member} if isinstance(member, str) else member for member in members]
    others = sorted({item["name"] for item in items} - {"g", *roles})
    return {"roles": declared("g", *roles, *others), "memberships": [{"role": "g", "members": items, **stanza}]}


def changes(world: World, raw: Dict[str, Any]) -> List[Any]:
    policy = manifest_to_policy(raw)
    for name in policy.roles:
        world.ref(name)
    return membership_changes(policy, world.state)


def granted(world: World, raw: Dict[str, Any]) -> List[AddMember]:
    """The grants, with their grantors."""
    found = with_grantors(changes(world, raw), world.state)
    return [change for change in found if isinstance(change, AddMember)]


def taken(world: World, member: str, group: str = "g", by: str = "postgres", **keys: Any) -> RemoveMember:
    return RemoveMember(world.ref(group), world.ref(member), world.ref(by), **keys)


@pytest.mark.parametrize(("version", "options"), [(15, {}), (16, {"admin": False, "inherit": True, "set": True})])
def test_a_missing_membership_says_every_option_that_the_server_has(version: int, options: Dict[str, bool]) -> None:
    world = World(version)
    (change,) = changes(world, wants("m"))
    assert isinstance(change, AddMember)
    assert change.options == options
    assert not change.exists
    assert change.source == "memberships[0].members[0]"


@pytest.mark.parametrize("version", [15, 16])
def test_a_membership_that_is_there_is_no_difference(version: int) -> None:
    world = World(version)
    world.member("m", "g")
    assert changes(world, wants("m")) == []


def test_an_option_that_is_left_out_is_left_alone() -> None:
    world = World()
    world.member("m", "g", inherit=False, set=False)
    assert changes(world, wants("m")) == []


def test_an_option_counts_from_whichever_row_has_it() -> None:
    world = World()
    world.member("m", "g", inherit=False)
    world.member("m", "g", by="boss")
    assert changes(world, wants({"name": "m", "inherit": True})) == []


def test_a_raised_option_goes_to_the_executors_own_row() -> None:
    world = World()
    world.member("m", "g", inherit=False)
    (change,) = granted(world, wants({"name": "m", "inherit": True}))
    assert (change.options, change.exists, change.grantor) == ({"inherit": True}, True, None)


def test_a_new_row_beside_another_grantors_brings_no_more_than_what_is_raised() -> None:
    world = World()
    world.member("m", "g", by="boss", inherit=False, set=False)
    (change,) = granted(world, wants({"name": "m", "inherit": True}))
    assert change.options == {"admin": False, "inherit": True, "set": False}
    assert change.raised == {"inherit"}


def test_an_option_is_lowered_in_every_row_that_has_it() -> None:
    world = World()
    world.member("m", "g", admin=True)
    world.member("m", "g", by="boss", admin=True)
    world.member("m", "g", by="other")
    found = changes(world, wants("m"))
    assert {(change.option, change.grantor.name) for change in found} == {("admin", "postgres"), ("admin", "boss")}


@pytest.mark.parametrize(("has", "wanted"), [(True, False), (False, True)])
def test_before_16_admin_is_raised_and_lowered_in_the_one_row(has: bool, wanted: bool) -> None:
    world = World(15)
    world.member("m", "g", admin=has)
    (change,) = changes(world, wants({"name": "m", "admin": wanted}))
    if wanted:
        assert isinstance(change, AddMember)
        assert (change.options, change.exists) == ({"admin": True}, True)
    else:
        assert isinstance(change, RemoveMember)
        assert (change.option, change.grantor) == ("admin", None)


def test_every_row_of_a_surplus_member_goes_in_its_grantors_name() -> None:
    world = World()
    world.member("other", "g")
    world.member("other", "g", by="boss")
    found = changes(world, wants())
    assert [(change.grantor.name, change.claimed) for change in found] == [("postgres", True), ("boss", True)]


def test_a_group_that_the_manifest_does_not_speak_for_is_only_reported() -> None:
    world = World()
    world.member("m", "legacy")
    (change,) = changes(world, {"roles": declared("m")})
    assert isinstance(change, RemoveMember)
    assert not change.claimed


def test_an_external_group_keeps_its_other_members_unless_it_is_exclusive() -> None:
    world = World()
    world.member("other", "g")
    raw = wants(roles=())
    raw["roles"] = declared("g", external=True)
    (change,) = changes(world, raw)
    assert not change.claimed
    # Without a list nothing is said about its members.
    assert changes(world, {"roles": raw["roles"]}) == []
    raw["memberships"][0]["exclusive"] = True
    (change,) = changes(world, raw)
    assert change.claimed


@pytest.mark.parametrize("group", ["legacy", "pg_monitor", "ext", "declared"])
def test_member_of_is_every_membership_of_the_role(group: str) -> None:
    world = World()
    world.member("m", group)
    world.member("m", "g")
    roles = [*declared("declared", "g"), *declared("ext", external=True), {"name": "m", "member_of": ["g"]}]
    (change,) = changes(world, {"roles": roles})
    assert isinstance(change, RemoveMember)
    assert (change.group.name, change.claimed) == (group, True)
    assert change.source == ("roles[0]" if group == "declared" else "roles[3].member_of")


def test_an_empty_member_of_means_none() -> None:
    world = World()
    world.member("m", "legacy")
    (change,) = changes(world, {"roles": [{"name": "m", "member_of": []}]})
    assert change.claimed


@pytest.mark.parametrize("external", [False, True])
def test_members_is_every_member_of_the_role(external: bool) -> None:
    world = World()
    world.member("m", "g")
    world.member("other", "g")
    raw: Dict[str, Any] = {"roles": [{"name": "g", "members": ["m"], "external": external}, *declared("m")]}
    (change,) = changes(world, raw)
    assert (change.member.name, change.claimed, change.source) == ("other", True, "roles[0].members")
    raw["roles"][0]["members"] = []
    assert {change.member.name: change.claimed for change in changes(world, raw)} == {"m": True, "other": True}


def test_the_spellings_are_united_before_anything_is_surplus() -> None:
    world = World()
    for name in ("a", "b", "c"):
        world.member(name, "g")
    roles = [{"name": "g", "members": ["a"]}, {"name": "b", "member_of": ["g"]}, *declared("a", "c")]
    stanza = {"role": "g", "members": [{"name": "c"}], "exclusive": True}
    assert changes(world, {"roles": roles, "memberships": [stanza]}) == []


def test_member_of_leaves_what_is_between_assumed_roles_and_claims_the_rest() -> None:
    world = World()
    world.member("m", "theirs")
    world.member("x", "theirs")
    raw = {"assume_roles": ["theirs", "x"], "roles": [{"name": "m", "member_of": []}]}
    assert [(change.member.name, change.claimed) for change in changes(world, raw)] == [("m", True)]


def test_memberships_among_undeclared_roles_are_nobodys_business() -> None:
    world = World()
    world.member("x", "y")
    world.member("pg_monitor", "pg_read_all_stats")
    assert changes(world, {"roles": declared("m")}) == []


def test_between_assumed_roles_another_run_decides() -> None:
    world = World()
    world.member("m", "g")
    stanza = {"role": "g", "exclusive": True, "members": [{"name": "z"}]}
    raw = {"assume_roles": ["g", "m"], "roles": declared("z"), "memberships": [stanza]}
    assert [type(change) for change in changes(world, raw)] == [AddMember]


# ---- the rows that PostgreSQL 16 makes by itself ---------------------------------------------------------------------


def creator(**attributes: Any) -> World:
    """A server on which m created g."""
    world = World()
    world.role("m", **attributes)
    world.member("m", "g", admin=True, inherit=False, set=False)
    return world


def test_the_creators_row_is_no_drift() -> None:
    assert changes(creator(createrole=True), wants()) == []


def test_the_creators_row_is_reported_where_its_member_creates_no_roles() -> None:
    (change,) = changes(creator(), wants())
    assert isinstance(change, RemoveMember)
    assert change.automatic


def test_a_row_that_the_creator_gave_itself_is_no_drift() -> None:
    world = creator(createrole=True)
    world.member("m", "g", by="m")
    assert changes(world, wants()) == []


def test_a_plain_membership_beside_the_creators_row_is_granted_in_the_members_own_name() -> None:
    (change,) = granted(creator(createrole=True), wants("m"))
    assert change.grantor is not None
    assert change.grantor.name == "m"
    assert change.options == {"admin": False, "inherit": True, "set": True}


def test_an_option_raised_beside_the_creators_row_leaves_the_rest_of_its_own_row() -> None:
    world = creator(createrole=True)
    world.member("m", "g", by="m", inherit=False)
    (change,) = granted(world, wants({"name": "m", "inherit": True}))
    assert (change.grantor, change.options) == (world.ref("m"), {"inherit": True})


def test_to_a_declared_admin_the_creators_row_is_the_membership() -> None:
    assert changes(creator(createrole=True), wants({"name": "m", "admin": True})) == []


# ---- options that the server does not have ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "inherit", "wrong"),
    [
        ({"name": "m", "set": False}, True, True),
        ({"name": "m", "set": True}, True, False),
        ({"name": "m", "inherit": False}, True, True),
        ({"name": "m", "inherit": False}, False, False),
        ({"name": "m", "inherit": True}, True, False),
    ],
)
def test_before_16_an_option_must_agree_with_what_the_role_does_anyway(
    member: Dict[str, Any], inherit: bool, wrong: bool
) -> None:
    world, newer = World(15), World(16)
    for server in (world, newer):
        server.role("m", inherit=inherit)
    policy = manifest_to_policy(wants(member))
    assert [problem.code for problem in option_problems(policy, world.state)] == ["unsupported_version"] * wrong
    assert option_problems(policy, newer.state) == []


# ---- dependents ------------------------------------------------------------------------------------------------------


def test_what_a_leaving_admin_granted_is_granted_by_the_executor_first() -> None:
    world = World()
    world.member("boss", "g", admin=True)
    world.member("m", "g", by="boss", inherit=False)
    removal = taken(world, "boss")
    found = with_grantors([removal], world.state)
    (again,) = [change for change in found if isinstance(change, AddMember)]
    assert (again.member.name, again.exists) == ("m", True)
    assert again.options == {"admin": False, "inherit": False, "set": True}
    assert [(c.member.name, c.depth) for c in found if isinstance(c, RemoveMember)] == [("boss", 0), ("m", 1)]


def test_a_chain_of_admins_goes_from_its_end() -> None:
    world = World()
    world.member("a", "g", admin=True)
    world.member("b", "g", by="a", admin=True)
    world.member("c", "g", by="b")
    gone = [taken(world, "a"), taken(world, "b", by="a"), taken(world, "c", by="b")]
    found: List[Any] = with_grantors(gone, world.state)
    assert {c.member.name: c.depth for c in found} == {"a": 0, "b": 1, "c": 2}


def test_losing_only_the_admin_option_drags_dependents_along_as_well() -> None:
    world = World()
    world.member("boss", "g", admin=True)
    world.member("m", "g", by="boss")
    found = with_grantors([taken(world, "boss", option="admin")], world.state)
    assert [c.member.name for c in found if isinstance(c, AddMember)] == ["m"]


def test_nothing_is_dragged_along_while_another_row_keeps_admin() -> None:
    world = World()
    world.member("boss", "g", admin=True)
    world.member("chief", "g", admin=True)
    world.member("boss", "g", by="chief", admin=True)
    world.member("m", "g", by="boss")
    assert with_grantors([taken(world, "boss")], world.state) == [taken(world, "boss")]


def test_a_kept_admin_below_a_leaving_one_keeps_what_it_gave() -> None:
    world = World()
    world.member("a", "g", admin=True)
    world.member("b", "g", by="a", admin=True)
    world.member("c", "g", by="b")
    found = with_grantors([taken(world, "a")], world.state)
    assert [c.member.name for c in found if isinstance(c, AddMember)] == ["b"]
    assert [c.member.name for c in found if isinstance(c, RemoveMember)] == ["a", "b"]


def test_what_a_member_gave_itself_ends_with_its_membership() -> None:
    world = World()
    world.member("m", "g", admin=True)
    world.member("m", "g", by="m")
    found = with_grantors([taken(world, "m")], world.state)
    assert not [change for change in found if isinstance(change, AddMember)]
    assert [c.grantor for c in found if isinstance(c, RemoveMember)] == [world.ref("postgres"), world.ref("m")]


def test_an_option_that_a_member_gave_itself_goes_with_its_admin_option() -> None:
    world = World()
    world.member("m", "g", admin=True, inherit=False)
    world.member("m", "g", by="m")
    found = with_grantors(changes(world, wants({"name": "m", "inherit": False})), world.state)
    assert not [change for change in found if isinstance(change, AddMember)]
    (row,) = [c for c in found if isinstance(c, RemoveMember) and c.option is None]
    assert (row.grantor, row.replaced, row.lowered) == (world.ref("m"), True, frozenset({"inherit"}))


def test_a_lowering_of_a_row_that_goes_altogether_is_left_out() -> None:
    world = World()
    world.member("boss", "g", admin=True)
    world.member("m", "g", by="boss")
    lowering = taken(world, "m", by="boss", option="set")
    found: List[Any] = with_grantors([taken(world, "boss"), lowering], world.state)
    assert lowering not in found
    (again,) = [change for change in found if isinstance(change, AddMember)]
    assert again.options["set"] is False


def test_before_16_nothing_depends_on_a_grantor() -> None:
    world = World(15)
    world.member("boss", "g", admin=True)
    world.member("m", "g", by="boss")
    removal = RemoveMember(world.ref("g"), world.ref("boss"), None)
    assert with_grantors([removal], world.state) == [removal]


def test_what_another_row_still_gives_is_not_granted_again() -> None:
    world = World()
    world.member("boss", "g", admin=True)
    world.member("m", "g")
    world.member("m", "g", by="boss")
    found = with_grantors([taken(world, "boss")], world.state)
    assert not [change for change in found if isinstance(change, AddMember)]
    assert {c.member.name: c.replaced for c in found if isinstance(c, RemoveMember)} == {"boss": False, "m": True}


def test_the_creators_row_is_not_rewritten_for_what_a_leaving_admin_gave() -> None:
    world = creator(createrole=True)
    world.member("boss", "g", admin=True)
    world.member("m", "g", by="boss")
    (again,) = [c for c in with_grantors([taken(world, "boss")], world.state) if isinstance(c, AddMember)]
    assert (again.grantor, again.options) == (world.ref("m"), {"admin": False, "inherit": True, "set": True})


def test_an_option_that_goes_with_its_row_is_told() -> None:
    world = World()
    world.member("boss", "g", admin=True)
    world.member("m", "g", inherit=True, set=False)
    world.member("m", "g", by="boss")
    lowering = taken(world, "m", by="boss", option="set")
    found = with_grantors([taken(world, "boss"), lowering], world.state)
    (row,) = [c for c in found if isinstance(c, RemoveMember) and c.member.name == "m"]
    assert (row.option, row.replaced, row.lowered) == (None, True, frozenset({"set"}))
    assert not [change for change in found if isinstance(change, AddMember)]


# ---- executors that are no superusers --------------------------------------------------------------------------------


def admins(*names: str) -> List[Dict[str, Any]]:
    """Members of a manifest that have ADMIN."""
    return [{"name": name, "admin": True} for name in names]


def admin(*groups: str) -> World:
    """A server whose executor inherits these groups."""
    world = World(executor="ex")
    for group in groups:
        world.member("ex", group)
    return world


def test_an_executor_with_admin_grants_in_its_own_name() -> None:
    world = admin("boss")
    world.member("ex", "g", admin=True)
    world.member("boss", "g", admin=True)
    (change,) = granted(world, wants("m", *admins("ex", "boss")))
    assert change.grantor is None


def test_an_executor_that_inherits_admin_names_the_nearest_who_has_it() -> None:
    world = admin("near")
    world.member("near", "far")
    world.member("far", "g", admin=True)
    assert [c.grantor for c in granted(world, wants("m", *admins("far")))] == [world.ref("far")]
    world.member("near", "g", admin=True)
    assert [c.grantor for c in granted(world, wants("m", *admins("far", "near")))] == [world.ref("near")]


def test_a_role_that_is_a_member_without_inheriting_is_no_grantor() -> None:
    world = World(executor="ex")
    world.member("ex", "boss", inherit=False)
    world.member("boss", "g", admin=True)
    (change,) = granted(world, wants("m", *admins("boss")))
    assert change.grantor is None


def test_whoever_loses_admin_in_the_same_run_is_no_grantor() -> None:
    world = admin("a", "boss")
    world.member("boss", "g", admin=True)
    world.member("a", "g", by="boss", admin=True)
    world.member("x", "g", by="a")
    found = with_grantors(changes(world, wants("m", "x", *admins("boss"))), world.state)
    adds = {c.member.name: c.grantor for c in found if isinstance(c, AddMember)}
    assert adds == {"m": world.ref("boss"), "x": world.ref("boss")}


def test_admin_is_not_given_back_to_the_own_grantor() -> None:
    world = admin("boss")
    world.member("boss", "g", admin=True)
    world.member("adm", "g", by="boss", admin=True)
    world.member("m", "g", by="adm", admin=True)
    world.member("ex", "g", by="m", admin=True)
    (again,) = granted(world, wants(*admins("boss", "m", "ex")))
    assert (again.member.name, again.grantor, again.options["admin"]) == ("m", world.ref("boss"), True)


def test_whoever_creates_a_role_has_admin_on_it() -> None:
    world = World(executor="cr")
    world.role("cr", createrole=True, login=True)
    raw = {"roles": [{"name": "k", "members": [*admins("cr"), "m"]}, *declared("m"), *declared("cr", external=True)]}
    assert world.sql(raw)[-1:] == ['GRANT "k" TO "m" WITH ADMIN FALSE, INHERIT TRUE, SET TRUE']
    raw["roles"][0]["members"] = ["cr"]
    assert world.sql(raw)[-1:] == ['GRANT "k" TO "cr" WITH ADMIN FALSE, INHERIT TRUE, SET TRUE']


def test_memberships_that_the_executor_acts_through_go_last() -> None:
    world = admin("near")
    world.member("near", "far", by="far2", admin=True)
    world.member("far", "g", admin=True)
    world.member("x", "g", by="far")
    removals = [taken(world, "near", "far", by="far2"), taken(world, "x", by="far")]
    found = with_grantors(removals, world.state)
    assert [c.late for c in found if isinstance(c, RemoveMember)] == [2, 1]


def test_no_statement_names_an_ignored_role() -> None:
    world = World()
    world.member("boss", "g", admin=True)
    world.member("hidden", "g", by="boss")
    (problem,) = world.outcome({"roles": declared("g"), "scope": {"ignore_roles": ["hidden"]}}).problems
    assert (problem.role, problem.code) == ("hidden", "dependent_privileges")


# ---- circles ---------------------------------------------------------------------------------------------------------


def added(world: World, member: str, group: str) -> AddMember:
    return AddMember(world.ref(group), world.ref(member), {}, "here")


def test_a_membership_that_would_close_a_circle_goes_first() -> None:
    world = World()
    world.member("a", "b")
    found, problems = without_circles([added(world, "b", "a"), taken(world, "a", "b")], world.state)
    assert not problems
    assert [change.early for change in found if isinstance(change, RemoveMember)] == [True]


def test_what_hangs_on_an_early_removal_goes_early_as_well() -> None:
    world = World()
    world.member("a", "b", admin=True)
    world.member("c", "b", by="a")
    raw = {"roles": [{"name": "a", "members": ["b"]}, {"name": "b", "members": ["c"]}, *declared("c")]}
    assert world.sql(raw) == [
        'GRANT "b" TO "c" WITH ADMIN FALSE, INHERIT TRUE, SET TRUE',
        'REVOKE "b" FROM "c" GRANTED BY "a"',
        'REVOKE "b" FROM "a" GRANTED BY "postgres"',
        'GRANT "a" TO "b" WITH ADMIN FALSE, INHERIT TRUE, SET TRUE',
    ]


def test_an_unrelated_removal_is_not_early() -> None:
    world = World()
    world.member("x", "y")
    found, _problems = without_circles([added(world, "b", "a"), taken(world, "x", "y")], world.state)
    assert [change.early for change in found if isinstance(change, RemoveMember)] == [False]


def test_a_circle_that_would_remain_is_a_problem_with_the_way_around() -> None:
    world = World()
    world.member("a", "b")
    world.member("b", "c")
    _found, (problem,) = without_circles([added(world, "c", "a")], world.state)
    assert problem.path == "here"
    assert problem.message.endswith("a -> c -> b -> a")


def test_a_membership_of_which_another_row_stays_still_closes_the_circle() -> None:
    world = World()
    world.member("a", "b")
    world.member("a", "b", by="boss")
    _found, problems = without_circles([added(world, "b", "a"), taken(world, "a", "b")], world.state)
    assert len(problems) == 1
