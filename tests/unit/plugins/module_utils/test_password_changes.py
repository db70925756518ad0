# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When a password is sent, taken away, left alone or refused, and what the stores have to say afterwards."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils import passwords as hashing
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import (
    AlterRole,
    Change,
    CommentRole,
    CreateStore,
    SetPassword,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.passwords import (
    PasswordOptions,
    declared,
    fingerprint_of,
    password_changes,
    record_work,
    store_changes,
    verifying,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.targets import Lookups
from ansible_collections.pg_access.reconcile.plugins.module_utils.filters import Options
from ansible_collections.pg_access.reconcile.plugins.module_utils.masking import Secrets
from ansible_collections.pg_access.reconcile.plugins.module_utils.password_checks import key_problem, password_problems
from ansible_collections.pg_access.reconcile.plugins.module_utils.plan import make_plan
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import Policy, manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import Problem
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import RoleRef, State
from ansible_collections.pg_access.reconcile.plugins.module_utils.store import (
    PasswordFacts,
    Record,
    RecordWork,
    StoreTable,
    join_comment,
)
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.test_password_policy import scram

KEY, OTHER_KEY = b"k" * 16, b"o" * 16
KEYED = PasswordOptions(key=KEY)
COMMENTS = replace(KEYED, store="comment")
TABLE = StoreTable(True, True)
ABSENT = StoreTable()
HUSH = "hush-hush"
APP: Dict[str, Any] = {"name": "app", "password": HUSH}


class Case:
    """A server with the role app, which has LOGIN unless said otherwise, and a manifest about it."""

    def __init__(
        self, entry: Optional[Mapping[str, Any]] = None, *, world: Optional[World] = None, **role: Any
    ) -> None:
        self.world = world or World()
        self.app = self.world.role("app", **{"login": True, **role})
        self.policy: Policy = manifest_to_policy({"roles": [APP if entry is None else entry]}, Secrets())
        self.facts = PasswordFacts(table=TABLE)

    @property
    def state(self) -> State:
        return replace(self.world.state, passwords=self.facts)

    def print_of(self, secret: str = HUSH, key: bytes = KEY) -> bytes:
        password = replace(declared(self.policy)["app"], text=secret)
        return fingerprint_of(password, self.app, self.state, key)

    def remembers(self, secret: str = HUSH, key: bytes = KEY, store: str = "table") -> Case:
        """A record of this password is stored."""
        self.records({store: self.print_of(secret, key)})
        return self

    def records(self, prints: Mapping[str, bytes]) -> Case:
        found = tuple(Record(store, value) for store, value in prints.items())
        self.facts = replace(self.facts, records={self.app.oid: found})
        return self

    def stores(self, verifier: Optional[str], encryption: str = "scram-sha-256") -> Case:
        """The executor may read pg_authid, and there this is what is stored."""
        self.facts = replace(self.facts, verifiers={self.app.oid: verifier}, encryption=encryption)
        return self

    def changes(self, options: PasswordOptions = KEYED) -> List[Change]:
        return password_changes(self.policy, self.state, options, [])

    def sent(self, options: PasswordOptions = KEYED) -> bool:
        changes = self.changes(options)
        assert changes in ([], [SetPassword(self.app, "roles[0].password")])
        return bool(changes)

    def plan(self, options: PasswordOptions = KEYED, **policy: Any) -> Tuple[List[Change], Dict[str, str]]:
        """What would be done about passwords, and what is withheld, with the reason."""
        scope = self.world.scope(self.policy)
        outcome = make_plan(self.policy, self.state, scope, Lookups(), Options(**policy), passwords=options)
        assert not outcome.problems
        held = {type(item.change).__name__: item.reason for item in outcome.plan.withheld}
        return [change for change in outcome.plan.changes if isinstance(change, (SetPassword, CreateStore))], held


def options(update: str, **more: Any) -> PasswordOptions:
    return PasswordOptions(update=update, **{"key": KEY, **more})


# ---- on_change -------------------------------------------------------------------------------------------------------


def test_on_change_a_password_that_was_sent_is_not_sent_again() -> None:
    assert not Case().remembers().sent()


@pytest.mark.parametrize(
    "case",
    [
        Case(),
        Case().remembers("other"),
        Case().remembers(key=OTHER_KEY),
        Case({**APP, "password_encryption": "server"}).records({"table": Case().print_of()}),
    ],
    ids=["no record", "another password", "another key", "another encryption"],
)
def test_on_change_what_the_record_does_not_know_is_sent(case: Case) -> None:
    assert case.sent()


def test_a_fingerprint_belongs_to_one_life_of_one_role_in_one_cluster() -> None:
    case = Case()
    password, state = declared(case.policy)["app"], case.state
    elsewhere = replace(state, server=replace(state.server, system_identifier="8000"))
    prints = {
        fingerprint_of(password, case.app, state, KEY),
        fingerprint_of(password, case.app, elsewhere, KEY),
        fingerprint_of(password, case.app, state, OTHER_KEY),
        fingerprint_of(password, case.app._replace(oid=case.app.oid + 1), state, KEY),
        fingerprint_of(password, case.app._replace(name="app2"), state, KEY),
        fingerprint_of(replace(password, encryption="server"), case.app, state, KEY),
        fingerprint_of(replace(password, text="other"), case.app, state, KEY),
    }
    assert len(prints) == 7


def test_on_change_never_looks_at_what_the_server_stores() -> None:
    assert not Case().remembers().stores(scram("changed by hand")).sent()
    assert Case().stores(scram(HUSH)).sent()


def test_on_change_while_the_key_is_still_to_be_made_every_password_is_sent() -> None:
    assert Case().remembers().sent(PasswordOptions(key_expected=True))


@pytest.mark.parametrize("update", ["on_change", "on_drift"])
def test_login_found_missing_brings_the_password_along(update: str) -> None:
    assert Case(login=False).remembers().sent(options(update))
    assert Case(login=False).remembers().stores(scram(HUSH)).sent(options(update))


@pytest.mark.parametrize("update", ["on_change", "on_drift"])
def test_a_password_kept_on_a_nologin_role_is_sent_once(update: str) -> None:
    entry = {**APP, "login": False}
    assert Case(entry, login=False).sent(options(update))
    assert not Case(entry, login=False).remembers().sent(options(update))


@pytest.mark.parametrize(("store", "sent"), [("table", False), ("comment", True)])
def test_the_configured_stores_record_counts(store: str, sent: bool) -> None:
    case = Case()
    case.records({"table": case.print_of(), "comment": case.print_of("other")})
    assert case.sent(replace(KEYED, store=store)) is sent


def test_a_record_that_only_the_other_store_has_counts_too() -> None:
    assert not Case().remembers(store="comment").sent()
    assert not Case().remembers(store="table").sent(replace(KEYED, store="comment"))


# ---- always, on_create -----------------------------------------------------------------------------------------------


def test_always_sends_whatever_is_known() -> None:
    assert Case().remembers().stores(scram(HUSH)).sent(options("always"))
    assert Case().sent(options("always", key=None))


@pytest.mark.parametrize("login", [True, False])
def test_on_create_sends_nothing_to_a_role_that_exists_not_even_where_login_is_missing(login: bool) -> None:
    case = Case(login=login).stores(None)
    assert not case.sent(options("on_create"))
    scope = case.world.scope(case.policy)
    plan = make_plan(case.policy, case.state, scope, Lookups(), Options(), passwords=options("on_create")).plan
    assert [type(change) for change in plan.changes] == ([] if login else [AlterRole])


@pytest.mark.parametrize("update", ["on_change", "on_drift", "on_create", "always"])
def test_a_role_that_the_run_creates_gets_its_password_in_any_case(update: str) -> None:
    case = Case({"name": "new", "password": HUSH})
    ref = RoleRef(-1, "new")
    for key in (KEY, None):
        found = password_changes(case.policy, case.state, options(update, key=key), [ref])
        assert found == [SetPassword(ref, "roles[0].password", created=True)]


def test_a_role_that_nobody_creates_gets_none() -> None:
    case = Case({"name": "new", "password": HUSH})
    assert case.changes() == []
    case = Case({"name": "new"})
    assert password_changes(case.policy, case.state, KEYED, [RoleRef(-1, "new")]) == []


# ---- on_drift --------------------------------------------------------------------------------------------------------

MD5 = "md5" + hashlib.md5(b"hush-hushapp", usedforsecurity=False).hexdigest()
VERIFIER = scram(HUSH)


@pytest.mark.parametrize(
    ("entry", "stored", "server", "sent"),
    [
        ({}, scram(HUSH), "scram-sha-256", False),
        ({}, scram(HUSH, 10), "scram-sha-256", False),
        ({}, scram("other"), "scram-sha-256", True),
        ({}, None, "scram-sha-256", True),
        # md5 becomes SCRAM, whatever the server's own setting is
        ({}, MD5, "scram-sha-256", True),
        ({}, MD5, "md5", True),
        # unless the server is to hash by its own setting
        ({"password_encryption": "server"}, MD5, "md5", False),
        ({"password_encryption": "server"}, MD5, "scram-sha-256", True),
        ({"password_encryption": "server"}, scram(HUSH), "scram-sha-256", False),
        ({"password_encryption": "server"}, scram(HUSH), "md5", True),
        # a verifier is compared as it is
        ({"password": VERIFIER}, VERIFIER, "scram-sha-256", False),
        ({"password": VERIFIER}, scram(HUSH, 10), "scram-sha-256", True),
        ({"password": MD5}, MD5, "scram-sha-256", False),
        ({"password": MD5}, scram(HUSH), "scram-sha-256", True),
        ({"password": MD5}, None, "scram-sha-256", True),
    ],
)
def test_on_drift_what_the_server_stores_decides(
    entry: Dict[str, Any], stored: Optional[str], server: str, sent: bool
) -> None:
    case = Case({**APP, **entry}).stores(stored, server)
    assert case.sent(options("on_drift")) is sent
    # With a key or without one, and whatever the record says.
    assert case.sent(options("on_drift", key=None)) is sent
    case.records(
        {"table": case.print_of("other") if sent is False else case.print_of(str(entry.get("password", HUSH)))}
    )
    assert case.sent(options("on_drift")) is sent


def test_on_drift_a_password_that_looks_like_a_verifier_is_hashed_here_and_known_again() -> None:
    # It is sent as a SCRAM verifier even where the server is to hash, or the server would store it as it is.
    entry = {**APP, "password": "md5" + "0" * 32, "password_format": "plain", "password_encryption": "server"}
    assert not Case(entry).stores(scram(entry["password"]), "md5").sent(options("on_drift"))


def test_on_drift_where_nobody_may_look_the_fingerprint_decides() -> None:
    assert not Case().remembers().sent(options("on_drift"))
    assert Case().remembers("other").sent(options("on_drift"))


@pytest.mark.parametrize("stored", ["nonsense", scram(HUSH).replace("$4096:", "$99999999999:")])
def test_on_drift_what_cannot_be_compared_is_left_to_the_fingerprint(stored: str) -> None:
    assert not Case().remembers().stores(stored).sent(options("on_drift"))
    assert Case().remembers("other").stores(stored).sent(options("on_drift"))
    assert Case().stores(stored).sent(options("on_drift", key=None))


def test_on_drift_without_md5_the_fingerprint_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "md5_of", lambda _password, _role: None)
    case = Case({**APP, "password_encryption": "server"}).remembers().stores(MD5, "md5")
    assert not case.sent(options("on_drift"))


# ---- a password that is taken out ------------------------------------------------------------------------------------

BARE = {"name": "app"}


def taken_out(case: Case, **more: Any) -> List[SetPassword]:
    return [change for change in case.changes(replace(KEYED, **more)) if isinstance(change, SetPassword)]


@pytest.mark.parametrize("login", [True, False])
@pytest.mark.parametrize("entry", [BARE, {**BARE, "login": False}])
@pytest.mark.parametrize("store", ["table", "comment"])
@pytest.mark.parametrize("configured", ["table", "comment"])
@pytest.mark.parametrize("update", ["on_change", "on_drift", "on_create", "always"])
def test_a_password_of_ours_is_taken_away_also_where_somebody_set_nologin_before(
    login: bool, entry: Any, store: str, configured: str, update: str
) -> None:
    case = Case(entry, login=login).records({store: b"x" * 32})
    for key in (KEY, None):
        (change,) = taken_out(case, key=key, store=configured, update=update)
        assert change == SetPassword(case.app, "roles[0]", clear=True)


@pytest.mark.parametrize(
    ("login", "stored", "readable", "reported"),
    [
        (True, "x", True, True),
        (False, "x", True, True),
        (True, None, True, False),
        (False, None, True, False),
        # Where nobody may look, a role that loses LOGIN may have had one.
        (True, None, False, True),
        (False, None, False, False),
    ],
)
def test_a_password_that_is_not_ours_is_only_reported(
    login: bool, stored: Optional[str], readable: bool, reported: bool
) -> None:
    case = Case(BARE, login=login)
    if readable:
        case.stores(stored)
    assert taken_out(case) == [SetPassword(case.app, "roles[0]", clear=True, ours=False)] * reported
    done, held = case.plan()
    assert done == []
    assert held == ({"SetPassword": "password_not_ours"} if reported else {})


def test_with_login_true_the_stored_password_is_left_alone() -> None:
    entry = {**BARE, "login": True}
    assert taken_out(Case(entry).records({"table": b"x" * 32}).stores("x")) == []
    assert taken_out(Case(entry, login=False).records({"table": b"x" * 32}).stores("x")) == []


def test_nothing_is_taken_from_roles_that_somebody_else_looks_after() -> None:
    for entry, world in (({**BARE, "external": True}, None), ({"name": "postgres"}, None)):
        case = Case(entry, world=world).stores("x")
        case.facts = replace(case.facts, records={oid: (Record("table", b"x"),) for oid in case.state.roles})
        assert taken_out(case) == []


# ---- filters ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["authoritative", "adopt"])
def test_authoritative_and_adopt_set_and_clear_passwords(mode: str) -> None:
    case = Case()
    assert case.plan(mode=mode) == ([SetPassword(case.app, "roles[0].password")], {})
    case = Case(BARE).records({"table": b"x" * 32})
    assert case.plan(mode=mode) == ([SetPassword(case.app, "roles[0]", clear=True)], {})


def test_additive_sets_a_password_only_where_the_run_creates_the_role() -> None:
    assert Case().plan(mode="additive") == ([], {"SetPassword": "mode"})
    done, held = Case({"name": "new", "password": HUSH}).plan(mode="additive")
    assert done == [SetPassword(RoleRef(-1, "new"), "roles[0].password", created=True)]
    assert held == {}


def test_additive_takes_no_password_away() -> None:
    assert Case(BARE).records({"table": b"x"}).plan(mode="additive") == (
        [],
        {"AlterRole": "mode", "SetPassword": "mode"},
    )


def test_the_executors_own_password_is_set_but_never_taken_away() -> None:
    done, _held = Case(world=World(executor="app")).plan()
    assert [type(change) for change in done] == [SetPassword]
    case = Case(BARE, world=World(executor="app")).records({"table": b"x" * 32})
    assert case.plan() == ([], {"AlterRole": "self_protection", "SetPassword": "self_protection"})
    # A login that became another role with session_role is the executor as well.
    case = Case(BARE, world=World(login="app")).records({"table": b"x" * 32})
    assert case.plan()[1]["SetPassword"] == "self_protection"


def test_the_bootstrap_superusers_password_is_nobodys_to_set_here() -> None:
    case = Case({"name": "postgres", "password": HUSH})
    done, held = case.plan()
    assert done == []
    assert held["SetPassword"] == "external"


# ---- the key ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "readable", "needed"),
    [
        (PasswordOptions(), False, True),
        (PasswordOptions("on_drift"), False, True),
        (PasswordOptions("on_drift"), True, False),
        (PasswordOptions("on_create"), False, False),
        (PasswordOptions("always"), False, False),
        (PasswordOptions(key=KEY), False, False),
        (PasswordOptions(key_expected=True), False, False),
    ],
)
def test_fingerprints_need_a_key(options: PasswordOptions, readable: bool, needed: bool) -> None:
    case = Case()
    found = key_problem(case.policy, options, readable=readable)
    assert (found is not None) is needed
    if found is not None:
        assert (found.code, found.role, found.path) == ("fingerprint_key_missing", "app", "roles[0].password")
        assert "fingerprint_key: \"{{ lookup('ansible.builtin.password'" in str(found.hint)
    if readable:
        case.stores(scram(HUSH))
    assert (found in password_problems([], case.policy, case.state, options)) is needed


def test_the_problem_of_a_missing_key_counts_the_roles() -> None:
    policy = manifest_to_policy({"roles": [{**APP, "name": name} for name in "abc"]}, Secrets())
    found = key_problem(policy, PasswordOptions(), readable=False)
    assert found is not None
    assert found.message.startswith("role a and 2 more have passwords, and")
    assert found.message.endswith("to know them again")
    alone = key_problem(Case().policy, PasswordOptions(), readable=False)
    assert alone is not None
    assert alone.message.startswith("role app has a password, and")
    assert alone.message.endswith("to know it again")


def test_without_passwords_no_key_is_missed() -> None:
    assert key_problem(Case(BARE).policy, PasswordOptions(), readable=False) is None


# ---- clear text ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "cleartext", "refused"),
    [
        ({"password_encryption": "server"}, False, True),
        ({"password_encryption": "server"}, True, False),
        ({}, False, False),
        ({"password_encryption": "server", "password": VERIFIER}, False, False),
        ({"password_encryption": "server", "password": VERIFIER, "password_format": "plain"}, False, True),
    ],
)
def test_clear_text_goes_over_no_open_network(entry: Dict[str, Any], cleartext: bool, refused: bool) -> None:
    case = Case({**APP, **entry})
    found = password_problems(case.changes(), case.policy, case.state, replace(KEYED, cleartext=cleartext))
    assert [item.role for item in found] == ["app"] * refused
    if refused:
        assert "allow_cleartext" in str(found[0].hint)
        assert HUSH not in found[0].text
    # Only where it would be sent.
    assert password_problems([], case.policy, case.state, replace(KEYED, cleartext=cleartext)) == []


def test_taking_a_password_away_shows_none() -> None:
    case = Case(BARE).records({"table": b"x" * 32})
    assert password_problems(case.changes(), case.policy, case.state, PasswordOptions(cleartext=False)) == []


# ---- the table -------------------------------------------------------------------------------------------------------


def stored(case: Case, options: PasswordOptions = KEYED, table: StoreTable = ABSENT) -> List[Change]:
    case.facts = replace(case.facts, table=table)
    changes = [CommentRole(case.app, "x", None, ""), *case.changes(options)]
    return store_changes(changes, case.policy, case.state, options)


@pytest.mark.parametrize(
    ("case", "options", "table", "made"),
    [
        (Case(), KEYED, ABSENT, [CreateStore(True)]),
        (Case(), KEYED, StoreTable(schema=True), [CreateStore(False)]),
        (Case(), KEYED, TABLE, []),
        (Case(), PasswordOptions(key_expected=True), ABSENT, [CreateStore(True)]),
        (Case(), options("always"), ABSENT, [CreateStore(True)]),
        (Case(), replace(KEYED, store="comment"), ABSENT, []),
        (Case(), options("always", key=None), ABSENT, []),
        (Case(), options("on_create"), ABSENT, []),
        (Case({"name": "app"}), KEYED, ABSENT, []),
        (Case().remembers(store="comment"), KEYED, ABSENT, [CreateStore(True)]),
        (Case().remembers(store="comment"), replace(KEYED, store="comment"), ABSENT, []),
    ],
)
def test_the_table_is_made_where_a_record_will_be_written(
    case: Case, options: PasswordOptions, table: StoreTable, made: List[Change]
) -> None:
    assert stored(case, options, table) == made


def test_a_password_that_is_only_taken_away_makes_no_table() -> None:
    assert stored(Case(BARE).records({"comment": b"x" * 32})) == []


def test_whom_the_executors_default_privileges_would_let_in_is_named_and_nobody_else() -> None:
    world = World()
    world.default("postgres", None, "table", ("zed", "SELECT", "postgres"), ("PUBLIC", "SELECT", "postgres"))
    world.default("postgres", None, "schema", ("anna", "USAGE", "postgres"))
    world.default("postgres", None, "sequence", ("seq", "USAGE", "postgres"))
    world.default("other", None, "table", ("foreign", "SELECT", "other"))
    world.schema("s")
    world.default("postgres", "s", "table", ("inner", "SELECT", "postgres"))
    (change,) = stored(Case(world=world))
    assert isinstance(change, CreateStore)
    assert [ref.name for ref in change.grantees] == ["PUBLIC", "anna", "zed"]


def table_problems(
    case: Case, table: StoreTable, options: PasswordOptions = KEYED, more: Iterable[Change] = ()
) -> List[Problem]:
    case.facts = replace(case.facts, table=table)
    changes = [*case.changes(options), *more]
    changes += store_changes(changes, case.policy, case.state, options)
    return password_problems(changes, case.policy, case.state, options)


BAD = StoreTable(True, True, faults=("it has a trigger",))
CLOSED = StoreTable(True, True, lacking=("USAGE", "INSERT", "DELETE"))


@pytest.mark.parametrize(
    ("table", "code", "message", "hint"),
    [
        (BAD, "object_missing", "not touched: it has a trigger", "Look at who made it"),
        (StoreTable(True, False, faults=("x",)), "object_missing", "not touched: x", "Look at who made it"),
        (
            StoreTable(True, True, faults=("it belongs to b",), owner_only=True),
            "object_missing",
            "it belongs to b",
            'ALTER TABLE role_reconcile.password_fingerprint OWNER TO "postgres"',
        ),
        (
            StoreTable(may_create=False),
            "insufficient_privilege",
            "postgres may not create in database app",
            'GRANT CREATE ON DATABASE "app" TO "postgres"',
        ),
        (
            StoreTable(schema=True, may_create=False),
            "insufficient_privilege",
            "postgres may not create in schema role_reconcile",
            'GRANT CREATE ON SCHEMA "role_reconcile" TO "postgres"',
        ),
        (
            CLOSED,
            "insufficient_privilege",
            "postgres may not use role_reconcile.password_fingerprint",
            'GRANT USAGE ON SCHEMA role_reconcile TO "postgres"; '
            'GRANT INSERT, DELETE ON role_reconcile.password_fingerprint TO "postgres"',
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_the_grant_and_the_other_store(
    table: StoreTable, code: str, message: str, hint: str
) -> None:
    (found,) = table_problems(Case(), table)
    assert found.code == code
    assert message in found.message
    assert hint in str(found.hint)
    assert "fingerprint_store: comment" in str(found.hint)
    assert table_problems(Case(), table, replace(KEYED, store="comment")) == []


def test_a_usable_table_is_no_problem() -> None:
    assert table_problems(Case(), TABLE) == []
    assert table_problems(Case(), ABSENT) == []
    assert table_problems(Case(BARE), StoreTable(may_create=False)) == []


def test_only_the_privileges_that_are_missing_are_asked_for() -> None:
    (found,) = table_problems(Case(), StoreTable(True, True, lacking=("USAGE",)))
    assert str(found.hint).startswith('GRANT USAGE ON SCHEMA role_reconcile TO "postgres"; or use')
    (found,) = table_problems(Case(), StoreTable(True, True, lacking=("SELECT",)))
    assert str(found.hint).startswith('GRANT SELECT ON role_reconcile.password_fingerprint TO "postgres"; or use')


@pytest.mark.parametrize("table", [BAD, CLOSED])
def test_a_table_that_nobody_needs_may_be_anything(table: StoreTable) -> None:
    assert table_problems(Case(BARE), table) == []
    assert table_problems(Case(), table, options("always", key=None)) == []
    assert table_problems(Case(), table, options("on_create")) == []


@pytest.mark.parametrize("table", [BAD, CLOSED])
def test_a_table_is_needed_where_a_created_roles_password_is_remembered(table: StoreTable) -> None:
    case = Case({"name": "new", "password": HUSH})
    more = [SetPassword(RoleRef(-1, "new"), "roles[0].password", created=True)]
    assert len(table_problems(case, table, options("on_create"), more)) == 1


def test_even_with_nothing_to_send_a_table_must_be_usable_or_the_next_change_could_not_be_known() -> None:
    assert len(table_problems(Case().remembers(), CLOSED)) == 1


@pytest.mark.parametrize("store", ["table", "comment"])
@pytest.mark.parametrize("key", [KEY, None])
def test_a_record_that_must_go_and_may_not_be_deleted_is_a_problem(store: str, key: Optional[bytes]) -> None:
    # Else the record would stay, and every run would take the password away anew.
    case = Case(BARE).records({"table": b"x" * 32})
    table = StoreTable(True, True, lacking=("DELETE",))
    (found,) = table_problems(case, table, PasswordOptions(key=key, store=store))
    assert found.code == "insufficient_privilege"
    assert found.hint == 'GRANT DELETE ON role_reconcile.password_fingerprint TO "postgres".'


def test_a_record_that_a_password_sent_without_a_key_makes_worthless_must_be_deletable_too() -> None:
    case = Case().remembers()
    table = StoreTable(True, True, lacking=("DELETE",))
    assert len(table_problems(case, table, options("always", key=None))) == 1
    # Where only the comment has one, or the configured store is the one that counts, the table is nobody's business.
    assert table_problems(Case().remembers(store="comment"), table, options("always", key=None)) == []
    assert table_problems(Case(BARE).records({"comment": b"x" * 32}), table, COMMENTS) == []
    assert table_problems(case, table, replace(COMMENTS, update="always")) == []


# ---- records ---------------------------------------------------------------------------------------------------------


def work(
    case: Case,
    options: PasswordOptions = KEYED,
    more: Sequence[Change] = (),
    created: Optional[Mapping[str, int]] = None,
) -> RecordWork:
    changes = [*case.changes(options), *more]
    return record_work(changes, case.policy, case.state, options, created or {})


def test_where_nothing_is_sent_nothing_is_written() -> None:
    assert not work(Case().remembers())
    assert not work(Case().remembers(store="comment"), COMMENTS)
    assert not work(Case({"name": "app"}))


@pytest.mark.parametrize("update", ["on_change", "on_drift", "always"])
def test_a_record_is_written_whenever_a_password_is_sent_and_a_key_is_known(update: str) -> None:
    case = Case().remembers("other")
    assert work(case, options(update)) == RecordWork(rows=((case.app.oid, case.print_of()),))
    written = work(case, options(update, store="comment"))
    assert written.comments == {"app": join_comment(None, "7000", case.print_of())}


def test_a_new_roles_record_is_written_under_the_oid_that_it_got() -> None:
    case = Case({"name": "new", "password": HUSH})
    change = SetPassword(RoleRef(-1, "new"), "roles[0].password", created=True)
    expected = fingerprint_of(declared(case.policy)["new"], RoleRef(777, "new"), case.state, KEY)
    assert work(case, options("on_create"), [change], {"new": 777}) == RecordWork(rows=((777, expected),))
    comment = CommentRole(change.role, "Order service", None, "roles[0]", created=True)
    written = work(case, COMMENTS, [change, comment], {"new": 777})
    assert written == RecordWork(comments={"new": join_comment("Order service", "7000", expected)})


def test_in_the_comment_store_the_persons_comment_stays() -> None:
    case = Case(comment="Order service")
    assert work(case, COMMENTS).comments == {"app": join_comment("Order service", "7000", case.print_of())}


@pytest.mark.parametrize(("new", "kept"), [("new text", "new text"), ("", None)])
def test_a_comment_that_changes_keeps_its_record(new: str, kept: Optional[str]) -> None:
    case = Case(comment="old").remembers(store="comment")
    change = CommentRole(case.app, new, "old", "roles[0]")
    assert work(case, COMMENTS, [change]).comments == {"app": join_comment(kept, "7000", case.print_of())}
    case = Case(comment="old")
    assert work(case, COMMENTS, [change]).comments == {"app": join_comment(kept, "7000", case.print_of())}
    # A role without a record has the comment that its own statement gave it.
    assert not work(Case({**BARE, "login": True}, comment="old"), COMMENTS, [change])


def test_taking_a_password_away_takes_the_record_along() -> None:
    case = Case(BARE, comment="old").records({"table": b"x" * 32, "comment": b"x" * 32})
    for options_ in (KEYED, COMMENTS, PasswordOptions()):
        assert work(case, options_) == RecordWork(delete=(case.app.oid,), comments={"app": "old"})


def test_a_new_store_takes_the_record_over_from_the_old_one() -> None:
    case = Case(comment="old").remembers(store="comment")
    assert work(case) == RecordWork(rows=((case.app.oid, case.print_of()),), comments={"app": "old"})
    case = Case(comment="old").remembers(store="table")
    assert work(case, COMMENTS) == RecordWork(
        delete=(case.app.oid,), comments={"app": join_comment("old", "7000", case.print_of())}
    )


def test_a_record_that_moves_is_not_made_anew_with_another_key() -> None:
    case = Case().remembers(store="comment")
    assert work(case, options("on_create", key=OTHER_KEY)).rows == ((case.app.oid, case.print_of()),)


def test_without_a_key_nothing_moves() -> None:
    assert not work(Case().remembers(store="comment"), options("on_create", key=None))


@pytest.mark.parametrize("store", ["table", "comment"])
def test_a_password_sent_without_a_key_makes_its_record_worthless(store: str) -> None:
    case = Case(comment="old").remembers(store=store)
    expected = RecordWork(delete=(case.app.oid,)) if store == "table" else RecordWork(comments={"app": "old"})
    assert work(case, options("always", key=None)) == expected
    assert not work(Case(), options("always", key=None))


def test_rows_that_are_of_no_use_go_in_passing() -> None:
    case = Case().remembers()
    case.facts = replace(case.facts, strays=(901, 900))
    assert work(case) == RecordWork(delete=(900, 901))
    case.facts = replace(case.facts, records={}, strays=(900, case.app.oid))
    assert work(case) == RecordWork(delete=(900,), rows=((case.app.oid, case.print_of()),))


@pytest.mark.parametrize("table", [BAD, CLOSED, ABSENT])
def test_nothing_is_deleted_from_a_table_that_cannot_be_used(table: StoreTable) -> None:
    case = Case().remembers()
    case.facts = replace(case.facts, strays=(900,), table=table)
    assert not work(case)


def test_withheld_passwords_are_not_remembered() -> None:
    case = Case()
    assert not record_work([], case.policy, case.state, KEYED, {})


# ---- verification ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "update"),
    [
        (options("always"), "on_create"),
        (options("always", key=None), "on_create"),
        (PasswordOptions(), "on_create"),
        (KEYED, "on_change"),
        (options("on_drift"), "on_drift"),
        (options("on_drift", key=None), "on_drift"),
        (options("on_create"), "on_create"),
    ],
)
def test_before_the_commit_what_was_just_sent_is_not_sent_again(options: PasswordOptions, update: str) -> None:
    assert verifying(options) == replace(options, update=update)


@pytest.mark.parametrize("update", ["on_change", "on_drift", "on_create", "always"])
@pytest.mark.parametrize("key", [KEY, None])
@pytest.mark.parametrize("readable", [True, False])
def test_a_run_that_did_its_work_finds_nothing_to_do(update: str, key: Optional[bytes], readable: bool) -> None:
    used = options(update, key=key)
    case = Case()
    if readable and update == "on_drift":
        case.stores(scram(HUSH))
    if key is not None:
        case.remembers()
    if key_problem(case.policy, used, readable=readable and update == "on_drift"):
        return  # it would not have begun
    assert not case.sent(verifying(used))


def test_no_representation_shows_the_key() -> None:
    assert KEY.decode() not in repr(KEYED)
