# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The key of the fingerprints: where it comes from, what is wrong with it, and the file that is made once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, List

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.keys import Key, key_of, make_key
from ansible_collections.pg_access.reconcile.plugins.module_utils.masking import KEY_VARIABLE

LONG = "k" * 16


def refused(raw: Dict[str, Any], file: Any = None, environment: Any = None) -> List[str]:
    key, problems = key_of(raw, file, environment or {})
    assert not key.given
    assert len(problems) == 1
    return [str(problems[0].path), problems[0].message]


# ---- option and environment ------------------------------------------------------------------------------------------


def test_without_anything_there_is_no_key_and_nothing_is_wrong() -> None:
    for raw in ({}, {"fingerprint_key": None}, {"fingerprint_key": ""}):
        assert key_of(raw, None, {KEY_VARIABLE: ""}) == (Key(), [])
    assert not Key().given


def test_the_option_is_the_key_and_wins_over_the_environment() -> None:
    assert key_of({"fingerprint_key": LONG}, None, {KEY_VARIABLE: "e" * 16})[0] == Key(LONG.encode())


@pytest.mark.parametrize("given", [None, ""])
def test_the_environment_steps_in_for_an_option_that_is_not_given(given: Any) -> None:
    assert key_of({"fingerprint_key": given}, None, {KEY_VARIABLE: "e" * 16}) == (Key(b"e" * 16), [])


def test_a_key_is_counted_in_bytes() -> None:
    assert key_of({"fingerprint_key": "ü" * 8}, None, {})[0].given
    assert refused({"fingerprint_key": "k" * 15}) == ["fingerprint_key", "is shorter than 16 bytes"]
    assert refused({}, environment={KEY_VARIABLE: "k" * 15})[0] == KEY_VARIABLE


@pytest.mark.parametrize("wrong", [1234567890123456, True, ["k" * 16], {"k": LONG}])
def test_a_key_that_is_no_text_is_refused_without_being_shown(wrong: Any) -> None:
    path, message = refused({"fingerprint_key": wrong})
    assert path == "fingerprint_key"
    assert "must be text" in message
    assert "12345" not in message
    assert LONG not in message


def test_a_key_that_is_not_unicode_is_refused() -> None:
    assert "Unicode" in refused({"fingerprint_key": "\udc80" * 16})[1]


def test_no_representation_shows_the_key() -> None:
    assert LONG not in repr(Key(LONG.encode()))


# ---- the file --------------------------------------------------------------------------------------------------------


def test_two_keys_are_one_too_many(tmp_path: Path) -> None:
    path, message = refused({"fingerprint_key": LONG}, str(tmp_path / "key"))
    assert path == "fingerprint_key_file"
    assert "excludes" in message


def test_a_file_wins_over_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"f" * 32)
    file.chmod(0o600)
    assert key_of({}, str(file), {KEY_VARIABLE: LONG}) == (Key(b"f" * 32), [])


def test_the_files_bytes_are_the_key_whatever_they_are(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"\x00\xff\n" * 6)
    file.chmod(0o600)
    assert key_of({}, str(file), {})[0].value == b"\x00\xff\n" * 6


def test_a_missing_file_is_to_be_made_and_is_not_made_by_looking(tmp_path: Path) -> None:
    key, problems = key_of({}, str(tmp_path / "key"), {})
    assert (key.value, key.new_file, problems) == (None, str(tmp_path / "key"), [])
    assert key.given
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("key", "must be an absolute path"),
        ("/no/such/folder/key", "there is no folder"),
        ("/", "cannot be read"),
        ("/etc\0/key", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(path: str, words: str) -> None:
    place, message = refused({}, path)
    assert place == "fingerprint_key_file"
    assert words in message


@pytest.mark.parametrize("content", [b"", b"k" * 15])
def test_a_short_file_is_refused_without_being_shown(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    _path, message = refused({}, str(tmp_path / "key"))
    assert "shorter than 16 bytes" in message
    assert "kkk" not in message


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True)])
def test_a_file_that_others_can_read_is_warned_about(tmp_path: Path, mode: int, warned: bool) -> None:
    file = tmp_path / "key"
    file.write_bytes(LONG.encode())
    file.chmod(mode)
    key = key_of({}, str(file), {})[0]
    assert key.value == LONG.encode()
    assert bool(key.warnings) is warned
    assert all("0600" in text and LONG not in text for text in key.warnings)


# ---- making it -------------------------------------------------------------------------------------------------------


def test_a_new_key_is_32_random_bytes_that_only_its_owner_reads(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        first, second = make_key(str(tmp_path / "a")), make_key(str(tmp_path / "b"))
    finally:
        os.umask(old)
    assert len(first) == 32
    assert first != second
    assert (tmp_path / "a").read_bytes() == first
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_key_that_another_run_made_meanwhile_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"o" * 32)
    assert make_key(str(file)) == b"o" * 32
    assert file.read_bytes() == b"o" * 32
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_half_a_key_that_appears_meanwhile_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"")
    with pytest.raises(OSError, match="shorter than 16 bytes"):
        make_key(str(tmp_path / "key"))


def test_without_hard_links_the_file_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_paths: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    value = make_key(str(tmp_path / "key"))
    assert (tmp_path / "key").read_bytes() == value
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_failure_leaves_no_draft_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        make_key(str(tmp_path / "key"))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        make_key(str(tmp_path / "gone" / "key"))


def test_a_key_file_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        key, problems = key_of({}, str(path), {})
        assert not key.given
        assert [problem.path for problem in problems] == ["fingerprint_key_file"]
        assert "cannot be read" in problems[0].message


def test_a_key_file_that_is_something_else(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"x" * 65537)
    _key, problems = key_of({}, str(path), {})
    assert "it is larger than 65536 bytes" in problems[0].message
