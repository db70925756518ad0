# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Roles that go: the retired ones, and undeclared ones that the manifest claims by ``scope.roles``."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import AbstractSet, Dict, FrozenSet, List, Mapping, Sequence, Tuple

from ..belongings import Destroyed, destroyed_of, ties_by_role
from ..changes import Change, DropOwned, DropRole, Emptied, ReassignOwned, RetirementChange
from ..filters import is_ignored
from ..policy import Policy
from ..privileges import BOOTSTRAP_OID, is_predefined, is_provider
from ..problems import Problem
from ..records import dataclass, field, replace
from ..state import RoleRef, State


@dataclass(frozen=True)
class Leaving:
    """The roles that a plan drops, by OID. ``heirs``: who gets what each owns, as far as somebody does.

    ``swept``: those whose remaining privileges DROP OWNED takes. ``destroyed``: those of the swept ones that leave what
    they own to nobody.
    """

    roles: AbstractSet[int] = frozenset()
    heirs: Mapping[int, RoleRef] = field(default_factory=dict)
    swept: AbstractSet[int] = frozenset()

    @classmethod
    def of(cls, changes: Sequence[Change]) -> Leaving:
        """Those whom these changes drop, and what they do with what is theirs in the connected database."""
        emptied = Emptied.by(changes)
        dropped = frozenset(change.role.oid for change in changes if isinstance(change, DropRole))
        return cls(dropped, emptied.heirs, emptied.swept)

    @property
    def destroyed(self) -> FrozenSet[int]:
        return frozenset(oid for oid in self.swept if oid not in self.heirs)

    def owner(self, oid: int) -> int:
        """Who owns at the end of the plan what this role owns now."""
        heir = self.heirs.get(oid)
        return oid if heir is None else heir.oid


def candidates(policy: Policy, state: State) -> Mapping[int, str]:
    """The existing roles that the manifest wants to go, with the place that says so.

    A retired one counts whoever it is, so that retiring the executor can be refused; of the others only those that
    nobody else speaks for.
    """
    found: Dict[int, str] = {}
    for retirement in policy.retirements.values():
        oid = state.role_oid(retirement.name)
        if oid is not None:
            found[oid] = retirement.source
    if not policy.scope_roles:
        return found
    for role in state.roles.values():
        if role.oid in found or role.name in policy.roles or role.name in policy.assumed:
            continue
        if role.oid == BOOTSTRAP_OID or role.oid in state.executors:
            continue
        if is_predefined(role.name) or is_provider(role.name) or is_ignored(role.name, policy):
            continue
        pattern = next((pattern for pattern in policy.scope_roles if fnmatchcase(role.name, pattern)), None)
        if pattern is not None:
            found[role.oid] = f"scope.roles: {pattern}"
    return found


def retirement_changes(policy: Policy, state: State) -> List[RetirementChange]:
    """How each role goes: its possessions to the heir, what is left dropped, then the role itself.

    ``state`` has the roles that the plan creates, one of which may be the heir.
    """
    changes: List[RetirementChange] = []
    here = ties_by_role(tie for tie in state.belongings.ties if tie.database == state.server.database)
    for oid, source in candidates(policy, state).items():
        ref = state.ref(oid)
        retirement = policy.retirements.get(ref.name)
        if retirement is None:
            changes.append(DropRole(ref, source, claimed=True))
            continue
        heir = state.role_oid(retirement.heir) if retirement.heir is not None else None
        if heir is not None:
            changes.append(ReassignOwned(ref, state.ref(heir), source))
        if retirement.drop_owned:
            lost = Destroyed.of(destroyed_of(here[oid], heir is not None))
            changes.append(DropOwned(ref, source, state.belongings.policies.get(oid, ()), *lost))
        changes.append(DropRole(ref, source, terminate=retirement.terminate_sessions))
    return changes


def without_destroyed(policy: Policy, state: State, leaving: Leaving) -> Tuple[State, List[Problem]]:
    """The state without the objects that the plan destroys and the default privileges that go with their owner, and a
    problem for each schema that the manifest declares and that would be destroyed.
    """
    if not leaving.swept:
        return state, []
    gone = leaving.destroyed
    problems = [
        Problem(
            path=policy.schemas[schema.name].source,
            role=state.ref(schema.owner).name,
            object=f"schema {schema.name}",
            message=f"the schema {schema.name} is declared, and {state.ref(schema.owner).name} owns it and is retired "
            "with drop_owned, which would destroy it",
            hint="Give the schema an owner, or the retirement reassign_owned_to.",
            code="drop_blocked",
        )
        for schema in state.schemas.values()
        if schema.owner in gone and schema.name in policy.schemas
    ]
    state = replace(
        state,
        groups=tuple(group for group in state.groups if group.owner not in gone),
        named=tuple(group for group in state.named if group.owner not in gone),
        default_acls=tuple(row for row in state.default_acls if row.owner not in leaving.swept),
    )
    return state, problems
