"""Hidden states, trees of species, epidemics and chains."""

import math

import numpy as np
import tensorflow as tf

import pcbatch
from pcbatch import random

TRANSITION = np.array([[0.9, 0.1], [0.2, 0.8]])
EMISSION = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])


@pcbatch.autobatch
def hmm_smoothing(observed):
    """The smoothed probabilities of each state; -1 is a missing observation."""
    n = len(observed)
    forward = np.zeros((n, 2))
    belief = np.array([0.5, 0.5])
    likelihood = 0.0
    for t, symbol in enumerate(observed):
        if t > 0:
            belief = belief @ TRANSITION
        if symbol >= 0:
            belief = belief * EMISSION[:, symbol]
        total = belief.sum()
        likelihood += math.log(total)
        belief = belief / total
        forward[t] = belief
    backward = np.ones(2)
    smoothed = np.zeros_like(forward)
    for t in reversed(range(n)):
        smoothed[t] = forward[t] * backward
        smoothed[t] /= smoothed[t].sum()
        if observed[t] >= 0:
            backward = TRANSITION @ (EMISSION[:, observed[t]] * backward)
        else:
            backward = TRANSITION @ backward
    return smoothed, likelihood


class Node:
    def __init__(self, children=(), base=None, length=0.1):
        self.children = children
        self.base = base
        self.length = length


def substitution(length):
    same = 0.25 + 0.75 * math.exp(-4.0 * length / 3.0)
    return np.full((4, 4), (1.0 - same) / 3.0) + np.eye(4) * (same - (1.0 - same) / 3.0)


def partial_likelihood(node):
    if not node.children:
        partial = np.zeros(4)
        partial[node.base] = 1.0
        return partial
    product = np.ones(4)
    for child in node.children:
        product *= substitution(child.length) @ partial_likelihood(child)
    return product


@pcbatch.autobatch
def phylogeny(bases, lengths):
    """The likelihood of four bases on a tree of four species (Felsenstein's pruning)."""
    leaves = [Node(base=bases[i], length=lengths[i]) for i in range(4)]
    left = Node((leaves[0], leaves[1]), length=lengths[4])
    right = Node((leaves[2], leaves[3]), length=lengths[5])
    root = Node((left, right))
    return math.log(partial_likelihood(root).mean())


@pcbatch.autobatch
def sir_with_vaccination(contacts, vaccinated_per_day, days):
    """An epidemic in three age groups: the infected at the end and the day of the peak."""
    s = np.array([0.33, 0.33, 0.32])
    i = np.array([0.0, 0.01, 0.01])
    r = np.zeros(3)
    peak, peak_day = 0.0, None
    group = 0
    for day in range(days):
        force = contacts @ i
        new = np.minimum(force * s, s)
        recovered = 0.2 * i
        s, i, r = s - new, i + new - recovered, r + recovered
        dose = min(vaccinated_per_day, s[group])
        s[group] -= dose
        r[group] += dose
        if s[group] < 0.05:
            group = (group + 1) % 3
        if i.sum() > peak:
            peak, peak_day = i.sum(), day
    return i, peak, -1 if peak_day is None else peak_day


@pcbatch.autobatch
def ising(key, size_of_step, temperature):
    """Metropolis for a 4 by 4 Ising lattice: magnetisation and energy."""
    spins = np.ones((4, 4), dtype=np.int64)
    for sweep in range(size_of_step):
        for k in random.split(random.fold_in(key, sweep), 4):
            row, column = random.randint(k, (2,), 0, 4)
            neighbours = sum(spins[(row + dr) % 4, (column + dc) % 4] for dr, dc in [(0, 1), (1, 0), (0, -1), (-1, 0)])
            change = 2 * spins[row, column] * neighbours
            if change <= 0 or random.uniform(random.fold_in(k, 1)) < np.exp(-change / temperature):
                spins[row, column] *= -1
    energy = -np.sum(spins * np.roll(spins, 1, axis=0)) - np.sum(spins * np.roll(spins, 1, axis=1))
    return abs(spins.mean()), energy


@pcbatch.autobatch
def chinese_restaurant(key, alpha, customers):
    """Seats customers at tables, popular ones first: the number of tables and the largest one."""
    tables = []
    for n in range(customers):
        u = float(random.uniform(random.fold_in(key, n))) * (n + alpha)
        for t, count in enumerate(tables):
            if u < count:
                tables[t] += 1
                break
            u -= count
        else:
            tables.append(1)
    tables.sort(reverse=True)
    return len(tables), tables[0] if tables else 0, sum(t * t for t in tables)


@pcbatch.autobatch
def gated_kalman(measurements, noise):
    """A Kalman filter for position and speed in TensorFlow that leaves out outliers."""
    f = tf.constant([[1.0, 1.0], [0.0, 1.0]])
    x = tf.zeros([2])
    p = tf.eye(2) * 10.0
    dropped = 0
    for z in measurements:
        x = tf.linalg.matvec(f, x)
        p = f @ p @ tf.transpose(f) + 0.01 * tf.eye(2)
        innovation = z - x[0]
        s = p[0, 0] + noise
        if innovation**2 / s > 9.0:
            dropped += 1
            continue
        gain = p[:, 0] / s
        x = x + gain * innovation
        p = p - tf.tensordot(gain, p[0], axes=0)
    return x, dropped, tf.linalg.trace(p)


PROGRAMS = {
    "hmm_smoothing": (
        hmm_smoothing,
        np.array([[0, 1, 2, -1, 0], [-1, -1, -1, -1, -1], [2, 2, 2, 1, 0], [0, -1, 0, -1, 2]]),
    ),
    "phylogeny": (
        phylogeny,
        np.array([[0, 0, 1, 1], [0, 1, 2, 3], [3, 3, 3, 3], [0, 3, 0, 3]]),
        np.random.default_rng(4).uniform(0.05, 0.5, (4, 6)),
    ),
    "sir_with_vaccination": (
        sir_with_vaccination,
        np.random.default_rng(5).uniform(0.2, 1.5, (4, 3, 3)),
        [0.0, 0.01, 0.03, 0.1],
        [0, 10, 30, 25],
    ),
    "ising": (ising, random.keys(14, 4), [1, 5, 0, 8], [1.0, 2.0, 2.3, 5.0]),
    "chinese_restaurant": (chinese_restaurant, random.keys(15, 4), [1.0, 0.5, 3.0, 2.0], [10, 20, 0, 15]),
    "gated_kalman": (
        gated_kalman,
        np.array(
            [
                [1.0, 2.0, 3.0, 40.0, 5.0],
                [0.0, 0.0, 0.0, 0.0, 0.0],
                [2.0, 4.0, -60.0, 8.0, 10.0],
                [1.0, 1.0, 2.0, 3.0, 5.0],
            ],
            dtype=np.float32,
        ),
        [0.5, 1.0, 0.2, 2.0],
    ),
}
