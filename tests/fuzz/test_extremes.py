# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Inputs that no random choice finds: files that are none, YAML bombs, and far too much of everything."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from caller import LARGEST, Answer, check, check_paths, must, run
from generators import FILE_OPTIONS, LONG, MARKER, SEEDS, Call

KEY = "k-0123456789abcdef0123"


def of_options(**arguments: Any) -> Answer:
    call = Call({"login_db": "app", **arguments})
    answer = run(call)
    check(call, answer, "extremes")
    return answer


def of_file(path: Path | str) -> Answer:
    return of_options(manifest_files=[str(path)], fingerprint_key=KEY)


@pytest.mark.parametrize("number", range(len(SEEDS)))
def test_seeds_are_valid(number: int) -> None:
    # Each gets as far as the connection, so what is changed in it is what is wrong.
    call = Call({**SEEDS[number], "login_db": "app"}, {"FUZZ_PASSWORD": "Pa55-word-from-env"})
    answer = run(call)
    assert answer.outcome == "connection_failed", answer.output
    assert answer.connects == 1


def test_seeds_have_everything() -> None:
    # A section or a field that the spec gets is missed here until a seed has it.
    from generators import MANIFEST_OPTIONS

    def fields(options: dict[str, Any], path: str = "") -> set[str]:
        found = set()
        for name, option in options.items():
            found.add(f"{path}{name}")
            for key in ("options", "values", "of_dict"):
                found |= fields(option.get(key, {}), f"{path}{name}.")
        return found

    def used(value: Any, options: dict[str, Any], path: str = "") -> set[str]:
        found: set[str] = set()
        for item in value if isinstance(value, list) else [value]:
            for key, inner in item.items() if isinstance(item, dict) else ():
                name = next(
                    (name for name, option in options.items() if key in (name, *option.get("aliases", ()))), None
                )
                if name is None:
                    continue
                found.add(f"{path}{name}")
                option = options[name]
                for below in ("options", "of_dict"):
                    found |= used(inner, option.get(below, {}), f"{path}{name}.")
                if "values" in option:
                    for each in inner.values():
                        found |= used(each, option["values"], f"{path}{name}.")
        return found

    wanted = fields({name: option for name, option in MANIFEST_OPTIONS.items() if name not in FILE_OPTIONS})
    assert wanted - set().union(*(used(seed, MANIFEST_OPTIONS) for seed in SEEDS)) == set()


# ---- files that are none -------------------------------------------------------------------------------------------


def _loop(folder: Path) -> Path:
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    return folder / "a"


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def _link_to_pipe(folder: Path) -> Path:
    (folder / "link").symlink_to(_pipe(folder))
    return folder / "link"


def _sparse(folder: Path) -> Path:
    path = folder / "sparse.yml"
    with path.open("wb") as stream:
        stream.truncate(10**12)
    return path


def _text(content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "m.yml"
        path.write_bytes(content)
        return path

    return make


FILES: dict[str, Callable[[Path], Path | str]] = {
    "missing": lambda folder: folder / "nowhere.yml",
    "directory": lambda folder: folder,
    "below a file": lambda folder: _text(b"roles: []")(folder) / "m.yml",
    "loop": _loop,
    "pipe": _pipe,
    "link to a pipe": _link_to_pipe,
    "socket or device": lambda _folder: "/dev/null",
    "endless": lambda _folder: "/dev/zero",
    "standard input": lambda _folder: "/dev/stdin",
    "a terabyte": _sparse,
    "relative": lambda _folder: "m.yml",
    "empty name": lambda _folder: "",
    "NUL in the name": lambda _folder: "/tmp/a\0b",
    "surrogate in the name": lambda _folder: "/tmp/\ud800",
    "long name": lambda _folder: "/" + "x" * 100_000,
    "many parts": lambda _folder: "/x" * 5000,
    "home": lambda _folder: "~nobody-of-that-name/m.yml",
    "empty": _text(b""),
    "spaces": _text(b" \n\n"),
    "comment": _text(b"# nothing\n"),
    "BOM alone": _text(b"\xef\xbb\xbf"),
    "binary": _text(bytes(range(256)) * 10),
    "UTF-16": _text("roles: []\n".encode("utf-16")),
    "two documents": _text(b"roles: []\n---\nroles: []\n"),
    "a list": _text(b"- roles\n"),
    "a scalar": _text(b"roles\n"),
    "NUL": _text(b"roles: [{name: 'a\0b'}]\n"),
}


@pytest.mark.parametrize("make", FILES.values(), ids=FILES)
def test_file_that_is_none(make: Callable[[Path], Path | str], tmp_path: Path) -> None:
    assert of_file(make(tmp_path)).outcome == "manifest_invalid"


@pytest.mark.parametrize(
    "make", [FILES[name] for name in ("directory", "loop", "pipe", "endless", "a terabyte", "standard input")]
)
def test_key_file_that_is_none(make: Callable[[Path], Path | str], tmp_path: Path) -> None:
    answer = of_options(roles=[{"name": "app", "password": MARKER}], fingerprint_key_file=str(make(tmp_path)))
    assert answer.outcome == "manifest_invalid"
    assert MARKER not in answer.output


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = _text(b"roles: []")(tmp_path)
    path.chmod(0)
    assert of_file(path).outcome == "manifest_invalid"


# ---- YAML bombs ----------------------------------------------------------------------------------------------------


def _laughs(first: str, each: str, last: str) -> str:
    lines = [f"l0: &l0 {first}"]
    lines += [f"l{number}: &l{number} {each.replace('@', f'*l{number - 1}')}" for number in range(1, 12)]
    return "\n".join([*lines, last.replace("@", "*l11")]) + "\n"


_TEN = "[" + ", ".join(["@"] * 10) + "]"

BOMBS = {
    "lists": _laughs("[x, x]", _TEN, "roles: @"),
    "lists in a role": _laughs("[x, x]", _TEN, "roles: [{name: x, nonsense: @}]"),
    "lists as a password": _laughs("[x, x]", _TEN, "roles: [{name: x, password: @}]"),
    "dicts": _laughs("{x: x}", "{" + ", ".join(f"k{n}: @" for n in range(10)) + "}", "profiles: @"),
    "merged": _laughs("{x: x}", "{<<: " + _TEN + "}", "roles: [{<<: @}]"),
    "merged into each other": _laughs("{x: x}", "{<<: " + _TEN + ", y: z}", "roles: [@]"),
    "long lists of long lists": "l: &l [" + "x, " * 3000 + "]\nm: &m {role: x, privileges: *l}\n"
    "grants: [" + "*m, " * 3000 + "]\n",
    "itself": "roles: &a [*a]\n",
    "itself in a dict": "roles: &a [{name: x, members: *a}]\n",
    "itself as a key": "&a {*a : x}\n",
    "each other": "roles: &a [&b [*a, *b]]\n",
    "deep list": "roles: " + "[" * 3000 + "]" * 3000 + "\n",
    "deep list without end": "[" * 200_000,
    "deep dict": "{a: " * 3000 + "x" + "}" * 3000 + "\n",
    "deep block": "".join(" " * depth + "a:\n" for depth in range(2000)),
    "deep dashes": "- " * 5000 + "x\n",
    "many digits": "roles: [{name: x, connection_limit: " + "9" * 1_000_000 + "}]\n",
    "many sexagesimals": "roles: [{name: x, connection_limit: 1" + ":59" * 100_000 + "}]\n",
    "long key": "x" * 1_000_000 + ": x\n",
    "long value": "default_owner: " + "x" * 5_000_000 + "\n",
    "many anchors": "".join(f"a{number}: &a{number} x\n" for number in range(20_000)),
    "many keys": "profiles: {" + ", ".join(f"p{number}: x" for number in range(20_000)) + "}\n",
    "many tags": "roles: [" + ", ".join(["!x y"] * 20_000) + "]\n",
    "many duplicates": "roles: []\n" * 20_000,
    "many documents": "--- x\n" * 20_000,
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_bomb(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Far more than a person writes may take its time, but not for ever, and not all memory.
    monkeypatch.setattr("caller.SECONDS", 20)
    monkeypatch.setattr("caller.MEGABYTES", 600)
    assert of_file(_text(text.encode())(tmp_path)).outcome == "manifest_invalid"


def test_aliases_are_fine(tmp_path: Path) -> None:
    roles = ", ".join(f"{{name: r{number}}}" for number in range(1000))
    rules = "\n".join(f"- {{role: r{number}, privileges: *rw, object: *inv}}" for number in range(1000))
    text = f"roles: [{roles}]\ngrants:\n- {{role: r0, privileges: &rw [SELECT, INSERT], object: &inv {{type: table, schema: s, name: '*'}}}}\n{rules}\n"
    assert of_file(_text(text.encode())(tmp_path)).outcome == "connection_failed"


# ---- too much ------------------------------------------------------------------------------------------------------

GRANT = {"role": "app", "privileges": ["SELECT"], "object": {"type": "table", "schema": "s", "name": "t"}}

#: Of what is a list: enough to see that it is linear and bounded. The worst are for the long run.
MANY = 20_000 if LONG else 4_000

#: How many of these are large and nothing else.
FINE = 3

MUCH: dict[str, dict[str, Any]] = {
    "long host": {"login_host": "x" * 1_000_000},
    "patterns": {"scope": {"ignore_roles": ["*a" * 40] * 50}, "assume_roles": ["a" * 60 + "b"]},
    "many roles": {"roles": [{"name": f"r{number}", "login": True} for number in range(MANY // 2)]},
    "wrong items": {"grants": [1] * 5 * MANY},
    "wrong dicts": {"grants": [{"nonsense": 1}] * MANY},
    "unknown roles": {"grants": [{**GRANT, "role": f"r{number}"} for number in range(MANY)]},
    "wrong names": {"roles": [{"name": "x" * 64 + str(number)} for number in range(MANY)]},
    "long names": {"roles": [{"name": "x" * 100_000 + str(number), "nonsense": 1} for number in range(50)]},
    "long keys": {"roles": [{"name": "app", "x" * 100_000 + str(number): 1} for number in range(50)]},
    "long option": {"x" * 1_000_000: 1},
    "many options": {f"option_{number}": 1 for number in range(MANY // 2)},
    "many passwords": {"passwords": {f"r{number}": MARKER + str(number) for number in range(MANY // 10)}},
    "many parameters": {"connect_params": {f"p{number}": "x" for number in range(MANY)}},
    "one role often": {"roles": [{"name": "app"}] * MANY},
    "every cycle": {
        "memberships": [{"role": f"r{group}", "members": [{"name": f"r{member}"} for member in range(150)]} for group in range(150)],
        "assume_roles": [f"r{number}" for number in range(150)],
    },
    "brackets": {"scope": {"ignore_roles": ["[" * 100_000]}},
    "signature": {"grants": [{**GRANT, "object": {"type": "function", "schema": "s", "name": "f(" * 50_000}}]},
    "instant": {"roles": [{"name": "app", "valid_until": "2027-01-31T23:59:59.".ljust(100_000, "9")}]},
    "setting": {"roles": [{"name": "app", "config": {"search_path": '"' * 100_001}}]},
    "elements": {"roles": [{"name": "app", "config": {"search_path": "a, " * 50_000}}]},
    "long setting": {"roles": [{"name": "app", "config": {"a" * 50_000 + ".b" * 1000: "x"}}]},
    "digits": {"roles": [{"name": "app", "connection_limit": 10**4000}]},
    "text for a list": {"roles": "[" * 100_000},
    "text for passwords": {"passwords": "{" + '"a":' * 100_000},
}  # fmt: skip


@pytest.mark.parametrize(("number", "arguments"), list(enumerate(MUCH.values())), ids=MUCH)
def test_too_much(number: int, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # Ansible's own validation takes its share.
    monkeypatch.setattr("caller.SECONDS", 20)
    monkeypatch.setattr("caller.MEGABYTES", 600)
    answer = of_options(**arguments)
    assert answer.outcome == ("connection_failed" if number < FINE else "manifest_invalid"), answer.output[:2000]
    assert MARKER not in answer.output
    assert len(answer.output) < LARGEST
    check_paths(arguments, answer)


def test_what_is_left_out_is_counted() -> None:
    result = of_options(grants=[{"role": "nobody"}] * 3000).result
    assert result["truncated"] is True
    shown = len(result["problems"]) - 1
    assert result["problems"][-1]["message"] == f"{9000 - shown} more problems are not shown: correct these first"
    assert len(json.dumps(result["problems"])) < 260_000
    assert "8999 more problems" in result["msg"]


@pytest.mark.parametrize("depth", [50, 120, 200, 300, 340, 400, 700, 990, 1500])
@pytest.mark.parametrize(
    "place", ["roles", "grants", "scope", "passwords", "connect_params", "nonsense", "login_db", "rehearse"]
)
def test_deep(place: str, depth: int) -> None:
    value: Any = MARKER
    for step in range(depth):
        value = {"name": value} if step % 2 else [value]
    try:
        json.dumps(value)
    except RecursionError:
        pytest.skip("Ansible could not even send it")
    for item in (value, [value], {"a": value}):
        answer = of_options(**{place: item})
        must(answer.outcome == "manifest_invalid", "deep", answer.output[:1000])
