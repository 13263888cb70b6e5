"""Searches in sequences for values of one lane: `x in xs`, `x is True`, `xs.index(v)`, `xs.count(v)`, `sorted(xs)`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.indexing import joined, taken_at
from pcbatch.runtime.backends.tensorflow.numpy_arrays import SORTING
from pcbatch.runtime.backends.tensorflow.operators import equal
from pcbatch.runtime.backends.tensorflow.recorder import fault
from pcbatch.runtime.backends.tensorflow.structures import leaf_tensors, type_of, wrap
from pcbatch.runtime.backends.tensorflow.weak import INT, Weak, is_lane_value, unify

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


# Methods and functions of lists that look at the values in them: `xs.index(v)`, `xs.count(v)`, `sorted(xs)`.
#
# How many elements there are is known, which of them is meant differs by lane. A NaN equals nothing, so that it is
# found nowhere, and stands last where elements are sorted.


def position(whole: Any, value: Any, site: int) -> Any:
    """`whole.index(value)`: of a list or a tuple the first position at which `value` stands, a weak int.

    Where it stands nowhere, which is a ValueError in Python, that is a fault at `site`.
    """
    if not _is_ours(whole, value):
        return whole.index(value)
    found = _equal_items(whole, value)
    fault(~tf.reduce_any(found), site)
    return Weak(tf.argmax(tf.cast(found, INT), output_type=INT))


def count(whole: Any, value: Any) -> Any:
    """`whole.count(value)`: of a list or a tuple how many elements equal `value`, a weak int."""
    return (
        Weak(tf.reduce_sum(tf.cast(_equal_items(whole, value), INT))) if _is_ours(whole, value) else whole.count(value)
    )


def in_order(xs: Any, *, key: Any = None, reverse: Any = False) -> Any:
    """`sorted(xs, key=.., reverse=..)` of a list, a tuple, a range or a vector: a list.

    Numbers are compared, of elements or of their keys, and tuples of them by the first that differs.
    """
    if is_lane_value(reverse):
        raise TypeError("sorted has one order for all lanes; write `sorted(xs)[::-1] if down else sorted(xs)`")
    if is_lane_value(xs):
        if tf.TensorShape(xs.shape).rank != 1:
            raise TypeError("sorted takes numbers, as a list or as a vector; write tf.sort(..)")
        xs = tf.unstack(tf.convert_to_tensor(xs))
    items = list(xs)
    keys = items if key is None else [key(item) for item in items]
    if not any(map(is_lane_value, tf.nest.flatten(keys))):
        return [items[at] for at in sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)]
    if any(len(getattr(number, "shape", ())) > 0 for number in tf.nest.flatten(keys)):
        raise TypeError("sorted compares numbers, not arrays")
    if key is not None or any(isinstance(item, (tuple, list)) for item in items):
        order = tf.unstack(_order(keys, reverse))
        return [taken_at(items, at) for at in order]
    type_ = joined(items, "what is sorted")
    leaves = [leaf_tensors(item, type_) for item in items]
    if any(len(each) != 1 for each in leaves):
        raise TypeError("sorted compares numbers, not structures; say by which of their fields, `key=lambda p: p.x`")
    ordered = SORTING["sort"](tf.stack([leaf for (leaf,) in leaves]))
    found = tf.unstack(ordered[::-1] if reverse else ordered)
    return [wrap(each, type_) for each in found]


def _order(keys: Sequence[Any], reverse: bool) -> tf.Tensor:
    """The places of `keys` in order, int32; equal ones stay in theirs, also where it is `reverse`."""
    rows = [each if isinstance(each, (tuple, list)) else (each,) for each in keys]
    if len({len(row) for row in rows}) > 1:
        raise TypeError("sorted compares tuples of one length")
    order = tf.range(len(rows))
    order = order[::-1] if reverse else order
    for column in reversed([*zip(*rows, strict=True)]):
        type_ = joined(column, "what sorted compares")
        leaves = [leaf_tensors(number, type_) for number in column]
        if any(len(each) != 1 for each in leaves):
            raise TypeError("sorted compares numbers, and tuples of numbers")
        values = tf.stack([leaf for (leaf,) in leaves])
        order = tf.gather(order, SORTING["argsort"](tf.gather(values, order)))
    return order[::-1] if reverse else order


def _is_ours(whole: Any, value: Any) -> bool:
    return isinstance(whole, list | tuple) and any(map(is_lane_value, (value, *whole)))


def _equal_items(whole: Sequence[Any], value: Any) -> tf.Tensor:
    """Compare each element of a list with a number: bool `[len(whole)]`."""
    numbers = (value, *whole)
    if any(len(getattr(each, "shape", ())) > 0 for each in numbers) or any(isinstance(e, np.ndarray) for e in numbers):
        raise TypeError("what is looked for in a list is a number, not an array")
    return tf.stack([tf.convert_to_tensor(value == item) for item in whole]) if whole else tf.zeros([0], tf.bool)
