# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resource files of the operator postgresql.aboutbits.it on a server: what the catalog holds afterwards, and that they
mean what a manifest of our own means.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness import Database

OPTIONS = {"fingerprint_key": "a key that only this test knows", "passwords": {"app": "correct horse battery"}}

SETUP = """
CREATE ROLE by_hand;
CREATE ROLE app LOGIN CREATEDB CONNECTION LIMIT 3;
COMMENT ON ROLE app IS 'made by hand';
GRANT by_hand TO app;
CREATE SCHEMA sales;
CREATE TABLE sales.orders (id int GENERATED ALWAYS AS IDENTITY, total numeric);
CREATE TABLE sales."Old Orders" (id int);
CREATE VIEW sales.open_orders AS SELECT id FROM sales.orders;
CREATE MATERIALIZED VIEW sales.totals AS SELECT 1 AS id;
CREATE SEQUENCE sales.numbers;
GRANT DELETE ON sales.orders TO app;
"""

RESOURCES = """
apiVersion: v1
kind: Secret
metadata:
  name: app-secret
type: kubernetes.io/basic-auth
stringData:
  password: it is not this one
---
apiVersion: postgresql.aboutbits.it/v1
kind: ClusterConnection
metadata: {{name: main}}
spec:
  host: db.example.com
  port: 5432
  database: postgres
  adminSecretRef: {{name: admin}}
---
apiVersion: postgresql.aboutbits.it/v1
kind: Role
metadata: {{name: app-owner}}
spec:
  clusterRef: {{name: main}}
  name: app_owner
  comment: Owns what the application makes
---
apiVersion: postgresql.aboutbits.it/v1
kind: Role
metadata: {{name: readers}}
spec:
  clusterRef: {{name: main}}
  name: readers
  flags:
    role: [app]
---
apiVersion: postgresql.aboutbits.it/v1
kind: Role
metadata: {{name: app}}
spec:
  clusterRef: {{name: main}}
  name: app
  passwordSecretRef: {{name: app-secret}}
  flags:
    connectionLimit: 20
    validUntil: "2099-12-31T23:59:59Z"
    inRole: [readers]
---
apiVersion: postgresql.aboutbits.it/v1
kind: Schema
metadata: {{name: sales}}
spec:
  clusterRef: {{name: main}}
  database: {database}
  name: sales
  owner: app_owner
  reclaimPolicy: Retain
---
apiVersion: postgresql.aboutbits.it/v1
kind: Schema
metadata: {{name: archive}}
spec:
  clusterRef: {{name: main}}
  database: {database}
  name: archive
  owner: app_owner
---
apiVersion: postgresql.aboutbits.it/v1
kind: Grant
metadata: {{name: readers-usage}}
spec:
  clusterRef: {{name: main}}
  database: {database}
  role: readers
  objectType: schema
  schema: sales
  privileges: [usage]
---
apiVersion: postgresql.aboutbits.it/v1
kind: Grant
metadata: {{name: readers-select}}
spec:
  clusterRef: {{name: main}}
  database: {database}
  role: readers
  objectType: table
  schema: sales
  objects: []
  privileges: [select]
---
apiVersion: postgresql.aboutbits.it/v1
kind: Grant
metadata: {{name: app-writes}}
spec:
  clusterRef: {{name: main}}
  database: {database}
  role: app
  objectType: table
  schema: sales
  objects: [orders, "Old Orders", open_orders, totals]
  privileges: [insert, update]
---
apiVersion: postgresql.aboutbits.it/v1
kind: Grant
metadata: {{name: app-numbers}}
spec:
  clusterRef: {{name: main}}
  database: {database}
  role: app
  objectType: sequence
  schema: sales
  objects: [numbers]
  privileges: [usage]
---
apiVersion: postgresql.aboutbits.it/v1
kind: Grant
metadata: {{name: app-connect}}
spec:
  clusterRef: {{name: main}}
  database: {database}
  role: app
  objectType: database
  privileges: [connect, temporary]
---
apiVersion: postgresql.aboutbits.it/v1
kind: DefaultPrivilege
metadata: {{name: readers-select}}
spec:
  clusterRef: {{name: main}}
  database: {database}
  role: readers
  owner: app_owner
  objectType: table
  schema: sales
  privileges: [select]
---
apiVersion: postgresql.aboutbits.it/v1
kind: DefaultPrivilege
metadata: {{name: readers-schemas}}
spec:
  clusterRef: {{name: main}}
  database: {database}
  role: readers
  owner: app_owner
  objectType: schema
  privileges: [usage]
"""

NATIVE = """
roles:
  - {{name: app_owner, comment: Owns what the application makes, member_of: [], members: []}}
  - {{name: readers, comment: '', member_of: [], members: [app]}}
  - {{name: app, comment: '', login: true, connection_limit: 20, valid_until: '2099-12-31T23:59:59Z', member_of: [readers],
     members: []}}
schemas: [{{name: sales, owner: app_owner}}, {{name: archive, owner: app_owner}}]
grants:
  - {{role: readers, privileges: [USAGE], object: {{type: schema, name: sales}}}}
  - {{role: readers, privileges: [SELECT], object: {{type: table, schema: sales, name: '*'}}}}
  - {{role: readers, privileges: [SELECT], object: {{type: view, schema: sales, name: '*'}}}}
  - {{role: readers, privileges: [SELECT], object: {{type: materialized_view, schema: sales, name: '*'}}}}
  - {{role: app, privileges: [INSERT, UPDATE], object: {{type: table, schema: sales, name: orders}}}}
  - {{role: app, privileges: [INSERT, UPDATE], object: {{type: table, schema: sales, name: Old Orders}}}}
  - {{role: app, privileges: [INSERT, UPDATE], object: {{type: view, schema: sales, name: open_orders}}}}
  - {{role: app, privileges: [INSERT, UPDATE], object: {{type: materialized_view, schema: sales, name: totals}}}}
  - {{role: app, privileges: [USAGE], object: {{type: sequence, schema: sales, name: numbers}}}}
  - {{role: app, privileges: [CONNECT, TEMPORARY], object: {{type: database, name: {database}}}}}
default_privileges:
  - {{owner: app_owner, schema: sales, grant: [{{role: readers, privileges: [SELECT], on_type: table}}]}}
  - {{owner: app_owner, grant: [{{role: readers, privileges: [USAGE], on_type: schema}}]}}
"""


def write(folder: Path, text: str, name: str = "access.yml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def resources(db: Database, text: str = RESOURCES) -> str:
    return text.format(database=db.name)


def one(kind: str, title: str, /, **spec: Any) -> str:
    """A single resource as text."""
    whole = {"clusterRef": {"name": "main"}, **spec}
    return yaml.safe_dump(
        {"apiVersion": "postgresql.aboutbits.it/v1", "kind": kind, "metadata": {"name": title}, "spec": whole}
    )


def test_a_file_with_everything(db: Database, tmp_path: Path) -> None:
    db.sql(SETUP)
    db.converge(manifest_files=[write(tmp_path, resources(db))], **OPTIONS)
    assert db.roles() == {"app", "app_owner", "by_hand", "readers"}
    assert db.logs_in("app", "correct horse battery")
    attributes = {name: db.attribute("app", name) for name in ("rolcanlogin", "rolcreatedb", "rolconnlimit")}
    assert attributes == {"rolcanlogin": True, "rolcreatedb": False, "rolconnlimit": 20}
    assert db.attribute("app_owner", "rolcanlogin") is False
    comments = dict(
        db.query(
            "SELECT rolname, shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname IN ('app_owner', 'readers')"
        )
    )
    assert comments == {"app_owner": "Owns what the application makes", "readers": None}
    assert db.comment("app") is None
    # The membership that somebody made by hand is gone.
    assert (db.members("readers"), db.members("by_hand")) == ({"app"}, set())
    owner = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = %s"
    assert [db.value(owner, name) for name in ("sales", "archive")] == ["app_owner", "app_owner"]
    assert "readers=U/app_owner" in (db.acl("sales", "schema") or ())
    for relation in ("orders", '"Old Orders"', "open_orders", "totals"):
        # DELETE, which no resource gives, is gone.
        assert {"readers=r/postgres", "app=aw/postgres"} <= (db.acl(f"sales.{relation}") or set())
    assert "app=U/postgres" in (db.acl("sales.numbers") or ())
    assert "app=Tc/postgres" in {
        entry
        for (entry,) in db.query("SELECT unnest(datacl)::text FROM pg_database WHERE datname = current_database()")
    }
    assert db.defaults()["app_owner", "sales", "r"] == {"readers=r/app_owner"}
    assert "readers=U/app_owner" in db.defaults()["app_owner", None, "n"]


def test_the_same_as_a_native_manifest(db: Database, tmp_path: Path) -> None:
    db.sql(SETUP)
    theirs = db.reconcile(manifest_files=[write(tmp_path, resources(db))], check=True, **OPTIONS)
    ours = db.reconcile(resources(db, NATIVE), check=True, **OPTIONS)
    assert not theirs.failed and not ours.failed, (theirs, ours)
    assert theirs.sql == ours.sql != []
    assert theirs.plan_digest == ours.plan_digest
    db.converge(manifest_files=[write(tmp_path, resources(db))], **OPTIONS)
    db.silent(resources(db, NATIVE), **OPTIONS)


def test_one_resource_in_each_file_beside_a_native_one(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE ROLE legacy LOGIN", "CREATE SCHEMA s", "CREATE TABLE s.t (a int)", "GRANT INSERT ON s.t TO legacy")
    files = [
        write(tmp_path, one("Role", "app", name="app", flags={"inRole": ["legacy"]}), "role.yml"),
        write(
            tmp_path,
            one(
                "Grant",
                "g",
                database=db.name,
                role="app",
                objectType="table",
                schema="s",
                objects=["t"],
                privileges=["select"],
            ),
            "grant.yml",
        ),
        write(
            tmp_path,
            "roles: [{name: legacy, external: true, privilege_reconciliation: additive}]\n"
            "grants: [{role: app, privileges: [USAGE], object: {type: schema, name: s}}]\n",
            "native.yml",
        ),
    ]
    result = db.converge(manifest_files=files)
    assert {"app=r/postgres", "legacy=a/postgres"} <= (db.acl("s.t") or set())
    assert db.members("legacy") == {"app"}
    assert result.suppressed_revoke_count == 1


def test_the_run_has_to_be_connected_to_the_resources_database(db: Database, tmp_path: Path) -> None:
    text = one("Schema", "s", database="another_one", name="s")
    result = db.fails(
        None, "manifest_invalid", "another_one", db.name, "login_db", manifest_files=[write(tmp_path, text)]
    )
    assert [problem["path"] for problem in result.problems] == ["access.yml: spec.database"]


def test_a_database_is_checked_and_not_changed(db: Database, tmp_path: Path) -> None:
    right = one("Database", "d", name=db.name, owner="postgres", reclaimPolicy="Retain")
    other = one("Database", "other", name="postgres", owner="postgres")
    db.silent(manifest_files=[write(tmp_path, right + "---\n" + other)])
    wrong = one("Database", "d", name=db.name, owner="somebody")
    db.fails(None, "manifest_invalid", "belongs to postgres, not to somebody", manifest_files=[write(tmp_path, wrong)])
    gone = one("Database", "d", name="no_such_database")
    db.fails(None, "object_missing", "spec.name", "does not exist", manifest_files=[write(tmp_path, gone)])


@pytest.mark.parametrize(
    ("objects", "place", "message"),
    [
        (["t", "tt"], "spec.objects[1]", "table s.tt does not exist"),
        (["q"], "spec.objects[0]", "s.q is a sequence, not a table"),
    ],
)
def test_objects_that_are_not_there_are_named_where_they_stand(
    db: Database, tmp_path: Path, objects: list[str], place: str, message: str
) -> None:
    db.sql("CREATE ROLE r", "CREATE SCHEMA s", "CREATE TABLE s.t (a int)", "CREATE SEQUENCE s.q")
    spec = {"database": db.name, "role": "r", "objectType": "table", "schema": "s", "privileges": ["select"]}
    text = one("Role", "r", name="r") + "---\n" + one("Grant", "g", objects=objects, **spec)
    result = db.fails(None, "object_missing", message, manifest_files=[write(tmp_path, text)])
    assert [problem["path"] for problem in result.problems] == [f"access.yml: document 2 (Grant g): {place}"]


@pytest.mark.parametrize("objects", [[], ["t", "u"]], ids=["every one", "named ones"])
def test_a_schema_that_is_not_there_is_told_once(db: Database, tmp_path: Path, objects: list[str]) -> None:
    db.sql("CREATE ROLE r", "CREATE SCHEMA s")
    spec = {"database": db.name, "role": "r", "objectType": "table", "schema": "ss", "privileges": ["select"]}
    text = one("Role", "r", name="r") + "---\n" + one("Grant", "g", objects=objects, **spec)
    result = db.fails(None, "object_missing", 'schema "ss" does not exist', manifest_files=[write(tmp_path, text)])
    assert [problem["path"] for problem in result.problems] == ["access.yml: document 2 (Grant g): spec.schema"]


def test_no_secret_of_the_file_is_in_the_output(db: Database, tmp_path: Path) -> None:
    db.sql(SETUP)
    file = write(tmp_path, resources(db))
    for more in ({"check": True}, {}, {"login_db": "nowhere"}):
        stdout, stderr, _code = db.raw(manifest_files=[file], diff=True, verbosity=4, **{**OPTIONS, **more})
        assert "it is not this one" not in stdout + stderr
        assert "correct horse battery" not in stdout + stderr


@pytest.mark.parametrize("declared", [True, False], ids=["its role is declared too", "somebody else's role"])
def test_a_new_membership_is_inherited_where_the_member_inherits(db: Database, tmp_path: Path, declared: bool) -> None:
    db.sql("CREATE ROLE g", "CREATE ROLE plain NOINHERIT", "CREATE ROLE old NOINHERIT", "GRANT g TO old")
    if db.version >= 16:
        db.sql("GRANT g TO old WITH INHERIT TRUE")
    files = [write(tmp_path, one("Role", "g", name="g", flags={"role": ["old", "plain"]}), "g.yml")]
    for name in ("plain", "old") if declared else ():
        # The operator wants a membership on both sides, and a resource is often a file.
        flags = {"inherit": False, "inRole": ["g"]}
        files.append(write(tmp_path, one("Role", name, name=name, flags=flags), f"{name}.yml"))
    db.converge(manifest_files=files, **({} if declared else {"assume_roles": ["plain", "old"]}))
    assert db.members("g") == {"plain", "old"}
    assert not db.value("SELECT pg_has_role('plain', 'g', 'USAGE')")
    # What an existing one has stays.
    assert db.value("SELECT pg_has_role('old', 'g', 'USAGE')") is (db.version >= 16)


def test_a_role_in_use_does_not_lose_its_login_by_a_missing_reference(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE ROLE app LOGIN")
    file = write(tmp_path, one("Role", "app", name="app"))
    session = db.connect(user="app")
    db.fails(None, "guard", "app", "Give it a passwordSecretRef", check_too=False, manifest_files=[file])
    session.close()
    # The server may take a moment to end the session.
    for _attempt in range(50):
        if not db.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'"):
            break
        time.sleep(0.1)
    result = db.converge(manifest_files=[file])
    assert db.attribute("app", "rolcanlogin") is False
    text = "role app loses LOGIN: its file gives it no passwordSecretRef (with one it keeps it)"
    assert any(warning.endswith(text) for warning in result.warnings)
