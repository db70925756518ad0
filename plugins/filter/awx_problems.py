# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that judges what the role awx_job_template is given."""

from __future__ import annotations

DOCUMENTATION = r"""
name: awx_problems
short_description: What is wrong with the variables of the role awx_job_template
version_added: 1.0.0
description:
  - For the role P(pg_access.reconcile.awx_job_template#role) itself. Judges all of its variables before anything is
    sent to AWX, and compares options of modules with the documentation of the collection C(awx.awx) that is installed.
author:
  - The pg_access.reconcile authors (@pg-access)
positional: credential_type, named
options:
  _input:
    description: The role's variables by name, without C(awx_job_template_).
    type: dict
    required: true
  credential_type:
    description: The role's own credential type.
    type: dict
    required: true
  named:
    description: The names of all variables that begin with C(awx_job_template_), to find misspelt ones.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Find out what awx.awx would refuse
  ansible.builtin.debug:
    msg: >-
      {{ given | pg_access.reconcile.awx_problems({'inputs': {'fields': []}}, ['awx_job_template_modes']) }}
  vars:
    given:
      organization: Default
      name: PostgreSQL access
      project: {scm_ulr: https://git.example.com/dba/access.git}
      execution_environment: {}
      credential: PostgreSQL access
      credential_inputs:
      update_secrets: false
      more_credentials: []
      hosts: {localhost: {}}
      playbook: reconcile.yml
      limit: ""
      labels: []
      modes: [additive]
      databases: [shop]
      max_drops: 0
      max_revokes: 500
      extra_vars: {}
      approval: {}
      credential_type: {}
      inventory: {}
      plan: {}
      apply: {}
      workflow: {}
"""

RETURN = r"""
_value:
  description:
    - A text for each problem. Empty where there are none.
  type: list
  elements: str
"""

from typing import Any, Callable, Dict, List, Mapping, Sequence

from ansible_collections.pg_access.reconcile.plugins.plugin_utils.awx.documented import known
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.awx.judge import problems_of


def awx_problems(given: Mapping[str, Any], credential_type: Mapping[str, Any], named: Sequence[str]) -> List[str]:
    """See DOCUMENTATION."""
    found = known()
    if found is None:
        return [
            "The collection awx.awx, through which the role works, is not installed: ansible-galaxy collection install"
            " awx.awx"
        ]
    return problems_of(given, credential_type, named, found)


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {"awx_problems": awx_problems}
