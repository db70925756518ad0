# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who loses something is warned about, in check mode as in the run, in few and documented words; results stay small."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness import Database, Result, documented_warning

#: What the module makes of what it read, whatever the server's version.
ONE = pytest.mark.versions(min=18)

#: A result is serialised below this, with everything that Ansible adds.
LARGEST = 500_000


def told(db: Database, result: Result) -> list[str]:
    """The warnings without the address that each begins with."""
    start = f"{db.name}@{db.server.socket_directory}:{db.server.port}: "
    assert all(text.startswith(start) for text in result.warnings), result.warnings
    texts = [text.removeprefix(start) for text in result.warnings]
    assert [text for text in texts if not documented_warning(text)] == []
    return texts


def both(db: Database, manifest: Any, **options: Any) -> list[str]:
    """What the check run and the run warn about, which is the same."""
    predicted = told(db, db.reconcile(manifest, check=True, **options))
    result = db.reconcile(manifest, **options)
    assert not result.failed, result
    assert told(db, result) == predicted
    return predicted


SETUP = """
CREATE ROLE x; CREATE ROLE y; CREATE ROLE g; CREATE ROLE o; CREATE ROLE was LOGIN; CREATE ROLE stopped LOGIN; CREATE SCHEMA s AUTHORIZATION o;
CREATE TABLE s.t (a int, b int); GRANT SELECT, INSERT ON s.t TO x; GRANT UPDATE (a, b) ON s.t TO x; GRANT USAGE ON SCHEMA s TO y;
ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO x; GRANT g TO y; GRANT g TO was WITH ADMIN OPTION;
"""
WANT = """
roles: [{name: was}, {name: stopped, login: false}, {name: g}, {name: o}]
schemas: [{name: s, owner: o}]
memberships: [{role: g, members: [{name: was}]}]
"""
OMITTED = "role was loses LOGIN: the manifest gives it neither login nor password (login: true keeps it, login: false says that it is meant)"
MEANT = "role stopped loses LOGIN: the manifest says login: false"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["2 undeclared roles lose 7 privileges and memberships: x 5, y 2", OMITTED, MEANT]),
        (
            {"undeclared_grantees": "revoke"},
            ["2 undeclared roles lose 7 privileges and memberships: x 5, y 2", OMITTED, MEANT],
        ),
        (
            {"reconciliation_mode": "adopt"},
            ["2 undeclared roles lose 7 privileges and memberships: x 5, y 2", OMITTED, MEANT],
        ),
        # What is kept is not lost; a membership is not kept by it.
        ({"undeclared_grantees": "keep"}, ["1 undeclared role loses 1 privilege or membership: y 1", OMITTED, MEANT]),
        ({"reconciliation_mode": "additive"}, []),
    ],
    ids=["default", "revoke", "adopt", "keep", "additive"],
)
def test_who_loses_something(db: Database, options: dict[str, Any], expected: list[str]) -> None:
    db.sql(SETUP)
    assert both(db, WANT, **options) == expected
    assert told(db, db.reconcile(WANT, **options)) == []


@ONE
def test_a_guard_tells_in_check_mode_what_stops_the_run(db: Database) -> None:
    db.sql(SETUP, "ALTER ROLE x LOGIN")
    db.connect(user="x")
    guarded = told(db, db.reconcile(WANT, check=True, max_revokes=1))
    assert [text for text in guarded if "an apply would fail here: undeclared role x" in text]
    assert [text for text in guarded if "an apply would fail here: max_revokes" in text]
    assert "2 undeclared roles lose 7 privileges and memberships: x 5, y 2" in guarded


@ONE
def test_many_losers_are_one_warning_with_five_names(db: Database) -> None:
    db.sql("CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    db.sql(
        "DO $$BEGIN FOR i IN 10 .. 39 LOOP EXECUTE format('CREATE ROLE u%s; GRANT SELECT ON s.t TO u%s', i, i); END LOOP; END$$"
    )
    db.sql("GRANT INSERT ON s.t TO u39")
    (text,) = both(db, "schemas: [{name: s}]", undeclared_grantees="revoke")
    assert text == "30 undeclared roles lose 31 privileges and memberships: u39 2, u10 1, u11 1, u12 1, u13 1, \u2026"


@ONE
def test_many_warnings_of_one_kind_end_with_their_number(db: Database) -> None:
    names = [f"u{number}" for number in range(10, 60)]
    db.sql(*(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 3" for name in names))
    texts = both(db, {"roles": [{"name": name} for name in names]})
    assert len(texts) == 42
    assert texts[19].startswith("role u29 loses LOGIN")
    assert texts[20] == "30 more roles lose LOGIN"
    assert texts[21].startswith("role u10: its connection limit is lifted")
    assert texts[41] == "30 more roles gain what the manifest does not say"


# ---- size


@ONE
def test_thousands_of_claimed_schemas(db: Database) -> None:
    """`summary.managed` is shortened with the rest, and says by how much."""
    count = 3000
    db.sql(
        f"CREATE ROLE r; DO $$BEGIN FOR i IN 1 .. {count} LOOP "
        "EXECUTE format('CREATE SCHEMA a_schema_with_a_name_that_is_about_as_long_as_it_may_be_%s', i); END LOOP; END$$"
    )
    names = [f"a_schema_with_a_name_that_is_about_as_long_as_it_may_be_{number}" for number in range(1, count + 1)]
    grants = [{"role": "r", "privileges": ["USAGE"], "object": {"type": "schema", "name": name}} for name in names]
    manifest = {"roles": [{"name": "r"}], "grants": grants}
    predicted = db.reconcile(manifest, check=True, diff=True)
    result = db.reconcile(manifest, diff=True)
    again = db.reconcile(manifest)
    for found in (predicted, result, again):
        assert len(json.dumps(found)) < LARGEST
        assert found.summary["grants"]["granted"] == (0 if found is again else count)
        managed = found.summary["managed"]
        assert found.ansible_facts["pg_role_reconcile"]["summary"] == found.summary
        assert found.truncated is True
        kept = [name for name in managed if name.startswith("schema ")]
        assert 100 < len(kept) < count
        assert set(managed) - set(kept) == {f"and {count - len(kept)} more"}
        assert all(managed[name] for name in kept)
    assert predicted.plan_digest == result.plan_digest
    assert predicted.summary == result.summary


@ONE
def test_thousands_of_withheld_differences(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s")
    db.sql(
        """DO $$BEGIN FOR i IN 1 .. 700 LOOP
        EXECUTE format('CREATE ROLE a_role_%1$s; CREATE TABLE s.a_table_%1$s ()', LONG || i);
        EXECUTE format('GRANT SELECT ON s.a_table_%1$s TO a_role_%1$s', LONG || i);
        END LOOP; END$$""".replace("LONG", "'with_a_name_that_is_about_as_long_as_it_may_be_'")
    )
    result = db.reconcile("roles: [{name: r}]\nschemas: [{name: s}]", reconciliation_mode="additive")
    assert result.truncated is True
    assert 100 < len(result.withheld) < 700
    assert len(json.dumps(result)) < LARGEST
    # Nothing but a count tells how many there were; a failure is small as well.
    failed = db.reconcile("roles: [{name: r}]\nschemas: [{name: s}]", max_revokes=10)
    assert failed.error_code == "guard"
    assert len(json.dumps(failed)) < LARGEST


NOTHING = "nothing is declared, in no section and in no file of the manifest: this run looks after nothing"


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        (None, True),
        ({"roles": []}, True),
        ({"roles": None, "grants": [], "scope": {}}, True),
        ({"scope": {"ignore_roles": ["x_*"]}, "assume_roles": ["other"]}, True),
        ({"role_pattern": "{schema}_{profile}", "profiles": {"read": {}}}, True),
        ({"scope": {"schemas": ["no_such_*"]}}, False),
        ({"schemas": [{"name": "s"}]}, False),
        ({"retirements": [{"role": "gone"}]}, False),
    ],
)
def test_a_run_for_nothing_says_so(db: Database, manifest: dict[str, Any] | None, told: bool) -> None:
    db.sql("CREATE SCHEMA s")
    for check in (True, False):
        result = db.reconcile(manifest, check=check)
        assert not result.failed and not result.changed, result
        assert [text for text in result.get("warnings", []) if text.endswith(NOTHING)] == result.get("warnings", [])
        assert bool(result.get("warnings")) == told
