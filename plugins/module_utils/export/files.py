# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The exported manifest as a file: written whole or not at all, and only where it differs."""

from __future__ import annotations

import grp
import os
import pwd
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from ..failure import Failure
from ..problems import Problem
from ..reading import read_whole
from ..script_files import Draft

#: What is shown in the place of a file that somebody may have written passwords into.
_HIDDEN = "(not shown: it may hold a password)\n"

#: A mode as Ansible takes it.
_MODE = re.compile(r"(?:0o?)?[0-7]{3,4}|[ugoa]*(?:[-+=][rwxXstugo]*)+(?:,[ugoa]*(?:[-+=][rwxXstugo]*)+)*")

_WHO = {"owner": "user", "group": "group"}

_PASSWORD = re.compile(rb"passw", re.IGNORECASE)


def attribute_problems(params: Mapping[str, Any]) -> List[Problem]:
    """What is wrong with the common file options, before the file is there and only lacks its attributes."""
    problems: List[Problem] = []
    for name, known in (("owner", pwd.getpwnam), ("group", grp.getgrnam)):
        value = params.get(name)
        if value and not str(value).isdigit():
            try:
                known(str(value))
            except (KeyError, ValueError):
                problems.append(Problem(path=name, message=f"there is no {_WHO[name]} {value!r} where the module runs"))
    mode = params.get("mode")
    if mode is not None and not _MODE.fullmatch(str(mode)):
        problems.append(Problem(path="mode", message=f"{mode!r} is neither an octal nor a symbolic mode"))
    return problems


class Before(NamedTuple):
    """What a file holds, None where there is none."""

    content: Optional[bytes]

    @property
    def shown(self) -> str:
        """The content for a diff. An export holds no password, but somebody may have added one."""
        if self.content is None:
            return ""
        return _HIDDEN if _PASSWORD.search(self.content) else self.content.decode("utf-8", "replace")


def look(path: str) -> Before:
    """What the file holds now. Raises Failure."""
    if not os.path.lexists(path):
        return Before(None)
    try:
        return Before(read_whole(path)[0])
    except (OSError, ValueError) as exc:
        message = f"dest {path} cannot be read: {getattr(exc, 'strerror', None) or type(exc).__name__}"
        raise Failure("manifest_invalid", message, problems=[Problem(path="dest", message=message)]) from None


def put(module: Any, path: str, text: str, before: Before) -> Dict[str, Any]:
    """Write the file where it differs, and give it the attributes that the common file options ask for.

    ``module``: the AnsibleModule. Returns ``changed`` and the diff. Raises Failure.
    """
    changed = before.content != text.encode("utf-8")
    if changed and not module.check_mode:
        _write(module, path, text, new=before.content is None)
    shown = before.shown if changed else text
    diff: Dict[str, Any] = {"before": shown, "after": text, "before_header": path, "after_header": path}
    if os.path.lexists(path):
        wanted = module.load_file_common_arguments(module.params, path=path)
        changed = bool(module.set_fs_attributes_if_different(wanted, changed))
    return {"changed": changed, "diff": diff}


def _write(module: Any, path: str, text: str, *, new: bool) -> None:
    draft = Draft("dest", path, text)
    try:
        if new:
            # Ansible's own move would let others read it until its mode is set.
            draft.place()
            module.set_default_selinux_context(path, False)
        else:
            # It keeps the owner, the mode and the context of what was there.
            module.atomic_move(draft.name, path, unsafe_writes=module.params["unsafe_writes"])
    finally:
        draft.drop()
