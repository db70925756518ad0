# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Properties of every run, on random databases and manifests.

``PROPERTIES=long`` runs many more and random examples, ``PROPERTIES_EXAMPLES`` says how many; without it the same few
run each time. What fails prints the SQL that makes the database and the manifest.
"""

from __future__ import annotations

import os
import re
from typing import Any

import oracle
import psycopg
from harness import Cluster, Database, Result, Runner
from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st
from strategies import Case, cases, q

LONG = os.environ.get("PROPERTIES") == "long"
EXAMPLES = int(os.environ.get("PROPERTIES_EXAMPLES", "500" if LONG else "30"))

#: Making a failing example smaller takes minutes.
SHRINK = os.environ.get("PROPERTIES_SHRINK", "yes") != "no"

property_settings = settings(
    max_examples=EXAMPLES,
    derandomize=not LONG,
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    phases=[Phase.generate, *([Phase.shrink] if SHRINK else [])],
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)


class Trial:
    """One example: a fresh database that is set up, and the runs on it."""

    def __init__(self, case: Case, server: Cluster, runner: Runner) -> None:
        self.case = case
        self.db = Database(server, runner)

    def __enter__(self) -> Trial:
        done: list[str] = []
        for statement in self.case.setup:
            sql = self._spell_out(statement)
            try:
                self.db.sql(sql)
                done.append(statement)
            except psycopg.Error:
                continue
        self.case.setup = done
        note(self.case.text)
        self.before = oracle.read(self.db.connection)
        return self

    def __exit__(self, *_exception: object) -> None:
        self.db.close()

    def _spell_out(self, statement: str) -> str:
        """What only the database knows: its name, and who owns an object."""
        match = re.search(r"OWNER_OF (\w+) (.*)$", statement)
        if match:
            kind, name = match.groups()
            name = name.replace("CURRENT_DATABASE", self.db.name)
            query = {
                "schema": "SELECT nspowner FROM pg_namespace WHERE oid = %s::regnamespace",
                "database": "SELECT datdba FROM pg_database WHERE datname = %s",
                "function": "SELECT proowner FROM pg_proc WHERE oid = %s::regprocedure",
                "type": "SELECT typowner FROM pg_type WHERE oid = %s::regtype",
            }.get(kind, "SELECT relowner FROM pg_class WHERE oid = %s::regclass")
            name = name.replace("(IN ", "(").replace(", IN ", ", ")
            owner = self.db.value(f"SELECT pg_get_userbyid(({query}))", name)
            statement = statement[: match.start()] + q(owner)
        return statement.replace("CURRENT_DATABASE", self.db.name)

    def run(self, *, check: bool = False, diff: bool = False, **changed: Any) -> Result:
        options = {**self.case.options, **changed}
        manifest = options.pop("manifest", self.case.manifest)
        result = self.db.reconcile(manifest, check=check, diff=diff, **options)
        note(
            f"{'check' if check else 'run'}: {result.error_code or ''} {result.msg}\n"
            + "\n".join(result.sql or result.plan)
        )
        return result

    def expect(self) -> oracle.Expected:
        return oracle.expect(self.case.manifest, self.case.options, self.before, self.case.spellings)


def _trial(data: st.DataObject, server: Cluster, runner: Runner, **wanted: Any) -> Trial:
    return Trial(data.draw(cases(server.version, **wanted)), server, runner)


@property_settings
@given(data=st.data())
def test_the_catalog_is_what_the_oracle_says(server: Cluster, runner: Runner, data: st.DataObject) -> None:
    with _trial(data, server, runner) as trial:
        expected = trial.expect()
        event(f"refused: {expected.refused}")
        result = trial.run()
        after = oracle.read(trial.db.connection)
        if expected.refused:
            assert result.failed, f"it should have been refused: {expected.refused}"
            return
        assert not result.failed, result.text
        wrong = oracle.differences(expected, after, trial.before)
        assert not wrong, "\n".join(["not as the oracle says", *wrong])
