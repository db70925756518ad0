# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""A run that ends without success, in the shape that the module returns it."""

from __future__ import annotations

import json
import traceback
from typing import Any, Callable, Dict, List, Optional, Sequence

from .problems import LONGEST_TEXT, Problem, shortened
from .records import replace

#: The most characters of a failed result's problems, its plan and what is committed, as JSON. AWX drops an event over
#: 700,000.
LARGEST_PROBLEMS = 250_000
LARGEST_PLAN = 150_000
LARGEST_SQL = 50_000

#: The most characters of a serialised result. AWX drops an event's result over 700,000.
LARGEST = 500_000


class Failure(Exception):
    """The run cannot go on. ``code`` is one of the documented error codes; ``message`` a sentence a person can act on.

    ``sqlstate``, ``statement``, ``detail`` and ``hint`` are there when the server refused something. ``plan`` is what
    would have been run, where a plan was made. ``databases``: the other databases in which a part of it is committed,
    ``sql`` that part, and ``cause`` the code of what failed then.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        problems: Sequence[Problem] = (),
        sqlstate: Optional[str] = None,
        statement: Optional[str] = None,
        detail: Optional[str] = None,
        hint: Optional[str] = None,
        plan: Optional[List[str]] = None,
        databases: Sequence[str] = (),
        sql: Sequence[str] = (),
        cause: Optional[str] = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.problems = tuple(problems)
        self.sqlstate = sqlstate
        self.statement = statement
        self.detail = detail
        self.hint = hint
        self.plan = plan
        self.databases = tuple(databases)
        self.sql = tuple(sql)
        self.cause = cause

    def _with(self, **other: Any) -> Failure:
        return Failure(**{**vars(self), **other})

    def with_message(self, message: str) -> Failure:
        """The same failure in other words."""
        return self._with(message=message)

    def with_hint(self, hint: str) -> Failure:
        """The same failure with another hint, for its problems too."""
        return self._with(hint=hint, problems=[replace(problem, hint=hint) for problem in self.problems])

    def partially_applied(self, databases: Sequence[str], sql: Sequence[str], plan: Sequence[str]) -> Failure:
        """The same failure after these databases were emptied, each for good, with these statements of the plan."""
        places = f"database {databases[0]} was" if len(databases) == 1 else f"databases {', '.join(databases)} were"
        return self._with(
            code="partially_applied",
            message=f"The {places} emptied before something failed, and the rest is not applied. {self.message}",
            problems=self.problems or [Problem(message=self.message, hint=self.hint, code=self.code)],
            plan=list(plan),
            databases=databases,
            sql=sql,
            cause=self.code,
        )

    def masked(self, mask: Callable[[str], str]) -> Failure:
        """The same failure with everything that the server said put through ``mask``."""

        def maybe(text: Optional[str]) -> Optional[str]:
            return None if text is None else mask(text)

        return self._with(
            message=mask(self.message),
            problems=[
                replace(problem, message=mask(problem.message), hint=maybe(problem.hint)) for problem in self.problems
            ],
            detail=maybe(self.detail),
            hint=maybe(self.hint),
        )

    def as_result(self) -> Dict[str, Any]:
        """The keys of a failed result, beside ``msg``. ``sql`` is empty unless other databases are done with.

        A failure that names no single problem is one itself. ``truncated``: not all problems, or not the whole plan.
        """
        told = self.problems or (Problem(message=self.message, hint=self.hint, code=self.code),)
        problems = _fitting([problem.as_dict() for problem in told], LARGEST_PROBLEMS)
        left = len(told) - len(problems)
        if left:
            more = f"{left} more problem{'s are' if left > 1 else ' is'} not shown: correct these first"
            problems.append(Problem(message=more).as_dict())
        result: Dict[str, Any] = {"error_code": self.code, "problems": problems, "sql": _fitting(self.sql, LARGEST_SQL)}
        if self.databases:
            result.update(databases=list(self.databases), cause=self.cause)
        for name in ("sqlstate", "statement", "detail", "hint"):
            value = shortened(getattr(self, name), LONGEST_TEXT)
            if value is not None:
                result[name] = value
        if self.plan is not None:
            result["plan"] = _fitting(self.plan, LARGEST_PLAN)
        if left or len(result.get("plan", ())) < len(self.plan or ()) or len(result["sql"]) < len(self.sql):
            result["truncated"] = True
        return result


def _fitting(items: Sequence[Any], room: int) -> List[Any]:
    """As many of the items as there is room for."""
    shown: List[Any] = []
    for item in items:
        room -= len(json.dumps(item))
        if room < 0:
            break
        shown.append(item)
    return shown


def of_problems(problems: Sequence[Problem], plan: Optional[List[str]] = None) -> Failure:
    """One failure for all problems. Its code is that of the first; a mixture is told by the problems themselves."""
    first = problems[0]
    more = len(problems) - 1
    message = first.text + (f" - and {more} more, see problems" if more else "")
    return Failure(first.code, message, problems=problems, plan=plan)


def internal(exc: Exception, applied: str = "Nothing was applied.") -> Failure:
    """A fault of the collection: its type and place, not its text, which could hold a secret."""
    frames = traceback.extract_tb(exc.__traceback__)
    place: Optional[str] = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else None
    message = f"Internal error: {type(exc).__name__} at {place}. {applied}{' ' if applied else ''}Please report it."
    return Failure("internal_error", message)
