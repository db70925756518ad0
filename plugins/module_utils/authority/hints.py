# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What would help, as statements that somebody with more rights can run as they stand."""

from __future__ import annotations

import re
from typing import Any, Iterable, List, Optional

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

from ..problems import Problem
from ..records import replace
from ..state import RoleRef, State
from ..statements.names import role, text
from .powers import DATABASE_OWNER, Powers

SUPERUSER = "Run as a superuser."

_WITH_ADMIN = " WITH ADMIN TRUE"
_NOTHING_ELSE = ", INHERIT FALSE, SET FALSE"
_NAME = '"(?:[^"]|"")+"'
_WITH_MORE = f"(GRANT {_NAME} TO {_NAME}) WITH (?:INHERIT|SET) TRUE"


def problem(ref: Optional[RoleRef], on: Optional[str], message: str, hint: str, source: str = "") -> Problem:
    """A problem of rights."""
    return Problem(
        path=source or None,
        role=ref.name if ref else None,
        object=on,
        message=message,
        hint=hint,
        code="insufficient_privilege",
    )


def compose(template: str, *names: Any) -> str:
    """A statement with role names, or texts for other names, in the places of the template."""
    words = [role(name) if isinstance(name, RoleRef) else sql.Identifier(name) for name in names]
    try:
        return text(sql.SQL(template).format(*words))
    except UnicodeEncodeError:
        # A name that no statement can spell is a problem of its own.
        return template.format(*(getattr(name, "name", name) for name in names))


def attribute(executor: RoleRef, name: str) -> str:
    """Give the executor an attribute."""
    return compose(f"ALTER ROLE {{}} {name.upper()}", executor)


def admin_option(executor: RoleRef, group: RoleRef, version: int, powers: Powers) -> str:
    """Give the executor ADMIN OPTION: from PostgreSQL 16 on as the creator of a role has it, which is never drift.

    A membership that is there keeps its other options.
    A role that is a member of the executor, or the executor itself, cannot be given to it.
    """
    if executor.oid in powers.groups_of(group.oid):
        return SUPERUSER
    if version < 16:
        return compose("GRANT {} TO {} WITH ADMIN OPTION", group, executor)
    words = "" if powers.is_member(executor.oid, group.oid) else _NOTHING_ELSE
    return compose("GRANT {} TO {}" + _WITH_ADMIN, group, executor) + words


def agreed(problems: Iterable[Problem]) -> List[Problem]:
    """The problems, each once, with hints that can all be followed: none takes back what another one gives."""
    found = list(dict.fromkeys(problems))
    given = {grant for problem in found for grant in re.findall(_WITH_MORE, problem.hint or "")}
    result: List[Problem] = []
    for problem in found:
        admin, only, rest = (problem.hint or "").rpartition(_NOTHING_ELSE)
        if only and not rest and admin[: -len(_WITH_ADMIN)] in given:
            problem = replace(problem, hint=admin)
        result.append(problem)
    return result


def membership(executor: RoleRef, group: RoleRef, option: str, state: State, powers: Powers) -> str:
    """Make the executor a member with this option (``inherit`` or ``set``), which before PostgreSQL 16 there is not.

    A role that the run itself creates cannot be granted beforehand, one that is a member of the executor never, and a
    superuser should not be: that would make the executor one. ``pg_database_owner`` takes no members but the owner.
    """
    version = state.server.version
    if group.name == DATABASE_OWNER:
        database = state.databases.get(state.server.database_oid)
        if database is None:
            return SUPERUSER
        group = state.ref(database.owner)
    if powers.is_superuser(group.oid) or executor.oid in powers.groups_of(group.oid):
        return SUPERUSER
    if group.oid > 0:
        # A membership that is there keeps the options that a GRANT does not name.
        words = f" WITH {option.upper()} TRUE" if version >= 16 else ""
        grant = compose(f"GRANT {{}} TO {{}}{words}", group, executor)
        if version < 16 and option == "inherit" and not powers.has(executor.oid, "inherit"):
            return f"{grant}; {attribute(executor, 'inherit')}"
        return grant
    declare = f"declare {executor.name} as a member of {group.name} in memberships"
    if version < 16:
        return declare[0].upper() + declare[1:]
    # A login has the settings of the role that it logged in as, whatever role it has set.
    login = state.ref(state.server.session_user)
    return f"{compose('ALTER ROLE {} SET createrole_self_grant =', login)} 'set, inherit'; or {declare}"
