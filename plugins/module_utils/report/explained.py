# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Explanations as the result lists them."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List

from ..explain.answers import EVERYTHING, Explained
from ..statements.statement import SHOWN
from .items import object_of


def explained_items(explained: Iterable[Explained], *, brief: bool) -> List[Dict[str, Any]]:
    """One item for each way to a privilege on objects that are alike. ``brief``: with three names of them."""
    return [_item(item, brief=brief) for item in explained]


def _item(item: Explained, *, brief: bool) -> Dict[str, Any]:
    answer = item.answer
    labels = [one.label for one in item.objects]
    shown = labels[:SHOWN] if brief else labels
    return {
        "role": answer.role,
        "object": object_of(answer.kind, answer.schema, _name(item, labels), item.columns),
        "objects": [] if item.whole else shown,
        "count": len(labels),
        "privilege": answer.privilege,
        "grant_option": answer.grant_option,
        "grantor": answer.grantor,
        "how": answer.how,
        "via": list(answer.via),
        "set_role": answer.set_role,
        "because": answer.because,
        "rule": answer.rule,
        "plan": answer.plan,
    }


def _name(item: Explained, labels: List[str]) -> str:
    if item.whole or item.answer.kind == EVERYTHING:
        return "*"
    rest = len(labels) - SHOWN
    if rest > 0:
        return f"{', '.join(labels[:SHOWN])} and {rest} more"
    return ", ".join(labels)
