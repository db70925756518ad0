# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Makes model entries out of judged values, and judges what several values of one entry mean together.

An entry with a problem is still built from what is usable, so that one mistake does not make others out of everything
that refers to it.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from .. import privileges
from ..records import dataclass, field
from ..signatures import split_signature
from .model import (
    DefaultGrantEntry,
    DefaultPrivilegeEntry,
    GrantEntry,
    Manifest,
    MemberEntry,
    MembershipEntry,
    ObjectEntry,
    Password,
    ProfileEntry,
    RetirementEntry,
    RoleEntry,
    SchemaEntry,
    ScopeEntry,
)
from .settings import parameter_name
from .spec import DEFAULT_ROLE_PATTERN, PASSWORD_FIELDS, ROLE_ATTRIBUTES, SECTIONS, Option
from .texts import Refused, check_name, show
from .validate import Fields, Item, Judge, canonical_privileges, no_text

#: The largest OID: PostgreSQL keeps them as unsigned 32-bit numbers, and 0 means none.
_OID_MAX = 4294967295


@dataclass(frozen=True)
class Part:
    """One source of a manifest: the options, or one file.

    ``manifest`` holds what is usable of it. ``given``: the sections that it has, with their places.
    """

    manifest: Manifest
    given: Mapping[str, str] = field(default_factory=dict)


def sections_holder(extra: Optional[Mapping[str, Option]] = None) -> Option:
    """The sections as one dict to judge."""
    return {"options": {**SECTIONS, **(extra or {})}}


def part(judge: Judge, fields: Fields) -> Part:
    """What one source declares."""
    scope: Optional[Fields] = fields["scope"]
    pattern: Optional[str] = fields["role_pattern"]
    grants = [(item, _grant(judge, item)) for item in fields.items("grants")]
    manifest = Manifest(
        default_owner=fields["default_owner"],
        default_owner_source=judge.source("default_owner"),
        role_pattern=DEFAULT_ROLE_PATTERN if pattern is None else pattern,
        profiles={name: _profile(judge, name, item) for name, item in (fields["profiles"] or {}).items()},
        schemas=tuple(_schema(judge, item) for item in fields.items("schemas") if item.value["name"] is not None),
        roles=tuple(_role(judge, item) for item in fields.items("roles") if item.value["name"] is not None),
        memberships=tuple(
            _membership(judge, item) for item in fields.items("memberships") if item.value["role"] is not None
        ),
        grants=_some(entry for _item, entry in grants),
        default_privileges=tuple(_default_privilege(judge, item) for item in fields.items("default_privileges")),
        retirements=tuple(
            _retirement(judge, item) for item in fields.items("retirements") if item.value["role"] is not None
        ),
        scope=ScopeEntry(
            roles=_texts(scope, "roles"),
            schemas=_texts(scope, "schemas"),
            ignore_roles=_texts(scope, "ignore_roles"),
        ),
        mentioned=tuple(
            (item.value["role"], judge.source(item.value.place("role")))
            for item, entry in grants
            if entry is None and item.value["role"] is not None
        ),
        unreadable=fields.broken,
    )
    return Part(
        manifest=manifest,
        given={name: judge.source(name) for name in fields.values},
    )


def _some(found: Any) -> Tuple[Any, ...]:
    return tuple(item for item in found if item is not None)


def _texts(fields: Optional[Fields], name: str) -> Tuple[str, ...]:
    return () if fields is None else tuple(item.value for item in fields.items(name))


def _role(judge: Judge, item: Item) -> RoleEntry:
    fields: Fields = item.value
    name: str = fields["name"]
    external = bool(fields["external"])
    if privileges.is_predefined(name) and not external and "external" not in fields.broken:
        judge.report(
            fields.place("name"),
            f"{show(name)} is reserved: names that begin with pg_ are PostgreSQL's own. It can be named in grants and"
            " memberships without being declared, or be declared with external: true",
            role=name,
        )
    given = (*ROLE_ATTRIBUTES, "config", "comment")
    if external:
        for attribute in (*given, *PASSWORD_FIELDS):
            if not fields.omitted(attribute):
                judge.report(
                    fields.place(attribute),
                    f"an external role takes no {attribute}: whoever looks after the role decides about it",
                    role=name,
                )
    attributes: Dict[str, Any] = {} if external else {key: fields[key] for key in given}
    if not external:
        attributes.update({key: fields[key] for key in PASSWORD_FIELDS if key != "password"})
        if fields["password"] is not None:
            attributes["password"] = Password(fields["password"], judge.source(fields.place("password")))
    return RoleEntry(
        name=name,
        source=judge.source(fields.path),
        external=external,
        privilege_reconciliation=fields["privilege_reconciliation"],
        # Who belongs to whom is no attribute: an external role may say so too.
        member_of=None if fields["member_of"] is None else _members(judge, fields.items("member_of")),
        members=None if fields["members"] is None else _members(judge, fields.items("members")),
        **attributes,
    )


def _schema(judge: Judge, item: Item) -> SchemaEntry:
    fields: Fields = item.value
    return SchemaEntry(
        name=fields["name"],
        source=judge.source(fields.path),
        owner=fields["owner"],
        # Without its own pattern the names that its profiles generate are not known.
        profiles=() if "role_pattern" in fields.broken else _texts(fields, "profiles"),
        role_pattern=fields["role_pattern"],
        usable="owner" not in fields.broken,
    )


def _membership(judge: Judge, item: Item) -> MembershipEntry:
    fields: Fields = item.value
    return MembershipEntry(
        role=fields["role"],
        source=judge.source(fields.path),
        members=_members(judge, fields.items("members")),
        exclusive=bool(fields["exclusive"]),
    )


def _retirement(judge: Judge, item: Item) -> RetirementEntry:
    fields: Fields = item.value
    role: str = fields["role"]
    target: Optional[str] = fields["reassign_owned_to"]
    if privileges.is_predefined(role) or privileges.is_provider(role):
        whose = "PostgreSQL's own" if privileges.is_predefined(role) else "looked after by a managed service"
        judge.report(fields.place("role"), f"{show(role)} cannot be retired: it is {whose}", role=role)
    if target == role:
        judge.report(fields.place("reassign_owned_to"), f"{show(role)} cannot inherit from itself", role=role)
    if fields["all_databases"] and target is None and not fields["drop_owned"]:
        judge.report(
            fields.place("all_databases"),
            "says where to empty the role, and neither reassign_owned_to nor drop_owned says how",
            role=role,
        )
    return RetirementEntry(
        role=role,
        source=judge.source(fields.path),
        reassign_owned_to=target,
        drop_owned=bool(fields["drop_owned"]),
        terminate_sessions=bool(fields["terminate_sessions"]),
        all_databases=bool(fields["all_databases"]),
    )


def _members(judge: Judge, items: Iterable[Item]) -> Tuple[MemberEntry, ...]:
    """The other ends of memberships. An item that is just a name is one with a name and nothing else."""
    found: List[MemberEntry] = []
    for item in items:
        options = item.value if isinstance(item.value, Fields) else Fields(item.path, {"name": item.value}, frozenset())
        if options["name"] is None:
            continue
        found.append(
            MemberEntry(
                name=options["name"],
                source=judge.source(item.path),
                place=judge.source(item.path if options is not item.value else options.place("name")),
                admin=options["admin"],
                inherit=options["inherit"],
                set=options["set"],
            )
        )
    return tuple(found)


def _profile(judge: Judge, name: str, fields: Fields) -> ProfileEntry:
    return ProfileEntry(
        name=name,
        source=judge.source(fields.path),
        login=fields["login"],
        inherit=fields["inherit"],
        config=fields["config"],
        grants=_some(_grant(judge, item, profile=True) for item in fields.items("grants")),
        default_privileges=_some(
            _default_grant(judge, item, in_schema=True, profile=True) for item in fields.items("default_privileges")
        ),
    )


def _grant(judge: Judge, item: Item, profile: bool = False) -> Optional[GrantEntry]:
    fields: Fields = item.value
    target: Optional[Fields] = fields["object"]
    role: Optional[str] = fields["role"]
    entry = None if target is None else _object(judge, target, role, profile)
    kind = _type(target)
    columns = tuple(sorted(set(_texts(fields, "columns"))))
    whole = fields.omitted("columns")
    if not whole and kind is not None and not privileges.KINDS[kind].column_privileges:
        whole = True
        columns = ()
        listed = ", ".join(name for name, known in privileges.KINDS.items() if known.column_privileges)
        judge.report(fields.place("columns"), f"is only for {listed}, not for the type {kind}: leave it out", role=role)
        entry = None
    names = canonical_privileges(judge, fields.items("privileges"), kind, columns=not whole)
    option = _grant_option(judge, fields, role)
    if entry is None or (role is None and not profile) or not (whole or columns):
        return None
    return GrantEntry(
        role=role,
        privileges=names,
        object=entry,
        source=judge.source(fields.path),
        present=fields["ensure"] != "absent",
        columns=columns,
        with_grant_option=option,
    )


def _grant_option(judge: Judge, fields: Fields, role: Optional[str]) -> bool:
    """Whether a rule gives the grant option."""
    if not fields["with_grant_option"]:
        return False
    place = fields.place("with_grant_option")
    if role == privileges.PUBLIC:
        judge.report(place, "PUBLIC cannot have the grant option, only a role can: leave it out", role=role)
        return False
    if fields["ensure"] == "absent":
        judge.report(
            place,
            "a rule with ensure: absent gives nothing: leave it out, or to take only the grant option away, write the"
            " rule as present without it",
            role=role,
        )
        return False
    return True


def _type(target: Optional[Fields]) -> Optional[str]:
    name = None if target is None else target["type"]
    return None if name is None else privileges.canonical_kind(name)


def _object(judge: Judge, fields: Fields, role: Optional[str], profile: bool) -> Optional[ObjectEntry]:
    """The object of a rule, or None when it is not usable."""
    before = len(judge.problems)
    kind_name = _type(fields)
    given: Union[str, int, None] = fields["name"]
    if isinstance(given, int) and kind_name not in (None, "large_object"):
        judge.report(fields.place("name"), no_text(given), role=role)
        given = None
    if kind_name is None:
        return None
    kind = privileges.KINDS[kind_name]
    schema: Optional[str] = fields["schema"]
    name = None if given is None else str(given)

    def wrong(key: str, message: str) -> None:
        shown = ".".join(text for text in (schema, name) if text)
        judge.report(fields.place(key), message, role=role, about=f"{kind_name} {shown}" if shown else kind_name)

    if profile and kind_name == "schema":
        if not fields.omitted("name"):
            wrong(
                "name",
                "in a profile, the type schema means the schema it is bound to: leave the name out",
            )
        return ObjectEntry(kind_name)
    if profile and not kind.in_schema:
        wrong("type", f"a profile's objects lie in its schema, a {kind_name} does not: write the rule under grants")
        return None
    if kind.in_schema:
        if not profile and fields.omitted("schema"):
            wrong("schema", f"is required: a {kind_name} lies in a schema")
        if fields.omitted("name"):
            wrong("name", f"is required: the {kind_name}'s name, or '*' for every one in the schema")
    else:
        if not fields.omitted("schema"):
            wrong(
                "schema",
                "a schema does not lie in a schema: write it as name"
                if kind_name == "schema"
                else f"a {kind_name} does not lie in a schema: leave it out",
            )
        if kind_name != "database" and fields.omitted("name"):
            wrong("name", f"is required: the {kind_name}'s name")
        if name == "*":
            wrong("name", f"'*' is only for objects in a schema: write the {kind_name}'s name")
    if name is not None and name != "*":
        try:
            name = _NAMES.get(kind_name, check_name)(name)
        except Refused as exc:
            wrong("name", str(exc))
    if len(judge.problems) > before or fields.broken & {"schema", "name"}:
        return None
    return ObjectEntry(kind_name, schema, name)


def _routine(text: str) -> str:
    # Which routine a signature means is the server's to say.
    name = _routine_name(text)
    if name is None:
        raise Refused(
            f"{show(text)} is not a routine: write name(argument types), or a bare name where only one has it"
        )
    check_name(name)
    return text


def _oid(text: str) -> str:
    number = int(text) if re.fullmatch("[0-9]{1,20}", text) else 0
    if not 1 <= number <= _OID_MAX:
        raise Refused(f"{show(text)} is not a large object's OID: write a whole number between 1 and {_OID_MAX}")
    return str(number)


#: How names are judged and spelled that are not just names.
_NAMES: Mapping[str, Callable[[str], str]] = {"function": _routine, "parameter": parameter_name, "large_object": _oid}


def _routine_name(text: str) -> Optional[str]:
    """The name before the arguments; None where the text is neither ``name`` nor ``name(...)``."""
    for name, _arguments in split_signature(text):
        if len(name) > 1 and name.startswith('"') and name.endswith('"'):
            name = name[1:-1].replace('""', '"')
        # f(int)(int) is a slip of the pen, not a routine called f(int).
        return None if ")" in name else name.strip() or None
    return None if "(" in text or ")" in text else text


def _default_privilege(judge: Judge, item: Item) -> DefaultPrivilegeEntry:
    fields: Fields = item.value
    if fields["scope"] is not None and not fields.omitted("schema"):
        judge.report(fields.place("scope"), "scope: {type: global} and schema exclude each other: leave one out")
    in_schema = not fields.omitted("schema")
    return DefaultPrivilegeEntry(
        owner=fields["owner"],
        schema=fields["schema"],
        source=judge.source(fields.path),
        grant=_some(_default_grant(judge, entry, in_schema) for entry in fields.items("grant")),
        usable="owner" not in fields.broken,
    )


def _default_grant(judge: Judge, item: Item, in_schema: bool, profile: bool = False) -> Optional[DefaultGrantEntry]:
    fields: Fields = item.value
    role: Optional[str] = fields["role"]
    kind = None if fields["on_type"] is None else privileges.canonical_kind(fields["on_type"])
    names = canonical_privileges(judge, fields.items("privileges"), kind)
    present = fields["ensure"] != "absent"
    if kind is None or "role" in fields.broken:
        return None
    option = _grant_option(judge, fields, role)
    if in_schema and kind in ("schema", "large_object"):
        one = kind.replace("_", " ")
        advice = "write the rule under default_privileges" if profile else "leave the schema out"
        judge.report(
            fields.place("on_type"),
            f"default privileges on {one}s are global, because a {one} does not lie in a schema: {advice}",
            role=role,
        )
        return None
    if in_schema and not present and role == privileges.PUBLIC and privileges.KINDS[kind].public:
        built_in = ", ".join(sorted(privileges.KINDS[kind].public))
        judge.report(
            fields.place("ensure"),
            f"the {built_in} that PUBLIC has on every new {kind} cannot be taken away for one schema, PostgreSQL would"
            " accept the statement and it would stay: only the global layer can, without schema. Where the schema has"
            f" an entry of its own that gives PUBLIC {built_in}, take that away by hand",
            role=role,
        )
        return None
    return DefaultGrantEntry(
        role=role,
        privileges=names,
        on_type=kind,
        source=judge.source(fields.path),
        present=present,
        with_grant_option=option,
    )
