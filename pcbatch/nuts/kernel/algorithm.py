"""The No-U-Turn sampler for one chain, as recursive as in the papers; `pcbatch.autobatch` makes it run many at once.

Hoffman and Gelman, "The No-U-Turn Sampler", JMLR 15, 2014 (the doubling of trajectories); Betancourt, "A Conceptual
Introduction to Hamiltonian Monte Carlo", arXiv:1701.02434, 2017, appendix A (multinomial sampling, progressive within a
tree and biased between doublings, and the U-turn criterion by sums of momenta); the checks across seams are Stan's.
`slice.py` has the sampler as it was in 2014, `running/chain.py` what makes a chain of trajectories.

Letters as in the papers: `q` position, `p` momentum, `g` gradient of the log density `lp` at q. A point's weight is
exp(energy of the trajectory's start - its own energy), kept as a logarithm. A doubling's point is drawn leaf by leaf:
each takes the place of the one before with its share of the weight so far, which proposes every point in proportion to
its weight (Chao, "A general purpose unequal probability sampling plan", Biometrika 69, 1982), as drawing between
sub-trees does, and leaves less to remember. Vectors that move together are rows of one array (`u_turn.py` says why).

All gradients are computed in one place, the leaf of `build_tree`, and there chains meet, wherever in their trajectories
they stand. Where gradients are expensive (`waits`) a chain waits there for the others (`pcbatch.sync`), until each of
them stands there, too, or has made its last trajectory: so a gradient is computed for as many chains at a time as there
are left. Where they are cheap, to wait for the chain that has most sub-trees to close costs more than it saves, and the
schedule decides.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import tensorflow as tf

from pcbatch import random
from pcbatch.api import autobatch
from pcbatch.function.hints import sync
from pcbatch.nuts.kernel.dynamics import (
    DIVERGENCE_THRESHOLD,
    LogDensity,
    Tensor,
    choose,
    energy_of,
    leapfrog,
    log_add,
    log_weight_of,
    outweighs,
)
from pcbatch.nuts.kernel.metrics import Metric, momentum
from pcbatch.nuts.kernel.u_turn import LAST, joined, left_out, momenta_at, reversed_if, turning_by

Proposal = tuple[Tensor, Tensor, Tensor, Tensor]
"""`(q, g, lp, energy)` of a point of the trajectory."""


class Walk(NamedTuple):
    """The integrator on its way along a trajectory, and what it gathers; every leaf moves it on."""

    place: Tensor
    """Its position, `[2, d]`: `q` and `g`, which always move together."""
    momenta: Tensor
    """The vectors of the tree that ends here, `[3, d]` as in `u_turn.py`; the last is the integrator's `p`."""
    proposal: tuple[Tensor, Tensor, Tensor]
    """A draw from the leaves of this doubling so far, in proportion to their weights: its place, `lp` and energy."""
    log_weight: Tensor
    """The total weight of these leaves."""
    tally: Tensor
    """Sums over all leaves of the trajectory so far: acceptance probabilities, leaves, divergences."""
    stop: Tensor
    """True if it turned back or diverged somewhere: then the trajectory ends and nothing of it may be proposed."""


STATISTICS = ("lp", "energy", "acceptance_rate", "tree_depth", "n_leaves", "diverging", "step_size")
"""The names of a trajectory's statistics, in order."""


class Kernel(NamedTuple):
    """The batched functions that make one trajectory."""

    build_tree: Any
    """`(depth, walk, step, inverse_mass, energy_0, key, data) -> Walk` (slice.py has it differently)"""
    transition: Any
    """`(q, g, lp, step_size, metric, limit, key, data) -> (Proposal, statistics [len(STATISTICS)])`"""


def multinomial(
    log_density: LogDensity,
    *,
    dimensions: int,
    dtype: tf.DType,
    max_tree_depth: int,
    leapfrogs_per_leaf: int,
    end_weight: float = 1.0,
    waits: bool = True,
) -> Kernel:
    """The sampler with points drawn by their weights; arguments as those of `make_sampler`."""
    turning = partial(turning_by, left_out(end_weight, leapfrogs_per_leaf))

    @autobatch
    def build_tree(
        depth: Tensor, walk: Walk, step: Tensor, inverse_mass: Tensor, energy_0: Tensor, key: Tensor, data: Any
    ) -> Walk:
        """The walk behind the next 2^depth points, in the direction of the sign of `step`."""
        if depth > 0:
            walk = build_tree(depth - 1, walk, step, inverse_mass, energy_0, key, data)
            if walk.stop:
                return walk

            before = walk.momenta
            walk = build_tree(depth - 1, walk, step, inverse_mass, energy_0, key, data)
            stop = walk.stop | turning(inverse_mass, before, walk.momenta)
            return walk._replace(momenta=joined(before, walk.momenta), stop=stop)

        if waits:  # a leaf: all gradients are computed here, for all chains at once
            sync()
        q, g = tf.unstack(walk.place)
        q, p, g, lp = leapfrog(log_density, leapfrogs_per_leaf, inverse_mass, q, walk.momenta[LAST], g, step, data)
        place = tf.stack([q, g])
        energy = energy_of(inverse_mass, p, lp)
        log_weight = log_weight_of(energy, energy_0)
        total = log_add(walk.log_weight, log_weight)
        uniform = random.uniform(random.fold_in(key, tf.cast(walk.tally[1], tf.int32)), (), dtype)
        proposal = choose(outweighs(uniform, walk.log_weight, log_weight), (place, lp, energy), walk.proposal)
        diverging = log_weight < -DIVERGENCE_THRESHOLD
        acceptance = tf.exp(tf.minimum(log_weight, 0))
        tally = walk.tally + tf.stack([acceptance, tf.ones_like(lp), tf.cast(diverging, dtype)])
        return Walk(place, momenta_at(p), proposal, total, tally, stop=diverging)

    @autobatch
    def transition(
        q: Tensor, g: Tensor, lp: Tensor, step_size: Tensor, metric: Metric, limit: Tensor, key: Tensor, data: Any
    ) -> tuple[Proposal, Tensor]:
        """One trajectory from `q`, doubled until it turns, diverges or is `limit` deep; a draw from it."""
        keys = random.split(key, 3)
        p = momentum(metric, random.normal(keys[0], (dimensions,), dtype))
        uniform = random.uniform(keys[1], (max_tree_depth, 2), dtype)
        energy_0 = energy_of(metric.inverse, p, lp)
        place = tf.stack([q, g])
        proposal = (place, lp, energy_0)
        log_weight = tf.zeros_like(lp)
        momenta = momenta_at(p)  # of the whole trajectory; its last point is where the walk stands
        walk = Walk(place, momenta, proposal, log_weight, tf.zeros((3,), dtype), stop=tf.constant(False))
        other_end = place
        step = step_size
        depth = 0
        stop = False
        while depth < limit and not stop:
            direction, luck = tf.unstack(tf.gather(uniform, depth))
            turn_round = direction < 0.5
            place, other_end = choose(turn_round, (other_end, walk.place), (walk.place, other_end))
            momenta = reversed_if(turn_round, momenta)
            step = choose(turn_round, -step, step)

            nothing = tf.fill([], tf.constant(float("-inf"), dtype))
            walk = walk._replace(place=place, momenta=momenta, log_weight=nothing)
            walk = build_tree(depth, walk, step, metric.inverse, energy_0, keys[2], data)
            accepted = luck < tf.exp(walk.log_weight - log_weight)
            proposal = choose(tf.logical_not(walk.stop) & accepted, walk.proposal, proposal)
            depth = depth + tf.where(walk.stop, 0, 1)
            stop = walk.stop | turning(metric.inverse, momenta, walk.momenta)
            log_weight = log_add(log_weight, walk.log_weight)
            momenta = joined(momenta, walk.momenta)

        place, lp, energy = proposal
        q, g = tf.unstack(place)
        drawn = (q, g, lp, energy)
        return drawn, statistics_of(drawn, walk.tally, depth, step_size)

    return Kernel(build_tree, transition)


def statistics_of(proposal: Proposal, tally: Tensor, depth: Tensor, step_size: Tensor) -> Tensor:
    """The statistics of a complete trajectory, `[len(STATISTICS)]`."""
    _, _, lp, energy = proposal
    acceptance, leaves, divergences = tf.unstack(tally)
    diverging = tf.cast(divergences > 0, lp.dtype)
    return tf.stack([lp, energy, acceptance / leaves, tf.cast(depth, lp.dtype), leaves, diverging, step_size])
