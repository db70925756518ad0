# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What all Kubernetes resources have in common, whoever reads them."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Iterator, Tuple

from .conversion import secret_texts

#: What kubectl leaves of a resource's own text in its annotations.
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def group_and_kind(content: Mapping[Any, Any]) -> Tuple[str, str]:
    """The API group without the version, empty for Kubernetes' own, and the kind."""
    version, kind = content.get("apiVersion"), content.get("kind")
    group = version.rpartition("/")[0] if isinstance(version, str) else ""
    return group, kind if isinstance(kind, str) else ""


def metadata_of(content: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The metadata, as far as there are any."""
    found = content.get("metadata")
    return found if isinstance(found, Mapping) else {}


def title_of(content: Mapping[Any, Any]) -> str:
    """Kind and name, as places print them."""
    words = (content.get("kind"), metadata_of(content).get("name"))
    title = " ".join(word for word in words if isinstance(word, str) and word)
    return title if re.fullmatch(r"[\w.@ -]{1,150}", title) else "resource"


def secrets_of(content: Mapping[Any, Any]) -> Iterator[str]:
    """What no output may show of a resource that nothing is read from."""
    for section in ("stringData", "data"):
        found = content.get(section)
        # A username is a name: masked, it would be missing all over the result.
        values = (
            {key: value for key, value in found.items() if key != "username"} if isinstance(found, Mapping) else found
        )
        for text in secret_texts(values):
            yield text
            if section == "data":
                try:
                    yield base64.b64decode(text, validate=True).decode("utf-8")
                except (binascii.Error, ValueError):
                    continue
    annotations = metadata_of(content).get("annotations")
    applied = annotations.get(_LAST_APPLIED) if isinstance(annotations, Mapping) else None
    if isinstance(applied, str):
        try:
            before = json.loads(applied)
        except (ValueError, RecursionError):
            yield applied
            return
        if isinstance(before, Mapping):
            yield from secrets_of({**before, "metadata": {}})
