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
from .authority.hints import membership
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
    onward: List[Revoke] = []
    for change in (*changes, *extra):
        if isinstance(change, Revoke) and change.grantor.oid != owner:
            onward.append(replace(change, depth=max(depth.get((change.grantor.oid, p), 0) for p in change.privileges)))
        else:
            result.append(change)
    reach = _Reach(bucket, outer, state, powers)
    burning: Dict[str, Set[int]] = defaultdict(set)
    left: List[Revoke] = []
    for change in onward:
        itself = reach.by_itself(change)
        unreached = None if itself else reach.not_by_cascade(change)
        if unreached is not None:
            problems.append(unreached)
            continue
        left.append(change)
        if not itself:
            for privilege in change.privileges:
                burning[privilege] |= reach.above(change.grantor.oid, privilege)
    alive = {
        p: _after_cascade([*(e for e in entries if e.privilege == p), *_given(fate, p, owner)], roles, owner, p, reach)
        for p, roles in burning.items()
    }
    for change in left:
        burnt = frozenset(p for p in change.privileges if change.grantor.oid in burning.get(p, ()))
        if any((e.grantee, e.grantor) == (change.grantee.oid, change.grantor.oid) for p in burnt for e in alive[p]):
            # In each grantor's name it works: whatever the owner gave still holds the others up.
            hint = membership(state.ref(state.server.session_user), change.grantor, "set", state, powers)
            why = "its grantors hold each other's grant option, which CASCADE leaves alone"
            problems.append(_stuck(change, why, hint))
            continue
        if burnt:
            result.append(replace(change, privileges=burnt, covered=True))
        if burnt == change.privileges:
            continue
        change = replace(change, privileges=change.privileges - burnt)
        if not powers.uses_schema(change.grantor.oid, bucket.target.schema):
            lending = powers.lending(change.grantor, str(bucket.target.schema))
            if lending is None:
                problems.append(no_usage(change, change.grantor))
                continue
            result.append(lending)
        result.append(replace(change, run_as=change.grantor))
    result.extend(_cascades(bucket, burning, alive, fate, state))
    return result, problems


class _Reach:
    """Which entries of a bucket the run reaches in their grantor's name, and which by the owner's CASCADE."""

    def __init__(self, bucket: Bucket, outer: FrozenSet[Tuple[int, str]], state: State, powers: Powers) -> None:
        self._bucket = bucket
        self._outer = outer
        self._state = state
        self._powers = powers

    def by_itself(self, change: Revoke) -> bool:
        """Whether the login may become the grantor, which still has the option."""
        grantor = change.grantor.oid
        if grantor not in self._state.roles or self._powers.is_superuser(grantor):
            return False
        held = self._bucket.group.acl.of(grantor)
        return self._powers.can_become(grantor) and all(
            (grantor, p) in self._outer or any(e.grantable for e in held.get(p, ())) for p in change.privileges
        )

    def above(self, grantor: int, privilege: str) -> Set[int]:
        """The grantor, and all from whom it has its grant option, but for the owner.

        As long as one of them has the option from somebody, CASCADE leaves alone what it gave.
        """
        owner, entries = self._bucket.group.owner, self._bucket.group.acl.entries
        found, pending = {grantor}, [grantor]
        while pending:
            holder = pending.pop()
            for entry in entries:
                if entry.grantee == holder and entry.privilege == privilege and entry.grantable:
                    if entry.grantor != owner and entry.grantor not in found:
                        found.add(entry.grantor)
                        pending.append(entry.grantor)
        return found

    def passed_over(self, grantor: int, privilege: str) -> str:
        """Why CASCADE leaves alone what this role gave; empty where it does not."""
        if grantor not in self._state.roles or self._powers.is_superuser(grantor):
            return "a superuser's revoke acts as the owner"
        if self._powers.owns(grantor, self._bucket.group.owner):
            return "it is a member of the owner, whose entries CASCADE leaves alone"
        if _inherits_option(grantor, frozenset((privilege,)), self._bucket.group.acl.entries, self._powers):
            # recursive_revoke in acl.c asks whether the grantor still has the option, by whatever way.
            return "it inherits the grant option from another role, so CASCADE leaves its entries alone"
        return ""

    def not_by_cascade(self, change: Revoke) -> Optional[Problem]:
        """A problem where the owner's CASCADE does not reach the entries."""
        for privilege in sorted(change.privileges):
            why = self.passed_over(change.grantor.oid, privilege)
            if why:
                return _stuck(change, why)
            for role in sorted(self.above(change.grantor.oid, privilege)):
                if self.passed_over(role, privilege):
                    name = self._state.ref(role).name
                    why = f"{change.grantor.name} has the grant option from {name}, whose entries CASCADE leaves alone"
                    return _stuck(change, why, _without(name))
        return None


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


def _stuck(change: Revoke, why: str, hint: str = "") -> Problem:
    label = label_of(change)
    words = ", ".join(sorted(change.privileges))
    return Problem(
        role=change.grantee.name,
        object=label,
        message=f"{words} on {label} was given to {change.grantee.name} by {change.grantor.name}, and no statement "
        f"reaches it: {why}",
        hint=hint or _without(change.grantor.name),
        code="dependent_privileges",
    )


def _without(name: str) -> str:
    return f"Take the superuser attribute or the membership from {name} for the time of the run."


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


def _given(fate: _Fate, privilege: str, owner: int) -> List[Entry]:
    """What the owner grants before anything is revoked."""
    return [Entry(role, word, owner, option) for (role, word), option in fate.granted.items() if word == privilege]


def _cascades(
    bucket: Bucket, burning: Mapping[str, Set[int]], alive: Mapping[str, Set[Entry]], fate: _Fate, state: State
) -> Iterable[Change]:
    """The owner's way to the entries of grantors that the login may not become: ``burning``, by privilege.

    REVOKE GRANT OPTION ... CASCADE takes everything along that hangs on the option; what stays is granted again.
    """
    target, owner = bucket.target, state.ref(bucket.group.owner)
    lent: Dict[int, Set[str]] = defaultdict(set)
    lowered: Dict[int, Set[str]] = defaultdict(set)
    returned: Dict[int, Set[str]] = defaultdict(set)
    again: Dict[Tuple[int, bool], Set[str]] = defaultdict(set)
    for privilege, burnt in sorted(burning.items()):
        entries = [entry for entry in bucket.group.acl.entries if entry.privilege == privilege]
        granted = {grantee: option for (grantee, word), option in fate.granted.items() if word == privilege}
        own = {entry.grantee: entry for entry in entries if entry.grantor == owner.oid}
        for role in sorted(burnt):
            if not any(entry.grantable for entry in entries if entry.grantee == role) and not granted.get(role):
                # Without the option there is nothing that CASCADE could start from.
                lent[role].add(privilege)
                if role not in own and role not in granted:
                    returned[role].add(privilege)
            if privilege in lent[role] or granted.get(role) or (role in own and own[role].grantable):
                lowered[role].add(privilege)
        for grantee, option in _missed(entries, alive[privilege], granted, fate, owner.oid).items():
            again[grantee, option].add(privilege)
    for role, privileges in sorted((role, privileges) for role, privileges in lent.items() if privileges):
        yield Grant(target, state.ref(role), frozenset(privileges), True, again=True, lent=True)
    for role, privileges in sorted(lowered.items()):
        # After what runs in the name of grantors further down, before the owner's own.
        yield Revoke(
            target, state.ref(role), frozenset(privileges), owner, option_only=True, depth=1, cascade=True, again=True
        )
    for role, privileges in sorted(returned.items()):
        yield Revoke(target, state.ref(role), frozenset(privileges), owner, again=True)
    for (role, option), privileges in sorted(again.items()):
        yield Grant(target, state.ref(role), frozenset(privileges), option, again=True, late=True)


def _after_cascade(entries: Iterable[Entry], burnt: Set[int], owner: int, privilege: str, reach: _Reach) -> Set[Entry]:
    """What is left of a privilege's entries once the owner has taken the grant option from all ``burnt`` roles."""
    alive = {
        entry._replace(grantable=False) if entry.grantor == owner and entry.grantee in burnt else entry
        for entry in entries
    }
    pending = sorted(burnt)
    while pending:
        role = pending.pop()
        if any(entry.grantable for entry in alive if entry.grantee == role) or reach.passed_over(role, privilege):
            continue
        gone = {entry for entry in alive if entry.grantor == role}
        alive -= gone
        pending.extend(entry.grantee for entry in gone if entry.grantable)
    return alive


def _missed(
    entries: Iterable[Entry], alive: Set[Entry], granted: Mapping[int, bool], fate: _Fate, owner: int
) -> Dict[int, bool]:
    """Who has to be given a privilege again, each with or without the grant option: what CASCADE took and is kept."""
    wanted = dict(granted)
    for entry in entries:
        row = (entry.grantee, entry.privilege, entry.grantor)
        if row not in fate.removed:
            option = entry.grantable and row not in fate.lowered
            wanted[entry.grantee] = wanted.get(entry.grantee, False) or option
    kept: Dict[int, bool] = {}
    for entry in alive:
        if (entry.grantee, entry.privilege, entry.grantor) not in fate.removed or (
            entry.grantor == owner and entry.grantee in granted
        ):
            kept[entry.grantee] = kept.get(entry.grantee, False) or entry.grantable
    return {role: option for role, option in wanted.items() if role not in kept or (option and not kept[role])}
