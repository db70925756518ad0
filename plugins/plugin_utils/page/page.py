# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The page: what runs of the module have written about databases, as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Dict, List, Mapping, Sequence, Tuple, Union

from . import sections
from .graph import MOST_NODES, picture
from .look import SCRIPT, STYLE
from .matrix import matrix
from .model import Access, Item, Unreadable, affected
from .text import MINUS, counted, escaped, more, named

#: What a browser may do for the page: show this style, run this script, and nothing else; no request leaves it.
_POLICY = "default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'"


def page(
    reports: Union[str, Sequence[str]], title: str = "Access to PostgreSQL databases", notes: Sequence[str] = ()
) -> str:
    """The page for the texts of one or several files that ``report_file`` has written, in this order. ``notes`` stand
    at its beginning.

    The same texts make the same page. Raises Unreadable.
    """
    accesses = [_read(text) for text in ([reports] if isinstance(reports, str) else reports)]
    if not accesses:
        raise Unreadable("there is no report")
    policy = _POLICY.format(style=_hashed(STYLE), script=_hashed(SCRIPT))
    body = "\n".join(_database(access, f"d{number}") for number, access in enumerate(accesses))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>{escaped(title)}: {escaped(", ".join(access.database for access in accesses[:5]))}</title>
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#d0">Skip to the first database</a>
<header>
<h1>{escaped(title)}</h1>
{_notes(notes, "What is missing")}{_contents(accesses)}
</header>
<form class="filter" role="search" hidden>
<label for="filter">Only roles with</label>
<input type="search" id="filter" placeholder="part of a role's name" autocomplete="off" spellcheck="false">
<span id="filtered" class="soft" role="status"></span>
</form>
<main>
{body}
</main>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _read(text: str) -> Access:
    try:
        return Access(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable("this is no file that report_file has written") from None


def _hashed(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"


_PARTS: Sequence[Tuple[str, str]] = (
    ("c", "Who gains and who loses"),
    ("p", "Plan"),
    ("g", "Roles and groups"),
    ("m", "Access matrix"),
    ("b", "Backlog"),
    ("w", "Left as it is"),
    ("r", "Why each role has what it has"),
)


def _contents(accesses: Sequence[Access]) -> str:
    if len(accesses) == 1:
        return ""
    items = "".join(
        f'<li><a href="#d{number}">{named(access.database)}</a> <span class="soft small">{_told(access)}</span></li>'
        for number, access in enumerate(accesses)
    )
    return f'<nav aria-label="Databases"><ul>{items}</ul></nav>'


def _told(access: Access) -> str:
    count = int(access.data["counts"]["statements"])
    return counted(count, "statement") if count else "nothing to do"


def _database(access: Access, ident: str) -> str:
    data = access.data
    links = {role["name"]: f"{ident}-r{number}" for number, role in enumerate(access.roles)}
    drawn = picture(access, f"{ident}-graph", links)
    done = "Made in check mode: nothing was changed." if data["check_mode"] else "The plan below was carried out."
    if not data["counts"]["statements"]:
        done = "There was nothing to do."
    where = (
        f"{escaped(data['where'])} · PostgreSQL {escaped(data['server']['version'])} · as"
        f" {named(data['server']['executor'])} · mode {escaped(data['options']['mode'])}"
    )
    contents: Dict[str, str] = {
        "c": sections.changes(access, links),
        "g": _graph(access, drawn.svg, drawn.left_out, links, len(drawn.nodes)),
        "m": matrix(access, ident, links),
        "p": sections.plan(access),
        "b": sections.backlog(access, links),
        "w": sections.withheld(access, links),
        "r": sections.roles(access, links) + more(access.left_out("held"), "privilege"),
    }
    nav = "".join(f'<li><a href="#{ident}-{key}">{words}</a></li>' for key, words in _PARTS)
    parts = "\n".join(
        f'<section aria-labelledby="{ident}-{key}"><h3 id="{ident}-{key}">{words}</h3>\n{contents[key]}\n</section>'
        for key, words in _PARTS
    )
    return (
        f'<section id="{ident}" aria-labelledby="{ident}-h"><h2 id="{ident}-h">{named(access.database)}</h2>\n'
        f'<p class="soft small">{where}</p>\n<p>{done}</p>\n{_tiles(access)}\n{_warnings(data)}'
        f'<nav aria-label="Parts of {escaped(access.database)}"><ul>{nav}</ul></nav>\n{parts}\n</section>'
    )


def _tiles(access: Access) -> str:
    data = access.data
    touched = list(affected(access))
    numbers: List[Tuple[int, str, str]] = [
        (int(data["counts"]["statements"]), "statement", "statements"),
        (sum(gains for _name, gains, _loses in touched), "role gains", "roles gain"),
        (sum(loses for _name, _gains, loses in touched), "role loses", "roles lose"),
        (sum(data["backlog"].values()), "undeclared privilege kept", "undeclared privileges kept"),
        (int(data["counts"]["withheld"]), "other difference left", "other differences left"),
        (len(access.roles) - any(role["name"] == "PUBLIC" for role in access.roles), "role", "roles"),
    ]
    items = "".join(f"<li><b>{number:,}</b> {one if number == 1 else many}</li>" for number, one, many in numbers)
    return f'<ul class="tiles">{items}</ul>'


def _warnings(data: Item) -> str:
    """The run's warnings, without the address that each begins with."""
    start = f"{data['where']}: "
    warnings = [text[len(start) :] if text.startswith(start) else text for text in data["warnings"]]
    return _notes(warnings, "Warnings")


def _notes(texts: Sequence[str], label: str) -> str:
    if not texts:
        return ""
    shown = "".join(f"<li>{escaped(text)}</li>" for text in texts[:20])
    rest = f"<li>and {len(texts) - 20} more</li>" if len(texts) > 20 else ""
    return f'<ul class="notes" aria-label="{label}">{shown}{rest}</ul>\n'


def _graph(access: Access, svg: str, left_out: int, links: Mapping[str, str], places: int) -> str:
    edges = access.edges()
    alone = len(access.roles) - len({name for edge in edges for name in (edge.group, edge.member)})
    apart = f'<p class="small soft">{counted(alone, "role")} with no membership.</p>'
    if not svg:
        return '<p class="soft">No role is a member of another.</p>'
    words = "Groups on the left. A line that is drawn through: the member inherits what the group has; dashes: only"
    words += f" after SET ROLE; dots: neither. Green with + is new, red with {MINUS} goes."
    if len({name for edge in edges for name in (edge.group, edge.member)}) > MOST_NODES:
        words += f" Roles that are alike share one of the {places} places."
    return (
        f'<p class="small">{words}</p><div class="scroll" tabindex="0" role="region" aria-label="Graph of roles">'
        f"{svg}</div>{more(left_out, 'role', ' that this picture has no room for')}"
        f"{more(access.left_out('memberships'), 'option of memberships', ' that the data have no room for')}{apart}"
        f"{sections.memberships(edges, links)}"
    )
