"""The No-U-Turn sampler for one chain, as recursive as in the papers; `pcbatch.autobatch` makes it run many at once.

Hoffman and Gelman, "The No-U-Turn Sampler", JMLR 15, 2014 (the doubling of trajectories); Betancourt, "A Conceptual
Introduction to Hamiltonian Monte Carlo", arXiv:1701.02434, 2017, appendix A (multinomial sampling, progressive within a
tree and biased between doublings, and the U-turn criterion by sums of momenta); the checks across seams are Stan's.

Letters as in the papers: `q` position, `p` momentum, `g` gradient of the log density `lp` at q, `rho` sum of the
momenta of a stretch of trajectory. The weight of a point is exp(energy of the trajectory's start - its own energy),
kept as a logarithm.

Blocks are numbered as calls reach the functions, breadth first, and within a function from top to bottom. So the leaf,
at the end of `build_tree`, is the program's last block: a schedule that sweeps the blocks in order brings chains to it
from all others first, and under "earliest", which takes the first block at which a chain waits, gradients are computed
when no chain can do anything else, for as many chains at a time as possible.
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
    turning_anywhere,
)

Walk = tuple[Tensor, Tensor, Tensor, Tensor]
"""The integrator, `(q, p, g, tally)`: where it stands, and what it has summed over the trajectory's leaves so far
(acceptance probabilities, leaves, divergences). Every leaf moves it on, so it is handed in and handed back."""

Proposal = tuple[Tensor, Tensor, Tensor, Tensor]
"""`(q, g, lp, energy)` of a point that was drawn from a stretch of trajectory in proportion to the weights."""

Tree = tuple[Proposal, Tensor, Tensor, Tensor, Walk, Tensor]
"""A stretch of trajectory, `(proposal, log_weight, rho, p_first, walk, stop)`: its proposal and total weight, its sum
of momenta, its first momentum (in order of travel), the walk at its end, and whether it turned back or diverged
somewhere, in which case the trajectory ends and nothing of it may be proposed."""

STATISTICS = ("lp", "energy", "acceptance_rate", "tree_depth", "n_leaves", "diverging")
"""What the columns of a chain's statistics are."""


class Sampler(NamedTuple):
    """The batched functions of one sampler, from the recursion to the whole chain."""

    build_tree: Any
    """`(depth, node, walk, step, energy_0, key, data) -> Tree`"""
    transition: Any
    """`(q, g, lp, step_size, key, data) -> (Proposal, statistics [len(STATISTICS)])`: one trajectory."""
    chain: Any
    """`(key, q, step_size, first, draws, data) -> (positions [capacity, dimensions], statistics [capacity, ..])`:
    draws number `first` to `first + draws - 1` in the first `draws` rows, zeros below."""


def make_sampler(
    log_density: LogDensity,
    *,
    dimensions: int,
    dtype: tf.DType,
    capacity: int,
    max_tree_depth: int = 10,
    leapfrogs_per_leaf: int = 1,
) -> Sampler:
    """The sampler of `log_density`.

    Args:
        log_density: `(q, data) -> scalar`, for one position `[dimensions]`; differentiable TensorFlow code.
        dimensions: the length of a position.
        dtype: of positions, momenta and energies.
        capacity: how many draws one run of a chain has room for.
        max_tree_depth: how often a trajectory may double; it has at most `2**max_tree_depth - 1` new points (leaves).
        leapfrogs_per_leaf: integration steps from one point of a trajectory to the next.
    """

    @pcbatch.autobatch
    def build_tree(
        depth: Tensor, node: Tensor, walk: Walk, step: Tensor, energy_0: Tensor, key: Tensor, data: Any
    ) -> Tree:
        """The next 2^depth points from where `walk` stands, in the direction of the sign of `step`.

        `node` numbers the nodes of a tree as a heap does (root 1, children 2n and 2n + 1); with the trajectory's `key`
        it determines the node's random bits.
        """
        if depth > 0:
            proposal, log_weight, rho, p_first, walk, stop = build_tree(
                depth - 1, 2 * node, walk, step, energy_0, key, data
            )
            if stop:
                return proposal, log_weight, rho, p_first, walk, stop

            p_seam = walk[1]
            proposal_next, log_weight_next, rho_next, p_next, walk, stop = build_tree(
                depth - 1, 2 * node + 1, walk, step, energy_0, key, data
            )
            total = log_add(log_weight, log_weight_next)
            take_next = random.uniform(random.fold_in(key, node), (), dtype) < tf.exp(log_weight_next - total)
            proposal = choose(take_next, proposal_next, proposal)
            stop = stop | turning_anywhere(p_first, p_seam, p_next, walk[1], rho, rho_next)
            return proposal, total, rho + rho_next, p_first, walk, stop

        # A leaf: all gradients are computed here.
        q, p, g, tally = walk
        q, p, g, lp = leapfrog(log_density, leapfrogs_per_leaf, q, p, g, step, data)
        energy = energy_of(p, lp)
        log_weight = energy_0 - energy
        diverging = log_weight < -DIVERGENCE_THRESHOLD
        acceptance = tf.exp(tf.minimum(log_weight, 0))
        tally = tally + tf.stack([acceptance, tf.ones_like(lp), tf.cast(diverging, dtype)])
        return (q, g, lp, energy), log_weight, p, p, (q, p, g, tally), diverging

    @pcbatch.autobatch
    def transition(
        q: Tensor, g: Tensor, lp: Tensor, step_size: Tensor, key: Tensor, data: Any
    ) -> tuple[Proposal, Tensor]:
        """One trajectory from `q`, doubled until it turns, diverges or is `max_tree_depth` deep; a draw from it."""
        p = random.normal(random.fold_in(key, 0), (dimensions,), dtype)
        energy_0 = energy_of(p, lp)
        proposal = (q, g, lp, energy_0)
        log_weight = tf.zeros_like(lp)
        rho = p
        here = (q, p, g)  # the end of the trajectory that grows next
        there = (q, p, g)  # its other end
        step = step_size
        tally = tf.zeros((3,), dtype)
        depth = 0
        stop = False
        while depth < max_tree_depth and not stop:
            tree_key = random.fold_in(key, depth + 1)
            uniform = random.uniform(random.fold_in(tree_key, 0), (2,), dtype)
            turn_round = uniform[0] < 0.5
            here, there = choose(turn_round, (there, here), (here, there))
            step = choose(turn_round, -step, step)

            q, p_seam, g = here
            proposal_next, log_weight_next, rho_next, p_next, walk, stop = build_tree(
                depth, 1, (q, p_seam, g, tally), step, energy_0, tree_key, data
            )
            q, p, g, tally = walk
            here = (q, p, g)
            if not stop:
                proposal = choose(uniform[1] < tf.exp(log_weight_next - log_weight), proposal_next, proposal)
                stop = turning_anywhere(there[1], p_seam, p_next, p, rho, rho_next)
                log_weight = log_add(log_weight, log_weight_next)
                rho = rho + rho_next
                depth = depth + 1

        _, _, lp, energy = proposal
        acceptance, leaves, divergences = tf.unstack(tally)
        diverging = tf.cast(divergences > 0, dtype)
        return proposal, tf.stack([lp, energy, acceptance / leaves, tf.cast(depth, dtype), leaves, diverging])

    @pcbatch.autobatch
    def initial_point(q: Tensor, key: Tensor, data: Any) -> Proposal:
        """`q` with its log density and gradient: a leaf whose step has length 0 is where the walk stands."""
        nothing = tf.zeros((), dtype)
        at_rest = (q, tf.zeros_like(q), tf.zeros_like(q), tf.zeros((3,), dtype))
        tree = build_tree(0, 1, at_rest, nothing, nothing, key, data)
        return tree[0]

    # A chain calls a transition, that the root of a tree, and the root has max_tree_depth - 1 levels below it.
    @pcbatch.autobatch(in_axes=(0, 0, None, None, None, None), max_depth=max_tree_depth + 1)
    def chain(
        key: Tensor, q: Tensor, step_size: Tensor, first: Tensor, draws: Tensor, data: Any
    ) -> tuple[Tensor, Tensor]:
        """A stretch of `draws` draws of the chain that stands at `q`, draw number `first` being the next."""
        q, g, lp, _ = initial_point(q, key, data)
        finite = tf.math.is_finite(lp)
        assert finite, "the log density is not finite at the initial position"

        positions = tf.zeros((capacity, dimensions), dtype)
        statistics = tf.zeros((capacity, len(STATISTICS)), dtype)
        for draw in range(draws):
            proposal, row = transition(q, g, lp, step_size, random.fold_in(key, first + draw), data)
            q, g, lp, _ = proposal
            positions[draw] = q
            statistics[draw] = row
        return positions, statistics

    return Sampler(build_tree, transition, chain)
