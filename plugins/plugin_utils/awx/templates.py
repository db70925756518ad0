# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Whether job templates, workflow, survey, approval and extra variables leave to the workflow what makes it safe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Dict, Optional

from ansible_collections.pg_access.reconcile.plugins.plugin_utils.awx.texts import (
    PREFIX,
    as_text,
    is_number,
    kind_of,
    nearest,
    sequence_at,
    shown,
    unknown,
)

APPROVAL = ("name", "description", "timeout")
SURVEY = ("name", "description", "spec")
QUESTION = (
    "question_name", "question_description", "variable", "type", "required", "default", "choices", "min", "max",
    "new_question",
)  # fmt: skip

#: What would let an apply run that nobody has approved, or a plan change something.
GATE = {
    "plan": {"job_type": "check"},
    "apply": {"job_type": "run"},
}
OPENINGS = ("ask_job_type_on_launch", "ask_job_type", "ask_variables_on_launch", "ask_extra_vars")
#: Variables that reach the apply from the plan, and no other way.
OF_THE_APPROVAL = ("reconcile_approved", "reconcile_expected_digest")
REQUIRED = "reconcile_require_approval"
SECRET_VARIABLES = ("reconcile_fingerprint_key", "reconcile_passwords")
SECRET_CONNECTION = ("login_password", "password", "ssl_key_password")


def variable_problems(place: str, value: Any, reconcile: Sequence[str]) -> Iterator[str]:
    """Extra variables: names that Ansible takes, those of the role reconcile, no secrets, and no approval."""
    if not isinstance(value, Mapping):
        yield f"{place}: it is {kind_of(value)}, and has to be a dict of variables"
        return
    for name, content in value.items():
        if not isinstance(name, str) or not re.match(r"[A-Za-z_][A-Za-z0-9_]*\Z", name):
            yield f"{place}.{name}: it is no name of a variable: letters, digits and underscores"
        elif name in OF_THE_APPROVAL:
            yield f"{place}.{name}: it comes from the job that was approved, and from nowhere else"
        elif name == REQUIRED:
            if content is not True:
                yield f"{place}.{name}: it is {shown(content)}, and the role makes no apply without an approval"
        elif name.startswith("reconcile_") and name not in reconcile:
            parts = [each[len("reconcile_") :] for each in reconcile]
            for near in nearest(name[len("reconcile_") :], parts, "reconcile_"):
                yield f"{place}.{name}: the role reconcile has no such variable; did you mean {near}?"
        yield from _plain_secrets(f"{place}.{name}", str(name), content)


def _plain_secrets(place: str, name: str, content: Any) -> Iterator[str]:
    """Everybody who may see a job sees its extra variables. A template, which the job fills in, is none."""

    def plain(value: Any) -> bool:
        value = as_text(value)
        return isinstance(value, str) and bool(value) and "{{" not in value

    message = "a secret is not for extra variables, which everybody sees who may see the job: put it into a credential"
    if name == "reconcile_connection" and isinstance(content, Mapping):
        for each in SECRET_CONNECTION:
            if plain(content.get(each)):
                yield f"{place}.{each}: {message}"
    elif name in SECRET_VARIABLES:
        values = content.values() if isinstance(content, Mapping) else [content]
        if any(plain(each) for each in values):
            yield f"{place}: {message}"


def approval_problems(value: Any) -> Iterator[str]:
    place = PREFIX + "approval"
    if not isinstance(value, Mapping):
        yield f"{place}: it is {kind_of(value)}, and has to be a dict with {', '.join(APPROVAL)}"
        return
    yield from unknown(place, value, APPROVAL, "the approval")
    timeout = value.get("timeout", 0)
    if not is_number(timeout) or int(timeout) < 0:
        yield f"{place}.timeout: it is {shown(timeout)}, and has to be a number of seconds, 0 for no end"
    for name in ("name", "description"):
        if name in value and (not isinstance(value[name], str) or (name == "name" and not value[name])):
            yield f"{place}.{name}: it is {shown(value[name])}, and has to be a text"


def template_problems(given: Mapping[str, Any], reconcile: Sequence[str]) -> Iterator[str]:
    """What makes the two job templates and the workflow what they are."""
    dicts = {name: given[name] for name in ("plan", "apply", "workflow") if isinstance(given[name], Mapping)}
    for name, value in dicts.items():
        place = PREFIX + name
        for option, fixed in GATE.get(name, {}).items():
            if value.get(option, fixed) != fixed:
                yield f"{place}.{option}: it is {shown(value[option])}, and the template is what it is by being {fixed}"
        for option in OPENINGS:
            if value.get(option):
                yield f"{place}.{option}: whoever launches it could switch off what makes it safe"
        if value.get("extra_vars") is not None:
            yield from variable_problems(f"{place}.extra_vars", value["extra_vars"], reconcile)
    named: Dict[Any, Optional[str]] = {}
    for name in ("plan", "apply"):
        own = dicts.get(name, {}).get("name", f"{given['name']}: {name}")
        if own in named:
            yield f"{PREFIX}{name}.name: {shown(own)} is the name of the other job template as well"
        named[own] = name


def survey_problems(workflow: Any) -> Iterator[str]:
    """A survey of the user's own. Its answers win over what the plan's job leaves for the apply."""
    if not isinstance(workflow, Mapping):
        return
    for name in ("survey_spec", "survey"):
        survey = workflow.get(name)
        if not isinstance(survey, Mapping):
            continue
        place = f"{PREFIX}workflow.{name}"
        yield from unknown(place, survey, SURVEY, "a survey")
        for number, question in enumerate(sequence_at(survey, "spec")):
            if not isinstance(question, Mapping):
                yield f"{place}.spec[{number}]: it is {kind_of(question)}, and has to be a dict"
                continue
            yield from unknown(f"{place}.spec[{number}]", question, QUESTION, "a question")
            variable = question.get("variable")
            if variable in (*OF_THE_APPROVAL, REQUIRED):
                yield (
                    f"{place}.spec[{number}].variable: the answer would win over what was approved; do not ask for"
                    f" {variable}"
                )
