# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What a text in a manifest may be, and how messages print values."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any, Callable

from .. import privileges
from ..records import dataclass
from .model import INFINITY, Instant

#: PostgreSQL truncates longer names (NAMEDATALEN - 1).
NAME_BYTES = 63

#: A pattern has to fit names, so a longer one is something else. Compiling it would take long.
PATTERN_CHARACTERS = 1000

#: What begins a template. Files are not templated, so one in them was never filled in.
TEMPLATE = re.compile(r"\{\{|\{%")

#: How much of a value a message shows.
_SHOWN = 70


@dataclass(frozen=True)
class Unplain:
    """A YAML number that is not written in plain decimal, as it was written."""

    text: str


class Refused(Exception):
    """A text that is not what it should be."""


def show(value: Any) -> str:
    """A value as messages print it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    text = value if isinstance(value, str) else value.text if isinstance(value, Unplain) else str(value)
    if len(text) > _SHOWN:
        text = text[:_SHOWN] + "..."
    return repr(text) if isinstance(value, str) else text


def describe(value: Any, *, secret: bool = False) -> str:
    """What a value is, in words, and the value itself where it is short and no secret."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "a dict"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, bool):
        kind = "boolean"
    elif isinstance(value, (int, float, Unplain)):
        kind = "number"
    elif isinstance(value, (datetime.date, datetime.datetime)):
        kind = "date"
    else:
        kind = "text"
    if secret:
        return "text" if kind == "text" else f"a {kind}"
    return f"the {kind} {show(value)}"


def check_name(text: str) -> str:
    """A name that PostgreSQL can hold."""
    if not text:
        raise Refused("must not be empty")
    if "\0" in text:
        raise Refused("must not contain a NUL character")
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise Refused("is not valid Unicode text") from None
    if size > NAME_BYTES:
        raise Refused(f"{show(text)} is {size} bytes long, and PostgreSQL's names have at most {NAME_BYTES}")
    return text


def reserved(name: str) -> bool:
    """Whether SQL keeps the word for itself, so that no role can have it as its name."""
    return name.lower() in ("public", "none")


def _role(text: str) -> str:
    if text.lower() == "public":
        raise Refused(f"{show(text)} is the pseudo-role PUBLIC, which can only be a grantee")
    if text.lower() == "none":
        raise Refused(f"{show(text)} is a reserved word, no role can have this name")
    return check_name(text)


def _declared_role(text: str) -> str:
    if reserved(text):
        raise Refused(f"{show(text)} is a reserved word, no role can have this name")
    return check_name(text)


def _grantee(text: str) -> str:
    if text.lower() == "public":
        return privileges.PUBLIC
    return _role(text)


def _schema(text: str) -> str:
    if text == "*":
        raise Refused("'*' is only for an object's name, a rule reaches one schema")
    return check_name(text)


def _declared_schema(text: str) -> str:
    if text == privileges.STORE_SCHEMA:
        raise Refused(f"{show(text)} is where this collection keeps fingerprints of passwords, and it is not managed")
    if privileges.is_system_schema(text):
        raise Refused(f"{show(text)} is reserved for PostgreSQL's own schemas: rules may name objects in it, no more")
    return _schema(text)


def _column(text: str) -> str:
    if text == "*":
        raise Refused("'*' is only for an object's name: write the columns, or leave them out for the whole object")
    return check_name(text)


def _object_name(text: str) -> str:
    # A routine's signature may be longer than a name, so the length is judged where the type is known.
    if not text:
        raise Refused("must not be empty")
    if "\0" in text:
        raise Refused("must not contain a NUL character")
    return text


def _password(text: str) -> str:
    # What it is taken for depends on the role's other fields; here only what no message may show is kept out of it.
    return text


def _environment_name(text: str) -> str:
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", text):
        # Not shown: it may be the password itself, in the wrong place.
        raise Refused("is not the name of an environment variable, which has letters, digits and underscores")
    return text


def check_text(text: str) -> str:
    """A text that PostgreSQL can hold."""
    if "\0" in text:
        raise Refused("must not contain a NUL character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused("is not valid Unicode text") from None
    return text


def _profile_name(text: str) -> str:
    return check_name(text)


def _pattern(text: str) -> str:
    if "\0" in text:
        raise Refused("must not contain a NUL character")
    if len(text) > PATTERN_CHARACTERS:
        raise Refused(f"{show(text)} has {len(text)} characters, a pattern has at most {PATTERN_CHARACTERS}")
    # A bracket expression stands for a character like ? does, unless it holds just one: so a literal * is written. A
    # bracket that nothing closes is a literal one.
    if not re.sub(r"\[[^!]\]|(\[!?\]?[^\]]*\]|[*?])", lambda found: "" if found[1] else found[0], text):
        raise Refused(f"{show(text)} would match every name: a pattern needs a literal character")
    return text


def _role_pattern(text: str) -> str:
    if "\0" in text:
        raise Refused("must not contain a NUL character")
    for word in re.findall(r"\{(\w*)\}", text):
        if word not in ("schema", "profile"):
            raise Refused(f"{show(text)} contains {{{word}}}; only {{schema}} and {{profile}} are replaced")
    if "{profile}" not in text:
        raise Refused(f"{show(text)} must contain {{profile}}")
    return text


_INSTANT = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,6}))?)?"
    r"\s?(?:([Zz])|([+-])(\d{2})(?::?(\d{2}))?)?",
    re.ASCII,
)
_EPOCH = datetime.datetime(1970, 1, 1)


def _instant(text: str) -> Instant:
    if text.lower() == INFINITY:
        return INFINITY
    match = _INSTANT.fullmatch(text)
    form = "write ISO 8601 with a time zone, such as '2027-01-31T23:59:59+01:00', or 'infinity'"
    if match is None:
        raise Refused(f"{show(text)} is not a point in time: {form}")
    year, month, day, hour, minute, second, fraction, zulu, sign, zone_hour, zone_minute = match.groups()
    if not zulu and not sign:
        raise Refused(f"{show(text)} has no time zone: {form}")
    try:
        local = datetime.datetime(
            int(year),
            int(month),
            int(day),
            int(hour),
            int(minute),
            int(second or 0),
            int((fraction or "").ljust(6, "0")),
        )
    except ValueError as exc:
        raise Refused(f"{show(text)} is not a point in time ({exc})") from None
    if int(zone_hour or 0) > 15 or int(zone_minute or 0) > 59:
        raise Refused(f"{show(text)} has an impossible time zone")
    offset = datetime.timedelta(hours=int(zone_hour or 0), minutes=int(zone_minute or 0))
    try:
        moment = local + (offset if sign == "-" else -offset)
    except OverflowError:
        raise Refused(f"{show(text)} lies outside the years 1 to 9999 in UTC") from None
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)


#: What a text may be, by the spec's ``judge``: returns the value to use, or raises with what is wrong.
TEXTS: Mapping[str, Callable[[str], Any]] = {
    "name": check_name,
    "role": _role,
    "declared_role": _declared_role,
    "grantee": _grantee,
    "schema": _schema,
    "declared_schema": _declared_schema,
    "object_name": _object_name,
    "column": _column,
    "comment": check_text,
    "password": _password,
    "environment_name": _environment_name,
    "profile_name": _profile_name,
    "pattern": _pattern,
    "role_pattern": _role_pattern,
    "instant": _instant,
}
