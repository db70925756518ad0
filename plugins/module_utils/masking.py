# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What no output may show: found in the raw input before anything can fail, and masked wherever a server repeats it.

Ansible registers the secrets that it can name. It knows nothing of a password under a misspelt key, in JSON text, in a
file or in the environment.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import AbstractSet, Any, Dict, FrozenSet, Iterable, Iterator, List, Optional, Tuple

from .manifest.spec import ROLE_OPTIONS

MASK = "********"

#: The environment variables with secrets of the module itself.
KEY_VARIABLE = "PG_ROLE_RECONCILE_FINGERPRINT_KEY"
SECRET_VARIABLES = ("PGPASSWORD", KEY_VARIABLE)

#: Keys of ``connect_params`` with secrets. They are refused there, and the message must not show them.
SECRET_PARAMETERS = ("password", "passfile", "sslpassword")

_SECRET_FIELDS = frozenset(name for name, option in ROLE_OPTIONS.items() if option.get("no_log"))
_ROLE_KEYS = frozenset(ROLE_OPTIONS).union(*(option.get("aliases", ()) for option in ROLE_OPTIONS.values()))

# Pairs in a text that is no list or dict: AnsibleModule takes key=value for a dict, and JSON may be broken.
_PAIR = re.compile(r"""(\w+)["']?\s*[=:]\s*('[^']*'|"[^"]*"|[^\s,}]+)""")


#: The owner of what stands under an unknown key: most likely no secret at all, so no warning speaks of it.
NOBODY = ""

#: A shorter text, and a single word of this length at most, may well be somewhere by chance.
BY_CHANCE = 8
WORD_BY_CHANCE = 20


class Secrets:
    """Every secret that the run knows, with whose it is."""

    def __init__(self) -> None:
        self._owners: Dict[str, str] = {}

    def add(self, text: Any, owner: str) -> None:
        """One more secret; what is empty or no text is none."""
        if isinstance(text, str) and text:
            self._owners.setdefault(text, owner)

    def add_all(self, found: Iterable[Tuple[str, str]]) -> None:
        """More secrets, each with whose it is."""
        for text, owner in found:
            self.add(text, owner)

    def texts(self) -> AbstractSet[str]:
        """The secrets themselves."""
        return self._owners.keys()

    def owner(self, text: str) -> Optional[str]:
        """Whose secret this is, in words for a warning."""
        return self._owners.get(text)

    def mask(self, text: str) -> str:
        """A text from outside without the secrets, also where it repeats them quoted for SQL or JSON."""
        for spelling in sorted({form for secret in self._owners for form in _spellings(secret)}, key=len, reverse=True):
            text = text.replace(spelling, MASK)
        return text


def _spellings(secret: str) -> FrozenSet[str]:
    doubled = secret.replace("'", "''")
    escaped = json.dumps(secret)[1:-1]
    return frozenset(
        (
            secret,
            doubled,
            secret.replace('"', '""'),
            secret.replace("\\", "\\\\"),
            doubled.replace("\\", "\\\\"),
            escaped,
            json.dumps(secret, ensure_ascii=False)[1:-1],
            # psql, the server's log and pg_stat_activity keep lines apart with a tab.
            secret.replace("\n", "\n\t"),
        )
    )


def leaves(value: Any) -> Iterator[str]:
    """Every value in something nested, as the text in which Ansible searches for secrets."""
    return map(str, _scalars(value))


def _secrets_in(value: Any) -> Iterator[str]:
    """The texts and numbers in something nested that may be secrets: a flag is none."""
    return (str(item) for item in _scalars(value) if item is not None and not isinstance(item, bool))


def _scalars(value: Any) -> Iterator[Any]:
    pending: List[Any] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            pending.extend(item.values())
        elif isinstance(item, (list, tuple, set, frozenset)):
            pending.extend(item)
        elif item is None or isinstance(item, (str, int, float)):
            yield item


def _pairs(text: str) -> Iterator[Tuple[str, str]]:
    """The key=value and "key": "value" pairs of a text."""
    for match in _PAIR.finditer(text):
        yield match.group(1), match.group(2).strip("'\"")


def structure(value: Any) -> Any:
    """What a text with a list or a dict in it means; AnsibleModule takes JSON and Python's notation for one."""
    if not isinstance(value, str) or not re.match(r"\s*[\[{]", value):
        return value
    for read in (json.loads, ast.literal_eval):
        try:
            return read(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return value


def of_roles(roles: Any, environment: Optional[Mapping[str, str]] = None) -> Iterator[Tuple[str, str]]:
    """The secrets of a manifest's ``roles``: passwords, those that an entry says are in the environment, and whatever
    stands under a key that roles do not have.
    """
    found = structure(roles)
    if isinstance(found, (Mapping, str)):
        found = [found]
    if not isinstance(found, (list, tuple)):
        return
    for number, entry in enumerate(found):
        role = structure(entry)
        if isinstance(role, str):
            for key, text in _pairs(role):
                if key not in _ROLE_KEYS or key in _SECRET_FIELDS:
                    yield text, f"the password in roles[{number}]"
        if not isinstance(role, Mapping):
            continue
        name = role.get("name")
        owner = f"the password of role {name}" if isinstance(name, str) else f"the password in roles[{number}]"
        for key, value in role.items():
            if key in _SECRET_FIELDS or key not in _ROLE_KEYS:
                for text in _secrets_in(value):
                    yield text, owner if key in _SECRET_FIELDS else NOBODY
        variable = role.get("password_from_env")
        if environment and isinstance(variable, str) and variable in environment:
            yield environment[variable], owner


def passwords_in_address(text: str) -> Iterator[str]:
    """The passwords in a connection string, which some take for a database's name."""
    for match in re.finditer(r"://[^:/@]*:([^@]+)@|password\s*=\s*('[^']*'|[^\s&]+)", text):
        yield (match.group(1) or match.group(2)).strip("'")


def of_arguments(raw: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Tuple[str, str]]:
    """The secrets in the module's raw arguments and in its environment."""
    for name in ("login_password", "fingerprint_key"):
        for text in _secrets_in(raw.get(name)):
            yield text, name
    parameters = structure(raw.get("connect_params"))
    databases = (raw.get("login_db"), parameters.get("dbname") if isinstance(parameters, Mapping) else None)
    for database in databases:
        if isinstance(database, str):
            for text in passwords_in_address(database):
                yield text, "login_db"
    if isinstance(parameters, Mapping):
        for name in SECRET_PARAMETERS:
            for text in _secrets_in(parameters.get(name)):
                yield text, f"connect_params.{name}"
    elif isinstance(parameters, str):
        for name, text in _pairs(parameters):
            if name in SECRET_PARAMETERS:
                yield text, "connect_params"
    for name in SECRET_VARIABLES:
        if environment.get(name):
            yield environment[name], name
    passwords = raw.get("passwords")
    if isinstance(passwords, str):
        yield passwords, "passwords"
        for _role, text in _pairs(passwords):
            yield text, "passwords"
    found = structure(passwords)
    if isinstance(found, Mapping):
        names = set(open_names({"roles": raw.get("roles")}))
        for role, secret in found.items():
            swapped = isinstance(role, str) and role not in names and str(secret) in names
            for text in _secrets_in(role if swapped else secret):
                yield text, "passwords" if swapped else f"the password of role {role}"
    else:
        for text in _secrets_in(found):
            yield text, "passwords"
    yield from of_roles(raw.get("roles"), environment)
    for text, owner in of_unknown(raw):
        yield text, owner


def by_chance(secret: str) -> bool:
    """Whether a text may be found in a result without having leaked: a number, a word of SQL or of the manifest."""
    if len(secret) < BY_CHANCE or not secret.strip("*"):
        return True
    # Words as the module itself writes them: (changed), on_change, undeclared_grantee.
    return len(secret) <= WORD_BY_CHANCE and re.fullmatch(r"\(?[^\W\d]+\)?", secret) is not None


#: Keys of the arguments under which names stand, which a result has to show as they are.
_NAME_KEYS = frozenset(
    {
        "name", "role", "owner", "schema", "columns", "profiles", "default_owner", "reassign_owned_to", "role_pattern",
        "assume_roles", "schemas", "ignore_roles", "roles", "members", "member_of", "memberships", "session_role",
        "login_user", "login_db", "login_host", "login_unix_socket",
    }
)  # fmt: skip


def open_names(raw: Mapping[str, Any]) -> Iterator[str]:
    """Every name in the raw arguments. Other texts that equal a secret, comments and settings too, are masked."""
    yield from _names_in(raw, "")


def _names_in(value: Any, key: str) -> Iterator[str]:
    found = structure(value)
    if isinstance(found, Mapping):
        if key in ("profiles", "config"):
            yield from (str(name) for name in found)
        for name, item in found.items():
            yield from _names_in(item, str(name))
    elif isinstance(found, (list, tuple)):
        for item in found:
            yield from _names_in(item, key)
    elif isinstance(found, str) and key in _NAME_KEYS:
        if key != "login_db" or not any(passwords_in_address(found)):
            yield found


def of_unknown(raw: Mapping[str, Any]) -> Iterator[Tuple[str, str]]:
    """What stands under a misspelt ``passwords`` or ``fingerprint_key``."""
    for name, value in raw.items():
        if re.search(r"pass?w|secret|finger.*key$", name, re.IGNORECASE) and name not in (
            "update_password",
            "passwords",
            "login_password",
        ):
            for text in _secrets_in(structure(value)):
                yield text, name
