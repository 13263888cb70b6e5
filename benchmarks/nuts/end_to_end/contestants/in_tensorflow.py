"""The posteriors in TensorFlow, for one example."""

from __future__ import annotations

from typing import Any

import numpy as np
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


def schools(p: Any, data: Any) -> Any:
    """Effects around mu, which is N(0, 5), with the standard deviation tau, which is half-Cauchy(0, 5)."""
    prior = -0.5 * tf.reduce_sum(p["z"] ** 2) - 0.5 * (p["mu"] / 5.0) ** 2 - tf.math.log1p((p["tau"] / 5.0) ** 2)
    return prior - 0.5 * tf.reduce_sum(((data["y"] - p["mu"] - p["tau"] * p["z"]) / data["x"]) ** 2)


def kidscore(p: Any, data: Any) -> Any:
    """Flat in beta, sigma half-Cauchy(0, 2.5)."""
    return _fit(data["y"] - tf.linalg.matvec(data["x"], p["beta"]), p["sigma"]) - tf.math.log1p((p["sigma"] / 2.5) ** 2)


def garch(p: Any, data: Any) -> Any:
    """Beta1 is `share` of 1 - alpha1; the recurrence of the variances is summed, as a product with powers of beta1."""
    y, beta1 = data["y"], p["share"] * (1.0 - p["alpha1"])
    dtype = y.dtype.as_numpy_dtype
    steps = np.arange(y.shape[0])
    lags = steps[:, None] - 1 - steps[None, :]
    powers = tf.where(lags >= 0, tf.exp(np.maximum(lags, 0).astype(dtype) * tf.math.log(beta1)), 0.0)
    shocks = p["alpha0"] + p["alpha1"] * (y - p["mu"]) ** 2
    variances = tf.exp(steps.astype(dtype) * tf.math.log(beta1)) * data["x"][0] ** 2 + tf.linalg.matvec(powers, shocks)
    fit = -0.5 * tf.reduce_sum((y - p["mu"]) ** 2 / variances + tf.math.log(variances))
    return fit + tf.math.log1p(-p["alpha1"])


def process(p: Any, data: Any) -> Any:
    """Rho gamma(25, 4), alpha half-normal(0, 2), the noise's variance half-normal(0, 1)."""
    distances = data["x"][:, None] - data["x"][None, :]
    covariance = p["alpha"] ** 2 * tf.exp(-0.5 * (distances / p["rho"]) ** 2)
    root = tf.linalg.cholesky(covariance + p["sigma"] * tf.eye(data["y"].shape[0], dtype=data["y"].dtype))
    white = tf.linalg.triangular_solve(root, data["y"][:, None])
    fit = -0.5 * tf.reduce_sum(white**2) - tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root)))
    return fit + 24.0 * tf.math.log(p["rho"]) - 4.0 * p["rho"] - p["alpha"] ** 2 / 8.0 - 0.5 * p["sigma"] ** 2


def groups(p: Any, data: Any) -> Any:
    """All N(0, 5) or its positive half, but for z, which is N(0, 1)."""
    intercepts = p["mu"] + p["tau"] * p["z"]
    prior = -0.02 * (p["mu"] ** 2 + p["slope"] ** 2 + p["tau"] ** 2 + p["sigma"] ** 2)
    return (
        prior
        - 0.5 * tf.reduce_sum(p["z"] ** 2)
        + _fit(data["y"] - intercepts[:, None] - p["slope"] * data["x"], p["sigma"])
    )


def volatility(p: Any, data: Any) -> Any:
    """Log variances of an autoregression of z around mu, N(0, 5); phi uniform, sigma exponential(2)."""
    steps = np.arange(data["y"].shape[0])
    lags = steps[:, None] - steps[None, :]
    exponents = np.maximum(lags, 0).astype(data["y"].dtype.as_numpy_dtype)
    powers = tf.where(lags >= 0, tf.exp(exponents * tf.math.log(p["phi"])), 0.0)
    scales = tf.where(steps == 0, 1.0 / tf.sqrt(1.0 - p["phi"] ** 2), 1.0)
    h = p["mu"] + p["sigma"] * tf.linalg.matvec(powers, scales * p["z"])
    prior = -0.5 * tf.reduce_sum(p["z"] ** 2) - 0.02 * p["mu"] ** 2 - 2.0 * p["sigma"]
    return prior - 0.5 * tf.reduce_sum(data["y"] ** 2 * tf.exp(-h) + h)


def answers(p: Any, data: Any) -> Any:
    """Abilities N(0, 1), difficulties N(0, 3), slopes lognormal(0, 0.5)."""
    logits = p["slope"] * (p["ability"][:, None] - p["difficulty"])
    logs = tf.math.log(p["slope"])
    prior = -0.5 * tf.reduce_sum(p["ability"] ** 2) - tf.reduce_sum(p["difficulty"] ** 2) / 18.0
    return prior - tf.reduce_sum(2.0 * logs**2 + logs) + tf.reduce_sum(data["y"] * logits - tf.math.softplus(logits))


def counts(p: Any, data: Any) -> Any:
    """Beta N(0, 3), spread half-normal(0, 1), z N(0, 1)."""
    logs = tf.linalg.matvec(data["x"], p["beta"]) + p["spread"] * p["z"]
    prior = -0.5 * tf.reduce_sum(p["z"] ** 2) - tf.reduce_sum(p["beta"] ** 2) / 18.0 - 0.5 * p["spread"] ** 2
    return prior + tf.reduce_sum(data["y"] * logs - tf.exp(logs))


def _fit(errors: Any, sigma: Any) -> Any:
    return -0.5 * tf.reduce_sum(errors**2) / sigma**2 - float(errors.shape.num_elements()) * tf.math.log(sigma)


DENSITIES = {
    "breast-cancer": breast_cancer,
    "arK": autoregression,
    "mesquite": mesquite,
    "eight-schools": schools,
    "kidscore": kidscore,
    "garch": garch,
    "process": process,
    "groups": groups,
    "volatility": volatility,
    "answers": answers,
    "counts": counts,
}
"""`density(parameters, data)`, of parameters where they belong."""
