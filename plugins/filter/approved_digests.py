# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that finds approved plans in an artifact."""

from __future__ import annotations

DOCUMENTATION = r"""
name: approved_digests
short_description: The digests of approved plans
version_added: 1.0.0
description:
  - For the role P(pg_access.reconcile.reconcile#role) itself. Finds what was approved for a host and its databases in
    the artifact C(reconcile_approved) of an earlier job.
author:
  - The pg_access.reconcile authors (@pg-access)
positional: host, databases
options:
  _input:
    description: The artifact.
    type: raw
    required: true
  host:
    description: The inventory's name of the host.
    type: str
    required: true
  databases:
    description: The databases. An empty name stands for the only one that the artifact has.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Find the digest that was approved
  ansible.builtin.debug:
    msg: "{{ (reconcile_approved | pg_access.reconcile.approved_digests(inventory_hostname, ['shop'])).digests }}"
  vars:
    reconcile_approved:
      localhost:
        shop: {digest: "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", changed: true}
"""

RETURN = r"""
_value:
  description:
    - A dict with C(problems), a list of texts, and C(digests), one for each database. Where there are problems
      there are no digests.
  type: dict
"""

from typing import Any, Callable, Dict, Sequence

from ansible_collections.pg_access.reconcile.plugins.plugin_utils.approval import approval_of


def approved_digests(approved: Any, host: str, databases: Sequence[str]) -> Dict[str, Any]:
    """See DOCUMENTATION."""
    return approval_of(approved, host, databases)._asdict()


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {"approved_digests": approved_digests}
