# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a report: what is in it, that no name can become markup, and that the same data make the same bytes."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from typing import Any, Dict, List, Optional, Tuple
from xml.etree import ElementTree

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.report import access
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.page import model, sections
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.page.graph import MOST_NODES, picture
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.page.look import SCRIPT, STYLE
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.page.model import Access, Unreadable
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.page.page import page
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.page.text import cut, escaped, visible
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World, declared, rule
from ansible_collections.pg_access.reconcile.tests.unit.plugins.plugin_utils import reports

pytest.importorskip("psycopg")

#: The room that bounds what a survey makes answers of, and the one that bounds what is written of them.
BOUNDS = "ansible_collections.pg_access.reconcile.plugins.module_utils."

VOID = {"meta", "input", "br"}


class Document(HTMLParser):
    """A page as a browser takes it apart: elements with their attributes, and the text in them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: List[Tuple[str, Dict[str, Optional[str]]]] = []
        self.open: List[str] = []
        self.texts: List[Tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        assert len(attrs) == len(dict(attrs)), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open[-5:])
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def told(self, tag: str) -> str:
        return "".join(text for inside, text in self.texts if inside == tag)

    @property
    def text(self) -> str:
        return " ".join(
            "".join(f" {text} " for inside, text in self.texts if inside not in ("script", "style")).split()
        )


def made(*samples: Dict[str, Any]) -> str:
    return page([reports.text_of(sample) for sample in samples])


@pytest.fixture(scope="module")
def shop() -> Dict[str, Any]:
    return reports.shop()


@pytest.fixture(scope="module")
def hostile() -> Dict[str, Any]:
    return reports.hostile()


# ---- markup ----------------------------------------------------------------------------------------------------------


def test_no_name_becomes_markup(hostile: Dict[str, Any]) -> None:
    document = Document(made(hostile))
    assert document.open == []
    assert document.told("script") == SCRIPT and document.told("style") == STYLE
    tags = Counter(tag for tag, _attributes in document.elements)
    assert (
        tags["script"] == 1
        and tags["style"] == 1
        and tags["title"] == 1 + len(re.findall("<title", picture(Access(hostile), "x", {}).svg))
    )
    for tag, attributes in document.elements:
        assert not {name for name in attributes if name.startswith("on")} | attributes.keys() & {"style", "src"}, tag
    for name in reports.HOSTILE:
        assert visible(name) in document.told("bdi"), name


def test_every_link_stays_in_the_page_and_leads_somewhere(shop: Dict[str, Any], hostile: Dict[str, Any]) -> None:
    document = Document(made(shop, hostile))
    ids = [attributes["id"] for _tag, attributes in document.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] or "" for _tag, attributes in document.elements if "href" in attributes]
    assert len(links) > 50
    assert {link[:1] for link in links} == {"#"} and {link[1:] for link in links} <= set(ids)
    labels = [
        word for _tag, attributes in document.elements for word in (attributes.get("aria-labelledby") or "").split()
    ]
    assert labels and set(labels) <= set(ids)


def test_the_policy_allows_this_style_and_this_script_only(shop: Dict[str, Any]) -> None:
    document = Document(made(shop))
    policy = next(
        attributes["content"] or ""
        for tag, attributes in document.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    for name, text in (("style-src", STYLE), ("script-src", SCRIPT)):
        digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
        assert allowed.pop(name) == f"'sha256-{digest}'"
    assert set(allowed.values()) == {"'none'"} and {"default-src", "base-uri", "form-action"} == set(allowed)
    assert not re.search(r"url\(|@import|https?:(?!//www\.w3\.org/2000/svg)", made(shop))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\x00b\nc\x7f", "a\\u0000b\\u000ac\\u007f"),
        ("zero\u200bwidth\u2066", "zero\\u200bwidth\\u2066"),
        ("lone\udc80", "lone\\udc80"),
        (reports.EMOJI, reports.EMOJI),
        (reports.HEBREW, reports.HEBREW),
    ],
)
def test_what_hides_in_a_name_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_quotes_do_not_end_an_attribute() -> None:
    assert escaped("\"'<&>") == "&quot;&#x27;&lt;&amp;&gt;"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("short", "short"),
        ("", ""),
        ("a" * 20, "a" * 20),
        ("a" * 21, "a" * 11 + "…" + "a" * 8),
        ("m" * 24, "m" * 7 + "…" + "m" * 5),
        ("\u0416" * 31, "\u0416" * 7 + "…" + "\u0416" * 5),
        ("department_of_finance_reader_07", "department_…ader_07"),
        # A mark stays with its letter.
        ("e\u0301" * 40, "e\u0301" * 12 + "…" + "e\u0301" * 7),
    ],
)
def test_a_name_is_cut_in_the_middle_where_its_place_is_too_small(name: str, shown: str) -> None:
    assert cut(name, 15.4) == shown


# ---- the same again --------------------------------------------------------------------------------------------------

PROGRAM = """
import hashlib, sys
from {package}.tests.unit.plugins.plugin_utils import reports
from {package}.plugins.plugin_utils.page.page import page
text = page([reports.text_of(reports.shop()), reports.text_of(reports.hostile())])
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_the_same_data_make_the_same_bytes_whatever_the_order_of_sets(
    shop: Dict[str, Any], hostile: Dict[str, Any]
) -> None:
    program = PROGRAM.format(package="ansible_collections.pg_access.reconcile")
    paths = os.pathsep.join(path for path in sys.path if path)
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    assert made(shop, hostile) == made(copy.deepcopy(shop), copy.deepcopy(hostile))


# ---- what it says ----------------------------------------------------------------------------------------------------


def test_it_says_through_which_groups_and_by_which_rule(shop: Dict[str, Any]) -> None:
    access = Access(shop)
    links = {role["name"]: f"r{number}" for number, role in enumerate(access.roles)}
    text = Document(sections.roles(access, links)).text
    anna = text[text.index(" anna ") : text.index(" app ", text.index(" anna "))]
    assert "through sales_team → sales-editor" in anna
    assert "all 2 tables of sales" in anna and "declared: profiles.editor.grants[1] for sales-editor" in anna
    assert "memberships[3].members[0]" in anna
    # Which role has to be set is said, and who keeps what by which override.
    ben = text[text.index(" ben ") : text.index(" carla ", text.index(" ben "))]
    assert "through stock_team → inventory-editor , after SET ROLE stock_team" in ben
    assert "undeclared, kept by roles[8].privilege_reconciliation: additive" in text
    assert "undeclared, and managed by" in text and "the membership ends: memberships[5]" in text


def test_the_plan_and_the_backlog_are_there(shop: Dict[str, Any]) -> None:
    document = Document(made(shop))
    statements = document.told("code")
    for text, _behind in shop["statements"]:
        assert text in statements
    assert "pgloader_pg keeps 15 undeclared privileges" in document.text
    assert "26 statements" in document.text and "1 role loses" in document.text


def test_who_loses_comes_first_then_who_gains_and_how_many_through_each(shop: Dict[str, Any]) -> None:
    text = made(shop)
    table = text[text.index('class="changes"') :].partition("</table>")[0]
    rows = [Document(row).text.split(None, 1) for row in re.findall(r"<tr data-name=.*?</tr>", table)]
    names = [name for name, _words in rows]
    assert names == ["intern_2019", *sorted(names[1:])] and len(names) == 14
    told = dict(rows)
    assert told["intern_2019"] == "9 privileges, member of shop_owner"
    assert told["anna"] == "member of sales_team"
    # Its members and theirs have it.
    assert told["sales-editor"] == "+ created 9 privileges 3 roles"
    assert text.index('id="d0-c"') < text.index('id="d0-p"') < text.index('id="d0-g"') < text.index('id="d0-m"')


def test_what_else_is_altered_about_a_role_is_told_and_is_no_gain() -> None:
    world = World()
    world.role("app", login=True)
    raw = {"roles": [{"name": "app", "login": True, "connection_limit": 5}]}
    text = made(reports.data_of(world, raw))
    row = Document(re.findall(r"<tr data-name=.*?</tr>", text[text.index('class="changes"') :])[0]).text
    assert row == "app altered: CONNECTION LIMIT", row
    assert "0 roles gain" in Document(text).text


def test_nobody_gains_or_loses_where_nothing_is_done() -> None:
    world = World()
    world.role("app", login=True)
    text = made(reports.data_of(world, {"roles": declared("app", login=True)}))
    assert "Nobody gains or loses anything." in text and "<ins" not in text and "<del" not in text


def test_who_gains_through_a_group_only_is_told(shop: Dict[str, Any]) -> None:
    world = World()
    world.role("team")
    world.role("anna", login=True)
    world.member("anna", "team")
    world.schema("sales", "postgres")
    world.table("sales", "orders", "postgres")
    raw = {
        "roles": [*declared("team"), *declared("anna", login=True)],
        "memberships": [{"role": "team", "members": [{"name": "anna"}]}],
        "grants": [rule("team", "SELECT", "table", "sales", "orders")],
    }
    document = Document(made(reports.data_of(world, raw)))
    assert "2 roles gain" in document.text and "Through groups also gains: anna ." in document.text


def test_the_matrix_marks_what_comes_and_what_goes(shop: Dict[str, Any]) -> None:
    text = made(shop)
    table = text[text.index('aria-label="Access matrix"') :].partition("</table>")[0]
    rows = dict(re.findall(r'<tr data-name="([^"]*)">(.*?)</tr>', table))
    assert 'table <span class="letters"><ins>rawd</ins></span>' in rows["anna"]
    assert 'table <span class="letters"><del>rawdDxtm</del></span>' in rows["intern_2019"]
    assert "<ins" not in rows["pgloader_pg"] and "<del" not in rows["pgloader_pg"]
    assert "underlined, comes with the plan" in text
    # PostgreSQL's own schemas stand behind those that people work with.
    world = World()
    for name in ("pg_catalog", "information_schema", "zoo", "app"):
        world.schema(name, "postgres", ("PUBLIC", "USAGE", "postgres"))
    text = made(reports.data_of(world, {"roles": declared("someone")}))
    head = text[text.index('class="matrix"') :].partition("</thead>")[0]
    heads = re.findall(r"<bdi>(.*?)</bdi>", head)
    assert heads == ["app", "zoo", "information_schema", "pg_catalog"]


def test_the_matrix_has_whole_parts_and_what_needs_set_role(shop: Dict[str, Any]) -> None:
    cells = Access(shop).cells()
    assert cells["anna"]["sales"]["table"] == dict.fromkeys(("SELECT", "INSERT", "UPDATE", "DELETE"), "all")
    assert cells["ben"]["inventory"]["table"] == {
        "SELECT": "all", "INSERT": "set_role", "UPDATE": "set_role", "DELETE": "set_role",
    }  # fmt: skip
    # The only table of a schema is all of them.
    assert cells["audit-reader"]["audit"]["table"] == {"SELECT": "all"}
    # And so is the database, of which one is looked at.
    world = World()
    world.role("app", login=True)
    world.database("app", "postgres", ("app", "CONNECT", "postgres"))
    data = reports.data_of(world, {"roles": declared("app", login=True)})
    assert Access(data).cells()["app"]["*"]["database"] == {"CONNECT": "all"}
    # What the plan takes is not there, nor does everybody's stand in every row.
    assert "intern_2019" not in cells and "function" not in cells["anna"]["sales"]
    assert cells["PUBLIC"]["sales"]["function"] == {"EXECUTE": "all"}
    assert "raw d".replace(" ", "") in made(shop)


@pytest.mark.parametrize(
    ("way", "held", "plan"),
    [
        ("unchanged", "unchanged", "unchanged"),
        ("unchanged", "gained", "gained"),
        ("gained", "unchanged", "gained"),
        ("lost", "unchanged", "lost"),
        ("unchanged", "lost", "lost"),
        ("gained", "gained", "gained"),
        ("lost", "lost", "lost"),
        ("gained", "lost", None),
        ("lost", "gained", None),
    ],
)
def test_a_way_and_what_is_at_its_end_come_and_go(way: str, held: str, plan: Optional[str]) -> None:
    assert model.both(way, held) == plan


def test_nobody_inherits_what_a_superuser_may() -> None:
    world = World()
    world.role("dba", superuser=True)
    world.role("app", login=True)
    world.member("app", "dba", inherit=True, set=False)
    access = Access(reports.data_of(world, {"roles": declared("app", login=True), "memberships": []}))
    assert "app" not in access.cells()
    assert access.cells()["dba"]["*"]["*"] == {"ALL": "all"}
    assert [row for way in access.ways["app"] for row in access.through(way)] == []


def test_several_databases_are_in_one_page(shop: Dict[str, Any], hostile: Dict[str, Any]) -> None:
    document = Document(made(shop, hostile))
    ids = {attributes.get("id") for _tag, attributes in document.elements}
    assert {"d0", "d1", "d0-r0", "d1-r0"} <= ids
    assert any(attributes.get("aria-label") == "Databases" for _tag, attributes in document.elements)


@pytest.mark.parametrize("texts", [[], ["no JSON"], ["{}"], ['{"format": 99}'], ["[]"], ['{"format": 1}'], [""]])
def test_what_is_no_report_is_refused(texts: List[str]) -> None:
    with pytest.raises(Unreadable):
        page(texts)


# ---- the picture -----------------------------------------------------------------------------------------------------


def boxes(svg: str) -> List[Tuple[float, float, float, float]]:
    root = ElementTree.fromstring(svg)  # noqa: S314 - well-formed, or an error
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    found = []
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, w, h = (float(rect.get(name, "nan")) for name in ("x", "y", "width", "height"))
        assert x >= 0 and x + w <= width and y >= 0 and y + h <= height
        found.append((x, y, x + w, y + h))
    return found


def apart(svg: str) -> int:
    """How many boxes there are, where none touches another."""
    found = boxes(svg)
    for number, one in enumerate(found):
        for other in found[:number]:
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1], (one, other)
    return len(found)


def chart(edges: List[Tuple[str, str]]) -> Access:
    """A database with nothing but these memberships, member first."""
    world = World()
    for member, group in edges:
        world.ref(member), world.ref(group)
        world.member(member, group)
    return Access(reports.data_of(world, {"roles": declared("someone")}))


def test_boxes_are_apart_and_groups_are_left_of_their_members(shop: Dict[str, Any], hostile: Dict[str, Any]) -> None:
    drawn = picture(Access(shop), "x", {})
    assert apart(drawn.svg) == len(drawn.nodes) == 13
    assert apart(picture(Access(hostile), "x", {}).svg) == 3
    place = dict(zip((node.key for node in drawn.nodes), boxes(drawn.svg)))
    for line in drawn.lines:
        assert place[line.group][2] < place[line.member][0]


def test_long_chains_and_lines_over_several_columns_stay_apart() -> None:
    edges = [(f"r{number + 1}", f"r{number}") for number in range(9)]
    edges += [(f"r{number}", "r0") for number in range(2, 10)] + [(f"x{number}", "r4") for number in range(30)]
    drawn = picture(chart(edges), "x", {})
    assert apart(drawn.svg) == len(drawn.nodes) == 40 and drawn.left_out == 0


def test_too_many_roles_share_places_and_nobody_is_lost() -> None:
    edges = [(f"user{number}", f"team{number % 5}") for number in range(200)]
    drawn = picture(chart(edges), "x", {})
    assert len(drawn.nodes) == 10 and apart(drawn.svg) == 10
    assert sorted(name for node in drawn.nodes for name in node.members) == sorted(
        {name for edge in edges for name in edge}
    )
    assert sum(line.number for line in drawn.lines) == 200
    # A line between shared places says so.
    assert "user0 and 39 more inherits: team0 (40 memberships)" in drawn.svg


def test_what_no_place_is_left_for_is_counted() -> None:
    # No two are alike.
    edges = [(f"r{number + 1:03}", f"r{number:03}") for number in range(150)]
    drawn = picture(chart(edges), "x", {})
    assert len(drawn.nodes) == MOST_NODES and apart(drawn.svg) == MOST_NODES
    assert drawn.left_out == 151 - MOST_NODES
    assert f"and {151 - MOST_NODES} roles more that this picture has no room for" in made_of(edges)


def made_of(edges: List[Tuple[str, str]]) -> str:
    return page([json.dumps(chart(edges).data)])


def told_memberships(text: str) -> List[Tuple[str, str, str]]:
    """Member, group and options in the table of memberships."""
    table = text[text.index('aria-label="Memberships"') :].partition("</table>")[0]
    rows = re.findall(r"<tr[^>]*><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>", table)
    return [(Document(member).text.strip(), Document(group).text.strip(), words) for member, group, words in rows]


def test_groups_that_are_alike_are_each_a_membership() -> None:
    """An explanation has them as one item, with three names of five."""
    edges = [("m", f"g{number}") for number in range(5)] + [("other", "g0"), ("other", "g4")]
    access = chart(edges)
    assert [(edge.member, edge.group) for edge in access.edges()] == sorted(edges, key=lambda edge: edge[::-1])
    drawn = picture(access, "x", {})
    assert sorted((line.member[2:], line.group[2:]) for line in drawn.lines) == sorted(edges)
    text = made_of(edges)
    assert sorted(row[:2] for row in told_memberships(text)) == sorted(edges)
    assert "7 memberships as a table" in text and "0 roles with no membership" not in text
    links = {role["name"]: role["name"] for role in access.roles}
    shown = Document(sections.roles(access, links)).text
    member = shown[shown.index(" m ") : shown.index(" other ", shown.index(" m "))]
    assert "5 groups" in member
    for number in range(5):
        assert f" g{number} " in member[member.index("member of") :].partition(" through ")[0]
    alone = len(access.roles) - len({name for edge in edges for name in edge})
    assert f"{alone} role{'s' * (alone != 1)} with no membership" in text


def test_memberships_that_go_or_stay_for_the_same_reason_are_each_told() -> None:
    world = World()
    for name in ("g1", "g2", "g3", "g4", "g5"):
        world.role(name)
        for member in ("goes", "stays"):
            world.member(member, name)
    raw = {"roles": [{"name": "goes", "external": True, "member_of": []}, {"name": "stays", "external": True}]}
    access = Access(reports.data_of(world, raw))
    plans = {(edge.member, edge.group): edge.plan for edge in access.edges()}
    assert plans == {
        (member, f"g{number}"): plan
        for member, plan in (("goes", "lost"), ("stays", "unchanged"))
        for number in range(1, 6)
    }


def test_an_option_that_goes_is_told_beside_those_that_stay() -> None:
    world = World()
    world.role("g")
    world.member("m", "g", admin=True)
    raw = {"roles": declared("g", "m"), "memberships": [{"role": "g", "members": [{"name": "m"}]}]}
    text = made(reports.data_of(world, raw))
    ((member, group, words),) = told_memberships(text)
    assert (member, group) == ("m", "g")
    assert "ADMIN" in words and "goes" in words and words.index("INHERIT") < words.index("ADMIN"), words


def test_who_may_only_hand_a_group_on_is_no_plain_member_of_it() -> None:
    world = World(16)
    world.role("g")
    world.member("m", "g", admin=True, inherit=False, set=False)
    access = Access(reports.data_of(world, {"roles": declared("someone")}))
    (edge,) = access.edges()
    (item,) = access.memberships["m"]
    assert list(edge.options) == item["privileges"] == ["ADMIN"]


@pytest.mark.parametrize("direct", [{}, {"inherit": False, "set": False}])
def test_a_membership_is_told_where_another_way_to_the_group_stays(direct: Dict[str, bool]) -> None:
    """An explanation is about what a role has, which is the same before and after; a line is about a membership."""
    world = World(16)
    for name in ("g", "between"):
        world.role(name)
    for name in ("goes", "stays"):
        world.member(name, "g", **direct)
        world.member(name, "between")
    world.member("between", "g")
    world.member("new", "between")
    raw = {
        "roles": [
            {"name": "goes", "member_of": [{"name": "between"}]},
            {"name": "stays", "external": True},
            {"name": "new", "member_of": [{"name": "between"}, {"name": "g"}]},
            *({"name": name, "external": True} for name in ("g", "between")),
        ]
    }
    access = Access(reports.data_of(world, raw))
    plans = {(edge.member, edge.group): edge.plan for edge in access.edges() if edge.member != "between"}
    beside = {(name, "between"): "unchanged" for name in ("goes", "stays", "new")}
    assert plans == {("goes", "g"): "lost", ("stays", "g"): "unchanged", ("new", "g"): "gained", **beside}
    lines = {(line.member[2:], line.group[2:]): line.reach for line in picture(access, "x", {}).lines}
    assert lines["stays", "g"] == ("none" if direct else "inherits")


def test_the_database_is_whole_also_where_another_one_is_held_alike() -> None:
    world = World()
    world.role("app", login=True)
    names = ("aa", "ab", "ac", "ad")
    for name in (*names, world.state.server.database):
        world.database(name, "postgres", ("app", "CONNECT", "postgres"))
    grants = [rule("other", "CONNECT", "database", name=name) for name in names]
    data = reports.data_of(world, {"roles": declared("other"), "grants": grants})
    assert Access(data).cells()["app"]["*"]["database"] == {"CONNECT": "all"}


def test_nobody_in_no_group_needs_no_picture() -> None:
    world = World()
    world.role("alone")
    assert "No role is a member of another." in made(reports.data_of(world, {"roles": declared("alone")}))


# ---- much ------------------------------------------------------------------------------------------------------------


def test_a_large_report_stays_within_bounds_and_says_what_it_leaves_out() -> None:
    data = reports.large(60, 30, 3)
    data["counts"]["statements"] = 30_000
    data["statements"] = [["REVOKE ALL ON TABLE t FROM r", ["grants[0]"]]] * 5_000
    text = made(data)
    document = Document(text)
    assert "and 29,500 statements more; plan_file has all of them" in document.text
    assert text.count("<li><span") == sections.STATEMENTS
    assert re.search(r"and \d+ ways more to what other roles hold", document.text)
    assert len(text) < 2_000_000


@pytest.mark.parametrize("most", [0, 20, 40, 100])
def test_long_chains_leave_out_what_is_farthest_and_no_privilege(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each role of a chain has all groups before it, so there are as many ways as roles times the chain's length."""
    world = World(18)
    names = [f"r{number:02}" for number in range(15)]
    for name in names:
        world.role(name)
    for member, group in zip(names, names[1:]):
        world.member(member, group)
    world.table("s", "t", "o", *((name, "SELECT", "o") for name in names))
    whole = reports.data_of(world, {"roles": [{"name": "new"}]})
    if most:
        monkeypatch.setattr(BOUNDS + "explain.explanation.MOST_TOLD", most)
        for name in ("held", "ways"):
            monkeypatch.setitem(access.MOST, name, most)
    found = reports.data_of(world, {"roles": [{"name": "new"}]})
    # Every privilege and every direct membership is there, and each role's nearest ways.
    privileges = [item for item in whole["held"] if item["object"]["type"] != "role"]
    assert [item for item in found["held"] if item["object"]["type"] != "role"] == privileges[: most or None]
    direct = [item for item in whole["held"] if item["object"]["type"] == "role" and not item["via"]]
    if most >= len(privileges) + len(direct):
        assert all(item in found["held"] for item in direct)
    longest = max(len(via) for _role, via, _set_role, _plan in found["ways"])
    assert len(found["ways"]) == sum(len(via) <= longest for _role, via, _set_role, _plan in whole["ways"])
    assert found["counts"]["ways"] == whole["counts"]["ways"] and found["memberships"] == whole["memberships"]
    assert most or found == whole
    assert "<!DOCTYPE" in page([reports.text_of(found)])


def test_notes_stand_at_the_beginning_of_the_page() -> None:
    text = reports.text_of(reports.shop())
    made = page([text], notes=["failed: billing: <b>no</b>", "not begun: hr"])
    assert '<ul class="notes" aria-label="What is missing"><li>failed: billing: &lt;b&gt;no&lt;/b&gt;</li>' in made
    assert made.index("What is missing") < made.index("<main>") and "What is missing" not in page([text])
