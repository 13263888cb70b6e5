"""The posteriors in JAX, for one example, in the coordinates in which chains move; and a run on all devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.nuts.contestants.parts import joined, parted
from benchmarks.nuts.end_to_end.contestants.worker import Job, Run
from benchmarks.nuts.end_to_end.posteriors import Posterior


def breast_cancer(p: Any, data: Any) -> Any:
    """Weights N(0, 1)."""
    logits = data["x"] @ p["beta"]
    return jnp.sum(data["y"] * logits - jax.nn.softplus(logits)) - 0.5 * jnp.sum(p["beta"] ** 2)


def autoregression(p: Any, data: Any) -> Any:
    """Alpha and beta N(0, 10), sigma half-Cauchy(0, 2.5)."""
    prior = -0.5 * (p["alpha"] ** 2 + jnp.sum(p["beta"] ** 2)) / 100.0 - jnp.log1p((p["sigma"] / 2.5) ** 2)
    return prior + _fit(data["y"] - p["alpha"] - data["x"] @ p["beta"], p["sigma"])


def mesquite(p: Any, data: Any) -> Any:
    """Flat in beta and sigma."""
    return _fit(data["y"] - data["x"] @ p["beta"], p["sigma"])


def schools(p: Any, data: Any) -> Any:
    """Effects around mu, which is N(0, 5), with the standard deviation tau, which is half-Cauchy(0, 5)."""
    prior = -0.5 * jnp.sum(p["z"] ** 2) - 0.5 * (p["mu"] / 5.0) ** 2 - jnp.log1p((p["tau"] / 5.0) ** 2)
    return prior - 0.5 * jnp.sum(((data["y"] - p["mu"] - p["tau"] * p["z"]) / data["x"]) ** 2)


def kidscore(p: Any, data: Any) -> Any:
    """Flat in beta, sigma half-Cauchy(0, 2.5)."""
    return _fit(data["y"] - data["x"] @ p["beta"], p["sigma"]) - jnp.log1p((p["sigma"] / 2.5) ** 2)


def garch(p: Any, data: Any) -> Any:
    """Beta1 is `share` of 1 - alpha1; the recurrence of the variances is summed, as a product with powers of beta1."""
    y, beta1 = data["y"], p["share"] * (1.0 - p["alpha1"])
    steps = np.arange(y.shape[0])
    lags = steps[:, None] - 1 - steps[None, :]
    powers = jnp.where(lags >= 0, jnp.exp(np.maximum(lags, 0) * jnp.log(beta1)), 0.0)
    shocks = p["alpha0"] + p["alpha1"] * (y - p["mu"]) ** 2
    variances = jnp.exp(steps * jnp.log(beta1)) * data["x"][0] ** 2 + powers @ shocks
    fit = -0.5 * jnp.sum((y - p["mu"]) ** 2 / variances + jnp.log(variances))
    return fit + jnp.log1p(-p["alpha1"])


def process(p: Any, data: Any) -> Any:
    """Rho gamma(25, 4), alpha half-normal(0, 2), the noise's variance half-normal(0, 1)."""
    distances = data["x"][:, None] - data["x"][None, :]
    covariance = p["alpha"] ** 2 * jnp.exp(-0.5 * (distances / p["rho"]) ** 2)
    root = jnp.linalg.cholesky(covariance + p["sigma"] * jnp.eye(data["y"].shape[0]))
    white = jax.scipy.linalg.solve_triangular(root, data["y"], lower=True)
    fit = -0.5 * jnp.sum(white**2) - jnp.sum(jnp.log(jnp.diag(root)))
    return fit + 24.0 * jnp.log(p["rho"]) - 4.0 * p["rho"] - p["alpha"] ** 2 / 8.0 - 0.5 * p["sigma"] ** 2


def groups(p: Any, data: Any) -> Any:
    """All N(0, 5) or its positive half, but for z, which is N(0, 1)."""
    intercepts = p["mu"] + p["tau"] * p["z"]
    prior = -0.5 * jnp.sum(p["z"] ** 2) - 0.02 * (p["mu"] ** 2 + p["slope"] ** 2 + p["tau"] ** 2 + p["sigma"] ** 2)
    return prior + _fit(data["y"] - intercepts[:, None] - p["slope"] * data["x"], p["sigma"])


def volatility(p: Any, data: Any) -> Any:
    """Log variances of an autoregression of z around mu, N(0, 5); phi uniform, sigma exponential(2)."""
    steps = np.arange(data["y"].shape[0])
    lags = steps[:, None] - steps[None, :]
    powers = jnp.where(lags >= 0, jnp.exp(np.maximum(lags, 0) * jnp.log(p["phi"])), 0.0)
    scales = jnp.where(steps == 0, 1.0 / jnp.sqrt(1.0 - p["phi"] ** 2), 1.0)
    h = p["mu"] + p["sigma"] * (powers @ (scales * p["z"]))
    prior = -0.5 * jnp.sum(p["z"] ** 2) - 0.02 * p["mu"] ** 2 - 2.0 * p["sigma"]
    return prior - 0.5 * jnp.sum(data["y"] ** 2 * jnp.exp(-h) + h)


def answers(p: Any, data: Any) -> Any:
    """Abilities N(0, 1), difficulties N(0, 3), slopes lognormal(0, 0.5)."""
    logits = p["slope"] * (p["ability"][:, None] - p["difficulty"])
    logs = jnp.log(p["slope"])
    prior = -0.5 * jnp.sum(p["ability"] ** 2) - jnp.sum(p["difficulty"] ** 2) / 18.0 - jnp.sum(2.0 * logs**2 + logs)
    return prior + jnp.sum(data["y"] * logits - jax.nn.softplus(logits))


def counts(p: Any, data: Any) -> Any:
    """Beta N(0, 3), spread half-normal(0, 1), z N(0, 1)."""
    logs = data["x"] @ p["beta"] + p["spread"] * p["z"]
    prior = -0.5 * jnp.sum(p["z"] ** 2) - jnp.sum(p["beta"] ** 2) / 18.0 - 0.5 * p["spread"] ** 2
    return prior + jnp.sum(data["y"] * logs - jnp.exp(logs))


def _fit(errors: Any, sigma: Any) -> Any:
    return -0.5 * jnp.sum(errors**2) / sigma**2 - np.size(errors) * jnp.log(sigma)


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
Sampler = Callable[[Job, Callable[[Any], Any], Any, Any], Any]
"""`(job, log_density, key, starts [chains, numbers]) -> draws [chains, draws, numbers]`, of a part of the chains."""


def of_vector(model: Posterior, posterior: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]:
    """`(data, q) -> log density` in the coordinates in which chains move, Jacobians included; and draws from these."""
    places = model.places()
    logs, logits = ([places[name] for name in names] for names in (model.positive, model.unit))

    def forward(q: Any) -> Any:
        q = jnp.asarray(q)
        for place in logs:
            q = q.at[..., place].set(jnp.exp(q[..., place]))
        for place in logits:
            q = q.at[..., place].set(jax.nn.sigmoid(q[..., place]))
        return q

    def density(data: Any, q: Any) -> Any:
        x = forward(q)
        jacobian = sum(jnp.sum(q[place]) for place in logs)
        jacobian -= sum(jnp.sum(jax.nn.softplus(q[place]) + jax.nn.softplus(-q[place])) for place in logits)
        return DENSITIES[posterior]({name: x[place] for name, place in places.items()}, data) + jacobian

    return density, forward


def prepared(sampler: Sampler, job: Job, data: dict[str, np.ndarray]) -> Run:
    """One function mapped over the devices (`jax.pmap`), which have equal parts of the chains."""
    density, forward = of_vector(job.model, job.posterior)

    def everything(key: Any, starts: Any, data: Any) -> Any:
        return forward(sampler(job, partial(density, data), key, starts))

    mapped = jax.pmap(everything, in_axes=(0, 0, None))

    def run(seed: int, starts: np.ndarray) -> np.ndarray:
        parts = parted(starts, jax.local_device_count())
        keys = jax.random.split(jax.random.key(seed), len(parts))
        return joined(jax.device_get(mapped(keys, parts, data)), len(starts))

    return run
