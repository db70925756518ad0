# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run leaves alone: the reasons and their order, the modes, and the per-role override."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    Change,
    CommentRole,
    CreateRole,
    CreateSchema,
    GrantDefault,
    RemoveMember,
    RevokeDefault,
    Withheld,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.filters import (
    Context,
    Options,
    apply_filters,
    is_undeclared,
    override,
    wait_for_owner,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import Policy, manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import PUBLIC_REF, RoleRef
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World, declared, rule

SELECT = frozenset(("SELECT",))


class Case:
    """A server with one table s.t of owner o, a manifest, and options."""

    def __init__(self, raw: Optional[Dict[str, Any]] = None, **options: Any) -> None:
        self.world = World()
        self.table = self.world.table("s", "t", "o")
        self.policy: Policy = manifest_to_policy(raw or {"roles": declared("m")})
        self.options = Options(**options)

    def revoke(self, grantee: str, **flags: Any) -> Change:
        extension, kind = flags.pop("extension", False), flags.pop("kind", "table")
        target = self.world.target(kind, "s" if kind == "table" else None, [self.table], "o")
        return self.world.revoke(target._replace(extension=extension), grantee, "SELECT", **flags)

    def revoke_default(self, grantee: str, kind: str = "table", **flags: Any) -> RevokeDefault:
        return RevokeDefault(self.world.ref("o"), "s", kind, self.world.ref(grantee), SELECT, **flags)

    def remove(self, member: str, group: str, **flags: Any) -> RemoveMember:
        return RemoveMember(self.world.ref(group), self.world.ref(member), self.world.ref("postgres"), **flags)

    def alter(self, role: str, *omitted: str, external: bool = False) -> AlterRole:
        return AlterRole(
            self.world.ref(role), {"login": False}, {"login": True}, frozenset(omitted), "", external=external
        )

    def move(self) -> AlterSchemaOwner:
        return AlterSchemaOwner(self.world.schema("s", "o").oid, "s", self.world.ref("m"), self.world.ref("o"), "")

    def reason(self, change: Change) -> Optional[str]:
        kept, withheld = apply_filters([change], Context(self.policy, self.world.state, self.options))
        assert len(kept) + len(withheld) == 1
        return withheld[0].reason if withheld else None


# ---- single reasons --------------------------------------------------------------------------------------------------


def test_an_ordinary_surplus_is_revoked() -> None:
    case = Case()
    assert case.reason(case.revoke("m")) is None
    assert case.reason(case.revoke("stranger")) is None
    assert case.reason(case.revoke_default("m")) is None


def test_an_entry_whose_grantee_is_gone_is_only_reported() -> None:
    case = Case()
    target = case.world.target("table", "s", [case.table], "o")
    change = case.world.revoke(target, "m", "SELECT")
    ghost = change.__class__(target, RoleRef(99999, "99999"), SELECT, change.grantor)
    assert case.reason(ghost) == "dangling_grantee"
    assert case.reason(change.__class__(target, PUBLIC_REF, SELECT, change.grantor, explicit=True)) is None


@pytest.mark.parametrize(
    ("grantee", "reason"), [("pg_monitor", "predefined"), ("rds_superuser", "provider"), ("pgx", None)]
)
def test_reserved_roles_keep_what_no_rule_names(grantee: str, reason: Optional[str]) -> None:
    case = Case()
    assert case.reason(case.revoke(grantee)) == reason
    assert case.reason(case.revoke(grantee, explicit=True)) is None


def test_a_declared_provider_role_is_what_the_manifest_says() -> None:
    case = Case({"roles": declared("anon", external=True)})
    assert case.reason(case.revoke("anon")) is None


@pytest.mark.parametrize(
    ("member", "group", "reason"),
    [
        ("postgres", "m", "predefined"),
        ("m", "postgres", "predefined"),
        ("pg_monitor", "m", "predefined"),
        ("rdsadmin", "m", "provider"),
        ("m", "rds_superuser", "provider"),
        ("stranger", "m", None),
    ],
)
def test_memberships_of_reserved_roles_are_never_removed(member: str, group: str, reason: Optional[str]) -> None:
    world_case = Case()
    world_case.world = World(executor="robot")
    assert world_case.reason(world_case.remove(member, group)) == reason


def test_an_external_roles_attributes_are_somebody_elses() -> None:
    case = Case()
    assert case.reason(case.alter("m", external=True)) == "external"
    assert case.reason(case.alter("m")) is None


def test_an_extensions_object_keeps_its_surplus_but_not_what_a_rule_takes() -> None:
    case = Case()
    assert case.reason(case.revoke("m", extension=True)) == "extension"
    assert case.reason(case.revoke("m", extension=True, explicit=True)) is None


def test_on_an_object_that_databases_share_undeclared_grantees_stay() -> None:
    case = Case()
    here = case.world.target("database", None, [case.world.objects("table", "s", ["app"], "o")[0]], "o")
    there = case.world.target("database", None, [case.world.objects("table", "s", ["other"], "o")[0]], "o")
    assert case.reason(case.world.revoke(there, "stranger", "CONNECT")) == "shared_object"
    assert case.reason(case.world.revoke(there, "m", "CONNECT")) is None
    assert case.reason(case.world.revoke(here, "stranger", "CONNECT")) is None
    assert case.reason(case.revoke("stranger", kind="tablespace")) == "shared_object"


def test_automatic_and_unclaimed_memberships_are_reported() -> None:
    case = Case()
    assert case.reason(case.remove("m", "x", automatic=True)) == "automatic_membership"
    assert case.reason(case.remove("m", "x", claimed=False)) == "unmanaged_membership"


def test_unclaimed_and_unknown_default_privileges_are_reported() -> None:
    case = Case()
    assert case.reason(case.revoke_default("m", claimed=False)) == "unmanaged_default"
    assert case.reason(case.revoke_default("m", kind="letter Z")) == "unknown_kind"


def test_undeclared_grantees_keep_what_they_have_where_told_so() -> None:
    case = Case({"roles": declared("m"), "assume_roles": ["other"]}, undeclared_grantees="keep")
    assert case.reason(case.revoke("stranger")) == "undeclared_grantee"
    assert case.reason(case.revoke_default("stranger")) == "undeclared_grantee"
    assert case.reason(case.revoke("stranger", explicit=True)) is None
    assert case.reason(case.revoke("m")) is None
    assert case.reason(case.revoke("other")) is None


def test_public_is_not_undeclared() -> None:
    policy = manifest_to_policy({"roles": declared("m")})
    assert not is_undeclared(PUBLIC_REF, policy)
    assert is_undeclared(RoleRef(5, "x"), policy)


def test_the_run_does_not_disarm_itself() -> None:
    case = Case()
    case.world = World(executor="deploy", login="robot")
    for name in ("deploy", "robot"):
        assert case.reason(case.alter(name, "login")) == "self_protection"
        assert case.reason(case.alter(name)) is None
        assert case.reason(case.remove(name, "m")) == "self_protection"
    assert case.reason(case.alter("m", "login")) is None


def test_what_names_an_ignored_role_is_not_even_reported() -> None:
    case = Case({"roles": declared("m"), "scope": {"ignore_roles": ["tmp_*"]}})
    ignored: List[Change] = [
        case.revoke("tmp_1"),
        case.revoke("m", by="tmp_1"),
        case.remove("tmp_1", "m"),
        case.remove("m", "tmp_1"),
        case.revoke_default("tmp_1"),
    ]
    kept, withheld = apply_filters([*ignored, case.revoke("m")], Context(case.policy, case.world.state, case.options))
    assert kept == [case.revoke("m")]
    assert withheld == []


def test_an_ignored_owner_as_grantor_is_no_reason() -> None:
    case = Case({"roles": declared("m"), "scope": {"ignore_roles": ["o"]}})
    assert case.reason(case.revoke("m")) is None


# ---- their order -----------------------------------------------------------------------------------------------------


def test_what_nobody_would_touch_anyway_is_withheld_for_that_reason() -> None:
    case = Case(mode="additive", undeclared_grantees="keep")
    assert case.reason(case.revoke("pg_monitor", extension=True)) == "predefined"
    assert case.reason(case.revoke("stranger", extension=True)) == "extension"
    assert case.reason(case.revoke("stranger", kind="tablespace")) == "shared_object"
    assert case.reason(case.revoke_default("stranger", claimed=False)) == "unmanaged_default"
    assert case.reason(case.revoke("stranger")) == "undeclared_grantee"
    assert case.reason(case.remove("postgres", "m", automatic=True, claimed=True)) == "predefined"
    assert case.reason(case.remove("m", "x", automatic=True, claimed=False)) == "automatic_membership"
    assert case.reason(case.alter("postgres", "login", external=True)) == "external"
    assert case.reason(case.alter("postgres", "login")) == "self_protection"


# ---- the modes -------------------------------------------------------------------------------------------------------


def changes_by_name(case: Case) -> Dict[str, Change]:
    world, group, member = case.world, case.world.ref("m"), case.world.ref("x")
    target = world.target("table", "s", [case.table], "o")
    return {
        "create role": CreateRole(RoleRef(-1, "n"), {}, ""),
        "create schema": CreateSchema("n", None, ""),
        "grant": world.grant(target, "m", "SELECT"),
        "grant default": GrantDefault(world.ref("o"), "s", "table", group, SELECT),
        "add member": AddMember(group, member, {}, ""),
        "comment new": CommentRole(RoleRef(-1, "n"), "x", None, "", created=True),
        "comment old": CommentRole(group, "x", None, ""),
        "alter role": case.alter("m"),
        "remove member": case.remove("x", "m"),
        "lower member": case.remove("x", "m", option="admin"),
        "revoke": case.revoke("m"),
        "revoke option": case.revoke("m", option_only=True),
        "absent": case.revoke("m", explicit=True),
        "revoke default": case.revoke_default("m"),
        "absent default": case.revoke_default("m", explicit=True),
        "move schema": case.move(),
    }


RAISING = {"create role", "create schema", "grant", "grant default", "add member", "comment new"}


@pytest.mark.parametrize(
    ("options", "held"),
    [
        ({"mode": "authoritative"}, set()),
        ({"mode": "adopt"}, {"move schema"}),
        ({"mode": "adopt", "adopt_schema_owners": True}, set()),
        ({"mode": "additive"}, None),
        ({"mode": "additive", "adopt_schema_owners": True}, None),
    ],
)
def test_each_mode_holds_back_what_the_table_says(options: Dict[str, Any], held: Optional[set[str]]) -> None:
    case = Case(**options)
    found = changes_by_name(case)
    expected = set(found) - RAISING if held is None else held
    reasons = {name: case.reason(change) for name, change in found.items()}
    assert {name for name, reason in reasons.items() if reason == "mode"} == expected
    assert {reason for reason in reasons.values() if reason} <= {"mode"}


def test_default_privileges_wait_for_the_owner_that_the_mode_holds_back() -> None:
    case = Case(mode="adopt")
    move = case.move()
    waiting = GrantDefault(move.owner, "s", "table", case.world.ref("x"), SELECT)
    elsewhere = GrantDefault(move.owner, "t", "table", case.world.ref("x"), SELECT)
    other_owner = GrantDefault(case.world.ref("o"), "s", "table", case.world.ref("x"), SELECT)
    kept, withheld = wait_for_owner([waiting, elsewhere, other_owner], [Withheld(move, "mode")])
    assert kept == [elsewhere, other_owner]
    assert withheld == [Withheld(waiting, "mode")]


# ---- the override ----------------------------------------------------------------------------------------------------

LEGACY: Dict[str, Any] = {
    "roles": [{"name": "legacy", "privilege_reconciliation": "additive"}, {"name": "other"}],
    "grants": [rule("other", "SELECT", "table", "s", "t")],
}


@pytest.mark.parametrize(
    ("mode", "carries", "applied", "suppressed", "withheld"),
    [
        ("authoritative", False, 1, 0, 0),
        ("adopt", False, 1, 0, 0),
        ("additive", False, 0, 0, 1),
        ("authoritative", True, 0, 1, 0),
        ("adopt", True, 0, 1, 0),
        ("additive", True, 0, 0, 1),
    ],
)
def test_the_override_only_loosens_and_counts_nothing_that_the_mode_did(
    mode: str, carries: bool, applied: int, suppressed: int, withheld: int
) -> None:
    world = World()
    for name in ("legacy", "other"):
        world.role(name)
    world.table("s", "t", "o", ("legacy", "UPDATE", "o"), ("other", "SELECT", "o"))
    raw = {**LEGACY, "roles": LEGACY["roles"] if carries else declared("legacy", "other")}
    plan = world.plan(raw, mode=mode)
    assert (len(plan.changes), len(plan.suppressed), len(plan.withheld)) == (applied, suppressed, withheld)
    assert plan.ready == ()


def test_the_override_keeps_only_undeclared_revokes_whose_grantee_carries_it() -> None:
    case = Case(LEGACY)
    held: List[Change] = [
        case.revoke("legacy"),
        case.revoke("legacy", option_only=True),
        case.revoke("legacy", by="other"),
        case.revoke_default("legacy"),
    ]
    through: List[Change] = [
        case.revoke("other"),
        case.revoke("other", by="legacy"),
        case.revoke("legacy", explicit=True),
        case.revoke_default("legacy", explicit=True),
        case.remove("legacy", "other"),
        case.remove("other", "legacy"),
        case.alter("legacy"),
        case.world.grant(case.world.target("table", "s", [case.table], "o"), "legacy", "INSERT"),
    ]
    assert override([*held, *through], case.policy) == (through, held)


def test_an_override_without_a_backlog_is_ready_to_be_removed() -> None:
    world = World()
    for name in ("legacy", "other"):
        world.role(name)
    world.table("s", "t", "o", ("other", "SELECT", "o"))
    assert world.plan(LEGACY).ready == ("legacy",)
