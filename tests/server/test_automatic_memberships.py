# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The membership that PostgreSQL 16 gives the creator of a role by itself, beside what a manifest declares."""

from __future__ import annotations

import pytest
from harness import Database

pytestmark = pytest.mark.versions(min=16)

CREATED_BY_CR = "CREATE ROLE cr CREATEROLE LOGIN; SET ROLE cr; CREATE ROLE g; RESET ROLE"
ROLES = "roles: [{name: g}, {name: cr, login: true, createrole: true}]\n"
AUTOMATIC = ("g", "cr", "postgres", True, False, False)


def rows(db: Database) -> set[tuple[object, ...]]:
    return set(
        db.query(
            "SELECT roleid::regrole::text, member::regrole::text, grantor::regrole::text, admin_option, inherit_option,"
            " set_option FROM pg_auth_members WHERE roleid = 'g'::regrole"
        )
    )


def test_it_is_never_drift(db: Database) -> None:
    db.sql(CREATED_BY_CR)
    result = db.silent(ROLES)
    assert rows(db) == {AUTOMATIC}
    assert result.withheld == []


def test_it_is_reported_when_its_member_may_not_create_roles(db: Database) -> None:
    db.sql(CREATED_BY_CR, "ALTER ROLE cr NOCREATEROLE")
    result = db.silent("roles: [{name: g}, {name: cr, login: true}]")
    assert rows(db) == {AUTOMATIC}
    assert [(item["role"], item["reason"]) for item in result.withheld] == [("cr", "automatic_membership")]


def test_a_declared_membership_stands_beside_it(db: Database) -> None:
    db.sql(CREATED_BY_CR)
    db.converge(ROLES + "memberships: [{role: g, members: [{name: cr}]}]")
    assert rows(db) == {AUTOMATIC, ("g", "cr", "cr", False, True, True)}


def test_its_admin_option_is_enough_for_a_declared_one(db: Database) -> None:
    db.sql(CREATED_BY_CR)
    db.silent(ROLES + "memberships: [{role: g, members: [{name: cr, admin: true, inherit: false, set: false}]}]")
    db.silent(ROLES + "memberships: [{role: g, members: [{name: cr, admin: true}]}]")
    db.converge(ROLES + "memberships: [{role: g, members: [{name: cr, admin: true, set: true}]}]")
    assert rows(db) == {AUTOMATIC, ("g", "cr", "cr", False, False, True)}


def test_a_row_made_by_hand_may_come_to_look_automatic(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE cr CREATEROLE LOGIN; GRANT g TO cr WITH INHERIT FALSE, SET FALSE")
    db.converge(ROLES + "memberships: [{role: g, members: [{name: cr, admin: true}]}]")
    assert rows(db) == {AUTOMATIC}


def test_what_createrole_self_grant_gave_is_never_drift(db: Database) -> None:
    db.sql(
        "CREATE ROLE cr CREATEROLE LOGIN; SET ROLE cr; SET createrole_self_grant = 'inherit, set'; CREATE ROLE g;"
        "RESET ROLE; RESET createrole_self_grant"
    )
    db.silent(ROLES)
    assert rows(db) == {AUTOMATIC, ("g", "cr", "cr", False, True, True)}


def test_an_executor_without_superuser_manages_the_role_that_it_created(db: Database) -> None:
    db.sql("CREATE ROLE cr CREATEROLE LOGIN; CREATE ROLE m")
    result = db.converge(
        "roles: [{name: g}, {name: n}]\nmemberships: [{role: g, members: [{name: n}]}]", login_user="cr"
    )
    assert result.summary["roles"]["created"] == 2
    assert rows(db) == {AUTOMATIC, ("g", "n", "cr", False, True, True)}


def test_what_a_member_gave_itself_ends_with_the_membership_it_hangs_on(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m CREATEROLE; GRANT g TO m WITH ADMIN TRUE")
    db.sql("GRANT g TO m WITH INHERIT FALSE, SET TRUE GRANTED BY m")
    result = db.converge("roles: [{name: g}, {name: m, createrole: true}]")
    assert rows(db) == set()
    assert not result.matching("^GRANT")
