# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Memberships, and the order in which they are taken away."""

from __future__ import annotations

from collections import defaultdict
from typing import AbstractSet, Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

from ..changes import AddMember, RemoveMember
from ..state import RoleRef
from .names import role, roles
from .statement import Statement


def add_members(changes: Iterable[AddMember]) -> Iterator[Statement]:
    alike: Dict[Tuple[RoleRef, Tuple[Tuple[str, bool], ...], Optional[RoleRef]], List[AddMember]] = defaultdict(list)
    for change in changes:
        options = tuple((name, change.options[name]) for name in ("admin", "inherit", "set") if name in change.options)
        alike[change.group, options, change.grantor].append(change)
    for (group, options, grantor), found in alike.items():
        statement = sql.SQL("GRANT {} TO {}").format(role(group), roles(change.member for change in found))
        if options == (("admin", True),):
            # The only spelling that PostgreSQL 14 and 15 know.
            statement = sql.SQL("{} WITH ADMIN OPTION").format(statement)
        elif options:
            words = ", ".join(f"{name.upper()} {str(value).upper()}" for name, value in options)
            statement = sql.SQL("{} WITH {}").format(statement, sql.SQL(words))
        if grantor is not None:
            statement = sql.SQL("{} GRANTED BY {}").format(statement, role(grantor))
        yield Statement.of(statement, tuple(found))


def ahead_of_removals(
    additions: Iterable[AddMember], early: AbstractSet[int]
) -> Tuple[List[AddMember], List[AddMember]]:
    """The additions that go before early removals, and the rest. ``early``: the groups of these removals.

    What an early removal takes along is granted anew before it, except in the name of a role that gets its ADMIN OPTION
    only afterwards.
    """
    ahead: List[AddMember] = []
    rest: List[AddMember] = []
    admins_later: Set[Tuple[int, int]] = set()
    for change in additions:
        waits = change.grantor is not None and (change.group.oid, change.grantor.oid) in admins_later
        if change.exists and change.group.oid in early and not waits:
            ahead.append(change)
        else:
            rest.append(change)
            if change.options.get("admin"):
                admins_later.add((change.group.oid, change.member.oid))
    return ahead, rest


def remove_member(change: RemoveMember) -> Any:
    option = sql.SQL(f"{change.option.upper()} OPTION FOR " if change.option else "")
    statement = sql.SQL("REVOKE {}{} FROM {}").format(option, role(change.group), role(change.member))
    if change.grantor is not None:
        statement = sql.SQL("{} GRANTED BY {}").format(statement, role(change.grantor))
    return statement


def early_removals(changes: Iterable[RemoveMember]) -> List[RemoveMember]:
    """The removals of memberships that make room for others, in their order: dependents first."""
    return sorted((change for change in changes if change.early), key=_dependents_first)


def late_removals(changes: Iterable[RemoveMember]) -> List[RemoveMember]:
    """The removals of memberships that come last, in their order: dependents first."""
    return sorted((change for change in changes if not change.early), key=_dependents_first)


def _dependents_first(change: RemoveMember) -> Tuple[int, int, str, str]:
    return change.late, -change.depth, change.group.name, change.member.name
