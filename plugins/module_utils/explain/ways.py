# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""How a role comes to what others hold: by inheriting it, or by setting another role first."""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from ..authority.powers import Powers
from ..privileges import PUBLIC_OID
from ..state import State

#: What a membership lets its member do, as GRANT and pg_has_role() call it. MEMBER: nothing of the others.
WORDS = INHERITS, SETS, ADMINISTERS, IS_MEMBER = "INHERIT", "SET", "ADMIN", "MEMBER"


class Way(NamedTuple):
    """``path``: the roles on the way to who holds something. ``set_role``: the one that has to be set for it."""

    path: Tuple[int, ...] = ()
    set_role: Optional[int] = None


class Ways:
    """The ways of roles before or after a plan. ``state`` has their attributes, ``powers`` the memberships."""

    def __init__(self, state: State, powers: Powers) -> None:
        self._state = state
        self._powers = powers

    def of(self, role: Optional[int]) -> Mapping[int, Way]:
        """Whose privileges a role has, itself included, with the shortest way to each.

        Nobody's where there is no such role. What only SET ROLE reaches says so; a superuser needs none.
        """
        if role is None:
            return {}
        if role == PUBLIC_OID:
            return {PUBLIC_OID: Way()}
        powers = self._powers
        found = {group: Way(path) for group, path in powers.paths(role, "inherit").items()}
        found[PUBLIC_OID] = Way((PUBLIC_OID,))
        if self.is_superuser(role):
            return found
        for other, path in powers.paths(role, "set").items():
            if other in found:
                continue  # and with it everything whose privileges it has
            for group, further in powers.paths(other, "inherit").items():
                if group not in found:
                    found[group] = Way(path + further, other)
        return found

    def is_superuser(self, role: int) -> bool:
        return role in self._state.roles and self._state.roles[role].superuser

    def superuser(self, role: Optional[int]) -> Optional[Way]:
        """How a role is a superuser, or None: by its own attribute, which nobody inherits, or by SET ROLE."""
        if role is None or role == PUBLIC_OID:
            return None
        if self.is_superuser(role):
            return Way()
        able = [other for other in self._powers.may_set(role) if self.is_superuser(other)]
        return Way(self._powers.path(role, able[0], "set"), able[0]) if able else None

    def memberships(self, role: Optional[int]) -> Mapping[Tuple[int, str], Tuple[int, ...]]:
        """The groups of a role by what it may do with each, and the shortest way there."""
        if role is None or role == PUBLIC_OID:
            return {}
        powers = self._powers
        found: Dict[Tuple[int, str], Tuple[int, ...]] = {}
        for word, way in ((INHERITS, "inherit"), (SETS, "set")):
            found.update(((group, word), path) for group, path in powers.paths(role, way).items() if group != role)
        reached = powers.paths(role, "member")
        for member, path in reached.items():
            for group in powers.administered(member):
                found.setdefault((group, ADMINISTERS), (*path, group))
        for group, path in reached.items():
            if group != role and not any((group, word) in found for word in (INHERITS, SETS, ADMINISTERS)):
                found[group, IS_MEMBER] = path
        return found

    def direct(self, role: Optional[int]) -> Mapping[int, Set[str]]:
        """The groups that a role is itself a member of, with what these memberships alone let it do."""
        if role is None or role == PUBLIC_OID:
            return {}
        powers = self._powers
        found: Dict[int, Set[str]] = {}
        for way, word in (("member", IS_MEMBER), ("inherit", INHERITS), ("set", SETS)):
            for group in powers.nearest(role, way):
                found.setdefault(group, set()).add(word)
        for group in powers.administered(role):
            found.setdefault(group, set()).add(ADMINISTERS)
        return {group: words - {IS_MEMBER} or words for group, words in found.items()}

    @staticmethod
    def last_edge(role: int, path: Tuple[int, ...]) -> Tuple[int, int]:
        """The membership that a path ends with: group and member."""
        return path[-1], path[-2] if len(path) > 1 else role

    def edges(self, role: int, path: Tuple[int, ...]) -> List[Tuple[int, int]]:
        """The memberships that a path consists of: group and member."""
        return list(zip(path, (role, *path)))
