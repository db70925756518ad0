# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The key of the password fingerprints: an option, an environment variable, or a file that is made once."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from typing import Any, List, Mapping, Optional, Tuple

from .masking import KEY_VARIABLE
from .problems import Problem
from .reading import read_whole
from .records import dataclass, field

#: A shorter key could be found by trying.
SHORTEST_KEY = 16

#: A longer file is something else.
LONGEST_KEY = 65536

#: Bytes of a key that the module makes.
NEW_KEY = 32

#: The one line that is missing where a key is needed and there is none.
EXAMPLE = "fingerprint_key: \"{{ lookup('ansible.builtin.password', inventory_dir ~ '/fingerprint_key', length=40) }}\""


@dataclass(frozen=True)
class Key:
    """The key, or the file that it is to be made in. Both are None where there is no key."""

    value: Optional[bytes] = field(default=None, repr=False)
    new_file: Optional[str] = None
    warnings: Tuple[str, ...] = ()

    @property
    def given(self) -> bool:
        """Whether fingerprints can be made, be it with a key that the run will make."""
        return self.value is not None or self.new_file is not None


def key_of(raw: Mapping[str, Any], file: Optional[str], environment: Mapping[str, str]) -> Tuple[Key, List[Problem]]:
    """The key that the options or the environment give, and what is wrong with it. An empty one is not given.

    ``file`` is ``fingerprint_key_file`` with ``~`` and variables expanded.
    """
    given = raw.get("fingerprint_key")
    if given not in (None, "") and file:
        return Key(), [_problem("fingerprint_key_file", "excludes fingerprint_key: there is one key")]
    if file:
        return _of_file(file)
    place = "fingerprint_key"
    if given in (None, ""):
        given, place = environment.get(KEY_VARIABLE) or None, KEY_VARIABLE
    if given is None:
        return Key(), []
    if not isinstance(given, str):
        return Key(), [_problem(place, "must be text: quote it, or use | string in a template")]
    try:
        value = given.encode("utf-8")
    except UnicodeEncodeError:
        return Key(), [_problem(place, "is not valid Unicode text")]
    if len(value) < SHORTEST_KEY:
        return Key(), [_problem(place, f"is shorter than {SHORTEST_KEY} bytes")]
    return Key(value), []


def _problem(path: str, message: str) -> Problem:
    return Problem(path=path, message=message)


def _of_file(path: str) -> Tuple[Key, List[Problem]]:
    place = "fingerprint_key_file"
    if not os.path.isabs(path):
        # Not shown: it may be the key itself.
        return Key(), [_problem(place, "must be an absolute path, where the module runs")]
    try:
        value, mode = read_whole(path, LONGEST_KEY)
    except FileNotFoundError:
        folder = os.path.dirname(path)
        if os.path.islink(path) or not os.access(folder, os.F_OK | os.W_OK | os.X_OK):
            return Key(), [_problem(place, f"{path!r} cannot be made: there is no folder {folder!r} to write to")]
        return Key(new_file=path), []
    except (OSError, ValueError) as exc:
        return Key(), [_problem(place, f"{path!r} cannot be read: {getattr(exc, 'strerror', None) or 'no file name'}")]
    if len(value) < SHORTEST_KEY:
        return Key(), [_problem(place, f"{path!r} is shorter than {SHORTEST_KEY} bytes")]
    open_to_others = f"fingerprint_key_file {path} can be read by other users: its mode should be 0600"
    return Key(value, warnings=(open_to_others,) if mode & 0o077 else ()), []


def make_key(path: str) -> bytes:
    """Make the file with a new key, or read the one that another run made meanwhile.

    Raises OSError.
    """
    value = secrets.token_bytes(NEW_KEY)
    # Written under another name first: a run that dies in between leaves no half of a key.
    draft = f"{path}.{os.getpid()}.{secrets.token_hex(4)}"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(value)
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            with open(path, "rb") as existing:
                value = existing.read()
            if len(value) < SHORTEST_KEY:
                raise OSError(errno.EINVAL, f"it appeared meanwhile and is shorter than {SHORTEST_KEY} bytes") from None
        except OSError:
            # A file system without hard links.
            os.rename(draft, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
    return value
