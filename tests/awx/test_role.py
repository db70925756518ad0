# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role against a small AWX, through the real modules: what it makes, a second time, in check mode, and mended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from controller import Controller, serving
from playbooks import Playbooks, Run, role_play

PASSWORD = "s3cret-Passw0rd"
#: What something on the way might make a template of, or a number, or cut.
AWKWARD = "s3cret {{ 7 * 7 }} {% if %} {# x #} $HOME 'a' \"b\" \\n \\ #1: [x] é漢 "
KEY = "s3cret-fingerprint-key"

#: In the other organization everything has the same names.
HERE, THERE = "Databases", "Elsewhere"

VALUES: dict[str, Any] = {
    "awx_job_template_organization": HERE,
    "awx_job_template_project": {"scm_url": "https://git.example.com/dba/access.git"},
    "awx_job_template_credential_inputs": {
        "host": "db.example.com",
        "username": "access_admin",
        "password": PASSWORD,
        "fingerprint_key": KEY,
    },
    "awx_job_template_more_credentials": ["Vault of the DBAs"],
    "awx_job_template_execution_environment": {"name": "pg-access", "image": "registry.example.com/pg-access:1"},
    "awx_job_template_databases": ["shop", "crm"],
    "awx_job_template_labels": ["postgresql"],
}


@dataclass
class Step:
    run: Run
    writes: list[tuple[str, str, Any]]


@dataclass
class Story:
    controller: Controller
    playbooks: Playbooks
    address: str

    def step(self, *words: str, **more: Any) -> Step:
        before = len(self.controller.writes)
        run = self.playbooks.role({**VALUES, **more}, *words, address=self.address)
        return Step(run, self.controller.writes[before:])


def _populated() -> Controller:
    """An AWX that somebody else already works with."""
    controller = Controller(["reconcile.yml"])
    organizations = {name: controller.add("organizations", name=name) for name in ("Default", HERE, THERE)}
    vault = controller.add("credential_types", name="Vault", kind="vault", managed=True)
    controller.add("credentials", name="Vault of the DBAs", organization=organizations[HERE], credential_type=vault)
    there = {"name": "PostgreSQL access", "organization": organizations[THERE]}
    controller.add("credentials", **there, credential_type=vault)
    controller.add("inventories", **there)
    project = controller.add("projects", **there, scm_type="git", scm_url="https://git.example.com/theirs.git")
    controller.add("job_templates", **{**there, "name": "PostgreSQL access: plan"}, project=project)
    controller.add("workflow_job_templates", **there)
    return controller


@pytest.fixture(scope="module")
def steps(playbooks: Playbooks) -> dict[str, Step]:
    """What happens, one after the other. The tests look at the single steps."""
    controller = _populated()
    with serving(controller) as address:
        story = Story(controller, playbooks, address)
        steps = {"foreseen": story.step("--check"), "made": story.step("-vvv")}
        steps["again"] = story.step()
        steps["again foreseen"] = story.step("--check")
        template = controller.posted("job_templates", "PostgreSQL access: apply")
        variables = {**json.loads(template["extra_vars"]), "reconcile_require_approval": False}
        controller.change(
            "job_templates", "PostgreSQL access: apply", ask_variables_on_launch=True, extra_vars=json.dumps(variables)
        )
        controller.link("plan", "always_nodes", "apply")
        steps["repair foreseen"] = story.step("--check")
        steps["repaired"] = story.step()
        rotated = {**VALUES["awx_job_template_credential_inputs"], "password": "another"}
        steps["rotated"] = story.step(awx_job_template_credential_inputs=rotated, awx_job_template_update_secrets=True)
    for name, step in steps.items():
        assert step.run.code == 0, f"{name}\n{step.run.output}"
    steps["end"] = Step(Run(0, ""), [("", "", controller)])
    return steps


@pytest.fixture(scope="module")
def controller(steps: dict[str, Step]) -> Controller:
    found: Controller = steps["end"].writes[0][2]
    return found


def test_what_is_made_is_what_was_to_be_made(steps: dict[str, Step], controller: Controller) -> None:
    made = [controller.named(*each) for each in steps["made"].writes]
    prompts = dict.fromkeys(
        ("ask_inventory_on_launch", "ask_labels_on_launch", "ask_limit_on_launch", "ask_scm_branch_on_launch",
         "ask_skip_tags_on_launch", "ask_tags_on_launch", "ask_variables_on_launch"), False,
    )  # fmt: skip
    job_prompts = dict.fromkeys(
        ("ask_credential_on_launch", "ask_diff_mode_on_launch", "ask_execution_environment_on_launch",
         "ask_forks_on_launch", "ask_instance_groups_on_launch", "ask_job_slice_count_on_launch",
         "ask_job_type_on_launch", "ask_timeout_on_launch", "ask_verbosity_on_launch"), False,
    )  # fmt: skip
    template = {
        "organization": HERE, "inventory": f"{HERE}: PostgreSQL access", "project": f"{HERE}: PostgreSQL access",
        "playbook": "reconcile.yml", "execution_environment": f"{HERE}: pg-access", "limit": "", "diff_mode": True,
        "use_fact_cache": False, "allow_simultaneous": False, "become_enabled": False, "job_slice_count": 1,
        "survey_enabled": False, **prompts, **job_prompts,
    }  # fmt: skip
    variables = {
        "reconcile_mode": "additive", "reconcile_max_drops": 0, "reconcile_max_revokes": 500, "reconcile_database": "shop",
    }  # fmt: skip
    node = {"workflow_job_template": f"{HERE}: PostgreSQL access", "type": "workflow_job_template_node"}
    kind = made[1][2]
    assert kind["injectors"]["env"]["PGHOST"] == "{{ host }}"
    assert made == [
        ("POST", "execution_environments", {
            "name": "pg-access", "image": "registry.example.com/pg-access:1", "organization": HERE, "pull": "missing",
            "description": "ansible-core with psycopg, for the access to PostgreSQL databases",
        }),
        ("POST", "credential_types", kind),
        ("POST", "credentials", {
            "name": "PostgreSQL access", "organization": HERE, "credential_type": "PostgreSQL (pg_access.reconcile)",
            "description": "The login that reconciles the access to PostgreSQL databases",
            "inputs": VALUES["awx_job_template_credential_inputs"],
        }),
        ("POST", "projects", {
            "name": "PostgreSQL access", "organization": HERE, "scm_type": "git", "scm_update_on_launch": True,
            "scm_url": "https://git.example.com/dba/access.git",
            "description": "Manifests and playbook for the access to PostgreSQL databases",
        }),
        ("POST", "inventories", {
            "name": "PostgreSQL access", "organization": HERE, "kind": "", "host_filter": None,
            "description":
                "Where the access to PostgreSQL databases is reconciled from, which is the execution environment",
        }),
        ("POST", "hosts", {
            "name": "localhost", "inventory": f"{HERE}: PostgreSQL access", "enabled": True,
            "variables": {
                "ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}",
            },
        }),
        ("POST", "labels", {"name": "postgresql", "organization": HERE}),
        ("POST", "job_templates", {
            **template, "name": "PostgreSQL access: plan", "job_type": "check", "extra_vars": variables,
            "description": "Shows what would change, and changes nothing",
        }),
        ("POST", f"{HERE}: PostgreSQL access: plan/credentials", f"{HERE}: PostgreSQL access"),
        ("POST", f"{HERE}: PostgreSQL access: plan/credentials", f"{HERE}: Vault of the DBAs"),
        ("POST", f"{HERE}: PostgreSQL access: plan/labels", f"{HERE}: postgresql"),
        ("POST", "job_templates", {
            **template, "name": "PostgreSQL access: apply", "job_type": "run",
            "extra_vars": {**variables, "reconcile_require_approval": True},
            "description": "Applies the plan that was approved, and refuses any other",
        }),
        ("POST", f"{HERE}: PostgreSQL access: apply/credentials", f"{HERE}: PostgreSQL access"),
        ("POST", f"{HERE}: PostgreSQL access: apply/credentials", f"{HERE}: Vault of the DBAs"),
        ("POST", f"{HERE}: PostgreSQL access: apply/labels", f"{HERE}: postgresql"),
        ("POST", "workflow_job_templates", {
            "name": "PostgreSQL access", "organization": HERE, "allow_simultaneous": False, "survey_enabled": True,
            "description": "Plan, approval by somebody who has read the plan, and the apply of exactly this plan",
            **prompts,
        }),
        ("POST", f"{HERE}: PostgreSQL access/labels", f"{HERE}: postgresql"),
        ("POST", f"{HERE}: PostgreSQL access/survey_spec", {
            "name": "", "description": "",
            "spec": [
                {
                    "question_name": "Mode", "variable": "reconcile_mode", "type": "multiplechoice", "required": True,
                    "choices": ["additive", "adopt", "authoritative"], "default": "additive",
                    "question_description":
                        "additive only grants; adopt also revokes; authoritative also drops roles and changes owners",
                },
                {
                    "question_name": "Database", "variable": "reconcile_database", "type": "multiplechoice",
                    "required": True, "choices": ["shop", "crm"], "default": "shop",
                    "question_description": "The database whose access is reconciled",
                },
            ],
        }),
        ("POST", "workflow_job_template_nodes", {
            **node, "identifier": "plan", "unified_job_template": f"{HERE}: PostgreSQL access: plan",
        }),
        ("POST", "workflow_job_template_nodes", {**node, "identifier": "approve"}),
        ("POST", "approve/create_approval_template", {
            "name": "PostgreSQL access: approve the plan", "timeout": 86400,
            "description": "Read the plan first. What is approved is exactly what its job shows.",
        }),
        ("POST", "workflow_job_template_nodes", {
            **node, "identifier": "apply", "unified_job_template": f"{HERE}: PostgreSQL access: apply",
        }),
        ("POST", "plan/success_nodes", "approve"),
        ("POST", "approve/success_nodes", "apply"),
    ]  # fmt: skip


def test_a_second_run_changes_nothing(steps: dict[str, Step]) -> None:
    assert steps["again"].run.changed == {}
    assert steps["again"].writes == []


def test_check_mode_writes_nothing_and_foresees(steps: dict[str, Step]) -> None:
    for name in ("foreseen", "again foreseen", "repair foreseen"):
        assert steps[name].writes == []
    first, made = steps["foreseen"].run.changed, steps["made"].run.changed
    # What refers to something that is not there cannot be looked at, and is summed up.
    rest = "Say what check mode could not look at"
    assert set(first) - {rest} == {
        "Execution environment", "Credential type", "Project", "Inventory", "Labels"
    } <= set(made)  # fmt: skip
    assert rest in first and rest not in made
    assert steps["again foreseen"].run.changed == {}
    assert steps["repair foreseen"].run.changed == steps["repaired"].run.changed


def test_what_somebody_opened_is_closed_again(steps: dict[str, Step], controller: Controller) -> None:
    assert steps["repaired"].run.changed == {"Job template of the apply": [], "Order of the steps": ["plan"]}
    template = controller.posted("job_templates", "PostgreSQL access: apply")
    assert template["ask_variables_on_launch"] is False
    assert json.loads(template["extra_vars"])["reconcile_require_approval"] is True
    assert ("POST", "plan/always_nodes", "apply") in [controller.named(*each) for each in steps["repaired"].writes]
    assert controller.linked("plan", "always_nodes") == []
    assert controller.linked("plan", "success_nodes") == ["approve"]


def test_a_new_password_is_sent_when_secrets_are_to_be_updated(steps: dict[str, Step], controller: Controller) -> None:
    assert steps["rotated"].run.changed == {"Credential": []}
    assert controller.posted("credentials", "PostgreSQL access")["inputs"]["password"] == "another"


def test_nothing_of_the_other_organization_is_touched(controller: Controller) -> None:
    before = _populated()
    for kind, name in (
        ("credentials", "PostgreSQL access"), ("inventories", "PostgreSQL access"), ("projects", "PostgreSQL access"),
        ("job_templates", "PostgreSQL access: plan"), ("workflow_job_templates", "PostgreSQL access"),
    ):  # fmt: skip
        assert controller.posted(kind, name, THERE) == before.posted(kind, name, THERE)


def test_no_secret_is_shown(steps: dict[str, Step]) -> None:
    assert "db.example.com" in json.dumps(steps["made"].writes)
    for step in steps.values():
        assert PASSWORD not in step.run.output
        assert KEY not in step.run.output


# Input


def test_bad_input_stops_before_anything_is_made(playbooks: Playbooks) -> None:
    """What can be wrong is a matter of the unit tests; here it is said of the real modules, all at once."""
    values = {
        "awx_job_template_project": {"scm_ulr": "https://git.example.com/dba/access.git"},
        "awx_job_template_projekt": {},
        "awx_job_template_execution_environment": {"image": "x", "pull": "allways"},
        "awx_job_template_credential_inputs": {"host": "db", "pasword": "s3cret-text", "password": "s3cret\ntext"},
        "awx_job_template_modes": ["additive", "off"],
        "awx_job_template_databases": ["shop", "0123", "="],
        "awx_job_template_hosts": {},
        "awx_job_template_extra_vars": {"reconcile_max_drop": 1},
        "awx_job_template_approval": {"timout": 60},
        "awx_job_template_credential_type": {"kinds": "cloud"},
        "awx_job_template_inventory": {"variable": {}},
        "awx_job_template_plan": {"job_type": "run", "instance_group": ["a"]},
        "awx_job_template_apply": {"extra_vars": {"reconcile_require_approval": False}, "controller_host": "x"},
        "awx_job_template_workflow": {"notification_template_approvals": ["DBAs"]},
    }
    controller = _populated()
    with serving(controller) as address:
        step = Story(controller, playbooks, address).step("-vvv", **values)
    assert (step.run.code, step.writes, controller.reads) == (2, [], [])
    said = " ".join(step.run.output.split())
    for message in (
        "project.scm_ulr: awx.awx.project has no such option; did you mean scm_url?",
        "project.scm_url: it is not given",
        "projekt: the role has no such variable; did you mean awx_job_template_project?",
        "execution_environment.name: it is not given",
        "execution_environment.pull: it is 'allways', and has to be one of always, missing, never",
        "credential_inputs.pasword: the credential type has no such key; did you mean password?",
        "credential_inputs.password: it has more than one line",
        "credential_inputs.username: it is not given or empty",
        "modes[1]: it is 'off', and has to be one of additive, adopt, authoritative",
        "databases[1]: '0123' would reach ansible-core 2.19",
        "databases[2]: '=' would reach ansible-core 2.19",
        "hosts: it is empty",
        "extra_vars.reconcile_max_drop: the role reconcile has no such variable; did you mean reconcile_max_drops?",
        "approval.timout: the approval has no such key; did you mean timeout?",
        "credential_type.kinds: awx.awx.credential_type has no such option; did you mean kind?",
        "inventory.variable: awx.awx.inventory has no such option; did you mean variables?",
        "plan.job_type: it is 'run'",
        "plan.instance_group: awx.awx.job_template has no such option; did you mean instance_groups?",
        "apply.extra_vars.reconcile_require_approval: it is false",
        "workflow.notification_template_approvals: awx.awx.workflow_job_template has no such option",
    ):
        assert f"awx_job_template_{message}" in said, message
    assert "s3cret" not in step.run.output


def test_a_project_in_a_folder_and_secrets_with_everything_in_them(playbooks: Playbooks, tmp_path: Path) -> None:
    """A manual project cannot be updated, and ansible-core before 2.19 decrypts late."""
    password = tmp_path / "vault"
    password.write_text("of the vault", encoding="utf-8")
    program = Path(sys.executable).with_name("ansible-vault")
    encrypted = subprocess.run(
        [program, "encrypt_string", "--vault-password-file", password, AWKWARD, "--name", "password"],
        check=True, capture_output=True, text=True, env={**os.environ, "HOME": str(tmp_path)},
    ).stdout  # fmt: skip
    values = {**VALUES, "awx_job_template_project": {"scm_type": "manual", "local_path": "access"}}
    del values["awx_job_template_credential_inputs"]
    play = yaml.safe_dump(role_play(values), sort_keys=False, width=1000)
    login = (
        "    awx_job_template_credential_inputs:\n      host: db.example.com\n      username: access_admin\n"
        "      fingerprint_key: \"{{ lookup('ansible.builtin.env', 'KEY') }}\"\n"
    )
    indented = "".join(f"      {line}\n" for line in encrypted.splitlines())
    play = play.replace("  vars:\n", f"  vars:\n{login}{indented}", 1)
    controller = _populated()
    with serving(controller) as address:
        for writes in (True, False):
            before = len(controller.writes)
            run = playbooks.run(
                play, "--vault-password-file", str(password), "-vvv", address=address, variables={"KEY": AWKWARD}
            )
            assert run.code == 0, run.output
            assert "s3cret" not in run.output
            assert (len(controller.writes) > before) is writes
    inputs = controller.posted("credentials", "PostgreSQL access", HERE)["inputs"]
    assert (inputs["password"], inputs["fingerprint_key"]) == (AWKWARD, AWKWARD)
    project = controller.posted("projects", "PostgreSQL access", HERE)
    assert (project["scm_type"], project["local_path"], project["scm_update_on_launch"]) == ("", "access", False)


def test_a_machine_without_awx_awx_says_so(collections: Path, tmp_path: Path) -> None:
    (tmp_path / "ansible_collections").mkdir()
    (tmp_path / "ansible_collections" / "pg_access").symlink_to(collections / "ansible_collections" / "pg_access")
    run = Playbooks(tmp_path, tmp_path).role(VALUES, address="http://127.0.0.1:1")
    assert run.code == 2 and "awx.awx, through which the role works, is not installed" in run.output, run.output
