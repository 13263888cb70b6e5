"""`x in xs` and `x is True` for values of one lane."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.operators import equal
from pcbatch.runtime.backends.tensorflow.structures import leaf_tensors, type_of
from pcbatch.runtime.backends.tensorflow.weak import Weak, unify

ARRAYS = (tf.Tensor, tf.Variable, np.ndarray)


def contains(x: Any, sequence: Any) -> Any:
    """`x in sequence`: a number among those of a vector, a tuple, a list or a range with constant bounds.

    TypeError for arrays of numbers on either side that are no vector, as for the truth of an array.
    """
    if isinstance(sequence, ARRAYS):
        return _in_vector(_scalar(x), tf.convert_to_tensor(sequence))
    if not any(map(_differs, (x, *_items(sequence)))):
        return x in sequence
    if isinstance(sequence, range):
        return _in_range(_scalar(x), sequence)
    if not isinstance(sequence, (tuple, list)):
        raise TypeError(f"`in` takes a vector, a tuple, a list or a range, not a {type(sequence).__name__}")
    return functools.reduce(tf.logical_or, (_equal(x, item) for item in sequence), tf.constant(False))


def lacks(x: Any, sequence: Any) -> Any:
    """`x not in sequence`; see `contains`."""
    found = contains(x, sequence)
    return tf.logical_not(found) if isinstance(found, tf.Tensor) else not found


def _differs(value: Any) -> bool:
    """Return whether a value, or an item of a tuple or list, is a lane's."""
    return isinstance(value, (Weak, *ARRAYS)) or any(map(_differs, _items(value)))


def _items(sequence: Any) -> tuple[Any, ...]:
    return tuple(sequence) if isinstance(sequence, (tuple, list)) else ()


def _scalar(x: Any) -> Any:
    if isinstance(x, ARRAYS) and len(x.shape) > 0:
        raise TypeError(f"`in` looks for a number, not for an array of shape {list(x.shape)}; write tf.reduce_any(..)")
    return x


def _equal_in_vector(x: Any, vector: tf.Tensor) -> tf.Tensor:
    value, elements, _ = unify(x, vector)
    return tf.equal(value, elements)


def _in_vector(x: Any, vector: tf.Tensor) -> tf.Tensor:
    if vector.shape.rank != 1:
        shape = vector.shape.as_list()
        raise TypeError(f"`in` looks into vectors, not into an array of shape {shape}; write tf.reduce_any(a == x)")
    return tf.reduce_any(_equal_in_vector(x, vector))


def _in_range(x: Any, sequence: range) -> tf.Tensor:
    (number,) = leaf_tensors(x, type_of(x))
    if not number.dtype.is_integer:
        return functools.reduce(tf.logical_or, (_equal(x, item) for item in sequence), tf.constant(False))
    if not sequence:
        return tf.constant(False)
    number = tf.cast(number, tf.int64)
    low, high = min(sequence[0], sequence[-1]), max(sequence[0], sequence[-1])
    return (number >= low) & (number <= high) & ((number - low) % abs(sequence.step) == 0)


def _equal(x: Any, item: Any) -> tf.Tensor:
    return tf.convert_to_tensor(equal(_scalar(x), _scalar(item)))
