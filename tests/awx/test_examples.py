# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every YAML example of the AWX guide and of the role's page: run where it can be, judged by the modules where not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import injection
import psycopg
import pytest
import servers
import yaml
from controller import Controller, serving
from playbooks import ROLE, Playbooks
from test_objects import argument_problems

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "docs/awx.md", ROOT / "roles/awx_job_template/README.md")

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"

#: Files of the project, which are run together.
PROJECT = ("reconcile.yml", "drift.yml", "access/shop.yml")


def _examples() -> dict[str, str]:
    """The examples by the name of the file in their first line, or by page and number."""
    found = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for number, example in enumerate(re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)):
            match = re.match(r"# (\S+)\n", example)
            found[match[1] if match else f"{page.parent.name}-{number}"] = example
    return found


SECRETS = {"ACCESS_ADMIN_PASSWORD": "s3cret", "FINGERPRINT_KEY": "sixteen-bytes-or-more"}

EXAMPLES = _examples()
PLAYS = [name for name, text in EXAMPLES.items() if ROLE in text]
TASKS = [name for name, text in EXAMPLES.items() if "awx.awx." in text and name not in PLAYS]


def test_every_example_is_tested() -> None:
    others = {"execution-environment.yml", "collections/requirements.yml"}
    assert len(PLAYS) == 3 and len(TASKS) == 3
    assert set(EXAMPLES) == {*PLAYS, *TASKS, *PROJECT, *others}


@pytest.mark.parametrize("name", PLAYS)
def test_the_role_is_called_as_shown(name: str, playbooks: Playbooks, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    play = EXAMPLES[name].replace("'ca.pem'", f"'{tmp_path}/ca.pem'")
    controller = Controller(["reconcile.yml"])
    organization = {each: controller.add("organizations", name=each) for each in ("Default", "Databases")}["Default"]
    controller.add("projects", name="Access", organization=organization)
    kind = controller.add("credential_types", name="theirs", kind="cloud")
    controller.add("credentials", name="Login of the DBAs", organization=organization, credential_type=kind)
    controller.add("instance_groups", name="production")
    controller.add("notification_templates", name="DBAs", organization=organization)
    secrets = ["-e", "vaulted_password=one", "-e", "vaulted_fingerprint_key=sixteen-bytes-or-more"]
    with serving(controller) as address:
        first = playbooks.run(play, *secrets, address=address, variables=SECRETS)
        assert first.code == 0, first.output
        made = len(controller.writes)
        assert made > 10
        if name != "service.yml":
            return
        again = playbooks.run(play, *secrets, address=address, variables=SECRETS)
    assert again.code == 0, again.output
    assert (again.changed, len(controller.writes)) == ({}, made)
    assert controller.posted("credentials", "PostgreSQL access")["inputs"]["password"] == "s3cret"
    assert controller.posted("credentials", "PostgreSQL access")["inputs"]["ca"] == CERTIFICATE.strip()


@pytest.mark.parametrize("name", TASKS)
def test_other_tasks_fit_their_modules(name: str, collections: Path) -> None:
    tasks = [task for play in yaml.safe_load(EXAMPLES[name].replace("!unsafe ", "")) for task in play["tasks"]]
    modules = [
        (key.removeprefix("awx.awx."), task[key]) for task in tasks for key in task if key.startswith("awx.awx.")
    ]
    assert len(modules) == len(tasks) == 2
    for module, arguments in modules:
        assert argument_problems(collections, module, arguments) == []


def test_the_filters_own_example_finds_what_is_wrong(playbooks: Playbooks) -> None:
    text = (ROOT / "plugins/filter/awx_problems.py").read_text(encoding="utf-8")
    found = re.search(r'^EXAMPLES = r"""\n(.*?)^"""', text, re.M | re.S)
    assert found
    play = {"hosts": "localhost", "gather_facts": False, "tasks": yaml.safe_load(found[1])}
    run = playbooks.run([play])
    assert run.code == 0 and run.changed == {}, run.output
    for message in (
        "project.scm_ulr: awx.awx.project has no such option; did you mean scm_url?",
        "project.scm_url: it is",
    ):
        assert f"awx_job_template_{message}" in run.output


def test_what_an_image_and_a_project_need_is_named() -> None:
    image = yaml.safe_load(EXAMPLES["execution-environment.yml"])
    assert image["version"] == 3 and image["images"]["base_image"]["name"]
    # It is the one that the page on execution environments begins with, where ansible-builder reads it.
    page = (ROOT / "docs/execution-environments.md").read_text(encoding="utf-8")
    assert EXAMPLES["execution-environment.yml"] in page
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    name = f"{galaxy['namespace']}.{galaxy['name']}"
    for wanted in (image["dependencies"]["galaxy"], yaml.safe_load(EXAMPLES["collections/requirements.yml"])):
        assert [each["name"] for each in wanted["collections"]] == [name]


@pytest.mark.parametrize(("database", "asked"), [("shop", True), ("off", False)])
def test_the_project_is_planned_and_applied(
    database: str, asked: bool, playbooks: Playbooks, newest: int, tmp_path: Path
) -> None:
    """As the two job templates do it: inventory, extra variables and the credential's environment are the role's. The
    database is in the survey's answer, or only in the credential.
    """
    values: dict[str, Any] = {
        "awx_job_template_project": {"name": "Access"},
        "awx_job_template_databases": [database] if asked else [],
        "awx_job_template_modes": ["adopt"],
    }
    objects = playbooks.objects(values)
    for name in PROJECT:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name.replace("shop", database)).write_text(EXAMPLES[name], encoding="utf-8")
    host = {"all": {"hosts": {"localhost": objects["host_variables"]}}}
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump(host), encoding="utf-8")
    server = servers.start(newest)
    try:
        login: dict[str, Any] = {
            "host": server.socket_directory, "port": str(server.port), "user": "postgres", "autocommit": True,
        }  # fmt: skip
        with psycopg.connect(**login, dbname="postgres") as connection:
            connection.execute(f"CREATE DATABASE {database}")
        with psycopg.connect(**login, dbname=database) as connection:
            connection.execute("CREATE SCHEMA inventory CREATE TABLE stock (id int)")
        inputs = {"host": server.socket_directory, "port": str(server.port), "username": "postgres"}
        if not asked:
            inputs["database"] = database
        environment = injection.inject(objects["credential_type"], inputs, tmp_path)

        def launch(template: str, playbook: str) -> tuple[int, bool, str]:
            check = ["--check"] if objects[template]["job_type"] == "check" else []
            variables = {
                key: value
                for key, value in objects[template]["extra_vars"].items()
                if key != "reconcile_require_approval"
            }
            run = playbooks.run(
                tmp_path / playbook, *check, "--diff", "-i", str(tmp_path / "inventory.yml"),
                "-e", yaml.safe_dump(variables, default_flow_style=True, width=10_000).strip(), variables=environment,
            )  # fmt: skip
            return run.code, bool(run.changed), run.output

        if not asked:
            named = environment.pop("PGDATABASE")
            code, _changed, output = launch("plan", "reconcile.yml")
            assert code == 2 and "/access/.yml was not found" in " ".join(output.split()), output
            environment["PGDATABASE"] = named
        code, changed, output = launch("plan", "reconcile.yml")
        assert (code, changed) == (0, True), output
        assert "shop_reader" in output
        code, _changed, output = launch("plan", "drift.yml")
        assert code == 2 and "The database is not what the manifest says." in output, output
        code, changed, output = launch("apply", "reconcile.yml")
        assert (code, changed) == (0, True), output
        code, changed, output = launch("apply", "reconcile.yml")
        assert (code, changed) == (0, False), output
        code, _changed, output = launch("plan", "drift.yml")
        assert code == 0, output
        with psycopg.connect(**login, dbname=database) as connection:
            found = connection.execute(
                "SELECT has_table_privilege('shop_reader', 'inventory.stock', 'SELECT')"
            ).fetchone()
        assert found == (True,)
    finally:
        server.stop()
