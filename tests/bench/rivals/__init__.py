# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tools that the benchmark shows beside the collection."""

from __future__ import annotations

from rivals.community_postgresql import CommunityPostgresql
from rivals.ldap2pg import Ldap2Pg
from rivals.pgroles import PgRoles
from rivals.pgsesame import PgSesame
from rivals.protocol import Command, Rival, Target


def all_rivals() -> list[Rival]:
    """One of each, in the order of the tables."""
    return [PgSesame(), PgRoles(), Ldap2Pg(), CommunityPostgresql()]


__all__ = ["Command", "Rival", "Target", "all_rivals"]
