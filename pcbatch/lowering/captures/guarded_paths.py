"""The places around a function where values were read, for a later call to read again and compare.

The names that a function's byte code loads from around it, and attributes of what they denote, are such places.
They matter for functions of the user's that are called and not interpreted. What a property computes is followed into
the property; installed packages are taken as they are.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import ModuleType
from typing import Any, Literal

from pcbatch.installed import is_installed
from pcbatch.lowering.captures.captured import is_of_user

# -- places ------------------------------------------------------------------------------------------------------------


MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()
"""The value of a place where there is nothing."""

Kind = Literal["cell", "global", "attribute", "class", "computed", "itself", "item", "part", "default", "held"]
"""The kind of a place. "class" is in a class and not in those that it inherits from, "part" an item of what is at
another place, "computed" the result of a function, "held" the result of a context manager, "itself" always there."""


class GoneError(Exception):
    """Raised if a place has no value any more."""


@dataclass(frozen=True, eq=False)
class Place:
    """The place of a value that was read: a closure's cell, a global, an attribute or an item of an object."""

    kind: Kind
    holder: Any
    key: Any
    text: str = field(default="", repr=False)

    @property
    def identity(self) -> tuple[Any, ...]:
        """A key that tells the place from all others as long as its holder lives."""
        key = self.key if isinstance(self.key, str | int) else repr(self.key)
        holder = self.holder.identity if isinstance(self.holder, Place) else id(self.holder)
        return self.kind, holder, key

    def item(self, key: Any) -> Place:
        """Return the place of an item of the value here."""
        return Place("part", self, key, f"{self.text}[{key!r}]")

    def read(self) -> Any:
        """The value that is there now; GoneError if there is none."""
        try:
            match self.kind:
                case "cell":
                    return self.holder.cell_contents
                case "global":
                    return _global(self.holder, self.key)
                case "attribute":
                    return getattr(self.holder, self.key)
                case "class":
                    return vars(self.holder)[self.key]
                case "computed":
                    return self.holder()
                case "itself":
                    return self.holder
                case "item":
                    return self.holder[self.key]
                case "part":
                    return self.holder.read()[self.key]
                case "default":
                    return _default(self.holder, self.key)
        except (AttributeError, KeyError, IndexError, ValueError, TypeError) as error:
            raise GoneError from error
        raise GoneError

    def at_a_glance(self) -> tuple[Callable[[Any, Any], Any], Any]:
        """A pair of `get` and `key`: `get(key, MISSING)` is the value that is there now.

        ValueError, or another error of Python's, where there is none.
        """
        match self.kind:
            case "cell":
                return partial(getattr, self.holder), "cell_contents"
            case "global" if self.key in self.holder:
                return self.holder.get, self.key
            case "attribute" if type(self.holder) is ModuleType:
                return vars(self.holder).get, self.key
            case "attribute":
                return partial(getattr, self.holder), self.key
            case "class":
                return vars(self.holder).get, self.key
            case "item" if type(self.holder) is dict:
                return self.holder.get, self.key
            case "part":
                get, key = self.holder.at_a_glance()
                return partial(_part, get, key, self.key), self.identity
        return self._read_or, self.identity

    def _read_or(self, key: Any, default: Any) -> Any:
        try:
            return self.read()
        except GoneError:
            return default


def _global(names: Mapping[str, Any], key: str) -> Any:
    if key in names:
        return names[key]
    builtins = names["__builtins__"]
    return (builtins if isinstance(builtins, dict) else vars(builtins))[key]


def _part(get: Callable[[Any, Any], Any], key: Any, part: Any, _: Any, default: Any) -> Any:
    return get(key, default)[part]


def _default(function: Any, key: int | str) -> Any:
    return function.__defaults__[key] if isinstance(key, int) else function.__kwdefaults__[key]


# -- names in byte code ------------------------------------------------------------------------------------------------


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
