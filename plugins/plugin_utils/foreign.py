# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Which tool a manifest file was written for, by its text: the role asks before it reads it as Ansible reads YAML."""

from __future__ import annotations

from typing import Any, List, NamedTuple

import yaml
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.foreign.recognize import (
    BUNDLE,
    NATIVE,
    format_of,
    parts_of,
)


class Told(NamedTuple):
    """``tool``: what the file is, in a few words; empty for a native manifest, and for what is no YAML. ``parts``: the
    paths of the files that a bundle's root names.
    """

    tool: str
    parts: List[str]


def told_of(text: Any, path: str) -> Told:
    """What a file is. Only its keys and the structure are looked at: tags, templates and vaults are text here."""
    try:
        # The loader that makes text of every value, whatever its tag.
        contents = [content for content in yaml.load_all(str(text), Loader=yaml.BaseLoader) if content]
        kind = format_of(contents)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError):
        return Told("", [])
    if kind == NATIVE:
        return Told("", [])
    return Told(kind, parts_of(contents[0], path) if kind == BUNDLE else [])
