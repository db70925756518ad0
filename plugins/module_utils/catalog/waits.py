# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Asking who is in the way, after a wait that was too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple

from .queries import fetch

if TYPE_CHECKING:
    from psycopg import Connection

# A login without pg_read_all_stats sees other sessions' user and application, not what they run.
_SESSION = """
'session ' || a.pid || ' of ' || coalesce(quote_ident(a.usename), 'an unknown role')
    || coalesce(', application ' || nullif(a.application_name, ''), '')
    || coalesce(', since ' || date_trunc('second', coalesce(a.xact_start, a.backend_start)), '')
    || CASE a.wait_event WHEN 'SyncRep' THEN ', waits for a synchronous standby (SyncRep)' ELSE '' END
"""

_TURN_HOLDER = f"""
SELECT {_SESSION}
FROM pg_locks AS l
JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.classid = %s AND l.objid = %s AND l.objsubid = 2
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

# GRANT waits for locks on relations, and for whoever has changed the same row of the catalog and not committed: that
# transaction is the row's xmax. REASSIGN OWNED and DROP OWNED wait for every lock on what a role owns. Where none of it
# is seen (a row of pg_authid, a subtransaction) the sessions with open writes are named, one of which it must be.
_LOCK_HOLDERS = f"""
WITH named AS (SELECT unnest(%s::oid[]) AS oid), changed AS (
    SELECT c.oid::regclass::text AS name, c.xmax AS xid FROM pg_class AS c JOIN named USING (oid)
    UNION ALL SELECT p.oid::regprocedure::text, p.xmax FROM pg_proc AS p JOIN named USING (oid)
    UNION ALL SELECT 'type ' || t.oid::regtype, t.xmax FROM pg_type AS t JOIN named USING (oid)
    UNION ALL SELECT 'schema ' || quote_ident(n.nspname), n.xmax FROM pg_namespace AS n JOIN named USING (oid)
    UNION ALL SELECT 'database ' || quote_ident(d.datname), d.xmax FROM pg_database AS d JOIN named USING (oid)
), known AS (
    SELECT {_SESSION} || ', holds ' || l.mode || ' on ' || l.relation::regclass AS who
    FROM pg_locks AS l
    JOIN pg_stat_activity AS a ON a.pid = l.pid
    WHERE l.locktype = 'relation' AND l.granted AND l.pid <> pg_backend_pid()
      AND (l.relation IN (SELECT oid FROM named)
               AND l.mode IN ('AccessExclusiveLock', 'ExclusiveLock', 'ShareRowExclusiveLock')
           OR l.relation IN (SELECT c.oid FROM pg_class AS c WHERE c.relowner IN (SELECT oid FROM named)))
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    UNION SELECT {_SESSION} || ', has changed ' || c.name
    FROM changed AS c
    JOIN pg_stat_activity AS a ON a.backend_xid = c.xid
)
(SELECT who FROM known ORDER BY who LIMIT 5)
UNION ALL
(SELECT {_SESSION} || ', has not committed what it wrote'
 FROM pg_stat_activity AS a
 WHERE a.backend_xid IS NOT NULL AND a.pid <> pg_backend_pid() AND a.xact_start < now() - interval '2 s'
   AND NOT EXISTS (SELECT FROM known)
 ORDER BY a.xact_start LIMIT 5)
"""


def read_turn_holder(connection: Connection[Any], turn: Tuple[int, int]) -> Optional[str]:
    """The session that holds an advisory lock of this database, in words: one look at the lock table."""
    (rows,) = fetch(connection, [(_TURN_HOLDER, turn)])
    return str(rows[0][0]) if rows else None


def read_lock_holders(connection: Connection[Any], objects: Sequence[int]) -> List[str]:
    """The sessions that lock one of these objects or have changed it, or else all with open writes, in words: one round
    trip. Among the objects can be roles: whatever they own may be locked in no way then.
    """
    (rows,) = fetch(connection, [(_LOCK_HOLDERS, (list(objects),))])
    return [str(row[0]) for row in rows]
