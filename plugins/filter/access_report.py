# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes a page of the data of reports."""

from __future__ import annotations

DOCUMENTATION = r"""
name: access_report
short_description: A page about everybody's access
version_added: 1.0.0
description:
  - Makes one HTML page of what O(pg_access.reconcile.pg_role_reconcile#module:report_file) has written for one or
    several databases. The role P(pg_access.reconcile.reconcile#role) uses it where C(reconcile_report) is given.
  - The page needs no network and nothing but itself, and it is the same for the same data.
author:
  - The pg_access.reconcile authors (@pg-access)
options:
  _input:
    description: The contents of the files, as a list of texts.
    type: list
    elements: str
    required: true
  title:
    description: The page's title.
    type: str
    default: Access to PostgreSQL databases
  notes:
    description: Lines at the beginning of the page, such as the names of databases that are missing on it.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Look at the access to a database
  pg_access.reconcile.pg_role_reconcile:
    login_db: shop
    roles: [{name: app_owner}]
    report_file: /var/tmp/shop.json
  check_mode: true

- name: Make a page of it
  ansible.builtin.copy:
    content: "{{ [lookup('ansible.builtin.file', '/var/tmp/shop.json')] | pg_access.reconcile.access_report }}"
    dest: /var/tmp/shop.html
    mode: "0600"
"""

RETURN = r"""
_value:
  description: The page.
  type: str
"""

from typing import Any, Callable, Dict, Sequence

from ansible.errors import AnsibleFilterError
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.page.model import Unreadable
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.page.page import page


def access_report(
    reports: Sequence[str], title: str = "Access to PostgreSQL databases", notes: Sequence[str] = ()
) -> str:
    """See DOCUMENTATION."""
    try:
        return page(reports, title, notes or ())
    except Unreadable as error:
        raise AnsibleFilterError(f"access_report: {error}") from None


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        return {"access_report": access_report}
