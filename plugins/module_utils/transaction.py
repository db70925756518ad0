# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The one transaction of a run: opened and pinned, in its turn, and committed so that the outcome is known.

The transactions in other databases are made of the same parts.
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .records import dataclass, field

try:
    import psycopg
except ImportError:  # the module reports the missing library before it gets here
    pass

from .catalog.transactions import read_fate, read_identity, read_transaction
from .diff.passwords import PasswordOptions
from .failure import Failure
from .interruption import Interrupted
from .pins import TURN, pins, set_role, turn, waits
from .problems import Problem
from .sending import failure_of, send
from .state import State

if TYPE_CHECKING:
    from psycopg import Connection

# A GRANT or REVOKE that the executor may not give is answered with one of these warnings and nothing else.
_FUTILE = {"01006", "01007"}

_REVOKES_MEMBERSHIP = re.compile(r'REVOKE (?:(?:ADMIN|INHERIT|SET) OPTION FOR )?"')

#: A server otherwise finds out that the run was killed when the statement is done, or has waited for its turn. Only
#: where the system can tell: elsewhere the setting is refused.
_NOTICE_A_LOST_CLIENT = """
SELECT set_config('client_connection_check_interval', '2s', true)
WHERE version() ~ 'linux' AND current_setting('client_connection_check_interval', true) IS NOT NULL
"""

# A standby's answer to BEGIN READ WRITE.
_NOT_IN_RECOVERY = "0A000"

#: Seconds: PostgreSQL keeps milliseconds as a signed 32-bit number.
LONGEST_WAIT = 2147483

#: How long to ask what became of a transaction.
OUTCOME_SECONDS = 10


@dataclass(frozen=True)
class Settings:
    """How a run is run, beside the policy options.

    ``lock_timeout``: seconds to wait for the turn. ``statement_timeout``: seconds, 0 for none. ``key_file``: where a
    fingerprint key is to be made. ``reconnect`` opens a second connection, after the first was lost, and ``connect_to``
    one to another database of the same server, by its name. ``seen`` is told the state, whatever becomes of the run.
    ``where`` is the server's address for people, and ``leaks`` tells whether a text holds a secret: both for the
    scripts. ``explain``: roles to be explained, None where nobody asks; ``survey``: all of them, for a report.
    ``committing`` is called before a COMMIT; ``resume`` when the run goes on after that of another database.
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
    plan_file: Optional[str] = None
    undo_file: Optional[str] = None
    explain: Optional[Tuple[str, ...]] = None
    survey: bool = False
    where: str = ""
    leaks: Callable[[str], bool] = lambda _text: False
    reconnect: Optional[Callable[[], Any]] = None
    connect_to: Optional[Callable[[str], Any]] = None
    seen: Callable[[State], None] = lambda _state: None
    committing: Callable[[], None] = lambda: None
    resume: Callable[[], None] = lambda: None

    @property
    def writes(self) -> bool:
        """Whether statements are sent that write, be it to roll them back afterwards."""
        return self.rehearse or not self.check_mode


def begin(connection: Connection[Any], settings: Settings) -> bool:
    """Open the transaction with everything pinned, read-only on a standby. Returns whether it may write.

    One round trip. The server says at the start whether it is a standby, but a pooler hands on what it was told when
    it first connected: one question more on what seems to be a standby, and another try on what turns out to be one.
    """
    if not settings.writes:
        open_pinned(connection, settings, writes=False)
        return False
    if connection.info.parameter_status("in_hot_standby") == "on":
        row = connection.execute("SELECT pg_catalog.pg_is_in_recovery()").fetchone()
        if row and row[0]:
            open_pinned(connection, settings, writes=False)
            return False
    try:
        open_pinned(connection, settings, writes=True)
    except Failure as failure:
        if failure.sqlstate != _NOT_IN_RECOVERY:
            raise
        connection.execute("ROLLBACK")
        open_pinned(connection, settings, writes=False)
        return False
    return True


def open_pinned(connection: Connection[Any], settings: Settings, *, writes: bool) -> None:
    """Open the transaction and pin every setting that could change what statements mean: one round trip."""
    if settings.writes:
        # Read committed, so that verification sees what other sessions did as well.
        access = "READ WRITE" if writes else "READ ONLY"
        opening = [f"BEGIN ISOLATION LEVEL READ COMMITTED {access}"]
    else:
        # One snapshot for the whole plan; nothing that writes is sent.
        opening = ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"]
    sql_ascii = connection.info.parameter_status("server_encoding") == "SQL_ASCII"
    opening += pins(connection.info.server_version // 10000, sql_ascii=sql_ascii)
    opening.append(set_role(settings.session_role))
    opening += waits(settings.statement_timeout)
    opening.append(_NOTICE_A_LOST_CLIENT)
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
                detail=failure.detail,
                hint=hint,
            ) from None
        raise


def take_turn(connection: Connection[Any], settings: Settings) -> None:
    """Wait until no other run in this database is between its inspection and its commit: one round trip.

    The lock is one of the transaction, so it goes with it, through a pooler too. Raises Failure.
    """
    try:
        send(connection, [*turn(settings.lock_timeout), *waits(settings.statement_timeout)])
    except Failure as failure:
        if failure.code != "lock_timeout":
            raise
        from .catalog.waits import read_turn_holder

        connection.execute("ROLLBACK")
        holder = read_turn_holder(connection, TURN)
        who = f", taken by {holder}" if holder else ""
        raise Failure(
            "lock_timeout",
            f"Another run has had the turn in this database for more than {settings.lock_timeout} s{who}",
            sqlstate=failure.sqlstate,
            statement=failure.statement,
            hint="Run again when it is done, or wait longer with lock_timeout.",
        ) from None


def with_blockers(connection: Connection[Any], failure: Failure, objects: Sequence[int]) -> Failure:
    """A statement's lock timeout with the sessions that were in the way, as far as they still are. Ends the
    transaction.
    """
    from .catalog.waits import read_lock_holders

    connection.execute("ROLLBACK")
    holders = read_lock_holders(connection, objects)
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
    warnings: List[_Warning] = []

    def heard(statement: str, diagnostic: Any) -> None:
        if diagnostic.severity_nonlocalized == "WARNING" and not _is_about_plpgsql(diagnostic):
            names = ("sqlstate", "message_primary", "message_detail", "message_hint")
            warnings.append(_Warning(statement, *(getattr(diagnostic, name) or "" for name in names)))

    try:
        send(connection, sql, plan=True, replaced=replaced, heard=heard)
    except Failure as failure:
        raise with_blockers(connection, failure, objects) if failure.code == "lock_timeout" else failure from None
    if warnings:
        raise _warned(warnings, sql)


class _Warning(NamedTuple):
    """A warning of the server, and the statement that it answers. The diagnostic itself is gone afterwards."""

    statement: str
    sqlstate: str
    message: str
    detail: str
    hint: str


def _warned(warnings: Sequence[_Warning], sql: Sequence[str]) -> Failure:
    """The failure that the server's warnings are: that of the first statement that it warned about."""
    first = warnings[0]
    futile = first.sqlstate in _FUTILE
    # A membership that another session has taken away meanwhile. Anybody's trigger may warn by the same code.
    collision = first.sqlstate == "01000" and _REVOKES_MEMBERSHIP.match(first.statement) is not None
    code = "insufficient_privilege" if futile else "collision" if collision else "server_error"
    own = "The executor must own the object, or hold the privilege with grant option."
    return Failure(
        code,
        f"The server answered a statement with a warning, so the plan was rolled back: {first.message}",
        problems=[
            Problem(message=f"{warning.sqlstate}: {warning.message} (answer to: {warning.statement})", code=code)
            for warning in warnings
        ],
        sqlstate=first.sqlstate,
        statement=first.statement,
        detail=first.detail or None,
        hint=own if futile else first.hint or None,
        plan=list(sql),
    )


@contextmanager
def ending(connection: Connection[Any]) -> Iterator[None]:
    """End the transaction whatever happens, and put errors of the server into the module's terms."""
    try:
        yield
    except psycopg.Error as exc:
        raise failure_of(exc, connection, None, None) from None
    except Interrupted as asked:
        raise asked.failure from None
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
    identity: Optional[Tuple[str, ...]] = None
    if asked:
        transaction, identity = read_transaction(connection)
    said: List[str] = []
    connection.add_notice_handler(lambda diagnostic: said.append(diagnostic.message_primary or ""))
    settings.committing()
    try:
        with _patience(connection, settings.statement_timeout):
            connection.execute("COMMIT")
    except psycopg.Error as exc:
        if not connection.closed:
            raise failure_of(exc, connection, "COMMIT", None) from None
    else:
        return [f"the transaction is committed, but the server says: {text}" for text in said]
    if not asked:
        return []
    outcome = _outcome(transaction, identity, settings)
    if outcome == "committed":
        return ["the connection broke during COMMIT; asked again, the server says that the transaction was committed"]
    if outcome == "aborted":
        # Not "nothing": other databases may be done.
        raise Failure(
            "connection_failed", "The connection broke during COMMIT, and its transaction was not applied: run again."
        )
    raise Failure(
        "outcome_unknown",
        "The connection broke during COMMIT, and the server does not say what became of the transaction. Run again: if "
        "it was committed, the next run has nothing to do.",
    )


@contextmanager
def _patience(connection: Connection[Any], seconds: int) -> Iterator[None]:
    """Cancel what is being done after so many seconds, 0 for never. The server's own statement_timeout does not
    count while a COMMIT waits for a standby; being cancelled there, it is committed all the same, with a warning.
    """
    if not seconds:
        yield
        return

    def cancel() -> None:
        with suppress(psycopg.Error):
            connection.cancel()

    timer = threading.Timer(seconds, cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _outcome(transaction: Optional[str], identity: Optional[Tuple[str, ...]], settings: Settings) -> Optional[str]:
    """``committed``, ``aborted``, or None where nobody can tell: the new connection may lead to another server, where
    the same number is that of another transaction.
    """
    if transaction is None or settings.reconnect is None:
        return None
    deadline = time.monotonic() + OUTCOME_SECONDS
    while True:
        try:
            with settings.reconnect() as connection:
                found = read_identity(connection)
                if found not in (None, identity):
                    return None
                fate = None if found is None else read_fate(connection, transaction)
            if fate in ("committed", "aborted"):
                return fate
        except (Failure, psycopg.OperationalError) as exc:
            if isinstance(exc, Failure) and exc.code != "connection_failed":
                return None
        except psycopg.errors.InvalidParameterValue:
            # It lies in the future of a server that has crashed or was failed over to, so its COMMIT is not there.
            return "aborted"
        except psycopg.Error:
            return None
        if time.monotonic() >= deadline:
            return None
        # The server starts again, is a standby so far, or has not noticed yet that the first connection is gone.
        time.sleep(1)
