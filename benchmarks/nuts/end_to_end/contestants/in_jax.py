"""The posteriors in JAX, for one example, in the coordinates in which chains move; and a run on all devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.nuts.contestants.parts import joined, parted
from benchmarks.nuts.end_to_end.contestants.worker import Job, Run


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


def _fit(errors: Any, sigma: Any) -> Any:
    return -0.5 * jnp.sum(errors**2) / sigma**2 - errors.shape[0] * jnp.log(sigma)


DENSITIES = {"breast-cancer": breast_cancer, "arK": autoregression, "mesquite": mesquite}
Sampler = Callable[[Job, Callable[[Any], Any], Any, Any], Any]
"""`(job, log_density, key, starts [chains, numbers]) -> draws [chains, draws, numbers]`, of a part of the chains."""


def prepared(sampler: Sampler, job: Job, data: dict[str, np.ndarray]) -> Run:
    """One function mapped over the devices (`jax.pmap`), which have equal parts of the chains."""
    model = job.model
    places = model.places()
    logs = [places[name] for name in model.positive]

    def of_data(data: Any, q: Any) -> Any:
        p = {name: jnp.exp(q[place]) if name in model.positive else q[place] for name, place in places.items()}
        return DENSITIES[job.posterior](p, data) + sum(jnp.sum(q[place]) for place in logs)  # the Jacobian's logarithm

    def everything(key: Any, starts: Any, data: Any) -> Any:
        draws = sampler(job, lambda q: of_data(data, q), key, starts)
        for place in logs:
            draws = draws.at[..., place].set(jnp.exp(draws[..., place]))
        return draws

    mapped = jax.pmap(everything, in_axes=(0, 0, None))

    def run(seed: int, starts: np.ndarray) -> np.ndarray:
        parts = parted(starts, jax.local_device_count())
        keys = jax.random.split(jax.random.key(seed), len(parts))
        return joined(jax.device_get(mapped(keys, parts, data)), len(starts))

    return run
