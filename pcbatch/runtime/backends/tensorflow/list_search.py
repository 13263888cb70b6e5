"""Methods and functions of lists that look at the values in them: `xs.index(v)`, `xs.count(v)`, `sorted(xs)`.

How many elements there are is known, which of them is meant differs by lane. A NaN equals nothing, so that it is found
nowhere, and stands last where elements are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.list_indexing import joined, taken_at
from pcbatch.runtime.backends.tensorflow.numpy_sorting import SORTING
from pcbatch.runtime.backends.tensorflow.recorder import fault
from pcbatch.runtime.backends.tensorflow.structures import leaf_tensors, wrap
from pcbatch.runtime.backends.tensorflow.weak import INT, Weak, is_lane_value


def position(whole: Any, value: Any, site: int) -> Any:
    """`whole.index(value)`: of a list or a tuple the first position at which `value` stands, a weak int.

    Where it stands nowhere, which is a ValueError in Python, that is a fault at `site`.
    """
    if not _is_ours(whole, value):
        return whole.index(value)
    found = _equal(whole, value)
    fault(~tf.reduce_any(found), site)
    return Weak(tf.argmax(tf.cast(found, INT), output_type=INT))


def count(whole: Any, value: Any) -> Any:
    """`whole.count(value)`: of a list or a tuple how many elements equal `value`, a weak int."""
    return Weak(tf.reduce_sum(tf.cast(_equal(whole, value), INT))) if _is_ours(whole, value) else whole.count(value)


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


def _equal(whole: Sequence[Any], value: Any) -> tf.Tensor:
    """Compare each element of a list with a number: bool `[len(whole)]`."""
    numbers = (value, *whole)
    if any(len(getattr(each, "shape", ())) > 0 for each in numbers) or any(isinstance(e, np.ndarray) for e in numbers):
        raise TypeError("what is looked for in a list is a number, not an array")
    return tf.stack([tf.convert_to_tensor(value == item) for item in whole]) if whole else tf.zeros([0], tf.bool)
