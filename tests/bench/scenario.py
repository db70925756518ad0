# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The scenarios of the benchmark: one end state, as a manifest and as the shortest SQL that somebody would write.

S schemas, each with T tables with identity columns, 10 views and 10 functions; a role for each of three profiles in each
schema, and 5 S logins that are members of three of these roles each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

VIEWS = 10
FUNCTIONS = 10
LOGINS_PER_SCHEMA = 5
MEMBERSHIPS_PER_LOGIN = 3

#: What each profile may do in its schema, by kind of object.
PROFILES: dict[str, dict[str, list[str]]] = {
    "reader": {"table": ["SELECT"], "view": ["SELECT"], "function": ["EXECUTE"]},
    "editor": {
        "table": ["SELECT", "INSERT", "UPDATE", "DELETE"],
        "view": ["SELECT"],
        "sequence": ["USAGE", "SELECT"],
        "function": ["EXECUTE"],
    },
    "app": {
        "table": ["SELECT", "INSERT", "UPDATE"],
        "view": ["SELECT"],
        "sequence": ["USAGE"],
        "function": ["EXECUTE"],
    },
}


@dataclass(frozen=True)
class Scenario:
    """A size: S schemas with T tables each."""

    schemas: int
    tables: int

    @property
    def name(self) -> str:
        return f"{self.schemas}x{self.tables}"

    @property
    def size(self) -> int:
        """How many tables there are."""
        return self.schemas * self.tables

    def objects_by_kind(self) -> dict[str, int]:
        """How many objects each schema has."""
        return {"table": self.tables, "view": VIEWS, "sequence": self.tables, "function": FUNCTIONS}

    @property
    def schema_names(self) -> list[str]:
        return [f"s{number:03}" for number in range(self.schemas)]

    @property
    def logins(self) -> list[str]:
        return [f"login{number:04}" for number in range(LOGINS_PER_SCHEMA * self.schemas)]

    @property
    def profile_roles(self) -> list[str]:
        return [f"{schema}-{profile}" for schema in self.schema_names for profile in PROFILES]

    @property
    def roles(self) -> list[str]:
        return [*self.profile_roles, *self.logins]

    def groups_of(self, login: int) -> list[str]:
        """The groups of a login: three that differ, spread over all."""
        roles, step = self.profile_roles, 1 + len(self.profile_roles) // MEMBERSHIPS_PER_LOGIN
        return sorted({roles[(login + step * number) % len(roles)] for number in range(MEMBERSHIPS_PER_LOGIN)})

    def objects(self) -> list[str]:
        """Statements that make the schemas and all that is in them: one statement and transaction for each schema."""
        return [
            f"""DO $$ BEGIN
            CREATE SCHEMA {schema};
            FOR i IN 1..{self.tables} LOOP
                EXECUTE format('CREATE TABLE {schema}.t%s (id int GENERATED ALWAYS AS IDENTITY, name text)', i);
            END LOOP;
            FOR i IN 1..{VIEWS} LOOP
                EXECUTE format('CREATE VIEW {schema}.v%s AS SELECT * FROM {schema}.t%s', i, 1 + i % {self.tables});
            END LOOP;
            FOR i IN 1..{FUNCTIONS} LOOP
                EXECUTE format('CREATE FUNCTION {schema}.f%s(a int, b text) RETURNS int LANGUAGE sql AS ''SELECT 1''', i);
            END LOOP;
            REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;
            END $$"""
            for schema in self.schema_names
        ]

    def manifest(self) -> dict[str, Any]:
        """The end state, as the module takes it."""
        return {
            "profiles": {
                name: {
                    "grants": [
                        {"privileges": ["USAGE"], "object": {"type": "schema"}},
                        *(
                            {"privileges": privileges, "object": {"type": kind, "name": "*"}}
                            for kind, privileges in rights.items()
                        ),
                    ]
                }
                for name, rights in PROFILES.items()
            },
            "schemas": [{"name": schema, "profiles": list(PROFILES)} for schema in self.schema_names],
            "roles": [
                {"name": login, "login": True, "member_of": [{"name": group} for group in self.groups_of(number)]}
                for number, login in enumerate(self.logins)
            ],
        }

    def shortest_sql(self) -> Iterator[str]:
        """The end state from nothing, with as few statements as a careful hand would write."""
        yield "BEGIN"
        yield from (f'CREATE ROLE "{role}"' for role in self.profile_roles)
        yield from (f'CREATE ROLE "{role}" LOGIN' for role in self.logins)
        for number, login in enumerate(self.logins):
            groups = ", ".join(f'"{group}"' for group in self.groups_of(number))
            yield f'GRANT {groups} TO "{login}"'
        for schema in self.schema_names:
            reader, editor, app = (f'"{schema}-{profile}"' for profile in PROFILES)
            tables = ", ".join(f"{schema}.t{number}" for number in range(1, self.tables + 1))
            yield f"GRANT USAGE ON SCHEMA {schema} TO {reader}, {editor}, {app}"
            yield f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {reader}, {editor}, {app}"
            yield f"GRANT INSERT, UPDATE ON TABLE {tables} TO {editor}, {app}"
            yield f"GRANT DELETE ON TABLE {tables} TO {editor}"
            yield f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {editor}, {app}"
            yield f"GRANT SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {editor}"
            yield f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {reader}, {editor}, {app}"
        yield "COMMIT"

    def _drifted(self) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
        """The tables, by schema and number, that lose a grant, and those that gain one."""
        every = [(schema, number) for number in range(1, self.tables + 1) for schema in self.schema_names]
        count = max(1, len(every) // 100)
        return every[:count], every[-count:]

    def drift(self) -> list[str]:
        """Statements after which 1 % of the tables, at least one, have lost a grant, and as many have gained one."""
        lost, gained = self._drifted()
        return [
            *(f'REVOKE SELECT ON {schema}.t{number} FROM "{schema}-reader"' for schema, number in lost),
            *(f'GRANT TRUNCATE ON {schema}.t{number} TO "{schema}-reader"' for schema, number in gained),
        ]

    def undo_drift(self) -> list[str]:
        """Statements that lead back from there."""
        lost, gained = self._drifted()
        return [
            *(f'GRANT SELECT ON {schema}.t{number} TO "{schema}-reader"' for schema, number in lost),
            *(f'REVOKE TRUNCATE ON {schema}.t{number} FROM "{schema}-reader"' for schema, number in gained),
        ]
