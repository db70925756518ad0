# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A column that was given onward, while the same privilege is revoked on its table."""

from __future__ import annotations

import pytest
from harness import Database

SETUP = """
CREATE ROLE a; CREATE ROLE b; CREATE SCHEMA s; CREATE TABLE s.t(x int, y int); GRANT USAGE ON SCHEMA s TO a;
GRANT SELECT ON s.t TO a; GRANT SELECT (x) ON s.t TO a WITH GRANT OPTION;
SET ROLE a; GRANT SELECT (x) ON s.t TO b; RESET ROLE
"""
USAGE = "{role: a, privileges: [USAGE], object: {type: schema, name: s}}"
OBJECT = "columns: [x], object: {type: table, schema: s, name: t}"


def test_all_of_it_is_surplus(db: Database) -> None:
    db.sql(SETUP)
    db.converge("roles: [{name: r}]\nschemas: [{name: s}]", undeclared_grantees="revoke")
    assert db.acl("s.t") == {f"postgres=arwdDxt{'m' if db.version >= 17 else ''}/postgres"}
    assert not db.column_acl("s.t", "x")


@pytest.mark.parametrize("option", ["", "with_grant_option: true, "])
def test_the_columns_are_declared(db: Database, option: str) -> None:
    db.sql(SETUP)
    result = db.converge(
        f"roles: [{{name: a}}, {{name: b}}]\nschemas: [{{name: s}}]\ngrants: [{USAGE},"
        f" {{role: a, privileges: [SELECT], {option}{OBJECT}}}, {{role: b, privileges: [SELECT], {OBJECT}}}]"
    )
    assert db.column_acl("s.t", "x") == {f"a=r{'*' if option else ''}/postgres", "b=r/postgres"}
    assert result.summary["grants"]["granted"] == 0


def test_the_override_keeps_the_columns_of_the_one_who_was_given_them(db: Database) -> None:
    db.sql(SETUP)
    result = db.converge(
        f"roles: [{{name: a}}, {{name: b, privilege_reconciliation: additive}}]\nschemas: [{{name: s}}]\n"
        f"grants: [{USAGE}]"
    )
    assert db.column_acl("s.t", "x") == {"b=r/postgres"}
    assert result.suppressed_revoke_count == 1
