# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Grant rules bound to what exists: names become OIDs, ALL becomes the server's privileges, routines are resolved."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from typing import AbstractSet, Dict, FrozenSet, Iterable, List, Mapping, Optional, Set, Tuple

from ..policy import Policy, Rule
from ..privileges import ALL, DEFAULT_COVERS, KINDS, PUBLIC, PUBLIC_OID
from ..problems import Problem
from ..records import dataclass, field
from ..signatures import split_signature
from ..state import Object, State

#: A wildcard's place: kind, schema, and the column that it is about, None for the objects themselves.
Place = Tuple[str, str, Optional[str]]
#: A named object: kind, schema or None, its name or, for a routine, its OID, and the column.
Name = Tuple[str, Optional[str], object, Optional[str]]


#: One identifier, perhaps with brackets or a modifier; several words can only be PostgreSQL's own types.
_UNQUALIFIED = re.compile(r'"(?:[^"]|"")*"(?:\[\d*\])*|[^". ]+')


@dataclass
class Wanted:
    """What rules say about one grantee: privileges to be there, those of them with grant option, those to be gone.

    ``rules``: by privilege, where the rules stand that speak of it.
    """

    present: Set[str] = field(default_factory=set)
    absent: Set[str] = field(default_factory=set)
    option: Set[str] = field(default_factory=set)
    rules: Dict[str, List[str]] = field(default_factory=dict, compare=False)

    def over(self, weaker: Wanted) -> Wanted:
        """This one's rules, with the weaker ones where this says nothing: a named rule beats a wildcard."""
        return Wanted(
            self.present | (weaker.present - self.absent),
            self.absent | (weaker.absent - self.present),
            self.option | (weaker.option - self.absent),
            {**weaker.rules, **self.rules},
        )

    def add(self, privileges: FrozenSet[str], source: str, *, present: bool, option: bool) -> None:
        """Add what one rule says."""
        (self.present if present else self.absent).update(privileges)
        if option:
            self.option.update(privileges)
        for privilege in privileges:
            self.rules.setdefault(privilege, []).append(source)

    def behind(self, privileges: Iterable[str]) -> Tuple[str, ...]:
        """The rules that speak of these privileges, each once."""
        return tuple(dict.fromkeys(rule for name in sorted(privileges) for rule in self.rules.get(name, ())))


Grantees = Dict[int, Wanted]


@dataclass(frozen=True)
class BoundRules:
    """Rules by what they are about. ``columns``: the columns that rules speak of, by kind and schema."""

    wildcards: Mapping[Place, Grantees]
    named: Mapping[Name, Grantees]
    names_in: Mapping[Place, FrozenSet[object]]
    columns: Mapping[Tuple[str, str], FrozenSet[str]]


@dataclass(frozen=True)
class Lookups:
    """What the server says about names in rules, read beside the state.

    ``arguments``: the input types of each routine of a named kind. ``types``: the OID of each type's text. ``columns``:
    the relations that have a column of this name. ``untrusted``: languages that take no grants.
    """

    arguments: Mapping[int, Tuple[int, ...]] = field(default_factory=dict)
    types: Mapping[str, Optional[int]] = field(default_factory=dict)
    columns: Mapping[str, FrozenSet[int]] = field(default_factory=dict)
    untrusted: AbstractSet[str] = frozenset()


def privileges_of(rule_privileges: FrozenSet[str], kind: str, version: int) -> FrozenSet[str]:
    """What a rule's privileges mean on this server."""
    return KINDS[kind].privileges_on(version) if ALL in rule_privileges else rule_privileges


def too_new(
    privileges: FrozenSet[str], kind: str, version: int, source: str, *, default: bool = False
) -> Optional[Problem]:
    """A problem where the server's version does not have the kind, or one of these privileges.

    ``default``: it is about default privileges, which some kinds have later than privileges.
    """
    since = KINDS[kind].default_since if default else KINDS[kind].since
    if since > version:
        what = "default privileges on " if default else "privileges on "
        return Problem(
            path=source,
            message=f"{what}{KINDS[kind].keyword.lower()}s need PostgreSQL {since}; this server is {version}",
            code="unsupported_version",
        )
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


def bind(policy: Policy, state: State, lookups: Lookups) -> Tuple[BoundRules, List[Problem]]:
    """The rules bound to a state, and a problem for each one that names what is not there."""
    version = state.server.version
    problems: List[Problem] = []
    wildcards: Dict[Place, Grantees] = defaultdict(dict)
    named: Dict[Name, Grantees] = defaultdict(dict)
    columns: Dict[Tuple[str, str], Set[str]] = defaultdict(set)
    inventory = _Inventory(policy, state, lookups)
    said: Dict[Tuple[Name, int, str], Tuple[bool, str]] = {}
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
                continue
            problems.extend(inventory.wildcard_columns(rule))
            for column in rule.columns or (None,):
                wanted = wildcards[rule.kind, rule.schema, column].setdefault(grantee, Wanted())
                wanted.add(privileges, rule.source, present=rule.present, option=rule.with_grant_option)
            columns[rule.kind, rule.schema].update(rule.columns)
            continue
        name, problem = inventory.resolve(rule)
        if name is None:
            problems.append(problem or _no_schema(rule, state))
            continue
        kind, schema, key = name
        columns[kind, schema or ""].update(rule.columns)
        for column in rule.columns or (None,):
            full = (kind, schema, key, column)
            contradiction = _contradiction(said, full, grantee, privileges, rule)
            if contradiction:
                problems.append(contradiction)
            named[full].setdefault(grantee, Wanted()).add(
                privileges, rule.source, present=rule.present, option=rule.with_grant_option
            )
    names_in: Dict[Place, Set[object]] = defaultdict(set)
    for kind, schema, key, column in named:
        names_in[kind, schema or "", column].add(key)
    return (
        BoundRules(
            wildcards,
            named,
            {place: frozenset(names) for place, names in names_in.items()},
            {place: frozenset(found) for place, found in columns.items() if found},
        ),
        # Several rules may come from one place of another tool's file.
        list(dict.fromkeys(problems)),
    )


def _contradiction(
    said: Dict[Tuple[Name, int, str], Tuple[bool, str]],
    name: Name,
    grantee: int,
    privileges: FrozenSet[str],
    rule: Rule,
) -> Optional[Problem]:
    """Two named rules that only turn out to be about the same routine once it is resolved."""
    for privilege in sorted(privileges):
        present, source = said.setdefault((name, grantee, privilege), (rule.present, rule.source))
        if present != rule.present:
            return Problem(
                path=rule.source,
                role=rule.role,
                object=str(rule.name),
                message=f"this contradicts {source}: the same {rule.kind.replace('_', ' ')}, "
                "once present and once absent",
            )
    return None


def _no_schema(rule: Rule, state: State) -> Problem:
    schema = rule.schema or str(rule.name)
    near = difflib.get_close_matches(schema, [s.name for s in state.schemas.values()], n=1)
    hint = f'Did you mean "{near[0]}"?' if near else "Create the schema, or declare it in schemas."
    return Problem(
        path=f"{rule.source}.object" if rule.place is None else f"{rule.source}.schema",
        role=rule.role,
        object=schema,
        message=f'schema "{schema}" does not exist',
        hint=hint,
        code="object_missing",
    )


#: A resolved object: kind, schema or None, and its name or, for a routine, its OID.
_Resolved = Tuple[str, Optional[str], object]


class _Inventory:
    """The objects in the places that named rules speak of. Only those places are decoded."""

    def __init__(self, policy: Policy, state: State, lookups: Lookups) -> None:
        self._state = state
        self._lookups = lookups
        self._objects: Dict[Tuple[str, str], Dict[str, List[Object]]] = defaultdict(lambda: defaultdict(list))
        schemas = {
            rule.schema for rule in policy.rules if KINDS[rule.kind].in_schema and (rule.name != "*" or rule.columns)
        }
        for group in (*state.groups, *state.named):
            if group.column is not None:
                continue
            schema = "" if group.schema is None else state.schemas[group.schema].name
            if group.schema is None or schema in schemas:
                for item in group.members.objects():
                    self._objects[group.kind, schema][item.name].append(item)

    def resolve(self, rule: Rule) -> Tuple[Optional[_Resolved], Optional[Problem]]:
        """The rule's object, or what is wrong with its name."""
        if rule.kind == "database":
            name = self._state.server.database if rule.name is None else rule.name
            if any(database.name == name for database in self._state.databases.values()):
                return ("database", None, name), None
            return None, self._problem(rule, f'database "{name}" does not exist')
        if rule.kind == "schema":
            found = self._state.schema_named(str(rule.name))
            return (None, None) if found is None else (("schema", None, rule.name), None)
        if not KINDS[rule.kind].in_schema:
            return self._outside(rule)
        schema = rule.schema or ""
        if self._state.schema_named(schema) is None:
            return None, None
        if rule.kind == "function":
            return self._routine(rule, schema)
        kinds = DEFAULT_COVERS[rule.kind] if rule.or_view else (rule.kind,)
        kind = next((kind for kind in kinds if str(rule.name) in self._objects[kind, schema]), rule.kind)
        here = self._objects[kind, schema].get(str(rule.name))
        if not here:
            return None, self._missing(rule, schema)
        absent = [c for c in rule.columns if here[0].oid not in self._lookups.columns.get(c, ())]
        if absent:
            label = f"{schema}.{rule.name}"
            return None, self._problem(rule, f"{label} has no column {', '.join(absent)}", where="columns")
        return (kind, schema, rule.name), None

    def wildcard_columns(self, rule: Rule) -> List[Problem]:
        """A column that none of the wildcard's relations has, where there are relations at all."""
        schema = rule.schema or ""
        relations = {item.oid for found in self._objects[rule.kind, schema].values() for item in found}
        absent = [c for c in rule.columns if relations and not relations & self._lookups.columns.get(c, frozenset())]
        if not absent:
            return []
        word = rule.kind.replace("_", " ")
        message = f"no {word} in schema {schema} has a column {', '.join(absent)}"
        return [self._problem(rule, message, where="columns")]

    def _outside(self, rule: Rule) -> Tuple[Optional[_Resolved], Optional[Problem]]:
        word = KINDS[rule.kind].keyword.lower()
        if rule.kind == "language" and rule.name in self._lookups.untrusted:
            return None, self._problem(rule, f"language {rule.name} is not trusted, so it takes no grants")
        if rule.name in self._objects[rule.kind, ""]:
            return (rule.kind, None, rule.name), None
        return None, self._problem(rule, f'{word} "{rule.name}" does not exist')

    def _problem(self, rule: Rule, message: str, hint: Optional[str] = None, *, where: str = "object.name") -> Problem:
        label = f"{rule.schema}.{rule.name}" if rule.schema else str(rule.name)
        return Problem(
            path=f"{rule.source}.{where}" if rule.place is None else rule.place,
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
                    f"Write type: {kind}." if rule.place is None else None,
                )
        near = difflib.get_close_matches(str(rule.name), list(self._objects[rule.kind, schema]), n=1)
        return self._problem(
            rule,
            f"{word} {schema}.{rule.name} does not exist",
            f'Did you mean "{near[0]}"?' if near else None,
        )

    def _routine(self, rule: Rule, schema: str) -> Tuple[Optional[_Resolved], Optional[Problem]]:
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
            oids = tuple(self._type(argument, schema) for argument in arguments)
            for item in candidates:
                if self._lookups.arguments.get(item.oid) == oids:
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

    def _type(self, text: str, schema: str) -> Optional[int]:
        found = self._lookups.types.get(text)
        return found if found is not None else self._lookups.types.get(qualified(text, schema) or "")


def qualified(text: str, schema: str) -> Optional[str]:
    """A type's text as if it lay in the routine's own schema, which an unqualified name may mean. None where it is no
    such name.
    """
    if not _UNQUALIFIED.fullmatch(text):
        return None
    quoted = schema.replace('"', '""')
    return f'"{quoted}".{text}'
