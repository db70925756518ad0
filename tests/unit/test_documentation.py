# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people are shown is so: examples that the validator accepts, every room, every error code."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.export import profiles, shapes
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.spec import (
    MANIFEST_OPTIONS,
    RUN_OPTIONS,
    SECTIONS,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.policy import manifest_to_policy
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import ManifestInvalid
from ansible_collections.pg_access.reconcile.plugins.module_utils.report import items

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
MODULE = "pg_access.reconcile.pg_role_reconcile"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "roles").glob("*/README.md"))]
PLAYBOOKS = sorted((ROOT / "demo").glob("*.yml"))

#: A manifest whose roles and profiles stand in another one. The integration target role_pages runs both.
PART = "docs/several-databases.md-1"

Example = Tuple[str, Any]


def _texts() -> Iterator[Tuple[Path, int, str]]:
    for page in PAGES:
        found = re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        # Ansible's tag for what is no template of its own.
        yield from ((page, number, text.replace("!unsafe ", "")) for number, text in enumerate(found))


def _fences() -> Iterator[Example]:
    for page, number, text in _texts():
        yield f"{page.relative_to(ROOT)}-{number}", yaml.safe_load(text)


def _files() -> Dict[str, Any]:
    """Manifests that a page shows as files of one folder, each composed with the others as the page has them by then."""
    found: Dict[str, Any] = {}
    folders: Dict[Path, Dict[str, Any]] = {}
    for page, number, text in _texts():
        name, value = re.match(r"# ([\w./-]+\.yml)\n", text), yaml.safe_load(text)
        if name and isinstance(value, dict) and set(value) <= set(SECTIONS):
            folder = folders.setdefault(page, {})
            folder[name.group(1)] = value
            whole: Dict[str, Any] = {}
            for part in folder.values():
                whole.update({key: whole[key] + item if key in whole else item for key, item in part.items()})
            found[f"{page.relative_to(ROOT)}-{number}"] = whole
    return found


def _block(module: str, name: str) -> Any:
    tree = ast.parse((ROOT / f"plugins/modules/{module}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return yaml.safe_load(ast.literal_eval(node.value))
    raise AssertionError(f"{module} has no {name}")


def _module_examples() -> Example:
    return "EXAMPLES", _block("pg_role_reconcile", "EXAMPLES")


def _mappings(value: Any) -> Iterator[Dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _mappings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _mappings(inner)


def _manifests() -> List[Example]:
    """Whole manifests, and the module's arguments in tasks."""
    found: List[Example] = []
    composed = _files()
    for name, value in [*_fences(), _module_examples()]:
        if isinstance(value, dict) and set(value) <= set(SECTIONS) and name != PART:
            found.append((name, composed.get(name, value)))
        for number, mapping in enumerate(_mappings(value)):
            if MODULE in mapping:
                found.append((f"{name}-{number}", mapping[MODULE]))
    return found


def _demo() -> List[Example]:
    """The demo's steps, each composed with what they share."""
    shared = yaml.safe_load((ROOT / "demo/access/shop.yml").read_text(encoding="utf-8"))
    found: List[Example] = []
    for path in sorted((ROOT / "demo/access/pgloader_pg").glob("*.yml")):
        step = yaml.safe_load(path.read_text(encoding="utf-8"))
        whole = {**shared, **{key: [*shared.get(key, []), *value] for key, value in step.items()}}
        found.append((path.name, whole))
    return found


@pytest.mark.parametrize("manifest", [pytest.param(value, id=name) for name, value in _manifests() + _demo()])
def test_example_is_accepted(manifest: Dict[str, Any]) -> None:
    # Files are not there to be read, with the roles that passwords are for, and nobody fills in what is an expression as
    # a whole.
    absent = ("manifest_files", "passwords") if "manifest_files" in manifest else ()
    arguments = {
        key: value
        for key, value in manifest.items()
        if key not in absent and not (isinstance(value, str) and value.startswith("{{"))
    }
    try:
        manifest_to_policy(arguments)
    except ManifestInvalid as invalid:
        pytest.fail("\n".join(problem.text for problem in invalid.problems))


def test_examples_are_found() -> None:
    names = " ".join(name for name, _manifest in _manifests())
    assert "README.md" in names and "docs/manifest.md" in names and names.count("EXAMPLES") > 3
    assert len(_demo()) == 6


def test_examples_use_variables_that_the_role_has() -> None:
    specs = yaml.safe_load((ROOT / "roles/reconcile/meta/argument_specs.yml").read_text(encoding="utf-8"))
    known = set(specs["argument_specs"]["main"]["options"])
    used = set()
    texts = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in PLAYBOOKS]
    for value in [*texts, *(value for _name, value in _fences())]:
        used |= {key for mapping in _mappings(value) for key in mapping if str(key).startswith("reconcile_")}
    assert used and used <= known


def test_the_role_has_every_option_of_the_module() -> None:
    """Each option is a variable, or a key of ``reconcile_connection`` or ``reconcile_manifest``; and is passed on."""
    specs = yaml.safe_load((ROOT / "roles/reconcile/meta/argument_specs.yml").read_text(encoding="utf-8"))
    variables = set(specs["argument_specs"]["main"]["options"])
    spelled = {"reconciliation_mode": "mode", "report_file": "report", "require_digest": "require_approval"}
    # The role itself makes manifest_contents of files of other tools.
    options = {name for name in [*MANIFEST_OPTIONS, *RUN_OPTIONS] if name not in SECTIONS} - {"manifest_contents"}
    wanted = {name: f"reconcile_{spelled.get(name, name)}" for name in options}
    own = {"connection", "database", "databases", "manifest", "manifest_templates", "approved", "previous"}
    assert set(wanted.values()) - variables == set()
    assert variables - set(wanted.values()) <= {f"reconcile_{name}" for name in own}
    texts = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "roles/reconcile").glob("[tv]*/*.yml"))
    passed = yaml.safe_load((ROOT / "roles/reconcile/vars/main.yml").read_text(encoding="utf-8"))["_reconcile_options"]
    for option, variable in wanted.items():
        assert option in passed or option in ("assume_roles", "manifest_files", "passwords"), option
        assert re.search(rf"\b{variable}\b", texts), variable
    page = (ROOT / "roles/reconcile/README.md").read_text(encoding="utf-8")
    assert {variable for variable in variables if f"`{variable}`" not in page} == set()


def test_no_variable_that_may_hold_a_secret_is_checked_by_its_type() -> None:
    specs = yaml.safe_load((ROOT / "roles/reconcile/meta/argument_specs.yml").read_text(encoding="utf-8"))
    options = specs["argument_specs"]["main"]["options"]
    for name in ("connection", "manifest", "databases", "passwords", "fingerprint_key", "approved", "previous"):
        assert options[f"reconcile_{name}"]["type"] == "raw", name
        assert not {"elements", "options", "choices"} & set(options[f"reconcile_{name}"]), name


def test_every_room_is_in_the_architecture() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    names = {
        path.relative_to(rooms).as_posix()
        for rooms in (ROOT / "plugins/module_utils", ROOT / "plugins/plugin_utils")
        for path in rooms.rglob("*.py")
        if path.name != "__init__.py"
    }
    named = set(re.findall(r"`([a-z_/]+\.py)`", page))
    assert len(names) > 20
    assert names - named == set(), "not in docs/architecture.md"
    assert named - names == {"tools/generate.py", "tools/manifest_schema.py"}
    # The rest is documentation and a call each, so a folder is enough.
    folders = {path.parent.name for path in (ROOT / "plugins").glob("*/*.py")} - {"module_utils", "plugin_utils"}
    assert set(re.findall(r"`plugins/([a-z_]+)/`", page)) - {"module_utils", "plugin_utils"} == folders


def test_every_row_is_in_a_table() -> None:
    """A row after an empty line, or with another number of cells, is shown as text with strokes, or cut."""
    count = 0
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/README.md")]):
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for block in re.findall(r"(?:^\|.*\n?)+", text, re.M):
            head, *rows = (re.findall(r"(?<!\\)\|", line) for line in block.splitlines())
            assert rows and re.fullmatch(r"[|: -]+", block.splitlines()[1]), f"{page.name}: {block[:80]}"
            for line, row in zip(block.splitlines()[1:], rows):
                assert len(row) == len(head), f"{page.name}: {line[:120]}"
            count += len(rows)
    assert count > 200


def _rows(section: str) -> List[str]:
    """The first column of a section's tables in docs/results.md."""
    page = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    text = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    return re.findall(r"^\| (`.*?) \|", text, re.M)


def _sources() -> Dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in (ROOT / "plugins/module_utils").rglob("*.py")}


def test_every_error_code_is_explained_and_no_other() -> None:
    source = "\n".join(_sources().values())
    codes = set(re.findall(r'(?:Failure\(\s*|code=|code = |error_code", |_[A-Z]+ = )"([a-z]+(?:_[a-z]+)*)"', source))
    codes |= set(re.findall(r'"[0-9A-Z]{5}": "([a-z_]+)"', source))
    assert {"manifest_invalid", "guard", "lock_timeout", "not_converged"} <= codes
    codes -= {"pg_database_owner", "role_reconcile", "table", "comment", "owner"}  # other constants
    explained = {code for row in _rows("Failures") for code in re.findall("`([a-z_]+)`", row)}
    assert codes - explained == set(), "not in docs/results.md"
    assert {code for code in explained if f'"{code}"' not in source} == set(), "nothing fails with it"


def _sentences() -> str:
    """Every text of the modules, each in a line, with what is filled in as \0."""
    found = []
    for text in _sources().values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.JoinedStr):
                found.append(
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def _without_sample(keys: Dict[str, Any], path: str = "") -> Iterator[str]:
    for name, key in keys.items():
        if "contains" in key:
            yield from _without_sample(key["contains"], f"{path}{name}.")
        elif "sample" not in key:
            yield path + name


@pytest.mark.parametrize("module", ["pg_role_reconcile", "pg_role_export"])
def test_every_return_value_has_a_sample(module: str) -> None:
    assert list(_without_sample(_block(module, "RETURN"))) == []


def test_every_kind_and_reason_of_withheld_is_documented() -> None:
    keys = _block("pg_role_reconcile", "RETURN")["withheld"]["contains"]
    told = {name: set(re.findall(r"V\((\w+)\)", " ".join(keys[name]["description"]))) for name in ("change", "reason")}
    assert told["change"] == set(items._NAMES.values())
    page = (ROOT / "docs/what-is-managed.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page.partition("| `reason` | meaning |")[2], re.M)
    assert told["reason"] == set(rows)
    source = (ROOT / "plugins/module_utils/filters.py").read_text(encoding="utf-8")
    assert {reason for reason in rows if f'"{reason}"' not in source} == set(), "nothing is withheld for it"


def test_no_warning_is_explained_that_nothing_gives() -> None:
    """What is between the capitals of a documented text stands in the source. That every warning which a run gives is
    documented is what the server tests look at in each of their results.
    """
    sentences = _sentences()
    texts = [text for row in _rows("Warnings") for text in re.findall("`([^`]+)`", row) if " " in text]
    assert len(texts) > 40
    for text in texts:
        runs = [run for part in re.split(r"\bN\b|\b(?!LOGIN)[A-Z]{4,}\b|\.\.\.", text) for run in _runs(part)]
        # Not all, because plurals and the names of fields are put in between.
        assert runs and sum(run in sentences for run in runs) >= len(runs) / 2, text


def _runs(text: str) -> List[str]:
    """Each two words in a row."""
    words = text.split()
    return [" ".join(words[start : start + 2]) for start in range(len(words) - 1)]


def test_counts_of_what_is_more_are_explained() -> None:
    """Of one kind of warning twenty are given, and then ``N more``."""
    rest = set()
    for text in _sources().values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "few":
                rest.add(ast.literal_eval(node.args[1]))
    explained = {text for row in _rows("Warnings") for text in re.findall("`N more ([^`]+)`", row)}
    assert len(rest) > 5 and rest == explained


def test_reasons_of_flat_roles_are_explained() -> None:
    """Every text that can stand in ``flat_roles``, up to its first particular."""
    page = (ROOT / "docs/export.md").read_text(encoding="utf-8")
    texts = [
        value
        for room in (profiles, shapes)
        for name, value in vars(room).items()
        if name.isupper() and isinstance(value, str) and name != "DEFAULT_ROLE_PATTERN"
    ]
    assert len(texts) > 10
    for text in texts:
        assert f"| {text.partition('{')[0].strip()}" in page, text
