"""The sampler's batched program itself, for what `pcbatch.nuts.sample` does not offer: any machine, its counters.

`sample` fills chains up to a multiple of four, runs them in groups, and natively where that is faster. Here a program
runs as many lanes as there are chains, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.figures.paper import Sizes
from benchmarks.nuts.contestants.in_tensorflow import ONE
from pcbatch import random
from pcbatch.nuts.adaptation.adaptation import plan_of
from pcbatch.nuts.kernel.algorithm import STATISTICS
from pcbatch.nuts.running.chain import fresh_state, make_sampler
from pcbatch.nuts.running.density_programs import gradient_blocks, gradient_rows

LEAVES = STATISTICS.index("n_leaves")


@dataclass(frozen=True)
class Arguments:
    """Of the program: a key and a state of each chain, `[chains, ..]`, and what all chains share."""

    by_chain: tuple[Any, ...]
    shared: tuple[Any, ...]


@dataclass(frozen=True)
class Count:
    """Gradients of one run: those that chains needed, rows that were computed, and each trajectory's.

    `needed` has, beside those of the trajectories, the first leaf of each chain: it is where the chain starts.
    """

    needed: int
    rows: int
    gradients: np.ndarray
    """`[chains, trajectories]`"""


class Chains:
    """So many chains of such sizes, from the target's starting points, unit metric, fixed step size.

    `program` is the batched function of a chain in which nobody waits for anybody: what runs next is the machine's to
    say.
    """

    def __init__(self, sizes: Sizes, chains: int):
        target, trajectories, leapfrogs = sizes
        self.target, self.chains, self.trajectories, self.leapfrogs = target, chains, trajectories, leapfrogs
        one, self._data = ONE[target.family], target.data()
        self.program = make_sampler(
            one if self._data else lambda q, _: one(q),
            dimensions=target.size,
            dtype=tf.float32,
            capacity=trajectories,
            leapfrogs_per_leaf=leapfrogs,
            waits=False,
        ).chain

    def arguments(self, seed: int) -> Arguments:
        """What the program is called with."""
        state = fresh_state(
            self.target.starts(self.chains), np.ones(self.target.size, np.float32), self.target.step_size
        )
        data = tuple(map(tf.constant, self._data)) if self._data else tf.zeros((0,))
        first, thin, target_accept = np.int32(0), np.int32(1), np.float32(0.8)
        shared = (plan_of(()), first, np.int32(self.trajectories), thin, target_accept, data, False)
        return Arguments((random.keys(seed, self.chains), *state), shared)

    def counted(self, seed: int, masked: bool = False, **options: Any) -> Count:
        """One run under `options` of `pcbatch.autobatch`, by the machine's own counters.

        Where rows are to be `masked`, a row for every chain is counted for each run of a block, gathered or not.
        """
        arguments = self.arguments(seed)
        run = self.program.options(**options).run(*arguments.by_chain, *arguments.shared)
        needed, rows = gradient_rows(run)
        if masked:
            runs = np.asarray(run.outcome.executions)[[*gradient_blocks(run.program)]]
            rows = int(runs.sum()) * self.chains
        return Count(self.leapfrogs * needed, self.leapfrogs * rows, self.gradients(run.value[-1]))

    def gradients(self, statistics: Any) -> np.ndarray:
        """How many gradients each trajectory took, of what the program returns: `[chains, trajectories]`."""
        return self.leapfrogs * np.asarray(statistics)[..., LEAVES].astype(np.int64)
