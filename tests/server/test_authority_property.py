# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan is checked against the executor's rights: what it says is what the server does.

Random executors, memberships and manifests. Everything happens in one transaction that is rolled back, so that an
example costs milliseconds: a superuser sets the scene, becomes the executor with SET SESSION AUTHORIZATION, and the
pipeline itself reads, plans, and writes its statements, which then run one by one, each under a savepoint. Without a
problem no statement may fail, and for every problem one has to.

``AUTHORITY_EXAMPLES`` says how many examples; ``PROPERTIES=long`` makes them random.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from typing import Any

import psycopg
import pytest
from harness import COLLECTIONS, Cluster, Database, Runner, link_collection
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

LONG = os.environ.get("PROPERTIES") == "long"
EXAMPLES = int(os.environ.get("AUTHORITY_EXAMPLES", "2000" if LONG else "250"))

EXECUTOR = "exe"
ROLES = [EXECUTOR, "boss", "g", "h", 'Odd "n"', "o"]
NEW = "new"
FLAGS = ["superuser", "createrole", "createdb", "replication", "bypassrls", "inherit", "login"]
#: What one statement that failed makes others fail with, and what says nothing about rights.
FOLLOW_ON = {"42704", "3F000", "42P01"}


def q(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def word(flag: str, value: bool) -> str:
    return ("" if value else "NO") + flag.upper()


@st.composite
def scenes(draw: st.DrawFn, version: int) -> dict[str, Any]:
    """Who there is, who is whose member, what there is, and what is wanted."""
    rarely = st.sampled_from([False] * 9 + [True])
    sometimes = st.sampled_from([False, False, True])
    mostly = st.sampled_from([True, True, True, False])
    some = st.booleans()
    role = st.sampled_from(ROLES)
    setup: list[str] = []
    attributes: dict[str, dict[str, bool]] = {}
    for name in ROLES:
        main = name in (EXECUTOR, "boss")
        attributes[name] = {
            "superuser": draw(rarely) and draw(some),
            "createrole": draw(mostly if main else rarely),
            "createdb": draw(some if main else rarely),
            "replication": draw(sometimes if main else rarely),
            "bypassrls": draw(sometimes if main else rarely),
            "inherit": draw(some if name == EXECUTOR else mostly),
            "login": name == EXECUTOR,
        }
        setup.append(f"CREATE ROLE {q(name)} {' '.join(word(f, v) for f, v in attributes[name].items())}")
    for _number in range(draw(st.integers(0, 9))):
        group, member = draw(role), draw(st.one_of(role, st.just(EXECUTOR)))
        if group == member:
            continue
        admin = draw(some)
        if version >= 16:
            words = f"ADMIN {admin}, INHERIT {draw(some)}, SET {draw(some)}"
            by = f" GRANTED BY {q(draw(role))}" if draw(sometimes) else ""
            setup.append(f"GRANT {q(group)} TO {q(member)} WITH {words}{by}")
        else:
            setup.append(f"GRANT {q(group)} TO {q(member)}{' WITH ADMIN OPTION' if admin else ''}")
    # Else hardly anything would be allowed.
    for name in draw(st.sets(st.sampled_from(ROLES[1:]), max_size=5)) if draw(mostly) else ():
        words = (
            f"ADMIN {draw(mostly)}, INHERIT {draw(sometimes)}, SET {draw(mostly)}" if version >= 16 else "ADMIN OPTION"
        )
        setup.append(f"GRANT {q(name)} TO {EXECUTOR} WITH {words}")
    setup.append(f"ALTER DATABASE @ OWNER TO {q(draw(role))}" if draw(sometimes) else "SELECT")
    setup.append("REVOKE CREATE ON DATABASE @ FROM CURRENT_OWNER" if draw(rarely) else "SELECT")
    setup.append(f"GRANT CREATE ON DATABASE @ TO {q(draw(role))}" if draw(some) else "SELECT")
    setup.append(f"GRANT CREATE ON DATABASE @ TO {EXECUTOR}" if draw(some) else "SELECT")
    setup += [f"CREATE SCHEMA s1 AUTHORIZATION {q(draw(role))}", "CREATE TABLE s1.t (a int)"]
    setup += [f"ALTER TABLE s1.t OWNER TO {q(draw(role))}"]
    setup += [f"ALTER DEFAULT PRIVILEGES FOR ROLE {q(draw(role))} GRANT SELECT ON TABLES TO {q(draw(role))}"]
    self_grant = draw(st.sampled_from(["", "set", "inherit", "set, inherit"])) if version >= 16 else ""
    session_role = draw(st.sampled_from([None, None, *ROLES]))
    return {
        "setup": setup,
        "self_grant": self_grant,
        "session_role": session_role,
        "manifest": draw(manifests(version, attributes)),
    }


@st.composite
def manifests(draw: st.DrawFn, version: int, attributes: dict[str, dict[str, bool]]) -> dict[str, Any]:
    some = st.booleans()
    declared: dict[str, dict[str, Any]] = {name: {"external": True} for name in ROLES}
    manifest: dict[str, Any] = {}
    kinds = st.sampled_from(
        ["create", "alter", "comment", "member", "manage", "schema", "owner", "default", "default", "grant"]
    )
    chosen = draw(st.lists(kinds, min_size=1, max_size=draw(st.sampled_from([1, 1, 3])), unique=True))
    named = st.sampled_from([*ROLES, NEW] if "create" in chosen else ROLES)
    other = st.sampled_from([*ROLES[1:], NEW] if "create" in chosen else ROLES[1:])

    def keep(name: str) -> dict[str, Any]:
        # The role as it is, so that nothing of it changes.
        if declared[name].get("external"):
            declared[name] = dict(attributes[name])
        return declared[name]

    for kind in chosen:
        if kind == "create":
            flags = draw(st.sets(st.sampled_from(FLAGS[1:] if draw(st.integers(0, 3)) else FLAGS), max_size=2))
            declared[NEW] = dict.fromkeys(sorted(flags), True)
            if draw(some):
                declared[NEW]["comment"] = "made"
        elif kind == "alter":
            name = draw(st.sampled_from(ROLES))
            wanted = keep(name)
            for flag in draw(st.sets(st.sampled_from([*FLAGS[1:], "connection_limit"]), min_size=1, max_size=2)):
                if flag == "createrole" and attributes[name][flag]:
                    continue  # an executor that disarms itself is a matter of self-protection
                wanted[flag] = 7 if flag == "connection_limit" else not wanted.get(flag, False)
        elif kind == "comment":
            keep(draw(st.sampled_from(ROLES)))["comment"] = "a comment"
        elif kind == "manage":
            keep(draw(st.sampled_from(ROLES)))
        elif kind == "member":
            stanzas: dict[str, dict[str, Any]] = {}
            for _number in range(draw(st.integers(1, 3))):
                group, member = draw(named), draw(named)
                if group == member:
                    continue
                entry: dict[str, Any] = {"name": member}
                if draw(some):
                    entry["admin"] = draw(some)
                if version >= 16:
                    for option in draw(st.sets(st.sampled_from(["inherit", "set"]), max_size=1)):
                        entry[option] = draw(some)
                stanzas.setdefault(group, {})[member] = entry
            manifest["memberships"] = [
                {"role": group, "members": list(members.values())} for group, members in stanzas.items()
            ]
        elif kind in ("schema", "owner"):
            entry = {"name": "s2" if kind == "schema" else "s1"}
            if kind == "owner" or draw(some):
                entry["owner"] = draw(st.one_of(named, other))
            manifest.setdefault("schemas", []).append(entry)
        elif kind == "default":
            rule: dict[str, Any] = {
                "owner": draw(st.one_of(st.just(NEW), named)) if "create" in chosen else draw(other)
            }
            if draw(some):
                rule["schema"] = "s1"
            grant = {"role": draw(named), "privileges": ["SELECT"], "on_type": "table"}
            manifest["default_privileges"] = [{**rule, "grant": [grant]}]
        else:
            target = {"type": "table", "schema": "s1", "name": "t"}
            manifest["grants"] = [{"role": draw(named), "privileges": ["SELECT"], "object": target}]
    manifest["roles"] = [{"name": name, **wanted} for name, wanted in declared.items()]
    return manifest


@pytest.fixture(scope="session")
def rooms() -> dict[str, Any]:
    """The pipeline's rooms, in this process."""
    link_collection()
    sys.path.insert(0, str(COLLECTIONS))
    name = "ansible_collections.pg_access.reconcile.plugins.module_utils"
    parts = (
        "apply",
        "plan",
        "policy",
        "filters",
        "statements.order",
        "statements.privileges",
        "problems",
        "diff.passwords",
    )
    return {part: importlib.import_module(f"{name}.{part}") for part in parts}


def quietly(connection: psycopg.Connection[Any], statement: str) -> str | None:
    """Run a statement under a savepoint; its SQLSTATE where it fails, or that of a warning."""
    warned: list[str] = []

    def note_warning(diagnostic: Any) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            warned.append(diagnostic.sqlstate)

    connection.add_notice_handler(note_warning)
    connection.execute("SAVEPOINT one")
    try:
        connection.execute(statement)
    except psycopg.Error as exc:
        connection.execute("ROLLBACK TO one")
        return exc.sqlstate
    finally:
        connection.remove_notice_handler(note_warning)
    connection.execute("RELEASE one")
    return warned[0] if warned else None


def judge(scene: dict[str, Any], connection: psycopg.Connection[Any], database: str, rooms: dict[str, Any]) -> str:
    """Compare what is foretold with what happens; says which it was."""
    try:
        policy = rooms["policy"].manifest_to_policy(scene["manifest"])
    except rooms["problems"].ManifestInvalid as invalid:
        return f"not valid: {invalid.problems[0].message[:30]}"
    connection.execute("BEGIN; SET LOCAL search_path = pg_catalog; SET LOCAL client_min_messages = warning")
    for statement in scene["setup"]:
        statement = statement.replace("@", database)
        if "CURRENT_OWNER" in statement:
            owner = connection.execute(
                "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()"
            ).fetchone()
            assert owner
            statement = statement.replace("CURRENT_OWNER", q(owner[0]))
        if quietly(connection, statement) is None:
            note(statement + ";")
    if scene["self_grant"]:
        connection.execute(f"SET LOCAL createrole_self_grant = '{scene['self_grant']}'")
    connection.execute(f"SET LOCAL SESSION AUTHORIZATION {EXECUTOR}")
    session_role = scene["session_role"]
    if session_role and quietly(connection, f"SET LOCAL ROLE {q(session_role)}") is not None:
        session_role = None
    note(f"self_grant={scene['self_grant']!r} session_role={session_role!r}\n{scene['manifest']}")
    state, scope, lookups = rooms["apply"].inspect(
        connection, policy, rooms["diff.passwords"].PasswordOptions(), rooms["filters"].Options()
    )
    options = rooms["filters"].Options(undeclared_grantees="revoke")
    outcome = rooms["plan"].make_plan(policy, state, scope, lookups, options)
    other = [problem for problem in outcome.problems if problem.code != "insufficient_privilege"]
    if other:
        return f"another problem: {other[0].code}"
    sql = rooms["statements.order"].statements(
        outcome.plan.changes,
        rooms["statements.privileges"].inventory_of(state),
        state.server.version,
        session_role=session_role,
    )
    failed = {statement: code for statement in sql if (code := quietly(connection, statement)) is not None}
    for statement in sql:
        note(f"{failed.get(statement, 'ok')}: {statement}")
    for problem in outcome.problems:
        note(f"problem: {problem.text}")
    if not sql:
        return "nothing to do"
    if not outcome.problems:
        assert not failed
    handed_over = not any(statement.startswith("ALTER SCHEMA") for statement in failed)
    for problem in outcome.problems:
        if not handed_over and str(problem.object).startswith("table "):
            continue  # judged as if the schema had its new owner
        # Either the role that the problem names or the object is in a statement that the server refuses.
        names = {str(problem.role), str(problem.object).split(" ", 1)[-1].rpartition(".")[2]}
        names |= {part for part in ROLES if problem.object == f"default privileges of {part}"}
        assert any(q(name) in statement for name in names for statement in failed), problem.text
    for statement, code in failed.items():
        if code not in FOLLOW_ON:
            told = " ".join(f"{problem.role} {problem.object}" for problem in outcome.problems)
            assert any(name in told for name in [*ROLES, NEW, "s1", "s2"] if q(name) in statement), statement
    if outcome.problems:
        return "refused"
    return "allowed, in another's name" if any("SET LOCAL ROLE" in statement for statement in sql) else "allowed"


def test_what_is_foretold_is_what_the_server_does(server: Cluster, runner: Runner, rooms: dict[str, Any]) -> None:
    database = Database(server, runner)
    connection = database.connect()
    seen: Counter[str] = Counter()

    @settings(
        max_examples=EXAMPLES,
        derandomize=not LONG,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(scenes(server.version))
    def prediction(scene: dict[str, Any]) -> None:
        try:
            seen[judge(scene, connection, database.name, rooms)] += 1
        finally:
            connection.execute("ROLLBACK")

    try:
        prediction()
    finally:
        database.close()
    print(seen)
    # Each way often enough to mean something.
    assert min(seen["refused"], seen["allowed"]) > EXAMPLES / 10, seen
    assert seen["allowed, in another's name"] > EXAMPLES / 200, seen
