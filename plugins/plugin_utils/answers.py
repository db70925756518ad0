# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What ``explain`` answers as lines that a person reads: who has what, how it comes, and what stands behind it."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

#: Lines about one role. Whoever has more of them looks into the result, or asks for a report.
MOST = 100

_VERBS = {"unchanged": "has", "gained": "gains", "lost": "loses"}

Item = Mapping[str, Any]


def lines_of(result: Mapping[str, Any]) -> List[str]:
    """The answers in a result, by role, those that differ in nothing but the privilege as one line."""
    name = result["server"]["database"]
    if result.get("explain") is None:
        return [f"{name}: nothing was to be explained"]
    by_role: Dict[str, List[str]] = {}
    for item, privileges in _together(result["explain"]):
        by_role.setdefault(item["role"], []).append(_line(item, privileges))
    lines = [f"{name}: {', '.join(by_role) or 'there is nothing to explain'}"]
    for role, found in by_role.items():
        lines += [f"{role} {line}" for line in found[:MOST]]
        if len(found) > MOST:
            lines.append(f"{role}: {len(found) - MOST} more answers")
    if result.get("truncated"):
        lines.append("the result was too large, so answers may be missing: ask for fewer roles at once")
    return lines


def _together(items: Sequence[Item]) -> Iterator[Tuple[Item, List[str]]]:
    found: Dict[str, Tuple[Item, List[str]]] = {}
    for item in items:
        key = json.dumps({name: value for name, value in item.items() if name != "privilege"}, sort_keys=True)
        found.setdefault(key, (item, []))[1].append(item["privilege"])
    return iter(found.values())


def _line(item: Item, privileges: Sequence[str]) -> str:
    option = " with grant option" if item["grant_option"] and item["how"] != "owner" else ""
    what = f"{', '.join(privileges)}{option} on {_object(item)}"
    rule = f" ({item['rule']})" if item["rule"] else ""
    told = ", ".join([f"{_VERBS[item['plan']]} {what}", *_way(item)])
    return f"{told}: {item['because']}{rule}"


def _object(item: Item) -> str:
    """What it is about, in the words of the diff: ``table inventory.* (12)``."""
    target = item["object"]
    if target["type"] == "*":
        return "everything"
    place = f"{target['schema']}." if target["schema"] else ""
    columns = f" ({', '.join(target['columns'])})" if target.get("columns") else ""
    number = f" ({item['count']})" if item["count"] > 1 else ""
    return f"{target['type'].replace('_', ' ')} {place}{target['name']}{columns}{number}"


def _way(item: Item) -> Iterator[str]:
    if item["how"] == "owner":
        yield "as owner"
    elif item["how"] == "superuser":
        yield "as superuser"
    elif item["how"] == "public":
        yield "as everybody"
    if item["via"] and item["how"] != "public":
        yield f"through {' -> '.join(item['via'])}"
    if item["set_role"] is not None:
        yield f"after SET ROLE {item['set_role']}"
