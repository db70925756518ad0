# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""A pgroles manifest as native sections. What the same word means there is kept.

docs/other-tools.md has the table, field by field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict, FrozenSet, Iterator, NamedTuple, Optional, Tuple

from ...masking import NOBODY
from ..spec import DEFAULT_ROLE_PATTERN
from ..texts import show
from ..validate import BROKEN
from .conversion import IGNORED, KEEP, Form, Key, Sections, Sifted, Sifter, secret_texts, snake, under

_OBJECT: Form = {"type": KEEP, "schema": KEEP, "name": KEEP}

_GRANT: Form = {
    "role": KEEP,
    "privileges": KEEP,
    "object": Key(form=_OBJECT, aliases=("on",)),
    "ensure": KEEP,
}

#: What only the native form has, in a profile: it says why.
_PROFILE_GRANT: Form = {
    "privileges": KEEP,
    "object": Key(form=_OBJECT, aliases=("on",)),
    "ensure": KEEP,
}

_DEFAULT_GRANT: Form = {"role": KEEP, "privileges": KEEP, "on_type": KEEP, "ensure": KEEP}

_PROFILE: Form = {
    "login": KEEP,
    "inherit": KEEP,
    "grants": Key(form=_PROFILE_GRANT, many=True),
    "default_privileges": Key(form=_DEFAULT_GRANT, many=True),
    "config": KEEP,
}

_SCHEMA: Form = {"name": KEEP, "profiles": KEEP, "role_pattern": KEEP, "owner": KEEP}

_ROLE: Form = {
    "name": KEEP,
    "external": KEEP,
    "preserve_undeclared_grants": KEEP,
    "privilege_reconciliation": KEEP,
    "login": KEEP,
    "superuser": KEEP,
    "createdb": KEEP,
    "createrole": KEEP,
    "inherit": KEEP,
    "replication": KEEP,
    "bypassrls": KEEP,
    "connection_limit": KEEP,
    "comment": KEEP,
    "password": KEEP,
    "password_valid_until": Key(to="valid_until"),
    "config": KEEP,
}

_DEFAULT: Form = {
    "owner": KEEP,
    "schema": KEEP,
    "scope": Key(form={"type": KEEP, "schema": KEEP}),
    "grant": Key(form=_DEFAULT_GRANT, many=True),
}

_MEMBERSHIP: Form = {
    "role": KEEP,
    "members": Key(form={"name": KEEP, "inherit": KEEP, "admin": KEEP}, many=True),
    "exclusive": KEEP,
}

_RETIREMENT: Form = {"role": KEEP, "reassign_owned_to": KEEP, "drop_owned": KEEP, "terminate_sessions": KEEP}

#: The lists of a manifest, and what an item of each has.
LISTS: Mapping[str, Form] = {
    "schemas": _SCHEMA,
    "roles": _ROLE,
    "grants": _GRANT,
    "default_privileges": _DEFAULT,
    "memberships": _MEMBERSHIP,
    "retirements": _RETIREMENT,
}

SHARED: Form = {"role_pattern": KEEP, "default_owner": KEEP, "auth_providers": IGNORED, "profiles": KEEP}

MANIFEST: Form = {**SHARED, **dict.fromkeys(LISTS, KEEP)}


def convert(content: Mapping[Any, Any], sections: Sections) -> None:
    """A whole manifest in a file of its own."""
    found = Sifter(sections).keys(content, MANIFEST, "")
    Conversion(sections).manifest(found)


# ---- conversion ----------------------------------------------------------------------------------------------------


class Shared(NamedTuple):
    """What a part of a bundle has from elsewhere: the default owner of the bundle, the schemas whose owner this part
    looks after (None for every one), whether the bundle has a pattern for names of roles, and the part's own pattern
    with its place.
    """

    default_owner: Optional[str] = None
    owned: Optional[FrozenSet[str]] = None
    has_pattern: bool = False
    pattern: Any = None
    pattern_place: str = ""


_NOTHING = Shared()

#: Not even the default owner of another file is meant.
_NO_OWNER = "is required where there is no default_owner: pgroles would take postgres, which nobody wrote"


class Conversion:
    """Puts the sections of one manifest into native ones.

    ``camel``: its keys may be in camel case. ``passwords``: the roles that the option of this name has one for.
    """

    def __init__(
        self,
        sections: Sections,
        camel: bool = False,
        passwords: FrozenSet[str] = frozenset(),
        shared: Shared = _NOTHING,
    ) -> None:
        self._sections = sections
        self._judge = sections.judge
        self._sifter = Sifter(sections, camel)
        self._passwords = passwords
        self._shared = shared
        self._default_owner = shared.default_owner
        self._default_owner_place = ""
        self._has_pattern = shared.has_pattern

    def manifest(self, found: Sifted) -> None:
        """Every section."""
        self.shared(found)
        self.lists(found)

    def shared(self, found: Sifted) -> None:
        """The sections that a bundle's files share."""
        for name in ("default_owner", "role_pattern"):
            if found.get(name) is not None:
                self._sections.whole(name, found.values[name], found.places[name])
        self._has_pattern = found.get("role_pattern") is not None
        owner = found.get("default_owner")
        if isinstance(owner, str):
            self._default_owner, self._default_owner_place = owner, found.places["default_owner"]
        profiles = found.get("profiles")
        if isinstance(profiles, Mapping):
            for name, profile in profiles.items():
                place = under(found.places["profiles"], name)
                native = self._sections.named("profiles", name, place)
                if native is None:
                    continue
                value = self._sifter.sift({} if profile is None else profile, _PROFILE, native, place)
                if isinstance(value, dict):
                    value.setdefault("config", {})
                self._sections.values["profiles"][name] = value
        elif profiles is not None:
            self._sections.whole("profiles", profiles, found.places["profiles"])

    def lists(self, found: Sifted) -> None:
        """The sections with items."""
        for name, form in LISTS.items():
            items = found.get(name)
            if items is None:
                continue
            place = found.places[name]
            if not isinstance(items, list):
                self._sections.whole(name, items, place)
                continue
            self._sections.values.setdefault(name, [])
            for number, item in enumerate(items):
                original = f"{place}[{number}]"
                native = self._sections.add(name, None, original)
                if native is None:
                    break
                value = self._sifter.sift(item, form, native, original)
                if isinstance(value, dict):
                    value = getattr(self, f"_{name}")(value, native, original)
                self._sections.fill(name, value)

    # -- items: native names already, but what pgroles means --

    def _schemas(self, item: Dict[str, Any], native: str, _original: str) -> Dict[str, Any]:
        """pgroles gives a schema that names no owner to the default owner, an existing one too."""
        owned = self._shared.owned
        name = item.get("name")
        looked_after = owned is None or (isinstance(name, str) and name in owned)
        if "owner" not in item and self._default_owner is not None and looked_after:
            item["owner"] = self._default_owner
            if self._default_owner_place:
                self._sections.places.put(f"{native}.owner", self._default_owner_place)
        if "owner" not in item and owned is None and self._needs_owner(item):
            place = under(self._sections.places.find(native), "owner")
            self._judge.report(place, _NO_OWNER)
            item["owner"] = BROKEN
        if "role_pattern" not in item and self._shared.pattern is not None:
            item["role_pattern"] = self._shared.pattern
            self._sections.places.put(f"{native}.role_pattern", self._shared.pattern_place)
        elif "role_pattern" not in item and "profiles" in item and not self._has_pattern:
            # Another file's pattern is none of this one's business.
            item["role_pattern"] = DEFAULT_ROLE_PATTERN
        return item

    def _needs_owner(self, schema: Mapping[str, Any]) -> bool:
        """Whether a schema binds a profile with default privileges."""
        profiles, names = self._sections.values.get("profiles"), schema.get("profiles")
        if not isinstance(profiles, Mapping) or not isinstance(names, list):
            return False
        bound = (profiles.get(name) for name in names if isinstance(name, str))
        return any(isinstance(profile, Mapping) and profile.get("default_privileges") for profile in bound)

    def _roles(self, item: Dict[str, Any], native: str, _original: str) -> Dict[str, Any]:
        name = item.get("name")
        role = name if isinstance(name, str) else None
        external = item.get("external") is True
        preserve = item.pop("preserve_undeclared_grants", None)
        if preserve is not None:
            place = self._sections.places.find(f"{native}.preserve_undeclared_grants")
            if not isinstance(preserve, bool):
                self._judge.report(place, "must be true or false", role=role)
            elif preserve and item.setdefault("privilege_reconciliation", "additive") == "additive":
                self._sections.places.put(f"{native}.privilege_reconciliation", place)
        if not external:
            # pgroles resets every setting that the manifest does not give a role.
            item.setdefault("config", {})
        if "password" in item:
            self._password(item, native, self._sections.places.find(f"{native}.password"), role)
        return item

    def _password(self, item: Dict[str, Any], native: str, place: str, role: Optional[str]) -> None:
        source = item.pop("password")
        if not isinstance(source, Mapping):
            self._judge.report(
                place,
                "must be a dict that says where the password comes from, {from_env: NAME}: pgroles keeps none in files",
                role=role,
            )
            return
        if item.get("login") is not True and item.get("external") is not True:
            self._judge.report(place, "is only for a role with login: true", role=role)
        found = self._sifter.keys(source, _PASSWORD, place)
        if len({*found.values} & {"from_env", "secretRef", "generate"}) != 1:
            if len(found.values) == len(source):
                self._judge.report(place, "must have exactly one of from_env, secretRef and generate", role=role)
        elif found.get("from_env") is not None:
            item["password_from_env"] = found.values["from_env"]
            self._sections.places.put(f"{native}.password_from_env", found.places["from_env"])
        elif found.get("generate") is not None and role not in self._passwords:
            self._judge.report(
                found.places["generate"],
                "only pgroles' operator makes up passwords and keeps them in a Secret: give the option passwords the"
                " role's password",
                role=role,
            )

    def _grants(self, item: Dict[str, Any], native: str, _original: str) -> Dict[str, Any]:
        self._grantee(item, native)
        return item

    def _default_privileges(self, item: Dict[str, Any], native: str, original: str) -> Dict[str, Any]:
        """The scope of a rule has to be said there, in one of two ways."""
        if "owner" not in item and self._default_owner is None:
            self._judge.report(under(original, "owner"), _NO_OWNER)
            item["owner"] = BROKEN
        scope = item.get("scope")
        if scope is None and "schema" not in item:
            self._judge.report(original, "must have schema, or scope: {type: global} for every schema of the owner")
        elif isinstance(scope, Mapping) and scope.get("type") == "schema":
            place = self._sections.places.find(f"{native}.scope")
            del item["scope"]
            if "schema" in item:
                self._judge.report(place, f"excludes {under(original, 'schema')}: leave one out")
            elif not isinstance(scope.get("schema"), str):
                self._judge.report(under(place, "schema"), "is required for the type schema, as text")
            else:
                item["schema"] = scope["schema"]
                self._sections.places.put(f"{native}.schema", under(place, "schema"))
        for number, grant in enumerate(item["grant"] if isinstance(item.get("grant"), list) else ()):
            if isinstance(grant, Mapping):
                self._grantee(grant, f"{native}.grant[{number}]")
        return item

    def _memberships(self, item: Dict[str, Any], native: str, _original: str) -> Dict[str, Any]:
        """An omitted ``inherit`` is true there, also for an existing membership."""
        for number, member in enumerate(item["members"] if isinstance(item.get("members"), list) else ()):
            if isinstance(member, dict) and "inherit" not in member:
                member["inherit"] = True
                self._sections.unsaid.add(f"{native}.members[{number}]")
        return item

    def _retirements(self, item: Dict[str, Any], _native: str, _original: str) -> Dict[str, Any]:
        return item

    def _grantee(self, rule: Mapping[str, Any], native: str) -> None:
        role = rule.get("role")
        if isinstance(role, str) and role != "PUBLIC" and role.upper() == "PUBLIC":
            place = self._sections.places.find(f"{native}.role")
            self._judge.report(place, f"{show(role)} is no role's name: the pseudo-role is written PUBLIC")


_PASSWORD: Form = {
    "from_env": KEEP,
    "secretRef": Key(form={"name": KEEP}),
    "secretKey": KEEP,
    "generate": KEEP,
}


# ---- secrets -------------------------------------------------------------------------------------------------------


def secrets(content: Any, camel: bool = False) -> Iterator[Tuple[str, str]]:
    """What no output may show: a password in the wrong place, and what stands under a key that roles do not have."""
    roles = content.get("roles") if isinstance(content, Mapping) else None
    for number, role in dicts([roles] if isinstance(roles, Mapping) else roles):
        name = role.get("name")
        owner = f"the password of role {name}" if isinstance(name, str) else f"the password in roles[{number}]"
        for key, value in role.items():
            known = isinstance(key, str) and (key in _ROLE or (camel and snake(key) in _ROLE))
            if not known:
                yield from ((text, NOBODY) for text in secret_texts(value))
            elif key == "password":
                yield from ((text, owner) for text in _of_password(value))


def _of_password(value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield from secret_texts(value)
        return
    for key, item in value.items():
        if key not in _PASSWORD:
            yield from secret_texts(item)


def dicts(items: Any) -> Iterator[Tuple[int, Mapping[Any, Any]]]:
    """The dicts in a list, each with its number."""
    for number, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, Mapping):
            yield number, item
