# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The manifests of several databases of one cluster, as the manifest of each database's own run.

Roles belong to the cluster, and one run looks after each: the first database's run after those that are declared, each
database's own after those that its profiles generate. All others are told their names. The raw values are only sorted
here; the module judges them. No message has a value, except names of roles and databases.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set

from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.spec import DEFAULT_ROLE_PATTERN
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import filled

#: Sections about the cluster, and sections about one database.
_OF_THE_CLUSTER = ("roles", "retirements")
_OF_A_DATABASE = ("schemas", "grants", "default_privileges")

Sections = Dict[str, Any]


class Runs(NamedTuple):
    """``runs``: the module's arguments of each database's run."""

    problems: List[str]
    runs: List[Sections]


def arranged(
    parts: Sequence[Any], counts: Sequence[int], names: Sequence[str], *, assumed: Iterable[str] = (),
    passwords: Any = None, created: Iterable[str] = (), drops: bool = True,
) -> Runs:  # fmt: skip
    """The runs of a call of the role.

    ``parts``: ``reconcile_manifest``, the manifests in ``reconcile_databases``, then the contents of all files.
    ``counts``: how many of the files belong to ``reconcile_manifest``, and to each database. ``names``: of the
    databases; none where the call is about one that has no name here. The rest as for ``runs_of``.
    """
    own, files = list(parts[: len(names) + 1]), list(parts[len(names) + 1 :])
    wholes = []
    problems: List[str] = []
    for number, count in enumerate(counts):
        taken, files = files[:count], files[count:]
        where = f"reconcile_databases[{number - 1}]: manifest and manifest_files" if number else ""
        whole = composed([own[number], *taken], where or "reconcile_manifest and reconcile_manifest_files")
        problems += whole.problems
        wholes.append(whole.runs[0])
    if names:
        by_name = dict(zip(names, wholes[1:]))
        made = runs_of(wholes[0], by_name, assumed=assumed, passwords=passwords, created=created, drops=drops)
        problems += _contradictions(wholes[0], by_name)
        return Runs([*problems, *made.problems], made.runs)
    run = wholes[0]
    given = {"assume_roles": list(assumed), "passwords": passwords}
    return Runs(problems, [{**run, **{name: value for name, value in given.items() if value}}])


def _contradictions(shared: Mapping[str, Any], databases: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What a database's manifest says otherwise than the cluster's."""
    for database, sections in databases.items():
        found = composed([shared, sections], f"reconcile_manifest and the manifest of {database}")
        yield from found.problems


class _Place(NamedTuple):
    """A database: where its messages point, its sections, and the roles that it generates."""

    where: str
    sections: Mapping[str, Any]
    generated: Set[str]


def composed(parts: Sequence[Any], where: str) -> Runs:
    """One manifest out of several parts, as a single run. Lists are joined, and the module finds what is in them twice;
    what would be lost by joining is a problem here.
    """
    problems: List[str] = []
    sections: Sections = {}
    profiles: List[str] = []
    values: Dict[str, List[str]] = {"default_owner": [], "role_pattern": []}
    for part in parts:
        if not isinstance(part, Mapping):
            continue
        if isinstance(part.get("profiles"), Mapping):
            profiles += [str(name) for name in part["profiles"]]
        for name, found in values.items():
            if part.get(name) and str(part[name]) not in found:
                found.append(str(part[name]))
        sections = _joined(sections, part)
    twice = sorted({name for name in profiles if profiles.count(name) > 1})
    if twice:
        problems.append(f"More than one of {where} has the profile {', '.join(twice)}")
    for found in values.values():
        if len(found) > 1:
            problems.append(f"{where} give different values of default_owner or role_pattern: {', '.join(found)}")
    return Runs(problems, [sections])


def _joined(left: Mapping[str, Any], right: Mapping[str, Any]) -> Sections:
    # Not dict(left): Ansible's own dicts fill in expressions only where somebody asks for a value.
    result = {name: value for name, value in left.items()}  # noqa: C416  # pylint: disable=unnecessary-comprehension
    for name, value in right.items():
        before = result.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            result[name] = _joined(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            result[name] = [*before, *value]
        else:
            result[name] = value
    return result


def runs_of(
    shared: Mapping[str, Any],
    databases: Mapping[str, Mapping[str, Any]],
    *,
    assumed: Iterable[str] = (),
    passwords: Any = None,
    created: Iterable[str] = (),
    drops: bool = True,
) -> Runs:
    """The arguments of each database's run, in the order of ``databases`` (sections by name).

    ``assumed``: roles that somebody else declares. ``created``: those that the first run makes or has yet to make, for
    whom nothing can be kept anywhere. ``drops``: whether retired roles go, so that with ``all_databases`` the first run
    empties them everywhere, and no other has to take anything from them.
    """
    places = [
        _Place(f"the manifest of {name}", sections, set(_generated(sections, shared)))
        for name, sections in databases.items()
    ]
    problems = [*_misplaced(shared, places), *_members_in_the_way(shared, places), *_generated_twice(places)]
    declared = list(_names(shared.get("roles"), "name"))
    overrides = [
        str(item["name"])
        for item in _items(shared.get("roles"))
        if item.get("privilege_reconciliation") is not None and isinstance(item.get("name"), str)
    ]
    kept = [name for name in overrides if name not in set(created)]
    emptied = list(_emptied(shared)) if drops else []
    runs = []
    for number, (database, place) in enumerate(zip(databases, places)):
        own: Sections = {"login_db": database}
        base = shared if number == 0 else _for_all(shared)
        own.update(_joined(base, place.sections))
        others = {name for other in places if other is not place for name in other.generated}
        if number:
            others.update(name for name in declared if not name.startswith("pg_"))
            others.difference_update(kept)
            if kept:
                # What the override keeps it keeps in every database.
                kept_roles = [{"name": name, "external": True, "privilege_reconciliation": "additive"} for name in kept]
                own["roles"] = [*kept_roles, *_list(own.get("roles"))]
            if emptied:
                own["scope"] = _joined(_mapping(own.get("scope")), {"ignore_roles": emptied})
        own["assume_roles"] = sorted(others.union(assumed))
        sent = _passwords(passwords, place, others, first=number == 0)
        if sent is not None:
            own["passwords"] = sent
        runs.append(own)
    return Runs(problems, runs)


def _for_all(shared: Mapping[str, Any]) -> Sections:
    """What of the cluster's sections every database needs."""
    found = {name: shared[name] for name in ("default_owner", "role_pattern", "profiles") if name in shared}
    ignored = _mapping(shared.get("scope")).get("ignore_roles")
    return {**found, "scope": {"ignore_roles": ignored}} if ignored else found


def _passwords(passwords: Any, place: _Place, others: Set[str], *, first: bool) -> Any:
    """Each password goes to the run that looks after its role, and what is no dict to the first, which refuses it."""
    if not isinstance(passwords, Mapping):
        return passwords if first else None
    if first:
        return {name: value for name, value in passwords.items() if name not in others}
    return {name: value for name, value in passwords.items() if name in place.generated} or None


def _emptied(shared: Mapping[str, Any]) -> Iterator[str]:
    """Patterns of the retired roles that the first run empties in all databases."""
    for item in _items(shared.get("retirements")):
        if item.get("all_databases") is True and isinstance(item.get("role"), str):
            yield re.sub(r"([*?[])", r"[\1]", item["role"])


def _generated(sections: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[str]:
    pattern = sections.get("role_pattern") or shared.get("role_pattern") or DEFAULT_ROLE_PATTERN
    for schema in _items(sections.get("schemas")):
        own = schema.get("role_pattern") or pattern
        for profile in _list(schema.get("profiles")):
            if isinstance(schema.get("name"), str) and isinstance(profile, str) and isinstance(own, str):
                yield filled(own, schema["name"], profile)


# ---- what stands in the wrong place ----------------------------------------------------------------------------------


def _misplaced(shared: Mapping[str, Any], places: Sequence[_Place]) -> Iterator[str]:
    for name in _OF_A_DATABASE:
        if shared.get(name):
            yield f"{name} in reconcile_manifest: with reconcile_databases they stand in the manifest of a database"
    if _mapping(shared.get("scope")).get("schemas"):
        yield "scope.schemas in reconcile_manifest: with reconcile_databases it stands in the manifest of a database"
    for place in places:
        for name in _OF_THE_CLUSTER:
            if place.sections.get(name):
                yield f"{name} in {place.where}: they belong to the cluster and stand in reconcile_manifest"
        for name in ("roles", "ignore_roles"):
            if _mapping(place.sections.get("scope")).get(name):
                yield f"scope.{name} in {place.where}: it belongs to the cluster and stands in reconcile_manifest"
        for number, item in enumerate(_items(place.sections.get("memberships"))):
            group = item.get("role")
            if isinstance(group, str) and group not in place.generated:
                yield (
                    f"memberships[{number}] in {place.where}: {group} is not generated there. Members of declared"
                    " groups stand in reconcile_manifest, those of a generated one in the manifest that generates it"
                )


def _members_in_the_way(shared: Mapping[str, Any], places: Sequence[_Place]) -> Iterator[str]:
    """Edges of generated groups that two runs would speak of: each would undo what the other did."""
    generated = {name: place.where for place in reversed(places) for name in place.generated}
    for number, item in enumerate(_items(shared.get("memberships"))):
        group = item.get("role")
        if isinstance(group, str) and group in generated:
            yield (
                f"memberships[{number}] in reconcile_manifest: {group} is generated, so its members stand in"
                f" {generated[group]}"
            )
    claimed: Dict[str, int] = {}
    for number, item in enumerate(_items(shared.get("roles"))):
        if not isinstance(item.get("member_of"), list):
            continue
        if isinstance(item.get("name"), str):
            claimed[item["name"]] = number
        for group in _names(item["member_of"], "name"):
            if group in generated:
                yield (
                    f"roles[{number}].member_of in reconcile_manifest: {group} is generated, so its members stand in"
                    f" {generated[group]}"
                )
    for place in places:
        for number, item in enumerate(_items(place.sections.get("memberships"))):
            for member in _names(item.get("members"), "name"):
                if member in claimed:
                    yield (
                        f"memberships[{number}] in {place.where}: roles[{claimed[member]}].member_of in"
                        f" reconcile_manifest says that {member} is a member of no other groups"
                    )


def _generated_twice(places: Sequence[_Place]) -> Iterator[str]:
    seen: Dict[str, str] = {}
    for place in places:
        for name in sorted(place.generated):
            if name in seen:
                yield (
                    f"{name} is generated in {seen[name]} and in {place.where}, and is one role of the cluster: give"
                    " one of them another role_pattern"
                )
            seen.setdefault(name, place.where)


# ---- raw values ------------------------------------------------------------------------------------------------------


def _list(value: Any) -> List[Any]:
    return list(value) if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Any) -> List[Mapping[str, Any]]:
    """The dicts of a list. The others keep their place in the count, as empty ones."""
    return [_mapping(item) for item in _list(value)]


def _names(value: Any, key: str) -> Iterator[str]:
    """Names in a list of names or of dicts with a name."""
    for item in _list(value):
        name: Optional[Any] = item.get(key) if isinstance(item, Mapping) else item
        if isinstance(name, str):
            yield name
