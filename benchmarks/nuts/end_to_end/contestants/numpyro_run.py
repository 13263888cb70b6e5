"""NumPyro: its `MCMC`, vectorised over the chains of a device and mapped over devices, as its documentation shows.

The variant "native" makes chains one after another, each a loop of XLA's; "native dense" with a dense mass matrix.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
from numpyro.infer import MCMC, NUTS

from benchmarks.nuts.end_to_end.contestants.in_jax import prepared
from benchmarks.nuts.end_to_end.contestants.worker import Job, serve


def sampler(job: Job, log_density: Any, key: Any, starts: Any) -> Any:
    """Warm-up and draws of these chains."""
    if "native" in job.variant:
        keys = jax.random.split(key, len(starts))
        return jax.lax.map(
            lambda each: _drawn(job, log_density, each[0], each[1][jax.numpy.newaxis])[0], (keys, starts)
        )
    return _drawn(job, log_density, key, starts)


def _drawn(job: Job, log_density: Any, key: Any, starts: Any) -> Any:
    chains = len(starts)
    run = MCMC(
        NUTS(potential_fn=lambda q: -log_density(q), target_accept_prob=0.8, dense_mass="dense" in job.variant),
        num_warmup=job.warmup,
        num_samples=job.draws,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    run.run(key, init_params=starts if chains > 1 else starts[0])
    return run.get_samples(group_by_chain=True)


if __name__ == "__main__":
    serve(partial(prepared, sampler))
