"""Figures by which a run is distrusted, from plain NumPy arrays: R-hat and the fraction of missing information.

The same numbers as ArviZ's (the tests compare), which is not needed here: a run warns of itself wherever it runs.
"""

from __future__ import annotations

import functools

import numpy as np
import tensorflow as tf

from pcbatch.runtime.costs.device import CPU

ROUNDING = 1e-13
"""Less of a sum of squares may be what rounding has left of nothing."""


def r_hat(draws: np.ndarray) -> np.ndarray:
    """Rank-normalised split R-hat of each number: `[chains, draws, ..]` to `[..]`; NaN for fewer than 4 draws.

    Vehtari, Gelman, Simpson, Carpenter, Buerkner, "Rank-normalization, folding, and localization", Bayesian Analysis
    16, 2021: the larger one of the draws and of their distances to the median.
    """
    half = draws.shape[1] // 2
    if half < 2 or not draws.size:
        return np.full(draws.shape[2:], np.nan)
    numbers = np.concatenate([draws[:, :half], draws[:, -half:]]).reshape(2 * len(draws) * half, -1)
    rows, scores = np.ascontiguousarray(numbers.T), rank_scores(len(numbers))
    at_once = max(1, CPU.cached_numbers // len(numbers))
    parts = [rows[first : first + at_once] for first in range(0, len(rows), at_once)]
    return np.concatenate([_larger_r_hat(part, half, scores) for part in parts]).reshape(draws.shape[2:])


def nested_r_hat(draws: np.ndarray, superchains: int, chance: bool = True) -> np.ndarray:
    """Nested R-hat of each number: `[chains, draws, ..]` to `[..]`, the chains in so many groups of equal starts.

    Margossian et al., "Nested R-hat: Assessing the convergence of Markov chain Monte Carlo when running many short
    chains", Bayesian Analysis, 2024: what the means of the groups vary more than chains within a group let expect. A
    draw of each chain is enough. NaN where there is one group, or one chain in each. Without `chance` the variance is
    left out that means of so many independent chains have anyway.
    """
    chains, count = len(draws), draws.shape[1]
    each = chains // superchains
    if superchains < 2 or each < 2 or not draws.size:
        return np.full(draws.shape[2:], np.nan)
    grouped = draws.astype(np.float64).reshape(superchains, each, *draws.shape[1:])
    means = grouped.mean(axis=2)
    between = means.mean(axis=1).var(axis=0, ddof=1)
    within = means.var(axis=1, ddof=1)
    if not chance:
        between = np.maximum(between - within.mean(axis=0) / each, 0)
    if count > 1:
        within = within + grouped.var(axis=2, ddof=1).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(1 + between / within.mean(axis=0)))


def _larger_r_hat(rows: np.ndarray, draws: int, scores: np.ndarray) -> np.ndarray:
    """The larger R-hat, as above, of each of `rows`, which are so many draws of a chain, then those of the next."""
    numbers = rows.shape[1]
    below, firsts = numbers // 2, _firsts(rows)
    order = ascending_order(rows)
    chains, ascending = order // draws, np.take(rows, order + firsts)
    distances = np.abs(ascending - (ascending[:, [(numbers - 1) // 2]] + ascending[:, [below]]) / 2)
    # Those below the median from the last to the first, then those above: to sort what ascends twice is to merge it.
    outward = [np.hstack([each[:, below - 1 :: -1], each[:, below:]]) for each in (distances, chains)]
    merged = np.argsort(outward[0], axis=1, kind="stable") + firsts
    folded, folded_chains = (np.take(each, merged) for each in outward)
    count = numbers // draws
    return np.fmax(_r_hat(ascending, chains, count, scores), _r_hat(folded, folded_chains, count, scores))


def _r_hat(ascending: np.ndarray, chains: np.ndarray, count: int, scores: np.ndarray) -> np.ndarray:
    """R-hats of the scores of numbers that ascend in each row and are draws of one of `count` `chains`.

    The root of the variance of all over that within chains. Where the chains stand still at different places that is
    infinite, where all are at one place it is NaN.
    """
    x, draws = _scores(ascending, scores), ascending.shape[1] // count
    cells = chains + count * np.arange(len(x))[:, np.newaxis]
    sums = np.bincount(cells.reshape(-1), x.reshape(-1), minlength=len(x) * count)
    means, squares = sums.reshape(-1, count) / draws, np.einsum("nd,nd->n", x, x)
    within = squares - draws * np.einsum("nc,nc->n", means, means)
    within[within < ROUNDING * squares] = 0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = means.var(axis=1, ddof=1) / (within / (count * (draws - 1)))
    return np.asarray(np.sqrt((draws - 1) / draws + ratio))


@functools.lru_cache(maxsize=4)
def rank_scores(numbers: int) -> np.ndarray:
    """The normal quantiles of the ranks 1, 1.5, 2, .. of so many numbers (Blom, 1958); not to be written to."""
    return np.asarray(tf.math.ndtri((np.arange(2, 2 * numbers + 1) / 2 - 0.375) / (numbers + 0.25)))


def ascending_order(rows: np.ndarray) -> np.ndarray:
    """`np.argsort` of each of `rows`, `[m, n]`; equal numbers in any order.

    Of float32 by halves of their bits: NumPy sorts 16 bits in an eighth of the time, and all takes half of it.
    """
    if rows.dtype != np.float32 or not np.isfinite(rows).all():
        return np.argsort(rows, axis=1)
    bits = rows.view(np.int32)
    keys = (bits ^ ((bits >> 31) | np.int32(-(2**31)))).view(np.uint32)  # unsigned numbers in the order of the floats
    order, firsts = np.argsort(keys.astype(np.uint16), axis=1, kind="stable"), _firsts(rows)
    upper = np.take((keys >> 16).astype(np.uint16), order + firsts)
    return np.take(order, np.argsort(upper, axis=1, kind="stable") + firsts)


def _firsts(rows: np.ndarray) -> np.ndarray:
    """Offsets of the rows in one long vector, in which they are looked up faster; `[m, 1]`."""
    return rows.shape[1] * np.arange(len(rows))[:, np.newaxis]


def _scores(ascending: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The `rank_scores` of numbers that ascend in each row, `[m, n]`, equal ones sharing their average rank."""
    length = ascending.shape[1]
    found = np.tile(scores[::2], (len(ascending), 1))
    pairs = np.flatnonzero(ascending[:, 1:] == ascending[:, :-1])
    if len(pairs):
        pairs += pairs // (length - 1)  # from places in rows that are shorter by one
        is_first = np.diff(pairs, prepend=-2) > 1
        firsts, lasts = pairs[is_first], pairs[np.roll(is_first, -1)] + 1
        counts = lasts - firsts + 1
        shared = scores[firsts + lasts - 2 * length * (firsts // length)]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        found.reshape(-1)[np.repeat(firsts, counts) + within] = np.repeat(shared, counts)
    return found


def energy_fractions(energy: np.ndarray) -> np.ndarray:
    """The estimated Bayesian fraction of missing information of each chain, from its energies `[chains, draws]`.

    Betancourt, "Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte Carlo", arXiv:1604.00695, 2016:
    how far the energy moves from draw to draw, over how far it spreads. NaN where the energy does not spread.
    """
    if energy.shape[1] < 2:
        return np.full(len(energy), np.nan)
    energy = energy.astype(np.float64)  # squares of those of an improper posterior overflow in float32
    with np.errstate(over="ignore", invalid="ignore"):
        spread = energy.var(axis=1, ddof=1)
        moves = np.square(np.diff(energy, axis=1)).mean(axis=1)
        return np.divide(moves, spread, out=np.full(len(energy), np.nan), where=spread > 0)
