# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Manifests in YAML files: what YAML would pass over in silence, and how several files make one manifest."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

pytest.importorskip("yaml")

from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest import files, load
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.model import Manifest
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import ManifestInvalid, Problem


def write(folder: Path, text: str, name: str = "access.yml") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return str(path)


def read(folder: Path, *texts: str) -> Manifest:
    names = ["access.yml"] if len(texts) == 1 else [f"{chr(ord('a') + number)}.yml" for number in range(len(texts))]
    paths = [write(folder, text, name) for text, name in zip(texts, names)]
    return load.from_files(paths)


def problems(folder: Path, *texts: str) -> Tuple[Problem, ...]:
    with pytest.raises(ManifestInvalid) as caught:
        read(folder, *texts)
    return caught.value.problems


def only(folder: Path, *texts: str) -> Problem:
    found = problems(folder, *texts)
    assert len(found) == 1, [problem.text for problem in found]
    return found[0]


def file_problems(path: Path) -> List[Problem]:
    with pytest.raises(ManifestInvalid) as caught:
        load.from_files([str(path)])
    return list(caught.value.problems)


def test_a_file_holds_the_sections(tmp_path: Path) -> None:
    manifest = read(
        tmp_path,
        """
        default_owner: app
        roles:
          - {name: app, login: yes, connection_limit: 5, valid_until: 2027-01-31T00:00:00+01:00}
        grants:
          - role: PUBLIC
            privileges: [CREATE]
            on: {type: schema, name: public}
            ensure: absent
        """,
    )
    assert manifest.default_owner == "app"
    assert manifest.default_owner_source == "access.yml: default_owner"
    assert manifest.roles[0].source == "access.yml: roles[0]"
    assert (manifest.roles[0].login, manifest.roles[0].connection_limit) == (True, 5)
    assert manifest.roles[0].valid_until == 1801350000 * 10**6
    assert manifest.grants[0].object.name == "public"


# Each: the file, where the message points, what it says.
RULES: List[Tuple[str, str, str]] = [
    ("roles: [{name: 010}]", "roles[0].name", "must be text, not the number 010: quote it"),
    ("roles: [{name: 12:30}]", "roles[0].name", "must be text, not the number 12:30: quote it"),
    ("roles: [{name: 1.10}]", "roles[0].name", "must be text, not the number 1.10"),
    ("roles: [{name: no}]", "roles[0].name", "must be text, not the boolean false"),
    ("roles: [{name: 2027-01-31}]", "roles[0].name", "must be text, not the date 2027-01-31"),
    ("roles: [{name: app, comment: 2027-01-31 10:00:00}]", "roles[0].comment", "must be text, not the date"),
    ("roles: [{name: app, connection_limit: 010}]", "roles[0].connection_limit", "not the number 010"),
    ("roles: [{name: app, connection_limit: 12:30}]", "roles[0].connection_limit", "not the number 12:30"),
    ("roles: [{name: app, connection_limit: 0x10}]", "roles[0].connection_limit", "not the number 0x10"),
    ("roles: [{name: app, connection_limit: '5'}]", "roles[0].connection_limit", "must be a whole number"),
    ("roles: [{name: app, connection_limit: 1_0}]", "roles[0].connection_limit", "not the number 1_0"),
    (
        "grants: [{role: PUBLIC, privileges: [SELECT], object: {type: large_object, name: 010}}]",
        "grants[0].object.name",
        "must be text, not the number 010: quote it",
    ),
    (
        "grants: [{role: PUBLIC, privileges: [SELECT], object: {type: large_object, name: 0}}]",
        "grants[0].object.name",
        "'0' is not a large object's OID",
    ),
    (f"roles: [{{name: {'9' * 5000}}}]", "roles[0].name", f"must be text, not the number {'9' * 70}...: quote it"),
    ("roles: [{name: app, login: 'true'}]", "roles[0].login", "must be true or false, not the text 'true'"),
    ("roles: [{name: app, valid_until: 2027-01-31}]", "roles[0].valid_until", "must be text, not the date"),
    ("roles: [{name: app, valid_until: 2027-01-31 10:00:00}]", "roles[0].valid_until", "has no time zone"),
    ("roles: [{name: app, valid_until: 2027-13-31T10:00:00Z}]", "roles[0].valid_until", "is not a point in time"),
    # keys
    ("roles: [{name: app, login: true, login: false}]", "roles[0].login", "duplicate key 'login' (lines 1 and 1)"),
    ("roles: []\nscope: {}\nroles: []", "roles", "duplicate key 'roles' (lines 1 and 3)"),
    ("profiles:\n  a: {}\n  a: {}", "profiles.a", "duplicate key 'a' (lines 2 and 3)"),
    (
        "grants: [{role: PUBLIC, privileges: [USAGE], on: {type: schema, name: s}, yes: 1}]",
        "grants[0].on",
        "duplicate key true",
    ),
    (
        "grants: [{role: PUBLIC, privileges: [USAGE], on: {type: schema, name: s}, object: {type: schema, name: s}}]",
        "grants[0].object",
        "says the same as true, which is given too",
    ),
    ("roles: [{name: app, on: 1}]", "roles[0].true", "unknown key true"),
    ("roles: [{name: app, 5: 1}]", "roles[0].5", "unknown key 5"),
    ("roles: [{name: app, null: 1}]", "roles[0].null", "unknown key null"),
    ("roles: [{name: app, [a]: 1}]", "roles[0]", "has a key that is not text"),
    ("rolez: []", "rolez", "unknown key 'rolez'; did you mean 'roles'?"),
    ("assume_roles: [x]", "assume_roles", "'assume_roles' is an option of the module, not a section of a manifest"),
    ("reconciliation_mode: adopt", "reconciliation_mode", "is an option of the module, not a section"),
    ("login_password: x", "login_password", "is an option of the module, not a section"),
    # templates, vault and other tags
    ("roles: [{name: '{{ name }}'}]", "roles[0].name", "contains a template: files are read where the module runs"),
    ("roles: [{name: app, comment: 'a {% if x %}'}]", "roles[0].comment", "contains a template"),
    ("roles: [{name: {{ name }}}]", "roles[0].name", "has a key that is not text; if it is meant as a template"),
    ("'{{ x }}': 1\nroles: []", "", "contains a template"),
    (
        "roles:\n  - name: !vault |\n      $ANSIBLE_VAULT;1.1;AES256\n      61\n",
        "roles[0].name",
        "is encrypted with ansible-vault",
    ),
    ("roles: [{name: !unsafe app}]", "roles[0].name", "has a YAML tag"),
    ("roles: [{name: !!binary YQ==}]", "roles[0].name", "has the YAML type binary"),
    ("roles: !!set {a, b}", "roles", "has the YAML type set"),
    ("roles: &r [*r]", "roles[0]", "is an alias of something that contains it"),
    # the file as a whole
    ("", "", "is empty"),
    ("# only a comment\n", "", "is empty"),
    ("{}", "", "is empty"),
    ("- roles", "", "must be a dict with the sections as its keys"),
    ("just text", "", "must be a dict with the sections as its keys"),
    ("roles: [", "", "is not valid YAML (line "),
    ("roles: []\n---\nroles: []", "", "has several documents, as only a file of Kubernetes resources may"),
    ("{% for r in x %}\nroles: []\n", "", "it contains a template"),
    ("roles: [{name: app, comment: *nope}]", "", "is not valid YAML"),
]


@pytest.mark.parametrize("text, path, message", RULES, ids=[f"{rule[1]}-{n}" for n, rule in enumerate(RULES)])
def test_a_mistake_is_one_problem_at_its_place(tmp_path: Path, text: str, path: str, message: str) -> None:
    problem = only(tmp_path, text)
    assert problem.path == (f"access.yml: {path}" if path else "access.yml")
    assert message in problem.message
    assert problem.file == str(tmp_path / "access.yml")
    assert problem.text.startswith("access.yml")


def test_without_the_parser_in_c_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(files.yaml, "CSafeLoader", raising=False)
    for text, path, message in RULES:
        problem = only(tmp_path, text)
        assert problem.path == (f"access.yml: {path}" if path else "access.yml")
        assert message in problem.message


def test_anchors_and_merge_keys_work_and_the_mapping_itself_wins(tmp_path: Path) -> None:
    manifest = read(
        tmp_path,
        """
        roles:
          - &base {name: a, login: true, inherit: false}
          - {<<: *base, name: b, inherit: true}
        grants:
          - {role: a, privileges: &p [USAGE], object: &o {type: schema, name: s}}
          - {role: b, privileges: *p, object: *o}
        """,
    )
    assert [(role.name, role.login, role.inherit) for role in manifest.roles] == [("a", True, False), ("b", True, True)]
    assert manifest.grants[1].object.name == "s"


def test_no_message_quotes_the_text_of_a_broken_file(tmp_path: Path) -> None:
    for text in ("roles: [{name: a, password: s3cret\n", "password: *s3cret", "a: 's3cret\n", "password: s3cret: x\n"):
        found = problems(tmp_path, text)
        assert "s3cret" not in repr(found)


def test_what_is_not_utf8_or_has_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "access.yml"
    path.write_bytes(b"\xef\xbb\xbfroles: [{name: app}]")
    assert load.from_files([str(path)]).roles[0].name == "app"
    path.write_bytes(b"roles: [{name: \xff}]")
    with pytest.raises(ManifestInvalid) as caught:
        load.from_files([str(path)])
    assert "is not UTF-8 text" in caught.value.problems[0].message


def test_deep_nesting_is_a_problem_and_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nest" in only(tmp_path, "roles: " + "[" * 5000 + "]" * 5000).message
    monkeypatch.delattr(files.yaml, "CSafeLoader", raising=False)
    assert "nested too deeply" in only(tmp_path, "roles: " + "[" * 5000 + "]" * 5000).message


# ---- which files ---------------------------------------------------------------------------------------------------


def failed(raw: Dict[str, Any]) -> List[Tuple[str, str]]:
    with pytest.raises(ManifestInvalid) as caught:
        manifest_to_policy(raw)
    return [(str(problem.path), problem.message) for problem in caught.value.problems]


def test_paths_are_absolute_and_named_once(tmp_path: Path) -> None:
    path = write(tmp_path, "roles: [{name: app}]")
    found = failed({"manifest_files": ["access.yml", "~/access.yml", "", path, path]})
    assert [place for place, _text in found] == [f"manifest_files[{number}]" for number in (0, 1, 2, 4)]
    assert "'access.yml' must be an absolute path" in found[0][1]
    assert "is listed twice" in found[3][1]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    found = failed({"manifest_files": [str(tmp_path / "none.yml"), str(tmp_path)]})
    assert found[0][0] == "none.yml"
    assert "cannot be read: No such file or directory" in found[0][1]
    assert "cannot be read: Is a directory" in found[1][1]


def test_paths_are_text_in_a_list() -> None:
    assert failed({"manifest_files": "/a.yml"}) == [("manifest_files", "must be a list, not the text '/a.yml'")]
    assert failed({"manifest_files": [5]})[0][0] == "manifest_files[0]"
    assert failed({"manifest_files": ["/a\0b"]})[0][1].startswith("cannot be read")


def test_not_files_and_sections_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "roles: [{name: app}]")
    found = failed({"manifest_files": [path], "roles": [{"name": 5}], "grants": []})
    assert found[0][0] == "manifest_files"
    assert "(roles, grants)" in found[0][1]
    assert found[1][0] == "roles[0].name"


def test_options_beside_files_are_judged_too(tmp_path: Path) -> None:
    path = write(tmp_path, "roles: [{name: app}]")
    found = failed({"manifest_files": [path], "passwords": {"app": 1}, "assume_roles": "x", "bogus": 1})
    assert [place for place, _text in found] == ["bogus", "assume_roles", "passwords.app"]


def test_assume_roles_go_with_files(tmp_path: Path) -> None:
    path = write(tmp_path, "grants: [{role: other, privileges: [USAGE], object: {type: schema, name: s}}]")
    assert manifest_to_policy({"manifest_files": [path], "assume_roles": ["other"]}).assumed == {"other"}
    assert load.from_files([path], ["other"]).assume_roles == {"other"}
    with pytest.raises(ManifestInvalid):
        load.from_files([path], "other")


def test_missing_pyyaml_has_its_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "HAS_YAML", False)
    with pytest.raises(ManifestInvalid) as caught:
        manifest_to_policy({"manifest_files": [write(tmp_path, "roles: []")]})
    assert caught.value.code == "missing_library"
    assert "pip install PyYAML" in str(caught.value)


# ---- several files -------------------------------------------------------------------------------------------------


def test_several_files_are_one_manifest(tmp_path: Path) -> None:
    manifest = read(
        tmp_path,
        """
        default_owner: o
        profiles: {reader: {grants: [{privileges: [USAGE], object: {type: schema}}]}}
        roles: [{name: o}]
        schemas: [{name: s, owner: o, profiles: [reader]}]
        """,
        """
        default_owner: o
        profiles: {writer: {grants: [{privileges: [CREATE], object: {type: schema}}]}}
        roles: [{name: app}]
        schemas: [{name: s, profiles: [writer]}]
        memberships: [{role: s-writer, members: [{name: app}]}]
        """,
    )
    assert [role.source for role in manifest.roles] == ["a.yml: roles[0]", "b.yml: roles[0]"]
    policy = manifest_to_policy({"manifest_files": [str(tmp_path / "a.yml"), str(tmp_path / "b.yml")]})
    assert set(policy.roles) == {"o", "app", "s-reader", "s-writer"}
    assert policy.schemas["s"].owner == "o"


RULE = "{role: app, privileges: [%s], object: {type: table, schema: s, name: t}}"
COLUMNS = "{role: app, privileges: [%s], object: {type: table, schema: s, name: t}, columns: [%s]}"
DEFAULT = "default_privileges: [{owner: o, schema: s, grant: [{role: app, privileges: [%s], on_type: table}]}]"

TWICE: List[Tuple[str, str, str, str]] = [
    (
        "roles: [{name: x}]",
        "roles: [{name: y}, {name: x}]",
        "roles[1]",
        "the role 'x' is declared twice: in a.yml: roles[0] and",
    ),
    (
        "profiles: {p: {}}",
        "profiles: {p: {}}",
        "profiles.p",
        "the profile 'p' is declared twice: in a.yml: profiles.p and",
    ),
    (
        "schemas: [{name: s, owner: a}]",
        "schemas: [{name: s, owner: a}]",
        "schemas[0].owner",
        "the owner of the schema 's' is declared twice: in a.yml: schemas[0].owner and in b.yml: schemas[0].owner",
    ),
    (
        "memberships: [{role: g, members: [{name: m}]}]",
        "memberships: [{role: g, members: [{name: n}, {name: m}]}]",
        "memberships[0].members[1]",
        "the membership of 'm' in 'g' is declared in two files: in a.yml: memberships[0].members[0] and",
    ),
    (
        "roles: [{name: m, member_of: [x, g]}]",
        "roles: [{name: g, members: [{name: m}]}, {name: x}]",
        "roles[0].members[0]",
        "the membership of 'm' in 'g' is declared in two files: in a.yml: roles[0].member_of[1] and",
    ),
    (
        "memberships: [{role: g, members: [{name: m}]}]",
        "roles: [{name: m, member_of: [g]}]",
        "roles[0].member_of[0]",
        "the membership of 'm' in 'g' is declared in two files: in a.yml: memberships[0].members[0] and",
    ),
    (
        f"grants: [{RULE % 'SELECT, INSERT'}]",
        f"grants: [{RULE % 'UPDATE'}, {RULE % 'INSERT, SELECT'}]",
        "grants[1]",
        "the same rule for 'app' (INSERT) is declared in two files: in a.yml: grants[0] and in b.yml: grants[1]",
    ),
    (
        f"grants: [{COLUMNS % ('ALL', 'b, a')}]",
        f"grants: [{RULE % 'UPDATE'}, {COLUMNS % ('SELECT', 'c, b')}]",
        "grants[1]",
        "the same rule for 'app' (SELECT) is declared in two files: in a.yml: grants[0] and in b.yml: grants[1]",
    ),
    (
        f"grants: [{COLUMNS % ('SELECT', 'a')}]",
        f"grants: [{COLUMNS[:-1] % ('SELECT', 'a')}, with_grant_option: true}}]",
        "grants[0]",
        "the same rule for 'app' (SELECT) is declared in two files",
    ),
    (
        "grants: [{role: app, privileges: [SET], object: {type: parameter, name: Work_Mem}}]",
        "grants: [{role: app, privileges: [SET], object: {type: parameter, name: work_mem}}]",
        "grants[0]",
        "the same rule for 'app' (SET) is declared in two files",
    ),
    (
        "grants: [{role: app, privileges: [SELECT], object: {type: large_object, name: 7}}]",
        "grants: [{role: app, privileges: [SELECT], object: {type: large_object, name: '07'}}]",
        "grants[0]",
        "the same rule for 'app' (SELECT) is declared in two files",
    ),
    (DEFAULT % "SELECT", DEFAULT % "select", "default_privileges[0].grant[0]", "the same default privilege for 'app'"),
    ("default_owner: a", "default_owner: b", "default_owner", "'b' differs from 'a' in a.yml: default_owner"),
    (
        "role_pattern: '{profile}'",
        "role_pattern: 'x{profile}'",
        "role_pattern",
        "'x{profile}' differs from '{profile}' in a.yml: role_pattern",
    ),
]


@pytest.mark.parametrize("one, other, path, message", TWICE, ids=[case[2] for case in TWICE])
def test_what_two_files_declare_names_both(tmp_path: Path, one: str, other: str, path: str, message: str) -> None:
    problem = only(tmp_path, one, other)
    assert problem.path == f"b.yml: {path}"
    assert problem.file == str(tmp_path / "b.yml")
    assert message in problem.message


@pytest.mark.parametrize(
    "one, other",
    [
        (f"grants: [{RULE % 'SELECT'}]", f"grants: [{RULE % 'INSERT'}]"),
        (f"grants: [{RULE % 'SELECT'}]", f"grants: [{COLUMNS % ('SELECT', 'a')}]"),
        (f"grants: [{COLUMNS % ('SELECT', 'a')}]", f"grants: [{COLUMNS % ('SELECT', 'b')}]"),
        (f"grants: [{COLUMNS % ('SELECT', 'a')}]", f"grants: [{COLUMNS % ('INSERT', 'a')}]"),
        ("memberships: [{role: g, members: [{name: m}]}]", "memberships: [{role: g, members: [{name: n}]}]"),
        ("default_owner: a", "default_owner: a"),
        ("schemas: [{name: s, owner: a}]", "schemas: [{name: s}]"),
        (f"grants: [{RULE % 'SELECT'}, {RULE % 'SELECT'}]", "roles: [{name: app}]"),
    ],
)
def test_what_adds_up_may_be_in_two_files(tmp_path: Path, one: str, other: str) -> None:
    read(tmp_path, one, other)


def test_a_schema_twice_in_one_file_is_an_error(tmp_path: Path) -> None:
    assert only(tmp_path, "schemas: [{name: s}, {name: s}]").path == "access.yml: schemas[1]"


def test_files_of_one_name_go_by_their_whole_path(tmp_path: Path) -> None:
    paths = [write(tmp_path, "roles: [{name: 5}]", f"{folder}/access.yml") for folder in ("x", "y")]
    with pytest.raises(ManifestInvalid) as caught:
        load.from_files(paths)
    assert [problem.path for problem in caught.value.problems] == [f"{path}: roles[0].name" for path in paths]


def test_problems_of_all_files_and_between_them_come_at_once(tmp_path: Path) -> None:
    paths = [
        write(tmp_path, "roles: [{name: app, lgin: true}]\nschemas: [{name: s, profiles: [edtor]}]", "a.yml"),
        write(
            tmp_path,
            "profiles: {editor: {}}\ngrants: [{role: ap, privileges: [USAGE], object: {type: schema, name: s}}]",
            "b.yml",
        ),
    ]
    assert failed({"manifest_files": paths}) == [
        ("a.yml: roles[0].lgin", "unknown key 'lgin'; did you mean 'login'?"),
        ("a.yml: schemas[0].profiles[0]", "unknown profile 'edtor'; did you mean 'editor'?"),
        (
            "b.yml: grants[0].role",
            "unknown role 'ap'; did you mean 'app'?"
            " (declare it in roles, with external: true when someone else looks after it)",
        ),
    ]


def test_an_unreadable_file_does_not_make_its_roles_unknown(tmp_path: Path) -> None:
    path = write(tmp_path, "grants: [{role: app, privileges: [USAGE], object: {type: schema, name: s}}]")
    assert [place for place, _text in failed({"manifest_files": [path, str(tmp_path / "none.yml")]})] == ["none.yml"]


@pytest.mark.parametrize(
    ("value", "message"),
    [("!!bool x", "must be true or false, not the text 'x'"), ("!!bool ''", "must be true or false, not the text ''")],
)
def test_an_explicit_tag_makes_no_value(tmp_path: Path, value: str, message: str) -> None:
    path = tmp_path / "access.yml"
    path.write_text(f"roles: [{{name: app, login: {value}}}]\n", encoding="utf-8")
    assert [message in problem.message for problem in file_problems(path)] == [True]


@pytest.mark.parametrize("value", ["!!timestamp x", "!!timestamp ''", "!!timestamp 2027-01-31T25:00:00Z"])
def test_a_timestamp_that_is_none(tmp_path: Path, value: str) -> None:
    path = tmp_path / "access.yml"
    path.write_text(f"roles: [{{name: app, valid_until: {value}}}]\n", encoding="utf-8")
    assert ["is not a point in time" in problem.message for problem in file_problems(path)] == [True]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "access.yml"
    os.mkfifo(path)
    assert [problem.message for problem in file_problems(path)] == [
        f"cannot be read: it is not an ordinary file ({tmp_path})"
    ]


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_a_device_is_no_file(path: str) -> None:
    (problem,) = file_problems(Path(path))
    assert "it is not an ordinary file" in problem.message


def test_a_file_without_end(tmp_path: Path) -> None:
    path = tmp_path / "access.yml"
    with path.open("wb") as stream:
        stream.truncate(10**12)
    (problem,) = file_problems(path)
    assert problem.message == f"cannot be read: it is larger than {32 * 1024 * 1024} bytes ({tmp_path})"


@pytest.mark.parametrize(
    "last",
    ["roles: *l9", "roles: [{name: x, nonsense: *l9}]", "roles: [{name: x, password: *l9}]", "roles: [{<<: *m9}]"],
)
def test_a_few_lines_that_stand_for_a_billion_values(tmp_path: Path, last: str) -> None:
    lines = ["l0: &l0 [x]", "m0: &m0 {x: x}"]
    for number in range(1, 10):
        lines.append(f"l{number}: &l{number} [{', '.join([f'*l{number - 1}'] * 10)}]")
        lines.append(f"m{number}: &m{number} {{<<: [{', '.join([f'*m{number - 1}'] * 10)}]}}")
    path = tmp_path / "access.yml"
    path.write_text("\n".join([*lines, last]), encoding="utf-8")
    (problem,) = file_problems(path)
    assert problem.message == "stands for too much: its aliases add more than 500000 values to what is written"


def test_rules_may_share_what_they_have_in_common(tmp_path: Path) -> None:
    rules = "".join(f"- {{role: r{number}, privileges: *rw, object: *t}}\n" for number in range(2000))
    roles = ", ".join(f"{{name: r{number}}}" for number in range(2000))
    first = "- {role: r0, privileges: &rw [SELECT, INSERT], object: &t {type: table, schema: s, name: '*'}}"
    path = tmp_path / "access.yml"
    path.write_text(f"roles: [{roles}]\ngrants:\n{first}\n{rules}", encoding="utf-8")
    assert len(load.from_files([str(path)]).grants) == 2001
