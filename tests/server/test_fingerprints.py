# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fingerprints of passwords: the two stores, what a hostile store may not do, and the key."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from harness import UNCONNECTED, Database
from password_support import KEY, Executor, K, R, sent, with_password

TABLE = "role_reconcile.password_fingerprint"
ANOTHER: dict[str, Any] = {"fingerprint_key": "another key, after a rotation"}
COMMENT: dict[str, Any] = {**K, "fingerprint_store": "comment"}


def owner_and_acl(db: Database) -> list[tuple[Any, ...]]:
    """Owner and grantees of schema and table."""
    return db.query(
        f"""SELECT pg_get_userbyid(nspowner), (SELECT array_agg(DISTINCT pg_get_userbyid(grantee)) FROM
                   aclexplode(coalesce(nspacl, acldefault('n', nspowner)))) FROM pg_namespace WHERE nspname = 'role_reconcile'
        UNION ALL SELECT pg_get_userbyid(relowner), (SELECT array_agg(DISTINCT pg_get_userbyid(grantee)) FROM
                   aclexplode(coalesce(relacl, acldefault('r', relowner)))) FROM pg_class WHERE oid = '{TABLE}'::regclass"""
    )


# The table


def test_the_table_is_made_once_and_is_the_executors_own(db: Database, executor: Executor) -> None:
    options = {**executor(), **K}
    result = db.converge(R, **options)
    assert result.matching("CREATE SCHEMA .?role_reconcile")
    assert result.matching("CREATE TABLE .?role_reconcile.?\\.")
    # In the same transaction, and before it is needed.
    user = options.get("login_user", "postgres")
    assert owner_and_acl(db) == [(user, [user]), (user, [user])]
    assert list(db.records()) == [db.value("SELECT oid FROM pg_roles WHERE rolname = 'r'")]
    result = db.converge(with_password("new"), **options)
    assert result.sql == ["ALTER ROLE \"r\" PASSWORD '********'"]
    assert len(db.records()) == 1


def test_default_privileges_of_the_executor_let_nobody_in(db: Database, executor: Executor) -> None:
    options = {**executor(), **K}
    user = options.get("login_user", "postgres")
    db.sql(
        "CREATE ROLE nosy",
        f"ALTER DEFAULT PRIVILEGES FOR ROLE {user} GRANT ALL ON TABLES TO PUBLIC, nosy",
        f"ALTER DEFAULT PRIVILEGES FOR ROLE {user} GRANT ALL ON SCHEMAS TO PUBLIC, nosy",
    )
    defaults = db.defaults()
    db.converge(R, **options)
    assert owner_and_acl(db) == [(user, [user]), (user, [user])]
    assert db.defaults() == defaults


def test_the_fingerprint_says_nothing(db: Database) -> None:
    db.converge(R, **K)
    record = str(db.record("r"))
    assert "s3cret" not in record
    assert KEY not in record
    assert str(db.verifier("r")) not in record


def test_its_schema_is_not_managed(db: Database) -> None:
    manifest = {**R, "scope": {"schemas": ["role_*", "*_reconcile"]}}
    db.converge(manifest, **K)
    db.sql(
        "CREATE ROLE dba",
        "GRANT USAGE ON SCHEMA role_reconcile TO dba",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {TABLE} TO dba",
    )
    result = db.silent(manifest, **K)
    assert not [name for name in str(result.summary["managed"]).split("'") if name == "role_reconcile"]
    assert "r=" not in str(db.acl("role_reconcile", "schema"))


def test_another_executor_is_told_the_grant(db: Database) -> None:
    db.converge(R, **K)
    other = {**db.admin("r", name="second"), **K}
    changed = with_password("new")
    texts = [db.fails(changed, "insufficient_privilege", "GRANT", "second", **other).text]
    for _attempt in range(2):
        grants = re.findall(r"(GRANT [^;\n]*? TO \"?second\"?)", texts[-1])
        assert grants, texts[-1]
        for grant in grants:
            db.sql(grant)
        result = db.reconcile(changed, check=True, **other)
        if not result.failed:
            break
        texts.append(result.text)
    assert len(texts) == 1, f"all that is missing is said at once: {texts}"
    assert db.value("SELECT has_schema_privilege('second', 'role_reconcile', 'CREATE')") is False
    db.converge(changed, **other)
    assert db.logs_in("r", "new")
    # Both know what was sent, and the first one's own store is as it was.
    db.silent(changed, **K)


def test_a_superuser_uses_an_admins_store_only_with_reason(db: Database) -> None:
    """The table belongs to neither the executor nor a superuser: somebody else could have made it first."""
    options = {**db.admin(), **K}
    db.converge(R, **options)
    before = db.snapshot()
    result = db.reconcile(with_password("new"), **K)
    assert result.failed
    assert "role_reconcile" in result.text
    assert db.snapshot() == before
    # One that belongs to a superuser serves everybody who was let in.
    db.sql(f"ALTER SCHEMA role_reconcile OWNER TO postgres; ALTER TABLE {TABLE} OWNER TO postgres")
    db.converge(with_password("new"), **K)


def test_without_create_on_the_database(db: Database, executor: Executor) -> None:
    options = {**db.admin(), **K}
    db.sql(f"REVOKE CREATE ON DATABASE {db.name} FROM adm")
    result = db.fails(R, "insufficient_privilege", "CREATE", "comment", **options)
    assert "fingerprint_store" in result.text
    db.converge(R, **{**options, "fingerprint_store": "comment"})
    assert db.logs_in("r", "s3cret")


def test_a_schema_that_is_there_already(db: Database) -> None:
    """Made beforehand by a superuser for this executor, it needs no CREATE on the database."""
    options = {**db.admin(), **K}
    db.sql(
        f"REVOKE CREATE ON DATABASE {db.name} FROM adm; CREATE SCHEMA role_reconcile; GRANT ALL ON SCHEMA role_reconcile TO adm"
    )
    result = db.converge(R, **options)
    assert not result.matching("CREATE SCHEMA")
    assert db.logs_in("r", "s3cret")


#: What somebody else may have done to the store before the run, each enough to refuse it.
HOSTILE = {
    "schema of another": "ALTER SCHEMA role_reconcile OWNER TO evil",
    "table of another": f"ALTER TABLE {TABLE} OWNER TO evil",
    "trigger": f"CREATE TRIGGER t BEFORE INSERT OR UPDATE ON {TABLE} FOR EACH ROW EXECUTE FUNCTION public.steal_row()",
    "statement trigger": f"CREATE TRIGGER t AFTER DELETE ON {TABLE} EXECUTE FUNCTION public.steal_row()",
    "disabled trigger": f"CREATE TRIGGER t BEFORE INSERT ON {TABLE} FOR EACH ROW EXECUTE FUNCTION public.steal_row();"
    f"ALTER TABLE {TABLE} DISABLE TRIGGER t",
    "rule": f"CREATE RULE t AS ON INSERT TO {TABLE} DO ALSO SELECT public.steal()",
    "policy": f"CREATE POLICY t ON {TABLE} USING (public.steal()); ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY",
    "policy that is off": f"CREATE POLICY t ON {TABLE} USING (public.steal())",
    "row security without a policy": f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY; ALTER TABLE {TABLE} FORCE ROW LEVEL SECURITY",
    "check": f"ALTER TABLE {TABLE} ADD CHECK (public.steal()) NOT VALID",
    "one more column": f"ALTER TABLE {TABLE} ADD extra int",
    "one more column with a default": f"ALTER TABLE {TABLE} ADD extra bool DEFAULT public.steal()",
    "generated column": f"ALTER TABLE {TABLE} ADD extra bool GENERATED ALWAYS AS (public.pure()) STORED",
    "default": f"ALTER TABLE {TABLE} ALTER %column SET DEFAULT public.steal_text()",
    "column renamed": f"ALTER TABLE {TABLE} RENAME %column TO other",
    "column of a domain": f"ALTER TABLE {TABLE} ALTER %column TYPE public.evil_domain USING '\\x'::bytea",
    "expression index": f"CREATE INDEX ON {TABLE} ((public.pure()))",
    "partial index": f"CREATE INDEX ON {TABLE} (%column) WHERE public.pure()",
    "foreign key": f"CREATE TABLE public.other (a oid PRIMARY KEY); ALTER TABLE {TABLE} ADD FOREIGN KEY (%key) REFERENCES public.other NOT VALID",
    "view": f"ALTER TABLE {TABLE} RENAME TO hidden; CREATE VIEW {TABLE} AS SELECT * FROM role_reconcile.hidden WHERE public.steal()",
    "materialized view": f"ALTER TABLE {TABLE} RENAME TO hidden; CREATE MATERIALIZED VIEW {TABLE} AS SELECT * FROM role_reconcile.hidden",
    "partitioned": f"ALTER TABLE {TABLE} RENAME TO hidden; CREATE TABLE {TABLE} (LIKE role_reconcile.hidden) PARTITION BY LIST (%key)",
    "foreign table": f"ALTER TABLE {TABLE} RENAME TO hidden; CREATE FOREIGN DATA WRAPPER w; CREATE SERVER w FOREIGN DATA WRAPPER w;"
    f"CREATE FOREIGN TABLE {TABLE} (a oid) SERVER w",
    "sequence": f"ALTER TABLE {TABLE} RENAME TO hidden; CREATE SEQUENCE {TABLE}",
}


def steal(db: Database) -> None:
    """Functions that note that they were called, and as whom."""
    db.sql(
        "CREATE ROLE evil NOINHERIT; CREATE TABLE public.stolen (who text); GRANT ALL ON public.stolen TO PUBLIC",
        "CREATE FUNCTION public.pure() RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT true'",
        "CREATE FUNCTION public.steal() RETURNS bool LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO public.stolen VALUES (current_user); RETURN true; END'",
        "CREATE FUNCTION public.steal_text() RETURNS bytea LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO public.stolen VALUES (current_user); RETURN NULL; END'",
        "CREATE FUNCTION public.steal_row() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO public.stolen VALUES (current_user); RETURN NEW; END'",
        "CREATE DOMAIN public.evil_domain AS bytea",
    )


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_table_is_refused(db: Database, how: str) -> None:
    """Refused before it is touched, so that nobody's function runs as the executor."""
    steal(db)
    db.converge(R, **K)
    columns = dict(
        db.query(
            f"SELECT CASE WHEN atttypid = 'oid'::regtype THEN 'key' ELSE 'column' END, quote_ident(attname) FROM pg_attribute"
            f" WHERE attrelid = '{TABLE}'::regclass AND attnum > 0 ORDER BY attnum DESC"
        )
    )
    # What runs while the trap is set does not count, and neither does what PostgreSQL itself refuses to make.
    db.sql(HOSTILE[how].replace("%column", columns["column"]).replace("%key", columns["key"]))
    db.sql("DELETE FROM public.stolen")
    stored = db.verifier("r")
    rows = db.query("SELECT count(*) FROM role_reconcile.hidden") if "hidden" in HOSTILE[how] else []
    for check in (True, False):
        result = db.reconcile(with_password("new"), check=check, **K)
        assert result.failed, result
        assert result.error_code not in ("internal_error", "server_error", "not_converged", "collision"), result
        assert "role_reconcile" in result.text
        assert "fingerprint_store" in result.text or result.problems[0].get("hint")
        assert db.query("SELECT * FROM public.stolen") == []
        assert db.verifier("r") == stored
    if rows:
        assert db.query("SELECT count(*) FROM role_reconcile.hidden") == rows


def test_a_child_of_the_table(db: Database) -> None:
    """What another table inherits is not looked at."""
    steal(db)
    db.converge(R, **K)
    db.sql(f"CREATE TABLE public.child () INHERITS ({TABLE}); INSERT INTO public.child SELECT * FROM {TABLE}")
    db.sql(
        "CREATE TRIGGER t BEFORE UPDATE OR DELETE ON public.child FOR EACH ROW EXECUTE FUNCTION public.steal_row()",
        "ALTER TABLE public.child OWNER TO evil",
    )
    db.reconcile(with_password("new"), **K)
    db.reconcile("roles: [{name: r}]", **K)
    assert db.query("SELECT * FROM public.stolen") == []


@pytest.mark.parametrize("by", ["schema", "table"])
def test_a_store_that_somebody_made_first(db: Database, executor: Executor, by: str) -> None:
    steal(db)
    options = {**executor(), **K}
    if by == "schema":
        db.sql("CREATE SCHEMA role_reconcile AUTHORIZATION evil")
    else:
        db.sql(
            "CREATE SCHEMA role_reconcile; GRANT ALL ON SCHEMA role_reconcile TO evil, PUBLIC; SET ROLE evil",
            f"CREATE TABLE {TABLE} (role_oid oid PRIMARY KEY, fingerprint bytea NOT NULL)",
            f"CREATE TRIGGER t BEFORE INSERT ON {TABLE} FOR EACH ROW EXECUTE FUNCTION public.steal_row(); RESET ROLE",
        )
    before = db.snapshot()
    for check in (True, False):
        result = db.reconcile(R, check=check, **options)
        assert result.failed, result
        assert "role_reconcile" in result.text
        assert result.error_code not in ("internal_error", "server_error")
        assert db.snapshot() == before
    assert db.query("SELECT * FROM public.stolen") == []
    # The other store has nothing to do with it.
    db.converge(R, **{**options, "fingerprint_store": "comment"})


def test_no_password_no_store(db: Database) -> None:
    """A manifest without passwords has no business with it, whatever it looks like."""
    db.sql("CREATE ROLE evil; CREATE SCHEMA role_reconcile AUTHORIZATION evil")
    db.converge("roles: [{name: x, login: true}]", **K)
    db.sql("DROP SCHEMA role_reconcile")
    result = db.converge("roles: [{name: y, login: true}]", **K)
    assert not result.matching("role_reconcile")


# The comment


def test_the_comment_holds_the_record(db: Database, executor: Executor) -> None:
    options = {**executor(), **COMMENT}
    assert len(sent(db.converge(R, **options))) == 1
    comment = str(db.comment("r"))
    assert comment
    assert "\n" not in comment.strip("\n")
    assert "s3cret" not in comment
    assert KEY not in comment
    assert db.records() == {}
    assert db.value("SELECT to_regnamespace('role_reconcile') IS NULL") is True
    assert len(sent(db.converge(with_password("new"), **options))) == 1
    assert db.comment("r") != comment
    assert db.logs_in("r", "new")


@pytest.mark.parametrize("text", ["Order service", "two\nlines", "ends with a newline\n", "\n", 'it\'s \\ "x" é'])
def test_a_comment_of_ones_own_stays_above(db: Database, executor: Executor, text: str) -> None:
    options = {**executor(), **COMMENT}
    manifest = with_password("s3cret", comment=text)
    db.converge(manifest, **options)
    comment = str(db.comment("r"))
    assert comment.startswith(text)
    assert comment != text
    # Another text keeps the record, and the password is not sent again.
    result = db.converge(with_password("s3cret", comment="another text"), **options)
    assert len(result.sql) == 1
    assert sent(result) == []
    assert str(db.comment("r")).startswith("another text\n")
    assert str(db.comment("r")).splitlines()[-1] == comment.splitlines()[-1]
    # So does taking it away.
    result = db.converge(with_password("s3cret", comment=""), **options)
    assert sent(result) == []
    assert str(db.comment("r")).strip("\n") == comment.splitlines()[-1]
    db.silent(R, **options)


def test_a_comment_by_hand_stays(db: Database, executor: Executor) -> None:
    db.sql("CREATE ROLE r LOGIN; COMMENT ON ROLE r IS 'by hand'")
    options = {**executor("r"), **COMMENT}
    db.converge(R, **options)
    assert str(db.comment("r")).startswith("by hand\n")
    # Somebody writes a new one and does not know of the line: then the record is gone.
    db.sql("COMMENT ON ROLE r IS 'by another hand'")
    assert len(sent(db.converge(R, **options))) == 1
    assert str(db.comment("r")).startswith("by another hand\n")
    db.converge("roles: [{name: r}]", **options)
    assert db.comment("r") == "by another hand"


@pytest.mark.parametrize("store", ["table", "comment"])
def test_the_line_is_never_shown(db: Database, store: str) -> None:
    db.converge(with_password("s3cret", comment="old"), **COMMENT)
    line = str(db.comment("r")).splitlines()[-1]
    secret = max(re.findall(r"[0-9A-Za-z+/=]+", line), key=len)
    assert len(secret) >= 32
    runs = [
        ({"comment": "new"}, {}),
        ({"comment": "new"}, {"reconciliation_mode": "additive"}),
        ({"comment": ""}, {}),
        ({"comment": "new"}, {"update_password": "always"}),
        ({}, {"update_password": "always"}),
    ]
    for role, options in runs:
        for check in (True, False):
            stdout, _stderr, _code = db.raw(
                with_password("s3cret", **role),
                check=check,
                diff=True,
                verbosity=3,
                **{**COMMENT, "fingerprint_store": store, **options},
            )
            assert secret not in stdout


def test_a_comment_that_is_held_back_keeps_the_record(db: Database) -> None:
    db.converge(with_password("s3cret", comment="old"), **COMMENT)
    comment = db.comment("r")
    result = db.silent(with_password("s3cret", comment="new"), reconciliation_mode="additive", **COMMENT)
    assert result.held(reason="mode", role="r")
    assert db.comment("r") == comment
    db.silent(with_password("s3cret", comment="old"), **COMMENT)


def test_a_comment_that_only_looks_like_a_record(db: Database) -> None:
    """A line of the other store's kind in a comment of one's own: nothing breaks and nothing is lost."""
    db.converge(R, **COMMENT)
    line = str(db.comment("r")).splitlines()[-1]
    db.sql("CREATE ROLE r2 LOGIN")
    db.connection.execute(f"COMMENT ON ROLE r2 IS '{line}'")
    assert len(sent(db.converge({"roles": [*R["roles"], {"name": "r2", "password": "s3cret"}]}, **COMMENT))) == 1
    assert db.logs_in("r2", "s3cret")


# From one store to the other


def test_moving_to_the_other_store_and_back(db: Database, executor: Executor) -> None:
    options = executor()
    db.converge(with_password("s3cret", comment="text"), **options, **K)
    verifier = db.verifier("r")
    assert db.record("r")
    for store in ("comment", "table", "comment", "table"):
        manifest = with_password("s3cret", comment="text")
        predicted = db.reconcile(manifest, check=True, **{**options, **K, "fingerprint_store": store})
        result = db.reconcile(manifest, **{**options, **K, "fingerprint_store": store})
        assert not result.failed, result
        assert sent(predicted) == sent(result) == []
        assert db.verifier("r") == verifier
        assert (db.records() != {}) is (store == "table"), "the old store gives its record away"
        assert (db.comment("r") != "text") is (store == "comment")
        db.silent(manifest, **{**options, **K, "fingerprint_store": store})
    assert db.logs_in("r", "s3cret")


def test_moving_with_a_change(db: Database, executor: Executor) -> None:
    options = executor()
    db.converge(R, **options, **K)
    result = db.reconcile(with_password("new"), **options, **COMMENT)
    assert len(sent(result)) == 1
    assert db.logs_in("r", "new")
    assert db.records() == {}
    db.silent(with_password("new"), **options, **COMMENT)
    # And out with it, from the other side.
    result = db.reconcile("roles: [{name: r}]", **options, **K)
    assert not result.failed, result
    assert db.verifier("r") is None
    assert db.comment("r") is None


def test_moving_under_another_key_sends_once(db: Database) -> None:
    db.converge(R, **K)
    result = db.reconcile(R, **{**ANOTHER, "fingerprint_store": "comment"})
    assert len(sent(result)) == 1
    db.silent(R, **{**ANOTHER, "fingerprint_store": "comment"})


def test_the_record_goes_with_the_role(db: Database, executor: Executor) -> None:
    options = {**executor(), **K}
    db.converge({"roles": [*R["roles"], {"name": "r2", "password": "s3cret"}]}, **options)
    assert len(db.records()) == 2
    db.sql("DROP ROLE r")
    db.reconcile({"roles": [{"name": "r2", "password": "new"}]}, **options)
    assert list(db.records()) == [db.value("SELECT oid FROM pg_roles WHERE rolname = 'r2'")]


# The key


def test_the_key_comes_from_the_environment(db: Database, executor: Executor) -> None:
    options = executor()
    variable: dict[str, Any] = {"environment": {"PG_ROLE_RECONCILE_FINGERPRINT_KEY": KEY}}
    db.converge(R, **options, **variable)
    # It is the same key either way, and the option wins.
    db.silent(R, **options, **K)
    result = db.reconcile(R, **options, **ANOTHER, **variable)
    assert len(sent(result)) == 1


def test_an_empty_variable_is_no_key(db: Database) -> None:
    """AWX hands over every field of a credential."""
    db.fails(R, "fingerprint_key_missing", environment={"PG_ROLE_RECONCILE_FINGERPRINT_KEY": ""})


def test_the_key_file_is_made_once(db: Database, executor: Executor, tmp_path: Path) -> None:
    path = tmp_path / "key"
    options = {**executor(), "fingerprint_key_file": str(path)}
    before = db.snapshot()
    result = db.reconcile(R, check=True, **options)
    assert len(sent(result)) == 1
    assert not path.exists()
    assert list(tmp_path.iterdir()) == []
    assert db.snapshot() == before
    umask = os.umask(0)
    try:
        result = db.reconcile(R, **options)
    finally:
        os.umask(umask)
    assert not result.failed, result
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = path.read_bytes()
    assert len(key) == 32
    assert list(tmp_path.iterdir()) == [path]
    assert key.hex() not in str(result)
    assert [text for text in result.warnings if "key" in text and "sent again" in text] == []
    db.silent(R, **options)
    assert path.read_bytes() == key


def test_a_failed_run_may_leave_its_key_file(db: Database, tmp_path: Path) -> None:
    """The file is not part of the transaction; the next run finds it, and everything works."""
    path = tmp_path / "key"
    db.sql(f"ALTER DATABASE {db.name} SET session_preload_libraries = 'passwordcheck'")
    result = db.reconcile(
        "roles: [{name: r, password: x, password_encryption: server}]", fingerprint_key_file=str(path)
    )
    assert result.failed
    assert db.records() == {}
    db.converge(R, fingerprint_key_file=str(path))


def test_a_key_file_made_while_there_are_records(db: Database, tmp_path: Path) -> None:
    db.converge({"roles": [*R["roles"], {"name": "r2", "password": "s3cret"}]}, **K)
    result = db.reconcile(
        {"roles": [*R["roles"], {"name": "r2", "password": "s3cret"}]}, fingerprint_key_file=str(tmp_path / "key")
    )
    assert len(sent(result)) == 2
    (warning,) = [text for text in result.warnings if "key" in text]
    assert "2" in warning.partition(": ")[2]


@pytest.mark.parametrize(
    "content",
    [b"\0" * 32, bytes(range(200, 232)), b"sixteen bytes ok", "schlüssel, länger als 16".encode(), b"\xff" * 40],
)
def test_any_bytes_are_a_key(db: Database, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    db.converge(R, fingerprint_key_file=str(path))
    assert path.read_bytes() == content


@pytest.mark.parametrize("key", ["short-key-15-by", "x", "", "é" * 7])
def test_a_short_key(db: Database, key: str) -> None:
    if key:
        result = db.rejects(R, "fingerprint_key", "16", fingerprint_key=key)
        assert key == "x" or key not in str(result)
    else:
        db.fails(R, ("manifest_invalid", "fingerprint_key_missing"), "fingerprint_key", fingerprint_key=key)


def test_sixteen_bytes_are_enough(db: Database) -> None:
    for key in ("exactly-16-bytes", "é" * 8):
        assert len(sent(db.converge(R, fingerprint_key=key))) == 1


def test_a_short_key_in_the_environment(db: Database) -> None:
    result = db.fails(R, "manifest_invalid", "16", environment={"PG_ROLE_RECONCILE_FINGERPRINT_KEY": "short-key-15-by"})
    assert "short-key-15-by" not in str(result)


@pytest.mark.parametrize("content", [b"", b"short-key-15-by"])
def test_a_short_key_file(db: Database, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    result = db.reconcile(R, fingerprint_key_file=str(path))
    assert result.failed
    assert result.error_code not in ("internal_error", "server_error")
    assert "fingerprint_key_file" in result.text
    assert path.read_bytes() == content
    assert "short-key-15-by" not in str(result)
    assert "r" not in db.roles()


@pytest.mark.parametrize("place", ["no/such/folder/key", ".", "relative"])
def test_a_key_file_that_cannot_be(db: Database, tmp_path: Path, place: str) -> None:
    path = place if place == "relative" else str(tmp_path / place)
    result = db.reconcile(R, fingerprint_key_file=path)
    assert result.failed
    assert result.error_code not in ("internal_error", "server_error"), result
    assert "fingerprint_key_file" in result.text
    assert "r" not in db.roles()


@UNCONNECTED
def test_both_keys(db: Database, tmp_path: Path) -> None:
    db.rejects(R, "fingerprint_key", "fingerprint_key_file", fingerprint_key_file=str(tmp_path / "key"), **K)
    assert list(tmp_path.iterdir()) == []


@UNCONNECTED
@pytest.mark.parametrize("key", [1234567890123456, True, ["x" * 20]])
def test_a_key_is_text(db: Database, key: Any) -> None:
    result = db.rejects(R, "fingerprint_key", fingerprint_key=key)
    assert "1234567890123456" not in str(result)


def test_no_key_at_all(db: Database) -> None:
    """The message holds the one line that is missing. In check mode too."""
    result = db.fails(R, "fingerprint_key_missing", "fingerprint_key", "lookup(")
    assert re.search(r"fingerprint_key: .*\{\{ lookup\('", result.text)
    for how in ("on_create", "always"):
        assert not db.reconcile(R, check=True, update_password=how).failed


def test_no_key_on_drift(db: Database) -> None:
    """Who can see the stored verifier needs none; who cannot needs one."""
    db.converge(R, update_password="on_drift")
    options = db.admin("r")
    db.fails(R, "fingerprint_key_missing", "lookup(", update_password="on_drift", **options)
