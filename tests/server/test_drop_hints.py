# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hint of ``drop_blocked`` is followed by people who are in a hurry: it never leads to DROP OWNED without an heir
where a role owns something, in whichever database, and what it says is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import pytest
from harness import Database

#: What a role ({r}, number {n}) may own.
OWNED = {
    "table": "CREATE TABLE public.{r}_t (); ALTER TABLE public.{r}_t OWNER TO {r}",
    "schema": "CREATE SCHEMA {r}_s AUTHORIZATION {r}",
    "large object": "SELECT lo_create({n}); ALTER LARGE OBJECT {n} OWNER TO {r}",
}
#: What else ties it.
TIED = {
    "privileges": "GRANT SELECT ON public.common TO {r}",
    "own default privileges": "ALTER DEFAULT PRIVILEGES FOR ROLE {r} GRANT SELECT ON TABLES TO other",
    "default privileges": "ALTER DEFAULT PRIVILEGES FOR ROLE other GRANT SELECT ON TABLES TO {r}",
    "policy": "CREATE POLICY {r}_p ON public.common TO {r}",
    "shared policy": "CREATE POLICY {r}_p ON public.common TO {r}, other",
    "user mapping": "CREATE USER MAPPING FOR {r} SERVER srv",
}
TIED["everything"] = "; ".join(text for name, text in TIED.items() if name != "shared policy")
HERE, THERE = "here", "there"


class Leaver(NamedTuple):
    """A role that goes: what it owns, where, and what else ties it, where."""

    name: str
    owned: str
    owns: tuple[str, ...]
    tied: str
    ties: tuple[str, ...]

    def statements(self, place: str) -> list[str]:
        texts = [OWNED[self.owned]] if place in self.owns else []
        texts += [TIED[self.tied]] if place in self.ties else []
        return [text.format(r=self.name, n=self.name[1:]) for text in texts]


PLACES = ((HERE,), (THERE,), (HERE, THERE))
LEAVERS = [
    Leaver(f"r{number}", owned, owns, tied, ties)
    for number, (owned, owns, tied, ties) in enumerate(
        [
            *product(OWNED, PLACES, TIED, PLACES),
            *((owned, owns, "", ()) for owned, owns in product(OWNED, PLACES)),
            *(("", (), tied, ties) for tied, ties in product(TIED, PLACES)),
        ],
        1000,
    )
]
BY_NAME = {leaver.name: leaver for leaver in LEAVERS}


@pytest.fixture
def leavers(db: Database) -> Iterator[tuple[Database, str]]:
    """A database and the name of another, with all leavers in both."""
    other = db.cluster.create_database()
    db.sql("CREATE ROLE heir", "CREATE ROLE other", *(f"CREATE ROLE {leaver.name}" for leaver in LEAVERS))
    for place, session in ((HERE, db.connection), (THERE, db.connect(dbname=other))):
        session.execute("CREATE TABLE public.common (); CREATE FOREIGN DATA WRAPPER w")
        session.execute("CREATE SERVER srv FOREIGN DATA WRAPPER w")
        session.execute("; ".join(text for leaver in LEAVERS for text in leaver.statements(place)))
    yield db, other


def retire(roles: list[str], **options: Any) -> dict[str, Any]:
    return {
        "roles": [{"name": "heir"}],
        "assume_roles": ["other"],
        "retirements": [{"role": role, **options} for role in roles],
    }


def advised(hint: str) -> dict[str, Any]:
    """The options that a hint asks for."""
    first = hint.split(". ")[0]
    found: dict[str, Any] = {"reassign_owned_to": "heir"} if "reassign_owned_to" in first else {}
    return {**found, **dict.fromkeys(re.findall(r"(drop_owned|all_databases): true", first), True)}


def told(hint: str) -> list[str]:
    """What a hint says, in order: the options, and what would be lost without an heir."""
    sentences = hint.removesuffix(".").split(". ")
    (asked,) = [text for text in sentences if "Retire the role with" in text]
    found = re.findall("all_databases|reassign_owned_to|drop_owned", asked)
    for text in sentences:
        for start in (
            "Without reassign_owned_to, drop_owned: true would destroy what it owns: ",
            "drop_owned: true also ",
        ):
            if text.startswith(start):
                found.append(text.removeprefix(start))
    return found


def expected(leaver: Leaver, there: bool, given: dict[str, Any], other: str) -> list[str]:
    """What the hint has to say of one of the two databases."""
    heir, swept, place = "reassign_owned_to" in given, "drop_owned" in given, THERE if there else HERE
    # What is here goes by drop_owned if that was asked for; nobody asked for what is elsewhere.
    risk = [] if heir else [where for where in leaver.owns if where == THERE or not swept]
    found = ["all_databases"] if there else []
    found += ["reassign_owned_to"] if risk or (there and THERE in leaver.owns) else []
    sweeps = place in leaver.ties
    found += ["drop_owned"] if sweeps else []
    name = leaver.name
    things = {
        "table": f"table public.{name}_t",
        "schema": f"schema {name}_s",
        "large object": f"large object {name[1:]}",
    }
    lost = [things[leaver.owned] if where == HERE else f"1 object in database {other}" for where in risk]
    found += [", ".join(lost)] if lost else []
    if sweeps and leaver.tied in ("policy", "everything") and HERE in leaver.ties:
        found.append(f"deletes policies: {name}_p on public.common")
    return found


@pytest.mark.parametrize("given", [{}, {"drop_owned": True}, {"reassign_owned_to": "heir"}])
def test_whoever_follows_the_hints_loses_nothing(leavers: tuple[Database, str], given: dict[str, Any]) -> None:
    db, other = leavers
    said = db.fails(retire(list(BY_NAME), **given), "drop_blocked")
    by_role: dict[str, list[dict[str, Any]]] = {}
    for problem in said.problems:
        by_role.setdefault(problem["role"], []).append(problem)
    wrong = [
        f"{BY_NAME[name]}: {problem['message']} {problem['hint']}"
        for name, problems in by_role.items()
        for problem in problems
        if told(problem["hint"]) != expected(BY_NAME[name], problem["object"] == other, given, other)
    ]
    assert wrong == []
    if given:
        return
    assert set(by_role) == set(BY_NAME)
    # Told and done: all that the hints of a role ask for is enough, and nothing is destroyed.
    followed: dict[str, dict[str, Any]] = {}
    for name, problems in by_role.items():
        followed[name] = {key: value for problem in problems for key, value in advised(problem["hint"]).items()}
    result = db.converge({**retire([]), "retirements": [{"role": name, **want} for name, want in followed.items()]})
    destroyed = [text.split("destroys: ")[1] for text in result.sql if "destroys: " in text]
    assert [text for text in destroyed if not text.startswith("user mapping for ")] == []
    assert not db.roles() & set(BY_NAME)
