# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Why the passwords of a manifest or a plan cannot be sent or remembered."""

from __future__ import annotations

from typing import List, Optional, Sequence

from .authority.hints import compose
from .changes import Change, CreateStore, SetPassword, passwords_sent
from .diff.passwords import PasswordOptions, declared
from .keys import EXAMPLE
from .policy import Policy
from .problems import Problem
from .state import State
from .store import PRIVILEGES, SCHEMA, TABLE, TABLE_STORE


def key_problem(policy: Policy, options: PasswordOptions, *, readable: bool) -> Optional[Problem]:
    """That fingerprints are needed and there is no key. ``readable``: stored verifiers can be compared instead."""
    if options.keyed or options.update not in ("on_change", "on_drift") or readable:
        return None
    named = [(role.name, role.password) for role in policy.roles.values() if role.password is not None]
    if not named:
        return None
    name, password = named[0]
    who, them = f"role {name} has a password", "it"
    if len(named) > 1:
        who, them = f"role {name} and {len(named) - 1} more have passwords", "them"
    return Problem(
        path=password.source,
        role=name,
        message=f"{who}, and update_password: {options.update} needs a fingerprint key to know {them} again",
        hint=f"Add one, for example: {EXAMPLE}",
        code="fingerprint_key_missing",
    )


def password_problems(
    changes: Sequence[Change], policy: Policy, state: State, options: PasswordOptions
) -> List[Problem]:
    """Why the passwords of a plan cannot be sent or remembered."""
    problems: List[Problem] = []
    passwords = declared(policy)
    missing = key_problem(policy, options, readable=_readable(state, options))
    if missing is not None:
        problems.append(missing)
    sends = passwords_sent(changes)
    for change in sends:
        password = passwords[change.role.name]
        if password.encryption == "server" and not password.verifier and not options.cleartext:
            problems.append(_cleartext(change))
    if options.keyed and options.store == TABLE_STORE and (sends or (passwords and options.update != "on_create")):
        problems.extend(_table_problems(changes, state))
    elif _outlived(changes, state, options):
        problems.extend(_table_problems(changes, state, deletes=True))
    return problems


def _outlived(changes: Sequence[Change], state: State, options: PasswordOptions) -> bool:
    """Whether rows of the table have to go with what they stood for: else they would say something wrong for ever."""
    return any(
        record.store == TABLE_STORE
        for change in changes
        if isinstance(change, SetPassword) and (change.clear or not options.keyed)
        for record in state.passwords.records.get(change.role.oid, ())
    )


def _readable(state: State, options: PasswordOptions) -> bool:
    return options.update == "on_drift" and state.passwords.verifiers is not None


def _cleartext(change: SetPassword) -> Problem:
    return Problem(
        path=change.source,
        role=change.role.name,
        message=f"the password of role {change.role.name} has password_encryption: server, and this network connection "
        "is not encrypted",
        hint="Connect with ssl_mode: verify-full, or use password_encryption: scram-sha-256 or allow_cleartext: true.",
    )


def _table_problems(changes: Sequence[Change], state: State, *, deletes: bool = False) -> List[Problem]:
    """Why the table of fingerprints cannot be used. ``deletes``: only rows have to go, so no other store would help."""
    table = state.passwords.table
    executor = state.ref(state.server.current_user).name
    name = f"{SCHEMA}.{TABLE}"
    other = "or use fingerprint_store: comment"
    if table.faults:
        owner = compose("OWNER TO {}", executor)
        hint = "Look at who made it, and drop it"
        if table.owner_only:
            hint = f"Where you trust its maker: ALTER SCHEMA {SCHEMA} {owner}; ALTER TABLE {name} {owner}. Else drop it"
        return [
            Problem(
                object=f"table {name}",
                message=f"{name} is not the table that this collection makes, so it is not touched: "
                f"{', '.join(table.faults)}",
                hint=f"{hint}; {other}.",
                code="object_missing",
            )
        ]
    if not table.table:
        if table.may_create or not any(isinstance(change, CreateStore) for change in changes):
            return []
        where = f"schema {SCHEMA}" if table.schema else f"database {state.server.database}"
        kind, place = ("SCHEMA", SCHEMA) if table.schema else ("DATABASE", state.server.database)
        grant = compose(f"GRANT CREATE ON {kind} {{}} TO {{}}", place, executor)
        return [
            Problem(
                object=where,
                message=f"{executor} may not create in {where}, where the fingerprints of passwords are kept",
                hint=f"{grant}, {other}.",
                code="insufficient_privilege",
            )
        ]
    if table.lacking:
        grants = []
        if "USAGE" in table.lacking:
            grants.append(compose(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {{}}", executor))
        lacking = [privilege for privilege in PRIVILEGES if privilege in table.lacking]
        if lacking:
            grants.append(compose(f"GRANT {', '.join(lacking)} ON {name} TO {{}}", executor))
        return [
            Problem(
                object=f"table {name}",
                message=f"{executor} may not use {name}, where the fingerprints of passwords are kept",
                hint=f"{'; '.join(grants)}{'' if deletes else '; ' + other}.",
                code="insufficient_privilege",
            )
        ]
    return []
