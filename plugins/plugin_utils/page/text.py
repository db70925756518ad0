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


def cut(text: str, longest: int) -> str:
    """A name that fits a place for this many characters of a usual width."""
    shown = visible(text)
    room = float(longest)
    for index, character in enumerate(shown):
        room -= _width(character)
        if room < (0 if index == len(shown) - 1 else 1):
            return f"{shown[:index]}…"
    return shown


def _width(character: str) -> float:
    if unicodedata.combining(character):
        return 0
    wide = character in "mwMW@%" or unicodedata.east_asian_width(character) in "WF"
    return 1.6 if wide else 1


def more(rest: int, noun: str, where: str = "") -> str:
    """What is said where a list ends early; nothing where it does not."""
    return f'<p class="more">and {counted(rest, noun)} more{where}</p>' if rest > 0 else ""
