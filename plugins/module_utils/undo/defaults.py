# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Default privileges on the way back: layer by layer, each entry of which its owner has granted."""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, Iterator, List, Mapping, Optional, Set, Tuple, Union

from ..changes import Change, CreateSchema, GrantDefault, Plan, RevokeDefault, of_sort
from ..diff.retirements import Leaving
from ..state import Acl, RoleRef, State, default_acl

#: Owner, schema name or None for the global layer, and kind.
_Layer = Tuple[RoleRef, Optional[str], str]


def defaults_back(plan: Plan, before: State) -> List[Change]:
    """What leads from the layers as the plan makes them to those that were found."""
    created = {change.name for change in of_sort(plan, CreateSchema)}
    gone = Leaving.of(plan.changes).roles
    rows: Dict[Tuple[int, Optional[str], str], Acl] = {}
    for row in before.default_acls:
        schema = None if row.schema is None else before.schemas.get(row.schema)
        if row.schema is None or schema is not None:
            rows[row.owner, schema.name if schema is not None else None, row.kind] = row.acl
    held: Dict[_Layer, Dict[Tuple[RoleRef, str], bool]] = {}
    was: Dict[_Layer, Dict[Tuple[RoleRef, str], bool]] = {}
    # Grants run before revokes.
    ordered: List[Union[GrantDefault, RevokeDefault]] = [*of_sort(plan, GrantDefault), *of_sort(plan, RevokeDefault)]
    for change in ordered:
        if change.schema in created or change.owner.oid in gone:
            continue
        layer = (change.owner, change.schema, change.kind)
        if layer not in was:
            acl = rows.get((change.owner.oid, change.schema, change.kind))
            if acl is None and change.schema is None:
                acl = default_acl(change.kind, change.owner.oid, before.server.version)
            entries = acl.entries if acl is not None else ()
            was[layer] = {(before.ref(entry.grantee), entry.privilege): entry.grantable for entry in entries}
            held[layer] = dict(was[layer])
        now = held[layer]
        for privilege in change.privileges:
            place = (change.grantee, privilege)
            if isinstance(change, GrantDefault):
                now[place] = now.get(place, False) or change.with_grant_option
            elif not change.option_only:
                now.pop(place, None)
            elif place in now:
                now[place] = False
    changes: List[Change] = []
    for layer, entries_before in was.items():
        now = {place: option for place, option in held[layer].items() if place[0].oid not in gone}
        then = {place: option for place, option in entries_before.items() if place[0].oid not in gone}
        changes.extend(_default_layer(layer, now, then))
    return changes


def _default_layer(
    layer: _Layer, now: Mapping[Tuple[RoleRef, str], bool], was: Mapping[Tuple[RoleRef, str], bool]
) -> Iterator[Change]:
    give: Dict[Tuple[RoleRef, bool], Set[str]] = defaultdict(set)
    take: Dict[Tuple[RoleRef, bool], Set[str]] = defaultdict(set)
    for (grantee, privilege), option in was.items():
        held = now.get((grantee, privilege))
        if held is None or (option and not held):
            give[grantee, option].add(privilege)
        elif held and not option:
            take[grantee, True].add(privilege)
    for grantee, privilege in now.keys() - was.keys():
        take[grantee, False].add(privilege)
    for (grantee, option), privileges in sorted(give.items()):
        yield GrantDefault(*layer, grantee, frozenset(privileges), option)
    for (grantee, option), privileges in sorted(take.items()):
        yield RevokeDefault(*layer, grantee, frozenset(privileges), option)
