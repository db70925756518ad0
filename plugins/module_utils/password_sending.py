# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Passwords on their way to the server, and the records of what was sent, so that no log shows either."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, List, Mapping, Tuple

from .records import replace

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it gets here
    pass

from . import store
from .catalog.cluster import read_role_oids
from .changes import Plan, SetPassword, passwords_sent
from .diff.passwords import PasswordOptions, declared, hashed_by_server, record_work
from .failure import Failure
from .keys import NEW_KEY, make_key
from .manifest.model import Password
from .masking import MASK
from .policy import Policy
from .problems import Problem
from .sealed import PRELUDE, seal
from .sending import send
from .state import State
from .statements.names import text
from .statements.roles import password_statement
from .transaction import Settings

if TYPE_CHECKING:
    from psycopg import Connection


def with_key(passwords: PasswordOptions, plan: Plan, settings: Settings) -> PasswordOptions:
    """The options with the key, which is made now where a password is about to be sent and there is none.

    A rehearsal takes any key. Raises Failure.
    """
    file = settings.key_file
    if not passwords_sent(plan.changes) or passwords.key is not None or file is None:
        return passwords
    if settings.check_mode:
        return replace(passwords, key=os.urandom(NEW_KEY), key_expected=False)
    try:
        return replace(passwords, key=make_key(file), key_expected=False)
    except OSError as exc:
        message = f"fingerprint_key_file {file} cannot be made: {exc.strerror}"
        problem = Problem(path="fingerprint_key_file", message=message)
        raise Failure("manifest_invalid", message, problems=[problem]) from None


#: By the text that is shown: what is sent in its place.
Hidden = Mapping[str, str]


def hidden(connection: Connection[Any], plan: Plan, policy: Policy, state: State) -> Hidden:
    """The statements that set passwords, as they are sent: one round trip where there are any."""
    passwords = declared(policy)
    secrets = {
        text(password_statement(change)): (change, passwords[change.role.name])
        for change in passwords_sent(plan.changes)
    }
    if not secrets:
        return {}
    whole = {
        shown: (change, text(password_statement(change, _secret_to_send(connection, change.role.name, password))))
        for shown, (change, password) in secrets.items()
    }
    key = _sealing_key(connection)
    if not state.passwords.sealing:
        return {shown: statement for shown, (_change, statement) in whole.items()}
    return {
        shown: seal(key, number, statement, _locking(change, state))
        for number, (shown, (change, statement)) in enumerate(whole.items())
    }


def _locking(change: SetPassword, state: State) -> str:
    """A harmless statement that takes the locks of the one that sets the password."""
    if change.role.oid in state.executors:
        # All that PostgreSQL up to 15 lets a login without CREATEROLE do with itself; the password follows at once.
        return text(password_statement(replace(change, clear=True)))
    return text(sql.SQL("ALTER ROLE {}").format(sql.Identifier(change.role.name)))


def _secret_to_send(connection: Connection[Any], role: str, password: Password) -> str:
    """A verifier, unless the server is to do the hashing. libpq prepares the password as the server would."""
    if password.verifier or hashed_by_server(password):
        return password.text
    verifier = connection.pgconn.encrypt_password(password.text.encode(), role.encode(), b"scram-sha-256")
    return verifier.decode("ascii")


def _sealing_key(connection: Connection[Any]) -> str:
    row = connection.execute(PRELUDE).fetchone()
    return str(row[0]) if row else ""


def remember(connection: Connection[Any], plan: Plan, policy: Policy, state: State, passwords: PasswordOptions) -> bool:
    """Write down which passwords were sent, in the same transaction. Returns whether there was anything to write.

    Up to three round trips, none where nothing is to be written.
    """
    new = [change.role.name for change in plan.changes if isinstance(change, SetPassword) and change.created]
    created = read_role_oids(connection, new) if new else {}
    work = record_work(plan.changes, policy, state, passwords, created)
    if not work:
        return False
    cluster = state.server.system_identifier
    plain: List[str] = []
    # What is shown where the server refuses it, what is sent, and what takes its locks first.
    secret: List[Tuple[str, str, str]] = []
    if work.rows or work.delete:
        plain.append(text(store.lock()))
    if work.delete:
        plain.append(text(store.deletion(work.delete)))
    for start in range(0, len(work.rows), store.BATCH):
        rows = work.rows[start : start + store.BATCH]
        shown = text(store.insertion(rows, cluster, masked=True))
        secret.append((shown, text(store.insertion(rows, cluster)), "NULL"))
    for name, comment in work.comments.items():
        # Removing the comment first takes the locks that setting it needs.
        first = text(store.comment(name, None))
        secret.append((text(store.comment(name, MASK)), text(store.comment(name, comment)), first))
    replaced = {shown: statement for shown, statement, _first in secret}
    if secret and state.passwords.sealing:
        key = _sealing_key(connection)
        # Passwords were sealed with numbers from 0 on, by a key of their own.
        replaced = {
            shown: seal(key, number, statement, first) for number, (shown, statement, first) in enumerate(secret)
        }
    send(connection, [*plain, *replaced], replaced=replaced)
    return True


def tidy_records(
    connection: Connection[Any], plan: Plan, policy: Policy, state: State, passwords: PasswordOptions
) -> List[str]:
    """Records that moved to another store, or whose role is gone: no part of a plan, and no reason to fail. The caller
    has asked whether there are any.
    """
    connection.execute("SAVEPOINT records")
    try:
        remember(connection, plan, policy, state, passwords)
    except Failure as failure:
        if connection.closed:
            raise
        connection.execute("ROLLBACK TO records")
        return [f"the fingerprints of passwords could not be tidied up: {failure.message}"]
    return []
