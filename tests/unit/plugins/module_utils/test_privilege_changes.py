# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs on objects, columns and default privileges, and how rules are bound to what exists."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.defaults import default_changes
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.targets import (
    Lookups,
    Wanted,
    bind,
    qualified,
    too_new,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import Problem
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import (
    World,
    declared,
    default,
    rule,
)


def server(*names: str, version: int = 17) -> World:
    """A server with the roles a, b and o, and these."""
    world = World(version)
    for name in ("a", "b", "o", *names):
        world.role(name)
    return world


def manifest(*grants: Any, **keys: Any) -> Dict[str, Any]:
    return {"roles": declared("a", "b", "o"), "grants": list(grants), **keys}


MANAGED = {"scope": {"schemas": ["s"]}}


# ---- objects ---------------------------------------------------------------------------------------------------------


def test_a_missing_privilege_is_granted_and_a_present_one_is_not() -> None:
    world = server()
    world.table("s", "t", "o", ("a", "SELECT", "o"))
    raw = manifest(rule("a", "SELECT INSERT", "table", "s", "t"))
    assert world.sql(raw) == ['GRANT INSERT ON TABLE "s"."t" TO "a"']


def test_surplus_in_a_managed_schema_is_revoked_from_every_grantor() -> None:
    world = server()
    world.schema("s", "o", ("PUBLIC", "USAGE", "o"))
    world.table("s", "t", "o", ("a", "SELECT", "o"), ("b", "SELECT*", "o"), ("a", "SELECT", "b"))
    assert world.sql(manifest(**MANAGED)) == [
        'SET LOCAL ROLE "b"',
        'REVOKE SELECT ON TABLE "s"."t" FROM "a"',
        "SET LOCAL ROLE NONE",
        'REVOKE SELECT ON TABLE "s"."t" FROM "a", "b"',
    ]


def test_a_privilege_of_public_that_no_rule_names_stays() -> None:
    world = server()
    world.table("s", "t", "o", ("PUBLIC", "SELECT", "o"))
    assert world.sql(manifest(**MANAGED)) == []
    raw = manifest(rule("public", "SELECT", "table", "s", "t", ensure="absent"))
    assert world.sql(raw) == ['REVOKE SELECT ON TABLE "s"."t" FROM PUBLIC']


def test_what_public_holds_counts_for_nobody_else() -> None:
    world = server()
    world.table("s", "t", "o", ("PUBLIC", "SELECT", "o"))
    assert world.sql(manifest(rule("a", "SELECT", "table", "s", "t"))) == ['GRANT SELECT ON TABLE "s"."t" TO "a"']


def test_an_owners_own_privileges_are_granted_but_never_revoked() -> None:
    world = server()
    world.table("s", "t", "o")
    assert world.sql(manifest(rule("o", "SELECT", "table", "s", "t", with_grant_option=True))) == []
    plan = world.plan(manifest(rule("o", "SELECT", "table", "s", "t", ensure="absent")))
    assert plan.changes == ()
    assert plan.warnings == (
        "o owns s.t: an owner's own privileges are never taken away, so ensure: absent does nothing there",
    )


def test_a_surplus_grant_option_goes_without_the_privilege() -> None:
    world = server()
    world.table("s", "t", "o", ("a", "SELECT*", "o"))
    raw = manifest(rule("a", "SELECT", "table", "s", "t"))
    assert world.sql(raw) == ['REVOKE GRANT OPTION FOR SELECT ON TABLE "s"."t" FROM "a"']


def test_a_missing_grant_option_is_an_upgrade() -> None:
    world = server()
    world.table("s", "t", "o", ("a", "SELECT", "o"))
    changes: Sequence[Any] = world.plan(
        manifest(rule("a", "SELECT", "table", "s", "t", with_grant_option=True))
    ).changes
    (change,) = changes
    assert change.upgrade
    assert change.with_grant_option


def test_a_named_rule_beats_a_wildcard_that_says_the_opposite() -> None:
    world = server()
    world.objects("table", "s", ["t", "u"], "o")
    raw = manifest(
        rule("a", "SELECT", "table", "s", "*"),
        rule("a", "SELECT", "table", "s", "u", ensure="absent"),
        rule("a", "INSERT", "table", "s", "t"),
    )
    assert world.sql(raw) == ['GRANT SELECT, INSERT ON TABLE "s"."t" TO "a"']


def test_a_named_rule_says_nothing_against_the_wildcards_other_privileges() -> None:
    both = Wanted({"INSERT"}, {"DELETE"}).over(Wanted({"SELECT", "DELETE"}, {"INSERT", "UPDATE"}, {"DELETE"}))
    assert both == Wanted({"INSERT", "SELECT"}, {"DELETE", "UPDATE"}, set())


def test_a_wildcard_passes_by_what_belongs_to_an_extension() -> None:
    world = server()
    world.objects("table", "s", ["t"], "o", extension=True)
    wildcard = manifest(rule("a", "SELECT", "table", "s", "*"))
    assert world.sql(wildcard) == []
    assert [(type(item.change).__name__, item.reason) for item in world.plan(wildcard).withheld] == [
        ("Grant", "extension")
    ]
    assert world.sql(manifest(rule("a", "SELECT", "table", "s", "t"))) == ['GRANT SELECT ON TABLE "s"."t" TO "a"']


def test_an_extensions_object_that_a_rule_names_is_managed() -> None:
    world = server()
    world.objects("table", "s", ["t"], "o", ("b", "DELETE", "o"), extension=True)
    raw = manifest(rule("a", "SELECT", "table", "s", "t"))
    assert len(world.sql(raw)) == 2
    assert [item.reason for item in world.plan(manifest(**MANAGED)).withheld] == ["extension"]


def test_a_declared_default_privilege_permits_its_entry_without_requiring_it() -> None:
    world = server()
    world.objects("table", "s", ["t"], "o", ("a", "SELECT", "o"))
    world.objects("view", "s", ["v"], "o", ("a", "SELECT*", "o"))
    world.objects("table", "s", ["u"], "b", ("a", "SELECT", "b"))
    world.objects("table", "s", ["w"], "o")
    world.default("o", "s", "table", ("a", "SELECT", "o"))
    raw = manifest(default_privileges=[default("o", "s", "table", "a", "SELECT")])
    assert world.sql(raw) == [
        'REVOKE GRANT OPTION FOR SELECT ON TABLE "s"."v" FROM "a"',
        'REVOKE SELECT ON TABLE "s"."u" FROM "a"',
    ]


def test_a_permitted_entry_keeps_its_grant_option_where_nothing_makes_the_object_managed() -> None:
    world = server()
    world.table("s", "t", "o", ("a", "SELECT*", "o"), ("b", "INSERT", "o"))
    world.default("o", None, "table", ("a", "SELECT", "o"))
    raw = manifest(
        rule("b", "INSERT", "table", "s", "t", ensure="absent"),
        default_privileges=[default("o", None, "table", "a", "SELECT")],
    )
    assert world.sql(raw) == ['REVOKE INSERT ON TABLE "s"."t" FROM "b"']


def test_all_means_what_the_server_has() -> None:
    raw = manifest(rule("a", "ALL", "table", "s", "t"))
    for version, there in ((16, False), (17, True)):
        world = server(version=version)
        world.table("s", "t", "o")
        (statement,) = world.sql(raw)
        assert ("MAINTAIN" in statement) is there


def test_undeclared_grantees_on_a_named_database_are_told_by_where_it_is() -> None:
    world = server("x")
    world.database("app", "postgres", ("x", "CONNECT", "postgres"))
    world.database("other", "postgres", ("x", "CONNECT", "postgres"))
    raw = manifest(rule("a", "CONNECT", "database"), rule("a", "CONNECT", "database", None, "other"))
    plan = world.plan(raw)
    assert world.written(plan) == [
        'GRANT CONNECT ON DATABASE "app", "other" TO "a"',
        'REVOKE CONNECT ON DATABASE "app" FROM "x"',
    ]
    assert [item.reason for item in plan.withheld] == ["shared_object"]


# ---- columns ---------------------------------------------------------------------------------------------------------


def test_columns_without_an_acl_are_granted_and_those_with_one_compared() -> None:
    world = server()
    table = world.table("s", "t", "o")
    world.column("s", table, "c", "o", ("a", "SELECT", "o"), ("b", "UPDATE", "o"))
    lookups = Lookups(columns={"c": frozenset((table.oid,)), "d": frozenset((table.oid,))})
    raw = manifest(rule("a", "SELECT", "table", "s", "t", columns=["c", "d"]))
    assert world.sql(raw, lookups) == [
        'GRANT SELECT ("d") ON TABLE "s"."t" TO "a"',
        'REVOKE UPDATE ("c") ON TABLE "s"."t" FROM "b"',
    ]


def test_an_absent_rule_on_a_table_takes_the_columns_as_well() -> None:
    world = server()
    table = world.table("s", "t", "o")
    world.column("s", table, "c", "o", ("a", "SELECT", "o"))
    raw = manifest(rule("a", "SELECT", "table", "s", "t", ensure="absent"))
    assert world.sql(raw) == ['REVOKE SELECT ("c") ON TABLE "s"."t" FROM "a"']


@pytest.mark.parametrize("name", ["t", "*"])
def test_what_a_rule_gives_on_a_table_it_does_not_give_on_its_columns_again(name: str) -> None:
    world = server()
    table = world.table("s", "t", "o", ("a", "SELECT", "o"))
    world.column("s", table, "c", "o", ("b", "UPDATE", "o"))
    raw = manifest(rule("a", "SELECT", "table", "s", name))
    assert world.sql(raw) == ['REVOKE UPDATE ("c") ON TABLE "s"."t" FROM "b"']


def test_an_owner_needs_no_column_privilege_beside_its_own() -> None:
    world = server()
    table = world.table("s", "t", "o")
    lookups = Lookups(columns={"c": frozenset((table.oid,))})
    assert world.sql(manifest(rule("o", "SELECT", "table", "s", "t", columns=["c"])), lookups) == []


# ---- default privileges ----------------------------------------------------------------------------------------------


def test_default_privileges_of_named_owners_in_managed_schemas_converge() -> None:
    world = server("x")
    world.schema("s", "o")
    world.default("o", "s", "table", ("b", "SELECT", "o"), ("a", "SELECT*", "o"))
    world.default("x", "s", "table", ("b", "SELECT", "x"))
    raw = manifest(default_privileges=[default("o", "s", "table", "a", "SELECT INSERT")])
    plan = world.plan(raw)
    head = 'ALTER DEFAULT PRIVILEGES FOR ROLE "o" IN SCHEMA "s"'
    assert world.written(plan) == [
        f'{head} GRANT INSERT ON TABLES TO "a"',
        f'{head} REVOKE GRANT OPTION FOR SELECT ON TABLES FROM "a"',
        f'{head} REVOKE SELECT ON TABLES FROM "b"',
    ]
    assert [item.reason for item in plan.withheld] == ["unmanaged_default"]


def test_a_global_layer_starts_from_the_built_in_default_and_a_schemas_from_nothing() -> None:
    world = server()
    raw = manifest(default_privileges=[default("o", None, "function", "public", "EXECUTE", ensure="absent")])
    assert world.sql(raw) == ['ALTER DEFAULT PRIVILEGES FOR ROLE "o" REVOKE EXECUTE ON ROUTINES FROM PUBLIC']
    world.schema("s", "o")
    raw = manifest(default_privileges=[default("o", "s", "function", "public", "EXECUTE")])
    assert world.sql(raw) == ['ALTER DEFAULT PRIVILEGES FOR ROLE "o" IN SCHEMA "s" GRANT EXECUTE ON ROUTINES TO PUBLIC']


def test_a_global_layer_is_claimed_by_owner_and_kind_only() -> None:
    world = server()
    for kind, privilege in (("table", "SELECT"), ("sequence", "USAGE")):
        world.default("o", None, kind, ("b", privilege, "o"))
    raw = manifest(default_privileges=[default("o", None, "table", "a", "SELECT")])
    changes: Sequence[Any] = world.plan(raw).changes
    assert [(c.kind, c.grantee.name) for c in changes] == [("table", "a"), ("table", "b")]


def test_a_default_privilege_in_a_missing_schema_is_a_problem() -> None:
    world = server()
    policy = manifest_to_policy(manifest(default_privileges=[default("o", "nowhere", "table", "a", "SELECT")]))
    _changes, (problem,) = default_changes(policy, world.state, world.scope(policy))
    assert (problem.code, problem.object) == ("object_missing", "nowhere")


def test_default_privileges_on_large_objects_need_18() -> None:
    assert too_new(frozenset(("SELECT",)), "large_object", 17, "x") is None
    late = too_new(frozenset(("SELECT",)), "large_object", 17, "x", default=True)
    assert late is not None
    assert late.message == "default privileges on large objects need PostgreSQL 18; this server is 17"


# ---- rules and what exists -------------------------------------------------------------------------------------------


def only_problem(world: World, *grants: Any, lookups: Optional[Lookups] = None) -> Problem:
    _rules, problems = bind(manifest_to_policy(manifest(*grants)), world.state, lookups or Lookups())
    assert len(problems) == 1, [problem.text for problem in problems]
    return problems[0]


@pytest.mark.parametrize(
    ("grant", "message", "hint"),
    [
        (rule("a", "SELECT", "table", "s", "orders"), "table s.orders does not exist", 'Did you mean "order"?'),
        (rule("a", "SELECT", "table", "s", "v"), "s.v is a view, not a table", "Write type: view."),
        (rule("a", "SELECT", "view", "s", "order"), "s.order is a table, not a view", "Write type: table."),
        (rule("a", "SELECT", "table", "x", "*"), 'schema "x" does not exist', None),
        (rule("a", "USAGE", "schema", None, "sales"), 'schema "sales" does not exist', 'Did you mean "sale"?'),
        (rule("a", "CONNECT", "database", None, "nope"), 'database "nope" does not exist', None),
        (rule("a", "USAGE", "language", None, "plx"), 'language "plx" does not exist', None),
        (rule("a", "EXECUTE", "function", "s", "f(text)"), "routine s.f(text) does not exist", "There is: f(integer)."),
        (rule("a", "EXECUTE", "function", "s", "ff"), "routine s.ff does not exist", "Did you mean f(integer)?"),
        (
            rule("a", "EXECUTE", "function", "s", "g"),
            "routine name s.g is not unique",
            "Write one of: g(integer), g(text).",
        ),
    ],
)
def test_a_rule_on_what_is_not_there_says_what_is(grant: Any, message: str, hint: Optional[str]) -> None:
    world = server()
    world.schema("sale")
    world.table("s", "order", "o")
    world.objects("view", "s", ["v"], "o")
    world.objects("function", "s", ["f"], "o", arguments="integer")
    world.objects("function", "s", ["g"], "o", arguments="integer")
    world.objects("function", "s", ["g"], "o", arguments="text")
    problem = only_problem(world, grant)
    assert (problem.code, problem.message) == ("object_missing", message)
    if hint:
        assert problem.hint == hint


def test_a_routine_is_found_by_what_its_types_mean() -> None:
    world = server()
    (first,) = world.objects("function", "s", ["f"], "o", arguments="integer")
    (second,) = world.objects("function", "s", ["f"], "o", arguments='s."my type"')
    lookups = Lookups(
        arguments={first.oid: (23,), second.oid: (999,)},
        types={"int": 23, '"my type"': None, '"s"."my type"': 999},
    )
    for text, oid in (("f(int)", first.oid), ("f(x int)", first.oid), ('f("my type")', second.oid)):
        rules, problems = bind(
            manifest_to_policy(manifest(rule("a", "EXECUTE", "function", "s", text))), world.state, lookups
        )
        assert not problems
        assert [key for _kind, _schema, key, _column in rules.named] == [oid]


def test_two_spellings_of_one_routine_cannot_contradict_each_other() -> None:
    world = server()
    (item,) = world.objects("function", "s", ["f"], "o", arguments="integer")
    lookups = Lookups(arguments={item.oid: (23,)}, types={"int": 23})
    problem = only_problem(
        world,
        rule("a", "EXECUTE", "function", "s", "f"),
        rule("a", "EXECUTE", "function", "s", "f(int)", ensure="absent"),
        lookups=lookups,
    )
    assert problem.message == "this contradicts grants[0]: the same function, once present and once absent"


def test_a_column_that_is_not_there_is_a_problem_at_its_own_place() -> None:
    world = server()
    world.table("s", "t", "o")
    for name, message in (("t", "s.t has no column c"), ("*", "no table in schema s has a column c")):
        problem = only_problem(world, rule("a", "SELECT", "table", "s", name, columns=["c"]))
        assert (problem.message, problem.path) == (message, "grants[0].columns")


def test_a_wildcard_in_an_empty_schema_may_speak_of_any_column() -> None:
    world = server()
    world.schema("s")
    _rules, problems = bind(
        manifest_to_policy(manifest(rule("a", "SELECT", "table", "s", "*", columns=["c"]))), world.state, Lookups()
    )
    assert problems == []


def test_an_untrusted_language_takes_no_grants() -> None:
    world = server()
    world.objects("language", None, ["c"], "postgres")
    problem = only_problem(world, rule("a", "USAGE", "language", None, "c"), lookups=Lookups(untrusted={"c"}))
    assert "is not trusted" in problem.message


@pytest.mark.parametrize(
    ("grant", "version", "codes"),
    [
        (rule("a", "MAINTAIN", "table", "s", "t"), 16, ["unsupported_version"]),
        (rule("a", "MAINTAIN", "table", "s", "t"), 17, []),
        (rule("a", "SET", "parameter", None, "work_mem"), 14, ["unsupported_version"]),
        (rule("a", "ALL", "table", "s", "t"), 14, []),
    ],
)
def test_what_the_server_is_too_old_for_is_a_problem(grant: Any, version: int, codes: List[str]) -> None:
    world = server(version=version)
    world.table("s", "t", "o")
    world.objects("parameter", None, ["work_mem"], "postgres")
    _rules, problems = bind(manifest_to_policy(manifest(grant)), world.state, Lookups())
    assert [problem.code for problem in problems] == codes


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("mood", '"my ""s""".mood'),
        ("mood[]", '"my ""s""".mood[]'),
        ('"my mood"[]', '"my ""s"""."my mood"[]'),
        ("other.mood", None),
        ("double precision", None),
        ('"a"."b"', None),
    ],
)
def test_only_an_unqualified_name_is_looked_up_in_the_routines_schema(text: str, there: Optional[str]) -> None:
    assert qualified(text, 'my "s"') == there
