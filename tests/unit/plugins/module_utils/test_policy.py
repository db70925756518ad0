# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a manifest means: profiles expanded, memberships united, and everything checked that refers to something else."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest import load
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.model import Manifest
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import (
    DefaultRule,
    DesiredEdge,
    DesiredRole,
    DesiredSchema,
    Policy,
    Rule,
    expand,
    manifest_to_policy,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import ManifestInvalid, Problem

USAGE_ON_SCHEMA = {"privileges": ["USAGE"], "object": {"type": "schema"}}
SELECT_ON_TABLES = {"privileges": ["SELECT"], "object": {"type": "table", "name": "*"}}
READER = {
    "grants": [USAGE_ON_SCHEMA, SELECT_ON_TABLES],
    "default_privileges": [{"privileges": ["SELECT"], "on_type": "table"}],
}


def roles(*names: str) -> List[Dict[str, Any]]:
    return [{"name": name} for name in names]


def rule(role: str = "app", privileges: Tuple[str, ...] = ("SELECT",), **keys: Any) -> Dict[str, Any]:
    return {
        "role": role,
        "privileges": list(privileges),
        "object": {"type": "table", "schema": "s", "name": "t"},
        **keys,
    }


def problems(raw: Dict[str, Any]) -> Tuple[Problem, ...]:
    with pytest.raises(ManifestInvalid) as caught:
        manifest_to_policy(raw)
    return caught.value.problems


def only(raw: Dict[str, Any]) -> Problem:
    found = problems(raw)
    assert len(found) == 1, [problem.text for problem in found]
    return found[0]


# ---- what comes out --------------------------------------------------------------------------------------------------


def test_an_empty_manifest_wants_nothing() -> None:
    assert expand(Manifest()) == Policy()


def test_a_profile_makes_a_role_for_each_schema() -> None:
    policy = manifest_to_policy(
        {
            "default_owner": "o",
            "roles": roles("o", "p"),
            "profiles": {"reader": {**READER, "login": False, "inherit": True}},
            "schemas": [{"name": "a", "profiles": ["reader"]}, {"name": "b", "owner": "p", "profiles": ["reader"]}],
        }
    )
    assert policy.roles["a-reader"] == DesiredRole(
        name="a-reader",
        source="schemas[0].profiles[0]",
        generated=True,
        attributes={"login": False, "inherit": True},
        profile="reader",
        schema="a",
    )
    assert policy.rules == (
        Rule("a-reader", frozenset({"USAGE"}), "schema", None, "a", "profiles.reader.grants[0] for a-reader"),
        Rule("a-reader", frozenset({"SELECT"}), "table", "a", "*", "profiles.reader.grants[1] for a-reader"),
        Rule("b-reader", frozenset({"USAGE"}), "schema", None, "b", "profiles.reader.grants[0] for b-reader"),
        Rule("b-reader", frozenset({"SELECT"}), "table", "b", "*", "profiles.reader.grants[1] for b-reader"),
    )
    select = frozenset({"SELECT"})
    assert policy.default_rules == (
        DefaultRule("o", "a", "table", "a-reader", select, "profiles.reader.default_privileges[0] for a-reader"),
        DefaultRule("p", "b", "table", "b-reader", select, "profiles.reader.default_privileges[0] for b-reader"),
    )
    assert policy.schemas == {
        "a": DesiredSchema("a", "schemas[0]", owner=None, create_owner="o"),
        "b": DesiredSchema("b", "schemas[1]", owner="p", create_owner="p"),
    }


def test_direct_rules_keep_their_order_before_those_of_profiles() -> None:
    policy = manifest_to_policy(
        {
            "roles": roles("app"),
            "profiles": {"r": {"grants": [USAGE_ON_SCHEMA]}},
            "schemas": [{"name": "s", "profiles": ["r"]}],
            "grants": [rule(), rule(privileges=("INSERT",), ensure="absent"), rule("PUBLIC")],
        }
    )
    assert [found.source for found in policy.rules] == [
        "grants[0]",
        "grants[1]",
        "grants[2]",
        "profiles.r.grants[0] for s-r",
    ]
    assert [found.present for found in policy.rules] == [True, False, True, True]
    assert policy.rules[2].role == "public"


@pytest.mark.parametrize(
    "whole, own, name",
    [
        (None, None, "inv-editor"),
        ("{profile}_{schema}", None, "editor_inv"),
        ("{profile}_{schema}", "only {profile}", "only editor"),
        (None, "{schema}{schema}{profile}", "invinveditor"),
    ],
)
def test_role_patterns(whole: Any, own: Any, name: str) -> None:
    raw = {
        "role_pattern": whole,
        "profiles": {"editor": {}},
        "schemas": [{"name": "inv", "profiles": ["editor"], "role_pattern": own}],
    }
    assert set(manifest_to_policy(raw).roles) == {name}


def test_a_pattern_is_filled_in_once() -> None:
    raw = {"profiles": {"{schema}": {}}, "schemas": [{"name": "{profile}", "profiles": ["{schema}"]}]}
    assert set(manifest_to_policy(raw).roles) == {"{profile}-{schema}"}


def test_declared_roles_hold_only_what_is_given() -> None:
    policy = manifest_to_policy(
        {
            "roles": [
                {"name": "a", "login": True, "connection_limit": 0, "comment": ""},
                {"name": "b", "external": True, "privilege_reconciliation": "additive"},
            ]
        }
    )
    assert policy.roles == {
        "a": DesiredRole("a", "roles[0]", comment="", attributes={"login": True, "connection_limit": 0}),
        "b": DesiredRole("b", "roles[1]", external=True, additive=True),
    }


def test_memberships_of_one_group_are_united() -> None:
    policy = manifest_to_policy(
        {
            "roles": roles("g", "m", "n"),
            "memberships": [
                {"role": "g", "members": [{"name": "m", "admin": False}, {"name": "n", "set": False}]},
                {"role": "g", "members": [{"name": "m"}], "exclusive": True},
                {"role": "pg_monitor", "members": [{"name": "m"}]},
            ],
        }
    )
    assert policy.edges == {
        ("g", "m"): DesiredEdge("g", "m", "memberships[0].members[0]"),
        ("g", "n"): DesiredEdge("g", "n", "memberships[0].members[1]", set=False),
        ("pg_monitor", "m"): DesiredEdge("pg_monitor", "m", "memberships[2].members[0]"),
    }
    assert policy.stanzas == {"g": "memberships[0]", "pg_monitor": "memberships[2]"}
    assert policy.exclusive == {"g"}


def test_named_owners_are_those_of_rules_and_schemas() -> None:
    policy = manifest_to_policy(
        {
            "default_owner": "o",
            "roles": roles("o", "p", "q", "app"),
            "schemas": [{"name": "a"}, {"name": "b", "owner": "p"}],
            "default_privileges": [
                {"owner": "q", "grant": [{"role": "app", "privileges": ["ALL"], "on_type": "table"}]},
                {"schema": "a", "grant": [{"role": "app", "privileges": ["ALL"], "on_type": "table"}]},
            ],
        }
    )
    assert policy.named_owners == {
        "q": "default_privileges[0].grant[0]",
        "o": "default_privileges[1].grant[0]",
        "p": "schemas[1]",
    }
    assert policy.default_rules[1].owner == "o"


def test_without_an_owner_nobody_is_named() -> None:
    policy = manifest_to_policy({"schemas": [{"name": "a"}]})
    assert policy.named_owners == {}
    assert policy.schemas["a"].create_owner is None


def test_named_roles_have_the_first_place_that_names_them() -> None:
    policy = manifest_to_policy(
        {
            "default_owner": "rds_superuser",
            "roles": roles("app"),
            "assume_roles": ["other", "unnamed"],
            "grants": [rule("app"), rule("pg_monitor"), rule("other"), rule("PUBLIC")],
            "schemas": [{"name": "s", "owner": "azure_pg_admin"}],
        }
    )
    assert policy.named_roles == {
        "app": "roles[0]",
        "rds_superuser": "default_owner",
        "azure_pg_admin": "schemas[0].owner",
        "pg_monitor": "grants[1].role",
        "other": "grants[2].role",
    }
    assert policy.assumed == {"other", "unnamed"}


def test_scope() -> None:
    policy = manifest_to_policy({"scope": {"schemas": ["app_*"], "ignore_roles": ["tmp_*"]}})
    assert (policy.scope_schemas, policy.ignore_roles) == (("app_*",), ("tmp_*",))


# ---- unknown names ---------------------------------------------------------------------------------------------------


UNKNOWN: List[Tuple[Dict[str, Any], str]] = [
    ({"default_owner": "ap"}, "default_owner"),
    ({"schemas": [{"name": "s", "owner": "ap"}]}, "schemas[0].owner"),
    ({"memberships": [{"role": "ap", "members": [{"name": "app"}]}]}, "memberships[0].role"),
    ({"memberships": [{"role": "app", "members": [{"name": "ap"}]}]}, "memberships[0].members[0].name"),
    ({"roles": [{"name": "app"}, {"name": "x", "member_of": ["ap"]}]}, "roles[1].member_of[0]"),
    ({"roles": [{"name": "app"}, {"name": "x", "members": [{"name": "ap"}]}]}, "roles[1].members[0].name"),
    ({"grants": [rule("ap")]}, "grants[0].role"),
    (
        {
            "default_privileges": [
                {"owner": "ap", "grant": [{"role": "app", "privileges": ["SELECT"], "on_type": "table"}]}
            ]
        },
        "default_privileges[0].owner",
    ),
    (
        {
            "default_privileges": [
                {"owner": "app", "grant": [{"role": "ap", "privileges": ["SELECT"], "on_type": "table"}]}
            ]
        },
        "default_privileges[0].grant[0].role",
    ),
]


@pytest.mark.parametrize("raw, path", UNKNOWN, ids=[path for _raw, path in UNKNOWN])
def test_a_role_that_nobody_declares(raw: Dict[str, Any], path: str) -> None:
    problem = only({"roles": roles("app"), **raw})
    assert (problem.path, problem.role) == (path, "ap")
    assert problem.message.startswith("unknown role 'ap'; did you mean 'app'?")


def test_an_unknown_role_in_another_case_and_a_generated_one() -> None:
    raw = {
        "roles": roles("App"),
        "profiles": {"reader": {}},
        "schemas": [{"name": "s", "profiles": ["reader"]}],
        "grants": [rule("app"), rule("s-raeder"), rule("quite_another")],
    }
    messages = [problem.message for problem in problems(raw)]
    assert "did you mean 'App'?" in messages[0]
    assert "did you mean 's-reader'?" in messages[1]
    assert "did you mean" not in messages[2]


def test_a_name_that_only_looks_predefined_or_like_a_providers() -> None:
    assert {problem.role for problem in problems({"grants": [rule("pgx"), rule("PG_monitor"), rule("RDSADMIN")]})} == {
        "pgx",
        "PG_monitor",
        "RDSADMIN",
    }


def test_an_unknown_profile() -> None:
    problem = only({"profiles": {"editor": {}}, "schemas": [{"name": "s", "profiles": ["editr"]}]})
    assert problem.path == "schemas[0].profiles[0]"
    assert problem.message == "unknown profile 'editr'; did you mean 'editor'?"


def test_unreadable_declarations_do_not_make_every_name_unknown() -> None:
    assert [problem.path for problem in problems({"roles": {"app": {}}, "grants": [rule("app")]})] == ["roles"]
    raw = {"profiles": [], "schemas": [{"name": "s", "profiles": ["x"]}], "grants": [rule("s-x")]}
    assert [problem.path for problem in problems(raw)] == ["profiles"]


def test_a_declaration_with_a_mistake_still_declares() -> None:
    raw = {
        "roles": [{"name": "app", "login": "yes"}],
        "profiles": {"p": {"login": 1}},
        "schemas": [{"name": "s", "owner": 5, "profiles": ["p"]}],
        "grants": [rule("app"), rule("s-p")],
    }
    assert {problem.path for problem in problems(raw)} == {"roles[0].login", "profiles.p.login", "schemas[0].owner"}


def test_problems_of_form_and_of_reference_come_together() -> None:
    raw = {"roles": [{"name": "app", "lgin": True}], "grants": [rule("ap"), rule("app", privileges=("NOPE",))]}
    assert [problem.path for problem in problems(raw)] == [
        "roles[0].lgin",
        "grants[1].privileges[0]",
        "grants[0].role",
    ]


def test_an_unusable_rule_still_names_its_role() -> None:
    raw = {"roles": roles("app"), "grants": [rule("ap", object={"type": "tabel"}), rule("app", object={"type": "x"})]}
    assert [problem.path for problem in problems(raw)] == [
        "grants[0].object.type",
        "grants[1].object.type",
        "grants[0].role",
    ]


# ---- generated roles -------------------------------------------------------------------------------------------------


def test_two_schemas_and_profiles_that_make_one_name() -> None:
    raw = {
        "profiles": {"c": {}, "b-c": {}},
        "schemas": [{"name": "a-b", "profiles": ["c"]}, {"name": "a", "profiles": ["b-c"]}],
    }
    problem = only(raw)
    assert (problem.path, problem.role) == ("schemas[1].profiles[0]", "a-b-c")
    assert "schemas[0].profiles[0]" in problem.message
    assert "schemas[1].profiles[0]" in problem.message


def test_a_profile_twice_in_one_schema() -> None:
    raw = {"profiles": {"p": {}}, "schemas": [{"name": "s", "profiles": ["p", "p"]}]}
    assert only(raw).path == "schemas[0].profiles[1]"


def test_a_declared_role_that_a_profile_generates_too() -> None:
    raw = {"roles": roles("s-p"), "profiles": {"p": {}}, "schemas": [{"name": "s", "profiles": ["p"]}]}
    problem = only(raw)
    assert problem.path == "schemas[0].profiles[0]"
    assert "roles[0]" in problem.message


def test_an_assumed_role_that_a_profile_generates() -> None:
    raw = {"assume_roles": ["s-p"], "profiles": {"p": {}}, "schemas": [{"name": "s", "profiles": ["p"]}]}
    assert "stands in assume_roles" in only(raw).message


@pytest.mark.parametrize(
    "schema, profile, pattern, message",
    [
        ("s" * 40, "p" * 30, None, "which is 71 bytes long"),
        ("é" * 31, "p", None, "which is 64 bytes long"),
        ("s", "public", "{profile}", "which is a reserved word"),
        ("s", "x", "pg_{profile}", "names that begin with pg_"),
    ],
)
def test_a_generated_name_that_no_role_can_have(schema: str, profile: str, pattern: Any, message: str) -> None:
    raw = {"profiles": {profile: {}}, "schemas": [{"name": schema, "profiles": [profile], "role_pattern": pattern}]}
    problem = only(raw)
    assert problem.path == "schemas[0].profiles[0]"
    assert message in problem.message


def test_three_spellings_are_one_set_of_memberships() -> None:
    policy = manifest_to_policy(
        {
            "roles": [
                {"name": "g", "members": ["a", {"name": "b", "set": False}]},
                {"name": "a", "member_of": ["g", {"name": "pg_monitor", "admin": True}]},
                *roles("b", "c"),
                {"name": "e", "external": True, "members": [], "member_of": []},
            ],
            "memberships": [{"role": "g", "members": [{"name": "a"}, {"name": "c"}]}],
        }
    )
    assert policy.edges == {
        ("g", "a"): DesiredEdge("g", "a", "memberships[0].members[0]"),
        ("g", "c"): DesiredEdge("g", "c", "memberships[0].members[1]"),
        ("g", "b"): DesiredEdge("g", "b", "roles[0].members[1]", set=False),
        ("pg_monitor", "a"): DesiredEdge("pg_monitor", "a", "roles[1].member_of[1]", admin=True),
    }
    assert policy.exclusive == {"g", "e"}
    assert policy.member_of == {"a": "roles[1].member_of", "e": "roles[4].member_of"}
    assert policy.stanzas == {"g": "memberships[0]", "e": "roles[4].members"}


# ---- memberships -----------------------------------------------------------------------------------------------------


def member(group: str, name: str, **options: Any) -> Dict[str, Any]:
    return {"role": group, "members": [{"name": name, **options}]}


def test_a_member_of_itself() -> None:
    problem = only({"roles": roles("a"), "memberships": [member("a", "a")]})
    assert (problem.path, problem.role) == ("memberships[0].members[0]", "a")
    assert problem.message == "'a' cannot be a member of itself"


def test_a_cycle_is_printed() -> None:
    raw = {
        "roles": roles("a", "b", "c", "d"),
        "memberships": [member("a", "b"), member("b", "c"), member("c", "a"), member("d", "a"), member("c", "d")],
    }
    found = problems(raw)
    printed = [problem.message.rpartition(": ")[2] for problem in found]
    for line in printed:
        names = line.split(" -> ")
        assert names[0] == names[-1]
        edges = {(entry["role"], entry["members"][0]["name"]) for entry in raw["memberships"]}
        assert all((group, name) in edges for name, group in zip(names, names[1:]))
    assert any(len(line.split(" -> ")) == 4 for line in printed)
    assert all(str(problem.path).startswith("memberships[") for problem in found)


def test_two_ways_to_a_group_are_no_cycle() -> None:
    raw = {
        "roles": roles("a", "b", "c", "d"),
        "memberships": [member("a", "b"), member("a", "c"), member("b", "d"), member("c", "d")],
    }
    assert len(manifest_to_policy(raw).edges) == 4


@pytest.mark.parametrize(
    "stanza, message",
    [
        (member("pg_database_owner", "a"), "has no members but the database's owner"),
        (member("a", "pg_database_owner"), "cannot be a member"),
    ],
)
def test_pg_database_owner(stanza: Dict[str, Any], message: str) -> None:
    problem = only({"roles": roles("a"), "memberships": [stanza]})
    assert problem.path == "memberships[0].members[0]"
    assert message in problem.message


@pytest.mark.parametrize(
    "one, other", [({"inherit": True}, {"inherit": False}), ({"admin": True}, {}), ({}, {"set": True})]
)
def test_one_membership_with_different_options(one: Dict[str, Any], other: Dict[str, Any]) -> None:
    raw = {"roles": roles("g", "m"), "memberships": [member("g", "m", **one), member("g", "m", **other)]}
    problem = only(raw)
    assert (problem.path, problem.role) == ("memberships[1].members[0]", "m")
    assert "memberships[0].members[0]" in problem.message


# ---- rules -----------------------------------------------------------------------------------------------------------


ABSENT = {"ensure": "absent"}
STAR = {"object": {"type": "table", "schema": "s", "name": "*"}}

CLASHES: List[Tuple[Dict[str, Any], Dict[str, Any], str]] = [
    (rule(), rule(**ABSENT), "SELECT for 'app' on table s.t is absent in grants[1] and present in grants[0]"),
    (rule(**ABSENT), rule(), "SELECT for 'app' on table s.t is present in grants[1] and absent in grants[0]"),
    (rule(privileges=("ALL",)), rule(**ABSENT), "SELECT for 'app' on table s.t"),
    (rule(privileges=("INSERT",)), rule(privileges=("ALL",), **ABSENT), "INSERT for 'app' on table s.t"),
    (rule(privileges=("ALL",)), rule(privileges=("ALL",), **ABSENT), "ALL for 'app' on table s.t"),
    (rule(**STAR), rule(**STAR, **ABSENT), "SELECT for 'app' on table s.*"),
    (rule("PUBLIC"), rule("public", **ABSENT), "SELECT for PUBLIC on table s.t"),
    (rule(with_grant_option=True), rule(**ABSENT), "SELECT for 'app' on table s.t"),
    (rule(columns=["b", "a"]), rule(columns=["c", "b"], **ABSENT), "SELECT for 'app' on table s.t (b, c)"),
    (
        rule(columns=["a"], privileges=("ALL",)),
        rule(columns=["a"], privileges=("UPDATE",), **ABSENT),
        "UPDATE for 'app' on table s.t (a) is absent in grants[1] and present in grants[0]",
    ),
    (
        rule(columns=["a"], privileges=("REFERENCES",)),
        rule(columns=["a"], privileges=("ALL",), **ABSENT),
        "REFERENCES for 'app' on table s.t (a)",
    ),
    (rule(columns=["a"], **STAR), rule(columns=["a"], **STAR, **ABSENT), "SELECT for 'app' on table s.* (a)"),
    *(
        (
            rule(object=one, privileges=("ALL",)),
            rule(object=other, privileges=("ALL",), **ABSENT),
            f"ALL for 'app' on {shown}",
        )
        for one, other, shown in (
            (
                {"type": "parameter", "name": "Work_Mem"},
                {"type": "parameter", "name": "WORK_mem"},
                "parameter work_mem",
            ),
            ({"type": "large_object", "name": 16}, {"type": "large_object", "name": "016"}, "large_object 16"),
            (
                {"type": "type", "schema": "s", "name": "m"},
                {"type": "domain", "schema": "s", "name": "m"},
                "type s.m",
            ),
            ({"type": "language", "name": "sql"}, {"type": "language", "name": "sql"}, "language sql"),
        )
    ),
]


@pytest.mark.parametrize("one, other, message", CLASHES, ids=[case[2] for case in CLASHES])
def test_rules_of_one_level_that_contradict_each_other(
    one: Dict[str, Any], other: Dict[str, Any], message: str
) -> None:
    problem = only({"roles": roles("app"), "grants": [one, other]})
    assert problem.path == "grants[1]"
    assert problem.role == (None if one["role"] == "PUBLIC" else "app")
    assert problem.object is not None
    assert problem.object in message
    assert message in problem.message
    assert "grants[0]" in problem.message


@pytest.mark.parametrize(
    "one, other",
    [
        (rule(**STAR), rule(**ABSENT)),
        (rule(**STAR, **ABSENT), rule()),
        (rule(), rule(privileges=("INSERT",), **ABSENT)),
        (rule(), rule("other", **ABSENT)),
        (rule(), rule(object={"type": "view", "schema": "s", "name": "t"}, **ABSENT)),
        (rule(), rule(object={"type": "table", "schema": "x", "name": "t"}, **ABSENT)),
        (rule(), rule()),
        (rule(), rule(columns=["a"], **ABSENT)),
        (rule(**ABSENT), rule(columns=["a"])),
        (rule(columns=["a"]), rule(columns=["b"], **ABSENT)),
        (rule(columns=["a"]), rule(columns=["A"], **ABSENT)),
        (rule(columns=["a"]), rule(columns=["a"], privileges=("INSERT",), **ABSENT)),
        (rule(columns=["a"], **STAR), rule(columns=["a"], **ABSENT)),
        (rule(with_grant_option=True), rule()),
        (rule(with_grant_option=False), rule(with_grant_option=True)),
        (
            rule(object={"type": "language", "name": "sql"}, privileges=("USAGE",)),
            rule(object={"type": "language", "name": "SQL"}, privileges=("USAGE",), **ABSENT),
        ),
    ],
)
def test_rules_that_do_not_contradict_each_other(one: Dict[str, Any], other: Dict[str, Any]) -> None:
    assert len(manifest_to_policy({"roles": roles("app", "other"), "grants": [one, other]}).rules) == 2


def test_two_clashing_columns_are_one_problem() -> None:
    raw = {"roles": roles("app"), "grants": [rule(columns=["a", "b"]), rule(columns=["a", "b"], **ABSENT)]}
    assert only(raw).path == "grants[1]"


def test_rules_carry_columns_and_the_grant_option() -> None:
    policy = manifest_to_policy(
        {
            "default_owner": "o",
            "roles": roles("app", "o"),
            "profiles": {
                "p": {
                    "grants": [{**SELECT_ON_TABLES, "columns": ["b", "a", "b"], "with_grant_option": True}],
                    "default_privileges": [{"privileges": ["USAGE"], "on_type": "domain", "with_grant_option": True}],
                }
            },
            "schemas": [{"name": "s", "profiles": ["p"]}],
            "grants": [
                rule(columns=["z", "a"], privileges=("ALL",)),
                rule(object={"type": "parameter", "name": "Work_Mem"}, privileges=("SET",), with_grant_option=True),
                rule(object={"type": "large_object", "name": 7}),
            ],
            "default_privileges": [
                {
                    "grant": [
                        {"role": "app", "privileges": ["ALL"], "on_type": "large_object", "with_grant_option": True}
                    ]
                }
            ],
        }
    )
    four = frozenset({"SELECT", "INSERT", "UPDATE", "REFERENCES"})
    select = frozenset({"SELECT"})
    assert policy.rules == (
        Rule("app", four, "table", "s", "t", "grants[0]", columns=("a", "z")),
        Rule("app", frozenset({"SET"}), "parameter", None, "work_mem", "grants[1]", with_grant_option=True),
        Rule("app", select, "large_object", None, "7", "grants[2]"),
        Rule(
            "s-p",
            select,
            "table",
            "s",
            "*",
            "profiles.p.grants[0] for s-p",
            columns=("a", "b"),
            with_grant_option=True,
        ),
    )
    usage, every = frozenset({"USAGE"}), frozenset({"ALL"})
    assert policy.default_rules == (
        DefaultRule("o", None, "large_object", "app", every, "default_privileges[0].grant[0]", with_grant_option=True),
        DefaultRule("o", "s", "type", "s-p", usage, "profiles.p.default_privileges[0] for s-p", with_grant_option=True),
    )


def test_a_rule_with_unusable_columns_still_names_its_role() -> None:
    raw = {"roles": roles("app"), "grants": [rule("ap", columns=[])]}
    assert [problem.path for problem in problems(raw)] == ["grants[0].columns", "grants[0].role"]


def test_a_rule_that_contradicts_a_profile() -> None:
    raw = {
        "profiles": {"r": {"grants": [SELECT_ON_TABLES]}},
        "schemas": [{"name": "s", "profiles": ["r"]}],
        "grants": [rule("s-r", **STAR, **ABSENT)],
    }
    problem = only(raw)
    assert problem.path == "profiles.r.grants[0] for s-r"
    assert "grants[0]" in problem.message


def defaults(schema: Any = None, owner: Any = "o", **keys: Any) -> Dict[str, Any]:
    grant = {"role": "app", "privileges": ["SELECT"], "on_type": "table", **keys}
    return {"owner": owner, "schema": schema, "grant": [grant]}


def test_default_privileges_that_contradict_each_other() -> None:
    raw = {"roles": roles("app", "o"), "default_privileges": [defaults("s"), defaults("s", **ABSENT)]}
    problem = only(raw)
    assert problem.path == "default_privileges[1].grant[0]"
    assert "default privileges of o on table in s" in problem.message
    raw["default_privileges"] = [defaults("s"), defaults(None, **ABSENT)]
    assert len(manifest_to_policy(raw).default_rules) == 2


def test_default_privileges_need_an_owner() -> None:
    raw: Dict[str, Any] = {"roles": roles("app", "o"), "default_privileges": [defaults("s", owner=None)]}
    problem = only(raw)
    assert problem.path == "default_privileges[0].owner"
    assert "is required where no default_owner is given" in problem.message
    raw["default_owner"] = "o"
    assert manifest_to_policy(raw).default_rules[0].owner == "o"


def test_an_owner_that_cannot_be_used_is_one_problem() -> None:
    raw: Dict[str, Any] = {"roles": roles("app"), "default_privileges": [defaults("s", owner=5)]}
    assert only(raw).path == "default_privileges[0].owner"
    assert only({**raw, "default_privileges": [defaults("s", owner=None)], "default_owner": 5}).path == "default_owner"


def test_a_profiles_default_privileges_need_an_owner() -> None:
    raw = {"profiles": {"r": READER, "w": READER}, "schemas": [{"name": "s", "profiles": ["r", "w"]}]}
    problem = only(raw)
    assert problem.path == "schemas[0].owner"
    assert "the profile 'r' has default privileges" in problem.message


# ---- ignored roles ---------------------------------------------------------------------------------------------------


def test_an_ignored_role_cannot_be_named() -> None:
    raw = {
        "roles": roles("tmp_a", "App_b"),
        "grants": [rule("tmp_a"), rule("pg_monitor")],
        "scope": {"ignore_roles": ["tmp_?", "app_*", "pg_mon*"]},
    }
    found = problems(raw)
    assert [(problem.path, problem.role) for problem in found] == [
        ("roles[0]", "tmp_a"),
        ("grants[1].role", "pg_monitor"),
    ]
    assert "matches the pattern 'tmp_?' of scope.ignore_roles" in found[0].message


# ---- size ------------------------------------------------------------------------------------------------------------


def big(rules: int, known: bool) -> Dict[str, Any]:
    return {
        "roles": roles(*(f"role_{number}" for number in range(500))),
        "grants": [
            {
                "role": f"role_{number % 500}" if known else f"rule_{number}",
                "privileges": ["SELECT", "INSERT"],
                "object": {"type": "table", "schema": f"s{number % 50}", "name": f"t{number}"},
            }
            for number in range(rules)
        ],
    }


def seconds(raw: Dict[str, Any]) -> float:
    start = time.process_time()
    try:
        manifest_to_policy(raw)
    except ManifestInvalid as invalid:
        assert len(invalid.problems) == len(raw["grants"])
    return time.process_time() - start


@pytest.mark.parametrize("known", [True, False])
def test_the_time_grows_with_the_rules_and_not_faster(known: bool) -> None:
    """Ten times the rules take ten times as long; a loop in a loop would take a hundred times."""
    few = min(seconds(big(1000, known)) for attempt in range(3))
    assert seconds(big(10000, known)) < 30 * few


def test_three_hundred_profile_roles_expand_at_once() -> None:
    raw = {
        "default_owner": "o",
        "roles": roles("o"),
        "profiles": dict.fromkeys(("a", "b", "c"), READER),
        "schemas": [{"name": f"s{number}", "profiles": ["a", "b", "c"]} for number in range(100)],
    }
    start = time.process_time()
    policy = manifest_to_policy(raw)
    assert time.process_time() - start < 5
    assert (len(policy.roles), len(policy.rules), len(policy.default_rules)) == (301, 600, 300)


def test_load_and_expand_say_the_same_as_both_at_once() -> None:
    raw = {"roles": roles("app"), "grants": [rule()]}
    assert expand(load.load(raw)) == manifest_to_policy(raw)


def test_one_membership_in_two_spellings_with_different_options() -> None:
    raw = {"roles": [{"name": "g", "members": ["m"]}, {"name": "m", "member_of": [{"name": "g", "admin": True}]}]}
    problem = only(raw)
    assert (problem.path, problem.role) == ("roles[1].member_of[0]", "m")
    assert "roles[0].members[0]" in problem.message


def test_a_cycle_through_every_spelling() -> None:
    raw = {
        "roles": [{"name": "a", "member_of": ["b"]}, {"name": "b"}, {"name": "c", "members": ["b"]}],
        "memberships": [member("a", "c")],
    }
    problem = only(raw)
    assert "each role a member of the next" in problem.message
    assert all(f"{name} -> " in problem.message for name in "abc")


@pytest.mark.parametrize("key", ["member_of", "members"])
def test_no_role_belongs_to_itself_or_to_the_database_owners_group(key: str) -> None:
    problem = only({"roles": [{"name": "a", key: ["a"]}]})
    assert (problem.path, problem.role) == (f"roles[0].{key}[0]", "a")
    problem = only({"roles": [{"name": "a", key: ["pg_database_owner"]}]})
    assert problem.path == f"roles[0].{key}[0]"
    assert "pg_database_owner" in problem.message
