"""Pooled warm-up: one step size and one metric for all chains, learned from the draws of all, on the host.

Stan's windows, as each chain has them by itself otherwise. Chains make short stretches of trajectories with a common
step size; after each there is one update of dual averaging, on the mean acceptance of all chains. (One update for each
chain makes the step size swing: as many updates as there are chains, all on the same step.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tensorflow as tf

from pcbatch.nuts.adaptation import CLOSE, LAST, SEARCH, STEP, Averaging, learned_step, restarted
from pcbatch.nuts.metrics import Metric, Window, empty_window, learned_metric

if TYPE_CHECKING:
    from pcbatch.nuts.driver import Course

STRETCH = 5
"""The most trajectories between two updates."""


class Pool(NamedTuple):
    """What all chains know together, in float64."""

    averaging: Averaging
    window: Window


def warm_up(course: Course) -> Iterator[None]:
    """What is left of the warm-up of all chains, pausing after each stretch."""
    actions, settings = course.actions, course.settings
    if not settings.adapts:
        return
    while course.done < settings.warmup:
        if course.standing.origin.pool is None:
            _search(course, _empty(course))
        pool = course.standing.origin.pool
        count = _stretch(actions[course.done :], min(STRETCH, settings.chunk))
        action = actions[course.done + count - 1]
        step_size = float(np.exp(pool.averaging.log_step))
        moved, statistics = course.advance(count, step_size=_of_all(course, step_size))
        averaging = _arrays(
            learned_step(*_tensors((pool.averaging, _mean(statistics["acceptance_rate"]), settings.target_accept)))
        )
        window = pool.window if action in (STEP, LAST) else with_draws(pool.window, moved)
        course.remember(pool=Pool(averaging, window))
        if action == LAST:
            course.remember(state=_with(course, step_size=_of_all(course, float(np.exp(averaging.log_step_mean)))))
        if action == CLOSE:
            metric = learned_metric(*_tensors((window, _first(course.standing.origin.state.metric))))
            course.remember(state=_with(course, metric=Metric(*(_of_all(course, part) for part in _arrays(metric)))))
            _search(course, _arrays(empty_window(window)))
        yield


def _stretch(actions: np.ndarray, longest: int) -> int:
    """How many of the next trajectories belong to one stretch: one that closes a window, or is the last, ends it."""
    ends = np.flatnonzero(np.isin(actions, (CLOSE, LAST)) | (np.append(actions[1:], LAST) != actions))
    return min(longest, int(ends[0]) + 1)


def _search(course: Course, window: Window) -> None:
    """Let each chain search a step size, and begin dual averaging anew at their geometric mean."""
    state = course.standing.origin.state
    searching = (
        state.phase if course.standing.origin.pool is None else np.full(course.settings.chains, SEARCH, np.int32)
    )
    course.advance(0, phase=searching)
    found = np.asarray(course.standing.origin.state.step_size, np.float64)
    step_size = np.exp(_mean(np.log(found)))
    course.remember(pool=Pool(_arrays(restarted(tf.constant(step_size, tf.float64))), window))


def with_draws(window: Window, moved: np.ndarray) -> Window:
    """The window with the draws `[chains, rows, size]` too, those that are finite (Chan, Golub, LeVeque, 1983)."""
    draws = moved.reshape(-1, moved.shape[-1]).astype(np.float64)
    draws = draws[np.isfinite(draws).all(axis=1)]
    if not len(draws):
        return window
    dense = window.spread.ndim == 2
    mean = draws.mean(axis=0)
    centred, shift = draws - mean, mean - window.mean
    total = window.draws + len(draws)
    within = centred.T @ centred if dense else (centred**2).sum(axis=0)
    between = np.multiply.outer(shift, shift) if dense else shift**2
    spread = window.spread + within + between * window.draws * len(draws) / total
    return Window(total, window.mean + shift * len(draws) / total, spread)


def _empty(course: Course) -> Window:
    window = _first(course.standing.origin.state.window)
    return Window(*(np.zeros(np.shape(part)) for part in window))


def _mean(values: np.ndarray) -> float:
    """The mean over all chains that have not failed."""
    return float(np.nanmean(np.asarray(values, np.float64)))


def _first(structure: Any) -> Any:
    """The first chain's part; all have the same."""
    return tf.nest.map_structure(lambda array: np.asarray(array)[0], structure)


def _of_all(course: Course, value: Any) -> np.ndarray:
    settings = course.settings
    return np.broadcast_to(np.asarray(value, settings.dtype), (settings.chains, *np.shape(value))).copy()


def _with(course: Course, **changes: Any) -> Any:
    return course.standing.origin.state._replace(**changes)


def _tensors(structure: Any) -> Any:
    return tf.nest.map_structure(lambda part: tf.constant(part, tf.float64), structure)


def _arrays(structure: Any) -> Any:
    return tf.nest.map_structure(np.asarray, structure)
