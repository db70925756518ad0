# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Data classes that cost next to nothing to define.

Python's own write and compile every method of each class as it is defined. That alone was a fifth of a run with nothing
to do, which defines some eighty classes and needs half of them. Here all classes share their methods, and only the
constructor is compiled, when it is first called. Type checkers, ``dataclasses.replace()`` and ``dataclasses.fields()``
see Python's own. Of its features there are those that are used here: classes without a base class, frozen or not, whose
fields may have a default, a factory, ``repr=False`` and ``compare=False``, but not all of them that last.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, NoReturn

__all__ = ["dataclass", "field", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:

    def dataclass(cls: Any = None, *, frozen: bool = False) -> Any:
        """As Python's own."""
        return _frozen if frozen else _record(cls)

    def field(**how: Any) -> _Field:
        """As Python's own."""
        return _Field(**how)

    def replace(record: Any, **changes: Any) -> Any:
        """As Python's own."""
        return type(record)(**{**vars(record), **changes})


#: What a field without a default has for one.
_NOTHING = object()


class _Field(NamedTuple):
    default: Any = _NOTHING
    default_factory: Any = _NOTHING
    repr: bool = True
    compare: bool = True


class _Fields:
    """``__dataclass_fields__`` for Python's own functions, which hardly ever ask."""

    def __get__(self, record: object, cls: type) -> Any:
        import dataclasses

        how = {name: _of(cls.__dict__.get(name, _NOTHING))._asdict() for name in cls.__annotations__}
        told = {name: {key: value for key, value in one.items() if value is not _NOTHING} for name, one in how.items()}
        twin: Any = dataclasses.make_dataclass(
            cls.__name__,
            # pylint wants to see it in the body of a class.
            [
                (name, kind, dataclasses.field(**told[name]))  # pylint: disable=invalid-field-call
                for name, kind in cls.__annotations__.items()
            ],
            frozen=True,
        )
        return twin.__dataclass_fields__


def _record(cls: Any) -> Any:
    cls.__init__ = _first
    cls.__eq__ = _equal
    cls.__hash__ = None
    cls.__repr__ = _represent
    cls.__dataclass_fields__ = _Fields()
    return cls


def _frozen(cls: Any) -> Any:
    _record(cls)
    cls.__hash__ = _hash
    cls.__setattr__ = _refuse
    cls.__delattr__ = _refuse
    return cls


def _first(self: Any, *values: Any, **named: Any) -> None:
    """The constructor until the first record is made. Two threads may both compile the real one."""
    cls = type(self)
    fields = {name: _of(cls.__dict__.get(name, _NOTHING)) for name in cls.__annotations__}
    compared = [name for name, how in fields.items() if how.compare]
    cls._compared = attrgetter(*compared)
    cls._shown = [name for name, how in fields.items() if how.repr]
    cls.__init__ = _constructor(cls, fields)
    cls.__init__(self, *values, **named)


def _of(default: Any) -> _Field:
    return default if isinstance(default, _Field) else _Field(default)


def _constructor(cls: Any, fields: Mapping[str, _Field]) -> Any:
    known: Dict[str, Any] = {"_nothing": _NOTHING, "_fill": cls.__dict__["__dict__"].__set__}
    parameters: List[str] = []
    items: List[str] = []
    for name, how in fields.items():
        value = name
        if how.default_factory is not _NOTHING:
            known[f"_make_{name}"] = how.default_factory
            parameters.append(f"{name}=_nothing")
            value = f"_make_{name}() if {name} is _nothing else {name}"
        elif how.default is not _NOTHING:
            known[f"_default_{name}"] = how.default
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        items.append(f"{name!r}: {value}")
    # Nothing but the names of our own fields.
    exec(f"def __init__(_self, {', '.join(parameters)}): _fill(_self, {{{', '.join(items)}}})", known)  # noqa: S102
    made = known["__init__"]
    # The name that Python's messages about wrong arguments show.
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _represent(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown)
    return f"{type(self).__qualname__}({shown})"


def _refuse(self: Any, name: str, *_value: Any) -> NoReturn:
    import dataclasses

    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")
