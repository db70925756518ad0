# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Statements on their way to the server, and what it refuses, in the module's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Generator, List, Mapping, Optional, Sequence

try:
    import psycopg
except ImportError:  # the module reports the missing library before it gets here
    pass

from .failure import Failure
from .problems import Problem

if TYPE_CHECKING:
    from psycopg import Connection

# Raised by a statement of a checked plan, these mean that another session changed the same things at the same time.
_COLLISIONS = frozenset({"XX000", "23505", "40001", "40P01", "42710", "42704", "42P01", "42883", "3F000", "0LP01"})
# These mean it everywhere: deadlocks, and the queries that a standby cancels because they are in the way of replay.
_ALWAYS_COLLISIONS = frozenset({"40001", "40P01"})
COLLISION = "Another session changed the same things at the same time, run again: {}"
#: What helps where the run may not even look.
READS = "The login has to read PostgreSQL's catalogs, as PUBLIC may at first: grant to the login what PUBLIC has lost."
_CODES = {
    "42501": "insufficient_privilege",
    "2BP01": "dependent_privileges",
    "55P03": "lock_timeout",
    "25006": "read_only_server",
    "53200": "too_many_locks",
}


#: What the server says of a statement without refusing it: the statement as it is shown, and the diagnostic.
Heard = Callable[[str, Any], None]


def send(
    connection: Connection[Any],
    sql: Sequence[str],
    *,
    plan: bool = False,
    replaced: Optional[Mapping[str, str]] = None,
    heard: Optional[Heard] = None,
) -> None:
    """Send statements in one round trip. A refused one is reported with the text that is shown.

    ``plan``: they are the plan's. ``replaced``: what is sent in the place of a statement that only is to be shown.
    ``heard`` is told of every notice, with its statement. Raises Failure.
    """
    hides = replaced or {}
    at = 0  # the statement whose answer is next

    def note(diagnostic: Any) -> None:
        if heard is not None and at < len(sql):
            heard(sql[at], diagnostic)

    connection.add_notice_handler(note)
    try:
        texts = [hides.get(statement, statement).encode("utf-8", "surrogateescape") for statement in sql]
        first: Optional[psycopg.Error] = None

        def answered(refused: Optional[psycopg.Error]) -> None:
            nonlocal at, first
            first = first or refused
            if first is None:
                at += 1

        if psycopg.Pipeline.is_supported():
            # It also cancels what runs where a signal ends the run.
            connection.wait(_conversation(connection, texts, answered))
        else:
            for text in texts:
                connection.cursor().execute(text)
                answered(None)
        if first is not None:
            raise first
    except psycopg.Error as exc:
        raise failure_of(exc, connection, sql[at] if at < len(sql) else None, list(sql) if plan else None) from None
    finally:
        connection.remove_notice_handler(note)


def _conversation(
    connection: Connection[Any], texts: Sequence[bytes], answered: Callable[[Optional[psycopg.Error]], None]
) -> Generator[Any, Any, None]:
    """Send statements in one round trip, as a generator for ``Connection.wait``. ``answered`` is told of each in turn:
    None, or why the server refused it; after a refusal the server looks at no others, and they are told as refused too.

    By hand, and not with psycopg's pipeline, because that takes several answers at once: a notice that arrives between
    two of them could belong to either. Raises psycopg.Error where the connection breaks.
    """
    pgconn, status, wait, ready = connection.pgconn, psycopg.pq.ExecStatus, psycopg.waiting.Wait, psycopg.waiting.Ready
    pgconn.enter_pipeline_mode()
    for text in texts:
        pgconn.send_query_params(text, None)
    pgconn.pipeline_sync()
    refused: Optional[psycopg.Error] = None
    done = False
    while not done:
        # Answers are read while statements go out: else both sides could wait for ever.
        more = pgconn.flush()
        happened = yield wait.RW if more else wait.R
        if not happened & ready.R:
            continue
        pgconn.consume_input()
        # Whether there is a whole answer. Notices before it have been heard by then, and none of those after it.
        while not done and not pgconn.is_busy():
            result = pgconn.get_result()
            if result is None:
                answered(refused)
            elif result.status == status.PIPELINE_SYNC:
                done = True
            elif result.status == status.FATAL_ERROR:
                refused = psycopg.errors.error_from_result(result, encoding=connection.info.encoding)
    pgconn.exit_pipeline_mode()


def failure_of(
    exc: psycopg.Error, connection: Connection[Any], statement: Optional[str], plan: Optional[List[str]]
) -> Failure:
    """A server's refusal in the module's terms. Only the parts of it that carry no parameters or context are taken."""
    if exc.sqlstate is None or connection.closed:
        # Why a session was ended stands in the server's last words, where they arrived.
        last = f" ({exc.diag.message_primary})" if exc.diag.message_primary else ""
        message = f"The connection to the server was lost{last}; its transaction is not applied."
        return Failure("connection_failed", message, sqlstate=exc.sqlstate, plan=plan)
    code = _CODES.get(exc.sqlstate, "server_error")
    if exc.sqlstate == "2BP01" and statement is not None and statement.startswith("DROP "):
        code = "drop_blocked"
    if exc.sqlstate in (_COLLISIONS if plan is not None else _ALWAYS_COLLISIONS):
        code = "collision"
    message = exc.diag.message_primary or "The server refused a statement"
    # What a block raises anew has empty texts where there were none.
    hint = exc.diag.message_hint or None
    if code == "lock_timeout":
        message = f"Another session holds a lock that the plan has waited 3 seconds for: {message}"
        hint = "Run again when that session, likely one that changes tables, is done."
    if code == "insufficient_privilege" and statement is None:
        hint = hint or READS
    if code == "collision":
        message = COLLISION.format(message)
    return Failure(
        code,
        message,
        problems=[Problem(message=message, hint=hint, code=code)],
        sqlstate=exc.sqlstate,
        statement=statement,
        detail=exc.diag.message_detail or None,
        hint=hint,
        plan=plan,
    )
