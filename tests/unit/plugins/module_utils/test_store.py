# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where fingerprints are kept: which record counts, comments with one in their last line, the table's statements."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils import store
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import CreateStore
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import PUBLIC_REF, RoleRef
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements.names import text
from ansible_collections.pg_access.reconcile.plugins.module_utils.store import (
    PasswordFacts,
    Record,
    RecordWork,
    StoreTable,
    join_comment,
    records_of,
    split_comment,
)

pytest.importorskip("psycopg")

ONE, TWO = bytes(range(32)), bytes(32)
LINE = f"role_reconcile password fingerprint 7000:{ONE.hex()}"

# ---- comments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("comment", [None, "", "Order service", "two\nlines", "ends with\n", "größe"])
def test_a_record_goes_into_a_comment_and_out_again(comment: Optional[str]) -> None:
    whole = join_comment(comment, "7000", ONE)
    assert whole.splitlines()[-1] == LINE
    assert split_comment(whole) == (comment or None, ("7000", ONE))


def test_a_cluster_without_an_identifier_has_records_too() -> None:
    assert split_comment(join_comment("x", "", ONE)) == ("x", ("", ONE))


def test_only_the_last_line_is_a_record() -> None:
    twice = join_comment(join_comment("x", "1", TWO), "2", ONE)
    assert split_comment(twice) == (join_comment("x", "1", TWO), ("2", ONE))


@pytest.mark.parametrize(
    "comment",
    [
        None,
        "",
        "Order service",
        f"{LINE}\n",
        f"{LINE}\nmore",
        f"x {LINE}",
        LINE[:-1],
        f"{LINE}0",
        LINE.upper(),
        LINE.replace("7000", "70x0"),
        LINE.replace("role_reconcile", "other"),
    ],
)
def test_what_only_looks_like_a_record_is_a_comment(comment: Optional[str]) -> None:
    assert split_comment(comment) == (comment, None)


# ---- which record counts ---------------------------------------------------------------------------------------------

Rows = Tuple[Tuple[int, str, bytes], ...]
Lines = Dict[int, Tuple[str, bytes]]


def kept(rows: Rows, lines: Lines, cluster: str = "7000") -> Tuple[Dict[int, Tuple[str, ...]], Tuple[int, ...]]:
    records, strays = records_of(rows, lines, [1, 2], cluster)
    return {oid: tuple(record.store for record in found) for oid, found in records.items()}, strays


@pytest.mark.parametrize(
    ("rows", "lines", "records", "strays"),
    [
        (((1, "7000", ONE),), {}, {1: ("table",)}, ()),
        ((), {1: ("7000", ONE)}, {1: ("comment",)}, ()),
        (((1, "7000", ONE),), {1: ("7000", TWO)}, {1: ("table", "comment")}, ()),
        # another cluster's: restored
        (((1, "8000", ONE),), {1: ("8000", ONE)}, {}, (1,)),
        (((1, "", ONE),), {1: ("", ONE)}, {}, (1,)),
        # a role that is gone
        (((9, "7000", ONE),), {}, {}, (9,)),
    ],
)
def test_a_record_counts_only_in_its_cluster_and_for_a_role_that_exists(
    rows: Rows, lines: Lines, records: Dict[int, Tuple[str, ...]], strays: Tuple[int, ...]
) -> None:
    assert kept(rows, lines) == (records, strays)


def test_who_may_not_ask_for_the_clusters_identifier_throws_nothing_away() -> None:
    rows = ((1, "7000", ONE), (2, "", TWO), (9, "7000", ONE))
    assert kept(rows, {}, cluster="") == ({2: ("table",)}, (9,))


def test_the_fingerprint_is_that_of_its_row() -> None:
    records, _strays = records_of([(1, "7000", ONE), (2, "7000", TWO)], {2: ("7000", ONE)}, [1, 2], "7000")
    assert records == {1: (Record("table", ONE),), 2: (Record("table", TWO), Record("comment", ONE))}


def test_the_configured_stores_record_comes_first_then_the_other_ones() -> None:
    table, line = Record("table", ONE), Record("comment", TWO)
    facts = PasswordFacts(records={1: (table, line), 2: (line,), 3: ()})
    assert facts.record(1, "table") is table
    assert facts.record(1, "comment") is line
    assert facts.record(2, "table") is line
    assert facts.record(3, "table") is facts.record(4, "table") is None


@pytest.mark.parametrize(
    ("table", "readable"),
    [
        (StoreTable(True, True), True),
        (StoreTable(True, True, lacking=("INSERT", "UPDATE", "DELETE")), True),
        (StoreTable(True, False), False),
        (StoreTable(True, True, faults=("a trigger",)), False),
        (StoreTable(True, True, lacking=("SELECT",)), False),
        (StoreTable(True, True, lacking=("USAGE",)), False),
    ],
)
def test_a_table_is_looked_at_only_where_that_is_safe_and_allowed(table: StoreTable, readable: bool) -> None:
    assert table.readable is readable


def test_no_representation_shows_a_fingerprint() -> None:
    work = RecordWork(rows=((1, ONE),), comments={"a": join_comment("x", "7000", ONE)})
    shown = repr((Record("table", ONE), work, PasswordFacts(verifiers={1: "SCRAM-hush"})))
    assert ONE.hex() not in shown
    assert repr(ONE) not in shown
    assert "hush" not in shown


def test_work_is_true_where_there_is_any() -> None:
    assert not RecordWork()
    assert RecordWork(delete=(1,))
    assert RecordWork(rows=((1, ONE),))
    assert RecordWork(comments={"a": None})


# ---- statements ------------------------------------------------------------------------------------------------------

TABLE = '"role_reconcile"."password_fingerprint"'
COLUMNS = "role oid PRIMARY KEY, system_identifier text NOT NULL, fingerprint bytea NOT NULL"


def test_the_table_is_made_with_its_schema() -> None:
    assert [text(part) for part in store.creation(CreateStore(True))] == [
        'CREATE SCHEMA "role_reconcile"',
        f"CREATE TABLE {TABLE} ({COLUMNS})",
    ]


def test_whom_default_privileges_would_let_in_is_kept_out() -> None:
    grantees = (PUBLIC_REF, RoleRef(5, 'a"b'))
    assert [text(part) for part in store.creation(CreateStore(True, grantees))] == [
        'CREATE SCHEMA "role_reconcile"',
        'REVOKE ALL ON SCHEMA "role_reconcile" FROM PUBLIC, "a""b"',
        f"CREATE TABLE {TABLE} ({COLUMNS})",
        f'REVOKE ALL ON TABLE {TABLE} FROM PUBLIC, "a""b"',
    ]
    assert [text(part) for part in store.creation(CreateStore(False, grantees))] == [
        f"CREATE TABLE {TABLE} ({COLUMNS})",
        f'REVOKE ALL ON TABLE {TABLE} FROM PUBLIC, "a""b"',
    ]


def test_rows_are_written_over_older_ones() -> None:
    written = text(store.insertion([(1, ONE), (2, TWO)], "70'00"))
    # psycopg writes a literal with a backslash as E'...'
    rows = [f"({oid}, '70''00',  E'\\\\x{value.hex()}'::bytea)" for oid, value in ((1, ONE), (2, TWO))]
    assert f"VALUES {', '.join(rows)} ON" in written
    assert written.startswith(f"INSERT INTO {TABLE} (role, system_identifier, fingerprint)")
    assert "ON CONFLICT (role) DO UPDATE SET system_identifier = excluded.system_identifier" in written
    assert written.endswith("fingerprint = excluded.fingerprint")


def test_rows_are_taken_away_by_their_oids_and_writers_take_turns() -> None:
    assert text(store.deletion([3, 1])) == f"DELETE FROM {TABLE} WHERE role IN (3, 1)"
    assert text(store.lock()) == f"LOCK TABLE {TABLE} IN SHARE ROW EXCLUSIVE MODE"


@pytest.mark.parametrize(("comment", "value"), [("it's", "'it''s'"), (None, "NULL"), ("", "NULL")])
def test_a_comment_is_set_as_a_whole_or_removed(comment: Optional[str], value: str) -> None:
    assert text(store.comment('a"b', comment)) == f'COMMENT ON ROLE "a""b" IS {value}'
