# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state as plain data: ACLs, the built-in defaults, groups of objects, and who is who."""

from __future__ import annotations

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.privileges import KINDS, PUBLIC_OID
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import (
    Acl,
    Entry,
    Members,
    Membership,
    Object,
    Role,
    RoleRef,
    Schema,
    default_acl,
)
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World

OLD, NEW, ALICE, BOB = 1, 2, 3, 4


def acl(*entries: Entry) -> Acl:
    return Acl(frozenset(entries))


def test_a_new_owner_takes_the_old_ones_place_as_grantee_and_grantor() -> None:
    before = acl(Entry(OLD, "SELECT", OLD, False), Entry(ALICE, "SELECT", OLD, False))
    assert before.owned_by(OLD, NEW).entries == {Entry(NEW, "SELECT", NEW, False), Entry(ALICE, "SELECT", NEW, False)}


def test_entries_that_become_alike_merge_and_the_grant_option_survives() -> None:
    before = acl(Entry(OLD, "USAGE", OLD, False), Entry(NEW, "USAGE", OLD, True))
    assert before.owned_by(OLD, NEW).entries == {Entry(NEW, "USAGE", NEW, True)}


def test_an_owner_change_leaves_other_grantors_alone() -> None:
    before = acl(Entry(BOB, "USAGE", ALICE, False))
    assert before.owned_by(OLD, NEW).entries == before.entries


def test_an_owner_change_leaves_a_default_acl_the_default() -> None:
    assert default_acl("schema", OLD, 17).owned_by(OLD, NEW) == default_acl("schema", NEW, 17)


def test_an_acl_answers_by_grantee_with_every_grantor() -> None:
    first, second = Entry(BOB, "SELECT", OLD, False), Entry(BOB, "SELECT", ALICE, True)
    found = acl(first, second, Entry(ALICE, "SELECT", OLD, True))
    assert found.of(BOB) == {"SELECT": (first, second)}
    assert set(found.grantees()) == {ALICE, BOB}
    assert found.of(NEW) == {}


def test_an_empty_acl_holds_nothing_for_nobody() -> None:
    assert acl().grantees() == {}


def test_acls_are_equal_by_what_they_hold_not_by_what_was_asked() -> None:
    asked, not_asked = acl(Entry(BOB, "SELECT", OLD, False)), acl(Entry(BOB, "SELECT", OLD, False))
    asked.grantees()
    assert asked == not_asked
    assert hash(asked) == hash(not_asked)


@pytest.mark.parametrize(
    ("kind", "public"),
    [
        ("database", {"CONNECT", "TEMPORARY"}),
        ("function", {"EXECUTE"}),
        ("type", {"USAGE"}),
        ("language", {"USAGE"}),
        ("table", set()),
        ("schema", set()),
        ("sequence", set()),
        ("large_object", set()),
    ],
)
def test_the_default_acl_gives_public_what_the_kind_gives_it(kind: str, public: set[str]) -> None:
    found = default_acl(kind, OLD, 17)
    assert set(found.of(PUBLIC_OID)) == public
    assert set(found.of(OLD)) == KINDS[kind].privileges_on(17)
    assert not found.explicit
    assert all(entry.grantor == OLD and not entry.grantable for entry in found.entries)


@pytest.mark.parametrize(("version", "there"), [(14, False), (16, False), (17, True), (18, True)])
def test_maintain_is_part_of_a_tables_default_from_17_on(version: int, there: bool) -> None:
    assert ("MAINTAIN" in default_acl("table", OLD, version).of(OLD)) is there


def test_members_are_decoded_in_the_order_of_their_oids() -> None:
    members = Members(2, '[[9, "b"], [5, "f", "integer"]]')
    assert members.objects() == [Object(5, "f", "integer"), Object(9, "b")]
    assert members.objects()[0].label == "f(integer)"
    assert members.objects()[1].label == "b"


def test_members_may_be_names_by_oid() -> None:
    members = Members(2, '{ "10" : "b", "9" : "\\"1\\" : \\u00e4" }')
    assert members.objects() == [Object(9, '"1" : \u00e4'), Object(10, "b")]


def test_members_without_objects_decode_nothing() -> None:
    assert Members(0, "no JSON at all").objects() == []


def test_known_members_are_sorted_and_counted() -> None:
    members = Members.of([Object(9, "b"), Object(5, "a")])
    assert (members.count, [item.oid for item in members.objects()]) == (2, [5, 9])


@pytest.mark.parametrize(
    ("row", "automatic"),
    [
        (Membership(1, 2, 10, True, False, False), True),
        (Membership(1, 2, 11, True, False, False), False),
        (Membership(1, 2, 10, False, False, False), False),
        (Membership(1, 2, 10, True, True, False), False),
        (Membership(1, 2, 10, True, False, True), False),
        (Membership(1, 2, 10, True), False),
    ],
)
def test_only_the_creators_row_of_16_looks_automatic(row: Membership, automatic: bool) -> None:
    assert row.automatic is automatic


def test_a_membership_is_self_granted_only_where_rows_have_grantors_of_their_own() -> None:
    assert Membership(1, 2, 2, False, True, True).self_granted
    assert not Membership(1, 2, 3, False, True, True).self_granted
    assert not Membership(1, 2, 2, False).self_granted


def test_a_role_that_is_gone_is_named_by_its_number() -> None:
    assert World().state.ref(4711) == RoleRef(4711, "4711")
    assert World().state.ref(PUBLIC_OID) == RoleRef(0, "PUBLIC")


def test_names_are_looked_up_exactly() -> None:
    world = World()
    world.role("App")
    world.schema("Sales")
    state = world.state
    assert state.role_oid("App") == world.oid("App")
    assert state.role_oid("app") is None
    assert state.schema_named("sales") is None


def test_a_later_state_knows_what_was_added_and_what_was_renamed() -> None:
    world = World()
    world.schema("s")
    state = world.state
    assert state.role_oid("new") is None
    assert state.schema_named("t") is None
    later = state.with_roles([Role(-1, "new")]).with_schemas([Schema(-1, "t", 10, Acl())])
    assert later.role_oid("new") == -1
    assert later.role_oid("postgres") == 10
    assert later.schema_named("t") is not None
    assert later.schema_named("s") is not None
    assert state.role_oid("new") is None


def test_both_the_login_and_the_session_role_are_executors() -> None:
    world = World(executor="deploy", login="robot")
    assert world.state.executors == {world.oid("deploy"), world.oid("robot")}
