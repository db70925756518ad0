# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nobody is locked out: the executor, its session_role, the bootstrap superuser, the last superuser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from harness import Database

#: Who runs the module: a CREATEROLE login, a superuser, a login that takes a superuser's place.
CREATOR: dict[str, Any] = {"login_user": "adm"}
ROOT: dict[str, Any] = {"login_user": "lo", "session_role": "root"}


@pytest.fixture
def world(db: Database) -> Database:
    """A CREATEROLE login, and a superuser that can only be reached through another login."""
    db.sql("CREATE ROLE adm LOGIN CREATEROLE CONNECTION LIMIT 7 VALID UNTIL '2099-01-01 UTC'")
    db.sql("CREATE ROLE root SUPERUSER CREATEROLE; CREATE ROLE lo LOGIN NOINHERIT; GRANT root TO lo")
    db.sql(f"GRANT CREATE ON DATABASE {db.name} TO adm")
    return db


@pytest.mark.parametrize(
    ("role", "fields", "executor", "words"),
    [
        ("adm", "createrole: false, login: true", CREATOR, ["CREATEROLE", "logs in as"]),
        ("adm", "login: false, createrole: true", CREATOR, ["LOGIN", "logs in as"]),
        ("adm", "login: false, createrole: false", CREATOR, ["LOGIN and lose CREATEROLE"]),
        ("adm", "login: true, createrole: true, connection_limit: 0", CREATOR, ["connection limit of 0"]),
        ("adm", "login: true, createrole: true, valid_until: '2020-01-01T00:00:00Z'", CREATOR, ["expired"]),
        ("root", "superuser: false", ROOT, ["SUPERUSER", "session_role"]),
        ("root", "superuser: true, createrole: false", ROOT, ["CREATEROLE"]),
        ("lo", "login: false", ROOT, ["LOGIN", "logs in as"]),
        ("lo", "connection_limit: 0", ROOT, ["connection limit of 0"]),
        ("postgres", "superuser: false", {}, ["SUPERUSER"]),
        ("postgres", "superuser: false", ROOT, ["SUPERUSER", "initdb"]),
        ("postgres", "login: false", ROOT, ["LOGIN", "initdb"]),
        ("postgres", "createrole: false", ROOT, ["CREATEROLE", "initdb"]),
        ("postgres", "createrole: false", CREATOR, ["CREATEROLE", "initdb"]),
    ],
)
def test_what_the_manifest_takes_by_name_is_refused(
    world: Database, role: str, fields: str, executor: dict[str, Any], words: list[str]
) -> None:
    """In check mode as well, whatever else is in the plan; and `additive` takes nothing from anybody."""
    manifest = f"roles: [{{name: {role}, {fields}}}, {{name: fresh}}]"
    mode = "adopt" if executor == CREATOR else "authoritative"
    result = world.fails(manifest, "self_protection", role, *words, reconciliation_mode=mode, **executor)
    assert (result.problems[0]["path"], result.problems[0]["role"]) == ("roles[0]", role)
    assert result.problems[0]["hint"]
    assert 'CREATE ROLE "fresh"' in result.plan
    assert not result.get("sqlstate")
    kept = world.reconcile(manifest, check=True, reconciliation_mode="additive", **executor)
    assert kept.sql == ['CREATE ROLE "fresh"'], kept
    assert kept.held(role=role)


def test_other_numbers_are_nobodys_danger(world: Database) -> None:
    """What still lets the executor in is done, as for any other role."""
    fields = "superuser: true, createrole: true, connection_limit: 0, valid_until: '2098-01-01T00:00:00Z'"
    world.converge(f"roles: [{{name: root, {fields}}}, {{name: lo, login: true, connection_limit: 2}}]", **ROOT)
    assert world.attribute("root", "rolconnlimit") == 0
    assert world.attribute("lo", "rolconnlimit") == 2
    # Connections of superusers are not limited.
    world.sql("CREATE ROLE su SUPERUSER LOGIN")
    world.converge("roles: [{name: su, login: true, superuser: true, connection_limit: 0}]", login_user="su")


def test_what_the_manifest_leaves_out_stays(world: Database) -> None:
    manifest = "roles: [{name: adm}, {name: fresh}]"
    result = world.converge(manifest, **CREATOR)
    assert result.sql == ['CREATE ROLE "fresh"']
    (item,) = result.held(reason="self_protection", role="adm")
    assert item == {
        "change": "alter_role",
        "role": "adm",
        "object": {"type": "role", "schema": None, "name": "adm", "columns": []},
        "privileges": [],
        "sql": "ALTER ROLE \"adm\" NOCREATEROLE NOLOGIN CONNECTION LIMIT -1 VALID UNTIL 'infinity'",
        "reason": "self_protection",
    }
    result = world.converge("roles: [{name: root}, {name: lo}]", **ROOT)
    assert {item["role"] for item in result.held(reason="self_protection")} == {"root", "lo"}


def test_what_it_is_already_takes_nothing_away(world: Database) -> None:
    """A declared value that holds already is no change, however odd: the executor came in with it."""
    world.sql("ALTER ROLE adm VALID UNTIL '2020-01-01 UTC'")
    role = "{name: adm, login: true, createrole: true, superuser: false, connection_limit: 7, valid_until: '2020-01-01T00:00:00Z'}"
    world.silent(f"roles: [{role}]", **CREATOR)


# ---- the last superuser


@pytest.fixture
def nobody_else(world: Database) -> Iterator[Database]:
    """No superuser can log in but `admin`: the bootstrap superuser is NOLOGIN, as some hardening guides ask."""
    world.sql("CREATE ROLE admin SUPERUSER LOGIN", "ALTER ROLE postgres NOLOGIN")
    try:
        yield world
    finally:
        world.sql("ALTER ROLE postgres LOGIN SUPERUSER")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("", "lose SUPERUSER and lose LOGIN"),
        ("login: true", "lose SUPERUSER"),
        ("superuser: true", "lose LOGIN"),
        ("superuser: false, login: true", "lose SUPERUSER"),
        ("superuser: true, login: false", "lose LOGIN"),
        ("superuser: true, login: true, valid_until: '2020-01-01T00:00:00Z'", "be expired"),
    ],
)
def test_the_last_superuser_stays_one(nobody_else: Database, fields: str, words: str) -> None:
    manifest = f"roles: [{{name: admin{', ' if fields else ''}{fields}}}]"
    result = nobody_else.fails(manifest, "self_protection", "admin", words, "no superuser", **ROOT)
    assert len(result.problems) == 1
    assert len(result.plan) == 1
    assert nobody_else.reconcile(manifest, check=True, reconciliation_mode="additive", **ROOT).sql == []


def test_a_superuser_whose_password_has_expired_is_no_other(nobody_else: Database) -> None:
    nobody_else.sql("CREATE ROLE old SUPERUSER LOGIN VALID UNTIL '2020-01-01 UTC'")
    nobody_else.fails("roles: [{name: admin}]", "self_protection", "admin", **ROOT)
    nobody_else.sql("ALTER ROLE old VALID UNTIL '2099-01-01 UTC'")
    assert nobody_else.converge("roles: [{name: admin}]", **ROOT).changed


def test_a_new_superuser_takes_the_old_ones_place(nobody_else: Database) -> None:
    manifest = "roles: [{name: admin}, {name: successor, superuser: true, login: true}]"
    result = nobody_else.converge(manifest, **ROOT)
    assert result.sql == ['CREATE ROLE "successor" SUPERUSER LOGIN', 'ALTER ROLE "admin" NOSUPERUSER NOLOGIN']


def test_two_that_would_go_together_are_both_named(nobody_else: Database) -> None:
    nobody_else.sql("CREATE ROLE second SUPERUSER LOGIN")
    result = nobody_else.fails("roles: [{name: admin}, {name: second}]", "self_protection", **ROOT)
    assert [problem["role"] for problem in result.problems] == ["admin", "second"]
    nobody_else.converge("roles: [{name: admin}]", **ROOT)


def test_a_superuser_who_runs_it_is_another(nobody_else: Database) -> None:
    nobody_else.sql("CREATE ROLE second SUPERUSER LOGIN VALID UNTIL '2020-01-01 UTC'")
    # It has just logged in, whatever its expiry says about passwords.
    nobody_else.converge("roles: [{name: admin}]", login_user="second")


@pytest.mark.versions(max=15)
def test_the_last_superuser_where_the_bootstrap_one_is_none(nobody_else: Database) -> None:
    """Up to PostgreSQL 15 the server lets anybody demote the last superuser."""
    other = nobody_else.connect(user="admin")
    try:
        other.execute("ALTER ROLE postgres NOSUPERUSER")
        manifest = "roles: [{name: admin}]"
        for check in (True, False):
            result = nobody_else.reconcile(manifest, check=check, **ROOT)
            assert result.error_code == "self_protection", result
    finally:
        other.execute("ALTER ROLE postgres SUPERUSER")


# ---- memberships


@pytest.mark.parametrize(
    ("executor", "manifest"),
    [
        ("adm", "roles: [{name: g, members: []}]"),
        ("su", "roles: [{name: g}]"),
        ("lo", "roles: [{name: g, external: true, members: []}]"),
        ("adm", "roles: [{name: adm, member_of: []}]"),
        ("lo", "roles: [{name: g}, {name: lo, member_of: [root]}, {name: root, external: true}]"),
        ("su", "roles: [{name: g, external: true}]\nmemberships: [{role: g, members: [], exclusive: true}]"),
        ("adm", "roles: [{name: g}, {name: adm}]\nmemberships: [{role: g, members: [{name: adm, admin: false}]}]"),
        ("su", "roles: [{name: g}, {name: su}]\nmemberships: [{role: g, members: [{name: su, admin: false}]}]"),
    ],
)
def test_the_executors_memberships_stay(world: Database, executor: str, manifest: str) -> None:
    world.sql("CREATE ROLE su SUPERUSER LOGIN; CREATE ROLE g")
    world.sql(f"GRANT g TO {executor} WITH ADMIN OPTION")
    before = world.edges("g")
    options: dict[str, Any] = ROOT if executor == "lo" else {"login_user": executor}
    result = world.converge(manifest, **options)
    assert world.edges("g") == before
    assert not result.matching("REVOKE")
    (item,) = result.held(change="revoke_membership", role=executor, object=_role("g"))
    assert item["reason"] == "self_protection"
    option = "ADMIN OPTION FOR " if "admin: false" in manifest else ""
    grantor = ' GRANTED BY "postgres"' if world.version >= 16 else ""
    assert item["sql"] == f'REVOKE {option}"g" FROM "{executor}"{grantor}'


@pytest.mark.versions(min=16)
@pytest.mark.parametrize("executor", ["adm", "postgres"])
def test_what_a_creator_gave_itself_stays(world: Database, executor: str) -> None:
    """`createrole_self_grant`: whoever runs the module, and whatever list leaves the creator out."""
    creator = world.connect(user="adm")
    creator.execute("SET createrole_self_grant = 'set, inherit'")
    creator.execute("CREATE ROLE made")
    before = world.edges("made")
    assert len(before) == 2
    adm = "{name: adm, login: true, createrole: true, connection_limit: 7, valid_until: '2099-01-01T00:00:00Z', member_of: []}"
    world.silent("roles: [{name: made, members: []}]", login_user=executor)
    world.silent(f"roles: [{adm}, {{name: made}}]", login_user=executor)
    assert world.edges("made") == before


def test_a_session_role_that_is_reached_through_a_group(world: Database) -> None:
    """Not the login's own membership, but the one that it hangs on."""
    world.sql("CREATE ROLE team; CREATE ROLE dba SUPERUSER; GRANT dba TO team; CREATE ROLE op LOGIN; GRANT team TO op")
    options = {"login_user": "op", "session_role": "dba"}
    manifest = "roles: [{name: dba, superuser: true, members: []}]"
    result = world.fails(manifest, "self_protection", "set session_role dba", **options)
    assert result.problems[0]["role"] == "op"
    world.sql("GRANT dba TO op")
    assert world.converge(manifest, **options).matching("REVOKE")
    assert world.members("dba") == {"op"}


# ---- CONNECT


NO_CONNECT = "grants: [{role: PUBLIC, privileges: [CONNECT], object: {type: database}, ensure: absent}]"


def test_connect_through_public(world: Database) -> None:
    result = world.fails(NO_CONNECT, "self_protection", "lo", "connect to this database", **ROOT)
    assert result.plan == [f'REVOKE CONNECT ON DATABASE "{world.name}" FROM PUBLIC']
    # Declared in the same run, or held in another way, it is no obstacle.
    more = f"roles: [{{name: lo, login: true}}]\n{NO_CONNECT[:-1]}, {{role: lo, privileges: [CONNECT], object: {{type: database}}}}]"
    world.converge(more, **ROOT)


@pytest.mark.parametrize(
    "held",
    ["GRANT CONNECT ON DATABASE DB TO op", "GRANT CONNECT ON DATABASE DB TO g", "ALTER DATABASE DB OWNER TO op"],
    ids=["itself", "a group", "the owner"],
)
def test_connect_held_in_another_way(world: Database, held: str) -> None:
    world.sql("CREATE ROLE g; CREATE ROLE op LOGIN; GRANT g TO op", "GRANT root TO op", held.replace("DB", world.name))
    world.converge(NO_CONNECT, login_user="op", session_role="root")


def test_connect_through_a_group_that_does_not_inherit(world: Database) -> None:
    world.sql("CREATE ROLE g; CREATE ROLE op LOGIN NOINHERIT; GRANT g TO op; GRANT root TO op")
    world.sql(f"GRANT CONNECT ON DATABASE {world.name} TO g")
    world.fails(NO_CONNECT, "self_protection", "op", login_user="op", session_role="root")


def test_connect_that_the_manifest_does_not_declare(world: Database) -> None:
    world.sql(f"REVOKE CONNECT ON DATABASE {world.name} FROM PUBLIC; GRANT CONNECT ON DATABASE {world.name} TO lo, adm")
    manifest = (
        "roles: [{name: adm, external: true}]\ngrants: [{role: adm, privileges: [CONNECT], object: {type: database}}]"
    )
    world.fails(manifest, "self_protection", "lo", **ROOT)
    world.converge(manifest, undeclared_grantees="keep", **ROOT)


def test_connect_through_a_group_that_the_login_leaves(world: Database) -> None:
    """The login's own memberships stay; the group's do not, and with them goes CONNECT."""
    world.sql("CREATE ROLE g; CREATE ROLE h; GRANT h TO g; CREATE ROLE op LOGIN; GRANT g TO op; GRANT root TO op")
    world.sql(f"REVOKE CONNECT ON DATABASE {world.name} FROM PUBLIC; GRANT CONNECT ON DATABASE {world.name} TO h")
    world.fails("roles: [{name: h}]", "self_protection", "connect", login_user="op", session_role="root")


def test_a_superuser_needs_no_connect(db: Database) -> None:
    db.converge(NO_CONNECT)


def test_passwords_of_the_executor(world: Database) -> None:
    """A declared one is changed like any other; one that is left out is not taken away."""
    key = {"fingerprint_key": "a key that only this test knows"}
    role = "{name: adm, createrole: true, password: first-password, connection_limit: 7, valid_until: '2099-01-01T00:00:00Z'}"
    su = {"login_user": "su"}
    world.sql("CREATE ROLE su SUPERUSER LOGIN")
    world.converge(f"roles: [{role.replace('adm', 'su').replace('createrole', 'superuser')}]", **su, **key)
    assert world.logs_in("su", "first-password")
    result = world.converge("roles: [{name: su, superuser: true}]", **su, **key)
    assert result.sql == []
    assert {item["sql"] for item in result.held(reason="self_protection")} == {
        "ALTER ROLE \"su\" NOLOGIN CONNECTION LIMIT -1 VALID UNTIL 'infinity'",
        'ALTER ROLE "su" PASSWORD NULL',
    }
    assert world.logs_in("su", "first-password")
    world.fails("roles: [{name: su, superuser: true, login: false}]", "self_protection", "LOGIN", **su, **key)


def test_the_server_still_has_the_last_word(world: Database) -> None:
    """Something that the plan cannot know: the run looks again before it commits."""
    world.sql(
        "CREATE FUNCTION public.lock_out() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        f" $$BEGIN REVOKE CONNECT ON DATABASE {world.name} FROM PUBLIC; END$$",
        "CREATE EVENT TRIGGER lock_out ON ddl_command_end WHEN TAG IN ('CREATE SCHEMA') EXECUTE FUNCTION public.lock_out()",
    )
    manifest = "schemas: [{name: s}]"
    assert not world.reconcile(manifest, check=True, **ROOT).failed
    result = world.fails(manifest, "self_protection", "connect to this database", check_too=False, **ROOT)
    assert result.plan
    with pytest.raises(psycopg.errors.InvalidSchemaName):
        world.sql("SET search_path = ''; SELECT 's'::regnamespace")


def _role(name: str) -> dict[str, Any]:
    return {"type": "role", "schema": None, "name": name, "columns": []}
