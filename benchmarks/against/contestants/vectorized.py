"""`tf.vectorized_map` of a `tf.while_loop` for one lane; a plain graph, as XLA takes no loop that it has vectorised.

It has neither recursion nor a write to an element that each lane chooses for itself, so the other tasks are not here.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from benchmarks.against.contestants.masked_by_hand import step
from benchmarks.against.contestants.worker import Call, Job, serve

Turn = tuple[tf.Tensor, ...]


def collatz(n: tf.Tensor) -> tf.Tensor:
    """Steps to 1."""

    def turn(n: tf.Tensor, steps: tf.Tensor) -> Turn:
        return tf.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return tf.while_loop(lambda n, _: n != 1, turn, (n, tf.zeros_like(n)))[1]


def rejection(seed: tf.Tensor, radius: tf.Tensor) -> tf.Tensor:
    """Tries until a point of the square lies in the disc."""

    def turn(seed: tf.Tensor, tries: tf.Tensor, _: tf.Tensor) -> Turn:
        seed = (seed * 1103 + 12345) % 65536
        x = tf.cast(seed, tf.float64) / 65536.0
        seed = (seed * 1103 + 12345) % 65536
        y = tf.cast(seed, tf.float64) / 65536.0
        return seed, tries + 1, (x * x + y * y >= radius) & (tries < 200)

    start = seed, tf.zeros_like(seed), tf.ones_like(seed, tf.bool)
    return tf.while_loop(lambda seed, tries, going: going, turn, start)[1]


def bisection(target: tf.Tensor, tolerance: tf.Tensor) -> tf.Tensor:
    """The root of a cubic."""

    def turn(low: tf.Tensor, high: tf.Tensor) -> Turn:
        middle = (low + high) / 2.0
        below = middle * middle * middle - middle < target
        return tf.where(below, middle, low), tf.where(below, high, middle)

    start = tf.zeros_like(target), tf.ones_like(target) * 4.0
    return tf.while_loop(lambda low, high: high - low > tolerance, turn, start)[0]


def rk45(y: tf.Tensor, end: tf.Tensor, k: tf.Tensor, tolerance: tf.Tensor) -> tf.Tensor:
    """Dormand and Prince's adaptive solver."""

    def turn(t: tf.Tensor, y: tf.Tensor, h: tf.Tensor) -> Turn:
        h = tf.minimum(h, end - t)
        new, error = step(t, y, h, lambda t, y: -k * (y - tf.cos(t)) - tf.sin(t))
        ratio = tf.abs(error) / (tolerance * tf.maximum(tf.abs(y), 1.0))
        taken = ratio <= 1.0
        factor = tf.minimum(tf.maximum(0.9 * tf.maximum(ratio, 1e-10) ** -0.2, 0.2), 5.0)
        return tf.where(taken, t + h, t), tf.where(taken, new, y), h * factor

    return tf.while_loop(lambda t, *_: t < end, turn, (0.0 * end, y, 0.1 * end))[1]


TASKS = {"collatz": collatz, "rejection": rejection, "bisection": bisection, "rk45": rk45}


def prepare(job: Job) -> Call:
    """A call of the task on a batch."""
    task, given = TASKS[job.task], tuple(map(tf.constant, job.arguments()))

    @tf.function(autograph=False)
    def batched(*batch: tf.Tensor) -> tf.Tensor:
        return tf.vectorized_map(lambda lane: task(*lane), batch, fallback_to_while_loop=False)

    return lambda: np.asarray(batched(*given))


if __name__ == "__main__":
    serve(prepare)
