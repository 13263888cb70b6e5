"""Which method of an object a code is that runs: for methods that are taken into the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from pcbatch.errors import Method
from pcbatch.ir import records
from pcbatch.runtime.backends.tensorflow import changes, searching, watching


def of_code(receiver: Any, code: CodeType) -> Method | None:
    """The method, or property, of `receiver` that has this code; None where that is no record, or has none such."""
    if records.fields_of(receiver) is None and not records.is_simple_class(type(receiver)):
        return None
    return _with_code(type(receiver), code)


def of_class(code: CodeType, given: Any, callee: FrameType, callers: Iterable[FrameType]) -> Method | None:
    """The method of a class that has this code: one that was `given` its class, or a static one.

    Of which class that is does not show where it runs: the classes are searched of what its `callers` have, and those
    of its module.
    """
    if isinstance(given, type):
        return _with_code(given, code)
    seen: dict[int, Any] = {}
    classes = [type(each) for frame in callers for each in _records(list(frame.f_locals.values()), seen)]
    classes += [each for each in callee.f_globals.values() if isinstance(each, type)]
    found = (_with_code(each, code) for each in classes)
    return next((each for each in found if each is not None and each.kind == "static"), None)


def _with_code(cls: type, code: CodeType) -> Method | None:
    private = [f"_{base.__name__.lstrip('_')}{code.co_name}" for base in cls.__mro__]  # of `__name`
    others = [name for base in cls.__mro__ for name in vars(base)]  # `area = surface`
    found = (Method.of(cls, name) for name in (code.co_name, *private, *others))
    return next((each for each in found if each is not None and each.function.__code__ is code), None)


def _records(values: Iterable[Any], seen: dict[int, Any]) -> Iterator[Any]:
    """The objects of the user's classes among `values`, and in them, each once."""
    for value in values:
        if id(value) in seen:
            continue
        seen[id(value)] = value
        parts = records.parts_of(value)
        if parts is not None or records.is_simple_class(type(value)):
            yield value
        yield from _records(parts or (), seen)


def help_of(code: CodeType) -> str:
    """What to write instead where a constructor cannot be traced, and is no part of the program; "" of other code."""
    return _CONSTRUCTOR if code.co_name in records.CONSTRUCTORS else ""


_CONSTRUCTOR = (
    "compute before what the object is given, `Account(capped(x))`; a constructor may branch or loop if its class is "
    "called by its name, and has no `__new__`, no metaclass and, as a dataclass, no `InitVar`"
)


def is_between(code: CodeType) -> bool:
    """Whether a code is of what calls methods of objects, or helpers, for a piece, or is made for a dataclass."""
    is_made = code.co_name == records.INIT and code.co_filename == records.NO_FILE
    return is_made or code.co_filename in (changes.__file__, searching.__file__, watching.__file__)
