# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The way in: raw module arguments or files become a Manifest, or a list of everything that is wrong with them."""

from __future__ import annotations

import base64
import os
from collections import Counter
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from .. import privileges
from ..masking import Secrets, of_roles
from ..problems import MISSING_LIBRARY, ManifestInvalid, Problem, as_written, file_of
from ..records import dataclass, replace
from .build import Part, part, sections_holder
from .model import Manifest
from .passwords import of_option, with_environment
from .spec import CONNECTION_NAMES, MANIFEST_OPTIONS, RUN_OPTIONS, SECTIONS
from .texts import show
from .validate import Fields, Judge, Suggester, join

__all__ = ["Draft", "ManifestInvalid", "Problem", "draft", "from_files", "from_options", "load"]


@dataclass(frozen=True)
class Draft:
    """A manifest as far as it is usable, and what is wrong with it."""

    manifest: Manifest
    problems: Tuple[Problem, ...]

    def checked(self) -> Manifest:
        """The manifest, when nothing is wrong with it."""
        if self.problems:
            raise ManifestInvalid(as_written(self.problems, self.manifest.renamed))
        return self.manifest


def load(raw: Mapping[str, Any]) -> Manifest:
    """The manifest that the module's raw arguments describe, whichever way."""
    return draft(raw).checked()


def from_options(raw: Mapping[str, Any]) -> Manifest:
    """The manifest in the module's raw arguments."""
    return _draft_options(raw).checked()


def from_files(paths: Sequence[str], assume_roles: Any = None) -> Manifest:
    """The manifest composed from YAML files where the module runs."""
    return _draft_files({"manifest_files": paths, "assume_roles": assume_roles}, paths, Secrets(), False).checked()


def draft(
    raw: Mapping[str, Any],
    secrets: Optional[Secrets] = None,
    environment: Optional[Mapping[str, str]] = None,
    check: bool = False,
) -> Draft:
    """What the module's raw arguments describe, with the problems of it.

    The secrets that files and the environment hold go into ``secrets`` before anything is judged. ``check``: nothing is
    going to be changed.
    """
    known = Secrets() if secrets is None else secrets
    found = _draft(raw, known, check)
    judge = Judge()
    passwords = of_option(judge, raw.get("passwords"))
    variables = os.environ if environment is None else environment
    manifest, problems = with_environment(found.manifest, variables, known, found.manifest.files)
    manifest = replace(manifest, passwords=passwords)
    return Draft(manifest, (*found.problems, *judge.problems, *problems))


def _draft(raw: Mapping[str, Any], secrets: Secrets, check: bool) -> Draft:
    if raw.get("manifest_contents") is not None:
        return _draft_contents(raw, secrets, check)
    if raw.get("manifest_files") is None:
        return _draft_options(raw)
    judge = Judge()
    both = [name for name in SECTIONS if raw.get(name) is not None]
    if both:
        judge.report(
            "manifest_files",
            f"cannot be combined with sections that are given as options ({', '.join(both)}): use one or the other",
        )
    _top_level(judge, raw)
    fields = judge.fields(
        {key: raw.get(key) for key in ("manifest_files", "assume_roles")}, {"options": MANIFEST_OPTIONS}, ""
    )
    paths = () if fields is None else tuple(item.value for item in fields.items("manifest_files"))
    found = _draft_files(raw, paths, secrets, check, judged=True)
    if both:
        options = _draft_options({key: raw[key] for key in both})
        judge.problems.extend(options.problems)
    return Draft(found.manifest, (*judge.problems, *found.problems))


def _top_level(judge: Judge, raw: Mapping[str, Any]) -> None:
    """Options that the module does not have. Values of options that are not the manifest's are not looked at."""
    known = [*MANIFEST_OPTIONS, *RUN_OPTIONS, *CONNECTION_NAMES]
    suggester = Suggester(known)
    for key in raw:
        name = str(key)
        if name in known or name.startswith("_ansible_"):
            continue
        judge.report(join("", name), f"unknown option {show(name)}{suggester.hint(name)}")


def _draft_options(raw: Mapping[str, Any]) -> Draft:
    judge = Judge()
    _top_level(judge, raw)
    holder = sections_holder({"assume_roles": MANIFEST_OPTIONS["assume_roles"]})
    mine = {key: value for key, value in raw.items() if key in holder["options"]}
    fields = judge.fields(mine, holder, "")
    if fields is None:
        return Draft(Manifest(), tuple(judge.problems))
    assumed = frozenset(item.value for item in fields.items("assume_roles"))
    manifest, problems = _compose([part(judge, fields)], assumed, {})
    return Draft(manifest, (*judge.problems, *problems))


def _draft_files(
    raw: Mapping[str, Any], paths: Sequence[str], secrets: Secrets, check: bool, judged: bool = False
) -> Draft:
    judge = Judge()
    fields: Optional[Fields] = judge.fields(
        {"assume_roles": raw.get("assume_roles")}, {"options": {"assume_roles": MANIFEST_OPTIONS["assume_roles"]}}, ""
    )
    problems = [] if judged else judge.problems
    assumed = frozenset() if fields is None else frozenset(item.value for item in fields.items("assume_roles"))
    missing = _no_yaml("manifest_files") if paths else None
    if missing is not None:
        return Draft(Manifest(assume_roles=assumed), (*problems, missing))
    place = Judge()
    usable = _usable(place, paths)
    problems.extend(place.problems)
    labels = _labels(usable)
    read = _Files(raw, check, secrets, labels)
    read.add_all(usable)
    return _whole([], read, assumed, problems)


def _draft_contents(raw: Mapping[str, Any], secrets: Secrets, check: bool) -> Draft:
    """Sections that are given as options, with the contents of files."""
    judge = Judge()
    _top_level(judge, raw)
    if raw.get("manifest_files") is not None:
        judge.report("manifest_contents", "cannot be combined with manifest_files: use one or the other")
    holder = sections_holder({"assume_roles": MANIFEST_OPTIONS["assume_roles"]})
    fields = judge.fields({key: value for key, value in raw.items() if key in holder["options"]}, holder, "")
    missing = _no_yaml("manifest_contents")
    if fields is None or missing is not None:
        return Draft(Manifest(), (*judge.problems, *([] if missing is None else [missing])))
    contents = _decoded(judge, raw.get("manifest_contents"))
    labels = _labels(list(contents))
    read = _Files(raw, check, secrets, labels, contents)
    read.add_all(contents)
    assumed = frozenset(item.value for item in fields.items("assume_roles"))
    return _whole([part(judge, fields)], read, assumed, judge.problems)


def _decoded(judge: Judge, contents: Any) -> Dict[str, bytes]:
    """Contents of files by path."""
    if not isinstance(contents, Mapping) or not contents:
        judge.report("manifest_contents", "must be a dict of paths and the contents of the files, not empty")
        return {}
    found: Dict[str, bytes] = {}
    for given, content in contents.items():
        place = join("manifest_contents", str(given))
        path = os.path.normpath(str(given))
        if not given or path in found:
            judge.report(place, "is given twice" if given else "a path must not be empty")
            continue
        try:
            found[path] = base64.b64decode(content, validate=True)
        except (TypeError, ValueError):
            judge.report(place, "must be text in base64, as ansible.builtin.slurp returns it")
    return found


def _no_yaml(option: str) -> Optional[Problem]:
    from . import files  # and with it PyYAML, which only files need

    if files.HAS_YAML:
        return None
    message = (
        "PyYAML is needed to read files, and the Python that runs the module has none: install it there"
        " (pip install PyYAML), or give the sections as options"
    )
    return Problem(path=option, message=message, code=MISSING_LIBRARY)


def _whole(parts: Sequence[Part], read: _Files, assumed: FrozenSet[str], problems: Sequence[Problem]) -> Draft:
    """The manifest of these parts and of files that are read."""
    manifest, more = _compose([*parts, *read.parts], assumed, {label: path for path, label in read.labels.items()})
    manifest = replace(manifest, renamed=read.renamed)
    if manifest.databases or manifest.clusters:
        from .foreign.whereabouts import whereabouts

        more.extend(whereabouts(manifest))
    if not read.complete:
        manifest = replace(manifest, unreadable=manifest.unreadable | {"roles", "default_owner"})
    return Draft(manifest, (*problems, *read.problems, *more))


def _usable(judge: Judge, paths: Sequence[str]) -> List[str]:
    found: List[str] = []
    for number, path in enumerate(paths):
        if not os.path.isabs(path):
            # A manifest itself in the place of a path may hold a password.
            shown = show(path) if len(path.split()) == 1 else "this"
            judge.report(f"manifest_files[{number}]", f"{shown} must be an absolute path, where the module runs")
        elif path in found:
            judge.report(f"manifest_files[{number}]", f"{show(path)} is listed twice")
        else:
            found.append(path)
    return found


class _Files:
    """Reads one file after the other. ``labels`` grows with files that other tools' files name.

    ``complete``: everything in them could be used so far that the rest may refer to.
    """

    def __init__(
        self,
        raw: Mapping[str, Any],
        check: bool,
        secrets: Secrets,
        labels: Dict[str, str],
        contents: Optional[Mapping[str, bytes]] = None,
    ) -> None:
        self.parts: List[Part] = []
        self.problems: List[Problem] = []
        self.renamed: Dict[str, str] = {}
        self.complete = True
        self._raw = raw
        self._check = check
        self._secrets = secrets
        self.labels = labels
        self._contents = contents

    def add_all(self, paths: Iterable[str]) -> None:
        """These files, but those that a bundle among their contents reads."""
        named = set(self._parts()) if self._contents else set()
        for path in [path for path in paths if path in named]:
            del self.labels[path]
        for path, label in list(self.labels.items()):
            self.add(Judge(label=label, file=path, native=True), path)

    def _parts(self) -> Iterator[str]:
        from . import files
        from .foreign.recognize import BUNDLE, format_of, parts_of

        for path, content in (self._contents or {}).items():
            documents = files.read(Judge(), path, content) or []
            if format_of([document.content for document in documents]) == BUNDLE:
                yield from parts_of(documents[0].content, path)

    def add(self, judge: Judge, path: str) -> None:
        """One more file."""
        from . import files
        from .foreign.recognize import NATIVE, format_of

        documents = files.read(judge, path, None if self._contents is None else self._contents[path])
        if documents is None:
            self.complete = False
        elif format_of([document.content for document in documents]) == NATIVE:
            self._native(judge, documents[0].content)
        else:
            from .foreign.source import Reader

            reader = Reader(self._raw, self._check, self._secrets, self._contents)
            found = reader.found(judge, path, documents, self.labels)
            self.parts.extend(found.parts)
            self.problems.extend(found.problems)
            self.renamed.update(found.renamed)
            self.labels.update(found.labels)
            self.complete = self.complete and found.complete
            return
        self.problems.extend(judge.problems)

    def _native(self, judge: Judge, content: Mapping[Any, Any]) -> None:
        self._secrets.add_all(of_roles(content.get("roles")))
        found = judge.fields(_without_options(judge, content), sections_holder(), "")
        if found is None:
            self.complete = False
        else:
            self.parts.append(_with_limits(part(judge, found), judge.label or ""))


def _with_limits(found: Part, label: str) -> Part:
    """The part of a native file that could as well be one of a pgroles bundle without a mark: all of its roles stand in
    ``scope.roles``, which there only says what it may declare.
    """
    limits = set(found.manifest.scope.roles)
    named = {role.name for role in found.manifest.roles} | {gone.role for gone in found.manifest.retirements}
    if not limits or not named or not named <= limits:
        return found
    others = tuple((name, label) for name in sorted(limits - named))
    return replace(found, manifest=replace(found.manifest, maybe_limits=others))


def _without_options(judge: Judge, content: Mapping[Any, Any]) -> Mapping[Any, Any]:
    options = {*MANIFEST_OPTIONS, *RUN_OPTIONS, *CONNECTION_NAMES} - set(SECTIONS)
    for key, value in content.items():
        if key in options and value is not None:
            judge.report(join("", key), f"{show(key)} is an option of the module, not a section of a manifest")
    return {key: value for key, value in content.items() if key not in options}


def _labels(paths: Sequence[str]) -> Dict[str, str]:
    """What messages call each file: its base name, or all of its name where two have the same."""
    count = Counter(os.path.basename(path) for path in paths)
    return {path: os.path.basename(path) if count[os.path.basename(path)] == 1 else path for path in paths}


# ---- composing -----------------------------------------------------------------------------------------------------


def _compose(
    parts: Sequence[Part], assumed: FrozenSet[str], labels: Mapping[str, str]
) -> Tuple[Manifest, List[Problem]]:
    """One manifest out of several sources, and what they say twice."""
    twice = _Twice(labels)
    default_owner = _agree(parts, "default_owner", twice)
    role_pattern = _agree(parts, "role_pattern", twice)
    for number, one in enumerate(parts):
        manifest = one.manifest
        for name, profile in manifest.profiles.items():
            twice.once(("profile", name), profile.source, f"the profile {show(name)} is declared twice")
        for role in manifest.roles:
            twice.once(
                ("role", role.name), role.source, f"the role {show(role.name)} is declared twice", role=role.name
            )
            if role.name in assumed:
                twice.problem(
                    role.source,
                    f"the role {show(role.name)} is declared here and stands in assume_roles: one run declares a role",
                    role=role.name,
                )
        for schema in manifest.schemas:
            text = f"the schema {show(schema.name)} is declared twice"
            # Two files may bind different profiles to one schema; only one of them may say whose it is.
            twice.once(("schema", number, schema.name), schema.source, text, role=None)
            if schema.owner is not None and not twice.seen_in(("schema", number, schema.name), schema.source):
                text = f"the owner of the schema {show(schema.name)} is declared twice"
                twice.once(("owner", schema.name), f"{schema.source}.owner", text, role=schema.owner)
        if len(parts) > 1:
            _once_across(number, manifest, twice)
    manifests = [one.manifest for one in parts]
    return (
        Manifest(
            default_owner=default_owner[0],
            default_owner_source=default_owner[1] or "default_owner",
            role_pattern=role_pattern[0] or Manifest.role_pattern,
            profiles={name: profile for one in reversed(manifests) for name, profile in one.profiles.items()},
            schemas=tuple(item for one in manifests for item in one.schemas),
            roles=tuple(item for one in manifests for item in one.roles),
            memberships=tuple(item for one in manifests for item in one.memberships),
            grants=tuple(item for one in manifests for item in one.grants),
            default_privileges=tuple(item for one in manifests for item in one.default_privileges),
            retirements=tuple(item for one in manifests for item in one.retirements),
            scope=replace(
                Manifest().scope,
                roles=tuple(item for one in manifests for item in one.scope.roles),
                schemas=tuple(item for one in manifests for item in one.scope.schemas),
                ignore_roles=tuple(item for one in manifests for item in one.scope.ignore_roles),
            ),
            maybe_limits=tuple(item for one in manifests for item in one.maybe_limits),
            databases=tuple(item for one in manifests for item in one.databases),
            clusters=tuple(item for one in manifests for item in one.clusters),
            assume_roles=assumed,
            files=labels,
            mentioned=tuple(item for one in manifests for item in one.mentioned),
            unreadable=frozenset(name for one in manifests for name in one.unreadable),
        ),
        twice.problems,
    )


def _agree(parts: Sequence[Part], name: str, twice: _Twice) -> Tuple[Optional[str], Optional[str]]:
    """A single value that several sources may give when they give the same one."""
    value: Optional[str] = None
    place: Optional[str] = None
    for one in parts:
        if name not in one.given:
            continue
        other = getattr(one.manifest, name)
        if place is None:
            value, place = other, one.given[name]
        elif other != value:
            twice.problem(
                one.given[name], f"{show(other)} differs from {show(value)} in {place}: a manifest has one {name}"
            )
    return value, place


def _once_across(number: int, manifest: Manifest, twice: _Twice) -> None:
    """Rules and edges that another file declares as well. Within one file they add up."""
    for group, member, edge in manifest.edges():
        text = f"the membership of {show(member)} in {show(group)} is declared in two files"
        for side in ("group", "member") if edge.side is None else (edge.side,):
            twice.once_per_part(("edge", group, member, side), number, edge.source, text, role=member)
    for rule in manifest.grants:
        for name in sorted(rule.privileges):
            # Rules with columns meet where they name one column; the object itself is another target.
            for column in rule.columns or (None,):
                key = ("grant", rule.role, rule.object, column, rule.present, name)
                text = f"the same rule for {show(rule.role)} ({name}) is declared in two files"
                twice.once_per_part(key, number, rule.source, text, role=rule.role)
    for entry in manifest.default_privileges:
        for grant in entry.grant:
            for name in sorted(grant.privileges):
                default = ("default", entry.owner, entry.schema, grant.role, grant.on_type, grant.present, name)
                text = f"the same default privilege for {show(grant.role)} ({name}) is declared in two files"
                twice.once_per_part(default, number, grant.source, text, role=grant.role)


class _Twice:
    """Finds what is declared twice, and names both places."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.problems: List[Problem] = []
        self._labels = labels
        self._first: Dict[Tuple[Any, ...], Tuple[int, str]] = {}
        self._told: Dict[Tuple[str, str], bool] = {}

    def problem(self, source: str, message: str, *, role: Optional[str] = None) -> None:
        """One more problem at a place that has a source already."""
        self.problems.append(
            Problem(path=source, file=file_of(source, self._labels), role=_named(role), message=message)
        )

    def once(self, key: Tuple[Any, ...], source: str, message: str, *, role: Optional[str] = None) -> None:
        """The thing may be declared only once."""
        first = self._first.setdefault(key, (0, source))[1]
        if first != source:
            self.problem(source, f"{message}: in {first} and in {source}", role=role)

    def seen_in(self, key: Tuple[Any, ...], source: str) -> bool:
        """Whether the thing was declared before, elsewhere."""
        return self._first[key][1] != source

    def once_per_part(
        self, key: Tuple[Any, ...], number: int, source: str, message: str, *, role: Optional[str]
    ) -> None:
        """The thing may be declared in one part only; two places are told once, however many privileges they share."""
        part_number, first = self._first.setdefault(key, (number, source))
        if part_number != number and (first, source) not in self._told:
            self._told[(first, source)] = True
            self.problem(source, f"{message}: in {first} and in {source}", role=role)


def _named(role: Optional[str]) -> Optional[str]:
    return None if role == privileges.PUBLIC else role
