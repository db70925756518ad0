# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bad input with a real server behind it: manifests that get as far as the plan, and some that are applied.

What is pure is fuzzed in ``tests/fuzz``, whose inputs these are. ``FUZZ=long`` tries more of them, and others each time.
"""

from __future__ import annotations

import copy
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import harness
import pytest
from harness import Database, Result, Runner
from hypothesis import given
from hypothesis import strategies as st

harness.link_collection()
sys.path[:0] = [str(harness.COLLECTIONS), str(Path(__file__).resolve().parents[1] / "fuzz")]

from generators import LONG, ODD_TEXTS, broken, change, changes, examples, from_spec

#: What the inputs name, as far as it can be there.
SETUP = """
CREATE ROLE legacy; CREATE ROLE app_owner; CREATE ROLE app LOGIN; CREATE ROLE elsewhere; CREATE ROLE stranger;
CREATE ROLE gone; CREATE ROLE old_one;
CREATE SCHEMA inv AUTHORIZATION app_owner; CREATE TABLE inv.t (a int, b int); CREATE VIEW inv.v AS SELECT 1 AS a, 2 AS b;
CREATE MATERIALIZED VIEW inv.m AS SELECT 1 AS a; CREATE SEQUENCE inv.q; CREATE DOMAIN inv.d AS int;
CREATE FUNCTION inv.f(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE PROCEDURE inv.p(int, text[]) LANGUAGE sql AS 'SELECT 1';
CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; SELECT lo_create(16403);
GRANT SELECT, INSERT ON inv.t TO stranger, legacy, gone; GRANT SELECT (a) ON inv.t TO app; GRANT app_owner TO legacy;
ALTER DEFAULT PRIVILEGES FOR ROLE app_owner IN SCHEMA inv GRANT SELECT ON TABLES TO stranger;
"""

#: Fits what SETUP makes, so that much of what is changed in it is still fine.
FITTING: dict[str, Any] = {
    "default_owner": "app_owner",
    "profiles": {
        "editor": {
            "grants": [
                {"privileges": ["USAGE"], "object": {"type": "schema"}},
                {"privileges": ["SELECT", "INSERT"], "object": {"type": "table", "name": "*"}},
                {"privileges": ["SELECT"], "object": {"type": "table", "name": "t"}, "columns": ["b"]},
            ],
            "default_privileges": [{"privileges": ["SELECT"], "on_type": "table"}],
            "config": {"search_path": "{schema}, public"},
        }
    },
    "schemas": [{"name": "inv", "owner": "app_owner", "profiles": ["editor"]}, {"name": "new"}],
    "roles": [
        {"name": "app_owner", "comment": "Owns things"},
        {"name": "app", "login": True, "connection_limit": 5, "valid_until": "2037-01-31T23:59:59Z", "config": {"work_mem": "8MB"}},
        {"name": "legacy", "external": True, "privilege_reconciliation": "additive"},
        {"name": "fresh", "password": "Pa55-word-of-fresh", "createdb": True, "member_of": ["app_owner"]},
    ],
    "memberships": [{"role": "inv-editor", "members": [{"name": "app", "admin": True}, {"name": "legacy"}]}],
    "grants": [
        {"role": "app", "privileges": ["CONNECT"], "object": {"type": "database"}},
        {"role": "PUBLIC", "privileges": ["USAGE"], "object": {"type": "schema", "name": "inv"}, "ensure": "absent"},
        {"role": "app", "privileges": ["EXECUTE"], "object": {"type": "function", "schema": "inv", "name": "f(int)"}},
        {"role": "app", "privileges": ["ALL"], "object": {"type": "sequence", "schema": "inv", "name": "*"}, "with_grant_option": True},
        {"role": "app", "privileges": ["USAGE"], "object": {"type": "foreign_server", "name": "s"}},
        {"role": "app", "privileges": ["SELECT"], "object": {"type": "large_object", "name": 16403}},
        {"role": "fresh", "privileges": ["USAGE"], "object": {"type": "domain", "schema": "inv", "name": "d"}},
    ],
    "default_privileges": [{"schema": "inv", "grant": [{"role": "app", "privileges": ["USAGE"], "on_type": "sequence"}]}],
    "retirements": [{"role": "gone", "reassign_owned_to": "app_owner", "drop_owned": True}],
    "scope": {"roles": ["old_*"], "schemas": ["in?"]},
    "fingerprint_key": "k-0123456789abcdef0123",
    "undeclared_grantees": "revoke",
}  # fmt: skip

#: Names that are there, some of them in the wrong place, and texts of every other kind.
_VALUES = st.one_of(
    st.sampled_from(("app", "legacy", "app_owner", "inv", "new", "t", "v", "m", "q", "f", "*", "SELECT", "ALL", "USAGE", "postgres", "public")),
    st.sampled_from(ODD_TEXTS),
    st.text(st.characters(), max_size=6),
    st.booleans(),
    st.integers(-2, 2**31),
)  # fmt: skip

_RUN = st.fixed_dictionaries(
    {},
    optional={
        "reconciliation_mode": st.sampled_from(("authoritative", "adopt", "additive")),
        "update_password": st.sampled_from(("on_change", "on_drift", "on_create", "always")),
        "fingerprint_store": st.sampled_from(("table", "comment")),
        "lock_timeout": st.sampled_from((1, 30, 2147483, 2147484, 2**40, 0, -1)),
        "statement_timeout": st.sampled_from((0, 5, 2147483, 2147484, 2**40, -1)),
        "max_drops": st.sampled_from((0, 2**70, -1)),
        "max_revokes": st.sampled_from((0, 2**70, -1)),
        "expected_digest": st.sampled_from(("", "x", "\ud800", "sha256:" + "0" * 64)),
        "expected_system_identifier": st.sampled_from(("", "x", "\ud800", "1" * 100)),
        "session_role": st.sampled_from(("app", "nobody", "", "x" * 64, "a\0b", "\ud800", "none", 'a"b', "postgres")),
        "login_user": st.sampled_from(("postgres", "app", "nobody", "x" * 100, "a\0b", "\ud800", "é")),
        "rehearse": st.booleans(),
    },
)


_NUMBER = st.integers(0, 10**4)


def swap(whole: dict[str, Any], where: int, other: int) -> None:
    """Give one entry the value that another has under the same key: mostly this still means something."""
    leaves: list[tuple[dict[str, Any], str]] = []
    pending: list[Any] = [whole]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            leaves += [(item, key) for key in item]
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    holder, key = leaves[where % len(leaves)]
    alike = [found for found, name in leaves if name == key]
    holder[key] = copy.deepcopy(alike[other % len(alike)][key])


@st.composite
def manifests(draw: Any) -> dict[str, Any]:
    kind = draw(st.integers(0, 9))
    if kind < 2:
        whole = draw(broken() if kind else from_spec())
    else:
        whole = copy.deepcopy(FITTING)
        for where, other in draw(st.lists(st.tuples(_NUMBER, _NUMBER), max_size=4)):
            swap(whole, where, other)
        for what, where, new, other in draw(changes(0, 2, _VALUES)) if kind < 6 else ():
            change(whole, what, where, new, other)
    if draw(st.integers(0, 2)) == 0:
        whole.update(draw(_RUN))
    return whole  # type: ignore[no-any-return]


def judged(result: Result, seen: Counter[str]) -> str:
    outcome = str(result.get("error_code") or "success")
    assert outcome != "internal_error", result
    seen[outcome] += 1
    return outcome


def call(db: Database, whole: dict[str, Any], check: bool) -> Result:
    # What a manifest may not have are the harness's own words.
    clash = {name: whole[name] for name in ("process", "environment", "blocked", "prelude", "timeout", "check", "diff")
             if name in whole}  # fmt: skip
    return db.reconcile({key: value for key, value in whole.items() if key not in clash}, check=check, diff=True)


@pytest.fixture(name="seen")
def _seen(db: Database, capsys: pytest.CaptureFixture[str]) -> Any:
    seen: Counter[str] = Counter()
    yield seen
    with capsys.disabled():
        if LONG:
            print(f"\nPostgreSQL {db.version}: {sum(seen.values())} runs: {dict(seen.most_common())}")


def test_check_mode(db: Database, seen: Counter[str]) -> None:
    db.sql(SETUP)
    before = db.snapshot()
    refused: list[dict[str, Any]] = []

    @examples(0.1)
    @given(manifests())
    def property_(whole: dict[str, Any]) -> None:
        if judged(call(db, whole, check=True), seen) == "manifest_invalid":
            refused.append(whole)

    property_()
    assert db.snapshot() == before, "a check run wrote something"
    with db.statements() as sent:
        for whole in refused[:50]:
            call(db, whole, check=False)
    assert sent == [], "a statement was sent for an invalid manifest"
    assert seen["success"] and refused


def test_apply(server: harness.Cluster, runner: Runner, db: Database, seen: Counter[str]) -> None:
    @examples(0.04)
    @given(manifests())
    def property_(whole: dict[str, Any]) -> None:
        fresh = Database(server, runner)
        try:
            fresh.sql(SETUP)
            before = fresh.snapshot()
            result = call(fresh, whole, check=False)
            if judged(result, seen) != "success":
                assert fresh.snapshot() == before, (result, "a failed run left something behind")
            elif whole.get("update_password") != "always":
                whole.pop("expected_digest", None)
                again = call(fresh, whole, check=True)
                assert again.sql == [], again
        finally:
            fresh.close()

    property_()
    assert seen["success"]
