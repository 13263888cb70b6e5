"""Prices, defaults, forests."""

import math

import numpy as np

import pcbatch
from pcbatch import random


@pcbatch.autobatch
def heston(key, spot, kappa, steps):
    """A path of Heston's model with full truncation: the end and the smallest variance."""
    variance, theta, xi, rho = 0.04, 0.05, 0.6, -0.7
    dt = 1.0 / steps
    smallest = variance
    for step in range(steps):
        z1, z2 = random.normal(random.fold_in(key, step), (2,))
        z2 = rho * z1 + math.sqrt(1.0 - rho**2) * z2
        positive = max(variance, 0.0)
        spot *= math.exp(-0.5 * positive * dt + math.sqrt(positive * dt) * z1)
        variance += kappa * (theta - positive) * dt + xi * math.sqrt(positive * dt) * z2
        smallest = min(smallest, variance)
    return spot, smallest


@pcbatch.autobatch
def asian_option(key, strike, sigma):
    """An Asian call by Monte Carlo with the geometric mean as a control variate."""
    payoffs, controls = [], []
    for path_key in random.split(key, 16):
        z = random.normal(path_key, (12,))
        path = 100.0 * np.exp(np.cumsum(-0.5 * sigma**2 / 12 + sigma * math.sqrt(1 / 12) * z))
        payoffs.append(max(path.mean() - strike, 0.0))
        controls.append(max(np.exp(np.log(path).mean()) - strike, 0.0))
    payoffs, controls = np.array(payoffs), np.array(controls)
    spread = controls - controls.mean()
    if (spread**2).sum() > 0.0:
        beta = (spread * payoffs).sum() / (spread**2).sum()
    else:
        beta = 0.0
    return payoffs.mean(), (payoffs - beta * spread).std()


@pcbatch.autobatch
def stop_loss(returns, floor):
    """A portfolio that sells when it falls below a floor of its peak and buys again after two good days."""
    wealth, peak, invested, good_days = 1.0, 1.0, True, 0
    history = []
    switches = 0
    for r in returns:
        if invested:
            wealth *= 1.0 + r
            peak = max(peak, wealth)
            if wealth < floor * peak:
                invested = False
                good_days = 0
                switches += 1
        else:
            good_days = good_days + 1 if r > 0 else 0
            if good_days == 2:
                invested, peak = True, wealth
                switches += 1
        history.append(wealth)
    drawdown = max(1.0 - h / max(history[: i + 1]) for i, h in enumerate(history))
    return wealth, switches, drawdown, history


@pcbatch.autobatch
def forest(x, feature, threshold, left, right, value):
    """A random forest's mean prediction; trees are rows of arrays of nodes, a leaf has no children."""

    def predict(tree, node=0):
        if left[tree, node] < 0:
            return value[tree, node]
        if np.isnan(x[feature[tree, node]]) or x[feature[tree, node]] <= threshold[tree, node]:
            return predict(tree, left[tree, node])
        return predict(tree, right[tree, node])

    votes = [predict(tree) for tree in range(len(value))]
    return np.mean(votes), np.std(votes), np.median(votes)


@pcbatch.autobatch
def bootstrap(key, data, level):
    """A bootstrapped confidence interval of the median."""
    medians = []
    for k in random.split(key, 20):
        sample = random.choice(k, data, (len(data),))
        medians.append(np.median(sample))
    medians.sort()
    low = int(len(medians) * (1.0 - level) / 2.0)
    high = len(medians) - 1 - low
    inside = [m for m in medians if medians[low] <= m <= medians[high]]
    return medians[low], medians[high], len(inside)


TREES = (
    np.array([[0, 1, 0, 0, 0], [1, 0, 0, 0, 0]]),
    np.array([[0.5, 0.2, 0.0, 0.0, 0.0], [0.7, 0.0, 0.0, 0.0, 0.0]]),
    np.array([[1, 3, -1, -1, -1], [1, -1, -1, -1, -1]]),
    np.array([[2, 4, -1, -1, -1], [2, -1, -1, -1, -1]]),
    np.array([[0.0, 0.0, 3.0, 1.0, 2.0], [0.0, 5.0, 6.0, 0.0, 0.0]]),
)
PROGRAMS = {
    "heston": (heston, random.keys(11, 4), [100.0, 90.0, 110.0, 50.0], [1.0, 2.0, 0.5, 3.0], [4, 10, 1, 25]),
    "asian_option": (asian_option, random.keys(12, 4), [100.0, 90.0, 105.0, 200.0], [0.2, 0.3, 0.1, 0.4]),
    "stop_loss": (stop_loss, np.random.default_rng(2).normal(0.0, 0.1, (4, 12)), [0.9, 0.95, 0.8, 0.99]),
    "forest": (
        forest,
        np.array([[0.1, 0.1], [0.9, 0.3], [np.nan, 0.9], [0.4, np.nan]]),
        *(np.stack([each] * 4) for each in TREES),
    ),
    "bootstrap": (
        bootstrap,
        random.keys(13, 4),
        np.random.default_rng(3).normal(size=(4, 9)).astype(np.float32),
        [0.9, 0.8, 0.5, 0.6],
    ),
}
