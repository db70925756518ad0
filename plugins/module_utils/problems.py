# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What is wrong, as data: a run reports all problems that it can find, not only the first."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from .records import dataclass, replace

MANIFEST_INVALID = "manifest_invalid"
MISSING_LIBRARY = "missing_library"


@dataclass(frozen=True)
class Problem:
    """One problem. ``message`` stands alone; ``hint`` only adds to it.

    ``path`` is the place as messages print it: ``grants[3].object.type``, for a file
    ``access.yml: grants[3].object.type``. ``file`` is the whole name of that file.
    """

    path: Optional[str] = None
    file: Optional[str] = None
    role: Optional[str] = None
    object: Optional[str] = None
    message: str = ""
    hint: Optional[str] = None
    code: str = MANIFEST_INVALID

    @property
    def text(self) -> str:
        """Place, message and hint as one line."""
        line = f"{self.path}: {self.message}" if self.path else self.message
        return f"{line} ({self.hint})" if self.hint else line

    def as_dict(self) -> Dict[str, Any]:
        """The problem as the module returns it in ``problems``."""
        return {
            "path": shortened(self.path, LONGEST_NAME),
            "file": self.file,
            "role": shortened(self.role, LONGEST_NAME),
            "object": shortened(self.object, LONGEST_NAME),
            "message": shortened(self.message, LONGEST_TEXT),
            "hint": shortened(self.hint, LONGEST_TEXT),
        }


def file_of(source: str, labels: Mapping[str, str]) -> Optional[str]:
    """The whole name of the file that a source lies in."""
    for label, path in labels.items():
        if source.startswith(f"{label}: "):
            return path
    return None


def as_written(problems: Sequence[Problem], renamed: Mapping[str, str]) -> Tuple[Problem, ...]:
    """Problems at the places that another tool's file has. One that is then there twice is told once."""
    if not renamed:
        return tuple(problems)
    return tuple(dict.fromkeys(replace(problem, path=_written(problem.path, renamed)) for problem in problems))


def written(path: str, renamed: Mapping[str, str]) -> str:
    """A place as another tool's file has it."""
    return _written(path, renamed) or path


def _written(path: Optional[str], renamed: Mapping[str, str]) -> Optional[str]:
    end = len(path or "")
    while path is not None and end > 0:
        if path[:end] in renamed:
            return renamed[path[:end]] + path[end:]
        end = max(path.rfind(".", 0, end), path.rfind("[", 0, end))
    return path


#: The most characters of a place, a role's or an object's name in a result, and of a text.
LONGEST_NAME = 500
LONGEST_TEXT = 10_000


def readable(text: str) -> str:
    """A text that every output can show: names may hold bytes that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shortened(text: Optional[str], longest: int) -> Optional[str]:
    """A text that a result can have. What is so long is no name and no sentence, but may be somebody's input."""
    return text if text is None or len(text) <= longest else f"{text[:longest]}..."


class ManifestInvalid(Exception):
    """The manifest cannot be used. Carries every problem that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems: Tuple[Problem, ...] = tuple(problems)
        super().__init__(_summary(self.problems))

    @property
    def code(self) -> str:
        """The ``error_code`` of the whole failure."""
        codes = {problem.code for problem in self.problems}
        return MISSING_LIBRARY if MISSING_LIBRARY in codes else MANIFEST_INVALID


def _summary(problems: Sequence[Problem]) -> str:
    if not problems:
        return "The manifest is not valid."
    more = len(problems) - 1
    rest = "" if not more else f" (and {more} more problem{'s' if more > 1 else ''}, all in 'problems')"
    return f"{problems[0].text}{rest}"
