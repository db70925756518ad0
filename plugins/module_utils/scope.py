# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Which schemas and shared objects a policy makes managed, and which it only touches."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Dict, FrozenSet, Iterable, List, Mapping, Set, Tuple

from .policy import Policy
from .privileges import KINDS, PUBLIC, is_system_schema
from .records import dataclass, field


@dataclass(frozen=True)
class Scope:
    """``schemas`` and ``shared`` (by kind and name): what is managed, each with what claims it.

    ``claimed_by_rules``: the managed schemas that nothing but a grant or a default privilege claims. ``inspected``: the
    schemas whose objects the run has to read, which includes those that rules only touch.
    """

    schemas: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)
    shared: Mapping[Tuple[str, str], Tuple[str, ...]] = field(default_factory=dict)
    claimed_by_rules: FrozenSet[str] = frozenset()
    inspected: FrozenSet[str] = frozenset()

    def summary(self) -> Mapping[str, Tuple[str, ...]]:
        """Every managed schema and shared object, with what claims it, for the result."""
        claims = {f"schema {name}": sources for name, sources in self.schemas.items()}
        claims.update((f"{kind.replace('_', ' ')} {name}", sources) for (kind, name), sources in self.shared.items())
        return dict(sorted(claims.items()))


def scope_of(policy: Policy, schemas: Iterable[str], database: str) -> Scope:
    """The scope of a policy in a database that has these schemas. ``database``: the connected one's name."""
    claims: Dict[str, List[str]] = {}
    shared: Dict[Tuple[str, str], List[str]] = {}
    inspected: Set[str] = set()
    for desired in policy.schemas.values():
        claims.setdefault(desired.name, []).append(desired.source)
    existing = sorted(schemas)
    for pattern in policy.scope_schemas:
        for name in existing:
            if fnmatchcase(name, pattern) and not is_system_schema(name):
                claims.setdefault(name, []).append(f"scope.schemas: {pattern}")
    by_declaration = frozenset(claims)
    for rule in policy.rules:
        claims_something = rule.present and rule.role != PUBLIC
        schema = rule.schema if KINDS[rule.kind].in_schema else rule.name if rule.kind == "schema" else None
        if schema is None:
            if claims_something:
                shared.setdefault((rule.kind, rule.name or database), []).append(rule.source)
            continue
        if KINDS[rule.kind].in_schema:
            inspected.add(schema)
        if claims_something and not is_system_schema(schema):
            claims.setdefault(schema, []).append(rule.source)
    for default in policy.default_rules:
        if default.schema is not None and default.present and default.role != PUBLIC:
            if not is_system_schema(default.schema):
                claims.setdefault(default.schema, []).append(default.source)
    return Scope(
        schemas={name: _brief(sources) for name, sources in sorted(claims.items())},
        shared={place: _brief(sources) for place, sources in sorted(shared.items())},
        claimed_by_rules=frozenset(claims) - by_declaration,
        inspected=frozenset(inspected | set(claims)),
    )


def _brief(sources: List[str], most: int = 3) -> Tuple[str, ...]:
    """The first few claims; a schema with a thousand rules is explained by three of them."""
    unique = list(dict.fromkeys(sources))
    rest = len(unique) - most
    return (*unique[:most], f"and {rest} more") if rest > 0 else tuple(unique)
