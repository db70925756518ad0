# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Privileges on objects: decided once per group of objects that are alike, singly only where a rule names an object."""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple, Union

from ..acls import Acls, shared_groups
from ..changes import Grant, Revoke, Target
from ..policy import Policy
from ..privileges import DEFAULT_COVERS, PUBLIC, PUBLIC_OID
from ..records import dataclass
from ..scope import Scope
from ..state import Acl, Group, Members, Object, State
from .retirements import Leaving
from .targets import BoundRules, Grantees, Lookups, Wanted, privileges_of

#: What one grantee may hold without being asked, and whether with grant option.
Allowed = Mapping[str, bool]
#: That by owner, kind and schema (None: in every schema), then by grantee.
Permitted = Mapping[Tuple[int, str, Optional[str]], Mapping[int, Allowed]]

_NOTHING = Wanted()
_NO_ACL = Acl(frozenset())
_NOBODY = Leaving()


@dataclass(frozen=True)
class Bucket:
    """Objects that are alike and about which the rules say the same. ``managed``: surplus on them is drift."""

    group: Group
    target: Target
    wanted: Grantees
    managed: bool


def permitted_by_defaults(policy: Policy, state: State) -> Permitted:
    """What a declared default privilege allows on objects that exist already: neither required nor surplus there."""
    permitted: Dict[Tuple[int, str, Optional[str]], Dict[int, Dict[str, bool]]] = defaultdict(dict)
    for rule in policy.default_rules:
        owner = state.role_oid(rule.owner)
        grantee = PUBLIC_OID if rule.role == PUBLIC else state.role_oid(rule.role)
        if not rule.present or owner is None or grantee is None:
            continue
        privileges = privileges_of(rule.privileges, rule.kind, state.server.version)
        for kind in DEFAULT_COVERS[rule.kind]:
            allowed = permitted[owner, kind, rule.schema].setdefault(grantee, {})
            for privilege in privileges:
                allowed[privilege] = allowed.get(privilege, False) or rule.with_grant_option
    return permitted


def column_groups(state: State, rules: BoundRules, lookups: Lookups) -> Iterator[Group]:
    """Columns that rules speak of and that carry no ACL, grouped by what their relations are grouped by."""
    if not rules.columns:
        return
    with_acl: Dict[Tuple[Optional[int], Optional[str]], Set[int]] = defaultdict(set)
    for group in state.groups:
        if group.column is not None:
            with_acl[group.schema, group.column].update(item.oid for item in group.members.objects())
    for group in state.groups:
        if group.column is not None or group.schema is None:
            continue
        for column in sorted(rules.columns.get((group.kind, state.schemas[group.schema].name), ())):
            oids = lookups.columns.get(column, frozenset()) - with_acl[group.schema, column]
            found = [item for item in group.members.objects() if item.oid in oids]
            if found:
                yield Group(group.kind, group.schema, group.owner, _NO_ACL, Members.of(found), group.extension, column)


def privilege_changes(
    policy: Policy, state: State, scope: Scope, rules: BoundRules, lookups: Lookups, leaving: Leaving = _NOBODY
) -> Tuple[List[Union[Grant, Revoke]], List[Bucket], List[str]]:
    """Every difference of privileges on objects. What a role that goes leaves to an heir is judged as the heir's.

    Beside the changes: the buckets in which somebody else than the owner gave something, and warnings about rules that
    can never do anything.
    """
    permitted = permitted_by_defaults(policy, state)
    acls = Acls(state)
    changes: List[Union[Grant, Revoke]] = []
    onward: List[Bucket] = []
    owners_spared: Set[Tuple[str, str]] = set()
    for group in (*shared_groups(state), *state.groups, *column_groups(state, rules, lookups)):
        schema = None if group.schema is None else state.schemas[group.schema].name
        foreign = any(entry.grantor != group.owner for entry in group.acl.entries)
        for objects, grantees, named in buckets(group, schema, rules):
            managed = _is_managed(group, schema, objects, scope)
            if not managed and not grantees:
                continue
            allowed = (
                permitted.get((leaving.owner(group.owner), group.kind, schema), {}),
                permitted.get((leaving.owner(group.owner), group.kind, None), {}),
            )
            differences = list(_differences(group, grantees, allowed if group.column is None else (), managed))
            passed_by: List[_Difference] = []
            if group.extension:
                passed_by = _passed_by(group, _wildcard(group, schema, rules), named) if named else []
                # Nothing else than a rule that names the object is about what belongs to an extension.
                differences = differences if named else [item._replace(explicit=False) for item in differences]
            if named.get(group.owner, _NOTHING).absent:
                owners_spared.update((state.ref(group.owner).name, _label(schema, item)) for item in objects or ())
            if not differences and not passed_by and not foreign:
                continue
            target = Target(
                group.kind,
                schema,
                tuple(group.members.objects() if objects is None else objects),
                state.ref(group.owner),
                () if group.column is None else (group.column,),
                group.extension and not _claimed(named),
            )
            if foreign:
                onward.append(Bucket(group, target, grantees, managed))
            # What a rule gives by name it gives on an extension's object too.
            giving = target._replace(extension=target.extension and not named)
            claims = _claims(group, target, scope) if managed else ()
            changes.extend(_changes(differences, target, giving, claims, state, acls))
            spared = target._replace(extension=True)
            changes.extend(_changes(passed_by, spared, spared, claims, state, acls))
    warnings = [
        f"{owner} owns {label}: an owner's own privileges are never taken away, so ensure: absent does nothing there"
        for owner, label in sorted(owners_spared)
    ]
    return changes, onward, warnings


def _changes(
    differences: Iterable[_Difference],
    target: Target,
    giving: Target,
    claims: Tuple[str, ...],
    state: State,
    acls: Acls,
) -> Iterator[Union[Grant, Revoke]]:
    """The differences as changes: ``target`` for what is taken, ``giving`` for what is given.

    ``claims``: what makes the target managed.
    """
    for grantee, privileges, grantor, option, explicit, upgrade, rules in differences:
        ref = state.ref(grantee)
        if grantor is not None:
            sources = rules if explicit or not claims else claims
            yield Revoke(target, ref, privileges, state.ref(grantor), option, explicit, sources=sources)
        elif target.columns and grantee == target.owner.oid:
            # What an owner holds on its relation reaches every column.
            for privilege in sorted(privileges):
                lacking = tuple(i for i in target.objects if privilege not in acls.of(target.kind, i.oid).of(grantee))
                if lacking:
                    limited = giving._replace(objects=lacking)
                    yield Grant(limited, ref, frozenset((privilege,)), option, sources=rules)
        else:
            yield Grant(giving, ref, privileges, option, upgrade, sources=rules)


def _claims(group: Group, target: Target, scope: Scope) -> Tuple[str, ...]:
    name = target.objects[0].name if target.schema is None else target.schema
    if target.schema is not None or group.kind == "schema":
        return scope.schemas.get(name, ())
    return scope.shared.get((group.kind, name), ())


def _claimed(grantees: Grantees) -> bool:
    """Whether a present rule for a role is among these, which makes an extension's object managed like any other."""
    return any(grantee != PUBLIC_OID and wanted.present for grantee, wanted in grantees.items())


def _passed_by(group: Group, wildcard: Grantees, named: Grantees) -> List[_Difference]:
    """What wildcards would change on an extension's object that other rules name."""
    rest: Dict[int, Wanted] = {}
    for grantee, wanted in wildcard.items():
        settled = named.get(grantee, _NOTHING)
        told = settled.present | settled.absent
        rest[grantee] = Wanted(wanted.present - told, wanted.absent - told, wanted.option - told)
    return [item._replace(explicit=False) for item in _differences(group, rest, (), managed=False)]


def _label(schema: Optional[str], item: Object) -> str:
    return item.label if schema is None else f"{schema}.{item.label}"


def buckets(
    group: Group, schema: Optional[str], rules: BoundRules
) -> Iterator[Tuple[Optional[List[Object]], Grantees, Grantees]]:
    """The group in parts to decide alike: each named object singly, then the rest (None for the whole group).

    With each part all rules about it, and those of them that name it.
    """
    wildcard = _wildcard(group, schema, rules)
    place = (group.kind, schema or "")
    names = rules.names_in.get((*place, group.column), frozenset())
    if group.column is not None:
        names |= rules.names_in.get((*place, None), frozenset())
    if not names:
        yield None, wildcard, {}
        return
    rest: List[Object] = []
    for item in group.members.objects():
        key = item.oid if group.kind == "function" else item.name
        if key not in names:
            rest.append(item)
            continue
        named = rules.named.get((group.kind, schema, key, group.column), {})
        if group.column is not None:
            named = _over(named, _absent(rules.named.get((group.kind, schema, key, None), {})))
        # Naming an extension's object does not make wildcards reach it.
        yield [item], named if group.extension else _over(named, wildcard), named
    if rest:
        yield rest, wildcard, {}


def _wildcard(group: Group, schema: Optional[str], rules: BoundRules) -> Grantees:
    if schema is None:
        return {}
    # A wildcard leaves out what belongs to an extension. What it would give or take there is reported, see filters.
    found = rules.wildcards.get((group.kind, schema, group.column), {})
    if group.column is None:
        return found
    return _over(found, _absent(rules.wildcards.get((group.kind, schema, None), {})))


def _absent(grantees: Grantees) -> Grantees:
    """What a rule takes from a relation it takes from its columns too, as REVOKE does; what it gives, it gives once."""
    return {
        grantee: Wanted(absent=wanted.absent, rules={name: wanted.rules[name] for name in wanted.absent})
        for grantee, wanted in grantees.items()
        if wanted.absent
    }


def _over(stronger: Grantees, weaker: Grantees) -> Grantees:
    if not weaker:
        return stronger
    return {
        grantee: stronger.get(grantee, _NOTHING).over(weaker.get(grantee, _NOTHING))
        for grantee in {**stronger, **weaker}
    }


def _is_managed(group: Group, schema: Optional[str], objects: Optional[List[Object]], scope: Scope) -> bool:
    if schema is not None:
        return schema in scope.schemas
    name = (group.members.objects() if objects is None else objects)[0].name
    return name in scope.schemas if group.kind == "schema" else (group.kind, name) in scope.shared


class _Difference(NamedTuple):
    """``grantor`` None: to grant, ``option`` with grant option. Else to revoke, ``option`` only the grant option."""

    grantee: int
    privileges: FrozenSet[str]
    grantor: Optional[int]
    option: bool
    explicit: bool = False
    upgrade: bool = False
    rules: Tuple[str, ...] = ()


def _differences(
    group: Group,
    grantees: Grantees,
    allowed: Iterable[Mapping[int, Allowed]],
    managed: bool,
) -> Iterator[_Difference]:
    """What differs for each grantee of one bucket.

    An owner's own privileges and PUBLIC's are only ever added to, but for what a rule takes from PUBLIC by name.
    """
    acl = group.acl.grantees()
    for grantee in sorted({*grantees, *acl}):
        wanted = grantees.get(grantee, _NOTHING)
        held = acl.get(grantee, {})
        plain = (wanted.present - wanted.option) - held.keys()
        # An owner counts as having every grant option.
        owner = grantee == group.owner
        option = {p for p in wanted.option if p not in held or not (owner or any(e.grantable for e in held[p]))}
        if plain:
            yield _Difference(grantee, frozenset(plain), None, False, rules=wanted.behind(plain))
        for upgrade in (False, True):
            part = frozenset(p for p in option if (p in held) is upgrade)
            if part:
                yield _Difference(grantee, part, None, True, upgrade=upgrade, rules=wanted.behind(part))
        if owner:
            continue
        may: Dict[str, bool] = {}
        for by in allowed:
            for privilege, with_option in by.get(grantee, {}).items():
                may[privilege] = may.get(privilege, False) or with_option
        surplus: Dict[Tuple[int, bool, bool], Set[str]] = defaultdict(set)
        for privilege, entries in held.items():
            explicit = privilege in wanted.absent
            keep = privilege in wanted.present or privilege in may
            if not explicit and (grantee == PUBLIC_OID or not (managed or keep)):
                continue
            keep_option = privilege in wanted.option or may.get(privilege, False)
            for entry in entries:
                if explicit or not keep:
                    surplus[entry.grantor, False, explicit].add(privilege)
                elif entry.grantable and not keep_option and (managed or privilege in wanted.present):
                    surplus[entry.grantor, True, False].add(privilege)
        for (grantor, option_only, explicit), privileges in sorted(surplus.items()):
            rules = wanted.behind(privileges)
            yield _Difference(grantee, frozenset(privileges), grantor, option_only, explicit, rules=rules)
