"""The gradient of an expression: by the derivative that taped runs use, and by a tape over one lane after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import CompileError, GradientError
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import Type, leaves
from pcbatch.runtime.backends.pieces import Signature, Wanted
from pcbatch.runtime.backends.tensorflow.backend import TensorFlowBackend
from pcbatch.runtime.backends.tensorflow.structures import leaf_tensors
from tools.operations.catalogue import LANES

BACKEND = TensorFlowBackend()


class WrongGradientError(Exception):
    """A gradient differs from that of a tape over one lane after another: the one thing that must not happen."""


def gradient(
    expression: str, piece: Piece, type_: Type, lanes: Sequence[Any], operands: Sequence[Any], *, jit: bool
) -> str:
    """What becomes of the gradient: "yes", "none" where no float comes from a float, or the code of its refusal.

    Raises WrongGradientError where it is given and is another than that of a loop over the lanes.
    """
    signature = Signature([BACKEND.type_of(each[0]) for each in lanes], [*map(BACKEND.type_of, operands)], [type_])
    results = [leaf for leaf in leaves(type_) if tf.as_dtype(leaf.dtype).is_floating]
    sources = [each for each in (*lanes, *operands) if each.dtype.is_floating]
    if not results or not sources:
        return "none"
    rng = np.random.default_rng(0)
    seeds = [tf.constant(rng.normal(size=(LANES, *leaf.shape)), leaf.dtype) for leaf in results]
    try:
        found = _found(piece, signature, lanes, operands, seeds, jit=jit)
    except GradientError as error:
        return str(error).partition(":")[0]
    except CompileError as error:
        return error.diagnostics[0].code
    except Exception as error:
        if BACKEND.explain(error) is None:
            raise
        return "PCB603" if jit else "PCB441"
    expected = _expected(piece, type_, lanes, operands, seeds)
    if expected is None:
        expected = found  # TensorFlow has no gradient for one lane, and none to compare with
    for ours, theirs in zip(found, expected, strict=True):
        scale = max(float(np.max(np.abs(np.nan_to_num(theirs)), initial=0.0)), 1.0)
        if not np.allclose(ours, theirs, rtol=1e-3, atol=1e-4 * scale, equal_nan=True):
            raise WrongGradientError(f"{expression}: {ours} instead of {theirs}")
    return "yes" if any(np.any(each) for each in found) else "none"


def _found(
    piece: Piece,
    signature: Signature,
    lanes: Sequence[Any],
    operands: Sequence[Any],
    seeds: Sequence[tf.Tensor],
    *,
    jit: bool,
) -> list[Any]:
    """The gradients by the floats among lanes' values, `[lanes, ...]`, and among operands, summed over the lanes."""
    wanted = Wanted((True,) * len(lanes), (True,) * len(operands), (True,))
    linear = BACKEND.linearize(piece, signature, wanted)
    count = len(lanes)

    def run(*values: tf.Tensor) -> list[tf.Tensor]:
        given, same = [[each] for each in values[:count]], [[each] for each in values[count : count + len(operands)]]
        upstream = values[count + len(operands) :]
        _, _, residuals = linear.forward(given, same, LANES)
        found = linear.backward(residuals, same, [upstream], LANES)
        everyone = tf.ones([LANES], tf.bool)
        reads = [list(group) for group in found.reads]
        for element, (indices, gradient) in zip(linear.elements, found.elements, strict=True):
            reads[element.read] = [_put(reads[element.read][0], values[element.read], indices, gradient)]
        sums = [BACKEND.sum_rows(part, everyone) for part in found.parts]
        by_operand = linear.pull_back(residuals, found.deltas, sums, same, everyone)
        flat = [each for group in (*reads, *by_operand) for each in group]
        pairs = [(new, old) for new, old in zip(flat, values, strict=False) if old.dtype.is_floating]
        return [tf.zeros_like(old) if new is None else new for new, old in pairs]

    return list(BACKEND.compile(run, jit)(*lanes, *operands, *seeds))


def _put(before: tf.Tensor | None, array: tf.Tensor, indices: Sequence[tf.Tensor], gradient: tf.Tensor) -> tf.Tensor:
    """The gradients by an array, `[lanes, ...]`, with those by an element of each lane's."""
    found = tf.zeros_like(array) if before is None else before
    return tf.tensor_scatter_nd_add(found, tf.stack([tf.range(LANES), *indices], axis=1), gradient)


def _expected(
    piece: Piece, type_: Type, lanes: Sequence[Any], operands: Sequence[Any], seeds: Sequence[tf.Tensor]
) -> list[Any] | None:
    """The same by a tape over one lane after another; None where TensorFlow has none."""
    by_lane: list[list[Any]] = []
    for lane in range(LANES):
        example = [each[lane] for each in lanes]
        sources = [each for each in (*example, *operands) if each.dtype.is_floating]
        try:
            with tf.GradientTape() as tape:
                tape.watch(sources)
                (value,), _ = BACKEND.evaluate(piece, example, operands)
                results = [leaf for leaf in leaf_tensors(value, type_) if leaf.dtype.is_floating]
            upstream = [seed[lane] for seed in seeds]
            found = tape.gradient(results, sources, output_gradients=upstream, unconnected_gradients="zero")
        except (LookupError, tf.errors.OpError, ValueError):
            return None
        by_lane.append([tf.convert_to_tensor(each).numpy() for each in found])
    count = sum(each.dtype.is_floating for each in lanes)
    columns = [*zip(*by_lane, strict=True)]
    return [np.stack(each) for each in columns[:count]] + [np.sum(each, axis=0) for each in columns[count:]]
