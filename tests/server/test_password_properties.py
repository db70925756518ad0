# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A property of passwords: whatever text it is, one can log in with it, and the next run has nothing to do.

What SASLprep does to it, module, server and client library have to agree on: spaces that are mapped, characters that
vanish, forms that are composed, and what is prohibited, unassigned in Unicode 3.2 or against the rule for text that
runs from right to left, where the raw bytes are the password.
"""

from __future__ import annotations

import re
import unicodedata

from harness import Cluster, Database, Runner
from hypothesis import assume, given, note
from hypothesis import strategies as st
from password_support import K, sent
from test_properties import examples

#: Characters on which SASLprep decides something.
EDGES = (
    "\u00a0\u1680\u2000\u2003\u200b\u202f\u205f\u3000"  # spaces, mapped to a space
    "\u00ad\u034f\u1806\u180b\u200c\u200d\u2060\ufe00\ufe0f\ufeff"  # mapped to nothing
    "\u00aa\u2168\uff21\ufb01\u00bd\u2460\u212b\u1e9b\u0323"  # NFKC
    "e\u0301\u0344\u1100\u1161\u11a8\uac00"  # combining, Hangul
    "\u0627\u0628\u05d0\u0661\u06f1\u200e\u200f\u202e"  # right to left
    "\u0001\u007f\u0080\u009f\u2028\u06dd\u070f"  # control
    + "\ue000\U000f0000\ufdd0\ufffe\uffff\U0001ffff"  # private use, no characters
    "\ufff9\ufffd\u2ff0\u0340\U000e0001\U000e0041"  # no plain text
    "\u0221\u0234\u1d79\u20b9\u0560\U0001f600\U0001f9d1\u1f100"  # unassigned in Unicode 3.2
    "\u0041\u00df\u0130\u017f\u03c2'\"\\ \t\n%${}"
)

CHARACTERS = st.one_of(
    st.sampled_from(EDGES),
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    st.characters(max_codepoint=127, exclude_characters="\0"),
)

PASSWORDS = st.text(CHARACTERS, min_size=1, max_size=12)


def looks_like_a_verifier(text: str) -> bool:
    """The validator refuses these unless they are verifiers; they have tests of their own."""
    bare = text.strip()
    return bool(re.match(r"(?i)md5[0-9a-f]{32}$|scram-sha-256\$", bare))


def describe(text: str) -> str:
    return " ".join(f"U+{ord(character):04X} {unicodedata.name(character, '?')}" for character in text)


@given(passwords=st.lists(PASSWORDS, min_size=1, max_size=12))
@examples()
def test_any_text_logs_in(server: Cluster, runner: Runner, passwords: list[str]) -> None:
    assume(not any(looks_like_a_verifier(text) for text in passwords))
    db = Database(server, runner)
    try:
        manifest = {
            "roles": [{"name": f"r{number}", "password": password} for number, password in enumerate(passwords)]
        }
        result = db.reconcile(manifest, **K)
        assert not result.failed, result
        assert len(sent(result)) == len(passwords)
        for number, password in enumerate(passwords):
            note(describe(password))
            assert db.logs_in(f"r{number}", password), describe(password)
        for how in ("on_change", "on_drift"):
            again = db.reconcile(manifest, update_password=how, **K)
            assert again.sql == [], [describe(password) for password in passwords]
    finally:
        db.close()


@given(passwords=st.lists(PASSWORDS, min_size=1, max_size=12))
@examples(0.4)
def test_the_server_hashes_it_alike(server: Cluster, runner: Runner, passwords: list[str]) -> None:
    """What the module would send hashed, and what the server hashes: each counts as the other's password."""
    assume(not any(looks_like_a_verifier(text) for text in passwords))
    db = Database(server, runner)
    try:
        roles = [{"name": f"r{number}", "password": password} for number, password in enumerate(passwords)]
        hashed_there = {"roles": [{**role, "password_encryption": "server"} for role in roles]}
        result = db.reconcile(hashed_there, **K)
        assert not result.failed, result
        for number, password in enumerate(passwords):
            assert db.logs_in(f"r{number}", password), describe(password)
        for manifest in (hashed_there, {"roles": roles}):
            again = db.reconcile(manifest, update_password="on_drift", **K)
            assert again.sql == [], [describe(password) for password in passwords]
    finally:
        db.close()


@given(left=PASSWORDS, right=PASSWORDS)
@examples(0.6)
def test_another_text_is_a_change(server: Cluster, runner: Runner, left: str, right: str) -> None:
    """A run with another password sends it, and then only that one gets in (unless SASLprep makes them the same)."""
    assume(left != right and not looks_like_a_verifier(left) and not looks_like_a_verifier(right))
    db = Database(server, runner)
    try:
        for password in (left, right):
            result = db.reconcile({"roles": [{"name": "r", "password": password}]}, **K)
            assert not result.failed, result
            assert len(sent(result)) == 1
        assert db.logs_in("r", right), describe(right)
        if left.isascii() and right.isascii():
            assert not db.logs_in("r", left), (left, right)
    finally:
        db.close()
