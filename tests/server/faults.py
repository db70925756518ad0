# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes wrong in the middle of a run, at the statement that a test names, and what has to be true afterwards."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
from fault_plans import FRESH, KEPT, NEW, OLD, SECRETS, FaultPlan
from harness import Database, Result, check_shape, parse
from psycopg import sql
from wire import Held, Stop, Wire

#: How long a session may go on after its module is gone, in seconds.
GONE = 4.0

#: What a stopped run may say.
LOST_ANSWER = "the connection broke during COMMIT; asked again, the server says that the transaction was committed"


@dataclass
class Tally:
    """What was tried and what became of it, for the table of the documentation."""

    before: int = 0
    planned: int = 0
    #: Where anything was not as it has to be; the test fails then.
    lost: int = 0
    #: Where the harm was done while a statement ran.
    inside: int = 0
    #: Seconds until the longest-lived session was gone.
    longest: float = 0.0
    positions: set[Stop] = field(default_factory=set)
    versions: Counter[int] = field(default_factory=Counter)

    def lose(self, version: int, stop: Stop) -> None:
        self.lost += 1
        self.positions.add(stop)
        self.versions[version] += 1

    def add(self, committed: bool, version: int, stop: Stop) -> None:
        if committed:
            self.planned += 1
        else:
            self.before += 1
        self.positions.add(stop)
        self.versions[version] += 1


#: By what was done.
TALLIES: dict[str, Tally] = defaultdict(Tally)


def summary() -> list[str]:
    """The table as it stands in the documentation."""
    if not TALLIES:
        return []
    lines = [
        "| what happens | PostgreSQL | positions | runs | then as before | then as planned | session gone within | between, lost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, tally in TALLIES.items():
        versions = sorted(tally.versions)
        shown = ", ".join(map(str, versions))
        if len(versions) > 2 and versions == list(range(versions[0], versions[-1] + 1)):
            shown = f"{versions[0]} to {versions[-1]}"
        lines.append(
            f"| {name}{f' (inside: {tally.inside})' if tally.inside else ''} | {shown} | {len(tally.positions)} "
            f"| {sum(tally.versions.values())} | {tally.before} | {tally.planned} | {tally.longest:.1f} s | {tally.lost} |"
        )
    return lines


class Harm:
    """Something that happens to a run. ``ends``: the module does not answer any more."""

    ends = False

    def __init__(self, name: str, plan: FaultPlan) -> None:
        self.name = name
        self.plan = plan
        self._process = 0
        self._known = threading.Event()

    def started(self, process: int) -> None:
        self._process = process
        self._known.set()

    @property
    def process(self) -> int:
        """The module's process number. The wire may be quicker than who started it."""
        assert self._known.wait(30)
        return self._process

    def __call__(self, held: Held) -> bool:
        raise NotImplementedError

    def undo(self) -> None:
        """When the module is gone."""

    def commits(self, stop: Stop, last: int) -> bool:
        """Whether the transaction is committed when this happens at that stop. ``last`` is the COMMIT."""
        return stop.number == last and stop.when == "after"

    def judge(self, stop: Stop, result: Result | None, committed: bool) -> None:
        """What the module has to say, where it still can."""
        assert result is not None
        if committed:
            assert not result.failed, result
        else:
            assert result.failed, result
            assert result.error_code == "connection_failed", result
            assert stop.number == 0 or "not applied" in result.msg, result


class Terminate(Harm):
    """The backend is terminated; what it said until then arrives."""

    def __call__(self, held: Held) -> bool:
        terminate(self.plan, held.backend)
        held.relay()
        return False


class Drop(Harm):
    """The connection breaks; what the server said last is lost."""

    def __call__(self, held: Held) -> bool:
        return False

    def judge(self, stop: Stop, result: Result | None, committed: bool) -> None:
        super().judge(stop, result, committed)
        if committed:
            assert result is not None
            assert any(LOST_ANSWER in warning for warning in result.warnings), result.warnings


class Kill(Harm):
    """The module is killed. What it has sent by then is lost."""

    ends = True

    def __call__(self, held: Held) -> bool:
        os.kill(self.process, signal.SIGKILL)
        return False

    def judge(self, stop: Stop, result: Result | None, committed: bool) -> None:
        assert result is None


class KillSent(Kill):
    """The module is killed, and what it has sent by then arrives."""

    def __call__(self, held: Held) -> bool:
        os.kill(self.process, signal.SIGKILL)
        held.deliver()
        return False

    def commits(self, stop: Stop, last: int) -> bool:
        return stop.number == last


class Ask(Harm):
    """The module is asked to end."""

    number = signal.SIGTERM

    def __call__(self, held: Held) -> bool:
        os.kill(self.process, self.number)
        return True

    def commits(self, stop: Stop, last: int) -> bool:
        # A COMMIT that is on its way is waited for.
        return stop.number == last

    def judge(self, stop: Stop, result: Result | None, committed: bool) -> None:
        super().judge(stop, result, committed)
        assert result is not None
        if not committed:
            assert self.number.name in result.msg, result


class Interrupt(Ask):
    """As Ctrl-C does it."""

    number = signal.SIGINT


#: What statements open to write in. Those that are shared and written late come first.
_CATALOGS = ("pg_shdepend", "pg_authid", "pg_auth_members", "pg_db_role_setting", "pg_shdescription", "pg_default_acl")
_LOCK = "".join(
    f"BEGIN LOCK TABLE {name} IN SHARE MODE NOWAIT; EXCEPTION WHEN lock_not_available THEN NULL; END;"
    for name in _CATALOGS
)


class Inside(Harm):
    """The statement is stopped by locks on catalogs while it runs, where it needs one that the run does not have yet."""

    def __init__(self, name: str, plan: FaultPlan) -> None:
        super().__init__(name, plan)
        self.locks: psycopg.Connection[Any] | None = None

    def enter(self, held: Held) -> None:
        self.locks = self.plan.db.connect(autocommit=False)
        self.locks.execute(f"DO $$ BEGIN {_LOCK} END $$")
        said = held.said()
        held.advance()
        deadline = time.monotonic() + 2.5
        while time.monotonic() < deadline:
            rows = self.plan.db.cluster.connection.execute(
                "SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s", [held.backend]
            ).fetchall()
            if rows == [("Lock",)]:
                TALLIES[self.name].inside += 1
                return
            if held.said() != said:
                return  # it needed none of the locks
        raise AssertionError("the statement neither ended nor waited")

    def commits(self, stop: Stop, last: int) -> bool:
        # Nothing holds a COMMIT up.
        return stop.number == last

    def undo(self) -> None:
        if self.locks is not None:
            self.locks.close()
            self.locks = None


class TerminateInside(Inside):
    def __call__(self, held: Held) -> bool:
        self.enter(held)
        terminate(self.plan, held.backend)
        held.relay()
        return False


class KillInside(Inside):
    ends = True

    def __call__(self, held: Held) -> bool:
        self.enter(held)
        os.kill(self.process, signal.SIGKILL)
        return False

    def judge(self, stop: Stop, result: Result | None, committed: bool) -> None:
        assert result is None


class Crash(Harm):
    """The backend is killed as by the system, so that the whole server starts again. The answer is lost."""

    struck = False

    def __call__(self, held: Held) -> bool:
        os.kill(held.backend, signal.SIGKILL)
        self.struck = True
        return False

    def undo(self) -> None:
        """Wait until the server has taken down every session and is back."""
        if not self.struck:
            return
        self.struck = False
        deadline = time.monotonic() + 30
        for connection in (self.plan.db.connection, self.plan.db.cluster.connection):
            try:
                while True:
                    connection.execute("SELECT 1")
                    assert time.monotonic() < deadline, "the server does not mind"
                    time.sleep(0.01)
            except psycopg.OperationalError:
                pass
        while True:
            try:
                self.plan.db.cluster.reconnect()
                self.plan.db.connection = self.plan.db.connect()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "the server does not come back"
                time.sleep(0.02)


class Moment(Harm):
    """Something that happens at a moment, not at a statement."""

    def strike(self) -> None:
        if self.name.startswith("module"):
            try:
                os.kill(self.process, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it was quicker
            return
        self.plan.db.cluster.connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pg_access.reconcile'"
        )


class InCommit(Moment):
    """Something that happens while the COMMIT waits for a synchronous standby that is not there."""

    def __init__(self, name: str, plan: FaultPlan, number: signal.Signals | None = None) -> None:
        super().__init__(name, plan)
        self.number = number

    def standby(self, there: bool) -> None:
        control = self.plan.db.cluster.connection
        control.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{'' if there else 'nobody'}'")
        control.execute("SELECT pg_reload_conf()")

    def strike(self) -> None:
        control = self.plan.db.cluster.connection
        deadline = time.monotonic() + 20
        while not (rows := control.execute("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'").fetchall()):
            assert time.monotonic() < deadline, "the COMMIT does not wait"
            time.sleep(0.01)
        if self.number is None:
            terminate(self.plan, rows[0][0])
        else:
            os.kill(self.process, self.number)
        self.standby(there=True)


def terminate(plan: FaultPlan, backend: int) -> None:
    """End a session, and wait until it is gone."""
    rows = plan.db.cluster.connection.execute("SELECT pg_terminate_backend(%s, 10000)", [backend]).fetchall()
    assert rows == [(True,)], f"backend {backend} did not end"


class Seen:
    """How everything was before a run."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.state, self.records, self.catalog = trial.db.snapshot(), trial.records(), trial.whole()
        trial.check_passwords()

    def committed(self) -> bool:
        """Whether everything is as planned. Else it has to be as before, to the last row."""
        if self.trial.db.snapshot() == self.state:
            assert self.trial.whole() == self.catalog, "something is left in the catalog"
            return False
        self.trial.check_passwords(self.records)
        assert self.trial.normal() == self.trial.planned, "it is neither as before nor as planned"
        return True


class Trial:
    """One plan, run again and again with something going wrong each time."""

    def __init__(self, plan: FaultPlan) -> None:
        self.plan = plan
        self.db = plan.db
        self.whole = whole_catalog(self.db)
        plan.reset()
        start = self.normal()
        with self.wire() as wire:
            result = self.result(self.run(wire))
        assert not result.failed, result
        self.sql: list[str] = result.sql
        self.texts = wire.texts
        #: What the run makes of it when nothing goes wrong.
        self.planned = self.normal()
        assert self.planned != start
        self.check_passwords()
        self.last = len(self.texts)
        assert self.texts[-1] == "COMMIT"
        self.first = self.texts.index(self.sql[0]) + 1
        self.reset()

    def reset(self) -> None:
        """Make the state before the plan again."""
        self.plan.reset()
        self.seen = Seen(self)

    def wire(self, stop: Stop | None = None, harm: Callable[[Held], bool] | None = None) -> Wire:
        return Wire(self.db.server.socket_directory, self.db.server.port, stop, harm)

    def run(self, wire: Wire, started: Callable[[int], object] | None = None) -> tuple[str, str, int]:
        return self.db.raw(
            None, login_unix_socket=str(wire.directory), started=started, timeout=20, **self.plan.options
        )  # fmt: skip

    @staticmethod
    def result(answer: tuple[str, str, int]) -> Result:
        result = parse(*answer)
        check_shape(result, check=False, diff=False)
        text = answer[0]
        leaked = [secret for secret in SECRETS if secret in text]
        assert not leaked and "SCRAM-SHA-256$" not in text, "a secret is in the result"
        return result

    def try_one(self, stop: Stop, harm: Harm, *, converge: bool = True) -> None:
        """The state is as before the run. Do harm at this stop, and see that nothing is lost by it.

        Afterwards the state is as before the run again. Without ``converge`` the next run is the next trial.
        """
        seen = self.seen
        where = f"{harm.name}, {stop.when} statement {stop.number} of {self.last}"
        try:
            with self.wire(stop, harm) as wire:
                answer = self.run(wire, harm.started)
            where += f": {wire.texts[-1][:80] if wire.texts else 'login'}"
            assert wire.stopped, "the stop was not reached"
            if harm.ends:
                assert answer == ("", "", -signal.SIGKILL), answer
            harm.undo()
            self.gone(harm)
            committed = harm.commits(stop, self.last)
            assert seen.committed() == committed
            harm.judge(stop, None if harm.ends else self.result(answer), committed)
            if converge or committed:
                self.converge(committed)
                self.reset()
            TALLIES[harm.name].add(committed, self.db.version, stop)
        except Exception as error:
            TALLIES[harm.name].lose(self.db.version, stop)
            error.add_note(where)
            raise
        finally:
            harm.undo()

    def try_moment(self, delay: float, harm: Moment) -> Result | None:
        """Do harm that many seconds after the start, wherever the run is then. Returns what the run said."""
        seen = self.seen
        try:
            with self.wire() as wire:
                timer = threading.Timer(delay, harm.strike)
                timer.start()
                answer = self.run(wire, harm.started)
                timer.join()
            self.gone(harm)
            committed = seen.committed()
            result = None
            if answer[2] == -signal.SIGKILL:
                # It may have said so before.
                assert answer[:2] == ("", "") or (committed and not self.result(answer).failed), answer
            else:
                result = self.result(answer)
                assert result.failed is not committed, result
                assert committed or result.error_code == "connection_failed", result
            self.converge(committed)
            self.reset()
            TALLIES[harm.name].add(committed, self.db.version, Stop(len(wire.texts), "around"))
            return result
        except Exception as error:
            TALLIES[harm.name].lose(self.db.version, Stop(-1, "around"))
            error.add_note(f"{harm.name}, {delay} s after the start")
            raise

    def converge(self, committed: bool = False) -> None:
        """The next run does the rest, and the one after it nothing."""
        with self.wire() as wire:
            result = self.result(self.run(wire))
            assert not result.failed, result
            assert sorted(result.sql) == ([] if committed else sorted(self.sql))
            assert self.normal() == self.planned, "the next run does not get there"
            again = self.result(self.run(wire))
        assert again.sql == [], again
        assert not again.failed, again
        self.check_passwords()

    def gone(self, harm: Harm) -> None:
        """No session, lock or transaction of the module is left after a moment."""
        start = time.monotonic()
        text = sql.SQL("""
            SELECT pid, 'session', state FROM pg_stat_activity
             WHERE backend_type = 'client backend' AND pid NOT IN ({own})
            UNION ALL SELECT pid, locktype, mode FROM pg_locks WHERE pid NOT IN ({own})
            UNION ALL SELECT 0, 'prepared', gid FROM pg_prepared_xacts""")
        own = sql.SQL(", ").join([self.db.connection.info.backend_pid, self.db.cluster.connection.info.backend_pid])
        query = text.format(own=own)
        while rows := self.db.connection.execute(query).fetchall():
            assert time.monotonic() - start < GONE, f"left behind: {rows}"
            time.sleep(0.005)
        tally = TALLIES[harm.name]
        tally.longest = max(tally.longest, time.monotonic() - start)

    def normal(self) -> dict[str, str]:
        """The state without what differs from one life of the database to the next: OIDs and salts."""
        names = {str(oid): name for oid, name in self.db.query("SELECT oid::int8, rolname FROM pg_roles")}
        names |= {str(oid): name for oid, name in self.db.query("SELECT oid::int8, nspname FROM pg_namespace")}
        found: dict[str, str] = {}
        for key, value in self.db.snapshot().items():
            sort, _space, rest = key.partition(" ")
            if sort == "role":
                value = value.split("|", 1)[1]
                value = re.sub(r"SCRAM-SHA-256\$[^|]*", lambda match: self.plan.password(match.group()), value)
                value = re.sub(r"(password fingerprint \d+:)[0-9a-f]{64}", r"\1", value)
            elif sort == "record":
                rest, value = names[rest], "there"
            elif sort in ("setting", "default", "relation", "type"):
                rest = "|".join(names.get(part, part) for part in rest.split("|"))
            elif sort == "large":
                rest = "object"
            key = f"{sort} {rest}"
            found[key] = found.get(key, "") + value
        return found

    def records(self) -> dict[str, tuple[str, str | None]]:
        """By role: which password the server stores, and the fingerprint that the record holds."""
        lines = self.db.query(
            "SELECT r.rolname, r.rolpassword, r.oid::int8, shobj_description(r.oid, 'pg_authid') FROM pg_authid r"
            " WHERE r.oid >= 16384"
        )
        table: dict[int, str] = {}
        if self.db.value("SELECT to_regclass('role_reconcile.password_fingerprint') IS NOT NULL"):
            table = dict(
                self.db.query("SELECT role::int8, encode(fingerprint, 'hex') FROM role_reconcile.password_fingerprint")
            )
        found = {}
        for name, verifier, oid, comment in lines:
            match = re.search(r"password fingerprint \d+:([0-9a-f]{64})$", comment or "")
            if verifier is not None or match or oid in table:
                assert not (match and oid in table), "two records"
                record = match.group(1) if match else table.get(oid)
                found[name] = (self.plan.password(verifier), record)
        return found

    def check_passwords(self, before: dict[str, tuple[str, str | None]] | None = None) -> None:
        """Each record is the fingerprint of the password that the server stores, and opens the door alone."""
        found = self.records()
        for name, (password, record) in found.items():
            assert record == self.plan.fingerprint(name, password).hex(), f"the record of {name} is not of its password"
        if before is not None and "app" in before:
            for name in before:
                assert (before[name][0] == found.get(name, ("none",))[0]) == (
                    before[name][1] == found.get(name, ("none", None))[1]
                ), f"password and record of {name} do not go together"
        opens = [text for text in (OLD, NEW) if self.db.logs_in("app", text)]
        assert opens == [found["app"][0]], opens
        assert found["keep"][0] == KEPT
        assert found.get("fresh", (FRESH,))[0] == FRESH


#: What the server has of its own in these, thousands of rows, only counts where somebody changed its ACL.
_OWN = {
    "pg_proc": "oid >= 16384 OR proacl IS NOT NULL",
    "pg_type": "oid >= 16384 OR typacl IS NOT NULL",
    "pg_attribute": "attrelid >= 16384 OR attacl IS NOT NULL",
    "pg_description": "objoid >= 16384",
    "pg_rewrite": "oid >= 16384",
}


def whole_catalog(db: Database) -> Callable[[], list[tuple[Any, ...]]]:
    """Reads every catalog, each as a number of rows and a sum of their hashes."""
    names = db.query("SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'")
    text = " UNION ALL ".join(
        f"SELECT '{name}', count(*), sum(hashtextextended(t::text, 0)::numeric) FROM {name} AS t"
        f" WHERE {_OWN.get(name, 'true')}"
        for (name,) in sorted(names)
    )
    # Planned once for a session: fifty tables take longer to plan than to read.
    return lambda: db.query(text, prepare=True)
