# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-builder finds what an execution environment needs, and makes the files that an image is built of."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import yaml
from conftest import ROOT, Run
from packaging.requirements import Requirement
from packaging.version import Version

#: Images are built of what the definitions on this page say.
PAGE = ROOT / "docs" / "execution-environments.md"


def declared() -> list[Requirement]:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def definitions() -> list[str]:
    found = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return [text for text in found if text.startswith("# execution-environment.yml\n")]


def test_psycopg_and_pyyaml_are_required_and_psycopg_as_the_modules_want_it() -> None:
    needed = {requirement.name: requirement for requirement in declared()}
    assert set(needed) == {"psycopg", "PyYAML"}
    assert needed["psycopg"].extras == {"binary"}
    text = (ROOT / "plugins" / "module_utils" / "connection.py").read_text(encoding="utf-8")
    found = re.search(r"^OLDEST_PSYCOPG = (\(.*\))$", text, re.M)
    assert found
    oldest = Version(".".join(map(str, ast.literal_eval(found.group(1)))))
    assert oldest in needed["psycopg"].specifier
    assert not needed["psycopg"].specifier.contains(f"{oldest.major}.{oldest.minor}.{oldest.micro - 1}")
    # A pin would keep an image from getting what another collection in it needs.
    assert needed["psycopg"].specifier.contains("3.99") and needed["PyYAML"].specifier.contains("6.0.4")


def test_ansible_builder_finds_it_in_the_installed_collection(run: Run, installed: Path) -> None:
    told = yaml.safe_load(run("ansible-builder", "introspect", installed))
    (requirement,) = told["python"]
    found, _hash, origin = requirement.partition("#")
    # PyYAML is left out: every image has it with ansible-core.
    assert Requirement(found.strip()) == next(wanted for wanted in declared() if wanted.name == "psycopg")
    assert origin.strip() == "from collection pg_access.reconcile"
    # psycopg[binary] has libpq in it.
    assert told["system"] == []


def test_ansible_builder_makes_an_image_of_the_definitions_of_the_page(run: Run, archive: Path, tmp_path: Path) -> None:
    for number, definition in enumerate(definitions()):
        folder = tmp_path / str(number)
        folder.mkdir()
        shutil.copy(archive, folder)
        # The page names the version that it was written for.
        text = re.sub(r"pg_access-reconcile-[\d.]+\.tar\.gz", archive.name, definition)
        (folder / "execution-environment.yml").write_text(text, encoding="utf-8")
        run("ansible-builder", "create", "--output-filename", "Containerfile", cwd=folder)
        pip, system = would_install(run, folder / "context", archive)
        assert Requirement(pip.partition("#")[0].strip()).name == "psycopg", definition
        if "exclude:" in definition:
            assert "binary" not in pip and set(system.splitlines()) == {"libpq", "libpq5"}
        else:
            assert "psycopg[binary]" in pip and not system


def would_install(run: Run, context: Path, archive: Path) -> tuple[str, str]:
    """What an image's build would install with pip, and as packages of the system: its own commands, run here."""
    steps = (context / "Containerfile").read_text(encoding="utf-8")
    # They run in a folder with these files.
    assert "COPY _build /build\nWORKDIR /build\n" in steps
    build = context / "_build"
    (install,) = re.findall(r"^RUN .*ansible-galaxy (collection install) .*-r requirements.yml", steps, re.M)
    (introspect,) = re.findall(r"^RUN \$PYCMD /output/scripts/introspect.py (introspect .*)$", steps, re.M)
    wanted = yaml.safe_load((build / "requirements.yml").read_text(encoding="utf-8"))["collections"]
    if wanted == [{"name": "pg_access.reconcile"}]:
        # Out of the archive in place of Galaxy.
        wanted = [str(archive)]
        given = wanted
    else:
        given = ["-r", "requirements.yml"]
    share = context / "share"
    run("ansible-galaxy", *install.split(), "--offline", *given, "--collections-path", share, cwd=build)
    written = (
        introspect.replace("/tmp/src", str(context)).replace("/output", str(build)).replace("/build/", f"{build}/")
    )
    run("python", build / "scripts" / "introspect.py", *written.split(), share, cwd=build)
    found = [context / name for name in ("requirements.txt", "bindep.txt")]
    pip, system = (path.read_text(encoding="utf-8").strip() if path.exists() else "" for path in found)
    return pip, re.sub(r"(?m)\s*[\[#].*$", "", system)


def test_the_page_has_definitions() -> None:
    assert len(definitions()) == 3
