#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`make bench`: measures the collection beside other tools and beside what the server itself needs.

A stopped run goes on where it was. Only a run of everything writes docs/benchmarks.*; others write to .build/bench/.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import places
import rivals as others
import servers
from cluster import DATABASE, Cluster, WrongEnd
from delay import Line
from inspection import check_result, describe_wire, too_many_locks
from machine import machine, versions
from measure import LIMIT, Failed
from names import AS_SENT, COLLECTION, PSQL, PYTHON, far
from programs import Address, Program, answer, as_sent, module, psql, python_floor, write_script
from report import write
from rivals import Command, Rival, Target
from sizes import DELAYS, GRANTS, HUGE, Settings, locks_for, scenario, settings
from store import Round, Sample, Store, key

#: What a tool is made ready with, and what it is.
Entry = tuple[str, Program]


#: Another tool that takes longer is measured once, where the others have three rounds.
SLOW = 20.0


@dataclass
class Bench:
    store: Store
    settings: Settings
    rivals: dict[str, Rival]
    limit: float = LIMIT

    def say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)

    # One measurement

    def sample(self, cluster: Cluster, work: str, program: Program) -> Sample:
        """Bring the database into the state that this work begins in, run the program, and judge the end."""
        begin, changes, end = STATES[work]
        begin(cluster)
        done = program.run(self.limit)
        found: Sample = {
            "seconds": program.shown(done.seconds),
            "processor": done.processor,
            "memory": done.memory,
        }
        if program.items:
            found["items"] = program.items
        if changes:
            cluster.state = ""
        if done.late:
            cluster.state = "" if changes else cluster.state
            return {**found, "late": self.limit}
        if program.ours:
            result = answer(done)
            found["timings"] = result["timings"]
            found["changed"] = result["changed"]
            if result["changed"] != (work != "idle"):
                raise Failed(f"{work} says changed: {result['changed']}")
        if program.check_end:
            end(cluster)
        return found

    def rounds(self, cluster: Cluster, work: str, entries: list[Entry], count: int, name: str = "") -> None:
        """Each tool in turn, again and again."""
        where = key(cluster.version, cluster.scenario.name, name or work)
        for number in range(len(self.store.rounds(where)), count):
            measured: Round = {}
            for tool, program in entries:
                measured[tool] = self.sample(cluster, work, program)
            self.store.add(where, measured)
            took = ", ".join(f"{tool} {sample['seconds']:.2f}" for tool, sample in measured.items())
            self.say(f"{where} {number + 1}/{count}: {took}")

    def missing(self, cluster: Cluster, work: str, count: int, name: str = "") -> bool:
        return len(self.store.rounds(key(cluster.version, cluster.scenario.name, name or work))) < count

    # One size on one version

    def size(self, version: int, size: str) -> None:
        case = scenario(size)
        if is_measured(self.store, self.settings, version, size):
            return
        began = time.monotonic()
        huge = case.size >= HUGE
        locks = locks_for(version, case)
        with Cluster(version, case, None if huge else locks, self.say, thorough=not self.settings.quick) as cluster:
            self.store.note(f"server {version}", cluster.version_text())
            self.store.note(f"locks {version}/{size}", locks)
            if huge and locks:
                # Once with the default, to see that it is refused before it does anything.
                self.once(f"too many locks {version}/{size}", lambda: too_many_locks(cluster))
                cluster.restart(locks)
            with lines(cluster) as addresses:
                self.works(cluster, addresses, huge)
        self.store.note(f"done {version}/{size}", self.settings.asked)
        self.say(f"PostgreSQL {version}, {size}: {time.monotonic() - began:.0f} s in all")

    def works(self, cluster: Cluster, addresses: dict[int, Address], huge: bool) -> None:
        case, near, name = cluster.scenario, addresses[0], f"{cluster.version}/{cluster.scenario.name}"
        work = places.BENCH / "work" / name.replace("/", "-")
        newest = cluster.version == max(self.settings.versions)
        apply_script = write_script(work / "apply.sql", case.shortest_sql())
        distant = {delay: address for delay, address in addresses.items() if delay}

        # From an empty state. What a run says on the wire comes first: it also warms the byte code.
        self.once(f"wire plan {name}", lambda: describe_wire(cluster, "plan"))
        self.rounds(
            cluster, "plan", [(COLLECTION, module(case, near, check=True))], self.settings.rounds_of(case, "plan")
        )
        if not huge:
            self.once(f"wire apply {name}", lambda: describe_wire(cluster, "apply"))
        entries = [(COLLECTION, module(case, near))]
        if not huge:
            entries += [(far(COLLECTION, delay), module(case, address)) for delay, address in distant.items()]
            entries.append((PSQL, psql(near, apply_script)))
        self.rounds(cluster, "apply", entries, self.settings.rounds_of(case, "apply"))
        if not huge and newest and not self.settings.quick:
            # psql waits for each answer.
            waiting = [(far(PSQL, delay), psql(address, apply_script)) for delay, address in distant.items()]
            self.rounds(cluster, "apply", waiting, 1, "apply far psql")

        # From the end state.
        count = self.settings.rounds_of(case, "idle")
        cluster.to_done()
        queries = self.once(f"wire idle {name}", lambda: describe_wire(cluster, "idle"))["queries"]
        idle_script = write_script(work / "idle.sql", queries)
        if self.missing(cluster, "idle", count):
            entries = [
                (COLLECTION, module(case, near)),
                (AS_SENT, as_sent(case, near, work / "sent")),
                *((far(COLLECTION, delay), module(case, address)) for delay, address in distant.items()),
                (PSQL, psql(near, idle_script)),
                (PYTHON, python_floor()),
            ]
            self.rounds(cluster, "idle", entries, count)
        if not huge:
            count = self.settings.rounds_of(case, "drift")
            self.rounds(cluster, "drift plan", [(COLLECTION, module(case, near, check=True))], count)
            self.rounds(cluster, "drift apply", [(COLLECTION, module(case, near))], count)
            if newest:
                self.others(cluster, near, work)

    def once(self, name: str, find: Callable[[], dict[str, object]]) -> dict[str, object]:
        found = self.store.fact(name)
        if found is None:
            found = find()
            self.store.note(name, found)
        return dict(found)

    # The others

    def others(self, cluster: Cluster, near: Address, work: Path) -> None:
        """Each other tool with this collection just before it."""
        case = cluster.scenario
        for name, rival in self.rivals.items():
            folder = work / name.replace("/", "-")
            folder.mkdir(parents=True, exist_ok=True)
            target = Target(near.host, near.port, "postgres", DATABASE, cluster.version, folder)
            written = False
            for kind in ("idle", "apply", "plan"):
                place = f"{kind} beside {name}"
                where = key(cluster.version, case.name, place)
                if not self.store.rounds(where):
                    if not written:
                        rival.write(case, target)
                        written = True
                    self.beside(cluster, kind, name, getattr(rival, kind)(case, target), near)
                if any("late" in measured[name] for measured in self.store.rounds(where)):
                    # It cannot do this size. To wait for the others would take as long again.
                    break

    def beside(self, cluster: Cluster, kind: str, name: str, command: Command | None, near: Address) -> None:
        if command is None:
            return
        place = f"{kind} beside {name}"
        own = module(cluster.scenario, near, check=kind == "plan")
        entries = [(COLLECTION, own), (name, Program.of(command))]
        try:
            if kind == "idle" and command.scale == 1:
                # Some comment the roles of an end state that they have not made: only then they have nothing to do.
                cluster.to_done()
                Program.of(command).run(self.limit)
                cluster.settle()
            self.rounds(cluster, kind, entries, 1, place)
            if self.store.rounds(key(cluster.version, cluster.scenario.name, place))[0][name]["seconds"] < SLOW:
                self.rounds(cluster, kind, entries, min(3, self.settings.rounds or 3), place)
        except (Failed, WrongEnd) as problem:
            cluster.state = ""
            self.say(f"{name}, {kind}: {problem}")
            failure: Round = {name: {"failed": str(problem).splitlines()[0][:300]}}
            self.store.add(key(cluster.version, cluster.scenario.name, place), failure)

    # All of it

    def run(self) -> None:
        self.store.note("machine", machine())
        self.store.note("versions", versions())
        for version in self.settings.versions:
            for size in self.settings.sizes:
                self.size(version, size)
        newest = max(self.settings.versions)
        if not self.settings.quick and self.store.fact(f"result {GRANTS.name}") is None:
            with Cluster(newest, GRANTS, say=self.say) as cluster:
                self.store.note(f"result {GRANTS.name}", check_result(cluster, run_script=True))


#: By work: how it begins, whether it changes anything, and what is looked at afterwards.
STATES: dict[str, tuple[Callable[[Cluster], None], bool, Callable[[Cluster], None]]] = {
    "idle": (Cluster.to_done, False, lambda _cluster: None),
    "plan": (Cluster.to_empty, False, lambda _cluster: None),
    "apply": (Cluster.to_empty, True, Cluster.check_end),
    "drift plan": (Cluster.drift, True, Cluster.undo_drift),
    "drift apply": (Cluster.drift, True, Cluster.check_end),
}


def is_measured(store: Store, wanted: Settings, version: int, size: str) -> bool:
    """Whether all that is asked of this size has been measured."""
    return bool(store.fact(f"done {version}/{size}") == wanted.asked)


def complete(store: Store, wanted: Settings) -> bool:
    every = all(is_measured(store, wanted, version, size) for version in wanted.versions for size in wanted.sizes)
    return every and store.fact(f"result {GRANTS.name}") is not None


@contextmanager
def lines(cluster: Cluster) -> Iterator[dict[int, Address]]:
    """The server, near and far: by milliseconds of delay."""
    near = {0: Address(cluster.host, cluster.port)}
    with ExitStack() as stack:
        distant = {delay: stack.enter_context(Line(cluster.socket, delay / 1000)) for delay in DELAYS}
        yield {**near, **{delay: Address("127.0.0.1", line.port) for delay, line in distant.items()}}


def installed(store: Store, wanted: Settings) -> dict[str, Rival]:
    """The other tools that can be had here. What cannot is noted, with the reason."""
    found: dict[str, Rival] = {}
    told: dict[str, dict[str, str]] = {}
    for rival in others.all_rivals() if not wanted.quick else ():
        if not wanted.wants(rival.name):
            continue
        folder = places.BENCH / "tools" / rival.name.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        version = rival.install(folder)
        told[rival.name] = {"version": version or "", "why": "" if version else rival.why, "note": rival.note}
        if version:
            found[rival.name] = rival
        else:
            print(f"{rival.name} cannot be had: {rival.why}", flush=True)
    store.note("tools", told)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the smallest size once, without other tools")
    parser.add_argument("--report", action="store_true", help="only write the report of what is there")
    parser.add_argument("--to", type=Path, default=None, help="folder for the results")
    options = parser.parse_args()
    os.umask(0o022)
    servers.stop_on_signals()
    wanted = settings(os.environ, quick=options.quick)
    folder = options.to or places.BENCH / ("quick" if options.quick else "")
    if options.quick and not options.report:
        (folder / "results.json").unlink(missing_ok=True)
    store = Store(folder / "results.json", as_it_is=options.report)
    if store.continued and not options.report:
        print("going on with what was measured before", flush=True)
    if not options.report:
        problems = servers.prepare(list(wanted.versions))
        if problems:
            print("; ".join(problems.values()), file=sys.stderr)
            return 1
        try:
            Bench(store, wanted, installed(store, wanted)).run()
        except (Failed, WrongEnd, servers.ServerError) as problem:
            print(f"the benchmark stopped: {problem}", file=sys.stderr)
            return 1
    print(write(store.data, wanted, places.ROOT / "docs" if wanted.whole and complete(store, wanted) else folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
