# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who gains and who loses by a plan."""

from __future__ import annotations

from typing import Any, Dict

from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    Change,
    CommentRole,
    CreateRole,
    CreateSchema,
    DropOwned,
    DropRole,
    Grant,
    GrantDefault,
    ReassignOwned,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetConfig,
    SetPassword,
    Target,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.report.affected import affected_roles
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import Object, RoleRef

A, B, G, O = RoleRef(1, "a"), RoleRef(2, "b"), RoleRef(3, "g"), RoleRef(4, "o")  # noqa: E741
SELECT, TWO = frozenset(("SELECT",)), frozenset(("SELECT", "INSERT"))
TABLES = Target("table", "s", (Object(10, "t"), Object(11, "u")), O)


def sides(*changes: Change) -> Dict[str, Any]:
    found = affected_roles(changes)
    assert [item["role"] for item in found] == sorted(item["role"] for item in found)
    assert not any(item["created"] or item["dropped"] for item in found)
    return {item["role"]: (item["gains"], item["loses"]) for item in found}


def test_privileges_count_per_object_and_options_for_themselves() -> None:
    assert sides(
        Grant(TABLES, A, TWO),
        Grant(TABLES, A, SELECT, with_grant_option=True, upgrade=True),
        Revoke(TABLES, A, SELECT, O, option_only=True),
        Revoke(TABLES, B, TWO, O),
        GrantDefault(O, "s", "table", A, TWO),
        RevokeDefault(O, "s", "table", B, SELECT),
    ) == {
        "a": ({"privileges": 4, "grant_options": 2, "default_privileges": 2}, {"grant_options": 2}),
        "b": ({}, {"privileges": 4, "default_privileges": 1}),
    }


def test_what_is_taken_and_given_back_is_nobodys_gain() -> None:
    assert sides(Grant(TABLES, A, TWO, again=True), Revoke(TABLES, B, TWO, O, again=True)) == {}


def test_memberships_and_their_options() -> None:
    assert sides(
        AddMember(G, A, {"admin": True}, "x"),
        AddMember(G, B, {"set": True}, "x", exists=True, raised=frozenset(("set",))),
        AddMember(G, O, {}, "x", exists=True),
        RemoveMember(O, A, None),
        RemoveMember(O, B, None, option="admin"),
        RemoveMember(O, G, None, replaced=True, lowered=frozenset(("inherit",))),
    ) == {
        "a": ({"memberships": ["g", "ADMIN on g"]}, {"memberships": ["o"]}),
        "b": ({"memberships": ["SET on g"]}, {"memberships": ["ADMIN on o"]}),
        "g": ({}, {"memberships": ["INHERIT on o"]}),
    }


def test_attributes_and_schemas() -> None:
    change = AlterRole(
        A, {"superuser": False, "login": True, "connection_limit": 3}, {"superuser": True}, frozenset(), "x"
    )
    raised = AlterRole(B, {"inherit": True, "createdb": True}, {"inherit": False, "createdb": False}, frozenset(), "x")
    assert sides(change, raised, CreateSchema("s", A, "x"), AlterSchemaOwner(5, "u", A, B, "x")) == {
        "a": ({"attributes": ["LOGIN"], "schemas": ["s", "u"]}, {"attributes": ["SUPERUSER"]}),
        "b": ({"attributes": ["CREATEDB", "INHERIT"]}, {"schemas": ["u"]}),
    }


def test_roles_that_come_and_go() -> None:
    found = affected_roles(
        (
            CreateRole(A, {"login": True, "inherit": False}, "x"),
            ReassignOwned(B, O, "x"),
            DropOwned(B, "x"),
            DropRole(B, "x"),
        )
    )
    assert found == [
        item("a", created=True, gains={"attributes": ["LOGIN"]}),
        item("b", dropped=True),
        item("o", gains={"belongings_of": ["b"]}),
    ]


def item(role: str, **told: Any) -> Dict[str, Any]:
    return {
        "role": role, "created": False, "dropped": False, "gains": {}, "loses": {}, "altered": [], "password": None, **told
    }  # fmt: skip


def test_what_else_changes_about_a_role() -> None:
    found = affected_roles(
        (
            CreateRole(A, {"connection_limit": 3}, "x"),
            CommentRole(A, "new", None, "x", created=True),
            SetConfig(A, "work_mem", ("1MB",), None, "x", created=True),
            SetPassword(A, "x", created=True),
            AlterRole(B, {"connection_limit": 3, "login": True, "valid_until": 5}, {}, frozenset(), "x"),
            CommentRole(B, "hunter2", "x", "x"),
            SetConfig(B, "search_path", ("s",), None, "x"),
            SetPassword(G, "x"),
            SetPassword(O, "x", clear=True),
        )
    )
    assert found == [
        item("a", created=True, password="set"),
        item(
            "b", gains={"attributes": ["LOGIN"]}, altered=["CONNECTION LIMIT", "VALID UNTIL", "COMMENT", "search_path"]
        ),
        item("g", password="set"),
        item("o", password="removed"),
    ]
    assert "hunter2" not in str(found)
