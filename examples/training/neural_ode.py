"""A neural ordinary differential equation with an adaptive solver: every example takes the steps that it needs.

Chen, Rubanova, Bettencourt, Duvenaud, "Neural ordinary differential equations", NeurIPS 2018. A network learns the
motion of predators and prey from where pairs of them are after a time. The solver is that of Bogacki and Shampine,
orders 3 and 2. With `vmap` all examples would wait for the one with the most steps.

    python examples/training/neural_ode.py [--steps 200]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import running
import tensorflow as tf

import pcbatch


def examples(random: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Logarithms of the populations at first, times, and logarithms of the populations then."""
    first = random.uniform(-1.0, 1.0, (count, 2))
    times, state = random.uniform(0.2, 2.0, count), first.copy()
    for _ in range(200):  # of Heun, small ones
        slope = np.stack([1.0 - np.exp(state[:, 1]), np.exp(state[:, 0]) - 1.0], 1)
        ahead = state + slope * times[:, None] / 200
        state += (slope + np.stack([1.0 - np.exp(ahead[:, 1]), np.exp(ahead[:, 0]) - 1.0], 1)) * times[:, None] / 400
    return tuple(each.astype(np.float32) for each in (first, times, state))


def model(width: int) -> tuple[Any, list[tf.Variable]]:
    """The squared error of one example, batched, and the weights of the network."""
    inner, bias, outer = variables = running.weights([width, 2], [width], [2, width])

    def slope(x):
        return tf.linalg.matvec(outer, tf.tanh(tf.linalg.matvec(inner, x) + bias))

    @pcbatch.autobatch
    def loss(x, end, wanted):
        time, step, first = 0.0, 0.1, slope(x)
        while time < end:
            step = tf.minimum(step, end - time)
            second = slope(x + 0.5 * step * first)
            third = slope(x + 0.75 * step * second)
            new = x + step * (2.0 * first + 3.0 * second + 4.0 * third) / 9.0
            fourth = slope(new)
            error = tf.reduce_max(tf.abs(step * (5.0 * first / 72.0 - second / 12.0 - third / 9.0 + fourth / 8.0)))
            if error < 1e-3:
                time, x, first = time + step, new, fourth
            step = step * tf.clip_by_value(0.9 * (1e-3 / (error + 1e-9)) ** (1.0 / 3.0), 0.3, 3.0) + 1e-6
        return tf.reduce_sum(tf.square(x - wanted))

    return loss, variables


if __name__ == "__main__":
    running.main("neural_ode", model, examples)
