# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The JSON Schema for editors and the validator agree: what the one accepts and refuses, so does the other.

The schema never refuses what the validator accepts. What only the validator can know is in ONLY_THE_VALIDATOR, by
the message that says it. How YAML is written (a key that stands twice, tags, aliases) is no matter of a schema at all.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from ansible_collections.pg_access.reconcile.plugins.module_utils import privileges
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.spec import SECTIONS
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import ManifestInvalid
from generators import SEEDS, change, changes, examples, from_spec, places
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs/manifest.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)

Manifest = dict[str, Any]
Place = tuple[Any, ...]

#: Keywords of draft 7, which is what many editors know, and where definitions stand today.
KEYWORDS = {
    "$schema", "$id", "$ref", "$defs", "title", "description", "default", "type", "enum", "const", "properties", "required",
    "additionalProperties", "propertyNames", "minProperties", "items", "minItems", "minLength", "maxLength", "pattern", "minimum",
    "maximum", "allOf", "anyOf", "oneOf", "not", "if", "then",
}  # fmt: skip

#: What a schema for one file cannot know or say, by the messages of the validator.
ONLY_THE_VALIDATOR = {
    "a role that nobody declares": r"^unknown role ",
    "a profile that nobody declares": r"^unknown profile ",
    "default privileges without any owner (another file may have default_owner)": r"^is required where no default_owner is given",
    "something declared twice": r"^the role .* is declared twice|^the schema .* is declared twice|is declared twice",
    "a membership twice with different options": r"^the membership of ",
    "a cycle of memberships": r"form a cycle|cannot be a member of itself",
    "pg_database_owner, which has no members": r"^pg_database_owner ",
    "rules that contradict each other": r" is (present|absent) in .* and (present|absent) in ",
    "a generated role's name": r"^the role that the profile .* generates here would be called ",
    "a role named that scope.ignore_roles leaves alone": r"of scope\.ignore_roles",
    "a retired role that is named elsewhere": r"is retired (here|twice)| and retired in |, which is retired in ",
    "a role of a managed service retired": r"looked after by a managed service",
    "an heir who is the retired role": r"cannot inherit from itself",
    "names of more than 63 bytes, but not characters": r"bytes long, and PostgreSQL's names have at most",
    "a day that the month does not have, or a year beyond 9999 in UTC": r"is not a point in time \(|lies outside the years",
    "settings whose names differ only in case": r"^is the setting ",
    "elements of a list setting": r"has an empty element|is not a list: elements",
    "the arguments of a routine": r"is not a routine: ",
    "a large object's number beyond 4294967295 in text": r"is not a large object's OID",
    "a password that is a broken verifier": r"^the (text|SCRAM verifier|verifier) |white space around the verifier",
    "a password in a comment or a setting": r"holds a password that the manifest declares",
    "an environment variable that is not set": r"^the environment variable ",
    "a template, which the role fills in and the module does not": r"contains a template",
    "a whole number written with a fraction": r"must be a whole number in decimal digits, not the number -?\d+\.0*$",
}  # fmt: skip


# ---- both judges ---------------------------------------------------------------------------------------------------


def _as_an_editor(value: Any) -> Any:
    """What YAML 1.2 makes of the file: an unquoted ``on`` is text."""
    if isinstance(value, dict):
        return {"on" if key is True else key: _as_an_editor(item) for key, item in value.items()}
    return [_as_an_editor(item) for item in value] if isinstance(value, list) else value


def refusals(manifest: Any) -> list[str]:
    """What the schema says against a manifest, or the first of it."""
    errors = itertools.islice(VALIDATOR.iter_errors(_as_an_editor(manifest)), 2)
    return [f"{error.json_path}: {error.message[:200]}" for error in errors]


def problems(manifest: Any, folder: Path) -> list[str]:
    """What the validator says against it as a file."""
    path = folder / "m.yml"
    path.write_text(yaml.safe_dump(manifest, allow_unicode=True, sort_keys=False), encoding="utf-8")
    with mock.patch.dict("os.environ", {"FUZZ_PASSWORD": "Pa55-word-from-env"}):
        try:
            manifest_to_policy({"manifest_files": [str(path)]})
        except ManifestInvalid as invalid:
            return [problem.message for problem in invalid.problems]
    return []


def beyond_the_schema(messages: list[str]) -> bool:
    return all(any(re.search(known, message) for known in ONLY_THE_VALIDATOR.values()) for message in messages)


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("manifests")


# ---- the schema itself ---------------------------------------------------------------------------------------------


def _schemas(value: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema, with itself."""
    yield value
    for key, inner in value.items():
        if key in ("properties", "$defs"):
            for each in inner.values():
                yield from _schemas(each)
        elif key in ("allOf", "anyOf", "oneOf"):
            for each in inner:
                yield from _schemas(each)
        elif key in ("items", "additionalProperties", "propertyNames", "not", "if", "then") and isinstance(inner, dict):
            yield from _schemas(inner)


def test_it_is_a_schema_that_editors_understand() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    # A host would have to be ours.
    assert "://" not in SCHEMA["$id"]
    found = list(_schemas(SCHEMA))
    assert len(found) > 300
    assert {key for schema in found for key in schema} <= KEYWORDS
    for schema in found:
        if "pattern" in schema:
            # Python's own forms: ECMA 262 has none of them.
            assert not re.search(r"\(\?P|\\[AZ]|\(\?<|\(\?[imsx]", schema["pattern"]), schema["pattern"]


def _documented(options: dict[str, Any], schema: dict[str, Any], path: str) -> Iterator[tuple[str, Any, Any]]:
    """Options of the spec beside their schemas."""
    for name, option in options.items():
        at = f"{path}.{name}"
        for each in (name, *option.get("aliases", ())):
            assert each in schema["properties"], at
        found = schema["properties"][name]
        yield at, option, found
        inner = found.get("items", found)
        if "options" in option:
            yield from _documented(option["options"], inner, at)
        elif "values" in option:
            yield from _documented(option["values"], found["additionalProperties"], at)
        elif "of_dict" in option:
            yield from _documented(option["of_dict"], inner["anyOf"][1], at)


def test_every_field_is_there_with_what_it_means() -> None:
    found = list(_documented(SECTIONS, SCHEMA, "manifest"))
    assert len(found) > 60
    for at, option, schema in found:
        assert len(schema["description"]) > 3, at
        effect = option.get("in_effect", "")
        exact = re.match(r"V\((.*?)\)(, enforced)?$", effect)
        assert ("default" in schema) == bool(exact), at
        if exact:
            assert str(schema["default"]).lower() == exact.group(1), at
        elif effect not in ("", "none"):
            assert "In effect when omitted" in schema["description"], at
    closed = [schema for schema in _schemas(SCHEMA) if "properties" in schema and "description" not in schema]
    assert closed
    for schema in _schemas(SCHEMA):
        if schema.get("type") in ("object", ["object", "null"]) and "properties" in schema:
            assert schema["additionalProperties"] is False


# ---- what both accept ----------------------------------------------------------------------------------------------


def _documents() -> list[tuple[str, Manifest]]:
    """Whole manifests on the pages of the documentation, the demo's, and the fuzzer's seeds."""
    found: list[tuple[str, Manifest]] = []
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("roles/*/README.md"))]
    # Other tools' files have schemas of their own.
    for page in [page for page in pages if page.name != "other-tools.md"]:
        texts = re.findall(
            r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8").replace("!unsafe ", ""), re.M | re.S
        )
        for number, text in enumerate(texts):
            value = yaml.safe_load(text)
            if isinstance(value, dict) and set(value) <= set(SECTIONS):
                found.append((f"{page.stem}-{number}", value))
    demo = sorted((ROOT / "demo/access").rglob("*.yml"))
    found += [(path.name, yaml.safe_load(path.read_text(encoding="utf-8"))) for path in demo]
    for number, seed in enumerate(SEEDS):
        found.append((f"seed-{number}", {key: value for key, value in seed.items() if key in SECTIONS}))
    return found


DOCUMENTS = _documents()


def test_manifests_are_found() -> None:
    assert len(DOCUMENTS) > 20


@pytest.mark.parametrize("manifest", [pytest.param(value, id=name) for name, value in DOCUMENTS])
def test_real_manifests_pass_both(manifest: Manifest, folder: Path) -> None:
    assert refusals(manifest) == []
    assert beyond_the_schema(problems(manifest, folder))


@examples(0.5)
@given(whole=from_spec())
def test_what_the_spec_draws(whole: Manifest, folder: Path) -> None:
    """The validator accepts many of them. The schema accepts those, and refuses what it can."""
    manifest = {key: value for key, value in whole.items() if key in SECTIONS}
    assume(manifest)
    said, refused = problems(manifest, folder), refusals(manifest)
    assert not refused or said, f"only the schema refuses it: {refused}"
    assert refused or beyond_the_schema(said), f"only the validator refuses it: {said}"


#: Each key and each kind of value by itself, at every place where the spec has one.
def _nulls(options: dict[str, Any]) -> Iterator[str]:
    yield from (name for name, option in options.items() if not option.get("required"))


@pytest.mark.parametrize(
    ("section", "item"),
    [
        ("roles", {"name": "app"}),
        ("memberships", {"role": "pg_monitor"}),
        ("grants", {"role": "PUBLIC", "privileges": ["select"], "on": {"type": "table", "schema": "s", "name": "t"}}),
        ("schemas", {"name": "s"}),
        ("retirements", {"role": "old"}),
    ],
)
def test_null_means_omitted(section: str, item: Manifest, folder: Path) -> None:
    names = [name for name in _nulls(SECTIONS[section]["options"]) if name not in item]
    assert len(names) > 1
    for name in names:
        manifest = {section: [{**item, name: None}]}
        assert refusals(manifest) == problems(manifest, folder) == [], name
    required = [name for name in SECTIONS[section]["options"] if SECTIONS[section]["options"][name].get("required")]
    for name in required:
        manifest = {section: [{**item, name: None, **({"on": None} if name == "object" else {})}]}
        assert refusals(manifest), name
        assert problems(manifest, folder), name


@pytest.mark.parametrize("kind", [*privileges.KINDS, *privileges.KIND_ALIASES])
def test_every_type_has_its_own_privileges(kind: str, folder: Path) -> None:
    """Every privilege of every type, in any case, beside every type; and on columns, and as a default."""
    table = privileges.KINDS[privileges.canonical_kind(kind)]
    words = sorted(
        {word for known in privileges.KINDS.values() for word in known.privileges} | {"TEMP", "ALL", "all  privileges"}
    )
    target: Manifest = {"type": kind, "name": "16403" if kind == "large_object" else "x"}
    if table.in_schema:
        target["schema"] = "s"
    # What an editor offers.
    (offered, _any_case) = SCHEMA["$defs"][f"{table.name}_privileges"]["items"]["anyOf"]
    assert set(offered["enum"]) - {"ALL", "TEMP"} == set(table.privileges)
    seen = set()
    for word in words:
        for spelled in (word, word.lower()):
            rule: Manifest = {"role": "PUBLIC", "privileges": [spelled], "object": target}
            default = {"role": "PUBLIC", "privileges": [spelled], "on_type": kind}
            tried: list[Manifest] = [
                {"grants": [rule]},
                {"grants": [{**rule, "columns": ["a"]}]},
                {"profiles": {"p": {"grants": [{**rule, "object": {"type": kind, "name": "x"}}]}}},
                {"default_privileges": [{"owner": "pg_monitor", "grant": [default]}]},
                {"default_privileges": [{"owner": "pg_monitor", "schema": "s", "grant": [default]}]},
                {
                    "default_privileges": [
                        {"owner": "pg_monitor", "schema": "s", "grant": [{**default, "ensure": "absent"}]}
                    ]
                },
            ]
            del tried[2]["profiles"]["p"]["grants"][0]["role"]
            if kind == "schema":
                del tried[2]["profiles"]["p"]["grants"][0]["object"]["name"]
            for manifest in tried:
                refused, said = refusals(manifest), problems(manifest, folder)
                assert bool(refused) == bool(said), (manifest, refused, said)
                seen.add(bool(said))
    assert seen == {True, False}


def _damages(value: Any, options: dict[str, Any], at: Place) -> Iterator[tuple[Place, str, Any, dict[str, Any]]]:
    """Every place in a manifest at which something can be broken, with the option that it has in the spec."""
    for key, item in value.items():
        name = next((n for n, o in options.items() if key in (n, *o.get("aliases", ()))), None)
        if name is None:
            continue
        option = options[name]
        yield (*at, key), "value", item, option
        holders: list[tuple[Place, Any, dict[str, Any]]] = []
        if "values" in option:
            holders = [((*at, key, each), inner, option["values"]) for each, inner in item.items()]
        elif option["type"] == "list" and "options" in option:
            holders = [((*at, key, number), inner, option["options"]) for number, inner in enumerate(item)]
        elif option["type"] == "dict" and "options" in option:
            holders = [((*at, key), item, option["options"])]
        elif option["type"] == "list" and "of_dict" in option:
            pairs = [(number, inner) for number, inner in enumerate(item) if isinstance(inner, dict)]
            holders = [((*at, key, number), inner, option["of_dict"]) for number, inner in pairs]
        for place, holder, inner_options in holders:
            yield place, "dict", holder, {"options": inner_options}
            yield from _damages(holder, inner_options, place)


def _by_other_names(value: Any) -> Any:
    """The same with aliases as keys."""
    other = {"object": "on", "valid_until": "password_valid_until"}
    if isinstance(value, dict):
        return {other.get(key, key): _by_other_names(item) for key, item in value.items()}
    return [_by_other_names(item) for item in value] if isinstance(value, list) else value


#: Names and texts at the edges of what the rules allow. The fuzzer has odd ones in addition.
EDGES = (
    "x", "x" * 63, "x" * 64, "é" * 31, "PUBLIC", "public", "Public2", "none", "NONE", "nonesuch", "pg_x", "pgloader_pg", "information_schema",
    "role_reconcile", "*", "**", "[a]", "[]]", "[]x", "[!]]?", "a*", "?", "{profile}", "{schema}", "{profile}{x}", "{{profile}}", "f(int)",
    "f(", "f)", "(int)", " (int)", "a.b", "a.", "1a", "a$", "work_mem", "0", "007", "4294967295", "16403", "-1", "infinity", "Infinity",
    "2027-01-31T23:59:59+01:00", "2027-01-31t23:59z", "2027-01-31 23:59:59,5 Z", "2027-01-31T23:59:59", "2027-13-31T23:59Z",
    "2027-01-31T24:00Z", "2027-01-31T23:59+16", "2027-01-31T23:59+0130", "0000-01-31T23:59Z", "2027-1-31T23:59Z", "SELECT", "present",
)  # fmt: skip


def _texts() -> Iterator[tuple[str, Manifest, Place]]:
    """Each field of text once, under each of its names: what it is called, a manifest of one entry, and where."""
    seen = set()
    whole = [value for _name, value in DOCUMENTS]
    for manifest in [*whole, *map(_by_other_names, whole)]:
        for place, what, item, option in _damages(manifest, SECTIONS, ()):
            steps = [step for step in place if isinstance(step, str)]
            if steps[0] == "profiles":
                del steps[1:2]
            if steps[-1] == "name" and steps[-2] in ("object", "on"):
                holder = manifest
                for step in place[:-1]:
                    holder = holder[step]
                steps.append(f"of a {holder.get('type')}")
            if "on" in steps and steps[-1] not in ("on", "type"):
                continue
            path = ".".join(steps)
            text = option.get("type") == "str" or option.get("elements") in ("str", "raw")
            if what == "value" and text and item and path not in seen:
                seen.add(path)
                at: Place = (*place, 0) if isinstance(item, list) else place
                section = manifest[place[0]]
                if isinstance(section, list):
                    yield path, {place[0]: [section[place[1]]]}, (place[0], 0, *at[2:])
                else:
                    yield path, {place[0]: section}, at


TEXTS_AT = [pytest.param(manifest, at, id=path) for path, manifest, at in _texts()]


@pytest.mark.parametrize(("manifest", "at"), TEXTS_AT)
def test_both_draw_the_same_line(manifest: Manifest, at: Place, folder: Path) -> None:
    """Texts at the edge, at each field that holds a text."""
    verdicts = {bool(refusals(manifest))}
    tried = copy.deepcopy(manifest)
    holder: Any = tried
    for step in at[:-1]:
        holder = holder[step]
    for text in (*EDGES, "", "a\0b"):
        holder[at[-1]] = text
        said, refused = problems(tried, folder), refusals(tried)
        assert not refused or said, (text, refused)
        assert refused or beyond_the_schema(said), (text, said)
        verdicts.add(bool(refused))
    assert verdicts == {True, False} or at[-1] == "comment"


def test_every_text_of_the_spec_is_tried() -> None:
    assert len(TEXTS_AT) > 50


# ---- what both refuse ----------------------------------------------------------------------------------------------

#: Values that no field of this type takes.
WRONG: dict[str, tuple[Any, ...]] = {
    "str": ([], {}, True, 1.5, ["x"]),
    "bool": ("yes", "true", 1, 0, [], {}),
    "int": ("1", True, 1.5, -2, 2**31, [], {}),
    "list": ("x", {}, 1, True, [[[]]], [None], [7]),
    "dict": ("x", [], 1, True),
    "raw": (7, True, [], 1.5),
}


@st.composite
def damaged(draw: Any) -> tuple[Manifest, str]:
    """A real manifest with one thing that is certainly wrong."""
    name, whole = draw(st.sampled_from(DOCUMENTS))
    manifest = _by_other_names(whole) if draw(st.booleans()) else copy.deepcopy(whole)
    place, what, _old, option = draw(st.sampled_from(list(_damages(manifest, SECTIONS, ()))))
    holder = manifest
    for step in place[:-1]:
        holder = holder[step]
    key = place[-1]
    if what == "dict":
        required = [(n, *o.get("aliases", ())) for n, o in option["options"].items() if o.get("required")]
        if required and draw(st.booleans()):
            for each in draw(st.sampled_from(required)):
                holder[key].pop(each, None)
        else:
            holder[key][draw(st.sampled_from(("x", "Name", "privilege", "ROLE", "on_types", "password_")))] = draw(
                st.sampled_from((True, "x", [], {}, 1))
            )
    elif "choices" in option and draw(st.booleans()):
        holder[key] = draw(st.sampled_from(("", "tables", "Present", "none", "authoritative")))
    elif key == "privileges" and draw(st.booleans()):
        holder[key] = [draw(st.sampled_from(("", "*", "READ", "SELECT, INSERT", "GRANT", "OWNERSHIP")))]
    else:
        wrong = WRONG[option["type"]]
        if option.get("or_number"):
            wrong = tuple(value for value in wrong if isinstance(value, (list, dict)))
        if option["type"] == "dict" and (option.get("settings") or "values" in option):
            wrong = ("x", 1, ["x"], {"": {"x": 1}})
        if option["type"] == "int":
            wrong = tuple(value for value in wrong if value not in (-2, 2**31) or "minimum" in option)
        holder[key] = draw(st.sampled_from(wrong))
    return manifest, f"{name}: {place}"


@examples(0.5)
@given(case=damaged())
def test_structural_damage_is_refused_by_both(case: tuple[Manifest, str], folder: Path) -> None:
    manifest, where = case
    assert problems(manifest, folder), f"the validator accepts it: {where}"
    assert refusals(manifest), f"the schema accepts it: {where}"


def _without_nulls(value: Any) -> Any:
    """What is null counts as omitted, under any key. An editor wants to hear of a key that it does not know."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


@examples(0.5)
@given(data=st.data())
def test_whatever_is_broken_they_agree(data: Any, folder: Path) -> None:
    manifest = copy.deepcopy(data.draw(st.sampled_from(DOCUMENTS))[1])
    for what, where, new, other in data.draw(changes()):
        change(manifest, what, where, new, other)
    manifest = {key: value for key, value in _without_nulls(manifest).items() if isinstance(key, str)}
    assume(manifest and sum(1 for _place in places(manifest)) < 5000)
    try:
        yaml.safe_dump(manifest, allow_unicode=True).encode()
    except (UnicodeError, RecursionError):
        return
    said, refused = problems(manifest, folder), refusals(manifest)
    assert not refused or said, f"only the schema refuses it: {refused}"
    assert refused or beyond_the_schema(said), f"only the validator refuses it: {said}"


def test_the_list_of_exceptions_is_used(folder: Path) -> None:
    """Each entry has a manifest that only the validator refuses, for this reason."""
    table = {"type": "table", "schema": "s", "name": "t"}
    app = {"name": "app"}
    found: dict[str, str | Manifest] = {
        "a role that nobody declares": {"schemas": [{"name": "s", "owner": "nobody"}]},
        "a profile that nobody declares": {"schemas": [{"name": "s", "profiles": ["nope"]}]},
        "default privileges without any owner (another file may have default_owner)": {
            "default_privileges": [{"grant": [{"role": "PUBLIC", "privileges": ["USAGE"], "on_type": "type"}]}]
        },
        "something declared twice": {"roles": [app, app]},
        "a membership twice with different options": {
            "roles": [app, {"name": "g", "members": [{"name": "app", "admin": True}]}],
            "memberships": [{"role": "g", "members": [{"name": "app"}]}],
        },
        "a cycle of memberships": {"roles": [{"name": "app", "members": ["app"]}]},
        "pg_database_owner, which has no members": {"memberships": [{"role": "pg_database_owner", "members": [{"name": "pg_monitor"}]}]},
        "rules that contradict each other": {
            "grants": [{"role": "PUBLIC", "privileges": ["SELECT"], "object": table, "ensure": each} for each in ("present", "absent")]
        },
        "a generated role's name": {"profiles": {"p": {}}, "schemas": [{"name": "s" * 63, "profiles": ["p"]}]},
        "a role named that scope.ignore_roles leaves alone": {"roles": [app], "scope": {"ignore_roles": ["a*"]}},
        "a retired role that is named elsewhere": {"roles": [app], "retirements": [{"role": "app"}]},
        "a role of a managed service retired": {"retirements": [{"role": "rds_iam"}]},
        "an heir who is the retired role": {"retirements": [{"role": "old", "reassign_owned_to": "old"}]},
        "names of more than 63 bytes, but not characters": {"roles": [{"name": "é" * 40}]},
        "a day that the month does not have, or a year beyond 9999 in UTC": {
            "roles": [{**app, "valid_until": "2027-02-30T00:00:00Z"}]
        },
        "settings whose names differ only in case": {"roles": [{**app, "config": {"work_mem": "1MB", "Work_Mem": "2MB"}}]},
        "elements of a list setting": {"roles": [{**app, "config": {"search_path": "a,,b"}}]},
        "the arguments of a routine": {
            "grants": [{"role": "PUBLIC", "privileges": ["ALL"], "object": {"type": "function", "schema": "s", "name": "f(int)(int)"}}]
        },
        "a large object's number beyond 4294967295 in text": {
            "grants": [{"role": "PUBLIC", "privileges": ["ALL"], "object": {"type": "large_object", "name": "9999999999"}}]
        },
        "a password that is a broken verifier": {"roles": [{**app, "password": "SCRAM-SHA-256$1:a$b:c"}]},
        "a password in a comment or a setting": {
            "roles": [{**app, "password": "Pa55-word-of-app", "comment": "Pa55-word-of-app"}]
        },
        "an environment variable that is not set": {"roles": [{**app, "password_from_env": "NOT_SET_ANYWHERE"}]},
        "a template, which the role fills in and the module does not": {"roles": [{"name": "{{ x }}"}]},
        "a whole number written with a fraction": {"roles": [{**app, "connection_limit": 3.0}]},
    }  # fmt: skip
    assert ONLY_THE_VALIDATOR.keys() == found.keys()
    for reason, manifest in found.items():
        said = problems(manifest, folder)
        assert refusals(manifest) == [], reason
        assert any(re.search(ONLY_THE_VALIDATOR[reason], message) for message in said), (reason, said)
