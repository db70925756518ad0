# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collection's own data classes behave like Python's: every test runs with both."""

from __future__ import annotations

import copy
import dataclasses
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils import records

UTILS = Path(records.__file__).parent


@pytest.fixture(params=[records, dataclasses], ids=["ours", "python's"])
def classes(request: pytest.FixtureRequest) -> tuple[Any, Any, Any]:
    """Three new classes, of which no instance was made: with all sorts of fields, the same again, and a mutable one."""
    source: ModuleType = request.param
    dataclass, field = source.dataclass, source.field

    def made() -> Any:
        @dataclass(frozen=True)
        class Role:
            """A role."""

            name: str
            number: int = 7
            tags: list[str] = field(default_factory=list)
            secret: str = field(default="s", repr=False)
            place: str = field(default="p", compare=False)

            def shout(self) -> str:
                return self.name.upper()

        return Role

    @dataclass
    class Count:
        of: str
        number: int = 0

    return made(), made(), Count


def test_arguments_defaults_and_factories(classes: Any) -> None:
    role_class, _other, count_class = classes
    role = role_class("a")
    assert (role.name, role.number, role.tags, role.secret, role.place) == ("a", 7, [], "s", "p")
    assert role.tags is not role_class("b").tags
    assert role_class(number=1, name="n", tags=["t"]).tags == ["t"]
    assert role_class("a", 1, ["x"], "y", "z").place == "z"
    assert role.shout() == "A"
    assert role_class.number == 7, "a default can be read from the class"
    assert count_class("a", number=2).number == 2


@pytest.mark.parametrize("values, named", [((), {}), (("a", 1, [], "s", "p", "more"), {}), (("a",), {"unknown": 1})])
def test_wrong_arguments_are_refused(classes: Any, values: Any, named: Any) -> None:
    for _attempt in range(2):
        # Before Python 3.10 the message has no class in it.
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            classes[0](*values, **named)


def test_equality(classes: Any) -> None:
    role_class, other_class, count_class = classes
    assert role_class("a") == role_class("a")
    assert role_class("a") != role_class("b")
    assert role_class("a", place="1") == role_class("a", place="2")
    assert role_class("a", secret="1") != role_class("a", secret="2")
    other = other_class("a")
    assert role_class("a") != other, "another class is another thing, whatever is in it"
    assert role_class("a") != ("a", 7, [], "s")
    assert count_class("a") == count_class("a")


def test_hashes(classes: Any) -> None:
    role_class, _other, count_class = classes
    first, second = role_class("a", tags=()), role_class("a", tags=(), place="2")
    assert hash(first) == hash(second)
    assert {first, second} == {first}
    with pytest.raises(TypeError, match="unhashable"):
        hash(role_class("a"))
    with pytest.raises(TypeError, match="unhashable"):
        hash(count_class("a"))


def test_the_text_hides_what_it_is_told_to(classes: Any) -> None:
    role = classes[0]("a", secret="hidden")
    assert repr(role).endswith("Role(name='a', number=7, tags=[], place='p')")
    assert repr(classes[2]("a")).endswith("Count(of='a', number=0)")


def test_frozen_is_frozen_and_the_other_is_not(classes: Any) -> None:
    role, count = classes[0]("a"), classes[2]("a")
    with pytest.raises(dataclasses.FrozenInstanceError, match="'name'"):
        role.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError, match="'name'"):
        del role.name
    count.number += 1
    assert (role.name, count.number) == ("a", 1)


def test_copies(classes: Any) -> None:
    role = classes[0]("a", tags=["t"])
    assert copy.copy(role) == role
    deep = copy.deepcopy(role)
    assert deep == role
    assert deep.tags is not role.tags
    assert vars(role) == {"name": "a", "number": 7, "tags": ["t"], "secret": "s", "place": "p"}


def test_replacing(classes: Any) -> None:
    role, count = classes[0]("a", number=1), classes[2]("a", 1)
    for replace in (records.replace, dataclasses.replace):
        changed = replace(role, number=2, place="q")
        assert (changed.name, changed.number, changed.place, role.number) == ("a", 2, "q", 1)
        assert type(changed) is type(role)
        assert replace(count, number=3).number == 3
        with pytest.raises(TypeError):
            replace(role, unknown=1)


def test_python_sees_the_fields(classes: Any) -> None:
    assert dataclasses.is_dataclass(classes[0])
    found = dataclasses.fields(classes[0])
    assert [(item.name, item.repr, item.compare) for item in found] == [
        ("name", True, True),
        ("number", True, True),
        ("tags", True, True),
        ("secret", False, True),
        ("place", True, False),
    ]


def test_all_data_classes_are_of_this_kind() -> None:
    """Python's own would each cost a run as much as compiling a small module."""
    for path in UTILS.rglob("*.py"):
        if path != UTILS / "records.py":
            assert "from dataclasses" not in path.read_text(encoding="utf-8"), path
    for path in UTILS.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for decorator, line in zip(lines, lines[1:]):
            if decorator.startswith("@dataclass"):
                assert "(" not in line, f"{path}: {line}: a base class is not known to records.py"
                assert decorator in ("@dataclass", "@dataclass(frozen=True)"), path


def test_defining_one_compiles_nothing() -> None:
    """The constructor is made with the first instance, in a process where nothing has made one."""
    script = (
        "import builtins, sys\n"
        "from ansible_collections.pg_access.reconcile.plugins.module_utils import changes\n"
        "before = changes.CreateSchema.__init__\n"
        "assert before is changes.CreateRole.__init__\n"
        "changes.CreateSchema('s', None, 'schemas[0]')\n"
        "assert changes.CreateSchema.__init__ is not before is changes.CreateRole.__init__\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": ":".join(sys.path)})
