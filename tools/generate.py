#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes what is generated from the modules' options: their documentation, the reference's tables, the JSON schema.

Only what stands between two markers is written; the rest of those files is written by hand. With ``--check`` nothing is
written, and files that would change are listed (exit status 1).
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping

import manifest_schema
import yaml

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 118

# Without Ansible's loader the collection's code is an ordinary namespace package below plugins/.
sys.path.insert(0, str(ROOT / "plugins"))
spec = importlib.import_module("module_utils.manifest.spec")
export = importlib.import_module("module_utils.export.options")
privileges = importlib.import_module("module_utils.privileges")

Option = Mapping[str, Any]
Options = Mapping[str, Option]


# ---- a module's DOCUMENTATION ----


def _documented(options: Options) -> Dict[str, Any]:
    """Options in the form of Ansible's module documentation."""
    result: Dict[str, Any] = {}
    for name, option in options.items():
        description = list(option["description"])
        if option.get("in_effect", "none") != "none":
            description.append(f"In effect when omitted: {option['in_effect']}.")
        entry: Dict[str, Any] = {"description": description, "type": option["type"]}
        for key in ("elements", "required", "choices", "default", "aliases"):
            if key in option:
                entry[key] = option[key]
        if "options" in option:
            entry["suboptions"] = _documented(option["options"])
        result[name] = entry
    return result


class _Dumper(yaml.SafeDumper):
    """Indents lists, as the rest of the documentation does."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        del indentless
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def module_options(options: Options) -> str:
    """A module's options, except those that its documentation fragments have."""
    documented = {"options": _documented(options)}
    return yaml.dump(documented, Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)


# ---- the reference in Markdown ----


def _markdown(text: str) -> str:
    """Ansible's markup as Markdown."""

    def plain(match: re.Match[str]) -> str:
        content = match.group(2)
        if match.group(1) == "O":
            content = content.replace("=", ": ")
        return f"`{content}`"

    return re.sub(r"\b(O|V|C|RV|E)\(([^()]*(?:\([^()]*\))?[^()]*)\)", plain, text).replace("|", "\\|")


def _type(option: Option) -> str:
    if option["type"] == "list":
        return "list of names or dicts" if option["elements"] == "raw" else f"list of {option['elements']}"
    return str(option["type"])


def _rows(options: Options) -> Iterator[str]:
    for name, option in options.items():
        names = ", ".join(f"`{alias}`" for alias in (name, *option.get("aliases", ())))
        omitted = "required" if option.get("required") else _markdown(str(option.get("in_effect", "")))
        text = " ".join(_markdown(part) for part in option["description"])
        if "choices" in option:
            text += " One of " + ", ".join(f"`{choice}`" for choice in option["choices"]) + "."
        if "options" in option or "values" in option:
            text += " See below."
        yield f"| {names} | {_type(option)} | {omitted} | {text} |"


def _table(options: Options) -> str:
    head = "| field | type | when omitted | meaning |\n|---|---|---|---|\n"
    return head + "".join(f"{row}\n" for row in _rows(options))


def _kinds() -> str:
    lines = ["| `type` | `schema` | `name` | privileges | on columns |", "|---|---|---|---|---|"]
    for name in spec.OBJECT_TYPES:
        if name in privileges.KIND_ALIASES:
            continue
        kind = privileges.KINDS[name]
        aliases = [alias for alias, meant in privileges.KIND_ALIASES.items() if meant == name]
        shown = ", ".join(f"`{one}`" for one in (name, *aliases))
        words = [
            word if since <= privileges.OLDEST_SERVER else f"{word} (from PostgreSQL {since})"
            for word, since in kind.privileges.items()
        ]
        words = [
            f"{word} (or {', '.join(a for a, meant in privileges.PRIVILEGE_ALIASES.items() if meant == word)})"
            if word in privileges.PRIVILEGE_ALIASES.values()
            else word
            for word in words
        ]
        if kind.since > privileges.OLDEST_SERVER:
            shown += f" (from PostgreSQL {kind.since})"
        columns = ", ".join(word for word in kind.privileges if word in kind.column_privileges)
        where = "required" if kind.in_schema else "not allowed"
        if name == "function":
            named = "required: `name(argument types)`, a bare name where it is not overloaded, or `*`"
        elif kind.in_schema:
            named = "required: a name or `*`"
        elif name == "database":
            named = "a name; when omitted, the connected database"
        elif name == "parameter":
            named = "required: a name, in any case"
        elif name == "large_object":
            named = "required: an OID, as a number or in text"
        else:
            named = "required: a name"
        lines.append(f"| {shown} | {where} | {named} | {', '.join(words)} | {columns} |")
    return "\n".join(lines) + "\n"


def _below(*names: str) -> Options:
    option: Option = {"options": spec.SECTIONS}
    for name in names:
        inner = option.get("options") or option["values"]
        option = inner[name]
    found: Options = option.get("options") or option["values"]
    return found


def _reference() -> Dict[str, Callable[[], str]]:
    return {
        "sections": lambda: _table(spec.SECTIONS),
        "profiles": lambda: _table(_below("profiles")),
        "profile grants": lambda: _table(_below("profiles", "grants")),
        "profile default privileges": lambda: _table(_below("profiles", "default_privileges")),
        "schemas": lambda: _table(_below("schemas")),
        "roles": lambda: _table(_below("roles")),
        "memberships": lambda: _table(_below("memberships")),
        "members": lambda: _table(_below("memberships", "members")),
        "grants": lambda: _table(_below("grants")),
        "object": lambda: _table(_below("grants", "object")),
        "kinds": _kinds,
        "default privileges": lambda: _table(_below("default_privileges")),
        "default grants": lambda: _table(_below("default_privileges", "grant")),
        "retirements": lambda: _table(_below("retirements")),
        "scope": lambda: _table(_below("scope")),
    }


# ---- the JSON schema ----


def _plain(text: str) -> str:
    return _markdown(text).replace("`", "").replace("\\|", "|")


def _compact(value: Any, depth: int = 0) -> str:
    """JSON with a line for whatever fits into one, so that changes can be read."""
    line = json.dumps(value, ensure_ascii=True)
    if len(line) + depth <= WIDTH - 30 or not isinstance(value, (dict, list)):
        return line
    pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    inner = [
        (f"{json.dumps(key)}: " if isinstance(value, dict) else "") + _compact(item, depth + 2) for key, item in pairs
    ]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    space = " " * depth
    return f"{begin}\n" + ",\n".join(f"{space}  {item}" for item in inner) + f"\n{space}{end}"


def json_schema() -> str:
    """The sections as a JSON schema, for editors that complete and check manifest files."""
    schema = manifest_schema.Generator(spec, privileges, _plain).schema()
    return _compact(schema) + "\n"


# ---- files ----


def _between(text: str, begin: str, end: str, content: str, where: str) -> str:
    """The text with new content between two marker lines."""
    first = text.find(begin)
    last = text.find(end, first)
    if first < 0 or last < 0:
        raise SystemExit(f"{where}: the markers '{begin}' and '{end}' are missing")
    return text[: first + len(begin)] + "\n" + content + text[last:]


def generated() -> Dict[Path, str]:
    """Every file that holds something generated, with the content that it should have."""
    reference = ROOT / "docs/manifest.md"
    found: Dict[Path, str] = {}
    modules = {
        "pg_role_reconcile": ("manifest/spec.py", {**spec.MANIFEST_OPTIONS, **spec.RUN_OPTIONS}),
        "pg_role_export": ("export/options.py", export.EXPORT_OPTIONS),
    }
    for name, (source, options) in modules.items():
        module = ROOT / f"plugins/modules/{name}.py"
        found[module] = _between(
            module.read_text(encoding="utf-8"),
            f"# Generated by tools/generate.py from plugins/module_utils/{source}: begin",
            "# Generated: end",
            module_options(options),
            str(module.relative_to(ROOT)),
        )
    text = reference.read_text(encoding="utf-8")
    for name, content in _reference().items():
        begin = f"<!-- generated: {name} -->"
        text = _between(text, begin, "<!-- generated: end -->", content(), str(reference.relative_to(ROOT)))
    found[reference] = text
    found[ROOT / "docs/manifest.schema.json"] = json_schema()
    return found


def main() -> int:
    """Writes or checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail when a file would change")
    check = parser.parse_args().check
    different: List[Path] = []
    for path, content in generated().items():
        if path.exists() and path.read_text(encoding="utf-8") == content:
            continue
        different.append(path)
        if not check:
            path.write_text(content, encoding="utf-8")
    for path in different:
        print(f"{path.relative_to(ROOT)}: {'differs, run tools/generate.py' if check else 'written'}")
    return 1 if check and different else 0


if __name__ == "__main__":
    sys.exit(main())
