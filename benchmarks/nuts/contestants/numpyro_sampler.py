"""NumPyro's NUTS, vectorised over chains.

Rows are counted by a callback in a second run of a seed. "native": chains one after another, each a loop of XLA's,
whose rows are not counted.

Its kernel is driven by a scan, as its `MCMC` does, but without the compilation that each `MCMC.run` may repeat.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from numpyro.infer import NUTS

from benchmarks.nuts.contestants.jax_sampler import one_by_one, prepared
from benchmarks.nuts.contestants.worker import Job, serve


def transitions(log_density: Any, job: Job, key: Any, starts: Any) -> tuple[Any, Any]:
    """All trajectories of these chains."""
    kernel = NUTS(
        potential_fn=lambda q: -log_density(q),
        step_size=job.target.step_size,
        adapt_step_size=False,
        adapt_mass_matrix=False,
        max_tree_depth=10,
    )

    def step(state: Any, _: Any) -> Any:
        state = kernel.sample(state, (), {})
        return state, (state.z, state.num_steps)

    if job.variant == "native":
        steps = jnp.arange(job.trajectories)
        return one_by_one(lambda key, start: (step, kernel.init(key, 0, start), steps), key, starts)
    state = kernel.init(jax.random.split(key, len(starts)), 0, starts)  # a batch of keys makes the kernel vectorised
    _, found = jax.lax.scan(step, state, None, length=job.trajectories)
    return found


if __name__ == "__main__":
    serve(partial(prepared, transitions))
