# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the other tools are told is the end state of the scenario: each of their files is read as the tool reads it.

That they do it is for the benchmark to see, which compares catalogs after each run.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import endstate
import pytest
import yaml
from rivals import Command, Rival, Target, all_rivals, community_postgresql, fetching, ldap2pg, pgroles, pgsesame
from scenario import FUNCTIONS, PROFILES, VIEWS, Scenario

SCENARIO = Scenario(7, 12)
SIZES = [Scenario(4, 11), SCENARIO, Scenario(100, 10)]


class Told:
    """Collects what a file says, as the rows of an end state."""

    def __init__(self, scenario: Scenario) -> None:
        self.rows: set[endstate.Row] = set()
        self.schemas = set(scenario.schema_names)
        self._privileges: dict[tuple[str, str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._names = {
            "schema": [""],
            "table": [f"t{number}" for number in range(1, scenario.tables + 1)],
            "sequence": [f"t{number}_id_seq" for number in range(1, scenario.tables + 1)],
            "view": [f"v{number}" for number in range(1, VIEWS + 1)],
            "function": [f"f{number}(a integer, b text)" for number in range(1, FUNCTIONS + 1)],
        }

    def role(self, name: str, attributes: str = "") -> None:
        self.rows.add(("role", name, attributes))

    def member(self, group: str, member: str) -> None:
        self.rows.add(("membership", group, member, ""))

    def grant(self, role: str, privileges: list[str], kind: str, schema: str, names: list[str] | None = None) -> None:
        """A privilege on these objects of a kind, or on all of it that the schema has."""
        assert schema in self.schemas
        for name in self._names[kind] if names is None else names:
            assert name in self._names[kind]
            self._privileges[kind, schema, name][role].update(privileges)

    def state(self) -> endstate.EndState:
        for (kind, schema, name), rights in self._privileges.items():
            entries = " ".join(f"{role}={','.join(sorted(names))}" for role, names in sorted(rights.items()))
            self.rows.add((kind, schema, name, entries))
        return frozenset(self.rows)


def target(folder: Path) -> Target:
    return Target("/run/pg", 5433, "postgres", "bench", 18, folder)


def check(told: Told, scenario: Scenario) -> None:
    assert endstate.differences(endstate.expected(scenario), told.state()) == []


@pytest.mark.parametrize("scenario", SIZES, ids=lambda scenario: scenario.name)
def test_pgsesame(scenario: Scenario) -> None:
    told = Told(scenario)
    for name, principal in pgsesame.specification(scenario)["principals"].items():
        told.role(name, "LOGIN" if principal["type"] == "user" else "")
        for group in principal.get("member_of", []):
            told.member(group, name)
        for kind, rights in principal.get("privileges", {}).items():
            for privilege, patterns in rights.items():
                for pattern in patterns:
                    schema, *star = pattern.split(".")
                    assert star == ([] if kind == "schemas" else ["*"])
                    told.grant(name, [privilege.upper()], kind[:-1], schema)
    check(told, scenario)


@pytest.mark.parametrize("scenario", SIZES, ids=lambda scenario: scenario.name)
def test_pgroles(scenario: Scenario) -> None:
    manifest, told = pgroles.manifest(scenario), Told(scenario)
    for role in manifest["roles"]:
        told.role(role["name"], "LOGIN" if role["login"] else "")
    for schema in manifest["schemas"]:
        for profile in schema["profiles"]:
            role = f"{schema['name']}-{profile}"
            told.role(role)
            for grant in manifest["profiles"][profile]["grants"]:
                told.grant(role, grant["privileges"], grant["object"]["type"], schema["name"])
    for membership in manifest["memberships"]:
        for member in membership["members"]:
            told.member(membership["role"], member["name"])
    check(told, scenario)


@pytest.mark.parametrize("scenario", SIZES, ids=lambda scenario: scenario.name)
def test_ldap2pg(scenario: Scenario) -> None:
    configuration, told = ldap2pg.configuration(scenario, "bench"), Told(scenario)
    assert configuration["postgres"]["databases_query"] == ["bench"]
    assert set(configuration["postgres"]["schemas_query"]) == told.schemas
    kinds = {
        "tables": ("table", "view"),
        "sequences": ("sequence",),
        "functions": ("function",),
        "schemas": ("schema",),
    }
    for rule in configuration["sync_map"]:
        for role in rule.get("roles", []):
            for name in role.get("names") or [role["name"]]:
                told.role(name, "LOGIN" if role["options"] == "LOGIN" else "")
                for group in role.get("parents", []):
                    told.member(group, name)
        for grant in rule.get("grant", []):
            assert grant["database"] == "bench"
            for name in configuration["privileges"][grant["privilege"]]:
                # __select_on_all_tables__, __usage_on_schemas__ or delete_on_plain_tables
                verb, words = name.strip("_").split("_on_")
                kind = words.removeprefix("all_").removeprefix("plain_")
                affected = ("table",) if words == "plain_tables" else kinds[kind]
                for each in affected:
                    told.grant(grant["role"], [verb.upper()], each, grant["schema"])
    check(told, scenario)


def test_custom_privileges_of_ldap2pg_name_what_their_name_says() -> None:
    found = {
        name: rule
        for name, rule in ldap2pg.configuration(SCENARIO, "bench")["privileges"].items()
        if isinstance(rule, dict)
    }
    assert set(found) == {f"{verb}_on_plain_tables" for verb in ("insert", "update", "delete")}
    for name, rule in found.items():
        verb = name.split("_")[0].upper()
        # As the tool fills it in: with quoted names.
        filled = rule["grant"].format(database='"d"', schema='"s000"', owner='"o"', role='"s000-app"')
        assert f"GRANT {verb} ON TABLE ' ||" in filled
        assert "' TO \"s000-app\"'" in filled
        assert "'\"s000\"'::regnamespace" in filled
        assert f"privilege_type = '{verb}'" in rule["inspect"]
        assert f"REVOKE {verb} ON TABLE ' ||" in rule["revoke"].format(database="", schema="", owner="", role="")


@pytest.mark.parametrize("scenario", SIZES, ids=lambda scenario: scenario.name)
def test_community_postgresql(scenario: Scenario) -> None:
    items, told = community_postgresql.all_items(scenario), Told(scenario)
    assert items.count == 18 * scenario.schemas
    for name in items.groups:
        told.role(name)
    for name in items.logins:
        told.role(name, "LOGIN")
    for membership in items.memberships:
        for member in membership["members"]:
            told.member(membership["group"], member)
    for item in items.privileges:
        # Its "table" is what GRANT calls so: tables and views.
        kinds = ["table", "view"] if (item["type"], item["objs"]) == ("table", "ALL_IN_SCHEMA") else [item["type"]]
        for role in item["roles"].split(","):
            for kind in kinds:
                names = None if item["objs"] == "ALL_IN_SCHEMA" or kind == "schema" else item["objs"].split(",")
                schema = item["objs"] if kind == "schema" else item["schema"]
                told.grant(role, item["privs"].split(","), kind, schema, names)
    check(told, scenario)


@pytest.mark.parametrize(
    "scenario", [Scenario(4, 11), Scenario(20, 50), Scenario(100, 100)], ids=lambda scenario: scenario.name
)
def test_the_sample_is_a_mix_in_the_proportion_of_the_whole_and_stands_alone(scenario: Scenario) -> None:
    whole = community_postgresql.all_items(scenario)
    part = whole.sample(60)
    assert part.count == 60
    for kind in ("groups", "logins", "memberships", "privileges"):
        exact = 60 * len(getattr(whole, kind)) / whole.count
        assert abs(len(getattr(part, kind)) - exact) < 1
    there = {*part.groups, *part.logins}
    for membership in part.memberships:
        assert membership["members"]
        assert {membership["group"], *membership["members"]} <= there
    for item in part.privileges:
        assert item["roles"]
        assert set(item["roles"].split(",")) <= there


def test_a_playbook_of_all_items(tmp_path: Path) -> None:
    rival = community_postgresql.CommunityPostgresql(sample=None)
    rival.write(SCENARIO, target(tmp_path))
    (play,) = yaml.safe_load((tmp_path / "roles.yml").read_text())
    items = community_postgresql.all_items(SCENARIO)
    assert [task["loop"] for task in play["tasks"]] == [items.groups, items.logins, items.memberships, items.privileges]
    assert play["module_defaults"]["community.postgresql.postgresql_privs"] == {
        "login_unix_socket": "/run/pg",
        "login_port": 5433,
        "login_user": "postgres",
        "login_db": "bench",
    }
    command = rival.apply(SCENARIO, target(tmp_path))
    assert (command.scale, command.items, command.check_end_state) == (1.0, 0, True)


def test_a_sample_is_scaled_but_not_the_time_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rival = community_postgresql.CommunityPostgresql()
    monkeypatch.setattr(rival, "_seconds", lambda command: 2.0)
    rival.write(SCENARIO, target(tmp_path))
    command = rival.apply(SCENARIO, target(tmp_path))
    assert (command.scale, command.fixed, command.items, command.check_end_state) == (126 / 60, 2.0, 60, False)
    assert command.shown(12.0) == pytest.approx(2 + 10 * 126 / 60)
    assert command.shown(1.5) == 2.0
    # A scenario smaller than the sample is run as a whole.
    rival.write(Scenario(2, 5), target(tmp_path))
    small = rival.apply(Scenario(2, 5), target(tmp_path))
    assert (small.scale, small.items, small.check_end_state) == (1.0, 36, True)


def test_seconds_are_shown_as_measured() -> None:
    assert Command(["x"], {}, Path()).shown(1.25) == 1.25


@pytest.mark.parametrize(
    "rival", [rival for rival in all_rivals() if rival.name != "community.postgresql"], ids=lambda rival: rival.name
)
def test_commands_read_what_was_written(rival: Rival, tmp_path: Path) -> None:
    rival.write(SCENARIO, target(tmp_path))
    (written,) = tmp_path.iterdir()
    assert isinstance(yaml.safe_load(written.read_text()), dict)
    plan = rival.plan(SCENARIO, target(tmp_path))
    assert plan is not None
    for command in (rival.idle(SCENARIO, target(tmp_path)), plan, rival.apply(SCENARIO, target(tmp_path))):
        assert written.name in command.arguments
        assert command.cwd == tmp_path
        assert command.check_end_state
        assert "/run/pg" in " ".join(command.environment.values()).replace("%2F", "/")
        assert "5433" in " ".join(command.environment.values())
    assert plan.arguments != rival.apply(SCENARIO, target(tmp_path)).arguments


@pytest.mark.parametrize("rival", all_rivals(), ids=lambda rival: rival.name)
def test_a_tool_that_cannot_be_had_says_why(
    rival: Rival, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "fails"
    program.write_text("#!/bin/sh\necho no answer from registry.example >&2\nexit 7\n")
    program.chmod(0o755)
    (tmp_path / "cargo").symlink_to(program)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert rival.install(tmp_path / "cache") is None
    assert rival.why.startswith("The ")
    assert "failed with exit code 7." in rival.why
    assert "registry.example" not in rival.why
    assert "registry.example" in capsys.readouterr().err


def test_the_same_packages_are_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, ...]] = []

    def run(what: str, *command: str | Path, **more: Any) -> str:
        ran.append(tuple(str(word) for word in command))
        (tmp_path / "tool").mkdir(exist_ok=True)
        return ""

    monkeypatch.setattr(fetching, "run", run)
    for _again in range(2):
        assert fetching.environment(tmp_path / "tool", ["a", "b"], ["--no-deps", "c"]) == tmp_path / "tool" / "bin"
    assert [command[-2:] for command in ran[1:]] == [("a", "b"), ("--no-deps", "c")]
    fetching.environment(tmp_path / "tool", ["a"])
    assert ran[-1][-1] == "a"


def test_profiles_are_those_that_the_tools_can_be_told() -> None:
    """The files of two tools rest on it: whoever may read tables may read views, and no view gets more."""
    for rights in PROFILES.values():
        assert set(rights["view"]) <= set(rights["table"])
        assert rights["view"] == ["SELECT"]
