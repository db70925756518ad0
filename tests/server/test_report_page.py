# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the page says is what PostgreSQL says, before the plan and after it: its matrix, and why each role has what it has."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import harness
import pytest
from harness import Database

harness.link_collection()
sys.path.insert(0, str(harness.COLLECTIONS))

from ansible_collections.pg_access.reconcile.plugins.plugin_utils.page.model import Access, affected
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.page.page import page

SCHEMAS, TABLES = ("s0", "s1", "Ärger & <b>"), ("t0", "t1", "t2")
GROUPS, LOGINS = [f"g{number}" for number in range(6)], [f"u{number}" for number in range(6)] + ['o"k', "<i>"]
WORDS = ("SELECT", "INSERT", "UPDATE", "DELETE")

#: Who may what on each table, and who reaches whom at once or after SET ROLE.
RIGHTS = """
SELECT r.rolname::text, n.nspname::text, c.relname::text, p
FROM pg_roles r, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, unnest(%s::text[]) p
WHERE r.rolname = ANY (%s) AND n.nspname = ANY (%s) AND c.relkind = 'r' AND has_table_privilege(r.oid, c.oid, p)
"""
REACHES = """
SELECT m.rolname::text, g.rolname::text FROM pg_roles m, pg_roles g
WHERE m.rolname = ANY (%s) AND g.rolname = ANY (%s) AND m.oid <> g.oid AND pg_has_role(m.oid, g.oid, %s)
"""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture
def crowd(db: Database) -> Database:
    db.sql("CREATE ROLE owner", *(f"CREATE ROLE {quoted(name)}" for name in GROUPS))
    db.sql(*(f"CREATE ROLE {quoted(name)} LOGIN" for name in LOGINS))
    for schema in SCHEMAS:
        db.sql(f"CREATE SCHEMA {quoted(schema)} AUTHORIZATION owner")
        for table in TABLES:
            db.sql(f"SET ROLE owner; CREATE TABLE {quoted(schema)}.{table} (id int, note text); RESET ROLE")
    return db


def disturb(db: Database, chance: random.Random) -> None:
    """Grants and memberships that the manifest knows nothing of."""
    for name in (*GROUPS, *LOGINS):
        for _number in range(2):
            place = f"{quoted(chance.choice(SCHEMAS))}.{chance.choice(TABLES)}"
            db.sql(f"GRANT {', '.join(chance.sample(WORDS, 2))} ON {place} TO {quoted(name)}")
    for name in LOGINS:
        db.sql(f"GRANT {chance.choice(GROUPS)} TO {quoted(name)}")
    db.sql(f"GRANT SELECT ON {quoted(SCHEMAS[0])}.t0 TO PUBLIC; GRANT g0 TO g1; GRANT owner TO g5")


def wanted(db: Database, chance: random.Random) -> dict[str, Any]:
    grants = [
        {
            "role": name,
            "privileges": chance.sample(WORDS, chance.randint(1, 3)),
            "object": {"type": "table", "schema": schema, "name": chance.choice(("*", *TABLES))},
        }
        for name in (*GROUPS, *LOGINS)
        for schema in chance.sample(SCHEMAS, 2)
    ]
    loose = {"inherit": False} if db.version >= 16 else {}
    members: dict[str, list[dict[str, Any]]] = {}
    for name in LOGINS:
        for group in chance.sample(GROUPS, 2):
            members.setdefault(group, []).append({"name": name, **chance.choice(({}, loose))})
    for group, above in (("g2", "g0"), ("g3", "g2"), ("g4", "g3")):
        members.setdefault(above, []).append({"name": group})
    kept = chance.choice(LOGINS)
    return {
        "schemas": [{"name": name, "owner": "owner"} for name in SCHEMAS],
        "roles": [
            {"name": "owner"},
            *({"name": name, "inherit": name != "g4" or db.version >= 16} for name in GROUPS),
            *(
                {"name": name, "login": True, **({"privilege_reconciliation": "additive"} if name == kept else {})}
                for name in LOGINS
            ),
        ],
        "grants": grants,
        "memberships": [{"role": group, "members": told} for group, told in sorted(members.items())],
    }


def read(path: Path) -> Access:
    text = path.read_text(encoding="utf-8")
    assert page([text]).startswith("<!DOCTYPE html>")
    return Access(json.loads(text))


class Truth:
    def __init__(self, db: Database) -> None:
        names = ["owner", *GROUPS, *LOGINS]
        self.rights = set(db.query(RIGHTS, list(WORDS), names, list(SCHEMAS)))
        self.inherits = set(db.query(REACHES, names, names, "USAGE"))
        self.sets = set(db.query(REACHES, names, names, "SET" if db.version >= 16 else "MEMBER"))
        public = db.query(
            "SELECT n.nspname::text, c.relname::text, a.privilege_type FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            ", aclexplode(c.relacl) a WHERE a.grantee = 0 AND n.nspname = ANY (%s)",
            list(SCHEMAS),
        )
        self.public = set(public)


def told_in_matrix(access: Access, truth: Truth, *, before: bool) -> None:
    """What a cell says of tables is so, and nothing is left out."""
    cells = access.cells(before=before)
    checked = 0
    for role in ("owner", *GROUPS, *LOGINS):
        for schema in SCHEMAS:
            words = cells.get(role, {}).get(schema, {}).get("table", {})
            for word in WORDS:
                held = {table for table in TABLES if (role, schema, table, word) in truth.rights}
                held_alone = {table for table in held if (schema, table, word) not in truth.public}
                reach = words.get(word)
                place = (role, schema, word, reach, held)
                if reach == "all":
                    assert len(held) == len(TABLES), place
                elif reach == "some":
                    assert held, place
                else:
                    # What everybody has stands in a row of its own; what needs SET ROLE is not held.
                    assert not held_alone, place
                checked += 1
    assert checked == 15 * len(SCHEMAS) * len(WORDS)


def told_as_why(access: Access, truth: Truth, *, before: bool) -> None:
    """Each role's part of the page: the rows of what it holds, of each way and of PUBLIC, and its memberships."""
    never = "gained" if before else "lost"
    for role in ("owner", *GROUPS, *LOGINS):
        rows = [*access.own(role), *access.own("PUBLIC")]
        rows += [row for way in access.ways[role] if way.set_role is None for row in access.through(way)]
        found = {
            (role, schema, name, word)
            for row in rows
            if row.plan != never and row.item["object"]["type"] == "table" and not row.item["object"]["columns"]
            for schema in row.schemas
            for name in (row.item["objects"] or TABLES)
            for word in row.item["privileges"]
            if schema in SCHEMAS and word in WORDS
        }
        assert found == {right for right in truth.rights if right[0] == role}, role
        for option, said in (("INHERIT", truth.inherits), ("SET", truth.sets)):
            groups = {
                item["objects"][0]
                for item in access.memberships[role]
                if option in item["privileges"] and item["plan"] != never
            }
            assert groups & {"owner", *GROUPS} == {group for member, group in said if member == role}, (role, option)


@pytest.mark.parametrize("seed", range(3))
def test_the_page_says_what_the_server_says(crowd: Database, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    disturb(crowd, chance)
    manifest = wanted(crowd, chance)
    path = tmp_path / "access.json"
    planned = crowd.reconcile(manifest, check=True, report_file=str(path))
    assert len(planned.sql) > 10, planned
    access, before = read(path), Truth(crowd)
    told_in_matrix(access, before, before=True)
    told_as_why(access, before, before=True)
    crowd.converge(manifest)
    after = Truth(crowd)
    assert after.rights != before.rights
    told_in_matrix(access, after, before=False)
    told_as_why(access, after, before=False)
    # A run with nothing to do shows the same access, and marks nothing.
    assert not crowd.reconcile(manifest, report_file=str(path)).changed
    again = read(path)
    assert again.cells() == again.cells(before=True) == access.cells()
    told_as_why(again, after, before=False)


def test_privileges_of_different_origin_are_all_of_a_schema_together(crowd: Database, tmp_path: Path) -> None:
    """Some of them new, some for another rule: the check run shows what the run after it shows."""
    crowd.sql(
        "GRANT SELECT ON s0.t0 TO u0; GRANT SELECT ON s0.t0, s0.t1 TO u1; GRANT SELECT ON ALL TABLES IN SCHEMA s0 TO u2"
    )
    each = [
        {"role": "u3", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s0", "name": name}}
        for name in TABLES
    ]
    manifest = {
        "schemas": [{"name": "s0", "owner": "owner"}],
        "roles": [{"name": "owner"}, *({"name": name, "login": True} for name in ("u0", "u1", "u2", "u3"))],
        "grants": [
            {"role": "u0", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s0", "name": "*"}},
            {"role": "u2", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s0", "name": "t1"}},
            *each,
        ],
    }
    path = tmp_path / "access.json"
    for check, was in ((True, True), (False, True), (False, False)):
        result = crowd.reconcile(manifest, check=check, report_file=str(path))
        assert not result.failed and result.changed == was, result.text
        access = read(path)
        assert on_tables(access.cells(), "s0") == {"u0": "all", "u2": "some", "u3": "all"}
        if was:
            assert on_tables(access.cells(before=True), "s0") == {"u0": "some", "u1": "some", "u2": "all"}


def on_tables(cells: dict[str, Any], schema: str) -> dict[str, str]:
    """How far SELECT reaches on a schema's tables, for each login that has it."""
    found = {name: places.get(schema, {}).get("table", {}).get("SELECT") for name, places in cells.items()}
    return {name: reach for name, reach in found.items() if reach and name in LOGINS}


def test_who_holds_the_same_from_somebody_else_neither_gains_nor_loses(crowd: Database, tmp_path: Path) -> None:
    crowd.sql(
        "CREATE ROLE leaver; GRANT USAGE ON SCHEMA s0 TO leaver; CREATE TABLE s0.theirs (id int); ALTER TABLE s0.theirs OWNER TO leaver"
    )
    crowd.sql(
        "SET ROLE leaver; GRANT SELECT ON s0.theirs TO u0, u1 WITH GRANT OPTION; GRANT SELECT ON s0.theirs TO u2; RESET ROLE"
    )
    manifest = {
        "roles": [{"name": "owner"}, {"name": "u2", "login": True}],
        "grants": [
            {
                "role": "u2", "privileges": ["SELECT"], "ensure": "absent",
                "object": {"type": "table", "schema": "s0", "name": "theirs"},
            }
        ],
        "retirements": [{"role": "leaver", "reassign_owned_to": "owner", "drop_owned": True}],
    }  # fmt: skip
    path = tmp_path / "access.json"
    crowd.reconcile(manifest, check=True, reconciliation_mode="authoritative", report_file=str(path))
    touched = {name: (gains, loses) for name, gains, loses in affected(read(path))}
    assert touched == {"leaver": (False, True), "owner": (True, False), "u2": (False, True)}
    crowd.converge(manifest, reconciliation_mode="authoritative")
    assert crowd.value("SELECT has_table_privilege('u0', 's0.theirs', 'SELECT WITH GRANT OPTION')")
    crowd.reconcile(manifest, reconciliation_mode="authoritative", report_file=str(path))
    assert list(affected(read(path))) == []
