# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What to do where no connection came about: libpq's own words as sentences, and advice that fits them."""

from __future__ import annotations

import re
from typing import Mapping, Sequence, Tuple

#: What the credential of the role awx_job_template calls the options.
FIELDS: Mapping[str, str] = {
    "login_host": "Host",
    "login_port": "Port",
    "login_db": "Database",
    "login_user": "User",
    "login_password": "Password",
    "ssl_mode": "TLS mode",
    "ca_cert": "CA certificates",
}

#: Words of libpq or the server (a pattern), the code, what to do, and the options that are about it. The first that
#: fits counts. The phase of connecting hands out no SQLSTATE.
_CAUSES: Sequence[Tuple[str, str, str, Tuple[str, ...]]] = (
    (
        r"no password supplied",
        "authentication_failed",
        "The server asks for a password, and none was given: give login_password",
        ("login_password",),
    ),
    (
        r"password authentication failed",
        "authentication_failed",
        "Check login_user and login_password",
        ("login_user", "login_password"),
    ),
    (
        r"pg_hba\.conf.*no encryption|pg_hba\.conf.*SSL off",
        "authentication_failed",
        "Check login_user, login_db and ssl_mode: pg_hba.conf of the server lets nobody in that way without TLS",
        ("login_user", "login_db", "ssl_mode"),
    ),
    (
        r"pg_hba\.conf",
        "authentication_failed",
        "Check login_user and login_db, or let pg_hba.conf of the server allow this user, database and address",
        ("login_user", "login_db"),
    ),
    (
        r"is not permitted to log in",
        "authentication_failed",
        "Check login_user, or give the role LOGIN",
        ("login_user",),
    ),
    (
        r"authentication failed|authentication method",
        "authentication_failed",
        "Check login_user, login_password and the server's pg_hba.conf",
        ("login_user", "login_password"),
    ),
    (r'role ".*" does not exist', "connection_failed", "Check login_user", ("login_user",)),
    (r'database ".*" does not exist', "connection_failed", "Check login_db", ("login_db",)),
    (
        r"service file|definition of service",
        "connection_failed",
        "Check PGSERVICE or connect_params.service, and the service file (PGSERVICEFILE) where the module runs",
        (),
    ),
    (
        r"does not support SSL",
        "connection_failed",
        "The server has no TLS: switch it on there (ssl = on). An ssl_mode that does without, such as disable, is for "
        "networks that nobody else can listen to",
        ("ssl_mode",),
    ),
    (
        r"root certificate file",
        "connection_failed",
        "Give ca_cert, a file where the module runs, or system for the authorities that are trusted there",
        ("ca_cert",),
    ),
    (r"sslmode", "connection_failed", "Check ssl_mode", ("ssl_mode",)),
    (
        r"certificate verify failed|does not match host name",
        "connection_failed",
        "Check ca_cert, and that login_host is a name in the server's certificate",
        ("ca_cert", "login_host"),
    ),
    (
        r"invalid port number|integer value .* for connection option .?port",
        "connection_failed",
        "Check login_port, which is a number from 1 to 65535",
        ("login_port",),
    ),
    (
        r"timeout|timed out|No route to host|unreachable",
        "connection_failed",
        "Nothing answers there: check login_host, login_port and the firewalls on the way",
        ("login_host", "login_port"),
    ),
    (
        r"on socket",
        "connection_failed",
        "Without login_host the connection goes to a socket on the machine that the module runs on: check login_host, "
        "or login_unix_socket and login_port, and that the server is running",
        ("login_host", "login_port"),
    ),
    (
        r"Connection refused",
        "connection_failed",
        "The machine is there and no server listens: check login_host, login_port and that the server is running",
        ("login_host", "login_port"),
    ),
    (
        r"translate host name|resolve host|Name or service not known|nodename nor servname|encoding with 'idna'",
        "connection_failed",
        "Check login_host: nobody knows that name where the module runs",
        ("login_host",),
    ),
    (
        r"starting up|shutting down|recovery mode|too many clients|connection slots|too many connections",
        "connection_failed",
        "Run again when the server accepts connections",
        (),
    ),
)

_OTHERWISE = (
    "connection_failed",
    "Check login_host, login_port, login_db and that the server is running",
    ("login_host", "login_port", "login_db"),
)


def sentences(text: str) -> str:
    """Lines of libpq as sentences: it ends few of them with a full stop."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return " ".join(line if line[-1] in ".?!:;," else f"{line}." for line in lines)


def advice(message: str) -> Tuple[str, str]:
    """The error code for what libpq said, and what to do."""
    found = next((cause[1:] for cause in _CAUSES if re.search(cause[0], message)), _OTHERWISE)
    code, text, options = found
    fields = [FIELDS[name] for name in options]
    if not fields:
        return code, f"{text}."
    listed = fields[0] if len(fields) == 1 else f"{', '.join(fields[:-1])} and {fields[-1]}"
    return code, f"{text} (AWX's credential: {listed})."
