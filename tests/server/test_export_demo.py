# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The databases that people know, exported, applied to a server that has only their structure, and compared fact by fact.

What the two differ in afterwards must be exactly what the export said that it leaves out.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import demo_support
import pytest
import yaml
from demo_support import Fact, build, facts
from harness import Cluster, Database, Result, Runner, another_server, module_environment, parse

#: Undeclared roles may lose what they hold without anybody being asked: nothing is meant to be lost at all.
AUTHORITATIVE: dict[str, Any] = {"reconciliation_mode": "authoritative", "undeclared_grantees": "revoke"}

#: What AWX still takes is more; this is what every module of the collection stays under.
RESULT_LIMIT = 500_000


def export(db: Database, **options: Any) -> Result:
    """What pg_role_export returns for this database."""
    arguments = db.arguments(None, **options)
    arguments["ANSIBLE_MODULE_ARGS"]["_ansible_module_name"] = "pg_access.reconcile.pg_role_export"
    result = parse(*db.runner.forked(arguments, module_environment(), "pg_role_export", 60))
    assert not result.failed, result
    return result


def written(result: Result, folder: Path) -> dict[str, Any]:
    """The export as a file of the manifest: the options of a run with it."""
    file = folder / "access.yml"
    file.write_text(result.yaml, encoding="utf-8")
    return {"manifest_files": [str(file)], **AUTHORITATIVE}


class NotExported:
    """An item of ``not_exported``, as a difference that it explains."""

    #: What a difference's kind of object is called in the item.
    KINDS: ClassVar[dict[str, str]] = {"row type": "type", "multirange": "type"}
    LETTERS: ClassVar[dict[str, str]] = {"table": "r", "sequence": "S", "function": "f", "type": "T", "schema": "n"}

    def __init__(self, item: dict[str, Any]) -> None:
        assert set(item) == {"kind", "role", "object", "what", "reason"}, item
        self.item = item
        self.kind = item["kind"]
        self.role = item["role"] or "PUBLIC"
        if self.role.isdigit():
            # A role that is gone.
            self.role = f"unknown (OID={self.role})"
        self.object = item["object"] or {}

    @property
    def without_trace(self) -> bool:
        """Passwords are not compared."""
        return bool(self.kind == "password")

    def explains(self, fact: Fact) -> bool:
        """Whether this is why the two servers differ in that."""
        kind, schema, name, column = fact.object
        if self.kind == "role" and self.item["reason"] == "name":
            return self.role in (fact.role, name if kind == "role" else kind)
        if self.kind == "schema":
            gone = self.object["name"]
            return gone == schema or (kind, name) == ("schema", gone)
        if fact.role != self.role:
            return False
        if self.kind == "membership":
            return fact.sort == "member" and name in re.split(r"[ (),:]+", self.item["what"])
        if self.kind in ("role", "comment", "config"):
            here = self.item["reason"] == "database_setting"
            part = {"role": "", "comment": "comment", "config": "config here " if here else "config "}[self.kind]
            return fact.sort == "role" and fact.what.startswith(part) and (here or "config here " not in fact.what)
        if not re.search(rf"\b{fact.what}\b", self.item["what"]):
            return False
        if self.kind == "default_privilege":
            return fact.sort == "default" and name == self.LETTERS[self.object["type"]]
        if self.kind == "grant":
            columns = self.object["columns"] or [""]
            return (fact.sort, self.KINDS.get(kind, kind), schema) == (
                "grant", self.object["type"], self.object["schema"] or "",
            ) and column in columns and name == self.object["name"]  # fmt: skip
        raise AssertionError(f"a test has to know what {self.item} explains")


@pytest.fixture(scope="module")
def second(server: Cluster) -> Iterator[Cluster]:
    """Another server of the same version."""
    with another_server(server.version) as cluster:
        yield cluster


@pytest.fixture
def elsewhere(second: Cluster, runner: Runner) -> Iterator[Database]:
    database = Database(second, runner)
    yield database
    database.close()


@pytest.fixture(params=[False, True], ids=["flat", "profiles"])
def suggested(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"suggest_profiles": request.param}


@pytest.mark.parametrize("name", demo_support.NAMES)
def test_where_it_comes_from_an_export_is_an_empty_plan(
    db: Database, name: str, suggested: dict[str, Any], tmp_path: Path
) -> None:
    build(db, name, "structure")
    build(db, name, "access")
    before = facts(db)
    result = export(db, **suggested)
    assert result.changed is False
    assert yaml.safe_load(result.yaml) == result.manifest
    assert export(db, **suggested).yaml == result.yaml
    run = db.silent(**written(result, tmp_path))
    assert run.suppressed_revoke_count == 0
    assert facts(db) == before


@pytest.mark.parametrize("name", demo_support.NAMES)
def test_elsewhere_an_export_makes_the_same_access(
    db: Database, elsewhere: Database, name: str, suggested: dict[str, Any], tmp_path: Path
) -> None:
    for database in (db, elsewhere):
        build(database, name, "structure")
    build(db, name, "access")
    result = export(db, **suggested)
    said = [NotExported(item) for item in result["not_exported"]]
    for item in said:
        if item.kind == "role" and item.role in {role["name"] for role in result.manifest["roles"]}:
            # It comes as external, so somebody else has to make it.
            elsewhere.sql(f'CREATE ROLE "{item.role}"')
    applied = elsewhere.converge(**written(result, tmp_path))
    assert applied.changed
    differences = facts(db) ^ facts(elsewhere)
    assert [str(fact) for fact in sorted(differences) if not any(item.explains(fact) for item in said)] == []
    assert [item.item for item in said if not item.without_trace and not any(map(item.explains, differences))] == []
    again = export(elsewhere, **suggested)
    # In the same order, too.
    assert json.dumps(without(again.manifest, said)) == json.dumps(without(result.manifest, said))
    if not said:
        assert again.yaml == result.yaml


def without(manifest: dict[str, Any], said: list[NotExported]) -> dict[str, Any]:
    """A manifest without the roles and schemas that are left out: elsewhere they are other ones."""
    left = {
        item.role if item.kind == "role" else item.object["name"] for item in said if item.kind in ("role", "schema")
    }
    return {
        **manifest,
        "roles": [entry for entry in manifest["roles"] if entry["name"] not in left],
        "schemas": [entry for entry in manifest["schemas"] if entry["name"] not in left],
        "scope": None,
    }


@pytest.mark.parametrize("name", demo_support.NAMES)
def test_whoever_may_read_the_catalog_exports_the_same(db: Database, name: str) -> None:
    build(db, name, "structure")
    build(db, name, "access")
    db.sql("CREATE ROLE only_reads LOGIN NOINHERIT")
    if name in ("pagila", "history"):
        # PUBLIC has lost CONNECT.
        db.sql(f"GRANT CONNECT ON DATABASE {db.name} TO only_reads")
    before = db.snapshot()
    whole = export(db)
    result = export(db, login_user="only_reads")
    assert result.yaml == whole.yaml
    assert [
        item for item in whole["not_exported"] if item not in result["not_exported"] and item["kind"] != "password"
    ] == []
    assert db.snapshot() == before


def test_customers_of_one_shape_become_profiles(db: Database) -> None:
    build(db, "tenants", "structure")
    build(db, "tenants", "access")
    result = export(db, suggest_profiles=True)
    assert set(result.manifest["profiles"]) == {"read", "edit"}
    assert result.manifest["role_pattern"] == "app_{schema}_{profile}"
    bound = {entry["name"]: entry.get("profiles") for entry in result.manifest["schemas"]}
    assert bound == {
        "acme": ["edit", "read"], "north-west": ["edit", "read"], "umbrella": ["edit"], "Łódź & Co": ["edit", "read"],
        "billing": None, "public": None,
    }  # fmt: skip
    reasons = {item["role"]: item["reason"] for item in result["flat_roles"]}
    assert "privileges on tables" in reasons["app_umbrella_read"]


@pytest.mark.parametrize(
    "name",
    ["{{", "{% x %}", "*{{*", "[{{]", "PUBLIC", "None"],
    ids=["braces", "block", "stars", "class", "public", "none"],
)
def test_roles_that_no_manifest_can_name_are_left_alone(db: Database, name: str, tmp_path: Path) -> None:
    db.sql(
        "CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE ROLE reader; CREATE ROLE almost; GRANT SELECT ON s.t TO reader",
        f'CREATE ROLE "{name}"; GRANT INSERT ON s.t TO "{name}"; GRANT reader TO "{name}"; GRANT "{name}" TO almost',
        f'ALTER DEFAULT PRIVILEGES FOR ROLE "{name}" IN SCHEMA s GRANT SELECT ON TABLES TO reader',
    )
    before = db.snapshot()
    result = export(db)
    assert [(item["kind"], item["role"], item["reason"]) for item in result["not_exported"]] == [("role", name, "name")]
    db.silent(**written(result, tmp_path))
    assert db.snapshot() == before


def test_what_is_not_to_be_named_is_a_pattern_of_a_single_role(db: Database, tmp_path: Path) -> None:
    """A role called like a pattern can be left alone, too."""
    db.sql(
        'CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE ROLE reader; CREATE ROLE "*"',
        'GRANT SELECT ON s.t TO reader, "*"',
    )
    result = export(db, ignore_roles=["[*]"])
    assert [role["name"] for role in result.manifest["roles"] if not role.get("external")] == ["reader"]
    db.silent(**written(result, tmp_path))


# ---- many tables

_MANY = """
DO $$ BEGIN
    FOR i IN 1..10000 LOOP
        EXECUTE format('CREATE TABLE big.t%s (a int)', i);
        IF i % 1000 = 0 THEN COMMIT; END IF;
    END LOOP;
END $$
"""

#: No table is granted like its neighbours, so each needs rules of its own.
_DIFFERENTLY = """
DO $$ BEGIN
    FOR i IN 1..10000 LOOP
        EXECUTE format('GRANT SELECT, %s ON big.t%s TO big_%s', (ARRAY['INSERT', 'DELETE', 'UPDATE', 'TRUNCATE'])[i % 4 + 1], i, i % 7);
        IF i % 1000 = 0 THEN COMMIT; END IF;
    END LOOP;
END $$
"""


@pytest.fixture
def many(db: Database) -> Database:
    db.sql("CREATE SCHEMA big", _MANY)
    for number in range(7):
        db.sql(f"CREATE ROLE big_{number}")
    return db


def test_ten_thousand_tables_that_are_alike_are_exported_in_a_moment(many: Database, tmp_path: Path) -> None:
    many.sql("GRANT SELECT ON ALL TABLES IN SCHEMA big TO big_0, big_1", "GRANT INSERT ON big.t77 TO big_2")
    started = time.monotonic()
    result = export(many)
    seconds = time.monotonic() - started
    # Some 0.4 s; a query or a rule for each object would take far longer.
    assert seconds < 5
    assert len(result.manifest["grants"]) < 20
    run = many.silent(**written(result, tmp_path))
    assert run.suppressed_revoke_count == 0


def test_an_export_that_is_too_large_for_a_result_is_whole_in_its_file(many: Database, tmp_path: Path) -> None:
    many.sql(_DIFFERENTLY)
    file = tmp_path / "access.yml"
    result = export(many, dest=str(file))
    assert result.changed
    assert result["truncated"] is True
    assert len(json.dumps(result)) < RESULT_LIMIT
    assert file.read_text(encoding="utf-8").count('\n  - role: "big_') == 10_000
    again = export(many, dest=str(file))
    assert not again.changed
    run = many.reconcile(None, check=True, manifest_files=[str(file)], **AUTHORITATIVE)
    assert not run.failed, run
    assert run.sql == []
