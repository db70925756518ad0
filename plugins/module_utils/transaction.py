# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The one transaction of a run: opened and pinned, in its turn, and committed so that the outcome is known.

The transactions in other databases are made of the same parts.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple

try:
    import psycopg
except ImportError:  # the module reports the missing library before it gets here
    pass

from . import catalog
from .diff.passwords import PasswordOptions
from .failure import Failure
from .problems import Problem
from .sending import failure_of, send
from .state import State

if TYPE_CHECKING:
    from psycopg import Connection

# A GRANT or REVOKE that the executor may not give is answered with one of these warnings and nothing else.
_FUTILE = {"01006", "01007"}

#: Settings of the transaction, whatever the role, the database or the pooler has set. Nothing outlives the transaction.
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

#: Seconds: PostgreSQL keeps milliseconds as a signed 32-bit number.
LONGEST_WAIT = 2147483

#: How long to ask what became of a transaction.
OUTCOME_SECONDS = 10

#: The advisory lock of the turn, in the space of two keys: "pgar" and "turn" as ASCII.
TURN = (0x70676172, 0x7475726E)


@dataclass(frozen=True)
class Settings:
    """How a run is run, beside the policy options.

    ``lock_timeout``: seconds to wait for the turn. ``statement_timeout``: seconds, 0 for none. ``key_file``: where a
    fingerprint key is to be made. ``reconnect`` opens a second connection, after the first was lost, and ``connect_to``
    one to another database of the same server, by its name. ``seen`` is told the state, whatever becomes of the run.
    """

    check_mode: bool = False
    rehearse: bool = False
    session_role: Optional[str] = None
    lock_timeout: int = 30
    statement_timeout: int = 0
    passwords: PasswordOptions = field(default_factory=PasswordOptions)
    key_file: Optional[str] = None
    expected_system_identifier: Optional[str] = None
    expected_digest: Optional[str] = None
    max_drops: Optional[int] = None
    max_revokes: Optional[int] = None
    reconnect: Optional[Callable[[], Any]] = None
    connect_to: Optional[Callable[[str], Any]] = None
    seen: Callable[[State], None] = lambda _state: None

    @property
    def writes(self) -> bool:
        """Whether statements are sent that write, be it to roll them back afterwards."""
        return self.rehearse or not self.check_mode


def is_standby(connection: Connection[Any]) -> bool:
    """Whether the server said at the start that it is one; BEGIN READ WRITE would fail there."""
    return connection.info.parameter_status("in_hot_standby") == "on"


def begin(connection: Connection[Any], settings: Settings) -> None:
    """Open the transaction and pin every setting that could change what statements mean: one round trip."""
    if settings.writes:
        # Read committed, so that verification sees what other sessions did as well.
        access = "READ ONLY" if is_standby(connection) else "READ WRITE"
        opening = [f"BEGIN ISOLATION LEVEL READ COMMITTED {access}"]
    else:
        # One snapshot for the whole plan; nothing that writes is sent.
        opening = ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"]
    opening += [f"SET LOCAL {name} = {value}" for name, value in PINS.items()]
    if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
        # There the server would refuse to send what is not valid in the client's encoding.
        opening.append("SET LOCAL client_encoding = 'SQL_ASCII'")
    if connection.info.server_version >= 170000:
        opening.append("SET LOCAL transaction_timeout = 0")
    session_role = psycopg.sql.Identifier(settings.session_role) if settings.session_role else psycopg.sql.SQL("NONE")
    opening.append(psycopg.sql.SQL("SET LOCAL ROLE {}").format(session_role).as_string(None))
    opening += _waits(settings)
    try:
        send(connection, opening)
    except Failure as failure:
        if settings.session_role and failure.sqlstate in ("22023", "42501", "42704"):
            code = "insufficient_privilege" if failure.sqlstate == "42501" else "object_missing"
            message = f"Cannot become session_role {settings.session_role}: {failure.message}"
            hint = "The login must be a member of session_role, from PostgreSQL 16 on with the SET option."
            problem = Problem(path="session_role", role=settings.session_role, message=message, hint=hint, code=code)
            raise Failure(
                code,
                message,
                problems=[problem],
                sqlstate=failure.sqlstate,
                statement=failure.statement,
                hint=hint,
            ) from None
        raise


def _waits(settings: Settings) -> List[str]:
    return [
        f"SET LOCAL lock_timeout = '{STATEMENT_LOCK_TIMEOUT}s'",
        f"SET LOCAL statement_timeout = {settings.statement_timeout * 1000}",
    ]


def take_turn(connection: Connection[Any], settings: Settings) -> None:
    """Wait until no other run in this database is between its inspection and its commit: one round trip.

    The lock is one of the transaction, so it goes with it, through a pooler too. Raises Failure.
    """
    wait = [f"SET LOCAL lock_timeout = '{settings.lock_timeout}s'", "SET LOCAL statement_timeout = 0"]
    lock = f"SELECT pg_advisory_xact_lock({TURN[0]}, {TURN[1]})"
    try:
        send(connection, [*wait, lock, *_waits(settings)])
    except Failure as failure:
        if failure.code != "lock_timeout":
            raise
        connection.execute("ROLLBACK")
        holder = catalog.read_turn_holder(connection, TURN)
        who = f", taken by {holder}" if holder else ""
        raise Failure(
            "lock_timeout",
            f"Another run has had the turn in this database for more than {settings.lock_timeout} seconds{who}",
            sqlstate=failure.sqlstate,
            hint="Run again when it is done, or wait longer with lock_timeout.",
        ) from None


def with_blockers(connection: Connection[Any], failure: Failure, objects: Sequence[int]) -> Failure:
    """A statement's lock timeout with the sessions that were in the way, as far as they still are. Ends the
    transaction.
    """
    connection.execute("ROLLBACK")
    holders = catalog.read_lock_holders(connection, objects)
    if not holders:
        return failure
    return failure.with_message(f"{failure.message}. In the way: {'; '.join(holders)}")


def _is_about_plpgsql(diagnostic: Any) -> bool:
    """Whether PL/pgSQL, loaded to hide a password, only complains about somebody's setting ``plpgsql.something``."""
    found = diagnostic.sqlstate in ("42602", "42704", "22023")
    return found and '"plpgsql.' in (diagnostic.message_primary or "")


def run(connection: Connection[Any], sql: Sequence[str], replaced: Mapping[str, str], objects: Sequence[int]) -> None:
    """Run the plan's statements. A warning from the server that nobody expects is a failure like an error.

    ``replaced``: as for ``send``. ``objects``: the OIDs of what the statements name, to say afterwards who held them.
    """
    warnings: List[Tuple[str, str]] = []

    def note(diagnostic: Any) -> None:
        if diagnostic.severity_nonlocalized == "WARNING" and not _is_about_plpgsql(diagnostic):
            warnings.append((diagnostic.sqlstate or "", diagnostic.message_primary or ""))

    connection.add_notice_handler(note)
    try:
        send(connection, sql, plan=True, replaced=replaced)
    except Failure as failure:
        raise with_blockers(connection, failure, objects) if failure.code == "lock_timeout" else failure from None
    finally:
        connection.remove_notice_handler(note)
    if warnings:
        sqlstate, message = warnings[0]
        futile = sqlstate in _FUTILE
        # A membership that another session has taken away meanwhile.
        collision = sqlstate == "01000"
        raise Failure(
            "insufficient_privilege" if futile else "collision" if collision else "server_error",
            f"The server answered the plan with a warning, so it was rolled back: {message}",
            problems=[Problem(message=f"{state}: {words}", code="server_error") for state, words in warnings],
            sqlstate=sqlstate,
            hint="The executor must own the object, or hold the privilege with grant option." if futile else None,
            plan=list(sql),
        )


@contextmanager
def ending(connection: Connection[Any]) -> Iterator[None]:
    """End the transaction whatever happens, and put errors of the server into the module's terms."""
    try:
        yield
    except psycopg.Error as exc:
        raise failure_of(exc, connection, None, None) from None
    finally:
        if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            try:
                connection.execute("ROLLBACK")
            except psycopg.Error:
                # The connection broke; the server rolls back by itself.
                connection.close()


def commit(connection: Connection[Any], settings: Settings, *, asked: bool) -> List[str]:
    """Commit. Where the connection breaks meanwhile, ask a new one what became of the transaction.

    ``asked``: somebody wants to know, because a plan was run. Returns a warning where the answer came that way. Raises
    Failure.
    """
    transaction: Optional[str] = None
    if asked:
        row = connection.execute("SELECT pg_current_xact_id_if_assigned()::text").fetchone()
        transaction = row[0] if row else None
    try:
        connection.execute("COMMIT")
    except psycopg.Error as exc:
        if not connection.closed:
            raise failure_of(exc, connection, "COMMIT", None) from None
    else:
        return []
    if not asked:
        return []
    outcome = _outcome(transaction, settings)
    if outcome == "committed":
        return ["the connection broke during COMMIT; asked again, the server says that the transaction was committed"]
    if outcome == "aborted":
        raise Failure(
            "connection_failed", "The connection broke during COMMIT, and its transaction was not applied: run again."
        )
    raise Failure(
        "outcome_unknown",
        "The connection broke during COMMIT, and the server does not say what became of the transaction. Run again: if "
        "it was committed, the next run has nothing to do.",
    )


def _outcome(transaction: Optional[str], settings: Settings) -> Optional[str]:
    """``committed``, ``aborted``, or None where nobody can tell."""
    if transaction is None or settings.reconnect is None:
        return None
    try:
        connection = settings.reconnect()
    except Failure:
        return None
    try:
        for _second in range(OUTCOME_SECONDS):
            row = connection.execute("SELECT pg_xact_status(%s::xid8)", [transaction]).fetchone()
            if row and row[0] in ("committed", "aborted"):
                return str(row[0])
            time.sleep(1)  # the server has not noticed yet that the first connection is gone
        return None
    except psycopg.Error:
        return None
    finally:
        connection.close()
