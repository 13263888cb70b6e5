"""Densities with loops inside operations: a differential equation by `tf.while_loop`, hidden states by `tf.scan`.

Each has its posterior by quadrature, from formulas in NumPy that share nothing with it.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

TIMES = np.arange(1.0, 7.0)
GROWN = np.array([0.19, 0.33, 0.52, 0.71, 0.83, 0.93])
NOISE = 0.03


def growth(rate, data):
    """Logistic growth, y' = rate y (1 - y) from 0.1 on, seen with noise; the faster, the shorter are the steps."""
    times, seen = data
    turns = tf.minimum(12.0 + tf.math.ceil(16.0 * rate), 64.0)
    step = times[-1] / tf.stop_gradient(turns)

    def slope(y):
        return rate * y * (1.0 - y)

    def turn(t, y, misfit):
        a = slope(y)
        b = slope(y + step / 2.0 * a)
        c = slope(y + step / 2.0 * b)
        after = y + step / 6.0 * (a + 2.0 * b + 2.0 * c + slope(y + step * c))
        part = (times - t) / step  # between its ends a step is a cubic, with the slopes that it has there
        between = y * (1.0 + 2.0 * part) * (1.0 - part) ** 2 + step * a * part * (1.0 - part) ** 2
        between += after * part**2 * (3.0 - 2.0 * part) + step * slope(after) * part**2 * (part - 1.0)
        here = (part > 1e-6) & (part <= 1.0 + 1e-6)
        return t + step, after, misfit + tf.reduce_sum(tf.where(here, (between - seen) ** 2, 0.0))

    start = (0.0 * rate, 0.1 + 0.0 * rate, 0.0 * rate)
    end = times[-1] - 0.5 * step
    misfit = tf.while_loop(lambda t, y, misfit: t < end, turn, start, maximum_iterations=64)[2]
    return -0.5 * misfit / NOISE**2 - 0.5 * tf.math.log(rate) ** 2 - tf.math.log(rate)


def growth_on(rates: np.ndarray) -> np.ndarray:
    """The logarithm of the same density, up to a constant, from the equation's solution."""
    solution = 1.0 / (1.0 + 9.0 * np.exp(-rates[:, None] * TIMES))
    return -0.5 * np.sum((solution - GROWN) ** 2, -1) / NOISE**2 - 0.5 * np.log(rates) ** 2 - np.log(rates)


EMISSIONS = np.array([-0.2, 0.3, -0.5, 1.6, 2.4, 1.9, 2.2, 0.1, -0.4, 0.4, -0.1, 1.8, 2.1, 1.7, 0.2, -0.3])


def regimes(level, emissions):
    """A chain of two states, which stays with probability 0.8 and emits around 0 or `level`: the forward algorithm."""
    stay, leave = np.log([0.8, 0.2])

    def forward(before, emission):
        same = tf.stack([stay + before[0], stay + before[1]])
        other = tf.stack([leave + before[1], leave + before[0]])
        misfit = (emission - tf.stack([0.0 * level, level])) ** 2
        return tf.reduce_logsumexp(tf.stack([same, other]), axis=0) - 0.5 * misfit / 0.25

    first = tf.stack([0.0 * level, 0.0 * level])
    return tf.reduce_logsumexp(tf.scan(forward, emissions, first)[-1]) - 0.5 * (level - 1.0) ** 2


def regimes_on(levels: np.ndarray) -> np.ndarray:
    """The logarithm of the same density, up to a constant, by products of matrices."""
    found = np.zeros_like(levels)
    step = np.array([[0.8, 0.2], [0.2, 0.8]])
    for place, level in enumerate(levels):
        weights = np.ones(2)
        for emission in EMISSIONS:
            weights = np.exp(-2.0 * (emission - np.array([0.0, level])) ** 2) * (step @ weights)
            found[place] += np.log(weights.sum())
            weights /= weights.sum()
    return found - 0.5 * (levels - 1.0) ** 2


def moments(grid: np.ndarray, logarithms: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of a density whose logarithms on an even grid are given."""
    weights = np.exp(logarithms - logarithms.max())
    weights /= weights.sum()
    mean = float(weights @ grid)
    return mean, float(np.sqrt(weights @ (grid - mean) ** 2))
