# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is looked at without a clock: what goes over the wire, what a result holds, and what a full lock table does."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import Counter
from typing import Any

import places
from cluster import DATABASE, Cluster
from delay import Line
from measure import LIMIT, Failed
from programs import Address, answer, grouped_queries, module, psql
from sizes import HUGE, expected_summary
from traffic import Traffic

_FIRST_WORDS = re.compile(r"[A-Z]+(?: (?:LOCAL|ROLE|ISOLATION))?")


def describe_wire(cluster: Cluster, work: str) -> dict[str, object]:
    """Run the module once with somebody listening: round trips, statements, and what else belongs to this work."""
    case = cluster.scenario
    (cluster.to_done if work == "idle" else cluster.to_empty)()
    with Line(cluster.socket, listening=True) as line:
        done = module(case, Address("127.0.0.1", line.port), check=work == "plan").run(LIMIT)
        result = answer(done)
    if work == "apply":
        cluster.state = ""
        cluster.check_end()
    if len(line.heard) != 1:
        raise Failed(f"the module opened {len(line.heard)} connections")
    traffic = line.heard[0]
    found: dict[str, object] = {
        "round_trips": traffic.round_trips,
        "login": traffic.login,
        "statements": len(traffic.statements),
        "inspection": inspection_trips(traffic),
        "planned": len(result["sql"]),
    }
    if work == "idle":
        found["queries"] = grouped_queries(traffic)
    if work == "plan":
        found["result"] = check_result(cluster, run_script=False)
    return found


def inspection_trips(traffic: Traffic) -> int:
    """Round trips between the one that opens the transaction, or takes the turn, and the plan or the end: those that
    only read.
    """
    reading = re.compile(r"\s*(?:SELECT|WITH)\b")
    opening = next(number for number, trip in enumerate(traffic.trips) if trip and trip[0].text.startswith("BEGIN"))
    count = 0
    for trip in traffic.trips[opening + 1 :]:
        if any("pg_advisory_xact_lock" in statement.text for statement in trip):
            continue
        if not all(reading.match(statement.text) for statement in trip):
            break
        count += 1
    return count


def check_result(cluster: Cluster, *, run_script: bool) -> dict[str, object]:
    """The result of a plan from an empty state against the whole plan in ``plan_file``: size, counts and digest."""
    case = cluster.scenario
    cluster.to_empty()
    address = Address(cluster.host, cluster.port)
    script = places.BENCH / "work" / f"{cluster.version}-{case.name}" / "plan.sql"
    script.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    done = module(case, address, check=True, plan_file=str(script)).run(LIMIT)
    seconds = time.monotonic() - began
    result = answer(done)
    summary = result["summary"]
    counted = {
        "roles": summary["roles"]["created"],
        "memberships": summary["memberships"]["added"],
        "grants": summary["grants"]["granted"],
    }
    whole = plan_statements(script.read_text())
    digest = plan_digest(result["server"]["system_identifier"], whole)
    forms = Counter("all in schema" if " ON ALL " in text else "named" for text in whole if " ON " in text)
    found: dict[str, object] = {
        "characters": len(done.output),
        "truncated": bool(result.get("truncated")),
        "statements": len(whole),
        "shown": len(result["sql"]),
        "counts": counted,
        "counts_exact": counted == expected_summary(case),
        "digest_exact": digest == result["plan_digest"],
        "seconds_with_plan_file": seconds,
        "memory_with_plan_file": done.memory,
        "script_characters": script.stat().st_size,
        "forms": dict(forms),
    }
    if run_script:
        psql(address, script).run(LIMIT)
        cluster.state = ""
        cluster.check_end()
        found["script_ends_right"] = True
    if case.size >= HUGE:
        script.unlink()
    return found


def plan_statements(script: str) -> list[str]:
    """The plan's statements in a script: one line each, between what every script begins and ends with."""
    body = script.partition("\nSET LOCAL lock_timeout = '3s';\n")[2].partition("\n")[2].rpartition("\nCOMMIT;\n")[0]
    return [line[:-1] for line in body.splitlines() if line and not line.startswith("--")]


def plan_digest(system_identifier: str, statements: list[str]) -> str:
    """What ``plan_digest`` has to be, worked out as the documentation says."""
    what = ["1", system_identifier, DATABASE, "authoritative", None, False, statements]
    return "sha256:" + hashlib.sha256(json.dumps(what).encode()).hexdigest()


def too_many_locks(cluster: Cluster) -> dict[str, object]:
    """An apply that needs more locks than the server has room for, with the default setting."""
    cluster.to_empty()
    began = time.monotonic()
    done = module(cluster.scenario, Address(cluster.host, cluster.port)).run(LIMIT)
    result: dict[str, Any] = json.loads(done.output)
    if not result.get("failed"):
        cluster.state = ""
    return {
        "seconds": time.monotonic() - began,
        "failed": bool(result.get("failed")),
        "error_code": result.get("error_code"),
        "msg": result.get("msg", ""),
    }
