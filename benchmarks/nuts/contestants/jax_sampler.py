"""What NumPyro and BlackJAX have in common: a scan over trajectories of a kernel that is vectorised over chains.

The chains are shared among JAX's devices by `jax.pmap`, as NumPyro's documentation says for many chains on several
devices. There are as many devices as the process was given (`processes.Contestant.flags`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from benchmarks.nuts.contestants.in_jax import DENSITIES, Rows
from benchmarks.nuts.contestants.parts import joined, parted
from benchmarks.nuts.contestants.worker import Job, Outcome, Run

Transitions = Callable[[Callable[[Any], Any], Job, Any, Any], tuple[Any, Any]]
"""`(log_density, job, key, starts) -> (positions [trajectories, chains, size], leapfrogs [trajectories, chains])`

The chains are those of `starts`, a part of the job's.
"""


def one_by_one(chain: Callable[[Any, Any], tuple[Any, Any, Any]], key: Any, starts: Any) -> tuple[Any, Any]:
    """The trajectories of chains one after another: `chain(key, start)` has the arguments of `jax.lax.scan` for one."""

    def scanned(given: tuple[Any, Any]) -> Any:
        return jax.lax.scan(*chain(*given))[1]

    found = jax.lax.map(scanned, (jax.random.split(key, len(starts)), starts))
    return jax.tree.map(lambda array: array.swapaxes(0, 1), found)


def prepared(transitions: Transitions, job: Job) -> Run:
    """The job as one mapped function; a second one, compiled when it is asked for, counts rows."""
    density, data, rows = DENSITIES[job.target.family], job.target.data(), Rows()
    starts = parted(job.target.starts(job.chains), jax.local_device_count())

    def everything(counts: bool, key: Any, starts: Any, data: Any) -> tuple[Any, Any]:
        def of_data(q: Any) -> Any:
            return density(q, *data)

        return transitions(rows.counting(of_data) if counts else of_data, job, key, starts)

    devices = jax.local_devices()[: len(starts)]
    mapped = jax.pmap(everything, in_axes=(None, 0, 0, None), static_broadcasted_argnums=0, devices=devices)

    def run(seed: int, counted: bool) -> Outcome:
        # A call of the host for each gradient of each chain takes minutes, and no chain computes rows for another.
        counted = counted and job.variant != "native"
        before = rows.seen
        keys = jax.random.split(jax.random.key(seed), len(starts))
        positions, leapfrogs = jax.device_get(mapped(counted, keys, starts, data))
        jax.effects_barrier()
        draws, leapfrogs = (joined(np.moveaxis(part, 1, 2), job.chains) for part in (positions, leapfrogs))
        return Outcome(leapfrogs, rows.seen - before if counted else None, draws)

    return run
