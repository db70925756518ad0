# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is left of a job, and what a job that goes wrong shows."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from conftest import Secrets
from harness import Database
from jobs import Controller, Template
from leaks import leaks
from test_approval import plan


def passwords(job_result: dict[str, object]) -> object:
    return job_result["summary"]["passwords"]["set"]  # type: ignore[index]


def test_a_playbook_that_tells_is_found_out(
    either_way: Controller, db: Database, login: dict[str, str], secret_values: Secrets
) -> None:
    """What the other tests rely on."""
    job = either_way.run(Template("tells.yml", environment=login))
    assert job.status == "successful", job.output
    assert job.artifacts == {"told": secret_values.key}
    assert job.left == ["home/told"]
    for secret in (secret_values.login, secret_values.key, secret_values.web):
        assert leaks([secret], job.seen), secret
    assert not leaks([secret_values.app, secret_values.vault], job.seen)


def test_a_key_file_does_not_survive_a_job(
    controller: Controller, db: Database, login: dict[str, str], secret_values: Secrets
) -> None:
    """Which is why the key belongs in the credential, as in all other tests."""
    environment = {name: value for name, value in login.items() if name != "PG_ROLE_RECONCILE_FINGERPRINT_KEY"}
    template = plan(
        environment,
        "reconcile.yml",
        vault_password=secret_values.vault,
        variables={"reconcile_fingerprint_key_file": "{{ lookup('ansible.builtin.env', 'HOME') }}/key"},
    )
    template = dataclasses.replace(template, check=False)
    for _job in range(2):
        job = controller.run(template)
        assert (job.status, passwords(job.result)) == ("successful", 2), job.output
        assert job.left == ["home/key"]


def test_a_job_that_cannot_log_in_shows_no_secret(
    either_way: Controller, db: Database, login: dict[str, str], secret_values: Secrets
) -> None:
    wrong = secret_values.login[::-1]
    template = plan({**login, "PGPASSWORD": wrong}, "reconcile.yml", vault_password=secret_values.vault, verbosity=5)
    job = either_way.run(template)
    assert (job.status, job.result["error_code"]) == ("failed", "authentication_failed"), job.output
    assert job.artifacts == {}
    assert not leaks([*secret_values, wrong], job.seen)


def test_a_job_that_the_server_stops_shows_no_secret(
    controller: Controller, db: Database, login: dict[str, str], secret_values: Secrets
) -> None:
    db.sql(
        """CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'not here: %', current_query(); END $$""",
        "CREATE EVENT TRIGGER refuse ON ddl_command_end WHEN TAG IN ('GRANT') EXECUTE FUNCTION public.refuse()",
    )
    before = db.snapshot()
    template = plan(login, "reconcile.yml", vault_password=secret_values.vault, verbosity=5)
    job = controller.run(dataclasses.replace(template, check=False))
    assert (job.status, job.result["error_code"], db.snapshot()) == ("failed", "server_error", before), job.output
    assert not leaks(secret_values, job.seen)


def env(name: str) -> str:
    return f"{{{{ lookup('ansible.builtin.env', '{name}') }}}}"


#: What a host's variables say, and what is said about it. Each goes wrong with a secret at hand.
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unreachable": ({"reconcile_connection": {"login_port": 1}}, "connection_failed"),
    "no-such-host": ({"reconcile_connection": {"login_host": "db.invalid"}}, "connection_failed"),
    "no-such-database": ({"reconcile_database": "no_such_database"}, "does not exist"),
    "another-password": ({"reconcile_connection": {"login_password": env("SHOP_WEB_PASSWORD")}}, "authentication_failed"),
    "undefined": (
        {"reconcile_passwords": {"shop_web": env("SHOP_WEB_PASSWORD") + "{{ nothing_like_this }}"}}, "nothing_like_this",
    ),
    "not-json": ({"reconcile_passwords": "{{ lookup('ansible.builtin.env', 'SHOP_WEB_PASSWORD') | from_json }}"}, ""),
    "no-filter": ({"reconcile_passwords": "{{ lookup('ansible.builtin.env', 'SHOP_WEB_PASSWORD') | such }}"}, "such"),
    "for-nobody": ({"reconcile_passwords": {"nobody_at_all": env("SHOP_WEB_PASSWORD")}}, "nobody_at_all"),
    "a-list": ({"reconcile_passwords": {"shop_web": [env("SHOP_WEB_PASSWORD")]}}, "shop_web"),
    "a-text": ({"reconcile_passwords": env("SHOP_WEB_PASSWORD")}, "passwords"),
    "in-the-manifest": (
        {"reconcile_manifest": {"roles": [{"name": "shop_x", "login": True, "pasword": env("SHOP_WEB_PASSWORD")}]}},
        "pasword",
    ),
    "a-manifest-of-text": ({"reconcile_manifest": env("SHOP_WEB_PASSWORD")}, "reconcile_manifest"),
    "databases-of-text": ({"reconcile_databases": env("SHOP_WEB_PASSWORD")}, "reconcile_databases"),
    "files-of-text": ({"its_files": [env("HOME") + "/none.yml"]}, "was not found"),
}  # fmt: skip


def test_whatever_goes_wrong_shows_no_secret_and_leaves_nothing(
    controller: Controller, db: Database, login: dict[str, str], secret_values: Secrets
) -> None:
    """Each as a host of its own in one job, with all that ``-vvvv`` and ``--diff`` have to say."""
    hosts = {host: variables for host, (variables, _said) in WRONG.items()}
    before = db.snapshot()
    template = plan(login, "wrong.yml", vault_password=secret_values.vault, verbosity=4, hosts=hosts)
    job = controller.run(dataclasses.replace(template, check=False))
    assert (job.status, db.snapshot()) == ("failed", before), job.output
    assert set(job.failures) == set(WRONG), job.output
    for host, (_variables, said) in WRONG.items():
        assert said in json.dumps(job.failures[host]), f"{host}: {job.failures[host]}"
    assert not leaks(secret_values, job.seen)
    assert (job.artifacts, job.left) == ({}, [])


def test_a_vault_that_does_not_open_shows_no_secret(
    controller: Controller, db: Database, login: dict[str, str], secret_values: Secrets
) -> None:
    wrong = "another " + secret_values.vault
    job = controller.run(plan(login, "reconcile.yml", vault_password=wrong, verbosity=4))
    assert job.status == "failed", job.output
    assert "logins.yml is not a YAML mapping that can be read and decrypted here" in job.said
    assert not leaks([*secret_values, wrong], job.seen)
    assert (job.artifacts, job.left) == ({}, [])
