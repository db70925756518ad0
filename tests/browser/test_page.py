# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people meet in the page: every width, light and dark, the keyboard, no script, paper; and nothing leaves it.

With ``SCREENSHOTS`` naming a folder, pictures of the pages are left there to be looked at.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from browser import Chromium, Tab

NARROW, MIDDLE, WIDE = 360, 768, 1600

#: Texts with less contrast than WCAG AA asks for: 4.5, and 3 where they are large.
CONTRAST = """
(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      if (at.tagName === "rect") continue;
      const rgb = parse(getComputedStyle(at).backgroundColor);
      if (rgb.length && (rgb.length < 4 || rgb[3] > 0.99)) return rgb;
    }
    return parse(getComputedStyle(document.documentElement).backgroundColor);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const poor = new Set();
  let looked = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility() || ["SCRIPT", "STYLE"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const svg = element.namespaceURI.endsWith("svg");
    if (svg && element.tagName !== "text") continue;
    const box = svg ? element.parentElement.querySelector("rect") : null;
    const ground = box ? parse(getComputedStyle(box).fill) : behind(element);
    const [a, b] = [light(parse(svg ? style.fill : style.color)), light(ground)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const enough = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    looked += 1;
    if ((a + 0.05) / (b + 0.05) >= enough) continue;
    poor.add(`${element.tagName}.${element.className.baseVal ?? element.className}: ${walker.currentNode.data.slice(0, 30)}`);
  }
  return {looked, poor: [...poor]};
})()
"""

OPEN_ALL = "document.querySelectorAll('details').forEach((item) => { item.open = true; }); 1"

#: What is wider than the window although nothing around it scrolls.
TOO_WIDE = """
[...document.querySelectorAll('body *')].filter((item) =>
  item.checkVisibility() && !item.closest('.scroll') && !item.matches('.skip')
  && item.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5
).slice(0, 5).map((item) => item.outerHTML.slice(0, 120))
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, MIDDLE, WIDE])
@pytest.mark.parametrize("name", ["shop", "hostile", "two"])
def test_a_page_fits_its_window_and_can_be_read(
    chromium: Chromium, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    tab = Tab(chromium, pages[name], width=width, dark=dark, touch=width == NARROW)
    _keep_picture(tab, f"{name}-{width}-{'dark' if dark else 'light'}")
    for _turn in range(2):
        assert (
            tab.ask("document.documentElement.scrollWidth") == tab.ask("document.documentElement.clientWidth") == width
        )
        assert tab.ask(TOO_WIDE) == []
        tab.ask(OPEN_ALL)
    read = tab.ask(CONTRAST)
    assert read["looked"] > 100 and read["poor"] == []
    background = tab.ask("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(15, 19, 24)" if dark else "rgb(255, 255, 255)")
    assert tab.complaints() == []
    assert tab.requests() == [pages[name].as_uri()]


def _keep_picture(tab: Tab, name: str) -> None:
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        tab.picture(Path(folder) / f"{name}.png")


def test_no_name_runs_and_nothing_leaves_the_page(chromium: Chromium, pages: dict[str, Path]) -> None:
    tab = Tab(chromium, pages["hostile"])
    assert tab.ask("document.scripts.length") == 1
    assert tab.ask("document.querySelector('#d0-h').textContent") == "<script>alert(1)</script>"
    # Not even what got into the page could ask for anything, or run.
    assert tab.ask("fetch('https://example.com/').then(() => 'sent', () => 'refused')") == "refused"
    added = "const it = document.createElement('script'); it.textContent = 'window.ran = 1'; document.body.append(it)"
    assert tab.ask(f"(() => {{ {added}; return window.ran === undefined; }})()") is True
    assert not [url for url in tab.requests() if not url.startswith("file:")]


def test_the_filter_shows_the_roles_with_a_part_of_a_name(chromium: Chromium, pages: dict[str, Path]) -> None:
    tab = Tab(chromium, pages["shop"])
    tab.ask("document.getElementById('filter').focus()")
    tab.type("READER")
    shown = "[...document.querySelectorAll('.role')].filter((item) => item.checkVisibility()).map((item) => item.dataset.name)"
    assert tab.ask(shown) == ["audit-reader", "inventory-reader", "sales-reader"]
    rows = "[...document.querySelectorAll('.matrix tbody tr')].filter((item) => item.checkVisibility()).length"
    assert tab.ask(rows) == 3
    assert tab.ask("document.getElementById('filtered').textContent") == "3 of 18 roles"
    # A link to a role that is filtered out shows it.
    tab.ask("location.hash = document.querySelector('.role[data-name=anna]').id; 1")
    tab.ask("new Promise((done) => setTimeout(done, 50))")
    assert tab.ask("document.querySelector('.role[data-name=anna]').open") is True
    assert len(tab.ask(shown)) == 19
    assert tab.complaints() == []


#: Looks for a text in the way in which people type it.
FILTER = """
((text) => {{
  const box = document.getElementById("filter");
  box.value = text;
  box.dispatchEvent(new Event("input"));
  return document.getElementById("filtered").textContent;
}})({text})
"""


def filtered(tab: Tab, text: str) -> str:
    told: str = tab.ask(FILTER.format(text=json.dumps(text)))
    return told


@pytest.mark.parametrize(
    ("text", "found"),
    [(".*", 0), ("[a-z", 0), ("\\", 2), ("<SCRIPT>", 1), ("\"'`&amp;", 1), (" ", 9), ("\U0001f468", 1), ("\u05e7", 1)],
)
def test_the_filter_takes_any_text_as_it_is(chromium: Chromium, pages: dict[str, Path], text: str, found: int) -> None:
    tab = Tab(chromium, pages["hostile"])
    roles = "[...document.querySelectorAll('.role:not([data-name=public])')].filter((item) => item.checkVisibility()).length"
    every = tab.ask(roles)
    told = filtered(tab, text)
    assert tab.ask(roles) == (found if text.strip() else every)
    assert told == (f"{found} of {every} roles" if text.strip() else "")
    assert filtered(tab, "") == "" and tab.ask(roles) == every
    assert tab.complaints() == []


def test_the_filter_is_about_every_list_and_stays_in_sight(chromium: Chromium, pages: dict[str, Path]) -> None:
    tab = Tab(chromium, pages["shop"])
    tab.ask(OPEN_ALL)
    filtered(tab, "anna")
    seen = "[...document.querySelectorAll({0})].filter((item) => item.checkVisibility()).map((item) => item.querySelector('bdi').textContent)"
    assert tab.ask(seen.format("'.changes tbody tr'")) == ["anna"]
    assert tab.ask(seen.format("'[aria-label=Memberships] tbody tr'")) == ["anna"]
    # Nothing of it is anybody else's.
    assert tab.ask("document.querySelector('[aria-label^=\"What pgloader\"]').checkVisibility()") is False
    tab.ask("document.getElementById('d0-r').scrollIntoView(); 1")
    top = tab.ask("document.getElementById('filter').getBoundingClientRect().top")
    assert 0 <= top < 40
    assert tab.ask(
        "document.getElementById('d0-r').getBoundingClientRect().top >= document.querySelector('.filter').getBoundingClientRect().bottom"
    )
    filtered(tab, "no such role")
    assert tab.ask(seen.format("'.changes tbody tr'")) == [] and tab.ask(
        "document.getElementById('filtered').textContent"
    ).startswith("0 of ")


LIT = """
[...document.querySelectorAll(".graph [data-place]")].filter((item) => getComputedStyle(item).opacity === "1")
  .map((item) => item.dataset.names)
"""


def test_the_picture_shows_the_ways_of_the_chosen_role(chromium: Chromium, pages: dict[str, Path]) -> None:
    tab = Tab(chromium, pages["shop"])
    every = tab.ask(LIT)
    assert len(every) == 13
    filtered(tab, "stock_team")
    # Its groups, and its members: not what these have elsewhere.
    assert sorted(tab.ask(LIT)) == ["ben", "carla", "inventory-editor", "stock_team"]
    filtered(tab, "")
    assert tab.ask(LIT) == every
    # The pointer and the keyboard do the same, for as long as they are there.
    box = "document.querySelector('.graph [data-names=anna]').getBoundingClientRect()"
    tab.ask("document.querySelector('.graph').scrollIntoView({block: 'center'}); 1")
    x, y = (tab.ask(f"(({box}).{side} + 20)") for side in ("left", "top"))
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert sorted(tab.ask(LIT)) == ["anna", "inventory-reader", "sales-editor", "sales_team"]
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert tab.ask(LIT) == every
    tab.ask("document.querySelector('.graph a[data-names=carla]').focus(); 1")
    assert sorted(tab.ask(LIT)) == ["carla", "inventory-editor", "stock_team"]


def test_the_picture_moves_to_what_was_found(chromium: Chromium, pages: dict[str, Path]) -> None:
    tab = Tab(chromium, pages["chain"], width=NARROW, height=500)
    filtered(tab, "level_7")
    inside = """
    (() => {
      const place = document.querySelector("[data-names=level_7]").getBoundingClientRect();
      const around = document.querySelector("[aria-label='Graph of roles']").getBoundingClientRect();
      return place.left >= around.left && place.right <= around.right && place.bottom <= around.bottom;
    })()
    """
    assert tab.ask(inside) is True
    assert tab.ask("document.documentElement.scrollTop") == 0


@pytest.mark.parametrize(("width", "grown"), [(WIDE, 100), (NARROW, 100), (NARROW, 200)])
def test_what_a_link_leads_to_is_not_behind_the_filter(
    chromium: Chromium, pages: dict[str, Path], width: int, grown: int
) -> None:
    tab = Tab(chromium, pages["shop"], width=width)
    tab.ask(f"document.documentElement.style.fontSize = '{grown}%'; 1")
    filtered(tab, "anna")
    tab.ask("document.querySelector('a[href=\"#d0-r\"]').click(); 1")
    head = tab.ask("document.getElementById('d0-r').getBoundingClientRect().top")
    assert head >= tab.ask("document.querySelector('.filter').getBoundingClientRect().bottom")


@pytest.mark.parametrize("name", ["shop", "hostile", "chain"])
def test_no_word_of_the_picture_leaves_its_place(chromium: Chromium, pages: dict[str, Path], name: str) -> None:
    tab = Tab(chromium, pages[name])
    out = """
    [...document.querySelectorAll(".graph [data-place]")].flatMap((place) => {
      const box = place.querySelector("rect").getBoundingClientRect();
      return [...place.querySelectorAll("text")].filter((text) => text.getBoundingClientRect().right > box.right - 4);
    }).map((text) => text.textContent)
    """
    assert tab.ask("document.querySelectorAll('.graph text').length > 4") is True
    assert tab.ask(out) == []
    # Whatever font a reader has.
    assert (
        tab.ask(
            "[...document.querySelectorAll('.graph > * > svg')].every((item) => getComputedStyle(item).overflow === 'hidden')"
        )
        is True
    )
    # Roles that differ at the end only can be told apart.
    names = tab.ask("[...document.querySelectorAll('.graph .name')].map((text) => text.textContent)")
    assert len(set(names)) == len(names)


def test_all_texts_grow_with_the_font_that_a_reader_has_chosen(chromium: Chromium, pages: dict[str, Path]) -> None:
    tab = Tab(chromium, pages["shop"])
    tab.ask(OPEN_ALL)
    sizes = (
        "Object.fromEntries(['body', '.small', 'h2', '.tiles b', 'td', 'code', '.tag'].map((name) =>"
        " [name, parseFloat(getComputedStyle(document.querySelector(name)).fontSize)]))"
    )
    usual = tab.ask(sizes)
    assert usual[".small"] < usual["body"] < usual["h2"] and usual[".small"] >= 12
    tab.ask("document.documentElement.style.fontSize = '200%'; 1")
    for name, size in tab.ask(sizes).items():
        assert size == pytest.approx(2 * usual[name]), name
    assert tab.ask("document.documentElement.scrollWidth") == WIDE and tab.ask(TOO_WIDE) == []


def test_with_colours_of_the_system_the_picture_has_no_others(chromium: Chromium, pages: dict[str, Path]) -> None:
    tab = Tab(chromium, pages["shop"])
    features = [{"name": "forced-colors", "value": "active"}, {"name": "prefers-color-scheme", "value": "dark"}]
    tab.call("Emulation.setEmulatedMedia", features=features)
    used = """
    (() => {
      const probe = document.createElement("p");
      document.body.append(probe);
      const of = (name) => { probe.style.color = name; return getComputedStyle(probe).color; };
      const system = {canvas: of("Canvas"), text: of("CanvasText")};
      const style = (name) => getComputedStyle(document.querySelector(name));
      return [style(".graph rect").fill === system.canvas, style(".graph path").stroke === system.text,
              style(".graph text").fill === system.text, system.canvas !== system.text];
    })()
    """
    assert tab.ask(used) == [True] * 4


def test_the_keyboard_reaches_everything(chromium: Chromium, pages: dict[str, Path]) -> None:
    tab = Tab(chromium, pages["shop"])
    seen = []
    for _step in range(60):
        tab.press("Tab", 9)
        seen.append(
            tab.ask(
                "(() => { const it = document.activeElement; return it.id || it.className.baseVal || it.className || it.tagName; })()"
            )
        )
        if seen[-1] == "SUMMARY":
            break
    assert seen[0] == "skip" and "filter" in seen and "scroll" in seen and seen[-1] == "SUMMARY"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert tab.ask(outline) == "solid"
    tab.press("Enter", 13)
    tab.call("Input.dispatchKeyEvent", type="char", text="\r")
    assert tab.ask("document.activeElement.parentElement.open") is True


def test_without_scripts_it_is_all_there(chromium: Chromium, pages: dict[str, Path]) -> None:
    tab = Tab(chromium, pages["shop"], scripts=False)
    # What cannot work is not shown. The protocol's own questions are answered all the same.
    assert tab.ask("document.querySelector('.filter').checkVisibility()") is False
    assert tab.ask("[...document.querySelectorAll('.role')].every((item) => item.checkVisibility())") is True
    assert tab.ask("document.querySelectorAll('.role').length") == 19


def test_on_paper_everything_is_open(chromium: Chromium, pages: dict[str, Path]) -> None:
    tab = Tab(chromium, pages["shop"], dark=True)
    assert tab.ask("document.querySelectorAll('details[open]').length") == 0
    tab.ask(
        "addEventListener('beforeprint', () => { window.opened = document.querySelectorAll('details[open]').length; }); 1"
    )
    assert tab.printed().startswith(b"%PDF")
    assert tab.ask("window.opened === document.querySelectorAll('details').length && window.opened > 19") is True
    assert tab.ask("document.querySelectorAll('details[open]').length") == 0
    tab.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert tab.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.ask("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


def test_on_paper_all_is_open_without_scripts_too_and_nothing_is_cut(
    chromium: Chromium, pages: dict[str, Path]
) -> None:
    tab = Tab(chromium, pages["shop"], width=1040, scripts=False)
    height = "document.querySelector('.plan').closest('details').getBoundingClientRect().height"
    assert tab.ask(height) < 100
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.ask(height) > 1000
    for name in ("shop", "large"):
        # A4 on its side. A browser makes what is wider a little smaller, and cuts what is much wider.
        tab = Tab(chromium, pages[name], width=1040, scripts=False)
        tab.call("Emulation.setEmulatedMedia", media="print")
        widest = tab.ask(
            "Math.max(...[...document.querySelectorAll('table')].map((item) => item.getBoundingClientRect().right))"
        )
        assert 900 < widest < 1300, name
        # And no name stands as a column of letters.
        heads = tab.ask(
            "Math.min(...[...document.querySelectorAll('tbody th')].map((item) => item.getBoundingClientRect().width))"
        )
        assert heads > 100, name


def test_pictures_have_names_for_those_who_do_not_see_them(chromium: Chromium, pages: dict[str, Path]) -> None:
    tab = Tab(chromium, pages["shop"])
    tab.call("Accessibility.enable")
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    told = {(node["role"]["value"], node.get("name", {}).get("value")) for node in nodes if not node["ignored"]}
    assert ("region", "Graph of roles") in told and ("region", "Access matrix") in told
    assert any(name == "Roles and the groups that they are members of" for _role, name in told)
    assert ("searchbox", "Only roles with") in told
    heads = {name for role, name in told if role in ("columnheader", "rowheader")}
    assert {"loses", "gains", "anna", "sales"} <= heads
    nameless = [role for role, name in told if role in ("link", "button", "searchbox", "region") and not name]
    assert nameless == []


def busy(tab: Tab) -> float:
    """The seconds that the page has worked so far."""
    seconds: float = next(
        item["value"] for item in tab.call("Performance.getMetrics")["metrics"] if item["name"] == "TaskDuration"
    )
    return seconds


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_a_large_page_stays_usable(chromium: Chromium, pages: dict[str, Path], width: int) -> None:
    assert pages["large"].stat().st_size < 10_000_000
    tab = Tab(chromium, pages["shop"], width=width)
    # The page's own time, however many others share the machine.
    tab.call("Performance.enable", timeDomain="threadTicks")
    before = busy(tab)
    tab.visit(pages["large"])
    assert tab.ask("document.querySelectorAll('.role').length") == 305
    assert busy(tab) - before < 8
    _keep_picture(tab, f"large-{width}")
    assert tab.ask("document.documentElement.scrollWidth") == width
    before = busy(tab)
    filtered(tab, "user_01")
    tab.ask("document.body.offsetHeight")
    assert busy(tab) - before < 2
    assert tab.ask("document.getElementById('filtered').textContent") == "10 of 304 roles"
    assert tab.complaints() == []
