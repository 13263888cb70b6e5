"""Gradients of each example, clipped and with noise (DP-SGD), of a small convolutional network.

Abadi et al., "Deep learning with differential privacy", CCS 2016, which pfor's paper times. No example may move the
weights by more than a bound, so its own gradient is needed. `pcbatch.per_example_gradients` gives them in one run. The
images are crosses and rings, with noise.

    python examples/training/private_gradients.py [--steps 100]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import running
import tensorflow as tf

import pcbatch

SIZE, BOUND, NOISE = 12, 1.0, 0.3


def examples(random: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Images `[count, SIZE, SIZE, 1]`, and whether they show a ring."""
    labels = random.integers(2, size=count)
    centre, radius = random.uniform(4, 7, (2, count, 1, 1)), random.uniform(2, 4, (count, 1, 1))
    y, x = np.mgrid[:SIZE, :SIZE][:, None] - centre
    cross = (np.minimum(abs(x), abs(y)) < 0.7) & (np.maximum(abs(x), abs(y)) < radius)
    ring = abs(np.hypot(x, y) - radius) < 0.7
    image = np.where(labels[:, None, None] == 1, ring, cross) + random.normal(size=(count, SIZE, SIZE)) * 0.3
    return image[..., None].astype(np.float32), labels.astype(np.float32)


def model(width: int) -> tuple[Any, list[tf.Variable]]:
    """The loss of one image, batched, and the weights."""
    filters, deeper, output = variables = running.weights([3, 3, 1, width], [3, 3, width, width], [1, width])

    @pcbatch.autobatch
    def loss(image, label):
        h = tf.nn.relu(tf.nn.conv2d(image[None], filters, 1, "SAME"))
        h = tf.nn.relu(tf.nn.conv2d(tf.nn.max_pool2d(h, 2, 2, "VALID"), deeper, 1, "SAME"))
        score = tf.linalg.matvec(output, tf.reduce_max(h[0], [0, 1]))[0]
        return tf.nn.sigmoid_cross_entropy_with_logits(label, score)

    return loss, variables


def train(loss: Any, variables: list[tf.Variable], examples: Any, steps: int, batch: int) -> list[float]:
    """The mean loss of each step, gradients clipped by example."""
    by_example = pcbatch.per_example_gradients(loss, variables)
    optimizer, random, found = tf.keras.optimizers.Adam(0.01), np.random.default_rng(0), []
    for _ in range(steps):
        given = examples(random, batch)
        gradients = by_example(*given)
        norms = tf.sqrt(tf.add_n([tf.reduce_sum(each**2, [*range(1, len(each.shape))]) for each in gradients]))
        factors = tf.minimum(1.0, BOUND / (norms + 1e-9))
        clipped = [tf.tensordot(factors, each, 1) for each in gradients]
        noisy = [(each + random.normal(size=each.shape) * NOISE * BOUND) / batch for each in clipped]
        optimizer.apply_gradients(zip(noisy, variables, strict=True))
        found.append(float(tf.reduce_mean(loss(*given))))
    return found


if __name__ == "__main__":
    running.main("private_gradients", model, examples, train)
