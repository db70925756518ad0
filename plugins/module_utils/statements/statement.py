# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""One statement of a plan, and the role in whose name it runs."""

from __future__ import annotations

import itertools
from typing import Any, Iterable, Iterator, NamedTuple, Optional, Tuple

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

from ..changes import Change
from ..state import RoleRef
from .names import text

#: The most objects that one statement names.
BATCH = 500

#: How many objects a statement names that is only there to be read.
SHOWN = 3


class Statement(NamedTuple):
    """One statement of a plan, and the changes that it makes: none where it only sets a role or lends a schema.

    ``text``: as it is sent, with a mask for a password. ``database``: as in the changes. ``whole``: it names schemas
    and not the objects in them. ``shortened``: with three names and a count, where it names more objects.
    """

    text: str
    changes: Tuple[Change, ...] = ()
    database: Optional[str] = None
    whole: bool = False
    shortened: Optional[str] = None

    @property
    def brief(self) -> str:
        """The statement as something that is only there to be read."""
        return self.text if self.shortened is None else self.shortened

    def after(self, remark: str) -> Statement:
        """The statement behind a remark."""
        shortened = None if self.shortened is None else f"{remark} {self.shortened}"
        return self._replace(text=f"{remark} {self.text}", shortened=shortened)

    @classmethod
    def of(cls, composed: Any, changes: Tuple[Change, ...] = ()) -> Statement:
        """Something composed as a statement. Raises UnicodeEncodeError where a name cannot be spelt."""
        return cls(text(composed), changes)


def role_set(name: Optional[str]) -> Statement:
    """Set the role, or none. Never RESET ROLE, which goes back to the login and not to session_role."""
    return Statement.of(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(name) if name else sql.SQL("NONE")))


def in_names(composed: Iterable[Tuple[Optional[RoleRef], Statement]], back: Statement) -> Iterator[Statement]:
    """The statements with the role set in whose name each runs; the executor's own come first."""
    ordered = sorted(composed, key=lambda item: item[0] or RoleRef(0, ""))
    for run_as, found in itertools.groupby(ordered, key=lambda item: item[0]):
        if run_as is not None:
            yield role_set(run_as.name)
        for _run_as, statement in found:
            yield statement
        if run_as is not None:
            yield back
