"""Operators that need a check: `*`, `/`, `//`, `%`, `**` and the shifts. What Python raises for is the lane's fault."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import arithmetic, operators
from pcbatch.runtime.backends.tensorflow.arithmetic import is_flag
from pcbatch.runtime.backends.tensorflow.operators import numbers
from pcbatch.runtime.backends.tensorflow.recorder import fault
from pcbatch.runtime.backends.tensorflow.weak import SizeError, Weak, counted, is_lane_value, is_number, unify


def multiply(a: Any, b: Any) -> Any:
    """`a * b`; refused for a list times a lane's integer: Python repeats the list, TensorFlow multiplies elements."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, (list, tuple)) and is_lane_value(y) and y.shape.rank == 0 and y.dtype.is_integer:
            raise SizeError(
                "a list cannot be repeated as often as a lane says: that differs from lane to lane, lengths must not; "
                "write tf.fill([LONGEST], v) with a constant length, or tf.constant(xs) * n to multiply the elements",
                y.value if isinstance(y, Weak) else y,
            )
    return operators.multiply(a, b)


def positive(a: Any) -> Any:
    """`+a`: the number itself."""
    if isinstance(a, (tf.Tensor, tf.Variable)):
        return operators.number(tf.convert_to_tensor(a))
    return +a


def divide(a: Any, b: Any, site: int) -> Any:
    """`a / b`: zero divides Python's own numbers as little as Python does, tensors as TensorFlow does."""
    a, b = numbers(a, b)
    static = not (is_lane_value(a) or is_lane_value(b))
    if is_number(a) and is_number(b) and not (static and b != 0):
        x, y, _ = unify(a, b)
        return Weak(arithmetic.true_divide(x, _checked_divisor(y, site)))
    return a / b


def floordiv(a: Any, b: Any, site: int) -> Any:
    """`a // b`: floors; zero under an int or under Python's own float is a fault. Float tensors follow TensorFlow."""
    return _divide(operator.floordiv, lambda x, y, floor, rest: (floor(x, y),), a, b, site)


def mod(a: Any, b: Any, site: int) -> Any:
    """`a % b` with the sign of `b`; faults as `floordiv`."""
    return _divide(operator.mod, lambda x, y, floor, rest: (rest(x, y),), a, b, site)


def divmod_(a: Any, b: Any, site: int) -> Any:
    """`(a // b, a % b)`, checked once."""
    return _divide(divmod, lambda x, y, floor, rest: (floor(x, y), rest(x, y)), a, b, site)


def _divide(
    python: Callable[[Any, Any], Any], function: Callable[..., tuple[tf.Tensor, ...]], a: Any, b: Any, site: int
) -> Any:
    if not (is_lane_value(a) or is_lane_value(b)):
        if not (is_number(a) and is_number(b) and b == 0):
            return python(a, b)
    elif isinstance(a, str):
        raise TypeError("a lane's value cannot be formatted into a string, except in the message of assert and raise")
    x, y, weak = unify(*numbers(a, b))
    if weak or x.dtype.is_integer:
        y = _checked_divisor(y, site)
    # Python's own rule for its own floats; tensors divide as TensorFlow does.
    ways: tuple[Callable[[Any, Any], Any], ...] = (tf.math.floordiv, tf.math.floormod)
    if weak or x.dtype.is_integer:
        ways = (arithmetic.floor_divide, arithmetic.modulo)
    results = tuple(Weak(result) if weak else result for result in function(x, y, *ways))
    return results if len(results) > 1 else results[0]


def _checked_divisor(y: tf.Tensor, site: int) -> tf.Tensor:
    """`y` with 1 for 0, which is a fault: the CPU's kernel raises on zero, also for lanes that are not there."""
    if _all_known(y, lambda divisor: divisor != 0):
        return y
    zero = tf.equal(y, tf.zeros_like(y))
    fault(tf.reduce_any(zero), site)
    return tf.where(zero, tf.ones_like(y), y)


def _integers(a: Any, b: Any) -> bool:
    """Return whether two static values are ints: their errors are a lane's fault, not the compilation's."""
    return isinstance(a, (int, np.integer)) and isinstance(b, (int, np.integer))


def _all_known(y: tf.Tensor, good: Callable[[Any], Any]) -> bool:
    """Return whether every element of `y` is known to be `good` while tracing, so that no check is needed."""
    known = tf.get_static_value(y)
    return known is not None and bool(np.all(good(known)))


def power(a: Any, b: Any, site: int) -> Any:
    """Return `a ** b`; a negative power of 0 fails the lane, and of an int unless the exponent is a literal.

    Of floats only Python's own 0.0, as in `divide`; tensors follow TensorFlow.
    """
    a, b = (counted(x) if is_flag(x) else x for x in (a, b))
    static = not (is_lane_value(a) or is_lane_value(b))
    if not (is_number(a) and is_number(b)):
        if static:
            return operators.number(a) ** operators.number(b)
        x, y, _ = unify(*numbers(a, b))
        return _integer_power(x, y, site) if x.dtype.is_integer else tf.pow(x, y)
    if static and not (a == 0 and b < 0):
        return a**b
    if not isinstance(b, Weak) and b < 0:
        b = float(b)  # Python's result is a float
    x, y, _ = unify(a, b)
    return Weak(_integer_power(x, y, site) if x.dtype.is_integer else tf.pow(_checked_base(x, y, site), y))


def _integer_power(x: tf.Tensor, y: tf.Tensor, site: int) -> tf.Tensor:
    if not y.dtype.is_unsigned and not _all_known(y, lambda exponent: exponent >= 0):
        fault(tf.reduce_any(y < 0), site)
    return arithmetic.int_power(x, y)


def _checked_base(x: tf.Tensor, y: tf.Tensor, site: int) -> tf.Tensor:
    """`x` with 1 for 0 to a negative exponent, which is a fault."""
    if _all_known(x, lambda base: base != 0) or _all_known(y, lambda exponent: exponent >= 0):
        return x
    bad = tf.equal(x, 0) & (y < 0)
    fault(bad, site)
    return tf.where(bad, tf.ones_like(x), x)


def left_shift(a: Any, b: Any, site: int) -> Any:
    """`a << b` of ints: bits that leave the dtype are lost; a negative count is a fault."""
    return _shift(operator.lshift, arithmetic.left_shift, a, b, site)


def right_shift(a: Any, b: Any, site: int) -> Any:
    """`a >> b` of ints; a negative count is a fault."""
    return _shift(operator.rshift, arithmetic.right_shift, a, b, site)


def _shift(
    python: Callable[[Any, Any], Any],
    function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    a: Any,
    b: Any,
    site: int,
) -> Any:
    if not (is_lane_value(a) or is_lane_value(b)) and not (_integers(a, b) and b < 0):
        return python(a, b)
    x, y, weak = unify(*numbers(a, b))
    if not x.dtype.is_integer:
        raise TypeError(f"<< and >> take ints, not {x.dtype.name}; write int(..) or tf.cast(.., tf.int32)")
    if not y.dtype.is_unsigned and not _all_known(y, lambda count: count >= 0):
        fault(tf.reduce_any(y < 0), site)
    result = function(x, y)
    return Weak(result) if weak else result
