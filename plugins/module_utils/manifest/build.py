# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Makes model entries out of judged values, and judges what several values of one entry mean together.

An entry with a problem is still built from what is usable, so that one mistake does not make others out of everything
that refers to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .. import privileges
from ..signatures import split_signature
from .model import (
    DefaultGrantEntry,
    DefaultPrivilegeEntry,
    GrantEntry,
    Manifest,
    MemberEntry,
    MembershipEntry,
    ObjectEntry,
    ProfileEntry,
    RoleEntry,
    SchemaEntry,
    ScopeEntry,
)
from .spec import DEFAULT_ROLE_PATTERN, ROLE_ATTRIBUTES, SECTIONS, SECTIONS_NOT_YET, Option
from .texts import NAME_BYTES, show
from .validate import Fields, Item, Judge, canonical_privileges


@dataclass(frozen=True)
class Part:
    """One source of a manifest: the options, or one file.

    ``manifest`` holds what is usable of it. ``given``: the sections that it has, with their places. ``retired``: roles
    that it retires, with the places.
    """

    manifest: Manifest
    given: Mapping[str, str] = field(default_factory=dict)
    retired: Tuple[Tuple[str, str], ...] = ()


def sections_holder(extra: Optional[Mapping[str, Option]] = None) -> Option:
    """The sections as one dict to judge."""
    return {"options": {**SECTIONS, **(extra or {})}, "not_yet": SECTIONS_NOT_YET}


def part(judge: Judge, raw: Mapping[Any, Any], fields: Fields) -> Part:
    """What one source declares. ``raw`` is only asked for sections that are not supported yet."""
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
        scope=ScopeEntry(
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
        retired=_retired(judge, raw),
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
    if external:
        for attribute in (*ROLE_ATTRIBUTES, "comment"):
            if not fields.omitted(attribute):
                judge.report(
                    fields.place(attribute),
                    f"an external role takes no {attribute}: whoever looks after the role decides about it",
                    role=name,
                )
    attributes: Dict[str, Any] = {} if external else {key: fields[key] for key in (*ROLE_ATTRIBUTES, "comment")}
    return RoleEntry(
        name=name,
        source=judge.source(fields.path),
        external=external,
        privilege_reconciliation=fields["privilege_reconciliation"],
        **attributes,
    )


def _schema(judge: Judge, item: Item) -> SchemaEntry:
    fields: Fields = item.value
    return SchemaEntry(
        name=fields["name"],
        source=judge.source(fields.path),
        owner=fields["owner"],
        profiles=_texts(fields, "profiles"),
        role_pattern=fields["role_pattern"],
        usable="owner" not in fields.broken,
    )


def _membership(judge: Judge, item: Item) -> MembershipEntry:
    fields: Fields = item.value
    members: List[MemberEntry] = []
    for member in fields.items("members"):
        options: Fields = member.value
        if options["name"] is None:
            continue
        members.append(
            MemberEntry(
                name=options["name"],
                source=judge.source(options.path),
                admin=options["admin"],
                inherit=options["inherit"],
                set=options["set"],
            )
        )
    return MembershipEntry(
        role=fields["role"],
        source=judge.source(fields.path),
        members=tuple(members),
        exclusive=bool(fields["exclusive"]),
    )


def _profile(judge: Judge, name: str, fields: Fields) -> ProfileEntry:
    return ProfileEntry(
        name=name,
        source=judge.source(fields.path),
        login=fields["login"],
        inherit=fields["inherit"],
        grants=_some(_grant(judge, item, profile=True) for item in fields.items("grants")),
        default_privileges=_some(
            _default_grant(judge, item, in_schema=True) for item in fields.items("default_privileges")
        ),
    )


def _grant(judge: Judge, item: Item, profile: bool = False) -> Optional[GrantEntry]:
    fields: Fields = item.value
    target: Optional[Fields] = fields["object"]
    role: Optional[str] = fields["role"]
    entry = None if target is None else _object(judge, target, role, profile)
    names = canonical_privileges(judge, fields.items("privileges"), entry.type if entry else _type(target))
    if entry is None or (role is None and not profile):
        return None
    return GrantEntry(
        role=role,
        privileges=names,
        object=entry,
        source=judge.source(fields.path),
        present=fields["ensure"] != "absent",
    )


def _type(target: Optional[Fields]) -> Optional[str]:
    name = None if target is None else target["type"]
    return None if name is None else privileges.canonical_kind(name)


def _object(judge: Judge, fields: Fields, role: Optional[str], profile: bool) -> Optional[ObjectEntry]:
    """The object of a rule, or None when it is not usable."""
    kind_name = _type(fields)
    if kind_name is None:
        return None
    kind = privileges.KINDS[kind_name]
    schema: Optional[str] = fields["schema"]
    name: Optional[str] = fields["name"]
    before = len(judge.problems)

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
        message = _name_problem(kind_name, name)
        if message is not None:
            wrong("name", message)
    if len(judge.problems) > before or fields.broken & {"schema", "name"}:
        return None
    return ObjectEntry(kind_name, schema, name)


def _name_problem(kind: str, name: str) -> Optional[str]:
    """What is wrong with an object's name. Which routine a signature means is the server's to say."""
    bare: Optional[str] = name
    if kind == "function":
        bare = _routine_name(name)
        if bare is None:
            return f"{show(name)} is not a routine: write name(argument types), or a bare name where only one has it"
    try:
        size = len((bare or "").encode("utf-8"))
    except UnicodeEncodeError:
        return "is not valid Unicode text"
    if size > NAME_BYTES:
        return f"{show(bare)} is {size} bytes long, and PostgreSQL's names have at most {NAME_BYTES}"
    return None


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


def _default_grant(judge: Judge, item: Item, in_schema: bool) -> Optional[DefaultGrantEntry]:
    fields: Fields = item.value
    role: Optional[str] = fields["role"]
    kind = None if fields["on_type"] is None else privileges.canonical_kind(fields["on_type"])
    names = canonical_privileges(judge, fields.items("privileges"), kind)
    present = fields["ensure"] != "absent"
    if kind is None or "role" in fields.broken:
        return None
    if in_schema and kind == "schema":
        judge.report(
            fields.place("on_type"),
            "default privileges on schemas are global, because a schema does not lie in a schema: leave the schema out",
            role=role,
        )
        return None
    if in_schema and not present and role == privileges.PUBLIC and privileges.KINDS[kind].public:
        built_in = ", ".join(sorted(privileges.KINDS[kind].public))
        judge.report(
            fields.place("ensure"),
            f"the {built_in} that PUBLIC has on every new {kind} cannot be taken away for one schema, PostgreSQL would"
            " accept the statement and do nothing: only the global layer can, without schema",
            role=role,
        )
        return None
    return DefaultGrantEntry(
        role=role,
        privileges=names,
        on_type=kind,
        source=judge.source(fields.path),
        present=present,
    )


def _retired(judge: Judge, raw: Mapping[Any, Any]) -> Tuple[Tuple[str, str], ...]:
    """Roles under ``retirements``: not supported yet, but one of their rules holds already."""
    found = raw.get("retirements")
    if not isinstance(found, (list, tuple)):
        return ()
    return tuple(
        (entry["role"], judge.source(f"retirements[{number}].role"))
        for number, entry in enumerate(found)
        if isinstance(entry, Mapping) and isinstance(entry.get("role"), str)
    )
