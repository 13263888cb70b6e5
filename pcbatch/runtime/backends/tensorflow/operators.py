"""Python's operators on values of which TensorFlow refuses some pairs: bools count, ints widen, `@` takes vectors.

What else differs in dtype is left to TensorFlow, which refuses it in words that the message knows (`operands`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.choice import both, negate, select
from pcbatch.runtime.backends.tensorflow.promotion import is_bool, is_flag, loses, widened, wrapped
from pcbatch.runtime.backends.tensorflow.weak import (
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


def _wrapped(a: Any, b: Any) -> Any:
    """`a` as it stands beside `b`: of an int of Python's the dtype of `b` has the last bits."""
    return wrapped(a, b.dtype) if type(a) is int and a < 0 and is_committed(b) else a


def _same(a: Any, b: Any) -> Any:
    """`a == b` of two tuples, or two lists: whether all their elements are equal."""
    if len(a) != len(b):
        return False
    return functools.reduce(lambda so_far, pair: both(so_far, lambda: equal(*pair)), zip(a, b, strict=True), True)


def are_sequences(a: Any, b: Any) -> bool:
    """Whether two values are compared element by element."""
    return any(isinstance(a, kind) and isinstance(b, kind) for kind in (tuple, list))


def _ordering(function: Operator) -> Operator:
    """An operator by which numbers are compared, and tuples and lists by the first of their elements that differ."""

    def compared(a: Any, b: Any) -> Any:
        if not are_sequences(a, b):
            return function(*numbers(a, b))
        if not a or not b:
            return function(len(a), len(b))
        return select(equal(a[0], b[0]), lambda: compared(a[1:], b[1:]), lambda: compared(a[0], b[0]))

    return compared


def _arithmetic(function: Operator) -> Operator:
    return lambda a, b: function(*numbers(a, b))


def _matching(function: Operator) -> Operator:
    return lambda a, b: function(*matched(a, b))


add = _arithmetic(operator.add)
subtract = _arithmetic(operator.sub)
multiply = _arithmetic(operator.mul)
less = _ordering(operator.lt)
less_equal = _ordering(operator.le)
greater = _ordering(operator.gt)
greater_equal = _ordering(operator.ge)

bit_and = _matching(operator.and_)
bit_or = _matching(operator.or_)
bit_xor = _matching(operator.xor)


def equal(a: Any, b: Any) -> Any:
    """`a == b`."""
    return _same(a, b) if are_sequences(a, b) else operator.eq(*matched(a, b))


def not_equal(a: Any, b: Any) -> Any:
    """`a != b`."""
    return negate(_same(a, b)) if are_sequences(a, b) else operator.ne(*matched(a, b))


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
