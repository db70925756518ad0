# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Roles that are alike in several schemas, brought together."""

from __future__ import annotations

import re
from typing import Any, Dict, FrozenSet, List, Optional, Sequence, Tuple

from ..manifest import settings
from ..policy import filled
from ..privileges import KINDS
from .model import Inventory
from .shapes import Form, Held, Shape, replaced

_KINDS = tuple(kind.name for kind in KINDS.values() if kind.in_schema)

#: Ways to write a setting's value, the plainest first.
_Ways = Tuple[Tuple[str, ...], ...]

#: How many clusters a role is compared with beside its own, so that many roles of many shapes take no square of time.
_TRIED = 20


class Cluster:
    """Roles that one profile could stand for, each in a schema of its own.

    ``forms``: what the profile says about each kind, decided by the first member whose schema has objects of the kind.
    """

    def __init__(self, profile: str, first: Shape, inventory: Inventory) -> None:
        self.profile = profile
        self.members: List[Shape] = [first]
        self.forms: Dict[str, Form] = {}
        self._inventory = inventory
        self._ways: Dict[str, _Ways] = {
            name: _ways(value, first.schema, profile) for name, value in (first.config or {}).items()
        }
        self._learn(first)

    def offer(self, shape: Shape) -> bool:
        """Takes the role as a member, if the profile can stand for it as well."""
        if self.difference(shape) is not None:
            return False
        self.members.append(shape)
        self._ways = {
            name: tuple(way for way in ways if _filled(way, shape.schema, self.profile) == (shape.config or {})[name])
            for name, ways in self._ways.items()
        }
        self._learn(shape)
        return True

    def _learn(self, shape: Shape) -> None:
        for kind in _KINDS:
            if self._labels(shape, kind) or kind in shape.forms:
                self.forms.setdefault(kind, shape.forms.get(kind, Form()))

    def difference(self, shape: Shape) -> Optional[str]:
        """In what the role is unlike the members, in words, or None where it is like them."""
        first = self.members[0]
        if first.login != shape.login:
            return "login"
        if first.inherit != shape.inherit:
            return "inherit"
        if not self._like_settings(shape):
            return "config"
        if first.on_schema != shape.on_schema:
            return "privileges on the schema"
        for kind in _KINDS:
            if not self._same_on(kind, shape):
                return f"privileges on {KINDS[kind].name.replace('_', ' ')}s"
        return None if first.defaults == shape.defaults else "default privileges"

    def _labels(self, shape: Shape, kind: str) -> FrozenSet[str]:
        return self._inventory.objects.get((shape.schema, kind), frozenset())

    def _same_on(self, kind: str, shape: Shape) -> bool:
        """Whether the profile may say the same about this kind in the role's schema."""
        labels = self._labels(shape, kind)
        own = shape.forms.get(kind, Form())
        form = self.forms.get(kind)
        if form is None:
            # So far only schemas without such objects: what names one would be an error there.
            return not own.named
        if len(labels) > 1:
            return form == own
        # One object tells nothing about others, and none tells nothing at all.
        label = next(iter(labels), None)
        return form.means(label) == own.means(label)

    def _like_settings(self, shape: Shape) -> bool:
        if (self.members[0].config is None) != (shape.config is None):
            return False
        config = shape.config or {}
        return config.keys() == self._ways.keys() and all(
            any(_filled(way, shape.schema, self.profile) == config[name] for way in ways)
            for name, ways in self._ways.items()
        )

    def described(self) -> Dict[str, Any]:
        """The profile as a manifest writes it."""
        first = self.members[0]
        found: Dict[str, Any] = {}
        if first.login is not None:
            found["login"] = first.login
        if not first.inherit:
            found["inherit"] = False
        if first.config is not None:
            found["config"] = {name: _written(name, ways[0]) for name, ways in sorted(self._ways.items())}
        grants = [{**rule, "object": {"type": "schema"}} for rule in _given("schema", first.on_schema)]
        for kind in _KINDS:
            grants += _rules(kind, self.forms.get(kind, Form()))
        defaults = [
            _with_option({"privileges": rule["privileges"], "on_type": kind}, rule)
            for kind in sorted({kind for kind, _privilege, _option in first.defaults}, key=list(KINDS).index)
            for rule in _given(
                kind, frozenset((privilege, option) for on, privilege, option in first.defaults if on == kind)
            )
        ]
        if grants:
            found["grants"] = [_ordered(rule) for rule in grants]
        if defaults:
            found["default_privileges"] = defaults
        return found


def clusters(profile: str, shapes: Sequence[Shape], inventory: Inventory) -> List[Cluster]:
    """The roles brought together, the largest cluster first. Each role is in exactly one.

    Roles that a schema with few objects makes vague may fit several clusters: they come last, and try the first few.
    """
    groups: Dict[Tuple[Any, ...], List[Shape]] = {}
    for shape in sorted(shapes, key=lambda shape: shape.role):
        counts = tuple(min(2, len(inventory.objects.get((shape.schema, kind), ()))) for kind in _KINDS)
        groups.setdefault((_basics(shape), frozenset(shape.forms.items()), counts), []).append(shape)
    found: List[Cluster] = []
    by_basics: Dict[Tuple[Any, ...], List[Cluster]] = {}
    for key, alike in sorted(groups.items(), key=lambda item: (_vagueness(item[0][2]), -len(item[1]), item[1][0].role)):
        near = by_basics.setdefault(key[0], [])
        own: List[Cluster] = []
        for shape in alike:
            if any(cluster.offer(shape) for cluster in (*own, *near[:_TRIED])):
                continue
            cluster = Cluster(profile, shape, inventory)
            near.append(cluster)
            own = [cluster]
            found.append(cluster)
    return sorted(found, key=lambda cluster: (-len(cluster.members), cluster.members[0].role))


def _basics(shape: Shape) -> Tuple[Any, ...]:
    names = None if shape.config is None else frozenset(shape.config)
    return (shape.login, shape.inherit, names, shape.on_schema, shape.defaults)


def _vagueness(counts: Tuple[int, ...]) -> Tuple[int, int]:
    """How many kinds tell little about a role, because its schema has one object of them or none."""
    return counts.count(1), counts.count(0)


# ---- settings --------------------------------------------------------------------------------------------------------


def _ways(value: Tuple[str, ...], schema: str, profile: str) -> _Ways:
    candidates = (
        value,
        tuple("{schema}" if element == schema else element for element in value),
        tuple(replaced(element, schema, "{schema}") for element in value),
    )
    return tuple(
        way
        for way in dict.fromkeys(candidates)
        # Two braces would be a template to a manifest file, which takes none.
        if _filled(way, schema, profile) == value and not any("{{" in element for element in way)
    )


def _filled(way: Tuple[str, ...], schema: str, profile: str) -> Tuple[str, ...]:
    return tuple(filled(element, schema, profile) for element in way)


def _written(name: str, elements: Tuple[str, ...]) -> str:
    if name not in settings.QUOTED_LISTS:
        return elements[0]
    return ", ".join(
        element if re.fullmatch(r"[\w{}$]+", element) else '"{}"'.format(element.replace('"', '""'))
        for element in elements
    )


# ---- rules -----------------------------------------------------------------------------------------------------------


def _given(kind: str, held: FrozenSet[Held]) -> List[Dict[str, Any]]:
    """One rule for the privileges without grant option and one for those with it."""
    order = list(KINDS[kind].privileges)
    rules: List[Dict[str, Any]] = []
    for wanted in (False, True):
        names = {privilege for privilege, option in held if option == wanted}
        if names:
            listed = sorted(names, key=lambda name: (order.index(name) if name in order else -1, name))
            rules.append(_with_option({"privileges": listed}, {"with_grant_option": wanted}))
    return rules


def _with_option(rule: Dict[str, Any], other: Dict[str, Any]) -> Dict[str, Any]:
    return {**rule, "with_grant_option": True} if other.get("with_grant_option") else rule


def _rules(kind: str, form: Form) -> List[Dict[str, Any]]:
    rules = [{**rule, "object": {"type": kind, "name": "*"}} for rule in _given(kind, form.every)]
    held: Dict[Tuple[str, Optional[str]], List[Held]] = {}
    for label, column, privilege, option in form.named:
        held.setdefault((label, column), []).append((privilege, option))
    # Columns of one object with the same privileges stand in one rule.
    alike: Dict[Tuple[str, bool, FrozenSet[Held]], List[str]] = {}
    for (label, column), listed in held.items():
        alike.setdefault((label, column is not None, frozenset(listed)), []).append(column or "")
    for (label, on_columns, privileges), columns in sorted(
        alike.items(), key=lambda item: (item[0][0], item[0][1], sorted(item[1]))
    ):
        for rule in _given(kind, privileges):
            more = {"columns": sorted(columns)} if on_columns else {}
            rules.append({**rule, **more, "object": {"type": kind, "name": label}})
    return rules


def _ordered(rule: Dict[str, Any]) -> Dict[str, Any]:
    return {key: rule[key] for key in ("privileges", "columns", "object", "with_grant_option") if key in rule}
