# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What stands behind a privilege or a membership: a rule of the manifest, a reason why it is left, or nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..authority.powers import DATABASE_OWNER
from ..changes import AlterSchemaOwner, DropRole, Plan, RemoveMember, Revoke
from ..diff.privileges import buckets
from ..diff.targets import BoundRules, Grantees, Lookups, Wanted, bind, privileges_of
from ..policy import Policy
from ..privileges import DEFAULT_COVERS, PUBLIC, PUBLIC_OID
from ..state import Acl, Group, Members, Object, State
from ..undo.entries import Row
from .answers import ABSENT, DECLARED, KEPT, MEMBERSHIP, OWNER, PERMITTED, RETIRED, SURPLUS, UNMANAGED, WITHHELD
from .things import Thing

#: Why, and the places or the reason in words.
Reason = Tuple[str, Optional[str]]

_NOTHING = Wanted()
_MOST_PLACES = 3


def listed(places: Iterable[str]) -> Optional[str]:
    """A few places in one text."""
    found = list(dict.fromkeys(place for place in places if place))
    rest = len(found) - _MOST_PLACES
    text = ", ".join(found[:_MOST_PLACES]) + (f" and {rest} more" if rest > 0 else "")
    return text or None


class Reasons:
    """``after`` is the state with the plan's roles and schemas; rules are bound to it once."""

    def __init__(self, policy: Policy, after: State, plan: Plan, lookups: Lookups) -> None:
        self._policy = policy
        self._after = after
        self._rules: BoundRules = bind(policy, after, lookups)[0]
        self._permits = _permits(policy, after)
        self._dropped = {change.role.oid: change.source for change in plan.changes if isinstance(change, DropRole)}
        self._moved = {change.name: change.source for change in plan.changes if isinstance(change, AlterSchemaOwner)}
        self._removed = [change for change in plan.changes if isinstance(change, RemoveMember)]
        self._left: Dict[Tuple[int, int], str] = {}
        for item in plan.withheld:
            if isinstance(item.change, RemoveMember):
                self._left.setdefault((item.change.group.oid, item.change.member.oid), item.reason)

    # ---- privileges

    def parts(self, thing: Thing, column: Optional[str]) -> Iterator[Tuple[Sequence[Object], Grantees]]:
        """The thing's objects in parts about which rules say the same, each with what they say."""
        owner = thing.heir if thing.heir is not None else thing.owner
        group = Group(
            thing.kind, None, owner or 0, Acl(), Members.of(thing.objects), extension=thing.extension, column=column
        )
        for objects, grantees, named in buckets(group, thing.schema, self._rules):
            # Wildcards leave out what belongs to an extension.
            yield objects or thing.objects, named if thing.extension else grantees

    def of_entry(self, row: Row, thing: Thing, column: Optional[str], grantees: Grantees) -> Reason:
        """Why an entry is there after the plan."""
        grantee, privilege, _grantor = row
        wanted = grantees.get(grantee, _NOTHING)
        if privilege in wanted.present:
            return DECLARED, listed(wanted.behind((privilege,)))
        for change, reason in thing.held:
            if _is_about(change, row, column):
                if reason is not None:
                    return WITHHELD, reason
                role = self._policy.roles.get(change.grantee.name)
                place = f"{role.source}." if role is not None else ""
                return KEPT, f"{place}privilege_reconciliation: additive"
        if column is None and thing.heir is not None:
            places = [
                place
                for schema in (thing.schema, None)
                for place in self._permits.get((thing.heir, thing.kind, schema), {}).get((grantee, privilege), ())
            ]
            if places:
                return PERMITTED, listed(places)
        return (OWNER if grantee == thing.heir else UNMANAGED), None

    def of_loss(self, row: Row, thing: Thing, column: Optional[str], lost: Iterable[Tuple[int, int]]) -> Reason:
        """Why an entry, or the way to it, is no longer there. ``lost``: the memberships of the way as it was."""
        for change in thing.changes:
            if isinstance(change, Revoke) and _is_about(change, row, column):
                # Of what makes the object managed the first is enough.
                return (ABSENT, listed(change.sources)) if change.explicit else (SURPLUS, listed(change.sources[:1]))
        found = self._of_lost_way(lost)
        if found is not None:
            return found
        gone = (oid for oid in (row[0], row[2], thing.owner) if oid is not None)
        dropped = [self._dropped[oid] for oid in gone if oid in self._dropped]
        return (RETIRED, listed(dropped)) if dropped else (OWNER, self._owner_of(thing))

    def of_ownership(self, thing: Thing) -> Reason:
        """Why the owner owns it after the plan."""
        return OWNER, self._owner_of(thing)

    def of_lost_ownership(self, thing: Thing, lost: Iterable[Tuple[int, int]]) -> Reason:
        """Why somebody owns it no longer, or is no longer a member of the owner."""
        found = self._of_lost_way(lost)
        if found is not None:
            return found
        dropped = None if thing.owner is None else self._dropped.get(thing.owner)
        return (RETIRED, dropped) if dropped is not None else (OWNER, self._owner_of(thing))

    def _owner_of(self, thing: Thing) -> Optional[str]:
        if thing.kind != "schema":
            return None
        name = thing.objects[0].name
        desired = self._policy.schemas.get(name)
        declared = desired.source if desired is not None and (desired.owner or thing.owner is None) else None
        return self._moved.get(name, declared)

    # ---- memberships

    def of_edge(self, edge: Tuple[int, int]) -> Reason:
        """Why a membership is there after the plan."""
        group, member = (self._after.ref(oid).name for oid in edge)
        if group == DATABASE_OWNER:
            return OWNER, None  # whoever owns the database is its member, without a row that says so
        desired = self._policy.edges.get((group, member))
        if desired is not None:
            return DECLARED, desired.source
        reason = self._left.get(edge)
        return (WITHHELD, reason) if reason is not None else (UNMANAGED, None)

    def of_lost_edge(self, edges: Iterable[Tuple[int, int]]) -> Reason:
        """Why a way that was there is not there any more."""
        return self._of_lost_way(edges) or (MEMBERSHIP, None)

    def _of_lost_way(self, edges: Iterable[Tuple[int, int]]) -> Optional[Reason]:
        way = set(edges)
        for change in self._removed:
            if (change.group.oid, change.member.oid) in way and not change.replaced:
                return MEMBERSHIP, change.source or None
        for edge in sorted(way):
            for oid in edge:
                if oid in self._dropped:
                    return RETIRED, self._dropped[oid]
        return None

    def of_role(self, name: str) -> Reason:
        """Why a role is a superuser."""
        desired = self._policy.roles.get(name)
        if desired is not None and desired.attributes.get("superuser"):
            return DECLARED, desired.source
        return UNMANAGED, None


def _is_about(change: Revoke, row: Row, column: Optional[str]) -> bool:
    grantee, privilege, grantor = row
    if change.option_only or change.grantee.oid != grantee or privilege not in change.privileges:
        return False
    # What is revoked on a relation goes from its columns, too.
    here = column in change.target.columns if change.target.columns else True
    return here and change.grantor.oid == grantor


def _permits(
    policy: Policy, state: State
) -> Mapping[Tuple[int, str, Optional[str]], Mapping[Tuple[int, str], List[str]]]:
    """The default privileges that permit entries, by owner, kind and schema, then by grantee and privilege."""
    found: Dict[Tuple[int, str, Optional[str]], Dict[Tuple[int, str], List[str]]] = defaultdict(dict)
    for rule in policy.default_rules:
        owner = state.role_oid(rule.owner)
        grantee = PUBLIC_OID if rule.role == PUBLIC else state.role_oid(rule.role)
        if not rule.present or owner is None or grantee is None:
            continue
        for kind in DEFAULT_COVERS[rule.kind]:
            for privilege in privileges_of(rule.privileges, rule.kind, state.server.version):
                found[owner, kind, rule.schema].setdefault((grantee, privilege), []).append(rule.source)
    return found
