"""What gradients through a batched call are judged by: a tape over one example after another, and differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.adjoint import tape as tapes

TINY = tapes.Sizes(batches=1, rows=0, bytes=1 << 20, log=5)
"""Tapes that are full after one run of a block for all lanes: many segments."""


def floats(value: Any) -> list[tf.Tensor]:
    """The leaves of a structure that have gradients."""
    return [leaf for leaf in map(tf.convert_to_tensor, tf.nest.flatten(value)) if leaf.dtype.is_floating]


def weights(results: Sequence[tf.Tensor]) -> list[np.ndarray]:
    """A number for each element of the results, the same every time: the loss is their sum with these weights."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=each.shape).astype(each.dtype.as_numpy_dtype) for each in results]


def loss(run: Any) -> tf.Tensor:
    """The weighted sum of the results of a run, of lanes that have not failed."""
    results, sound = floats(run.value), tf.convert_to_tensor(run.status) == 0
    parts = []
    for result, weight in zip(results, weights(results), strict=True):
        mask = tf.reshape(sound, [-1, *[1] * (result.shape.rank - 1)])
        parts.append(tf.cast(tf.reduce_sum(tf.where(mask, result * weight, tf.zeros_like(result))), tf.float64))
    return tf.add_n(parts)


def batched(function: Any, arguments: Sequence[Any], variables: Sequence[Any] = ()) -> list[Any]:
    """The gradients of `loss` by the floats of the arguments, and by variables."""
    sources = [*floats(arguments), *variables]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        value = loss(function.run(*arguments))
    return tape.gradient(value, sources)


def one_by_one(function: Any, arguments: Sequence[Any], variables: Sequence[Any] = ()) -> list[Any]:
    """The same, by a tape over the reference, which runs lane after lane, operation after operation."""
    return batched(function.options(backend="reference", jit=True), arguments, variables)


def singly(function: Any, arguments: Sequence[Any], variables: Sequence[Any] = ()) -> list[Any]:
    """The same, by a tape over `single`: of lanes none of which fails."""
    sources = [*floats(arguments), *variables]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        lanes = len(tf.nest.flatten(arguments)[0])
        results = [
            floats(function.single(*tf.nest.map_structure(lambda leaf, lane=lane: leaf[lane], tuple(arguments))))
            for lane in range(lanes)
        ]
        stacked = [tf.stack(each) for each in zip(*results, strict=True)]
        value = tf.add_n(
            [
                tf.cast(tf.reduce_sum(result * weight), tf.float64)
                for result, weight in zip(stacked, weights(stacked), strict=True)
            ]
        )
    return tape.gradient(value, sources)


def assert_alike(found: Sequence[Any], expected: Sequence[Any], tolerance: float = 1e-9) -> None:
    """Gradients equal to rounding; None stands for zeros on one side only where the other has zeros."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        if ours is None or theirs is None:
            for other in (ours, theirs):
                assert other is None or not np.any(tf.convert_to_tensor(other)), "None in place of a gradient"
            continue
        ours, theirs = tf.convert_to_tensor(ours).numpy(), tf.convert_to_tensor(theirs).numpy()
        scale = max(float(np.max(np.abs(theirs), initial=0.0)), 1e-3)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)


def assert_like_differences(
    function: Any, arguments: Sequence[Any], step: float = 1e-6, tolerance: float = 1e-6
) -> None:
    """Gradients by float64 arguments equal to central differences, in a few directions."""
    found = batched(function, arguments)
    rng = np.random.default_rng(1)

    def moved(direction: Sequence[np.ndarray], by: float) -> float:
        remaining = iter(direction)
        given = tf.nest.map_structure(
            lambda leaf: leaf + by * next(remaining) if leaf.dtype.is_floating else leaf, tuple(arguments)
        )
        return float(loss(function.run(*given)))

    for _ in range(3):
        direction = [rng.normal(size=leaf.shape) for leaf in floats(arguments)]
        difference = (moved(direction, step) - moved(direction, -step)) / (2 * step)
        slope = sum(
            float(np.sum(tf.convert_to_tensor(each) * along))
            for each, along in zip(found, direction, strict=True)
            if each is not None
        )
        np.testing.assert_allclose(slope, difference, rtol=tolerance, atol=tolerance)
