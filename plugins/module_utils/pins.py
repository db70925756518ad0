# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Settings that a transaction pins, whatever the role, the database or the pooler has set."""

from __future__ import annotations

from typing import List, Mapping, Optional

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

#: Settings of the transaction. Nothing outlives it.
PINS: Mapping[str, str] = {
    "search_path": "pg_catalog, pg_temp",
    "DateStyle": "'ISO, MDY'",
    "IntervalStyle": "postgres",
    "TimeZone": "'UTC'",
    "standard_conforming_strings": "on",
    "quote_all_identifiers": "off",
    "client_encoding": "'UTF8'",
    "bytea_output": "hex",
    "array_nulls": "on",
    # These write the tree of a statement to the log, and so the secret in it.
    "debug_print_parse": "off",
    "debug_print_rewritten": "off",
    "debug_print_plan": "off",
    "client_min_messages": "warning",
    "idle_in_transaction_session_timeout": "0",
}

#: Seconds that a single statement waits for a lock, so that a run never queues long in front of an application.
STATEMENT_LOCK_TIMEOUT = 3

#: The advisory lock of the turn, in the space of two keys: "pgar" and "turn" as ASCII.
TURN = (0x70676172, 0x7475726E)


def pins(version: int, *, sql_ascii: bool = False) -> List[str]:
    """The statements that pin settings. ``sql_ascii``: the server's encoding is SQL_ASCII."""
    settings = dict(PINS)
    if sql_ascii:
        # There the server would refuse to send what is not valid in the client's encoding.
        settings["client_encoding"] = "'SQL_ASCII'"
    if version >= 17:
        settings["transaction_timeout"] = "0"
    return [f"SET LOCAL {name} = {value}" for name, value in settings.items()]


def set_role(session_role: Optional[str]) -> str:
    """The statement that sets the role of the run."""
    role = sql.Identifier(session_role) if session_role else sql.SQL("NONE")
    return str(sql.SQL("SET LOCAL ROLE {}").format(role).as_string(None))


def waits(statement_timeout: int) -> List[str]:
    """How long statements may wait and run. ``statement_timeout``: seconds, 0 for no limit."""
    return [
        f"SET LOCAL lock_timeout = '{STATEMENT_LOCK_TIMEOUT}s'",
        f"SET LOCAL statement_timeout = {statement_timeout * 1000}",
    ]


def turn(seconds: int) -> List[str]:
    """The statements that wait until no other run is at work in the database."""
    return [
        f"SET LOCAL lock_timeout = '{seconds}s'",
        "SET LOCAL statement_timeout = 0",
        f"SELECT pg_advisory_xact_lock({TURN[0]}, {TURN[1]})",
    ]
