# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""A manifest as YAML text: always the same for the same manifest, and read back as exactly that.

Written by hand, because the machine that the module runs on need not have PyYAML, and because a name has to stay one:
``on``, ``1e3`` and ``2027-01-31`` are quoted like every other.
"""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Mapping

#: Keys whose values are words of the manifest's own, which YAML reads as text without quotes.
_WORDS = frozenset({"privileges", "type", "on_type", "ensure"})

#: Sections and fields that are dicts with names as their keys.
_NAMED = frozenset({"profiles", "config"})

#: Dicts and lists that are short and read best on one line.
_INLINE = frozenset({"object", "privileges", "columns"})

_PLAIN = re.compile(r"[A-Za-z][A-Za-z_]*(?: [A-Z]+)?")

#: Escapes of YAML that have a letter.
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def to_yaml(manifest: Mapping[str, Any]) -> str:
    """The manifest's YAML text, with a newline at its end."""
    lines: List[str] = []
    for section, value in manifest.items():
        lines.extend(_field(section, value, 0, ""))
    return "\n".join(lines) + "\n" if lines else "{}\n"


def _field(key: str, value: Any, depth: int, within: str) -> Iterator[str]:
    """The lines of one key and its value. ``within``: the key of the dict that it stands in."""
    space = "  " * depth
    shown = quoted(key) if within in _NAMED else key
    # A profile may be called like a field.
    field = "" if within in _NAMED else key
    if isinstance(value, Mapping) and value and field not in _INLINE:
        yield f"{space}{shown}:"
        for name, inner in value.items():
            yield from _field(name, inner, depth + 1, field)
    elif isinstance(value, (list, tuple)) and field not in _INLINE and any(isinstance(item, Mapping) for item in value):
        yield f"{space}{shown}:"
        for item in value:
            yield from _item(item, depth + 1, field)
    else:
        yield f"{space}{shown}: {_inline(value, field)}"


def _item(item: Any, depth: int, within: str) -> Iterator[str]:
    """The lines of one item of a list."""
    space = "  " * depth
    if not isinstance(item, Mapping):
        yield f"{space}- {_scalar(item, within)}"
        return
    if not item:
        yield f"{space}- {{}}"
        return
    first = True
    for name, inner in item.items():
        for line in _field(name, inner, depth + 1, within):
            yield f"{space}- {line[len(space) + 2 :]}" if first else line
            first = False


def _inline(value: Any, key: str) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_inline(inner, name)}" for name, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_scalar(item, key) for item in value) + "]"
    return _scalar(value, key)


def _scalar(value: Any, key: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    return text if key in _WORDS and _PLAIN.fullmatch(text) else quoted(text)


def quoted(text: str) -> str:
    """A text in double quotes, in which YAML takes every character for itself."""
    return '"' + "".join(_character(char) for char in text) + '"'


def _character(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char == " " or (char.isprintable() and char != "\ufeff"):
        return char
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02X}"
    return f"\\u{number:04X}" if number < 0x10000 else f"\\U{number:08X}"
