"""Batched functions as linking, messages and pickle know them: their interface, their names, and pickles by value.

A batched function has a name by which pickle finds it again, and signatures for messages.

In processes in which its name means nothing a pickle has it by value.
Functions of `__main__` have names that only the process knows that runs the program: the workers of Dask or joblib have
a `__main__` of their own. So cloudpickle, which these use, pickles plain functions of `__main__` by value, and all else
as it says itself. A batched function says: by its name, and by a plain function (`made`) that whoever pickles by name
finds as an attribute of the one of that name, while cloudpickle takes it apart. Of this `arrived` makes a batched one.

The plain function may lead back to the batched one, by its names; then that is wanted before the function is complete.
"""

from __future__ import annotations

import importlib
import inspect
import linecache
import pickle
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

from pcbatch.errors import UsageError
from pcbatch.frontend import FunctionSource

# -- interface ---------------------------------------------------------------------------------------------------------


class Linkable(ABC):
    """A batched function as others call it: its source, the plain function behind it, and the names' meanings."""

    __name__: str
    __qualname__: str
    __signature__: inspect.Signature
    function: Any  # a FunctionType, which a type checker would take for a method
    """The user's function."""
    receiver: Any
    """The object that a method is bound to."""

    @property
    @abstractmethod
    def function_source(self) -> FunctionSource:
        """The captured source."""

    @property
    @abstractmethod
    def static_argnames(self) -> tuple[str, ...]:
        """The static parameters."""

    @abstractmethod
    def all_options(self) -> dict[str, Any]:
        """Every option."""

    @abstractmethod
    def under(self, changes: Mapping[str, Any]) -> Linkable:
        """The same function under other options."""

    @abstractmethod
    def inner(self, key: Hashable, make: Callable[[], tuple[Any, FunctionSource | None]]) -> Linkable:
        """The batched function of another one, which `make` makes with its source: one for each key."""

    @abstractmethod
    def is_relative(self, other: object) -> bool:
        """Return whether `other` is this function, perhaps under other options."""


# -- pickles by value --------------------------------------------------------------------------------------------------


ATTRIBUTE = "carried_function"
"""The attribute of a batched function that is found by name."""
TEXT = "__pcbatch_text__"
"""The attribute of a plain function that is complete: what it was wrapped in, its file, and the lines of that."""
B = TypeVar("B")


def is_by_value(function: FunctionType, module: str) -> bool:
    """Return whether a pickler may take the functions of `module` apart, as cloudpickle does."""
    cloudpickle = sys.modules.get("cloudpickle")
    registered = cloudpickle.list_registry_pickle_by_value() if cloudpickle is not None else ()
    return (
        module == "__main__"
        or made_of(function) is not None
        or any(f"{module}.".startswith(f"{each}.") for each in registered)
    )


def made(function: FunctionType, module: str, wrapped: Any) -> FunctionType:
    """A copy of a function for a pickle; `wrapped` is the object that `autobatch` was given, perhaps a staticmethod."""
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__module__ = function.__kwdefaults__, module
    kind = type(wrapped).__name__ if isinstance(wrapped, (classmethod, staticmethod)) else ""
    file = function.__code__.co_filename
    setattr(copy, TEXT, (kind, file, linecache.getlines(file, function.__globals__)))
    return copy


def named(function: FunctionType, name: str) -> FunctionType:
    """The copy that `made` returned, under the qualified name of its batched function."""
    function.__qualname__ = f"{name}.{ATTRIBUTE}"
    return function


Complete = Callable[[Any, Any], None]
"""Fills in a blank object, from the plain function or from the static or class method around it."""
_PENDING = "__pcbatch_pending__"


def arrived(function: FunctionType, key: str, blank: B, complete: Complete) -> B:
    """The object made of a plain function that has arrived: one for each `key`, at first the `blank` one.

    `complete` fills it in as soon as the function is complete.
    """
    pending: dict[str, tuple[Any, Complete | None]] = vars(function).setdefault(_PENDING, {})
    found, _ = pending.setdefault(key, (blank, complete))
    if hasattr(function, TEXT):
        kind, file, lines = getattr(function, TEXT)
        function.__qualname__ = function.__qualname__.removesuffix(f".{ATTRIBUTE}")
        _place(function, file, lines)
        wrapped: Any = _KINDS[kind](function)
        for each, (one, todo) in [*pending.items()]:
            pending[each] = one, None
            if todo is not None:
                todo(one, wrapped)
    result: B = found
    return result


def made_of(function: FunctionType) -> Any:
    """The batched function that was made of a plain one that has arrived here; None of any other."""
    return vars(function).get(_PENDING, {}).get("", (None, None))[0]


def _place(function: FunctionType, file: str, lines: Sequence[str]) -> None:
    """Let the code of a function, and of those around it that stand in the same file, be of that file again."""
    if linecache.getlines(file) != lines:
        linecache.cache[file] = (sum(map(len, lines)), None, list(lines), file)
    lost = function.__code__.co_filename  # cloudpickle gives all code one name
    for each in (function, *function.__globals__.values()):
        if isinstance(each, FunctionType) and each.__code__.co_filename == lost != file:
            first = each.__code__.co_firstlineno - 1
            if any(each.__name__ in line or "lambda" in line for line in lines[first : first + DECORATORS]):
                each.__code__ = _of_file(each.__code__, file)


DECORATORS = 20
"""Number of lines, from a function's first one, among which its name stands, behind its decorators."""


def _of_file(code: CodeType, file: str) -> CodeType:
    inside = (_of_file(each, file) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(inside))


_KINDS: Mapping[str, Callable[[Any], Any]] = {
    "": lambda function: function,
    "classmethod": classmethod,
    "staticmethod": staticmethod,
}


# -- names -------------------------------------------------------------------------------------------------------------


SHOWN_DEFAULT = 20
"""The number of characters of a parameter's default that a signature shows."""


class NotPicklableError(UsageError, pickle.PicklingError):
    """PCB571: a batched function that pickle cannot find again by its name."""


def by_name(batched: Linkable) -> tuple[str, Any, dict[str, Any]]:
    """A reference to `batched`: its qualified name, the object of that name, and the options in which the two differ.

    NotPicklableError for a function that has no name in its module: a local one, or one that was bound anew.
    """
    module, namesake = batched.__module__, made_of(batched.function)
    for name in (batched.__qualname__, *_names(batched)):
        found = _find(module, name) if namesake is None else namesake
        if batched.is_relative(found):
            return name, found, _changes(batched, found)
    what = (
        "it was defined inside a function" if "<locals>" in batched.__qualname__ else "that name is something else now"
    )
    raise NotPicklableError(
        "PCB571",
        f"the batched function {batched.__qualname__} cannot be found by its name in the module {module}: {what}; "
        "define it at the top level of a module that can be imported",
    )


def restored(module: str, name: str, changes: dict[str, Any]) -> Linkable:
    """The batched function `name` of `module`, which is imported, under its options with `changes`."""
    importlib.import_module(module)
    found = _find(module, name)
    if not isinstance(found, Linkable):
        raise NotPicklableError(
            "PCB571", f"the module {module} has no batched function {name}, of which this is a pickle"
        )
    return found.under(changes) if changes else found


def of_receiver(batched: Linkable, receiver: Any) -> tuple[str, dict[str, Any]] | None:
    """The name of a bound function in its `receiver`, and the options in which it differs; None if it has none there.

    Python pickles methods so, too.
    """
    classes = receiver.__mro__ if isinstance(receiver, type) else type(receiver).__mro__
    others = (name for each in classes for name, value in vars(each).items() if isinstance(value, Linkable))
    for name in (batched.function.__name__, *others):
        found = getattr(receiver, name, None)
        if isinstance(found, Linkable) and found.function is batched.function:
            return name, _changes(batched, found)
    return None


def restored_method(receiver: Any, name: str, changes: dict[str, Any]) -> Linkable:
    """The batched function `name` of an object or a class, under its options with `changes`."""
    found: Linkable = getattr(receiver, name)
    return found.under(changes) if changes else found


def _changes(batched: Linkable, found: Linkable) -> dict[str, Any]:
    """The options of `batched` that `found` has not."""
    return {k: v for k, v in batched.all_options().items() if v != found.all_options()[k]}


def _names(batched: Linkable) -> list[str]:
    """Return the other names of the function in its module or class, as `fast` after `fast = autobatch(slow)`."""
    outer = batched.__qualname__.rpartition(".")[0]
    places = [("", sys.modules.get(batched.__module__)), (f"{outer}.", _find(batched.__module__, outer))]
    return [
        f"{prefix}{name}"
        for prefix, place in places
        if isinstance(place, ModuleType | type)
        for name, value in vars(place).items()
        if batched.is_relative(value)
    ]


def _find(module: str, qualname: str) -> Any:
    """The object that a dotted name denotes in an imported module; None if there is none."""
    found: Any = sys.modules.get(module)
    for name in qualname.split("."):
        found = inspect.getattr_static(found, name, None)
    return found.__func__ if isinstance(found, staticmethod) else found


def short_signature(signature: inspect.Signature) -> str:
    """`(x, n=3)`: the names of the parameters, without annotations, long defaults left out."""
    shown = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_short(parameter.default))
        for parameter in signature.parameters.values()
    ]
    return str(inspect.Signature(shown))


def _short(default: Any) -> Any:
    if default is inspect.Parameter.empty or len(repr(default)) <= SHOWN_DEFAULT:
        return default
    return _Dots()


class _Dots:
    def __repr__(self) -> str:
        return ".."
