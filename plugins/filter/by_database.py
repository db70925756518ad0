# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter behind the role's runs."""

from __future__ import annotations

DOCUMENTATION = r"""
name: by_database
short_description: The runs of a call of the role reconcile
version_added: 1.0.0
description:
  - For the role P(pg_access.reconcile.reconcile#role) itself. It composes the parts of a manifest, and where several
    databases of one cluster are given, tells each run the names of the roles that another one looks after.
author:
  - The pg_access.reconcile authors (@pg-access)
positional: counts, names
options:
  _input:
    description:
      - The cluster's manifest, the manifest of each database, then the contents of all files. Each is a dict, or null.
    type: list
    elements: raw
    required: true
  counts:
    description: How many of the files belong to the cluster's manifest, and how many to that of each database.
    type: list
    elements: int
    required: true
  names:
    description: The databases. None where the call is about a single one that is not named here.
    type: list
    elements: str
    required: true
  assumed:
    description: Names of roles that somebody else declares.
    type: list
    elements: str
  passwords:
    description: Passwords by role, which go to the run that looks after the role.
    type: raw
  created:
    description: Roles that the first run creates.
    type: list
    elements: str
  drops:
    description: Whether roles are retired in the first run's mode.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Say what is wrong with the manifests of two databases
  ansible.builtin.debug:
    msg: "{{ ([shared, shop, billing] | pg_access.reconcile.by_database([0, 0, 0], ['shop', 'billing'])).problems }}"
  vars:
    shared: {roles: [{name: app_owner}]}
    shop: {schemas: [{name: inventory, owner: app_owner}]}
    billing: {schemas: [{name: invoices, owner: app_owner}]}
"""

RETURN = r"""
_value:
  description:
    - A dict with C(problems), a list of texts, and C(runs), the manifest options of the module for each database.
  type: dict
"""

from typing import Any, Callable, Dict, Iterable, Sequence

from ansible_collections.pg_access.reconcile.plugins.plugin_utils.databases import arranged


def by_database(
    parts: Sequence[Any],
    counts: Sequence[int],
    names: Sequence[str],
    assumed: Iterable[str] = (),
    passwords: Any = None,
    created: Iterable[str] = (),
    drops: bool = True,
) -> Dict[str, Any]:
    """See DOCUMENTATION."""
    made = arranged(
        parts, counts, names, assumed=assumed or (), passwords=passwords, created=created or (), drops=drops
    )
    return made._asdict()


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {"by_database": by_database}
