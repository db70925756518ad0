# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""For each role why it has what it has, and the plan, the backlog and what is left as it is, as HTML."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.pg_access.reconcile.plugins.module_utils.explain.answers import (
    ABSENT,
    BY_PUBLIC,
    DECLARED,
    EVERYTHING,
    GAINED,
    KEPT,
    LOST,
    MEMBERSHIP,
    OWNER,
    PERMITTED,
    PREDEFINED,
    RETIRED,
    ROLE,
    SUPERUSER,
    SURPLUS,
    UNMANAGED,
    WITHHELD,
)

from ..summary import words_of
from .model import PUBLIC, Access, Edge, Item, Row, Way, affected
from .text import MINUS, code, counted, escaped, few, more, named

#: The most rows: of what a role holds itself, of what one way brings, the ways, and the statements and items of a list.
OWN, BROUGHT, WAYS, STATEMENTS, ITEMS, AFFECTED = 60, 12, 12, 500, 100, 400

#: Statements that are shown at once; more of them are behind a click.
OPEN = 20

#: What stands behind a privilege, with the place in the manifest or the reason in its place.
_BEHIND: Mapping[str, str] = {
    DECLARED: "declared: {}",
    PERMITTED: "allowed by default privileges: {}",
    KEPT: "undeclared, kept by {}",
    WITHHELD: "undeclared, left alone: {}",
    OWNER: "belongs to the owner: {}",
    UNMANAGED: "the manifest does not speak of it",
    PREDEFINED: "what a predefined role of PostgreSQL brings",
    SURPLUS: "undeclared, and managed by {}",
    ABSENT: "taken away by {}",
    MEMBERSHIP: "the membership ends: {}",
    RETIRED: "the role is retired: {}",
}

_SIGNS = {GAINED: ("+", "new"), LOST: (MINUS, "goes")}

_TAKES = ("REVOKE", "DROP", "REASSIGN")


def tag(plan: str) -> str:
    """What the plan does about something, as a mark; nothing where it does nothing."""
    if plan not in _SIGNS:
        return ""
    sign, word = _SIGNS[plan]
    return f' <span class="tag {plan}">{sign} {word}</span>'


def behind(because: str, rule: Optional[str]) -> str:
    """What stands behind a privilege."""
    words = _BEHIND.get(because, because)
    if rule is None:
        return words.partition(":")[0].replace(" by {}", "").replace("{}", "").strip()
    shown = escaped(rule.replace("_", " ") if because == WITHHELD else rule)
    return words.format(f"<code>{shown}</code>") if "{}" in words else words


# ---- roles -----------------------------------------------------------------------------------------------------------


def roles(access: Access, links: Mapping[str, str]) -> str:
    """A part for every role, to be opened."""
    return "\n".join(_role(access, role, links) for role in access.roles)


def _role(access: Access, role: Item, links: Mapping[str, str]) -> str:
    name = role["name"]
    own, memberships, ways = access.own(name), access.memberships.get(name, []), access.ways.get(name, [])
    words = [f"<bdi>{escaped(name)}</bdi>{tag(role['plan'])}"]
    words += [f' <span class="tag">{escaped(word)}</span>' for word in role.get("attributes", ())]
    groups = len({item["objects"][0] for item in memberships if item["plan"] != LOST})
    held = sum(len(row.item["privileges"]) * max(row.number, 1) for row in own if row.plan != LOST)
    told = [counted(held, "privilege") + " of its own"] if held else []
    told += [counted(groups, "group")] if groups else []
    words.append(f' <span class="soft small">{", ".join(told) or "nothing"}</span>')
    body = [f"<p>{_origin(role, links)}</p>"]
    if role.get("comment"):
        body.append(f'<p class="soft">{escaped(role["comment"])}</p>')
    table = [*_memberships(memberships, links), *_own(own, name, links)]
    for way in ways[:WAYS]:
        table += _way(access, way, links)
    if table:
        body.append(
            f'<div class="scroll" tabindex="0" role="region" aria-label="What {escaped(name)} has">'
            '<table class="why"><thead><tr><th scope="col">on</th><th scope="col">privileges</th>'
            f'<th scope="col">why</th></tr></thead>{"".join(table)}</table></div>'
        )
    body.append(more(len(ways) - WAYS, "way", " to what other roles hold"))
    if name != PUBLIC and PUBLIC in links:
        body.append(f'<p class="small soft">And, as everybody, what <a href="#{links[PUBLIC]}">PUBLIC</a> has.</p>')
    inside = "".join(part for part in body if part)
    return (
        f'<details class="role" id="{links[name]}" data-name="{escaped(name.lower())}">'
        f"<summary>{''.join(words)}</summary>{inside}</details>"
    )


def _origin(role: Item, links: Mapping[str, str]) -> str:
    """What the manifest says of the role itself."""
    if role["name"] == PUBLIC:
        return "Everybody. What is granted to PUBLIC no role can be without."
    rule = f" (<code>{escaped(role['rule'])}</code>)" if role.get("rule") else ""
    if role.get("profile"):
        text = f"Generated from the profile {named(role['profile'])} for the schema {named(role['schema'])}{rule}."
    elif role.get("external"):
        text = f"Declared as external{rule}: only its memberships and privileges are looked after."
    elif rule:
        text = f"Declared{rule}."
    elif role["plan"] == LOST:
        text = "Dropped by the plan."
    else:
        text = "Not declared."
    return text + (" Its undeclared privileges are kept." if role.get("additive") else "")


def _body(title: str, lines: Sequence[str], rest: int, noun: str, where: str = "") -> List[str]:
    if not lines:
        return []
    last = f'<tr><td colspan="3" class="more">and {counted(rest, noun)} more{where}</td></tr>' if rest > 0 else ""
    return [f'<tbody><tr><th scope="rowgroup" colspan="3">{title}</th></tr>{"".join(lines)}{last}</tbody>']


def _own(own: Sequence[Row], name: str, links: Mapping[str, str]) -> List[str]:
    """What the role holds itself, by how it comes."""
    titles = {
        OWNER: "as owner",
        SUPERUSER: "as superuser",
        PREDEFINED: "as a predefined role",
        BY_PUBLIC: "everybody, through PUBLIC",
    }
    found: Dict[str, List[Row]] = {}
    for row in own:
        found.setdefault(titles.get(row.item["how"], "directly"), []).append(row)
    parts: List[str] = []
    for title, held in sorted(found.items(), key=lambda item: (item[0] != "directly", item[0])):
        parts += _body(title, [_line(row, links) for row in held[:OWN]], len(held) - OWN, "row")
    return parts


def _line(row: Row, links: Mapping[str, str]) -> str:
    item = row.item
    option = " with grant option" if item["grant_option"] and item["how"] not in (OWNER, SUPERUSER) else ""
    later = f" after SET ROLE {_linked(item['set_role'], links)}" if item["set_role"] else ""
    marked = f' class="{row.plan}"' if row.plan in _SIGNS else ""
    because = _TAKEN if row.plan == LOST and item["plan"] != LOST else behind(item["because"], item["rule"])
    return (
        f"<tr{marked}><td>{_target(row)}{tag(row.plan)}</td>"
        f"<td>{escaped(', '.join(item['privileges']))}{option}{later}</td><td>{because}</td></tr>"
    )


_TAKEN = "the way to it goes"


def _target(row: Row) -> str:
    """The objects of a row in words."""
    item = row.item
    target, names = item["object"], item["objects"]
    kind = target["type"].replace("_", " ")
    if target["type"] == EVERYTHING:
        return "everything"
    if target["schema"] is None and target["name"] == "*":
        return f"every {kind}"
    columns = f" ({few(target['columns'], 6)})" if target["columns"] else ""
    if target["name"] == "*" and row.schemas:
        if len(row.schemas) > 1:
            return f"all {counted(row.number, kind)} of {counted(len(row.schemas), 'schema')}: {few(row.schemas, 4)}"
        return f"all {counted(row.number, kind)} of {named(row.schemas[0])}"
    if row.number > 1 or len(names) > 1:
        listed = few(names)
        if len(names) < row.number:
            listed = ", ".join([*map(named, names), f"{row.number - len(names):,} more"])
        place = f" of {named(row.schemas[0])}" if row.schemas else ""
        return f"{counted(row.number, kind)}{place}: {listed}{columns}"
    name = names[0] if names else target["name"]
    place = f"{named(target['schema'])}." if target["schema"] else ""
    return f"{kind} {place}{named(name)}{columns}"


def _memberships(items: Sequence[Item], links: Mapping[str, str]) -> List[str]:
    """The groups of a role, with the way to those of its groups."""
    lines = []
    for item in sorted(items, key=lambda item: str(item["objects"][0])):
        way = f" through {_chain(item['via'], links)}" if item["via"] else ""
        marked = f' class="{item["plan"]}"' if item["plan"] in _SIGNS else ""
        lines.append(
            f"<tr{marked}><td>{_linked(item['objects'][0], links)}{way}{tag(item['plan'])}</td>"
            f"<td>{escaped(', '.join(item['privileges']))}</td><td>{behind(item['because'], item['rule'])}</td></tr>"
        )
    return _body("member of", lines[:OWN], len(lines) - OWN, "group")


def _way(access: Access, way: Way, links: Mapping[str, str]) -> List[str]:
    brought = access.through(way)
    later = f", after SET ROLE {_linked(way.set_role, links)}" if way.set_role else ""
    title = f"through {_chain(way.via, links)}{later}{tag(way.plan)}"
    rest = len(brought) - BROUGHT
    where = f", see {_linked(way.via[-1], links)}"
    return _body(title, [_line(row, links) for row in brought[:BROUGHT]], rest, "row", where)


def _chain(via: Iterable[str], links: Mapping[str, str]) -> str:
    return " → ".join(_linked(name, links) for name in via)


def _linked(name: str, links: Mapping[str, str]) -> str:
    return f'<a href="#{links[name]}">{named(name)}</a>' if name in links else named(name)


def memberships(edges: Sequence[Edge], links: Mapping[str, str]) -> str:
    """What the picture shows, as a table."""
    lines = []
    for edge in edges[: 5 * ITEMS]:
        marked = f' class="{edge.plan}"' if edge.plan in _SIGNS else ""
        words = dict.fromkeys((*edge.options, *edge.changed))
        options = ", ".join(f"{escaped(word)}{tag(edge.changed.get(word, ''))}" for word in words)
        why = "; ".join(behind(*reason) for reason in edge.reasons)
        lines.append(
            f'<tr{marked} data-name="{escaped(f"{edge.member} {edge.group}".lower())}">'
            f"<td>{_linked(edge.member, links)}{tag(edge.plan)}</td><td>{_linked(edge.group, links)}</td>"
            f"<td>{options}</td><td>{why}</td></tr>"
        )
    return (
        f"<details><summary>{counted(len(edges), 'membership')} as a table</summary>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Memberships"><table><thead><tr>'
        '<th scope="col">member</th><th scope="col">group</th><th scope="col">may</th><th scope="col">why</th>'
        f"</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
        f"{more(len(edges) - 5 * ITEMS, 'membership')}</details>"
    )


# ---- who gains and who loses


def changes(access: Access, links: Mapping[str, str]) -> str:
    """What the plan takes from each role and gives to it, those that lose first, and how many others that is about."""
    reached = access.reached()
    told = {item["role"] for item in access.data["affected"] if item["gains"] or item["loses"]}
    lines = []
    losers_first = sorted(access.data["affected"], key=lambda item: not item["loses"] and not item["dropped"])
    for item in losers_first:
        name = item["role"]
        loses, gains = (escaped(words_of(item[side])) for side in ("loses", "gains"))
        if item["dropped"]:
            loses = f'<span class="tag lost">{MINUS} dropped</span> {loses}'
        if item["created"]:
            gains = f'<span class="tag gained">+ created</span> {gains}'
        otherwise = [f"password {item['password']}"] if item["password"] else []
        otherwise += [f"altered: {', '.join(item['altered'])}"] if item["altered"] else []
        through = counted(len(reached[name]), "role") if name in reached else ""
        lines.append(
            f'<tr data-name="{escaped(name.lower())}"><th scope="row">{_linked(name, links)}</th><td>{loses}</td>'
            f"<td>{gains}</td><td>{escaped(', '.join(otherwise))}</td><td>{through}</td></tr>"
        )
    parts = []
    if lines:
        parts.append(
            '<div class="scroll" tabindex="0" role="region" aria-label="Who gains and who loses">'
            '<table class="changes"><thead><tr><th scope="col">role</th><th scope="col">loses</th>'
            '<th scope="col">gains</th><th scope="col">otherwise</th><th scope="col">and through it</th></tr></thead>'
            f"<tbody>{''.join(lines[:AFFECTED])}</tbody></table></div>{more(len(lines) - AFFECTED, 'role')}"
        )
    others = [one for one in affected(access) if one[0] not in told]
    for word, index in (("gains", 1), ("loses", 2)):
        names = [one[0] for one in others if one[index]]
        if names:
            listed = ", ".join(_linked(name, links) for name in names[:8])
            rest = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
            parts.append(f"<p>Through groups also {word if len(names) == 1 else word[:-1]}: {listed}{rest}.</p>")
    return "".join(parts) or '<p class="soft">Nobody gains or loses anything.</p>'


# ---- plan and backlog ------------------------------------------------------------------------------------------------


def plan(access: Access) -> str:
    """The statements in their order, with what stands behind each."""
    statements: Sequence[Tuple[str, Sequence[str]]] = access.data["statements"]
    if not statements:
        return '<p class="soft">Nothing is to be done: the database is as the manifest says.</p>'
    lines = []
    for text, reasons in statements[:STATEMENTS]:
        words = f'<div class="soft small">{escaped("; ".join(reasons))}</div>' if reasons else ""
        kind = ' class="lost"' if text.lstrip().upper().startswith(_TAKES) else ""
        lines.append(f"<li><span{kind}>{code(text)}</span>{words}</li>")
    count = int(access.data["counts"]["statements"])
    rest = more(count - len(lines), "statement", "; plan_file has all of them")
    shown = f'<ol class="plan">{"".join(lines)}</ol>{rest}'
    if count <= OPEN:
        return shown
    return f"<details><summary>{counted(count, 'statement')}</summary>{shown}</details>"


def backlog(access: Access, links: Mapping[str, str]) -> str:
    """What the override keeps, role by role."""
    counts: Mapping[str, int] = access.data["backlog"]
    if not counts:
        return '<p class="soft">No role keeps anything undeclared.</p>'
    items: Dict[str, List[Item]] = {}
    for item in access.data["kept"]:
        items.setdefault(item["role"], []).append(item)
    parts = []
    for name, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        rows = [
            f"<tr><td>{_described(item['object'])}</td><td>{escaped(', '.join(item['privileges']))}"
            f"{' (grant option)' if item['kind'] == 'grant_option' else ''}</td><td>{named(item['grantor'])}</td>"
            f"<td>{code(item['sql'])}</td></tr>"
            for item in items.get(name, [])
        ]
        head = ("on", "privileges", "granted by", "revoked by")
        title = f"{_linked(name, links)} keeps {counted(count, 'undeclared privilege')}"
        parts.append(_list(title, head, rows, f"What {name} keeps", name))
    return "".join(parts) + more(access.left_out("kept"), "item")


def withheld(access: Access, links: Mapping[str, str]) -> str:
    """What is different and left as it is, by reason."""
    items: Sequence[Item] = sorted(access.data["withheld"], key=lambda item: str(item["reason"]))
    if not items:
        return '<p class="soft">Nothing else is different.</p>'
    parts = []
    for reason, found in groupby(items, key=lambda item: str(item["reason"])):
        rows = [
            f'<tr data-name="{escaped(str(item.get("role") or "").lower())}">'
            f"<td>{_linked(item['role'], links) if item.get('role') else ''}</td>"
            f"<td>{escaped(item['change'].replace('_', ' '))}</td><td>{_described(item.get('object'))}</td>"
            f"<td>{escaped(', '.join(item.get('privileges') or ()))}</td><td>{code(item['sql'])}</td></tr>"
            for item in found
        ]
        head = ("role", "change", "on", "privileges", "would be done by")
        title = f'{escaped(reason.replace("_", " "))} <span class="soft">({counted(len(rows), "difference")})</span>'
        parts.append(_list(title, head, rows, f"Left as it is: {reason}"))
    return "".join(parts) + more(access.left_out("withheld"), "difference")


def _list(title: str, head: Sequence[str], rows: Sequence[str], label: str, role: str = "") -> str:
    """``role``: the one that all of it is about."""
    cells = "".join(f'<th scope="col">{word}</th>' for word in head)
    named_for = f' data-name="{escaped(role.lower())}"' if role else ""
    return (
        f'<details{named_for}><summary>{title}</summary><div class="scroll" tabindex="0" role="region"'
        f' aria-label="{escaped(label)}"><table><thead><tr>{cells}</tr></thead><tbody>{"".join(rows[:ITEMS])}'
        f"</tbody></table></div>{more(len(rows) - ITEMS, 'row')}</details>"
    )


def _described(target: Any) -> str:
    """An object as the result has it."""
    if not target:
        return ""
    kind = str(target.get("type") or "").replace("_", " ")
    schema, name, columns = target.get("schema"), target.get("name"), target.get("columns") or ()
    if name is None:
        return f"what becomes a {kind}" + (f" of {named(schema)}" if schema else "")
    place = f"{named(schema)}." if schema and target.get("type") != ROLE else ""
    return f"{kind} {place}{named(name)}" + (f" ({few(columns, 6)})" if columns else "")
