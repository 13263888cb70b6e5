"""The surroundings in which the user's code runs for one example: unchanged, with libraries that take our values.

A function runs by its own code object. Only what its names lead to is another one: modules and functions of TensorFlow,
NumPy and `math` take values of ours, batched functions are plain ones, and so on through helpers, closures, classes
and their methods. Everything else is what it is, live: variables, globals, the cells of closures.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.installed import OWN, is_installed
from pcbatch.ir import values
from pcbatch.runtime.backends.tensorflow import bounded as lanes
from pcbatch.runtime.backends.tensorflow import mapping as maps
from pcbatch.single import substitutes
from pcbatch.single.boundaries import OF, codes, may_change, of_values
from pcbatch.single.calls import case, library, number_type, power, sorted_numbers
from pcbatch.single.operating import STAND_INS, Float, Int, Type, is_instance
from pcbatch.single.substitutes import Accumulator, Tape
from pcbatch.single.values import Array, Variable, seen

_MISSING = object()
_LIBRARIES = frozenset({"math"})
_STEADY = frozenset({FunctionType, ModuleType, BuiltinFunctionType, type, int, float, bool, str, type(None), object})
"""The types of what stands for itself, or is stood for by one thing, as long as its name means it."""


class Library(ModuleType):
    """A module as the user's code sees it."""

    def __init__(self, module: ModuleType, around: Surroundings):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__["_of"] = module, around

    def __getattr__(self, name: str) -> Any:
        module, around = self.__dict__["_of"]
        found = around.substitute(getattr(module, name))
        if isinstance(found, (Array, ModuleType)) and not isinstance(found, Library):
            return found
        if around.is_library(module):
            self.__dict__[name] = found
        return found


class _View:
    """The globals of a module as copies of its functions see them: the names that these use."""

    def __init__(self, real: dict[str, Any], builtin: dict[str, Any]):
        self.real, self.shown = real, {"__builtins__": builtin}
        self.names: dict[str, Any] = {"__name__": _MISSING, "__package__": _MISSING}
        self.stored: set[str] = set()

    def use(self, code: CodeType) -> None:
        for each in codes(code):
            for name in each.co_names:
                self.names.setdefault(name, _MISSING)
            self.stored.update(i.argval for i in dis.get_instructions(each) if i.opname == "STORE_GLOBAL")

    def refresh(self, around: Surroundings) -> None:
        real, shown = self.real, self.shown
        for name in [*self.names]:
            value = real.get(name, _MISSING)
            if value is self.names[name] and type(value) in _STEADY:
                continue
            self.names[name] = value
            if value is _MISSING:
                shown.pop(name, None)
            else:
                shown[name] = around.substitute(value)

    def keep(self) -> None:
        """Hand on what the code has assigned to its globals."""
        for name in self.stored & self.shown.keys():
            if self.shown[name] is not self.real.get(name):
                self.real[name] = self.names[name] = self.shown[name]


def super_(*given: Any) -> Any:
    """`super`; a class that it is given stands before the user's own one, which it is asked about."""
    if given:
        return super(vars(given[0]).get(OF, given[0]), *given[1:])
    here: Any = inspect.currentframe()
    frame = here.f_back
    return super(frame.f_locals["__class__"], frame.f_locals[frame.f_code.co_varnames[0]])


_BUILTINS = {
    **vars(builtins),
    "float": Float,
    "int": Int,
    "isinstance": is_instance,
    "pow": power,
    "sorted": sorted_numbers,
    "super": super_,
    "type": Type,
}
"""Built-ins that differ from Python's in a lane, or must be asked here about classes."""


class Surroundings:
    """Those of one batched function.

    `plain_of(value)` is the plain function, and the receiver, of a value that is batched, None of any other; `empty`
    gives what a `pcbatch.map` of no calls has (see `substitutes.mapping`).
    """

    builtins: Mapping[str, Any] = _BUILTINS

    def __init__(self, root: FunctionType, plain_of: Callable[[Any], Any], empty: Callable[..., Any]):
        self.plain_of = plain_of
        self._folder = _own_folder(root.__code__.co_filename)
        self._builtins = {**self.builtins, "__import__": self._import}
        self._views: dict[int, _View] = {}
        self._tensors: dict[int, tuple[tf.Tensor, Any]] = {}
        """Captured tensors, by identity, with what stands for each."""
        self._copies: dict[FunctionType, FunctionType] = {}
        self._codes: dict[FunctionType, CodeType] = {}
        """Copies of functions, and the code that each function had then."""
        self._calls: dict[FunctionType, Callable[..., Any]] = {}
        self.changes = False
        """Tell whether anything that runs here may change an array, as far as is known."""
        self._classes: dict[type, type] = {lanes.Bounded: substitutes.Bounded}
        self._attributes: dict[type, dict[str, Any]] = {}
        """Attributes of the classes with replacements, when they were looked at."""
        self._shadows: dict[int, tuple[Any, Any]] = {}
        self._cells: list[tuple[CellType, Any, CellType]] = []
        self._special: dict[Any, Any] = self.special(empty)
        self.function = self.copy(root)

    def special(self, empty: Callable[..., Any]) -> dict[Any, Any]:
        """Return the replacements of single functions and classes."""
        tapes = {tf.GradientTape: Tape, tf.autodiff.ForwardAccumulator: Accumulator, tf.case: case}
        return {
            lanes.bounded: substitutes.bounded,
            maps.map: substitutes.mapping(empty),
            **substitutes.SPECIAL,
            **tapes,
        }

    def refresh(self) -> None:
        """Let names mean what they mean now."""
        while True:
            self._shadows.clear()
            before = len(self._copies), len(self._classes), self.changes
            for view in [*self._views.values()]:
                view.refresh(self)
            for kind in [*self._attributes]:
                self._refresh_class(kind, self._classes[kind])
            for function, copy in [*self._copies.items()]:
                copy.__defaults__, copy.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
            for place, (cell, known, own) in enumerate(self._cells):
                now = _contents(cell)
                if now is not known or type(now) not in _STEADY:
                    self._cells[place] = cell, now, own
                    own.cell_contents = self.substitute(now)
            if before == (len(self._copies), len(self._classes), self.changes):
                return

    def keep(self) -> None:
        """Hand on what the code has assigned to its globals."""
        for view in self._views.values():
            view.keep()

    # -- what stands for what ------------------------------------------------------------------------------------------

    def argument(self, value: Any) -> Any:
        """An array, a tensor or a number among the arguments."""
        return seen(tf.convert_to_tensor(value)) if isinstance(value, tf.Tensor) else value

    def _is_in(self, file: str) -> bool:
        """Return whether a file of pcbatch belongs to the part that the function is of, such as the sampler."""
        return self._folder is not None and file.startswith(self._folder)

    def _import(self, *given: Any, **options: Any) -> Any:
        """`import` in a function."""
        return self.substitute(builtins.__import__(*given, **options))

    def is_library(self, value: Any) -> bool:
        """Return whether a module, or a member of one, belongs to a library that is to get values of ours."""
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
        if name.partition(".")[0] in ("math", "tensorflow", "numpy", "keras"):
            return True
        file = getattr(value, "__file__", None) or ""
        return "site-packages" in file or "dist-packages" in file or (file.startswith(OWN) and not self._is_in(file))

    def is_users(self, function: FunctionType) -> bool:
        """Return whether a function is part of the running code, and not of a library."""
        file = function.__code__.co_filename
        return self._is_in(file) if file.startswith(OWN) else not is_installed(file)

    def substitute(self, value: Any) -> Any:
        """Return the user's code's replacement for a value that a name leads to."""
        try:
            if value in self._special:
                return self._special[value]
        except TypeError:
            pass
        batched = self.plain_of(value)
        if batched is not None:
            return self.called(*batched)
        match value:
            case ModuleType():
                return self._module(value)
            case FunctionType():
                return self.copy(value) if self.is_users(value) else self._function(value)
            case MethodType():
                plain = self.substitute(value.__func__)
                return MethodType(plain, self.shadow(value.__self__)) if plain is not value.__func__ else value
            case type():
                return self._type(value)
            case np.ufunc() | BuiltinFunctionType():
                return self.library(value) if self.is_library(value) else value
            case functools.partial():
                plain = self.substitute(value.func)
                return functools.partial(plain, *value.args, **value.keywords)
            case np.ndarray():
                return Array(value, is_constant=True) if value.dtype.kind in "biufc" and value.ndim else seen(value)
            case tf.Tensor():
                if len(self._tensors) > MOST_TENSORS:
                    self._tensors.clear()
                if id(value) not in self._tensors:  # by all its names it is one, as to a tape
                    self._tensors[id(value)] = value, seen(value)
                return self._tensors[id(value)][1]
            case np.generic():
                return seen(value)
            case tf.Variable():
                return Variable(value)
            case list() | tuple() if type(value) in (list, tuple):
                parts = [self.substitute(each) for each in value]
                return value if all(map(operator.is_, parts, value)) else type(value)(parts)
            case dict() if type(value) is dict:
                parts = [self.substitute(each) for each in value.values()]
                same = all(map(operator.is_, parts, value.values()))
                return value if same else dict(zip(value, parts, strict=True))
        if isinstance(getattr(value, "value", None), tf.Variable):  # Keras's own
            return Variable(value)
        if callable(value) and type(value).__module__.startswith("tensorflow.python.eager.polymorphic"):
            return self.library(value)
        if type(value).__module__ == "numpy" and callable(value):
            return self.library(value)
        return self.shadow(value)

    def _function(self, value: FunctionType) -> Any:
        file = value.__code__.co_filename
        is_third = "site-packages" in file or "dist-packages" in file or file.startswith(OWN)
        return self.library(value) if is_third or self.is_library(value) else value

    def library(self, function: Any) -> Callable[..., Any]:
        """A library's function as one of the values that run here."""
        return library(function)

    def _module(self, module: ModuleType) -> Any:
        is_users = not is_installed(getattr(module, "__file__", None) or "<frozen")
        if is_users and not self.is_library(module):
            self._now_changes()  # nobody knows which of its functions are called
        if module.__name__ in substitutes.MODULES or self.is_library(module) or is_users:
            return Library(module, self)
        return module

    def _type(self, kind: type) -> Any:
        if kind in STAND_INS:
            return STAND_INS[kind]
        if issubclass(kind, np.generic) and kind.__module__ == "numpy" and kind in _NUMBERS:
            return number_type(kind)  # type: ignore[arg-type]
        return self.class_of(kind) if values.is_record_class(kind) else kind

    def class_of(self, kind: type) -> type:
        """The class below one of the user's, and below those of its bases, whose methods run in these surroundings."""
        if kind in self._classes:
            return self._classes[kind]
        if OF in vars(kind) or not self._is_users_class(kind):
            return kind
        bases = tuple(each for base in kind.__bases__ if (each := self.class_of(base)) is not base)
        if kind in self._classes:  # made meanwhile, for a method of a base that names it
            return self._classes[kind]
        names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, OF: kind}
        if issubclass(kind, tuple):
            names["__slots__"] = ()
        made = self._classes[kind] = type(kind)(kind.__name__, (kind, *bases), names)
        self._attributes[kind] = {}
        self._refresh_class(kind, made)
        return made

    def _refresh_class(self, kind: type, made: type) -> None:
        """Let a class have the attributes that the user's has now."""
        known, now = self._attributes[kind], dict(vars(kind))
        for name in known.keys() - now.keys():
            known.pop(name)
            if name in vars(made):
                delattr(made, name)
        for name, each in now.items():
            if name in _NOT_OWN or known.get(name, _MISSING) is each:
                continue
            known[name], own = each, self._attribute(each)
            if own is not each:
                setattr(made, name, own)
            elif name in vars(made):
                delattr(made, name)
        if "__eq__" in vars(made):
            made.__hash__ = kind.__hash__  # type: ignore[method-assign]

    def _is_users_class(self, kind: type) -> bool:
        file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        if kind.__module__ == "builtins" or is_installed(file) or (file.startswith(OWN) and not self._is_in(file)):
            return False
        return values.is_record_class(kind)

    def _attribute(self, value: Any) -> Any:
        match value:
            case FunctionType():
                return self.copy(value) if self.is_users(value) and value.__code__.co_filename != "<string>" else value
            case staticmethod() | classmethod():
                plain = self._attribute(value.__func__)
                return value if plain is value.__func__ else type(value)(plain)
            case property():
                parts = [each and self._attribute(each) for each in (value.fget, value.fset, value.fdel)]
                same = all(new is old for new, old in zip(parts, (value.fget, value.fset, value.fdel), strict=True))
                return value if same else property(parts[0], parts[1], parts[2], value.__doc__)
        return value

    def shadow(self, value: Any) -> Any:
        """An object of the user's as one of the class that stands for its own."""
        kind = type(value)
        if kind.__module__ == "builtins" or not hasattr(value, "__dict__") or not values.is_record_class(kind):
            return value
        made = self.class_of(kind)
        if made is kind or isinstance(value, tuple):
            return value
        if id(value) in self._shadows:
            return self._shadows[id(value)][1]
        found: Any = object.__new__(made)
        self._shadows[id(value)] = value, found
        found.__dict__.update((name, self.substitute(each)) for name, each in [*vars(value).items()])
        return found

    # -- functions -----------------------------------------------------------------------------------------------------

    def copy(self, function: FunctionType) -> FunctionType:
        """A function of the same code in these surroundings."""
        known = self._copies.get(function)
        if known is not None and self._codes[function] is function.__code__:
            return known
        view = self._views.setdefault(id(function.__globals__), _View(function.__globals__, self._builtins))
        names = function.__code__.co_freevars
        pairs = zip(names, function.__closure__ or (), strict=True)
        cells = tuple(cell if name == "__class__" else self._cell(cell) for name, cell in pairs)
        code = self.code(function)
        copy = FunctionType(code, view.shown, function.__name__, function.__defaults__, cells or None)
        copy.__kwdefaults__, copy.__qualname__ = function.__kwdefaults__, function.__qualname__
        copy.__dict__.update(function.__dict__)
        self._copies[function], self._codes[function] = copy, function.__code__
        if may_change(function):
            self._now_changes()
        view.use(code)
        view.refresh(self)
        for cell, _, own in self._cells:
            if any(each is own for each in cells):
                own.cell_contents = self.substitute(_contents(cell))
        return copy

    def code(self, function: FunctionType) -> CodeType:
        """The code by which a function runs here."""
        return function.__code__

    def _now_changes(self) -> None:
        """Let batched functions be called with copies from now on."""
        if not self.changes:
            self.changes = True
            self._calls.clear()

    def _cell(self, cell: CellType) -> CellType:
        """A cell of its own where it holds what another one stands for."""
        for known, _, own in self._cells:
            if known is cell:
                return own
        value = _contents(cell)
        if value is _MISSING or not _is_another(value, self):
            return cell
        own = CellType(value)
        self._cells.append((cell, value, own))
        return own

    def called(self, function: FunctionType, receiver: Any = None) -> Callable[..., Any]:
        """A batched function as others call it: arrays are values, which it changes for itself alone."""
        if function not in self._calls:
            copy = self.copy(function)
            self._calls[function] = of_values(copy) if self.changes else copy
        plain = self._calls[function]
        return plain if receiver is None else MethodType(plain, self.shadow(receiver))


def _is_another(value: Any, around: Surroundings) -> bool:
    if isinstance(value, (FunctionType, ModuleType, type, np.ndarray, np.generic, tf.Tensor, MethodType)):
        return True
    return around.plain_of(value) is not None or around.substitute(value) is not value


MOST_TENSORS = 1000
"""So many captured tensors are known for what they are; where names keep getting others, they are forgotten."""
_NOT_OWN = frozenset({"__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__hash__"})
_NUMBERS = frozenset(np.dtype(code).type for code in "?bhilqBHILQefd")


def _own_folder(file: str) -> str | None:
    """The folder of a part of pcbatch that has `file`; None for files of others."""
    return str(Path(OWN, Path(file).relative_to(OWN).parts[0])) if file.startswith(OWN) else None


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _MISSING
