# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases FUN: functions, procedures and aggregates."""

from __future__ import annotations

import pytest
from harness import Database

R = "roles: [{name: r}]\nschemas: [{name: s}]\n"
SQL = "RETURNS int LANGUAGE sql AS 'SELECT 1'"
OWN = "postgres=X/postgres"


def execute(*names: str, role: str = "r", schema: str = "s") -> str:
    """Grants of EXECUTE on these routines."""
    lines = [
        f'  - {{role: {role}, privileges: [EXECUTE], object: {{type: function, schema: {schema}, name: "{name}"}}}}'
        for name in names
    ]
    return "grants:\n" + "\n".join(lines)


def test_FUN_01_overloads(db: Database) -> None:
    db.sql(
        f"CREATE ROLE r; CREATE SCHEMA s; CREATE FUNCTION s.f(text) {SQL}; CREATE FUNCTION s.f(text, char) {SQL}",
        "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA s FROM PUBLIC; GRANT EXECUTE ON FUNCTION s.f(text, char) TO r",
    )
    result = db.converge(R + execute("f(text)"))
    assert db.acl("s.f(text)", "function") == {OWN, "r=X/postgres"}
    assert db.acl("s.f(text, char)", "function") == {OWN}
    assert result.summary["grants"] == {"granted": 1, "revoked": 1}


def test_FUN_04_default_values_are_no_part_of_the_signature(db: Database) -> None:
    db.sql(f"CREATE ROLE r; CREATE SCHEMA s; CREATE FUNCTION s.f(t text, n numeric DEFAULT 1, OUT x int) {SQL}")
    db.sql(f"CREATE FUNCTION s.v(VARIADIC a int[]) {SQL}; CREATE PROCEDURE s.p(INOUT a int) LANGUAGE sql AS 'SELECT 1'")
    db.converge(R + execute("*"))
    for name in ("s.f(text, numeric)", "s.v(int[])", "s.p(int)"):
        assert "r=X/postgres" in (db.acl(name, "function") or ())


def test_FUN_05_type_aliases_and_modifiers(db: Database) -> None:
    db.sql(f"CREATE ROLE r; CREATE SCHEMA s; CREATE FUNCTION s.al(smallint, int[], varchar, float, timestamptz) {SQL}")
    result = db.converge(
        R
        + execute(
            "al(int2, integer[], character varying(255), float8, timestamp with time zone)",
            "al( smallint , int4[] , varchar , double precision , timestamptz )",
        )
    )
    assert len(result.sql) == 1
    assert "r=X/postgres" in (db.acl("s.al(smallint, int[], varchar, float, timestamptz)", "function") or ())


def test_FUN_05_argument_names_do_not_matter(db: Database) -> None:
    db.sql(f"CREATE ROLE r; CREATE SCHEMA s; CREATE FUNCTION s.f(a int, b text) {SQL}")
    db.converge(R + execute("f(a int, b text)", "f(integer,text)"))
    assert "r=X/postgres" in (db.acl("s.f(int, text)", "function") or ())


def test_FUN_05_contradicting_spellings_are_one_routine(db: Database) -> None:
    db.sql(f"CREATE ROLE r; CREATE SCHEMA s; CREATE FUNCTION s.f(int) {SQL}")
    db.fails(
        R
        + execute("f(int4)")
        + "\n  - {role: r, privileges: [EXECUTE], object: {type: function, schema: s, name: f(integer)}, "
        + "ensure: absent}",
        "manifest_invalid",
    )


def test_FUN_06_a_wildcard_covers_procedures(db: Database) -> None:
    db.sql(
        f"CREATE ROLE r; CREATE SCHEMA s; CREATE FUNCTION s.f() {SQL}",
        "CREATE PROCEDURE s.p() LANGUAGE sql AS 'SELECT 1'; REVOKE ALL ON ALL ROUTINES IN SCHEMA s FROM PUBLIC",
    )
    db.converge(R + execute("*"))
    assert db.acl("s.f()", "function") == {OWN, "r=X/postgres"}
    assert db.acl("s.p()", "function") == {OWN, "r=X/postgres"}


def test_FUN_06_routine_is_another_word_for_function(db: Database) -> None:
    db.sql("CREATE ROLE r; CREATE SCHEMA s; CREATE PROCEDURE s.p() LANGUAGE sql AS 'SELECT 1'")
    db.converge(R + execute("p()").replace("function", "routine"))
    assert "r=X/postgres" in (db.acl("s.p()", "function") or ())


@pytest.mark.parametrize("names", [("*",), ("ag(integer)", "cnt()"), ("ag(int4)", "cnt(*)")])
def test_FUN_08_aggregates(db: Database, names: tuple[str, ...]) -> None:
    db.sql(
        "CREATE ROLE r; CREATE SCHEMA s; CREATE AGGREGATE s.ag(int) (SFUNC = int4pl, STYPE = int)",
        "CREATE AGGREGATE s.cnt(*) (SFUNC = int8inc, STYPE = int8, INITCOND = '0')",
        "REVOKE ALL ON ALL ROUTINES IN SCHEMA s FROM PUBLIC",
    )
    if names == ("ag(int4)", "cnt(*)"):
        # The aggregate's own spelling of "no arguments" is taken or refused, but never ignored.
        result = db.reconcile(R + execute(*names), check=True)
        if result.failed:
            assert result.error_code in ("object_missing", "manifest_invalid")
            return
    db.converge(R + execute(*names))
    acls = {row[0] for row in db.query("SELECT proacl::text FROM pg_proc WHERE pronamespace = 's'::regnamespace")}
    assert acls == {"{" + OWN + ",r=X/postgres}"}


def test_FUN_08_ordered_set_and_window_functions(db: Database) -> None:
    db.sql(
        "CREATE ROLE r; CREATE SCHEMA s",
        "CREATE AGGREGATE s.pc(float8 ORDER BY anyelement) (SFUNC = ordered_set_transition, STYPE = internal,"
        " FINALFUNC = percentile_disc_final, FINALFUNC_EXTRA)",
        "CREATE FUNCTION s.rn() RETURNS bigint LANGUAGE internal WINDOW AS 'window_row_number'",
    )
    db.converge(R + execute("*"))
    db.sql("CREATE ROLE r2")
    db.converge(
        "roles: [{name: r}, {name: r2}]\nschemas: [{name: s}]\n"
        + execute("*")
        + execute("pc(float8, anyelement)", "rn()", role="r2").replace("grants:", "")
    )
    assert db.value("SELECT count(*) FROM pg_proc WHERE proacl::text LIKE %s", "%r2=X/%") == 2


def test_FUN_10_a_bare_name_when_there_is_one(db: Database) -> None:
    db.sql(f"CREATE ROLE r; CREATE SCHEMA s; CREATE FUNCTION s.g() {SQL}")
    db.converge(R + execute("g"))
    assert "r=X/postgres" in (db.acl("s.g()", "function") or ())


def test_FUN_10_an_ambiguous_bare_name_lists_the_signatures(db: Database) -> None:
    db.sql(f"CREATE ROLE r; CREATE SCHEMA s; CREATE FUNCTION s.f(int) {SQL}; CREATE FUNCTION s.f(text, date) {SQL}")
    db.fails(R + execute("f"), ("object_missing", "manifest_invalid"), "f(integer)", "f(text, date)")


def test_FUN_11_public_execute_is_not_the_roles(db: Database) -> None:
    db.sql(
        f"CREATE ROLE r; CREATE ROLE o; CREATE SCHEMA s; CREATE FUNCTION s.f() {SQL}; ALTER FUNCTION s.f() OWNER TO o"
    )
    db.silent(R)
    assert db.acl("s.f()", "function") is None
    # Asked for by name it is just as absent already.
    db.silent(R + execute("f()").replace("}}", "}, ensure: absent}"))
    assert db.acl("s.f()", "function") is None
    result = db.converge(R + execute("f()", role="PUBLIC").replace("}}", "}, ensure: absent}"))
    assert len(result.sql) == 1
    assert db.acl("s.f()", "function") == {"o=X/o"}


@pytest.mark.parametrize("path", ["public", "s, public"])
def test_FUN_13_argument_types_that_need_quoting(db: Database, path: str) -> None:
    db.sql(
        f"CREATE ROLE r; CREATE ROLE ex SUPERUSER LOGIN; ALTER ROLE ex SET search_path = {path}; CREATE SCHEMA s",
        f'CREATE TYPE s."My Type" AS (a int); CREATE FUNCTION s."Odd Name"(a s."My Type", d "char", e char(3)) {SQL}',
        'ALTER FUNCTION s."Odd Name" OWNER TO postgres',
    )
    db.converge(R + execute("*"), login_user="ex")
    assert db.value("SELECT proacl::text[] FROM pg_proc WHERE proname = 'Odd Name'") == [
        "=X/postgres",
        OWN,
        "r=X/postgres",
    ]
    db.sql("CREATE ROLE r2")
    name = '\'Odd Name(s."My Type", "char", character)\''
    db.converge(
        "roles: [{name: r}, {name: r2}]\nschemas: [{name: s}]\n"
        + execute("*")
        + f"\n  - {{role: r2, privileges: [EXECUTE], object: {{type: function, schema: s, name: {name}}}}}",
        login_user="ex",
    )
    assert "r2=X/postgres" in db.value("SELECT proacl::text[] FROM pg_proc WHERE proname = 'Odd Name'")


def test_FUN_14_functions_in_pg_catalog(db: Database) -> None:
    before = db.query(
        "SELECT oid, proacl::text FROM pg_proc WHERE proacl IS NOT NULL AND proname <> 'pg_ls_dir' ORDER BY 1"
    )
    manifest = "roles: [{name: rewind}]\n" + execute(
        "pg_ls_dir(text, boolean, boolean)", role="rewind", schema="pg_catalog"
    )
    result = db.converge(manifest)
    assert len(result.matching("^GRANT")) == 1
    assert db.acl("pg_ls_dir(text, boolean, boolean)", "function") == {OWN, "rewind=X/postgres"}
    after = db.query(
        "SELECT oid, proacl::text FROM pg_proc WHERE proacl IS NOT NULL AND proname <> 'pg_ls_dir' ORDER BY 1"
    )
    assert after == before
    # Nothing makes a system schema managed, so what no rule names stays.
    db.silent("roles: [{name: rewind}]")
    assert not result.summary["managed"]
