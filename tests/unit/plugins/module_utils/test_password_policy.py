# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which password each role is to have: its three sources, what makes LOGIN, and what is refused before connecting."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.load import draft
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.model import Password
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.passwords import of_option, with_environment
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.validate import Judge
from ansible_collections.pg_access.reconcile.plugins.module_utils.masking import Secrets
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import Policy, manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import ManifestInvalid, Problem

HUSH = "hush-hush"


def scram(password: str, iterations: int = 4096) -> str:
    """A verifier as PostgreSQL stores it."""
    salt = b"0123456789abcdef"
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, max(iterations, 1))
    client = hmac.new(salted, b"Client Key", hashlib.sha256).digest()
    server = hmac.new(salted, b"Server Key", hashlib.sha256).digest()
    stored = hashlib.sha256(client).digest()
    parts = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${iterations}:{parts[0]}${parts[1]}:{parts[2]}"


def policy(raw: Dict[str, Any]) -> Policy:
    return manifest_to_policy(raw, Secrets())


def one(entry: Dict[str, Any], **options: Any) -> Tuple[Optional[Password], Any]:
    """The password and the login of a role called app."""
    role = policy({"roles": [{"name": "app", **entry}], **options}).roles["app"]
    return role.password, role.attributes.get("login")


def problems(raw: Dict[str, Any]) -> List[Problem]:
    with pytest.raises(ManifestInvalid) as caught:
        policy(raw)
    assert HUSH not in str(caught.value) + repr(caught.value.problems)
    return list(caught.value.problems)


def problem(raw: Dict[str, Any]) -> Problem:
    (found,) = problems(raw)
    return found


# ---- what makes LOGIN ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "login"),
    [
        ({"password": HUSH}, True),
        ({"password": HUSH, "login": True}, True),
        ({"password": HUSH, "login": False}, False),
        ({}, None),
        ({"login": True}, True),
        ({"password": None}, None),
    ],
)
def test_a_password_makes_a_login_unless_the_entry_says_otherwise(entry: Dict[str, Any], login: Any) -> None:
    password, found = one(entry)
    assert found is login
    assert (password.text if password else None) == entry.get("password")


def test_a_password_from_the_environment_makes_a_login_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_SECRET", HUSH)
    password, login = one({"password_from_env": "APP_SECRET"})
    assert password == Password(HUSH, "roles[0].password_from_env")
    assert login is True


def test_the_options_password_is_that_of_a_role_that_says_login() -> None:
    password, login = one({"login": True}, passwords={"app": HUSH})
    assert password == Password(HUSH, "passwords.app")
    assert login is True


@pytest.mark.parametrize("given", [None, {}, {"app": None}])
def test_a_password_that_is_not_given_leaves_the_role_as_it_is(given: Any) -> None:
    assert one({"login": True}, passwords=given) == (None, True)


def test_encryption_and_format_come_from_the_entry_wherever_the_password_stands() -> None:
    entry = {"login": True, "password_encryption": "server", "password_format": "plain"}
    verifier = scram("x")
    assert one(entry, passwords={"app": verifier})[0] == Password(verifier, "passwords.app", "server", verifier=False)
    assert one({"password": HUSH})[0] == Password(HUSH, "roles[0].password", "scram-sha-256", verifier=False)


@pytest.mark.parametrize(("form", "verifier"), [(None, True), ("auto", True), ("verifier", True), ("plain", False)])
@pytest.mark.parametrize("text", [scram("x"), "md5" + "0" * 32])
def test_a_verifier_is_one_unless_the_format_says_plain(form: Optional[str], verifier: bool, text: str) -> None:
    password, _login = one({"password": text, "password_format": form})
    assert password is not None
    assert password.verifier is verifier
    assert password.text == text


def test_a_generated_role_can_get_a_password_where_its_profile_says_login() -> None:
    raw = {
        "default_owner": "o",
        "roles": [{"name": "o"}],
        "profiles": {"ro": {"login": True, "grants": []}},
        "schemas": [{"name": "s", "profiles": ["ro"]}],
        "passwords": {"s-ro": HUSH},
    }
    role = policy(raw).roles["s-ro"]
    assert role.password == Password(HUSH, "passwords.s-ro")
    del raw["profiles"]["ro"]["login"]  # type: ignore[index]
    assert "must say login: true" in problem(raw).message


def test_no_representation_shows_a_password() -> None:
    assert HUSH not in repr(policy({"roles": [{"name": "app", "password": HUSH}]}))


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["auto", "plain", "verifier"])
def test_an_empty_password_is_refused_wherever_it_stands(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_SECRET", "")
    entry = {"name": "app", "login": True, "password_format": form}
    assert "empty" in problem({"roles": [{**entry, "password": ""}]}).message
    assert "empty" in problem({"roles": [entry], "passwords": {"app": ""}}).message
    assert (
        "is empty where the module runs" in problem({"roles": [{**entry, "password_from_env": "APP_SECRET"}]}).message
    )


@pytest.mark.parametrize("text", [scram(""), "md5" + hashlib.md5(b"app", usedforsecurity=False).hexdigest()])
def test_the_verifier_of_an_empty_password_is_refused(text: str) -> None:
    found = problem({"roles": [{"name": "app", "password": text}]})
    assert "that of an empty password" in found.message
    assert (found.path, found.role) == ("roles[0].password", "app")
    assert text not in found.text


@pytest.mark.parametrize(
    ("text", "form", "words"),
    [
        (f"{HUSH}\0", "auto", "NUL"),
        (f"{HUSH}\0", "plain", "NUL"),
        ("\udc80", "plain", "not valid Unicode"),
        ("md5" + "A" * 32, "auto", "looks like a verifier"),
        ("MD5" + "0" * 32, "auto", "looks like a verifier"),
        ("scram-sha-256$x", "auto", "looks like a verifier"),
        ("SCRAM-SHA-256$", "auto", "looks like a verifier"),
        (" " + scram("x"), "auto", "white space around"),
        (scram("x") + "\n", "auto", "white space around"),
        (scram("x") + "\n", "verifier", "white space around"),
        (HUSH, "verifier", "no verifier"),
        (scram("x", 0), "auto", "between 1 and 10,000,000"),
        (scram("x").replace("$4096:", "$10000001:"), "auto", "between 1 and 10,000,000"),
    ],
)
def test_what_no_server_or_not_every_server_would_take_as_meant_is_refused(text: str, form: str, words: str) -> None:
    found = problem({"roles": [{"name": "app", "password": text, "password_format": form}]})
    assert words in found.message
    assert text.strip() not in found.text
    again = problem({"roles": [{"name": "app", "login": True, "password_format": form}], "passwords": {"app": text}})
    assert (again.path, again.role, again.message) == ("passwords.app", "app", found.message)


@pytest.mark.parametrize("text", ["md5" + "A" * 32, "SCRAM-SHA-256$", " " + scram("x")])
def test_plain_takes_what_looks_like_a_verifier_for_a_password(text: str) -> None:
    password, _login = one({"password": text, "password_format": "plain"})
    assert password is not None
    assert not password.verifier


@pytest.mark.parametrize("field", ["password", "password_from_env", "password_encryption", "password_format"])
def test_an_external_role_takes_nothing_about_passwords(field: str) -> None:
    values = {"password": HUSH, "password_from_env": "A", "password_encryption": "server", "password_format": "plain"}
    found = problem({"roles": [{"name": "app", "external": True, field: values[field]}]})
    assert found.path == f"roles[0].{field}"
    assert "external role" in found.message


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"roles": [{"name": "apps", "login": True}]}, "declares no role 'app'; did you mean 'apps'?"),
        ({"roles": [{"name": "b"}], "assume_roles": ["app"]}, "declares no role 'app'"),
        ({"roles": [{"name": "app", "external": True}]}, "is external"),
        ({"roles": [{"name": "app"}]}, "(roles[0]) must say login: true"),
        ({"roles": [{"name": "app", "login": False}]}, "(roles[0]) must say login: true"),
        (
            {"roles": [{"name": "app", "login": True, "password": "other"}]},
            "has a password in roles[0].password already",
        ),
    ],
)
def test_the_option_may_name_only_roles_that_keep_their_login_without_it(raw: Dict[str, Any], words: str) -> None:
    found = problem({**raw, "passwords": {"app": HUSH}})
    assert words in found.message
    assert (found.path, found.role) == ("passwords.app", "app")
    assert "other" not in found.message


def test_where_roles_are_unreadable_the_option_is_not_blamed() -> None:
    found = problems({"roles": "x", "passwords": {"app": HUSH}})
    assert [item.path for item in found] == ["roles"]


def test_all_problems_of_passwords_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("APP_SECRET", raising=False)
    raw = {
        "roles": [
            {"name": "a", "password": f"{HUSH}\0"},
            {"name": "b", "password_from_env": "APP_SECRET"},
            {"name": "c", "password": HUSH, "password_from_env": "APP_SECRET"},
        ],
        "passwords": {"d": HUSH, "e": 5},
    }
    assert sorted(str(item.path) for item in problems(raw)) == [
        "passwords.d",
        "passwords.e",
        "roles[0].password",
        "roles[1].password_from_env",
        "roles[2].password_from_env",
    ]


# ---- the option ------------------------------------------------------------------------------------------------------


def option(raw: Any) -> Tuple[Dict[str, Password], List[str]]:
    judge = Judge()
    found = of_option(judge, raw)
    texts = [item.text for item in judge.problems]
    assert HUSH not in "".join(texts)
    return found, texts


def test_the_option_may_be_json_text() -> None:
    assert option('{"app": "hush-hush", "b": null}') == ({"app": Password(HUSH, "passwords.app")}, [])


@pytest.mark.parametrize("raw", [HUSH, f"app={HUSH}", f'["{HUSH}"]', [HUSH], 5, True, f'{{"app": "{HUSH}"'])
def test_an_option_that_is_no_dict_is_refused_without_being_shown(raw: Any) -> None:
    found, texts = option(raw)
    assert found == {}
    assert len(texts) == 1
    assert "must be a dict of passwords by role" in texts[0]


@pytest.mark.parametrize("value", [5, 1.5, True, [HUSH], {"x": HUSH}])
def test_a_password_that_is_no_text_is_refused_without_being_shown(value: Any) -> None:
    found, texts = option({"app": value, "b": HUSH})
    assert list(found) == ["b"]
    assert len(texts) == 1
    assert texts[0].startswith("passwords.app: must be text, not a")
    assert str(value) not in texts[0]


@pytest.mark.parametrize("key", ["{{ app_role }}", "{% if x %}app{% endif %}"])
def test_a_templated_key_is_refused_with_the_form_that_works(key: str) -> None:
    found, texts = option({key: HUSH})
    assert not found
    assert 'passwords: "{{ {app_role: secret} }}"' in texts[0]


def test_a_key_that_is_no_text_is_refused() -> None:
    found, texts = option({5: HUSH})
    assert not found
    assert "must be text" in texts[0]


# ---- the environment -------------------------------------------------------------------------------------------------


def environment(entry: Dict[str, Any], variables: Dict[str, str]) -> Tuple[Any, List[Problem], Secrets]:
    secrets = Secrets()
    found = draft({"roles": [{"name": "app", **entry}]}, secrets, variables)
    return found.manifest.roles[0], list(found.problems), secrets


def test_a_password_of_the_environment_is_a_secret_with_its_role() -> None:
    role, wrong, secrets = environment({"password_from_env": "A"}, {"A": HUSH})
    assert (role.password.text, wrong) == (HUSH, [])
    assert secrets.owner(HUSH) == "the password of role app"


@pytest.mark.parametrize(
    ("variables", "words"), [({}, "variable A is not set where the module runs"), ({"A": ""}, "variable A is empty")]
)
def test_a_missing_or_empty_variable_is_an_error(variables: Dict[str, str], words: str) -> None:
    role, (wrong,), _secrets = environment({"password_from_env": "A"}, variables)
    assert role.password is None
    assert words in wrong.message
    assert (wrong.path, wrong.role) == ("roles[0].password_from_env", "app")


def test_two_passwords_are_one_too_many_and_the_variables_is_a_secret_all_the_same() -> None:
    role, (wrong,), secrets = environment({"password": "other", "password_from_env": "A"}, {"A": HUSH})
    assert role.password.text == "other"
    assert "excludes password" in wrong.message
    assert HUSH in secrets.texts()


def test_a_variable_that_a_file_names_is_told_with_the_file(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    other, file = tmp_path / "aaa.yml", tmp_path / "access.yml"
    other.write_text("roles: [{name: c}]\n")
    file.write_text("roles:\n  - {name: app, password_from_env: A}\n  - {name: b, pasword: hush-hush}\n")
    secrets = Secrets()
    found = draft({"manifest_files": [str(other), str(file)]}, secrets, {})
    told = {item.path: item.file for item in found.problems}
    assert told == {
        "access.yml: roles[0].password_from_env": str(file),
        "access.yml: roles[1].pasword": str(file),
    }
    assert HUSH in secrets.texts()


def test_roles_without_the_field_are_left_as_they_are() -> None:
    manifest = draft({"roles": [{"name": "app", "password": HUSH}, {"name": "b"}]}, Secrets(), {}).manifest
    assert with_environment(manifest, {}, Secrets(), {}) == (manifest, [])
