# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Where the fingerprints of passwords are kept: a table in the connected database, or a last line of role comments.

A record counts only in the cluster that it was made in: a restored table may hold the OIDs of other roles.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from .records import dataclass, field

try:
    from psycopg import sql
except ImportError:  # the module reports the missing library before it composes anything
    pass

from .masking import MASK
from .privileges import STORE_SCHEMA

if TYPE_CHECKING:
    from .changes import CreateStore

SCHEMA = STORE_SCHEMA
TABLE = "password_fingerprint"

TABLE_STORE = "table"
COMMENT_STORE = "comment"

#: The columns of the table as the catalog describes them, in their order.
COLUMNS = ("role oid", "system_identifier text", "fingerprint bytea")

#: What a login that does not own the table needs on it.
PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE")

#: Rows that one statement writes: each is hidden from the server's log, which takes time quadratic in its length.
BATCH = 20

#: The same as PostgreSQL's regular expressions spell it.
_LAST_LINE = "(?:^|\\n)(role_reconcile password fingerprint [0-9]*:[0-9a-f]{64})$"

_LINE = re.compile(r"(?:\A|\n)role_reconcile password fingerprint ([0-9]*):([0-9a-f]{64})\Z")


@dataclass(frozen=True)
class Record:
    """A fingerprint that one of the stores holds for a role."""

    store: str
    fingerprint: bytes = field(repr=False)


@dataclass(frozen=True)
class StoreTable:
    """What the catalog says about the table. ``faults``: why the run must not touch it. ``lacking``: privileges that
    the executor does not have on it, USAGE on the schema included.
    """

    schema: bool = False
    table: bool = False
    faults: Tuple[str, ...] = ()
    lacking: Tuple[str, ...] = ()
    #: Whether nothing but the owner is wrong with it.
    owner_only: bool = False
    #: Whether the executor may make what is missing.
    may_create: bool = True

    @property
    def readable(self) -> bool:
        """Whether its rows can be looked at."""
        return self.table and not self.faults and not {"USAGE", "SELECT"} & set(self.lacking)


@dataclass(frozen=True)
class PasswordFacts:
    """What the server knows about passwords. ``records``: by role, those of this cluster. ``strays``: rows of the table
    that are of no use any more. ``verifiers``: what is stored for the roles that were asked for, None where the
    executor may not read it. ``encryption``: the server's own setting. ``sealing``: PL/pgSQL can be used.
    """

    table: StoreTable = StoreTable()
    records: Mapping[int, Tuple[Record, ...]] = field(default_factory=dict)
    strays: Tuple[int, ...] = ()
    verifiers: Optional[Mapping[int, Optional[str]]] = field(default=None, repr=False)
    encryption: str = "scram-sha-256"
    sealing: bool = True

    def record(self, role: int, store: str) -> Optional[Record]:
        """The record that counts: the configured store's, else the one that the other store still has."""
        found = self.records.get(role, ())
        return next((item for item in found if item.store == store), found[0] if found else None)


def split_comment(text: Optional[str]) -> Tuple[Optional[str], Optional[Tuple[str, bytes]]]:
    """A role's comment as people see it, and the record in its last line: system identifier and fingerprint."""
    match = _LINE.search(text) if text else None
    if text is None or match is None:
        return text, None
    return text[: match.start()] or None, (match.group(1), bytes.fromhex(match.group(2)))


def join_comment(comment: Optional[str], system_identifier: str, fingerprint: bytes) -> str:
    """A comment with a record as its last line."""
    line = f"role_reconcile password fingerprint {system_identifier}:{fingerprint.hex()}"
    return f"{comment}\n{line}" if comment else line


@dataclass(frozen=True)
class RecordWork:
    """What has to be written so that the stores say what was sent. ``rows`` and ``comments`` hold secrets."""

    delete: Tuple[int, ...] = ()
    rows: Tuple[Tuple[int, bytes], ...] = field(default=(), repr=False)
    #: Whole comments by role name; None removes one.
    comments: Mapping[str, Optional[str]] = field(default_factory=dict, repr=False)

    def __bool__(self) -> bool:
        return bool(self.delete or self.rows or self.comments)


def table_name() -> Any:
    """The table as statements name it."""
    return sql.Identifier(SCHEMA, TABLE)


def creation(change: CreateStore) -> List[Any]:
    """The statements that make the table. Default privileges of the executor must not let anybody in."""
    grantees = sql.SQL(", ").join(
        [sql.SQL("PUBLIC") if ref.oid == 0 else sql.Identifier(ref.name) for ref in change.grantees]
    )
    schema, table = sql.Identifier(SCHEMA), table_name()
    composed: List[Any] = []
    if change.schema:
        composed.append(sql.SQL("CREATE SCHEMA {}").format(schema))
        if change.grantees:
            composed.append(sql.SQL("REVOKE ALL ON SCHEMA {} FROM {}").format(schema, grantees))
    columns = "role oid PRIMARY KEY, system_identifier text NOT NULL, fingerprint bytea NOT NULL"
    composed.append(sql.SQL("CREATE TABLE {} ({})").format(table, sql.SQL(columns)))
    if change.grantees:
        composed.append(sql.SQL("REVOKE ALL ON TABLE {} FROM {}").format(table, grantees))
    return composed


def lock() -> Any:
    """Writers take turns, so that none of them waits inside a statement that holds a secret."""
    return sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(table_name())


def deletion(roles: Sequence[int]) -> Any:
    """Takes the rows of these roles away."""
    listed = sql.SQL(", ").join([sql.Literal(oid) for oid in roles])
    return sql.SQL("DELETE FROM {} WHERE role IN ({})").format(table_name(), listed)


def insertion(rows: Iterable[Tuple[int, bytes]], system_identifier: str, *, masked: bool = False) -> Any:
    """Writes rows, new ones and known ones. ``masked``: as it may be shown."""
    values = sql.SQL(", ").join(
        [
            sql.SQL("({}, {}, {}::bytea)").format(
                sql.Literal(oid),
                sql.Literal(system_identifier),
                sql.Literal(MASK if masked else "\\x" + fingerprint.hex()),
            )
            for oid, fingerprint in rows
        ]
    )
    return sql.SQL(
        "INSERT INTO {} (role, system_identifier, fingerprint) VALUES {} ON CONFLICT (role) DO UPDATE"
        " SET system_identifier = excluded.system_identifier, fingerprint = excluded.fingerprint"
    ).format(table_name(), values)


def comment(role: str, text: Optional[str]) -> Any:
    """Sets a role's whole comment."""
    value = sql.Literal(text) if text else sql.SQL("NULL")
    return sql.SQL("COMMENT ON ROLE {} IS {}").format(sql.Identifier(role), value)


def keeping_record(role: str, text: str) -> Any:
    """A query for the statement that sets what people see of a comment and leaves the record in its last line."""
    return sql.SQL(
        "SELECT format('COMMENT ON ROLE %I IS %L', r.rolname, concat_ws(E'\\n', {},"
        " substring(shobj_description(r.oid, 'pg_authid') FROM {}))) FROM pg_roles AS r WHERE r.rolname = {}"
    ).format(sql.Literal(text) if text else sql.SQL("NULL"), sql.Literal(_LAST_LINE), sql.Literal(role))


def records_of(
    rows: Iterable[Tuple[int, str, bytes]],
    lines: Mapping[int, Tuple[str, bytes]],
    roles: Iterable[int],
    system_identifier: str,
) -> Tuple[Dict[int, Tuple[Record, ...]], Tuple[int, ...]]:
    """The records of this cluster by role, out of the table's rows and the comments' last lines, and the stray rows."""
    found: Dict[int, Tuple[Record, ...]] = {}
    strays: List[int] = []
    known = set(roles)
    for oid, cluster, fingerprint in rows:
        if oid in known and cluster == system_identifier:
            found[oid] = (Record(TABLE_STORE, fingerprint),)
        elif oid not in known or system_identifier:
            # An executor that may not ask for the identifier must not throw away what others know.
            strays.append(oid)
    for oid, (cluster, fingerprint) in lines.items():
        if cluster == system_identifier:
            found[oid] = (*found.get(oid, ()), Record(COMMENT_STORE, fingerprint))
    return found, tuple(strays)
