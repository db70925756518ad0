# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases GRA and OWN: grantors, grant options, owners and NULL ACLs."""

from __future__ import annotations

import re

import pytest
from harness import Database

R = "roles: [{name: r}]\nschemas: [{name: s}]\n"
SELECT_T = "grants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}]\n"


def onward(db: Database) -> None:
    """d has SELECT with grant option from the owner o, and gave it on to r."""
    db.sql("CREATE ROLE o; CREATE ROLE d; CREATE ROLE r; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO PUBLIC")
    db.sql("CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO o; GRANT SELECT ON s.t TO d WITH GRANT OPTION")
    db.sql("SET ROLE d; GRANT SELECT ON s.t TO r; RESET ROLE")
    assert db.acl("s.t") == {f"o={db.full}/o", "d=r*/o", "r=r/d"}


def test_GRA_03_revoking_from_someone_who_granted_onward(db: Database) -> None:
    onward(db)
    result = db.converge("roles: [{name: r}, {name: d}, {name: o}]\nschemas: [{name: s}]\n" + SELECT_T)
    assert db.acl("s.t") == {f"o={db.full}/o", "r=r/o"}
    # r never goes without.
    first = next(n for n, statement in enumerate(result.sql) if "REVOKE" in statement)
    assert any(re.match(r"GRANT SELECT ON .*r", statement) for statement in result.sql[:first])


@pytest.mark.parametrize("option", [None, "revoke", "keep"])
def test_GRA_03_the_dependent_is_an_undeclared_stranger(db: Database, option: str | None) -> None:
    """It goes with a line of its own in the plan, or is kept by the owner's grant, but never silently lost."""
    onward(db)
    result = db.converge("roles: [{name: d}, {name: o}]\nschemas: [{name: s}]", undeclared_grantees=option)
    if option == "keep":
        assert db.acl("s.t") == {f"o={db.full}/o", "r=r/o"}
        return
    assert db.acl("s.t") == {f"o={db.full}/o"}
    revokes = result.matching("REVOKE")
    assert any(re.search(r'FROM "?r"?', statement) for statement in revokes)
    assert result.summary["grants"] == {"granted": 0, "revoked": 2}


def test_GRA_03_the_dependent_is_on_an_unmanaged_object(db: Database) -> None:
    onward(db)
    absent = SELECT_T.replace("role: r", "role: d").replace("}}]", "}, ensure: absent}]")
    result = db.fails("roles: [{name: d}]\n" + absent, "dependent_privileges", "d", "r", "t")
    assert result.problems
    # With r's privilege declared the object is managed, and everything settles.
    both = SELECT_T.removesuffix("]\n") + ", " + absent.removeprefix("grants: [")
    db.converge("roles: [{name: d}, {name: r}]\n" + both)
    assert db.acl("s.t") == {f"o={db.full}/o", "r=r/o"}


def test_GRA_03_a_surplus_entry_of_a_foreign_grantor(db: Database) -> None:
    db.sql("CREATE ROLE d; CREATE ROLE r; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO PUBLIC; CREATE TABLE s.t (a int)")
    db.sql("GRANT SELECT ON s.t TO d WITH GRANT OPTION; SET ROLE d; GRANT SELECT ON s.t TO r; RESET ROLE")
    manifest = (
        "roles: [{name: r}, {name: d}]\nschemas: [{name: s}]\n"
        "grants: [{role: d, privileges: [SELECT], object: {type: table, schema: s, name: t}, with_grant_option: true}]\n"
    )
    # Nothing has to go where nobody is taken anything from.
    db.silent(manifest, reconciliation_mode="additive")
    result = db.converge(manifest)
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "d=r*/postgres"}
    # In its grantor's name, and back by name, because RESET ROLE would go to the login.
    assert result.sql[0].replace('"', "") == "SET LOCAL ROLE d"
    assert not result.matching("RESET")


def test_GRA_a_foreign_grantors_entry_counts_as_held(db: Database) -> None:
    db.sql("CREATE ROLE d; CREATE ROLE r; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO PUBLIC; CREATE TABLE s.t (a int)")
    db.sql("GRANT SELECT ON s.t TO d WITH GRANT OPTION; SET ROLE d; GRANT SELECT ON s.t TO r; RESET ROLE")
    manifest = """
        roles: [{name: r}, {name: d}]
        schemas: [{name: s}]
        grants:
          - {role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}
          - {role: d, privileges: [SELECT], object: {type: table, schema: s, name: t}, with_grant_option: true}
        """
    db.silent(manifest)
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "d=r*/postgres", "r=r/d"}
    # Without the option declared it goes, and what hung on it is the owner's.
    db.converge(manifest.replace(", with_grant_option: true", ""))
    assert db.acl("s.t") == {f"postgres={db.full}/postgres", "d=r/postgres", "r=r/postgres"}


@pytest.mark.parametrize("mode", ["authoritative", "adopt", "additive"])
def test_GRA_04_a_surplus_grant_option(db: Database, mode: str) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); GRANT SELECT ON s.t TO r WITH GRANT OPTION")
    result = db.converge(R + SELECT_T, reconciliation_mode=mode)
    if mode == "additive":
        assert result.sql == []
        assert db.acl("s.t") == {f"postgres={db.full}/postgres", "r=r*/postgres"}
        assert [item["privileges"] for item in result.held(reason="mode", role="r")] == [["SELECT"]]
    else:
        assert len(result.sql) == 1
        assert result.matching("^REVOKE GRANT OPTION FOR SELECT ON ")
        assert db.acl("s.t") == {f"postgres={db.full}/postgres", "r=r/postgres"}


def test_GRA_04_a_surplus_privilege_goes_with_its_option(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); GRANT SELECT ON s.t TO r WITH GRANT OPTION")
    db.converge(R)
    assert db.acl("s.t") == {f"postgres={db.full}/postgres"}


def test_GRA_06_one_foreign_owned_object(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE ROLE ex LOGIN; CREATE SCHEMA s AUTHORIZATION ex; CREATE TABLE s.ext (a int)",
        "SET ROLE ex; CREATE TABLE s.mine (a int); RESET ROLE",
    )
    manifest = (
        "schemas: [{name: s}]\nassume_roles: [r]\ngrants: [{role: r, privileges: [SELECT], object: {type: table, "
        'schema: s, name: "*"}}]'
    )
    # Found before the first statement, with the object and its owner, in check mode too.
    with db.statements() as sent:
        result = db.fails(manifest, "insufficient_privilege", "s.ext", "postgres", login_user="ex")
    assert not [statement for statement in sent if re.match("GRANT|REVOKE", statement)]
    assert not result.get("sqlstate")
    assert "mine" not in result.text
    db.sql("ALTER TABLE s.ext OWNER TO ex")
    db.converge(manifest, login_user="ex")
    assert "r=r/ex" in (db.acl("s.ext") or ())


def test_OWN_04_a_wildcard_for_the_owner_of_some(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.own (a int); ALTER TABLE s.own OWNER TO r; "
        "CREATE TABLE s.o (a int)"
    )
    result = db.converge(R + 'grants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: "*"}}]')
    assert len(result.sql) == 1
    assert db.acl("s.own") is None
    assert db.acl("s.o") == {f"postgres={db.full}/postgres", "r=r/postgres"}


def test_OWN_04_owners_rights_are_never_surplus(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA s AUTHORIZATION x; CREATE TABLE s.t (a int); "
        "ALTER TABLE s.t OWNER TO x"
    )
    db.sql("GRANT SELECT ON s.t TO r; REVOKE SELECT ON s.t FROM r")
    assert db.acl("s.t") == {f"x={db.full}/x"}
    db.silent("roles: [{name: r}, {name: x}]\nschemas: [{name: s}]")


def test_OWN_an_owner_that_lost_a_declared_privilege_gets_it_back(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO r; REVOKE ALL ON s.t FROM r"
    )
    assert db.acl("s.t") == set()
    # Undeclared, what it lost is not the run's business.
    db.silent(R)
    db.converge(R + SELECT_T)
    assert db.acl("s.t") == {"r=r/r"}


OWN_05 = """
default_owner: z
roles: [{name: z}, {name: w}, {name: r}]
profiles: {p: {default_privileges: [{privileges: [SELECT], on_type: table}]}}
schemas: [{name: s, owner: z, profiles: [p]}]
"""


@pytest.mark.parametrize("mode", ["authoritative", "adopt", "adopt with owners", "additive"])
def test_OWN_05_an_existing_schema_with_another_owner(db: Database, mode: str) -> None:
    db.sql("CREATE ROLE z; CREATE ROLE w; CREATE ROLE r; CREATE SCHEMA s AUTHORIZATION w")
    db.sql("CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO w")
    options = {"adopt_schema_owners": True} if mode == "adopt with owners" else {}
    result = db.converge(OWN_05, reconciliation_mode=mode.split(maxsplit=1)[0], **options)
    owner = db.value("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 's'")
    assert db.value("SELECT relowner::regrole::text FROM pg_class WHERE oid = 's.t'::regclass") == "w"
    if mode in ("authoritative", "adopt with owners"):
        assert owner == "z"
        assert result.summary["schemas"] == {"created": 0, "owner_changed": 1}
        assert ("z", "s", "r") in db.defaults()
        return
    assert owner == "w"
    assert not result.matching("OWNER TO")
    assert [item for item in result.held(reason="mode") if (item["object"] or {}).get("name") == "s"]
    if mode == "additive":
        # Default privileges that need the new owner wait.
        assert db.defaults() == {}


def test_OWN_05_an_owner_change_merges_entries(db: Database) -> None:
    db.sql(
        "CREATE ROLE z; CREATE ROLE w; CREATE ROLE r; CREATE SCHEMA s AUTHORIZATION w; GRANT USAGE ON SCHEMA s TO z, r"
    )
    db.converge(
        """
        roles: [{name: z}, {name: w}, {name: r}]
        schemas: [{name: s, owner: z}]
        grants: [{role: r, privileges: [USAGE], object: {type: schema, name: s}}]
        """
    )
    assert db.acl("s", "schema") == {"z=UC/z", "r=U/z"}


def test_OWN_05_default_owner_moves_no_schema(db: Database) -> None:
    db.sql("CREATE ROLE z; CREATE SCHEMA s")
    result = db.converge("default_owner: z\nroles: [{name: z}]\nschemas: [{name: s}, {name: n}]")
    assert dict(db.query("SELECT nspname, nspowner::regrole::text FROM pg_namespace WHERE nspname IN ('s', 'n')")) == {
        "s": "postgres",
        "n": "z",
    }
    assert result.summary["schemas"] == {"created": 1, "owner_changed": 0}


def test_OWN_06_objects_of_an_external_role(db: Database) -> None:
    db.sql(
        "CREATE ROLE ext LOGIN CREATEDB CONNECTION LIMIT 3; CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int)"
    )
    db.sql("ALTER TABLE s.t OWNER TO ext")
    db.converge(
        """
        roles: [{name: ext, external: true}, {name: r}]
        schemas: [{name: s}]
        grants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: "*"}}]
        """
    )
    assert db.acl("s.t") == {f"ext={db.full}/ext", "r=r/ext"}
    assert db.attribute("ext", "rolconnlimit") == 3
