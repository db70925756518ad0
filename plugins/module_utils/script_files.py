# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Scripts as files: written whole or not at all, for the owner's eyes only. And where the files of a run may be."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from .failure import Failure
from .filters import Options
from .outcome import Outcome
from .problems import Problem
from .records import dataclass
from .state import State
from .statements.statement import Statement
from .store import COMMENT_STORE
from .transaction import Settings

if TYPE_CHECKING:
    from psycopg import Connection

    from .script import Frame

#: What stands for the name of the connected database in a file's path.
DATABASE = "{database}"


def for_database(path: str, database: str) -> str:
    """A path with the database's name in it. Each name makes a path of its own: what no file may be called is written
    as in a URL.
    """
    word = database.replace("%", "%25").replace("/", "%2F")
    if word in (".", ".."):
        word = word.replace(".", "%2E")
    return path.replace(DATABASE, word)


def file_problems(paths: Mapping[str, Optional[str]], others: Iterable[Tuple[str, Optional[str]]]) -> List[Problem]:
    """What is wrong with these files, by option, before anybody needs them. ``others``: files of other options. Where a
    file is to be is only looked at where the path no longer waits for the database's name.
    """
    problems: List[Problem] = []
    # By what is behind them: a folder may be a link, and a file have two names.
    taken = {_place(path): option for option, path in others if path}
    for option, path in paths.items():
        if not path:
            continue
        wrong = _wrong(path)
        if wrong is None and _place(path) in taken:
            wrong = f"is the file of {taken[_place(path)]} as well"
        if wrong is not None:
            problems.append(Problem(path=option, message=f"{path!r} {wrong}"))
        taken[_place(path)] = option
    return problems


def _place(path: str) -> Tuple[Any, ...]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        try:
            return (os.path.realpath(path),)
        except ValueError:
            return (path,)  # no file can have this name
    return found.st_dev, found.st_ino


def _wrong(path: str) -> Optional[str]:
    if not os.path.isabs(path) or "\0" in path:
        return "must be an absolute path, where the module runs"
    try:
        os.fsencode(path)
    except ValueError:
        return "is not valid Unicode text"
    if DATABASE in path:
        return None
    folder = os.path.dirname(path)
    if os.path.islink(path):
        return "is a symbolic link: name the file itself"
    if os.path.lexists(path) and not os.path.isfile(path):
        return "is there and is no file"
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
        return f"cannot be written: there is no folder {folder!r} to write to"
    return None


def _keep_name(folder: str) -> None:
    """Let a new name in a folder survive a crash, where the system can do that."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # it may be written to and not read
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


class Draft:
    """A file beside the one that is meant, until it takes its place."""

    def __init__(self, option: str, path: str, text: str) -> None:
        """Write the draft. Raises Failure."""
        self._option = option
        self._path = path
        self._draft: Optional[str] = f"{path}.{os.getpid()}.{secrets.token_hex(4)}"
        try:
            # A link by that name is not followed.
            handle = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as stream:
                stream.write(text.encode("utf-8", "backslashreplace"))
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as exc:
            self.drop()
            raise self._failure(exc) from None

    @property
    def name(self) -> str:
        """The draft's own path; empty once it has taken its place."""
        return self._draft or ""

    def place(self) -> None:
        """Let the draft take its place; what was there is gone, a link too. Raises Failure."""
        if self._draft is None:
            return
        try:
            if os.path.islink(self._path):
                raise OSError(0, "it has become a symbolic link")
            os.replace(self._draft, self._path)
            _keep_name(os.path.dirname(self._path))
        except OSError as exc:
            raise self._failure(exc) from None
        self._draft = None

    def drop(self) -> None:
        """Delete the draft, where it has not taken its place."""
        if self._draft is not None:
            try:
                os.unlink(self._draft)
            except OSError:
                pass  # it was never made
            self._draft = None

    def _failure(self, exc: OSError) -> Failure:
        message = f"{self._option} {self._path} cannot be written: {exc.strerror}"
        return Failure("manifest_invalid", message, problems=[Problem(path=self._option, message=message)])


def write(option: str, path: str, text: str) -> None:
    """Write a file whole. Raises Failure."""
    draft = Draft(option, path, text)
    try:
        draft.place()
    finally:
        draft.drop()


@dataclass(frozen=True)
class Scripts:
    """The scripts of one try of a run, as far as they are asked for."""

    settings: Settings
    outcome: Outcome
    options: Options
    state: State
    statements: Sequence[Statement]
    digest: str
    encoding: str

    @classmethod
    def of(
        cls,
        connection: Connection[Any],
        settings: Settings,
        outcome: Outcome,
        options: Options,
        state: State,
        statements: Sequence[Statement],
        plan_digest: str,
    ) -> Scripts:
        """The scripts for this connection."""
        ascii_only = connection.info.parameter_status("server_encoding") == "SQL_ASCII"
        return cls(settings, outcome, options, state, statements, plan_digest, "SQL_ASCII" if ascii_only else "UTF8")

    def write_plan(self, refused: Sequence[Problem] = ()) -> None:
        """Write the plan's script, an empty plan's too. ``refused``: why an apply stops. Raises Failure."""
        if self.settings.plan_file:
            # Imported here and below, so that a run without scripts does not pay for it.
            from .script import plan_script

            write("plan_file", self.settings.plan_file, plan_script(self._frame(), self.statements, refused))

    def write_undo(self) -> List[str]:
        """Write the way back of a plan that is only looked at. In check mode a file that is there stays, because it may
        be the way back from what was applied. Returns a warning then. Raises Failure.
        """
        path = self.settings.undo_file
        if path and self.statements and self.settings.check_mode and os.path.lexists(path):
            return [f"undo_file {path} is there and stays as it is: a check run changes nothing that it could undo"]
        with self.undo() as draft:
            if draft is not None:
                draft.place()
        return []

    @contextmanager
    def undo(self) -> Iterator[Optional[Draft]]:
        """The way back as a draft, which is gone where it is not placed. Raises Failure.

        A plan with nothing to do leaves the file of an earlier run alone: it is the way back from that one.
        """
        path = self.settings.undo_file
        if not path or (not self.statements and os.path.lexists(path)):
            yield None
            return
        from .script import undo_script
        from .undo.way import undo_of

        outcome = self.outcome
        way = undo_of(outcome.plan, self.state, outcome.after, outcome.powers, session_role=self.settings.session_role)
        draft = Draft("undo_file", path, undo_script(self._frame(), way))
        try:
            yield draft
        finally:
            draft.drop()

    def _frame(self) -> Frame:
        from .script import Frame

        settings = self.settings
        return Frame(
            self.state,
            self.options,
            self.digest,
            where=settings.where,
            session_role=settings.session_role,
            lock_timeout=settings.lock_timeout,
            statement_timeout=settings.statement_timeout,
            encoding=self.encoding,
            keeps=self._may_hold_record,
            leaks=settings.leaks,
        )

    def _may_hold_record(self, role: int) -> bool:
        """Whether the last line of the role's comment may be the record of a password."""
        passwords = self.settings.passwords
        if passwords.keyed and passwords.store == COMMENT_STORE:
            return True
        return any(record.store == COMMENT_STORE for record in self.state.passwords.records.get(role, ()))
