# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The data of one database as a page needs them: what every role holds, and what reaches it through others."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ansible_collections.pg_access.reconcile.plugins.module_utils.explain.answers import (
    EVERYTHING,
    GAINED,
    LOST,
    OWNS,
    ROLE,
    UNCHANGED,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.explain.matrix import (
    EVERYWHERE,
    LATER,
    PARTLY,
    WHOLE,
    matrix_of,
)

#: The format of the data, as the module counts it.
FORMAT = 2

PUBLIC = "PUBLIC"

Item = Mapping[str, Any]
#: By kind and privilege, how far it reaches.
Cell = Dict[str, Dict[str, str]]

_RANK = {LATER: 0, PARTLY: 1, WHOLE: 2}


class Unreadable(ValueError):
    """The data are not what this version of the collection writes."""


class Way(NamedTuple):
    """How a role comes to what another one holds, which is the last of ``via``."""

    via: Tuple[str, ...]
    set_role: Optional[str]
    plan: str


class Edge(NamedTuple):
    """A membership: what it lets the member do, and what the plan does to it. ``changed``: the options that come or go
    while it stays, each with what the plan does. ``reasons``: what stands behind it and its options, and the rule.
    """

    group: str
    member: str
    options: Tuple[str, ...]
    plan: str
    changed: Mapping[str, str]
    reasons: Tuple[Tuple[str, Optional[str]], ...]


class Row(NamedTuple):
    """Privileges on objects that are alike. ``schemas``: the places that share the row, empty for what lies in none."""

    item: Item
    schemas: Tuple[str, ...]
    number: int
    plan: str


class Access:
    """One database. Raises Unreadable where the data are none."""

    def __init__(self, data: Any) -> None:
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise Unreadable("this is no file that report_file of this version of the collection has written")
        self.data: Mapping[str, Any] = data
        self.database: str = data["server"]["database"]
        self.roles: Sequence[Item] = data["roles"]
        self._edges: Sequence[Sequence[Any]] = data["memberships"]
        self.held: Dict[str, List[Item]] = defaultdict(list)
        self.memberships: Dict[str, List[Item]] = defaultdict(list)
        for item in data["held"]:
            place = self.memberships if item["object"]["type"] == ROLE else self.held
            place[item["role"]].append(item)
        self.ways: Dict[str, List[Way]] = defaultdict(list)
        for role, via, set_role, plan in data["ways"]:
            if via and self.held.get(via[-1]):
                self.ways[role].append(Way(tuple(via), set_role, plan))

    def left_out(self, name: str) -> int:
        """How many items of a list the file has no room for."""
        return int(self.data["counts"][name]) - len(self.data[name])

    def edges(self) -> List[Edge]:
        """The memberships, each once, by group and member."""
        found: Dict[Tuple[str, str], List[Tuple[str, str, Tuple[str, Optional[str]]]]] = defaultdict(list)
        for group, member, word, because, rule, plan in self._edges:
            found[group, member].append((word, plan, (because, rule)))
        edges = []
        for (group, member), told in sorted(found.items()):
            plans = {plan for _word, plan, _reason in told}
            whole = plans.pop() if len(plans) == 1 else UNCHANGED
            there = tuple(word for word, plan, _reason in told if plan != LOST or whole == LOST)
            changed = {word: plan for word, plan, _reason in told if plan != whole}
            edges.append(Edge(group, member, there, whole, changed, tuple(dict.fromkeys(item[2] for item in told))))
        return edges

    def reached(self) -> Mapping[str, Set[str]]:
        """By role, which roles have what it holds through it, once the plan is done."""
        found: Dict[str, Set[str]] = defaultdict(set)
        for role, ways in self.ways.items():
            for way in ways:
                if way.plan != LOST:
                    found[way.via[-1]].add(role)
        return found

    # ---- what a role has

    def own(self, role: str) -> List[Row]:
        """What a role holds itself."""
        return rows(self.held.get(role, ()))

    def through(self, way: Way) -> List[Row]:
        """What a way brings, with what the plan does to it."""
        found = []
        for row in rows(item for item in self.held.get(way.via[-1], ()) if item["object"]["type"] != EVERYTHING):
            plan = both(way.plan, row.plan)
            if plan is not None:
                found.append(row._replace(plan=plan))
        return found

    # ---- the matrix

    def _is_all(self, item: Item) -> bool:
        """Whether an item about one object is about all that there is of its kind in its place."""
        connected = item["object"]["type"] == "database" and self.database in item["objects"]
        return bool(item["only"]) or connected

    def cells(self, *, before: bool = False) -> Dict[str, Dict[str, Cell]]:
        """By role and schema what the role may there once the plan is done, or before it, beside what PUBLIC has."""
        never = GAINED if before else LOST
        singles = (
            {**(_whole(item) if self._is_all(item) else item), "privilege": privilege, "plan": UNCHANGED}
            for items in self.held.values()
            for item in items
            for privilege in item["privileges"]
            if item["plan"] != never
        )
        own: Dict[str, Dict[str, Cell]] = defaultdict(dict)
        for (role, schema), cell in matrix_of(singles).cells.items():
            own[role][schema] = {kind: dict(words) for kind, words in cell.items()}
        for role, schema, kind, privilege, moment in self.data["together"]:
            if before == (moment == "before"):
                own[role][schema][kind][privilege] = WHOLE
        found: Dict[str, Dict[str, Cell]] = {}
        for told in self.roles:
            name = told["name"]
            places: Dict[str, Cell] = {}
            _merge(places, own.get(name, {}), None)
            for way in self.ways.get(name, ()):
                if way.plan != never:
                    _merge(places, _handed_on(own.get(way.via[-1], {})), way.set_role)
            if places:
                found[name] = places
        return found


def _whole(item: Item) -> Item:
    """An item about the only object of its kind as one about all of them."""
    return {**item, "objects": [], "object": {**item["object"], "name": "*"}}


def _handed_on(places: Mapping[str, Cell]) -> Dict[str, Cell]:
    """What others have of it. Nobody inherits what a superuser may; who may become one has an item of its own."""
    kept = {schema: {kind: cell[kind] for kind in cell if kind != EVERYTHING} for schema, cell in places.items()}
    return {schema: cell for schema, cell in kept.items() if cell}


def _merge(places: Dict[str, Cell], more: Mapping[str, Cell], set_role: Optional[str]) -> None:
    for schema, kinds in more.items():
        cell = places.setdefault(schema, {})
        for kind, words in kinds.items():
            known = cell.setdefault(kind, {})
            for word, reach in words.items():
                far = LATER if set_role is not None else reach
                if word not in known or _RANK[far] > _RANK[known[word]]:
                    known[word] = far


def both(way: str, held: str) -> Optional[str]:
    """What the plan does to a privilege that is held at the end of a way; None where it never arrives."""
    before = way != GAINED and held != GAINED
    after = way != LOST and held != LOST
    if before and after:
        return UNCHANGED
    return GAINED if after else LOST if before else None


def rows(items: Iterable[Item]) -> List[Row]:
    """Items as rows: those about all objects of a kind in a schema are put together with the same of other schemas."""
    found: Dict[Tuple[Any, ...], List[Item]] = {}
    for number, item in enumerate(items):
        target = item["object"]
        whole = target["schema"] is not None and target["name"] == "*"
        told = (
            target["type"], tuple(item["privileges"]), item["grant_option"], item["how"], item["because"], item["rule"],
            item["plan"], item["set_role"], tuple(item["via"]),
        )  # fmt: skip
        found.setdefault((*told, -1 if whole else number), []).append(item)
    return [
        Row(
            alike[0],
            tuple(dict.fromkeys(item["object"]["schema"] for item in alike if item["object"]["schema"] is not None)),
            sum(item["count"] for item in alike),
            alike[0]["plan"],
        )
        for alike in found.values()
    ]


#: Something that a role can do: on which objects, the privilege, whether to grant it onward, whether after SET ROLE.
Can = Tuple[Any, ...]


def affected(access: Access) -> Iterator[Tuple[str, bool, bool]]:
    """The roles that gain or lose something by themselves or through groups: name, whether it gains, whether it loses.

    What a role can do as before, only by somebody else's grant or another way, is neither.
    """
    told = {item["role"]: (bool(item["gains"]), bool(item["loses"])) for item in access.data["affected"]}
    held = {name: [(_can(item), item["plan"]) for item in items] for name, items in access.held.items()}
    moved = {name for name, items in held.items() if any(plan != UNCHANGED for _can_do, plan in items)}
    for role in access.roles:
        name = role["name"]
        ways = access.ways.get(name, ())
        if not (
            name in told
            or name in moved
            or role["plan"] != UNCHANGED
            or any(item["plan"] != UNCHANGED for item in access.memberships.get(name, ()))
            or any(way.plan != UNCHANGED or way.via[-1] in moved for way in ways)
        ):
            continue
        before: Set[Can] = set()
        after: Set[Can] = set()
        has: List[Tuple[Sequence[Can], Optional[str]]] = [
            (_can(item), item["plan"]) for item in access.memberships.get(name, ())
        ]
        has += held.get(name, ())
        for way in ways:
            for can, plan in held[way.via[-1]]:
                has.append((can if way.set_role is None else [(*one[:-1], True) for one in can], both(way.plan, plan)))
        for what, plan in has:
            for found, never in ((before, GAINED), (after, LOST)):
                if plan is not None and plan != never:
                    found.update(what)
        gains, loses = told.get(name, (False, False))
        gains = gains or role["plan"] == GAINED or not after <= before
        loses = loses or role["plan"] == LOST or not before <= after
        if gains or loses:
            yield name, gains, loses


def _can(item: Item) -> List[Can]:
    """What an item stands for. Who may grant something onward has it, and who has it at once has it after SET ROLE."""
    target = item["object"]
    objects = (target["type"], target["schema"], target["name"], *item["objects"], *target["columns"])
    return [
        (objects, privilege, onward, later)
        for privilege in item["privileges"]
        for onward in ((False, True) if item["grant_option"] else (False,))
        for later in ((False, True) if item["set_role"] is None else (True,))
    ]


__all__ = ["EVERYWHERE", "OWNS", "Access", "Edge", "Row", "Unreadable", "Way", "affected", "rows"]
