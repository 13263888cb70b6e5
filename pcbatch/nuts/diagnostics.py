"""Figures by which a run is distrusted, from plain NumPy arrays: R-hat and the fraction of missing information.

The same numbers as ArviZ's (the tests compare), which is not needed here: a run warns of itself wherever it runs.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf


def r_hat(draws: np.ndarray) -> np.ndarray:
    """Rank-normalised split R-hat of each number: `[chains, draws, ..]` to `[..]`; NaN for fewer than 4 draws.

    Vehtari, Gelman, Simpson, Carpenter, Buerkner, "Rank-normalization, folding, and localization", Bayesian Analysis
    16, 2021: the larger one of the draws and of their distances to the median.
    """
    half = draws.shape[1] // 2
    if half < 2:
        return np.full(draws.shape[2:], np.nan)
    numbers = np.concatenate([draws[:, :half], draws[:, -half:]]).reshape(2 * len(draws), half, -1)
    scores = rank_scores(numbers[..., 0].size)
    found = [
        max(_split_r_hat(normal_scores(x, scores)), _split_r_hat(normal_scores(np.abs(x - np.median(x)), scores)))
        for x in np.moveaxis(numbers, -1, 0)
    ]
    return np.array(found).reshape(draws.shape[2:])


def _split_r_hat(x: np.ndarray) -> float:
    """R-hat of `[chains, draws]`: the square root of the variance of all draws over that within chains."""
    draws = x.shape[1]
    within = x.var(axis=1, ddof=1).mean()
    between = x.mean(axis=1).var(ddof=1)
    return float(np.sqrt((draws - 1) / draws + between / within)) if within > 0 else float("nan")


def rank_scores(numbers: int) -> np.ndarray:
    """The normal quantiles of the ranks 1, 1.5, 2, .. of so many numbers (Blom, 1958)."""
    return np.asarray(tf.math.ndtri((np.arange(2, 2 * numbers + 1) / 2 - 0.375) / (numbers + 0.25)))


def normal_scores(x: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The `rank_scores` of all numbers of `x`, equal ones sharing their average rank."""
    _, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    twice = 2 * np.cumsum(counts) - (counts - 1)
    return scores[twice - 2][which].reshape(x.shape)


def energy_fractions(energy: np.ndarray) -> np.ndarray:
    """The estimated Bayesian fraction of missing information of each chain, from its energies `[chains, draws]`.

    Betancourt, "Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte Carlo", arXiv:1604.00695, 2016:
    how far the energy moves from draw to draw, over how far it spreads. NaN where the energy does not spread.
    """
    if energy.shape[1] < 2:
        return np.full(len(energy), np.nan)
    spread = energy.var(axis=1, ddof=1)
    moves = np.square(np.diff(energy, axis=1)).mean(axis=1)
    return np.divide(moves, spread, out=np.full(len(energy), np.nan), where=spread > 0)
