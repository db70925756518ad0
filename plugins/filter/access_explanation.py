# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes lines of an explanation."""

from __future__ import annotations

DOCUMENTATION = r"""
name: access_explanation
short_description: Why roles have what they have, in lines
version_added: 1.0.0
description:
  - Makes lines of what O(pg_access.reconcile.pg_role_reconcile#module:explain) has answered, for whoever reads the
    output. The role P(pg_access.reconcile.reconcile#role) shows them where it is given C(reconcile_explain).
  - Answers that differ in nothing but the privilege share a line. Of each role at most 100 lines are shown; the result
    has all of them.
author:
  - The pg_access.reconcile authors (@pg-access)
options:
  _input:
    description: A result of a run that succeeded.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Ask why app_owner has what it has
  pg_access.reconcile.pg_role_reconcile:
    login_db: shop
    roles: [{name: app_owner}]
    explain: [app_owner]
  check_mode: true
  register: access

- name: Show the answers
  ansible.builtin.debug:
    msg: "{{ access | pg_access.reconcile.access_explanation }}"
"""

RETURN = r"""
_value:
  description: Lines of text.
  type: list
  elements: str
  sample:
    - "shop: app"
    - "app has INHERIT, SET on role team: declared (memberships[0].members[0])"
    - "app has SELECT on table inventory.* (12), through team -> inventory-editor: declared (profiles.editor.grants[1])"
    - "app gains USAGE on schema inventory, as everybody: declared (grants[3])"
"""

from typing import Any, Callable, Dict, List, Mapping

from ansible_collections.pg_access.reconcile.plugins.plugin_utils.answers import lines_of


def access_explanation(result: Mapping[str, Any]) -> List[str]:
    """See DOCUMENTATION."""
    return lines_of(result)


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {"access_explanation": access_explanation}
