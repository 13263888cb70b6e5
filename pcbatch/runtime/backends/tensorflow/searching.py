"""Methods and functions of lists that look at the values in them: `xs.index(v)`, `xs.count(v)`, `sorted(xs)`.

How many elements there are is known, which of them is meant differs by lane. A NaN equals nothing, so that it is found
nowhere, and stands last where elements are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.numpy_sorting import SORTING
from pcbatch.runtime.backends.tensorflow.positions import joined
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
    """`sorted(xs, reverse=..)` of numbers in a list or a tuple, or of a vector: a list."""
    if is_lane_value(xs):
        if tf.TensorShape(xs.shape).rank != 1:
            raise TypeError("sorted takes numbers, as a list or as a vector; write tf.sort(..)")
        xs = tf.unstack(tf.convert_to_tensor(xs))
    items = list(xs)
    if not any(map(is_lane_value, items)):
        return sorted(items, key=key, reverse=reverse)
    if key is not None or is_lane_value(reverse):
        raise TypeError("sorted takes no key of a lane's values; write tf.argsort(keys), and tf.gather by that")
    if any(len(getattr(item, "shape", ())) > 0 for item in items):
        raise TypeError("sorted compares numbers, not arrays")
    type_ = joined(items, "what is sorted")
    leaves = [leaf_tensors(item, type_) for item in items]
    if any(len(each) != 1 for each in leaves):
        raise TypeError("sorted compares numbers, not structures; sort one field, and gather the others by tf.argsort")
    ordered = SORTING["sort"](tf.stack([leaf for (leaf,) in leaves]))
    found = tf.unstack(ordered[::-1] if reverse else ordered)
    return [wrap(each, type_) for each in found]


def _is_ours(whole: Any, value: Any) -> bool:
    return isinstance(whole, list | tuple) and any(map(is_lane_value, (value, *whole)))


def _equal(whole: Sequence[Any], value: Any) -> tf.Tensor:
    """Which elements of a list are equal to a number, `[len(whole)]`."""
    numbers = (value, *whole)
    if any(len(getattr(each, "shape", ())) > 0 for each in numbers) or any(isinstance(e, np.ndarray) for e in numbers):
        raise TypeError("what is looked for in a list is a number, not an array")
    return tf.stack([tf.convert_to_tensor(value == item) for item in whole]) if whole else tf.zeros([0], tf.bool)
