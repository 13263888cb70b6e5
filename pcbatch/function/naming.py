"""Names of batched functions: the one by which pickle finds them again, and signatures for messages."""

from __future__ import annotations

import importlib
import inspect
import pickle
import sys
from types import ModuleType
from typing import Any

from pcbatch.errors import UsageError
from pcbatch.function import pickled_functions
from pcbatch.function.callable_protocol import Linkable

SHOWN_DEFAULT = 20
"""The number of characters of a parameter's default that a signature shows."""


class NotPicklableError(UsageError, pickle.PicklingError):
    """PCB571: a batched function that pickle cannot find again by its name."""


def by_name(batched: Linkable) -> tuple[str, Any, dict[str, Any]]:
    """A reference to `batched`: its qualified name, the object of that name, and the options in which the two differ.

    NotPicklableError for a function that has no name in its module: a local one, or one that was bound anew.
    """
    module, namesake = batched.__module__, pickled_functions.made_of(batched.function)
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
