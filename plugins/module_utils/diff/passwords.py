# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Passwords: which are to be sent, and which are to be taken away. What is sent is never looked at here."""

from __future__ import annotations

import hmac
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..changes import Change, CommentRole, CreateStore, DropRole, SetPassword, passwords_sent
from ..manifest.model import Password
from ..passwords import MD5, SCRAM, fingerprint, matches, may_be_taken_as_verifier, verifier_kind
from ..policy import DesiredRole, Policy
from ..privileges import PUBLIC_OID
from ..records import dataclass, field, replace
from ..state import Role, RoleRef, State
from ..store import COMMENT_STORE, TABLE_STORE, RecordWork, join_comment
from .roles import is_external


@dataclass(frozen=True)
class PasswordOptions:
    """How passwords are treated. ``key_expected``: the run will make the key, so no fingerprint is known yet.
    ``cleartext``: a password itself may go over this connection.
    """

    update: str = "on_change"
    key: Optional[bytes] = field(default=None, repr=False)
    key_expected: bool = False
    store: str = TABLE_STORE
    cleartext: bool = True

    @property
    def keyed(self) -> bool:
        """Whether records are written."""
        return self.key is not None or self.key_expected


def declared(policy: Policy) -> Dict[str, Password]:
    """The passwords that the manifest gives, by role."""
    return {role.name: role.password for role in policy.roles.values() if role.password is not None}


def password_changes(
    policy: Policy, state: State, options: PasswordOptions, created: Iterable[RoleRef]
) -> List[Change]:
    """Every password to be sent or taken away. ``created``: the roles that the run makes."""
    new = {ref.name: ref for ref in created}
    changes: List[Change] = []
    for desired in policy.roles.values():
        oid = state.role_oid(desired.name)
        if oid is None:
            if desired.password is not None and desired.name in new:
                changes.append(SetPassword(new[desired.name], desired.password.source, created=True))
            continue
        role = state.roles[oid]
        external = is_external(desired, oid)
        if desired.password is None:
            if not external:
                changes.extend(_taken_out(desired, role, state, options))
        elif _is_due(desired, desired.password, role, state, options):
            changes.append(SetPassword(role.ref, desired.password.source, external=external))
    return changes


def _taken_out(desired: DesiredRole, role: Role, state: State, options: PasswordOptions) -> Iterable[SetPassword]:
    """What becomes of a stored password that the manifest does not give any more, or never gave."""
    if desired.attributes.get("login") is True:
        return
    facts = state.passwords
    if facts.record(role.oid, options.store) is not None:
        yield SetPassword(role.ref, desired.source, clear=True)
        return
    if role.oid in state.executors:
        return  # it keeps its LOGIN, so there is nothing to report
    stored = role.login if facts.verifiers is None else facts.verifiers.get(role.oid) is not None
    if stored:
        yield SetPassword(role.ref, desired.source, clear=True, ours=False)


def _is_due(desired: DesiredRole, password: Password, role: Role, state: State, options: PasswordOptions) -> bool:
    if options.update == "always":
        return True
    if options.update == "on_create":
        return False
    if desired.attributes.get("login") and not role.login:
        return True
    facts = state.passwords
    if options.update == "on_drift" and facts.verifiers is not None:
        fits = _fits(password, facts.verifiers.get(role.oid), role, facts.encryption)
        if fits is not None:
            return not fits
    record = facts.record(role.oid, options.store)
    if record is None or options.key is None:
        return True
    return not hmac.compare_digest(record.fingerprint, fingerprint_of(password, role.ref, state, options.key))


def _fits(password: Password, stored: Optional[str], role: Role, server: str) -> Optional[bool]:
    """Whether the stored verifier is that of the declared password; None where only the fingerprint can tell."""
    if stored is None:
        return False
    if password.verifier:
        return hmac.compare_digest(stored.encode(), password.text.encode())
    wanted = MD5 if hashed_by_server(password) and server == "md5" else SCRAM
    if verifier_kind(stored) not in (wanted, None):
        return False
    return matches(password.text, stored, role.name)


def hashed_by_server(password: Password) -> bool:
    """Whether a plain password goes to the server as it is. What looks like a verifier never does, because the server
    would store it unhashed.
    """
    return password.encryption == "server" and not may_be_taken_as_verifier(password.text)


def fingerprint_of(password: Password, role: RoleRef, state: State, key: bytes) -> bytes:
    """The fingerprint of a declared password for a role that exists."""
    return fingerprint(
        key,
        system_identifier=state.server.system_identifier,
        oid=role.oid,
        role=role.name,
        # The same text is sent as it is or hashed, which password_format may change.
        encryption="verifier" if password.verifier else password.encryption,
        password=password.text,
    )


def store_changes(changes: Sequence[Change], policy: Policy, state: State, options: PasswordOptions) -> List[Change]:
    """The table of fingerprints, where the run needs it and it is not there."""
    table = state.passwords.table
    if options.store != TABLE_STORE or not options.keyed or table.table:
        return []
    if not passwords_sent(changes) and not _moving(policy, state, options):
        return []
    owner = state.server.current_user
    grantees = {
        entry.grantee
        for row in state.default_acls
        if row.owner == owner and row.schema is None and row.kind in ("table", "schema")
        for entry in row.acl.entries
        if entry.grantee != owner and (entry.grantee == PUBLIC_OID or entry.grantee in state.roles)
    }
    refs = sorted((state.ref(oid) for oid in grantees), key=lambda ref: ref.name)
    return [CreateStore(not table.schema, tuple(refs))]


def _moving(policy: Policy, state: State, options: PasswordOptions) -> Dict[int, bytes]:
    """Records of declared passwords that only the other store has."""
    found: Dict[int, bytes] = {}
    for name in declared(policy):
        oid = state.role_oid(name)
        record = state.passwords.record(oid, options.store) if oid is not None else None
        if oid is not None and record is not None and record.store != options.store:
            found[oid] = record.fingerprint
    return found


def record_work(
    changes: Sequence[Change],
    policy: Policy,
    state: State,
    options: PasswordOptions,
    created: Mapping[str, int],
) -> RecordWork:
    """What the stores have to say once the changes are made. ``created``: the OIDs of new roles."""
    passwords = declared(policy)
    facts = state.passwords
    written: Dict[int, bytes] = {}
    gone: List[int] = []
    names: Dict[int, str] = {oid: name for name, oid in created.items()}
    comments: Dict[int, Optional[str]] = {}
    commented: List[int] = []
    dropped: List[int] = []
    for change in changes:
        if isinstance(change, SetPassword):
            oid = created.get(change.role.name, change.role.oid)
            if change.clear:
                gone.append(oid)
            elif options.key is not None:
                role = RoleRef(oid, change.role.name)
                written[oid] = fingerprint_of(passwords[role.name], role, state, options.key)
            elif facts.records.get(oid):
                gone.append(oid)  # without the key nothing can be known again
        elif isinstance(change, CommentRole):
            oid = created.get(change.role.name, change.role.oid)
            comments[oid] = change.comment or None
            commented.append(oid)
        elif isinstance(change, DropRole):
            dropped.append(change.role.oid)
    if options.keyed:
        for oid, value in _moving(policy, state, options).items():
            if oid not in gone:
                written.setdefault(oid, value)
    return _work(written, gone, dropped, commented, comments, names, state, options)


def _work(
    written: Mapping[int, bytes],
    gone: Sequence[int],
    dropped: Sequence[int],
    commented: Sequence[int],
    comments: Mapping[int, Optional[str]],
    names: Mapping[int, str],
    state: State,
    options: PasswordOptions,
) -> RecordWork:
    facts = state.passwords
    usable = facts.table.readable and not facts.table.lacking
    in_table = {oid for oid, found in facts.records.items() for item in found if item.store == TABLE_STORE}
    lines = {oid: item for oid, found in facts.records.items() for item in found if item.store == COMMENT_STORE}
    cluster = state.server.system_identifier
    whole: Dict[str, Optional[str]] = {}

    def comment_of(oid: int) -> Optional[str]:
        if oid in comments:
            return comments[oid]
        return state.roles[oid].comment if oid in state.roles else None

    def name_of(oid: int) -> str:
        return names.get(oid) or state.roles[oid].name

    to_comment = options.store == COMMENT_STORE
    for oid in sorted({*written, *gone, *commented}):
        if oid in written and to_comment:
            whole[name_of(oid)] = join_comment(comment_of(oid), cluster, written[oid])
        elif oid in lines:
            keeps = oid not in written and oid not in gone
            if keeps and oid in commented:
                whole[name_of(oid)] = join_comment(comment_of(oid), cluster, lines[oid].fingerprint)
            elif not keeps:
                whole[name_of(oid)] = comment_of(oid)
    delete = {*gone, *dropped, *(written if to_comment else ())} & in_table
    if usable:
        delete |= set(facts.strays) - set(written)
    rows: Tuple[Tuple[int, bytes], ...] = () if to_comment else tuple(sorted(written.items()))
    return RecordWork(delete=tuple(sorted(delete)) if usable else (), rows=rows, comments=whole)


def verifying(options: PasswordOptions) -> PasswordOptions:
    """The options for the look before the commit: what was just sent is not sent again."""
    if options.update == "always" or (options.update == "on_change" and not options.keyed):
        return replace(options, update="on_create")
    return options
