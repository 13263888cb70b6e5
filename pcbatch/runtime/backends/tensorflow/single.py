"""Access to one element or row of an array as XLA does it fastest: by slices, not gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import branches, graphs, private, raw_ops


def element(array: tf.Tensor, indices: Sequence[tf.Tensor]) -> tf.Tensor:
    """`array[i, j, ..]`."""
    slice_of = private.dynamic_slice()
    rest = array.shape[len(indices) :]
    if slice_of is None or not graphs.in_outer_xla():
        return tf.gather_nd(array, _inside(array, indices))
    sizes = (*[1] * len(indices), *rest)
    places = [tf.get_static_value(index) for index in indices]
    lengths = array.shape[: len(indices)]
    if all(place is not None for place in places) and all(lengths):
        inside = [min(max(int(place), 0), length - 1) for place, length in zip(places, lengths, strict=True)]
        first = raw_ops.constant((*inside, *[0] * len(rest)))
        return raw_ops.reshape(raw_ops.part(array, first, sizes), tuple(rest))
    starts = _starts(indices, len(rest))
    # Both are one operation of XLA's, which takes the nearest element beyond an end. TensorFlow makes XLA's text of its
    # own in a tenth of the time, but refuses bounds that it knows to be beyond.
    known = branches.may_be_known(starts)
    found = slice_of(array, starts, raw_ops.constant(sizes)) if known else raw_ops.part(array, starts, sizes)
    return raw_ops.reshape(found, tuple(rest))


def with_element(array: tf.Tensor, indices: Sequence[tf.Tensor], value: tf.Tensor) -> tf.Tensor:
    """`array` with `array[i, j, ..] = value`."""
    rest = array.shape[len(indices) :]
    if tuple(value.shape) != tuple(rest):
        value = tf.broadcast_to(value, rest)
    update = private.update_slice()
    if update is None or not graphs.in_outer_xla():
        return tf.tensor_scatter_nd_update(array, _inside(array, indices)[None], value[None])
    return update(array, raw_ops.reshape(value, (*[1] * len(indices), *rest)), _starts(indices, len(rest)))


def _inside(array: tf.Tensor, indices: Sequence[tf.Tensor]) -> tf.Tensor:
    """The indices, those out of range at the nearest end, one after another."""
    sizes = [tf.shape(array)[axis] if size is None else size for axis, size in enumerate(array.shape[: len(indices)])]
    return tf.stack([tf.clip_by_value(index, 0, size - 1) for index, size in zip(indices, sizes, strict=True)])


def _starts(indices: Sequence[tf.Tensor], rest: int) -> tf.Tensor:
    key = "starts", *(index.ref() for index in indices), rest
    return raw_ops.once(key, lambda: raw_ops.stack([*indices, *[raw_ops.constant(0)] * rest]))
