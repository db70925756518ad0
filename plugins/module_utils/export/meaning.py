# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Whether two manifests mean the same for a database: both go through the real policy, rules bound to objects."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Mapping, NamedTuple, Optional, Set, Tuple

from ..policy import ATTRIBUTE_DEFAULTS, DefaultRule, DesiredRole, Policy, Rule, manifest_to_policy
from ..privileges import KINDS, PUBLIC
from ..problems import ManifestInvalid
from .model import Inventory

#: What is said about one grantee and target, by privilege: present, with grant option. Absent ones are False, False.
_Said = Dict[str, Tuple[bool, bool]]


class Meaning(NamedTuple):
    """A manifest's meaning in a form that can be compared.

    ``entries``: by role, kind, schema, object and column, what the rules say of each privilege. ``permits``: what the
    default rules say. ``claims``: what rules make managed.
    """

    roles: Mapping[str, Tuple[Any, ...]]
    edges: FrozenSet[Tuple[Any, ...]]
    lists: Tuple[FrozenSet[str], ...]
    schemas: FrozenSet[Tuple[Any, ...]]
    entries: Mapping[Tuple[Any, ...], Any]
    permits: FrozenSet[Tuple[Any, ...]]
    claims: FrozenSet[Tuple[str, Optional[str]]]
    rest: Tuple[Any, ...]


class SameMeaning:
    """Compares manifests for one database. The first of the two is remembered: it is usually the same again."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._last: Optional[Tuple[Mapping[str, Any], Optional[Meaning]]] = None

    def __call__(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Whether both are valid and mean the same."""
        if self._last is None or self._last[0] is not one:
            self._last = (one, meaning_of(one, self._inventory))
        first = self._last[1]
        return first is not None and first == meaning_of(other, self._inventory)


def same_meaning(one: Mapping[str, Any], other: Mapping[str, Any], inventory: Inventory) -> bool:
    """Whether both raw manifests are valid and mean the same for a database with these objects."""
    return SameMeaning(inventory)(one, other)


def meaning_of(raw: Mapping[str, Any], inventory: Inventory) -> Optional[Meaning]:
    """The meaning of a raw manifest, None where it is not valid. Linear in its rules and in the objects that they
    reach.
    """
    try:
        policy = manifest_to_policy(raw)
    except ManifestInvalid:
        return None
    return Meaning(
        roles={role.name: _role(role) for role in policy.roles.values()},
        edges=frozenset((e.group, e.member, e.admin, e.inherit, e.set) for e in policy.edges.values()),
        lists=(
            frozenset(policy.stanzas),
            policy.exclusive,
            frozenset(policy.member_of),
            frozenset(policy.named_owners),
            frozenset(policy.named_roles),
            policy.assumed,
        ),
        schemas=frozenset((item.name, item.owner, item.create_owner) for item in policy.schemas.values()),
        entries=_entries(policy.rules, inventory),
        permits=_permits(policy.default_rules),
        claims=_claims(policy),
        rest=(
            policy.scope_roles,
            policy.scope_schemas,
            policy.ignore_roles,
            frozenset(
                (item.name, item.heir, item.drop_owned, item.terminate_sessions, item.all_databases)
                for item in policy.retirements.values()
            ),
        ),
    )


def _role(role: DesiredRole) -> Tuple[Any, ...]:
    attributes = () if role.external else tuple(sorted({**ATTRIBUTE_DEFAULTS, **role.attributes}.items()))
    # A login that is left out is not the same as false where a password comes or goes.
    said = "login" in role.attributes
    config = None if role.config is None else tuple(sorted(role.config.items()))
    return (role.external, role.additive, role.comment, config, attributes, said, role.password)


def _entries(rules: Tuple[Rule, ...], inventory: Inventory) -> Mapping[Tuple[Any, ...], Any]:
    """What the rules say of each target. A named rule beats a wildcard, as where rules are bound to a state."""
    every: Dict[Tuple[Any, ...], _Said] = {}
    named: Dict[Tuple[Any, ...], _Said] = {}
    for rule in rules:
        wildcard = rule.name == "*" and KINDS[rule.kind].in_schema
        for column in rule.columns or (None,):
            said = (every if wildcard else named).setdefault((rule.role, rule.kind, rule.schema, rule.name, column), {})
            for privilege in rule.privileges:
                option = rule.with_grant_option or said.get(privilege, (True, False))[1]
                said[privilege] = (rule.present, option)
    found: Dict[Tuple[Any, ...], _Said] = {}
    for (role, kind, schema, name, column), said in every.items():
        if column is not None:
            # Which objects have the column is not known here, so only the same rule means the same.
            found[role, kind, schema, name, column] = said
            continue
        for label in inventory.objects.get((str(schema), kind), ()):
            found[role, kind, schema, label, None] = said
    for key, said in named.items():
        found[key] = _over(said, found.get(key, {}))
    return found


def _over(said: _Said, weaker: _Said) -> _Said:
    both = dict(weaker)
    for privilege, (present, option) in said.items():
        before = weaker.get(privilege, (False, False))
        both[privilege] = (present, present and (option or before[1]))
    return both


def _permits(rules: Tuple[DefaultRule, ...]) -> FrozenSet[Tuple[Any, ...]]:
    found: Dict[Tuple[Any, ...], bool] = {}
    for rule in rules:
        for privilege in rule.privileges:
            key = (rule.owner, rule.schema, rule.kind, rule.role, rule.present, privilege)
            found[key] = rule.with_grant_option or found.get(key, False)
    return frozenset((*key, option) for key, option in found.items())


def _claims(policy: Policy) -> FrozenSet[Tuple[str, Optional[str]]]:
    """What is managed because of the rules and the schemas, as scope.py sees it."""
    found: Set[Tuple[str, Optional[str]]] = {("schema", name) for name in policy.schemas}
    for rule in policy.rules:
        if rule.present and rule.role != PUBLIC:
            found.add(("schema", rule.schema) if KINDS[rule.kind].in_schema else (rule.kind, rule.name))
    for default in policy.default_rules:
        if default.present and default.role != PUBLIC and default.schema is not None:
            found.add(("schema", default.schema))
    return frozenset(found)
