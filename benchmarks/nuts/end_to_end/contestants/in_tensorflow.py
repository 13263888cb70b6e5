"""The posteriors in TensorFlow, for one example."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def breast_cancer(p: Any, data: Any) -> Any:
    """Weights N(0, 1)."""
    logits = tf.linalg.matvec(data["x"], p["beta"])
    return tf.reduce_sum(data["y"] * logits - tf.math.softplus(logits)) - 0.5 * tf.reduce_sum(p["beta"] ** 2)


def autoregression(p: Any, data: Any) -> Any:
    """Alpha and beta N(0, 10), sigma half-Cauchy(0, 2.5)."""
    prior = -0.5 * (p["alpha"] ** 2 + tf.reduce_sum(p["beta"] ** 2)) / 100.0 - tf.math.log1p((p["sigma"] / 2.5) ** 2)
    return prior + _fit(data["y"] - p["alpha"] - tf.linalg.matvec(data["x"], p["beta"]), p["sigma"])


def mesquite(p: Any, data: Any) -> Any:
    """Flat in beta and sigma."""
    return _fit(data["y"] - tf.linalg.matvec(data["x"], p["beta"]), p["sigma"])


def _fit(errors: Any, sigma: Any) -> Any:
    return -0.5 * tf.reduce_sum(errors**2) / sigma**2 - errors.shape[0] * tf.math.log(sigma)


DENSITIES = {"breast-cancer": breast_cancer, "arK": autoregression, "mesquite": mesquite}
"""`density(parameters, data)`, of parameters where they belong."""
