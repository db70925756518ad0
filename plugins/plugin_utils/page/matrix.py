# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The matrix of roles and schemas: who may do what where, and what of it comes and goes with the plan."""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ansible_collections.pg_access.reconcile.plugins.module_utils.explain.answers import EVERYTHING
from ansible_collections.pg_access.reconcile.plugins.module_utils.explain.matrix import EVERYWHERE, LATER, PARTLY, WHOLE
from ansible_collections.pg_access.reconcile.plugins.module_utils.privileges import KINDS, is_system_schema

from .model import Access, Cell
from .text import counted, escaped, more, named

#: PostgreSQL's own letters, as its ``\dp`` shows them.
LETTERS: Mapping[str, str] = {
    "SELECT": "r", "INSERT": "a", "UPDATE": "w", "DELETE": "d", "TRUNCATE": "D", "REFERENCES": "x", "TRIGGER": "t",
    "MAINTAIN": "m", "EXECUTE": "X", "USAGE": "U", "CREATE": "C", "CONNECT": "c", "TEMPORARY": "T", "SET": "s",
    "ALTER SYSTEM": "A",
}  # fmt: skip

#: The most roles, the most schemas of one table (what a wide screen and a sheet of paper have room for), and of tables.
MOST_ROLES, COLUMNS, MOST_TABLES = 300, 10, 20


class Both(NamedTuple):
    """A cell before and after the plan."""

    before: Cell
    after: Cell


Cells = Mapping[str, Mapping[str, Both]]


def _both(before: Mapping[str, Mapping[str, Cell]], after: Mapping[str, Mapping[str, Cell]]) -> Cells:
    """The cells in which there is something before the plan or after it."""
    found: Dict[str, Dict[str, Both]] = {}
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name, {}), after.get(name, {})
        found[name] = {schema: Both(old.get(schema, {}), new.get(schema, {})) for schema in dict.fromkeys((*old, *new))}
    return found


def matrix(access: Access, ident: str, links: Mapping[str, str]) -> str:
    """The section's content. ``ident`` begins the ids in it; ``links``: where each role is told of."""
    cells = _both(access.cells(before=True), access.cells())
    roles = [role["name"] for role in access.roles if role["name"] in cells]
    if not roles:
        return '<p class="soft">Nobody has a privilege here but PostgreSQL\'s own roles.</p>'
    found = {schema for places in cells.values() for schema in places}
    schemas = sorted(found, key=lambda name: (name != EVERYWHERE, is_system_schema(name), name))
    parts = [_legend(cells)]
    tables = [schemas[start : start + COLUMNS] for start in range(0, len(schemas), COLUMNS)]
    for number, columns in enumerate(tables[:MOST_TABLES]):
        shown = [name for name in roles if not set(columns).isdisjoint(cells[name])]
        label = f"Access matrix, {_span(columns)}" if len(tables) > 1 else "Access matrix"
        table = _table(columns, shown[:MOST_ROLES], cells, label, links)
        table += more(len(shown) - MOST_ROLES, "role")
        if len(tables) > 1:
            opened = " open" if number == 0 else ""
            count = counted(len(columns), "column")
            words = f'{escaped(_span(columns))} <span class="soft">({count})</span>'
            table = f'<details{opened} id="{ident}-m{number}"><summary>{words}</summary>{table}</details>'
        parts.append(table)
    parts.append(more(sum(len(columns) for columns in tables[MOST_TABLES:]), "schema"))
    return "\n".join(part for part in parts if part)


def _span(columns: Sequence[str]) -> str:
    names = [_heading(name) for name in columns]
    return f"{names[0]} to {names[-1]}" if len(names) > 1 else names[0]


def _heading(schema: str) -> str:
    return "outside schemas" if schema == EVERYWHERE else schema


def _table(columns: Sequence[str], roles: Sequence[str], cells: Cells, label: str, links: Mapping[str, str]) -> str:
    head = "".join(f'<th scope="col">{named(name) if name != EVERYWHERE else _heading(name)}</th>' for name in columns)
    lines = [
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(label)}"><table class="matrix">',
        f'<thead><tr><th scope="col">role</th>{head}</tr></thead><tbody>',
    ]
    for name in roles:
        places = cells[name]
        row = "".join(f"<td>{_cell(places[schema])}</td>" if schema in places else "<td></td>" for schema in columns)
        link = f'<a href="#{links[name]}">{named(name)}</a>'
        lines.append(f'<tr data-name="{escaped(name.lower())}"><th scope="row">{link}</th>{row}</tr>')
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _cell(cell: Both) -> str:
    order = (EVERYTHING, *KINDS)
    kinds = sorted({**cell.before, **cell.after}, key=lambda kind: order.index(kind) if kind in order else len(order))
    return "".join(
        f"<span>{'everything' if kind == EVERYTHING else escaped(kind.replace('_', ' '))}"
        f' <span class="letters">{_letters(cell.before.get(kind, {}), cell.after.get(kind, {}))}</span></span>'
        for kind in kinds
    )


def _letters(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """The privileges on one kind of objects: those that stay, those that come, and those that go."""
    texts: List[str] = []
    words = [word for word in (*LETTERS, *after, *before) if word in before or word in after]
    for reach, around in ((WHOLE, "{}"), (PARTLY, "({})"), (LATER, "[{}]")):
        sorts: Tuple[List[str], List[str], List[str]] = ([], [], [])
        for word in dict.fromkeys(words):
            there = (before.get(word) == reach, after.get(word) == reach)
            if any(there):
                sorts[0 if all(there) else 1 if there[1] else 2].append(LETTERS.get(word, escaped(word)))
        for letters, mark in zip(sorts, ("{}", "<ins>{}</ins>", "<del>{}</del>")):
            if letters:
                texts.append(mark.format(around.format("".join(letters))))
    return " ".join(texts)


def _legend(cells: Cells) -> str:
    every = [cell for places in cells.values() for cell in places.values()]
    used = {word for cell in every for side in cell for words in side.values() for word in words}
    letters = ", ".join(
        f'<span class="letters">{letter}</span> {word}' for word, letter in LETTERS.items() if word in used
    )
    marks = ""
    if any(cell.before != cell.after for cell in every):
        marks = (
            ' <ins class="letters">r</ins>, underlined, comes with the plan, and <del class="letters">r</del>, struck'
            " through, goes with it."
        )
    return (
        f'<p class="small">{letters}. <span class="letters">r</span> is on all objects of the kind,'
        ' <span class="letters">(r)</span> on some, and <span class="letters">[r]</span> needs SET ROLE before.'
        f"{marks} What PUBLIC has everybody has; it stands in its own row only.</p>"
    )
