# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Judges raw values against the spec: every problem with its path, nothing coerced that a person did not mean."""

from __future__ import annotations

import datetime
import difflib
import math
import re
from collections.abc import Mapping
from typing import Any, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Set, Tuple

from .. import privileges
from ..masking import by_chance
from ..problems import MANIFEST_INVALID, Problem
from ..records import dataclass
from . import settings
from .spec import Option, Options
from .texts import TEXTS, Refused, Unplain, check_name, describe, show

#: How many comparisons the search for nearest names may cost for one set of names: a second or two.
_SUGGESTIONS = 50000


#: How many problems one source can have. Nobody reads more.
_MOST_PROBLEMS = 10000


class _Broken:
    """What a value becomes that was given and cannot be used: its problem is reported, so nothing else should be."""

    def __repr__(self) -> str:
        return "BROKEN"


BROKEN = _Broken()


class Item(NamedTuple):
    """One usable element of a list, with the path it had before unusable ones were left out."""

    path: str
    value: Any


@dataclass(frozen=True)
class Fields:
    """The usable values of one dict by the options' own names, and the names of those that were given and are not."""

    path: str
    values: Mapping[str, Any]
    broken: FrozenSet[str]

    def __getitem__(self, name: str) -> Any:
        """The value; None when it was omitted or unusable."""
        return self.values.get(name)

    def items(self, name: str) -> Tuple[Item, ...]:
        """The usable elements of a list."""
        return self.values.get(name) or ()

    def omitted(self, name: str) -> bool:
        """Whether nothing was given, not even something unusable."""
        return name not in self.values and name not in self.broken

    def place(self, name: str) -> str:
        """The path of one of the keys."""
        return join(self.path, name)


def join(path: str, key: object) -> str:
    """The path of a key in a dict."""
    name = key if isinstance(key, str) and re.fullmatch(r"[\w$@+-]{1,70}", key) else show(key)
    return f"{path}.{name}" if path else str(name)


def no_text(raw: Any, *, secret: bool = False) -> str:
    """What is wrong with a value that should be text."""
    whole = isinstance(raw, (Mapping, list, tuple)) or raw is None
    advice = "" if whole else ": quote it, or use | string in a template"
    return f"must be text, not {describe(raw, secret=secret)}{advice}"


class Suggester:
    """Finds the name that was probably meant. Bounded: a manifest with thousands of unknown names stays fast."""

    def __init__(self, names: Iterable[str], budget: int = _SUGGESTIONS) -> None:
        self._names = sorted(set(names))
        self._lower = {name.lower(): name for name in self._names}
        self._budget = budget
        self._found: Dict[str, Optional[str]] = {}

    def nearest(self, name: str) -> Optional[str]:
        """The nearest known name, or None."""
        if name not in self._found:
            self._found[name] = self._search(name)
        return self._found[name]

    def _search(self, name: str) -> Optional[str]:
        same = self._lower.get(name.lower())
        if same is not None:
            return same
        if self._budget < len(self._names):
            return None
        self._budget -= len(self._names)
        near = difflib.get_close_matches(name, self._names, n=1, cutoff=0.7)
        return near[0] if near else None

    def hint(self, name: str) -> str:
        """``; did you mean 'x'?`` or nothing."""
        near = self.nearest(name)
        return f"; did you mean {show(near)}?" if near is not None else ""


# ---- the judge ---------------------------------------------------------------------------------------------------


class Judge:
    """Collects what is wrong with one source: the module's options, or one file.

    ``label`` stands before every path; ``native`` says that values have real types (a file), so that text is never
    taken for a boolean or a number. ``role``: whom all of it is about. ``secret``: passwords may stand in it, in a
    wrong place.
    """

    def __init__(
        self,
        label: Optional[str] = None,
        file: Optional[str] = None,
        native: bool = False,
        *,
        role: Optional[str] = None,
        secret: bool = False,
    ) -> None:
        self.label = label
        self.file = file
        self.native = native
        self.problems: List[Problem] = []
        self._role = role
        self._secret = secret
        self._suggesters: Dict[Tuple[str, ...], Suggester] = {}
        self._requirements: Dict[int, Tuple[Options, Tuple[str, ...]]] = {}

    def source(self, path: str) -> str:
        """A path as messages print it."""
        return f"{self.label}: {path}" if self.label and path else (self.label or path)

    def report(
        self,
        path: str,
        message: str,
        *,
        role: Optional[str] = None,
        about: Optional[str] = None,
        hint: Optional[str] = None,
        code: str = MANIFEST_INVALID,
    ) -> None:
        """One more problem. ``about`` is the object it is about."""
        if len(self.problems) > _MOST_PROBLEMS:
            return
        if len(self.problems) == _MOST_PROBLEMS:
            message = f"there are more problems than these {_MOST_PROBLEMS}: correct them first"
        who = role or self._role
        self.problems.append(
            Problem(
                path=self.source(path),
                file=self.file,
                role=None if who == privileges.PUBLIC else who,
                object=about,
                message=message,
                hint=hint,
                code=code,
            )
        )

    def suggest(self, names: Iterable[str], name: str) -> str:
        """``; did you mean 'x'?`` or nothing."""
        return self._suggester(names).hint(name)

    def _suggester(self, names: Iterable[str]) -> Suggester:
        key = tuple(names)
        if key not in self._suggesters:
            self._suggesters[key] = Suggester(key)
        return self._suggesters[key]

    # -- dicts --

    def fields(self, raw: Any, holder: Option, path: str) -> Optional[Fields]:
        """A dict whose keys are ``holder['options']``. None when it is unusable as a whole."""
        options: Options = holder["options"]
        if not isinstance(raw, Mapping):
            secret = self._secret or (isinstance(raw, str) and not by_chance(raw))
            self.report(path, f"must be a dict, not {describe(raw, secret=secret)}")
            return None
        values: Dict[str, Any] = {}
        broken: Set[str] = set()
        written: Dict[str, object] = {}
        for key, item in raw.items():
            name = self._key(key, item, holder, path, broken)
            if name is None or item is None:
                continue
            if name in written:
                self.report(
                    join(path, key), f"says the same as {show(written[name])}, which is given too: leave one out"
                )
                continue
            written[name] = key
            # A known key needs no care in the path.
            place = join(path, "on" if key is True else key) if name != key or not path else f"{path}.{name}"
            value = self.value(item, options[name], place)
            if value is BROKEN:
                broken.add(name)
            else:
                values[name] = value
        for name in self._required(options):
            if name not in values and name not in broken:
                self.report(join(path, name), "is required")
                broken.add(name)
        return Fields(path, values, frozenset(broken))

    def _required(self, options: Options) -> Tuple[str, ...]:
        """The names of the required ones among some options, worked out once for all dicts that have them."""
        known = self._requirements.get(id(options))
        if known is None:
            names = tuple(name for name, option in options.items() if option.get("required"))
            # Kept together, so that no other options can come to have this identity.
            known = self._requirements[id(options)] = (options, names)
        return known[1]

    def _key(self, key: Any, item: Any, holder: Option, path: str, broken: Set[str]) -> Optional[str]:
        """The option that a key means, or None (after saying why). What was probably meant counts as broken."""
        options: Options = holder["options"]
        if isinstance(key, str) and key in options:
            return key
        place = join(path, key)
        aliases = {alias: name for name, option in options.items() for alias in option.get("aliases", ())}
        if key is True and self.native and "on" in aliases:
            return aliases["on"]
        if isinstance(key, str):
            if key in aliases:
                return aliases[key]
            if key in holder.get("refused", {}):
                if item is not None:
                    self.report(place, holder["refused"][key])
                return None
        if (key is True or key in ("true", "True")) and "on" in aliases:
            self.report(place, f"unknown key {show(key)}: YAML reads an unquoted 'on' as true, write '{aliases['on']}'")
            broken.add(aliases["on"])
            return None
        known = list(options) + list(aliases)
        near = self._suggester(known).nearest(key) if isinstance(key, str) else None
        advice = f"known here: {', '.join(options)}" if near is None else f"did you mean {show(near)}?"
        self.report(place, f"unknown key {show(key)}; {advice}")
        if near is not None:
            broken.add(aliases.get(near, near))
        return None

    # -- values --

    def value(self, raw: Any, option: Option, path: str) -> Any:
        """One value that is not null, judged; BROKEN when it is unusable."""
        if isinstance(raw, _Broken):
            return BROKEN
        kind = option["type"]
        if kind == "bool":
            return self._bool(raw, option, path)
        if kind == "int":
            return self._int(raw, option, path)
        if kind == "list":
            return self._list(raw, option, path)
        if kind == "dict":
            if "values" in option:
                return self._free_dict(raw, option, path)
            if option.get("settings"):
                return self._settings(raw, path)
            fields = self.fields(raw, option, path)
            return BROKEN if fields is None else fields
        if kind == "raw":
            if isinstance(raw, Mapping):
                fields = self.fields(raw, {"options": option["of_dict"]}, path)
                return BROKEN if fields is None else fields
            if not isinstance(raw, str):
                whole = isinstance(raw, (list, tuple))
                self.report(
                    path,
                    f"must be a name, or a dict with {', '.join(option['of_dict'])}, not {describe(raw)}"
                    f"{'' if whole else ': quote a name'}",
                )
                return BROKEN
        if option.get("or_number") and isinstance(raw, int) and not isinstance(raw, bool):
            # Which texts may be numbers depends on other keys: whoever uses the value judges that.
            return raw
        return self._text(raw, option, path)

    def _described(self, raw: Any) -> str:
        """A value as a message shows it. Where passwords stand, a longer text may be one in the wrong place."""
        return describe(raw, secret=self._secret and isinstance(raw, str) and not by_chance(raw))

    def _bool(self, raw: Any, option: Option, path: str) -> Any:
        value = raw
        # ansible-core before native types renders a templated boolean as text.
        if isinstance(raw, str) and not self.native and raw.lower() in ("true", "false"):
            value = raw.lower() == "true"
        if not isinstance(value, bool):
            self.report(path, f"must be true or false, not {self._described(raw)}; write true or false")
            return BROKEN
        return value

    def _int(self, raw: Any, option: Option, path: str) -> Any:
        value = raw
        if isinstance(raw, str) and not self.native and re.fullmatch(r"0|-?[1-9][0-9]{0,18}", raw):
            value = int(raw)
        if not isinstance(value, int) or isinstance(value, bool):
            self.report(path, f"must be a whole number in decimal digits, not {self._described(raw)}")
            return BROKEN
        low, high = option.get("minimum"), option.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            self.report(path, f"must be between {low} and {high}, not {show(value)}")
            return BROKEN
        return value

    def _text(self, raw: Any, option: Option, path: str) -> Any:
        judge = option.get("judge")
        text = raw
        if judge == "instant" and isinstance(raw, datetime.datetime):
            text = raw.isoformat()
        if not isinstance(text, str):
            self.report(path, no_text(raw, secret=bool(option.get("no_log"))))
            return BROKEN
        choices = option.get("choices")
        if choices is not None and text not in choices:
            listed = ", ".join(choices)
            must = f"must be one of {listed}" if len(choices) > 1 else f"must be {listed} where it is given"
            note = option.get("choice_notes", {}).get(text)
            shown = show(text) if not self._secret or by_chance(text) else "this text"
            self.report(path, f"{must}, not {shown}{': ' + note if note else self.suggest(choices, text)}")
            return BROKEN
        if judge is None:
            return text
        try:
            return TEXTS[judge](text)
        except Refused as exc:
            dated = by_chance(text) or re.fullmatch(r"[\d:.,+TZtz /-]{1,40}", text) is not None
            hidden = judge == "instant" and self._secret and not dated
            self.report(path, "is not a point in time" if hidden else str(exc))
            return BROKEN

    def _list(self, raw: Any, option: Option, path: str) -> Any:
        if not isinstance(raw, (list, tuple)):
            # Text in the place of a list may be a whole manifest, which holds passwords.
            manifest = option["elements"] == "dict" or (isinstance(raw, str) and ":" in raw)
            secret = self._secret or bool(option.get("secret")) or manifest
            self.report(path, f"must be a list, not {describe(raw, secret=secret)}")
            return BROKEN
        if not raw and option.get("nonempty"):
            self.report(path, "must not be empty")
            return BROKEN
        element: Option = {**option, "type": option["elements"]}
        items: List[Item] = []
        outer = self._role, self._secret
        about = option.get("about")
        for number, entry in enumerate(raw):
            place = f"{path}[{number}]"
            if entry is None:
                self.report(place, "must not be null: leave the item out")
                continue
            if about is not None:
                name = entry.get(about) if isinstance(entry, Mapping) else None
                self._role = name if isinstance(name, str) else outer[0]
            self._secret = outer[1] or bool(option.get("secret"))
            value = self.value(entry, element, place)
            self._role, self._secret = outer
            if value is not BROKEN:
                items.append(Item(place, value))
        return tuple(items)

    def _free_dict(self, raw: Any, option: Option, path: str) -> Any:
        if not isinstance(raw, Mapping):
            self.report(path, f"must be a dict, not {describe(raw)}")
            return BROKEN
        holder: Option = {"options": option["values"]}
        found: Dict[str, Fields] = {}
        for key, item in raw.items():
            place = join(path, key)
            if not isinstance(key, str):
                self.report(place, f"the name must be text, not {describe(key)}: quote it")
                continue
            try:
                check_name(key)
            except Refused as exc:
                self.report(place, f"the name {exc}")
                continue
            fields = None if isinstance(item, _Broken) else self.fields({} if item is None else item, holder, place)
            found[key] = fields if fields is not None else Fields(place, {}, frozenset(holder["options"]))
        return found

    def _settings(self, raw: Any, path: str) -> Any:
        """Settings of a role by their folded names."""
        if not isinstance(raw, Mapping):
            self.report(path, f"must be a dict, not {describe(raw, secret=self._secret)}")
            return BROKEN
        found: Dict[str, Tuple[str, ...]] = {}
        written: Dict[str, str] = {}
        for key, item in raw.items():
            place = join(path, key)
            if not isinstance(key, str):
                self.report(place, f"the name must be text, not {describe(key)}: quote it")
                continue
            if item is None or isinstance(item, _Broken):
                continue
            try:
                name = settings.parameter_name(key)
                if name in written:
                    raise Refused(f"is the setting {show(written[name])}, which is given too: leave one out")
                written[name] = key
                found[name] = settings.declared(name, self._setting(item))
            except Refused as exc:
                self.report(place, str(exc))
        return found

    def _setting(self, raw: Any) -> str:
        """A setting's value as text: a boolean as PostgreSQL writes it, a number as it was written."""
        if isinstance(raw, bool):
            return "on" if raw else "off"
        if isinstance(raw, Unplain):
            return raw.text
        if isinstance(raw, int) or (isinstance(raw, float) and math.isfinite(raw)):
            return str(raw)
        if isinstance(raw, str):
            return raw
        listed = ": write a list as one text, with commas" if isinstance(raw, (list, tuple)) else ""
        raise Refused(f"must be text, a number or a boolean, not {describe(raw, secret=self._secret)}{listed}")


def canonical_privileges(
    judge: Judge, items: Iterable[Item], kind: Optional[str], columns: bool = False
) -> FrozenSet[str]:
    """The privileges of a rule as the catalog spells them; ALL swallows the others.

    On columns ALL is resolved here: they have the same privileges on every server.
    """
    found: Set[str] = set()
    for item in items:
        name = privileges.canonical_privilege(item.value)
        if kind is not None and name != privileges.ALL:
            known = _known_privileges(kind, columns)
            if name not in known:
                listed = ", ".join([*known, privileges.ALL])
                what = f"columns, which have {listed}" if columns else f"the type {kind}, which has {listed}"
                judge.report(item.path, f"{show(item.value)} is not a privilege of {what}")
                continue
        found.add(name)
    if privileges.ALL not in found:
        return frozenset(found)
    return frozenset(_known_privileges(kind, columns)) if kind and columns else frozenset({privileges.ALL})


def _known_privileges(kind: str, columns: bool) -> Tuple[str, ...]:
    table = privileges.KINDS[kind]
    return tuple(name for name in table.privileges if not columns or name in table.column_privileges)
