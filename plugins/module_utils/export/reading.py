# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Everything that an export reads, in one transaction that sees one snapshot, and the proof of what came out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Tuple

from ..catalog.cluster import read_cluster, read_settings
from ..catalog.exported import read_extras
from ..catalog.objects import read_granted_named, read_objects
from ..diff.passwords import PasswordOptions
from ..failure import Failure
from ..filters import Options
from ..inspection import inspect
from ..manifest.settings import fold
from ..plan import make_plan
from ..policy import manifest_to_policy
from ..problems import ManifestInvalid, Problem
from ..records import replace
from ..state import State
from .extras import Extras

if TYPE_CHECKING:
    from psycopg import Connection


def read(connection: Connection[Any]) -> Tuple[State, Extras]:
    """The whole state of the connected database: five or six round trips. With 10,000 tables that have equal ACLs they
    take some 0.2 s, because the server groups what is alike.
    """
    state = read_cluster(connection, [])
    extras = read_extras(connection)
    groups, default_acls = read_objects(connection, list(state.schemas))
    named = read_granted_named(connection)
    asked = {fold(name) for role in state.roles.values() for name in role.config}
    settings = read_settings(connection, asked) if asked else {}
    state = replace(state, groups=groups, named=named, default_acls=default_acls, settings=settings)
    return state, extras


def prove(connection: Connection[Any], manifest: Mapping[str, Any]) -> None:
    """Make the plan that a reconcile would make of the manifest, on the same snapshot.

    Raises Failure unless it is empty: nobody could trust such a manifest.
    """
    message = "The exported manifest does not describe the database exactly, so it is not returned"
    hint = "This is a fault of the collection: please report it. Exporting fewer schemas or roles may help meanwhile."
    try:
        policy = manifest_to_policy(manifest)
    except ManifestInvalid as invalid:
        raise Failure("not_converged", message, problems=invalid.problems, hint=hint) from None
    state, scope, lookups = inspect(connection, policy, PasswordOptions(), Options())
    outcome = make_plan(policy, state, scope, lookups, Options(), check_mode=True)
    plan = outcome.plan
    if not (plan.changes or plan.suppressed or outcome.problems):
        return
    from ..statements.order import statement_of

    left = [statement_of(change, brief=True) for change in (*plan.changes, *plan.suppressed)]
    problems = list(outcome.problems) or [Problem(message=f"a run would do this: {text}") for text in left]
    raise Failure("not_converged", message, problems=problems, hint=hint, plan=left)
