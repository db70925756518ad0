# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The line to a server that is far away: as long as it says, wide, and in order."""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from delay import Line

#: What a busy machine may add to a wait.
SLACK = 0.25


@pytest.fixture
def echo() -> Iterator[str]:
    """A Unix socket that says everything back."""
    with tempfile.TemporaryDirectory(prefix="pgar-echo-", dir="/tmp") as folder:
        path = str(Path(folder) / "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()

            def serve() -> None:
                while True:
                    try:
                        connection, _address = listener.accept()
                    except OSError:
                        return
                    with connection:
                        while data := connection.recv(1 << 16):
                            connection.sendall(data)

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            yield path
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def receive(connection: socket.socket, size: int) -> bytes:
    connection.settimeout(20)
    found = b""
    while len(found) < size:
        data = connection.recv(1 << 16)
        if not data:
            break
        found += data
    return found


@pytest.mark.parametrize("delay", [0.005, 0.02])
def test_a_round_trip_takes_the_delay_and_the_first_one_twice_that(echo: str, delay: float) -> None:
    with Line(echo, delay) as line, socket.create_connection(("127.0.0.1", line.port)) as connection:
        took = []
        for _number in range(21):
            began = time.monotonic()
            connection.sendall(b"x")
            assert receive(connection, 1) == b"x"
            took.append(time.monotonic() - began)
    assert min(took[1:]) >= delay
    # A median, because each of them can be late on a busy machine.
    assert sorted(took[1:])[10] < delay + 0.02
    # The other side may have taken the connection before the clock began.
    assert 1.5 * delay < took[0] < 2 * delay + SLACK


def test_what_is_on_its_way_at_the_same_time_waits_once(echo: str) -> None:
    delay, text = 0.2, b"0123456789" * 400_000
    with Line(echo, delay) as line, socket.create_connection(("127.0.0.1", line.port)) as connection:
        began = time.monotonic()
        sender = threading.Thread(target=connection.sendall, args=(text,))
        sender.start()
        found = receive(connection, len(text))
        took = time.monotonic() - began
        sender.join()
    assert found == text
    # At 0.1 s a chunk it would be more than a second, even in the largest chunks.
    assert 2 * delay <= took < 2 * delay + 1


def test_without_delay_nothing_waits(echo: str) -> None:
    with Line(echo) as line, socket.create_connection(("127.0.0.1", line.port)) as connection:
        began = time.monotonic()
        for _number in range(100):
            connection.sendall(b"x")
            receive(connection, 1)
        assert time.monotonic() - began < 1


def test_the_end_of_a_connection_arrives(echo: str) -> None:
    with Line(echo, 0.01) as line, socket.create_connection(("127.0.0.1", line.port)) as connection:
        connection.sendall(b"last words")
        connection.shutdown(socket.SHUT_WR)
        assert receive(connection, 100) == b"last words"
