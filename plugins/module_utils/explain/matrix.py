# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Roles and schemas: who may do what where, at a glance. Made from the items of a result, wherever that has got to."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Tuple

from ..privileges import KINDS
from .answers import EVERYTHING, LOST, OWNS, ROLE

#: How far a privilege reaches in a schema: every object of the kind, some of them, or neither without SET ROLE.
WHOLE, PARTLY, LATER = "all", "some", "set_role"
_RANK = (LATER, PARTLY, WHOLE)

#: The column for what holds in every schema, or beside them.
EVERYWHERE = "*"

#: By kind and privilege, how far it reaches.
Cell = Mapping[str, Mapping[str, str]]


class Matrix(NamedTuple):
    """``roles`` and ``schemas`` in order; ``cells`` by role and schema, where there is something to say.

    What lies in no schema, and what predefined roles and superusers reach everywhere, is under EVERYWHERE, which is the
    first column where it is needed.
    """

    roles: Tuple[str, ...]
    schemas: Tuple[str, ...]
    cells: Mapping[Tuple[str, str], Cell]


def matrix_of(items: Iterable[Mapping[str, Any]]) -> Matrix:
    """The matrix of a result's ``explain``: what is there once the plan is done, without ownership and memberships.

    A shortened result names not all objects, which is no matter for what lies in schemas.
    """
    roles: Dict[str, None] = {}
    found: Dict[Tuple[str, str], Dict[str, Dict[str, str]]] = {}
    for item in items:
        roles.setdefault(item["role"])
        kind, privilege = item["object"]["type"], item["privilege"]
        if item["plan"] == LOST or kind == ROLE or privilege == OWNS:
            continue
        for schema, reach in _places(item):
            cell = found.setdefault((item["role"], schema), {}).setdefault(kind, {})
            if item["set_role"] is not None:
                reach = LATER
            if privilege not in cell or _RANK.index(reach) > _RANK.index(cell[privilege]):
                cell[privilege] = reach
    schemas = sorted({schema for _role, schema in found}, key=lambda name: (name != EVERYWHERE, name))
    return Matrix(tuple(roles), tuple(schemas), {place: _ordered(cell) for place, cell in found.items()})


def _places(item: Mapping[str, Any]) -> Iterator[Tuple[str, str]]:
    """The columns that an item belongs to, each with how far it reaches there."""
    target = item["object"]
    whole = target["name"] == "*" and not item["objects"]
    if target["type"] == "schema" and not whole:
        for name in item["objects"]:
            yield name, WHOLE
    elif target["schema"] is None:
        yield EVERYWHERE, WHOLE if whole else PARTLY
    else:
        yield target["schema"], WHOLE if whole else PARTLY


def _ordered(cell: Mapping[str, Mapping[str, str]]) -> Cell:
    kinds: List[str] = [kind for kind in (EVERYTHING, *KINDS) if kind in cell]
    result: Dict[str, Mapping[str, str]] = {}
    for kind in kinds:
        words = list(KINDS[kind].privileges) if kind in KINDS else list(cell[kind])
        result[kind] = {word: cell[kind][word] for word in words if word in cell[kind]}
    return result
