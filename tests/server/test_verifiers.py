# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``passwords.py`` claims about verifiers and SASLprep, compared with servers and with libpq."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import stringprep
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from harness import Cluster
from hypothesis import assume, given
from hypothesis import strategies as st
from psycopg import sql
from test_properties import examples, seeded
from test_properties_units import room

passwords = room("passwords")

ROLE = 'verified o\'r "not" é'
PASSWORD = "pénçil Ⅸ"


@contextmanager
def a_role(server: Cluster) -> Iterator[None]:
    """A role that can log in. MD5 hashes fast, and what is hashed is only told from what is not."""
    name = sql.Identifier(ROLE)
    connection = server.connection
    connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
    connection.execute("SET password_encryption = 'md5'")
    try:
        yield
    finally:
        connection.execute("RESET password_encryption")
        connection.execute(sql.SQL("DROP ROLE {}").format(name))


def store(server: Cluster, text: str) -> str | None:
    """What the server has in ``rolpassword`` after it was given the text."""
    server.connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(ROLE), sql.Literal(text)))
    row = server.connection.execute("SELECT rolpassword FROM pg_authid WHERE rolname = %s", [ROLE]).fetchone()
    assert row is not None
    stored: str | None = row[0]
    return stored


def encode(part: bytes) -> str:
    return base64.b64encode(part).decode("ascii")


def keys_of(password: str, salt: bytes, count: int) -> tuple[bytes, bytes]:
    salted = hashlib.pbkdf2_hmac("sha256", passwords.saslprep(password), salt, count)
    client = hmac.new(salted, b"Client Key", hashlib.sha256).digest()
    return hashlib.sha256(client).digest(), hmac.new(salted, b"Server Key", hashlib.sha256).digest()


STORED, SERVER = map(encode, keys_of(PASSWORD, b"0123456789abcdef", 1))
SALT = encode(b"0123456789abcdef")


def scram(count: str = "1", salt: str = SALT, stored: str = STORED, server: str = SERVER) -> str:
    return f"SCRAM-SHA-256${count}:{salt}${stored}:{server}"


MD5 = "md5" + "0123456789abcdef" * 2

#: Texts near a verifier, each odd in its own way.
NEAR = [
    *(scram(count) for count in ("4096", "+1", "-1", "0", "001", " 1", "\t\n\v\f\r 1", "1 ", "\x1c1", "\u00a01", "", "+", "--1")),
    *(scram(count) for count in ("0x1", "1_0", "1.", "1e1", "\u0661", ":1", "::1", "$1", "4294967297", "-9223372036854775808")),
    *(scram(count) for count in ("9223372036854775807", "9223372036854775808", "-9223372036854775809", "9" * 100)),
    *(scram(salt=salt) for salt in ("", "A", "AA", "AAA", "AAAA", "A===", "AA==", "AA=", "AAA=", "AA=A", "====", "=AAA", "A=AA")),
    *(scram(salt=salt) for salt in ("AA==AAAA", "AAA=AAAA", "AA==A===", "AAAA====", "QR==", "AA-_", "AA A", "AA\nA", "AAA~", "AAAé")),
    *(scram(salt=salt) for salt in ("$AAAA", "$$AAAA", ":AAAA", "AAAA$", "AAAA:AAAA")),
    *(scram(stored=key) for key in ("", ":", STORED[:-1], STORED[:-1] + "A", STORED[4:], "AAAA" + STORED, "$" + STORED)),
    *(scram(stored=key) for key in (":" + STORED, STORED + ":", STORED[:-2] + "B=", STORED[:40] + "AA==", STORED + "AAAA")),
    *(scram(server=key) for key in ("", ":", SERVER[:-1], SERVER[:-1] + "A", SERVER[4:], "AAAA" + SERVER, "$" + SERVER)),
    *(scram(server=key) for key in (":" + SERVER, SERVER + ":", SERVER + "$", SERVER + " ", SERVER + "\n", SERVER + "AAAA")),
    *(around.format(scram()) for around in (" {}", "\n{}", "\ufeff{}", "${}", "$${}", ":{}", "{}\u00a0", "x{}")),
    *(around.format(MD5) for around in ("{}", " {}", "{}\n", "${}", "{}0", "x{}")),
    *(scram().replace("SCRAM-SHA-256", name) for name in ("scram-sha-256", "SCRAM-SHA-1", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-512", "")),
    *(scram("0" * (length - len(scram())) + "1") for length in (511, 512, 513, 514)),
    *(scram(salt="A" * (length - len(scram(salt="")))) for length in (508, 509, 510, 511, 512, 513, 514, 515, 516, 4000)),
    MD5.upper(), "MD5" + MD5[3:], MD5[:-1], MD5[:-1] + "g", MD5[:-1] + "A", MD5[:-1] + "é", "md5", "SCRAM-SHA-256", "SCRAM-SHA-256$",
    "SCRAM-SHA-256$1", "SCRAM-SHA-256$1:", "SCRAM-SHA-256$1:AAAA", "SCRAM-SHA-256$1:AAAA$", "$", ":", "$:$:", "pencil",
]  # fmt: skip


def split_at(text: str, delimiter: str, version: int) -> tuple[str, str]:
    """A field and the rest, as strtok (up to 17) and strsep (from 18 on) do."""
    field, _delimiter, rest = (text.lstrip(delimiter) if version < 18 else text).partition(delimiter)
    return field, rest


def is_stored(text: str, version: int) -> bool:
    """What one version takes as a verifier: what all take, read with its own way to find the fields."""
    if passwords.verifier_kind(text) == "md5":
        return True
    scheme, rest = split_at(text, "$", version)
    count, rest = split_at(rest, ":", version)
    salt, rest = split_at(rest, "$", version)
    stored, server = split_at(rest, ":", version)
    if version >= 18:
        count, salt = count or "0", salt or "AAAA"
    return scheme == "SCRAM-SHA-256" and passwords._parse(scram(count, salt, stored, server)) is not None


def compare(server: Cluster, text: str) -> bool:
    """Whether the server stores the text, after both were asked."""
    kind = passwords.verifier_kind(text)
    if server.version >= 18 and is_stored(text, 18) and len(text) > 512:
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            store(server, text)
        assert kind is None
        return False
    stored = store(server, text) == text
    assert stored == is_stored(text, server.version), ascii(text)
    assert stored or kind is None, ascii(text)
    if stored and kind is None:
        # To some versions only, and no plain password to the module.
        assert passwords.problem_of(text, "auto", ROLE)
    return stored


def test_near_misses_are_what_the_server_says(server: Cluster) -> None:
    with a_role(server):
        stored = [text for text in NEAR if compare(server, text)]
    agreed = {text for text in NEAR if passwords.verifier_kind(text)}
    assert len(agreed) > 20 and len(NEAR) - len(agreed) > 90
    # Each version has a few of its own.
    assert agreed < set(stored)


def spins(text: str) -> bool:
    """Whether the server would count for long: it looks whether the password is empty."""
    digits = "".join(letter for letter in text.lstrip("$")[14:].lstrip(":").partition(":")[0] if letter in "0123456789")
    return bool(digits) and min(int(digits) % 2**32, -int(digits) % 2**32) > 20000


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A verifier after a few accidents."""
    text = draw(st.sampled_from([scram(), scram("4096"), scram(salt="AA=="), scram(salt="AAA="), MD5]))
    alphabet = st.sampled_from("$:=+-/ \t\n\v0123456789aAfFgGzZ_é\u00a0")
    for _accident in range(draw(st.integers(1, 3))):
        delimiters = [position for position, letter in enumerate(text) if letter in "$:="]
        place = draw(st.one_of(st.integers(0, len(text)), st.sampled_from(delimiters or [0])))
        kind = draw(st.sampled_from(["insert", "replace", "delete", "double", "swap", "case", "move"]))
        letter = draw(alphabet)
        before, at, after = text[:place], text[place : place + 1], text[place + 1 :]
        text = {
            "insert": before + letter + at + after,
            "replace": before + letter + after,
            "delete": before + after,
            "double": before + at + at + after,
            "swap": before + after[:1] + at + after[1:],
            "case": before + at.swapcase() + after,
            "move": after + before + at,
        }[kind]
    return text


def test_mutated_verifiers_are_what_the_server_says(server: Cluster) -> None:
    @seeded(server.version)
    @examples(30)
    @given(mutated())
    def check(text: str) -> None:
        assume(text and not spins(text))
        compare(server, text)

    with a_role(server):
        check()


def test_the_verifier_of_an_empty_password_is_what_the_server_says(server: Cluster) -> None:
    stored, checked = map(encode, keys_of("", b"0123456789abcdef", 10))
    with a_role(server):
        for text, empty in [
            (scram("10", stored=stored, server=checked), True),
            (scram("10", server=checked), True),
            (scram("10", stored=stored), False),
            (scram("11", stored=stored, server=checked), False),
            (passwords.md5_of("", ROLE), True),
            (passwords.md5_of("", "somebody else"), False),
        ]:
            assert (store(server, text) is None) is empty
            assert bool(passwords.problem_of(text, "verifier", ROLE)) is empty


def test_odd_verifiers_log_in(server: Cluster) -> None:
    """What goes through unchanged is of use."""
    salts = {salt: passwords._base64_decode(salt) for salt in (SALT, "AA==", "QR==", "AA=A", "AA==AAAA")}
    address = {**server.address("postgres"), "host": "127.0.0.1", "user": ROLE, "require_auth": "scram-sha-256"}
    if psycopg.pq.version() < 160000:
        del address["require_auth"]
    with a_role(server):
        for count in ("1", "4096", "+4096", " 4096", "04096"):
            for salt, decoded in salts.items():
                text = scram(count, salt, *map(encode, keys_of(PASSWORD, decoded, int(count))))
                assert passwords.problem_of(text, "verifier", ROLE) is None
                assert store(server, text) == text
                psycopg.connect(**address, password=PASSWORD).close()
                with pytest.raises(psycopg.OperationalError):
                    psycopg.connect(**address, password="wrong")


# --- SASLprep ---

#: The tables of RFC 3454.
TABLES: list[Any] = [getattr(stringprep, name) for name in dir(stringprep) if name.startswith("in_table_")]


@functools.cache
def remarkable() -> list[str]:
    """Where these tables begin and end, and whatever a normalisation changes."""
    found: list[str] = []
    before: Any = None
    # Above, nothing is assigned but tags and private use.
    for code in [
        *range(1, 0xD800),
        *range(0xE000, 0x30010),
        *range(0xDFFF0, 0xE0200),
        *range(0xEFFF0, 0xF0010),
        0x10FFFF,
    ]:
        letter = chr(code)
        classes = [bool(table(letter)) for table in TABLES]
        if classes != before:
            found += [letter] if code in (1, 0xE000) else [chr(code - 1), letter]
        elif not 0xAC00 < code < 0xD7A3 and unicodedata.normalize("NFKC", letter) != letter:
            found.append(letter)
        before = classes
    return found


LETTERS = st.one_of(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    st.sampled_from("aZ1 \u00a0\u00ad\u200b\u200d\u3000\u0301\u0323\u0340\u05d0\u0627\u0661\u1100\u1161\u11a7\u11a8\u2168\ufeff\ufdfa"),
    st.characters(max_codepoint=0x7FF, exclude_characters="\0"),
)  # fmt: skip


@pytest.mark.versions(min=16)
def test_libpq_hashes_the_same_bytes(server: Cluster) -> None:
    """libpq takes the number of iterations from the session, so this is fast."""
    with psycopg.connect(autocommit=True, **server.address("postgres")) as connection:
        connection.execute("SET scram_iterations = 1")

        def check(text: str) -> None:
            verifier = connection.pgconn.encrypt_password(text.encode("utf-8"), b"r", b"scram-sha-256").decode("ascii")
            assert passwords.matches(text, verifier, "r"), ascii(text)

        letters = remarkable()
        assert len(letters) > 6000
        for letter in letters:
            for around in ("{}", "a{}", "\u05d0{}\u05d0"):
                check(around.format(letter))
        seeded(server.version)(examples(60)(given(st.text(LETTERS, min_size=1, max_size=12))(check)))()


@pytest.mark.parametrize("encryption", ["scram-sha-256", "md5"])
def test_the_server_hashes_the_same_bytes(server: Cluster, encryption: str) -> None:
    @seeded(server.version)
    @examples(2)
    @given(st.text(LETTERS, min_size=1, max_size=12))
    def check(text: str) -> None:
        stored = store(server, text)
        assert passwords.verifier_kind(stored) == encryption
        assert passwords.matches(text, stored, ROLE) is True
        assert passwords.matches(text + "x", stored, ROLE) is False

    with a_role(server):
        server.connection.execute(f"SET password_encryption = '{encryption}'")
        check()
