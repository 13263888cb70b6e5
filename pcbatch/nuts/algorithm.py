"""The No-U-Turn sampler for one chain, as recursive as in the papers; `pcbatch.autobatch` makes it run many at once.

Hoffman and Gelman, "The No-U-Turn Sampler", JMLR 15, 2014 (the doubling of trajectories); Betancourt, "A Conceptual
Introduction to Hamiltonian Monte Carlo", arXiv:1701.02434, 2017, appendix A (multinomial sampling, progressive within a
tree and biased between doublings, and the U-turn criterion by sums of momenta); the checks across seams are Stan's.
`slice.py` has the sampler as it was in 2014, `chain.py` what makes a chain of trajectories.

Letters as in the papers: `q` position, `p` momentum, `g` gradient of the log density `lp` at q, `rho` sum of the
momenta of a stretch of trajectory. The weight of a point is exp(energy of the trajectory's start - its own energy),
kept as a logarithm.

All gradients are computed in one place, the leaf of `build_tree`, and there a chain waits for the others
(`pcbatch.sync`): until each of them stands there, too, or has made its last trajectory. So a gradient is computed for
as many chains at a time as there are left, wherever in their trajectories they stand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

import pcbatch
from pcbatch import random
from pcbatch.nuts.dynamics import (
    DIVERGENCE_THRESHOLD,
    LogDensity,
    Tensor,
    choose,
    energy_of,
    leapfrog,
    log_add,
    log_weight_of,
    turning_anywhere,
)
from pcbatch.nuts.metrics import Metric, momentum

Walk = tuple[Tensor, Tensor, Tensor, Tensor]
"""The integrator, `(q, p, g, tally)`: where it stands, and what it has summed over the trajectory's leaves so far
(acceptance probabilities, leaves, divergences). Every leaf moves it on, so it is handed in and handed back."""

Proposal = tuple[Tensor, Tensor, Tensor, Tensor]
"""`(q, g, lp, energy)` of a point that was drawn from a stretch of trajectory in proportion to the weights."""

Tree = tuple[Proposal, Tensor, Tensor, Tensor, Walk, Tensor]
"""A stretch of trajectory, `(proposal, log_weight, rho, p_first, walk, stop)`: its proposal and total weight, its sum
of momenta, its first momentum (in order of travel), the walk at its end, and whether it turned back or diverged
somewhere, in which case the trajectory ends and nothing of it may be proposed."""

STATISTICS = ("lp", "energy", "acceptance_rate", "tree_depth", "n_leaves", "diverging", "step_size")
"""What a trajectory's statistics are, in order."""


class Kernel(NamedTuple):
    """The batched functions that make one trajectory."""

    build_tree: Any
    """`(depth, walk, step, inverse_mass, energy_0, key, data) -> Tree` (slice.py has it differently)"""
    transition: Any
    """`(q, g, lp, step_size, metric, limit, key, data) -> (Proposal, statistics [len(STATISTICS)])`"""


def multinomial(
    log_density: LogDensity, *, dimensions: int, dtype: tf.DType, max_tree_depth: int, leapfrogs_per_leaf: int
) -> Kernel:
    """The sampler with points drawn by their weights; arguments as those of `chain.make_sampler`."""

    @pcbatch.autobatch
    def build_tree(
        depth: Tensor, walk: Walk, step: Tensor, inverse_mass: Tensor, energy_0: Tensor, key: Tensor, data: Any
    ) -> Tree:
        """The next 2^depth points from where `walk` stands, in the direction of the sign of `step`."""
        if depth > 0:
            proposal, log_weight, rho, p_first, walk, stop = build_tree(
                depth - 1, walk, step, inverse_mass, energy_0, key, data
            )
            if stop:
                return proposal, log_weight, rho, p_first, walk, stop

            p_seam = walk[1]
            proposal_next, log_weight_next, rho_next, p_next, walk, stop = build_tree(
                depth - 1, walk, step, inverse_mass, energy_0, key, data
            )
            total = log_add(log_weight, log_weight_next)
            uniform = random.uniform(random.fold_in(key, node_number(depth, walk)), (), dtype)
            proposal = choose(uniform < tf.exp(log_weight_next - total), proposal_next, proposal)
            stop = stop | turning_anywhere(inverse_mass, p_first, p_seam, p_next, walk[1], rho, rho_next)
            return proposal, total, rho + rho_next, p_first, walk, stop

        pcbatch.sync()  # a leaf: all gradients are computed here, for all chains at once
        q, p, g, tally = walk
        q, p, g, lp = leapfrog(log_density, leapfrogs_per_leaf, inverse_mass, q, p, g, step, data)
        energy = energy_of(inverse_mass, p, lp)
        log_weight = log_weight_of(energy, energy_0)
        diverging = log_weight < -DIVERGENCE_THRESHOLD
        acceptance = tf.exp(tf.minimum(log_weight, 0))
        tally = tally + tf.stack([acceptance, tf.ones_like(lp), tf.cast(diverging, dtype)])
        return (q, g, lp, energy), log_weight, p, p, (q, p, g, tally), diverging

    @pcbatch.autobatch
    def transition(
        q: Tensor, g: Tensor, lp: Tensor, step_size: Tensor, metric: Metric, limit: Tensor, key: Tensor, data: Any
    ) -> tuple[Proposal, Tensor]:
        """One trajectory from `q`, doubled until it turns, diverges or is `limit` deep; a draw from it."""
        keys = random.split(key, 3)
        p = momentum(metric, random.normal(keys[0], (dimensions,), dtype))
        uniform = random.uniform(keys[1], (max_tree_depth, 2), dtype)
        energy_0 = energy_of(metric.inverse, p, lp)
        proposal = (q, g, lp, energy_0)
        log_weight = tf.zeros_like(lp)
        rho = p
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

            q, p_seam, g = here
            proposal_next, log_weight_next, rho_next, p_next, walk, stop = build_tree(
                depth, (q, p_seam, g, tally), step, metric.inverse, energy_0, keys[2], data
            )
            q, p, g, tally = walk
            here = (q, p, g)
            accepted = luck < tf.exp(log_weight_next - log_weight)
            proposal = choose(tf.logical_not(stop) & accepted, proposal_next, proposal)
            depth = depth + tf.where(stop, 0, 1)
            stop = stop | turning_anywhere(metric.inverse, there[1], p_seam, p_next, p, rho, rho_next)
            log_weight = log_add(log_weight, log_weight_next)
            rho = rho + rho_next

        return proposal, statistics_of(proposal, tally, depth, step_size)

    return Kernel(build_tree, transition)


def node_number(depth: Tensor, walk: Walk) -> Tensor:
    """A number for the tree that ends where `walk` stands: no other tree of the trajectory has its depth and its end.

    Its random bits follow from it and the trajectory's key.
    """
    return 64 * tf.cast(walk[3][1], tf.int64) + tf.cast(depth, tf.int64)


def statistics_of(proposal: Proposal, tally: Tensor, depth: Tensor, step_size: Tensor) -> Tensor:
    """What `STATISTICS` names, of a trajectory that is complete: `[len(STATISTICS)]`."""
    _, _, lp, energy = proposal
    acceptance, leaves, divergences = tf.unstack(tally)
    diverging = tf.cast(divergences > 0, lp.dtype)
    return tf.stack([lp, energy, acceptance / leaves, tf.cast(depth, lp.dtype), leaves, diverging, step_size])
