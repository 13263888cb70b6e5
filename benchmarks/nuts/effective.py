"""Effective sizes of draws and their errors, estimated in one way for all contestants: ArviZ's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

FEWEST = 20
"""Draws of a chain of which an estimate says something."""


def least_sizes(draws: np.ndarray) -> tuple[float, float] | None:
    """The least effective sizes of `[chains, draws, numbers]`, over the numbers: of x and of x^2.

    The first counts for posterior means. The second is that of the squared distances to the mean of all draws (which is
    x^2 where the mean is 0) and counts for standard deviations. None if there are too few draws to say; NaN where a
    number is not finite.
    """
    if draws.shape[1] < FEWEST:
        return None
    draws = draws.astype(float)
    squares = (draws - draws.mean(axis=(0, 1))) ** 2
    x, x2 = (float(_estimated("ess", each, method="mean").min()) for each in (draws, squares))
    return x, x2


def errors(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The Monte Carlo standard errors of mean and standard deviation of each number of `[chains, draws, numbers]`."""
    mean, sd = (_estimated("mcse", draws.astype(float), method=method) for method in ("mean", "sd"))
    return mean, sd


def _estimated(name: str, draws: np.ndarray, **options: Any) -> np.ndarray:
    import arviz

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="More chains")  # than draws: many short ones are what we have
        return np.asarray(getattr(arviz, name)(arviz.convert_to_dataset({"x": draws}), **options)["x"])
