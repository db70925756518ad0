# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries that others than the owner gave: every one goes in one run, in its grantor's name, leaf first."""

from __future__ import annotations

import re

import pytest
from harness import Database, Result

ROLES = "o", "d", "e", "f", "r", "x"


def setup(db: Database, *, usage: bool = True) -> None:
    """s.t and what else belongs to o; every role may use the schema."""
    db.sql("; ".join(f"CREATE ROLE {role}" for role in ROLES), "CREATE SCHEMA s AUTHORIZATION o")
    db.sql("SET ROLE o; CREATE TABLE s.t (a int, b int); RESET ROLE")
    if usage:
        db.sql("GRANT USAGE ON SCHEMA s TO PUBLIC")


def give(db: Database, grantor: str, text: str) -> None:
    db.sql(f"SET ROLE {grantor}; GRANT {text}; RESET ROLE")


def manifest(*rules: str, declared: str = "o d e f r x") -> str:
    roles = ", ".join(f"{{name: {role}}}" for role in declared.split())
    return f"roles: [{roles}]\nschemas: [{{name: s}}]\n" + ("grants:\n" + "".join(rules) if rules else "")


def rule(
    role: str, privileges: str = "SELECT", more: str = "", target: str = "{type: table, schema: s, name: t}"
) -> str:
    return f"  - {{role: {role}, privileges: [{privileges}], object: {target}{more}}}\n"


OPTION = ", with_grant_option: true"


def own(db: Database) -> set[str]:
    return {f"o={db.full}/o"}


def steps(result: Result) -> list[tuple[str, str]]:
    """(role, statement) of every GRANT and REVOKE."""
    role = "NONE"
    found = []
    for statement in result.sql:
        match = re.match(r'SET LOCAL ROLE "?([^"]+?)"?$', statement)
        if match:
            role = match.group(1)
        elif re.match("GRANT|REVOKE", statement):
            found.append((role, statement.replace('"', "")))
    return found


def revokes(result: Result) -> list[tuple[str, str]]:
    """(role that sends it, grantee) of every REVOKE."""
    return [(role, text.rsplit("FROM ", 1)[1].split()[0]) for role, text in steps(result) if text.startswith("REVOKE")]


# Several grantors


def test_a_surplus_privilege_of_several_grantors_goes_in_one_run(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT ON s.t TO d, e WITH GRANT OPTION")
    give(db, "o", "SELECT ON s.t TO r")
    give(db, "d", "SELECT ON s.t TO r")
    give(db, "e", "SELECT ON s.t TO r")
    assert {"r=r/o", "r=r/d", "r=r/e"} <= (db.acl("s.t") or set())
    result = db.converge(manifest(rule("d", more=OPTION), rule("e", more=OPTION)))
    assert db.acl("s.t") == own(db) | {"d=r*/o", "e=r*/o"}
    assert {("d", "r"), ("e", "r")} <= set(revokes(result))
    assert result.summary["grants"] == {"granted": 0, "revoked": 3}


def test_a_chain_goes_leaf_first(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO e WITH GRANT OPTION")
    give(db, "e", "SELECT ON s.t TO f WITH GRANT OPTION")
    give(db, "f", "SELECT ON s.t TO r")
    result = db.converge(manifest())
    assert db.acl("s.t") == own(db)
    assert [grantee for _role, grantee in revokes(result)] == ["r", "f", "e", "d"]
    assert not result.matching("CASCADE")


def test_a_chain_whose_leaf_is_declared(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO e WITH GRANT OPTION")
    give(db, "e", "SELECT ON s.t TO r")
    result = db.converge(manifest(rule("r")))
    assert db.acl("s.t") == own(db) | {"r=r/o"}
    texts = [text for _role, text in steps(result)]
    assert texts[0].startswith("GRANT SELECT ON"), "r is granted by the owner before its grantor goes"


def test_a_chain_whose_middle_is_declared(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO e WITH GRANT OPTION")
    give(db, "e", "SELECT ON s.t TO r")
    db.converge(manifest(rule("e", more=OPTION), rule("r")))
    # e holds it from the owner now; what e gave may stay or be the owner's too.
    assert db.acl("s.t") in (own(db) | {"e=r*/o", "r=r/e"}, own(db) | {"e=r*/o", "r=r/o"})


def test_a_circle_of_grants(db: Database) -> None:
    """d gave to e, e gave to d: what o gave holds both up."""
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO e WITH GRANT OPTION")
    give(db, "o", "SELECT ON s.t TO e WITH GRANT OPTION")
    give(db, "e", "SELECT ON s.t TO f WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO f WITH GRANT OPTION")
    give(db, "f", "SELECT ON s.t TO r")
    db.converge(manifest(rule("e", more=OPTION)))
    assert "e=r*/o" in (db.acl("s.t") or ())
    assert db.acl("s.t") in (own(db) | {"e=r*/o"}, own(db) | {"e=r*/o", "e=r*/d"})
    db.converge(manifest())
    assert db.acl("s.t") == own(db)


def test_several_privileges_with_different_grantors(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT, INSERT ON s.t TO d WITH GRANT OPTION")
    give(db, "o", "UPDATE ON s.t TO e WITH GRANT OPTION")
    give(db, "d", "SELECT, INSERT ON s.t TO r")
    give(db, "e", "UPDATE ON s.t TO r WITH GRANT OPTION")
    give(db, "r", "UPDATE ON s.t TO x")
    db.converge(manifest(rule("d", "SELECT", OPTION), rule("r", "INSERT"), rule("x", "UPDATE")))
    assert db.acl("s.t") == own(db) | {"d=r*/o", "r=a/o", "x=w/o"}


def test_privileges_go_before_schema_usage_and_memberships(db: Database) -> None:
    """d can only revoke while it may still use the schema."""
    setup(db, usage=False)
    db.sql("GRANT USAGE ON SCHEMA s TO d")
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO r")
    result = db.converge(manifest())
    assert db.acl("s.t") == own(db)
    assert db.acl("s", "schema") == {"o=UC/o"}
    assert [text for _role, text in steps(result)][-1].startswith("REVOKE USAGE ON SCHEMA")


def test_a_grantor_without_usage_on_the_schema(db: Database) -> None:
    """It is lent USAGE for that moment."""
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO r")
    db.sql("REVOKE USAGE ON SCHEMA s FROM PUBLIC")
    db.converge(manifest(rule("d", more=OPTION)))
    assert db.acl("s.t") == own(db) | {"d=r*/o"}
    assert db.acl("s", "schema") == {"o=UC/o"}


def test_a_grantor_whose_option_is_gone(db: Database) -> None:
    """As a superuser may leave it: r holds from d, who holds no option any more."""
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO r")
    db.sql(f"UPDATE pg_class SET relacl = '{{o={db.full}/o,d=r/o,r=r/d}}' WHERE oid = 's.t'::regclass")
    db.converge(manifest(rule("d")))
    assert db.acl("s.t") == own(db) | {"d=r/o"}


def test_a_grantor_that_holds_nothing_any_more(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO r")
    db.sql(f"UPDATE pg_class SET relacl = '{{o={db.full}/o,r=r/d}}' WHERE oid = 's.t'::regclass")
    db.converge(manifest())
    assert db.acl("s.t") == own(db)


def test_a_superuser_as_grantor(db: Database) -> None:
    """A superuser's revoke acts as the owner, so nothing reaches its entry: said before the first statement."""
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO r")
    db.sql("ALTER ROLE d SUPERUSER")
    text = manifest(rule("d", more=OPTION)).replace("{name: d}", "{name: d, superuser: true}")
    db.fails(text, "dependent_privileges", "d", "r", "s.t")
    db.sql("ALTER ROLE d NOSUPERUSER")
    db.converge(manifest(rule("d", more=OPTION)))
    assert db.acl("s.t") == own(db) | {"d=r*/o"}


def test_public_by_another_grantor(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT, INSERT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT, INSERT ON s.t TO PUBLIC")
    give(db, "o", "SELECT ON s.t TO PUBLIC")
    # Nothing names it: it stays.
    db.silent(manifest(rule("d", "SELECT, INSERT", OPTION)))
    db.converge(manifest(rule("d", "SELECT, INSERT", OPTION), rule("PUBLIC", "SELECT", ", ensure: absent")))
    assert db.acl("s.t") == own(db) | {"d=ar*/o".replace("ar*", "a*r*"), "=a/d"}
    # d goes; PUBLIC's entry is never managed, so it is kept through the owner.
    db.converge(manifest())
    assert db.acl("s.t") == own(db) | {"=a/o"}


def test_public_that_is_declared_and_given_by_another(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO PUBLIC")
    db.converge(manifest(rule("PUBLIC")))
    assert db.acl("s.t") == own(db) | {"=r/o"}


def test_the_override_keeps_what_others_gave(db: Database) -> None:
    """One item per grantor; when a grantor goes, the owner gives it on."""
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO x")
    give(db, "o", "SELECT ON s.t TO x")
    keeps = manifest(rule("d", more=OPTION)).replace("{name: x}", "{name: x, privilege_reconciliation: additive}")
    result = db.silent(keeps)
    assert sorted(item["grantor"] for item in result.suppressed_revokes) == ["d", "o"]
    assert result.suppressed_revoke_count == 2
    assert {item["owner"] for item in result.suppressed_revokes} == {"o"}
    db.converge(keeps.partition("grants:")[0])
    assert db.acl("s.t") == own(db) | {"x=r/o"}


def test_the_override_on_a_grantor(db: Database) -> None:
    """It keeps its option, and what it gave to others converges."""
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO r")
    result = db.converge(manifest().replace("{name: d}", "{name: d, privilege_reconciliation: additive}"))
    assert db.acl("s.t") == own(db) | {"d=r*/o"}
    assert result.suppressed_revoke_count == 1


def test_suppressed_option_that_only_the_override_holds_up(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO x WITH GRANT OPTION")
    result = db.converge(manifest(rule("x")).replace("{name: x}", "{name: x, privilege_reconciliation: additive}"))
    assert db.acl("s.t") == own(db) | {"x=r*/o"}
    assert [item["kind"] for item in result.suppressed_revokes] == ["grant_option"]


# Columns


def test_a_column_given_on_through_the_tables_option(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT (a) ON s.t TO r")
    assert db.column_acl("s.t", "a") == {"r=r/d"}
    result = db.converge(manifest(rule("d", more=OPTION)))
    assert not db.column_acl("s.t", "a")
    assert revokes(result) == [("d", "r")]


def test_a_declared_column_given_on_through_the_tables_option(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT (a, b) ON s.t TO r")
    db.converge(manifest(rule("r", more=", columns: [a]")))
    assert db.acl("s.t") == own(db)
    assert db.column_acl("s.t", "a") == {"r=r/o"}
    assert not db.column_acl("s.t", "b")


def test_a_surplus_column_goes_with_the_tables_option(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT (a, b) ON s.t TO r")
    db.converge(manifest(rule("d")))
    assert db.acl("s.t") == own(db) | {"d=r/o"}
    assert not db.column_acl("s.t", "a")


def test_columns_given_on_by_several(db: Database) -> None:
    setup(db)
    give(db, "o", "SELECT (a), UPDATE (b) ON s.t TO d, e WITH GRANT OPTION")
    give(db, "d", "SELECT (a) ON s.t TO r WITH GRANT OPTION")
    give(db, "e", "UPDATE (b), SELECT (a) ON s.t TO r")
    give(db, "r", "SELECT (a) ON s.t TO x")
    db.converge(manifest(rule("r", "UPDATE", ", columns: [b]"), rule("e", "UPDATE", ", columns: [b]" + OPTION)))
    assert not db.column_acl("s.t", "a")
    assert db.column_acl("s.t", "b") == {"e=w*/o", "r=w/e"}


# Every kind


@pytest.mark.parametrize(
    ("setup_sql", "on", "target", "word", "query"),
    [
        (
            "CREATE SEQUENCE s.o",
            "SEQUENCE s.o",
            "{type: sequence, schema: s, name: o}",
            "USAGE",
            "SELECT relacl::text[] FROM pg_class WHERE oid = 's.o'::regclass",
        ),
        (
            "CREATE FUNCTION s.o(int) RETURNS int LANGUAGE sql AS 'SELECT 1'; REVOKE ALL ON FUNCTION s.o FROM PUBLIC",
            "FUNCTION s.o(int)",
            "{type: function, schema: s, name: o(int)}",
            "EXECUTE",
            "SELECT proacl::text[] FROM pg_proc WHERE proname = 'o'",
        ),
        (
            "CREATE PROCEDURE s.o(int) LANGUAGE sql AS 'SELECT 1'; REVOKE ALL ON PROCEDURE s.o FROM PUBLIC",
            "PROCEDURE s.o(int)",
            "{type: function, schema: s, name: o(int)}",
            "EXECUTE",
            "SELECT proacl::text[] FROM pg_proc WHERE proname = 'o'",
        ),
        (
            "CREATE TYPE s.o AS ENUM (); REVOKE ALL ON TYPE s.o FROM PUBLIC",
            "TYPE s.o",
            "{type: type, schema: s, name: o}",
            "USAGE",
            "SELECT typacl::text[] FROM pg_type WHERE oid = 's.o'::regtype",
        ),
        ("CREATE SCHEMA o", "SCHEMA o", "{type: schema, name: o}", "USAGE", "SELECT nspacl::text[] FROM pg_namespace WHERE nspname = 'o'"),
        (
            "SELECT lo_create(77)",
            "LARGE OBJECT 77",
            "{type: large_object, name: '77'}",
            "SELECT",
            "SELECT lomacl::text[] FROM pg_largeobject_metadata",
        ),
    ],
    ids=["sequence", "function", "procedure", "type", "schema", "large_object"],
)  # fmt: skip
def test_grantors_on_other_kinds(db: Database, setup_sql: str, on: str, target: str, word: str, query: str) -> None:
    setup(db)
    db.sql("GRANT CREATE ON DATABASE " + db.name + " TO o")
    for statement in ["SET ROLE o", *setup_sql.split("; "), "RESET ROLE"]:
        db.sql(statement)
    give(db, "o", f"{word} ON {on} TO d WITH GRANT OPTION")
    give(db, "d", f"{word} ON {on} TO r, x")
    give(db, "d", f"{word} ON {on} TO e WITH GRANT OPTION")
    give(db, "e", f"{word} ON {on} TO f")
    db.converge(manifest(rule("r", word, target=target), rule("f", word, target=target)))
    entries = set(db.value(query))
    assert {entry for entry in entries if not entry.startswith("o=")} == {
        f"{role}={'r' if word == 'SELECT' else word[0] if word != 'EXECUTE' else 'X'}/o" for role in ("r", "f")
    }


# Ordinary executors


def ordinary(db: Database, *, joins: str = "") -> None:
    """The executor ex is a member of the owner o, and of these."""
    setup(db)
    db.sql("CREATE ROLE ex LOGIN; GRANT o TO ex", *(f"GRANT {group} TO ex" for group in joins.split()))


ASSUMED = "assume_roles: [o, d, e, f, r, x]\nschemas: [{name: s}]\n"


def assumed(*rules: str) -> str:
    return ASSUMED + ("grants:\n" + "".join(rules) if rules else "")


def test_the_owners_member_acts_for_it(db: Database) -> None:
    ordinary(db)
    db.converge(assumed(rule("r")), login_user="ex")
    assert db.acl("s.t") == own(db) | {"r=r/o"}
    db.converge(assumed(), login_user="ex")
    assert db.acl("s.t") == own(db)


def test_the_owners_member_that_does_not_inherit(db: Database) -> None:
    """It sets the owner's role for the statement."""
    setup(db)
    db.sql("CREATE ROLE ex LOGIN NOINHERIT; GRANT o TO ex")
    result = db.converge(assumed(rule("r")), login_user="ex")
    assert db.acl("s.t") == own(db) | {"r=r/o"}
    assert [role for role, _text in steps(result)] == ["o"]


def test_an_executor_that_may_not_become_the_grantor(db: Database) -> None:
    """As owner: REVOKE GRANT OPTION FOR ... CASCADE, then again what stays."""
    ordinary(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO r, x")
    result = db.converge(assumed(rule("d", more=OPTION), rule("x")), login_user="ex")
    assert "d=r*/o" in (db.acl("s.t") or ())
    assert db.acl("s.t") == own(db) | {"d=r*/o", "x=r/o"}
    assert result.matching("CASCADE")


def test_an_executor_that_may_not_become_a_grantor_that_goes(db: Database) -> None:
    ordinary(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO r WITH GRANT OPTION")
    give(db, "r", "SELECT ON s.t TO x")
    db.converge(assumed(rule("x")), login_user="ex")
    assert db.acl("s.t") == own(db) | {"x=r/o"}


def test_an_executor_that_may_become_the_grantor(db: Database) -> None:
    ordinary(db, joins="d")
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO r")
    result = db.converge(assumed(rule("d", more=OPTION)), login_user="ex")
    assert db.acl("s.t") == own(db) | {"d=r*/o"}
    assert revokes(result) == [("d", "r")]


def test_grantors_out_of_reach_that_hold_the_option_from_several(db: Database) -> None:
    """As long as r has the option from e, no CASCADE from r reaches x; and r is given it by the owner to keep it."""
    ordinary(db)
    give(db, "o", "SELECT ON s.t TO d, e WITH GRANT OPTION")
    give(db, "e", "SELECT ON s.t TO d")
    give(db, "e", "SELECT ON s.t TO r WITH GRANT OPTION")
    give(db, "r", "SELECT ON s.t TO x WITH GRANT OPTION")
    db.converge(assumed(rule("f"), rule("r", more=OPTION)), login_user="ex")
    assert db.acl("s.t") == own(db) | {"f=r/o", "r=r*/o"}


def test_grantors_out_of_reach_one_below_the_other(db: Database) -> None:
    """d and e both gave to f; the option of e stays, and comes back after the CASCADE."""
    ordinary(db)
    give(db, "o", "SELECT ON s.t TO d, e WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO e, f WITH GRANT OPTION")
    give(db, "e", "SELECT ON s.t TO f WITH GRANT OPTION")
    give(db, "f", "SELECT ON s.t TO r")
    db.converge(assumed(rule("e", more=OPTION)), login_user="ex")
    assert db.acl("s.t") == own(db) | {"e=r*/o"}


def test_columns_of_grantors_out_of_reach_from_several(db: Database) -> None:
    ordinary(db)
    give(db, "o", "SELECT (a), UPDATE (b) ON s.t TO d, e WITH GRANT OPTION")
    give(db, "d", "SELECT (a) ON s.t TO r WITH GRANT OPTION")
    give(db, "e", "UPDATE (b), SELECT (a) ON s.t TO r")
    give(db, "r", "SELECT (a) ON s.t TO x")
    rules = (rule("r", "UPDATE", ", columns: [b]"), rule("e", "UPDATE", ", columns: [b]" + OPTION))
    db.converge(assumed(*rules), login_user="ex")
    assert not db.column_acl("s.t", "a")
    assert db.column_acl("s.t", "b") == {"e=w*/o", "r=w/e"}


@pytest.mark.parametrize("kept", ["", OPTION])
def test_a_column_whose_grantor_out_of_reach_loses_the_table(db: Database, kept: str) -> None:
    """The table's REVOKE takes the column along, the CASCADE takes its option: both are for a moment."""
    ordinary(db)
    give(db, "o", "SELECT ON s.t TO d; GRANT SELECT (a) ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT (a) ON s.t TO r")
    db.converge(assumed(rule("d", more=", columns: [a]" + kept), rule("r", more=", columns: [a]")), login_user="ex")
    assert db.acl("s.t") == own(db)
    assert db.column_acl("s.t", "a") == {f"d=r{'*' if kept else ''}/o", "r=r/o"}


def test_grantors_out_of_reach_in_a_circle(db: Database) -> None:
    """e and x gave each other the option: the owner's CASCADE finds that both still have it, and leaves all of it."""
    ordinary(db)
    give(db, "o", "SELECT ON s.t TO e, x WITH GRANT OPTION")
    give(db, "x", "SELECT ON s.t TO e WITH GRANT OPTION")
    give(db, "e", "SELECT ON s.t TO x WITH GRANT OPTION")
    give(db, "x", "SELECT ON s.t TO d")
    failed = db.fails(assumed(), "dependent_privileges", "no statement reaches it", login_user="ex")
    assert {problem["role"] for problem in failed.problems} == {"d", "e", "x"}
    for problem in failed.problems:
        db.sql(problem["hint"])
    db.converge(assumed(), login_user="ex")
    assert db.acl("s.t") == own(db)


def test_columns_by_a_table_grantor_that_the_executor_may_not_become(db: Database) -> None:
    """The table's option lends none on the column's own entry, so the grantor gets one for the CASCADE."""
    ordinary(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT (a) ON s.t TO r")
    give(db, "d", "SELECT (a, b) ON s.t TO x")
    db.converge(assumed(rule("d", more=OPTION), rule("x", more=", columns: [a]")), login_user="ex")
    assert db.acl("s.t") == own(db) | {"d=r*/o"}
    assert db.column_acl("s.t", "a") in ({"x=r/o"}, {"x=r/d"})
    assert not db.column_acl("s.t", "b")
    db.converge(assumed(rule("x", more=", columns: [a]")), login_user="ex")
    assert db.acl("s.t") == own(db)
    assert db.column_acl("s.t", "a") == {"x=r/o"}


@pytest.mark.parametrize("other", ["d", "new"])
def test_an_executor_that_inherits_the_owner_and_a_holder_of_the_option(db: Database, other: str) -> None:
    """PostgreSQL takes the first such role as grantor, whichever that is: the owner's role is set to be sure."""
    # The owner is further away than d, which is therefore found first.
    setup(db)
    db.sql("CREATE ROLE middle; GRANT o TO middle; CREATE ROLE ex LOGIN; GRANT middle, d TO ex")
    if other == "d":
        give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "o", "SELECT ON s.t TO r, e")
    rules = [rule("x"), rule("e")]
    if other == "new":
        # It gets the option in this very run.
        rules.append(rule("d", more=OPTION))
    db.converge(assumed(*rules), login_user="ex")
    kept = {"d=r*/o"} if other == "new" else set()
    assert db.acl("s.t") == own(db) | {"x=r/o", "e=r/o"} | kept


def test_a_lost_option_and_an_executor_that_only_owns(db: Database) -> None:
    ordinary(db)
    db.sql(f"UPDATE pg_class SET relacl = '{{o={db.full}/o,d=r/o,r=r/d}}' WHERE oid = 's.t'::regclass")
    db.converge(assumed(rule("d")), login_user="ex")
    assert db.acl("s.t") == own(db) | {"d=r/o"}


def test_a_grantor_that_is_a_member_of_the_owner(db: Database) -> None:
    """CASCADE does not reach what an inheriting member of the owner gave before it became one."""
    ordinary(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO r")
    db.sql("GRANT o TO d")
    before = db.acl("s.t")
    assert "r=r/d" in (before or ())
    db.fails(assumed(rule("d", more=OPTION)), "dependent_privileges", "d", "r", "s.t", login_user="ex")
    # In its own name a superuser's run does it, or says the same.
    text = manifest(rule("d", more=OPTION)) + "memberships: [{role: o, members: [{name: d}, {name: ex}]}]\n"
    text = text.replace("{name: x}", "{name: x}, {name: ex, login: true}")
    result = db.reconcile(text)
    if result.failed:
        assert result.error_code == "dependent_privileges"
        assert db.acl("s.t") == before
    else:
        assert db.acl("s.t") == own(db) | {"d=r*/o"}
        db.silent(text)


def test_session_role_is_where_it_goes_back_to(db: Database) -> None:
    """After a statement in a grantor's name the next one runs as session_role again."""
    setup(db)
    db.sql("CREATE ROLE boss SUPERUSER; CREATE ROLE ex LOGIN; GRANT boss TO ex; GRANT d, o TO ex")
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO r")
    give(db, "o", "INSERT ON s.t TO r")
    result = db.reconcile(assumed(rule("d", more=OPTION)), login_user="ex", session_role="boss")
    assert not result.failed, result
    assert db.acl("s.t") == own(db) | {"d=r*/o"}
    roles = [text for text in result.sql if text.startswith("SET LOCAL ROLE")]
    assert [text.replace('"', "") for text in roles] == ["SET LOCAL ROLE d", "SET LOCAL ROLE boss"]


def test_an_executor_with_a_grant_option_only(db: Database) -> None:
    """It may pass on what it has with option; its entry bears its name."""
    setup(db)
    db.sql("CREATE ROLE ex LOGIN")
    give(db, "o", "SELECT ON s.t TO ex WITH GRANT OPTION")
    keep = rule("ex", more=OPTION)
    text = assumed(keep, rule("r")).replace("[o,", "[ex, o,")
    db.converge(text, login_user="ex")
    assert db.acl("s.t") == own(db) | {"ex=r*/o", "r=r/ex"}
    # What it gave it may take.
    db.converge(text.replace(rule("r"), ""), login_user="ex")
    assert db.acl("s.t") == own(db) | {"ex=r*/o"}
    # More it may not give, nor take what the owner gave: named with its owner.
    db.fails(
        assumed(keep, rule("r", "INSERT")).replace("[o,", "[ex, o,"),
        "insufficient_privilege",
        "s.t",
        "o",
        login_user="ex",
    )
    give(db, "o", "SELECT ON s.t TO x")
    db.fails(assumed(keep).replace("[o,", "[ex, o,"), "insufficient_privilege", "s.t", "o", login_user="ex")


def test_a_dropped_grantor(db: Database) -> None:
    """Its OID stands in the ACL: reported or named in a failure, never a crash."""
    setup(db)
    give(db, "o", "SELECT ON s.t TO d WITH GRANT OPTION")
    give(db, "d", "SELECT ON s.t TO r")
    oid = db.value("SELECT 'd'::regrole::oid")
    db.sql(f"DELETE FROM pg_shdepend WHERE refobjid = {oid}; DROP ROLE d")
    before = db.snapshot()
    result = db.reconcile(manifest(rule("r"), declared="o e f r x"))
    if result.failed:
        assert result.error_code == "dependent_privileges"
        assert db.snapshot() == before
    else:
        db.silent(manifest(rule("r"), declared="o e f r x"))
