# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Changes as SQL: ordered by what has to come first, batched so that alike objects and grantees share a statement.

Composed with ``psycopg.sql`` only, without a connection, so the same changes always give the same text.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Dict, List, Optional, Sequence

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
    ReassignOwned,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetConfig,
    SetPassword,
)
from ..privileges import KINDS
from ..state import RoleRef
from ..store import creation
from .defaults import alter_defaults
from .memberships import add_members, ahead_of_removals, early_removals, late_removals, remove_member
from .names import in_database, role, text
from .privileges import Inventory, Privileges, sections
from .roles import (
    alter_roles,
    comment_role,
    create_role,
    drop_owned,
    drop_roles,
    password_statement,
    reassign,
    set_config,
)
from .schemas import alter_schema_owner, create_schema
from .statement import Statement, in_names, role_set

#: What contains the others: USAGE on a schema is needed to name what lies in it.
_OUTSIDE = frozenset({KINDS["schema"].keyword, KINDS["database"].keyword})


def statements(
    changes: Sequence[Change],
    inventory: Inventory,
    version: int,
    *,
    session_role: Optional[str] = None,
) -> List[str]:
    """The texts of ``composed_statements``."""
    composed = composed_statements(changes, inventory, version, session_role=session_role)
    return [statement.text for statement in composed]


def composed_statements(
    changes: Sequence[Change],
    inventory: Inventory,
    version: int,
    *,
    session_role: Optional[str] = None,
) -> List[Statement]:
    """The plan's statements in the order in which they run.

    First those of other databases, which are committed before the rest, each with a remark that says where. In every
    database: roles, attributes, settings, comments, passwords (masked), memberships (removals first where an addition
    would close a circle), schemas, grants, default privileges, revokes (columns before relations, leaves before their
    grantors) and what one takes along and the plan keeps, of objects before schemas and databases, other removals of
    memberships with dependents first, what retired roles own, what they hold, the roles themselves.
    """
    places: Dict[Optional[str], List[Change]] = {}
    for change in changes:
        places.setdefault(getattr(change, "database", None), []).append(change)
    own = places.pop(None, [])
    return [
        *(
            statement.after(text(in_database(str(database))))._replace(database=database)
            for database, there in places.items()
            for statement in _in_one_database(there, {}, version, session_role)
        ),
        *_in_one_database(own, inventory, version, session_role),
    ]


def _in_one_database(
    changes: Sequence[Change], inventory: Inventory, version: int, session_role: Optional[str]
) -> List[Statement]:
    # One look at each change: a plan may have a hundred thousand, and this asks for eighteen sorts of them.
    of: Dict[type, List[Any]] = defaultdict(list)
    for change in changes:
        of[type(change)].append(change)
    composer = Privileges(inventory, version)
    lends: List[LendUsage] = of[LendUsage]
    removals: List[RemoveMember] = of[RemoveMember]
    ahead, additions = ahead_of_removals(of[AddMember], {change.group.oid for change in removals if change.early})
    back = role_set(session_role)
    early_grants = composer.batched([change for change in of[Grant] if not change.late])
    # Schemas come first, because naming what lies in one takes USAGE. Then the executor's own, so that each other role
    # is set once for them and once for the rest.
    early_grants.sort(
        key=lambda item: (item.batch.keyword != KINDS["schema"].keyword, item.batch.run_as or RoleRef(-1, ""))
    )
    revokes = composer.batched([change for change in of[Revoke] if not change.covered], inside_first=True)
    late_grants = composer.batched([change for change in of[Grant] if change.late])
    # What is granted late has to be named as well, so schemas lose their USAGE after it.
    last = sorted([*revokes, *late_grants], key=lambda item: item.batch.keyword in _OUTSIDE)
    return [
        *(Statement.of(create_role(change), (change,)) for change in of[CreateRole]),
        *alter_roles(of[AlterRole]),
        *(Statement.of(set_config(change), (change,)) for change in of[SetConfig]),
        *(Statement.of(comment_role(change), (change,)) for change in of[CommentRole]),
        *(Statement.of(part, (change,)) for change in of[CreateStore] for part in creation(change)),
        *(Statement.of(password_statement(change), (change,)) for change in of[SetPassword]),
        *add_members(ahead),
        *(Statement.of(remove_member(change), (change,)) for change in early_removals(removals)),
        *add_members(additions),
        *in_names(
            [(change.run_as, Statement.of(create_schema(change), (change,))) for change in of[CreateSchema]], back
        ),
        *in_names(
            [(change.run_as, Statement.of(alter_schema_owner(change), (change,))) for change in of[AlterSchemaOwner]],
            back,
        ),
        *sections(early_grants, lends, back),
        *in_names(alter_defaults(of[GrantDefault]), back),
        *in_names(alter_defaults(of[RevokeDefault]), back),
        *sections(last, lends, back),
        *(Statement.of(remove_member(change), (change,)) for change in late_removals(removals)),
        *reassign(of[ReassignOwned]),
        # One by one: a list of roles fails where one of them granted something to another.
        *(Statement.of(drop_owned(change), (change,)) for change in of[DropOwned]),
        *drop_roles(of[DropRole]),
    ]


def statement_of(change: Change, *, brief: bool = False) -> str:
    """The statement that one change would be by itself; empty where no statement can. ``brief``: to be read only."""
    if isinstance(change, (GrantDefault, RevokeDefault)) and change.kind not in KINDS:
        return ""
    try:
        if isinstance(change, (Grant, Revoke)) and change.run_as is None and change.database is None:
            # Thousands may be asked for, and this is a tenth of the way.
            composed = [part for item in Privileges({}, 0).batched([change]) for part in item.statements]
        else:
            composed = composed_statements([change], {}, 0)
    except UnicodeEncodeError:
        return ""  # the name holds bytes that no statement can spell
    statement = "; ".join(part.brief if brief else part.text for part in composed)
    if isinstance(change, Revoke) and change.grantor.oid != change.target.owner.oid:
        # An owner's REVOKE does not reach what another grantor gave.
        grantor = text(role(change.grantor))
        return f"SET LOCAL ROLE {grantor}; {statement}; SET LOCAL ROLE NONE"
    return statement
