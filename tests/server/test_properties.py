# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Properties of every run, on random databases and manifests.

``PROPERTIES=long`` runs many more and random examples, ``PROPERTIES_EXAMPLES`` says how many; without it the same few
run each time, others on each PostgreSQL version. What fails prints the SQL that makes the database and the manifest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import oracle
import psycopg
import yaml
from harness import Cluster, Database, Result, Runner
from hypothesis import HealthCheck, Phase, event, given, note, seed, settings
from hypothesis import strategies as st
from strategies import Case, cases, q

LONG = os.environ.get("PROPERTIES") == "long"
EXAMPLES = int(os.environ.get("PROPERTIES_EXAMPLES", "500" if LONG else "12"))

Property = TypeVar("Property", bound=Callable[..., None])

SECTIONS = {"roles", "memberships", "schemas", "grants", "default_privileges"}

#: Making a failing example smaller takes minutes.
SHRINK = os.environ.get("PROPERTIES_SHRINK", "yes") != "no"


def examples(factor: float = 1) -> settings:
    """How a property is run: ``factor`` times as many examples as usual."""
    return settings(
        max_examples=max(1, int(EXAMPLES * factor)),
        derandomize=not LONG,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        phases=[Phase.generate, *([Phase.shrink] if SHRINK else [])],
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )


def seeded(version: int) -> Callable[[Property], Property]:
    """This version's own examples. Where all five run, they are five times as many."""
    return (lambda test: test) if LONG else seed(version)


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

    @property
    def foreign(self) -> bool:
        """Whether anything was given by another than the owner."""
        objects = self.before.objects
        places = [(thing.owner, thing.entries) for thing in objects.values()]
        places += [(objects[key].owner, entries) for (key, _column), entries in self.before.columns.items()]
        return any(entry.grantor != owner for owner, entries in places for entry in entries)

    def expect(self) -> oracle.Expected:
        return oracle.expect(
            self.case.manifest,
            self.case.options,
            self.before,
            self.case.spellings,
            self.case.options.get("login_user", "postgres"),
        )

    def catalog(self) -> oracle.Catalog:
        return oracle.read(self.db.connection)

    @contextmanager
    def by_hand(self) -> Iterator[psycopg.Connection[Any]]:
        """A transaction of somebody who copies statements out of a plan. It is rolled back."""
        user = self.case.options.get("login_user", "postgres")
        with self.db.connect(user, autocommit=False) as connection:
            yield connection
            connection.rollback()


def _trial(data: st.DataObject, server: Cluster, runner: Runner, **wanted: Any) -> Trial:
    return Trial(data.draw(cases(server.version, **wanted)), server, runner)


@examples(2)
@given(data=st.data())
def test_the_catalog_is_what_the_oracle_says(server: Cluster, runner: Runner, data: st.DataObject) -> None:
    with _trial(data, server, runner) as trial:
        expected = trial.expect()
        event(f"refused: {sorted(expected.refused)}")
        event(f"foreign: {expected.foreign}")
        result = trial.run()
        after = trial.catalog()
        if not _as_expected(expected, result, trial):
            return
        # The automatic and the several rows of a membership may be replaced by others that mean the same.
        after = trial.catalog()
        same = replace(after, memberships=trial.before.memberships) == trial.before
        assert result.changed == (not same or after.edges() != trial.before.edges())
        held_back = {
            (item["role"], *place, privilege, item["grantor"])
            for item in result.suppressed_revokes
            for place in _places(item)
            for privilege in item["privileges"]
        }
        assert held_back == expected.suppressed


def _as_expected(expected: oracle.Expected, result: Result, trial: Trial) -> bool:
    """Whether the run did what it should have. False where it was right to refuse."""
    after = trial.catalog()
    codes = {*expected.refused, *(["dependent_privileges"] if expected.may_refuse else [])}
    if expected.refused or (result.failed and codes):
        assert result.failed, f"it should have been refused: {expected.refused}"
        assert result.error_code in codes or ("circle" in codes and "circle" in result.msg), result.text
        assert after == trial.before
        return False
    assert not result.failed, result.text
    wrong = oracle.differences(expected, after, trial.before)
    assert not wrong, "\n".join(["not as the oracle says", *wrong])
    return True


def _places(item: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Where a suppressed privilege is, in the words of the oracle."""
    target = item["object"]
    if item["kind"] == "default_privilege":
        return [("default_privilege", item["owner"], target["schema"], target["type"])]
    # Beside a procedure with output arguments the modes are written out.
    name = re.sub(r"(?<=[(])IN |(?<=, )IN ", "", target["name"])
    return [(item["kind"], target["type"], target["schema"], name, column) for column in target["columns"] or [None]]


@examples()
@given(data=st.data())
def test_a_check_run_predicts_the_run_and_a_second_one_has_nothing_to_do(
    server: Cluster, runner: Runner, data: st.DataObject
) -> None:
    with _trial(data, server, runner) as trial:
        before = trial.db.snapshot()
        predicted = trial.run(check=True, diff=True)
        assert trial.db.snapshot() == before, "the check run wrote something"
        result = trial.run(diff=True)
        if result.failed:
            assert trial.db.snapshot() == before, "a failed run left something behind"
            if result.error_code == "guard":
                assert any("an apply would fail here" in warning for warning in predicted.warnings)
                assert result.plan == predicted.sql
            else:
                assert (predicted.error_code, predicted.problems) == (result.error_code, result.problems)
            return
        for key in ("changed", "sql", "plan_digest", "summary", "suppressed_revokes", "withheld", "diff"):
            assert result[key] == predicted[key], f"the check run predicted another {key}"
        after = trial.db.snapshot()
        assert result.changed == (after != before)
        for check in (True, False):
            again = trial.run(check=check)
            assert not again.failed, again.text
            assert again.sql == [], "a second run still had something to do"
            # What is left over is the same as before: held back, and nothing new.
            if not trial.foreign:
                assert again.suppressed_revokes == result.suppressed_revokes
        assert trial.db.snapshot() == after


@examples()
@given(data=st.data())
def test_the_statements_run_by_hand_do_the_same(server: Cluster, runner: Runner, data: st.DataObject) -> None:
    with _trial(data, server, runner) as trial:
        predicted = trial.run(check=True)
        if predicted.failed:
            return
        with trial.by_hand() as connection:
            for statement in predicted.sql:
                connection.execute(statement)
            found = oracle.read(connection)
        result = trial.run(undeclared_grantees=trial.case.options.get("undeclared_grantees", "revoke"))
        assert not result.failed, result.text
        assert trial.catalog() == found


@examples()
@given(data=st.data())
def test_the_override_keeps_exactly_the_undeclared_revokes(
    server: Cluster, runner: Runner, data: st.DataObject
) -> None:
    with _trial(data, server, runner) as trial:
        roles = trial.case.manifest["roles"]
        plain = [{key: value for key, value in role.items() if key != "privilege_reconciliation"} for role in roles]
        carriers = {role["name"] for role in roles if "privilege_reconciliation" in role}
        overridden = trial.run(check=True)
        without = trial.run(check=True, manifest={**trial.case.manifest, "roles": plain})
        assert without.failed or not overridden.failed
        if without.failed:
            # What somebody gave whose grants no statement reaches can be kept, and not taken away.
            assert overridden.failed or without.error_code == "dependent_privileges"
            return
        assert without.suppressed_revokes == []
        event(f"suppresses {min(overridden.suppressed_revoke_count, 5)}")
        if trial.case.options["reconciliation_mode"] == "additive":
            assert overridden.suppressed_revoke_count == 0
            assert overridden.sql == without.sql
        with trial.by_hand() as connection:
            for statement in without.sql:
                connection.execute(statement)
            stricter = oracle.read(connection)
        with trial.by_hand() as connection:
            for statement in overridden.sql:
                connection.execute(statement)
            looser = oracle.read(connection)
            # The statements that are held back lead to the same end, where everything is the owner's. (Alone, a table's
            # REVOKE takes columns along that the plan without the override grants again.)
            if not trial.foreign:
                for item in overridden.suppressed_revokes:
                    connection.execute(item["sql"])
                found = _privileges(oracle.read(connection), looser.roles) ^ _privileges(stricter, looser.roles)
                assert not {held for held in found if held[0] != "column"}
        mildly, strictly = _privileges(looser, looser.roles), _privileges(stricter, looser.roles)
        assert not strictly - mildly, "the override took something away"
        kept = mildly - strictly
        assert {held[-3] for held in kept} <= carriers
        items = {
            (*place, item["role"], privilege, item["kind"] == "grant_option" or _option_only(item))
            for item in overridden.suppressed_revokes
            for place in _places(item)
            for privilege in item["privileges"]
        }
        held_back = {
            (place[0].replace("grant_option", "column" if place[-4] else "object"), *place[1:]) for place in items
        }
        assert {held for held in kept if not held[-1]} == {held for held in held_back if not held[-1]}
        # Without the privilege there is no grant option either.
        assert {held for held in held_back if held[-1]} == {
            held for held in kept if held[-1] and (*held[:-1], False) not in kept
        }
        if not trial.foreign:
            assert overridden.suppressed_revoke_count == len(held_back)
        assert (looser.roles, looser.memberships) == (stricter.roles, stricter.memberships)
        assert overridden.summary["grants"]["granted"] == without.summary["grants"]["granted"]
        assert overridden.summary["default_privileges"]["granted"] == without.summary["default_privileges"]["granted"]


def _option_only(item: dict[str, Any]) -> bool:
    return "REVOKE GRANT OPTION FOR" in item["sql"]


DEFAULT_KINDS = ("table", "sequence", "function", "type", "schema", "large_object")


def _privileges(catalog: oracle.Catalog, owners: Iterable[str]) -> set[tuple[Any, ...]]:
    """What everybody holds: place, role, privilege, and False for the privilege itself, True for the grant option.

    Whoever gave it. A global layer without a row is what is built in.
    """
    found: set[tuple[Any, ...]] = set()

    def add(place: tuple[Any, ...], entries: oracle.Entries) -> None:
        for entry in entries:
            found.add((*place, entry.grantee, entry.privilege, False))
            if entry.grantable:
                found.add((*place, entry.grantee, entry.privilege, True))

    for key, thing in catalog.objects.items():
        add(("object", *key, None), thing.entries)
    for (key, column), entries in catalog.columns.items():
        add(("column", *key, column), entries)
    for owner in owners:
        for kind in DEFAULT_KINDS[: None if catalog.version >= 18 else -1]:
            layer: tuple[str, str | None, str] = (owner, None, kind)
            if layer not in catalog.defaults:
                add(("default_privilege", *layer), oracle.builtin(kind, owner, catalog.version))
    for layer, entries in catalog.defaults.items():
        add(("default_privilege", *layer), entries)
    return found


@examples(2)
@given(data=st.data())
def test_what_several_grantors_gave(server: Cluster, runner: Runner, data: st.DataObject) -> None:
    with _trial(data, server, runner, modes=("authoritative", "adopt"), foreign=True) as trial:
        expected = trial.expect()
        event(f"refused: {sorted(expected.refused)}")
        event(f"foreign: {expected.foreign}")
        predicted = trial.run(check=True)
        result = trial.run()
        if not _as_expected(expected, result, trial):
            if result.error_code != "guard":
                # Found before the first statement.
                assert (predicted.error_code, predicted.problems) == (result.error_code, result.problems)
                assert result.problems
            return
        again = trial.run()
        assert again.sql == [], "a second run still had something to do"


@examples()
@given(data=st.data())
def test_an_executor_that_may_not_do_it_all_does_all_or_nothing(
    server: Cluster, runner: Runner, data: st.DataObject
) -> None:
    with _trial(data, server, runner, plain=True) as trial:
        expected = trial.expect()
        before = trial.db.snapshot()
        predicted = trial.run(check=True)
        result = trial.run()
        event(f"{result.error_code}, {'some' if result.changed else 'no'} change")
        if result.failed:
            # Whatever it may not do is known before the first statement.
            assert (predicted.error_code, predicted.problems) == (result.error_code, result.problems)
            assert result.problems
            codes = {"insufficient_privilege", "dependent_privileges"}
            assert result.error_code in codes
            assert trial.db.snapshot() == before
            return
        assert not expected.refused - {"guard", "dependent_privileges"}
        # Who is the grantor depends on what the executor may do. What everybody has does not.
        roles = trial.before.roles
        found = trial.catalog()
        assert _privileges(found, roles) == _privileges(expected.catalog, roles)
        again = trial.run()
        # It may have taken CONNECT from PUBLIC.
        if again.error_code != "connection_failed":
            assert not again.failed, again.text
            assert again.sql == [], "a second run still had something to do"


@examples()
@given(data=st.data())
def test_additive_never_lowers_access(server: Cluster, runner: Runner, data: st.DataObject) -> None:
    with _trial(data, server, runner, modes=("additive",)) as trial:
        predicted = trial.run(check=True)
        if predicted.failed:
            return
        with trial.by_hand() as connection:
            before = _access(connection)
            for statement in predicted.sql:
                connection.execute(statement)
                after = _access(connection)
                assert not before - after, f"{statement} takes {before - after}"
                before = after


_ACCESS = """
SELECT 'table', r.rolname, c.oid::regclass::text, p
  FROM pg_roles r, pg_class c, unnest(%(table)s::text[]) p
 WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND c.relnamespace >= 2200 AND c.relnamespace NOT IN (SELECT oid FROM
       pg_namespace WHERE nspname = 'information_schema') AND has_table_privilege(r.oid, c.oid, p)
UNION ALL SELECT 'column', r.rolname, c.oid::regclass::text || ' ' || a.attname, p
  FROM pg_roles r, pg_class c, pg_attribute a, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) p
 WHERE a.attrelid = c.oid AND a.attacl IS NOT NULL AND has_column_privilege(r.oid, c.oid, a.attnum, p)
UNION ALL SELECT 'sequence', r.rolname, c.oid::regclass::text, p
  FROM pg_roles r, pg_class c, unnest(ARRAY['USAGE', 'SELECT', 'UPDATE']) p
 WHERE c.relkind = 'S' AND has_sequence_privilege(r.oid, c.oid, p)
UNION ALL SELECT 'function', r.rolname, f.oid::regprocedure::text, 'EXECUTE'
  FROM pg_roles r, pg_proc f WHERE f.oid >= 16384 AND has_function_privilege(r.oid, f.oid, 'EXECUTE')
UNION ALL SELECT 'schema', r.rolname, n.nspname, p
  FROM pg_roles r, pg_namespace n, unnest(ARRAY['USAGE', 'CREATE']) p WHERE has_schema_privilege(r.oid, n.oid, p)
UNION ALL SELECT 'database', r.rolname, d.datname, p
  FROM pg_roles r, pg_database d, unnest(ARRAY['CONNECT', 'CREATE', 'TEMPORARY']) p
 WHERE has_database_privilege(r.oid, d.oid, p)
UNION ALL SELECT 'membership', m.rolname, g.rolname, p
  FROM pg_roles m, pg_roles g, unnest(%(member)s::text[]) p WHERE m.oid <> g.oid AND pg_has_role(m.oid, g.oid, p)
UNION ALL SELECT 'attribute', r.rolname, a.key, a.value::text FROM pg_roles r, jsonb_each(to_jsonb(r)) a WHERE r.oid <> 0
UNION ALL SELECT 'owner', pg_get_userbyid(nspowner), nspname, '' FROM pg_namespace
UNION ALL SELECT 'default', pg_get_userbyid(d.defaclrole), coalesce(n.nspname, '') || ' ' || d.defaclobjtype::text,
       e.grantee || ' ' || e.privilege_type
  FROM (SELECT defaclrole, defaclnamespace, defaclobjtype, defaclacl FROM pg_default_acl
        UNION ALL SELECT r.oid, 0, k::"char", acldefault(CASE k WHEN 'S' THEN 's' ELSE k END::"char", r.oid)
          FROM pg_roles r, unnest(ARRAY['r', 'S', 'f', 'n']) k
         WHERE NOT EXISTS (SELECT FROM pg_default_acl d WHERE d.defaclrole = r.oid AND d.defaclnamespace = 0
                                                        AND d.defaclobjtype::text = k)) d
       LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace, aclexplode(d.defaclacl) e
"""


def _access(connection: psycopg.Connection[Any]) -> set[tuple[Any, ...]]:
    """Everything that anybody may do, whether by an own privilege, PUBLIC's or a group's."""
    version = connection.info.server_version // 10000
    table = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]
    parameters = {
        "table": [*table, "MAINTAIN"] if version >= 17 else table,
        "member": ["MEMBER", "USAGE", "MEMBER WITH ADMIN OPTION", *(["SET"] if version >= 16 else [])],
    }
    return set(connection.execute(_ACCESS, parameters).fetchall())


@examples()
@given(data=st.data())
def test_the_diff_shows_every_change(server: Cluster, runner: Runner, data: st.DataObject) -> None:
    with _trial(data, server, runner) as trial:
        result = trial.run(check=True, diff=True)
        if result.failed:
            return
        if not result.sql and not result.suppressed_revokes:
            assert result.diff == []
            return
        (shown,) = result.diff
        sides = {side: yaml.safe_load(shown[side]) or {} for side in ("before", "after")}
        assert set(sides["before"]) | set(sides["after"]) <= SECTIONS
        if result.sql:
            assert sides["before"] != sides["after"]
        else:
            # The comment says what is kept.
            assert sides["before"] == sides["after"]
        kept = shown["after"].count("# kept: privilege_reconciliation: additive")
        assert bool(kept) == bool(result.suppressed_revokes)
        assert "# kept" not in shown["before"]
        with trial.by_hand() as connection:
            for statement in result.sql:
                connection.execute(statement)
            after = oracle.read(connection)
        _all_shown(trial.before, after, sides)


def _all_shown(before: oracle.Catalog, after: oracle.Catalog, sides: dict[str, Any]) -> None:
    """Whatever is different in the catalog has its line. Objects that are many are shown by their number only."""

    def lines(section: str, key: str) -> set[Any]:
        return {line[key] for side in sides.values() for line in side.get(section) or []}

    moved = {
        key
        for key in after.objects
        if key not in before.objects or before.objects[key].owner != after.objects[key].owner
    }
    changed = {name for name in set(before.roles) | set(after.roles) if before.roles.get(name) != after.roles.get(name)}
    assert changed == lines("roles", "name")
    edges = _different(before.edges(), after.edges())
    shown_edges = {
        (line["role"], member["name"])
        for side in sides.values()
        for line in side.get("memberships") or []
        for member in line["members"]
    }
    assert edges <= shown_edges
    owners = {*before.roles, *after.roles}
    for held in _privileges(before, owners) ^ _privileges(after, owners):
        *place, grantee, privilege, _option = held
        if place[0] == "default_privilege":
            _word, owner, schema, kind = place
            assert any(
                (line["owner"], line.get("schema"), line["on_type"], line["role"]) == (owner, schema, kind, grantee)
                and privilege in line["privileges"]
                for line in _lines(sides, "default_privileges")
            ), held
        # What a schema gets by being created or moved is not granted.
        elif tuple(place[1:4]) not in moved:
            assert any(
                line["role"] == grantee and privilege in line["privileges"] and _speaks_of(line, place)
                for line in _lines(sides, "grants")
            ), held


def _lines(sides: dict[str, Any], section: str) -> list[dict[str, Any]]:
    return [line for side in sides.values() for line in side.get(section) or []]


def _speaks_of(line: dict[str, Any], place: list[Any]) -> bool:
    _word, kind, schema, name, column = place
    text = line["object"]
    label = f"{schema}.{name}" if schema is not None else name
    if (column is not None) != ("columns" in line) or (column is not None and column not in line["columns"]):
        return False
    many = re.search(r"\* \(\d+\)$", text)
    return text.startswith(f"{kind.replace('_', ' ')} ") and bool(label.split("(")[0] in text or many)


def _different(one: dict[Any, Any], other: dict[Any, Any]) -> set[Any]:
    return {key for key in set(one) | set(other) if one.get(key) != other.get(key)}
