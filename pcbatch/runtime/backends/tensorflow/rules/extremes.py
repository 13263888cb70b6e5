"""Rules for the extremes: maxima, minima, their places and sorting, which keep NaN where XLA's kernels lose it.

XLA's CPU compiler takes the larger of two numbers by one comparison, which fails with NaN, so that NaN is lost or kept
by its place. TensorFlow's kernels, and so `f.single`, give NaN as soon as one is among the numbers; `argmax` and
`argmin` pass over it. (In segments they lose it, too, where it comes first; here it is kept.) Sorting has no rule for
NaN in TensorFlow: no comparison with it holds, and it may leave other numbers unsorted. Here `top_k` takes it for
larger than all numbers, so that it comes first in `sort` and `argsort` of either direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs
from pcbatch.runtime.backends.tensorflow.rules.family import Applies, Rule, aligned, is_nan
from pcbatch.runtime.backends.tensorflow.rules.straight import Converted

Attribute = Callable[[str], Any]
"""An attribute of an operation by its name."""
Plain = Callable[..., Any]
"""The replacement of an operation, for one example: a function of its attributes and its inputs."""


def nans(x: tf.Tensor) -> tf.Tensor:
    """`x` where it is NaN, 0 elsewhere."""
    return tf.where(is_nan(x), x, tf.zeros_like(x))


def of_segments(found: tf.Tensor, kind: str, data: tf.Tensor, ids: Any, count: Any) -> tf.Tensor:
    """`found`, the "max" or "min" of each segment; NaN where one of its numbers is, infinite where all of them are.

    TensorFlow's kernel begins with the lowest (highest) finite number.
    """
    worst = tf.constant(-np.inf if kind == "max" else np.inf, data.dtype)
    finite = tf.cast(tf.not_equal(data, worst), tf.int32)
    found = tf.where(tf.equal(tf.math.unsorted_segment_max(finite, ids, count), 0), worst, found)
    return found + tf.math.unsorted_segment_sum(nans(data), ids, count)


# -- for one example ---------------------------------------------------------------------------------------------------


def _reduction(reduce: Callable[..., tf.Tensor]) -> Plain:
    def plain(attribute: Attribute, x: tf.Tensor, axis: tf.Tensor) -> tf.Tensor:
        options = {"axis": axis, "keepdims": attribute("keep_dims")}
        lost = tf.reduce_any(is_nan(x), **options)
        return tf.where(lost, tf.constant(np.nan, x.dtype), reduce(x, **options))

    return plain


def _pair(extreme: Callable[..., tf.Tensor]) -> Plain:
    def plain(attribute: Attribute, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return tf.where(is_nan(x), x, tf.where(is_nan(y), y, extreme(x, y)))

    return plain


def _clip(attribute: Attribute, x: tf.Tensor, low: tf.Tensor, high: tf.Tensor) -> tf.Tensor:
    return _pair(tf.maximum)(attribute, _pair(tf.minimum)(attribute, x, high), low)


def _place(where: Callable[..., tf.Tensor], worst: float) -> Plain:
    def plain(attribute: Attribute, x: tf.Tensor, axis: tf.Tensor) -> tf.Tensor:
        numbers = tf.where(is_nan(x), tf.constant(worst, x.dtype), x)
        return where(numbers, axis=axis, output_type=attribute("output_type"))

    return plain


def _top_k(attribute: Attribute, x: tf.Tensor, count: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the largest by whole numbers in the order of the floats, NaN last; on those all kernels agree.

    -0.0 and 0.0 are the same number, of which the first comes first.
    """
    wide = x if x.dtype.size >= 4 else tf.cast(x, tf.float32)
    whole = tf.int64 if wide.dtype == tf.float64 else tf.int32
    bits = tf.bitcast(tf.where(tf.equal(wide, 0), tf.zeros_like(wide), wide), whole)
    order = tf.where(bits < 0, tf.bitwise.bitwise_xor(bits, tf.constant(whole.max, whole)), bits)
    order = tf.where(is_nan(wide), tf.constant(whole.max, whole), order)
    options = {name: attribute(name) for name in ("sorted", "index_type")}
    _, places = tf.raw_ops.TopKV2(input=order, k=count, **options)
    return tf.gather(x, places, batch_dims=x.shape.rank - 1), places


def _segments(kind: str) -> Plain:
    def plain(attribute: Attribute, data: tf.Tensor, ids: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        found = getattr(tf.math, f"unsorted_segment_{kind}")(data, ids, count)
        return found + tf.math.unsorted_segment_sum(nans(data), ids, count)

    return plain


_PLAIN: dict[str, Plain] = {
    "Max": _reduction(tf.reduce_max),
    "Min": _reduction(tf.reduce_min),
    "Maximum": _pair(tf.maximum),
    "Minimum": _pair(tf.minimum),
    "ClipByValue": _clip,
    "ArgMax": _place(tf.argmax, -np.inf),
    "ArgMin": _place(tf.argmin, np.inf),
    "TopKV2": _top_k,
    "UnsortedSegmentMax": _segments("max"),
    "UnsortedSegmentMin": _segments("min"),
}

_BY_PLACE = frozenset({"TopKV2", "UnsortedSegmentMax", "UnsortedSegmentMin"})
"""Operations whose kernels in TensorFlow treat NaN by its place, too."""

# -- for all lanes -----------------------------------------------------------------------------------------------------


def _along_axis(plain: Plain) -> Rule:
    """The axes of an example are counted from one on, after that of the lanes; negative ones stay."""

    def rule(inputs: Any) -> tf.Tensor:
        axis = inputs.unstacked_input(1)
        return plain(inputs.get_attr, inputs.stacked_input(0), axis + tf.cast(axis >= 0, axis.dtype))

    return rule


def _elementwise(plain: Plain, count: int) -> Rule:
    return lambda inputs: plain(inputs.get_attr, *aligned([inputs.input(place) for place in range(count)]))


def _along_last(plain: Plain) -> Rule:
    return lambda inputs: plain(inputs.get_attr, inputs.stacked_input(0), inputs.unstacked_input(1))


def _in_segments(plain: Plain) -> Rule:
    """Each lane has segments of its own, which follow those of the lane before."""

    def rule(inputs: Any) -> tf.Tensor:
        inputs.stack_inputs(stack_indices=[0, 1])
        data, ids = inputs.stacked_input(0), tf.cast(inputs.stacked_input(1), tf.int64)
        count = tf.cast(inputs.unstacked_input(2), tf.int64)
        lanes = tf.shape(ids, out_type=tf.int64)[0]
        first = count * tf.reshape(tf.range(lanes), tf.concat([[-1], tf.ones_like(tf.shape(ids)[1:])], axis=0))
        found = plain(inputs.get_attr, data, tf.where(ids >= 0, ids + first, ids), lanes * count)
        return tf.reshape(found, tf.concat([[lanes, count], tf.shape(found, out_type=tf.int64)[1:]], axis=0))

    return rule


def _corrects(name: str, attribute: Attribute) -> bool:
    """Return whether an operation on such numbers loses NaN where it is compiled, or handles NaN by position."""
    return bool(attribute("T").is_floating) and (name in _BY_PLACE or graphs.may_be_in_xla())


def _correction(name: str, rule: Rule) -> tuple[Applies, Rule]:
    return lambda inputs: _corrects(name, inputs.get_attr), rule


CORRECTIONS: dict[str, tuple[Applies, Rule]] = {
    **{name: _correction(name, _along_axis(_PLAIN[name])) for name in ("Max", "Min", "ArgMax", "ArgMin")},
    **{name: _correction(name, _elementwise(_PLAIN[name], 2)) for name in ("Maximum", "Minimum")},
    "ClipByValue": _correction("ClipByValue", _elementwise(_clip, 3)),
    "TopKV2": _correction("TopKV2", _along_last(_top_k)),
    **{name: _correction(name, _in_segments(_PLAIN[name])) for name in ("UnsortedSegmentMax", "UnsortedSegmentMin")},
}


def is_made_otherwise(operation: Any) -> bool:
    """Return whether `same_for_all` replaces an operation by more than a choice between its result and NaN."""
    return operation.type in _PLAIN and operation.type not in ("Max", "Maximum", "Min", "Minimum")


def is_corrected(operation: Any) -> bool:
    """Return whether an operation is replaced."""
    return operation.type in _PLAIN and _corrects(operation.type, operation.get_attr)


def same_for_all(operation: Any, inputs: Sequence[Converted]) -> list[Converted] | None:
    """Return the replaced outputs of such an operation if no input differs by lane, so that no rule applies."""
    if not is_corrected(operation) or any(each.is_stacked for each in inputs):
        return None
    found = _PLAIN[operation.type](operation.get_attr, *(each.t for each in inputs))
    return [Converted(output, False) for output in (found if isinstance(found, tuple) else (found,))]
