"""A backend that knows no types, for programs that are read without arguments: nothing is computed by it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from pcbatch.ir.types import TensorType, Type
from pcbatch.runtime.backends.untyped.ops import COUNTED, DOUBT, SYMBOLS, TRUTH, UNKNOWN, VARYING, Symbol, failing

__all__ = ["COUNTED", "DOUBT", "TRUTH", "UNKNOWN", "VARYING", "UntypedBackend"]


class UntypedBackend:
    """The part of a backend that the reader asks for.

    `is_array` says which captured values are arrays, `takes_gradients` which are classes of tapes.
    """

    ops_module = "pcbatch.runtime.backends.untyped.ops"

    def __init__(self, is_array: Callable[[Any], bool], takes_gradients: Callable[[Any], bool]):
        self.is_array, self.takes_gradients = is_array, takes_gradients

    def symbols(self, tapes: bool = False) -> _Symbols:
        """Return a tracer of operations."""
        return _Symbols()

    def is_variable(self, value: Any) -> bool:
        """Return whether a captured value is a variable of the library: irrelevant here, so never."""
        return False

    def held_by(self, value: Any) -> Any:
        """The array that a captured one has inside: itself, since nothing is looked into."""
        return value

    def type_of(self, value: Any) -> Type:
        """The type of a number or an array: the one that all have."""
        return UNKNOWN

    def equivalent(self, function: Any) -> str:
        """Return the function of `ops` for a library's function: the same for each."""
        return "library.unknown"

    def spelling(self, operation: str) -> str:
        """Return a user's spelling of an operation."""
        return operation

    def failure(self, error: Exception) -> tuple[str, str, str]:
        """Return code, message and help for an error of an operation."""
        return "PCB401", f"{type(error).__name__}: {error}", ""

    def is_size(self, error: Exception) -> bool:
        """Return whether an operation has failed for want of a known number."""
        return False


class _Symbols:
    def symbol(self, type_: Type, *, own: bool = False) -> Symbol:
        """A value of a type: one for all that ask, or one of the caller's `own`."""
        known = type_ if isinstance(type_, TensorType) and type_ in SYMBOLS else UNKNOWN
        return Symbol(known) if own else SYMBOLS[known]

    def called(self, make: Callable[[], Any]) -> tuple[Any, bool]:
        """Call `make`; return its result and whether it may fail."""
        found: list[bool] = []
        token = failing.set(found)
        try:
            return make(), bool(found)
        finally:
            failing.reset(token)

    def made_of(self, values: Sequence[Any], given: Sequence[Any]) -> Hashable:
        """Return a key that tells apart values of operations by their making: only their number counts."""
        return len(values)

    def why_part(self, value: Any) -> Exception | None:
        """Return the reason why no variable can hold a result: never one."""
        return None

    def is_written(self, value: Any) -> bool:
        """Return whether others write to a result: not known, so False."""
        return False

    def type_of(self, value: Any) -> Type | None:
        """Return the type of an operation's result; None where it is none of its values."""
        return value.type if isinstance(value, Symbol) else None

    @contextlib.contextmanager
    def entered(self, manager: Any) -> Iterator[Any]:
        """Enter a context manager."""
        yield SYMBOLS[UNKNOWN]
