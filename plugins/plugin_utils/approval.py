# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The artifact of a plan: what it holds, and in a later job the digests that were approved, or what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")


class Approval(NamedTuple):
    """``digests``: the approved one of each database, in their order; empty where there is a problem."""

    problems: List[str]
    digests: List[str]


def artifact_of(results: Sequence[Mapping[str, Any]]) -> Dict[str, Dict[str, Any]]:
    """What is kept of plans for whoever approves them, by database.

    ``summary.managed`` stays out: AWX repeats an artifact in every later job, and that list is as long as the database
    is large.
    """
    return {
        result["server"]["database"]: {
            "digest": result["plan_digest"],
            "changed": result["changed"],
            "suppressed_revoke_count": result["suppressed_revoke_count"],
            "summary": {name: value for name, value in result["summary"].items() if name != "managed"},
        }
        for result in results
    }


def approval_of(approved: Any, host: str, databases: Sequence[str]) -> Approval:
    """What was approved for a host and each of its databases.

    An empty name of a database is one that the role does not know, because the environment names it; then the artifact
    must have a single one. A digest holds only for its own database, so no other can be meant.
    """
    entry, problem = _entry_of(approved, host)
    if entry is None:
        return Approval([problem], [])
    problems: List[str] = []
    digests: List[str] = []
    for database in databases:
        if not database and len(entry) != 1:
            problems.append(
                f"reconcile_approved has {_listed(entry)} for {host}, and neither reconcile_database nor login_db in"
                " reconcile_connection says which is meant"
            )
            continue
        name = database or next(iter(entry))
        if name not in entry:
            problems.append(f"reconcile_approved has {_listed(entry)} for {host}, and not {name}: nobody approved it")
            continue
        plan = entry[name]
        digest = plan.get("digest") if isinstance(plan, Mapping) else None
        if not isinstance(digest, str) or not DIGEST.match(digest):
            problems.append(f"reconcile_approved has no digest of a plan for {host}, {name}: nobody approved one")
            continue
        digests.append(str(digest))
    return Approval(problems, [] if problems else digests)


def _entry_of(approved: Any, host: str) -> Tuple[Optional[Dict[str, Any]], str]:
    """What the artifact has for a host, by the names of databases."""
    if not isinstance(approved, Mapping) or not approved:
        return None, "reconcile_approved is empty or no dict: what was approved is lost"
    hosts = _by_text(approved)
    if host not in hosts:
        return None, f"reconcile_approved has {_listed(hosts)}, and not {host}: nobody approved a plan for it"
    entry = hosts[host]
    if not isinstance(entry, Mapping) or not entry:
        return None, f"reconcile_approved has nothing for {host}: nobody approved a plan for it"
    return _by_text(entry), ""


def _by_text(items: Mapping[Any, Any]) -> Dict[str, Any]:
    """Names as text again: AWX makes numbers of those that look like one."""
    return {str(name): value for name, value in items.items()}


def _listed(names: Mapping[str, Any], most: int = 5) -> str:
    shown = sorted(names)
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")
