# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Grant rules bound to what exists: names become OIDs, ALL becomes the server's privileges, routines are resolved."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Dict, FrozenSet, Iterable, List, Mapping, Optional, Set, Tuple

from ..policy import Policy, Rule
from ..privileges import ALL, KINDS, PUBLIC, PUBLIC_OID
from ..problems import Problem
from ..signatures import split_signature
from ..state import Group, Object, State

#: A wildcard's place: kind and schema.
Place = Tuple[str, str]
#: A named object: kind, schema or None, and its name or, for a routine, its OID.
Name = Tuple[str, Optional[str], object]


#: One identifier, perhaps with brackets or a modifier; several words can only be PostgreSQL's own types.
_UNQUALIFIED = re.compile(r'"(?:[^"]|"")*"(?:\[\d*\])*|[^". ]+')


@dataclass
class Wanted:
    """What rules say about one grantee: privileges to be there, and privileges to be gone."""

    present: Set[str] = field(default_factory=set)
    absent: Set[str] = field(default_factory=set)

    def over(self, weaker: Wanted) -> Wanted:
        """This one's rules, with the weaker ones where this says nothing: a named rule beats a wildcard."""
        return Wanted(
            self.present | (weaker.present - self.absent),
            self.absent | (weaker.absent - self.present),
        )


Grantees = Dict[int, Wanted]


@dataclass(frozen=True)
class BoundRules:
    """Rules by what they are about. ``managed``: objects outside schemas that a present rule for a role names."""

    wildcards: Mapping[Place, Grantees]
    named: Mapping[Name, Grantees]
    names_in: Mapping[Place, FrozenSet[object]]
    managed: FrozenSet[Name]


@dataclass(frozen=True)
class Routines:
    """What the server says about the routines that rules name: input types of each, and the OID of each type's text."""

    arguments: Mapping[int, Tuple[int, ...]] = field(default_factory=dict)
    types: Mapping[str, Optional[int]] = field(default_factory=dict)


def privileges_of(rule_privileges: FrozenSet[str], kind: str, version: int) -> FrozenSet[str]:
    """What a rule's privileges mean on this server."""
    return KINDS[kind].privileges_on(version) if ALL in rule_privileges else rule_privileges


def too_new(privileges: FrozenSet[str], kind: str, version: int, source: str) -> Optional[Problem]:
    """A problem where the server's version does not have one of these privileges."""
    late = sorted(p for p in privileges - {ALL} if KINDS[kind].privileges.get(p, 0) > version)
    if not late:
        return None
    since = KINDS[kind].privileges[late[0]]
    return Problem(
        path=f"{source}.privileges",
        message=f"{late[0]} needs PostgreSQL {since}; this server is {version}",
        hint="Leave it out, or write ALL, which means what the server has.",
        code="unsupported_version",
    )


def bind(policy: Policy, state: State, groups: Iterable[Group], routines: Routines) -> Tuple[BoundRules, List[Problem]]:
    """The rules bound to a state, and a problem for each one that names what is not there."""
    version = state.server.version
    problems: List[Problem] = []
    wildcards: Dict[Place, Grantees] = defaultdict(dict)
    named: Dict[Name, Grantees] = defaultdict(dict)
    managed: Set[Name] = set()
    inventory = _Inventory(state, groups, {(r.kind, r.schema) for r in policy.rules if r.name != "*"})
    sources: Dict[Tuple[Name, int, str], Tuple[bool, str]] = {}
    for rule in policy.rules:
        late = too_new(rule.privileges, rule.kind, version, rule.source)
        if late:
            problems.append(late)
            continue
        grantee = PUBLIC_OID if rule.role == PUBLIC else state.role_oid(rule.role)
        if grantee is None:
            continue  # reported with the missing roles
        privileges = privileges_of(rule.privileges, rule.kind, version)
        if rule.name == "*" and rule.schema is not None:
            if state.schema_named(rule.schema) is None:
                problems.append(_no_schema(rule, state))
            else:
                _add(wildcards[rule.kind, rule.schema], grantee, privileges, rule.present)
            continue
        name, problem = inventory.resolve(rule, routines)
        if name is None:
            problems.append(problem or _no_schema(rule, state))
            continue
        for privilege in privileges:
            known = sources.setdefault((name, grantee, privilege), (rule.present, rule.source))
            if known[0] != rule.present:
                problems.append(
                    Problem(
                        path=rule.source,
                        role=rule.role,
                        object=str(rule.name),
                        message=f"this contradicts {known[1]}: the same {rule.kind.replace('_', ' ')}, "
                        "once present and once absent",
                    )
                )
                break
        _add(named[name], grantee, privileges, rule.present)
        if rule.present and rule.role != PUBLIC:
            managed.add(name)
    names_in: Dict[Place, Set[object]] = defaultdict(set)
    for kind, schema, key in named:
        names_in[kind, schema or ""].add(key)
    return (
        BoundRules(
            wildcards, named, {place: frozenset(names) for place, names in names_in.items()}, frozenset(managed)
        ),
        problems,
    )


def _add(grantees: Grantees, grantee: int, privileges: FrozenSet[str], present: bool) -> None:
    wanted = grantees.setdefault(grantee, Wanted())
    (wanted.present if present else wanted.absent).update(privileges)


def _no_schema(rule: Rule, state: State) -> Problem:
    schema = rule.schema or str(rule.name)
    near = difflib.get_close_matches(schema, [s.name for s in state.schemas.values()], n=1)
    hint = f'Did you mean "{near[0]}"?' if near else "Create the schema, or declare it in schemas."
    return Problem(
        path=f"{rule.source}.object",
        role=rule.role,
        object=schema,
        message=f'schema "{schema}" does not exist',
        hint=hint,
        code="object_missing",
    )


class _Inventory:
    """The objects in the places that named rules speak of. Only those places are decoded."""

    def __init__(self, state: State, groups: Iterable[Group], places: Set[Tuple[str, Optional[str]]]) -> None:
        self._state = state
        self._objects: Dict[Tuple[str, str], Dict[str, List[Object]]] = defaultdict(lambda: defaultdict(list))
        schemas = {schema for kind, schema in places if KINDS[kind].in_schema}
        for group in groups:
            if group.column is not None or group.schema is None:
                continue
            schema = state.schemas[group.schema].name
            if schema in schemas:
                for item in group.members.objects():
                    self._objects[group.kind, schema][item.name].append(item)

    def resolve(self, rule: Rule, routines: Routines) -> Tuple[Optional[Name], Optional[Problem]]:
        """The rule's object, or what is wrong with its name."""
        if rule.kind == "database":
            name = self._state.server.database if rule.name is None else rule.name
            if any(database.name == name for database in self._state.databases.values()):
                return ("database", None, name), None
            return None, self._problem(rule, f'database "{name}" does not exist')
        if rule.kind == "schema":
            found = self._state.schema_named(str(rule.name))
            return (None, None) if found is None else (("schema", None, rule.name), None)
        schema = rule.schema or ""
        if self._state.schema_named(schema) is None:
            return None, None
        if rule.kind == "function":
            return self._routine(rule, schema, routines)
        if rule.name in self._objects[rule.kind, schema]:
            return (rule.kind, schema, rule.name), None
        return None, self._missing(rule, schema)

    def _problem(self, rule: Rule, message: str, hint: Optional[str] = None) -> Problem:
        label = f"{rule.schema}.{rule.name}" if rule.schema else str(rule.name)
        return Problem(
            path=f"{rule.source}.object.name",
            role=rule.role,
            object=label,
            message=message,
            hint=hint,
            code="object_missing",
        )

    def _missing(self, rule: Rule, schema: str) -> Problem:
        word = rule.kind.replace("_", " ")
        for (kind, place), names in self._objects.items():
            if place == schema and kind != "function" and rule.name in names:
                other = kind.replace("_", " ")
                article = "an" if other[0] in "aeiou" else "a"
                return self._problem(
                    rule,
                    f"{schema}.{rule.name} is {article} {other}, not a {word}",
                    f"Write type: {kind}.",
                )
        near = difflib.get_close_matches(str(rule.name), list(self._objects[rule.kind, schema]), n=1)
        return self._problem(
            rule,
            f"{word} {schema}.{rule.name} does not exist",
            f'Did you mean "{near[0]}"?' if near else None,
        )

    def _routine(self, rule: Rule, schema: str, routines: Routines) -> Tuple[Optional[Name], Optional[Problem]]:
        known = self._objects["function", schema]
        text = str(rule.name)
        bare = known.get(text, [])
        if len(bare) == 1:
            return ("function", schema, bare[0].oid), None
        if bare:
            listed = ", ".join(item.label for item in bare)
            return None, self._problem(rule, f"routine name {schema}.{text} is not unique", f"Write one of: {listed}.")
        same_name: List[Object] = []
        for name, arguments in split_signature(text):
            candidates = known.get(name, [])
            same_name = same_name or candidates
            oids = tuple(self._type(argument, schema, routines) for argument in arguments)
            for item in candidates:
                if routines.arguments.get(item.oid) == oids:
                    return ("function", schema, item.oid), None
        if same_name:
            listed = ", ".join(item.label for item in same_name)
            return None, self._problem(rule, f"routine {schema}.{text} does not exist", f"There is: {listed}.")
        near = difflib.get_close_matches(text.partition("(")[0], list(known), n=1)
        return None, self._problem(
            rule,
            f"routine {schema}.{text} does not exist",
            f"Did you mean {known[near[0]][0].label}?" if near else None,
        )

    @staticmethod
    def _type(text: str, schema: str, routines: Routines) -> Optional[int]:
        found = routines.types.get(text)
        return found if found is not None else routines.types.get(qualified(text, schema) or "")


def qualified(text: str, schema: str) -> Optional[str]:
    """A type's text as if it lay in the routine's own schema, which an unqualified name may mean. None where it is no
    such name.
    """
    if not _UNQUALIFIED.fullmatch(text):
        return None
    quoted = schema.replace('"', '""')
    return f'"{quoted}".{text}'
