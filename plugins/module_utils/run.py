# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What a run has done so far, what it did in the end, and the time that it took."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from .changes import Change, Plan
from .failure import Failure
from .notices import swept_away
from .records import dataclass, field
from .state import Server, State

if TYPE_CHECKING:
    from .explain.answers import Explained
    from .explain.explanation import Survey
    from .statements.statement import Statement


@dataclass(frozen=True)
class Run:
    """What a run did or would do. ``own``: whether any of it is in the connected database. ``explained``: why the
    roles that were asked for have what they have, None where nobody asked; ``survey``: the same of all roles, and
    ``behind`` the statements with their changes, both for a report.
    """

    plan: Plan
    sql: Tuple[str, ...]
    server: Server
    state: State
    session_role: Optional[str] = None
    warnings: Tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    own: bool = False
    explained: Optional[Tuple[Explained, ...]] = None
    survey: Optional[Survey] = None
    behind: Tuple[Statement, ...] = ()


@dataclass
class Clock:
    """Seconds per stage, of all tries."""

    seconds: Dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0) + time.monotonic() - start, 4)


@dataclass
class Done:
    """What is committed in other databases, whatever becomes of the rest of the run."""

    databases: List[str] = field(default_factory=list)
    changes: List[Change] = field(default_factory=list)
    sql: List[str] = field(default_factory=list)
    warnings: List[str] = field(default_factory=list)
    #: The whole plan of the last try.
    plan: List[str] = field(default_factory=list)

    def of(self, failure: Failure) -> Failure:
        """What a failure of the run is, once something is committed."""
        return failure.partially_applied(self.databases, self.sql, self.plan) if self.sql else failure

    def add(self, database: str, changes: Sequence[Change], sql: Iterable[str], warnings: Iterable[str]) -> None:
        """Take note of a commit."""
        if database not in self.databases:
            self.databases.append(database)
        self.changes.extend(changes)
        self.sql.extend(sql)
        self.warnings.extend([*swept_away(changes), *warnings])
