# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What each role of a flat manifest holds, seen as what a profile could give it, or why none could."""

from __future__ import annotations

import re
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple, Union

from ..manifest import settings
from ..manifest.texts import Refused
from ..privileges import KINDS
from .model import Inventory

#: A privilege, and whether it comes with the grant option.
Held = Tuple[str, bool]
#: An object's name, and a column of it or None for the object itself.
Target = Tuple[str, Optional[str]]
#: The settings of a role: the elements of each value.
Settings = Mapping[str, Tuple[str, ...]]

#: What an entry of ``roles`` may say while a profile can say the same. The rest of the keys keep the role flat.
_CARRIED = ("name", "login", "inherit", "config")

#: Why a role stays flat. docs/export.md explains each; the braces take the particular.
EXTERNAL = "someone else looks after it (external)"
ATTRIBUTE = "a profile cannot carry what it has: {}"
OWNER = "it owns a schema, or default privileges of it are declared"
ELSEWHERE = "it holds something outside of one schema: {}"
TAKES = "a rule takes something away from it"
UNDECLARED = "the schema {} is not in schemas"
UNREADABLE = "its setting {} cannot be read as a list"


class Form(NamedTuple):
    """What a role holds on the objects of one kind in its schema.

    ``every``: what it holds on each of them. ``named``: what it holds beyond that, with the name and the column.
    """

    every: FrozenSet[Held] = frozenset()
    named: FrozenSet[Tuple[str, Optional[str], str, bool]] = frozenset()

    def means(self, label: Optional[str]) -> Dict[Target, Dict[str, bool]]:
        """What the form comes to where there is one object of the kind, or none."""
        found: Dict[Target, Dict[str, bool]] = {}
        if label is not None and self.every:
            found[label, None] = dict(self.every)
        for name, column, privilege, option in self.named:
            held = found.setdefault((name, column), {})
            held[privilege] = option or held.get(privilege, False)
        return found


class Shape(NamedTuple):
    """A role that a profile could stand for. ``defaults``: kind, privilege and grant option, of the schema's owner.

    ``forms``: by kind, for the kinds on which the role holds something.
    """

    role: str
    schema: str
    login: Optional[bool]
    inherit: bool
    config: Optional[Settings]
    on_schema: FrozenSet[Held]
    defaults: FrozenSet[Tuple[str, str, bool]]
    forms: Mapping[str, Form]


class _Role:
    """What the rules say about one role, while they are read."""

    def __init__(self) -> None:
        self.on_schema: Dict[str, bool] = {}
        self.every: Dict[str, Dict[str, bool]] = {}
        self.named: Dict[str, Dict[Target, Dict[str, bool]]] = {}
        self.defaults: Dict[Tuple[str, str], bool] = {}
        self.schemas: Set[str] = set()
        self.elsewhere: List[str] = []
        self.takes = False


def shapes(manifest: Mapping[str, Any], inventory: Inventory) -> Tuple[Dict[str, Shape], Dict[str, str]]:
    """The roles that a profile could stand for, and why the others that hold something in a schema cannot be such.

    Both by the role's name, sorted. The time is linear in the manifest's rules.
    """
    owners = {
        str(item["name"]): item.get("owner") or manifest.get("default_owner") for item in manifest.get("schemas") or ()
    }
    entries = {str(item["name"]): item for item in manifest.get("roles") or ()}
    read = {name: _Role() for name in sorted(entries)}
    _read_grants(manifest, read)
    _read_defaults(manifest, owners, read)
    busy = set(owners.values()) | _owners_of_defaults(manifest)
    found: Dict[str, Shape] = {}
    flat: Dict[str, str] = {}
    for name, role in read.items():
        if not role.schemas:
            continue
        shape = _shape(entries[name], role, owners, busy, inventory)
        if isinstance(shape, Shape):
            found[name] = shape
        else:
            flat[name] = shape
    return found, flat


def _read_grants(manifest: Mapping[str, Any], read: Mapping[str, _Role]) -> None:
    for rule in manifest.get("grants") or ():
        role = read.get(rule["role"])
        if role is None:
            continue
        target = rule["object"]
        kind = target["type"]
        if kind == "schema":
            role.schemas.add(target["name"])
        elif KINDS[kind].in_schema:
            role.schemas.add(target["schema"])
        else:
            role.elsewhere.append(f"{kind.replace('_', ' ')} {target.get('name') or '(the connected one)'}")
            continue
        if rule.get("ensure") == "absent":
            role.takes = True
            continue
        option = rule.get("with_grant_option") is True
        if kind == "schema":
            _add(role.on_schema, rule["privileges"], option)
        elif target["name"] == "*" and not rule.get("columns"):
            _add(role.every.setdefault(kind, {}), rule["privileges"], option)
        else:
            named = role.named.setdefault(kind, {})
            for column in rule.get("columns") or (None,):
                _add(named.setdefault((target["name"], column), {}), rule["privileges"], option)


def _read_defaults(manifest: Mapping[str, Any], owners: Mapping[str, Optional[str]], read: Mapping[str, _Role]) -> None:
    for entry in manifest.get("default_privileges") or ():
        schema = entry.get("schema")
        owner = entry.get("owner") or manifest.get("default_owner")
        for item in entry["grant"]:
            role = read.get(item["role"])
            if role is None:
                continue
            if schema is None or (schema in owners and owner != owners[schema]):
                place = "globally" if schema is None else f"in {schema}"
                role.elsewhere.append(f"default privileges of {owner} {place}")
                continue
            role.schemas.add(schema)
            if item.get("ensure") == "absent":
                role.takes = True
                continue
            for privilege in item["privileges"]:
                key = (item["on_type"], privilege)
                role.defaults[key] = role.defaults.get(key, False) or item.get("with_grant_option") is True


def _add(held: Dict[str, bool], privileges: Iterable[str], option: bool) -> None:
    for privilege in privileges:
        held[privilege] = option or held.get(privilege, False)


def _owners_of_defaults(manifest: Mapping[str, Any]) -> Set[Optional[str]]:
    return {item.get("owner") or manifest.get("default_owner") for item in manifest.get("default_privileges") or ()}


def _shape(
    entry: Mapping[str, Any],
    role: _Role,
    owners: Mapping[str, Optional[str]],
    busy: Set[Optional[str]],
    inventory: Inventory,
) -> Union[Shape, str]:
    """The role's shape, or why it has none."""
    if entry.get("external"):
        return EXTERNAL
    more = [key for key, value in entry.items() if key not in _CARRIED and not _default(key, value)]
    if more:
        return ATTRIBUTE.format(", ".join(sorted(more)))
    if entry["name"] in busy:
        return OWNER
    if len(role.schemas) > 1:
        role.elsewhere.append("schemas " + _few(sorted(role.schemas)))
    if role.elsewhere:
        return ELSEWHERE.format(_few(list(dict.fromkeys(role.elsewhere))))
    if role.takes:
        return TAKES
    schema = next(iter(role.schemas))
    if schema not in owners:
        return UNDECLARED.format(schema)
    config: Optional[Dict[str, Tuple[str, ...]]] = None
    if entry.get("config") is not None:
        config = {}
        for name, value in entry["config"].items():
            if value is None:
                continue
            try:
                config[settings.fold(name)] = settings.declared(settings.fold(name), written(value))
            except Refused:
                return UNREADABLE.format(name)
    forms = {}
    for kind in {*role.every, *role.named}:
        form = _form(
            role.every.get(kind, {}), role.named.get(kind, {}), inventory.objects.get((schema, kind), frozenset())
        )
        if form != Form():
            forms[kind] = form
    return Shape(
        role=entry["name"],
        schema=schema,
        login=entry.get("login"),
        inherit=entry.get("inherit") is not False,
        config=config,
        on_schema=frozenset(role.on_schema.items()),
        defaults=frozenset((kind, privilege, option) for (kind, privilege), option in role.defaults.items()),
        forms=forms,
    )


def _default(key: str, value: Any) -> bool:
    """Whether a field of a role says no more than leaving it out does."""
    return value is None or value is False or (key == "connection_limit" and value == -1)


def _few(texts: List[str], most: int = 3) -> str:
    rest = len(texts) - most
    return ", ".join((*texts[:most], f"and {rest} more") if rest > 0 else texts)


def written(value: Any) -> str:
    """A setting's value as text, whatever YAML made of it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _form(every: Mapping[str, bool], named: Mapping[Target, Mapping[str, bool]], labels: FrozenSet[str]) -> Form:
    """One form for all ways to say the same: what each object has is in ``every``, however it was written."""
    everywhere = dict(every) if labels else {}
    holders: Dict[Held, Set[str]] = {}
    for (label, column), held in named.items():
        if column is not None or label not in labels:
            continue
        for privilege, option in held.items():
            holders.setdefault((privilege, False), set()).add(label)
            if option:
                holders.setdefault((privilege, True), set()).add(label)
    for (privilege, option), found in holders.items():
        if len(found) == len(labels):
            everywhere[privilege] = option or everywhere.get(privilege, False)
    beyond = frozenset(
        (label, column, privilege, option)
        for (label, column), held in named.items()
        for privilege, option in held.items()
        if column is not None
        or label not in labels
        or privilege not in everywhere
        or (option and not everywhere[privilege])
    )
    return Form(frozenset(everywhere.items()), beyond)


# ---- words in names and values --------------------------------------------------------------------------------------


def places(text: str, word: str) -> List[int]:
    """Where the word stands in the text: between separators, or else anywhere. Separators are what is no letter and
    no digit.
    """
    anywhere = [match.start() for match in re.finditer(f"(?={re.escape(word)})", text)]
    whole = [
        start
        for start in anywhere
        if not text[start - 1 : start].isalnum() and not text[start + len(word) : start + len(word) + 1].isalnum()
    ]
    return whole or anywhere


def replaced(text: str, word: str, new: str) -> str:
    """The text with another word in the places of the word between separators."""
    starts = places(text, word)
    parts: List[str] = []
    end = 0
    for start in starts:
        if start >= end:
            parts += [text[end:start], new]
            end = start + len(word)
    return "".join((*parts, text[end:]))
