#!/usr/bin/python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
"""

from ansible_collections.pg_access.reconcile.plugins.module_utils.export.run import run_role_export


def main() -> None:
    run_role_export()


if __name__ == "__main__":
    main()
