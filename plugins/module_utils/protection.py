# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Self-protection: a plan that would disarm the executor, the bootstrap superuser or the last superuser stops the run.

What the manifest only leaves out is withheld instead, see ``filters.self_protection``.
"""

from __future__ import annotations

from typing import AbstractSet, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from .authority.powers import Powers
from .changes import AlterRole, Change, DropRole, Grant, RemoveMember, Revoke, Withheld
from .manifest.model import Instant
from .privileges import BOOTSTRAP_OID, PUBLIC_OID
from .problems import Problem
from .state import RoleRef, State

CODE = "self_protection"

#: What a protected role keeps, in the order in which messages name it.
ARMS = ("superuser", "login", "createrole")

_WORDS: Mapping[str, str] = {
    **{name: f"lose {name.upper()}" for name in ARMS},
    "valid_until": "be expired",
    "connection_limit": "have a connection limit of 0",
}


_LAST = "without whom no superuser could log in any more"


def disarming(
    changes: Iterable[Change], withheld: Iterable[Withheld], before: State, after: State, drops: Sequence[DropRole] = ()
) -> List[Problem]:
    """A problem for each role that would be disarmed.

    ``changes`` are those that are left after the filters. ``withheld``: attributes of the bootstrap superuser are
    nobody's to manage, but a manifest that takes its arms by name is not passed over. ``after``: the state with the
    changes made. ``drops``: the roles that go.
    """
    altered = [change for change in changes if isinstance(change, AlterRole)]
    altered += [
        item.change for item in withheld if isinstance(item.change, AlterRole) and item.change.role.oid == BOOTSTRAP_OID
    ]
    problems: List[Problem] = []
    told: Set[int] = set()
    for change in altered:
        lost = _by_name(change, before, after)
        if lost:
            hint = "Leave that out of the manifest; another superuser can still do it by hand."
            problems.append(_problem(change, lost, _who(change.role.oid, before), hint))
            told.add(change.role.oid)
    able = _able(before)
    dropped = {change.role.oid for change in drops}
    if not able or _able(after) - dropped:
        return problems
    problems += [
        Problem(
            path=change.source,
            role=change.role.name,
            object=f"role {change.role.name}",
            message=f"role {change.role.name} is to be dropped, {_LAST}",
            hint="Give another superuser LOGIN first.",
            code=CODE,
        )
        for change in drops
        # These are never dropped, whoever else may log in: that is said already.
        if change.role.oid in able - told - {BOOTSTRAP_OID, *before.executors}
    ]
    last: Dict[int, Tuple[AlterRole, List[str]]] = {}
    for change in altered:
        if change.role.oid in able - told:
            # What the manifest names and what it leaves out are two changes.
            last.setdefault(change.role.oid, (change, []))[1].extend(_lost(change, before.server.clock))
    who = _LAST
    hint = "Declare it with superuser: true and login: true."
    return problems + [_problem(change, lost, who, hint) for change, lost in last.values() if lost]


def _by_name(change: AlterRole, before: State, after: State) -> List[str]:
    """What the manifest takes by name from the executor or the bootstrap superuser."""
    oid = change.role.oid
    if oid != BOOTSTRAP_OID and oid not in before.executors:
        return []
    lost = [name for name in ARMS if change.attributes.get(name) is False and name not in change.omitted]
    if oid == before.server.session_user and not change.external:
        if _is_over(change.attributes.get("valid_until"), before.server.clock):
            lost.append("valid_until")
        # A superuser's connections are not limited.
        if change.attributes.get("connection_limit") == 0 and not after.roles[oid].superuser:
            lost.append("connection_limit")
    return lost


def _lost(change: AlterRole, clock: Optional[int]) -> List[str]:
    """What makes a superuser one that nobody can log in as, be it by name or by omission."""
    lost = [name for name in ("superuser", "login") if change.attributes.get(name) is False]
    return lost + (["valid_until"] if _is_over(change.attributes.get("valid_until"), clock) else [])


def _able(state: State) -> AbstractSet[int]:
    """The superusers that somebody can log in as; the executor just did, whatever its expiry says."""
    clock, login = state.server.clock, state.server.session_user
    return {
        role.oid
        for role in state.roles.values()
        if role.superuser and role.login and (role.oid == login or not _is_over(role.valid_until, clock))
    }


def _is_over(until: Optional[Instant], clock: Optional[int]) -> bool:
    if until == "-infinity":
        return True
    return isinstance(until, int) and clock is not None and until <= clock


def _who(oid: int, state: State) -> str:
    if oid == state.server.session_user:
        return "which this run logs in as"
    return "which is session_role" if oid in state.executors else "the superuser that initdb made"


def _problem(change: AlterRole, lost: Sequence[str], who: str, hint: str) -> Problem:
    words = " and ".join(_WORDS[name] for name in lost)
    return Problem(
        path=change.source,
        role=change.role.name,
        object=f"role {change.role.name}",
        message=f"role {change.role.name}, {who}, would {words}",
        hint=hint,
        code=CODE,
    )


def locked_out(changes: Iterable[Change], state: State, powers: Powers) -> List[Problem]:
    """A problem where the login could not connect to this database any more, or set its session_role.

    ``powers``: with the memberships that the plan adds. A plan that takes neither CONNECT nor memberships away costs
    nothing here.
    """
    server = state.server
    on_database = [
        change
        for change in changes
        if isinstance(change, (Grant, Revoke))
        and change.target.kind == "database"
        and "CONNECT" in change.privileges
        and any(item.oid == server.database_oid for item in change.target.objects)
    ]
    removals = [change for change in changes if isinstance(change, (RemoveMember, DropRole))]
    dropped = {change.role.oid for change in removals if isinstance(change, DropRole)}
    if not removals and not any(isinstance(change, Revoke) for change in on_database):
        return []
    powers = powers.after(removals)
    problems: List[Problem] = []
    login = state.ref(server.session_user)
    if not powers.can_become(server.current_user):
        name = state.ref(server.current_user).name
        problems.append(_locked(login, f"role {name}", f"set session_role {name}", f"Keep its membership in {name}."))
    database = state.databases.get(server.database_oid)
    if database is None or powers.is_superuser(login.oid):
        return problems
    holders = {(entry.grantee, entry.grantor) for entry in database.acl.entries if entry.privilege == "CONNECT"}
    for change in on_database:
        if isinstance(change, Revoke) and not change.option_only:
            holders.discard((change.grantee.oid, change.grantor.oid))
    found = {grantee for grantee, _grantor in holders} - dropped
    found |= {change.grantee.oid for change in on_database if isinstance(change, Grant)}
    if found.isdisjoint({*powers.acts_with(login.oid), PUBLIC_OID}):
        hint = "Declare CONNECT on the database for it."
        problems.append(_locked(login, f"database {database.name}", "connect to this database", hint))
    return problems


def _locked(login: RoleRef, label: str, what: str, hint: str) -> Problem:
    message = f"after the plan {login.name}, which this run logs in as, could not {what} any more"
    return Problem(role=login.name, object=label, message=message, hint=hint, code=CODE)
