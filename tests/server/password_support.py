# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of passwords share. Verifiers are made with nothing of the collection or of libpq."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Any

from harness import Database, Result

Executor = Callable[..., "dict[str, Any]"]

KEY = "0123456789abcdef-the-fingerprint-key"
#: Options of a run that keeps fingerprints.
K: dict[str, Any] = {"fingerprint_key": KEY}

R: dict[str, Any] = {"roles": [{"name": "r", "password": "s3cret"}]}


def with_password(password: Any, **more: Any) -> dict[str, Any]:
    """A manifest of one role."""
    return {"roles": [{"name": "r", "password": password, **more}]}


def sent(result: Result) -> list[str]:
    """The statements that send a password."""
    return result.matching(r"PASSWORD '\*+'")


def scram(password: str, iterations: int = 4096, salt: bytes = b"sixteen bytes ok") -> str:
    """A verifier of a password that SASLprep leaves as it is."""
    # PostgreSQL accepts any iteration count in a verifier; an impossible one is only for show.
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, max(1, min(iterations, 200000)))
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    parts = [base64.b64encode(part).decode() for part in (salt, stored, hmac.digest(salted, b"Server Key", "sha256"))]
    return f"SCRAM-SHA-256${iterations}:{parts[0]}${parts[1]}:{parts[2]}"


def md5(password: str, role: str) -> str:
    """An md5 verifier."""
    return "md5" + hashlib.md5((password + role).encode(), usedforsecurity=False).hexdigest()


def set_verifier(db: Database, verifier: str, role: str = "r") -> None:
    """Store a verifier by hand. PostgreSQL 18 warns about md5."""
    db.sql(f"SET client_min_messages = error; ALTER ROLE {role} PASSWORD '{verifier}'; RESET client_min_messages")
