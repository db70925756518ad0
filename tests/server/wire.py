# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A socket between the module and the server that knows which statement is on its way, and stops there.

It reads the frontend's and the backend's messages, counts statements (Execute and Query), and at the one that it is told
holds everything, lets the test do its harm, and goes on, or not. So "after statement N" means just that: the server has
answered N statements and has not been sent a byte of the next.
"""

from __future__ import annotations

import select
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

#: A stop that is not reached, or a module that hangs, is a failure of the test.
SECONDS = 60

#: What the server says at the end of a statement: CommandComplete, EmptyQueryResponse, PortalSuspended, ErrorResponse.
_ENDS = frozenset(b"CIsE")


class Stop(NamedTuple):
    """Where to stop.

    ``after``: the server has done statement ``number``, and the module has not heard of it; 0 is the end of the login.
    ``sent``: the module has sent it, and nothing of it has reached the server. ``part``: half of a message has.
    """

    number: int
    when: str = "after"


@dataclass
class Held:
    """The stopped connection, in the hands of a test. It is called in the wire's own thread."""

    client: socket.socket
    server: socket.socket
    #: Process number of the backend.
    backend: int
    #: What the module has sent and the server has not got.
    unsent: Callable[[], bytes]
    #: What the server has said and the module has not heard.
    unheard: bytes
    #: Lets the server have the statement that is next. Only for a stop at ``sent``.
    advance: Callable[[], None]

    def said(self) -> int:
        """How many bytes of the server's answer wait to be read."""
        try:
            return len(self.server.recv(1 << 20, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except BlockingIOError:
            return 0

    def deliver(self) -> None:
        """Send the server all that the module has sent, and what arrives until its end is closed."""
        try:
            self.server.sendall(self.unsent())
            while data := self.client.recv(65536):
                self.server.sendall(data)
        except OSError:
            pass

    def relay(self) -> None:
        """Tell the module all that the server says until it closes its end."""
        try:
            self.client.sendall(self.unheard)
            while data := self.server.recv(65536):
                self.client.sendall(data)
        except OSError:
            pass

    def cut(self) -> None:
        """End the connection for both sides."""
        for side in (self.client, self.server):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


#: Does harm. Returns whether the connection goes on afterwards.
Harm = Callable[[Held], bool]


@dataclass
class _Stream:
    """One direction of a connection, taken apart into messages."""

    typed: bool
    rest: bytes = b""

    def messages(self, data: bytes) -> list[bytes]:
        self.rest += data
        found: list[bytes] = []
        while True:
            head = 1 if self.typed else 0
            if len(self.rest) < head + 4:
                return found
            size = head + struct.unpack_from("!I", self.rest, head)[0]
            if len(self.rest) < size:
                return found
            found.append(self.rest[:size])
            self.rest = self.rest[size:]
            self.typed = True


@dataclass
class Wire:
    """The socket. Only the first connection is watched; others, such as one that asks for an outcome, pass."""

    target: str
    port: int
    stop: Stop | None = None
    harm: Harm | None = None
    #: The statements that the module has sent, in their order.
    texts: list[str] = field(default_factory=list)
    stopped: bool = False
    error: BaseException | None = None

    def __enter__(self) -> Wire:
        # A socket's path has room for about a hundred bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="pgar-wire-", dir="/tmp"))
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.directory / f".s.PGSQL.{self.port}"))
        self._listener.listen()
        self._watched = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        for thread in self._threads:
            thread.join(SECONDS)
        shutil.rmtree(self.directory, ignore_errors=True)
        if self.error is not None:
            raise self.error

    def _accept(self) -> None:
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                return
            work = self._pass if self._watched else self._watch
            self._watched = True
            thread = threading.Thread(target=self._guarded, args=(work, client), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _guarded(self, work: Callable[[socket.socket, socket.socket], None], client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            try:
                server.connect(f"{self.target}/.s.PGSQL.{self.port}")
                work(client, server)
            except OSError:
                pass  # one of the two is gone
            except BaseException as error:
                self.error = error

    @staticmethod
    def _pass(client: socket.socket, server: socket.socket) -> None:
        other = {client: server, server: client}
        while True:
            for side in select.select([client, server], [], [], SECONDS)[0]:
                data = side.recv(65536)
                if not data:
                    return
                other[side].sendall(data)

    def _watch(self, client: socket.socket, server: socket.socket) -> None:
        _Watched(self, client, server).run()


class _Watched:
    """The one connection that is looked at."""

    def __init__(self, wire: Wire, client: socket.socket, server: socket.socket) -> None:
        self.wire = wire
        self.client = client
        self.server = server
        self.sending = _Stream(typed=False)
        self.answering = _Stream(typed=True)
        self.backend = 0
        self.ready = False
        self.started = 0
        self.ended = 0
        #: Frontend messages that wait behind the stop.
        self.queue: list[bytes] = []
        self.unheard = b""
        self.parsed = b""

    def run(self) -> None:
        while True:
            for side in select.select([self.client, self.server], [], [], SECONDS)[0]:
                data = side.recv(65536)
                if not data:
                    return
                if side is self.client:
                    self.queue += self.sending.messages(data)
                else:
                    self._answer(data)
            if not self._forward():
                return

    def _answer(self, data: bytes) -> None:
        for message in self.answering.messages(data):
            kind = message[0]
            if kind == ord("K"):
                self.backend = struct.unpack_from("!I", message, 5)[0]
            elif kind == ord("Z"):
                self.ready = True
            elif self.ready and kind in _ENDS:
                self.ended += 1
            stop = self.wire.stop
            reached = stop is not None and stop.when == "after" and self.ready and self.ended >= stop.number
            if stop is not None and not self.wire.stopped and reached:
                # The module does not hear of this statement any more.
                self.unheard += message
            else:
                self.client.sendall(message)

    def _forward(self) -> bool:
        """Send on what may be sent. Returns whether the connection goes on."""
        stop = self.wire.stop
        while True:
            if stop is None or self.wire.stopped:
                rest, self.queue = self.queue, []
                for message in rest:
                    self._note(message)
                self.server.sendall(b"".join(rest))
                return True
            if stop.when == "after" and self.ready and self.started == stop.number:
                return self._harm() if self.ended >= stop.number else True
            if not self.queue:
                return True
            message = self.queue[0]
            begins = message[:1] in (b"P", b"Q") and self.ready
            if begins and stop.when != "after" and self.started + 1 == stop.number:
                size = next((n for n, item in enumerate(self.queue, start=1) if item[:1] in (b"E", b"Q")), 0)
                if self.ended < self.started:
                    self._flush()
                    return True
                return self._harm(size) if size else True
            self._one()
            if stop.when == "after" and self.started == stop.number:
                self._flush()

    def _one(self) -> None:
        message = self.queue.pop(0)
        self._note(message)
        self.server.sendall(message)

    def _note(self, message: bytes) -> None:
        if not self.ready:
            return
        kind = message[:1]
        if kind == b"P":
            name_end = message.index(b"\0", 5)
            self.parsed = message[name_end + 1 : message.index(b"\0", name_end + 1)]
        elif kind == b"Q":
            self.parsed = message[5:-1]
        if kind in (b"E", b"Q"):
            self.started += 1
            self.wire.texts.append(self.parsed.decode(errors="replace"))

    def _flush(self) -> None:
        """Make the server say what it has to say, as a Sync would, without ending the pipeline."""
        self.server.sendall(b"H\0\0\0\4")

    def _harm(self, size: int = 0) -> bool:
        """Hand the connection over. ``size``: how many messages the statement is that comes next."""
        self.wire.stopped = True
        if self.wire.stop is not None and self.wire.stop.when == "part":
            half = len(self.queue[0]) // 2
            self.server.sendall(self.queue[0][:half])
            self.queue[0] = self.queue[0][half:]

        def advance() -> None:
            for _message in range(size):
                self._one()
            self._flush()

        assert self.wire.harm is not None
        held = Held(
            self.client,
            self.server,
            self.backend,
            unsent=lambda: b"".join(self.queue) + self.sending.rest,
            unheard=self.unheard + self.answering.rest,
            advance=advance,
        )
        if not self.wire.harm(held):
            held.cut()
            return False
        self.client.sendall(self.unheard)
        self.unheard = b""
        return self._forward()
