# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every YAML block of the documentation is run as it stands there. What is not run here is in documented_examples.yml.

Only the address of the server, the name of its database and folders of the controller are those of the test.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from example_support import EXPORT, RECONCILE, ROLE, Example, entry, examples, manifests, registered, world
from harness import CHECKOUT, Database
from playbook_support import Played, for_database, play

EXAMPLES = examples()
HERE = [example for example in EXAMPLES if not entry(example).keys() & {"by", "not run"}]


def _marked(kinds: set[str]) -> list[Any]:
    return [pytest.param(one, id=f"{one.page}:{one.line}") for one in HERE if one.kind in kinds]


#: What playbooks on the pages take from their surroundings.
VARIABLES = {
    name: f"{name} that is long enough for a key"
    for name in ("app_password", "dashboard_password", "fingerprint_key", "vaulted_password", "vault_app_password")
} | {"app_role": "app"}

#: What is in other tools' files.
RESOURCES = {
    "roles.yml": """
apiVersion: postgresql.aboutbits.it/v1
kind: Role
metadata: {name: app}
spec: {clusterRef: {name: main}, name: app, passwordSecretRef: {name: app}}
""",
    "grants.yml": """
apiVersion: postgresql.aboutbits.it/v1
kind: Grant
metadata: {name: app-connects}
spec: {clusterRef: {name: main}, role: app, database: SHOP, objectType: database, privileges: [connect]}
""",
}

SHOP = "schemas: [{name: inventory}]\nroles: [{name: app, login: true}, {name: dashboard, login: true}]\n"
LEGACY = "roles: [{name: pgloader_pg, external: true, privilege_reconciliation: additive}]\n"


def _prepare(db: Database, example: Example) -> None:
    found = list(manifests(example.value))
    for manifest in found or [{}]:
        for statement in world(manifest):
            db.sql(statement)
    if before := entry(example).get("before"):
        db.sql(before)


def _local(db: Database, folder: Path, text: str) -> str:
    """A block about the test's server, database and folders."""
    text = for_database(db, text)
    text = re.sub(r"(?<=type: database, name: )shop\b", db.name, text)
    text = text.replace("db.example.com", str(db.server.socket_directory)).replace("access_admin", "postgres")
    text = text.replace("ssl_mode: verify-full", "ssl_mode: prefer")
    text = re.sub(r"login_unix_socket: /\S+", f"login_unix_socket: {db.server.socket_directory}", text)
    for place in ("/var/tickets", "/etc/access", "/srv/access", "/run/secrets"):
        text = text.replace(place, str(folder / "files"))
    lookup = r"'amazon\.aws\.secretsmanager_secret', '[^']*'(?:, nested=true)?"
    text = re.sub(lookup, "'ansible.builtin.env', 'A_SECRET'", text)
    return re.sub(r"^( *)hosts: db$", r"\1hosts: localhost", text, flags=re.M)


#: Whom the files on the controller name.
LEGACY_LOGIN = "DO $$ BEGIN IF to_regrole('pgloader_pg') IS NULL THEN CREATE ROLE pgloader_pg; END IF; END $$"


def _folder(db: Database, folder: Path) -> None:
    db.sql(LEGACY_LOGIN)
    (folder / "inventory").write_text("localhost ansible_connection=local\n", encoding="utf-8")
    for name in ("access", "files"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "shop.yml").write_text(SHOP, encoding="utf-8")
        for legacy in ("legacy.yml", "pgloader_pg.yml", "ours.yml"):
            (folder / name / legacy).write_text(LEGACY, encoding="utf-8")
        for resource, text in RESOURCES.items():
            (folder / name / resource).write_text(text.replace("SHOP", db.name), encoding="utf-8")
    for name in ("app", "fingerprint-key"):
        (folder / "files" / name).write_text(f"{name} that is long enough for a key\n", encoding="utf-8")


def _twice(db: Database, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Played, Played]:
    for name in ("APP_PASSWORD", "FINGERPRINT_KEY", "A_SECRET"):
        monkeypatch.setenv(name, f"{name} that is long enough for a key")
    words = ("example.yml", "-i", "inventory", "-e", f"ansible_python_interpreter={sys.executable}")
    runs = play(db, folder, *words), play(db, folder, *words)
    for run in runs:
        assert run.status == 0, run.output
    assert runs[1].changed == 0 or "check_mode: true" in (folder / "example.yml").read_text(encoding="utf-8"), runs[
        1
    ].output
    return runs


@pytest.mark.parametrize("example", _marked({"manifest"}))
def test_manifests_run(db: Database, example: Example) -> None:
    _prepare(db, example)
    text = re.sub(r"(?<=type: database, name: )shop\b", db.name, example.text)
    manifest = yaml.safe_load(text)
    if db.version < int(entry(example).get("from", 0)):
        db.fails(manifest, "unsupported_version")
        return
    result = db.converge(manifest, fingerprint_key="a key that is long enough for it")
    assert result.changed or result.suppressed_revokes or manifest.keys() == {"scope"}, (
        "it does nothing, so it shows nothing"
    )


@pytest.mark.versions(min=18)
@pytest.mark.parametrize("example", _marked({"tasks"}))
def test_tasks_run(db: Database, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _prepare(db, example)
    _folder(db, tmp_path)
    tasks = yaml.safe_load(_local(db, tmp_path, example.text))
    if "reconcile_results" in example.text:
        # Tasks after the role.
        given = {"reconcile_database": db.name, "reconcile_manifest": yaml.safe_load(SHOP)}
        tasks.insert(0, {"ansible.builtin.include_role": {"name": ROLE}, "vars": given})
    assert any({RECONCILE, EXPORT, "ansible.builtin.include_role"} & set(task) for task in tasks), (
        "it is about nothing of ours"
    )
    playbook = [{"hosts": "localhost", "gather_facts": False, "vars": VARIABLES, "tasks": tasks}]
    (tmp_path / "example.yml").write_text(yaml.safe_dump(playbook, sort_keys=False), encoding="utf-8")
    _twice(db, tmp_path, monkeypatch)


@pytest.mark.versions(min=18)
@pytest.mark.parametrize("example", _marked({"plays"}))
def test_playbooks_run(db: Database, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _prepare(db, example)
    _folder(db, tmp_path)
    plays = yaml.safe_load(_local(db, tmp_path, example.text))
    for one in plays:
        one["vars"] = {**VARIABLES, **one.get("vars", {})}
        if not {"tasks", "roles"} & one.keys():
            # A play that only says where passwords come from.
            options = {"login_db": db.name, "roles": [{"name": "app", "password": "{{ app_password }}"}]}
            one["tasks"] = [{RECONCILE: {**options, "fingerprint_key": "{{ fingerprint_key }}"}}]
        # Other collections are not there.
        for task in [task for task in one.get("tasks", []) if any(key.startswith("community.") for key in task)]:
            one["tasks"].remove(task)
    (tmp_path / "example.yml").write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
    (tmp_path / "secrets.yml").write_text(yaml.safe_dump(VARIABLES), encoding="utf-8")
    first, _second = _twice(db, tmp_path, monkeypatch)
    assert first.changed, "it does nothing, so it shows nothing"
    if "roles" in plays[0]:
        assert ROLE in example.text


def test_every_block_is_known() -> None:
    """A block that no test here can run is in the register, with the test that runs it or the reason why none does."""
    assert [f"{one.page}:{one.line}: {one.first}" for one in HERE if one.kind == "other"] == []
    assert len(HERE) > 25


def test_the_register_is_about_blocks_that_are_there() -> None:
    for page, entries in registered().items():
        firsts = {one.first for one in EXAMPLES if one.page == page}
        assert firsts, f"{page} has no YAML"
        assert set(entries) - firsts - {"*"} == set(), page
        for first, said in entries.items():
            assert (
                said.keys() <= {"by", "not run", "before", "same", "from"} and len(said.keys() & {"by", "not run"}) < 2
            ), first


def test_who_else_runs_a_block_knows_it() -> None:
    """The other test reads the page, or has the same words in it."""
    seen = 0
    for example in EXAMPLES:
        said = entry(example)
        if "by" in said:
            seen += 1
            text = (CHECKOUT / said["by"]).read_text(encoding="utf-8")
            if "same" in said:
                assert said["same"] in text and said["same"] in example.text, said
            else:
                assert Path(example.page).name in text, said
    assert seen > 5
