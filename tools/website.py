#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder that Sphinx builds the documentation from: `docs/`, and the pages of the site that lie elsewhere.

Those are written to be read where they lie, so their links, and links to them, are turned into links within the site. A
link to a file that is no page becomes one into the repository.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from pathlib import Path

#: Pages of the site that lie outside of `docs/`, by their path in the checkout.
BORROWED = {
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "demo/README.md": "demo.md",
}

#: The README is for those who have not found the site yet. What would lead to it leads to the site's start.
START = {"README.md": "index.md", "docs/index.md": "index.md"}

_LINK = re.compile(r"(?<!\\)(\]\()([^)\s]+)(\))")
#: Anchors that a page has by hand, as release notes do, and links to them. Sphinx gives headings the same names.
_ANCHOR = re.compile(r"(<a (?:id=\"|href=\"#))")

_FENCE = re.compile(r"^ *(```|~~~)")


def pages(root: Path) -> dict[str, str]:
    """Every page: its path in the checkout, and its name in the site's folder."""
    found = {f"docs/{path.name}": path.name for path in sorted((root / "docs").glob("*.md"))}
    found |= {name: page for name, page in BORROWED.items() if (root / name).is_file()}
    roles = sorted((root / "roles").glob("*/README.md"))
    return found | {path.relative_to(root).as_posix(): f"role-{path.parent.name}.md" for path in roles}


def lay_out(root: Path, target: Path, repository: str) -> None:
    """Writes the folder `target`, which must not be there yet. Files that are no pages can be read in `repository`."""
    shutil.copytree(root / "docs", target, ignore=shutil.ignore_patterns("docsite", "*.md"))
    every = pages(root)
    for source, page in every.items():
        text = (root / source).read_text(encoding="utf-8")
        (target / page).write_text(for_site(text, source, every, repository), encoding="utf-8")


#: Title of the module reference, which antsibull-docs names after the collection.
REFERENCE = "Modules, roles and filters"


def trim(reference: Path) -> None:
    """Takes off the module reference what this site has no use for: tables of contents, which the theme has beside each
    page, and an index of environment variables where there are none. Its first page is called what it is.
    """
    for page in reference.glob("*.rst"):
        text = page.read_text(encoding="utf-8")
        if "No environment variables have been defined." in text:
            page.unlink()
        else:
            text = re.sub(r"^\.\. contents::.*\n(?:   .*\n)*", "", text, flags=re.M)
            if page.name == "index.rst":
                text = re.sub(r"^.+\n=+$", f"{REFERENCE}\n{'=' * len(REFERENCE)}", text, count=1, flags=re.M)
            page.write_text(text, encoding="utf-8")


def for_site(text: str, source: str, every: dict[str, str], repository: str) -> str:
    """A page's text with its relative links as the site needs them. Blocks of code stay as they are."""
    lines, fence = [], ""
    for line in text.split("\n"):
        if mark := _FENCE.match(line):
            fence = "" if fence == mark.group(1) else fence or mark.group(1)
        elif not fence:
            line = _LINK.sub(lambda found: found[1] + _link(found[2], source, every, repository) + found[3], line)
            line = _ANCHOR.sub(r"\1at-", line)
        lines.append(line)
    return "\n".join(lines)


def _link(link: str, source: str, every: dict[str, str], repository: str) -> str:
    path, hash_mark, anchor = link.partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return link
    place = posixpath.normpath(posixpath.join(os.path.dirname(source), path))
    if page := {**every, **START}.get(place):
        return page + hash_mark + anchor
    # Sphinx hands files beside the pages out by itself, and knows the pages that it makes.
    if place.startswith("docs/"):
        return link
    return f"{repository}/blob/main/{place}{hash_mark}{anchor}"
