# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What modules and roles take, as their own documentation has it; of ``awx.awx`` that of the release installed."""

from __future__ import annotations

import ast
import pkgutil
import re
from pathlib import Path
from typing import Any, Dict, List, Optional

import yaml
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.awx.judge import Known

CONTROLLER = "ansible_collections.awx.awx"
#: This collection.
OWN = Path(__file__).resolve().parents[3]

MODULES = (
    "project",
    "execution_environment",
    "credential_type",
    "inventory",
    "job_template",
    "workflow_job_template",
)


def known() -> Optional[Known]:
    """What can be given, or None where ``awx.awx`` is not installed."""
    try:
        modules = {name: _options(f"plugins/modules/{name}.py") for name in MODULES}
        access = _options("plugins/doc_fragments/auth.py")
    except (ImportError, OSError):
        return None
    return Known(
        modules=modules,
        access=_names(access),
        variables=_role_options("awx_job_template"),
        reconcile=reconcile_variables(),
    )


def _options(path: str) -> Dict[str, Dict[str, Any]]:
    """The options in the documentation of a file of ``awx.awx``, without that of fragments."""
    source = pkgutil.get_data(CONTROLLER, path) or b""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Assign)
            and [getattr(target, "id", "") for target in node.targets] == ["DOCUMENTATION"]
            and isinstance(node.value, ast.Constant)
        ):
            found: Dict[str, Dict[str, Any]] = yaml.safe_load(str(node.value.value))["options"]
            return found
    raise OSError(f"{path} has no documentation")


def _names(options: Dict[str, Dict[str, Any]]) -> List[str]:
    return [name for option, about in options.items() for name in (option, *about.get("aliases", []))]


def reconcile_variables() -> List[str]:
    """Those of the role, and of the playbooks around it."""
    texts = [path.read_text(encoding="utf-8") for path in (OWN / "playbooks").glob("*.yml")]
    return sorted({*_role_options("reconcile"), *re.findall(r"\breconcile_\w+", "\n".join(texts))})


def _role_options(name: str) -> List[str]:
    specs = yaml.safe_load((OWN / "roles" / name / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    return list(specs["argument_specs"]["main"]["options"])
