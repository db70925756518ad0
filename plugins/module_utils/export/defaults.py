# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Default privileges as rules, by owner and layer."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set, Tuple

from ..privileges import KINDS, PUBLIC, PUBLIC_OID
from ..state import DefaultAcl, State, default_acl
from .model import Skipped
from .names import Roles, role_name
from .rules import in_order

_KIND_ORDER: Mapping[str, int] = {name: number for number, name in enumerate(KINDS)}


def is_claim(row: DefaultAcl, roles: Roles) -> bool:
    """Whether rules about this row make its schema managed."""
    return roles.speakable(row.owner) and any(
        grantee != PUBLIC_OID and roles.speakable(grantee) for grantee in row.acl.grantees()
    )


def default_entries(
    state: State, rows: Iterable[DefaultAcl], roles: Roles
) -> Tuple[List[Dict[str, Any]], List[Skipped]]:
    """These rows as items of ``default_privileges``: by owner, the global layer first, then by schema."""
    layers: Dict[Tuple[str, str], List[Tuple[Any, ...]]] = defaultdict(list)
    skipped: List[Skipped] = []
    for row in rows:
        schema = None if row.schema is None else state.schemas[row.schema].name
        if not roles.speakable(row.owner):
            continue
        if row.kind not in KINDS:
            about: Dict[str, Any] = {"type": row.kind, "schema": schema, "name": None, "columns": []}
            what = f"default privileges on a kind of object that this version does not know ({row.kind})"
            skipped.append(Skipped("default_privilege", role_name(state, row.owner), about, what, "unknown_kind"))
            continue
        found, left = _of_row(state, row, schema, roles)
        skipped.extend(left)
        if found:
            layers[roles.name(row.owner), "" if schema is None else schema].extend(found)
    return [_entry(owner, schema, found) for (owner, schema), found in sorted(layers.items())], skipped


def _of_row(
    state: State, row: DefaultAcl, schema: Optional[str], roles: Roles
) -> Tuple[List[Tuple[Any, ...]], List[Skipped]]:
    """What a row says as tuples: the grantee's name, the kind, whether present, whether with grant option, what."""
    found: List[Tuple[Any, ...]] = []
    skipped: List[Skipped] = []
    grantees = row.acl.grantees()
    usual: Mapping[int, Mapping[str, Any]] = {}
    if schema is None:
        # A global row holds everything, beginning with what objects of this kind have anyway.
        usual = default_acl(row.kind, row.owner, state.server.version).grantees()
    about: Dict[str, Any] = {"type": row.kind, "schema": schema, "name": None, "columns": []}
    for grantee in sorted({*grantees, *usual}):
        held, then = grantees.get(grantee, {}), usual.get(grantee, {})
        gained: Dict[bool, Set[str]] = defaultdict(set)
        for name, entries in held.items():
            option = any(entry.grantable for entry in entries)
            if name not in then or (option and grantee != row.owner):
                gained[option].add(name)
        lost = {name for name in then if name not in held}
        unknown = {name for names in gained.values() for name in names} - KINDS[row.kind].privileges.keys()
        if roles.dangling(grantee):
            what = f"{', '.join(sorted(held))} by default for a role that no longer exists"
            skipped.append(Skipped("default_privilege", str(grantee), about, what, "dangling_grantee"))
        elif unknown:
            what = f"{', '.join(sorted(unknown))} by default, which this version does not know"
            skipped.append(Skipped("default_privilege", role_name(state, grantee), about, what, "unknown_privilege"))
        elif roles.speakable(grantee):
            if lost and grantee == row.owner:
                what = f"{', '.join(in_order(lost, row.kind))} by default that the owner has taken from itself"
                skipped.append(Skipped("default_privilege", role_name(state, grantee), about, what, "owner_privileges"))
                lost = set()
            for option, names in sorted(gained.items()):
                found.append((roles.name(grantee), row.kind, True, option, in_order(names, row.kind)))
            if lost:
                found.append((roles.name(grantee), row.kind, False, False, in_order(lost, row.kind)))
    return found, skipped


def _entry(owner: str, schema: str, found: List[Tuple[Any, ...]]) -> Dict[str, Any]:
    entry: Dict[str, Any] = {"owner": owner}
    if schema:
        entry["schema"] = schema
    entry["grant"] = [_grant(*item) for item in sorted(found, key=_order)]
    return entry


def _order(item: Tuple[Any, ...]) -> Tuple[Any, ...]:
    role, kind, present, option, privileges = item
    return role != PUBLIC.upper(), role, _KIND_ORDER[kind], not present, option, privileges


def _grant(role: str, kind: str, present: bool, option: bool, privileges: List[str]) -> Dict[str, Any]:
    found: Dict[str, Any] = {"role": role, "privileges": privileges, "on_type": kind}
    if option:
        found["with_grant_option"] = True
    if not present:
        found["ensure"] = "absent"
    return found
