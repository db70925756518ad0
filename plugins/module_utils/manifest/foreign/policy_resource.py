# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""pgroles' ``PostgresPolicy`` resource: a manifest under ``spec``, beside what its operator is to do with it.

A file sets none of the module's options. Where it says how a run has to be, the run must be so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Iterator, Tuple

from ...masking import passwords_in_address
from ..files import Document
from ..texts import describe, show
from ..validate import Judge
from . import pgroles
from .conversion import IGNORED, KEEP, Call, Form, Sections, Sifted, Sifter, secret_texts, under
from .pgroles import MANIFEST, Conversion

_RESOURCE: Form = {"apiVersion": KEEP, "kind": IGNORED, "metadata": IGNORED, "spec": KEEP, "status": IGNORED}

_VERSIONS = ("v1alpha1",)
_MODES = ("authoritative", "adopt", "additive")

_SPEC: Form = {
    **{name: key for name, key in MANIFEST.items() if name != "auth_providers"},
    # Where and when its operator works. Here that is up to the play.
    "connection": IGNORED,
    "interval": IGNORED,
    "mode": KEEP,
    "suspend": KEEP,
    "approval": KEEP,
    "reconciliation_mode": KEEP,
    "allow_schema_owner_transfers": KEEP,
}


def convert(document: Document, sections: Sections, call: Call) -> None:
    """One policy. Problems with how it wants to be run are reported with the option that says the same."""
    judge = sections.judge
    resource = Sifter(sections).keys(document.content, _RESOURCE, document.prefix)
    version = str(resource.get("apiVersion")).rpartition("/")[2]
    if version not in _VERSIONS:
        judge.report(f"{document.prefix}apiVersion", f"must be pgroles.io/{_VERSIONS[0]}, other versions are not known")
    place = f"{document.prefix}spec"
    spec = resource.get("spec")
    if not isinstance(spec, Mapping):
        judge.report(place, f"must be a dict, not {describe(spec, secret=True)}")
        sections.complete = False
        return
    found = Sifter(sections, camel=True).keys(spec, _SPEC, place)
    _run(judge, found, call)
    Conversion(sections, camel=True, passwords=call.passwords).manifest(found)


def _run(judge: Judge, found: Sifted, call: Call) -> None:
    """Whether the run is one as the policy wants it."""

    def refuse(name: str, message: str) -> None:
        judge.report(found.places[name], message)

    mode = found.get("reconciliation_mode")
    if mode is not None and mode not in _MODES:
        refuse("reconciliation_mode", f"must be one of {', '.join(_MODES)}")
    elif mode is not None and mode != call.mode:
        refuse(
            "reconciliation_mode",
            f"says {mode}, and the run's option reconciliation_mode is {show(call.mode)}: a file does not set the"
            f" module's options, so set reconciliation_mode: {mode}, or take it out of the file",
        )
    how = found.get("mode")
    if how is not None and how not in ("apply", "observe", "plan"):
        refuse("mode", "must be apply or observe")
    elif how in ("observe", "plan") and not call.check:
        refuse("mode", f"{how} means that nothing is changed: run in check mode (--check), or write apply")
    suspend = found.get("suspend")
    if suspend is not None and not isinstance(suspend, bool):
        refuse("suspend", "must be true or false")
    elif suspend:
        refuse("suspend", "the policy is suspended, so nothing is to be done with it: take the file out of the run")
    approval = found.get("approval")
    if approval is not None and approval not in ("manual", "auto"):
        refuse("approval", "must be manual or auto")
    elif approval == "manual" and not (call.check or call.approved):
        refuse(
            "approval",
            "manual means that only a plan which somebody approved is applied: run in check mode, and then with the"
            " option expected_digest",
        )
    transfers = found.get("allow_schema_owner_transfers")
    if transfers is not None and not isinstance(transfers, bool):
        refuse("allow_schema_owner_transfers", "must be true or false")
    elif transfers is not None and call.mode == "adopt" and transfers != call.adopt_schema_owners:
        wanted = "true" if transfers else "false"
        refuse(
            "allow_schema_owner_transfers",
            f"says {wanted}, and the option adopt_schema_owners says otherwise: set adopt_schema_owners: {wanted}",
        )


def secrets(document: Document) -> Iterator[Tuple[str, str]]:
    """What no output may show: the password of the operator's own connection too."""
    spec = document.content.get("spec")
    if not isinstance(spec, Mapping):
        return
    yield from pgroles.secrets(spec, camel=True)
    connection: Any = spec.get("connection")
    parameters = connection.get("params") if isinstance(connection, Mapping) else None
    if isinstance(parameters, Mapping):
        for text in secret_texts(parameters.get("password")):
            yield text, f"the password in {under(document.prefix, 'spec')}.connection"
    for text in secret_texts(connection):
        for password in passwords_in_address(text):
            yield password, f"the password in {under(document.prefix, 'spec')}.connection"
