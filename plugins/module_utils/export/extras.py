# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What an export is asked for, and what only an export asks the catalog."""

from __future__ import annotations

from typing import FrozenSet, Mapping, Optional, Tuple

from ..records import dataclass, field
from ..state import Acl

#: An object with an initial ACL: its catalog, its OID, and the column.
Initial = Tuple[str, int, Optional[str]]


@dataclass(frozen=True)
class Extras:
    """What only an export asks the catalog.

    ``initial``: the ACLs that initdb or an extension's script left (pg_init_privs). ``extension_schemas``: OIDs of
    schemas that belong to an extension. ``database_settings``: role OID, database, names of settings. ``passwords``:
    the roles that have one; nothing where the executor may not see that. ``uncovered``: types with an ACL that no rule
    can name: schema, type, what it is, its owner's OID and its ACL. ``toast``: TOAST tables with an ACL: name, column,
    owner's OID and ACL. ``untrusted``: languages that take no grants.
    """

    initial: Mapping[Initial, Acl] = field(default_factory=dict)
    extension_schemas: FrozenSet[int] = frozenset()
    database_settings: Tuple[Tuple[int, str, Tuple[str, ...]], ...] = ()
    passwords: FrozenSet[int] = frozenset()
    uncovered: Tuple[Tuple[str, str, str, int, Acl], ...] = ()
    toast: Tuple[Tuple[str, Optional[str], int, Acl], ...] = ()
    untrusted: FrozenSet[str] = frozenset()


@dataclass(frozen=True)
class Choice:
    """What is asked for, as shell-style patterns; None means all."""

    schemas: Optional[Tuple[str, ...]] = None
    roles: Optional[Tuple[str, ...]] = None
    ignore_roles: Tuple[str, ...] = ()
