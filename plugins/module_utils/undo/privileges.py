# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Privileges on objects on the way back, entry by entry, each in its grantor's name.

Columns come after their relations, whose REVOKE takes them along, and schemas get theirs first and lose theirs last.
"""

from __future__ import annotations

from collections import defaultdict
from typing import (
    AbstractSet,
    Any,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

from ..acls import groups_of
from ..authority.powers import Powers
from ..authority.privileges import authorize_privileges, label_of
from ..changes import AlterSchemaOwner, Change, CreateSchema, Grant, Plan, Revoke, Target, of_sort
from ..diff.retirements import Leaving
from ..keep import merge_columns
from ..problems import Problem
from ..records import dataclass, field
from ..state import Acl, Object, RoleRef, State
from .entries import Entries, Places, Row, depths, entries_of, owned_by, take_away, what_hangs
from .forward import Forward, in_statement_order

#: An object as changes name it: kind, OID and name. A parameter that nobody has a privilege on has no OID of its own.
_Name = Tuple[str, int, str]


class _Op(NamedTuple):
    """One step of the way back: an entry that is granted or revoked in its grantor's name."""

    stage: int
    level: int
    column: Optional[str]
    grantee: int
    privilege: str
    grantor: int
    #: Granted with grant option, or just the grant option revoked.
    option: bool
    revoke: bool


#: The stages, in their order. Columns come after their relations, whose REVOKE takes them along.
_GIVE, _UNHANG, _TAKE, _GIVE_COLUMNS, _TAKE_COLUMNS = range(5)


@dataclass
class _Alike:
    """Objects with the same entries that the plan does the same to."""

    kind: str
    schema: Optional[str]
    old_owner: int
    new_owner: int
    #: Who owns them on the way back.
    owner: int
    places: Mapping[Optional[str], Acl]
    changes: List[Union[Grant, Revoke]]
    objects: List[Object] = field(default_factory=list)


class PrivilegesBack:
    """The way back for privileges on objects."""

    def __init__(
        self, plan: Plan, before: State, after: State, powers: Powers, moved: Mapping[int, AlterSchemaOwner]
    ) -> None:
        self._plan = plan
        self._before = before
        self._after = after
        self._powers = powers
        self._forward = Forward(after, powers)
        self._moved = moved
        self._gone = Leaving.of(plan.changes)
        self._notes: Dict[Tuple[str, str, str, str], List[str]] = {}

    def changes(self) -> Tuple[List[List[Change]], List[str], List[Problem]]:
        """The changes in stages, what comes back otherwise than it was, and what this login may not."""
        #: By what alike objects share, the privileges of each.
        steps: Dict[Tuple[int, int, int], List[Union[Grant, Revoke]]] = defaultdict(list)
        for alike in self._grouped():
            for (stage, level), found in self._steps(alike).items():
                # Schemas get theirs first and lose theirs last, because what lies in them is named through them.
                place = 1 if alike.kind != "schema" else 0 if stage == _GIVE else 2
                steps[place, stage, level].extend(found)
        stages: List[List[Change]] = []
        problems: List[Problem] = []
        notes = [note for found in self._notes.values() for note in found[:3]]
        for _key, found in sorted(steps.items()):
            changes, refused = authorize_privileges(
                merge_columns(found), self._after, self._powers, given=self._plan.changes
            )
            stages.append([*self._lends(changes), *changes])
            problems += refused
        return stages, notes, problems

    def _lends(self, changes: Sequence[Change]) -> Iterator[Change]:
        """Schemas for those in whose name something runs and who cannot use them."""
        asked: Set[Tuple[RoleRef, str]] = set()
        for change in changes:
            if isinstance(change, (Grant, Revoke)) and change.run_as is not None and change.target.schema is not None:
                place = (change.run_as, change.target.schema)
                if place not in asked and not self._powers.uses_schema(change.run_as.oid, change.target.schema):
                    lending = self._powers.lending(*place)
                    if lending is not None:
                        yield lending
                asked.add(place)

    # ---- what there was

    def _grouped(self) -> Iterable[_Alike]:
        created = {change.name for change in of_sort(self._plan, CreateSchema)}
        touched: Dict[_Name, List[Union[Grant, Revoke]]] = defaultdict(list)
        targets: Dict[_Name, Tuple[Target, Object]] = {}
        for change in in_statement_order(self._plan.changes):
            target = change.target
            if target.schema in created:
                continue
            for item in target.objects:
                if target.kind == "schema" and item.name in created:
                    continue
                name = (target.kind, item.oid, item.name)
                touched[name].append(change)
                targets.setdefault(name, (target, item))
        for oid, moved in self._moved.items():
            item = Object(oid, moved.name)
            name = ("schema", oid, moved.name)
            touched.setdefault(name, [])
            targets.setdefault(name, (Target("schema", None, (item,), moved.owner), item))
        acls = self._acls(touched)
        grouped: Dict[Any, _Alike] = {}
        for name, changes in touched.items():
            target, item = targets[name]
            places = acls.get(name, {})
            new_owner = old_owner = target.owner.oid
            owner = self._gone.owner(new_owner)
            if target.kind == "schema" and item.oid in self._moved:
                old_owner = self._moved[item.oid].before.oid
                owner = owner if old_owner in self._gone.roles else old_owner
            if owner in self._gone.roles:
                continue  # it goes with its owner
            key = (
                target.kind,
                target.schema,
                old_owner,
                new_owner,
                frozenset((column, id(acl)) for column, acl in places.items()),
                tuple(map(id, changes)),
            )
            if key not in grouped:
                grouped[key] = _Alike(target.kind, target.schema, old_owner, new_owner, owner, places, changes)
            grouped[key].objects.append(item)
        return grouped.values()

    def _acls(self, touched: Mapping[_Name, object]) -> Mapping[_Name, Mapping[Optional[str], Acl]]:
        """What these objects and their columns have now. Equal ACLs are one object, for the sake of grouping."""
        found: Dict[_Name, Dict[Optional[str], Acl]] = defaultdict(dict)
        same: Dict[Acl, Acl] = {}
        for kind in sorted({name[0] for name in touched}):
            for group in groups_of(self._before, kind):
                acl = same.setdefault(group.acl, group.acl)
                for item in group.members.objects():
                    name = (kind, item.oid, item.name)
                    if name in touched:
                        found[name][group.column] = acl
        return found

    # ---- the way back

    def _steps(self, alike: _Alike) -> Mapping[Tuple[int, int], List[Union[Grant, Revoke]]]:
        heir = self._gone.owner(alike.new_owner)
        simulated = self._forward.entries(alike.places, alike.old_owner, alike.new_owner, alike.changes)
        now = owned_by(owned_by(simulated, alike.new_owner, heir), heir, alike.owner)
        was = owned_by(entries_of(alike.places), alike.old_owner, alike.owner)
        for entries in now.values():
            # Nothing is left of a dropped role, neither what it held nor what it gave.
            for row in [row for row in entries if {row[0], row[2]} & self._gone.roles]:
                del entries[row]
        for entries in was.values():
            for row in [row for row in entries if row[0] in self._gone.roles]:
                del entries[row]
        options = {
            row[:2] for places in (now, was) for entries in places.values() for row, option in entries.items() if option
        }
        gathered: Dict[Tuple[Any, ...], Set[str]] = defaultdict(set)
        for op in self._ops(alike, now, was):
            gathered[op._replace(privilege="")].add(op.privilege)
        found: Dict[Tuple[int, int], List[Union[Grant, Revoke]]] = defaultdict(list)
        objects = tuple(sorted(alike.objects))
        for (stage, level, column, grantee, _any, grantor, option, revoke), privileges in gathered.items():
            columns = () if column is None else (column,)
            target = Target(alike.kind, alike.schema, objects, self._after.ref(alike.owner), columns)
            ref = self._after.ref(grantee)
            run_as = self._after.ref(grantor) if self._runs_as(grantor, alike.owner, privileges, options) else None
            words = frozenset(privileges)
            if revoke:
                step: Union[Grant, Revoke] = Revoke(
                    target, ref, words, self._after.ref(grantor), option_only=option, run_as=run_as
                )
            else:
                step = Grant(target, ref, words, option, run_as=run_as)
            # What hangs on an entry goes before it, what it hangs on comes before it.
            found[stage, -level if revoke else level].append(step)
        return found

    def _runs_as(
        self, grantor: int, owner: int, privileges: AbstractSet[str], options: AbstractSet[Tuple[int, str]]
    ) -> bool:
        """Whether a step takes SET ROLE to its grantor. ``options``: who holds a grant option before it or after."""
        executor = self._after.server.current_user
        if self._powers.is_superuser(executor):
            return grantor not in (owner, executor)
        acting = self._powers.acts_with(executor)
        if grantor != owner:
            # In its own name although it inherits the owner: nobody asks then whether it acts as the owner.
            return grantor != executor or owner in acting
        # PostgreSQL may find another option that it has or inherits before the owner's (select_best_grantor in acl.c).
        sure = owner in acting and not any(role in acting and p in privileges for role, p in options if role != owner)
        return not sure and executor != owner and self._powers.can_become(owner)

    def _ops(self, alike: _Alike, now: Places, was: Places) -> Iterator[_Op]:
        owner = alike.owner
        top, before = now.setdefault(None, {}), was.get(None, {})
        kept: Set[Row] = set()
        yield from self._give(alike, None, top, before, frozenset(), kept)
        columns = sorted(c for c in {*now, *was} if c is not None)
        goes = {row: option for row, option in top.items() if row not in before and row not in kept}
        lowers = {row for row, option in top.items() if option and row in before and not before[row]} - kept
        for row in sorted({*goes, *lowers}):
            yield from self._unhang(row, top, now, columns, owner)
        depth = depths(owner, top, frozenset())
        for row in sorted({*goes, *lowers}):
            whole = row in goes
            yield _Op(_TAKE, depth.get((row[2], row[1]), 0), None, *row, not whole, True)
            for place in now.values():
                take_away(place, row, option_only=not whole, cascade=False)
        outer = frozenset((row[0], row[1]) for row, option in top.items() if option)
        for column in columns:
            here, there = now.setdefault(column, {}), was.get(column, {})
            kept = set()
            yield from self._give(alike, column, here, there, outer, kept)
            depth = depths(owner, here, outer)
            for row in sorted(here):
                if row in kept:
                    continue
                level = depth.get((row[2], row[1]), 0)
                if row not in there:
                    yield _Op(_TAKE_COLUMNS, level, column, *row, False, True)
                elif here[row] and not there[row]:
                    yield _Op(_TAKE_COLUMNS, level, column, *row, True, True)

    def _give(
        self,
        alike: _Alike,
        column: Optional[str],
        now: Entries,
        was: Entries,
        outer: FrozenSet[Tuple[int, str]],
        kept: Set[Row],
    ) -> Iterator[_Op]:
        """What is missing, owner first. ``kept`` gets what takes the place of an entry that cannot come back."""
        stage = _GIVE if column is None else _GIVE_COLUMNS
        missing = {row: option for row, option in was.items() if row not in now or (option and not now[row])}
        level = 0
        while missing:
            holders = {(row[0], row[1]) for row, option in now.items() if option} | outer
            ready = [row for row in missing if row[2] == alike.owner or (row[2], row[1]) in holders]
            ready = [
                row
                for row in ready
                if row[2] == alike.owner
                or (self._may_act(row[2], alike.owner) and not self._in_a_ring(row, missing[row], now, alike.owner))
            ]
            # Only somebody else's option, which it inherits, lets a role give itself one.
            ready = [row for row in ready if row[0] != row[2]] or ready
            if not ready:
                break
            for row in sorted(ready):
                option = missing.pop(row)
                now[row] = option or now.get(row, False)
                yield _Op(stage, level, column, *row, option, False)
            level += 1
        for row in sorted(missing):
            # Nobody can act as its grantor, so the owner stands in.
            option, instead = missing[row], (row[0], row[1], alike.owner)
            kept.add(instead)
            self._note(alike, column, row)
            if instead not in now or (option and not now[instead]):
                now[instead] = option
                yield _Op(stage, level, column, *instead, option, False)

    def _may_act(self, role: int, owner: int) -> bool:
        """Whether something can be granted in this role's name that is not taken for the owner's."""
        powers = self._powers
        there = role in self._after.roles and role not in self._gone.roles
        # Who holds the option itself is found before an owner that it inherits. Superusers are not even asked.
        return there and role != owner and not powers.is_superuser(role) and powers.can_become(role)

    def _in_a_ring(self, row: Row, option: bool, now: Entries, owner: int) -> bool:
        """Whether the grantor would have its grant option from the grantee alone (check_circularity in acl.c)."""
        if not option:
            return False
        grantee, privilege, grantor = row
        left = {r for r, held in now.items() if held and r[1] == privilege and r[0] != grantee}
        lost = [grantee]
        while lost:
            role = lost.pop()
            if not self._holds(role, left, owner):
                gone = {r for r in left if r[2] == role}
                left -= gone
                lost.extend(sorted({r[0] for r in gone}))
        return not self._holds(grantor, left, owner)

    def _holds(self, role: int, rows: Set[Row], owner: int) -> bool:
        acting = self._powers.acts_with(role)
        return owner in acting or any(row[0] in acting for row in rows)

    def _note(self, alike: _Alike, column: Optional[str], row: Row) -> None:
        grantee, grantor, owner = (self._after.ref(oid).name for oid in (row[0], row[2], alike.owner))
        target = Target(
            alike.kind, alike.schema, tuple(sorted(alike.objects)), self._after.ref(alike.owner),
            () if column is None else (column,),
        )  # fmt: skip
        label = label_of(Grant(target, self._after.ref(row[0]), frozenset((row[1],))))
        found = self._notes.setdefault((label, grantee, grantor, owner), [])
        found.append(f"{row[1]} on {label} was granted to {grantee} by {grantor}; it comes back as granted by {owner}")

    def _unhang(self, row: Row, top: Entries, now: Places, columns: Sequence[str], owner: int) -> Iterator[_Op]:
        """Entries of columns that hang on a relation's entry that goes: they go first, and come back afterwards."""
        grantee, privilege, _grantor = row
        if grantee == owner or any(r[:2] == row[:2] and option and r != row for r, option in top.items()):
            return
        for column in columns:
            entries = now.get(column, {})
            if any(r[:2] == row[:2] and option and r != row for r, option in entries.items()):
                continue
            for level, hanging in what_hangs(entries, grantee, privilege):
                del entries[hanging]
                yield _Op(_UNHANG, level, column, *hanging, False, True)
