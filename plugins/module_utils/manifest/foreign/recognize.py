# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Which tool's format a file has. What carries no mark of another tool is a native manifest.

Every file of ``manifest_files`` comes through here, so it costs a look at each role and default privilege, and loads
nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Iterator, List, Sequence

NATIVE = "native"
#: Documents with ``apiVersion`` and ``kind``.
RESOURCES = "Kubernetes resources"
PGROLES = "a pgroles manifest"
#: The root of a pgroles bundle, and one of the files that it is made of.
BUNDLE = "a pgroles bundle"
FRAGMENT = "a part of a pgroles bundle"

#: Kinds of Kubernetes itself (``v1``) that stand beside other resources and say nothing on a database. Nothing is read
#: from them: a password comes from the option ``passwords``.
BESIDE = frozenset({"Secret", "Namespace", "ConfigMap", "Service", "ServiceAccount"})


def is_resource(content: Any) -> bool:
    """Whether a document is a Kubernetes resource."""
    return isinstance(content, Mapping) and "apiVersion" in content and "kind" in content


def format_of(contents: Sequence[Any]) -> str:
    """The format of a file's documents. A file with several is only read where each is a resource."""
    content = contents[0] if contents else None
    if not isinstance(content, Mapping):
        return NATIVE
    if is_resource(content):
        return RESOURCES
    if isinstance(content.get("sources"), list) or isinstance(content.get("shared"), Mapping):
        return BUNDLE
    scope = content.get("scope")
    facets = any("name" in item for item in _dicts(scope, "schemas"))
    if isinstance(content.get("policy"), Mapping) or facets:
        return FRAGMENT
    return PGROLES if _has_marks(content) else NATIVE


def parts_of(content: Mapping[Any, Any], path: str) -> List[str]:
    """The paths of the files that a bundle's root names, as far as it names any."""
    folder = os.path.dirname(path)
    names = (item.get("file") for item in _dicts(content, "sources"))
    return [os.path.normpath(os.path.join(folder, name)) for name in names if isinstance(name, str) and name]


def _has_marks(content: Mapping[Any, Any]) -> bool:
    """Whether something is in it that only pgroles writes so."""
    if "auth_providers" in content:
        return True
    for role in _dicts(content, "roles"):
        password = role.get("password")
        if "preserve_undeclared_grants" in role or (isinstance(password, Mapping) and "from_env" in password):
            return True
    for rule in _dicts(content, "default_privileges"):
        scope = rule.get("scope")
        if isinstance(scope, Mapping) and scope.get("type") == "schema":
            return True
    return False


def _dicts(holder: Any, name: str) -> Iterator[Mapping[Any, Any]]:
    items = holder.get(name) if isinstance(holder, Mapping) else None
    if isinstance(items, list):
        yield from (item for item in items if isinstance(item, Mapping))
