# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Plans and the way back as scripts for psql.

Everything that is not SQL of the plan stands in comments, and nothing that a server or a manifest holds can end one: a
name with a line break in it must not reach psql as a command. Inside quotes psql takes text as it is.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type

from .records import dataclass, replace

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

from .changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    Change,
    CommentRole,
    CreateRole,
    CreateSchema,
    CreateStore,
    DropOwned,
    DropRole,
    Grant,
    GrantDefault,
    LendUsage,
    ReassignOwned,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetConfig,
    SetPassword,
)
from .filters import Options
from .pins import pins, set_role, turn, waits
from .problems import Problem
from .state import State
from .statements.names import role, text
from .statements.statement import Statement
from .store import keeping_record
from .undo.way import Undo

#: The collection's version as in galaxy.yml, which is not there where the module runs.
VERSION = "0.1.0"

#: How many rules and problems a comment names.
FEW = 3
MANY = 20

#: What makes a script of a whole plan too little to run: everything but a lack of rights.
RIGHTS = "insufficient_privilege"

#: How psql has to be set, whatever its own start-up file says.
_PSQL = (
    r"\set ON_ERROR_STOP on",
    r"\set ON_ERROR_ROLLBACK off",
    r"\set AUTOCOMMIT on",
    r"\set SINGLELINE off",
)


@dataclass(frozen=True)
class Frame:
    """What a script says beside its statements.

    ``where``: the address. ``encoding``: the client's. ``keeps``: whether a role's comment may end with the record of a
    password, which has to stay. ``leaks``: whether a text holds a secret.
    """

    state: State
    options: Options
    digest: str
    where: str = ""
    session_role: Optional[str] = None
    lock_timeout: int = 30
    statement_timeout: int = 0
    encoding: str = "UTF8"
    keeps: Callable[[int], bool] = lambda _role: False
    leaks: Callable[[str], bool] = lambda _text: False


def plan_script(frame: Frame, statements: Sequence[Statement], refused: Sequence[Problem] = ()) -> str:
    """A plan as a script. ``refused``: why an apply of it stops before its first statement.

    Where something stands in the way that is not about rights, the plan is not the whole one: it is there to be read.
    """
    lines = [*_heading(frame, "The plan")]
    if refused:
        shown = [f"An apply is refused ({problem.code}): {problem.text}" for problem in refused[:MANY]]
        lines += comments(shown, more=len(refused) - MANY)
    whole = all(problem.code in (RIGHTS, *_BRAKES) for problem in refused)
    if not whole:
        lines += comments(["This plan is not the whole one, so its statements are only there to be read."])
    if not statements:
        nothing = "There are no statements to show." if refused else "There is nothing to do."
        return _text(frame, [*lines, *comments([nothing])])
    parts = [(place, _body(frame, list(part))) for place, part in groupby(statements, lambda found: found.database)]
    if not whole:
        read = (comments([line]) if line else [""] for _place, body in parts for line in body)
        return _text(frame, [*lines, "", *(part for line in read for part in line)])
    if len(parts) > 1:
        lines += ["", *_HOME]
    for place, body in parts:
        if place is not None:
            lines += ["", *comments([f"In database {place}, committed before the rest."]), *_to(frame, place)]
        elif len(parts) > 1:
            lines += ["", r"\connect -reuse-previous=on :home", rf"\encoding {frame.encoding}"]
        lines += [*_opening(frame, place), *body, *_closing()]
    return _text(frame, lines)


def _body(frame: Frame, statements: Iterable[Statement]) -> List[str]:
    """Statements, each with what stands behind it where that is another than before."""
    body: List[str] = []
    before: Tuple[str, ...] = ()
    for statement in statements:
        reasons = reasons_of(statement.changes)
        if reasons and reasons != before:
            body += ["", *comments(reasons)]
        before = reasons or before
        body += _spelt(frame, statement)
    return body


#: Problems that stop a plan that is complete.
_BRAKES = ("guard", "plan_too_large", "plan_changed", "read_only_server", "self_protection", "too_many_locks")


def undo_script(frame: Frame, undo: Undo) -> str:
    """The way back as a script."""
    lines = [*_heading(frame, "The way back from the plan")]
    if undo.left:
        lines += ["--", *comments(["Not undone by this script:", *(f"- {text}" for text in undo.left)])]
    if not undo.blocks:
        return _text(frame, [*lines, *comments(["There is nothing to undo."])])
    body: List[str] = []
    last = ""
    for title, statements in undo.blocks:
        if title != last:
            body += ["", *comments([title])]
        last = title
        for statement in statements:
            body += _spelt(frame, statement)
    return _text(frame, [*lines, *_opening(frame), *body, *_closing()])


# ---- parts -----------------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """A text that stays on its line and looks like what it is: what controls a terminal or the eye is escaped."""
    return "".join(
        character
        if character == " " or unicodedata.category(character)[0] not in "CZ"
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def comments(texts: Iterable[str], more: int = 0) -> List[str]:
    """Lines of comments. ``more``: how many further ones there would be."""
    lines = [f"-- {plain(text)}".rstrip() for text in texts]
    return [*lines, f"-- and {more} more"] if more > 0 else lines


def _heading(frame: Frame, what: str) -> Iterator[str]:
    server, options = frame.state.server, frame.options
    yield "-- Written by pg_access.reconcile.pg_role_reconcile for psql."
    yield from _PSQL
    yield rf"\encoding {frame.encoding}"
    policy = [f"reconciliation_mode: {options.mode}"]
    if options.undeclared_grantees is not None:
        policy.append(f"undeclared_grantees: {options.undeclared_grantees}")
    if options.adopt_schema_owners:
        policy.append("adopt_schema_owners: true")
    yield from comments(
        [
            "",
            f"{what} {frame.digest}",
            f"collection: pg_access.reconcile {VERSION}",
            f"database: {server.database}",
            f"server: {frame.where or 'unknown'}, PostgreSQL {server.version}",
            f"cluster: {server.system_identifier or 'unknown'}",
            f"login: {frame.state.ref(server.session_user).name}"
            + (f", session_role: {frame.session_role}" if frame.session_role else ""),
            ", ".join(policy),
            "",
            "Run it as that login: psql -X -f FILE. On a copy with another name or in another cluster add",
            "-v elsewhere=1; a statement that names the database then means the one named there.",
            "A WARNING from GRANT or REVOKE says that it did nothing.",
        ]
    )


#: How to come back: a connection string in double quotes, which psql takes off again.
_HOME = (
    "SET standard_conforming_strings = on;",
    r"SELECT format('%I', format('dbname=''%s''', regexp_replace(current_database(), '([''\\])', '\\\1', 'g'))) AS home"
    r" \gset",
)


def _to(frame: Frame, database: str) -> Iterator[str]:
    """Connect to another database as the same login. psql takes a variable as it is, line breaks and all."""
    spelt = "".join(f"\\{character}" if character in "'\\" else character for character in database)
    yield "SET standard_conforming_strings = on;"
    quoted = text(sql.Identifier(f"dbname='{spelt}'"))
    target = text(sql.SQL("SELECT {}").format(sql.Literal(quoted)))
    yield rf"{target} AS other \gset"
    yield r"\connect -reuse-previous=on :other"
    yield rf"\encoding {frame.encoding}"


def _opening(frame: Frame, database: Optional[str] = None) -> Iterator[str]:
    """The beginning of the transaction, and a check of where it is. A cast that fails is an error with words in it.

    ``database``: another one than the connected one.
    """
    server = frame.state.server
    if database is not None:
        server = replace(server, database=database)
    yield ""
    yield "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    yield from (f"{statement};" for statement in pins(server.version, sql_ascii=frame.encoding == "SQL_ASCII"))
    yield r"\if :{?elsewhere}"
    yield r"\else"
    wrong = sql.Literal(f"this script is for database {server.database}, and this is ")
    query = "SELECT CASE WHEN current_database() = {} THEN 1 ELSE ({} || current_database())::integer END"
    database = text(sql.SQL(query).format(sql.Literal(server.database), wrong))
    yield rf"{database} AS right_database \gset"
    if server.system_identifier:
        wrong = sql.Literal(f"this script is for cluster {server.system_identifier}, and this is ")
        query = "SELECT CASE WHEN system_identifier::text = {} THEN 1 ELSE ({} || system_identifier)::integer END"
        cluster = text(sql.SQL(query).format(sql.Literal(server.system_identifier), wrong))
        yield rf"{cluster} AS right_cluster FROM pg_control_system() \gset"
    yield r"\endif"
    yield set_role(frame.session_role) + ";"
    *limits, lock = turn(frame.lock_timeout)
    yield from (f"{statement};" for statement in limits)
    yield rf"{lock} AS turn \gset"
    yield from (f"{statement};" for statement in waits(frame.statement_timeout))


def _closing() -> Iterator[str]:
    yield ""
    yield "COMMIT;"


def _text(frame: Frame, lines: Iterable[str]) -> str:
    hidden = (
        "-- (left out: it would show a secret)" if _is_comment(line) and frame.leaks(line) else line for line in lines
    )
    return "\n".join([*hidden, ""])


def _is_comment(line: str) -> bool:
    return line.startswith("--")


def _spelt(frame: Frame, statement: Statement) -> Iterator[str]:
    """A statement as lines of a script."""
    for change in statement.changes:
        if isinstance(change, SetPassword) and not change.clear:
            # psql asks for it and sends a hash, made as the server's password_encryption says.
            yield from comments([rf"\password {text(role(change.role))}"])
            return
    spelt = statement.text
    end = ";"
    for change in statement.changes:
        if isinstance(change, CommentRole) and frame.keeps(change.role.oid):
            spelt, end = text(keeping_record(change.role.name, change.comment)), r" \gexec"
    if frame.leaks(spelt):
        yield from comments(["A statement is left out here: it would show a secret."])
        return
    yield spelt + end


# ---- the rules behind a statement ------------------------------------------------------------------------------------


def _by_source(change: Any) -> Tuple[str, Sequence[str]]:
    return "", [change.source]


def _by_removal(change: RemoveMember) -> Tuple[str, Sequence[str]]:
    if change.replaced:
        return "the same membership by another grantor", []
    return "not declared: ", [change.source]


def _by_addition(change: AddMember) -> Tuple[str, Sequence[str]]:
    if change.exists and not change.raised:
        return "in the place of a row that goes", []
    return "", [change.source]


def _by_grant(change: Grant) -> Tuple[str, Sequence[str]]:
    if change.lent:
        return "only for the revoke that needs it", []
    if change.again:
        return "kept: another statement takes it along", []
    return "", change.sources


def _by_revoke(change: Revoke) -> Tuple[str, Sequence[str]]:
    if change.again:
        return "so that another statement can run", []
    return ("", change.sources) if change.explicit else _undeclared(change.sources)


def _by_default_revoke(change: RevokeDefault) -> Tuple[str, Sequence[str]]:
    return ("", change.sources) if change.explicit else _undeclared(change.sources)


def _undeclared(claims: Sequence[str]) -> Tuple[str, Sequence[str]]:
    """Surplus, and what makes the place managed: a few claims already, where they are many with a count."""
    listed = ", ".join(claims).replace(", and ", " and ")
    return f"not declared, and managed by {listed}" if listed else "not declared", []


#: What stands behind a change: words, and places in the manifest.
BEHIND: Mapping[Type[Any], Callable[[Any], Tuple[str, Sequence[str]]]] = {
    CreateRole: _by_source,
    AlterRole: _by_source,
    CommentRole: _by_source,
    SetConfig: _by_source,
    SetPassword: _by_source,
    CreateStore: lambda _change: ("where the fingerprints of passwords are kept", []),
    AddMember: _by_addition,
    RemoveMember: _by_removal,
    CreateSchema: _by_source,
    AlterSchemaOwner: _by_source,
    ReassignOwned: _by_source,
    DropOwned: _by_source,
    DropRole: _by_source,
    Grant: _by_grant,
    Revoke: _by_revoke,
    LendUsage: lambda _change: ("only for the statements that need it", []),
    GrantDefault: lambda change: ("", change.sources),
    RevokeDefault: _by_default_revoke,
}


def _numbered(place: str) -> List[Tuple[int, str]]:
    """Sorts ``grants[10]`` after ``grants[9]``."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", place)]


def reasons_of(changes: Sequence[Change]) -> Tuple[str, ...]:
    """What stands behind a statement: a few places in the manifest, and how many more."""
    found: Dict[str, Dict[str, None]] = {}
    for change in changes:
        words, places = BEHIND[type(change)](change)
        found.setdefault(words, {}).update(dict.fromkeys(place for place in places if place))
    reasons: List[str] = []
    for words, sources in found.items():
        shown = sorted(sources, key=_numbered)[:FEW]
        rest = len(sources) - len(shown)
        listed = ", ".join(shown) + (f" and {rest} more" if rest else "")
        reason = words + listed if listed else words.rstrip(": ")
        if reason:
            reasons.append(reason)
    return tuple(reasons)
