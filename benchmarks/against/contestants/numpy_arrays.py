"""NumPy: one operation for all lanes that still go on; those that have ended are taken out. One core."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.against.contestants.worker import Call, Job, serve

Slope = Callable[[np.ndarray, np.ndarray], np.ndarray]


def collatz(n: np.ndarray) -> np.ndarray:
    """Steps to 1."""
    steps = np.zeros_like(n)
    lanes = np.flatnonzero(n != 1)
    n = n[lanes]
    while len(lanes):
        n = np.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps[lanes] += 1
        going = n != 1
        n, lanes = n[going], lanes[going]
    return steps


def rejection(seed: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Tries until a point of the square lies in the disc."""
    found, lanes, tries = np.zeros_like(seed), np.arange(len(seed)), 0
    while len(lanes):
        seed = (seed * 1103 + 12345) % 65536
        x = seed / 65536.0
        seed = (seed * 1103 + 12345) % 65536
        y = seed / 65536.0
        tries += 1
        found[lanes] = tries
        going = (x * x + y * y >= radius) & (tries <= 200)
        seed, radius, lanes = seed[going], radius[going], lanes[going]
    return found


def bisection(target: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """The root of a cubic."""
    low, high = np.zeros_like(target), np.full_like(target, 4.0)
    while (going := high - low > tolerance).any():
        middle = (low + high) / 2.0
        below = middle * middle * middle - middle < target
        low, high = np.where(going & below, middle, low), np.where(going & ~below, middle, high)
    return low


def step(t: np.ndarray, y: np.ndarray, h: np.ndarray, slope: Slope) -> tuple[np.ndarray, np.ndarray]:
    """One step of Dormand and Prince, and an estimate of its error."""
    k1 = slope(t, y)
    k2 = slope(t + h / 5.0, y + h * (k1 / 5.0))
    k3 = slope(t + h * 3.0 / 10.0, y + h * (k1 * 3.0 / 40.0 + k2 * 9.0 / 40.0))
    k4 = slope(t + h * 4.0 / 5.0, y + h * (k1 * 44.0 / 45.0 - k2 * 56.0 / 15.0 + k3 * 32.0 / 9.0))
    b = k1 * 19372.0 / 6561.0 - k2 * 25360.0 / 2187.0 + k3 * 64448.0 / 6561.0 - k4 * 212.0 / 729.0
    k5 = slope(t + h * 8.0 / 9.0, y + h * b)
    b = k1 * 9017.0 / 3168.0 - k2 * 355.0 / 33.0 + k3 * 46732.0 / 5247.0 + k4 * 49.0 / 176.0
    k6 = slope(t + h, y + h * (b - k5 * 5103.0 / 18656.0))
    b = k1 * 35.0 / 384.0 + k3 * 500.0 / 1113.0 + k4 * 125.0 / 192.0 - k5 * 2187.0 / 6784.0
    new = y + h * (b + k6 * 11.0 / 84.0)
    k7 = slope(t + h, new)
    b = k1 * 71.0 / 57600.0 - k3 * 71.0 / 16695.0 + k4 * 71.0 / 1920.0 - k5 * 17253.0 / 339200.0
    return new, h * (b + k6 * 22.0 / 525.0 - k7 / 40.0)


def rk45(y: np.ndarray, end: np.ndarray, k: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """Dormand and Prince's adaptive solver."""
    found, lanes = y.copy(), np.flatnonzero(end > 0)
    y, end, k, tolerance = (array[lanes] for array in (y, end, k, tolerance))
    t, h = 0.0 * end, 0.1 * end
    while len(lanes):
        h = np.minimum(h, end - t)
        new, error = step(t, y, h, lambda t, y: -k * (y - np.cos(t)) - np.sin(t))  # noqa: B023 -- called at once
        ratio = np.abs(error) / (tolerance * np.maximum(1.0, np.abs(y)))
        taken = ratio <= 1.0
        t, y = np.where(taken, t + h, t), np.where(taken, new, y)
        h = h * np.clip(0.9 * np.maximum(ratio, 1e-10) ** -0.2, 0.2, 5.0)
        found[lanes] = y
        going = t < end
        t, y, h, end, k, tolerance, lanes = (array[going] for array in (t, y, h, end, k, tolerance, lanes))
    return found


TASKS = {"collatz": collatz, "rejection": rejection, "bisection": bisection, "rk45": rk45}


def prepare(job: Job) -> Call:
    """A call of the task on a batch."""
    function, given = TASKS[job.task], job.arguments()
    return lambda: function(*given)


if __name__ == "__main__":
    serve(prepare)
