# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""AWX's rules for the dicts that its modules take unseen: a JSON schema for each, and here what a schema cannot say.

Every function returns what is wrong. ``schemas/`` holds the schemas.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jinja2
import jinja2.sandbox
import jsonschema
import yaml

SCHEMAS = {
    path.name.partition(".")[0]: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "schemas").glob("*.schema.json"))
}


def by_schema(name: str, value: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(SCHEMAS[name])
    errors = sorted(validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]


# Credential types


def credential_type(value: Any) -> list[str]:
    """The whole object: inputs that fit together, and injectors that AWX would save."""
    problems = by_schema("credential_type", value)
    if problems:
        return problems
    fields = value.get("inputs", {}).get("fields", [])
    counted = Counter(field["id"] for field in fields)
    problems += [f"inputs: {name} stands there twice" for name, count in counted.items() if count > 1]
    return problems + _unsaved_templates(value.get("injectors", {}), fields)


def _unsaved_templates(injectors: Mapping[str, Any], fields: list[dict[str, Any]]) -> list[str]:
    """AWX renders every template when it is saved, with all fields and nothing else, and refuses what is undefined."""
    namespace: dict[str, Any] = {field["id"]: field.get("type") == "boolean" or "EXAMPLE" for field in fields}
    files = list(injectors.get("file", {}))
    paths = {name.partition(".")[2]: f"/{name}" for name in files}
    if files:
        namespace["tower"] = {"filename": paths if paths.keys() != {""} else paths[""]}
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined)
    problems = []
    for place, template in templates(injectors):
        try:
            environment.from_string(template).render(namespace)
        except (jinja2.TemplateError, TypeError) as error:
            problems.append(f"{place}: {error}")
    return problems


def templates(injectors: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The templates with their places."""

    def inside(place: str, value: Any) -> Iterator[tuple[str, str]]:
        if isinstance(value, str):
            yield place, value
        elif isinstance(value, dict):
            for key, each in value.items():
                yield from inside(f"{place}.{key}", each)
        else:
            for number, each in enumerate(value):
                yield from inside(f"{place}[{number}]", each)

    for section, value in injectors.items():
        yield from inside(section, value)


def credential_inputs(value: Any, fields: list[dict[str, Any]]) -> list[str]:
    """The inputs of a credential, against the fields of its type."""
    if not isinstance(value, dict):
        return ["inputs: not an object"]
    known = {field["id"]: field for field in fields}
    problems = []
    for name, given in value.items():
        field = known.get(name)
        if field is None:
            problems.append(f"{name}: the type has no such field")
        elif field.get("type") == "boolean":
            if not isinstance(given, bool):
                problems.append(f"{name}: {given!r} is no boolean")
        elif not isinstance(given, str):
            problems.append(f"{name}: {given!r} is no text")
        elif "choices" in field and given not in ("", *field["choices"]):
            problems.append(f"{name}: {given!r} is none of the choices")
        elif field.get("secret") and given == "$encrypted$":
            problems.append(f"{name}: $encrypted$ is what AWX shows, and no new value")
    return problems


# Surveys and variables


def survey(value: Any) -> list[str]:
    problems = by_schema("survey", value)
    if problems:
        return problems
    counted = Counter(question["variable"] for question in value["spec"])
    problems += [f"spec: {name} is asked for twice" for name, count in counted.items() if count > 1]
    for question in value["spec"]:
        if question["type"] != "multiplechoice" or "default" not in question:
            continue
        if question["default"] not in ("", *_choices(question)):
            problems.append(f"{question['variable']}: the default {question['default']!r} is none of the choices")
    return problems


def _choices(question: Mapping[str, Any]) -> list[str]:
    choices = question["choices"]
    return choices.splitlines() if isinstance(choices, str) else list(choices)


def answers(value: Mapping[str, Any]) -> list[str]:
    """Answers that reach the play as something else: from ansible-core 2.19 on they are read as plain YAML."""
    return [
        f"{question['variable']}: {choice!r} would not stay this text"
        for question in value["spec"]
        for choice in (_choices(question) if "choices" in question else [question.get("default")])
        if isinstance(choice, str) and retyped(choice)
    ]


def retyped(text: str) -> bool:
    """Whether a text that AWX marks as unsafe becomes something else in ansible-core 2.19 and later."""
    loader: Any = yaml.SafeLoader("")
    return bool(loader.resolve(yaml.ScalarNode, text, (True, False)) != "tag:yaml.org,2002:str")


def variables(value: Any) -> list[str]:
    """Extra variables, the data of a node, the variables of an inventory or a host, as an object or as its text."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError as error:
            return [f"not JSON: {error}"]
    return by_schema("variables", value)


# Templates and nodes


def approval(value: Any) -> list[str]:
    return by_schema("approval", value)


def node(value: Mapping[str, Any], template: Mapping[str, Any] | None) -> list[str]:
    """A node's own values, against what its template asks for at launch."""
    identifier = value.get("identifier")
    problems = [] if isinstance(identifier, str) and 0 < len(identifier) <= 512 else ["identifier: 1 to 512 characters"]
    problems += variables(value.get("extra_data") or {})
    for field in ("job_type", "diff_mode", "limit", "inventory", "scm_branch", "job_tags", "skip_tags", "verbosity"):
        if value.get(field) not in (None, "") and not (template or {}).get(
            f"ask_{field}_on_launch".replace("job_tags", "tags")
        ):
            problems.append(f"{field}: Field is not configured to prompt on launch.")
    return problems


def credentials(types: list[int]) -> list[str]:
    """The types of a job template's credentials."""
    return [f"Cannot assign multiple credentials of type {each}" for each, count in Counter(types).items() if count > 1]


def links(edges: Mapping[str, set[str]]) -> list[str]:
    """Nodes, and those that come after them: a circle is refused."""
    left = {name: set(after) for name, after in edges.items()}
    while True:
        ends = [name for name, after in left.items() if not after & left.keys()]
        if not ends:
            return ["Cycle detected."] if left else []
        for name in ends:
            del left[name]
