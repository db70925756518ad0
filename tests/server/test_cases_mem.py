# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases MEM: memberships, before PostgreSQL 16 and from 16 on."""

from __future__ import annotations

import pytest
from harness import Database

GM = "roles: [{name: g}, {name: m}]\n"
IN_G = GM + "memberships: [{role: g, members: [{name: m}]}]\n"

new = pytest.mark.versions(min=16)
old = pytest.mark.versions(max=15)


def edge(db: Database, group: str, member: str, grantor: str = "postgres", admin: bool = False, inherit: bool = True,
         set_: bool = True) -> tuple[object, ...]:  # fmt: skip
    """A row as ``db.edges()`` gives it on this version."""
    return (group, member, grantor, admin, *((inherit, set_) if db.version >= 16 else ()))


def test_MEM_01_a_superuser_that_is_not_the_bootstrap_one(db: Database) -> None:
    db.sql("CREATE ROLE su2 SUPERUSER LOGIN; CREATE ROLE g; CREATE ROLE m")
    result = db.converge(IN_G, login_user="su2")
    assert result.summary["memberships"] == {"added": 1, "altered": 0, "removed": 0}
    assert db.edges() == {edge(db, "g", "m", "postgres" if db.version >= 16 else "su2")}
    result = db.converge(GM, login_user="su2")
    assert result.summary["memberships"] == {"added": 0, "altered": 0, "removed": 1}
    assert db.edges() == set()


@new
def test_MEM_04_an_edge_made_by_somebody_else(db: Database) -> None:
    db.sql("CREATE ROLE adm; CREATE ROLE g; CREATE ROLE m; GRANT g TO adm WITH ADMIN OPTION")
    db.sql("SET ROLE adm; GRANT g TO m; RESET ROLE")
    assert edge(db, "g", "m", "adm") in db.edges()
    result = db.converge(
        "roles: [{name: g}, {name: m}, {name: adm}]\nmemberships: [{role: g, members: [{name: adm, admin: true}]}]"
    )
    assert len(result.sql) == 1
    assert result.matching("^REVOKE .* GRANTED BY ")
    assert db.members("g") == {"adm"}


@new
def test_MEM_04_several_grantors_of_one_edge(db: Database) -> None:
    db.sql(
        "CREATE ROLE adm; CREATE ROLE g; CREATE ROLE m; GRANT g TO adm WITH ADMIN OPTION; "
        "GRANT g TO m WITH ADMIN OPTION"
    )
    db.sql("SET ROLE adm; GRANT g TO m; RESET ROLE")
    assert len(db.edges("g")) == 3
    keep_adm = (
        "roles: [{name: g}, {name: m}, {name: adm}]\nmemberships: [{role: g, members: [{name: adm, admin: true}%s]}]"
    )
    # The effective option is the OR over the rows, so one row with ADMIN is lowered, and both stay.
    result = db.converge(keep_adm % ", {name: m}")
    assert result.summary["memberships"] == {"added": 0, "altered": 1, "removed": 0}
    assert {row for row in db.edges("g") if row[1] == "m"} == {edge(db, "g", "m"), edge(db, "g", "m", "adm")}
    db.converge(keep_adm % "")
    assert db.members("g") == {"adm"}


@new
def test_MEM_04_lowering_goes_to_every_row(db: Database) -> None:
    db.sql("CREATE ROLE adm; CREATE ROLE g; CREATE ROLE m; GRANT g TO adm WITH ADMIN OPTION; GRANT g TO m")
    db.sql("SET ROLE adm; GRANT g TO m; RESET ROLE")
    db.converge(
        "roles: [{name: g}, {name: m}, {name: adm}]\nmemberships:\n"
        "  - {role: g, members: [{name: adm, admin: true}, {name: m, inherit: false, set: false}]}"
    )
    rows = {row for row in db.edges("g") if row[1] == "m"}
    assert {row[4:] for row in rows} == {(False, False)}
    assert db.value("SELECT pg_has_role('m', 'g', 'USAGE')") is False


@new
def test_MEM_05_a_noinherit_member_gets_inherit(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m NOINHERIT")
    db.converge("roles: [{name: g}, {name: m, inherit: false}]\nmemberships: [{role: g, members: [{name: m}]}]")
    assert db.edges() == {edge(db, "g", "m")}
    assert db.value("SELECT pg_has_role('m', 'g', 'USAGE')") is True


@old
def test_MEM_05_before_16_the_attribute_decides(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m NOINHERIT")
    manifest = "roles: [{name: g}, {name: m, inherit: false}]\nmemberships: [{role: g, members: [{name: m%s}]}]"
    db.fails(manifest % ", inherit: true", "unsupported_version", "m", "inherit")
    db.converge(manifest % ", inherit: false")
    db.silent(manifest % "")
    assert db.edges() == {edge(db, "g", "m")}


@old
@pytest.mark.parametrize("option", ["inherit: false", "set: false"])
def test_MEM_06_options_before_16(db: Database, option: str) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m")
    result = db.fails(IN_G.replace("{name: m}]}]", f"{{name: m, {option}}}]}}]"), "unsupported_version")
    assert "16" in result.text
    # What they say anyway is fine.
    db.converge(IN_G.replace("{name: m}]}]", "{name: m, inherit: true, set: true}]}]"))


@new
def test_MEM_06_options_from_16_on(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m")
    options = "{name: m, inherit: false, set: false}]}]"
    db.converge(IN_G.replace("{name: m}]}]", options))
    assert db.edges() == {edge(db, "g", "m", inherit=False, set_=False)}
    # Omitted, they keep their value, also when ADMIN is added.
    db.silent(IN_G)
    result = db.converge(IN_G.replace("{name: m}]}]", "{name: m, admin: true}]}]"))
    assert len(result.sql) == 1
    assert db.edges() == {edge(db, "g", "m", admin=True, inherit=False, set_=False)}
    db.converge(IN_G.replace("{name: m}]}]", "{name: m, inherit: true, set: true}]}]"))
    assert db.edges() == {edge(db, "g", "m")}


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ({"b": "a", "c": "b", "a": "c"}, "abc"),
        ({"a": "a"}, "a"),
        ({"a": "b", "b": "a"}, "ab"),
    ],
)
def test_MEM_08_loops(db: Database, edges: dict[str, str], cycle: str) -> None:
    result = db.rejects(
        {
            "roles": [{"name": name} for name in "abc"],
            "memberships": [{"role": group, "members": [{"name": member}]} for group, member in edges.items()],
        }
    )
    assert all(name in result.problems[0]["message"] for name in cycle)


def test_MEM_08_an_edge_that_goes_makes_way_first(db: Database) -> None:
    db.sql("CREATE ROLE a; CREATE ROLE b; CREATE ROLE c; GRANT a TO b; GRANT b TO c")
    db.converge(
        """
        roles: [{name: a}, {name: b}, {name: c}]
        memberships: [{role: c, members: [{name: a}]}, {role: b, members: [{name: c}]}]
        """
    )
    assert {row[:2] for row in db.edges()} == {("c", "a"), ("b", "c")}


def test_MEM_08_an_edge_that_stays_is_an_error(db: Database) -> None:
    """An external group keeps undeclared members, so this loop cannot be opened."""
    db.sql("CREATE ROLE a; CREATE ROLE b; GRANT a TO b")
    before = db.snapshot()
    result = db.reconcile(
        "roles: [{name: a, external: true}, {name: b}]\nmemberships: [{role: b, members: [{name: a}]}]"
    )
    assert result.failed
    assert result.error_code not in ("internal_error", "server_error", "not_converged"), result
    assert "a" in result.text
    assert "b" in result.text
    assert db.snapshot() == before


def test_MEM_10_pg_database_owner(db: Database) -> None:
    db.sql(f"CREATE ROLE ex LOGIN; CREATE ROLE r; ALTER DATABASE {db.name} OWNER TO ex")
    db.rejects(
        "roles: [{name: r}]\nmemberships: [{role: pg_database_owner, members: [{name: r}]}]", "pg_database_owner"
    )
    if db.version >= 15:
        manifest = "assume_roles: [r]\nschemas: [{name: public}]\ngrants: [{role: r, privileges: [CREATE], object: {type: schema, name: public}}]"
        # In check mode assumed roles need not exist; here it does.
        db.converge(manifest, login_user="ex")
        assert "r=C/pg_database_owner" in (db.acl("public", "schema") or ())


def test_MEM_11_predefined_groups(db: Database) -> None:
    db.sql("CREATE ROLE m; CREATE ROLE x; GRANT pg_monitor TO x; GRANT pg_signal_backend TO m")
    builtin = db.query("SELECT roleid, member FROM pg_auth_members WHERE member < 16384 ORDER BY 1, 2")
    result = db.converge(
        """
        roles: [{name: m}]
        memberships: [{role: pg_read_all_data, members: [{name: m}]}, {role: pg_monitor, members: [{name: m}]}]
        """
    )
    # Only added: undeclared members of predefined groups, and this role's other memberships, stay and are reported.
    assert {row[:2] for row in db.edges()} == {
        ("pg_monitor", "m"),
        ("pg_read_all_data", "m"),
        ("pg_monitor", "x"),
        ("pg_signal_backend", "m"),
    }
    assert db.query("SELECT roleid, member FROM pg_auth_members WHERE member < 16384 ORDER BY 1, 2") == builtin
    assert result.summary["memberships"]["added"] == 2


@pytest.mark.versions(max=16)
def test_MEM_11_a_predefined_role_that_this_version_lacks(db: Database) -> None:
    db.sql("CREATE ROLE m")
    db.fails(
        "roles: [{name: m}]\nmemberships: [{role: pg_maintain, members: [{name: m}]}]",
        ("object_missing", "unsupported_version"),
        "pg_maintain",
    )


def test_MEM_12_removing_admin(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m; GRANT g TO m WITH ADMIN OPTION")
    result = db.converge(IN_G)
    assert len(result.sql) == 1
    assert result.matching("^REVOKE ADMIN OPTION FOR ")
    assert result.summary["memberships"] == {"added": 0, "altered": 1, "removed": 0}
    assert db.edges() == {edge(db, "g", "m")}


@new
def test_MEM_13_an_admin_that_granted_onward_leaves(db: Database) -> None:
    db.sql("CREATE ROLE adm; CREATE ROLE g; CREATE ROLE m; GRANT g TO adm WITH ADMIN OPTION")
    db.sql("SET ROLE adm; GRANT g TO m; RESET ROLE")
    db.converge("roles: [{name: g}, {name: m}, {name: adm}]\nmemberships: [{role: g, members: [{name: m}]}]")
    assert db.edges() == {edge(db, "g", "m")}


@new
def test_MEM_13_a_whole_chain_goes_leaf_first(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE a; CREATE ROLE b; CREATE ROLE c; GRANT g TO a WITH ADMIN OPTION")
    db.sql("SET ROLE a; GRANT g TO b WITH ADMIN OPTION; RESET ROLE; SET ROLE b; GRANT g TO c; RESET ROLE")
    db.converge("roles: [{name: g}, {name: a}, {name: b}, {name: c}]")
    assert db.edges() == set()


def test_MEM_a_managed_group_has_no_undeclared_members(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m; CREATE ROLE x; CREATE ROLE other; GRANT g TO x; GRANT other TO m")
    result = db.converge(IN_G)
    # The group needs no stanza for that; m's membership in an undeclared group is kept and reported.
    assert {row[:2] for row in db.edges()} == {("g", "m"), ("other", "m")}
    assert [item["role"] for item in result.held(reason="unmanaged_membership")] == ["m"]


def test_MEM_a_stanza_for_an_undeclared_group_only_adds(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m; CREATE ROLE x; GRANT g TO x")
    options = "roles: [{name: m}, {name: g, external: true}]\nmemberships: [{role: g, members: [{name: m}]%s}]"
    db.converge(options % "")
    assert db.members("g") == {"m", "x"}
    db.converge(options % ", exclusive: true")
    assert db.members("g") == {"m"}


def test_MEM_an_external_member_converges(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m LOGIN; CREATE ROLE e LOGIN; GRANT g TO e")
    db.converge(
        "roles: [{name: g}, {name: m, external: true}, {name: e, external: true}]\n"
        "memberships: [{role: g, members: [{name: m}]}]"
    )
    assert db.members("g") == {"m"}


def test_MEM_adopt_removes_and_additive_does_not(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m; CREATE ROLE x; GRANT g TO x; GRANT g TO m WITH ADMIN OPTION")
    result = db.silent(IN_G, reconciliation_mode="additive")
    assert {(item["role"], item["reason"]) for item in result.withheld} == {("x", "mode"), ("m", "mode")}
    db.converge(IN_G, reconciliation_mode="adopt")
    assert db.edges() == {edge(db, "g", "m")}


@new
def test_MEM_the_creators_automatic_row_is_not_drift(db: Database) -> None:
    db.sql("CREATE ROLE cr LOGIN CREATEROLE")
    db.connect(user="cr").execute("CREATE ROLE k")
    assert db.edges() == {edge(db, "k", "cr", admin=True, inherit=False, set_=False)}
    result = db.silent("roles: [{name: k}]")
    # Its member is CREATEROLE, so nothing is worth a word.
    assert result.held(reason="automatic_membership") == []
    db.sql("ALTER ROLE cr NOCREATEROLE")
    result = db.silent("roles: [{name: k}]")
    assert [item["role"] for item in result.held(reason="automatic_membership")] == ["cr"]


@new
def test_MEM_the_creators_automatic_row_beside_another(db: Database) -> None:
    db.sql("CREATE ROLE cr LOGIN CREATEROLE")
    db.connect(user="cr").execute("SET createrole_self_grant = 'set, inherit'; CREATE ROLE k")
    assert len(db.edges("k")) == 2
    # The row that createrole_self_grant made is an ordinary membership of an undeclared member... of the creator itself.
    before = db.edges("k")
    result = db.reconcile("roles: [{name: k}, {name: cr, login: true, createrole: true}]")
    assert not result.failed, result
    assert edge(db, "k", "cr", admin=True, inherit=False, set_=False) in db.edges("k")
    assert db.edges("k") <= before


def test_MEM_memberships_of_provider_roles_are_only_added(db: Database) -> None:
    db.sql(
        "CREATE ROLE rds_superuser; CREATE ROLE m; CREATE ROLE g; GRANT rds_superuser TO m; GRANT g TO rds_superuser"
    )
    result = db.silent("roles: [{name: g}, {name: m}]")
    assert {row[:2] for row in db.edges()} == {("rds_superuser", "m"), ("g", "rds_superuser")}
    assert result.held(reason="provider")
    db.sql("REVOKE rds_superuser FROM m")
    db.converge("roles: [{name: g}, {name: m}]\nmemberships: [{role: rds_superuser, members: [{name: m}]}]")
    assert ("rds_superuser", "m") in {row[:2] for row in db.edges()}


@pytest.mark.parametrize("field", ["member_of: [g]", "members: [g]"])
def test_MEM_other_spellings_come_later(db: Database, field: str) -> None:
    db.fails(f"roles: [{{name: g}}, {{name: m, {field}}}]", "not_supported", f"roles[1].{field.split(':')[0]}")
