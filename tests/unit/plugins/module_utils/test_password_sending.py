# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Passwords and their records on their way to a server that is made up: what it would be sent, and what is told."""

from __future__ import annotations

import hashlib
import re
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils import password_sending, store
from ansible_collections.pg_access.reconcile.plugins.module_utils.catalog import queries
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import Change, CommentRole, Plan, SetPassword
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.passwords import (
    PasswordOptions,
    declared,
    fingerprint_of,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.execution import _about_passwords
from ansible_collections.pg_access.reconcile.plugins.module_utils.failure import Failure
from ansible_collections.pg_access.reconcile.plugins.module_utils.masking import Secrets
from ansible_collections.pg_access.reconcile.plugins.module_utils.password_sending import hidden, remember, with_key
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import Policy, manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import RoleRef, State
from ansible_collections.pg_access.reconcile.plugins.module_utils.store import (
    PasswordFacts,
    Record,
    StoreTable,
    join_comment,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.transaction import Settings
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.test_password_policy import scram
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.test_sealed import opened

psycopg = pytest.importorskip("psycopg")

HUSH = "hush-hush"
KEY = b"k" * 16
SEAL = "ab" * 32
KEYED = PasswordOptions(key=KEY)
TABLE = '"role_reconcile"."password_fingerprint"'


class Cursor:
    """Remembers what it was told to execute, or refuses it."""

    def __init__(self, connection: Connection) -> None:
        self.statusmessage: Optional[str] = None
        self._connection = connection

    def execute(self, statement: bytes, _parameters: Any = None) -> None:
        text = statement.decode()
        self._connection.sent.append(text)
        refused = self._connection.refused
        if refused is not None and refused in text:
            raise psycopg.errors.lookup("42501")("not this")
        self.statusmessage = "DONE"


class Connection:
    """What this part of the module asks of a connection."""

    def __init__(self, refused: Optional[str] = None) -> None:
        self.closed = False
        self.refused = refused
        self.sent: List[str] = []
        self.keys = 0
        self.encrypted: List[Tuple[bytes, bytes, bytes]] = []
        self.pgconn = self

    def cursor(self) -> Cursor:
        return Cursor(self)

    def add_notice_handler(self, _handler: Any) -> None:
        """The server says nothing."""

    def remove_notice_handler(self, _handler: Any) -> None:
        """The server says nothing."""

    def encrypt_password(self, password: bytes, role: bytes, algorithm: bytes) -> bytes:
        self.encrypted.append((password, role, algorithm))
        return b"SCRAM-of-" + password

    def execute(self, statement: str) -> Connection:
        assert "gen_random_uuid" in statement
        self.keys += 1
        return self

    def fetchone(self) -> Tuple[str]:
        return (SEAL,)


@pytest.fixture(autouse=True)
def _without_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def alone(_connection: Any) -> Iterator[None]:
        yield

    monkeypatch.setattr(queries, "pipelined", alone)
    monkeypatch.setattr(psycopg.Pipeline, "is_supported", lambda: False)


class Case:
    """A server with some roles, of which the manifest says something."""

    def __init__(self, *entries: Mapping[str, Any], executor: str = "postgres", **facts: Any) -> None:
        self.world = World(executor=executor)
        for entry in entries:
            self.world.ref(entry["name"])
        self.policy: Policy = manifest_to_policy({"roles": list(entries)}, Secrets())
        self.facts = PasswordFacts(**{"table": StoreTable(True, True), **facts})
        self.connection = Connection()

    @property
    def state(self) -> State:
        return replace(self.world.state, passwords=self.facts)

    def set(self, *names: str, **flags: Any) -> Plan:
        """A plan that sets these passwords, and does something else as well."""
        others = (CommentRole(self.world.ref("other"), "x", None, ""),)
        return Plan((*others, *(SetPassword(self.world.ref(name), "", **flags) for name in names)))

    def hidden(self, plan: Plan) -> Dict[str, str]:
        return dict(hidden(self.connection, plan, self.policy, self.state))  # type: ignore[arg-type]

    def remember(self, changes: Sequence[Change], options: PasswordOptions = KEYED) -> bool:
        plan = Plan(tuple(changes))
        return remember(self.connection, plan, self.policy, self.state, options)  # type: ignore[arg-type]

    def print_of(self, name: str, oid: Optional[int] = None) -> bytes:
        ref = RoleRef(self.world.oid(name) if oid is None else oid, name)
        return fingerprint_of(declared(self.policy)[name], ref, self.state, KEY)


def entry(name: str = "app", password: str = HUSH, **more: Any) -> Dict[str, Any]:
    return {"name": name, "password": password, **more}


def shown(name: str) -> str:
    return f"ALTER ROLE \"{name}\" PASSWORD '********'"


def unsealed(block: str) -> str:
    return opened(block, SEAL).decode()


# ---- the key ---------------------------------------------------------------------------------------------------------


def test_a_key_file_is_made_when_a_password_is_about_to_be_sent(tmp_path: Path) -> None:
    file = tmp_path / "key"
    expected = PasswordOptions(key_expected=True, store="comment")
    options = with_key(expected, Case(entry()).set("app"), Settings(key_file=str(file)))
    assert options == replace(expected, key=file.read_bytes(), key_expected=False)
    assert len(file.read_bytes()) == 32


def test_no_key_is_made_where_none_is_needed(tmp_path: Path) -> None:
    case, file = Case(entry()), str(tmp_path / "key")
    expected = PasswordOptions(key_expected=True)
    assert with_key(expected, Plan(), Settings(key_file=file)) is expected
    assert with_key(expected, case.set("app", clear=True), Settings(key_file=file)) is expected
    assert with_key(KEYED, case.set("app"), Settings(key_file=file)) is KEYED
    assert with_key(PasswordOptions("always"), case.set("app"), Settings()) == PasswordOptions("always")
    assert not list(tmp_path.iterdir())


def test_a_key_file_that_cannot_be_made_fails_before_the_first_statement(tmp_path: Path) -> None:
    with pytest.raises(Failure) as caught:
        with_key(
            PasswordOptions(key_expected=True),
            Case(entry()).set("app"),
            Settings(key_file=str(tmp_path / "gone" / "key")),
        )
    assert caught.value.code == "manifest_invalid"
    assert caught.value.problems[0].path == "fingerprint_key_file"
    assert "No such file" in caught.value.message


# ---- what is sent ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "sent", "encrypted"),
    [
        (entry(), f"SCRAM-of-{HUSH}", True),
        (entry(password_encryption="server"), HUSH, False),
        (entry(password=scram("x")), scram("x"), False),
        (entry(password=scram("x"), password_encryption="server"), scram("x"), False),
        (entry(password="md5" + "0" * 32), "md5" + "0" * 32, False),
        # What is a password although it looks like a verifier never goes out as it is: a server would store it.
        (entry(password=scram("x"), password_format="plain"), f"SCRAM-of-{scram('x')}", True),
        (
            entry(password="md5" + "0" * 32, password_format="plain", password_encryption="server"),
            f"SCRAM-of-md5{'0' * 32}",
            True,
        ),
        (
            entry(password="scram-sha-256$x", password_format="plain", password_encryption="server"),
            "SCRAM-of-scram-sha-256$x",
            True,
        ),
    ],
)
def test_clear_text_is_sent_only_where_the_server_is_to_hash(given: Dict[str, Any], sent: str, encrypted: bool) -> None:
    case = Case(given)
    found = case.hidden(case.set("app"))
    assert list(found) == [shown("app")]
    assert unsealed(found[shown("app")]) == f"ALTER ROLE \"app\" PASSWORD '{sent}'"
    text = given["password"].encode()
    assert case.connection.encrypted == ([(text, b"app", b"scram-sha-256")] if encrypted else [])
    assert HUSH not in found[shown("app")]
    assert sent not in found[shown("app")]


def test_a_password_is_quoted_for_sql_inside_the_seal() -> None:
    case = Case(entry(password="it's \\", password_encryption="server"))
    block = next(iter(case.hidden(case.set("app")).values()))
    assert unsealed(block) == "ALTER ROLE \"app\" PASSWORD  E'it''s \\\\'"


@pytest.mark.parametrize("plan", [Plan(), Plan((SetPassword(RoleRef(5, "app"), "", clear=True),))])
def test_where_no_password_is_sent_nothing_is_asked(plan: Plan) -> None:
    case = Case(entry())
    assert case.hidden(plan) == {}
    assert case.connection.keys == 0


def test_many_passwords_share_a_key_and_no_pad() -> None:
    names = ["a", "b", "c"]
    case = Case(*(entry(name) for name in names))
    found = case.hidden(case.set(*names))
    assert list(found) == [shown(name) for name in names]
    assert case.connection.keys == 1
    assert [unsealed(block) for block in found.values()] == [
        f"ALTER ROLE \"{name}\" PASSWORD 'SCRAM-of-{HUSH}'" for name in names
    ]
    assert len({str(re.findall(r"int4send\((\d+)\)", block)) for block in found.values()}) == 3


@pytest.mark.parametrize("name", ["app", 'a"b', "x PASSWORD 'y", "$sealed$"])
def test_the_locks_are_taken_by_the_same_statement_without_a_word(name: str) -> None:
    case = Case(entry(name))
    block = next(iter(case.hidden(case.set(name)).values()))
    quoted = name.replace('"', '""')
    assert re.search(r"BEGIN\n\s*(.*?);\n\s*FOR", block).group(1) == f'ALTER ROLE "{quoted}"'  # type: ignore[union-attr]


def test_the_executors_own_password_is_locked_by_all_that_15_lets_it_do() -> None:
    case = Case(entry(), executor="app")
    block = next(iter(case.hidden(case.set("app")).values()))
    assert 'BEGIN\n    ALTER ROLE "app" PASSWORD NULL;' in block


def test_where_nothing_can_be_sealed_the_statement_goes_as_it_is_with_a_verifier() -> None:
    case = Case(entry(), sealing=False)
    assert case.hidden(case.set("app")) == {shown("app"): f"ALTER ROLE \"app\" PASSWORD 'SCRAM-of-{HUSH}'"}


# ---- what is remembered ----------------------------------------------------------------------------------------------


def test_nothing_to_write_sends_nothing() -> None:
    case = Case(entry())
    assert case.remember([]) is False
    assert (case.connection.sent, case.connection.keys) == ([], 0)


def rows_of(block: str) -> List[Tuple[int, str]]:
    return [
        (int(oid), digits) for oid, digits in re.findall(r"\((\d+), '7000',\s+E'\\\\x([0-9a-f]{64})'::bytea\)", block)
    ]


def test_records_are_written_under_a_lock_and_sealed() -> None:
    case = Case(entry())
    assert case.remember(case.set("app").changes) is True
    lock, block = case.connection.sent
    assert lock == f"LOCK TABLE {TABLE} IN SHARE ROW EXCLUSIVE MODE"
    assert rows_of(unsealed(block)) == [(case.world.oid("app"), case.print_of("app").hex())]
    assert case.print_of("app").hex() not in block
    assert "BEGIN\n    NULL;" in block


def test_rows_go_in_batches_that_share_a_key_and_no_pad() -> None:
    names = [f"r{number:02}" for number in range(2 * store.BATCH + 1)]
    case = Case(*(entry(name) for name in names))
    case.remember(case.set(*names).changes)
    lock, *blocks = case.connection.sent
    assert lock.startswith("LOCK TABLE")
    assert case.connection.keys == 1
    rows = [rows_of(unsealed(block)) for block in blocks]
    assert [len(batch) for batch in rows] == [store.BATCH, store.BATCH, 1]
    assert sorted(row for batch in rows for row in batch) == sorted(
        (case.world.oid(name), case.print_of(name).hex()) for name in names
    )
    assert len({str(re.findall(r"int4send\((\d+)\)", block)) for block in blocks}) == 3


def test_a_new_roles_oid_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: List[Sequence[str]] = []

    def oids(_connection: Any, names: Sequence[str]) -> Dict[str, int]:
        asked.append(list(names))
        return {"new": 777}

    monkeypatch.setattr(password_sending, "read_role_oids", oids)
    case = Case(entry("new"), entry("app"))
    old = case.set("app").changes
    comment = CommentRole(RoleRef(-2, "other"), "x", None, "", created=True)
    case.remember([SetPassword(RoleRef(-1, "new"), "", created=True), comment, *old])
    assert asked == [["new"]]
    assert (777, case.print_of("new", 777).hex()) in rows_of(unsealed(case.connection.sent[1]))
    case.remember(old)
    assert len(asked) == 1


def test_rows_that_go_are_deleted_under_the_lock_and_need_no_seal() -> None:
    case = Case({"name": "app"}, records={})
    oid = case.world.oid("app")
    case.facts = replace(case.facts, records={oid: (Record("table", b"x" * 32),)})
    assert case.remember(case.set("app", clear=True).changes) is True
    assert case.connection.sent == [
        f"LOCK TABLE {TABLE} IN SHARE ROW EXCLUSIVE MODE",
        f"DELETE FROM {TABLE} WHERE role IN ({oid})",
    ]
    assert case.connection.keys == 0


def test_in_the_comment_store_comments_are_sealed_and_the_table_is_left_alone() -> None:
    case = Case(entry(), table=StoreTable())
    comment = CommentRole(case.world.ref("app"), "it's", None, "")
    case.remember([*case.set("app").changes, comment], replace(KEYED, store="comment"))
    (block,) = case.connection.sent
    whole = join_comment("it's", "7000", case.print_of("app")).replace("'", "''")
    assert unsealed(block) == f"COMMENT ON ROLE \"app\" IS '{whole}'"
    assert 'BEGIN\n    COMMENT ON ROLE "app" IS NULL;' in block
    assert case.print_of("app").hex() not in block


@pytest.mark.parametrize("sealing", [True, False])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (KEYED, f"INSERT INTO {TABLE}"),
        (replace(KEYED, store="comment"), "COMMENT ON ROLE \"app\" IS '********'"),
    ],
)
def test_a_refusal_shows_no_fingerprint(options: PasswordOptions, told: str, sealing: bool) -> None:
    case = Case(entry(), sealing=sealing)
    case.connection.refused = "DO $" if sealing else told.split(" IS ")[0]
    with pytest.raises(Failure) as caught:
        case.remember(case.set("app").changes, options)
    result = str(caught.value.as_result())
    assert case.print_of("app").hex() not in result
    assert "sealed" not in result
    assert str(caught.value.statement).startswith(told)
    assert "********" in str(caught.value.statement)
    assert caught.value.sqlstate == "42501"


def test_a_refused_lock_is_told_as_it_is() -> None:
    case = Case(entry())
    case.connection.refused = "LOCK TABLE"
    with pytest.raises(Failure) as caught:
        case.remember(case.set("app").changes)
    assert caught.value.statement == f"LOCK TABLE {TABLE} IN SHARE ROW EXCLUSIVE MODE"


def test_no_md5_of_anything_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_arguments: Any, **_options: Any) -> None:
        raise ValueError("disabled for FIPS")

    monkeypatch.setattr(hashlib, "md5", refused)
    case = Case(entry())
    assert len(case.hidden(case.set("app"))) == 1
    assert case.remember(case.set("app").changes) is True


# ---- warnings --------------------------------------------------------------------------------------------------------

OLD = {"records": {5: (Record("table", b"x" * 32),)}}


@pytest.mark.parametrize(
    ("facts", "file", "names", "words"),
    [
        (OLD, "/key", ("app",), "1 password is sent again"),
        (OLD, "/key", ("app", "b"), "2 passwords are sent again"),
        (OLD, "/key", (), None),
        (OLD, None, ("app",), None),
        ({}, "/key", ("app",), None),
        ({"sealing": False}, None, ("app",), "server's log can show verifiers"),
        ({"sealing": False}, None, (), None),
    ],
)
def test_a_new_key_over_old_records_and_a_log_that_shows_verifiers_are_warned_about(
    facts: Dict[str, Any], file: Optional[str], names: Tuple[str, ...], words: Optional[str]
) -> None:
    case = Case(entry(), entry("b"), **facts)
    found = _about_passwords(case.set(*names), case.state, Settings(key_file=file))
    assert len(found) == (words is not None)
    assert all(str(words) in text for text in found)
    assert _about_passwords(case.set(*names, clear=True), case.state, Settings(key_file=file)) == []
