# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tools are called in the results."""

COLLECTION = "collection"
AS_SENT = "collection as sent"
PSQL = "psql"
PYTHON = "python"


def far(tool: str, delay: int) -> str:
    """A tool with so many milliseconds between it and the server."""
    return f"{tool} {delay} ms"
