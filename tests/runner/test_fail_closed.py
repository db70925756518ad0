# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that would apply what nobody approved, and jobs that must not be refused; and how large their events are."""

from __future__ import annotations

import dataclasses
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness import Database
from jobs import Controller, Job, Template

TASKS = Path(__file__).resolve().parents[2] / "roles" / "reconcile" / "tasks" / "main.yml"
REQUIRED = {"reconcile_require_approval": True}
NEW = {"reconcile_manifest": {"roles": [{"name": "shop_new"}]}}


def template(login: dict[str, str], *, check: bool = False, playbook: str = "chosen.yml", **variables: Any) -> Template:
    return Template(playbook, check=check, environment=login, variables=variables)


def is_there(db: Database) -> bool:
    return bool(db.query("SELECT FROM pg_roles WHERE rolname = 'shop_new'"))


def own_mode(login: dict[str, str], mode: bool, *, check: bool, **variables: Any) -> Template:
    """The command line says one thing, the task another."""
    return template(login, check=check, playbook="own_check_mode.yml", own_check_mode=mode, **NEW, **variables)


def test_what_counts_is_the_check_mode_of_the_task(controller: Controller, db: Database, login: dict[str, str]) -> None:
    refused = controller.run(own_mode(login, False, check=True, **REQUIRED))
    assert refused.status == "failed" and "nobody approved a plan" in refused.said, refused.output
    assert not is_there(db) and "reconcile_approved" not in refused.artifacts

    planned = controller.run(own_mode(login, True, check=False, **REQUIRED))
    assert planned.status == "successful" and planned.result["changed"], planned.output
    assert not is_there(db) and db.name in planned.artifacts["reconcile_approved"]["localhost"]

    for changed in (True, False):
        applying = own_mode(login, False, check=True, **REQUIRED)
        applied = controller.run(dataclasses.replace(applying, launched=planned.artifacts))
        assert (applied.status, applied.result["changed"]) == ("successful", changed), applied.output
        assert is_there(db)


def test_several_databases_are_planned_first_where_the_task_is_not_in_check_mode(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    other = db.cluster.create_database()
    schemas = {"manifest": {"schemas": [{"name": "made_here"}]}}
    given = {**NEW, "reconcile_databases": [{"login_db": name, **schemas} for name in (db.name, other)]}
    planning = template(login, playbook="own_check_mode.yml", own_check_mode=True, **given)
    planned = controller.run(planning)
    assert planned.status == "successful" and "plan 2 of 2" not in planned.said, planned.output
    # The second one's digest is another: nothing may happen in the first either.
    approved = json.loads(json.dumps(planned.artifacts["reconcile_approved"]))
    approved["localhost"][other]["digest"] = "sha256:" + "0" * 64
    applying = dataclasses.replace(planning, check=True, variables={**planning.variables, "own_check_mode": False})
    refused = controller.run(dataclasses.replace(applying, launched={"reconcile_approved": approved}))
    assert refused.status == "failed" and "plan 2 of 2" in refused.said, refused.output
    assert not is_there(db)
    for changed in (True, False):
        applied = controller.run(dataclasses.replace(applying, launched=planned.artifacts))
        assert applied.status == "successful", applied.output
        # Two plans, then two runs.
        assert [result["changed"] for result in applied.results()][2:] == [changed] * 2, applied.output


def test_no_start_in_the_middle_applies_anything(controller: Controller, db: Database, login: dict[str, str]) -> None:
    names = re.findall(r"- name: (.*)\n +(?!block:|when:)", TASKS.read_text(encoding="utf-8"))
    begin = names.index("Look for what was approved") + 1
    starts = names[begin : names.index("Reconcile one database after the other") + 1]
    assert len(starts) > 5, starts
    jobs = [
        dataclasses.replace(
            template(login, **NEW, **REQUIRED), start_at=f"pg_access.reconcile.reconcile : {name}"
        )
        for name in starts
    ]
    jobs.append(dataclasses.replace(jobs[1], variables=NEW))
    jobs.append(dataclasses.replace(jobs[1], launched={"reconcile_approved": ""}))
    with ThreadPoolExecutor(3) as pool:
        for job in pool.map(controller.run, jobs):
            assert job.status == "failed" and "The role did not begin at its first task" in job.said, job.output
    assert not is_there(db)


def test_several_plans_of_one_workflow_are_approved_one_after_the_other(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    """AWX hands the artifacts of all earlier nodes to a later one, and the latest one wins."""
    other = db.cluster.create_database()
    steps: list[dict[str, Any]] = [
        {"reconcile_database": db.name, **NEW},
        {"reconcile_database": other, "reconcile_manifest": {"schemas": [{"name": "made_here"}]}},
        # Another plan for the first database.
        {"reconcile_database": db.name, "reconcile_manifest": {"roles": [{"name": "shop_new", "login": True}]}},
    ]
    artifacts: dict[str, Any] = {}
    for step in steps:
        planned = controller.run(dataclasses.replace(template(login, check=True, **step), launched=artifacts))
        assert (planned.status, planned.result["changed"]) == ("successful", True), planned.output
        assert list(planned.artifacts["reconcile_approved"]["localhost"]) == [step["reconcile_database"]]
        applying = template(login, **step, **REQUIRED)
        if artifacts:
            # What was approved earlier is no approval of this.
            stale = controller.run(dataclasses.replace(applying, launched=artifacts))
            assert stale.status == "failed", stale.output
        artifacts = {**artifacts, **planned.artifacts}
        for changed in (True, False):
            applied = controller.run(dataclasses.replace(applying, launched=artifacts))
            assert (applied.status, applied.result["changed"]) == ("successful", changed), applied.output


def large(job: Job) -> dict[str, int]:
    """The largest event of each task but the module's own."""
    found: dict[str, int] = {}
    for event in job.events:
        if event.get("event_data", {}).get("resolved_action") != "pg_access.reconcile.pg_role_reconcile":
            name = event.get("event_data", {}).get("task", event["event"])
            found[name] = max(found.get(name, 0), len(json.dumps(event)))
    return found


def test_events_do_not_repeat_the_results_of_other_databases(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    rules = [
        {"role": "intern", "privileges": ["USAGE"], "object": {"type": "schema", "name": f"s{number:03}"}}
        for number in range(300)
    ]
    manifest = {"schemas": [{"name": f"s{number:03}"} for number in range(300)], "grants": rules}
    names = [db.name, *(db.cluster.create_database() for _number in range(2))]
    given = {
        "reconcile_manifest": {"roles": [{"name": "intern", "external": True}]},
        "reconcile_databases": [{"login_db": name, "manifest": manifest} for name in names],
    }
    planned = controller.run(template(login, check=True, **given))
    assert planned.status == "successful", planned.output
    refused = template(login, **given, reconcile_max_drops=0)
    applied = controller.run(dataclasses.replace(refused, launched=planned.artifacts))
    assert applied.status == "successful", applied.output
    again = controller.run(dataclasses.replace(refused, launched=planned.artifacts))
    assert [result["changed"] for result in again.results()] == [False] * 6, again.output
    for job in (planned, applied):
        assert len(json.dumps(job.results()[0])) > 50_000
        assert max(large(job).values()) < 20_000, large(job)
