# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What the catalog holds as a manifest without profiles: the rooms of a reconcile walked backwards.

Applied where it came from, the manifest changes nothing. What it cannot hold is listed, and is left out in such a way
that a reconcile leaves it alone as well.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Set, Tuple

from ..privileges import is_system_schema
from ..state import DefaultAcl, State, default_acl
from .defaults import default_entries, is_claim
from .extras import Choice, Extras
from .grants import Grants, Said
from .model import Flat, Inventory, Skipped
from .names import Roles, fits, matches, role_name
from .roles import Attributes, membership_entries, unread_records


def flat_manifest(state: State, extras: Extras, choice: Choice, leaks: Callable[[str], bool]) -> Flat:
    """The manifest of a state, what it does not hold, and what exists. ``leaks``: whether a text holds a secret."""
    return _Export(state, extras, choice, leaks).flat()


class _Export:
    def __init__(self, state: State, extras: Extras, choice: Choice, leaks: Callable[[str], bool]) -> None:
        self._state = state
        self._extras = extras
        self._choice = choice
        self._leaks = leaks
        self._roles = Roles(state, choice)
        self._grants = Grants(state, extras, self._roles)
        self._skipped: List[Skipped] = []
        self._defaults: Dict[int, List[DefaultAcl]] = defaultdict(list)
        for row in state.default_acls:
            if row.schema is not None:
                self._defaults[row.schema].append(row)

    def flat(self) -> Flat:
        schemas = self._schemas()
        said = self._grants.outside()
        self._skipped += said.skipped
        rules = said.rules
        declared: List[Dict[str, Any]] = []
        exported: List[int] = []
        for oid in schemas:
            found = self._schema(oid)
            if found is None:
                continue
            rules.update(found.rules)
            exported.append(oid)
            if oid not in self._extras.extension_schemas:
                declared.append(self._declaration(oid))
        rows = [row for row in self._state.default_acls if self._is_wanted(row, set(exported))]
        defaults, skipped = default_entries(self._state, rows, self._roles)
        self._skipped += skipped
        self._uncovered()
        self._toast()
        # Last, because only now it is known who is named.
        memberships, left = membership_entries(self._state, self._roles)
        self._skipped += left
        manifest: Dict[str, Any] = {"roles": self._declared_roles()}
        manifest.update(memberships=memberships, schemas=declared, grants=rules.entries(), default_privileges=defaults)
        patterns = self._roles.ignore_patterns()
        if patterns:
            manifest["scope"] = {"ignore_roles": patterns}
        return Flat(
            {section: value for section, value in manifest.items() if value},
            tuple(sorted(self._skipped, key=_order)),
            self._inventory(exported),
        )

    def _schemas(self) -> List[int]:
        """The schemas that are asked for, in the order of their names."""
        found = []
        for schema in sorted(self._state.schemas.values(), key=lambda schema: schema.name):
            if is_system_schema(schema.name):
                continue
            if self._choice.schemas is not None and not matches(schema.name, self._choice.schemas):
                continue
            if not self._roles.narrowed or self._concerns(schema.oid):
                found.append(schema.oid)
        return found

    def _concerns(self, schema: int) -> bool:
        """Whether a role that is asked for has anything to do with a schema."""
        chosen = self._roles.chosen
        return self._grants.concerns(schema) or any(
            chosen(oid) for row in self._defaults[schema] for oid in (row.owner, *row.acl.grantees())
        )

    def _schema(self, oid: int) -> Optional[Said]:
        """The rules on a schema and in it; None where it has to stay out as a whole, because something in it cannot be
        written and would be taken for drift.
        """
        name = self._state.schemas[oid].name
        claimed = oid not in self._extras.extension_schemas or any(
            is_claim(row, self._roles) for row in self._defaults[oid]
        )
        said = self._grants.of_schema(oid, claimed=claimed)
        why = said.unspeakable
        if not fits(name, "declared_schema"):
            why = ["its name"]
        if why:
            more = f", and {len(why) - 1} more" if len(why) > 1 else ""
            about: Dict[str, Any] = {"type": "schema", "schema": None, "name": name, "columns": []}
            what = f"the whole schema, because a manifest cannot hold this: {why[0]}{more}"
            self._skipped.append(Skipped("schema", None, about, what, "name"))
            return None
        self._skipped += said.skipped
        return said

    def _declaration(self, oid: int) -> Dict[str, Any]:
        schema = self._state.schemas[oid]
        entry: Dict[str, Any] = {"name": schema.name}
        if self._roles.speakable(schema.owner):
            entry["owner"] = self._roles.name(schema.owner)
        return entry

    def _is_wanted(self, row: DefaultAcl, exported: Set[int]) -> bool:
        if row.schema is not None:
            return row.schema in exported
        return not self._roles.narrowed or any(self._roles.chosen(oid) for oid in (row.owner, *row.acl.grantees()))

    def _declared_roles(self) -> List[Dict[str, Any]]:
        attributes = Attributes(self._state, self._extras, self._leaks)
        entries = [attributes.entry(role, external) for role, external in self._roles.declared()]
        self._skipped += attributes.skipped
        if attributes.without_login:
            self._skipped += unread_records(self._state)
        for oid in sorted(self._roles.unspeakable):
            what = "a name that a manifest cannot hold; scope.ignore_roles keeps runs away from the role"
            self._skipped.append(Skipped("role", role_name(self._state, oid), None, what, "name"))
        return entries

    def _uncovered(self) -> None:
        for schema, name, what, owner, acl in self._extras.uncovered:
            if self._choice.schemas is not None and not matches(schema, self._choice.schemas):
                continue
            about = {"type": "type", "schema": schema, "name": name, "columns": []}
            usual = default_acl("type", owner, self._state.server.version)
            for grantee in sorted({*acl.grantees(), *usual.grantees()}):
                if self._roles.narrowed and not self._roles.chosen(grantee):
                    continue
                role = str(grantee) if self._roles.dangling(grantee) else role_name(self._state, grantee)
                held, then = acl.of(grantee), usual.of(grantee)
                more = sorted(name for name in held if name not in then)
                less = sorted(then.keys() - held.keys())
                if more:
                    text = f"{', '.join(more)} on the {what}"
                    self._skipped.append(Skipped("grant", role, about, text, "uncovered_type"))
                if less:
                    text = f"{', '.join(less)} on the {what}, taken away"
                    self._skipped.append(Skipped("grant", role, about, text, "uncovered_type"))

    def _toast(self) -> None:
        for name, column, owner, acl in self._extras.toast:
            columns = [] if column is None else [column]
            about = {"type": "table", "schema": "pg_toast", "name": name, "columns": columns}
            for grantee, held in sorted(acl.grantees().items()):
                if grantee == owner or (self._roles.narrowed and not self._roles.chosen(grantee)):
                    continue
                role = str(grantee) if self._roles.dangling(grantee) else role_name(self._state, grantee)
                place = "the TOAST table" if column is None else "a column of the TOAST table"
                self._skipped.append(
                    Skipped("grant", role, about, f"{', '.join(sorted(held))} on {place}", "toast_table")
                )

    def _inventory(self, schemas: List[int]) -> Inventory:
        labels: Dict[Tuple[str, str], Set[str]] = defaultdict(set)
        for oid in schemas:
            for group in self._grants.groups(oid):
                if group.column is None and not group.extension:
                    labels[self._state.schemas[oid].name, group.kind].update(
                        item.label for item in group.members.objects()
                    )
        objects: Mapping[Tuple[str, str], FrozenSet[str]] = {
            place: frozenset(found) for place, found in sorted(labels.items())
        }
        return Inventory(objects, tuple(self._state.schemas[oid].name for oid in schemas))


def _order(item: Skipped) -> Tuple[str, ...]:
    about = item.object or {}
    return (
        item.kind,
        item.role or "",
        str(about.get("type") or ""),
        str(about.get("schema") or ""),
        str(about.get("name") or ""),
        ",".join(about.get("columns") or ()),
        item.reason,
        item.what,
    )
