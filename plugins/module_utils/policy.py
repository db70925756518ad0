# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""A manifest expanded into plain desired facts: no profiles, no patterns, one set of membership edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import FrozenSet, Mapping, Optional, Tuple, Union

from .manifest.model import Instant

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
    """

    name: str
    source: str
    external: bool = False
    generated: bool = False
    additive: bool = False
    comment: Optional[str] = None
    attributes: Mapping[str, Union[bool, Instant]] = field(default_factory=dict)


@dataclass(frozen=True)
class DesiredEdge:
    """``member`` is to be a member of ``group``. ``inherit`` and ``set`` are None where the manifest does not say."""

    group: str
    member: str
    source: str
    admin: bool = False
    inherit: Optional[bool] = None
    set: Optional[bool] = None


@dataclass(frozen=True)
class DesiredSchema:
    """A declared schema. ``owner`` is only the explicit one; ``create_owner`` is who owns it when the run creates it."""

    name: str
    source: str
    owner: Optional[str] = None
    create_owner: Optional[str] = None


@dataclass(frozen=True)
class Rule:
    """One grant rule. ``role`` may be PUBLIC. ``name`` is ``*`` for a wildcard, None for the connected database.

    For kinds outside schemas ``schema`` is None and ``name`` is the object's name; that includes kind ``schema``.
    ``privileges`` may be ``{"ALL"}``: what it means depends on the server.
    """

    role: str
    privileges: FrozenSet[str]
    kind: str
    schema: Optional[str]
    name: Optional[str]
    source: str
    present: bool = True


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


@dataclass(frozen=True)
class Policy:
    """Everything that the manifest wants.

    ``roles``: the declared roles by name. ``assumed``: names that another run declares. ``edges`` by (group, member).
    ``stanzas``: groups that have a ``memberships`` item of their own, with its source. ``exclusive``: groups whose
    stanza says so. ``named_owners``: roles whose default privileges the manifest speaks for, with what names each.
    """

    roles: Mapping[str, DesiredRole] = field(default_factory=dict)
    assumed: FrozenSet[str] = frozenset()
    edges: Mapping[Tuple[str, str], DesiredEdge] = field(default_factory=dict)
    stanzas: Mapping[str, str] = field(default_factory=dict)
    exclusive: FrozenSet[str] = frozenset()
    schemas: Mapping[str, DesiredSchema] = field(default_factory=dict)
    rules: Tuple[Rule, ...] = ()
    default_rules: Tuple[DefaultRule, ...] = ()
    named_owners: Mapping[str, str] = field(default_factory=dict)
    scope_schemas: Tuple[str, ...] = ()
    ignore_roles: Tuple[str, ...] = ()
    #: Every role that the manifest names anywhere, with the first place that does.
    named_roles: Mapping[str, str] = field(default_factory=dict)
