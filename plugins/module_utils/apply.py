# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The transaction: one connection, one transaction, and the whole pipeline from top to bottom in ``reconcile``."""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

try:
    import psycopg
except ImportError:  # the module reports the missing library before it gets here
    pass

from .belongings import listed
from .brakes import brake_problems
from .catalog.cluster import read_cluster, read_settings
from .catalog.objects import read_attributes, read_named, read_objects, read_routine_types, read_stakes
from .catalog.transactions import read_access, read_synchronous
from .changes import CreateRole, CreateSchema, DropOwned, Grant, Plan, ReassignOwned, Revoke, passwords_sent
from .diff.passwords import PasswordOptions, record_work, verifying
from .diff.retirements import candidates
from .diff.targets import Lookups, qualified
from .digest import digest
from .elsewhere import Done, by_database, cannot_rehearse, empty, look_around
from .failure import Failure, internal, of_problems
from .filters import Options
from .guards import guard_problems, roles_at_stake, undeclared_losers
from .interruption import Interrupted
from .password_sending import hidden, remember, with_key
from .plan import Outcome, make_plan, only_known
from .policy import Policy
from .privileges import KINDS, NAMED_KINDS, NEWEST_SERVER
from .problems import Problem
from .protection import CODE as PROTECTED
from .scope import Scope, scope_of
from .script_files import Scripts
from .sending import COLLISION
from .sessions import end_sessions
from .setting_checks import settings_asked
from .signatures import split_signature, type_texts
from .state import Server, State
from .statements import Statement, composed_statements, inventory_of, statements
from .transaction import Settings, begin, commit, ending, run, take_turn

if TYPE_CHECKING:
    from psycopg import Connection

#: How often a run starts, where other sessions keep changing the same things.
TRIES = 3

STANDBY = "this server is a standby and there is something to do"
ALONE = "synchronous_standby_names is set and no synchronous standby is attached: COMMIT waits until one is"


@dataclass(frozen=True)
class Run:
    """What a run did or would do."""

    plan: Plan
    sql: Tuple[str, ...]
    server: Server
    state: State
    session_role: Optional[str] = None
    warnings: Tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)


@dataclass
class _Clock:
    """Seconds per stage, of all tries."""

    seconds: Dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0) + time.monotonic() - start, 4)


def reconcile(connection: Connection[Any], policy: Policy, options: Options, settings: Settings) -> Run:
    """Bring the connected database to what the policy says, or say what that would take.

    Where other sessions change the same things at the same time, it starts again from a fresh inspection. Raises
    Failure; then nothing is applied, or only what it names, in other databases.
    """
    clock = _Clock()
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
        warnings = end_sessions(connection, run.plan, settings)
    return replace(run, warnings=(*run.warnings, *warnings), timings=clock.seconds)


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
    connection: Connection[Any], policy: Policy, options: Options, settings: Settings, clock: _Clock, done: Done
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
        state = look_around(connection, policy, state, settings)
        settings.seen(state)
    with clock.stage("plan"):
        outcome = make_plan(policy, state, scope, lookups, options, passwords=passwords, check_mode=not settings.writes)
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
    warnings = [
        *done.warnings,
        *plan.warnings,
        *_about_the_server(state),
        *_about_passwords(plan, state, settings),
    ]
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
                    told = empty(name, changes, texts, connection, outcome.plan, policy, state, settings)
                    done.add(name, changes, texts, told)
                    warnings += told
                    settings.resume()
            with clock.stage("apply"):
                run(connection, own, replaced, objects_of(plan))
                remember(connection, plan, policy, state, passwords)
            with clock.stage("verify"):
                verify(connection, policy, options, state, plan, passwords, own)
                check_access(connection, settings.session_role, sql)
            if way_back is not None:
                way_back.place()  # before the commit, so that nothing is committed without it
    elif settings.writes and not own:
        if not settings.check_mode:
            scripts.write_undo()
        if not state.server.in_recovery:
            warnings += tidy_records(connection, plan, policy, state, passwords)
    if not settings.check_mode and not state.server.in_recovery:
        with clock.stage("commit"):
            warnings += commit(connection, settings, asked=bool(own))
    return Run(plan, tuple(sql), state.server, state, settings.session_role, tuple(warnings), clock.seconds)


def _texts(composed: Iterable[Statement], *databases: Optional[str]) -> List[str]:
    """The statements' texts, with ``databases`` only those that run there; None is the connected one."""
    return [statement.text for statement in composed if not databases or statement.database in databases]


def tidy_records(
    connection: Connection[Any], plan: Plan, policy: Policy, state: State, passwords: PasswordOptions
) -> List[str]:
    """Records that moved to another store, or whose role is gone: no part of a plan, and no reason to fail."""
    if not record_work(plan.changes, policy, state, passwords, {}):
        return []
    connection.execute("SAVEPOINT records")
    try:
        remember(connection, plan, policy, state, passwords)
    except Failure as failure:
        if connection.closed:
            raise
        connection.execute("ROLLBACK TO records")
        return [f"the fingerprints of passwords could not be tidied up: {failure.message}"]
    return []


def check_digest(expected: Optional[str], found: str, sql: Sequence[str]) -> None:
    """Raise Failure unless the plan is the approved one. An empty plan passes, so that a relaunch is no error."""
    if expected is None or expected == found or not sql:
        return
    message = f"The plan is not the approved one: its digest is {found}, expected was {expected}"
    problem = Problem(
        path="expected_digest", message=message, hint="Look at the new plan and approve it.", code="plan_changed"
    )
    raise Failure("plan_changed", message, problems=[problem], hint=problem.hint, plan=list(sql))


def check_access(connection: Connection[Any], session_role: Optional[str], sql: Sequence[str]) -> None:
    """Raise Failure where the login is locked out of this database, or out of its session_role, by something that the
    plan could not know (``protection.locked_out`` has looked at the plan).
    """
    connects, sets = read_access(connection, session_role)
    if connects and sets:
        return
    lost = f"set session_role {session_role}" if connects else "connect to this database"
    message = f"After the plan this login could not {lost} any more, so it was rolled back"
    problem = Problem(message=message, code=PROTECTED)
    raise Failure(PROTECTED, message, problems=[problem], plan=list(sql))


def objects_of(plan: Plan) -> List[int]:
    """The OIDs of what the plan's statements name, and of roles whose possessions they move, to say afterwards who held
    them.
    """
    owners = [change.role.oid for change in plan.changes if isinstance(change, (ReassignOwned, DropOwned))]
    return owners + [
        item.oid for change in plan.changes if isinstance(change, (Grant, Revoke)) for item in change.target.objects
    ]


def inspect(
    connection: Connection[Any],
    policy: Policy,
    passwords: PasswordOptions,
    options: Options,
    cluster: Optional[str] = None,
) -> Tuple[State, Scope, Lookups]:
    """Read everything that the policy is compared with: three round trips, and one more each for rules on
    objects outside schemas, on routines and on columns, and for roles that are to go.

    ``cluster``: the system identifier that it must be. Raises Failure.
    """
    databases = [rule.name for rule in policy.rules if rule.kind == "database" and rule.name is not None]
    verifiers_of = sorted(policy.roles) if passwords.update == "on_drift" else []
    state = read_cluster(connection, databases, verifiers_of)
    if cluster is not None and cluster != state.server.system_identifier:
        found = state.server.system_identifier or "one that may not be asked for its identifier"
        message = f"This is the cluster {found}, not {cluster}"
        raise Failure("wrong_cluster", message, problems=[Problem(path="expected_system_identifier", message=message)])
    scope = scope_of(policy, (schema.name for schema in state.schemas.values()), state.server.database)
    inspected = [schema.oid for schema in state.schemas.values() if schema.name in scope.inspected]
    groups, default_acls = read_objects(connection, inspected)
    named, untrusted = read_named(connection, _names_outside(policy, state.server.version))
    asked = settings_asked(policy, state)
    if asked:
        state = replace(state, settings=read_settings(connection, asked))
    state = replace(state, groups=groups, named=named, default_acls=default_acls)
    leaving = candidates(policy, state) if options.mode == "authoritative" else {}
    if leaving:
        from .catalog.ties import read_belongings

        destroyed = [state.role_oid(entry.name) for entry in policy.retirements.values() if entry.destroys]
        belongings = read_belongings(connection, leaving, [oid for oid in destroyed if oid is not None])
        state = replace(state, belongings=belongings)
    lookups = replace(
        _routines(connection, policy, state), columns=_columns(connection, policy, state), untrusted=untrusted
    )
    return state, scope, lookups


def _names_outside(policy: Policy, version: int) -> Mapping[str, Sequence[str]]:
    """The names that rules give to objects outside schemas, by kind. Databases and schemas are read anyway."""
    names: Dict[str, Set[str]] = {}
    for rule in policy.rules:
        if rule.kind in NAMED_KINDS and rule.name is not None and KINDS[rule.kind].since <= version:
            names.setdefault(rule.kind, set()).add(rule.name)
    return {kind: sorted(found) for kind, found in names.items()}


def _columns(connection: Connection[Any], policy: Policy, state: State) -> Mapping[str, FrozenSet[int]]:
    """Which relations have the columns that rules name."""
    names = {column for rule in policy.rules for column in rule.columns}
    schemas = {state.schema_named(str(rule.schema)) for rule in policy.rules if rule.columns}
    if not names:
        return {}
    return read_attributes(connection, sorted(s.oid for s in schemas if s is not None), sorted(names))


def _routines(connection: Connection[Any], policy: Policy, state: State) -> Lookups:
    """Ask the server about the routines that rules name by their input types."""
    wanted = [
        (str(rule.name), rule.schema)
        for rule in policy.rules
        if rule.kind == "function" and rule.schema and str(rule.name).endswith(")")
    ]
    if not wanted:
        return Lookups()
    names = sorted({name for text, _schema in wanted for name, _arguments in split_signature(text)})
    schemas = sorted({schema.oid for _text, name in wanted for schema in [state.schema_named(str(name))] if schema})
    # An unqualified name may mean a type in the routine's own schema.
    types: Dict[str, Optional[str]] = {}
    for signature, schema in wanted:
        for text in type_texts([signature]):
            types.setdefault(qualified(text, str(schema)) or text, str(schema))
    types.update(dict.fromkeys(type_texts(text for text, _schema in wanted)))
    try:
        routines, oids = read_routine_types(connection, schemas, names, types)
    except psycopg.Error as exc:
        raise of_problems(_unreadable_types(connection, policy, exc)) from None
    return Lookups({oid: arguments for oid, _schema, _name, arguments in routines}, oids)


def _unreadable_types(connection: Connection[Any], policy: Policy, error: psycopg.Error) -> List[Problem]:
    """The rules whose argument types the server cannot even read. The transaction is lost, so each is asked alone."""
    problems: List[Problem] = []
    connection.execute("ROLLBACK")
    for rule in policy.rules:
        if rule.kind != "function":
            continue
        for text in type_texts([str(rule.name)]):
            try:
                read_routine_types(connection, [], [], {text: None})
            except psycopg.Error as exc:
                problems.append(
                    Problem(
                        path=f"{rule.source}.object.name",
                        role=rule.role,
                        object=f"{rule.schema}.{rule.name}",
                        message=f"the argument type {text} of {rule.schema}.{rule.name} cannot be read: "
                        f"{exc.diag.message_primary}",
                        hint="Types are written as in SQL: mixed case and special characters in double quotes.",
                        code="object_missing",
                    )
                )
                break
    return problems or [Problem(message=str(error.diag.message_primary), code="object_missing")]


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


def verify(
    connection: Connection[Any],
    policy: Policy,
    options: Options,
    before: State,
    plan: Plan,
    passwords: PasswordOptions,
    ran: Sequence[str],
) -> None:
    """Read everything again, before the commit: nothing of the plan may be left to do. ``ran``: its statements.

    What appeared since the inspection is the next run's work. Raises Failure ``not_converged``.
    """
    passwords = verifying(passwords)
    state, scope, lookups = inspect(connection, policy, passwords, options)
    left: Outcome = make_plan(policy, state, scope, lookups, options, passwords=passwords)
    if not left.problems and not left.plan.changes:
        return
    rest = only_known(left.plan, *_known(before, state, plan))
    sql = statements(rest.changes, {}, state.server.version)
    if not left.problems and not sql:
        return
    raise Failure(
        "not_converged",
        "After the plan was run something of it was still to do, so it was rolled back. "
        "This is a fault of the collection, or a trigger in the database undoes a part of the plan.",
        problems=[*left.problems, *(Problem(message=f"still to do: {text}", code="not_converged") for text in sql)],
        plan=list(ran),
    )


def _known(before: State, after: State, plan: Plan) -> Tuple[FrozenSet[int], FrozenSet[int]]:
    """The OIDs of objects and roles that the plan could know: those inspected first, and those that it made."""
    objects = {item.oid for group in before.groups for item in group.members.objects()}
    objects |= set(before.schemas) | set(before.databases)
    objects |= {item.oid for group in (*before.named, *after.named) for item in group.members.objects()}
    schemas = {change.name for change in plan.changes if isinstance(change, CreateSchema)}
    objects |= {schema.oid for schema in after.schemas.values() if schema.name in schemas}
    roles = {change.role.name for change in plan.changes if isinstance(change, CreateRole)}
    made = {role.oid for role in after.roles.values() if role.name in roles}
    return frozenset(objects), frozenset(set(before.roles) | made)
