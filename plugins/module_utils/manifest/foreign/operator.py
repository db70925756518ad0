# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Resources of the operator postgresql.aboutbits.it as a part of a manifest.

Each field means what the operator does for it, also where it is omitted; docs/other-tools.md has them all. Every place
is that of the resource as it was written: ``access.yml: document 3 (Role app): spec.flags.inRole[0]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Optional, Tuple

from ... import privileges
from ...masking import NOBODY
from ..build import Part
from ..files import Document
from ..model import (
    ClusterEntry,
    DatabaseEntry,
    DefaultGrantEntry,
    DefaultPrivilegeEntry,
    GrantEntry,
    Manifest,
    MemberEntry,
    ObjectEntry,
    RoleEntry,
    SchemaEntry,
)
from ..texts import describe, show
from ..validate import Fields, Judge
from .conversion import secret_texts
from .kubernetes import group_and_kind, metadata_of
from .operator_spec import API_VERSION, CONNECTION, FLAGS, KINDS

#: Where a field of a role stands that is not called the same.
_ELSEWHERE = {
    **{ours: f"flags.{theirs}" for theirs, ours in FLAGS.items()},
    "member_of": "flags.inRole",
    "members": "flags.role",
    "password_encryption": "passwordEncryption",
    "login": "passwordSecretRef",
}

#: What ``objects: []`` reaches, as GRANT ON ALL TABLES IN SCHEMA does.
_EVERY = {"table": ("table", "view", "materialized_view"), "sequence": ("sequence",)}


def secrets_of(resources: Iterable[Document]) -> Iterator[Tuple[str, str]]:
    """What no output may show: whatever stands where a role has no field, as a password in a wrong place does."""
    known = KINDS["Role"]["options"]
    for resource in resources:
        content = resource.content
        spec = content.get("spec")
        if content.get("kind") != "Role" or not isinstance(spec, Mapping):
            continue
        flags = spec.get("flags")
        unknown = [value for key, value in spec.items() if key not in known]
        if isinstance(flags, Mapping):
            unknown += [value for key, value in flags.items() if key not in known["flags"]["options"]]
        for text in secret_texts(unknown):
            yield text, NOBODY


def part_of(judge: Judge, resources: Iterable[Document]) -> Part:
    """What a file's resources declare. Everything that is wrong with them is reported to the file's judge."""
    found = _Found()
    seen: Dict[Tuple[Any, ...], str] = {}
    for resource in resources:
        _add(found, judge, resource, seen)
    return Part(found.manifest())


class _Judge(Judge):
    """Judges one resource. ``prefix`` stands before every path in it: ``document 3 (Role app): ``."""

    def __init__(self, file: Judge, resource: Document, role: Optional[str], secret: bool) -> None:
        super().__init__(file.label, file.file, native=True, role=role, secret=secret)
        self._prefix = resource.prefix

    def source(self, path: str) -> str:
        """A path in the resource as messages print it."""
        return super().source(f"{self._prefix}{path}" if path else self._prefix.rstrip(": "))


class _Found:
    """What the resources say, one after the other."""

    def __init__(self) -> None:
        self.roles: List[RoleEntry] = []
        self.schemas: List[SchemaEntry] = []
        self.grants: List[GrantEntry] = []
        self.defaults: List[DefaultPrivilegeEntry] = []
        self.databases: List[DatabaseEntry] = []
        self.clusters: List[ClusterEntry] = []
        self.mentioned: List[Tuple[str, str]] = []
        self.unreadable: FrozenSet[str] = frozenset()

    def manifest(self) -> Manifest:
        """All of it."""
        return Manifest(
            roles=tuple(self.roles),
            schemas=tuple(self.schemas),
            grants=tuple(self.grants),
            default_privileges=tuple(self.defaults),
            databases=tuple(self.databases),
            clusters=tuple(self.clusters),
            mentioned=tuple(self.mentioned),
            unreadable=self.unreadable,
        )


def _add(found: _Found, file: Judge, resource: Document, seen: Dict[Tuple[Any, ...], str]) -> None:
    """One resource, judged and added to what was found so far."""
    content = resource.content
    kind, spec = group_and_kind(content)[1], content.get("spec")
    name = spec.get("name" if kind == "Role" else "role") if isinstance(spec, Mapping) else None
    judge = _Judge(file, resource, name if isinstance(name, str) else None, secret=kind == "Role")
    before = len(found.roles)
    fields = _spec(judge, content, seen)
    if fields is not None:
        _place(judge, fields, metadata_of(content), found)
        _ADD[kind](judge, fields, found)
    if kind not in KINDS or (kind == "Role" and len(found.roles) == before):
        # What could not be read may be a role that others name.
        found.unreadable |= frozenset() if kind == CONNECTION else {"roles"}
    file.problems.extend(judge.problems)


def _spec(judge: Judge, content: Mapping[Any, Any], seen: Dict[Tuple[Any, ...], str]) -> Optional[Fields]:
    """The judged spec of a resource; None where it has none to say anything with."""
    version, kind = content.get("apiVersion"), content.get("kind")
    known = (*KINDS, CONNECTION)
    if version != API_VERSION:
        judge.report("apiVersion", f"{show(version)} is not known; known is {API_VERSION}")
        return None
    if not isinstance(kind, str) or kind not in known:
        near = (judge.suggest(known, kind) if isinstance(kind, str) else "") or f"; known here: {', '.join(known)}"
        judge.report("kind", f"unknown kind {show(kind)}{near}")
        return None
    _once(judge, content, seen)
    if kind == CONNECTION:
        return None
    top: Dict[str, Any] = {"type": "dict", "required": True, **KINDS[kind]}
    # What Kubernetes keeps beside the spec says nothing on access.
    said = {key: value for key, value in content.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    fields = judge.fields(said, {"options": {"spec": top}}, "")
    return None if fields is None else fields["spec"]


def _once(judge: Judge, content: Mapping[str, Any], seen: Dict[Tuple[Any, ...], str]) -> None:
    """A resource that is there, and only once: of two, Kubernetes keeps the one that is applied last."""
    metadata = content.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        judge.report("metadata", f"must be a dict, not {describe(metadata)}")
        return
    known = metadata_of(content)
    if known.get("deletionTimestamp") is not None:
        judge.report(
            "metadata.deletionTimestamp",
            "says that the resource is being deleted, so that nothing of it is to be there: take it out of the file",
        )
    if isinstance(known.get("name"), str):
        key = (content["kind"], str(known.get("namespace")), known["name"])
        first = seen.setdefault(key, judge.source(""))
        if first != judge.source(""):
            judge.report(
                "metadata.name",
                f"the {content['kind']} {show(known['name'])} stands in {first} as well, and Kubernetes would keep only"
                " the one that is applied last",
            )


def _place(judge: Judge, fields: Fields, metadata: Mapping[str, Any], found: _Found) -> None:
    """Which cluster and which database the resource is for."""
    cluster: Optional[Fields] = fields["clusterRef"]
    if cluster is not None and cluster["name"] is not None:
        own = metadata.get("namespace")
        namespace = cluster["namespace"] if cluster["namespace"] is not None else own if isinstance(own, str) else None
        found.clusters.append(ClusterEntry(cluster["name"], namespace, judge.source(fields.place("clusterRef"))))
    # A database's own privileges are the cluster's business: they can be granted from anywhere.
    if fields["database"] is not None and fields["objectType"] != "database":
        found.databases.append(
            DatabaseEntry(fields["database"], judge.source(fields.place("database")), connected=True)
        )


def _role(judge: Judge, fields: Fields, found: _Found) -> None:
    name: Optional[str] = fields["name"]
    if name is None:
        return
    if privileges.is_predefined(name):
        judge.report(fields.place("name"), f"{show(name)} is reserved: names that begin with pg_ are PostgreSQL's own")
    flags: Fields = fields["flags"] if fields["flags"] is not None else Fields(fields.place("flags"), {}, frozenset())
    comment: Optional[str] = fields["comment"]
    attributes: Dict[str, Any] = {ours: flags[theirs] for theirs, ours in FLAGS.items()}
    found.roles.append(
        RoleEntry(
            name=name,
            source=judge.source(fields.path),
            # The operator takes away a comment that the resource does not have, and an empty one is none to it.
            comment="" if comment is None or not comment.strip() else comment,
            login=None if fields.omitted("passwordSecretRef") else True,
            password_encryption=fields["passwordEncryption"],
            member_of=_names(judge, flags, "inRole", side="member"),
            members=_names(judge, flags, "role", side="group"),
            elsewhere=_ELSEWHERE,
            **attributes,
        )
    )


def _names(judge: Judge, flags: Fields, key: str, side: str) -> Tuple[MemberEntry, ...]:
    """Memberships. An omitted list is an empty one: the operator takes every other membership away."""
    return tuple(
        MemberEntry(item.value, judge.source(item.path), judge.source(item.path), by_attribute=True, side=side)
        for item in flags.items(key)
    )


def _schema(judge: Judge, fields: Fields, found: _Found) -> None:
    _no_reclaiming(judge, fields)
    if fields["name"] is not None:
        found.schemas.append(
            SchemaEntry(
                name=fields["name"],
                source=judge.source(fields.path),
                owner=fields["owner"],
                usable="owner" not in fields.broken,
            )
        )


def _database(judge: Judge, fields: Fields, found: _Found) -> None:
    _no_reclaiming(judge, fields)
    if fields["name"] is not None:
        found.databases.append(DatabaseEntry(fields["name"], judge.source(fields.path), owner=fields["owner"]))


def _no_reclaiming(judge: Judge, fields: Fields) -> None:
    if fields["reclaimPolicy"] == "Delete":
        judge.report(
            fields.place("reclaimPolicy"),
            "Delete drops it with its resource, and this collection never drops schemas or databases: write Retain",
        )


def _grant(judge: Judge, fields: Fields, found: _Found) -> None:
    role: Optional[str] = fields["role"]
    kind: Optional[str] = fields["objectType"]
    names = _privileges(judge, fields, kind)
    schema = _schema_name(judge, fields, kind, without="database")
    objects = _objects(judge, fields, kind, schema)
    if role is None:
        return
    if not objects or not names:
        found.mentioned.append((role, judge.source(fields.place("role"))))
        return
    source = judge.source(fields.path)
    found.grants.extend(GrantEntry(role=role, privileges=names, object=one, source=source) for one in objects)


def _objects(judge: Judge, fields: Fields, kind: Optional[str], schema: Optional[str]) -> Tuple[ObjectEntry, ...]:
    """What a Grant reaches: none where it does not say so in a usable way."""
    if kind is None:
        return ()
    place = fields.place("objects")
    items = fields.items("objects")
    if kind in ("database", "schema"):
        if items:
            judge.report(place, f"must not be there for a {kind}, which the key {kind} names: leave it out")
            return ()
        name = fields["database"] if kind == "database" else schema
        given = judge.source(fields.place(kind))
        return () if name is None else (ObjectEntry(kind, name=name, place=given),)
    if fields.omitted("objects"):
        judge.report(place, f"is required: the names of {kind}s, or [] for every one in the schema")
        return ()
    if any(item.value == "*" for item in items):
        judge.report(place, f"'*' would be a {kind} of this name: write [] for every {kind} in the schema")
        return ()
    if schema is None or "objects" in fields.broken:
        return ()
    if not fields["objects"]:
        return tuple(ObjectEntry(one, schema, "*", place=judge.source(place)) for one in _EVERY[kind])
    # GRANT ON TABLE takes views as well, and no resource says which it is.
    return tuple(
        ObjectEntry(kind, schema, item.value, or_view=kind == "table", place=judge.source(item.path)) for item in items
    )


def _schema_name(judge: Judge, fields: Fields, kind: Optional[str], without: str) -> Optional[str]:
    """The schema that a Grant or a DefaultPrivilege is about; required for every kind of object but one."""
    name: Optional[str] = fields["schema"] or None
    place = fields.place("schema")
    if kind is None or "schema" in fields.broken:
        return None
    if kind == without:
        if name is not None:
            judge.report(place, f"must not be there for the objectType {kind}: leave it out")
        return None
    if name is None:
        judge.report(place, f"is required for the objectType {kind}")
        return None
    return _judged_name(judge, name, place)


def _judged_name(judge: Judge, name: str, place: str) -> Optional[str]:
    """A name that is only judged where it means something."""
    judged = judge.value(name, {"type": "str", "judge": "schema"}, place)
    return judged if isinstance(judged, str) else None


def _privileges(judge: Judge, fields: Fields, kind: Optional[str]) -> FrozenSet[str]:
    """The privileges that the operator has for the kind. It has no ALL, and no TEMP."""
    found = set()
    known = tuple(privileges.KINDS[kind].privileges) if kind is not None else ()
    for item in fields.items("privileges"):
        name = item.value.upper()
        if kind is None or name in known:
            found.add(name)
            continue
        known_words = tuple(word.lower() for word in known)
        near = judge.suggest(known_words, item.value)
        listed = ", ".join(known_words)
        judge.report(
            item.path, f"{show(item.value)} is not a privilege of the objectType {kind}, which has {listed}{near}"
        )
    return frozenset(found)


def _default_privilege(judge: Judge, fields: Fields, found: _Found) -> None:
    role: Optional[str] = fields["role"]
    owner: Optional[str] = fields["owner"]
    kind: Optional[str] = fields["objectType"]
    names = _privileges(judge, fields, kind)
    schema = _schema_name(judge, fields, kind, without="schema")
    source = judge.source(fields.path)
    usable = role is not None and kind is not None and names and (schema is not None or kind == "schema")
    if not usable or owner is None:
        found.mentioned.extend(
            (name, judge.source(fields.place(key)))
            for key, name in (("role", role), ("owner", owner))
            if name is not None
        )
        return
    entry = DefaultGrantEntry(role=role, privileges=names, on_type=str(kind), source=source)
    found.defaults.append(DefaultPrivilegeEntry(owner=owner, schema=schema, source=source, grant=(entry,)))


_ADD = {
    "Role": _role,
    "Schema": _schema,
    "Grant": _grant,
    "DefaultPrivilege": _default_privilege,
    "Database": _database,
}
