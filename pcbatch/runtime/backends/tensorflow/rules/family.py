"""Common parts of the families of rules: their types, and rules that many operations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, raw_ops

Rule = Callable[[Any], "tf.Tensor | tuple[tf.Tensor, ...]"]
"""A function from an operation's inputs, in pfor's form, to its stacked outputs."""

Applies = Callable[[Any], bool]
"""A predicate on an operation's inputs: whether a correction applies."""

Raw = Callable[..., Any]
"""An operation of `tf.raw_ops`."""


def always(inputs: Any) -> bool:
    """Return True: correct a rule that is always wrong."""
    return True


def stacked(inputs: Any, place: int) -> bool:
    """Return whether the input at `place` differs by lane."""
    return bool(inputs.input(place).is_stacked)


def attributes(inputs: Any, *names: str) -> dict[str, Any]:
    """Attributes of the operation, by name, as `tf.raw_ops` takes them."""
    found = {name: inputs.get_attr(name) for name in names}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in found.items()}


def with_leading_axes(raw: Raw, *names: str, keep: tuple[str, ...] = ()) -> Rule:
    """Make the rule of an operation with any number of leading axes: its inputs, by the names of `raw`'s, all stacked.

    `keep` are the attributes that carry over.
    """

    def rule(inputs: Any) -> Any:
        inputs.stack_inputs(stack_indices=list(range(len(names))))
        given = {name: inputs.stacked_input(place) for place, name in enumerate(names)}
        outputs = raw(**given, **attributes(inputs, *keep))
        return tuple(outputs) if isinstance(outputs, tuple) else outputs

    return rule


def with_merged_lanes(raw: Raw, *names: str, keep: tuple[str, ...] = (), merged: tuple[int, ...] = (0,)) -> Rule:
    """Make the rule of an operation on a batch `[N, ...]`: lanes become a part of it, `[lanes * N, ...]`.

    Inputs at `merged` places have the batch axis; the others must be the same for all lanes.
    """

    def rule(inputs: Any) -> Any:
        inputs.stack_inputs(stack_indices=list(merged))
        lanes = tf.shape(inputs.stacked_input(merged[0]))[:1]
        given = {}
        for place, name in enumerate(names):
            tensor = inputs.stacked_input(place) if place in merged else inputs.unstacked_input(place)
            given[name] = merge(tensor) if place in merged else tensor
        outputs = raw(**given, **attributes(inputs, *keep))
        found = tuple(part(output, lanes) for output in (outputs if isinstance(outputs, tuple) else (outputs,)))
        return found if len(found) > 1 else found[0]

    return rule


def merge(tensor: tf.Tensor) -> tf.Tensor:
    """`[lanes, N, ...]` as `[lanes * N, ...]`."""
    return tf.reshape(tensor, tf.concat([[-1], tf.shape(tensor)[2:]], axis=0))


def part(tensor: tf.Tensor, lanes: tf.Tensor) -> tf.Tensor:
    """`[lanes * N, ...]` as `[lanes, N, ...]`; `lanes` is an int32 `[1]`."""
    shape = tf.shape(tensor)
    return tf.reshape(tensor, tf.concat([lanes, shape[:1] // lanes, shape[1:]], axis=0))


def aligned(values: Sequence[Any]) -> list[tf.Tensor]:
    """Tensors ready to broadcast: `t` of each value, with axes of length 1 after the lanes where it `is_stacked`."""
    rank = max(value.t.shape.rank + (not value.is_stacked) for value in values)
    return [_with_rank(value.t, rank) if value.is_stacked else value.t for value in values]


def _with_rank(tensor: tf.Tensor, rank: int) -> tf.Tensor:
    for _ in range(rank - tensor.shape.rank):
        tensor = raw_ops.expanded(tensor)
    return tensor


# Operations of which TensorFlow makes XLA's text soon, for others that it sends through MLIR, each by itself. That
# takes 2 to 5 ms for each such operation, and a twentieth of a millisecond for most others (TensorFlow 2.21). The
# results are the same for every number.


def is_nan(x: tf.Tensor) -> tf.Tensor:
    """`tf.math.is_nan`."""
    return tf.not_equal(x, x) if graphs.in_outer_xla() else tf.math.is_nan(x)


def is_finite(x: tf.Tensor) -> tf.Tensor:
    """`tf.math.is_finite`."""
    return tf.equal(x - x, tf.zeros([], x.dtype)) if graphs.in_outer_xla() else tf.math.is_finite(x)


INSTEAD: Mapping[str, Callable[[tf.Tensor], tf.Tensor]] = {"IsNan": is_nan, "IsFinite": is_finite}
"""The functions by the types of the operations that they stand for."""
