# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is explained is exactly what PostgreSQL says: for every role and object, before the plan and after it.

The judges are has_table_privilege() and its like, and pg_has_role().
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, TypeAlias

import pytest
from harness import Cluster, Database, Result, Runner
from hypothesis import event, given
from hypothesis import strategies as st
from strategies import cases
from test_properties import Trial, examples

#: Kind, schema, name, column and privilege.
Right: TypeAlias = "tuple[str, str | None, str, str | None, str]"

TABLE = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]

#: The objects outside PostgreSQL's own schemas, and what asks about each.
OBJECTS = r"""
SELECT CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized_view' ELSE 'table' END, n.nspname, c.relname::text,
       NULL, p, 'has_table_privilege(%s, ' || c.oid || '::oid, %s)'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN unnest(%(table)s::text[]) p
WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND {ours}
UNION ALL
SELECT CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized_view' ELSE 'table' END, n.nspname, c.relname::text,
       a.attname, p, 'has_column_privilege(%s, ' || c.oid || '::oid, ' || a.attnum || '::int2, %s)'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
CROSS JOIN unnest('{{SELECT,INSERT,UPDATE,REFERENCES}}'::text[]) p
WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND a.attnum > 0 AND NOT a.attisdropped AND {ours}
UNION ALL
SELECT 'sequence', n.nspname, c.relname, NULL, p, 'has_sequence_privilege(%s, ' || c.oid || '::oid, %s)'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN unnest('{{USAGE,SELECT,UPDATE}}'::text[]) p WHERE c.relkind = 'S' AND {ours}
UNION ALL
SELECT 'function', n.nspname, p.proname || '(' || oidvectortypes(p.proargtypes) || ')', NULL, 'EXECUTE',
       'has_function_privilege(%s, ' || p.oid || '::oid, %s)'
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {ours}
UNION ALL
SELECT 'type', n.nspname, t.typname, NULL, 'USAGE', 'has_type_privilege(%s, ' || t.oid || '::oid, %s)'
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE {ours} AND t.typtype IN ('b', 'c', 'd', 'e', 'r')
  AND (t.typrelid = 0 OR t.typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'c'))
  AND NOT EXISTS (SELECT FROM pg_type e WHERE e.typarray = t.oid)
UNION ALL
SELECT 'schema', NULL, n.nspname, NULL, p, 'has_schema_privilege(%s, ' || n.oid || '::oid, %s)'
FROM pg_namespace n CROSS JOIN unnest('{{USAGE,CREATE}}'::text[]) p WHERE n.nspname !~ '^pg_(toast|temp_)'
UNION ALL
SELECT 'database', NULL, d.datname, NULL, p, 'has_database_privilege(%s, ' || d.oid || '::oid, %s)'
FROM pg_database d CROSS JOIN unnest('{{CONNECT,CREATE,TEMPORARY}}'::text[]) p WHERE d.datname = current_database()
UNION ALL
SELECT 'language', NULL, l.lanname, NULL, 'USAGE', 'has_language_privilege(%s, ' || l.oid || '::oid, %s)'
FROM pg_language l WHERE l.lanpltrusted
UNION ALL
SELECT 'foreign_data_wrapper', NULL, w.fdwname, NULL, 'USAGE',
       'has_foreign_data_wrapper_privilege(%s, ' || w.oid || '::oid, %s)' FROM pg_foreign_data_wrapper w
UNION ALL
SELECT 'foreign_server', NULL, s.srvname, NULL, 'USAGE', 'has_server_privilege(%s, ' || s.oid || '::oid, %s)'
FROM pg_foreign_server s
UNION ALL
SELECT 'tablespace', NULL, t.spcname, NULL, 'CREATE', 'has_tablespace_privilege(%s, ' || t.oid || '::oid, %s)'
FROM pg_tablespace t
"""
PARAMETERS = r"""
UNION ALL
SELECT 'parameter', NULL, a.parname, NULL, p, 'has_parameter_privilege(%s, ' || quote_literal(a.parname) || ', %s)'
FROM pg_parameter_acl a CROSS JOIN unnest('{{SET,"ALTER SYSTEM"}}'::text[]) p
"""
OURS = r"n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'role_reconcile')"


class Truth:
    """What the server says of every role."""

    def __init__(self, db: Database) -> None:
        version = db.version
        query = (OBJECTS + (PARAMETERS if version >= 15 else "")).format(ours=OURS)
        words = [*TABLE, *(["MAINTAIN"] if version >= 17 else [])]
        # What psycopg would take for a placeholder is meant for later.
        with db.connection.cursor() as cursor:
            # So that the names of types are qualified, as the module shows them.
            cursor.execute("SET search_path = pg_catalog")
            cursor.execute(query.replace("%(table)s", "'{" + ",".join(words) + "}'"))
            asked = cursor.fetchall()
            self.rights: list[Right] = [(row[0], row[1], row[2], row[3], row[4]) for row in asked]
            cursor.execute("SELECT rolname, oid FROM pg_roles ORDER BY oid")
            roles = cursor.fetchall()
            self.of: dict[str, set[Right]] = {}
            # In the name of OIDs, so that no quoting can go wrong.
            for name, oid in [*roles, ("PUBLIC", None)]:
                who = "'public'" if oid is None else f"{oid}::oid"
                tests = [row[5].replace("%s", who, 1).replace("%s", f"'{row[4]}'") for row in asked]
                cursor.execute(f"SELECT ARRAY[{', '.join(tests)}]")
                (answers,) = cursor.fetchone() or ((),)
                self.of[name] = {right for right, held in zip(self.rights, answers, strict=True) if held}
            word = "SET" if version >= 16 else "MEMBER"
            cursor.execute(
                "SELECT m.rolname, g.rolname, pg_has_role(m.oid, g.oid, 'USAGE'), pg_has_role(m.oid, g.oid, %s), "
                "pg_has_role(m.oid, g.oid, 'MEMBER') FROM pg_roles m, pg_roles g",
                [word],
            )
            self.inherits: dict[str, set[str]] = defaultdict(set)
            self.sets: dict[str, set[str]] = defaultdict(set)
            self.member: dict[str, set[str]] = defaultdict(set)
            for member, group, inherits, sets, member_of in cursor.fetchall():
                for found, held in ((self.inherits, inherits), (self.sets, sets), (self.member, member_of)):
                    if held:
                        found[member].add(group)
            cursor.execute("SELECT rolname FROM pg_roles WHERE rolsuper")
            self.superusers = {row[0] for row in cursor.fetchall()}
            cursor.execute("RESET search_path")

    @property
    def interesting(self) -> list[str]:
        """All roles but those of PostgreSQL's own that nobody uses here: a result has room for some."""
        own = ("pg_monitor", "pg_read_all_data", "pg_write_all_data", "pg_maintain", "pg_database_owner")
        return [name for name in self.of if name in own or not name.startswith("pg_")]


def expanded(items: list[dict[str, Any]], rights: list[Right]) -> set[Right]:
    """The single rights that items speak of."""
    found: set[Right] = set()
    for item in items:
        target, privilege = item["object"], item["privilege"]
        kind, schema, columns = target["type"], target["schema"], target["columns"]
        if kind == "*":
            return set(rights)
        names = set(map(_plain, item["objects"]))
        seen: set[str] = set()
        for right in rights:
            if right[0] != kind or right[4] != privilege or (schema is not None and right[1] != schema):
                continue
            if columns and right[3] not in columns:
                continue
            # What is held on a relation is held on its columns.
            if (target["name"] == "*" and not names) or _plain(right[2]) in names:
                found.add(right)
                seen.add(_plain(right[2]))
        asked_about = kind not in ("database", "large_object") and schema not in ("pg_catalog", "information_schema")
        assert names <= seen or not asked_about, f"there are no {names - seen}: {item}"
    return found


def _plain(name: str) -> str:
    """Beside a procedure with output arguments the modes are written out."""
    return name.replace("(IN ", "(").replace(", IN ", ", ")


def check(result: Result, truth: Truth, plan: str, names: list[str]) -> None:
    """The items that hold on this side of the plan are exactly what the server says."""
    assert not result.get("truncated")
    for name in names:
        items = [item for item in result.explain if item["role"] == name and item["plan"] in ("unchanged", plan)]
        own = [item for item in items if item["set_role"] is None]
        groups: dict[str, set[str]] = defaultdict(set)
        for item in own:
            if item["object"]["type"] == "role":
                groups[item["privilege"]].update(item["objects"])
        plain = [item for item in own if item["object"]["type"] != "role" and item["privilege"] != "OWNER"]
        said = expanded(plain, truth.rights)
        expected = truth.of[name]
        assert said == expected, f"{name}: not said {expected - said}, not so {said - expected}"
        if name == "PUBLIC" or name in truth.superusers:
            assert name == "PUBLIC" or any(item["how"] == "superuser" for item in plain)
            continue
        assert groups["INHERIT"] == truth.inherits[name] - {name}
        assert groups["SET"] == truth.sets[name] - {name}
        assert groups["INHERIT"] | groups["SET"] | groups["MEMBER"] | groups["ADMIN"] >= truth.member[name] - {name}
        assert groups["MEMBER"] <= truth.member[name]
        later = [item for item in items if item["object"]["type"] != "role" and item["privilege"] != "OWNER"]
        reached = set().union(*(truth.of[other] for other in {name, *truth.sets[name]}))
        assert expanded(later, truth.rights) == reached, f"{name}, by SET ROLE"


def asked(trial: Trial, names: list[str], **options: Any) -> Result:
    """What a check run explains of these roles; a result has room for a few of them."""
    first = trial.run(check=True, explain=names[:5], **options)
    for start in range(5, len(names), 5):
        if first.failed:
            break
        more = trial.run(check=True, explain=names[start : start + 5], **options)
        assert not more.get("truncated")
        first.explain.extend(more.explain)
    return first


@pytest.mark.parametrize("plain", [False, True], ids=["superuser", "executor"])
@examples(0.7)
@given(data=st.data())
def test_what_is_explained_is_what_the_server_says(
    server: Cluster, runner: Runner, plain: bool, data: st.DataObject
) -> None:
    with Trial(data.draw(cases(server.version, plain=plain)), server, runner) as trial:
        before = Truth(trial.db)
        names = before.interesting
        predicted = asked(trial, names)
        event(f"refused: {predicted.error_code}")
        if predicted.failed:
            # Nothing is explained then; what is there is.
            nothing: dict[str, Any] = {"manifest": {}, "reconciliation_mode": None, "undeclared_grantees": None}
            check(asked(trial, names, **nothing), before, "lost", names)
            return
        check(predicted, before, "lost", names)
        if any(item["object"]["type"] == "role" for item in predicted.explain if item["plan"] == "gained"):
            event("memberships change")
        result = trial.run(explain=names[:5])
        if result.failed:
            event(f"apply: {result.error_code}")
            return
        assert result.explain == [item for item in predicted.explain if item["role"] in names[:5]]
        after = Truth(trial.db)
        check(predicted, after, "gained", names)
        again = asked(trial, after.interesting)
        assert {item["plan"] for item in again.explain} <= {"unchanged"}
        check(again, after, "gained", after.interesting)


@pytest.mark.parametrize("heir", [True, False], ids=["heir", "destroyed"])
def test_retirements_are_explained_as_they_come_out(db: Database, heir: bool) -> None:
    db.sql("CREATE ROLE old; CREATE ROLE heir; CREATE ROLE reader; CREATE ROLE member; GRANT old TO member")
    db.sql("CREATE ROLE boss; GRANT boss TO old; CREATE SCHEMA s; GRANT CREATE, USAGE ON SCHEMA s TO old, reader")
    db.sql("CREATE TABLE s.theirs (a int, b int); GRANT SELECT, UPDATE (b) ON s.theirs TO old")
    db.sql("SET ROLE old; CREATE TABLE s.own (a int, b int); GRANT SELECT, UPDATE (a) ON s.own TO reader, heir;"
           "CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TYPE s.e AS ENUM ('x');"
           "REVOKE SELECT ON s.own FROM old; RESET ROLE")  # fmt: skip
    # A schema goes to the heir as well, and what both hold there becomes one.
    db.sql("CREATE SCHEMA o; GRANT USAGE ON SCHEMA o TO heir, reader; ALTER SCHEMA o OWNER TO old")
    end = "reassign_owned_to: heir, drop_owned: true" if heir else "drop_owned: true"
    manifest = "roles: [{name: heir}, {name: reader}, {name: member}, {name: boss}]\n"
    manifest += f"retirements: [{{role: old, {end}}}]"
    before = Truth(db)
    names = before.interesting
    predicted = db.reconcile(manifest, check=True, explain=names)
    assert not predicted.failed, predicted.text
    check(predicted, before, "lost", names)
    assert db.converge(manifest).changed
    check(predicted, Truth(db), "gained", [name for name in names if name != "old"])
    assert {item["plan"] for item in predicted.explain if item["role"] == "old"} == {"lost"}
