# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A random walk: one database, one manifest, and step by step somebody edits the manifest or the database by hand.

After each step two runs: the catalog is what the oracle says, and the second run has nothing to do. What is wrong after
five hundred steps is often not wrong after one. ``PROPERTIES=long`` walks 500 steps, ``WALK_STEPS`` as many as it says,
``WALK_SEED`` another way.
"""

from __future__ import annotations

import os
import random
from typing import Any

import oracle
import psycopg
import pytest
from harness import Cluster, Database, Runner
from strategies import COLUMN_PRIVILEGES, KEYWORD, PRIVILEGES, PUBLIC, RELATIONS, who

STEPS = int(os.environ.get("WALK_STEPS", "500" if os.environ.get("PROPERTIES") == "long" else "25"))
SEED = int(os.environ.get("WALK_SEED", "1"))

ROLES = ["o1", "o2", "d", "e", "f", "App"]
#: Roles that the manifest never declares.
STRANGERS = ["stranger", "ign_x"]
SCHEMAS = ["s1", "s2"]
OUTSIDE = ["language", "foreign_data_wrapper", "foreign_server", "tablespace", "large_object", "parameter"]
NAMES = {
    "language": "plpgsql",
    "foreign_data_wrapper": "w",
    "foreign_server": "w",
    "tablespace": "pg_default",
    "large_object": "4711",
    "parameter": "work_mem",
}
DEFAULTS = {
    "table": "TABLES",
    "sequence": "SEQUENCES",
    "function": "ROUTINES",
    "type": "TYPES",
    "schema": "SCHEMAS",
    "large_object": "LARGE OBJECTS",
}
IN_SCHEMA = {
    "table": ("t{}", "CREATE TABLE {} (a int, b text)"),
    "view": ("v{}", "CREATE VIEW {} AS SELECT 1 AS a, 'x'::text AS b"),
    "materialized_view": ("m{}", "CREATE MATERIALIZED VIEW {} AS SELECT 1 AS a, 'x'::text AS b"),
    "sequence": ("q{}", "CREATE SEQUENCE {}"),
    "function": ("f{}(integer)", "CREATE FUNCTION {} RETURNS int LANGUAGE sql AS 'SELECT 1'"),
    "type": ("e{}", "CREATE TYPE {} AS ENUM ('x')"),
}


class Walk:
    """The database, the manifest as it is now, and the way so far."""

    def __init__(self, db: Database, seed: int) -> None:
        self.db = db
        self.random = random.Random(seed)  # noqa: S311
        self.log: list[str] = []
        self.roles: dict[str, dict[str, Any]] = {name: {"name": name} for name in ROLES}
        self.owners: dict[str, str] = {"s1": "o1", "s2": "o2"}
        self.grants: list[dict[str, Any]] = []
        self.defaults: list[dict[str, Any]] = []
        self.memberships: set[tuple[str, str]] = set()
        self.options: dict[str, Any] = {"undeclared_grantees": "revoke"}
        self.objects: list[tuple[str, str, str]] = []
        self.ignore = ["ign_*"]
        self.number = 0
        self.by_hand(
            "CREATE FOREIGN DATA WRAPPER w", "CREATE SERVER w FOREIGN DATA WRAPPER w", "SELECT lo_create(4711)"
        )
        self.by_hand(*(f"CREATE ROLE {who(name)}" for name in ROLES + STRANGERS))
        self.by_hand(*(f"CREATE SCHEMA {name} AUTHORIZATION {owner}" for name, owner in self.owners.items()))
        for kind in IN_SCHEMA:
            self.create(kind)

    # ---- what a step may do

    def by_hand(self, *statements: str) -> None:
        """What the server refuses is left out."""
        for statement in statements:
            try:
                self.db.sql(statement)
                self.log.append(f"{statement};")
            except psycopg.Error:
                self.db.sql("RESET ROLE")

    def create(self, kind: str) -> None:
        self.number += 1
        name, sql = IN_SCHEMA[kind]
        schema = self.random.choice(SCHEMAS)
        name = name.format(self.number)
        owner = self.random.choice(["postgres", "o1", "o2", "d"])
        self.by_hand(f"GRANT CREATE, USAGE ON SCHEMA {schema} TO {owner}")
        self.by_hand(f"SET ROLE {owner}; {sql.format(f'{schema}.{name}')}; RESET ROLE")
        self.objects.append((kind, schema, name))

    def somebody(self, *more: str) -> str:
        return self.random.choice([*ROLES, *ROLES, *more])

    def place(self) -> tuple[str, str | None, str]:
        """An object, most often one of few, so that things happen to it again and again."""
        chance = self.random.random()
        if chance < 0.7:
            return self.random.choice(self.objects[-8:])
        if chance < 0.8:
            return "schema", None, self.random.choice(SCHEMAS)
        if chance < 0.85:
            return "database", None, self.db.name
        kind = self.random.choice(OUTSIDE if self.db.version >= 15 else OUTSIDE[:-1])
        return kind, None, NAMES[kind]

    def words(self, kind: str, column: bool) -> list[str]:
        every = COLUMN_PRIVILEGES if column else PRIVILEGES[kind]
        return self.random.sample(every, self.random.randint(1, min(2, len(every))))

    def drift(self) -> None:
        """Somebody grants or revokes something by hand, as the owner or with a grant option."""
        kind, schema, name = self.place()
        columns = self.random.choice(["", " (a)", " (a, b)"]) if kind in RELATIONS else ""
        words = ", ".join(word + columns for word in self.words(kind, bool(columns)))
        place = f"{KEYWORD[kind]} {name if schema is None else f'{schema}.{name}'}"
        grantee = self.somebody(*STRANGERS, PUBLIC)
        if self.random.random() < 0.3:
            option = self.random.choice(["", "", "GRANT OPTION FOR "])
            cascade = self.random.choice(["", " CASCADE"])
            self.by_hand(f"REVOKE {option}{words} ON {place} FROM {who(grantee)}{cascade}")
            return
        option = "" if grantee == PUBLIC or self.random.random() < 0.4 else " WITH GRANT OPTION"
        statement = f"GRANT {words} ON {place} TO {who(grantee)}{option}"
        self.by_hand(statement)
        # And on it goes: the grantee gives it to the next one.
        while option and self.random.random() < 0.6:
            grantor, grantee = grantee, self.somebody(*STRANGERS, PUBLIC)
            option = "" if grantee == PUBLIC or self.random.random() < 0.4 else " WITH GRANT OPTION"
            if schema is not None:
                self.by_hand(f"GRANT USAGE ON SCHEMA {schema} TO {who(grantor)}")
            self.by_hand(f"SET ROLE {who(grantor)}; GRANT {words} ON {place} TO {who(grantee)}{option}; RESET ROLE")

    def drift_defaults(self) -> None:
        kind = self.random.choice(list(DEFAULTS)[: None if self.db.version >= 18 else -1])
        schema = "" if kind in ("schema", "large_object") or self.random.random() < 0.4 else " IN SCHEMA s1"
        words = ", ".join(self.words(kind, False))
        head = f"ALTER DEFAULT PRIVILEGES FOR ROLE {self.random.choice(['o1', 'o2', 'd'])}{schema}"
        grantee = self.somebody("stranger", PUBLIC)
        if self.random.random() < 0.3:
            self.by_hand(f"{head} REVOKE {words} ON {DEFAULTS[kind]} FROM {who(grantee)}")
        else:
            option = self.random.choice(["", " WITH GRANT OPTION"]) if grantee != PUBLIC else ""
            self.by_hand(f"{head} GRANT {words} ON {DEFAULTS[kind]} TO {who(grantee)}{option}")

    def drift_otherwise(self) -> None:
        kind, schema, name = self.random.choice(self.objects[-8:])
        full = f"{schema}.{name}"
        role = self.somebody()
        word = "ROUTINE" if kind == "function" else kind.replace("_", " ").upper()
        self.by_hand(
            self.random.choice(
                [
                    f"ALTER {word} {full} OWNER TO {who(role)}",
                    f"ALTER {word} {full} OWNER TO postgres",
                    f"REVOKE ALL ON {KEYWORD[kind]} {full} FROM PUBLIC, {who(role)}",
                    f"GRANT {who(role)} TO {who(self.somebody(*STRANGERS))}",
                    f"ALTER ROLE {who(role)} CREATEDB NOINHERIT",
                    f"ALTER SCHEMA {self.random.choice(SCHEMAS)} OWNER TO {who(role)}",
                    f"REVOKE ALL ON SCHEMA {self.random.choice(SCHEMAS)} FROM PUBLIC, {who(role)} CASCADE",
                ]
            )
        )

    def edit_grants(self) -> None:
        """A rule comes, or one or two go."""
        if self.grants and self.random.random() < 0.4:
            for _number in range(self.random.randint(1, 2)):
                if self.grants:
                    gone = self.grants.pop(self.random.randrange(len(self.grants)))
                    self.log.append(f"# without {gone}")
            return
        kind, schema, name = self.place()
        if schema is not None and self.random.random() < 0.3:
            name = "*"
        target: dict[str, Any] = {"type": kind, "name": name}
        if schema is not None:
            target["schema"] = schema
        rule: dict[str, Any] = {"role": self.somebody(PUBLIC, "pg_monitor"), "object": target}
        if kind in RELATIONS and self.random.random() < 0.5:
            rule["columns"] = self.random.choice([["a"], ["b"], ["a", "b"]])
        rule["privileges"] = self.words(kind, "columns" in rule)
        if self.random.random() < 0.2:
            rule["ensure"] = "absent"
        elif rule["role"] != PUBLIC and self.random.random() < 0.4:
            rule["with_grant_option"] = True
        self._say(self.grants, rule, ("object", "columns"))

    def edit_defaults(self) -> None:
        if self.defaults and self.random.random() < 0.4:
            self.log.append(f"# without {self.defaults.pop(self.random.randrange(len(self.defaults)))}")
            return
        kind = self.random.choice(list(DEFAULTS)[: None if self.db.version >= 18 else -1])
        stanza: dict[str, Any] = {"owner": self.random.choice(["o1", "o2", "d"])}
        if kind not in ("schema", "large_object") and self.random.random() < 0.6:
            stanza["schema"] = self.random.choice(SCHEMAS)
        grant: dict[str, Any] = {"role": self.somebody(PUBLIC), "on_type": kind, "privileges": self.words(kind, False)}
        if self.random.random() < 0.2 and not (grant["role"] == PUBLIC and "schema" in stanza):
            grant["ensure"] = "absent"
        elif grant["role"] != PUBLIC and self.random.random() < 0.4:
            grant["with_grant_option"] = True
        self._say(self.defaults, {**stanza, "grant": [grant]}, ("owner", "schema"))

    def _say(self, rules: list[dict[str, Any]], rule: dict[str, Any], place: tuple[str, ...]) -> None:
        """Add a rule. Those about the same place and role that say the opposite go."""

        def about(one: dict[str, Any]) -> tuple[Any, ...]:
            inner = one["grant"][0] if "grant" in one else one
            kept = tuple(one.get(key) for key in place if key != "columns")
            return (*kept, inner["role"], inner.get("on_type"))

        def ensure(one: dict[str, Any]) -> Any:
            return (one["grant"][0] if "grant" in one else one).get("ensure")

        rules[:] = [one for one in rules if about(one) != about(rule) or ensure(one) == ensure(rule)]
        rules.append(rule)
        self.log.append(f"# with {rule}")

    def edit_otherwise(self) -> None:
        what = self.random.choice(["override", "owner", "member", "grantees", "mode", "ignore"])
        if what == "override":
            role = self.roles[self.random.choice(["e", "f", "App"])]
            if role.pop("privilege_reconciliation", None) is None:
                role["privilege_reconciliation"] = "additive"
        elif what == "owner":
            self.owners[self.random.choice(SCHEMAS)] = self.random.choice(["o1", "o2", "d"])
        elif what == "member":
            # In one direction only, so that there is never a circle.
            group, member = sorted(self.random.sample(range(len(ROLES)), 2))
            self.memberships ^= {(ROLES[group], ROLES[member])}
        elif what == "ignore":
            self.ignore = self.random.choice([[], ["ign_*"]])
        elif what == "grantees":
            self.options["undeclared_grantees"] = self.random.choice(["revoke", "revoke", "keep"])
        else:
            self.options["reconciliation_mode"] = self.random.choice(["authoritative"] * 4 + ["adopt", "additive"])
        self.log.append(f"# now {self.roles} {self.owners} {self.memberships} {self.ignore} {self.options}")

    def step(self) -> None:
        moves = [self.drift] * 6 + [self.edit_grants] * 5 + [self.edit_defaults, self.drift_defaults] * 2
        moves += [self.drift_otherwise, self.edit_otherwise, lambda: self.create(self.random.choice(list(IN_SCHEMA)))]
        for _number in range(self.random.randint(1, 3)):
            self.random.choice(moves)()

    # ---- and what has to be true after it

    def manifest(self) -> dict[str, Any]:
        groups: dict[str, list[dict[str, Any]]] = {}
        for group, member in sorted(self.memberships):
            groups.setdefault(group, []).append({"name": member})
        return {
            "roles": list(self.roles.values()),
            "schemas": [{"name": name, "owner": owner} for name, owner in self.owners.items()],
            "scope": {"ignore_roles": self.ignore},
            "grants": self.grants,
            "default_privileges": self.defaults,
            "memberships": [{"role": group, "members": members} for group, members in groups.items()],
        }

    def run_twice(self) -> bool:
        """Whether there was something to do that could be done."""
        manifest = self.manifest()
        before = oracle.read(self.db.connection)
        spellings = {(schema, name): name for kind, schema, name in self.objects if kind == "function"}
        expected = oracle.expect(manifest, self.options, before, spellings)
        result = self.db.reconcile(manifest, **self.options)
        self.log += [f"-- {result.error_code or 'ran'} {result.text}", *(f"--   {sql}" for sql in result.sql)]
        after = oracle.read(self.db.connection)
        if expected.refused or (expected.may_refuse and result.failed):
            assert result.failed, f"it should have been refused: {expected.refused}"
            assert result.error_code in {*expected.refused, "dependent_privileges"} or "circle" in result.msg, (
                result.text
            )
            assert after == before, "a failed run left something behind"
            # What hangs on an ignored role can only be solved by naming it.
            self.ignore = []
            return False
        assert not result.failed, result.text
        wrong = oracle.differences(expected, after, before)
        assert not wrong, "\n".join(["not as the oracle says", *wrong])
        again = self.db.reconcile(manifest, **self.options)
        assert not again.failed, again.text
        assert again.sql == [], "a second run still had something to do"
        assert oracle.read(self.db.connection) == after
        return bool(result.changed)


def test_a_random_walk(server: Cluster, runner: Runner) -> None:
    db = Database(server, runner)
    try:
        walk = Walk(db, SEED)
        changed = 0
        for number in range(STEPS):
            walk.log.append(f"-- step {number}")
            walk.step()
            try:
                changed += walk.run_twice()
            except AssertionError as error:
                tail = "\n".join(walk.log[-80:])
                pytest.fail(f"step {number} of seed {SEED}: {error}\n{walk.manifest()}\n{walk.options}\n{tail}")
        assert changed > STEPS / 4, "too many steps without anything to do"
    finally:
        db.close()
