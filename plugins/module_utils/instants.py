# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Points in time as text."""

from __future__ import annotations

import datetime

from .manifest.model import Instant


def instant(value: Instant) -> str:
    """A point in time as PostgreSQL reads it under any DateStyle and TimeZone."""
    if isinstance(value, str):
        return value
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=value)
    except OverflowError:
        # Only the catalog can hold such a one, so it is for people to read, never for the server.
        return "after the year 9999" if value > 0 else "before the year 1"
    return moment.isoformat(sep=" ") + "+00"


def is_spelt(value: object) -> bool:
    """Whether a point in time has a spelling: the catalog can hold some that only the server can write."""
    if isinstance(value, bool) or not isinstance(value, int):
        return True
    return -62135596800_000_000 <= value < 253402300800_000_000
