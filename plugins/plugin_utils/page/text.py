# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Texts for a page: escaped, and with nothing in a name that could hide or turn what stands beside it."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Sequence

#: What has no shape of its own: control characters, and marks that change the direction of text.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]|[\ud800-\udfff]"
)

#: As wide as a plus.
MINUS = "\u2212"


def visible(text: object) -> str:
    """A text in which every character shows."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found.group()):04x}", str(text))


def escaped(text: object) -> str:
    """A text inside an element or a quoted attribute."""
    return html.escape(visible(text), quote=True)


def named(name: object) -> str:
    """A name inside an element. Its direction is its own, and does not turn what follows."""
    return f"<bdi>{escaped(name)}</bdi>"


def code(text: object) -> str:
    """A statement, with its lines."""
    lines = str(text).split("\n")
    return f"<code>{html.escape(chr(10).join(map(visible, lines)), quote=True)}</code>"


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: ``1 role``, ``1,200 roles``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def few(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many more there are, escaped."""
    rest = len(names) - most
    return ", ".join(map(named, names[:most])) + (f" and {rest:,} more" if rest > 0 else "")


def cut(text: str, room: float) -> str:
    """A text that fits a place of this width, in the size of its letters. Names that are alike often differ at the end
    only, so the middle is left out.
    """
    shown = visible(text)
    widths = [_width(character) for character in shown]
    if sum(widths) <= room:
        return shown
    left = room - _width("…")
    head, tail = 0, len(shown)
    while True:
        # Three from the beginning for two from the end.
        at_end = (len(shown) - tail) * 3 < head * 2
        width = widths[tail - 1] if at_end else widths[head]
        if width > left:
            break
        left -= width
        head, tail = (head, tail - 1) if at_end else (head + 1, tail)
    # A mark belongs to what stands before it.
    while head < tail and not widths[head]:
        head += 1
    while tail < len(shown) and not widths[tail]:
        tail += 1
    return f"{shown[:head]}…{shown[tail:]}"


#: Widths in a bold font that runs wide, so that a text fits in any other.
_NARROW, _WIDE = frozenset("iIjl.,:;'|!()[]{} "), frozenset("mwMW@%&…")


def _width(character: str) -> float:
    if unicodedata.combining(character) or character in "\u200c\u200d\ufe0e\ufe0f":
        return 0
    if character in _NARROW:
        return 0.46
    if character in _WIDE or unicodedata.category(character) == "So":
        return 1.15
    if unicodedata.east_asian_width(character) in "WF":
        return 1.1
    if character > "\u024f":
        return 1.15
    return 0.92 if character.isupper() else 0.74


def more(rest: int, noun: str, where: str = "") -> str:
    """What is said where a list ends early; nothing where it does not."""
    return f'<p class="more">and {counted(rest, noun)} more{where}</p>' if rest > 0 else ""
