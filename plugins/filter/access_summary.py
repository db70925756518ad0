# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that sums a result up."""

from __future__ import annotations

DOCUMENTATION = r"""
name: access_summary
short_description: Who gains, who loses, and the backlog, in lines
version_added: 1.0.0
description:
  - Sums up a result of M(pg_access.reconcile.pg_role_reconcile) for whoever reads the output. The role
    P(pg_access.reconcile.reconcile#role) ends with it.
author:
  - The pg_access.reconcile authors (@pg-access)
options:
  _input:
    description:
      - A result of a run that succeeded, or the results of all databases of a manifest as a list. Of these it also says
        which overrides (C(privilege_reconciliation)) no database needs any more.
    type: raw
    required: true
  previous:
    description:
      - An earlier result, its summary, or a dict of either by database. The backlog is compared with it.
    type: raw
"""

EXAMPLES = r"""
- name: Make a plan
  pg_access.reconcile.pg_role_reconcile:
    login_db: shop
    roles: [{name: app_owner}]
  check_mode: true
  register: plan

- name: Show who gains and who loses
  ansible.builtin.debug:
    msg: "{{ plan | pg_access.reconcile.access_summary }}"
"""

RETURN = r"""
_value:
  description: Lines of text.
  type: list
  elements: str
  sample:
    - "shop: would change with 2 statements"
    - "memberships: 1 added; privileges: 4 revoked"
    - "gain: app: member of inventory-editor"
    - "lose: intern_2019: 4 privileges"
    - "backlog: 52 undeclared privileges kept for pgloader_pg (8 fewer than before)"
"""

from typing import Any, Callable, Dict, List, Mapping, Sequence, Union

from ansible_collections.pg_access.reconcile.plugins.plugin_utils.summary import lines_of, lines_of_all


def access_summary(result: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]], previous: Any = None) -> List[str]:
    """See DOCUMENTATION."""
    if not isinstance(result, Mapping):
        return lines_of_all(result, previous=previous)
    return lines_of(result, previous=previous)


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {"access_summary": access_summary}
