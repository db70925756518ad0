# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What a plan's statements make of the entries of ACLs: the way forward, which explanations and the way back need."""

from __future__ import annotations

from typing import FrozenSet, Iterable, List, Mapping, Optional, Sequence, Union

from ..authority.powers import Powers
from ..changes import Change, Grant, Revoke
from ..state import Acl, State
from .entries import Places, entries_of, owned_by, take_away


def in_statement_order(changes: Iterable[Change]) -> List[Union[Grant, Revoke]]:
    """The grants and revokes as their statements run, without revokes that another statement does."""
    grants = [change for change in changes if isinstance(change, Grant)]
    revokes = [change for change in changes if isinstance(change, Revoke) and not change.covered]
    # Columns before their relations, leaves before their grantors.
    revokes.sort(key=lambda change: (not change.target.columns, -change.depth))
    first = [change for change in grants if not change.late]
    return [*first, *revokes, *(change for change in grants if change.late)]


class Forward:
    """``after`` is the state with the plan's roles and schemas, ``powers`` who may act as whom when it grants."""

    def __init__(self, after: State, powers: Powers) -> None:
        self._after = after
        self._powers = powers

    def entries(
        self,
        acls: Mapping[Optional[str], Acl],
        old_owner: int,
        owner: int,
        changes: Iterable[Union[Grant, Revoke]],
    ) -> Places:
        """The entries of an object and its columns after these changes, which are in the order of their statements
        (ExecGrant_Relation and its like, recursive_revoke in PostgreSQL's acl.c). It changed owner before.
        """
        places = owned_by(entries_of(acls), old_owner, owner)
        for change in changes:
            columns: Sequence[Optional[str]] = change.target.columns or (None,)
            for column in columns:
                if isinstance(change, Grant):
                    acting = change.run_as.oid if change.run_as is not None else self._after.server.current_user
                    grantor = self._grantor(acting, owner, change.privileges, places, column)
                    for privilege in change.privileges:
                        entries = places.setdefault(column, {})
                        row = (change.grantee.oid, privilege, grantor)
                        entries[row] = entries.get(row, False) or change.with_grant_option
                    continue
                for privilege in change.privileges:
                    row = (change.grantee.oid, privilege, change.grantor.oid)
                    for place in [column] if column is not None else list(places):
                        take_away(places.get(place, {}), row, option_only=change.option_only, cascade=change.cascade)
        return places

    def _grantor(
        self, acting: int, owner: int, privileges: FrozenSet[str], places: Places, column: Optional[str]
    ) -> int:
        """Who a GRANT is recorded for (select_best_grantor in acl.c)."""
        if acting == owner or self._powers.is_superuser(acting):
            return owner
        of = (None,) if column is None else (None, column)
        held = [row for place in of for row, option in places.get(place, {}).items() if option]
        for role in self._powers.acts_with(acting):
            if role == owner or all(any(r[0] == role and r[1] == p for r in held) for p in privileges):
                return role
        return acting
