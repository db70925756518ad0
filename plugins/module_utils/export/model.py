# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What an export hands from room to room, as plain data."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Mapping, NamedTuple, Optional, Tuple


class Skipped(NamedTuple):
    """Something that a manifest cannot express. ``object`` is as in results: type, schema, name, columns."""

    kind: str
    role: Optional[str]
    object: Optional[Dict[str, Any]]
    what: str
    reason: str


class Inventory(NamedTuple):
    """What exists, without what belongs to extensions.

    ``objects``: by schema and kind, the names of the objects as a manifest writes them.
    """

    objects: Mapping[Tuple[str, str], FrozenSet[str]]
    schemas: Tuple[str, ...]


class Flat(NamedTuple):
    """The native raw manifest without profiles, what is not in it, and what exists."""

    manifest: Dict[str, Any]
    skipped: Tuple[Skipped, ...]
    inventory: Inventory
