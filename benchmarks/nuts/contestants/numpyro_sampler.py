"""NumPyro's NUTS, vectorised over chains. Rows are counted by a callback in a second run of the same seed.

Its kernel is driven by a scan, as its `MCMC` does, but without the compilation that each `MCMC.run` may repeat.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
from numpyro.infer import NUTS

from benchmarks.nuts.contestants.jax_sampler import prepared
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
    state = kernel.init(jax.random.split(key, len(starts)), 0, starts)  # a batch of keys makes the kernel vectorised

    def step(state: Any, _: None) -> Any:
        state = kernel.sample(state, (), {})
        return state, (state.z, state.num_steps)

    _, found = jax.lax.scan(step, state, None, length=job.trajectories)
    return found


if __name__ == "__main__":
    serve(partial(prepared, transitions))
