# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Inputs: what fits the spec, what almost does, and what is not even a manifest.

Everything that fits is drawn from the collection's own spec, so a new option is fuzzed as soon as it is there.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import seeds
import yaml
from ansible_collections.pg_access.reconcile.plugins.module_utils.connection import CONNECTION_OPTIONS
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.spec import (
    MANIFEST_OPTIONS,
    RUN_OPTIONS,
    SECTIONS,
)
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

LONG = os.environ.get("FUZZ") == "long"
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "10000" if LONG else "300"))


def examples(factor: float = 1) -> settings:
    """How a property is run: ``factor`` times as many inputs as usual."""
    return settings(
        max_examples=max(1, int(EXAMPLES * factor)),
        derandomize=not LONG,
        database=None,
        deadline=None,
        report_multiple_bugs=LONG,
        phases=[Phase.generate, Phase.shrink],
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )


#: A password or a key: no output may have it in any form.
MARKER = "Hush-4711-geheim"

SEEDS = seeds.manifests(SECTIONS)
OTHERS = seeds.others()

ROLES = ("app", "app_owner", "reader", "legacy", "g1", "g2", 'Odd "Role"')

#: Texts that may fit, by what the spec says of them. What is not here gets any name.
TEXTS: dict[str | None, tuple[str, ...]] = {
    "role": ROLES,
    "declared_role": ROLES,
    "grantee": (*ROLES, "PUBLIC", "public"),
    "schema": ("inv", "public", "Odd Schema"),
    "declared_schema": ("inv", "public", "Odd Schema"),
    "object_name": ("*", "t", "f(int)", "f", "work_mem", "16403", "other"),
    "column": ("a", "b"),
    "comment": ("", "Some text"),
    "password": ("Pa55-word-one", "md5" + "0" * 32, "x"),
    "environment_name": ("FUZZ_PASSWORD", "FUZZ_NOT_SET"),
    "profile_name": ("editor", "reader"),
    "pattern": ("app_*", "tmp_?", "[ab]c"),
    "role_pattern": ("{schema}-{profile}", "{profile}"),
    "instant": ("infinity", "2027-01-31T23:59:59+01:00", "2027-01-31 23:59:59Z"),
    None: ("x", "app", "SELECT", "INSERT", "ALL", "USAGE", "EXECUTE", "CONNECT", "CREATE"),
}

SETTINGS = ("search_path", "work_mem", "Statement_Timeout", "app.flag", "datestyle")

Place = tuple[Any, ...]

_NUMBER = st.integers(0, 10**4)


# ---- what fits -----------------------------------------------------------------------------------------------------


def fitting(option: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of the option's type; most are fine by themselves."""
    kind = option.get("type", "str")
    if "choices" in option:
        return st.sampled_from(option["choices"])
    if kind == "bool":
        return st.booleans()
    if kind == "int":
        return st.integers(option.get("minimum", -1), min(option.get("maximum", 10**6), 10**6))
    if kind == "list":
        element = {**option, "type": option.get("elements", "str")}
        return st.lists(fitting(element), min_size=1 if option.get("nonempty") else 0, max_size=3)
    if kind == "raw":
        return st.one_of(st.sampled_from(TEXTS[option["judge"]]), entry(option["of_dict"]))
    if kind == "dict" and "values" in option:
        return st.dictionaries(st.sampled_from(TEXTS["profile_name"]), entry(option["values"]), max_size=2)
    if kind == "dict" and option.get("settings"):
        values = st.sampled_from(("on", "a, b", '"$user", public', "5MB", 7, True, 1.5))
        return st.dictionaries(st.sampled_from(SETTINGS), values, max_size=2)
    if kind == "dict" and "options" in option:
        return entry(option["options"])
    if kind == "dict":
        return st.dictionaries(st.sampled_from(ROLES), st.sampled_from(TEXTS["password"]), max_size=2)
    if kind == "path":
        return st.just("/nonexistent/file")
    return st.sampled_from(TEXTS.get(option.get("judge"), TEXTS[None]))


def entry(options: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A dict with all required and some of the other keys, now and then by another of their names."""
    names = {name: st.sampled_from([name, name, *option.get("aliases", ())]) for name, option in options.items()}
    values = {name: fitting(option) for name, option in options.items()}

    @st.composite
    def build(draw: Any) -> dict[str, Any]:
        chosen = [name for name, option in options.items() if option.get("required") or draw(st.integers(0, 3)) == 0]
        return {draw(names[name]): draw(values[name]) for name in chosen}

    return build()


#: Options for files, of which there are cases of their own.
FILE_OPTIONS = ("manifest_files", "manifest_contents")

# Made once: building strategies costs more than drawing from them.
_SECTIONS = entry({name: option for name, option in MANIFEST_OPTIONS.items() if name not in FILE_OPTIONS})


@st.composite
def from_spec(draw: Any) -> dict[str, Any]:
    """A manifest made of the spec alone. Names that nobody declares are mostly another run's."""
    whole: dict[str, Any] = draw(_SECTIONS)
    declared = {role["name"] for role in whole.get("roles", ())}
    if draw(st.integers(0, 4)):
        whole["assume_roles"] = [name for name in ROLES if name not in declared]
        for role in whole.get("roles", ()):
            role.pop("password_from_env", None)
    if draw(st.integers(0, 4)):
        whole["fingerprint_key"] = "k-0123456789abcdef0123"
    return whole


#: A manifest that is fine, or nearly.
manifest: st.SearchStrategy[dict[str, Any]] = st.one_of(st.sampled_from(SEEDS).map(copy.deepcopy), from_spec())


# ---- what does not -------------------------------------------------------------------------------------------------

ODD_TEXTS = (
    "", " ", "x", "*", "\0", "a\0b", "\ud800", "\udfff\ud800", "\u202egrant\u202c", "\u200b", "\ufeff", "e\u0301", "\x1b[31m", "\r\n", "\t",
    "é" * 40, "x" * 64, "(", ")", "f(int", "f(int)(int)", "f(,)", '"', "'", "\\", "{profile}", "{schema}{x}", "{", "}}", "{{ x }}", "{% x %}",
    "!vault |", "$encrypted$", "yes", "on", "null", "~", "0", "010", "1e3", "1e999999999", "inf", " -Infinity ", "nan",
    "12:30", "-1", "9" * 25, "٣", "PUBLIC", "none", "pg_", "pg_x",
    "rdsadmin", "postgres", "a.b", "a[0]", "[", "[!", "[]", "[a-", "**", "?", "\U0001f600" * 16, "SCRAM-SHA-256$", "md5", "infinity ",
    "2027-02-30T00:00:00Z", "9999-12-31T23:59:59-15:59", "0001-01-01T00:00:00+15:59", "2027-01-01", "[]", "{}", '{"a": "b"}', "{'a': 1}",
    "(" * 300, "[" * 300, "{" * 300, "[[[[", "a=b", "a=b,c", 'password="x', "postgresql://u:p@h/d", "%s", "%(x)s", "{0}", "{}{}",
)  # fmt: skip

_scalars = st.one_of(
    st.sampled_from(ODD_TEXTS),
    st.sampled_from(
        (None, True, False, 0, -1, 1, 2**31, 2**63, -(2**70), 10**400, 1.5, -0.0, 1e308, float("nan"), float("inf"))
    ),
    st.text(st.characters(), max_size=8),
    st.integers(),
)

ODD_KEYS = (
    "", "x", "true", "on", "True", "name", "role", "roles", "password", "Password", "passwort", "retirements", "members", "columns", "schema",
    "a.b", "a[0]", "\ud800", "\0", "é", "'", "ensure", "_ansible_x", "__class__", "<<", "=", "type", "scope", "options", "k" * 300,
)  # fmt: skip


def _deep(depth: int) -> Any:
    value: Any = "x"
    for step in range(depth):
        value = [value] if step % 2 else {"name": value}
    return value


odd: st.SearchStrategy[Any] = st.one_of(
    _scalars,
    _scalars,
    st.sampled_from(
        ([], [None], [[]], [[[]]], ["x", "x"], [{}], {}, {"": None}, {"name": "x"}, {"true": {}}, {"type": "type"}, [{"role": "legacy"}])
    ).map(copy.deepcopy),
    st.recursive(
        _scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(ODD_KEYS), inner, max_size=3)
        ),
        max_leaves=6,
    ),
    st.sampled_from((3, 30, 150)).map(_deep),
    st.sampled_from((100, 5000)).map(lambda size: "x" * size),
)  # fmt: skip


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """Every place in something nested, but for its root."""
    pending: list[tuple[Any, Place]] = [(value, path)]
    while pending:
        item, at = pending.pop()
        if at:
            yield at
        if isinstance(item, dict):
            pending.extend((inner, (*at, key)) for key, inner in item.items())
        elif isinstance(item, list):
            # A list that was made long is not walked whole.
            pending.extend((inner, (*at, number)) for number, inner in enumerate(item[:20]))


def _retyped(value: Any) -> Any:
    """The value as another type that people write by mistake."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return value[0] if value else ""
    if isinstance(value, dict):
        return [{key: item} for key, item in value.items()]
    return 0


def _misspelt(key: str, at: int, letter: str) -> str:
    at %= len(key) + 1
    return key[:at] + letter + key[at + 1 :]


@st.composite
def changes(
    draw: Any, least: int = 1, most: int = 4, value: st.SearchStrategy[Any] = odd
) -> list[tuple[str, int, Any, int]]:
    kinds = st.sampled_from(
        ("replace", "replace", "delete", "add", "double", "retype", "misspell", "wrap", "copy", "many", "long", "text")
    )
    one = st.tuples(kinds, _NUMBER, value, _NUMBER)
    return draw(st.lists(one, min_size=least, max_size=most))  # type: ignore[no-any-return]


def change(whole: Any, what: str, where: int, new: Any, other: int) -> None:
    """Break one thing in place."""
    found = list(places(whole))
    if not found:
        return
    path = found[where % len(found)]
    holder = whole
    for step in path[:-1]:
        holder = holder[step]
    key = path[-1]
    old = holder[key]
    if what == "replace":
        holder[key] = new
    elif what == "delete":
        del holder[key]
    elif what == "add":
        target = old if isinstance(old, (dict, list)) else holder
        if isinstance(target, dict):
            target[ODD_KEYS[other % len(ODD_KEYS)]] = new
        else:
            target.append(new)
    elif what == "double" and isinstance(holder, list):
        holder.append(copy.deepcopy(old))
    elif what == "retype":
        holder[key] = _retyped(old)
    elif what == "misspell" and isinstance(key, str):
        holder[_misspelt(key, other, "aeiou_-"[other % 7])] = holder.pop(key)
    elif what == "wrap":
        holder[key] = [old] if other % 2 else {"name": old}
    elif what == "copy":
        source: Any = whole
        for step in found[other % len(found)]:
            source = source[step]
        holder[key] = copy.deepcopy(source)
    elif what == "many" and isinstance(old, list) and old:
        # Each item on its own, as after json.loads.
        holder[key] = [copy.deepcopy(item) for item in old for _time in range((3, 30, 200)[other % 3])][:600]
    elif what == "long":
        holder[key] = old * (2, 50, 2000)[other % 3] if isinstance(old, str) and len(old) < 100 else [old] * 3
    elif what == "text":
        holder[key] = json.dumps(old)


@st.composite
def broken(draw: Any, least: int = 1) -> dict[str, Any]:
    """A manifest with some things wrong."""
    whole = draw(manifest)
    for what, where, new, other in draw(changes(least)):
        change(whole, what, where, new, other)
    return whole  # type: ignore[no-any-return]


# ---- the module's other options ------------------------------------------------------------------------------------

_OTHERS = {name: fitting(dict(option)) for name, option in {**RUN_OPTIONS, **CONNECTION_OPTIONS}.items()}

_PARAMETERS = (
    "host",
    "port",
    "dbname",
    "connect_timeout",
    "autocommit",
    "conninfo",
    "row_factory",
    "nope",
    "password",
    "sslmode",
    "",
    "options",
)


@st.composite
def other_options(draw: Any) -> dict[str, Any]:
    """Options of the connection, the policy and the run: some that fit, some that do not."""
    found: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(sorted(_OTHERS)), max_size=4, unique=True)):
        found[name] = draw(_OTHERS[name] if draw(st.booleans()) else odd)
    if draw(st.integers(0, 5)) == 0:
        found["connect_params"] = draw(st.dictionaries(st.sampled_from(_PARAMETERS), _scalars, max_size=3))
    if draw(st.integers(0, 5)) == 0:
        text = json.dumps(draw(st.dictionaries(st.sampled_from(ROLES), _scalars, max_size=2)))
        found["passwords"] = text[: draw(st.integers(1, 60))] if draw(st.booleans()) else text
    return found


_IN_A_ROLE = ("password", "pasword", "passwd", "Password", "list", "dict", "deep", "environment", "member")

#: Where somebody could put a password or a key.
SECRET_SPOTS = (
    *_IN_A_ROLE, "roles as a dict", "roles as text", "role as text", "role as pairs", "role in a list", "roles misspelt", "role in grants",
    "passwords", "passwords as text", "passwords misspelt", "passwords as pairs", "passwords as a list", "login_password", "fingerprint_key",
    "fingerprint_kee", "connect_params", "connect_params as pairs", "url",
)  # fmt: skip


def hide(raw: dict[str, Any], environment: dict[str, str], spot: str) -> None:
    """Put the marker where somebody could put a secret, whatever else is wrong."""
    if not isinstance(raw.get("roles"), list):
        raw["roles"] = []
    roles = raw["roles"]
    if spot in _IN_A_ROLE:
        role: dict[str, Any] | None = next((item for item in roles if isinstance(item, dict)), None)
        if role is None:
            role = {"name": "secretive"}
            roles.append(role)
        if spot == "environment":
            role["password_from_env"] = "FUZZ_PASSWORD"
            environment["FUZZ_PASSWORD"] = MARKER
        elif spot == "member":
            role["members"] = [{"name": "app", "password": MARKER}]
        else:
            shapes = {"list": [MARKER], "dict": {"x": MARKER}, "deep": [{"x": [[MARKER]]}]}
            role["password" if spot in shapes else spot] = shapes.get(spot, MARKER)
        return
    entry_ = {"name": "secretive", "password": MARKER}
    given: dict[str, tuple[str, Any]] = {
        "roles as a dict": ("roles", entry_),
        "roles as text": ("roles", json.dumps([entry_])),
        "role as text": ("roles", [*roles, json.dumps(entry_)]),
        "role as pairs": ("roles", [*roles, f"name=secretive password={MARKER}"]),
        "role in a list": ("roles", [*roles, [entry_]]),
        "roles misspelt": ("rolse", [entry_]),
        "role in grants": ("grants", [entry_]),
        "passwords": ("passwords", {"app": MARKER, "nobody": MARKER + "2"}),
        "passwords as text": ("passwords", json.dumps({"app": MARKER})),
        "passwords misspelt": ("paswords", {"app": MARKER}),
        "passwords as pairs": ("passwords", f"app={MARKER}"),
        "passwords as a list": ("passwords", [{"app": MARKER}]),
        "connect_params": ("connect_params", {"password": MARKER, "dbname": "app"}),
        "connect_params as pairs": ("connect_params", f"password={MARKER} dbname=app"),
        "url": ("login_db", f"postgresql://app:{MARKER}@db/app"),
    }
    name, value = given.get(spot, (spot, MARKER))
    raw[name] = value


@dataclass
class Call:
    """One call of the module. ``secret``: where the marker is hidden. ``file``: the manifest file's content."""

    arguments: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)
    secret: str | None = None
    check: bool = True


@st.composite
def calls(draw: Any) -> Call:
    """The module with its manifest as options."""
    arguments = draw(st.one_of(broken(), broken(), manifest))
    arguments.setdefault("login_db", "app")
    if draw(st.integers(0, 2)) == 0:
        arguments.update(draw(other_options()))
    call = Call(arguments, {"FUZZ_PASSWORD": "Pa55-word-from-env"}, check=draw(st.booleans()))
    if draw(st.integers(0, 2)) == 0:
        call.secret = draw(st.sampled_from(SECRET_SPOTS))
        hide(arguments, call.environment, call.secret)
    return call


# ---- files ---------------------------------------------------------------------------------------------------------

#: Values as only YAML can spell them.
SNIPPETS = (
    "!!python/object/apply:os.system ['true']", "!!python/name:os.system", "!vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162", "!unsafe '{{ x }}'",
    "!x y", "!", "!<tag:yaml.org,2002:str> x", "!<>", "&a [*a]", "&a {x: *a}", "*nowhere", "&a x", "[&b x, *b]", "{<<: {name: x}}",
    "{<<: [{name: x}, {name: y}], name: z}", "{<<: x}", "{<<: [x]}", "{<<: null}", "<<", "=", "!!binary aGVsbG8=", "!!binary x", "!!set {a, b}",
    "!!omap [a: 1]", "!!pairs [a: 1]", "!!str 5", "!!int x", "!!int ''", "!!float x", "!!bool x", "!!null x", "!!timestamp x", "!!map []",
    "!!seq {}", "!!str {}", "!!merge x", "!!value x", "{? [a, b] : c}", "{? {a: b} : c}", "{? !!int x : c}", "{1: a, 1.0: b, true: c}", "{null: a}",
    "{2024-01-01: a}", "{.nan: a, .nan: b}", "12:30:45", "0o17", "0x1f", "0b1", "1_000", "1e400", ".inf", "-.inf", ".nan", "9" * 5000, "-0", "+1",
    "2024-01-01", "2024-13-45", "2024-01-01T25:00:00Z", "2024-01-01T00:00:00+99:99", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59",
    "yes", "NO", "on", "~", "null", "", "@x", "`x`", "%x", "{{ x }}", "{% x %}", "'{{ x }}'", "|\n  text", ">\n  text", '"\\ud800"', '"\\0"',
    '"\\U00110000"', '"\\x"', "'", '"', "[", "{", "]", "}", "- x", "x: y", "? x", "#", "\t", "---", "...", "\u2028", "\u0085", "\x07",
)  # fmt: skip

#: How a password may stand in a file, and how it must not: unquoted it may begin with what YAML takes for its own.
SECRET_FORMS = ("%s", "'%s'", "!%s", "!!int %s", "!!x %s", "&%s x", "*%s", "&a %s", "@%s", "`%s", "%%s", "|\n  %s", "[%s, %s]", "{%s: %s}", "%s: %s", "'%s",
                '"%s', "{{ %s }}", "{%s", "? %s", "- %s", "#%s")  # fmt: skip

JUNK = "{}[]:,&*!|>%@#\"'\n\t -?xé{%<<~0\0\u202e\ufeff"

ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1")


@dataclass
class File:
    """A manifest file: its bytes, and what goes with it as options."""

    content: bytes
    assume_roles: Any = None
    passwords: Any = None


def spelt(draw: Any, whole: dict[str, Any], secret: bool) -> str:
    """A manifest as YAML of some style, with values that only YAML has."""
    snippets: list[str] = draw(st.lists(st.sampled_from(SNIPPETS), max_size=2)) if draw(st.integers(0, 2)) == 0 else []
    for number in range(len(snippets)):
        what, where, other = draw(st.sampled_from(("replace", "add"))), draw(_NUMBER), draw(_NUMBER)
        change(whole, what, where, f"@@{number}@@", other)
    style = draw(st.integers(0, 3))
    if style == 0:
        text = json.dumps(whole, indent=draw(st.sampled_from((None, 1))), ensure_ascii=draw(st.booleans()))
    else:
        text = yaml.safe_dump(whole, default_flow_style=(False, True, None)[style - 1], sort_keys=False)
    for number, snippet in enumerate(snippets):
        for quoted in (f'"@@{number}@@"', f"'@@{number}@@'"):
            text = text.replace(quoted, snippet)
    if secret and draw(st.booleans()):
        form = draw(st.sampled_from(SECRET_FORMS)).replace("%s", MARKER)
        text = text.replace(f'"{MARKER}"', form) if style == 0 else text.replace(MARKER, form)
    return text


def damaged(draw: Any, text: str) -> str:
    """The text with junk in it, a key twice, a tab, another document, or other ends of lines."""
    for _time in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, max(0, len(text) - 1)))
        text = text[:start] + draw(st.text(JUNK, max_size=4)) + text[start + draw(st.integers(0, 12)) :]
    lines = text.split("\n")
    at = draw(st.integers(0, len(lines) - 1))
    return draw(  # type: ignore[no-any-return]
        st.sampled_from(
            (
                text,
                "\n".join([*lines, lines[at]]),
                "\n".join([*lines[:at], "\t" + lines[at], *lines[at + 1 :]]),
                "\n".join([*lines[:at], "---", *lines[at:]]),
                "\r\n".join(lines),
                "\r".join(lines),
                "%YAML 1.3\n---\n" + text,
                text + "\n...\n" + text,
            )
        )
    )


@st.composite
def files(draw: Any, secret: bool = False) -> File:
    """A manifest as a file, a file with damage, or anything. With ``secret`` the marker stays where passwords stand."""
    if not secret and draw(st.integers(0, 9)) == 0:
        return File(draw(st.binary(max_size=200)))
    whole = draw(st.one_of(broken(), manifest, manifest))
    assumed = whole.get("assume_roles")
    whole = {key: value for key, value in whole.items() if key in SECTIONS or draw(st.integers(0, 9)) == 9}
    if secret:
        hide(
            whole,
            {},
            draw(
                st.sampled_from(
                    (*(spot for spot in _IN_A_ROLE if spot != "environment"), "roles as a dict", "role in a list")
                )
            ),
        )
    text = spelt(draw, whole, secret)
    if not secret and draw(st.integers(0, 2)) == 0:
        text = damaged(draw, text)
    encoding = draw(st.sampled_from(ENCODINGS)) if draw(st.integers(0, 4)) == 0 else "utf-8"
    surrogates = draw(st.booleans()) and encoding.startswith("utf")
    return File(text.encode(encoding, "surrogatepass" if surrogates else "replace"), assumed)


@st.composite
def others(draw: Any, secret: bool = False) -> list[File]:
    """Another tool's file with something wrong in it: a bundle with its part, or several documents in one."""
    seeds = copy.deepcopy(OTHERS)
    chosen = draw(
        st.sampled_from(
            ([0], [0], [1], [1], [2, 3], [3], [1, 1], [0, 1], [1, 0], [4], [4], [4, 5], [4, 6], [5, 0], [1, 4], [4, 0])
        )
    )
    wholes = [copy.deepcopy(seeds[number]) for number in chosen]
    options: dict[str, str] = {}
    for whole in wholes:
        passwords = whole.pop("passwords", None)
        options = passwords or options
        for one in draw(changes(least=0)):
            change(whole, *one)
        holder = whole.get("spec", whole)
        if secret and isinstance(holder, dict):
            hide(
                holder,
                {},
                draw(st.sampled_from((*(spot for spot in _IN_A_ROLE if spot != "environment"), "roles as a dict"))),
            )
    texts = [spelt(draw, whole, secret) for whole in wholes]
    if not secret and draw(st.integers(0, 4)) == 0:
        texts = [damaged(draw, text) for text in texts]
    if chosen in ([1, 1], [4, 5], [1, 4]):
        texts = ["\n---\n".join(texts)]
    return [File(text.encode("utf-8", "surrogatepass"), passwords=options) for text in texts]
