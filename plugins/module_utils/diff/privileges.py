# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Privileges on objects: decided once per group of objects that are alike, singly only where a rule names an object."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Set, Tuple, Union

from ..changes import Grant, Revoke, Target
from ..policy import Policy
from ..privileges import DEFAULT_COVERS, PUBLIC, PUBLIC_OID
from ..scope import Scope
from ..state import Acl, Group, Members, Object, State
from .targets import BoundRules, Grantees, Wanted, privileges_of

#: Privileges by owner, kind and schema (None: in every schema), then by grantee.
Permitted = Mapping[Tuple[int, str, Optional[str]], Mapping[int, FrozenSet[str]]]

_NOTHING = Wanted()


def shared_groups(state: State) -> List[Group]:
    """Schemas and databases in the shape of groups, one object each."""

    def one(kind: str, oid: int, name: str, owner: int, acl: Acl) -> Group:
        return Group(kind, None, owner, acl, Members(1, json.dumps([[oid, name]])))

    return [one("schema", s.oid, s.name, s.owner, s.acl) for s in state.schemas.values()] + [
        one("database", d.oid, d.name, d.owner, d.acl) for d in state.databases.values()
    ]


def permitted_by_defaults(policy: Policy, state: State) -> Permitted:
    """What a declared default privilege allows on objects that exist already: neither required nor surplus there."""
    permitted: Dict[Tuple[int, str, Optional[str]], Dict[int, FrozenSet[str]]] = defaultdict(dict)
    for rule in policy.default_rules:
        owner = state.role_oid(rule.owner)
        grantee = PUBLIC_OID if rule.role == PUBLIC else state.role_oid(rule.role)
        if not rule.present or owner is None or grantee is None:
            continue
        privileges = privileges_of(rule.privileges, rule.kind, state.server.version)
        for kind in DEFAULT_COVERS[rule.kind]:
            grantees = permitted[owner, kind, rule.schema]
            grantees[grantee] = grantees.get(grantee, frozenset()) | privileges
    return permitted


def privilege_changes(
    policy: Policy, state: State, scope: Scope, rules: BoundRules
) -> Tuple[List[Union[Grant, Revoke]], List[str]]:
    """Every difference of privileges on objects, and warnings about rules that can never do anything."""
    permitted = permitted_by_defaults(policy, state)
    changes: List[Union[Grant, Revoke]] = []
    owners_spared: Set[Tuple[str, str]] = set()
    for group in (*shared_groups(state), *state.groups):
        schema = None if group.schema is None else state.schemas[group.schema].name
        for objects, grantees, named in _buckets(group, schema, rules):
            managed = _is_managed(group, schema, objects, scope)
            if not managed and not grantees:
                continue
            allowed = (
                permitted.get((group.owner, group.kind, schema), {}),
                permitted.get((group.owner, group.kind, None), {}),
            )
            differences = list(_differences(group, grantees, allowed, managed))
            if named.get(group.owner, _NOTHING).absent:
                owners_spared.update((state.ref(group.owner).name, _label(schema, item)) for item in objects or ())
            if not differences:
                continue
            target = Target(
                group.kind,
                schema,
                tuple(group.members.objects() if objects is None else objects),
                state.ref(group.owner),
                group.column,
                group.extension and not _claimed(named),
            )
            for grantee, privileges, grantor, flags in differences:
                if grantor is None:
                    changes.append(Grant(target, state.ref(grantee), privileges))
                else:
                    dependents = _granted_onward(group, grantee, privileges)
                    changes.append(
                        Revoke(
                            target,
                            state.ref(grantee),
                            privileges,
                            state.ref(grantor),
                            *flags,
                            dependents=tuple(state.ref(oid) for oid in dependents),
                        )
                    )
    warnings = [
        f"{owner} owns {label}: an owner's own privileges are never taken away, so ensure: absent does nothing there"
        for owner, label in sorted(owners_spared)
    ]
    return changes, warnings


def _claimed(grantees: Grantees) -> bool:
    """Whether a present rule for a role is among these, which makes an extension's object managed like any other."""
    return any(grantee != PUBLIC_OID and wanted.present for grantee, wanted in grantees.items())


def _granted_onward(group: Group, grantor: int, privileges: FrozenSet[str]) -> List[int]:
    """Who holds one of these privileges because this grantee, who is not the owner, gave it away."""
    return sorted(
        {entry.grantee for entry in group.acl.entries if entry.grantor == grantor and entry.privilege in privileges}
    )


def _label(schema: Optional[str], item: Object) -> str:
    return item.label if schema is None else f"{schema}.{item.label}"


def _buckets(
    group: Group, schema: Optional[str], rules: BoundRules
) -> Iterator[Tuple[Optional[List[Object]], Grantees, Grantees]]:
    """The group in parts to decide alike: each named object singly, then the rest (None for the whole group).

    With each part all rules about it, and those of them that name it.

    Wildcards leave out what belongs to an extension, and nothing can be said about columns yet.
    """
    if group.column is not None:
        yield None, {}, {}
        return
    wildcard: Grantees = {}
    if schema is not None and not group.extension:
        wildcard = rules.wildcards.get((group.kind, schema), {})
    names = rules.names_in.get((group.kind, schema or ""))
    if not names:
        yield None, wildcard, {}
        return
    rest: List[Object] = []
    for item in group.members.objects():
        key = item.oid if group.kind == "function" else item.name
        if key not in names:
            rest.append(item)
            continue
        named = rules.named[group.kind, schema, key]
        grantees = {
            grantee: named.get(grantee, _NOTHING).over(wildcard.get(grantee, _NOTHING))
            for grantee in {**named, **wildcard}
        }
        yield [item], grantees, named
    if rest:
        yield rest, wildcard, {}


def _is_managed(group: Group, schema: Optional[str], objects: Optional[List[Object]], scope: Scope) -> bool:
    if schema is not None:
        return schema in scope.schemas
    name = (group.members.objects() if objects is None else objects)[0].name
    return name in (scope.schemas if group.kind == "schema" else scope.databases)


#: Grantee, privileges, then for a revoke its grantor and (option_only, explicit).
Difference = Tuple[int, FrozenSet[str], Optional[int], Tuple[bool, bool]]


def _differences(
    group: Group,
    grantees: Grantees,
    allowed: Iterable[Mapping[int, FrozenSet[str]]],
    managed: bool,
) -> Iterator[Difference]:
    """What differs for each grantee of one bucket. An owner's own privileges and PUBLIC's are only ever added to,
    but for what a rule takes from PUBLIC by name."""
    acl = group.acl.grantees()
    for grantee in sorted({*grantees, *acl}):
        wanted = grantees.get(grantee, _NOTHING)
        held = acl.get(grantee, {})
        missing = wanted.present - held.keys()
        if missing:
            yield grantee, frozenset(missing), None, (False, False)
        if grantee == group.owner:
            continue
        surplus: Dict[Tuple[int, bool, bool], Set[str]] = defaultdict(set)
        for privilege, entries in held.items():
            explicit = privilege in wanted.absent
            keep = privilege in wanted.present or any(privilege in by.get(grantee, ()) for by in allowed)
            if not explicit and (grantee == PUBLIC_OID or not (managed or keep)):
                continue
            for entry in entries:
                if explicit or not keep:
                    surplus[entry.grantor, False, explicit].add(privilege)
                elif entry.grantable and privilege in wanted.present:
                    surplus[entry.grantor, True, False].add(privilege)
        for (grantor, option_only, explicit), privileges in sorted(surplus.items()):
            yield grantee, frozenset(privileges), grantor, (option_only, explicit)
