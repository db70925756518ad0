# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random memberships: options, grantors, directions reversed, three spellings, and executors with little power.

A run ends as declared, or it fails before its first statement and for a reason, and then nothing has changed.
``PROPERTIES=long`` runs many more and random examples, as in ``test_properties.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import psycopg
import yaml
from harness import Database, Result
from hypothesis import event, given, note
from hypothesis import strategies as st
from test_properties import examples

Edge: TypeAlias = "tuple[str, str]"
OPTIONS = ("admin", "inherit", "set")

#: ``adm`` is inherited by the executor ``cr``, who may create roles; ``su2`` is a superuser that initdb did not make.
ROLES = ("a", "b", "c", "d", "e", "adm", "cr")
GROUPS = (*ROLES, "rds_superuser", "pg_monitor")
NEW = ("fresh", "newer")


class Row(NamedTuple):
    """A row of pg_auth_members."""

    group: str
    member: str
    grantor: str
    admin: bool
    inherit: bool
    set: bool


@dataclass
class Case:
    """What there is, what is wanted, and who runs it."""

    setup: list[str]
    manifest: dict[str, Any]
    executor: str
    done: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return ";\n".join(self.done or self.setup) + f";\n-- as {self.executor}\n" + yaml.safe_dump(self.manifest)


# ---- examples ------------------------------------------------------------------------------------------------------


_often = st.sampled_from([True, True, True, False])
_rarely = st.sampled_from([False, False, False, True])


@st.composite
def cases(draw: st.DrawFn, version: int, executor: str) -> Case:
    return Case(draw(_setup(version, executor)), draw(_manifest(version)), executor)


@st.composite
def _setup(draw: st.DrawFn, version: int, executor: str) -> list[str]:
    setup = ["CREATE ROLE su2 SUPERUSER LOGIN", "CREATE ROLE cr LOGIN CREATEROLE", "CREATE ROLE rds_superuser"]
    # Somebody with little power needs some to begin with.
    mine = executor == "cr" and version >= 16
    for name in ROLES[:-1]:
        words = "".join(f" {word}" for word in ("NOINHERIT", "CREATEROLE") if draw(_rarely))
        if version >= 16 and draw(_often if mine else _rarely):
            grant = draw(st.sampled_from(["", "set", "inherit", "set, inherit"]))
            setup.append(f"SET createrole_self_grant = '{grant}'; SET ROLE cr; CREATE ROLE {name}{words}; RESET ROLE")
        else:
            setup.append(f"CREATE ROLE {name}{words}")
    if draw(_often):
        setup.append("GRANT adm TO cr")
    top = ["cr"] if mine else ["postgres"]
    # Admins first, so that they have something to give.
    for group in draw(st.lists(st.sampled_from(ROLES[:5]), max_size=4)):
        admin = draw(st.sampled_from(["cr", "adm", "adm", *ROLES[:3]]))
        who = draw(st.sampled_from(["postgres", *top]))
        setup.append(f"SET ROLE {who}; GRANT {group} TO {admin} WITH ADMIN OPTION; RESET ROLE")
    for _number in range(draw(st.integers(0, 10))):
        group, member = draw(st.sampled_from(GROUPS)), draw(st.sampled_from((*ROLES, *ROLES[:3], "rds_superuser")))
        grantor = draw(st.sampled_from([*top, *top, *top, "postgres", "adm", *ROLES]))
        options = {name: draw(st.booleans()) for name in OPTIONS if draw(_often)}
        if version < 16:
            words = " WITH ADMIN OPTION" if options.get("admin") else ""
        else:
            words = ", ".join(f"{name} {value}" for name, value in options.items())
            words = f" WITH {words}" if words else ""
        setup.append(f"SET ROLE {grantor}; GRANT {group} TO {member}{words}; RESET ROLE")
    return setup


@st.composite
def _manifest(draw: st.DrawFn, version: int) -> dict[str, Any]:
    roles: dict[str, dict[str, Any]] = {}
    for name in (*ROLES, *NEW):
        how = draw(st.sampled_from(["declared", "declared", "declared", "external", "undeclared"]))
        if how == "declared" or (how == "external" and name not in NEW):
            roles[name] = {"name": name, **({"external": True} if how == "external" else {})}
    stanzas: dict[str, dict[str, Any]] = {}
    known = [*roles, *(["pg_monitor", "rds_superuser"] if draw(_rarely) else [])]
    said: dict[Edge, dict[str, Any]] = {}
    for _number in range(draw(st.integers(0, 8))):
        if not known:
            break
        group, member = draw(st.sampled_from(known)), draw(st.sampled_from(known))
        if group == member or member == "pg_monitor":
            continue
        options: dict[str, Any] = {"admin": True} if draw(_rarely) else {}
        if version >= 16:
            options.update({name: draw(st.booleans()) for name in ("inherit", "set") if draw(_rarely)})
        if draw(_often):
            options = said.setdefault((group, member), options)
        ways = ["memberships"]
        ways += ["member_of"] if member in roles else []
        ways += ["members"] if group in roles else []
        way = draw(st.sampled_from(ways))
        if way == "memberships":
            stanza = stanzas.setdefault(group, {"role": group, "members": []})
            stanza["members"].append({"name": member, **options})
        else:
            here, there = (member, group) if way == "member_of" else (group, member)
            listed = roles[here].setdefault(way, [])
            plain = not options and draw(_often)
            listed.append(there if plain else {"name": there, **options})
    for stanza in stanzas.values():
        if draw(_rarely):
            stanza["exclusive"] = True
    for entry in roles.values():
        for key in ("member_of", "members"):
            if draw(_rarely) and draw(_rarely):
                entry.setdefault(key, [])
    return {"roles": list(roles.values()), "memberships": list(stanzas.values())}


# ---- what should come of it ----------------------------------------------------------------------------------------


@dataclass
class Expected:
    """Effective options by edge, or the reason why there is no such end."""

    edges: dict[Edge, dict[str, bool]] = field(default_factory=dict)
    refused: str | None = None
    #: Groups of which a membership has to change.
    touched: set[str] = field(default_factory=set)


def wanted_edges(manifest: dict[str, Any]) -> dict[Edge, list[dict[str, Any]]]:
    found: dict[Edge, list[dict[str, Any]]] = {}

    def add(group: str, member: str, item: Any) -> None:
        options = item if isinstance(item, dict) else {}
        wanted = {"admin": options.get("admin", False), "inherit": options.get("inherit"), "set": options.get("set")}
        found.setdefault((group, member), []).append(wanted)

    for stanza in manifest["memberships"]:
        for item in stanza["members"]:
            add(stanza["role"], item["name"], item)
    for entry in manifest["roles"]:
        for item in entry.get("member_of", ()):
            add(item["name"] if isinstance(item, dict) else item, entry["name"], item)
        for item in entry.get("members", ()):
            add(entry["name"], item["name"] if isinstance(item, dict) else item, item)
    return found


def expect(case: Case, rows: list[Row], attributes: dict[str, dict[str, bool]], version: int) -> Expected:
    """The end of a run that may do everything, computed from the specification and not from the module."""
    wanted = wanted_edges(case.manifest)
    if any(options != found[0] for found in wanted.values() for options in found) or _circle(wanted):
        return Expected(refused="manifest_invalid")
    declared = {entry["name"]: entry for entry in case.manifest["roles"]}
    exclusive = {stanza["role"] for stanza in case.manifest["memberships"] if stanza.get("exclusive")}
    exclusive |= {name for name, entry in declared.items() if "members" in entry or not entry.get("external")}
    exact = {name for name, entry in declared.items() if "member_of" in entry}
    by_edge: dict[Edge, list[Row]] = {}
    if version >= 16 and case.executor == "cr":
        # Whoever creates a role without being superuser becomes its admin.
        rows = [*rows, *(Row(name, "cr", "postgres", True, False, False) for name in NEW if name in declared)]
    for row in rows:
        by_edge.setdefault((row.group, row.member), []).append(row)
    result = Expected()
    for edge in {*by_edge, *wanted}:
        found = by_edge.get(edge, [])
        if edge in wanted:
            after = _declared(wanted[edge][0], edge, found, attributes, case.executor, version)
        elif edge[0] in exclusive or edge[1] in exact:
            after = _surplus(edge, found, case.executor)
        else:
            after = _effective(found)
        if after:
            result.edges[edge] = after
        if after != _effective(found):
            result.touched.add(edge[0])
    if _circle(result.edges):
        result.refused = "circle"
    return result


def _effective(rows: Iterable[Row]) -> dict[str, bool]:
    found = list(rows)
    return {name: any(getattr(row, name) for row in found) for name in OPTIONS} if found else {}


def _automatic(row: Row) -> bool:
    return row.grantor == "postgres" and row.admin and not row.inherit and not row.set


def _surplus(edge: Edge, rows: list[Row], executor: str) -> dict[str, bool]:
    if _kept_anyway(edge, executor):
        return _effective(rows)
    automatic = [row for row in rows if _automatic(row)]
    return _effective([*automatic, *(row for row in rows if automatic and row.grantor == row.member)])


def _declared(
    wanted: dict[str, Any],
    edge: Edge,
    rows: list[Row],
    attributes: dict[str, dict[str, bool]],
    executor: str,
    version: int,
) -> dict[str, bool]:
    member = edge[1]
    if version < 16:
        admin = wanted["admin"] or (any(row.admin for row in rows) and _kept_anyway(edge, executor))
        return {"admin": admin, "inherit": attributes.get(member, {}).get("inherit", True), "set": True}
    automatic = [row for row in rows if _automatic(row) and attributes[member]["createrole"]]
    others = [row for row in rows if row not in automatic]
    kept = rows if _kept_anyway(edge, executor) else [
        *automatic,
        # What a member gave itself stays as long as it may give.
        *(row for row in others if row.grantor == member and (automatic or wanted["admin"])),
    ]  # fmt: skip
    found = {}
    for name in OPTIONS:
        if wanted[name] is None:
            new = not others and not (automatic and wanted["admin"])
            found[name] = new or any(getattr(row, name) for row in rows)
        else:
            found[name] = wanted[name] or any(getattr(row, name) for row in kept)
    return found


def _kept_anyway(edge: Edge, executor: str) -> bool:
    """Memberships of which nothing is ever taken away."""
    return edge[1] == executor or "rds_superuser" in edge


def _circle(edges: Iterable[Edge]) -> bool:
    members: dict[str, set[str]] = {}
    for group, member in edges:
        members.setdefault(group, set()).add(member)
    below: dict[str, set[str]] = {}
    for start in members:
        pending, seen = [start], set()
        while pending:
            for member in members.get(pending.pop(), ()):
                if member not in seen:
                    seen.add(member)
                    pending.append(member)
        below[start] = seen
    return any(name in seen for name, seen in below.items())


# ---- looking at the server -----------------------------------------------------------------------------------------


def memberships(db: Database) -> list[Row]:
    options = "m.inherit_option, m.set_option" if db.version >= 16 else "u.rolinherit, true"
    return [
        Row(*row)
        for row in db.query(
            "SELECT g.rolname::text, u.rolname::text, coalesce(b.rolname::text, ''), m.admin_option, "
            f"{options} FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles u ON u.oid = m.member "
            "LEFT JOIN pg_roles b ON b.oid = m.grantor WHERE u.oid >= 16384 OR g.oid >= 16384"
        )
    ]


def role_attributes(db: Database) -> dict[str, dict[str, bool]]:
    rows = db.query("SELECT rolname::text, rolinherit, rolcreaterole FROM pg_roles WHERE oid >= 16384")
    return {name: {"inherit": inherit, "createrole": createrole} for name, inherit, createrole in rows}


def prepare(case: Case, db: Database) -> None:
    """Run the setup as far as the server takes it, and let the manifest declare attributes as they are.

    All examples share one database: nothing but roles is made.
    """
    db.sql("RESET ROLE; RESET ALL")
    old = ", ".join(sorted(db.roles()))
    if old:
        db.sql(f"DROP OWNED BY {old}; DROP ROLE {old}")
    for script in case.setup:
        try:
            db.sql(script)
            case.done.append(script)
        except psycopg.Error:
            db.sql("ROLLBACK; RESET ROLE")
    attributes = role_attributes(db)
    for entry in case.manifest["roles"]:
        found = attributes.get(entry["name"])
        if found and not entry.get("external"):
            entry.update(found, **({"login": True} if entry["name"] == "cr" else {}))
    note(case.text)


def check_and_run(case: Case, db: Database) -> Result:
    """A check run that writes nothing, the run, and that the first has told all about the second."""
    before = db.snapshot()
    predicted = db.reconcile(case.manifest, check=True, diff=True, login_user=case.executor)
    assert db.snapshot() == before, "the check run wrote something"
    result = db.reconcile(case.manifest, diff=True, login_user=case.executor)
    note(f"{result.error_code} {result.msg}\n" + "\n".join(result.sql or result.plan))
    if result.failed:
        assert db.snapshot() == before, "a failed run left something behind"
        assert (predicted.error_code, predicted.problems) == (result.error_code, result.problems), predicted
        return result
    for key in ("sql", "summary", "withheld", "diff", "plan_digest"):
        assert result[key] == predicted[key], f"the check run predicted another {key}"
    after = db.snapshot()
    again = db.reconcile(case.manifest, login_user=case.executor)
    assert not again.failed, again
    assert again.sql == [], "a second run had something to do"
    assert db.snapshot() == after
    return result


def as_expected(expected: Expected, case: Case, db: Database) -> None:
    found: dict[Edge, list[Row]] = {}
    for row in memberships(db):
        found.setdefault((row.group, row.member), []).append(row)
    assert {edge: _effective(rows) for edge, rows in found.items()} == expected.edges


@examples(0.5)
@given(data=st.data())
def test_a_superusers_run_ends_as_declared(db: Database, data: st.DataObject) -> None:
    case = data.draw(cases(db.version, data.draw(st.sampled_from(["postgres", "su2"]))))
    prepare(case, db)
    expected = expect(case, memberships(db), role_attributes(db), db.version)
    result = check_and_run(case, db)
    event(f"refused: {expected.refused}")
    if expected.refused:
        assert result.failed, "it should have been refused"
        assert result.error_code == "manifest_invalid", result
        assert expected.refused != "circle" or "circle" in result.msg
        return
    assert not result.failed, result
    as_expected(expected, case, db)


@examples(0.5)
@given(data=st.data())
def test_a_run_without_superuser_ends_as_declared_or_before_it_begins(db: Database, data: st.DataObject) -> None:
    case = data.draw(cases(db.version, "cr"))
    prepare(case, db)
    rows, attributes = memberships(db), role_attributes(db)
    expected = expect(case, rows, attributes, db.version)
    result = check_and_run(case, db)
    if result.failed:
        event(f"failed: {result.error_code}")
        if result.error_code == "manifest_invalid":
            assert expected.refused, result
            return
        assert result.error_code == "insufficient_privilege", result
        assert result.get("sqlstate") is None, "the server had to say no"
        sailing = not expected.refused and plain_sailing(expected, rows, attributes, db.version)
        assert not sailing, "nothing stood in the way"
        return
    event("converged")
    assert not expected.refused, "it should have been refused"
    as_expected(expected, case, db)


def plain_sailing(expected: Expected, rows: list[Row], attributes: dict[str, dict[str, bool]], version: int) -> bool:
    """Whether anybody can see that ``cr`` may do it all; where it is less plain the answer is no."""
    if version < 16:
        return True
    acting = {"cr"}
    while True:
        more = {row.group for row in rows if row.member in acting and row.inherit} - acting
        if not more:
            break
        acting |= more
    for group in expected.touched - set(NEW):
        here = [row for row in rows if row.group == group]
        # Somebody that cr acts as got ADMIN from the top and keeps it, and gave everything that changes.
        sure = [
            row
            for row in here
            if row.member in acting and row.admin and row.grantor == "postgres"
            and expected.edges.get((group, row.member), {}).get("admin")
        ]  # fmt: skip
        if not sure:
            return False
        for row in here:
            after = expected.edges.get((group, row.member), {})
            lowered = any(getattr(row, name) and not after.get(name) for name in OPTIONS)
            if (not after or lowered or row.grantor not in ("postgres", *acting)) and row.grantor not in acting:
                return False
            if not after and row.member in acting:
                return False
    return True
