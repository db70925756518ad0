# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ldap2pg: roles and grants from YAML rules; it needs no directory where the rules name the roles themselves.

It has privileges of its own for all objects of a kind in a schema. For what only tables get, but not the views beside
them, its documentation has custom privileges: a query that finds who has it where, and statements that grant and
revoke it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from scenario import PROFILES, Scenario

from rivals.fetching import Unavailable, environment, version_of
from rivals.protocol import Command, Target

_FILE = "ldap2pg.yml"

#: The last release in Python. It imports pkg_resources, which newer setuptools do not have.
_PACKAGES = ["ldap2pg == 5.9", "psycopg2-binary", "setuptools < 81"]

#: What it calls privileges of the scenario. The others are custom ones.
_NAMES = {
    ("table", "SELECT"): "__select_on_all_tables__",
    ("sequence", "USAGE"): "__usage_on_all_sequences__",
    ("sequence", "SELECT"): "__select_on_all_sequences__",
    ("function", "EXECUTE"): "__execute_on_all_functions__",
}


def custom(privilege: str) -> dict[str, str]:
    """A privilege on all tables of a schema, but not on its views: one statement for all of them.

    Each stands alone: what it found for another one that shares a privilege would be revoked.
    """

    def every_table(verb: str, preposition: str) -> str:
        return (
            "DO $do$ BEGIN EXECUTE (\n"
            f"  SELECT '{verb} {privilege} ON TABLE ' || string_agg(oid::regclass::text, ', ')"
            f" || ' {preposition} {{role}}'\n"
            "  FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = '{schema}'::regnamespace\n"
            "); END $do$"
        )

    inspect = f"""
    WITH relations AS (
      SELECT nspname, relowner, relacl, count(*) OVER (PARTITION BY nspname) AS tables
      FROM pg_class JOIN pg_namespace AS nsp ON nsp.oid = relnamespace
      WHERE relkind IN ('r', 'p') AND nspname <> 'information_schema' AND nspname !~ '^pg_'
    )
    SELECT nspname, rolname, count(*) = min(tables) AS "full"
    FROM relations CROSS JOIN aclexplode(relacl) AS entry JOIN pg_roles AS role ON role.oid = grantee
    WHERE privilege_type = '{privilege}' AND grantee <> relowner
    GROUP BY nspname, rolname"""
    return {
        "type": "nspacl",
        "inspect": inspect,
        "grant": every_table("GRANT", "TO"),
        "revoke": every_table("REVOKE", "FROM"),
    }


def configuration(scenario: Scenario, database: str) -> dict[str, Any]:
    """The end state: an alias with the privileges of each profile, a rule for each role."""
    privileges: dict[str, Any] = {}
    for profile, rights in PROFILES.items():
        names = ["__usage_on_schemas__"]
        for kind, kind_rights in rights.items():
            for right in kind_rights:
                # All tables of a schema include its views.
                if kind == "view" and right in rights["table"]:
                    continue
                name = _NAMES.get((kind, right))
                if name is None:
                    name = f"{right.lower()}_on_plain_{kind}s"
                    privileges[name] = custom(right)
                names.append(name)
        privileges[profile] = names
    return {
        "version": 5,
        "postgres": {
            "databases_query": [database],
            "schemas_query": scenario.schema_names,
        },
        "privileges": privileges,
        "sync_map": [
            {"roles": [{"names": scenario.profile_roles, "options": "NOLOGIN"}]},
            {
                "roles": [
                    {"name": login, "options": "LOGIN", "parents": scenario.groups_of(number)}
                    for number, login in enumerate(scenario.logins)
                ]
            },
            {
                "grant": [
                    {"privilege": profile, "database": database, "schema": schema, "role": f"{schema}-{profile}"}
                    for schema in scenario.schema_names
                    for profile in PROFILES
                ]
            },
        ],
    }


class Ldap2Pg:
    name = "ldap2pg"
    note = "The last release in Python; the newer one in Go cannot be had from the module proxy."

    def __init__(self) -> None:
        self.why = ""
        self._programs = Path()

    def install(self, folder: Path) -> str | None:
        try:
            self._programs = environment(folder / "ldap2pg", _PACKAGES)
            return version_of(self._programs, "ldap2pg")
        except Unavailable as failure:
            self.why = f"{failure}. Its library is compiled with OpenLDAP's headers (libldap-dev and libsasl2-dev)."
            return None

    def write(self, scenario: Scenario, target: Target) -> None:
        text = yaml.safe_dump(configuration(scenario, target.database), sort_keys=False)
        (target.work / _FILE).write_text(text)

    def idle(self, scenario: Scenario, target: Target) -> Command:
        return self.apply(scenario, target)

    def plan(self, scenario: Scenario, target: Target) -> Command:
        return self._command(target, "--dry")

    def apply(self, scenario: Scenario, target: Target) -> Command:
        return self._command(target, "--real")

    def _command(self, target: Target, mode: str) -> Command:
        variables = {**target.variables, "HOME": str(target.work), "PYTHONWARNINGS": "ignore"}
        return Command([str(self._programs / "ldap2pg"), "--config", _FILE, "--no-color", mode], variables, target.work)
