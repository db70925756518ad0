# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The text that ``--diff`` shows: what is and what is planned, in YAML that reads like the manifest.

What the override keeps stands in both texts, because it is there before and after; the note on the planned line makes
the two differ, so the diff shows it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from ..changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    CommentRole,
    CreateRole,
    CreateSchema,
    DropOwned,
    DropRole,
    Grant,
    GrantDefault,
    Plan,
    ReassignOwned,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetConfig,
    SetPassword,
)
from ..instants import instant
from ..manifest.settings import shown
from ..privileges import KINDS
from .items import ordered

#: How many objects are named before a count takes their place.
HANDFUL = 5

KEPT = "  # kept: privilege_reconciliation: additive"

# A number with a unit is text in YAML as well, but for an exponent.
_PLAIN = re.compile(r"(?:[(A-Za-z_][\w.*()/+-]*(?: [\w.*()/+-]+)*|\d+(?:kB|MB|GB|TB|B|us|ms|s|min|h|d))\Z")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}

Lines = List[str]
Sides = Tuple[Lines, Lines]


def diff_of(plan: Plan, database: str) -> List[Dict[str, str]]:
    """The diff of one database, or nothing where nothing is to be shown."""
    before: Lines = []
    after: Lines = []
    sections = (
        ("roles", _roles(plan)),
        ("memberships", _memberships(plan)),
        ("schemas", _schemas(plan)),
        ("grants", _grants(plan)),
        ("default_privileges", _defaults(plan)),
        ("retirements", _possessions(plan)),
    )
    for title, (old, new) in sections:
        for side, lines in ((before, old), (after, new)):
            if lines:
                side.append(f"{title}:")
                side.extend(f"  {line}" for line in lines)
    if before == after:
        return []
    return [
        {
            "before_header": f"{database} (current)",
            "after_header": f"{database} (planned)",
            "before": "".join(f"{line}\n" for line in before),
            "after": "".join(f"{line}\n" for line in after),
        }
    ]


def scalar(value: Any) -> str:
    """A value as YAML writes it inside braces."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if _PLAIN.match(text) and text.lower() not in _WORDS:
        return text
    return json.dumps(text, ensure_ascii=False)


def mapping(items: Iterable[Tuple[str, Any]]) -> str:
    """A mapping on one line."""
    parts = []
    for key, value in items:
        if isinstance(value, (list, tuple)):
            parts.append(f"{key}: [{', '.join(scalar(item) for item in value)}]")
        elif isinstance(value, Mapping):
            parts.append(f"{key}: {mapping((scalar(name), item) for name, item in value.items())}")
        else:
            parts.append(f"{key}: {scalar(value)}")
    return "{" + ", ".join(parts) + "}"


def _roles(plan: Plan) -> Sides:
    old: Dict[str, Dict[str, Any]] = {}
    new: Dict[str, Dict[str, Any]] = {}
    for change in plan.changes:
        if isinstance(change, CreateRole):
            new[change.role.name] = _attributes(change.attributes)
        elif isinstance(change, AlterRole):
            old.setdefault(change.role.name, {}).update(_attributes(change.before))
            new.setdefault(change.role.name, {}).update(_attributes(change.attributes))
        elif isinstance(change, SetConfig):
            if not change.created:
                before = old.setdefault(change.role.name, {}).setdefault("config", {})
                if change.before is not None:
                    before[change.name] = change.before
            after = new.setdefault(change.role.name, {}).setdefault("config", {})
            if change.value is not None:
                after[change.name] = shown(change.name, change.value)
        elif isinstance(change, CommentRole):
            if change.before is not None:
                old.setdefault(change.role.name, {})["comment"] = change.before
            elif not change.created:
                old.setdefault(change.role.name, {})
            new.setdefault(change.role.name, {})["comment"] = change.comment
        elif isinstance(change, SetPassword):
            if not change.created:
                old.setdefault(change.role.name, {})
            new.setdefault(change.role.name, {})["password"] = "(removed)" if change.clear else "(changed)"
        elif isinstance(change, DropRole):
            old.setdefault(change.role.name, {})
    return _mappings("name", old), _mappings("name", new)


def _possessions(plan: Plan) -> Sides:
    """What roles that go leave behind: whose it becomes, or that it is destroyed."""
    old: Lines = []
    new: Lines = []
    for change in plan.changes:
        if isinstance(change, (ReassignOwned, DropOwned)):
            place = [] if change.database is None else [("database", change.database)]
        if isinstance(change, ReassignOwned):
            new.append(f"- {mapping([*place, ('role', change.role.name), ('reassign_owned_to', change.heir.name)])}")
        elif isinstance(change, DropOwned):
            lost: List[Tuple[str, Any]] = [("policies", change.policies)] if change.policies else []
            if change.destroyed_count:
                rest = change.destroyed_count - len(change.destroyed)
                lost.append(("objects", [*change.destroyed, *([f"and {rest} more"] if rest > 0 else [])]))
            if lost:
                old.append(f"- {mapping([*place, ('role', change.role.name), *lost])}")
    return old, new


def _attributes(attributes: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: instant(value) if name == "valid_until" else value for name, value in sorted(attributes.items())}


def _mappings(key: str, items: Mapping[str, Mapping[str, Any]]) -> Lines:
    return [f"- {mapping([(key, name), *values.items()])}" for name, values in sorted(items.items())]


def _memberships(plan: Plan) -> Sides:
    old: Dict[str, Dict[str, Dict[str, Any]]] = defaultdict(dict)
    new: Dict[str, Dict[str, Dict[str, Any]]] = defaultdict(dict)
    for change in plan.changes:
        if isinstance(change, RemoveMember):
            group, member = change.group.name, change.member.name
            stays = change.option is not None or change.replaced
            lost = [change.option] if change.option is not None else sorted(change.lowered)
            if lost or not stays:
                old[group].setdefault(member, {}).update(dict.fromkeys(lost, True))
            if lost and stays:
                new[group].setdefault(member, {}).update(dict.fromkeys(lost, False))
    for change in plan.changes:
        if isinstance(change, AddMember):
            group, member = change.group.name, change.member.name
            if change.raised:
                old[group].setdefault(member, {}).update(dict.fromkeys(sorted(change.raised), False))
                new[group].setdefault(member, {}).update(dict.fromkeys(sorted(change.raised), True))
            elif not change.exists:
                unusual = {name: value for name, value in change.options.items() if value == (name == "admin")}
                new[group].setdefault(member, {}).update(unusual)
    return _by_group(old), _by_group(new)


def _by_group(groups: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Lines:
    lines: Lines = []
    for group, members in sorted(groups.items()):
        lines.append(f"- role: {scalar(group)}")
        lines.append("  members:")
        lines.extend(f"    {line}" for line in _mappings("name", members))
    return lines


def _schemas(plan: Plan) -> Sides:
    old: Dict[str, Dict[str, Any]] = {}
    new: Dict[str, Dict[str, Any]] = {}
    for change in plan.changes:
        if isinstance(change, CreateSchema):
            new[change.name] = {"owner": change.owner.name} if change.owner else {}
        elif isinstance(change, AlterSchemaOwner):
            old[change.name] = {"owner": change.before.name}
            new[change.name] = {"owner": change.owner.name}
    return _mappings("name", old), _mappings("name", new)


#: What makes privileges on objects one line: role, kind, schema, privileges, columns, grant option.
_Line = Tuple[str, int, str, Tuple[str, ...], Tuple[str, ...], bool]


def _grants(plan: Plan) -> Sides:
    old: Dict[_Line, List[str]] = defaultdict(list)
    new: Dict[_Line, List[str]] = defaultdict(list)
    kept: Dict[_Line, List[str]] = defaultdict(list)
    for change in plan.changes:
        if isinstance(change, Grant) and not change.again:
            new[_line(change, change.with_grant_option)].extend(item.label for item in change.target.objects)
            if change.upgrade:
                old[_line(change, False)].extend(item.label for item in change.target.objects)
        elif isinstance(change, Revoke) and not change.again:
            old[_line(change, change.option_only)].extend(item.label for item in change.target.objects)
            if change.option_only:
                new[_line(change, False)].extend(item.label for item in change.target.objects)
    for held in plan.suppressed:
        if isinstance(held, Revoke):
            kept[_line(held, held.option_only)].extend(item.label for item in held.target.objects)
    return _grant_lines(old, kept, ""), _grant_lines(new, kept, KEPT)


def _line(change: Union[Grant, Revoke], option: bool) -> _Line:
    target = change.target
    kind = list(KINDS).index(target.kind)
    privileges = tuple(ordered(change.privileges, target.kind))
    return change.grantee.name, kind, target.schema or "", privileges, target.columns, option


def _grant_lines(lines: Mapping[_Line, List[str]], kept: Mapping[_Line, List[str]], suffix: str) -> Lines:
    items = [(line, labels, "") for line, labels in lines.items()]
    items += [(line, labels, suffix) for line, labels in kept.items()]
    result: Lines = []
    for line, labels, end in sorted(items):
        role, kind, schema, privileges, columns, option = line
        fields: List[Tuple[str, Any]] = [("role", role), ("privileges", privileges)]
        fields.append(("object", objects(list(KINDS)[kind], schema, labels)))
        if columns:
            fields.append(("columns", columns))
        if option:
            fields.append(("with_grant_option", True))
        result.append(f"- {mapping(fields)}{end}")
    return result


def objects(kind: str, schema: str, labels: Sequence[str]) -> str:
    """Objects of one kind and schema in a few words: a handful by name, more by their number."""
    word = kind.replace("_", " ")
    if len(labels) > HANDFUL:
        return f"{word} {schema}.* ({len(labels)})" if schema else f"{word} * ({len(labels)})"
    names = sorted(f"{schema}.{label}" if schema else label for label in labels)
    return f"{word} {', '.join(names)}"


def _defaults(plan: Plan) -> Sides:
    old: List[Tuple[str, str]] = []
    new: List[Tuple[str, str]] = []
    for change in plan.changes:
        if isinstance(change, GrantDefault):
            new.append((_default_line(change, change.with_grant_option), ""))
            if change.upgrade:
                old.append((_default_line(change, False), ""))
        elif isinstance(change, RevokeDefault):
            old.append((_default_line(change, change.option_only), ""))
            if change.option_only:
                new.append((_default_line(change, False), ""))
    for held in plan.suppressed:
        if isinstance(held, RevokeDefault):
            line = _default_line(held, held.option_only)
            old.append((line, ""))
            new.append((line, KEPT))
    return [f"- {line}{end}" for line, end in sorted(old)], [f"- {line}{end}" for line, end in sorted(new)]


def _default_line(change: Union[GrantDefault, RevokeDefault], option: bool) -> str:
    place: Sequence[Tuple[str, Optional[str]]] = [("schema", change.schema)] if change.schema is not None else []
    fields: List[Tuple[str, Any]] = [
        ("owner", change.owner.name),
        *place,
        ("role", change.grantee.name),
        ("privileges", ordered(change.privileges, change.kind)),
        ("on_type", change.kind),
    ]
    if option:
        fields.append(("with_grant_option", True))
    return mapping(fields)
