# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Profiles undone: a manifest in which every role, grant and default privilege stands by itself."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Tuple

from ..manifest import settings
from ..manifest.spec import DEFAULT_ROLE_PATTERN
from ..policy import filled
from ..privileges import KINDS
from .shapes import written


def flattened(manifest: Mapping[str, Any]) -> Dict[str, Any]:
    """The raw manifest without profiles, with the same meaning. The given one stays as it is."""
    if not manifest.get("profiles"):
        return dict(manifest)
    flat = {key: value for key, value in manifest.items() if key not in ("profiles", "role_pattern")}
    flat["schemas"] = [
        {key: value for key, value in item.items() if key not in ("profiles", "role_pattern")}
        for item in manifest.get("schemas") or ()
    ]
    roles: List[Dict[str, Any]] = []
    grants: List[Dict[str, Any]] = []
    defaults: List[Dict[str, Any]] = []
    for role, schema, name, profile in _bindings(manifest):
        roles.append(_role(role, schema["name"], name, profile))
        for rule in profile.get("grants") or ():
            grants.append({"role": role, **rule, "object": _object(rule["object"], schema["name"])})
        items = [{"role": role, **item} for item in profile.get("default_privileges") or ()]
        if items:
            owner = schema.get("owner") or manifest.get("default_owner")
            defaults.append({"owner": owner, "schema": schema["name"], "grant": items})
    for section, more in (("roles", roles), ("grants", grants), ("default_privileges", defaults)):
        if more:
            flat[section] = [*(manifest.get(section) or ()), *more]
    return flat


def _bindings(manifest: Mapping[str, Any]) -> Iterator[Tuple[str, Mapping[str, Any], str, Mapping[str, Any]]]:
    usual = manifest.get("role_pattern") or DEFAULT_ROLE_PATTERN
    for schema in manifest.get("schemas") or ():
        for name in schema.get("profiles") or ():
            role = filled(schema.get("role_pattern") or usual, schema["name"], name)
            yield role, schema, name, manifest["profiles"][name] or {}


def _role(role: str, schema: str, name: str, profile: Mapping[str, Any]) -> Dict[str, Any]:
    entry = {"name": role, **{key: profile[key] for key in ("login", "inherit") if profile.get(key) is not None}}
    if profile.get("config") is not None:
        entry["config"] = {
            key: settings.shown(
                key, [filled(text, schema, name) for text in settings.declared(settings.fold(key), written(value))]
            )
            for key, value in profile["config"].items()
            if value is not None
        }
    return entry


def _object(target: Mapping[str, Any], schema: str) -> Dict[str, Any]:
    if KINDS[target["type"]].in_schema:
        return {"type": target["type"], "schema": schema, "name": target["name"]}
    return {"type": target["type"], "name": schema}
