"""BlackJAX: `window_adaptation` of each chain, then NUTS with what it found; `vmap` over the chains of a device.

The variant "native" makes them one after another, each a loop of XLA's; "native dense" with a dense mass matrix.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import blackjax
import jax

from benchmarks.nuts.end_to_end.contestants.in_jax import prepared
from benchmarks.nuts.end_to_end.contestants.worker import Job, serve


def sampler(job: Job, log_density: Any, key: Any, starts: Any) -> Any:
    """Warm-up and draws of these chains."""
    adaptation = blackjax.window_adaptation(
        blackjax.nuts, log_density, "dense" not in job.variant, target_acceptance_rate=0.8
    )

    def one(key: Any, start: Any) -> Any:
        warming, drawing = jax.random.split(key)
        (state, parameters), _ = adaptation.run(warming, start, num_steps=job.warmup)
        kernel = blackjax.nuts(log_density, **parameters).step

        def step(state: Any, key: Any) -> Any:
            state, _ = kernel(key, state)
            return state, state.position

        return jax.lax.scan(step, state, jax.random.split(drawing, job.draws))[1]

    keys = jax.random.split(key, len(starts))
    return (
        jax.lax.map(lambda each: one(*each), (keys, starts)) if "native" in job.variant else jax.vmap(one)(keys, starts)
    )


if __name__ == "__main__":
    serve(partial(prepared, sampler))
