# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What docs/security.md says of who may change a manifest: with templates it is a program, without it is data.

And what the plan of a login is worth that may only read the catalog.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from harness import Database
from playbook_support import Played, play

ROLE = "pg_access.reconcile.reconcile"
MODULE = "pg_access.reconcile.pg_role_reconcile"

#: What somebody merges who may merge nothing but manifests. It would leave a file where it runs.
EVIL = """roles: [{name: app, comment: "{{ lookup('ansible.builtin.pipe', 'touch ran; echo hello') }}"}]\n"""
GOOD = "roles: [{name: app, comment: '100% {sure}, {#3}'}]\n"


def _folder(folder: Path, **files: str) -> Path:
    (folder / "access").mkdir()
    for name, text in files.items():
        (folder / f"access/{name}.yml").write_text(text, encoding="utf-8")
    return folder


def _role(db: Database, folder: Path, *words: str, file: str = "access/shop.yml", **options: object) -> Played:
    """A run of the role with one file."""
    variables = {
        "reconcile_database": db.name,
        "reconcile_manifest_files": [f"{{{{ playbook_dir }}}}/{file}"],
        "reconcile_manifest_templates": False,
        **options,
    }
    task = {"ansible.builtin.import_role": {"name": ROLE}, "vars": variables}
    playbook = [{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]
    (folder / "site.yml").write_text(yaml.safe_dump(playbook, sort_keys=False), encoding="utf-8")
    return play(db, folder, "site.yml", "-e", f"ansible_python_interpreter={sys.executable}", *words)


@pytest.mark.versions(min=18)
def test_a_manifest_that_the_role_templates_is_a_program(db: Database, tmp_path: Path) -> None:
    """Which is why the page says it; also in check mode."""
    folder = _folder(tmp_path, shop=EVIL)
    assert _role(db, folder, "--check", reconcile_manifest_templates="").status == 0
    assert (folder / "ran").exists()


@pytest.mark.versions(min=18)
def test_without_templates_it_is_data(db: Database, tmp_path: Path) -> None:
    folder = _folder(tmp_path, shop=EVIL, good=GOOD, vaulted='roles: [{name: app, comment: !vault "x"}]\n')
    for file, words in (("shop", "contains a template"), ("vaulted", "!vault")):
        for check in (["--check"], []):
            run = _role(db, folder, *check, file=f"access/{file}.yml")
            assert run.status != 0 and "manifest_invalid" in run.output and words in run.output, run.output
    # A mapping key, a lookup in a list, and what stands beside sections are no other way in.
    for text in ("\"{{ lookup('pipe', 'touch ran') }}\": 1\n", "roles: \"{{ lookup('pipe', 'touch ran') }}\"\n"):
        (folder / "access/shop.yml").write_text(text, encoding="utf-8")
        assert _role(db, folder, "--check").status != 0
    runs = [_role(db, folder, file="access/good.yml") for _time in range(2)]
    assert [(run.status, run.changed) for run in runs] == [(0, 1), (0, 0)], runs
    assert db.comment("app") == "100% {sure}, {#3}"
    assert not (folder / "ran").exists()


@pytest.mark.versions(min=18)
def test_a_missing_file_is_not_looked_for_where_templates_would_work(db: Database, tmp_path: Path) -> None:
    folder = _folder(tmp_path, empty="")
    (folder / "vars/access").mkdir(parents=True)
    (folder / "vars/access/shop.yml").write_text(EVIL, encoding="utf-8")
    (folder / "vars/shop.yml").write_text(EVIL, encoding="utf-8")
    for options in (
        {},
        {"file": "access/empty.yml"},
        {"reconcile_manifest_files": ["shop.yml"]},
        {"reconcile_manifest_files": ["access/shop.yml"]},
    ):
        run = _role(db, folder, "--check", **options)  # type: ignore[arg-type]
        assert run.status != 0 and "reconcile_manifest_files[0]" in run.output, run.output
    assert not (folder / "ran").exists()


@pytest.mark.versions(min=18)
def test_what_does_not_go_together_is_said(db: Database, tmp_path: Path) -> None:
    folder = _folder(tmp_path, shop=GOOD)
    run = _role(db, folder, reconcile_manifest_templates="nope")
    assert run.status != 0 and "reconcile_manifest_templates must be true or false" in run.output
    (folder / "access/bundle.yml").write_text("sources: [{file: /proc/self/environ}]\nshared: {}\n", encoding="utf-8")
    run = _role(db, folder, file="access/bundle.yml")
    assert run.status != 0 and "no file says what else is read" in run.output, run.output
    databases = [{"login_db": db.name, "manifest_files": ["{{ playbook_dir }}/access/shop.yml"]}]
    run = _role(db, folder, reconcile_databases=databases, reconcile_database="", reconcile_manifest_files=[])
    assert run.status != 0 and "read as it stands" in run.output, run.output


@pytest.mark.versions(min=18)
def test_the_module_templates_no_file(db: Database, tmp_path: Path) -> None:
    folder = _folder(tmp_path, shop=EVIL)
    options = {"login_db": db.name, "manifest_files": ["{{ playbook_dir }}/access/shop.yml"]}
    playbook = [{"hosts": "localhost", "gather_facts": False, "tasks": [{MODULE: options}]}]
    (folder / "site.yml").write_text(yaml.safe_dump(playbook), encoding="utf-8")
    run = play(db, folder, "site.yml", "--check", "-e", f"ansible_python_interpreter={sys.executable}")
    assert run.status != 0 and "manifest_invalid" in run.output and not (folder / "ran").exists(), run.output


def test_the_plan_of_a_mere_reader(db: Database) -> None:
    """The same statements, as a failure without a digest; where nothing is to do, the same digest."""
    db.sql("CREATE ROLE looker LOGIN; CREATE ROLE other; CREATE SCHEMA inventory; CREATE TABLE inventory.t (id int)")
    db.sql("GRANT INSERT ON inventory.t TO other")
    manifest = (
        "schemas: [{name: inventory}]\nroles: [{name: app}]\n"
        "grants: [{role: app, privileges: [SELECT], object: {type: table, schema: inventory, name: t}}]"
    )
    planned = db.reconcile(manifest, check=True)
    failed = db.reconcile(manifest, check=True, login_user="looker")
    assert (failed.error_code, failed.plan) == ("insufficient_privilege", planned.sql)
    assert "plan_digest" not in failed
    digest = db.converge(manifest) and db.reconcile(manifest, check=True).plan_digest
    assert db.silent(manifest, login_user="looker").plan_digest == digest
    # Drift is a failed job, with the statements.
    db.sql("GRANT DELETE ON inventory.t TO other")
    failed = db.reconcile(manifest, check=True, login_user="looker")
    assert failed.error_code == "insufficient_privilege" and failed.plan == ['REVOKE DELETE ON TABLE "inventory"."t" FROM "other"']
