# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Roles that go: what becomes of what they own, hold and granted, in one database."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Database

OLD = """
CREATE ROLE old LOGIN; CREATE ROLE heir; CREATE ROLE r; CREATE ROLE o; CREATE ROLE g; CREATE SCHEMA s AUTHORIZATION o;
GRANT USAGE, CREATE ON SCHEMA s TO old;
SET ROLE o; CREATE TABLE s.theirs (a int, b int); RESET ROLE;
SET ROLE old; CREATE TABLE s.mine (a int); CREATE SEQUENCE s.q; CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1';
RESET ROLE;
GRANT SELECT, INSERT ON s.theirs TO old WITH GRANT OPTION; GRANT UPDATE (b) ON s.theirs TO old;
GRANT SELECT ON s.mine TO r;
ALTER DEFAULT PRIVILEGES FOR ROLE old IN SCHEMA s GRANT SELECT ON TABLES TO r;
ALTER DEFAULT PRIVILEGES FOR ROLE o GRANT SELECT ON TABLES TO old, r;
GRANT g TO old; GRANT old TO r;
"""

WANT: dict[str, Any] = {
    "roles": [{"name": "heir"}, {"name": "r"}, {"name": "o"}, {"name": "g"}],
    "schemas": [{"name": "s", "owner": "o"}],
    "grants": [
        {"role": "r", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "*"}},
        {"role": "r", "privileges": ["USAGE"], "object": {"type": "schema", "name": "s"}},
    ],
}


def retiring(**how: Any) -> dict[str, Any]:
    return {**WANT, "retirements": [{"role": "old", **how}]}


def test_everything_goes_to_the_heir(db: Database) -> None:
    db.sql(OLD)
    result = db.converge(retiring(reassign_owned_to="heir", drop_owned=True))
    assert result.sql[-3:] == ['REASSIGN OWNED BY "old" TO "heir"', 'DROP OWNED BY "old"', 'DROP ROLE "old"']
    assert result.summary["roles"]["dropped"] == 1
    assert "old" not in db.roles()
    assert db.acl("s.mine") == {"heir=arwdDxt/heir" if db.server.version < 17 else "heir=arwdDxtm/heir", "r=r/heir"}
    assert db.value("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 's.q'::regclass") == "heir"
    assert "r=r/o" in (db.acl("s.theirs") or ())
    assert db.defaults() == {("o", None, "r"): {"r=r/o", *(db.defaults()["o", None, "r"] - {"r=r/o"})}}
    assert not any("old" in entry for entries in db.defaults().values() for entry in entries)
    assert db.members("g") == set()


def test_the_heir_may_be_made_by_the_same_run(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE TABLE public.t (a int); ALTER TABLE public.t OWNER TO old")
    db.converge({"roles": [{"name": "new"}], "retirements": [{"role": "old", "reassign_owned_to": "new"}]})
    assert db.value("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'public.t'::regclass") == "new"


def test_a_role_with_nothing_just_goes(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE ROLE older")
    result = db.converge({"retirements": [{"role": "old"}, {"role": "older"}, {"role": "oldest"}]})
    assert result.sql == ['DROP ROLE "old", "older"']


@pytest.mark.parametrize("name", ['Old "one"', "DROP ROLE x; --", "*/ a", "éß", "a\nb"])
def test_odd_names(db: Database, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    db.sql(f"CREATE ROLE {quoted}; CREATE TABLE public.{quoted} (a int); ALTER TABLE public.{quoted} OWNER TO {quoted}")
    db.sql(
        f"ALTER TABLE public.{quoted} ENABLE ROW LEVEL SECURITY",
        f"CREATE TABLE public.t (a int); CREATE POLICY {quoted} ON public.t TO {quoted} USING (true)",
    )
    result = db.converge({"retirements": [{"role": name, "drop_owned": True}]})
    assert db.value("SELECT count(*) FROM pg_class WHERE relname = %s", name) == 0
    assert db.value("SELECT count(*) FROM pg_policy") == 0
    assert any(name in warning and "destroys" in warning for warning in result.warnings)
    assert any("deletes row-level security policies" in warning for warning in result.warnings)


@pytest.mark.parametrize("superuser", [True, False], ids=["superuser", "admin"])
@pytest.mark.parametrize("heir", [True, False])
def test_user_mappings_go_with_or_without_an_heir(db: Database, heir: bool, superuser: bool) -> None:
    """REASSIGN OWNED passes over them, and nobody has the passwords in them afterwards."""
    db.sql("CREATE ROLE old; CREATE ROLE heir; CREATE FOREIGN DATA WRAPPER w")
    db.sql("CREATE SERVER srv FOREIGN DATA WRAPPER w; CREATE TABLE public.t (a int); ALTER TABLE public.t OWNER TO old")
    how = {"drop_owned": True, **({"reassign_owned_to": "heir"} if heir else {})}
    manifest = {"roles": [{"name": "heir", "external": True}], "retirements": [{"role": "old", **how}]}
    executor = {} if superuser else db.admin()
    if not superuser:
        db.sql("GRANT old, heir TO adm WITH ADMIN OPTION; GRANT CREATE ON SCHEMA public TO heir")
    empty = db.reconcile(manifest, check=True, **executor)
    db.sql("CREATE USER MAPPING FOR old SERVER srv OPTIONS (password 'hidden')")
    result = db.converge(manifest, diff=True, **executor)
    lost = "user mapping for old on server srv"
    (statement,) = [text for text in result.sql if text.startswith("DROP OWNED")]
    (warning,) = [text for text in result.warnings if "destroys what nobody inherits" in text]
    for text in (statement, warning, str(result.diff)):
        assert lost in text
        assert ("table public.t" in text) is not heir
    assert db.value("SELECT count(*) FROM pg_user_mapping") == 0
    # An approval of the plan before the mapping was made is none for this.
    assert result.plan_digest != empty.plan_digest
    assert "hidden" not in str(dict(result))


def test_what_it_granted_is_granted_by_the_owner_first(db: Database) -> None:
    db.sql(OLD)
    db.sql("SET ROLE old; GRANT SELECT ON s.theirs TO r; RESET ROLE")
    assert db.acl("s.theirs") is not None
    assert "r=r/old" in (db.acl("s.theirs") or ())
    result = db.converge(retiring(reassign_owned_to="heir", drop_owned=True))
    assert "r=r/o" in (db.acl("s.theirs") or ())
    granted = next(n for n, statement in enumerate(result.sql) if statement.startswith("GRANT SELECT ON TABLE"))
    revoked = next(n for n, statement in enumerate(result.sql) if statement.startswith("REVOKE"))
    assert granted < revoked


def test_memberships_that_it_granted_stay_where_they_are_wanted(db: Database) -> None:
    db.sql("CREATE ROLE old CREATEROLE; CREATE ROLE g; CREATE ROLE free; CREATE ROLE r; CREATE ROLE x")
    db.sql("GRANT g, free TO old WITH ADMIN OPTION")
    db.sql("SET ROLE old; GRANT g TO r; GRANT g TO x; GRANT free TO r; RESET ROLE")
    db.converge(
        {
            "roles": [{"name": "g"}, {"name": "r"}],
            "memberships": [{"role": "g", "members": [{"name": "r"}]}],
            "retirements": [{"role": "old"}],
        }
    )
    assert db.members("g") == {"r"}
    # Nobody said anything about free, so what was granted there stays.
    assert db.members("free") == {"r"}


def test_a_retired_group_and_a_retired_member_need_no_statement_of_their_own(db: Database) -> None:
    db.sql(
        "CREATE ROLE old; CREATE ROLE old2; CREATE ROLE r; GRANT old TO r; GRANT old TO old2; GRANT pg_monitor TO old2"
    )
    result = db.converge({"roles": [{"name": "r"}], "retirements": [{"role": "old"}, {"role": "old2"}]})
    assert result.sql == ['DROP ROLE "old", "old2"']
    assert result.withheld == []


def test_the_modes_that_drop_nothing_hold_it_back(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE ROLE tmp_a")
    want = {"retirements": [{"role": "old", "drop_owned": True}], "scope": {"roles": ["tmp_*"]}}
    for mode in ("adopt", "additive"):
        result = db.silent(want, reconciliation_mode=mode)
        assert [(item["change"], item["role"], item["reason"], item["sql"]) for item in result.withheld] == [
            ("drop_role", "old", "mode", 'DROP ROLE "old"'),
            ("drop_role", "tmp_a", "mode", 'DROP ROLE "tmp_a"'),
        ]
        assert [warning.split(": ", 1)[1] for warning in result.warnings] == [
            "role old is to be retired, and the reconciliation mode holds that back"
        ]


def test_in_adopt_a_retired_role_is_an_undeclared_grantee_like_any_other(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE SCHEMA s; CREATE TABLE s.t (a int); GRANT SELECT ON s.t TO old")
    want = {"schemas": [{"name": "s"}], "retirements": [{"role": "old"}]}
    db.converge(want, reconciliation_mode="adopt")
    assert "old=r/postgres" not in (db.acl("s.t") or ())
    assert "old" in db.roles()


def test_keep_does_not_keep_what_a_retired_role_holds(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE ROLE x; CREATE SCHEMA s; CREATE TABLE s.t (a int); GRANT SELECT ON s.t TO old, x")
    want = {"schemas": [{"name": "s"}], "retirements": [{"role": "old"}]}
    db.converge(want, undeclared_grantees="keep")
    assert "x=r/postgres" in (db.acl("s.t") or ())
    assert "old" not in db.roles()


def test_roles_that_the_scope_claims(db: Database) -> None:
    db.sql(
        "CREATE ROLE tmp_a; CREATE ROLE tmp_b; CREATE ROLE other; CREATE ROLE tmp_kept; CREATE ROLE tmp_assumed",
        "CREATE ROLE tmp_super SUPERUSER; CREATE ROLE tmp_repl REPLICATION; CREATE ROLE tmp_member; CREATE ROLE tmp_inside",
        "CREATE ROLE g; GRANT g TO tmp_inside; GRANT other TO tmp_member; CREATE ROLE tmp_ignored",
        "CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO tmp_a",
    )
    want = {
        "roles": [{"name": "tmp_kept"}, {"name": "g"}],
        "schemas": [{"name": "s"}],
        "scope": {"roles": ["tmp_*"], "ignore_roles": ["tmp_ign*"]},
        "assume_roles": ["tmp_assumed"],
    }
    result = db.converge(want)
    assert result.summary["roles"]["dropped"] == 3
    assert db.roles() >= {
        "other", "tmp_kept", "tmp_assumed", "tmp_super", "tmp_repl", "tmp_member", "tmp_ignored"
    }  # fmt: skip
    assert not db.roles() & {"tmp_a", "tmp_b", "tmp_inside"}
    held = {item["role"]: item["reason"] for item in db.silent(want).held(change="drop_role")}
    assert held == {
        "tmp_super": "self_protection",
        "tmp_repl": "self_protection",
        "tmp_member": "unmanaged_membership",
    }


def test_many_roles_are_few_statements(db: Database) -> None:
    db.sql("DO $$ BEGIN FOR i IN 1..1100 LOOP EXECUTE format('CREATE ROLE tmp_%s', i); END LOOP; END $$")
    result = db.reconcile({"scope": {"roles": ["tmp_*"]}})
    assert len(result.sql) == 3
    assert result.summary["roles"]["dropped"] == 1100


def test_brakes_count_drops(db: Database) -> None:
    db.sql("CREATE ROLE tmp_a; CREATE ROLE tmp_b; CREATE ROLE old")
    want = {"scope": {"roles": ["tmp_*"]}, "retirements": [{"role": "old"}]}
    failed = db.fails(want, "plan_too_large", check_too=False, max_drops=2)
    assert "drops 3 roles, and max_drops is 2" in failed.msg
    db.converge(want, max_drops=3)


def test_guards_do_not_count_roles_that_go(db: Database) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    db.sql(*(f"CREATE ROLE tmp_{n}; GRANT SELECT ON s.t TO tmp_{n}" for n in range(25)))
    db.converge({"schemas": [{"name": "s"}], "scope": {"roles": ["tmp_*"]}})
    assert not [name for name in db.roles() if name.startswith("tmp_")]


def test_a_declared_schema_is_not_destroyed(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE SCHEMA s AUTHORIZATION old")
    want = {"schemas": [{"name": "s"}], "retirements": [{"role": "old", "drop_owned": True}]}
    failed = db.fails(want, "drop_blocked")
    assert "the schema s is declared" in failed.msg
    want["schemas"] = [{"name": "s", "owner": "new"}]
    db.converge({**want, "roles": [{"name": "new"}]})
    assert db.value("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 's'") == "new"


def test_objects_that_are_destroyed_get_no_grants(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE TABLE s.u (a int)")
    db.sql("ALTER TABLE s.t OWNER TO old")
    want = {
        "roles": [{"name": "r"}],
        "schemas": [{"name": "s"}],
        "grants": [{"role": "r", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "*"}}],
        "retirements": [{"role": "old", "drop_owned": True}],
    }
    result = db.converge(want)
    assert result.matching("GRANT") == ['GRANT SELECT ON TABLE "s"."u" TO "r"']
    assert db.value("SELECT to_regclass('s.t')") is None


def test_what_the_heirs_default_privileges_permit_stays(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE ROLE heir; CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    db.sql("ALTER TABLE s.t OWNER TO old; GRANT SELECT ON s.t TO r")
    want = {
        "roles": [{"name": "heir"}, {"name": "r"}],
        "schemas": [{"name": "s"}],
        "default_privileges": [
            {"owner": "heir", "schema": "s", "grant": [{"role": "r", "privileges": ["SELECT"], "on_type": "table"}]}
        ],
        "retirements": [{"role": "old", "reassign_owned_to": "heir"}],
    }
    db.converge(want)
    assert "r=r/heir" in (db.acl("s.t") or ())


def test_the_diff_shows_who_goes_and_what_of_theirs(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE ROLE gone; CREATE ROLE heir; CREATE TABLE public.t (a int)")
    db.sql("ALTER TABLE public.t OWNER TO gone")
    want = {
        "roles": [{"name": "heir"}],
        "retirements": [{"role": "old", "reassign_owned_to": "heir"}, {"role": "gone", "drop_owned": True}],
    }
    (diff,) = db.reconcile(want, check=True, diff=True).diff
    assert diff["before"] == (
        "roles:\n  - {name: gone}\n  - {name: old}\nretirements:\n  - {role: gone, objects: [table public.t]}\n"
    )
    assert diff["after"] == "retirements:\n  - {role: old, reassign_owned_to: heir}\n"


def test_rehearsing_a_retirement_leaves_the_role_there(db: Database) -> None:
    db.sql(OLD)
    before = db.snapshot()
    result = db.reconcile(retiring(reassign_owned_to="heir", drop_owned=True), check=True, rehearse=True)
    assert result.changed
    assert db.snapshot() == before


def test_the_record_of_its_password_goes_with_it(db: Database) -> None:
    key = {"fingerprint_key": "k" * 32}
    db.converge(
        {"roles": [{"name": "old", "password": "pw-of-old-1"}, {"name": "app", "password": "pw-of-app-1"}]}, **key
    )
    assert len(db.records()) == 2
    db.converge({"roles": [{"name": "app", "password": "pw-of-app-1"}], "retirements": [{"role": "old"}]}, **key)
    assert len(db.records()) == 1


def test_no_right_is_needed_on_groups_that_a_retired_role_only_belongs_to(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE ROLE g; GRANT g TO old WITH ADMIN OPTION")
    result = db.converge({"retirements": [{"role": "old"}]}, **db.admin("old"))
    assert result.sql == ['DROP ROLE "old"']


def test_what_a_retired_role_granted_is_granted_by_an_executor_who_may(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE ROLE g; CREATE ROLE r; GRANT g TO old WITH ADMIN OPTION")
    db.sql("SET ROLE old; GRANT g TO r; RESET ROLE")
    adm = db.admin("old", "g")
    # The row that admin() made keeps what a later GRANT does not name.
    db.sql("GRANT old TO adm" + (" WITH INHERIT TRUE" if db.server.version >= 16 else ""))
    db.converge({"retirements": [{"role": "old"}]}, **adm)
    assert db.members("g") - {"adm"} == {"r"}


# ---- found by breaking


def test_the_last_superuser_who_can_log_in_is_not_dropped(db: Database) -> None:
    db.sql("CREATE ROLE adm LOGIN; CREATE ROLE boss SUPERUSER; GRANT boss TO adm; CREATE ROLE su SUPERUSER LOGIN")
    db.sql("ALTER ROLE postgres NOLOGIN")
    try:
        options = {"login_user": "adm", "session_role": "boss"}
        db.fails("retirements: [{role: su}]", "self_protection", "no superuser could log in any more", **options)
    finally:
        db.sql("ALTER ROLE postgres LOGIN")


@pytest.mark.parametrize(
    "setup",
    [
        "CREATE ROLE old; GRANT old TO adm; GRANT boss TO old",
        "CREATE ROLE old; GRANT boss, old TO adm; REVOKE CONNECT ON DATABASE @DB FROM PUBLIC; GRANT CONNECT ON DATABASE @DB TO old",
        "CREATE ROLE old; CREATE ROLE g; GRANT boss, old TO adm; GRANT g TO old; REVOKE CONNECT ON DATABASE @DB FROM PUBLIC;"
        "GRANT CONNECT ON DATABASE @DB TO g",
    ],
    ids=["the way to session_role", "CONNECT", "CONNECT through a group"],
)
def test_a_retirement_that_locks_the_login_out_is_refused(db: Database, setup: str) -> None:
    db.sql("CREATE ROLE adm LOGIN; CREATE ROLE boss SUPERUSER")
    db.sql(setup.replace("@DB", db.name))
    result = db.fails(
        "retirements: [{role: old, drop_owned: true}]", "self_protection", login_user="adm", session_role="boss"
    )
    assert "could not" in result.msg
    assert "statement" not in result


@pytest.mark.versions(min=16)
def test_admin_that_comes_from_a_retired_role_only_is_told_before(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE ROLE grp; GRANT grp TO old WITH ADMIN OPTION")
    adm = db.admin("old")
    db.sql("SET ROLE old; GRANT grp TO adm WITH ADMIN OPTION; RESET ROLE; GRANT old TO adm WITH INHERIT TRUE")
    db.fails("retirements: [{role: old}]", "insufficient_privilege", "only through old and the plan ends that", **adm)


def test_a_digest_covers_every_object_that_is_destroyed(db: Database) -> None:
    db.sql("CREATE ROLE old; CREATE SCHEMA s")
    db.sql(*(f"CREATE TABLE s.t{n:03}(); ALTER TABLE s.t{n:03} OWNER TO old" for n in range(40)))
    want = {"retirements": [{"role": "old", "drop_owned": True}]}
    approved = db.reconcile(want, check=True).plan_digest
    db.sql("DROP TABLE s.t030; CREATE TABLE s.t030(); ALTER TABLE s.t030 OWNER TO old")
    db.fails(want, "plan_changed", expected_digest=approved)
    db.converge(want)


def test_why_a_claimed_role_stays_is_said(db: Database) -> None:
    db.sql("CREATE ROLE tmp_a LOGIN; CREATE ROLE tmp_b SUPERUSER; CREATE ROLE g; CREATE ROLE tmp_c; GRANT g TO tmp_c")
    with db.connect("tmp_a"):
        result = db.reconcile("scope: {roles: ['tmp_*']}", check=True)
    assert [warning.split(": ", 1)[1] for warning in result.warnings] == [
        "role tmp_a matches scope.roles and is not dropped: it has 1 open session",
        "role tmp_b matches scope.roles and is not dropped: it is a superuser",
        "role tmp_c matches scope.roles and is not dropped: it is a member of a group outside the manifest",
    ]
