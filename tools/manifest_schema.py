# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The manifest's spec as a JSON Schema, for editors that complete and check manifest files.

Keys, types, choices and limits come from the spec; RULES adds what several values of one entry have to do with each
other. The schema refuses nothing that the validator accepts. What it cannot know (names that nobody declares,
contradictions, another file) is the validator's alone; tests/fuzz/test_schema.py holds the list.

Only keywords that draft 7 has as well are used, because many editors know no later one. Patterns are written in what
ECMA 262 and Python's ``re`` have in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Callable

Option = Mapping[str, Any]
Options = Mapping[str, Option]
Schema = dict[str, Any]

#: Any text that PostgreSQL can hold.
_ANY = r"[^\u0000]"

#: A letter beyond ASCII counts as one in a parameter's name.
_WORD = r"(?:[A-Za-z_]|[^\u0000-\u007f])(?:[A-Za-z0-9_$]|[^\u0000-\u007f]){0,62}"
_PARAMETER = rf"^{_WORD}(?:\.{_WORD})*$"

#: What a shell-style pattern may not consist of alone: brackets with more than one character, * and ?. Each bracket can
#: be read in one way only.
_WILD = r"(?:\[(?!\]\])!?\][^\]]*\]|\[!?\](?![^\]]*\])|\[(?!!?\])(?![^!\]]\])[^\]]+\]|[*?])*"

_DATE = r"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]{1,6})?)?"
_ZONE = r"(?:[Zz]|[+-](?:0[0-9]|1[0-5])(?::?[0-5][0-9])?)"

#: A name, or name(argument types). A name in double quotes may hold anything.
_ROUTINE = r'^(?:[^()]+|"[^\u0000]*|[^\u0000]*[^\s\u0000][^\u0000]*\([^\u0000]*\))$'


def _letters(word: str) -> str:
    """A pattern for a word in any case."""
    return "".join(f"[{char.upper()}{char.lower()}]" if char.isalpha() else re.escape(char) for char in word)


def _not(*words: str) -> str:
    """A pattern that none of these words, in any case, goes on from here."""
    return "".join(f"(?!{_letters(word)}$)" for word in words)


def _name(without: str = "") -> Schema:
    """A name in the catalog. 63 bytes are at most 63 characters."""
    return {"minLength": 1, "maxLength": 63, "pattern": f"^{without}{_ANY}+$"}


#: What a text may be, by the spec's ``judge``.
TEXTS: Mapping[str, Schema] = {
    "role": _name(_not("public", "none")),
    "declared_role": _name(_not("public", "none")),
    "grantee": _name(_not("none")),
    "schema": _name(r"(?!\*$)"),
    "declared_schema": _name(r"(?!\*$)(?!pg_)(?!information_schema$)(?!role_reconcile$)"),
    "object_name": {"minLength": 1, "pattern": f"^{_ANY}+$"},
    "column": _name(r"(?!\*$)"),
    "comment": {"pattern": f"^{_ANY}*$"},
    "password": {"minLength": 1, "pattern": f"^{_ANY}+$"},
    "environment_name": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
    "profile_name": _name(),
    "pattern": {"maxLength": 1000, "pattern": rf"^(?!{_WILD}$){_ANY}+$"},
    "role_pattern": {
        "pattern": rf"^(?!{_ANY}*\{{(?!(?:schema|profile)\}})\w*\}})(?={_ANY}*\{{profile\}}){_ANY}*$",
    },
    "instant": {"pattern": rf"^(?:{_letters('infinity')}|{_DATE}[Tt ]{_TIME}\s?{_ZONE})$"},
}


class Generator:
    """Makes the schema. ``markdown`` turns Ansible's markup into plain text."""

    def __init__(self, spec: Any, privileges: Any, plain: Callable[[str], str]) -> None:
        self._spec = spec
        self._kinds = privileges.KINDS
        self._aliases = privileges.KIND_ALIASES
        self._other_privileges = privileges.PRIVILEGE_ALIASES
        self._plain = plain
        self._rules: dict[tuple[str, ...], list[Schema]] = {
            ("roles",): self._role_rules(),
            ("grants",): self._grant_rules(profile=False),
            ("grants", "object"): self._object_rules(profile=False),
            ("profiles", "grants"): self._grant_rules(profile=True),
            ("profiles", "grants", "object"): self._object_rules(profile=True),
            ("profiles", "default_privileges"): self._default_rules(profile=True),
            ("default_privileges",): self._layer_rules(),
            ("default_privileges", "grant"): self._default_rules(profile=False),
            ("retirements",): self._retirement_rules(),
        }

    def schema(self) -> Schema:
        """The whole schema. A rule about something that the spec does not have is an error."""
        missing = set(self._rules)
        sections = self._dict(self._spec.SECTIONS, (), missing)
        if missing:
            raise SystemExit(f"tools/manifest_schema.py: rules about what is not there: {sorted(missing)}")
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "manifest.schema.json",
            "title": "Manifest of pg_access.reconcile",
            "description": "Which roles, memberships, schemas, privileges and default privileges one PostgreSQL"
            " database should have.",
            **sections,
            "minProperties": 1,
            "$defs": self._privilege_lists(),
        }

    # -- from the spec --

    def _dict(self, options: Options, path: tuple[str, ...], missing: set[tuple[str, ...]]) -> Schema:
        properties: Schema = {}
        required: list[str] = []
        rules: list[Schema] = []
        for name, option in options.items():
            names = (name, *option.get("aliases", ()))
            one_name = option.get("required", False) and len(names) == 1
            found = self._value(option, (*path, name), missing, null=not one_name)
            for each in names:
                properties[each] = found if each == name else {**found, "description": f"Another name for {name}."}
            if one_name:
                required.append(name)
            elif option.get("required"):
                rules.append({"oneOf": [_given(each) for each in names]})
            elif len(names) > 1:
                rules.append({"not": {"allOf": [_given(each) for each in names]}})
        if path in missing:
            rules += self._rules[path]
            missing.discard(path)
        result: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            result["required"] = required
        if rules:
            result["allOf"] = rules
        return result

    def _value(self, option: Option, path: tuple[str, ...], missing: set[tuple[str, ...]], *, null: bool) -> Schema:
        """The schema of a value. ``null``: the value may be null, which means omitted."""
        found = self._bare(option, path, missing)
        kinds = found["type"] if isinstance(found.get("type"), list) else [found.get("type")]
        if null:
            found["type"] = [*kinds, "null"]
            if "enum" in found:
                found["enum"] = [*found["enum"], None]
        described = {"description": self._description(option)}
        return {**described, **found, **self._default(option)}

    def _bare(self, option: Option, path: tuple[str, ...], missing: set[tuple[str, ...]]) -> Schema:
        kind = option["type"]
        if kind == "list":
            element = {**option, "type": option["elements"]}
            found: Schema = {"type": "array", "items": self._bare(element, path, missing)}
            if option.get("nonempty"):
                found["minItems"] = 1
            return found
        if kind == "dict" and "values" in option:
            values = self._dict(option["values"], path, missing)
            values["type"] = ["object", "null"]
            return {"type": "object", "propertyNames": _name(), "additionalProperties": values}
        if kind == "dict" and option.get("settings"):
            value = {"type": ["string", "number", "boolean", "null"], "pattern": f"^{_ANY}*$"}
            return {"type": "object", "propertyNames": {"pattern": _PARAMETER}, "additionalProperties": value}
        if kind == "dict":
            return self._dict(option["options"], path, missing)
        if kind == "raw":
            name = {"type": "string", **TEXTS[option["judge"]]}
            return {"anyOf": [name, self._dict(option["of_dict"], path, missing)], "type": ["string", "object"]}
        if kind == "bool":
            return {"type": "boolean"}
        if kind == "int":
            return {"type": "integer", **{key: option[key] for key in ("minimum", "maximum") if key in option}}
        found = {"type": ["string", "integer"] if option.get("or_number") else "string"}
        if "choices" in option:
            found["enum"] = list(option["choices"])
        elif option.get("judge"):
            found.update(TEXTS[option["judge"]])
        return found

    def _description(self, option: Option) -> str:
        words = " ".join(option["description"])
        if option.get("in_effect", "none") != "none":
            words += f" In effect when omitted: {option['in_effect']}."
        return self._plain(words)

    def _default(self, option: Option) -> Schema:
        """What an omitted option means, where that is a value."""
        match = re.fullmatch(r"V\((.*)\)(?:, enforced)?", option.get("in_effect", ""))
        if match is None:
            return {}
        text, kind = match.group(1), option["type"]
        values: dict[str, Callable[[], Any]] = {
            "bool": lambda: {"true": True, "false": False}[text],
            "int": lambda: int(text),
            "list": lambda: {"[]": []}[text],
            "str": lambda: text,
        }
        return {"default": values[kind]()}

    # -- what belongs together --

    def _names(self, kinds: Iterable[str]) -> list[str]:
        """Kinds with their other names."""
        found = list(kinds)
        return found + [alias for alias, kind in self._aliases.items() if kind in found]

    def _with(self, wanted: Callable[[Any], object]) -> list[str]:
        return [name for name, kind in self._kinds.items() if wanted(kind)]

    def _privilege_lists(self) -> Schema:
        lists = {name: list(kind.privileges) for name, kind in self._kinds.items()}
        (columns,) = {kind.column_privileges for kind in self._kinds.values() if kind.column_privileges}
        lists["column"] = [name for name in lists["table"] if name in columns]
        found: Schema = {}
        for name, words in lists.items():
            known = [*words, *(alias for alias, word in self._other_privileges.items() if word in words), "ALL"]
            spelled = "|".join(r"\s+".join(map(_letters, word.split())) for word in [*known, "ALL PRIVILEGES"])
            # The enumeration is for completion. Any case will do, and so will more spaces.
            item = {"anyOf": [{"enum": known}, {"type": "string", "pattern": rf"^\s*(?:{spelled})\s*$"}]}
            found[f"{name}_privileges"] = {"items": item}
        return found

    def _privileges(self, key: str) -> list[Schema]:
        """The privileges of a rule are those of its type, which stands under this key."""
        return [
            {"if": _choice(key, self._names([name])), "then": _both({"privileges": _list_of(name)})}
            for name in self._kinds
        ]

    def _grant_rules(self, *, profile: bool) -> list[Schema]:
        relations = self._names(self._with(lambda kind: kind.column_privileges))
        rules = []
        # A profile's objects lie in its schema, or are that.
        for name in self._with(lambda kind: not profile or kind.in_schema or kind.name == "schema"):
            typed = _choice("type", self._names([name]))
            rules.append({"if": _either_object(typed), "then": _both({"privileges": _list_of(name)})})
        # Columns are for relations, which columns have privileges of their own.
        rules.append(
            {
                "if": _given("columns"),
                "then": {
                    **_both({"privileges": _list_of("column")}),
                    **_either_object(_choice("type", relations)),
                },
            }
        )
        return [*rules, _no_grant_option()]

    def _object_rules(self, *, profile: bool) -> list[Schema]:
        routine: Schema = {"type": "string", "pattern": _ROUTINE}
        by_kind: dict[str, Schema] = {
            "function": routine,
            "parameter": {"type": "string", "pattern": _PARAMETER},
            "large_object": {
                "anyOf": [
                    {"type": "integer", "minimum": 1, "maximum": 4294967295},
                    {"type": "string", "pattern": "^0*[1-9][0-9]{0,9}$", "maxLength": 20},
                ]
            },
        }
        rules: list[Schema] = []
        if profile:
            outside = self._with(lambda kind: not kind.in_schema and kind.name != "schema")
            rules.append(_both({"type": {"not": {"enum": self._names(outside)}}}))
        for name, kind in self._kinds.items():
            plain = {"type": "string", **_name("" if kind.in_schema else r"(?!\*$)")}
            wanted: Schema = {"name": by_kind.get(name, plain)}
            if profile and name == "schema":
                then: Schema = _both({"name": {"type": "null"}})
            elif profile and not kind.in_schema:
                continue
            elif name == "database":
                then = _both({"name": {**plain, "type": ["string", "null"]}, "schema": {"type": "null"}})
            elif profile:
                then = {**_both(wanted), "required": ["name"]}
            elif kind.in_schema:
                then = {**_both({**wanted, "schema": {"type": "string"}}), "required": ["schema", "name"]}
            else:
                then = {**_both({**wanted, "schema": {"type": "null"}}), "required": ["name"]}
            rules.append({"if": _choice("type", self._names([name])), "then": then})
        return rules

    def _default_rules(self, *, profile: bool) -> list[Schema]:
        rules = [*self._privileges("on_type"), _no_grant_option()]
        return [*rules, self._in_schema()] if profile else rules

    def _in_schema(self) -> Schema:
        """Some kinds have no default privileges in a schema."""
        outside = self._names(self._with(lambda kind: kind.default_acl and not kind.in_schema))
        return _both({"on_type": {"not": {"enum": outside}}})

    def _layer_rules(self) -> list[Schema]:
        built_in = self._names(self._with(lambda kind: kind.default_acl and kind.public))
        public_loses = {
            **_both(
                {
                    "role": {"type": "string", "pattern": f"^{_letters('public')}$"},
                    "ensure": {"const": "absent"},
                    "on_type": {"enum": built_in},
                }
            ),
            "required": ["role", "ensure", "on_type"],
        }
        item = {"allOf": [self._in_schema(), {"not": public_loses}]}
        then = _both({"grant": {"items": item}, "scope": {"type": "null"}})
        return [{"if": _given("schema"), "then": then}]

    def _role_rules(self) -> list[Schema]:
        none = {"type": "null"}
        taken = (*self._spec.ROLE_ATTRIBUTES, *self._spec.PASSWORD_FIELDS, "config", "comment")
        options = self._spec.ROLE_OPTIONS
        names = [each for name in taken for each in (name, *options[name].get("aliases", ()))]
        external = {**_both({"external": {"const": True}}), "required": ["external"]}
        reserved = {**_both({"name": {"type": "string", "pattern": "^pg_"}}), "required": ["name"]}
        return [
            {"if": external, "then": _both(dict.fromkeys(names, none))},
            {"if": reserved, "then": external},
            {"not": {"allOf": [_given("password"), _given("password_from_env")]}},
        ]

    def _retirement_rules(self) -> list[Schema]:
        everywhere = {**_both({"all_databases": {"const": True}}), "required": ["all_databases"]}
        emptied = {**_both({"drop_owned": {"const": True}}), "required": ["drop_owned"]}
        return [
            _both({"role": {"not": {"type": "string", "pattern": "^pg_"}}}),
            {"if": everywhere, "then": {"anyOf": [_given("reassign_owned_to"), emptied]}},
        ]


def _both(properties: Schema) -> Schema:
    return {"properties": properties}


def _given(name: str) -> Schema:
    """The key is there, and not null."""
    return {**_both({name: {"not": {"type": "null"}}}), "required": [name]}


def _choice(key: str, values: list[str]) -> Schema:
    return {**_both({key: {"enum": values}}), "required": [key]}


def _list_of(kind: str) -> Schema:
    return {"$ref": f"#/$defs/{kind}_privileges"}


def _either_object(schema: Schema) -> Schema:
    """A rule whose object, under either name, is such a one."""
    return {"anyOf": [{**_both({name: schema}), "required": [name]} for name in ("object", "on")]}


def _no_grant_option() -> Schema:
    """Only a role has the grant option, and a rule that takes something gives none."""
    option = {**_both({"with_grant_option": {"const": True}}), "required": ["with_grant_option"]}
    public = {"not": {"type": "string", "pattern": f"^{_letters('public')}$"}}
    return {"if": option, "then": _both({"ensure": {"not": {"const": "absent"}}, "role": public})}
