# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is explained and reported about in the tests: an inventory with editors, and a legacy login beside them."""

from __future__ import annotations

#: An inventory with a role for editors, and a login in it.
MANIFEST = """
default_owner: owner
profiles:
  editor:
    grants:
      - {privileges: [USAGE], object: {type: schema}}
      - {privileges: [SELECT, INSERT], object: {type: table, name: "*"}}
    default_privileges:
      - {privileges: [SELECT, INSERT, UPDATE], on_type: table}
schemas:
  - {name: inventory, profiles: [editor]}
roles:
  - {name: owner}
  - {name: team}
  - {name: app, login: true}
memberships:
  - {role: inventory-editor, members: [{name: team}]}
  - {role: team, members: [{name: app}]}
"""

WITH_LEGACY = MANIFEST.replace("{name: owner}", "{name: owner}\n  - {name: legacy, privilege_reconciliation: additive}")
