# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The matrix of roles and schemas: who may do what where, once the plan is done."""

from __future__ import annotations

from typing import List, Mapping, Sequence

from ansible_collections.pg_access.reconcile.plugins.module_utils.explain.matrix import EVERYWHERE, LATER, PARTLY, WHOLE

from .model import Access, Cell
from .text import counted, escaped, more, named

#: PostgreSQL's own letters, as its ``\dp`` shows them.
LETTERS: Mapping[str, str] = {
    "SELECT": "r", "INSERT": "a", "UPDATE": "w", "DELETE": "d", "TRUNCATE": "D", "REFERENCES": "x", "TRIGGER": "t",
    "MAINTAIN": "m", "EXECUTE": "X", "USAGE": "U", "CREATE": "C", "CONNECT": "c", "TEMPORARY": "T", "SET": "s",
    "ALTER SYSTEM": "A",
}  # fmt: skip

#: The most roles, the most schemas of one table, and the most tables.
MOST_ROLES, COLUMNS, MOST_TABLES = 300, 25, 8


def matrix(access: Access, ident: str, links: Mapping[str, str]) -> str:
    """The section's content. ``ident`` begins the ids in it; ``links``: where each role is told of."""
    cells = access.cells()
    roles = [role["name"] for role in access.roles if role["name"] in cells]
    if not roles:
        return '<p class="soft">Nobody has a privilege here but PostgreSQL\'s own roles.</p>'
    found = {schema for places in cells.values() for schema in places}
    schemas = sorted(found, key=lambda name: (name != EVERYWHERE, name))
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


def _table(
    columns: Sequence[str], roles: Sequence[str], cells: Mapping[str, Mapping[str, Cell]], label: str,
    links: Mapping[str, str],
) -> str:  # fmt: skip
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


def _cell(cell: Cell) -> str:
    return "".join(
        f"<span>{'everything' if kind == EVERYWHERE else escaped(kind.replace('_', ' '))}"
        f' <span class="letters">{_letters(words)}</span></span>'
        for kind, words in cell.items()
    )


def _letters(words: Mapping[str, str]) -> str:
    texts: List[str] = []
    for reach, around in ((WHOLE, "{}"), (PARTLY, "({})"), (LATER, "[{}]")):
        letters = "".join(LETTERS.get(word, escaped(word)) for word, how in words.items() if how == reach)
        if letters:
            texts.append(around.format(letters))
    return " ".join(texts)


def _legend(cells: Mapping[str, Mapping[str, Cell]]) -> str:
    used = {word for places in cells.values() for cell in places.values() for words in cell.values() for word in words}
    letters = ", ".join(
        f'<span class="letters">{letter}</span> {word}' for word, letter in LETTERS.items() if word in used
    )
    return (
        f'<p class="small">{letters}. <span class="letters">r</span> is on all objects of the kind,'
        ' <span class="letters">(r)</span> on some, and <span class="letters">[r]</span> needs SET ROLE before. What'
        " PUBLIC has everybody has; it stands in its own row only.</p>"
    )
