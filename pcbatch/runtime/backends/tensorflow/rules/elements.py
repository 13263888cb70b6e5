"""Rules for reading and writing elements: gathers from variables and shared arrays, scatters, permutations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private
from pcbatch.runtime.backends.tensorflow.rules.family import Applies, Rule, always, stacked
from pcbatch.runtime.backends.tensorflow.rules.straight import Converted
from pcbatch.runtime.backends.tensorflow.xla_cpu import gathering


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
    "GatherV2": (_is_large, _gather_large),
    "GatherNd": (lambda inputs: not stacked(inputs, 0), _gather_nd),
    # TensorFlow's computes shapes in a way that XLA follows only where the places are literals.
    "TensorScatterUpdate": (always, _tensor_scatter(tf.tensor_scatter_nd_update)),
    "ResourceGather": (always, _resource_gather),  # TensorFlow's, from 2.22 on, know nothing but handles
    "ResourceGatherNd": (always, _resource_gather_nd),
}
