"""The interface of a batched function to linking, compiling and pickling."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from pcbatch.frontend import FunctionSource


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
