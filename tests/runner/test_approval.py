# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan, approval and apply as jobs of AWX, with nothing but the artifact and the database between them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
from conftest import Secrets
from harness import Database
from jobs import Controller, Job, Template
from leaks import leaks

STORED = "SELECT rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL"
FINGERPRINTS = "SELECT encode(fingerprint, 'hex') FROM role_reconcile.password_fingerprint"
#: A plan that an apply waits for.
REQUIRED = {"reconcile_require_approval": True}


def plan(login: dict[str, str], playbook: str = "privileges.yml", **more: Any) -> Template:
    """The job template that plans."""
    return Template(playbook, check=True, environment=login, **{"variables": {"reconcile_mode": "adopt"}, **more})


def apply(template: Template, job: Job) -> Template:
    """The job template that applies, in the node behind an approval: it gets what the plan's job left."""
    assert "reconcile_approved" in job.artifacts, job.output
    launched = {**template.launched, **job.artifacts}
    variables = {**template.variables, **REQUIRED}
    return dataclasses.replace(template, check=False, variables=variables, launched=launched)


def roles(db: Database) -> set[str]:
    return {name for (name,) in db.query("SELECT rolname FROM pg_roles WHERE rolname LIKE 'shop%'")}


def may_log_in(db: Database, role: str, password: str) -> bool:
    try:
        psycopg.connect(host="127.0.0.1", port=db.server.port, dbname=db.name, user=role, password=password).close()
    except psycopg.OperationalError as error:
        assert "authentication failed" in str(error), error
        return False
    return True


def test_a_plan_is_approved_and_applied_and_no_job_shows_a_secret(
    either_way: Controller, db: Database, login: dict[str, str], secret_values: Secrets
) -> None:
    planning = plan(login, "reconcile.yml", vault_password=secret_values.vault)
    planned = either_way.run(planning)
    assert (planned.status, roles(db)) == ("successful", set()), planned.output
    assert planned.result["changed"] and planned.result["sql"]
    assert any(difference for difference in planned.diffs)
    assert "role shop_reader" in planned.said or "shop_reader" in str(planned.diffs)

    approved = planned.artifacts["reconcile_approved"]["localhost"][db.name]
    assert approved["digest"] == planned.result["plan_digest"]
    assert approved["changed"] is True and approved["suppressed_revoke_count"] == 4

    applied = either_way.run(apply(planning, planned))
    assert applied.status == "successful", applied.output
    assert applied.result["sql"] == planned.result["sql"]
    assert applied.result["plan_digest"] == approved["digest"]
    assert roles(db) == {"shop_owner", "shop_reader", "shop_app", "shop_web"}
    assert may_log_in(db, "shop_app", secret_values.app) and may_log_in(db, "shop_web", secret_values.web)
    assert not may_log_in(db, "shop_app", secret_values.web)

    # Nothing of the first two is left but the database, and that is enough.
    again = either_way.run(dataclasses.replace(apply(planning, planned), verbosity=4))
    assert (again.status, again.result["changed"], again.result["sql"]) == ("successful", False, []), again.output

    stored = [value for (value,) in db.query(STORED) + db.query(FINGERPRINTS)]
    assert len(stored) >= 5
    for job in (planned, applied, again):
        assert len(job.seen) > 10
        assert not leaks([*secret_values, *stored], job.seen)
        assert job.left == []


#: What may have become of an artifact on its way, and what the job says.
LOST: list[tuple[dict[str, Any], str]] = [
    ({}, "nobody approved a plan"),
    ({"reconcile_approved": ""}, "what was approved is lost"),
    ({"reconcile_approved": {}}, "what was approved is lost"),
    ({"reconcile_approved": "{'localhost': {}}"}, "what was approved is lost"),
    ({"reconcile_approved": {"elsewhere": {}}}, "nobody approved a plan for it"),
]

#: What may have become of a host's part, which has the digest under this database's name.
TAMPERED: dict[str, tuple[Callable[[Any, str], Any], str]] = {
    "nothing": (lambda plan, name: {}, "nobody approved a plan for it"),
    "another-database": (lambda plan, name: {"other": plan}, "nobody approved it"),
    "no-plan": (lambda plan, name: {name: None}, "no digest of a plan"),
    "no-digest": (lambda plan, name: {name: {**plan, "digest": None}}, "no digest of a plan"),
    "empty-digest": (lambda plan, name: {name: {**plan, "digest": ""}}, "no digest of a plan"),
    "a-number": (lambda plan, name: {name: {**plan, "digest": "12"}}, "no digest of a plan"),
    "no-prefix": (lambda plan, name: {name: {**plan, "digest": plan["digest"][7:]}}, "no digest of a plan"),
    "cut": (lambda plan, name: {name: {**plan, "digest": plan["digest"][:-1]}}, "no digest of a plan"),
    "another-digest": (lambda plan, name: {name: {**plan, "digest": "sha256:" + "0" * 64}}, "approved"),
}


def test_an_artifact_that_was_lost_or_tampered_with_applies_nothing(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    planning = plan(login, variables={"reconcile_mode": "adopt", "reconcile_database": db.name})
    planned = controller.run(planning)
    before = db.snapshot()
    applying = apply(planning, planned)
    for launched, said in LOST:
        job = controller.run(dataclasses.replace(applying, launched=launched))
        assert job.status == "failed", f"{launched}: {job.output}"
        assert said in job.failures["localhost"]["msg"], f"{launched}: {job.output}"

    # Each as a host of its own in one job.
    approved = planned.artifacts["reconcile_approved"]["localhost"][db.name]
    hosts: dict[str, dict[str, Any]] = {host: {} for host in TAMPERED}
    arrived = {host: change(approved, db.name) for host, (change, _said) in TAMPERED.items()}
    job = controller.run(dataclasses.replace(applying, hosts=hosts, launched={"reconcile_approved": arrived}))
    assert set(job.failures) == set(TAMPERED), job.output
    for host, (_change, said) in TAMPERED.items():
        assert said in job.failures[host]["msg"], f"{host}: {job.failures[host]}"
    assert job.failures["another-digest"]["error_code"] == "plan_changed"
    assert db.snapshot() == before

    assert controller.run(applying).status == "successful"
    assert roles(db)


def test_a_change_after_the_approval_stops_the_apply(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    planning = plan(login)
    planned = controller.run(planning)
    db.sql("CREATE TABLE inventory.new (id int); GRANT INSERT ON inventory.new TO intern")
    before = db.snapshot()
    job = controller.run(apply(planning, planned))
    assert (job.status, db.snapshot()) == ("failed", before), job.output
    assert job.result["error_code"] == "plan_changed"
    # The one who looks at it sees what would happen now.
    assert any("intern" in statement and '"new"' in statement for statement in job.result["plan"]), job.result


def test_hosts_of_one_job_are_approved_together_and_get_their_own(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    # The roles of the cluster are there; each database differs in its own way.
    assert controller.run(dataclasses.replace(plan(login), check=False)).status == "successful"
    other = db.cluster.create_database()
    db.sql("GRANT INSERT ON inventory.item TO intern")
    # A name that is a number when it comes back.
    hosts = {"7": {"reconcile_database": db.name}, "beta": {"reconcile_database": other}}
    planning = plan(login, hosts=hosts)
    planned = controller.run(planning)
    approved = planned.artifacts["reconcile_approved"]
    assert {host: list(databases) for host, databases in approved.items()} == {"7": [db.name], "beta": [other]}
    assert approved["7"][db.name]["digest"] != approved["beta"][other]["digest"]

    swapped = {"7": {db.name: approved["beta"][other]}, "beta": {other: approved["7"][db.name]}}
    refused = controller.run(dataclasses.replace(apply(planning, planned), launched={"reconcile_approved": swapped}))
    assert [result["error_code"] for result in refused.results()] == ["plan_changed"] * 2, refused.output

    applied = controller.run(apply(planning, planned))
    assert applied.status == "successful", applied.output
    assert [result["changed"] for result in applied.results()] == [True, True]
    again = controller.run(apply(planning, planned))
    assert (again.status, [result["changed"] for result in again.results()]) == ("successful", [False, False])


def test_an_apply_that_the_server_stopped_is_relaunched_and_no_later_plan_passes(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    """A job that is relaunched gets the artifact again with which it was launched."""
    planning = plan(login)
    planned = controller.run(planning)
    applying = apply(planning, planned)
    db.sql(
        """CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'not now'; END $$""",
        "CREATE EVENT TRIGGER refuse ON ddl_command_end WHEN TAG IN ('GRANT') EXECUTE FUNCTION public.refuse()",
    )
    stopped = controller.run(applying)
    assert (stopped.status, stopped.result["error_code"]) == ("failed", "server_error"), stopped.output
    db.sql("DROP EVENT TRIGGER refuse", "DROP FUNCTION public.refuse()")
    relaunched = controller.run(applying)
    assert (relaunched.status, relaunched.result["changed"]) == ("successful", True), relaunched.output

    # A part of what was approved has been undone by hand. That is another plan.
    db.sql("REVOKE SELECT ON inventory.item FROM shop_reader")
    before = db.snapshot()
    later = controller.run(applying)
    assert (later.status, later.result["error_code"], db.snapshot()) == ("failed", "plan_changed", before), later.output


def test_a_plan_with_nothing_to_do_approves_nothing(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    planning = plan(login)
    assert controller.run(dataclasses.replace(planning, check=False)).status == "successful"
    empty = controller.run(planning)
    assert (empty.status, empty.result["changed"]) == ("successful", False)
    assert empty.artifacts["reconcile_approved"]["localhost"][db.name]["changed"] is False
    # Somebody approves it nevertheless.
    applied = controller.run(apply(planning, empty))
    assert (applied.status, applied.result["changed"]) == ("successful", False), applied.output
    db.sql("GRANT INSERT ON inventory.item TO intern")
    before = db.snapshot()
    refused = controller.run(apply(planning, empty))
    assert (refused.status, refused.result["error_code"]) == ("failed", "plan_changed"), refused.output
    assert db.snapshot() == before


def test_two_workflows_that_were_approved_apply_once(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    """Two sets of objects for one database: AWX does not let either of them wait."""
    planning = plan(login)
    planned = controller.run(planning)
    with ThreadPoolExecutor(2) as pool:
        jobs = list(pool.map(controller.run, [apply(planning, planned)] * 2))
    assert [job.status for job in jobs] == ["successful"] * 2, "\n".join(job.output for job in jobs)
    assert sorted(job.result["changed"] for job in jobs) == [False, True]


def test_two_workflows_with_different_plans_apply_the_first(
    controller: Controller, db: Database, login: dict[str, str]
) -> None:
    additive = plan(login, variables={"reconcile_mode": "additive"})
    adopt = plan(login)
    first, second = controller.run(additive), controller.run(adopt)
    assert controller.run(apply(additive, first)).status == "successful"
    refused = controller.run(apply(adopt, second))
    assert (refused.status, refused.result["error_code"]) == ("failed", "plan_changed"), refused.output


def test_an_answer_cannot_stand_for_the_approval(controller: Controller, db: Database, login: dict[str, str]) -> None:
    """Answers of the workflow win over artifacts, so a digest of another plan is compared with what was approved."""
    planning = plan(login)
    planned = controller.run(planning)
    before = db.snapshot()
    applying = apply(planning, planned)
    for digest, said in (("sha256:" + "0" * 64, "is not the digest in reconcile_approved"), ("", "is lost")):
        job = controller.run(
            dataclasses.replace(applying, launched={**applying.launched, "reconcile_expected_digest": digest})
        )
        assert job.status == "failed" and said in job.failures["localhost"]["msg"], job.output
    # A mode that was not planned with is not the plan either.
    job = controller.run(
        dataclasses.replace(applying, launched={**applying.launched, "reconcile_mode": "authoritative"})
    )
    assert (job.status, job.result["error_code"]) == ("failed", "plan_changed"), job.output
    assert db.snapshot() == before
