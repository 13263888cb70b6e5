"""The densities that are sampled: their data, step sizes and starting points, in NumPy alone.

`contestants/in_tensorflow.py` and `contestants/in_jax.py` write the densities down. All run in float32 with a unit
metric. Starting points are draws from the density itself, so that nothing has to warm up; for the logistic regressions
they come from its normal approximation at the mode, which is close.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

CORRELATION = 0.9
"""Between neighbours in the AR(1) Gaussian; with 100 dimensions the covariance's condition number is 355."""
FUNNEL_SCALE = 3.0
"""Standard deviation of the funnel's first number, the log variance of the others (Neal, "Slice sampling", 2003)."""


@dataclass(frozen=True)
class Target:
    """A density: `size` numbers, how it is sampled, and of a regression the number of observations."""

    name: str
    family: str
    size: int
    step_size: float
    trajectories: int
    observations: int = 0

    @property
    def title(self) -> str:
        """What the heading of its table says."""
        shape = f"{self.observations} x {self.size}" if self.observations else f"{self.size} dimensions"
        return f"{self.name}: {self.family}, {shape}, step size {self.step_size}"

    def data(self) -> tuple[np.ndarray, ...]:
        """Arrays that the density is given: observations `[n, size]` and answers `[n]` of 0 and 1, or nothing."""
        return (
            tuple(a.astype(np.float32) for a in regression(self.observations, self.size)) if self.observations else ()
        )

    def starts(self, chains: int) -> np.ndarray:
        """Where the chains start, `[chains, size]`."""
        normal = np.random.default_rng(7).normal(size=(chains, self.size))
        return STARTS[self.family](normal, self.observations).astype(np.float32)


@lru_cache(maxsize=2)
def regression(observations: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal observations, and answers with log odds of variance 1."""
    random = np.random.default_rng(3)
    x = random.normal(size=(observations, size))
    weights = random.normal(size=size) / np.sqrt(size)
    return x, (random.uniform(size=observations) < 1 / (1 + np.exp(-x @ weights))).astype(float)


def gaussian_starts(normal: np.ndarray, observations: int) -> np.ndarray:
    """Draws of the AR(1) process that has variance 1 everywhere."""
    points = normal.copy()
    for i in range(1, normal.shape[1]):
        points[:, i] = CORRELATION * points[:, i - 1] + np.sqrt(1 - CORRELATION**2) * normal[:, i]
    return points


def funnel_starts(normal: np.ndarray, observations: int) -> np.ndarray:
    """Draws of the funnel: the log variance, then numbers that have it."""
    log_variance = FUNNEL_SCALE * normal[:, :1]
    return np.concatenate([log_variance, np.exp(0.5 * log_variance) * normal[:, 1:]], axis=1)


def regression_starts(normal: np.ndarray, observations: int) -> np.ndarray:
    """Draws of the normal approximation at the mode, which Newton's method finds."""
    x, y = regression(observations, normal.shape[1])
    mode = np.zeros(normal.shape[1])
    for _ in range(10):
        p = 1 / (1 + np.exp(-x @ mode))
        precision = (x.T * (p * (1 - p))) @ x + np.eye(len(mode))
        mode = mode + np.linalg.solve(precision, x.T @ (y - p) - mode)
    return mode + np.linalg.solve(np.linalg.cholesky(precision).T, normal.T).T


STARTS = {
    "AR(1) Gaussian": gaussian_starts,
    "logistic regression": regression_starts,
    "Neal's funnel": funnel_starts,
}

TARGETS = {
    target.name: target
    for target in (
        Target("gaussian-short", "AR(1) Gaussian", 100, 0.184, 10),
        Target("gaussian", "AR(1) Gaussian", 100, 0.184, 100),
        Target("logistic-large", "logistic regression", 100, 0.0136, 20, observations=10_000),
        Target("logistic-small", "logistic regression", 25, 0.043, 100, observations=1_000),
        Target("funnel", "Neal's funnel", 10, 0.2, 20),
    )
}
"""The step sizes are about 0.6 to 0.8 of the narrowest standard deviation (the funnel has none)."""
