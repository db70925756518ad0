# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes as SQL: the order, batches, ALL ... IN SCHEMA, quoting, and the roles in whose name statements run."""

from __future__ import annotations

from typing import Any, List, Optional

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    Change,
    CommentRole,
    CreateRole,
    CreateSchema,
    CreateStore,
    Grant,
    GrantDefault,
    LendUsage,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetPassword,
    Target,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.instants import instant
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import PUBLIC_REF, Object, RoleRef
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements.order import (
    composed_statements,
    statement_of,
    statements,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements.privileges import inventory_of
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements.statement import BATCH
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World

pytest.importorskip("psycopg")

A, B, O = RoleRef(1, "a"), RoleRef(2, "b"), RoleRef(3, "o")  # noqa: E741
SELECT = frozenset(("SELECT",))


def table(*names: str, schema: str = "s", first: int = 100, columns: Any = ()) -> Target:
    objects = tuple(Object(first + number, name) for number, name in enumerate(names))
    return Target("table", schema, objects, O, tuple(columns))


def written(*changes: Change, version: int = 17, **options: Any) -> List[str]:
    inventory = options.pop("inventory", {})
    return statements(changes, inventory, version, **options)


def grant(target: Target, grantee: RoleRef = A, *privileges: str, **flags: Any) -> Grant:
    return Grant(target, grantee, frozenset(privileges or ("SELECT",)), **flags)


def revoke(target: Target, grantee: RoleRef = A, *privileges: str, grantor: RoleRef = O, **flags: Any) -> Revoke:
    return Revoke(target, grantee, frozenset(privileges or ("SELECT",)), grantor, **flags)


# ---- the order -------------------------------------------------------------------------------------------------------


def test_statements_come_in_the_documented_order_whatever_the_order_of_the_changes() -> None:
    new = RoleRef(-1, "n")
    schema = Target("schema", None, (Object(50, "s"),), O)
    ordered: List[Change] = [
        CreateRole(new, {"login": True}, ""),
        AlterRole(A, {"login": True}, {"login": False}, frozenset(), ""),
        CommentRole(A, "x", None, ""),
        CreateStore(True),
        SetPassword(A, ""),
        RemoveMember(A, B, RoleRef(10, "postgres"), early=True),
        AddMember(B, A, {}, ""),
        CreateSchema("t", O, ""),
        AlterSchemaOwner(50, "s", A, O, ""),
        grant(schema, A, "USAGE"),
        grant(table("t")),
        GrantDefault(O, "s", "table", A, SELECT),
        RevokeDefault(O, "s", "table", B, SELECT),
        revoke(table("t", columns=["c"]), B),
        revoke(table("t"), B, grantor=A, run_as=A, depth=1),
        revoke(table("t"), B),
        grant(table("t", columns=["c"]), B, late=True),
        revoke(schema, B, "USAGE"),
        RemoveMember(O, B, RoleRef(1, "a"), depth=1),
        RemoveMember(O, A, RoleRef(10, "postgres")),
    ]
    expected = [
        'CREATE ROLE "n" LOGIN',
        'ALTER ROLE "a" LOGIN',
        "COMMENT ON ROLE \"a\" IS 'x'",
        'CREATE SCHEMA "role_reconcile"',
        'CREATE TABLE "role_reconcile"."password_fingerprint" '
        "(role oid PRIMARY KEY, system_identifier text NOT NULL, fingerprint bytea NOT NULL)",
        "ALTER ROLE \"a\" PASSWORD '********'",
        'REVOKE "a" FROM "b" GRANTED BY "postgres"',
        'GRANT "b" TO "a"',
        'CREATE SCHEMA "t" AUTHORIZATION "o"',
        'ALTER SCHEMA "s" OWNER TO "a"',
        'GRANT USAGE ON SCHEMA "s" TO "a"',
        'GRANT SELECT ON TABLE "s"."t" TO "a"',
        'ALTER DEFAULT PRIVILEGES FOR ROLE "o" IN SCHEMA "s" GRANT SELECT ON TABLES TO "a"',
        'ALTER DEFAULT PRIVILEGES FOR ROLE "o" IN SCHEMA "s" REVOKE SELECT ON TABLES FROM "b"',
        'REVOKE SELECT ("c") ON TABLE "s"."t" FROM "b"',
        'SET LOCAL ROLE "a"',
        'REVOKE SELECT ON TABLE "s"."t" FROM "b"',
        "SET LOCAL ROLE NONE",
        'REVOKE SELECT ON TABLE "s"."t" FROM "b"',
        'GRANT SELECT ("c") ON TABLE "s"."t" TO "b"',
        'REVOKE USAGE ON SCHEMA "s" FROM "b"',
        'REVOKE "o" FROM "b" GRANTED BY "a"',
        'REVOKE "o" FROM "a" GRANTED BY "postgres"',
    ]
    assert written(*ordered) == expected
    assert written(*reversed(ordered)) == expected


def test_a_revoke_that_another_statement_covers_is_not_written() -> None:
    assert written(revoke(table("t"), covered=True)) == []


# ---- batches ---------------------------------------------------------------------------------------------------------


def test_a_password_is_shown_masked_and_one_that_goes_as_null() -> None:
    assert written(SetPassword(RoleRef(1, 'a"b'), ""), SetPassword(B, "", clear=True)) == [
        'ALTER ROLE "a""b" PASSWORD \'********\'',
        'ALTER ROLE "b" PASSWORD NULL',
    ]


def test_alike_objects_and_grantees_share_a_statement_in_the_order_of_oids_and_names() -> None:
    found = written(
        grant(table("z", first=1), B),
        grant(table("z", first=1), A),
        grant(table("y", schema="r", first=0), A),
        grant(table("y", schema="r", first=0), B),
    )
    assert found == ['GRANT SELECT ON TABLE "r"."y", "s"."z" TO "a", "b"']


def test_a_statement_names_no_more_than_500_objects() -> None:
    names = [f"t{number}" for number in range(2 * BATCH + 1)]
    found = written(grant(table(*names)))
    assert BATCH == 500
    assert [statement.count('"s".') for statement in found] == [500, 500, 1]
    assert '"s"."t500"' in found[1]


def test_a_brief_plan_names_three_objects_and_counts_the_rest() -> None:
    (long,) = composed_statements([grant(table("a", "b", "c", "d", "e"))], {}, 17)
    assert long.brief == 'GRANT SELECT ON TABLE "s"."a", "s"."b", "s"."c" /* and 2 more */ TO "a"'
    assert long.after("/* x */").brief == f"/* x */ {long.brief}"
    (short,) = composed_statements([grant(table("a", "b", "c"))], {}, 17)
    assert short.brief == short.text
    assert short.after("/* x */").brief == f"/* x */ {short.text}"


def test_privileges_stand_in_the_order_of_the_manual() -> None:
    assert written(grant(table("t"), A, "DELETE", "SELECT", "INSERT")) == [
        'GRANT SELECT, INSERT, DELETE ON TABLE "s"."t" TO "a"'
    ]


def test_views_and_tables_are_named_together_because_grant_calls_both_table() -> None:
    view = Target("view", "s", (Object(200, "v"),), O)
    assert written(grant(table("t")), grant(view)) == ['GRANT SELECT ON TABLE "s"."t", "s"."v" TO "a"']


@pytest.mark.parametrize(
    ("version", "reached", "names", "whole"),
    [
        (18, 2, ("t", "u"), True),
        (19, 2, ("t", "u"), True),
        (17, 2, ("t", "u"), False),
        (18, 3, ("t", "u"), False),
        (18, 1, ("t",), False),
    ],
)
def test_a_whole_schema_is_named_from_18_on_and_only_where_it_is_exact(
    version: int, reached: int, names: Any, whole: bool
) -> None:
    for change in (grant(table(*names)), revoke(table(*names))):
        (statement,) = written(change, version=version, inventory={("TABLES", "s"): reached})
        assert ('ALL TABLES IN SCHEMA "s"' in statement) is whole


def test_all_in_schema_counts_views_and_several_buckets_together() -> None:
    view = Target("view", "s", (Object(200, "v"),), O)
    changes = (grant(table("t")), grant(view), grant(table("t")._replace(owner=B, objects=(Object(201, "x"),))))
    assert written(*changes, version=18, inventory={("TABLES", "s"): 3}) == [
        'GRANT SELECT ON ALL TABLES IN SCHEMA "s" TO "a"'
    ]


def test_a_few_objects_that_are_given_more_are_named_for_that_only() -> None:
    """Else one table with more privileges would cost a lock for each of the others."""
    inventory = {("TABLES", "s"): 4, ("TABLES", "z"): 4}
    more = grant(table("x", first=200), A, "SELECT", "DELETE", "INSERT")
    changes = [
        grant(table("t", "u", "v")),
        more,
        *(grant(table("t", "u", "v", "w", schema="z", first=300), to) for to in (A, B)),
    ]
    for order in (changes, changes[::-1]):
        assert written(*order, version=18, inventory=inventory) == [
            'GRANT SELECT ON ALL TABLES IN SCHEMA "s", "z" TO "a"',
            'GRANT SELECT ON ALL TABLES IN SCHEMA "z" TO "b"',
            'GRANT INSERT, DELETE ON TABLE "s"."x" TO "a"',
        ]
    assert len(written(*changes, version=17, inventory=inventory)) == 3
    taken = [revoke(table("t", "u", "v")), revoke(table("x", first=200), A, "SELECT", "INSERT")]
    assert written(*taken, version=18, inventory=inventory) == [
        'REVOKE SELECT ON ALL TABLES IN SCHEMA "s" FROM "a"',
        'REVOKE INSERT ON TABLE "s"."x" FROM "a"',
    ]


def test_where_many_objects_are_given_more_each_is_named_once() -> None:
    inventory = {("TABLES", "s"): 7}
    changes = [grant(table("t", "u", "v", "w", "x")), grant(table("y", "z", first=200), A, "SELECT", "INSERT")]
    first, second = written(*changes, version=18, inventory=inventory)
    assert "ALL" not in first + second and first.count('"s".') == 5 and second.count('"s".') == 2
    # What is asked for by itself stays as it is.
    apart = [grant(table("t", "u", "v", "w", "x", "y", "z")), grant(table("t", "u", "v", "w", "x"), A, "INSERT")]
    assert written(*apart, version=18, inventory=inventory)[0] == 'GRANT SELECT ON ALL TABLES IN SCHEMA "s" TO "a"'


def test_an_object_that_two_changes_name_counts_once_for_all_in_schema() -> None:
    twice = [grant(table("t", "u")), grant(table("t"))]
    assert "ALL" not in " ".join(written(*twice, version=18, inventory={("TABLES", "s"): 3}))


def test_grant_options_and_names_to_act_in_are_no_part_of_a_whole_schema() -> None:
    inventory = {("TABLES", "s"): 4}
    others = (grant(table("x", first=200), with_grant_option=True), grant(table("x", first=200), run_as=B))
    for other in others:
        sql = written(grant(table("t", "u", "v")), other, version=18, inventory=inventory)
        assert "ALL" not in " ".join(sql)


def test_all_in_schema_is_never_said_for_columns() -> None:
    (statement,) = written(grant(table("t", "u", columns=["c"])), version=18, inventory={("TABLES", "s"): 2})
    assert "ALL" not in statement


def test_the_inventory_counts_relations_once_and_no_columns() -> None:
    world = World()
    first = world.table("s", "t", "o")
    world.objects("view", "s", ["v", "w"], "o", extension=True)
    world.objects("sequence", "s", ["q"], "o")
    world.objects("type", "s", ["y"], "o")
    world.column("s", first, "c", "o", ("a", "SELECT", "o"))
    assert inventory_of(world.state) == {("TABLES", "s"): 3, ("SEQUENCES", "s"): 1}


# ---- names -----------------------------------------------------------------------------------------------------------


def test_odd_names_are_quoted_everywhere() -> None:
    odd = 'x"; DROP ROLE "y'
    quoted = '"x""; DROP ROLE ""y"'
    ref = RoleRef(5, odd)
    target = Target("table", odd, (Object(1, odd),), ref, (odd,))
    assert written(
        CreateRole(ref, {}, ""),
        CommentRole(ref, "it's fine", None, ""),
        AddMember(ref, ref, {}, ""),
        CreateSchema(odd, ref, ""),
        grant(target, ref),
    ) == [
        f"CREATE ROLE {quoted}",
        f"COMMENT ON ROLE {quoted} IS 'it''s fine'",
        f"GRANT {quoted} TO {quoted}",
        f"CREATE SCHEMA {quoted} AUTHORIZATION {quoted}",
        f"GRANT SELECT ({quoted}) ON TABLE {quoted}.{quoted} TO {quoted}",
    ]


def test_public_is_the_word_and_a_role_of_that_name_is_quoted() -> None:
    assert written(grant(table("t"), PUBLIC_REF), grant(table("t"), RoleRef(7, "PUBLIC"))) == [
        'GRANT SELECT ON TABLE "s"."t" TO PUBLIC, "PUBLIC"'
    ]


@pytest.mark.parametrize(
    ("kind", "schema", "item", "privilege", "expected"),
    [
        ("function", "s", Object(1, "f", 'integer, "S"."t"'), "EXECUTE", 'ROUTINE "s"."f"(integer, "S"."t")'),
        ("function", "s", Object(1, "f", ""), "EXECUTE", 'ROUTINE "s"."f"()'),
        ("parameter", None, Object(1, "my.setting"), "SET", 'PARAMETER "my"."setting"'),
        ("parameter", None, Object(1, "work_mem"), "ALTER SYSTEM", 'PARAMETER "work_mem"'),
        ("large_object", None, Object(4711, "4711"), "SELECT", "LARGE OBJECT 4711"),
        ("foreign_server", None, Object(1, "S"), "USAGE", 'FOREIGN SERVER "S"'),
        ("materialized_view", "s", Object(1, "m"), "SELECT", 'TABLE "s"."m"'),
    ],
)
def test_each_kind_is_named_as_grant_takes_it(
    kind: str, schema: Optional[str], item: Object, privilege: str, expected: str
) -> None:
    assert written(grant(Target(kind, schema, (item,), O), A, privilege)) == [f'GRANT {privilege} ON {expected} TO "a"']


def test_every_privilege_of_a_column_grant_names_the_columns() -> None:
    assert written(grant(table("t", columns=["c", "D"]), A, "SELECT", "UPDATE")) == [
        'GRANT SELECT ("c", "D"), UPDATE ("c", "D") ON TABLE "s"."t" TO "a"'
    ]


def test_options_are_part_of_the_statement() -> None:
    assert written(grant(table("t"), with_grant_option=True)) == [
        'GRANT SELECT ON TABLE "s"."t" TO "a" WITH GRANT OPTION'
    ]
    assert written(revoke(table("t"), option_only=True, cascade=True)) == [
        'REVOKE GRANT OPTION FOR SELECT ON TABLE "s"."t" FROM "a" CASCADE'
    ]


# ---- roles and memberships -------------------------------------------------------------------------------------------


def test_two_changes_of_one_roles_attributes_are_one_statement() -> None:
    first = AlterRole(A, {"login": True}, {}, frozenset(), "")
    second = AlterRole(A, {"superuser": False, "connection_limit": -1}, {}, frozenset(("superuser",)), "")
    assert written(first, second) == ['ALTER ROLE "a" NOSUPERUSER LOGIN CONNECTION LIMIT -1']


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("infinity", "infinity"),
        (0, "1970-01-01 00:00:00+00"),
        (1_700_000_000_000_001, "2023-11-14 22:13:20.000001+00"),
        (-1_000_000, "1969-12-31 23:59:59+00"),
        (10**18, "after the year 9999"),
        (-(10**18), "before the year 1"),
    ],
)
def test_a_point_in_time_reads_the_same_everywhere(value: Any, expected: str) -> None:
    assert instant(value) == expected


def test_members_with_the_same_options_share_a_statement() -> None:
    options = {"set": True, "admin": False, "inherit": True}
    assert written(AddMember(O, A, options, ""), AddMember(O, B, options, "")) == [
        'GRANT "o" TO "a", "b" WITH ADMIN FALSE, INHERIT TRUE, SET TRUE'
    ]


def test_admin_alone_is_spelled_as_14_and_15_know_it() -> None:
    assert written(AddMember(O, A, {"admin": True}, "")) == ['GRANT "o" TO "a" WITH ADMIN OPTION']
    assert written(AddMember(O, A, {"inherit": True}, "", grantor=A)) == [
        'GRANT "o" TO "a" WITH INHERIT TRUE GRANTED BY "a"'
    ]


def test_an_option_of_a_membership_is_lowered_by_itself() -> None:
    assert written(RemoveMember(O, A, B, option="admin")) == ['REVOKE ADMIN OPTION FOR "o" FROM "a" GRANTED BY "b"']
    assert written(RemoveMember(O, A, None)) == ['REVOKE "o" FROM "a"']


def test_an_empty_comment_removes_it() -> None:
    assert written(CommentRole(A, "", "x", "")) == ['COMMENT ON ROLE "a" IS NULL']


# ---- default privileges ----------------------------------------------------------------------------------------------


def test_alike_default_privileges_share_schemas_and_grantees_but_not_the_global_layer() -> None:
    changes = [
        GrantDefault(O, schema, "function", role, frozenset(("EXECUTE",)))
        for schema in ("s", "t", None)
        for role in (B, A)
    ]
    head = 'ALTER DEFAULT PRIVILEGES FOR ROLE "o"'
    assert written(*changes) == [
        f'{head} IN SCHEMA "s", "t" GRANT EXECUTE ON ROUTINES TO "a", "b"',
        f'{head} GRANT EXECUTE ON ROUTINES TO "a", "b"',
    ]


def test_a_default_grant_option_is_given_and_taken_by_itself() -> None:
    head = 'ALTER DEFAULT PRIVILEGES FOR ROLE "o" IN SCHEMA "s"'
    assert written(
        GrantDefault(O, "s", "table", A, SELECT, with_grant_option=True),
        RevokeDefault(O, "s", "table", B, SELECT, option_only=True),
    ) == [
        f'{head} GRANT SELECT ON TABLES TO "a" WITH GRANT OPTION',
        f'{head} REVOKE GRANT OPTION FOR SELECT ON TABLES FROM "b"',
    ]


# ---- in whose name ---------------------------------------------------------------------------------------------------


def test_a_role_is_set_once_for_its_statements_and_lent_the_schemas_it_cannot_use() -> None:
    found = written(
        LendUsage(O, "s"),
        LendUsage(O, "r"),
        LendUsage(B, "t"),
        grant(table("t"), A, run_as=O),
        grant(table("u", schema="r"), B, "INSERT", run_as=O),
        grant(table("x", schema="t"), A),
        session_role="Deploy",
    )
    assert found == [
        'GRANT SELECT ON TABLE "t"."x" TO "a"',
        'GRANT USAGE ON SCHEMA "r", "s" TO "o"',
        'SET LOCAL ROLE "o"',
        'GRANT INSERT ON TABLE "r"."u" TO "b"',
        'GRANT SELECT ON TABLE "s"."t" TO "a"',
        'SET LOCAL ROLE "Deploy"',
        'REVOKE USAGE ON SCHEMA "r", "s" FROM "o"',
    ]


def test_without_a_session_role_the_way_back_is_none_and_never_reset() -> None:
    assert written(grant(table("t"), run_as=O))[-1] == "SET LOCAL ROLE NONE"


def test_nothing_is_lent_to_a_section_that_names_other_schemas() -> None:
    found = written(LendUsage(O, "other"), revoke(table("t"), grantor=O, run_as=O))
    assert found == ['SET LOCAL ROLE "o"', 'REVOKE SELECT ON TABLE "s"."t" FROM "a"', "SET LOCAL ROLE NONE"]


# ---- one change by itself --------------------------------------------------------------------------------------------


def test_another_grantors_revoke_is_shown_in_its_name() -> None:
    assert statement_of(revoke(table("t"), grantor=B)) == (
        'SET LOCAL ROLE "b"; REVOKE SELECT ON TABLE "s"."t" FROM "a"; SET LOCAL ROLE NONE'
    )
    assert statement_of(revoke(table("t"))) == 'REVOKE SELECT ON TABLE "s"."t" FROM "a"'


def test_what_no_statement_can_say_is_empty() -> None:
    assert statement_of(RevokeDefault(O, "s", "letter Z", A, SELECT)) == ""
    assert statement_of(revoke(table("t"), RoleRef(9, "\udce9"))) == ""
