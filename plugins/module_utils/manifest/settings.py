# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Settings of roles (ALTER ROLE ... SET): names and values as a manifest writes them, and as the catalog holds them.

A value is a tuple of texts: one for each element of a list that the server quotes, else exactly one.
"""

from __future__ import annotations

import re
from typing import List, Mapping, Sequence, Tuple

from .texts import Refused, check_name, check_text, show

Value = Tuple[str, ...]

#: Lists whose elements the server quotes one by one (GUC_LIST_QUOTE in guc_tables.c; no function tells, and extensions
#: may not define any), as far as a role can have them, and whether an unquoted element is folded to lower case
#: (SplitIdentifierString) or kept (SplitDirectoriesString).
QUOTED_LISTS: Mapping[str, bool] = {
    "search_path": True,
    "temp_tablespaces": True,
    "session_preload_libraries": False,
    "local_preload_libraries": False,
}

#: Lists of words that the server keeps as they were written (GUC_LIST_INPUT alone), as far as a role can have them.
WORD_LISTS = frozenset(
    {
        "datestyle",
        "createrole_self_grant",
        "restrict_nonsystem_relation_kind",
        "wal_consistency_checking",
        "plpgsql.extra_errors",
        "plpgsql.extra_warnings",
    }
)

#: What PostgreSQL takes as a part of a parameter's name: any character beyond ASCII counts as a letter.
_WORD = re.compile(r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*")
_ELEMENT = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s",][^,]*)|)\s*(,|\Z)')


def fold(name: str) -> str:
    """A parameter's name as PostgreSQL compares it: it folds no more than ASCII."""
    return "".join(char.lower() if char.isascii() else char for char in name)


def parameter_name(text: str) -> str:
    """A parameter's name, folded. An extension's has parts, each as long as a name may be."""
    for word in text.split("."):
        if not _WORD.fullmatch(word):
            raise Refused(f"{show(text)} is not a parameter's name")
        check_name(word)
    return fold(text)


def is_custom(name: str) -> bool:
    """Whether the name has a class, as the parameters of extensions have: no server has to know it."""
    return "." in name


def declared(name: str, text: str) -> Value:
    """A value as the manifest writes it. Elements of a list are literal, in double quotes where they need them."""
    check_text(text)
    if name not in QUOTED_LISTS:
        return (text,)
    elements = ("",) if not text.strip() else _elements(text, folded=False)
    if "" in elements and (len(elements) > 1 or not QUOTED_LISTS[name]):
        raise Refused(f"{show(text)} has an empty element: leave it out, or the whole setting")
    return elements


def _elements(text: str, *, folded: bool) -> Value:
    found: List[str] = []
    position = 0
    while True:
        match = _ELEMENT.match(text, position)
        if match is None or (match.group(1) is None and match.group(2) is None):
            raise Refused(f"{show(text)} is not a list: elements stand between commas, in double quotes where needed")
        quoted, plain, end = match.groups()
        if quoted is not None:
            found.append(quoted.replace('""', '"'))
        else:
            found.append(fold(plain.rstrip()) if folded else plain.rstrip())
        if not end:
            return tuple(found)
        position = match.end()


def holds(name: str, stored: str, wanted: Sequence[str]) -> bool:
    """Whether what the catalog holds for a setting is this value. Only lists can be written in several ways."""
    name = fold(name)
    if name in WORD_LISTS:
        return _words(stored) == _words(wanted[0])
    if name not in QUOTED_LISTS:
        return tuple(wanted) == (stored,)
    try:
        # FROM CURRENT stores a list as the configuration file had it, unquoted names in any case.
        return _elements(stored, folded=QUOTED_LISTS[name]) == tuple(wanted)
    except Refused:
        return False


def elements(name: str, stored: str) -> Value:
    """The value that the catalog holds for a setting, as ALTER ROLE ... SET takes it."""
    name = fold(name)
    if name not in QUOTED_LISTS:
        return (stored,)
    try:
        return _elements(stored, folded=QUOTED_LISTS[name])
    except Refused:
        return (stored,)


def _words(text: str) -> List[str]:
    return [fold(word.strip()) for word in text.split(",")]


def shown(name: str, value: Sequence[str]) -> str:
    """A value as one text, the way the manifest writes it."""
    if fold(name) not in QUOTED_LISTS:
        return value[0]
    return ", ".join(_quoted(element) for element in value)


def _quoted(element: str) -> str:
    return element if re.fullmatch("[a-z_][a-z0-9_]*", element) else '"{}"'.format(element.replace('"', '""'))
