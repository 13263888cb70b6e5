"""Newton's method with a Jacobian inside of a model: an arm's lengths are learned from where its joints stand.

To reach a point, a two-joint arm solves two equations for its angles. Each point takes its own number of Newton's
steps; the Jacobian is TensorFlow's. The angles that were observed are those of an arm of lengths that nobody has told;
the gradient of the error goes through the solver.

    python examples/training/newton.py [--steps 200]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import running
import tensorflow as tf

import pcbatch

TRUE = np.array([1.3, 0.8])


def examples(random: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Points, a guess of the angles for each, and the angles that were observed."""
    angles = np.stack([random.uniform(-1, 1, count), random.uniform(0.5, 2.0, count)], 1)
    both = np.cumsum(angles, 1)
    points = np.stack([np.cos(both) @ TRUE, np.sin(both) @ TRUE], 1)
    return tuple(each.astype(np.float32) for each in (points, angles + random.normal(size=angles.shape) * 0.1, angles))


def model(width: int) -> tuple[Any, list[tf.Variable]]:
    """The squared error of one point's angles, batched, and the arm's lengths; `width` is of no account."""
    lengths = tf.Variable([1.2, 1.2])

    def missed(angles, point):
        first, second = angles[0], angles[0] + angles[1]
        x = lengths[0] * tf.cos(first) + lengths[1] * tf.cos(second)
        y = lengths[0] * tf.sin(first) + lengths[1] * tf.sin(second)
        return tf.stack([x, y]) - point

    @pcbatch.autobatch
    def loss(point, angles, observed):
        error, turns = missed(angles, point), 0
        while tf.reduce_max(tf.abs(error)) > 1e-5 and turns < 20:
            with tf.GradientTape() as tape:
                tape.watch(angles)
                error = missed(angles, point)
            jacobian = tape.jacobian(error, angles)
            damped = tf.transpose(jacobian) @ jacobian + 1e-4 * tf.eye(2)
            angles -= tf.linalg.solve(damped, tf.linalg.matvec(jacobian, error, transpose_a=True)[:, None])[:, 0]
            error, turns = missed(angles, point), turns + 1
        return tf.reduce_sum(tf.square(angles - observed))

    return loss, [lengths]


if __name__ == "__main__":
    running.main("newton", model, examples)
