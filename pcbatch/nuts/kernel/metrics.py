"""The metric: what a momentum weighs, diagonal or dense, and how it is learned from a window of the warm-up's draws.

Plain TensorFlow on one example. The rank of the inverse mass matrix tells the two kinds apart: `[d]` is its diagonal,
`[d, d]` all of it.

Both are learned from draws and their gradients: of all metrics of their kind they bring the density's scores closest to
a standard normal's (Seyboldt, Carlson, Carpenter, "Preconditioning Hamiltonian Monte Carlo by minimizing Fisher
divergence", arXiv:2603.18845). A diagonal is the root of the draws' variances over those of the gradients. Of
independent normals it is exact from two draws on. A dense one is the geometric mean of the draws' covariance and the
inverse of the gradients'. Both covariances are shrunk towards their diagonals, so that fewer draws than dimensions tell
the correlations that they show, and of the rest what a diagonal tells.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

Tensor = Any  # TensorFlow carries no types; a tf.Tensor of one example

PRIOR_DRAWS = 1.0
"""A covariance of n draws is n parts of what they show and so many parts of its diagonal."""
LEAST_SHARE = 2000.0
"""The least share of the diagonal, in the dtype's epsilon: beyond that products by a metric are lost to rounding. In
float32 chains of kidscore, whose coefficients nearly cancel, stand still with a share of 4e-7."""


class Metric(NamedTuple):
    """A mass matrix, by its inverse and a root; both `[d]` or both `[d, d]`."""

    inverse: Tensor
    """The inverse mass matrix: about the covariance of the posterior."""
    factor: Tensor
    """A root of the mass matrix, `factor @ transpose(factor)`, which makes momenta of standard normals."""


class Window(NamedTuple):
    """Welford's running moments of the draws seen so far, and of their gradients."""

    draws: Tensor
    """Their number, a float."""
    mean: Tensor
    """Of positions and of gradients, `[2, d]`."""
    spread: Tensor
    """Sum of squared distances from the mean `[2, d]`, or of their outer products `[2, d, d]` for a dense metric."""


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
    mean, spread = np.zeros((2, len(inverse)), inverse.dtype), np.zeros((2, *inverse.shape), inverse.dtype)
    return Window(np.zeros((), inverse.dtype), mean, spread)


def add_draw(window: Window, q: Tensor, g: Tensor) -> Window:
    """The window with one draw more, and the gradient there (Welford, Technometrics 4, 1962)."""
    dense = window.spread.shape.rank == 3
    seen = tf.stack([q, g])
    draws = window.draws + 1
    before = seen - window.mean
    mean = window.mean + before / draws
    after = seen - mean
    return Window(
        draws, mean, window.spread + (after[:, :, tf.newaxis] * before[:, tf.newaxis] if dense else after * before)
    )


def learned_metric(window: Window, metric: Metric) -> Metric:
    """The diagonal metric of a window's draws; single entries of before where it is not finite, `metric`'s.

    Such is that of a number whose gradient has not changed, and all of fewer than two draws.
    """
    inverse = tf.sqrt(window.spread[0]) / tf.sqrt(window.spread[1])
    factor = tf.math.rsqrt(inverse)
    sound = tf.math.is_finite(inverse) & tf.math.is_finite(factor)
    return Metric(tf.where(sound, inverse, metric.inverse), tf.where(sound, factor, metric.factor))


def learned_dense(window: Window, metric: Metric) -> Metric:
    """The dense metrics of windows of any number of chains `[..]`, in NumPy and in float64.

    Each is `metric`'s where the window has fewer than two draws or is not finite, a number or its gradient has not
    changed, or rounding leaves nothing to decompose. NumPy goes from matrix to matrix, so that none depends on the
    others to the bit.
    """
    draws, spread = np.asarray(window.draws, np.float64), np.asarray(window.spread, np.float64)
    diagonal = np.einsum("...ii->...i", spread)
    sound = (draws > 1) & np.isfinite(spread).all(axis=(-3, -2, -1)) & (diagonal > 0).all(axis=(-2, -1))
    count, unit = draws[..., np.newaxis, np.newaxis, np.newaxis], np.eye(spread.shape[-1])
    dtype = np.asarray(metric.inverse).dtype
    share = np.maximum(PRIOR_DRAWS / (count + PRIOR_DRAWS), LEAST_SHARE * np.finfo(dtype).eps)
    shrunk = (1 - share) * spread + share * diagonal[..., np.newaxis] * unit
    shrunk = np.where(sound[..., np.newaxis, np.newaxis, np.newaxis], shrunk, unit)
    found = geometric_mean(shrunk[..., 0, :, :], shrunk[..., 1, :, :])
    sound &= np.logical_and.reduce([np.isfinite(each).all(axis=(-2, -1)) for each in found])
    learned = [np.where(sound[..., np.newaxis, np.newaxis], *each) for each in zip(found, metric, strict=True)]
    return Metric(*(each.astype(dtype) for each in learned))


def geometric_mean(covariance: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positive definite `m` with `m @ precision @ m == covariance`, `[.., d, d]`, and a root of its inverse.

    Of a normal density the inverse of the one is the other, and what is decomposed is the unit matrix. Not finite where
    rounding makes that indefinite, or it overflows.

    By singular values: `eigh` runs matrices of 31 rows on all cores, which takes 100 times as long, and longer where
    these have other work.
    """
    lower = np.linalg.cholesky(precision)
    upper = np.swapaxes(lower, -1, -2)
    with np.errstate(over="ignore", invalid="ignore"):
        whole = upper @ covariance @ lower
    is_finite = np.isfinite(whole).all(axis=(-2, -1), keepdims=True)
    vectors, sizes, others = np.linalg.svd(np.where(is_finite, whole, np.eye(whole.shape[-1])))
    values = sizes * np.einsum("...ij,...ji->...j", vectors, others)  # with the signs that an indefinite matrix has
    spread = np.where(is_finite & (values > 0)[..., np.newaxis, :], values[..., np.newaxis, :], np.nan) ** 0.25
    root = np.linalg.solve(upper, vectors * spread)
    return root @ np.swapaxes(root, -1, -2), lower @ (vectors / spread)


def metric_of(inverse: Any) -> Metric:
    """The metric of an inverse mass matrix `[d]` or `[d, d]`, as NumPy arrays of its dtype, computed in float64.

    >>> metric_of(np.array([4.0, 1.0])).factor.tolist()
    [0.5, 1.0]
    """
    exact = np.asarray(inverse, np.float64)
    factor = exact**-0.5 if exact.ndim == 1 else np.linalg.inv(np.linalg.cholesky(exact)).T
    return Metric(np.asarray(inverse), factor.astype(np.asarray(inverse).dtype))
