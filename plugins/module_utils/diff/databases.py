# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Databases that a manifest takes for granted: no plan makes one or gives it to somebody else."""

from __future__ import annotations

from typing import List

from ..policy import Policy
from ..problems import Problem
from ..state import State


def wrong_databases(policy: Policy, state: State) -> List[Problem]:
    """What is not as it has to be: the connected database, and whose the databases are."""
    problems: List[Problem] = []
    found = {database.name: database for database in state.databases.values()}
    told = set()
    for entry in policy.databases:
        key = (entry.name, entry.connected, entry.owner)
        if key in told:
            continue
        told.add(key)
        database = found.get(entry.name)
        owner = None if database is None else state.ref(database.owner).name
        if entry.connected and entry.name != state.server.database:
            problems.append(
                Problem(
                    path=entry.source,
                    object=entry.name,
                    message=f'this is for the database "{entry.name}", and the run is connected to'
                    f' "{state.server.database}"',
                    hint="Set login_db to it, or give each run only the files of its database.",
                )
            )
        elif database is None:
            problems.append(
                Problem(
                    path=f"{entry.source}.name" if not entry.connected else entry.source,
                    object=entry.name,
                    message=f'database "{entry.name}" does not exist',
                    hint="Create it first: this collection creates no databases.",
                    code="object_missing",
                )
            )
        elif entry.owner is not None and owner != entry.owner:
            problems.append(
                Problem(
                    path=f"{entry.source}.owner",
                    role=entry.owner,
                    object=entry.name,
                    message=f'database "{entry.name}" belongs to {owner}, not to {entry.owner}',
                    hint="Change its owner first: this collection gives no database to somebody else.",
                )
            )
    return problems
