"""Floats of one example that a gradient tape follows: the results of `math.sin(x)` and `float(x)` under a tape.

To Python and to all decisions such a number is the float that it would be without a tape, `number`, to the bit; beside
it goes a tensor, which the tape has seen come about. Arithmetic does both; what knows of tensors takes the tensor.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import math_equivalents
from pcbatch.runtime.backends.tensorflow.private import may_record
from pcbatch.runtime.backends.tensorflow.recorder import recording
from pcbatch.runtime.backends.tensorflow.weak import DOUBLE, FLOAT, Weak, carrier

Method = Callable[["TracedFloat", Any], Any]


def _is_number(value: Any) -> bool:
    return isinstance(value, (TracedFloat, bool, int, float)) and not isinstance(value, np.generic)


def _plain(value: Any) -> Any:
    return value.number if isinstance(value, TracedFloat) else value


def leaves(value: Any) -> list[Any]:
    """The values of tuples and lists of arguments, such as the points of `math.dist`."""
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, (tuple, list)) else [value]


def _numbers(value: Any) -> Any:
    """An argument with plain numbers in the place of followed ones: a tensor has no `__trunc__`."""
    if isinstance(value, (tuple, list)):
        return [*map(_numbers, value)]
    return value.numpy() if tf.is_tensor(value) and hasattr(value, "numpy") else _plain(value)


def _both(name: str, python: Callable[[Any, Any], Any]) -> tuple[Method, Method]:
    """An operator and its reflected form: of numbers a number, beside a tensor a tensor."""

    def made(a: Any, b: Any, other: Any, weak: Callable[[Any, Any], Any]) -> Any:
        number = python(_plain(a), _plain(b))
        if not isinstance(number, float):
            return number
        value = weak(
            Weak(a.value) if isinstance(a, TracedFloat) else a, Weak(b.value) if isinstance(b, TracedFloat) else b
        )
        return TracedFloat(number, value.value, any(getattr(each, "is_wide", False) for each in (a, b)))

    def method(self: TracedFloat, other: Any) -> Any:
        if _is_number(other):
            return made(self, other, other, python)
        return getattr(Weak, f"__{name}__")(self, other)

    def reflected(self: TracedFloat, other: Any) -> Any:
        if _is_number(other):
            return made(other, self, other, python)
        return getattr(Weak, f"__r{name}__")(self, other)

    return method, reflected


def _compared(python: Callable[[Any, Any], Any]) -> Method:
    return lambda self, other: python(self.number, _plain(other))


class TracedFloat(Weak):
    """A float with the scalar float64 tensor that a tape follows; `is_wide` where it was made of a float64 tensor."""

    __slots__ = ("is_wide", "number")

    def __init__(self, number: float, value: tf.Tensor, is_wide: bool):
        super().__init__(value)
        self.number, self.is_wide = number, is_wide

    __add__, __radd__ = _both("add", operator.add)
    __sub__, __rsub__ = _both("sub", operator.sub)
    __mul__, __rmul__ = _both("mul", operator.mul)
    __truediv__, __rtruediv__ = _both("truediv", operator.truediv)
    __floordiv__, __rfloordiv__ = _both("floordiv", operator.floordiv)
    __mod__, __rmod__ = _both("mod", operator.mod)
    __pow__, __rpow__ = _both("pow", operator.pow)
    __lt__ = _compared(operator.lt)
    __le__ = _compared(operator.le)
    __gt__ = _compared(operator.gt)
    __ge__ = _compared(operator.ge)
    __eq__ = _compared(operator.eq)
    __ne__ = _compared(operator.ne)

    def __neg__(self) -> TracedFloat:
        return TracedFloat(-self.number, -self.value, self.is_wide)

    def __pos__(self) -> TracedFloat:
        return self

    def __abs__(self) -> TracedFloat:
        return TracedFloat(abs(self.number), tf.abs(self.value), self.is_wide)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __hash__(self) -> int:
        return hash(self.number)

    def __bool__(self) -> bool:
        return bool(self.number)

    def __int__(self) -> int:
        return int(self.number)

    def __float__(self) -> float:
        return self.number

    def __index__(self) -> int:
        return operator.index(self.number)  # type: ignore[arg-type] # raises what a float raises

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.number, digits)

    def __trunc__(self) -> int:
        return math.trunc(self.number)

    def __floor__(self) -> int:
        return math.floor(self.number)

    def __ceil__(self) -> int:
        return math.ceil(self.number)

    def __repr__(self) -> str:
        return repr(self.number)

    def __str__(self) -> str:
        return str(self.number)

    def __format__(self, form: str) -> str:
        return format(self.number, form)

    def __copy__(self) -> TracedFloat:
        return self

    def __deepcopy__(self, memo: Any) -> TracedFloat:
        return self

    def __reduce__(self) -> Any:
        return float, (self.number,)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __complex__(self) -> complex:
        return complex(self.number)

    @property
    def real(self) -> TracedFloat:
        """The real part, as of a float."""
        return self

    @property
    def imag(self) -> float:
        return self.number.imag

    def conjugate(self) -> TracedFloat:
        return self

    def is_integer(self) -> bool:
        return self.number.is_integer()

    def as_integer_ratio(self) -> tuple[int, int]:
        return self.number.as_integer_ratio()

    def hex(self) -> str:
        return self.number.hex()

    def committed(self) -> tf.Tensor:
        """The tensor that a batch gives for it."""
        return self.value if self.is_wide else tf.cast(self.value, FLOAT)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (TracedFloat, tf.Tensor, tf.Variable))


def has_tensors(given: Any) -> bool:
    """Return whether there is a tensor to follow, and a tape that may follow it."""
    return may_record() and any(map(_is_tensor, given))


_made: ContextVar[bool] = ContextVar("made", default=False)


def are_there() -> bool:
    """Return whether such numbers may exist: since `single` was called."""
    return _made.get()


def of(number: float, *made_of: Any, value: tf.Tensor) -> TracedFloat:
    """`number`, with the tensor that was made of others."""
    _made.set(True)
    wide = any(
        each.is_wide if isinstance(each, TracedFloat) else getattr(each, "dtype", None) == DOUBLE for each in made_of
    )
    return TracedFloat(number, tf.cast(value, DOUBLE), wide)


def to_float(*given: Any) -> Any:
    """`float(x)`."""
    if len(given) != 1 or not has_tensors(given) or isinstance(given[0], TracedFloat):
        return given[0] if given and isinstance(given[0], TracedFloat) else float(*given)
    return of(float(*given), *given, value=tf.cast(carrier(given[0]), DOUBLE))


def _function(name: str, python: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `math`: Python's own, which decides and raises, and under a tape the tensor of its equivalent."""
    equivalent = math_equivalents.EQUIVALENTS[name]

    def call(*given: Any) -> Any:
        number = python(*map(_numbers, given))
        values = leaves(given)
        if not isinstance(number, float) or not has_tensors(values):
            return number
        with recording():
            return of(number, *values, value=carrier(equivalent(*given, site=0)))

    return call


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    getattr(math, name): _function(name, getattr(math, name))
    for name in math_equivalents.NAMES
    if name != "prod" and hasattr(math, name)
}
"""The functions of `math` that return floats, with the functions that `single` calls instead."""


def marked(value: Any, *made_of: Any) -> Any:
    """Return an equivalent's result with its weak numbers as Python's: the floats followed."""

    def one(each: Any) -> Any:
        if not isinstance(each, Weak) or isinstance(each, TracedFloat):
            return each
        return of(float(each), *made_of, value=each.value) if each.dtype == FLOAT else int(each)

    return tf.nest.map_structure(one, value)


def forget() -> None:
    """Forget that such numbers may exist."""
    _made.set(False)
