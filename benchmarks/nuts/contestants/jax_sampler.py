"""What NumPyro and BlackJAX have in common: a scan over trajectories of a kernel that is vectorised over chains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from benchmarks.nuts.contestants.in_jax import DENSITIES, Rows
from benchmarks.nuts.contestants.worker import Job, Outcome, Run

Transitions = Callable[[Callable[[Any], Any], Job, Any, Any], tuple[Any, Any]]
"""`(log_density, job, key, starts) -> (positions [trajectories, chains, size], leapfrogs [trajectories, chains])`"""


def prepared(transitions: Transitions, job: Job) -> Run:
    """The job as one jitted function; a second one, compiled when it is asked for, counts rows."""
    density, data, starts, rows = DENSITIES[job.target.family], job.target.data(), job.target.starts(job.chains), Rows()

    def everything(counts: bool, seed: Any, starts: Any, data: Any) -> tuple[Any, Any]:
        def of_data(q: Any) -> Any:
            return density(q, *data)

        return transitions(rows.counting(of_data) if counts else of_data, job, jax.random.key(seed), starts)

    jitted = jax.jit(everything, static_argnums=0)

    def run(seed: int, counted: bool) -> Outcome:
        before = rows.seen
        _, leapfrogs = jax.device_get(jitted(counted, seed, starts, data))
        jax.effects_barrier()
        return Outcome(np.asarray(leapfrogs).T, rows.seen - before if counted else None)

    return run
