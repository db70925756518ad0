# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collection's playbooks by name, with a file of variables and without a playbook or an inventory of one's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml
from playbooks import INTEGRATION, Bench, Run, bench, made_up

NAME = "pg_access.reconcile"


def main() -> None:
    with bench() as made:
        made.sql("CREATE DATABASE shop")
        made.sql(
            "CREATE ROLE pgloader_pg LOGIN",
            "CREATE SCHEMA inventory",
            "CREATE TABLE inventory.items (id int)",
            "GRANT SELECT, DELETE ON inventory.items TO pgloader_pg",
            database="shop",
        )
        secret = made_up("app")
        inventory = made.environment.pop("ANSIBLE_INVENTORY")
        made.environment["PWD"] = str(made.folder)
        made.environment["RECONCILE_TEST_PASSWORD"] = secret
        made.environment["PG_ROLE_RECONCILE_FINGERPRINT_KEY"] = key = made_up("key")
        quickstart(made)
        access(made)
        planned = play(made, "check")
        assert changes(planned) == 1 and "would change with" in planned.output and "+++ after: shop" in planned.output
        assert made.sql("SELECT count(*) FROM pg_roles WHERE rolname = 'app'") == [(0,)]
        asked = play(
            made,
            "check",
            "-e",
            '{"reconcile_explain": ["pgloader_pg"], "reconcile_lock_timeout": "", "reconcile_hosts": ""}',
        )
        assert "pgloader_pg loses DELETE on table inventory.items: surplus" in asked.output, asked.output
        done = play(made, "apply")
        assert changes(done) == 1 and "gain: app: " in done.output and "lose: pgloader_pg: 1 privilege" in done.output
        assert made.logs_in("app", secret)
        made.no_secret(done, [secret, key], "shop")
        assert changes(play(made, "apply")) == 0
        assert changes(play(made, "check")) == 0
        missing(made)
        export(made)
        on_hosts(made, inventory)


def quickstart(made: Bench) -> None:
    """The file of variables that the page shows."""
    page = (INTEGRATION.parents[1] / "docs" / "quickstart.md").read_text(encoding="utf-8")
    block = re.search(r"^```yaml\n(# access\.yml\n.*?)^```", page, re.M | re.S)
    assert block, "the page no longer shows the file"
    made.sql("CREATE ROLE access_admin SUPERUSER LOGIN")
    made.environment["PGPORT"] = str(made.server.port)
    made.write("access.yml", block[1].replace("db.example.com", str(made.server.socket_directory)))
    assert changes(play(made, "check")) == 1
    assert changes(play(made, "apply")) == 1
    assert changes(play(made, "apply")) == 0
    made.sql("DROP OWNED BY app", "GRANT SELECT, DELETE ON inventory.items TO pgloader_pg", database="shop")
    made.sql("DROP ROLE app")


def access(made: Bench) -> None:
    address = {"login_host": made.server.socket_directory, "login_port": made.server.port, "login_user": "postgres"}
    roles = [{"name": "app", "login": True}, {"name": "app_owner"}]
    wanted = [
        {
            "role": "pgloader_pg",
            "privileges": ["SELECT"],
            "object": {"type": "table", "schema": "inventory", "name": "*"},
        }
    ]
    variables = {
        "reconcile_connection": address,
        "reconcile_database": "shop",
        "reconcile_passwords": {"app": "{{ lookup('ansible.builtin.env', 'RECONCILE_TEST_PASSWORD') }}"},
        "reconcile_manifest": {
            "roles": [*roles, {"name": "pgloader_pg", "external": True}],
            "schemas": [{"name": "inventory"}],
            "grants": wanted,
        },
    }
    made.write("access.yml", yaml.safe_dump(variables))


def play(made: Bench, name: str, *words: str, check: bool = True) -> Run:
    return made.play(Path(f"{NAME}.{name}"), "-e", f"@{made.path('access.yml')}", *words, check=check)


def changes(run: Run) -> int:
    found = re.search(r"^localhost +: ok=\d+ +changed=(\d+) ", run.output, re.M)
    assert found, run.output
    return int(found[1])


def missing(made: Bench) -> None:
    """A manifest that is not there is one error, which names it; a list of failed tasks shows the first."""
    file = made.path("nowhere.yml")
    given = json.dumps({"reconcile_manifest": {}, "reconcile_passwords": {}, "reconcile_manifest_files": [str(file)]})
    said = play(made, "check", "-e", given, check=False)
    assert said.status != 0 and f"{file} was not found on the controller" in said.output, said.output
    assert "Unknown error" not in said.output and "censored" not in said.output, said.output


def export(made: Bench) -> None:
    """What is exported is where the user stands, and applying it changes nothing."""
    target = made.path("exported-shop.yml")
    # Whoever names the database, and with empty answers of a survey.
    named = {
        "reconcile_database": "",
        "reconcile_export_dest": "",
        "reconcile_export_schemas": "",
        "reconcile_hosts": "",
    }
    made.environment["PGDATABASE"] = "shop"
    assert changes(play(made, "export", "-e", json.dumps(named))) == 1 and target.is_file()
    del made.environment["PGDATABASE"]
    target.unlink()
    assert changes(play(made, "export", "--check")) == 1 and not target.exists()
    # One name that no manifest can hold, and a schema stays out as a whole: the playbook says which.
    made.sql(
        "CREATE SCHEMA legacy",
        'CREATE FUNCTION legacy."f(x)"() RETURNS int LANGUAGE sql AS $$SELECT 1$$',
        database="shop",
    )
    made.sql('GRANT EXECUTE ON FUNCTION legacy."f(x)"() TO app', database="shop")
    said = play(made, "export")
    assert changes(said) == 1 and "name: schema legacy" in said.output, said.output
    # ansible-core 2.16 breaks the lines of warnings.
    assert "schema legacy is not in the manifest: " in " ".join(said.output.split()), said.output
    assert target.stat().st_mode & 0o777 == 0o600
    manifest = yaml.safe_load(target.read_text(encoding="utf-8"))
    assert "app" in [role["name"] for role in manifest["roles"]], manifest
    assert changes(play(made, "export")) == 0
    files = json.dumps({"reconcile_manifest": {}, "reconcile_passwords": {}, "reconcile_manifest_files": [str(target)]})
    assert changes(play(made, "apply", "-e", files)) == 0
    elsewhere = made.path("only/inventory.yml")
    given = {"roles": ["pgloader_*"], "suggest_profiles": True, "suggest_min_schemas": 3, "dest": str(elsewhere)}
    some = json.dumps({f"reconcile_export_{name}": value for name, value in given.items()})
    assert changes(play(made, "export", "-e", some)) == 1
    assert "pgloader_pg" in elsewhere.read_text(encoding="utf-8")


def on_hosts(made: Bench, inventory: str) -> None:
    """With hosts of an inventory: those, and as the inventory says how."""
    made.environment["ANSIBLE_INVENTORY"] = inventory
    assert changes(play(made, "apply", "-e", "reconcile_hosts=localhost")) == 0
    nowhere = play(made, "export", "-e", "reconcile_hosts=localhost", check=False)
    assert nowhere.status != 0 and "reconcile_export_dest must say where" in nowhere.output


if __name__ == "__main__":
    main()
