# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What the resources of the operator postgresql.aboutbits.it may contain, in the terms of ``manifest/spec.py``.

Only what the operator itself takes: what it refuses has no meaning that could be carried over.
"""

from __future__ import annotations

from typing import Mapping

from ..spec import ROLE_OPTIONS, Option, Options

GROUP = "postgresql.aboutbits.it"
API_VERSION = f"{GROUP}/v1"

_NAMES: Option = {"type": "list", "elements": "str", "judge": "role"}

_REFERENCE: Option = {
    "type": "dict",
    "options": {
        "name": {"type": "str", "required": True, "judge": "name"},
        "namespace": {"type": "str", "judge": "name"},
    },
}

_CLUSTER: Options = {"clusterRef": {**_REFERENCE, "required": True}}
_DATABASE: Option = {"type": "str", "judge": "name"}
#: The operator quotes every role's name, so that even public is none that could exist.
_ROLE: Option = {"type": "str", "required": True, "judge": "declared_role"}
_PRIVILEGES: Option = {"type": "list", "elements": "str", "required": True, "nonempty": True}
_RECLAIM: Option = {"type": "str", "choices": ["Retain", "Delete"]}

_NO_PASSWORD = (
    "a password does not stand in such a file: name its Secret in passwordSecretRef, and give it in the option"
    " passwords under the role's name"
)

ROLE: Option = {
    "options": {
        **_CLUSTER,
        "name": _ROLE,
        "comment": {"type": "str", "judge": "comment"},
        "passwordSecretRef": _REFERENCE,
        "passwordEncryption": {"type": "str", "choices": ["scram-sha-256", "server"]},
        "flags": {
            "type": "dict",
            "options": {
                **{
                    name: {"type": "bool"}
                    for name in ("superuser", "createdb", "createrole", "inherit", "replication", "bypassrls")
                },
                "connectionLimit": {
                    name: ROLE_OPTIONS["connection_limit"][name] for name in ("type", "minimum", "maximum")
                },
                "validUntil": {"type": "str", "judge": "instant"},
                "inRole": _NAMES,
                "role": _NAMES,
            },
            "refused": {
                "login": "is not a flag of the operator: passwordSecretRef says that the role may log in",
                "password": _NO_PASSWORD,
            },
        },
    },
    "refused": {
        "password": _NO_PASSWORD,
        "reclaimPolicy": "a Role has none: the operator drops the role with its resource, and this collection where"
        " retirements says so",
    },
}

#: Where each of a role's flags goes.
FLAGS: Mapping[str, str] = {
    "superuser": "superuser",
    "createdb": "createdb",
    "createrole": "createrole",
    "inherit": "inherit",
    "replication": "replication",
    "bypassrls": "bypassrls",
    "connectionLimit": "connection_limit",
    "validUntil": "valid_until",
}

SCHEMA: Option = {
    "options": {
        **_CLUSTER,
        "database": _DATABASE,
        "name": {"type": "str", "required": True, "judge": "declared_schema"},
        "owner": {"type": "str", "judge": "declared_role"},
        "reclaimPolicy": _RECLAIM,
    },
}

GRANT: Option = {
    "options": {
        **_CLUSTER,
        "database": {**_DATABASE, "required": True},
        "role": _ROLE,
        # Older versions of the operator want an empty one where there is none.
        "schema": {"type": "str"},
        "objectType": {"type": "str", "required": True, "choices": ["database", "schema", "table", "sequence"]},
        "objects": {"type": "list", "elements": "str", "judge": "name"},
        "privileges": _PRIVILEGES,
    },
    "refused": {"withGrantOption": "the operator gives no grant option: write the rule in a manifest of our own"},
}

DEFAULT_PRIVILEGE: Option = {
    "options": {
        **_CLUSTER,
        "database": {**_DATABASE, "required": True},
        "role": _ROLE,
        "owner": _ROLE,
        "schema": {"type": "str"},
        "objectType": {"type": "str", "required": True, "choices": ["schema", "table", "sequence"]},
        "privileges": _PRIVILEGES,
    },
}

DATABASE: Option = {
    "options": {
        **_CLUSTER,
        "name": {"type": "str", "required": True, "judge": "name"},
        "owner": {"type": "str", "judge": "declared_role"},
        "reclaimPolicy": _RECLAIM,
    },
}

#: The kinds that say something on access.
KINDS: Mapping[str, Option] = {
    "Role": ROLE,
    "Schema": SCHEMA,
    "Grant": GRANT,
    "DefaultPrivilege": DEFAULT_PRIVILEGE,
    "Database": DATABASE,
}

#: How to connect is said by the module's options.
CONNECTION = "ClusterConnection"
