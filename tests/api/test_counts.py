"""What a run counts, on the paper's own example."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import pcbatch
from tests.optimize.programs import fibonacci


def test_batched_fibonacci_adds_exactly_as_often_as_its_longest_lane():
    """fibonacci(7) alone takes 20 additions; the three smaller lanes ride along in the same 20."""
    run = fibonacci.options(schedule="earliest", jit=False).run(np.array([3, 7, 4, 5], np.int32))
    assert run.value.numpy().tolist() == [3, 21, 5, 8]
    addition = list(run.executions)[-1]
    assert run.executions[addition] == 20
    assert run.utilization.by_block[addition] == (2 + 20 + 4 + 7) / (20 * 4)


def test_additions_of_one_lane_alone():
    run = fibonacci.options(schedule="earliest", jit=False).run(np.array([7], np.int32))
    assert list(run.executions.values())[-1] == 20
    assert run.utilization.overall == 1.0


def test_a_piece_is_traced_once_to_run():
    """Though it is run in chunks, and for all 64 lanes at once.

    What cannot be read is tried where it is called: in two rounds of the loop, and twice in each as it changes a list.
    """
    traced = []

    def dear(matrix):
        try:
            return matrix @ matrix
        finally:
            traced.append(matrix.shape)

    @pcbatch.autobatch
    def power(matrix, turns):
        for _ in range(turns):
            matrix = dear(matrix)
        return matrix

    run = power.options(jit=False).run(tf.ones([64, 64, 64]) / 64, tf.range(64))
    np.testing.assert_allclose(run.value, tf.ones([64, 64, 64]) / 64, rtol=1e-3)
    assert 0.6 < run.utilization.by_block["b2"] < 1  # it would be a half if it ran for all lanes only
    assert traced == [(64, 64)] * (2 * 2 + 1)
