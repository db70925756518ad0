# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The YAML blocks of the documentation, and a database in which each of them can be run as it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from harness import CHECKOUT

#: What a manifest consists of, and the option that pages show beside it.
SECTIONS = frozenset(
    {*json.loads((CHECKOUT / "docs/manifest.schema.json").read_text(encoding="utf-8"))["properties"], "assume_roles"}
)

REGISTER = Path(__file__).with_name("documented_examples.yml")

RECONCILE = "pg_access.reconcile.pg_role_reconcile"
EXPORT = "pg_access.reconcile.pg_role_export"
ROLE = "pg_access.reconcile.reconcile"

_FENCE = re.compile(r"^( *)```ya?ml[^\n]*\n(.*?)^ *```", re.M | re.S)

#: How an object is made that a rule names. A routine's name has its arguments.
_MADE = {
    "table": "CREATE TABLE {} ({})",
    "view": "CREATE VIEW {} AS SELECT 1 AS id",
    "materialized_view": "CREATE MATERIALIZED VIEW {} AS SELECT 1 AS id",
    "sequence": "CREATE SEQUENCE {}",
    "type": "CREATE TYPE {} AS ENUM ('a')",
    "domain": "CREATE DOMAIN {} AS int",
}


class Example(NamedTuple):
    """A block: its page, its text, and what a reader sees first of it, by which the register calls it."""

    page: str
    line: int
    first: str
    text: str

    @property
    def value(self) -> Any:
        return yaml.safe_load(self.text)

    @property
    def kind(self) -> str:
        """`manifest`, `tasks`, `plays`, or `other`."""
        value = self.value
        if isinstance(value, dict) and value and set(value) <= set(SECTIONS):
            return "manifest"
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            if all("hosts" in item for item in value):
                return "plays"
            if all(any("." in key for key in item) for item in value):
                return "tasks"
        return "other"


def examples() -> list[Example]:
    """All YAML blocks, also indented ones, of the pages that people read."""
    pages = [
        *CHECKOUT.glob("*.md"),
        *CHECKOUT.glob("docs/*.md"),
        *CHECKOUT.glob("roles/*/README.md"),
        CHECKOUT / "demo/README.md",
    ]
    found = []
    for page in sorted(pages):
        text = page.read_text(encoding="utf-8")
        for block in _FENCE.finditer(text):
            lines = [line.removeprefix(block[1]) for line in block[2].split("\n")]
            line = text.count("\n", 0, block.start()) + 1
            found.append(Example(page.relative_to(CHECKOUT).as_posix(), line, lines[0].strip(), "\n".join(lines)))
    return found


def registered() -> dict[str, dict[str, dict[str, str]]]:
    """What the register says, by page and first line; `*` stands for all blocks of the page."""
    register: dict[str, dict[str, dict[str, str]]] = yaml.safe_load(REGISTER.read_text(encoding="utf-8"))
    return register


def entry(example: Example) -> dict[str, str]:
    page = registered().get(example.page, {})
    return page.get(example.first) or page.get("*") or {}


# ---- a database for it ---------------------------------------------------------------------------------------------


def manifests(value: Any) -> Iterator[dict[str, Any]]:
    """The manifests in a block: itself, or those in its tasks."""
    if isinstance(value, dict):
        if value and set(value) <= set(SECTIONS):
            yield value
        elif isinstance(value.get(RECONCILE), dict):
            yield {key: item for key, item in value[RECONCILE].items() if key in SECTIONS}
        else:
            for inner in value.values():
                yield from manifests(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from manifests(inner)


def world(manifest: dict[str, Any]) -> list[str]:
    """Statements that make what a manifest takes for granted: roles that it does not declare, objects that it names."""
    quoted = '"{}"'.format
    declared = {role["name"] for role in manifest.get("roles", []) if not role.get("external")}
    roles = [role["name"] for role in manifest.get("roles", []) if role.get("external")]
    roles += [name for name in _names(manifest) if name not in declared]
    made = [
        f"CREATE ROLE {quoted(name)}" for name in dict.fromkeys(roles) if not re.match(r"pg_|PUBLIC$|\{\{|.*\*", name)
    ]
    schemas = {item["name"]: item for item in manifest.get("schemas", [])}
    objects = []
    for rule in manifest.get("grants", []):
        objects.append(rule["object"])
    for name, schema in schemas.items():
        for profile in schema.get("profiles", []):
            rules = manifest.get("profiles", {}).get(profile, {}).get("grants", [])
            objects += [{**rule["object"], "schema": name} for rule in rules if rule["object"]["type"] != "schema"]
    for rule in manifest.get("default_privileges", []):
        objects.append({"type": "schema", "name": rule.get("schema")})
    names = [
        one["name"] if one["type"] == "schema" else one.get("schema")
        for one in objects
        if one.get("name") or one.get("schema")
    ]
    for name in dict.fromkeys([*schemas, *names]):
        if name and not re.match(r"pg_|public$|information_schema$", name):
            made.append(f"CREATE SCHEMA {quoted(name)}")
    columns = sorted({"id", *(column for rule in manifest.get("grants", []) for column in rule.get("columns", []))})
    table = ", ".join(f"{quoted(column)} text" for column in columns)
    for kind, schema, name in dict.fromkeys((one["type"], one.get("schema"), one.get("name")) for one in objects):
        if schema and name and "*" not in name:
            if kind in _MADE:
                made.append(_MADE[kind].format(f"{quoted(schema)}.{quoted(name)}", table))
            elif kind in ("function", "procedure"):
                routine, _bracket, rest = name.partition("(")
                made.append(
                    f"CREATE FUNCTION {quoted(schema)}.{quoted(routine)}({rest} RETURNS int LANGUAGE sql AS 'SELECT 1'"
                )
    return made


def _names(manifest: dict[str, Any]) -> Iterator[str]:
    """Roles that a manifest names without declaring them there."""
    yield from manifest.get("assume_roles", [])
    if owner := manifest.get("default_owner"):
        yield owner
    for schema in manifest.get("schemas", []):
        if "owner" in schema:
            yield schema["owner"]
    for rule in manifest.get("default_privileges", []):
        yield rule["owner"]
    for role in manifest.get("roles", []):
        for side in ("member_of", "members"):
            for other in role.get(side, []):
                yield other if isinstance(other, str) else other["name"]
    for item in manifest.get("retirements", []):
        yield item["role"]
        if "reassign_owned_to" in item:
            yield item["reassign_owned_to"]
