# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The run: one connection, one transaction, and the whole pipeline from top to bottom in ``reconcile``.

What only a run with something to do needs is imported where it is asked for: where Ansible runs a module, every source
that is imported is compiled anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional

from .belongings import listed
from .changes import DropRole
from .diff.passwords import record_work
from .diff.retirements import candidates
from .failure import Failure, internal
from .filters import Options
from .inspection import inspect
from .interruption import Interrupted
from .policy import Policy
from .privileges import NEWEST_SERVER
from .records import replace
from .run import Clock, Done, Run
from .sending import COLLISION
from .state import State
from .transaction import Settings, begin, commit, ending, take_turn

if TYPE_CHECKING:
    from psycopg import Connection

#: How often a run starts, where other sessions keep changing the same things.
TRIES = 3


def load() -> None:
    """Load what every run needs once the catalog is read: while the server works on that, there is time."""
    from . import plan  # noqa: F401
    from .report import result  # noqa: F401


def reconcile(connection: Connection[Any], policy: Policy, options: Options, settings: Settings) -> Run:
    """Bring the connected database to what the policy says, or say what that would take.

    Where other sessions change the same things at the same time, it starts again from a fresh inspection. Raises
    Failure; then nothing is applied, or only what it names, in other databases.
    """
    clock = Clock()
    done = Done()
    before: Optional[Failure] = None
    for attempt in range(1, TRIES + 1):
        try:
            with ending(connection):
                run = _attempt(connection, policy, options, settings, clock, done)
            break
        except Failure as failure:
            if connection.closed or failure.code not in ("collision", "not_converged"):
                raise done.of(failure) from None
            if attempt == TRIES:
                raise done.of(by_others(failure, before)) from None
            before = failure
        except Interrupted as asked:
            raise done.of(asked.failure) from None
        except Exception as exc:
            if not done.sql:
                raise
            raise done.of(internal(exc, "")) from None
    if settings.check_mode:
        return run
    with clock.stage("sessions"):
        if any(isinstance(change, DropRole) for change in run.plan.changes):
            from .sessions import end_sessions

            run = replace(run, warnings=(*run.warnings, *end_sessions(connection, run.plan, settings)))
    return replace(run, timings=clock.seconds)


def by_others(failure: Failure, before: Optional[Failure]) -> Failure:
    """The failure of the last try, as a collision where it is one: a plan that does not converge although nobody
    interferes fails twice in the same words, because a try leaves nothing behind.
    """
    if failure.code != "not_converged":
        return failure
    if before is not None and (before.code, before.plan, before.problems) == (
        failure.code,
        failure.plan,
        failure.problems,
    ):
        return failure
    message = COLLISION.format(failure.problems[0].message)
    return Failure("collision", message, problems=failure.problems, plan=failure.plan)


def _attempt(
    connection: Connection[Any], policy: Policy, options: Options, settings: Settings, clock: Clock, done: Done
) -> Run:
    """One try, from the beginning of the transaction to its commit. ``done``: what is committed in other databases, by
    earlier tries too.
    """
    passwords = settings.passwords
    with clock.stage("begin"):
        writable = begin(connection, settings)
    if writable:
        with clock.stage("turn"):
            take_turn(connection, settings)
    with clock.stage("inspect"):
        state, scope, lookups = inspect(connection, policy, passwords, options, settings.expected_system_identifier)
    with clock.stage("elsewhere"):
        if candidates(policy, state):
            from .elsewhere import look_around

            state = look_around(connection, policy, state, settings)
        everything = state
        if settings.explain is not None or settings.survey:
            from .explain.reading import with_everything

            everything = with_everything(connection, state, scope)
        settings.seen(everything)
    with clock.stage("plan"):
        from .plan import make_plan  # loaded by now, see load()

        outcome = make_plan(policy, state, scope, lookups, options, passwords=passwords, check_mode=not settings.writes)
    warnings = [*done.warnings, *outcome.plan.warnings, *_about_the_server(state)]
    run = Run(outcome.plan, (), state.server, state, settings.session_role, tuple(warnings), clock.seconds)
    if settings.explain is not None:
        with clock.stage("explain"):
            from .explain.explanation import explanation

            explained, problems = explanation(settings.explain, policy, everything, outcome, lookups)
            outcome = replace(outcome, problems=(*outcome.problems, *problems))
            run = replace(run, explained=explained)
    if settings.survey and not outcome.problems:
        with clock.stage("report"):
            from .explain.explanation import survey

            run = replace(run, survey=survey(policy, everything, outcome, lookups))
    if outcome.plan.changes or outcome.problems or done.sql or settings.plan_file or settings.undo_file:
        from .execution import carry_out

        run = carry_out(connection, policy, options, settings, clock, done, outcome, run)
    run = replace(run, warnings=(*run.warnings, *_tidied(connection, policy, settings, run)))
    if not settings.check_mode and not state.server.in_recovery:
        with clock.stage("commit"):
            told = commit(connection, settings, asked=bool(run.own))
        run = replace(run, warnings=(*run.warnings, *told))
    return run


def _tidied(connection: Connection[Any], policy: Policy, settings: Settings, run: Run) -> List[str]:
    """Tidy up the records of passwords, where nothing else was to do. Returns warnings."""
    state, passwords = run.state, settings.passwords
    if run.own or not settings.writes or state.server.in_recovery:
        return []
    if not record_work(run.plan.changes, policy, state, passwords, {}):
        return []
    from .password_sending import tidy_records

    return tidy_records(connection, run.plan, policy, state, passwords)


def _about_the_server(state: State) -> List[str]:
    server, strays = state.server, state.stray_sessions
    warnings: List[str] = []
    if strays:
        who = "1 session belongs to a role that no longer exists"
        if len(strays) > 1:
            who = f"{len(strays)} sessions belong to roles that no longer exist"
        warnings.append(f"{who}: {listed(strays, len(strays))}")
    if not server.system_identifier:
        warnings.append("pg_control_system() may not be called: system_identifier is empty")
    if server.version > NEWEST_SERVER:
        warnings.append(f"PostgreSQL {server.version} is newer than {NEWEST_SERVER}, the newest that is tested")
    return warnings
