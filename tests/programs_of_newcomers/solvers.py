"""Equations, minima and differential equations."""

import math

import numpy as np

import pcbatch
from pcbatch import random

A = [
    [],
    [1 / 4],
    [3 / 32, 9 / 32],
    [1932 / 2197, -7200 / 2197, 7296 / 2197],
    [439 / 216, -8, 3680 / 513, -845 / 4104],
    [-8 / 27, 2, -3544 / 2565, 1859 / 4104, -11 / 40],
]
B4 = [25 / 216, 0, 1408 / 2565, 2197 / 4104, -1 / 5, 0]
B5 = [16 / 135, 0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55]


@pcbatch.autobatch
def fehlberg(y, mu, end):
    """Van der Pol's oscillator by RK45 with adaptive steps: the end state, accepted and rejected steps."""

    def slope(y):
        return np.array([y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]])

    t, h = 0.0, 0.1
    accepted = rejected = 0
    while t < end:
        h = min(h, end - t)
        ks = []
        for row in A:
            point = y.copy()
            for a, k in zip(row, ks):
                point = point + h * a * k
            ks.append(slope(point))
        low = y + h * sum(b * k for b, k in zip(B4, ks))
        high = y + h * sum(b * k for b, k in zip(B5, ks))
        error = np.linalg.norm(high - low)
        if error <= 1e-4:
            t += h
            y = high
            accepted += 1
        else:
            rejected += 1
        h *= min(2.0, max(0.2, 0.9 * (1e-4 / (error + 1e-12)) ** 0.2))
    return y, accepted > 0, accepted + rejected < 500


def newton_system(residual, x, tolerance=1e-10, limit=30):
    for turn in range(limit):
        r = residual(x)
        if np.max(np.abs(r)) < tolerance:
            return x, turn
        jacobian = np.zeros((len(x), len(x)))
        for j in range(len(x)):
            moved = x.copy()
            moved[j] += 1e-6
            jacobian[:, j] = (residual(moved) - r) / 1e-6
        x = x - np.linalg.solve(jacobian, r)
    return x, limit


@pcbatch.autobatch
def backward_euler(y0, stiffness, steps):
    """A stiff reaction by backward Euler, each step solved by Newton's method."""
    y = y0.copy()
    dt = 0.05
    turns = 0
    for _ in range(steps):
        old = y

        def residual(z):
            rate = stiffness * (z[0] - z[1] ** 2)
            return np.array([z[0] - old[0] + dt * rate, z[1] - old[1] - dt * rate + dt * 0.1 * z[1]])

        y, used = newton_system(residual, y)
        turns += used
    return y, turns >= steps


@pcbatch.autobatch
def brent(a, b, shift):
    """Brent's root of x**3 - x - shift, with bisection as a fallback."""

    def f(x):
        return x**3 - x - shift

    fa, fb = f(a), f(b)
    if fa * fb > 0:
        raise ValueError("no change of sign")
    if abs(fa) < abs(fb):
        a, b, fa, fb = b, a, fb, fa
    c, fc, d = a, fa, a
    bisected = True
    count = 0
    while abs(b - a) > 1e-9 and fb != 0.0:
        if fa != fc and fb != fc:
            s = (
                a * fb * fc / ((fa - fb) * (fa - fc))
                + b * fa * fc / ((fb - fa) * (fb - fc))
                + c * fa * fb / ((fc - fa) * (fc - fb))
            )
        else:
            s = b - fb * (b - a) / (fb - fa)
        low, high = sorted([(3 * a + b) / 4, b])
        if not low < s < high or abs(s - b) >= abs(b - (c if bisected else d)) / 2:
            s = (a + b) / 2
            bisected = True
        else:
            bisected = False
        fs = f(s)
        d, c, fc = c, b, fb
        if fa * fs < 0:
            b, fb = s, fs
        else:
            a, fa = s, fs
        if abs(fa) < abs(fb):
            a, b, fa, fb = b, a, fb, fa
        count += 1
        if count >= 200:
            break
    return b, count < 100


@pcbatch.autobatch
def nelder_mead(start, scale):
    """Rosenbrock's valley by a simplex in two dimensions."""

    def f(p):
        x, y = p
        return (1.0 - x) ** 2 + scale * (y - x * x) ** 2

    simplex = [start, start + np.array([1.0, 0.0]), start + np.array([0.0, 1.0])]
    values = [f(p) for p in simplex]
    for _ in range(60):
        order = sorted(range(3), key=lambda i: values[i])
        simplex = [simplex[i] for i in order]
        values = [values[i] for i in order]
        centre = (simplex[0] + simplex[1]) / 2
        reflected = centre + (centre - simplex[2])
        fr = f(reflected)
        if fr < values[0]:
            expanded = centre + 2.0 * (centre - simplex[2])
            fe = f(expanded)
            simplex[2], values[2] = (expanded, fe) if fe < fr else (reflected, fr)
        elif fr < values[1]:
            simplex[2], values[2] = reflected, fr
        else:
            contracted = centre + 0.5 * (simplex[2] - centre)
            fc = f(contracted)
            if fc < values[2]:
                simplex[2], values[2] = contracted, fc
            else:
                for i in range(1, 3):
                    simplex[i] = simplex[0] + 0.5 * (simplex[i] - simplex[0])
                    values[i] = f(simplex[i])
    best = np.argmin(values)
    return simplex[best], min(values)


def tour_length(cities, tour):
    total = 0.0
    for here, there in zip(tour, np.roll(tour, -1)):
        total += math.hypot(cities[here, 0] - cities[there, 0], cities[here, 1] - cities[there, 1])
    return total


@pcbatch.autobatch
def annealing(key, cities, steps):
    """Simulated annealing of a tour by reversing parts of it."""
    n = len(cities)
    tour = np.arange(n)
    length = tour_length(cities, tour)
    best = length
    temperature = 1.0
    for step in range(steps):
        choose, accept = random.split(random.fold_in(key, step))
        i, j = sorted(random.randint(choose, (2,), 0, n))
        candidate = tour.copy()
        while i < j:
            candidate[i], candidate[j] = candidate[j], candidate[i]
            i, j = i + 1, j - 1
        new = tour_length(cities, candidate)
        if new < length or random.uniform(accept) < math.exp(-(new - length) / temperature):
            tour, length = candidate, new
            best = min(best, length)
        temperature *= 0.95
    return best, tour.sum()


CITIES = np.random.default_rng(1).uniform(size=(4, 6, 2))
PROGRAMS = {
    "fehlberg": (
        fehlberg,
        np.array([[2.0, 0.0], [0.5, 0.5], [1.0, -1.0], [0.0, 0.1]]),
        [1.0, 0.5, 2.0, 0.1],
        [1.0, 2.0, 0.5, 3.0],
    ),
    "backward_euler": (
        backward_euler,
        np.array([[1.0, 0.0], [0.5, 0.5], [2.0, 1.0], [0.0, 1.0]]),
        [10.0, 100.0, 50.0, 1.0],
        [3, 5, 2, 4],
    ),
    "brent": (brent, np.array([1.0, -2.0, 0.5, 1.5]), np.array([2.0, 3.0, 4.0, 3.0]), np.array([2.0, 4.0, 10.0, 7.5])),
    "nelder_mead": (
        nelder_mead,
        np.array([[-1.0, 1.0], [0.5, 0.5], [2.0, 2.0], [0.0, 0.0]]),
        np.array([10.0, 1.0, 5.0, 20.0]),
    ),
    "annealing": (annealing, random.keys(7, 4), CITIES, [10, 20, 0, 15]),
}
