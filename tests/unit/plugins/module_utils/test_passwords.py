# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Verifiers and fingerprints. What servers and libpq say about them is in tests/server/test_verifiers.py."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any, List

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils import passwords
from ansible_collections.pg_access.reconcile.plugins.module_utils.passwords import (
    fingerprint,
    matches,
    md5_of,
    problem_of,
    saslprep,
    verifier_kind,
)

# RFC 7677, section 3: the password "pencil".
SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
STORED = "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
SERVER = "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
AUTH_MESSAGE = (
    b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)
SERVER_SIGNATURE = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

MD5 = "md5" + "0123456789abcdef" * 2


def scram(count: str = "4096", salt: str = SALT, stored: str = STORED, server: str = SERVER) -> str:
    return f"SCRAM-SHA-256${count}:{salt}${stored}:{server}"


def scram_of(password: bytes, count: int = 10, salt: bytes = b"salt") -> str:
    """A verifier, computed as RFC 5802 writes it down."""
    salted = block = hmac.new(password, salt + b"\0\0\0\1", hashlib.sha256).digest()
    for _round in range(count - 1):
        block = hmac.new(password, block, hashlib.sha256).digest()
        salted = bytes(left ^ right for left, right in zip(salted, block))
    client = hmac.new(salted, b"Client Key", hashlib.sha256).digest()
    texts = [
        base64.b64encode(part).decode("ascii")
        for part in (salt, hashlib.sha256(client).digest(), hmac.new(salted, b"Server Key", hashlib.sha256).digest())
    ]
    return scram(str(count), *texts)


def without_md5(*args: Any, **kwargs: Any) -> Any:
    raise ValueError("disabled for FIPS")


# --- which texts are verifiers ---


LONGEST = scram(count="0" * (512 - len(scram())) + "4096")


@pytest.mark.parametrize(
    "text",
    [
        scram(),
        scram(count="1"),
        scram(count="+1"),
        scram(count=" \t\n\v\f\r1"),
        scram(count="010"),
        scram(count="0"),
        scram(count="-1"),
        scram(count="4294967297"),
        scram(count="9223372036854775807"),
        scram(salt="QQ=="),
        scram(salt="QR=="),
        scram(salt="AA=A"),
        scram(salt="AA==AAAA"),
        scram(stored=STORED[:-2] + "Z="),
        LONGEST,
    ],
)
def test_scram_verifiers(text: str) -> None:
    assert verifier_kind(text) == "scram-sha-256"


def test_md5_verifier() -> None:
    assert verifier_kind(MD5) == "md5"


NO_SCRAM = [
    scram(count=""),
    scram(count="+"),
    scram(count="--1"),
    scram(count="1 "),
    scram(count="0x10"),
    scram(count="1_0"),
    scram(count="\u0661"),
    scram(count="\u00a01"),
    scram(count="\x1c1"),
    scram(count=":4096"),
    scram(count="9223372036854775808"),
    scram(count="-9223372036854775809"),
    scram(count="1" * 5000),
    scram(salt=""),
    scram(salt="AAA"),
    scram(salt="A==="),
    scram(salt="===="),
    scram(salt="AA-_"),
    scram(salt="AAA\u0410"),
    scram(salt="$" + SALT),
    scram(salt=":" + SALT),
    scram(stored=STORED[:-1]),
    scram(stored=STORED[4:]),
    scram(stored="AAAA" + STORED),
    scram(stored=":" + STORED),
    scram(server=":" + SERVER),
    scram(server=SERVER + ":"),
    scram(server=SERVER + "$"),
    scram(server=SERVER + "AAAA"),
    scram(server=""),
    scram().lower(),
    scram().replace("SCRAM", "Scram"),
    "SCRAM-SHA-256$",
    "SCRAM-SHA-256$4096",
    "SCRAM-SHA-256$4096:" + SALT,
    "scram-sha-256$and something else",
    "$" + scram(),
]
NO_MD5 = [MD5.upper(), "MD5" + MD5[3:], "Md5" + "F" * 32, MD5[:-1] + "A"]
PLAIN = [
    "s3cret",
    " ",
    " leading and trailing ",
    "md5",
    MD5[:-1],
    MD5 + "0",
    "md5" + "g" * 32,
    "x" + MD5,
    "SCRAM-SHA-256",
    scram().replace("256", "512"),
    "x" + scram(),
    "\u017fCRAM-SHA-256$",
    "p" * 1000,
    "p\u00e4\u00df \U0001f600",
    "\u202e",
    "%s {{ x }} $tag$ '\"\\\n\t",
]


@pytest.mark.parametrize("text", NO_SCRAM + NO_MD5)
def test_lookalikes(text: str) -> None:
    assert verifier_kind(text) is None
    assert problem_of(text, "plain", "app") is None
    assert "looks like a verifier" in (problem_of(text, "auto", "app") or "")
    assert "no verifier" in (problem_of(text, "verifier", "app") or "")


@pytest.mark.parametrize("text", PLAIN)
def test_plain_passwords(text: str) -> None:
    assert verifier_kind(text) is None
    assert problem_of(text, "plain", "app") is None
    assert problem_of(text, "auto", "app") is None
    assert "no verifier" in (problem_of(text, "verifier", "app") or "")


@pytest.mark.parametrize(
    "around", [" {}", "{} ", "{}\n", "\r\n{}", "\t{}", "{}\u00a0", "\ufeff{}", "\ufeff{}\n", "{}\u200b"]
)
@pytest.mark.parametrize("verifier", [scram(), MD5])
@pytest.mark.parametrize("format", ["auto", "verifier"])
def test_white_space_around_a_verifier(verifier: str, around: str, format: str) -> None:  # noqa: A002
    text = around.format(verifier)
    assert verifier_kind(text) is None
    assert "white space" in (problem_of(text, format, "app") or "")
    assert problem_of(text, "plain", "app") is None


def test_the_longest_verifier() -> None:
    longer = LONGEST.replace("$0", "$00", 1)
    assert len(LONGEST) == 512 and verifier_kind(longer) is None
    for format in ("auto", "verifier"):  # noqa: A001
        assert problem_of(LONGEST, format, "app") is None
        assert "longer than 512 bytes" in (problem_of(longer, format, "app") or "")


# --- what else is wrong with a declared password ---


@pytest.mark.parametrize("format", ["auto", "plain", "verifier"])
@pytest.mark.parametrize(
    ("text", "words"),
    [("", "empty"), ("a\0b", "NUL"), (scram() + "\0", "NUL"), ("a\ud800", "Unicode"), ("\udcff", "Unicode")],
)
def test_what_no_format_takes(text: str, words: str, format: str) -> None:  # noqa: A002
    assert words in (problem_of(text, format, "app") or "")


@pytest.mark.parametrize("count", ["0", "-1", "-4096", "10000001", "4294967297", "9223372036854775807"])
def test_iterations_out_of_range(count: str) -> None:
    for format in ("auto", "verifier"):  # noqa: A001
        assert "iterations" in (problem_of(scram(count), format, "app") or "")
    assert problem_of(scram(count), "plain", "app") is None


def test_the_verifier_of_an_empty_password() -> None:
    of_app = "md5" + hashlib.md5(b"app", usedforsecurity=False).hexdigest()
    for format in ("auto", "verifier"):  # noqa: A001
        assert "empty" in (problem_of(scram_of(b""), format, "app") or "")
        assert problem_of(scram_of(b" "), format, "app") is None
        assert "empty" in (problem_of(of_app, format, "app") or "")
        assert problem_of(of_app, format, "other") is None
    # The server finds it by the server key alone.
    text = scram_of(b"").replace(scram_of(b"").split("$")[2].split(":")[0], STORED)
    assert "empty" in (problem_of(text, "verifier", "app") or "")


def test_no_problem_shows_the_text() -> None:
    seen = set()
    for text in [*NO_SCRAM, *NO_MD5, *PLAIN, scram("0"), " " + scram(), scram_of(b""), "sec\0ret", "sec\ud800ret"]:
        problem = problem_of(text, "verifier", "app")
        if problem and text.strip():
            assert text not in problem and "sec" not in problem and STORED not in problem
            seen.add(problem)
    assert len(seen) == 6


# --- what is hashed ---


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        # RFC 4013, section 3; where it refuses, PostgreSQL takes the text as it is.
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("\u0007", "\u0007"),
        ("\u06271", "\u06271"),
        # What the others are there for.
        ("", ""),
        ("a\u00a0b\u3000c", "a b c"),
        ("a\u200bb", "a b"),
        ("\u00ad", "\u00ad"),
        ("\u00ad\u200d", "\u00ad\u200d"),
        ("\u2168\u0007", "\u2168\u0007"),
        ("\u2168\U0001f600", "\u2168\U0001f600"),
        ("\u2168\u0221", "\u2168\u0221"),
        ("\u2168\ue000", "\u2168\ue000"),
        ("\u2168\u200e", "\u2168\u200e"),
        ("e\u0301", "\u00e9"),
        ("\u06271\u0628", "\u06271\u0628"),
        ("\u0627\u2160\u0628", "\u0627\u2160\u0628"),
        ("\u0627 \u00ad\u0628", "\u0627 \u0628"),
        ("\ufefb", "\u0644\u0627"),
        # Refused before the normalisation: the digit with a full stop is younger than Unicode 3.2, "0." is not.
        ("\U0001f100", "\U0001f100"),
        ("a\u0340", "a\u0340"),
        ("\u1100\u1161\u11a7", "\u1100\u1161\u11a7"),
        ("\u1100\u1161", "\uac00"),
    ],
)
def test_saslprep(text: str, prepared: str) -> None:
    assert saslprep(text) == prepared.encode("utf-8")


def test_the_example_of_the_rfc() -> None:
    assert matches("pencil", scram(), "anybody") is True
    assert matches("Pencil", scram(), "anybody") is False
    signature = hmac.new(base64.b64decode(SERVER), AUTH_MESSAGE, hashlib.sha256).digest()
    assert base64.b64encode(signature).decode("ascii") == SERVER_SIGNATURE


@pytest.mark.parametrize("count", [1, 2, 4096, 5000])
@pytest.mark.parametrize("salt", [b"s", b"0123456789abcdef", b"x" * 64])
def test_its_own_salt_and_iterations(count: int, salt: bytes) -> None:
    assert matches("IX\u00e9", scram_of("IX\u00e9".encode(), count, salt), "app") is True
    assert matches("\u2168e\u0301", scram_of("IX\u00e9".encode(), count, salt), "app") is True
    assert matches("ix\u00e9", scram_of("IX\u00e9".encode(), count, salt), "app") is False


def test_both_keys_must_match() -> None:
    assert matches("pencil", scram(stored=SERVER), "app") is False
    assert matches("pencil", scram(server=STORED), "app") is False


def test_md5_contains_the_role() -> None:
    stored = "md5" + hashlib.md5(b"s3cretapp", usedforsecurity=False).hexdigest()
    assert md5_of("s3cret", "app") == stored
    assert matches("s3cret", stored, "app") is True
    assert matches("s3cret", stored, "ap") is False
    assert matches("S3cret", stored, "app") is False
    # MD5 knows no SASLprep.
    assert matches("I\u00adX", md5_of("IX", "app") or "", "app") is False
    assert matches("p\u00e4ss", md5_of("p\u00e4ss", "z\u00f6e") or "", "z\u00f6e") is True


@pytest.mark.parametrize(
    "verifier", ["", "s3cret", scram("0"), scram("10000001"), scram(salt=""), MD5.upper(), scram() + "\n"]
)
def test_what_cannot_be_told(verifier: str) -> None:
    assert matches("s3cret", verifier, "app") is None


def test_a_host_without_md5(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashlib, "md5", without_md5)
    assert md5_of("s3cret", "app") is None
    assert matches("s3cret", MD5, "app") is None
    assert problem_of(MD5, "auto", "app") is None
    assert matches("pencil", scram(), "app") is True
    monkeypatch.delattr(hashlib, "md5")
    assert matches("s3cret", MD5, "app") is None


def test_a_host_that_refuses_weak_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", without_md5)
    assert matches("pencil", scram(), "app") is None
    assert problem_of(scram(), "auto", "app") is None


def test_a_repr_shows_no_key() -> None:
    parsed = passwords._parse(scram())
    assert repr(parsed) == "_Scram(iterations=4096)"


# --- fingerprints ---


def _fingerprint(**changed: Any) -> bytes:
    key: bytes = changed.pop("key", b"k" * 32)
    arguments = {
        "system_identifier": "7000000000000000000",
        "oid": 16384,
        "role": "app",
        "encryption": "scram-sha-256",
        "password": "s3cret",
        **changed,
    }
    return fingerprint(key, **arguments)


def test_a_fingerprint_is_what_it_always_was() -> None:
    """Records are kept for years: a change of the format is a new version, which sends every password again."""
    parts: List[bytes] = [b"1", b"7000000000000000000", b"16384", b"app", b"scram-sha-256", b"s3cret"]
    message = b"".join(bytes([0, 0, 0, len(part)]) + part for part in parts)
    assert _fingerprint() == hmac.new(b"k" * 32, message, hashlib.sha256).digest()
    assert _fingerprint().hex() == "c15dfdecbce57c23e70ca6b1ced804318e6b1fbab0f97672c07fc612978a56f1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key", b"k" * 31 + b"l"),
        ("system_identifier", ""),
        ("system_identifier", "7000000000000000001"),
        ("oid", 16385),
        ("role", "App"),
        ("encryption", "server"),
        ("password", "s3cret "),
        ("password", "s\u00e9cret"),
    ],
)
def test_every_part_counts(name: str, value: Any) -> None:
    assert _fingerprint(**{name: value}) != _fingerprint()
    assert len(_fingerprint(**{name: value})) == 32


def test_parts_do_not_run_into_each_other() -> None:
    assert _fingerprint(role="ap", encryption="pserver") != _fingerprint(role="app", encryption="server")
    assert _fingerprint(system_identifier="1", oid=23) != _fingerprint(system_identifier="12", oid=3)
