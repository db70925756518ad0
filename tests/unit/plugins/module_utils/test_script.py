# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Scripts for psql: comments that nothing ends, the rules behind a statement, what is left out and what is refused."""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import Any, Dict, List, Sequence, get_args

import pytest
import yaml
from ansible_collections.pg_access.reconcile.plugins.module_utils import changes as all_changes
from ansible_collections.pg_access.reconcile.plugins.module_utils import script
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import (
    AddMember,
    Change,
    CommentRole,
    CreateStore,
    Grant,
    LendUsage,
    RemoveMember,
    Revoke,
    SetPassword,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.filters import Options
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import Problem
from ansible_collections.pg_access.reconcile.plugins.module_utils.script import Frame, plain, plan_script, reasons_of
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements.order import composed_statements
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements.statement import Statement
from ansible_collections.pg_access.reconcile.plugins.module_utils.undo import way
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World, declared, rule

sql = pytest.importorskip("psycopg").sql

ROOT = pathlib.Path(__file__).resolve().parents[4]


def frame(world: World, **changed: Any) -> Frame:
    return Frame(world.state, Options(), "sha256:0", **changed)


def of_plan(world: World, manifest: Dict[str, Any], refused: Sequence[Problem] = (), **changed: Any) -> str:
    composed = composed_statements(world.plan(manifest).changes, {}, world.version)
    return plan_script(frame(world, **changed), composed, refused)


def body(text: str) -> List[str]:
    """What follows the beginning that every script has."""
    return (
        text.partition("SET LOCAL statement_timeout = 0;\n")[2]
        .partition("SET LOCAL statement_timeout = 0;\n")[2]
        .splitlines()
    )


@pytest.mark.parametrize("sort", get_args(Change), ids=lambda sort: sort.__name__)
def test_every_sort_of_change_has_its_place_in_both_scripts(sort: type) -> None:
    assert sort in script.BEHIND, "script.py does not know what stands behind it"
    places = [way.UNDONE, way.PASSING, way.LEFT]
    assert sum(sort in place for place in places) == 1, "undo/way.py has to turn it round, or to say that it does not"


def test_no_sort_of_change_is_forgotten_in_the_closed_set() -> None:
    defined = {
        value
        for value in vars(all_changes).values()
        if isinstance(value, type)
        and value.__module__ == all_changes.__name__
        and hasattr(value, "__dataclass_fields__")
    }
    assert defined - set(get_args(Change)) == {all_changes.Plan, all_changes.Withheld}


def test_the_version_is_that_of_the_collection() -> None:
    assert yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"] == script.VERSION


@pytest.mark.parametrize(
    "text, shown",
    [
        ("a b", "a b"),
        ("zoë 日本", "zoë 日本"),
        ("a\n\\! b", "a\\n\\! b"),
        ("a\rb\x0bc\x85d\u2028e", "a\\rb\\x0bc\\x85d\\u2028e"),
        ("\u202egnp", "\\u202egnp"),
        ("\udcff", "\\udcff"),
        ("a\u00a0b", "a\\xa0b"),
    ],
)
def test_a_comment_stays_on_its_line(text: str, shown: str) -> None:
    assert plain(text) == shown
    assert len(plain(text).splitlines()) == 1


def test_a_statement_has_its_rules_in_front_of_it_once() -> None:
    world = World()
    world.table("s", "t", "o", ("old", "SELECT", "o"))
    manifest = {
        "roles": declared("a", "b"),
        "schemas": [{"name": "s"}],
        "grants": [rule("b", "SELECT", "table", "s", "t"), rule("a", "SELECT", "table", "s", "t")],
    }
    assert body(of_plan(world, manifest)) == [
        "",
        "-- roles[0]",
        'CREATE ROLE "a";',
        "",
        "-- roles[1]",
        'CREATE ROLE "b";',
        "",
        "-- grants[0], grants[1]",
        'GRANT SELECT ON TABLE "s"."t" TO "a", "b";',
        "",
        "-- not declared, and managed by schemas[0], grants[0], grants[1]",
        'REVOKE SELECT ON TABLE "s"."t" FROM "old";',
        "",
        "COMMIT;",
    ]


def test_many_rules_are_a_few_and_a_count() -> None:
    world = World()
    grant = world.grant(world.target("table", "s", [world.table("s", "t", "o")], "o"), "a", "SELECT")
    many = [replace(grant, sources=(f"grants[{number}]",)) for number in range(11, 0, -1)]
    assert reasons_of(many) == ("grants[1], grants[2], grants[3] and 8 more",)


@pytest.mark.parametrize(
    "flags, reason",
    [
        ({"lent": True}, "only for the revoke that needs it"),
        ({"again": True, "late": True}, "kept: another statement takes it along"),
        ({"sources": ("grants[1]",)}, "grants[1]"),
    ],
)
def test_a_grant_that_no_rule_asks_for_says_why(flags: Dict[str, Any], reason: str) -> None:
    world = World()
    target = world.target("table", "s", [world.table("s", "t", "o")], "o")
    assert reasons_of([Grant(target, world.ref("a"), frozenset({"SELECT"}), **flags)]) == (reason,)


@pytest.mark.parametrize(
    "flags, reason",
    [
        ({"again": True}, "so that another statement can run"),
        ({"explicit": True, "sources": ("grants[1]",)}, "grants[1]"),
        ({"sources": ("schemas[0]", "grants[0]", "grants[1]", "and 4 more")},
         "not declared, and managed by schemas[0], grants[0], grants[1] and 4 more"),
        ({}, "not declared"),
    ],
)  # fmt: skip
def test_a_revoke_says_what_it_is_for(flags: Dict[str, Any], reason: str) -> None:
    world = World()
    target = world.target("table", "s", [world.table("s", "t", "o")], "o")
    assert reasons_of([Revoke(target, world.ref("a"), frozenset({"SELECT"}), world.ref("o"), **flags)]) == (reason,)


def test_memberships_and_the_rest_say_what_they_are_for() -> None:
    world = World()
    a, b = world.ref("a"), world.ref("b")
    assert reasons_of([AddMember(a, b, {}, "roles[0].members[0]")]) == ("roles[0].members[0]",)
    assert reasons_of([AddMember(a, b, {}, "", exists=True)]) == ("in the place of a row that goes",)
    assert reasons_of([RemoveMember(a, b, None, source="roles[0]")]) == ("not declared: roles[0]",)
    assert reasons_of([RemoveMember(a, b, None)]) == ("not declared",)
    assert reasons_of([RemoveMember(a, b, None, replaced=True)]) == ("the same membership by another grantor",)
    assert reasons_of([CreateStore(schema=True)]) == ("where the fingerprints of passwords are kept",)
    assert reasons_of([LendUsage(a, "s")]) == ("only for the statements that need it",)
    assert reasons_of([]) == ()


def test_a_password_is_a_comment_that_asks() -> None:
    world = World()
    role = world.ref('we"ird\nname')
    composed = composed_statements([SetPassword(role, "roles[0].password")], {}, 17)
    text = plan_script(frame(world), composed)
    assert '-- \\password "we""ird\\nname"' in text.splitlines()
    assert "********" not in text


def test_a_comment_with_a_record_is_set_around_it() -> None:
    world = World()
    role = world.ref("a")
    composed = composed_statements([CommentRole(role, "it's", None, "roles[0]")], {}, 17)
    assert "COMMENT ON ROLE \"a\" IS 'it''s';" in plan_script(frame(world), composed)
    text = plan_script(frame(world, keeps=lambda oid: oid == role.oid), composed)
    assert 'COMMENT ON ROLE "a"' not in text
    (line,) = [line for line in text.splitlines() if line.startswith("SELECT format(")]
    assert line.endswith(" \\gexec")


def test_a_statement_with_a_secret_is_left_out_and_so_is_a_comment() -> None:
    world = World()
    composed = [
        Statement("COMMENT ON ROLE a IS 'hidden'", (CommentRole(world.ref("a"), "hidden", None, "hidden"),)),
        Statement("SELECT 1"),
    ]
    text = plan_script(frame(world, leaks=lambda text: "hidden" in text), composed)
    assert "hidden" not in text
    assert "-- A statement is left out here: it would show a secret." in text
    assert "-- (left out: it would show a secret)" in text
    assert "\nSELECT 1;\n" in text


def test_a_plan_that_something_else_than_rights_stops_is_all_comments() -> None:
    world = World()
    problems = [
        Problem(message="no", code="insufficient_privilege"),
        Problem(message="not there\nat all", code="object_missing"),
    ]
    manifest = {"roles": declared("a", comment="two\nlines")}
    whole = of_plan(world, manifest, problems[:1])
    assert "-- An apply is refused (insufficient_privilege): no" in whole
    assert body(whole)
    part = of_plan(world, manifest, problems)
    assert all(line.startswith(("--", "\\set", "\\encoding")) or not line for line in part.splitlines())
    assert "-- An apply is refused (object_missing): not there\\nat all" in part
    assert "-- COMMENT ON ROLE \"a\" IS 'two\\nlines';" in part


def test_the_first_of_many_problems_are_shown() -> None:
    problems = [Problem(message=f"problem {number}", code="guard") for number in range(25)]
    text = plan_script(frame(World()), [], problems)
    assert text.count("-- An apply is refused") == 20
    assert "-- and 5 more" in text
    assert "There are no statements to show." in text


def test_a_server_that_may_not_be_asked_for_its_identifier_is_not() -> None:
    world = World()
    state = replace(world.state, server=replace(world.state.server, system_identifier=""))
    composed = composed_statements(world.plan({"roles": declared("a")}).changes, {}, 17)
    text = plan_script(Frame(state, Options(), "sha256:0"), composed)
    assert "pg_control_system" not in text
    assert "-- cluster: unknown" in text


@pytest.mark.parametrize("version, pinned", [(16, False), (17, True)])
def test_what_a_version_does_not_know_is_not_pinned(version: int, pinned: bool) -> None:
    text = of_plan(World(version), {"roles": declared("a")})
    assert ("SET LOCAL transaction_timeout" in text) is pinned
    assert "\\encoding UTF8" in text
    assert "SET LOCAL client_encoding = 'SQL_ASCII';" in of_plan(
        World(version), {"roles": declared("a")}, encoding="SQL_ASCII"
    )
