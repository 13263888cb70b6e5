"""The warm-up of one chain: what each trajectory is for, a first step size, and dual averaging of the step size.

Hoffman and Gelman, JMLR 15, 2014: algorithm 4 (a reasonable first step size) and section 3.2 (dual averaging). Where
Stan differs from it Stan is followed: each trial of a step size draws its momentum anew and is to reach an acceptance
of 0.8, the first trial only tells the direction, and after each window of the metric a step size is searched and dual
averaging begins anew. Where every step is accepted, up to 1e7, the posterior is improper, and the chain fails, as in
Stan. Three differences from Stan: dual averaging moves in shorter strides (`GAMMA`), the first one too is anchored at
the step size that was searched (as in the paper; Stan's at the one it was given), and a search that finds nothing, as
the density is NaN wherever one goes, is no error: it ends with the last step tried, and the chain's statistics show
what is wrong.

Everything is plain TensorFlow on one example.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

# -- adaptation --------------------------------------------------------------------------------------------------------

Tensor = Any  # TensorFlow carries no types; a tf.Tensor of one example

# -- what a trajectory is for ------------------------------------------------------------------------------------------

SAMPLE, STEP, WINDOW, CLOSE, LAST, GATHER = range(6)
"""Actions after a trajectory.

SAMPLE: nothing. STEP: the step size learns. WINDOW: it learns, and the draw joins the window of the metric. CLOSE: as
WINDOW; then the window becomes the metric, a step size is searched and dual averaging starts anew. LAST: as STEP; then
the averaged step size is kept. GATHER: the draw joins the window, the step size stays as it is.
"""

PHASES = 64
"""The number of phases that a plan has room for; windows that double need few."""


class Plan(NamedTuple):
    """The purpose of each trajectory of a run, in phases: those before `ends[0]` have `actions[0]` and so on."""

    ends: Tensor
    """`[PHASES]`, ascending; int32."""
    actions: Tensor
    """`[PHASES]`, int32."""


def plan_of(actions: Any) -> Plan:
    """The plan that has these actions, one for each trajectory from number 0 on, and SAMPLE ever after.

    >>> plan_of([STEP, STEP, LAST]).ends[:3].tolist()
    [2, 3, 2147483647]
    """
    given = np.append(np.asarray(actions, np.int32), np.int32(SAMPLE))
    starts = np.flatnonzero(np.append(True, given[1:] != given[:-1]))
    if len(starts) > PHASES:
        raise ValueError(f"a plan has at most {PHASES} phases, not {len(starts)}")
    free = PHASES - len(starts)
    forever = np.iinfo(np.int32).max
    ends = np.append(starts[1:], [forever] * (free + 1)).astype(np.int32)
    return Plan(ends, np.append(given[starts], [SAMPLE] * free).astype(np.int32))


def action_at(plan: Plan, trajectory: Tensor) -> Tensor:
    """The purpose of trajectory number `trajectory`."""
    return tf.gather(plan.actions, tf.reduce_sum(tf.cast(plan.ends <= trajectory, tf.int32)))


# -- dual averaging ----------------------------------------------------------------------------------------------------

GAMMA, T0, KAPPA = 0.2, 10.0, 0.75
"""The last two are Stan's values, and the paper's. Their gamma is 0.05, with which the step swings further from one
trajectory to the next: then the mean of its logarithms is too short, since beyond a certain step nothing is accepted.
posteriordb's logmesquite was accepted with 0.93 instead of 0.8, and took 1.4 times the gradients for a draw."""
AHEAD = 2.0
"""Steps shrink towards so many times the step size that was searched; 10 in the paper, whose gamma is a quarter."""


class Averaging(NamedTuple):
    """Dual averaging of the logarithm of the step size: Hoffman and Gelman's letters are x, x-bar, H-bar, m, mu."""

    log_step: Tensor
    log_step_mean: Tensor
    error_mean: Tensor
    count: Tensor
    anchor: Tensor
    """The value that steps shrink towards: the logarithm of `AHEAD` times the first step size."""


def restarted(step_size: Tensor) -> Averaging:
    """Dual averaging that begins at `step_size`."""
    nothing = tf.zeros_like(step_size)
    log_step = tf.math.log(step_size)
    return Averaging(log_step, nothing, nothing, nothing, tf.math.log(AHEAD * step_size))


def learned_step(averaging: Averaging, acceptance: Tensor, target: Tensor) -> Averaging:
    """One update on a trajectory's acceptance rate (section 3.2.1, equation 6)."""
    count = averaging.count + 1
    eta = 1 / (count + T0)
    error_mean = (1 - eta) * averaging.error_mean + eta * (target - acceptance)
    log_step = averaging.anchor - tf.sqrt(count) / GAMMA * error_mean
    weight = count**-KAPPA
    log_step_mean = (1 - weight) * averaging.log_step_mean + weight * log_step
    return Averaging(log_step, log_step_mean, error_mean, count, averaging.anchor)


# -- a first step size -------------------------------------------------------------------------------------------------

READY, UP, DOWN, SEARCH, START, START_AND_SEARCH = range(6)
"""Stages of a chain. READY: its next trajectory gives a draw. Otherwise that is a trial, of one leaf: UP and DOWN
double and halve the step size until acceptance crosses the target, SEARCH finds out which of these it shall be, START
and START_AND_SEARCH compute log density and gradient where the chain stands.
"""

TRIAL_TARGET = 0.8
SMALLEST_STEP, LARGEST_STEP = 1e-12, 1e7
"""A search ends when it leaves this range; a posterior in which steps may be longer is improper (as in Stan)."""


def after_trial(phase: Tensor, step_size: Tensor, acceptance: Tensor) -> tuple[Tensor, Tensor]:
    """The phase and the step size after a trial with `step_size` had this acceptance."""
    good = acceptance > TRIAL_TARGET
    going_up, going_down = (phase == UP) & good, (phase == DOWN) & tf.logical_not(good)
    step_size = tf.where(going_up, 2 * step_size, tf.where(going_down, 0.5 * step_size, step_size))
    inside = (step_size < LARGEST_STEP) & (step_size > SMALLEST_STEP)
    onwards = tf.where((going_up | going_down) & inside, phase, READY)
    direction = tf.where(good, UP, DOWN)
    onwards = tf.where(phase == SEARCH, direction, onwards)
    return tf.where(phase == START_AND_SEARCH, SEARCH, onwards), step_size


# -- windows -----------------------------------------------------------------------------------------------------------
# The purpose of each trajectory of the warm-up: Stan's windows (Reference Manual, "Automatic parameter tuning").
#
# A first stretch goes to the bulk of the density; then come windows, each twice as long as the one before, at whose
# ends the metric is learned from the draws in it; a last stretch adapts the step size to the last metric. Other than
# Stan's, the first stretch has windows, too: gradients tell scales from few draws, and without scales trajectories are
# long.

FIRST, LAST_STRETCH, SHORTEST = 75, 50, 25
"""Trajectories in the first stretch, in the last one, and in the first window after the first stretch."""
EARLIEST = 10
"""Trajectories in the first window of all."""
LAST_SHARE = 10
"""The last stretch is at least this part of the warm-up, a tenth: a step size learned in 50 trajectories is good to 7
percent, in 100 to 5."""
FEWEST = 20
"""A warm-up of fewer trajectories than this adapts the step size only."""


def stretches(warmup: int) -> tuple[list[int], int]:
    """Lengths of the windows, those of the first stretch included, and of the last stretch, `warmup` in all.

    >>> stretches(1000)
    ([10, 20, 45, 25, 50, 100, 200, 450], 100)
    >>> stretches(100)
    ([15, 75], 10)
    """
    if warmup < FEWEST:
        return [], warmup
    first, last, window = FIRST, max(LAST_STRETCH, warmup // LAST_SHARE), SHORTEST
    if first + window + last > warmup:
        first, last = int(0.15 * warmup), int(0.1 * warmup)
        window = warmup - first - last
    return [*_doubled(min(EARLIEST, first), first), *_doubled(window, warmup - first - last)], last


def _doubled(window: int, left: int) -> Iterator[int]:
    """Windows of doubling length that fill `left`: one takes the rest if the next, twice as long, would not fit.

    Stan does not look at the first window so, and with 151 to 199 trajectories of warm-up has a second one of 1 to 49.
    """
    while left:
        length = window if 3 * window <= left else left
        yield length
        left, window = left - length, 2 * window


def plan(warmup: int) -> np.ndarray:
    """The action of each trajectory of a warm-up: int32 `[warmup]`."""
    windows, last = stretches(warmup)
    actions: list[int] = []
    for length in windows:
        actions += [WINDOW] * (length - 1) + [CLOSE]
    actions += [STEP] * last
    return np.array([*actions[:-1], LAST][:warmup], np.int32)
