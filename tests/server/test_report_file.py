# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``report_file``: the data of a report, for every role the same answers as ``explain`` has."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from explain_support import WITH_LEGACY
from harness import Database
from playbook_support import play


@pytest.fixture
def inventory(db: Database) -> Database:
    db.sql("CREATE ROLE owner; CREATE ROLE legacy; CREATE ROLE intern; CREATE SCHEMA inventory AUTHORIZATION owner")
    db.sql("CREATE TABLE inventory.orders (id int, note text); ALTER TABLE inventory.orders OWNER TO owner")
    db.sql("GRANT SELECT, DELETE ON inventory.orders TO legacy; GRANT SELECT ON inventory.orders TO intern")
    return db


def read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def flat(items: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    """What items say, one for each privilege and membership, as far as both forms have it."""
    return {
        (
            item["role"], name, privilege, item["grant_option"], item["grantor"],
            tuple(item["via"]), item["set_role"], *_reason(item), item["plan"],
        )
        for item in items
        for name in (item["objects"] if item["object"]["type"] == "role" else [json.dumps(item["object"], sort_keys=True)])
        for privilege in item.get("privileges") or [item["privilege"]]
    }  # fmt: skip


def _reason(item: dict[str, Any]) -> tuple[Any, ...]:
    """What stands behind what a predefined role gives is why one is its member, which a membership's item says."""
    return ("predefined",) if item["how"] == "predefined" else (item["because"], item["rule"])


def put_together(data: dict[str, Any], role: str) -> set[tuple[Any, ...]]:
    """What a role has after the plan: its own, PUBLIC's, and what is held at the ends of its ways."""
    own = [item for item in data["held"] if item["role"] == role]
    ways = [([*way[1]], way[2]) for way in data["ways"] if way[0] == role and way[3] != "lost"]
    if role != "PUBLIC":
        ways.append((["PUBLIC"], None))
    through = [
        {**item, "role": role, "via": via, "set_role": set_role}
        for via, set_role in ways
        for item in data["held"]
        if item["role"] == via[-1] and item["object"]["type"] not in ("role", "*")
    ]
    return flat([item for item in own + through if item["plan"] != "lost"])


def test_put_together_the_data_say_of_every_role_what_explain_says(inventory: Database, tmp_path: Path) -> None:
    path = tmp_path / "access.json"
    inventory.sql("GRANT owner TO intern; GRANT pg_read_all_data TO legacy; GRANT intern TO legacy")
    for _turn in range(2):
        inventory.reconcile(WITH_LEGACY, report_file=str(path))
        data = read(path)
        names = [role["name"] for role in data["roles"]]
        assert {"PUBLIC", "app", "inventory-editor", "intern", "legacy", "owner", "team"} <= set(names)
        asked = [name for name in names if not name.startswith("pg_")]
        explained = inventory.reconcile(WITH_LEGACY, check=True, explain=asked)
        assert not explained.sql and not explained.get("truncated")
        for name in asked:
            wanted = [item for item in explained.explain if item["role"] == name]
            # What the plan has just given is no longer new.
            found = {(*item[:-1], "unchanged") for item in put_together(data, name)}
            assert found == flat(wanted), name


ALIKE = """
CREATE ROLE g1; CREATE ROLE g2; CREATE ROLE g3; CREATE ROLE g4; CREATE ROLE m LOGIN; CREATE ROLE guest LOGIN;
CREATE ROLE between; GRANT g1, g2, g3, g4 TO m, guest, between; GRANT pg_monitor, between TO m
"""

#: Group and member; whoever owns the database is in this one without a row.
MEMBERSHIPS = """
SELECT pg_get_userbyid(roleid)::text, pg_get_userbyid(member)::text FROM pg_auth_members
UNION SELECT 'pg_database_owner', pg_get_userbyid(datdba)::text FROM pg_database WHERE datname = current_database()
"""


def test_the_page_has_every_membership_of_the_catalog(db: Database, tmp_path: Path) -> None:
    """Through the role, in check mode and in two runs; groups that are alike are one item of an explanation."""
    db.sql(ALIKE)
    manifest = {"schemas": [{"name": "public"}], "roles": [{"name": "guest", "external": True, "member_of": []}]}
    page = tmp_path / "page.html"
    variables = {"reconcile_database": db.name, "reconcile_report": str(page), "reconcile_manifest": manifest}
    site = [
        {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}", **variables},
            "roles": ["pg_access.reconcile.reconcile"],
        }
    ]
    (tmp_path / "site.yml").write_text(json.dumps(site), encoding="utf-8")
    going = {(f"g{number}", "guest") for number in range(1, 5)}
    before = set(db.query(MEMBERSHIPS))
    assert going < before and ("pg_monitor", "m") in before
    for words, there, gone in (
        (["--check"], before - going, going),
        ([], before - going, going),
        ([], before - going, set()),
    ):
        played = play(db, tmp_path, "site.yml", *words)
        assert played.status == 0, played.output
        shown = memberships(page.read_text(encoding="utf-8"))
        assert {pair for pair, goes in shown.items() if goes} == gone
        assert {pair for pair, goes in shown.items() if not goes} == there
    assert set(db.query(MEMBERSHIPS)) == before - going


def memberships(page: str) -> dict[tuple[str, str], bool]:
    """The table of memberships: group and member, and whether it goes. The picture has as many lines of each sort."""
    table = page[page.index('aria-label="Memberships"') :].partition("</table>")[0]
    row = r'<tr( class="lost")?[^>]*><td>.*?<bdi>(.*?)</bdi>.*?</td><td>.*?<bdi>(.*?)</bdi>'
    found = {(group, member): bool(goes) for goes, member, group in re.findall(row, table)}
    assert f"<summary>{len(found)} memberships as a table" in page
    lines = re.findall(r'<path class="\w+ (\w+)"', page[page.index("<svg") : page.index("</svg>")])
    assert (len(lines), lines.count("lost")) == (len(found), sum(found.values()))
    return found


def test_who_holds_what_and_what_the_plan_does_are_there(inventory: Database, tmp_path: Path) -> None:
    path = tmp_path / "access.json"
    result = inventory.reconcile(WITH_LEGACY, check=True, report_file=str(path))
    data = read(path)
    roles = {role["name"]: role for role in data["roles"]}
    assert roles["inventory-editor"]["profile"] == "editor" and roles["inventory-editor"]["schema"] == "inventory"
    assert roles["inventory-editor"]["plan"] == "gained" and roles["legacy"]["additive"] is True
    assert ["app", ["team", "inventory-editor"], None, "gained"] in data["ways"]
    assert data["backlog"] == {"legacy": 2} and data["check_mode"] is True
    assert [text for text, _behind in data["statements"]] == result.sql
    behind = dict(data["statements"])
    assert any("profiles.editor.grants[1]" in reason for reasons in behind.values() for reason in reasons)
    lost = [item for item in data["held"] if item["role"] == "intern" and item["plan"] == "lost"]
    assert [(item["privileges"], item["because"]) for item in lost] == [(["SELECT"], "surplus")]


def test_the_file_is_private_the_same_twice_and_changes_nothing(inventory: Database, tmp_path: Path) -> None:
    inventory.converge(WITH_LEGACY)
    path = tmp_path / "access.json"
    first = inventory.reconcile(WITH_LEGACY, report_file=str(path))
    before = path.read_bytes()
    second = inventory.reconcile(WITH_LEGACY, report_file=str(path))
    assert not first.changed and not second.changed and path.read_bytes() == before
    assert first.plan_digest == inventory.reconcile(WITH_LEGACY).plan_digest
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_there_is_no_password_in_the_data(inventory: Database, tmp_path: Path) -> None:
    path = tmp_path / "access.json"
    secret = "correct-horse-battery"
    manifest = WITH_LEGACY.replace("name: app, login: true", f"name: app, login: true, password: {secret}, comment: x")
    inventory.reconcile(manifest, update_password="always", report_file=str(path))
    assert secret not in path.read_text(encoding="utf-8")
    assert any("PASSWORD" in text and "********" in text for text, _behind in read(path)["statements"])
    # A comment from the catalog is no place that the run knows of.
    inventory.sql(f"COMMENT ON ROLE legacy IS 'its password is {secret}'")
    inventory.reconcile(manifest, update_password="always", report_file=str(path))
    assert secret not in path.read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_is_said_before_anything_is_done(inventory: Database, tmp_path: Path) -> None:
    failure = inventory.fails(WITH_LEGACY, "manifest_invalid", report_file=str(tmp_path / "none" / "access.json"))
    assert failure.problems[0]["path"] == "report_file"
    same = str(tmp_path / "plan.sql")
    failure = inventory.fails(WITH_LEGACY, "manifest_invalid", report_file=same, plan_file=same)
    assert "is the file of plan_file as well" in failure.text
