# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pgroles' manifests, bundles and policies in ``manifest_files``: each field means what it means there, or is refused."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

pytest.importorskip("yaml")

from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest import load
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.model import Manifest
from ansible_collections.pg_access.reconcile.plugins.module_utils.masking import Secrets
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import Policy, manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import ManifestInvalid

#: Without a mark a manifest is read as a native one. This key is pgroles' alone and says nothing about access.
MARK = "auth_providers: []\n"
MERGED = "has a merge key (<<), which pgroles passes over with all that it stands for: write the keys out"


def write(folder: Path, text: str, name: str = "access.yml") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return str(path)


def read(folder: Path, text: str) -> Manifest:
    return load.from_files([write(folder, text)])


def marked(folder: Path, text: str) -> Manifest:
    return read(folder, MARK + textwrap.dedent(text))


def found(folder: Path, *texts: str, check: bool = False, **options: Any) -> Dict[str, str]:
    """The problems of some files by their paths."""
    paths = [write(folder, text, f"{name}.yml") for name, text in zip("abc", texts)]
    with pytest.raises(ManifestInvalid) as caught:
        manifest_to_policy({"manifest_files": paths, **options}, check=check)
    return by_path(caught.value)


def by_path(invalid: ManifestInvalid) -> Dict[str, str]:
    together: Dict[str, str] = {}
    for problem in invalid.problems:
        before = together.get(str(problem.path))
        together[str(problem.path)] = problem.message if before is None else f"{before}\n{problem.message}"
    return together


def policy(folder: Path, *texts: str, check: bool = False, **options: Any) -> Policy:
    paths = [write(folder, text, f"{name}.yml") for name, text in zip("abc", texts)]
    return manifest_to_policy({"manifest_files": paths, **options}, check=check)


# ---- which files are pgroles' ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    (
        "auth_providers: [{type: rds_iam, region: eu}]\nroles: [{name: app}]",
        "roles: [{name: app, preserve_undeclared_grants: false}]",
        "roles: [{name: b, login: true, password: {from_env: HOME}}, {name: app}]",
        "roles: [{name: app}]\n"
        "default_privileges: [{owner: app, scope: {type: schema, schema: s},"
        " grant: [{role: app, privileges: [SELECT], on_type: table}]}]",
    ),
)
def test_a_mark_makes_a_file_one_of_pgroles(tmp_path: Path, text: str) -> None:
    # There a role without settings has none, here its settings are its own.
    assert {role.config for role in map(_hashable, read(tmp_path, text).roles)} == {()}


def _hashable(role: Any) -> Any:
    class _Role:
        config = None if role.config is None else tuple(role.config)

    return _Role


def test_a_file_without_a_mark_is_a_native_one(tmp_path: Path) -> None:
    assert read(tmp_path, "roles: [{name: app}]").roles[0].config is None


@pytest.mark.parametrize("text", [MARK, "auth_providers: null\nroles: null"])
def test_a_file_with_nothing_but_its_mark_declares_nothing(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == {"a.yml": "declares nothing: of a manifest's sections there is none in it"}


def test_a_native_file_stays_as_strict(tmp_path: Path) -> None:
    assert found(tmp_path, "roles: [{name: app, password: {vault: x}}]") == {
        "a.yml: roles[0].password": "must be text, not a dict"
    }
    [problem] = list(found(tmp_path, "roles: [{name: app}]\n---\nroles: [{name: b}]").values())
    assert "has several documents, as only a file of Kubernetes resources may: document" in problem


# ---- what the same word means ----------------------------------------------------------------------------------------


def test_a_schema_without_an_owner_is_the_default_owners(tmp_path: Path) -> None:
    text = "default_owner: app\nroles: [{name: app}, {name: b}]\nschemas: [{name: s}, {name: t, owner: b}]\n"
    assert [schema.owner for schema in marked(tmp_path, text).schemas] == ["app", "b"]
    assert [schema.owner for schema in read(tmp_path, text).schemas] == [None, "b"]


def test_the_owner_that_a_schema_gets_stands_where_it_was_written(tmp_path: Path) -> None:
    text = f"{MARK}default_owner: ap\nroles: [{{name: app}}]\nschemas: [{{name: s}}, {{name: t}}]\n"
    assert list(found(tmp_path, text)) == ["a.yml: default_owner"]


def test_what_another_file_says_for_the_whole_manifest_changes_nothing(tmp_path: Path) -> None:
    text = (
        MARK
        + """
roles: [{name: app}]
profiles: {p: {default_privileges: [{privileges: [SELECT], on_type: table}]}, q: {}}
schemas: [{name: s, profiles: [p]}, {name: t, profiles: [q]}, {name: u, owner: app, profiles: [p, q]}]
default_privileges: [{schema: s, grant: [{role: app, privileges: [SELECT], on_type: table}]}]
"""
    )
    other = 'default_owner: b\nrole_pattern: "{profile}_{schema}"\nroles: [{name: b}]'
    problems = found(tmp_path, text, other)
    assert list(problems) == ["a.yml: schemas[0].owner", "a.yml: default_privileges[0].owner"]
    assert set(problems.values()) == {
        "is required where there is no default_owner: pgroles would take postgres, which nobody wrote"
    }
    text = text.replace("default_privileges: [{s", "default_owner: b\ndefault_privileges: [{s")
    assert set(policy(tmp_path, text, other).roles) == {"app", "b", "s-p", "t-q", "u-p", "u-q"}


def test_a_role_has_the_settings_that_it_is_given(tmp_path: Path) -> None:
    manifest = marked(
        tmp_path,
        """
        roles: [{name: a}, {name: b, config: {work_mem: 8MB}}, {name: c, external: true}]
        profiles: {p: {}, q: {config: {search_path: "{schema}"}}}
        """,
    )
    assert [role.config and dict(role.config) for role in manifest.roles] == [{}, {"work_mem": ("8MB",)}, None]
    assert [profile.config and dict(profile.config) for profile in manifest.profiles.values()] == [
        {},
        {"search_path": ("{schema}",)},
    ]


def test_an_omitted_inherit_of_a_member_is_true(tmp_path: Path) -> None:
    text = """
        roles: [{name: g}, {name: a}, {name: b}]
        memberships: [{role: g, members: [{name: a}, {name: b, inherit: false, admin: true}], exclusive: true}]
        """
    (stanza,) = marked(tmp_path, text).memberships
    assert [(member.name, member.inherit, member.admin) for member in stanza.members] == [
        ("a", True, None),
        ("b", False, True),
    ]
    assert stanza.exclusive
    # Before PostgreSQL 16 the member's own attribute decides where the file says nothing.
    assert [member.unsaid for member in stanza.members] == [True, False]


def test_what_is_said_of_a_membership_once_is_said(tmp_path: Path) -> None:
    said = "memberships: [{role: g, members: [{name: a, inherit: true}]}]"
    unsaid = "memberships: [{role: g, members: [{name: a}]}]"
    for first, second, whole in ((said, unsaid, False), (unsaid, said, False), (unsaid, unsaid, True)):
        one, two = (line[len("memberships: [") : -1] for line in (first, second))
        text = f"{MARK}roles: [{{name: g}}, {{name: a}}]\nmemberships: [{one}, {two}]"
        assert policy(tmp_path, text).edges["g", "a"].unsaid is whole


def test_a_merge_key_stands_for_nothing_there_and_is_refused(tmp_path: Path) -> None:
    """pgroles passes over it, and a role would have LOGIN here that has none there."""
    text = "roles: [&base {name: app, login: true}, {<<: *base, name: other}]"
    assert found(tmp_path, MARK + text) == {"a.yml: roles[1]": MERGED}
    assert [role.login for role in read(tmp_path, text).roles] == [True, True]
    # What kubectl sends has the keys in it.
    resources = policy(tmp_path, resource(text))
    assert resources.roles["other"].attributes["login"] is True


def test_a_schema_as_scope_of_a_default_privilege(tmp_path: Path) -> None:
    manifest = marked(
        tmp_path,
        """
        roles: [{name: o}, {name: a}]
        default_privileges:
          - {owner: o, scope: {type: schema, schema: s}, grant: [{role: a, privileges: [SELECT], on_type: table}]}
          - {owner: o, scope: {type: global}, grant: [{role: PUBLIC, privileges: [EXECUTE], on_type: function,
             ensure: absent}]}
          - {owner: o, schema: t, grant: [{role: a, privileges: [SELECT], on_type: table}]}
        """,
    )
    assert [entry.schema for entry in manifest.default_privileges] == ["s", None, "t"]


def test_undeclared_grants_are_preserved_by_the_override(tmp_path: Path) -> None:
    manifest = marked(
        tmp_path,
        """
        roles:
          - {name: a, preserve_undeclared_grants: true}
          - {name: b, preserve_undeclared_grants: false}
          - {name: c, external: true, privilege_reconciliation: additive}
        """,
    )
    assert [role.privilege_reconciliation for role in manifest.roles] == ["additive", None, "additive"]


@pytest.mark.parametrize("on", ("object", "on", "'on'", '"on"'))
def test_every_spelling_of_the_object(tmp_path: Path, on: str) -> None:
    target = "{type: table, schema: s, name: '*'}"
    manifest = marked(
        tmp_path,
        f"""
        roles: [{{name: a}}]
        grants: [{{role: a, privileges: [SELECT], {on}: {target}}}]
        profiles: {{p: {{grants: [{{privileges: [USAGE], {on}: {{type: schema}}}}]}}}}
        """,
    )
    assert manifest.grants[0].object.name == "*"
    assert manifest.profiles["p"].grants[0].object.type == "schema"


def test_every_field_of_a_role(tmp_path: Path) -> None:
    (role,) = marked(
        tmp_path,
        """
        roles:
          - name: a
            login: true
            superuser: true
            createdb: true
            createrole: true
            inherit: false
            replication: true
            bypassrls: true
            connection_limit: 0
            comment: text
            password_valid_until: "2027-01-31T00:00:00+01:00"
        """,
    ).roles
    assert all((role.login, role.superuser, role.createdb, role.createrole, role.replication, role.bypassrls))
    assert (role.inherit, role.connection_limit, role.comment) == (False, 0, "text")
    assert role.valid_until == 1801350000 * 10**6


def test_a_retirement(tmp_path: Path) -> None:
    (entry,) = marked(
        tmp_path,
        """
        roles: [{name: b}]
        retirements: [{role: a, reassign_owned_to: b, drop_owned: true, terminate_sessions: true}]
        """,
    ).retirements
    assert (entry.role, entry.reassign_owned_to, entry.drop_owned, entry.terminate_sessions) == ("a", "b", True, True)


# ---- passwords -------------------------------------------------------------------------------------------------------


def test_a_password_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_PW", "un-guess-able")
    text = "roles: [{name: app, login: true, password: {from_env: APP_PW}}]"
    secrets = Secrets()
    path = write(tmp_path, text)
    found_policy = manifest_to_policy({"manifest_files": [path]}, secrets)
    password = found_policy.roles["app"].password
    assert password is not None
    assert password.text == "un-guess-able"
    assert set(secrets.texts()) == {"un-guess-able"}


@pytest.mark.parametrize(
    ("role", "path", "words"),
    (
        ("password: {from_env: NOT_SET_ANYWHERE}, login: true", "password.from_env", "is not set where the module"),
        ("password: {from_env: HOME}", "password", "is only for a role with login: true"),
        ("password: {from_env: HOME}, login: false", "password", "is only for a role with login: true"),
        ("password: {from_env: HOME, secretRef: {name: s}}, login: true", "password", "must have exactly one of"),
        ("password: {from_env: no-name}, login: true", "password.from_env", "is not the name of an environment"),
        ("password: {from_env: HOME, frm: x}, login: true", "password.frm", "unknown key 'frm'"),
        ("password: {from_env: HOME}, external: true", "password.from_env", "an external role takes no"),
    ),
)
def test_a_password_that_cannot_be_used(tmp_path: Path, role: str, path: str, words: str) -> None:
    problems = found(tmp_path, f"roles: [{{name: app, {role}}}]")
    assert list(problems) == [f"a.yml: roles[0].{path}"]
    assert words in problems[f"a.yml: roles[0].{path}"]


def test_a_password_from_the_environment_is_called_as_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APP_PASSWORD", "un-guess-able")
    whole = policy(tmp_path, "roles: [{name: app, login: true, password: {from_env: APP_PASSWORD}}]")
    password = whole.roles["app"].password
    assert password is not None and password.source == "a.yml: roles[0].password.from_env"


def test_public_is_no_role_that_has_a_problem(tmp_path: Path) -> None:
    text = """
        roles: [{name: app}]
        default_privileges:
          - {owner: app, schema: s, grant: [{role: PUBLIC, ensure: absent, privileges: [EXECUTE], on_type: function}]}
        """
    with pytest.raises(ManifestInvalid) as caught:
        policy(tmp_path, MARK + textwrap.dedent(text))
    (problem,) = caught.value.problems
    assert (problem.path, problem.role) == ("a.yml: default_privileges[0].grant[0].ensure", None)
    assert (
        "Where the schema has an entry of its own that gives PUBLIC EXECUTE, take that away by hand" in problem.message
    )


def test_a_password_in_the_wrong_place_is_a_secret_and_in_no_message(tmp_path: Path) -> None:
    hush = "Hush-hush-7"
    text = f"""
        auth_providers: []
        roles:
          - {{name: a, login: true, password: {hush}1}}
          - {{name: b, login: true, password: {{from_env: HOME, value: {hush}2}}}}
          - {{name: c, passwd: {hush}3}}
          - {hush}4
        """
    secrets = Secrets()
    with pytest.raises(ManifestInvalid) as caught:
        manifest_to_policy({"manifest_files": [write(tmp_path, text)]}, secrets)
    assert hush not in " ".join(problem.text for problem in caught.value.problems)
    assert len(caught.value.problems) == 4
    assert {f"{hush}1", f"{hush}2", f"{hush}3"} == set(secrets.texts()) - {os.environ["HOME"]}


# ---- what does not carry over ----------------------------------------------------------------------------------------

#: Each: what a marked manifest has beside its roles a and o, where the message points, what it says.
REFUSED: List[Tuple[str, str, str]] = [
    ("suspend: true", "suspend", "unknown key 'suspend'; known here: role_pattern, default_owner"),
    ("scope: {roles: [a]}", "scope", "unknown key 'scope'"),
    ("grant: []", "grant", "unknown key 'grant'; did you mean 'grants'?"),
    (
        "memberships: [{role: a, members: [{name: o, set: false}]}]",
        "memberships[0].members[0].set",
        "unknown key 'set'",
    ),
    (
        "grants: [{role: a, privileges: [SELECT], with_grant_option: true, on: {type: table, schema: s, name: t}}]",
        "grants[0].with_grant_option",
        "unknown key 'with_grant_option'",
    ),
    (
        "grants: [{role: a, privileges: [SELECT], on: {type: table, schema: s, name: t, columns: [c]}}]",
        "grants[0].on.columns",
        "unknown key 'columns'",
    ),
    ("grants: [{role: a, privileges: [SELECT], on: {type: table, schema: s}}]", "grants[0].on.name", "is required"),
    (
        "grants: [{role: a, privileges: [SELCT], on: {type: table, schema: s, name: t}}]",
        "grants[0].privileges[0]",
        "'SELCT' is not a privilege of the type table",
    ),
    (
        "grants: [{role: public, privileges: [SELECT], on: {type: table, schema: s, name: t}}]",
        "grants[0].role",
        "'public' is no role's name: the pseudo-role is written PUBLIC",
    ),
    ("retirements: [{role: x, all_databases: true}]", "retirements[0].all_databases", "unknown key 'all_databases'"),
    (
        "default_privileges: [{owner: o, grant: [{role: a, privileges: [SELECT], on_type: table}]}]",
        "default_privileges[0]",
        "must have schema, or scope: {type: global}",
    ),
    (
        "default_privileges: [{schema: s, grant: [{role: a, privileges: [SELECT], on_type: table}]}]",
        "default_privileges[0].owner",
        "default_owner",
    ),
    (
        "default_privileges: [{owner: o, schema: s, scope: {type: schema, schema: s},"
        " grant: [{role: a, privileges: [SELECT], on_type: table}]}]",
        "default_privileges[0].scope",
        "excludes default_privileges[0].schema",
    ),
    (
        "default_privileges: [{owner: o, scope: {type: global, schema: s},"
        " grant: [{role: a, privileges: [SELECT], on_type: table}]}]",
        "default_privileges[0].scope.schema",
        "unknown key 'schema'",
    ),
    (
        "default_privileges: [{owner: o, scope: {type: schema},"
        " grant: [{role: a, privileges: [SELECT], on_type: table}]}]",
        "default_privileges[0].scope.schema",
        "is required",
    ),
    (
        "default_privileges: [{owner: o, schema: s, grant: [{role: a, privileges: [SELECT], on_type: view}]}]",
        "default_privileges[0].grant[0].on_type",
        "default privileges on table cover views",
    ),
    (
        "profiles: {p: {default_privileges: [{role: a, privileges: [SELECT], on_type: table}]}}",
        "profiles.p.default_privileges[0].role",
        "a profile names no role",
    ),
    (
        "profiles: {p: {grants: [{privileges: [SELECT], on: {type: table, schema: s, name: t}}]}}",
        "profiles.p.grants[0].on.schema",
        "a profile's objects lie in the schema",
    ),
    ("profiles: {p: {logn: true}}", "profiles.p.logn", "unknown key 'logn'; did you mean 'login'?"),
    ("schemas: [{name: s, profiles: [p]}]", "schemas[0].profiles[0]", "'p'"),
    ("schemas: {name: s}", "schemas", "must be a list"),
    ("memberships: [{role: a, members: [{name: oo}]}]", "memberships[0].members[0].name", "unknown role 'oo'"),
]


@pytest.mark.parametrize(("text", "path", "words"), REFUSED, ids=[text for text, _path, _words in REFUSED])
def test_what_does_not_carry_over_is_refused_by_name(tmp_path: Path, text: str, path: str, words: str) -> None:
    problems = found(tmp_path, f"{MARK}roles: [{{name: a}}, {{name: o}}]\n{text}\n")
    assert list(problems) == [f"a.yml: {path}"]
    assert words in problems[f"a.yml: {path}"]


def test_all_problems_at_once(tmp_path: Path) -> None:
    text = """
        auth_providers: []
        roles: [{name: a, logn: true, connection_limit: many}, {name: a}]
        grants: [{role: b, privileges: [SELECT], on: {type: table, schema: s, name: t}}]
        """
    assert list(found(tmp_path, text)) == [
        "a.yml: roles[0].logn",
        "a.yml: roles[0].connection_limit",
        "a.yml: roles[1]",
        "a.yml: grants[0].role",
    ]


def test_files_of_different_tools_compose(tmp_path: Path) -> None:
    theirs = f"{MARK}roles: [{{name: a}}]\nmemberships: [{{role: g, members: [{{name: a}}]}}]"
    ours = "roles: [{name: g}]"
    assert set(policy(tmp_path, theirs, ours).roles) == {"a", "g"}
    edge = "memberships: [{role: g, members: [{name: a, inherit: true}]}]"
    problems = found(tmp_path, theirs, f"roles: [{{name: g}}, {{name: a}}]\n{edge}")
    assert problems == {
        "b.yml: roles[1]": "the role 'a' is declared twice: in a.yml: roles[0] and in b.yml: roles[1]",
        "b.yml: memberships[0].members[0]": "the membership of 'a' in 'g' is declared in two files: in a.yml:"
        " memberships[0].members[0] and in b.yml: memberships[0].members[0]",
    }


# ---- the database ----------------------------------------------------------------------------------------------------

ON_A_DATABASE = "grants: [{{role: app, privileges: [CONNECT], {key}: {{type: database, name: {name}}}}}]"


def test_a_file_with_a_grant_on_a_database_is_for_that_database(tmp_path: Path) -> None:
    roles = "roles: [{name: app}]\n"
    whole = policy(tmp_path, MARK + roles + ON_A_DATABASE.format(key="on", name="shop"))
    (entry,) = whole.databases
    assert (entry.name, entry.source, entry.connected) == ("shop", "a.yml: grants[0].on.name", True)
    (entry,) = policy(tmp_path, resource(roles + ON_A_DATABASE.format(key="object", name="shop"))).databases
    assert (entry.name, entry.source) == ("shop", "a.yml: spec.grants[0].object.name")
    paths = bundled(tmp_path, app=textwrap.dedent(APP) + ON_A_DATABASE.format(key="object", name="shop"))
    (entry,) = manifest_to_policy({"manifest_files": paths}).databases
    assert (entry.name, entry.source) == ("shop", "app.yml: grants[0].object.name")
    assert policy(tmp_path, roles + ON_A_DATABASE.format(key="object", name="shop")).databases == ()
    two = found(
        tmp_path,
        MARK + roles + ON_A_DATABASE.format(key="object", name="shop"),
        MARK + ON_A_DATABASE.format(key="object", name="other"),
    )
    [problem] = list(two.items())
    assert problem[0] == "b.yml: grants[0].object.name" and "'other' is not 'shop'" in problem[1]


# ---- bundles ---------------------------------------------------------------------------------------------------------

ROOT = """
    shared:
      default_owner: app_owner
      role_pattern: "{profile}_{schema}"
      auth_providers: [{type: supabase}]
      profiles:
        editor:
          grants: [{privileges: [USAGE], object: {type: schema}}]
          default_privileges: [{privileges: [SELECT], on_type: table}]
    sources: [{file: policies/platform.yml}, {file: policies/app.yml}]
    """

PLATFORM = """
    policy: {name: platform}
    scope: {roles: [app_owner], schemas: [{name: inventory, facets: [owner]}]}
    roles: [{name: app_owner}]
    schemas: [{name: inventory}]
    """

APP = """
    policy: {name: app}
    scope: {roles: [app], schemas: [{name: inventory, facets: [bindings]}]}
    roles: [{name: app, login: true, password: {from_env: HOME}}]
    schemas: [{name: inventory, profiles: [editor]}]
    memberships: [{role: editor_inventory, members: [{name: app}]}]
    """


def bundled(folder: Path, platform: str = PLATFORM, app: str = APP, root: str = ROOT) -> List[str]:
    write(folder, platform, "policies/platform.yml")
    write(folder, app, "policies/app.yml")
    return [write(folder, root, "bundle.yml")]


def bundle_problems(folder: Path, *more: str, **texts: str) -> Dict[str, str]:
    with pytest.raises(ManifestInvalid) as caught:
        manifest_to_policy({"manifest_files": [*bundled(folder, **texts), *more]})
    return by_path(caught.value)


def test_a_bundle_is_read_from_its_root(tmp_path: Path) -> None:
    whole = manifest_to_policy({"manifest_files": bundled(tmp_path)})
    assert set(whole.roles) == {"app_owner", "app", "editor_inventory"}
    assert whole.schemas["inventory"].owner == "app_owner"
    assert {rule.owner for rule in whole.default_rules} == {"app_owner"}
    assert set(whole.edges) == {("editor_inventory", "app")}


def test_a_merge_key_in_any_file_of_a_bundle(tmp_path: Path) -> None:
    merged = "roles: [{<<: {login: true}, name: app"
    assert bundle_problems(tmp_path, app=APP.replace("roles: [{name: app", merged)) == {"app.yml: roles[0]": MERGED}
    root = ROOT.replace("editor:\n", "editor:\n          <<: {inherit: false}\n")
    assert bundle_problems(tmp_path, root=root) == {"bundle.yml: shared.profiles.editor": MERGED}


def test_a_problem_in_a_file_of_a_bundle_names_that_file(tmp_path: Path) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        manifest_to_policy({"manifest_files": bundled(tmp_path, app=APP.replace("profiles:", "profile:"))})
    problems = {problem.path: problem.file for problem in caught.value.problems}
    assert problems["app.yml: schemas[0].profile"] == str(tmp_path / "policies" / "app.yml")


def test_an_owner_is_given_only_by_the_file_that_has_this_facet(tmp_path: Path) -> None:
    manifest = load.from_files(bundled(tmp_path))
    assert [(entry.source, entry.owner) for entry in manifest.schemas] == [
        ("platform.yml: schemas[0]", "app_owner"),
        ("app.yml: schemas[0]", None),
    ]


def test_a_pattern_of_a_file_holds_for_its_own_schemas(tmp_path: Path) -> None:
    app = APP.replace("editor_inventory", "x-editor").replace(
        "schemas: [{name: inventory, p", "role_pattern: 'x-{profile}'\n    schemas: [{name: inventory, p"
    )
    assert "x-editor" in manifest_to_policy({"manifest_files": bundled(tmp_path, app=app)}).roles


#: Each: what stands in the place of what in the second file, where the message points, what it says.
OUTSIDE: List[Tuple[str, str, str, str]] = [
    ("roles: [app]", "roles: []", "roles[0].name", "scope.roles has no 'app'"),
    ("[bindings]", "[]", "schemas[0]", "it has not the facet bindings of 'inventory'"),
    ("profiles: [editor]}", "profiles: [editor], owner: app}", "schemas[0].owner", "it has not the facet owner"),
    (
        "memberships:",
        "grants: [{role: app, privileges: [USAGE], on: {type: schema, name: other}}]\n    memberships:",
        "grants[0]",
        "it has not the facet bindings of 'other'",
    ),
    (
        "memberships:",
        "default_privileges: [{schema: o, grant: [{role: app, privileges: [SELECT], on_type: table}], owner: app}]\n"
        "    memberships:",
        "default_privileges[0]",
        "it has not the facet bindings of 'o'",
    ),
    (
        "memberships:",
        "default_privileges: [{scope: {type: global}, grant: [{role: app, privileges: [SELECT], on_type: table}],"
        " owner: app_owner}]\n    memberships:",
        "default_privileges[0]",
        "global rules need the owner 'app_owner' in scope.roles",
    ),
    ("memberships:", "retirements: [{role: old}]\n    memberships:", "retirements[0].role", "scope.roles has no 'old'"),
    (
        "[bindings]",
        "[bindings, owner]",
        "scope.schemas[0]",
        "the owner facet of the schema 'inventory' is claimed twice",
    ),
    ("[bindings]", "[bindings, both]", "scope.schemas[0].facets", "must be owner or bindings"),
    ("policy: {name: app}", "default_owner: app", "default_owner", "unknown key 'default_owner'"),
]


@pytest.mark.parametrize(("old", "new", "path", "words"), OUTSIDE, ids=[new for _old, new, _path, _words in OUTSIDE])
def test_a_file_of_a_bundle_keeps_to_its_scope(tmp_path: Path, old: str, new: str, path: str, words: str) -> None:
    assert old in APP
    problems = bundle_problems(tmp_path, app=APP.replace(old, new))
    assert words in problems[f"app.yml: {path}"]


def test_files_that_a_bundle_cannot_have(tmp_path: Path) -> None:
    root = ROOT.replace("{file: policies/app.yml}", "{file: gone.yml}, {file: bundle.yml}, {fil: x}, {file: k8s.yml}")
    write(tmp_path, "{apiVersion: v1, kind: Secret}", "k8s.yml")
    problems = bundle_problems(tmp_path, root=root)
    assert problems["gone.yml"].startswith("cannot be read")
    assert problems["bundle.yml: sources[2].file"] == "'bundle.yml' is listed twice"
    assert "unknown key 'fil'" in problems["bundle.yml: sources[3].fil"]
    assert problems["bundle.yml: sources[3]"].startswith("must be a dict with file")
    assert problems["k8s.yml"] == "is no part of a pgroles bundle"
    # What is missing may be what is referred to.
    assert not any("unknown role" in message for message in problems.values())
    assert "must be a list" in bundle_problems(tmp_path, root="shared: {}")["bundle.yml: sources"]


def test_a_part_of_a_bundle_is_not_read_alone(tmp_path: Path) -> None:
    assert "list the bundle's own file" in found(tmp_path, APP)["a.yml"]
    again = str(tmp_path / "policies" / "app.yml")
    assert bundle_problems(tmp_path, again) == {"bundle.yml: sources[1].file": "'policies/app.yml' is listed twice"} | {
        "app.yml": "is a part of a pgroles bundle: list the bundle's own file, which names its parts"
    }


# ---- PostgresPolicy --------------------------------------------------------------------------------------------------


def resource(spec: str, name: str = "shop") -> str:
    lines = textwrap.indent(textwrap.dedent(spec).strip(), "  ")
    return f"apiVersion: pgroles.io/v1alpha1\nkind: PostgresPolicy\nmetadata: {{name: {name}}}\nspec:\n{lines}\n"


SPEC = """
    connection: {secretRef: {name: db}, secretKey: URL}
    interval: 5m
    suspend: false
    mode: apply
    approval: auto
    default_owner: owner
    roles:
      - {name: owner}
      - {name: app, login: true, connection_limit: 5, password: {secretRef: {name: pw}, secretKey: app}}
      - {name: old, external: true, preserve_undeclared_grants: true}
    schemas: [{name: s}]
    """


def test_a_policy(tmp_path: Path) -> None:
    whole = policy(tmp_path, resource(SPEC), passwords={"app": "un-guess-able"})
    assert set(whole.roles) == {"owner", "app", "old"}
    assert whole.roles["app"].password is not None
    assert whole.roles["app"].password.text == "un-guess-able"
    assert whole.roles["old"].additive
    assert whole.schemas["s"].owner == "owner"
    # Without the option the login is one whose password nobody touches.
    assert policy(tmp_path, resource(SPEC)).roles["app"].password is None


def test_keys_of_a_policy_may_be_in_camel_case(tmp_path: Path) -> None:
    camel = SPEC
    for key in ("default_owner", "connection_limit", "preserve_undeclared_grants"):
        head, *rest = key.split("_")
        camel = camel.replace(key, head + "".join(map(str.title, rest)))
    camel = camel.replace("preserveUndeclaredGrants: true", "privilegeReconciliation: additive")
    for text in (SPEC, camel):
        whole = policy(tmp_path, resource(text))
        assert (whole.roles["old"].additive, whole.roles["app"].attributes["connection_limit"]) == (True, 5)
        assert whole.schemas["s"].owner == "owner"
    problems = found(tmp_path, resource(camel.replace("connectionLimit: 5", "connectionLimit: five, validUntil: x")))
    assert list(problems) == ["a.yml: spec.roles[1].validUntil", "a.yml: spec.roles[1].connectionLimit"]
    assert list(found(tmp_path, resource("default_owner: a\ndefaultOwner: b\nroles: []"))) == [
        "a.yml: spec.defaultOwner",
        "a.yml: spec.default_owner",
    ]


#: Each: a line of the spec, options of the module, whether they refuse it.
RUNS: List[Tuple[str, Dict[str, Any], bool]] = [
    ("reconciliation_mode: adopt", {}, True),
    ("reconciliation_mode: adopt", {"reconciliation_mode": "adopt"}, False),
    ("reconciliation_mode: authoritative", {}, False),
    ("reconciliation_mode: authoritative", {"reconciliation_mode": "additive"}, True),
    ("reconciliationMode: additive", {}, True),
    ("interval: 1h", {"reconciliation_mode": "additive"}, False),
    ("mode: observe", {}, True),
    ("mode: observe", {"check": True}, False),
    ("mode: plan", {}, True),
    ("mode: plan", {"check": True}, False),
    ("mode: apply", {}, False),
    ("mode: now", {}, True),
    ("suspend: true", {}, True),
    ("suspend: true", {"check": True}, True),
    ("suspend: 'no'", {}, True),
    ("approval: manual", {}, True),
    ("approval: manual", {"check": True}, False),
    ("approval: manual", {"expected_digest": "abc"}, False),
    ("approval: none", {"check": True}, True),
    ("allow_schema_owner_transfers: true", {}, False),
    ("allow_schema_owner_transfers: true", {"reconciliation_mode": "adopt"}, True),
    ("allow_schema_owner_transfers: true", {"reconciliation_mode": "adopt", "adopt_schema_owners": True}, False),
    ("allow_schema_owner_transfers: false", {"reconciliation_mode": "adopt", "adopt_schema_owners": True}, True),
    ("allow_schema_owner_transfers: false", {"reconciliation_mode": "adopt"}, False),
    ("allow_schema_owner_transfers: 1", {}, True),
    ("auth_providers: []", {}, True),
]


@pytest.mark.parametrize(("line", "options", "refused"), RUNS)
def test_how_a_policy_wants_to_be_run(tmp_path: Path, line: str, options: Dict[str, Any], refused: bool) -> None:
    text = resource(f"roles: [{{name: a}}]\n{line}")
    if refused:
        assert list(found(tmp_path, text, **options)) == [f"a.yml: spec.{line.partition(':')[0]}"]
    else:
        assert set(policy(tmp_path, text, **options).roles) == {"a"}


def test_a_generated_password_needs_the_option(tmp_path: Path) -> None:
    text = resource("roles: [{name: a, login: true, password: {generate: {length: 20, secretName: x}}}]")
    problems = found(tmp_path, text)
    assert list(problems) == ["a.yml: spec.roles[0].password.generate"]
    assert "give the option passwords the role's password" in problems["a.yml: spec.roles[0].password.generate"]
    assert policy(tmp_path, text, passwords={"a": "un-guess-able"}).roles["a"].password is not None


def test_several_documents(tmp_path: Path) -> None:
    one = resource("roles: [{name: a}]", "one")
    two = resource(
        "roles: [{name: b, logn: true}]\ngrants: [{role: c, privileges: [CONNECT], on: {type: database}}]", "two"
    )
    assert set(
        policy(tmp_path, f"---\n{one}---\n{two.replace('logn', 'login').replace('role: c', 'role: a')}---\n").roles
    ) == {
        "a",
        "b",
    }
    assert list(found(tmp_path, f"{one}---\n{two}")) == [
        "a.yml: document 2 (PostgresPolicy two): spec.roles[0].logn",
        "a.yml: document 2 (PostgresPolicy two): spec.grants[0].role",
    ]
    assert "is declared twice" in next(iter(found(tmp_path, f"{one}---\n{one}").values()))
    owners = [resource(f"default_owner: {name}\nroles: [{{name: {name}}}]", name) for name in "ab"]
    assert found(tmp_path, "---\n".join(owners)) == {
        "a.yml: document 2 (PostgresPolicy b): spec.default_owner": "differs from document 1 (PostgresPolicy a):"
        " spec.default_owner: a manifest has one default_owner"
    }


def test_a_key_twice_in_a_document_is_found_there(tmp_path: Path) -> None:
    text = f"{resource('roles: []', 'one')}---\n{resource('roles: []', 'two')}  roles: []\n"
    assert list(found(tmp_path, text)) == ["a.yml: document 2 (PostgresPolicy two): spec.roles"]


def test_a_list_of_resources(tmp_path: Path) -> None:
    items = textwrap.indent(resource("roles: [{name: a, x: 1}]"), "    ").replace("    apiVersion", "  - apiVersion", 1)
    text = f"apiVersion: v1\nkind: List\nitems:\n{items}  - 5\n"
    assert list(found(tmp_path, text)) == ["a.yml: items[1]", "a.yml: items[0] (PostgresPolicy shop): spec.roles[0].x"]


def test_resources_that_nothing_is_read_from(tmp_path: Path) -> None:
    hush = "Hush-hush-7"
    secret = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: pw}}\nstringData: {{password: {hush}}}\n"
    other = "apiVersion: pgroles.io/v1alpha1\nkind: PostgresPolicyPlan\nspec: {}\n"
    text = f"{secret}---\n{other}---\n{resource('roles: [{name: a}]')}"
    problems = found(tmp_path, text)
    # A Secret stands beside many resources: it is passed over, and its values are masked.
    assert list(problems) == ["a.yml: document 2 (PostgresPolicyPlan): kind"]
    assert "PostgresPolicy of pgroles.io" in problems["a.yml: document 2 (PostgresPolicyPlan): kind"]
    secrets = Secrets()
    with pytest.raises(ManifestInvalid):
        manifest_to_policy({"manifest_files": [str(tmp_path / "a.yml")]}, secrets)
    assert set(secrets.texts()) == {hush}


def test_another_version_of_the_policy(tmp_path: Path) -> None:
    assert list(found(tmp_path, resource("roles: []").replace("v1alpha1", "v2"))) == ["a.yml: apiVersion"]
    assert list(found(tmp_path, "{apiVersion: pgroles.io/v1alpha1, kind: PostgresPolicy}")) == ["a.yml: spec"]


def test_what_cannot_be_read_may_declare_the_roles_that_others_name(tmp_path: Path) -> None:
    broken = "apiVersion: pgroles.io/v1alpha1\nkind: PostgresPolicy\nspec: 5\n"
    ours = "grants: [{role: somebody, privileges: [CONNECT], object: {type: database}}]"
    assert list(found(tmp_path, broken, ours)) == ["a.yml: spec"]


def test_the_password_of_a_policys_own_connection_is_a_secret(tmp_path: Path) -> None:
    secrets = Secrets()
    text = resource(
        "connection: {params: {host: h, password: Hush-hush-7}, url: 'postgres://u:Hush-hush-9@h/d'}\nroles: [{name: a, paswd: Hush-hush-8}]"
    )
    with pytest.raises(ManifestInvalid) as caught:
        manifest_to_policy({"manifest_files": [write(tmp_path, text)]}, secrets)
    assert set(secrets.texts()) == {"Hush-hush-7", "Hush-hush-8", "Hush-hush-9"}
    assert "Hush" not in str(caught.value)
