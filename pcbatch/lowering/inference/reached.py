"""What user code can change besides what it is given: what its names, closures and defaults lead to.

A helper, a method, a callable object runs while the program is traced. Followed are the names that its code has, into
the functions that these name in turn, and what can change in what they denote: lists, dicts, sets, arrays, objects and
classes of the user's, closure cells and globals that are assigned. No code runs for that.
"""

from __future__ import annotations

import array
import dis
import functools
import itertools
import types
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pcbatch.lowering.captures.reads import stored
from pcbatch.lowering.captures.reads.record import COPIED, MISSING, alike

MOST = 1000
"""So many values are looked into from one statement, and so many elements of one container."""
CONTENTS = 10_000
"""Of longer containers the length alone is compared."""
PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None), range, slice, types.BuiltinFunctionType))
ALL = object()
"""The one part of what has no names for its parts."""
SEQUENCES = (list, set, deque, bytearray, array.array)


@dataclass(frozen=True)
class Place:
    """Something that can change: `name` says what it is to the user; `then` is what it was, of these `names` if any."""

    name: str
    whole: Any
    names: frozenset[str] | None
    then: Any

    def changed(self) -> frozenset[Any] | None:
        """Which named parts are not what they were; None if all are, none of them if there are new ones alone.

        What was None counts as new: so a cache begins. Of what has no named parts it is `self` that changes.
        """
        now = _state(self.whole, self.names)
        if not isinstance(now, dict):
            return frozenset((ALL,)) if _differ(now, self.then) else None
        keys = {
            key for key in now.keys() | self.then.keys() if _differ(now.get(key, MISSING), self.then.get(key, MISSING))
        }
        return frozenset(key for key in keys if self.then.get(key) is not None) if keys else None

    def is_read(self, parts: frozenset[Any], names: frozenset[str]) -> bool:
        """Whether code with these `names` that reaches this reads some of its `parts`: of an object, what it names."""
        is_object = isinstance(self.whole, (type, types.ModuleType)) or _is_plain_object(self.whole)
        return bool(parts & names) if is_object else bool(parts)


@dataclass(frozen=True)
class Reach:
    """What some code reaches that can change, and all names of attributes that it has."""

    places: Sequence[Place]
    names: frozenset[str]


def _differ(a: Any, b: Any) -> bool:
    if a is b:
        return False
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) != len(b) or any(map(_differ, a, b))
    return not (type(a) in PLAIN and alike(a, b))


def reach(roots: Iterable[tuple[str, Any]], names: Iterable[str]) -> Reach:
    """What is reached from named `roots`, by code that has these `names` of attributes."""
    walk = _Walk({*names})
    for name, value in roots:
        walk.meet(value, f"`{name}`")
    walk.finish()
    return Reach(walk.found, frozenset(walk.names))


def code_of(value: Any) -> Any:
    """What runs of a lane's value that something is called of: a function itself, the class of an object."""
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        return value
    return type(value) if _is_plain_object(value) else None


@dataclass(frozen=True)
class _Read:
    """The names that code has: globals, those of them that it assigns, cells that it assigns, attributes."""

    globals: frozenset[str]
    assigned_globals: frozenset[str]
    assigned: frozenset[str]
    attributes: frozenset[str]


@dataclass
class _Walk:
    """A walk over values and code; `names` are all that the code has so far, by which methods are found."""

    names: set[str]
    found: list[Place] = field(default_factory=list)
    met: dict[int, Any] = field(default_factory=dict)
    classes: list[type] = field(default_factory=list)

    def finish(self) -> None:
        """Look into the methods that some code names, of all classes that were met, until there are no more."""
        known = -1
        while known != len(self.met):
            known = len(self.met)
            for class_ in [*self.classes]:
                for name, value in [*vars(class_).items()]:
                    if name in self.names or (name.startswith("__") and name.endswith("__")):
                        for function in stored.functions(value):
                            self.meet(function, f"`{class_.__name__}.{name}`")

    def meet(self, value: Any, name: str) -> None:
        """Look into `value`, which is `name` to the user."""
        if type(value) in PLAIN or id(value) in self.met or len(self.met) > MOST or stored.is_own_method(value):
            return
        self.met[id(value)] = value
        match value:
            case types.FunctionType():
                self._meet_function(value)
            case types.MethodType():
                self.meet(value.__self__, name)
                self.meet(value.__func__, name)
            case functools.partial():
                self._meet_all((value.func, *value.args, *value.keywords.values()), name)
            case tuple() | frozenset():
                self._meet_all(value, name)
            case dict():
                self._keep(name, value)
                self._meet_all((*value.keys(), *value.values()), name)
            case _ if isinstance(value, SEQUENCES):
                self._keep(name, value)
                self._meet_all(value if isinstance(value, (list, set, deque)) else (), name)
            case np.ndarray() if value.nbytes <= COPIED:
                self._keep(name, value)
            case itertools.count() | types.GeneratorType():
                self._keep(name, value)
            case type():
                self._meet_class(value)
            case _ if hasattr(type(value), "__length_hint__"):
                self._keep(name, value)
            case _ if _is_plain_object(value):
                self._meet_class(type(value))
                held = stored.instance_dict(value)
                if held is not None or _slots(value.__class__):
                    self._keep(name, value)
                    self._meet_all(_state(value, None).values(), name)
            case _:
                self.meet((stored.instance_dict(value) or {}).get("__wrapped__"), name)

    def _keep(self, name: str, whole: Any, names: frozenset[str] | None = None) -> None:
        self.found.append(Place(name, whole, names, _state(whole, names)))

    def _meet_all(self, values: Iterable[Any], name: str) -> None:
        for value in itertools.islice(values, MOST):
            self.meet(value, name)

    def _meet_class(self, class_: type) -> None:
        for each in class_.__mro__:
            if stored.is_users_class(each) and each not in self.classes:
                self.classes.append(each)
                self._keep(f"`{each.__name__}`", each)
                held = [value for value in vars(each).values() if not callable(value)]
                self._meet_all(held, f"an attribute of `{each.__name__}`")

    def _meet_function(self, function: types.FunctionType) -> None:
        held = {name: cell for name, cell in _cells(function).items() if _content(cell) is not MISSING}
        if not stored.is_users_code(function.__code__, function.__globals__):
            # What wraps a function of the user's has it in a cell.
            wrapped = [*map(_content, held.values()), vars(function).get("__wrapped__")]
            self._meet_all([each for each in wrapped if isinstance(each, (types.FunctionType, types.MethodType))], "")
            return
        own = function.__name__
        read = _read(function.__code__)
        self.names |= read.attributes
        for name, cell in held.items():
            if name in read.assigned:
                self._keep(f"`{name}`, of around `{own}`", cell)
            self.meet(_content(cell), f"`{name}`, of around `{own}`")
        if read.assigned_globals:
            shown = ", ".join(f"`{name}`" for name in sorted(read.assigned_globals))
            self._keep(f"the global {shown}", function.__globals__, read.assigned_globals)
        for name in read.globals:
            self._meet_global(function.__globals__.get(name), name, read)
        self._keep(f"`{own}`, an attribute", vars(function))
        self._meet_all(vars(function).values(), f"an attribute of `{own}`")
        for name, value in _defaults(function).items():
            self.meet(value, f"`{name}`, a default of `{own}`")

    def _meet_global(self, value: Any, name: str, read: _Read) -> None:
        """A global of some code; of a module of the user's what the code names in it."""
        if not isinstance(value, types.ModuleType):
            self.meet(value, f"the global `{name}`")
        elif stored.is_users_module(value) and id(value) not in self.met:
            self._keep(f"the module `{name}`", value, read.attributes)
            for each in read.attributes:
                self.meet(vars(value).get(each), f"`{name}.{each}`")


@functools.lru_cache(maxsize=4096)
def _read(code: types.CodeType) -> _Read:
    """The names of `code`, and of the functions inside it."""
    found: dict[str, set[str]] = {"LOAD_GLOBAL": set(), "STORE_GLOBAL": set(), "STORE_DEREF": set()}
    for each in dis.get_instructions(code):
        kind = each.opname.replace("DELETE", "STORE").replace("LOAD_NAME", "LOAD_GLOBAL")
        if kind in found and isinstance(each.argval, str):
            found[kind].add(each.argval)
    inner = [_read(each) for each in code.co_consts if isinstance(each, types.CodeType)]
    own = frozenset(code.co_names)
    return _Read(
        frozenset(found["LOAD_GLOBAL"]).union(*(each.globals for each in inner)),
        frozenset(found["STORE_GLOBAL"]).union(*(each.assigned_globals for each in inner)),
        frozenset(found["STORE_DEREF"]).union(*(each.assigned for each in inner)),
        own.union(*(each.attributes for each in inner)),
    )


def _state(whole: Any, names: frozenset[str] | None) -> Any:
    """What can be compared of `whole`, at once: a dict of what has names, else a tuple or a number."""
    match whole:
        case dict() if names is not None:
            return {name: whole.get(name, MISSING) for name in names}
        case types.ModuleType():
            return {name: vars(whole).get(name, MISSING) for name in names or ()}
        case dict():
            return dict(whole) if len(whole) <= CONTENTS else len(whole)
        case types.CellType():
            return (_content(whole),)
        case np.ndarray():
            return whole.shape, whole.dtype.str, whole.tobytes()
        case itertools.count():
            return repr(whole)
        case types.GeneratorType():
            frame = whole.gi_frame
            return () if frame is None else (frame.f_lasti, *frame.f_locals.values())
        case type():
            return {name: value for name, value in vars(whole).items() if not name.startswith("__")}
        case _ if isinstance(whole, SEQUENCES):
            return tuple(whole) if len(whole) <= CONTENTS else len(whole)
        case _ if hasattr(type(whole), "__length_hint__"):
            return whole.__length_hint__()
    slots = {name: getattr(whole, name, MISSING) for name in _slots(whole.__class__)}
    return slots | (stored.instance_dict(whole) or {})


@functools.lru_cache(maxsize=1024)
def _slots(class_: Any) -> tuple[str, ...]:
    """The names of the slots that objects of a class have."""
    members = ((name, value) for each in class_.__mro__ for name, value in vars(each).items())
    return tuple(name for name, value in members if isinstance(value, types.MemberDescriptorType))


def _is_plain_object(value: Any) -> bool:
    """Whether an object's class is the user's, with all that it inherits from: a layer of a library is not."""
    return all(map(stored.is_users_class, type(value).__mro__[:-1]))


def _cells(function: types.FunctionType) -> dict[str, types.CellType]:
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    """The defaults of a function's parameters, by name."""
    code, given = function.__code__, function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    return dict(zip(positional[len(positional) - len(given) :], given, strict=True)) | (function.__kwdefaults__ or {})
