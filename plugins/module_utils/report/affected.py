# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Who has more, who has less and who is altered by a plan: one item for each role."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Union

from ..changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    Change,
    CommentRole,
    CreateRole,
    CreateSchema,
    DropOwned,
    DropRole,
    Grant,
    GrantDefault,
    ReassignOwned,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetConfig,
    SetPassword,
    Value,
    weight,
)

#: What a role may do by its own attributes. INHERIT only counts where it is changed: every role begins with it.
_POWERS = ("superuser", "createdb", "createrole", "replication", "bypassrls", "login")

#: Attributes that are neither a gain nor a loss, in SQL's words.
_OTHERS = {"connection_limit": "CONNECTION LIMIT", "valid_until": "VALID UNTIL"}

Side = Dict[str, Any]


def affected_roles(changes: Iterable[Change]) -> List[Dict[str, Any]]:
    """The roles, and PUBLIC, that gain or lose something by a plan's changes, are altered, come or go; by name.

    ``gains`` and ``loses`` have only what there is of: ``privileges``, ``grant_options`` and ``default_privileges``
    (numbers, counted as in the summary), ``memberships`` (groups, or ``ADMIN on GROUP`` for an option),
    ``attributes`` (SQL's words), ``schemas`` and ``belongings_of`` (names). What is taken and given back within the
    plan is in neither. ``altered`` names what else changes about a role that is there, ``password`` whether it is
    ``set`` or ``removed``.
    """
    found = _Affected()
    for change in changes:
        found.add(change)
    return [found.items[name] for name in sorted(found.items)]


class _Affected:
    def __init__(self) -> None:
        self.items: Dict[str, Dict[str, Any]] = {}

    def add(self, change: Change) -> None:
        sort = _SORTS.get(type(change))
        if sort is not None:
            sort(self, change)

    def item(self, role: str) -> Dict[str, Any]:
        new: Dict[str, Any] = {
            "role": role, "created": False, "dropped": False, "gains": {}, "loses": {}, "altered": [], "password": None
        }  # fmt: skip
        return self.items.setdefault(role, new)

    def count(self, role: str, side: str, what: str, number: int) -> None:
        counts = self.item(role)[side]
        counts[what] = counts.get(what, 0) + number

    def name(self, role: str, side: str, what: str, name: str) -> None:
        names = self.item(role)[side].setdefault(what, [])
        if name not in names:
            names.append(name)

    def created(self, change: CreateRole) -> None:
        self.item(change.role.name)["created"] = True
        self._attributes(change.role.name, change.attributes, _POWERS)

    def altered(self, change: AlterRole) -> None:
        self._attributes(change.role.name, change.attributes, (*_POWERS, "inherit"))
        self.item(change.role.name)["altered"] += [word for name, word in _OTHERS.items() if name in change.attributes]

    def commented(self, change: CommentRole) -> None:
        if not change.created:
            self.item(change.role.name)["altered"].append("COMMENT")

    def configured(self, change: SetConfig) -> None:
        if not change.created:
            self.item(change.role.name)["altered"].append(change.name)

    def password(self, change: SetPassword) -> None:
        self.item(change.role.name)["password"] = "removed" if change.clear else "set"

    def _attributes(self, role: str, changed: Mapping[str, Value], powers: Iterable[str]) -> None:
        for name in powers:
            if name in changed:
                self.name(role, "gains" if changed[name] else "loses", "attributes", name.upper())

    def member_added(self, change: AddMember) -> None:
        if not change.exists:
            self.name(change.member.name, "gains", "memberships", change.group.name)
            if change.options.get("admin"):
                self._option(change, "gains", "admin")
        for option in sorted(change.raised):
            self._option(change, "gains", option)

    def member_removed(self, change: RemoveMember) -> None:
        if change.option is not None:
            self._option(change, "loses", change.option)
        elif not change.replaced:
            self.name(change.member.name, "loses", "memberships", change.group.name)
        else:
            for option in sorted(change.lowered):
                self._option(change, "loses", option)

    def _option(self, change: Union[AddMember, RemoveMember], side: str, option: str) -> None:
        self.name(change.member.name, side, "memberships", f"{option.upper()} on {change.group.name}")

    def schema_created(self, change: CreateSchema) -> None:
        if change.owner is not None:
            self.name(change.owner.name, "gains", "schemas", change.name)

    def schema_moved(self, change: AlterSchemaOwner) -> None:
        self.name(change.owner.name, "gains", "schemas", change.name)
        self.name(change.before.name, "loses", "schemas", change.name)

    def granted(self, change: Grant) -> None:
        if not change.again:
            what = "grant_options" if change.upgrade else "privileges"
            self.count(change.grantee.name, "gains", what, weight(change))

    def revoked(self, change: Revoke) -> None:
        if not change.again:
            what = "grant_options" if change.option_only else "privileges"
            self.count(change.grantee.name, "loses", what, weight(change))

    def default_granted(self, change: GrantDefault) -> None:
        what = "grant_options" if change.upgrade else "default_privileges"
        self.count(change.grantee.name, "gains", what, weight(change))

    def default_revoked(self, change: RevokeDefault) -> None:
        what = "grant_options" if change.option_only else "default_privileges"
        self.count(change.grantee.name, "loses", what, weight(change))

    def reassigned(self, change: ReassignOwned) -> None:
        self.name(change.heir.name, "gains", "belongings_of", change.role.name)

    def owned_dropped(self, change: DropOwned) -> None:
        self.item(change.role.name)

    def dropped(self, change: DropRole) -> None:
        self.item(change.role.name)["dropped"] = True


_SORTS: Dict[type, Callable[[_Affected, Any], None]] = {
    CreateRole: _Affected.created,
    AlterRole: _Affected.altered,
    CommentRole: _Affected.commented,
    SetConfig: _Affected.configured,
    SetPassword: _Affected.password,
    AddMember: _Affected.member_added,
    RemoveMember: _Affected.member_removed,
    CreateSchema: _Affected.schema_created,
    AlterSchemaOwner: _Affected.schema_moved,
    Grant: _Affected.granted,
    Revoke: _Affected.revoked,
    GrantDefault: _Affected.default_granted,
    RevokeDefault: _Affected.default_revoked,
    ReassignOwned: _Affected.reassigned,
    DropOwned: _Affected.owned_dropped,
    DropRole: _Affected.dropped,
}
