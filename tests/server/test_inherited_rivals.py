# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An executor that inherits the owner, may not become it, and inherits another holder of the grant option as well."""

from __future__ import annotations

import pytest
from harness import Database

SETUP = """
CREATE ROLE o; CREATE ROLE b; CREATE ROLE r; CREATE ROLE ex LOGIN;
GRANT b TO ex; GRANT o TO ex WITH INHERIT TRUE, SET FALSE;
CREATE SCHEMA s AUTHORIZATION o; SET ROLE o; CREATE TABLE s.t(a int); GRANT SELECT ON s.t TO b WITH GRANT OPTION;
GRANT SELECT ON s.t TO r; RESET ROLE
"""
MANIFEST = """
assume_roles: [o, b, r, ex]
schemas: [{name: s}]
grants: [{role: b, privileges: [SELECT], with_grant_option: true, object: {type: table, schema: s, name: t}}]
"""


@pytest.mark.versions(min=16)
def test_what_it_may_not_be_able_to_revoke_is_a_problem_beforehand(db: Database) -> None:
    db.sql(SETUP)
    result = db.fails(MANIFEST, "insufficient_privilege", "table s.t", "r", login_user="ex")
    assert "SET TRUE" in result.problems[0]["hint"]


@pytest.mark.versions(min=16)
def test_what_it_grants_is_held_whoever_it_is_given_by(db: Database) -> None:
    db.sql(SETUP, "REVOKE SELECT ON s.t FROM r")
    grant = "[{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}, "
    db.converge(MANIFEST.replace("grants: [", f"grants: {grant}"), login_user="ex")


@pytest.mark.parametrize("may", [True, False])
def test_usage_is_lent_in_the_name_of_the_schemas_owner(db: Database, may: bool) -> None:
    """The executor may become the table's owner, who may not use the schema of somebody else."""
    db.sql("CREATE ROLE so; CREATE ROLE o; CREATE ROLE r; CREATE ROLE ex LOGIN NOINHERIT; GRANT o TO ex")
    db.sql("CREATE SCHEMA s AUTHORIZATION so; CREATE TABLE s.t(a int); ALTER TABLE s.t OWNER TO o")
    if may:
        db.sql("GRANT so TO ex")
    manifest = (
        "assume_roles: [so, o, r, ex]\n"
        "grants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}]"
    )
    if may:
        db.converge(manifest, login_user="ex")
        assert "r=r/o" in (db.acl("s.t") or set())
        assert not any(entry.startswith("o=") for entry in db.acl("s", "schema") or set())
    else:
        db.fails(manifest, "insufficient_privilege", "o may not use schema s", login_user="ex")
