# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The seed's scenario: a legacy login keeps its hand-made grants while everybody else converges.

In all three modes, with and without ``privilege_reconciliation: additive``, with and without ``external``.
"""

from __future__ import annotations

import re

import pytest
from harness import UNCONNECTED, Database, Result

SETUP = (
    "CREATE ROLE app_owner; CREATE ROLE pgloader_pg LOGIN CONNECTION LIMIT 9; CREATE ROLE batch LOGIN; CREATE ROLE ro",
    "CREATE SCHEMA inventory AUTHORIZATION app_owner",
    """SET ROLE app_owner;
    CREATE TABLE inventory.items (id int GENERATED ALWAYS AS IDENTITY, name text);
    CREATE TABLE inventory.stock (id int); CREATE VIEW inventory.low AS SELECT 1 AS a;
    CREATE FUNCTION inventory.f(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
    GRANT USAGE, CREATE ON SCHEMA inventory TO pgloader_pg;
    GRANT SELECT, INSERT, UPDATE ON inventory.items TO pgloader_pg;
    GRANT SELECT ON inventory.stock TO pgloader_pg; GRANT SELECT ON inventory.low TO pgloader_pg;
    GRANT USAGE ON SEQUENCE inventory.items_id_seq TO pgloader_pg; GRANT EXECUTE ON FUNCTION inventory.f(int) TO pgloader_pg;
    GRANT SELECT, DELETE ON inventory.stock TO batch; GRANT USAGE ON SCHEMA inventory TO batch;
    RESET ROLE""",
    "ALTER DEFAULT PRIVILEGES FOR ROLE app_owner IN SCHEMA inventory GRANT SELECT, INSERT ON TABLES TO pgloader_pg",
    "ALTER DEFAULT PRIVILEGES FOR ROLE app_owner IN SCHEMA inventory GRANT SELECT ON TABLES TO batch",
)

#: What pgloader_pg holds and nobody declares: (kind of item, object, privileges).
BACKLOG = {
    ("object", "schema", "inventory", ("CREATE",)),
    ("object", "table", "items", ("INSERT", "UPDATE")),
    ("object", "table", "stock", ("SELECT",)),
    ("object", "view", "low", ("SELECT",)),
    ("object", "sequence", "items_id_seq", ("USAGE",)),
    ("object", "function", "f(integer)", ("EXECUTE",)),
    ("default_privilege", "table", "inventory", ("INSERT", "SELECT")),
}
COUNT = 9

MANIFEST = """
default_owner: app_owner
profiles:
  editor:
    grants:
      - {privileges: [USAGE], object: {type: schema}}
      - {privileges: [SELECT, INSERT], object: {type: table, name: "*"}}
    default_privileges:
      - {privileges: [SELECT, INSERT], on_type: table}
schemas: [{name: inventory, owner: app_owner, profiles: [editor]}]
roles:
  - {name: app_owner}
  - {name: batch, login: true}
  - {name: ro}
  - {name: pgloader_pg, ROLE}
memberships:
  - {role: inventory-editor, members: [{name: pgloader_pg}]}
grants:
  - {role: pgloader_pg, privileges: [USAGE], object: {type: schema, name: inventory}}
  - {role: pgloader_pg, privileges: [SELECT], object: {type: table, schema: inventory, name: items}}
  - {role: pgloader_pg, privileges: [DELETE], object: {type: table, schema: inventory, name: items}}
  - {role: batch, privileges: [USAGE], object: {type: schema, name: inventory}}
  - {role: batch, privileges: [SELECT], object: {type: table, schema: inventory, name: stock}}
"""


def manifest(external: bool, override: bool) -> str:
    fields = ["external: true" if external else "login: true, connection_limit: 9"]
    if override:
        fields.append("privilege_reconciliation: additive")
    return MANIFEST.replace("ROLE", ", ".join(fields))


def held_by(db: Database, role: str) -> set[str]:
    """Everything the role holds through entries of its own."""
    entry = re.compile(rf"(?:^|[{{,]){role}=([a-zA-Z*]+)/")
    return {f"{key} {match}" for key, value in db.snapshot().items() for match in entry.findall(value.split(" ")[-1])}


def items(result: Result) -> set[tuple[str, str, str, tuple[str, ...]]]:
    return {
        (
            item["kind"],
            item["object"]["type"],
            item["object"]["schema"] if item["kind"] == "default_privilege" else item["object"]["name"],
            tuple(sorted(item["privileges"])),
        )
        for item in result.suppressed_revokes
    }


@pytest.fixture
def brownfield(db: Database) -> Database:
    db.sql(*SETUP)
    return db


@pytest.mark.parametrize("external", [True, False], ids=["external", "managed"])
@pytest.mark.parametrize("mode", ["authoritative", "adopt"])
def test_without_the_override_the_legacy_grants_go(brownfield: Database, mode: str, external: bool) -> None:
    db = brownfield
    result = db.converge(manifest(external, override=False), reconciliation_mode=mode)
    assert result.suppressed_revokes == []
    assert result.suppressed_revoke_count == 0
    assert held_by(db, "pgloader_pg") == {
        "schema inventory U",
        "relation inventory.items rd",
    }
    assert db.members("inventory-editor") == {"pgloader_pg"}


@pytest.mark.parametrize("external", [True, False], ids=["external", "managed"])
@pytest.mark.parametrize("mode", ["authoritative", "adopt"])
def test_with_the_override_they_stay_and_are_counted(brownfield: Database, mode: str, external: bool) -> None:
    db = brownfield
    before = held_by(db, "pgloader_pg")
    result = db.converge(manifest(external, override=True), reconciliation_mode=mode)
    # Its undeclared privileges survive, its declared ones converge, its membership converges.
    assert held_by(db, "pgloader_pg") == (before - {"relation inventory.items arw"}) | {"relation inventory.items arwd"}
    assert db.members("inventory-editor") == {"pgloader_pg"}
    assert not [statement for statement in result.matching("REVOKE") if "pgloader_pg" in statement]
    # Everybody else converges, in the same run.
    assert held_by(db, "batch") == {"schema inventory U", "relation inventory.stock r"}
    # The backlog is there, in every place.
    assert items(result) == BACKLOG
    assert result.suppressed_revoke_count == COUNT
    assert result.summary["suppressed_revokes"] == {"pgloader_pg": COUNT}
    facts = result.ansible_facts["pg_role_reconcile"]
    assert facts["suppressed_revoke_count"] == COUNT
    (warning,) = [text for text in result.warnings if "pgloader_pg" in text]
    assert f"pgloader_pg {COUNT}" in warning
    assert str(COUNT) in warning.split("pgloader_pg")[0]
    assert db.attribute("pgloader_pg", "rolconnlimit") == 9
    # The same backlog without any change.
    again = db.silent(manifest(external, override=True), reconciliation_mode=mode)
    assert again.suppressed_revokes == result.suppressed_revokes
    assert again.changed is False


@pytest.mark.parametrize("override", [True, False], ids=["override", "no override"])
def test_in_additive_the_mode_did_it(brownfield: Database, override: bool) -> None:
    db = brownfield
    before = {role: held_by(db, role) for role in ("pgloader_pg", "batch")}
    result = db.converge(manifest(external=True, override=override), reconciliation_mode="additive")
    assert not result.matching("REVOKE")
    assert result.suppressed_revokes == []
    assert result.suppressed_revoke_count == 0
    assert before["batch"] <= held_by(db, "batch")
    assert "relation inventory.items arwd" in held_by(db, "pgloader_pg")
    held = {item["role"] for item in result.held(reason="mode")}
    assert {"pgloader_pg", "batch"} <= held


def test_the_suppressed_statements_are_those_that_would_run(brownfield: Database) -> None:
    """The override never changes what is granted, and it holds back exactly the undeclared revokes for that grantee."""
    db = brownfield
    kept = db.reconcile(manifest(external=True, override=True), check=True)
    strict = db.reconcile(manifest(external=True, override=False), check=True)
    assert [s for s in kept.sql if "REVOKE" not in s] == [s for s in strict.sql if "REVOKE" not in s]
    assert strict.summary["grants"]["granted"] == kept.summary["grants"]["granted"]
    revoked = sum(result.summary[key]["revoked"] for result in (strict,) for key in ("grants", "default_privileges"))
    still = sum(result.summary[key]["revoked"] for result in (kept,) for key in ("grants", "default_privileges"))
    assert revoked - still == COUNT
    db.converge(manifest(external=True, override=True))
    for item in kept.suppressed_revokes:
        assert item["role"] == "pgloader_pg"
        assert item["owner"] == item["grantor"] == "app_owner"
        db.sql(item["sql"])
    # They were all there was to do.
    db.silent(manifest(external=True, override=False))


def test_the_diff_shows_what_is_kept(brownfield: Database) -> None:
    db = brownfield
    for check in (True, False):
        (diff,) = db.reconcile(manifest(external=True, override=True), check=check, diff=True).diff
        kept = [line for line in diff["after"].splitlines() if "# kept: privilege_reconciliation: additive" in line]
        assert kept, diff["after"]
        assert all("pgloader_pg" in line for line in kept)
        for word in ("items", "stock", "low", "items_id_seq", "f(integer)", "CREATE", "EXECUTE"):
            assert any(word in line for line in kept), word
        assert "# kept" not in diff["before"]
        # batch's surplus really goes.
        assert any("batch" in line and "DELETE" in line for line in diff["before"].splitlines())
        assert not any("batch" in line and "DELETE" in line for line in diff["after"].splitlines())
    # With nothing to do the drift does not look like convergence: it is shown, annotated.
    quiet = db.reconcile(manifest(external=True, override=True), check=True, diff=True)
    assert quiet.changed is False
    (diff,) = quiet.diff
    assert "# kept: privilege_reconciliation: additive" in diff["after"]


def test_moving_grants_into_the_manifest_works_off_the_backlog(brownfield: Database) -> None:
    db = brownfield
    step = manifest(external=True, override=True)
    db.converge(step)
    counts = [db.reconcile(step, check=True).suppressed_revoke_count]
    for grant in (
        "  - {role: pgloader_pg, privileges: [CREATE], object: {type: schema, name: inventory}}\n",
        "  - {role: pgloader_pg, privileges: [SELECT, INSERT, UPDATE], object: {type: table, schema: inventory, name: '*'}}\n",
        "  - {role: pgloader_pg, privileges: [SELECT], object: {type: view, schema: inventory, name: low}}\n",
        "  - {role: pgloader_pg, privileges: [USAGE], object: {type: sequence, schema: inventory, name: '*'}}\n",
        "  - {role: pgloader_pg, privileges: [EXECUTE], object: {type: function, schema: inventory, name: f}}\n",
    ):
        step += grant
        result = db.converge(step)
        counts.append(result.suppressed_revoke_count)
        assert not [text for text in result.warnings if "remove" in text.lower() and "pgloader_pg" in text]
    assert counts == [9, 8, 5, 4, 3, 2]
    # An explicit absent applies, override or not.
    step += (
        "default_privileges:\n  - {owner: app_owner, schema: inventory, grant: [{role: pgloader_pg,"
        " privileges: [SELECT, INSERT], on_type: table, ensure: absent}]}\n"
    )
    result = db.converge(step)
    assert result.suppressed_revoke_count == 0
    assert ("app_owner", "inventory", "r") in db.defaults()
    assert not [entry for entry in db.defaults()["app_owner", "inventory", "r"] if entry.startswith("pgloader_pg=")]
    # A backlog of 0 is the signal to remove the override.
    again = db.silent(step)
    assert [text for text in again.warnings if "pgloader_pg" in text and "privilege_reconciliation" in text]


def test_an_explicit_absent_applies(brownfield: Database) -> None:
    db = brownfield
    absent = "  - {role: pgloader_pg, privileges: [INSERT], object: {type: table, schema: inventory, name: items}, ensure: absent}\n"
    result = db.converge(manifest(external=True, override=True) + absent)
    assert "relation inventory.items rwd" in held_by(db, "pgloader_pg")
    assert result.suppressed_revoke_count == COUNT - 1


def test_default_privileges_that_it_owns_for_others_converge(brownfield: Database) -> None:
    db = brownfield
    db.sql("ALTER DEFAULT PRIVILEGES FOR ROLE pgloader_pg IN SCHEMA inventory GRANT SELECT ON TABLES TO batch, ro")
    extra = (
        "default_privileges: [{owner: pgloader_pg, schema: inventory,"
        " grant: [{role: ro, privileges: [SELECT], on_type: table}]}]\n"
    )
    db.converge(manifest(external=True, override=True) + extra)
    assert db.defaults()["pgloader_pg", "inventory", "r"] == {"ro=r/pgloader_pg"}


def test_memberships_converge_in_both_directions(brownfield: Database) -> None:
    db = brownfield
    db.sql("GRANT ro TO pgloader_pg; GRANT pgloader_pg TO batch")
    db.converge(manifest(external=False, override=True))
    # ro is a managed group and does not name it; pgloader_pg is a managed group itself and names nobody.
    assert db.members("ro") == set()
    assert db.members("pgloader_pg") == set()


def test_several_roles_share_one_warning(brownfield: Database) -> None:
    db = brownfield
    text = manifest(external=True, override=True).replace(
        "{name: batch, login: true}", "{name: batch, external: true, privilege_reconciliation: additive}"
    )
    result = db.converge(text)
    (warning,) = [text for text in result.warnings if "pgloader_pg" in text]
    # batch keeps DELETE on a table and SELECT by default.
    assert result.summary["suppressed_revokes"] == {"batch": 2, "pgloader_pg": COUNT}
    assert warning.index("pgloader_pg 9") < warning.index("batch 2")


def test_a_wildcard_does_not_flap(brownfield: Database) -> None:
    db = brownfield
    wildcard = "  - {role: pgloader_pg, privileges: [SELECT], object: {type: table, schema: inventory, name: '*'}}\n"
    result = db.converge(manifest(external=True, override=True) + wildcard)
    assert result.suppressed_revoke_count == COUNT - 1
    db.sql("SET ROLE app_owner; CREATE TABLE inventory.more (a int); RESET ROLE")
    db.silent(manifest(external=True, override=True) + wildcard)


def test_a_surplus_privilege_with_grant_option_is_one_item(brownfield: Database) -> None:
    db = brownfield
    db.sql("SET ROLE app_owner; GRANT DELETE ON inventory.stock TO pgloader_pg WITH GRANT OPTION; RESET ROLE")
    result = db.converge(manifest(external=True, override=True))
    assert result.suppressed_revoke_count == COUNT + 1
    assert {item["kind"] for item in result.suppressed_revokes} == {"object", "default_privilege"}


@UNCONNECTED
@pytest.mark.parametrize("value", ["authoritative", "adopt", "unmanaged", "", True])
def test_no_value_tightens(db: Database, value: object) -> None:
    role = {"name": "r", "privilege_reconciliation": value}
    db.rejects({"roles": [role]}, "roles[0].privilege_reconciliation")


def test_retiring_a_role_that_carries_it(db: Database) -> None:
    db.fails(
        "roles: [{name: r, privilege_reconciliation: additive}]\nretirements: [{role: r}]",
        ("manifest_invalid", "not_supported"),
    )


def test_undeclared_grantees_do_not_matter_to_it(brownfield: Database) -> None:
    db = brownfield
    db.sql("CREATE ROLE stranger; GRANT SELECT ON inventory.items TO stranger")
    for option, stays in (("keep", True), ("revoke", False)):
        result = db.converge(manifest(external=True, override=True), undeclared_grantees=option)
        assert bool(held_by(db, "stranger")) is stays
        assert result.suppressed_revoke_count == COUNT
