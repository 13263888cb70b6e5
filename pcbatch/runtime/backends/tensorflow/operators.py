"""Python's operators on values of which TensorFlow refuses some pairs: bools count, ints widen, `@` takes vectors.

What else differs in dtype is left to TensorFlow, which refuses it in words that the message knows (`operands`).

`*`, `/`, `//`, `%`, `**` and the shifts need a check. What Python raises for is the lane's fault.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import arithmetic
from pcbatch.runtime.backends.tensorflow.arithmetic import is_bool, is_flag, loses, widened, wrapped
from pcbatch.runtime.backends.tensorflow.recorder import fault
from pcbatch.runtime.backends.tensorflow.selection import both, negate, select
from pcbatch.runtime.backends.tensorflow.weak import (
    SizeError,
    Weak,
    beside,
    counted,
    is_committed,
    is_lane_value,
    is_number,
    numbered,
    unify,
)

Operator = Callable[[Any, Any], Any]


def number(x: Any) -> Any:
    """`x`, one bool as an int; TypeError for an array of bools."""
    if is_flag(x):
        return counted(x)
    if is_bool(x):
        raise TypeError("an array of bools is none of numbers; write `&`, `|`, `~`, or tf.cast(flags, tf.int32)")
    return x


def numbers(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands of arithmetic, bools being ints; two arrays of ints have the wider dtype of both.

    TypeError for two arrays of bools, of which NumPy makes bools.
    """
    return matched(number(a), number(b)) if is_bool(a) and is_bool(b) else matched(a, b)


def matched(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands of an operator that takes bools, too: a bool beside a number is one, ints are of one dtype."""
    if not is_lane_value(a) and not is_lane_value(b):
        return a, b
    a, b = numbered(a, b)
    if is_number(a) and is_committed(b):
        b = beside(a, tf.convert_to_tensor(b)) if is_lane_value(b) else b
    elif is_number(b) and is_committed(a):
        a = beside(b, tf.convert_to_tensor(a)) if is_lane_value(a) else a
    if is_committed(a) and is_committed(b):
        x, y = tf.convert_to_tensor(a), tf.convert_to_tensor(b)
        are_lanes = is_lane_value(a) and is_lane_value(b)
        if x.dtype != y.dtype and (are_lanes or (x.dtype.is_integer and y.dtype.is_integer)):
            return widened(x, y)
        cut = loses(x.dtype, y.dtype) if is_lane_value(b) else loses(y.dtype, x.dtype)
        if cut:  # TensorFlow, which refuses tensors, would make another number of a NumPy array
            return x, y
    return _wrapped(a, b), _wrapped(b, a)


def compared(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands of a comparison: an int of Python's is compared as it is, and not as the dtype beside it has it."""
    a, b = (number(a), number(b)) if is_bool(a) and is_bool(b) else (a, b)
    for one, other in ((a, b), (b, a)):
        if is_committed(other) and _is_int(one) and not is_bool(one):
            dtype = tf.as_dtype(other.dtype)
            if dtype.is_integer and not _holds(dtype, one):
                return (_wide(one), _wide(other)) if one is a else (_wide(other), _wide(one))
    return matched(a, b)


def _is_int(x: Any) -> bool:
    """Return whether `x` is an int of Python's, or a lane's."""
    return isinstance(x, int) or (is_number(x) and is_lane_value(x) and x.dtype.is_integer)


def _holds(dtype: tf.DType, number: Any) -> bool:
    """Return whether `dtype` can represent this int of Python's, or, for a lane's, all values of its type."""
    if isinstance(number, int):
        return bool(dtype.min <= number <= dtype.max)
    return dtype in (tf.int32, tf.int64)


def _wide(x: Any) -> tf.Tensor:
    """Ints as ones of 64 bits, in the order in which they are to those of Python's beside them."""
    if isinstance(x, int):
        return tf.constant(min(max(x, tf.int64.min), tf.int64.max), tf.int64)
    x = tf.convert_to_tensor(x)
    return tf.cast(tf.minimum(x, tf.constant(tf.int64.max, tf.uint64)) if x.dtype == tf.uint64 else x, tf.int64)


def _wrapped(a: Any, b: Any) -> Any:
    """`a` as it stands beside `b`: of an int of Python's the dtype of `b` has the last bits."""
    return wrapped(a, b.dtype) if type(a) is int and a < 0 and is_committed(b) else a


def _same(a: Any, b: Any) -> Any:
    """`a == b` of two tuples, or two lists: whether all their elements are equal."""
    if len(a) != len(b):
        return False
    return functools.reduce(lambda so_far, pair: both(so_far, lambda: equal(*pair)), zip(a, b, strict=True), True)


def are_sequences(a: Any, b: Any) -> bool:
    """Return whether two values are compared element by element."""
    return any(isinstance(a, kind) and isinstance(b, kind) for kind in (tuple, list))


def _ordering(function: Operator) -> Operator:
    """An operator by which numbers are compared, and tuples and lists by the first of their elements that differ."""

    def ordered(a: Any, b: Any) -> Any:
        if not are_sequences(a, b):
            return function(*compared(a, b))
        if not a or not b:
            return function(len(a), len(b))
        return select(equal(a[0], b[0]), lambda: ordered(a[1:], b[1:]), lambda: ordered(a[0], b[0]))

    return ordered


def _arithmetic(function: Operator) -> Operator:
    return lambda a, b: function(*numbers(a, b))


def _matching(function: Operator) -> Operator:
    return lambda a, b: function(*matched(a, b))


add = _arithmetic(operator.add)
subtract = _arithmetic(operator.sub)
_product = _arithmetic(operator.mul)
less = _ordering(operator.lt)
less_equal = _ordering(operator.le)
greater = _ordering(operator.gt)
greater_equal = _ordering(operator.ge)

bit_and = _matching(operator.and_)
bit_or = _matching(operator.or_)
bit_xor = _matching(operator.xor)


def _equated(a: Any, b: Any) -> tuple[Any, Any]:
    return matched(a, b) if is_bool(a) and is_bool(b) else compared(a, b)


def equal(a: Any, b: Any) -> Any:
    """`a == b`."""
    return _same(a, b) if are_sequences(a, b) else operator.eq(*_equated(a, b))


def not_equal(a: Any, b: Any) -> Any:
    """`a != b`."""
    return negate(_same(a, b)) if are_sequences(a, b) else operator.ne(*_equated(a, b))


def negative(x: Any) -> Any:
    """`-x`."""
    return -number(x)


def matrix_product(a: Any, b: Any) -> tf.Tensor:
    """`a @ b` of matrices, vectors and stacks of matrices, as in NumPy."""
    x, y, _ = unify(tf.convert_to_tensor(a), tf.convert_to_tensor(b))
    if 0 in (x.shape.rank, y.shape.rank):
        raise TypeError("@ takes arrays, not numbers; write a * b")
    if x.shape.rank == y.shape.rank == 1:
        return tf.tensordot(x, y, 1)
    if y.shape.rank == 1:
        return tf.linalg.matvec(x, y)
    if x.shape.rank == 1:
        return tf.linalg.matvec(y, x, transpose_a=True)
    return tf.matmul(x, y)


# -- checked operators -------------------------------------------------------------------------------------------------


def multiply(a: Any, b: Any) -> Any:
    """`a * b`; refused for a list times a lane's integer: Python repeats the list, TensorFlow multiplies elements."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, (list, tuple)) and is_lane_value(y) and y.shape.rank == 0 and y.dtype.is_integer:
            raise SizeError(
                "a list cannot be repeated as often as a lane says: that differs from lane to lane, lengths must not; "
                "write tf.fill([LONGEST], v) with a constant length, or tf.constant(xs) * n to multiply the elements",
                y.value if isinstance(y, Weak) else y,
            )
    return _product(a, b)


def positive(a: Any) -> Any:
    """`+a`: the number itself."""
    if isinstance(a, (tf.Tensor, tf.Variable)):
        return number(tf.convert_to_tensor(a))
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
            return number(a) ** number(b)
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
