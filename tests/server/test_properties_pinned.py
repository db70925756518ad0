# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the properties found, and what they seldom meet, in its smallest form."""

from __future__ import annotations

from harness import Database


def test_keep_does_not_stop_a_rule_that_takes_from_an_undeclared_predefined_role(db: Database) -> None:
    db.sql("CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO pg_monitor")
    rule = "grants: [{role: pg_monitor, privileges: [USAGE], object: {type: schema, name: s}, ensure: absent}]"
    result = db.converge(rule, undeclared_grantees="keep")
    assert result.sql == ['REVOKE USAGE ON SCHEMA "s" FROM "pg_monitor"']


def test_every_pattern_of_scope_schemas_counts(db: Database) -> None:
    db.sql("CREATE ROLE stranger; CREATE SCHEMA s1; CREATE SCHEMA s2; GRANT USAGE ON SCHEMA s1, s2 TO stranger")
    result = db.converge("scope: {schemas: [other_*, s1, s2]}", undeclared_grantees="revoke")
    assert set(result.summary["managed"]) == {"schema s1", "schema s2"}
    assert result.summary["grants"]["revoked"] == 2


def test_a_parenthesis_in_a_quoted_argument_name_opens_no_argument_list(db: Database) -> None:
    db.sql("""CREATE SCHEMA s; CREATE FUNCTION s.f("x(" int) RETURNS int LANGUAGE sql AS 'SELECT 1'""")
    rule = """
roles: [{name: r}]
grants: [{role: r, privileges: [EXECUTE], object: {type: function, schema: s, name: 'f("x(" integer)'}}]
"""
    db.converge(rule)
    assert "r=X/postgres" in (db.acl("s.f(int)", "function") or set())


def test_a_routine_name_with_a_quote_beside_quoted_arguments(db: Database) -> None:
    db.sql("""CREATE SCHEMA s; CREATE FUNCTION s."q""q"("A b" int) RETURNS int LANGUAGE sql AS 'SELECT 1'""")
    db.converge(
        """
roles: [{name: r}]
grants: [{role: r, privileges: [EXECUTE], object: {type: function, schema: s, name: 'q"q("A b" integer)'}}]
"""
    )
    assert "r=X/postgres" in (db.acl('s."q""q"(int)', "function") or set())


def test_an_odd_type_of_the_routines_own_schema_needs_no_schema(db: Database) -> None:
    db.sql("""CREATE SCHEMA s; CREATE TYPE s."odd type, (x" AS ENUM ('x')""")
    db.sql("""CREATE FUNCTION s.f(s."odd type, (x"[]) RETURNS int LANGUAGE sql AS 'SELECT 1'""")
    db.converge(
        """
roles: [{name: r}]
grants: [{role: r, privileges: [EXECUTE], object: {type: function, schema: s, name: 'f("odd type, (x"[])'}}]
"""
    )
    assert "r=X/postgres" in (db.acl('s.f(s."odd type, (x"[])', "function") or set())


def test_a_column_privilege_survives_the_revoke_on_its_table(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int, b int)")
    db.sql(
        "GRANT SELECT, INSERT ON s.t TO r; GRANT SELECT (a) ON s.t TO r; GRANT INSERT (b) ON s.t TO r WITH GRANT OPTION"
    )
    db.converge(
        """
roles: [{name: r}]
schemas: [{name: s}]
grants:
  - {role: r, privileges: [SELECT], columns: [a], object: {type: table, schema: s, name: t}}
  - {role: r, privileges: [INSERT], columns: [b], with_grant_option: true, object: {type: table, schema: s, name: t}}
"""
    )
    assert "r=" not in str(db.acl("s.t"))
    assert db.column_acl("s.t", "a") == {"r=r/postgres"}
    assert db.column_acl("s.t", "b") == {"r=a*/postgres"}


def test_a_global_default_privilege_permits_its_entry_on_what_exists(db: Database) -> None:
    db.sql("CREATE ROLE o; CREATE ROLE r; CREATE SCHEMA s; CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO o")
    db.sql("GRANT SELECT, DELETE ON s.t TO r")
    db.converge(
        """
roles: [{name: o}, {name: r}]
schemas: [{name: s}]
default_privileges: [{owner: o, grant: [{role: r, privileges: [SELECT], on_type: table}]}]
"""
    )
    assert "r=r/o" in (db.acl("s.t") or set())


def test_the_executors_own_memberships_stay(db: Database) -> None:
    db.sql(
        "CREATE ROLE su SUPERUSER LOGIN; CREATE ROLE g; CREATE ROLE m; GRANT g TO su WITH ADMIN OPTION; GRANT g TO m"
    )
    result = db.converge("roles: [{name: g}]", login_user="su")
    assert db.members("g") == {"su"}
    assert [item["role"] for item in result.held(reason="self_protection")] == ["su"]
    db.converge(
        "roles: [{name: g}]\nassume_roles: [su]\nmemberships: [{role: g, members: [{name: su}]}]", login_user="su"
    )
    assert {edge[3] for edge in db.edges("g")} == {True}


def test_a_global_rule_manages_its_layer_without_any_managed_schema(db: Database) -> None:
    db.sql("CREATE ROLE o; CREATE ROLE r; ALTER DEFAULT PRIVILEGES FOR ROLE o GRANT TRUNCATE ON TABLES TO r")
    db.converge(
        """
roles: [{name: o}, {name: r}]
default_privileges: [{owner: o, grant: [{role: r, privileges: [SELECT], on_type: table}]}]
"""
    )
    assert "r=r/o" in db.defaults()["o", None, "r"]


def test_a_grantor_that_owns_the_schema_and_took_its_own_usage_away(db: Database) -> None:
    db.sql("CREATE ROLE o; CREATE ROLE d; CREATE ROLE r; CREATE SCHEMA s AUTHORIZATION d; CREATE TABLE s.t (a int)")
    db.sql("GRANT SELECT ON s.t TO d WITH GRANT OPTION; SET ROLE d; GRANT SELECT ON s.t TO r; RESET ROLE")
    db.sql("REVOKE USAGE ON SCHEMA s FROM d")
    db.converge("roles: [{name: d}, {name: r}]\nschemas: [{name: s}]")
    assert "r=" not in str(db.acl("s.t"))
    assert db.acl("s", "schema") == {"d=C/d"}


def test_an_ignored_role_is_not_named_to_keep_what_hangs_on_another(db: Database) -> None:
    db.sql(
        "CREATE ROLE d; CREATE ROLE ign_x; CREATE SCHEMA s; CREATE TABLE s.t (a int); GRANT USAGE ON SCHEMA s TO PUBLIC"
    )
    db.sql("GRANT SELECT ON s.t TO d WITH GRANT OPTION; SET ROLE d; GRANT SELECT ON s.t TO ign_x; RESET ROLE")
    db.fails(
        "roles: [{name: d}]\nschemas: [{name: s}]\nscope: {ignore_roles: [ign_*]}",
        "dependent_privileges",
        "ign_x",
        "s.t",
        "scope.ignore_roles",
    )


def test_a_routine_in_a_schema_that_the_executor_may_not_use(db: Database) -> None:
    """Its argument types are found all the same: it is silent where nothing is to be done."""
    db.sql(
        "CREATE ROLE plain LOGIN; CREATE ROLE r; CREATE SCHEMA s; CREATE FUNCTION s.f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'"
    )
    db.sql("GRANT EXECUTE ON FUNCTION s.f TO r; CREATE FUNCTION s.g(int) RETURNS int LANGUAGE sql AS 'SELECT 1'")
    rule = "{{role: r, privileges: [EXECUTE], object: {{type: function, schema: s, name: {}(int4)}}}}"
    db.silent(f"assume_roles: [r]\ngrants: [{rule.format('f')}]", login_user="plain")
    db.fails(
        f"assume_roles: [r]\ngrants: [{rule.format('g')}]", "insufficient_privilege", "g(integer)", login_user="plain"
    )


def test_a_column_given_on_by_a_holder_of_the_tables_option_whose_columns_option_goes(db: Database) -> None:
    db.sql("CREATE ROLE d; CREATE ROLE x; CREATE SCHEMA s; CREATE TABLE s.t (a int); GRANT USAGE ON SCHEMA s TO PUBLIC")
    db.sql("GRANT SELECT ON s.t TO d WITH GRANT OPTION; GRANT SELECT (a) ON s.t TO d WITH GRANT OPTION")
    db.sql("SET ROLE d; GRANT SELECT (a) ON s.t TO x; RESET ROLE")
    db.converge(
        """
roles: [{name: d}, {name: x}]
schemas: [{name: s}]
grants:
  - {role: d, privileges: [SELECT], with_grant_option: true, object: {type: table, schema: s, name: t}}
  - {role: x, privileges: [SELECT], columns: [a], object: {type: table, schema: s, name: t}}
"""
    )
    assert "d=r*/postgres" in (db.acl("s.t") or ())
    assert db.column_acl("s.t", "a") == {"x=r/postgres"}


def test_what_hung_in_the_air_before_stays_as_it_was(db: Database) -> None:
    """d holds no option any more and is a superuser by now: what it gave and is declared is nothing to touch."""
    db.sql(
        "CREATE ROLE o; CREATE ROLE d; CREATE ROLE r; CREATE ROLE x; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO PUBLIC"
    )
    db.sql(
        "CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO o; GRANT SELECT ON s.t TO d WITH GRANT OPTION; GRANT SELECT ON s.t TO x"
    )
    db.sql("SET ROLE d; GRANT SELECT ON s.t TO r; RESET ROLE; ALTER ROLE d SUPERUSER; REVOKE SELECT ON s.t FROM d")
    assert "r=r/d" in (db.acl("s.t") or ())
    rule = "{role: r, privileges: [SELECT], object: {type: table, schema: s, name: t}}"
    db.converge(
        f"roles: [{{name: r}}, {{name: d, external: true}}, {{name: x}}]\nschemas: [{{name: s}}]\ngrants: [{rule}]"
    )
    assert db.acl("s.t") == {f"o={db.full}/o", "r=r/d"}


def test_a_grantor_without_option_that_inherits_one_is_out_of_reach_of_cascade(db: Database) -> None:
    db.sql(
        "CREATE ROLE o; CREATE ROLE d; CREATE ROLE g; CREATE ROLE r; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO PUBLIC"
    )
    db.sql("CREATE TABLE s.t (a int); ALTER TABLE s.t OWNER TO o; GRANT SELECT ON s.t TO d, g WITH GRANT OPTION")
    db.sql("SET ROLE d; GRANT SELECT ON s.t TO r; RESET ROLE; GRANT g TO d; REVOKE SELECT ON s.t FROM d")
    assert "r=r/d" in (db.acl("s.t") or ())
    rule = "{role: g, privileges: [SELECT], with_grant_option: true, object: {type: table, schema: s, name: t}}"
    db.fails(
        "roles: [{name: r}, {name: d}, {name: g}]\nschemas: [{name: s}]\nmemberships: [{role: g, members: [{name: d}]}]\n"
        f"grants: [{rule}]",
        "dependent_privileges",
        "r",
        "d",
        "s.t",
    )
