# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looks for secrets in all that a job leaves."""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from urllib.parse import quote

#: What masking, quoting and escaping can get wrong.
AWKWARD = "'\"\\ é$1{}"


def made_up(name: str) -> str:
    """A secret that nothing else resembles."""
    return f"{name}-{secrets.token_urlsafe(12)}{AWKWARD}{secrets.token_hex(4)}"


def forms(secret: str) -> set[str]:
    """A secret in the ways in which programs print a text, and the parts that are worth something by themselves."""
    texts = {secret}
    texts.update(part for part in secret.splitlines() if len(part) > 8)
    if secret.startswith("SCRAM-SHA-256$"):
        texts.update(part for part in re.split("[$:]", secret) if len(part) > 20)
    for _escaped_twice in range(2):
        texts |= {json.dumps(text)[1:-1] for text in texts} | {
            json.dumps(text, ensure_ascii=False)[1:-1] for text in texts
        }
        texts |= {repr(text)[1:-1] for text in texts} | {text.replace("'", "''") for text in texts}
    texts |= {quote(secret), base64.b64encode(secret.encode()).decode()}
    return texts


def leaks(secret_values: Iterable[str], seen: Mapping[str, str]) -> list[str]:
    """Where a secret stands, with what is around it."""
    found = []
    for secret in secret_values:
        for place, text in seen.items():
            for form in forms(secret):
                at = text.find(form)
                if at >= 0:
                    found.append(f"{place} shows {secret!r}: {text[max(0, at - 200) : at + len(form) + 100]}")
                    break
    return found
