# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a signal does at which time of a run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.failure import Failure
from ansible_collections.pg_access.reconcile.plugins.module_utils.interruption import Interrupted, Signals

NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def signals() -> Signals:
    for number in NUMBERS:
        signal.signal(number, signal.SIG_DFL)
    listening = Signals()
    listening.listen()
    return listening


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_interrupts_the_run(signals: Signals, number: int) -> None:
    with pytest.raises(Interrupted) as caught:
        os.kill(os.getpid(), number)
        signal.pause()
    assert caught.value.failure.code == "connection_failed"
    assert signal.Signals(number).name in caught.value.failure.message
    # The next one ends the process.
    assert {signal.getsignal(each) for each in NUMBERS} == {signal.SIG_DFL}


def test_during_the_commit_it_waits(signals: Signals) -> None:
    signals.hold_back()
    os.kill(os.getpid(), signal.SIGTERM)
    lost = Failure("connection_failed", "The connection was lost")
    assert signals.cause_of(lost) is lost


def test_nothing_is_committed_after_a_signal_that_got_lost(signals: Signals) -> None:
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    except Interrupted:
        pass  # as a library could do it
    with pytest.raises(Interrupted):
        signals.hold_back()


def test_what_a_library_makes_of_it_is_told_as_the_signal(signals: Signals) -> None:
    with pytest.raises(Interrupted):
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
    assert "SIGINT" in signals.cause_of(Failure("connection_failed", "The connection was lost")).message
    other = Failure("partially_applied", "Some databases are done")
    assert signals.cause_of(other) is other


def test_one_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    Signals().listen()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_at_the_end_there_is_nothing_to_stop(signals: Signals) -> None:
    signals.ignore()
    for number in NUMBERS:
        os.kill(os.getpid(), number)
