#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What pgroles makes of a prepared database with manifests of ours, as catalogs in ``pgroles_recorded.yml``.

``python tests/server/pgroles_recorded.py PROGRAM`` records them anew with another version of pgroles, on PostgreSQL 18.
Tests only read what is recorded.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

FILE = Path(__file__).with_suffix(".yml")
#: The program writes such comments for roles of profiles. The collection writes none.
_COMMENT = re.compile(r"\|Generated from profile .*")


def recorded() -> dict[str, Any]:
    return dict(yaml.safe_load(FILE.read_text(encoding="utf-8")))


def write(case: dict[str, Any], database: str, folder: Path) -> Path:
    """Writes a case's files, and returns the one to list."""
    folder.chmod(0o755)
    for name, text in case["files"].items():
        path = folder / name
        path.parent.mkdir(mode=0o755, exist_ok=True)
        path.write_text(text.replace("THIS_DB", database), encoding="utf-8")
    listed: str = next(iter(case["files"]))
    return folder / listed


def catalog(db: Any) -> dict[str, str]:
    """A snapshot in which nothing is left that differs from run to run."""
    schemas = {str(oid): name for oid, name in db.query("SELECT oid, nspname FROM pg_namespace")}
    found: dict[str, str] = {}
    for key, value in db.snapshot().items():
        kind, _, what = key.replace(db.name, "THIS_DB").partition(" ")
        if kind == "role":
            value = _COMMENT.sub("", value.partition("|")[2])
        elif kind == "default":
            owner, _, rest = what.partition("|")
            schema, _, letter = rest.rpartition("|")
            what = f"{owner}|{schemas.get(schema, '')}|{letter}"
        elif kind == "setting":
            continue
        found[f"{kind} {what}"] = value
    for role, settings in db.query(
        "SELECT pg_get_userbyid(setrole), (SELECT array_agg(x ORDER BY x) FROM unnest(setconfig) x)::text"
        " FROM pg_db_role_setting WHERE setdatabase = 0"
    ):
        found[f"setting {role}"] = settings
    return found


def changed(before: dict[str, str], after: dict[str, str]) -> dict[str, str | None]:
    """What is different afterwards. None is gone."""
    return {key: after.get(key) for key in sorted({*before, *after}) if before.get(key) != after.get(key)}


def of_version(expected: dict[str, str | None], version: int) -> dict[str, str | None]:
    """As it is on this version: MAINTAIN came with PostgreSQL 17."""
    if version >= 17:
        return expected
    return {key: value and value.replace("arwdDxtm", "arwdDxt") for key, value in expected.items()}


# ---- recording -----------------------------------------------------------------------------------------------------


def _apply(program: str, db: Any, path: Path, case: dict[str, Any]) -> None:
    address = db.cluster.address(db.name)
    url = f"postgres://postgres@localhost:{address['port']}/{db.name}?host={quote(address['host'], safe='')}"
    command = [program, "apply", "--bundle" if path.name == "bundle.yml" else "--file", str(path)]
    command += ["--mode", case.get("mode", "authoritative"), "--allow-schema-owner-transfers"]
    subprocess.run(command, check=True, env={**os.environ, "DATABASE_URL": url})


def main() -> None:
    import servers
    from harness import Cluster, Database, Runner

    program = sys.argv[1]
    whole = recorded()
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    whole["version"] = version
    cluster = Cluster(servers.start(18))
    for case in whole["cases"]:
        runner = Runner()
        db = Database(cluster, runner)
        try:
            db.sql(whole["prepared"], case.get("drift", "").replace("THIS_DB", db.name))
            before = catalog(db)
            with tempfile.TemporaryDirectory() as folder:
                _apply(program, db, write(case, db.name, Path(folder)), case)
            case["catalog"] = changed(before, catalog(db))
        finally:
            db.close()
            runner.close()
    head = FILE.read_text(encoding="utf-8").partition("---\n")[0]
    FILE.write_text(f"{head}---\n{_text(whole)}", encoding="utf-8")


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if "\n" in text:
        return dumper.represent_scalar("tag:yaml.org,2002:str", textwrap.dedent(text), style="|")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text)


_Dumper.add_representer(str, _string)


def _text(whole: dict[str, Any]) -> str:
    return yaml.dump(whole, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


if __name__ == "__main__":
    main()
