# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Objects that are alike: what their ACLs say before and after a plan, and what of the plan is about them.

Every object is looked at once, whatever number of roles is asked for: some 0.1 s at 10,000 tables.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ..acls import shared_groups
from ..changes import AlterSchemaOwner, CreateSchema, Grant, Plan, Revoke
from ..diff.retirements import Leaving
from ..privileges import SHARED_KINDS, is_system_schema
from ..records import dataclass, field
from ..state import Acl, Group, Object, State
from ..undo.entries import Places, entries_of, owned_by
from ..undo.forward import Forward, in_statement_order

#: A revoke that is not made, and why: a reason of the documentation's table, or None for the override.
Held = Tuple[Revoke, Optional[str]]

#: Nobody but a superuser has these on PostgreSQL's own tables, whoever was granted them (pg_class_aclmask in aclchk.c).
_NEVER_ON_CATALOGS = frozenset({"INSERT", "UPDATE", "DELETE", "TRUNCATE"})
CATALOG = "pg_catalog"


@dataclass
class Thing:
    """``owner`` and ``before`` are as found, None and empty for what the plan creates; ``heir`` and ``after`` as the
    plan leaves it, likewise for what it destroys.
    """

    kind: str
    schema: Optional[str]
    extension: bool
    owner: Optional[int]
    before: Places
    heir: Optional[int]
    after: Places
    changes: Tuple[Union[Grant, Revoke], ...]
    held: Tuple[Held, ...]
    objects: List[Object] = field(default_factory=list)


def things(before: State, after: State, plan: Plan, forward: Forward) -> List[Thing]:
    """Everything that ``before`` has, and the schemas that the plan creates.

    Of what lies in PostgreSQL's own schemas only what has another ACL than the built-in one, or gets one.
    """
    return list(_Things(before, after, plan, forward).all())


class _Things:
    def __init__(self, before: State, after: State, plan: Plan, forward: Forward) -> None:
        self._before = before
        self._after = after
        self._forward = forward
        self._leaving = Leaving.of(plan.changes)
        self._moved = {change.oid: change.owner.oid for change in plan.changes if isinstance(change, AlterSchemaOwner)}
        self._created = [change.name for change in plan.changes if isinstance(change, CreateSchema)]
        self._changes = [change for change in in_statement_order(plan.changes) if _is_here(change)]
        self._held: List[Held] = [
            *((change, None) for change in plan.suppressed if isinstance(change, Revoke)),
            *((item.change, item.reason) for item in plan.withheld if isinstance(item.change, Revoke)),
        ]
        self._touched = _by_object(self._changes)
        self._kept = _by_object([change for change, _reason in self._held])

    def all(self) -> Iterator[Thing]:
        columns: Dict[Tuple[str, int], Dict[Optional[str], Acl]] = defaultdict(dict)
        same: Dict[Acl, Acl] = {}
        plain: List[Group] = []
        for group in (*shared_groups(self._before), *self._before.groups):
            if group.column is None:
                plain.append(group)
                continue
            acl = same.setdefault(group.acl, group.acl)
            for item in group.members.objects():
                columns[group.kind, item.oid][group.column] = acl
        alike: Dict[Any, Thing] = {}
        for group in plain:
            acl = same.setdefault(group.acl, group.acl)
            schema = None if group.schema is None else self._before.schemas[group.schema].name
            for item in group.members.objects():
                name = (group.kind, item.oid, item.name)
                acls = {None: acl, **columns.get((group.kind, item.oid), {})}
                heir = self._moved.get(item.oid, group.owner) if group.kind == "schema" else group.owner
                changes, held = self._touched.get(name, ()), self._kept.get(name, ())
                if is_system_schema(schema or "") and not (group.acl.explicit or changes or held):
                    continue  # thousands of functions that everybody may execute
                key = (
                    group.kind, schema, group.extension, group.owner, heir, tuple(changes), tuple(held),
                    frozenset((column, id(found)) for column, found in acls.items()),
                )  # fmt: skip
                if key not in alike:
                    alike[key] = self._thing(group, schema, acls, heir, changes, held)
                alike[key].objects.append(item)
        yield from alike.values()
        for word in self._created:
            found = self._after.schema_named(word)
            if found is not None:
                changes = self._touched.get(("schema", found.oid, found.name), ())
                start = self._forward.entries({None: found.acl}, found.owner, found.owner, self._some(changes))
                heir = self._leaving.owner(found.owner)
                yield Thing(
                    "schema", None, False, None, {}, heir, self._left(start, found.owner), self._some(changes), (),
                    [Object(found.oid, found.name)],
                )  # fmt: skip

    def _thing(
        self,
        group: Group,
        schema: Optional[str],
        acls: Mapping[Optional[str], Acl],
        owner: int,
        touched: Sequence[int],
        kept: Sequence[int],
    ) -> Thing:
        changes = self._some(touched)
        now = entries_of(acls)
        heir: Optional[int] = None
        then: Places = {}
        if owner not in self._leaving.destroyed or group.kind in SHARED_KINDS:
            heir = self._leaving.owner(owner)
            then = self._left(self._forward.entries(acls, group.owner, owner, changes), owner)
        if group.kind == "table" and schema == CATALOG:
            for place in (now, then):
                rows = place.get(None, {})
                place[None] = {row: option for row, option in rows.items() if row[1] not in _NEVER_ON_CATALOGS}
        held = tuple(self._held[number] for number in kept)
        return Thing(group.kind, schema, group.extension, group.owner, now, heir, then, changes, held)

    def _some(self, numbers: Sequence[int]) -> Tuple[Union[Grant, Revoke], ...]:
        return tuple(self._changes[number] for number in numbers)

    def _left(self, places: Places, owner: int) -> Places:
        """What is left once the roles are gone that the plan drops."""
        gone = self._leaving.roles
        return {
            column: {row: option for row, option in entries.items() if not {row[0], row[2]} & gone}
            for column, entries in owned_by(places, owner, self._leaving.owner(owner)).items()
        }


def _is_here(change: Union[Grant, Revoke]) -> bool:
    """Whether a change is about the connected database, be it that another one is where it is made."""
    return change.database is None or change.target.kind in SHARED_KINDS


def _by_object(changes: Sequence[Union[Grant, Revoke]]) -> Mapping[Tuple[str, int, str], List[int]]:
    """The numbers of the changes that are about each object."""
    found: Dict[Tuple[str, int, str], List[int]] = defaultdict(list)
    for number, change in enumerate(changes):
        for item in change.target.objects:
            found[change.target.kind, item.oid, item.name].append(number)
    return found
