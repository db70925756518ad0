# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The built documentation as a reader finds it: one click from the start, and readable on a phone and a large screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser import Chromium, Tab
from links import Page

#: Narrow is a small phone, wide a usual desktop.
NARROW, MIDDLE, WIDE, HEIGHT = 360, 768, 1600, 800

#: Whom the start page is for, and the page that each of them begins with.
DOORS = {
    "a newcomer": "quickstart.html",
    "an administrator of AWX": "awx.html",
    "a DBA": "what-is-managed.html",
    "a contributor": "contributing.html",
}

#: How far the page reaches beyond the window, and what sticks out of it most. What scrolls by itself may be wider.
OVERFLOW = """
(() => {
  const over = document.documentElement.scrollWidth - window.innerWidth;
  if (over <= 0) return '';
  const scrolls = e => { for (; e; e = e.parentElement) if (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX)) return true; };
  const out = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > window.innerWidth && !scrolls(e));
  return `${over} px: ` + out.slice(-3).map(e => e.outerHTML.slice(0, 120)).join(' ... ');
})()
"""

#: Texts whose contrast with what lies behind them is below what WCAG asks of large text (3:1).
PALE = """
(() => {
  const parse = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                       return .2126 * r + .7152 * g + .0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
                        if (c.length < 4 || c[3] > .9) return c.slice(0, 3); } return [255, 255, 255]; };
  const found = new Set();
  for (const e of document.querySelectorAll('article p, article li, article td, article th, article code, article pre span, article a')) {
    if (![...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim()) || !e.offsetParent) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color).slice(0, 3)), light(behind(e))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 3) found.add(`${ratio.toFixed(1)}: ${e.outerHTML.slice(0, 100)}`);
  }
  return [...found].slice(0, 5);
})()
"""


def _trouble(tab: Tab) -> list[str]:
    """What the page did that no page should: complaints, and requests that leave the machine."""
    away = [url for url in tab.requests() if not url.startswith(("file:", "data:", "about:", "blob:"))]
    return [*tab.complaints(), *(f"asks for {url}" for url in away)]


def _pages(site: Path) -> list[Path]:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    return pages


@pytest.mark.parametrize(("reader", "page"), DOORS.items())
def test_everybody_is_one_click_away(site: Path, reader: str, page: str) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    article = text[text.index("<article") : text.index("</article>")]
    assert page in Page(article).links, f"the start page has no link for {reader}"


def test_the_theme_is_content(site: Path) -> None:
    """The theme writes what it does not like onto the page, and the build goes on."""
    assert [page.name for page in _pages(site) if "ERROR: " in page.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_are_readable(site: Path, chromium: Chromium, width: int, dark: bool) -> None:
    problems = []
    tab = Tab(chromium, site / "index.html", width=width, height=HEIGHT, dark=dark, scrollbars=False)
    for page in _pages(site):
        tab.visit(page)
        name = page.relative_to(site)
        problems += [f"{name}: {trouble}" for trouble in _trouble(tab)]
        if over := tab.ask(OVERFLOW):
            problems.append(f"{name}: wider than the window by {over}")
        problems += [f"{name}: pale text {pale}" for pale in tab.ask(PALE)]
    assert not problems, "\n".join(problems)


#: Names at the beginning of a table's rows that are broken in two.
BROKEN = """
[...document.querySelectorAll("article table:not(.ansible-option-table) td:first-child code")]
  .filter((item) => item.getClientRects().length > 1).slice(0, 5).map((item) => item.textContent)
"""


@pytest.mark.parametrize("width", [NARROW, MIDDLE, WIDE])
def test_names_in_tables_are_in_one_piece(site: Path, chromium: Chromium, width: int) -> None:
    tab = Tab(chromium, site / "index.html", width=width, height=HEIGHT, scrollbars=False)
    for name in ("manifest", "architecture", "results", "limitations", "what-is-managed"):
        tab.visit(site / f"{name}.html")
        assert tab.ask(BROKEN) == [], name
        assert tab.ask(OVERFLOW) == "", name


def test_every_page_has_a_title_of_its_own(site: Path) -> None:
    titles: dict[str, Path] = {}
    for page in _pages(site):
        title = re.findall(r"<title>(.*?)</title>", page.read_text(encoding="utf-8"), re.S)[0]
        assert "Pg_Access" not in title
        assert titles.setdefault(title, page) == page
    start = (site / "index.html").read_text(encoding="utf-8")
    assert "Modules, roles and filters" in start and "Pg_Access" not in start


@pytest.mark.parametrize(
    ("words", "found"), [("override", "modes.html"), ("max_locks_per_transaction", "results.html")]
)
def test_the_search_needs_no_server(site: Path, chromium: Chromium, words: str, found: str) -> None:
    tab = Tab(chromium, site / "index.html", width=WIDE, height=HEIGHT, scrollbars=False)
    # As the theme's form does.
    tab.call("Page.navigate", url=f"{(site / 'search.html').as_uri()}?q={words}")
    links = "[...document.querySelectorAll('#search-results .search a')].map((item) => item.getAttribute('href').split('?')[0])"
    for _turn in range(50):
        if found in (listed := tab.ask(links)):
            break
        tab.ask("new Promise((done) => setTimeout(done, 200))")
    assert found in listed
    assert [url for url in tab.requests() if not url.startswith(("file:", "data:"))] == []


def test_the_theme_can_be_switched(site: Path, chromium: Chromium) -> None:
    tab = Tab(chromium, site / "index.html", width=WIDE, height=HEIGHT, scrollbars=False)
    colour = "getComputedStyle(document.body).backgroundColor"
    before = tab.ask(colour)
    seen = set()
    for _turn in range(3):
        tab.ask("[...document.querySelectorAll('.theme-toggle')].find(e => e.offsetParent).click()")
        seen.add(tab.ask(colour))
    assert len(seen | {before}) == 2


def test_the_menu_opens_on_a_phone(site: Path, chromium: Chromium) -> None:
    tab = Tab(chromium, site / "index.html", width=NARROW, height=HEIGHT, scrollbars=False)
    left = "document.querySelector('.sidebar-drawer').getBoundingClientRect().left"
    assert tab.ask(left) < 0
    tab.ask("document.querySelector('label.nav-overlay-icon').click()")
    tab.ask("new Promise(done => setTimeout(done, 600))")
    assert tab.ask(left) == 0


def test_the_browser_tells_what_is_wrong(chromium: Chromium, tmp_path: Path) -> None:
    """The checks above, on a page that has each fault."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<!doctype html><script>fail()</script><img src='http://127.0.0.1:9/x.png'><article style='width: 500px'>"
        "<p style='color: #ccc; background: #fff'>pale</p></article>",
        encoding="utf-8",
    )
    tab = Tab(chromium, page, width=NARROW, height=HEIGHT, scrollbars=False)
    trouble = "\n".join(_trouble(tab))
    assert "fail is not defined" in trouble and "asks for http://127.0.0.1:9/x.png" in trouble
    assert "px" in tab.ask(OVERFLOW)
    assert len(tab.ask(PALE)) == 1
