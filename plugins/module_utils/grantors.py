# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Entries that somebody else than the owner gave: what hangs on them, and in whose name they are revoked.

An owner's REVOKE, a superuser's included, does not reach what another grantor gave, and PostgreSQL refuses to take a
grant option away while something hangs on it (postgresql documentation, "REVOKE"). So each such entry is revoked in its
grantor's name, leaf first, and what the run keeps is granted by the owner before its old grantor goes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, Union

from .acls import Acls
from .authority.powers import Powers
from .authority.privileges import label_of, no_usage
from .changes import Change, Grant, Revoke, Target
from .diff.privileges import Bucket
from .keep import taken_along
from .problems import Problem
from .records import dataclass, replace
from .state import Entry, State

#: Grantee, privilege and grantor of an entry.
Row = Tuple[int, str, int]
#: What stands for the objects of a bucket: kind, columns, and the first object's OID.
Key = Tuple[str, Tuple[str, ...], int]


def key_of(target: Target) -> Key:
    """The bucket that a target belongs to. Every object is in one bucket only."""
    return target.kind, target.columns, target.objects[0].oid


@dataclass
class _Fate:
    """What becomes of a bucket's entries: ``removed`` whole, ``lowered`` to no grant option, and what is granted.

    What a relation's REVOKE takes along for a moment counts as removed too: it comes back only after the revokes.
    """

    removed: Set[Row]
    lowered: Set[Row]
    granted: Dict[Tuple[int, str], bool]


class _Outer:
    """Who holds a grant option on a whole relation: it lets its holder give the relation's columns away as well."""

    def __init__(self, acls: Acls, changes: Iterable[Change]) -> None:
        self._acls = acls
        self._gone: Dict[int, Set[Row]] = defaultdict(set)
        self.add(changes)

    def add(self, changes: Iterable[Change]) -> None:
        """Take note of what the plan revokes on relations."""
        for change in changes:
            if isinstance(change, Revoke) and not change.target.columns:
                rows = {(change.grantee.oid, privilege, change.grantor.oid) for privilege in change.privileges}
                for item in change.target.objects:
                    self._gone[item.oid] |= rows

    def holders(self, target: Target, *, after: bool = False) -> FrozenSet[Tuple[int, str]]:
        """Holder and privilege, on every relation of the target; ``after``: once the plan's revokes have run."""
        if not target.columns:
            return frozenset()
        holders = None
        for item in target.objects:
            here = {
                (entry.grantee, entry.privilege)
                for entry in self._acls.of(target.kind, item.oid).entries
                if entry.grantable
                and not (after and (entry.grantee, entry.privilege, entry.grantor) in self._gone[item.oid])
            }
            holders = here if holders is None else holders & here
        return frozenset(holders or ())

    def shrinks(self, target: Target) -> bool:
        """Whether somebody loses such an option."""
        return self.holders(target) != self.holders(target, after=True)


def settle(
    changes: Sequence[Change], buckets: Sequence[Bucket], state: State, powers: Powers
) -> Tuple[List[Change], List[Problem]]:
    """The changes with grantors seen to, and a problem for each entry that cannot be revoked or has to stay.

    Only buckets in which another grantor gave something are looked at.
    """
    if not buckets:
        return list(changes), []
    by_key: Dict[Key, List[Union[Grant, Revoke]]] = defaultdict(list)
    for change in changes:
        if isinstance(change, (Grant, Revoke)):
            by_key[key_of(change.target)].append(change)
    relations = _Outer(Acls(state), changes)
    result: List[Change] = [change for change in changes if not isinstance(change, (Grant, Revoke))]
    problems: List[Problem] = []
    # Relations first: an option that goes there may be what somebody gave a column away with.
    taken: Optional[Mapping[Row, Set[int]]] = None
    options: Mapping[Row, Set[int]] = {}
    for bucket in sorted(buckets, key=lambda bucket: bool(bucket.target.columns)):
        found = by_key.pop(key_of(bucket.target), [])
        if bucket.target.columns and taken is None:
            taken = taken_along([*changes, *result])
            options = taken_along([*changes, *result], option_only=True)
        lost = _lost_with_relation(bucket, taken or {}, options)
        if lost or relations.shrinks(bucket.target) or any(isinstance(change, Revoke) for change in found):
            settled, wrong = _settle(bucket, found, lost, state, powers, relations)
            relations.add(settled)
            result.extend(settled)
            problems.extend(wrong)
        else:
            result.extend(found)
    result.extend(change for found in by_key.values() for change in found)
    return result, problems


def _lost_with_relation(bucket: Bucket, taken: Mapping[Row, Set[int]], options: Mapping[Row, Set[int]]) -> Set[Row]:
    """A column's entries that go for a moment with an entry on the relation, or whose grant option does.

    Nothing may hang on them then.
    """
    if not bucket.target.columns:
        return set()
    oids = {item.oid for item in bucket.target.objects}
    lost: Set[Row] = set()
    for entry in bucket.group.acl.entries:
        row = (entry.grantee, entry.privilege, entry.grantor)
        if oids & taken.get(row, set()) or (entry.grantable and oids & options.get(row, set())):
            lost.add(row)
    return lost


def _settle(
    bucket: Bucket,
    changes: Sequence[Union[Grant, Revoke]],
    lost: Set[Row],
    state: State,
    powers: Powers,
    relations: _Outer,
) -> Tuple[List[Change], List[Problem]]:
    owner = bucket.group.owner
    entries = bucket.group.acl.entries
    outer = relations.holders(bucket.target)
    fate = _Fate(set(lost), set(), {})
    for change in changes:
        for privilege in change.privileges:
            if isinstance(change, Revoke):
                row = (change.grantee.oid, privilege, change.grantor.oid)
                (fate.lowered if change.option_only else fate.removed).add(row)
            else:
                known = fate.granted.get((change.grantee.oid, privilege), False)
                fate.granted[change.grantee.oid, privilege] = known or change.with_grant_option
    forced, again, problems = _orphans(bucket, fate, outer, relations.holders(bucket.target, after=True), state)
    extra: List[Union[Grant, Revoke]] = [
        *_regrants(bucket.target, again, state),
        *_revokes(bucket.target, forced, state),
    ]
    depth = _depths(owner, entries, outer)
    result: List[Change] = []
    cascades: Dict[int, Set[str]] = defaultdict(set)
    for change in (*changes, *extra):
        if not isinstance(change, Revoke) or change.grantor.oid == owner:
            result.append(change)
            continue
        grantor = change.grantor.oid
        ranked = replace(change, depth=max(depth.get((grantor, p), 0) for p in change.privileges))
        holds = all(
            (grantor, p) in outer or any(e.grantable for e in bucket.group.acl.of(grantor).get(p, ()))
            for p in change.privileges
        )
        if grantor not in state.roles or powers.is_superuser(grantor):
            problems.append(_stuck(ranked, "a superuser's revoke acts as the owner"))
        elif holds and powers.can_become(grantor):
            if not powers.uses_schema(grantor, bucket.target.schema):
                lending = powers.lending(change.grantor, str(bucket.target.schema))
                if lending is None:
                    problems.append(no_usage(change, change.grantor))
                    continue
                result.append(lending)
            result.append(replace(ranked, run_as=change.grantor))
        elif powers.owns(grantor, owner):
            problems.append(_stuck(ranked, "it is a member of the owner, whose entries CASCADE leaves alone"))
        elif _inherits_option(grantor, change.privileges, entries, powers):
            # recursive_revoke in acl.c asks whether the grantor still has the option, by whatever way.
            why = "it inherits the grant option from another role, so CASCADE leaves its entries alone"
            problems.append(_stuck(ranked, why))
        else:
            cascades[grantor].update(change.privileges)
            result.append(replace(ranked, covered=True))
    for grantor, privileges in sorted(cascades.items()):
        below = max(depth.get((grantor, p), 1) for p in privileges)
        result.extend(_cascade(bucket, grantor, frozenset(privileges), fate, below, state))
    return result, problems


def _inherits_option(grantor: int, privileges: FrozenSet[str], entries: Iterable[Entry], powers: Powers) -> bool:
    acting = powers.acts_with(grantor) - {grantor}
    return any(e.grantable and e.privilege in privileges and e.grantee in acting for e in entries)


def _orphans(
    bucket: Bucket,
    fate: _Fate,
    before: FrozenSet[Tuple[int, str]],
    after: FrozenSet[Tuple[int, str]],
    state: State,
) -> Tuple[Set[Row], Dict[Tuple[int, str], bool], List[Problem]]:
    """Entries whose grantor loses its grant option: they have to go, and what is kept of them is granted by the owner.

    ``before`` and ``after``: who holds the option on the whole relation. Goes on until nothing is left without a
    grantor, because an entry that goes may itself have been a grantor's.
    """
    owner = bucket.group.owner
    entries = bucket.group.acl.entries
    forced: Set[Row] = set()
    again: Dict[Tuple[int, str], bool] = {}
    problems: List[Problem] = []
    had = {(e.grantee, e.privilege) for e in entries if e.grantable}
    while True:
        alive = [e for e in entries if (e.grantee, e.privilege, e.grantor) not in fate.removed]
        holders = {
            (e.grantee, e.privilege)
            for e in alive
            if e.grantable and (e.grantee, e.privilege, e.grantor) not in fate.lowered
        }
        holders |= {place for place, option in fate.granted.items() if option}
        # Where the option on the column itself goes, PostgreSQL does not ask for one on the whole relation.
        holders |= after - (had - holders)
        # What hung in the air before is no business of this run: PostgreSQL minds it as little.
        orphans = [e for e in alive if e.grantor != owner and (e.grantor, e.privilege) in (had | before) - holders]
        if not orphans:
            return forced, again, problems
        for entry in sorted(orphans):
            row = (entry.grantee, entry.privilege, entry.grantor)
            fate.removed.add(row)
            forced.add(row)
        for entry in sorted(orphans):
            place = (entry.grantee, entry.privilege)
            rest = [e for e in alive if (e.grantee, e.privilege) == place and e not in orphans]
            option = entry.grantable and (entry.grantee, entry.privilege, entry.grantor) not in fate.lowered
            if place in fate.granted and (fate.granted[place] or not option):
                continue
            if rest and (not option or any(e.grantable for e in rest)):
                continue
            declared = entry.grantee in bucket.wanted and entry.privilege in bucket.wanted[entry.grantee].present
            if not declared and not bucket.managed:
                problems.append(_dependent(bucket, entry, state))
                continue
            fate.granted[place] = again[place] = option or again.get(place, False)


def _dependent(bucket: Bucket, entry: Entry, state: State) -> Problem:
    grantee, grantor = state.ref(entry.grantee).name, state.ref(entry.grantor).name
    label = label_of(Grant(bucket.target, state.ref(entry.grantee), frozenset((entry.privilege,))))
    return Problem(
        role=grantee,
        object=label,
        message=f"{entry.privilege} on {label} cannot be taken from {grantor}, who gave it on to {grantee}, "
        "and nothing makes that object managed",
        hint=f"Declare or revoke what {grantee} holds there.",
        code="dependent_privileges",
    )


def _stuck(change: Revoke, why: str) -> Problem:
    label = label_of(change)
    words = ", ".join(sorted(change.privileges))
    return Problem(
        role=change.grantee.name,
        object=label,
        message=f"{words} on {label} was given to {change.grantee.name} by {change.grantor.name}, and no statement "
        f"reaches it: {why}",
        hint=f"Take the superuser attribute or the membership from {change.grantor.name} for the time of the run.",
        code="dependent_privileges",
    )


def _regrants(target: Target, again: Mapping[Tuple[int, str], bool], state: State) -> Iterable[Grant]:
    together: Dict[Tuple[int, bool], Set[str]] = defaultdict(set)
    for (grantee, privilege), option in again.items():
        together[grantee, option].add(privilege)
    for (grantee, option), privileges in sorted(together.items()):
        yield Grant(target, state.ref(grantee), frozenset(privileges), option, again=True)


def _revokes(target: Target, rows: Iterable[Row], state: State) -> Iterable[Revoke]:
    together: Dict[Tuple[int, int], Set[str]] = defaultdict(set)
    for grantee, privilege, grantor in rows:
        together[grantee, grantor].add(privilege)
    for (grantee, grantor), privileges in sorted(together.items()):
        yield Revoke(target, state.ref(grantee), frozenset(privileges), state.ref(grantor), again=True)


def _depths(owner: int, entries: Iterable[Entry], outer: FrozenSet[Tuple[int, str]]) -> Mapping[Tuple[int, str], int]:
    """How many grantors lie between the owner and a holder of the grant option, by holder and privilege."""
    depth: Dict[Tuple[int, str], int] = dict.fromkeys(outer, 1)
    pending = [entry for entry in entries if entry.grantable]
    while pending:
        known = [e for e in pending if e.grantor == owner or (e.grantor, e.privilege) in depth]
        if not known:
            break
        for entry in known:
            place = (entry.grantee, entry.privilege)
            above = 0 if entry.grantor == owner else depth[entry.grantor, entry.privilege]
            depth[place] = min(depth.get(place, 1 << 30), above + 1)
        pending = [e for e in pending if e not in known]
    return depth


def _cascade(
    bucket: Bucket, grantor: int, privileges: FrozenSet[str], fate: _Fate, depth: int, state: State
) -> Iterable[Change]:
    """The owner's way to a grantor's entries, where the login may not set that role.

    REVOKE GRANT OPTION ... CASCADE takes everything along that hangs on the option; what stays is granted again.
    """
    target, owner = bucket.target, state.ref(bucket.group.owner)
    ref = state.ref(grantor)
    entries = bucket.group.acl.entries
    own = {e.privilege: e for e in entries if e.grantee == grantor and e.privilege in privileges}
    lost = frozenset(p for p in privileges if p not in own or not own[p].grantable)
    if lost:
        # Without the option there is nothing that CASCADE could start from.
        yield Grant(target, ref, lost, True, again=True, lent=True)
    yield Revoke(target, ref, privileges, owner, option_only=True, depth=depth, cascade=True, again=True)
    for privilege in sorted(privileges):
        downstream = _downstream(entries, grantor, privilege)
        kept = [e for e in downstream if (e.grantee, e.privilege, e.grantor) not in fate.removed]
        for entry in kept:
            if (entry.grantee, privilege) not in fate.granted:
                option = entry.grantable and (entry.grantee, privilege, entry.grantor) not in fate.lowered
                yield Grant(target, state.ref(entry.grantee), frozenset((privilege,)), option, again=True, late=True)
        held = own.get(privilege)
        row = (grantor, privilege, held.grantor if held else owner.oid)
        if held is None:
            yield Revoke(target, ref, frozenset((privilege,)), owner, again=True)
        elif held.grantable and row not in fate.removed and row not in fate.lowered:
            yield Grant(target, ref, frozenset((privilege,)), True, again=True, late=True)


def _downstream(entries: Iterable[Entry], grantor: int, privilege: str) -> List[Entry]:
    found: List[Entry] = []
    pending = [grantor]
    seen = {grantor}
    while pending:
        above = pending.pop()
        for entry in sorted(entries):
            if entry.privilege == privilege and entry.grantor == above:
                found.append(entry)
                if entry.grantable and entry.grantee not in seen:
                    seen.add(entry.grantee)
                    pending.append(entry.grantee)
    return found
