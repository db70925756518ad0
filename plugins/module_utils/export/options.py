# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The options of ``pg_role_export`` beside those of the connection: behind its argument spec and its documentation."""

from __future__ import annotations

from ..manifest.spec import Options

EXPORT_OPTIONS: Options = {
    "schemas": {
        "type": "list",
        "elements": "str",
        "nonempty": True,
        "judge": "comment",
        "in_effect": "every schema that is not PostgreSQL's own",
        "description": [
            "Shell-style patterns (C(*), C(?), C([abc]), compared with case) of the schemas to export.",
            "They limit the schemas, the objects in them and the default privileges for them. Roles, memberships,"
            " global default privileges and objects outside schemas are exported all the same.",
        ],
    },
    "roles": {
        "type": "list",
        "elements": "str",
        "nonempty": True,
        "judge": "comment",
        "in_effect": "every role",
        "description": [
            "Shell-style patterns of the roles to export.",
            "Exported is then what these roles own or hold something of: schemas with everything in them, default"
            " privileges, objects outside schemas, and the memberships that they are part of.",
            "Other roles that hold something there, own it or belong to the memberships come out as C(external: true)"
            " with their privileges on it; all others not at all.",
        ],
    },
    "ignore_roles": {
        "type": "list",
        "elements": "str",
        "judge": "pattern",
        "in_effect": "V([])",
        "description": [
            "Shell-style patterns of roles that the manifest leaves alone. They go into C(scope.ignore_roles), and"
            " nothing else in the manifest names such a role.",
            "A pattern needs a literal character.",
        ],
    },
    "suggest_profiles": {
        "type": "bool",
        "default": False,
        "description": [
            "Whether roles with the same shape in several schemas become profiles with a name pattern. A profile is"
            " kept only where the manifest then means exactly the same.",
        ],
    },
    "suggest_min_schemas": {
        "type": "int",
        "default": 2,
        "description": ["In how many schemas a shape has to appear to become a profile, at least 2."],
    },
    "dest": {
        "type": "path",
        "in_effect": "none",
        "description": [
            "A file for RV(yaml), as an absolute path where the module runs.",
            "C({database}) in the path stands for the name of the connected database, with C(%2F) for C(/) and C(%25)"
            " for C(%).",
            "It is written whole or not at all, and only when it differs; what was in it before is gone. A new file"
            " gets the mode C(0600), unless O(mode) says otherwise.",
        ],
    },
}
