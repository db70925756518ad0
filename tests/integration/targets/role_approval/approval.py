# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan's job leaves, and what the job after the approval does with it.

Two hosts of an inventory, with two databases and with one. Artifacts are handed on as AWX does: as extra variables in which
every text is ``!unsafe``, which ansible-core 2.19 and later read like any YAML without quotes.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from playbooks import Bench, Run, bench

HERE = Path(__file__).resolve().parent

Artifact = dict[str, dict[str, dict[str, Any]]]


class Unsafe(str):
    """Text as AWX hands it on."""


class Dumper(yaml.SafeDumper):
    pass


Dumper.add_representer(Unsafe, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))


def unsafe(value: Any) -> Any:
    if isinstance(value, dict):
        return {Unsafe(name): unsafe(item) for name, item in value.items()}
    if isinstance(value, list):
        return [unsafe(item) for item in value]
    return Unsafe(value) if isinstance(value, str) else value


def main() -> None:
    with bench() as made:
        made.environment["ANSIBLE_SHOW_CUSTOM_STATS"] = "true"
        made.environment["ANSIBLE_INVENTORY"] = str(made.write("fleet.json", json.dumps(fleet(made))))
        made.sql("CREATE DATABASE shop", "CREATE DATABASE billing", "CREATE DATABASE stock")
        planned = play(made, None, "--check")
        artifact = artifact_of(planned)
        complete(artifact)
        refused(made, artifact)
        applied(made, artifact)


def fleet(made: Bench) -> dict[str, Any]:
    """Two hosts, each with databases of its own, that are one server for this test."""
    inventory = json.loads(Path(made.environment["ANSIBLE_INVENTORY"]).read_text(encoding="utf-8"))["all"]
    local = inventory["hosts"]["localhost"]
    return {
        "all": {
            "hosts": {
                # A name that AWX makes a number of.
                "10": {**local, "reconcile_databases": [
                    {"login_db": "shop", "manifest": {"schemas": [{"name": "a"}]}},
                    {"login_db": "billing", "manifest": {"schemas": [{"name": "b"}]}},
                ]},
                "db2": {**local, "reconcile_database": "stock", "reconcile_manifest": {"schemas": [{"name": "c"}]}},
            },
            "vars": inventory["vars"],
        }
    }  # fmt: skip


def play(made: Bench, artifact: Any, *words: str, **variables: Any) -> Run:
    """A job. ``artifact`` None: there is none."""
    given = {} if artifact is None else {"reconcile_approved": unsafe(artifact)}
    extra = made.write("extravars", yaml.dump({**given, **variables}, Dumper=Dumper))
    return made.play(HERE / "approval.yml", "-e", f"@{extra}", *words, check=False)


def artifact_of(run: Run) -> Artifact:
    assert run.status == 0, run.output
    found = re.search(r"^\s*RUN: (\{.*\})\s*$", run.output, re.M)
    assert found, run.output
    artifact: Artifact = json.loads(found[1])["reconcile_approved"]
    return artifact


def complete(artifact: Artifact) -> None:
    """Hosts and databases are joined, and what would make it large is not in it."""
    assert {host: set(plans) for host, plans in artifact.items()} == {"10": {"shop", "billing"}, "db2": {"stock"}}
    for plan in (*artifact["10"].values(), *artifact["db2"].values()):
        assert set(plan) == {"digest", "changed", "suppressed_revoke_count", "summary"}, plan
        assert plan["changed"] is True and plan["summary"]["schemas"]["created"] == 1, plan
        assert "managed" not in plan["summary"]
    digests = {plan["digest"] for plans in artifact.values() for plan in plans.values()}
    assert len(digests) == 3


def refused(made: Bench, artifact: Artifact) -> None:
    """Nothing is changed anywhere without the approval of exactly this plan."""

    def without(change: Callable[[Artifact], Any]) -> Artifact:
        other = copy.deepcopy(artifact)
        change(other)
        return other

    fake = "sha256:" + "0" * 64
    cases: list[tuple[Any, dict[str, Any], str, str]] = [
        (None, {"reconcile_require_approval": True}, "nobody approved a plan", "all"),
        ("", {}, "is empty or no dict", "all"),
        ({}, {"reconcile_require_approval": True}, "is empty or no dict", "all"),
        (without(lambda made: made.pop("10")), {}, "and not 10: nobody approved a plan for it", "10"),
        (without(lambda made: made["10"].pop("billing")), {}, "and not billing: nobody approved it", "10"),
        (without(lambda made: made["10"]["billing"].update(digest=fake)), {}, "plan_changed", "10"),
        (without(lambda made: made["db2"]["stock"].update(digest="")), {}, "no digest of a plan for db2, stock", "db2"),
        (without(lambda made: made["db2"]["stock"].update(made["10"]["shop"])), {}, "plan_changed", "db2"),
        (None, {"reconcile_expected_digest": ""}, "what was to be expected is lost", "db2"),
    ]
    for approved, variables, message, host in cases:
        run = play(made, approved, "--limit", host, **variables)
        assert run.status != 0 and message in run.output, (message, run.output)
        for database in ("shop", "billing", "stock"):
            schemas = made.sql("SELECT count(*) FROM pg_namespace WHERE nspname IN ('a', 'b', 'c')", database=database)
            assert schemas == [(0,)], (message, database)


def applied(made: Bench, artifact: Artifact) -> None:
    run = play(made, artifact, reconcile_require_approval=True)
    assert run.status == 0 and "RUN:" not in run.output, run.output
    assert re.search(r"^10 +: ok=\d+ +changed=2 ", run.output, re.M), run.output[-600:]
    # A relaunch is no error: nothing is left to do.
    again = play(made, artifact, reconcile_require_approval=True)
    assert again.status == 0, again.output
    assert not re.search(r"changed=[1-9]", again.output), again.output[-600:]


if __name__ == "__main__":
    main()
