# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""How large a plan may be before somebody has to look at it."""

from __future__ import annotations

from typing import List, Optional

from .changes import DropRole, Plan, Revoke, RevokeDefault, weight
from .problems import Problem


def brake_problems(plan: Plan, max_drops: Optional[int], max_revokes: Optional[int]) -> List[Problem]:
    """The limits that a plan exceeds. Revokes count as in the summary: privileges times objects."""
    revokes = sum(
        weight(change)
        for change in plan.changes
        if isinstance(change, RevokeDefault) or (isinstance(change, Revoke) and not change.again)
    )
    drops = sum(isinstance(change, DropRole) for change in plan.changes)
    found = (
        ("max_drops", "drops", drops, max_drops, "role"),
        ("max_revokes", "revokes", revokes, max_revokes, "privilege"),
    )
    return [
        Problem(
            path=option,
            message=f"the plan {verb} {count} {what}{'s' if count != 1 else ''}, and {option} is {limit}",
            hint=f"Look at the plan; where it is right, raise {option} for this run.",
            code="plan_too_large",
        )
        for option, verb, count, limit, what in found
        if limit is not None and count > limit
    ]
