"""The targets' densities in TensorFlow, for one example `[size]` or a batch `[chains, size]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from benchmarks.nuts.targets import CORRELATION, FUNNEL_SCALE


def gaussian(q: Any) -> Any:
    """AR(1) process of variance 1."""
    innovations = q[..., 1:] - CORRELATION * q[..., :-1]
    return -0.5 * (q[..., 0] ** 2 + tf.reduce_sum(innovations**2, axis=-1) / (1 - CORRELATION**2))


def funnel(q: Any) -> Any:
    """Neal's funnel."""
    log_variance, others = q[..., 0], q[..., 1:]
    width = float(others.shape[-1])
    spread = tf.reduce_sum(others**2, axis=-1) * tf.exp(-log_variance)
    return -0.5 * ((log_variance / FUNNEL_SCALE) ** 2 + spread + width * log_variance)


def logistic(q: Any, data: Any) -> Any:
    """Logistic regression of one example with weights N(0, 1)."""
    return _logistic(q, tf.linalg.matvec(data[0], q), data[1])


def logistic_batch(q: Any, data: Any) -> Any:
    """The same of a batch, as one product of matrices."""
    return _logistic(q, tf.matmul(q, data[0], transpose_b=True), data[1])


def _logistic(q: Any, logits: Any, y: Any) -> Any:
    fit = tf.reduce_sum(y * logits - tf.nn.softplus(logits), axis=-1)
    return fit - 0.5 * tf.reduce_sum(q**2, axis=-1)


ONE = {"AR(1) Gaussian": gaussian, "logistic regression": logistic, "Neal's funnel": funnel}
"""`density(q)`, or `density(q, data)` of a regression, for one example."""


def batched(family: str, data: Any) -> Callable[[Any], Any]:
    """`density(q)` of a batch `[chains, size]`."""
    return (lambda q: logistic_batch(q, data)) if family == "logistic regression" else ONE[family]


def value_and_gradient(density: Callable[[Any], Any], q: Any) -> tuple[Any, Any]:
    """Log densities `[chains]` and their gradients."""
    with tf.GradientTape() as tape:
        tape.watch(q)
        value = density(q)
    return value, tape.gradient(value, q)
