# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Default privileges: the global layer and the one per schema, by owner and kind.

A global row holds the complete ACL, and no row means the built-in default; a schema's row holds only what is added
(PostgreSQL documentation, "pg_default_acl").
"""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple, Union

from ..changes import GrantDefault, RevokeDefault
from ..policy import Policy
from ..privileges import KINDS, PUBLIC, PUBLIC_OID
from ..problems import Problem
from ..scope import Scope
from ..state import Acl, State, default_acl
from .targets import Grantees, Wanted, privileges_of, too_new

#: Owner, schema name or None for the global layer, and kind.
Layer = Tuple[int, Optional[str], str]

_NOTHING = Wanted()


def default_changes(
    policy: Policy, state: State, scope: Scope
) -> Tuple[List[Union[GrantDefault, RevokeDefault]], List[Problem]]:
    """Every difference of default privileges, reported ones included (``claimed=False``)."""
    wanted, claimed_global, problems = _wanted(policy, state)
    owners = {state.role_oid(name) for name in policy.named_owners}
    rows: Dict[Layer, Acl] = {}
    for row in state.default_acls:
        schema = None if row.schema is None else state.schemas.get(row.schema)
        if row.schema is None or schema is not None:
            rows[row.owner, schema.name if schema else None, row.kind] = row.acl
    changes: List[Union[GrantDefault, RevokeDefault]] = []
    for layer in sorted({*wanted, *rows}, key=lambda key: (key[0], key[1] or "", key[1] is not None, key[2])):
        owner, schema_name, kind = layer
        if schema_name is None:
            claimed = layer in claimed_global
            managed = claimed or bool(scope.schemas)
            acl = rows.get(layer)
            if acl is None:
                acl = default_acl(kind, owner, state.server.version) if kind in KINDS else Acl()
        else:
            managed, claimed = schema_name in scope.schemas, owner in owners
            acl = rows.get(layer, Acl())
        for grantee, privileges, grant, option, explicit, upgrade, rules in _differences(
            owner, acl, wanted.get(layer, {}), managed
        ):
            if grant:
                changes.append(
                    GrantDefault(
                        state.ref(owner),
                        schema_name,
                        kind,
                        state.ref(grantee),
                        privileges,
                        option,
                        upgrade,
                        sources=rules,
                    )
                )
            else:
                claims = scope.schemas.get(schema_name, ()) if schema_name is not None else ()
                changes.append(
                    RevokeDefault(
                        state.ref(owner),
                        schema_name,
                        kind,
                        state.ref(grantee),
                        privileges,
                        option_only=option,
                        explicit=explicit,
                        claimed=claimed or explicit,
                        sources=rules if explicit or not claims else claims,
                    )
                )
    return changes, problems


def _wanted(policy: Policy, state: State) -> Tuple[Mapping[Layer, Grantees], Set[Layer], List[Problem]]:
    """The rules by layer, the global layers that a present rule for a role claims, and rules the server is too old
    for.
    """
    wanted: Dict[Layer, Grantees] = defaultdict(dict)
    claimed: Set[Layer] = set()
    problems: List[Problem] = []
    for rule in policy.default_rules:
        late = too_new(rule.privileges, rule.kind, state.server.version, rule.source, default=True)
        if late:
            problems.append(late)
            continue
        owner = state.role_oid(rule.owner)
        grantee = PUBLIC_OID if rule.role == PUBLIC else state.role_oid(rule.role)
        if owner is None or grantee is None:
            continue  # reported with the missing roles
        if rule.schema is not None and state.schema_named(rule.schema) is None:
            problems.append(
                Problem(
                    path=rule.source,
                    object=rule.schema,
                    message=f'schema "{rule.schema}" does not exist',
                    hint="Create the schema, or declare it in schemas.",
                    code="object_missing",
                )
            )
            continue
        layer = (owner, rule.schema, rule.kind)
        privileges = privileges_of(rule.privileges, rule.kind, state.server.version)
        entry = wanted[layer].setdefault(grantee, Wanted())
        entry.add(privileges, rule.source, present=rule.present, option=rule.with_grant_option)
        if rule.present and rule.role != PUBLIC:
            claimed.add(layer)
    return wanted, claimed, problems


class _Difference(NamedTuple):
    """To grant or to revoke, ``option``: with grant option, or only the grant option."""

    grantee: int
    privileges: FrozenSet[str]
    grant: bool
    option: bool
    explicit: bool = False
    upgrade: bool = False
    rules: Tuple[str, ...] = ()


def _differences(owner: int, acl: Acl, grantees: Grantees, managed: bool) -> Iterator[_Difference]:
    """What differs in one layer. Every entry's grantor is the owner."""
    held_by = acl.grantees()
    for grantee in sorted({*grantees, *held_by}):
        wanted = grantees.get(grantee, _NOTHING)
        held = held_by.get(grantee, {})
        plain = (wanted.present - wanted.option) - held.keys()
        option = {
            p
            for p in wanted.option
            if p not in held or not (grantee == owner or any(entry.grantable for entry in held[p]))
        }
        if plain:
            yield _Difference(grantee, frozenset(plain), True, False, rules=wanted.behind(plain))
        for upgrade in (False, True):
            part = frozenset(p for p in option if (p in held) is upgrade)
            if part:
                yield _Difference(grantee, part, True, True, upgrade=upgrade, rules=wanted.behind(part))
        if grantee == owner:
            continue
        surplus: Dict[Tuple[bool, bool], Set[str]] = defaultdict(set)
        for privilege, entries in held.items():
            if privilege in wanted.absent:
                surplus[False, True].add(privilege)
            elif privilege in wanted.present:
                if privilege not in wanted.option and any(entry.grantable for entry in entries):
                    surplus[True, False].add(privilege)
            elif managed and grantee != PUBLIC_OID:
                surplus[False, False].add(privilege)
        for (option_only, explicit), privileges in sorted(surplus.items()):
            rules = wanted.behind(privileges)
            yield _Difference(grantee, frozenset(privileges), False, option_only, explicit, rules=rules)
