"""A chain: trajectory after trajectory, warm-up and draws, in one batched program in which no chain waits for another.

Every trajectory goes through the same call of `transition`. Most give a draw. Some are trials of one leaf: the
first, with a step of length zero, computes log density and gradient where the chain stands, others search a step size
(`adaptation/adaptation.py`). So all gradients are computed in one block. What each trajectory is for is data, as are
step sizes, metrics and counts: none of them compiles anything anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import tensorflow as tf

from pcbatch import random
from pcbatch.api import autobatch
from pcbatch.nuts.adaptation.adaptation import (
    AHEAD,
    CLOSE,
    GATHER,
    LARGEST_STEP,
    LAST,
    READY,
    SAMPLE,
    SEARCH,
    START,
    START_AND_SEARCH,
    STEP,
    UP,
    Averaging,
    Plan,
    action_at,
    after_trial,
    learned_step,
    restarted,
)
from pcbatch.nuts.kernel.algorithm import STATISTICS, multinomial
from pcbatch.nuts.kernel.dynamics import LogDensity, Tensor, choose
from pcbatch.nuts.kernel.metrics import Metric, Window, add_draw, empty_window, learned_metric, metric_of, window_for
from pcbatch.nuts.kernel.slice import slice_sampler

KERNELS = {"multinomial": multinomial, "slice": slice_sampler}
"""A maker of trajectories: `kernel(log_density, ...) -> Kernel`."""

LANES = 4
"""Chains are bit-equal among any number of others where that number is a multiple of this, as `padded` makes it.

At 1, 2 or 5 chains of float64 some elements are computed outside XLA's loops on vectors of four, where LLVM joins other
products and sums to one rounding; 4, 8, 12, 16, 20 and 32 chains agree in every bit.
"""


class Point(NamedTuple):
    """A chain's place: position `[d]`, gradient `[d]`, log density; minus infinity before the first trajectory."""

    q: Tensor
    g: Tensor
    lp: Tensor


class ChainState(NamedTuple):
    """All that a chain needs to go on."""

    point: Point
    step_size: Tensor
    metric: Metric
    averaging: Averaging
    window: Window
    phase: Tensor
    """The kind of the next trajectory: READY if it gives a draw, else the trial that it makes; see `adaptation`."""
    trials: Tensor
    """The number of trials so far, int32."""
    leaves: Tensor
    """The number of leaves of all trajectories, those of trials included, int32; each is a gradient (or several)."""


class Sampler(NamedTuple):
    """The batched functions of one sampler, from the recursion to the whole chain."""

    build_tree: Any
    transition: Any
    chain: Any
    """`(key, *state, plan, first, count, thin, target_accept, data, ..) -> (*state, positions, statistics)`"""


def make_sampler(
    log_density: LogDensity,
    *,
    dimensions: int,
    dtype: tf.DType,
    capacity: int,
    max_tree_depth: int = 10,
    leapfrogs_per_leaf: int = 1,
    end_weight: float = 1.0,
    kernel: Literal["multinomial", "slice"] = "multinomial",
    waits: bool = True,
) -> Sampler:
    """The sampler of `log_density`.

    Args:
        log_density: `(q, data) -> scalar`, for one position `[dimensions]`; differentiable TensorFlow code.
        dimensions: the length of a position.
        dtype: of positions, momenta and energies.
        capacity: how many draws one run of a chain has room for.
        max_tree_depth: how often a trajectory may double; it has at most `2**max_tree_depth - 1` new points (leaves).
        leapfrogs_per_leaf: integration steps from one point of a trajectory to the next.
        end_weight: how much the ends of a trajectory count in the U-turn criterion.
        kernel: how a point of a trajectory is drawn: by its weight, or as Hoffman and Gelman's algorithm 6 does.
        waits: whether every chain waits for the others at its gradients, or the schedule weighs what that costs.

    Whether the metric is diagonal or dense is the state's affair; see `fresh_state`.
    """
    build_tree, transition = KERNELS[kernel](
        log_density,
        dimensions=dimensions,
        dtype=dtype,
        max_tree_depth=max_tree_depth,
        leapfrogs_per_leaf=leapfrogs_per_leaf,
        end_weight=end_weight,
        waits=waits,
    )

    # A chain calls a transition, that the root of a tree, and the root has max_tree_depth - 1 levels below it.
    @autobatch(
        in_axes=(0, *(0 for _ in ChainState._fields), None, None, None, None, None, None, None),
        static_argnames="adapts",
        max_depth=max_tree_depth + 1,
    )
    def chain(
        key: Tensor,
        point: Point,
        step_size: Tensor,
        metric: Metric,
        averaging: Averaging,
        window: Window,
        phase: Tensor,
        trials: Tensor,
        leaves: Tensor,
        plan: Plan,
        first: Tensor,
        count: Tensor,
        thin: Tensor,
        target_accept: Tensor,
        data: Any,
        adapts: bool = True,
    ) -> tuple[Point, Tensor, Metric, Averaging, Window, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """`count` draws of a chain, number `first` being the next, after the trials that it still owes.

        The chain's state comes and goes field by field (`ChainState`): to pack or unpack it would be to copy it.
        Unless it `adapts`, the plan is of no account, and the program that does not heed it compiles sooner. A
        dense metric is learned by who calls it, after a run that ends with `CLOSE`.

        Row r of `positions` and `statistics` keeps the last of `thin` draws, numbers `first + thin * r` to
        `first + thin * (r + 1) - 1`; at most `capacity * thin` draws fit. Rows that no draw reaches are zero.
        """
        positions = tf.zeros((capacity, dimensions), dtype)
        statistics = tf.zeros((capacity, len(STATISTICS)), dtype)
        done = 0
        while done < count or phase != READY:
            # Draw number n has the random bits of number n of the chain's key, trial number n those of -1 - n.
            number = tf.where(phase == READY, first + done, -1 - trials)
            limit = tf.where(phase == READY, max_tree_depth, 1)
            step = tf.where(phase >= START, 0 * step_size, step_size)
            proposal, row = transition(
                point.q, point.g, point.lp, step, metric, limit, random.fold_in(key, number), data
            )
            _, _, acceptance, _, leaves_more, _, _ = tf.unstack(row)
            leaves = leaves + tf.cast(leaves_more, tf.int32)
            q, g, lp, _ = proposal
            point = choose((phase == READY) | (phase >= START), Point(q, g, lp), point)

            if phase != READY:
                assert point.lp > float("-inf"), "the log density, or its slope, is not finite at the initial position"
                trials = trials + 1
                grows = phase == UP
                phase, step_size = after_trial(phase, step_size, acceptance)
                assert not grows or step_size < LARGEST_STEP, "every step is accepted, up to 1e7: an improper posterior"
                averaging = restarted(step_size)
            else:
                positions[done // thin] = q
                statistics[done // thin] = row
                action = action_at(plan, first + done)
                done = done + 1
                if adapts and action != SAMPLE:
                    averaging = learned_step(averaging, acceptance, target_accept)
                    log_step = tf.where(action == LAST, averaging.log_step_mean, averaging.log_step)
                    step_size = tf.where(action == GATHER, step_size, tf.exp(log_step))
                    joins = (action != STEP) & (action != LAST)
                    window = choose(joins, add_draw(window, q, g), window)
                    if window.spread.shape.rank == 2 and action == CLOSE:  # of a diagonal metric
                        metric = learned_metric(window, metric)
                        window = empty_window(window)
                        phase = SEARCH
        return point, step_size, metric, averaging, window, phase, trials, leaves, positions, statistics

    return Sampler(build_tree, transition, chain)


def fresh_state(positions: Any, inverse_mass: Any, step_size: Any = None) -> ChainState:
    """The state of chains that are about to start, as NumPy arrays.

    Args:
        positions: where, `[chains, d]`; their dtype is that of the sampler.
        inverse_mass: the inverse mass matrix of all chains, its diagonal `[d]` or all of it `[d, d]`; what is learned
            is diagonal or dense accordingly.
        step_size: of all chains, used as it is; None to search one, from 1 on.
    """
    q = np.asarray(positions)
    chains, dtype = len(q), q.dtype

    def of_all(array: Any) -> np.ndarray:
        return np.repeat(np.asarray(array, dtype)[np.newaxis], chains, axis=0)

    def counter(value: int) -> np.ndarray:
        return np.full(chains, value, np.int32)

    metric = Metric(*map(of_all, metric_of(np.asarray(inverse_mass))))
    step = of_all(1.0 if step_size is None else step_size)
    averaging = Averaging(np.log(step), 0 * step, 0 * step, 0 * step, np.log(AHEAD * step))
    window = Window(*map(of_all, window_for(metric.inverse[0])))
    phase = counter(START_AND_SEARCH if step_size is None else START)
    point = Point(q, np.zeros_like(q), of_all(-np.inf))
    return ChainState(point, step, metric, averaging, window, phase, counter(0), counter(0))


def padded(structure: Any, chains: slice = slice(None)) -> Any:
    """Arrays of some `chains` `[chains, ..]` with copies of the last of them behind, up to a multiple of `LANES`."""

    def pad(array: Any) -> np.ndarray:
        array = np.asarray(array)[chains]
        missing = -len(array) % LANES
        return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if missing else array

    return _mapped(pad, structure)


def together(structures: Sequence[Any], chains: int) -> Any:
    """The arrays of several groups of chains, one after the other, as NumPy's; those of the first `chains`, not copies.

    They are nobody else's: whoever gets them may write to them.
    """
    return _mapped(lambda *arrays: np.concatenate([np.asarray(array) for array in arrays])[:chains], *structures)


def _mapped(function: Callable[..., np.ndarray], first: Any, *others: Any) -> Any:
    """`function` of the arrays in the same place of each of some nested tuples: `tf.nest` takes 25 times as long."""
    if not isinstance(first, tuple):
        return function(first, *others)
    parts = [_mapped(function, *each) for each in zip(first, *others, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
