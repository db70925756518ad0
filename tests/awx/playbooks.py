# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbooks written by tests, run with ansible-playbook."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller import TOKEN
from playbook_zygote import Zygote

ROLE = "pg_access.reconcile.awx_job_template"


@dataclass(frozen=True)
class Run:
    """A playbook that has run."""

    code: int
    output: str

    @property
    def changed(self) -> dict[str, list[str]]:
        """The tasks that changed something, with the items of their loops."""
        found: dict[str, list[str]] = {}
        task = ""
        for line in self.output.splitlines():
            if match := re.match(r"TASK \[(?:[\w.]+ : )?(.*)\]", line):
                task = match[1]
            elif match := re.match(r"changed: \[\w+\](?: => \(item=(.*?)\))?", line):
                found.setdefault(task, [])
                if match[1]:
                    found[task].append(match[1])
        return found


class Playbooks:
    def __init__(self, collections: Path, folder: Path) -> None:
        self._folder = folder
        self._settings = {
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PIPELINING": "1",
            "LC_ALL": "C.UTF-8",
        }
        # Another ansible-core than that of the tests, where its program is named.
        other = os.environ.get("RECONCILE_ANSIBLE_PLAYBOOK")
        python = Path(other).with_name("python") if other else sys.executable
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        self._zygote = Zygote({**kept, **self._settings}, folder, python)

    def close(self) -> None:
        self._zygote.close()

    def run(self, plays: Any, *words: str, address: str = "", variables: Mapping[str, str] | None = None) -> Run:
        """Run plays, their text, or the file in which they are, with ``address`` against a controller."""
        path = plays if isinstance(plays, Path) else self._folder / "play.yml"
        if path is not plays:
            path.write_text(plays if isinstance(plays, str) else json.dumps(plays), encoding="utf-8")
        login = {"CONTROLLER_HOST": address, "CONTROLLER_OAUTH_TOKEN": TOKEN}
        environment = {**os.environ, **self._settings, **login, **(variables or {})}
        return Run(*self._zygote.play([*words, str(path)], self._folder, environment, 300))

    def role(self, values: Mapping[str, Any], *words: str, address: str) -> Run:
        """Run the role with these variables."""
        return self.run(role_play(values), *words, address=address)

    def objects(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The role's objects as its tasks hand them to the modules, before anything is there."""
        names = (
            "credential_type own_credential project execution_environment inventory host_variables plan apply workflow"
        )
        read = ", ".join(f"'{name}': _awx_job_template_{name}" for name in [*names.split(), "nodes", "links"])
        target = self._folder / "objects.json"
        copied = {"content": f"{{{{ {{{read}}} | to_json }}}}", "dest": str(target), "mode": "0600"}
        # The role's variables hold for the whole play, without its tasks.
        loaded = {"roles": [{"role": ROLE, "when": False}], "tasks": [{"ansible.builtin.copy": copied}]}
        run = self.run([{**each, **loaded} for each in role_play(values)])
        assert run.code == 0, run.output
        found: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
        return found


def role_play(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}", **values},
            "tasks": [{"ansible.builtin.import_role": {"name": ROLE}}],
        }
    ]
