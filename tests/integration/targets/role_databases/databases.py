# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several databases of a cluster in one call of the role.

The playbook is the one of docs/several-databases.md. What a check run says is what the run does, the second run has nothing
to do, and no run takes away what another one gave. Where something fails, nothing or only what is said is applied.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from playbooks import Bench, bench, leak, made_up, say

HERE = Path(__file__).resolve().parent
DATABASES = ("shop", "billing", "hr")

#: A login with hand-made grants, a role that is to go, and what they hold in each database.
BEFORE = (
    "CREATE ROLE pgloader_pg LOGIN",
    "CREATE ROLE old_batch",
    *(f"CREATE DATABASE {name}" for name in DATABASES),
)
IN_EACH = (
    "CREATE SCHEMA stock",
    "CREATE TABLE stock.items (id int)",
    "GRANT SELECT, DELETE ON stock.items TO pgloader_pg",
    "GRANT SELECT ON stock.items TO old_batch",
)

REFUSE = (
    "CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not here'; END $$",
    "CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE SCHEMA') EXECUTE FUNCTION public.refuse()",
)


def main() -> None:
    with bench() as made:
        made.sql(*BEFORE)
        for name in DATABASES:
            made.sql(*IN_EACH, database=name)
        told = [made_up("app"), made_up("reader"), made_up("key")]
        made.write("secrets.json", json.dumps(dict(zip(("app_password", "reader_password", "key"), told))))
        in_one_call(made, told)
        what_each_keeps(made)
        an_override_goes_when_all_agree(made)
        nothing_where_one_would_fail(made)
        what_was_applied(made)
        what_cannot_be_planned(made)
        quarrels(made)


def play(made: Bench, *words: str, check: bool = True, **variables: Any) -> Any:
    return made.play(HERE / "databases.yml", *words, "-e", json.dumps(variables), check=check)


def in_one_call(made: Bench, told: list[str]) -> None:
    planned = play(made, "--check", "-vvvv")
    # Nothing is stored yet that could be found.
    assert not [secret for secret in told if leak(secret, planned.output)]
    applied = play(made)
    made.no_secret(applied, told, "billing")
    again = play(made)
    made.no_secret(again, told, "billing")
    for run in (planned, applied, again):
        for number, name in enumerate(DATABASES, 1):
            assert f"{name}: {number} of 3" in run.output, run.output
        assert set(run.results) == {*DATABASES, "failure"}, run.results
    for name in DATABASES:
        plan, done = planned.results[name], applied.results[name]
        assert plan["check_mode"] and not done["check_mode"], name
        assert plan["changed"] and plan["sql"] == done["sql"] and plan["plan_digest"] == done["plan_digest"], name
        assert not again.results[name]["changed"] and not again.results[name]["sql"], again.results[name]["sql"]
        assert done["suppressed_revoke_count"] == (0 if name == "hr" else 2), (name, done["suppressed_revokes"])
    assert "plan 3 of 3" in applied.output and "plan 3 of 3" not in planned.output
    # Planning is not a change: there is one for each database.
    assert re.search(r"localhost +: ok=\d+ +changed=3 ", applied.output), applied.output[-500:]
    assert re.search(r"localhost +: ok=\d+ +changed=0 ", again.output), again.output[-500:]
    assert '"inspect": ' in applied.output[applied.output.rindex("Where the time went") :], "no timings with -v"
    summary = applied.output[applied.output.rindex("Summary") :]
    for line in (
        "shop: changed with",
        "gain: app: ",
        "dropped: old_batch",
        "2 undeclared privileges kept for pgloader_pg",
    ):
        assert line in summary, summary


def what_each_keeps(made: Bench) -> None:
    """Every role is there once, and each database has what its own manifest says."""
    assert made.sql("SELECT count(*) FROM pg_roles WHERE rolname = 'old_batch'") == [(0,)]
    assert made.sql("SELECT rolcanlogin FROM pg_roles WHERE rolname IN ('app', 'billing_reader')") == [(True,)] * 2
    question = "SELECT pg_has_role('app', %s, 'USAGE'), has_table_privilege('pgloader_pg', 'stock.items', 'DELETE')"
    for name, group in (("shop", "'shop_reader'"), ("billing", "'billing_reader'"), ("hr", "'staff'")):
        assert made.sql(question % group, database=name) == [(True, True)], name
    assert made.sql("SELECT has_table_privilege('shop_reader', 'stock.items', 'SELECT')", database="shop") == [(True,)]
    assert made.sql("SELECT has_table_privilege('shop_reader', 'stock.items', 'SELECT')", database="billing") == [
        (False,)
    ]
    say("each database has what its manifest says")


def an_override_goes_when_all_agree(made: Bench) -> None:
    """hr has nothing of the login any more, the others do; then nobody has."""
    here, all_of_them = "in this database any more", "keeps nothing in any of these databases"
    planned = play(made, "--check")
    assert planned.results["hr"]["unneeded_overrides"] == ["pgloader_pg"], planned.results["hr"]
    assert planned.results["shop"]["unneeded_overrides"] == []
    assert here in " ".join(planned.output.split()) and all_of_them not in planned.output
    for name in DATABASES:
        made.sql("REVOKE ALL ON stock.items FROM pgloader_pg", database=name)
    for run in (play(made), play(made)):
        assert f"override: pgloader_pg {all_of_them}" in run.output, run.output[-3000:]
        assert not any(run.results[name]["changed"] for name in DATABASES)
    for name in DATABASES:
        made.sql("GRANT SELECT, DELETE ON stock.items TO pgloader_pg", database=name)


def nothing_where_one_would_fail(made: Bench) -> None:
    """A limit that the second database's plan exceeds stops the run before the first is changed."""
    made.sql("CREATE ROLE somebody", "GRANT SELECT, UPDATE, DELETE ON stock.items TO somebody", database="billing")
    failed = play(made, check=False, more_roles=[{"name": "not_yet"}], reconcile_max_revokes=2)
    assert failed.status != 0 and "Nothing is applied." in failed.output, failed.output
    assert "billing@" in failed.output and "max_revokes is 2" in failed.output
    assert made.sql("SELECT count(*) FROM pg_roles WHERE rolname = 'not_yet'") == [(0,)]
    made.sql("DROP OWNED BY somebody", "DROP ROLE somebody", database="billing")


def what_was_applied(made: Bench) -> None:
    """A failure that no plan foresees leaves what came before it, and the output says what that is."""
    made.sql(*REFUSE, database="billing")
    more = [{"name": "billing_new", "owner": "app_owner"}]
    page = made.path("access.html")
    asked = {"more_roles": [{"name": "in_time"}], "more_schemas": more, "reconcile_report": str(page)}
    failed = play(made, check=False, **asked)
    assert failed.status != 0
    # What is done is not lost: its summary and its part of the page, and the facts that later tasks look at.
    said = failed.output[failed.output.rindex("Say how far it came") :]
    assert "nothing is applied" not in said
    lines = (
        '"applied: shop"',
        '"failed: billing (server_error): ',
        "not here",
        '"not begun: hr"',
        '"shop: changed with',
    )
    for line in lines:
        assert line in said, said
    assert set(failed.results) == {"shop", "failure"} and not failed.results["shop"]["check_mode"]
    failure = failed.results["failure"]
    assert failure["database"] == "billing" and failure["error_code"] == "server_error", failure
    assert "not here" in failure["msg"] and failure["problems"]
    text = page.read_text(encoding="utf-8")
    assert "<bdi>shop</bdi></h2>" in text and "<bdi>billing</bdi></h2>" not in text
    assert "<li>failed: billing (server_error): " in text and "<li>not begun: hr</li>" in text
    assert made.sql("SELECT count(*) FROM pg_roles WHERE rolname = 'in_time'") == [(1,)]
    made.sql("DROP EVENT TRIGGER refuse", database="billing")
    healed = play(made, **asked)
    assert [healed.results[name]["changed"] for name in DATABASES] == [False, True, False]
    assert healed.results["failure"] == {} and "not begun" not in page.read_text(encoding="utf-8")
    again = play(made, **asked)
    assert not any(again.results[name]["changed"] for name in DATABASES)


def what_cannot_be_planned(made: Bench) -> None:
    """A plan that is refused stops the run before anything is applied; what was planned is told all the same."""
    gone = [{"name": "billing_more", "owner": "nobody_declares"}]
    page = made.path("unwritten.html")
    for words in ((), ("--check",)):
        failed = play(
            made, *words, check=False, more_roles=[{"name": "late"}], bad_schemas=gone, reconcile_report=str(page)
        )
        assert failed.status != 0
        said = failed.output[failed.output.rindex("Say how far it came") :]
        for line in (
            '"planned: shop"',
            '"failed: billing (',
            '"not begun: hr"',
            '"nothing is applied"',
            '"shop: would change',
        ):
            assert line in said, said
        assert failed.results["failure"]["database"] == "billing", failed.results
        assert made.sql("SELECT count(*) FROM pg_roles WHERE rolname = 'late'") == [(0,)]
        # Without check mode the plans come first, and no database is done that a page could be about.
        assert page.exists() is bool(words)


def quarrels(made: Bench) -> None:
    wrong = {
        "roles in the manifest of one": {
            "reconcile_databases": [{"login_db": "one", "manifest": {"roles": [{"name": "x"}]}}]
        },
        "a different name in each": {"reconcile_databases": [{"login_db": "one", "manifest": {}}] * 2},
        "nothing else": {"reconcile_databases": [{"login_db": "one", "manifests": {}}]},
        "are for one database": {"reconcile_database": "shop"},
        "with several databases reconcile_plan_file and reconcile_undo_file need {database}": {
            "reconcile_plan_file": "/nowhere/plan.sql"
        },
    }
    for message, variables in wrong.items():
        failed = play(made, check=False, **variables)
        assert failed.status != 0 and message in failed.output, failed.output
        assert "TASK [pg_access.reconcile.reconcile : Reconcile]" not in failed.output


if __name__ == "__main__":
    main()
