# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules themselves: what AWX is known to accept passes, and each rule refuses an example."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
import rules

TYPE = {
    "name": "PostgreSQL",
    "kind": "cloud",
    "description": "",
    "managed": False,
    "inputs": {
        "fields": [
            {"id": "host", "label": "Host"},
            {"id": "port", "label": "Port", "default": "5432", "type": "string"},
            {"id": "password", "label": "Password", "secret": True, "help_text": "one line"},
            {"id": "mode", "label": "TLS mode", "choices": ["verify-full", "disable"], "default": "prefer"},
            {"id": "key", "label": "Key", "format": "ssh_private_key", "multiline": True},
            {"id": "strict", "label": "Strict", "type": "boolean", "default": True},
        ],
        "required": ["host", "nobody"],
    },
    "injectors": {
        "env": {"PGHOST": "{{ host }}", "PGPORT": "{{ port | default('5432', true) }}", "_X": "{{ strict }}"},
        "extra_vars": {"list": ["{{ host }}"], "dict": {"one": {"two": "{{ port }}"}}},
        "file": {"template.key": "{{ key }}", "template.more": "{% if strict %}{{ tower.filename.key }}{% endif %}"},
    },
}

SURVEY = {
    "name": "",
    "description": "",
    "spec": [
        {"question_name": "Mode", "variable": "mode", "type": "multiplechoice", "required": True, "choices": ["a", "b"],
         "default": "a", "question_description": "", "unknown": 1},
        {"question_name": "", "variable": "", "type": "text", "required": False, "min": 0, "max": 9, "default": ""},
        {"question_name": "n", "variable": "n", "type": "integer", "required": False, "min": None, "max": None, "default": 1},
        {"question_name": "f", "variable": "f", "type": "float", "required": False, "default": 1.5},
        {"question_name": "m", "variable": "m", "type": "multiselect", "required": False, "choices": "a\nb"},
    ],
}  # fmt: skip

APPROVAL = {"name": "Approve the plan", "description": "", "timeout": 0}
VARIABLES = {"reconcile_mode": "additive", "_x": [1, {"any": None}]}
NODE: dict[str, Any] = {"identifier": "plan", "extra_data": {}, "job_type": None, "limit": ""}
FIELDS: Any = TYPE["inputs"]["fields"]  # type: ignore[index]
INPUTS = {"host": "h", "port": "5432", "password": "p", "mode": "", "strict": False}

ACCEPTED: dict[str, tuple[Callable[[Any], list[str]], Any]] = {
    "type": (rules.credential_type, TYPE),
    "inputs": (lambda value: rules.credential_inputs(value, FIELDS), INPUTS),
    "survey": (rules.survey, SURVEY),
    "answers": (rules.answers, {**SURVEY, "spec": SURVEY["spec"][:1]}),
    "approval": (rules.approval, APPROVAL),
    "variables": (rules.variables, VARIABLES),
    "variables as text": (rules.variables, '{"a": 1}'),
    "no variables": (rules.variables, ""),
    "node": (lambda value: rules.node(value, {"ask_job_type_on_launch": False}), NODE),
    "prompted node": (lambda value: rules.node(value, {"ask_job_type_on_launch": True}), {**NODE, "job_type": "run"}),
    "credentials": (rules.credentials, [1, 2]),
    "links": (rules.links, {"a": {"b", "c"}, "b": {"c"}, "c": set()}),
}

ANY = object()

#: What is changed in an accepted example, and what is said about it.
VIOLATIONS: list[tuple[str, str, Any, str]] = [
    ("type", "", [], "is not of type 'object'"),
    ("type", "name", ANY, "'name' is a required property"),
    ("type", "name", 1, "is not of type 'string'"),
    ("type", "name", "", "should be non-empty|too short"),
    ("type", "name", "x" * 513, "too long"),
    ("type", "description", 1, "is not of type 'string'"),
    ("type", "kind", "ssh", "is not one of"),
    ("type", "managed", True, "False was expected"),
    ("type", "organization", 1, "Additional properties"),
    ("type", "inputs", "fields: []", "is not of type 'object'"),
    ("type", "inputs.metadata", [], "Additional properties"),
    ("type", "inputs.fields", {}, "is not of type 'array'"),
    ("type", "inputs.required", "host", "is not of type 'array'"),
    ("type", "inputs.required.0", 1, "is not of type 'string'"),
    ("type", "inputs.fields.0", "host", "is not of type 'object'"),
    ("type", "inputs.fields.0.id", ANY, "'id' is a required property"),
    ("type", "inputs.fields.0.label", ANY, "'label' is a required property"),
    ("type", "inputs.fields.0.id", "ho-st", "does not match"),
    ("type", "inputs.fields.0.id", 1, "is not of type 'string'"),
    ("type", "inputs.fields.0.id", "tower", "should not be valid"),
    ("type", "inputs.fields.0.id", "port", "port stands there twice"),
    ("type", "inputs.fields.0.label", 1, "is not of type 'string'"),
    ("type", "inputs.fields.0.help_text", 1, "is not of type 'string'"),
    ("type", "inputs.fields.0.type", "integer", "is not one of"),
    ("type", "inputs.fields.0.format", "vault_id", "is not one of"),
    ("type", "inputs.fields.0.secret", "yes", "is not of type 'boolean'"),
    ("type", "inputs.fields.0.multiline", "yes", "is not of type 'boolean'"),
    ("type", "inputs.fields.0.ask_at_runtime", True, "Additional properties"),
    ("type", "inputs.fields.0.default", True, "is not of type 'string'"),
    ("type", "inputs.fields.0.default", 5432, "is not of type 'string'"),
    ("type", "inputs.fields.3.choices", "disable", "is not of type 'array'"),
    ("type", "inputs.fields.3.choices", [], "non-empty|too short"),
    ("type", "inputs.fields.3.choices", ["a", "a"], "non-unique"),
    ("type", "inputs.fields.3.choices", ["a", 1], "is not of type 'string'"),
    ("type", "inputs.fields.5.default", "yes", "is not of type 'boolean'"),
    ("type", "inputs.fields.5.secret", True, "False schema"),
    ("type", "inputs.fields.5.multiline", True, "False schema"),
    ("type", "inputs.fields.5.format", "url", "False schema"),
    ("type", "inputs.fields.5.choices", ["a"], "False schema"),
    ("type", "injectors", [], "is not of type 'object'"),
    ("type", "injectors.environment", {}, "Additional properties"),
    ("type", "injectors.env", [], "is not of type 'object'"),
    ("type", "injectors.env.PG-HOST", "", "does not match"),
    ("type", "injectors.env.PATH", "", "should not be valid"),
    ("type", "injectors.env.ANSIBLE_CONFIG", "", "should not be valid"),
    ("type", "injectors.env.PGPORT", 5432, "is not of type 'string'"),
    ("type", "injectors.env.PGPORT", "\u00e4", "does not match"),
    ("type", "injectors.extra_vars", [], "is not of type 'object'"),
    ("type", "injectors.extra_vars.number", 1, "is not valid under any"),
    ("type", "injectors.extra_vars.list", [1], "is not valid under any"),
    ("type", "injectors.extra_vars.dict.one.two", True, "is not valid under any"),
    ("type", "injectors.file", [], "is not of type 'object'"),
    ("type", "injectors.file", {"template.a": 1}, "is not of type 'string'"),
    ("type", "injectors.file", {"template": "", "template.a": ""}, "is not valid under any"),
    ("type", "injectors.file", {"key": ""}, "is not valid under any"),
    ("type", "injectors.file", {"template.": ""}, "is not valid under any"),
    ("type", "injectors.env.PGHOST", "{{ unknown }}", "'unknown' is undefined"),
    ("type", "injectors.env.PGHOST", "{{ host | to_json }}", "No filter named 'to_json'"),
    ("type", "injectors.env.PGHOST", "{{ host.__class__.__mro__ }}", "unsafe|undefined"),
    ("type", "injectors.env.PGHOST", "{% if %}", "Expected an expression"),
    ("type", "injectors.env.PGHOST", "{{ tower.filename.none }}", "has no attribute 'none'"),
    ("inputs", "", [], "not an object"),
    ("inputs", "unknown", "", "no such field"),
    ("inputs", "port", 5432, "is no text"),
    ("inputs", "strict", "yes", "is no boolean"),
    ("inputs", "mode", "prefer", "none of the choices"),
    ("inputs", "password", "$encrypted$", "is what AWX shows"),
    ("survey", "", [], "is not of type 'object'"),
    ("survey", "name", ANY, "'name' is a required property"),
    ("survey", "description", ANY, "'description' is a required property"),
    ("survey", "spec", ANY, "'spec' is a required property"),
    ("survey", "name", None, "is not of type 'string'"),
    ("survey", "description", None, "is not of type 'string'"),
    ("survey", "spec", {}, "is not of type 'array'"),
    ("survey", "spec", [], "non-empty|too short"),
    ("survey", "spec.0", "Mode", "is not of type 'object'"),
    ("survey", "spec.0.type", ANY, "'type' is a required property"),
    ("survey", "spec.0.type", "boolean", "is not one of"),
    ("survey", "spec.0.question_name", ANY, "'question_name' is a required property"),
    ("survey", "spec.0.question_name", 1, "is not of type 'string'"),
    ("survey", "spec.0.question_description", 1, "is not of type 'string'"),
    ("survey", "spec.0.variable", ANY, "'variable' is a required property"),
    ("survey", "spec.0.variable", 1, "is not of type 'string'"),
    ("survey", "spec.0.required", ANY, "'required' is a required property"),
    ("survey", "spec.0.required", "yes", "is not of type 'boolean'"),
    ("survey", "spec.0.choices", ANY, "'choices' is a required property"),
    ("survey", "spec.0.choices", {}, "is not valid under any"),
    ("survey", "spec.0.choices", [1], "is not valid under any"),
    ("survey", "spec.0.default", None, "is not of type 'string'"),
    ("survey", "spec.0.default", "c", "none of the choices"),
    ("survey", "spec.1.default", 1, "is not of type 'string'"),
    ("survey", "spec.1.min", "0", "is not of type"),
    ("survey", "spec.1.max", 1.5, "is not of type"),
    ("survey", "spec.2.default", "1", "is not valid under any"),
    ("survey", "spec.3.default", "1.5", "is not valid under any"),
    ("survey", "spec.1.variable", "mode", "mode is asked for twice"),
    ("answers", "spec.0.choices", ["a", "off"], "'off' would not stay"),
    ("answers", "spec.0.choices", ["a", "0123"], "'0123' would not stay"),
    ("answers", "spec.0.choices", ["a", "="], "'=' would not stay"),
    ("answers", "spec.0.choices", ["a", "12:30"], "'12:30' would not stay"),
    ("answers", "spec.0.choices", ["a", "1" * 64], "would not stay"),
    ("approval", "", "Approve", "is not of type 'object'"),
    ("approval", "name", ANY, "'name' is a required property"),
    ("approval", "name", "", "non-empty|too short"),
    ("approval", "name", 1, "is not of type 'string'"),
    ("approval", "name", "x" * 513, "too long"),
    ("approval", "description", None, "is not of type 'string'"),
    ("approval", "timeout", "1 day", "is not of type 'integer'"),
    ("approval", "timeout", -1, "less than the minimum"),
    ("approval", "job_type", "run", "Additional properties"),
    ("variables", "", ["a"], "is not of type 'object'"),
    ("variables", "with-dash", 1, "does not match"),
    ("variables as text", "", "---\na: 1", "not JSON"),
    ("node", "identifier", "", "1 to 512"),
    ("node", "identifier", "x" * 513, "1 to 512"),
    ("node", "extra_data", {"a-b": 1}, "does not match"),
    ("node", "job_type", "run", "job_type: Field is not configured to prompt on launch"),
    ("node", "limit", "db1", "limit: Field is not configured to prompt on launch"),
    ("node", "job_tags", "x", "job_tags: Field is not configured to prompt on launch"),
    ("credentials", "", [1, 1], "Cannot assign multiple"),
    ("links", "c", {"a"}, "Cycle detected"),
]


def _changed(example: Any, place: str, value: Any) -> Any:
    """The example with another value at a place; ANY stands for none."""
    if not place:
        return value
    result = inner = copy.deepcopy(example)
    *before, last = place.split(".") if not place.startswith("injectors.file.") else place.split(".", 2)
    for name in before:
        inner = inner[int(name) if isinstance(inner, list) else name]
    key: Any = int(last) if isinstance(inner, list) else last
    if value is ANY:
        del inner[key]
    else:
        inner[key] = value
    return result


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_awx_accepts_passes(name: str) -> None:
    rule, example = ACCEPTED[name]
    assert rule(example) == []


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [pytest.param(*each, id=f"{each[0]}-{each[1]}-{number}") for number, each in enumerate(VIOLATIONS)],
)
def test_a_violation_is_refused(name: str, place: str, value: Any, message: str) -> None:
    rule, example = ACCEPTED[name]
    problems = rule(_changed(example, place, value))
    assert problems and re.search(message, "\n".join(problems)), problems


# No rule without an example

#: Keywords that lead to other schemas, or only describe.
APPLICATORS = {
    "$schema", "$id", "title", "$defs", "$ref", "properties", "items", "propertyNames", "allOf", "if", "then", "else",
}  # fmt: skip


def _rules(schema: Any) -> Iterator[tuple[int, str]]:
    if schema is False:
        return
    for keyword, value in schema.items():
        if keyword not in APPLICATORS and not (keyword == "additionalProperties" and value is not False):
            yield id(schema), keyword
        if keyword in ("properties", "$defs"):
            for inner in value.values():
                yield from _rules(inner)
        elif keyword in ("items", "propertyNames", "then", "else") or (keyword == "additionalProperties" and value):
            yield from _rules(value)
        elif keyword in ("allOf", "anyOf"):
            for inner in value:
                yield from _rules(inner)


def _errors(errors: Any) -> Iterator[tuple[int, str]]:
    for error in errors:
        yield id(error.schema), error.validator
        yield from _errors(error.context)


SCHEMA_OF = {
    "type": "credential_type", "survey": "survey", "approval": "approval", "variables": "variables",
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMA_OF)
def test_every_rule_of_a_schema_refuses_something(name: str) -> None:
    schema = rules.SCHEMAS[SCHEMA_OF[name]]
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    seen: set[tuple[int, str]] = set()
    for each, place, value, _message in VIOLATIONS:
        if each == name:
            seen |= set(_errors(validator.iter_errors(_changed(ACCEPTED[name][1], place, value))))
    unused = [keyword for key, keyword in set(_rules(schema)) if (key, keyword) not in seen]
    assert unused == []


def test_every_schema_is_used() -> None:
    assert set(SCHEMA_OF.values()) == set(rules.SCHEMAS)
