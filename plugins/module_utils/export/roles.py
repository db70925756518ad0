# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Roles and memberships as a manifest writes them: only what is not PostgreSQL's default."""

from __future__ import annotations

import datetime
import re
from collections import defaultdict
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ..manifest.model import INFINITY, Instant
from ..manifest.settings import declared, elements, fold, holds, is_custom, parameter_name, shown
from ..manifest.texts import Refused
from ..masking import passwords_in_address
from ..policy import ATTRIBUTE_DEFAULTS
from ..privileges import is_predefined
from ..setting_checks import can_be_set
from ..state import Membership, Role, State
from ..store import SCHEMA, TABLE
from .extras import Extras
from .model import Skipped
from .names import Roles, fits

_EPOCH = datetime.datetime(1970, 1, 1)

#: So many roles are named in one item.
_NAMED = 5

#: Words in the names of settings of extensions and applications that most likely hold a secret. The last word may say
#: that it is something about one.
_SECRET_WORD = re.compile(
    r"(?:^|[._-])(?:\w*secret|\w*passw\w*|pwd|pass|passphrase|\w*tokens?|credentials?|(?:\w*_|api|private)?keys?|jwt|hmac|aes|dsn)(?:[._-]|$)",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"[._-](?:ttl|id|name|length|size|limit|timeout|lifetime|age|expiry|encryption|enabled)$", re.IGNORECASE
)

#: Texts that are a secret or hold one, whatever they are called: a verifier, a password behind its name.
_SECRET_TEXT = re.compile(
    r"SCRAM-SHA-256\$|\bmd5[0-9a-f]{32}\b|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|\b(?:passw(?:or)?d|pwd|secret)[\"']?\s*[:=]\s*\S",
    re.IGNORECASE,
)


class Attributes:
    """Makes entries of ``roles``. ``leaks``: whether a text holds a secret of this run."""

    def __init__(self, state: State, extras: Extras, leaks: Callable[[str], bool]) -> None:
        self._state = state
        self._extras = extras
        self._leaks = leaks
        self.skipped: List[Skipped] = []
        #: Whether a role without login is among those that a run with the manifest looks after.
        self.without_login = False

    def entry(self, role: Role, external: bool) -> Dict[str, Any]:
        """One role. One whose attributes no manifest can hold comes as external, too."""
        if not role.login and not external:
            self.without_login = True
        if external or not self._expressible(role):
            return {"name": role.name, "external": True}
        entry: Dict[str, Any] = {"name": role.name}
        comment = self._comment(role)
        if comment:
            entry["comment"] = comment
        for name, default in ATTRIBUTE_DEFAULTS.items():
            value = getattr(role, name)
            if value != default:
                entry[name] = written(value) if name == "valid_until" else value
        config = self._config(role)
        if config:
            entry["config"] = config
        self._not_told(role)
        return entry

    def _skip(self, kind: str, role: Role, what: str, reason: str) -> None:
        self.skipped.append(Skipped(kind, role.name, None, what, reason))

    def _expressible(self, role: Role) -> bool:
        if role.valid_until != INFINITY and written(role.valid_until) is None:
            self._skip(
                "role", role, "a valid_until outside the years 1 to 9999, so the role is external", "valid_until"
            )
            return False
        if role.connection_limit < -1:
            self._skip("role", role, "a connection limit below -1, so the role is external", "connection_limit")
            return False
        if not role.login and self._state.passwords.records.get(role.oid):
            # Without its password a manifest would take the password away.
            what = "a password that this collection set, on a role without login, so the role is external"
            self._skip("role", role, what, "password")
            return False
        return True

    def _comment(self, role: Role) -> Optional[str]:
        if not role.comment:
            return None
        if self._leaks(role.comment) or _holds_secret(role.comment):
            self._skip("comment", role, "a comment in which a secret seems to be", "secret")
            return None
        if not fits(role.comment, "comment"):
            self._skip("comment", role, "a comment that a manifest cannot hold", "text")
            return None
        return role.comment

    def _config(self, role: Role) -> Optional[Dict[str, str]]:
        """The role's settings, all or none: a manifest that gives some of them resets the others."""
        found: Dict[str, str] = {}
        for name, value in sorted(role.config.items()):
            reason = self._setting_refused(name, value)
            if reason is not None:
                what = f"the role's settings, because of {name}"
                self._skip("config", role, what, reason)
                return None
            # PostgreSQL keeps a name with a dot as it was first written, and takes it in any case.
            found[fold(name) if is_custom(name) else name] = shown(name, elements(name, value))
        return dict(sorted(found.items()))

    def _setting_refused(self, name: str, value: str) -> Optional[str]:
        secret_name = is_custom(name) and _SECRET_WORD.search(name) and not _ABOUT.search(name)
        if secret_name or self._leaks(value) or _holds_secret(value):
            return "secret"
        try:
            key = parameter_name(name)
            text = shown(name, elements(name, value))
            if not fits(text, "comment") or not fits(name, "comment") or not holds(name, value, declared(key, text)):
                return "text"
        except Refused:
            return "text"
        return None if can_be_set(fold(name), self._state) else "unknown_setting"

    def _not_told(self, role: Role) -> None:
        if role.oid in self._extras.passwords:
            self._skip("password", role, "the password", "password")
        for oid, database, names in self._extras.database_settings:
            if oid == role.oid:
                what = f"settings in the database {database}: {', '.join(names)}"
                self._skip("config", role, what, "database_setting")


def _holds_secret(text: str) -> bool:
    """Whether a text looks as if a password, a verifier or a private key was in it."""
    return bool(_SECRET_TEXT.search(text)) or any(passwords_in_address(text))


def written(instant: Instant) -> Optional[str]:
    """A point in time as ISO 8601 in UTC; None where it lies outside the years 1 to 9999."""
    if not isinstance(instant, int):
        return None
    try:
        moment = _EPOCH + datetime.timedelta(microseconds=instant)
    except OverflowError:
        return None
    return moment.isoformat() + "Z"


def unread_records(state: State) -> List[Skipped]:
    """The item that says that nobody knows which roles without login have a password that this collection set."""
    table = state.passwords.table
    if not table.table or table.readable or table.faults:
        return []
    what = (
        "whether roles without login have a password that this collection set: this login may not read"
        f" {SCHEMA}.{TABLE}; a run by a login that may takes such a password away"
    )
    return [Skipped("password", None, None, what, "password_records")]


def membership_entries(state: State, roles: Roles) -> Tuple[List[Dict[str, Any]], List[Skipped]]:
    """The memberships as items of ``memberships``, by group.

    Not among them are those that no reconcile touches: of the roles of PostgreSQL and of services in each other, and
    what the creator of a role got by itself. These are skipped, except what PostgreSQL's predefined roles begin with.
    """
    edges: Dict[Tuple[int, int], List[Membership]] = defaultdict(list)
    for row in state.memberships:
        edges[row.group, row.member].append(row)
    groups: Dict[str, List[Dict[str, Any]]] = defaultdict(list)
    made: Dict[int, List[str]] = defaultdict(list)
    skipped: List[Skipped] = []
    for (group, member), rows in sorted(edges.items()):
        if not roles.speakable(group) or not roles.speakable(member):
            continue
        if not (roles.chosen(group) or roles.chosen(member)):
            continue
        name = state.roles[group].name
        if roles.reserved(group) and roles.reserved(member):
            if not (is_predefined(name) and is_predefined(state.roles[member].name)):
                about: Dict[str, Any] = {"type": "role", "schema": None, "name": name, "columns": []}
                what = f"the membership in {name}: PostgreSQL or a service made both roles"
                skipped.append(Skipped("membership", state.roles[member].name, about, what, "provider"))
            continue
        counted = _counted(rows, state.roles[member])
        if counted:
            inherits = state.roles[member].inherit
            groups[roles.name(group)].append(_member(roles.name(member), inherits, counted))
        if len(counted) < len(rows):
            made[member].append(name)
    for member, names in made.items():
        shown_names = ", ".join(sorted(names)[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
        what = f"what making {len(names)} role{'s' if len(names) > 1 else ''} gave it in them ({shown_names})"
        skipped.append(Skipped("membership", state.roles[member].name, None, what, "automatic_membership"))
    return [
        {"role": group, "members": sorted(members, key=lambda item: str(item["name"]))}
        for group, members in sorted(groups.items())
    ], skipped


def _counted(rows: Sequence[Membership], member: Role) -> List[Membership]:
    """The rows that are not automatic, or hang on one that is."""
    automatic = [row for row in rows if row.automatic and member.createrole]
    return [row for row in rows if row not in automatic and not (automatic and row.self_granted)]


def _member(name: str, attribute: bool, rows: Sequence[Membership]) -> Dict[str, Any]:
    """A membership with its options: what any of the rows gives. ``attribute``: the member's INHERIT.

    ``inherit`` is there where a server of another version would decide otherwise: from PostgreSQL 16 on a new
    membership is inherited whatever the member's attribute, and before it the attribute alone counts.
    """
    entry: Dict[str, Any] = {"name": name}
    if any(row.admin for row in rows):
        entry["admin"] = True
    # Before PostgreSQL 16 there are no such options, so they are None.
    inherits = any(attribute if row.inherit is None else row.inherit for row in rows)
    if not (inherits and attribute):
        entry["inherit"] = inherits
    if all(row.set is False for row in rows):
        entry["set"] = False
    return entry


def counts(manifest: Mapping[str, Any]) -> Dict[str, int]:
    """How much of what a manifest holds."""
    profiles: Mapping[str, Any] = manifest.get("profiles", {})
    return {
        "profiles": len(profiles),
        "roles": sum(not role.get("external") for role in manifest.get("roles", ())),
        "external_roles": sum(bool(role.get("external")) for role in manifest.get("roles", ())),
        "memberships": sum(len(entry["members"]) for entry in manifest.get("memberships", ())),
        "schemas": len(manifest.get("schemas", ())),
        "grants": len(manifest.get("grants", ())),
        "default_privileges": sum(len(entry["grant"]) for entry in manifest.get("default_privileges", ())),
    }
