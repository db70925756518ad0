# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What the queries have in common: how they are sent, and how sessions and ACLs come back.

All of them rely on the pinned ``search_path``, which also makes ``format_type`` qualify what lies elsewhere.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Tuple

from ..state import Acl, Entry

if TYPE_CHECKING:
    from psycopg import Connection

    Query = Tuple[str, Sequence[Any]]

#: An ACL as JSON, one list for each entry.
EXPLODED = """(
    SELECT json_agg(json_build_array(e.grantee::int8, e.privilege_type, e.grantor::int8, e.is_grantable))::text
    FROM aclexplode({acl}) AS e
)"""

#: What an open session is called. Every login may see whose a session is, its database and its application.
SESSION = """'session ' || pid || coalesce(' in database ' || datname, '')
    || coalesce(', application ' || nullif(application_name, ''), '')"""

SYSTEM_IDENTIFIER = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()"


@contextlib.contextmanager
def pipelined(connection: Connection[Any]) -> Iterator[None]:
    """Send what follows in one round trip, or one by one where libpq has no pipeline mode (before 14)."""
    from psycopg import Pipeline

    if not Pipeline.is_supported():
        yield
        return
    with connection.pipeline():
        yield


def fetch(connection: Connection[Any], queries: Sequence[Query]) -> List[List[Tuple[Any, ...]]]:
    """The rows of several queries, in one round trip."""
    cursors = [connection.cursor() for _query in queries]
    with pipelined(connection):
        for cursor, (query, parameters) in zip(cursors, queries):
            cursor.execute(query, parameters or None)
    return [cursor.fetchall() for cursor in cursors]


class Acls:
    """Exploded ACLs, each different one decoded once."""

    def __init__(self) -> None:
        self._known: Dict[Tuple[Optional[str], bool], Acl] = {}

    def __call__(self, text: Optional[str], explicit: bool = True) -> Acl:
        key = (text, explicit)
        if key not in self._known:
            entries = frozenset(Entry(*item) for item in json.loads(text)) if text else frozenset()
            self._known[key] = Acl(entries, explicit)
        return self._known[key]
