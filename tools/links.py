#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looks where links lead: in every Markdown file of the checkout, and in the built documentation. Nothing is fetched.

Run as a script it looks at the checkout, and at a folder of HTML where one is given, and says what is wrong.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import tree
from layout import ROOT

_FENCE = re.compile(r"^ *(```+|~~~+)")
_INLINE = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)")
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_CODE = re.compile(r"(`+)(.+?)\1")

#: Attributes whose value a browser loads with the page.
_LOADED = {("img", "src"), ("script", "src"), ("iframe", "src"), ("source", "src"), ("object", "data"), ("use", "href")}


# ---- Markdown ------------------------------------------------------------------------------------------------------


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside of blocks of code, with their numbers."""
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and line.strip() == mark[1]:
            fence = ""
        elif not fence:
            yield number, line


def anchors(text: str) -> set[str]:
    """What can stand after a `#`: headings as code forges and MyST name them."""
    found: set[str] = set()
    for _number, line in _prose(text):
        if heading := _HEADING.match(line):
            title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            slug = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
            name, count = slug, 0
            while name in found:
                count += 1
                name = f"{slug}-{count}"
            found.add(name)
        found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return found


def markdown_problems(files: Iterable[str], root: Path, made: Iterable[str] = ()) -> list[str]:
    """Links in the Markdown files among `files` (paths in `root`) that lead nowhere: to no file, folder or heading.

    `made` are the beginnings of paths that only the build makes.
    """
    known = set(files)
    folders = {parent.as_posix() for name in known for parent in Path(name).parents}
    texts = {name: (root / name).read_text(encoding="utf-8") for name in sorted(known) if name.endswith(".md")}
    headings = {name: anchors(text) for name, text in texts.items()}
    problems = []
    for name, text in texts.items():
        for number, line in _prose(text):
            plain = _CODE.sub("", line)
            definition = _DEFINITION.match(plain)
            for link in [*_INLINE.findall(plain), *([definition[1]] if definition else [])]:
                target, _mark, anchor = link.partition("#")
                if re.match(r"[a-z][a-z0-9+.-]*:", target):
                    continue
                place = _joined(name, target) if target else name
                if place is None:
                    problems.append(f"{name}:{number}: {link}: leads out of the checkout")
                elif place.startswith(tuple(made)):
                    continue
                elif place not in known and place not in folders:
                    problems.append(f"{name}:{number}: {link}: there is no {place}")
                elif anchor and place in headings and unquote(anchor) not in headings[place]:
                    problems.append(f"{name}:{number}: {link}: {place} has no such heading")
    return problems


def _joined(source: str, target: str) -> str | None:
    parts = list(Path(source).parent.parts)
    for part in unquote(target).split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or "."


# ---- HTML ----------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """What a page of HTML offers to links, where it leads, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.doubled: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if name := given.get("id"):
            if name in self.ids:
                self.doubled.append(name)
            self.ids.add(name)
        if tag == "a" and given.get("name"):
            self.ids.add(given["name"])
        if tag in ("a", "area") and "href" in given:
            self.links.append(given["href"])
        # <link> also says things about the page, such as what comes next.
        if tag == "link" and set(given.get("rel", "").split()) & {"stylesheet", "icon", "preload", "modulepreload"}:
            self.loaded.append(given.get("href", ""))
        self.loaded += [given[name] for kind, name in _LOADED if kind == tag and given.get(name)]


def site(folder: Path) -> dict[str, Page]:
    """The pages of a built site, by their path in it."""
    found = sorted(folder.rglob("*.html"))
    return {path.relative_to(folder).as_posix(): Page(path.read_text(encoding="utf-8")) for path in found}


def html_problems(folder: Path, start: str = "index.html", apart: Iterable[str] = ("search.html",)) -> list[str]:
    """Links and files of a built site that are not there, what it loads from elsewhere, and pages no link leads to.

    `apart` are pages that are reached in other ways, as that of the search.
    """
    pages = site(folder)
    problems, ways = [], {name: set[str]() for name in pages}
    for name, page in pages.items():
        problems += [f"{name}: the id {doubled} is there twice" for doubled in page.doubled]
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    problems.append(f"{name}: loads {link}")
                continue
            place = _joined(name, parts.path) if parts.path else name
            if place is None or not (folder / place).is_file():
                problems.append(f"{name}: {link}: there is no such file")
            elif place in pages:
                ways[name].add(place)
                # `#` alone leads to the top of the page.
                if parts.fragment and link not in page.loaded and unquote(parts.fragment) not in pages[place].ids:
                    problems.append(f"{name}: {link}: {place} has no such place")
    for style in sorted(folder.rglob("*.css")):
        for address in re.findall(r"url\(\s*[\"']?((?:https?:)?//[^)\"']+)", style.read_text(encoding="utf-8")):
            problems.append(f"{style.relative_to(folder)}: loads {address}")
    reached, waiting = {start}, [start]
    while waiting:
        fresh = ways.get(waiting.pop(), set()) - reached
        reached |= fresh
        waiting += fresh
    problems += [f"{name}: no link leads there" for name in sorted(set(pages) - reached - set(apart))]
    return problems


def main() -> int:
    # The reference is made by the build; what links to it is judged in the HTML.
    problems = markdown_problems(tree.checkout_files(), ROOT, made=["docs/reference/"])
    for folder in sys.argv[1:]:
        problems += html_problems(Path(folder))
    print("\n".join(problems) or "all links lead somewhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
