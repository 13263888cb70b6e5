"""Saved models: the gradient of a batched call is saved with it, also of a function that takes one itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import GradientError

W = tf.Variable(np.linspace(-0.5, 0.5, 9).reshape(3, 3), dtype=tf.float64)
VECTORS = np.linspace(-1.0, 2.0, 15).reshape(5, 3)
COUNTS = np.array([3, 0, 1, 4, 2], np.int32)
SIGNATURE = [tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, 3], tf.float64)]


REFUSED = (GradientError, tf.errors.InvalidArgumentError)
"""What a second derivative raises where it is traced, and what it does in a saved model that runs."""


@pcbatch.autobatch
def tree(n, x):
    if n <= 0:
        return tf.tanh(tf.linalg.matvec(W, x))
    left = tree(n - 1, x)
    right = tree(n - 2, x * 0.5)
    return tf.tanh(tf.linalg.matvec(W, left) + right)


class Trained(tf.Module):
    def __init__(self, function: Any):
        super().__init__()
        self.w = W
        self.function = function

    @tf.function(input_signature=SIGNATURE)
    def step(self, n, x):
        """The loss, and its gradients by the weights and `x`."""
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(self.function(n, x) ** 2)
        return (loss, *tape.gradient(loss, [self.w, x]))


def by_single(n: np.ndarray, x: np.ndarray) -> list[tf.Tensor]:
    """The results of `Trained.step`, one example after another."""
    given = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(given)
        losses = [tf.reduce_sum(tree.single(each, given[lane]) ** 2) for lane, each in enumerate(n.tolist())]
        loss = tf.add_n(losses)
    return [loss, *tape.gradient(loss, [W, given])]


@pytest.mark.parametrize(
    "options", [{}, *(pytest.param(each, marks=pytest.mark.slow) for each in ({"fork": True}, {"tape": "replay"}))]
)
def test_a_step_is_saved_and_loaded_with_its_gradients(tmp_path: Any, options: dict[str, Any]) -> None:
    model = Trained(tree.options(**options))
    tf.saved_model.save(model, str(tmp_path))
    again = tf.saved_model.load(str(tmp_path))
    want = by_single(COUNTS, VECTORS)
    for each in (model, again):
        for found, wanted in zip(each.step(COUNTS, VECTORS), want, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
        nothing = each.step(COUNTS[:0], VECTORS[:0])
        assert [part.numpy().tolist() for part in nothing] == [0.0, np.zeros((3, 3)).tolist(), []]
    with tf.GradientTape() as tape:
        slopes = by_single(COUNTS, VECTORS)[2]
    wanted = tape.gradient(slopes, W)
    with tf.GradientTape() as tape:
        slopes = model.step(COUNTS, VECTORS)[2]
    np.testing.assert_allclose(tape.gradient(slopes, W), wanted, rtol=1e-9, atol=1e-12)
    with tf.GradientTape() as tape, pytest.raises(REFUSED, match="PCB604"):
        tape.gradient(again.step(COUNTS, VECTORS)[2], W)


def test_no_examples_of_a_length_that_is_not_known() -> None:
    """XLA reads no first element of an array that has none."""

    @tf.function(input_signature=SIGNATURE)
    def values(n, x):
        return tree(n, x)

    assert values(COUNTS[:0], VECTORS[:0]).shape == (0, 3)
    np.testing.assert_allclose(values(COUNTS[:2], VECTORS[:2])[1], tree.single(0, VECTORS[1]), rtol=1e-9)
