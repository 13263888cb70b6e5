"""Pooled warm-up: one step size and one metric for all chains, learned from the draws of all, on the host.

Stan's windows, as each chain has them by itself otherwise. Chains make short stretches of trajectories with a common
step size; after each there is one update of dual averaging, on the mean acceptance of all chains. (One update for each
chain makes the step size swing: as many updates as there are chains, all on the same step.)

A mean does not see the one chain among many that starts far out, where the density is steep: there the common step is
much too long, every trajectory of this chain is refused, and it would stand where it is for ever. So a chain that
stands still while others move searches a step of its own (as all do at first) and takes no longer ones, until it has
come in: that limit doubles with every stretch of good acceptance, and until it is no limit any more the others learn
nothing from this chain. Other ways, measured on the logistic regression of
`examples/nuts/breast_cancer.py`, 32 chains, 300 trajectories: the harmonic mean of acceptances (Hoffman, Radul,
Sountsov, "An adaptive MCMC scheme for setting trajectory lengths in Hamiltonian Monte Carlo", 2021) lets all chains
wait for the worst, 1.4 times the gradients of such a warm-up; a dual averaging for each chain until the first metric
makes trajectories of different lengths, 1.25 times the rows of every run. This way takes no more of either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from pcbatch.nuts.adaptation.adaptation import (
    AHEAD,
    CLOSE,
    GATHER,
    LAST,
    READY,
    SAMPLE,
    SEARCH,
    STEP,
    WINDOW,
    Averaging,
    learned_step,
    restarted,
)
from pcbatch.nuts.kernel.metrics import Metric, Window, empty_window, learned_dense, learned_metric
from pcbatch.nuts.settings import Settings

STRETCH = 5
"""The most trajectories between two updates."""
SETTLED = 10
"""The fewest updates after which the averaged step size counts: the first ones still carry the step that dual averaging
begins with. A shorter last stretch keeps the step size that was searched for it."""
STILL, MOVING = 0.05, 0.5
"""A chain stands still in a stretch if its mean acceptance is below the one and the median chain's above the other.

Where that is not, the step is too long for all, and dual averaging is about to shorten it."""
PATIENCE = 5
"""After so many trajectories in which it stood still a chain searches a step of its own."""
FAR = 1 / 8
"""A chain that finds a step of less than this part of the mean one keeps to it; a search is right to a factor of 4."""


class Pool(NamedTuple):
    """The common knowledge of all chains, in float64."""

    averaging: Averaging
    window: Window
    limits: np.ndarray
    """The longest step that each chain may take, `[chains]`; infinite for chains that go with the others."""
    still: np.ndarray
    """The number of trajectories for which each chain has stood still by now, `[chains]`."""


class RunSettings(Protocol):
    """The run that pooled warm-up teaches, as far as it needs it: see `running.sampling_run.SamplingRun`."""

    settings: Settings

    @property
    def done(self) -> int:
        """The number of trajectories that each chain has made."""

    @property
    def actions(self) -> np.ndarray:
        """The purpose of each trajectory of the warm-up."""

    @property
    def state(self) -> Any:
        """The chains' state, a `ChainState` of arrays `[chains, ..]`."""

    @property
    def pool(self) -> Pool | None:
        """The common knowledge of the chains; None before the first stretch."""

    def advance(self, count: int, **changes: Any) -> tuple[np.ndarray, Mapping[str, np.ndarray]]:
        """Make `count` trajectories of each chain, after `changes` to the state: positions and statistics."""

    def remember(self, **changes: Any) -> None:
        """Change `state` or `pool`."""

    def whole_or_not(self) -> AbstractContextManager[None]:
        """Do all or nothing of the block inside: Ctrl-C leaves the run as it was before."""


def warm_up(course: RunSettings) -> Iterator[None]:
    """Make the rest of the warm-up of all chains, pausing after each stretch."""
    settings = course.settings
    while settings.adapts and course.done < settings.warmup:
        with course.whole_or_not():  # a stretch without what was learnt from it is no place to go on from
            _learn(course, min(stretch(course.actions, course.done), settings.chunk))
        yield


def _learn(course: RunSettings, count: int) -> None:
    """Make `count` trajectories, those of a stretch, and learn from them what their actions say."""
    settings, action = course.settings, course.actions[course.done + count - 1]
    averaging, window, limits, still = course.pool or _search(course, _empty(course))
    step_size = float(np.exp(averaging.log_step))
    together = limits >= step_size
    gathered = np.where(np.isin(course.actions, (WINDOW, CLOSE)), GATHER, SAMPLE)
    changes = {"step_size": _steps(course, step_size, limits), "window": empty_window(course.state.window)}
    _, statistics = course.advance(count, actions=gathered, **changes)
    acceptance = statistics["acceptance_rate"].mean(axis=1, dtype=np.float64)
    averaging = _arrays(learned_step(*_tensors((averaging, _mean(acceptance[together]), settings.target_accept))))
    window = window if action in (STEP, LAST) else joined(window, course.state.window, together)
    limits = np.where(acceptance >= settings.target_accept, 2 * limits, limits)
    still = np.where(stand_still(acceptance, together), still + count, 0.0)
    if action == CLOSE:
        before = _first(course.state.metric)
        dense = settings.metric == "dense"
        metric = learned_dense(window, before) if dense else learned_metric(*_tensors((window, before)))
        course.remember(state=_with(course, metric=Metric(*(_of_all(course, part) for part in _arrays(metric)))))
        _search(course, _arrays(empty_window(window)))
        return
    if (still >= PATIENCE).any():
        limits = _limits(course, limits, still >= PATIENCE)
        still = np.where(still >= PATIENCE, 0.0, still)
    course.remember(pool=Pool(averaging, window, limits, still))
    if action == LAST:
        course.remember(state=_with(course, step_size=_steps(course, float(np.exp(kept(averaging))), limits)))


def stretch(actions: np.ndarray, done: int) -> int:
    """The number of the next trajectories in one stretch: one that closes a window, or is the last, ends it.

    Those after the last window, whose step size is kept, are made in stretches short enough for `SETTLED` updates.
    """
    left, closed = actions[done:], np.flatnonzero(actions[:done] == CLOSE)
    ends = np.flatnonzero(np.isin(left, (CLOSE, LAST)) | (np.append(left[1:], LAST) != left))
    longest = STRETCH
    if CLOSE not in left:
        started = closed[-1] + 1 if closed.size else 0
        longest = max(1, min(STRETCH, (len(actions) - started) // SETTLED))
    return min(longest, int(ends[0]) + 1)


def kept(averaging: Averaging) -> Any:
    """The logarithm of the step size to keep: the averaged one, or the searched one while that has not settled."""
    return averaging.log_step_mean if averaging.count >= SETTLED else averaging.anchor - np.log(AHEAD)


def stand_still(acceptance: np.ndarray, together: np.ndarray) -> np.ndarray:
    """A mask of the chains that stood still over a stretch, bool `[chains]`, by their mean acceptance (NaN: failed).

    `together` are the chains that took the common step: by these is known whether it is one to move with.
    """
    found = acceptance[together & np.isfinite(acceptance)]
    moving = found.size and np.median(found) > MOVING
    return (acceptance < STILL) & bool(moving)


def _limits(course: RunSettings, limits: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The limits after the chosen chains have searched a step where they stand."""
    before = np.asarray(course.state.step_size, np.float64)
    found = _searched(course, np.where(chosen, SEARCH, READY))
    return np.where(chosen & (found < before), found, limits)


def _search(course: RunSettings, window: Window) -> Pool:
    """Let each chain search a step size, and begin dual averaging anew at their geometric mean."""
    found = _searched(course, course.state.phase if course.pool is None else np.full(course.settings.chains, SEARCH))
    step_size = np.exp(_mean(np.log(found)))
    limits = np.where(found < FAR * step_size, found, np.inf)
    averaging = _arrays(restarted(tf.constant(step_size, tf.float64)))
    pool = Pool(averaging, window, limits, np.zeros(course.settings.chains))
    course.remember(pool=pool)
    return pool


def _searched(course: RunSettings, phase: np.ndarray) -> np.ndarray:
    """The step size of each chain after the trials that `phase` asks for."""
    course.advance(0, phase=np.asarray(phase, np.int32))
    return np.asarray(course.state.step_size, np.float64)


def _steps(course: RunSettings, step_size: float, limits: np.ndarray) -> np.ndarray:
    """The step that each chain takes."""
    return np.minimum(step_size, limits).astype(course.settings.dtype)


def joined(window: Window, windows: Window, chosen: np.ndarray) -> Window:
    """The window with those of the `chosen` chains `[chains, ..]` too, that are finite (Chan, Golub, LeVeque, 1983)."""
    counts, means, spreads = (np.asarray(part, np.float64) for part in windows)
    sound = chosen & (counts > 0)
    for part in (means, spreads):
        sound = sound & np.isfinite(part).all(axis=tuple(range(1, part.ndim)))
    counts, means, spreads = (
        np.concatenate([np.asarray(one)[np.newaxis], each[sound]])
        for one, each in zip(window, (counts, means, spreads), strict=True)
    )
    total = counts.sum()
    if not total:
        return window
    mean = np.tensordot(counts, means, 1) / total
    shifts = means - mean
    outer = "c,cki,ckj->kij" if window.spread.ndim == 3 else "c,cki,cki->ki"
    between = np.einsum(outer, counts, shifts, shifts)
    return Window(total, mean, spreads.sum(axis=0) + between)


def _empty(course: RunSettings) -> Window:
    window = _first(course.state.window)
    return Window(*(np.zeros(np.shape(part)) for part in window))


def _mean(values: np.ndarray) -> float:
    """The mean over chains that have not failed; NaN if all have."""
    sound = values[np.isfinite(values)]
    return float(sound.mean()) if sound.size else float("nan")


def _first(structure: Any) -> Any:
    """The first chain's part; all have the same."""
    return tf.nest.map_structure(lambda array: np.asarray(array)[0], structure)


def _of_all(course: RunSettings, value: Any) -> np.ndarray:
    settings = course.settings
    return np.broadcast_to(np.asarray(value, settings.dtype), (settings.chains, *np.shape(value))).copy()


def _with(course: RunSettings, **changes: Any) -> Any:
    return course.state._replace(**changes)


def _tensors(structure: Any) -> Any:
    return tf.nest.map_structure(lambda part: tf.constant(part, tf.float64), structure)


def _arrays(structure: Any) -> Any:
    return tf.nest.map_structure(np.asarray, structure)
