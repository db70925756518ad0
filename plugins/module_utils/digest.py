# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What identifies a plan, so that exactly the approved one is applied."""

from __future__ import annotations

import hashlib
import json
from typing import Sequence

from .filters import Options
from .state import Server

#: Part of what is hashed, so that a digest of another release's plans is never taken for this one's.
DIGEST_VERSION = "1"


def digest(server: Server, options: Options, sql: Sequence[str]) -> str:
    """What identifies a plan: where, under which policy options, and which statements, masked, in which order."""
    what = [
        DIGEST_VERSION,
        server.system_identifier,
        server.database,
        options.mode,
        options.undeclared_grantees,
        options.adopt_schema_owners,
        list(sql),
    ]
    return "sha256:" + hashlib.sha256(json.dumps(what, ensure_ascii=True).encode()).hexdigest()
