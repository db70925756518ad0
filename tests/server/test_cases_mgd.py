# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases MGD: executors that are no superusers, and stand-ins for managed services on every version.

There is no such service to test on. A stand-in has what matters of one: an administrator with CREATEROLE and CREATEDB, a
role of the provider's that it is a member of, a superuser of the provider's behind both, and a ``pg_authid`` that cannot
be read.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from harness import Database


def test_MGD_01_no_helper_membership(db: Database) -> None:
    db.sql(
        "CREATE ROLE adm LOGIN CREATEROLE; CREATE ROLE o; CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int)",
        "ALTER TABLE s.t OWNER TO o; GRANT USAGE ON SCHEMA s TO adm; GRANT SELECT ON s.t TO adm WITH GRANT OPTION",
    )
    before = db.edges()
    grant = "grants: [{role: r, privileges: [%s], object: {type: table, schema: s, name: t}}]"
    # With the grant option it works as the executor itself. Additive, so that nothing is about adm's own privileges.
    result = db.reconcile("assume_roles: [r]\n" + grant % "SELECT", login_user="adm", reconciliation_mode="additive")
    assert not result.failed, result
    assert "r=r/adm" in (db.acl("s.t") or ())
    assert db.edges() == before
    snapshot = db.snapshot()
    result = db.reconcile(
        "assume_roles: [r]\n" + grant % "SELECT, INSERT", login_user="adm", reconciliation_mode="additive"
    )
    assert result.failed
    assert "t" in result.text
    assert db.snapshot() == snapshot


MGD_02 = """
    roles: [{name: g}, {name: m, connection_limit: 3}]
    memberships: [{role: g, members: [{name: m}]}]
"""


@pytest.mark.versions(min=16)
def test_MGD_02_createrole_from_16_on(db: Database) -> None:
    db.sql("CREATE ROLE cr LOGIN CREATEROLE; CREATE ROLE g; CREATE ROLE m")
    result = db.fails(MGD_02, "insufficient_privilege", login_user="cr")
    assert [(problem["role"], problem["object"], problem["hint"]) for problem in result.problems] == [
        ("m", "role m", 'GRANT "m" TO "cr" WITH ADMIN TRUE, INHERIT FALSE, SET FALSE'),
        ("m", "role g", 'GRANT "g" TO "cr" WITH ADMIN TRUE, INHERIT FALSE, SET FALSE'),
    ]
    for problem in result.problems:
        db.sql(problem["hint"])
    db.converge(MGD_02, login_user="cr")
    # Roles that it creates itself it can manage at once.
    db.converge(
        "roles: [{name: g2}, {name: m2, connection_limit: 3}]\nmemberships: [{role: g2, members: [{name: m2}]}]",
        login_user="cr",
    )


@pytest.mark.versions(max=15)
def test_MGD_02_createrole_before_16(db: Database) -> None:
    db.sql("CREATE ROLE cr LOGIN CREATEROLE; CREATE ROLE g; CREATE ROLE m")
    db.converge(MGD_02, login_user="cr")


def test_MGD_05_through_session_role(db: Database) -> None:
    db.sql('CREATE ROLE "Bo""ss" CREATEROLE; CREATE ROLE lo LOGIN NOINHERIT; GRANT "Bo""ss" TO lo')
    result = db.converge("roles: [{name: n, login: true}]", login_user="lo", session_role='Bo"ss')
    assert db.attribute("n", "rolcanlogin") is True
    assert result.server["executor"]
    db.fails("roles: [{name: n2}]", ("insufficient_privilege", "object_missing", "server_error", "connection_failed"), "absent_role",
             login_user="lo", session_role="absent_role")  # fmt: skip
    db.sql("CREATE ROLE stranger")
    db.fails("roles: [{name: n2}]", ("insufficient_privilege", "server_error", "connection_failed"), "stranger", login_user="lo",
             session_role="stranger")  # fmt: skip


def test_MGD_05_the_owner_is_the_grantor(db: Database) -> None:
    db.sql("CREATE ROLE boss SUPERUSER; CREATE ROLE lo LOGIN; GRANT boss TO lo; CREATE ROLE r; CREATE SCHEMA s")
    db.sql("CREATE ROLE o; CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO o")
    db.converge(
        "roles: [{name: r}]\nschemas: [{name: s}]\ngrants: [{role: r, privileges: [SELECT], object: {type: table, "
        "schema: s, name: t}}]",
        login_user="lo",
        session_role="boss",
    )
    assert "r=r/o" in (db.acl("s.t") or ())


MGD_06 = """
    roles: [{name: k}, {name: r}]
    schemas: [{name: s}, {name: ks, owner: k}]
    default_privileges: [{owner: k, schema: s, grant: [{role: r, privileges: [SELECT], on_type: table}]}]
"""


@pytest.mark.versions(min=16)
@pytest.mark.parametrize("value", ["set, inherit", "set"])
def test_MGD_06_createrole_self_grant(db: Database, value: str) -> None:
    db.sql(
        f"CREATE ROLE cr LOGIN CREATEROLE; ALTER ROLE cr SET createrole_self_grant = '{value}'; "
        f"CREATE SCHEMA s AUTHORIZATION cr; GRANT CREATE ON DATABASE {db.name} TO cr"
    )
    result = db.converge(MGD_06, login_user="cr")
    assert ("k", "s", "r") in db.defaults()
    # With SET alone it works in the owner's name.
    assert bool(result.matching("SET LOCAL ROLE")) is (value == "set")
    assert db.edges("k") == {
        ("k", "cr", "postgres", True, False, False),
        ("k", "cr", "cr", False, value != "set", True),
    }


@pytest.mark.versions(min=16)
@pytest.mark.parametrize("session_role", [None, "boss"])
def test_MGD_06_without_the_setting(db: Database, session_role: str | None) -> None:
    """Refused, with the setting that helps: it is the login's, whatever role it has set."""
    db.sql(
        'CREATE ROLE "c R" LOGIN CREATEROLE; CREATE ROLE boss CREATEROLE; GRANT boss TO "c R";'
        f'CREATE SCHEMA s AUTHORIZATION "c R"; GRANT CREATE ON DATABASE {db.name} TO "c R", boss'
    )
    result = db.fails(MGD_06, "insufficient_privilege", login_user="c R", session_role=session_role)
    assert {problem["object"] for problem in result.problems} == {"schema ks", "default privileges of k"}
    hints = {problem["hint"].split("; or ")[0] for problem in result.problems}
    assert hints == {"ALTER ROLE \"c R\" SET createrole_self_grant = 'set, inherit'"}
    db.sql(*hints)
    db.converge(MGD_06, login_user="c R", session_role=session_role)


@pytest.mark.parametrize("setting", [False, True])
def test_MGD_06_a_declared_membership_helps_too(db: Database, setting: bool) -> None:
    """Before PostgreSQL 16 nothing else does. The module itself grants its executor no role."""
    db.sql(
        f"CREATE ROLE cr LOGIN CREATEROLE; CREATE SCHEMA s AUTHORIZATION cr; GRANT CREATE ON DATABASE {db.name} TO cr"
    )
    if setting and db.version >= 16:
        db.sql("ALTER ROLE cr SET createrole_self_grant = 'set'")
    if not setting or db.version < 16:
        result = db.fails(MGD_06, "insufficient_privilege", login_user="cr")
        assert all("eclare cr as a member of k in memberships" in problem["hint"] for problem in result.problems)
    cr = "roles: [{name: cr, external: true}, {name: k}, {name: r}]"
    for admin in ("false", "true"):
        manifest = MGD_06.replace("roles: [{name: k}, {name: r}]", cr)
        manifest += f"    memberships: [{{role: k, members: [{{name: cr, admin: {admin}, OPTIONS}}]}}]"
        manifest = manifest.replace(", OPTIONS", ", inherit: true, set: true" if db.version >= 16 else "")
        db.converge(manifest, login_user="cr")
        db.sql("DROP SCHEMA ks; DROP OWNED BY k; DROP OWNED BY r; DROP ROLE k, r")


def test_MGD_07_schemas_are_asked_for_by_oid(db: Database) -> None:
    with db.statements() as sent:
        db.reconcile('scope: {schemas: ["*_*"]}', check=True)
    assert not [statement for statement in sent if "has_schema_privilege(nspname" in statement.replace(" ", "")]


def test_MGD_08_found_before_the_server_is_asked(db: Database) -> None:
    db.sql("CREATE ROLE cr LOGIN CREATEROLE; CREATE ROLE r")
    result = db.fails(
        "roles: [{name: n1}, {name: n2, superuser: true}]", "insufficient_privilege", "n2", "SUPERUSER", login_user="cr"
    )
    assert not result.get("sqlstate")
    assert result.plan, "a plan was made, so it is shown"


def test_MGD_08_a_statement_that_the_server_refuses(db: Database) -> None:
    """A rule of the provider's that nobody can foretell: its text is passed on, and the whole run is rolled back."""
    db.sql("CREATE ROLE cr LOGIN CREATEROLE; CREATE SCHEMA s AUTHORIZATION cr")
    db.sql(
        "CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE insufficient_privilege "
        "USING MESSAGE = 'not on this service', DETAIL = 'schema s'; END $$",
        "CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('GRANT') EXECUTE FUNCTION public.refuse()",
    )
    try:
        result = db.fails(
            "roles: [{name: n}]\nschemas: [{name: s}]\n"
            "grants: [{role: n, privileges: [USAGE], object: {type: schema, name: s}}]",
            "insufficient_privilege",
            "not on this service",
            check_too=False,
            login_user="cr",
        )
    finally:
        db.sql("DROP EVENT TRIGGER refuse")
    assert result.sqlstate == "42501"
    assert result.statement == 'GRANT USAGE ON SCHEMA "s" TO "n"'
    assert result.statement in result.plan


# Stand-ins


class Service(NamedTuple):
    """A service: the provider's superuser, the role it gives administrators, and a role for some feature."""

    superuser: str
    administrators: str
    feature: str


SERVICES = [
    pytest.param(Service("rdsadmin", "rds_superuser", "rds_iam"), id="rds"),
    pytest.param(Service("cloudsqladmin", "cloudsqlsuperuser", "cloudsqliamuser"), id="cloudsql"),
    pytest.param(Service("azuresu", "azure_pg_admin", "azure_pg_admin"), id="azure"),
]


def stand_in(db: Database, service: Service) -> None:
    """The service, and an administrator called master who owns the database and a schema."""
    admin = " WITH ADMIN OPTION" if db.version < 16 else " WITH ADMIN TRUE"
    db.sql(
        f"CREATE ROLE {service.superuser} SUPERUSER LOGIN; CREATE ROLE {service.administrators} CREATEROLE CREATEDB",
        "CREATE ROLE master LOGIN CREATEROLE CREATEDB",
        f"SET ROLE {service.superuser}; GRANT {service.administrators} TO master; GRANT pg_monitor TO "
        f"{service.administrators}{admin}; RESET ROLE; ALTER DATABASE {db.name} OWNER TO master",
    )
    if service.feature != service.administrators:
        db.sql(f"CREATE ROLE {service.feature}; GRANT {service.feature} TO {service.administrators}{admin}")
    db.sql("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")


MANAGED = """
    roles: [{name: readers}, {name: app, login: true}, {name: owner}]
    memberships:
      - {role: readers, members: [{name: app}]}
      - {role: owner, members: [{name: master}]}
      - {role: pg_monitor, members: [{name: app}]}
    assume_roles: [master]
    default_owner: owner
    schemas: [{name: shop}]
    grants: [{role: readers, privileges: [USAGE], object: {type: schema, name: shop}}]
    default_privileges: [{owner: owner, schema: shop, grant: [{role: readers, privileges: [SELECT], on_type: table}]}]
"""


@pytest.mark.parametrize("service", SERVICES)
def test_MGD_an_administrator_without_superuser_runs_everything(db: Database, service: Service) -> None:
    stand_in(db, service)
    provider = db.edges(service.administrators)
    result = db.converge(MANAGED, login_user="master")
    assert db.members("readers") >= {"app"}
    assert ("owner", "shop", "r") in db.defaults()
    assert db.edges(service.administrators) == provider
    names = (service.superuser, service.administrators, service.feature)
    told = [statement.partition(" GRANTED BY ")[0] for statement in result.sql]
    # As a grantor it is named where the login has ADMIN through it, as PostgreSQL itself would choose.
    assert not [statement for statement in told for name in names if f'"{name}"' in statement]


@pytest.mark.parametrize("service", SERVICES)
def test_MGD_memberships_that_the_provider_made_stay(db: Database, service: Service) -> None:
    """Also in a managed group, and where the provider's roles are members of it."""
    stand_in(db, service)
    db.converge("roles: [{name: app}, {name: dba}]", login_user="master")
    db.sql(f"GRANT app TO {service.administrators}, {service.superuser}; GRANT {service.administrators} TO dba")
    before = db.edges()
    result = db.silent("roles: [{name: app}, {name: dba}]", login_user="master")
    assert db.edges() == before
    assert {item["role"] for item in result.held(reason="provider")} == {service.administrators, service.superuser}
    assert {item["role"] for item in result.held(reason="unmanaged_membership")} == {"dba"}


@pytest.mark.parametrize("service", SERVICES)
def test_MGD_provider_roles_are_not_altered(db: Database, service: Service) -> None:
    """Not even through scope and an authoritative manifest, and nothing that no rule names is revoked from them."""
    stand_in(db, service)
    db.sql(
        f"CREATE SCHEMA shop AUTHORIZATION master; GRANT USAGE ON SCHEMA shop TO {service.administrators}; "
        f"COMMENT ON ROLE {service.administrators} IS 'by the provider'"
    )
    result = db.silent("schemas: [{name: shop}]", login_user="master")
    assert {item["role"] for item in result.held(reason="provider")} == {service.administrators}


@pytest.mark.parametrize("service", SERVICES)
def test_MGD_a_feature_role_is_given_where_the_service_lets(db: Database, service: Service) -> None:
    stand_in(db, service)
    manifest = (
        f"roles: [{{name: app, login: true}}]\nmemberships: [{{role: {service.feature}, members: [{{name: app}}]}}]"
    )
    if service.feature == service.administrators and db.version >= 16:
        # Nobody gave the administrator ADMIN OPTION on its own group.
        db.fails(manifest, "insufficient_privilege", service.feature, "ADMIN OPTION", login_user="master")
    else:
        db.converge(manifest, login_user="master")
        assert "app" in db.members(service.feature)


@pytest.mark.parametrize("service", SERVICES)
def test_MGD_passwords_without_a_look_at_pg_authid(db: Database, service: Service) -> None:
    """The provider's table of passwords cannot be read: the fingerprint says whether there is something to send."""
    stand_in(db, service)
    manifest = {"roles": [{"name": "app", "login": True, "password": "s3cret"}]}
    options = {"fingerprint_key": "k" * 32, "login_user": "master"}
    with db.statements() as sent:
        for update in ("on_change", "on_drift"):
            result = db.reconcile(manifest, update_password=update, **options)
            assert not result.failed, result
            assert bool(result.sql) is (update == "on_change")
    assert not [statement for statement in sent if "FROM pg_authid" in statement or "FROM pg_shadow" in statement]
    db.fails(
        {"roles": [{"name": service.superuser, "login": True, "superuser": True, "password": "s3cret"}]},
        "insufficient_privilege",
        service.superuser,
        "superuser",
        **options,
    )
