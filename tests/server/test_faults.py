# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults at every statement of a plan that has every kind of statement: the database is as before or as planned, the
fingerprints agree with the passwords, nothing is left behind, and the next run does the rest.

``FAULTS=long`` (``make faults``) does every fault at every statement of four plans, and at random moments; the table at
the end is that of ``docs/reliability.md``.
"""

from __future__ import annotations

import os
import random
import signal
import time
import typing
from pathlib import Path
from typing import Any

import faults
import pytest
from fault_plans import KEY, FaultPlan
from faults import Harm, Moment, Trial
from harness import Cluster, Database, Runner, another_server
from test_properties_units import room
from test_unattended import APP, TURN, holder, through_proxy
from wire import Stop

LONG = os.environ.get("FAULTS") == "long"
#: Faults at random moments, for each plan and each of two faults.
MOMENTS = 100 if LONG else 5
SEED = int(os.environ.get("FAULTS_SEED", "1"))

PLANS = [("superuser", "table"), ("owner", "comment"), ("owner", "table"), ("superuser", "comment")]

HARMS: dict[str, type[Harm]] = {
    "backend terminated": faults.Terminate,
    "module killed (SIGKILL)": faults.Kill,
    "module killed, what it had sent arrives": faults.KillSent,
    "connection broken, the last answer lost": faults.Drop,
    "backend terminated while a statement runs": faults.TerminateInside,
    "module killed while a statement runs": faults.KillInside,
    "module asked to end (SIGTERM)": faults.Ask,
    "module interrupted (SIGINT)": faults.Interrupt,
}
#: One of these is done at every statement of the plan always, on the next version the other one. In the long run every
#: fault is.
ALWAYS = ("backend terminated", "module killed (SIGKILL)")


@pytest.fixture(params=PLANS if LONG else PLANS[:1], ids="-".join)
def trial(request: pytest.FixtureRequest, db: Database) -> Trial:
    return Trial(FaultPlan(db, *request.param))


def its_turn(trial: Trial, name: str, stop: Stop) -> bool:
    """All around the COMMIT. Else every fifteenth statement, every second of the plan, every tenth before it has begun:
    on each version those that the others leave out.
    """
    if stop.number >= trial.last - 1:
        return True
    turn, step = stop.number + trial.db.version, 15
    if name in ALWAYS:
        turn, step = turn + ALWAYS.index(name), 2 if stop.number >= trial.first - 1 else 10
    return turn % step == 0


@pytest.mark.parametrize("name", HARMS)
def test_at_every_statement(trial: Trial, name: str) -> None:
    harm = HARMS[name]
    if issubclass(harm, faults.Inside):
        stops = [Stop(number, "sent") for number in range(trial.first, trial.last + 1)]
    else:
        stops = [*(Stop(number) for number in range(trial.last + 1)), Stop(trial.last, "sent")]
        if LONG and harm is faults.Drop:
            stops += [Stop(number, "part") for number in range(trial.first, trial.last + 1)]
    if not LONG:
        stops = [stop for stop in stops if its_turn(trial, name, stop)]
    for position, stop in enumerate(stops):
        # Else the next trial is the next run.
        always = LONG and name in ALWAYS and stop.number >= trial.first - 1
        trial.try_one(stop, harm(name, trial.plan), converge=always or position % 6 == 0)


@pytest.mark.parametrize("name", ["backend terminated at a random moment", "module killed at a random moment"])
def test_at_random_moments(trial: Trial, name: str) -> None:
    start = time.monotonic()
    trial.converge()
    whole = (time.monotonic() - start) / 2
    trial.reset()
    moments = random.Random(f"{SEED} {name} {trial.plan.executor}")  # noqa: S311
    for _number in range(MOMENTS):
        trial.try_moment(moments.uniform(0, whole), Moment(name, trial.plan))


def test_the_server_crashes(server: Cluster, runner: Runner) -> None:
    """A killed backend takes the server down, which recovers; a COMMIT that was done has been done."""
    name = "server crashes"
    with another_server(server.version, "synchronous_commit = on") as cluster:
        db = Database(cluster, runner)
        trial = Trial(FaultPlan(db))
        middle = (trial.first + trial.last) // 2
        some = range(0, trial.last + 1, 3) if LONG else (trial.first, middle)
        for stop in [*map(Stop, some), Stop(trial.last, "sent"), Stop(trial.last)]:
            trial.try_one(stop, faults.Crash(name, trial.plan))


def test_a_server_that_has_lost_the_transaction_has_not_committed_it(db: Database) -> None:
    """After a crash or a failover the transaction's number can lie in the future."""
    later = (
        "from ansible_collections.pg_access.reconcile.plugins.module_utils import transaction as room\n"
        "real = room._outcome\n"
        "room._outcome = lambda number, *rest: real(str(int(number) + 1000000), *rest)"
    )
    with through_proxy(db, deliver=False) as address:
        result = db.reconcile(APP, patch=later, **address)
    assert result.error_code == "connection_failed", result
    assert db.roles() == set()
    assert db.reconcile(APP).changed


def test_the_commit_waits_for_a_standby(server: Cluster, runner: Runner) -> None:
    """What happens then happens in the middle of a COMMIT, which can no longer be taken back."""
    settings = "synchronous_commit = on\nwal_level = replica\nmax_wal_senders = 2"
    with another_server(server.version, settings) as cluster:
        db = Database(cluster, runner)
        for connection in (db.connection, cluster.connection):
            connection.execute("SET synchronous_commit = local")
        trial = Trial(FaultPlan(db))
        for name, number in (
            ("backend terminated inside the COMMIT", None),
            ("module killed inside the COMMIT", signal.SIGKILL),
            ("module asked to end inside the COMMIT", signal.SIGTERM),
        ):
            for _time in range(20 if LONG else 1):
                harm = faults.InCommit(name, trial.plan, number)
                harm.standby(there=False)
                result = trial.try_moment(0, harm)
                if number is None:
                    assert result is not None
                    assert any(faults.LOST_ANSWER in warning for warning in result.warnings), result
            assert not faults.TALLIES[name].before


# ---- the plan


def test_the_plan_has_every_change(db: Database) -> None:
    """Whoever adds a kind of change or of object adds it to the plan."""
    changes, transaction, masking = map(room, ("changes", "transaction", "masking"))
    plan = FaultPlan(db)
    plan.reset()
    manifest = {**plan.options}
    for name in ("login_user", "fingerprint_key", "fingerprint_store", "undeclared_grantees"):
        del manifest[name]
    policy = room("policy").manifest_to_policy(manifest, masking.Secrets())
    passwords = room("diff.passwords").PasswordOptions(update="on_change", key=KEY.encode(), store="table")
    settings = transaction.Settings(passwords=passwords)
    connection = room("connection").connect(
        {"login_host": db.server.socket_directory, "login_port": db.server.port, "login_user": "postgres", "login_db": db.name}
    )  # fmt: skip
    with connection:
        transaction.begin(connection, settings)
        options = room("filters").Options(undeclared_grantees="revoke")
        state, scope, lookups = room("inspection").inspect(connection, policy, passwords, options)
        outcome = room("plan").make_plan(policy, state, scope, lookups, options, passwords=passwords)
        connection.execute("ROLLBACK")
    assert not outcome.problems
    planned = outcome.plan.changes
    assert {type(change) for change in planned} == set(typing.get_args(changes.Change))

    def has(kind: str, **wanted: Any) -> bool:
        return any(
            type(change).__name__ == kind and all(getattr(change, name) == value for name, value in wanted.items())
            for change in planned
        )

    kinds = {name for name, kind in room("privileges").KINDS.items() if kind.since <= db.version}
    for sort in (changes.Grant, changes.Revoke):
        privileges = [change for change in planned if isinstance(change, sort)]
        assert {change.target.kind for change in privileges} == kinds
        assert any(change.target.columns for change in privileges)
    for sort in (changes.GrantDefault, changes.RevokeDefault):
        assert {change.schema for change in planned if isinstance(change, sort)} == {None, "s"}
    assert has("Grant", with_grant_option=True, upgrade=True)
    assert has("Grant", again=True, late=True)
    assert has("Revoke", option_only=True)
    assert has("RevokeDefault", option_only=True)
    assert any(change.run_as for change in planned if isinstance(change, changes.Revoke))
    assert has("SetConfig", value=None)
    assert has("SetPassword", clear=True)
    assert has("SetPassword", clear=False, created=True)
    assert has("SetPassword", clear=False, created=False)
    assert has("RemoveMember", option="admin")
    assert has("RemoveMember", option=None, early=True)
    assert has("RemoveMember", option=None, early=False)


def test_the_plan_converges_for_every_executor_and_store(db: Database) -> None:
    for executor, store in PLANS:
        plan = FaultPlan(db, executor, store)
        plan.reset()
        db.converge(None, **plan.options)


# ---- other databases, which are committed before the rest


#: A signal arrives in the module itself: while the other database is committed, or when the rest begins.
_ASKED = """
import os, signal
from ansible_collections.pg_access.reconcile.plugins.module_utils import {room}
real = {room}.{name}
def asked(connection, *rest, **more):
    if "{when}" == "before":
        os.kill(os.getpid(), signal.SIGTERM)
    result = real(connection, *rest, **more)
    if "{when}" == "after":
        os.kill(os.getpid(), signal.SIGTERM)
    return result
{room}.{name} = asked
"""


@pytest.mark.parametrize(
    ("room", "name", "when"),
    [
        pytest.param("elsewhere", "commit", "after", id="when the other database is committed"),
        pytest.param("execution", "run", "before", id="before the rest"),
        pytest.param("execution", "verify", "after", id="after the rest"),
    ],
)
def test_a_run_that_is_asked_to_end_says_which_databases_are_done(
    db: Database, room: str, name: str, when: str
) -> None:
    other = db.cluster.create_database()
    try:
        db.sql("CREATE ROLE old; CREATE ROLE heir; CREATE SCHEMA mine AUTHORIZATION old")
        session = db.connect(dbname=other)
        session.execute("CREATE SCHEMA mine AUTHORIZATION old")
        retirement = {"role": "old", "reassign_owned_to": "heir", "drop_owned": True, "all_databases": True}
        manifest = {"roles": [{"name": "heir"}], "retirements": [retirement]}
        result = db.reconcile(manifest, patch=_ASKED.format(room=room, name=name, when=when))
        assert result.error_code == "partially_applied", result
        assert result.databases == [other]
        assert "SIGTERM" in result.msg
        owner = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'mine'"
        assert session.execute(owner).fetchall() == [("heir",)]
        assert db.value(owner) == "old"
        assert not db.reconcile(manifest).failed
        assert db.roles() == {"heir"}
        db.silent(manifest)
    finally:
        db.cluster.drop_database(other)


# ---- waits, and the key file


def test_a_killed_run_does_not_wait_for_its_turn(db: Database) -> None:
    """The server notices, long before the wait is over."""
    other = holder(db, TURN)
    run = db.background(APP, lock_timeout=600)
    while not db.query("SELECT 1 FROM pg_locks WHERE NOT granted"):
        assert run.running()
        time.sleep(0.02)
    run.program.kill()
    deadline = time.monotonic() + faults.GONE
    while db.query("SELECT 1 FROM pg_locks WHERE NOT granted"):
        assert time.monotonic() < deadline, "its session still waits"
        time.sleep(0.05)
    other.rollback()
    assert db.reconcile(APP).changed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_run_that_waits_can_be_ended(db: Database, number: signal.Signals) -> None:
    holder(db, TURN)
    run = db.background(APP, lock_timeout=600)
    while not db.query("SELECT 1 FROM pg_locks WHERE NOT granted"):
        assert run.running()
        time.sleep(0.02)
    run.program.send_signal(number)
    result = run.result(10)
    assert result.error_code == "connection_failed"
    assert result.msg == f"The run was ended by {number.name}; its transaction is not applied."
    # Cancelled at once: the server does not have to find out.
    deadline = time.monotonic() + 1
    while db.query("SELECT 1 FROM pg_locks WHERE NOT granted"):
        assert time.monotonic() < deadline, "its session still waits"
        time.sleep(0.01)


#: Where the module is killed while it makes the key: before or after a call, at the file that the key is written to.
KEY_STOPS = ["open after", "fsync before", "fsync after", "link before", "link after", "unlink before", "unlink after"]

_DYING = """
import os, signal
name, when = {stop!r}.split()
real = getattr(os, name)
def dying(*places, **more):
    ours = name == "fsync" or str(places[0]).startswith({path!r})
    if ours and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*places, **more)
    if ours:
        os.kill(os.getpid(), signal.SIGKILL)
    return result
setattr(os, name, dying)
"""


@pytest.mark.parametrize("stop", KEY_STOPS)
def test_a_key_file_is_never_half_of_one(db: Database, tmp_path: Path, stop: str) -> None:
    path = tmp_path / "key"
    manifest = {"roles": [{"name": "app", "password": "some-password"}]}
    before = db.snapshot()
    killed = db.raw(
        manifest, process=True, prelude=_DYING.format(stop=stop, path=str(path)), fingerprint_key_file=str(path)
    )
    assert killed == ("", "", -signal.SIGKILL)
    assert db.snapshot() == before
    # Before it has its name it is nobody's key.
    assert path.exists() == (stop in ("link after", "unlink before", "unlink after"))
    for found in tmp_path.iterdir():
        assert found.stat().st_mode & 0o777 == 0o600
        assert found != path or len(found.read_bytes()) == 32
    key = path.read_bytes() if path.exists() else None
    assert db.reconcile(manifest, fingerprint_key_file=str(path)).changed
    assert key in (None, path.read_bytes()), "the key was made twice"
    assert len(path.read_bytes()) == 32
    assert db.logs_in("app", "some-password")
    db.silent(manifest, fingerprint_key_file=str(path))
