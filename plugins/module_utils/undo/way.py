# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The way back: what a plan changes, turned round in the inverse order, and what nothing can turn round.

Privileges, default privileges and memberships are not turned round change by change: what a plan's statements make of
the entries that there are is worked out (they merge, cascade and take columns along), and the way back leads from there
to what the inspection found, entry by entry, each in its grantor's name.
"""

from __future__ import annotations

from collections import defaultdict
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Type,
)

from ..records import dataclass, replace

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

from ..authority.defaults import authorize_defaults
from ..authority.powers import Powers
from ..authority.schemas import authorize_schemas
from ..belongings import listed
from ..changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    Change,
    CommentRole,
    CreateRole,
    CreateSchema,
    CreateStore,
    DropOwned,
    DropRole,
    Grant,
    GrantDefault,
    LendUsage,
    Plan,
    ReassignOwned,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetConfig,
    SetPassword,
    of_sort,
)
from ..diff.retirements import Leaving
from ..instants import is_spelt
from ..manifest.settings import elements
from ..problems import Problem
from ..state import RoleRef, State
from ..statements.order import composed_statements
from ..statements.statement import BATCH, Statement, role_set
from .defaults import defaults_back
from .memberships import members_back
from .privileges import PrivilegesBack

#: Changes that are turned round.
UNDONE: FrozenSet[Type[Any]] = frozenset(
    {
        CreateRole, AlterRole, CommentRole, SetConfig, AddMember, RemoveMember, CreateSchema, AlterSchemaOwner, Grant,
        Revoke, GrantDefault, RevokeDefault,
    }
)  # fmt: skip

#: Changes that are also made in other databases, where a role that is dropped granted something that stays.
_GRANTED = (AddMember, RemoveMember, Grant, Revoke)

#: Changes that leave nothing behind.
PASSING: FrozenSet[Type[Any]] = frozenset({LendUsage})


def _password_left(change: SetPassword) -> str:
    if change.clear:
        return f"the password of role {change.role.name} is gone"
    return f"the password of role {change.role.name} was replaced, and nobody knows the old one"


def _reassigned(change: ReassignOwned) -> str:
    place = f" in database {change.database}" if change.database is not None else ""
    return f"what role {change.role.name} owned{place} belongs to {change.heir.name}"


def _owned_dropped(change: DropOwned) -> str:
    place = f" in database {change.database}" if change.database is not None else ""
    lost = [f"policy {policy}" for policy in change.policies]
    if change.destroyed_count:
        lost.append(listed(change.destroyed, change.destroyed_count))
    also = f", and so are: {', '.join(lost)}" if lost else ""
    return f"the privileges of role {change.role.name}{place}, and those it gave, are gone{also}"


def _role_dropped(change: DropRole) -> str:
    return f"role {change.role.name} is dropped: its attributes, password, settings, comment and memberships are gone"


#: Changes that nothing turns round, and what to say about each. A role that the plan makes goes with all it has.
LEFT: Mapping[Type[Any], Callable[[Any], str]] = {
    SetPassword: _password_left,
    ReassignOwned: _reassigned,
    DropOwned: _owned_dropped,
    DropRole: _role_dropped,
    CreateStore: lambda _change: "the table of password fingerprints stays: it says which passwords were set",
}


@dataclass(frozen=True)
class Undo:
    """The statements of the way back in blocks, each with a heading; and in words what stays as the plan made it."""

    blocks: Tuple[Tuple[str, Tuple[Statement, ...]], ...] = ()
    left: Tuple[str, ...] = ()


class Compose(NamedTuple):
    """How changes become statements."""

    version: int
    session_role: Optional[str]

    def role(self, name: Optional[str]) -> Statement:
        """Act as this role, or as the run does."""
        return role_set(name or self.session_role)

    def __call__(self, changes: Iterable[Change]) -> List[Statement]:
        # Without an inventory every object is named: what has appeared meanwhile is none of the plan's business.
        return composed_statements(list(changes), {}, self.version, session_role=self.session_role)


def undo_of(
    plan: Plan, before: State, after: State, powers: Optional[Powers], *, session_role: Optional[str] = None
) -> Undo:
    """The way back from a plan.

    ``before`` is the state that the plan was made for, ``after`` that with its roles and schemas, ``powers`` who may
    act as whom when it grants and revokes, None for a plan that nobody had to judge.
    """
    powers = powers or Powers(after)
    compose = Compose(before.server.version, session_role)
    left = [LEFT[type(change)](change) for change in plan.changes if type(change) in LEFT and not _is_new(change)]
    places = sorted({str(c.database) for c in plan.changes if isinstance(c, _GRANTED) and c.database is not None})
    left += [f"what was granted anew in database {place}, because its grantor is dropped, stays" for place in places]
    plan = replace(plan, changes=tuple(c for c in plan.changes if getattr(c, "database", None) is None))
    first_members, last_members, notes = members_back(plan, before, after)
    left += notes
    owners, moved, notes = _schema_owners(plan, after, powers)
    left += notes
    # While privileges go back, a role can use a schema by what it had and by what the plan gave it.
    back = replace(after, schemas={**after.schemas, **before.schemas}, _schema_names={})
    powers = powers.after([], back)
    privileges, notes, refused = PrivilegesBack(plan, before, after, powers, moved).changes()
    left += notes
    defaults, too = authorize_defaults(defaults_back(plan, before), after, powers)
    left += [_refused(problem) for problem in (*refused, *too)]
    attributes, notes = _attributes(plan)
    left += notes
    blocks = (
        ("memberships as they were", compose(first_members)),
        ("schemas back to their owners", compose(owners)),
        *(("privileges as they were", compose(stage)) for stage in privileges),
        ("default privileges as they were", compose(defaults)),
        ("without the schemas that the plan made", _drops_of_schemas(plan, before, powers, compose)),
        ("without the memberships that the plan made", compose(last_members)),
        ("roles as they were", compose(attributes)),
        ("without the roles that the plan made", _drops("ROLE", [c.role.name for c in of_sort(plan, CreateRole)])),
    )
    return Undo(tuple((title, tuple(found)) for title, found in blocks if found), tuple(dict.fromkeys(left)))


def _is_new(change: Any) -> bool:
    return bool(getattr(change, "created", False))


def _refused(problem: Problem) -> str:
    return f"this login may not: {problem.text}"


def _drops(keyword: str, names: Sequence[str]) -> List[Statement]:
    return [
        Statement.of(
            sql.SQL("DROP {} {}").format(
                sql.SQL(keyword), sql.SQL(", ").join([sql.Identifier(name) for name in names[start : start + BATCH]])
            )
        )
        for start in range(0, len(names), BATCH)
    ]


# ---- roles -----------------------------------------------------------------------------------------------------------


def _attributes(plan: Plan) -> Tuple[List[Change], List[str]]:
    """Attributes, settings and comments of roles that were there before."""
    changes: List[Change] = []
    left: List[str] = []
    for change in of_sort(plan, AlterRole):
        attributes = dict(change.before)
        if not is_spelt(attributes.get("valid_until", 0)):
            del attributes["valid_until"]
            left.append(f"the expiry of role {change.role.name} was a date that only the server can spell")
        if attributes:
            changes.append(replace(change, attributes=attributes, before=change.attributes))
    for setting in of_sort(plan, SetConfig):
        if not setting.created:
            value = None if setting.before is None else elements(setting.name, setting.before)
            changes.append(replace(setting, value=value, before=None))
    for comment in of_sort(plan, CommentRole):
        if not comment.created:
            changes.append(replace(comment, comment=comment.before or "", before=comment.comment))
    return changes, left


# ---- schemas ---------------------------------------------------------------------------------------------------------


def _schema_owners(
    plan: Plan, after: State, powers: Powers
) -> Tuple[List[Change], Mapping[int, AlterSchemaOwner], List[str]]:
    """Schemas handed back, the plan's changes by schema, and what this login may not."""
    moved = {change.oid: change for change in of_sort(plan, AlterSchemaOwner)}
    gone = Leaving.of(plan.changes)
    left = [
        f"schema {change.name} belonged to {change.before.name}, which is dropped"
        for change in moved.values()
        if change.before.oid in gone.roles
    ]
    turned: List[Change] = []
    for change in reversed(list(moved.values())):
        if change.before.oid not in gone.roles:
            owner = after.ref(gone.owner(change.owner.oid))
            turned.append(replace(change, owner=change.before, before=owner, run_as=None))
    changes, refused = authorize_schemas(turned, after, powers)
    return changes, moved, [*left, *(_refused(problem) for problem in refused)]


def _drops_of_schemas(plan: Plan, before: State, powers: Powers, compose: Compose) -> List[Statement]:
    """A schema that somebody has put something into meanwhile stays, and the way back with it."""
    executor = before.server.current_user
    by_role: Dict[Optional[RoleRef], List[str]] = defaultdict(list)
    for change in of_sort(plan, CreateSchema):
        owns = change.owner is None or powers.owns(executor, change.owner.oid)
        by_role[None if owns else change.owner].append(change.name)
    found: List[Statement] = []
    for doer, names in by_role.items():
        if doer is not None:
            found.append(compose.role(doer.name))
        found += _drops("SCHEMA", names)
        if doer is not None:
            found.append(compose.role(None))
    return found
