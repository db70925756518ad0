# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Properties of every export, on random databases: a reconcile has nothing to do with what came out.

Options and examples are those of ``test_properties.py``.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import oracle
import yaml
from harness import Cluster, Database, Runner
from hypothesis import given, note
from hypothesis import strategies as st
from strategies import ROLES, SCHEMAS, cases
from test_properties import Trial, examples


def _pattern(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _any(db: Database, options: dict[str, Any], option: str) -> bool:
    """Whether there is anything that the option's patterns match."""
    query = {"roles": "SELECT rolname FROM pg_roles", "schemas": "SELECT nspname FROM pg_namespace"}[option]
    names = [row[0] for row in db.query(query)]
    if option == "schemas":
        names = [name for name in names if not name.startswith("pg_")]
    return any(fnmatchcase(name, pattern) for name in names for pattern in options[option])


_ROLES = st.lists(st.sampled_from([*map(_pattern, ROLES), "a*", "*o*"]), min_size=1, max_size=3, unique=True)
_SCHEMAS = st.lists(st.sampled_from([*map(_pattern, SCHEMAS), "p*"]), min_size=1, max_size=3, unique=True)


@examples(1.5)
@given(data=st.data())
def test_a_run_has_nothing_to_do_with_an_export(
    server: Cluster, runner: Runner, data: st.DataObject, tmp_path_factory: Any
) -> None:
    folder: Path = tmp_path_factory.mktemp("export")
    case = data.draw(cases(server.version))
    options: dict[str, Any] = data.draw(
        st.fixed_dictionaries({}, optional={"roles": _ROLES, "schemas": _SCHEMAS, "ignore_roles": _ROLES})
    )
    reader = data.draw(st.booleans())
    with Trial(case, server, runner) as trial:
        if reader:
            trial.db.sql("CREATE ROLE reader LOGIN CREATEROLE", f"GRANT CONNECT ON DATABASE {trial.db.name} TO reader")
            options["login_user"] = "reader"
        note(f"export: {options}")
        # A filter that nothing matches is refused, and only such a one.
        idle = [option for option in ("roles", "schemas") if option in options and not _any(trial.db, options, option)]
        if idle:
            refused = trial.db.run_export(**options)
            assert (refused.failed, refused.error_code) == (True, "object_missing")
            assert [problem["path"] for problem in refused.problems] == sorted(idle, reverse=True)
            for option in idle:
                del options[option]
        result = trial.db.run_export(**options)
        assert not result.failed, f"{result.msg}\n{result.text}\n{result.plan}"
        note(result["yaml"])
        assert yaml.safe_load(result["yaml"]) == result["manifest"]
        assert trial.db.run_export(**options)["yaml"] == result["yaml"]
        before = oracle.read(trial.db.connection)
        file = folder / "access.yml"
        file.write_text(result["yaml"], encoding="utf-8")
        by_file: dict[str, Any] = {"manifest_files": [str(file)]}
        runs: list[dict[str, Any]] = [result["manifest"] or {"roles": []}]
        if result["manifest"]:
            runs.append(by_file)
        for manifest in runs:
            for user in sorted({"postgres", options.get("login_user", "postgres")}):
                again = trial.db.reconcile(manifest, login_user=user)
                assert not again.failed, f"{again.msg}\n{again.text}\n{again.plan}"
                assert (again.sql, again.suppressed_revoke_count) == ([], 0)
        assert oracle.read(trial.db.connection) == before
        if not options.keys() - {"login_user"}:
            told = {entry["name"] for entry in result["manifest"].get("roles", ())}
            left = {item["role"] for item in result["not_exported"] if item["reason"] == "name"}
            assert set(before.roles) - {"postgres"} - told - left <= {
                name for name in before.roles if name.startswith("pg_")
            }
