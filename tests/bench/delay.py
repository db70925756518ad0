# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server that is far away: a TCP socket between client and server that holds everything back for a while.

What arrives goes on half of the delay later, in each direction, so that an answer comes one delay later than it would.
Nothing waits for what came before it, so that much can be on its way at the same time: a long line, and a wide one. The
first word of a connection waits one delay more, as it would for the handshake of TCP.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from traffic import Traffic

_CHUNK = 1 << 18


@dataclass
class Line:
    """Leads to a Unix socket. ``delay``: seconds that a round trip takes longer."""

    target: str
    delay: float = 0.0
    #: One for each connection, where somebody wants to know what is said.
    heard: list[Traffic] = field(default_factory=list)
    listening: bool = False

    def __enter__(self) -> Line:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(30)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def _accept(self) -> None:
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.target)
            except OSError:
                client.close()
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            traffic = Traffic()
            self.heard.append(traffic)
            ignore: Callable[[bytes], None] = lambda _data: None  # noqa: E731
            listeners = (traffic.sent, traffic.answered) if self.listening else (ignore, ignore)
            self._direction(client, server, listeners[0], time.monotonic() + self.delay)
            self._direction(server, client, listeners[1], 0.0)

    def _direction(
        self, source: socket.socket, target: socket.socket, listener: Callable[[bytes], None], earliest: float
    ) -> None:
        held: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

        def read() -> None:
            while True:
                try:
                    data = source.recv(_CHUNK)
                except OSError:
                    data = b""
                held.put((max(time.monotonic(), earliest) + self.delay / 2, data))
                if not data:
                    return

        def write() -> None:
            while True:
                due, data = held.get()
                rest = due - time.monotonic()
                if rest > 0:
                    time.sleep(rest)
                try:
                    if not data:
                        target.shutdown(socket.SHUT_WR)
                        return
                    # Before it goes on: whoever has an answer can rely on its question having been heard.
                    listener(data)
                    target.sendall(data)
                except OSError:
                    return

        for work in (read, write):
            thread = threading.Thread(target=work, daemon=True)
            self._threads.append(thread)
            thread.start()
