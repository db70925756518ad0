# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The demo: a legacy login is brought under management, step by step, and every step is checked in the catalog.

Run it with ``make demo``. It fails when something that it tells is not so.
"""

from __future__ import annotations

import difflib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import embedded
from embedded import DemoError, Server

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
#: Whether this is an installed collection: that is no place to write to.
INSTALLED = ROOT.parent.parent.name == "ansible_collections" and not (ROOT / "Makefile").exists()
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
BUILD = CACHE / "pg_access.reconcile" / "demo" if INSTALLED else ROOT / ".build" / "demo"
COLLECTIONS = ROOT.parent.parent.parent if INSTALLED else BUILD / "collections"
STATE = BUILD / "server.json"
LOADER = "pgloader_pg"

#: Everything that one role was granted directly, in one database.
HELD = """
SELECT a.privilege_type || ' on ' || what
FROM (
    SELECT relacl AS acl, oid::regclass::text AS what FROM pg_class
    UNION ALL SELECT nspacl, 'schema ' || nspname FROM pg_namespace
    UNION ALL SELECT proacl, oid::regprocedure::text FROM pg_proc
    UNION ALL SELECT datacl, 'database ' || datname FROM pg_database WHERE datname = current_database()
    UNION ALL SELECT defaclacl, concat('default ', defaclobjtype, ' of ', defaclrole::regrole, ' in ',
        defaclnamespace::regnamespace) FROM pg_default_acl
) AS objects, LATERAL aclexplode(acl) AS a
WHERE a.grantee = %s::regrole
"""
GROUPS = "SELECT roleid::regrole::text FROM pg_auth_members WHERE member = %s::regrole"


class Shop:
    """The demo's database: questions to its catalog, and Ansible runs against it."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def load(self) -> None:
        """Make the database and everything in it."""
        self._psql("postgres", "-c", "CREATE DATABASE shop")
        self._psql("shop", "-f", str(HERE / "brownfield.sql"))

    def _psql(self, database: str, *arguments: str) -> None:
        command = [str(self.server.programs / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", database, *arguments]
        environment = {**os.environ, **self.server.variables, "PGDATABASE": database, "PGOPTIONS": ""}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise DemoError(f"psql failed: {done.stderr.strip()}")

    def ask(self, query: str, *arguments: str) -> set[str]:
        """The first column of a query's rows."""
        # Only here, so that any Python can stop a server.
        import psycopg

        with psycopg.connect(host=str(self.server.folder), port=5432, user="postgres", dbname="shop") as connection:
            return {row[0] for row in connection.execute(query, arguments)}

    def run(self, legacy: str, *options: str, whole: bool = False) -> Run:
        """Run site.yml, showing what it prints; unless ``whole``, from the module's task on."""
        command = [sys.executable, "-m", "ansible", "playbook", "site.yml", "-e", f"legacy={legacy}", *options]
        say(f"$ ansible-playbook {' '.join(command[4:])}", "1")
        process = subprocess.Popen(
            command,
            cwd=HERE,
            env={**environment(), **self.server.variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        lines: list[str] = []
        shown = whole
        try:
            for line in process.stdout or ():
                shown = shown or ": Reconcile]" in line or "fatal:" in line
                if shown:
                    print(f"  {line}", end="", flush=True)
                lines.append(line)
        finally:
            if sys.exc_info()[0]:
                process.terminate()
            process.wait()
        return Run(process.returncode, "".join(lines))


class Run:
    """What an Ansible run printed."""

    def __init__(self, status: int, output: str) -> None:
        self.status = status
        plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
        #: On one line: Ansible breaks long ones.
        self.text = " ".join(plain.split())

    def number(self, pattern: str) -> int:
        """The number in what was printed, 0 where it does not occur."""
        found = re.search(pattern, self.text)
        return int(found.group(1)) if found else 0

    @property
    def changed(self) -> int:
        return self.number(r"changed=(\d+)")

    @property
    def backlog(self) -> int:
        return self.number(rf"backlog: (\d+) undeclared privileges? kept for {LOADER}")

    @property
    def revoked(self) -> int:
        """Privileges and default privileges."""
        numbers = re.findall(r"privileges: \d+ granted, (\d+) revoked", self.text)
        return sum(map(int, numbers))


def environment() -> dict[str, str]:
    """Ansible's environment: nothing of the user's Ansible or PostgreSQL is read or written."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "ANSIBLE_", "DEFAULT_"))}
    if sys.platform == "linux":
        kept["LC_ALL"] = "C.UTF-8"
    return {
        **kept,
        "ANSIBLE_CONFIG": str(HERE / "ansible.cfg"),
        "ANSIBLE_HOME": str(BUILD / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(BUILD / "ansible" / "tmp"),
        "ANSIBLE_REMOTE_TEMP": str(BUILD / "ansible" / "remote"),
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_FORCE_COLOR": str(sys.stdout.isatty()),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def lay_out_collection() -> None:
    """Ansible finds a collection only under ansible_collections/pg_access/reconcile, where an installed one is."""
    if INSTALLED:
        return
    link = COLLECTIONS / "ansible_collections" / "pg_access" / "reconcile"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() or link.resolve() != ROOT:
        link.unlink(missing_ok=True)
        link.symlink_to(ROOT, target_is_directory=True)


def say(text: str = "", style: str = "") -> None:
    """Print for people; in colour on a terminal."""
    print(f"\x1b[{style}m{text}\x1b[0m" if style and sys.stdout.isatty() else text, flush=True)


def chapter(title: str, *lines: str) -> None:
    say()
    say(f"== {title} ==", "1;36")
    for line in lines:
        say(line)
    say()


def check(told: str, *, holds: bool) -> None:
    """Say what is so; the demo fails when it is not."""
    if not holds:
        raise DemoError(f"This should be so and is not: {told}")
    say(f"  [checked] {told}", "32")


def show_difference(old: str, new: str) -> None:
    """What changes in the manifest from one step to the next."""
    folder = HERE / "access" / LOADER
    before, after = ((folder / f"{name}.yml").read_text(encoding="utf-8").splitlines() for name in (old, new))
    say(f"In access/{LOADER}/{new}.yml, beside {old}.yml:")
    for line in difflib.unified_diff(before, after, lineterm="", n=0):
        if not line.startswith(("---", "+++", "@@")):
            say(f"  {line}", "32" if line.startswith("+") else "31")
    say()


def story(shop: Shop) -> None:
    """The whole story."""
    before = shop.ask(HELD, LOADER)
    managed = {privilege for privilege in before if "attic" not in privilege}
    chapter(
        "A database with a past",
        "An embedded PostgreSQL 18 now holds demo/brownfield.sql: the schemas inventory, orders, reporting and staging",
        f"and a login {LOADER}, to which {len(before)} privileges were given by hand over the years, on tables, views,",
        "sequences, functions, schemas and the database, and as default privileges. demo/access/shop.yml says what the",
        "other roles should have; demo/site.yml is the playbook.",
    )

    chapter(
        "1. The problem: adopt revokes what the legacy login holds",
        f"{LOADER} is declared with external: true, so nobody creates, alters or drops it here. Its privileges are",
        "managed all the same. This is a check run: look at the lines with a minus.",
    )
    problem = shop.run("1-external", "--check", "--diff", whole=True)
    check("the check run succeeded and would change something", holds=problem.status == 0 and problem.changed == 1)
    undeclared = len(managed) - 1  # CONNECT is declared
    check(
        f"it would revoke the {undeclared} privileges of {LOADER} that nobody declared, and 4 of others",
        holds=problem.revoked == undeclared + 4,
    )
    check("the catalog is as it was", holds=shop.ask(HELD, LOADER) == before)

    chapter(
        "2. The override: one line for one role",
        "Look at the lines that end with '# kept': they are what would be revoked without the override, and they stay.",
        "The rest of the plan is the same, and one warning gives the backlog.",
    )
    show_difference("1-external", "2-override")
    planned = shop.run("2-override", "--check", "--diff")
    check(
        f"the backlog is {undeclared}, and 4 privileges of others are still revoked",
        holds=planned.status == 0 and planned.backlog == undeclared and planned.revoked == 4,
    )

    chapter("3. Apply, and run again", "The same run without --check, in one transaction.")
    applied = shop.run("2-override")
    after = shop.ask(HELD, LOADER)
    check("something was changed, with the same backlog", holds=applied.changed == 1 and applied.backlog == undeclared)
    check(f"every one of the {len(before)} privileges survived", holds=applied.status == 0 and before <= after)
    check(
        f"what is declared for {LOADER} was granted: {', '.join(sorted(after - before))}",
        holds={privilege.split()[0] for privilege in after - before} == {"INSERT", "SELECT"},
    )
    groups = shop.ask(GROUPS, LOADER)
    check("its memberships converged: inventory_reader, not orders_editor", holds=groups == {"inventory_reader"})
    check("others converged: intern_2019 holds nothing any more", holds=not shop.ask(HELD, "intern_2019"))
    say()
    again = shop.run("2-override")
    check(
        f"the second run had nothing to do, and the backlog is still {undeclared}",
        holds=again.status == 0 and again.changed == 0 and again.backlog == undeclared,
    )

    chapter(
        "4. The backlog goes into the manifest",
        "Privilege by privilege somebody decides: declare it, replace it by a membership, or take it away with",
        "ensure: absent, which the override lets through. Each step is a change of the manifest and a run.",
    )
    backlog, last = undeclared, again
    for old, new in (("2-override", "3-staging"), ("3-staging", "4-inventory"), ("4-inventory", "5-done")):
        show_difference(old, new)
        last = shop.run(new)
        check(f"the backlog fell from {backlog} to {last.backlog}", holds=last.status == 0 and last.backlog < backlog)
        backlog = last.backlog
        say()
    check("the backlog is 0", holds=backlog == 0)
    check(
        "the run said that the override can go",
        holds=f"role {LOADER} holds no undeclared privilege in this database any more" in last.text,
    )

    chapter("5. The override goes", "Without it, and without the rules that took privileges away:")
    show_difference("5-done", "6-no-override")
    final = shop.run("6-no-override")
    check(
        "there is nothing to do, nothing kept, and nothing to warn of",
        holds=final.status == 0 and final.changed == 0 and final.backlog == 0 and "[WARNING]" not in final.text,
    )
    left = {privilege for privilege in shop.ask(HELD, LOADER) if "attic" in privilege}
    check("schema attic, which no manifest names, was never touched", holds=left == before - managed)


def leave_running() -> None:
    """Start a server with the demo's database that stays."""
    server = remembered()
    if server is None or not embedded.runs(server):
        server = embedded.start(stay=True)
        state = {"folder": str(server.folder), "programs": str(server.programs), "pid": server.pid}
        STATE.write_text(json.dumps(state))
        try:
            Shop(server).load()
        except BaseException:
            embedded.stop(server)
            STATE.unlink()
            raise
    say("A PostgreSQL 18 with the demo's database runs. To explore it:", "1")
    for name, value in server.variables.items():
        say(f"  export {name}={value}")
    say(f"  {server.programs / 'psql'}")
    say("To run the playbook against it, with the same variables:", "1")
    for name in ("ANSIBLE_CONFIG", "ANSIBLE_HOME", "ANSIBLE_COLLECTIONS_PATH"):
        say(f"  export {name}={environment()[name]}")
    say(f"  {sys.executable} -m ansible playbook {HERE / 'site.yml'} --check --diff -e legacy=1-external")
    say("To stop it and delete its data:", "1")
    say(f"  {sys.executable} {HERE / 'story.py'} stop")


def remembered() -> Server | None:
    """The server that was left running, if there was one."""
    try:
        state = json.loads(STATE.read_text())
        return Server(Path(state["folder"]), Path(state["programs"]), int(state["pid"]))
    except (OSError, ValueError, KeyError):
        return None


def tell() -> None:
    """Start a server, tell the story, stop the server."""
    start = time.monotonic()
    server = embedded.start(stay=False)
    try:
        shop = Shop(server)
        shop.load()
        story(shop)
    finally:
        embedded.stop(server)
    say()
    say(f"Done in {time.monotonic() - start:.0f} seconds. The demo's server is stopped and its data deleted.", "1")


def leave(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def main() -> int:
    what = sys.argv[1] if len(sys.argv) > 1 else "story"
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Not every terminal can show what Ansible prints.
        sys.stdout.reconfigure(errors="replace")
    BUILD.mkdir(parents=True, exist_ok=True)
    lay_out_collection()
    try:
        if what == "story":
            tell()
        elif what == "server":
            leave_running()
        elif what == "stop":
            server = remembered()
            if server is not None:
                embedded.stop(server)
                STATE.unlink()
            say("stopped" if server else "nothing was running")
        else:
            say("usage: demo/run [server|stop]")
            return 2
    except DemoError as error:
        say(f"demo: {error}", "1;31")
        return 1
    except KeyboardInterrupt:
        say("demo: interrupted; its server is stopped")
        return 130
    finally:
        shutil.rmtree(BUILD / "ansible" / "remote", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
