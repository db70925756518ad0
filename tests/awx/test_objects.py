# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role's objects as data: options that the awx.awx modules have, dicts that AWX takes, and what has to be in them."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rules
import yaml
from ansible.module_utils.common.arg_spec import ModuleArgumentSpecValidator
from playbooks import Playbooks

ROOT = Path(__file__).resolve().parents[2]
ROLE = ROOT / "roles" / "awx_job_template"

#: With everything that a user can give.
FULL: dict[str, Any] = {
    "awx_job_template_organization": "Databases",
    "awx_job_template_name": "Shop access",
    "awx_job_template_project": {"scm_url": "https://git.example.com/dba/access.git", "scm_branch": "main"},
    "awx_job_template_execution_environment": {"name": "pg-access", "image": "registry.example.com/pg-access:1"},
    "awx_job_template_credential": "Shop login",
    "awx_job_template_credential_inputs": {
        "host": "db.example.com",
        "username": "access_admin",
        "password": "a secret",
        "fingerprint_key": "another secret",
        "port": 5433,
        "sslmode": "",
        "ca": None,
    },
    "awx_job_template_update_secrets": True,
    "awx_job_template_more_credentials": ["Vault"],
    "awx_job_template_inventory": {"name": "Shop clusters", "prevent_instance_group_fallback": True},
    "awx_job_template_hosts": {"one": {"shard": 1}, "two": {}},
    "awx_job_template_playbook": "shop.yml",
    "awx_job_template_limit": "one",
    "awx_job_template_labels": ["postgresql", "shop"],
    "awx_job_template_modes": ["adopt", "authoritative"],
    "awx_job_template_databases": ["shop", "crm"],
    "awx_job_template_max_drops": 1,
    "awx_job_template_max_revokes": 20,
    "awx_job_template_extra_vars": {"reconcile_lock_timeout": 60},
    "awx_job_template_approval": {"timeout": 3600},
    "awx_job_template_credential_type": {"name": "PostgreSQL login"},
    "awx_job_template_plan": {"extra_vars": {"reconcile_rehearse": True}, "timeout": 600},
    "awx_job_template_apply": {"extra_vars": {"reconcile_max_drops": 2}, "instance_groups": ["production"]},
    "awx_job_template_workflow": {"notification_templates_approvals": ["DBAs"]},
}
LEAST: dict[str, Any] = {"awx_job_template_project": {"name": "Access"}}


@pytest.fixture(scope="module", params=["least", "full"])
def given(request: pytest.FixtureRequest) -> dict[str, Any]:
    return LEAST if request.param == "least" else FULL


@pytest.fixture(scope="module")
def objects(given: dict[str, Any], playbooks: Playbooks) -> dict[str, Any]:
    return playbooks.objects(given)


@pytest.fixture(scope="module")
def full(playbooks: Playbooks) -> dict[str, Any]:
    return playbooks.objects(FULL)


# The modules' own argument specs


class _Caught(Exception):
    """In the place of what a module would do with its arguments."""


def argument_problems(collections: Path, module: str, arguments: dict[str, Any]) -> list[str]:
    """What the module of awx.awx says to arguments."""
    if str(collections) not in sys.path:
        sys.path.insert(0, str(collections))
    program = importlib.import_module(f"ansible_collections.awx.awx.plugins.modules.{module}")
    caught: dict[str, Any] = {}

    def stub(**words: Any) -> None:
        caught.update(words)
        raise _Caught

    original = program.ControllerAPIModule
    program.ControllerAPIModule = stub
    try:
        with pytest.raises(_Caught):
            program.main()
    finally:
        program.ControllerAPIModule = original
    rules_of = {name: caught[name] for name in ("mutually_exclusive", "required_if") if name in caught}
    messages: list[str] = (
        ModuleArgumentSpecValidator(caught["argument_spec"], **rules_of).validate(arguments).error_messages
    )
    return messages


def as_arguments(objects: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects by the module that makes them."""
    yield "credential_type", objects["credential_type"]
    yield "credential", objects["own_credential"]
    yield "project", objects["project"]
    yield "inventory", objects["inventory"]
    if "name" in objects["execution_environment"]:
        yield "execution_environment", objects["execution_environment"]
    yield "job_template", objects["plan"]
    yield "job_template", objects["apply"]
    yield "workflow_job_template", objects["workflow"]
    workflow = {
        "workflow_job_template": objects["workflow"]["name"],
        "organization": objects["workflow"]["organization"],
    }
    for node in (*objects["nodes"], *objects["links"]):
        yield "workflow_job_template_node", {**workflow, **node}


def test_every_object_fits_its_module(objects: dict[str, Any], collections: Path) -> None:
    found = {module: argument_problems(collections, module, arguments) for module, arguments in as_arguments(objects)}
    assert len(found) >= 7
    assert {module: problems for module, problems in found.items() if problems} == {}


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        ("job_template", {"name": "x", "job_typo": "run"}, "job_typo"),
        ("job_template", {"name": "x", "job_type": "scan"}, "job_type"),
        ("credential", {"name": "x"}, "credential_type"),
        ("workflow_job_template_node", {"workflow": "w", "identifier": "x"}, "any of"),
        ("workflow_job_template_node",
         {"workflow": "w", "identifier": "x", "unified_job_template": "a", "approval_node": {}}, "mutually exclusive"),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_module_is_noticed(
    module: str, arguments: dict[str, Any], message: str, collections: Path
) -> None:
    assert message in "\n".join(argument_problems(collections, module, arguments))


# What the modules pass on unseen


def test_awx_takes_every_free_dict(objects: dict[str, Any]) -> None:
    assert rules.credential_type(objects["credential_type"]) == []
    fields = objects["credential_type"]["inputs"]["fields"]
    assert rules.credential_inputs(objects["own_credential"]["inputs"], fields) == []
    assert rules.survey(objects["workflow"]["survey_spec"]) == []
    assert rules.variables(objects["host_variables"]) == []
    for name in ("plan", "apply"):
        assert rules.variables(objects[name]["extra_vars"]) == []
    for node in objects["nodes"]:
        # No template asks for anything at launch.
        assert rules.node(node, {}) == []
        if "approval_node" in node:
            assert rules.approval(node["approval_node"]) == []


def test_what_the_user_gives_is_in_the_objects(full: dict[str, Any]) -> None:
    assert full["credential_type"]["name"] == full["own_credential"]["credential_type"] == "PostgreSQL login"
    assert full["own_credential"]["name"] == "Shop login"
    assert full["own_credential"]["update_secrets"] is True
    # AWX takes only texts, and makes something else of an empty choice.
    given = {name: value for name, value in FULL["awx_job_template_credential_inputs"].items() if value}
    assert full["own_credential"]["inputs"] == {**given, "port": "5433"}
    assert full["project"]["scm_branch"] == "main"
    for name, variables in (
        ("plan", {"reconcile_max_drops": 1, "reconcile_rehearse": True}),
        ("apply", {"reconcile_max_drops": 2, "reconcile_require_approval": True}),
    ):
        template = full[name]
        assert template["name"] == f"Shop access: {name}"
        assert template["credentials"] == ["Shop login", "Vault"]
        assert (template["inventory"], template["project"]) == ("Shop clusters", "Shop access")
        assert (template["playbook"], template["limit"]) == ("shop.yml", "one")
        assert (template["execution_environment"], template["labels"]) == ("pg-access", ["postgresql", "shop"])
        common = {
            "reconcile_mode": "adopt", "reconcile_database": "shop", "reconcile_lock_timeout": 60,
            "reconcile_max_revokes": 20,
        }  # fmt: skip
        assert template["extra_vars"] == {**common, **variables}
    assert full["apply"]["instance_groups"] == ["production"]
    assert full["workflow"]["notification_templates_approvals"] == ["DBAs"]
    mode, database = full["workflow"]["survey_spec"]["spec"]
    assert (mode["choices"], mode["default"]) == (["adopt", "authoritative"], "adopt")
    assert (database["choices"], database["default"]) == (["shop", "crm"], "shop")
    approval = full["nodes"][1]["approval_node"]
    assert (approval["name"], approval["timeout"]) == ("Shop access: approve the plan", 3600)
    organizations = {
        arguments["organization"] for _module, arguments in as_arguments(full) if "organization" in arguments
    }
    assert organizations == {"Databases"}


# What has to be so


def test_planning_and_applying_are_two_templates_that_differ_in_nothing_else(objects: dict[str, Any]) -> None:
    plan, apply = objects["plan"], objects["apply"]
    assert (plan["job_type"], plan["diff_mode"]) == ("check", True)
    assert (apply["job_type"], apply["diff_mode"]) == ("run", True)
    assert apply["extra_vars"]["reconcile_require_approval"] is True
    assert "reconcile_require_approval" not in plan["extra_vars"]


def test_extra_variables_are_those_of_the_role_that_runs(objects: dict[str, Any]) -> None:
    specs = yaml.safe_load((ROOT / "roles/reconcile/meta/argument_specs.yml").read_text(encoding="utf-8"))
    known = {*specs["argument_specs"]["main"]["options"], "reconcile_require_approval"}
    for name in ("plan", "apply"):
        assert set(objects[name]["extra_vars"]) <= known
    assert {question["variable"] for question in objects["workflow"]["survey_spec"]["spec"]} <= known


def test_brakes_hold_by_default(playbooks: Playbooks) -> None:
    made = playbooks.objects(LEAST)
    for name in ("plan", "apply"):
        assert made[name]["extra_vars"]["reconcile_max_drops"] == 0
        assert made[name]["extra_vars"]["reconcile_max_revokes"] == 500


def test_no_job_starts_from_the_facts_of_another_or_beside_it(objects: dict[str, Any]) -> None:
    for name in ("plan", "apply"):
        assert objects[name]["use_fact_cache"] is False
        assert objects[name]["allow_simultaneous"] is False
        assert objects[name]["job_slice_count"] == 1
    assert objects["workflow"]["allow_simultaneous"] is False


def test_a_launch_can_only_answer_the_survey(objects: dict[str, Any], collections: Path) -> None:
    """Every prompt that a module knows is switched off: an omitted one would keep what somebody switched on."""
    folder = collections / "ansible_collections" / "awx" / "awx" / "plugins" / "modules"
    for module, names in (("job_template", ("plan", "apply")), ("workflow_job_template", ("workflow",))):
        known = set(re.findall(r"^        (ask_\w+)=dict", (folder / f"{module}.py").read_text(encoding="utf-8"), re.M))
        assert len(known) > 5
        for name in names:
            assert {prompt: objects[name].get(prompt) for prompt in known} == dict.fromkeys(known, False)
    assert objects["plan"]["survey_enabled"] is False
    assert objects["apply"]["survey_enabled"] is False


def test_the_survey_asks_for_nothing_that_gets_in_the_way_of_the_approval(objects: dict[str, Any]) -> None:
    survey = objects["workflow"]["survey_spec"]
    asked = {question["variable"] for question in survey["spec"]}
    assert {"reconcile_mode"} <= asked <= {"reconcile_mode", "reconcile_database"}
    assert rules.answers(survey) == []


def test_only_the_approval_leads_to_the_apply(objects: dict[str, Any]) -> None:
    links = {node["identifier"]: node for node in objects["links"]}
    assert set(links) == {"plan", "approve"}
    edges = [
        (name, field, after)
        for name, node in links.items()
        for field in ("success_nodes", "always_nodes", "failure_nodes")
        for after in node[field]
    ]
    assert edges == [("plan", "success_nodes", "approve"), ("approve", "success_nodes", "apply")]


def test_no_secret_is_an_extra_variable_or_shown(objects: dict[str, Any]) -> None:
    kind = objects["credential_type"]
    secret = {field["id"] for field in kind["inputs"]["fields"] if field.get("secret")}
    assert secret == {"password", "fingerprint_key"}
    assert set(kind["injectors"]) == {"env", "file"}
    text = yaml.safe_dump([objects[name] for name in objects if name != "own_credential"])
    assert "a secret" not in text and "another secret" not in text


def test_an_empty_answer_is_the_safe_one(objects: dict[str, Any]) -> None:
    (mode,) = [field for field in objects["credential_type"]["inputs"]["fields"] if "choices" in field]
    assert mode["id"] == "sslmode"
    assert mode["choices"][0] == mode["default"] == "verify-full"


def test_what_is_required_is_asked_for(objects: dict[str, Any]) -> None:
    inputs = objects["credential_type"]["inputs"]
    assert set(inputs["required"]) <= {field["id"] for field in inputs["fields"]}
    for field in inputs["fields"]:
        # AWX adds the type; left out, every later run in check mode would find a difference.
        assert field["type"] == "string"
        assert field["label"]


# The role's own documentation


def test_every_variable_is_documented() -> None:
    specs = yaml.safe_load((ROLE / "meta/argument_specs.yml").read_text(encoding="utf-8"))
    options = specs["argument_specs"]["main"]["options"]
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text(encoding="utf-8"))
    used: set[str] = set()
    for path in (ROLE / "tasks/main.yml", ROLE / "tasks/objects.yml", ROLE / "vars/main.yml"):
        text = path.read_text(encoding="utf-8").replace("!unsafe ", "")
        used |= set(re.findall(r"(?<![\w])awx_job_template_\w+", text))
    assert used == set(options)
    readme = (ROLE / "README.md").read_text(encoding="utf-8")
    for name, option in options.items():
        assert option.get("default") == defaults.get(name), name
        assert f"`{name}`" in readme, name
    assert set(options) - set(defaults) == {"awx_job_template_credential_inputs"}
    assert set(FULL) == set(options), "the full example has everything"
