# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What values go through on their way into a job: AWX tags texts of a launch, and newer Ansible reads them as YAML."""

from __future__ import annotations

import dataclasses

from harness import Database
from jobs import Controller
from test_approval import apply, plan, roles


def test_a_database_called_0123_is_found_when_the_credential_names_it(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    for name in ("0123", "83"):
        db.sql(f'CREATE DATABASE "{name}" {db.cluster.template}')
    planning = plan({**login, "PGDATABASE": "0123"})
    planned = controller.run(planning)
    assert list(planned.artifacts["reconcile_approved"]["localhost"]) == ["0123"]
    # The artifact comes back with a number for this name.
    applied = controller.run(apply(planning, planned))
    assert (applied.status, applied.result["server"]["database"]) == ("successful", "0123"), applied.output
    assert controller.run(apply(planning, planned)).result["changed"] is False


def test_a_database_called_0123_in_an_answer_is_never_another_one(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    for name in ("0123", "83"):
        db.sql(f'CREATE DATABASE "{name}" {db.cluster.template}')
    answered = plan(login, launched={"reconcile_database": "0123"})
    job = controller.run(dataclasses.replace(answered, check=False))
    if job.status == "successful":
        # Up to ansible-core 2.18 the answer stays a text.
        assert job.result["server"]["database"] == "0123"
    else:
        assert (job.status, job.result["error_code"]) == ("failed", "manifest_invalid"), job.output
        (problem,) = job.result["problems"]
        assert problem["path"] == "login_db" and "the number 83: quote it" in problem["message"]
        assert "name such a database in the credential" in problem["hint"]
    with db.connect(dbname="83") as connection:
        assert connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'inventory'").fetchone() == (0,)


def test_a_template_may_name_a_database_0123(controller: Controller, db: Database, login: dict[str, str]) -> None:
    db.sql(f'CREATE DATABASE "0123" {db.cluster.template}')
    job = controller.run(plan(login, variables={"reconcile_database": "0123", "reconcile_mode": "adopt"}))
    assert job.result["server"]["database"] == "0123", job.output


def test_the_mode_of_a_survey_arrives(controller: Controller, db: Database, login: dict[str, str]) -> None:
    revoked = {}
    for mode in ("additive", "adopt"):
        job = controller.run(plan(login, variables={}, launched={"reconcile_mode": mode}))
        assert job.status == "successful", job.output
        revoked[mode] = job.result["summary"]["grants"]["revoked"]
    assert revoked == {"additive": 0, "adopt": 1}


def test_an_answer_that_was_left_empty_is_none_at_all(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    empty = ("database", "plan_file", "undo_file", "lock_timeout", "explain")
    without = controller.run(plan(login))
    answered = controller.run(plan(login, launched={f"reconcile_{name}": "" for name in empty}))
    assert answered.status == "successful", answered.output
    assert answered.result["plan_digest"] == without.result["plan_digest"]


def test_a_choice_or_limit_that_was_left_empty_stops_the_job(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    empty = ("reconcile_undeclared_grantees", "reconcile_update_password", "reconcile_max_drops")
    job = controller.run(dataclasses.replace(plan(login, launched=dict.fromkeys(empty, "")), check=False))
    assert (job.status, roles(db)) == ("failed", set()), job.output
    assert all(name in job.said for name in empty) and "are empty" in job.said, job.output


def test_a_limit_of_a_survey_is_a_number(controller: Controller, db: Database, login: dict[str, str]) -> None:
    template = plan(login, launched={"reconcile_max_revokes": 0})
    job = controller.run(dataclasses.replace(template, check=False))
    assert (job.status, roles(db)) == ("failed", set()), job.output
    assert job.result["error_code"] == "plan_too_large"


def test_a_text_of_a_launch_is_no_template(controller: Controller, db: Database, login: dict[str, str]) -> None:
    text = "{{ lookup('ansible.builtin.env', 'PGPASSWORD') }}"
    job = controller.run(plan(login, launched={"reconcile_database": text}))
    assert job.status == "failed"
    assert text in " ".join(job.said.replace('\\"', '"').split()), job.output
    assert not any(login["PGPASSWORD"] in seen for seen in job.seen.values())
