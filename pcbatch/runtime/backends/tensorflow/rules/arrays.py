"""Rules for arrays: elementwise operations, reductions, scans, segments, paddings, and reads and writes of elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.runtime.backends.tensorflow import graphs, private
from pcbatch.runtime.backends.tensorflow.rules import extremes
from pcbatch.runtime.backends.tensorflow.rules.family import (
    Applies,
    Rule,
    aligned,
    always,
    attributes,
    merge,
    part,
    stacked,
    with_leading_axes,
)
from pcbatch.runtime.backends.tensorflow.rules.straight import Converted
from pcbatch.runtime.backends.tensorflow.xla_cpu import gathering


def _betainc(inputs: Any) -> tf.Tensor:
    a, b, x = aligned([inputs.input(place) for place in range(3)])
    zero = tf.zeros_like(a) + tf.zeros_like(b) + tf.zeros_like(x)  # the operation does not broadcast
    return tf.math.betainc(a + zero, b + zero, x + zero)


def _next_after(inputs: Any) -> tf.Tensor:
    start, towards = aligned([inputs.input(0), inputs.input(1)])
    return tf.math.nextafter(start, towards)


def _bitcast(inputs: Any) -> tf.Tensor:
    return tf.bitcast(inputs.stacked_input(0), inputs.get_attr("type"))


def _l2_loss(inputs: Any) -> tf.Tensor:
    x = inputs.stacked_input(0)
    return tf.reduce_sum(x * x, axis=list(range(1, x.shape.rank))) / 2


def _euclidean_norm(inputs: Any) -> tf.Tensor:
    axes = _moved(inputs.unstacked_input(1))
    return tf.raw_ops.EuclideanNorm(input=inputs.stacked_input(0), axis=axes, keep_dims=inputs.get_attr("keep_dims"))


def _moved(axis: tf.Tensor) -> tf.Tensor:
    """Axes of one example as axes of `[lanes, ...]`; negative ones stay."""
    return tf.where(axis >= 0, axis + 1, axis)


def _cumulative_logsumexp(inputs: Any) -> tf.Tensor:
    axis = _moved(tf.cast(inputs.unstacked_input(1), tf.int32))
    x, way = inputs.stacked_input(0), attributes(inputs, "exclusive", "reverse")
    found = tf.raw_ops.CumulativeLogsumexp(x=x, axis=axis, **way)
    return found + tf.cumsum(extremes.nans(x), axis=axis, **way)  # XLA loses a NaN that an infinity comes with


def _one_hot(inputs: Any) -> tf.Tensor:
    """Encode with values for on and off that differ by lane, a case that TensorFlow's own rule leaves out."""
    inputs.stack_inputs(stack_indices=[0, 2, 3])
    indices, depth = inputs.stacked_input(0), inputs.unstacked_input(1)
    axis = inputs.get_attr("axis")
    hot = tf.one_hot(indices, depth, True, False, axis=axis + 1 if axis >= 0 else axis)
    on, off = (align_scalar(inputs.stacked_input(place), hot.shape.rank) for place in (2, 3))
    return tf.where(hot, on, off)


def align_scalar(numbers: tf.Tensor, rank: int) -> tf.Tensor:
    """`[lanes]` as `[lanes, 1, .., 1]`."""
    return tf.reshape(numbers, [-1, *[1] * (rank - 1)])


def _mirror_pad(inputs: Any) -> tf.Tensor:
    return tf.raw_ops.MirrorPad(input=inputs.stacked_input(0), paddings=_paddings(inputs), **attributes(inputs, "mode"))


def _mirror_pad_gradient(inputs: Any) -> tf.Tensor:
    return tf.raw_ops.MirrorPadGrad(
        input=inputs.stacked_input(0), paddings=_paddings(inputs), **attributes(inputs, "mode")
    )


def _pad_with_value(inputs: Any) -> tf.Tensor:
    """TensorFlow's own rule forgets the value, and pads with zeros."""
    inputs.stack_inputs(stack_indices=[0])
    x, paddings, value = inputs.stacked_input(0), _paddings(inputs), inputs.input(2)
    if not value.is_stacked:
        return tf.raw_ops.PadV2(input=x, paddings=paddings, constant_values=value.t)
    inside = tf.pad(tf.ones_like(x, tf.bool), paddings)
    return tf.where(inside, tf.pad(x, paddings), align_scalar(value.t, x.shape.rank))


def _paddings(inputs: Any) -> tf.Tensor:
    """The paddings of an operation that pads, with none for the lanes."""
    paddings = inputs.unstacked_input(1)
    return tf.concat([tf.zeros([1, 2], paddings.dtype), paddings], axis=0)


def _reverse_sequence(inputs: Any) -> tf.Tensor:
    """Lanes become a part of the axis of sequences, which comes to the front for that."""
    inputs.stack_inputs(stack_indices=[0, 1])
    x, batch = inputs.stacked_input(0), inputs.get_attr("batch_dim") + 1
    order = [0, batch, *(axis for axis in range(1, x.shape.rank) if axis != batch)]
    along, lengths = order.index(inputs.get_attr("seq_dim") + 1) - 1, inputs.stacked_input(1)
    found = tf.reverse_sequence(merge(tf.transpose(x, order)), merge(lengths), seq_axis=along, batch_axis=0)
    return tf.transpose(part(found, tf.shape(x)[:1]), np.argsort(order))


# -- segments whose number is known ------------------------------------------------------------------------------------


def _segment(kind: str) -> Rule:
    def rule(inputs: Any) -> tf.Tensor:
        ids = None if stacked(inputs, 1) else tf.get_static_value(inputs.unstacked_input(1))
        if ids is None:
            message = "the number of segments is not known when the program is compiled"
            if not graphs.in_outer_xla():
                raise ValueError(message)  # without XLA such an operation runs lane after lane
            help = f"write tf.math.unsorted_segment_{kind}(data, ids, number), which takes it"
            raise PieceRefusalError("PCB402", f"TensorFlow's {inputs.op_type} cannot be batched: {message}", help)
        count = int(np.max(ids, initial=-1)) + 1
        data = inputs.stacked_input(0)
        rows = tf.transpose(data, [1, 0, *range(2, data.shape.rank)])
        found = getattr(tf.math, f"unsorted_segment_{kind}")(rows, ids, count)
        if kind in ("max", "min") and rows.dtype.is_floating:
            found = extremes.of_segments(found, kind, rows, ids, count)
        empty = np.bincount(ids, minlength=count) == 0
        blank = {"prod": 1}.get(kind, 0)  # the unsorted ones give a segment without elements the extreme of the dtype
        found = tf.where(align_scalar(tf.constant(empty), found.shape.rank), tf.cast(blank, found.dtype), found)
        return tf.transpose(found, [1, 0, *range(2, data.shape.rank)])

    return rule


# -- elements ----------------------------------------------------------------------------------------------------------


def _resource_gather(inputs: Any) -> tf.Tensor:
    """Reading a variable at per-lane indices (embedding lookup): read it, then gather."""
    inputs.stack_inputs(stack_indices=[1])
    indices = inputs.stacked_input(1)
    batch_dims = inputs.get_attr("batch_dims")
    if batch_dims:
        raise ValueError(
            "a variable is gathered with batch_dims; read it first: tf.gather(tf.convert_to_tensor(v), ..)"
        )
    variable = _value(inputs.unstacked_input(0), inputs)
    return tf.gather(gathering.unsplit(variable, indices), indices)


def _resource_gather_nd(inputs: Any) -> tf.Tensor:
    inputs.stack_inputs(stack_indices=[1])
    return tf.gather_nd(_value(inputs.unstacked_input(0), inputs), inputs.stacked_input(1))


def _value(variable: tf.Tensor, operation: Any) -> tf.Tensor:
    """The value of a variable, from its handle; an operation's input may be the value already."""
    if variable.dtype != tf.resource:
        return variable
    return tf.raw_ops.ReadVariableOp(resource=variable, dtype=operation.get_attr("dtype"))


def same_for_all(operation: Any, inputs: Sequence[Converted]) -> list[Converted] | None:
    """The elements of a variable at places that are the same for all lanes; None for another operation.

    From TensorFlow 2.22 on pfor takes it as it is, for which it needs the handle.
    """
    if operation.type not in READS or inputs[1].is_stacked:
        return None
    value, indices = _value(inputs[0].t, operation), inputs[1].t
    if operation.type == "ResourceGatherNd":
        return [Converted(tf.gather_nd(value, indices), False)]
    batch_dims = operation.get_attr("batch_dims")
    value = value if batch_dims else gathering.unsplit(value, indices)
    return [Converted(tf.gather(value, indices, batch_dims=batch_dims), False)]


def _gather_nd(inputs: Any) -> tf.Tensor:
    """Gather from an array that all lanes share, the one case that TensorFlow's own rule leaves out."""
    return tf.gather_nd(inputs.unstacked_input(0), inputs.stacked_input(1))


def _is_large(inputs: Any) -> bool:
    """Return whether one row or a vector of rows is read from an array that XLA would read with several threads."""
    array, indices = inputs.input(0), inputs.input(1)
    if not indices.is_stacked or inputs.get_attr("batch_dims") or tf.get_static_value(inputs.unstacked_input(2)) != 0:
        return False
    if private.is_every_lane(inputs, indices.t):  # each lane its own row: the array as it is
        return False
    return gathering.is_split(array.t)


def _gather_large(inputs: Any) -> tf.Tensor:
    """`array[index]`, the array the lane's own or shared, without threads; see `gathering`."""
    array, indices = inputs.input(0), inputs.stacked_input(1)
    return tf.gather(gathering.unsplit(array.t, indices), indices, batch_dims=int(array.is_stacked))


def _with_lane(indices: tf.Tensor) -> tf.Tensor:
    """Scatter indices `[lanes, .., depth]` with each index preceded by its lane."""
    shape = tf.shape(indices)
    lanes = tf.range(shape[0], dtype=indices.dtype)
    lanes = tf.reshape(lanes, tf.concat([shape[:1], tf.ones([indices.shape.rank - 1], tf.int32)], axis=0))
    return tf.concat([tf.broadcast_to(lanes, tf.concat([shape[:-1], [1]], axis=0)), indices], axis=-1)


def _scatter_nd(inputs: Any) -> tf.Tensor:
    inputs.stack_inputs(stack_indices=[0, 1])
    indices, updates, shape = inputs.stacked_input(0), inputs.stacked_input(1), inputs.unstacked_input(2)
    lanes = tf.cast(tf.shape(indices)[:1], shape.dtype)
    return tf.scatter_nd(_with_lane(indices), updates, tf.concat([lanes, shape], axis=0))


def _tensor_scatter(scatter: Callable[..., tf.Tensor]) -> Rule:
    def rule(inputs: Any) -> tf.Tensor:
        inputs.stack_inputs()
        tensor, indices, updates = (inputs.stacked_input(i) for i in range(3))
        return scatter(tensor, _with_lane(indices), updates)

    return rule


def _invert_permutation(inputs: Any) -> tf.Tensor:
    permutation = inputs.stacked_input(0)
    return tf.cast(tf.argsort(permutation, axis=-1), permutation.dtype)


def _unravel_index(inputs: Any) -> tf.Tensor:
    """`[lanes, depth]` or `[lanes, depth, n]`: digits of the indices in the mixed base of the shape."""
    indices, shape = inputs.stacked_input(0), inputs.unstacked_input(1)
    strides = tf.math.cumprod(shape, exclusive=True, reverse=True)
    trailing = [1] * (indices.shape.rank - 1)
    strides, sizes = (tf.reshape(each, [1, -1, *trailing]) for each in (strides, shape))
    return tf.math.floormod(tf.math.floordiv(indices[:, None], strides), sizes)


READS = ("ResourceGather", "ResourceGatherNd")
"""Operations that read elements of a variable by its handle, or of its value given in the handle's place."""

RULES: dict[str, Rule] = {
    "Betainc": _betainc,
    "Bitcast": _bitcast,
    "CumulativeLogsumexp": _cumulative_logsumexp,
    "EuclideanNorm": _euclidean_norm,
    "FakeQuantWithMinMaxArgs": with_leading_axes(
        tf.raw_ops.FakeQuantWithMinMaxArgs, "inputs", keep=("min", "max", "num_bits", "narrow_range")
    ),
    "L2Loss": _l2_loss,
    "MirrorPad": _mirror_pad,
    "MirrorPadGrad": _mirror_pad_gradient,
    "NextAfter": _next_after,
    "PopulationCount": with_leading_axes(tf.raw_ops.PopulationCount, "x"),
    "ReverseSequence": _reverse_sequence,
    "SegmentMax": _segment("max"),
    "SegmentMean": _segment("mean"),
    "SegmentMin": _segment("min"),
    "SegmentProd": _segment("prod"),
    "SegmentSum": _segment("sum"),
    "InvertPermutation": _invert_permutation,
    "ResourceGather": _resource_gather,
    "ResourceGatherNd": _resource_gather_nd,
    "ScatterNd": _scatter_nd,
    "TensorScatterAdd": _tensor_scatter(tf.tensor_scatter_nd_add),
    "TensorScatterMax": _tensor_scatter(tf.tensor_scatter_nd_max),
    "TensorScatterMin": _tensor_scatter(tf.tensor_scatter_nd_min),
    "TensorScatterSub": _tensor_scatter(tf.tensor_scatter_nd_sub),
    "UnravelIndex": _unravel_index,
}

CORRECTIONS: dict[str, tuple[Applies, Rule]] = {
    "OneHot": (lambda inputs: stacked(inputs, 2) or stacked(inputs, 3), _one_hot),
    "PadV2": (always, _pad_with_value),
    "GatherV2": (_is_large, _gather_large),
    "GatherNd": (lambda inputs: not stacked(inputs, 0), _gather_nd),
    # TensorFlow's computes shapes in a way that XLA follows only where the places are literals.
    "TensorScatterUpdate": (always, _tensor_scatter(tf.tensor_scatter_nd_update)),
    "ResourceGather": (always, _resource_gather),  # TensorFlow's, from 2.22 on, know nothing but handles
    "ResourceGatherNd": (always, _resource_gather_nd),
}
