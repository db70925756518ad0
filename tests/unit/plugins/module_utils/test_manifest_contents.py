# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``manifest_contents``: files of other tools that are not where the module runs."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.masking import Secrets
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import ManifestInvalid

pytest.importorskip("yaml")

POLICY = """
apiVersion: pgroles.io/v1alpha1
kind: PostgresPolicy
metadata: {name: shop, annotations: {note: "{{ only text }}"}}
spec:
  roles: [{name: policy_role}]
"""
FILES = {
    "pgroles.yml": "auth_providers: []\nroles: [{name: app, login: true, password: {from_env: APP_PASSWORD}}, {name: owner}]\n",
    "resources.yml": f"---{POLICY}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: x}}\nstringData: {{a: hush-hush-hush}}\n",
    "bundle/root.yml": "shared: {default_owner: owner}\nsources: [{file: ../parts/one.yml}, {file: two.yml}]\n",
    "parts/one.yml": "policy: {name: one}\nscope: {roles: [one]}\nroles: [{name: one}]\n",
    "bundle/two.yml": "scope: {roles: [two]}\nroles: [{name: two}]\n",
}
NATIVE: Dict[str, Any] = {"roles": [{"name": "native"}], "grants": [
    {"role": "app", "privileges": ["USAGE"], "object": {"type": "schema", "name": "s"}}
]}  # fmt: skip


def contents(folder: str, **more: str) -> Dict[str, str]:
    files = {**FILES, **more}
    return {f"{folder}/{name}": base64.b64encode(text.encode()).decode() for name, text in files.items() if text}


def failed(raw: Dict[str, Any]) -> List[Tuple[Any, str]]:
    with pytest.raises(ManifestInvalid) as caught:
        manifest_to_policy(raw)
    return [(problem.path, problem.message) for problem in caught.value.problems]


def test_contents_mean_what_the_files_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_PASSWORD", "not-for-any-output")
    for name, text in {**FILES, "native.yml": str(NATIVE)}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    read = ("pgroles.yml", "resources.yml", "bundle/root.yml", "native.yml")
    expected = manifest_to_policy({"manifest_files": [str(tmp_path / name) for name in read]})
    secrets = Secrets()
    found = manifest_to_policy({**NATIVE, "manifest_contents": contents("/elsewhere")}, secrets)
    assert set(found.roles) == set(expected.roles) == {"app", "owner", "policy_role", "one", "two", "native"}
    assert len(found.rules) == len(expected.rules) == 1
    assert "hush-hush-hush" in secrets.texts()
    alone = manifest_to_policy({"manifest_contents": contents("/elsewhere")})
    assert set(alone.roles) == set(expected.roles) - {"native"}


def test_nothing_is_read_where_the_module_runs(tmp_path: Path) -> None:
    """A part that a bundle names, and that nobody has handed over."""
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "two.yml").write_text("roles: [{name: here}]", encoding="utf-8")
    given = contents(str(tmp_path), **{"bundle/two.yml": ""})
    told = ("two.yml", "is not among manifest_contents, and a bundle there names it")
    assert told in failed({"manifest_contents": given})


@pytest.mark.parametrize(
    ("raw", "path", "message"),
    [
        ({"manifest_contents": {}}, "manifest_contents", "not empty"),
        ({"manifest_contents": ["/a.yml"]}, "manifest_contents", "must be a dict"),
        ({"manifest_contents": {"/a.yml": "roles: []"}}, "manifest_contents.'/a.yml'", "must be text in base64"),
        ({"manifest_contents": {"": ""}}, "manifest_contents.''", "a path must not be empty"),
        ({"manifest_contents": {"/a.yml": "", "/b/../a.yml": ""}}, "manifest_contents.'/b/../a.yml'", "is given twice"),
        ({"manifest_contents": {"/a.yml": 5}}, "manifest_contents.'/a.yml'", "must be text in base64"),
        ({"manifest_contents": {"/a.yml": "//4="}}, "a.yml", "is not UTF-8 text"),
        (
            {"manifest_contents": contents("/x"), "manifest_files": ["/b.yml"]},
            "manifest_contents",
            "cannot be combined",
        ),
        (
            {"manifest_contents": contents("/x"), "roles": [{"name": "app"}]},
            "pgroles.yml: roles[0]",
            "is declared twice",
        ),
        ({"manifest_contents": contents("/x"), "bogus": 1}, "bogus", "unknown option"),
        ({"manifest_contents": contents("/x"), "roles": [{"name": 5}]}, "roles[0].name", "must be text"),
    ],
)
def test_what_cannot_be_right(raw: Dict[str, Any], path: str, message: str) -> None:
    found = failed(raw)
    assert [text for place, text in found if place == path and message in text], found
