# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever is given, the answer is a policy or a list of problems, never an exception of another kind."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any, Iterator, List, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import ManifestInvalid

WHOLE = {
    "default_owner": "o",
    "role_pattern": "{schema}-{profile}",
    "assume_roles": ["elsewhere"],
    "profiles": {
        "editor": {
            "login": False,
            "grants": [
                {"privileges": ["USAGE"], "object": {"type": "schema"}},
                {"privileges": ["SELECT"], "object": {"type": "table", "name": "*"}, "ensure": "present"},
            ],
            "default_privileges": [{"privileges": ["SELECT"], "on_type": "table", "with_grant_option": False}],
        }
    },
    "schemas": [{"name": "inv", "owner": "o", "profiles": ["editor"], "role_pattern": "{schema}_{profile}"}],
    "roles": [
        {"name": "o", "comment": "x", "valid_until": "infinity", "connection_limit": 5},
        {"name": "app", "login": True, "superuser": False},
        {"name": "old", "external": True, "privilege_reconciliation": "additive"},
    ],
    "memberships": [{"role": "inv_editor", "members": [{"name": "app", "admin": True}], "exclusive": True}],
    "grants": [
        {"role": "app", "privileges": ["CONNECT"], "object": {"type": "database"}},
        {"role": "PUBLIC", "privileges": ["ALL"], "object": {"type": "schema", "name": "inv"}, "ensure": "absent"},
        {"role": "old", "privileges": ["EXECUTE"], "on": {"type": "function", "schema": "inv", "name": "f(int)"}},
        {
            "role": "app",
            "privileges": ["ALL"],
            "object": {"type": "view", "schema": "inv", "name": "v"},
            "columns": ["a", "b"],
            "with_grant_option": True,
        },
        {"role": "app", "privileges": ["SELECT"], "object": {"type": "large_object", "name": 16403}},
        {"role": "app", "privileges": ["ALTER SYSTEM"], "object": {"type": "parameter", "name": "work_mem"}},
        {"role": "PUBLIC", "privileges": ["USAGE"], "object": {"type": "domain", "schema": "inv", "name": "*"}},
    ],
    "default_privileges": [
        {"scope": {"type": "global"}, "grant": [{"role": "app", "privileges": ["USAGE"], "on_type": "schema"}]}
    ],
    "scope": {"schemas": ["app_*"], "ignore_roles": ["tmp_*"]},
}

ODD: List[Any] = [
    *(None, True, False, 0, -1, 2**70, 1.5, float("nan"), "", "x", "*", "\0", "\ud800", "é" * 40, "(", "{profile}"),
    *([], [None], [[]], ["x", "x"], {}, {"": None}, {"name": "x"}, {"true": {}}, {"type": "type"}, [{"role": "old"}]),
]

KEYS = [
    "",
    "x",
    "true",
    "on",
    "name",
    "role",
    "password",
    "retirements",
    "members",
    "columns",
    "schema",
    "a.b",
    "\ud800",
    "é",
]


def places(value: Any, path: Tuple[Any, ...] = ()) -> Iterator[Tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from places(item, (*path, number))


def changed(source: random.Random) -> Any:
    value = copy.deepcopy(WHOLE)
    for _step in range(source.choice((1, 1, 2, 4))):
        path = source.choice(list(places(value)))
        holder: Any = value
        for step in path[:-1]:
            holder = holder[step]
        what = source.randrange(3)
        odd = copy.deepcopy(source.choice(ODD))
        if what == 0:
            holder[path[-1]] = odd
        elif what == 1:
            del holder[path[-1]]
        elif isinstance(holder, dict):
            holder[source.choice(KEYS)] = odd
        else:
            holder.append(odd if source.random() < 0.5 else copy.deepcopy(source.choice(holder)))
        if not value:
            return value
    return value


def outcome(raw: Any) -> str:
    try:
        manifest_to_policy(raw)
    except ManifestInvalid as invalid:
        assert invalid.problems
        for problem in invalid.problems:
            assert problem.path
            assert problem.message
            json.dumps(problem.as_dict())
        return invalid.code
    return "fine"


def test_the_whole_manifest_is_fine() -> None:
    assert outcome(WHOLE) == "fine"


def test_no_option_crashes_the_judge() -> None:
    source = random.Random(1)  # noqa: S311
    outcomes = {outcome(changed(source)) for _try in range(3000)}
    assert outcomes == {"fine", "manifest_invalid"}


def test_no_file_crashes_the_reader(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    source = random.Random(2)  # noqa: S311
    whole = json.dumps({key: value for key, value in WHOLE.items() if key != "assume_roles"}, indent=1)
    path = tmp_path / "access.yml"
    for _try in range(1500):
        text = whole
        for _step in range(source.choice((1, 2, 3))):
            start = source.randrange(len(text))
            end = min(len(text), start + source.randrange(12))
            junk = "".join(source.choice("{}[]:,&*!|>%@#\"'\n\t -?xé{%<<~0") for _char in range(source.randrange(4)))
            text = text[:start] + junk + text[end:]
        path.write_text(text, encoding="utf-8")
        outcome({"manifest_files": [str(path)], "assume_roles": ["elsewhere"]})
