# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports for the tests of the page: made-up servers and manifests, taken through all of the module but the connection."""

from __future__ import annotations

import json
from typing import Any, Dict, List

from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.targets import Lookups
from ansible_collections.pg_access.reconcile.plugins.module_utils.explain.explanation import survey
from ansible_collections.pg_access.reconcile.plugins.module_utils.filters import Options
from ansible_collections.pg_access.reconcile.plugins.module_utils.plan import make_plan
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.report.access import access_of
from ansible_collections.pg_access.reconcile.plugins.module_utils.run import Run
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements.order import composed_statements
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements.privileges import inventory_of
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World, declared, rule

#: Names that try to be more than names: markup, quotes, text that turns direction, symbols, and as long as can be.
MARKUP = "<script>alert(1)</script>"
QUOTES = "\"'`&amp;--><!--"
TURNING = "\u202egnp.exe"
HEBREW = "\u05e7\u05d1\u05d5\u05e6\u05d4"
EMOJI = "\U0001f468\u200d\U0001f4bb ops"
LONGEST = "w" * 63
HOSTILE = (MARKUP, QUOTES, TURNING, HEBREW, EMOJI, LONGEST, "{{ 7 * 7 }}", "two\nlines", "</title></style>")


def data_of(world: World, raw: Dict[str, Any], *, database: str = "", **options: Any) -> Dict[str, Any]:
    """What the module writes about a server and a manifest, in check mode."""
    policy = manifest_to_policy(raw)
    chosen = Options(**options)
    state = world.state
    outcome = make_plan(policy, state, world.scope(policy), Lookups(), chosen)
    assert not outcome.problems, [problem.text for problem in outcome.problems]
    composed = composed_statements(outcome.plan.changes, inventory_of(state), state.server.version, session_role=None)
    run = Run(
        outcome.plan,
        tuple(statement.text for statement in composed),
        state.server,
        state,
        warnings=outcome.plan.warnings,
        survey=survey(policy, state, outcome, Lookups()),
        behind=tuple(composed),
    )
    name = database or state.server.database
    data = access_of(run, chosen, policy, check_mode=True, where=f"{name}@db.example.com:5432")
    data["server"]["database"] = name
    return data


def text_of(data: Dict[str, Any]) -> str:
    return json.dumps(data)


def shop() -> Dict[str, Any]:
    """A shop of a usual size: teams, logins, profiles, a legacy login that keeps what it has, an intern who loses it."""
    world = World()
    world.role("shop_owner")
    for name in ("anna", "ben", "carla", "app", "dashboard", "intern_2019", "pgloader_pg"):
        world.role(name, login=True)
    world.role("pg_read_all_data")
    world.member("intern_2019", "shop_owner")
    world.member("dashboard", "pg_read_all_data")
    for schema, tables in (
        ("inventory", ["items", "orders", "stock"]),
        ("sales", ["customers", "invoices"]),
        ("audit", ["log"]),
    ):
        world.schema(
            schema, "shop_owner", ("pgloader_pg", "USAGE", "shop_owner"), ("intern_2019", "USAGE", "shop_owner")
        )
        world.objects(
            "table", schema, tables, "shop_owner",
            ("pgloader_pg", "SELECT", "shop_owner"), ("pgloader_pg", "DELETE", "shop_owner"),
            ("intern_2019", "SELECT", "shop_owner"), ("shop_owner", "SELECT", "shop_owner"),
        )  # fmt: skip
    world.objects(
        "function", "sales", ["total"], "shop_owner", ("PUBLIC", "EXECUTE", "shop_owner"), arguments="integer"
    )
    reader = [rule("x", "USAGE", "schema"), rule("x", "SELECT", "table", name="*")]
    editor = [*reader, rule("x", "INSERT UPDATE DELETE", "table", name="*")]
    for one in (*reader, *editor):
        one.pop("role", None)
    return data_of(
        world,
        {
            "default_owner": "shop_owner",
            "profiles": {"reader": {"grants": reader}, "editor": {"grants": editor}},
            "schemas": [{"name": name, "profiles": ["reader", "editor"]} for name in ("inventory", "sales", "audit")],
            "roles": [
                *declared("shop_owner", "sales_team", "stock_team"),
                *declared("anna", "ben", "carla", "app", "dashboard", login=True),
                {"name": "pgloader_pg", "login": True, "privilege_reconciliation": "additive"},
                {"name": "intern_2019", "login": True},
            ],
            "memberships": [
                {"role": "sales-editor", "members": [{"name": "sales_team"}]},
                {"role": "inventory-reader", "members": [{"name": "sales_team"}, {"name": "dashboard"}]},
                {"role": "inventory-editor", "members": [{"name": "stock_team"}, {"name": "app"}]},
                {"role": "sales_team", "members": [{"name": "anna"}, {"name": "ben"}]},
                {"role": "stock_team", "members": [{"name": "carla"}, {"name": "ben", "inherit": False}]},
                {"role": "shop_owner", "exclusive": True, "members": []},
            ],
        },
        database="shop",
    )


def hostile() -> Dict[str, Any]:
    """Names that try to be more than names, wherever a name can stand."""
    world = World()
    for name in HOSTILE:
        world.role(name, login=True, comment=f"<b>{name}</b>")
        world.schema(name[:60], name)
        world.table(name[:60], name, name, (MARKUP, "SELECT", name))
    world.member(QUOTES, MARKUP)
    world.member(LONGEST, MARKUP)
    return data_of(
        world,
        {
            "roles": [*declared(*(name for name in HOSTILE if name != "two\nlines"), login=True)],
            "schemas": [{"name": MARKUP, "owner": MARKUP}],
            "grants": [rule(HEBREW, "SELECT", "table", name[:60], "*") for name in (MARKUP, TURNING, EMOJI)],
        },
        database=MARKUP,
    )


def chain() -> Dict[str, Any]:
    """Groups in groups in groups, and names that differ at the end only, in scripts that run wide."""
    world = World()
    levels = [f"level_{number}" for number in range(8)]
    alike = [f"department_of_finance_and_controlling_reader_{number}" for number in range(10)]
    wide = [f"{word * 30}{number}" for number, word in enumerate(("\u0416", "W", "\u5de5", "\u0645"))]
    for name in (*levels, *alike, *wide):
        world.role(name)
    for group, member in zip(levels, levels[1:]):
        world.member(member, group)
    for name in (*alike, *wide):
        world.member(name, "level_0")
        world.member("level_1", name)
    return data_of(world, {"roles": declared("someone")}, database="chain")


def large(roles: int = 300, schemas: int = 100, tables: int = 10) -> Dict[str, Any]:
    """As large as a page has to bear: each schema with its profiles, many logins, and a legacy login with much to keep."""
    world = World()
    world.role("owner")
    world.role("legacy", login=True)
    names = [f"schema_{number:03}" for number in range(schemas)]
    for schema in names:
        world.schema(schema, "owner", ("legacy", "USAGE", "owner"))
        for number in range(tables):
            world.table(
                schema, f"table_{number}", "owner", ("legacy", "SELECT", "owner"), ("legacy", "UPDATE", "owner")
            )
    logins = [f"user_{number:03}" for number in range(roles - schemas)]
    direct: List[Any] = [
        rule(login, "SELECT INSERT UPDATE", "table", schema, "*") for login in logins[:10] for schema in names
    ]
    grant = rule("x", "SELECT", "table", name="*")
    grant.pop("role")
    return data_of(
        world,
        {
            "default_owner": "owner",
            "profiles": {"reader": {"grants": [grant]}},
            "schemas": [{"name": name, "profiles": ["reader"]} for name in names],
            "roles": [
                *declared("owner", "everybody"),
                *declared(*logins, login=True),
                {"name": "legacy", "login": True, "privilege_reconciliation": "additive"},
            ],
            "grants": direct,
            "memberships": [
                *({"role": f"{name}-reader", "members": [{"name": "everybody"}]} for name in names),
                {"role": "everybody", "members": [{"name": login} for login in logins]},
            ],
        },
        database="warehouse",
    )
