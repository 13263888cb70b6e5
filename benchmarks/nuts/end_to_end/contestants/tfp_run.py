"""`tfp.experimental.mcmc.windowed_adaptive_nuts` under XLA, one part of the chains for each core, in threads.

It takes a joint distribution. Where a prior is flat, a normal one of scale 10^6 stands for it: in float32 that is no
difference. Parts learn their own metrics, each from all of its chains.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from benchmarks.environments import CORES
from benchmarks.nuts.contestants.parts import joined, parted
from benchmarks.nuts.end_to_end.contestants.worker import Job, Run, serve

tfd = tfp.distributions
FLAT = 1e6


def _product(x: Any, beta: Any) -> Any:
    """Of all chains as one product of matrices."""
    return tf.einsum("ij,...j->...i", x, beta)


def _normal(mean: Any, sigma: Any) -> Any:
    return tfd.Independent(tfd.Normal(mean, sigma[..., tf.newaxis]), 1)


def breast_cancer(x: Any) -> Any:
    """Weights N(0, 1)."""
    return {
        "beta": tfd.Sample(tfd.Normal(0.0, 1.0), x.shape[1]),
        "y": lambda beta: tfd.Independent(tfd.Bernoulli(logits=_product(x, beta)), 1),
    }


def autoregression(x: Any) -> Any:
    """Alpha and beta N(0, 10), sigma half-Cauchy(0, 2.5)."""
    return {
        "alpha": tfd.Normal(0.0, 10.0),
        "beta": tfd.Sample(tfd.Normal(0.0, 10.0), x.shape[1]),
        "sigma": tfd.HalfCauchy(0.0, 2.5),
        "y": lambda sigma, beta, alpha: _normal(alpha[..., tf.newaxis] + _product(x, beta), sigma),
    }


def mesquite(x: Any) -> Any:
    """Flat in beta and sigma."""
    return {
        "beta": tfd.Sample(tfd.Normal(0.0, FLAT), x.shape[1]),
        "sigma": tfd.HalfNormal(FLAT),
        "y": lambda sigma, beta: _normal(_product(x, beta), sigma),
    }


MODELS = {"breast-cancer": breast_cancer, "arK": autoregression, "mesquite": mesquite}


def prepare(job: Job, data: dict[str, np.ndarray]) -> Run:
    """One compiled function that warms a part up and draws."""
    model = tfd.JointDistributionNamed(MODELS[job.posterior](tf.constant(data["x"])))

    @tf.function(jit_compile=True)
    def everything(points: Any, seed: tf.Tensor) -> tf.Tensor:
        draws, _ = tfp.experimental.mcmc.windowed_adaptive_nuts(
            job.draws,
            model,
            n_chains=[next(iter(points.values())).shape[0]],
            num_adaptation_steps=job.warmup,
            current_state=points,
            dual_averaging_kwargs={"target_accept_prob": 0.8},
            seed=seed,
            y=data["y"],
        )
        drawn = [draws[name] for name in job.model.sizes]
        return tf.concat([each if each.shape.rank == 3 else each[..., tf.newaxis] for each in drawn], axis=2)

    def run(seed: int, starts: np.ndarray) -> np.ndarray:
        parts = parted(starts, CORES if job.variant == "cores" else 1)
        points = [{name: tf.constant(p) for name, p in job.model.constrained(part).items()} for part in parts]
        seeds = [tf.constant([seed, number]) for number in range(len(parts))]
        with ThreadPoolExecutor(len(parts)) as threads:
            found = list(threads.map(lambda *of_part: everything(*of_part).numpy(), points, seeds))
        return joined(np.stack(found).swapaxes(1, 2), len(starts))

    return run


if __name__ == "__main__":
    serve(prepare)
