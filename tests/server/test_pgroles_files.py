# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pgroles' files on a server: the catalog becomes what pgroles would make of it, and stays so."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from harness import Database

K = {"fingerprint_key": "k-0123456789abcdef0123"}

SHOP = """
    CREATE ROLE migrator; CREATE ROLE legacy LOGIN; CREATE ROLE gone;
    CREATE SCHEMA inventory; CREATE TABLE inventory.item (id int); CREATE VIEW inventory.items AS SELECT 1;
    CREATE SEQUENCE inventory.number; CREATE FUNCTION inventory.f() RETURNS int LANGUAGE sql AS 'SELECT 1';
    GRANT SELECT, DELETE ON inventory.item TO legacy;
    ALTER TABLE inventory.item OWNER TO migrator;
    ALTER ROLE migrator SET work_mem = '8MB'
"""

MANIFEST = """
    auth_providers:
      - {type: rds_iam, region: eu-central-1}
    default_owner: migrator
    profiles:
      editor:
        grants:
          - privileges: [USAGE]
            on: {type: schema}
          - privileges: [SELECT, INSERT, UPDATE, DELETE]
            object: {type: table, name: "*"}
          - privileges: [USAGE, SELECT]
            "on": {type: sequence, name: "*"}
        default_privileges:
          - {privileges: [SELECT, INSERT], on_type: table}
      viewer:
        inherit: false
        grants:
          - {privileges: [USAGE], object: {type: schema}}
          - {privileges: [SELECT], object: {type: table, name: "*"}}
    schemas:
      - {name: inventory, profiles: [editor, viewer]}
      - {name: reports, owner: analyst, profiles: [viewer], role_pattern: "{profile}_of_{schema}"}
    roles:
      - {name: migrator}
      - {name: analyst, connection_limit: 3, comment: Makes reports}
      - name: app
        login: true
        password: {from_env: APP_PASSWORD}
        password_valid_until: "2099-12-31T00:00:00Z"
        config: {statement_timeout: "5000"}
      - {name: legacy, external: true, preserve_undeclared_grants: true}
    memberships:
      - role: inventory-editor
        members:
          - {name: app}
          - {name: legacy, admin: true}
    grants:
      - role: app
        privileges: [EXECUTE]
        object: {type: function, schema: inventory, name: "f()"}
      - role: PUBLIC
        ensure: absent
        privileges: [EXECUTE]
        object: {type: function, schema: inventory, name: "*"}
    default_privileges:
      - owner: migrator
        scope: {type: schema, schema: inventory}
        grant:
          - {role: app, privileges: [USAGE], on_type: sequence}
    retirements:
      - {role: gone}
"""

#: The same in the collection's own words.
NATIVE = (
    MANIFEST.replace("    auth_providers:\n      - {type: rds_iam, region: eu-central-1}\n", "")
    .replace("      editor:\n", "      editor:\n        config: {}\n")
    .replace("      viewer:\n", "      viewer:\n        config: {}\n")
    .replace("{name: inventory, ", "{name: inventory, owner: migrator, ")
    .replace("{name: migrator}", "{name: migrator, config: {}}")
    .replace("{name: analyst, ", "{name: analyst, config: {}, ")
    .replace("password: {from_env: APP_PASSWORD}", "password_from_env: APP_PASSWORD")
    .replace("preserve_undeclared_grants: true", "privilege_reconciliation: additive")
    .replace("{name: app}\n", "{name: app, inherit: true}\n")
    .replace("{name: legacy, admin: true}", "{name: legacy, inherit: true, admin: true}")
    .replace("scope: {type: schema, schema: inventory}", "schema: inventory")
)


def write(folder: Path, name: str, text: str) -> str:
    folder.chmod(0o755)
    path = folder / name
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return str(path)


def converge(db: Database, *paths: str, **options: Any) -> Any:
    return db.converge(manifest_files=list(paths), environment={"APP_PASSWORD": "un-guess-able-7"}, **K, **options)


def check_shop(db: Database) -> None:
    assert {"app", "analyst", "inventory-editor", "inventory-viewer", "viewer_of_reports"} <= db.roles()
    assert "gone" not in db.roles()
    assert db.acl("inventory.item") == {
        "migrator=arwdDxtm/migrator" if db.version >= 17 else "migrator=arwdDxt/migrator",
        '"inventory-editor"=arwd/migrator',
        '"inventory-viewer"=r/migrator',
        # Nobody declared what the legacy login holds, and nobody takes it away.
        "legacy=rd/migrator",
    }
    assert db.acl("inventory.items") is None
    assert '"inventory-editor"=rU/postgres' in (db.acl("inventory.number") or ())
    assert db.acl("inventory.f()", "function") == {"postgres=X/postgres", "app=X/postgres"}
    owners = dict(db.query("SELECT nspname, pg_get_userbyid(nspowner) FROM pg_namespace"))
    assert (owners["inventory"], owners["reports"]) == ("migrator", "analyst")
    assert db.acl("inventory", "schema") == {
        "migrator=UC/migrator",
        '"inventory-editor"=U/migrator',
        '"inventory-viewer"=U/migrator',
    }
    assert db.defaults() == {
        ("migrator", "inventory", "r"): {'"inventory-editor"=ar/migrator'},
        ("migrator", "inventory", "S"): {"app=U/migrator"},
    }
    assert db.members("inventory-editor") == {"app", "legacy"}
    assert db.attribute("app", "rolcanlogin") is True
    assert db.attribute("inventory-viewer", "rolinherit") is False
    assert db.attribute("analyst", "rolconnlimit") == 3
    assert db.comment("analyst") == "Makes reports"
    assert db.attribute("app", "rolconfig") == ["statement_timeout=5000"]
    # Settings that the manifest does not give a role go.
    assert db.attribute("migrator", "rolconfig") is None
    assert db.logs_in("app", "un-guess-able-7")


def test_a_manifest(db: Database, tmp_path: Path) -> None:
    db.sql(SHOP)
    result = converge(db, write(tmp_path, "pgroles.yaml", MANIFEST))
    check_shop(db)
    assert {item["role"] for item in result.suppressed_revokes} == {"legacy"}
    assert "un-guess-able-7" not in result.text


def test_a_native_manifest_that_says_the_same_has_the_same_plan(db: Database, tmp_path: Path) -> None:
    db.sql(SHOP)
    theirs, ours = write(tmp_path, "pgroles.yaml", MANIFEST), write(tmp_path, "access.yml", NATIVE)
    options = {"check": True, "environment": {"APP_PASSWORD": "un-guess-able-7"}, **K}
    digests = {db.reconcile(manifest_files=[path], **options).plan_digest for path in (theirs, ours)}
    assert len(digests) == 1
    less = write(tmp_path, "less.yml", NATIVE.replace("owner: migrator, profiles", "profiles"))
    assert db.reconcile(manifest_files=[less], **options).plan_digest not in digests
    converge(db, ours)
    check_shop(db)
    assert converge(db, theirs).sql == []


def test_a_member_without_inherit_and_nothing_said_of_it(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE ROLE team; CREATE ROLE app LOGIN NOINHERIT; CREATE ROLE other NOINHERIT; GRANT team TO other")
    text = """
        auth_providers: []
        roles: [{name: team}, {name: app, login: true, inherit: false}, {name: other, inherit: false}]
        memberships: [{role: team, members: [{name: app}, {name: other}]}]
        """
    path = write(tmp_path, "pgroles.yaml", text)
    converge(db, path)
    assert db.members("team") == {"app", "other"}
    if db.version >= 16:
        # pgroles takes it for true.
        assert {edge[4] for edge in db.edges("team")} == {True}
    else:
        said = write(tmp_path, "said.yaml", text.replace("{name: app}, {name: other}]", "{name: app, inherit: true}]"))
        db.fails(None, "unsupported_version", "inherit: true contradicts", manifest_files=[said])


def policy(spec: str, name: str) -> str:
    body = textwrap.indent(textwrap.dedent(spec), "  ")
    return f"---\napiVersion: pgroles.io/v1alpha1\nkind: PostgresPolicy\nmetadata:\n  name: {name}\nspec:\n{body}"


CONNECTION = "    connection: {secretRef: {name: db}}\n    interval: 10m\n    mode: apply\n    approval: auto\n"


def test_policies_in_one_file(db: Database, tmp_path: Path) -> None:
    db.sql(SHOP)
    one = (CONNECTION + MANIFEST.lstrip("\n")).replace(
        "{from_env: APP_PASSWORD}", "{secretRef: {name: s}, secretKey: k}"
    )
    one = one.replace("    auth_providers:\n      - {type: rds_iam, region: eu-central-1}\n", "")
    two = (
        CONNECTION
        + """\
    roles: [{name: second, connectionLimit: 2}]
    grants: [{role: second, privileges: [CONNECT], object: {type: database, name: DB}}]
"""
    )
    text = policy(one, "shop") + policy(two.replace("DB", db.name), "second")
    path = write(tmp_path, "policies.yaml", text)
    converge(db, path, passwords={"app": "un-guess-able-7"})
    check_shop(db)
    assert db.attribute("second", "rolconnlimit") == 2
    assert "second=c/postgres" in (db.acl(db.name, "database") or ())
    # Without the option the password stays what it is.
    assert converge(db, path).sql == []
    assert db.logs_in("app", "un-guess-able-7")


def test_a_policy_that_wants_another_mode(db: Database, tmp_path: Path) -> None:
    path = write(tmp_path, "policy.yaml", policy("roles: [{name: r}]\nreconciliation_mode: additive\n", "p"))
    db.fails(None, "manifest_invalid", "set reconciliation_mode: additive", manifest_files=[path])
    converge(db, path, reconciliation_mode="additive")
    path = write(tmp_path, "policy.yaml", policy("roles: [{name: other}]\nmode: observe\n", "p"))
    result = db.reconcile(manifest_files=[path])
    assert result.failed
    assert result.problems[0]["path"] == "policy.yaml: spec.mode"
    assert "other" not in db.roles()
    assert db.reconcile(manifest_files=[path], check=True).summary["roles"]["created"] == 1


def test_a_bundle(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE SCHEMA inventory; CREATE TABLE inventory.item (id int)")
    root = write(
        tmp_path,
        "bundle.yaml",
        """
        shared:
          default_owner: app_owner
          profiles:
            editor:
              grants:
                - {privileges: [USAGE], object: {type: schema}}
                - {privileges: [SELECT, UPDATE], object: {type: table, name: "*"}}
              default_privileges: [{privileges: [SELECT], on_type: table}]
        sources:
          - file: teams/platform.yaml
          - file: teams/app.yaml
        """,
    )
    write(
        tmp_path,
        "teams/platform.yaml",
        """
        policy: {name: platform}
        scope: {roles: [app_owner], schemas: [{name: inventory, facets: [owner]}]}
        roles: [{name: app_owner}]
        schemas: [{name: inventory}]
        """,
    )
    app = """
        policy: {name: app}
        scope: {roles: [app], schemas: [{name: inventory, facets: [bindings]}]}
        roles: [{name: app, login: true, password: {from_env: APP_PASSWORD}}]
        schemas: [{name: inventory, profiles: [editor]}]
        memberships: [{role: inventory-editor, members: [{name: app}]}]
        """
    write(tmp_path, "teams/app.yaml", app)
    converge(db, root)
    assert db.acl("inventory", "schema") == {"app_owner=UC/app_owner", '"inventory-editor"=U/app_owner'}
    assert '"inventory-editor"=rw/postgres' in (db.acl("inventory.item") or ())
    assert db.defaults() == {("app_owner", "inventory", "r"): {'"inventory-editor"=r/app_owner'}}
    assert db.members("inventory-editor") == {"app"}
    write(tmp_path, "teams/app.yaml", app.replace("roles: [app]", "roles: []"))
    result = db.fails(None, "manifest_invalid", "outside of the file's scope", manifest_files=[root], **K)
    assert result.problems[0]["path"] == "app.yaml: roles[0].name"
    assert result.problems[0]["file"] == str(tmp_path / "teams" / "app.yaml")


def test_no_output_shows_a_password_in_the_wrong_place(db: Database, tmp_path: Path) -> None:
    hush = "Hush-hush-4711"
    for text in (
        f"auth_providers: []\nroles: [{{name: app, login: true, password: {hush}}}]",
        f"auth_providers: []\nroles: [{{name: {hush}, login: true, passwrd: {hush}}}]",
        f"auth_providers: []\nroles: [{{name: app, login: true, password: {{from_env: {hush}}}}}]",
        policy(f"roles: [{{name: a}}]\nconnection: {{params: {{password: {hush}}}}}\ninterval: 5m\nmod: {hush}", "p"),
        f"apiVersion: v1\nkind: Secret\nstringData: {{password: {hush}}}\nmetadata: {{name: s}}",
    ):
        path = write(tmp_path, "access.yml", text)
        result = db.fails(None, "manifest_invalid", manifest_files=[path], diff=True, **K)
        assert hush not in result.text


def test_a_grant_on_another_database_is_refused(db: Database, tmp_path: Path) -> None:
    text = """
        auth_providers: []
        roles: [{name: app}]
        grants: [{role: app, privileges: [CONNECT], on: {type: database, name: NAME}}]
        """
    path = write(tmp_path, "app.yaml", text.replace("NAME", "postgres"))
    result = db.fails(None, "manifest_invalid", "postgres", db.name, "login_db", manifest_files=[path])
    assert [problem["path"] for problem in result.problems] == ["app.yaml: grants[0].on.name"]
    converge(db, write(tmp_path, "app.yaml", text.replace("NAME", db.name)))
    assert db.value(
        "SELECT count(*) FROM pg_database, aclexplode(datacl) WHERE datname = %s AND grantee = 'app'::regrole", db.name
    )


def test_a_role_that_goes_because_a_part_of_a_bundle_looks_like_a_manifest_is_warned_about(
    db: Database, tmp_path: Path
) -> None:
    """Both tools have ``scope.roles``, and only one of them means that the others are to go."""
    db.sql("CREATE ROLE idle")
    warning = (
        "role idle is dropped because scope.roles in app.yaml names it and nothing declares it; if that file is a part of a"
        " pgroles bundle, list the bundle's own file instead"
    )
    path = write(tmp_path, "app.yaml", "scope: {roles: [u, idle]}\nroles: [{name: u}]\n")
    looked = db.reconcile(manifest_files=[path], check=True)
    assert any(text.endswith(warning) for text in looked.warnings)
    # Declared elsewhere, or with a pattern as no bundle has one, there is nothing to say.
    beside = write(tmp_path, "beside.yaml", "roles: [{name: idle, external: true}]")
    for paths in ([path, beside], [write(tmp_path, "more.yaml", "scope: {roles: [u*, idle]}\nroles: [{name: us}]\n")]):
        assert not any("bundle" in text for text in db.reconcile(manifest_files=paths, check=True).warnings)
    result = db.converge(manifest_files=[path])
    assert any(text.endswith(warning) for text in result.warnings)
    assert "idle" not in db.roles()
