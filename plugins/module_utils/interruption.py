# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Signals that ask the process to end: a run rolls back and says so, and never says it of what it has committed."""

from __future__ import annotations

import signal
import threading
from typing import Any, List, Optional

from .failure import Failure

#: Of a job that is cancelled, of Ctrl-C, and of a terminal that goes away.
_NAMES = ("SIGTERM", "SIGINT", "SIGHUP")


class Interrupted(KeyboardInterrupt):
    """The process was asked to end. psycopg cancels the statement that runs when it sees a KeyboardInterrupt."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.failure = Failure("connection_failed", f"The run was ended by {name}; its transaction is not applied.")


class Signals:
    """What the signals do, from the beginning of a run to its end. A second signal always ends the process at once."""

    def __init__(self) -> None:
        self._ours: List[int] = []
        self._raising = True
        self._asked: Optional[Interrupted] = None

    def listen(self) -> None:
        """From here on a signal raises Interrupted."""
        if threading.current_thread() is not threading.main_thread():
            return
        for name in _NAMES:
            number = getattr(signal, name, None)
            # One that is ignored, as under nohup, stays ignored.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)
                self._ours.append(number)

    def hold_back(self) -> None:
        """From here on, which is a COMMIT, nothing is raised, so that what happened is known. Raises Interrupted where
        a signal came before and what it raised was lost.
        """
        self._raising = False
        if self._asked is not None:
            raise self._asked

    def resume(self) -> None:
        """What was committed, which was only a part of the run, is noted. Raises Interrupted where a signal came
        meanwhile.
        """
        self._raising = True
        if self._asked is not None:
            raise self._asked

    def cause_of(self, failure: Failure) -> Failure:
        """The failure of the run, or the signal where that is behind it: psycopg turns some interruptions into errors
        of the connection.
        """
        if not self._raising or self._asked is None or failure.code not in ("connection_failed", "server_error"):
            return failure
        return self._asked.failure

    def ignore(self) -> None:
        """There is nothing more to stop: what happened only has to be told."""
        for number in self._ours:
            signal.signal(number, signal.SIG_IGN)

    def _handle(self, number: int, _frame: Any) -> None:
        for each in self._ours:
            signal.signal(each, signal.SIG_DFL)
        self._asked = Interrupted(signal.Signals(number).name)
        if self._raising:
            raise self._asked
