# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""A run that ends without success, in the shape that the module returns it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Sequence

from .problems import Problem


class Failure(Exception):
    """The run cannot go on. ``code`` is one of the documented error codes; ``message`` a sentence a person can act on.

    ``sqlstate``, ``statement``, ``detail`` and ``hint`` are there when the server refused something. ``plan`` is what
    would have been run, where a plan was made.
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

    def with_message(self, message: str) -> Failure:
        """The same failure in other words."""
        return Failure(
            self.code,
            message,
            problems=self.problems,
            sqlstate=self.sqlstate,
            statement=self.statement,
            detail=self.detail,
            hint=self.hint,
            plan=self.plan,
        )

    def masked(self, mask: Callable[[str], str]) -> Failure:
        """The same failure with everything that the server said put through ``mask``."""

        def maybe(text: Optional[str]) -> Optional[str]:
            return None if text is None else mask(text)

        return Failure(
            self.code,
            mask(self.message),
            problems=[
                replace(problem, message=mask(problem.message), hint=maybe(problem.hint)) for problem in self.problems
            ],
            sqlstate=self.sqlstate,
            statement=self.statement,
            detail=maybe(self.detail),
            hint=maybe(self.hint),
            plan=self.plan,
        )

    def as_result(self) -> Dict[str, Any]:
        """The keys of a failed result, beside ``msg``. Nothing of a failed run is applied, so ``sql`` is empty."""
        result: Dict[str, Any] = {
            "error_code": self.code,
            "problems": [problem.as_dict() for problem in self.problems],
            "sql": [],
        }
        for name in ("sqlstate", "statement", "detail", "hint", "plan"):
            value = getattr(self, name)
            if value is not None:
                result[name] = value
        return result


def of_problems(problems: Sequence[Problem], plan: Optional[List[str]] = None) -> Failure:
    """One failure for all problems. Its code is that of the first; a mixture is told by the problems themselves."""
    first = problems[0]
    more = len(problems) - 1
    message = first.text + (f" - and {more} more, see problems" if more else "")
    return Failure(first.code, message, problems=problems, plan=plan)
