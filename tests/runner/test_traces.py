# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is left of a job, and what a job that goes wrong shows."""

from __future__ import annotations

import dataclasses

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
