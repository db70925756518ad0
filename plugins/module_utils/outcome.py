# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What the pure part of the pipeline finds: the differences, and the plan that is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Tuple, Union

from .changes import AlterRole, Change, Plan, RetirementChange, Revoke, RevokeDefault, Withheld
from .diff.privileges import Bucket
from .diff.retirements import Leaving
from .problems import Problem
from .records import dataclass
from .state import State

if TYPE_CHECKING:
    from .authority.powers import Powers


@dataclass(frozen=True)
class Differences:
    """What differs between policy and state, after the filters.

    ``before``: the state, in check mode with the roles that other runs declare. ``with_roles``: with the roles as the
    plan makes them. ``after``: with its schemas, too, and without what it destroys. ``onward``: objects of which
    somebody else than the owner gave something. ``wrong_...``: what the manifest asks and cannot be, by what it is
    about.
    """

    before: State
    with_roles: State
    after: State
    leaving: Leaving
    roles: Tuple[Change, ...]
    members: Tuple[Change, ...]
    schemas: Tuple[Change, ...]
    privileges: Tuple[Change, ...]
    retired: Tuple[RetirementChange, ...]
    onward: Tuple[Bucket, ...]
    suppressed: Tuple[Union[Revoke, RevokeDefault], ...]
    withheld: Tuple[Withheld, ...]
    held_drops: Tuple[Withheld, ...]
    warnings: Tuple[str, ...]
    wrong_roles: Tuple[Problem, ...]
    wrong_members: Tuple[Problem, ...]
    wrong_objects: Tuple[Problem, ...]

    @property
    def nothing_to_judge(self) -> bool:
        """Whether no change is left whose rights and consequences would have to be looked at. What is withheld of a
        role's attributes may be about the executor.
        """
        return not (self.roles or self.members or self.schemas or self.privileges or self.retired) and not any(
            isinstance(item.change, AlterRole) for item in self.withheld
        )

    @property
    def problems(self) -> Tuple[Problem, ...]:
        """Everything that is wrong, in the order in which it is found."""
        return (*self.wrong_roles, *self.wrong_members, *self.wrong_objects)


@dataclass(frozen=True)
class Outcome:
    """A plan, or what stands in its way before the first statement.

    ``after``: the state with the plan's roles and schemas. ``powers``: who may act as whom when privileges are granted
    and revoked; None where nothing was judged.
    """

    plan: Plan
    problems: Tuple[Problem, ...]
    after: State
    powers: Optional[Powers]
