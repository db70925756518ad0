# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which tool a file was written for, by its text on the controller."""

from __future__ import annotations

from typing import List

import pytest

pytest.importorskip("yaml")

from ansible_collections.pg_access.reconcile.plugins.plugin_utils.foreign import told_of

RESOURCE = "apiVersion: v1\nkind: Role\nmetadata: {annotations: {a: '{{ x }}'}}\n"


@pytest.mark.parametrize(
    ("text", "tool", "parts"),
    [
        ("roles: [{name: app}]", "", []),
        ("roles: [{name: app, password: !vault 'x', comment: !unsafe '{{ y }}'}]", "", []),
        ("roles: '{{ roles }}'\ngrants: {{ broken }}", "", []),
        ("", "", []),
        ("- a list", "", []),
        ("a: [", "", []),
        ("a: &a [*a]", "", []),
        ("[" * 5000, "", []),
        ("roles: []\n---\nroles: []\n", "", []),
        ("auth_providers: []", "a pgroles manifest", []),
        ("roles: [{name: a, password: {from_env: X}}]", "a pgroles manifest", []),
        ("default_privileges: [{scope: {type: schema, schema: s}}]", "a pgroles manifest", []),
        (RESOURCE, "Kubernetes resources", []),
        (f"---\n{RESOURCE}---\n---\n{RESOURCE}", "Kubernetes resources", []),
        ("policy: {name: x}", "a part of a pgroles bundle", []),
        (
            "sources: [{file: a.yml}, {file: ../b.yml}, {fil: c}, 5]",
            "a pgroles bundle",
            ["/srv/in/a.yml", "/srv/b.yml"],
        ),
    ],
)
def test_what_a_file_is(text: str, tool: str, parts: List[str]) -> None:
    assert told_of(text, "/srv/in/root.yml") == (tool, parts)
