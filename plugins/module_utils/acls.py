# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The ACL of a single object or column, looked up in the groups of objects that are alike."""

from __future__ import annotations

import json
from typing import Dict, Iterator, List, Optional, Tuple

from .state import Acl, Group, Members, State

_NO_ACL = Acl(frozenset())


def shared_groups(state: State) -> List[Group]:
    """Objects outside schemas in the shape of groups, one object each."""

    def one(kind: str, oid: int, name: str, owner: int, acl: Acl) -> Group:
        return Group(kind, None, owner, acl, Members(1, json.dumps([[oid, name]])))

    return [
        *(one("schema", s.oid, s.name, s.owner, s.acl) for s in state.schemas.values()),
        *(one("database", d.oid, d.name, d.owner, d.acl) for d in state.databases.values()),
        *state.named,
    ]


def groups_of(state: State, kind: str) -> Iterator[Group]:
    """The groups of one kind, wherever its objects lie."""
    for group in (*shared_groups(state), *state.groups):
        if group.kind == kind:
            yield group


class Acls:
    """ACLs by object and column. The groups of a kind are decoded when somebody asks, which few runs do."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: Dict[str, Dict[Tuple[int, Optional[str]], Acl]] = {}

    def of(self, kind: str, oid: int, column: Optional[str] = None) -> Acl:
        """The ACL of an object, or of one of its columns."""
        if kind not in self._known:
            self._known[kind] = {
                (item.oid, group.column): group.acl
                for group in groups_of(self._state, kind)
                for item in group.members.objects()
            }
        return self._known[kind].get((oid, column), _NO_ACL)
