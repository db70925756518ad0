# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""A manifest expanded into plain desired facts: no profiles, no patterns, one set of membership edges."""

from __future__ import annotations

import re
from typing import Any, Dict, FrozenSet, Iterable, Iterator, Mapping, Optional, Set, Tuple, Union

from . import privileges
from .manifest import load
from .manifest.model import (
    Config,
    DatabaseEntry,
    DefaultGrantEntry,
    GrantEntry,
    Instant,
    Manifest,
    Password,
    ProfileEntry,
    SchemaEntry,
)
from .manifest.texts import NAME_BYTES, reserved, show
from .manifest.validate import Suggester
from .masking import Secrets
from .policy_checks import (
    Report,
    check_contradictions,
    check_ignored,
    check_known,
    check_memberships,
    check_retirements,
)
from .problems import ManifestInvalid, Problem, as_written
from .records import dataclass, field

#: The role attributes that a manifest declares, with what an omitted one means (PostgreSQL's own defaults).
ATTRIBUTE_DEFAULTS: Mapping[str, Union[bool, int, str]] = {
    "login": False,
    "superuser": False,
    "createdb": False,
    "createrole": False,
    "replication": False,
    "bypassrls": False,
    "inherit": True,
    "connection_limit": -1,
    "valid_until": "infinity",
}


@dataclass(frozen=True)
class DesiredRole:
    """A declared role: from ``roles`` or generated from a profile.

    ``attributes`` holds only what the manifest gives (keys of ATTRIBUTE_DEFAULTS); nothing for an external role.
    ``config`` None leaves the role's settings alone. ``profile`` and ``schema``: what it is generated from.
    ``login_key``: what gives it LOGIN, as its file calls that.
    """

    name: str
    source: str
    external: bool = False
    generated: bool = False
    additive: bool = False
    comment: Optional[str] = None
    config: Optional[Config] = None
    attributes: Mapping[str, Union[bool, Instant]] = field(default_factory=dict)
    password: Optional[Password] = None
    profile: Optional[str] = None
    schema: Optional[str] = None
    login_key: str = "login"


@dataclass(frozen=True)
class DesiredEdge:
    """``member`` is to be a member of ``group``. ``inherit`` and ``set`` are None where the manifest does not say.

    ``by_attribute``: a new membership is then inherited where the member has INHERIT. ``unsaid``: before PostgreSQL 16
    the manifest does not say ``inherit``.
    """

    group: str
    member: str
    source: str
    admin: bool = False
    inherit: Optional[bool] = None
    set: Optional[bool] = None
    by_attribute: bool = False
    unsaid: bool = False


@dataclass(frozen=True)
class DesiredSchema:
    """A declared schema. ``owner`` is only the explicit one; ``create_owner`` owns it when the run creates it."""

    name: str
    source: str
    owner: Optional[str] = None
    create_owner: Optional[str] = None


@dataclass(frozen=True)
class Rule:
    """One grant rule. ``role`` may be PUBLIC. ``name`` is ``*`` for a wildcard, None for the connected database.

    For kinds outside schemas ``schema`` is None and ``name`` is the object's name; that includes kind ``schema``. A
    parameter's name is in lower case, a large object's is its OID in decimal digits. ``columns`` are sorted, each once;
    none means the object itself. ``privileges`` may be ``{"ALL"}``, except with columns: what it means depends on the
    server. ``or_view``: a table that may be a view or a materialized view as well.
    """

    role: str
    privileges: FrozenSet[str]
    kind: str
    schema: Optional[str]
    name: Optional[str]
    source: str
    present: bool = True
    columns: Tuple[str, ...] = ()
    with_grant_option: bool = False
    or_view: bool = False
    #: Where the object's name stands, in a file that has it elsewhere than below ``source``.
    place: Optional[str] = None


@dataclass(frozen=True)
class DefaultRule:
    """One default-privilege rule. ``schema`` None is the owner's global layer. ``kind`` is the ``on_type``."""

    owner: str
    schema: Optional[str]
    kind: str
    role: str
    privileges: FrozenSet[str]
    source: str
    present: bool = True
    with_grant_option: bool = False


@dataclass(frozen=True)
class DesiredRetirement:
    """A role that is to go: what it owns belongs to ``heir`` then, or is destroyed with ``drop_owned``."""

    name: str
    source: str
    heir: Optional[str] = None
    drop_owned: bool = False
    terminate_sessions: bool = False
    all_databases: bool = False

    @property
    def destroys(self) -> bool:
        """Whether what the role owns goes with it."""
        return self.drop_owned and self.heir is None


@dataclass(frozen=True)
class Policy:
    """Everything that the manifest wants.

    ``roles``: the declared roles by name. ``assumed``: names that another run declares. ``edges`` by (group, member).
    ``stanzas``: groups whose members are listed at the group (in ``memberships`` or in ``members``), with the place.
    ``exclusive``: groups that have no other members, whoever looks after the group: their stanza says so, or their
    entry has ``members``. ``member_of``: roles that are members of no other groups, with the place. ``named_owners``:
    roles whose default privileges the manifest speaks for, with what names each.
    """

    roles: Mapping[str, DesiredRole] = field(default_factory=dict)
    assumed: FrozenSet[str] = frozenset()
    edges: Mapping[Tuple[str, str], DesiredEdge] = field(default_factory=dict)
    stanzas: Mapping[str, str] = field(default_factory=dict)
    exclusive: FrozenSet[str] = frozenset()
    member_of: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, DesiredSchema] = field(default_factory=dict)
    rules: Tuple[Rule, ...] = ()
    default_rules: Tuple[DefaultRule, ...] = ()
    named_owners: Mapping[str, str] = field(default_factory=dict)
    retirements: Mapping[str, DesiredRetirement] = field(default_factory=dict)
    scope_roles: Tuple[str, ...] = ()
    #: Names in ``scope.roles`` that are none if their file is a part of a pgroles bundle, and the file.
    maybe_limits: Tuple[Tuple[str, str], ...] = ()
    scope_schemas: Tuple[str, ...] = ()
    ignore_roles: Tuple[str, ...] = ()
    #: Databases that have to be as they are said to be. A plan never changes one.
    databases: Tuple[DatabaseEntry, ...] = ()
    #: Every role that the manifest names anywhere, with the first place that does.
    named_roles: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether it wants nothing. Patterns of what to leave alone and names of other runs' roles are no wish."""
        wishes = (
            *(self.roles, self.edges, self.stanzas, self.exclusive, self.member_of, self.schemas, self.rules),
            *(self.default_rules, self.named_owners, self.retirements, self.scope_roles, self.scope_schemas),
            self.databases,
        )
        return not any(wishes)


def manifest_to_policy(raw: Mapping[str, Any], secrets: Optional[Secrets] = None, check: bool = False) -> Policy:
    """The policy that the module's raw arguments describe. Raises ManifestInvalid with everything that is wrong.

    Secrets that are found on the way go into ``secrets``. ``check``: nothing is going to be changed, which other tools'
    files may ask for.
    """
    draft = load.draft(raw, secrets, check=check)
    policy, problems = _expand(draft.manifest)
    if draft.problems or problems:
        raise ManifestInvalid(as_written((*draft.problems, *problems), draft.manifest.renamed))
    return policy


def expand(manifest: Manifest) -> Policy:
    """The plain desired facts of a manifest. Raises ManifestInvalid where its parts do not fit together."""
    policy, problems = _expand(manifest)
    if problems:
        raise ManifestInvalid(problems)
    return policy


def _expand(manifest: Manifest) -> Tuple[Policy, Tuple[Problem, ...]]:
    report = Report(manifest)
    schemas = _schemas(manifest)
    bindings = tuple(_bindings(manifest, report))
    roles = _roles(manifest, bindings, report)
    if manifest.passwords or any(entry.password is not None for entry in manifest.roles):
        from .policy_passwords import with_passwords

        roles = with_passwords(manifest, roles, report)
    edges = _unite(_edges(manifest), report)
    rules = (*_direct_rules(manifest), *_profile_rules(bindings))
    default_rules = (
        *_direct_default_rules(manifest, report),
        *_profile_default_rules(manifest, schemas, bindings, report),
    )
    owners = _named_owners(schemas, default_rules)
    # Several rules may come from one place of another tool's file.
    named = tuple(dict.fromkeys(_named_roles(manifest, roles)))
    named_roles = _first(named)
    retirements = _retirements(manifest)
    check_retirements(manifest, roles, named, report)
    check_memberships(edges, report)
    check_contradictions(rules, default_rules, report)
    check_known(manifest, roles, named, report)
    retired = {name: f"{retirement.source}.role" for name, retirement in retirements.items()}
    check_ignored(manifest, {**retired, **named_roles}, report)
    policy = Policy(
        roles=roles,
        assumed=manifest.assume_roles,
        edges=edges,
        stanzas=_first(_lists_of_members(manifest)),
        exclusive=frozenset(_exclusive(manifest)),
        member_of={role.name: role.place("member_of") for role in manifest.roles if role.member_of is not None},
        schemas=schemas,
        rules=rules,
        default_rules=default_rules,
        named_owners=owners,
        retirements=retirements,
        scope_roles=manifest.scope.roles,
        maybe_limits=manifest.maybe_limits,
        scope_schemas=manifest.scope.schemas,
        ignore_roles=manifest.scope.ignore_roles,
        databases=manifest.databases,
        named_roles=named_roles,
    )
    return policy, tuple(report.problems)


def _first(pairs: Iterable[Tuple[str, str]]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for name, source in pairs:
        found.setdefault(name, source)
    return found


# ---- schemas, profiles and roles -----------------------------------------------------------------------------------


def _schemas(manifest: Manifest) -> Dict[str, DesiredSchema]:
    """The declared schemas by name. Several files may bind profiles to one; at most one of them names the owner."""
    found: Dict[str, DesiredSchema] = {}
    for entry in manifest.schemas:
        before = found.get(entry.name)
        owner = entry.owner if before is None or before.owner is None else before.owner
        found[entry.name] = DesiredSchema(
            name=entry.name,
            source=entry.source if before is None else before.source,
            owner=owner,
            create_owner=owner if owner is not None else manifest.default_owner,
        )
    return found


@dataclass(frozen=True)
class _Binding:
    """A profile bound to a schema: the role that it generates."""

    role: str
    profile: ProfileEntry
    schema: SchemaEntry
    source: str


def _bindings(manifest: Manifest, report: Report) -> Iterator[_Binding]:
    known = Suggester(manifest.profiles)
    for schema in manifest.schemas:
        pattern = manifest.role_pattern if schema.role_pattern is None else schema.role_pattern
        for number, name in enumerate(schema.profiles):
            source = f"{schema.source}.profiles[{number}]"
            profile = manifest.profiles.get(name)
            if profile is None:
                if "profiles" not in manifest.unreadable:
                    report.problem(source, f"unknown profile {show(name)}{known.hint(name)}")
                continue
            role = filled(pattern, schema.name, name)
            problem = _generated_name_problem(role)
            if problem is not None:
                report.problem(source, f"the role that the profile {show(name)} generates here {problem}", role=role)
                continue
            yield _Binding(role, profile, schema, source)


def filled(pattern: str, schema: str, profile: str) -> str:
    """A pattern with the names of a schema and a profile: what the generated role is called."""
    # In one pass: a schema may be called {profile}.
    words = {"{schema}": schema, "{profile}": profile}
    return re.sub(r"\{(?:schema|profile)\}", lambda match: words[match.group()], pattern)


def _generated_config(binding: _Binding) -> Optional[Config]:
    config = binding.profile.config
    if config is None:
        return None
    return {
        name: tuple(filled(text, binding.schema.name, binding.profile.name) for text in value)
        for name, value in config.items()
    }


def _generated_name_problem(name: str) -> Optional[str]:
    size = len(name.encode("utf-8"))
    if size > NAME_BYTES:
        return f"would be called {name!r}, which is {size} bytes long, and PostgreSQL's names have at most {NAME_BYTES}"
    if reserved(name):
        return f"would be called {name!r}, which is a reserved word"
    if privileges.is_predefined(name):
        return f"would be called {name!r}, and names that begin with pg_ are PostgreSQL's own"
    return None


def _roles(manifest: Manifest, bindings: Iterable[_Binding], report: Report) -> Dict[str, DesiredRole]:
    """The declared roles by name."""
    found: Dict[str, DesiredRole] = {}
    for entry in manifest.roles:
        attributes = {name: getattr(entry, name) for name in ATTRIBUTE_DEFAULTS}
        found.setdefault(
            entry.name,
            DesiredRole(
                name=entry.name,
                source=entry.source,
                external=entry.external,
                additive=entry.privilege_reconciliation == "additive",
                comment=entry.comment,
                config=entry.config,
                attributes={name: value for name, value in attributes.items() if value is not None},
                login_key=entry.elsewhere.get("login", "login"),
            ),
        )
    for binding in bindings:
        first = found.get(binding.role)
        if first is not None:
            report.problem(
                binding.source,
                f"the role {show(binding.role)} is declared twice: by {_origin(first)} and by the profile"
                f" {show(binding.profile.name)} for the schema {show(binding.schema.name)} in {binding.source}",
                role=binding.role,
            )
            continue
        if binding.role in manifest.assume_roles:
            report.problem(
                binding.source,
                f"the role {show(binding.role)} is generated here and stands in assume_roles: one run declares a role",
                role=binding.role,
            )
        given = {"login": binding.profile.login, "inherit": binding.profile.inherit}
        found[binding.role] = DesiredRole(
            name=binding.role,
            source=binding.source,
            generated=True,
            profile=binding.profile.name,
            schema=binding.schema.name,
            config=_generated_config(binding),
            attributes={name: value for name, value in given.items() if value is not None},
        )
    return found


def _origin(role: DesiredRole) -> str:
    return f"the profile in {role.source}" if role.generated else f"the entry {role.source}"


def _retirements(manifest: Manifest) -> Dict[str, DesiredRetirement]:
    return {
        entry.role: DesiredRetirement(
            name=entry.role,
            source=entry.source,
            heir=entry.reassign_owned_to,
            drop_owned=entry.drop_owned,
            terminate_sessions=entry.terminate_sessions,
            all_databases=entry.all_databases,
        )
        for entry in manifest.retirements
    }


# ---- memberships ---------------------------------------------------------------------------------------------------


def _edges(manifest: Manifest) -> Iterator[DesiredEdge]:
    for group, member, entry in manifest.edges():
        yield DesiredEdge(
            group=group,
            member=member,
            source=entry.source,
            admin=bool(entry.admin),
            inherit=entry.inherit,
            set=entry.set,
            by_attribute=entry.by_attribute,
            unsaid=entry.unsaid,
        )


def _lists_of_members(manifest: Manifest) -> Iterator[Tuple[str, str]]:
    """The groups whose members are listed at the group, each with the place."""
    for stanza in manifest.memberships:
        yield stanza.role, stanza.source
    for role in manifest.roles:
        if role.members is not None:
            yield role.name, role.place("members")


def _exclusive(manifest: Manifest) -> Iterator[str]:
    for stanza in manifest.memberships:
        if stanza.exclusive:
            yield stanza.role
    for role in manifest.roles:
        if role.members is not None:
            yield role.name


def _unite(edges: Iterable[DesiredEdge], report: Report) -> Dict[Tuple[str, str], DesiredEdge]:
    """One set of edges out of every spelling of memberships."""
    found: Dict[Tuple[str, str], DesiredEdge] = {}
    for edge in edges:
        first = found.setdefault((edge.group, edge.member), edge)
        if (first.admin, first.inherit, first.set) != (edge.admin, edge.inherit, edge.set):
            report.problem(
                edge.source,
                f"the membership of {show(edge.member)} in {show(edge.group)} has other options in {first.source}"
                f" ({_options(first)}) than in {edge.source} ({_options(edge)})",
                role=edge.member,
            )
        elif first.unsaid and not edge.unsaid:
            found[edge.group, edge.member] = edge
    return found


def _options(edge: DesiredEdge) -> str:
    words = {"admin": edge.admin, "inherit": edge.inherit, "set": edge.set}
    return ", ".join(f"{name}: {show(value)}" if value is not None else f"no {name}" for name, value in words.items())


# ---- rules ---------------------------------------------------------------------------------------------------------


def _direct_rules(manifest: Manifest) -> Iterator[Rule]:
    for entry in manifest.grants:
        if entry.role is not None:
            yield _rule(entry, entry.role, entry.object.schema, entry.object.name, entry.source)


def _profile_rules(bindings: Iterable[_Binding]) -> Iterator[Rule]:
    for binding in bindings:
        for entry in binding.profile.grants:
            inside = privileges.KINDS[entry.object.type].in_schema
            yield _rule(
                entry,
                binding.role,
                binding.schema.name if inside else None,
                entry.object.name if inside else binding.schema.name,
                _profile_source(entry.source, binding),
            )


def _profile_source(source: str, binding: _Binding) -> str:
    return f"{source} for {binding.role}"


def _rule(entry: GrantEntry, role: str, schema: Optional[str], name: Optional[str], source: str) -> Rule:
    return Rule(
        role=role,
        privileges=entry.privileges,
        kind=entry.object.type,
        schema=schema,
        name=name,
        source=source,
        present=entry.present,
        columns=entry.columns,
        with_grant_option=entry.with_grant_option,
        or_view=entry.object.or_view,
        place=entry.object.place,
    )


def _direct_default_rules(manifest: Manifest, report: Report) -> Iterator[DefaultRule]:
    for entry in manifest.default_privileges:
        owner = entry.owner if entry.owner is not None else manifest.default_owner
        if owner is None:
            if entry.usable and "default_owner" not in manifest.unreadable:
                report.problem(
                    f"{entry.source}.owner",
                    "is required where no default_owner is given: default privileges belong to the role that creates"
                    " the objects",
                )
            continue
        for grant in entry.grant:
            if grant.role is not None:
                yield _default_rule(grant, grant.role, owner, entry.schema, grant.source)


def _profile_default_rules(
    manifest: Manifest, schemas: Mapping[str, DesiredSchema], bindings: Iterable[_Binding], report: Report
) -> Iterator[DefaultRule]:
    unowned: Set[str] = set()
    for binding in bindings:
        if not binding.profile.default_privileges:
            continue
        owner = schemas[binding.schema.name].create_owner
        if owner is None:
            usable = binding.schema.usable and "default_owner" not in manifest.unreadable
            if usable and binding.schema.name not in unowned:
                report.problem(
                    f"{binding.schema.source}.owner",
                    f"is required where no default_owner is given: the profile {show(binding.profile.name)} has default"
                    " privileges, and they belong to the role that creates the objects",
                )
            unowned.add(binding.schema.name)
            continue
        for grant in binding.profile.default_privileges:
            source = _profile_source(grant.source, binding)
            yield _default_rule(grant, binding.role, owner, binding.schema.name, source)


def _default_rule(grant: DefaultGrantEntry, role: str, owner: str, schema: Optional[str], source: str) -> DefaultRule:
    return DefaultRule(
        owner=owner,
        schema=schema,
        kind=grant.on_type,
        role=role,
        privileges=grant.privileges,
        source=source,
        present=grant.present,
        with_grant_option=grant.with_grant_option,
    )


# ---- names ---------------------------------------------------------------------------------------------------------


def _named_owners(schemas: Mapping[str, DesiredSchema], default_rules: Iterable[DefaultRule]) -> Dict[str, str]:
    return _first(
        (
            *((rule.owner, rule.source) for rule in default_rules),
            *((item.create_owner, item.source) for item in schemas.values() if item.create_owner is not None),
        )
    )


def _named_roles(manifest: Manifest, roles: Mapping[str, DesiredRole]) -> Iterator[Tuple[str, str]]:
    """Every role that the manifest names, with every place where a person wrote it."""
    for role in roles.values():
        yield role.name, role.source
    if manifest.default_owner is not None:
        yield manifest.default_owner, manifest.default_owner_source
    for schema in manifest.schemas:
        if schema.owner is not None:
            yield schema.owner, f"{schema.source}.owner"
    for stanza in manifest.memberships:
        yield stanza.role, f"{stanza.source}.role"
    for _group, _member, edge in manifest.edges():
        yield edge.name, edge.place
    for grant in manifest.grants:
        if grant.role is not None and grant.role != privileges.PUBLIC:
            yield grant.role, f"{grant.source}.role"
    for name, source in manifest.mentioned:
        if name != privileges.PUBLIC:
            yield name, source
    for entry in manifest.default_privileges:
        if entry.owner is not None:
            yield entry.owner, f"{entry.source}.owner"
        for item in entry.grant:
            if item.role is not None and item.role != privileges.PUBLIC:
                yield item.role, f"{item.source}.role"
    for retirement in manifest.retirements:
        if retirement.reassign_owned_to is not None:
            yield retirement.reassign_owned_to, f"{retirement.source}.reassign_owned_to"
