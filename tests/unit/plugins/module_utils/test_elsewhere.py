# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Other databases: what is done there, in which order and words, and what a run says that fails afterwards."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Dict, List, Sequence

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils import connection
from ansible_collections.pg_access.reconcile.plugins.module_utils.authority.drops import drop_authority
from ansible_collections.pg_access.reconcile.plugins.module_utils.authority.powers import Powers
from ansible_collections.pg_access.reconcile.plugins.module_utils.belongings import ACL, OWNER, Belongings, Ties
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import (
    AddMember,
    Change,
    DropOwned,
    DropRole,
    Grant,
    Plan,
    ReassignOwned,
    RemoveMember,
    Target,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.connection import connect, place_of
from ansible_collections.pg_access.reconcile.plugins.module_utils.diff.elsewhere import (
    emptying_changes,
    problems_elsewhere,
    with_elsewhere,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.elsewhere import by_database
from ansible_collections.pg_access.reconcile.plugins.module_utils.failure import Failure, internal
from ansible_collections.pg_access.reconcile.plugins.module_utils.run import Done
from ansible_collections.pg_access.reconcile.plugins.module_utils.state import (
    Acl,
    Database,
    Entry,
    Membership,
    Object,
    Role,
    RoleRef,
    Server,
    State,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.statements.order import statements

pytest.importorskip("psycopg")

BOSS, OLD, HEIR, FRIEND = RoleRef(10, "postgres"), RoleRef(20, "old"), RoleRef(30, "heir"), RoleRef(40, "friend")
TEAM, NEW = RoleRef(50, "team"), RoleRef(-1, "new")
ROLES = {ref.oid: Role(ref.oid, ref.name, superuser=ref is BOSS) for ref in (BOSS, OLD, HEIR, FRIEND, TEAM)}
RETIRED: List[Change] = [
    ReassignOwned(OLD, HEIR, "retirements[0]"),
    DropOwned(OLD, "retirements[0]"),
    DropRole(OLD, "retirements[0]"),
]
OWNS = Ties(OLD.oid, OWNER, "pg_class", "b", 2, ((100, 0), (101, 0)), ("table t", "table u"))
HOLDS = Ties(OLD.oid, ACL, "pg_class", "b", 1, ((102, 0),), ("table v",))
DEFAULTS = Ties(OLD.oid, OWNER, "pg_default_acl", "b", 1, ((103, 0),), ("default privileges",))


def state(name: str = "app", **parts: Any) -> State:
    server = Server(17, "17.0", name, 1, "", False, BOSS.oid, BOSS.oid)
    whole: Dict[str, Any] = {"roles": ROLES, "memberships": (), "schemas": {}, "databases": {}, **parts}
    return State(server, **whole)


def elsewhere(*ties: Ties, **parts: Any) -> State:
    """The connected database, beside one called b that holds these."""
    return state(elsewhere={"b": state("b", belongings=Belongings(ties=ties))}, **parts)


def there(changes: Sequence[Change]) -> List[str]:
    return [text for text in statements(changes, {}, 17) if "in database" in text]


# ---- what is done ----------------------------------------------------------------------------------------------------


def test_a_role_is_emptied_as_in_the_connected_database() -> None:
    found = Belongings(ties=(OWNS, HOLDS, DEFAULTS), policies={OLD.oid: ("p on t",)})
    reassign, drop = emptying_changes("b", found, RETIRED)
    assert reassign == ReassignOwned(OLD, HEIR, "retirements[0]", database="b")
    assert drop == DropOwned(OLD, "retirements[0]", policies=("p on t",), database="b")


def test_nothing_is_reassigned_where_nothing_is_owned() -> None:
    assert [type(change) for change in emptying_changes("b", Belongings(ties=(HOLDS, DEFAULTS)), RETIRED)] == [
        DropOwned
    ]
    assert [type(change) for change in emptying_changes("b", Belongings(ties=(OWNS,)), RETIRED[:1])] == [ReassignOwned]
    assert emptying_changes("b", Belongings(), RETIRED) == []


def test_what_nobody_inherits_is_named_without_default_privileges() -> None:
    (drop,) = emptying_changes("b", Belongings(ties=(OWNS, DEFAULTS)), RETIRED[1:])
    assert isinstance(drop, DropOwned)
    assert (drop.destroyed, drop.destroyed_count) == (("table t", "table u"), 2)


def test_the_changes_of_other_databases_come_first() -> None:
    world = elsewhere(OWNS)
    changes = with_elsewhere(RETIRED, world)
    assert problems_elsewhere(changes, world, world, ()) == []
    assert statements(changes, {}, 17) == [
        '/* in database "b" */ REASSIGN OWNED BY "old" TO "heir"',
        '/* in database "b" */ DROP OWNED BY "old"',
        'REASSIGN OWNED BY "old" TO "heir"',
        'DROP OWNED BY "old"',
        'DROP ROLE "old"',
    ]
    places = by_database(Plan(changes=changes))
    assert list(places) == ["b", None]
    assert [len(found) for found in places.values()] == [2, 3]


def test_a_database_that_was_not_read_stops_the_plan() -> None:
    tied = state(belongings=Belongings(ties=(OWNS,)), unread={"b": "permission denied"})
    changes = with_elsewhere(RETIRED, tied)
    (problem,) = problems_elsewhere(changes, tied, tied, ())
    assert problem.code == "drop_blocked"
    assert problem.message == "database b holds something of old and cannot be looked into: permission denied"
    assert there(changes) == []


def test_an_heir_that_does_not_exist_yet() -> None:
    changes = [ReassignOwned(OLD, NEW, "retirements[0]"), *RETIRED[1:]]
    after = elsewhere(OWNS, roles={**ROLES, -1: Role(-1, "new")})
    (problem,) = problems_elsewhere(with_elsewhere(changes, after), after, elsewhere(OWNS), ())
    assert (problem.code, problem.path) == ("object_missing", "retirements[0].reassign_owned_to")
    owns_nothing = elsewhere(HOLDS, roles=after.roles)
    assert problems_elsewhere(with_elsewhere(changes, owns_nothing), owns_nothing, elsewhere(HOLDS), ()) == []


def test_what_the_executor_lacks_everywhere_is_told_once() -> None:
    weak = RoleRef(60, "weak")
    roles = {**ROLES, weak.oid: Role(weak.oid, weak.name)}
    server = Server(17, "17.0", "b", 2, "", False, weak.oid, weak.oid)
    there_ = replace(state("b", roles=roles, belongings=Belongings(ties=(OWNS,))), server=server)
    world = replace(state(roles=roles, elsewhere={"b": there_}), server=replace(server, database="app"))
    changes = with_elsewhere(RETIRED, world)
    known = drop_authority(changes, world, Powers(world))
    assert len(known) == 5
    assert problems_elsewhere(changes, world, world, known) == []
    assert [problem.message.split(",")[0] for problem in problems_elsewhere(changes, world, world, known[1:])] == [
        "in database b"
    ]


# ---- shared objects --------------------------------------------------------------------------------------------------

ENTRIES = {Entry(OLD.oid, "CONNECT", BOSS.oid, True), Entry(FRIEND.oid, "CONNECT", OLD.oid, False)}
APP = Database(1, "app", BOSS.oid, Acl(frozenset(ENTRIES)))
CONNECT = Grant(
    Target("database", None, (Object(1, "app"),), BOSS), FRIEND, frozenset({"CONNECT"}), again=True, late=True
)


def test_what_goes_with_drop_owned_is_granted_again_in_the_same_transaction() -> None:
    rows = (Membership(TEAM.oid, FRIEND.oid, OLD.oid, False, True, True),)
    changes = [AddMember(TEAM, FRIEND, {}, "", exists=True), RemoveMember(TEAM, FRIEND, OLD), CONNECT, *RETIRED]
    world = elsewhere(HOLDS, memberships=rows, databases={1: APP})
    moved = with_elsewhere(changes, world)
    assert problems_elsewhere(moved, world, world, ()) == []
    assert there(moved) == [
        '/* in database "b" */ GRANT "team" TO "friend"',
        '/* in database "b" */ GRANT CONNECT ON DATABASE "app" TO "friend"',
        '/* in database "b" */ REVOKE "team" FROM "friend" GRANTED BY "old"',
        '/* in database "b" */ DROP OWNED BY "old"',
    ]
    assert statements(moved, {}, 17)[4:] == [
        'REASSIGN OWNED BY "old" TO "heir"',
        'DROP OWNED BY "old"',
        'DROP ROLE "old"',
    ]


def test_what_has_nothing_to_do_with_the_role_stays_where_it_is() -> None:
    other = Database(1, "app", BOSS.oid, Acl(frozenset({Entry(FRIEND.oid, "CONNECT", BOSS.oid, False)})))
    rows = (Membership(TEAM.oid, FRIEND.oid, BOSS.oid, False, True, True),)
    changes = [AddMember(TEAM, FRIEND, {"admin": True}, "", exists=True), CONNECT, *RETIRED]
    world = elsewhere(HOLDS, memberships=rows, databases={1: other})
    assert there(with_elsewhere(changes, world)) == ['/* in database "b" */ DROP OWNED BY "old"']


def test_a_new_role_is_granted_nothing_before_it_exists() -> None:
    changes = [Grant(CONNECT.target, NEW, frozenset({"CONNECT"})), *RETIRED]
    world = elsewhere(HOLDS, databases={1: APP})
    assert there(with_elsewhere(changes, world)) == ['/* in database "b" */ DROP OWNED BY "old"']


# ---- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("b", '"b"'),
        ('a "b" * / c', '"a ""b"" * / c"'),
        ("\u00fcnï *", '"\u00fcnï *"'),
        ("a*/b", r'U&"a\002A/b"'),
        ("/*", r'U&"/\002A"'),
        ("a\\b\nc", r'U&"a\\b\000Ac"'),
    ],
)
def test_a_name_cannot_end_the_remark(name: str, shown: str) -> None:
    (text,) = statements([DropOwned(OLD, "", database=name)], {}, 17)
    assert text == f'/* in database {shown} */ DROP OWNED BY "old"'
    assert re.findall(r"/[*]|[*]/", text) == ["/*", "*/"]
    assert "\n" not in text


# ---- failures --------------------------------------------------------------------------------------------------------


def test_a_failure_after_a_part_is_done() -> None:
    done = Done()
    done.plan = ["first", "second"]
    failure = Failure("server_error", "not today", sqlstate="P0001", statement="second", detail="d", hint="h")
    assert done.of(failure) is failure
    done.add("b", [DropOwned(OLD, "", destroyed=("t",), destroyed_count=1, database="b")], ["first"], ["w"])
    assert done.warnings == ["DROP OWNED BY old in database b destroys what nobody inherits: t", "w"]
    result = done.of(failure).masked(str.upper).as_result()
    assert {name: result[name] for name in ("error_code", "databases", "sql", "plan", "cause", "sqlstate", "hint")} == {
        "error_code": "partially_applied",
        "databases": ["b"],
        "sql": ["first"],
        "plan": ["first", "second"],
        "cause": "server_error",
        "sqlstate": "P0001",
        "hint": "H",
    }
    assert result["problems"][0]["message"] == "NOT TODAY"


def test_a_fault_after_a_part_is_done_does_not_say_that_nothing_was() -> None:
    assert "Nothing was applied" in internal(ValueError()).message
    assert "applied" not in internal(ValueError(), "").message


# ---- connections -----------------------------------------------------------------------------------------------------


def test_a_place_wins_over_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg")
    asked: List[Dict[str, Any]] = []

    def refuse(**parameters: Any) -> None:
        asked.append(parameters)
        raise psycopg.OperationalError("no such\tdatabase\n")

    monkeypatch.setattr(psycopg, "connect", refuse)
    monkeypatch.setattr(connection, "clean_environment", lambda _environment: None)
    options = {"login_db": "app", "login_host": "one,two", "connect_params": {"dbname": "app", "service": "s"}}
    with pytest.raises(Failure) as caught:
        connect(options, place={"dbname": "b", "host": "two", "port": 5433})
    assert caught.value.message == "no such database"
    assert {name: asked[0][name] for name in ("dbname", "host", "port", "service")} == {
        "dbname": "b",
        "host": "two",
        "port": 5433,
        "service": "s",
    }


def test_the_place_of_a_connection() -> None:
    tcp: Any = SimpleNamespace(info=SimpleNamespace(host="db", hostaddr="10.0.0.1", port=5433))
    local: Any = SimpleNamespace(info=SimpleNamespace(host="/run", hostaddr="", port=5432))
    assert place_of(tcp) == {"host": "db", "hostaddr": "10.0.0.1", "port": 5433}
    assert place_of(local) == {"host": "/run", "port": 5432}
