# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Results of the module as lines that people read: who gains, loses or is altered, and the backlog with its trend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

#: Lines of one sort. Whoever has more of them looks into the result.
MOST = 40

#: Names in one line.
FEW = 5

_COUNTED = (
    ("privileges", "privilege"),
    ("grant_options", "grant option"),
    ("default_privileges", "default privilege"),
)


def lines_of(result: Mapping[str, Any], previous: Any = None) -> List[str]:
    """The summary of one database's run. ``previous``: an earlier result, or what was kept of one, by any database."""
    name = result["server"]["database"]
    count = len(result["sql"])
    done = "would change" if result["check_mode"] else "changed"
    what = f"{done} with {count} statement{'' if count == 1 else 's'}" if result["changed"] else "nothing to do"
    lines = [f"{name}: {what}"]
    if result["changed"]:
        lines.append(_counts(result["summary"]))
    affected = result["affected_roles"]
    lines += _few([f"gain: {item['role']}: {words_of(item['gains'])}" for item in affected if item["gains"]], "gain")
    lines += _few([f"lose: {item['role']}: {words_of(item['loses'])}" for item in affected if item["loses"]], "lose")
    lines += _few(
        [f"altered: {item['role']}: {_listed(item['altered'])}" for item in affected if item["altered"]], "altered"
    )
    for what, names in (
        ("password set", [item["role"] for item in affected if item["password"] == "set"]),
        ("password removed", [item["role"] for item in affected if item["password"] == "removed"]),
        ("dropped", [item["role"] for item in affected if item["dropped"]]),
    ):
        if names:
            lines.append(f"{what}: {_listed(names, MOST)}")
    earlier = _earlier(previous, name)
    lines += _few(list(_backlog(result["summary"]["suppressed_revokes"], earlier)), "backlog")
    if previous and earlier is None:
        lines.append(f"backlog: the earlier result that was given says nothing about {name}")
    withheld = result["withheld"]
    if withheld:
        reasons = ", ".join(sorted({item["reason"] for item in withheld}))
        lines.append(f"held back for other reasons: {len(withheld)} ({reasons})")
    if result.get("truncated"):
        lines.append("the result was too large, so lists in it are shortened; counts are exact")
    return lines


def _counts(summary: Mapping[str, Any]) -> str:
    words = {"owner_changed": "moved"}
    sections = (
        ("roles", "roles"),
        ("passwords", "passwords"),
        ("memberships", "memberships"),
        ("schemas", "schemas"),
        ("grants", "privileges"),
        ("default_privileges", "default privileges"),
    )
    parts = []
    for section, title in sections:
        counts = ", ".join(f"{number} {words.get(key, key)}" for key, number in summary[section].items() if number)
        if counts:
            parts.append(f"{title}: {counts}")
    return "; ".join(parts) or "only records are tidied up"


def words_of(side: Mapping[str, Any]) -> str:
    """What one role gains or loses."""
    parts = [f"{side[key]} {word}{'' if side[key] == 1 else 's'}" for key, word in _COUNTED if side.get(key)]
    if side.get("memberships"):
        parts.append(f"member of {_listed(side['memberships'])}")
    if side.get("attributes"):
        parts.append(_listed(side["attributes"], len(side["attributes"])))
    if side.get("schemas"):
        parts.append(f"owner of schema {_listed(side['schemas'])}")
    if side.get("belongings_of"):
        parts.append(f"what {_listed(side['belongings_of'])} owned")
    return ", ".join(parts)


def _backlog(now: Mapping[str, int], before: Optional[Mapping[str, int]]) -> Iterator[str]:
    """The privileges that overrides keep, most of them first."""
    for role, count in _ranked(now):
        trend = ""
        if before is not None:
            earlier = before.get(role, 0)
            word = "fewer" if count < earlier else "more"
            trend = " (as before)" if count == earlier else f" ({abs(earlier - count)} {word} than before)"
        yield f"backlog: {count} undeclared privilege{'' if count == 1 else 's'} kept for {role}{trend}"
    for role, count in _ranked(before or {}):
        if count and role not in now:
            yield f"backlog: nothing more kept for {role} ({count} before)"


def _ranked(counts: Mapping[str, int]) -> List[Tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _earlier(previous: Any, database: str) -> Optional[Dict[str, int]]:
    """The backlog by role in an earlier result: alone, or by database; whole, or only its summary."""
    if not isinstance(previous, Mapping):
        return None
    found: Any = previous
    if "suppressed_revokes" not in found and "summary" not in found:
        found = found.get(database)
    if not isinstance(found, Mapping):
        return None
    server = found.get("server")
    if isinstance(server, Mapping) and server.get("database") != database:
        return None
    summary = found.get("summary", found)
    counts = summary.get("suppressed_revokes") if isinstance(summary, Mapping) else None
    if not isinstance(counts, Mapping) or not all(isinstance(count, int) for count in counts.values()):
        return None
    return {str(role): count for role, count in counts.items()}


def _few(lines: List[str], sort: str) -> List[str]:
    return lines if len(lines) <= MOST else [*lines[:MOST], f"{sort}: {len(lines) - MOST} more roles"]


def _listed(names: Sequence[str], most: int = FEW) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
