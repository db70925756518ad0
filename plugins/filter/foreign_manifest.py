# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that recognises files of other tools."""

from __future__ import annotations

DOCUMENTATION = r"""
name: foreign_manifest
short_description: Which tool a manifest file was written for
version_added: 1.0.0
description:
  - For the role P(pg_access.reconcile.reconcile#role) itself. Recognises files of pgroles and resources of Kubernetes
    by the same rules as O(pg_access.reconcile.pg_role_reconcile#module:manifest_files).
author:
  - The pg_access.reconcile authors (@pg-access)
positional: path
options:
  _input:
    description: The file's text.
    type: str
    required: true
  path:
    description: Where the file is. The parts of a bundle are looked for from there.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Say what a file is
  ansible.builtin.debug:
    msg: "{{ (text | pg_access.reconcile.foreign_manifest('/srv/access/policy.yml')).tool or 'a native manifest' }}"
  vars:
    text: "auth_providers: []"
"""

RETURN = r"""
_value:
  description:
    - A dict with C(tool), the format in a few words or empty for a native manifest, and C(parts), the paths of the
      files that a pgroles bundle consists of.
  type: dict
  sample: {tool: a pgroles manifest, parts: []}
"""

from typing import Any, Callable, Dict

from ansible_collections.pg_access.reconcile.plugins.plugin_utils.foreign import told_of


def foreign_manifest(text: Any, path: str) -> Dict[str, Any]:
    """See DOCUMENTATION."""
    return told_of(text, str(path))._asdict()


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {"foreign_manifest": foreign_manifest}
