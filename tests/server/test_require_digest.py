# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run that applies nothing without an approved digest: the module knows its check mode better than a playbook."""

from __future__ import annotations

from harness import Database

MANIFEST = {"roles": [{"name": "approved_role"}]}


def test_nothing_is_applied_without_a_digest(db: Database) -> None:
    db.fails(MANIFEST, "manifest_invalid", "nobody approved a plan", check_too=False, require_digest=True)
    planned = db.reconcile(MANIFEST, check=True, require_digest=True)
    assert planned.changed is True
    digest = planned.plan_digest
    assert db.reconcile(MANIFEST, require_digest=True, expected_digest=digest).changed is True
    # A relaunch has nothing to do, and still needs the digest.
    assert db.reconcile(MANIFEST, require_digest=True, expected_digest=digest).changed is False
    db.fails(MANIFEST, "manifest_invalid", "nobody approved a plan", check_too=False, require_digest=True)
