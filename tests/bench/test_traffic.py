# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Statements and round trips, as they are read off the wire."""

from __future__ import annotations

import struct

import pytest
from inspection import inspection_trips
from traffic import Statement, Traffic

STARTUP = struct.pack("!II", 8, 196608)
TLS = struct.pack("!II", 8, 80877103)


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


READY = message(b"Z", b"I")


def query(text: bytes) -> bytes:
    return message(b"Q", text + b"\0")


def parse(text: bytes, name: bytes = b"") -> bytes:
    return message(b"P", name + b"\0" + text + b"\0" + struct.pack("!H", 0))


def bind(*values: bytes | None, name: bytes = b"") -> bytes:
    bound = b"".join(
        struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value for value in values
    )
    return message(b"B", b"\0" + name + b"\0" + struct.pack("!HH", 0, len(values)) + bound + struct.pack("!H", 0))


EXECUTE, SYNC = message(b"E", b"\0" + struct.pack("!I", 0)), message(b"S")


def logged_in() -> Traffic:
    traffic = Traffic()
    traffic.sent(STARTUP)
    traffic.answered(message(b"R", struct.pack("!I", 0)) + READY)
    return traffic


def test_the_login_and_its_question_about_tls_are_round_trips() -> None:
    traffic = Traffic()
    traffic.sent(TLS)
    traffic.answered(b"N")
    traffic.sent(STARTUP)
    traffic.answered(message(b"R", struct.pack("!I", 10)))
    traffic.sent(message(b"p", b"SCRAM"))
    traffic.answered(message(b"R", struct.pack("!I", 0)) + READY)
    assert (traffic.login, traffic.round_trips, traffic.statements) == (3, 3, [])


def test_a_pipeline_is_one_round_trip_and_each_of_its_statements_counts() -> None:
    traffic = logged_in()
    traffic.sent(parse(b"SELECT 1") + bind() + EXECUTE + parse(b"SELECT 2") + bind() + EXECUTE + SYNC)
    traffic.answered(message(b"C", b"SELECT 1\0") * 2 + READY)
    traffic.sent(query(b"COMMIT"))
    traffic.answered(message(b"C", b"COMMIT\0") + READY)
    assert [[statement.text for statement in trip] for trip in traffic.trips] == [["SELECT 1", "SELECT 2"], ["COMMIT"]]
    assert traffic.round_trips == 3


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_messages_arrive_in_any_pieces(size: int) -> None:
    traffic = Traffic()
    said = TLS + STARTUP + parse(b"SELECT $1", b"p") + bind(b"it's", name=b"p") + EXECUTE + SYNC
    for start in range(0, len(said), size):
        traffic.sent(said[start : start + size])
    heard = b"N" + READY + message(b"D", b"x" * 50) + READY
    for start in range(0, len(heard), size):
        traffic.answered(heard[start : start + size])
    assert traffic.statements == [Statement("SELECT $1", ("it's",))]
    assert (traffic.login, len(traffic.trips)) == (2, 1)


def test_values_stand_in_their_places() -> None:
    values = tuple(f"v{number}" for number in range(1, 11))
    assert Statement("f($1, $10, $2)", values).literal == "f('v1', 'v10', 'v2')"
    assert Statement("$1 $2", ("it's", None)).literal == "'it''s' NULL"
    # What looks like a place in a value is none.
    assert Statement("$1 $2", ("a", "costs $1")).literal == "'a' 'costs $1'"


def trips(*texts: list[str]) -> Traffic:
    return Traffic(trips=[[Statement(text) for text in trip] for trip in texts])


def test_the_turn_and_the_plan_are_not_inspection() -> None:
    turn = ["SET LOCAL lock_timeout = '30s'", "SELECT pg_advisory_xact_lock(1, 2)"]
    read, plan = ["SELECT 1", "\nWITH x AS (SELECT 2) SELECT"], ["CREATE ROLE a", "SELECT 1"]
    assert inspection_trips(trips(["SELECT 0"], ["BEGIN"], turn, read, read, plan, read, ["COMMIT"])) == 2
    assert inspection_trips(trips(["BEGIN"], read, ["ROLLBACK"])) == 1
