# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pg_role_export as a module: its file, its failures, its results, its secrets, and what it costs."""

from __future__ import annotations

import ast
import os
import time
from pathlib import Path
from typing import Any, Mapping

import pytest
import yaml
from harness import Database
from test_documented_results import OURS_NOT, compare

SETUP = "CREATE ROLE app LOGIN; CREATE SCHEMA s; CREATE TABLE s.t (); GRANT SELECT ON s.t TO app"


def tables(db: Database, schema: str, number: int) -> None:
    """Make tables, as many at once as the lock table has room for."""
    for first in range(1, number + 1, 1000):
        last = min(first + 999, number)
        db.sql(
            f"DO $$BEGIN FOR i IN {first}..{last} LOOP EXECUTE format('CREATE TABLE {schema}.table_%s ()', i);"
            " END LOOP; END$$"
        )


def mode(file: Path) -> str:
    return oct(file.stat().st_mode & 0o7777)


# ---- the file


def test_the_file_is_written_once_for_its_owner_only(db: Database, tmp_path: Path) -> None:
    db.sql(SETUP)
    file = tmp_path / "access.yml"
    old = os.umask(0)
    try:
        first = db.run_export(dest=str(file))
    finally:
        os.umask(old)
    assert first.changed
    assert mode(file) == "0o600"
    assert file.read_text(encoding="utf-8") == first["yaml"]
    before = file.stat()
    again = db.run_export(dest=str(file))
    assert again.changed is False
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert list(tmp_path.iterdir()) == [file]
    db.sql("GRANT INSERT ON s.t TO app")
    file.chmod(0o640)
    assert db.run_export(dest=str(file)).changed
    assert "INSERT" in file.read_text(encoding="utf-8")
    assert mode(file) == "0o640"
    assert not db.run_export(dest=str(file)).changed


def test_check_mode_predicts_and_the_diff_shows_the_file(db: Database, tmp_path: Path) -> None:
    db.sql(SETUP)
    file = tmp_path / "access.yml"
    predicted = db.run_export(dest=str(file), check=True, diff=True)
    assert predicted.changed
    assert not file.exists()
    assert predicted.diff == [
        {"before": "", "after": predicted["yaml"], "before_header": str(file), "after_header": str(file)}
    ]
    assert db.run_export(dest=str(file), diff=True).changed
    assert db.run_export(dest=str(file), check=True, diff=True).changed is False
    db.sql("CREATE ROLE other")
    (shown,) = db.run_export(dest=str(file), check=True, diff=True).diff
    assert '"other"' not in shown["before"]
    assert '"other"' in shown["after"]


def test_what_somebody_wrote_into_the_file_is_not_shown_where_it_may_be_a_password(
    db: Database, tmp_path: Path
) -> None:
    file = tmp_path / "access.yml"
    file.write_text("roles: [{name: app, password: hush-hush}]\n")
    result = db.run_export(dest=str(file), diff=True)
    assert result.changed
    assert "hush-hush" not in str(result)
    assert "hush-hush" not in file.read_text()


def test_the_common_file_options_count(db: Database, tmp_path: Path) -> None:
    file = tmp_path / "access.yml"
    assert db.run_export(dest=str(file), mode="0644").changed
    assert mode(file) == "0o644"
    assert not db.run_export(dest=str(file), mode="0644").changed
    assert db.run_export(dest=str(file), mode="0600", check=True).changed
    assert mode(file) == "0o644"
    assert db.run_export(dest=str(file), mode="0600").changed
    assert mode(file) == "0o600"


@pytest.mark.parametrize(
    ("path", "word"),
    [("access.yml", "absolute"), ("{folder}", "no file"), ("{folder}/no/x", "no folder"), ("{link}", "link")],
)
def test_a_file_that_cannot_be(db: Database, tmp_path: Path, path: str, word: str) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    result = db.run_export(dest=path.format(folder=tmp_path, link=link))
    assert (result.failed, result.error_code, result.problems[0]["path"]) == (True, "manifest_invalid", "dest")
    assert word in result.text


# ---- options and failures


@pytest.mark.parametrize(
    ("options", "path", "word"),
    [
        ({"schemas": [5]}, "schemas[0]", "number 5"),
        ({"schemas": "s"}, "schemas", "must be a list"),
        ({"roles": []}, "roles", "must not be empty"),
        ({"ignore_roles": ["a", "*"]}, "ignore_roles[1]", "every name"),
        ({"role": ["x"]}, "role", 'unknown option'),
        ({"suggest_min_schemas": 1}, "suggest_min_schemas", "less than 2"),
        ({"dest": ["/tmp/x"]}, "dest", "a list"),
        ({"suggest_profiles": "perhaps"}, None, "suggest_profiles"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(db: Database, options: dict[str, Any], path: str | None, word: str) -> None:
    for check in (True, False):
        result = db.run_export(check=check, **options)
        assert (result.failed, result.error_code, result.problems[0]["path"]) == (True, "manifest_invalid", path), (
            result
        )
        assert word in result.text


def test_all_that_is_wrong_is_told_at_once(db: Database) -> None:
    result = db.run_export(schemas=[1], roles=[True], dest="x", suggest_min_schemas=0)
    assert {problem["path"] for problem in result.problems} == {"schemas[0]", "roles[0]", "dest", "suggest_min_schemas"}


def test_no_connection(db: Database) -> None:
    result = db.run_export(login_user="nobody_there")
    assert (result.failed, result.error_code, result.sql) == (True, "connection_failed", [])


def test_a_manifest_that_does_not_say_what_is_there_is_not_returned(db: Database, tmp_path: Path) -> None:
    db.sql(SETUP)
    file = tmp_path / "access.yml"
    room = "ansible_collections.pg_access.reconcile.plugins.module_utils.export.rules"
    for patch, word in (
        (f"import {room} as r; r.Rules.entries = lambda self: []", "REVOKE SELECT"),
        (f"import {room} as r; r.in_order = lambda names, kind: ['NONSENSE']", "NONSENSE"),
    ):
        result = db.run_export(patch=patch, dest=str(file))
        assert (result.failed, result.error_code) == (True, "not_converged")
        assert word in result.text
        assert "report" in result.text
        assert "manifest" not in result
        assert not file.exists()


def test_a_session_role_reads(db: Database) -> None:
    db.sql(SETUP)
    db.sql("CREATE ROLE reader")
    assert db.run_export(session_role="reader").server["executor"] == "reader"
    assert db.run_export(session_role="nobody_there").error_code == "object_missing"


def test_nothing_that_writes_is_sent(db: Database, tmp_path: Path) -> None:
    db.sql(SETUP)
    with db.statements() as sent:
        assert not db.run_export(dest=str(tmp_path / "x"), suggest_profiles=False).failed
    words = {statement.split()[0].upper() for statement in sent}
    assert words <= {"BEGIN", "SET", "SELECT", "WITH", "ROLLBACK"}
    assert any("REPEATABLE READ READ ONLY" in statement for statement in sent)


# ---- what is returned


@pytest.fixture(scope="module")
def documented() -> Mapping[str, Any]:
    module = Path(__file__).resolve().parents[2] / "plugins/modules/pg_role_export.py"
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "RETURN":
            found: Mapping[str, Any] = yaml.safe_load(ast.literal_eval(node.value))
            return found
    raise AssertionError("the module has no RETURN")


def test_what_is_returned_is_documented(db: Database, tmp_path: Path, documented: Mapping[str, Any]) -> None:
    db.sql(SETUP)
    db.sql("ALTER ROLE app PASSWORD 'x'; CREATE TABLE s.u (a int); REVOKE DELETE ON s.u FROM postgres")
    result = db.run_export(dest=str(tmp_path / "x"), diff=True)
    assert {item["reason"] for item in result["not_exported"]} == {"password", "owner_privileges"}
    success = {
        "changed",
        "manifest",
        "yaml",
        "not_exported",
        "left_out",
        "flat_roles",
        "summary",
        "server",
        "diff",
        "file",
    }
    assert result.keys() - OURS_NOT == success
    compare({name: result[name] for name in success - {"manifest", "diff", "not_exported"}}, documented)
    for item in result["not_exported"]:
        compare(item, documented["not_exported"]["contains"])
    failed = db.run_export(login_user="nobody_there")
    compare({name: value for name, value in failed.items() if name not in OURS_NOT}, documented)


def test_every_reason_is_documented(documented: Mapping[str, Any]) -> None:
    folder = Path(__file__).resolve().parents[2]
    told = str(documented["not_exported"]["contains"]["reason"]["description"])
    page = (folder / "docs/export.md").read_text(encoding="utf-8")
    reasons = {
        "password", "database_setting", "secret", "unknown_setting", "text", "valid_until", "connection_limit", "name",
        "dangling_grantee", "owner_privileges", "uncovered_type", "toast_table", "untrusted_language", "unknown_kind",
        "unknown_privilege",
    }  # fmt: skip
    for reason in reasons:
        assert f"V({reason})" in told
        assert f"`{reason}`" in page


def test_a_password_that_is_a_name_does_not_spoil_the_manifest(db: Database) -> None:
    db.sql(SETUP)
    result = db.run_export(login_password="app")
    assert {"name": "app", "login": True} in result["manifest"]["roles"]
    assert '"app"' in result["yaml"]


def test_a_secret_of_the_run_in_a_comment_stays_out(db: Database) -> None:
    db.sql(SETUP)
    db.sql("COMMENT ON ROLE app IS 'it is hush-hush-hush'; ALTER ROLE app SET my.own = 'hush-hush-hush'")
    result = db.run_export(login_password="hush-hush-hush")
    assert "hush-hush" not in str(result)
    assert "****" not in str(result)
    assert {(item["kind"], item["reason"]) for item in result["not_exported"]} == {
        ("comment", "secret"),
        ("config", "secret"),
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("app.pwd", "x"), ("app.service_role_key", "x"), ("app.jwt", "x"), ("x.passphrase", "x"), ("app.auth_tokens", "x"),
        ("app.url", "postgres://app:hunter2@db/erp"), ("app.cfg", '{"password": "x"}'), ("app.dsn", "host=db"),
    ],
)  # fmt: skip
def test_a_setting_that_seems_to_hold_a_secret_stays_out(db: Database, name: str, value: str) -> None:
    db.sql(SETUP)
    db.sql(f"ALTER ROLE app SET {name} = '{value}'; ALTER ROLE app SET app.colour = 'red'")
    result = db.run_export()
    assert {"name": "app", "login": True} in result["manifest"]["roles"]
    assert [(item["kind"], item["reason"]) for item in result["not_exported"]] == [("config", "secret")]


def test_a_setting_about_a_secret_is_none(db: Database) -> None:
    db.sql(SETUP)
    db.sql("ALTER ROLE app SET app.token_ttl = '60'; ALTER ROLE app SET app.monkey = 'x'")
    assert {"app.monkey": "x", "app.token_ttl": "60"} in [
        role.get("config") for role in db.run_export()["manifest"]["roles"]
    ]


@pytest.mark.parametrize(
    "comment", ["SCRAM-SHA-256$4096:c2FsdA==$a:b", "was md5" + "0" * 32, "see postgres://u:pw@h/db"]
)
def test_a_comment_that_seems_to_hold_a_secret_stays_out(db: Database, comment: str) -> None:
    db.sql(SETUP)
    db.sql(f"COMMENT ON ROLE app IS '{comment}'")
    result = db.run_export()
    assert comment not in str(result)
    assert [(item["kind"], item["reason"]) for item in result["not_exported"]] == [("comment", "secret")]


def test_a_reader_that_cannot_see_whose_password_we_set_says_so(db: Database) -> None:
    """A run by somebody who can takes the password of a role without login away."""
    db.sql("CREATE ROLE reader LOGIN")
    db.converge({"roles": [{"name": "reader", "login": True}, {"name": "npw", "login": False, "password": "hush-hush-hush"}]},
                fingerprint_key="k" * 20)  # fmt: skip
    assert {"name": "npw", "external": True} in db.run_export()["manifest"]["roles"]
    (item,) = [one for one in db.run_export(login_user="reader")["not_exported"] if one["role"] is None]
    assert item["reason"] == "password_records"


# ---- what is asked for


@pytest.mark.parametrize("option", ["schemas", "roles"])
def test_a_pattern_that_matches_nothing_leaves_the_file_alone(db: Database, tmp_path: Path, option: str) -> None:
    db.sql(SETUP)
    file = tmp_path / "access.yml"
    assert db.run_export(dest=str(file)).changed
    before = file.read_text()
    result = db.run_export(dest=str(file), **{option: ["nosuch", "pg_cat*log"]})
    assert (result.error_code, result["problems"][0]["path"]) == ("object_missing", option)
    assert file.read_text() == before
    good = {"schemas": "s", "roles": "app"}[option]
    (warning,) = db.run_export(**{option: [good, "nosuch"]}).warnings
    assert f"{option}[1]" in warning


@pytest.mark.parametrize(("option", "value"), [("mode", "zzz"), ("owner", "nosuchuser"), ("group", "nosuchgroup")])
def test_attributes_that_no_file_can_have_are_found_before_there_is_one(
    db: Database, tmp_path: Path, option: str, value: str
) -> None:
    db.sql(SETUP)
    file = tmp_path / "access.yml"
    for check in (True, False):
        result = db.run_export(dest=str(file), check=check, **{option: value})
        assert (result.error_code, result["problems"][0]["path"]) == ("manifest_invalid", option)
    assert not file.exists()
    for fine in ("0640", "u=rw,g=r", "640"):
        assert not db.run_export(dest=str(file), mode=fine, owner="root").failed


def test_a_result_that_is_too_large_leaves_the_manifest_to_the_file(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE ROLE app; CREATE SCHEMA s; DROP SCHEMA public")
    tables(db, "s", 6000)
    db.sql("GRANT SELECT ON ALL TABLES IN SCHEMA s TO app; CREATE TABLE s.one_more ()")
    file = tmp_path / "access.yml"
    result = db.run_export(dest=str(file))
    assert (result["manifest"], result["yaml"], result["truncated"]) == ({}, "", True)
    assert result["summary"]["grants"] == 6000
    assert len(yaml.safe_load(file.read_text())["grants"]) == 6000
    (warning,) = result.warnings
    assert str(file) in warning
    whole = db.run_export()
    assert len(whole["manifest"]["grants"]) == 6000
    assert "use dest" in whole.warnings[0]


def test_ten_thousand_tables_are_no_matter(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE ROLE app; CREATE ROLE other; CREATE SCHEMA s; CREATE SCHEMA u; DROP SCHEMA public")
    tables(db, "s", 9000)
    tables(db, "u", 1000)
    db.sql("GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA s, u TO app; GRANT UPDATE ON ALL TABLES IN SCHEMA u TO other")
    start = time.monotonic()
    result = db.run_export()
    took = time.monotonic() - start
    assert not result.failed, result
    assert result["summary"]["grants"] == 3
    assert took < 10, f"{took:.1f} s"
    print(f"10,000 tables: {took:.2f} s")


def test_ansible_does_not_take_the_result_for_that_of_a_skipped_task(db: Database) -> None:
    db.sql("CREATE ROLE app LOGIN PASSWORD 'x'")
    result = db.run_export()
    assert len(result["not_exported"]) == 1
    assert not {"skipped", "failed", "unreachable", "rc", "results", "ansible_facts"} & result.keys()
