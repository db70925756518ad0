# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the pages about several databases, fleets and the role show runs, and the second run of it has nothing to do.

Files are read off the pages; only addresses are those of the test's server.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import yaml
from playbooks import INTEGRATION, Bench, Run, bench, say

ROOT = INTEGRATION.parents[1]
README = (ROOT / "roles" / "reconcile" / "README.md").read_text(encoding="utf-8")
HERE = Path(__file__).resolve().parent
DATABASES = ("shop", "billing", "hr")


def main() -> None:
    with bench() as made:
        made.sql("CREATE ROLE access_admin SUPERUSER LOGIN", "CREATE ROLE pgloader_pg LOGIN")
        made.sql(*(f"CREATE DATABASE {name}" for name in DATABASES))
        made.environment.update(
            PGHOST=str(made.server.socket_directory), PGPORT=str(made.server.port), PGUSER="postgres"
        )
        files = {name: pages(made, name) for name in ("docs/several-databases.md", "docs/fleets.md")}
        assert files["docs/several-databases.md"] == ["cluster.yml", "access/billing.yml"], files
        assert files["docs/fleets.md"] == ["inventory.yml", "fleet.yml", "trend.yml"], files
        cluster(made)
        examples(made)
        fleet(made)
        defaults(made)


def pages(made: Bench, page: str) -> list[str]:
    """Writes the files that a page shows; their names."""
    names = []
    for block in re.findall(r"^```yaml\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S):
        name = re.match(r"# ([\w./-]+\.yml)\n", block)
        assert name, f"{page}: a block that no test runs:\n{block}"
        made.write(name[1], here(made, block))
        names.append(name[1])
    return names


def here(made: Bench, text: str) -> str:
    return re.sub(r"\bdb\d?\.example\.com\b", str(made.server.socket_directory), text)


def changed(run: Run, host: str = "localhost") -> int:
    found = re.search(rf"^{host} +: ok=\d+ +changed=(\d+) ", run.output, re.M)
    assert found, run.output
    return int(found[1])


def cluster(made: Bench) -> None:
    playbook = made.folder / "cluster.yml"
    assert changed(made.play(playbook, "--check")) == 2
    assert changed(made.play(playbook)) == 2
    assert changed(made.play(playbook)) == 0
    question = (
        "SELECT pg_has_role('app', 'inventory-reader', 'USAGE') AND pg_has_role('app', 'invoices-reader', 'USAGE')"
    )
    assert made.sql(question) == [(True,)]


def examples(made: Bench) -> None:
    """The filters' own examples, and the one of the README, one after the other in one play."""
    tasks: list[Any] = []
    # That of access_report writes a page: the target role_report has it.
    for name in (
        "access_summary", "access_explanation", "approved_digests", "by_database", "foreign_manifest", "plan_artifact"
    ):  # fmt: skip
        path = ROOT / "plugins" / "filter" / f"{name}.py"
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "EXAMPLES":
                tasks += yaml.safe_load(ast.literal_eval(node.value))
    assert len(tasks) == 9, tasks
    role = {"role": "pg_access.reconcile.reconcile", "reconcile_database": "shop", "reconcile_manifest": {"roles": []}}
    block = re.search(r"^```yaml\n(- name: Say it where.*?)^```", README, re.M | re.S)
    assert block, "the README no longer shows the filter"
    play = {"hosts": "localhost", "gather_facts": False, "roles": [role], "tasks": [*tasks, *yaml.safe_load(block[1])]}
    run = made.play(made.write("examples.yml", yaml.safe_dump([play], sort_keys=False)))
    assert changed(run) == 0, run.output
    said = run.output[run.output.index("TASK [Say what is wrong") :]
    assert '"msg": []' in said and '"shop: nothing to do"' in run.output[run.output.index("TASK [Say it where") :]


def fleet(made: Bench) -> None:
    """From the plan's artifact over its approval to the trend, as far as a machine can go."""
    made.environment.update(ANSIBLE_INVENTORY=str(made.folder / "inventory.yml"), ANSIBLE_SHOW_CUSTOM_STATS="true")
    planned = made.play(made.folder / "fleet.yml", "--check")
    assert [changed(planned, host) for host in ("db1", "db2")] == [1, 2], planned.output
    artifact = re.search(r"^\s*RUN: (\{.*\})\s*$", planned.output, re.M)
    assert artifact, planned.output
    approved = json.loads(artifact[1])
    made.write("approved.json", json.dumps({**approved, "reconcile_require_approval": True}))
    words = ("-e", f"@{made.folder / 'approved.json'}")
    lost = made.play(
        made.folder / "fleet.yml", "-e", '{"reconcile_approved": {}, "reconcile_require_approval": true}', check=False
    )
    assert lost.status != 0 and "what was approved is lost" in lost.output
    done = made.play(made.folder / "fleet.yml", *words)
    assert [changed(done, host) for host in ("db1", "db2")] == [1, 2], done.output
    again = made.play(made.folder / "fleet.yml", *words)
    assert [changed(again, host) for host in ("db1", "db2")] == [0, 0], again.output
    by_name = made.play(Path("pg_access.reconcile.check"), "-e", "reconcile_hosts=clusters")
    assert [changed(by_name, host) for host in ("db1", "db2")] == [0, 0], by_name.output
    trend(made)


def trend(made: Bench) -> None:
    """The first run has nothing to compare with, also that of a host that is new; the next ones have the last."""
    legacy = {"roles": [{"name": "pgloader_pg", "external": True, "privilege_reconciliation": "additive"}]}
    words = (made.folder / "trend.yml", "--check", "-e", json.dumps({"reconcile_manifest": legacy}))
    made.sql("GRANT USAGE ON SCHEMA people TO pgloader_pg", database="hr")
    backlog = "backlog: 1 undeclared privilege kept for pgloader_pg"
    first = made.play(*words)
    assert backlog in first.output and f"{backlog} (" not in first.output, first.output
    again = made.play(*words)
    assert [changed(again, host) for host in ("db1", "db2")] == [0, 0], again.output
    assert f"{backlog} (as before)" in again.output, again.output
    made.sql("GRANT CREATE ON SCHEMA people TO pgloader_pg", database="hr")
    (made.folder / "backlog" / "db1.json").unlink()
    more = made.play(*words)
    assert "kept for pgloader_pg (1 more than before)" in more.output, more.output


def defaults(made: Bench) -> None:
    """One place for the connection options of both collections, of which the other need not be there."""
    block = re.search(r"^```yaml\n(- name: One connection for both collections\n.*?)^```", README, re.M | re.S)
    assert block, "the README no longer shows the group"
    for name in ("PGHOST", "PGUSER", "ANSIBLE_INVENTORY"):
        del made.environment[name]
    playbook = made.write("defaults.yml", here(made, block[1]))
    # In `shop` app_owner is there already, and the others are not claimed.
    assert changed(made.play(playbook)) == 0
    modules = made.play(HERE / "defaults.yml", "-e", json.dumps({"host": str(made.server.socket_directory)}))
    assert changed(modules) == 0, modules.output
    say("the defaults of the group hold for the role and the modules")


if __name__ == "__main__":
    main()
