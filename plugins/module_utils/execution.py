# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What follows a plan with something to do: its statements, what stops it, running it and verifying it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Sequence

from .brakes import brake_problems
from .catalog.objects import read_stakes
from .catalog.transactions import read_synchronous
from .changes import DropOwned, Grant, Plan, ReassignOwned, Revoke, passwords_sent
from .digest import digest
from .elsewhere import by_database, cannot_rehearse, empty
from .failure import Failure, of_problems
from .filters import Options
from .guards import guard_problems, roles_at_stake, undeclared_losers
from .locks import explained, lock_problems, lock_warnings, locks_of
from .outcome import Outcome
from .password_sending import hidden, remember, with_key
from .policy import Policy
from .problems import Problem
from .records import replace
from .run import Clock, Done, Run
from .script_files import Scripts
from .state import State
from .statements.order import composed_statements
from .statements.privileges import inventory_of
from .statements.statement import Statement
from .transaction import Settings, run
from .verification import check_access, verify

if TYPE_CHECKING:
    from psycopg import Connection

STANDBY = "this server is a standby and there is something to do"
ALONE = "synchronous_standby_names is set and no synchronous standby is attached: COMMIT waits until one is"


def carry_out(
    connection: Connection[Any],
    policy: Policy,
    options: Options,
    settings: Settings,
    clock: Clock,
    done: Done,
    outcome: Outcome,
    begun: Run,
) -> Run:
    """Run the plan, or say what would stop it. ``begun``: the run so far. Raises Failure.

    Everything up to the commit, but the transactions in other databases, which are committed here.
    """
    passwords, state = settings.passwords, begun.state
    plan, problems = outcome.plan, list(outcome.problems)
    others = {name: changes for name, changes in by_database(plan).items() if name is not None}
    if others and settings.check_mode and settings.rehearse:
        problems.append(cannot_rehearse(others))
    try:
        composed = composed_statements(
            plan.changes, inventory_of(state), state.server.version, session_role=settings.session_role
        )
        # Were it the first try's, this would be the whole plan.
        sql = [*done.sql, *_texts(composed)]
    except UnicodeEncodeError:
        if not problems:
            raise
        composed, sql = [], []  # a name that cannot be spelt is among the problems
    locks, lock_table = locks_of(composed, plan.changes, state), state.server.lock_table
    problems += lock_problems(locks, lock_table)
    own = _texts(composed, None)
    done.plan = sql
    plan = replace(plan, changes=(*done.changes, *plan.changes))
    found = digest(state.server, options, sql)
    scripts = Scripts.of(connection, settings, outcome, options, state, composed, found)
    if problems:
        scripts.write_plan(problems)
        raise of_problems(problems, plan=sql or None)
    try:
        check_digest(settings.expected_digest, found, sql)
    except Failure as failure:
        scripts.write_plan(failure.problems)
        raise
    warnings = [*begun.warnings, *lock_warnings(locks, lock_table), *_about_passwords(plan, state, settings)]
    with clock.stage("guard"):
        if sql and state.server.synchronous and not read_synchronous(connection):
            warnings.append(ALONE)
        guards = [
            *_guards(connection, plan, policy, options, state),
            *brake_problems(plan, settings.max_drops, settings.max_revokes),
        ]
        if sql and state.server.in_recovery:
            guards.append(Problem(message=STANDBY, code="read_only_server"))
    with clock.stage("scripts"):
        scripts.write_plan(guards)
        if settings.check_mode:
            warnings += scripts.write_undo()
    if settings.check_mode:
        warnings += [f"an apply would fail here: {problem.text}" for problem in guards]
    elif guards:
        raise of_problems(guards, plan=sql)
    if own and settings.writes and not guards:
        with scripts.undo() if not settings.check_mode else nullcontext() as way_back:
            with clock.stage("apply"):
                passwords = with_key(passwords, plan, settings)
                replaced = hidden(connection, plan, policy, state)
            with clock.stage("elsewhere"):
                for name, changes in others.items():
                    texts = _texts(composed, name)
                    with explained(locks, name, lock_table):
                        told = empty(name, changes, texts, connection, outcome.plan, policy, state, settings)
                    done.add(name, changes, texts, told)
                    warnings += told
                    settings.resume()
            with clock.stage("apply"):
                with explained(locks, None, lock_table):
                    run(connection, own, replaced, objects_of(plan))
                remember(connection, plan, policy, state, passwords)
            with clock.stage("verify"):
                verify(connection, policy, options, state, plan, passwords, own)
                check_access(connection, settings.session_role, sql)
            if way_back is not None:
                way_back.place()  # before the commit, so that nothing is committed without it
    elif settings.writes and not own and not settings.check_mode:
        scripts.write_undo()
    return replace(begun, plan=plan, sql=tuple(sql), own=bool(own), warnings=tuple(warnings), behind=tuple(composed))


def _texts(composed: Iterable[Statement], *databases: Optional[str]) -> List[str]:
    """The statements' texts, with ``databases`` only those that run there; None is the connected one."""
    return [statement.text for statement in composed if not databases or statement.database in databases]


def check_digest(expected: Optional[str], found: str, sql: Sequence[str]) -> None:
    """Raise Failure unless the plan is the approved one. An empty plan passes, so that a relaunch is no error."""
    if expected is None or expected == found or not sql:
        return
    message = f"The plan is not the approved one: its digest is {found}, expected was {expected}"
    problem = Problem(
        path="expected_digest", message=message, hint="Look at the new plan and approve it.", code="plan_changed"
    )
    raise Failure("plan_changed", message, problems=[problem], hint=problem.hint, plan=list(sql))


def objects_of(plan: Plan) -> List[int]:
    """The OIDs of what the plan's statements name, and of roles whose possessions they move, to say afterwards who held
    them.
    """
    owners = [change.role.oid for change in plan.changes if isinstance(change, (ReassignOwned, DropOwned))]
    return owners + [
        item.oid for change in plan.changes if isinstance(change, (Grant, Revoke)) for item in change.target.objects
    ]


def _guards(connection: Connection[Any], plan: Plan, policy: Policy, options: Options, state: State) -> List[Problem]:
    lost = undeclared_losers(plan, policy, options, state)
    roles = roles_at_stake(plan, lost)
    stakes = read_stakes(connection, roles) if roles else {}
    return guard_problems(plan, lost, state, stakes)


def _about_passwords(plan: Plan, state: State, settings: Settings) -> List[str]:
    warnings: List[str] = []
    sent = len(passwords_sent(plan.changes))
    if sent and settings.key_file is not None and state.passwords.records:
        warnings.append(
            f"the fingerprint key file {settings.key_file} is new and the fingerprints of another key are stored: "
            f"{sent} password{'s are' if sent > 1 else ' is'} sent again"
        )
    if sent and not state.passwords.sealing:
        warnings.append(
            "PL/pgSQL may not be used in this database, so password statements are sent as they are: the server's log "
            "can show verifiers"
        )
    return warnings
