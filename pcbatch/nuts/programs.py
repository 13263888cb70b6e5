"""The batched program of a density, kept so that it compiles once, and which kernels its gradient runs on best."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

import tensorflow as tf

from pcbatch.nuts.bijectors import Transform
from pcbatch.nuts.chain import make_sampler
from pcbatch.nuts.dynamics import value_and_gradient
from pcbatch.nuts.parameters import unravel
from pcbatch.nuts.settings import Settings

TRIALS = 5
"""How often a gradient is timed each way."""


def density_of_vector(log_density: Callable[..., Any], transform: Transform, with_data: bool) -> Callable[..., Any]:
    """`(q, data) -> scalar`: the log density of an unconstrained position `[size]`, Jacobians included."""

    def density(q: tf.Tensor, data: Any) -> tf.Tensor:
        parameters = unravel(transform.layout, transform.forward(q))
        found = log_density(parameters, data) if with_data else log_density(parameters)
        return found + transform.log_jacobian(q) if any(transform.bijectors) else found

    return density


def chain_of(log_density: Callable[..., Any], transform: Transform, with_data: bool, settings: Settings) -> Any:
    """The batched function that runs a stretch of chains."""
    return _chain(
        log_density,
        transform,
        with_data,
        settings.dtype,
        settings.chunk,
        settings.max_tree_depth,
        settings.leapfrogs_per_leaf,
        settings.kernel,
    ).options(schedule=settings.schedule, jit=settings.jit)


@lru_cache(maxsize=32)
def _chain(
    log_density: Callable[..., Any],
    transform: Transform,
    with_data: bool,
    dtype: str,
    capacity: int,
    max_tree_depth: int,
    leapfrogs_per_leaf: int,
    kernel: Literal["multinomial", "slice"],
) -> Any:
    return make_sampler(
        density_of_vector(log_density, transform, with_data),
        dimensions=transform.layout.size,
        dtype=tf.as_dtype(dtype),
        capacity=capacity,
        max_tree_depth=max_tree_depth,
        leapfrogs_per_leaf=leapfrogs_per_leaf,
        kernel=kernel,
    ).chain


def faster(log_density: Callable[..., Any], transform: Transform, data: Any, positions: tf.Tensor) -> bool:
    """Whether XLA computes the gradients at `positions` `[chains, size]` faster than TensorFlow's own kernels do."""
    density = density_of_vector(log_density, transform, data is not None)

    def gradients(positions: tf.Tensor, data: Any) -> Any:
        return tf.vectorized_map(lambda q: value_and_gradient(density, q, data), positions)

    operand = None if data is None else tf.nest.map_structure(tf.convert_to_tensor, data)
    return seconds(gradients, True, positions, operand) <= seconds(gradients, False, positions, operand)


def seconds(function: Callable[..., Any], jit: bool, *arguments: Any) -> float:
    """The shortest time of a call, under XLA or by TensorFlow's own kernels, once it is compiled."""
    compiled = tf.function(function, jit_compile=jit, autograph=False)
    times = []
    for _ in range(TRIALS + 1):
        started = time.perf_counter()
        tf.nest.map_structure(lambda tensor: tensor.numpy(), compiled(*arguments))
        times.append(time.perf_counter() - started)
    return min(times[1:])
