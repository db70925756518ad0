# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tasks with community.postgresql and the manifest of docs/from-community-postgresql.md lead to the same catalog.

Both playbooks are read off the page. The manifest has nothing to do after the tasks, and makes the same of the example's
database by itself.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
import yaml
from playbooks import INTEGRATION, Bench, bench, say

PAGE = (INTEGRATION.parents[1] / "docs" / "from-community-postgresql.md").read_text(encoding="utf-8")

ROLES = "'app_owner', 'old_batch', 'app', 'lead', 'reporting', 'editors'"

#: Roles, memberships, owners, every entry of every ACL, and default privileges: two columns of text.
CATALOG = f"""
SELECT 'role ' || rolname, concat_ws(' ', rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication,
    rolbypassrls, rolconnlimit, rolvaliduntil AT TIME ZONE 'UTC', shobj_description(oid, 'pg_authid'), rolconfig)
FROM pg_roles WHERE rolname IN ({ROLES})
UNION ALL SELECT 'member ' || roleid::regrole || ' ' || member::regrole, concat_ws(' ', grantor::regrole, admin_option)
FROM pg_auth_members WHERE member >= 16384
UNION ALL SELECT 'schema ' || nspname, nspowner::regrole::text FROM pg_namespace WHERE oid >= 16384
UNION ALL SELECT 'relation ' || oid::regclass, relowner::regrole::text FROM pg_class WHERE oid >= 16384 AND relkind IN ('r', 'v', 'S')
UNION ALL SELECT what, concat_ws(' ', entry.grantor::regrole, CASE entry.grantee WHEN 0 THEN 'PUBLIC' ELSE entry.grantee::regrole::text END,
    entry.privilege_type, entry.is_grantable)
FROM (
    SELECT 'acl of ' || oid::regclass AS what, relacl AS acl FROM pg_class WHERE oid >= 16384
    UNION ALL SELECT 'acl of schema ' || nspname, nspacl FROM pg_namespace WHERE oid >= 16384
    UNION ALL SELECT 'acl of ' || oid::regprocedure, proacl FROM pg_proc WHERE oid >= 16384
    UNION ALL SELECT 'acl of the database', datacl FROM pg_database WHERE datname = current_database()
    UNION ALL SELECT concat('default ', defaclrole::regrole, ' ', defaclnamespace::regnamespace, ' ', defaclobjtype), defaclacl
    FROM pg_default_acl
) AS acls, LATERAL aclexplode(acl) AS entry
ORDER BY 1, 2
"""


def block(language: str, beginning: str = "") -> str:
    found = re.search(rf"^```{language}\n({re.escape(beginning)}.*?)^```", PAGE, re.M | re.S)
    assert found, f"the page has no block {beginning}"
    return found.group(1)


def sql(made: Bench, *statements: str) -> list[tuple[Any, ...]]:
    """Runs statements in the example's database."""
    address = {"host": made.server.socket_directory, "port": made.server.port}
    with psycopg.connect(user="postgres", dbname="shop", autocommit=True, **address) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def begin(made: Bench) -> None:
    """The example's database as the page makes it."""
    made.sql(
        "DROP DATABASE IF EXISTS shop", f"DROP ROLE IF EXISTS {ROLES.replace(chr(39), '')}", "CREATE DATABASE shop"
    )
    sql(made, block("sql"))


def written(made: Bench, name: str, group: str) -> Any:
    """A playbook of the page, with this server's address in the place of the page's."""
    plays = yaml.safe_load(block("yaml", f"# {name}"))
    address = {"login_host": made.server.socket_directory, "login_port": made.server.port}
    defaults = plays[0]["module_defaults"]
    (options,) = defaults.values()
    assert options == {"login_host": "db.example.com", "login_user": "postgres", "login_db": "shop"}
    plays[0]["module_defaults"] = {f"group/{group}": {**options, **address}}
    (task,) = plays[0]["tasks"][-1:]
    task["register"] = "done"
    keep = {"content": "{{ done | to_json }}", "dest": str(made.path("results.json")), "mode": "0600"}
    plays[0]["tasks"].append({"name": "Keep the result", "ansible.builtin.copy": keep, "check_mode": False})
    return made.write(name, yaml.safe_dump(plays, sort_keys=False))


def main() -> None:
    with bench() as made:
        group = re.search(
            r"group/(\S+):\n", block("yaml", "- name: The same server for the modules of both collections")
        )
        assert group, "the page does not tell the name of the group for both"
        # The group that serves both collections, for the one and for the other.
        before, after = (written(made, f"{name}.yml", group.group(1)) for name in ("before", "after"))
        begin(made)
        blank = sql(made, CATALOG)
        made.play(before)
        tasks = sql(made, CATALOG)
        assert len(set(tasks) ^ set(blank)) > 40, "the tasks did nearly nothing"
        nothing = made.play(after, "--check").results
        assert nothing["sql"] == [] and nothing["changed"] is False, nothing["sql"]
        assert nothing["withheld"] == [], nothing["withheld"]

        begin(made)
        assert sql(made, CATALOG) == blank
        first = made.play(after).results
        assert first["changed"] is True
        manifest = sql(made, CATALOG)
        assert manifest == tasks, sorted(set(manifest) ^ set(tasks))
        again = made.play(after).results
        assert again["changed"] is False and again["sql"] == []
        assert sql(made, CATALOG) == manifest
        say(f"{len(tasks)} rows of the catalog are the same")


if __name__ == "__main__":
    main()
