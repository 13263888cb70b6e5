"""Operations on values of which nothing is known: each gives such a value.

Whoever asks for an operation by name gets one. Of a value it is known at most how it depends on the lane, which its
type says.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from pcbatch.ir.types import TensorType


class Loose(TensorType):
    """The type of a value of which neither dtype nor shape is known."""

    def __str__(self) -> str:
        """Return the name for messages."""
        return "a value"


UNKNOWN = Loose("unknown")
"""A value that may be known once types are."""
VARYING = Loose("varying")
"""A number or an array that differs by lane."""
COUNTED = Loose("counted")
"""A number that would be known if the turns of a loop were written out."""
TRUTH, DOUBT = TensorType("bool"), TensorType("bool", weak=True)
"""A bool that differs by lane, and one that may be known once types are."""

failing: ContextVar[list[bool]] = ContextVar("failing")
"""Gets an entry from each operation that may fail."""


class Symbol:
    """A value of which at most the type is known; calling it, or an attribute of it, gives another one."""

    def __init__(self, type_: TensorType):
        self.type = type_

    def __call__(self, *arguments: Any, **keywords: Any) -> Symbol:
        """Return the result of a call."""
        failing.get().append(True)
        return SYMBOLS[UNKNOWN]

    def __getattr__(self, name: str) -> Symbol:
        """An attribute."""
        return SYMBOLS[UNKNOWN]

    def __invert__(self) -> Symbol:
        """The operator `~`."""
        return number(self)


SYMBOLS = {type_: Symbol(type_) for type_ in (UNKNOWN, VARYING, COUNTED, TRUTH, DOUBT)}


def _types(part: Any) -> Iterator[TensorType]:
    """The types of the symbols in operands."""
    if isinstance(part, Symbol):
        yield part.type
    elif isinstance(part, tuple | list):
        for each in part:
            yield from _types(each)
    elif isinstance(part, slice):
        yield from _types((part.start, part.stop, part.step))


def _varies(types: list[TensorType]) -> bool:
    return VARYING in types or TRUTH in types


def number(*operands: Any) -> Symbol:
    """Return the result of an operation on numbers that cannot fail."""
    types = [*_types(operands)]
    if _varies(types):
        return SYMBOLS[VARYING]
    return SYMBOLS[COUNTED if types and set(types) == {COUNTED} else UNKNOWN]


def truth(*operands: Any) -> Symbol:
    """Return the result of a comparison; an operand of a comparison with a text, or with None, is no number."""
    is_of_words = any(each is None or isinstance(each, str | bytes) for each in operands)
    return SYMBOLS[TRUTH if _varies([*_types(operands)]) and not is_of_words else DOUBT]


def getitem(whole: Any, index: Any, site: int) -> Symbol:
    """An element."""
    failing.get().append(True)
    return number(whole, index)


def element(whole: Any, index: Any) -> Symbol:
    """An element that is there."""
    return number(whole, index)


def power(a: Any, b: Any, site: int) -> Symbol:
    """An operator that may fail."""
    failing.get().append(True)
    return number(a, b)


def divide(a: Any, b: Any, site: int) -> Symbol:
    """A division, which cannot fail by a number that is known and none of zero."""
    if not isinstance(b, int | float) or not b:
        failing.get().append(True)
    return number(a, b)


def divmod_(a: Any, b: Any, site: int) -> tuple[Symbol, Symbol]:
    """A quotient and a remainder."""
    return divide(a, b, site), number(a, b)


def taken(*arguments: Any, **keywords: Any) -> tuple[Symbol, Symbol]:
    """Return the result of a method, and its object afterwards."""
    failing.get().append(True)
    return SYMBOLS[UNKNOWN], SYMBOLS[UNKNOWN]


def select(condition: Any, true: Any, false: Any) -> Symbol:
    """Return one of two values."""
    both = {*_types((true(), false()))}
    return SYMBOLS[VARYING if _varies([*_types(condition)]) else both.pop() if len(both) == 1 else UNKNOWN]


def both(a: Any, b: Any) -> Symbol:
    """The operators `and` and `or` of truths."""
    return truth(a, b())


def window(start: Any, stop: Any, step: Any, length: Any) -> slice:
    """A slice of known length."""
    return slice(start, stop, step)


def as_written(function: Any) -> Any:
    """A function of the user's, as it is."""
    return function


add = subtract = multiply = bit_and = bit_or = bit_xor = negative = positive = number
floordiv = mod = divide
left_shift = right_shift = power
equal = not_equal = less = less_equal = greater = greater_equal = contains = lacks = truth
negate = to_bool = truth
either = both


def __getattr__(name: str) -> Symbol:
    if name.startswith(("__", "pytest")):  # what tools ask of a module
        raise AttributeError(name)
    return SYMBOLS[UNKNOWN]
