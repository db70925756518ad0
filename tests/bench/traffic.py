# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes over the wire between a client and the server: statements, and how often the client waits for an answer."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

#: Requests that come before the real start, and are answered by a single byte: for TLS and for GSSAPI.
_ENCRYPTION = frozenset({80877103, 80877104})


@dataclass(frozen=True)
class Statement:
    """A statement that was executed, with the values that were bound to it as texts."""

    text: str
    values: tuple[str | None, ...] = ()

    @property
    def literal(self) -> str:
        """The statement with its values in their places."""

        def literal(match: re.Match[str]) -> str:
            value = self.values[int(match[1]) - 1]
            return "NULL" if value is None else "'" + value.replace("'", "''") + "'"

        return re.sub(r"\$(\d+)", literal, self.text) if self.values else self.text


@dataclass
class Traffic:
    """Reads both directions of one connection.

    A round trip is an answer that the client waits for: to a request for encryption, at each step of the login, to each
    simple query, and to each Sync, which is the end of a pipeline. ``trips`` has the statements of each one after the
    login.
    """

    statements: list[Statement] = field(default_factory=list)
    trips: list[list[Statement]] = field(default_factory=list)
    #: Round trips until the server is ready for the first statement.
    login: int = 0
    _started: bool = False
    _ready: bool = False
    _raw_answers: int = 0
    _sending: bytes = b""
    _answering: bytes = b""
    _parsed: dict[bytes, str] = field(default_factory=dict)
    _bound: Statement | None = None
    _open: list[Statement] = field(default_factory=list)

    @property
    def round_trips(self) -> int:
        return self.login + len(self.trips)

    def sent(self, data: bytes) -> None:
        """The client said this."""
        data, position = self._sending + data, 0
        while True:
            head = 1 if self._started else 0
            if len(data) < position + head + 4:
                break
            end = position + head + int(struct.unpack_from("!I", data, position + head)[0])
            if len(data) < end:
                break
            if self._started:
                self._request(data[position : position + 1], data[position + 5 : end])
            else:
                self.login += 1
                if struct.unpack_from("!I", data, position + 4)[0] in _ENCRYPTION:
                    self._raw_answers += 1
                else:
                    self._started = True
            position = end
        self._sending = data[position:]

    def answered(self, data: bytes) -> None:
        """The server said this."""
        position = min(self._raw_answers, len(data))
        self._raw_answers -= position
        data = self._answering + data
        while len(data) >= position + 5:
            end = position + 1 + int(struct.unpack_from("!I", data, position + 1)[0])
            if len(data) < end:
                break
            if data[position : position + 1] == b"Z":
                if self._ready:
                    self.trips.append(self._open)
                    self._open = []
                self._ready = True
            position = end
        self._answering = data[position:]

    def _request(self, kind: bytes, body: bytes) -> None:
        if kind == b"p":
            self.login += 1
        elif kind == b"Q":
            self._note(Statement(body[:-1].decode(errors="replace")))
        elif kind == b"P":
            name, text, _rest = body.split(b"\0", 2)
            self._parsed[name] = text.decode(errors="replace")
        elif kind == b"B":
            self._bound = self._bind(body)
        elif kind == b"E" and self._bound is not None:
            self._note(self._bound)

    def _bind(self, body: bytes) -> Statement:
        _portal, name, rest = body.split(b"\0", 2)
        formats = struct.unpack_from("!H", rest)[0]
        position = 2 + 2 * formats
        (count,) = struct.unpack_from("!H", rest, position)
        position += 2
        values: list[str | None] = []
        for _number in range(count):
            (size,) = struct.unpack_from("!i", rest, position)
            position += 4
            values.append(None if size < 0 else rest[position : position + size].decode(errors="replace"))
            position += max(size, 0)
        return Statement(self._parsed.get(name, ""), tuple(values))

    def _note(self, statement: Statement) -> None:
        self.statements.append(statement)
        self._open.append(statement)
