# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""How the judge of the role ``awx_job_template`` says what is wrong, and what kinds of values there are."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, List

from ansible.module_utils.parsing.convert_bool import BOOLEANS

PREFIX = "awx_job_template_"


def shown(value: Any) -> str:
    """A value in a message: short, on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(str(value)) if isinstance(value, str) else str(value)
    return text if len(text) <= 70 else text[:67] + "..."


def kind_of(value: Any) -> str:
    if isinstance(value, str):
        return "a text"
    if isinstance(value, Mapping):
        return "a dict"
    if isinstance(value, (list, tuple)):
        return "a list"
    return f"{shown(value)}"


def as_text(value: Any) -> Any:
    """A value that ansible-core before 2.19 decrypts late, as the text that it is."""
    return str(value) if getattr(value, "__ENCRYPTED__", False) else value


def nearest(name: str, choices: Iterable[str], prefix: str = "") -> List[str]:
    """The choice that a name is near to, if there is one."""
    return [prefix + each for each in difflib.get_close_matches(name, list(choices), 1, 0.7)]


def unknown(place: str, keys: Iterable[Any], allowed: Sequence[str], of: str) -> Iterator[str]:
    """Keys that are not there, each with the nearest that is."""
    for key in keys:
        if key in allowed:
            continue
        near = nearest(str(key), allowed)
        which = f"did you mean {near[0]}?" if near else f"there are {', '.join(allowed)}" if len(allowed) <= 20 else ""
        yield f"{place}.{key}: {of} has no such {'option' if '.' in of else 'key'}{'; ' + which if which else ''}"


def is_text(value: Any) -> bool:
    return isinstance(as_text(value), str)


def is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not is_text(value)


def is_boolean(value: Any) -> bool:
    """What Ansible takes for one."""
    return not isinstance(value, (Mapping, list, tuple)) and (value in BOOLEANS or str(value).lower() in BOOLEANS)


def is_number(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, str) and re.match(r"-?\d+\Z", value) is not None
    )


def sequence_at(value: Mapping[str, Any], *path: str) -> Sequence[Any]:
    """The list at a path, or an empty one."""
    inner: Any = value
    for name in path:
        inner = inner.get(name) if isinstance(inner, Mapping) else None
    return inner if is_list(inner) else ()
