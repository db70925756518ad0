# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Extra variables as AWX writes them down for a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Every text is tagged, so that Ansible makes no template of it; keys too, and at any depth."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Template(str):
    """A text of the job template's own: Ansible may make a template of it, and it stays a text."""


_Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("!unsafe", text))
_Dumper.add_representer(_Template, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, "'"))


def written(template: Mapping[str, Any], launched: Mapping[str, Any]) -> str:
    """A file for ``-e @file``: the job template's own variables, and over them what a launch, a survey or an artifact
    gives.
    """
    own = {name: _trusted(value) for name, value in template.items() if name not in launched}
    return yaml.dump({**own, **launched}, Dumper=_Dumper, allow_unicode=True, sort_keys=False)


def _trusted(value: Any) -> Any:
    if isinstance(value, str):
        return _Template(value)
    if isinstance(value, Mapping):
        return {_trusted(name): _trusted(item) for name, item in value.items()}
    return [_trusted(item) for item in value] if isinstance(value, list) else value
