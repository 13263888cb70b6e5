"""Where chains start, and with which keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch import UsageError, random
from pcbatch.nuts.bijectors import Transform
from pcbatch.nuts.parameters import layout_of, leaves, ravel
from pcbatch.nuts.settings import Settings

NOISE = {"jitter": 1.0, "uniform": 2.0}
"""Half the width of the uniform noise."""


def starting_points(
    settings: Settings, transform: Transform, initial: Any, initial_per_chain: Any
) -> tuple[tf.Tensor, tf.Tensor]:
    """Starting points before bijectors, `[chains, size]`, and the keys of the chains."""
    pairs = tf.vectorized_map(random.split, random.keys(settings.seed, settings.chains))
    start_keys, run_keys = pairs[:, 0], pairs[:, 1]
    if initial_per_chain is not None:
        expected = [(name, (settings.chains, *leaf.shape)) for name, leaf in leaves(transform.layout)]
        given = [(name, leaf.shape) for name, leaf in leaves(layout_of(initial_per_chain))]
        if given != expected:
            raise UsageError("PCB551", f"initial_per_chain must have the arrays {expected}, not {given}")
        return tf.constant(transform.inverse(ravel(initial_per_chain, batch=1)), settings.dtype), run_keys
    point = tf.constant(transform.inverse(ravel(initial)), settings.dtype)
    if settings.init == "exact":
        return tf.tile(point[tf.newaxis], (settings.chains, 1)), run_keys
    width, shape = NOISE[settings.init], point.shape.as_list()
    noise = tf.vectorized_map(lambda key: random.uniform(key, shape, settings.dtype, -width, width), start_keys)
    return (point if settings.init == "jitter" else tf.zeros_like(point)) + noise, run_keys


def starting_step_sizes(settings: Settings, step_size: float | None) -> np.ndarray:
    """`[chains]`; NaN where it is to be found."""
    if step_size is None:
        if not settings.adapts:
            raise UsageError("PCB551", "without a warm-up that adapts it, step_size must be given")
        return np.full(settings.chains, np.nan, settings.dtype)
    if not np.ndim(step_size) == 0 or not 0 < float(step_size) < np.inf:
        raise UsageError("PCB551", f"step_size must be a positive number, not {step_size!r}")
    return np.full(settings.chains, step_size, settings.dtype)


def starting_metric(settings: Settings, size: int, given: Any) -> np.ndarray:
    """The inverse mass matrix of each chain: `[chains, size]`, or `[chains, size, size]` if it is dense."""
    shape = (size,) if settings.metric == "diag" else (size, size)
    if given is None:
        matrix = np.ones(size) if settings.metric == "diag" else np.eye(size)
    else:
        matrix = np.asarray(given, float)
        if matrix.shape != shape:
            raise UsageError(
                "PCB551",
                f"inverse_mass_matrix must have the shape {list(shape)} with metric={settings.metric!r}, not "
                f"{list(matrix.shape)}",
            )
        scales = matrix if settings.metric == "diag" else np.linalg.eigvalsh((matrix + matrix.T) / 2)
        if not (np.isfinite(matrix).all() and (scales > 0).all() and (matrix.ndim == 1 or np.allclose(matrix, matrix.T))):
            raise UsageError("PCB551", "inverse_mass_matrix must be positive, and symmetric where it is a matrix")
    return np.tile(matrix.astype(settings.dtype), (settings.chains, *(1 for _ in shape)))
