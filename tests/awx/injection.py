# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What AWX makes of a credential when a job starts: environment variables and files."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2.sandbox


def stored(inputs: Mapping[str, Any], fields: list[dict[str, Any]]) -> dict[str, Any]:
    """The inputs as they are saved: an empty choice is the first one. A field's default is for the form only."""
    choices = {field["id"]: field["choices"] for field in fields if "choices" in field}
    return {name: choices[name][0] if value == "" and name in choices else value for name, value in inputs.items()}


def inject(kind: Mapping[str, Any], inputs: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """The environment that a credential with these inputs gives to a job. Its files are written to the folder.

    What was not filled in is absent, and renders as an empty text; a boolean is false then.
    """
    fields = kind["inputs"]["fields"]
    namespace: dict[str, Any] = {field["id"]: False for field in fields if field.get("type") == "boolean"}
    namespace.update(stored(inputs, fields))
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment()
    paths = {}
    for name, template in kind["injectors"].get("file", {}).items():
        with tempfile.NamedTemporaryFile("w", dir=folder, prefix="tmp", delete=False, encoding="utf-8") as file:
            file.write(environment.from_string(template).render(namespace))
        paths[name.partition(".")[2]] = file.name
    namespace["tower"] = {"filename": paths.get("", paths)}
    rendered = {
        name: environment.from_string(template).render(namespace)
        for name, template in kind["injectors"].get("env", {}).items()
    }
    return through_env_list(rendered)


def through_env_list(environment: Mapping[str, str]) -> dict[str, str]:
    """What is left after the file of NAME=value lines that a container gets: a line break ends a value."""
    lines = "\n".join(f"{name}={value}" for name, value in environment.items()).split("\n")
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {name: value for name, _equals, value in pairs}
