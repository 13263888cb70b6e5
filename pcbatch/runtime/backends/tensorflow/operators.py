"""Python's operators on values of which TensorFlow refuses some pairs: bools count, ints widen, `@` takes vectors.

What else differs in dtype is left to TensorFlow, which refuses it in words that the message knows (`operands`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.promotion import is_bool, is_flag, widened
from pcbatch.runtime.backends.tensorflow.weak import counted, is_committed, numbered, unify

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
    a, b = numbered(a, b)
    if is_committed(a) and is_committed(b):
        x, y = tf.convert_to_tensor(a), tf.convert_to_tensor(b)
        if x.dtype != y.dtype and x.dtype.is_integer and y.dtype.is_integer:
            return widened(x, y)
    return a, b


def _arithmetic(function: Operator) -> Operator:
    return lambda a, b: function(*numbers(a, b))


def _matching(function: Operator) -> Operator:
    return lambda a, b: function(*matched(a, b))


add = _arithmetic(operator.add)
subtract = _arithmetic(operator.sub)
multiply = _arithmetic(operator.mul)
less = _arithmetic(operator.lt)
less_equal = _arithmetic(operator.le)
greater = _arithmetic(operator.gt)
greater_equal = _arithmetic(operator.ge)
equal = _matching(operator.eq)
not_equal = _matching(operator.ne)
bit_and = _matching(operator.and_)
bit_or = _matching(operator.or_)
bit_xor = _matching(operator.xor)


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
