# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What an explanation consists of: who has a privilege, where from, what in the manifest says so, and since when."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from ..state import Object

#: Where a privilege comes from.
DIRECT, GROUP, OWNER, BY_PUBLIC, SUPERUSER, PREDEFINED = "direct", "group", "owner", "public", "superuser", "predefined"

#: What stands behind it. The last four: why the plan takes it.
DECLARED, PERMITTED, KEPT, WITHHELD, UNMANAGED = "declared", "permitted", "kept", "withheld", "unmanaged"
ABSENT, SURPLUS, RETIRED, MEMBERSHIP = "absent", "surplus", "retired", "membership"

#: What the plan does about it.
UNCHANGED, GAINED, LOST = "unchanged", "gained", "lost"

#: What an owner is, beside the privileges that it holds: it may change and drop the object, and give itself any
#: privilege on it again.
OWNS = "OWNER"

#: The kind of a membership's group, and that of what a superuser may.
ROLE, EVERYTHING = "role", "*"


class Answer(NamedTuple):
    """One way in which a role has one privilege. Roles are names.

    ``via``: the roles through which it comes, from the first group to the one that holds it; empty where that is the
    role itself. ``set_role``: the one of them that the role has to set before, None where it has the privilege at once.
    ``rule``: the places in the manifest, or the reason, in words. ``grantor`` is None where no entry of an ACL is
    behind it.
    """

    role: str
    kind: str
    schema: Optional[str]
    column: Optional[str]
    privilege: str
    grant_option: bool
    grantor: Optional[str]
    how: str
    via: Tuple[str, ...]
    set_role: Optional[str]
    because: str
    rule: Optional[str]
    plan: str


class Explained(NamedTuple):
    """The same answer for objects that are alike; in ``answer.column`` is none, ``columns`` has them.

    ``whole``: these are two or more, and all objects of their kind in the schema; without objects, all of the kind
    anywhere. ``only``: it is one, and the only object of its kind in the schema.
    """

    answer: Answer
    objects: Tuple[Object, ...]
    columns: Tuple[str, ...] = ()
    whole: bool = False
    only: bool = False
