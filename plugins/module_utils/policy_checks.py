# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Checks that the parts of a manifest fit together: cycles, contradictions, names that nobody declares."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Any, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Set, Tuple, Union

from . import privileges
from .manifest.model import Manifest
from .manifest.texts import show
from .manifest.validate import Suggester
from .problems import Problem, file_of

if TYPE_CHECKING:
    from .policy import DefaultRule, DesiredEdge, DesiredRole, Rule


class Report:
    """Collects problems at places that have a source already."""

    def __init__(self, manifest: Manifest) -> None:
        self.problems: List[Problem] = []
        self._labels = manifest.files

    def problem(self, source: str, message: str, *, role: Optional[str] = None, about: Optional[str] = None) -> None:
        """One more problem. ``about`` is the object it is about."""
        self.problems.append(
            Problem(
                path=source,
                file=file_of(source, self._labels),
                role=None if role == privileges.PUBLIC else role,
                object=about,
                message=message,
            )
        )


def check_memberships(edges: Mapping[Tuple[str, str], DesiredEdge], report: Report) -> None:
    groups: Dict[str, List[str]] = {}
    for (group, member), edge in edges.items():
        if "pg_database_owner" in (group, member):
            verb = "has no members but the database's owner" if group == "pg_database_owner" else "cannot be a member"
            report.problem(edge.source, f"pg_database_owner {verb}: PostgreSQL refuses the membership", role=member)
        elif group == member:
            report.problem(edge.source, f"{show(group)} cannot be a member of itself", role=member)
        else:
            groups.setdefault(member, []).append(group)
    for cycle in _cycles(groups):
        printed = " -> ".join((*cycle, cycle[0]))
        report.problem(
            edges[(cycle[0], cycle[-1])].source,
            f"the memberships form a cycle, each role a member of the next: {printed}",
            role=cycle[-1],
        )


def _cycles(groups: Mapping[str, List[str]]) -> Iterator[Tuple[str, ...]]:
    """The cycles that a walk from every role meets, each role on at most one path at a time."""
    done: Set[str] = set()
    for start in groups:
        if start in done:
            continue
        path: List[str] = [start]
        place: Dict[str, int] = {start: 0}
        walks: List[Iterator[str]] = [iter(groups[start])]
        while walks:
            following = next(walks[-1], None)
            if following is None:
                walks.pop()
                last = path.pop()
                del place[last]
                done.add(last)
            elif following in place:
                yield tuple(path[place[following] :])
            elif following not in done and following in groups:
                place[following] = len(path)
                path.append(following)
                walks.append(iter(groups[following]))


def check_contradictions(rules: Iterable[Rule], default_rules: Iterable[DefaultRule], report: Report) -> None:
    """Rules of one level where one gives what the other takes. A named rule and a wildcard are of different levels."""
    said = _Said()
    for rule in rules:
        # Rules with columns meet where they name one column; the object itself is another target.
        keys = [(rule.role, rule.kind, rule.schema, rule.name, column) for column in rule.columns or (None,)]
        _contradiction(said, keys, rule, rule_object(rule), report)
    for default in default_rules:
        layer = "globally" if default.schema is None else f"in {default.schema}"
        about = f"default privileges of {default.owner} on {default.kind} {layer}"
        defaults_key = (default.role, default.owner, default.kind, default.schema, "default")
        _contradiction(said, [defaults_key], default, about, report)


class _Said:
    """What was said about each target, by privilege: the first place that gives it and the first that takes it."""

    def __init__(self) -> None:
        self._places: Dict[Tuple[Any, ...], Dict[bool, Dict[str, str]]] = {}

    def add(self, key: Tuple[Any, ...], names: FrozenSet[str], present: bool, source: str) -> Optional[Tuple[str, str]]:
        """Remembers a rule. Returns a privilege about which an earlier one says the opposite, and its place."""
        both = self._places.setdefault(key, {True: {}, False: {}})
        opposite = both[not present]
        clash: Optional[Tuple[str, str]] = None
        if opposite:
            if privileges.ALL in names:
                clash = next(iter(opposite.items()))
            else:
                for name in sorted(names):
                    place = opposite.get(name, opposite.get(privileges.ALL))
                    if place is not None:
                        clash = (name, place)
                        break
        for name in names:
            both[present].setdefault(name, source)
        return clash


def _contradiction(
    said: _Said, keys: Iterable[Tuple[Any, ...]], rule: Union[Rule, DefaultRule], about: str, report: Report
) -> None:
    clashes = [said.add(key, rule.privileges, rule.present, rule.source) for key in keys]
    clash = next((found for found in clashes if found is not None), None)
    if clash is None:
        return
    name, place = clash
    words = ("present", "absent") if rule.present else ("absent", "present")
    report.problem(
        rule.source,
        f"{name} for {_shown_role(rule.role)} on {about} is {words[0]} in {rule.source} and {words[1]} in {place}",
        role=rule.role,
        about=about,
    )


def _shown_role(role: str) -> str:
    return "PUBLIC" if role == privileges.PUBLIC else show(role)


def rule_object(rule: Rule) -> str:
    """The object of a rule as messages print it: ``table inventory.*``, ``table inventory.item (id, name)``."""
    name = "(the connected one)" if rule.name is None else rule.name
    columns = f" ({', '.join(rule.columns)})" if rule.columns else ""
    return f"{rule.kind} {rule.schema}.{name}{columns}" if rule.schema is not None else f"{rule.kind} {name}"


def check_known(manifest: Manifest, declared: Iterable[str], named: Iterable[Tuple[str, str]], report: Report) -> None:
    if manifest.unreadable & {"roles", "schemas", "profiles", "assume_roles"}:
        # Which roles there are is not known, so neither is which are missing.
        return
    known = {*declared, *manifest.assume_roles}
    suggester = Suggester(known)
    retired = {entry.role for entry in manifest.retirements}
    for name, source in named:
        if name in known or name in retired or privileges.is_predefined(name) or privileges.is_provider(name):
            continue
        report.problem(
            source,
            f"unknown role {show(name)}{suggester.hint(name)}"
            " (declare it in roles, with external: true when someone else looks after it)",
            role=name,
        )


def check_retirements(
    manifest: Manifest, roles: Mapping[str, DesiredRole], named: Iterable[Tuple[str, str]], report: Report
) -> None:
    """A retired role is declared nowhere, named nowhere else, and retired once."""
    retired: Dict[str, str] = {}
    for entry in manifest.retirements:
        first = retired.setdefault(entry.role, entry.source)
        if first != entry.source:
            message = f"the role {show(entry.role)} is retired twice: in {first} and in {entry.source}"
            report.problem(entry.source, message, role=entry.role)
    for entry in manifest.retirements:
        role, heir = entry.role, entry.reassign_owned_to
        declared = roles.get(role)
        if declared is not None and declared.additive:
            report.problem(
                f"{entry.source}.role",
                f"the role {show(role)} is retired here and carries privilege_reconciliation in {declared.source}:"
                " a role cannot be kept from losing privileges and be retired",
                role=role,
            )
        elif declared is not None:
            message = f"the role {show(role)} is retired here and declared in {declared.source}: it can only be one"
            report.problem(f"{entry.source}.role", message, role=role)
        elif role in manifest.assume_roles:
            message = f"the role {show(role)} is retired here and stands in assume_roles: another run looks after it"
            report.problem(f"{entry.source}.role", message, role=role)
        if heir is not None and heir != role and heir in retired:
            message = f"{show(role)} cannot leave what it owns to {show(heir)}, which is retired in {retired[heir]}"
            report.problem(f"{entry.source}.reassign_owned_to", message, role=role)
    for name, source in named:
        # Of a declared one the entry says enough, and of an heir the retirement.
        if name in retired and name not in roles and not source.endswith(".reassign_owned_to"):
            report.problem(source, f"the role {show(name)} is named here and retired in {retired[name]}", role=name)


def check_ignored(manifest: Manifest, named: Mapping[str, str], report: Report) -> None:
    patterns = [(pattern, re.compile(fnmatch.translate(pattern))) for pattern in manifest.scope.ignore_roles]
    if not patterns:
        return
    for name, source in named.items():
        for pattern, compiled in patterns:
            if compiled.match(name):
                report.problem(
                    source,
                    f"the role {show(name)} matches the pattern {show(pattern)} of scope.ignore_roles, and what is"
                    " ignored cannot be named",
                    role=name,
                )
                break
