# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What keeps a role from being dropped once the plan's own statements have run, in every database.

DROP ROLE asks pg_shdepend. What of that the plan takes away is known from its changes alone: REASSIGN OWNED takes what
the role owns but user mappings and default privileges; DROP OWNED all but what is shared, what others depend on, and
entries that somebody else than the object's owner gave (measured on PostgreSQL 14 to 18).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from .belongings import ACL, INITIAL_ACL, NAMED, NO_OBJECTS, OWNER, POLICY, Held, Row, Ties, listed, ties_by_role
from .changes import (
    AlterSchemaOwner,
    Change,
    DropRole,
    Emptied,
    RemoveMember,
    Revoke,
    RevokeDefault,
)
from .privileges import BOOTSTRAP_OID
from .problems import Problem
from .state import DefaultAcl, RoleRef, State

#: The catalog that objects of a kind are rows of.
CATALOGS: Mapping[str, str] = {
    "table": "pg_class",
    "view": "pg_class",
    "materialized_view": "pg_class",
    "sequence": "pg_class",
    "function": "pg_proc",
    "type": "pg_type",
    "schema": "pg_namespace",
    "database": "pg_database",
    "tablespace": "pg_tablespace",
    "language": "pg_language",
    "foreign_data_wrapper": "pg_foreign_data_wrapper",
    "foreign_server": "pg_foreign_server",
    "large_object": "pg_largeobject",
    "parameter": "pg_parameter_acl",
}

#: Possessions that only a superuser may have; subscriptions so until PostgreSQL 15.
_SUPERUSERS = ("pg_foreign_data_wrapper", "pg_event_trigger")

#: How PostgreSQL says what an object is to the role.
_WORDS = {OWNER: "owner of", ACL: "privileges for", INITIAL_ACL: "initial privileges for", POLICY: "target of"}

EVERYWHERE, HEIR, SWEEP = "all_databases: true", "reassign_owned_to", "drop_owned: true"
#: What either of the two takes away.
EITHER = f"{HEIR} or {SWEEP}"

Place = Tuple[str, int, int]


class Blocker(NamedTuple):
    """Something that keeps a role: what it is, and which option of a retirement would help, if any."""

    label: Optional[str]
    option: Optional[str]


class Loss(NamedTuple):
    """What DROP OWNED would take along. Of what the role owns, in the connected database the first names and how many,
    in others only how many; nothing where it has an heir. ``policies``: those for it alone.
    """

    labels: Sequence[str]
    number: int
    elsewhere: Mapping[str, int]
    policies: Sequence[str]

    @property
    def owned(self) -> bool:
        return bool(self.number or self.elsewhere)

    def told(self) -> str:
        """What nobody should write by mistake."""
        found = [*self.labels[:NAMED], *([f"{self.number - NAMED} more"] if self.number > NAMED else [])]
        found += [f"{_counted(count, 'object')} in database {name}" for name, count in sorted(self.elsewhere.items())]
        return f"Without {HEIR}, {SWEEP} would destroy what it owns: {', '.join(found)}."


def drop_problems(changes: Sequence[Change], state: State) -> List[Problem]:
    """Everything that would make a drop of the plan fail, and the drops that no run makes.

    ``state`` is as the plan will have made it where roles are concerned; its belongings are as they were read.
    """
    drops = [change for change in changes if isinstance(change, DropRole)]
    if not drops:
        return []
    judge = _Judge(changes, state)
    return [problem for drop in drops for problem in judge.problems(drop)]


def never_dropped(role: RoleRef, state: State) -> bool:
    """Whether the role is the bootstrap superuser or one that the run acts as."""
    return role.oid == BOOTSTRAP_OID or role.oid in state.executors


class _Judge:
    """The plan's drops, one after the other."""

    def __init__(self, changes: Sequence[Change], state: State) -> None:
        self._state = state
        self._changes = changes
        self._dropped = {change.role.oid for change in changes if isinstance(change, DropRole)}
        self._emptied = Emptied.by(changes)
        self._ties = ties_by_role(state.belongings.ties)
        self._moved = {change.oid for change in changes if isinstance(change, AlterSchemaOwner)}
        #: Where each role still holds something, and what others hold by its grant.
        self._stay: Dict[int, Set[Place]] = defaultdict(set)
        self._given: Dict[int, List[Left]] = defaultdict(list)
        for left in left_by_revokes(changes, state.belongings.held, self._emptied):
            if left.grantee != left.owner and not (left.grantee in self._emptied.swept and left.grantor == left.owner):
                self._stay[left.grantee].add(left.place)
            if left.grantor != left.owner:
                self._given[left.grantor].append(left)
        self._default_rows = {(row.owner, row.schema, row.kind): row for row in state.default_acls}

    def problems(self, drop: DropRole) -> Iterable[Problem]:
        role, state = drop.role, self._state
        if never_dropped(role, state):
            who = "the bootstrap superuser" if role.oid == BOOTSTRAP_OID else "the role that this run acts as"
            message = f"role {role.name} is {who}, which is never dropped"
            yield Problem(path=drop.source, role=role.name, message=message, code="self_protection")
            return
        here = self._here(role)
        loss = self._loss(role)
        if here:
            yield _problem(drop, f"in database {state.server.database}", here, loss)
        elsewhere: Dict[str, List[Ties]] = defaultdict(list)
        for tie in self._ties[role.oid]:
            if tie.database is not None and tie.database != state.server.database:
                elsewhere[tie.database].append(tie)
        for database, ties in sorted(elsewhere.items()):
            # What was looked into, or should have been, is judged by what is there.
            if database not in state.elsewhere and database not in state.unread:
                yield from self._elsewhere(drop, database, ties, loss)
        yield from self._onward(drop)
        yield from self._refused(drop)
        yield from self._hanging(drop)
        sessions = state.belongings.sessions.get(role.oid, 0)
        if sessions and not drop.terminate:
            labels = state.belongings.session_labels.get(role.oid, ())
            message = f"role {role.name} has {_counted(sessions, 'open session')}: {listed(labels, sessions)}"
            hint = "Close them, or retire the role with terminate_sessions: true."
            yield Problem(path=drop.source, role=role.name, message=message, hint=hint, code="drop_blocked")

    def _loss(self, role: RoleRef) -> Loss:
        """What DROP OWNED would take along, in whichever database: a hint must not lead there unawares."""
        policies = self._state.belongings.policies.get(role.oid, ())
        labels: List[str] = []
        elsewhere: Dict[str, int] = defaultdict(int)
        count, swept = 0, role.oid in self._emptied.swept
        for tie in self._ties[role.oid]:
            if role.oid in self._emptied.heirs or tie.how != OWNER or tie.catalog in NO_OBJECTS or tie.database is None:
                continue
            if tie.database != self._state.server.database:
                elsewhere[tie.database] += tie.count
            elif not swept:  # else it is asked for, and the plan names it
                moved = [tie.catalog == "pg_namespace" and oid in self._moved for oid, _column in tie.objects]
                labels += [label for label, gone in zip(tie.labels, moved) if not gone]
                count += tie.count - sum(moved)
        return Loss(labels, count, elsewhere, policies)

    # ---- the connected database, and what is shared ------------------------------------------------------------------

    def _here(self, role: RoleRef) -> List[Blocker]:
        found: List[Blocker] = []
        heir, swept = role.oid in self._emptied.heirs, role.oid in self._emptied.swept
        for tie in self._ties[role.oid]:
            if tie.database not in (None, self._state.server.database):
                continue
            if tie.how == OWNER:
                found.extend(self._owned(tie, heir, swept))
            elif tie.how == ACL:
                found.extend(self._privileges(tie, swept))
            elif not swept and not (tie.how == INITIAL_ACL and heir):
                found.extend(_blockers(tie, SWEEP))
        found.extend(self._memberships(role, swept))
        return found

    def _owned(self, tie: Ties, heir: bool, swept: bool) -> List[Blocker]:
        if tie.catalog in NO_OBJECTS:
            return [] if swept else _blockers(tie, SWEEP)
        if tie.database is None:
            return [] if heir else _blockers(tie, HEIR)
        if heir or swept:
            return []
        blockers = _blockers(tie, EITHER)
        if tie.catalog != "pg_namespace":
            return blockers
        return [blocker for (oid, _column), blocker in zip(tie.objects, blockers) if oid not in self._moved]

    def _privileges(self, tie: Ties, swept: bool) -> List[Blocker]:
        if tie.catalog == "pg_auth_members":
            return []  # judged by the memberships themselves
        if tie.catalog == "pg_default_acl":
            kept = () if swept else tuple(place for place in tie.objects if not self._default_goes(tie.role, place[0]))
        else:
            stay = self._stay[tie.role]
            kept = tuple(place for place in tie.objects if (tie.catalog, *place) in stay)
        labels = dict(zip(tie.objects, tie.labels))
        option = None if swept else SWEEP
        return [Blocker(_words(tie.how, labels.get(place)), option) for place in kept]

    def _default_goes(self, role: int, oid: int) -> bool:
        """Whether the plan revokes all that the role has by this row, or the row goes with its owner."""
        where = self._state.belongings.defaults.get(oid)
        if where is None:
            return True  # gone since its tie was read
        if where.owner in self._emptied.swept:
            return True
        row: Optional[DefaultAcl] = self._default_rows.get(where)
        held = set(row.acl.of(role)) if row is not None else set()
        for change in self._changes:
            if isinstance(change, RevokeDefault) and change.grantee.oid == role and not change.option_only:
                owner, schema = change.owner.oid, change.schema
                here = None if where.schema is None else self._schema_name(where.schema)
                if (owner, schema, change.kind) == (where.owner, here, where.kind):
                    held -= change.privileges
        return row is not None and not held

    def _schema_name(self, oid: int) -> Optional[str]:
        schema = self._state.schemas.get(oid)
        return None if schema is None else schema.name

    def _memberships(self, role: RoleRef, swept: bool) -> Iterable[Blocker]:
        """Memberships that the role granted, which from PostgreSQL 16 on hang on their grantor."""
        if self._state.server.version < 16 or swept:
            return
        removed = {
            (change.group.oid, change.member.oid)
            for change in self._changes
            if isinstance(change, RemoveMember)
            and change.option is None
            and change.grantor is not None
            and change.grantor.oid == role.oid
        }
        for row in self._state.memberships:
            if row.grantor != role.oid or {row.group, row.member} & self._dropped:
                continue
            if (row.group, row.member) not in removed:
                member, group = self._state.ref(row.member).name, self._state.ref(row.group).name
                yield Blocker(f"grantor of the membership of {member} in {group}", SWEEP)

    def _onward(self, drop: DropRole) -> Iterable[Problem]:
        """What others hold by the role's grant and would lose, where nothing makes the object managed."""
        role = drop.role
        labels: Dict[Place, str] = {}
        for tie in self._ties[role.oid]:
            labels.update(((tie.catalog, *place), label) for place, label in zip(tie.objects, tie.labels))
        together: Dict[Tuple[int, Place], Set[str]] = defaultdict(set)
        for left in self._given[role.oid]:
            together[left.grantee, left.place].add(left.privilege)
        by_grantee: Dict[int, List[str]] = defaultdict(list)
        for (grantee, place), privileges in sorted(together.items()):
            label = labels.get(place, f"{place[0]} {place[1]}")
            by_grantee[grantee].append(f"{', '.join(sorted(privileges))} on {label}")
        for grantee, entries in by_grantee.items():
            name = self._state.ref(grantee).name
            yield Problem(
                path=drop.source,
                role=name,
                object=entries[0].split(" on ", 1)[1],
                message=f"{name} holds by the grant of {role.name}, which is to be dropped, and nothing makes the "
                f"object managed: {listed(entries[:NAMED], len(entries))}",
                hint=f"Declare or revoke what {name} holds there.",
                code="dependent_privileges",
            )

    def _refused(self, drop: DropRole) -> Iterable[Problem]:
        """Possessions that the heir cannot have, whoever hands them over."""
        heir = self._emptied.heirs.get(drop.role.oid)
        known = self._state.roles.get(heir.oid) if heir is not None else None
        if heir is None or known is None or known.superuser:
            return
        superusers = [*_SUPERUSERS, *(["pg_subscription"] if self._state.server.version < 16 else [])]
        ties = [tie for tie in self._ties[drop.role.oid] if tie.how == OWNER and tie.catalog in superusers]
        ties = [tie for tie in ties if tie.database in (None, self._state.server.database)]
        if not ties:
            return
        labels = [label for tie in ties for label in tie.labels]
        message = (
            f"{heir.name} cannot inherit from {drop.role.name} what only a superuser may own: "
            f"{listed(labels, sum(tie.count for tie in ties))}"
        )
        hint = "Drop it, or give it to a superuser, before the role is retired."
        yield Problem(path=drop.source, role=drop.role.name, message=message, hint=hint, code="drop_blocked")

    def _hanging(self, drop: DropRole) -> Iterable[Problem]:
        oid = drop.role.oid
        if oid not in self._emptied.swept or oid in self._emptied.heirs:
            return
        count, labels = self._state.belongings.hanging.get(oid, (0, ()))
        if count:
            message = f"others depend on what DROP OWNED BY {drop.role.name} would destroy: "
            hint = "Give the retirement reassign_owned_to, or drop or detach what depends on it first."
            yield Problem(
                path=drop.source,
                role=drop.role.name,
                message=message + listed(labels, count),
                hint=hint,
                code="drop_blocked",
            )

    # ---- other databases ---------------------------------------------------------------------------------------------

    def _elsewhere(self, drop: DropRole, database: str, ties: Sequence[Ties], loss: Loss) -> Iterable[Problem]:
        """What nobody sees from here but for its number."""
        emptied = Emptied.by(self._changes, database)
        heir, swept = drop.role.oid in emptied.heirs, drop.role.oid in emptied.swept
        closed = database in self._state.belongings.closed
        left: Dict[str, int] = defaultdict(int)
        options: Set[str] = set()
        for tie in ties:
            owned = tie.how == OWNER and tie.catalog not in NO_OBJECTS
            if not closed and (swept or (heir and (owned or tie.how == INITIAL_ACL))):
                continue
            sort = f"{_WORDS.get(tie.how, tie.how)} objects"
            if tie.catalog == "pg_default_acl":
                sort = f"{_WORDS.get(tie.how, tie.how)} default privileges"
            elif tie.catalog == "pg_user_mapping":
                sort = "user mappings"
            left[sort] += tie.count
            options.add(EITHER if owned else SWEEP)
        if not left:
            return
        words = ", ".join(f"{sort} {count}" for sort, count in sorted(left.items()))
        count = sum(left.values())
        where = f"database {database}" + (", which allows no connections" if closed else "")
        message = f"role {drop.role.name} is tied to {_counted(count, 'object')} in {where}: {words}"
        if closed:
            hint = f"Allow connections to it, or drop that database. {_retire(options, loss, EVERYWHERE)}"
        else:
            hint = _retire(options, loss, EVERYWHERE, ", or empty it there first")
        yield Problem(path=drop.source, role=drop.role.name, object=database, message=message, hint=hint,
                      code="drop_blocked")  # fmt: skip


class Revoked:
    """What a plan's own REVOKEs take away, as entries by object."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self._gone: Dict[Tuple[str, int, Optional[str]], Set[Row]] = defaultdict(set)
        for change in changes:
            if not isinstance(change, Revoke) or change.option_only:
                continue
            rows = {(change.grantee.oid, privilege, change.grantor.oid) for privilege in change.privileges}
            columns: Sequence[Optional[str]] = change.target.columns or (None,)
            for item in change.target.objects:
                for column in columns:
                    self._gone[CATALOGS[change.target.kind], item.oid, column] |= rows

    def of(self, catalog: str, oid: int, column: Optional[str]) -> Set[Row]:
        """The entries that go. A REVOKE on a relation takes those on its columns along."""
        gone = self._gone.get((catalog, oid, column), set())
        return gone if column is None else gone | self._gone.get((catalog, oid, None), set())


class Left(NamedTuple):
    """An entry that the plan's own REVOKEs leave: on what (with the column's number), whose that is, the entry."""

    catalog: str
    oid: int
    column: int
    owner: int
    grantee: int
    privilege: str
    grantor: int

    @property
    def place(self) -> Place:
        return self.catalog, self.oid, self.column


def left_by_revokes(changes: Sequence[Change], held: Iterable[Held], emptied: Emptied) -> Iterator[Left]:
    """The entries of roles that go which REASSIGN OWNED or DROP OWNED would have to take, or nothing does. Those of an
    owner and of objects that are destroyed are not among them, nor default privileges.
    """
    revoked = Revoked(changes)
    moves = {
        change.oid: (change.before.oid, change.owner.oid) for change in changes if isinstance(change, AlterSchemaOwner)
    }
    for group in held:
        destroyed = group.owner in emptied.swept and group.owner not in emptied.heirs
        if group.catalog == "pg_default_acl" or (destroyed and group.catalog not in ("pg_database", "pg_tablespace")):
            continue
        for (oid, number), column in zip(group.objects, group.columns):
            owner, rows = group.owner, group.rows
            if group.catalog == "pg_namespace" and oid in moves:
                owner, rows = _moved(rows, *moves[oid])
            for row in rows - revoked.of(group.catalog, oid, column):
                if row[0] != owner or row[2] != owner:
                    yield Left(group.catalog, oid, number, owner, *row)


def _moved(rows: FrozenSet[Row], before: int, after: int) -> Tuple[int, FrozenSet[Row]]:
    """What ALTER SCHEMA ... OWNER TO makes of entries."""

    def swap(oid: int) -> int:
        return after if oid == before else oid

    return after, frozenset((swap(grantee), privilege, swap(grantor)) for grantee, privilege, grantor in rows)


def _blockers(tie: Ties, option: Optional[str]) -> List[Blocker]:
    labels: List[Optional[str]] = [*tie.labels, *([None] * (tie.count - len(tie.labels)))]
    return [Blocker(_words(tie.how, label), option) for label in labels]


def _words(how: str, label: Optional[str]) -> Optional[str]:
    return None if label is None else f"{_WORDS.get(how, how)} {label}"


def _problem(drop: DropRole, where: str, blockers: Sequence[Blocker], loss: Loss) -> Problem:
    labels = [blocker.label for blocker in blockers if blocker.label is not None]
    options = {blocker.option for blocker in blockers if blocker.option is not None}
    message = f"role {drop.role.name} is still needed {where}: {listed(labels[:NAMED], len(blockers))}"
    hints: List[str] = []
    if options:
        hints.append(_retire(options, loss))
    if any(blocker.option is None for blocker in blockers):
        hints.append("DROP OWNED leaves what somebody else than the object's owner granted: revoke that first.")
    return Problem(path=drop.source, role=drop.role.name, message=message, hint=" ".join(hints), code="drop_blocked")


def _retire(options: Set[str], loss: Loss, first: Optional[str] = None, instead: str = "") -> str:
    """What to write. Where the role owns something, anywhere, an heir comes before DROP OWNED, which destroys it."""
    heir, sweep = loss.owned or bool(options & {HEIR, EITHER}), SWEEP in options
    words = [word for word, asked in ((first, first), (HEIR, heir), (SWEEP, sweep)) if asked and word is not None]
    *others, last = words
    hints = [f"Retire the role with {', '.join(others)}{' and ' if others else ''}{last}{instead}."]
    if loss.owned:
        hints.append(loss.told())
    if sweep and loss.policies:
        hints.append(f"{SWEEP} also deletes policies: {listed(loss.policies, len(loss.policies))}.")
    return " ".join(hints)


def _counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"
