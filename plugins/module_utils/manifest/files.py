# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Reads YAML files of a manifest, with the paths of what YAML itself would pass over in silence."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

try:
    import yaml
except ImportError:
    HAS_YAML = False
else:
    HAS_YAML = True

from ..reading import read_whole
from .foreign.recognize import BESIDE
from .texts import TEMPLATE, Unplain, show
from .validate import BROKEN, Judge, join

_TAG = "tag:yaml.org,2002:"
#: How many values aliases may add. A few lines of them can stand for more than any memory holds.
_MOST_ADDED = 500000

_NO_TEMPLATES = "files are read where the module runs and are not templated (the role reads them with include_vars)"


class Document(NamedTuple):
    """One document of a file. ``prefix`` stands before every path in it: empty, or ``document 3 (Role app): ``.

    ``merged``: the paths of dicts with a merge key (``<<``). What it stands for is in the content.
    """

    content: Dict[Any, Any]
    prefix: str = ""
    merged: Tuple[str, ...] = ()


def read(judge: Judge, path: str, given: Optional[bytes] = None) -> Optional[List[Document]]:
    """The file's documents, or None (after saying why). Single values that cannot be used are BROKEN in them.

    ``given``: what is in a file that is not here. Only a file in which each document is a Kubernetes resource may
    have several.
    """
    text = _text(judge, path, given)
    if text is None:
        return None
    # The parser in C where PyYAML has it: a manifest with thousands of rules takes seconds without.
    kind: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = kind(text)
    try:
        node = loader.get_single_node()
        reader = _Reader(judge, loader)
        content = None if node is None else BROKEN if _too_much(judge, [node]) else reader.value(node, "")
    except yaml.YAMLError as exc:
        if str(getattr(exc, "problem", None)) == _ANOTHER:
            return _stream(judge, kind, text)
        judge.report("", _yaml_problem(exc, text))
        return None
    except RecursionError:
        judge.report("", "is nested too deeply")
        return None
    finally:
        loader.dispose()
    if content is BROKEN:
        return None
    if content is None or content == {}:
        judge.report("", "is empty: a manifest file holds the sections as its keys")
        return None
    if not isinstance(content, dict):
        judge.report("", "must be a dict with the sections as its keys")
        return None
    return [Document(content, merged=tuple(reader.merged))]


#: PyYAML's words for a file with more than one document.
_ANOTHER = "but found another document"


def _too_much(judge: Judge, nodes: List[Any]) -> bool:
    if sum(map(_added, nodes)) <= _MOST_ADDED:
        return False
    judge.report("", f"stands for too much: its aliases add more than {_MOST_ADDED} values to what is written")
    return True


def _stream(judge: Judge, kind: Any, text: str) -> Optional[List[Document]]:
    """The documents of a file with several, or None (after saying why)."""
    loader = kind(text)
    found: List[Document] = []
    usable = True
    try:
        nodes: List[Any] = []
        while loader.check_node():
            nodes.append(loader.get_node())
        other = [number for number, node in enumerate(nodes, 1) if not _is_empty(node) and _title(node) is None]
        if other:
            judge.report(
                "",
                "has several documents, as only a file of Kubernetes resources may: document"
                f" {other[0]} has no apiVersion and kind",
            )
            return None
        if _too_much(judge, nodes):
            return None
        for number, node in enumerate(nodes, 1):
            if _is_empty(node):
                continue
            prefix = f"document {number} ({_title(node)}): "
            reader = Judge(label=judge.source(prefix[:-2]), file=judge.file, native=True)
            content = _Reader(reader, loader).value(node, "")
            judge.problems.extend(reader.problems)
            if isinstance(content, dict):
                found.append(Document(content, prefix))
            else:
                usable = False
    except yaml.YAMLError as exc:
        judge.report("", _yaml_problem(exc, text))
        return None
    except RecursionError:
        judge.report("", "is nested too deeply")
        return None
    finally:
        loader.dispose()
    if usable and not found:
        judge.report("", "is empty: a manifest file holds the sections as its keys")
    return found if usable and found else None


def _is_empty(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _TAG + "null"


def _title(node: Any) -> Optional[str]:
    """Kind and name of a resource; None for what is none."""
    top = _scalars(node)
    if "apiVersion" not in top or "kind" not in top:
        return None
    named: Dict[str, str] = {}
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value == "metadata":
            named = _scalars(value)
    title = " ".join(text for text in (top["kind"], named.get("name", "")) if text)
    return title if re.fullmatch(r"[\w.@ -]{1,150}", title) else "resource"


def _scalars(node: Any) -> Dict[str, str]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {
        key.value: value.value
        for key, value in node.value
        if isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode)
    }


def _text(judge: Judge, path: str, given: Optional[bytes]) -> Optional[str]:
    try:
        return (read_whole(path)[0] if given is None else given).decode("utf-8-sig")
    except OSError as exc:
        judge.report("", f"cannot be read: {exc.strerror or type(exc).__name__} ({os.path.dirname(path)})")
    except UnicodeDecodeError as exc:
        judge.report("", f"is not UTF-8 text (byte {exc.start})")
    except ValueError:
        judge.report("", "cannot be read: the path is not a file's name")
    return None


def _yaml_problem(exc: Any, text: str) -> str:
    # PyYAML's own message quotes the line, which may hold a secret: the kind of problem, the place and YAML's own signs
    # are kept.
    mark = getattr(exc, "problem_mark", None)
    where = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
    said = str(getattr(exc, "problem", None) or "")
    problem = re.sub(r"\s*'(?![,:?\[\]{}-]')[^']*'|\s*\"[^\"]*\"", "", said).strip()
    template = f"; it contains a template: {_NO_TEMPLATES}" if TEMPLATE.search(text) else ""
    return f"is not valid YAML{where}{': ' + problem if problem else ''}{template}"


def _added(root: Any) -> int:
    """How many values more than written a document has, because aliases repeat what they stand for.

    An alias inside of what it stands for counts as nothing here. Stops counting where it is far too many.
    """
    sizes: Dict[int, int] = {}

    def size(node: Any) -> int:
        key = id(node)
        if key not in sizes:
            sizes[key] = 0
            inner = node.value if isinstance(node, yaml.CollectionNode) else ()
            pairs = isinstance(node, yaml.MappingNode)
            sizes[key] = 1 + sum(size(item) for entry in inner for item in (entry if pairs else (entry,)))
        return sizes[key]

    return size(root) - len(sizes)


class _Reader:
    """Turns YAML nodes into values, knowing the path of each."""

    def __init__(self, judge: Judge, loader: Any) -> None:
        self._judge = judge
        self._loader = loader
        self._done: Dict[Tuple[int, bool], Any] = {}
        self._open: Set[int] = set()
        #: Whether braces are only text, because nothing is read from where they stand.
        self._unread = False
        #: The paths of dicts with a merge key.
        self.merged: List[str] = []

    def value(self, node: Any, path: str) -> Any:
        """A node's value. A node that an alias repeats is read once."""
        key, done = id(node), (id(node), self._unread)
        if done in self._done:
            return self._done[done]
        if key in self._open:
            self._judge.report(path, "is an alias of something that contains it")
            return BROKEN
        self._open.add(key)
        value = self._value(node, path)
        self._open.discard(key)
        self._done[done] = value
        return value

    def _passed_over(self, node: Any, path: str) -> Any:
        """The value of a node that nothing is read from."""
        before, self._unread = self._unread, True
        value = self.value(node, path)
        self._unread = before
        return value

    def _value(self, node: Any, path: str) -> Any:
        if not node.tag.startswith(_TAG):
            self._judge.report(path, _tag_problem(node.tag))
            return BROKEN
        tag = node.tag[len(_TAG) :]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, tag, path)
        if isinstance(node, yaml.SequenceNode) and tag == "seq":
            return [self.value(item, f"{path}[{number}]") for number, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and tag == "map":
            return self._mapping(node, path)
        self._judge.report(path, f"has the YAML type {tag}, which a manifest does not use")
        return BROKEN

    def _scalar(self, node: Any, tag: str, path: str) -> Any:
        if tag in ("str", "value", "merge"):
            if not self._unread and TEMPLATE.search(node.value):
                self._judge.report(path, f"contains a template: {_NO_TEMPLATES}")
                return BROKEN
            return node.value
        if tag == "int":
            # Python refuses to convert thousands of digits; no number of a manifest has more than ten.
            return int(node.value) if re.fullmatch(r"0|-?[1-9][0-9]{0,29}", node.value) else Unplain(node.value)
        if tag == "float":
            return Unplain(node.value)
        if tag in ("bool", "null", "timestamp"):
            try:
                return self._loader.construct_object(node)
            except (ValueError, OverflowError, KeyError, AttributeError):
                # An explicit tag, such as !!bool, says that any text is one.
                return node.value
        self._judge.report(path, f"has the YAML type {tag}, which a manifest does not use")
        return BROKEN

    def _mapping(self, node: Any, path: str) -> Any:
        unread = _unread_keys(node, path)
        lines: Dict[Any, Tuple[Any, int]] = {}
        pairs: List[Tuple[Any, Any]] = []
        unusable = False
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                self.merged.append(path)
                pairs.append((key_node, value_node))
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._judge.report(path, f"has a key that is not text; if it is meant as a template: {_NO_TEMPLATES}")
                unusable = True
                continue
            key = self._scalar(key_node, key_node.tag[len(_TAG) :], path)
            if key is BROKEN:
                unusable = True
                continue
            line = key_node.start_mark.line + 1
            if key in lines:
                self._judge.report(
                    join(path, "on" if key is True else key),
                    f"duplicate key {show(key)} (lines {lines[key][1]} and {line}): YAML would silently take the last",
                )
                continue
            lines[key] = (key, line)
            pairs.append((key_node, value_node))
        node.value = pairs
        self._loader.flatten_mapping(node)
        # Merged pairs come first, so what the mapping itself says wins.
        result: Dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            key = self._scalar(key_node, key_node.tag[len(_TAG) :], path)
            if key is not BROKEN:
                look = self._passed_over if key in unread else self.value
                result[key] = look(value_node, join(path, "on" if key is True else key))
        # Where no key was usable, it was no mapping: most likely {{ a template }} without quotes.
        return BROKEN if unusable and not result else result


def _unread_keys(node: Any, path: str) -> FrozenSet[str]:
    """The keys of a mapping whose values nothing is read from: notes, and what a resource beside the others holds."""
    if path == "metadata" or path.endswith(".metadata"):
        return frozenset({"annotations"})
    top = _scalars(node)
    if top.get("apiVersion") == "v1" and top.get("kind", "").replace("List", "") in BESIDE:
        return frozenset(key.value for key, _value in node.value if key.value not in (*top, "metadata"))
    return frozenset()


def _tag_problem(tag: str) -> str:
    if tag == "!vault":
        return "is encrypted with ansible-vault (!vault): files are read where the module runs and are not decrypted"
    # Which one is not said: an unquoted text that begins with ! is one, and may be a password.
    return "has a YAML tag (it begins with !), which a manifest does not use: quote it if it is meant as text"
