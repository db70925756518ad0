# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links in the checkout's Markdown and in the built documentation, and what the checker of them finds."""

from __future__ import annotations

from pathlib import Path

import pytest
import tree
import website
from links import anchors, html_problems, markdown_problems

CHECKOUT = Path(__file__).resolve().parents[2]


def test_every_link_of_a_markdown_file_leads_somewhere() -> None:
    files = tree.checkout_files()
    assert "README.md" in files
    assert markdown_problems(files, CHECKOUT, made=["docs/reference/"]) == []


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    assert html_problems(site) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[x](nowhere.md)", "there is no docs/nowhere.md"),
        ("[x](other.md#nothing)", "docs/other.md has no such heading"),
        ("[x](#nothing)", "docs/page.md has no such heading"),
        ("[x](../../out.md)", "leads out of the checkout"),
        ("![x](picture.svg)", "there is no docs/picture.svg"),
        ("[x]: nowhere.md", "there is no docs/nowhere.md"),
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.md").write_text(f"# Page\n\n{text}\n", encoding="utf-8")
    (tmp_path / "docs/other.md").write_text("# Other\n", encoding="utf-8")
    (problem,) = markdown_problems(["docs/page.md", "docs/other.md"], tmp_path)
    assert problem.startswith("docs/page.md:3: ") and problem.endswith(said)


def test_what_is_no_broken_link_is_left_alone(tmp_path: Path) -> None:
    text = "# A `b` c, d\n\n[x](#a-b-c-d) [x](https://example.com/#x) `[x](y.md)` [x](made/z.md)\n\n```text\n[x](y.md)\n```\n"
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    assert markdown_problems(["page.md"], tmp_path, made=["made/"]) == []


def test_headings_are_named_as_forges_do() -> None:
    text = "# One `two`: [three](x.md)\n\n## Twice\n\n## Twice\n\n```sh\n# no heading\n```\n"
    assert anchors(text) == {"one-two-three", "twice", "twice-1"}


def test_what_is_wrong_with_a_site_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        "<a href='a.html#gone'>x</a><a href='b.html'>x</a><p id='i'><p id='i'><img src='https://example.com/i.png'>"
        "<link rel='stylesheet' href='s.css'>",
        encoding="utf-8",
    )
    (tmp_path / "a.html").write_text("<p id='here'>", encoding="utf-8")
    (tmp_path / "alone.html").write_text("<p>", encoding="utf-8")
    (tmp_path / "s.css").write_text("@font-face { src: url(https://example.com/f.woff) }", encoding="utf-8")
    assert html_problems(tmp_path) == [
        "index.html: the id i is there twice",
        "index.html: a.html#gone: a.html has no such place",
        "index.html: b.html: there is no such file",
        "index.html: loads https://example.com/i.png",
        "s.css: loads https://example.com/f.woff",
        "alone.html: no link leads there",
    ]


@pytest.mark.parametrize(
    ("source", "link", "wanted"),
    [
        ("docs/a.md", "b.md#c", "b.md#c"),
        ("docs/a.md", "../CONTRIBUTING.md", "contributing.md"),
        ("docs/a.md", "../README.md#requirements", "index.md#requirements"),
        ("docs/a.md", "../roles/reconcile/README.md", "role-reconcile.md"),
        ("docs/a.md", "picture.svg", "picture.svg"),
        ("CONTRIBUTING.md", "docs/b.md#c", "b.md#c"),
        ("CONTRIBUTING.md", "https://example.com/docs/b.md", "https://example.com/docs/b.md"),
        ("CONTRIBUTING.md", "#here", "#here"),
        ("demo/README.md", "site.yml", "https://forge.example.com/x/blob/main/demo/site.yml"),
    ],
)
def test_links_between_pages_fit_the_site(source: str, link: str, wanted: str) -> None:
    every = {
        "docs/b.md": "b.md",
        "CONTRIBUTING.md": "contributing.md",
        "roles/reconcile/README.md": "role-reconcile.md",
    }
    text = f"[x]({link})\n```text\n[x]({link})\n```\n"
    made = website.for_site(text, source, every, "https://forge.example.com/x")
    assert made == f"[x]({wanted})\n```text\n[x]({link})\n```\n"


def test_anchors_by_hand_are_not_those_of_headings() -> None:
    made = website.for_site('<a href="#x">x</a>\n<a id="x"></a>\n## X\n', "CHANGELOG.md", {}, "")
    assert made == '<a href="#at-x">x</a>\n<a id="at-x"></a>\n## X\n'
