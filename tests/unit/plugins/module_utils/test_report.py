# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run tells: the diff's text, counts, items, warnings, and what is cut where the result gets too large."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

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
    Plan,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetPassword,
    Target,
    Withheld,
    weight,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.filters import Options
from ansible_collections.pg_access.reconcile.plugins.module_utils.report import result as reports
from ansible_collections.pg_access.reconcile.plugins.module_utils.report.difftext import (
    KEPT,
    diff_of,
    mapping,
    objects,
    scalar,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.report.items import (
    suppressed_items,
    withheld_items,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.report.result import (
    digest,
    kept_warning,
    result_of,
    summary,
    suppressed_counts,
    warnings_of,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.run import Run
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import Object, RoleRef
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World

pytest.importorskip("psycopg")

A, B, O = RoleRef(1, "a"), RoleRef(2, "b"), RoleRef(3, "o")  # noqa: E741
BOSS = RoleRef(10, "postgres")
SELECT = frozenset(("SELECT",))


def table(*names: str, columns: Sequence[str] = (), first: int = 100) -> Target:
    return Target("table", "s", tuple(Object(first + n, name) for n, name in enumerate(names)), O, tuple(columns))


def sides(*changes: Change, suppressed: Sequence[Any] = ()) -> Tuple[List[str], List[str]]:
    """The lines before and after."""
    (shown,) = diff_of(Plan(changes, suppressed=tuple(suppressed)), "app")
    assert (shown["before_header"], shown["after_header"]) == ("app (current)", "app (planned)")
    return shown["before"].splitlines(), shown["after"].splitlines()


# ---- the diff --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (-1, "-1"),
        ("app", "app"),
        ("table s.t", "table s.t"),
        ("yes", '"yes"'),
        ("Null", '"Null"'),
        ("", '""'),
        ("5", '"5"'),
        ("a, b", '"a, b"'),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        (" a", '" a"'),
        ("a ", '"a "'),
        ("a\n", '"a\\n"'),
        ('say "x"', '"say \\"x\\""'),
        ("größe", "größe"),
    ],
)
def test_a_value_is_written_so_that_yaml_reads_it_back(value: Any, text: str) -> None:
    assert scalar(value) == text
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(f"{{x: {text}}}") == {"x": value}
    assert yaml.safe_load(mapping([("x", [value, "y"])])) == {"x": [value, "y"]}


def test_nothing_to_do_shows_nothing() -> None:
    assert diff_of(Plan(), "app") == []


def test_a_password_is_changed_or_removed_and_never_shown() -> None:
    before, after = sides(
        CreateRole(RoleRef(-1, "new"), {"login": True}, ""),
        SetPassword(RoleRef(-1, "new"), "", created=True),
        SetPassword(A, ""),
        SetPassword(B, "", clear=True),
    )
    assert after == [
        "roles:",
        "  - {name: a, password: (changed)}",
        "  - {name: b, password: (removed)}",
        "  - {name: new, login: true, password: (changed)}",
    ]
    assert before == ["roles:", "  - {name: a}", "  - {name: b}"]


def test_roles_read_like_the_manifest() -> None:
    before, after = sides(
        CreateRole(RoleRef(-1, "new"), {"login": True, "valid_until": 0}, ""),
        AlterRole(A, {"login": True}, {"login": False}, frozenset(), ""),
        AlterRole(A, {"createdb": False}, {"createdb": True}, frozenset(("createdb",)), ""),
        CommentRole(B, "new: text", "old", ""),
    )
    assert before == ["roles:", "  - {name: a, login: false, createdb: true}", "  - {name: b, comment: old}"]
    assert after == [
        "roles:",
        "  - {name: a, login: true, createdb: false}",
        '  - {name: b, comment: "new: text"}',
        '  - {name: new, login: true, valid_until: "1970-01-01 00:00:00+00"}',
    ]


def test_memberships_show_what_is_unusual() -> None:
    before, after = sides(
        AddMember(O, A, {"admin": True, "inherit": True, "set": False}, ""),
        AddMember(O, B, {"admin": False, "inherit": False, "set": True}, "", exists=True, raised=frozenset(("set",))),
        RemoveMember(A, B, BOSS),
        RemoveMember(B, A, BOSS, option="admin"),
    )
    assert before == [
        "memberships:",
        "  - role: a",
        "    members:",
        "      - {name: b}",
        "  - role: b",
        "    members:",
        "      - {name: a, admin: true}",
        "  - role: o",
        "    members:",
        "      - {name: b, set: false}",
    ]
    assert after == [
        "memberships:",
        "  - role: b",
        "    members:",
        "      - {name: a, admin: false}",
        "  - role: o",
        "    members:",
        "      - {name: a, admin: true, set: false}",
        "      - {name: b, set: true}",
    ]


def test_a_membership_that_gets_another_grantor_shows_only_what_it_loses() -> None:
    before, after = sides(
        AddMember(O, A, {"admin": False, "inherit": True, "set": True}, "", exists=True),
        RemoveMember(O, A, BOSS, replaced=True),
        AddMember(O, B, {"admin": False, "inherit": True, "set": False}, "", exists=True),
        RemoveMember(O, B, BOSS, replaced=True, lowered=frozenset(("set",))),
    )
    assert before == ["memberships:", "  - role: o", "    members:", "      - {name: b, set: true}"]
    assert after == ["memberships:", "  - role: o", "    members:", "      - {name: b, set: false}"]


def test_schemas_show_their_owners() -> None:
    before, after = sides(CreateSchema("new", None, ""), AlterSchemaOwner(5, "s", A, B, ""))
    assert before == ["schemas:", "  - {name: s, owner: b}"]
    assert after == ["schemas:", "  - {name: new}", "  - {name: s, owner: a}"]


def test_grants_and_revokes_stand_on_their_sides_and_options_on_both() -> None:
    before, after = sides(
        Grant(table("t"), A, frozenset(("INSERT", "SELECT")), True),
        Grant(table("u"), A, SELECT, True, upgrade=True),
        Revoke(table("t", columns=["c", "d"]), B, SELECT, O),
        Revoke(table("u"), B, SELECT, O, option_only=True),
    )
    assert before == [
        "grants:",
        "  - {role: a, privileges: [SELECT], object: table s.u}",
        "  - {role: b, privileges: [SELECT], object: table s.u, with_grant_option: true}",
        "  - {role: b, privileges: [SELECT], object: table s.t, columns: [c, d]}",
    ]
    assert after == [
        "grants:",
        "  - {role: a, privileges: [SELECT], object: table s.u, with_grant_option: true}",
        "  - {role: a, privileges: [SELECT, INSERT], object: table s.t, with_grant_option: true}",
        "  - {role: b, privileges: [SELECT], object: table s.u}",
    ]


def test_what_the_plan_only_does_for_a_moment_is_not_shown() -> None:
    assert (
        diff_of(Plan((Grant(table("t"), A, SELECT, again=True), Revoke(table("t"), A, SELECT, O, again=True))), "x")
        == []
    )


def test_what_the_override_keeps_stands_on_both_sides_with_a_note_on_the_planned_one() -> None:
    held = [Revoke(table("t"), A, SELECT, O), RevokeDefault(O, "s", "table", A, SELECT)]
    before, after = sides(suppressed=held)
    assert before == [
        "grants:",
        "  - {role: a, privileges: [SELECT], object: table s.t}",
        "default_privileges:",
        "  - {owner: o, schema: s, role: a, privileges: [SELECT], on_type: table}",
    ]
    assert after == [before[0], before[1] + KEPT, before[2], before[3] + KEPT]


def test_a_global_default_privilege_has_no_schema() -> None:
    before, after = sides(GrantDefault(O, None, "table", A, SELECT, True, upgrade=True))
    line = "  - {owner: o, role: a, privileges: [SELECT], on_type: table"
    assert before == ["default_privileges:", f"{line}}}"]
    assert after == ["default_privileges:", f"{line}, with_grant_option: true}}"]


@pytest.mark.parametrize(
    ("kind", "schema", "labels", "text"),
    [
        ("table", "s", ["b", "a"], "table s.a, s.b"),
        ("table", "s", list("abcde"), "table s.a, s.b, s.c, s.d, s.e"),
        ("table", "s", list("abcdef"), "table s.* (6)"),
        ("materialized_view", "s", ["m"], "materialized view s.m"),
        ("schema", "", ["s"], "schema s"),
        ("language", "", list("abcdef"), "language * (6)"),
    ],
)
def test_a_handful_of_objects_is_named_and_more_are_counted(
    kind: str, schema: str, labels: List[str], text: str
) -> None:
    assert objects(kind, schema, labels) == text


# ---- counts ----------------------------------------------------------------------------------------------------------


def test_privileges_are_counted_per_object_and_column() -> None:
    both = frozenset(("SELECT", "UPDATE"))
    assert weight(Grant(table("t", "u"), A, both)) == 4
    assert weight(Grant(table("t", "u", columns=["c", "d", "e"]), A, both)) == 12
    assert weight(RevokeDefault(O, "s", "table", A, both)) == 2


def test_the_summary_counts_each_thing_once() -> None:
    plan = Plan(
        (
            CreateRole(A, {}, ""),
            CommentRole(A, "x", None, "", created=True),
            AlterRole(B, {}, {}, frozenset(), ""),
            AlterRole(B, {}, {}, frozenset(), ""),
            AddMember(O, A, {}, ""),
            RemoveMember(O, B, BOSS),
            RemoveMember(O, B, A),
            RemoveMember(A, B, BOSS, option="admin"),
            RemoveMember(A, B, O, option="set"),
            CreateSchema("n", None, ""),
            AlterSchemaOwner(5, "s", A, B, ""),
            Grant(table("t", "u"), A, SELECT),
            Grant(table("t"), B, SELECT, again=True),
            Revoke(table("t"), B, frozenset(("SELECT", "INSERT")), O),
            Revoke(table("t"), A, SELECT, O, again=True),
            GrantDefault(O, "s", "table", A, SELECT),
            RevokeDefault(O, "s", "table", B, frozenset(("SELECT", "INSERT"))),
        ),
        suppressed=(Revoke(table("t", "u"), B, SELECT, O), Revoke(table("t"), B, SELECT, A)),
        managed={"schema s": ("scope.schemas: s",)},
    )
    assert summary(plan) == {
        "roles": {"created": 1, "altered": 1, "dropped": 0},
        "passwords": {"set": 0},
        "memberships": {"added": 1, "altered": 1, "removed": 1},
        "schemas": {"created": 1, "owner_changed": 1},
        "grants": {"granted": 2, "revoked": 2},
        "default_privileges": {"granted": 1, "revoked": 2},
        "suppressed_revokes": {"b": 3},
        "managed": {"schema s": ["scope.schemas: s"]},
    }


def test_a_membership_that_only_changes_its_grantor_does_not_count() -> None:
    again = AddMember(O, A, {"admin": False, "inherit": True, "set": True}, "", exists=True)
    plan = Plan((again, RemoveMember(O, A, B, replaced=True), RemoveMember(O, B, BOSS)))
    assert summary(plan)["memberships"] == {"added": 0, "altered": 0, "removed": 1}
    plan = Plan((again, RemoveMember(O, A, B, replaced=True, lowered=frozenset(("admin",))), RemoveMember(O, B, BOSS)))
    assert summary(plan)["memberships"] == {"added": 0, "altered": 1, "removed": 1}


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"a": 1}, "1 role keeps 1 undeclared privilege: a 1"),
        ({"a": 2, "b": 3}, "2 roles keep 5 undeclared privileges: b 3, a 2"),
        ({"b": 2, "a": 2}, "2 roles keep 4 undeclared privileges: a 2, b 2"),
        (dict.fromkeys("abcdef", 1), "6 roles keep 6 undeclared privileges: a 1, b 1, c 1, d 1, e 1, …"),
    ],
)
def test_one_warning_speaks_for_all_overrides(counts: Dict[str, int], text: str) -> None:
    assert kept_warning(counts) == text


def test_passwords_are_counted_and_so_is_the_schema_of_their_fingerprints() -> None:
    changes = (SetPassword(A, ""), SetPassword(RoleRef(-1, "new"), "", created=True), SetPassword(B, "", clear=True))
    counted = summary(Plan((*changes, CreateStore(True))))
    assert counted["passwords"] == {"set": 3}
    assert counted["schemas"] == {"created": 1, "owner_changed": 0}
    assert counted["roles"] == {"created": 0, "altered": 0, "dropped": 0}
    assert summary(Plan((CreateStore(False),)))["schemas"]["created"] == 0


# ---- items -----------------------------------------------------------------------------------------------------------


def test_a_suppressed_revoke_is_one_item_per_object_and_grantor_with_its_statement() -> None:
    changes = [Revoke(table("u", "t"), A, SELECT, O), Revoke(table("t"), A, SELECT, B)]
    items = suppressed_items(changes, brief=False).first()
    assert [(item["object"]["name"], item["grantor"]) for item in items] == [("t", "o"), ("t", "b"), ("u", "o")]
    assert items[0] == {
        "role": "a",
        "kind": "object",
        "object": {"type": "table", "schema": "s", "name": "t", "columns": []},
        "owner": "o",
        "privileges": ["SELECT"],
        "grantor": "o",
        "sql": 'REVOKE SELECT ON TABLE "s"."t" FROM "a"',
    }


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (Revoke(table("t", columns=["c"]), A, SELECT, O), "column"),
        (Revoke(table("t"), A, SELECT, O, option_only=True), "grant_option"),
        (Revoke(table("t", columns=["c"]), A, SELECT, O, option_only=True), "grant_option"),
        (RevokeDefault(O, "s", "table", A, SELECT), "default_privilege"),
    ],
)
def test_a_suppressed_revoke_says_of_what_kind_it_is(change: Any, kind: str) -> None:
    (item,) = suppressed_items([change], brief=False).first()
    assert item["kind"] == kind


def test_brief_items_name_three_objects_and_count_exactly() -> None:
    change = Revoke(table("a", "b", "c", "d", "e"), A, SELECT, O)
    (item,) = suppressed_items([change], brief=True).first()
    assert item["object"]["name"] == "a, b, c and 2 more"
    assert item["sql"] == 'REVOKE SELECT ON TABLE "s"."a", "s"."b", "s"."c" /* and 2 more */ FROM "a"'
    assert suppressed_counts([change]) == {"a": 5}


@pytest.mark.parametrize(
    ("change", "name", "role", "place"),
    [
        (Revoke(table("t"), A, SELECT, O), "revoke", "a", "t"),
        (RevokeDefault(O, "s", "table", A, SELECT), "revoke_default_privilege", "a", None),
        (RemoveMember(O, A, BOSS), "revoke_membership", "a", "o"),
        (AlterRole(A, {"login": True}, {}, frozenset(), ""), "alter_role", "a", "a"),
        (AlterSchemaOwner(5, "s", A, B, ""), "alter_schema_owner", "a", "s"),
        (CommentRole(A, "x", "y", ""), "alter_role", "a", "a"),
        (SetPassword(A, ""), "alter_role", "a", "a"),
        (SetPassword(A, "", clear=True, ours=False), "alter_role", "a", "a"),
    ],
)
def test_what_is_withheld_says_what_whose_where_and_why(
    change: Change, name: str, role: str, place: Optional[str]
) -> None:
    (item,) = withheld_items([Withheld(change, "mode")], brief=False).first()
    assert (item["change"], item["role"], item["object"]["name"], item["reason"]) == (name, role, place, "mode")
    assert item["sql"]


def test_a_withheld_password_shows_what_would_have_been_done_with_it() -> None:
    held = [Withheld(SetPassword(A, ""), "mode"), Withheld(SetPassword(B, "", clear=True), "password_not_ours")]
    assert [(item["sql"], item["reason"]) for item in withheld_items(held, brief=False).first()] == [
        ("ALTER ROLE \"a\" PASSWORD '********'", "mode"),
        ('ALTER ROLE "b" PASSWORD NULL', "password_not_ours"),
    ]


def test_items_stand_in_the_same_order_whatever_the_catalogs() -> None:
    held = [Withheld(Revoke(table(name), role, SELECT, O), "mode") for name in ("b", "a") for role in (B, A)]
    assert withheld_items(held, brief=False).first() == withheld_items(held[::-1], brief=False).first()


# ---- the whole result ------------------------------------------------------------------------------------------------


def run_of(plan: Plan, sql: Sequence[str] = ()) -> Run:
    state = World().state
    return Run(plan, tuple(sql), state.server, state)


def test_warnings_say_where_they_come_from() -> None:
    plan = Plan(suppressed=(Revoke(table("t"), A, SELECT, O),), ready=("b",))
    assert warnings_of(replace(run_of(plan), warnings=("first",)), "app@db:5432") == [
        "app@db:5432: first",
        "app@db:5432: 1 role keeps 1 undeclared privilege: a 1",
        "app@db:5432: role b holds no undeclared privilege in this database any more: its privilege_reconciliation: additive"
        " can be removed where no other database needs it",
    ]


def test_whose_override_is_not_needed_here_is_in_the_result() -> None:
    result = result_of(run_of(Plan(ready=("b",))), Options(), facts=False, diff=False)
    assert (result["changed"], result["unneeded_overrides"]) == (False, ["b"])


def test_suppression_alone_changes_nothing() -> None:
    result = result_of(run_of(Plan(suppressed=(Revoke(table("t"), A, SELECT, O),))), Options(), facts=False, diff=False)
    assert result["changed"] is False
    assert result["suppressed_revoke_count"] == 1
    assert "ansible_facts" not in result
    assert "diff" not in result
    assert "truncated" not in result


def test_facts_repeat_what_matters_under_their_own_name() -> None:
    result = result_of(run_of(Plan(), ["SELECT 1"]), Options(), facts=True, diff=True)
    facts = result["ansible_facts"]["pg_role_reconcile"]
    assert facts["database"] == "app"
    assert facts["plan_digest"] == result["plan_digest"]
    assert facts["changed"] is True
    assert result["server"]["executor"] == "postgres"


def test_a_digest_tells_servers_options_and_statements_apart() -> None:
    server = World().state.server
    digests = {
        digest(server, Options(), ["a", "b"]),
        digest(server, Options(), ["b", "a"]),
        digest(server, Options(), ["ab"]),
        digest(server, Options(mode="adopt"), ["a", "b"]),
        digest(server, Options(undeclared_grantees="keep"), ["a", "b"]),
        digest(server, Options(adopt_schema_owners=True), ["a", "b"]),
        digest(replace(server, database="other"), Options(), ["a", "b"]),
        digest(replace(server, system_identifier="1"), Options(), ["a", "b"]),
    }
    assert len(digests) == 8
    assert digest(replace(server, in_recovery=not server.in_recovery, full_version="x"), Options(), ["a"]) == digest(
        server, Options(), ["a"]
    )


def test_a_result_that_is_too_large_is_cut_but_its_counts_and_digest_stay_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"a_table_with_a_long_name_{number}" for number in range(300)]
    changes = tuple(Grant(table(name, first=number), A, SELECT) for number, name in enumerate(names))
    held = tuple(Revoke(table(name, first=number), B, SELECT, O) for number, name in enumerate(names))
    plan = Plan(changes, suppressed=held, withheld=tuple(Withheld(change, "mode") for change in held))
    run = run_of(plan, [f"GRANT {number} {'x' * 50}" for number in range(300)])
    full = result_of(run, Options(), facts=True, diff=True)
    assert "truncated" not in full
    monkeypatch.setattr(reports, "LARGEST", 60_000)
    cut = result_of(run, Options(), facts=True, diff=True)
    assert cut["truncated"] is True
    for name in ("summary", "plan_digest", "changed", "suppressed_revoke_count"):
        assert cut[name] == full[name]
    assert cut["suppressed_revoke_count"] == 300
    assert len(json.dumps(cut, ensure_ascii=False)) <= 60_000
    assert 0 < len(cut["suppressed_revokes"]) < 300
    assert set(cut) == {*full, "truncated"}
    assert "diff" not in result_of(run, Options(), facts=False, diff=False)
