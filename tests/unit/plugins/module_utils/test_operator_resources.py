# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resources of the operator postgresql.aboutbits.it as manifest files: what each field becomes, and what is refused."""

from __future__ import annotations

import base64
import random
import textwrap
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

import pytest

pytest.importorskip("yaml")

import yaml
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest import load
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.foreign import operator_spec
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.model import Manifest, RoleEntry
from ansible_collections.pg_access.reconcile.plugins.module_utils.masking import Secrets
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import Policy, manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import ManifestInvalid, Problem

API = "postgresql.aboutbits.it/v1"
Resource = Dict[str, Any]


def resource(kind: str, spec: Mapping[str, Any], name: str = "x", **metadata: Any) -> Resource:
    """One resource as a person writes it."""
    whole = {"clusterRef": {"name": "main"}, **spec}
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": {key: value for key, value in whole.items() if value is not ...},
    }


def role(name: str = "app", metadata: str = "app", **spec: Any) -> Resource:
    return resource("Role", {"name": name, **spec}, metadata)


def grant(**spec: Any) -> Resource:
    told = {"database": "shop", "role": "app", "schema": "s", "objectType": "table", "objects": [], **spec}
    return resource("Grant", {"privileges": ["select"], **told}, "g")


def default(**spec: Any) -> Resource:
    told = {"database": "shop", "role": "app", "owner": "own", "schema": "s", "objectType": "table", **spec}
    return resource("DefaultPrivilege", {"privileges": ["select"], **told}, "d")


def schema(**spec: Any) -> Resource:
    return resource("Schema", {"database": "shop", "name": "s", **spec}, "s")


APP = role()
OWNER = role("own", "own")


def write(folder: Path, content: Any, name: str = "access.yml") -> str:
    path = folder / name
    text = textwrap.dedent(content) if isinstance(content, str) else yaml.safe_dump_all(content)
    path.write_text(text, encoding="utf-8")
    return str(path)


def read(folder: Path, *resources: Resource) -> Manifest:
    return load.from_files([write(folder, resources)])


def policy(folder: Path, *contents: Any, secrets: Any = None, **options: Any) -> Policy:
    """The policy of one file for each content: resources, or the text of a native file."""
    paths = [write(folder, content, f"{chr(ord('a') + number)}.yml") for number, content in enumerate(contents)]
    return manifest_to_policy({"manifest_files": paths, **options}, secrets)


def problems(folder: Path, *contents: Any, **options: Any) -> Tuple[Problem, ...]:
    with pytest.raises(ManifestInvalid) as caught:
        policy(folder, *contents, **options)
    return caught.value.problems


def only(folder: Path, *contents: Any, **options: Any) -> Problem:
    found = problems(folder, *contents, **options)
    assert len(found) == 1, [problem.text for problem in found]
    return found[0]


# ---- Role ----------------------------------------------------------------------------------------------------------


def one_role(folder: Path, **spec: Any) -> RoleEntry:
    (found,) = read(folder, role(**spec)).roles
    return found


def test_a_role_with_nothing_but_a_name_has_no_login_no_comment_and_no_memberships(tmp_path: Path) -> None:
    found = one_role(tmp_path)
    assert (found.name, found.source) == ("app", "access.yml: spec")
    assert (found.login, found.comment, found.member_of, found.members) == (None, "", (), ())
    assert (found.superuser, found.inherit, found.connection_limit, found.valid_until) == (None, None, None, None)
    assert (found.config, found.password, found.external) == (None, None, False)


FLAGS: List[Tuple[str, Any, str, Any]] = [
    ("superuser", True, "superuser", True),
    ("createdb", True, "createdb", True),
    ("createrole", False, "createrole", False),
    ("inherit", False, "inherit", False),
    ("replication", True, "replication", True),
    ("bypassrls", True, "bypassrls", True),
    ("connectionLimit", 0, "connection_limit", 0),
    ("connectionLimit", -1, "connection_limit", -1),
    ("validUntil", "2026-12-31T23:59:59Z", "valid_until", 1798761599000000),
    ("validUntil", None, "valid_until", None),
    ("inherit", None, "inherit", None),
]


@pytest.mark.parametrize(("flag", "value", "field", "meaning"), FLAGS)
def test_every_flag(tmp_path: Path, flag: str, value: Any, field: str, meaning: Any) -> None:
    assert getattr(one_role(tmp_path, flags={flag: value}), field) == meaning


def test_an_unquoted_date_is_a_point_in_time(tmp_path: Path) -> None:
    text = f"""
    apiVersion: {API}
    kind: Role
    metadata: {{name: app}}
    spec:
      name: app
      clusterRef: {{name: main}}
      flags:
        validUntil: 2026-12-31T23:59:59+01:00
    """
    (found,) = load.from_files([write(tmp_path, text)]).roles
    assert found.valid_until == 1798757999000000


@pytest.mark.parametrize("flags", [None, {}], ids=["null", "empty"])
def test_no_flags_are_the_operators_defaults(tmp_path: Path, flags: Any) -> None:
    assert one_role(tmp_path, flags=flags) == one_role(tmp_path)


@pytest.mark.parametrize("comment", [None, "", "  \n"])
def test_a_comment_that_says_nothing_takes_the_old_one_away(tmp_path: Path, comment: Any) -> None:
    assert one_role(tmp_path, comment=comment).comment == ""
    assert one_role(tmp_path, comment="Order service").comment == "Order service"


def test_a_secret_reference_means_login_and_the_password_comes_from_the_option(tmp_path: Path) -> None:
    app = role(passwordSecretRef={"name": "app-secret", "namespace": "n"}, passwordEncryption="server")
    found = policy(tmp_path, [app], passwords={"app": "correct horse"}).roles["app"]
    assert found.attributes == {"login": True}
    assert found.password is not None and (found.password.text, found.password.encryption) == (
        "correct horse",
        "server",
    )
    without = policy(tmp_path, [app]).roles["app"]
    assert (without.attributes, without.password) == ({"login": True}, None)


def test_a_password_for_a_role_without_a_secret_reference_is_refused(tmp_path: Path) -> None:
    found = only(tmp_path, [APP], passwords={"app": "correct horse"})
    assert "the entry of the role 'app' (a.yml: spec) must say login: true" in found.message


def test_memberships_are_exactly_what_both_lists_say(tmp_path: Path) -> None:
    readers = role("readers", "readers", flags={"role": ["app"]})
    app = role(flags={"inRole": ["readers", "pg_monitor"]})
    found = policy(tmp_path, [readers, app])
    assert set(found.edges) == {("readers", "app"), ("pg_monitor", "app")}
    # Also where the resource names none: the operator takes every other membership away.
    assert found.member_of == {
        "readers": "a.yml: document 1 (Role readers): spec.flags.inRole",
        "app": "a.yml: document 2 (Role app): spec.flags.inRole",
    }
    assert set(found.stanzas) == set(found.exclusive) == {"readers", "app"}
    assert found.stanzas["readers"] == "a.yml: document 1 (Role readers): spec.flags.role"


# ---- Grant, DefaultPrivilege, Schema -------------------------------------------------------------------------------


def rules(found: Policy) -> List[Tuple[Any, ...]]:
    return sorted(
        (rule.role, rule.kind, rule.schema or "", rule.name, tuple(sorted(rule.privileges)), rule.or_view)
        for rule in found.rules
    )


GRANTS: List[Tuple[Dict[str, Any], List[Tuple[Any, ...]]]] = [
    (
        {"objects": ["a", "B c"], "privileges": ["select", "INSERT"]},
        [
            ("app", "table", "s", "B c", ("INSERT", "SELECT"), True),
            ("app", "table", "s", "a", ("INSERT", "SELECT"), True),
        ],
    ),
    (
        {"privileges": ["maintain"]},
        [
            ("app", "materialized_view", "s", "*", ("MAINTAIN",), False),
            ("app", "table", "s", "*", ("MAINTAIN",), False),
            ("app", "view", "s", "*", ("MAINTAIN",), False),
        ],
    ),
    (
        {"objectType": "sequence", "privileges": ["usage"]},
        [("app", "sequence", "s", "*", ("USAGE",), False)],
    ),
    (
        {"objectType": "sequence", "objects": ["a"], "privileges": ["usage", "update", "select"]},
        [("app", "sequence", "s", "a", ("SELECT", "UPDATE", "USAGE"), False)],
    ),
    (
        {"objectType": "schema", "objects": ..., "privileges": ["usage", "create"]},
        [("app", "schema", "", "s", ("CREATE", "USAGE"), False)],
    ),
    (
        {"objectType": "database", "objects": ..., "schema": ..., "privileges": ["connect", "temporary"]},
        [("app", "database", "", "shop", ("CONNECT", "TEMPORARY"), False)],
    ),
    # Older versions of the operator want both, and want them empty.
    (
        {"objectType": "database", "objects": [], "schema": "", "privileges": ["create"]},
        [("app", "database", "", "shop", ("CREATE",), False)],
    ),
]


@pytest.mark.parametrize(("spec", "meaning"), GRANTS)
def test_every_object_type_of_a_grant(tmp_path: Path, spec: Dict[str, Any], meaning: List[Tuple[Any, ...]]) -> None:
    assert rules(policy(tmp_path, [APP, grant(**spec)])) == meaning


def test_grants_for_one_role_add_up(tmp_path: Path) -> None:
    more = {**grant(objects=["b"], privileges=["insert"]), "metadata": {"name": "other"}}
    found = policy(tmp_path, [APP, grant(objects=["a"]), more])
    assert [rule[3:5] for rule in rules(found)] == [("a", ("SELECT",)), ("b", ("INSERT",))]


def test_default_privileges(tmp_path: Path) -> None:
    everywhere = {**default(objectType="schema", schema=..., privileges=["usage"]), "metadata": {"name": "e"}}
    found = policy(tmp_path, [APP, OWNER, default(), everywhere])
    told = [(rule.owner, rule.schema, rule.kind, rule.role, sorted(rule.privileges)) for rule in found.default_rules]
    assert told == [("own", "s", "table", "app", ["SELECT"]), ("own", None, "schema", "app", ["USAGE"])]
    assert found.default_rules[0].source == "a.yml: document 3 (DefaultPrivilege d): spec"


def test_schemas(tmp_path: Path) -> None:
    other = {**schema(name="t", database=...), "metadata": {"name": "t"}}
    found = policy(tmp_path, [OWNER, schema(owner="own", reclaimPolicy="Retain"), other])
    assert [(one.name, one.owner, one.create_owner) for one in found.schemas.values()] == [
        ("s", "own", "own"),
        ("t", None, None),
    ]


def test_the_database_is_what_the_run_has_to_be_connected_to(tmp_path: Path) -> None:
    privilege = grant(objectType="database", schema=..., objects=..., privileges=["connect"], database="elsewhere")
    database = resource("Database", {"name": "shop", "owner": "own"})
    found = policy(tmp_path, [APP, OWNER, privilege, schema(), database])
    assert [(one.name, one.connected, one.owner) for one in found.databases] == [
        ("shop", True, None),
        ("shop", False, "own"),
    ]


# ---- what stands beside ----------------------------------------------------------------------------------------------


def test_what_says_nothing_on_access_is_passed_over(tmp_path: Path) -> None:
    kept = role(
        flags={"createdb": True},
    )
    kept["metadata"].update(
        namespace="prod",
        labels={"team": "orders"},
        annotations={"note": "x"},
        uid="1",
        resourceVersion="5",
        generation=2,
        creationTimestamp="2026-01-01T00:00:00Z",
        finalizers=["postgresql.aboutbits.it/finalizer"],
        managedFields=[{"fieldsV1": {"f:spec": {".": {}}}}],
    )
    kept["status"] = {"phase": "READY", "passwordFingerprint": "abc"}
    beside = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "x"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}},
        resource("ClusterConnection", {"clusterRef": ..., "host": "h", "port": 5432, "database": "postgres"}, "main"),
    ]
    (found,) = read(tmp_path, *beside, kept).roles
    assert (found.name, found.createdb) == ("app", True)
    assert found.source == "access.yml: document 4 (Role app): spec"


def test_a_list_as_kubectl_writes_it(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": [APP, OWNER]}
    found = load.from_files([write(tmp_path, [listed])])
    assert [one.name for one in found.roles] == ["app", "own"]
    found_problem = only(tmp_path, [{**listed, "items": [APP, role("own", "own", flags={"createdb": 1})]}])
    assert found_problem.path == "a.yml: items[1] (Role own): spec.flags.createdb"


def test_a_list_as_kubernetes_interface_writes_it(tmp_path: Path) -> None:
    """It says only once of what kind the items are."""
    bare = [{key: value for key, value in one.items() if key not in ("apiVersion", "kind")} for one in (APP, OWNER)]
    listed = {"apiVersion": API, "kind": "RoleList", "metadata": {"resourceVersion": "1"}, "items": bare}
    assert set(policy(tmp_path, [listed]).roles) == {"app", "own"}
    assert set(policy(tmp_path, [{**listed, "items": [APP, OWNER]}]).roles) == {"app", "own"}
    found = only(tmp_path, [{**listed, "kind": "RolList", "items": bare[:1]}, OWNER])
    assert "unknown kind 'Rol'" in found.message and "did you mean 'Role'" in found.message


def test_what_nothing_is_read_from_may_have_braces(tmp_path: Path) -> None:
    password = "a{{ b }}{% c"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": password}}
    noted = {**APP, "metadata": {"name": "app", "annotations": {"note": "made of {{ .Values.roles }}"}}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [noted, secret]}
    hidden = {"apiVersion": "v1", "kind": "SecretList", "items": [{"stringData": {"password": password}}]}
    for content in ([noted, secret], [listed], [noted, hidden]):
        secrets = Secrets()
        assert set(policy(tmp_path, content, secrets=secrets).roles) == {"app"}
        assert password in secrets.texts()
    assert "contains a template" in only(tmp_path, [{**APP, "spec": {**APP["spec"], "name": "{{ y }}"}}]).message
    one_document = yaml.safe_dump({**noted, "spec": {**APP["spec"], "comment": "COMMENT"}})
    aliased = one_document.replace("note: ", "note: &a ").replace("comment: COMMENT", "comment: *a")
    assert "comment: *a" in aliased and "note: &a" in aliased
    assert "contains a template" in only(tmp_path, aliased).message


STREAMS = [
    ("{role}---\nroles: []\n", "has several documents, as only a file of Kubernetes resources may: document 2 has no"),
    ("{role}---\n{role}---\na: [\n", "is not valid YAML (line 20, column 1)"),
    ("---\n---\n", "is empty"),
    ("{role}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: '{{{{ hush }}}}'}}\n", "contains a template"),
]


#: A document in which few lines stand for many values, though not for too many.
MANY = """---
apiVersion: postgresql.aboutbits.it/v1
kind: Role
metadata: {{name: m{number}}}
status: {{a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1], b: &b [*a, *a, *a, *a, *a, *a, *a], c: &c [*b, *b, *b, *b, *b, *b, *b],
  d: &d [*c, *c, *c, *c, *c, *c, *c], e: &e [*d, *d, *d, *d, *d, *d, *d]}}
spec: {{name: m{number}, clusterRef: {{name: main}}}}
"""


def test_aliases_of_all_documents_count_together(tmp_path: Path) -> None:
    few = "".join(MANY.format(number=number) for number in range(2))
    assert len(policy(tmp_path, few).roles) == 2
    many = "".join(MANY.format(number=number) for number in range(60))
    assert "stands for too much" in only(tmp_path, many).message


@pytest.mark.parametrize(("text", "message"), STREAMS)
def test_documents_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    found = only(tmp_path, text.format(role=yaml.safe_dump(APP)))
    assert message in found.text and "hush" not in found.text


@pytest.mark.parametrize("text", ["---\n{role}", "{role}---\n", "---\n# nothing\n---\n{role}...\n"])
def test_empty_documents_are_none(tmp_path: Path, text: str) -> None:
    assert set(policy(tmp_path, text.format(role=yaml.safe_dump(APP))).roles) == {"app"}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}], "Secret"),
        ([{"apiVersion": "v1", "kind": "List", "items": []}], "an empty List"),
    ],
)
def test_a_file_that_declares_nothing_is_told(tmp_path: Path, content: Any, what: str) -> None:
    found = only(tmp_path, content)
    assert (found.path, found.message) == ("a.yml", f"declares nothing: there is nothing in it but {what}")


def test_secrets_are_masked_and_never_told(tmp_path: Path) -> None:
    encoded = base64.b64encode(b"in the data 12").decode()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "app-secret",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": '{"kind": "Secret", "stringData": {"password": "the one before"}}'
            },
        },
        "type": "kubernetes.io/basic-auth",
        "data": {"password": encoded},
        "stringData": {"password": "in the string data 12", "username": "app"},
    }
    wrong = role(
        password="stands in the role 12", flags={"passwort": "stands in the flags 12", "createdb": "or there 12"}
    )
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"host": "db.example.com"}}
    secrets = Secrets()
    with pytest.raises(ManifestInvalid) as caught:
        policy(tmp_path, [secret, settings, wrong], secrets=secrets)
    texts = {
        "in the string data 12",
        "in the data 12",
        encoded,
        "the one before",
        "stands in the role 12",
        "stands in the flags 12",
    }
    assert texts <= set(secrets.texts()) and not {"app", "db.example.com"} & set(secrets.texts())
    told = " ".join(problem.text for problem in caught.value.problems)
    assert len(caught.value.problems) == 3
    assert not [text for text in {*texts, "or there 12"} if text in told]
    assert "give it in the option passwords under the role's name" in told


# ---- what is refused -------------------------------------------------------------------------------------------------

#: Each: what stands beside a Role called app, the place, and what is said.
REFUSED: List[Tuple[Any, str, str]] = [
    (role("b", "b", flags={"connectonLimit": 1}), "(Role b): spec.flags.connectonLimit", "mean 'connectionLimit'?"),
    (role("b", "b", flag={}), "(Role b): spec.flag", "did you mean 'flags'?"),
    (role("b", "b", flags=[]), "(Role b): spec.flags", "must be a dict, not a list"),
    (
        role("b", "b", flags={"createdb": "yes"}),
        "(Role b): spec.flags.createdb",
        "must be true or false, not the text 'yes'",
    ),
    (role("b", "b", flags={"connectionLimit": "5"}), "spec.flags.connectionLimit", "must be a whole number"),
    (role("b", "b", flags={"connectionLimit": -2}), "spec.flags.connectionLimit", "must be between -1 and"),
    (role("b", "b", flags={"validUntil": "2026-12-31"}), "spec.flags.validUntil", "is not a point in time"),
    (role("b", "b", flags={"inRole": "app"}), "spec.flags.inRole", "must be a list, not text"),
    (role("b", "b", flags={"inRole": ["app", 5]}), "spec.flags.inRole[1]", "must be text, not the number 5"),
    (role("b", "b", flags={"inRole": ["ap"]}), "spec.flags.inRole[0]", "unknown role 'ap'; did you mean 'app'?"),
    (role("b", "b", flags={"role": ["b"]}), "spec.flags.role[0]", "cannot be a member of itself"),
    (role("b", "b", flags={"login": True}), "spec.flags.login", "passwordSecretRef says that the role may log in"),
    (role("b", "b", reclaimPolicy="Retain"), "spec.reclaimPolicy", "this collection where retirements says so"),
    (role("b", "b", passwordEncryption="md5"), "spec.passwordEncryption", "must be one of scram-sha-256, server"),
    (role("b", "b", passwordSecretRef="s"), "spec.passwordSecretRef", "must be a dict"),
    (role("b", "b", passwordSecretRef={}), "spec.passwordSecretRef.name", "is required"),
    (role("b", "b", clusterRef=...), "spec.clusterRef", "is required"),
    (role("pg_b", "b"), "(Role b): spec.name", "is reserved"),
    (role("public", "b"), "(Role b): spec.name", "is a reserved word"),
    (role("b" * 64, "b"), "(Role b): spec.name", "64 bytes long"),
    (role(..., "b"), "(Role b): spec.name", "is required"),
    (role("app", "b"), "(Role b): spec", "the role 'app' is declared twice"),
    (role("b", "app"), "(Role app): metadata.name", "the Role 'app' stands in a.yml: document 1 (Role app) as well"),
    (grant(role="nobody"), "(Grant g): spec.role", "unknown role 'nobody'"),
    (grant(role="public"), "(Grant g): spec.role", "is a reserved word"),
    (grant(objects=["*"]), "(Grant g): spec.objects", "'*' would be a table of this name: write [] for every table"),
    (grant(objects=...), "(Grant g): spec.objects", "or [] for every one in the schema"),
    (grant(objects=None), "(Grant g): spec.objects", "or [] for every one in the schema"),
    (grant(objects="a"), "(Grant g): spec.objects", "must be a list"),
    (grant(objects=[""]), "(Grant g): spec.objects[0]", "must not be empty"),
    (grant(privileges=["execute"]), "(Grant g): spec.privileges[0]", "which has select, insert, update"),
    (grant(privileges=["selekt"]), "(Grant g): spec.privileges[0]", "did you mean 'select'?"),
    (grant(privileges=["all"]), "(Grant g): spec.privileges[0]", "'all' is not a privilege of the objectType table"),
    (grant(privileges=[]), "(Grant g): spec.privileges", "must not be empty"),
    (grant(privileges=...), "(Grant g): spec.privileges", "is required"),
    (grant(objectType="Table"), "(Grant g): spec.objectType", "did you mean 'table'?"),
    (grant(objectType="function"), "(Grant g): spec.objectType", "must be one of database, schema, table, sequence"),
    (grant(schema=...), "(Grant g): spec.schema", "is required for the objectType table"),
    (grant(schema=""), "(Grant g): spec.schema", "is required for the objectType table"),
    (grant(schema="*"), "(Grant g): spec.schema", "a rule reaches one schema"),
    (grant(database=...), "(Grant g): spec.database", "is required"),
    (grant(withGrantOption=True), "(Grant g): spec.withGrantOption", "the operator gives no grant option"),
    (
        grant(objectType="schema", objects=["a"], privileges=["usage"]),
        "(Grant g): spec.objects",
        "must not be there for a schema",
    ),
    (
        grant(objectType="database", objects=..., privileges=["connect"]),
        "(Grant g): spec.schema",
        "must not be there for the objectType database",
    ),
    (default(owner="nobody"), "(DefaultPrivilege d): spec.owner", "unknown role 'nobody'"),
    (default(owner=..., role="app"), "(DefaultPrivilege d): spec.owner", "is required"),
    (default(owner="app", schema=...), "(DefaultPrivilege d): spec.schema", "is required for the objectType table"),
    (
        default(owner="app", objectType="schema", privileges=["usage"]),
        "(DefaultPrivilege d): spec.schema",
        "must not be there for the objectType schema",
    ),
    (default(owner="app", objectType="function"), "spec.objectType", "must be one of schema, table, sequence"),
    (default(owner="app", privileges=["usage"]), "spec.privileges[0]", "is not a privilege of the objectType table"),
    (
        schema(reclaimPolicy="Delete"),
        "(Schema s): spec.reclaimPolicy",
        "never drops schemas or databases: write Retain",
    ),
    (schema(reclaimPolicy="Recycle"), "(Schema s): spec.reclaimPolicy", "must be one of Retain, Delete"),
    (schema(owner="nobody"), "(Schema s): spec.owner", "unknown role 'nobody'"),
    (schema(name="pg_x"), "(Schema s): spec.name", "is reserved"),
    (schema(profiles=["a"]), "(Schema s): spec.profiles", "unknown key 'profiles'"),
    (
        resource("Database", {"name": "shop", "reclaimPolicy": "Delete"}),
        "(Database x): spec.reclaimPolicy",
        "never drops schemas or databases",
    ),
    (resource("Rolle", {}), "(Rolle x): kind", "unknown kind 'Rolle'; did you mean 'Role'?"),
    ({**role("b", "b"), "apiVersion": f"{API}alpha1"}, "(Role b): apiVersion", f"known is {API}"),
    ({**role("b", "b"), "spek": {}}, "(Role b): spek", "did you mean 'spec'?"),
    (
        {"apiVersion": "apps/v1", "kind": "Deployment"},
        "(Deployment): kind",
        "nothing is read from the kind 'Deployment'",
    ),
    (
        resource("Role", {"name": "b"}, "b", deletionTimestamp="2026-01-01T00:00:00Z"),
        "(Role b): metadata.deletionTimestamp",
        "is being deleted",
    ),
    ({**role("b", "b"), "metadata": []}, "(Role): metadata", "must be a dict, not a list"),
    ({"apiVersion": API, "kind": "Role", "metadata": {"name": "b"}}, "(Role b): spec", "is required"),
]


@pytest.mark.parametrize(("content", "place", "message"), REFUSED, ids=[f"{r[1]}-{r[2]}"[:70] for r in REFUSED])
def test_what_cannot_be_carried_over_is_refused_by_name(tmp_path: Path, content: Any, place: str, message: str) -> None:
    found = only(tmp_path, [APP, content])
    assert found.path is not None and found.path.startswith("a.yml: document 2 "), found.text
    assert found.path.endswith(place) and message in found.text, found.text
    assert found.file == str(tmp_path / "a.yml")


def test_all_problems_come_at_once_with_their_resources(tmp_path: Path) -> None:
    found = problems(
        tmp_path, [role("b", "b", flags={"createdb": 1}), grant(role="ap", privileges=["x"]), schema(owner="c")]
    )
    assert [problem.path for problem in found] == [
        "a.yml: document 1 (Role b): spec.flags.createdb",
        "a.yml: document 2 (Grant g): spec.privileges[0]",
        "a.yml: document 3 (Schema s): spec.owner",
        "a.yml: document 2 (Grant g): spec.role",
    ]
    assert found[0].role == "b" and found[1].role == "ap"


def test_a_role_without_a_usable_name_makes_no_other_problems(tmp_path: Path) -> None:
    found = only(tmp_path, [role("b" * 64, "b"), grant(role="b" * 63), schema(owner="own")])
    assert found.path == "a.yml: document 1 (Role b): spec.name"


# ---- one cluster, one database ----------------------------------------------------------------------------------------


def test_resources_of_two_databases_are_not_one_manifest(tmp_path: Path) -> None:
    other = {**schema(name="t", database="crm"), "metadata": {"name": "t"}}
    found = only(tmp_path, [APP, grant(), other])
    assert found.path == "a.yml: document 3 (Schema t): spec.database"
    assert "'crm' is not 'shop' of a.yml: document 2 (Grant g): spec.database" in found.message
    # In two files as well.
    found = only(tmp_path, [APP, grant()], [other])
    assert found.path == "b.yml: spec.database"
    assert found.file == str(tmp_path / "b.yml")


def test_resources_of_two_clusters_are_not_one_manifest(tmp_path: Path) -> None:
    found = only(tmp_path, [APP, role("b", "b", clusterRef={"name": "other"})])
    assert found.path == "a.yml: document 2 (Role b): spec.clusterRef"
    assert "'other' is not 'main'" in found.message
    found = only(
        tmp_path,
        [
            APP,
            role("b", "b", clusterRef={"name": "main", "namespace": "n"}),
            role("c", "c", clusterRef={"name": "main", "namespace": "m"}),
        ],
    )
    assert "'m/main' is not 'n/main'" in found.message
    placed = {**role("b", "b"), "metadata": {"name": "b", "namespace": "n"}}
    policy(tmp_path, [APP, placed, role("c", "c", clusterRef={"name": "main", "namespace": "n"})])


# ---- beside other files ------------------------------------------------------------------------------------------------

NATIVE = """
roles:
  - {name: old, external: true}
grants:
  - {role: PUBLIC, privileges: [CREATE], object: {type: schema, name: s}, ensure: absent}
memberships:
  - {role: app, members: [{name: old}]}
"""


def test_resources_and_a_native_file_are_one_manifest(tmp_path: Path) -> None:
    found = policy(tmp_path, [APP, role("b", "b", flags={"inRole": ["old"]})], NATIVE)
    assert set(found.roles) == {"app", "b", "old"}
    assert set(found.edges) == {("app", "old"), ("old", "b")}
    assert [(rule.role, rule.present) for rule in found.rules] == [("public", False)]


def test_what_two_files_declare_is_declared_twice(tmp_path: Path) -> None:
    native = (
        "roles: [{name: app}]\ngrants: [{role: app, privileges: [SELECT], object: {type: table, schema: s, name: a}}]"
    )
    found = problems(tmp_path, [APP, grant(objects=["a"])], native)
    assert [problem.message.partition(":")[0] for problem in found] == [
        "the role 'app' is declared twice",
        "the same rule for 'app' (SELECT) is declared in two files",
    ]
    assert "in a.yml: document 1 (Role app): spec and in b.yml: roles[0]" in found[0].message


def test_a_group_that_somebody_else_looks_after(tmp_path: Path) -> None:
    found = only(tmp_path, [role(flags={"inRole": ["dba"]})])
    assert found.path is not None and found.path.endswith("spec.flags.inRole[0]") and "external: true" in found.message
    assert ("dba", "app") in policy(tmp_path, [role(flags={"inRole": ["dba"]})], assume_roles=["dba"]).edges


def test_both_sides_of_a_membership_may_stand_in_two_files(tmp_path: Path) -> None:
    readers, app = role("readers", "readers", flags={"role": ["app"]}), role(flags={"inRole": ["readers"]})
    assert set(policy(tmp_path, [readers], [app]).edges) == {("readers", "app")}
    native = "memberships: [{role: readers, members: [{name: app}]}]"
    found = only(tmp_path, [readers, role()], native)
    assert (
        "in a.yml: document 1 (Role readers): spec.flags.role[0] and in b.yml: memberships[0].members[0]" in found.text
    )


# ---- whatever somebody writes ------------------------------------------------------------------------------------------

SCALARS = (None, True, False, 0, -1, 2**40, 1.5, "", "app", "s", "*", "table", "schema", "select", "Delete")
KEYS = sorted({key for kind in operator_spec.KINDS.values() for key in kind["options"]})


def anything(draw: random.Random, depth: int = 0) -> Any:
    """A value that somebody may have written."""
    shape = draw.randrange(6) if depth < 3 else 5
    if shape == 0:
        return [anything(draw, depth + 1) for _number in range(draw.randrange(3))]
    if shape == 1:
        return {draw.choice((*KEYS, 5, "x")): anything(draw, depth + 1) for _number in range(draw.randrange(4))}
    return draw.choice(SCALARS)


@pytest.mark.parametrize("seed", range(150))
def test_whatever_stands_in_a_resource_is_a_manifest_or_told(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311
    content = {
        "apiVersion": API,
        "kind": draw.choice([*operator_spec.KINDS, operator_spec.CONNECTION]),
        "metadata": {"name": "x"},
        "spec": {key: anything(draw) for key in draw.sample(KEYS, 8)},
        draw.choice(["status", "metadata", "spec", "data", "x"]): anything(draw),
    }
    try:
        policy(tmp_path, [APP, OWNER, content])
    except ManifestInvalid as invalid:
        assert all(problem.path and problem.path.startswith("a.yml: ") for problem in invalid.problems)
