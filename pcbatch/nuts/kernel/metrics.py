"""The metric: what a momentum weighs, diagonal or dense, and how it is learned from a window of the warm-up's draws.

Plain TensorFlow on one example. The rank of the inverse mass matrix tells the two kinds apart: `[d]` is its diagonal,
`[d, d]` all of it. The estimate is Stan's: Welford's one-pass moments, shrunk towards a small multiple of the unit
matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

Tensor = Any  # TensorFlow carries no types; a tf.Tensor of one example

PRIOR_DRAWS, PRIOR_VARIANCE = 5.0, 1e-3
"""An estimate from n draws is n parts of their variance and 5 parts of 1e-3."""


class Metric(NamedTuple):
    """A mass matrix, by its inverse and a root; both `[d]` or both `[d, d]`."""

    inverse: Tensor
    """The inverse mass matrix: about the covariance of the posterior."""
    factor: Tensor
    """A root of the mass matrix, `factor @ transpose(factor)`, which makes momenta of standard normals."""


class Window(NamedTuple):
    """Welford's running moments of the draws seen so far."""

    draws: Tensor
    """Their number, a float."""
    mean: Tensor
    """`[d]`"""
    spread: Tensor
    """Sum of squared distances from the mean `[d]`, or of their outer products `[d, d]`."""


def velocity(inverse_mass: Tensor, p: Tensor) -> Tensor:
    """The inverse mass matrix times a momentum `[d]`."""
    return inverse_mass * p if inverse_mass.shape.rank == 1 else tf.linalg.matvec(inverse_mass, p)


def velocities(inverse_mass: Tensor, momenta: Tensor) -> Tensor:
    """The inverse mass matrix, which is symmetric, times each of several momenta `[n, d]`."""
    return inverse_mass * momenta if inverse_mass.shape.rank == 1 else tf.matmul(momenta, inverse_mass)


def momentum(metric: Metric, noise: Tensor) -> Tensor:
    """A momentum from N(0, mass matrix), made of standard normals `[d]`."""
    return metric.factor * noise if metric.factor.shape.rank == 1 else tf.linalg.matvec(metric.factor, noise)


def empty_window(like: Window) -> Window:
    """A window that has seen nothing."""
    return Window(*map(tf.zeros_like, like))


def add_draw(window: Window, q: Tensor) -> Window:
    """The window with one draw more (Welford, Technometrics 4, 1962)."""
    draws = window.draws + 1
    before = q - window.mean
    mean = window.mean + before / draws
    after = q - mean
    dense = window.spread.shape.rank == 2
    return Window(draws, mean, window.spread + (after[:, tf.newaxis] * before if dense else after * before))


def learned_metric(window: Window, metric: Metric) -> Metric:
    """The metric of a window's draws; `metric`, that of before, if there are fewer than two or they are not finite."""
    draws, _, spread = window
    dense = spread.shape.rank == 2
    weight = draws / (draws + PRIOR_DRAWS)
    floor = PRIOR_VARIANCE * (1 - weight)
    inverse = weight * spread / (draws - 1) + (floor * tf.eye(spread.shape[0], dtype=spread.dtype) if dense else floor)
    sound = (draws > 1) & tf.reduce_all(tf.math.is_finite(inverse))
    inverse = tf.where(sound, inverse, metric.inverse)
    factor = inverse_root(inverse) if dense else tf.math.rsqrt(inverse)
    sound = sound & tf.reduce_all(tf.math.is_finite(factor))
    return Metric(tf.where(sound, inverse, metric.inverse), tf.where(sound, factor, metric.factor))


def inverse_root(matrix: Tensor) -> Tensor:
    """`r` with `r @ transpose(r)` the inverse of a positive definite matrix; NaN under XLA if it is not."""
    lower = tf.linalg.cholesky(matrix)
    return tf.transpose(tf.linalg.triangular_solve(lower, tf.eye(matrix.shape[0], dtype=matrix.dtype)))


def metric_of(inverse: Any) -> Metric:
    """The metric of an inverse mass matrix `[d]` or `[d, d]`, as NumPy arrays of its dtype, computed in float64.

    >>> metric_of(np.array([4.0, 1.0])).factor.tolist()
    [0.5, 1.0]
    """
    exact = np.asarray(inverse, np.float64)
    factor = exact**-0.5 if exact.ndim == 1 else np.linalg.inv(np.linalg.cholesky(exact)).T
    return Metric(np.asarray(inverse), factor.astype(np.asarray(inverse).dtype))
