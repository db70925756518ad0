# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases MEM: memberships, before PostgreSQL 16 and from 16 on."""

from __future__ import annotations

import pytest
from harness import UNCONNECTED, Database

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


@UNCONNECTED
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


# The three spellings


@pytest.mark.parametrize(
    "manifest",
    [
        "roles: [{name: g}, {name: m, member_of: [g]}]",
        "roles: [{name: g, members: [m]}, {name: m}]",
        "roles: [{name: g, members: [{name: m}]}, {name: m, member_of: [{name: g}]}]",
        "roles: [{name: g}, {name: m, member_of: [g]}]\nmemberships: [{role: g, members: [{name: m}]}]",
    ],
)
def test_MEM_three_spellings_of_one_edge(db: Database, manifest: str) -> None:
    result = db.converge(manifest)
    assert result.summary["memberships"] == {"added": 1, "altered": 0, "removed": 0}
    assert db.edges() == {edge(db, "g", "m")}
    db.silent(IN_G)


@new
@pytest.mark.parametrize("key", ["member_of", "members"])
def test_MEM_options_in_every_spelling(db: Database, key: str) -> None:
    here, there = ("m", "g") if key == "member_of" else ("g", "m")
    text = f"roles: [{{name: {there}}}, {{name: {here}, {key}: [{{name: {there}, %s}}]}}]"
    db.converge(text % "inherit: false, set: false")
    assert db.edges() == {edge(db, "g", "m", inherit=False, set_=False)}
    result = db.converge(text % "admin: true")
    assert result.sql == ['GRANT "g" TO "m" WITH ADMIN OPTION']
    assert db.edges() == {edge(db, "g", "m", admin=True, inherit=False, set_=False)}
    result = db.converge(text % "set: true")
    assert result.matching("^REVOKE ADMIN OPTION FOR ")
    assert db.edges() == {edge(db, "g", "m", inherit=False)}


@old
@pytest.mark.parametrize("key", ["member_of", "members"])
def test_MEM_06_options_before_16_in_every_spelling(db: Database, key: str) -> None:
    result = db.fails(
        f"roles: [{{name: g}}, {{name: m, {key}: [{{name: g, set: false}}]}}]", "unsupported_version", "16"
    )
    assert result.problems[0]["path"] == f"roles[1].{key}[0]"


def test_MEM_member_of_is_the_whole_truth_about_the_member(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE ext; CREATE ROLE other; CREATE ROLE m; CREATE ROLE x")
    db.sql("GRANT ext, other, pg_monitor TO m; GRANT ext, other, pg_monitor TO x")
    roles = "roles: [{name: g}, {name: ext, external: true}, {name: m%s}]"
    result = db.silent(roles % "")
    assert len(result.held(reason="unmanaged_membership", role="m")) == 3
    result = db.converge(roles % ", member_of: [g, ext]")
    assert result.withheld == []
    assert result.summary["memberships"] == {"added": 1, "altered": 0, "removed": 2}
    assert {row[:2] for row in db.edges()} == {
        ("g", "m"),
        ("ext", "m"),
        *((group, "x") for group in ("ext", "other", "pg_monitor")),
    }
    result = db.converge(roles % ", member_of: []")
    assert not {row for row in db.edges() if row[1] == "m"}


def test_MEM_member_of_adds_a_predefined_group_and_takes_others(db: Database) -> None:
    db.sql("CREATE ROLE m; GRANT pg_signal_backend TO m")
    db.converge("roles: [{name: m, member_of: [pg_monitor, pg_read_all_data]}]")
    assert {row[:2] for row in db.edges()} == {("pg_monitor", "m"), ("pg_read_all_data", "m")}


def test_MEM_members_is_the_whole_truth_about_the_group(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m; CREATE ROLE x; GRANT g TO x")
    external = "roles: [{name: g, external: true%s}, {name: m}]"
    db.converge(external % "\n", memberships=[{"role": "g", "members": [{"name": "m"}]}])
    assert db.members("g") == {"m", "x"}
    db.converge(external % ", members: [m]")
    assert db.members("g") == {"m"}
    db.converge(external % ", members: []")
    assert db.members("g") == set()


def test_MEM_an_external_role_may_have_member_of(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE e LOGIN; CREATE ROLE other; GRANT other TO e")
    db.converge("roles: [{name: g}, {name: e, external: true, member_of: [g]}]")
    assert {row[:2] for row in db.edges()} == {("g", "e")}


def test_MEM_member_of_and_members_never_take_what_nobody_may_take(db: Database) -> None:
    db.sql("CREATE ROLE rds_superuser; CREATE ROLE m; CREATE ROLE g; CREATE ROLE ex SUPERUSER LOGIN")
    db.sql("GRANT rds_superuser TO m; GRANT g TO rds_superuser, postgres, ex, pg_monitor")
    result = db.silent(
        "roles: [{name: g, members: []}, {name: m, member_of: []}, {name: ex, external: true, member_of: []}]",
        login_user="ex",
    )
    reasons = {(item["role"], item["object"]["name"]): item["reason"] for item in result.withheld}
    assert reasons == {
        ("m", "rds_superuser"): "provider",
        ("rds_superuser", "g"): "provider",
        ("postgres", "g"): "predefined",
        ("pg_monitor", "g"): "predefined",
        ("ex", "g"): "self_protection",
    }


@new
def test_MEM_member_of_leaves_the_creators_automatic_row(db: Database) -> None:
    db.sql("CREATE ROLE cr LOGIN CREATEROLE")
    db.connect(user="cr").execute("SET createrole_self_grant = 'set, inherit'; CREATE ROLE k")
    before = db.edges()
    db.silent("roles: [{name: k, members: []}, {name: cr, login: true, createrole: true, member_of: []}]")
    assert db.edges() == before


def test_MEM_additive_only_adds_whatever_the_spelling(db: Database) -> None:
    db.sql("CREATE ROLE g; CREATE ROLE m; CREATE ROLE x; CREATE ROLE other; GRANT g TO x; GRANT other TO m")
    manifest = "roles: [{name: g, external: true, members: []}, {name: m, member_of: [g]}]"
    result = db.converge(manifest, reconciliation_mode="additive")
    assert {row[:2] for row in db.edges()} == {("g", "x"), ("other", "m"), ("g", "m")}
    assert {(item["role"], item["reason"]) for item in result.withheld} == {("x", "mode"), ("m", "mode")}


@UNCONNECTED
@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("roles: [{name: g}, {name: m, member_of: [{name: g, admin: yes please}]}]", ["roles[1].member_of[0].admin"]),
        ("roles: [{name: g}, {name: m, member_of: [{name: g, adimn: true}]}]", ["roles[1].member_of[0].adimn", "admin"]),
        ("roles: [{name: group}, {name: m, member_of: [gruop]}]", ["roles[1].member_of[0]", "did you mean 'group'"]),
        ("roles: [{name: a, members: [b]}, {name: b, members: [c]}, {name: c, members: [a]}]", ["a -> ", "b -> ", "c -> "]),
        ("roles: [{name: a, member_of: [a]}]", ["roles[0].member_of[0]", "itself"]),
        ("roles: [{name: a, member_of: [pg_database_owner]}]", ["roles[0].member_of[0]", "pg_database_owner"]),
        (
            "roles: [{name: g, members: [m]}, {name: m, member_of: [{name: g, set: false}]}]",
            ["roles[0].members[0]", "roles[1].member_of[0]", "set: false"],
        ),
    ],
)  # fmt: skip
def test_MEM_what_is_wrong_in_the_other_spellings(db: Database, manifest: str, words: list[str]) -> None:
    db.rejects(manifest, *words)


# Directions


@new
def test_MEM_08_a_direction_reversed_although_others_hang_on_it(db: Database) -> None:
    db.sql("CREATE ROLE a; CREATE ROLE b; CREATE ROLE c; GRANT b TO a WITH ADMIN OPTION; SET ROLE a; GRANT b TO c;")
    db.sql("RESET ROLE")
    result = db.converge("roles: [{name: a, members: [b]}, {name: b, members: [c]}, {name: c}]")
    assert db.edges() == {edge(db, "a", "b"), edge(db, "b", "c")}
    assert result.summary["memberships"] == {"added": 1, "altered": 0, "removed": 1}


# Executors that are no superusers


def prepare_admin(db: Database) -> None:
    """A CREATEROLE login that inherits ``boss``, who has ADMIN on ``g``."""
    db.sql("CREATE ROLE boss; CREATE ROLE cr LOGIN CREATEROLE; GRANT boss TO cr; CREATE ROLE g; CREATE ROLE m")
    db.sql("GRANT g TO boss WITH ADMIN OPTION")


BOSS = "roles: [{name: boss, external: true}, {name: g, external: true, members: [{name: boss, admin: true}%s]}"


def test_MEM_an_executor_that_inherits_admin(db: Database) -> None:
    prepare_admin(db)
    db.sql("ALTER ROLE cr NOCREATEROLE")
    external = BOSS + ", {name: m, external: true}]"
    db.converge(external % ", m", login_user="cr")
    assert edge(db, "g", "m", "boss" if db.version >= 16 else "cr") in db.edges()
    db.converge(external % ", {name: m, admin: true}", login_user="cr")
    assert {row[:4] for row in db.edges("g")} >= {("g", "m", "boss" if db.version >= 16 else "cr", True)}
    db.converge(external % ", m", login_user="cr")
    db.converge(external % "", login_user="cr")
    assert db.members("g") == {"boss"}


@new
def test_MEM_04_an_executor_takes_away_what_a_role_that_it_inherits_gave(db: Database) -> None:
    prepare_admin(db)
    db.sql("SET ROLE boss; GRANT g TO m; RESET ROLE")
    result = db.converge(BOSS % "" + "]", login_user="cr")
    assert result.sql == ['REVOKE "g" FROM "m" GRANTED BY "boss"']
    assert db.members("g") == {"boss"}


@new
def test_MEM_a_new_row_beside_one_that_is_out_of_reach(db: Database) -> None:
    prepare_admin(db)
    db.sql("GRANT g TO m WITH INHERIT FALSE, SET FALSE")
    result = db.converge(BOSS % ", {name: m, set: true}" + ", {name: m, external: true}]", login_user="cr")
    assert result.sql == ['GRANT "g" TO "m" WITH ADMIN FALSE, INHERIT FALSE, SET TRUE GRANTED BY "boss"']
    assert {row for row in db.edges() if row[1] == "m"} == {
        edge(db, "g", "m", inherit=False, set_=False),
        edge(db, "g", "m", "boss", inherit=False),
    }


@new
def test_MEM_13_an_executor_without_superuser_lets_an_admin_go(db: Database) -> None:
    prepare_admin(db)
    db.sql("CREATE ROLE adm; SET ROLE boss; GRANT g TO adm WITH ADMIN OPTION; SET ROLE adm; GRANT g TO m; RESET ROLE")
    # What adm gave can be taken only by somebody who acts as adm.
    db.fails(BOSS % ", m" + ", {name: m, external: true}]", "insufficient_privilege", "adm", login_user="cr")
    db.sql("GRANT adm TO cr")
    db.converge(BOSS % ", m" + ", {name: m, external: true}]", login_user="cr")
    assert db.edges("g") == {edge(db, "g", "boss", admin=True), edge(db, "g", "m", "boss")}


@new
def test_MEM_the_executor_grants_a_group_that_it_creates_to_itself(db: Database) -> None:
    db.sql("CREATE ROLE cr LOGIN CREATEROLE; CREATE ROLE m")
    roles = "roles: [{name: k, members: [%s, m]}, {name: m, external: true}, {name: cr, external: true}]"
    db.converge(roles % "{name: cr, admin: true}", login_user="cr")
    automatic = edge(db, "k", "cr", admin=True, inherit=False, set_=False)
    assert db.edges("k") == {automatic, edge(db, "k", "m", "cr")}
    db.converge(roles % "{name: cr, admin: true, inherit: true}", login_user="cr")
    assert db.edges("k") == {automatic, edge(db, "k", "cr", "cr", set_=False), edge(db, "k", "m", "cr")}


@new
@pytest.mark.parametrize("self_grant", ["", "set", "set, inherit"])
def test_MEM_a_group_and_its_members_in_one_run(db: Database, self_grant: str) -> None:
    db.sql(f"CREATE ROLE cr LOGIN CREATEROLE; ALTER ROLE cr SET createrole_self_grant = '{self_grant}'")
    db.converge(
        "roles: [{name: top}, {name: mid, member_of: [top]}, {name: low, member_of: [{name: mid, admin: true}]},"
        " {name: leaf, member_of: [low, mid]}]",
        login_user="cr",
    )
    assert {row[:3] for row in db.edges() if row[1] != "cr"} == {
        ("top", "mid", "cr"), ("mid", "low", "cr"), ("low", "leaf", "cr"), ("mid", "leaf", "cr"),
    }  # fmt: skip


@new
def test_MEM_16_attributes_alone_touch_no_membership(db: Database) -> None:
    db.sql(
        "CREATE ROLE cr LOGIN CREATEROLE; CREATE ROLE g; CREATE ROLE m; GRANT g TO m; GRANT m TO cr WITH ADMIN OPTION"
    )
    db.sql("CREATE ROLE h; GRANT g TO h")
    before = db.edges()
    manifest = (
        "roles: [{name: g, external: true}, {name: m, connection_limit: 3, member_of: [g]},"
        " {name: cr, external: true}]\n"
        "memberships: [{role: m, members: [{name: cr, admin: true}]}]"
    )
    result = db.converge(manifest, login_user="cr")
    assert result.sql == ['ALTER ROLE "m" CONNECTION LIMIT 3']
    assert db.edges() == before


# What is shown


@new
def test_MEM_13_the_diff_tells_only_who_gains_and_who_loses(db: Database) -> None:
    db.sql("CREATE ROLE adm; CREATE ROLE g; CREATE ROLE m; CREATE ROLE o; GRANT g TO adm WITH ADMIN OPTION")
    db.sql("SET ROLE adm; GRANT g TO m, o; RESET ROLE")
    result = db.reconcile(
        "roles: [{name: g, members: [m, {name: o, set: false}]}, {name: m}, {name: o}, {name: adm}]", diff=True
    )
    (shown,) = result.diff
    assert shown["before"].splitlines()[1:] == [
        "  - role: g", "    members:", "      - {name: adm}", "      - {name: o, set: true}",
    ]  # fmt: skip
    assert shown["after"].splitlines()[1:] == ["  - role: g", "    members:", "      - {name: o, set: false}"]
    assert result.summary["memberships"] == {"added": 0, "altered": 1, "removed": 1}
    assert db.edges() == {edge(db, "g", "m"), edge(db, "g", "o", set_=False)}
