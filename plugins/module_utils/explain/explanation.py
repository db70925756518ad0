# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Why roles have what they have once a plan is done, in PostgreSQL's own terms (aclmask in acl.c).

A superuser may everything. Everybody else has what is granted to it, to the roles whose privileges it inherits, and to
PUBLIC, and what PostgreSQL's predefined roles bring. What only SET ROLE reaches is told as such. An owner counts by the
entries that it has, as PostgreSQL counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..authority.powers import Powers
from ..changes import Plan
from ..diff.retirements import Leaving
from ..diff.targets import Lookups
from ..outcome import Outcome
from ..policy import Policy
from ..privileges import ALL, KINDS, PUBLIC, PUBLIC_OID, is_system_schema
from ..problems import Problem
from ..state import PUBLIC_REF, Object, State
from ..undo.entries import Row
from ..undo.forward import Forward
from .answers import (
    BY_PUBLIC,
    DIRECT,
    EVERYTHING,
    GAINED,
    GROUP,
    LOST,
    OWNER,
    OWNS,
    PREDEFINED,
    ROLE,
    SUPERUSER,
    UNCHANGED,
    Answer,
    Explained,
)
from .reasons import Reason, Reasons
from .things import Thing, things
from .ways import WORDS, Way, Ways

_RELATIONS = ("table", "view", "materialized_view", "sequence")
_TABLES = ("table", "view", "materialized_view")

#: What predefined roles may everywhere, whatever ACLs say: privilege, kinds, and the first version that has it
#: (pg_class_aclmask_ext and object_aclmask_ext in aclchk.c). On a sequence UPDATE is what UPDATE on a table is.
EVERYWHERE: Mapping[str, Sequence[Tuple[str, Sequence[str]]]] = {
    "pg_read_all_data": (("SELECT", _RELATIONS), ("USAGE", ("schema",))),
    "pg_write_all_data": (
        ("INSERT", _TABLES),
        ("UPDATE", _RELATIONS),
        ("DELETE", _TABLES),
        ("USAGE", ("schema",)),
    ),
    "pg_maintain": (("MAINTAIN", _TABLES),),
}

_NO_OBJECT = Object(0, "")

#: The most memberships, and the most ways, that a survey makes answers of. A chain of groups has as many as its members
#: times its length.
MOST_TOLD = 60_000


class Asked(NamedTuple):
    """A role that is asked for: its OID before and after the plan, None where it is not there."""

    name: str
    before: Optional[int]
    after: Optional[int]


def asked_roles(names: Sequence[str], before: State, after: State, plan: Plan) -> Tuple[List[Asked], List[Problem]]:
    """The roles that are asked for, each once, and a problem for each that neither is there nor will be."""
    found: Dict[str, Asked] = {}
    problems: List[Problem] = []
    gone = Leaving.of(plan.changes).roles
    for number, name in enumerate(names):
        if name.lower() == PUBLIC:
            found[PUBLIC_REF.name] = Asked(PUBLIC_REF.name, PUBLIC_OID, PUBLIC_OID)
            continue
        old, new = before.role_oid(name), after.role_oid(name)
        if old is None and new is None:
            problems.append(
                Problem(
                    path=f"explain[{number}]",
                    role=name,
                    message=f'role "{name}" does not exist, and the plan does not create it',
                    hint="Correct the name, or leave it out.",
                    code="object_missing",
                )
            )
        else:
            found[name] = Asked(name, old, None if new in gone else new)
    return list(found.values()), problems


def explain(
    asked: Iterable[Asked],
    policy: Policy,
    before: State,
    after: State,
    plan: Plan,
    lookups: Lookups,
    powers: Optional[Powers],
) -> List[Explained]:
    """The answers for each role, in a stable order.

    ``before``: the state with everything that is to be explained. ``after``: that with the plan's roles and schemas;
    what lies in them is taken from ``before``. ``powers``: who may act as whom when the plan grants, None for a plan
    that nobody had to judge. Grows with the objects, once, and with what the asked roles have.
    """
    forward = Forward(after, powers or Powers(after))
    return _Explanation(policy, before, after, plan, lookups).of(asked, things(before, after, plan, forward))


def explanation(
    names: Sequence[str], policy: Policy, before: State, outcome: Outcome, lookups: Lookups
) -> Tuple[Tuple[Explained, ...], List[Problem]]:
    """The answers for the roles of these names, and a problem for each one that there is not. A plan that cannot be
    carried out is not explained.
    """
    plan, after = outcome.plan, outcome.after
    asked, problems = asked_roles(names, before, after, plan)
    if problems or outcome.problems:
        return (), problems
    return tuple(explain(asked, policy, before, after, plan, lookups, outcome.powers)), []


class WayThrough(NamedTuple):
    """A role that has what another one holds: by ``via``, which ends with that one, after SET ROLE ``set_role`` where
    that is needed. ``plan``: what the plan does to the way.
    """

    role: str
    via: Tuple[str, ...]
    set_role: Optional[str]
    plan: str


class Edge(NamedTuple):
    """What a membership lets its member do, in a word, whatever other ways there are to the group. Roles are names."""

    group: str
    member: str
    option: str
    because: str
    rule: Optional[str]
    plan: str


class Survey(NamedTuple):
    """All roles at once: what each holds by itself, its memberships, and the ways to what others hold. Put together
    that is what an explanation of each role says, but it does not grow with roles times privileges.

    ``after`` has the roles as the plan leaves them. ``held`` has what PUBLIC holds once, and ``ways`` no way to it:
    everybody has that. ``counts``: how many objects there are, by kind and schema. ``left_out``: how many of what is
    held and of the ways there are beyond the most, which are those that lead farthest.
    """

    roles: Tuple[Asked, ...]
    after: State
    held: Tuple[Explained, ...]
    ways: Tuple[WayThrough, ...]
    edges: Tuple[Edge, ...]
    counts: Mapping[Tuple[str, Optional[str]], int]
    left_out: Mapping[str, int] = {}


def survey(policy: Policy, before: State, outcome: Outcome, lookups: Lookups) -> Survey:
    """The access of all roles. Of PostgreSQL's predefined roles only those that somebody is a member of, or that hold
    something. Costs what the explanation of one role costs, and some time for each way and membership: with 10,000
    tables and 120 roles 0.3 s, after the 0.3 s that with_everything() takes.
    """
    plan, after = outcome.plan, outcome.after
    names = sorted({role.name for state in (before, after) for role in state.roles.values()})
    asked, _problems = asked_roles([PUBLIC, *names], before, after, plan)
    made = _Explanation(policy, before, after, plan, lookups)
    forward = Forward(after, outcome.powers or Powers(after))
    found = things(before, after, plan, forward)
    made.farthest = _farthest(len(path) for role in asked for path in made.groups_of(role).values())
    held = made.of(asked, found, alone=True)
    left_out = {"held": made.left_out}
    made.left_out = 0
    made.farthest = _farthest(len(way.path) for role in asked for way in made.reached_by(role).values())
    ways = [way for role in asked for way in made.ways_of(role)]
    left_out["ways"] = made.left_out
    used = {item.answer.role for item in held if item.answer.how != PREDEFINED} | {way.via[-1] for way in ways}
    roles = [role for role in asked if role.name in used or not role.name.startswith("pg_")]
    kept = {role.name for role in roles}
    edges = tuple(edge for role in asked for edge in made.edges_of(role))
    shown = tuple(item for item in held if item.answer.role in kept)
    return Survey(tuple(roles), after, shown, tuple(ways), edges, _counts(found), left_out)


def _farthest(lengths: Iterable[int]) -> int:
    """The longest way of which answers are made: as far as there are not too many, but at least one step."""
    counts = Counter(lengths)
    total = 0
    for length in sorted(counts):
        total += counts[length]
        if total > MOST_TOLD:
            return max(length - 1, 1)
    return max(counts, default=1)


class _Names(Dict[int, str]):
    """The names of roles, each looked up once: long ways name the same groups over and over."""

    def __init__(self, before: State, after: State) -> None:
        super().__init__()
        self._before, self._after = before, after

    def __missing__(self, oid: int) -> str:
        state = self._before if oid in self._before.roles else self._after
        name = self[oid] = state.ref(oid).name
        return name


class _Explanation:
    def __init__(self, policy: Policy, before: State, after: State, plan: Plan, lookups: Lookups) -> None:
        self._before = before
        self._after = after
        self._reasons = Reasons(policy, after, plan, lookups)
        self._old = Ways(before, Powers(before))
        self._new = Ways(after, Powers(after, plan.changes))
        self._found: Dict[Answer, List[Object]] = defaultdict(list)
        self._names = _Names(before, after)
        #: Answers about longer ways are only counted.
        self.farthest: Optional[int] = None
        self.left_out = 0

    def of(self, asked: Iterable[Asked], found: Sequence[Thing], *, alone: bool = False) -> List[Explained]:
        """``alone``: without what comes from other roles and PUBLIC."""
        roles = list(asked)
        ways = [
            (role, _alone(role.before), _alone(role.after))
            if alone
            else (role, self._old.of(role.before), self._new.of(role.after))
            for role in roles
        ]
        # By role, whose ways lead to it: no object is looked at once for each role.
        reached: Dict[int, List[int]] = defaultdict(list)
        for number, (role, old, new) in enumerate(ways):
            self._as_superuser(role)
            self._memberships(role)
            self._predefined(role, old, new)
            for oid in {**old, **new}:
                reached[oid].append(number)
        for thing in found:
            owners = (thing.owner, thing.heir)
            for number in sorted({number for oid in owners if oid is not None for number in reached.get(oid, ())}):
                self._ownership(thing, *ways[number])
            for column in sorted({*thing.before, *thing.after}, key=lambda name: (name is not None, name or "")):
                self._entries(thing, column, ways, reached)
        return self._in_order([role.name for role in roles], _counts(found))

    def ways_of(self, role: Asked) -> Iterator[WayThrough]:
        """The ways to what other roles hold, but PUBLIC."""
        old, new = self._old.of(role.before), self._new.of(role.after)
        found = [
            WayThrough(role.name, self._path(way), self._set_role(way), plan)
            for holder in {**old, **new}
            if holder not in (PUBLIC_OID, role.before, role.after)
            for way, plan in _sides(old.get(holder), new.get(holder))
            if self._is_near(way)
        ]
        return iter(sorted(found, key=lambda way: (way.set_role is not None, len(way.via), way.via, way.plan)))

    def groups_of(self, role: Asked) -> Mapping[Tuple[int, str], Tuple[int, ...]]:
        """The groups of a role after the plan, and the way to each."""
        return self._new.memberships(role.after)

    def reached_by(self, role: Asked) -> Mapping[int, Way]:
        """Whose privileges a role has after the plan, and the way to each."""
        return self._new.of(role.after)

    def _is_near(self, way: Way) -> bool:
        near = self.farthest is None or len(way.path) <= self.farthest
        self.left_out += not near
        return near

    def edges_of(self, role: Asked) -> Iterator[Edge]:
        """The memberships of a role, each option by itself, by the names of groups."""
        old, new = self._old.direct(role.before), self._new.direct(role.after)
        for name, group in sorted((self._name(group), group) for group in {*old, *new}):
            for word in WORDS:
                before, after = word in old.get(group, ()), word in new.get(group, ())
                if after:
                    reason = self._reasons.of_edge((group, role.after or 0))
                    yield Edge(name, role.name, word, *reason, UNCHANGED if before else GAINED)
                elif before:
                    reason = self._reasons.of_lost_edge([(group, role.before or 0)])
                    yield Edge(name, role.name, word, *reason, LOST)

    def _set_role(self, way: Way) -> Optional[str]:
        return None if way.set_role is None else self._name(way.set_role)

    # ---- what ACLs say

    def _entries(
        self,
        thing: Thing,
        column: Optional[str],
        ways: Sequence[Tuple[Asked, Mapping[int, Way], Mapping[int, Way]]],
        reached: Mapping[int, Sequence[int]],
    ) -> None:
        was, is_ = thing.before.get(column, {}), thing.after.get(column, {})
        by_grantee: Dict[int, List[Row]] = defaultdict(list)
        for row in sorted({*was, *is_}):
            by_grantee[row[0]].append(row)
        concerned = [ways[at] for at in sorted({at for grantee in by_grantee for at in reached.get(grantee, ())})]
        if not concerned:
            return
        for objects, grantees in self._reasons.parts(thing, column):
            for role, old, new in concerned:
                for holder in sorted(by_grantee.keys() & {**old, **new}.keys()):
                    for row in by_grantee[holder]:
                        since = old.get(holder) if row in was else None
                        until = new.get(holder) if row in is_ else None
                        for way, plan in _sides(since, until):
                            if plan == LOST:
                                edges = self._old.edges(role.before or 0, way.path)
                                reason = self._reasons.of_loss(row, thing, column, edges)
                            else:
                                reason = self._reasons.of_entry(row, thing, column, grantees)
                            lost = plan == LOST
                            owner = thing.owner if lost else thing.heir
                            option = (was if lost else is_)[row] or row[0] == owner
                            answer = self._answer(role, thing, column, row[1], way, holder, owner, reason, plan)
                            grantor = self._name(row[2])
                            self._found[answer._replace(grant_option=option, grantor=grantor)].extend(objects)

    def _answer(
        self,
        role: Asked,
        thing: Thing,
        column: Optional[str],
        privilege: str,
        way: Way,
        holder: int,
        owner: Optional[int],
        reason: Reason,
        plan: str,
    ) -> Answer:
        how = GROUP if way.path else DIRECT
        if holder == owner:
            how = OWNER
        elif holder == PUBLIC_OID:
            how = BY_PUBLIC
        return self._made(role, (thing.kind, thing.schema, column), privilege, way, how, reason, plan)

    def _made(
        self,
        role: Asked,
        place: Tuple[str, Optional[str], Optional[str]],
        privilege: str,
        way: Way,
        how: str,
        reason: Reason,
        plan: str,
    ) -> Answer:
        return Answer(
            role.name, *place, privilege, False, None, how, self._path(way), self._set_role(way), *reason, plan
        )

    def _name(self, oid: int) -> str:
        return self._names[oid]

    def _path(self, way: Way) -> Tuple[str, ...]:
        return tuple(map(self._names.__getitem__, way.path))

    def _ownership(self, thing: Thing, role: Asked, old: Mapping[int, Way], new: Mapping[int, Way]) -> None:
        since = old.get(thing.owner) if thing.owner is not None else None
        until = new.get(thing.heir) if thing.heir is not None else None
        same = thing.owner == thing.heir
        for way, plan in _sides(since, until) if same else [*_sides(since, None), *_sides(None, until)]:
            if plan == LOST:
                edges = self._old.edges(role.before or 0, way.path)
                reason = self._reasons.of_lost_ownership(thing, edges)
            else:
                reason = self._reasons.of_ownership(thing)
            place = (thing.kind, thing.schema, None)
            self._found[self._made(role, place, OWNS, way, OWNER, reason, plan)].extend(thing.objects)

    # ---- what no ACL says

    def _as_superuser(self, role: Asked) -> None:
        since, until = self._old.superuser(role.before), self._new.superuser(role.after)
        for way, plan in _sides(since, until):
            holder = self._name(way.path[-1]) if way.path else role.name
            reason = self._reasons.of_role(holder)
            self._add(self._made(role, (EVERYTHING, None, None), ALL, way, SUPERUSER, reason, plan))

    def _predefined(self, role: Asked, old: Mapping[int, Way], new: Mapping[int, Way]) -> None:
        version = self._after.server.version
        for name, rights in EVERYWHERE.items():
            oid = self._after.role_oid(name)
            if oid is None or PUBLIC_OID in (role.before, role.after):
                continue
            for way, plan in _sides(old.get(oid), new.get(oid)):
                before, after = role.before or 0, role.after or 0
                if plan == LOST:
                    reason = self._reasons.of_lost_edge(self._old.edges(before, way.path))
                else:
                    edge = self._new.last_edge(after, way.path) if way.path else None
                    reason = self._reasons.of_edge(edge) if edge else (PREDEFINED, None)
                for privilege, kinds in rights:
                    for kind in kinds:
                        if KINDS[kind].privileges.get(privilege, version + 1) <= version:
                            self._add(self._made(role, (kind, None, None), privilege, way, PREDEFINED, reason, plan))

    def _memberships(self, role: Asked) -> None:
        old, new = self._old.memberships(role.before), self._new.memberships(role.after)
        for group, word in sorted({**old, **new}):
            since, until = old.get((group, word)), new.get((group, word))
            sides = _sides(None if since is None else Way(since), None if until is None else Way(until))
            for way, plan in sides:
                if not self._is_near(way):
                    continue
                if plan == LOST:
                    reason = self._reasons.of_lost_edge(self._old.edges(role.before or 0, way.path))
                else:
                    reason = self._reasons.of_edge(self._new.last_edge(role.after or 0, way.path))
                how = GROUP if len(way.path) > 1 else DIRECT
                answer = self._made(role, (ROLE, None, None), word, way, how, reason, plan)
                # The group itself is the object.
                self._found[answer._replace(via=answer.via[:-1])].append(Object(group, self._name(group)))

    def _add(self, answer: Answer) -> None:
        self._found[answer].append(_NO_OBJECT)

    # ---- order

    def _in_order(self, names: Sequence[str], counts: Mapping[Tuple[str, Optional[str]], int]) -> List[Explained]:
        """Columns of the same objects are put together. Then by role, kind, schema, objects and privilege."""
        columns: Dict[Tuple[Answer, Tuple[Object, ...]], Set[str]] = defaultdict(set)
        for answer, objects in self._found.items():
            unique = tuple(sorted(set(objects), key=lambda item: (item.label, item.oid)))
            # What is on a relation is not put together with what is on columns of it.
            key = (answer if answer.column is None else answer._replace(column=""), unique)
            columns[key].update(() if answer.column is None else (answer.column,))
        rank = {name: number for number, name in enumerate(names)}
        kinds = {kind: number for number, kind in enumerate((EVERYTHING, ROLE, *KINDS))}
        result: List[Explained] = []
        for (answer, named), found in columns.items():
            everywhere = named == (_NO_OBJECT,)
            count = 0 if is_system_schema(answer.schema or "") else counts.get((answer.kind, answer.schema), 0)
            whole = everywhere or (answer.schema is not None and not found and 1 < len(named) == count)
            only = not everywhere and answer.schema is not None and not found and len(named) == count == 1
            shown = () if everywhere else named
            result.append(Explained(answer._replace(column=None), shown, tuple(sorted(found)), whole, only))
        result.sort(
            key=lambda item: (
                rank[item.answer.role],
                kinds[item.answer.kind],
                item.answer.schema or "",
                [one.label for one in item.objects],
                item.columns,
                _privilege_rank(item.answer),
                tuple(str(value or "") for value in item.answer),
            )
        )
        return result


def _counts(found: Sequence[Thing]) -> Mapping[Tuple[str, Optional[str]], int]:
    """How many objects there are, by kind and schema."""
    counts: Dict[Tuple[str, Optional[str]], int] = defaultdict(int)
    for thing in found:
        counts[thing.kind, thing.schema] += len(thing.objects)
    return counts


def _alone(role: Optional[int]) -> Mapping[int, Way]:
    return {} if role is None else {role: Way()}


def _privilege_rank(answer: Answer) -> int:
    words = list(KINDS[answer.kind].privileges) if answer.kind in KINDS else []
    return words.index(answer.privilege) if answer.privilege in words else len(words)


def _sides(since: Optional[Way], until: Optional[Way]) -> Iterator[Tuple[Way, str]]:
    """The ways to a privilege, and what the plan does to each: one that needs SET ROLE is another than one that does
    not.
    """
    if since is not None and until is not None and (since.set_role is None) == (until.set_role is None):
        yield until, UNCHANGED
        return
    if until is not None:
        yield until, GAINED
    if since is not None:
        yield since, LOST
