"""The metric: what a momentum weighs, diagonal or dense, and how it is learned from a window of the warm-up's draws.

Plain TensorFlow on one example. The rank of the inverse mass matrix tells the two kinds apart: `[d]` is its diagonal,
`[d, d]` all of it.

A diagonal is the root of the draws' variances over those of their gradients, as nutpie's: of all diagonals it brings
the density's scores closest to a standard normal's (Seyboldt, Carlson, Carpenter, "Preconditioning Hamiltonian Monte
Carlo by minimizing Fisher divergence", arXiv:2603.18845). Of independent normals it is exact from two draws on. A dense
one is Stan's: the draws' covariance, shrunk towards a small multiple of the unit matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

Tensor = Any  # TensorFlow carries no types; a tf.Tensor of one example

PRIOR_DRAWS, PRIOR_VARIANCE = 5.0, 1e-3
"""A dense estimate from n draws is n parts of their covariance and 5 parts of 1e-3."""


class Metric(NamedTuple):
    """A mass matrix, by its inverse and a root; both `[d]` or both `[d, d]`."""

    inverse: Tensor
    """The inverse mass matrix: about the covariance of the posterior."""
    factor: Tensor
    """A root of the mass matrix, `factor @ transpose(factor)`, which makes momenta of standard normals."""


class Window(NamedTuple):
    """Welford's running moments of the draws seen so far, and for a diagonal metric of their gradients."""

    draws: Tensor
    """Their number, a float."""
    mean: Tensor
    """`[2, d]` of positions and gradients, or `[d]` of positions for a dense metric."""
    spread: Tensor
    """Sum of squared distances from the mean `[2, d]`, or of the outer products of positions `[d, d]`."""


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


def window_for(inverse: np.ndarray) -> Window:
    """An empty window of NumPy arrays, for an inverse mass matrix `[d]` or `[d, d]`."""
    size, dense = len(inverse), inverse.ndim == 2
    mean = np.zeros(size if dense else (2, size), inverse.dtype)
    return Window(np.zeros((), inverse.dtype), mean, np.zeros_like(inverse if dense else mean))


def add_draw(window: Window, q: Tensor, g: Tensor) -> Window:
    """The window with one draw more, and the gradient there (Welford, Technometrics 4, 1962)."""
    dense = window.mean.shape.rank == 1
    seen = q if dense else tf.stack([q, g])
    draws = window.draws + 1
    before = seen - window.mean
    mean = window.mean + before / draws
    after = seen - mean
    return Window(draws, mean, window.spread + (after[:, tf.newaxis] * before if dense else after * before))


def learned_metric(window: Window, metric: Metric) -> Metric:
    """The metric of a window's draws; that of before, `metric`, of fewer than two draws and where it is not finite.

    A diagonal keeps single entries of before, such as that of a number whose gradient has not changed.
    """
    draws, _, spread = window
    if window.mean.shape.rank == 2:
        inverse = tf.sqrt(spread[0]) / tf.sqrt(spread[1])
        factor = tf.math.rsqrt(inverse)
        sound = tf.math.is_finite(inverse) & tf.math.is_finite(factor)
    else:
        weight = draws / (draws + PRIOR_DRAWS)
        floor = PRIOR_VARIANCE * (1 - weight) * tf.eye(spread.shape[0], dtype=spread.dtype)
        inverse = weight * spread / (draws - 1) + floor
        sound = (draws > 1) & tf.reduce_all(tf.math.is_finite(inverse))
        inverse = tf.where(sound, inverse, metric.inverse)
        factor = inverse_root(inverse)
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
