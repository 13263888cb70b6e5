"""The tasks without recursion as a batch is written by hand in TensorFlow: one loop, and a mask of those that go on.

XLA spreads large kernels over the cores by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from benchmarks.against.contestants.worker import Call, Job, serve


@tf.function(jit_compile=True, autograph=False)
def collatz(n: tf.Tensor) -> tf.Tensor:
    """Steps to 1."""

    def turn(n: tf.Tensor, steps: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        going = n != 1
        after = tf.where(tf.bitwise.bitwise_and(n, 1) == 0, tf.bitwise.right_shift(n, 1), 3 * n + 1)
        return tf.where(going, after, n), steps + tf.cast(going, tf.int32)

    return tf.while_loop(lambda n, _: tf.reduce_any(n != 1), turn, (n, tf.zeros_like(n)))[1]


@tf.function(jit_compile=True, autograph=False)
def rejection(seed: tf.Tensor, radius: tf.Tensor) -> tf.Tensor:
    """Tries until a point of the square lies in the disc."""

    def turn(seed: tf.Tensor, tries: tf.Tensor, going: tf.Tensor) -> tuple[tf.Tensor, ...]:
        first = tf.bitwise.bitwise_and(seed * 1103 + 12345, 65535)
        second = tf.bitwise.bitwise_and(first * 1103 + 12345, 65535)
        x, y = (tf.cast(each, tf.float64) / 65536.0 for each in (first, second))
        tries = tries + tf.cast(going, tf.int32)
        ended = (x * x + y * y < radius) | (tries > 200)
        return second, tries, going & ~ended

    start = seed, tf.zeros_like(seed), tf.ones_like(seed, tf.bool)
    return tf.while_loop(lambda *carried: tf.reduce_any(carried[2]), turn, start)[1]


@tf.function(jit_compile=True, autograph=False)
def bisection(target: tf.Tensor, tolerance: tf.Tensor) -> tf.Tensor:
    """The root of a cubic."""

    def turn(low: tf.Tensor, high: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        going, middle = high - low > tolerance, (low + high) / 2.0
        below = middle * middle * middle - middle < target
        return tf.where(going & below, middle, low), tf.where(going & ~below, middle, high)

    start = tf.zeros_like(target), tf.fill(tf.shape(target), tf.constant(4.0, tf.float64))
    return tf.while_loop(lambda low, high: tf.reduce_any(high - low > tolerance), turn, start)[0]


def step(
    t: tf.Tensor, y: tf.Tensor, h: tf.Tensor, slope: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
) -> tuple[tf.Tensor, tf.Tensor]:
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


@tf.function(jit_compile=True, autograph=False)
def rk45(y: tf.Tensor, end: tf.Tensor, k: tf.Tensor, tolerance: tf.Tensor) -> tf.Tensor:
    """Dormand and Prince's adaptive solver."""

    def slope(t: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return -k * (y - tf.cos(t)) - tf.sin(t)

    def turn(t: tf.Tensor, y: tf.Tensor, h: tf.Tensor) -> tuple[tf.Tensor, ...]:
        going = t < end
        h = tf.where(going, tf.minimum(h, end - t), h)
        new, error = step(t, y, h, slope)
        ratio = tf.abs(error) / (tolerance * tf.maximum(tf.constant(1.0, tf.float64), tf.abs(y)))
        taken = going & (ratio <= 1.0)
        factor = 0.9 * tf.maximum(ratio, 1e-10) ** -0.2
        after = h * tf.clip_by_value(factor, tf.constant(0.2, tf.float64), tf.constant(5.0, tf.float64))
        return tf.where(taken, t + h, t), tf.where(taken, new, y), tf.where(going, after, h)

    start = tf.zeros_like(end), y, 0.1 * end
    return tf.while_loop(lambda t, *_: tf.reduce_any(t < end), turn, start)[1]


TASKS = {"collatz": collatz, "rejection": rejection, "bisection": bisection, "rk45": rk45}


def prepare(job: Job) -> Call:
    """A call of the task on a batch."""
    function, given = TASKS[job.task], tuple(map(tf.constant, job.arguments()))
    return lambda: np.asarray(function(*given))


if __name__ == "__main__":
    serve(prepare)
