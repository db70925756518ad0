# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that a plan's script, or that of the way back, has to bring about, to be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import oracle
from harness import Database

#: What the list of things not undone says where somebody else than before is the grantor.
OTHER_GRANTOR = "comes back as granted by"


def everything(db: Database, *, grantors: bool = True) -> dict[tuple[Any, ...], Any]:
    """Roles, memberships, settings, comments, owners and effective ACLs by what they are about.

    An ACL that is NULL and the built-in one are the same. The table of fingerprints and passwords are left out: neither
    script says anything about them. ``grantors``: False where who granted something does not matter.
    """
    catalog = oracle.read(db.connection)
    found: dict[tuple[Any, ...], Any] = {}

    def entries(held: oracle.Entries) -> Any:
        if grantors:
            return frozenset(held)
        option = {(entry.grantee, entry.privilege) for entry in held if entry.grantable}
        return frozenset((e.grantee, e.privilege, (e.grantee, e.privilege) in option) for e in held)

    for name, values in catalog.roles.items():
        found["role", name] = tuple(sorted(values.items(), key=lambda item: item[0]))
    if grantors:
        for row in catalog.memberships:
            found["membership", row.group, row.member, row.grantor] = tuple(row[3:])
    else:
        for edge, options in catalog.edges().items():
            key: tuple[Any, ...] = ("membership", *edge)
            found[key] = tuple(sorted(options.items()))
    for (kind, schema, name), thing in catalog.objects.items():
        if "role_reconcile" not in (schema, name if kind == "schema" else None):
            here = "CURRENT" if (kind, name) == ("database", db.name) else name
            found[kind, schema, here] = (thing.owner, entries(thing.entries))
    for ((kind, schema, name), column), held in catalog.columns.items():
        if held and schema != "role_reconcile":
            found["column", kind, schema, name, column] = entries(held)
    for (owner, schema, kind), held in catalog.defaults.items():
        found["default", owner, schema, kind] = entries(held)
    for role, settings in db.query(
        "SELECT coalesce(r.rolname, ''), s.setconfig FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole"
        " WHERE s.setdatabase = 0"
    ):
        found["settings", role] = frozenset(settings)
    return found


def differences(before: dict[tuple[Any, ...], Any], after: dict[tuple[Any, ...], Any]) -> list[str]:
    """What is not the same, in words."""
    return [
        f"{key}: {before.get(key)} -> {after.get(key)}"
        for key in sorted({*before, *after}, key=str)
        if before.get(key) != after.get(key)
    ]


def left(undo: Path) -> list[str]:
    """What the script of the way back lists as not undone."""
    return [line[5:] for line in undo.read_text().splitlines() if line.startswith("-- - ")]


def statements(script: Path) -> list[str]:
    """The statements between BEGIN and COMMIT that are not part of every script."""
    text = script.read_text()
    assert text.count("\nBEGIN") == 1
    body = text.partition("\nSET LOCAL lock_timeout = '3s';\n")[2].partition("\n")[2].rpartition("\nCOMMIT;\n")[0]
    return [line for line in body.splitlines() if line and not line.startswith("--")]
