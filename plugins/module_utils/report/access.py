# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The data of a report on everybody's access: what a page needs that a result has no room for."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ..explain.answers import GAINED, LOST, OWNS, ROLE, UNCHANGED, Explained
from ..explain.explanation import MOST_TOLD, Asked, Survey, WayThrough
from ..failure import Failure
from ..filters import Options
from ..masking import MASK
from ..policy import Policy
from ..privileges import is_system_schema
from ..problems import shortened
from ..run import Run
from ..script import reasons_of
from ..script_files import write
from ..state import Role
from ..transaction import Settings
from .affected import affected_roles
from .explained import explained_items
from .items import suppressed_items, withheld_items
from .result import summary, suppressed_counts, warnings_of

#: What the filter on the controller has to know. Counts up when older data can no longer be read.
FORMAT = 2

#: The most items of each list; how many more there are is told. A page for people shows far less.
MOST = {
    "held": MOST_TOLD,
    "ways": MOST_TOLD,
    "memberships": 60_000,
    "statements": 5_000,
    "kept": 5_000,
    "withheld": 5_000,
}

#: The most characters of a statement: it may name 500 objects.
LONGEST_STATEMENT = 1_000

#: What a page looks up by name: no name of these is left out.
_NAMED = ("schema", "database")

_WORDS = ("superuser", "createdb", "createrole", "replication", "bypassrls", "login")

Item = Dict[str, Any]


def written(path: str, run: Run, options: Options, policy: Policy, settings: Settings) -> List[str]:
    """Write the data into a file. Returns a warning where it cannot be written: the run is over by then."""
    data = access_of(run, options, policy, check_mode=settings.check_mode, where=settings.where)
    text = json.dumps(_unleaked(data, settings), ensure_ascii=True, separators=(",", ":"))
    try:
        write("report_file", path, text)
    except Failure as failure:
        return [failure.message]
    return []


def access_of(run: Run, options: Options, policy: Policy, *, check_mode: bool, where: str) -> Dict[str, Any]:
    """Everything that a report says, in a stable order and without the time. ``run`` has a survey."""
    survey, plan, server = run.survey, run.plan, run.server
    if survey is None:
        raise ValueError("the run has no survey")
    held, number = _held(survey.held)
    lists: Dict[str, List[Any]] = {
        "held": held,
        "ways": [list(way) for way in _ways(survey.ways)],
        "memberships": [list(edge) for edge in survey.edges],
        "statements": _statements(run),
        "kept": [_plain(item) for item in suppressed_items(plan.suppressed, brief=True)],
        "withheld": [_plain(item) for item in withheld_items(plan.withheld, brief=True)],
    }
    counts = {name: len(items) + survey.left_out.get(name, 0) for name, items in lists.items()}
    counts["held"] += number - len(held)
    return {
        "format": FORMAT,
        "where": where,
        "server": {
            "version": server.full_version,
            "database": server.database,
            "executor": run.state.ref(server.current_user).name,
        },
        "check_mode": check_mode,
        "options": {"mode": options.mode, "undeclared_grantees": options.undeclared_grantees},
        "summary": {name: value for name, value in summary(plan).items() if name != "managed"},
        "backlog": suppressed_counts(plan.suppressed),
        "warnings": warnings_of(run, where),
        "affected": affected_roles(plan.changes),
        "roles": [_role(asked, run, survey, policy) for asked in survey.roles],
        "together": _together(survey),
        **{name: items[: MOST[name]] for name, items in lists.items()},
        "counts": counts,
    }


def _role(asked: Asked, run: Run, survey: Survey, policy: Policy) -> Item:
    """A role as the plan leaves it, or as it was where it goes."""
    role: Optional[Role] = None
    for state, oid in ((survey.after, asked.after), (run.state, asked.before)):
        if role is None and oid is not None:
            role = state.roles.get(oid)
    plan = UNCHANGED
    if asked.after is None:
        plan = LOST
    elif asked.before is None:
        plan = GAINED
    desired = policy.roles.get(asked.name)
    item: Item = {"name": asked.name, "plan": plan}
    if role is not None:
        item["attributes"] = [word.upper() for word in _WORDS if getattr(role, word)]
        item["comment"] = role.comment
    if desired is not None:
        item["rule"] = desired.source
        if desired.profile is not None:
            item.update(profile=desired.profile, schema=desired.schema)
        item.update({name: True for name in ("external", "additive") if getattr(desired, name)})
    return item


def _held(held: Iterable[Explained]) -> Tuple[List[Item], int]:
    """The items of an explanation, those that differ in nothing but the privilege as one with all of them, and how many
    there are of these. Each membership is an item of its own. Where there are too many, memberships in the groups of
    groups are left out first, the farthest of them: the page has the memberships that they come from.
    """
    found: Dict[Tuple[Any, ...], Tuple[Explained, List[str]]] = {}
    for one in _apart(held):
        key = (one.answer._replace(privilege=""), *one[1:])
        found.setdefault(key, (one, []))[1].append(one.answer.privilege)
    together = list(found.values())
    if len(together) > MOST["held"]:
        together.sort(key=lambda item: len(item[0].answer.via) if item[0].answer.kind == ROLE else -1)
    items = []
    for one, privileges in together[: MOST["held"]]:
        item = explained_items([one], brief=one.answer.kind not in _NAMED)[0]
        del item["privilege"]
        items.append({**item, "only": one.only, "privileges": privileges})
    return items, len(together)


def _ways(ways: Sequence[WayThrough]) -> List[WayThrough]:
    """The ways, the longest last where there are too many."""
    return sorted(ways, key=lambda way: len(way.via)) if len(ways) > MOST["ways"] else list(ways)


def _together(survey: Survey) -> List[Tuple[str, str, str, str, str]]:
    """Where a role has a privilege on all objects of a kind in a schema although no single item says so, because some
    have it for another reason than others, or since when: role, schema, kind, privilege, and ``before`` or ``after``.
    """
    found: Dict[Tuple[str, str, str, str, str], Set[int]] = defaultdict(set)
    said: Set[Tuple[str, str, str, str, str]] = set()
    for item in survey.held:
        answer = item.answer
        if item.columns or answer.privilege == OWNS or answer.schema is None or is_system_schema(answer.schema):
            continue
        for moment, other in (("before", GAINED), ("after", LOST)):
            if answer.plan != other:
                key = (answer.role, answer.schema, answer.kind, answer.privilege, moment)
                found[key].update(one.oid for one in item.objects)
                if item.whole or item.only:
                    said.add(key)
    counts = survey.counts
    return sorted(key for key, oids in found.items() if key not in said and len(oids) == counts.get((key[2], key[1])))


def _apart(held: Iterable[Explained]) -> Iterator[Explained]:
    """What is held, groups that are alike one by one: each is a line, a row and a count of a page."""
    for one in held:
        if one.answer.kind == ROLE:
            yield from (one._replace(objects=(group,)) for group in one.objects)
        else:
            yield one


def _statements(run: Run) -> List[Tuple[Optional[str], List[str]]]:
    """The statements with what stands behind each."""
    behind: Mapping[str, List[str]] = {item.text: list(reasons_of(item.changes)) for item in run.behind}
    return [(shortened(text, LONGEST_STATEMENT), behind.get(text, [])) for text in run.sql]


def _plain(item: Mapping[str, Any]) -> Item:
    return {**item, "sql": shortened(item["sql"], LONGEST_STATEMENT)}


def _unleaked(data: Any, settings: Settings) -> Any:
    """The data, each text that holds a secret replaced by the mask."""
    if isinstance(data, dict):
        return {_unleaked(name, settings): _unleaked(value, settings) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_unleaked(item, settings) for item in data]
    return MASK if isinstance(data, str) and settings.leaks(data) else data
