# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Privileges on objects as rules: a wildcard where a role holds something everywhere, else each object by its name.

Objects that are alike come as one group, so the cost grows with the number of different ACLs and of rules.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ..acls import shared_groups
from ..privileges import KINDS, PUBLIC_OID, STORE_SCHEMA, is_system_schema
from ..records import replace
from ..state import Acl, Group, Object, State, default_acl
from .extras import Extras
from .model import Skipped
from .names import Roles, fits, role_name, routine_fits
from .rules import Place, Rules, in_order

#: A role's privileges, each with whether it has the grant option.
Held = Mapping[str, bool]

#: The catalog that a kind's initial ACLs are kept under.
_CATALOGS = {
    "schema": "pg_namespace",
    "function": "pg_proc",
    "type": "pg_type",
    "language": "pg_language",
    "foreign_data_wrapper": "pg_foreign_data_wrapper",
    "foreign_server": "pg_foreign_server",
    "table": "pg_class",
    "view": "pg_class",
    "materialized_view": "pg_class",
    "sequence": "pg_class",
}

#: The first OID that initdb does not give (FirstNormalObjectId in transam.h).
_FIRST_NORMAL_OID = 16384

#: What PUBLIC may not read in information_schema from the beginning, beside names that begin with ``_pg_`` (measured on
#: PostgreSQL 14 to 18).
_HIDDEN_FROM_PUBLIC = frozenset({"sql_parts", "transforms"})

#: So many objects with one fault are listed one by one.
_SINGLE_ITEMS = 20

_NONE: Held = {}

_INFORMATION_SCHEMA: str = "information_schema"

#: The schema that every database begins with. PostgreSQL 14 gives PUBLIC more on it than its successors.
_PUBLIC_SCHEMA: str = "public"


def held_by(acl: Acl, owner: int) -> Dict[int, Dict[str, bool]]:
    """What everybody but the owner holds, by grantee. A privilege counts once, whoever gave it."""
    found: Dict[int, Dict[str, bool]] = {}
    for grantee, privileges in acl.grantees().items():
        if grantee != owner:
            found[grantee] = {name: any(entry.grantable for entry in entries) for name, entries in privileges.items()}
    return found


def _initially(acl: Acl) -> Dict[int, Dict[str, bool]]:
    """What an initial ACL gave. Its owner at that time is whoever gave to itself."""
    owners = {entry.grantee for entry in acl.entries if entry.grantee == entry.grantor}
    return {grantee: held for grantee, held in held_by(acl, -1).items() if grantee not in owners}


def _by_initdb(group: Group, schema: Optional[str], item: Object) -> Optional[Dict[int, Dict[str, bool]]]:
    """What initdb gave on the information schema, which it makes too late for pg_init_privs."""
    if item.oid >= _FIRST_NORMAL_OID or group.column is not None:
        return None
    if group.kind == "schema":
        return {PUBLIC_OID: {"USAGE": False}} if item.name == _INFORMATION_SCHEMA else None
    if schema != _INFORMATION_SCHEMA or _CATALOGS[group.kind] != "pg_class":
        return None
    hidden = item.name in _HIDDEN_FROM_PUBLIC or item.name.startswith("_pg_")
    return None if hidden else {PUBLIC_OID: {"SELECT": False}}


class Said(NamedTuple):
    """What was made of some objects. ``unspeakable``: what a rule is needed for and cannot be written about."""

    rules: Rules
    skipped: List[Skipped]
    unspeakable: List[str]

    @classmethod
    def nothing(cls) -> Said:
        """Nothing yet."""
        return cls(Rules(), [], [])


class Grants:
    """Makes rules out of a state."""

    def __init__(self, state: State, extras: Extras, roles: Roles) -> None:
        self._state = state
        self._extras = extras
        self._roles = roles
        self._version = state.server.version
        self._in_schema: Dict[int, List[Group]] = defaultdict(list)
        for group in state.groups:
            if group.schema is not None:
                self._in_schema[group.schema].append(group)
        self._outside = [group for group in shared_groups(state) if group.kind != "schema"]
        self._schemas = {
            group.members.objects()[0].oid: group for group in shared_groups(state) if group.kind == "schema"
        }

        self._bare_columns = self._columns_without_acl()

    def _columns_without_acl(self) -> Dict[int, List[Tuple[str, Acl]]]:
        """By relation, the columns that were made with an ACL and have none any more, each with the one it was made
        with: no group has them.
        """
        made = {(oid, column): acl for (_catalog, oid, column), acl in self._extras.initial.items() if column}
        names = {column for _oid, column in made}
        for group in self._state.groups:
            if group.column in names:
                for item in group.members.objects():
                    made.pop((item.oid, group.column), None)
        found: Dict[int, List[Tuple[str, Acl]]] = defaultdict(list)
        for (oid, column), acl in made.items():
            found[oid].append((column, acl))
        return found

    def groups(self, schema: int) -> Sequence[Group]:
        """The groups of objects in a schema."""
        return self._in_schema.get(schema, [])

    def concerns(self, schema: int) -> bool:
        """Whether a role that is asked for owns or holds something in the schema, or of the schema itself."""
        return any(self._concerns(group) for group in (self._schemas[schema], *self.groups(schema)))

    def _concerns(self, group: Group) -> bool:
        return any(self._roles.chosen(oid) for oid in (group.owner, *group.acl.grantees()))

    def of_schema(self, oid: int, *, claimed: bool) -> Said:
        """The rules on an ordinary schema and on everything in it. ``claimed``: something else makes it managed."""
        said = Said.nothing()
        by_kind: Dict[str, List[Group]] = defaultdict(list)
        for group in self.groups(oid):
            if group.extension:
                self._singly(group, said)
            elif group.column is not None:
                self._columns(group, said)
            else:
                by_kind[group.kind].append(group)
                self._owners_losses(group, said)
        for kind in sorted(by_kind):
            self._alike(kind, self._state.schemas[oid].name, by_kind[kind], said)
        self._owners_losses(self._schemas[oid], said)
        self._singly(self._schemas[oid], said, unchanged=claimed or said.rules.claim)
        return said

    def outside(self) -> Said:
        """The rules on the connected database, on objects outside schemas, and on PostgreSQL's own objects.

        What is there only touches what it names, so what cannot be named is left out.
        """
        said = Said.nothing()
        for group in self._outside:
            name = group.members.objects()[0].name
            if group.kind == "database" and name != self._state.server.database:
                continue
            if group.kind == "language" and name in self._extras.untrusted:
                self._untrusted(group, name, said)
            elif self._asked(group):
                self._owners_losses(group, said)
                self._singly(group, said)
        for oid, schema in self._state.schemas.items():
            if is_system_schema(schema.name) and schema.name != STORE_SCHEMA:
                for group in (self._schemas[oid], *self.groups(oid)):
                    if self._asked(group):
                        self._singly(group, said, whole=False)
        return said

    def _asked(self, group: Group) -> bool:
        return not self._roles.narrowed or self._concerns(group)

    def _untrusted(self, group: Group, name: str, said: Said) -> None:
        builtin = held_by(default_acl(group.kind, group.owner, self._version), group.owner)
        if held_by(group.acl, group.owner) != builtin:
            said.skipped.append(
                Skipped(
                    "grant",
                    None,
                    {"type": "language", "schema": None, "name": name, "columns": []},
                    "an untrusted language takes no grants",
                    "untrusted_language",
                )
            )

    # ---- one object after the other

    def _singly(self, group: Group, said: Said, *, whole: bool = True, unchanged: bool = False) -> None:
        """Rules on each object of a group whose ACL is not what it was made with, or ``unchanged`` on all of them.

        ``whole``: a rule makes the object managed, so everybody's privileges on it are named; else only what differs.
        """
        held = held_by(group.acl, group.owner)
        catalog = _CATALOGS.get(group.kind, "")
        builtin: Dict[int, Dict[str, bool]] = {}
        if group.column is None:
            builtin = held_by(default_acl(group.kind, group.owner, self._version), group.owner)
        schema = None if group.schema is None else self._state.schemas[group.schema].name
        for item in group.members.objects():
            if catalog == "pg_class" and group.column is None:
                self._lost_columns(group, schema, item, said)
            initial = self._extras.initial.get((catalog, item.oid, group.column))
            before = _by_initdb(group, schema, item) if initial is None else _initially(initial)
            if before is None:
                before = builtin
            said_always = group.kind == "schema" and item.name == _PUBLIC_SCHEMA
            if said_always:
                # What PUBLIC begins with depends on the version, so elsewhere silence would mean something else.
                before = {**before, PUBLIC_OID: dict.fromkeys(KINDS["schema"].privileges, False)}
            elif held == before and not unchanged:
                continue
            for grantee in sorted({*held, *before} - {group.owner}):
                now, then = held.get(grantee, _NONE), before.get(grantee, _NONE)
                if whole and (said_always or grantee != PUBLIC_OID):
                    given = dict(now)
                else:
                    given = {name: option for name, option in now.items() if then.get(name) != option}
                lost = {name for name in then if name not in now}
                self._say(said, group, schema, [item], grantee, given)
                if lost and not self._roles.dangling(grantee):
                    self._say(said, group, schema, [item], grantee, dict.fromkeys(lost, False), present=False)

    def _lost_columns(self, group: Group, schema: Optional[str], item: Object, said: Said) -> None:
        """What was lost with the last entry of a column's ACL."""
        for column, acl in sorted(self._bare_columns.get(item.oid, ()), key=lambda found: found[0]):
            for grantee, lost in sorted(_initially(acl).items()):
                if grantee != group.owner and not self._roles.dangling(grantee):
                    bare = replace(group, column=column, acl=Acl())
                    self._say(said, bare, schema, [item], grantee, dict.fromkeys(lost, False), present=False)

    # ---- many objects at once

    def _alike(self, kind: str, schema: str, groups: Sequence[Group], said: Said) -> None:
        """Rules on all ordinary objects of one kind in a schema."""
        many = sum(group.members.count for group in groups) > 1
        grantees = {grantee for group in groups for grantee in group.acl.grantees() if grantee != PUBLIC_OID}
        holdings = [(group, held_by(group.acl, group.owner)) for group in groups]
        for grantee in sorted(grantees):
            mine = [held.get(grantee, _NONE) for _group, held in holdings]
            if not any(mine):
                continue  # it only owns them
            everywhere = _everywhere([self._as_owner(group, grantee) or held for group, held in zip(groups, mine)])
            self._rules(said, schema, grantee, list(zip(groups, mine)), everywhere if many else _NONE)
        self._public(said, kind, schema, holdings, many)

    def _as_owner(self, group: Group, grantee: int) -> Optional[Held]:
        """What an owner has of its own, which counts as held with grant option."""
        return dict.fromkeys(group.acl.of(grantee), True) if grantee == group.owner else None

    def _public(
        self,
        said: Said,
        kind: str,
        schema: str,
        holdings: Sequence[Tuple[Group, Mapping[int, Held]]],
        many: bool,
    ) -> None:
        """What PUBLIC has beyond what such objects are made with, and what it has no more."""
        usual = KINDS[kind].public
        gained = [
            {name: False for name in held.get(PUBLIC_OID, _NONE) if name not in usual} for _group, held in holdings
        ]
        lost = [{name: False for name in usual if name not in held.get(PUBLIC_OID, _NONE)} for _group, held in holdings]
        groups = [group for group, _held in holdings]
        for parts, present in ((gained, True), (lost, False)):
            everywhere = _everywhere(parts) if many else _NONE
            self._rules(said, schema, PUBLIC_OID, list(zip(groups, parts)), everywhere, present=present)

    def _rules(
        self,
        said: Said,
        schema: str,
        grantee: int,
        parts: Sequence[Tuple[Group, Held]],
        everywhere: Held,
        *,
        present: bool = True,
    ) -> None:
        """A wildcard for what is so everywhere, and rules by name for the rest."""
        kind = parts[0][0].kind
        if not self._roles.speakable(grantee) or set(everywhere) - set(KINDS[kind].privileges):
            everywhere = _NONE  # what is wrong is said object by object
        for option in (False, True):
            names = {name for name, with_option in everywhere.items() if with_option is option}
            if names:
                place = Place(kind, schema, "*")
                said.rules.add(self._roles.name(grantee), place, names, option=option, present=present)
        for group, held in parts:
            rest = {
                name: option
                for name, option in held.items()
                if name not in everywhere or (option and not everywhere[name])
            }
            self._say(said, group, schema, group.members.objects, grantee, rest, present=present)

    def _columns(self, group: Group, said: Said) -> None:
        """Rules on the columns of ordinary relations."""
        schema = None if group.schema is None else self._state.schemas[group.schema].name
        own = group.acl.of(group.owner)
        if own:
            # A rule for it would count as kept through what an owner has on the table.
            what = f"{', '.join(in_order(own, group.kind))} on a column that the owner has given to itself"
            owner = role_name(self._state, group.owner)
            said.skipped.extend(self._skipped(group, schema, group.members.objects(), owner, what, "owner_privileges"))
        for grantee, held in sorted(held_by(group.acl, group.owner).items()):
            self._say(said, group, schema, group.members.objects, grantee, held)

    # ---- what is said, and what cannot be said

    def _say(
        self,
        said: Said,
        group: Group,
        schema: Optional[str],
        items: Union[Sequence[Object], Callable[[], Sequence[Object]]],
        grantee: int,
        held: Held,
        *,
        present: bool = True,
    ) -> None:
        """Rules by name on some objects of a group. ``items``: these objects, or how to get them."""
        if not held:
            return
        objects = items() if callable(items) else items
        if self._roles.dangling(grantee):
            what = f"{', '.join(in_order(held, group.kind))} of a role that no longer exists"
            said.skipped.extend(self._skipped(group, schema, objects, str(grantee), what, "dangling_grantee"))
            return
        if not self._roles.speakable(grantee):
            return  # the role itself is reported, or somebody told to leave it alone
        refused = self._refused(group, held)
        for item in objects:
            why = refused or (None if self._nameable(group, schema, item) else "name")
            if why is not None:
                what = f"{', '.join(sorted(held))} on {group.kind.replace('_', ' ')} {item.label}"
                if grantee == PUBLIC_OID or not present:
                    said.skipped.extend(
                        self._skipped(group, schema, [item], role_name(self._state, grantee), what, why)
                    )
                else:
                    said.unspeakable.append(f"{self._roles.name(grantee)} has {what}")
                continue
            here = group.kind == "database" and item.name == self._state.server.database
            place = Place(group.kind, schema, None if here else item.label)
            for option in (False, True):
                names = {name for name, with_option in held.items() if with_option is option}
                if names:
                    said.rules.add(
                        self._roles.name(grantee), place, names, option=option, present=present, column=group.column
                    )

    def _refused(self, group: Group, held: Held) -> Optional[str]:
        """Why no rule can give this on an object of this kind."""
        kind = KINDS[group.kind]
        if group.column is not None and not kind.column_privileges:
            return "sequence_column"
        if set(held) - set(kind.privileges):
            return "unknown_privilege"
        return None

    def _nameable(self, group: Group, schema: Optional[str], item: Object) -> bool:
        if schema is not None and not fits(schema, "schema"):
            return False
        if group.column is not None and not fits(group.column, "column"):
            return False
        if group.kind == "function":
            return routine_fits(item.label, item.name)
        if group.kind == "parameter":
            return not re.search(r"\{[{%]", item.name)
        return group.kind in ("large_object", "database") or fits(item.name, "column")

    def _owners_losses(self, group: Group, said: Said) -> None:
        """What an owner has taken from itself, which no rule takes away."""
        if not group.acl.explicit or group.column is not None:
            return
        lost = KINDS[group.kind].privileges_on(self._version) - group.acl.of(group.owner).keys()
        if not lost:
            return
        schema = None if group.schema is None else self._state.schemas[group.schema].name
        what = f"{', '.join(in_order(lost, group.kind))} that the owner has taken from itself"
        owner = role_name(self._state, group.owner)
        said.skipped.extend(self._skipped(group, schema, group.members.objects(), owner, what, "owner_privileges"))

    def _skipped(
        self, group: Group, schema: Optional[str], objects: Sequence[Object], role: Optional[str], what: str, why: str
    ) -> List[Skipped]:
        """An item for each of some objects of a group; for many of them one, with their number."""
        columns = [] if group.column is None else [group.column]
        names: List[Optional[str]] = [item.label for item in objects]
        if len(objects) > _SINGLE_ITEMS:
            what = f"{what}, on {len(objects)} objects ({', '.join(item.label for item in objects[:3])}, ...)"
            names = [None]
        return [
            Skipped("grant", role, {"type": group.kind, "schema": schema, "name": name, "columns": columns}, what, why)
            for name in names
        ]


def _everywhere(parts: Sequence[Held]) -> Dict[str, bool]:
    """What is held in all parts, with grant option where it is so in all of them."""
    names = set(parts[0]).intersection(*parts[1:]) if parts else set()
    return {name: all(part[name] for part in parts) for name in names}
