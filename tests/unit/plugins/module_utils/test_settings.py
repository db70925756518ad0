# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of roles: how they are written, compared, planned and shown, and what stands in their way."""

from __future__ import annotations

import datetime
from typing import Any, Dict, List, Optional

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import Plan, SetConfig
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest import load, settings
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.texts import Refused, Unplain
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.validate import Judge
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import ManifestInvalid
from ansible_collections.pg_access.reconcile.plugins.module_utils.report.difftext import diff_of
from ansible_collections.pg_access.reconcile.plugins.module_utils.report.items import withheld_items
from ansible_collections.pg_access.reconcile.plugins.module_utils.report.result import summary
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import RoleRef
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World


def role(config: Any, **keys: Any) -> Dict[str, Any]:
    return {"roles": [{"name": "r", "config": config, **keys}]}


def world(config: Optional[Dict[str, str]] = None, **keys: Any) -> World:
    """A server that knows some parameters, with a role r where it has settings."""
    made = World(**keys)
    for name in ("work_mem", "jit", "TimeZone", "search_path", "createrole_self_grant", "transaction_read_only"):
        made.setting(name)
    made.setting("log_statement", "superuser")
    made.setting("max_connections", "postmaster")
    if config is not None:
        made.role("r", config=config)
    return made


# ---- names and values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ('app-x, "$user", public', ("app-x", "$user", "public")),
        ("one", ("one",)),
        ("", ("",)),
        ("  ", ("",)),
        ('""', ("",)),
        ("App , b c", ("App", "b c")),
        ('"a,b","c ""d"""', ("a,b", 'c "d"')),
        ('a"b', ('a"b',)),
    ],
)
def test_a_declared_list_is_taken_apart(text: str, elements: Any) -> None:
    assert settings.declared("search_path", text) == elements
    assert settings.declared("search_path", settings.shown("search_path", elements)) == elements
    assert settings.declared("application_name", text) == (text,)


@pytest.mark.parametrize("text", ["a,", ",a", "a,,b", '"a', '"a" b', 'a, "b', 'a, ""', "a\0", "\udce4"])
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(Refused):
        settings.declared("search_path", text)


@pytest.mark.parametrize("text", ["", '""'])
def test_an_empty_list_of_libraries_would_keep_everybody_out(text: str) -> None:
    with pytest.raises(Refused):
        settings.declared("session_preload_libraries", text)


@pytest.mark.parametrize(
    ("name", "stored", "wanted", "same"),
    [
        ("search_path", '"app-x", "$user", public', ("app-x", "$user", "public"), True),
        ("search_path", "App,b", ("app", "b"), True),
        ("search_path", '"App", b', ("app", "b"), False),
        ("search_path", "a, b", ("b", "a"), False),
        ("search_path", '"a, b"', ("a", "b"), False),
        ("search_path", '"broken', ("broken",), False),
        ("search_path", '""', ("",), True),
        ("local_preload_libraries", "Lib", ("Lib",), True),
        ("local_preload_libraries", "Lib", ("lib",), False),
        ("DateStyle", "ISO, DMY", ("iso,dmy",), True),
        ("DateStyle", "ISO, DMY", ("iso,mdy",), False),
        ("work_mem", "64MB", ("64MB",), True),
        ("work_mem", "64MB", ("65536",), False),
        ("application_name", "a,b", ("a, b",), False),
    ],
)
def test_what_the_catalog_holds_is_compared(name: str, stored: str, wanted: Any, same: bool) -> None:
    assert settings.holds(name, stored, wanted) is same


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("64MB", "64MB"),
        ("", ""),
        (True, "on"),
        (False, "off"),
        (64, "64"),
        (-1, "-1"),
        (1.5, "1.5"),
        (Unplain("1.50"), "1.50"),
        (Unplain("0x10"), "0x10"),
    ],
)
def test_values(raw: Any, text: str) -> None:
    judge = Judge()
    assert judge.value({"Work_Mem": raw}, {"type": "dict", "settings": True}, "c") == {"work_mem": (text,)}
    assert judge.problems == []


@pytest.mark.parametrize("raw", [["a"], {"a": 1}, datetime.date(2027, 1, 31), float("inf"), float("nan")])
def test_values_that_are_no_setting(raw: Any) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        load.load(role({"work_mem": raw, "jit": True}))
    (problem,) = caught.value.problems
    assert problem.path == "roles[0].config.work_mem"
    assert problem.role == "r"
    assert "must be text, a number or a boolean" in problem.message


@pytest.mark.parametrize("name", ["", "a b", "1a", "a..b", "a.", "a-b", "x" * 64, "a." + "x" * 64, 5, True])
def test_names_that_are_no_parameter(name: Any) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        load.load(role({name: "x"}))
    assert len(caught.value.problems) == 1


def test_a_name_twice_in_different_case_is_one_problem() -> None:
    with pytest.raises(ManifestInvalid) as caught:
        load.load(role({"Work_mem": "1MB", "work_MEM": "2MB"}))
    (problem,) = caught.value.problems
    assert problem.path == "roles[0].config.work_MEM"
    assert "Work_mem" in problem.message
    # Only ASCII is folded; null is nothing.
    assert load.load(role({"a.Ü": 1, "a.ü": 2, "WORK_MEM": None, "work_mem": 3})).roles[0].config == {
        "a.Ü": ("1",),
        "a.ü": ("2",),
        "work_mem": ("3",),
    }


def test_omitted_and_empty_differ() -> None:
    assert load.load(role(None)).roles[0].config is None
    assert load.load(role({})).roles[0].config == {}


@pytest.mark.parametrize("config", [{}, {"work_mem": "1MB"}])
def test_an_external_role_takes_no_settings(config: Any) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        load.load(role(config, external=True))
    assert [problem.path for problem in caught.value.problems] == ["roles[0].config"]


def test_a_profiles_settings_are_filled_in_element_by_element() -> None:
    config = {"search_path": '"{schema}", {profile}, public', "application_name": "{schema}/{profile}/{x}"}
    raw = {"profiles": {"p": {"config": config}, "q": {}}, "schemas": [{"name": 'A, "b"', "profiles": ["p", "q"]}]}
    roles = manifest_to_policy(raw).roles
    assert roles['A, "b"-p'].config == {
        "search_path": ('A, "b"', "p", "public"),
        "application_name": ('A, "b"/p/{x}',),
    }
    assert roles['A, "b"-q'].config is None


# ---- the plan --------------------------------------------------------------------------------------------------------


def test_only_what_differs_is_set_and_the_rest_is_reset() -> None:
    stored = {"work_mem": "8MB", "jit": "off", "TimeZone": "UTC", "App.Old": "x"}
    assert world(stored).sql(role({"work_mem": "8MB", "timezone": "Asia/Tokyo", "app.New": "a'b"})) == [
        """ALTER ROLE "r" SET "TimeZone" = 'Asia/Tokyo'""",
        """ALTER ROLE "r" SET "app"."new" = 'a''b'""",
        'ALTER ROLE "r" RESET "App"."Old"',
        'ALTER ROLE "r" RESET "jit"',
    ]


def test_settings_of_a_new_role_come_after_its_attributes_and_before_its_comment() -> None:
    raw = role({"search_path": "a-b, c"}, comment="c", connection_limit=3)
    assert world().sql(raw) == [
        'CREATE ROLE "r" CONNECTION LIMIT 3',
        """ALTER ROLE "r" SET "search_path" = 'a-b', 'c'""",
        """COMMENT ON ROLE "r" IS 'c'""",
    ]


def test_omitted_settings_are_left_alone() -> None:
    assert world({"work_mem": "8MB"}).sql({"roles": [{"name": "r"}]}) == []
    assert world({}).sql(role({})) == []


def test_modes() -> None:
    stored = {"work_mem": "8MB", "jit": "off"}
    raw = {"roles": [{"name": name, "config": {"work_mem": "9MB"}} for name in ("r", "new")]}
    assert len(world(stored).sql(raw, mode="adopt")) == 4
    plan = world(stored).plan(raw, mode="additive")
    assert world(stored).written(plan) == ['CREATE ROLE "new"', """ALTER ROLE "new" SET "work_mem" = '9MB'"""]
    items = withheld_items(plan.withheld, brief=False).first()
    assert [(item["change"], item["role"], item["reason"]) for item in items] == [("alter_role", "r", "mode")] * 2


@pytest.mark.parametrize(
    ("stored", "version", "reason"),
    [
        ({"gone": "1"}, 18, "unknown_kind"),
        ({"max_connections": "1"}, 18, "unknown_kind"),
        ({"transaction_read_only": "on"}, 16, "unknown_kind"),
        ({"transaction_read_only": "on"}, 15, None),
        ({"app.gone": "1"}, 18, None),
    ],
)
def test_what_the_server_does_not_reset_is_withheld(stored: Any, version: int, reason: Optional[str]) -> None:
    plan = world(stored, version=version).plan(role({}))
    assert [held.reason for held in plan.withheld] == ([reason] if reason else [])
    assert len(plan.changes) == (0 if reason else 1)


def test_a_stored_name_that_is_not_utf_8_is_named() -> None:
    (problem,) = world({"app.\udce4": "1"}).outcome(role({})).problems
    assert problem.code == "not_supported"
    assert "app." in problem.message


def test_the_executor_keeps_its_createrole_self_grant() -> None:
    made = world(executor="adm")
    made.role("adm", createrole=True, login=True, config={"createrole_self_grant": "set", "jit": "off"})
    raw = {"roles": [{"name": "adm", "createrole": True, "login": True, "config": {}}]}
    plan = made.plan(raw)
    assert made.written(plan) == ['ALTER ROLE "adm" RESET "jit"']
    assert [held.reason for held in plan.withheld] == ["self_protection"]


def test_the_bootstrap_superuser_is_somebody_elses() -> None:
    raw = {"roles": [{"name": "postgres", "superuser": True, "config": {"jit": "off"}, "comment": "c"}]}
    plan = world().plan(raw)
    assert plan.changes == ()
    assert [held.reason for held in plan.withheld] == ["external", "external"]


# ---- what stands in the way ------------------------------------------------------------------------------------------


def texts(made: World, raw: Dict[str, Any], code: str) -> List[str]:
    problems = made.outcome(raw).problems
    assert {problem.code for problem in problems} <= {code}
    return [f"{problem.path}: {problem.message}" for problem in problems]


@pytest.mark.parametrize("name", ["wrok_mem", "max_connections", "transaction_read_only"])
def test_a_setting_that_no_role_can_have(name: str) -> None:
    (text,) = texts(world(), role({name: "1", "app.anything": 1}), "object_missing")
    assert text.startswith(f"roles[0].config.{name}: ")
    assert name in text


def test_the_nearest_name_is_the_hint() -> None:
    (problem,) = world().outcome(role({"wrok_mem": 1})).problems
    assert problem.hint == "Did you mean work_mem?"


@pytest.mark.parametrize("version", [14, 15])
def test_what_the_executor_may_not_set(version: int) -> None:
    made = world({"app.old": "1", "jit": "off"}, version=version, executor="adm")
    made.role("adm", createrole=True)
    made.setting("app.granted", "custom", granted=True)
    raw = role({"log_statement": "all", "work_mem": "1MB", "app.new": 1, "app.granted": 1})
    found = texts(made, raw, "insufficient_privilege")
    assert [text.split(",")[0] for text in found] == [
        "roles[0]: adm may not set log_statement",
        "roles[0]: adm may not set app.new",
        "roles[0]: adm may not reset app.old",
    ]
    hint = made.outcome(raw).problems[1].hint or ""
    assert ('GRANT SET ON PARAMETER "app"."new" TO "adm"' in hint) is (version >= 15)
    assert texts(world(version=version), raw, "insufficient_privilege") == []


# ---- reports ---------------------------------------------------------------------------------------------------------


def test_the_diff_reads_like_the_manifest() -> None:
    made = world({"work_mem": "32MB", "jit": "off"})
    plan = made.plan(role({"work_mem": "64MB", "search_path": '"$user", public', "app.x": "on"}))
    (shown,) = diff_of(plan, "app")
    assert shown["before"] == 'roles:\n  - {name: r, config: {work_mem: 32MB, jit: "off"}}\n'
    after = '{work_mem: 64MB, search_path: "\\"$user\\", public", app.x: "on"}'
    assert shown["after"] == f"roles:\n  - {{name: r, config: {after}}}\n"


def test_resetting_all_is_an_empty_dict() -> None:
    (shown,) = diff_of(world({"jit": "off"}).plan(role({})), "app")
    assert shown["after"] == "roles:\n  - {name: r, config: {}}\n"


def test_settings_count_as_roles_altered() -> None:
    ref = RoleRef(7, "r")
    changes = (SetConfig(ref, "jit", ("on",), None, "roles[0]"), SetConfig(ref, "work_mem", None, "1", "roles[0]"))
    assert summary(Plan(changes))["roles"] == {"created": 0, "altered": 1, "dropped": 0}


@pytest.mark.parametrize(
    ("days", "words"), [(-1, "is in the past"), (13, "is less than 14 days away"), (15, None), (None, None)]
)
def test_an_expiry_that_is_over_or_near(days: Optional[int], words: Optional[str]) -> None:
    made = World()
    moment = datetime.datetime(2027, 1, 1, tzinfo=datetime.timezone.utc)
    made.clock = int(moment.timestamp()) * 1_000_000
    until = "infinity" if days is None else (moment + datetime.timedelta(days=days)).isoformat()
    warnings = made.plan({"roles": [{"name": "r", "valid_until": until}]}).warnings
    assert len(warnings) == (1 if words else 0)
    if words:
        assert warnings[0].startswith("role r: valid_until 202")
        assert warnings[0].endswith(words)
