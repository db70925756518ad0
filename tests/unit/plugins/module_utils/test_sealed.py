# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A statement with a secret inside a block: only who knows the transaction's key can read it."""

from __future__ import annotations

import hashlib
import re
from typing import Set

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.sealed import KEY_SETTING, PRELUDE, seal

KEY = "0123456789abcdef" * 4
SECRET = "ALTER ROLE \"app\" PASSWORD 'hush größe'"


def opened(block: str, key: str) -> bytes:
    """What the block's own loop makes of its bytes."""
    match = re.search(r"sealed bytea := '\\x([0-9a-f]*)'", block)
    number = re.search(r"int4send\((\d+)\)", block)
    assert match
    assert number
    sealed = bytes.fromhex(match.group(1))
    pad = b""
    for part in range(len(sealed) // 32 + 1):
        counters = int(number.group(1)).to_bytes(4, "big") + part.to_bytes(4, "big")
        pad += hashlib.sha256(bytes.fromhex(key) + counters).digest()
    return bytes(left ^ right for left, right in zip(sealed, pad))


@pytest.mark.parametrize("length", [1, 31, 32, 33, 63, 64, 65, 1000])
def test_the_key_opens_what_it_sealed_whatever_its_length(length: int) -> None:
    assert opened(seal(KEY, 0, "x" * length, "NULL"), KEY) == b"x" * length


def test_a_sealed_statement_shows_nothing_of_itself() -> None:
    block = seal(KEY, 3, SECRET, 'ALTER ROLE "app"')
    assert opened(block, KEY).decode() == SECRET
    for part in ("hush", b"hush".hex(), "PASSWORD", SECRET.encode().hex()[:16], KEY):
        assert part not in block
    assert opened(block, KEY[::-1]) != SECRET.encode()


def test_no_two_blocks_of_a_transaction_share_a_pad() -> None:
    blocks: Set[str] = {str(re.search(r"\\x([0-9a-f]+)", seal(KEY, number, "x" * 64, "NULL"))) for number in range(3)}
    assert len(blocks) == 3
    sealed = [bytes.fromhex(re.findall(r"\\x([0-9a-f]+)", seal(KEY, n, "x" * 64, "NULL"))[0]) for n in (0, 1)]
    assert sealed[0][:32] != sealed[0][32:]
    assert not {sealed[0][:32], sealed[0][32:]} & {sealed[1][:32], sealed[1][32:]}


def test_the_locking_statement_runs_first_and_is_readable() -> None:
    block = seal(KEY, 0, SECRET, 'ALTER ROLE "app"')
    assert re.search(r'BEGIN\s+ALTER ROLE "app";\s+FOR', block)


@pytest.mark.parametrize("name", ["$sealed$", "$sealed_$ $sealed$", "{quote}", "a'b\\"])
def test_no_name_of_a_role_ends_the_block(name: str) -> None:
    first = f'ALTER ROLE "{name}"'
    block = seal(KEY, 0, SECRET, first)
    quote = block.split()[1]
    assert re.fullmatch(r"\$sealed_*\$", quote)
    assert block.count(quote) == 2
    assert block.endswith(f"END {quote}")
    assert f"{first};" in block


def test_an_error_inside_is_raised_anew_without_its_context() -> None:
    block = seal(KEY, 0, SECRET, "NULL")
    assert "EXCEPTION WHEN OTHERS OR QUERY_CANCELED" in block
    assert "RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = hint" in block
    assert "PG_EXCEPTION_CONTEXT" not in block


def test_the_key_is_the_servers_own_and_lasts_as_long_as_the_transaction() -> None:
    assert re.search(rf"SELECT set_config\('{KEY_SETTING}',[^;]*gen_random_uuid\(\).*?'hex'\), true\)", PRELUDE, re.S)
    assert f"current_setting('{KEY_SETTING}')" in seal(KEY, 0, SECRET, "NULL")
    # Nothing outlives the transaction.
    assert PRELUDE.count("set_config(") == len(re.findall(r"set_config\(.*?, true\)", PRELUDE, re.S)) > 1
