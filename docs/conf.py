# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How Sphinx builds the documentation.

`make docs` copies this folder to `.build/docs/source`, adds the module reference as `reference/`, and builds there.
Nothing is looked up on other sites, so that the build works without a network.
"""

project = "pg_access.reconcile"
copyright = "the pg_access.reconcile authors"  # noqa: A001
title = "pg_access.reconcile"
html_title = title
html_short_title = title

extensions = ["myst_parser", "sphinx_antsibull_ext"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
pygments_style = "ansible"
default_role = "any"

html_theme = "sphinx_ansible_theme"
html_show_sphinx = False
html_use_smartypants = False
html_theme_options = {
    "display_version": False,
    "documentation_home_url": "index.html",
    "topbar_links": {},
    "vcs_pageview_mode": "edit",
}

# The module reference refers to pages of the Ansible documentation that are not built here.
nitpick_ignore_regex = [
    ("std:ref", r"ansible_collections\.community\..*"),
    ("std:ref", r"(ansible|attribute|common_return|collections|module|playbook).*"),
    ("std:envvar", r".*"),
]
