"""The purpose of each trajectory of the warm-up: Stan's windows (Reference Manual, "Automatic parameter tuning").

A first stretch goes to the bulk of the density; then come windows, each twice as long as the one before, at whose ends
the metric is learned from the draws in it; a last stretch adapts the step size to the last metric. Other than Stan's,
the first stretch has windows, too: gradients tell scales from few draws, and without scales trajectories are long.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pcbatch.nuts.adaptation.adaptation import CLOSE, LAST, STEP, WINDOW

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
