# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Whether AWX takes the credential type and the credential, and whether the login can be meant.

No value of a field is shown that is secret, or that nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Dict, List, Tuple

from ansible_collections.pg_access.reconcile.plugins.plugin_utils.awx.texts import (
    PREFIX,
    as_text,
    is_number,
    kind_of,
    sequence_at,
    shown,
    unknown,
)

TYPE_INPUTS = ("fields", "required")
TYPE_FIELD = ("id", "label", "type", "secret", "multiline", "format", "choices", "help_text", "default")
TYPE_INJECTORS = ("file", "env", "extra_vars")
SHORTEST_KEY = 16


def credential_type_problems(value: Any) -> Iterator[str]:
    """The free dicts in it."""
    if not isinstance(value, Mapping):
        return
    place = PREFIX + "credential_type"
    if value.get("kind") not in (None, "cloud", "net"):
        yield f"{place}.kind: it is {shown(value['kind'])}, and AWX only makes types of the kinds cloud and net"
    for part, allowed in (("inputs", TYPE_INPUTS), ("injectors", TYPE_INJECTORS)):
        if isinstance(value.get(part), Mapping):
            yield from unknown(f"{place}.{part}", value[part], allowed, f"AWX's {part}")
    for number, field in enumerate(sequence_at(value, "inputs", "fields")):
        if isinstance(field, Mapping):
            yield from unknown(f"{place}.inputs.fields[{number}]", field, TYPE_FIELD, "a field")
        else:
            yield f"{place}.inputs.fields[{number}]: it is {kind_of(field)}, and has to be a dict with id and label"


def _fields(kind: Any, own_type: Mapping[str, Any]) -> Tuple[Dict[str, Mapping[str, Any]], List[str]]:
    """The fields of the credential type by name, and which are required. The user's lists are in the place of ours."""
    inputs = dict(own_type["inputs"])
    if isinstance(kind, Mapping) and isinstance(kind.get("inputs"), Mapping):
        inputs.update(kind["inputs"])
    fields = {str(each["id"]): each for each in inputs["fields"] if isinstance(each, Mapping) and "id" in each}
    return fields, list(inputs.get("required") or [])


def credential_problems(value: Any, kind: Any, own_type: Mapping[str, Any]) -> Iterator[str]:
    """No value of a field is shown that is secret, or that nobody knows."""
    place = PREFIX + "credential_inputs"
    if value is None:
        return
    fields, required = _fields(kind, own_type)
    if not isinstance(value, Mapping):
        yield f"{place}: it has to be a dict with {', '.join(fields)}"
        return
    yield from unknown(place, value, list(fields), "the credential type")
    for name in required:
        if as_text(value.get(name)) in (None, ""):
            yield f"{place}.{name}: it is not given or empty, and a login needs it"
    for name, field in fields.items():
        yield from _input(f"{place}.{name}", name, field, as_text(value.get(name)))
    if as_text(value.get("ca")) == "system" and value.get("sslmode") not in (None, "", "verify-full"):
        yield (
            f"{place}.sslmode: it is {shown(value['sslmode'])}, and has to be verify-full where ca is system:"
            " libpq takes no other"
        )


def _input(place: str, name: str, field: Mapping[str, Any], value: Any) -> Iterator[str]:
    secret = bool(field.get("secret"))
    if value in (None, ""):
        return
    if field.get("type") == "boolean":
        if not isinstance(value, bool):
            yield f"{place}: it has to be true or false"
        return
    if name == "port" and is_number(value):
        value = str(value)
    if not isinstance(value, str):
        yield (
            f"{place}: it has to be a text, so quote it"
            if secret
            else f"{place}: it is {shown(value)}, and has to be a text"
        )
    elif "\n" in value and not field.get("multiline"):
        yield (
            f"{place}: it has more than one line. AWX writes it into a file of one line for each variable, where the"
            " rest would become other variables"
        )
    elif "\x00" in value:
        yield f"{place}: it has a NUL character, which no environment variable can hold"
    elif field.get("choices") and value not in field["choices"]:
        yield f"{place}: it is {shown(value)}, and has to be one of {', '.join(field['choices'])}"
    elif secret and value == "$encrypted$":
        yield f"{place}: $encrypted$ is what AWX shows of a secret, and not the secret"
    elif name == "port" and not re.match(r"\d{1,5}(,\d{1,5})*\Z", value):
        yield f"{place}: it is {shown(value)}, and has to be a number"
    elif name == "ca" and value.strip() != "system" and "-----BEGIN " not in value:
        yield (
            f"{place}: it is {shown(value)}, and has to be certificates in PEM format, such as"
            " lookup('ansible.builtin.file', 'ca.pem') reads them, or the word system"
        )
    elif name == "fingerprint_key" and len(value.encode()) < SHORTEST_KEY:
        yield f"{place}: it has {len(value.encode())} bytes, and has to have at least {SHORTEST_KEY}"
