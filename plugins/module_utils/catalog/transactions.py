# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Asking what a commit means: what became of a transaction, on which server, whether a COMMIT waits, and whether the
login may come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Tuple

from .queries import SYSTEM_IDENTIFIER, fetch

if TYPE_CHECKING:
    from psycopg import Connection

    from .queries import Query

# The permissions come first, because a query that calls a function is refused as a whole.
_IDENTITY = """
SELECT pg_catalog.pg_is_in_recovery(),
       pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE'),
       pg_catalog.has_function_privilege('pg_catalog.pg_walfile_name(pg_catalog.pg_lsn)', 'EXECUTE')
           AND pg_catalog.has_function_privilege('pg_catalog.pg_current_wal_lsn()', 'EXECUTE')
"""
_TIMELINE = "SELECT pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)"

# Without pg_read_all_stats a login sees that there are standbys, not which ones count.
_SYNCHRONOUS = """
SELECT EXISTS (SELECT FROM pg_stat_get_wal_senders() WHERE sync_state IS NULL OR sync_state IN ('sync', 'quorum'))
"""


def read_access(connection: Connection[Any], session_role: Optional[str]) -> Tuple[bool, bool]:
    """Whether the login may still connect to this database, and still set its session role: one round trip."""
    right = "SET" if connection.info.server_version >= 160000 else "MEMBER"
    query = f"""
        SELECT has_database_privilege(session_user, current_database(), 'CONNECT'),
               %s::text IS NULL OR pg_has_role(session_user, %s::text, '{right}')
    """
    (rows,) = fetch(connection, [(query, (session_role, session_role))])
    return bool(rows[0][0]), bool(rows[0][1])


def read_fate(connection: Connection[Any], transaction: str) -> Optional[str]:
    """What became of a transaction of this server, as ``pg_xact_status`` says it: one round trip."""
    (rows,) = fetch(connection, [("SELECT pg_catalog.pg_xact_status(%s::pg_catalog.xid8)", (transaction,))])
    return None if rows[0][0] is None else str(rows[0][0])


def read_identity(connection: Connection[Any]) -> Optional[Tuple[str, ...]]:
    """What tells this server's numbers of transactions from those of another: the cluster's identifier and the
    timeline, which is a new one after each promotion. As far as the login may ask; None on a standby. Two round trips,
    before settings are pinned, too.
    """
    return read_transaction(connection)[1]


def read_transaction(connection: Connection[Any]) -> Tuple[Optional[str], Optional[Tuple[str, ...]]]:
    """The number of the running transaction, None while it has written nothing, and whose number that is, as
    ``read_identity`` says it: two round trips.
    """
    number_of = "SELECT pg_catalog.pg_current_xact_id_if_assigned()::text"
    numbers, rows = fetch(connection, [(number_of, ()), (_IDENTITY, ())])
    number = None if numbers[0][0] is None else str(numbers[0][0])
    standby, *permitted = rows[0]
    if standby:
        return number, None
    queries: List[Query] = [(query, ()) for query, may in zip((SYSTEM_IDENTIFIER, _TIMELINE), permitted) if may]
    return number, tuple(str(answer[0][0]) for answer in fetch(connection, queries)) if queries else ()


def read_synchronous(connection: Connection[Any]) -> bool:
    """Whether a standby that COMMIT waits for is attached, or may be for all that the login sees: one round trip."""
    (rows,) = fetch(connection, [(_SYNCHRONOUS, ())])
    return bool(rows[0][0])
