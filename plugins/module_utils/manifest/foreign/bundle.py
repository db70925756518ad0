# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""A pgroles bundle: a file with what all share and the names of the others, and what each of them may declare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict, List, Optional, Set, Tuple

from ...records import dataclass, field
from ..texts import describe, show
from .conversion import IGNORED, KEEP, Form, Sections, Sifted, Sifter
from .pgroles import LISTS, SHARED, Conversion, Shared, dicts

_BUNDLE: Form = {"shared": KEEP, "sources": KEEP}
_SOURCE: Form = {"file": KEEP}

_FRAGMENT: Form = {"policy": IGNORED, "scope": KEEP, "role_pattern": KEEP, **dict.fromkeys(LISTS, KEEP)}
_FRAGMENT_SCOPE: Form = {"roles": KEEP, "schemas": KEEP}
_FRAGMENT_SCHEMA: Form = {"name": KEEP, "facets": KEEP}

_OWNER, _BINDINGS = "owner", "bindings"


@dataclass
class Bundle:
    """The root of a bundle: what its files share, and which files they are, as (place, name).

    ``claimed``: which file looks after which facet of a schema, as far as they are read.
    """

    default_owner: Optional[str] = None
    has_pattern: bool = False
    sources: Tuple[Tuple[str, str], ...] = ()
    claimed: Dict[Tuple[str, str], str] = field(default_factory=dict)


@dataclass
class Boundary:
    """What a part of a bundle may declare: roles, and facets of schemas."""

    roles: Set[str] = field(default_factory=set)
    facets: Set[Tuple[str, str]] = field(default_factory=set)


def bundle(content: Mapping[Any, Any], sections: Sections) -> Bundle:
    """The root of a bundle: what its files share goes into the sections."""
    sifter, judge = Sifter(sections), sections.judge
    found = sifter.keys(content, _BUNDLE, "")
    shared = found.get("shared")
    read = Bundle()
    if isinstance(shared, Mapping):
        parts = sifter.keys(shared, SHARED, "shared")
        Conversion(sections).shared(parts)
        owner = parts.get("default_owner")
        read.default_owner = owner if isinstance(owner, str) else None
        read.has_pattern = parts.get("role_pattern") is not None
    elif shared is not None:
        judge.report("shared", f"must be a dict, not {describe(shared, secret=True)}")
    sources = found.get("sources")
    if not isinstance(sources, list) or not sources:
        judge.report("sources", "must be a list of the bundle's files, not empty: {file: platform.yaml}")
        sections.complete = False
        return read
    names: List[Tuple[str, str]] = []
    for number, item in enumerate(sources):
        place = f"sources[{number}]"
        entry = sifter.keys(item, _SOURCE, place).get("file") if isinstance(item, Mapping) else None
        if isinstance(entry, str) and entry and "\0" not in entry:
            names.append((f"{place}.file", entry))
        else:
            judge.report(place, "must be a dict with file, the file's name from the bundle's own folder")
            sections.complete = False
    read.sources = tuple(names)
    return read


def fragment(content: Mapping[Any, Any], sections: Sections, root: Bundle) -> None:
    """One file of a bundle. What it declares outside of its ``scope`` is refused, as pgroles refuses it."""
    sifter = Sifter(sections)
    found = sifter.keys(content, _FRAGMENT, "")
    boundary = _boundary(sifter, sections, found.get("scope"), root)
    _within(sections, found, boundary)
    shared = Shared(
        default_owner=root.default_owner,
        owned=frozenset(name for name, facet in boundary.facets if facet == _OWNER),
        has_pattern=root.has_pattern,
        pattern=found.get("role_pattern"),
        pattern_place=found.places.get("role_pattern", ""),
    )
    Conversion(sections, shared=shared).lists(found)


# ---- the boundaries of a bundle's files ----------------------------------------------------------------------------


def _boundary(sifter: Sifter, sections: Sections, scope: Any, root: Bundle) -> Boundary:
    found = Boundary()
    if scope is None:
        return found
    judge = sections.judge
    if not isinstance(scope, Mapping):
        judge.report("scope", f"must be a dict with roles and schemas, not {describe(scope, secret=True)}")
        return found
    parts = sifter.keys(scope, _FRAGMENT_SCOPE, "scope")
    roles, schemas = parts.get("roles"), parts.get("schemas")
    if isinstance(roles, list):
        found.roles.update(name for name in roles if isinstance(name, str))
    elif roles is not None:
        judge.report("scope.roles", "must be a list of roles")
    if schemas is not None and not isinstance(schemas, list):
        judge.report("scope.schemas", "must be a list of schemas, each with name and facets")
        return found
    for number, item in enumerate(schemas or ()):
        place = f"scope.schemas[{number}]"
        if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
            judge.report(place, "must be a dict with name and facets")
            continue
        facets = sifter.keys(item, _FRAGMENT_SCHEMA, place).get("facets")
        for facet in facets if isinstance(facets, list) else ():
            if facet not in (_OWNER, _BINDINGS):
                judge.report(f"{place}.facets", f"must be {_OWNER} or {_BINDINGS}, not {describe(facet, secret=True)}")
                continue
            key, here = (item["name"], facet), judge.source(place)
            first = root.claimed.setdefault(key, here)
            if first != here:
                what = f"the {facet} facet of the schema {show(item['name'])}"
                judge.report(place, f"{what} is claimed twice: in {first} and in {here}")
            found.facets.add(key)
    return found


def _within(sections: Sections, found: Sifted, boundary: Boundary) -> None:
    """Reports what a file declares that its scope does not give it."""
    judge = sections.judge

    def schema(name: Any, facet: str, place: str) -> None:
        if isinstance(name, str) and (name, facet) not in boundary.facets:
            judge.report(place, f"lies outside of the file's scope: it has not the facet {facet} of {show(name)}")

    for section, key in (("roles", "name"), ("retirements", "role")):
        for number, item in dicts(found.get(section)):
            name = item.get(key)
            if isinstance(name, str) and name not in boundary.roles:
                place = f"{section}[{number}].{key}"
                judge.report(place, f"lies outside of the file's scope: scope.roles has no {show(name)}", role=name)
    for number, item in dicts(found.get("schemas")):
        if item.get("profiles") or item.get("role_pattern"):
            schema(item.get("name"), _BINDINGS, f"schemas[{number}]")
        if item.get("owner"):
            schema(item.get("name"), _OWNER, f"schemas[{number}].owner")
    for number, item in dicts(found.get("grants")):
        target = item.get("object", item.get("on", item.get(True)))
        if isinstance(target, Mapping) and target.get("type") != "database":
            name = target.get("name") if target.get("type") == "schema" else target.get("schema")
            schema(name, _BINDINGS, f"grants[{number}]")
    for number, item in dicts(found.get("default_privileges")):
        scope = item.get("scope")
        name = item.get("schema", scope.get("schema") if isinstance(scope, Mapping) else None)
        schema(name, _BINDINGS, f"default_privileges[{number}]")
        owner = item.get("owner")
        if name is None and isinstance(owner, str) and owner not in boundary.roles:
            text = f"lies outside of the file's scope: global rules need the owner {show(owner)} in scope.roles"
            judge.report(f"default_privileges[{number}]", text)
