"""Fingerprints of captured values that are part of a compiled program: when it may be used again.

A function of the user's counts by its identity in the `shallow` key of a call; what it reads while it is traced is
compared apart (see `reads`). A `fingerprint` is for other processes: it looks into the code of such functions
for what they capture. Installed packages are taken as they are.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pcbatch.installed import OWN, is_installed

LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"}
ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
BETWEEN = {"CACHE", "PUSH_NULL"}
"""Bytecode that loads a name from around a function, that goes on to an attribute of it, and that may stand between."""


@dataclass(frozen=True, eq=False)
class Same:
    """A value by its identity. Keys hold it, so no other object can get its `id` while its program lives."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def fingerprint(value: Any) -> Any:
    """A hashable key by which two static values are taken for the same in a compiled program.

    Numbers, strings and containers of them by content; functions of the user's by identity and by what they capture;
    everything else (arrays among it) by identity.
    """
    return _fingerprint(value, {}, deep=True)


def shallow(value: Any) -> Any:
    """The same key, but functions by identity alone."""
    return _fingerprint(value, {}, deep=False)


def without_identity(key: Any) -> Any:
    """A key with the classes of values in place of their identities."""
    if isinstance(key, Same):
        return type(key.value)
    if isinstance(key, (tuple, frozenset)):
        return type(key)(map(without_identity, key))
    return key


def static_key(value: Any) -> Any:
    """A hashable key of a static argument: 1, 1.0 and True differ, functions count by identity.

    Other objects count by their own equality. TypeError for what cannot be hashed, such as an array or a list.
    """
    match value:
        case tuple():
            return (type(value), *map(static_key, value))
        case types.FunctionType() | types.MethodType() | functools.partial():
            return shallow(value)
    hash(value)
    return (type(value), value)


def _fingerprint(value: Any, visited: dict[int, int], deep: bool) -> Any:
    """`visited` numbers the functions and containers met so far, so that each is looked into once, cycles or not."""
    match value:
        case bool() | int() | float() | complex() | str() | bytes() | None:
            return (type(value).__name__, repr(value))
        case types.MethodType():
            return ("method", *(_fingerprint(part, visited, deep) for part in (value.__self__, value.__func__)))
        case types.BuiltinMethodType() if not isinstance(value.__self__, (types.ModuleType, type, types.NoneType)):
            return ("method", _fingerprint(value.__self__, visited, deep), value.__name__)  # such as `table.values`
        case types.FunctionType() if not deep:
            return Same(value)
        case tuple() | list() | dict() | set() | frozenset() | types.FunctionType() | functools.partial():
            if id(value) in visited:
                return ("visited", visited[id(value)])
            visited[id(value)] = len(visited)
            return (type(value).__name__, *_parts(value, visited, deep))
    return Same(value)


def _parts(value: Any, visited: dict[int, int], deep: bool) -> Iterator[Any]:
    match value:
        case dict():
            yield from (
                (_fingerprint(key, visited, deep), _fingerprint(each, visited, deep)) for key, each in value.items()
            )
        case set() | frozenset():
            yield frozenset(_fingerprint(item, visited, deep) for item in value)
        case functools.partial():
            yield from (_fingerprint(part, visited, deep) for part in (value.func, value.args, value.keywords))
        case types.FunctionType():
            yield Same(value)
            yield from (_fingerprint(each, visited, deep) for each in _captured(value))
        case _:
            yield from (_fingerprint(item, visited, deep) for item in value)


def _captured(function: types.FunctionType) -> Iterator[Any]:
    """Yield the present values that a user's function reads from around it; of pcbatch's wrappers, closures only."""
    file = function.__code__.co_filename
    if is_installed(file) and not file.startswith(OWN):
        return
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for root, *attributes in _paths(function.__code__):
        if root in cells:
            try:
                value = cells[root].cell_contents
            except ValueError:  # a name that is not bound yet
                continue
        elif root in function.__globals__ and not file.startswith(OWN):
            value = function.__globals__[root]
        else:
            continue
        yield _followed(value, attributes)
    yield from (function.__defaults__, function.__kwdefaults__)


def _followed(value: Any, attributes: list[str]) -> Any:
    """`value.a.b..` as far as attributes are stored values: a property may give another object at each look."""
    for attribute in attributes:
        if isinstance(value, types.ModuleType) and is_installed(getattr(value, "__file__", None) or "<frozen>"):
            return value
        try:
            value = vars(value)[attribute]
        except (TypeError, KeyError):
            return value
    return value


@lru_cache(maxsize=4096)
def _paths(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """The names that `code` and the functions inside it load from around them, each with the attributes read off it."""
    found: dict[tuple[str, ...], None] = {}
    path: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        if instruction.opname in BETWEEN:
            continue
        if path and instruction.opname in ATTRIBUTES:
            path = (*path, instruction.argval)
            continue
        if path:
            found[path] = None
        path = (instruction.argval,) if instruction.opname in LOADS else ()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.update(dict.fromkeys(_paths(constant)))
    return tuple(found)


def is_of_user(function: types.FunctionType) -> bool:
    """Return whether `function` belongs neither to pcbatch nor to Python or an installed package."""
    file = function.__code__.co_filename
    return not (is_installed(file) or file.startswith(OWN))
