# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way back as statements, and what it says of what it cannot bring back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import (
    CreateStore,
    Plan,
    RemoveMember,
    SetPassword,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.undo.way import Undo, undo_of
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import (
    World,
    declared,
    default,
    rule,
)

pytest.importorskip("psycopg")


def way_back(world: World, manifest: Dict[str, Any], *more: Any, **options: Any) -> Undo:
    outcome = world.outcome(manifest, **options)
    assert not outcome.problems, [problem.text for problem in outcome.problems]
    plan = replace(outcome.plan, changes=(*outcome.plan.changes, *more))
    return undo_of(plan, world.state, outcome.after, outcome.powers)


def written(undo: Undo) -> List[str]:
    return [statement.text for _title, found in undo.blocks for statement in found]


def back(world: World, manifest: Dict[str, Any], **options: Any) -> List[str]:
    undo = way_back(world, manifest, **options)
    assert not undo.left
    return written(undo)


def managed(*grants: Any, **more: Any) -> Dict[str, Any]:
    return {"schemas": [{"name": "s"}], "grants": list(grants), **more}


def test_what_is_made_goes_dependents_first() -> None:
    world = World()
    world.table("s", "t", "o")
    manifest = managed(
        rule("new", "SELECT", "table", "s", "t"),
        roles=declared("new", "o", comment="x"),
        memberships=[{"role": "new", "members": [{"name": "o"}]}],
        default_privileges=[default("o", "s", "table", "new", "SELECT")],
    )
    manifest["schemas"].append({"name": "fresh", "owner": "new"})
    assert back(world, manifest) == [
        'REVOKE SELECT ON TABLE "s"."t" FROM "new"',
        'ALTER DEFAULT PRIVILEGES FOR ROLE "o" IN SCHEMA "s" REVOKE SELECT ON TABLES FROM "new"',
        'DROP SCHEMA "fresh"',
        'REVOKE "new" FROM "o" GRANTED BY "postgres"',
        'COMMENT ON ROLE "o" IS NULL',
        'DROP ROLE "new"',
    ]


def test_attributes_settings_and_comments_come_back() -> None:
    world = World()
    world.role("a", login=True, connection_limit=5, valid_until=0, comment="old", config={"search_path": 'x, "Y z"'})
    world.setting("work_mem")
    world.setting("search_path")
    manifest = {
        "roles": [{"name": "a", "comment": "new", "connection_limit": 7, "login": False, "config": {"work_mem": "1MB"}}]
    }
    assert back(world, manifest) == [
        "ALTER ROLE \"a\" LOGIN CONNECTION LIMIT 5 VALID UNTIL '1970-01-01 00:00:00+00'",
        'ALTER ROLE "a" RESET "work_mem"',
        "ALTER ROLE \"a\" SET \"search_path\" = 'x', 'Y z'",
        "COMMENT ON ROLE \"a\" IS 'old'",
    ]


def test_an_expiry_that_cannot_be_spelt_is_left() -> None:
    world = World()
    world.role("a", valid_until=10**18)
    undo = way_back(world, {"roles": declared("a")})
    assert written(undo) == []
    assert undo.left == ("the expiry of role a was a date that only the server can spell",)


def test_what_another_grantor_gave_comes_back_in_its_name_grantors_first() -> None:
    world = World()
    world.schema("s", "o", ("PUBLIC", "USAGE", "o"))
    world.table("s", "t", "o", ("g", "SELECT*", "o"), ("h", "SELECT*", "g"), ("x", "SELECT", "h"))
    assert back(world, managed()) == [
        'GRANT SELECT ON TABLE "s"."t" TO "g" WITH GRANT OPTION',
        'SET LOCAL ROLE "g"',
        'GRANT SELECT ON TABLE "s"."t" TO "h" WITH GRANT OPTION',
        "SET LOCAL ROLE NONE",
        'SET LOCAL ROLE "h"',
        'GRANT SELECT ON TABLE "s"."t" TO "x"',
        "SET LOCAL ROLE NONE",
    ]


def test_a_grantor_that_cannot_use_the_schema_is_lent_it() -> None:
    world = World()
    world.table("s", "t", "o", ("g", "SELECT*", "o"), ("x", "SELECT", "g"))
    manifest = managed(rule("g", "SELECT", "table", "s", "t", with_grant_option=True), roles=declared("g"))
    assert back(world, manifest) == [
        'GRANT USAGE ON SCHEMA "s" TO "g"',
        'SET LOCAL ROLE "g"',
        'GRANT SELECT ON TABLE "s"."t" TO "x"',
        "SET LOCAL ROLE NONE",
        'REVOKE USAGE ON SCHEMA "s" FROM "g"',
    ]


def test_what_came_from_a_grantor_out_of_reach_comes_back_from_the_owner_and_says_so() -> None:
    world = World(executor="o")
    world.role("o")
    world.table("s", "t", "o", ("g", "SELECT*", "o"), ("x", "SELECT", "g"))
    undo = way_back(world, managed())
    assert written(undo) == [
        'GRANT SELECT ON TABLE "s"."t" TO "g" WITH GRANT OPTION',
        'GRANT SELECT ON TABLE "s"."t" TO "x"',
    ]
    assert undo.left == ("SELECT on table s.t was granted to x by g; it comes back as granted by o",)


def test_only_a_grant_option_goes_or_comes() -> None:
    world = World()
    world.table("s", "t", "o", ("a", "SELECT", "o"), ("b", "SELECT*", "o"))
    manifest = managed(
        rule("a", "SELECT", "table", "s", "t", with_grant_option=True),
        rule("b", "SELECT", "table", "s", "t"),
        roles=declared("a", "b"),
    )
    assert back(world, manifest) == [
        'GRANT SELECT ON TABLE "s"."t" TO "b" WITH GRANT OPTION',
        'REVOKE GRANT OPTION FOR SELECT ON TABLE "s"."t" FROM "a"',
    ]


def test_columns_that_a_relations_revoke_takes_along_come_after_it() -> None:
    world = World()
    item = world.table("s", "t", "o")
    world.column("s", item, "c", "o", ("a", "SELECT", "o"))
    manifest = managed(rule("a", "SELECT", "table", "s", "t"), roles=declared("a"))
    assert back(world, manifest) == [
        'REVOKE SELECT ON TABLE "s"."t" FROM "a"',
        'GRANT SELECT ("c") ON TABLE "s"."t" TO "a"',
    ]


def test_a_schemas_owners_are_taken_apart_again() -> None:
    world = World()
    world.schema("s", "old", ("new", "USAGE", "old"), ("a", "USAGE", "old"))
    manifest = {"roles": declared("new", "a"), "schemas": [{"name": "s", "owner": "new"}]}
    assert back(world, manifest) == [
        'ALTER SCHEMA "s" OWNER TO "old"',
        'GRANT USAGE ON SCHEMA "s" TO "a", "new"',
    ]


def test_the_global_layer_is_what_it_was_built_in_parts_too() -> None:
    world = World()
    manifest = {
        "roles": declared("o", "a"),
        "default_privileges": [
            default("o", None, "function", "PUBLIC", "EXECUTE", ensure="absent"),
            default("o", None, "function", "a", "EXECUTE"),
        ],
    }
    world.ref("o")
    world.ref("a")
    assert back(world, manifest) == [
        'ALTER DEFAULT PRIVILEGES FOR ROLE "o" GRANT EXECUTE ON ROUTINES TO PUBLIC',
        'ALTER DEFAULT PRIVILEGES FOR ROLE "o" REVOKE EXECUTE ON ROUTINES FROM "a"',
    ]


@pytest.mark.parametrize(
    "version, statements",
    [
        (15, ['GRANT "g" TO "m" WITH ADMIN OPTION GRANTED BY "x"']),
        (17, ['GRANT "g" TO "m" WITH ADMIN TRUE, INHERIT FALSE, SET TRUE GRANTED BY "x"']),
    ],
)
def test_a_membership_comes_back_from_its_grantor(version: int, statements: List[str]) -> None:
    world = World(version)
    world.member("x", "g", admin=True)
    world.member("m", "g", by="x", admin=True, inherit=False)
    manifest = {
        "roles": declared("g", "m", "x"),
        "memberships": [{"role": "g", "members": [{"name": "x", "admin": True}]}],
    }
    assert back(world, manifest) == statements


def test_a_membership_whose_grantor_is_out_of_reach_comes_back_from_the_executor() -> None:
    world = World(17, executor="cr")
    world.role("cr", createrole=True)
    world.member("cr", "g", admin=True)
    world.member("m", "g", by="cr")
    world.member("m", "g", by="x", admin=True, inherit=False)
    world.member("x", "g", admin=True)
    outcome = world.outcome({})
    g, m = world.ref("g"), world.ref("m")
    # As DROP OWNED would do it, say: no plan of a login takes what it may not give.
    plan = Plan(changes=(RemoveMember(g, m, world.ref("x")),))
    undo = undo_of(plan, world.state, outcome.after, outcome.powers)
    assert written(undo) == ['GRANT "g" TO "m" WITH ADMIN OPTION']
    assert undo.left == ("the membership of m in g was granted by x; it comes back as granted by cr",)


def test_a_row_that_got_another_grantor_before_16_is_made_anew() -> None:
    world = World(15)
    world.member("m", "g", by="x")
    manifest = {
        "roles": declared("g", "m"),
        "memberships": [{"role": "g", "members": [{"name": "m", "admin": True}]}],
    }
    assert back(world, manifest) == ['REVOKE "g" FROM "m"', 'GRANT "g" TO "m" GRANTED BY "x"']
    undo = way_back(_as_createrole(world), manifest)
    assert written(undo) == ['REVOKE ADMIN OPTION FOR "g" FROM "m"']


def _as_createrole(world: World) -> World:
    world.role("cr", createrole=True)
    world._executor = world._login = "cr"
    return world


def test_a_reversed_direction_is_reversed_again() -> None:
    world = World()
    world.member("a", "b")
    manifest = {
        "roles": declared("a", "b"),
        "memberships": [{"role": "b", "members": []}, {"role": "a", "members": [{"name": "b"}]}],
    }
    assert back(world, manifest) == [
        'REVOKE "a" FROM "b" GRANTED BY "postgres"',
        'GRANT "b" TO "a" WITH ADMIN FALSE, INHERIT TRUE, SET TRUE',
    ]


def test_passwords_and_their_store_are_left() -> None:
    world = World()
    a, b, c = world.ref("a"), world.ref("b"), world.ref("c")
    more = (SetPassword(a, ""), SetPassword(b, "", clear=True), SetPassword(c, "", created=True), CreateStore(True))
    undo = way_back(world, {"roles": declared("a", "b", "c")}, *more)
    assert undo.blocks == ()
    assert undo.left == (
        "the password of role a was replaced, and nobody knows the old one",
        "the password of role b is gone",
        "the table of password fingerprints stays: it says which passwords were set",
    )


def test_nothing_to_do_leaves_nothing_to_undo() -> None:
    world = World()
    outcome = world.outcome({})
    assert undo_of(Plan(), world.state, outcome.after, outcome.powers) == Undo()


@pytest.mark.parametrize("count", [1, 1200])
def test_many_objects_are_one_step(count: int) -> None:
    world = World()
    names: Tuple[str, ...] = tuple(f"t{number}" for number in range(count))
    world.objects("table", "s", names, "o", ("old", "SELECT", "o"))
    statements = back(world, managed(rule("a", "INSERT", "table", "s", "*"), roles=declared("a")))
    batches = -(-count // 500)
    made = [statement for statement in statements if statement.startswith("GRANT SELECT ON TABLE")]
    gone = [statement for statement in statements if statement.startswith("REVOKE INSERT ON TABLE")]
    assert (len(made), len(gone)) == (batches, batches)
