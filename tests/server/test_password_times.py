# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When exactly is a password sent? The four values of ``update_password`` in every situation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import Database, Result
from password_support import Executor, K, R, md5, scram, sent, set_verifier, with_password

HOW = ("on_change", "on_drift", "on_create", "always")


def fail_late(db: Database) -> None:
    """Make the server refuse statements that come after passwords."""
    db.sql(
        "CREATE FUNCTION public.no() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not today''; END'",
        "CREATE EVENT TRIGGER no ON ddl_command_start WHEN TAG IN ('GRANT') EXECUTE FUNCTION public.no()",
    )


def succeed_again(db: Database) -> None:
    db.sql("DROP EVENT TRIGGER no; DROP FUNCTION public.no()")


def restore(db: Database) -> None:
    """Make this database think that it lies in another cluster, as after a restore or an upgrade."""
    db.sql(
        "SET allow_system_table_mods = on",
        "ALTER FUNCTION pg_catalog.pg_control_system() RENAME TO pg_control_system_before",
        "CREATE FUNCTION pg_catalog.pg_control_system(OUT pg_control_version integer, OUT catalog_version_no integer,"
        " OUT system_identifier bigint, OUT pg_control_last_modified timestamptz)"
        " LANGUAGE sql AS 'SELECT 1300, 1, 4711::bigint, pg_catalog.now()'",
        "RESET allow_system_table_mods",
    )


def converged(db: Database, **options: Any) -> None:
    """The starting point of most situations: the module has set the password, with a record."""
    result = db.reconcile(R, **{**options, **K, "update_password": "on_change"})
    assert not result.failed, result
    assert db.logs_in("r", "s3cret")


def _made_by_hand(db: Database, options: dict[str, Any]) -> None:
    db.sql("CREATE ROLE r LOGIN")
    if options:
        db.admin("r")


def _fresh(db: Database, options: dict[str, Any]) -> None:
    pass


def _same(db: Database, options: dict[str, Any]) -> None:
    converged(db, **options)


def _changed_in_the_manifest(db: Database, options: dict[str, Any]) -> None:
    converged(db, **options)


def _changed_by_hand(db: Database, options: dict[str, Any]) -> None:
    converged(db, **options)
    db.sql("ALTER ROLE r PASSWORD 'other'")


def _cleared_by_hand(db: Database, options: dict[str, Any]) -> None:
    converged(db, **options)
    db.sql("ALTER ROLE r PASSWORD NULL")


def _md5_is_stored(db: Database, options: dict[str, Any]) -> None:
    converged(db, **options)
    set_verifier(db, md5("s3cret", "r"))


def _other_iterations_are_stored(db: Database, options: dict[str, Any]) -> None:
    converged(db, **options)
    set_verifier(db, scram("s3cret", 5000))


def _dropped_and_made_again(db: Database, options: dict[str, Any]) -> None:
    converged(db, **options)
    db.sql("DROP ROLE r")
    _made_by_hand(db, options)


def _dropped(db: Database, options: dict[str, Any]) -> None:
    converged(db, **options)
    db.sql("DROP ROLE r")


def _renamed(db: Database, options: dict[str, Any]) -> None:
    result = db.reconcile({"roles": [{"name": "before", "password": "s3cret"}]}, **options, **K)
    assert not result.failed, result
    db.sql("SET client_min_messages = error; ALTER ROLE before RENAME TO r; RESET client_min_messages")


def _rolled_back(db: Database, options: dict[str, Any]) -> None:
    _made_by_hand(db, options)
    db.sql(f"CREATE SCHEMA s AUTHORIZATION {options.get('login_user', 'postgres')}")
    fail_late(db)
    grant = [{"role": "r", "privileges": ["USAGE"], "object": {"type": "schema", "name": "s"}}]
    result = db.reconcile({**R, "grants": grant}, **options, **K)
    assert result.failed
    assert "not today" in result.text
    succeed_again(db)
    assert db.records() == {}
    assert not db.logs_in("r", "s3cret")


def _checked_only(db: Database, options: dict[str, Any]) -> None:
    result = db.reconcile(R, check=True, **options, **K)
    assert len(sent(result)) == 1
    assert db.records() == {}


def _restored(db: Database, options: dict[str, Any]) -> None:
    converged(db, **options)
    restore(db)


#: What happened before; how often the password is sent then, by ``update_password``; and in ``on_drift`` by an executor
#: that may not read pg_authid.
SITUATIONS: dict[str, tuple[Callable[[Database, dict[str, Any]], None], tuple[int, int, int, int], int]] = {
    "fresh": (_fresh, (1, 1, 1, 1), 1),
    "nobody set one": (_made_by_hand, (1, 1, 0, 1), 1),
    "same": (_same, (0, 0, 0, 1), 0),
    "changed in the manifest": (_changed_in_the_manifest, (1, 1, 0, 1), 1),
    "changed by hand": (_changed_by_hand, (0, 1, 0, 1), 0),
    "cleared by hand": (_cleared_by_hand, (0, 1, 0, 1), 0),
    "md5 is stored": (_md5_is_stored, (0, 1, 0, 1), 0),
    "other iterations are stored": (_other_iterations_are_stored, (0, 0, 0, 1), 0),
    "dropped and made again": (_dropped_and_made_again, (1, 1, 0, 1), 1),
    "dropped": (_dropped, (1, 1, 1, 1), 1),
    "renamed": (_renamed, (1, 0, 0, 1), 1),
    "rolled back": (_rolled_back, (1, 1, 0, 1), 1),
    "checked only": (_checked_only, (1, 1, 1, 1), 1),
    "key rotated": (_same, (1, 0, 0, 1), 1),
    "restored": (_restored, (1, 0, 0, 1), 1),
}


def run(db: Database, manifest: dict[str, Any], expected: int, **options: Any) -> Result:
    """A check run and a run that send the password so often; a second one does only under ``always``."""
    before = db.snapshot()
    predicted = db.reconcile(manifest, check=True, **options)
    assert db.snapshot() == before, "the check run wrote something"
    result = db.reconcile(manifest, **options)
    assert not result.failed, result
    assert result.sql == predicted.sql
    assert result.plan_digest == predicted.plan_digest
    assert len(sent(result)) == expected, result.sql
    assert result.summary["passwords"]["set"] == expected
    again = db.reconcile(manifest, **options)
    always = options.get("update_password") == "always"
    assert len(sent(again)) == len(again.sql) == int(always), again.sql
    assert again.changed is always
    return result


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_when_it_is_sent(db: Database, executor: Executor, situation: str, how: str) -> None:
    prepare, counts, unreadable = SITUATIONS[situation]
    options = executor()
    prepare(db, options)
    expected = counts[HOW.index(how)]
    if how == "on_drift" and options:
        expected = unreadable
    password = "new" if situation == "changed in the manifest" else "s3cret"
    key = {"fingerprint_key": "another key, after a rotation"} if situation == "key rotated" else K
    run(db, with_password(password), expected, update_password=how, **options, **key)
    if expected:
        assert db.logs_in("r", password)
        # Whatever sent it, with a key there is a record: from now on only changes are sent.
        record = db.record("r")
        assert record
        assert db.silent(with_password(password), **options, **key)
        assert db.record("r") == record
    elif situation in ("same", "key rotated", "restored", "other iterations are stored", "renamed"):
        assert db.logs_in("r", "s3cret")
    else:
        assert not db.logs_in("r", password)


def test_the_key_file_is_lost(db: Database, executor: Executor, tmp_path: Path) -> None:
    path = tmp_path / "key"
    options = {**executor(), "fingerprint_key_file": str(path)}
    run(db, R, 1, **options)
    path.unlink()
    result = db.reconcile(R, check=True, **options)
    assert len(sent(result)) == 1, "in check mode a missing key file means that every password is changed"
    assert not path.exists()
    result = db.reconcile(R, **options)
    assert len(sent(result)) == 1
    assert path.exists()
    db.silent(R, **options)


def test_without_the_right_to_ask_for_the_system_identifier(db: Database) -> None:
    """Where ``pg_control_system()`` may not be called, the identifier is empty, with a warning."""
    options = db.admin()
    db.sql("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    for expected in (1, 0):
        result = db.reconcile(R, **options, **K)
        assert not result.failed, result
        assert len(sent(result)) == expected
        assert [text for text in result.warnings if "pg_control_system" in text]
    assert db.logs_in("r", "s3cret")
    db.sql("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
    run(db, R, 1, **options, **K)


def test_equal_passwords_do_not_show_as_equal(db: Database) -> None:
    manifest = {"roles": [{"name": "r", "password": "s3cret"}, {"name": "r2", "password": "s3cret"}]}
    db.converge(manifest, **K)
    ours, others = str(db.record("r")), str(db.record("r2"))
    assert ours.split(",")[1:] != others.split(",")[1:]


@pytest.mark.parametrize("how", HOW)
def test_a_record_is_written_whenever_a_password_is_sent(db: Database, how: str) -> None:
    result = db.reconcile(R, update_password=how, **K)
    assert not result.failed, result
    assert db.record("r")
    db.silent(R, **K)


@pytest.mark.parametrize("how", ["on_drift", "on_create", "always"])
def test_without_a_key_no_record(db: Database, how: str) -> None:
    result = db.reconcile(R, update_password=how)
    assert not result.failed, result
    assert db.logs_in("r", "s3cret")
    assert db.records() == {}
    # The first run with a key cannot know that it is the same.
    assert len(sent(db.converge(R, **K))) == 1


def test_always_is_a_change_each_time(db: Database, executor: Executor) -> None:
    options = {**executor(), **K, "update_password": "always"}
    verifiers = set()
    for _run in range(3):
        predicted = db.reconcile(R, check=True, **options)
        result = db.reconcile(R, **options)
        assert result.changed
        assert predicted.changed
        assert sent(result) == sent(predicted) == ["ALTER ROLE \"r\" PASSWORD '********'"]
        verifiers.add(db.verifier("r"))
    assert len(verifiers) == 3


# Modes


@pytest.mark.parametrize("how", HOW)
def test_additive_sets_only_what_it_creates(db: Database, executor: Executor, how: str) -> None:
    db.sql("CREATE ROLE r LOGIN PASSWORD 'by hand'")
    options = {**executor("r"), **K, "reconciliation_mode": "additive", "update_password": how}
    manifest = {"roles": [{"name": "r", "password": "s3cret"}, {"name": "n", "password": "s3cret"}]}
    stored = db.verifier("r")
    result = db.reconcile(manifest, **options)
    assert not result.failed, result
    assert sent(result) == ["ALTER ROLE \"n\" PASSWORD '********'"]
    assert db.verifier("r") == stored
    assert db.logs_in("n", "s3cret")
    if how != "on_create":
        (item,) = [item for item in result.held(reason="mode", role="r") if "PASSWORD" in str(item["sql"])]
        assert "s3cret" not in str(item)
    again = db.reconcile(manifest, **options)
    assert not again.changed
    assert db.logs_in("n", "s3cret")


def test_additive_takes_no_password_out(db: Database) -> None:
    db.converge(R, **K)
    result = db.silent("roles: [{name: r}]", reconciliation_mode="additive", **K)
    assert result.held(reason="mode", role="r")
    assert db.logs_in("r", "s3cret")
    assert db.record("r")


def test_adopt_sets_passwords(db: Database, executor: Executor) -> None:
    db.sql("CREATE ROLE r LOGIN PASSWORD 'by hand'")
    options = {**executor("r"), **K, "reconciliation_mode": "adopt"}
    assert len(sent(db.converge(R, **options))) == 1
    assert db.logs_in("r", "s3cret")
    db.converge("roles: [{name: r}]", **options)
    assert db.verifier("r") is None


def test_assumed_roles_keep_theirs(db: Database) -> None:
    db.sql("CREATE ROLE r LOGIN PASSWORD 'by hand'")
    stored = db.verifier("r")
    db.silent("assume_roles: [r]", **K)
    assert db.verifier("r") == stored
    db.rejects("assume_roles: [r]", "r", passwords={"r": "s3cret"}, **K)


def test_the_digest_does_not_tell_the_password(db: Database) -> None:
    """Approving a plan does not approve a password's value."""
    db.sql("CREATE ROLE r LOGIN")
    digests = {db.reconcile(with_password(text), check=True, **K).plan_digest for text in ("s3cret", "other")}
    assert len(digests) == 1
