# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""From ``login_*`` options to a psycopg connection."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, List, Mapping, MutableMapping, Optional

from .failure import Failure
from .manifest.texts import Refused, check_name, check_text
from .manifest.validate import Suggester, join, no_text
from .masking import SECRET_PARAMETERS
from .privileges import OLDEST_SERVER
from .problems import Problem

try:
    import psycopg
except ImportError as exc:
    PSYCOPG_PROBLEM: Optional[str] = str(exc)
else:
    PSYCOPG_PROBLEM = None

if TYPE_CHECKING:
    from psycopg import Connection

#: Before this version of psycopg, SQL can only be composed with a connection at hand.
OLDEST_PSYCOPG = (3, 2, 1)

#: The argument spec of the connection options, named as in community.postgresql.
CONNECTION_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "login_host": {"type": "str"},
    "login_port": {"type": "int"},
    "login_user": {"type": "str"},
    "login_password": {"type": "str", "no_log": True},
    "login_db": {"type": "str"},
    "login_unix_socket": {"type": "str"},
    "ssl_mode": {"type": "str", "choices": ["allow", "disable", "prefer", "require", "verify-ca", "verify-full"]},
    "ca_cert": {"type": "path", "aliases": ["ssl_rootcert"]},
    "ssl_cert": {"type": "path"},
    "ssl_key": {"type": "path", "no_log": False},
    "connect_params": {"type": "dict"},
    "session_role": {"type": "str"},
}

_LIBPQ_NAMES = {
    "login_port": "port",
    "login_user": "user",
    "login_password": "password",
    "login_db": "dbname",
    "ssl_mode": "sslmode",
    "ca_cert": "sslrootcert",
    "ssl_cert": "sslcert",
    "ssl_key": "sslkey",
}


def connection_parameters(options: Mapping[str, Any], environment: Mapping[str, str]) -> Dict[str, Any]:
    """libpq's parameters for the module's options. What is not given is left to libpq's environment.

    Raises Failure where a secret is in ``connect_params`` or nothing names the database.
    """
    given = {name: value for name, value in options.items() if value not in (None, "")}
    extra = {name: value for name, value in (given.get("connect_params") or {}).items() if value not in (None, "")}
    problems: List[Problem] = [
        Problem(
            path=f"connect_params.{name}",
            message=f"{name} does not belong into connect_params, which Ansible does not mask",
            hint="Use login_password.",
        )
        for name in SECRET_PARAMETERS
        if name in extra
    ]
    parameters: Dict[str, Any] = {
        parameter: given[option] for option, parameter in _LIBPQ_NAMES.items() if option in given
    }
    problems += [
        Problem(path=place, message=said)
        for place, value in (*given.items(), *((join("connect_params", name), value) for name, value in extra.items()))
        for said in [_wrong(place, value)]
        if said is not None
    ]
    known = _known_parameters()
    suggester = Suggester(known)
    problems += [
        Problem(path=join("connect_params", name), message=f"libpq has no such parameter{suggester.hint(str(name))}")
        for name in extra
        if known and name not in known
    ]
    host = given.get("login_host")
    if given.get("login_unix_socket") and host in (None, "localhost"):
        host = given["login_unix_socket"]
    if host:
        parameters["host"] = host
    parameters.update(extra)
    problems += [
        Problem(
            path=place,
            message="must be a database's name, not a connection string",
            hint="Give host, user and password in the login_* options.",
        )
        for place, value in (("login_db", given.get("login_db")), ("connect_params.dbname", extra.get("dbname")))
        if isinstance(value, str) and re.search(r"^\w+://|\bpassword\s*=", value)
    ]
    named = (
        "dbname" in parameters,
        "service" in parameters,
        environment.get("PGDATABASE"),
        environment.get("PGSERVICE"),
    )
    if not any(named):
        problems.append(
            Problem(
                path="login_db",
                message="nothing names the database",
                hint="Give login_db, connect_params.dbname or PGDATABASE.",
            )
        )
    if problems:
        raise Failure("manifest_invalid", problems[0].text, problems=problems)
    parameters.setdefault("fallback_application_name", "pg_access.reconcile")
    return parameters


def _wrong(place: str, value: Any) -> Optional[str]:
    """What is wrong with a value that libpq gets. It would stop reading a text at a NUL."""
    if place == "connect_params":
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return no_text(value, secret=True)
    if place in ("connect_params.dbname", "connect_params.user") and not isinstance(value, str):
        return no_text(value)
    try:
        (check_name if place == "session_role" else check_text)(str(value))
    except Refused as exc:
        return str(exc)
    return None


def _known_parameters() -> FrozenSet[str]:
    """The parameters that this libpq has. Others would be taken for arguments of psycopg's own."""
    if PSYCOPG_PROBLEM is not None:
        return frozenset()
    return frozenset(option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults())


def clean_environment(environment: MutableMapping[str, str]) -> None:
    """Take out of the environment what only looks given: empty PG* variables, and a root certificate in an empty file.

    AWX sets a variable for every field of a credential, also for those left empty.
    """
    for name in [name for name in environment if name.startswith("PG") and environment[name] == ""]:
        del environment[name]
    certificate = environment.get("PGSSLROOTCERT")
    if certificate and certificate != "system":
        try:
            empty = os.path.getsize(certificate) == 0
        except OSError:
            empty = False
        if empty:
            del environment["PGSSLROOTCERT"]


def require_psycopg() -> None:
    """Raise Failure where psycopg is missing or too old."""
    if PSYCOPG_PROBLEM is not None:
        raise Failure(
            "missing_library",
            f"psycopg (version 3) is needed where the module runs and cannot be imported: {PSYCOPG_PROBLEM}. "
            "Install it there, for example with: pip install 'psycopg[binary]'",
        )
    found = tuple(int(part) for part in psycopg.__version__.split(".")[:3] if part.isdigit())
    if found < OLDEST_PSYCOPG:
        wanted = ".".join(str(part) for part in OLDEST_PSYCOPG)
        raise Failure("library_too_old", f"psycopg {psycopg.__version__} is too old: {wanted} or later is needed")


def connect(
    options: Mapping[str, Any], mask: Callable[[str], str] = str, place: Mapping[str, Any] = MappingProxyType({})
) -> Connection[Any]:
    """A connection for the module's options. Transactions are begun by hand, and nothing is prepared. ``mask`` takes
    secrets out of what libpq says. ``place``: libpq's parameters that win over every other source.

    Raises Failure: ``connection_failed``, ``authentication_failed``, ``unsupported_version``. With a ``place`` its
    message is only what libpq says.
    """
    require_psycopg()
    clean_environment(os.environ)
    # psycopg logs to standard error what it also raises when a pipeline ends early.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    parameters = {**connection_parameters(options, os.environ), **place}
    try:
        connection = psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)
    except (psycopg.Error, ValueError, OverflowError) as exc:
        # psycopg resolves host names itself, and Python refuses some of them.
        # Only libpq's own words; they name host, port and user, never the password.
        from .advice import advice, sentences

        message = mask(sentences(mask(str(exc))))
        code, hint = advice(message)
        if place:
            raise Failure(code, message.rstrip(".")) from None
        raise Failure(code, f"Cannot connect: {message} {hint}") from None
    version = connection.info.server_version // 10000
    if version < OLDEST_SERVER:
        connection.close()
        raise Failure(
            "unsupported_version", f"This server is PostgreSQL {version}; {OLDEST_SERVER} or later is needed."
        )
    accept_any_bytes(connection)
    return connection


def place_of(connection: Connection[Any]) -> Dict[str, Any]:
    """The parameters that lead to the very server of a connection, where its host is a list, or a name with several
    addresses, or comes from a service or the environment.
    """
    info = connection.info
    found = {"host": info.host, "hostaddr": info.hostaddr, "port": info.port}
    return {name: value for name, value in found.items() if value}


def accept_any_bytes(connection: Connection[Any]) -> None:
    """Let names through that are not UTF-8: a cluster's roles are shared by databases of different encodings.

    Each byte that does not fit becomes one surrogate, which goes back as that byte.
    """

    class Text(psycopg.adapt.Loader):
        def load(self, data: Any) -> str:
            return bytes(data).decode("utf-8", "surrogateescape")

    for name in ("text", "name"):
        connection.adapters.register_loader(name, Text)


def is_private(connection: Connection[Any]) -> bool:
    """Whether nobody on a network can read along: an encrypted connection, a Unix socket, or the loopback address."""
    if connection.pgconn.ssl_in_use:
        return True
    host = connection.info.host
    if not host or host.startswith(("/", "@")):
        return True
    try:
        return ipaddress.ip_address(connection.info.hostaddr or host).is_loopback
    except ValueError:
        return False


def address(connection: Connection[Any]) -> str:
    """Where a connection leads, as warnings begin: ``<database>@<host or socket>:<port>``."""
    info = connection.info
    return f"{info.dbname}@{info.host or info.hostaddr or 'local'}:{info.port}"
