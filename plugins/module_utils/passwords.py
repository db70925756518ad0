# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Verifiers and fingerprints of passwords. Nothing here ever puts a password, or a part of one, into a message.

What PostgreSQL does is named after its source files. ``tests/server/test_verifiers.py`` compares all of it with
servers and with libpq.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import stringprep
import unicodedata
from typing import Literal, Optional, Tuple

from .records import dataclass, field

#: What a text is: a verifier of one of two kinds, or a plain password.
Kind = Literal["plain", "scram-sha-256", "md5"]
PLAIN: Kind = "plain"
SCRAM: Kind = "scram-sha-256"
MD5: Kind = "md5"

#: The longest verifier that PostgreSQL 18 stores (MAX_ENCRYPTED_PASSWORD_LEN, crypt.h).
VERIFIER_BYTES = 512

#: A huge count keeps a server busy beyond cancelling, and this process too.
MOST_ITERATIONS = 10_000_000

_FINGERPRINT_VERSION = b"1"

_SCHEME = "SCRAM-SHA-256"
_KEY_BYTES = 32
_MD5 = re.compile(r"md5[0-9a-f]{32}")
# strtol: white space of the C locale, a sign, digits.
_NUMBER = re.compile(r"[ \t\n\v\f\r]*[+-]?[0-9]+")
_LONG = 2**63
_BASE64 = {
    letter: value for value, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
}
# The dollar signs in front: strtok, which 14 to 17 use, skips them and finds a verifier behind them.
_LOOKALIKE = re.compile(r"md5[0-9a-f]{32}\Z|\$*SCRAM-SHA-256\$", re.ASCII | re.IGNORECASE)
# What files and copying leave around a text, beside what str.strip() knows.
_INVISIBLE = "\ufeff\u200b\u2060"


@dataclass(frozen=True)
class _Scram:
    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)


def verifier_kind(text: str) -> Optional[Kind]:
    """``md5`` or ``scram-sha-256`` where every supported server stores the text as it is, None otherwise.

    ``get_password_type`` in crypt.c decides that. Versions differ in two points, and there the answer is None: up to
    17 a verifier may be longer than 512 bytes, which 18 refuses, and delimiters may be doubled or missing (see
    ``_parse``). A count of iterations that ``problem_of`` refuses is still that of a verifier.
    """
    if _MD5.fullmatch(text):
        return MD5
    if len(text) <= VERIFIER_BYTES and _parse(text) is not None:
        return SCRAM
    return None


def problem_of(text: str, format: str, role: str) -> Optional[str]:  # noqa: A002 (the option is called password_format)
    """What is wrong with a declared password under a ``password_format``, without a word of it, or None.

    The role's name is asked for because an MD5 verifier contains it. The verifier of an empty password is found by
    computing it, with as many iterations as the verifier says.
    """
    if not text:
        return "the password is empty"
    if "\0" in text:
        return "the password contains a NUL character"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "the password is not valid Unicode text"
    if format == "plain":
        return None
    if verifier_kind(text) is None:
        return _why_no_verifier(text, format)
    scram = _parse(text)
    if scram is not None and not 1 <= scram.iterations <= MOST_ITERATIONS:
        return f"the SCRAM verifier's number of iterations is not between 1 and {MOST_ITERATIONS:,}"
    if _is_of_empty(text, scram, role):
        return "the verifier is that of an empty password"
    return None


def may_be_taken_as_verifier(text: str) -> bool:
    """Whether some server might store the text as it is instead of hashing it."""
    return _LOOKALIKE.match(text) is not None or _parse(text) is not None


def _why_no_verifier(text: str, format: str) -> Optional[str]:  # noqa: A002
    if len(text) > VERIFIER_BYTES and _parse(text) is not None:
        return f"the SCRAM verifier is longer than {VERIFIER_BYTES} bytes, which PostgreSQL 18 does not store"
    if verifier_kind(text.strip().strip(_INVISIBLE).strip()) is not None:
        return "there is white space around the verifier"
    if format == "verifier":
        return "the text is no verifier that every PostgreSQL version would take as one"
    if _LOOKALIKE.match(text):
        return "the text looks like a verifier, but is none that every PostgreSQL version would take as one"
    return None


def _is_of_empty(verifier: str, scram: Optional[_Scram], role: str) -> bool:
    # plain_crypt_verify, by which CREATE and ALTER ROLE find it, looks at the server key alone (auth-scram.c).
    if scram is None:
        return verifier == md5_of("", role)
    keys = _keys(b"", scram)
    return keys is not None and hmac.compare_digest(keys[1], scram.server_key)


def saslprep(text: str) -> bytes:
    """The bytes of a password that server and libpq hash for SCRAM (``pg_saslprep`` in saslprep.c).

    It differs from RFC 4013: non-ASCII spaces become spaces before anything is dropped (U+200B is both); what is
    prohibited, unassigned or against the bidi rule is looked for before the normalisation, not after it; and a text
    that fails is hashed as it is. The second makes the result independent of the Unicode version.
    """
    raw = text.encode("utf-8", "surrogatepass")
    if text.isascii():
        return raw
    mapped = "".join(
        " " if stringprep.in_table_c12(letter) else letter
        for letter in text
        if stringprep.in_table_c12(letter) or not stringprep.in_table_b1(letter)
    )
    if not mapped or any(map(_is_refused, mapped)) or not _has_one_direction(mapped):
        return raw
    return unicodedata.normalize("NFKC", mapped).encode("utf-8")


def _is_refused(letter: str) -> bool:
    return (
        stringprep.in_table_a1(letter)
        or stringprep.in_table_c12(letter)
        or stringprep.in_table_c21_c22(letter)
        or stringprep.in_table_c3(letter)
        or stringprep.in_table_c4(letter)
        or stringprep.in_table_c5(letter)
        or stringprep.in_table_c6(letter)
        or stringprep.in_table_c7(letter)
        or stringprep.in_table_c8(letter)
        or stringprep.in_table_c9(letter)
    )


def _has_one_direction(text: str) -> bool:
    """RFC 3454, section 6: a text with right-to-left letters begins and ends with one and has no others."""
    if not any(map(stringprep.in_table_d1, text)):
        return True
    return (
        stringprep.in_table_d1(text[0])
        and stringprep.in_table_d1(text[-1])
        and not any(map(stringprep.in_table_d2, text))
    )


def matches(password: str, verifier: str, role: str) -> Optional[bool]:
    """Whether a plain password gives the stored verifier of that role, with its own salt and iterations.

    None where that cannot be told: it is no verifier, it has a number of iterations that nobody should compute, or
    the hash is not to be had (FIPS).
    """
    if _MD5.fullmatch(verifier):
        computed = md5_of(password, role)
        return None if computed is None else hmac.compare_digest(computed, verifier)
    scram = _parse(verifier)
    keys = None if scram is None else _keys(saslprep(password), scram)
    if scram is None or keys is None:
        return None
    return hmac.compare_digest(b"".join(keys), scram.stored_key + scram.server_key)


def md5_of(password: str, role: str) -> Optional[str]:
    """The MD5 verifier (``pg_md5_encrypt`` in md5_common.c: the name is the salt), None where there is no MD5."""
    salted = (password + role).encode("utf-8", "surrogatepass")
    try:
        # Asked for only here: hosts in FIPS mode may not have it, and SCRAM does not need it.
        return "md5" + hashlib.md5(salted, usedforsecurity=False).hexdigest()
    except (AttributeError, TypeError, ValueError):
        return None


def fingerprint(key: bytes, *, system_identifier: str, oid: int, role: str, encryption: str, password: str) -> bytes:
    """What is stored to know a declared password again: says nothing without the key, and equal passwords of two
    roles, clusters or lives of a role do not show as equal.
    """
    texts = (system_identifier, str(oid), role, encryption, password)
    parts = [_FINGERPRINT_VERSION, *(text.encode("utf-8", "surrogatepass") for text in texts)]
    # With their lengths in front, no two lists of parts give the same message.
    message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return hmac.new(key, message, hashlib.sha256).digest()


def _keys(password: bytes, scram: _Scram) -> Optional[Tuple[bytes, bytes]]:
    """StoredKey and ServerKey (RFC 5802, section 3)."""
    if not 1 <= scram.iterations <= MOST_ITERATIONS:
        return None
    try:
        salted = hashlib.pbkdf2_hmac("sha256", password, scram.salt, scram.iterations)
    except ValueError:
        return None  # FIPS modules refuse short salts and few iterations
    client_key = hmac.new(salted, b"Client Key", hashlib.sha256).digest()
    server_key = hmac.new(salted, b"Server Key", hashlib.sha256).digest()
    return hashlib.sha256(client_key).digest(), server_key


def _parse(text: str) -> Optional[_Scram]:
    """``parse_scram_secret`` in auth-scram.c, where its versions agree: SCRAM-SHA-256$COUNT:SALT$STORED:SERVER.

    Up to 17 it takes fields with strtok, which skips delimiters in front of a field; 18 takes them with strsep,
    for which these are empty fields. So a text with an empty field is one to some of them at most.
    """
    scheme, dollar, rest = text.partition("$")
    count, colon, rest = rest.partition(":")
    salt, second_dollar, rest = rest.partition("$")
    stored, second_colon, server = rest.partition(":")
    if scheme != _SCHEME or not (dollar and colon and second_dollar and second_colon):
        return None
    if not (salt and _NUMBER.fullmatch(count)):
        return None
    # Python reads no number of thousands of digits.
    if len(count) > VERIFIER_BYTES or not -_LONG <= int(count) < _LONG:
        return None
    salt_bytes, stored_key, server_key = (_base64_decode(part) for part in (salt, stored, server))
    if salt_bytes is None or stored_key is None or server_key is None:
        return None
    if len(stored_key) != _KEY_BYTES or len(server_key) != _KEY_BYTES:
        return None
    # The server keeps the count in an int and drops the upper half; nobody wants what is left then.
    return _Scram(int(count), salt_bytes, stored_key, server_key)


def _base64_decode(text: str) -> Optional[bytes]:
    """``pg_b64_decode`` in base64.c: no white space, padding is required, and unlike in Python bits after the end
    may be set and letters may follow the first ``=``, which then count for nothing.
    """
    result = bytearray()
    buffer = 0
    kept = 3
    for position, letter in enumerate(text):
        if letter == "=":
            if kept == 3:
                kept = position % 4 - 1
                if kept < 1:
                    return None
            value = 0
        elif letter in _BASE64:
            value = _BASE64[letter]
        else:
            return None
        buffer = buffer << 6 | value
        if position % 4 == 3:
            result += buffer.to_bytes(3, "big")[:kept]
            buffer = 0
    return bytes(result) if len(text) % 4 == 0 else None
