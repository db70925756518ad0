# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Names of roles taken apart: which patterns of {schema} and {profile} could have made them."""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Tuple

from ..policy import filled
from .shapes import places


class Reading(NamedTuple):
    """One way to read a role's name. ``inner``: how many characters of the pattern's own stand between the two
    placeholders. ``outer``: how many stand on the profile's other side.
    """

    pattern: str
    profile: str
    schema_first: bool
    inner: int
    outer: int


def readings(role: str, schema: str) -> Tuple[Reading, ...]:
    """Every way to read a role's name as made from its schema's. None where the schema's name is not in it."""
    found: List[Reading] = []
    for start in places(role, schema):
        before, after = role[:start], role[start + len(schema) :]
        for inner, profile, outer in _splits(after):
            found.append(Reading(f"{before}{{schema}}{inner}{{profile}}{outer}", profile, True, len(inner), len(outer)))
        for inner, profile, outer in _splits(before[::-1]):
            inner, profile, outer = inner[::-1], profile[::-1], outer[::-1]
            found.append(Reading(f"{outer}{{profile}}{inner}{{schema}}{after}", profile, False, len(inner), len(outer)))
    return tuple(item for item in dict.fromkeys(found) if _usable(item, role, schema))


def _usable(reading: Reading, role: str, schema: str) -> bool:
    own = reading.pattern.replace("{schema}", "", 1).replace("{profile}", "", 1)
    # A brace of the pattern's own might be taken for a placeholder.
    return "{" not in own and filled(reading.pattern, schema, reading.profile) == role


def _splits(text: str) -> Iterator[Tuple[str, str, str]]:
    """The text as separators, a profile's name, and some of the pattern's own words behind it."""
    start = next((index for index, character in enumerate(text) if character.isalnum()), len(text))
    if start == len(text):
        return
    for end in range(start + 1, len(text)):
        if text[end - 1].isalnum() and not text[end].isalnum():
            yield text[:start], text[start:end], text[end:]
    if text[-1].isalnum():
        yield text[:start], text[start:], ""
