# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Profiles suggested: roles that are alike in several schemas become one profile and a pattern for their names."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..manifest.spec import DEFAULT_ROLE_PATTERN, SECTIONS
from .alike import Cluster, clusters
from .model import Inventory
from .patterns import Reading, readings
from .shapes import Shape, shapes
from .unprofile import flattened

#: Why a role stays flat although it could be a profile's. The others are in shapes.py.
NAME = "the name of its schema {} is not in its name"
BARE = "beside the name of its schema {} its name has nothing that could name a profile"
ALONE = "no other role has its shape: fewer than {} schemas have one with such a name and the same privileges"
PATTERN = "its schema {} names its other roles by the pattern {}"
DIFFERENT = "it differs from {} in its {}"
MEANING = "a profile for it would not mean exactly the same"

Same = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]


class FlatRole(NamedTuple):
    """A role that stays flat although it holds something in a schema, and why."""

    role: str
    reason: str


class Suggestion(NamedTuple):
    """The manifest with profiles, and the roles that stay flat."""

    manifest: Dict[str, Any]
    flat: Tuple[FlatRole, ...]


class Candidate(NamedTuple):
    """A profile that may be suggested, for its schemas, each with the pattern that makes its role's name."""

    cluster: Cluster
    patterns: Mapping[str, str]


def suggest(manifest: Mapping[str, Any], inventory: Inventory, min_schemas: int, same: Same) -> Suggestion:
    """The manifest with profiles where at least ``min_schemas`` schemas have roles of the same shape.

    ``same`` says whether two manifests mean the same; what it refuses is not suggested. Profiles that the manifest
    has already are judged anew, so what this returns comes back unchanged. The manifest has to be valid. The time is
    linear in the rules, and for each pattern in the roles whose names could come from it.
    """
    flat = flattened(manifest)
    found, reasons = shapes(flat, inventory)
    choice = _Choice(found, inventory, max(1, min_schemas))
    candidates = choice.made()
    kept = _settled(flat, [], candidates, same)
    chosen = {shape.role: shape for candidate in kept for shape in candidate.cluster.members}
    patterns = _patterns(kept)
    for name, shape in found.items():
        if name not in chosen:
            reasons[name] = choice.reason(shape, candidates, patterns)
    result = _written(flat, kept) if kept else dict(flat)
    return Suggestion(result, tuple(FlatRole(name, reason) for name, reason in sorted(reasons.items())))


def _settled(flat: Mapping[str, Any], kept: List[Candidate], more: List[Candidate], same: Same) -> List[Candidate]:
    """The candidates that leave the meaning as it is. One that does not is found by halving, and left out."""
    if not more or same(flat, _written(flat, [*kept, *more])):
        return [*kept, *more]
    if len(more) == 1:
        return kept
    half = len(more) // 2
    return _settled(flat, _settled(flat, kept, more[:half], same), more[half:], same)


# ---- which pattern for which schema ----------------------------------------------------------------------------------


class _Choice:
    """The choice of a pattern for each schema, the one that covers most roles first."""

    def __init__(self, found: Mapping[str, Shape], inventory: Inventory, least: int) -> None:
        self._found = found
        self._inventory = inventory
        self._least = least
        self._readings: Dict[str, Tuple[Reading, ...]] = {}
        #: By pattern and profile, the roles whose names could come from them.
        self._roles: Dict[str, Dict[str, List[Shape]]] = defaultdict(lambda: defaultdict(list))
        self._kinds: Dict[str, Reading] = {}
        for name, shape in found.items():
            self._readings[name] = readings(name, shape.schema)
            for reading in self._readings[name]:
                self._roles[reading.pattern][reading.profile].append(shape)
                self._kinds.setdefault(reading.pattern, reading)

    def made(self) -> List[Candidate]:
        """The candidates by the profiles' names, each with at least as many schemas as asked for."""
        profiles: Dict[str, Cluster] = {}
        schemas: Dict[str, str] = {}
        while True:
            best: Optional[Tuple[Tuple[Any, ...], str, Dict[str, List[Shape]]]] = None
            for pattern, roles in self._roles.items():
                gain = self._gain(roles, profiles, schemas)
                if gain:
                    rank = self._rank(pattern, gain)
                    if best is None or rank < best[0]:
                        best = (rank, pattern, gain)
            if best is None:
                break
            _rank, pattern, gain = best
            for shape in self._taken_in(gain, profiles):
                schemas[shape.schema] = pattern
        # What is too rare within one pattern may be frequent enough over all of them.
        self._mix(profiles, schemas)
        self._taken_in(self._gain(self._left(profiles, schemas), profiles, {}), profiles)
        return [
            Candidate(cluster, {shape.schema: schemas[shape.schema] for shape in cluster.members})
            for _name, cluster in sorted(profiles.items())
        ]

    def _taken_in(self, gain: Mapping[str, Sequence[Shape]], profiles: Dict[str, Cluster]) -> List[Shape]:
        """The roles that have become members of the profiles."""
        done: List[Shape] = []
        for profile, members in gain.items():
            for shape in members:
                if profile not in profiles:
                    profiles[profile] = Cluster(profile, shape, self._inventory)
                elif not profiles[profile].offer(shape):
                    continue
                done.append(shape)
        return done

    def _mix(self, profiles: Dict[str, Cluster], schemas: Dict[str, str]) -> None:
        """Schemas of which no two have the same pattern: their roles by the plainest reading of each name."""
        by_schema: Dict[str, Dict[str, List[Tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
        for name, found in self._readings.items():
            schema = self._found[name].schema
            if found and schema not in schemas:
                plainest = min(found, key=lambda item: (not item.schema_first, item.outer, item.inner, item.pattern))
                by_schema[schema][plainest.pattern].append((plainest.profile, name))
        chosen: Dict[str, str] = {}
        roles: Dict[str, List[Shape]] = defaultdict(list)
        for schema, patterns in by_schema.items():
            pattern = min(patterns, key=lambda item: (-len(by_schema[schema][item]), item))
            chosen[schema] = pattern
            for profile, name in patterns[pattern]:
                roles[profile].append(self._found[name])
        for shape in self._taken_in(self._gain(roles, profiles, {}), profiles):
            schemas[shape.schema] = chosen[shape.schema]

    def _left(self, profiles: Mapping[str, Cluster], schemas: Mapping[str, str]) -> Dict[str, List[Shape]]:
        """By profile, the roles without one whose names come from their schema's pattern."""
        done = {shape.role for cluster in profiles.values() for shape in cluster.members}
        left: Dict[str, List[Shape]] = {}
        for pattern in sorted(set(schemas.values())):
            for profile, shapes_of in self._roles[pattern].items():
                found = [item for item in shapes_of if schemas.get(item.schema) == pattern and item.role not in done]
                left.setdefault(profile, []).extend(found)
        return left

    def _gain(
        self, roles: Mapping[str, Sequence[Shape]], profiles: Mapping[str, Cluster], taken: Mapping[str, str]
    ) -> Dict[str, List[Shape]]:
        """The roles of schemas still to be had that the pattern would add, by profile."""
        gain: Dict[str, List[Shape]] = {}
        for profile, listed in roles.items():
            free = [shape for shape in listed if shape.schema not in taken]
            if profile in profiles:
                members = [shape for shape in free if profiles[profile].difference(shape) is None]
            elif len(free) >= self._least:
                members = clusters(profile, free, self._inventory)[0].members
                members = members if len(members) >= self._least else []
            else:
                members = []
            if members:
                gain[profile] = members
        return gain

    def _rank(self, pattern: str, gain: Mapping[str, Sequence[Shape]]) -> Tuple[Any, ...]:
        """Less is better: most roles covered, the schema's name first, the shortest words of its own. Words that all
        names share at their outer end belong to the pattern, where there are several profiles to tell that by.
        """
        reading = self._kinds[pattern]
        outer = -reading.outer if len(gain) > 1 else reading.outer
        covered = sum(len(members) for members in gain.values())
        return (-covered, not reading.schema_first, reading.inner, outer, pattern)

    def reason(self, shape: Shape, candidates: Sequence[Candidate], patterns: Mapping[str, str]) -> str:
        """Why the role stays flat."""
        if any(shape in candidate.cluster.members for candidate in candidates):
            return MEANING
        if not self._readings[shape.role]:
            return (BARE if shape.schema in shape.role else NAME).format(shape.schema)
        pattern = patterns.get(shape.schema)
        profiles = {reading.pattern: reading.profile for reading in self._readings[shape.role]}
        if pattern is not None and pattern not in profiles:
            return PATTERN.format(shape.schema, pattern)
        for candidate in candidates:
            if candidate.cluster.profile in profiles.values():
                difference = candidate.cluster.difference(shape)
                if difference is not None:
                    return DIFFERENT.format(candidate.cluster.members[0].role, difference)
        return ALONE.format(self._least)


# ---- the manifest ----------------------------------------------------------------------------------------------------


def _patterns(candidates: Sequence[Candidate]) -> Dict[str, str]:
    return {schema: pattern for candidate in candidates for schema, pattern in candidate.patterns.items()}


def _written(flat: Mapping[str, Any], candidates: Sequence[Candidate]) -> Dict[str, Any]:
    """The flat manifest with these profiles instead of the roles that they stand for."""
    patterns = _patterns(candidates)
    counts: Dict[str, int] = defaultdict(int)
    for pattern in patterns.values():
        counts[pattern] += 1
    usual = min(counts, key=lambda pattern: (-counts[pattern], pattern != DEFAULT_ROLE_PATTERN, pattern))
    bound: Dict[str, List[str]] = defaultdict(list)
    gone: Set[str] = set()
    for candidate in candidates:
        for shape in candidate.cluster.members:
            bound[shape.schema].append(candidate.cluster.profile)
            gone.add(shape.role)
    made: Dict[str, Any] = dict(flat)
    if usual != DEFAULT_ROLE_PATTERN:
        made["role_pattern"] = usual
    made["profiles"] = {item.cluster.profile: item.cluster.described() for item in candidates}
    made["schemas"] = [
        _bound(entry, bound[entry["name"]], patterns[entry["name"]], usual) if entry["name"] in bound else entry
        for entry in flat["schemas"]
    ]
    made["roles"] = [entry for entry in flat["roles"] if entry["name"] not in gone]
    made["grants"] = [rule for rule in flat.get("grants") or () if rule["role"] not in gone]
    made["default_privileges"] = _without(flat.get("default_privileges") or (), gone)
    order = [*SECTIONS, *(key for key in made if key not in SECTIONS)]
    return {key: made[key] for key in order if key in made and (made[key] or key not in _EMPTIED)}


#: Sections that may have nothing left.
_EMPTIED = ("roles", "grants", "default_privileges")


def _bound(entry: Mapping[str, Any], profiles: List[str], pattern: str, usual: str) -> Dict[str, Any]:
    more = {} if pattern == usual else {"role_pattern": pattern}
    return {**entry, "profiles": sorted(profiles), **more}


def _without(entries: Sequence[Mapping[str, Any]], gone: Set[str]) -> List[Dict[str, Any]]:
    left = []
    for entry in entries:
        grant = [item for item in entry["grant"] if item["role"] not in gone]
        if grant:
            left.append({**entry, "grant": grant})
    return left
