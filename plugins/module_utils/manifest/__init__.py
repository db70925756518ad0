# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The desired state as people write it: what a manifest may contain, how it is read and judged.

``spec`` says what there is, ``files`` reads YAML, ``validate`` judges values against the spec, ``build`` judges what
several values mean together and makes ``model`` out of them, ``load`` is the way in.
"""
