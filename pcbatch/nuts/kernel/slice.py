"""The No-U-Turn sampler as it was in 2014: Hoffman and Gelman's algorithm 6, slice sampling along the trajectory.

"The No-U-Turn Sampler", JMLR 15, 2014. The paper's letters: `u` the height of the slice, here `log_u`; `n` how many
points of a tree are inside the slice; `s` whether to go on, here `stop`; `alpha` and `n_alpha` the sum of acceptance
probabilities and the number of leaves, here in `tally`; theta is `q` and r is `p`.

Two ways of writing differ from the paper, not what is computed. Trees are given by their ends in the order of travel,
`q_first` and where the walk stands, and the sign of `step` is the direction v. And a momentum may have another mass
matrix than the unit matrix: the criterion `(q_plus - q_minus) . p >= 0` is the same for all.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pcbatch import random
from pcbatch.api import autobatch
from pcbatch.function.hints import sync
from pcbatch.nuts.kernel.algorithm import Kernel, Proposal, statistics_of
from pcbatch.nuts.kernel.dynamics import (
    DIVERGENCE_THRESHOLD,
    LogDensity,
    Tensor,
    choose,
    energy_of,
    leapfrog,
    log_weight_of,
)
from pcbatch.nuts.kernel.metrics import Metric, momentum

Walk = tuple[Tensor, Tensor, Tensor, Tensor]
"""The integrator, `(q, p, g, tally)`: where it stands, and what it has summed over the trajectory's leaves so far
(acceptance probabilities, leaves, divergences)."""

End = tuple[Tensor, Tensor]
"""`(q, p)` at the end of a trajectory."""

SliceTree = tuple[Proposal, Tensor, End, Walk, Tensor]
"""`(proposal, n, first, walk, stop)`: a draw from the tree's points inside the slice and their number, the tree's first
point, the walk at its last, and whether it turned back or left the slice by far somewhere."""


def slice_sampler(
    log_density: LogDensity,
    *,
    dimensions: int,
    dtype: tf.DType,
    max_tree_depth: int,
    leapfrogs_per_leaf: int,
    end_weight: float = 1.0,
    waits: bool = True,
) -> Kernel:
    """Algorithm 6, apart from the step size's adaptation; arguments as those of `make_sampler`.

    Its criterion sums up nothing, so no end has a weight.
    """
    assert end_weight == 1.0

    @autobatch
    def build_tree(
        depth: Tensor,
        walk: Walk,
        step: Tensor,
        inverse_mass: Tensor,
        energy_0: Tensor,
        log_u: Tensor,
        key: Tensor,
        data: Any,
    ) -> SliceTree:
        """BuildTree: the next 2^depth points from where `walk` stands, in the direction of the sign of `step`.

        `log_u` is the slice's height above the density at the start, so minus an exponential variate.
        """
        if depth > 0:
            proposal, n, first, walk, stop = build_tree(depth - 1, walk, step, inverse_mass, energy_0, log_u, key, data)
            if stop:
                return proposal, n, first, walk, stop

            proposal_next, n_next, _, walk, stop = build_tree(
                depth - 1, walk, step, inverse_mass, energy_0, log_u, key, data
            )
            uniform = random.uniform(random.fold_in(key, node_number(depth, walk)), (), dtype)
            proposal = choose(uniform * (n + n_next) < n_next, proposal_next, proposal)
            stop = stop | turns(first, walk, step)
            return proposal, n + n_next, first, walk, stop

        if waits:  # a leaf: all gradients are computed here, for all chains at once
            sync()
        q, p, g, tally = walk
        q, p, g, lp = leapfrog(log_density, leapfrogs_per_leaf, inverse_mass, q, p, g, step, data)
        energy = energy_of(inverse_mass, p, lp)
        log_weight = log_weight_of(energy, energy_0)
        inside = tf.cast(log_u <= log_weight, dtype)
        diverging = log_weight <= log_u - DIVERGENCE_THRESHOLD
        acceptance = tf.exp(tf.minimum(log_weight, 0))
        tally = tally + tf.stack([acceptance, tf.ones_like(lp), tf.cast(diverging, dtype)])
        return (q, g, lp, energy), inside, (q, p), (q, p, g, tally), diverging

    @autobatch
    def transition(
        q: Tensor, g: Tensor, lp: Tensor, step_size: Tensor, metric: Metric, limit: Tensor, key: Tensor, data: Any
    ) -> tuple[Proposal, Tensor]:
        """One pass through the outer loop: a trajectory from `q`, at most `limit` deep, and a draw from it."""
        keys = random.split(key, 4)
        p = momentum(metric, random.normal(keys[0], (dimensions,), dtype))
        uniform = random.uniform(keys[1], (max_tree_depth, 2), dtype)
        log_u = -random.exponential(keys[3], (), dtype)
        energy_0 = energy_of(metric.inverse, p, lp)
        proposal = (q, g, lp, energy_0)
        n = tf.ones_like(lp)
        here = (q, p, g)  # the end of the trajectory that grows next
        there = (q, p, g)  # its other end
        step = step_size
        tally = tf.zeros((3,), dtype)
        depth = 0
        stop = False
        while depth < limit and not stop:
            direction, luck = tf.unstack(tf.gather(uniform, depth))
            turn_round = direction < 0.5
            here, there = choose(turn_round, (there, here), (here, there))
            step = choose(turn_round, -step, step)

            q, p, g = here
            proposal_next, n_next, _, walk, stop = build_tree(
                depth, (q, p, g, tally), step, metric.inverse, energy_0, log_u, keys[2], data
            )
            q, p, g, tally = walk
            here = (q, p, g)
            accepted = luck * n < n_next
            proposal = choose(tf.logical_not(stop) & accepted, proposal_next, proposal)
            depth = depth + tf.where(stop, 0, 1)
            stop = stop | turns((there[0], there[1]), walk, step)
            n = n + n_next

        return proposal, statistics_of(proposal, tally, depth, step_size)

    return Kernel(build_tree, transition)


def turns(first: End, walk: Walk, step: Tensor) -> Tensor:
    """Tell whether going on at one of a trajectory's ends would bring it nearer to the other."""
    q, p, _, _ = walk
    way = tf.sign(step) * (q - first[0])  # q_plus - q_minus
    straight = (tf.reduce_sum(way * first[1]) >= 0) & (tf.reduce_sum(way * p) >= 0)
    return tf.logical_not(straight)


def node_number(depth: Tensor, walk: Walk) -> Tensor:
    """A number for the tree that ends where `walk` stands: no other tree of the trajectory has its depth and its end.

    Its random bits follow from it and the trajectory's key.
    """
    return 64 * tf.cast(walk[3][1], tf.int64) + tf.cast(depth, tf.int64)
