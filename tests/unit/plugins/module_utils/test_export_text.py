# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The YAML text of an export is read back as exactly the manifest."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.export.text import quoted, to_yaml

yaml = pytest.importorskip("yaml")

MANIFEST = {
    "role_pattern": "{schema}-{profile}",
    "profiles": {
        "object": {
            "login": False,
            "config": {"search_path": '{schema}, "A b"', "work_mem": "8MB"},
            "grants": [{"privileges": ["SELECT"], "object": {"type": "table", "name": "*"}}],
            "default_privileges": [{"privileges": ["SELECT"], "on_type": "table"}],
        },
        "on": {"grants": [{"privileges": ["USAGE"], "object": {"type": "schema"}}]},
    },
    "roles": [
        {"name": "yes", "comment": "two\nlines: # no comment", "connection_limit": 0, "valid_until": "2031-01-01T00:00:00Z"},
        {"name": "app", "external": True},
    ],
    "memberships": [{"role": "g", "members": [{"name": "1e3", "admin": True}, {"name": "null", "set": False}]}],
    "schemas": [{"name": "s", "owner": "~", "profiles": ["object", "on"]}],
    "grants": [
        {"role": "PUBLIC", "privileges": ["ALTER SYSTEM", "SET"], "object": {"type": "parameter", "name": "x.y"}, "ensure": "absent"},
        {"role": "r", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "t"}, "columns": ["on", "b"]},
        {"role": "r", "privileges": ["SELECT"], "object": {"type": "large_object", "name": 4242}, "with_grant_option": True},
    ],
    "scope": {"ignore_roles": ["a[*]*", "[!\x01-\ud7ff]"]},
}  # fmt: skip


def test_the_text_is_read_back_as_the_manifest() -> None:
    text = to_yaml(MANIFEST)
    assert yaml.safe_load(text) == MANIFEST
    assert list(yaml.safe_load(text)) == list(MANIFEST)
    assert to_yaml(MANIFEST) == text


def test_it_reads_like_one_that_somebody_wrote() -> None:
    assert to_yaml({"roles": MANIFEST["roles"], "grants": MANIFEST["grants"][1:2]}).splitlines() == [  # type: ignore[index]
        "roles:",
        '  - name: "yes"',
        '    comment: "two\\nlines: # no comment"',
        "    connection_limit: 0",
        '    valid_until: "2031-01-01T00:00:00Z"',
        '  - name: "app"',
        "    external: true",
        "grants:",
        '  - role: "r"',
        "    privileges: [SELECT]",
        '    object: {type: table, schema: "s", name: "t"}',
        '    columns: ["on", "b"]',
    ]


def test_nothing_is_a_manifest_too() -> None:
    assert yaml.safe_load(to_yaml({})) == {}


TEXTS = ["", " ", "on", "1", "0x1", "1:2", "- a", "a: b", "#", "'", '"', "\\", "\n", "\r\n", "\t", "\0", "\x07", "\x7f",
         "\x85", "\xa0", "\u2028", "\ufeff", "\ufffd", "é", "\U0001f600", "{{", "{%", "!x", "&a", "*", "%", "@", "`", "a\n\n b "]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_survives(text: str) -> None:
    for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        assert yaml.load(quoted(text), loader) == text
        value: Dict[str, Any] = {"profiles": {text: {"config": {text: text}}}, "scope": {"schemas": [text]}}
        assert yaml.load(to_yaml(value), loader) == value
