"""Stand-ins for the values of a module that has not run: opaque ones, and batched functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

from pcbatch.reading import sources
from pcbatch.reading.builtins import DEBUG, MAP, SYNC
from pcbatch.reading.calls import BatchedFunction

KNOWN: dict[str, tuple[str, str]] = {"pcbatch.sync": SYNC, "pcbatch.debug": DEBUG, "pcbatch.map": MAP}
"""Functions that the reader knows by module and name, by where users import them from."""


@dataclass(frozen=True, eq=False)
class Name:
    """The form of an opaque value in code: a dotted name, of which `root` is the value that it begins with.

    `origin` is the dotted name of what is imported, and empty for other values. `methods` are those of the class of an
    object, or of the class that it is, as Python has them, properties included; `cls` is the class of an object.
    """

    text: str
    origin: str = ""
    root: Any = None
    methods: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    is_object: bool = False
    cls: Any = None


class Opaque:
    """A value of which only the name is known; its attributes are such values, too."""

    def __init__(self, name: Name):
        self.opaque_name = dataclasses.replace(name, root=self) if name.root is None else name
        if name.origin:
            module, _, own = name.origin.rpartition(".")
            self.__module__, self.__name__ = KNOWN.get(name.origin, (module, own))

    def __getattr__(self, attribute: str) -> Any:
        """An attribute."""
        if attribute.startswith("__") and attribute.endswith("__"):
            raise AttributeError(attribute)
        name = self.opaque_name
        found = name.methods.get(attribute)
        if isinstance(found, FunctionType | StaticBatched | staticmethod):
            found = found.__get__(self if name.is_object else None, Opaque)  # which runs nothing
        elif isinstance(found, classmethod):
            found = MethodType(found.__func__, name.cls if name.is_object else self)
        else:
            origin = f"{name.origin}.{attribute}" if name.origin else ""
            found = Opaque(Name(f"{name.text}.{attribute}", origin, name.root))
        vars(self)[attribute] = found
        return found

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Nothing that is opaque is ever called."""
        raise TypeError(f"{self.opaque_name.text} is known by its name only")


def opaque(text: str, origin: str = "") -> Opaque:
    """A value that code reads by a name."""
    return Opaque(Name(text, origin))


def is_opaque(value: Any) -> bool:
    """Tell whether only the name of a value is known."""
    return isinstance(value, Opaque)


@dataclass(frozen=True, eq=False)
class StaticBatched:
    """A batched function of a module that has not run."""

    function: FunctionType
    statics: frozenset[str]
    cost: float | None
    is_static_method: bool = False
    receiver: Any = None

    def __get__(self, instance: Any, owner: Any = None) -> StaticBatched:
        """The function as a method of `instance`."""
        if instance is None or self.is_static_method or self.receiver is not None:
            return self
        return dataclasses.replace(self, receiver=instance)

    def __getattr__(self, name: str) -> Any:
        """Return what else a batched function has is not known here."""
        if name.startswith("__"):
            raise AttributeError(name)
        return opaque(f"{self.function.__name__}.{name}")

    @property
    def __wrapped__(self) -> Any:
        """Return what it was made of."""
        return staticmethod(self.function) if self.is_static_method else self.function


def batched_of(value: Any) -> BatchedFunction | None:
    """Return the reader's view of a batched function of a module that has not run; None for everything else."""
    if not isinstance(value, StaticBatched):
        return None
    tree, file = sources.tree_of(value.function)
    return BatchedFunction(value.function, tree, file, value.statics, value.receiver, value.cost, value)
