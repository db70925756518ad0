# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What whoever exports has to know before the manifest is applied: what it leaves out whole, and what it promises of
objects that nobody has made yet.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Sequence, Set, Tuple

from ..problems import LONGEST_NAME, shortened
from .model import Flat, Skipped

#: A wildcard on so many objects is taken for a habit. On fewer it may be chance.
FEW = 5

#: How many schemas, and how many rules, are named.
_NAMED = 5


def notes(flat: Flat) -> List[str]:
    """The texts of warnings."""
    return [*_schemas_left_out(flat), *_small_wildcards(flat)]


def left_out(skipped: Sequence[Skipped]) -> List[str]:
    """What is not in the manifest as lines for people: of each reason the first few."""
    by_reason: Dict[str, List[str]] = {}
    for item in skipped:
        names = by_reason.setdefault(item.reason, [])
        names.append(_name(item) if len(names) < _NAMED else "")
    return [f"{reason}: {_first(names)}" for reason, names in sorted(by_reason.items())]


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _name(item: Skipped) -> str:
    """Whose it is and on what, in words where it has no name."""
    about = item.object
    if about is None:
        return shortened(item.what if item.role is None else f"role {item.role}", LONGEST_NAME) or ""
    dotted = ".".join(name for name in (about["schema"], about["name"]) if name is not None)
    columns = f" ({', '.join(about['columns'])})" if about["columns"] else ""
    who = "" if item.role is None else f"{item.role} on "
    return shortened(f"{who}{about['type'].replace('_', ' ')} {dotted}".rstrip() + columns, LONGEST_NAME) or ""


def _schemas_left_out(flat: Flat) -> Iterator[str]:
    found = [item for item in flat.skipped if item.kind == "schema" and item.object is not None]
    for item in found[:_NAMED]:
        name = (item.object or {})["name"]
        yield f"schema {name} is not in the manifest: {item.what}"
    more = len(found) - _NAMED
    if more > 0:
        yield "1 more schema is not in the manifest" if more == 1 else f"{more} more schemas are not in the manifest"


def _small_wildcards(flat: Flat) -> Iterator[str]:
    """Rules with a wildcard that few objects stand for, and that no default privileges say of future ones."""
    expected = _by_default(flat.manifest)
    found: List[str] = []
    for rule in flat.manifest.get("grants", ()):
        target = rule["object"]
        kind, schema = target["type"], target.get("schema")
        if target.get("name") != "*" or schema is None or rule.get("ensure") == "absent":
            continue
        count = len(flat.inventory.objects.get((schema, kind), ()))
        given = set().union(*(expected.get((rule["role"], place, kind), ()) for place in (schema, None)))
        if count < FEW and not set(rule["privileges"]) <= given:
            found.append(f"{rule['role']} on {kind} {schema}.* ({count})")
    if not found:
        return
    rules = "1 rule with * stands" if len(found) == 1 else f"{len(found)} rules with * stand"
    yield f"{rules} for fewer than {FEW} objects and would also give what is made next: {_first(found)}"


def _by_default(manifest: Mapping[str, Any]) -> Dict[Tuple[str, Any, str], Set[str]]:
    """What default privileges of anybody give, by role, schema and kind."""
    found: Dict[Tuple[str, Any, str], Set[str]] = {}
    for entry in manifest.get("default_privileges", ()):
        for grant in entry["grant"]:
            if grant.get("ensure") != "absent":
                place = (grant["role"], entry.get("schema"), grant["on_type"])
                found.setdefault(place, set()).update(grant["privileges"])
    return found
