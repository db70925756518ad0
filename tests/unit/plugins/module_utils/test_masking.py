# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What no output may show: which values of the raw input are secrets, and how they go out of other people's texts."""

from __future__ import annotations

import json
from typing import Any, Dict, Optional, Set

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.masking import (
    KEY_VARIABLE,
    MASK,
    Secrets,
    leaves,
    of_arguments,
    of_roles,
    structure,
)


def found(raw: Dict[str, Any], environment: Optional[Dict[str, str]] = None) -> Set[str]:
    return {text for text, _owner in of_arguments(raw, environment or {})}


def holder(*texts: Any) -> Secrets:
    secrets = Secrets()
    for text in texts:
        secrets.add(text, "a test")
    return secrets


# ---- the mask --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", ["", None, 5, ["x"], b"x"])
def test_what_is_empty_or_no_text_is_no_secret(nothing: Any) -> None:
    assert not holder(nothing).texts()


def test_a_text_without_secrets_stays_as_it_is() -> None:
    assert Secrets().mask("role app") == "role app"
    assert holder("hush").mask("role app") == "role app"


def test_every_occurrence_is_masked() -> None:
    assert holder("hush").mask("hush, and xhushx") == f"{MASK}, and x{MASK}x"


def test_the_first_owner_of_a_secret_is_the_one_that_is_told() -> None:
    secrets = Secrets()
    secrets.add_all([("hush", "the password of role a"), ("hush", "the password of role b")])
    assert secrets.owner("hush") == "the password of role a"
    assert secrets.owner("other") is None


@pytest.mark.parametrize(
    ("secret", "repeated"),
    [
        ("it's", "'it''s'"),
        ('a"b', '"a""b"'),
        ("a\\b", "E'a\\\\b'"),
        ("it's a\\b", "E'it''s a\\\\b'"),
        ('a"b', json.dumps('a"b')),
        ("a\tb\nc", json.dumps("a\tb\nc")),
        ("größe", json.dumps("größe")),
        ('größe"', json.dumps('größe"', ensure_ascii=False)),
        ("a\nb", "a\n\tb"),
    ],
)
def test_a_secret_that_somebody_else_quoted_is_masked_too(secret: str, repeated: str) -> None:
    masked = holder(secret).mask(f"syntax error at {repeated}!")
    assert MASK in masked
    assert repeated.strip("E'\"") not in masked


def test_a_secret_that_contains_another_is_masked_as_a_whole() -> None:
    assert holder("hush", "hush-longer").mask("x hush-longer y") == f"x {MASK} y"


# ---- nested values ---------------------------------------------------------------------------------------------------


def test_leaves_are_found_at_any_depth_but_keys_are_none() -> None:
    nested = {"key": ["a", ("b", {"c": 1.5}), {"d"}], "more": {"x": None, "y": 7}}
    assert sorted(leaves(nested)) == ["1.5", "7", "None", "a", "b", "d"]
    assert sorted(leaves([True, False])) == ["False", "True"]


def test_very_deep_nesting_is_no_obstacle() -> None:
    value: Any = "hush"
    for _level in range(5000):
        value = [value]
    assert list(leaves(value)) == ["hush"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('{"a": "b"}', {"a": "b"}),
        (' [{"a": null}]', [{"a": None}]),
        ("{'a': 'b'}", {"a": "b"}),
        ("[('a', None)]", [("a", None)]),
        ("plain", "plain"),
        ("5", "5"),
        ("{broken", "{broken"),
        ("{f(): 1}", "{f(): 1}"),
        ("[" * 100000, "[" * 100000),
        (["a"], ["a"]),
        (None, None),
    ],
)
def test_a_text_with_a_list_or_dict_in_it_means_that(text: Any, meant: Any) -> None:
    assert structure(text) == meant


# ---- the secrets of the raw arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "secret"),
    [
        ({"login_password": "hush"}, "hush"),
        ({"login_password": 1234}, "1234"),
        ({"fingerprint_key": "k" * 16}, "k" * 16),
        ({"connect_params": {"password": "hush"}}, "hush"),
        ({"connect_params": {"passfile": "/hush"}}, "/hush"),
        ({"connect_params": {"sslpassword": "hush"}}, "hush"),
        ({"connect_params": '{"password": "hush"}'}, "hush"),
        ({"connect_params": "{'sslpassword': 'hush'}"}, "hush"),
        ({"connect_params": "dbname=app password=hush"}, "hush"),
        ({"connect_params": "password='hu sh' dbname=app"}, "hu sh"),
        ({"connect_params": 'sslpassword="hu sh",dbname=app'}, "hu sh"),
        ({"passwords": {"app": "hush"}}, "hush"),
        ({"passwords": {"app": 1234}}, "1234"),
        ({"passwords": {"app": ["hush"]}}, "hush"),
        ({"passwords": '{"app": "hush"}'}, "hush"),
        ({"passwords": "{'app': 'hush'}"}, "hush"),
        ({"passwords": '{"app": "hush"}'}, '{"app": "hush"}'),
        ({"passwords": "hush"}, "hush"),
        ({"passwords": ["hush"]}, "hush"),
        ({"roles": [{"name": "app", "password": "hush"}]}, "hush"),
        ({"roles": [{"name": "app", "password": 1234}]}, "1234"),
        ({"roles": [{"name": 5, "password": "hush"}]}, "hush"),
        ({"roles": [{"name": "app", "pasword": "hush"}]}, "hush"),
        ({"roles": [{"name": "app", "extra": {"deep": ["hush"]}}]}, "hush"),
        ({"roles": '[{"name": "app", "password": "hush"}]'}, "hush"),
        ({"roles": ["{'name': 'app', 'password': 'hush'}"]}, "hush"),
        ({"roles": {"name": "app", "password": "hush"}}, "hush"),
        ({"pasword": "hush"}, "hush"),
        ({"Passwords": {"app": "hush"}}, "hush"),
        ({"paswords": '{"app": "hush"}'}, "hush"),
        ({"role_secrets": {"app": "hush"}}, "hush"),
        ({"fingerprnt_key": "hush", "fingerprintkey": "hush2"}, "hush2"),
    ],
)
def test_every_place_of_the_arguments_that_can_hold_a_secret_is_looked_at(raw: Dict[str, Any], secret: str) -> None:
    assert secret in found(raw)


@pytest.mark.parametrize("name", ["PGPASSWORD", KEY_VARIABLE])
def test_secrets_of_the_environment_are_known(name: str) -> None:
    assert found({}, {name: "hush", "OTHER": "x"}) == {"hush"}
    assert found({}, {name: ""}) == set()


def test_what_is_no_secret_stays_readable() -> None:
    raw = {
        "login_user": "u",
        "login_db": "app",
        "connect_params": {"host": "db", "application_name": "x"},
        "update_password": "on_change",
        "fingerprint_store": "comment",
        "roles": [
            {
                "name": "app",
                "login": True,
                "password_encryption": "server",
                "password_format": "plain",
                "password_from_env": "APP",
                "valid_until": "infinity",
                "password_valid_until": "infinity",
                "comment": "x",
            }
        ],
        "grants": [{"role": "app"}],
    }
    assert found(raw) == set()


def test_a_flag_under_a_misspelt_key_is_no_secret() -> None:
    assert found({"roles": [{"name": "app", "logn": False, "inherits": True, "passwrod": None}]}) == set()


def test_a_secret_knows_its_role() -> None:
    roles = [{"name": "app", "password": "one"}, {"password": "two"}]
    assert dict(of_roles(roles)) == {"one": "the password of role app", "two": "the password in roles[1]"}
    assert dict(of_arguments({"passwords": {"app": "three"}}, {}))["three"] == "the password of role app"


def test_a_variable_that_a_role_names_is_a_secret_even_where_the_role_is_wrong() -> None:
    raw = {"roles": [{"password_from_env": "A", "bogus": None}, {"password_from_env": "B"}, {"password_from_env": 5}]}
    assert found(raw, {"A": "hush", "C": "x"}) == {"hush"}
    assert found(raw) == set()


@pytest.mark.parametrize("roles", [None, 5, "x", ["x", None, 5, ["y"]], {}, [{}]])
def test_roles_of_any_shape_are_no_obstacle(roles: Any) -> None:
    assert list(of_roles(roles)) == []


@pytest.mark.parametrize(
    "roles",
    [
        ["name=app password=hush"],
        "name=app password='hush' login=yes",
        ["name=app, pasword: hush"],
        '[{"name": "app", "password": "hush"',
        "[{'password' : 'hush', 'name': app}]",
    ],
)
def test_passwords_in_texts_that_mean_no_dict_are_known(roles: Any) -> None:
    assert found({"roles": roles}) == {"hush"}


def test_pairs_in_the_option_passwords_are_known() -> None:
    assert {"hush", "hush2"} < found({"passwords": "app=hush other=hush2"})
