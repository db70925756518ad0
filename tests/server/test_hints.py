# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A hint is what people write next: following it helps, and nobody gets more than they asked for."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Database

ALL_BEFORE_17 = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]


@pytest.mark.versions(max=16)
@pytest.mark.parametrize("section", ["grants", "default_privileges"])
@pytest.mark.parametrize(
    ("others", "hint"),
    [
        ([], "Leave this rule out for this server."),
        (["SELECT"], "Leave it out for this server."),
        (ALL_BEFORE_17, "Leave it out for this server, or write ALL, which means the rest of the rule here."),
    ],
)
def test_a_privilege_of_a_later_version_is_not_exchanged_for_all(
    db: Database, section: str, others: list[str], hint: str
) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t ()")
    rules: dict[str, Any] = {
        "grants": [{"role": "r", "privileges": [*others, "MAINTAIN"], "object": {"type": "table", "schema": "s", "name": "t"}}],
        "default_privileges": [
            {"owner": "own", "schema": "s", "grant": [{"role": "r", "privileges": [*others, "MAINTAIN"], "on_type": "table"}]}
        ],
    }  # fmt: skip
    failed = db.fails(
        {"roles": [{"name": "r"}, {"name": "own"}], section: rules[section]}, "unsupported_version", "MAINTAIN"
    )
    assert [problem["hint"] for problem in failed.problems] == [hint]


@pytest.mark.versions(max=15)
def test_a_membership_without_set_is_not_answered_with_an_attribute(db: Database) -> None:
    manifest = "roles: [{name: g, members: [{name: m, set: false}]}, {name: m}]"
    failed = db.fails(manifest, "unsupported_version", "set: false needs PostgreSQL 16")
    assert failed.problems[0]["hint"] == (
        "No option or attribute keeps a member from SET ROLE here: leave the option out if m may do that, else the membership."
    )


@pytest.mark.versions(max=15)
@pytest.mark.parametrize(("member", "option"), [("m", "false"), ("m, inherit: false", "true")])
def test_an_option_that_contradicts_the_attribute_names_the_attribute(db: Database, member: str, option: str) -> None:
    manifest = f"roles: [{{name: g, members: [{{name: m, inherit: {option}}}]}}, {{name: %s}}]"
    failed = db.fails(manifest % member, "unsupported_version", "contradicts")
    does = "does not inherit" if option == "true" else "inherits"
    assert failed.problems[0]["hint"] == (
        f"Give the role m inherit: {option}, which counts for all its memberships; or leave the option out: m {does}."
    )
    db.converge(manifest % f"m, inherit: {option}")


@pytest.mark.parametrize("retirement", [{}, {"drop_owned": True}])
def test_the_only_superuser_is_not_answered_with_another_one(db: Database, retirement: dict[str, Any]) -> None:
    failed = db.fails(
        {"retirements": [{"role": "postgres", **retirement}]}, "self_protection", "which is never dropped"
    )
    assert [problem["hint"] for problem in failed.problems if "superuser" in problem["message"]] == [None]


# What an admin who is no superuser lacks: each hint is run as it stands.

ON_A_TABLE = """
    roles: [{name: r}, {name: o, external: true}]
    grants: [{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}]
    default_privileges: [{owner: o, grant: [{role: r, privileges: [SELECT], on_type: table}]}]
"""


def _an_admin(db: Database, *more: str, attributes: str = "") -> None:
    """A CREATEROLE login that owns the database and has made ``r``, and a role ``o`` that owns a table."""
    db.sql(f"CREATE ROLE adm LOGIN CREATEROLE {attributes}; ALTER DATABASE {db.name} OWNER TO adm")
    db.connect(user="adm").execute("CREATE ROLE r; CREATE ROLE o")
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO o; ALTER SCHEMA s OWNER TO o", *more)


def _hints(db: Database, manifest: str) -> list[str]:
    failed = db.fails(manifest, "insufficient_privilege", login_user="adm")
    return [problem["hint"] for problem in failed.problems]


def _follow(db: Database, hints: list[str]) -> None:
    for hint in hints:
        db.sql(hint.partition(", or: ")[2] or hint)


@pytest.mark.parametrize("attributes", ["", "NOINHERIT"])
def test_the_owner_of_an_object_is_granted_so_that_it_counts(db: Database, attributes: str) -> None:
    """A superuser's GRANT meets the row that PostgreSQL 16 gave to the creator, and leaves what it does not name."""
    _an_admin(db, attributes=attributes)
    manifest = ON_A_TABLE.partition("    default_privileges")[0]
    _follow(db, _hints(db, manifest))
    db.converge(manifest, login_user="adm")


@pytest.mark.parametrize("attributes", ["", "NOINHERIT"])
def test_what_has_to_be_inherited_is_inherited_after_the_hint(db: Database, attributes: str) -> None:
    """Before PostgreSQL 16 the member's own attribute decides."""
    _an_admin(db, attributes=attributes)
    manifest = "roles: [{name: r}]\nretirements: [{role: o, reassign_owned_to: r, drop_owned: true}]"
    _follow(db, _hints(db, manifest))
    db.converge(manifest, login_user="adm")


def test_a_superuser_is_granted_to_nobody(db: Database) -> None:
    _an_admin(db, "ALTER TABLE s.t OWNER TO postgres", "ALTER SCHEMA s OWNER TO postgres")
    manifest = ON_A_TABLE.replace("name: o,", "name: postgres,").replace("owner: o", "owner: postgres")
    manifest += "    schemas: [{name: s, owner: r}, {name: n, owner: postgres}]"
    for hint in _hints(db, manifest):
        assert "superuser" in hint
        assert "GRANT" not in hint


def test_no_circle_is_advised(db: Database) -> None:
    _an_admin(db, "REVOKE o FROM adm", "GRANT adm TO o")
    manifest = ON_A_TABLE + "    schemas: [{name: s, owner: r}, {name: n, owner: o}]"
    for hint in _hints(db, manifest):
        assert "superuser" in hint
        assert "GRANT" not in hint


@pytest.mark.versions(min=16)
def test_a_grantor_that_is_a_member_of_the_executor_is_not_granted_to_it(db: Database) -> None:
    _an_admin(db, "REVOKE o FROM adm", "GRANT adm TO o", "GRANT r TO o WITH ADMIN OPTION", "CREATE ROLE m",
              "SET ROLE o; GRANT r TO m; RESET ROLE")  # fmt: skip
    manifest = "roles: [{name: r, members: [{name: o, admin: true}]}, {name: o, external: true}]"
    for hint in _hints(db, manifest):
        assert "superuser" in hint
        assert "GRANT" not in hint


def test_an_owner_that_the_run_makes_cannot_be_granted_yet(db: Database) -> None:
    _an_admin(db)
    manifest = """
        roles: [{name: r}, {name: later}]
        schemas: [{name: n, owner: later}]
        grants: [{role: r, privileges: [USAGE], object: {type: schema, name: n}}]
    """
    for hint in _hints(db, manifest):
        assert "GRANT" not in hint
        assert hint.lower().endswith("declare adm as a member of later in memberships")
    db.converge(
        manifest.rstrip()
        + "\n        memberships: [{role: later, members: [{name: adm}]}]\n        assume_roles: [adm]",
        login_user="adm",
    )


def test_the_owner_of_the_database_stands_for_pg_database_owner(db: Database) -> None:
    """That role takes no members: whoever is to have its privileges gets those of the owner."""
    _an_admin(db, f"CREATE ROLE dbo; ALTER DATABASE {db.name} OWNER TO dbo; ALTER SCHEMA s OWNER TO pg_database_owner")
    manifest = """
        roles: [{name: r}]
        grants: [{role: r, privileges: [USAGE], object: {type: schema, name: s}}]
    """
    _follow(db, _hints(db, manifest))
    db.converge(manifest, login_user="adm")


@pytest.mark.versions(min=16)
def test_one_hint_does_not_take_back_what_another_gave(db: Database) -> None:
    """ADMIN OPTION on the role that goes, and its privileges: both are options of one membership."""
    _an_admin(db, "GRANT r TO o WITH ADMIN OPTION; CREATE ROLE m; SET ROLE o; GRANT r TO m; RESET ROLE",
              "REVOKE o FROM adm; ALTER TABLE s.t OWNER TO adm; ALTER SCHEMA s OWNER TO adm")  # fmt: skip
    manifest = "roles: [{name: r, members: []}, {name: m, external: true}]\nretirements: [{role: o}]"
    hints = [hint for hint in _hints(db, manifest) if "GRANT" in hint]
    assert 'GRANT "o" TO "adm" WITH ADMIN TRUE' in hints
    _follow(db, hints)
    left = db.reconcile(manifest, check=True, login_user="adm")
    assert not [problem for problem in left.problems if '"o"' in str(problem["hint"])], left.text


@pytest.mark.versions(min=16)
def test_admin_option_beside_a_membership_keeps_its_options(db: Database) -> None:
    _an_admin(db, "REVOKE r FROM adm; GRANT r TO adm WITH INHERIT TRUE, SET FALSE")
    manifest = "roles: [{name: r, connection_limit: 3}]"
    assert _hints(db, manifest) == ['GRANT "r" TO "adm" WITH ADMIN TRUE']


@pytest.mark.parametrize("managed", [True, False])
def test_what_the_plan_revokes_has_to_be_declared(db: Database, managed: bool) -> None:
    """The heir needs CREATE where it is to own a function, and a manifest that manages the schema takes it away."""
    _an_admin(db, "CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION s.f() OWNER TO o",
              "ALTER SCHEMA s OWNER TO adm; GRANT o, r TO adm" + (" WITH INHERIT TRUE, SET TRUE" if db.version >= 16 else ""))  # fmt: skip
    manifest = "roles: [{name: r, members: [{name: adm}]}, {name: adm, external: true}]\nretirements: [{role: o, reassign_owned_to: r}]"
    if managed:
        manifest += "\nschemas: [{name: s, owner: adm}]"
    declare = "declare CREATE on schema s for r in grants"
    assert _hints(db, manifest) == [f'GRANT CREATE ON SCHEMA "s" TO "r"; or {declare}']
    db.sql('GRANT CREATE ON SCHEMA "s" TO "r"')
    if managed:
        assert _hints(db, manifest) == [f"{declare.capitalize().replace('create', 'CREATE')}: the plan revokes it"]
        manifest += "\ngrants: [{role: r, privileges: [CREATE], object: {type: schema, name: s}}]"
    db.converge(manifest, login_user="adm")
