"""The names that a function's byte code loads from around it, and attributes of what they denote, as places.

For functions of the user's that are called and not interpreted. What a property computes is followed into the property;
installed packages are taken as they are.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from pcbatch.installed import is_installed
from pcbatch.lowering.captures.fingerprints import is_of_user
from pcbatch.lowering.captures.guarded_paths import MISSING, GoneError, Place

NAMES = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"}
ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
BETWEEN = {"CACHE", "PUSH_NULL", "COPY"}
"""Byte code that loads a name from around a function, that reads an attribute of it, and that may stand between."""

Lead = tuple[types.FunctionType, Mapping[str, Any]]
"""A function of the user's that may run, with known properties of its variables."""


def names_read(function: types.FunctionType, given: Mapping[str, Any]) -> Iterator[tuple[Place, Any, Any]]:
    """Places that `function` reads when the variables of `given` are these objects, with values and their owners."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for kind, root, *attributes in _paths(function.__code__):
        place: Place | None = None
        if kind == "local" and root in given:
            value, text = given[root], root
        elif kind == "import" and root in sys.modules:
            value, text = sys.modules[root], root
        elif kind == "free" and root in cells:
            place, text = Place("cell", cells[root], "cell_contents", root), root
        elif kind == "free" and root in function.__globals__:
            place, text = Place("global", function.__globals__, root, root), root
        else:
            continue
        if place is not None:
            value = _now(place)
            yield place, value, None
        yield from _followed(value, attributes, text)
    for number, default in enumerate(function.__defaults__ or ()):
        yield Place("default", function, number, f"default_{number}"), default, None
    for name, default in (function.__kwdefaults__ or {}).items():
        yield Place("default", function, name, f"default_{name}"), default, None
    yield Place("attribute", function, "__code__", f"{function.__name__}.__code__"), function.__code__, None


def _now(place: Place) -> Any:
    try:
        return place.read()
    except GoneError:
        return MISSING


def leads(value: Any, owner: Any = None) -> Iterator[Lead]:
    """The functions of the user's that may run where `value`, an attribute of `owner`, is looked up or called.

    Of a library's callable these are the ones that it holds: what a decorator has wrapped, a primitive's forms.
    """
    match value:
        case types.FunctionType() if is_of_user(value):
            names = value.__code__.co_varnames
            yield value, {} if owner is None or not names else {names[0]: owner}
        case types.FunctionType():
            yield from _held(cell.cell_contents for cell in value.__closure__ or () if _is_bound(cell))
        case types.MethodType(__func__=function, __self__=receiver):
            yield from leads(function, receiver)
        case functools.partial(func=function, args=given, keywords=named):
            for found, known in leads(function):
                names = found.__code__.co_varnames[len(known) :]
                yield found, {**dict(zip(names, given, strict=False)), **named, **known}
        case staticmethod(__func__=function):
            yield from leads(function)
        case classmethod(__func__=function):
            yield from leads(function, type(owner))
        case property(fget=function) | functools.cached_property(func=function):
            yield from leads(function, owner)
        case type() | types.ModuleType():
            return
        case _:
            methods = (getattr(type(value), name, None) for name in ("__call__", "call", "__get__"))
            for method in methods:
                if isinstance(method, types.FunctionType) and is_of_user(method):
                    yield from leads(method, value)
            yield from _held(getattr(value, "__dict__", {}).values())


def _is_bound(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_users(function: types.FunctionType | types.MethodType) -> bool:
    inner = function.__func__ if isinstance(function, types.MethodType) else function
    return isinstance(inner, types.FunctionType) and is_of_user(inner)


def _held(values: Iterable[Any]) -> Iterator[Lead]:
    """The user's functions among what a library's callable holds."""
    for each in [*values]:
        if isinstance(each, types.FunctionType | types.MethodType) and _is_users(each):
            yield from leads(each)


def _followed(value: Any, attributes: list[str], text: str) -> Iterator[tuple[Place, Any, Any]]:
    """The places on the way from a value to its attributes, as far as they are stored."""
    for attribute in attributes:
        if isinstance(value, types.ModuleType) and is_installed(getattr(value, "__file__", None) or "<frozen>"):
            return
        text = f"{text}.{attribute}"
        owner = value
        held = getattr(owner, "__dict__", None)
        if isinstance(held, dict | types.MappingProxyType) and attribute in held and not isinstance(owner, type):
            value = held[attribute]
            yield Place("attribute", owner, attribute, text), value, None
            continue
        mro = owner.__mro__ if isinstance(owner, type) else type(owner).__mro__
        base = next((each for each in mro if attribute in vars(each)), None)
        if base is None or base is object or (base.__flags__ & (1 << 8) and base.__module__ == "builtins"):
            return
        entry = vars(base)[attribute]
        for before in mro[: mro.index(base)]:
            yield Place("class", before, attribute, f"{before.__name__}.{attribute}"), MISSING, None
        yield Place("class", base, attribute, f"{base.__name__}.{attribute}"), entry, owner
        if isinstance(entry, types.MemberDescriptorType) and not isinstance(owner, type):
            value = getattr(owner, attribute, MISSING)
            yield Place("attribute", owner, attribute, text), value, None
            continue
        if hasattr(type(entry), "__get__"):
            return
        value = entry


@lru_cache(maxsize=4096)
def _paths(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """Each name, behind "local", "free" or "import", and the attributes read off it; of functions inside, too."""
    found: dict[tuple[str, ...], None] = {}
    path: tuple[str, ...] = ()
    module = ""
    own = code.co_varnames + code.co_cellvars
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        if name in BETWEEN:
            continue
        if path and name in ATTRIBUTES:
            path = (*path, value)
            continue
        if path:
            found[path] = None
        path = ()
        if name == "IMPORT_NAME":
            module = value
        elif name == "IMPORT_FROM":
            found["import", module, value] = None
        elif name in NAMES:
            path = ("local" if value in own else "free", value)
        elif name.startswith("LOAD_FAST"):
            path = ("local", value[-1] if isinstance(value, tuple) else value)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            for kind, root, *attributes in _paths(constant):
                if kind != "local":
                    found[("local" if kind == "free" and root in own else kind, root, *attributes)] = None
    return tuple(found)
