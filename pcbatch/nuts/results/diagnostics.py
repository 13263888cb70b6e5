"""Figures by which a run is distrusted, from plain NumPy arrays: R-hat and the fraction of missing information.

The same numbers as ArviZ's (the tests compare), which is not needed here: a run warns of itself wherever it runs.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from pcbatch.runtime.costs.device import CPU


def r_hat(draws: np.ndarray) -> np.ndarray:
    """Rank-normalised split R-hat of each number: `[chains, draws, ..]` to `[..]`; NaN for fewer than 4 draws.

    Vehtari, Gelman, Simpson, Carpenter, Buerkner, "Rank-normalization, folding, and localization", Bayesian Analysis
    16, 2021: the larger one of the draws and of their distances to the median.
    """
    half = draws.shape[1] // 2
    if half < 2 or not draws.size:
        return np.full(draws.shape[2:], np.nan)
    numbers = np.concatenate([draws[:, :half], draws[:, -half:]]).reshape(2 * len(draws), half, -1)
    rows = numbers.reshape(-1, numbers.shape[2]).T
    scores = rank_scores(rows.shape[1])
    at_once = max(1, CPU.cached_numbers // rows.shape[1])
    parts = [rows[first : first + at_once] for first in range(0, len(rows), at_once)]
    shape = (-1, *numbers.shape[:2])
    found = [_larger_r_hat(np.ascontiguousarray(part), shape, scores) for part in parts]
    return np.concatenate(found).reshape(draws.shape[2:])


def _larger_r_hat(rows: np.ndarray, shape: tuple[int, ...], scores: np.ndarray) -> np.ndarray:
    """The larger R-hat, as above, of each of `rows`, which have the `shape` `[rows, chains, draws]`."""
    count, numbers = rows.shape
    firsts = numbers * np.arange(count)[:, np.newaxis]  # rows are looked up as one long vector, which is faster
    order = ascending_order(rows) + firsts
    ascending = np.take(rows, order)
    medians = (ascending[:, [(numbers - 1) // 2]] + ascending[:, [numbers // 2]]) / 2
    # Those below the median from the last to the first, then those above: to sort what ascends twice is to merge it.
    outward = np.r_[numbers // 2 - 1 : -1 : -1, numbers // 2 : numbers]
    distances = np.abs(ascending - medians)[:, outward]
    merged = np.argsort(distances, axis=1, kind="stable") + firsts
    ranked = _placed(_scores(ascending, scores), order)
    folded = _placed(_scores(np.take(distances, merged), scores), np.take(order[:, outward], merged))
    return np.maximum(*(_split_r_hat(each.reshape(shape)) for each in (ranked, folded)))


def _split_r_hat(x: np.ndarray) -> np.ndarray:
    """R-hats of `[numbers, chains, draws]`: the root of the variance of all draws over that within chains."""
    _, chains, draws = x.shape
    means = x @ np.full(draws, 1 / draws)  # products and einsum: NumPy's own sums over short axes are slow
    deviations = x - means[:, :, np.newaxis]
    within = np.einsum("ncd,ncd->n", deviations, deviations) / (chains * (draws - 1))
    between = means.var(axis=1, ddof=1)
    ratio = np.divide(between, within, out=np.full(len(x), np.nan), where=within > 0)
    return np.asarray(np.sqrt((draws - 1) / draws + ratio))


def rank_scores(numbers: int) -> np.ndarray:
    """The normal quantiles of the ranks 1, 1.5, 2, .. of so many numbers (Blom, 1958)."""
    return np.asarray(tf.math.ndtri((np.arange(2, 2 * numbers + 1) / 2 - 0.375) / (numbers + 0.25)))


def ascending_order(rows: np.ndarray) -> np.ndarray:
    """`np.argsort` of each of `rows`, `[m, n]`; equal numbers in any order.

    Of float32 by halves of their bits: NumPy sorts 16 bits in an eighth of the time, and all takes half of it.
    """
    if rows.dtype != np.float32 or not np.isfinite(rows).all():
        return np.argsort(rows, axis=1)
    bits = rows.view(np.int32)
    keys = (bits ^ ((bits >> 31) | np.int32(-(2**31)))).view(np.uint32)  # unsigned numbers in the order of the floats
    order = np.argsort(keys.astype(np.uint16), axis=1, kind="stable")
    firsts = rows.shape[1] * np.arange(len(rows))[:, np.newaxis]
    upper = np.take((keys >> 16).astype(np.uint16), order + firsts)
    return np.take(order, np.argsort(upper, axis=1, kind="stable") + firsts)


def _scores(ascending: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The `rank_scores` of numbers that ascend in each row, `[m, n]`, equal ones sharing their average rank."""
    count, length = ascending.shape
    is_last = np.ones(ascending.shape, bool)  # of equal numbers
    np.not_equal(ascending[:, 1:], ascending[:, :-1], out=is_last[:, :-1])
    ends = np.flatnonzero(is_last)
    counts = np.diff(ends, prepend=-1)
    twice_ranks = np.repeat(2 * ends - counts + 1, counts).reshape(count, length)
    return np.take(scores, twice_ranks - 2 * length * np.arange(count)[:, np.newaxis])


def _placed(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """An array that has each of the `values` at its place."""
    found = np.empty(values.size)
    found[places.reshape(-1)] = values.reshape(-1)
    return found.reshape(values.shape)


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
