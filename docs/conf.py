# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How Sphinx builds the documentation.

`make docs` lays these pages out in `.build/docs/source` with those that lie elsewhere (`tools/website.py`), adds the
module reference as `reference/`, and builds there. Nothing is looked up on other sites, so that the build works without
a network, and nothing is loaded from them, so that the pages do.
"""

from pathlib import Path

from sphinx_antsibull_ext.assets import get_color_scheme_content

project = "pg_access.reconcile"
copyright = "the pg_access.reconcile authors"  # noqa: A001
title = "pg_access.reconcile"
html_title = title
html_short_title = title

extensions = ["myst_parser", "sphinx_antsibull_ext"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
default_role = "any"

html_theme = "furo"
html_show_sphinx = False
html_use_smartypants = False
html_copy_source = False
html_use_index = False
html_static_path = ["_static"]
html_css_files = ["dark.css", "site.css"]
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

# The theme's switch between dark and light sets an attribute, which the colours of the module reference do not know.
_dark = get_color_scheme_content("default-dark").decode().removeprefix(":root")
_system = "@media(prefers-color-scheme:dark){body:not([data-theme=light])" + _dark + "}"
Path(__file__).with_name("_static").joinpath("dark.css").write_text(
    "body[data-theme=dark]" + _dark + _system, encoding="utf-8"
)

# The module reference refers to pages of the Ansible documentation that are not built here.
nitpick_ignore_regex = [
    ("std:ref", r"ansible_collections\.community\..*"),
    ("std:ref", r"(ansible|attribute|common_return|collections|module|playbook).*"),
    ("std:envvar", r".*"),
]
