"""Vectorisation rules of our own, for operations that TensorFlow's pfor has none for.

The registry is private to TensorFlow, so every access to it is in this file. A rule gets the inputs of one operation,
each either *stacked* (`[lanes, ...]`) or the same for all lanes, and gives stacked outputs.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf


@functools.cache
def install() -> None:
    """Register our rules, once; operations that this TensorFlow already has a rule for keep it."""
    from tensorflow.python.ops.parallel_for import pfor

    registry = pfor._pfor_converter_registry
    for name, rule in RULES.items():
        if name not in registry:
            pfor.RegisterPFor(name)(functools.partial(_apply, rule, pfor.wrap))
    theirs, ours = registry["GatherNd"], functools.partial(_apply, _gather_nd, pfor.wrap)
    registry["GatherNd"] = lambda inputs: theirs(inputs) if inputs.input(0).is_stacked else ours(inputs)


def pfor(function: Callable[[tf.Tensor], Any], lanes: Any) -> Any:
    """`[function(0), .., function(lanes - 1)]`, stacked and vectorised; every operation must have a rule. Graphs only.

    Not `tf.vectorized_map`, which gathers where the number of lanes is unknown and broadcasts axes of length 1; nor the
    public `pfor`, which under XLA wraps itself in a function that AutoGraph converts: slower to trace, and it hides the
    frames that `failing_operations` needs.
    """
    from tensorflow.python.ops.parallel_for import control_flow_ops

    install()
    pfor = getattr(control_flow_ops, "_pfor_impl", control_flow_ops.pfor)
    return pfor(tf.autograph.experimental.do_not_convert(function), lanes, fallback_to_while_loop=False)


def failing_operations(error: BaseException) -> list[Any]:
    """The operations that pfor was converting when it raised `error`, the outermost (nearest to the piece) first."""
    found = []
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_name == "_convert_helper" and "y_op" in traceback.tb_frame.f_locals:
            found.append(traceback.tb_frame.f_locals["y_op"])
        traceback = traceback.tb_next
    return found


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep TensorFlow from printing pages about a rule that fails: the error says what matters."""

    def is_news(record: Any) -> bool:
        return not record.pathname.endswith("parallel_for/pfor.py")

    logger = tf.get_logger()
    logger.addFilter(is_news)
    try:
        yield
    finally:
        logger.removeFilter(is_news)


# -- the rules ---------------------------------------------------------------------------------------------------------

Rule = Callable[[Any], "tf.Tensor | tuple[tf.Tensor, ...]"]


def _apply(rule: Rule, wrap: Callable[[tf.Tensor, bool], Any], inputs: Any) -> list[Any]:
    outputs = rule(inputs)
    return [wrap(output, True) for output in (outputs if isinstance(outputs, tuple) else (outputs,))]


def _resource_gather(inputs: Any) -> tf.Tensor:
    """Reading a variable at per-lane indices (embedding lookup): read it, then gather."""
    resource, indices = inputs.unstacked_input(0), inputs.stacked_input(1)
    batch_dims = inputs.get_attr("batch_dims")
    if batch_dims:
        raise ValueError(
            "a variable is gathered with batch_dims; read it first: tf.gather(tf.convert_to_tensor(v), ..)"
        )
    variable = tf.raw_ops.ReadVariableOp(resource=resource, dtype=inputs.get_attr("dtype"))
    return tf.gather(variable, indices)


def _resource_gather_nd(inputs: Any) -> tf.Tensor:
    variable = tf.raw_ops.ReadVariableOp(resource=inputs.unstacked_input(0), dtype=inputs.get_attr("dtype"))
    return tf.gather_nd(variable, inputs.stacked_input(1))


def _gather_nd(inputs: Any) -> tf.Tensor:
    """From an array that all lanes share, the one case that TensorFlow's own rule leaves out."""
    return tf.gather_nd(inputs.unstacked_input(0), inputs.stacked_input(1))


def _qr(inputs: Any) -> tuple[tf.Tensor, ...]:
    return tuple(tf.linalg.qr(inputs.stacked_input(0), full_matrices=inputs.get_attr("full_matrices")))


def _svd(inputs: Any) -> tuple[tf.Tensor, ...]:
    full, vectors = inputs.get_attr("full_matrices"), inputs.get_attr("compute_uv")
    s, u, v = tf.raw_ops.Svd(input=inputs.stacked_input(0), full_matrices=full, compute_uv=vectors)
    if not vectors:  # both empty vectors, whatever the batch
        u = v = tf.zeros([tf.shape(s)[0], 0], s.dtype)
    return s, u, v


def _determinant(inputs: Any) -> tf.Tensor:
    return tf.linalg.det(inputs.stacked_input(0))


def _betainc(inputs: Any) -> tf.Tensor:
    inputs.stack_inputs()
    a, b, x = (inputs.stacked_input(i) for i in range(3))
    rank = max(tensor.shape.rank for tensor in (a, b, x))
    a, b, x = (_align(tensor, rank) for tensor in (a, b, x))
    zero = tf.zeros_like(a) + tf.zeros_like(b) + tf.zeros_like(x)  # the operation does not broadcast
    return tf.math.betainc(a + zero, b + zero, x + zero)


def _align(tensor: tf.Tensor, rank: int) -> tf.Tensor:
    """`[lanes, ...]` with axes of length 1 after the lanes, up to `rank`."""
    missing = rank - tensor.shape.rank
    return tf.reshape(tensor, tf.concat([tf.shape(tensor)[:1], [1] * missing, tf.shape(tensor)[1:]], axis=0))


def _cumulative_logsumexp(inputs: Any) -> tf.Tensor:
    axis = tf.cast(inputs.unstacked_input(1), tf.int32)
    axis = tf.where(axis >= 0, axis + 1, axis)
    exclusive, reverse = inputs.get_attr("exclusive"), inputs.get_attr("reverse")
    return tf.raw_ops.CumulativeLogsumexp(x=inputs.stacked_input(0), axis=axis, exclusive=exclusive, reverse=reverse)


def _mirror_pad(inputs: Any) -> tf.Tensor:
    paddings = inputs.unstacked_input(1)
    paddings = tf.concat([tf.zeros([1, 2], paddings.dtype), paddings], axis=0)
    mode = inputs.get_attr("mode").decode()
    return tf.raw_ops.MirrorPad(input=inputs.stacked_input(0), paddings=paddings, mode=mode)


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


def _elementwise(function: Callable[..., tf.Tensor]) -> Rule:
    def rule(inputs: Any) -> tf.Tensor:
        return function(inputs.stacked_input(0))

    return rule


RULES: dict[str, Rule] = {
    "Betainc": _betainc,
    "CumulativeLogsumexp": _cumulative_logsumexp,
    "MatrixDeterminant": _determinant,
    "MirrorPad": _mirror_pad,
    "PopulationCount": _elementwise(lambda x: tf.raw_ops.PopulationCount(x=x)),
    "Qr": _qr,
    "ResourceGather": _resource_gather,
    "ResourceGatherNd": _resource_gather_nd,
    "ScatterNd": _scatter_nd,
    "Svd": _svd,
    "TensorScatterAdd": _tensor_scatter(tf.tensor_scatter_nd_add),
    "TensorScatterMax": _tensor_scatter(tf.tensor_scatter_nd_max),
    "TensorScatterMin": _tensor_scatter(tf.tensor_scatter_nd_min),
    "TensorScatterSub": _tensor_scatter(tf.tensor_scatter_nd_sub),
}
