# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Taking a routine's written signature apart: the name, and the text of each input type.

What a type's text means is the server's business. Here argument names, modes and defaults are dropped, which
``to_regtype`` would not understand.
"""

from __future__ import annotations

import re
from typing import Iterable, Iterator, List, Optional, Tuple

_TOKEN = re.compile(r'"(?:[^"]|"")*"|\'(?:[^\']|\'\')*\'|[^\W\d][\w$]*|\d+|::|[^\s\w]', re.UNICODE)

# Type names of several words (PostgreSQL's grammar, "Typename"); the first word may never be taken for an argument
# name.
_MANY_WORDS = (
    ("double", "precision"),
    ("character", "varying"),
    ("char", "varying"),
    ("national", "character"),
    ("national", "char"),
    ("bit", "varying"),
    ("timestamp", "with"),
    ("timestamp", "without"),
    ("time", "with"),
    ("time", "without"),
    ("interval", "year"),
    ("interval", "month"),
    ("interval", "day"),
    ("interval", "hour"),
    ("interval", "minute"),
    ("interval", "second"),
)
_MODES = {"in", "out", "inout", "variadic"}


def split_signature(text: str) -> Iterator[Tuple[str, Tuple[str, ...]]]:
    """Every way to read ``name(type, …)``, the likeliest first: the name is literal and may itself hold a
    parenthesis.
    """
    if not text.endswith(")"):
        return
    for match in re.finditer(r"\(", text):
        arguments = parse_arguments(text[match.end() : -1])
        if arguments is not None:
            yield text[: match.start()], arguments


def parse_arguments(text: str) -> Optional[Tuple[str, ...]]:
    """The input types of an argument list, or None where it is none. ``*``, as in ``count(*)``, is no argument."""
    if text.strip() in ("", "*"):
        return ()
    found = _TOKEN.findall(text)
    if '"' in found or not _balanced(found):
        return None  # the text begins inside a name that holds a quote or a parenthesis
    types: List[str] = []
    for tokens in _split(found):
        if not tokens:
            return None
        mode = tokens[0].lower() if len(tokens) > 1 else ""
        if mode in _MODES:
            tokens = tokens[1:]
            if mode == "in" and len(tokens) > 1 and tokens[0].lower() == "out":
                tokens = tokens[1:]
        if mode == "out":
            continue
        tokens = _without_name(_without_default(tokens))
        if not tokens or not _is_word(tokens[0]):
            return None
        types.append(_join(tokens))
    return tuple(types)


def _balanced(tokens: Iterable[str]) -> bool:
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth < 0:
            return False
    return depth == 0


def _split(tokens: Iterable[str]) -> List[List[str]]:
    """Tokens between the commas that are not inside parentheses; nothing where the parentheses do not match."""
    parts: List[List[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth < 0:
            return [[]]
        if token == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if depth == 0 else [[]]


def _without_default(tokens: List[str]) -> List[str]:
    for position, token in enumerate(tokens):
        if token == "=" or token.lower() == "default":
            return tokens[:position]
    return tokens


def _is_word(token: str) -> bool:
    return token[0] == '"' or token[0].isalpha() or token[0] == "_"


def _without_name(tokens: List[str]) -> List[str]:
    """The tokens without an argument's name: a word before another word, unless the two make one type name."""
    if len(tokens) < 2 or not (_is_word(tokens[0]) and _is_word(tokens[1])):
        return tokens
    pair = (tokens[0].lower(), tokens[1].lower())
    if pair in _MANY_WORDS or pair[1] == "array":
        return tokens
    return tokens[1:]


def _join(tokens: List[str]) -> str:
    """The type's text again, with a space only between words."""
    text = ""
    for before, token in zip(["", *tokens], tokens):
        text += f" {token}" if before and (_is_word(before) or before == ")") and _is_word(token) else token
    return text


def type_texts(names: Iterable[str]) -> List[str]:
    """Every type text in these signatures, once each."""
    texts = {argument for name in names for _routine, arguments in split_signature(name) for argument in arguments}
    return sorted(texts)
