# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any, Dict, List

import pytest
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.awx.documented import reconcile_variables
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.awx.judge import Known, problems_of

NAMED: Dict[str, Any] = {"name": {"type": "str", "required": True}, "new_name": {"type": "str"}}
STATE: Dict[str, Any] = {"state": {"type": "str", "choices": ["present", "absent", "exists"]}}
TEMPLATE: Dict[str, Any] = {
    **NAMED,
    **STATE,
    "job_type": {"choices": ["run", "check"]},
    "verbosity": {"type": "int", "choices": [0, 1, 2]},
    "extra_vars": {"type": "dict"},
    "instance_groups": {"type": "list", "elements": "str"},
    "diff_mode": {"type": "bool", "aliases": ["diff_mode_enabled"]},
    "ask_variables_on_launch": {"type": "bool", "aliases": ["ask_extra_vars"]},
    "timeout": {"type": "int"},
}
KNOWN = Known(
    modules={
        "project": {
            **NAMED, **STATE, "scm_url": {"type": "str"}, "scm_type": {"choices": ["manual", "git", "archive"]},
            "local_path": {"type": "str"}, "scm_update_on_launch": {"type": "bool"}, "interval": {"type": "float"},
        },
        "execution_environment": {**NAMED, "image": {"type": "str"}},
        "credential_type": {**NAMED, "kind": {"choices": ["cloud", "net", "vault"]}, "inputs": {"type": "dict"},
                            "injectors": {"type": "dict"}},
        "inventory": {**NAMED, "variables": {"type": "dict"}},
        "job_template": TEMPLATE,
        "workflow_job_template": {**TEMPLATE, "survey_spec": {"type": "dict", "aliases": ["survey"]},
                                  "workflow_nodes": {"type": "list", "aliases": ["schema"]}},
    },
    access=["controller_host", "tower_host"],
    variables=["awx_job_template_" + name for name in ("project", "databases", "modes", "plan")],
    reconcile=["reconcile_mode", "reconcile_max_drops", "reconcile_connection", "reconcile_passwords"],
)  # fmt: skip
OWN: Dict[str, Any] = {
    "inputs": {
        "fields": [
            {"id": "host"}, {"id": "port"}, {"id": "username"}, {"id": "password", "secret": True},
            {"id": "sslmode", "choices": ["verify-full", "require"]}, {"id": "ca", "multiline": True},
            {"id": "fingerprint_key", "secret": True},
        ],
        "required": ["host", "username"],
    }
}  # fmt: skip
PEM = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
LOGIN: Dict[str, Any] = {"host": "db", "username": "admin"}
GIVEN: Dict[str, Any] = {
    "organization": "Default",
    "name": "Access",
    "project": {"name": "Access"},
    "execution_environment": {},
    "credential": "Access",
    "credential_inputs": None,
    "update_secrets": False,
    "more_credentials": [],
    "hosts": {"localhost": {}},
    "playbook": "reconcile.yml",
    "limit": "",
    "labels": [],
    "modes": ["additive", "adopt"],
    "databases": [],
    "max_drops": 0,
    "max_revokes": 500,
    "extra_vars": {},
    "approval": {},
    "credential_type": {},
    "inventory": {},
    "plan": {},
    "apply": {},
    "workflow": {},
}


class Encrypted:
    """What ansible-core 2.16 has for a text that Ansible Vault encrypted: no text, until somebody asks for it."""

    __ENCRYPTED__ = True

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return self._text == other

    def __hash__(self) -> int:
        return hash(self._text)


def problems(**values: Any) -> List[str]:
    return problems_of({**GIVEN, **values}, OWN, [], KNOWN)


#: What is given, and all that is said about it.
WRONG: List[Any] = [
    # Texts
    ({"organization": ""}, ["organization: it is '', and has to be a text that is not empty"]),
    ({"name": 5}, ["name: it is 5, and has to be a text that is not empty"]),
    ({"name": "x" * 500}, ["name: it has 500 characters, and AWX takes 512"]),
    ({"credential": None}, ["credential: it is nothing, and has to be a text"]),
    ({"playbook": "/srv/reconcile.yml"}, ["playbook: '/srv/reconcile.yml' has to be a path in the project"]),
    ({"playbook": "../reconcile.yml"}, ["playbook: '../reconcile.yml' has to be a path in the project"]),
    ({"limit": ["a"]}, ["limit: it is ['a'], and has to be a text"]),
    ({"update_secrets": "maybe"}, ["update_secrets: it is 'maybe', and has to be true or false"]),
    # Options of modules
    ({"project": "Access"}, ["project: it is a text, and has to be a dict with options of awx.awx.project"]),
    ({"project": {}}, ["project: it has to be given, with scm_url"]),
    ({"project": {"name": ""}}, ["project.name: it is '', and has to be the name of a project"]),
    ({"project": {"scm_ulr": "x", "scm_url": "x"}}, ["project.scm_ulr: awx.awx.project has no such option; did you mean scm_url?"]),
    ({"project": {"elsewhere": "x", "scm_url": "x"}}, ["project.elsewhere: awx.awx.project has no such option; there are name"]),
    ({"project": {"scm_type": "gti", "scm_url": "x"}}, ["project.scm_type: it is 'gti', and has to be one of manual, git, archive"]),
    ({"project": {"scm_branch": "x"}}, ["project.scm_branch: awx", "project.scm_url: it is not given"]),
    ({"project": {"scm_type": "manual"}}, ["project.local_path: a manual project needs one"]),
    ({"project": {"scm_type": "manual", "local_path": "x", "scm_update_on_launch": True}}, ["a manual project is not updated"]),
    ({"project": {"scm_url": "x", "interval": "2 s"}}, ["project.interval: it is '2 s', and has to be a number"]),
    ({"execution_environment": {"image": "x"}}, ["execution_environment.name: it is not given"]),
    ({"execution_environment": {"name": "x", "image": ""}}, ["execution_environment.image: it is not given"]),
    ({"inventory": {"variables": "a: 1"}}, ["inventory.variables: it is 'a: 1', and has to be a dict"]),
    ({"inventory": {"new_name": "x"}}, ["inventory.new_name: the role would not find the object again"]),
    ({"plan": {"verbosity": 9}}, ["plan.verbosity: it is 9, and has to be one of 0, 1, 2"]),
    ({"plan": {"verbosity": "much"}}, ["plan.verbosity: it is 'much', and has to be a whole number"]),
    ({"plan": {"diff_mode_enabled": "perhaps"}}, ["plan.diff_mode_enabled: it is 'perhaps', and has to be true or false"]),
    ({"plan": {"instance_groups": "a"}}, ["plan.instance_groups: it is 'a', and has to be a list"]),
    ({"plan": {"timeout": True}}, ["plan.timeout: it is true, and has to be a whole number"]),
    ({"plan": {"state": "absent"}}, ["plan.state: it is 'absent', and the role only makes objects"]),
    # What makes the templates what they are
    ({"plan": {"job_type": "run"}}, ["plan.job_type: it is 'run', and the template is what it is by being check"]),
    ({"apply": {"job_type": "check"}}, ["apply.job_type: it is 'check', and the template is what it is by being run"]),
    ({"apply": {"ask_variables_on_launch": True}}, ["apply.ask_variables_on_launch: whoever launches it could switch off"]),
    ({"workflow": {"ask_extra_vars": True}}, ["workflow.ask_extra_vars: whoever launches it could switch off"]),
    ({"apply": {"extra_vars": {"reconcile_require_approval": False}}}, ["apply.extra_vars.reconcile_require_approval: it is false"]),
    ({"workflow": {"extra_vars": {"reconcile_approved": {}}}}, ["workflow.extra_vars.reconcile_approved: it comes from the job"]),
    ({"workflow": {"schema": []}}, ["workflow.schema: the role makes the steps itself"]),
    ({"apply": {"name": "Access: plan"}}, ["apply.name: 'Access: plan' is the name of the other job template as well"]),
    ({"workflow": {"survey": {"specs": []}}}, ["workflow.survey.specs: a survey has no such key; did you mean spec?"]),
    ({"workflow": {"survey_spec": {"spec": ["x"]}}}, ["workflow.survey_spec.spec[0]: it is a text, and has to be a dict"]),
    ({"workflow": {"survey_spec": {"spec": [{"variabel": "x"}]}}}, ["spec[0].variabel: a question has no such key; did you mean variable?"]),
    ({"workflow": {"survey_spec": {"spec": [{"variable": "reconcile_approved"}]}}}, ["the answer would win over what was approved"]),
    # Credential types and credentials
    ({"credential_type": {"kind": "vault"}}, ["credential_type.kind: it is 'vault', and AWX only makes types of the kinds cloud"]),
    ({"credential_type": {"inputs": {"field": []}}}, ["credential_type.inputs.field: AWX's inputs has no such key; did you mean fields?"]),
    ({"credential_type": {"injectors": {"envs": {}}}}, ["credential_type.injectors.envs: AWX's injectors has no such key; did you mean env?"]),
    ({"credential_type": {"inputs": {"fields": [{"id": "a", "lable": "x"}]}}}, ["fields[0].lable: a field has no such key; did you mean label?"]),
    ({"credential_type": {"inputs": {"fields": ["a"]}}}, ["fields[0]: it is a text, and has to be a dict with id and label"]),
    ({"credential_inputs": "s3cret"}, ["credential_inputs: it has to be a dict with host, port"]),
    ({"credential_inputs": {"host": "db"}}, ["credential_inputs.username: it is not given or empty, and a login needs it"]),
    ({"credential_inputs": {**LOGIN, "host": None}}, ["credential_inputs.host: it is not given or empty"]),
    ({"credential_inputs": {**LOGIN, "pasword": "s3cret"}}, ["credential_inputs.pasword: the credential type has no such key; did you mean password?"]),
    ({"credential_inputs": {**LOGIN, "password": 123456}}, ["credential_inputs.password: it has to be a text, so quote it"]),
    ({"credential_inputs": {**LOGIN, "password": "s3cret\nPGHOST=x"}}, ["credential_inputs.password: it has more than one line"]),
    ({"credential_inputs": {**LOGIN, "password": Encrypted("s3cret\nx")}}, ["credential_inputs.password: it has more than one line"]),
    ({"credential_inputs": {**LOGIN, "password": "s3cret\x00"}}, ["credential_inputs.password: it has a NUL character"]),
    ({"credential_inputs": {**LOGIN, "password": "$encrypted$"}}, ["credential_inputs.password: $encrypted$ is what AWX shows"]),
    ({"credential_inputs": {**LOGIN, "host": ["db"]}}, ["credential_inputs.host: it is ['db'], and has to be a text"]),
    ({"credential_inputs": {**LOGIN, "port": "54 32"}}, ["credential_inputs.port: it is '54 32', and has to be a number"]),
    ({"credential_inputs": {**LOGIN, "sslmode": "verify"}}, ["credential_inputs.sslmode: it is 'verify', and has to be one of verify-full, require"]),
    ({"credential_inputs": {**LOGIN, "sslmode": "require", "ca": "system"}}, ["sslmode: it is 'require', and has to be verify-full where ca is system"]),
    ({"credential_inputs": {**LOGIN, "ca": "/etc/ssl/ca.pem"}}, ["credential_inputs.ca: it is '/etc/ssl/ca.pem', and has to be certificates"]),
    ({"credential_inputs": {**LOGIN, "fingerprint_key": "s3cret"}}, ["credential_inputs.fingerprint_key: it has 6 bytes, and has to have at least 16"]),
    # Lists and hosts
    ({"hosts": ["localhost"]}, ["hosts: it is a list, and has to be a dict with the variables of each host"]),
    ({"hosts": {}}, ["hosts: it is empty, and a job without a host succeeds and does nothing"]),
    ({"hosts": {"db1": "x"}}, ["hosts.db1: it is a text, and has to be a dict of variables"]),
    ({"hosts": {7: {}}}, ["hosts: 7 is no name of a host: quote it"]),
    ({"modes": "adopt"}, ["modes: it is 'adopt', and has to be a list of modes"]),
    ({"modes": []}, ["modes: it is empty, and has to name at least one of additive, adopt, authoritative"]),
    ({"modes": ["adpot"]}, ["modes[0]: it is 'adpot', and has to be one of additive, adopt, authoritative; did you mean adopt?"]),
    ({"modes": ["adopt", "adopt"]}, ["modes[1]: 'adopt' stands there twice"]),
    ({"labels": ["a", 5]}, ["labels[1]: it is 5, and has to be a text that is not empty"]),
    ({"more_credentials": [""]}, ["more_credentials[0]: it is '', and has to be a text"]),
    ({"more_credentials": ["Access"]}, ["more_credentials[0]: 'Access' is the credential with the login"]),
    ({"databases": ["shop", 83]}, ["databases[1]: it is 83, and has to be a text, so quote it"]),
    ({"databases": ["0123"]}, ["databases[0]: '0123' would reach ansible-core 2.19 and later as something else"]),
    ({"databases": ["off"]}, ["databases[0]: 'off' would reach"]),
    ({"databases": ["="]}, ["databases[0]: '=' would reach"]),
    ({"databases": [""]}, ["databases[0]: '' is no name that a database can have here"]),
    ({"databases": ["x" * 64]}, ["is no name that a database can have here: 1 to 63 bytes"]),
    ({"databases": ["a\nb"]}, ["databases[0]: 'a\\nb' is no name"]),
    # Numbers, variables, approval
    ({"max_drops": -1}, ["max_drops: it is -1, and has to be a whole number, 0 or more"]),
    ({"max_revokes": "many"}, ["max_revokes: it is 'many', and has to be a whole number"]),
    ({"extra_vars": ["a"]}, ["extra_vars: it is a list, and has to be a dict of variables"]),
    ({"extra_vars": {"a-b": 1}}, ["extra_vars.a-b: it is no name of a variable"]),
    ({"extra_vars": {"reconcile_max_drop": 1}}, ["extra_vars.reconcile_max_drop: the role reconcile has no such variable; did you mean reconcile_max_drops?"]),
    ({"extra_vars": {"reconcile_expected_digest": ""}}, ["extra_vars.reconcile_expected_digest: it comes from the job that was approved"]),
    ({"extra_vars": {"reconcile_passwords": {"a": "s3cret"}}}, ["extra_vars.reconcile_passwords: a secret is not for extra variables"]),
    ({"extra_vars": {"reconcile_connection": {"login_password": "s3cret"}}}, ["extra_vars.reconcile_connection.login_password: a secret"]),
    ({"approval": "DBAs"}, ["approval: it is a text, and has to be a dict with name, description, timeout"]),
    ({"approval": {"timout": 5}}, ["approval.timout: the approval has no such key; did you mean timeout?"]),
    ({"approval": {"timeout": "1 day"}}, ["approval.timeout: it is '1 day', and has to be a number of seconds"]),
    ({"approval": {"timeout": -1}}, ["approval.timeout: it is -1"]),
    ({"approval": {"name": ""}}, ["approval.name: it is '', and has to be a text"]),
]  # fmt: skip


@pytest.mark.parametrize("values, messages", WRONG)
def test_each_broken_rule_is_a_message_of_its_own(values: Dict[str, Any], messages: List[str]) -> None:
    found = problems(**values)
    assert len(found) == len(messages), found
    for message, text in zip(messages, found):
        assert message in text
        assert text.startswith("awx_job_template_" + next(iter(values)))
        assert "\n" not in text
        assert "s3cret" not in text and "123456" not in text


RIGHT: List[Dict[str, Any]] = [
    {},
    {"project": {"scm_url": "https://git.example.com/a.git", "scm_type": "git", "controller_host": "x"}},
    {"project": {"scm_type": "manual", "local_path": "access"}},
    {"project": {"scm_url": "x", "interval": 2, "scm_update_on_launch": "yes"}},
    {"execution_environment": {"name": "x"}},
    {"credential_inputs": {**LOGIN, "port": 5432, "password": "{{ x }} $1 '\"\\", "ca": PEM, "sslmode": "", "fingerprint_key": None}},
    {"credential_inputs": {**LOGIN, "port": "5432,5433", "ca": " system\n", "password": Encrypted("s3cret")}},
    {"credential_inputs": {"one": True}, "credential_type": {"inputs": {"fields": [{"id": "one", "type": "boolean"}], "required": []}}},
    {"hosts": {"db1": None, "db2": {"shard": 1}}, "limit": "db*", "update_secrets": "no"},
    {"labels": ["a", "b"], "more_credentials": ["Vault"], "databases": ["shop", "db-1", "a b"], "max_drops": "3"},
    # Somebody's own variables, and a template that the job fills in.
    {"extra_vars": {"environment_of_ours": 1, "reconcile_tenant": "x", "reconcile_require_approval": True,
                    "reconcile_passwords": {"app": "{{ lookup('ansible.builtin.env', 'APP') }}"},
                    "reconcile_connection": {"login_host": "db"}}},
    {"approval": {"name": "x", "description": "", "timeout": 0}, "plan": {"job_type": "check", "verbosity": "1", "state": "present"}},
    {"workflow": {"survey_spec": {"name": "", "description": "", "spec": [{"variable": "reconcile_mode", "min": 0}]}}},
    {"credential_type": {"injectors": {"env": {}, "file": {}}, "inputs": {"fields": [{"id": "host", "label": "Host"}]}}},
]  # fmt: skip


@pytest.mark.parametrize("values", RIGHT)
def test_what_can_be_meant_passes(values: Dict[str, Any]) -> None:
    assert problems(**values) == []


def test_a_misspelt_variable_of_the_role_is_noticed() -> None:
    named = ["awx_job_template_project", "awx_job_template_databses", "awx_job_template_result_of_ours"]
    assert problems_of(GIVEN, OWN, named, KNOWN) == [
        "awx_job_template_databses: the role has no such variable; did you mean awx_job_template_databases?"
    ]


def test_variables_of_the_playbooks_are_known() -> None:
    """Some of them are near to one of the role."""
    reconcile = reconcile_variables()
    assert {"reconcile_mode", "reconcile_hosts", "reconcile_export_roles"} <= set(reconcile)
    given = {
        **GIVEN,
        "extra_vars": dict.fromkeys(["reconcile_hosts", "reconcile_export_roles", "reconcile_export_dest"], "x"),
    }
    assert problems_of(given, OWN, [], KNOWN._replace(reconcile=reconcile)) == []


def test_every_problem_is_found_at_once() -> None:
    found = problems(modes=["x"], project={}, databases="shop", approval={"timout": 1})
    assert [text.partition(":")[0].replace("awx_job_template_", "") for text in found] == [
        "project", "modes[0]", "databases", "approval.timout",
    ]  # fmt: skip
