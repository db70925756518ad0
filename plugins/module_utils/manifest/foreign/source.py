# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""From the documents of another tool's file to a part of the manifest, judged as every other part is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ...masking import NOBODY, Secrets
from ...problems import Problem
from ...records import replace
from ..build import Part, part, sections_holder
from ..files import Document, read
from ..model import DatabaseEntry
from ..texts import show
from ..validate import Judge
from . import pgroles, policy_resource
from .bundle import Bundle, bundle, fragment
from .conversion import Call, ConvertedJudge, Sections, call_of
from .kubernetes import group_and_kind, secrets_of, title_of
from .operator_spec import GROUP
from .recognize import BESIDE, BUNDLE, FRAGMENT, PGROLES, RESOURCES, format_of, is_resource


class Resource(NamedTuple):
    """How resources of one kind are read. ``convert`` adds one to the sections. ``secrets`` finds what no output may
    show, with whose it is, and is called first.
    """

    convert: Callable[[Document, Sections, Call], None]
    secrets: Callable[[Document], Iterator[Tuple[str, str]]]


#: By API group, without the version, and kind.
RESOURCE_KINDS: Mapping[Tuple[str, str], Resource] = {
    ("pgroles.io", "PostgresPolicy"): Resource(policy_resource.convert, policy_resource.secrets),
}


class Found(NamedTuple):
    """What a file came to: parts of the manifest, problems, the label of each file that it named, and the places of
    keys that the native form calls otherwise. ``complete``: everything that something else may refer to is in it.
    """

    parts: List[Part]
    problems: List[Problem]
    labels: Dict[str, str]
    renamed: Dict[str, str]
    complete: bool = True


class Reader:
    """Reads other tools' files. Secrets that they hold go into ``secrets`` before anything is judged."""

    def __init__(
        self, raw: Mapping[str, Any], check: bool, secrets: Secrets, contents: Optional[Mapping[str, bytes]] = None
    ) -> None:
        """``contents``: of the files by path, where they are not here."""
        self._call = call_of(raw, check)
        self._secrets = secrets
        self._contents = contents

    def found(self, judge: Judge, path: str, documents: List[Document], labels: Mapping[str, str]) -> Found:
        """What a file comes to that is not native. ``labels``: those of every file so far, by path."""
        kind = format_of([document.content for document in documents])
        if kind == BUNDLE:
            return self._bundle(judge, path, documents[0], labels)
        sections = Sections(judge)
        more: List[Part] = []
        if kind == PGROLES:
            _refuse_merged(judge, documents[0])
        if kind == RESOURCES:
            more = self._resources(sections, documents)
        elif kind == FRAGMENT:
            judge.report("", "is a part of a pgroles bundle: list the bundle's own file, which names its parts")
            return Found([], judge.problems, {}, {}, complete=False)
        else:
            self._secrets.add_all(pgroles.secrets(documents[0].content))
            pgroles.convert(documents[0].content, sections)
            if not sections.values and not judge.problems:
                judge.report("", "declares nothing: of a manifest's sections there is none in it")
        found = self._judged(judge, sections)
        found.parts.extend(more)
        return found

    def _judged(self, judge: Judge, sections: Sections) -> Found:
        native = ConvertedJudge(judge.label, judge.file, sections.places)
        fields = native.fields(sections.values, sections_holder(), "")
        parts: List[Part] = []
        if fields is not None:
            found = _unsaid(part(native, fields), native, sections)
            parts.append(_in_its_database(found, native, sections))
        renamed = {judge.source(written): judge.source(original) for written, original in sections.places.renamed()}
        return Found(parts, [*judge.problems, *native.problems], {}, renamed, bool(parts) and sections.complete)

    # -- resources --

    def _resources(self, sections: Sections, documents: List[Document]) -> List[Part]:
        """Adds resources to the sections. Returns what is a part of its own."""
        every = [item for document in documents for item in _items(sections, document)]
        for document in every:
            known = RESOURCE_KINDS.get(group_and_kind(document.content))
            found = _unread(document) if known is None else known.secrets(document)
            self._secrets.add_all(found)
        beside = [document for document in every if _stands_beside(document)]
        if len(beside) == len(every):
            sections.judge.report("", "declares nothing: there is nothing in it but " + _listed(beside))
        operators = [document for document in every if group_and_kind(document.content)[0] == GROUP]
        for document in every:
            group, kind = group_and_kind(document.content)
            known = RESOURCE_KINDS.get((group, kind))
            if known is not None:
                known.convert(document, sections, self._call)
            elif group != GROUP and not _stands_beside(document):
                listed = ", ".join(sorted(f"{name} of {group}" for group, name in RESOURCE_KINDS))
                what = f"the kind {show(kind)} of {show(group)}" if group else f"the kind {show(kind)}"
                advice = f"leave it out; known are {listed}, and the resources of {GROUP}"
                sections.judge.report(f"{document.prefix}kind", f"nothing is read from {what}: {advice}")
        if not operators:
            return []
        from . import operator

        self._secrets.add_all(operator.secrets_of(operators))
        return [operator.part_of(sections.judge, operators)]

    # -- bundles --

    def _bundle(self, judge: Judge, path: str, root: Document, labels: Mapping[str, str]) -> Found:
        sections = Sections(judge)
        _refuse_merged(judge, root)
        whole = bundle(root.content, sections)
        found = self._judged(judge, sections)
        names: Dict[str, str] = {}
        for place, name in whole.sources:
            file = os.path.normpath(os.path.join(os.path.dirname(path), name))
            if file in labels or file in names:
                judge.report(place, f"{show(name)} is listed twice")
                found.problems.append(judge.problems[-1])
                continue
            base = os.path.basename(file)
            taken = {*labels.values(), *names.values()}
            names[file] = base if base not in taken else file
            more = self._fragment(Judge(label=names[file], file=file, native=True), file, whole)
            found.parts.extend(more.parts)
            found.problems.extend(more.problems)
            found.renamed.update(more.renamed)
            found = found._replace(complete=found.complete and more.complete)
        return found._replace(labels=names)

    def _fragment(self, judge: Judge, path: str, whole: Bundle) -> Found:
        if self._contents is not None and path not in self._contents:
            judge.report("", "is not among manifest_contents, and a bundle there names it")
            return Found([], judge.problems, {}, {}, complete=False)
        documents = read(judge, path, None if self._contents is None else self._contents[path])
        if documents is None:
            return Found([], judge.problems, {}, {}, complete=False)
        if format_of([document.content for document in documents]) in (BUNDLE, RESOURCES):
            judge.report("", "is no part of a pgroles bundle")
            return Found([], judge.problems, {}, {}, complete=False)
        sections = Sections(judge)
        _refuse_merged(judge, documents[0])
        self._secrets.add_all(pgroles.secrets(documents[0].content))
        fragment(documents[0].content, sections, whole)
        return self._judged(judge, sections)


def _refuse_merged(judge: Judge, document: Document) -> None:
    """pgroles does not know merge keys, and passes over keys that it does not know: a role without LOGIN there would
    have it here. What kubectl sends has them resolved.
    """
    for place in document.merged:
        text = "has a merge key (<<), which pgroles passes over with all that it stands for: write the keys out"
        judge.report(place, text)


def _unsaid(found: Part, native: Judge, sections: Sections) -> Part:
    """The part, with the members marked whose ``inherit`` is not in the file."""
    if not sections.unsaid:
        return found
    places = {native.source(place) for place in sections.unsaid}
    stanzas = tuple(
        replace(
            stanza,
            members=tuple(replace(one, unsaid=True) if one.source in places else one for one in stanza.members),
        )
        for stanza in found.manifest.memberships
    )
    return replace(found, manifest=replace(found.manifest, memberships=stanzas))


def _in_its_database(found: Part, native: Judge, sections: Sections) -> Part:
    """The part, only for the database that its grants name: pgroles refuses a grant on any but the connected one."""
    named: Dict[str, str] = {}
    for number, grant in pgroles.dicts(sections.values.get("grants")):
        target = grant.get("object")
        if isinstance(target, Mapping) and target.get("type") == "database" and isinstance(target.get("name"), str):
            named.setdefault(target["name"], native.source(f"grants[{number}].object.name"))
    entries = tuple(DatabaseEntry(name, source, connected=True) for name, source in named.items())
    return replace(found, manifest=replace(found.manifest, databases=entries)) if entries else found


def _stands_beside(document: Document) -> bool:
    """Whether nothing is read from a resource, because it says nothing on a database."""
    group, kind = group_and_kind(document.content)
    return not group and kind in BESIDE


def _listed(documents: List[Document]) -> str:
    return ", ".join(sorted({group_and_kind(document.content)[1] for document in documents})) or "an empty List"


def _items(sections: Sections, document: Document) -> Iterator[Document]:
    """The resource itself, or those of a list as ``kubectl get`` or Kubernetes' interface writes it."""
    items = document.content.get("items")
    group, kind = group_and_kind(document.content)
    one = kind[: -len("List")] if kind.endswith("List") else ""
    known = group == GROUP or (group, one) in RESOURCE_KINDS or (not group and one in BESIDE)
    if not isinstance(items, list) or not ((group, kind) == ("", "List") or (one and known)):
        yield document
        return
    for number, item in enumerate(items):
        if one and isinstance(item, Mapping):
            # Kubernetes' own interface says only once of what kind the items are.
            item = {"apiVersion": document.content["apiVersion"], "kind": one, **item}
        if is_resource(item):
            yield Document(item, f"{document.prefix}items[{number}] ({title_of(item)}): ")
        else:
            sections.judge.report(f"{document.prefix}items[{number}]", "must be a resource, with apiVersion and kind")
            sections.complete = False


def _unread(document: Document) -> Iterator[Tuple[str, str]]:
    """Whatever may be secret in a resource that nothing is read from."""
    if _stands_beside(document) and group_and_kind(document.content)[1] != "Secret":
        return  # what a ConfigMap says is no secret, and masked it would be missing in the result
    for text in secrets_of(document.content):
        yield text, NOBODY
