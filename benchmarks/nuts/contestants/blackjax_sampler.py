"""BlackJAX's NUTS, `vmap` over chains.

Rows are counted by a callback in a second run of a seed. "native": chains one after another, each a loop of XLA's,
whose rows are not counted.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import blackjax
import jax
import jax.numpy as jnp

from benchmarks.nuts.contestants.jax_sampler import one_by_one, prepared
from benchmarks.nuts.contestants.worker import Job, serve


def transitions(log_density: Any, job: Job, key: Any, starts: Any) -> tuple[Any, Any]:
    """All trajectories of these chains."""
    kernel = blackjax.nuts(log_density, job.target.step_size, jnp.ones(job.target.size), max_num_doublings=10)

    def alone(state: Any, key: Any) -> Any:
        state, info = kernel.step(key, state)
        return state, (state.position, info.num_integration_steps)

    if job.variant == "native":
        return one_by_one(
            lambda key, start: (alone, kernel.init(start), jax.random.split(key, job.trajectories)), key, starts
        )

    def step(state: Any, key: Any) -> Any:
        state, info = jax.vmap(kernel.step)(jax.random.split(key, len(starts)), state)
        return state, (state.position, info.num_integration_steps)

    _, found = jax.lax.scan(step, jax.vmap(kernel.init)(starts), jax.random.split(key, job.trajectories))
    return found


if __name__ == "__main__":
    serve(partial(prepared, transitions))
