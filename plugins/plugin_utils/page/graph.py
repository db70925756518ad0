# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The graph of roles and groups as SVG: groups on the left, their members to the right of them.

The layout is layered (Sugiyama's way): each role stands one column right of its rightmost group, long edges go through
places of their own in the columns between, and the order in the columns follows the neighbours. The same input gives
the same picture.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ansible_collections.pg_access.reconcile.plugins.module_utils.explain.answers import GAINED, LOST, UNCHANGED

from .model import Access, Edge
from .text import MINUS, counted, cut, escaped

#: The most places of a picture that people can read. Beyond, roles that are alike share a place.
MOST_NODES = 100

#: Points.
WIDTH, HEIGHT, COLUMN_GAP, ROW_GAP, MARGIN, LANE, INSET = 220, 40, 96, 14, 16, 10, 10

_ROUNDS = 8
#: What a place has room for, in the size of the name's and the note's letters.
_NAME, _NOTE = (WIDTH - 2 * INSET) / 13, (WIDTH - 2 * INSET) / 11.5


class Node(NamedTuple):
    """A place of the picture. ``members`` are the roles that share it."""

    key: str
    label: str
    note: str
    members: Tuple[str, ...]
    sort: str
    plan: str


class Line(NamedTuple):
    """A line between two places, from the group to the member. ``number``: how many memberships it stands for."""

    group: str
    member: str
    reach: str
    plan: str
    number: int


class Picture(NamedTuple):
    """``svg`` is empty where no role is a member of another. ``left_out``: roles that no place was left for."""

    svg: str
    nodes: Tuple[Node, ...]
    lines: Tuple[Line, ...]
    left_out: int


def reach_of(edge: Edge) -> str:
    """What a membership gives its member, in a word: ``inherits``, ``set`` or ``none``."""
    if "INHERIT" in edge.options:
        return "inherits"
    return "set" if "SET" in edge.options else "none"


def picture(access: Access, ident: str, links: Mapping[str, str]) -> Picture:
    """The picture of a database's memberships. ``ident`` begins the ids in it; ``links``: where each role is told
    of.
    """
    edges = access.edges()
    nodes = _nodes(access, edges)
    place = {name: node.key for node in nodes for name in node.members}
    shown = nodes[:MOST_NODES] if len(nodes) <= MOST_NODES else _busiest(nodes, edges, place)
    kept = {node.key for node in shown}
    lines = _lines(edges, place, kept)
    left_out = sum(len(node.members) for node in nodes if node.key not in kept)
    if not shown:
        return Picture("", (), (), left_out)
    return Picture(_drawn(shown, lines, ident, links), tuple(shown), tuple(lines), left_out)


# ---- places ----------------------------------------------------------------------------------------------------------


def _nodes(access: Access, edges: Sequence[Edge]) -> List[Node]:
    """The roles that are in some membership. Too many are put together: those of a profile, then those with the same
    groups and members.
    """
    told: Dict[str, Mapping[str, Any]] = {role["name"]: role for role in access.roles}
    names = sorted({name for edge in edges for name in (edge.group, edge.member)})
    single = [_single(name, told.get(name, {})) for name in names]
    if len(single) <= MOST_NODES:
        return single
    by_profile: Dict[Tuple[str, str], List[str]] = defaultdict(list)
    for name in names:
        profile = told.get(name, {}).get("profile")
        by_profile[("profile", profile) if profile else ("role", name)].append(name)
    groups = [
        (f"profile {word}", found) if kind == "profile" and len(found) > 1 else ("", found)
        for (kind, word), found in sorted(by_profile.items())
    ]
    place = {name: number for number, (_word, found) in enumerate(groups) for name in found}
    beside: Dict[int, Set[Tuple[bool, int]]] = defaultdict(set)
    for edge in edges:
        beside[place[edge.member]].add((True, place[edge.group]))
        beside[place[edge.group]].add((False, place[edge.member]))
    shared: Dict[Any, Tuple[str, List[str]]] = {}
    for number, (word, found) in enumerate(groups):
        key = (word, number) if word else frozenset(beside[number])
        shared.setdefault(key, (word, []))[1].extend(found)
    return [
        _shared(found, word) if len(found) > 1 else _single(found[0], told.get(found[0], {}))
        for word, found in sorted(shared.values(), key=lambda item: item[1])
    ]


def _single(name: str, role: Mapping[str, Any]) -> Node:
    if role.get("profile"):
        note = f"{role['profile']} in {role['schema']}"
    elif "SUPERUSER" in role.get("attributes", ()):
        note = "superuser"
    elif "LOGIN" in role.get("attributes", ()):
        note = "login"
    else:
        note = "predefined" if name.startswith("pg_") else "group"
    return Node(f"r:{name}", name, note, (name,), name, role.get("plan", "unchanged"))


def _shared(names: Sequence[str], word: str) -> Node:
    label = word or f"{names[0]} and {len(names) - 1:,} more"
    note = counted(len(names), "role") + ("" if word else " that are alike")
    return Node(f"c:{names[0]}", label, note, tuple(names), names[0], "unchanged")


def _busiest(nodes: Sequence[Node], edges: Sequence[Edge], place: Mapping[str, str]) -> List[Node]:
    """What the plan does something about comes first, then what has most lines."""
    count: Counter[str] = Counter()
    moved: Set[str] = {node.key for node in nodes if node.plan != UNCHANGED}
    for edge in edges:
        ends = (place[edge.group], place[edge.member])
        count.update(ends)
        moved.update(ends if edge.plan != UNCHANGED else ())
    chosen = sorted(nodes, key=lambda node: (node.key not in moved, -count[node.key], node.sort))[:MOST_NODES]
    return sorted(chosen, key=lambda node: node.sort)


def _lines(edges: Iterable[Edge], place: Mapping[str, str], kept: Set[str]) -> List[Line]:
    found: Dict[Tuple[str, str, str, str], int] = defaultdict(int)
    for edge in edges:
        group, member = place[edge.group], place[edge.member]
        if group != member and group in kept and member in kept:
            found[group, member, reach_of(edge), edge.plan] += 1
    return [Line(*key, count) for key, count in sorted(found.items())]


# ---- layers ----------------------------------------------------------------------------------------------------------


def _layers(nodes: Sequence[Node], lines: Sequence[Line]) -> Dict[str, int]:
    """The column of each place. Places that are put together may form a ring; it is cut where it closes."""
    groups: Dict[str, List[str]] = defaultdict(list)
    for line in lines:
        if line.group not in groups[line.member]:
            groups[line.member].append(line.group)
    layer: Dict[str, int] = {}
    for node in nodes:
        pending = [(node.key, False)]
        open_: Set[str] = set()
        while pending:
            key, done = pending.pop()
            if done:
                open_.discard(key)
                layer[key] = max((layer[group] + 1 for group in groups[key] if group in layer), default=0)
            elif key not in layer and key not in open_:
                open_.add(key)
                pending.append((key, True))
                pending += [(group, False) for group in groups[key]]
    return layer


def _ordered(columns: List[List[str]], links: Sequence[Tuple[str, str]]) -> None:
    """Sort the columns so that lines cross less: by the mean place of the neighbours, from either side in turn."""
    left: Dict[str, List[str]] = defaultdict(list)
    right: Dict[str, List[str]] = defaultdict(list)
    for first, second in links:
        left[second].append(first)
        right[first].append(second)
    for number in range(_ROUNDS):
        forward = number % 2 == 0
        beside = left if forward else right
        order = range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1)
        for index in order:
            near = columns[index - 1 if forward else index + 1]
            rank = {key: position for position, key in enumerate(near)}
            own = {key: position for position, key in enumerate(columns[index])}

            def mean(key: str, rank: Mapping[str, int] = rank, own: Mapping[str, int] = own) -> Tuple[float, int]:
                found = [rank[other] for other in beside[key]]  # noqa: B023
                return (sum(found) / len(found) if found else float(own[key]), own[key])

            columns[index].sort(key=mean)


def _drawn(nodes: Sequence[Node], lines: Sequence[Line], ident: str, links: Mapping[str, str]) -> str:
    layer = _layers(nodes, lines)
    by_key = {node.key: node for node in nodes}
    columns: List[List[str]] = [[] for _column in range(max(layer.values()) + 1)]
    for node in nodes:
        columns[layer[node.key]].append(node.key)
    steps: List[Tuple[str, str]] = []
    courses: List[List[str]] = []
    for number, line in enumerate(lines):
        ends = (line.group, line.member)
        if layer[line.group] > layer[line.member]:
            ends = (line.member, line.group)
        course = [ends[0]]
        for column in range(layer[ends[0]] + 1, layer[ends[1]]):
            course.append(f"l:{number}:{column}")
            columns[column].append(course[-1])
        course.append(ends[1])
        courses.append(course)
        steps += list(zip(course, course[1:]))
    _ordered(columns, steps)
    at, height = _placed(columns, by_key, steps)
    width = 2 * MARGIN + len(columns) * WIDTH + (len(columns) - 1) * COLUMN_GAP
    parts = [
        f'<svg class="graph" xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="group" aria-labelledby="{ident}-t" aria-describedby="{ident}-s">',
        f'<title id="{ident}-t">Roles and the groups that they are members of</title>',
        f'<desc id="{ident}-s">{counted(len(nodes), "place")} and {counted(len(lines), "line")}. Groups stand on the'
        " left, their members to the right of them. The table of memberships below says the same.</desc>",
    ]
    numbers = {node.key: number for number, node in enumerate(nodes)}
    parts += [_line(line, course, at, by_key, numbers) for line, course in zip(lines, courses)]
    parts += [_box(node, at[node.key], links, numbers) for node in nodes]
    parts.append("</svg>")
    return "\n".join(parts)


def _placed(
    columns: Sequence[Sequence[str]], nodes: Mapping[str, Node], steps: Sequence[Tuple[str, str]]
) -> Tuple[Dict[str, Tuple[float, float]], int]:
    """The left middle of each place, and the height of all. Each place moves towards its neighbours as far as those
    above and below it leave room.
    """

    def size(key: str) -> int:
        return HEIGHT if key in nodes else LANE

    beside: Dict[str, List[str]] = defaultdict(list)
    for first, second in steps:
        beside[first].append(second)
        beside[second].append(first)
    total = max(sum(size(key) + ROW_GAP for key in column) for column in columns)
    middle: Dict[str, float] = {}
    for column in columns:
        top = (total - sum(size(key) + ROW_GAP for key in column)) / 2
        for key in column:
            middle[key] = top + size(key) / 2
            top += size(key) + ROW_GAP
    for _round in range(_ROUNDS):
        for column in columns:
            wanted = [
                sum(middle[n] for n in beside[key]) / len(beside[key]) if beside[key] else middle[key] for key in column
            ]
            for key, spot in zip(column, _apart(wanted, [size(key) for key in column])):
                middle[key] = spot
    top = min(middle[key] - size(key) / 2 for column in columns for key in column)
    at: Dict[str, Tuple[float, float]] = {}
    bottom = 0.0
    for index, column in enumerate(columns):
        for key in column:
            spot = round(middle[key] - top + MARGIN, 1)
            at[key] = (MARGIN + index * (WIDTH + COLUMN_GAP), spot)
            bottom = max(bottom, spot + size(key) / 2)
    return at, int(bottom + MARGIN + 0.5)


def _apart(wanted: Sequence[float], sizes: Sequence[float]) -> List[float]:
    """Places near to the wanted ones, in the same order, that do not touch: those that would are moved as one block."""
    blocks: List[Tuple[float, List[float]]] = []  # the place of the first, and the distances of the others from it
    for index, spot in enumerate(wanted):
        start, inside = spot, [0.0]
        while blocks:
            first, before = blocks[-1]
            step = (sizes[index - len(inside)] + sizes[index - len(inside) + 1]) / 2 + ROW_GAP
            if first + before[-1] + step <= start:
                break
            blocks.pop()
            shift = before[-1] + step
            count = len(before) + len(inside)
            start = (first * len(before) + (start - shift) * len(inside)) / count
            inside = [*before, *(shift + place for place in inside)]
        blocks.append((start, inside))
    return [first + place for first, inside in blocks for place in inside]


# ---- shapes ----------------------------------------------------------------------------------------------------------


def _line(
    line: Line, course: Sequence[str], at: Mapping[str, Tuple[float, float]], nodes: Mapping[str, Node],
    numbers: Mapping[str, int],
) -> str:  # fmt: skip
    """A line along its course. Through the columns between it goes level."""
    x, y = at[course[0]]
    path = [f"M{x + WIDTH:g} {y:g}"]
    x += WIDTH
    for key in course[1:]:
        to, level = at[key]
        half = (to - x) / 2
        path.append(f"C{x + half:g} {y:g} {to - half:g} {level:g} {to:g} {level:g}")
        x, y = to, level
        if key != course[-1]:
            x += WIDTH
            path.append(f"H{x:g}")
    words = {"inherits": "inherits", "set": "may SET ROLE", "none": "is a member"}[line.reach]
    told = f"{nodes[line.member].label} {words}: {nodes[line.group].label}"
    if line.number > 1:
        told += f" ({counted(line.number, 'membership')})"
    told += {GAINED: ", new", LOST: ", goes"}.get(line.plan, "")
    sign = ""
    if line.plan in (GAINED, LOST):
        to, level = at[course[-1]]
        sign = (
            f'<text class="sign {line.plan}" x="{to - 10:g}" y="{level - 4:g}" text-anchor="end">'
            f"{'+' if line.plan == GAINED else MINUS}</text>"
        )
    return (
        f'<g data-ends="{numbers[line.group]} {numbers[line.member]}"><title>{escaped(told)}</title>'
        f'<path class="{line.reach} {line.plan}" d="{"".join(path)}"/>{sign}</g>'
    )


def _box(node: Node, spot: Tuple[float, float], links: Mapping[str, str], numbers: Mapping[str, int]) -> str:
    """A place. Its words lie in a picture of their own, whose edge they cannot cross, whatever font a reader has."""
    x, y = spot
    sign = {GAINED: "+ ", LOST: f"{MINUS} "}.get(node.plan, "")
    listed = ", ".join(node.members[:20]) + (f" and {len(node.members) - 20:,} more" if len(node.members) > 20 else "")
    shape = (
        f"<title>{escaped(listed)}</title>"
        f'<rect class="{"many" if len(node.members) > 1 else "one"} {node.plan}" x="{x:g}" y="{y - HEIGHT / 2:g}"'
        f' width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        f'<svg x="{x + INSET:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH - INSET - 2}" height="{HEIGHT}">'
        f'<text class="name" y="{HEIGHT / 2 - 3:g}">{escaped(cut(sign + node.label, _NAME))}</text>'
        f'<text class="note" y="{HEIGHT / 2 + 13:g}">{escaped(cut(node.note, _NOTE))}</text></svg>'
    )
    names = "\n".join(escaped(name.lower()) for name in node.members)
    told = f'data-place="{numbers[node.key]}" data-names="{names}"'
    target = links.get(node.members[0]) if len(node.members) == 1 else None
    return f'<a href="#{escaped(target)}" {told}>{shape}</a>' if target else f"<g {told}>{shape}</g>"
