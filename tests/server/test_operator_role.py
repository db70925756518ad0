# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a Kubernetes operator's Role resource can say, field by field, said in a manifest, on create and on change."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Database

KEY = {"fingerprint_key": "a key that only this test knows"}

#: The manifest's field, the value to create with, the value to change to, and the column of pg_roles.
ATTRIBUTES = [
    ("superuser", True, False, "rolsuper"),
    ("createdb", True, False, "rolcreatedb"),
    ("createrole", True, False, "rolcreaterole"),
    ("replication", True, False, "rolreplication"),
    ("bypassrls", True, False, "rolbypassrls"),
    ("inherit", False, True, "rolinherit"),
    ("connection_limit", 7, -1, "rolconnlimit"),
]


@pytest.mark.parametrize(("field", "first", "second", "column"), ATTRIBUTES, ids=[row[0] for row in ATTRIBUTES])
def test_every_flag_on_create_and_on_change(db: Database, field: str, first: Any, second: Any, column: str) -> None:
    for value in (first, second, first):
        db.converge({"roles": [{"name": "test_role", field: value}]})
        assert db.attribute("test_role", column) == value
    assert len(db.converge({"roles": [{"name": "test_role", field: second}]}).sql) == 1


def test_the_example_of_the_document(db: Database) -> None:
    role = {
        "name": "test_role",
        "comment": "A test role",
        "createdb": True,
        "valid_until": "2036-12-31T23:59:59Z",
        "password": "securepassword",
    }
    db.converge({"roles": [role]}, **KEY)
    assert db.logs_in("test_role", "securepassword")
    assert db.attribute("test_role", "rolcreatedb") is True
    assert db.value("SELECT rolvaliduntil = '2036-12-31 23:59:59+00' FROM pg_roles WHERE rolname = 'test_role'")
    assert db.value("SELECT shobj_description('test_role'::regrole, 'pg_authid')") == "A test role"
    assert db.converge({"roles": [{**role, "valid_until": "infinity"}]}, **KEY).sql == [
        "ALTER ROLE \"test_role\" VALID UNTIL 'infinity'"
    ]


def test_the_secret_makes_a_login_and_its_absence_a_group(db: Database) -> None:
    db.converge({"roles": [{"name": "user_role", "password": "securepassword"}, {"name": "group_role"}]}, **KEY)
    assert db.attribute("user_role", "rolcanlogin") is True
    assert db.attribute("group_role", "rolcanlogin") is False
    db.converge({"roles": [{"name": "user_role"}, {"name": "group_role", "password": "securepassword"}]}, **KEY)
    assert db.attribute("user_role", "rolcanlogin") is False
    assert db.verifier("user_role") is None
    assert db.logs_in("group_role", "securepassword")


def test_a_changed_secret_is_applied_and_the_same_one_is_not(db: Database) -> None:
    role = {"name": "test_role", "password": "first-password"}
    db.converge({"roles": [role]}, **KEY)
    stored = db.verifier("test_role")
    db.silent({"roles": [role]}, **KEY)
    assert db.verifier("test_role") == stored
    db.converge({"roles": [{**role, "password": "second-password"}]}, **KEY)
    assert db.logs_in("test_role", "second-password")
    assert not db.logs_in("test_role", "first-password")


def test_in_role_and_role_are_member_of_and_members(db: Database) -> None:
    others = [{"name": name} for name in ("parent_a", "parent_b", "child_a", "child_b")]
    role = {"name": "test_role", "member_of": ["parent_a", "parent_b"], "members": ["child_a"]}
    db.converge({"roles": [*others, role]})
    assert {edge[:2] for edge in db.edges()} == {
        ("parent_a", "test_role"),
        ("parent_b", "test_role"),
        ("test_role", "child_a"),
    }
    role = {"name": "test_role", "member_of": ["parent_b"], "members": ["child_b"]}
    db.converge({"roles": [*others, role]})
    assert {edge[:2] for edge in db.edges()} == {("parent_b", "test_role"), ("test_role", "child_b")}


@pytest.mark.parametrize("encryption", ["scram-sha-256", "server"])
def test_a_verifier_goes_through_unchanged_in_both_modes(db: Database, encryption: str) -> None:
    db.sql("CREATE ROLE model PASSWORD 'securepassword'")
    verifier = db.verifier("model")
    role = {"name": "test_role", "password": verifier, "password_encryption": encryption}
    db.converge({"roles": [role]}, **KEY)
    assert db.verifier("test_role") == verifier
    assert db.logs_in("test_role", "securepassword")


def test_the_server_hashes_by_its_own_setting(db: Database) -> None:
    db.sql(f"ALTER DATABASE {db.name} SET password_encryption = 'md5'")
    role = {"name": "test_role", "password": "securepassword"}
    db.converge({"roles": [{**role, "password_encryption": "server"}]}, **KEY)
    assert str(db.verifier("test_role")).startswith("md5")
    db.converge({"roles": [role]}, **KEY)
    assert str(db.verifier("test_role")).startswith("SCRAM-SHA-256$")


def test_a_lost_key_applies_every_password_once(db: Database) -> None:
    roles = [{"name": name, "password": f"password of {name}"} for name in ("a_role", "b_role")]
    db.converge({"roles": roles}, **KEY)
    result = db.converge({"roles": roles}, fingerprint_key="another key of the same test")
    assert result.summary["passwords"] == {"set": 2}


@pytest.mark.parametrize("flag", ["superuser", "replication", "bypassrls"])
def test_an_admin_without_superuser_cannot_give_these_flags(db: Database, flag: str) -> None:
    db.sql("CREATE ROLE admin_login LOGIN CREATEROLE")
    result = db.fails(
        {"roles": [{"name": "test_role", flag: True}]}, "insufficient_privilege", login_user="admin_login"
    )
    assert any(problem["role"] == "test_role" and flag.upper() in str(problem).upper() for problem in result.problems)


def test_an_admin_alters_what_it_made_and_from_16_on_nothing_else(db: Database) -> None:
    db.sql("CREATE ROLE admin_login LOGIN CREATEROLE", "CREATE ROLE other_role")
    options = {"login_user": "admin_login", "fingerprint_store": "comment", **KEY}
    own = {"name": "own_role", "password": "securepassword"}
    db.converge({"roles": [own]}, **options)
    assert db.logs_in("own_role", "securepassword")
    db.converge({"roles": [{**own, "connection_limit": 3}]}, **options)
    other = {"roles": [{"name": "other_role", "connection_limit": 3}]}
    if db.version >= 16:
        db.fails(other, "insufficient_privilege", "other_role", **options)
        db.sql("GRANT other_role TO admin_login WITH ADMIN TRUE, INHERIT FALSE, SET FALSE")
    db.converge(other, **options)
