# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""After the commit: the sessions of the roles that are gone are ended. Nothing here fails a run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from .changes import DropRole, Plan
from .failure import Failure
from .records import replace
from .transaction import Settings, begin, ending

if TYPE_CHECKING:
    from psycopg import Connection

#: How long sessions have to end, in seconds. One that is busy ends at its next look at interrupts.
SECONDS = 5

#: Seconds between two looks at them.
INTERVAL = 0.05

# The role is gone, so only its OID finds them. Whoever had logged in just before the commit is found by a later look.
_END = """
SELECT usesysid::int8, pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE usesysid = ANY(%s::oid[]) AND pid <> pg_backend_pid()
"""


def end_sessions(connection: Connection[Any], plan: Plan, settings: Settings) -> List[str]:
    """End the sessions of dropped roles, wherever they are connected, and wait a moment until they are gone.

    Returns warnings: about sessions that are still there, or about what kept the run from ending them. One round trip
    where there are none.
    """
    roles = {c.role.oid: c.role.name for c in plan.changes if isinstance(c, DropRole) and c.terminate}
    if not roles:
        return []
    fresh: Optional[Connection[Any]] = None
    try:
        if connection.closed and settings.reconnect is not None:
            # It broke during COMMIT.
            connection = fresh = settings.reconnect()
        left = _end(connection, roles, settings)
    except Failure as failure:
        why = "the connection was lost" if failure.code == "connection_failed" else failure.message
        return [f"the sessions of {', '.join(sorted(roles.values()))}, dropped by this run, could not be ended: {why}"]
    finally:
        if fresh is not None:
            fresh.close()
    return [
        f"{count} session{'s' if count > 1 else ''} of {roles[oid]}, dropped by this run, "
        f"{'have' if count > 1 else 'has'} not ended within {SECONDS} seconds"
        for oid, count in left.items()
    ]


def _end(connection: Connection[Any], roles: Dict[int, str], settings: Settings) -> Dict[int, int]:
    """How many sessions of each role are left, none without a role that has some."""
    last = time.monotonic() + SECONDS
    while True:
        # Each look is a transaction of its own: the server shows sessions as they were at the first look of one. The
        # pins count here too, and the session role, which may be the one with the right to end sessions.
        with ending(connection):
            begin(connection, replace(settings, check_mode=True, rehearse=False))
            found = connection.execute(_END, [list(roles)]).fetchall()
        if not found:
            return {}
        if time.monotonic() > last:
            left: Dict[int, int] = {}
            for oid, _signalled in found:
                left[oid] = left.get(oid, 0) + 1
            return left
        time.sleep(INTERVAL)
