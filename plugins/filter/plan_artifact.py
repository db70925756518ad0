# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes an artifact of plans."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_artifact
short_description: What is kept of plans for their approval
version_added: 1.0.0
description:
  - For the role P(pg_access.reconcile.reconcile#role) itself. Makes of results what the artifact C(reconcile_approved)
    has of a host.
author:
  - The pg_access.reconcile authors (@pg-access)
options:
  _input:
    description: Results of runs that succeeded.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Make a plan
  pg_access.reconcile.pg_role_reconcile:
    login_db: shop
    roles: [{name: app_owner}]
  check_mode: true
  register: plan

- name: Leave it for a later job, which the role finds there
  ansible.builtin.set_stats:
    aggregate: true
    data:
      reconcile_approved: "{{ {inventory_hostname: [plan] | pg_access.reconcile.plan_artifact} }}"
"""

RETURN = r"""
_value:
  description:
    - By database, a dict with C(digest), C(changed), C(suppressed_revoke_count) and C(summary), without
      C(summary.managed).
  type: dict
"""

from typing import Any, Callable, Dict, Mapping, Sequence

from ansible_collections.pg_access.reconcile.plugins.plugin_utils.approval import artifact_of


def plan_artifact(results: Sequence[Mapping[str, Any]]) -> Dict[str, Dict[str, Any]]:
    """See DOCUMENTATION."""
    return artifact_of(results)


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {"plan_artifact": plan_artifact}
